"""SDF out: a file's own text with other numbers, or a new file.

In a file's own text only the numbers of ``<inertial>`` and the terms of joints change; every other
byte stays. Drive inertia is written as Drake's ``<drake:rotor_inertia>``, which Gazebo does not
read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.core.exact.numbers import Number
from feasid.robot.bodies import Body, Member, lumped_parameters, place_member
from feasid.robot.couplings import Coupling
from feasid.robot.description import Robot
from feasid.robot.formats import rewrite
from feasid.robot.formats.description import (
    DRAKE,
    MOMENTS,
    Changes,
    Description,
    Extras,
    NewInertial,
)
from feasid.robot.formats.sdf import DYNAMICS
from feasid.robot.formats.sdf.read import DEFAULTS, MODEL, SIZES, WORLD
from feasid.robot.formats.shapes import Shape
from feasid.robot.formats.terms import NO_TERMS, JointTerms
from feasid.robot.formats.xml import Element, Patch, markup

TYPES = {"revolute": "revolute", "prismatic": "prismatic", "spherical": "ball"}

ZEROS = (0.0, 0.0, 0.0)  #: Centre of mass or angles that a file does not state.


def patch_sdf(description: Description, changes: Changes) -> bytes:
    """The file with these inertials and joint terms, every other byte as it was."""
    document = description.document
    patch = Patch(document.text)
    for name, new in changes.inertials.items():
        _set_inertial(patch, document.links[name], new)
    drives = False
    for name, terms in changes.terms.items():
        if name in document.joints:
            joint = document.joints[name]
            gear, rotor = joint.find("drake:gear_ratio"), joint.find("drake:rotor_inertia")
            # Drake multiplies the rotor's inertia by the square of the gear ratio.
            ratio = 1.0 if gear is None else Number.parse(patch.text.content(gear)).value
            inserted: list[str] = []
            inertia = terms.inertia / ratio**2 if ratio else terms.inertia
            if rotor is not None:
                if Number.parse(patch.text.content(rotor)).value * ratio**2 != terms.inertia:
                    patch.content(rotor, [inertia])
            elif terms.inertia:
                inserted += markup("drake:rotor_inertia", inertia)
            values = {tag: getattr(terms, field) for tag, field in DYNAMICS.items()}
            if not terms.stiffness:
                del values["spring_reference"]
            axis = joint.find("axis")
            dynamics = None if axis is None else axis.find("dynamics")
            if dynamics is not None:
                _set_child_numbers(patch, dynamics, values)
            elif any(values.values()):
                lines = markup("dynamics", _element_lines(values))
                if axis is not None:
                    patch.insert_first(axis, lines)
                else:
                    inserted += markup("axis", lines)
            if inserted:
                patch.insert_first(joint, inserted)
            drives |= rotor is None and bool(terms.inertia)
    if drives:
        patch.add_missing_attributes(document.text.root, DRAKE)
    return patch.apply()


def _set_inertial(patch: Patch, link: Element, new: NewInertial) -> None:
    """Write one link's numbers; those that do not change keep their text."""
    old = link.find("inertial")
    if old is None:
        patch.insert_first(link, _inertial_lines(new))
        return
    pose, mass, matrix = (old.find(tag) for tag in ("pose", "mass", "inertia"))
    moments = dict(zip(MOMENTS, new.moments, strict=True))
    lines: list[str] = []
    if pose is None and new.com is not None and any(new.com):
        lines += markup("pose", (*new.com, *ZEROS))
    elif pose is not None and new.com is not None:
        angles = [Number.parse(t).value for t in patch.text.content(pose).split()[3:]]
        patch.content(pose, [*new.com, *([0.0] * 3 if new.reset_axes else angles)])
    if mass is None:
        lines += markup("mass", new.mass)
    else:
        patch.content(mass, [new.mass])
    if matrix is None:
        lines += markup("inertia", _element_lines(moments))
    else:
        _set_child_numbers(patch, matrix, moments)
    if lines:
        patch.insert_first(old, lines)


def _set_child_numbers(patch: Patch, parent: Element, values: Mapping[str, float]) -> None:
    """Numbers of an element's children; absent ones have SDF's defaults until inserted."""
    missing: list[str] = []
    for tag, value in values.items():
        child = parent.find(tag)
        if child is not None:
            patch.content(child, [value])
        elif value != float(DEFAULTS.get(tag, "0")):
            missing += markup(tag, value)
    if missing:
        patch.insert_first(parent, missing)


def _element_lines(values: Mapping[str, float | None]) -> list[str]:
    return [line for tag, v in values.items() if v is not None for line in markup(tag, v)]


def _inertial_lines(new: NewInertial) -> list[str]:
    return markup(
        "inertial",
        markup("pose", (*(new.com or ZEROS), *ZEROS)),
        markup("mass", new.mass),
        markup("inertia", _element_lines(dict(zip(MOMENTS, new.moments, strict=True)))),
    )


# -- new files ------------------------------------------------------------------------------------


def with_distinct_names(robot: Robot) -> Robot:
    """The robot with other names for bodies called like a joint or the world, which SDF forbids."""
    reserved = {WORLD, *(b.joint for b in robot.bodies if not b.floats)}
    names = {*reserved, *(b.name for b in robot.bodies)}
    new = {}
    for body in robot.bodies:
        if body.name in reserved:
            name = f"{body.name}_link"
            while name in names:
                name += "_"
            names.add(name)
            new[body.name] = name
    bodies = (
        replace(
            b,
            name=new.get(b.name, b.name),
            parent=new.get(b.parent or "", b.parent),
            members=b.members or (Member(b.name, inertial=b.inertial),),
        )
        for b in robot.bodies
    )
    drives = (replace(d, name=new.get(d.name, d.name)) for d in robot.drives)
    return replace(robot, bodies=tuple(bodies), drives=tuple(drives)) if new else robot


def generate_sdf(robot: Robot, terms: Mapping[str, JointTerms], extras: Extras) -> bytes:
    """The robot as SDF, with its frames, joint positions and axes.

    Links that are fixed to another become frames of it, and their shapes its own, as Gazebo's
    conversion of URDF does. The base's first link is fixed to the world.

    Raises UnsupportedJointError: a joint that SDF does not have: helical or planar.
    Raises InputError: a body without parameters, or with infeasible ones; a joint that follows
    several, or a name of a model inside a model.
    """
    names = [*robot.joints, *(b.name for b in robot.bodies), *(m.name for m in robot.fixed)]
    names += [m.name for b in robot.bodies for m in b.members]
    if inner := next((name for name in names if "::" in name), ""):
        raise InputError(f"{inner!r}: names of a new SDF file hold no '::': rename it in its file")
    follow = {c.joint: c for c in robot.couplings}
    space = DRAKE if any(t.inertia for t in terms.values()) else {}
    base = next((m for m in robot.fixed if m.name not in {WORLD, *robot.joints}), None)
    parts: list[list[str]] = []
    if base is not None:
        back = base.rotation.T, -base.rotation.T @ base.position
        members = tuple(place_member(m, *back) for m in robot.fixed)
        delta = lumped_parameters(members)
        new = None if delta is None else rewrite.exact_inertial(delta)
        ends = markup("parent", WORLD), markup("child", base.name)
        parts += [
            _link_lines(base, MODEL, new, members, robot, extras),
            markup("joint", *ends, name=f"{WORLD}_to_{base.name}", type="fixed"),
        ]
    for body in robot.bodies:
        joint_terms, new = terms.get(body.joint, NO_TERMS), rewrite.inertial_in_body_axes(body)
        members = body.members or (Member(body.name),)
        place = Member(body.name, body.rotation, body.position)
        parent = body.parent or (base.name if base else WORLD)
        parts += [
            _link_lines(place, body.parent or MODEL, new, members, robot, extras),
            _joint_lines(body, parent, joint_terms, follow.get(body.joint)),
        ]
    model = markup("model", *parts, name=robot.name)
    lines = markup("sdf", model, version="1.11" if follow else "1.9", **space)
    return "\n".join([*lines, ""]).encode()


def _link_lines(
    place: Member,
    base: str,
    new: NewInertial | None,
    members: Sequence[Member],
    robot: Robot,
    extras: Extras,
) -> list[str]:
    """A link with the shapes of all that are fixed to it, and the frames of these."""
    shapes: list[str] = []
    frames: list[str] = []
    others = {WORLD, place.name, *robot.joints, *(b.name for b in robot.bodies)}
    for name, drawing in rewrite.placed_drawings(members, extras.drawings):
        shape = drawing.shape
        if isinstance(shape, Shape):
            tags = SIZES[shape.kind]
            numbers = shape.size if len(tags) > 1 else [shape.size]
            sizes = (markup(tag, x) for tag, x in zip(tags, numbers, strict=True))
            geometry = markup(shape.kind, *sizes)
        elif shape is not None:
            # Gazebo finds packages of ROS under the other name, and Drake under either.
            uri = re.sub("^package://", "model://", shape.name)
            geometry = markup("mesh", markup("uri", uri), markup("scale", shape.scale))
        else:
            continue
        pose = _pose_lines(shape.rotation, shape.position)
        shown = drawing.colour and drawing.tag == "visual"
        colour = markup("material", markup("diffuse", drawing.colour)) if shown else []
        shapes += markup(drawing.tag, pose, markup("geometry", geometry), colour, name=name)
    for member in members:
        if member.name not in others:
            pose = _pose_lines(member.rotation, member.position)
            frames += markup("frame", pose, name=member.name, attached_to=place.name)
    pose = _pose_lines(place.rotation, place.position, relative_to=base)
    inertial = [] if new is None else _inertial_lines(new)
    return [*markup("link", pose, inertial, shapes, name=place.name), *frames]


def _pose_lines(rotation: Array, position: Array, **attributes: str) -> list[str]:
    return markup("pose", (*position, *rewrite.to_rpy(rotation)), **attributes)


def _joint_lines(body: Body, parent: str, terms: JointTerms, follows: Coupling | None) -> list[str]:
    kind, axis, position = rewrite.joint_kind_axis_position(body, "SDF")
    if kind == "floating":
        return []
    bounds = {k: getattr(body.limits, k) for k in ("lower", "upper", "effort", "velocity")}
    limits = _element_lines(bounds)
    values = {tag: getattr(terms, field) or None for tag, field in DYNAMICS.items()}
    dynamics = _element_lines(values)
    mimic: list[str] = []
    if follows is not None:
        leader, factor = rewrite.single_leader(follows, "SDF")
        numbers = {"multiplier": factor, "offset": follows.offset, "reference": 0.0}
        mimic = markup("mimic", _element_lines(numbers), joint=leader)
    about = markup(
        "axis",
        markup("xyz", axis),
        markup("limit", limits) if limits else [],
        markup("dynamics", dynamics) if dynamics else [],
        mimic,
    )
    return markup(
        "joint",
        markup("parent", parent),
        markup("child", body.name),
        markup("pose", (*position, *ZEROS)) if position.any() else [],
        markup("drake:rotor_inertia", terms.inertia) if terms.inertia else [],
        [] if axis is None else about,
        name=body.joint,
        type=TYPES[kind],
    )
