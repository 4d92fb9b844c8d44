"""Changes to an XML text that leave every other byte as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from feasid.exact.decimals import SMALLEST
from feasid.formats.xml.text import Element, XmlText

_TOKEN = re.compile(rb"[^ \t\r\n]+")


def representable(value: float) -> float:
    """The value, or zero for one so small that the reader of description files refuses it."""
    return 0.0 if abs(value) < SMALLEST else float(value)


def written(value: float) -> str:
    """The shortest decimal that reads back as the same float (at most 17 digits).

    Values below `feasid.exact.decimals.SMALLEST` are written as zero.
    """
    return repr(representable(value) + 0.0)


class Patch:
    """Collects replacements in one text; `apply` gives the changed file."""

    def __init__(self, text: XmlText) -> None:
        self.text = text
        self.changes: list[tuple[int, int, bytes]] = []

    def apply(self) -> bytes:
        """The file with all changes made, in its own encoding."""
        if not self.changes:
            return self.text.data
        parts, position = [], 0
        for start, end, new in sorted(self.changes):
            if start < position:
                raise ValueError(f"changes overlap at offset {start} of {self.text.path}")
            parts += [self.text.utf8[position:start], new]
            position = end
        return self.text.encode(b"".join([*parts, self.text.utf8[position:]]))

    def numbers(self, element: Element, attribute: str, values: Sequence[float]) -> None:
        """Set the numbers of an attribute; those with the same value keep their text."""
        values = [representable(v) for v in values]
        new = [written(v) for v in values]
        spans = self.text.spans(element)[0]
        if attribute not in spans:
            at = element.start + 1 + len(element.tag.encode())
            self.changes.append((at, at, f' {attribute}="{" ".join(new)}"'.encode()))
            return
        start, end = spans[attribute]
        tokens = list(_TOKEN.finditer(self.text.utf8, start, end))
        if len(tokens) != len(new) or b"&" in self.text.utf8[start:end]:
            self.changes.append((start, end, " ".join(new).encode()))
            return
        for token, value, decimal in zip(tokens, values, new, strict=True):
            if float(token[0]) != value:
                self.changes.append((*token.span(), decimal.encode()))

    def insert_first(self, parent: Element, lines: Sequence[str]) -> None:
        """Insert lines of markup as the first thing inside `parent`."""
        indent = self.indent(parent)
        inner = (indent or b"\n") + b"  "
        block = b"".join(inner + line.encode() for line in lines)
        open_end = self.text.spans(parent)[1]
        if self.text.closes_itself(parent):
            closing = block + (indent or b"\n") + f"</{parent.tag}>".encode()
            self.changes.append((open_end - 2, open_end, b">" + closing))
        else:
            self.changes.append((open_end, open_end, block))

    def insert_before(self, element: Element, line: str) -> None:
        """Insert one line of markup before `element`, indented like it."""
        new = line.encode() + (self.indent(element) or b"")
        self.changes.append((element.start, element.start, new))

    def insert_after(self, element: Element, line: str) -> None:
        """Insert one line of markup behind `element`, indented like it."""
        end = self.end(element)
        self.changes.append((end, end, (self.indent(element) or b"") + line.encode()))

    def indent(self, element: Element) -> bytes:
        """Line break and white space before an element; empty when it does not start a line."""
        line = self.text.utf8.rfind(b"\n", 0, element.start)
        before = self.text.utf8[line + 1 : element.start]
        if line < 0 or before.strip():
            return b""
        return (b"\r\n" if self.text.utf8[line - 1 : line] == b"\r" else b"\n") + before

    def end(self, element: Element) -> int:
        """Offset behind an element's last ``>``."""
        if self.text.closes_itself(element):
            return self.text.spans(element)[1]
        return self.text.utf8.index(b">", element.close) + 1
