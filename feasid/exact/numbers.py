"""Exact numbers: what doubles and decimals in text stand for, as text, and over one integer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import lcm

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array

Integers = npt.NDArray[np.object_]
"""Arrays of int."""

MANTISSA = 53
"""Bits of a double's significand."""

SHORT_DIGITS, SHORT_ERROR = 10, 1e-13
"""A computed coefficient so near to a decimal of so many digits stands for it: 0.045 squared is
0.002025, so that what cancels on paper cancels."""

PLAIN_NUMERATOR, PLAIN_DENOMINATOR = 10**5, 999
"""Of simple fractions: larger ones are near to any number."""


@lru_cache(maxsize=4096)  # entries of constraints come again and again
def printed_decimal(number: float) -> Fraction:
    """The number that Python prints for a double, exactly."""
    return Fraction(repr(float(number)))


def simplest_number(number: float) -> Fraction:
    """A computed coefficient as the short decimal or simple fraction that it stands for."""
    if not number:
        return Fraction(0)
    simple = Fraction(float(number)).limit_denominator(PLAIN_DENOMINATOR)
    simple_ones = [simple] if abs(simple.numerator) < PLAIN_NUMERATOR else []
    for short in (*simple_ones, Fraction(f"{number:.{SHORT_DIGITS}g}")):
        if abs(float(short) - number) <= SHORT_ERROR * abs(number):
            return short
    return printed_decimal(number)


def shortest_text(number: Fraction) -> str:
    """Shortest exact form: a decimal where there is one of reasonable length, else p/q."""
    denominator, tens = number.denominator, 0
    while denominator % 10 == 0:
        denominator, tens = denominator // 10, tens + 1
    power = tens
    while denominator > 1 and power < 400:
        if denominator % 2 == 0:
            denominator, power = denominator // 2, power + 1
        elif denominator % 5 == 0:
            denominator, power = denominator // 5, power + 1
        else:
            break
    if denominator > 1:
        return f"{number.numerator}/{number.denominator}"
    if power == 0:
        return str(number.numerator)
    digits = abs(number.numerator * 10**power // number.denominator)
    sign = "-" if number < 0 else ""
    whole, part = divmod(digits, 10**power)
    return f"{sign}{whole}.{str(part).zfill(power).rstrip('0') or '0'}"


def common_denominator(numbers: Iterable[Fraction]) -> tuple[Integers, int]:
    """Integers, and the denominator that they share."""
    listed = list(numbers)
    over = lcm(*{x.denominator for x in listed})
    out = np.zeros(len(listed), dtype=object)
    out[:] = [x.numerator * (over // x.denominator) for x in listed]
    return out, over


def decimals_to_integers(numbers: Array) -> tuple[Integers, int]:
    """Decimals of doubles as integers over one denominator; quickly where they are halves."""
    twice = 2 * numbers
    if (np.abs(twice) < 2.0**MANTISSA).all() and (twice == np.rint(twice)).all():
        return twice.astype(np.int64).astype(object), 2
    out, over = common_denominator(printed_decimal(x) for x in numbers.ravel().tolist())
    return out.reshape(numbers.shape), over


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
        """The number that `shortest_text` writes; ``ValueError`` says what is wrong with it."""
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
        raise ValueError(_number_error(token))
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


def _number_error(token: str) -> str:
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
