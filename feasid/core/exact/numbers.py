"""Exact values of doubles and of decimals in text, as text, and over one integer.

Linear equations in them are eliminated without rounding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import lcm
from typing import Any

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array

Integers = npt.NDArray[np.object_]  #: Arrays of int.
Exact = list[list[Fraction]]  #: A matrix of rationals.
MANTISSA = 53  #: Bits of a double's significand.

SHORT_DIGITS, SHORT_ERROR = 10, 1e-13
"""A computed coefficient this close to a decimal of so many digits is replaced by it: 0.045 squared
is 0.002025, so that terms that cancel on paper cancel."""

PLAIN_NUMERATOR, PLAIN_DENOMINATOR = 10**5, 999
"""Largest denominator of simple fractions: larger ones are close to any number."""


@lru_cache(maxsize=4096)  # entries of constraints come again and again
def printed_decimal(number: float) -> Fraction:
    """The number that Python prints for a double, exactly."""
    return Fraction(repr(float(number)))


def simplest_number(number: float) -> Fraction:
    """A computed coefficient as the short decimal or simple fraction that it approximates."""
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
    sign = "-" if number < 0 else ""
    integer, part = divmod(abs(number.numerator * 10**power // number.denominator), 10**power)
    return f"{sign}{integer}.{str(part).zfill(power).rstrip('0') or '0'}"


def common_denominator(numbers: Iterable[Fraction]) -> tuple[Integers, int]:
    """Integers and their common denominator."""
    fractions = list(numbers)
    over = lcm(*{x.denominator for x in fractions})
    out = np.zeros(len(fractions), dtype=object)
    out[:] = [x.numerator * (over // x.denominator) for x in fractions]
    return out, over


def decimals_to_integers(numbers: Array) -> tuple[Integers, int]:
    """Decimals of doubles as integers over one denominator; multiples of 1/2 take no fractions."""
    twice = 2 * numbers
    if (np.abs(twice) < 2.0**MANTISSA).all() and (twice == np.rint(twice)).all():
        return twice.astype(np.int64).astype(object), 2
    out, over = common_denominator(printed_decimal(x) for x in numbers.ravel().tolist())
    return out.reshape(numbers.shape), over


_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d+))?", re.ASCII)

_INFINITE = re.compile(r"[+-]?(?:inf|infinity|nan)", re.ASCII | re.IGNORECASE)

LONGEST_LIMIT = 512  #: Largest number of characters of a limit: the largest double has 309 digits.

MAX_LENGTH = 256  #: Largest number of characters of a number; it keeps the exact fraction small.

MAX_EXPONENT = 400  #: Largest exponent of a number, far beyond doubles': fractions stay small.

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

    @classmethod
    def limit(cls, text: str) -> Number:
        """A number on which no dynamics depend: of any size, as programs print what is unlimited.

        >>> Number.limit("-1.79769e+308").value, Number.limit("inf").value
        (-1.79769e+308, inf)
        """
        token = text.strip(" \t\r\n")
        if _INFINITE.fullmatch(token) or (_DECIMAL.fullmatch(token) and len(token) < LONGEST_LIMIT):
            return cls(token, float(token))
        return cls.parse(token)

    @cached_property
    def exact(self) -> Fraction:
        """The rational that the decimal is, without rounding."""
        return Fraction(self.text)


def parse(token: str) -> float:
    """A finite float of a plain decimal; ``ValueError`` says what is wrong with the text."""
    match = _DECIMAL.fullmatch(token) if len(token) <= MAX_LENGTH else None
    if match is None:
        unsigned = token.lstrip("+-").lower()
        fault = "is not a number"
        if not token:
            raise ValueError("a number is missing (the text is empty)")
        if len(token) > MAX_LENGTH:
            fault = f"is longer than {MAX_LENGTH} characters"
        elif unsigned in ("nan", "inf", "infinity", ".inf", ".nan") or unsigned.startswith("nan("):
            fault = "is not a finite number"
        elif "${" in token or "$(" in token:
            fault = "is a xacro expression: run xacro first (xacro robot.xacro > robot.urdf)"
        elif "," in token:
            fault += ": write decimals with a point, not a comma"
        elif unsigned.startswith("0x"):
            fault = "is not a decimal number"
        elif unit := re.fullmatch(
            r"([+-]?(?:\d+\.?\d*|\.\d+))\s*([A-Za-z*/^ ]+\d?)", token, re.ASCII
        ):
            fault += f": remove {unit[2]!r}, units are SI and are not written"
        raise ValueError(f"{quote(token)} {fault}")
    if match[1] and abs(int(match[1])) > MAX_EXPONENT:
        raise ValueError(f"{quote(token)} has an exponent beyond +-{MAX_EXPONENT}")
    value = float(token)
    if abs(value) > LARGEST:
        raise ValueError(f"{quote(token)} is beyond {LARGEST:g}")
    # "1e-400" becomes 0.0: only its digits tell it from a zero.
    if abs(value) < SMALLEST and re.match(r"[^eE]*[1-9]", token):
        raise ValueError(f"{quote(token)} is smaller than {SMALLEST:g} and not zero")
    return value


def quote(token: str) -> str:
    """The text in quotes, shortened when long."""
    return repr(token if len(token) <= 60 else token[:57] + "...")


def dot(a: Iterable[Fraction], b: Iterable[Fraction]) -> Fraction:
    """Sum of products."""
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def combine(row: Mapping[Any, Fraction], values: Any) -> Fraction:
    """Sum of the values at a row's keys, by its coefficients."""
    return sum((c * values[key] for key, c in row.items()), Fraction(0))


Unknown = tuple[Any, ...]
Equation = tuple[dict[Unknown, Fraction], Fraction]  #: Coefficients by unknown, and the right side.


def solve_near(
    equations: Sequence[Equation],
    start: Mapping[Unknown, Fraction],
    size: Callable[[Unknown], float],
    rounding: float = 0.0,
) -> dict[Unknown, Fraction] | None:
    """Solve exactly, changing one unknown per equation.

    `equations`: sequence of (coefficients, right side); `start`: rounded values of all unknowns;
    `size`: what one unit of an unknown is worth: the one whose change matters least is changed;
    `rounding`: share of an equation's coefficients below which those that the others leave of it
    are rounding: then it says what they say. Returns: all unknowns; None when the equations
    contradict each other.
    """
    pivots: list[tuple[Unknown, dict[Unknown, Fraction], Fraction]] = []
    places: dict[Unknown, int] = {}
    for coefficients, right in equations:
        row, value = {u: c for u, c in coefficients.items() if c}, right
        least = rounding * max((abs(float(c)) / size(u) for u, c in row.items()), default=0.0)
        # A pivot's row holds only later pivots, so that taking the earliest first ends.
        while pending := [u for u in row if u in places]:
            unknown, pivot_row, constant = pivots[places[min(pending, key=places.__getitem__)]]
            factor = row.pop(unknown)
            for u, c in pivot_row.items():
                row[u] = row.get(u, Fraction(0)) + factor * c
            row, value = {u: c for u, c in row.items() if c}, value - factor * constant
        if not row:
            if value:
                return None
            continue
        pivot = max(row, key=lambda u: abs(float(row[u])) / size(u))
        if abs(float(row[pivot])) / size(pivot) < least:
            continue
        factor = row.pop(pivot)
        places[pivot] = len(pivots)
        pivots.append((pivot, {u: -c / factor for u, c in row.items()}, value / factor))
    out = dict(start)
    for unknown, row, value in reversed(pivots):
        out[unknown] = value + combine(row, out)
    return out


def solve_linear(
    matrix: Sequence[Sequence[Fraction]], right: Sequence[Fraction], near: Sequence[Fraction]
) -> list[Fraction] | None:
    """A solution of these equations near this point; None where there is none."""
    start: dict[Unknown, Fraction] = {(j,): x for j, x in enumerate(near)}
    rows = [dict(zip(start, line, strict=True)) for line in matrix]
    # Equations of few unknowns come first, and each stays so.
    pairs = sorted(zip(rows, right, strict=True), key=lambda pair: sum(map(bool, pair[0].values())))
    solution = solve_near(pairs, start, lambda unknown: 1.0)
    return None if solution is None else [*solution.values()]


def independent_rows(
    rows: Sequence[Sequence[Fraction]],
) -> tuple[list[int], list[dict[int, Fraction]]]:
    """Places of independent rows, and for every other one a combination with it that is zero."""
    lead: list[int] = []
    relations: list[dict[int, Fraction]] = []
    pivots: list[tuple[int, list[Fraction], dict[int, Fraction]]] = []
    for k, entries in enumerate(rows):
        row, combined = list(entries), {k: Fraction(1)}
        for at, pivot_row, how in pivots:
            factor = row[at] / pivot_row[at]
            if factor:
                row = [x - factor * y for x, y in zip(row, pivot_row, strict=True)]
                for j, c in how.items():
                    combined[j] = combined.get(j, Fraction(0)) - factor * c
        if any(row):
            pivots.append((max(range(len(row)), key=lambda i: abs(row[i])), row, combined))
            lead.append(k)
        else:
            relations.append({j: c for j, c in combined.items() if c})
    return lead, relations
