"""A rational proof that no feasible model fits, or lies, much better than the one that was found.

For ``minimise |R K delta - rho|`` over the feasible set take any w and any Z_k >= 0 with
``K'R'w = sum_k C_k*(Z_k)``. Every feasible delta has

    |w| |R K delta - rho| >= w.(R K delta - rho) >= -w.rho - sum_k <C_k, Z_k>.

This is the dual problem. The primal is the one that the caller stated: without the ridge, the pull
towards a reference and the margin of our own. A point of its central path has multipliers inside
the cone of matrices that motions reach; every body's own takes exactly what is left in its columns
(`feasid.feasibility.proof.rounding`), and what remains of the rounding of K is paid for with a
limit on masses. Bounds that are far from tight at the answer take no part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import linalg

from feasid.core.arrays import Array
from feasid.exact.numbers import decimal, over_one
from feasid.feasibility.constraints.affine import Block, Linear
from feasid.feasibility.constraints.sets import stack_by_shape
from feasid.feasibility.constraints.units import Units
from feasid.feasibility.program.squares import Iterate, Scaling, Squares
from feasid.feasibility.proof.claim import Certificate
from feasid.feasibility.proof.facial_reduction import (
    ROUNDED_ZERO,
    Face,
    kinetic_energy_multipliers,
    project_to_nullspace,
)
from feasid.feasibility.proof.question import HEAVIEST, Data, Exact, Question, cost
from feasid.feasibility.proof.rounding import (
    complete_multipliers,
    lift_to_semidefinite,
    round_matrix,
)
from feasid.robot.known import Row

RELATIVE_GAP = 1e-5
"""By what fraction of the cost the path's last centre proves less than the optimum."""

BOUND_DIGITS = 15
"""Decimal digits of a bound."""

ZERO_RESIDUAL = 1e-10
"""Error, as a fraction of the data's norm, that is none: then zero is the bound."""

LIMIT_COST = Fraction(1, 10**7)
"""Share of a bound that a larger limit may cost."""

TIGHT = 1e-2
"""Value of a bound, in units, up to which it may be in the way."""

UNSEEN = 1e-9
"""Singular value, relative to the largest, below which data do not show a direction."""

INWARD = 1e-3
"""How far the path starts from the answer, towards the middle."""

UNFELT_PIVOTS = (1e-6, 1e-10)
"""Shares of the largest pivot at which nothing is felt of a direction, in the order in which they
are tried. Along directions of smaller pivots the rounding of a gradient in doubles (1e-16) grows to
1e-6, more than the smallest multipliers of long logs; along larger ones something may remain."""

GOOD_FLOOR = 1.0 - 1e-4
"""Share of the squared residual from which a bound is not sought again with the next pivot."""

NEWTON_STEPS = 4
"""For stationarity, at most."""

SPANNED = 1e-9
"""Singular value, relative to the largest, of directions in which nothing pushes a body."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """What is proved, in exact numbers.

    Attributes
    ----------
    question : Question
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

    def certificate(self, residual: float = 0.0) -> Certificate | None:
        """The proof as a file, checked; None when the checker refuses it.

        Parameters
        ----------
        residual : float
            What is left of the log beside R and rho: its square is added to the bound.
        """
        point, rest = [decimal(x) for x in self.delta], decimal(residual**2)
        data, floor = replace(self.data, rest=rest).entries, self.floor + rest
        return self.question.lower_bound(
            data, self.weights, self.Z, floor, point, self.y, self.limit
        )


def optimum(
    question: Question, R: Array, rho: Array, delta: Array, reference: Array, scale: Units
) -> Optimum | None:
    """A lower bound for ``|R K delta - rho|^2``, proved.

    Parameters
    ----------
    question : Question
        Without values; its rows are K.
    R, rho : ndarray, shapes (rows, nb) and (rows,)
    delta : ndarray, shape (n,)
        The answer, strictly feasible.
    reference : ndarray, shape (n,)
        A model in the middle of what can exist.
    scale : Units

    Returns
    -------
    Optimum or None
        None when nothing was proved.
    """
    data = Data.from_doubles(R, rho)
    problem = CentralPath.from_question(question, *data.doubles, delta, reference, scale)
    centre, _, solved = problem.path.solve(problem.start, 0.5 * RELATIVE_GAP, ZERO_RESIDUAL)
    if not solved:
        return None
    if np.sqrt(2 * problem.path.cost(centre.x)) > ZERO_RESIDUAL * np.linalg.norm(problem.path.b):
        whole = problem.whole(question)
        enough = GOOD_FLOOR * 2 * problem.path.cost(centre.x) * problem.size**2
        proofs = []
        for pivot in UNFELT_PIVOTS:
            found = problem.multipliers(centre, pivot)
            proved = found and _prove_lower_bound(question, data, delta, *found, whole, scale)
            if proved:
                proofs.append(proved)
                if proved.floor >= enough:
                    break
        if proofs:
            return max(proofs, key=lambda proof: proof.floor)
    nothing = [Fraction(0)] * len(question.rows)
    weights = [Fraction(0)] * len(rho)
    return Optimum(question, data, Fraction(0), weights, {}, nothing, None, delta)


def _prove_lower_bound(
    question: Question,
    data: Data,
    delta: Array,
    w: Array,
    multipliers: Mapping[int, Array],
    whole: set[int],
    scale: Units,
) -> Optimum | None:
    """What these multipliers prove with the largest limit that they afford; None for nothing."""
    weights, units = [decimal(x) for x in w], scale.blocks
    touched = _constrained_parameters(question, multipliers)
    rows = _stationarity_rows(question, touched | whole)
    weights = project_to_nullspace([data.multiply(row) for row in rows], weights)
    y = data.combination(weights)
    faces = {
        place: face
        for place, block in enumerate(question.feasible.blocks)
        if (face := question.relations.faces.get(frozenset(block.columns.tolist()))) is not None
        and place in multipliers
        and block.kind == "semi"
        and whole.isdisjoint(block.columns.tolist())
        and touched.isdisjoint(block.columns.tolist())
    }
    Z = {
        place: lift_to_semidefinite(round_matrix(M), units[place])
        if place < len(units)
        else round_matrix(M)
        for place, M in multipliers.items()
    }
    Z |= {place: face.nearest(multipliers[place]) for place, face in faces.items()}
    Z, _ = complete_multipliers(
        question.feasible, Z, question.tie_multipliers(question.remainder(y, Z))[1], units, faces
    )
    tied, left = question.tie_multipliers(question.remainder(y, Z))
    integers, over = over_one(weights)
    along = Fraction(int(integers @ data.rho.astype(object)), over) / Fraction(10) ** data.places[1]
    gain = -question.constants(Z, tied) - along
    square = Fraction(int(integers @ integers), over * over)
    for heaviest in HEAVIEST:
        limit = question.size_limits(heaviest) if any(left) else None
        paid = cost(question.feasible.names, left, limit) if limit else Fraction(0)
        least = gain - paid
        if least > 0 and (paid <= LIMIT_COST * gain or heaviest == HEAVIEST[-1]):
            floor = _rounded_down(least * least / square)
            return Optimum(question, data, floor, weights, Z, y, limit, delta)
    return None


def _constrained_parameters(question: Question, multipliers: Mapping[int, Array]) -> set[int]:
    """Parameters that ties and further constraints pull at, too."""
    constraints, solved = question.feasible.constraints, question.elimination.solved
    out = {j for i, (row, _) in solved.items() for j in (i, *row)}
    for place in multipliers:
        if constraints[place].role == "asked":
            out |= {*constraints[place].columns.tolist()}
    return out


def _stationarity_rows(question: Question, touched: set[int]) -> list[Row]:
    """What data ask of bodies that no motion shows, and of parameters that nothing holds."""
    constraints = question.feasible.constraints
    owned = {int(j) for c in constraints if c.role != "asked" for j in c.columns} | touched
    free = [j for j in range(question.feasible.size) if j not in owned]
    return question.relations.stationarity_rows(question.rows, touched, free)


def _rounded_down(number: Fraction) -> Fraction:
    """A decimal of `BOUND_DIGITS` digits that is not larger."""
    if number <= 0:
        return Fraction(0)
    whole = len(str(int(number))) if number >= 1 else int(np.log10(float(number)))
    scale = 10 ** max(BOUND_DIGITS - whole, 0)
    return Fraction(number * scale // 1, scale)


# -- the problem on faces, in units ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ReducedMatrix:
    """A matrix constraint on a face of its cone: ``Q' C(x) Q`` must be positive definite.

    Attributes
    ----------
    place : int
        Among the question's constraints.
    block : Block
        On the unknowns.
    unit : ndarray, shape (s,)
    Q : ndarray, shape (s, r)
        Orthonormal in units.
    """

    place: int
    block: Block
    unit: Array
    Q: Array

    def reduce(self, matrices: Array) -> Array:
        """Matrices of the block in units and on the face, without the rounding of zeros."""
        whole = matrices / np.outer(self.unit, self.unit)
        reduced = np.asarray(self.Q.T @ whole @ self.Q)
        least = ROUNDED_ZERO * np.abs(whole).max(axis=(-2, -1), keepdims=True)
        return np.where(np.abs(reduced) > least, reduced, 0.0)

    def multiplier(self, W: Array) -> Array:
        """``Q W Q'`` in SI."""
        return np.asarray(self.Q @ W @ self.Q.T / np.outer(self.unit, self.unit))


@dataclass(frozen=True, eq=False)
class CentralPath:
    """The primal and dual problem over what remains of the question.

    Attributes
    ----------
    path : Squares
        In units and divided by `size`.
    start : ndarray, shape (nz,)
        Near the answer.
    size : float
    matrices : tuple of ReducedMatrix
    numbers : tuple of (place, row over the unknowns, unit)
    """

    path: Squares
    start: Array
    size: float
    matrices: tuple[ReducedMatrix, ...]
    numbers: tuple[tuple[int, Linear, float], ...]

    @classmethod
    def from_question(
        cls, question: Question, R: Array, rho: Array, delta: Array, reference: Array, scale: Units
    ) -> CentralPath:
        """For data (R, rho) and an answer delta, moved towards `reference` to start from."""
        elimination = question.elimination
        unit, x = scale.parameters[elimination.roots], delta[elimination.roots]
        K = question.rows.doubles(len(delta))
        A, b = R @ (K @ elimination.T) * unit, rho - R @ (K @ elimination.fixed)
        size = float(np.linalg.norm(A)) or 1.0
        seen = len(A) >= A.shape[1] > 0 and np.linalg.cond(A) * UNSEEN < 1
        numbers = _numbers(question, x, scale)
        matrices = _matrices(question, x, scale, [row for _, row, _ in numbers], seen)
        path = _path(A / size, b / size, unit, matrices, numbers)
        x = x / unit
        start = x + INWARD * (reference[elimination.roots] / unit - x)
        return cls(path, start, size, matrices, numbers)

    def whole(self, question: Question) -> set[int]:
        """Parameters of bodies that may be pushed in every direction."""
        constraints = question.feasible.constraints
        free = (m.place for m in self.matrices if m.Q.shape[0] == m.Q.shape[1])
        return {int(j) for place in free for j in constraints[place].columns}

    def multipliers(self, centre: Iterate, pivot: float) -> tuple[Array, dict[int, Array]] | None:
        """Weights w of norm 1, and Z by place in SI: stationary but for the rounding of doubles.

        None where the point is at the boundary.
        """
        path = self.path
        error = path.A @ centre.x - path.b
        share = 1 / float(np.linalg.norm(error))
        w, prices = share * error, share * centre.prices
        inner = {
            k: share * W
            for group, some in zip(path.groups, centre.multipliers, strict=True)
            for k, W in zip(group.members, some, strict=True)
        }
        try:
            stationarity = Stationarity(
                Scaling.from_iterate(path, centre, path.residuals(centre)), pivot
            )
        except linalg.LinAlgError:
            return None
        worst = np.inf
        for _ in range(NEWTON_STEPS):
            left = path.A.T @ w - path.G.T @ prices
            for group in path.groups:
                each = zip(group.members, group.columns, group.basis, strict=True)
                for k, columns, basis in each:
                    np.subtract.at(left, columns, np.einsum("cij,ij->c", basis, inner[k]))
            now = float(np.abs(left).max(initial=0.0))
            if not now or 2 * now > worst:
                break
            worst = now
            more, blocks, rise = stationarity.cancelling(left)
            w, prices = w + more, prices + rise
            inner = {k: W + blocks[k] for k, W in inner.items()}
        out = {
            m.place: self.size * m.multiplier(inner[k])
            for k, m in enumerate(self.matrices)
            if k in inner
        }
        for (place, _, unit), price in zip(self.numbers, prices, strict=True):
            out[place] = np.array([[self.size * price / unit]])
        return w, out


def _numbers(question: Question, x: Array, scale: Units) -> tuple[tuple[int, Linear, float], ...]:
    """The signs, and the bounds that are tight."""
    inside, count = (
        question.elimination.inside.with_margin(question.margin),
        len(question.feasible.blocks),
    )
    out = []
    for place, row in zip(
        _remaining_constraints(question)[len(inside.blocks) :], inside.linear, strict=True
    ):
        unit = float(scale.linear[place - count])
        value = row.constant + float(row.coefficients @ x[row.columns])
        if row.role == "sign" or value <= TIGHT * unit:
            out.append((place, row, unit))
    return tuple(out)


def _matrices(
    question: Question, x: Array, scale: Units, rows: Sequence[Linear], seen: bool
) -> tuple[ReducedMatrix, ...]:
    """Bodies on what motions and tight bounds reach of their cone, and tight asked matrices.

    Else a mass that no data show would grow for ever along the path.
    """
    inside, whole = (
        question.elimination.inside.with_margin(question.margin),
        question.feasible.constraints,
    )
    pairs = list(zip(_remaining_constraints(question), inside.blocks, strict=False))
    originals = [block for place, _ in pairs if isinstance(block := whole[place], Block)]
    units = [scale.blocks[place] for place, _ in pairs]
    energy = kinetic_energy_multipliers(question.robot, originals, units)
    tight = [
        block
        for (_, block), unit in zip(pairs, units, strict=True)
        if block.role == "asked" and _least(block, x, unit) <= TIGHT
    ]
    touched = {int(j) for block in tight for j in block.columns}
    asked = [row for row in rows if row.role == "asked"]
    out = []
    for (place, block), unit, E in zip(pairs, units, energy, strict=True):
        if block.role == "asked" and not any(block is other for other in tight):
            continue
        Q = np.eye(len(unit))
        free = seen or block.role == "asked" or not touched.isdisjoint(block.columns.tolist())
        face = None if free or not E.any() else Face.from_energy(E, unit)
        if face is not None:
            pushes = [
                push * np.outer(unit, unit) for row in asked if (push := _push(block, row)).any()
            ]
            left, singular, _ = np.linalg.svd(np.hstack([face.projector, *pushes]))
            Q = left[:, : int((singular > SPANNED * singular[0]).sum())]
        out.append(ReducedMatrix(place, block, unit, Q))
    return tuple(out)


def _push(block: Block, row: Linear) -> Array:
    """The matrix by which a bound pushes a body; zero where it does not touch it."""
    weights = np.zeros(len(block.columns))
    for j, c in zip(row.columns.tolist(), row.coefficients, strict=True):
        weights[block.columns == j] = c
    gram = np.einsum("aij,bij->ab", block.basis, block.basis)
    return np.asarray(np.einsum("a,aij->ij", np.linalg.solve(gram, weights), block.basis))


def _path(
    A: Array,
    b: Array,
    unit: Array,
    matrices: Sequence[ReducedMatrix],
    numbers: Sequence[tuple[int, Linear, float]],
) -> Squares:
    bases = [m.reduce(m.block.basis * unit[m.block.columns][:, None, None]) for m in matrices]
    constants = [m.reduce(m.block.constant) for m in matrices]
    groups = stack_by_shape([m.block.columns for m in matrices], bases, constants)
    G, h = np.zeros((len(numbers), len(unit))), np.zeros(len(numbers))
    for i, (_, row, size) in enumerate(numbers):
        np.add.at(G[i], row.columns, row.coefficients * unit[row.columns] / size)
        h[i] = row.constant / size
    return Squares(A, b, groups, G, h)


def _least(block: Block, x: Array, unit: Array) -> float:
    """Smallest eigenvalue in units."""
    return float(np.linalg.eigvalsh(block.matrix(x) / np.outer(unit, unit))[0])


def _remaining_constraints(question: Question) -> list[int]:
    """Which of the question's constraints touch what remains of it."""
    T = question.elimination.T
    return [k for k, c in enumerate(question.feasible.constraints) if T[c.columns].any()]


@dataclass(frozen=True, eq=False)
class Stationarity:
    """Changes of a point's multipliers that make the gradient of the Lagrangian vanish.

    Attributes
    ----------
    scaling : Scaling
        Of the point.
    least_pivot : float
        Share of the largest pivot at which nothing is felt of a direction.
    """

    scaling: Scaling
    least_pivot: float

    @cached_property
    def _factors(self) -> tuple[Array, Array, npt.NDArray[np.intp], Array]:
        """Q, R, pivots and scale of the normal equations' square root, of what is felt.

        Its condition is the root of theirs.
        """
        scaling, path = self.scaling, self.scaling.problem
        parts = [path.A, path.G * scaling.weights[:, None]]
        for group, white in zip(path.groups, scaling.bases, strict=True):
            rows, columns, double = _triangle(group.constant.shape[1])
            size = group.constant.shape[1]
            half = white[:, :, rows * size + columns] * double
            part = np.zeros((len(half), len(rows), len(path.A[0])))
            for where, some, own in zip(group.columns, half, part, strict=True):
                own[:, where] = some.T
            parts.append(part.reshape(-1, part.shape[2]))
        stacked = np.vstack(parts)
        scale = np.asarray(1 / np.maximum(np.linalg.norm(stacked, axis=0), 1e-300))
        stacked *= scale
        Q, R, pivots = linalg.qr(
            stacked, mode="economic", pivoting=True, overwrite_a=True, check_finite=False
        )
        diagonal = np.abs(np.diagonal(R))
        rank = int((diagonal > self.least_pivot * diagonal.max(initial=0.0)).sum())
        return (
            np.asarray(Q[:, :rank]),
            np.asarray(R[:rank, :rank]),
            np.asarray(pivots[:rank], dtype=np.intp),
            scale,
        )

    def cancelling(self, left: Array) -> tuple[Array, dict[int, Array], Array]:
        """The smallest changes of w, W and z, relative to themselves, that take away ``left``."""
        Q, R, pivots, scale = self._factors
        right = (left * scale)[pivots]
        u = Q @ linalg.solve_triangular(R, right, trans="T", check_finite=False)
        scaling, path = self.scaling, self.scaling.problem
        at = len(path.b) + len(path.h)
        blocks: dict[int, Array] = {}
        for group, inward in zip(path.groups, scaling.inward, strict=True):
            rows, columns, double = _triangle(inward.shape[1])
            own = u[at : at + len(inward) * len(rows)].reshape(len(inward), -1) / double
            inner = np.zeros_like(inward)
            inner[:, rows, columns] = inner[:, columns, rows] = own
            changes = inward.transpose(0, 2, 1) @ inner @ inward
            blocks.update(zip(group.members, changes, strict=True))
            at += own.size
        z = scaling.weights * u[len(path.b) : len(path.b) + len(path.h)]
        return -u[: len(path.b)], blocks, z


def _triangle(size: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Array]:
    """Rows and columns of the upper triangle, and by how much its entries count."""
    rows, columns = np.triu_indices(size)
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))
