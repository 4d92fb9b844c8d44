"""Linear equations in rationals, solved exactly and as near as possible to a rounded solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

Unknown = tuple[Any, ...]
Equation = tuple[dict[Unknown, Fraction], Fraction]
"""Coefficients by unknown, and the right side."""


def solve_near(
    equations: Sequence[Equation],
    start: Mapping[Unknown, Fraction],
    size: Callable[[Unknown], float],
) -> dict[Unknown, Fraction] | None:
    """Solve exactly, changing one unknown per equation.

    Parameters
    ----------
    equations : sequence of (coefficients, right side)
    start : mapping
        Rounded values of all unknowns.
    size : callable
        What one unit of an unknown is worth: the one whose change matters least is changed.

    Returns
    -------
    dict or None
        All unknowns; None when the equations contradict each other.
    """
    pivots: list[tuple[Unknown, dict[Unknown, Fraction], Fraction]] = []
    known: dict[Unknown, int] = {}
    for coefficients, right in equations:
        row, value = {u: c for u, c in coefficients.items() if c}, right
        # A pivot's row holds only later pivots, so that taking the earliest first ends.
        while pending := [u for u in row if u in known]:
            row, value = _substituted(
                row, value, pivots[known[min(pending, key=known.__getitem__)]]
            )
        if not row:
            if value:
                return None
            continue
        pivot = max(row, key=lambda u: abs(float(row[u])) / size(u))
        factor = row.pop(pivot)
        known[pivot] = len(pivots)
        pivots.append((pivot, {u: -c / factor for u, c in row.items()}, value / factor))
    out = dict(start)
    for unknown, row, value in reversed(pivots):
        out[unknown] = value + sum((c * out[u] for u, c in row.items()), Fraction(0))
    return out


def _substituted(
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
