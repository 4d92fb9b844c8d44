"""Armature, damping, friction loss and springs of MJCF joints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

from feasid.formats.mjcf.effects import acting
from feasid.formats.mjcf.model import JOINT_TYPES
from feasid.formats.terms import JointTerms

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
    if JOINT_TYPES[kind] > 1 and terms.values:
        effects.append(("multidof", ", ".join(f"{k}={v:g}" for k, v in found.items() if v)))
    return terms, effects
