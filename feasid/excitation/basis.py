"""Families of trajectories that are linear in their coefficients: q(t) = B(t) c.

Everything a design needs of a family is its matrices: value and the first three derivatives by
time. So rest at the ends is a linear equation, and a slow passage another clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

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
class Slowed:
    """A family on a clock that passes slowly through the middle of each period.

    The clock ``s(t) = t + depth / omega sin(omega t)``, omega = 2 pi / period, runs at
    ``1 + depth`` times the usual speed at the ends of a period and at ``1 - depth`` times in its
    middle. What moves slowly shows friction and weight without inertia.
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


def resting(basis: Basis, scale: Array) -> Array:
    """Scaled coefficients of motions that start and end at rest, shape (size, size - 2).

    Columns are orthonormal and span ``{z : dq(0) = 0, ddq(0) = 0}`` for coefficients ``scale * z``;
    what is periodic ends as it starts.
    """
    _, rate, push, _ = basis.matrices(np.zeros(1)) * scale
    _, singular, right = np.linalg.svd(np.vstack([rate, push * basis.period]))
    rank = int((singular > REST_TOLERANCE * singular[0]).sum())
    return np.ascontiguousarray(right[rank:].T)


def standing(basis: Basis) -> Array:
    """Coefficients of the function that is one, shape (size,)."""
    count = 4 * basis.size
    values = basis.matrices(np.arange(count) * basis.period / count)[0]
    return np.asarray(np.linalg.lstsq(values, np.ones(count), rcond=None)[0])
