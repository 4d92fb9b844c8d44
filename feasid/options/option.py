"""Options: values checked by their annotation, and read from words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from feasid.core.errors import InputError
from feasid.core.kinds import ArgumentKind, UnfitError, kind_from_annotation
from feasid.core.text import quote

TRUE = ("true", "yes", "on", "1")
FALSE = ("false", "no", "off", "0")
NONE = ("none", "auto", "default")

NUMBER = re.compile(r"^a (?:whole )?number(?:(?! or ).)*")
"""The kind of a number, without what else an option may be."""


@dataclass(frozen=True)
class Option:
    """One option: declared once, used by signatures, validation, the command line and the docs.

    The annotation that it stands in says which values it takes, see `feasid.core.kinds`.
    """

    doc: str  #: One line.
    default: Any = None
    unit: str = ""
    #: (str, tuple): another option and its values, without which this one has no effect; an
    #: ellipsis among the values stands for any other than None.
    needs: tuple[str, tuple[Any, ...]] | None = None
    example: str = ""  #: A good value as it is typed at the prompt.
    annotation: Any = Any

    @cached_property
    def kind(self) -> ArgumentKind:
        """The kind of its values."""
        return kind_from_annotation(self.annotation)

    @cached_property
    def members(self) -> tuple[Any, ...]:
        """The types that its values may have, and literals, without ranges."""
        hint = _without_ranges(self.annotation)
        union = get_origin(hint) in (Union, UnionType)
        return tuple(map(_without_ranges, get_args(hint) if union else (hint,)))

    @cached_property
    def words(self) -> tuple[Any, ...]:
        """The values that it takes by name: texts, False and None."""
        named = [get_args(m) for m in self.members if get_origin(m) is Literal]
        return (
            *(word for words in named for word in words),
            *[None] * (type(None) in self.members),
        )

    @cached_property
    def syntax(self) -> str:
        """How it is typed: a key of `READERS`."""
        types = [m for m in self.members if get_origin(m) is not Literal and m is not NoneType]
        if str in types and not any(get_origin(m) or m is float for m in types):
            return "text"
        if len(types) != 1:
            return "value" if types else "choice"
        container, inner = get_origin(types[0]), get_args(types[0])
        item = _without_ranges(inner[0]) if container in (Sequence, Iterable) else None
        if item is str or get_origin(item) is Literal:
            return "words"
        names = {bool: "flag", int: "count", float: "number"}
        return "mapping" if container is Mapping else names.get(types[0], "value")

    def check(self, name: str, value: Any) -> Any:
        """The value, or `InputError` saying what was expected.

        Numbers, flags and sequences of names are converted; larger values stay as they are.
        """
        if value is self.default:
            return value
        try:
            converted = self.kind.convert(value)
        except UnfitError as error:
            raise self.value_error(name, value, str(error)) from None
        if self.syntax == "words" and value is not None:
            return tuple(converted)
        return value if self.syntax in ("mapping", "value") else converted

    def parse(self, name: str, text: str) -> Any:
        """The value of a command-line word."""
        word = text.strip().lower()
        nothing = self.syntax == "words" and word == "none"  # an empty sequence
        if word in NONE and not nothing and None in self.words:
            return None
        # The last of these words may be the number zero.
        if word in FALSE[:3] and any(w is False for w in self.words):
            return False
        if word in [w for w in self.words if isinstance(w, str)]:
            return word
        return self.check(name, READERS[self.syntax](self, name, text))

    def describe_domain(self) -> str:
        """The accepted values, as text."""
        return NUMBER.sub(rf"\g<0> [{self.unit}]", self.kind.text) if self.unit else self.kind.text

    def value_error(self, name: str, value: Any, wrong: str = "") -> InputError:
        """The error for an impossible value, and what is wrong with it."""
        wrong = wrong or f"not {quote(value)}"
        return InputError(f"{name} must be {self.describe_domain()}, {wrong}", option=name)


def _without_ranges(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _read_number(option: Option, name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise option.value_error(name, text) from None


def _read_flag(option: Option, name: str, text: str) -> bool:
    if (word := text.strip().lower()) not in (*TRUE, *FALSE):
        raise option.value_error(name, text)
    return word in TRUE


def _read_words(option: Option, name: str, text: str) -> Sequence[str]:
    if text.strip().startswith("["):
        return _read_json(option, name, text)  # type: ignore[no-any-return]
    return () if text.strip().lower() == "none" else tuple(w for w in text.split(",") if w)


def _read_json(option: Option, name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        raise option.value_error(name, text) from None


def _read_mapping(option: Option, name: str, text: str) -> Mapping[str, Any]:
    """JSON, or ``NAME=VALUE,NAME=VALUE`` with values in JSON or bare words."""
    if text.strip().startswith("{"):
        return _read_json(option, name, text)  # type: ignore[no-any-return]
    out = {}
    for entry in NEXT_NAME.split(text):
        key, sign, value = entry.partition("=")
        if not (key and sign and value):
            raise InputError(f"{name} needs NAME=VALUE, not {entry!r}", option=name)
        out[key] = _read_value(option, name, value)
    return out


NEXT_NAME = re.compile(r""",(?=[^,=\[\]{}"']+=)""")
"""The comma before another ``NAME=``, outside lists, objects and text."""


def _read_value(option: Option, name: str, text: str) -> Any:
    """JSON, numbers separated by commas where no text is meant, or a text."""
    with suppress(json.JSONDecodeError, RecursionError):
        return json.loads(text)
    with suppress(ValueError):
        numbers = () if str in option.members else tuple(float(word) for word in text.split(","))
        return numbers if len(numbers) > 1 else numbers[0] if numbers else text
    return text


def _read_any(option: Option, name: str, text: str) -> Any:
    """As `_read_value`, or ``NAME=VALUE,...`` where no text is meant."""
    value = _read_value(option, name, text)
    named = isinstance(value, str) and "=" in value and str not in option.members
    return _read_mapping(option, name, text) if named else value


READERS: dict[str, Callable[[Option, str, str], Any]] = {
    "number": _read_number,
    "count": _read_number,
    "flag": _read_flag,
    "choice": lambda option, name, text: text,
    "words": _read_words,
    "text": lambda option, name, text: text,
    "mapping": _read_mapping,
    "value": _read_any,
}
"""How a word of the command line is read: of a "mapping" from names, of "words" separated by
commas; of a "value" only its user knows what it may be.
"""
