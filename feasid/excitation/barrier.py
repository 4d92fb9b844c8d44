"""A logarithmic barrier that is smooth everywhere, so that a search may start outside.

Below a small distance the logarithm goes on as a parabola with the same value, slope and curvature
(Hauser and Saccon 2006).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from feasid.core.arrays import Array


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
