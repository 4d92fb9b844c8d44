"""Write MJCF: a file's own text with other numbers, or a new file.

In an own text only ``<inertial>`` elements, the terms of joints and gravity change; every other
byte stays. A body that MuJoCo would derive from its geoms gets an ``<inertial>``, which takes
precedence. In a new file frames, joint positions and axes are the robot's own, so that q means the
same. Nothing is drawn and nothing touches: it has no geoms.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from xml.sax.saxutils import quoteattr

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import InputError
from feasid.formats.description import Changes, Description, NewInertial
from feasid.formats.mjcf.model import Mjcf, MjcfBody, MjcfJoint
from feasid.formats.rewrite import decimals, generated_inertial, joint_shape, single_leader
from feasid.formats.terms import NO_TERMS, JointTerms
from feasid.formats.xml import Element, Patch, shortest_decimal
from feasid.robot import inertia
from feasid.robot.bodies import Body
from feasid.robot.description import GRAVITY, Robot
from feasid.robot.rotations import to_quaternion

TERMS = {
    "armature": "inertia",
    "damping": "viscous",
    "frictionloss": "coulomb",
    "stiffness": "stiffness",
    "springref": "rest",
}
"""Field of `JointTerms` per attribute of ``<joint>``; MJCF has no place for offset friction."""

TYPES = {"revolute": "hinge", "prismatic": "slide", "spherical": "ball"}
"""Type of ``<joint>`` per kind of joint."""


def patch_mjcf(description: Description, changes: Changes) -> bytes:
    """The main file with these numbers, every other byte as it was.

    Raises
    ------
    InputError
        A body or joint stands in an included file, or the compiler's settings make the numbers
        not count as they are.
    """
    mjcf: Mjcf = description.document
    patch = Patch(mjcf.files.main)
    if any(new.com is not None for new in changes.inertials.values()):
        _check_settings(mjcf)
    bodies = {body.name: body for body in mjcf.bodies}
    for name, new in changes.inertials.items():
        _set_inertial(patch, mjcf, bodies[name], new)
    joints = {j.name: j for b in mjcf.bodies for j in b.joints}
    for name, wanted in changes.terms.items():
        if name in joints:
            _set_terms(patch, mjcf, joints[name], wanted)
    if changes.gravity is not None:
        _set_gravity(patch, mjcf, changes.gravity)
    return patch.apply()


def _set_gravity(patch: Patch, mjcf: Mjcf, gravity: Array) -> None:
    """The robot's gravity, where the file has another."""
    if tuple(gravity) == tuple(GRAVITY if mjcf.gravity is None else mjcf.gravity):
        return
    root = mjcf.files.main.root
    for option in root.all("option"):
        if "gravity" in option.attributes:
            patch.numbers(option, "gravity", gravity.tolist())
            return
    patch.insert_first(root, [f'<option gravity="{decimals(gravity)}"/>'])


def _check_settings(mjcf: Mjcf) -> None:
    """Refuse compiler settings under which a written ``<inertial>`` would not count as it is."""
    settings = mjcf.compiler
    trouble = next(iter(mjcf.unknown), "")
    if settings.from_geoms == "true":
        trouble = 'compiler inertiafromgeom="true" ignores <inertial>: make it "auto"'
    if settings.total_mass:
        trouble = "compiler settotalmass rescales every mass: delete it"
    if trouble:
        path = mjcf.files.main.path
        raise InputError(f"{path}: parameters cannot be written: {trouble}", path=path)


def _set_inertial(patch: Patch, mjcf: Mjcf, body: MjcfBody, new: NewInertial) -> None:
    """Write one body's inertia; without a new centre of mass only its mass and moments."""
    given = body.inertial
    element = body.element if given is None else given.element
    _check_main(mjcf, element, f"body {body.name!r}")
    xx, xy, xz, yy, yz, zz = new.moments
    if given is not None and new.com is None:
        patch.numbers(element, "mass", [new.mass])
        if "fullinertia" in element.attributes:
            patch.numbers(element, "fullinertia", [xx, yy, zz, xy, xz, yz])
        else:
            patch.numbers(element, "diaginertia", [xx, yy, zz])
        return
    if given is None:
        patch.insert_first(element, [f"<inertial {_inertial_attributes(new, np.eye(3))}/>"])
        return
    if element.parent is not None and element.parent.tag == "frame":
        raise InputError(
            f"the <inertial> of body {body.name!r} on line {element.line} stands in a "
            f"<frame>: move it out of the frame to have it written",
            body=body.name,
        )
    axes = np.eye(3) if new.reset_axes else given.pose.rotation
    end = patch.text.spans(element)[1]
    close = "/>" if patch.text.closes_itself(element) else ">"
    tag = f"<inertial {_inertial_attributes(new, axes)}{close}"
    patch.changes.append((element.start, end, tag.encode()))


def _inertial_attributes(new: NewInertial, axes: Array) -> str:
    """Attributes of an ``<inertial>`` in the body's axes; `axes` are those of the moments."""
    tensor = axes @ inertia.rotational_inertia([*new.moments, 0, 0, 0, 0]) @ axes.T
    xx, xy, xz, yy, yz, zz = (float(tensor[r, c]) for r, c in inertia.UPPER)
    moments = f'fullinertia="{decimals((xx, yy, zz, xy, xz, yz))}"'
    if not any((xy, xz, yz)):
        moments = f'diaginertia="{decimals((xx, yy, zz))}"'
    position = decimals(new.com or (0.0, 0.0, 0.0))
    return f'pos="{position}" mass="{shortest_decimal(new.mass)}" {moments}'


def _set_terms(patch: Patch, mjcf: Mjcf, joint: MjcfJoint, wanted: JointTerms) -> None:
    """Joint terms that the file does not already say, by itself or by a default class."""
    fields = {k: v for k, v in TERMS.items() if k != "springref" or wanted.stiffness}
    new = {k: getattr(wanted, v) for k, v in fields.items()
           if getattr(wanted, v) != getattr(joint.terms, v)}  # fmt: skip
    if new:
        _check_main(mjcf, joint.element, f"joint {joint.name!r}")
    for attribute, value in new.items():
        if attribute == "springref" and mjcf.compiler.degrees and joint.type == "hinge":
            value = math.degrees(value)
        patch.numbers(joint.element, attribute, [value])


def _check_main(mjcf: Mjcf, element: Element, what: str) -> None:
    text = mjcf.files.text(element)
    if text is not mjcf.files.main:
        raise InputError(
            f"{what} stands in the included file {text.path}:{element.line}; only the main file is "
            f"written; correct that one",
            path=text.path,
            line=element.line,
        )


# -- new files ------------------------------------------------------------------------------------


def generate_mjcf(robot: Robot, terms: Mapping[str, JointTerms]) -> bytes:
    """The robot as MJCF.

    Raises
    ------
    UnsupportedJointError
        A joint that MJCF does not have: helical, planar, or floating on a moving body.
    InputError
        A body without parameters, or with ones that cannot exist; names it. A joint that follows
        several.
    """
    lines = [
        f"<mujoco model={quoteattr(robot.name)}>",
        '  <compiler angle="radian" inertiafromgeom="false"/>',
        f'  <option gravity="{decimals(robot.gravity)}"/>',
        "  <worldbody>",
    ]
    roots = [i for i, p in enumerate(robot.parents) if p < 0]
    for i in roots:
        lines += _body(robot, i, terms, "    ")
    lines += ["  </worldbody>", *_equalities(robot), "</mujoco>", ""]
    return "\n".join(lines).encode()


def _body(robot: Robot, i: int, terms: Mapping[str, JointTerms], indent: str) -> Iterator[str]:
    """A body and those on it; massless bodies between joints become joints of the next one."""
    body = robot.bodies[i]
    home, joints = (body.rotation, body.position), [body]
    children = [k for k, p in enumerate(robot.parents) if p == i]
    while _is_between(robot, i, children):
        i = children[0]
        body = robot.bodies[i]
        joints.append(body)
        children = [k for k, p in enumerate(robot.parents) if p == i]
    pose = f'pos="{decimals(home[1])}"'
    if (home[0] != np.eye(3)).any():
        pose += f' quat="{decimals(to_quaternion(home[0]))}"'
    yield f"{indent}<body name={quoteattr(body.name)} {pose}>"
    for joint in joints:
        yield f"{indent}  {_joint(joint, terms.get(joint.joint, NO_TERMS))}"
    yield f"{indent}  {_inertial(body)}"
    for child in children:
        yield from _body(robot, child, terms, indent + "  ")
    yield f"{indent}</body>"


def _equalities(robot: Robot) -> Iterator[str]:
    """Joints that follow others."""
    if robot.couplings:
        yield "  <equality>"
    for coupling in robot.couplings:
        leader, factor = single_leader(coupling, "MJCF")
        leads = f" joint2={quoteattr(leader)}" if leader else ""
        polynomial = decimals([coupling.offset, factor, 0, 0, 0])
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


def _joint(body: Body, terms: JointTerms) -> str:
    kind, axis, position = joint_shape(body, "MJCF")
    if kind == "floating":
        return f"<freejoint name={quoteattr(body.joint)}/>"
    text = f'<joint name={quoteattr(body.joint)} type="{TYPES[kind]}"'
    text += "" if axis is None else f' axis="{decimals(axis)}"'
    text += f' pos="{decimals(position)}"' if position.any() else ""
    low, high = body.limits.lower, body.limits.upper
    if low is not None and high is not None and low < high:
        text += f' limited="true" range="{decimals([low, high])}"'
    values = ((k, getattr(terms, field)) for k, field in TERMS.items())
    return text + "".join(f' {k}="{shortest_decimal(v)}"' for k, v in values if v) + "/>"


def _inertial(body: Body) -> str:
    new = generated_inertial(body)
    if new is None:
        raise InputError(
            f"body {body.name!r} has no mass, so MuJoCo would refuse the file", body=body.name
        )
    return f"<inertial {_inertial_attributes(new, np.eye(3))}/>"
