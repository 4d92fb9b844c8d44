"""Least squares over matrices and numbers that must not be negative, by a method of our own.

    minimise  |A x - b|^2 / 2   over   C_k(x) >= 0,  G x + h >= 0

A primal-dual interior point method with the scaling of Nesterov and Todd (1997) and Mehrotra's
predictor and corrector, on the normal equations. They are no larger than x, whatever the number of
rows, and dense: a general solver's sparse factors of the same problem take six times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from feasid.core.arrays import Array
from feasid.feasibility.constraints.sets import Group

LIFT = 1e-2
"""Smallest eigenvalue of a first slack, in units: points outside may start, too."""

REST = 1e-14
"""Share of the normal equations' diagonal that keeps directions without any effect at rest."""

UNFELT = 1e-30
"""Share of the largest entry of that diagonal at which an unknown has no effect: it stays."""

BACK = 0.99
"""Share of the way to the boundary that a step may take."""

LEAST_CENTRE = 1e-6
"""Smallest mu that is aimed at, relative to the present one."""

SHORTEST = 1e-6
"""Step below which nothing is gained any more."""

EXACT = 1e-9
"""By how much, in units, a slack may differ from what x says."""

MOST_STEPS = 100
"""Primal-dual steps after which the method gives up."""


@dataclass(frozen=True, eq=False)
class Iterate:
    """A primal and a dual point, all slacks and multipliers positive.

    Attributes
    ----------
    x : ndarray, shape (n,)
    slacks, multipliers : tuple of ndarray, shape (g, s, s)
        By group.
    numbers, prices : ndarray, shape (m,)
    """

    x: Array
    slacks: tuple[Array, ...]
    multipliers: tuple[Array, ...]
    numbers: Array
    prices: Array

    @property
    def complementarity(self) -> float:
        """``sum_k <S_k, Z_k> + s'z``: the duality gap once all equations hold."""
        pairs = zip(self.slacks, self.multipliers, strict=True)
        return float(self.numbers @ self.prices) + sum(float((S * Z).sum()) for S, Z in pairs)


@dataclass(frozen=True, eq=False)
class Residuals:
    """What is left of the equations: of the slacks, of the numbers, and of the gradient."""

    matrices: tuple[Array, ...]
    numbers: Array
    gradient: Array

    def within(self, slacks: float, gradient: float) -> bool:
        """Whether they are that small."""
        largest = max(float(np.abs(r).max(initial=0.0)) for r in (*self.matrices, self.numbers))
        return largest <= slacks and float(np.abs(self.gradient).max(initial=0.0)) <= gradient


@dataclass(frozen=True, eq=False)
class Squares:
    """The problem: A (rows, n), b, groups of matrices, numbers ``G x + h``."""

    A: Array
    b: Array
    groups: tuple[Group, ...]
    G: Array
    h: Array

    @property
    def order(self) -> int:
        """Number of eigenvalues and numbers that must be positive."""
        return len(self.h) + sum(len(g.members) * int(g.constant.shape[1]) for g in self.groups)

    @cached_property
    def _square(self) -> Array:
        return np.asarray(self.A.T @ self.A)

    def cost(self, x: Array) -> float:
        """``|A x - b|^2 / 2``."""
        error = self.A @ x - self.b
        return 0.5 * float(error @ error)

    def start(self, x: Array) -> Iterate:
        """From x, inside or not."""
        slacks = []
        for group in self.groups:
            values, vectors = np.linalg.eigh(group.matrices(x))
            lifted = vectors * np.maximum(values, LIFT)[:, None]
            slacks.append(lifted @ vectors.transpose(0, 2, 1))
        numbers = np.maximum(self.G @ x + self.h, LIFT)
        mu = self.cost(x) / max(self.order, 1)
        multipliers = tuple(mu * np.linalg.inv(S) for S in slacks)
        return Iterate(x, tuple(slacks), multipliers, numbers, mu / numbers)

    def residuals(self, at: Iterate) -> Residuals:
        """Of a point."""
        gradient = self.A.T @ (self.A @ at.x - self.b) - self.G.T @ at.prices
        matrices = []
        for group, S, Z in zip(self.groups, at.slacks, at.multipliers, strict=True):
            matrices.append(group.matrices(at.x) - S)
            flat = group.basis.reshape(*group.columns.shape, -1)
            np.subtract.at(gradient, group.columns, _times(flat, Z))
        return Residuals(tuple(matrices), self.G @ at.x + self.h - at.numbers, gradient)

    def solve(self, x: Array, gap: float, nothing: float) -> tuple[Iterate, int, bool]:
        """A point whose norm ``|A x - b|`` is the fraction `gap` of itself from the optimum.

        Parameters
        ----------
        x : ndarray, shape (n,)
            Where to start.
        gap : float
        nothing : float
            Norm, as a fraction of that of b, below which there is none.

        Returns
        -------
        (Iterate, int, bool)
            The last point, the number of steps, and whether it is what was asked for.
        """
        at = self.start(x)
        least = nothing * float(np.linalg.norm(self.b))
        for step in range(MOST_STEPS):
            left = self.residuals(at)
            if left.within(EXACT, gap * float(np.linalg.norm(self.b))) and (
                self.norm_gap(at) <= max(gap * np.sqrt(2 * self.cost(at.x)), least)
            ):
                return at, step, True
            try:
                moved = Scaling.from_iterate(self, at, left).step()
            except linalg.LinAlgError:
                break
            if moved is None:
                break
            at = moved
        return at, step, False

    def norm_gap(self, at: Iterate) -> float:
        """How much smaller than at x the norm can be by the multipliers, once equations hold."""
        cost = self.cost(at.x)
        return float(np.sqrt(2 * cost) - np.sqrt(2 * max(cost - at.complementarity, 0.0)))


@dataclass(frozen=True, eq=False)
class Direction:
    """A change of x, of slacks and of multipliers, the latter two scaled."""

    x: Array
    slacks: tuple[Array, ...]
    multipliers: tuple[Array, ...]
    numbers: Array
    prices: Array


@dataclass(frozen=True, eq=False)
class Scaling:
    """A point scaled so that slacks and multipliers are the same diagonal matrices.

    Attributes
    ----------
    problem : Squares
    at : Iterate
    left : Residuals
    inward : tuple of ndarray, shape (g, s, s)
        G^-1 with ``G^-1 S G^-T = G' Z G`` diagonal.
    diagonals : tuple of ndarray, shape (g, s)
    bases : tuple of ndarray, shape (g, c, s s)
        ``G^-1 B_j G^-T``.
    rests : tuple of ndarray, shape (g, s, s)
        What is left of the slacks.
    weights, roots, rest : ndarray, shape (m,)
        The same of the numbers: sqrt(z / s), sqrt(s z) and what is left.
    factor : tuple
        Of the normal equations.
    scale : ndarray, shape (n,)
    """

    problem: Squares
    at: Iterate
    left: Residuals
    inward: tuple[Array, ...]
    diagonals: tuple[Array, ...]
    bases: tuple[Array, ...]
    rests: tuple[Array, ...]
    weights: Array
    roots: Array
    rest: Array
    factor: tuple[Array, bool]
    scale: Array

    @classmethod
    def from_iterate(cls, problem: Squares, at: Iterate, left: Residuals) -> Scaling:
        """Scale, and factorise ``A'A + sum_k B_k'B_k + G'G``, of what is scaled."""
        weights, roots = np.sqrt(at.prices / at.numbers), np.sqrt(at.prices * at.numbers)
        moving = problem.G * weights[:, None]
        normal = problem._square + moving.T @ moving
        inward, diagonals, bases, rests = [], [], [], []
        for group, S, Z, r in zip(
            problem.groups, at.slacks, at.multipliers, left.matrices, strict=True
        ):
            L, M = np.linalg.cholesky(S), np.linalg.cholesky(Z).transpose(0, 2, 1)
            U, diagonal, _ = np.linalg.svd(M @ L)
            root = np.sqrt(diagonal)
            inner = U.transpose(0, 2, 1) @ M / root[:, :, None]
            across = inner.transpose(0, 2, 1)
            white = (inner[:, None] @ group.basis @ across[:, None]).reshape(
                *group.columns.shape, -1
            )
            places = group.columns[:, :, None], group.columns[:, None, :]
            np.add.at(normal, places, white @ white.transpose(0, 2, 1))
            inward.append(inner)
            diagonals.append(diagonal)
            bases.append(white)
            rests.append(inner @ r @ across)
        felt = np.diagonal(normal) > UNFELT * np.diagonal(normal).max(initial=0.0)
        scale = np.where(felt, 1 / np.sqrt(np.where(felt, np.diagonal(normal), 1.0)), 0.0)
        normal *= scale[:, None] * scale
        normal[np.diag_indices(len(scale))] += REST
        factor = linalg.cho_factor(normal.T, lower=True, overwrite_a=True, check_finite=False)
        return cls(
            problem,
            at,
            left,
            tuple(inward),
            tuple(diagonals),
            tuple(bases),
            tuple(rests),
            weights,
            roots,
            left.numbers * weights,
            factor,
            scale,
        )

    def step(self) -> Iterate | None:
        """The next point; None when there is no way on."""
        targets = [-_diagonal(d) for d in self.diagonals]
        ahead = self._direction(targets, -self.roots)
        length = self._length(ahead, 1.0)
        mu = self.at.complementarity / max(self.problem.order, 1)
        aimed = max((1 - length) ** 3, LEAST_CENTRE) * mu
        return self._advance(*self._corrector_targets(ahead, aimed))

    def solve(self, right: Array) -> Array:
        """What the normal equations give for a right side."""
        return np.asarray(
            self.scale * linalg.cho_solve(self.factor, self.scale * right, check_finite=False)
        )

    def _corrector_targets(self, ahead: Direction, mu: float) -> tuple[list[Array], Array]:
        """What slacks and multipliers shall change by together, to second order."""
        targets = []
        for d, S, Z in zip(self.diagonals, ahead.slacks, ahead.multipliers, strict=True):
            both = S @ Z
            wanted = _diagonal(mu - d * d) - 0.5 * (both + both.transpose(0, 2, 1))
            targets.append(2 * wanted / (d[:, :, None] + d[:, None, :]))
        return targets, (mu - self.roots**2 - ahead.numbers * ahead.prices) / self.roots

    def _direction(self, targets: Sequence[Array], numbers: Array) -> Direction:
        columns = [group.columns for group in self.problem.groups]
        right = self.problem.G.T @ (self.weights * (numbers - self.rest)) - self.left.gradient
        for where, white, T, r in zip(columns, self.bases, targets, self.rests, strict=True):
            np.add.at(right, where, _times(white, T - r))
        x = self.solve(right)
        slacks = tuple(
            (x[where][:, None] @ white).reshape(r.shape) + r
            for where, white, r in zip(columns, self.bases, self.rests, strict=True)
        )
        moved = self.weights * (self.problem.G @ x) + self.rest
        multipliers = tuple(T - S for T, S in zip(targets, slacks, strict=True))
        return Direction(x, slacks, multipliers, moved, numbers - moved)

    def _length(self, way: Direction, share: float) -> float:
        """How much of a direction keeps everything positive, times `share`; 1 at most."""
        worst = max(
            -float((way.numbers / self.roots).min(initial=0.0)),
            -float((way.prices / self.roots).min(initial=0.0)),
        )
        for d, S, Z in zip(self.diagonals, way.slacks, way.multipliers, strict=True):
            roots = 1 / np.sqrt(d)
            both = np.concatenate([S, Z]) * np.concatenate([_outer(roots)] * 2)
            worst = max(worst, -float(np.linalg.eigvalsh(both).min(initial=0.0)))
        return 1.0 if worst <= share else share / worst

    def _advance(self, targets: Sequence[Array], numbers: Array) -> Iterate | None:
        way = self._direction(targets, numbers)
        length = self._length(way, BACK)
        if not length > SHORTEST:
            return None
        groups, left = self.problem.groups, self.left
        slacks = tuple(  # not from the scaled change, whose rounding would add up
            S + length * (group.along(way.x) + r)
            for group, S, r in zip(groups, self.at.slacks, left.matrices, strict=True)
        )
        multipliers = tuple(
            _symmetric(Z + length * (inner.transpose(0, 2, 1) @ change @ inner))
            for Z, inner, change in zip(
                self.at.multipliers, self.inward, way.multipliers, strict=True
            )
        )
        return Iterate(
            self.at.x + length * way.x,
            slacks,
            multipliers,
            self.at.numbers + length * (self.problem.G @ way.x + left.numbers),
            self.at.prices + length * way.prices * self.weights,
        )


def _times(rows: Array, matrices: Array) -> Array:
    """``<rows_j, matrix>`` per matrix, shape (g, c)."""
    return np.asarray((rows @ matrices.reshape(len(matrices), -1, 1))[..., 0])


def _diagonal(values: Array) -> Array:
    return np.asarray(values[:, :, None] * np.eye(values.shape[1]))


def _outer(values: Array) -> Array:
    return np.asarray(values[:, :, None] * values[:, None])


def _symmetric(matrices: Array) -> Array:
    return np.asarray(0.5 * (matrices + matrices.transpose(0, 2, 1)))
