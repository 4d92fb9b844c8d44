"""Numbers to minimise: functions of the information matrix, and the barrier of the limits.

The information of a motion is M = W'W / s, the mean over its samples of the base regressor's
square, rows divided by the torque noise, plus what is known already. Each objective returns its
value and its derivative by M, a symmetric matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from feasid.core.arrays import Array

MIN_RELATIVE_EIGENVALUE = 1e-15
"""Eigenvalues below this share of the largest are rounding: directions that the motion does not
determine at all."""


class Objective(Protocol):
    """A number to minimise."""

    def __call__(self, information: Array) -> tuple[float, Array]:
        """Value and derivative by the information matrix."""


def _spectrum(information: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(information)
    return np.maximum(values, MIN_RELATIVE_EIGENVALUE * max(values[-1], 1e-300)), vectors


@dataclass(frozen=True)
class Condition:
    """Logarithm of a smooth stand-in for the condition number of W.

    ``(log tr M^p + log tr M^-p) / 2p`` decreases to ``log cond(W) = (log max - log min) / 2`` of
    M's eigenvalues as the exponent p grows; small exponents weight all eigenvalues.
    """

    power: float

    def __call__(self, information: Array) -> tuple[float, Array]:
        """Value and derivative by the information matrix."""
        values, vectors = _spectrum(information)
        exponents = np.log(values) * self.power
        high, low = np.exp(exponents - exponents.max()), np.exp(exponents.min() - exponents)
        value = exponents.max() - exponents.min() + np.log(high.sum()) + np.log(low.sum())
        slope = (high / high.sum() - low / low.sum()) / (2 * values)
        return float(value / (2 * self.power)), (vectors * slope) @ vectors.T


@dataclass(frozen=True)
class LogDet:
    """Minus log det M per parameter: D-optimal, the volume of the estimate's ellipsoid."""

    def __call__(self, information: Array) -> tuple[float, Array]:
        """Value and derivative by the information matrix."""
        size = len(information)
        factor, failed = dpotrf(information, lower=1)
        pivots = np.diag(factor) ** 2
        if failed or pivots.min() < size * MIN_RELATIVE_EIGENVALUE * pivots.max():
            values, vectors = _spectrum(information)
            return float(-np.log(values).mean()), -(vectors / (size * values)) @ vectors.T
        inverse = np.tril(dpotri(factor, lower=1)[0])
        inverse += np.tril(inverse, -1).T
        return float(-np.log(pivots).mean()), inverse / -size


@dataclass(frozen=True, eq=False)
class Prediction:
    """Half the logarithm of the variance of the torques predicted on a task: I-optimal.

    ``tr(C M^-1)`` with C the mean of Y'Y over the task's samples.
    """

    task: Array

    def __call__(self, information: Array) -> tuple[float, Array]:
        """Value and derivative by the information matrix."""
        values, vectors = _spectrum(information)
        inverse = (vectors / values) @ vectors.T
        spread = float((inverse * self.task).sum())
        return 0.5 * float(np.log(spread)), -0.5 * inverse @ self.task @ inverse / spread


@dataclass(frozen=True)
class Mixture:
    """A weighted sum of objectives."""

    parts: tuple[tuple[float, Objective], ...]

    def __call__(self, information: Array) -> tuple[float, Array]:
        """Value and derivative by the information matrix."""
        total, slope = 0.0, np.zeros_like(information)
        for weight, part in self.parts:
            value, gradient = part(information)
            total += weight * value
            slope += weight * gradient
        return total, slope


@dataclass(frozen=True)
class LimitBarrier:
    """``weight`` times the mean of -log(margin), quadratic where a margin is below `reach`."""

    weight: float
    reach: float

    def __call__(self, margins: Array) -> tuple[float, Array]:
        """Sum over rows of means over samples, and its derivative; margins (..., N)."""
        safe = np.maximum(margins, self.reach)
        value, slope = -np.log(safe), -1 / safe
        near = np.nonzero(margins < self.reach)
        if near[0].size:
            step = (margins[near] - 2 * self.reach) / self.reach
            value[near] += 0.5 * (step**2 - 1)
            slope[near] = step / self.reach
        share = self.weight / margins.shape[-1]
        slope *= share
        return float(value.sum()) * share, slope
