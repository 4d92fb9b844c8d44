"""Default attributes of MJCF, by class and tag."""

from __future__ import annotations

from collections.abc import Sequence

from feasid.errors import did_you_mean
from feasid.exact.decimals import shown
from feasid.formats.mjcf.files import MjcfFiles
from feasid.formats.xml import Element

MAIN = "main"
"""The class of elements that name none."""


class Defaults:
    """Collects ``<default>`` sections and answers for elements."""

    def __init__(self, files: MjcfFiles) -> None:
        self.files = files
        self.classes: dict[str, dict[str, dict[str, str]]] = {}

    def read(self, element: Element, parent: str | None) -> None:
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
            self.read(child, name)

    def of(self, element: Element, name: str, tags: Sequence[str]) -> dict[str, str]:
        """Attributes that class `name` keeps under these tags."""
        if name not in self.classes and name != MAIN:
            hint = did_you_mean(name, self.classes)
            self.files.fail(f"default class {shown(name)} does not exist{hint}", element)
        known = self.classes.get(name, {})
        return {k: v for tag in tags for k, v in known.get(tag, {}).items()}
