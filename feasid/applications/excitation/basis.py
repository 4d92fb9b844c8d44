"""Families of trajectories that are linear in their coefficients: q(t) = B(t) c.

Finite Fourier series (Swevers et al. 1997) and periodic B-splines of degree five. All that a design
needs of a family are its matrices: value and the first three derivatives by time. Rest at the
ends is therefore a linear equation, and slower motion only scales the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.interpolate import BSpline

from feasid.core.arrays import Array

REST_TOLERANCE = 1e-12
"""Singular values of the equations of rest below this share of the largest are zero."""


class Basis(Protocol):
    """A family of periodic functions of time."""

    @property
    def period(self) -> float:
        """[s]"""

    @property
    def size(self) -> int:
        """Coefficients per joint."""

    def matrices(self, t: Array) -> Array:
        """Value and derivatives up to the third at times t (N,): shape (4, N, size)."""


@dataclass(frozen=True)
class SlowedBasis:
    """A family on a clock that passes slowly through the middle of each period.

    The clock ``s(t) = t + depth / omega sin(omega t)``, omega = 2 pi / period, runs at
    ``1 + depth`` times the usual speed at the ends of a period and at ``1 - depth`` times in its
    middle. Slow motion shows friction and weight without inertia.
    """

    basis: Basis
    depth: float

    @property
    def period(self) -> float:
        """[s]"""
        return self.basis.period

    @property
    def size(self) -> int:
        """Coefficients per joint."""
        return self.basis.size

    def matrices(self, t: Array) -> Array:
        """See `Basis.matrices`; the chain rule three times."""
        w = 2 * np.pi / self.period
        sin, cos = np.sin(w * t), np.cos(w * t)
        rate = (1 + self.depth * cos)[:, None]
        second = (-self.depth * w * sin)[:, None]
        third = (-self.depth * w**2 * cos)[:, None]
        x, dx, ddx, dddx = self.basis.matrices(t + self.depth / w * sin)
        return np.stack(
            [
                x,
                dx * rate,
                ddx * rate**2 + dx * second,
                dddx * rate**3 + 3 * ddx * rate * second + dx * third,
            ]
        )


def times_within_period(basis: Basis, count: int) -> Array:
    """So many times from zero on at even intervals; the period's end is not among them."""
    return np.arange(count) * basis.period / count


def rest_basis(basis: Basis, scale: Array) -> Array:
    """Scaled coefficients of motions that start and end at rest, shape (size, size - 2).

    Columns are orthonormal and span ``{z : dq(0) = 0, ddq(0) = 0}`` for coefficients ``scale * z``;
    what is periodic ends as it starts.
    """
    _, rate, push, _ = basis.matrices(np.zeros(1)) * scale
    # Times the period, an acceleration has the size of a velocity, and one tolerance fits both.
    _, singular, right = np.linalg.svd(np.vstack([rate, push * basis.period]))
    rank = int((singular > REST_TOLERANCE * singular[0]).sum())
    return np.ascontiguousarray(right[rank:].T)


def constant_coefficients(basis: Basis) -> Array:
    """Coefficients of the function that is one, shape (size,)."""
    values = basis.matrices(times_within_period(basis, 4 * basis.size))[0]
    return np.asarray(np.linalg.lstsq(values, np.ones(len(values)), rcond=None)[0])


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
        """See `feasid.applications.excitation.basis.Basis.matrices`."""
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


DEGREE = 5  #: Jerk is continuous and has a continuous derivative.


@dataclass(frozen=True)
class Splines:
    """Periodic splines with this many control points; jerk is smooth.

    A point moves the trajectory during ``6 / size`` of the period only.
    """

    period: float
    size: int  #: Number of control points.

    @cached_property
    def _basis_functions(self) -> BSpline:
        knots = np.arange(-DEGREE, self.size + DEGREE + 1) * (self.period / self.size)
        # The first control points once more at the end make the spline periodic.
        wrapped = np.arange(self.size + DEGREE) % self.size
        return BSpline(knots, np.eye(self.size)[wrapped], DEGREE)

    def matrices(self, t: Array) -> Array:
        """See `feasid.applications.excitation.basis.Basis.matrices`."""
        within = np.mod(np.asarray(t, dtype=np.float64), self.period)
        return np.stack([self._basis_functions(within, nu=k) for k in range(4)])
