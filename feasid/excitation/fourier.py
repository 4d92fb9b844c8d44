"""Finite Fourier series, the trajectories of Swevers et al. (1997)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from feasid.core.arrays import Array


@dataclass(frozen=True)
class Fourier:
    """Fourier series of some harmonics, eq. (78) of Sousa and Cortesao (2014).

    ``q(t) = q0 + sum_l a_l / (w l) sin(w l t) - b_l / (w l) cos(w l t)``, w = 2 pi / period;
    coefficients in the order ``q0, a_1 ... a_L, b_1 ... b_L``.
    """

    period: float
    harmonics: int

    @property
    def size(self) -> int:
        """Coefficients per joint."""
        return 2 * self.harmonics + 1

    def matrices(self, t: Array) -> Array:
        """See `feasid.excitation.basis.Basis.matrices`."""
        w = 2 * np.pi / self.period * np.arange(1, self.harmonics + 1)
        phase = np.multiply.outer(np.asarray(t, dtype=np.float64), w)
        sin, cos = np.sin(phase), np.cos(phase)
        one = np.zeros((4, len(phase), 1))
        one[0] = 1.0
        waves = [
            np.hstack([sin / w, -cos / w]),
            np.hstack([cos, sin]),
            np.hstack([-w * sin, w * cos]),
            np.hstack([-(w**2) * cos, -(w**2) * sin]),
        ]
        return np.concatenate([one, np.stack(waves)], axis=2)
