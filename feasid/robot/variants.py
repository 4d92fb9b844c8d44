"""A robot changed in form: body frames on joint axes, or with a force-torque sensor.

A sensor is a joint of six degrees of freedom that does not move. In the base, a wrist or an ankle
it shows the wrench that what it carries needs: the torque of a joint that stays where it is. With
one put there, the regressor has six rows for it (moment about the sensor's origin, then force, in
its own axes), a log has zeros for its motion, and ``base_parameters(robot, held=sensor)`` gives
what it shows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.errors import InputError, UnsupportedJointError, did_you_mean
from feasid.robot.bodies import Body
from feasid.robot.description import Robot
from feasid.robot.inertia import change_frame

SCREW_TOLERANCE = 1e-12
"""Relative size below which a joint's other motion is rounding."""


def with_axis_frames(robot: Robot) -> Robot:
    """The robot with the frames of turning bodies moved onto their axes; q means the same.

    Axes of frames keep their directions; inertial parameters, rotors and the load model follow.
    A frame that is on its axis stays where it is.
    """
    shifts = {b.name: _to_axis(b) for b in robot.bodies}
    bodies = tuple(
        _with_frame_shift(b, shifts[b.name], shifts.get(b.parent or "")) for b in robot.bodies
    )
    load = robot.load_model
    if load is not None:
        moves = [change_frame(np.eye(3), -shifts[b.name]) for b in robot.bodies]
        load = np.array([m @ row for m, row in zip(moves, load, strict=True)])
    return replace(robot, bodies=bodies, load_model=load, source=None, fixed=())


def _to_axis(body: Body) -> Array:
    """Where the joint's axis is nearest to the body's origin, in the body's frame [m]."""
    if body.dof != 1 or not body.motion[:3].any():
        return np.zeros(3)
    w, v = body.motion[:3, 0], body.motion[3:, 0]
    if abs(float(w @ v)) > SCREW_TOLERANCE * max(1.0, float(np.linalg.norm(v))):
        raise UnsupportedJointError(
            f"joint {body.joint!r} is helical, which URDF does not have", joint=body.joint
        )
    return np.asarray(np.cross(w, v) / (w @ w))


def _with_frame_shift(body: Body, shift: Array, of_parent: Array | None) -> Body:
    parent = np.zeros(3) if of_parent is None else of_parent
    motion = body.motion.copy()
    if shift.any():
        motion[3:] += np.cross(motion[:3].T, shift).T
        motion[3:][np.abs(motion[3:]) < SCREW_TOLERANCE] = 0.0
    ten = body.inertial
    rotor = body.rotor
    return replace(
        body,
        position=body.position + body.rotation @ shift - parent,
        motion=motion,
        inertial=None if ten is None else change_frame(np.eye(3), -shift) @ ten,
        rotor=None if rotor is None else replace(rotor, position=rotor.position - parent),
        members=(),
    )


def with_force_sensor(
    robot: Robot,
    carries: str | None = None,
    *,
    rotation: npt.ArrayLike = ((1.0, 0, 0), (0, 1, 0), (0, 0, 1)),
    position: npt.ArrayLike = (0.0, 0.0, 0.0),
    name: str = "force_sensor",
) -> Robot:
    """The robot with a force-torque sensor.

    Parameters
    ----------
    robot : Robot
    carries : str, optional
        The body whose joint sits on the sensor, with all beyond it; default the whole robot, as
        on a force plate.
    rotation, position : array_like, shapes (3, 3) and (3,)
        Pose of the sensor in the frame of the body it is fixed to, or of the base [m].
    name : str
        Of the sensor's plate, a body with parameters of its own, and of its joint.

    Raises
    ------
    InputError
        No such body, or the name is taken.
    """
    names = [b.name for b in robot.bodies]
    if carries is not None and carries not in names:
        raise InputError(
            f"robot {robot.name!r} has no body {carries!r}{did_you_mean(carries, names)}"
        )
    if name in names or name in robot.joints:
        raise InputError(f"robot {robot.name!r} has a body or joint {name!r} already")
    chosen = [b for b in robot.bodies if b.name == carries or (carries is None and not b.parent)]
    turn, place = np.asarray(rotation, dtype=np.float64), np.asarray(position, dtype=np.float64)
    plate = Body(name, chosen[0].parent, turn, place, np.eye(6))

    def move_body(body: Body) -> Body:
        rotor = body.rotor
        if rotor is not None:
            spot = turn.T @ (rotor.position - place)
            rotor = replace(rotor, rotation=turn.T @ rotor.rotation, position=spot)
        return replace(
            body,
            parent=name,
            rotation=turn.T @ body.rotation,
            position=turn.T @ (body.position - place),
            rotor=rotor,
        )

    bodies: list[Body] = []
    for body in robot.bodies:
        if body is chosen[0]:
            bodies.append(plate)
        bodies.append(move_body(body) if any(body is b for b in chosen) else body)
    return replace(robot, bodies=tuple(bodies))
