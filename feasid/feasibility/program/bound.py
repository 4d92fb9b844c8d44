"""Our own lower bound on a program's optimum, from whatever multipliers a solver returned.

For ``minimise |A x - b|`` over ``F_k x + f_k >= 0`` and ``G x + h >= 0`` take any positive
semidefinite Z_k, any z >= 0 and any w with ``|w| <= 1`` and ``A'w = F*(Z) + G'z``. Then every
feasible x satisfies

    |A x - b| >= w'(A x - b) >= -w'b - sum_k <Z_k, f_k> - z'h,

because the left side exceeds the right by ``<Z, F x + f> + z'(G x + h)`` or more. Nothing is taken
on trust: multipliers are projected to their cones, w is computed, and a solver that lies only
makes the bound worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy import linalg, sparse

from feasid.core.arrays import Array
from feasid.feasibility.program.solve import SolverAnswer


@dataclass(frozen=True, eq=False)
class ConeArrays:
    """Minimise ``|A x - b|`` subject to ``F_k x + f_k >= 0`` and ``G x + h >= 0``, as arrays.

    Attributes
    ----------
    A, b : ndarray, shapes (rows, nx) and (rows,)
    F : sparse array, shape (sum of s_k^2, nx)
        Row-major entries of the symmetric matrices F_k, one below the other.
    f : ndarray, shape (sum of s_k^2,)
    sizes : tuple of int
        s_k.
    G, h : ndarray, shapes (m, nx) and (m,)
    """

    A: Array
    b: Array
    F: sparse.csr_array
    f: Array
    sizes: tuple[int, ...]
    G: Array
    h: Array

    @cached_property
    def factors(self) -> tuple[Array, Array]:
        """Q and R of A, which has independent columns; computed once."""
        q, r = np.linalg.qr(self.A)
        return np.asarray(q), np.asarray(r)

    @property
    def slices(self) -> list[slice]:
        """Rows of F that belong to each matrix."""
        ends = np.cumsum([0, *(s * s for s in self.sizes)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]


@dataclass(frozen=True, eq=False)
class Bound:
    """A proven lower bound, and the w that proves it, shape (rows,)."""

    value: float
    w: Array


def lower_bound(program: ConeArrays, raw: SolverAnswer) -> Bound:
    """The best bound along the ray of the projected multipliers.

    Z, z and w may be scaled together by any t >= 0 as long as ``|t w| <= 1``, and what is left of
    the unit ball is spent on the part of b outside the range of A, which nothing can fit.
    """
    A, b = program.A, program.b
    pull, offset = _pull(program, raw)
    Q, R = program.factors
    outside = b - Q @ (Q.T @ b)
    outside -= Q @ (Q.T @ outside)
    rest = float(np.linalg.norm(outside))
    w = Q @ linalg.solve_triangular(R, pull, trans="T")
    # The rounding of A'w = pull cannot be ignored: what is left over must be paid for.
    left = float(np.linalg.norm(A.T @ w - pull) * (1.0 + np.linalg.norm(raw.x)))
    gain = -float(w @ b) - offset - left
    size = float(np.linalg.norm(w))
    best, scale = _best_scale(gain, size, rest)
    direction = scale * w
    if rest > 0:
        direction = direction - np.sqrt(max(0.0, 1 - (scale * size) ** 2)) / rest * outside
    return Bound(max(best, 0.0), np.asarray(direction, dtype=np.float64))


def _pull(program: ConeArrays, raw: SolverAnswer) -> tuple[Array, float]:
    """``F*(Z) + G'z`` and ``<Z, f> + z'h`` for the multipliers, projected to their cones."""
    if len(raw.multipliers) != len(program.sizes) or raw.prices.shape != program.h.shape:
        return np.zeros(program.A.shape[1]), 0.0
    stacked = np.zeros(len(program.f))
    for part, matrix in zip(program.slices, raw.multipliers, strict=True):
        if np.isfinite(matrix).all():
            values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
            stacked[part] = ((vectors * np.maximum(values, 0.0)) @ vectors.T).ravel()
    prices = np.where(np.isfinite(raw.prices), np.maximum(raw.prices, 0.0), 0.0)
    pull = program.F.T @ stacked + program.G.T @ prices
    return np.asarray(pull), float(stacked @ program.f + prices @ program.h)


def _best_scale(gain: float, size: float, rest: float) -> tuple[float, float]:
    """Maximise ``t gain + rest sqrt(1 - (t size)^2)`` over ``0 <= t <= 1 / size``."""
    if gain <= 0:
        return rest, 0.0
    if size == 0:
        return rest, 0.0
    slope = gain / size
    t = slope / np.hypot(slope, rest) / size
    return float(np.hypot(slope, rest)), float(t)
