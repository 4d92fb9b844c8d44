"""A conic program as plain arrays, and what a solver made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy import sparse

from feasid.core.arrays import Array
from feasid.feasibility.constraints.sets import Group


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise ``|A x - b| + c . x`` subject to ``F_k x + f_k >= 0`` and ``G x + h >= 0``.

    Attributes
    ----------
    A, b : ndarray, shapes (rows, nx) and (rows,)
        Empty (0 rows) when there is only a linear cost.
    c : ndarray, shape (nx,)
    F : sparse array, shape (sum of s_k^2, nx)
        Row-major entries of the symmetric matrices F_k, one below the other.
    f : ndarray, shape (sum of s_k^2,)
    sizes : tuple of int
        s_k.
    G, h : ndarray, shapes (m, nx) and (m,)
    """

    A: Array
    b: Array
    c: Array
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

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The matrices on their own columns, stacked by shape."""
        entries = self.F.tocoo()
        sizes = np.array(self.sizes, dtype=np.intp)
        ends = np.cumsum(np.r_[0, sizes**2])
        rows, columns = entries.coords
        owner = np.searchsorted(ends, rows, side="right") - 1
        pairs, place = np.unique(owner * self.c.size + columns, return_inverse=True)
        counts = np.bincount(pairs // self.c.size, minlength=len(sizes))
        firsts = np.cumsum(np.r_[0, counts])
        groups = []
        for size, count in sorted(set(zip(sizes.tolist(), counts.tolist(), strict=True))):
            members = np.flatnonzero((sizes == size) & (counts == count))
            own = np.isin(owner, members)
            k = owner[own]
            stacked = np.zeros((len(members), count, size * size))
            number = np.searchsorted(members, k)
            stacked[number, place[own] - firsts[k], rows[own] - ends[k]] = entries.data[own]
            groups.append(
                Group(
                    tuple(members.tolist()),
                    (pairs % self.c.size)[firsts[members][:, None] + np.arange(count)],
                    stacked.reshape(len(members), count, size, size),
                    self.f[ends[members][:, None] + np.arange(size * size)].reshape(-1, size, size),
                )
            )
        return tuple(groups)


@dataclass(frozen=True, eq=False)
class SolverAnswer:
    """A solver's own words: nothing in it is to be believed before it is checked.

    ``multipliers`` are those of the matrices, (s_k, s_k) each, ``prices`` those of the linear
    constraints, shape (m,); both for the objective as `Program` states it.
    """

    status: str
    x: Array
    multipliers: tuple[Array, ...] = ()
    prices: Array = field(default_factory=lambda: np.zeros(0))
    iterations: int = 0
    seconds: float = 0.0

    def fits(self, program: Program) -> bool:
        """True when the point is finite and everything has the shape that the program asks."""
        sizes = tuple(np.shape(Z) for Z in self.multipliers)
        return (
            np.shape(self.x) == (program.c.size,)
            and bool(np.isfinite(self.x).all())
            and sizes in ((), tuple((s, s) for s in program.sizes))
            and np.shape(self.prices) in ((0,), program.h.shape)
        )


@dataclass(frozen=True)
class Attempt:
    """One line of the log of a solve."""

    solver: str
    form: str
    status: str
    iterations: int
    seconds: float
    accepted: bool
    verdict: str

    def __str__(self) -> str:
        mark = "accepted" if self.accepted else "refused"
        return (
            f"{self.solver} ({self.form}): {self.status} after {self.iterations} iterations, "
            f"{self.seconds * 1e3:.0f} ms; {mark}: {self.verdict}"
        )
