"""Base parameters led by the parameters that a caller prefers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feasid.arrays import Array
from feasid.identifiability.coefficients import Coefficients, Index, snapped_columns
from feasid.identifiability.echelon import pivots_from_right


@dataclass(frozen=True, eq=False)
class Reordered(Coefficients):
    """Echelon form in an order of preference across bodies.

    Pivots are then no longer a matter of each joint alone: the null vectors of the whole robot
    are reduced as one dense matrix.

    Attributes
    ----------
    order : ndarray, shape (n,)
        All columns, the preferred ones first.
    """

    order: Index

    @cached_property
    def _null(self) -> Array:
        """Orthonormal null vectors in scaled units, columns in the order of preference."""
        first = Coefficients(self.echelon)
        null = np.zeros((len(self.order), len(first.dependent)))
        null[first.dependent, np.arange(len(first.dependent))] = 1.0
        null[first.independent] = -first.kd / (
            first.units[first.independent][:, None] / first.units[first.dependent]
        )
        return np.asarray(np.linalg.qr(null[self.order])[0])

    @cached_property
    def dependent(self) -> Index:
        """Columns of the dependent parameters, increasing."""
        picked = pivots_from_right(self._null[None])[0]
        return np.sort(self.order[picked])

    @cached_property
    def _scaled(self) -> Array:
        """Kd in scaled units."""
        place = np.argsort(self.order)
        pivots = self._null[place[self.dependent]]
        rest = self._null[place[self.independent]]
        kd = -np.linalg.solve(pivots.T, rest.T).T
        return snapped_columns(np.asarray(kd, dtype=np.float64))
