"""Data of a proof: a triangle and what it should give, as decimals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np
import numpy.typing as npt

from feasid.arrays import Array
from feasid.exact.numbers import text

Integers = npt.NDArray[np.object_]
"""Python's own, without limit of size."""


@dataclass(frozen=True, eq=False)
class Data:
    """R and rho as decimals: integers times ``10^-places``."""

    R: Integers
    rho: Integers
    places: tuple[int, int]

    @classmethod
    def of(cls, R: Array, rho: Array) -> Data:
        """Doubles, rounded to `_fixed` digits of the largest."""
        (rows, first), (target, second) = _fixed(R), _fixed(rho)
        return cls(rows, target, (first, second))

    @property
    def told(self) -> dict[str, object]:
        """As a certificate holds them."""
        first, second = (Fraction(1, 10**p) for p in self.places)
        rows = [[[i, text(x * first)] for i, x in enumerate(row) if x] for row in self.R.tolist()]
        return {"rows": rows, "target": [text(x * second) for x in self.rho.tolist()], "rest": "0"}

    def combination(self, w: Sequence[Fraction]) -> list[Fraction]:
        """``R'w``."""
        over = lcm(*(x.denominator for x in w))
        numbers = np.array([int(x * over) for x in w], dtype=object)
        return [Fraction(int(x), over * 10 ** self.places[0]) for x in self.R.T @ numbers]


def _fixed(numbers: Array) -> tuple[Integers, int]:
    """Integers of at most 53 bits, and the power of ten by which they are too large."""
    size = float(np.abs(numbers).max(initial=0.0))
    places = int(np.floor(np.log10(2.0**53 / size))) if size else 0
    places = max(places, 0)
    return np.rint(numbers * 10.0**places).astype(np.int64).astype(object), places
