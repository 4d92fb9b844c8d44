"""The feasible set in normalised units, with margins: what solvers are given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from feasid.core.arrays import Array
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.feasibility.constraints.units import Units

MARGIN = 1e-6
"""Default margin, in units of each body's own mass and length."""

KEPT = 0.5
"""Fraction of the margin that the chosen full model keeps."""


def margins(feasible: FeasibleSet, scale: Units, margin: float | None) -> tuple[Array, Array]:
    """What to subtract for a margin, Sousa and Cortesao (2014) eq. (21), in normalised units.

    Relative (`margin` None): `MARGIN` times the identity in each body's units. Absolute: `margin`
    times the identity in SI numbers.
    """
    parts = []
    for unit in scale.blocks:
        size = np.full(len(unit), MARGIN) if margin is None else margin / unit**2
        parts.append(np.diag(size).ravel())
    numbers = np.full(len(scale.linear), MARGIN) if margin is None else margin / scale.linear
    return np.concatenate(parts) if parts else np.zeros(0), np.asarray(numbers)


def shrunk(feasible: FeasibleSet, scale: Units, margin: float | None) -> FeasibleSet:
    """The feasible set with `KEPT` of the margin taken off, so that its interior keeps that much.

    A fibre through a point that just has the margin is all but a point in the set with the whole
    margin; half of it leaves room to choose in.
    """
    blocks, numbers = margins(feasible, scale, margin)
    squares = [np.zeros(0), *(np.outer(u, u).ravel() for u in scale.blocks)]
    off = KEPT * blocks * np.concatenate(squares)
    ends = np.cumsum([0, *(b.size**2 for b in feasible.blocks)])
    return replace(
        feasible,
        blocks=tuple(
            replace(b, constant=b.constant - off[start : start + b.size**2].reshape(b.size, b.size))
            for b, start in zip(feasible.blocks, ends[:-1].tolist(), strict=True)
        ),
        linear=tuple(
            replace(c, constant=c.constant - float(m))
            for c, m in zip(feasible.linear, KEPT * numbers * scale.linear, strict=True)
        ),
    )


def normalised(feasible: FeasibleSet, scale: Units) -> tuple[sparse.csr_array, Array, Array, Array]:
    """Constraints as ``F x + f`` (stacked matrices) and ``G x + h``, x = delta / units."""
    values, constants = [np.zeros(0)], [np.zeros(0)]
    rows, columns = [np.zeros(0, dtype=np.intp)], [np.zeros(0, dtype=np.intp)]
    start = 0
    for block, unit in zip(feasible.blocks, scale.blocks, strict=True):
        square = np.outer(unit, unit)
        basis = block.basis * scale.parameters[block.columns][:, None, None] / square
        which, entry = np.nonzero(basis.reshape(len(basis), -1))
        values.append(basis.reshape(len(basis), -1)[which, entry])
        rows.append(start + entry)
        columns.append(block.columns[which])
        constants.append((block.constant / square).ravel())
        start += block.size**2
    F = sparse.csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
        shape=(start, feasible.size),
    )
    G = feasible.linear_matrix * scale.parameters / scale.linear[:, None]
    return F, np.concatenate(constants), G, feasible.linear_constant / scale.linear
