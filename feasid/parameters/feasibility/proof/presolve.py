"""Parameters that given values settle, in exact arithmetic, and the problem that remains.

A base parameter that is a single parameter (a friction coefficient, a drive inertia) fixes it;
with it other rows may fix more. Constraints on nothing but fixed parameters hold or do not; no
solver is asked. What remains has no equalities, no fixed parameters and no dependent equations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from feasid.certificate import definiteness
from feasid.core.arrays import Array
from feasid.core.exact.numbers import (
    Exact,
    combine,
    dot,
    printed_decimal,
    simplest_number,
    solve_near,
)
from feasid.parameters.feasibility.constraints.affine import Linear
from feasid.parameters.feasibility.constraints.elimination import Elimination
from feasid.parameters.feasibility.constraints.sets import FeasibleSet, block_value, linear_value
from feasid.parameters.feasibility.constraints.units import Units
from feasid.parameters.feasibility.proof.claim import Certificate
from feasid.parameters.feasibility.proof.question import DualPoint, Question
from feasid.robot.known import Row

ROUNDING = 1e-9
"""Relative difference that rounding of K may leave between equations that say the same."""

NO_PART = Fraction(1, 10**13)
"""Least weight of an equation in a combination, by least squares; smaller ones are rounding."""

FEW = Fraction(1, 2**48)
"""Sixteen units in the last place: rounding of inertias that were moved to a body's frame."""

ALONE, TINY = 1e-100, 1e-50
"""Weight of a parameter that occurs in one equation only, and least size of a parameter that is
zero."""

Fixed = tuple[int, int, Fraction]
"""Parameter, the equation that fixes it, and its coefficient there."""


@dataclass(frozen=True, eq=False)
class PresolvedQuestion:
    """A feasibility question, simplified in exact arithmetic."""

    question: Question
    #: Tuple of (parameter, equation, coefficient): in the order in which they were found.
    fixed: tuple[Fixed, ...]
    known: Mapping[int, Fraction]  #: Values of all fixed parameters, tied ones too.
    #: Tuple of (equation, Fraction): equations that the others contradict, and by how much.
    wrong: tuple[tuple[int, Fraction], ...]
    broken: Mapping[int, Exact]  #: Multipliers of constraints that fixed parameters break.
    singular: Mapping[int, Exact]  #: Of those that they make singular where definite is asked.
    rows: tuple[int, ...]  #: Equations that remain.
    elimination: Elimination  #: From the tied set to the numbers that remain.
    places: tuple[int, ...]  #: Of the constraints that remain, among those of the question.
    K: Array  #: Shape (len(rows), nz).
    beta: Array  #: Shape (len(rows),).

    @classmethod
    def from_question(cls, question: Question) -> PresolvedQuestion:
        """Solve the equations that can be solved."""
        singletons, at, active, wrong = _fix_singletons(question)
        values = dict(at)
        for j, (row, value) in question.elimination.solved.items():
            if all(i in at for i in row):
                values[j] = value + combine(row, at)
        numeric = question.feasible.with_margin(question.margin)
        # Constraints that are decided must not come back as numbers.
        undecided = [
            k for k, c in enumerate(numeric.constraints) if {*c.columns.tolist()} - values.keys()
        ]
        count = len(numeric.blocks)
        place = {k - count: p for p, k in enumerate(k for k in undecided if k >= count)}
        linear = []
        for i in place:  # rows that still know their opposite where that stays
            other = place.get(i + numeric.linear[i].opposite, place[i])
            linear.append(replace(numeric.linear[i], opposite=other - place[i]))
        blocks = tuple(numeric.blocks[k] for k in undecided if k < count)
        numeric = replace(numeric, blocks=blocks, linear=tuple(linear))
        elimination = Elimination.from_equalities(numeric, {j: float(v) for j, v in at.items()})
        rows, dropped, K, beta = _independent_equations(active, elimination.roots)
        equations = tuple(singletons), values, (*wrong, *dropped)
        # Multipliers of the constraints that known values break, and that they make singular.
        broken, singular = dict[int, Exact](), dict[int, Exact]()
        margin = printed_decimal(question.margin)
        for k, constraint in enumerate(question.feasible.constraints):
            ties = [question.elimination.solved.get(j) for j in constraint.columns.tolist()]
            frame = constraint.role in ("body", "rotor") and all(
                t == ({}, Fraction(0)) for t in ties
            )
            if frame or {*constraint.columns.tolist()} - values.keys():
                continue  # a frame is a body that is known to have no mass
            if isinstance(constraint, Linear):
                if linear_value(constraint, values) < margin:
                    broken[k] = [[Fraction(1)]]
                continue
            matrix = block_value(constraint, values)
            for i in range(len(matrix)):
                matrix[i][i] -= margin
            outcome = definiteness(matrix)
            strict = constraint.strict and not margin
            if outcome == "indefinite" or (outcome == "singular" and strict):
                v = short_negative_direction(matrix) or []
                multipliers = broken if outcome == "indefinite" else singular
                multipliers[k] = [[a * b for b in v] for a in v]
        decided = broken, singular
        return cls(question, *equations, *decided, rows, elimination, tuple(undecided), K, beta)

    @property
    def feasible(self) -> FeasibleSet:
        """The constraints that remain."""
        return self.elimination.inside

    @property
    def nearly_singular(self) -> bool:
        """Whether a given body is singular up to its rounding, and nothing else is violated."""
        if self.wrong or self.question.margin:
            return False
        singular = False
        for k, block in enumerate(self.question.feasible.constraints):
            if k in self.broken and isinstance(block, Linear):
                return False
            if k in self.places or isinstance(block, Linear) or not block.inertial:
                continue
            matrix, powers = block_value(block, self.known), block.powers
            for sign in (1, -2):  # the rounding added, then subtracted
                for i, power in enumerate(powers):
                    alike = (abs(matrix[j][j]) for j in range(len(powers)) if powers[j] == power)
                    matrix[i][i] += sign * FEW * max(alike)
                if sign > 0 and definiteness(matrix) == "indefinite":
                    return False
            singular = singular or definiteness(matrix) == "indefinite"
        return singular

    @property
    def redundant_rows(self) -> tuple[int, ...]:
        """Equations that follow from the others up to rounding."""
        used = {*self.rows, *(i for _, i, _ in self.fixed)}
        return tuple(i for i in range(len(self.question.rows)) if i not in used)

    def units(self, scale: Units) -> Units:
        """Units of the question for what remains of it, so that margins mean the same."""
        count = len(self.question.feasible.blocks)
        rows = [place - count for place in self.places if place >= count]
        return replace(self.elimination.units(scale), linear=scale.linear[rows])

    def lift_multipliers(
        self, y: Mapping[int, Fraction], multipliers: Mapping[int, Exact]
    ) -> DualPoint:
        """Multipliers of all equations; those of fixing equations take the remainder."""
        rows = self.question.reduced_rows
        out = [y.get(i, Fraction(0)) for i in range(len(rows))]
        remainders = list(DualPoint(self.question, out, multipliers).remainders)
        for j, i, coefficient in reversed(self.fixed):
            amount = remainders[j] / coefficient
            if amount:
                out[i] += amount
                for other, c in rows[i][0].items():
                    remainders[other] -= amount * c
        return DualPoint(self.question, out, multipliers)

    def refute(self) -> Certificate | None:
        """The proof that given values contradict each other or violate a constraint, if they do."""
        for i, error in self.wrong:
            # The equation minus the nearest combination of the kept ones.
            parts, coefficients = {i: Fraction(1)}, self.question.reduced_rows[i][0]
            row = np.array([float(coefficients.get(j, 0)) for j in self.elimination.roots.tolist()])
            if i not in self.rows and len(self.K) and row.any():
                shares = np.linalg.lstsq(self.K.T, row, rcond=None)[0]
                parts |= {k: -simplest_number(c) for k, c in zip(self.rows, shares, strict=True)}
            sign = -1 if error > 0 else 1
            y = {k: sign * part for k, part in parts.items() if abs(part) > NO_PART}
            certificate = self.question.certify_infeasible(self.lift_multipliers(y, {}))
            if certificate is not None:
                return certificate
        if self.broken:
            return self.question.certify_infeasible(self.lift_multipliers({}, self.broken))
        return None

    def complete_point(self, delta: Array) -> list[Fraction] | None:
        """The exact point near `delta`, (n,), that satisfies every equation and tie."""
        question = self.question
        point = [printed_decimal(d) for d in delta]
        for j, value in self.known.items():
            point[j] = value
        equations, counts = [], Counter[int]()
        for i in self.rows:
            (row, shift), right = question.reduced_rows[i], (question.values or ())[i]
            known = {j: c for j, c in row.items() if j in self.known}
            unknown = {(j,): c for j, c in row.items() if j not in self.known}
            equations.append((unknown, right - shift - combine(known, point)))
            counts.update(row)
        # Of parameters that are in no other equation, one where rounding matters least is changed.
        solved = solve_near(
            equations,
            {(j,): x for j, x in enumerate(point)},
            lambda unknown: (
                (ALONE if counts[unknown[0]] == 1 else 1.0)
                / max(abs(float(point[unknown[0]])), TINY)
            ),
        )
        if solved is None:
            return None
        for (j,), value in solved.items():
            point[j] = value
        for j, (row, value) in question.elimination.solved.items():
            point[j] = value + combine(row, point)
        return point


Active = list[tuple[int, Row, Fraction]]


def _fix_singletons(
    question: Question,
) -> tuple[list[Fixed], dict[int, Fraction], Active, list[tuple[int, Fraction]]]:
    """Fix parameters that single entries determine, until none does; find contradictions."""
    settled: list[Fixed] = []
    at: dict[int, Fraction] = {}
    wrong: list[tuple[int, Fraction]] = []
    values = question.values or ()
    active = [
        (i, dict(row), value - shift)
        for i, ((row, shift), value) in enumerate(zip(question.reduced_rows, values, strict=True))
    ]
    changed = True
    while changed:
        changed, waiting = False, []
        for i, row, right in active:
            for j in [j for j in row if j in at]:
                right -= row.pop(j) * at[j]
            if len(row) > 1:
                waiting.append((i, row, right))
            elif row:
                ((j, c),) = row.items()
                at[j] = right / c
                settled.append((j, i, c))
                changed = True
            elif right:
                terms = [abs(c * at.get(j, Fraction(0))) for j, c in question.rows[i].items()]
                size = max([abs(values[i]), *terms])
                if len(terms) == 1 or abs(right) > ROUNDING * size:  # more than rounding
                    wrong.append((i, right))
        active = waiting
    return settled, at, active, wrong


def _independent_equations(
    active: Active, roots: npt.NDArray[np.intp]
) -> tuple[tuple[int, ...], list[tuple[int, Fraction]], Array, Array]:
    """Independent equations, in doubles, and the equations that contradict them."""
    place = {int(j): k for k, j in enumerate(roots)}
    K, beta = np.zeros((len(active), len(roots))), np.zeros(len(active))
    for k, (_, row, right) in enumerate(active):
        beta[k] = float(right)
        for j, c in row.items():
            K[k, place[j]] = float(c)
    units = np.abs(K).max(axis=0, initial=1e-300)  # masses and inertias of a long robot
    sizes = np.abs(K / units).max(axis=1, initial=0.0)
    scaled, right = K / units / sizes[:, None], beta / sizes
    places: list[int] = []
    wrong: list[tuple[int, Fraction]] = []
    full = len(K) == 0 or np.linalg.matrix_rank(scaled, ROUNDING) == len(K)
    for k in range(len(K)):
        if not full:
            basis = scaled[places]
            parts = np.linalg.lstsq(basis.T, scaled[k], rcond=None)[0]
            if np.abs(scaled[k] - parts @ basis).max() <= ROUNDING:
                error = right[k] - parts @ right[places]
                if abs(error) > ROUNDING * np.abs(right).max(initial=1e-300):
                    wrong.append((active[k][0], Fraction(error)))
                continue
        places.append(k)
    return tuple(active[k][0] for k in places), wrong, K[places], beta[places]


def negative_direction(matrix: Exact) -> list[Fraction] | None:
    """A v with ``v'Av < 0``, else with ``v'Av = 0``, else None for a positive definite A.

    Elimination keeps ``A = M^-1 S M^-T`` with S the Schur complement: a negative pivot is the
    value of a row of M, and a zero pivot with non-zero entries in its row mixes two of them.
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


def short_negative_direction(matrix: Exact) -> list[Fraction] | None:
    """Like `negative_direction`, with few digits where that is negative enough."""
    floats = np.array(matrix, dtype=np.float64)
    size = np.abs(floats).max(axis=1) ** 0.5
    size = np.where(size > 0, size, 1.0)
    _, vectors = np.linalg.eigh(floats / np.outer(size, size))
    short = [Fraction(f"{v:.3g}") for v in vectors[:, 0] / size]
    value = dot(short, (dot(row, short) for row in matrix))
    return short if value < 0 else negative_direction(matrix)
