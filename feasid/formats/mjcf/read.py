"""MJCF files, read strictly: with defaults, classes, frames and includes; every number checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import NoReturn

import numpy as np

from feasid.errors import DescriptionError, did_you_mean
from feasid.exact.numbers import Number, quote
from feasid.exact.poses import to_decimal
from feasid.formats.description import MAX_NAME, Bond
from feasid.formats.mjcf import FORMAT
from feasid.formats.mjcf.geometry import ORIENTATIONS, MjcfPose, rotation_from_attribute
from feasid.formats.mjcf.model import (
    HIDING,
    JOINT_TYPES,
    NEEDS_COMPILER,
    Attributes,
    Compiler,
    Geom,
    Mjcf,
    MjcfBody,
    MjcfFiles,
    MjcfInertial,
    MjcfJoint,
    actuated_joints,
    is_nonzero,
    joint_terms,
    unmodelled_effects,
    unread_members,
)
from feasid.formats.terms import NO_TERMS, JointTerms, UnmodelledEffect
from feasid.formats.xml import LIMITS, Element, ReadLimits, XmlText
from feasid.robot.rotations import from_quaternion

WORLD = "world"

FULL_ORDER = (0, 3, 4, 1, 5, 2)
"""Place of xx xy xz yy yz zz in MJCF's fullinertia, which is xx yy zz xy xz yz."""


def read_mjcf(text: XmlText, limits: ReadLimits = LIMITS) -> Mjcf:
    """Read a parsed main file.

    Raises DescriptionError: names file, line, column, body and attribute. Raises SecurityError,
    InputError: an include outside the main file's folder, twice, or missing.
    """
    return _MjcfReader(MjcfFiles(text, limits)).read()


MAIN = "main"
"""The class of elements that name none."""


class Defaults:
    """Collects ``<default>`` sections and answers for elements."""

    def __init__(self, files: MjcfFiles) -> None:
        self.files = files
        self.classes: dict[str, dict[str, dict[str, str]]] = {}

    def read_class(self, element: Element, parent: str | None) -> None:
        """Add a class's attributes per tag, on top of those of the class around it."""
        name = element.attributes.get("class", "" if parent is not None else MAIN)
        if not name:
            self.files.fail("a nested <default> needs a class", element)
        above = self.classes.get(name) or self.classes.get(parent or MAIN, {})
        merged = {tag: dict(values) for tag, values in above.items()}
        nested = []
        for child in self.files.children(element):
            if child.tag == "default":
                nested.append(child)
            else:
                merged.setdefault(child.tag, {}).update(child.attributes)
        self.classes[name] = merged
        for child in nested:
            self.read_class(child, name)

    def attributes_of(self, element: Element, name: str, tags: Sequence[str]) -> dict[str, str]:
        """Attributes that class `name` keeps under these tags."""
        if name not in self.classes and name != MAIN:
            hint = did_you_mean(name, self.classes)
            self.files.fail(f"default class {quote(name)} does not exist{hint}", element)
        known = self.classes.get(name, {})
        return {k: v for tag in tags for k, v in known.get(tag, {}).items()}


@dataclass(frozen=True, eq=False)
class _Scope:
    """Context in which a body's children are read: its name, childclass, and frames around them."""

    body: str | None
    childclass: str | None
    frame: MjcfPose = field(default_factory=MjcfPose)


class _MjcfReader:
    def __init__(self, files: MjcfFiles) -> None:
        self.files = files
        self.compiler = Compiler()
        self.defaults = Defaults(files)
        self.unknown: list[str] = []
        self.hidden: list[str] = []
        self.bodies: dict[str, MjcfBody] = {}
        self.parts: dict[str | None, tuple[list[MjcfJoint], list[MjcfInertial], list[Geom]]] = {}
        self.joint_names: dict[str, Element] = {}
        self.gravity: tuple[float, ...] | None = None
        self.disabled: set[str] = set()
        self.effects: list[UnmodelledEffect] = []

    def read(self) -> Mjcf:
        root = self.files.main.root
        if root.tag not in FORMAT.roots:
            self.files.fail(f"root is <{root.tag}>, expected <mujoco>", root)
        sections = list(self.files.children(root))
        for section in sections:
            if section.tag == "compiler":
                self.read_compiler(section)
            elif section.tag == "default":
                self.defaults.read_class(section, None)
            elif section.tag == "option":
                self.read_option(section)
        self.parts[None] = ([], [], [])
        worlds = [s for s in sections if s.tag == "worldbody"]
        self.read_bodies(worlds + ([root] if root.tag == "mujocoinclude" else []))

        def values(element: Element, tags: Sequence[str]) -> dict[str, str]:
            return self.attributes(element, _Scope(None, None), tags)

        self.effects += unmodelled_effects(self.files, sections, values)
        off = bool(self.disabled & {"equality", "constraint"})
        bonds, effects = read_equality(
            self.files, () if off else sections, values, self.parse_numbers
        )
        return Mjcf(
            self.files,
            root.attributes.get("model", "MuJoCo Model"),
            self.compiler,
            tuple(self.with_elements(body) for body in self.bodies.values()),
            (0.0, 0.0, 0.0) if "gravity" in self.disabled else self.gravity,
            tuple(self.unknown),
            tuple(self.hidden),
            (*self.effects, *effects),
            tuple(unread_members(self.files, sections)),
            tuple(bonds),
            actuated_joints(self.files, sections, values),
        )

    # -- settings -----------------------------------------------------------------------------

    def read_option(self, element: Element) -> None:
        """Gravity, and the flags that switch forces off."""
        if "gravity" in element.attributes:
            values = self.numbers(element, "gravity", 3)
            self.gravity = tuple(n.value for n in values)
        for flag in self.files.children(element):
            if flag.tag == "flag":
                for name, value in flag.attributes.items():
                    (self.disabled.add if value == "disable" else self.disabled.discard)(name)

    def read_compiler(self, element: Element) -> None:
        attributes, settings = element.attributes, self.compiler
        angle = self.attribute_choice(element, "angle", ("degree", "radian"))
        if angle:
            settings = replace(settings, degrees=angle == "degree")
        if "eulerseq" in attributes:
            sequence = attributes["eulerseq"]
            if len(sequence) != 3 or any(x not in "xyzXYZ" for x in sequence):
                self.files.fail(f"eulerseq {quote(sequence)} is not three of xyzXYZ", element)
            settings = replace(settings, eulerseq=sequence)
        chosen = self.attribute_choice(element, "inertiafromgeom", ("auto", "true", "false"))
        settings = replace(settings, from_geoms=chosen or settings.from_geoms)
        balances = self.attribute_choice(element, "balanceinertia", ("true", "false"))
        if balances:
            settings = replace(settings, balances=balances == "true")
        if "inertiagrouprange" in attributes:
            low, high = self.numbers(element, "inertiagrouprange", 2)
            settings = replace(settings, group_range=(int(low.value), int(high.value)))
        for name in ("boundmass", "boundinertia"):
            if name in attributes and self.numbers(element, name, 1)[0].value > 0:
                self.note_for_compiler(element, f"compiler {name}=")
        if "settotalmass" in attributes:
            total = self.numbers(element, "settotalmass", 1)[0].value
            settings = replace(settings, total_mass=max(total, 0.0))
        if attributes.get("coordinate", "local") != "local":
            self.note_for_compiler(element, "compiler coordinate=global")
        self.compiler = settings

    def attribute_choice(self, element: Element, name: str, known: Sequence[str]) -> str | None:
        value = element.attributes.get(name)
        if value is not None and value not in known:
            hint = did_you_mean(value, known)
            self.files.fail(f"{name}={quote(value)} is not one of {known}{hint}", element, name)
        return value

    def note_for_compiler(self, element: Element, what: str) -> None:
        """Remember something that only the compiler knows."""
        place = f"{self.files.text(element).path}:{element.line}"
        self.unknown.append(f"{place}: {what}")
        if element.tag in HIDING:
            self.hidden.append(self.unknown[-1])

    def attributes(
        self, element: Element, scope: _Scope, tags: Sequence[str] = ()
    ) -> dict[str, str]:
        """An element's attributes over those of its class, kept under its tag or these."""
        if element.tag == "freejoint":
            return element.attributes
        name = element.attributes.get("class", scope.childclass or MAIN)
        over = self.defaults.attributes_of(element, name, tags or (element.tag,))
        return {**over, **element.attributes}

    # -- the tree -----------------------------------------------------------------------------

    def read_bodies(self, roots: Sequence[Element]) -> None:
        """Read bodies depth first, which is MuJoCo's order."""
        waiting = [(root, _Scope(None, None)) for root in reversed(roots)]
        while waiting:
            element, scope = waiting.pop()
            if element.tag == "body":
                scope = self.body(element, scope)
            elif element.tag == "frame":
                pose = scope.frame.compose(self.pose(element, element.attributes))
                kind = element.attributes.get("childclass", scope.childclass)
                scope = _Scope(scope.body, kind, pose)
            waiting.extend((child, scope) for child in reversed(self.read_children(element, scope)))

    def read_children(self, element: Element, scope: _Scope) -> list[Element]:
        """Read what hangs on a body or frame; returns the bodies and frames inside."""
        joints, inertials, geoms = self.parts[scope.body]
        children = []
        for child in self.files.children(element):
            if child.tag in ("body", "frame"):
                children.append(child)
            elif child.tag in ("joint", "freejoint"):
                joints.append(self.joint(child, scope, len(joints)))
            elif child.tag == "inertial":
                if inertials:
                    self.fail("a second <inertial>", child, scope)
                inertials.append(self.inertial(child, scope))
            elif child.tag == "geom":
                values = self.attributes(child, scope)
                geoms.append(Geom(child, values, scope.frame.compose(self.pose(child, values))))
            elif child.tag == "plugin":
                self.add_unmodelled_effect("plugin", child, f"<plugin> of body {scope.body!r}")
            elif child.tag in NEEDS_COMPILER:
                self.note_for_compiler(child, f"<{child.tag}>")
        return children

    def body(self, element: Element, scope: _Scope) -> _Scope:
        name = element.attributes.get("name", "") or self.generate_name("body")
        if len(name) > MAX_NAME:
            self.files.fail(f"body name {quote(name)} is longer than {MAX_NAME}", element)
        if name == "world":
            self.files.fail("the name 'world' is taken by the world body", element, body=name)
        if name in self.bodies:
            first = self.bodies[name].element.line
            self.files.fail(
                f"body {name!r} is defined twice: here and on line {first}",
                element,
                body=name,
                first_line=first,
            )
        if is_nonzero(element.attributes.get("gravcomp", "0")) and "gravity" not in self.disabled:
            self.add_unmodelled_effect("gravcomp", element, f"body {name!r}")
        pose = scope.frame.compose(self.pose(element, element.attributes))
        self.bodies[name] = MjcfBody(name, element, scope.body, pose, (), None, ())
        self.parts[name] = ([], [], [])
        return _Scope(name, element.attributes.get("childclass", scope.childclass))

    def generate_name(self, kind: str) -> str:
        count = len(self.bodies) + 1
        while f"{kind}{count}" in self.bodies:
            count += 1
        return f"{kind}{count}"

    def with_elements(self, body: MjcfBody) -> MjcfBody:
        joints, inertials, geoms = self.parts[body.name]
        inertial = inertials[0] if inertials else None
        return replace(body, joints=tuple(joints), inertial=inertial, geoms=tuple(geoms))

    # -- what hangs on a body -----------------------------------------------------------------

    def inertial(self, element: Element, scope: _Scope) -> MjcfInertial:
        attributes = element.attributes
        for name in ("pos", "mass"):
            if name not in attributes:
                self.fail(f"<inertial> lacks {name!r}", element, scope)
        turns = [k for k in (*ORIENTATIONS, "fullinertia") if k in attributes]
        if len(turns) > 1 or {"diaginertia", "fullinertia"} <= set(attributes):
            self.fail(
                "<inertial> takes one of diaginertia and fullinertia, and no orientation "
                f"together with fullinertia: has {', '.join([*turns, 'diaginertia'])}",
                element,
                scope,
            )
        if "fullinertia" in attributes:
            six = self.numbers(element, "fullinertia", 6, scope)
            moments = tuple(six[k] for k in FULL_ORDER)
        else:
            zero = Number("0", 0.0)
            d = (
                self.numbers(element, "diaginertia", 3, scope)
                if "diaginertia" in attributes
                else ()
            )
            xx, yy, zz = d or (zero, zero, zero)
            moments = (xx, zero, zero, yy, zero, zz)
        pose = scope.frame.compose(self.pose(element, attributes))
        return MjcfInertial(element, pose, self.numbers(element, "mass", 1, scope)[0], moments)

    def joint(self, element: Element, scope: _Scope, count: int) -> MjcfJoint:
        values = self.attributes(element, scope)
        kind = "free" if element.tag == "freejoint" else values.get("type", "hinge")
        if kind not in JOINT_TYPES:
            hint = did_you_mean(kind, JOINT_TYPES)
            self.fail(f"<joint> type {quote(kind)}{hint} is unknown", element, scope)
        name = values.get("name", "") or f"{scope.body}{'' if not count else f'_joint{count + 1}'}"
        if name in self.joint_names:
            first = self.joint_names[name].line
            self.fail(f"joint {name!r} is defined twice, first on line {first}", element, scope)
        self.joint_names[name] = element
        axis = self.three_numbers(element, "axis", values, scope, (0.0, 0.0, 1.0))
        if not any(axis) and kind in ("hinge", "slide"):
            self.fail(f"joint {name!r}: the axis is zero", element, scope)
        position = self.three_numbers(element, "pos", values, scope, (0.0, 0.0, 0.0))
        turn, shift = scope.frame.rotation, scope.frame.position
        axis_ = tuple(float(x) for x in turn @ axis)
        position_ = tuple(float(x) for x in shift + turn @ position)
        unit = 0.017453292519943295 if self.compiler.degrees and kind in ("hinge", "ball") else 1.0
        reference = self.parse_numbers(element, "ref", 1, values, scope)
        limits = self.parse_numbers(element, "range", 2, values, scope)
        return MjcfJoint(
            name,
            element,
            kind,
            (position_[0], position_[1], position_[2]),
            (axis_[0], axis_[1], axis_[2]),
            reference[0].value * unit if reference else 0.0,
            (limits[0].value * unit, limits[1].value * unit) if limits else None,
            self.joint_terms(element, name, kind, values, scope, unit),
            "solreffriction" in values or "solimpfriction" in values,
        )

    def joint_terms(
        self,
        element: Element,
        joint: str,
        kind: str,
        values: dict[str, str],
        scope: _Scope,
        unit: float,
    ) -> JointTerms:
        def read(name: str, text: str) -> float:
            return self.parse_numbers(element, name, 1, {name: text}, scope)[0].value

        if element.tag == "freejoint":
            return NO_TERMS
        terms, effects = joint_terms(kind, values, self.disabled, unit, read)
        for effect, text in effects:
            self.add_unmodelled_effect(effect, element, f"joint {joint!r} has {text}")
        return terms

    def add_unmodelled_effect(self, kind: str, element: Element, text: str) -> None:
        """Remember something that changes the dynamics and is not modelled."""
        self.effects.append(
            UnmodelledEffect(kind, self.files.text(element).path, element.line, text)
        )

    def three_numbers(
        self,
        element: Element,
        name: str,
        values: dict[str, str],
        scope: _Scope,
        default: tuple[float, float, float],
    ) -> tuple[float, float, float]:
        found = self.parse_numbers(element, name, 3, values, scope)
        return (found[0].value, found[1].value, found[2].value) if found else default

    def pose(self, element: Element, values: dict[str, str]) -> MjcfPose:
        """Position and orientation of an element."""
        turns = [k for k in ORIENTATIONS if k in values]
        orientations = [k for k in turns if k in element.attributes]
        if len(orientations) > 1:
            self.files.fail(
                f"<{element.tag}> takes one orientation, has {', '.join(orientations)}", element
            )
        kind = (orientations or turns or [""])[0]
        place = [to_decimal(n.exact) for n in self.parse_numbers(element, "pos", 3, values) or ()]
        if not kind:
            return MjcfPose(place=place) if place else MjcfPose()
        numbers = [
            to_decimal(n.exact)
            for n in self.parse_numbers(element, kind, ORIENTATIONS[kind], values)
        ]
        try:
            turn = rotation_from_attribute(
                kind, numbers, self.compiler.degrees, self.compiler.eulerseq
            )
        except ValueError as error:
            self.files.fail(f"<{element.tag}> {kind}: {error}", element, kind)
        return MjcfPose(turn, place or [Decimal(0)] * 3)

    # -- numbers ------------------------------------------------------------------------------

    def numbers(
        self, element: Element, name: str, count: int, scope: _Scope | None = None
    ) -> tuple[Number, ...]:
        return self.parse_numbers(element, name, count, element.attributes, scope)

    def parse_numbers(
        self,
        element: Element,
        name: str,
        count: int,
        values: dict[str, str],
        scope: _Scope | None = None,
    ) -> tuple[Number, ...]:
        """`count` numbers of an attribute, or none when it is absent."""
        if name not in values:
            return ()
        tokens = values[name].split()
        if len(tokens) != count:
            quoted = quote(values[name])
            self.fail(
                f"<{element.tag}> {name}={quoted} has {len(tokens)} numbers, expected {count}",
                element,
                scope,
                name,
            )
        try:
            return tuple(Number.parse(token) for token in tokens)
        except ValueError as error:
            self.fail(f"<{element.tag}> {name}: {error}", element, scope, name)

    def fail(
        self, message: str, element: Element, scope: _Scope | None, attribute: str | None = None
    ) -> NoReturn:
        if scope is not None and scope.body is not None:
            text = self.files.text(element)
            text.fail(
                f"body {scope.body!r}: {message}", element, attribute, DescriptionError,
                body=scope.body,
            )  # fmt: skip
        self.files.fail(message, element, attribute)


# -- equality constraints --------------------------------------------------------------------------

LINEAR = 2
"""Number of coefficients of a linear polynomial; further ones must be zero."""

ParseNumbers = Callable[[Element, str, int, dict[str, str]], Sequence[Number]]
Floats = Callable[[Element, str, int, dict[str, str]], tuple[float, ...]]
"""The numbers of an attribute, of this count; none if it is absent."""


def read_equality(
    files: MjcfFiles, sections: Sequence[Element], attributes: Attributes, parse: ParseNumbers
) -> tuple[list[Bond], list[UnmodelledEffect]]:
    """Constraints that are active, and those that are not modelled."""

    def numbers(
        element: Element, name: str, count: int, values: dict[str, str]
    ) -> tuple[float, ...]:
        return tuple(n.value for n in parse(element, name, count, values))

    bonds, effects = [], []
    for section in sections:
        if section.tag != "equality":
            continue
        for element in files.children(section):
            values = attributes(element, ("equality", element.tag))
            if values.get("active", "true") != "false":
                bond = _bond(files, element, values, numbers)
                if isinstance(bond, Bond):
                    bonds.append(bond)
                else:
                    effects.append(bond)
    return bonds, effects


def _bond(
    files: MjcfFiles, element: Element, values: dict[str, str], numbers: Floats
) -> Bond | UnmodelledEffect:
    name = values.get("name") or f"{element.tag} on line {element.line}"
    if element.tag == "joint":
        return _joint_bond(files, element, name, values, numbers)
    if element.tag not in ("connect", "weld") or "site1" in values:
        what = "sites, which only MuJoCo's compiler places" if "site1" in values else element.tag
        text = f"equality {name!r} of {what}"
        return UnmodelledEffect("equality", files.text(element).path, element.line, text)
    if "body1" not in values:
        files.fail(f"<{element.tag}> lacks 'body1'", element, "body1")
    bodies = values["body1"], values.get("body2", WORLD)
    anchor = numbers(element, "anchor", 3, values)
    if element.tag == "connect":
        if len(anchor) == 0:
            files.fail("<connect> lacks 'anchor'", element, "anchor")
        return Bond("connect", name, *bodies, first_point=np.array(anchor))
    second = np.array(anchor if len(anchor) else (0.0, 0.0, 0.0))
    pose = numbers(element, "relpose", 7, values)
    if len(pose) == 0 or not any(pose[3:]):
        return Bond("weld", name, *bodies, second_point=second)
    turn, first = from_quaternion(np.array(pose[3:])), np.array(pose[:3])  # the anchor's place
    return Bond("weld", name, *bodies, first_point=first, second_point=second, turn=turn)


def _joint_bond(
    files: MjcfFiles, element: Element, name: str, values: dict[str, str], numbers: Floats
) -> Bond | UnmodelledEffect:
    if "joint1" not in values:
        files.fail("<joint> of <equality> lacks 'joint1'", element, "joint1")
    given = values.get("polycoef", "0 1 0 0 0").split()
    factors = numbers(element, "polycoef", len(given), values) or (0.0, 1.0)
    factors = (*factors, *(0.0,) * (5 - len(factors)))
    if any(factors[LINEAR:]):
        text = f"equality {name!r} is not linear: polycoef={values['polycoef']}"
        return UnmodelledEffect("equality", files.text(element).path, element.line, text)
    second = values.get("joint2", "")
    return Bond("joint", name, values["joint1"], second, (factors[0], factors[1]))
