"""A program as the sparse arrays that a conic solver takes: ``A x + s = b``, s in a cone.

CVXPY makes the same ones, up to their order, in a time that small robots' solves do not take.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from feasid.core.arrays import Array
from feasid.feasibility.program.program import Program


@dataclass(frozen=True, eq=False)
class ConeData:
    """Minimise ``x'P x / 2 + c.x``, with x first among the unknowns.

    Attributes
    ----------
    P, A : sparse matrices
        P's upper triangle.
    c, b : ndarray
    zero, nonneg : int
        Rows of the first two cones.
    soc, psd : tuple of int
        Sizes of those that follow; of matrices the upper triangle, column by column, entries off
        the diagonal times the root of two.
    """

    P: sparse.csc_matrix
    c: Array
    A: sparse.csc_matrix
    b: Array
    zero: int
    nonneg: int
    soc: tuple[int, ...]
    psd: tuple[int, ...]

    @classmethod
    def of(cls, program: Program, squared: bool) -> ConeData:
        """With the norm as a second-order cone below one more unknown, or with half its square.

        Squared, the residual is an unknown: A'A would have the square of A's condition.
        """
        rows, n = program.A.shape
        more = 0 if not rows else rows if squared else 1
        linear = sparse.csr_array(-program.G.reshape(-1, n))
        inner, constant = _triangles(program)
        c, diagonal = np.r_[program.c, np.zeros(more)], np.zeros(n + more)
        residual = sparse.csr_array(program.A)
        if squared:
            diagonal[n:] = 1.0
            first, offset = _beside(residual, sparse.csr_array(-np.eye(more))), program.b
            parts, b = [first, _beside(linear, more), _beside(inner, more)], [offset, program.h]
        else:
            c[n:] = 1.0
            parts, b = [_beside(linear, more)], [program.h]
            if rows:
                height = sparse.csr_array(([-1.0], ([0], [n])), shape=(1, n + 1))
                parts += [height, _beside(-residual, 1)]
                b += [np.zeros(1), -program.b]
            parts.append(_beside(inner, more))
        A = sparse.csc_matrix(sparse.vstack(parts))
        return cls(
            sparse.csc_matrix(sparse.diags_array(diagonal)),
            c,
            A,
            np.concatenate([*b, constant]),
            rows if squared else 0,
            len(program.h),
            (rows + 1,) if rows and not squared else (),
            program.sizes,
        )


def _beside(left: sparse.csr_array, right: sparse.csr_array | int) -> sparse.csr_array:
    """With further columns; of zeros for a number of them."""
    if isinstance(right, int):
        right = sparse.csr_array((left.shape[0], right))
    return sparse.csr_array(sparse.hstack([left, right]))


def _triangles(program: Program) -> tuple[sparse.csr_array, Array]:
    """Minus F and f in upper triangles, column by column."""
    places, factors = [np.zeros(0, dtype=np.intp)], [np.zeros(0)]
    for part, size in zip(program.slices, program.sizes, strict=True):
        columns, rows = np.tril_indices(size)
        places.append(part.start + rows * size + columns)
        factors.append(np.where(rows == columns, 1.0, np.sqrt(2.0)))
    picked, scale = np.concatenate(places), np.concatenate(factors)
    inner = sparse.csr_array(program.F)[picked]
    return sparse.csr_array(sparse.diags_array(-scale) @ inner), scale * program.f[picked]
