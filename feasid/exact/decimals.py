"""Decimal numbers in text: checked, as floats and as the exact rationals that they are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d+))?", re.ASCII)

MAX_LENGTH = 256
"""Characters of one number; also keeps the exact fraction small."""

MAX_EXPONENT = 400
"""Largest exponent of a number, far beyond that of doubles: fractions stay small."""

LARGEST, SMALLEST = 1e50, 1e-150
"""No mass, length or inertia is beyond these: products and quotients of a few still fit floats."""


@dataclass(frozen=True)
class Number:
    """A decimal number as it stands in a file.

    >>> n = Number.parse("0.1")
    >>> n.value, n.exact
    (0.1, Fraction(1, 10))
    """

    text: str
    value: float

    @classmethod
    def parse(cls, text: str) -> Number:
        """The number that `text` writes; ``ValueError`` says what is wrong with it."""
        token = text.strip(" \t\r\n")
        return cls(token, parse(token))

    @cached_property
    def exact(self) -> Fraction:
        """The rational that the decimal is, without rounding."""
        return Fraction(self.text)


def parse(token: str) -> float:
    """A finite float of a plain decimal; ``ValueError`` says what is wrong with the text."""
    match = _DECIMAL.fullmatch(token) if len(token) <= MAX_LENGTH else None
    if match is None:
        raise ValueError(_complaint(token))
    if match[1] and abs(int(match[1])) > MAX_EXPONENT:
        raise ValueError(f"{quote(token)} has an exponent beyond +-{MAX_EXPONENT}")
    value = float(token)
    if abs(value) > LARGEST:
        raise ValueError(f"{quote(token)} is beyond {LARGEST:g}")
    if abs(value) < SMALLEST and re.match(r"[^eE]*[1-9]", token):
        raise ValueError(f"{quote(token)} is smaller than {SMALLEST:g} and not zero")
    return value


def quote(token: str) -> str:
    """The text in quotes, shortened when long."""
    return repr(token if len(token) <= 60 else token[:57] + "...")


def _complaint(token: str) -> str:
    seen = quote(token)
    if not token:
        return "a number is missing (the text is empty)"
    if len(token) > MAX_LENGTH:
        return f"{seen} is longer than {MAX_LENGTH} characters"
    bare = token.lstrip("+-").lower()
    if bare in ("nan", "inf", "infinity", ".inf", ".nan") or bare.startswith("nan("):
        return f"{seen} is not a finite number"
    if "${" in token or "$(" in token:
        return f"{seen} is a xacro expression: run xacro first (xacro robot.xacro > robot.urdf)"
    if "," in token:
        return f"{seen} is not a number: write decimals with a point, not a comma"
    if bare.startswith("0x"):
        return f"{seen} is not a decimal number"
    unit = re.fullmatch(r"([+-]?(?:\d+\.?\d*|\.\d+))\s*([A-Za-z*/^ ]+\d?)", token, re.ASCII)
    if unit:
        return f"{seen} is not a number: remove {unit[2]!r}, units are SI and are not written"
    return f"{seen} is not a number"
