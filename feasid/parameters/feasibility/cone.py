"""The cone of feasible parameters: log-determinants, and one Newton method for all interior points.

The divergence of a model delta from a reference delta0 is, up to a constant,

    sum_k [ tr(C_k(delta0)^-1 C_k(delta)) - log det C_k(delta) ]

over the inertia blocks C_k, the log-det Bregman divergence (Lee, Wensing and Park 2020), with the
same terms at a small weight for every other constraint. It is strictly convex, does not depend on
units or body frames, and rises to infinity at the boundary, so that minimisers are strictly
feasible. Without the traces it is the logarithmic barrier.

`minimise` follows Newton's method over a weighted sum of such terms and of quadratics: for the
entropic estimate, the choice of a full model, answers of public programs, ends of ranges and bounds
on the residual. The latter two need multipliers: on the central path these are inverses of the
matrices, strictly inside their cones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import lstsq
from scipy.linalg.lapack import dposv

from feasid.core.arrays import Array
from feasid.parameters.feasibility.constraints.sets import BlockGroup, FeasibleSet

OTHER_WEIGHT = 1e-2
"""Weight of constraints other than inertia blocks: large enough to stay inside, small enough not to
move the minimum."""

MAX_NEWTON_STEPS = 200
"""Newton steps after which a minimisation counts as not converged; usual ones take 10 to 40."""

SUFFICIENT_DECREASE = 0.1
"""Least share of the decrease predicted by the slope with which a step is accepted."""

SHORTEST_STEP = 1e-12  #: Share of a Newton step below which nothing is gained beyond rounding.
DECREMENT = 1e-9
"""Newton decrement, squared and halved, at which the divergence is as good as minimal."""

CENTRED = 0.05
"""Newton decrement at which a point counts as central: half its square is lost at most."""

ROUNDED = 1e-12
"""Share of the sum below which a decrement that a step does not halve is rounding: close to a
minimum each exact step squares it."""

PATH_FACTOR = 8.0
"""Factor between one mu of the central path and the next: fewer, longer steps need more Newton
steps."""

FIXED = 1e-12  #: Share of a row's size below which it does not change along the directions.


class ConvexFunction(Protocol):
    """A convex function of all parameters, differentiated along the directions z of a problem."""

    @property
    def concordance(self) -> float:
        """The largest c for which the function over c is self-concordant; 0 if there is none."""
        ...

    def value(self, delta: Array) -> float:
        """Value at `delta`, shape (n,); infinite outside its domain."""
        ...

    def derivatives(self, delta: Array) -> tuple[Array, Array]:
        """Gradient (z,) and Hessian (z, z) along the directions."""
        ...


@dataclass(frozen=True, eq=False)
class Quadratic:
    """``|A delta - b|^2 / 2`` along directions (n, z)."""

    A: Array
    b: Array
    directions: Array
    concordance: ClassVar[float] = np.inf

    @cached_property
    def rows_along_directions(self) -> Array:
        """A along the directions, shape (rows, z)."""
        return np.asarray(self.A @ self.directions)

    @cached_property
    def hessian(self) -> Array:
        """Its Hessian, shape (z, z)."""
        return np.asarray(self.rows_along_directions.T @ self.rows_along_directions)

    def value(self, delta: Array) -> float:
        """See `ConvexFunction`."""
        error = self.A @ delta - self.b
        return 0.5 * float(error @ error)

    def derivatives(self, delta: Array) -> tuple[Array, Array]:
        """See `ConvexFunction`."""
        return self.rows_along_directions.T @ (self.A @ delta - self.b), self.hessian


@dataclass(frozen=True, eq=False)
class BallBarrier:
    """``-log(radius^2 - |A delta - b|^2)``."""

    quadratic: Quadratic
    radius: float
    concordance: ClassVar[float] = 1.0

    def value(self, delta: Array) -> float:
        """See `ConvexFunction`."""
        slack = self.slack(delta)
        return -float(np.log(slack)) if slack > 0 else np.inf

    def slack(self, delta: Array) -> float:
        """``radius^2 - |A delta - b|^2``."""
        return self.radius**2 - 2.0 * self.quadratic.value(delta)

    def derivatives(self, delta: Array) -> tuple[Array, Array]:
        """See `ConvexFunction`."""
        slack = self.slack(delta)
        slope, curvature = self.quadratic.derivatives(delta)
        gradient = slope * (2.0 / slack)
        return gradient, curvature * (2.0 / slack) + np.outer(gradient, gradient)

    def multipliers(self, delta: Array, move: Array) -> Array:
        """Multipliers of the equations, linear in a move, shape (rows,)."""
        A, slack = self.quadratic.A, self.slack(delta)
        error, change = A @ delta - self.quadratic.b, A @ move
        along = 4.0 * float(error @ change) / slack**2
        return np.asarray(2.0 / slack * (error + change) + along * error)


@dataclass(frozen=True, eq=False)
class LogDeterminants:
    """Weighted ``-log det C`` of matrices C of one shape, along directions z."""

    group: BlockGroup
    #: Shape (g, k, s s): how they change along the k directions that move any, times the root of
    #: the weight.
    changes: Array
    places: npt.NDArray[np.intp]  #: Shape (g, k): which directions these are.
    entries: npt.NDArray[np.intp]  #: Shape (g k k,): of pairs of them in a flat (z, z).
    weights: Array  #: Shape (g,).

    def value(self, delta: Array) -> float:
        """Infinite where a matrix is not positive definite."""
        try:
            factors = np.linalg.cholesky(self.group.matrices(delta))
        except np.linalg.LinAlgError:
            return np.inf
        return -2.0 * float(self.weights @ np.log(factors.diagonal(axis1=1, axis2=2)).sum(axis=1))

    def add_derivatives(self, delta: Array, gradient: Array, hessian: Array) -> None:
        """Add its gradient, (z,), and its Hessian, (z, z)."""
        # With C = F F', <C^-1 B_i, C^-1 B_j> is a Gram matrix of F^-1 B_i F^-T: no squaring.
        inverse = np.linalg.inv(np.linalg.cholesky(self.group.matrices(delta)))
        blocks, size = inverse.shape[:2]
        # vec(X B X') = (X kron X) vec(B): one product per block
        twice = inverse[:, :, None, :, None] * inverse[:, None, :, None, :]
        flat = self.changes @ twice.reshape(blocks, size * size, -1).transpose(0, 2, 1)
        traces = flat[..., :: size + 1].sum(axis=2)
        np.subtract.at(gradient, self.places, np.sqrt(self.weights)[:, None] * traces)
        if flat.shape[1] == len(hessian):
            every = flat.transpose(1, 0, 2).reshape(len(hessian), -1)
            hessian += every @ every.T
        else:
            products = flat @ flat.transpose(0, 2, 1)
            np.add.at(hessian.reshape(-1), self.entries, products.ravel())

    def multipliers(self, delta: Array, move: Array) -> list[tuple[int, Array]]:
        """``C^-1 - C^-1 dC C^-1`` by place of the block: the inverse, linear in a move."""
        inverse = np.linalg.inv(self.group.matrices(delta))
        linear = inverse - inverse @ self.group.matrix_changes(move) @ inverse
        linear = 0.5 * (linear + linear.transpose(0, 2, 1))
        return list(zip(self.group.members, linear, strict=True))


@dataclass(frozen=True, eq=False)
class LogBarrier:
    """Logarithms of a feasible set's constraints along ``delta + directions z``."""

    directions: Array  #: Shape (n, z).
    blocks: tuple[LogDeterminants, ...]
    #: Shape (m,): which of the linear constraints vary along the directions; the others are left
    #: out.
    places: npt.NDArray[np.intp]
    rows: Array  #: Shape (m, n): those constraints.
    constants: Array  #: Shape (m,): see `rows`.
    row_weight: float
    slope: Array  #: Shape (n,): of the linear part of the divergence.

    @classmethod
    def for_divergence(
        cls, feasible: FeasibleSet, reference: Array, directions: Array
    ) -> LogBarrier:
        """Divergence from a model, (n,); other constraints have the weight `OTHER_WEIGHT`."""
        return cls._from_groups(feasible, directions, reference, OTHER_WEIGHT)

    @classmethod
    def with_equal_weights(cls, feasible: FeasibleSet, directions: Array) -> LogBarrier:
        """Minus the sum of all logarithms, one weight for all."""
        return cls._from_groups(feasible, directions, None, 1.0)

    @classmethod
    def _from_groups(
        cls, feasible: FeasibleSet, directions: Array, reference: Array | None, other: float
    ) -> LogBarrier:
        blocks, slope, count = [], np.zeros(len(directions)), directions.shape[1]
        for group in feasible.groups:
            weights = np.where([feasible.blocks[k].inertial for k in group.members], 1.0, other)
            flat = group.basis.reshape(*group.columns.shape, -1)
            matrices = () if reference is None else group.matrices(reference)
            for k, matrix in enumerate(matrices):
                if np.linalg.eigvalsh(matrix)[0] > 0:  # none of matrices that are not definite
                    slope[group.columns[k]] += weights[k] * flat[k] @ np.linalg.inv(matrix).ravel()
            moves = directions[group.columns]
            moving = moves.any(axis=1)
            most = int(moving.sum(axis=1).max(initial=0))
            places = np.argsort(~moving, axis=1, kind="stable")[:, :most]
            if most == count:
                places = np.broadcast_to(np.arange(count), places.shape)
            some = np.take_along_axis(moves, places[:, None], axis=2)
            changes = np.sqrt(weights)[:, None, None] * (some.transpose(0, 2, 1) @ flat)
            entries = (places[:, :, None] * count + places[:, None]).ravel()
            blocks.append(LogDeterminants(group, changes, places, entries, weights))
        rows = feasible.linear_matrix @ directions
        size = np.abs(feasible.linear_matrix) @ np.abs(directions).max(axis=1, initial=0.0)
        varying = np.flatnonzero(np.abs(rows).max(axis=1, initial=0.0) > FIXED * size)
        matrix, constants = feasible.linear_matrix[varying], feasible.linear_constant[varying]
        if reference is not None:
            values = matrix @ reference + constants
            slope += other * (1.0 / values[values > 0]) @ matrix[values > 0]
        return cls(directions, tuple(blocks), varying, matrix, constants, other, slope)

    @cached_property
    def concordance(self) -> float:
        """See `ConvexFunction`."""
        weights = [*(float(w) for part in self.blocks for w in part.weights)]
        weights += [self.row_weight] * bool(len(self.rows))
        return min(weights, default=np.inf)

    @cached_property
    def _along(self) -> tuple[Array, Array]:
        """How the rows (m, z) and the linear part (z,) change along the directions."""
        return self.rows @ self.directions, self.slope @ self.directions

    @property
    def barrier_parameter(self) -> int:
        """Number of eigenvalues and numbers that must be positive."""
        sizes = (len(p.weights) * p.group.constant.shape[1] for p in self.blocks)
        return len(self.rows) + int(sum(sizes))

    def value(self, delta: Array) -> float:
        """Up to a constant; infinite outside the feasible set."""
        numbers = self.rows @ delta + self.constants
        if numbers.min(initial=np.inf) <= 0:
            return np.inf
        total = float(self.slope @ delta) - self.row_weight * float(np.log(numbers).sum())
        return total + sum(part.value(delta) for part in self.blocks)

    def derivatives(self, delta: Array) -> tuple[Array, Array]:
        """Gradient (z,) and Hessian (z, z) along the directions."""
        rows, slope = self._along
        moving = rows / (self.rows @ delta + self.constants)[:, None]
        gradient = slope - self.row_weight * moving.sum(axis=0)
        hessian = self.row_weight * (moving.T @ moving)
        for part in self.blocks:
            part.add_derivatives(delta, gradient, hessian)
        return gradient, hessian

    def multipliers(self, delta: Array, move: Array) -> tuple[dict[int, Array], dict[int, float]]:
        """Inverses of the matrices and of the numbers by place, linear in a move (n,)."""
        matrices = dict(pair for part in self.blocks for pair in part.multipliers(delta, move))
        numbers = self.rows @ delta + self.constants
        prices = (1.0 - self.rows @ move / numbers) / numbers
        return matrices, dict(zip(self.places.tolist(), prices.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where Newton's method ended, and how far that is from the minimum."""

    delta: Array  #: the last point, shape (n,)
    gap: float  #: bound of how much larger the sum is than its minimum; infinite where not known
    steps: int
    #: "converged": the decrement is small; "stalled": rounding hides further descent
    status: Literal["converged", "stalled", "unfinished"]

    @property
    def settled(self) -> bool:
        """Whether the iteration has ended."""
        return self.status != "unfinished"


def optimality_gap(decrement: float, concordance: float) -> float:
    """Bound of f - min f from half the squared Newton decrement of f.

    ``f / c`` is self-concordant for c = `concordance`; with its decrement l < 1 the gap is at most
    ``-c (l + log(1 - l))`` (Boyd and Vandenberghe 2004, section 9.6.3).
    """
    if not concordance > 0:
        return np.inf
    if np.isinf(concordance):
        return abs(decrement)
    length = np.sqrt(2.0 * abs(decrement) / concordance)
    return float(-concordance * (length + np.log1p(-length))) if length < 1.0 else np.inf


def minimise(
    terms: Sequence[tuple[float, ConvexFunction]],
    start: Array,
    directions: Array,
    decrement: float,
    *,
    tilt: Array | None = None,
    steps: int = MAX_NEWTON_STEPS,
) -> Minimum:
    """Minimise ``sum_k weight_k term_k(delta) - tilt.z`` along ``delta = start + directions z``.

    Damped Newton steps until half the squared decrement is small. Terms are infinite outside their
    domain, so that every iterate stays inside.

    `terms`: with weights; `start` (n,): strictly inside; `directions` (n, z): the same that the
    terms have; in units in which the problem's numbers are near one; `tilt` (n,): a linear form,
    along the directions too.
    """
    delta = np.array(start, dtype=np.float64)
    pull = None if tilt is None else directions.T @ tilt
    concordance = min(weight * term.concordance for weight, term in terms)

    def value(at: Array) -> float:
        total = 0.0 if tilt is None else -float(tilt @ at)
        for weight, term in terms:
            total += weight * term.value(at)
            if total == np.inf:  # the first terms are the cheapest
                break
        return total

    current, gap, before = value(delta), np.inf, np.inf
    for count in range(steps if np.isfinite(current) else 0):  # from outside there is no step
        parts = [(weight, *term.derivatives(delta)) for weight, term in terms]
        gradient = sum(weight * g for weight, g, _ in parts)
        hessian = np.asarray(sum(weight * h for weight, _, h in parts))
        slope = -np.asarray(gradient if pull is None else gradient - pull)
        step = newton_step(hessian, slope)
        decrease = float(slope @ step)
        gap = optimality_gap(0.5 * decrease, concordance)
        if not decrease > 2 * decrement:
            return Minimum(delta, gap, count, "converged")
        if 0.5 * before < decrease < ROUNDED * abs(current):
            return Minimum(delta, gap, count, "stalled")
        move, length = directions @ step, 1.0
        while length > SHORTEST_STEP:
            trial = delta + length * move
            new = value(trial)
            if new <= current - SUFFICIENT_DECREASE * length * decrease:
                break
            length *= 0.5
        else:
            return Minimum(delta, gap, count, "stalled")
        delta, current, before = trial, new, decrease
    return Minimum(delta, gap, steps, "unfinished")


def project_by_divergence(
    feasible: FeasibleSet, start: Array, directions: Array, reference: Array
) -> Array:
    """The model of least divergence from `reference` on ``start + directions z``, shape (n,).

    `start` (n,): strictly feasible; `directions` (n, z): in units in which the problem's numbers
    are near one; `reference` (n,): its inertia blocks positive definite.
    """
    if directions.shape[1] == 0:
        return np.array(start, dtype=np.float64)
    cone = LogBarrier.for_divergence(feasible, reference, directions)
    return minimise([(1.0, cone)], start, directions, DECREMENT).delta


def newton_step(hessian: Array, right: Array) -> Array:
    """Newton step; of a Hessian that is singular but for rounding, the shortest scaled one."""
    _, step, indefinite = dposv(hessian.T, right)  # symmetric: in the order of LAPACK
    if indefinite:
        scale = 1.0 / np.sqrt(np.maximum(np.diagonal(hessian), 1e-300))
        scaled = hessian * scale[:, None] * scale
        # By QR: singular values of matrices as badly scaled as these do not always converge.
        step = scale * lstsq(scaled, scale * right, cond=1e-14, lapack_driver="gelsy")[0]
    return np.asarray(step)
