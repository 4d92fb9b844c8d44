"""MJCF files and what they include, from inside the main file's folder only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from feasid.core.files import is_regular
from feasid.errors import InputError, LimitError, SecurityError
from feasid.formats.xml import (
    LIMITS,
    TEXT,
    Element,
    ReadLimits,
    XmlText,
    parse_xml,
    read_bytes,
)


class MjcfFiles:
    """A main MJCF file and its includes, read when they are met.

    Included files must lie in the main file's folder or below it, links resolved; each may be
    included once, as in MuJoCo. Nothing else is opened.
    """

    def __init__(self, main: XmlText, limits: ReadLimits = LIMITS) -> None:
        self.main = main
        self.limits = limits
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
            self.included[id(element)] = self._read(element)
        return self.included[id(element)]

    def _read(self, element: Element) -> Element:
        name = element.attributes.get("file", "")
        if not name:
            self.fail("<include> needs a file", element)
        path = self._find(element, name)
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
            raise LimitError(
                f"{self.main.path} and its includes are larger than {self.limits.size} bytes; "
                f"ReadLimits(size=...) raises this limit",
                path=self.main.path,
                limit=self.limits.size,
            )
        text = parse_xml(data, os.fspath(path), self.limits)
        self.chain[resolved] = f"{self.text(element).path}:{element.line}"
        self.texts[id(text.root)] = text
        return text.root

    def _find(self, element: Element, name: str) -> Path:
        """The file, relative to the main file or to the including one."""
        if self.main.path == TEXT:
            self.fail(
                "a description given as text cannot include files", element, kind=SecurityError
            )
        including = self.text(element)
        for folder in (Path(self.main.path).parent, Path(including.path).parent):
            path = folder / name
            try:
                inside = path.resolve().is_relative_to(self.folder)
            except (OSError, ValueError) as error:
                self.fail(f"cannot include {name!r}: {error}", element, kind=InputError)
            if Path(name).is_absolute() or not inside:
                self.fail(
                    f"include of {name!r} is refused: it lies outside {self.folder}",
                    element,
                    kind=SecurityError,
                )
            if is_regular(path):
                return path
        self.fail(f"included file {name!r} does not exist", element, kind=InputError)
