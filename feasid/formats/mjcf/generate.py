"""MJCF for robots that were not read from it: bodies, joints, inertials and joint terms.

Frames, joint positions and axes are the robot's own, so that q means the same. Nothing is drawn and
nothing touches: the file has no geoms.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import InputError, UnsupportedJointError
from feasid.formats.mjcf.write import mjcf_terms
from feasid.formats.rewrite import inertial_of
from feasid.formats.xml import written
from feasid.robot.bodies import Body
from feasid.robot.description import Robot
from feasid.robot.rotations import to_quaternion

STRAIGHT = 1e-12
"""Relative size below which a joint's other motion is rounding."""


def generated_mjcf(robot: Robot) -> bytes:
    """The robot as MJCF.

    Raises
    ------
    UnsupportedJointError
        A joint that MJCF does not have: helical, planar, or floating on a moving body.
    InputError
        A body without parameters, or with ones that cannot exist; names it. A joint that follows
        several; a closed loop.
    """
    if robot.loops:
        raise InputError(
            f"robot {robot.name!r} has closed loops, which are not written to a new MJCF file; "
            f"write the format it came from"
        )
    terms = mjcf_terms(robot)
    lines = [
        f"<mujoco model={quoteattr(robot.name)}>",
        '  <compiler angle="radian" inertiafromgeom="false"/>',
        f'  <option gravity="{_numbers(robot.gravity)}"/>',
        "  <worldbody>",
    ]
    roots = [i for i, p in enumerate(robot.parents) if p < 0]
    for i in roots:
        lines += _body(robot, i, terms, "    ")
    lines += ["  </worldbody>", *_equalities(robot), "</mujoco>", ""]
    return "\n".join(lines).encode()


def _body(robot: Robot, i: int, terms: dict[str, dict[str, float]], indent: str) -> Iterator[str]:
    """A body and those on it; massless bodies between joints become joints of the next one."""
    body = robot.bodies[i]
    home, joints = (body.rotation, body.position), [body]
    children = [k for k, p in enumerate(robot.parents) if p == i]
    while _is_between(robot, i, children):
        i = children[0]
        body = robot.bodies[i]
        joints.append(body)
        children = [k for k, p in enumerate(robot.parents) if p == i]
    pose = f'pos="{_numbers(home[1])}"'
    if (home[0] != np.eye(3)).any():
        pose += f' quat="{_numbers(to_quaternion(home[0]))}"'
    yield f"{indent}<body name={quoteattr(body.name)} {pose}>"
    for joint in joints:
        yield f"{indent}  {_joint(joint, terms.get(joint.joint, {}))}"
    yield f"{indent}  {_inertial(body)}"
    for child in children:
        yield from _body(robot, child, terms, indent + "  ")
    yield f"{indent}</body>"


def _equalities(robot: Robot) -> Iterator[str]:
    """Joints that follow others."""
    if robot.couplings:
        yield "  <equality>"
    for coupling in robot.couplings:
        if len(coupling.factors) > 1:
            raise InputError(
                f"joint {coupling.joint!r} follows {len(coupling.factors)} joints; in MJCF a joint "
                f"follows one other",
                joint=coupling.joint,
            )
        factor = sum(coupling.factors.values())
        leads = "".join(f" joint2={quoteattr(j)}" for j in coupling.factors)
        polynomial = _numbers([coupling.offset, factor, 0, 0, 0])
        name = quoteattr(coupling.joint)
        yield f'    <joint joint1={name}{leads} polycoef="{polynomial}"/>'
    if robot.couplings:
        yield "  </equality>"


def _is_between(robot: Robot, i: int, children: list[int]) -> bool:
    """Whether a body is nothing but a joint before another one at the same place."""
    body = robot.bodies[i]
    if body.inertial is None or body.inertial.any() or len(children) != 1:
        return False
    child = robot.bodies[children[0]]
    return bool((child.rotation == np.eye(3)).all()) and not child.position.any()


def _joint(body: Body, terms: dict[str, float]) -> str:
    kind, axis, position = _kind(body)
    if kind == "free":
        return f"<freejoint name={quoteattr(body.joint)}/>"
    text = f'<joint name={quoteattr(body.joint)} type="{kind}"'
    text += "" if axis is None else f' axis="{_numbers(axis)}"'
    text += f' pos="{_numbers(position)}"' if position.any() else ""
    low, high = body.limits.lower, body.limits.upper
    if low is not None and high is not None and low < high:
        text += f' limited="true" range="{_numbers([low, high])}"'
    return text + "".join(f' {k}="{written(v)}"' for k, v in terms.items() if v) + "/>"


def _kind(body: Body) -> tuple[str, Array | None, Array]:
    """Type, axis and position of a body's joint."""
    angular, linear = body.motion[:3], body.motion[3:]
    if body.dof == 6 and body.parent is None and (body.motion == np.eye(6)).all():
        return "free", None, np.zeros(3)
    if body.dof == 3 and (angular == np.eye(3)).all() and np.allclose(linear, -linear.T, atol=0):
        return "ball", None, np.array([linear[2, 1], linear[0, 2], linear[1, 0]])
    if body.dof == 1:
        w, v = angular[:, 0], linear[:, 0]
        if not w.any() and abs(np.linalg.norm(v) - 1) < STRAIGHT:
            return "slide", v, np.zeros(3)
        pitch = abs(float(w @ v)) <= STRAIGHT * max(1.0, float(np.linalg.norm(v)))
        if abs(np.linalg.norm(w) - 1) < STRAIGHT and pitch:
            return "hinge", w, np.cross(w, v)
    raise UnsupportedJointError(
        f"joint {body.joint!r} has no counterpart in MJCF: only hinges, slides, balls and bodies "
        f"that float in the world, per radian and metre",
        joint=body.joint,
    )


def _inertial(body: Body) -> str:
    if body.inertial is None:
        raise InputError(
            f"body {body.name!r} has no inertial parameters: fit them, or describe them",
            body=body.name,
        )
    new = inertial_of(body.inertial)
    if new is None or new.com is None:
        raise InputError(
            f"the parameters of body {body.name!r} cannot exist, so MuJoCo would refuse the file; "
            f"correct them first",
            body=body.name,
        )
    xx, xy, xz, yy, yz, zz = new.moments
    six = _numbers([xx, yy, zz, xy, xz, yz])
    return f'<inertial pos="{_numbers(new.com)}" mass="{written(new.mass)}" fullinertia="{six}"/>'


def _numbers(values: object) -> str:
    return " ".join(written(float(v)) for v in np.asarray(values, dtype=np.float64))
