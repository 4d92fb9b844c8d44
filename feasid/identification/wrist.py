"""A tool or load behind a wrist force-torque sensor, from one log.

The sensor feels what moves the load and holds it against gravity. With the load's ten parameters
delta_L in the frame of the body that carries the sensor, force and moment there are linear,

    f = S(alpha) l + S(omega)^2 l + m a,    n = L alpha + omega x L omega + l x a,

a the acceleration of the frame's origin minus gravity (Siciliano et al. 2009, eq. 7.69), moved to
the sensor's frame; offsets of its six channels are identified with them. Both sides go through one
low-pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.core.threads import one_thread
from feasid.dynamics.kinematics import nodes, propagate
from feasid.dynamics.newton_euler import WrenchRegressor
from feasid.errors import InputError, LogError
from feasid.formats.robot_of import robot_of
from feasid.identification.payload import (
    Payload,
    body_place,
    checked_mass,
    covariance_of,
    possible_body,
)
from feasid.logs.columns import numbers
from feasid.logs.motion import Run
from feasid.logs.recording import Recording
from feasid.logs.signals.filters import low_pass
from feasid.options.tables import LogOptions
from feasid.reduction.reduce import Log
from feasid.robot.description import Robot

if TYPE_CHECKING:
    import pandas as pd

CHANNELS = ("fx", "fy", "fz", "tx", "ty", "tz")

CUTOFF = 5.0
"""Low-pass of both sides where the log itself was not filtered [Hz]."""

ROWS_PER_HZ = 2.6
"""Rows kept per second and Hz of the cut-off: neighbours say the same."""


@one_thread()
def payload_from_wrench(
    log: Log,
    robot: Robot | str | None = None,
    *,
    channels: Sequence[str] = CHANNELS,
    body: str | None = None,
    rotation: npt.ArrayLike | None = None,
    position: npt.ArrayLike | None = None,
    **options: Unpack[LogOptions],
) -> Payload:
    """Identify a load from a wrist force-torque sensor.

    Parameters
    ----------
    log : DataFrame, mapping of arrays, path or Recording
        Positions of the joints as in `feasid.logs.frame`, and six columns of the sensor: what it
        has to exert on the load [N, N m], in its own axes and about its own origin.
    robot : Robot or path, optional
    channels : sequence of six str
        Names of the columns: forces along x, y, z, then moments.
    body : str, optional
        The body that carries the sensor; default the last one.
    rotation, position : array_like, shapes (3, 3) and (3,), optional
        Pose of the sensor in the body's frame: its axes as columns, its origin [m]. Default the
        body's own frame.
    **options
        How the log is read.

    Returns
    -------
    Payload
        In the frame of the body; ``residual`` is of the sensor's channels, without and with it.

    Raises
    ------
    LogError
        When a column is missing.
    InputError
        When the load has a negative mass: then the sensor counts the other way round.
    """
    recording = Recording.of(log)
    arm = robot_of(log, robot)
    k = len(arm.bodies) - 1 if body is None else body_place(arm, body)
    turn = np.eye(3) if rotation is None else np.asarray(rotation, dtype=np.float64)
    shift = np.zeros(3) if position is None else np.asarray(position, dtype=np.float64)
    if turn.shape != (3, 3) or shift.shape != (3,) or abs(np.linalg.det(turn) - 1) > 1e-6:
        raise InputError("rotation must be a (3, 3) rotation matrix and position have 3 entries")
    motion = recording.motion(arm, torque=False, **options)
    felt = _felt(recording.table(arm, options.get("topic")), channels)
    rows, right = [], []
    for run in motion.runs:
        if not np.isfinite(felt[run.rows]).all():
            bad = int(run.rows[int(np.argmin(np.isfinite(felt[run.rows]).all(axis=1)))])
            raise LogError(f"the sensor has no finite number in row {bad}", row=bad)
        a, b = _filtered(_columns(arm, k, run, turn, shift), felt[run.rows], run.rate)
        rows.append(a)
        right.append(b)
    return _solved(np.concatenate(rows), np.concatenate(right), arm.bodies[k].name)


def _felt(frame: pd.DataFrame, channels: Sequence[str]) -> Array:
    missing = [c for c in channels if c not in frame.columns]
    if missing or len(channels) != 6:
        raise LogError(
            f"the sensor needs six columns, forces then moments; {missing or list(channels)} "
            f"{'are not in the log' if missing else 'are not six'}: channels="
        )
    return np.stack([numbers(frame, c) for c in channels], axis=1)


def _columns(arm: Robot, k: int, run: Run, turn: Array, shift: Array) -> Array:
    """Six channels per unit of the load's parameters, shape (N, 6, 10)."""
    tree = nodes(arm)
    places = [i for i, node in enumerate(tree) if node.columns == tuple(arm.inertial_columns[k])]
    states = propagate(tree, arm.gravity, run.q.T, run.dq.T, run.ddq.T)
    state = next(s for i, s in enumerate(states) if i == places[0])
    wrench = WrenchRegressor.of(state, tree[places[0]], list(range(10)))
    force, moment = np.zeros((2, 3, 10, len(run)))
    force[:, 6:] = wrench.linear
    moment[:, :9] = wrench.angular
    moment -= np.cross(shift[:, None, None], force, axis=0)
    both = np.concatenate([np.einsum("ji,jkN->ikN", turn, x) for x in (force, moment)])
    return np.ascontiguousarray(both.transpose(2, 0, 1))


def _filtered(columns: Array, felt: Array, rate: float) -> tuple[Array, Array]:
    """Both sides low-passed alike, with so many rows as are independent."""
    cutoff = min(CUTOFF, 0.2 * rate)
    flat = np.concatenate([columns.reshape(len(columns), -1), felt], axis=1)
    keep = slice(None, None, max(1, round(rate / (ROWS_PER_HZ * cutoff))))
    smooth = low_pass(flat, cutoff, rate)[keep]
    return smooth[:, :-6].reshape(-1, 6, 10), smooth[:, -6:]


def _solved(columns: Array, felt: Array, body: str) -> Payload:
    """Ten parameters and six offsets, in units of each channel's noise."""
    count = len(felt)
    weight = np.ones(6)
    for _ in range(3):
        matrix = np.zeros((count, 6, 16))
        matrix[:, :, 6:] = columns
        matrix[:, np.arange(6), np.arange(6)] = 1.0
        rows = (matrix * weight[:, None]).reshape(-1, 16)
        right = (felt * weight).reshape(-1)
        found = np.linalg.lstsq(rows, right, rcond=1e-10)[0]
        rest = (felt - matrix @ found).std(axis=0)
        weight = 1.0 / np.maximum(rest, 1e-9 * np.abs(felt).max())
    triangle = np.asarray(np.linalg.qr(np.c_[rows, right], mode="r"))
    r, rho = triangle[6:16, 6:16], triangle[6:16, 16]
    covariance, free = covariance_of(r, rho)
    checked_mass(free[9], covariance[9, 9], body, "does the sensor count the other way round?")
    fit = possible_body(r, rho)
    varying = felt - felt.mean(axis=0)
    left = felt - columns @ fit.delta
    left = left - left.mean(axis=0)
    size = float(np.linalg.norm(varying * weight))
    residual = (1.0, float(np.linalg.norm(left * weight)) / max(size, 1e-300))
    return Payload.of(body, fit, covariance, residual)
