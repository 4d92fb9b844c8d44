"""URDF out: a file's own text with other numbers, or a new file.

In a file's own text only numbers of ``<inertial>`` and ``<dynamics>`` change, and extension
elements are added on request; every other byte stays. In a new file link frames are on their
joints' axes, as URDF wants them: where a body's frame is elsewhere (as in the standard
Denavit-Hartenberg convention), the link's is moved there, see `feasid.robot.variants`. Joints and q
stay. Links that move with another keep their names and shapes, and that link has the mass of all.

Drake reads drive inertia from ``<drake:rotor_inertia>`` of a transmission's actuator ("Parsing
models for multibody dynamics", drake.mit.edu). MuJoCo's ``<mujoco>`` holds settings of its compiler
only: they keep it from changing the bodies, and they cannot hold drive inertia (measured with
MuJoCo 4.0: attributes of ``<dynamics>`` and ``<default>`` are ignored).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import UnsupportedJointError
from feasid.robot.bodies import Member, lumped_parameters
from feasid.robot.description import Robot
from feasid.robot.formats import rewrite
from feasid.robot.formats.description import (
    DRAKE,
    MOMENTS,
    Changes,
    Description,
    Extras,
    NamedElements,
    NewInertial,
)
from feasid.robot.formats.shapes import Drawing, Mesh
from feasid.robot.formats.terms import NO_TERMS, JointTerms
from feasid.robot.formats.urdf import DYNAMICS
from feasid.robot.formats.xml import Element, Patch, markup

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
    root, extensions = urdf.text.root, changes.extras.extensions
    if not extensions:
        return patch.apply()
    # Extension elements at the end; numbers of Drake's that are there are replaced.
    remaining = dict(changes.extras.armatures)
    if "drake" in extensions:
        for transmission in root.all("transmission"):
            driven, actuator = (transmission.find(tag) for tag in ("joint", "actuator"))
            name = "" if driven is None else driven.attributes.get("name", "")
            if actuator is not None and name in remaining:
                gear, rotor = map(actuator.find, ("drake:gear_ratio", "drake:rotor_inertia"))
                # Drake multiplies the rotor's inertia by the square of the gear ratio.
                ratio = 1.0 if gear is None else float(gear.attributes.get("value", "1"))
                inertia = remaining.pop(name) / ratio**2
                if rotor is not None:
                    patch.numbers(rotor, "value", [inertia])
                    continue
                lines = markup("drake:gear_ratio", value=1.0) if gear is None else []
                patch.insert_first(actuator, lines + markup("drake:rotor_inertia", value=inertia))
        patch.add_missing_attributes(root, DRAKE)
    has = root.find("mujoco") is not None
    missing = tuple(x for x in extensions if not (x == "mujoco" and has))
    if lines := extension_lines(Extras(armatures=remaining, extensions=missing)):
        patch.insert_last(root, lines)
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
            patch.insert_first(old, markup("origin", xyz=new.com, rpy=NO_ROTATION))
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
    fixed = rewrite.with_base_link(robot)
    root = fixed[0].name
    parts = _link_lines(root, fixed, lumped_parameters(fixed), extras)
    follow = {c.joint: c for c in robot.couplings}
    for body in robot.bodies:
        rewrite.inertial_in_body_axes(body)  # for its errors
        parts += _link_lines(body.name, body.members or (Member(body.name),), body.inertial, extras)
        joint_terms = terms.get(body.joint, NO_TERMS)
        follows = follow.get(body.joint)
        kind, axis, position = rewrite.joint_kind_axis_position(body, "URDF")
        if kind == "spherical" or position.any():
            raise UnsupportedJointError(
                f"joint {body.joint!r} has no counterpart in URDF: a ball, or off its link's frame",
                joint=body.joint,
            )
        # URDF's revolute joints have both limits.
        if kind == "revolute" and None in (body.limits.lower, body.limits.upper):
            kind = "continuous"
        mimic: list[str] = []
        if follows is not None:
            leader, factor = rewrite.single_leader(follows, "URDF")
            mimic = markup("mimic", joint=leader, multiplier=factor, offset=follows.offset)
        most = {"effort": UNLIMITED, "velocity": UNLIMITED}
        if kind != "continuous":
            most = {"lower": -UNLIMITED, "upper": UNLIMITED, **most}
        ends = {name: getattr(body.limits, name) for name in most}
        numbers = {name: most[name] if end is None else end for name, end in ends.items()}
        limited = axis is not None and (kind != "continuous" or {*ends.values()} != {None})
        parts += markup(
            "joint",
            markup("parent", link=body.parent or root),
            markup("child", link=body.name),
            markup("origin", xyz=body.position, rpy=rewrite.to_rpy(body.rotation)),
            [] if axis is None else markup("axis", xyz=axis),
            markup("limit", **numbers) if limited else [],
            _dynamics_lines(joint_terms) if joint_terms.values else [],
            mimic,
            name=body.joint,
            type=kind,
        )
    space = DRAKE if "drake" in extras.extensions else {}
    lines = markup("robot", parts, extension_lines(extras), name=robot.name, **space)
    return "\n".join([*lines, ""]).encode()


def _link_lines(
    name: str, members: Sequence[Member], inertial: Array | None, extras: Extras
) -> list[str]:
    """A link that holds the mass of all that are fixed to it, and these links with their shapes."""
    new = None if inertial is None else rewrite.exact_inertial(inertial)
    lines = []
    for k, member in enumerate(members):
        # Shapes of a link whose frame was moved onto its axis are placed in the new one.
        place = Member(member.name) if k else member
        drawings = rewrite.placed_drawings((place,), extras.drawings)
        shapes = [_drawing_lines(drawing, label) for label, drawing in drawings]
        # MuJoCo and Bullet would give a link that states no mass one of its own.
        mass = (
            _inertial_lines(rewrite.EMPTIED) if k else [] if new is None else _inertial_lines(new)
        )
        link = member.name if k else name
        lines += markup("link", mass, *shapes, name=link)
        if k:
            lines += markup(
                "joint",
                markup("parent", link=name),
                markup("child", link=link),
                markup("origin", xyz=member.position, rpy=rewrite.to_rpy(member.rotation)),
                name=f"{name}_to_{link}",
                type="fixed",
            )
    return lines


def _drawing_lines(drawing: Drawing, name: str) -> list[str]:
    """A visual or collision; URDF has no capsules, which become cylinders with two balls."""
    shape = drawing.shape
    if isinstance(shape, Mesh):
        file = re.sub("^model://", "package://", shape.name)
        solids = [(shape.position, markup("mesh", filename=file, scale=shape.scale))]
    elif shape is None or shape.kind == "ellipsoid":
        return []
    elif shape.kind == "capsule":
        radius, length = shape.size
        ends = [shape.position + s * length / 2 * shape.rotation[:, 2] for s in (-1, 1)]
        solids = [(shape.position, markup("cylinder", radius=radius, length=length))]
        solids += [(end, markup("sphere", radius=radius)) for end in ends]
    else:
        sizes = {"box": ("size",)}.get(shape.kind, ("radius", "length")[: len(shape.size)])
        numbers = [shape.size] if shape.kind == "box" else shape.size
        solids = [(shape.position, markup(shape.kind, **dict(zip(sizes, numbers, strict=True))))]
    shown = drawing.colour and drawing.tag == "visual"
    paint = markup("material", markup("color", rgba=drawing.colour), name=name) if shown else []
    return [
        line
        for k, (at, solid) in enumerate(solids)
        for line in markup(
            drawing.tag,
            markup("origin", xyz=at, rpy=rewrite.to_rpy(shape.rotation)),
            markup("geometry", solid),
            paint,
            name=f"{name}_{k}" if k else name,
        )
    ]
