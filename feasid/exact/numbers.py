"""Doubles as the exact numbers that they stand for, exact numbers as text or over one integer."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
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
def decimal(number: float) -> Fraction:
    """The number that Python prints for a double, exactly."""
    return Fraction(repr(float(number)))


def plain(number: float) -> Fraction:
    """A computed coefficient as the short decimal or simple fraction that it stands for."""
    if not number:
        return Fraction(0)
    simple = Fraction(float(number)).limit_denominator(PLAIN_DENOMINATOR)
    simple_ones = [simple] if abs(simple.numerator) < PLAIN_NUMERATOR else []
    for short in (*simple_ones, Fraction(f"{number:.{SHORT_DIGITS}g}")):
        if abs(float(short) - number) <= SHORT_ERROR * abs(number):
            return short
    return decimal(number)


def text(number: Fraction) -> str:
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


def over_one(numbers: Iterable[Fraction]) -> tuple[Integers, int]:
    """Integers, and the denominator that they share."""
    listed = list(numbers)
    over = lcm(*{x.denominator for x in listed})
    out = np.zeros(len(listed), dtype=object)
    out[:] = [x.numerator * (over // x.denominator) for x in listed]
    return out, over


def integral(numbers: Array) -> tuple[Integers, int]:
    """Decimals of doubles as integers over one denominator; quickly where they are halves."""
    twice = 2 * numbers
    if (np.abs(twice) < 2.0**MANTISSA).all() and (twice == np.rint(twice)).all():
        return twice.astype(np.int64).astype(object), 2
    out, over = over_one(decimal(x) for x in numbers.ravel().tolist())
    return out.reshape(numbers.shape), over
