"""URDF for robots that were not read from it: links, joints, inertials, friction and limits.

Link frames are on their joints' axes, as URDF wants them: where a body's frame is elsewhere (as in
the standard Denavit-Hartenberg convention), the link's is moved there, see
`feasid.robot.axis_frames`. Joints and q stay. Nothing is drawn and nothing touches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from xml.sax.saxutils import quoteattr

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import InputError, UnsupportedJointError
from feasid.formats.rewrite import AGREEMENT, inertial_of, not_verified, wanted_terms
from feasid.formats.urdf.read import MOMENTS, parse_urdf
from feasid.formats.urdf.tree import robot_from_urdf
from feasid.formats.urdf.write import HELD
from feasid.formats.xml import written
from feasid.robot.axis_frames import STRAIGHT
from feasid.robot.bodies import Body
from feasid.robot.couplings import Coupling
from feasid.robot.description import Robot

UNLIMITED = 1e9
"""Stands in a ``<limit>`` for what the robot does not say: URDF's readers want every number."""


def generated_urdf(robot: Robot) -> bytes:
    """The robot as URDF; its frames are on its axes, see `feasid.robot.axis_frames.on_axes`.

    Raises
    ------
    UnsupportedJointError
        A joint that URDF does not have: helical, spherical, or floating on a moving body.
    InputError
        A body without parameters, or with ones that cannot exist; a joint that follows several; a
        closed loop.
    OutputError
        What would be written does not read back as the robot.
    """
    if robot.loops:
        raise InputError(
            f"robot {robot.name!r} has closed loops, which URDF does not have: write MJCF from "
            f"the file that it came from"
        )
    root = "world"
    while root in {b.name for b in robot.bodies}:
        root += "_"
    terms = wanted_terms(robot, HELD)
    follow = {c.joint: c for c in robot.couplings}
    lines = [f"<robot name={quoteattr(robot.name)}>", f"  <link name={quoteattr(root)}/>"]
    for body in robot.bodies:
        lines += _link(body)
    for body in robot.bodies:
        lines += _joint(body, root, terms.get(body.joint, {}), follow.get(body.joint))
    data = "\n".join([*lines, "</robot>", ""]).encode()
    _verify(robot, data)
    return data


def _link(body: Body) -> Iterator[str]:
    if body.inertial is None:
        raise InputError(
            f"body {body.name!r} has no inertial parameters: fit them, or describe them",
            body=body.name,
        )
    if not body.inertial.any():
        yield f"  <link name={quoteattr(body.name)}/>"
        return
    new = inertial_of(body.inertial)
    if new is None or new.com is None:
        raise InputError(
            f"the parameters of body {body.name!r} cannot exist, so other programs would refuse "
            f"the file; correct them first",
            body=body.name,
        )
    moments = (f'{k}="{written(v)}"' for k, v in zip(MOMENTS, new.moments, strict=True))
    yield f"  <link name={quoteattr(body.name)}>"
    yield "    <inertial>"
    yield f'      <origin xyz="{_numbers(new.com)}" rpy="0 0 0"/>'
    yield f'      <mass value="{written(new.mass)}"/>'
    yield f"      <inertia {' '.join(moments)}/>"
    yield "    </inertial>"
    yield "  </link>"


def _joint(
    body: Body, root: str, terms: Mapping[str, float], follows: Coupling | None
) -> Iterator[str]:
    kind, axis = _kind(body)
    yield f'  <joint name={quoteattr(body.joint)} type="{kind}">'
    yield f"    <parent link={quoteattr(body.parent or root)}/>"
    yield f"    <child link={quoteattr(body.name)}/>"
    yield f'    <origin xyz="{_numbers(body.position)}" rpy="{_numbers(_rpy(body.rotation))}"/>'
    if axis is not None:
        yield f'    <axis xyz="{_numbers(axis)}"/>'
        yield from _limit(body, kind)
    if any(terms.values()):
        yield "    <dynamics " + " ".join(f'{k}="{written(v)}"' for k, v in terms.items()) + "/>"
    if follows is not None:
        yield f"    {_mimic(follows)}"
    yield "  </joint>"


def _kind(body: Body) -> tuple[str, Array | None]:
    """Type and axis of a body's joint."""
    w, v = body.motion[:3, 0], body.motion[3:, 0]
    if body.dof == 6 and body.parent is None and (body.motion == np.eye(6)).all():
        return "floating", None
    if body.dof == 1 and not w.any() and abs(np.linalg.norm(v) - 1) < STRAIGHT:
        return "prismatic", v
    if body.dof == 1 and not v.any() and abs(np.linalg.norm(w) - 1) < STRAIGHT:
        bounded = body.limits.lower is not None and body.limits.upper is not None
        return ("revolute" if bounded else "continuous"), w
    raise UnsupportedJointError(
        f"joint {body.joint!r} has no counterpart in URDF: only revolute and prismatic joints, per "
        f"radian and metre, and bodies that float in the world",
        joint=body.joint,
    )


def _limit(body: Body, kind: str) -> Iterator[str]:
    limits = body.limits
    given = {"effort": limits.effort, "velocity": limits.velocity}
    if kind == "continuous":
        if any(v is not None for v in given.values()):
            yield _limits_written(given)
        return
    lower = -UNLIMITED if limits.lower is None else limits.lower
    upper = UNLIMITED if limits.upper is None else limits.upper
    yield _limits_written({"lower": lower, "upper": upper, **given})


def _limits_written(given: Mapping[str, float | None]) -> str:
    numbers = {k: UNLIMITED if v is None else v for k, v in given.items()}
    return "    <limit " + " ".join(f'{k}="{written(v)}"' for k, v in numbers.items()) + "/>"


def _mimic(coupling: Coupling) -> str:
    if len(coupling.factors) != 1:
        count = len(coupling.factors) or "no"
        raise InputError(
            f"joint {coupling.joint!r} follows {count} joints; in URDF a joint mimics one other",
            joint=coupling.joint,
        )
    ((leader, factor),) = coupling.factors.items()
    numbers = f'multiplier="{written(factor)}" offset="{written(coupling.offset)}"'
    return f"<mimic joint={quoteattr(leader)} {numbers}/>"


def _rpy(rotation: Array) -> Array:
    """Roll, pitch and yaw of a rotation: R = Rz(yaw) Ry(pitch) Rx(roll)."""
    r = rotation
    pitch = math.atan2(-r[2, 0], math.hypot(r[0, 0], r[1, 0]))
    if math.hypot(r[0, 0], r[1, 0]) < STRAIGHT:  # the first and last axis are one: yaw stays zero
        return np.array([math.atan2(-r[1, 2], r[1, 1]), pitch, 0.0])
    return np.array([math.atan2(r[2, 1], r[2, 2]), pitch, math.atan2(r[1, 0], r[0, 0])])


def _numbers(values: object) -> str:
    return " ".join(written(float(v) + 0.0) for v in np.asarray(values, dtype=np.float64))


def _verify(robot: Robot, data: bytes) -> None:
    """Read the new text back: poses, motions and parameters as they should be."""
    found = {b.name: b for b in robot_from_urdf(parse_urdf(data)).bodies}
    for body in robot.bodies:
        seen = found.get(body.name)
        if seen is None:
            raise not_verified(f"body {body.name!r} is not read back")
        for name in ("rotation", "position", "motion", "inertial"):
            wanted, got = getattr(body, name), getattr(seen, name)
            got = np.zeros(10) if got is None else got
            if np.abs(wanted - got).max() > AGREEMENT * max(1.0, np.abs(wanted).max()):
                raise not_verified(f"the {name} of body {body.name!r} reads back as {got.tolist()}")
