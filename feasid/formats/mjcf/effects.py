"""What MuJoCo does to joints besides rigid bodies and linear joint terms.

Forces of tendons, fluids, gravity compensation, actuators' own damping and armature, springs and
dampers that are not linear, and terms of joints with several degrees of freedom change the inverse
dynamics. They are refused by name; who wants the rest of the model says what to ignore.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

from feasid.formats.mjcf.model import MjcfFiles
from feasid.formats.terms import Effect, JointTerms, LeftOut
from feasid.formats.xml import Element

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


FLAGS = {"damping": "damper", "stiffness": "spring", "frictionloss": "frictionloss"}
"""Flag of ``<option>`` that switches a term off."""

Read = Callable[[str, str], float]
"""The number that an attribute's text stands for, checked."""


def joint_terms(
    kind: str, values: Mapping[str, str], disabled: Set[str], unit: float, read: Read
) -> tuple[JointTerms, list[tuple[str, str]]]:
    """Terms of a joint with these attributes; and (kind, text) of whatever else acts there.

    ``damping`` and ``stiffness`` may have higher-order coefficients, which are not linear.
    """
    effects = []
    for name in ("springdamper", "springyield"):
        if acting(values.get(name, "0")):
            effects.append(("nonlinear", f"{name}={values[name]}"))
    found = {}
    for name in ("armature", "damping", "frictionloss", "stiffness", "springref"):
        text = values.get(name, "0")
        first, *more = text.split() or [""]
        if more and name in ("damping", "stiffness"):
            if acting(" ".join(more)):
                effects.append(("nonlinear", f"{name}={text}"))
            text = first
        off = FLAGS.get(name) in disabled or (name == "frictionloss" and "constraint" in disabled)
        found[name] = 0.0 if off else read(name, text)
    terms = JointTerms(
        found["armature"],
        found["damping"],
        found["frictionloss"],
        found["stiffness"],
        found["springref"] * unit,
    )
    if kind not in ("hinge", "slide") and terms.values:
        effects.append(("multidof", ", ".join(f"{k}={v:g}" for k, v in found.items() if v)))
    return terms, effects


def motors(files: MjcfFiles, sections: Sequence[Element], attributes: Attributes) -> list[str]:
    """Joints that actuators drive."""
    out = []
    for section in sections:
        if section.tag == "actuator":
            for element in files.children(section):
                joint = attributes(element, (element.tag,)).get("joint", "")
                out += [joint] if joint else []
    return out
