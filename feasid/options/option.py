"""Options: kind, unit, default and range; values checked, and read from words."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from feasid.core.arguments import FLAG, MOST, ArgumentKind, UnfitError, count, number
from feasid.core.errors import InputError, did_you_mean
from feasid.core.text import quote

TRUE = ("true", "yes", "on", "1")
FALSE = ("false", "no", "off", "0")
NONE = ("none", "auto", "default")


@dataclass(frozen=True)
class Option:
    """One option: declared once, used by signatures, validation, the command line and the docs."""

    #: One of "number", "count", "flag", "choice", "words", "mapping", "value": "words" is a
    #: sequence of names from `choices`; "mapping" goes from names to anything; of a "value" only
    #: its user knows what it may be.
    kind: str
    doc: str  #: One line.
    default: Any = None
    unit: str = ""
    low: float = -math.inf  #: Range of a number or count.
    high: float = math.inf  #: See `low`.
    open: bool = False  #: Whether `low` itself is out of range.
    choices: tuple[str, ...] = ()
    #: Values outside the range that are allowed too, such as None and False.
    special: tuple[Any, ...] = ()
    #: (str, tuple): another option and its values, without which this one has no effect; an
    #: ellipsis among the values stands for any other than None.
    needs: tuple[str, tuple[Any, ...]] | None = None
    form: ArgumentKind | None = None  #: What a value, or each value of a mapping, must look like.
    example: str = ""  #: A good value as it is typed at the prompt.

    def check(self, name: str, value: Any) -> Any:
        """The value, or `InputError` saying what was expected."""
        special = (*self.special, self.default)
        if any(value is s for s in special) or (isinstance(value, str) and value in special):
            return value
        check, _ = KINDS[self.kind]
        return check(self, name, value)

    def parse(self, name: str, text: str) -> Any:
        """The value of a command-line word."""
        word = text.strip().lower()
        nothing = self.kind == "words" and word == "none"  # an empty sequence
        if word in NONE and not nothing and (self.default is None or None in self.special):
            return None
        if self.kind != "flag" and word in FALSE[:3] and any(s is False for s in self.special):
            return False
        if word in [s for s in self.special if isinstance(s, str)]:
            return word
        _, read = KINDS[self.kind]
        return self.check(name, read(self, name, text))

    def describe_domain(self) -> str:
        """The accepted values, as text."""
        unit = f" [{self.unit}]" if self.unit else ""
        if self.kind in ("number", "count", "flag"):
            text = f"{self.plain_kind.text}{unit}"
        elif self.choices:
            one = "one" if self.kind == "choice" else "a sequence"
            text = f"{one} of {', '.join(map(repr, self.choices))}"
        else:
            text = "a mapping by name" if self.kind == "mapping" else "a value"
            if self.form is not None:
                text = f"{text} of {self.form.text}" if self.kind == "mapping" else self.form.text
        special = [
            repr(s)
            for s in dict.fromkeys((*self.special, *((None,) if self.default is None else ())))
        ]
        return " or ".join([text, *special])

    @property
    def plain_kind(self) -> ArgumentKind:
        """The kind of value of a number, a count or a flag."""
        if self.kind == "count":
            return count(self.low, min(self.high, MOST))
        return FLAG if self.kind == "flag" else number(self.low, self.high, open=self.open)

    def value_error(self, name: str, value: Any) -> InputError:
        """The error for an impossible value."""
        return InputError(
            f"{name} must be {self.describe_domain()}, not {quote(value)}", option=name
        )


def _check_number(option: Option, name: str, value: Any) -> Any:
    try:
        return option.plain_kind.convert(value)
    except UnfitError:
        raise option.value_error(name, value) from None


def _check_choice(option: Option, name: str, value: Any) -> str:
    if not isinstance(value, str) or value not in option.choices:
        hint = did_you_mean(value, option.choices) if isinstance(value, str) else ""
        raise InputError(f"{option.value_error(name, value)}{hint}", option=name)
    return value


def _check_words(option: Option, name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        raise option.value_error(name, value)
    if option.choices:
        return tuple(_check_choice(option, name, word) for word in value)
    if not all(isinstance(word, str) for word in value):
        raise option.value_error(name, value)
    return tuple(value)


def _check_mapping(option: Option, name: str, value: Any) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise option.value_error(name, value)
    for key, item in value.items():
        if option.form is not None and not option.form.accepts(item):
            what = f"{name} of {key!r} must be {option.form.text}"
            raise InputError(f"{what}, not {quote(item)}", option=name)
    return value


def _check_value(option: Option, name: str, value: Any) -> Any:
    if option.form is not None and not option.form.accepts(value):
        raise option.value_error(name, value)
    return value


def _read_number(option: Option, name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise option.value_error(name, text) from None


def _read_flag(option: Option, name: str, text: str) -> bool:
    if (word := text.strip().lower()) not in (*TRUE, *FALSE):
        raise option.value_error(name, text)
    return word in TRUE


def _read_words(option: Option, name: str, text: str) -> tuple[str, ...]:
    if text.strip().startswith("["):
        return tuple(_read_json(option, name, text))
    return () if text.strip().lower() == "none" else tuple(w for w in text.split(",") if w)


def _read_json(option: Option, name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        raise option.value_error(name, text) from None


def _read_mapping(option: Option, name: str, text: str) -> Mapping[str, Any]:
    """JSON, or ``NAME=VALUE,NAME=VALUE`` with values in JSON or bare words."""
    if text.strip().startswith("{"):
        return _check_mapping(option, name, _read_json(option, name, text))
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
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return text


KINDS: dict[str, tuple[Callable[[Option, str, Any], Any], Callable[[Option, str, str], Any]]] = {
    "number": (_check_number, _read_number),
    "count": (_check_number, _read_number),
    "flag": (_check_number, _read_flag),
    "choice": (_check_choice, lambda option, name, text: text),
    "words": (_check_words, _read_words),
    "mapping": (_check_mapping, _read_mapping),
    "value": (_check_value, _read_value),
}
"""How values of each kind are checked, and how they are read from a word of the command line."""
