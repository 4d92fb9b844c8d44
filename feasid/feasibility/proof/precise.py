"""K to forty-five digits, where angles make it irrational.

Base parameters are ``delta[lead] + sum_j x_j delta[j]``: column j of every motion's energy is the
same combination of leading columns. From the coefficients in doubles, those of sixty digits follow
by iterative refinement; that they hold on motions which were not used to find them is checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from weakref import WeakKeyDictionary

import numpy as np

from feasid.core.arrays import Array
from feasid.exact.integers import Columns, Integers, doubles, fixed
from feasid.feasibility.proof.energies import Energies, Precise, in_context
from feasid.feasibility.proof.rows import ExactRows
from feasid.robot.description import Robot
from feasid.robot.known import Row

DIGITS = 45
"""Of coefficients, after the point."""

PLACES = 60
"""Decimals in which relations are reckoned."""

AGREES = Fraction(1, 10**46)
"""Largest error, relative to a column, of a relation that holds."""

LARGEST = 200
"""Parameters of a robot; with more the digits would take many seconds."""

ROUNDING = Fraction(1, 10**8)
"""Relative error that a coefficient in doubles may have."""

SPARE = 8
"""Motions beyond the coefficients of a relation, which only check it."""

STEPS = 6
"""Of refinement; each adds about twelve digits."""


_Found = tuple[Energies, ExactRows] | None
_known: WeakKeyDictionary[Robot, dict[int, tuple[ExactRows, _Found]]] = WeakKeyDictionary()


def precise_rows(robot: Robot, rows: ExactRows) -> _Found:
    """The energies of a robot, and the rows of K to `DIGITS` digits; remembered for the same rows.

    Parameters
    ----------
    robot : Robot
    rows : ExactRows
        K from doubles; every row must lead with a parameter that no other row has.

    Returns
    -------
    (Energies, rows) or None
        The rows themselves where they are exact. None when they are not those of this robot's
        base parameters, or it is no tree, or larger than `LARGEST`.
    """
    known = _known.setdefault(robot, {})
    if id(rows) not in known:  # the rows are kept, so that no others get their place
        known[id(rows)] = rows, _precise_rows(robot, rows)
    return known[id(rows)][1]


def _precise_rows(robot: Robot, rows: ExactRows) -> _Found:
    counts: dict[int, list[int]] = {}
    for i, row in enumerate(rows):
        for j in row:
            counts.setdefault(j, []).append(i)
    leads = [max((j for j in row if len(counts[j]) == 1), default=-1) for row in rows]
    leads = [
        next((j for j in row if len(counts[j]) == 1 and row[j] == 1), lead)
        for row, lead in zip(rows, leads, strict=True)
    ]
    if -1 in leads:
        return None
    most = max((len(c) for c in counts.values()), default=0)
    if robot.size > LARGEST:
        return None
    energies = Energies.of(robot, most + SPARE)
    if energies is None:
        return None
    found = _refined(energies, rows, leads, counts)
    if found is None:
        return None
    return energies, rows if found == rows else found


@in_context
def _refined(
    energies: Energies,
    rows: Sequence[Row],
    leads: Sequence[int],
    counts: Mapping[int, Sequence[int]],
) -> ExactRows | None:
    out = [dict(row) for row in rows]
    moves = (energies.rows != 0).any(axis=0)
    relations = EnergyRelations.of(energies.rows)
    for j in np.flatnonzero(moves).tolist():
        places = list(counts.get(j, ()))
        if j in leads and places:
            continue
        start = np.array([float(rows[i][j] / rows[i][leads[i]]) for i in places])
        x = relations.near([leads[i] for i in places], j, start)
        if x is None:
            return None
        for i, value in zip(places, x, strict=True):
            found = _short(value * rows[i][leads[i]])
            if abs(found - rows[i][j]) > ROUNDING * max(Fraction(1), abs(found)):
                return None
            if abs(found - rows[i][j]) > Fraction(1, 10 ** (DIGITS - 1)):
                out[i][j] = found
    # A coefficient of a parameter that stores no energy is exact, or no base parameter's.
    for i, row in enumerate(rows):
        if len({bool(moves[j]) for j in row}) > 1:
            return None
        if not moves[leads[i]] and any(len(counts[j]) > 1 for j in row):
            return None
    return ExactRows({j: c for j, c in row.items() if c} for row in out)


@dataclass(frozen=True, eq=False)
class EnergyRelations:
    """EnergyRelations between columns of energies, in integers.

    Attributes
    ----------
    whole : ndarray of int, shape (rows, n)
        Times ``10^PLACES``.
    lines : Columns
        Of its transpose.
    doubles : ndarray, shape (rows, n)
    """

    whole: Integers
    lines: Columns
    doubles: Array

    @classmethod
    def of(cls, rows: Precise) -> EnergyRelations:
        """Of rows in decimals."""
        whole = np.array([[int(x.scaleb(PLACES)) for x in row] for row in rows], dtype=object)
        return cls(whole, Columns(whole.T), rows.astype(np.float64))

    def near(self, leads: Sequence[int], j: int, start: Array) -> list[Fraction] | None:
        """The x near `start` for which columns `leads` times x are column j; None for none."""
        numbers, right = self.doubles[:, leads], self.whole[:, j]
        sizes = np.linalg.norm(numbers, axis=0)
        if not leads or not sizes.all():
            return None
        inverse = np.linalg.pinv(numbers / sizes) / sizes[:, None]
        lines, over = self.lines.some(leads), 10**PLACES
        right = right * over
        agrees = int(max(map(abs, right.tolist())) * AGREES)
        x = fixed(start, PLACES)
        for _ in range(STEPS):
            left = right - lines.sums(x.tolist())
            x = x + fixed(inverse @ doubles(left, over * over), PLACES)
            if max(map(abs, left.tolist())) <= agrees:
                return [Fraction(v, over) for v in x.tolist()]
        return None


def _short(number: Fraction) -> Fraction:
    """To `DIGITS` digits after the point."""
    return Fraction(round(number * 10**DIGITS), 10**DIGITS)


def rounded(number: Decimal, digits: int = DIGITS) -> Fraction:
    """To so many digits after the point, as a rational."""
    return Fraction(number.quantize(Decimal(1).scaleb(-digits)))


def to_decimal(number: Fraction) -> Decimal:
    """In the current context."""
    return Decimal(number.numerator) / number.denominator
