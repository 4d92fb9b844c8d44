"""Bodies of an MJCF file as links: their inertias and shapes, and orientations to sixty digits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from functools import partial
from typing import NoReturn

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import DescriptionError
from feasid.core.exact import poses
from feasid.core.exact.numbers import Number
from feasid.core.exact.poses import to_decimal
from feasid.robot.formats.description import Link, NeedsCompilerError
from feasid.robot.formats.mjcf.model import HIDDEN, Geom, Mjcf, MjcfBody
from feasid.robot.formats.shapes import NUMBERS_OF_SIZE, Drawing, Shape, primitive_shape

DENSITY = 1000.0  #: MuJoCo's default density [kg/m^3].

WEIGHTLESS = ("plane", "hfield")

ORIENTATIONS = {"quat": 4, "axisangle": 4, "xyaxes": 6, "zaxis": 3, "euler": 3}
"""Attributes of an element's orientation, and their number of values; at most one is given."""

Decimals = Sequence[Decimal]


def link_of_body(mjcf: Mjcf, body: MjcfBody) -> Link:
    """A body as a link, whose inertia is stated or follows from geoms."""
    by_geoms = mjcf.compiler.from_geoms
    inertial = body.inertials[0] if body.inertials and by_geoms != "true" else None
    element = body.element if inertial is None else inertial.element
    text = mjcf.files.text(element)
    link = Link(
        body.name,
        text.path,
        element.line,
        partial(text.place, element),
        body.parent,
        body.home,
        tuple(body.joints),
        drawings=partial(_geom_drawings, mjcf, body),
        solid_visuals=True,
    )
    if inertial is not None:
        return replace(link, mass=inertial.mass, moments=inertial.moments, place=inertial.place)
    if by_geoms == "false":
        return link
    solid = any(geom.attributes.get("type", "sphere") not in WEIGHTLESS for geom in body.geoms)
    return replace(link, by_geometry=solid, derive=partial(_geoms_parameters, mjcf, body))


# -- inertial parameters, summed over primitive geoms ---------------------------------------------


def _geoms_parameters(mjcf: Mjcf, body: MjcfBody) -> Array | None:
    """Ten parameters in the body's frame; None when its geoms give none.

    Raises NeedsCompilerError: a mesh or a shell gives the body its mass. Raises DescriptionError: a
    geom's size or mass is wrong.
    """
    low, high = mjcf.compiler.group_range
    parts = []
    for geom in body.geoms:
        group = geom.attributes.get("group", "0").strip()
        kind = geom.attributes.get("type", "sphere")
        counts = group.lstrip("-").isdigit() and low <= int(group) <= high
        if kind in WEIGHTLESS or not counts:
            continue
        mass, density = (_geom_numbers(mjcf, body, geom, name) for name in ("mass", "density"))
        # A mass counts before a density; zero of either makes a geom without weight.
        if 0 in (mass or density)[:1]:
            continue
        primitive = _geom_primitive(mjcf, body, geom)
        if primitive is None:
            what = "a mesh or shell geom" if kind in NUMBERS_OF_SIZE else f"<geom type={kind!r}>"
            place = f"{mjcf.files.text(geom.element).path}:{geom.element.line}"
            raise NeedsCompilerError(f"{place}: the mass of body {body.name!r} comes from {what}")
        by_volume = primitive.volume * (density[0] if density else DENSITY)
        parts.append(primitive.uniform_body(mass[0] if mass else by_volume))
    return np.sum(parts, axis=0) if parts else None


def _geom_primitive(mjcf: Mjcf, body: MjcfBody, geom: Geom) -> Shape | None:
    """The shape of a solid in the body's frame; None for other geoms."""
    values = geom.attributes
    kind = values.get("type", "sphere")
    if kind not in NUMBERS_OF_SIZE or "mesh" in values or values.get("shellinertia") == "true":
        return None
    size = _geom_numbers(mjcf, body, geom, "size")
    rotation, position = geom.pose.rotation, geom.pose.position
    if "fromto" in values:
        # Size and pose of a geom given by its two end points.
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
        size, rotation, position = new, np.array(axis, dtype=np.float64), (ends[:3] + ends[3:]) / 2
    count = NUMBERS_OF_SIZE[kind]
    if len(size) < count or min(size[:count]) <= 0:
        _fail(mjcf, body, geom, f"type {kind} needs {count} positive numbers of size")
    size = size[:count]
    # MJCF states radii and half lengths.
    full = [2 * x for x in size] if kind == "box" else [size[0], *(2 * x for x in size[1:])]
    return primitive_shape(kind, size if kind == "ellipsoid" else full, rotation, position)


def _geom_numbers(mjcf: Mjcf, body: MjcfBody, geom: Geom, name: str) -> list[float]:
    try:
        return [Number.parse(t).value for t in geom.attributes.get(name, "").split()]
    except ValueError as error:
        _fail(mjcf, body, geom, f"{name}: {error}")


def _fail(mjcf: Mjcf, body: MjcfBody, geom: Geom, message: str) -> NoReturn:
    mjcf.files.fail(f"body {body.name!r}: <geom> {message}", geom.element, body=body.name)


# -- shapes ---------------------------------------------------------------------------------------


def _geom_drawings(mjcf: Mjcf, body: MjcfBody) -> list[Drawing]:
    """A body's geoms in its frame: those of shown groups are drawn, and most collide."""
    out = []
    for geom in body.geoms:
        values = geom.attributes
        try:
            primitive = _geom_primitive(mjcf, body, geom)
            group, colour = (_geom_numbers(mjcf, body, geom, name) for name in ("group", "rgba"))
        except DescriptionError:
            primitive, group, colour = None, [], []
        if not group or group[0] < HIDDEN:
            out.append(Drawing("visual", primitive, tuple(colour)))
        if not values.get("contype") == values.get("conaffinity") == "0":
            out.append(Drawing("collision", primitive))
    return out


# -- orientations, to sixty digits ----------------------------------------------------------------


def rotation_from_attribute(
    kind: str, numbers: Decimals, degrees: bool, sequence: str
) -> poses.Rotation:
    """Rotation of one of the `ORIENTATIONS`; ``ValueError`` for a direction of zero length.

    `degrees` and `sequence` are the compiler's angle unit and eulerseq: lower case letters turn
    about the moving axes, capitals about the fixed ones.
    """
    with localcontext(poses.CONTEXT):
        unit = poses.PI / 180 if degrees else Decimal(1)
        if kind == "quat":
            return _from_quaternion(numbers)
        if kind == "axisangle":
            c, s = poses.cos_sin(numbers[3] * unit / 2)
            return _from_quaternion([c, *(s * x for x in _normalise(numbers[:3]))])
        if kind == "xyaxes":
            x = _normalise(numbers[:3])
            along = sum((a * b for a, b in zip(x, numbers[3:], strict=True)), Decimal(0))
            y = _normalise([b - along * a for a, b in zip(x, numbers[3:], strict=True)])
            return [list(row) for row in zip(x, y, np.cross(np.array(x), np.array(y)), strict=True)]
        if kind == "zaxis":
            a, b, c = _normalise(numbers)
            if c < 0 and not (a or b):
                return poses.axis_rotation(0, poses.PI)
            # Quaternion of the half angle: (1 + cos, axis sin) up to length.
            return _from_quaternion([1 + c, -b, a, Decimal(0)])
        out = poses.identity()
        for letter, angle in zip(sequence, numbers, strict=True):
            step = poses.axis_rotation("xyz".index(letter.lower()), angle * unit)
            out = poses.multiply(out, step) if letter.islower() else poses.multiply(step, out)
        return out


def _from_quaternion(q: Decimals) -> poses.Rotation:
    """Rotation of a quaternion (w, x, y, z) of any length."""
    w, x, y, z = q
    n = w * w + x * x + y * y + z * z
    if not n:
        raise ValueError("the quaternion is zero")
    return [
        [(w * w + x * x - y * y - z * z) / n, 2 * (x * y - w * z) / n, 2 * (x * z + w * y) / n],
        [2 * (x * y + w * z) / n, (w * w - x * x + y * y - z * z) / n, 2 * (y * z - w * x) / n],
        [2 * (x * z - w * y) / n, 2 * (y * z + w * x) / n, (w * w - x * x - y * y + z * z) / n],
    ]


def _normalise(v: Decimals) -> list[Decimal]:
    length = sum((x * x for x in v), Decimal(0)).sqrt()
    if not length:
        raise ValueError("the direction is zero")
    return [x / length for x in v]
