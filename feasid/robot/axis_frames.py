"""The same robot with other body frames: every one on its joint's axis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import UnsupportedJointError
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
