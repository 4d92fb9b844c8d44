"""How far a linear form reaches over models that exist and fit data: multipliers made exact.

For a form c, any w and any Z_k >= 0 with ``c + sum_k F_k*(Z_k) = K'R'w``, every feasible delta with
``|R K delta - rho|^2 <= budget`` has

    c.delta <= sqrt(budget) |w| + w.rho + sum_k <C_k, Z_k>.

Multipliers from inside a cone have room for their rounding: bodies' and joint terms' own take what
is left in their columns, and the right side is rounded up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import isqrt
from typing import Any

import numpy as np
from scipy import linalg

from feasid.certificate import definiteness
from feasid.core.arrays import Array
from feasid.errors import SolverError
from feasid.exact.elimination import solve_square
from feasid.exact.numbers import decimal, over_one, text
from feasid.feasibility.constraints.affine import Linear
from feasid.feasibility.proof.claim import Certificate
from feasid.feasibility.proof.question import Exact, ExactRows, Question
from feasid.feasibility.proof.rounding import add_remainder, round_matrix

ROOT_DIGITS = 30
"""Digits of a square root that is rounded up."""

SEEN = 1e-9
"""Share of the largest pivot below which data do not tell joint terms apart."""


@dataclass(frozen=True, eq=False)
class Reach:
    """A bound that holds.

    Attributes
    ----------
    form : ndarray, shape (n,)
    bound : float
        No model has more.
    weights : list of Fraction
        w; all zero where no data are needed.
    multipliers : mapping of int to matrices of Fraction
        By place among the question's constraints.
    """

    form: Array
    bound: float
    weights: list[Fraction]
    multipliers: dict[int, Exact]


@dataclass(frozen=True, eq=False)
class RangeEndProver:
    """Data and constraints in exact numbers.

    Attributes
    ----------
    question : Question
    R, rho : ndarray, shapes (rows, nb) and (rows,)
    budget : float
        Largest squared residual.
    limits : mapping of int to (int, int)
        For joint terms of either sign the places of two limits, which take what is left positive
        and negative in their column. Without them w is chosen so that nothing is left there.
    """

    question: Question
    R: Array
    rho: Array
    budget: float
    limits: Mapping[int, tuple[int, int]]

    def reach(self, form: Array, w: Array, multipliers: Mapping[int, Array]) -> Reach:
        """The bound that multipliers in doubles prove when they are made exact.

        Parameters
        ----------
        form : ndarray, shape (n,)
        w : ndarray, shape (rows,)
        multipliers : mapping of int to ndarray
            Of blocks and of linear constraints, (1, 1), by place.

        Raises
        ------
        SolverError
            When they prove nothing.
        """
        question, weights = self.question, [decimal(x) for x in w]
        taken = {place for pair in self.limits.values() for place in pair} | {*self._signs.values()}
        Z = {place: round_matrix(M) for place, M in multipliers.items() if place not in taken}
        weights = self._cancel(weights, form, Z)
        tied, left = self._remainder(weights, form, Z)
        for place, block in enumerate(question.feasible.blocks):
            columns = block.columns.tolist()
            if place in Z and block.role != "asked":
                Z[place] = add_remainder(block.basis, Z[place], [-left[j] for j in columns])
                for j in columns:
                    left[j] = Fraction(0)
        for j in (j for j, rest in enumerate(left) if rest):
            if j not in self._signs and j not in self.limits:
                raise SolverError("the data do not determine a joint term of either sign")
            place = self._signs[j] if j in self._signs else self.limits[j][left[j] < 0]
            Z[place] = [[-left[j] if j in self._signs else abs(left[j])]]
        if any(definiteness(M) == "indefinite" for M in Z.values()):
            raise SolverError("the multipliers of a range are not those of a proof")
        return Reach(form, self._upper_bound(weights, Z, tied), weights, Z)

    def _remainder(
        self, weights: Sequence[Fraction], form: Array, Z: Mapping[int, Exact]
    ) -> tuple[list[Fraction], list[Fraction]]:
        """Multipliers of ties, and what is left of ``c + sum_k F_k*(Z_k) - K'R'w`` by column."""
        left = self.question.remainder(self._data_pull(weights), Z)
        for i in np.flatnonzero(form):
            left[i] += decimal(form[i])
        return self.question.tie_multipliers(left)

    def _cancel(
        self, weights: list[Fraction], form: Array, Z: Mapping[int, Exact]
    ) -> list[Fraction]:
        """W with nothing left in columns that no multiplier of their own can take."""
        left = self._remainder(weights, form, Z)[1]
        places, exact, chosen = self._uncovered_columns
        if not any(left[j] for j in places):
            return weights
        matrix = [[exact[i][k] for i in chosen] for k in range(len(places))]
        change = solve_square(matrix, [-left[j] for j in places]) if chosen else None
        if change is None:
            return weights
        out = list(weights)
        for i, value in zip(chosen, change, strict=True):
            out[i] += value
        return out

    @cached_property
    def _uncovered_columns(self) -> tuple[list[int], list[list[Fraction]], list[int]]:
        """Columns that no multiplier of their own can take, what each w adds to them, and as many
        of w as there are columns, by which these can be changed; none where data do not allow it.
        """
        feasible, rows = self.question.feasible, len(self.rho)
        own = {j for b in feasible.blocks if b.role != "asked" for j in b.columns.tolist()}
        own |= {*self._signs, *self.limits}
        tied = {j for j in range(feasible.size) if j in self.question.elimination.solved}
        places = [j for j in range(feasible.size) if j not in own | tied]
        exact = []
        for i in range(rows if places else 0):
            one = [Fraction(int(i == k)) for k in range(rows)]
            column = self.question.tie_multipliers(
                self.question.remainder(self._data_pull(one), {})
            )[1]
            exact.append([column[j] for j in places])
        if not places or rows < len(places):
            return places, exact, []
        dense = np.array([[float(x) for x in row] for row in exact])
        _, factor, pivots = linalg.qr(dense.T, pivoting=True, mode="economic")
        sizes = np.abs(np.diagonal(factor))
        enough = bool(sizes[-1] > SEEN * sizes[0])
        return places, exact, [int(k) for k in pivots[: len(places)]] if enough else []

    def without_data(self, form: Array) -> Reach | None:
        """The bound 0 of all that exists, data or not; None where that does not hold.

        Each body's multiplier follows from the form's own entries.
        """
        left = [decimal(x) for x in form]
        Z: dict[int, Exact] = {}
        for place, block in enumerate(self.question.feasible.blocks):
            columns = block.columns.tolist()
            if block.role == "asked" or not any(left[j] for j in columns):
                continue
            if self.question.is_frame(block):
                return None
            zero = [[Fraction(0)] * block.size for _ in range(block.size)]
            Z[place] = add_remainder(block.basis, zero, [-left[j] for j in columns])
            if definiteness(Z[place]) == "indefinite":
                return None
            for j in columns:
                left[j] = Fraction(0)
        for j in (j for j, rest in enumerate(left) if rest):
            if left[j] > 0 or j not in self._signs:
                return None
            Z[self._signs[j]] = [[-left[j]]]
        return Reach(form, 0.0, [Fraction(0)] * len(self.rho), Z)

    def certificate(self, reach: Reach, beyond: Array | None) -> Certificate | None:
        """Proof for ``feasid verify``; None when it cannot be stated there.

        It says that what exists with so much does not fit: its squared residual is at least the
        budget. Or, without data, that nothing with so much exists.

        Parameters
        ----------
        reach : Reach
        beyond : ndarray, shape (n,), or None
            A model that exists and has more.
        """
        whole, columns = self.question.feasible, np.flatnonzero(reach.form)
        over = Linear("at the end of the range", columns, reach.form[columns], -reach.bound)
        asked = replace(whole, linear=(*whole.linear, over))
        Z = {**reach.multipliers, len(whole.constraints): [[Fraction(1)]]}
        robot, rows = self.question.robot, self.question.rows
        if not any(reach.weights):
            return Question(robot, asked, ExactRows(), ()).infeasibility([], Z)
        if beyond is None:
            return None
        entries = [[[int(i), text(decimal(r[i]))] for i in np.flatnonzero(r)] for r in self.R]
        data = {"rows": entries, "target": [text(decimal(x)) for x in self.rho], "rest": "0"}
        point, floor = [decimal(x) for x in beyond], decimal(self.budget)
        y = self._data_pull(reach.weights)
        return Question(robot, asked, rows, None).lower_bound(
            data, reach.weights, Z, floor, point, y, None
        )

    def _data_pull(self, weights: Sequence[Fraction]) -> list[Fraction]:
        """``R'w``."""
        rows, over = self._integers
        numerators, own = over_one(weights)
        return [Fraction(int(y), over * own) for y in numerators @ rows]

    @cached_property
    def _integers(self) -> tuple[Any, int]:
        """R as integers over one denominator, shape (rows, nb)."""
        flat, over = over_one([decimal(x) for x in self.R.ravel()])
        return flat.reshape(self.R.shape), over

    @cached_property
    def _signs(self) -> dict[int, int]:
        """Place of the sign of each joint term that has one."""
        feasible = self.question.feasible
        rows = enumerate(feasible.linear, len(feasible.blocks))
        return {int(c.columns[0]): k for k, c in rows if c.role == "sign"}

    def _upper_bound(
        self, weights: list[Fraction], Z: dict[int, Exact], tied: list[Fraction]
    ) -> float:
        total = self.question.constants(Z, tied)
        w, over = over_one(weights)
        rho, beside = over_one([decimal(b) for b in self.rho])
        total += Fraction(int(w @ rho), over * beside)
        total += _sqrt_above(decimal(self.budget) * Fraction(int(w @ w), over * over))
        return _round_up(total)


def _sqrt_above(square: Fraction) -> Fraction:
    """The root of a number, rounded up."""
    if not square:
        return Fraction(0)
    size = len(str(square.numerator)) - len(str(square.denominator))
    places = max(ROOT_DIGITS - size // 2, 1)
    scaled = -(-square.numerator * 100**places // square.denominator)
    return Fraction(isqrt(scaled) + 1, 10**places)


def _round_up(number: Fraction) -> float:
    """The next double whose decimal is not below."""
    out = float(number)
    while decimal(out) < number:
        out = float(np.nextafter(out, np.inf))
    return out
