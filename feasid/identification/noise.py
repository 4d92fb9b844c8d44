"""How large the noise of each joint is, and how much of it at rows where the joint is slow.

Friction's law is least certain where a joint turns round, and no filter helps there: nearly all
the bias that is left after both sides of the equations were filtered comes from these rows. Their
variance is estimated with everything else,

    Var = a + b c^2,    a, b >= 0,

c the row's slowness (`feasid.reduction.strata`), alternating with weighted least squares. Rows that
follow one another err alike: the variance of a sum is larger by the autocorrelation time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from feasid.arrays import Array
from feasid.reduction.triangle import Reduced

ROUNDS = 4
"""Alternations of least squares and variances; the fifth changes weights by less than 1 %."""

REWEIGHTED = 3
"""Steps towards the variances' own weights within a round."""

FLOOR = 1e-3
"""Smallest deviation, as a share of the joint's torque: noise-free logs stay finite."""

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
        parts = []
        for j, support in enumerate(reduced.supports):
            triangles, _, slowness = _classes(reduced, j, folds)
            scaled = triangles / self.deviations(j, slowness)[:, None, None]
            wide = np.zeros((scaled.shape[0] * scaled.shape[1], size + 1))
            wide[:, [*support, size]] = scaled.reshape(-1, scaled.shape[2])
            parts.append(wide)
        r = np.zeros((size + 1, size + 1))
        full = np.asarray(np.linalg.qr(np.vstack(parts), mode="r"))
        r[: full.shape[0]] = full
        r *= np.where(np.diag(r) < 0, -1.0, 1.0)[:, None]
        return r[:size, :size], r[:size, size], float(r[size, size])


def _classes(
    reduced: Reduced, joint: int, folds: Sequence[int] | None
) -> tuple[Array, Array, Array]:
    """Triangles, counts and mean squared slowness per class; one class without strata."""
    if reduced.strata:
        strata = reduced.strata[joint]
        return strata.classes if folds is None else strata.part(folds)
    return reduced.triangles[joint][None], np.array([float(reduced.rows)]), np.zeros(1)


def squares(reduced: Reduced, joint: int, beta: Array, folds: Sequence[int] | None = None) -> Array:
    """Sum of squared residuals of one joint per class, at base parameters beta."""
    v = np.append(beta[list(reduced.supports[joint])], -1.0)
    triangles, _, _ = _classes(reduced, joint, folds)
    return np.asarray(np.sum((triangles @ v) ** 2, axis=1))


def estimate(
    reduced: Reduced, folds: Sequence[int] | None = None, correlated: bool = True
) -> tuple[Noise, Array]:
    """Noise and weighted least squares, alternating.

    Parameters
    ----------
    reduced : Reduced
    folds : sequence of int, optional
        Only these stretches of time.
    correlated : bool
        Whether to count effective rows; without strata rows count as independent.

    Returns
    -------
    Noise
    ndarray, shape (nb,)
        Base parameters; the shortest of equals where the log does not fix them.
    """
    dof = len(reduced.triangles)
    noise = Noise(np.ones(dof), np.zeros(dof), np.ones(dof))
    beta = solve(*noise.whitened(reduced, folds)[:2])
    for _ in range(ROUNDS):
        noise = variances(reduced, beta, folds)
        beta = solve(*noise.whitened(reduced, folds)[:2])
    if correlated and reduced.strata:
        noise = Noise(noise.quick, noise.slow, correlation_times(reduced, beta))
        beta = solve(*noise.whitened(reduced, folds)[:2])
    return noise, beta


def solve(r: Array, rho: Array) -> Array:
    """Least squares of a triangle with its columns scaled to one length."""
    norms = np.linalg.norm(r, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    return np.asarray(np.linalg.lstsq(r / scale, rho, rcond=1e-10)[0] / scale)


def variances(reduced: Reduced, beta: Array, folds: Sequence[int] | None = None) -> Noise:
    """A and b per joint from the residuals of beta, by weighted non-negative least squares."""
    dof = len(reduced.triangles)
    quick, slow = np.empty(dof), np.zeros(dof)
    per_joint = [_classes(reduced, j, folds) for j in range(dof)]
    rows = float(sum(counts.sum() for _, counts, _ in per_joint))
    spent = rows / max(rows - len(beta), 0.1 * rows, 1.0)
    for j, (triangles, counts, slowness) in enumerate(per_joint):
        power = np.sum(triangles[..., -1] ** 2) / max(float(counts.sum()), 1.0)
        floor = max(FLOOR**2 * float(power), TINY)
        sums = squares(reduced, j, beta, folds) * spent
        seen = counts > 0
        mean = np.maximum(sums[seen] / counts[seen], floor)
        model = np.column_stack([np.ones(seen.sum()), slowness[seen]])
        spread = np.full(len(mean), max(float(sums.sum() / max(counts.sum(), 1.0)), floor))
        found = np.array([floor, 0.0])
        for _ in range(REWEIGHTED):
            weight = np.sqrt(counts[seen]) / spread
            # Both columns near one: scipy's nnls stops at absolute tolerances.
            unit = float(np.median(mean))
            found = nnls(weight[:, None] * model * unit, weight * mean)[0] * unit
            spread = np.maximum(model @ found, floor)
        quick[j], slow[j] = max(found[0], floor), found[1]
    return Noise(quick, slow, np.ones(dof))


def correlation_times(reduced: Reduced, beta: Array) -> Array:
    """Rows per independent row of each joint's residual."""
    return np.array(
        [
            strata.correlation_time(beta[list(support)])
            for strata, support in zip(reduced.strata, reduced.supports, strict=True)
        ]
    )
