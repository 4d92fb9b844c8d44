"""What later choices need of a log, without its rows.

Per joint one triangle for every class of slowness and every fold of time, so that rows can be
weighted and stretches held out afterwards; second moments of rows some way apart, from which the
autocorrelation of any estimate's residual follows; and a triangle of the same rows before they
were filtered. All of it adds, log by log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from feasid.arrays import Array
from feasid.reduction.householder import absorb

SLOW = 0.05
"""Speed [rad/s or m/s] at which friction's law is in doubt: slowness is exp(-(v / SLOW)^2)."""

EDGES = (0.01, 0.05, 0.15, 0.3, 0.5)
"""Slowness after the low-pass at which classes change; the first holds rows that never slow."""

CLASSES = len(EDGES) + 1
FOLDS = 5
FOLD_SECONDS = 1.0
"""Time belongs to fold floor(t / FOLD_SECONDS) mod FOLDS."""

LAGS = (0, 1, 2, 3, 4, 6, 8, 11, 15, 20)
"""Distances between kept rows at which products are formed."""


@dataclass(frozen=True, eq=False)
class Strata:
    """Triangles of one generalised coordinate's rows [w | tau], k entries each.

    Attributes
    ----------
    triangles : ndarray, shape (CLASSES, FOLDS, k, k)
        Of the rows in each class and fold.
    counts : ndarray, shape (CLASSES, FOLDS)
        How many rows.
    slowness : ndarray, shape (CLASSES, FOLDS)
        Sums of squared slowness.
    products : ndarray, shape (len(LAGS), k, k)
        Symmetric parts of ``sum_t u_t u_(t+l) z_t z_(t+l)'`` with u = 1 - slowness.
    pairs : ndarray, shape (len(LAGS),)
        ``sum_t u_t u_(t+l)``.
    raw : ndarray, shape (k, k)
        Triangle of the same rows without the low-pass.
    """

    triangles: Array
    counts: Array
    slowness: Array
    products: Array
    pairs: Array
    raw: Array

    @classmethod
    def empty(cls, size: int) -> Strata:
        """Nothing yet, for rows of `size` entries."""
        return cls(
            np.zeros((CLASSES, FOLDS, size, size)),
            np.zeros((CLASSES, FOLDS)),
            np.zeros((CLASSES, FOLDS)),
            np.zeros((len(LAGS), size, size)),
            np.zeros(len(LAGS)),
            np.zeros((size, size)),
        )

    def __add__(self, other: Strata) -> Strata:
        return sum_of([self, other])

    def scaled(self, weight: float) -> Strata:
        """The same rows with this weight on their squares; they count as so many."""
        root = np.sqrt(weight)
        return Strata(
            root * self.triangles,
            weight * self.counts,
            weight * self.slowness,
            weight * self.products,
            weight * self.pairs,
            root * self.raw,
        )

    @cached_property
    def classes(self) -> tuple[Array, Array, Array]:
        """Triangles (CLASSES, k, k), counts and mean squared slowness, all folds together."""
        return self.part(range(FOLDS))

    def part(self, folds: Sequence[int]) -> tuple[Array, Array, Array]:
        """The same for some folds."""
        chosen = list(folds)
        k = self.raw.shape[0]
        triangles = np.zeros((CLASSES, k, k))
        for c in range(CLASSES):
            triangles[c] = triangular(self.triangles[c, chosen].reshape(-1, k))
        counts = self.counts[:, chosen].sum(axis=1)
        slow = self.slowness[:, chosen].sum(axis=1) / np.maximum(counts, 1)
        return triangles, counts, slow

    @cached_property
    def total(self) -> Array:
        """The triangle of all rows, shape (k, k)."""
        return triangular(self.triangles.reshape(-1, self.raw.shape[0]))

    def correlation_time(self, beta: Array) -> float:
        """Rows per independent row: 1 + 2 sum of the residual's autocorrelation.

        Summed up to the first lag whose correlation is not positive, trapezoids between lags that
        are not there; rows at standstill do not count.

        Parameters
        ----------
        beta : ndarray, shape (k - 1,)
        """
        v = np.append(beta, -1.0)
        power = np.einsum("i,lij,j->l", v, self.products, v)
        mean = power / np.maximum(self.pairs, 1e-300)
        if not mean[0] > 0 or self.pairs[0] <= LAGS[1]:
            return 1.0
        rho = mean / mean[0]
        stop = np.flatnonzero((rho <= 0) | (self.pairs <= 0))
        end = int(stop[0]) if stop.size else len(rho)
        if end < 2:
            return 1.0
        # The trapezoid rule counts lag 0 by half, as the symmetric sum does.
        return float(max(1.0, 2.0 * np.trapezoid(rho[:end], LAGS[:end])))


def sum_of(parts: Sequence[Strata]) -> Strata:
    """All of them together; triangles are stacked once."""
    k = parts[0].raw.shape[0]
    triangles = np.zeros((CLASSES, FOLDS, k, k))
    for c in range(CLASSES):
        for f in range(FOLDS):
            found = [p.triangles[c, f] for p in parts if p.counts[c, f]]
            if found:
                triangles[c, f] = triangular(np.vstack(found))
    return Strata(
        triangles,
        np.sum([p.counts for p in parts], axis=0),
        np.sum([p.slowness for p in parts], axis=0),
        np.sum([p.products for p in parts], axis=0),
        np.sum([p.pairs for p in parts], axis=0),
        triangular(np.vstack([p.raw for p in parts])),
    )


def triangular(rows: Array) -> Array:
    """Upper triangle r with r'r = rows'rows, padded with zeros to a square."""
    r = np.linalg.qr(rows, mode="r")
    out = np.zeros((rows.shape[1],) * 2)
    out[: len(r)] = r
    return out


class StrataBuilder:
    """Accumulates the rows of one coordinate.

    Parameters
    ----------
    size : int
        Entries per row, the torque last.
    """

    def __init__(self, size: int) -> None:
        self._sum = Strata.empty(size)
        self._triangles = [
            [np.zeros((size, size), order="F") for _ in range(FOLDS)] for _ in range(CLASSES)
        ]
        self._raw = np.zeros((size, size), order="F")
        self._tail: tuple[Array, Array] | None = None

    def restart(self) -> None:
        """What comes next does not follow on what came last."""
        self._tail = None

    def add(self, rows: Array, raw: Array, slowness: Array, fold: npt.NDArray[np.intp]) -> None:
        """Add consecutive rows, (size, M) filtered and not, with slowness and fold, (M,)."""
        level = np.searchsorted(EDGES, slowness)
        for c, f in sorted(set(zip(level.tolist(), fold.tolist(), strict=True))):
            chosen = (level == c) & (fold == f)
            absorb(self._triangles[c][f], np.ascontiguousarray(rows[:, chosen]).T)
            self._sum.counts[c, f] += chosen.sum()
            self._sum.slowness[c, f] += float(np.sum(slowness[chosen] ** 2))
        absorb(self._raw, np.array(raw, order="C").T)
        self._correlate(rows, 1.0 - slowness)

    def _correlate(self, rows: Array, quick: Array) -> None:
        """Products of rows LAGS apart, those of the last call included."""
        new = rows * quick
        before = 0
        if self._tail is not None:
            before = self._tail[0].shape[1]
            new, quick = np.hstack([self._tail[0], new]), np.append(self._tail[1], quick)
        count = new.shape[1]
        for k, lag in enumerate(LAGS):
            later = slice(max(before, lag), count)
            if later.start >= count:
                continue
            earlier = slice(later.start - lag, count - lag)
            product = new[:, later] @ new[:, earlier].T
            self._sum.products[k] += 0.5 * (product + product.T)
            self._sum.pairs[k] += float(quick[later] @ quick[earlier])
        self._tail = new[:, -LAGS[-1] :], quick[-LAGS[-1] :]

    def result(self) -> Strata:
        """Everything added so far."""
        part = self._sum
        triangles = np.triu(np.array(self._triangles))
        return Strata(
            triangles, part.counts, part.slowness, part.products, part.pairs, np.triu(self._raw)
        )
