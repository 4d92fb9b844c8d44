"""What a URDF file says, in the form that all formats share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from feasid.errors import did_you_mean
from feasid.exact.decimals import Number, quote
from feasid.formats.description import Bond, Description, Joint, Link, pose_of_numbers
from feasid.formats.shapes import Shape, primitive
from feasid.formats.urdf.read import Urdf, UrdfJoint, UrdfLink, depth_first, urdf_of
from feasid.formats.xml import LIMITS, Element, ReadLimits, XmlText
from feasid.robot.bodies import Limits
from feasid.robot.rotations import from_rpy

KINDS = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic",
         "planar": "planar", "floating": "floating"}  # fmt: skip
"""Kind of joint per type of URDF."""

AXIS_TOLERANCE = 1e-5
"""An axis whose length is off by more than this is noted; the rest is rounding in the file."""


def describe_urdf(text: XmlText, limits: ReadLimits = LIMITS) -> Description:
    """The description of a parsed URDF file; see `parse_urdf` for what is raised."""
    urdf = urdf_of(text)
    above = urdf.joint_above()
    notes = [*urdf.notes]
    bonds = tuple(_bonds(urdf, notes))
    links = tuple(_link(urdf, link, above.get(name), notes) for name, link in urdf.links.items())
    return Description(
        "urdf",
        text.path,
        urdf.name,
        links,
        tuple(depth_first(urdf)),
        bonds=bonds,
        notes=tuple(notes),
        left_out=urdf.left_out,
        has_frames=True,
        text=text,
        document=urdf,
    )


def _link(urdf: Urdf, link: UrdfLink, joint: UrdfJoint | None, notes: list[str]) -> Link:
    element, inertial = link.element, link.inertial
    out = Link(
        link.name,
        urdf.text.path,
        element.line,
        partial(urdf.text.place, element),
        collisions=partial(_shapes, element, "collision"),
        visuals=partial(_shapes, element, "visual"),
        has_geometry=any(c.tag in ("visual", "collision") for c in element.children),
    )
    if joint is not None:
        moves = () if joint.type == "fixed" else (_joint(urdf, joint, notes),)
        out = replace(
            out,
            parent=joint.parent,
            home=pose_of_numbers(joint.origin.xyz, joint.origin.rpy),
            joints=moves,
        )
    if inertial is None:
        return out
    return replace(
        out,
        line=inertial.element.line,
        locate=partial(urdf.text.place, inertial.element),
        mass=inertial.mass.exact,
        moments=tuple(n.exact for n in inertial.moments),
        place=pose_of_numbers(inertial.origin.xyz, inertial.origin.rpy),
    )


def _joint(urdf: Urdf, joint: UrdfJoint, notes: list[str]) -> Joint:
    axis = np.array(joint.axis)
    length = math.sqrt(float(axis @ axis))
    if joint.type != "floating" and abs(length - 1) > AXIS_TOLERANCE:
        element = joint.element.find("axis") or joint.element
        notes.append(
            f"{urdf.text.path}:{element.line}: joint {joint.name!r}: the axis has length "
            f"{length:.6g} and was normalised"
        )
    given = dict(joint.limits)
    if joint.type == "continuous":
        given.pop("lower", None)
        given.pop("upper", None)
    return Joint(
        joint.name,
        KINDS[joint.type],
        axis,
        limits=Limits(**given),
        terms=joint.terms,
        place=f"{urdf.text.path}:{joint.element.line}",
    )


def _bonds(urdf: Urdf, notes: list[str]) -> Iterator[Bond]:
    """The file's ``<mimic>`` elements; what cannot be followed is noted.

    A joint that mimics a fixed one is held at its offset. One that mimics a joint which does not
    exist moves by itself, as in other readers, and is noted.
    """
    for joint in urdf.joints.values():
        if joint.mimic is None:
            continue
        leader = urdf.joints.get(joint.mimic.joint)
        if leader is None:
            hint = did_you_mean(joint.mimic.joint, urdf.joints)
            notes.append(
                f"{urdf.text.path}:{joint.mimic.element.line}: joint {joint.name!r} mimics "
                f"{quote(joint.mimic.joint)}, which does not exist{hint}, and is taken to move by "
                "itself"
            )
            continue
        if {joint.type, leader.type} & {"floating", "planar"}:
            urdf.text.fail(
                f"joint {joint.name!r}: <mimic> {joint.type} joints do not follow {leader.type} "
                f"ones",
                joint.mimic.element,
                "joint",
                joint=joint.name,
            )
        second = "" if leader.type == "fixed" else leader.name
        factors = joint.mimic.offset, joint.mimic.multiplier
        yield Bond("joint", f"mimic of {joint.name}", joint.name, second, factors)


# -- shapes: what cannot be read is treated as unknown ---------------------------------------------


def _shapes(link: Element, tag: str) -> list[Shape | None]:
    """A link's geometries under this tag in its frame, None for each that is no known primitive."""
    return [_shape(element) for element in link.all(tag)]


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
    return [Number.parse(token).value for token in text.split()]
