"""MJCF files, read strictly: with defaults, classes, frames and includes; every number checked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from itertools import count
from typing import Any, NoReturn

import numpy as np

from feasid.core.errors import did_you_mean
from feasid.core.exact.numbers import Number, quote
from feasid.core.exact.poses import compose, identity, to_decimal
from feasid.robot.bodies import Limits
from feasid.robot.drives import Drive
from feasid.robot.formats.description import (
    MAX_NAME,
    Bond,
    Description,
    ExactPose,
    Joint,
    pose_of_decimals,
)
from feasid.robot.formats.mjcf import FORMAT, model
from feasid.robot.formats.mjcf.links import ORIENTATIONS, link_of_body, rotation_from_attribute
from feasid.robot.formats.terms import NO_TERMS, JointTerms, UnmodelledEffect
from feasid.robot.formats.xml import Element, XmlText
from feasid.robot.rotations import from_quaternion

WORLD = "world"

FULL_ORDER = (0, 3, 4, 1, 5, 2)
"""Place of xx xy xz yy yz zz in MJCF's fullinertia, which is xx yy zz xy xz yz."""


UNSTATED = -1.0  #: Length of a tendon's spring that stands for that in the home posture.

LINEAR = 2  #: Number of coefficients of a linear polynomial; further ones must be zero.


def describe_mjcf(text: XmlText) -> Description:
    """The description of a parsed main file; errors as of `registry.read_description`."""
    return _MjcfReader(model.MjcfFiles(text)).read()


MAIN = "main"  #: The class of elements that name none.


@dataclass(frozen=True, eq=False)
class _Scope:
    """Context in which a body's children are read: its name, childclass, and frames around them."""

    body: str | None
    childclass: str | None
    frame: ExactPose = field(default_factory=ExactPose)


class _MjcfReader:
    def __init__(self, files: model.MjcfFiles) -> None:
        self.files = files
        self.compiler = model.Compiler()
        self.classes: dict[str, dict[str, dict[str, str]]] = {}
        self.unknown: list[str] = []
        self.hidden: list[str] = []
        self.bodies: dict[str, model.MjcfBody] = {}
        self.world = model.MjcfBody(WORLD, files.main.root, None, ExactPose())
        self.joints: dict[str, model.MjcfJoint] = {}
        self.gravity: tuple[float, ...] | None = None
        self.disabled: set[str] = set()
        self.effects: list[UnmodelledEffect] = []

    def read(self) -> Description:
        root = self.files.main.root
        sections = list(self.files.children(root))
        for section in sections:
            if section.tag == "compiler":
                self.read_compiler(section)
            elif section.tag == "default":
                self.read_defaults(section, None)
            elif section.tag == "option":
                if "gravity" in section.attributes:
                    self.gravity = tuple(n.value for n in self.numbers(section, "gravity", 3))
                for flag in (f for f in self.files.children(section) if f.tag == "flag"):
                    for name, value in flag.attributes.items():
                        (self.disabled.add if value == "disable" else self.disabled.discard)(name)
        worlds = [s for s in sections if s.tag == "worldbody"]
        roots = worlds + ([root] if root.tag == "mujocoinclude" else [])
        waiting = [(root, _Scope(None, None)) for root in reversed(roots)]
        # Reversed on a stack: the order of the text, by which nameless bodies are numbered.
        while waiting:
            element, scope = waiting.pop()
            if element.tag == "body":
                scope = self.body(element, scope)
            elif element.tag == "frame":
                pose = self.pose(element, element.attributes, scope)
                kind = element.attributes.get("childclass", scope.childclass)
                scope = _Scope(scope.body, kind, pose)
            waiting.extend((child, scope) for child in reversed(self.read_children(element, scope)))
        elements = [e for s in sections if s.tag == "tendon" for e in self.files.children(s)]
        drives = [(self.shared_drive(element, k), element) for k, element in enumerate(elements)]
        tendons = {drive.name: (drive, element) for drive, element in drives if drive}
        read = [element for _, element in tendons.values()]
        self.effects += model.unmodelled_effects(self.files, sections, self.attributes, read)
        off = bool(self.disabled & {"equality", "constraint"})
        bonds = tuple(self.bonds(() if off else sections))
        parts = self.bodies, self.joints, {name: e for name, (_, e) in tendons.items()}
        mjcf = model.Mjcf(self.files, self.compiler, *parts)
        path = self.files.main.path
        balanced = (
            f'{path}: compiler balanceinertia="true" replaces impossible inertias by the mean of '
            "their principal moments when the file is compiled"
        )
        return Description(
            FORMAT.name,
            path,
            root.attributes.get("model", "MuJoCo Model"),
            tuple(link_of_body(mjcf, body) for body in self.bodies.values()),
            world=WORLD,
            gravity=(0.0, 0.0, 0.0) if "gravity" in self.disabled else self.gravity,
            bonds=bonds,
            motors=self.motors(sections),
            notes=(balanced,) if self.compiler.balances else (),
            hidden=tuple(self.hidden),
            unknown=tuple(self.unknown),
            effects=tuple(self.effects),
            left_out=tuple(model.unread_members(self.files, sections, read)),
            total_mass=self.compiler.total_mass,
            shared=tuple(drive for drive, _ in tendons.values()),
            document=mjcf,
        )

    def motors(self, sections: Sequence[Element]) -> dict[str, float]:
        """Joints that actuators drive, with the gain kp of position servos; zero for others."""
        motors: dict[str, float] = {}
        actuators = (s for s in sections if s.tag == "actuator")
        for element in (e for s in actuators for e in self.files.children(s)):
            values = self.attributes(element, (element.tag,))
            if joint := values.get("joint", ""):
                motors[joint] = motors.get(joint) or model.position_gain(element.tag, values)
        return motors

    # -- settings -----------------------------------------------------------------------------

    def read_defaults(self, element: Element, parent: str | None) -> None:
        """Add the attributes of a `<default>` per tag, on top of those of the class around it."""
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
            self.read_defaults(child, name)

    def read_compiler(self, element: Element) -> None:
        attributes = element.attributes
        settings: dict[str, Any] = {}
        if angle := self.attribute_choice(element, "angle", ("degree", "radian")):
            settings["degrees"] = angle == "degree"
        if "eulerseq" in attributes:
            sequence = attributes["eulerseq"]
            if len(sequence) != 3 or any(x not in "xyzXYZ" for x in sequence):
                self.files.fail(f"eulerseq {quote(sequence)} is not three of xyzXYZ", element)
            settings["eulerseq"] = sequence
        if source := self.attribute_choice(element, "inertiafromgeom", ("auto", "true", "false")):
            settings["from_geoms"] = source
        if balances := self.attribute_choice(element, "balanceinertia", ("true", "false")):
            settings["balances"] = balances == "true"
        if "inertiagrouprange" in attributes:
            low, high = self.numbers(element, "inertiagrouprange", 2)
            settings["group_range"] = int(low.value), int(high.value)
        for name in ("boundmass", "boundinertia"):
            if name in attributes and self.numbers(element, name, 1)[0].value > 0:
                self.note_for_compiler(element, f"compiler {name}=")
        if "settotalmass" in attributes:
            settings["total_mass"] = max(self.numbers(element, "settotalmass", 1)[0].value, 0.0)
        if attributes.get("coordinate", "local") != "local":
            self.note_for_compiler(element, "compiler coordinate=global")
        self.compiler = replace(self.compiler, **settings)

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
        if element.tag in model.HIDING:
            self.hidden.append(self.unknown[-1])

    def attributes(
        self, element: Element, tags: Sequence[str] = (), childclass: str | None = None
    ) -> dict[str, str]:
        """An element's attributes over those of its class, kept under its tag or these."""
        if element.tag == "freejoint":
            return element.attributes
        name = element.attributes.get("class", childclass or MAIN)
        known = self.classes
        if name not in known and name != MAIN:
            hint = did_you_mean(name, known)
            self.files.fail(f"default class {quote(name)} does not exist{hint}", element)
        over = [known.get(name, {}).get(tag, {}) for tag in tags or (element.tag,)]
        return {k: v for part in (*over, element.attributes) for k, v in part.items()}

    # -- the tree -----------------------------------------------------------------------------

    def read_children(self, element: Element, scope: _Scope) -> list[Element]:
        """Read what hangs on a body or frame; returns the bodies and frames inside."""
        body = self.world if scope.body is None else self.bodies[scope.body]
        children = []
        for child in self.files.children(element):
            if child.tag in ("body", "frame"):
                children.append(child)
            elif child.tag in ("joint", "freejoint"):
                body.joints.append(self.joint(child, scope, len(body.joints)))
            elif child.tag == "inertial":
                if body.inertials:
                    self.fail("a second <inertial>", child, scope)
                body.inertials.append(self.inertial(child, scope))
            elif child.tag == "geom":
                values = self.attributes(child, childclass=scope.childclass)
                body.geoms.append(model.Geom(child, values, self.pose(child, values, scope)))
            elif child.tag == "plugin":
                self.add_unmodelled_effect("plugin", child, f"<plugin> of body {scope.body!r}")
            elif child.tag in model.NEEDS_COMPILER:
                self.note_for_compiler(child, f"<{child.tag}>")
        return children

    def body(self, element: Element, scope: _Scope) -> _Scope:
        name = element.attributes.get("name", "") or next(
            f"body{k}" for k in count(len(self.bodies) + 1) if f"body{k}" not in self.bodies
        )
        if len(name) > MAX_NAME:
            self.files.fail(f"body name {quote(name)} is longer than {MAX_NAME}", element)
        if name == WORLD:
            self.files.fail("the name 'world' is taken by the world body", element, body=name)
        if name in self.bodies:
            first = self.bodies[name].element.line
            self.files.fail(
                f"body {name!r} is defined twice: here and on line {first}",
                element,
                body=name,
                first_line=first,
            )
        compensation = model.is_nonzero(element.attributes.get("gravcomp", "0"))
        if compensation and "gravity" not in self.disabled:
            self.add_unmodelled_effect("gravcomp", element, f"body {name!r}")
        home = self.pose(element, element.attributes, scope)
        # The decimals of angles tell which exact ones they stand for; degrees need no such help.
        if not self.compiler.degrees and self.files.text(element) is self.files.main:
            home = replace(home, angles=tuple(element.attributes.get("euler", "").split()))
        self.bodies[name] = model.MjcfBody(name, element, scope.body, home)
        return _Scope(name, element.attributes.get("childclass", scope.childclass))

    # -- what hangs on a body -----------------------------------------------------------------

    def inertial(self, element: Element, scope: _Scope) -> model.MjcfInertial:
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
            six = self.numbers(element, "fullinertia", 6, scope=scope)
            moments = tuple(six[k].exact for k in FULL_ORDER)
        else:
            zero = Fraction(0)
            diagonal = [n.exact for n in self.numbers(element, "diaginertia", 3, scope=scope)]
            xx, yy, zz = diagonal or [zero] * 3
            moments = (xx, zero, zero, yy, zero, zz)
        place = self.pose(element, attributes, scope)
        mass = self.numbers(element, "mass", 1, scope=scope)[0].exact
        return model.MjcfInertial(element, place, mass, moments)

    def joint(self, element: Element, scope: _Scope, count: int) -> Joint:
        values = self.attributes(element, childclass=scope.childclass)
        kind = "free" if element.tag == "freejoint" else values.get("type", "hinge")
        if kind not in model.KINDS:
            hint = did_you_mean(kind, model.KINDS)
            self.fail(f"<joint> type {quote(kind)}{hint} is unknown", element, scope)
        name = values.get("name", "") or f"{scope.body}{'' if not count else f'_joint{count + 1}'}"
        if name in self.joints:
            first = self.joints[name].element.line
            self.fail(f"joint {name!r} is defined twice, first on line {first}", element, scope)
        axis = [n.value for n in self.numbers(element, "axis", 3, values, scope)]
        if axis == [0.0] * 3 and kind in ("hinge", "slide"):
            self.fail(f"joint {name!r}: the axis is zero", element, scope)
        position = [n.value for n in self.numbers(element, "pos", 3, values, scope)]
        turn, shift = scope.frame.rotation, scope.frame.position
        unit = math.radians(1.0) if self.compiler.degrees and kind in ("hinge", "ball") else 1.0
        reference = self.numbers(element, "ref", 1, values, scope)
        limits = self.numbers(element, "range", 2, values, scope)
        joint = Joint(
            name,
            model.KINDS[kind],
            turn @ (axis or [0.0, 0.0, 1.0]),
            shift + turn @ (position or [0.0] * 3),
            reference[0].value * unit if reference else 0.0,
            Limits(*(n.value * unit for n in limits)),
            self.joint_terms(element, name, kind, values, scope, unit),
            f"{self.files.text(element).path}:{element.line}",
        )
        holding = "solreffriction" in values or "solimpfriction" in values
        self.joints[name] = model.MjcfJoint(joint, element, holding)
        return joint

    def joint_terms(
        self,
        element: Element,
        joint: str,
        kind: str,
        values: dict[str, str],
        scope: _Scope,
        unit: float,
    ) -> JointTerms:
        """Terms of a joint; remembers whatever else acts there.

        ``damping`` and ``stiffness`` may have higher-order coefficients, which are not linear.
        """
        if element.tag == "freejoint":
            return NO_TERMS
        effects = [
            ("nonlinear", f"{name}={values[name]}")
            for name in ("springdamper", "springyield")
            if model.is_nonzero(values.get(name, "0"))
        ]
        numbers = {}
        for name in model.TERMS:
            text = values.get(name, "0")
            first, *more = text.split() or [""]
            if more and name in ("damping", "stiffness"):
                if model.is_nonzero(" ".join(more)):
                    effects.append(("nonlinear", f"{name}={text}"))
                text = first
            numbers[name] = 0.0
            if not model.FLAGS.get(name, set()) & self.disabled:
                numbers[name] = self.numbers(element, name, 1, {name: text}, scope)[0].value
        in_units = numbers | {"springref": numbers["springref"] * unit}
        terms = JointTerms(**{field: in_units[name] for name, field in model.TERMS.items()})
        if kind not in ("hinge", "slide") and terms.values:
            effects.append(("multidof", ", ".join(f"{k}={v:g}" for k, v in numbers.items() if v)))
        for effect, text in effects:
            self.add_unmodelled_effect(effect, element, f"joint {joint!r} has {text}")
        return terms if kind in ("hinge", "slide") else NO_TERMS

    def add_unmodelled_effect(self, kind: str, element: Element, text: str) -> None:
        """Remember something that changes the dynamics and is not modelled."""
        self.effects.append(
            UnmodelledEffect(kind, self.files.text(element).path, element.line, text)
        )

    def pose(self, element: Element, values: dict[str, str], scope: _Scope) -> ExactPose:
        """Position and orientation of an element in its body's frame."""
        turns = [k for k in ORIENTATIONS if k in values]
        # An element's own orientation takes the place of another kind in its class.
        orientations = [k for k in turns if k in element.attributes]
        if len(orientations) > 1:
            self.files.fail(
                f"<{element.tag}> takes one orientation, has {', '.join(orientations)}", element
            )
        kind = (orientations or turns or [""])[0]
        place = [to_decimal(n.exact) for n in self.numbers(element, "pos", 3, values)]
        turn, settings = identity(), (self.compiler.degrees, self.compiler.eulerseq)
        if kind:
            numbers = self.numbers(element, kind, ORIENTATIONS[kind], values)
            decimals = [to_decimal(n.exact) for n in numbers]
            try:
                turn = rotation_from_attribute(kind, decimals, *settings)
            except ValueError as error:
                self.files.fail(f"<{element.tag}> {kind}: {error}", element, kind)
        return pose_of_decimals(compose(scope.frame.precise(), (turn, place or [Decimal(0)] * 3)))

    # -- numbers ------------------------------------------------------------------------------

    def numbers(
        self,
        element: Element,
        name: str,
        count: int,
        values: dict[str, str] | None = None,
        scope: _Scope | None = None,
    ) -> tuple[Number, ...]:
        """`count` numbers of an attribute, or none when it is absent.

        `values`: the attributes with those of the element's class.
        """
        values = element.attributes if values is None else values
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
        parse = Number.limit if name == "range" else Number.parse
        try:
            return tuple(parse(token) for token in tokens)
        except ValueError as error:
            self.fail(f"<{element.tag}> {name}: {error}", element, scope, name)

    def fail(
        self, message: str, element: Element, scope: _Scope | None, attribute: str | None = None
    ) -> NoReturn:
        # What hangs on the world has no body to name.
        data = {} if scope is None or scope.body is None else {"body": scope.body}
        where = "".join(f"body {name!r}: " for name in data.values())
        self.files.fail(f"{where}{message}", element, attribute, **data)

    # -- tendons and equality constraints ------------------------------------------------------

    def shared_drive(self, element: Element, number: int) -> Drive | None:
        """A fixed tendon as a drive along several joints; None for one that is no linear one."""
        values = self.attributes(element, ("tendon",))
        ends = [(e, e.attributes.get("joint")) for e in self.files.children(element)]
        joints = [self.joints[joint].joint for _, joint in ends if joint in self.joints]
        lengths = values.get("springlength", "-1").split()
        linear = all(len(values.get(name, "0").split()) == 1 for name in model.TENDON_TERMS)
        linear = linear and all(j.one_dof for j in joints) and len(joints) == len(ends) > 1
        if element.tag != "fixed" or not linear or len({*lengths}) != 1:
            return None
        terms = {
            symbol: number.value
            for name, symbol in model.TENDON_TERMS.items()
            if not model.FLAGS.get(name, set()) & self.disabled
            for number in self.numbers(element, name, 1, values)
            if number.value
        }
        factors = [self.numbers(e, "coef", 1)[0].value for e, _ in ends if "coef" in e.attributes]
        if not terms or len(factors) < len(ends) or 0.0 in factors:
            return None
        coupling = {joint.name: c for joint, c in zip(joints, factors, strict=True)}
        home = sum(c * j.terms.slack for c, j in zip(factors, joints, strict=True))
        (length,) = self.numbers(element, "springlength", 1, {"springlength": lengths[0]})
        slack = home if length.value == UNSTATED else length.value
        parts = coupling, tuple(terms), np.array([*terms.values()])
        name = values.get("name") or f"tendon {number}"
        return Drive(name, *parts, rest=slack if "k" in terms else 0.0, from_file=True)

    def bonds(self, sections: Sequence[Element]) -> Iterator[Bond]:
        """Constraints that are active; remembers those that are not modelled."""
        for section in sections:
            for element in self.files.children(section) if section.tag == "equality" else ():
                values = self.attributes(element, ("equality", element.tag))
                if values.get("active", "true") != "false":
                    yield from self.bond(element, values)

    def bond(self, element: Element, values: dict[str, str]) -> Iterator[Bond]:
        name = values.get("name") or f"{element.tag} on line {element.line}"
        if element.tag == "joint":
            if "joint1" not in values:
                self.files.fail("<joint> of <equality> lacks 'joint1'", element, "joint1")
            count = len(values.get("polycoef", "").split())
            numbers = self.numbers(element, "polycoef", count, values)
            factors = [n.value for n in numbers] or [0.0, 1.0]
            if any(factors[LINEAR:]):
                text = f"equality {name!r} is not linear: polycoef={values['polycoef']}"
                self.add_unmodelled_effect("equality", element, text)
                return
            a0, a1 = [*factors, 0.0][:LINEAR]
            yield Bond("joint", name, values["joint1"], values.get("joint2", ""), (a0, a1))
        elif element.tag not in ("connect", "weld") or "site1" in values:
            sites = "sites, which only MuJoCo's compiler places"
            what = sites if "site1" in values else element.tag
            self.add_unmodelled_effect("equality", element, f"equality {name!r} of {what}")
        else:
            kind = element.tag
            for attribute in ("body1", "anchor") if kind == "connect" else ("body1",):
                if attribute not in values:
                    self.files.fail(f"<{kind}> lacks {attribute!r}", element, attribute)
            ends = kind, name, values["body1"], values.get("body2", WORLD)
            anchor = np.array([n.value for n in self.numbers(element, "anchor", 3, values)])
            pose = np.array([n.value for n in self.numbers(element, "relpose", 7, values)])
            second = anchor if anchor.size else np.zeros(3)
            if kind == "connect":
                yield Bond(*ends, first_point=anchor)
            elif not pose[3:].any():  # as by default: the bodies stay as they are at home
                yield Bond(*ends, second_point=second)
            else:
                turn = from_quaternion(pose[3:])
                yield Bond(*ends, first_point=pose[:3], second_point=second, turn=turn)
