"""From a solver's doubles to multipliers in rationals, block by block."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from feasid.arrays import Array
from feasid.feasibility.constraints.affine import Block, Linear
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.feasibility.constraints.units import Units
from feasid.feasibility.proof.claim import LIMIT, decimal

Exact = list[list[Fraction]]

ENORMOUS = (1e8, 1e7, 1e6, 1e5, 1e4)
"""Size limits, in units of each body's mass and length, of proofs that need one; the largest that
a proof can afford is taken."""


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
        total = Fraction(0)
        for r, c in zip(*np.nonzero(B), strict=True):
            total += decimal(B[r, c]) * Z[r][c]
        out.append(total)
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


def shortfall(Z: Exact, unit: Array) -> Fraction:
    """What a multiple of the unit matrix must add so that Z is positive semidefinite."""
    scaled = np.array([[float(x) for x in row] for row in Z]) * np.outer(unit, unit)
    values = np.linalg.eigvalsh(scaled)
    rounding = 1e-15 * float(np.abs(values).max())
    return decimal(max(0.0, -float(values[0])) * 1.001 + rounding)


def size_weights(block: Block, unit: Array) -> Array:
    """Coefficients of minus the block's trace in units, shape (c,)."""
    return np.asarray(-np.einsum("cii,i->c", block.basis, 1.0 / unit**2))


def limited(feasible: FeasibleSet, scale: Units, size: float) -> FeasibleSet:
    """With a limit per block: its trace in units is at most `size`."""
    rows = []
    for block, unit in zip(feasible.blocks, scale.blocks, strict=True):
        weights = size_weights(block, unit)
        rows.append(Linear(f"{LIMIT} of {block.name}", block.columns, weights, size))
    return replace(feasible, linear=(*feasible.linear, *rows))
