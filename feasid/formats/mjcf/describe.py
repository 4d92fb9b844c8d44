"""Description of an MJCF file, in the form that all formats share."""

from __future__ import annotations

from functools import partial
from typing import NoReturn

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import DescriptionError
from feasid.exact.numbers import Number
from feasid.exact.poses import to_decimal
from feasid.formats.description import Description, ExactPose, Joint, Link, NeedsCompilerError
from feasid.formats.mjcf.geometry import (
    DENSITY,
    SIZES,
    WEIGHTLESS,
    MjcfPose,
    parameters_about_origin,
    primitive_volume,
    rotation_from_attribute,
    solid_inertia,
)
from feasid.formats.mjcf.model import Compiler, Geom, Mjcf, MjcfBody, MjcfJoint
from feasid.formats.mjcf.read import read_mjcf
from feasid.formats.shapes import Shape, primitive_shape
from feasid.formats.terms import NO_TERMS
from feasid.formats.xml import LIMITS, ReadLimits, XmlText
from feasid.robot import inertia
from feasid.robot.bodies import Limits

KINDS = {"hinge": "revolute", "slide": "prismatic", "ball": "spherical", "free": "floating"}
"""Kind of joint per type of MJCF."""


def describe_mjcf(text: XmlText, limits: ReadLimits = LIMITS) -> Description:
    """The description of a parsed MJCF file; errors as `feasid.formats.mjcf.read.read_mjcf`."""
    mjcf = read_mjcf(text, limits)
    balanced = (
        f'{text.path}: compiler balanceinertia="true" replaces impossible inertias by the mean of '
        "their principal moments when the file is compiled"
    )
    return Description(
        "mjcf",
        text.path,
        mjcf.name,
        tuple(_link(mjcf, body) for body in mjcf.bodies),
        world="world",
        gravity=mjcf.gravity,
        bonds=mjcf.bonds,
        motors=mjcf.motors,
        notes=(balanced,) if mjcf.compiler.balances else (),
        hidden=mjcf.hidden,
        unknown=mjcf.unknown,
        effects=mjcf.effects,
        left_out=mjcf.left_out,
        total_mass=mjcf.compiler.total_mass,
        text=text,
        document=mjcf,
    )


def _link(mjcf: Mjcf, body: MjcfBody) -> Link:
    inertial_element = body.inertial if uses_inertial_element(body, mjcf.compiler) else None
    element = body.element if inertial_element is None else inertial_element.element
    text = mjcf.files.text(element)
    derived = mjcf.compiler.from_geoms != "false" and any(
        geom.attributes.get("type", "sphere") not in WEIGHTLESS for geom in body.geoms
    )
    return Link(
        body.name,
        text.path,
        element.line,
        partial(text.place, element),
        body.parent,
        _pose(mjcf, body.pose, body),
        tuple(_joint(mjcf, joint) for joint in body.joints),
        None if inertial_element is None else inertial_element.mass.exact,
        None if inertial_element is None else tuple(n.exact for n in inertial_element.moments),
        None if inertial_element is None else _pose(mjcf, inertial_element.pose),
        collisions=partial(_collision_shapes, mjcf, body),
        visuals=lambda: [_geom_shape(mjcf, body, geom) for geom in body.geoms],
        has_geometry=bool(body.geoms),
        solid_visuals=True,
        by_geometry=inertial_element is None and derived,
        derive=partial(body_parameters, mjcf, body) if inertial_element is None else None,
    )


def _pose(mjcf: Mjcf, pose: MjcfPose, body: MjcfBody | None = None) -> ExactPose:
    """A pose, with the angles that the main file writes for a body in radians."""
    angles = ""
    if body is not None and not mjcf.compiler.degrees:
        main = mjcf.files.text(body.element) is mjcf.files.main
        angles = body.element.attributes.get("euler", "") if main else ""
    return ExactPose(pose.rotation, pose.position, pose.precise_pose, tuple(angles.split()), None)


def _joint(mjcf: Mjcf, joint: MjcfJoint) -> Joint:
    return Joint(
        joint.name,
        KINDS[joint.type],
        np.array(joint.axis),
        np.array(joint.position),
        joint.reference,
        Limits(*joint.range) if joint.range else Limits(),
        joint.terms if joint.type in ("hinge", "slide") else NO_TERMS,
        f"{mjcf.files.text(joint.element).path}:{joint.element.line}",
    )


# -- inertial parameters: stated, or summed over primitive geoms ----------------------------------


def uses_inertial_element(body: MjcfBody, compiler: Compiler) -> bool:
    """Whether the body's ``<inertial>`` counts, and not its geoms."""
    return body.inertial is not None and compiler.from_geoms != "true"


def body_parameters(mjcf: Mjcf, body: MjcfBody) -> Array | None:
    """Ten parameters in the body's frame; None when neither inertial nor geoms give any.

    Raises NeedsCompilerError: a mesh or a shell gives the body its mass. Raises DescriptionError: a
    geom's size or mass is wrong.
    """
    element = body.inertial
    if element is not None and uses_inertial_element(body, mjcf.compiler):
        tensor = inertia.rotational_inertia([*(n.value for n in element.moments), 0, 0, 0, 0])
        rotation = element.pose.rotation
        about_com = rotation @ tensor @ rotation.T
        return inertia.from_mass_com_inertia(element.mass.value, element.pose.position, about_com)
    if mjcf.compiler.from_geoms == "false":
        return None
    low, high = mjcf.compiler.group_range
    parts = []
    for geom in body.geoms:
        group = geom.attributes.get("group", "0").strip()
        if group.lstrip("-").isdigit() and low <= int(group) <= high:
            part = _geom_parameters(mjcf, body, geom)
            if part is not None:
                parts.append(part)
    return np.sum(parts, axis=0) if parts else None


def _geom_parameters(mjcf: Mjcf, body: MjcfBody, geom: Geom) -> Array | None:
    values = geom.attributes
    kind = values.get("type", "sphere")
    if kind in WEIGHTLESS:
        return None
    mass = _geom_numbers(mjcf, body, geom, "mass")
    density = _geom_numbers(mjcf, body, geom, "density")
    if (mass and mass[0] == 0) or (not mass and density and density[0] == 0):
        return None
    placed = geom_primitive(mjcf, body, geom)
    if placed is None:
        what = f"<geom type={kind!r}>" if kind not in SIZES else "a mesh or shell geom"
        place = f"{mjcf.files.text(geom.element).path}:{geom.element.line}"
        raise NeedsCompilerError(f"{place}: the mass of body {body.name!r} comes from {what}")
    size, rotation, position = placed
    heavy = mass[0] if mass else primitive_volume(kind, size) * (density[0] if density else DENSITY)
    return parameters_about_origin(solid_inertia(kind, size, heavy), rotation, position)


def geom_primitive(
    mjcf: Mjcf, body: MjcfBody, geom: Geom
) -> tuple[list[float], Array, Array] | None:
    """Size and pose in the body's frame of a solid primitive; None for other geoms."""
    values = geom.attributes
    kind = values.get("type", "sphere")
    if kind not in SIZES or "mesh" in values or values.get("shellinertia") == "true":
        return None
    size = _geom_numbers(mjcf, body, geom, "size")
    rotation, position = geom.pose.rotation, geom.pose.position
    if "fromto" in values:
        size, rotation, position = _geom_between_points(mjcf, body, geom, kind, size)
    if len(size) < SIZES[kind] or min(size[: SIZES[kind]]) <= 0:
        _fail(mjcf, body, geom, f"type {kind} needs {SIZES[kind]} positive numbers of size")
    return size[: SIZES[kind]], rotation, position


def _geom_between_points(
    mjcf: Mjcf, body: MjcfBody, geom: Geom, kind: str, size: list[float]
) -> tuple[list[float], Array, Array]:
    """Size and pose of a geom given by its two end points."""
    ends = np.array(_geom_numbers(mjcf, body, geom, "fromto"))
    if ends.shape != (6,) or kind == "sphere" or not size:
        _fail(mjcf, body, geom, "fromto needs six numbers, a radius, and a type that is long")
    along = ends[3:] - ends[:3]
    half = float(np.linalg.norm(along)) / 2
    if not half:
        _fail(mjcf, body, geom, "fromto has zero length")
    axis = rotation_from_attribute(
        "zaxis", [to_decimal(Number.parse(repr(float(x))).exact) for x in along], False, ""
    )
    new = [size[0], half] if kind in ("capsule", "cylinder") else [size[0], size[0], half]
    return new, np.array(axis, dtype=np.float64), (ends[:3] + ends[3:]) / 2


def _geom_numbers(mjcf: Mjcf, body: MjcfBody, geom: Geom, name: str) -> list[float]:
    try:
        return [Number.parse(t).value for t in geom.attributes.get(name, "").split()]
    except ValueError as error:
        _fail(mjcf, body, geom, f"{name}: {error}")


def _fail(mjcf: Mjcf, body: MjcfBody, geom: Geom, message: str) -> NoReturn:
    mjcf.files.fail(f"body {body.name!r}: <geom> {message}", geom.element, body=body.name)


# -- shapes ---------------------------------------------------------------------------------------


def _geom_shape(mjcf: Mjcf, body: MjcfBody, geom: Geom) -> Shape | None:
    """A geom's shape in its body's frame; None for an unknown shape."""
    kind = geom.attributes.get("type", "sphere")
    try:
        placed = geom_primitive(mjcf, body, geom)
    except DescriptionError:
        return None
    if placed is None:
        return None
    size, rotation, position = placed
    full = [2 * x for x in size] if kind == "box" else [size[0], *(2 * x for x in size[1:])]
    return primitive_shape(kind, size if kind == "ellipsoid" else full, rotation, position)


def _collision_shapes(mjcf: Mjcf, body: MjcfBody) -> list[Shape | None]:
    """A body's geoms that collide, None for each unknown shape."""
    return [
        _geom_shape(mjcf, body, geom)
        for geom in body.geoms
        if not (geom.attributes.get("contype") == "0" and geom.attributes.get("conaffinity") == "0")
    ]
