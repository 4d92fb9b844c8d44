"""What the columns d tau / d theta of effects need of a log's rows, besides the rows themselves.

A column passes the same low-pass as everything else, so that an effect of size theta adds theta
times its column to the torques of the rows, to first order.
"""

from __future__ import annotations

import numpy as np

from feasid.core.arrays import Array
from feasid.identification.regression.rows import Rows, RunRows
from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import inverse_dynamics

HARMONICS = range(6, 201)
"""Periods per 2 pi rad of ripple that are searched. Fewer waves do not count as ripple: smooth
functions of the position are searched separately."""


def decimated_rigid_torque(rows: Rows, part: RunRows, model: Robot) -> Array:
    """The rigid bodies' torque at the samples of smooth functions, shape (n, dof)."""
    key = "decimated", id(part), model.values.tobytes()
    if key not in rows.derived:
        run = part.run
        motion = (part.decimate(x) for x in (run.q, run.dq, run.ddq))
        rows.derived[key] = inverse_dynamics(model.without_joint_terms(), *motion)
    return rows.derived[key]


def body_torque(rows: Rows, part: RunRows, model: Robot, at_rest: bool) -> Array:
    """Torque of the rigid bodies, or of their weight alone, at all samples, shape (N, dof)."""
    key = at_rest, id(part), model.values.tobytes()
    if key not in rows.derived:
        q, dq, ddq = part.run.q, part.run.dq, part.run.ddq
        if at_rest:
            dq = ddq = np.zeros_like(q)
        rows.derived[key] = inverse_dynamics(model.without_joint_terms(), q, dq, ddq)
    return rows.derived[key]


def strongest_harmonics(rows: Rows, joint: int, beta: Array, count: int) -> list[int]:
    """Periods per 2 pi rad that the unfiltered residual of a joint holds most of.

    Each further one is the strongest in addition to those before.
    """
    at = np.concatenate([p.run.q[p.samples, joint] for p in rows.parts])
    raw = [p.raw[joint] for p in rows.parts]
    e = np.concatenate([x[-1] - beta[rows.supports[joint]] @ x[:-1] for x in raw])
    numbers: list[int] = []
    for _ in range(count):
        # Part of a squared residual (N,) that each of `HARMONICS` of positions explains, (waves,).
        # The sums of squares and products of cosine and sine are those of waves of twice the
        # number.
        step, wave, sums = np.exp(1j * at), np.exp(1j * (HARMONICS.start - 1) * at), []
        for _ in HARMONICS:
            wave = wave * step
            sums.append((wave @ e, wave @ wave))
        (seen, twice), size = np.array(sums).T, (1.0 + 1e-9) * len(e)
        cosines, sines, both = (size + twice.real) / 2, (size - twice.real) / 2, twice.imag / 2
        c, s = seen.real, seen.imag
        squares = sines * c**2 - 2 * both * c * s + cosines * s**2
        numbers.append(HARMONICS[int(np.argmax(squares / (cosines * sines - both**2)))])
        waves = np.hstack([harmonic_columns(at, number) for number in numbers])
        e = e - waves @ np.linalg.lstsq(waves, e, rcond=None)[0]
    return numbers


def harmonic_columns(q: Array, number: float) -> Array:
    """Sine and cosine of a position, shape (N, 2)."""
    return np.stack([np.sin(number * q), np.cos(number * q)], axis=1)
