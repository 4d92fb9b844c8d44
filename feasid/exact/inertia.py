"""Exact questions about an inertia given in decimals: no floating point, no trigonometry.

A link's mass m, its inertia I about the centre of mass and the second moments
``Sigma = tr(I)/2 1 - I`` about it say whether the link can exist: the 4x4 pseudo-inertia is
positive definite exactly when m > 0 and Sigma is (Schur complement; Wensing, Kim and Slotine 2017,
Sec. III). This does not depend on the axes in which I is given, so a file's decimals decide it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Matrix = list[list[Fraction]]


def tensor(moments: Sequence[Fraction]) -> Matrix:
    """Symmetric 3x3 matrix of (xx, xy, xz, yy, yz, zz)."""
    xx, xy, xz, yy, yz, zz = moments
    return [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]


def second_moments(moments: Sequence[Fraction]) -> Matrix:
    """Sigma = tr(I)/2 1 - I of an inertia given by (xx, xy, xz, yy, yz, zz)."""
    inertia = tensor(moments)
    half = (inertia[0][0] + inertia[1][1] + inertia[2][2]) / 2
    return [[(half if r == c else 0) - inertia[r][c] for c in range(3)] for r in range(3)]


def is_positive_definite(a: Matrix) -> bool:
    """Whether a symmetric 3x3 matrix is positive definite: its leading minors are positive."""
    minor = a[0][0] * a[1][1] - a[0][1] ** 2
    return a[0][0] > 0 and minor > 0 and determinant(a) > 0


def determinant(a: Matrix) -> Fraction:
    """Determinant of a 3x3 matrix."""
    return (
        a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1])
        - a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0])
        + a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0])
    )


def can_exist(mass: Fraction, moments: Sequence[Fraction]) -> bool:
    """Whether the link is the inertia of some body with volume: m > 0 and Sigma > 0."""
    return mass > 0 and is_positive_definite(second_moments(moments))
