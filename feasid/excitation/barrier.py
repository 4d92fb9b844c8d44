"""A logarithmic barrier that is smooth everywhere, so that a search may start outside.

Below a small distance the logarithm goes on as a parabola with the same value, slope and curvature
(Hauser and Saccon 2006).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from feasid.arrays import Array


@dataclass(frozen=True)
class LimitBarrier:
    """``weight`` times the mean of -log(margin), quadratic where a margin is below `reach`."""

    weight: float
    reach: float

    def __call__(self, margins: Array) -> tuple[float, Array]:
        """Sum over rows of means over samples, and its derivative; margins (..., N)."""
        near = margins < self.reach
        safe = np.where(near, self.reach, margins)
        step = (margins - 2 * self.reach) / self.reach
        value = np.where(near, 0.5 * (step**2 - 1) - np.log(self.reach), -np.log(safe))
        slope = np.where(near, step / self.reach, -1 / safe)
        share = self.weight / margins.shape[-1]
        return float(value.sum()) * share, slope * share
