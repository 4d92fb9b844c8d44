"""Equality constraints of MJCF: joints that follow others, and bodies that close loops.

MuJoCo keeps them by soft forces; here they hold exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import DescriptionError
from feasid.robot.couplings import Coupling, Loop
from feasid.robot.description import Robot
from feasid.robot.rotations import compose

WORLD = "world"


@dataclass(frozen=True, eq=False)
class Bond:
    """One equality constraint, by the names of the file.

    Attributes
    ----------
    kind : {"joint", "connect", "weld"}
    name : str
    first, second : str
        Joints, or bodies ("world" for the base); no second joint holds the first one.
    factors : tuple of float
        Of a joint: q1 - ref1 = a0 + a1 (q2 - ref2).
    first_point, second_point : ndarray, shape (3,), or None
        In each body's frame; what is None follows from the home pose.
    turn : ndarray, shape (3, 3), or None
        Of a weld: the second body's axes in the first's.
    """

    kind: str
    name: str
    first: str
    second: str
    factors: tuple[float, float] = (0.0, 1.0)
    first_point: Array | None = None
    second_point: Array | None = None
    turn: Array | None = None


@dataclass(frozen=True, eq=False)
class Bonds:
    """All equality constraints of a model, and the joints that actuators drive."""

    bonds: tuple[Bond, ...] = ()
    motors: tuple[str, ...] = ()
    references: Mapping[str, float] = field(default_factory=dict)
    """Joint positions at the home pose."""


def bound(robot: Robot, bonds: Bonds) -> Robot:
    """The robot with these constraints; the joints of motors are independent where they can be."""
    if not bonds.bonds:
        return robot
    places = _places(robot)
    couplings = [_coupling(b, bonds.references) for b in bonds.bonds if b.kind == "joint"]
    robot = replace(robot, couplings=tuple(couplings))
    home = _home(robot, bonds.references)
    loops = [_loop(b, places, home) for b in bonds.bonds if b.kind != "joint"]
    if not loops:
        return robot
    start = {j: bonds.references.get(j, 0.0) for j in robot.joints if j in bonds.references}
    tried = replace(robot, loops=tuple(loops), active=bonds.motors, configuration=start)
    active = [joint for joint in bonds.motors if joint in tried.coordinates]
    return robot.with_loops(loops, active, start)


def _coupling(bond: Bond, references: Mapping[str, float]) -> Coupling:
    a0, a1 = bond.factors
    own = references.get(bond.first, 0.0)
    if not bond.second or a1 == 0.0:
        return Coupling(bond.first, {}, own + a0)
    return Coupling(bond.first, {bond.second: a1}, own + a0 - a1 * references.get(bond.second, 0.0))


Place = tuple[str | None, Array, Array]
"""A body of the file: in which body of the robot (None: the base), its pose there."""


def _places(robot: Robot) -> dict[str, Place]:
    out: dict[str, Place] = {WORLD: (None, np.eye(3), np.zeros(3))}
    for member in robot.fixed:
        out[member.name] = (None, member.rotation, member.position)
    for body in robot.bodies:
        out[body.name] = (body.name, np.eye(3), np.zeros(3))
        for member in body.members:
            out[member.name] = (body.name, member.rotation, member.position)
    return out


def _home(robot: Robot, references: Mapping[str, float]) -> dict[str | None, tuple[Array, Array]]:
    """Poses of the robot's bodies in the base frame at the home pose."""
    out: dict[str | None, tuple[Array, Array]] = {None: (np.eye(3), np.zeros(3))}
    out.update(robot.pose(references))
    return out


def _loop(
    bond: Bond, places: Mapping[str, Place], home: Mapping[str | None, tuple[Array, Array]]
) -> Loop:
    for name in (bond.first, bond.second):
        if name not in places:
            raise DescriptionError(f"equality {bond.name!r}: there is no body {name!r}")
    ends = [places[bond.first], places[bond.second]]
    world = [compose(*home[carrier], *pose) for carrier, *pose in ends]
    points = _points(bond, world)
    turn = world[0][0].T @ world[1][0] if bond.turn is None else bond.turn
    frames = [turn, np.eye(3)]
    carried = [
        compose(rotation, position, frame, point)
        for (_, rotation, position), frame, point in zip(ends, frames, points, strict=True)
    ]
    return Loop(
        bond.name,
        ends[0][0],
        ends[1][0],
        carried[0][1],
        carried[1][1],
        bond.kind,
        carried[0][0],
        carried[1][0],
    )


def _points(bond: Bond, world: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """The shared point in either body's frame; where one is not given, it is the same at home."""
    (turn1, at1), (turn2, at2) = world
    first, second = bond.first_point, bond.second_point
    if first is None and second is None:
        second = np.zeros(3)
    if first is None and second is not None:
        first = turn1.T @ (at2 + turn2 @ second - at1)
    if second is None and first is not None:
        second = turn2.T @ (at1 + turn1 @ first - at2)
    return np.asarray(first), np.asarray(second)
