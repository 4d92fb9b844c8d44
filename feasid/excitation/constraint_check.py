"""Whether a motion keeps its limits, on a grid far finer than the one it was designed on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from feasid.core.arrays import Array
from feasid.excitation.problem import (
    FINAL_REFINEMENT,
    LIMIT_GRID_REFINEMENT,
    Problem,
    limit_margins,
)

CHECK_REFINEMENT = 20
"""Motions are checked at this many times between any two at which they were designed."""

MIN_MARGIN = 1e-6
"""Least room that motions leave, in units of half the range. One of h harmonics that leaves r at N
times leaves ``1 - (1 - r) / cos(pi h / N)`` between them (Ehlich and Zeller, 1964), and at the 2880
times per harmonic of the check the cosine lacks 6e-7."""

MAX_SCALING_STEPS = 10
"""Halvings of the interval in which the largest feasible size lies, and steps inward after it."""

SCALING_STEP = 2e-4
"""Share of its size that a motion loses in each step inward."""


@dataclass(frozen=True)
class Margin:
    """The least room that a motion leaves: what it is about, and in units of its scale."""

    name: str
    joint: str | None
    kind: str
    slack: float


def check_times(problem: Problem) -> Array:
    """Times at which motions are checked."""
    count = CHECK_REFINEMENT * LIMIT_GRID_REFINEMENT * FINAL_REFINEMENT * problem.samples
    return np.asarray(np.arange(count) * problem.basis.period / count)


def smallest_margins(problem: Problem, coefficients: Array, t: Array) -> list[Margin]:
    """The least margin of every limit over these times."""
    motion = [np.ascontiguousarray(m.T) for m in problem.basis.matrices(t) @ coefficients]
    joints = problem.chain.robot.joints
    out: list[Margin] = []
    kinds = problem.bounds.items()
    values = dict(zip([k for k, _ in kinds], motion, strict=False))
    torque = bool(np.isfinite(problem.bounds.torque).any())
    sweep = None
    if torque or problem.constraints:
        sweep = problem.exact.forward(*motion[:3], torque=torque)
        values["torque"] = sweep.torques
    for kind, limit in kinds:
        if np.isfinite(limit).any():
            margins, rows, _ = limit_margins(values[kind], limit)
            for j, low in zip(rows, margins.min(axis=1), strict=True):
                name = f"{kind} limit of joint {joints[j]!r}"
                out.append(Margin(name, joints[j], kind, float(low)))
    for part in problem.constraints:
        assert sweep is not None
        lows = part(sweep)[0].min(axis=1)
        out += [Margin(n, None, "space", float(m)) for n, m in zip(part.names, lows, strict=True)]
    return out


def satisfies_limits(problem: Problem, z: Array, t: Array) -> bool:
    """Whether all limits hold at these times and between them."""
    margins = smallest_margins(problem, problem.coordinates.coefficients(z), t)
    return all(margin.slack >= MIN_MARGIN for margin in margins)


def shrink_into_limits(problem: Problem, z: Array, t: Array) -> Array | None:
    """The motion brought inside its limits by making it smaller, None when that does not help.

    z = 0 is standstill at a posture that keeps everything; limits on joints are convex, so that
    they hold for all smaller motions once they hold for one.
    """
    sparse = t[:: CHECK_REFINEMENT // 2]
    share = largest_scale(problem, z, sparse)
    for _ in range(MAX_SCALING_STEPS if share else 0):
        if satisfies_limits(problem, share * z, t):
            return share * z
        share *= 1 - SCALING_STEP
    return None


def largest_scale(problem: Problem, z: Array, t: Array) -> float:
    """The largest size at which a motion keeps its limits at these times; 0 for none."""
    if satisfies_limits(problem, z, t):
        return 1.0
    good, bad = 0.0, 1.0
    for share in (0.9999, 0.999, 0.99, 0.95, 0.9, 0.8, 0.6, 0.4, 0.2, 0.1, 0.05):
        if satisfies_limits(problem, share * z, t):
            good = share
            break
        bad = share
    for _ in range(MAX_SCALING_STEPS if good else 0):
        middle = 0.5 * (good + bad)
        good, bad = (middle, bad) if satisfies_limits(problem, middle * z, t) else (good, middle)
    return good


def scale_to_limits(problem: Problem, z: Array) -> Array:
    """The motion of every joint made as large as its own limits allow: it touches the tightest."""
    count = LIMIT_GRID_REFINEMENT * problem.samples
    matrices = problem.basis.matrices(np.arange(count) * problem.basis.period / count)
    still = matrices @ problem.coordinates.centre
    moved = matrices @ problem.coordinates.coefficients(z) - still
    most = np.full(still.shape[2], np.inf)
    for step, base, limit in zip(moved, still, problem.bounds.linear, strict=True):
        for edge in limit:
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = (edge - base) / step
            ratio = np.where(np.isfinite(ratio) & (ratio > 0), ratio, np.inf)
            most = np.minimum(most, ratio.min(axis=0))
    share = np.where(np.isfinite(most), most, 1.0)
    return np.asarray((share[:, None] * z.reshape(problem.coordinates.shape)).ravel())
