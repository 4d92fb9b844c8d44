"""The convex problem of a log: whitened equations, a prior and the feasible set.

    minimise  |R K delta - rho|^2 / 2 + sum over joint terms (delta / size)^2 / 2
              + weight * divergence(delta, reference)      over the feasible set

R and rho are whitened by the noise of the log (`feasid.identification.estimation.noise`), the
divergence is that of `feasid.identification.estimation.priors`. A joint term's size is the value
with which it would explain its joint's torque alone: one unit of prior, so that Coulomb friction
and offset of a joint that moves one way only do not cancel each other by the hundred.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.identification.estimation.newton import BARRIERS, NEARBY, WEAK, WEAKEST, EntropicProblem
from feasid.identification.estimation.noise import Noise, estimate_noise
from feasid.identification.estimation.priors import COVARIANCE_WEIGHT, PRIORS, Prior
from feasid.identification.regression.triangle import Reduced
from feasid.parameters.feasibility import problems, solve
from feasid.parameters.feasibility.cone import Minimum, project_by_divergence
from feasid.parameters.feasibility.constraints.affine import Linear
from feasid.parameters.feasibility.constraints.elimination import Elimination
from feasid.parameters.feasibility.constraints.sets import FeasibleSet
from feasid.parameters.feasibility.constraints.units import Units, constraint_units, problem_units
from feasid.parameters.feasibility.least_squares import with_weighed
from feasid.parameters.feasibility.problems import Program
from feasid.parameters.feasibility.reference import interior_point, nearest_inside, reference_model
from feasid.parameters.identifiability.base import BaseParameters
from feasid.robot.known import Weighed

ENTROPIC = PRIORS["entropic"]

MAX_GAP = 1e-5
"""Largest gap of an answer's objective: its parameters are then within 0.5 % of a standard
deviation of the minimum's ..."""

MAX_GAP_SHARE = 1e-7  #: ... or this share of the objective, if a strong prior makes it large.

PREDICTED, LOOSEST, CLOSE = 1e-2, 1e-4, 0.3
"""Share of the residual by which the errors of a part's model may differ from its minimum's at most
(on packaged logs they differ by 5e-4), the largest weight of other constraints' logarithms that may
be left then, and the decrement that is enough, in units of this weight."""


@dataclass(frozen=True, eq=False)
class EstimationProblem:
    """The parts that do not depend on the weights of the equations."""

    base: BaseParameters
    feasible: FeasibleSet
    reference: Array  #: what the prior draws bodies to, shape (n,)
    sizes: Array  #: standard deviation of each joint term's prior; infinite for inertials, (n,)
    scale: Units
    prior: Prior = ENTROPIC
    weighed: tuple[Weighed, ...] = ()  #: parameters that were measured besides

    @classmethod
    def from_reduced(
        cls,
        reduced: Reduced,
        base: BaseParameters,
        feasible: FeasibleSet,
        towards: Array | None = None,
        prior: Prior | None = None,
        weighed: tuple[Weighed, ...] = (),
    ) -> EstimationProblem:
        """The problem of a log; `towards` (bodies, 10) replaces the description's inertials."""
        r, rho, _ = reduced.triangle()
        scale = problem_units(base.robot, feasible, r @ base.K, rho, torques=True)
        reference = reference_model(base.robot, scale).delta.copy()
        if towards is not None:
            reference[base.robot.inertial_columns] = towards
        require_consistent_reference(feasible, reference)
        # For every joint term the value that alone would explain its joints' torques, shape (n,).
        robot = base.robot
        sizes = np.full(robot.size, np.inf)
        place = {int(c): k for k, c in enumerate(base.independent)}
        for drive in range(len(robot.drives)):
            for column in robot.drive_columns(drive).values():
                k = place.get(column, -1)
                squares = torque = 0.0
                for support, triangle in zip(reduced.supports, reduced.triangles, strict=True):
                    if k in support:
                        squares += float(np.sum(triangle[:, support.index(k)] ** 2))
                        torque += float(np.sum(triangle[:, -1] ** 2))
                if squares > 0 and torque > 0:
                    sizes[column] = np.sqrt(torque / squares)
        return cls(base, feasible, reference, sizes, scale, prior or ENTROPIC, weighed)

    def under_gravity(self, base: BaseParameters) -> EstimationProblem:
        """The same problem of the robot under another gravity."""
        other = replace(self, base=base)
        other.__dict__.update(elimination=self.elimination, _without_rows=self._without_rows)
        return other

    @cached_property
    def elimination(self) -> Elimination:
        """Known and tied parameters, out of the problem and back into the answer."""
        return Elimination.from_equalities(self.feasible).require_consistent()

    @cached_property
    def free_reference(self) -> Array:
        """The reference of the free parameters, consistent with known and tied parameters.

        It has the least divergence from the reference. The divergences of all allowed models from
        the two differ by one constant (Bregman 1967), so that the estimate is the same.
        """
        elimination = self.elimination
        free = self.reference[elimination.roots].copy()
        bodies = elimination.inside.inertial
        if not self.feasible.equalities or not bodies.blocks:
            return free
        unit = self.scale.parameters[elimination.roots]
        start = free
        if not bodies.contains_strictly(free):
            scale = constraint_units(bodies, self.scale.mass, self.scale.length, unit)
            start = interior_point(bodies, scale, free)
        moving = np.unique(np.concatenate([b.columns for b in bodies.blocks]))
        directions = (elimination.T * unit)[:, moving]
        inertial, point = self.feasible.inertial, self.expand(start)
        nearest = project_by_divergence(inertial, point, directions, self.reference)
        free[moving] = nearest[elimination.roots][moving]
        return free

    def problem(self, r: Array, rho: Array, weight: float) -> tuple[EntropicProblem, float]:
        """The problem for these whitened equations, ties substituted, and the divergence's weight.

        Quadratic terms of a prior, and parameters that were weighed, are rows of the equations.
        """
        terms = np.flatnonzero(np.isfinite(self.sizes))
        pull = np.zeros((len(terms), self.feasible.size))
        pull[np.arange(len(terms)), terms] = 1.0 / self.sizes[terms]
        rows, target = self.prior.rows(self.base.robot, self.reference, self.scale, weight)
        base, r, rho = with_weighed(self.base, r, rho, self.weighed)
        every = np.vstack([r @ base.K, pull, rows])
        right = np.concatenate([rho, np.zeros(len(terms)), target])
        T, fixed = self.elimination.T, self.elimination.fixed
        problem = self._without_rows.with_rows(every @ T, right - every @ fixed)
        return problem, self.prior.divergence(weight)

    @cached_property
    def _without_rows(self) -> EntropicProblem:
        """What the problems of all equations share."""
        elimination, none = self.elimination, np.zeros((0, len(self.elimination.roots)))
        unit = self.scale.parameters[elimination.roots]
        return EntropicProblem(none, none[:, 0], elimination.inside, self.free_reference, unit)

    def program(self, triangle: tuple[Array, Array], weight: float) -> Program:
        """The problem in CVXPY, over the free parameters."""
        problem, divergence = self.problem(*triangle, weight)
        p = problems.unknowns(self.elimination.inside, self.elimination.units(self.scale))
        return problems.entropic_least_squares(
            problem.A, problem.b, divergence, problem.reference, p
        )

    def reduce(self, delta: Array) -> Array:
        """The entries that ties leave free."""
        return delta[self.elimination.roots]

    def expand(self, free: Array) -> Array:
        """All standard parameters from the free ones."""
        return self.elimination.expand(free)

    def full_covariance(self, covariance: Array) -> Array:
        """Covariance of all standard parameters from that of the free ones."""
        return np.asarray(self.elimination.T @ covariance @ self.elimination.T.T)

    def covariance(
        self, triangle: tuple[Array, Array, float], delta: Array, weight: float, evident: float
    ) -> Array:
        """Covariance of all parameters delta (n,), with the prior at its evident weight at most."""
        objective, _ = self.problem(*triangle[:2], weight)
        draw = min(evident, COVARIANCE_WEIGHT)
        free = self.prior.covariance(objective, self.reduce(delta), weight, draw)
        return self.full_covariance(free)


CLOSER = (NEARBY, 1e-6, BARRIERS[-1])
"""Weights of other constraints' logarithms from a minimum of similar equations with the first of
them on: away from constraints that are closer, each Newton step only doubles the distance."""


@dataclass(eq=False)
class Minimiser:
    """Minima for similar equations one after another, each sought from the one before."""

    problem: EstimationProblem
    weight: float  #: of the prior
    start: Array  #: a strictly feasible model, shape (n,)
    solver: Any = None  #: of the CVXPY program, where Newton's method does not suffice
    near: Array | None = None  #: a model that the last minimum was sought from, (n,)

    def solve(
        self, r: Array, rho: Array, last: float = BARRIERS[-1]
    ) -> tuple[Minimum, EntropicProblem, float]:
        """The minimum over the free parameters, without constraints that are not affine.

        Also the problem that it solves, and the divergence's weight in it. The caller has to check
        its gap: `minimum` does. `last`: weight of other constraints' logarithms in the end.
        """
        problem, divergence = self.problem.problem(r, rho, self.weight)
        # With a weak prior bodies are close to their bounds.
        every, resumed = (WEAK, WEAK[1:]) if divergence < WEAKEST else (BARRIERS, CLOSER)
        resumed = every if problem.has_curved_limits else resumed
        start, barriers = (self.start, every) if self.near is None else (self.near, resumed)
        path = problem.path(
            self.problem.reduce(start),
            divergence,
            (*(b for b in barriers if b > last), last),
            CLOSE * last if last > BARRIERS[-1] else 0.0,
        )
        # The next minimum is sought from where this path will be resumed, not from its end.
        warm = sum(b >= last for b in resumed)
        self.near = self.problem.expand(path[-min(warm, len(path))].delta)
        return path[-1], problem, divergence

    def estimate_noise(self, reduced: Reduced) -> Noise:
        """The noise of a log around the estimate with the prior."""
        K = self.problem.base.K

        def solver(r: Array, rho: Array) -> tuple[Array, Array]:
            minimum, problem, divergence = self.solve(r, rho, NEARBY)
            free = problem.unit_noise_covariance(minimum.delta, divergence, NEARBY)
            covariance = self.problem.full_covariance(free)
            return K @ self.problem.expand(minimum.delta), K @ covariance @ K.T

        return estimate_noise(reduced, solver)[0]

    def predict(self, triangle: tuple[Array, Array, float]) -> Array:
        """All standard parameters of a model for predictions, near enough to the minimum.

        |R K (delta - minimum)|^2 is at most twice the gap of the objective, and the gap at most the
        weight of other constraints' logarithms times their number: the weight is as large as the
        residual allows, see `PREDICTED`.
        """
        r, rho, residual = triangle
        problem, divergence = self.problem.problem(r, rho, self.weight)
        allowed = 0.5 * (PREDICTED * residual) ** 2
        last = min(allowed / (problem.logarithms + 1), LOOSEST)
        if divergence >= WEAKEST and last > BARRIERS[-1] and not problem.feasible.convex:
            start = self.problem.reduce(self.start if self.near is None else self.near)
            barriers = (*BARRIERS[: 2 * (self.near is None or problem.has_curved_limits)], last)
            path = problem.path(start, divergence, barriers, CLOSE * last)
            if path[-1].gap <= allowed:
                self.near = self.problem.expand(path[0 if problem.has_curved_limits else -1].delta)
                return self.problem.expand(path[-1].delta)
        return self.minimum(r, rho).delta

    def minimum(self, r: Array, rho: Array) -> Minimum:
        """The verified minimum over all standard parameters, with a bound of its gap.

        Raises SolverError: neither Newton's method nor a solver of the program reaches this gap.
        """
        minimum, problem, divergence = self.solve(r, rho)
        if not _is_close(minimum, problem, divergence):
            # An interior-point solver comes close from anywhere; Newton's steps end it there.
            point = self._solver_point(r, rho, replace(problem.feasible, convex=()))
            minimum = problem.path(point, divergence, BARRIERS[-1:])[-1]
            if not _is_close(minimum, problem, divergence):
                far = f"{minimum.gap:.1g} in units of the whitened residual, or less,"
                raise solve.solver_error(
                    "the minimum of this problem was not found; the best answer is "
                    f"{far if np.isfinite(minimum.gap) else 'an unknown amount'} above it. The "
                    "prior is too strong for this log, or constraints leave hardly any room: "
                    "lower prior_weight or widen them",
                    (),
                )
        if not all(c.is_satisfied(minimum.delta) for c in problem.feasible.convex):
            # The minimum with constraints that are not affine: a solver's, bounded by tangents.
            point = self._solver_point(r, rho, problem.feasible)
            columns = np.arange(len(point))
            tangents = [
                Linear(c.name, columns, -slope, float(slope @ point - x))
                for c in problem.feasible.convex
                for slope, x in zip(c.gradient(point), np.atleast_1d(c.values(point)), strict=True)
            ]
            linear = (*problem.feasible.linear, *tangents)
            outer = replace(problem, feasible=replace(problem.feasible, linear=linear, convex=()))
            bound = outer.minimise(self.problem.reduce(self.start), divergence)
            least = outer.cost(bound.delta, divergence) - bound.gap
            gap = max(problem.cost(point, divergence) - least, 0.0)
            return Minimum(self.problem.expand(point), gap, bound.steps, "converged")
        return replace(minimum, delta=self.problem.expand(minimum.delta))

    def _solver_point(self, r: Array, rho: Array, feasible: FeasibleSet) -> Array:
        """The free parameters of the program in CVXPY, drawn strictly inside."""
        program = self.problem.program((r, rho), self.weight)

        def judge(raw: solve.SolverAnswer) -> solve.Judgement:
            cost = float(program.problem.value)
            text = "taken, and moved inside the feasible set"
            return solve.Judgement(np.isfinite(cost), True, cost, text)

        raw, attempts = solve.solve_verified(program, judge, self.solver)
        if raw is None:
            raise solve.solver_error("no solver gave a model for this problem", attempts)
        point = raw.x[: len(feasible.names)] * program.parameters.scale.parameters
        return nearest_inside(feasible, point, self.problem.reduce(self.start))


def _is_close(minimum: Minimum, problem: EntropicProblem, divergence: float) -> bool:
    """Whether a minimum is close enough to be an answer."""
    cost = abs(problem.cost(minimum.delta, divergence))
    return minimum.gap <= max(MAX_GAP, MAX_GAP_SHARE * cost)


def require_consistent_reference(feasible: FeasibleSet, reference: Array) -> None:
    """Raise InputError if a body of the reference (n,) is not a positive mass distribution."""
    blocks = feasible.inertial.blocks
    broken = [b.name for b in blocks if np.linalg.eigvalsh(b.matrix(reference))[0] <= 0]
    if broken:
        raise InputError(
            f"the reference is physically inconsistent: correct the {broken[0]} first "
            "(feasid.correct), or take another reference",
            broken=tuple(broken),
        )
