"""Rows of K in exact numbers, and what is computed of them once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from feasid.core.arrays import Array
from feasid.exact.integers import over_one
from feasid.robot.known import Row


class ExactRows(tuple[Row, ...]):
    """The non-zero entries of a matrix, row by row."""

    @cached_property
    def integers(self) -> tuple[tuple[tuple[tuple[int, int], ...], ...], int]:
        """Pairs of column and integer, row by row, and the denominator of all."""
        numbers, over = over_one(c for row in self for c in row.values())
        following = iter(numbers.tolist())
        return tuple(tuple((j, next(following)) for j in row) for row in self), over

    def combined(self, y: Sequence[int], columns: int) -> list[int]:
        """``K'y``, times the denominator of all."""
        out = [0] * columns
        for factor, row in zip(y, self.integers[0], strict=True):
            if factor:
                for j, c in row:
                    out[j] += factor * c
        return out

    def doubles(self, columns: int) -> Array:
        """As a matrix."""
        out = np.zeros((len(self), columns))
        out[self._places] = self._values
        return out

    @cached_property
    def _places(self) -> tuple[Array, Array]:
        rows = [i for i, row in enumerate(self) for _ in row]
        columns = [j for row in self for j in row]
        return np.array(rows, dtype=np.intp), np.array(columns, dtype=np.intp)

    @cached_property
    def _values(self) -> Array:
        return np.array([float(c) for row in self for c in row.values()])
