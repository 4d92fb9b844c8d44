"""From reduced data to one plausible model: noise, prior and bounds in one convex problem.

    minimise  |R K delta - rho|^2 / 2 + sum over joint terms (delta / size)^2 / 2
              + weight * divergence(delta, reference)      over the feasible set

R and rho are whitened by the noise that the log itself shows (`feasid.estimation.noise`), the
divergence is that of `feasid.estimation.priors`. A joint term's size is the value with which it
would explain its joint's torque alone: one unit of prior, so that Coulomb friction and offset of a
joint that moves one way only do not cancel each other by the hundred.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import chi2

from feasid.core.arrays import Array
from feasid.errors import InputError
from feasid.estimation.entropic import BARRIERS, EntropicProblem
from feasid.estimation.noise import Noise, estimate_noise, squared_residuals
from feasid.estimation.priors import (
    DOUBTED,
    PRIORS,
    WEIGHT,
    PlausibleBound,
    Prior,
    plausible_bounds,
    with_bounds,
)
from feasid.feasibility import problems, solve
from feasid.feasibility.cone import project_by_divergence
from feasid.feasibility.constraints.elimination import Elimination
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.feasibility.constraints.units import Units, constraint_units, problem_units
from feasid.feasibility.least_squares import FeasibleFit, feasible_least_squares
from feasid.feasibility.problems import Program
from feasid.feasibility.reference import interior_point, reference_model
from feasid.identifiability.base import BaseParameters
from feasid.regression.folds import FOLDS
from feasid.regression.triangle import Reduced

RELEASE_LEVEL = 0.999
"""Probability, by a chi-square law, from which the log insists: had the bounds been true, it would
ask to leave them this strongly once in a thousand times."""

NEGLIGIBLE_TERM = 1e-6
"""Joint terms below this share of their unit are zeros that the barrier held off."""

DOUBTFUL = 0.25
"""Share of the common weight below which a body's own is worth a line."""

ENTROPIC = PRIORS["entropic"]


@dataclass(frozen=True, eq=False)
class Estimate:
    """A model and how sure it is.

    Attributes
    ----------
    delta : ndarray, shape (n,)
    noise : Noise
    weight : float
        Of the prior.
    evident : float
        Weight that the log's evidence asks for; `curve` has (weight, log evidence).
    covariance : ndarray, shape (n, n)
        Of the standard parameters; see `EntropicProblem.covariance`.
    foretelling : ndarray, shape (n, n)
        The same without the mistakes that a log may have: another log of the same robot has them
        too, so that they are no part of the errors that are foretold on it.
    shared : ndarray, shape (n, k)
        How the parameters follow k independent mistakes of unit variance that all rows share;
        ``shared @ shared.T`` is part of the covariances.
    bounded : tuple of PlausibleBound
        Plausible bounds that are active; see `feasid.estimation.priors`.
    released : tuple of PlausibleBound
        Plausible bounds that the log rejects, and which were dropped.
    doubted : tuple of str
        Bodies whose description the log contradicts: deviations there are wider.
    price : float
        By how much twice the cost, in units of the squared whitened residual, is larger with all
        that is believed than without; 0 where it decides nothing.
    """

    delta: Array
    noise: Noise
    weight: float
    evident: float
    curve: tuple[tuple[float, float], ...]
    covariance: Array
    foretelling: Array
    shared: Array
    bounded: tuple[PlausibleBound, ...] = ()
    released: tuple[PlausibleBound, ...] = ()
    price: float = 0.0
    doubted: tuple[str, ...] = ()


BISECTIONS = 40
"""Halvings of the way to a model that holds constraints which are not affine."""

RESUMED_BARRIERS = 2
"""So many of the last `BARRIERS` are gone through for similar equations, from the point that the
first of them has: later ones lie so close to the bounds that Newton's steps are short."""


@dataclass(frozen=True, eq=False)
class EstimationProblem:
    """What does not depend on how the equations are weighted.

    Attributes
    ----------
    base : BaseParameters
    feasible : FeasibleSet
    reference : ndarray, shape (n,)
    sizes : ndarray, shape (n,)
        Standard deviation of each joint term's own prior; infinite for inertial parameters.
    scale : Units
    prior : Prior
        What draws bodies to the reference.
    """

    base: BaseParameters
    feasible: FeasibleSet
    reference: Array
    sizes: Array
    scale: Units
    prior: Prior = ENTROPIC

    @classmethod
    def from_reduced(
        cls,
        reduced: Reduced,
        base: BaseParameters,
        feasible: FeasibleSet,
        towards: Array | None = None,
        prior: Prior | None = None,
    ) -> EstimationProblem:
        """The task of a log; `towards` (n,) is a reference other than the description."""
        r, rho, _ = reduced.triangle()
        scale = problem_units(base.robot, feasible, r @ base.K, rho, torques=True)
        reference = reference_model(base.robot, scale).delta.copy()
        if towards is not None:
            inertial = base.robot.inertial_columns.ravel()
            reference[inertial] = towards[inertial]
        blocks = feasible.inertial.blocks
        broken = [b.name for b in blocks if np.linalg.eigvalsh(b.matrix(reference))[0] <= 0]
        if broken:
            raise InputError(
                f"the reference is itself impossible: {broken[0]} is not positive definite; "
                "correct it first (feasid.correct), or take another reference",
                broken=tuple(broken),
            )
        return cls(base, feasible, reference, term_sizes(reduced, base), scale, prior or ENTROPIC)

    @cached_property
    def plausible_bounds(self) -> tuple[PlausibleBound, ...]:
        """Plausible bounds on the bodies' parameters, besides the feasibility constraints."""
        return plausible_bounds(self.base.robot, self.reference)

    @cached_property
    def elimination(self) -> Elimination:
        """Known and tied parameters, out of the problem and back into the answer."""
        return Elimination.from_equalities(self.feasible).require_consistent()

    @cached_property
    def free_reference(self) -> Array:
        """The reference of the free parameters, which known and tied ones allow.

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
        nearest = project_by_divergence(
            self.feasible.inertial, self.whole(start), directions, self.reference
        )
        free[moving] = nearest[elimination.roots][moving]
        return free

    def problem(self, r: Array, rho: Array, weight: float) -> tuple[EntropicProblem, float]:
        """The problem for these whitened equations, ties substituted, and the divergence's weight.

        Quadratic terms of a prior are rows of the equations.
        """
        terms = np.flatnonzero(np.isfinite(self.sizes))
        pull = np.zeros((len(terms), self.feasible.size))
        pull[np.arange(len(terms)), terms] = 1.0 / self.sizes[terms]
        rows, target = self.prior.rows(self.base.robot, self.reference, self.scale, weight)
        whole = np.vstack([r @ self.base.K, pull, rows])
        right = np.concatenate([rho, np.zeros(len(terms)), target])
        elimination = self.elimination
        return EntropicProblem(
            whole @ elimination.T,
            right - whole @ elimination.fixed,
            elimination.inside,
            self.free_reference,
            self.scale.parameters[elimination.roots],
        ), self.prior.divergence(weight)

    def program(self, triangle: tuple[Array, Array, float], weight: float) -> Program:
        """The problem in CVXPY, over the free parameters."""
        problem, divergence = self.problem(*triangle[:2], weight)
        unit = self.scale.parameters[self.elimination.roots]
        scale = constraint_units(self.elimination.inside, self.scale.mass, self.scale.length, unit)
        p = problems.unknowns(self.elimination.inside, scale)
        return problems.entropic_least_squares(
            problem.A, problem.b, divergence, problem.reference, p
        )

    def free(self, delta: Array) -> Array:
        """The entries that ties leave free."""
        return delta[self.elimination.roots]

    def whole(self, free: Array) -> Array:
        """All standard parameters from the free ones."""
        return self.elimination.expand(free)

    def full_covariance(self, covariance: Array) -> Array:
        """Covariance of all standard parameters from that of the free ones."""
        return np.asarray(self.elimination.T @ covariance @ self.elimination.T.T)

    def start(self, known: Array) -> Array:
        """A strictly feasible model: the reference if it is one, else the known one."""
        if not self.feasible.equalities and self.feasible.contains_strictly(self.reference):
            return self.reference
        return known

    def noise(
        self, reduced: Reduced, weight: float, start: Array, folds: Sequence[int] | None = None
    ) -> Noise:
        """The noise of a log around the estimate with the prior."""
        K, solution = self.base.K, WarmStarts(self, weight, start)

        def solver(r: Array, rho: Array) -> tuple[Array, Array]:
            free, problem, divergence = solution.solve(r, rho)
            followed = self.full_covariance(problem.followed(free, divergence))
            return K @ self.whole(free), K @ followed @ K.T

        return estimate_noise(reduced, solver, folds)[0]


@dataclass(eq=False)
class WarmStarts:
    """Minimisers for similar equations one after another, each sought from the one before.

    `weight` is the prior's and `start` (n,) a strictly feasible model.
    """

    task: EstimationProblem
    weight: float
    start: Array
    _near: Array | None = None

    def solve(self, r: Array, rho: Array) -> tuple[Array, EntropicProblem, float]:
        """The free parameters, the problem that they solve, and the divergence's weight in it."""
        problem, divergence = self.task.problem(r, rho, self.weight)
        if self._near is None:
            path = problem.path(self.task.free(self.start), divergence)
        else:
            path = problem.path(self._near, divergence, BARRIERS[-RESUMED_BARRIERS:])
        self._near = path[-min(RESUMED_BARRIERS, len(path))]
        return path[-1], problem, divergence

    def whole(self, r: Array, rho: Array) -> Array:
        """All standard parameters, shape (n,)."""
        return self.task.whole(self.solve(r, rho)[0])


def term_sizes(reduced: Reduced, base: BaseParameters) -> Array:
    """For every joint term the value that would explain its joints' torques alone, shape (n,)."""
    robot = base.robot
    out = np.full(robot.size, np.inf)
    place = {int(c): k for k, c in enumerate(base.independent)}
    for drive in range(len(robot.drives)):
        for column in robot.drive_columns(drive).values():
            k = place.get(column, -1)
            seen = torque = 0.0
            for support, triangle in zip(reduced.supports, reduced.triangles, strict=True):
                if k in support:
                    seen += float(np.sum(triangle[:, support.index(k)] ** 2))
                    torque += float(np.sum(triangle[:, -1] ** 2))
            if seen > 0 and torque > 0:
                out[column] = np.sqrt(torque / seen)
    return out


def estimate_model(
    reduced: Reduced,
    task: EstimationProblem,
    start: Array,
    *,
    weight: float | str | None = None,
    plausible: bool = True,
    noise: Noise | None = None,
    timing: float = 0.0,
) -> Estimate:
    """The most probable model, its evidence and its covariance.

    Parameters
    ----------
    reduced : Reduced
    task : EstimationProblem
    start : ndarray, shape (n,)
        Any strictly feasible model.
    weight : float, "evidence" or None
        Of the prior. None takes the one that the log's evidence asks for, but at most
        `STRONGEST`: a description that contradicts the log gets less weight.
    plausible : bool
        Whether plausible bounds of bodies are imposed, unless the log rejects them.
    noise : Noise, optional
        When it is known already.
    timing : float
        Deviation of the torques' delay [s], which all parameters share.
    """
    known = float(weight) if isinstance(weight, int | float) else WEIGHT
    start = task.start(start)
    noise = task.noise(reduced, known, start) if noise is None else noise
    whole, size = noise.whole(reduced), len(reduced.columns)
    r, rho = whole[:size, :size], whole[:size, size]
    chosen, evident, curve = _choose_weight(reduced, task, noise, weight, start)
    problem, divergence = task.problem(r, rho, chosen)
    delta = task.whole(problem.minimise(task.free(start), divergence))
    bounded: tuple[PlausibleBound, ...] = ()
    released: tuple[PlausibleBound, ...] = ()
    price = 0.0
    if plausible:
        delta, bounded, released, price = _within_bounds(task, problem, delta, chosen, (r, rho))
    # Weights follow the correlation that is seen; what it misses would make deviations too small.
    honest, _ = task.problem(*noise.as_filtered(reduced).whitened_triangle(reduced)[:2], chosen)
    late = problem.response(task.free(delta), divergence, timing * whole[:size, size + 1])
    covariance = task.full_covariance(
        task.prior.covariance(honest, task.free(delta), chosen, min(evident, DOUBTED))
        + np.outer(late, late)
    )
    return Estimate(
        delta,
        noise,
        chosen,
        evident,
        curve,
        covariance,
        covariance,
        task.elimination.T @ late[:, None],
        bounded,
        released,
        price,
        _doubted_bodies(task, problem, delta, divergence),
    )


def _doubted_bodies(
    task: EstimationProblem, problem: EntropicProblem, delta: Array, weight: float
) -> tuple[str, ...]:
    """Bodies much farther from the description than the others; none under a quadratic prior."""
    if task.prior.divergence(1.0) != 1.0:
        return ()
    found = problem.believable(task.free(delta), weight)
    few = DOUBTFUL * min(weight, DOUBTED)
    return tuple(name.split(" of ", 1)[-1] for name, own in found.items() if own < few)


def _choose_weight(
    reduced: Reduced,
    task: EstimationProblem,
    noise: Noise,
    weight: float | str | None,
    start: Array,
) -> tuple[float, float, tuple[tuple[float, float], ...]]:
    """The prior's weight, the one of the largest evidence, and the curve it was read from."""
    given = float(weight) if isinstance(weight, int | float) else None
    known = task.prior.evidence(
        task.problem(*noise.whitened_triangle(reduced)[:2], WEIGHT)[0], task.free(start)
    )
    if known is None:
        given = task.prior.weight if given is None and weight is None else given
        if given is None:
            raise InputError(
                f"prior={task.prior.name!r} needs a number as prior_weight: the evidence of this "
                "prior is not known"
            )
        return given, given, ()
    evident, curve = known
    if weight == "evidence":
        return evident, evident, curve
    return task.prior.strongest(evident) if given is None else given, evident, curve


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """For every stretch of a log's time, the model of the others.

    Attributes
    ----------
    task : EstimationProblem
    reduced : Reduced
    noise : Noise
    weight : float
        Of the prior.
    start : ndarray, shape (n,), optional
        A strictly feasible model; default the reference.
    """

    task: EstimationProblem
    reduced: Reduced
    noise: Noise
    weight: float = WEIGHT
    start: Array | None = None

    @cached_property
    def folds(self) -> list[int]:
        """Stretches that have rows; none where the equations were not filtered."""
        strata = self.reduced.strata
        return [f for f in range(FOLDS) if strata and strata[0].counts[:, f].any()]

    def others(self, fold: int) -> tuple[Array, Array]:
        """Whitened equations of the other stretches."""
        rest = [f for f in self.folds if f != fold]
        return self.noise.whitened_triangle(self.reduced, rest)[:2]

    @cached_property
    def models(self) -> dict[int, Array]:
        """Base parameters per stretch, of the feasible model of the others."""
        solutions, _ = self._whole
        others = {f: replace(solutions).whole(*self.others(f)) for f in self.folds}
        return {f: self.task.base.K @ delta for f, delta in others.items()}

    @property
    def fitted(self) -> Array:
        """Standard parameters of all stretches together, shape (n,)."""
        return self._whole[1]

    @cached_property
    def _whole(self) -> tuple[WarmStarts, Array]:
        """From all stretches together it is not far to all but one."""
        start = self.task.reference if self.start is None else self.start
        solutions = WarmStarts(self.task, self.weight, start)
        return solutions, solutions.whole(*self.noise.whitened_triangle(self.reduced)[:2])

    def missed(
        self, models: Mapping[int, Array] | None = None, tested: Reduced | None = None
    ) -> Array:
        """Squared errors of every stretch, shape (folds, dof) [(N m)^2 or N^2].

        Parameters
        ----------
        models : mapping of int to ndarray, optional
            Other models of the stretches' rests; -1 stands for all of the log.
        tested : Reduced, optional
            Another preparation of the same stretches.
        """
        log = self.reduced if tested is None else tested
        found = self.models if models is None else models
        joints = range(len(log.triangles))
        return np.array(
            [
                [float(squared_residuals(log, j, b, None if f < 0 else [f]).sum()) for j in joints]
                for f, b in found.items()
            ]
        )

    @property
    def errors(self) -> Array:
        """Relative torque error of every joint on stretches that were not fitted, shape (dof,)."""
        return relative_to(self.missed().sum(axis=0), self.reduced.torque_norms)


def relative_to(missed: Array, norms: Array) -> Array:
    """Roots of sums of squared errors over norms of torques; 0 where there is no torque."""
    return np.asarray(np.sqrt(missed) / np.where(norms > 0, norms, 1.0) * (norms > 0))


def _within_bounds(
    task: EstimationProblem,
    problem: EntropicProblem,
    delta: Array,
    weight: float,
    equations: tuple[Array, Array],
) -> tuple[Array, tuple[PlausibleBound, ...], tuple[PlausibleBound, ...], float]:
    """The model within plausible bounds; bounds that the log rejects are dropped."""
    broken = tuple(b for b in task.plausible_bounds if b.smallest_value(delta) < 0)
    if not broken or task.feasible.equalities:
        return delta, (), (), 0.0
    held = replace(task, feasible=with_bounds(task.feasible, task.plausible_bounds))
    if not held.feasible.contains_strictly(task.reference):
        return delta, (), (), 0.0
    own = task.prior.divergence(weight)
    enough, here = float(chi2.ppf(RELEASE_LEVEL, len(broken))), problem.cost(delta, own)
    # Least squares alone bound the price from below; where they insist, Newton's way is long.
    price = feasible_least_squares(*equations, task.base, held.feasible).objective - 2.0 * here
    if price > enough:
        return delta, (), broken, price
    inside = WarmStarts(held, weight, task.reference).whole(*equations)
    price = 2.0 * (problem.cost(inside, own) - here)
    if price > enough:
        return delta, (), broken, price
    near = tuple(b for b in task.plausible_bounds if b.is_active(inside, task.reference))
    return inside, near, (), price


def within_convex(
    found: Estimate,
    task: EstimationProblem,
    triangle: tuple[Array, Array, float],
    inside: Array,
    solver: Any,
) -> Estimate:
    """The estimate when constraints that are not affine hold, too: of the program in CVXPY.

    `inside` is a model that holds them strictly; answers are drawn to it until they do.
    """
    if all(c.is_satisfied(found.delta) for c in task.feasible.convex):
        return found
    program = task.program(triangle, found.weight)

    def judge(raw: solve.SolverAnswer) -> solve.Judgement:
        return solve.Judgement(True, True, float(program.problem.value), "taken, and drawn inside")

    raw, attempts = solve.solve_verified(program, judge, solver)
    if raw is None:
        raise solve.solver_error(
            "no solver gave a model for constraints that are not affine", attempts
        )
    free = raw.x * program.parameters.scale.parameters
    anchor, low, high = task.free(inside), 0.0, 1.0
    for _ in range(BISECTIONS if not task.elimination.inside.contains_strictly(free) else 0):
        middle = 0.5 * (low + high)
        within = task.elimination.inside.contains_strictly(free + middle * (anchor - free))
        low, high = (low, middle) if within else (middle, high)
    share = high if low or high < 1.0 else 0.0
    return replace(found, delta=task.whole(free + share * (anchor - free)))


def verify_model(optimum: FeasibleFit, delta: Array, task: EstimationProblem) -> FeasibleFit:
    """Another model of the same equations in place of their optimum, verified exactly.

    Raises
    ------
    SolverError
        When it breaks a constraint.
    """
    small = np.abs(delta) < NEGLIGIBLE_TERM * task.scale.parameters
    free = task.free(np.where(np.isfinite(task.sizes) & small, 0.0, delta))
    delta = task.whole(free)
    broken = task.feasible.violations(delta)
    if broken:
        raise solve.solver_error(f"the answer breaks {', '.join(broken)} in exact arithmetic", ())
    return FeasibleFit(optimum.problem, delta, optimum.raw, optimum.attempts)
