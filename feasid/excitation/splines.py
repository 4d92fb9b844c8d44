"""Periodic B-splines of degree five on uniform knots: local where Fourier series are global."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.interpolate import BSpline

from feasid.core.arrays import Array

DEGREE = 5
"""Jerk is continuous and has a continuous derivative."""


@dataclass(frozen=True)
class Splines:
    """Periodic splines with this many control points; jerk is smooth.

    A point moves the trajectory during ``6 / points`` of the period only.
    """

    period: float
    points: int

    @property
    def size(self) -> int:
        """Coefficients per joint."""
        return self.points

    @cached_property
    def _curves(self) -> BSpline:
        knots = np.arange(-DEGREE, self.points + DEGREE + 1) * (self.period / self.points)
        wrapped = np.arange(self.points + DEGREE) % self.points
        return BSpline(knots, np.eye(self.points)[wrapped], DEGREE)

    def matrices(self, t: Array) -> Array:
        """See `feasid.excitation.basis.Basis.matrices`."""
        within = np.mod(np.asarray(t, dtype=np.float64), self.period)
        return np.stack([self._curves(within, nu=k) for k in range(4)])
