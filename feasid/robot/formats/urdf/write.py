"""URDF out: a file's own text with other numbers, or a new file.

In a file's own text only numbers of ``<inertial>`` and ``<dynamics>`` change, and extension
elements are added on request; every other byte stays. In a new file link frames are on their
joints' axes, as URDF wants them: where a body's frame is elsewhere (as in the standard
Denavit-Hartenberg convention), the link's is moved there, see `feasid.robot.variants`. Joints and q
stay. It has no shapes.

Drake reads drive inertia from ``<drake:rotor_inertia>`` of a transmission's actuator ("Parsing
models for multibody dynamics", drake.mit.edu). MuJoCo's ``<mujoco>`` holds settings of its compiler
only: they keep it from changing the bodies, and they cannot hold drive inertia (measured with
MuJoCo 4.0: attributes of ``<dynamics>`` and ``<default>`` are ignored).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from feasid.core.errors import UnsupportedJointError
from feasid.robot.bodies import Body
from feasid.robot.couplings import Coupling
from feasid.robot.description import Robot
from feasid.robot.formats.description import (
    DRAKE,
    MOMENTS,
    Changes,
    Description,
    Extras,
    NamedElements,
    NewInertial,
)
from feasid.robot.formats.rewrite import (
    inertial_in_body_axes,
    joint_kind_axis_position,
    mimicked_joint,
    to_rpy,
)
from feasid.robot.formats.terms import NO_TERMS, JointTerms
from feasid.robot.formats.xml import Element, Patch, markup

DYNAMICS = {"damping": "viscous", "friction": "coulomb"}
"""Field of `JointTerms` per attribute of ``<dynamics>``; URDF has no place for the others."""

UNLIMITED = 1e9
"""Value in a ``<limit>`` that the robot does not give: URDF's readers want every number."""

NO_ROTATION = "0 0 0"


def patch_urdf(description: Description, changes: Changes) -> bytes:
    """The file with these inertials and joint terms, every other byte as it was."""
    urdf: NamedElements = description.document
    patch = Patch(urdf.text)
    for name, new in changes.inertials.items():
        _set_inertial(patch, urdf.links[name], new)
    for joint, terms in changes.terms.items():
        if joint not in urdf.joints:
            continue
        element = urdf.joints[joint].find("dynamics")
        if element is None and terms.values:
            patch.insert_last(urdf.joints[joint], _dynamics_lines(terms))
        elif element is not None:
            for attribute, field in DYNAMICS.items():
                value = getattr(terms, field)
                if value or attribute in element.attributes:
                    patch.numbers(element, attribute, [value])
    _add_extensions(patch, urdf.text.root, changes.extras)
    return patch.apply()


def _set_inertial(patch: Patch, link: Element, new: NewInertial) -> None:
    """Write one link's numbers; those that do not change keep their text."""
    old = link.find("inertial")
    if old is None:
        patch.insert_first(link, _inertial_lines(new))
        return
    mass, inertia, origin = (old.find(tag) for tag in ("mass", "inertia", "origin"))
    if mass is None or inertia is None:
        raise ValueError(f"link {link.attributes['name']!r} was read without mass or inertia")
    patch.numbers(mass, "value", [new.mass])
    for name, value in zip(MOMENTS, new.moments, strict=True):
        patch.numbers(inertia, name, [value])
    if new.com is None:
        return
    if origin is None:
        if any(new.com):
            patch.insert_before(mass, markup("origin", xyz=new.com, rpy=NO_ROTATION))
        return
    if "xyz" in origin.attributes or any(new.com):
        patch.numbers(origin, "xyz", new.com)
    if new.reset_axes:
        patch.numbers(origin, "rpy", [0.0, 0.0, 0.0])


def _inertial_lines(new: NewInertial) -> list[str]:
    return markup(
        "inertial",
        markup("origin", xyz=new.com or np.zeros(3), rpy=NO_ROTATION),
        markup("mass", value=new.mass),
        markup("inertia", **dict(zip(MOMENTS, new.moments, strict=True))),
    )


def _dynamics_lines(terms: JointTerms) -> list[str]:
    return markup("dynamics", **{k: getattr(terms, field) for k, field in DYNAMICS.items()})


# -- extension elements ---------------------------------------------------------------------------


def _add_extensions(patch: Patch, root: Element, extras: Extras) -> None:
    """Extension elements at the end; numbers of Drake's that are there are replaced."""
    if not extras.extensions:
        return
    remaining = dict(extras.armatures)
    if "drake" in extras.extensions:
        for transmission in root.all("transmission"):
            joint, actuator = (transmission.find(tag) for tag in ("joint", "actuator"))
            name = "" if joint is None else joint.attributes.get("name", "")
            if actuator is not None and name in remaining:
                gear, rotor = map(actuator.find, ("drake:gear_ratio", "drake:rotor_inertia"))
                ratio = 1.0 if gear is None else float(gear.attributes.get("value", "1"))
                inertia = remaining.pop(name) / ratio**2
                if rotor is not None:
                    patch.numbers(rotor, "value", [inertia])
                    continue
                lines = markup("drake:gear_ratio", value=1.0) if gear is None else []
                patch.insert_first(actuator, lines + markup("drake:rotor_inertia", value=inertia))
        patch.add_missing_attributes(root, DRAKE)
    has = root.find("mujoco") is not None
    wanted = [x for x in extras.extensions if not (x == "mujoco" and has)]
    lines = extension_lines(Extras(armatures=remaining, extensions=tuple(wanted)))
    if lines:
        patch.insert_last(root, lines)


def extension_lines(extras: Extras) -> list[str]:
    """Extension elements inside ``<robot>``."""
    lines: list[str] = []
    if "mujoco" in extras.extensions:
        settings = dict.fromkeys(("inertiafromgeom", "balanceinertia"), "false")
        lines += markup("mujoco", markup("compiler", **settings))
    if "drake" in extras.extensions:
        for joint, value in extras.armatures.items():
            lines += markup(
                "transmission",
                markup("type", "transmission_interface/SimpleTransmission"),
                markup("joint", name=joint),
                markup(
                    "actuator",
                    markup("drake:gear_ratio", value=1.0),
                    markup("drake:rotor_inertia", value=value),
                    name=f"drive of {joint}",
                ),
                name=f"transmission of {joint}",
            )
    return lines


# -- new files ------------------------------------------------------------------------------------


def generate_urdf(robot: Robot, terms: Mapping[str, JointTerms], extras: Extras) -> bytes:
    """The robot as URDF; frames are on axes, see `feasid.robot.variants.with_axis_frames`.

    Raises UnsupportedJointError: a joint that URDF does not have: helical, spherical, or floating
    on a moving body. Raises InputError: a body without parameters, or with infeasible ones;
    a joint that follows several.
    """
    root = "world"
    while root in {b.name for b in robot.bodies}:
        root += "_"
    follow = {c.joint: c for c in robot.couplings}
    links = [markup("link", name=root)]
    for body in robot.bodies:
        new = inertial_in_body_axes(body)
        links.append(markup("link", [] if new is None else _inertial_lines(new), name=body.name))
    joints = [
        _joint_lines(body, root, terms.get(body.joint, NO_TERMS), follow.get(body.joint))
        for body in robot.bodies
    ]
    space = DRAKE if "drake" in extras.extensions else {}
    lines = markup("robot", *links, *joints, extension_lines(extras), name=robot.name, **space)
    return "\n".join([*lines, ""]).encode()


def _joint_lines(body: Body, root: str, terms: JointTerms, follows: Coupling | None) -> list[str]:
    kind, axis, position = joint_kind_axis_position(body, "URDF")
    if kind == "spherical" or position.any():
        raise UnsupportedJointError(
            f"joint {body.joint!r} has no counterpart in URDF: a ball, or off its link's frame",
            joint=body.joint,
        )
    if kind == "revolute" and None in (body.limits.lower, body.limits.upper):
        kind = "continuous"
    mimic: list[str] = []
    if follows is not None:
        leader, factor = mimicked_joint(follows, "URDF")
        mimic = markup("mimic", joint=leader, multiplier=factor, offset=follows.offset)
    return markup(
        "joint",
        markup("parent", link=body.parent or root),
        markup("child", link=body.name),
        markup("origin", xyz=body.position, rpy=to_rpy(body.rotation)),
        [] if axis is None else markup("axis", xyz=axis),
        [] if axis is None else _limit_lines(body, kind),
        _dynamics_lines(terms) if terms.values else [],
        mimic,
        name=body.joint,
        type=kind,
    )


def _limit_lines(body: Body, kind: str) -> list[str]:
    limits = body.limits
    values = {"effort": limits.effort, "velocity": limits.velocity}
    if kind == "continuous" and not any(v is not None for v in values.values()):
        return []
    numbers = {k: UNLIMITED if v is None else v for k, v in values.items()}
    if kind == "continuous":
        return markup("limit", **numbers)
    lower = -UNLIMITED if limits.lower is None else limits.lower
    upper = UNLIMITED if limits.upper is None else limits.upper
    return markup("limit", lower=lower, upper=upper, **numbers)
