"""Collision primitives of a URDF link; what cannot be read is treated as unknown."""

from __future__ import annotations

import numpy as np

from feasid.exact.decimals import Number
from feasid.formats.primitives import Shape, primitive
from feasid.formats.xml import Element
from feasid.robot.rotations import from_rpy


def collisions(link: Element) -> list[Shape | None]:
    """A link's collision geometries in its frame, None for each that is no known primitive."""
    return [_shape(collision) for collision in link.all("collision")]


def visuals(link: Element) -> list[Shape | None]:
    """The same of what is drawn."""
    return [_shape(visual) for visual in link.all("visual")]


def _shape(collision: Element) -> Shape | None:
    geometry = collision.find("geometry")
    if geometry is None or len(geometry.children) != 1:
        return None
    element = geometry.children[0]
    try:
        size = _size(element)
        origin = collision.find("origin")
        xyz = _floats(origin, "xyz") if origin is not None else [0.0, 0.0, 0.0]
        rpy = _floats(origin, "rpy") if origin is not None else [0.0, 0.0, 0.0]
    except ValueError:
        return None
    if size is None or len(xyz) != 3 or len(rpy) != 3:
        return None
    return primitive(element.tag, size, from_rpy(rpy), np.array(xyz))


def _size(element: Element) -> list[float] | None:
    if element.tag == "box":
        size = _floats(element, "size")
        return size if len(size) == 3 else None
    if element.tag == "sphere":
        return _lengths(element, "radius")
    if element.tag in ("cylinder", "capsule"):
        return _lengths(element, "radius", "length")
    return None


def _lengths(element: Element, *attributes: str) -> list[float] | None:
    """One number per attribute, or None where one is missing or several stand there."""
    found = [_floats(element, attribute, "") for attribute in attributes]
    return [numbers[0] for numbers in found] if all(len(n) == 1 for n in found) else None


def _floats(element: Element, attribute: str, default: str = "0 0 0") -> list[float]:
    text = element.attributes.get(attribute, default)
    return [Number.of(token).value for token in text.split()]
