"""Contents of an MJCF file: files it includes, bodies, joints, geoms, inertias and settings.

Included files are read from inside the main file's folder only. What only MuJoCo's own compiler can
work out (meshes, replicated or attached parts, masses that it bounds) is listed as unknown
rather than guessed or ignored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from feasid.core.errors import InputError, SecurityError
from feasid.core.files import is_regular
from feasid.robot.formats.description import ExactPose, Joint
from feasid.robot.formats.terms import LeftOut, UnmodelledEffect
from feasid.robot.formats.xml import TEXT, Element, XmlText, parse_xml, read_bytes, size_error


class MjcfFiles:
    """A main MJCF file and its includes, read when they are met.

    Included files must lie in the main file's folder or below it, links resolved; each may be
    included once, as in MuJoCo. Nothing else is opened.
    """

    def __init__(self, main: XmlText) -> None:
        self.main, self.limits = main, main.limits
        self.folder = Path(main.path).resolve().parent
        self.texts = {id(main.root): main}
        self.chain: dict[Path, str] = {Path(main.path).resolve(): main.path}
        self.size = len(main.data)
        self.included: dict[int, Element] = {}

    def text(self, element: Element) -> XmlText:
        """The file in which an element stands."""
        while element.parent is not None:
            element = element.parent
        return self.texts[id(element)]

    def fail(
        self, message: str, element: Element, attribute: str | None = None, **data: Any
    ) -> NoReturn:
        """Raise with the file, line and column of the element."""
        self.text(element).fail(message, element, attribute, **data)

    def children(self, element: Element) -> Iterator[Element]:
        """Children of an element with every ``<include>`` replaced by what it includes."""
        for child in element.children:
            if child.tag == "include":
                yield from self.children(self.include(child))
            else:
                yield child

    def include(self, element: Element) -> Element:
        """Root of an included file."""
        if id(element) not in self.included:
            name = element.attributes.get("file", "")
            if not name:
                self.fail("<include> needs a file", element)
            if self.main.path == TEXT:
                what = "a description given as text cannot include files"
                self.fail(what, element, kind=SecurityError)
            # Relative to the main file, as in MuJoCo, or to the including one.
            for folder in (Path(self.main.path).parent, Path(self.text(element).path).parent):
                path = folder / name
                try:
                    in_folder = path.resolve().is_relative_to(self.folder)
                except (OSError, ValueError) as error:
                    self.fail(f"cannot include {name!r}: {error}", element, kind=InputError)
                if Path(name).is_absolute() or not in_folder:
                    what = f"include of {name!r} is rejected: it lies outside {self.folder}"
                    self.fail(what, element, kind=SecurityError)
                if is_regular(path):
                    break
            else:
                self.fail(f"included file {name!r} does not exist", element, kind=InputError)
            resolved = path.resolve()
            if resolved in self.chain:
                self.fail(
                    f"file {name!r} is included a second time (first by {self.chain[resolved]}): "
                    f"an include cycle, or a copy",
                    element,
                    kind=SecurityError,
                )
            data = read_bytes(path, self.limits)
            self.size += len(data)
            if self.size > self.limits.size:
                raise size_error(self.main.path, self.limits, " with its includes")
            text = parse_xml(data, os.fspath(path), self.limits)
            self.chain[resolved] = f"{self.text(element).path}:{element.line}"
            self.texts[id(text.root)] = text
            self.included[id(element)] = text.root
        return self.included[id(element)]

    def inline(self, element: Element) -> bytes:
        """UTF-8 text inside an element, every ``<include>`` replaced by what it includes."""
        text = self.text(element)
        if text.closes_itself(element):
            return b""
        pieces, at = [], text.spans(element)[1]
        for child in element.walk():
            if child.tag != "include":
                continue
            pieces += [text.utf8[at : child.start], self.inline(self.include(child))]
            at = text.end(child)
        return b"".join([*pieces, text.utf8[at : element.close]])


def inline_includes(text: XmlText) -> bytes:
    """The file with its includes inlined, which needs no other file."""
    start, root = text.spans(text.root)[1], text.root
    if text.closes_itself(root) or all(e.tag != "include" for e in root.walk()):
        return text.data
    return text.encode(text.utf8[:start] + MjcfFiles(text).inline(root) + text.utf8[root.close :])


# -- what the files say ----------------------------------------------------------------------------

KINDS = {"hinge": "revolute", "slide": "prismatic", "ball": "spherical", "free": "floating"}
"""Kind of joint per type of MJCF."""

TERMS = {
    "armature": "inertia",
    "damping": "viscous",
    "frictionloss": "coulomb",
    "stiffness": "stiffness",
    "springref": "slack",
}
"""Field of `JointTerms` per attribute of ``<joint>``; MJCF has no place for offset friction."""

HIDDEN = 3  #: First group of geoms that MuJoCo does not show unless asked.
HIDING = ("attach", "composite", "flexcomp")  #: Elements whose bodies only MuJoCo's compiler makes.
NEEDS_COMPILER = ("replicate", *HIDING)  #: Elements that only MuJoCo's compiler expands.


@dataclass(frozen=True, eq=False)
class MjcfInertial:
    """An ``<inertial>``: mass, and moments xx xy xz yy yz zz in the axes of `place`."""

    element: Element
    place: ExactPose
    mass: Fraction
    moments: tuple[Fraction, ...]


@dataclass(frozen=True, eq=False)
class Geom:
    """A ``<geom>`` with its class's attributes filled in."""

    element: Element
    attributes: dict[str, str]
    pose: ExactPose


@dataclass(frozen=True, eq=False)
class MjcfJoint:
    """A ``<joint>``, and whether it or its class has solver settings of dry friction."""

    joint: Joint
    element: Element
    holding: bool


@dataclass(frozen=True, eq=False)
class MjcfBody:
    """A ``<body>``, and what hangs on it, added as it is read."""

    name: str
    element: Element
    parent: str | None
    home: ExactPose
    joints: list[Joint] = field(default_factory=list)
    inertials: list[MjcfInertial] = field(default_factory=list)  #: At most one.
    geoms: list[Geom] = field(default_factory=list)


@dataclass(frozen=True)
class Compiler:
    """The settings of ``<compiler>`` that matter here."""

    degrees: bool = True
    eulerseq: str = "xyz"
    from_geoms: str = "auto"
    group_range: tuple[int, int] = (0, 5)
    balances: bool = False
    total_mass: float = 0.0


@dataclass(frozen=True, eq=False)
class Mjcf:
    """What a description does not say of an MJCF model, and its writer needs."""

    files: MjcfFiles
    compiler: Compiler
    bodies: Mapping[str, MjcfBody]  #: In the order of the text.
    joints: Mapping[str, MjcfJoint]
    tendons: Mapping[str, Element]  #: Those that are read as drives along several joints.


# -- what MuJoCo does to joints besides rigid bodies and linear joint terms ------------------------

TENDON_TERMS = {"stiffness": "k", "damping": "fv", "frictionloss": "fc", "armature": "Ia"}
"""Symbol of the joint term per attribute of ``<fixed>``: along a sum of joints, as of a drive."""

FLAGS = {
    "damping": {"damper"},
    "stiffness": {"spring"},
    "frictionloss": {"frictionloss", "constraint"},
}
"""Flags of ``<option>`` that switch a term off."""

ACTUATOR_TERMS = ("damping", "armature")

LISTED = {
    "tendon": "tendon",
    "actuator": "actuator",
    "sensor": "sensor",
    "contact": "contact rule",
    "deformable": "deformable",
    "extension": "extension",
}
"""Sections whose members are listed by name, and their names in messages."""

ACTUATORS = ("general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder",
             "muscle", "adhesion", "dcmotor")  # fmt: skip
"""Tags under which a class keeps the attributes of actuators."""

Attributes = Callable[[Element, Sequence[str]], dict[str, str]]
"""An element's attributes over those that its class keeps under these tags."""


def is_nonzero(text: str) -> bool:
    """Whether an attribute holds a number other than zero."""
    try:
        return any(float(token) for token in text.split())
    except ValueError:
        return True


def unmodelled_effects(
    files: MjcfFiles,
    sections: Sequence[Element],
    attributes: Attributes,
    tendons: Sequence[Element],
) -> Iterator[UnmodelledEffect]:
    """Effects of options, tendons but for these, actuators, deformables and plugins."""

    def effect(kind: str, element: Element, text: str) -> UnmodelledEffect:
        return UnmodelledEffect(kind, files.text(element).path, element.line, text)

    for section in sections:
        if section.tag == "option":
            for name in ("density", "viscosity"):
                if is_nonzero(section.attributes.get(name, "0")):
                    yield effect("fluid", section, f"option {name}={section.attributes[name]}")
        elif section.tag == "deformable":
            for flex in section.all("flex"):
                yield effect("flex", flex, f"flex {flex.attributes.get('name', '')!r}")
        elif section.tag in ("tendon", "actuator"):
            terms = TENDON_TERMS if section.tag == "tendon" else ACTUATOR_TERMS
            tags = ("tendon",) if section.tag == "tendon" else ACTUATORS
            for child in (c for c in files.children(section) if c not in tendons):
                values = attributes(child, tags)
                for name in terms:
                    if is_nonzero(values.get(name, "0")):
                        label = values.get("name") or f"<{child.tag}>"
                        text = f"{section.tag} {label!r} has {name}={values[name]}"
                        yield effect(section.tag, child, text)


def unread_members(
    files: MjcfFiles, sections: Iterable[Element], tendons: Sequence[Element]
) -> Iterator[LeftOut]:
    """Members of sections that are not read, by name; these tendons are."""
    for section in sections:
        if section.tag in LISTED:
            for child in (c for c in files.children(section) if c not in tendons):
                name = child.attributes.get("name") or child.attributes.get("joint", "")
                yield LeftOut(LISTED[section.tag], name or f"<{child.tag}> on line {child.line}")


def position_gain(tag: str, values: Mapping[str, str]) -> float:
    """Gain of a position servo without a gear; zero for other actuators."""
    try:
        first = [float(values.get(k, "0").split()[0]) for k in ("kp", "gainprm", "gear")]
        bias = float(values.get("biasprm", "0 0").split()[1])
    except (ValueError, IndexError):
        return 0.0
    if values.get("gear") and first[2] != 1.0:
        return 0.0
    if tag == "position":
        return first[0] if "kp" in values else 1.0
    # <general> is a servo where its bias is -kp q.
    return first[1] if tag == "general" and bias == -first[1] < 0 else 0.0
