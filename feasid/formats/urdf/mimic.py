"""``<mimic>``: the joint that a joint follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from feasid.formats.xml import Element

if TYPE_CHECKING:
    from feasid.formats.urdf.read import _UrdfReader


@dataclass(frozen=True, eq=False)
class Mimic:
    """A ``<mimic>``: q = multiplier q_joint + offset."""

    element: Element
    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


def mimic_of(reader: _UrdfReader, parent: Element, owner: dict[str, str]) -> Mimic | None:
    """The joint that this one follows; None if it moves by itself."""
    element = reader.only(parent, "mimic", owner)
    if element is None:
        return None
    if not element.attributes.get("joint"):
        reader.fail("lacks 'joint'", element, "joint", owner)
    factor, offset = (
        reader.numbers(element, name, 1, owner, default)[0].value
        for name, default in (("multiplier", "1"), ("offset", "0"))
    )
    return Mimic(element, element.attributes["joint"], factor, offset)
