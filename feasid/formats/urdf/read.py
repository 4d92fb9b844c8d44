"""URDF files, read strictly: links, joints and every number in them, with their places.

What is read here is what a file *says*; `feasid.formats.urdf.describe` makes a `Description` of it.
Transmissions and simulator tags are
left alone, meshes are never opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from feasid.core.arrays import Array
from feasid.errors import UnsupportedJointError, did_you_mean
from feasid.exact.decimals import Number, quote
from feasid.formats.description import MAX_NAME
from feasid.formats.terms import JointTerms, LeftOut
from feasid.formats.xml import LIMITS, Element, ReadLimits, XmlText, parse_xml
from feasid.robot.rotations import from_rpy

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")

MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
"""Attributes of ``<inertia>``, in the order of `feasid.robot.inertia.SYMBOLS`."""

DYNAMICS = ("damping", "friction")
"""Attributes of ``<dynamics>`` that are read."""

KNOWN = {
    "robot": ("link", "joint", "material"),
    "link": ("inertial", "visual", "collision"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
}
"""Children that are read, or only show what a robot looks like; all others are listed."""

ZERO = Number("0", 0.0)

Triple = tuple[Number, Number, Number]


@dataclass(frozen=True, eq=False)
class Origin:
    """An ``<origin>``: position [m] and fixed-axis roll, pitch, yaw [rad]."""

    xyz: Triple = (ZERO, ZERO, ZERO)
    rpy: Triple = (ZERO, ZERO, ZERO)
    element: Element | None = None

    @property
    def position(self) -> tuple[float, float, float]:
        """Position as floats [m]."""
        return self.xyz[0].value, self.xyz[1].value, self.xyz[2].value

    @property
    def rotation(self) -> Array:
        """Rotation matrix, shape (3, 3)."""
        return from_rpy([n.value for n in self.rpy])


@dataclass(frozen=True, eq=False)
class UrdfInertial:
    """An ``<inertial>``: mass, and inertia about the centre of mass in the axes of `origin`."""

    element: Element
    origin: Origin
    mass: Number
    moments: tuple[Number, ...]
    """ixx ixy ixz iyy iyz izz [kg m^2]."""
    mass_element: Element
    inertia_element: Element


@dataclass(frozen=True, eq=False)
class UrdfLink:
    """A ``<link>``."""

    name: str
    element: Element
    inertial: UrdfInertial | None


@dataclass(frozen=True, eq=False)
class Mimic:
    """A ``<mimic>``: q = multiplier q_joint + offset."""

    element: Element
    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class UrdfJoint:
    """A ``<joint>``; `axis`, `limits` and `dynamics` are read for moving joints only."""

    name: str
    element: Element
    type: str
    parent: str
    child: str
    origin: Origin
    axis: tuple[float, float, float] = (1.0, 0.0, 0.0)
    limits: dict[str, float] = field(default_factory=dict)
    dynamics: dict[str, float] = field(default_factory=dict)
    mimic: Mimic | None = None

    @property
    def terms(self) -> JointTerms:
        """Viscous and Coulomb friction of ``<dynamics>``."""
        given = self.dynamics
        return JointTerms(viscous=given.get("damping", 0.0), coulomb=given.get("friction", 0.0))


@dataclass(frozen=True, eq=False)
class Urdf:
    """A URDF file: its text, links and joints by name in the order of the file."""

    text: XmlText
    name: str
    links: dict[str, UrdfLink]
    joints: dict[str, UrdfJoint]
    notes: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def joint_above(self) -> dict[str, UrdfJoint]:
        """The joint that carries each link, by the link's name; the root has none."""
        return {j.child: j for j in self.joints.values()}

    @property
    def root(self) -> UrdfLink:
        """The link that no joint carries."""
        carried = self.joint_above()
        return next(link for name, link in self.links.items() if name not in carried)


def parse_urdf(data: bytes, path: str = "<text>", limits: ReadLimits = LIMITS) -> Urdf:
    """Read the bytes of a URDF file.

    Raises
    ------
    DescriptionError
        Names file, line, column, the link or joint and the attribute, and what is wrong there:
        numbers that are not finite decimals, names that are doubled or unknown, joints that do
        not make one tree.
    UnsupportedJointError
        A joint type that does not exist.
    SecurityError, LimitError
        See `feasid.formats.xml.parse_xml`.
    """
    return urdf_of(parse_xml(data, path, limits))


def urdf_of(text: XmlText) -> Urdf:
    """Read a parsed file as URDF."""
    reader = _UrdfReader(text)
    reader.check_root()
    root = text.root
    links = reader.read_named("link", root.all("link"), reader.link)
    joints = reader.read_named("joint", root.all("joint"), reader.joint)
    if not links:
        text.fail("the robot has no links", root)
    reader.check_tree(links, joints)
    name = root.attributes.get("name", "robot")
    return Urdf(text, name, links, joints, tuple(reader.notes), tuple(left_out(root)))


class _UrdfReader:
    """Reads elements of one file; every complaint names the link or joint it is about."""

    def __init__(self, text: XmlText) -> None:
        self.text = text
        self.notes: list[str] = []

    def check_root(self) -> None:
        root = self.text.root
        if root.tag != "robot":
            known = " (this is MJCF)" if root.tag == "mujoco" else ""
            self.text.fail(f"root is <{root.tag}>, expected <robot>{known}", root)
        for element in root.walk():
            if element.tag.startswith("xacro:"):
                path = self.text.path
                self.text.fail(
                    f"<{element.tag}> is xacro, not URDF: run xacro first "
                    f"(xacro {path} > robot.urdf)",
                    element,
                )

    def read_named(self, kind: str, elements: Sequence[Element], read: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for element in elements:
            name = element.attributes.get("name", "")
            if not name:
                self.text.fail(f"a <{kind}> has no name", element)
            if len(name) > MAX_NAME:
                self.text.fail(
                    f"{kind} name {quote(name)} is longer than {MAX_NAME} characters", element
                )
            if name in found:
                first = found[name].element.line
                data: dict[str, Any] = {kind: name, "first_line": first}
                self.text.fail(
                    f"{kind} {name!r} is defined twice: here and on line {first}", element, **data
                )
            found[name] = read(name, element)
        return found

    # -- numbers ------------------------------------------------------------------------------

    def numbers(
        self, element: Element, attribute: str, count: int, owner: dict[str, str], default: str = ""
    ) -> tuple[Number, ...]:
        """`count` numbers of an attribute."""
        text = element.attributes.get(attribute, default)
        tokens = text.split() if count > 1 else [text.strip()]
        if not text and attribute not in element.attributes:
            self.fail(f"<{element.tag}> lacks {attribute!r}", element, None, owner)
        if len(tokens) != count:
            what = f"{attribute}={quote(text)} has {len(tokens)} numbers, expected {count}"
            self.fail(what, element, attribute, owner)
        try:
            return tuple(Number.parse(token) for token in tokens)
        except ValueError as error:
            self.fail(f"{attribute}: {error}", element, attribute, owner)

    def number(self, element: Element, attribute: str, owner: dict[str, str]) -> Number:
        return self.numbers(element, attribute, 1, owner)[0]

    def fail(
        self, message: str, element: Element, attribute: str | None, owner: dict[str, str]
    ) -> NoReturn:
        where = ", ".join(f"{kind} {name!r}" for kind, name in owner.items())
        tag = "" if element.tag in owner else f" <{element.tag}>"
        data: dict[str, Any] = dict(owner)
        self.text.fail(f"{where}:{tag} {message}", element, attribute, **data)

    def pose(self, parent: Element, owner: dict[str, str]) -> Origin:
        element = self.only(parent, "origin", owner)
        if element is None:
            return Origin()
        xyz = self.numbers(element, "xyz", 3, owner, "0 0 0")
        rpy = self.numbers(element, "rpy", 3, owner, "0 0 0")
        return Origin((xyz[0], xyz[1], xyz[2]), (rpy[0], rpy[1], rpy[2]), element)

    def only(self, parent: Element, tag: str, owner: dict[str, str]) -> Element | None:
        found = parent.all(tag)
        if len(found) > 1 and tag == "origin" and parent.tag == "joint":
            where = f"{self.text.path}:{found[1].line}"
            self.notes.append(
                f"{where}: joint {owner['joint']!r} has a second <origin>; the first, on line "
                f"{found[0].line}, counts, as in other readers"
            )
        elif len(found) > 1:
            self.fail(
                f"a second <{tag}>; the first is on line {found[0].line}", found[1], None, owner
            )
        return found[0] if found else None

    # -- links --------------------------------------------------------------------------------

    def link(self, name: str, element: Element) -> UrdfLink:
        owner = {"link": name}
        inertial = self.only(element, "inertial", owner)
        return UrdfLink(name, element, self.inertial(inertial, owner) if inertial else None)

    def inertial(self, element: Element, owner: dict[str, str]) -> UrdfInertial:
        mass = self.only(element, "mass", owner)
        inertia = self.only(element, "inertia", owner)
        if mass is None or inertia is None:
            missing = "mass" if mass is None else "inertia"
            self.fail(f"needs a <{missing}>", element, None, owner)
        return UrdfInertial(
            element,
            self.pose(element, owner),
            self.number(mass, "value", owner),
            tuple(self.number(inertia, name, owner) for name in MOMENTS),
            mass,
            inertia,
        )

    # -- joints -------------------------------------------------------------------------------

    def joint(self, name: str, element: Element) -> UrdfJoint:
        owner = {"joint": name}
        kind = element.attributes.get("type", "")
        if kind not in JOINT_TYPES:
            hint = did_you_mean(kind, JOINT_TYPES)
            self.text.fail(
                f"joint {name!r} has type {quote(kind)}{hint}; known are {', '.join(JOINT_TYPES)}",
                element,
                "type",
                UnsupportedJointError,
                joint=name,
            )
        ends = {}
        for end in ("parent", "child"):
            found = self.only(element, end, owner)
            if found is None or not found.attributes.get("link"):
                self.fail(f"needs a <{end} link=...>", element, None, owner)
            ends[end] = found.attributes["link"]
        joint = UrdfJoint(
            name, element, kind, ends["parent"], ends["child"], self.pose(element, owner)
        )
        return joint if kind == "fixed" else self.moving(joint)

    def moving(self, joint: UrdfJoint) -> UrdfJoint:
        element, owner = joint.element, {"joint": joint.name}
        axis = self.only(element, "axis", owner)
        direction = joint.axis
        if axis is not None and joint.type != "floating":
            x, y, z = self.numbers(axis, "xyz", 3, owner, "1 0 0")
            direction = x.value, y.value, z.value
            if not any(direction):
                self.fail("xyz: the axis is zero", axis, "xyz", owner)
        return replace(
            joint,
            axis=direction,
            limits=self.optional(element, "limit", owner),
            dynamics=self.optional(element, "dynamics", owner),
            mimic=self.mimic(element, owner),
        )

    def mimic(self, parent: Element, owner: dict[str, str]) -> Mimic | None:
        """The joint that this one follows; None if it moves by itself."""
        element = self.only(parent, "mimic", owner)
        if element is None:
            return None
        if not element.attributes.get("joint"):
            self.fail("lacks 'joint'", element, "joint", owner)
        factor, offset = (
            self.numbers(element, name, 1, owner, default)[0].value
            for name, default in (("multiplier", "1"), ("offset", "0"))
        )
        return Mimic(element, element.attributes["joint"], factor, offset)

    def optional(self, parent: Element, tag: str, owner: dict[str, str]) -> dict[str, float]:
        """The numbers of ``<limit>`` or ``<dynamics>``, those that are there."""
        wanted = {
            "limit": ("lower", "upper", "velocity", "effort"),
            "dynamics": DYNAMICS,
        }[tag]
        element = self.only(parent, tag, owner)
        if element is None:
            return {}
        present = [name for name in wanted if name in element.attributes]
        return {name: self.number(element, name, owner).value for name in present}

    # -- the tree -----------------------------------------------------------------------------

    def check_tree(self, links: dict[str, UrdfLink], joints: dict[str, UrdfJoint]) -> None:
        carried: dict[str, UrdfJoint] = {}
        for joint in joints.values():
            self.check_ends(joint, links)
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
        self.check_cycle(links, carried)
        roots = [link for name, link in links.items() if name not in carried]
        if len(roots) > 1:
            self.text.fail(
                f"link {roots[1].name!r} and link {roots[0].name!r} on line "
                f"{roots[0].element.line} both have no parent joint: a robot has one root",
                roots[1].element,
                link=roots[1].name,
                first_line=roots[0].element.line,
            )

    def check_ends(self, joint: UrdfJoint, links: dict[str, UrdfLink]) -> None:
        for end in ("parent", "child"):
            name = getattr(joint, end)
            if name not in links:
                element = joint.element.find(end) or joint.element
                hint = did_you_mean(name, links)
                message = f"joint {joint.name!r}: its {end} link {quote(name)} does not exist{hint}"
                self.text.fail(message, element, "link", joint=joint.name, link=name)
        if joint.parent == joint.child:
            self.text.fail(
                f"joint {joint.name!r} connects link {joint.parent!r} with itself",
                joint.element,
                joint=joint.name,
                link=joint.parent,
            )

    def check_cycle(self, links: dict[str, UrdfLink], carried: dict[str, UrdfJoint]) -> None:
        safe: set[str] = set()
        for name in links:
            way: list[str] = []
            seen: set[str] = set()
            while name in carried and name not in safe:
                if name in seen:
                    cycle = [*way[way.index(name) :], name]
                    joint, other = carried[name], carried[cycle[1]]
                    self.text.fail(
                        f"joints form a cycle through links {' <- '.join(map(repr, cycle[:6]))}: "
                        f"joint {joint.name!r} here and joint {other.name!r} on line "
                        f"{other.element.line}",
                        joint.element,
                        joint=joint.name,
                        first_line=other.element.line,
                    )
                seen.add(name)
                way.append(name)
                name = carried[name].parent
            safe.update(way)


def depth_first(urdf: Urdf) -> list[str]:
    """Names of all links, depth first from the root, children in the order of the file."""
    below: dict[str, list[str]] = {}
    for joint in urdf.joints.values():
        below.setdefault(joint.parent, []).append(joint.child)
    order, waiting = [], [urdf.root.name]
    while waiting:
        name = waiting.pop()
        order.append(name)
        waiting.extend(reversed(below.get(name, [])))
    return order


def left_out(root: Element) -> Iterator[LeftOut]:
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
                    if attribute not in DYNAMICS:
                        yield LeftOut(f"<dynamics {attribute}=>", owner)
