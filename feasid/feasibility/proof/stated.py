"""Least squares over a feasible set as the central path sees it: on faces, in units.

Bounds that are far from tight at the answer take no part: their multipliers are zero. A body that
a tight bound touches may be pushed in the bound's directions, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from feasid.core.arrays import Array
from feasid.exact.integers import Integers, integral
from feasid.feasibility.constraints.affine import Block, Linear
from feasid.feasibility.constraints.sets import stacked
from feasid.feasibility.constraints.units import Units
from feasid.feasibility.program.squares import Squares
from feasid.feasibility.proof.energies import Precise, in_context, precise, spanned
from feasid.feasibility.proof.faces import Face, kinetic_energy
from feasid.feasibility.proof.precise import to_decimal
from feasid.feasibility.proof.presolve import through
from feasid.feasibility.proof.question import Exact, Question
from feasid.feasibility.proof.refined import NOTHING, reached
from feasid.feasibility.proof.rows import ExactRows

PLACES = 50
"""Decimals of a face."""

TIGHT = 1e-2
"""Value of a bound, in units, up to which it may be in the way."""

UNSEEN = 1e-9
"""Singular value, relative to the largest, below which data do not show a direction."""

INWARD = 1e-3
"""How far the path starts from the answer, towards the middle."""


@dataclass(frozen=True, eq=False)
class Faced:
    """A matrix constraint on a face: ``V' C(x) V`` must be positive definite.

    Attributes
    ----------
    place : int
        Among the question's constraints.
    block : Block
        On the unknowns.
    unit : ndarray, shape (s,)
    V : ndarray of int, shape (s, r)
        Times ``10^PLACES``.
    Q, root : ndarray, shapes (s, r) and (r, r)
        Of V in units: orthonormal columns and what makes V of them.
    """

    place: int
    block: Block
    unit: Array
    V: Integers
    Q: Array
    root: Array

    @classmethod
    def of(cls, place: int, block: Block, unit: Array, V: Precise) -> Faced:
        """With its frame."""
        whole = np.array([[int(x.scaleb(PLACES)) for x in row] for row in V], dtype=object)
        Q, root = np.linalg.qr(V.astype(np.float64).reshape(len(unit), -1) * unit[:, None])
        return cls(place, block, unit, whole.reshape(V.shape), Q, root)

    def scaled(self, matrices: Array) -> Array:
        """Matrices of the block in units and on the face."""
        return np.asarray(self.Q.T @ (matrices / np.outer(self.unit, self.unit)) @ self.Q)

    def inner(self, multiplier: Array) -> Array:
        """W with ``V W V'`` the multiplier that is given in units and on the face."""
        inverse = np.linalg.inv(self.root)
        return np.asarray(inverse @ multiplier @ inverse.T)

    @cached_property
    def forms(self) -> tuple[Integers, int]:
        """``V' B_j V`` by column, one row each, over a denominator."""
        basis, over = integral(self.block.basis)
        inner = self.V.T @ basis @ self.V
        return inner.reshape(len(basis), -1), over * 10 ** (2 * PLACES)

    @property
    def exact(self) -> Exact:
        """V itself."""
        return [[Fraction(x, 10**PLACES) for x in row] for row in self.V.tolist()]

    def congruent(self, W: Integers, over: int) -> Exact:
        """``V W V'`` for integers over a denominator."""
        below = over * 10 ** (2 * PLACES)
        whole = (self.V @ W @ self.V.T).tolist()
        return [[Fraction(x, below) for x in row] for row in whole]


@dataclass(frozen=True, eq=False)
class Priced:
    """A linear constraint that takes part: its place, its row over the unknowns, its unit."""

    place: int
    row: Linear
    unit: float


@dataclass(frozen=True, eq=False)
class Stated:
    """The problem on faces.

    Attributes
    ----------
    path : Squares
        In units and divided by `size`.
    start : ndarray, shape (nz,)
        Near the answer.
    size : float
    unit : ndarray, shape (nz,)
        SI value of one unit of each unknown.
    matrices : tuple of Faced
    numbers : tuple of Priced
    rows : ExactRows
        K over the unknowns.
    """

    path: Squares
    start: Array
    size: float
    unit: Array
    matrices: tuple[Faced, ...]
    numbers: tuple[Priced, ...]
    rows: ExactRows

    @classmethod
    @in_context
    def of(
        cls, question: Question, R: Array, rho: Array, delta: Array, aim: Array, scale: Units
    ) -> Stated:
        """For data (R, rho) and an answer delta, which is moved towards `aim` to start from."""
        door = question.door
        unit, x = scale.parameters[door.roots], delta[door.roots]
        rows = _reduced(question)
        K = rows.doubles(len(unit))
        offset = question.rows.doubles(len(delta)) @ door.fixed
        A, b = R @ K * unit, rho - R @ offset
        size = float(np.linalg.norm(A)) or 1.0
        seen = len(A) >= A.shape[1] > 0 and np.linalg.cond(A) * UNSEEN < 1
        numbers = _numbers(question, x, scale)
        matrices = _matrices(question, x, scale, numbers, seen)
        path = _path(A / size, b / size, unit, matrices, numbers, question)
        x = x / unit
        start = x + INWARD * (aim[door.roots] / unit - x)
        return cls(path, start, size, unit, matrices, numbers, rows)


def _reduced(question: Question) -> ExactRows:
    """K over the unknowns."""
    door = question.door
    if len(door.roots) == question.feasible.size:
        return question.rows
    place = {int(j): i for i, j in enumerate(door.roots)}
    reduced = (through(door, row)[0] for row in question.rows)
    return ExactRows({place[j]: c for j, c in row.items()} for row in reduced)


def _numbers(question: Question, x: Array, scale: Units) -> tuple[Priced, ...]:
    """The signs, and the bounds that are tight."""
    inside, count = question.door.inside.with_margin(question.margin), len(question.feasible.blocks)
    out = []
    for place, row in zip(_places(question)[len(inside.blocks) :], inside.linear, strict=True):
        unit = float(scale.linear[place - count])
        value = row.constant + float(row.coefficients @ x[row.columns])
        if row.role == "sign" or value <= TIGHT * unit:
            out.append(Priced(place, row, unit))
    return tuple(out)


def _matrices(
    question: Question, x: Array, scale: Units, numbers: Sequence[Priced], seen: bool
) -> tuple[Faced, ...]:
    """Bodies on what motions and tight bounds reach of their cone, and tight asked matrices."""
    inside, whole = question.door.inside.with_margin(question.margin), question.feasible.constraints
    pairs = list(zip(_places(question), inside.blocks, strict=False))
    originals = [block for place, _ in pairs if isinstance(block := whole[place], Block)]
    units = [scale.blocks[place] for place, _ in pairs]
    energy = kinetic_energy(question.robot, originals, units)
    tight = [
        block
        for (_, block), unit in zip(pairs, units, strict=True)
        if block.role == "asked" and _least(block, x, unit) <= TIGHT
    ]
    touched = {int(j) for block in tight for j in block.columns}
    asked = [number.row for number in numbers if number.row.role == "asked"]
    out = []
    for (place, block), original, unit, E in zip(pairs, originals, units, energy, strict=True):
        if block.role == "asked" and not any(block is other for other in tight):
            continue
        free = seen or block.role == "asked" or not touched.isdisjoint(block.columns.tolist())
        V = None if free else _span(question, original, unit, E)
        if V is not None:
            pushes = [push for row in asked if (push := _push(block, row)) is not None]
            V = V if not pushes else spanned(np.concatenate([V, *pushes], axis=1), NOTHING)[0]
        out.append(Faced.of(place, block, unit, precise(np.eye(len(unit))) if V is None else V))
    return tuple(out)


def _span(question: Question, block: Block, unit: Array, energy: Array) -> Precise | None:
    """What motions reach of a body's cone; None for all of it."""
    face = Face.of(energy, unit) if energy.any() else None
    if face is None:
        return None
    if question.energies is not None:
        return reached(question.energies, block, unit, len(face.lead))
    return np.array([[to_decimal(x) for x in row] for row in face.V], dtype=object)


def _push(block: Block, row: Linear) -> Precise | None:
    """The matrix by which a bound pushes a body; None where it does not touch it."""
    weights = np.zeros(len(block.columns))
    for j, c in zip(row.columns.tolist(), row.coefficients, strict=True):
        weights[block.columns == j] = c
    if not weights.any():
        return None
    gram = np.einsum("aij,bij->ab", block.basis, block.basis)
    return precise(np.einsum("a,aij->ij", np.linalg.solve(gram, weights), block.basis))


def _path(
    A: Array,
    b: Array,
    unit: Array,
    matrices: Sequence[Faced],
    numbers: Sequence[Priced],
    question: Question,
) -> Squares:
    bases = [m.scaled(m.block.basis * unit[m.block.columns][:, None, None]) for m in matrices]
    constants = [m.scaled(m.block.constant) for m in matrices]
    groups = stacked([m.block.columns for m in matrices], bases, constants)
    G, h = np.zeros((len(numbers), len(unit))), np.zeros(len(numbers))
    for i, number in enumerate(numbers):
        row = number.row
        np.add.at(G[i], row.columns, row.coefficients * unit[row.columns] / number.unit)
        h[i] = row.constant / number.unit
    return Squares(A, b, groups, G, h)


def _least(block: Block, x: Array, unit: Array) -> float:
    """Smallest eigenvalue in units."""
    return float(np.linalg.eigvalsh(block.matrix(x) / np.outer(unit, unit))[0])


def _places(question: Question) -> list[int]:
    """Which of the question's constraints are inside its door."""
    T = question.door.T
    return [k for k, c in enumerate(question.feasible.constraints) if T[c.columns].any()]
