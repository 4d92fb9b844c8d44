"""Exact sums in integers: numbers over one denominator, and products with matrices of doubles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import lcm

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.exact.numbers import decimal

Integers = npt.NDArray[np.object_]
"""Arrays of int."""

LIMB = 16
"""Bits of one digit: products of two, summed over a hundred thousand rows, are exact doubles."""

MANTISSA = 53
"""Bits of a double's significand."""


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


def to_fixed_point(numbers: Array, places: int) -> Integers:
    """Doubles times ``10^places``, to the integer below."""
    mantissas, exponents = np.frexp(numbers)
    whole = (mantissas * 2.0**MANTISSA).astype(np.int64).ravel().tolist()
    shifts = (exponents - MANTISSA).ravel().tolist()
    scale = 10**places
    out = [
        m * scale << e if e >= 0 else m * scale >> -e for m, e in zip(whole, shifts, strict=True)
    ]
    return np.array(out, dtype=object).reshape(np.shape(numbers))


def doubles(numbers: Integers, over: int) -> Array:
    """The nearest doubles of integers over a denominator."""
    return np.array([x / over for x in numbers.ravel().tolist()]).reshape(numbers.shape)


class Columns:
    """An integer matrix (rows, n) by whose columns long integers are summed.

    Its entries are cut into digits of `LIMB` bits.
    """

    def __init__(self, matrix: npt.NDArray[np.int64] | Integers) -> None:
        if matrix.dtype == object:
            self._limbs = list(np.moveaxis(_digits(matrix.ravel().tolist()), -1, 0))
            self._limbs = [limb.reshape(matrix.shape) for limb in self._limbs]
        else:
            size, self._limbs = np.abs(matrix), []
            while size.any():
                limb = (size & ((1 << LIMB) - 1)).astype(np.float64)
                self._limbs.append(np.sign(matrix) * limb)
                size = size >> LIMB
        self._width = matrix.shape[1]

    def some(self, rows: Sequence[int]) -> Columns:
        """The same of some rows."""
        out = object.__new__(Columns)
        out._limbs, out._width = [limb[rows] for limb in self._limbs], self._width
        return out

    def sums(self, weights: Sequence[int]) -> list[int]:
        """``matrix' weights``, exactly."""
        digits = _digits(weights)
        count = digits.shape[1]
        # Digits of the sums, which carry: few bits of a word are taken by one product.
        out = np.zeros((self._width, count + len(self._limbs) + 4), dtype=np.int64)
        for place, limb in enumerate(self._limbs):
            out[:, place : place + count] += (limb.T @ digits).astype(np.int64)
        for place in range(out.shape[1] - 1):
            out[:, place + 1] += out[:, place] >> LIMB
            out[:, place] &= (1 << LIMB) - 1
        last = out.shape[1] - 1
        rest = np.ascontiguousarray(out[:, :last].astype("<u2")).tobytes()
        step = 2 * last
        return [
            int.from_bytes(rest[j * step : (j + 1) * step], "little") + (top << LIMB * last)
            for j, top in enumerate(out[:, last].tolist())
        ]


def _digits(numbers: Sequence[int]) -> Array:
    """Digits of `LIMB` bits with their number's sign, the last first, one row each."""
    count = max((abs(x).bit_length() for x in numbers), default=0) // LIMB + 1
    raw = b"".join(abs(x).to_bytes(2 * count, "little") for x in numbers)
    digits = np.frombuffer(raw, dtype="<u2").reshape(-1, count).astype(np.float64)
    digits *= np.array([-1.0 if x < 0 else 1.0 for x in numbers])[:, None]
    return digits
