"""Base parameters led by the parameters that a caller prefers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from feasid.core.arrays import Array
from feasid.identifiability.coefficients import ROUNDING, Coefficients, Index, settled
from feasid.identifiability.echelon import SAFETY, pivots_from_right


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
        null[first.independent] = -first.scaled.toarray()
        return np.asarray(np.linalg.qr(null[self.order])[0])

    @cached_property
    def dependent(self) -> Index:
        """Columns of the dependent parameters, increasing."""
        if self._null.shape[1] == 0:
            return np.zeros(0, dtype=np.intp)
        return np.sort(self.order[pivots_from_right(self._null[None])[0]])

    @cached_property
    def scaled(self) -> sparse.csc_array:
        """Kd in scaled units."""
        place = np.argsort(self.order)
        pivots = self._null[place[self.dependent]]
        rest = self._null[place[self.independent]]
        kd = -np.linalg.solve(pivots.T, rest.T).T
        worst = np.linalg.cond(pivots) if pivots.size else 1.0
        noise = SAFETY * ROUNDING * worst * np.maximum(1.0, np.abs(kd).max(axis=0, initial=0.0))
        return sparse.csc_array(settled(np.asarray(kd), np.asarray(noise)))
