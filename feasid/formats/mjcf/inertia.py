"""MjcfInertial parameters of MJCF bodies: stated, or summed over their primitive geoms."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from feasid.core.arrays import Array
from feasid.exact.decimals import Number
from feasid.exact.poses import to_decimal
from feasid.formats.mjcf.geoms import DENSITY, SIZES, WEIGHTLESS, about_origin, solid, volume
from feasid.formats.mjcf.model import Compiler, Geom, Mjcf, MjcfBody
from feasid.formats.mjcf.pose import turned
from feasid.robot import inertia


class NeedsCompilerError(Exception):
    """What only MuJoCo's compiler can work out; the message says what and where."""


def stated(body: MjcfBody, compiler: Compiler) -> bool:
    """Whether the body's ``<inertial>`` counts, and not its geoms."""
    return body.inertial is not None and compiler.from_geoms != "true"


def body_parameters(mjcf: Mjcf, body: MjcfBody) -> Array | None:
    """Ten parameters in the body's frame; None when neither inertial nor geoms give any.

    Raises
    ------
    NeedsCompilerError
        A mesh or a shell gives the body its mass.
    DescriptionError
        A geom's size or mass is wrong.
    """
    given = body.inertial
    if given is not None and stated(body, mjcf.compiler):
        tensor = inertia.rotational_inertia([*(n.value for n in given.moments), 0, 0, 0, 0])
        rotation = given.pose.rotation
        about_com = rotation @ tensor @ rotation.T
        return inertia.from_mass_com_inertia(given.mass.value, given.pose.position, about_com)
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
    mass = _numbers(mjcf, body, geom, "mass")
    density = _numbers(mjcf, body, geom, "density")
    if (mass and mass[0] == 0) or (not mass and density and density[0] == 0):
        return None
    placed = primitive_of(mjcf, body, geom)
    if placed is None:
        what = f"<geom type={kind!r}>" if kind not in SIZES else "a mesh or shell geom"
        place = f"{mjcf.files.text(geom.element).path}:{geom.element.line}"
        raise NeedsCompilerError(f"{place}: the mass of body {body.name!r} comes from {what}")
    size, rotation, position = placed
    heavy = mass[0] if mass else volume(kind, size) * (density[0] if density else DENSITY)
    return about_origin(solid(kind, size, heavy), rotation, position)


def primitive_of(mjcf: Mjcf, body: MjcfBody, geom: Geom) -> tuple[list[float], Array, Array] | None:
    """Size and pose in the body's frame of a solid primitive; None for other geoms."""
    values = geom.attributes
    kind = values.get("type", "sphere")
    if kind not in SIZES or "mesh" in values or values.get("shellinertia") == "true":
        return None
    size = _numbers(mjcf, body, geom, "size")
    rotation, position = geom.pose.rotation, geom.pose.position
    if "fromto" in values:
        size, rotation, position = _from_to(mjcf, body, geom, kind, size)
    if len(size) < SIZES[kind] or min(size[: SIZES[kind]]) <= 0:
        _fail(mjcf, body, geom, f"type {kind} needs {SIZES[kind]} positive numbers of size")
    return size[: SIZES[kind]], rotation, position


def _from_to(
    mjcf: Mjcf, body: MjcfBody, geom: Geom, kind: str, size: list[float]
) -> tuple[list[float], Array, Array]:
    """Size and pose of a geom given by its two end points."""
    ends = np.array(_numbers(mjcf, body, geom, "fromto"))
    if ends.shape != (6,) or kind == "sphere" or not size:
        _fail(mjcf, body, geom, "fromto needs six numbers, a radius, and a type that is long")
    along = ends[3:] - ends[:3]
    half = float(np.linalg.norm(along)) / 2
    if not half:
        _fail(mjcf, body, geom, "fromto has zero length")
    axis = turned("zaxis", [to_decimal(Number.of(repr(float(x))).exact) for x in along], False, "")
    new = [size[0], half] if kind in ("capsule", "cylinder") else [size[0], size[0], half]
    return new, np.array(axis, dtype=np.float64), (ends[:3] + ends[3:]) / 2


def _numbers(mjcf: Mjcf, body: MjcfBody, geom: Geom, name: str) -> list[float]:
    try:
        return [Number.of(t).value for t in geom.attributes.get(name, "").split()]
    except ValueError as error:
        _fail(mjcf, body, geom, f"{name}: {error}")


def _fail(mjcf: Mjcf, body: MjcfBody, geom: Geom, message: str) -> NoReturn:
    mjcf.files.fail(f"body {body.name!r}: <geom> {message}", geom.element, body=body.name)
