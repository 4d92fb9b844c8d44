"""Equations without accelerations: the change of momentum over a window of time.

The inverse dynamics is ``tau = d/dt (Y_p delta) + C delta`` with Y_p(q, dq) the regressor of the
generalised momentum H(q) dq (and of Ia dq), and C(q, dq) the remainder: minus the gradient of the
kinetic energy, weight and friction. Integrated over a window,

    int tau dt = [Y_p delta] + (int C dt) delta

holds without any acceleration. Y_p is the regressor at (q, 0, dq) without gravity and friction,
and ``C = Y(q, dq, 0) - dY_p/dq dq``, the last term by a central difference along dq.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.core.errors import InputError, NotEnoughDataError
from feasid.core.notes import Note
from feasid.identification.regression.equations import EquationReducer
from feasid.identification.regression.rows import RunRows, friction_speeds, slowness
from feasid.identification.regression.triangle import Reduced
from feasid.logs.motion import Motion, MotionTally, Run
from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import RegressorPlan
from feasid.robot.dynamics.spatial import as_samples_last
from feasid.robot.joint_terms import DRIVE_SYMBOLS

WINDOW = 0.1  #: Default length of a window [s].
STEP = 1e-5  #: Step [s] of the difference along dq: its error is of order 1e-10, its rounding 1e-11

FORCES = frozenset(DRIVE_SYMBOLS).difference({"Ia"})
"""Symbols of joint terms that are forces and no momentum."""

CHUNK_WINDOWS = 64  #: Windows whose equations are formed at a time.


def reduce_momentum(
    motions: Iterable[Motion], robot: Robot, columns: Sequence[int], window: float = WINDOW
) -> Reduced:
    """Reduce prepared runs through their momentum; consecutive windows overlap by half.

    `window`: [s]; at least two samples long. Returns: of equations in N m s (N s), one per window
    and joint, divided by the window's length so that they compare with torques.
    """
    several = [b.joint for b in robot.bodies if b.dof > 1]
    if several:
        raise InputError(f"momentum needs joints of one degree of freedom; {several[0]!r} has more")
    if robot.dof != robot.axes:
        raise InputError(
            f"momentum is for robots whose joints move by themselves; joints of robot "
            f"{robot.name!r} are coupled or in loops: method='torque'"
        )
    plan = RegressorPlan.from_robot(robot, columns)
    free = RegressorPlan.from_robot(robot.with_gravity((0.0, 0.0, 0.0)), columns)
    reducer, tally = EquationReducer(robot, columns, 1.0 / window), MotionTally()
    slow = friction_speeds(robot)
    samples = 0
    for motion in motions:
        tally.count(motion)
        for run in (r.without_surroundings() for r in motion.runs):
            reducer.restart()
            half = round(0.5 * window * run.rate)
            if half < 1:
                raise InputError(
                    f"a window of {window:g} s is shorter than two samples at {run.rate:.4g} Hz: "
                    f"give window={np.ceil(2e3 / run.rate) / 1e3:g} or more",
                    window=window,
                )
            edges = np.arange(0, len(run), half)
            for first in range(0, len(edges) - 2, CHUNK_WINDOWS):
                chosen = edges[first : first + CHUNK_WINDOWS + 2]
                reducer.add_rows(_window_rows(plan, free, slow, run, chosen, half))
            samples += len(run) if len(edges) > 2 else 0
    if not samples:
        raise NotEnoughDataError(f"no run is as long as a window of {window:g} s")
    text = f"accelerations are not used: change of momentum over windows of {window:g} s"
    found = reducer.result((*tally.notes, Note(text, "momentum", window=window)))
    return replace(found, cutoff=tally.cutoff, samples=samples)


def _window_rows(
    plan: RegressorPlan,
    free: RegressorPlan,
    slow: Sequence[Sequence[Array]],
    run: Run,
    edges: npt.NDArray[np.intp],
    half: int,
) -> RunRows:
    """The windows' equations; without a low-pass of another kind they are their own raw ones."""
    part = slice(int(edges[0]), int(edges[-1]) + 1)
    q, dq, tau = (as_samples_last(x[part]) for x in (run.q, run.dq, run.tau))
    at = edges - edges[0]
    momentum = _momentum_regressor(free, q[:, at], dq[:, at])
    ahead, behind = (_momentum_regressor(free, q + s * dq, dq) for s in (STEP, -STEP))
    at_rest = _regressor_blocks(plan, q, dq, np.zeros_like(dq))
    length = 2 * half / run.rate

    def integrate(signal: Array) -> Array:
        """Integrals up to the edges by the trapezoidal rule, zero at the first sample."""
        out = np.zeros_like(signal)
        np.cumsum(0.5 * (signal[:, 1:] + signal[:, :-1]) / run.rate, axis=1, out=out[:, 1:])
        return out[:, at]

    def divide_change(total: Array) -> Array:
        """Changes over the windows, by their length."""
        return (total[:, 2:] - total[:, :-2]) / length

    blocks = [
        divide_change(p + integrate(c - (a - b) / (2 * STEP)))
        for p, c, a, b in zip(momentum, at_rest, ahead, behind, strict=True)
    ]
    right = divide_change(integrate(tau))
    rows = [np.vstack([block, tau_j]) for block, tau_j in zip(blocks, right, strict=True)]
    still = np.array([divide_change(integrate(slowness(s, dq)[None]))[0] for s in slow])
    # Delays are those that torques show: here no slope is needed.
    return RunRows(run, edges[1:-1], rows, rows, np.zeros(still.shape), still)


def _momentum_regressor(free: RegressorPlan, q: Array, dq: Array) -> list[Array]:
    """Y_p per row: the regressor at (q, 0, dq), where of the joint terms only inertia counts."""
    blocks = _regressor_blocks(free, q, np.zeros_like(dq), dq)
    names = free.robot.parameter_names
    for block, support in zip(blocks, free.nonzero_columns, strict=True):
        block[[names[c][1] in FORCES for c in support]] = 0.0
    return blocks


def _regressor_blocks(plan: RegressorPlan, q: Array, dq: Array, ddq: Array) -> list[Array]:
    blocks = [np.empty((len(s), q.shape[1])) for s in plan.nonzero_columns]
    plan.fill(q, dq, ddq, blocks)
    return blocks
