"""Rounding approximate multipliers to exact ones.

A proof needs ``sum_k C_k*(Z_k) = K'y`` without any error. Choosing y first and asking each body's
matrix to take what is left of K'y in the body's columns makes it so: a 4x4 pseudo-inertia has ten
parameters and its multiplier ten entries, so Z_k is fixed exactly. What can then fail is that some
Z_k is not positive semidefinite, by a rounding: it is lifted, and the proof pays for what that
leaves with a limit on masses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from feasid.certificate import definiteness
from feasid.core.arrays import Array
from feasid.exact.numbers import decimal
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.feasibility.proof.facial_reduction import Face

Exact = list[list[Fraction]]

LEAST_LIFT = 1e-15
"""Share of the largest eigenvalue that is added where a matrix is lifted: a double's rounding."""


SMALL_LIFT = Fraction(1, 10**38)
"""The same where a matrix lies on a face but for the rounding of coefficients of 45 digits."""


def project(Z: Array, unit: Array) -> Array:
    """A multiplier in SI numbers, its negative eigenvalues dropped."""
    if not np.isfinite(Z).all():
        return Z
    values, vectors = np.linalg.eigh(0.5 * (Z + Z.T))
    clipped = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray(clipped / np.outer(unit, unit))


def round_matrix(Z: Array) -> Exact:
    """The doubles of the upper triangle as decimals."""
    return [[decimal(Z[min(r, c), max(r, c)]) for c in range(len(Z))] for r in range(len(Z))]


def lift_to_semidefinite(Z: Exact, unit: Array) -> Exact:
    """Z and what makes it positive semidefinite, in the directions in which it is not."""
    if definiteness(Z) != "indefinite":
        return Z
    scaled = np.array([[float(x) for x in row] for row in Z]) * np.outer(unit, unit)
    little = SMALL_LIFT * decimal(float(np.abs(scaled).max()))
    slightly = [row[:] for row in Z]
    for i, u in enumerate(unit):
        slightly[i][i] += little / decimal(u) ** 2 // SMALL_LIFT**2 * SMALL_LIFT**2
    if definiteness(slightly) != "indefinite":
        return slightly
    values, vectors = np.linalg.eigh(scaled)
    rounding = LEAST_LIFT * float(np.abs(values).max())
    low = values < rounding
    weights = 1.001 * np.maximum(-values[low], 0.0) + rounding
    added = (vectors[:, low] * weights) @ vectors[:, low].T + 1e-3 * rounding * np.eye(len(unit))
    more = round_matrix(added / np.outer(unit, unit))
    return [[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(Z, more, strict=True)]


def adjoint(basis: Array, Z: Exact) -> list[Fraction]:
    """<B_j, Z> for each j."""
    out = []
    for B in basis:
        places = zip(*np.nonzero(B), strict=True)
        out.append(sum((decimal(B[r, c]) * Z[r][c] for r, c in places), Fraction(0)))
    return out


def add_remainder(basis: Array, Z: Exact, remainder: list[Fraction]) -> Exact:
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


def complete_multipliers(
    feasible: FeasibleSet,
    Z: Mapping[int, Exact],
    left: Sequence[Fraction],
    units: Sequence[Array],
    faces: Mapping[int, Face] | None = None,
) -> tuple[dict[int, Exact], list[Fraction]]:
    """Multipliers of which every body's and sign's takes what is left in its own columns.

    Parameters
    ----------
    feasible : FeasibleSet
    Z : mapping of int to exact matrices
        By place among the constraints.
    left : sequence of Fraction
        ``sum_k <B_kj, Z_k> - (K'y)_j``.
    units : sequence of ndarray
        Of the blocks.
    faces : mapping of int to Face, optional
        On which blocks stay whose multipliers their parameters do not determine.

    Returns
    -------
    dict of int to exact matrices
        Positive semidefinite where those given were.
    list of Fraction
        What is left now: zero in all columns but those that nothing owns and where a matrix that
        takes it exactly would be indefinite.
    """
    out, rest = dict(Z), list(left)
    owned: set[int] = set()
    for k in _most_definite_first(feasible, out, units):
        block = feasible.blocks[k]
        columns = block.columns.tolist()
        if block.role == "asked" or not owned.isdisjoint(columns):
            continue
        owned.update(columns)
        if not any(rest[j] for j in columns):
            continue
        before = out.get(k) or [[Fraction(0)] * block.size for _ in range(block.size)]
        face, wanted = (faces or {}).get(k), [-rest[j] for j in columns]
        change = add_remainder if face is None else face.add_remainder
        out[k] = lift_to_semidefinite(change(block.basis, before, wanted), units[k])
        parts = zip(adjoint(block.basis, before), adjoint(block.basis, out[k]), strict=True)
        for j, (old, new) in zip(columns, parts, strict=True):
            rest[j] += new - old
    for k, row in enumerate(feasible.linear, len(feasible.blocks)):
        (*columns,) = row.columns.tolist()
        if len(columns) > 1 or columns[0] in owned or not row.coefficients[0] > 0:
            continue
        owned.update(columns)
        c, old = decimal(row.coefficients[0]), out.get(k, [[Fraction(0)]])[0][0]
        share = max(old - rest[columns[0]] / c, Fraction(0))
        rest[columns[0]] += (share - old) * c
        out[k] = [[share]]
    return out, rest


def _most_definite_first(
    feasible: FeasibleSet, Z: Mapping[int, Exact], units: Sequence[Array]
) -> list[int]:
    """Places of the blocks; of those of tied bodies, the one with most room for a change first."""
    places = list(range(len(feasible.blocks)))
    shared = Counter(j for b in feasible.blocks if b.role != "asked" for j in b.columns.tolist())
    if max(shared.values(), default=0) < 2:
        return places

    def room(k: int) -> float:
        if k not in Z:
            return 0.0
        M = np.array([[float(x) for x in row] for row in Z[k]])
        return float(np.linalg.eigvalsh(M * np.outer(units[k], units[k]))[0])

    return sorted(places, key=lambda k: -room(k))
