"""Exact directions in which a matrix is not positive."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

Exact = list[list[Fraction]]


def bad_direction(matrix: Exact) -> list[Fraction] | None:
    """A v with ``v'Av < 0``, else with ``v'Av = 0``, else None for a positive definite A.

    Elimination keeps ``A = M^-1 S M^-T`` with S the Schur complement: a negative pivot is the
    value of a row of M, and a zero pivot with something beside it mixes two of them.
    """
    n = len(matrix)
    s = [row[:] for row in matrix]
    m = [[Fraction(i == j) for j in range(n)] for i in range(n)]
    flat: list[Fraction] | None = None
    for k in range(n):
        pivot = s[k][k]
        if pivot < 0:
            return m[k]
        if pivot == 0:
            beside = next((j for j in range(k + 1, n) if s[k][j]), None)
            if beside is not None:
                t = -(abs(s[beside][beside]) + abs(s[k][beside])) / s[k][beside]
                return [a + t * b for a, b in zip(m[beside], m[k], strict=True)]
            flat = flat or m[k]
            continue
        for i in range(k + 1, n):
            factor = s[i][k] / pivot
            if factor:
                s[i] = [a - factor * b for a, b in zip(s[i], s[k], strict=True)]
                m[i] = [a - factor * b for a, b in zip(m[i], m[k], strict=True)]
    return flat


def short_direction(matrix: Exact) -> list[Fraction] | None:
    """Like `bad_direction`, with few digits where that is negative enough."""
    floats = np.array([[float(x) for x in row] for row in matrix])
    size = np.abs(floats).max(axis=1) ** 0.5
    size = np.where(size > 0, size, 1.0)
    _, vectors = np.linalg.eigh(floats / np.outer(size, size))
    short = [Fraction(f"{v:.3g}") for v in vectors[:, 0] / size]
    return short if _form(matrix, short) < 0 else bad_direction(matrix)


def _form(matrix: Exact, v: list[Fraction]) -> Fraction:
    rows = (sum((a * x for a, x in zip(r, v, strict=True)), Fraction(0)) for r in matrix)
    return sum((x * y for x, y in zip(v, rows, strict=True)), Fraction(0))
