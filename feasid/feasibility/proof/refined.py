"""Multipliers of a rounded proof to sixty digits, on faces of sixty digits.

Where geometry is irrational, no multipliers in rationals cancel exactly; those in doubles leave
1e-16 of a limit of 10^8 kg, which a proof of little cannot pay. With K and the faces to more
digits the same equations, refined, leave 1e-45.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from feasid.core.arrays import Array
from feasid.feasibility.constraints.affine import Block
from feasid.feasibility.proof.energies import (
    Energies,
    Precise,
    in_context,
    largest,
    precise,
    spanned,
)
from feasid.feasibility.proof.precise import DIGITS, rounded, to_decimal
from feasid.feasibility.proof.question import Exact
from feasid.robot.known import Row

NOTHING = Decimal("1e-40")
"""Directions that motions reach by less, relative to the most, they do not reach."""

LAST = Decimal("1e-50")
"""Last digit of a face."""

SEEN = 1e-11
"""Singular value, relative to the largest, of equations that say the same as others."""

STEPS = 5
"""Of refinement."""


@in_context
def reached(energies: Energies, block: Block, unit: Array, rank: int) -> Precise | None:
    """A basis (s, r) of the directions in which motions push a block; None for the whole cone.

    Parameters
    ----------
    energies : Energies
    block : Block
        A body's or rotor's, on its own parameters.
    unit : ndarray, shape (s,)
    rank : int
        That the face has in doubles.
    """
    columns = tuple(block.columns.tolist())
    node = next((k for k, own in enumerate(energies.columns) if own == columns), None)
    if node is None or block.role == "asked":
        return None
    turn, shift = energies.turns[node], energies.shifts[node]
    if block.kind == "semi":  # eq. (17) has the first moment's sign turned
        pushes = np.concatenate([turn, -shift])
        _, about = spanned(turn, NOTHING)
        if len(about) + 3 == rank:  # where any direction of the force will do
            still = np.concatenate([0 * pushes[:3, :3], precise(np.eye(3))])
            pushes = np.concatenate([np.concatenate([turn, 0 * turn]), still], axis=1)
    elif block.kind == "full":  # the rows of (S(omega), v)
        (x, y, z), none = turn, 0 * turn[0]
        rows = [[none, -z, y, shift[0]], [z, none, -x, shift[1]], [-y, x, none, shift[2]]]
        pushes = np.concatenate([np.stack(row) for row in rows], axis=1)
    else:
        pushes = _balanced(turn, shift, block)
    scale = precise(unit)[:, None]
    basis, lead = spanned(pushes * scale, NOTHING)
    if len(lead) == len(unit):
        return None
    found = basis / scale * scale[list(lead)].T
    return np.array([[Decimal(x).quantize(LAST) for x in row] for row in found], dtype=object)


def _balanced(turn: Precise, shift: Precise, block: Block) -> Precise:
    """The energy of a rotor that is symmetric about its axis, on its own matrix."""
    x, y, z = turn
    across = (x * x + y * y).sum()
    about = (z * z).sum() - to_decimal(Fraction(float(block.basis[1, 1, 1]))) * across
    first = (shift[0] * turn[1] - shift[1] * turn[0]).sum()
    none = 0 * across
    rows = [[about, none, none], [none, across, first], [none, first, (shift * shift).sum()]]
    return np.array(rows, dtype=object)


@dataclass(frozen=True, eq=False)
class Balance:
    """``K'y = sum_k <B_k, V_k W_k V_k'> + sum_i z_i a_i`` in some columns, for y, W and z.

    Attributes
    ----------
    matrix : ndarray of Decimal, shape (columns, unknowns)
    scale : ndarray, shape (columns,)
        What one unit of a column's parameter is worth.
    count : int
        Of entries of y.
    spans : tuple of ndarray of Decimal, shape (s, r)
        V by block.
    """

    matrix: Precise
    scale: Array
    count: int
    spans: tuple[Precise, ...]

    @classmethod
    @in_context
    def of(
        cls,
        rows: Sequence[Row],
        blocks: Sequence[Block],
        spans: Sequence[Precise],
        bought: Sequence[Mapping[int, Fraction]],
        columns: Sequence[int],
        units: Array,
    ) -> Balance:
        """With rows of K, blocks on their spans and linear constraints that take part."""
        zero = Decimal(0)
        parts = [{j: to_decimal(c) for j, c in row.items()} for row in rows]
        for block, V in zip(blocks, spans, strict=True):
            forms = [V.T @ precise(B) @ V for B in block.basis]
            for a, b in _pairs(V):
                entries = zip(block.columns.tolist(), forms, strict=True)
                parts.append({j: -form[a, b] * (1 + (a != b)) for j, form in entries})
        parts += [{j: -to_decimal(c) for j, c in row.items()} for row in bought]
        matrix = [[part.get(j, zero) for part in parts] for j in columns]
        return cls(np.array(matrix, dtype=object), units[list(columns)], len(rows), tuple(spans))

    def start(self, y: Array, blocks: Sequence[Array], prices: Array) -> Array:
        """The unknowns of multipliers in doubles."""
        inside = []
        for V, Z in zip(self.spans, blocks, strict=True):
            inverse = np.linalg.pinv(V.astype(np.float64).reshape(len(Z), -1))
            W = inverse @ Z @ inverse.T
            inside += [0.5 * (W[a, b] + W[b, a]) for a, b in _pairs(V)]
        return np.concatenate([y, inside, prices])

    @in_context
    def solved(self, start: Array) -> tuple[list[Fraction], list[Exact], list[Fraction]]:
        """The nearest y, Z and z that satisfy the equations, but for the rounding of 45 digits."""
        sizes = np.maximum(np.abs(start), 1e-9 * np.abs(start).max(initial=1e-300))
        numbers = self.matrix.astype(np.float64) * self.scale[:, None] * sizes
        rows = np.maximum(np.abs(numbers).max(axis=1, initial=0.0), 1e-300)
        inverse = sizes[:, None] * np.linalg.pinv(numbers / rows[:, None], rcond=SEEN)
        u = precise(start)
        for _ in range(STEPS):
            left = self.matrix @ u * precise(self.scale / rows)
            worst = largest(left)
            if not worst:
                break
            u = u - precise(inverse @ (left / worst).astype(np.float64)) * worst
        places = DIGITS - min(0, largest(u).adjusted())
        exact = [rounded(x, places) for x in u]
        Z, at = [], self.count
        for V in self.spans:
            pairs, many = _pairs(V), range(V.shape[1])
            inner = dict(zip(pairs, exact[at : at + len(pairs)], strict=True))
            W = [[inner[min(a, b), max(a, b)] for b in many] for a in many]
            Z.append(congruent(V, W))
            at += len(pairs)
        return exact[: self.count], Z, exact[at:]


def _pairs(V: Precise) -> list[tuple[int, int]]:
    """Index pairs of W, the upper triangle."""
    return [(a, b) for a in range(V.shape[1]) for b in range(a, V.shape[1])]


def congruent(V: Precise, W: Exact) -> Exact:
    """``V W V'`` exactly."""
    rows = [[Fraction(x) for x in row] for row in V]
    half = [[_dot(row, column) for column in W] for row in rows]
    return [[_dot(row, other) for other in rows] for row in half]


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))
