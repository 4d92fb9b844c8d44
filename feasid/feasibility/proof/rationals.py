"""From a solver's doubles to multipliers in rationals, block by block."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from feasid.core.arrays import Array
from feasid.exact.numbers import decimal

Exact = list[list[Fraction]]


def projected(Z: Array, unit: Array) -> Array:
    """A multiplier in SI numbers, its negative eigenvalues dropped."""
    if not np.isfinite(Z).all():
        return Z
    values, vectors = np.linalg.eigh(0.5 * (Z + Z.T))
    clipped = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray(clipped / np.outer(unit, unit))


def rounded(Z: Array) -> Exact:
    """The doubles of the upper triangle as decimals."""
    return [[decimal(Z[min(r, c), max(r, c)]) for c in range(len(Z))] for r in range(len(Z))]


def definite(Z: Array) -> Exact:
    """Rounded, with a little of the identity so that rounding cannot make it indefinite."""
    return rounded(Z + 1e-12 * np.trace(Z) * np.eye(len(Z)))


def adjoint(basis: Array, Z: Exact) -> list[Fraction]:
    """<B_j, Z> for each j."""
    out = []
    for B in basis:
        places = zip(*np.nonzero(B), strict=True)
        out.append(sum((decimal(B[r, c]) * Z[r][c] for r, c in places), Fraction(0)))
    return out


def corrected(basis: Array, Z: Exact, remainder: list[Fraction]) -> Exact:
    """Z plus the smallest matrix whose adjoint is `remainder`: ``sum_j w_j B_j``, ``G w = r``."""
    gram = np.einsum("aij,bij->ab", basis, basis)
    inverse = np.linalg.inv(gram)
    # The Gram matrices are small integers and halves, so that sixteenths hold their inverses.
    exact_inverse = [[Fraction(float(x)).limit_denominator(64) for x in row] for row in inverse]
    weights = [
        sum((g * r for g, r in zip(row, remainder, strict=True)), Fraction(0))
        for row in exact_inverse
    ]
    out = [row[:] for row in Z]
    for w, B in zip(weights, basis, strict=True):
        if w:
            for r, c in zip(*np.nonzero(B), strict=True):
                out[r][c] += w * decimal(B[r, c])
    return out


def lifted(Z: Exact, unit: Array) -> Exact:
    """Z and what makes it positive semidefinite, in the directions in which it is not."""
    scaled = np.array([[float(x) for x in row] for row in Z]) * np.outer(unit, unit)
    values, vectors = np.linalg.eigh(scaled)
    rounding = 1e-15 * float(np.abs(values).max())
    low = values < rounding
    added = (vectors[:, low] * (1.001 * np.maximum(-values[low], 0.0) + rounding)) @ vectors[
        :, low
    ].T
    more = rounded((added + 1e-3 * rounding * np.eye(len(unit))) / np.outer(unit, unit))
    return [[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(Z, more, strict=True)]
