"""Robots with some joints held: their bodies become part of the parents'."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from feasid.arrays import Array
from feasid.errors import InputError
from feasid.robot import inertia
from feasid.robot.description import Robot
from feasid.robot.lump import compose, lumped, placed
from feasid.robot.parts import Body, Drive, Member, constant


def locked(robot: Robot, joints: Mapping[str, npt.ArrayLike]) -> Robot:
    """The robot with these joints held at these positions.

    Parameters
    ----------
    robot : Robot
    joints : mapping of str to float
        Position per joint name [rad or m]; a vector of n_d numbers for a joint of several
        degrees of freedom.

    Returns
    -------
    Robot
        Without these joints. The inertial parameters of a held body (and of its rotor) are added
        to its parent's; a body held to the base is listed in `Robot.fixed`. Drives lose the
        joint from their coupling, and disappear when it was their only one.

    Raises
    ------
    InputError
        Names the joint that does not exist or whose position is not a finite number.
    """
    positions = {}
    for name, value in joints.items():
        dof = robot.bodies[robot.joint_index(name)].dof
        positions[name] = constant(np.atleast_1d(value), (dof,), f"position of joint {name!r}")
    for name, position in positions.items():
        if robot.bodies == (robot.bodies[robot.joint_index(name)],):
            raise InputError(f"locking joint {name!r} leaves no moving body", joint=name)
        robot = _lock_one(robot, name, position)
    return robot


def _lock_one(robot: Robot, joint: str, q: Array) -> Robot:
    held = robot.bodies[robot.joint_index(joint)]
    turn, shift = exponential(held.motion @ q)
    rotation, position = compose(held.rotation, held.position, turn, shift)
    joined = [placed(m, rotation, position) for m in _links(held)]
    bodies = []
    for body in robot.bodies:
        if body is held:
            continue
        if body.name == held.parent:
            body = _joined(body, held, joined)
        elif body.parent == held.name:
            body = _moved(body, held.parent, rotation, position)
        bodies.append(body)
    return replace(
        robot,
        bodies=tuple(bodies),
        drives=tuple(d for old in robot.drives if (d := _without(old, joint)) is not None),
        fixed=robot.fixed if held.parent is not None else (*robot.fixed, *joined),
    )


def _links(body: Body) -> tuple[Member, ...]:
    """The links of a body; its own alone when it does not list any."""
    return body.members or (Member(body.name, parameters=body.parameters),)


def _joined(parent: Body, held: Body, joined: list[Member]) -> Body:
    """The parent with the held body's links, inertia and rotor added to its own."""
    whole = Member(
        held.name,
        rotation=joined[0].rotation,
        position=joined[0].position,
        parameters=held.parameters,
    )
    parts = [Member(parent.name, parameters=parent.parameters), whole]
    if held.rotor is not None and held.rotor.values is not None:
        parts.append(
            Member(
                f"{held.name} rotor",
                rotation=held.rotor.rotation,
                position=held.rotor.position,
                parameters=_rotor_parameters(held.rotor.values),
            )
        )
    return replace(parent, parameters=lumped(parts), members=(*_links(parent), *joined))


def _moved(body: Body, parent: str | None, rotation: Array, position: Array) -> Body:
    """A child of the held body, hung on the held body's parent."""
    home = compose(rotation, position, body.rotation, body.position)
    rotor = body.rotor
    if rotor is not None:
        turned, moved = compose(rotation, position, rotor.rotation, rotor.position)
        rotor = replace(rotor, rotation=turned, position=moved)
    return replace(body, parent=parent, rotation=home[0], position=home[1], rotor=rotor)


def _without(drive: Drive, joint: str) -> Drive | None:
    coupling = {name: factor for name, factor in drive.coupling.items() if name != joint}
    return replace(drive, coupling=coupling) if coupling else None


def _rotor_parameters(values: Array) -> Array:
    """Ten parameters of a rotor; a symmetric one gives Lxx = Lyy, Lzz, lz and m."""
    if values.shape == (10,):
        return values
    full = np.zeros(10)
    full[[0, 3, 5, 8, 9]] = values[[0, 0, 1, 2, 3]]
    return full


def exponential(twist: Array) -> tuple[Array, Array]:
    """Exponential of a twist (angular, linear): rotation and position of the moved frame."""
    angular, linear = twist[:3], twist[3:]
    angle = float(np.linalg.norm(angular))
    if angle == 0.0:
        return np.eye(3), linear.copy()
    cross = inertia.skew(angular / angle)
    eye = np.eye(3)
    rotation = eye + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
    share = eye + (1 - np.cos(angle)) / angle * cross + (1 - np.sin(angle) / angle) * cross @ cross
    return rotation, share @ linear
