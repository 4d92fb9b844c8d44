"""Solid primitives of MJCF bodies."""

from __future__ import annotations

from feasid.errors import DescriptionError
from feasid.formats.mjcf.inertia import primitive_of
from feasid.formats.mjcf.model import Geom, Mjcf, MjcfBody
from feasid.formats.primitives import Shape, primitive


def solid_primitive(mjcf: Mjcf, body: MjcfBody, geom: Geom) -> Shape | None:
    """A geom's shape in its body's frame; None for what is no known primitive."""
    kind = geom.attributes.get("type", "sphere")
    try:
        placed = primitive_of(mjcf, body, geom)
    except DescriptionError:
        return None
    if placed is None:
        return None
    size, rotation, position = placed
    full = [2 * x for x in size] if kind == "box" else [size[0], *(2 * x for x in size[1:])]
    return primitive(kind, size if kind == "ellipsoid" else full, rotation, position)


def collisions(mjcf: Mjcf, body: MjcfBody) -> list[Shape | None]:
    """A body's geoms that collide, None for each that is no known primitive."""
    return [
        solid_primitive(mjcf, body, geom)
        for geom in body.geoms
        if not (geom.attributes.get("contype") == "0" and geom.attributes.get("conaffinity") == "0")
    ]
