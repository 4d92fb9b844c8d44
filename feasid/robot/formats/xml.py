"""XML as text: a strict reader that remembers where everything stands, so that it can be patched.

Robot description files may come from untrusted sources. The reader uses the standard library's
expat and rejects features that no description needs: document type declarations (hence entities of
any kind), deep nesting, huge files. It opens nothing but the file itself. Every element knows its
line and its place in the text, every attribute value its span, so that an error can point at it and
a writer can replace that value and nothing else.
"""

from __future__ import annotations

import codecs
import gc
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn
from xml.parsers import expat

import numpy as np

from feasid.core.errors import DescriptionError, InputError, LimitError, SecurityError
from feasid.core.exact.numbers import SMALLEST
from feasid.core.files import read_whole
from feasid.core.text import escape_markup, quote, quote_attribute


@dataclass(frozen=True)
class ReadLimits:
    """Sizes beyond which a description file is refused with a `LimitError`."""

    size: int = 64 * 1024 * 1024
    """Largest number of bytes of the file."""
    items: int = 1_000_000
    """Largest number of elements and attributes together."""
    depth: int = 256
    """Largest depth of nested elements."""
    token: int = 1024 * 1024
    """Largest number of bytes of one tag or comment."""


LIMITS = ReadLimits()

TEXT = "<text>"  #: In place of the path of a description that was given as text.

_CHUNK = 64 * 1024
"""Bytes that the parser gets at a time, between which the length of a tag is checked."""

_TOKEN = re.compile(rb"[^ \t\r\n]+")

_NO_ATTRIBUTES: dict[str, str] = {}  # shared by all elements without attributes

_ATTRIBUTE = re.compile(rb"""\s+([^\s=<>/]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")

_DECLARED = re.compile(rb"""^<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._\-]+)["']""")

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "iso8859-1", "ascii", "cp1252", "iso8859-15")


@dataclass(slots=True, eq=False)
class Element:
    """One element: its tag, attributes, children and place."""

    tag: str
    attributes: dict[str, str]
    parent: Element | None
    start: int  #: Offset of its ``<`` in `XmlText.utf8`.
    line: int
    close: int = -1  #: Offset of the ``<`` of its end tag; of no use when the tag closes itself.
    children: Sequence[Element] = ()

    def find(self, tag: str) -> Element | None:
        """First child with this tag."""
        return next((c for c in self.children if c.tag == tag), None)

    def all(self, tag: str) -> list[Element]:
        """Children with this tag."""
        return [c for c in self.children if c.tag == tag]

    def walk(self) -> Iterator[Element]:
        """The element and everything below it, in the order of the text."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting.extend(reversed(element.children))


@dataclass(frozen=True, eq=False)
class XmlText:
    """A parsed file: its root element and the text that it came from."""

    path: str  #: For messages.
    data: bytes = field(repr=False)  #: The file as it is on disk.
    #: The same text in UTF-8 without byte order mark; offsets refer to it.
    utf8: bytes = field(repr=False)
    encoding: str  #: How `data` was encoded.
    bom: bytes  #: See `encoding`.
    root: Element
    notes: tuple[str, ...] = ()  #: What is not XML and was read as other programs read it.
    limits: ReadLimits = LIMITS  #: Of this file, and of those that it includes.
    model: str = ""  #: Which of several models of the file is read.

    def spans(self, element: Element) -> tuple[dict[str, tuple[int, int]], int]:
        """Spans of the attribute values in `utf8`, and the offset behind the start tag's ``>``."""
        position = element.start + 1 + len(element.tag.encode())
        spans = {}
        while match := _ATTRIBUTE.match(self.utf8, position):
            spans[match[1].decode()] = match.span(2 if match[2] is not None else 3)
            position = match.end()
        return spans, self.utf8.index(b">", position) + 1

    def closes_itself(self, element: Element) -> bool:
        """Whether the element is written ``<tag/>``."""
        end = self.spans(element)[1]
        return self.utf8[end - 2 : end] == b"/>"

    def end(self, element: Element) -> int:
        """Offset behind an element's last ``>``."""
        if self.closes_itself(element):
            return self.spans(element)[1]
        return self.utf8.index(b">", element.close) + 1

    def content(self, element: Element) -> str:
        """The text inside an element without children, entities and CDATA sections resolved."""
        if self.closes_itself(element):
            return ""
        raw = self.utf8[self.spans(element)[1] : element.close]
        if b"<" not in raw and b"&" not in raw:
            return raw.decode()
        parts: list[str] = []
        parser = expat.ParserCreate("utf-8")
        parser.CharacterDataHandler = parts.append
        parser.Parse(b"<text>" + _comments_without_dashes(raw) + b"</text>", True)
        return "".join(parts)

    def place(self, element: Element, attribute: str | None = None) -> tuple[int, int]:
        """Line and column, both from 1, of an element or of one of its attribute values."""
        offset = element.start
        if attribute is not None and attribute in element.attributes:
            offset = self.spans(element)[0][attribute][0]
        line_start = self.utf8.rfind(b"\n", 0, offset) + 1
        line = element.line + self.utf8.count(b"\n", element.start, offset)
        return line, len(self.utf8[line_start:offset].decode()) + 1

    def fail(
        self,
        message: str,
        element: Element,
        attribute: str | None = None,
        kind: type[InputError] = DescriptionError,
        **data: Any,
    ) -> NoReturn:
        """Raise `kind` with file, line and column in the message and as attributes."""
        line, column = self.place(element, attribute)
        if attribute is not None:
            data["attribute"] = attribute
        raise kind(
            f"{self.path}:{line}:{column}: {message}",
            path=self.path,
            line=line,
            column=column,
            **data,
        )

    def encode(self, utf8: bytes) -> bytes:
        """Changed UTF-8 text in the file's own encoding, byte order mark included."""
        if self.encoding == "utf-8":
            return self.bom + utf8
        return self.bom + utf8.decode().encode(self.encoding, "xmlcharrefreplace")


def read_bytes(path: str | os.PathLike[str], limits: ReadLimits = LIMITS) -> bytes:
    """Read a regular file of limited size; an error names what is wrong with the path."""
    try:
        return read_whole(path, limits.size)
    except LimitError as error:
        raise size_error(str(path), limits) from error


def size_error(path: str, limits: ReadLimits, others: str = "") -> LimitError:
    """The error of a file that is too large, with the `others` that it includes."""
    return LimitError(
        f"{path}{others} is larger than {limits.size} bytes; "
        "ReadLimits(size=...) raises this limit",
        path=path,
        limit=limits.size,
    )


NO_XML = {b"#usda": "usd", b"PXR-USDC": "usd"}
"""Beginnings of files that are not XML, and the tag of the root element used for them."""


def parse_xml(
    data: bytes, path: str = TEXT, limits: ReadLimits = LIMITS, model: str = ""
) -> XmlText:
    """Parse a file's bytes, of which one `model` shall be read.

    Raises DescriptionError: not well-formed or not decodable; with line and column, or byte offset.
    Raises SecurityError: a document type declaration. Raises LimitError: larger or deeper than
    `limits`.
    """
    if len(data) > limits.size:
        raise size_error(path, limits)
    if not data.strip():
        raise DescriptionError(f"{path} is empty", path=path, line=1, column=1)
    if data.startswith(b"PK\x03\x04"):
        text = (
            "is an archive: unpack it, name the file in it; a saved fit has feasid.load(path).robot"
        )
        raise DescriptionError(f"{path} {text}", path=path)
    for beginning, tag in NO_XML.items():
        if data.startswith(beginning):
            root = Element(tag, {}, None, 0, 1)
            return XmlText(path, data, b"", "utf-8", b"", root, (), limits, model)
    utf8, encoding, bom = _decode(data, path)
    notes: tuple[str, ...] = ()
    # The garbage collector would scan the growing tree again and again.
    was_on = gc.isenabled()
    gc.disable()
    try:
        root = _Builder(path, limits).parse(utf8)
    except DescriptionError as error:
        legal = _comments_without_dashes(utf8)
        if legal == utf8:
            raise
        root = _Builder(path, limits).parse(legal)
        notes = (
            f"{path}:{error.data.get('line')}: a comment holds '--', which XML forbids; it is "
            "read as other programs read it",
        )
    finally:
        if was_on:
            gc.enable()
    return XmlText(path, data, utf8, encoding, bom, root, notes, limits, model)


def _comments_without_dashes(utf8: bytes) -> bytes:
    """The text with a space for each dash inside a comment, where other readers take ``--``."""
    parts, at = [], 0
    while (start := utf8.find(b"<!--", at)) >= 0 and (end := utf8.find(b"-->", start + 4)) >= 0:
        parts += [utf8[at : start + 4], utf8[start + 4 : end].replace(b"-", b" ")]
        at = end
    return b"".join([*parts, utf8[at:]])


def _decode(data: bytes, path: str) -> tuple[bytes, str, bytes]:
    """Text in UTF-8, and the encoding and byte order mark it had."""
    bom, encoding = next(((b, e) for b, e in _BOMS if data.startswith(b)), (b"", ""))
    if not encoding:
        # Without a byte order mark UTF-16 shows by the declaration that it must begin with.
        if data[:4] == b"<\0?\0":
            encoding = "utf-16-le"
        elif data[:4] == b"\0<\0?":
            encoding = "utf-16-be"
        else:
            declared = _DECLARED.match(data[:200])
            name = declared[1].decode() if declared else "utf-8"
            with suppress(LookupError):
                encoding = codecs.lookup(name).name
            if encoding not in _ENCODINGS:
                raise DescriptionError(
                    f"{path}:1: encoding {name!r} is not supported: save the file as UTF-8",
                    path=path,
                    line=1,
                )
    try:
        text = data[len(bom) :].decode(encoding)
    except UnicodeDecodeError as error:
        offset = error.start + len(bom)
        raise DescriptionError(
            f"{path}: byte {offset} is not {encoding} text; declare the file's encoding in its "
            f"first line, for instance <?xml version='1.0' encoding='iso-8859-1'?>",
            path=path,
            offset=offset,
        ) from error
    return text.encode(), encoding, bom


class _Builder:
    """Builds the tree from expat's events and enforces the limits."""

    def __init__(self, path: str, limits: ReadLimits) -> None:
        self.path = path
        self.limits = limits
        self.root: Element | None = None
        self.open: list[Element] = []
        self.items = 0
        self.parser = parser = expat.ParserCreate("utf-8")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._doctype

    def parse(self, utf8: bytes) -> Element:
        try:
            for first in range(0, len(utf8), _CHUNK):
                self.parser.Parse(utf8[first : first + _CHUNK], False)
                # Expat keeps all of a tag in memory until its end comes.
                pending = first + _CHUNK - max(self.parser.CurrentByteIndex, 0)
                if pending > self.limits.token + _CHUNK:
                    self._limit("a tag or comment is longer than", "token", "bytes")
            self.parser.Parse(b"", True)
        except expat.ExpatError as error:
            line, column = error.lineno, error.offset + 1
            last = self.open[-1] if self.open else None
            place = f", inside <{last.tag}> opened on line {last.line}" if last else ""
            what = f"not well-formed XML: {expat.ErrorString(error.code)}{place}"
            if not utf8.lstrip().startswith(b"<"):
                start = quote(utf8[:20].decode(errors="replace"))
                what = f"no XML, as a robot's description is: it begins with {start}"
            raise DescriptionError(
                f"{self.path}:{line}:{column}: {what}", path=self.path, line=line, column=column
            ) from error
        if self.root is None:
            raise DescriptionError(f"{self.path} has no root element", path=self.path)
        return self.root

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self.items += 1 + len(attributes)
        if self.items > self.limits.items:
            self._limit("more elements and attributes than", "items", "")
        if len(self.open) >= self.limits.depth:
            self._limit("elements are nested deeper than", "depth", "levels")
        parent = self.open[-1] if self.open else None
        place = self.parser.CurrentByteIndex, self.parser.CurrentLineNumber
        element = Element(tag, attributes or _NO_ATTRIBUTES, parent, *place)
        if parent is None:
            self.root = element
        elif isinstance(parent.children, list):  # most elements have none, and share a tuple
            parent.children.append(element)
        else:
            parent.children = [element]
        self.open.append(element)

    def _end(self, tag: str) -> None:
        self.open.pop().close = self.parser.CurrentByteIndex

    def _doctype(self, *_: Any) -> NoReturn:
        line = self.parser.CurrentLineNumber
        raise SecurityError(
            f"{self.path}:{line}: a document type declaration (<!DOCTYPE ...>) is rejected, since "
            f"it can define entities that read other files or exhaust memory; delete it",
            path=self.path,
            line=line,
        )

    def _limit(self, what: str, option: str, unit: str) -> NoReturn:
        line = self.parser.CurrentLineNumber
        value = getattr(self.limits, option)
        raise LimitError(
            f"{self.path}:{line}: {what} {value} {unit}".rstrip()
            + f"; ReadLimits({option}=...) raises this limit",
            path=self.path,
            line=line,
            limit=value,
        )


# -- changes ---------------------------------------------------------------------------------------


def flush_to_zero(value: float) -> float:
    """The value, or zero for one so small that the reader of description files refuses it."""
    return 0.0 if abs(value) < SMALLEST else float(value)


def shortest_decimal(value: float) -> str:
    """The shortest decimal that reads back as the same float (at most 17 digits).

    Values below `feasid.core.exact.numbers.SMALLEST` are written as zero.
    """
    return repr(flush_to_zero(value) + 0.0)


def decimals(values: object) -> str:
    """Numbers in a line, each the `shortest_decimal`; text as it is."""
    if isinstance(values, str):
        return values
    return " ".join(shortest_decimal(float(v)) for v in np.asarray(values, np.float64).ravel())


def markup(tag: str, *inside: object, **attributes: object) -> list[str]:
    """Lines of a new element.

    `*inside`: lines of children in lists; anything else is the element's text. Text is escaped,
    numbers are written as `decimals`, and None is left out; `**attributes`: text or
    numbers; those that are None are left out.
    """
    values = {k: v for k, v in attributes.items() if v is not None}
    head = "".join([tag, *(f" {k}={quote_attribute(decimals(v))}" for k, v in values.items())])
    children = [f"  {line}" for part in inside if isinstance(part, list) for line in part]
    text = [escape_markup(decimals(x)) for x in inside if not (x is None or isinstance(x, list))]
    if children:
        return [f"<{head}>", *children, f"</{tag}>"]
    return [f"<{head}>{text[0]}</{tag}>" if text else f"<{head}/>"]


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
        spans = self.text.spans(element)[0]
        if attribute not in spans:
            self.new_attribute(element, attribute, decimals(values))
            return
        self._set_numbers(*spans[attribute], values)

    def new_attribute(self, element: Element, attribute: str, value: str) -> None:
        """Add an attribute that the element does not have."""
        at = element.start + 1 + len(element.tag.encode())
        self.changes.append((at, at, f" {attribute}={quote_attribute(value)}".encode()))

    def add_missing_attributes(self, element: Element, values: Mapping[str, str]) -> None:
        """Add those attributes that the element does not have."""
        for attribute, value in values.items():
            if attribute not in element.attributes:
                self.new_attribute(element, attribute, value)

    def content(self, element: Element, values: Sequence[float]) -> None:
        """Set the numbers inside an element; those with the same value keep their text."""
        start = self.text.spans(element)[1]
        if self.text.closes_itself(element):
            self.changes.append((start - 2, start, f">{decimals(values)}</{element.tag}>".encode()))
            return
        self._set_numbers(start, element.close, values)

    def _set_numbers(self, start: int, end: int, values: Sequence[float]) -> None:
        """Set the numbers between two offsets, all of them where they are not plain text."""
        inside = self.text.utf8[start:end]
        tokens = list(_TOKEN.finditer(self.text.utf8, start, end))
        if len(tokens) != len(values) or b"&" in inside or b"<" in inside:
            self.changes.append((start, end, decimals(values).encode()))
            return
        for token, value in zip(tokens, values, strict=True):
            if float(token[0]) != flush_to_zero(value):
                self.changes.append((*token.span(), shortest_decimal(value).encode()))

    def insert_first(self, parent: Element, lines: Sequence[str]) -> None:
        """Insert lines of markup as the first thing inside `parent`, indented like what follows."""
        outer = self.indent(parent) or b"\n"
        inner = self.indent(parent.children[0]) if parent.children else b""
        block = b"".join((inner or outer + b"  ") + line.encode() for line in lines)
        open_end = self.text.spans(parent)[1]
        if self.text.closes_itself(parent):
            closing = block + outer + f"</{parent.tag}>".encode()
            self.changes.append((open_end - 2, open_end, b">" + closing))
        else:
            self.changes.append((open_end, open_end, block))

    def insert_last(self, parent: Element, lines: Sequence[str]) -> None:
        """Insert lines of markup as the last thing inside `parent`."""
        if parent.children:
            end, indent = self.text.end(parent.children[-1]), self.indent(parent.children[-1])
            self.changes.append((end, end, b"".join(indent + line.encode() for line in lines)))
        else:
            self.insert_first(parent, lines)

    def indent(self, element: Element) -> bytes:
        """Line break and white space before an element; empty when it does not start a line."""
        line = self.text.utf8.rfind(b"\n", 0, element.start)
        line_start = self.text.utf8[line + 1 : element.start]
        if line < 0 or line_start.strip():
            return b""
        return (b"\r\n" if self.text.utf8[line - 1 : line] == b"\r" else b"\n") + line_start
