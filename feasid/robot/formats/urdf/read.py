"""URDF files, read strictly: links, joints and every number in them, with their places.

Transmissions and simulator tags are left alone, meshes are never opened.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np

from feasid.core.errors import UnsupportedJointError, did_you_mean
from feasid.core.exact.numbers import Number, quote
from feasid.robot.bodies import Limits
from feasid.robot.formats import description
from feasid.robot.formats.shapes import DRAWN, Drawing, Mesh, Shape, primitive_shape
from feasid.robot.formats.terms import JointTerms, LeftOut
from feasid.robot.formats.urdf import DYNAMICS
from feasid.robot.formats.xml import Element, XmlText
from feasid.robot.rotations import from_rpy

KINDS = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "fixed": "",
         "floating": "floating", "planar": "planar"}  # fmt: skip
"""Kind of joint per type of URDF."""

NUMBERS = {"limit": ("lower", "upper", "velocity", "effort"), "dynamics": (*DYNAMICS,)}
"""Attributes that are read, per element."""

KNOWN = {
    "robot": ("link", "joint", "material"),
    "link": ("inertial", "visual", "collision"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
}
"""Children that are read, or only show what a robot looks like; all others are listed."""

AXIS_TOLERANCE = 1e-5
"""An axis whose length is off by more than this is noted; the rest is rounding in the file."""

Owner = dict[str, str]
"""The link or joint concerned by an error."""


@dataclass(frozen=True, eq=False)
class _Joint:
    """A ``<joint>`` with its ends; `mimic` has the element, the leader and its numbers."""

    name: str
    element: Element
    type: str
    parent: str
    child: str
    home: description.ExactPose
    moves: tuple[description.Joint, ...] = ()
    mimic: tuple[Element, str, tuple[float, float]] | None = None


def describe_urdf(text: XmlText) -> description.Description:
    """The description of a parsed URDF file; errors as of `registry.read_description`."""
    return _UrdfReader(text).read()


class _UrdfReader:
    """Reads elements of one file; every complaint names the link or joint it is about."""

    def __init__(self, text: XmlText) -> None:
        self.text = text
        self.notes: list[str] = []
        self.axes: dict[str, str] = {}
        self.above: dict[str, _Joint] = {}

    def read(self) -> description.Description:
        text, root = self.text, self.text.root
        for element in root.walk():
            if element.tag.startswith("xacro:"):
                what = f"<{element.tag}> is xacro, not URDF"
                text.fail(f"{what}: run xacro first (xacro {text.path} > robot.urdf)", element)
        elements = self.named_elements("link")
        links = [self.link(name, element) for name, element in elements.items()]
        joint_elements = self.named_elements("joint")
        joints = {name: self.joint(name, element) for name, element in joint_elements.items()}
        if not elements:
            text.fail("the robot has no links", root)
        self.check_tree(elements, joints)
        for k, link in enumerate(links):
            if joint := self.above.get(link.name):
                links[k] = replace(link, parent=joint.parent, home=joint.home, joints=joint.moves)
        bonds = tuple(self.mimic_bonds(joints))
        roots = [name for name in elements if name not in self.above]
        parents = {name: joint.parent for name, joint in self.above.items()}
        self.notes += [self.axes[name] for name in elements if name in self.axes]
        return description.Description(
            "urdf",
            text.path,
            root.attributes.get("name", "robot"),
            tuple(links),
            tuple(description.depth_first(roots, parents)),
            bonds=bonds,
            notes=tuple(self.notes),
            left_out=tuple(unread_elements(root)),
            has_frames=True,
            document=description.NamedElements(text, elements, joint_elements),
        )

    def named_elements(self, kind: str) -> dict[str, Element]:
        elements: dict[str, Element] = {}
        for element in self.text.root.all(kind):
            name = element.attributes.get("name", "")
            if not name:
                self.text.fail(f"a <{kind}> has no name", element)
            if len(name) > description.MAX_NAME:
                self.text.fail(
                    f"{kind} name {quote(name)} is longer than {description.MAX_NAME} characters",
                    element,
                )
            if name in elements:
                first = elements[name].line
                data: dict[str, Any] = {kind: name, "first_line": first}
                self.text.fail(
                    f"{kind} {name!r} is defined twice: here and on line {first}", element, **data
                )
            elements[name] = element
        return elements

    # -- numbers ------------------------------------------------------------------------------

    def numbers(
        self, element: Element, attribute: str, count: int, owner: Owner, default: str = ""
    ) -> tuple[Number, ...]:
        """`count` numbers of an attribute."""
        text = element.attributes.get(attribute, default)
        tokens = text.split() if count > 1 else [text.strip()]
        if not text and attribute not in element.attributes:
            self.fail(f"<{element.tag}> lacks {attribute!r}", element, None, owner)
        if len(tokens) != count:
            what = f"{attribute}={quote(text)} has {len(tokens)} numbers, expected {count}"
            self.fail(what, element, attribute, owner)
        # No dynamics depend on limits, which may be infinite.
        parse = Number.limit if element.tag == "limit" else Number.parse
        try:
            return tuple(parse(token) for token in tokens)
        except ValueError as error:
            self.fail(f"{attribute}: {error}", element, attribute, owner)

    def fail(self, message: str, element: Element, attribute: str | None, owner: Owner) -> NoReturn:
        where = ", ".join(f"{kind} {name!r}" for kind, name in owner.items())
        tag = "" if element.tag in owner else f" <{element.tag}>"
        data: dict[str, Any] = dict(owner)
        self.text.fail(f"{where}:{tag} {message}", element, attribute, **data)

    def pose(self, parent: Element, owner: Owner) -> description.ExactPose:
        element = self.single_child(parent, "origin", owner)
        if element is None:
            zeros = (Number("0", 0.0),) * 3
            return description.pose_of_numbers(zeros, zeros)
        xyz, rpy = (self.numbers(element, name, 3, owner, "0 0 0") for name in ("xyz", "rpy"))
        return description.pose_of_numbers(xyz, rpy)

    def single_child(self, parent: Element, tag: str, owner: Owner) -> Element | None:
        children = parent.all(tag)
        if len(children) > 1 and tag == "origin" and parent.tag == "joint":
            where = f"{self.text.path}:{children[1].line}"
            self.notes.append(
                f"{where}: joint {owner['joint']!r} has a second <origin>; the first, on line "
                f"{children[0].line}, counts, as in other readers"
            )
        elif len(children) > 1:
            what = f"a second <{tag}>; the first is on line {children[0].line}"
            self.fail(what, children[1], None, owner)
        return children[0] if children else None

    def attribute_numbers(self, parent: Element, tag: str, owner: Owner) -> dict[str, float]:
        """The numbers of ``<limit>`` or ``<dynamics>``, those that are there."""
        element = self.single_child(parent, tag, owner)
        if element is None:
            return {}
        present = [name for name in NUMBERS[tag] if name in element.attributes]
        return {name: self.numbers(element, name, 1, owner)[0].value for name in present}

    # -- links --------------------------------------------------------------------------------

    def link(self, name: str, element: Element) -> description.Link:
        owner = {"link": name}
        inertial = self.single_child(element, "inertial", owner)
        stated = element if inertial is None else inertial
        out = description.Link(
            name,
            self.text.path,
            stated.line,
            partial(self.text.place, stated),
            drawings=partial(_drawings, element),
        )
        if inertial is None:
            return out
        mass, inertia = (self.single_child(inertial, tag, owner) for tag in ("mass", "inertia"))
        if mass is None or inertia is None:
            missing = "mass" if mass is None else "inertia"
            self.fail(f"needs a <{missing}>", inertial, None, owner)
        return replace(
            out,
            place=self.pose(inertial, owner),
            mass=self.numbers(mass, "value", 1, owner)[0].exact,
            moments=tuple(self.numbers(inertia, k, 1, owner)[0].exact for k in description.MOMENTS),
        )

    # -- joints -------------------------------------------------------------------------------

    def joint(self, name: str, element: Element) -> _Joint:
        owner = {"joint": name}
        kind = element.attributes.get("type", "")
        if kind not in KINDS:
            self.text.fail(
                f"joint {name!r} has type {quote(kind)}{did_you_mean(kind, KINDS)}; known are "
                f"{', '.join(KINDS)}",
                element,
                "type",
                UnsupportedJointError,
                joint=name,
            )
        ends = {}
        for end in ("parent", "child"):
            child = self.single_child(element, end, owner)
            if child is None or not child.attributes.get("link"):
                self.fail(f"needs a <{end} link=...>", element, None, owner)
            ends[end] = child.attributes["link"]
        home = self.pose(element, owner)
        joint = _Joint(name, element, kind, ends["parent"], ends["child"], home)
        if kind == "fixed":
            return joint
        axis = self.single_child(element, "axis", owner)
        direction = np.array([1.0, 0.0, 0.0])
        if axis is not None and kind != "floating":
            direction = np.array([n.value for n in self.numbers(axis, "xyz", 3, owner, "1 0 0")])
            if not direction.any():
                self.fail("xyz: the axis is zero", axis, "xyz", owner)
        length = math.sqrt(float(direction @ direction))
        if abs(length - 1) > AXIS_TOLERANCE:
            line = (axis or element).line
            self.axes[joint.child] = (
                f"{self.text.path}:{line}: joint {name!r}: the axis has length {length:.6g} "
                f"and was normalised"
            )
        limits = self.attribute_numbers(element, "limit", owner)
        if kind == "continuous":  # it has none, whatever exporters write for the other numbers
            limits = {k: v for k, v in limits.items() if k not in ("lower", "upper")}
        dynamics = self.attribute_numbers(element, "dynamics", owner)
        moving = description.Joint(
            name,
            KINDS[kind],
            direction,
            limits=Limits(**limits),
            terms=JointTerms(**{DYNAMICS[name]: value for name, value in dynamics.items()}),
            place=f"{self.text.path}:{element.line}",
        )
        return replace(joint, moves=(moving,), mimic=self.mimic(element, owner))

    def mimic(
        self, parent: Element, owner: Owner
    ) -> tuple[Element, str, tuple[float, float]] | None:
        """The joint that this one follows, offset and factor; None if it moves by itself."""
        element = self.single_child(parent, "mimic", owner)
        if element is None:
            return None
        if not element.attributes.get("joint"):
            self.fail("lacks 'joint'", element, "joint", owner)
        factor, offset = (
            self.numbers(element, name, 1, owner, default)[0].value
            for name, default in (("multiplier", "1"), ("offset", "0"))
        )
        return element, element.attributes["joint"], (offset, factor)

    def mimic_bonds(self, joints: dict[str, _Joint]) -> Iterator[description.Bond]:
        """The file's ``<mimic>`` elements, with a note on those that cannot be followed.

        A joint that mimics a fixed one is held at its offset. One that mimics a joint which does
        not exist moves by itself, as in other readers, and is noted.
        """
        for joint in joints.values():
            if joint.mimic is None:
                continue
            element, name, factors = joint.mimic
            leader = joints.get(name)
            if leader is None:
                self.notes.append(
                    f"{self.text.path}:{element.line}: joint {joint.name!r} mimics {quote(name)}, "
                    f"which does not exist{did_you_mean(name, joints)}, and is taken to move by "
                    f"itself"
                )
                continue
            if {joint.type, leader.type} & {"floating", "planar"}:
                self.text.fail(
                    f"joint {joint.name!r}: <mimic> {joint.type} joints do not follow "
                    f"{leader.type} ones",
                    element,
                    "joint",
                    joint=joint.name,
                )
            second = "" if leader.type == "fixed" else leader.name
            yield description.Bond("joint", f"mimic of {joint.name}", joint.name, second, factors)

    # -- the tree -----------------------------------------------------------------------------

    def check_tree(self, links: dict[str, Element], joints: dict[str, _Joint]) -> None:
        """Fill `above`; raise an error if the joints do not form one tree."""
        carried = self.above
        for joint in joints.values():
            for end in ("parent", "child"):
                name = getattr(joint, end)
                if name not in links:
                    what = f"its {end} link {quote(name)} does not exist{did_you_mean(name, links)}"
                    self.text.fail(
                        f"joint {joint.name!r}: {what}",
                        joint.element.find(end) or joint.element,
                        "link",
                        joint=joint.name,
                        link=name,
                    )
            if joint.parent == joint.child:
                self.text.fail(
                    f"joint {joint.name!r} connects link {joint.parent!r} with itself",
                    joint.element,
                    joint=joint.name,
                    link=joint.parent,
                )
            if joint.child in carried:
                first = carried[joint.child]
                self.text.fail(
                    f"link {joint.child!r} is the child of two joints: {joint.name!r} here and "
                    f"{first.name!r} on line {first.element.line}",
                    joint.element,
                    link=joint.child,
                    joint=joint.name,
                    first_line=first.element.line,
                )
            carried[joint.child] = joint
        roots = [link for name, link in links.items() if name not in carried]
        parents = {name: joint.parent for name, joint in carried.items()}
        hung = {*description.depth_first((x.attributes["name"] for x in roots), parents)}
        if loose := [name for name in links if name not in hung]:
            places = {n: f"joint {j.name!r} on line {j.element.line}" for n, j in carried.items()}
            message, joint = description.describe_cycle(parents, hung, places), carried[loose[0]]
            self.text.fail(message, joint.element, joint=joint.name)
        if len(roots) > 1:
            self.text.fail(
                f"link {roots[1].attributes['name']!r} and link {roots[0].attributes['name']!r} on "
                f"line {roots[0].line} both have no parent joint: a robot has one root",
                roots[1],
                link=roots[1].attributes["name"],
                first_line=roots[0].line,
            )


def unread_elements(root: Element) -> Iterator[LeftOut]:
    """Everything that is neither read nor appearance."""
    for element in (root, *root.children):
        if element.tag not in KNOWN:
            continue
        owner = element.attributes.get("name", "")
        for child in element.children:
            if child.tag not in KNOWN[element.tag]:
                known = child.attributes
                name = known.get("name", known.get("reference", owner if element != root else ""))
                yield LeftOut(f"<{child.tag}>", name)
            elif child.tag == "dynamics":
                for attribute in child.attributes:
                    if attribute not in NUMBERS["dynamics"]:
                        yield LeftOut(f"<dynamics {attribute}=>", owner)


# -- shapes: what cannot be read is treated as unknown ---------------------------------------------

SIZES = {
    "box": {"size": 3},
    "sphere": {"radius": 1},
    "cylinder": {"radius": 1, "length": 1},
    "capsule": {"radius": 1, "length": 1},
    "mesh": {"scale": 3},
}
"""Attributes of a shape's size, and how many numbers each has."""


def _drawings(link: Element) -> list[Drawing]:
    materials = [] if link.parent is None else link.parent.all("material")
    named = {m.attributes.get("name", ""): c for m in materials if (c := m.find("color"))}
    out = []
    for drawing in (child for child in link.children if child.tag in DRAWN):
        # The colour is that of its own material, or of the robot's that has the name.
        material = drawing.find("material")
        if material is not None:
            material = material.find("color") or named.get(material.attributes.get("name", ""))
        try:
            colour = [] if material is None else _parse_floats(material, "rgba", 4, "")
        except ValueError:
            colour = []
        out.append(Drawing(drawing.tag, _shape(drawing), tuple(colour)))
    return out


def _shape(drawing: Element) -> Shape | Mesh | None:
    """A geometry in its link's frame, None for an unknown one; a mesh whose place or scale cannot
    be read has no name.
    """
    geometry, origin = drawing.find("geometry"), drawing.find("origin")
    if geometry is None or len(geometry.children) != 1:
        return None
    (element,) = geometry.children
    size: list[float] = []
    try:
        xyz, rpy = (
            [0.0] * 3 if origin is None else _parse_floats(origin, name, 3, "0 0 0")
            for name in ("xyz", "rpy")
        )
        for attribute, count in SIZES.get(element.tag, {}).items():
            default = "1 1 1" if attribute == "scale" else ""
            size += _parse_floats(element, attribute, count, default)
    except ValueError:
        return Mesh("", np.ones(3), np.eye(3), np.zeros(3)) if element.tag == "mesh" else None
    place = from_rpy(rpy), np.array(xyz)
    if element.tag == "mesh":
        return Mesh(element.attributes.get("filename", ""), np.array(size), *place)
    return primitive_shape(element.tag, size, *place) if size else None


def _parse_floats(element: Element, attribute: str, count: int, default: str) -> list[float]:
    tokens = element.attributes.get(attribute, default).split()
    if len(tokens) != count:
        raise ValueError(f"{attribute} has {len(tokens)} numbers, not {count}")
    return [Number.parse(token).value for token in tokens]
