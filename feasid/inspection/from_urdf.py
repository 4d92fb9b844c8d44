"""A URDF file in the form in which links are inspected."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from feasid.exact.decimals import Number
from feasid.exact.poses import PrecisePose, from_rpy, to_decimal
from feasid.inspection.model import Link, Model, Place, grouped
from feasid.inspection.primitives import Shape, primitive
from feasid.robot.rotations import from_rpy as float_rpy
from feasid.robot.urdf.read import Origin, Urdf, UrdfLink, depth_first, urdf_of
from feasid.robot.xml.text import Element, XmlText


def model_of_urdf(text: XmlText) -> Model:
    """Links, moving bodies and fixed links of a parsed URDF file."""
    urdf = urdf_of(text)
    links = {name: _link(urdf, link) for name, link in urdf.links.items()}
    above = urdf.joint_above()
    rows: list[tuple[Link, str | None, Place | None, str | None]] = []
    for name in depth_first(urdf):
        joint = above.get(name)
        if joint is None:
            rows.append((links[name], None, None, None))
        else:
            moves = None if joint.type == "fixed" else joint.name
            rows.append((links[name], joint.parent, place_of(joint.origin), moves))
    base, *bodies = grouped(rows)
    return Model(
        text.path, "urdf", urdf.name, tuple(links.values()), base, tuple(bodies), urdf.notes
    )


def _link(urdf: Urdf, link: UrdfLink) -> Link:
    shapes = _shapes(link.element)
    element, inertial = link.element, link.inertial
    path = urdf.text.path
    if inertial is None:
        return Link(link.name, path, element.line, partial(urdf.text.place, element), shapes=shapes)
    return Link(
        link.name,
        path,
        inertial.element.line,
        partial(urdf.text.place, inertial.element),
        inertial.mass.exact,
        tuple(n.exact for n in inertial.moments),
        place_of(inertial.origin),
        shapes,
    )


def place_of(pose: Origin) -> Place:
    """An ``<origin>`` as a place."""
    return Place(pose.rotation, np.array(pose.position), _precise(pose))


def _precise(pose: Origin) -> Callable[[], PrecisePose]:
    def compute() -> PrecisePose:
        turned = from_rpy([n.exact for n in pose.rpy])
        return turned, [to_decimal(n.exact) for n in pose.xyz]

    return compute


# -- collision primitives; they only inform, so what cannot be read is treated as unknown ----------


def _shapes(link: Element) -> tuple[Shape, ...] | None:
    found = [_shape(collision) for collision in link.all("collision")]
    known = [shape for shape in found if shape is not None]
    return tuple(known) if known and len(known) == len(found) else None


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
    return primitive(element.tag, size, float_rpy(rpy), np.array(xyz))


def _size(element: Element) -> list[float] | None:
    if element.tag == "box":
        size = _floats(element, "size")
        return size if len(size) == 3 else None
    if element.tag == "sphere":
        return _floats(element, "radius", "")
    if element.tag in ("cylinder", "capsule"):
        return _floats(element, "radius", "") + _floats(element, "length", "")
    return None


def _floats(element: Element, attribute: str, default: str = "0 0 0") -> list[float]:
    text = element.attributes.get(attribute, default)
    return [Number.of(token).value for token in text.split()]
