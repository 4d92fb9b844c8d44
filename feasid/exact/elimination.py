"""Linear equations in rationals, solved exactly and as near as possible to a rounded solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Any

Unknown = tuple[Any, ...]
Equation = tuple[dict[Unknown, Fraction], Fraction]
"""Coefficients by unknown, and the right side."""


def solve_near(
    equations: Sequence[Equation],
    start: Mapping[Unknown, Fraction],
    size: Callable[[Unknown], float],
    rounding: float = 0.0,
) -> dict[Unknown, Fraction] | None:
    """Solve exactly, changing one unknown per equation.

    Parameters
    ----------
    equations : sequence of (coefficients, right side)
    start : mapping
        Rounded values of all unknowns.
    size : callable
        What one unit of an unknown is worth: the one whose change matters least is changed.
    rounding : float
        Share of an equation's coefficients below which those that the others leave of it are
        rounding: then it says what they say.

    Returns
    -------
    dict or None
        All unknowns; None when the equations contradict each other.
    """
    pivots: list[tuple[Unknown, dict[Unknown, Fraction], Fraction]] = []
    known: dict[Unknown, int] = {}
    for coefficients, right in equations:
        row, value = {u: c for u, c in coefficients.items() if c}, right
        least = rounding * max((abs(float(c)) / size(u) for u, c in row.items()), default=0.0)
        # A pivot's row holds only later pivots, so that taking the earliest first ends.
        while pending := [u for u in row if u in known]:
            row, value = _substitute(row, value, pivots[known[min(pending, key=known.__getitem__)]])
        if not row:
            if value:
                return None
            continue
        pivot = max(row, key=lambda u: abs(float(row[u])) / size(u))
        if abs(float(row[pivot])) / size(pivot) < least:
            continue
        factor = row.pop(pivot)
        known[pivot] = len(pivots)
        pivots.append((pivot, {u: -c / factor for u, c in row.items()}, value / factor))
    out = dict(start)
    for unknown, row, value in reversed(pivots):
        out[unknown] = value + sum((c * out[u] for u, c in row.items()), Fraction(0))
    return out


def _substitute(
    row: dict[Unknown, Fraction],
    value: Fraction,
    pivot: tuple[Unknown, dict[Unknown, Fraction], Fraction],
) -> tuple[dict[Unknown, Fraction], Fraction]:
    """The equation with one unknown replaced by its pivot row."""
    unknown, other, constant = pivot
    factor = row.get(unknown)
    if not factor:
        return row, value
    out = dict(row)
    del out[unknown]
    for u, c in other.items():
        new = out.get(u, Fraction(0)) + factor * c
        if new:
            out[u] = new
        else:
            out.pop(u, None)
    return out, value - factor * constant


def solve_square(
    matrix: Sequence[Sequence[Fraction]], right: Sequence[Fraction]
) -> list[Fraction] | None:
    """The solution of so many equations in as many unknowns; None where there is not one.

    In integers that stay minors of the matrix (Bareiss), so that digits grow by a row at a time.
    """
    size, rows = len(matrix), []
    for line, value in zip(matrix, right, strict=True):
        over = lcm(value.denominator, *(x.denominator for x in line))
        rows.append([int(x * over) for x in (*line, value)])
    last = 1
    for k in range(size):
        pivot = next((i for i in range(k, size) if rows[i][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        lead = rows[k][k]
        for i in (i for i in range(size) if i != k):
            factor = rows[i][k]
            rows[i] = [
                (lead * x - factor * y) // last for x, y in zip(rows[i], rows[k], strict=True)
            ]
        last = lead
    return [Fraction(row[-1], row[k]) for k, row in enumerate(rows)]


def independent_rows(
    rows: Sequence[Sequence[Fraction]],
) -> tuple[list[int], list[dict[int, Fraction]]]:
    """Places of independent rows, and for every other one a combination with it that is zero."""
    lead: list[int] = []
    relations: list[dict[int, Fraction]] = []
    pivots: list[tuple[int, list[Fraction], dict[int, Fraction]]] = []
    for k, given in enumerate(rows):
        row, combined = list(given), {k: Fraction(1)}
        for at, other, how in pivots:
            factor = row[at] / other[at]
            if factor:
                row = [x - factor * y for x, y in zip(row, other, strict=True)]
                for j, c in how.items():
                    combined[j] = combined.get(j, Fraction(0)) - factor * c
        if any(row):
            pivots.append((max(range(len(row)), key=lambda i: abs(row[i])), row, combined))
            lead.append(k)
        else:
            relations.append({j: c for j, c in combined.items() if c})
    return lead, relations
