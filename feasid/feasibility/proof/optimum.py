"""A rational proof that no feasible model fits, or lies, much better than the one that was found.

For ``minimise |R K delta - rho|`` over the feasible set take any w and any Z_k >= 0 with
``K'R'w = sum_k C_k*(Z_k)``. Every feasible delta has

    |w| |R K delta - rho| >= w.(R K delta - rho) >= -w.rho - sum_k <C_k, Z_k>.

The problem is the one that the caller stated: without the ridge, the pull towards a reference and
the margin of our own, which keep solvers and answers tame. Its multipliers come from its own
central path (`feasid.feasibility.proof.central`), refined in decimals until they cancel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from feasid.arrays import Array
from feasid.certificate import definiteness
from feasid.exact.numbers import decimal
from feasid.feasibility.constraints.units import Units
from feasid.feasibility.proof.cancelled import cancelled
from feasid.feasibility.proof.central import Cancellation, Centre
from feasid.feasibility.proof.claim import Certificate
from feasid.feasibility.proof.data import Data
from feasid.feasibility.proof.energies import Precise, in_context, largest, precise
from feasid.feasibility.proof.precise import DIGITS, rounded
from feasid.feasibility.proof.question import HEAVIEST, Exact, Question, cost
from feasid.feasibility.proof.refined import congruent
from feasid.feasibility.proof.stated import Stated

GAP = 1e-5
"""By what fraction of the cost the path's last centre proves less than the optimum."""

FEW_DIGITS = 24
"""Of multipliers where K has those of doubles only."""

BOUND_DIGITS = 15
"""Decimal digits of a bound."""

NOTHING = 1e-20
"""Cost, as a fraction of the data's square, that is none: then zero is the bound."""

LONG = 60
"""Digits of weights in sums of integers."""

STEPS = 8
"""Of refinement at most."""

DEAR = Fraction(1, 10**7)
"""Share of a bound that a larger limit may cost."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """What is proved, in exact numbers.

    Attributes
    ----------
    question : Question
        With the digits of K that the proof takes.
    data : Data
    floor : Fraction
        No feasible model has a smaller ``|R K delta - rho|^2``.
    weights, y : list of Fraction
        w, and ``R'w``.
    Z : dict of int to exact matrices
        By place of the constraint.
    limit : mapping or None
        Sizes up to which it is proved.
    delta : ndarray, shape (n,)
        The answer.
    """

    question: Question
    data: Data
    floor: Fraction
    weights: list[Fraction]
    Z: dict[int, Exact]
    y: list[Fraction]
    limit: Mapping[str, str] | None
    delta: Array

    def certificate(self) -> Certificate | None:
        """The proof as a file, checked; None when the checker refuses it."""
        point = [decimal(x) for x in self.delta]
        return self.question.bound(
            self.data.told, self.weights, self.Z, self.floor, point, self.y, self.limit
        )


def optimum(
    question: Question, R: Array, rho: Array, delta: Array, aim: Array, scale: Units
) -> Optimum | None:
    """A lower bound for ``|R K delta - rho|^2``, proved.

    Parameters
    ----------
    question : Question
        Without values; its rows are K.
    R, rho : ndarray, shapes (rows, nb) and (rows,)
    delta : ndarray, shape (n,)
        The answer, strictly feasible.
    aim : ndarray, shape (n,)
        A model in the middle of what can exist.
    scale : Units

    Returns
    -------
    Optimum or None
        None when nothing was proved.
    """
    question = question.precise() or question
    data = Data.of(R, rho)
    R, rho = (
        x.astype(np.float64) / 10.0**p for x, p in zip((data.R, data.rho), data.places, strict=True)
    )
    stated = Stated.of(question, R, rho, delta, aim, scale)
    centre = stated.path.follow(stated.start, GAP, NOTHING)
    if centre is None:
        return None
    if stated.path.cost(centre.x) > 0.5 * NOTHING * float(stated.path.b @ stated.path.b):
        weights, W, prices = _refined(question, data, stated, centre)
        found = _proved(question, data, delta, stated, weights, W, prices)
        if found is not None:
            return found
    nothing = [Fraction(0)] * len(question.rows)
    weights = [Fraction(0)] * len(rho)
    return Optimum(question, data, Fraction(0), weights, {}, nothing, None, delta)


def _proved(
    question: Question,
    data: Data,
    delta: Array,
    stated: Stated,
    weights: list[Fraction],
    W: Sequence[Exact],
    prices: Sequence[Fraction],
) -> Optimum | None:
    """What these multipliers prove with the largest limit that they afford; None for nothing."""
    if any(definiteness(inner) == "indefinite" for inner in W) or min(prices, default=0) < 0:
        return None
    Z = {m.place: congruent(m.V, inner) for m, inner in zip(stated.matrices, W, strict=True)}
    Z |= {number.place: [[v]] for number, v in zip(stated.numbers, prices, strict=True)}
    if question.energies is None:  # K is rational, and what cancels can do so exactly
        weights, Z = cancelled(question, data, stated, weights, Z) or (weights, Z)
    y = data.combination(weights)
    tied, remains = question.tied(question.left(y, Z))
    target = Fraction(1, 10 ** data.places[1])
    gain = -question.constants(Z, tied) - target * sum(
        (w * int(t) for w, t in zip(weights, data.rho, strict=True)), Fraction(0)
    )
    square = sum((w * w for w in weights), Fraction(0))
    for heaviest in HEAVIEST:
        limit = question.limit(heaviest) if any(remains) else None
        paid = cost(question.feasible.names, remains, limit) if limit else Fraction(0)
        least = gain - paid
        if least > 0 and (paid <= DEAR * gain or heaviest == HEAVIEST[-1]):
            floor = _rounded_down(least * least / square)
            return Optimum(question, data, floor, weights, Z, y, limit, delta)
    return None


@in_context
def _refined(
    question: Question, data: Data, stated: Stated, centre: Centre
) -> tuple[list[Fraction], list[Exact], list[Fraction]]:
    """w, W and z of the centre in decimals, moved by Newton steps until they cancel."""
    path, matrices, size = stated.path, stated.matrices, stated.size
    error = path.A @ centre.x - path.b
    share = 1 / float(np.linalg.norm(error))
    units = np.array([number.unit for number in stated.numbers])
    w = precise(share * error)
    W = [
        precise(m.inner(share * size * centre.multiplier(k))) if m.V.size else m.V
        for k, m in enumerate(matrices)
    ]
    z = precise(share * size * centre.mu / centre.numbers / units)
    digits = DIGITS if question.energies is not None else FEW_DIGITS
    correction = Cancellation.of(path, centre)
    forms, before = [m.forms() for m in matrices], Decimal("Infinity")
    for _ in range(STEPS):
        left = _left(data, stated, forms, w, W, z)
        worst = largest(left)
        if not worst or worst * 2 > before or worst < Decimal(1).scaleb(-digits - 2):
            break
        before = worst
        change, inner, prices = correction.of_left((left / worst).astype(np.float64))
        w = w + precise(change) * worst
        for k, part in inner.items():
            W[k] = W[k] + precise(matrices[k].inner(size * part)) * worst
        z = z + precise(size * prices / units) * worst
    inner_ones = [_symmetric(inner, digits) for inner in W]
    return [rounded(v, digits) for v in w], inner_ones, [rounded(v, digits) for v in z]


def _left(
    data: Data,
    stated: Stated,
    forms: Sequence[Precise],
    w: Precise,
    W: Sequence[Precise],
    z: Precise,
) -> Precise:
    """``K'R'w - sum_k <B_k, V_k W_k V_k'> - sum_i z_i a_i`` by unknown, in the path's terms."""
    out = np.full(len(stated.unit), Decimal(0), dtype=object)
    numbers = np.array([int(x.scaleb(LONG)) for x in w], dtype=object)
    for y, row in zip(data.R.T @ numbers, stated.rows, strict=True):
        combined = Decimal(int(y)).scaleb(-LONG - data.places[0])
        for j, c in row.items():
            out[j] += combined * c
    for m, form, inner in zip(stated.matrices, forms, W, strict=True):
        out[m.block.columns] -= form @ inner.ravel()
    for number, price in zip(stated.numbers, z, strict=True):
        out[number.row.columns] -= precise(number.row.coefficients) * price
    return np.asarray(out * precise(stated.unit / stated.size))


def _symmetric(matrix: Precise, digits: int) -> Exact:
    size = range(len(matrix))
    return [[rounded((matrix[a, b] + matrix[b, a]) / 2, digits) for b in size] for a in size]


def _rounded_down(number: Fraction) -> Fraction:
    """A decimal of `BOUND_DIGITS` digits that is not larger."""
    if number <= 0:
        return Fraction(0)
    whole = len(str(int(number))) if number >= 1 else int(np.log10(float(number)))
    scale = 10 ** max(BOUND_DIGITS - whole, 0)
    return Fraction(number * scale // 1, scale)
