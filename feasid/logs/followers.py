"""Columns of joints that follow others: checked against the coupling, their torques added."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.core.notes import Note
from feasid.errors import LogError
from feasid.robot.description import Robot

DISAGREE = (0.02, 0.05)
"""Root-mean-square difference from the coupling that is refused: above so many rad or m and
above this share of the joint's range. Backlash and noise stay below."""

CHECKED = 500
"""Rows that are checked, evenly spread: closing loops takes time."""

IDLE = 1e-6
"""Torque of a joint that has no motor, as a share of the largest in the log."""

Index = npt.NDArray[np.intp]

Column = Callable[[str, str], Array | None]
"""A column's numbers in SI by kind and joint; None when the log does not have it."""


def check_followers(robot: Robot, values: dict[str, Array], column: Column) -> list[Note]:
    """Compare the log's other joints with what they follow; adds their torques in place.

    Parameters
    ----------
    robot : Robot
    values : dict
        Signals of the independent coordinates, (N, dof).
    column : callable

    Raises
    ------
    LogError
        Names the joint that is not where its coupling or loop puts it, with row and numbers, or a
        passive joint of a loop that has a torque.
    """
    free = set(robot.independent.tolist())
    others = {
        body.joint: row.start
        for body, row in zip(robot.bodies, robot.rows, strict=True)
        if body.dof == 1 and row.start not in free
    }
    found = {j: x for j in others if (x := column("q", j)) is not None}
    notes = []
    if found:
        q = values["q"]
        finite = np.flatnonzero(np.isfinite(q).all(axis=1))
        rows = finite[:: max(1, len(finite) // CHECKED)]
        expected = _followed(robot, q[rows])
        offs = {j: _compare(robot, j, x[rows], expected[others[j]], rows) for j, x in found.items()}
        said = ", ".join(f"{j} ({off:.2g})" for j, off in offs.items())
        notes.append(
            Note(f"joints that follow others agree with the log to (rms): {said}", "follows")
        )
    for joint, row in others.items():
        tau = column("tau", joint) if "tau" in values else None
        largest = float(np.nanmax(np.abs(values["tau"]), initial=0.0)) if tau is not None else 0.0
        if tau is not None and np.nanmax(np.abs(tau), initial=0.0) > IDLE * largest:
            _add_torque(robot, joint, row, tau, values)
            notes.append(Note(f"the torque of joint {joint!r} acts on what it follows", "follows"))
    return notes


def _followed(robot: Robot, s: Array) -> Array:
    """Joint coordinates (axes, N) of independent ones (N, dof); NaN where loops do not close."""
    if robot.closure is None:
        return robot.coupled.A @ s.T + robot.coupled.b[:, None]
    q, closed = robot.closure.followed(s.T)
    return np.where(closed, q, np.nan)


def _compare(robot: Robot, joint: str, q: Array, expected: Array, rows: Index) -> float:
    """Root-mean-square difference; refused when it is more than noise."""
    off = q - expected
    if robot.bodies[robot.joint_index(joint)].motion[:3].any():
        off = off - 2 * np.pi * np.round(np.nanmedian(off) / (2 * np.pi))
    rms = float(np.sqrt(np.nanmean(off**2))) if np.isfinite(off).any() else 0.0
    reach = float(np.nanmax(q) - np.nanmin(q))
    if rms > max(DISAGREE[0], DISAGREE[1] * reach):
        worst = int(np.nanargmax(np.abs(off)))
        raise LogError(
            f"joint {joint!r} is not where the joints that it follows put it: at {q[worst]:.4g} "
            f"instead of {expected[worst]:.4g} in row {int(rows[worst])}, {rms:.2g} off on "
            "average; check the coupling's factor, sign and offset",
            joint=joint,
            row=int(rows[worst]),
        )
    return rms


def _add_torque(robot: Robot, joint: str, row: int, tau: Array, values: dict[str, Array]) -> None:
    if robot.closure is not None and row in robot.closure.conditions.rows:
        raise LogError(
            f"joint {joint!r} is passive in a closed loop, but the log gives it a torque: joints "
            "with motors are independent with active=",
            joint=joint,
        )
    factors = robot.coupled.A[row]
    if robot.closure is not None:
        factors = factors[robot.closure.active]
    values["tau"] = values["tau"] + np.outer(np.nan_to_num(tau), factors)
