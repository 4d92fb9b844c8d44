"""Eliminate linear equalities from a feasible set; `expand` restores the full vector.

Parameters that are known, equal, mirrored or sum to a known mass are eliminated. Before any
solver, barrier or proof they are eliminated, ``delta = T z + fixed``; the constraints on z have no
equalities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array, Mask
from feasid.core.errors import InputError
from feasid.core.exact.numbers import printed_decimal
from feasid.parameters.feasibility.constraints.affine import Block, Linear
from feasid.parameters.feasibility.constraints.sets import (
    FeasibleSet,
    filter_constraints,
    is_violated,
)
from feasid.parameters.feasibility.constraints.units import Units, constraint_units
from feasid.robot.known import Row, Unknowns, eliminate

DIGITS = 15
"""Significant digits of a decimal that every double distinguishes: sums of decimals of so many
digits that are again so short are exact."""

SMALLEST = 1e-280  #: Sums below this are zero: further decimals cannot be rounded to.


@dataclass(frozen=True, eq=False)
class Elimination:
    """``delta = T z + fixed``, and the constraints on z."""

    T: Array  #: Shape (n, len(roots)).
    fixed: Array  #: Shape (n,).
    roots: npt.NDArray[np.intp]  #: The parameter that each entry of z stands for.
    #: On z, without equalities; constraints that z does not touch are left out.
    inside: FeasibleSet
    #: Mapping of int to (row, value): per eliminated parameter j: ``delta[j] = row . delta +
    #: value`` over roots, exactly.
    solved: Mapping[int, tuple[Row, Fraction]]
    #: Names of the constraints that the fixed parameters break by themselves.
    broken: tuple[str, ...]

    @classmethod
    def from_equalities(
        cls, feasible: FeasibleSet, given: Mapping[int, float] | None = None
    ) -> Elimination:
        """Eliminate the equalities of a set, and the parameters whose values are `given`.

        Raises InputError: when equalities contradict each other.
        """
        equations = [(e.name, dict(e.pairs), printed_decimal(e.value)) for e in feasible.equalities]
        equations += [
            (f"given {'.'.join(feasible.names[j])}", {j: Fraction(1)}, printed_decimal(value))
            for j, value in (given or {}).items()
        ]
        solved = eliminate(equations)
        unknowns = Unknowns.from_elimination(feasible.size, solved)
        T, offset, roots = unknowns.T, unknowns.fixed, unknowns.roots
        blocks: list[Block] = []
        for b in feasible.blocks:
            along = T[b.columns]
            columns = np.flatnonzero(along.any(axis=0))
            # A body whose parameters all stay what they are is one; any other is a mere matrix.
            stays = along[:, columns].shape == (len(b.columns),) * 2 and not (
                (along[:, columns] != np.eye(len(columns))).any() or offset[b.columns].any()
            )
            basis = np.einsum("jk,jrc->krc", along[:, columns], b.basis)
            constant = b.constant + np.tensordot(offset[b.columns], b.basis, 1)
            kind = b.kind if stays else "matrix"
            blocks.append(replace(b, kind=kind, columns=columns, basis=basis, constant=constant))
        rows = []
        for c in feasible.linear:
            row = c.coefficients @ T[c.columns]
            columns, a = np.flatnonzero(row), c.constant + float(offset[c.columns] @ c.coefficients)
            rows.append(Linear(c.name, columns, row[columns], a, role=c.role))
        reduced = replace(
            feasible,
            names=tuple(feasible.names[j] for j in roots),
            blocks=tuple(b for b in blocks if len(b.columns)),
            linear=tuple(c for c in rows if len(c.columns)),
            equalities=(),
            convex=tuple(c.substitute(T, offset) for c in feasible.convex),
        )
        violations = [
            b.name
            for b in blocks
            if not len(b.columns)
            and is_violated([[printed_decimal(x) for x in row] for row in b.constant], b.strict)
        ]
        violations += [c.name for c in rows if not len(c.columns) and c.constant < 0]
        return cls(T, offset, roots, reduced, solved, tuple(violations))

    def expand(self, z: Array) -> Array:
        """All parameters, shape (n,), in which the equalities hold exactly as decimals."""
        z = np.array(z, dtype=np.float64)
        sums = {
            j: (row, value)
            for j, (row, value) in self.solved.items()
            if row and (value or [abs(c) for c in row.values()] != [1])
        }
        for row, value in sums.values():
            members = np.searchsorted(self.roots, [*row])
            size = max(abs(float(value)), float(np.abs(z[members]).max()), SMALLEST)
            z[members] = np.round(z[members], DIGITS - 1 - int(np.ceil(np.log10(size))))
        out = np.asarray(self.T @ z + self.fixed)
        for j, (row, value) in sums.items():
            out[j] = float(value + sum(c * printed_decimal(out[i]) for i, c in row.items()))
        return out

    def substitute(self, row: Row) -> tuple[Row, Fraction]:
        """A row over the roots, and what eliminated parameters add to its left side."""
        out: Row = {}
        constant = Fraction(0)
        if self.solved.keys().isdisjoint(row):
            return dict(row), constant
        for j, c in row.items():
            replacement, value = self.solved.get(j, ({j: Fraction(1)}, Fraction(0)))
            constant += c * value
            for i, factor in replacement.items():
                out[i] = out.get(i, Fraction(0)) + c * factor
        return {j: c for j, c in out.items() if c}, constant

    def units(self, scale: Units) -> Units:
        """Units of z and its constraints."""
        return constraint_units(self.inside, scale.mass, scale.length, scale.parameters[self.roots])

    def require_consistent(self) -> Elimination:
        """Return the elimination, if fixed parameters break no constraint by themselves.

        Raises InputError.
        """
        if self.broken:
            raise InputError(f"known values break {self.broken[0]}", constraint=self.broken[0])
        return self


def restrict(feasible: FeasibleSet, mask: Mask) -> FeasibleSet:
    """The constraints and ties all of whose parameters are in `mask`, shape (n,)."""
    return filter_constraints(feasible, lambda c: bool(mask[[*c.columns]].all()))
