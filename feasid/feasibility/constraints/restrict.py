"""The feasible set of some parameters while the others keep their values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from feasid.arrays import Array, Mask
from feasid.feasibility.constraints.affine import Block, Linear
from feasid.feasibility.constraints.sets import FeasibleSet

Mask = Mask


def restricted(feasible: FeasibleSet, free: Mask, delta: Array) -> FeasibleSet:
    """Constraints on the free parameters, the others being fixed at `delta`.

    Parameters
    ----------
    feasible : FeasibleSet
    free : ndarray of bool, shape (n,)
    delta : ndarray, shape (n,)
        Where it is not finite and not free, the constraint is left out: nothing is known.

    Returns
    -------
    FeasibleSet
        Over ``free.sum()`` parameters; constraints without a free one are left out.
    """
    place = np.cumsum(free) - 1
    blocks = [_block(b, free, delta, place) for b in feasible.blocks]
    rows = [_linear(c, free, delta, place) for c in feasible.linear]
    return replace(
        feasible,
        names=tuple(n for n, f in zip(feasible.names, free, strict=True) if f),
        blocks=tuple(b for b in blocks if b is not None),
        linear=tuple(r for r in rows if r is not None),
    )


def _split(columns: npt.NDArray[np.intp], free: Mask, delta: Array) -> tuple[Mask, Array] | None:
    """Which of the columns are free, and the values of the others; None to leave out."""
    inside = free[columns]
    fixed = delta[columns[~inside]]
    return (inside, fixed) if inside.any() and np.isfinite(fixed).all() else None


def _block(block: Block, free: Mask, delta: Array, place: npt.NDArray[np.intp]) -> Block | None:
    split = _split(block.columns, free, delta)
    if split is None:
        return None
    inside, fixed = split
    return replace(
        block,
        kind=block.kind if inside.all() else "matrix",
        columns=place[block.columns[inside]],
        basis=block.basis[inside],
        constant=block.constant + np.tensordot(fixed, block.basis[~inside], 1),
    )


def _linear(row: Linear, free: Mask, delta: Array, place: npt.NDArray[np.intp]) -> Linear | None:
    split = _split(row.columns, free, delta)
    if split is None:
        return None
    inside, fixed = split
    return replace(
        row,
        columns=place[row.columns[inside]],
        coefficients=row.coefficients[inside],
        constant=row.constant + float(fixed @ row.coefficients[~inside]),
        opposite=0,
    )
