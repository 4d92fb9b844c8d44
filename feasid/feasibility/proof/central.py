"""Multipliers well inside the cone, and what makes them cancel.

For ``minimise |A x - b|^2 / 2`` over ``V_k' C_k(x) V_k >= 0`` and ``G x + h >= 0``, points of a
primal-dual path have ``w = A x - b``, W_k and z with ``A'w = sum_k C_k*(V_k W_k V_k') + G'z`` but
for rounding, W_k definite and z positive. V_k spans the directions in which motions push a body:
else a mass that no data show would grow for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import linalg

from feasid.core.arrays import Array
from feasid.feasibility.program.squares import Iterate, Scaling, Squares

UNFELT = 1e-10
"""Share of the largest pivot at which nothing is felt of a direction."""


@dataclass(frozen=True, eq=False)
class Centre:
    """A point of the path, scaled."""

    scaling: Scaling

    @classmethod
    def of(cls, path: Squares, x: Array, gap: float, nothing: float) -> Centre | None:
        """The point whose bound is the fraction `gap` below its cost; None when there is none.

        Parameters
        ----------
        path : Squares
        x : ndarray, shape (n,)
            Where to start.
        gap : float
        nothing : float
            Norm of the error, as a fraction of that of b, below which there is none.
        """
        at, _, found = path.solve(x, 0.5 * gap, nothing)
        if not found:
            return None
        try:
            return cls(Scaling.of(path, at, path.residuals(at)))
        except linalg.LinAlgError:
            return None

    @property
    def at(self) -> Iterate:
        """The point and its multipliers."""
        return self.scaling.at

    @property
    def multipliers(self) -> dict[int, Array]:
        """W of each block that has a face, in units."""
        pairs = zip(self.scaling.problem.groups, self.at.multipliers, strict=True)
        return {k: W for g, some in pairs for k, W in zip(g.members, some, strict=True)}

    @cached_property
    def _factors(self) -> tuple[Array, Array, npt.NDArray[np.intp], Array]:
        """Q, R, pivots and scale of the normal equations' square root, of what is felt.

        Its condition is the root of theirs.
        """
        scaling, path = self.scaling, self.scaling.problem
        parts = [path.A, path.G * scaling.weights[:, None]]
        for group, white in zip(path.groups, scaling.bases, strict=True):
            rows, columns, double = _triangle(group.constant.shape[1])
            size = group.constant.shape[1]
            half = white[:, :, rows * size + columns] * double
            part = np.zeros((len(half), len(rows), len(path.A[0])))
            for where, some, own in zip(group.columns, half, part, strict=True):
                own[:, where] = some.T
            parts.append(part.reshape(-1, part.shape[2]))
        stacked = np.vstack(parts)
        scale = np.asarray(1 / np.maximum(np.linalg.norm(stacked, axis=0), 1e-300))
        stacked *= scale
        Q, R, pivots = linalg.qr(
            stacked, mode="economic", pivoting=True, overwrite_a=True, check_finite=False
        )
        diagonal = np.abs(np.diagonal(R))
        rank = int((diagonal > UNFELT * diagonal.max(initial=0.0)).sum())
        return (
            np.asarray(Q[:, :rank]),
            np.asarray(R[:rank, :rank]),
            np.asarray(pivots[:rank], dtype=np.intp),
            scale,
        )

    def cancelling(self, left: Array) -> tuple[Array, dict[int, Array], Array]:
        """The smallest changes of w, W and z, relative to themselves, that take away ``left``."""
        Q, R, pivots, scale = self._factors
        right = (left * scale)[pivots]
        u = Q @ linalg.solve_triangular(R, right, trans="T", check_finite=False)
        scaling, path = self.scaling, self.scaling.problem
        at = len(path.b) + len(path.h)
        blocks: dict[int, Array] = {}
        for group, inward in zip(path.groups, scaling.inward, strict=True):
            rows, columns, double = _triangle(inward.shape[1])
            own = u[at : at + len(inward) * len(rows)].reshape(len(inward), -1) / double
            inner = np.zeros_like(inward)
            inner[:, rows, columns] = inner[:, columns, rows] = own
            changes = inward.transpose(0, 2, 1) @ inner @ inward
            blocks.update(zip(group.members, changes, strict=True))
            at += own.size
        z = scaling.weights * u[len(path.b) : len(path.b) + len(path.h)]
        return -u[: len(path.b)], blocks, z


def _triangle(size: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Array]:
    """Rows and columns of the upper triangle, and by how much its entries count."""
    rows, columns = np.triu_indices(size)
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))
