"""A URDF file in the form in which links are inspected."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from feasid.exact.poses import PrecisePose, from_rpy, to_decimal
from feasid.formats.primitives import Shape
from feasid.formats.terms import negative_notes
from feasid.formats.urdf.read import Origin, Urdf, UrdfLink, depth_first, urdf_of
from feasid.formats.urdf.shapes import collisions
from feasid.formats.xml import Element, XmlText
from feasid.inspection.model import Link, Model, Place, grouped


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
    joints = ((f"{text.path}:{j.element.line}", j.name, j.terms) for j in urdf.joints.values())
    notes = (*urdf.notes, *negative_notes(joints))
    return Model(text.path, "urdf", urdf.name, tuple(links.values()), base, tuple(bodies), notes)


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


def _shapes(link: Element) -> tuple[Shape, ...] | None:
    """Collision primitives; they only inform, so a shape that is not known hides all."""
    found = collisions(link)
    known = tuple(shape for shape in found if shape is not None)
    return known if known and len(known) == len(found) else None
