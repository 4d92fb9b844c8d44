"""What a URDF file holds beside links and joints, by name: nothing is dropped without a word."""

from __future__ import annotations

from collections.abc import Iterator

from feasid.formats.terms import LeftOut
from feasid.formats.xml import Element

DYNAMICS = ("damping", "friction")
"""Attributes of ``<dynamics>`` that are read."""

KNOWN = {
    "robot": ("link", "joint", "material"),
    "link": ("inertial", "visual", "collision"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
}
"""Children that are read, or only show what a robot looks like; all others are listed."""


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
