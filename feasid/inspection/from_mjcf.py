"""An MJCF file in the form in which links are inspected."""

from __future__ import annotations

from functools import partial

from feasid.formats.mjcf.geoms import WEIGHTLESS
from feasid.formats.mjcf.inertia import stated
from feasid.formats.mjcf.model import Mjcf, MjcfBody
from feasid.formats.mjcf.pose import MjcfPose
from feasid.formats.mjcf.read import mjcf_of
from feasid.formats.mjcf.shapes import solid_primitive
from feasid.formats.primitives import Shape
from feasid.formats.terms import negative_notes
from feasid.formats.xml import LIMITS, ReadLimits, XmlText
from feasid.inspection.model import Link, Model, Place, grouped

WORLD = "world"


def model_of_mjcf(text: XmlText, limits: ReadLimits = LIMITS) -> Model:
    """Bodies of a parsed MJCF file as links, welded ones grouped with what carries them."""
    mjcf = mjcf_of(text, limits)
    links = [_link(mjcf, body) for body in mjcf.bodies]
    world = Link(WORLD, text.path, 0, lambda: (0, 0))
    rows: list[tuple[Link, str | None, Place | None, str | None]] = [(world, None, None, None)]
    for body, link in zip(mjcf.bodies, links, strict=True):
        moves = body.joints[-1].name if body.joints else None
        rows.append((link, body.parent or WORLD, place_of(body.pose), moves))
    base, *bodies = grouped(rows)
    return Model(
        text.path, "mjcf", mjcf.name, tuple(links), base, tuple(bodies), _notes(mjcf), mjcf.hidden
    )


def place_of(pose: MjcfPose) -> Place:
    """An MJCF pose as a place."""
    return Place(pose.rotation, pose.position, pose.precise)


def _notes(mjcf: Mjcf) -> tuple[str, ...]:
    joints = (
        (f"{mjcf.files.text(j.element).path}:{j.element.line}", j.name, j.terms)
        for body in mjcf.bodies
        for j in body.joints
    )
    negative = tuple(negative_notes(joints))
    if not mjcf.compiler.balances:
        return negative
    return (
        *negative,
        'compiler balanceinertia="true" replaces impossible inertias by the mean of their '
        "principal moments when the file is compiled",
    )


def _link(mjcf: Mjcf, body: MjcfBody) -> Link:
    shapes = _shapes(mjcf, body)
    given = body.inertial
    if given is not None and stated(body, mjcf.compiler):
        text = mjcf.files.text(given.element)
        return Link(
            body.name,
            text.path,
            given.element.line,
            partial(text.place, given.element),
            given.mass.exact,
            tuple(n.exact for n in given.moments),
            place_of(given.pose),
            shapes,
        )
    element = body.element
    text = mjcf.files.text(element)
    derived = mjcf.compiler.from_geoms != "false" and any(
        geom.attributes.get("type", "sphere") not in WEIGHTLESS for geom in body.geoms
    )
    return Link(
        body.name,
        text.path,
        element.line,
        partial(text.place, element),
        shapes=shapes,
        by_geometry=derived,
    )


def _shapes(mjcf: Mjcf, body: MjcfBody) -> tuple[Shape, ...] | None:
    """Solid primitives of a body; None when a geom is something else."""
    found = [solid_primitive(mjcf, body, geom) for geom in body.geoms]
    known = tuple(shape for shape in found if shape is not None)
    return known if known and len(known) == len(found) else None
