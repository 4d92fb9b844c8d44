"""Parameters that are known, or the same up to sign: substituted, so that they hold exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from feasid.arrays import Array
from feasid.errors import InputError
from feasid.feasibility.constraints.affine import Block, Linear
from feasid.feasibility.constraints.sets import FeasibleSet

Index = npt.NDArray[np.intp]

ROUNDING = 1e-9
"""Relative difference that rounding may leave between equations that say the same."""


@dataclass(frozen=True, eq=False)
class Ties:
    """``delta[j] = sign[j] z[place[j]] + fixed[j]``, with place -1 for known parameters.

    Attributes
    ----------
    place : ndarray of int, shape (n,)
    sign, fixed : ndarray, shape (n,)
    roots : ndarray of int
        The parameter that each entry of z stands for.
    """

    place: Index
    sign: Array
    fixed: Array
    roots: Index

    @classmethod
    def of(cls, feasible: FeasibleSet) -> Ties:
        """The ties of a feasible set's equalities.

        Raises
        ------
        InputError
            When the equalities contradict each other.
        """
        n = feasible.size
        root, sign = list(range(n)), [1.0] * n
        known: dict[int, float] = {}

        def find(j: int) -> tuple[int, float]:
            factor = 1.0
            while root[j] != j:
                factor *= sign[j]
                j = root[j]
            return j, factor

        for tie in feasible.equalities:
            (first, s), *rest = [find(int(j)) for j in tie.columns]
            if not rest:
                value = s * tie.value
                if known.setdefault(first, value) != value:
                    raise _contradiction(tie.name)
                continue
            ((second, t),) = rest
            relation = s * t * tie.sign
            if first == second:
                if relation < 0 and known.setdefault(first, 0.0) != 0.0:
                    raise _contradiction(tie.name)
                continue
            root[first], sign[first] = second, relation
            if first in known and known.setdefault(second, relation * known[first]) != (
                relation * known[first]
            ):
                raise _contradiction(tie.name)
        found = [find(j) for j in range(n)]
        roots = [j for j in range(n) if root[j] == j and j not in known]
        order = {j: k for k, j in enumerate(roots)}
        return cls(
            np.array([order.get(r, -1) for r, _ in found], dtype=np.intp),
            np.array([s for _, s in found]),
            np.array([s * known.get(r, 0.0) for r, s in found]),
            np.array(roots, dtype=np.intp),
        )

    def expanded(self, z: Array) -> Array:
        """All parameters, shape (n,)."""
        free = self.place >= 0
        out = self.fixed.copy()
        out[free] += self.sign[free] * z[self.place[free]]
        return out

    def matrix(self, rows: Array) -> Array:
        """Coefficients in z of ``rows @ delta``, shape (rows, len(roots))."""
        out = np.zeros((len(rows), len(self.roots)))
        free = self.place >= 0
        np.add.at(out.T, self.place[free], (rows * self.sign)[:, free].T)
        return out

    def equations(self, K: Array, beta: Array) -> tuple[Array, Array, list[int]]:
        """``K delta = beta`` as equations on z, those that say nothing new left out.

        Returns
        -------
        tuple
            Coefficients, right side, and which rows of K they are.

        Raises
        ------
        InputError
            When the ties contradict the given values.
        """
        rows, right = self.matrix(K), beta - K @ self.fixed
        sizes = np.abs(K).max(axis=1)
        sizes = np.where(sizes > 0, sizes, 1.0)
        kept: list[int] = []
        for i in range(len(K)):
            basis = rows[kept] / sizes[kept, None]
            coefficients = np.linalg.lstsq(basis.T, rows[i] / sizes[i], rcond=None)[0]
            left = rows[i] / sizes[i] - coefficients @ basis
            if np.abs(left).max(initial=0.0) > ROUNDING:
                kept.append(i)
                continue
            wrong = right[i] / sizes[i] - coefficients @ (right[kept] / sizes[kept])
            if abs(wrong) > ROUNDING * np.abs(beta).max(initial=1.0):
                raise InputError(
                    f"what is known or equal contradicts given value {i} by {wrong:.3g}", entry=i
                )
        return rows[kept], right[kept], kept

    def substituted(self, feasible: FeasibleSet) -> FeasibleSet:
        """The constraints on z; those without a free parameter must hold by themselves.

        Raises
        ------
        InputError
            When known values break a constraint.
        """
        kept_blocks = [self._block(b) for b in feasible.blocks]
        kept_rows = [self._linear(c) for c in feasible.linear]
        return replace(
            feasible,
            names=tuple(feasible.names[j] for j in self.roots),
            blocks=tuple(b for b in kept_blocks if b is not None),
            linear=tuple(c for c in kept_rows if c is not None),
            equalities=(),
        )

    def _block(self, block: Block) -> Block | None:
        place, sign = self.place[block.columns], self.sign[block.columns]
        free = place >= 0
        constant = block.constant + np.tensordot(self.fixed[block.columns], block.basis, 1)
        if not free.any():
            if np.linalg.eigvalsh(constant)[0] <= 0:
                raise InputError(f"known values break {block.name}", constraint=block.name)
            return None
        columns = np.unique(place[free])
        basis = np.zeros((len(columns), *constant.shape))
        np.add.at(
            basis, np.searchsorted(columns, place[free]), sign[free, None, None] * block.basis[free]
        )
        plain = len(columns) == len(place) and (sign > 0).all() and (np.diff(place) > 0).all()
        return replace(
            block,
            kind=block.kind if plain and not self.fixed[block.columns].any() else "matrix",
            columns=columns,
            basis=basis,
            constant=constant,
        )

    def _linear(self, row: Linear) -> Linear | None:
        place, sign = self.place[row.columns], self.sign[row.columns]
        free = place >= 0
        constant = row.constant + float(self.fixed[row.columns] @ row.coefficients)
        if not free.any():
            if constant < 0:
                raise InputError(f"known values break {row.name}", constraint=row.name)
            return None
        columns = np.unique(place[free])
        weights = np.zeros(len(columns))
        np.add.at(
            weights, np.searchsorted(columns, place[free]), sign[free] * row.coefficients[free]
        )
        return replace(row, columns=columns, coefficients=weights, constant=constant, opposite=0)


def _contradiction(name: str) -> InputError:
    return InputError(f"{name} contradicts what else is said to be known or equal", tie=name)
