"""What shows where joints do not move by themselves: ranks of energies at random motions.

Couplings and closed loops only hide more, so that the base parameters of the open tree are the
unknowns: their energies at random configurations and velocities, taken through the couplings and
loops, have the identifiable combinations as their row space. Its rank is numerical.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.dynamics.coupled import carried
from feasid.dynamics.energy import energies
from feasid.errors import InputError
from feasid.robot.description import Robot

Index = npt.NDArray[np.intp]

SPARE = 30
"""Random motions beyond the number of unknowns."""

REACH = 1.0
"""How far independent joints are taken [rad, or lengths of the robot], where no loop binds them."""

NEAR_LOOP = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02)
"""The same in loops, which cannot be taken everywhere: less far when too few motions close."""

TRIES = 3
"""Random motions per one that is wanted, and per reach."""


def visible(robot: Robot, columns: Index, units: Array, length: float, static: bool) -> Array:
    """Energies of the parameters in these columns, scaled, a row per random motion and energy.

    Parameters
    ----------
    robot : Robot
    columns : ndarray of int
        Independent parameters of the open tree.
    units : ndarray
        SI size of a scaled unit of each of them.
    length : float
        Size of the robot [m].
    static : bool
        Postures at rest only.
    """
    if any("fl" in drive.symbols or drive.features for drive in robot.drives):
        raise InputError(
            "friction that grows with the load, and features, are for robots whose joints move by "
            f"themselves; joints of robot {robot.name!r} are coupled or in loops"
        )
    rng = np.random.default_rng(0)
    count = 2 * len(columns) + SPARE
    ds = rng.standard_normal((robot.dof, count)) * _speeds(robot, length)
    s = postures(robot, rng, count, length)
    q, dq, *_ = carried(robot).motion(s, ds, np.zeros_like(ds))
    kinetic, potential, friction = (e[:, columns] * units for e in energies(robot, q, dq))
    potential = potential - potential.mean(axis=0)
    parts = [potential] if static else [kinetic, potential, friction]
    return np.vstack([_level(p) for p in parts])


def _level(rows: Array) -> Array:
    """Rows of one energy in units of its largest column."""
    largest = float(np.linalg.norm(rows, axis=0).max(initial=0.0))
    return rows / largest if largest > 0 else rows


def postures(robot: Robot, rng: np.random.Generator, count: int, length: float = 1.0) -> Array:
    """Random independent coordinates, (dof, count), at which all loops close and none is singular.

    Prismatic joints go up to `length` [m].

    Raises
    ------
    InputError
        Where loops close too seldom.
    """
    speed = _speeds(robot, length)
    if robot.closure is None:
        return np.asarray(np.pi * REACH * rng.uniform(-1, 1, (robot.dof, count)) * speed)
    home = robot.closure.assembled[robot.independent][:, None]
    found = np.zeros((robot.dof, 0))
    for reach in NEAR_LOOP:
        s = home + np.pi * reach * rng.uniform(-1, 1, (robot.dof, TRIES * count)) * speed
        q, closed = robot.closure.followed(s)
        closed[closed] &= robot.closure.regular(q[:, closed])
        found = np.hstack([found, s[:, closed]])[:, :count]
        if found.shape[1] == count:
            return found
    raise InputError(
        f"the loops of robot {robot.name!r} close at too few configurations around the one in "
        "which they are assembled: nothing can be said of its base parameters"
    )


def _speeds(robot: Robot, length: float) -> Array:
    """One per independent angle, `length` for the others, (dof, 1)."""
    turns = [body.motion[:3, k].any() for body in robot.bodies for k in range(body.dof)]
    return np.where(np.array(turns)[robot.independent], 1.0, length)[:, None]
