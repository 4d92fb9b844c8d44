"""How large the noise of each joint is, and how much of it at rows where the joint is slow.

Friction's law is least certain where a joint turns round, and no filter helps there: nearly all
the bias that is left after both sides of the equations were filtered comes from these rows. Their
variance is estimated with everything else,

    Var = a + b c^2,    a, b >= 0,

c the row's slowness (`feasid.reduction.strata`), alternating with weighted least squares. Rows that
follow one another err alike: the variance of a sum is larger by the autocorrelation time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

from feasid.core.arrays import Array
from feasid.reduction.triangle import Reduced

ROUNDS = 4
"""Alternations of least squares and variances; the fifth changes weights by less than 1 %."""

REWEIGHTED = 3
"""Steps towards the variances' own weights within a round."""

CORRELATED = 4
"""Steps between a residual's correlation and what an estimate followed of it."""

FLOOR = 1e-3
"""Smallest deviation, as a share of the joint's torque: noise-free logs stay finite."""

FIRST = 0.1
"""Deviation with which the first estimate is made, as a share of each joint's torque."""

FEWEST_LEFT = 0.05
"""Share of a class's rows that is counted as left, however many an estimate could follow."""

SEEN = 1e-10
"""Singular values of a column-scaled triangle below this share are directions that a log lacks."""

TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Noise:
    """Variances per joint [(N m)^2 or N^2].

    Attributes
    ----------
    quick, slow : ndarray, shape (dof,)
        a and b.
    correlation : ndarray, shape (dof,)
        Rows per independent row, at least 1.
    """

    quick: Array
    slow: Array
    correlation: Array

    def deviations(self, joint: int, slowness: Array) -> Array:
        """Standard deviation of rows with this squared slowness, counted as independent."""
        variance = self.quick[joint] + self.slow[joint] * slowness
        return np.asarray(np.sqrt(variance * self.correlation[joint]))

    def whitened(
        self, reduced: Reduced, folds: Sequence[int] | None = None
    ) -> tuple[Array, Array, float]:
        """Triangle of all rows in units of their deviations, as `Reduced.triangle` returns it.

        Parameters
        ----------
        reduced : Reduced
        folds : sequence of int, optional
            Only these stretches of time.
        """
        size = len(reduced.columns)
        r = self.whole(reduced, folds)
        return r[:size, :size], r[:size, size], float(r[size, size])

    def whole(self, reduced: Reduced, folds: Sequence[int] | None = None) -> Array:
        """The same triangle with the torques' slopes behind them, shape (nb + 2, nb + 2)."""
        size = len(reduced.columns)
        parts = []
        for j, support in enumerate(reduced.supports):
            triangles, _, slowness = _classes(reduced, j, folds)
            scaled = triangles / self.deviations(j, slowness)[:, None, None]
            wide = np.zeros((scaled.shape[0] * scaled.shape[1], size + 2))
            wide[:, [*support, size, size + 1]] = scaled.reshape(-1, scaled.shape[2])
            parts.append(wide)
        r = np.zeros((size + 2, size + 2))
        full = np.asarray(np.linalg.qr(np.vstack(parts), mode="r"))
        r[: full.shape[0]] = full
        r *= np.where(np.diag(r) < 0, -1.0, 1.0)[:, None]
        return r


def _classes(
    reduced: Reduced, joint: int, folds: Sequence[int] | None
) -> tuple[Array, Array, Array]:
    """Triangles with slopes, counts and mean squared slowness per class.

    Without strata there is one class, and nothing is known of slopes.
    """
    if reduced.strata:
        strata = reduced.strata[joint]
        return strata.classes if folds is None else strata.part(folds)
    triangle = reduced.triangles[joint]
    one = np.column_stack([triangle, np.zeros(len(triangle))])
    return one[None], np.array([float(reduced.rows)]), np.zeros(1)


def squares(reduced: Reduced, joint: int, beta: Array, folds: Sequence[int] | None = None) -> Array:
    """Sum of squared residuals of one joint per class, at base parameters beta."""
    v = np.r_[beta[list(reduced.supports[joint])], -1.0, 0.0]
    triangles, _, _ = _classes(reduced, joint, folds)
    return np.asarray(np.sum((triangles @ v) ** 2, axis=1))


Solver = Callable[[Array, Array], tuple[Array, Array]]
"""From whitened R and rho to beta and its covariance when the noise has unit variance."""


def least_squares(r: Array, rho: Array) -> tuple[Array, Array]:
    """The shortest least-squares solution, with columns scaled to one length, and (R'R)^+."""
    norms = np.linalg.norm(r, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    inverse = np.linalg.pinv(r / scale, rcond=SEEN) / scale[:, None]
    return np.asarray(inverse @ rho), np.asarray(inverse @ inverse.T)


def estimate(
    reduced: Reduced,
    solver: Solver = least_squares,
    folds: Sequence[int] | None = None,
    correlated: bool = True,
) -> tuple[Noise, Array]:
    """Noise and the solver's estimate, alternating.

    Parameters
    ----------
    reduced : Reduced
    solver : callable
        Weighted least squares, or one that knows a prior: on short logs least squares follows the
        noise, and what is left of it says little.
    folds : sequence of int, optional
        Only these stretches of time.
    correlated : bool
        Whether to count effective rows; without strata rows count as independent.

    Returns
    -------
    Noise
    ndarray, shape (nb,)
        Base parameters.
    """
    dof = len(reduced.triangles)
    power = np.array([np.sum(t[:, -1] ** 2) for t in reduced.triangles]) / max(reduced.rows, 1)
    overall = max(float(power.mean()), TINY)
    noise = Noise(FIRST**2 * (power + FLOOR * overall), np.zeros(dof), np.ones(dof))
    beta, spread = solver(*noise.whitened(reduced, folds)[:2])
    for _ in range(ROUNDS):
        noise = variances(reduced, noise, beta, spread, folds)
        beta, spread = solver(*noise.whitened(reduced, folds)[:2])
    if correlated and reduced.strata:
        # Only now: a joint that counts less leaves a residual that is more alike from row to row.
        noise = replace(noise, correlation=correlation_times(reduced, beta, spread))
        beta, _ = solver(*noise.whitened(reduced, folds)[:2])
    return noise, beta


def variances(
    reduced: Reduced,
    noise: Noise,
    beta: Array,
    spread: Array,
    folds: Sequence[int] | None = None,
) -> Noise:
    """A and b per joint from the residuals of beta, by weighted non-negative least squares.

    An estimate follows the noise of its own rows: a class of n rows whose whitened triangle is T
    has about ``n - tr(T spread T')`` of them left to show it.
    """
    dof = len(reduced.triangles)
    quick, slow = np.empty(dof), np.zeros(dof)
    for j in range(dof):
        triangles, counts, slowness = _classes(reduced, j, folds)
        support = list(reduced.supports[j])
        inner = spread[np.ix_(support, support)]
        white = triangles[..., :-2] / noise.deviations(j, slowness)[:, None, None]
        followed = np.sum((white @ inner) * white, axis=(1, 2))
        left = np.maximum(counts - followed, FEWEST_LEFT * counts)
        power = np.sum(triangles[..., -2] ** 2) / max(float(counts.sum()), 1.0)
        floor = max(FLOOR**2 * float(power), TINY)
        seen = counts > 0
        mean = squares(reduced, j, beta, folds)[seen] / left[seen]
        quick[j], slow[j] = _fitted(np.maximum(mean, floor), left[seen], slowness[seen], floor)
    return Noise(quick, slow, noise.correlation)


def _fitted(mean: Array, rows: Array, slowness: Array, floor: float) -> tuple[float, float]:
    """A and b of ``mean = a + b slowness``, each mean known as well as so many rows tell it."""
    model = np.column_stack([np.ones(len(mean)), slowness])
    spread = np.full(len(mean), max(float(rows @ mean / rows.sum()), floor))
    unit = float(np.median(mean))  # both columns near one: nnls stops at absolute tolerances
    found = np.array([floor, 0.0])
    for _ in range(REWEIGHTED):
        weight = np.sqrt(rows) / spread
        found = nnls(weight[:, None] * model * unit, weight * mean)[0] * unit
        spread = np.maximum(model @ found, floor)
    return max(float(found[0]), floor), float(found[1])


def correlation_times(reduced: Reduced, beta: Array, spread: Array) -> Array:
    """Rows per independent row of each joint's residual.

    `spread` (nb, nb) is the covariance of beta were all rows independent; as they are not, it is
    larger by what is asked for.
    """
    out = []
    for strata, support in zip(reduced.strata, reduced.supports, strict=True):
        own = list(support)
        found = 1.0
        for _ in range(CORRELATED):
            followed = found * spread[np.ix_(own, own)]
            found = strata.correlation_time(beta[own], followed)
        out.append(found)
    return np.array(out)
