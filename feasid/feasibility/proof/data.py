"""Data of a proof: a triangle and what it should give, as decimals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.exact.integers import Columns, over_one
from feasid.exact.numbers import text


@dataclass(frozen=True, eq=False)
class Data:
    """R and rho as decimals: integers times ``10^-places``."""

    R: npt.NDArray[np.int64]
    rho: npt.NDArray[np.int64]
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
        numbers, over = over_one(w)
        over *= 10 ** self.places[0]
        return [Fraction(x, over) for x in self.columns.sums(numbers.tolist())]

    @cached_property
    def columns(self) -> Columns:
        """Of R."""
        return Columns(self.R)

    @cached_property
    def rows(self) -> Columns:
        """Of R, as columns of its transpose."""
        return Columns(self.R.T)


def _fixed(numbers: Array) -> tuple[npt.NDArray[np.int64], int]:
    """Integers of at most 53 bits, and the power of ten by which they are too large."""
    size = float(np.abs(numbers).max(initial=0.0))
    places = int(np.floor(np.log10(2.0**53 / size))) if size else 0
    places = max(places, 0)
    return np.rint(numbers * 10.0**places).astype(np.int64), places
