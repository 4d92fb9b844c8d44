"""Multipliers well inside the cone: the central path of least squares over a feasible set.

    minimise  |A x - b|^2 / 2 - mu (sum_k log det V_k' C_k(x) V_k + sum_i log (G x + h)_i)

At its minimum, ``w = A x - b``, ``Z_k = mu V_k (V_k' C_k(x) V_k)^-1 V_k'`` and
``z = mu / (G x + h)`` cancel, ``A'w = sum_k C_k*(Z_k) + G'z``, Z_k is definite on the span of V_k,
and the bound that they prove is ``mu`` times the number of eigenvalues below the optimum. V_k spans
the directions in which motions push a body: else a mass that no data show would grow for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg

from feasid.arrays import Array

FIRST, SHRINK = (1e-4, 1e-1), 0.1
"""First gaps to try, as a fraction of the cost, and how they fall from one centre to the next."""

MOST_STEPS = 60
"""Of Newton's method at one centre."""

CENTRED = 0.1
"""Newton decrement, squared, of a centre, per unit of mu: Newton steps on what is left keep every
multiplier definite."""

UNFELT = 1e-10
"""Share of the largest pivot at which nothing is felt of a direction."""

DAMPING = 1e-13
"""Share of the Hessian's diagonal that keeps directions without any effect at rest."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """Matrices of one shape: columns (g, c), bases (g, c, r, r), constants (g, r, r)."""

    members: tuple[int, ...]
    columns: npt.NDArray[np.intp]
    basis: Array
    constant: Array

    @classmethod
    def grouped(
        cls,
        columns: Sequence[npt.NDArray[np.intp]],
        bases: Sequence[Array],
        constants: Sequence[Array],
    ) -> list[Blocks]:
        """By shape."""
        shapes: dict[tuple[int, ...], list[int]] = {}
        for k, basis in enumerate(bases):
            if basis.shape[1]:
                shapes.setdefault(basis.shape, []).append(k)
        return [
            cls(
                tuple(some),
                np.stack([columns[k] for k in some]),
                np.stack([bases[k] for k in some]),
                np.stack([constants[k] for k in some]),
            )
            for some in shapes.values()
        ]

    def matrices(self, x: Array) -> Array:
        """Values at x, shape (g, r, r)."""
        return np.asarray(self.constant + np.einsum("gc,gcij->gij", x[self.columns], self.basis))


@dataclass(frozen=True, eq=False)
class Centre:
    """A point of the path: x, mu, inverses of Cholesky factors by block, values of the numbers."""

    x: Array
    mu: float
    inverses: dict[int, Array]
    numbers: Array

    def multiplier(self, k: int) -> Array:
        """W of block k, for ``Z = V W V'``."""
        return np.asarray(self.mu * self.inverses[k].T @ self.inverses[k])


@dataclass(frozen=True, eq=False)
class Cancellation:
    """The smallest change of multipliers, in the path's metric, that cancels what is left.

    Orthogonal factors of the metric's square root, whose condition is the root of the Hessian's.
    """

    path: Path
    centre: Centre
    Q: Array
    R: Array
    pivots: npt.NDArray[np.intp]
    scale: Array

    @classmethod
    def of(cls, path: Path, centre: Centre) -> Cancellation:
        """Factorise."""
        root = np.sqrt(centre.mu)
        parts = [path.A, root * path.G / centre.numbers[:, None]]
        for group in path.blocks:
            inverse = np.stack([centre.inverses[k] for k in group.members])
            white = root * np.einsum(
                "gij,gcjk,glk->gcil", inverse, group.basis, inverse, optimize=True
            )
            for columns, some in zip(group.columns, white, strict=True):
                part = np.zeros((some[0].size, path.A.shape[1]))
                part[:, columns] = some.reshape(len(columns), -1).T
                parts.append(part)
        stacked = np.vstack(parts)
        scale = 1 / np.maximum(np.linalg.norm(stacked, axis=0), 1e-300)
        Q, R, pivots = linalg.qr(stacked * scale, mode="economic", pivoting=True)
        diagonal = np.abs(np.diagonal(R))
        rank = int((diagonal > UNFELT * diagonal.max(initial=0.0)).sum())
        return cls(path, centre, Q[:, :rank], R[:rank, :rank], pivots[:rank], scale)

    def of_left(self, left: Array) -> tuple[Array, dict[int, Array], Array]:
        """Changes of w, of W by block, and of z, that take away ``left``."""
        right = (left * self.scale)[self.pivots]
        u = self.Q @ linalg.solve_triangular(self.R, right, trans="T", check_finite=False)
        rows, numbers = len(self.path.b), len(self.path.h)
        root, at = np.sqrt(self.centre.mu), rows + numbers
        blocks = {}
        for group in self.path.blocks:
            for k in group.members:
                inverse = self.centre.inverses[k]
                U = u[at : at + inverse.size].reshape(inverse.shape)
                blocks[k] = root * inverse.T @ (0.5 * (U + U.T)) @ inverse
                at += inverse.size
        z = root * u[rows : rows + numbers] / self.centre.numbers
        return -u[:rows], blocks, np.asarray(z)


@dataclass(frozen=True, eq=False)
class Path:
    """The problem: A (rows, n), b, matrices, numbers ``G x + h``."""

    A: Array
    b: Array
    blocks: tuple[Blocks, ...]
    G: Array
    h: Array

    @property
    def order(self) -> int:
        """Number of eigenvalues and numbers that must be positive."""
        return len(self.h) + sum(len(g.members) * int(g.constant.shape[1]) for g in self.blocks)

    def inside(self, x: Array) -> bool:
        """Whether everything is strictly positive."""
        return bool(np.isfinite(self.value(x, 1.0)))

    def value(self, x: Array, mu: float) -> float:
        """The function that is minimised; infinite outside."""
        numbers = self.G @ x + self.h
        if not (numbers > 0).all():
            return np.inf
        total = -mu * float(np.log(numbers).sum())
        for group in self.blocks:
            try:
                factors = np.linalg.cholesky(group.matrices(x))
            except np.linalg.LinAlgError:
                return np.inf
            total -= 2 * mu * float(np.log(np.diagonal(factors, axis1=1, axis2=2)).sum())
        error = self.A @ x - self.b
        return total + 0.5 * float(error @ error)

    def centre(self, x: Array, mu: float, square: Array) -> Centre | None:
        """The centre for mu by damped Newton steps from x; None when there is none."""
        value = self.value(x, mu)
        for _ in range(MOST_STEPS):
            gradient, hessian, at = self._derivatives(x, mu, square)
            try:
                step = -_solved(hessian, gradient)
            except linalg.LinAlgError:
                return None
            decrease = -float(gradient @ step)
            if not decrease > CENTRED * mu:
                return at
            length = 1.0
            while (new := self.value(x + length * step, mu)) > value - 0.1 * length * decrease:
                length *= 0.5
                if length < 1e-10:
                    return at if decrease <= mu else None
            x, value = x + length * step, new
        return None

    def _derivatives(self, x: Array, mu: float, square: Array) -> tuple[Array, Array, Centre]:
        numbers = self.G @ x + self.h
        gradient = self.A.T @ (self.A @ x - self.b) - mu * self.G.T @ (1 / numbers)
        moving = self.G / numbers[:, None]
        hessian = square + mu * moving.T @ moving
        inverses: dict[int, Array] = {}
        for group in self.blocks:
            inverse = np.linalg.inv(np.linalg.cholesky(group.matrices(x)))
            white = np.einsum("gij,gcjk,glk->gcil", inverse, group.basis, inverse, optimize=True)
            flat = white.reshape(*white.shape[:2], -1)
            np.subtract.at(gradient, group.columns, mu * np.trace(white, axis1=2, axis2=3))
            places = group.columns[:, :, None], group.columns[:, None, :]
            np.add.at(hessian, places, mu * flat @ flat.transpose(0, 2, 1))
            inverses.update(zip(group.members, inverse, strict=True))
        return gradient, hessian, Centre(x, mu, inverses, numbers)

    def cost(self, x: Array) -> float:
        """``|A x - b|^2 / 2``."""
        error = self.A @ x - self.b
        return 0.5 * float(error @ error)

    def follow(self, x: Array, gap: float, nothing: float) -> Centre | None:
        """The centre whose bound is the fraction `gap` of its cost below it.

        Parameters
        ----------
        x : ndarray, shape (n,)
            Where to start, strictly inside.
        gap : float
        nothing : float
            Cost, as a fraction of that of zero, below which there is none.

        Returns
        -------
        Centre or None
            None when no centre was found.
        """
        square, least = self.A.T @ self.A, 0.5 * nothing * float(self.b @ self.b)
        for first in FIRST:
            found = self._followed(x, first, gap, least, square)
            if found is not None:
                return found
        return None

    def _followed(
        self, x: Array, first: float, gap: float, least: float, square: Array
    ) -> Centre | None:
        share = max(first * self.cost(x), gap * least)
        while True:
            found = self.centre(x, share / self.order, square)
            if found is None:
                return None
            cost = self.cost(found.x)
            if share <= gap * cost * (1 + 1e-9) or cost <= least:
                return found
            x, share = found.x, max(SHRINK * share, gap * cost)


def _solved(hessian: Array, right: Array) -> Array:
    scale = 1 / np.sqrt(np.maximum(np.diagonal(hessian), 1e-300))
    scaled = hessian * scale[:, None] * scale
    scaled[np.diag_indices(len(scale))] += DAMPING
    factor = linalg.cho_factor(scaled, check_finite=False, overwrite_a=True)
    return np.asarray(scale * linalg.cho_solve(factor, scale * right, check_finite=False))
