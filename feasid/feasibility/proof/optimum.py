"""A rational proof that no feasible model fits, or lies, much better than the one that was found.

For ``minimise |R K delta - rho|`` over the feasible set take any w and any Z_k >= 0 with
``K'R'w = sum_k C_k*(Z_k)``. Every feasible delta has

    |w| |R K delta - rho| >= w.(R K delta - rho) >= -w.rho - sum_k <C_k, Z_k>.

The problem is the one that the caller stated: without the ridge, the pull towards a reference and
the margin of our own, which keep solvers and answers tame. Its multipliers come from its own
central path (`feasid.feasibility.proof.central`), refined in decimals until they cancel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from feasid.certificate import definiteness
from feasid.core.arrays import Array
from feasid.exact.integers import Integers, doubles, fixed, integral, over_one
from feasid.exact.numbers import decimal
from feasid.feasibility.constraints.units import Units
from feasid.feasibility.proof.cancelled import cancelled
from feasid.feasibility.proof.central import Centre
from feasid.feasibility.proof.claim import Certificate
from feasid.feasibility.proof.data import Data
from feasid.feasibility.proof.precise import DIGITS
from feasid.feasibility.proof.question import HEAVIEST, Exact, Question, cost
from feasid.feasibility.proof.stated import Stated

GAP = 1e-5
"""By what fraction of the cost the path's last centre proves less than the optimum."""

FEW_DIGITS = 24
"""Of multipliers where K has those of doubles only."""

BOUND_DIGITS = 15
"""Decimal digits of a bound."""

NOTHING = 1e-10
"""Error, as a fraction of the data's norm, that is none: then zero is the bound."""

MORE = 10**20
"""By how much finer than multipliers what they leave is counted."""

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
    path = stated.path
    centre = Centre.of(path, stated.start, GAP, NOTHING)
    if centre is None:
        return None
    if np.sqrt(2 * path.cost(centre.at.x)) > NOTHING * float(np.linalg.norm(path.b)):
        found = _refined(question, data, stated, centre)
        proved = _proved(question, data, delta, stated, found)
        if proved is not None:
            return proved
    nothing = [Fraction(0)] * len(question.rows)
    weights = [Fraction(0)] * len(rho)
    return Optimum(question, data, Fraction(0), weights, {}, nothing, None, delta)


@dataclass(frozen=True, eq=False)
class Dual:
    """w, W by matrix on its face, and z, as integers over ``10^digits``."""

    w: Integers
    W: tuple[Integers, ...]
    z: Integers
    digits: int


def _proved(
    question: Question, data: Data, delta: Array, stated: Stated, found: Dual
) -> Optimum | None:
    """What these multipliers prove with the largest limit that they afford; None for nothing."""
    if (
        any(definiteness(W.tolist()) == "indefinite" for W in found.W)
        or min(found.z, default=0) < 0
    ):
        return None
    over = 10**found.digits
    faced = zip(stated.matrices, found.W, strict=True)
    Z = {m.place: m.congruent(W, over) for m, W in faced}
    Z |= {
        number.place: [[Fraction(v, over)]]
        for number, v in zip(stated.numbers, found.z.tolist(), strict=True)
    }
    weights = [Fraction(x, over) for x in found.w.tolist()]
    if question.energies is None:  # K is rational, and what cancels can do so exactly
        weights, Z = cancelled(question, data, stated, weights, Z) or (weights, Z)
    y = data.combination(weights)
    tied, remains = question.tied(question.left(y, Z))
    w, over = over_one(weights)
    along = Fraction(int(w @ data.rho.astype(object)), over * 10 ** data.places[1])
    gain = -question.constants(Z, tied) - along
    square = Fraction(int(w @ w), over * over)
    for heaviest in HEAVIEST:
        limit = question.limit(heaviest) if any(remains) else None
        paid = cost(question.feasible.names, remains, limit) if limit else Fraction(0)
        least = gain - paid
        if least > 0 and (paid <= DEAR * gain or heaviest == HEAVIEST[-1]):
            floor = _rounded_down(least * least / square)
            return Optimum(question, data, floor, weights, Z, y, limit, delta)
    return None


def _refined(question: Question, data: Data, stated: Stated, centre: Centre) -> Dual:
    """w, W and z of the centre, moved by Newton steps until they cancel."""
    path, matrices, size = stated.path, stated.matrices, stated.size
    error = path.A @ centre.at.x - path.b
    share = 1 / float(np.linalg.norm(error))
    units = np.array([number.unit for number in stated.numbers])
    digits = DIGITS if question.energies is not None else FEW_DIGITS
    inside = centre.multipliers
    found = Dual(
        fixed(share * error, digits),
        tuple(
            fixed(m.inner(share * size * inside[k]) if m.V.size else m.Q, digits)
            for k, m in enumerate(matrices)
        ),
        fixed(share * size * centre.at.prices / units, digits),
        digits,
    )
    before = np.inf
    for _ in range(STEPS):
        left = _left(data, stated, found) * stated.unit / size
        worst = float(np.abs(left).max(initial=0.0))
        if not worst or worst * 2 > before or worst < 10.0 ** (-digits - 2):
            break
        before = worst
        w, inner, z = centre.cancelling(left)
        W = list(found.W)
        for k, part in inner.items():
            W[k] = W[k] + fixed(matrices[k].inner(size * part), digits)
        found = Dual(
            found.w + fixed(w, digits),
            tuple(W),
            found.z + fixed(size * z / units, digits),
            digits,
        )
    return replace(found, W=tuple((W + W.T) // 2 for W in found.W))


def _left(data: Data, stated: Stated, found: Dual) -> Array:
    """``K'R'w - sum_k <B_k, V_k W_k V_k'> - sum_i z_i a_i`` by unknown, rounded at the end."""
    over = stated.rows.integers[1] * 10 ** data.places[0]
    sums = stated.rows.combined(data.columns.sums(found.w.tolist()), len(stated.unit))
    out = np.zeros(len(sums), dtype=object)
    out[:] = [x * MORE // over for x in sums]
    for m, W in zip(stated.matrices, found.W, strict=True):
        form, beside = m.forms
        np.subtract.at(out, m.block.columns, form @ W.ravel() * MORE // beside)
    for number, price in zip(stated.numbers, found.z.tolist(), strict=True):
        row, beside = integral(number.row.coefficients)
        np.subtract.at(out, number.row.columns, row * price * MORE // beside)
    return doubles(out, MORE * 10**found.digits)


def _rounded_down(number: Fraction) -> Fraction:
    """A decimal of `BOUND_DIGITS` digits that is not larger."""
    if number <= 0:
        return Fraction(0)
    whole = len(str(int(number))) if number >= 1 else int(np.log10(float(number)))
    scale = 10 ** max(BOUND_DIGITS - whole, 0)
    return Fraction(number * scale // 1, scale)
