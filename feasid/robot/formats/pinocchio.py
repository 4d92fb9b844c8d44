"""Robots from ``pinocchio.Model``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from feasid.core.errors import UnsupportedJointError
from feasid.robot import inertia
from feasid.robot.bodies import Body, Limits
from feasid.robot.description import Robot, Source
from feasid.robot.drives import Drive
from feasid.robot.formats.terms import JointTerms, term_notes

CONSTANT = ("R", "P", "FreeFlyer", "Spherical", "Planar", "Translation", "H")
"""Prefixes, after "JointModel", of names of joints with a constant motion subspace."""

MOVING = ("SphericalZYX", "Universal", "Ellipsoid")
"""Prefixes of names that begin in the same way but have a varying motion subspace."""

NEUTRAL = {"FreeFlyer": [0, 0, 0, 0, 0, 0, 1], "Spherical": [0, 0, 0, 1], "Planar": [0, 0, 1, 0]}
"""A joint's own part of the neutral configuration; of others that of an angle, or zeros."""

UNLIMITED = 1e30  #: A position limit beyond this counts as no limit.


def robot_from_pinocchio(model: Any, gravity: npt.ArrayLike | None = None) -> Robot:
    """Build the robot of a ``pinocchio.Model``: its joints, inertias, armature and friction.

    Bodies are named after their first link, joints keep their names. For a joint of several
    degrees of freedom dq is Pinocchio's velocity, with the angular part first where it floats.

    Raises UnsupportedJointError: a joint whose motion subspace depends on its position, or that
    follows others.
    """
    names: dict[int, str] = {}  # of joints' first links, or of the joints
    for frame in model.frames:
        if str(frame.type) == "BODY" and frame.parentJoint not in names and frame.parentJoint:
            names[int(frame.parentJoint)] = str(frame.name)
    names = {i: names.get(i, str(model.names[i])) for i in range(1, model.njoints)}
    doubled = {n for n in names.values() if [*names.values()].count(n) > 1}
    names = {i: f"{n}/{model.names[i]}" if n in doubled else n for i, n in names.items()}
    bodies: list[Body] = []
    drives: list[Drive] = []
    for i in range(1, model.njoints):
        joint = model.joints[i]
        place = model.jointPlacements[i]
        ten = np.asarray(model.inertias[i].toDynamicParameters())
        limits = Limits()
        if joint.nq == 1:
            ends = model.lowerPositionLimit, model.upperPositionLimit
            low, high = (float(end[joint.idx_q]) for end in ends)
            if -UNLIMITED < low < high < UNLIMITED:
                limits = Limits(low, high)
        # Motion subspace with the angular part first.
        name = model.names[i]
        kind = joint.shortname().removeprefix("JointModel")
        if not kind.startswith(CONSTANT) or kind.startswith(MOVING):
            raise UnsupportedJointError(
                f"joint {name!r} is a {joint.shortname()}, whose motion subspace is not constant",
                joint=name,
            )
        data = joint.createData()
        neutral = NEUTRAL.get(kind, [1, 0] if joint.nq > joint.nv else [0] * joint.nq)
        joint.calc(data, np.r_[np.zeros(joint.idx_q), neutral])
        subspace = np.asarray(data.S, dtype=np.float64).reshape(6, -1)
        turned = np.vstack([subspace[3:], subspace[:3]])
        # Only a free-flyer's velocities begin with the linear part.
        body = Body(
            names[i],
            names.get(model.parents[i]),
            np.array(place.rotation),
            np.array(place.translation),
            turned[:, [3, 4, 5, 0, 1, 2]] if kind == "FreeFlyer" else turned,
            model.names[i],
            inertial=ten[np.argsort(inertia.PINOCCHIO)],
            limits=limits,
        )
        bodies.append(body)
        if body.dof == 1:
            # As far as the version of Pinocchio has them; newer ones call friction otherwise.
            armature, damping, friction, older_friction = (
                0.0
                if (values := getattr(model, name, None)) is None
                else float(values[joint.idx_v])
                for name in ("armature", "damping", "upperDryFrictionLimit", "friction")
            )
            terms = JointTerms(armature, damping, friction or older_friction)
            drives += terms.drives(body.name, body.joint)
    stated_gravity = model.gravity.linear if gravity is None else gravity
    source = Source("<pinocchio model>", "pinocchio", b"", tuple(term_notes(drives)))
    return Robot(tuple(bodies), np.array(stated_gravity), model.name, tuple(drives), source=source)
