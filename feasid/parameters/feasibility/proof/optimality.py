"""Bounds by the dual problem: on the residual, and on linear forms over models that fit.

For ``minimise |R K delta - rho|`` over the feasible set take any w and any Z_k >= 0 with
``K'R'w = sum_k C_k*(Z_k)``. Every feasible delta has

    |w| |R K delta - rho| >= w.(R K delta - rho) >= -w.rho - sum_k <C_k, Z_k>.

For a form c and ``c + sum_k C_k*(Z_k) = K'R'w`` every feasible delta with
``|R K delta - rho|^2 <= budget`` has

    c.delta <= sqrt(budget) |w| + w.rho + sum_k <C_k, Z_k>.

The primal is the one that the caller stated: without the ridge, the pull towards a reference and
the margin of our own. Points of its central path have multipliers strictly inside their cones, with
room for their rounding (`feasid.parameters.feasibility.proof.rounding`), and the remaining rounding
of K is covered by a limit on masses. Bounds that are far from active at the answer are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt

import numpy as np
from scipy import linalg

from feasid.core.arrays import Array
from feasid.core.errors import SolverError
from feasid.core.exact.numbers import dot, printed_decimal
from feasid.core.threads import one_thread
from feasid.parameters.feasibility import cone as cones
from feasid.parameters.feasibility.constraints.affine import Block, Linear
from feasid.parameters.feasibility.constraints.units import Units
from feasid.parameters.feasibility.proof import facial_reduction
from feasid.parameters.feasibility.proof.claim import Certificate
from feasid.parameters.feasibility.proof.question import (
    HEAVIEST,
    DualPoint,
    ExactData,
    ExactRows,
    Question,
)
from feasid.parameters.feasibility.proof.rounding import round_dual

RELATIVE_GAP = 1e-5
"""Gap, as a fraction of the cost, between the bound at the path's last centre and the optimum."""

BOUND_DIGITS = 15  #: Decimal digits of a bound.
ZERO_RESIDUAL = 1e-10
"""Error, as a fraction of the data's norm, that counts as zero; the bound is then zero."""

LIMIT_COST = Fraction(1, 10**7)  #: Share of a bound that a larger limit may cost.
TIGHT = 1e-2  #: Value of a bound's slack, in units, up to which it may be active.
UNSEEN = 1e-9  #: Singular value, relative to the largest, below which data do not show a direction.
INWARD = (1e-2, 1e-3)
"""Shares of the way from the answer to the reference at which the path starts, where inside."""

UNFELT = 1e-13  #: Singular value, relative to the largest, of directions that have no effect.
GOOD_FLOOR = 1.0 - 1e-4
"""Share of the squared residual from which no bound is sought further from the boundary."""

ROOT_DIGITS = 30  #: Digits of a square root that is rounded up.
SPANNED = 1e-9  #: Singular value, relative to the largest, of directions without a force on a body.


@dataclass(frozen=True, eq=False)
class Optimum:
    """A proved lower bound of the residual, in exact numbers."""

    question: Question
    data: ExactData
    floor: Fraction  #: No feasible model has a smaller ``|R K delta - rho|^2``.
    weights: list[Fraction]  #: w.
    dual: DualPoint  #: ``R'w`` and Z_k.
    limit: Mapping[str, str] | None  #: Largest sizes of models for which the bound is proved.
    delta: Array  #: Shape (n,): the answer.

    def certificate(self, residual: float = 0.0) -> Certificate | None:
        """The proof as a file, checked; None when the checker refuses it.

        `residual`: the residual of the log that R and rho do not contain: its square is added to
        the bound.
        """
        point, square = [printed_decimal(x) for x in self.delta], printed_decimal(residual**2)
        data, floor = replace(self.data, constant=square), self.floor + square
        return self.question.certify_lower_bound(
            data, self.weights, self.dual, floor, point, self.limit
        )


@one_thread()
def prove_optimum(
    question: Question, R: Array, rho: Array, delta: Array, reference: Array, scale: Units
) -> Optimum | None:
    """A lower bound for ``|R K delta - rho|^2``, proved.

    `question`: without values; its rows are K; `R` (rows, nb), `rho` (rows,); `delta` (n,): the
    answer, strictly feasible; `reference` (n,): a model in the middle of the feasible set. Returns:
    none when nothing was proved.
    """
    data = ExactData.from_doubles(R, rho)
    problem = CentralPath.from_question(question, *data.as_doubles, delta, reference, scale)
    points = list(problem.points())
    # Parameters of bodies that may be pushed in every direction.
    free = (place for place, Q in problem.matrices if Q.shape[0] == Q.shape[1])
    unrestricted = {int(j) for place in free for j in question.feasible.constraints[place].columns}
    if not points:
        return None
    least, best = 2 * problem.quadratic.value(points[-1][0]), None
    if least > ZERO_RESIDUAL**2 * float(problem.quadratic.b @ problem.quadratic.b):
        for x, mu in reversed(points):  # where rounding is in the way, further from the boundary
            try:
                w, multipliers = problem.multipliers(x, mu)
            except np.linalg.LinAlgError:  # singular but for rounding
                continue
            weights, dual = round_dual(
                question, data, w, multipliers, scale.blocks, whole=unrestricted
            )
            proved = _prove_lower_bound(data, weights, dual, delta)
            if best is not None and (proved is None or proved.floor <= best.floor):
                break
            best = proved
            if best is not None and best.floor >= GOOD_FLOOR * least:
                break
    if best is not None:
        return best
    nothing = DualPoint(question, [Fraction(0)] * len(question.rows), {})
    return Optimum(question, data, Fraction(0), [Fraction(0)] * len(rho), nothing, None, delta)


def _prove_lower_bound(
    data: ExactData, weights: list[Fraction], dual: DualPoint, delta: Array
) -> Optimum | None:
    """The bound that a dual point proves with the largest limit that it affords; None for none."""
    gain = -dual.offset - data.target_times(weights)
    square = dot(weights, weights)
    for heaviest in HEAVIEST:
        limit = dual.question.size_limits(heaviest) if any(dual.remainders) else None
        paid = dual.remainder_cost(limit) if limit else Fraction(0)
        least = gain - paid
        if least > 0 and (paid <= LIMIT_COST * gain or heaviest == HEAVIEST[-1]):
            bound = least * least / square
            # A decimal of `BOUND_DIGITS` digits that is not larger.
            digits = len(str(int(bound))) if bound >= 1 else int(np.log10(float(bound)))
            scale = 10 ** max(BOUND_DIGITS - digits, 0)
            floor = Fraction(bound * scale // 1, scale)
            return Optimum(dual.question, data, floor, weights, dual, limit, delta)
    return None


# -- the central path ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CentralPath:
    """``minimise |A x - b|^2 / (2 mu)`` plus the barrier, over the remaining unknowns."""

    quadratic: cones.Quadratic
    #: Barrier of the matrices, on faces and in units, and of the numbers, in units.
    cone: cones.LogBarrier
    start: Array  #: Shape (nz,): strictly inside.
    #: Tuple of (place, Q): by block of the cone: its place among the question's constraints, and
    #: the orthonormal span of its face over units, (s, r), by which multipliers are lifted.
    matrices: tuple[tuple[int, Array], ...]
    numbers: tuple[tuple[int, float], ...]  #: Tuple of (place, unit): by row of the cone.

    @classmethod
    def from_question(
        cls, question: Question, R: Array, rho: Array, delta: Array, reference: Array, scale: Units
    ) -> CentralPath:
        """For data (R, rho) and an answer delta, moved towards `reference` to start from."""
        elimination = question.elimination
        roots, tightened = elimination.roots, elimination.inside.with_margin(question.margin)
        unit, x, count = scale.parameters[roots], delta[roots], len(question.feasible.blocks)
        K = question.rows.as_doubles(len(delta))
        A, b = R @ (K @ elimination.T), rho - R @ (K @ elimination.fixed)
        places = question.free_constraints
        numbers = []
        for place, row in zip(places[len(tightened.blocks) :], tightened.linear, strict=True):
            size = float(scale.linear[place - count])
            value = row.constant + float(row.coefficients @ x[row.columns])
            if row.role == "sign" or value <= TIGHT * size:
                numbers.append((place, row, size))
        visible = len(A) >= A.shape[1] > 0 and np.linalg.cond(A * unit) * UNSEEN < 1
        matrices = _blocks_on_faces(question, x, scale, [row for _, row, _ in numbers], visible)
        blocks = []
        for _, block, Q in matrices:
            entries = np.concatenate([block.constant[None], block.basis])
            on_face = np.asarray(Q.T @ entries @ Q)
            size = np.abs(Q).T @ np.abs(entries) @ np.abs(Q)
            # What should be zero and is rounding would keep directions alive that nothing feels.
            least = facial_reduction.ROUNDED_ZERO * size.max(axis=(-2, -1), keepdims=True)
            on_face = np.where(np.abs(on_face) > least, on_face, 0.0)
            blocks.append(replace(block, basis=on_face[1:], constant=on_face[0]))
        linear = tuple(
            replace(row, coefficients=row.coefficients / size, constant=row.constant / size)
            for _, row, size in numbers
        )
        reduced = replace(tightened, blocks=tuple(blocks), linear=linear, convex=())
        # Unit directions (n, z) that change data, matrices or numbers. If they do not depend on
        # some combination, one parameter of it is fixed.
        size = float(np.linalg.norm(A * unit)) or 1.0
        parts = [A * unit / size, reduced.linear_matrix * unit]
        for block in reduced.blocks:
            part = np.zeros((block.size**2, len(unit)))
            part[:, block.columns] = block.basis.reshape(len(block.columns), -1).T
            parts.append(part * unit)
        _, singular, right = np.linalg.svd(np.linalg.qr(np.vstack(parts), mode="r"))
        unfelt = right[int((singular > UNFELT * singular.max(initial=0.0)).sum()) :]
        _, _, pivots = linalg.qr(unfelt, mode="economic", pivoting=True)
        directions = np.delete(np.diag(unit), pivots[: len(unfelt)], axis=1)
        points = (x + share * (reference[roots] - x) for share in INWARD)
        start = next((point for point in points if reduced.contains_strictly(point)), x)
        return cls(
            cones.Quadratic(A, b, directions),
            cones.LogBarrier.with_equal_weights(reduced, directions),
            start,
            tuple((place, Q) for place, _, Q in matrices),
            tuple((place, size) for place, _, size in numbers),
        )

    def points(self) -> Iterator[tuple[Array, float]]:
        """Central points and their mu, down to `RELATIVE_GAP`; ends where rounding does."""
        x, norm = self.start, float(np.linalg.norm(self.quadratic.b))
        least = (ZERO_RESIDUAL * norm) ** 2
        order = max(self.cone.barrier_parameter, 1)
        mu = max(2 * self.quadratic.value(x), least) / order
        while True:
            terms: list[tuple[float, cones.ConvexFunction]] = [(1 / mu, self.quadratic)]
            terms.append((1.0, self.cone))
            minimum = cones.minimise(terms, x, self.cone.directions, 0.5 * cones.CENTRED**2)
            if not minimum.settled:
                return
            x = minimum.delta
            yield x, mu
            if order * mu <= max(RELATIVE_GAP * 2 * self.quadratic.value(x), least):
                return
            mu /= cones.PATH_FACTOR

    def multipliers(self, x: Array, mu: float) -> tuple[Array, dict[int, Array]]:
        """Weights w, and multipliers Z by constraint, in SI.

        They are linear in the Newton step to the central point: only rounding makes them inexact.
        """
        (slope, curvature), (g, H) = self.quadratic.derivatives(x), self.cone.derivatives(x)
        move = self.cone.directions @ cones.newton_step(curvature / mu + H, -slope / mu - g)
        error = self.quadratic.A @ (x + move) - self.quadratic.b
        share = mu / float(np.linalg.norm(error))
        inner, prices = self.cone.multipliers(x, move)
        out = {
            place: share * (Q @ inner[k] @ Q.T)
            for k, (place, Q) in enumerate(self.matrices)
            if k in inner
        }
        for k, price in prices.items():
            place, size = self.numbers[k]
            out[place] = np.array([[share * price / size]])
        return error / float(np.linalg.norm(error)), out


def _blocks_on_faces(
    question: Question, x: Array, scale: Units, rows: Sequence[Linear], seen: bool
) -> list[tuple[int, Block, Array]]:
    """Bodies on the face of their cone that motions and active bounds reach, and active matrices of
    the caller.

    Else a mass that no data show would grow for ever along the path. A face is given by Q, which
    lifts a multiplier on it to one in SI.
    """
    reduced = question.elimination.inside.with_margin(question.margin)
    pairs = list(zip(question.free_constraints, reduced.blocks, strict=False))
    originals = [question.feasible.blocks[place] for place, _ in pairs]
    units = [scale.blocks[place] for place, _ in pairs]
    energy = facial_reduction.kinetic_energy_multipliers(question.robot, originals, units)
    tight = [
        block.role == "asked"
        and np.linalg.eigvalsh(block.matrix(x) / np.outer(unit, unit))[0] <= TIGHT
        for (_, block), unit in zip(pairs, units, strict=True)
    ]
    face_columns = {
        int(j) for (_, block), t in zip(pairs, tight, strict=True) if t for j in block.columns
    }
    bounds = np.zeros((len(rows), len(x)))
    for line, row in zip(bounds, rows, strict=True):
        line[row.columns] = row.coefficients if row.role == "asked" else 0.0
    out = []
    for (place, block), unit, E, close in zip(pairs, units, energy, tight, strict=True):
        if block.role == "asked" and not close:
            continue
        Q = np.eye(len(unit))
        free = seen or block.role == "asked" or not face_columns.isdisjoint(block.columns.tolist())
        face = None if free or not E.any() else facial_reduction.Face.from_energy(E, unit)
        if face is not None:
            pushes = [
                push * np.outer(unit, unit)
                for line in bounds[:, block.columns]
                if (push := facial_reduction.pull_matrix(block, line)).any()
            ]
            # A mass that is an equation by itself, as one that was weighed, pushes as a bound does.
            if {int(question.feasible.blocks[place].columns[-1])} in map(set, question.rows):
                pushes.append(np.diag(np.equal(block.powers, 0) * unit**2))
            span, singular, _ = np.linalg.svd(np.hstack([face.projector, *pushes]))
            Q = span[:, : int((singular > SPANNED * singular[0]).sum())]
        out.append((place, block, Q / unit[:, None]))
    return out


# -- ranges of linear forms ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RangeEnd:
    """A bound on a linear form that holds."""

    form: Array  #: Shape (n,).
    bound: float  #: No model has more.
    weights: list[Fraction]  #: w; all zero where no data are needed.
    dual: DualPoint


@dataclass(frozen=True, eq=False)
class RangeEndProver:
    """Data and constraints in exact numbers."""

    question: Question
    data: ExactData
    budget: float  #: Largest squared residual.
    units: Sequence[Array]  #: Of the blocks.
    #: Mapping of int to (int, int): for joint terms of either sign the places of two limits, which
    #: take what is left positive and negative in their column. Without them w is such that
    #: nothing is left there.
    limits: Mapping[int, tuple[int, int]]

    def prove(self, form: Array, w: Array, multipliers: Mapping[int, Array]) -> RangeEnd:
        """The bound that multipliers in doubles prove when they are made exact.

        `form` (n,); `w` (rows,); `multipliers`: of blocks and of linear constraints, (1, 1), by
        place. Raises SolverError: the multipliers prove nothing.
        """
        weights, dual = round_dual(
            self.question, self.data, w, multipliers, self.units, form=form, limits=self.limits
        )
        if any(dual.remainders):
            raise SolverError("the multipliers of a range are not those of a proof")
        total = dual.offset + self.data.target_times(weights)
        square = printed_decimal(self.budget) * dot(weights, weights)
        if square:  # its root, rounded up
            size = len(str(square.numerator)) - len(str(square.denominator))
            places = max(ROOT_DIGITS - size // 2, 1)
            scaled = -(-square.numerator * 100**places // square.denominator)
            total += Fraction(isqrt(scaled) + 1, 10**places)
        bound = float(total)
        while printed_decimal(bound) < total:
            bound = float(np.nextafter(bound, np.inf))
        return RangeEnd(form, bound, weights, dual)

    def certificate(self, end: RangeEnd, beyond: Array | None) -> Certificate | None:
        """Proof for ``feasid verify``; None when it cannot be stated there.

        It proves that feasible models with such a value do not fit: their squared residual is at
        least the budget. Without data it proves that no feasible model has such a value.

        `beyond` (n,): a model that exists and has more.
        """
        feasible, columns = self.question.feasible, np.flatnonzero(end.form)
        over = Linear("at the end of the range", columns, end.form[columns], -end.bound)
        extended = replace(feasible, linear=(*feasible.linear, over))
        Z = {**end.dual.Z, len(feasible.constraints): [[Fraction(1)]]}
        robot, rows = self.question.robot, self.question.rows
        if not any(end.weights):
            question = Question(robot, extended, ExactRows(), ())
            return question.certify_infeasible(DualPoint(question, [], Z))
        if beyond is None:
            return None
        question = Question(robot, extended, rows, None)
        point = [printed_decimal(x) for x in beyond]
        dual, floor = DualPoint(question, end.dual.y, Z), printed_decimal(self.budget)
        return question.certify_lower_bound(self.data, end.weights, dual, floor, point, None)
