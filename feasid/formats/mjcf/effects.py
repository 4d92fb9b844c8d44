"""What MuJoCo does to joints besides rigid bodies and linear joint terms.

Forces of tendons, fluids, gravity compensation, actuators' own damping and armature, springs and
dampers that are not linear, and terms of joints with several degrees of freedom change the inverse
dynamics. They are refused by name; who wants the rest of the model says what to ignore.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

from feasid.errors import DescriptionError, InputError, did_you_mean
from feasid.formats.mjcf.files import MjcfFiles
from feasid.formats.terms import LeftOut
from feasid.formats.xml import Element

EFFECTS = {
    "tendon": "a tendon with a force or inertia of its own",
    "fluid": "drag in a fluid",
    "gravcomp": "gravity compensation",
    "actuator": "an actuator with damping or armature of its own",
    "nonlinear": "a spring or damper that is not linear, or that MuJoCo's compiler chooses",
    "multidof": "joint terms of a joint with several degrees of freedom",
    "equality": "an equality constraint other than linear ones of joints, connect and weld",
    "flex": "a deformable body",
    "plugin": "a plugin",
}
"""What ``load_robot(path, ignore=...)`` may leave out."""

TENDON_TERMS = ("stiffness", "damping", "frictionloss", "armature")
ACTUATOR_TERMS = ("damping", "armature")

LISTED = {
    "tendon": "tendon",
    "actuator": "actuator",
    "sensor": "sensor",
    "contact": "contact rule",
    "deformable": "deformable",
    "extension": "extension",
}
"""Sections whose members are listed by name, and what they are called."""

ACTUATORS = ("general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder",
             "muscle", "adhesion", "dcmotor")  # fmt: skip
"""Tags under which a class keeps the attributes of actuators."""

Attributes = Callable[[Element, Sequence[str]], dict[str, str]]
"""An element's attributes over those that its class keeps under these tags."""


@dataclass(frozen=True)
class Effect:
    """One thing that changes the dynamics and is not modelled: kind, where, and what."""

    kind: str
    path: str
    line: int
    text: str

    def fail(self) -> NoReturn:
        """Refuse the file."""
        raise DescriptionError(
            f"{self.path}:{self.line}: {self.text}: {EFFECTS[self.kind]} is not modelled; "
            f"load_robot(path, ignore=[{self.kind!r}]) reads the model without it",
            path=self.path,
            line=self.line,
            effect=self.kind,
        )


def acting(text: str) -> bool:
    """Whether an attribute holds a number other than zero."""
    try:
        return any(float(token) for token in text.split())
    except ValueError:
        return True


def section_effects(
    files: MjcfFiles, sections: Sequence[Element], attributes: Attributes
) -> Iterator[Effect]:
    """Effects of options, tendons, actuators, deformables and plugins."""

    def effect(kind: str, element: Element, text: str) -> Effect:
        return Effect(kind, files.text(element).path, element.line, text)

    for section in sections:
        if section.tag == "option":
            for name in ("density", "viscosity"):
                if acting(section.attributes.get(name, "0")):
                    yield effect("fluid", section, f"option {name}={section.attributes[name]}")
        elif section.tag == "deformable":
            for flex in section.all("flex"):
                yield effect("flex", flex, f"flex {flex.attributes.get('name', '')!r}")
        elif section.tag in ("tendon", "actuator"):
            terms = TENDON_TERMS if section.tag == "tendon" else ACTUATOR_TERMS
            tags = ("tendon",) if section.tag == "tendon" else ACTUATORS
            for child in files.children(section):
                values = attributes(child, tags)
                for name in terms:
                    if acting(values.get(name, "0")):
                        label = values.get("name") or f"<{child.tag}>"
                        text = f"{section.tag} {label!r} has {name}={values[name]}"
                        yield effect(section.tag, child, text)


def left_out(files: MjcfFiles, sections: Iterable[Element]) -> Iterator[LeftOut]:
    """Members of sections that are not read, by name."""
    for section in sections:
        if section.tag in LISTED:
            for child in files.children(section):
                name = child.attributes.get("name") or child.attributes.get("joint", "")
                yield LeftOut(LISTED[section.tag], name or f"<{child.tag}> on line {child.line}")


def check_ignored(ignore: Iterable[str]) -> frozenset[str]:
    """The names of effects to leave out, or say which one does not exist."""
    ignored = (ignore,) if isinstance(ignore, str) else tuple(ignore)
    for name in ignored:
        if name not in EFFECTS:
            raise InputError(
                f"ignore={name!r} is not known{did_you_mean(str(name), EFFECTS)}: choose of "
                f"{', '.join(EFFECTS)}"
            )
    return frozenset(ignored)


def refuse(effects: Iterable[Effect], ignored: frozenset[str]) -> Iterator[LeftOut]:
    """Refuse the first effect that is not ignored; list the others."""
    for effect in effects:
        if effect.kind not in ignored:
            effect.fail()
        yield LeftOut(f"{EFFECTS[effect.kind]} (ignored as asked)", effect.text)
