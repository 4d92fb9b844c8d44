"""What a fit decides about the model, and the estimate that follows from equations.

`Estimator` is the one place where equations of a log are solved: a fit, its cross-validation, the
choice of joint terms and the search for errors of a log all use one, or a clone with fixed
decisions (`Estimator.keep`). Decisions about the signals are in
`feasid.identification.effects.calibration`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError, did_you_mean
from feasid.core.notes import Note
from feasid.identification.estimation import priors
from feasid.identification.estimation.bounds import (
    PlausibleBound,
    plausible_bounds,
    select_bounds,
    with_bounds,
)
from feasid.identification.estimation.estimate import (
    Estimate,
    Triangle,
    uncertified_notes,
    with_deviation,
)
from feasid.identification.estimation.held_out import CrossValidation
from feasid.identification.estimation.newton import NEARBY
from feasid.identification.estimation.noise import Noise, estimate_noise, standard_deviations
from feasid.identification.estimation.problem import (
    EstimationProblem,
    Minimiser,
    require_consistent_reference,
)
from feasid.identification.regression.reduce import measured_rows
from feasid.identification.regression.triangle import Reduced
from feasid.options.complete import select_options
from feasid.options.tables import SetOptions
from feasid.parameters.feasibility import least_squares, solve
from feasid.parameters.feasibility.cone import Minimum
from feasid.parameters.feasibility.constraints.elimination import Elimination
from feasid.parameters.feasibility.constraints.sets import FeasibleSet, feasible_set
from feasid.parameters.feasibility.reference import feasible_start
from feasid.parameters.identifiability.base import BaseParameters
from feasid.robot.description import Robot
from feasid.robot.inertia import SYMBOLS, UNITS
from feasid.robot.known import Weighed, exact_values, weighed_parameters

WEIGHT_FLOOR = 1e-3
"""Smallest residual that weights a joint, as a share of its torque: noise-free logs stay finite."""

NEGLIGIBLE_TERM = 1e-6
"""Joint terms below this share of their unit count as zero; the barrier keeps them positive."""

CONTRADICTED = 3.0
"""Joint deviations between a value that was weighed and that of everything else, from which a note
says so."""

INCONSISTENT = 0.25
"""Share of the prior's weight below which a body's own weight is reported: its description
contradicts the log."""


@dataclass(frozen=True, eq=False)
class Estimator:
    """Decisions of a fit about the model, without rows of a log; `replace` clones it.

    Constraints of the caller are in `feasible`. Plausible `bounds` may be rejected by the data,
    unless they were kept from an estimate (`bounds_decided`).
    """

    base: BaseParameters
    feasible: FeasibleSet
    bounds: tuple[PlausibleBound, ...] = ()
    bounds_decided: bool = False
    prior: priors.Prior | None = priors.PRIORS["entropic"]
    prior_weight: float | str | None = None  #: a number, "evidence", or the prior's own choice
    reference: Array | None = None  #: what the prior draws to, (bodies, 10); None: description
    weights: str | Array = "noise"  #: "noise", "wls", or factors on the joints' equations (dof,)
    noise: Noise | None = None  #: None: estimated from the equations
    slack: float = 0.0  #: without a prior: share of the residual given for a closer model
    solver: Any = None
    limits: Mapping[str, Any] = field(default_factory=dict)  #: options that make `feasible`
    weighed: tuple[Weighed, ...] = ()  #: parameters with a standard error, which are data

    @classmethod
    def from_options(cls, base: BaseParameters, options: Mapping[str, Any]) -> Estimator:
        """The estimator of these `feasid.options.tables.FitOptions`."""
        limits = dict(select_options(SetOptions, options))
        prior, robot = priors.find_prior(options["prior"]), base.robot
        solve.solver_attempts(options["solver"])  # a wrong name is an error even if none solves
        weighed = weighed_parameters(robot, limits["known"])
        limits["known"] = exact_values(limits["known"])
        feasible = feasible_set(robot, **limits)
        # A parameter may have been weighed in vain, or would count twice.
        T = Elimination.from_equalities(feasible).T
        for w in weighed:
            wrong = ""
            if prior is None:
                wrong = "needs a prior: leave out prior=None, or the standard error"
            elif not T[w.column(robot)].any():
                wrong = "is fixed by other known, tied or zero values: leave out one of them"
            elif isinstance(prior, priors.GaussianPrior) and w in prior.weighed:
                wrong = "was weighed for the prior, and would count twice: leave it out"
            if wrong:
                text = f"known {w.name} = ({w.value:g}, {w.deviation:g}), with a standard error, "
                raise InputError(text + wrong, option="known")
        reference = options["reference"]
        if reference is not None:
            reference = np.asarray(reference, dtype=np.float64)
            if reference.size != robot.inertial_columns.size or not np.isfinite(reference).all():
                raise InputError(
                    f"reference must be ten finite numbers for each of {len(robot.bodies)} bodies, "
                    f"in the order of robot.names; got {reference.size}"
                )
            reference = reference.reshape(len(robot.bodies), 10)
            require_consistent_reference(feasible, _reference_values(robot, reference))
        bounds: tuple[PlausibleBound, ...] = ()
        # A caller's bounds of masses take the place of plausible ones; these need a prior.
        if prior is not None and options["plausible"] and not options["mass"]:
            bounds = plausible_bounds(robot, _reference_values(robot, reference))
        return cls(
            base,
            feasible,
            bounds,
            prior=prior,
            prior_weight=options["prior_weight"],
            reference=reference,
            weights=_check_weights(options["weights"], robot),
            slack=options["slack"],
            solver=options["solver"],
            limits=limits,
            weighed=weighed,
        )

    # -- clones --------------------------------------------------------------------------------

    def on(self, base: BaseParameters) -> Estimator:
        """The same decisions for the robot with other joint terms or another gravity."""
        named = {(b.body, b.kind) for b in self.bounds}  # parameters may move to other columns
        values = _reference_values(base.robot, self.reference)
        every = plausible_bounds(base.robot, values) if named else ()
        bounds = tuple(b for b in every if (b.body, b.kind) in named)
        feasible = feasible_set(base.robot, **self.limits)
        return replace(self, base=base, feasible=feasible, bounds=bounds)

    def keep(self, estimate: Estimate) -> Estimator:
        """The same decisions, fixed: weight, noise and bounds of this estimate."""
        return replace(
            self,
            prior_weight=estimate.prior_weight,
            noise=estimate.noise,
            bounds=estimate.bounds.kept,
            bounds_decided=True,
        )

    def for_comparison(self, noise: Noise | None = None) -> Estimator:
        """The estimator that compares candidates for a fit: with a prior of a known weight."""
        number = isinstance(self.prior_weight, int | float)
        # The evidence and the test of bounds would cost each candidate a multiple of its minimum.
        return replace(
            self,
            prior=priors.PRIORS["entropic"] if self.prior is None else self.prior,
            prior_weight=self.prior_weight if number else priors.WEIGHT,
            bounds=(),
            bounds_decided=True,
            noise=noise,
        )

    # -- what it solves ------------------------------------------------------------------------

    @property
    def plausible_set(self) -> FeasibleSet:
        """The feasible set within the plausible bounds that were kept."""
        return with_bounds(self.feasible, self.bounds)

    def problem(self, equations: Reduced) -> EstimationProblem:
        """Objective and constraints for these equations; nobody else builds one."""
        feasible = self.plausible_set if self.bounds_decided else self.feasible
        known = self.reference, self.prior, self.weighed
        return EstimationProblem.from_reduced(equations, self.base, feasible, *known)

    def start(self, problem: EstimationProblem, near: Array | None = None) -> Array:
        """Strictly feasible model: the reference or `near` (n,) if either is, else a computed one.

        Raises InfeasibleConstraintsError.
        """
        feasible, inside = problem.feasible, problem.elimination.inside
        described = not feasible.equalities and feasible.contains_strictly(problem.reference)
        if not described and near is not None and inside.contains_strictly(problem.reduce(near)):
            return near
        return feasible_start(feasible, problem.scale, problem.reference)

    def fit(self, equations: Reduced) -> Estimate:
        """The parameters: feasible in exact arithmetic, and optimal up to `Estimate.gap`.
        Raises InfeasibleConstraintsError: constraints contradict; SolverError: nothing is verified.
        """
        if self.prior is None:
            return self._without_prior(equations)
        problem = self.problem(equations)
        minimiser = Minimiser(problem, priors.WEIGHT, self.start(problem), self.solver)
        noise = self.noise or self._estimate_noise(equations, minimiser)
        triangle = noise.whitened_triangle(equations)
        weight, evidence_weight, evidence = self._prior_weight(minimiser, triangle)
        minimum = replace(minimiser, weight=weight).minimum(*triangle[:2])
        minimum, test = select_bounds(self.bounds, problem, triangle, weight, minimum, self.solver)
        # Rows count by the correlation that is seen; what it misses would make deviations small.
        filtered = noise.as_filtered(equations).whitened_triangle(equations)
        covariance = problem.covariance(filtered, minimum.delta, weight, evidence_weight)
        factors = self.weights if isinstance(self.weights, np.ndarray) else noise.quick**-0.5
        return Estimate(
            verify_minimum(minimum, problem, self._least_squares_problem(triangle)),
            minimum.delta,
            minimum.gap,
            triangle,
            np.where(measured_rows(equations), factors, 0.0),
            noise,
            np.asarray(self.base.K @ covariance @ self.base.K.T),
            prior_weight=weight,
            evidence_weight=evidence_weight,
            evidence=evidence,
            covariance=covariance,
            prediction_covariance=covariance,
            systematic=np.zeros((len(covariance), 0)),
            bounds=test.at(minimum, problem),
            inconsistent=_inconsistent_bodies(problem, triangle, minimum, weight),
            near=minimiser.near,
        ).with_notes(self.prior.name, self.feasible, self.weights)

    def weighed_notes(self, equations: Reduced, estimate: Estimate) -> list[Note]:
        """Parameters that were weighed, as an estimate and as a fit without them has them.

        Errors that all rows of the log share are in the deviations of both.
        """
        if not self.weighed:
            return []
        alone, notes = replace(self, weighed=()).fit(equations), []
        for w in self.weighed:
            column = w.column(self.base.robot)
            unit = UNITS[SYMBOLS.index(w.name.rpartition(".")[2])]
            numbers = {"parameter": w.name, "value": w.value, "deviation": w.deviation}
            measured = f"{with_deviation(w.value, w.deviation)} {unit}"
            value, deviation = estimate.value_and_deviation(column)
            text = f"weighed, {measured}, fitted {with_deviation(value, deviation)} {unit}"
            notes.append(Note(f"{w.name}: {text}", "weighed", **numbers, fitted=value))
            value, deviation = alone.value_and_deviation(column)
            deviation = float(np.hypot(deviation, np.linalg.norm(estimate.systematic[column])))
            apart = abs(w.value - value) / float(np.hypot(w.deviation, deviation))
            if apart > CONTRADICTED:
                text = (
                    f"{w.name} was weighed as {measured}; without that the fit has "
                    f"{with_deviation(value, deviation)} {unit}, {apart:.1f} joint deviations "
                    "away: check the unit, whether all that moves with the body was on the scale, "
                    "and the scale of the torques"
                )
                notes.append(Note(text, "weighed-contradicted", **numbers, alone=value))
        return notes

    def delay_sensitivity(self, equations: Reduced, estimate: Estimate, deviation: float) -> Array:
        """Change of parameters (n, 1) with one standard deviation [s] of the torques' delay."""
        if self.prior is None or not deviation:
            return np.zeros((self.base.robot.size, 0))
        size = len(equations.columns)
        both = estimate.noise.whitened_triangle_with_slope(equations)
        problem = self.problem(equations)
        r, rho = both[:size, :size], both[:size, size]
        objective, divergence = problem.problem(r, rho, estimate.prior_weight)
        # To first order, torques that are late by d are wrong by d times their slope.
        free, slope = problem.reduce(estimate.delta), deviation * both[:size, size + 1]
        return problem.elimination.T @ objective.response(free, divergence, slope)[:, None]

    def quick_beta(self, equations: Reduced) -> Array:
        """Base parameters for weights that depend on residuals, without a prior."""
        if isinstance(self.weights, str):
            return estimate_noise(equations, correlated=False)[1]
        return self.base.K @ self.least_squares(equations.triangle(self.weights)).delta

    def cross_validate(self, reduced: Reduced, noise: Noise | None = None) -> CrossValidation:
        """For every fold the model of the other folds, with all decisions.

        `noise`: default the kept one, else that of the log.
        """
        log_noise = noise or self.noise or estimate_noise(reduced)[0]
        minimiser = None if self.prior is None else self._minimiser(self.problem(reduced))

        def solve_fold(triangle: Triangle) -> Array:
            if minimiser is None:
                optimum = self.least_squares(triangle)
                return least_squares.regularise(optimum, triangle[2], self.slack).delta
            # Parts are sought from the whole, so that results do not depend on their order.
            if minimiser.near is None:
                minimiser.predict(log_noise.whitened_triangle(reduced))
            return replace(minimiser).predict(triangle)

        return CrossValidation(self.base, reduced, log_noise, solve_fold)

    def estimate_noise(self, reduced: Reduced) -> Noise:
        """The noise of a log around the estimate with the prior of a known weight."""
        return self._minimiser(self.problem(reduced)).estimate_noise(reduced)

    def follow(self, reduced: Reduced, near: Array | None = None) -> tuple[Minimiser, Array, Array]:
        """A minimiser for equations like these, the parameters (n,), and how they follow noise.

        The last is their covariance (n, n) were the noise of unit variance.
        """
        assert self.noise is not None  # kept
        problem = self.problem(reduced)
        minimiser = self._minimiser(problem, near)
        minimum, objective, divergence = minimiser.solve(*self.noise.whitened_triangle(reduced)[:2])
        covariance = objective.unit_noise_covariance(minimum.delta, divergence)
        return minimiser, problem.expand(minimum.delta), problem.full_covariance(covariance)

    def _minimiser(self, problem: EstimationProblem, near: Array | None = None) -> Minimiser:
        start = self.start(problem, near)
        assert isinstance(self.prior_weight, int | float)  # kept, or made for comparison
        return Minimiser(problem, float(self.prior_weight), start, self.solver, near)

    # -- steps of a fit ------------------------------------------------------------------------

    def _least_squares_problem(self, triangle: Triangle) -> least_squares.LeastSquares:
        base, r, rho = least_squares.with_weighed(self.base, *triangle[:2], self.weighed)
        return least_squares.LeastSquares.from_data(r, rho, base, self.feasible)

    def least_squares(self, triangle: Triangle) -> least_squares.FeasibleFit:
        """The optimum of feasible least squares."""
        return self._least_squares_problem(triangle).solve(self.solver)

    def _estimate_noise(self, equations: Reduced, minimiser: Minimiser) -> Noise:
        """The noise of the log, or one with the caller's weights of joints."""
        entropic, problem = minimiser, minimiser.problem
        # The weight that the minimiser begins with is one of the entropic prior.
        if problem.prior is not priors.PRIORS["entropic"]:
            problem = replace(problem, prior=priors.PRIORS["entropic"])
            entropic = replace(minimiser, problem=problem)
        noise = entropic.estimate_noise(equations)
        minimiser.near = entropic.near
        if isinstance(self.weights, str) and self.weights == "noise":
            return noise
        beta = estimate_noise(equations, correlated=False)[1]
        rms = equations.residuals(beta) / np.sqrt(max(equations.rows, 1))
        deviations = _floor_deviations(rms, equations)
        if isinstance(self.weights, str):
            return Noise(deviations**2, 0 * rms, noise.correlation)
        # The caller's weights are ratios of joints; residuals give their common scale.
        common = float(np.mean((self.weights * deviations)[measured_rows(equations)] ** 2))
        return Noise(common / self.weights**2, 0 * rms, noise.correlation)

    def _prior_weight(
        self, minimiser: Minimiser, triangle: Triangle
    ) -> tuple[float, float, tuple[tuple[float, float], ...]]:
        """The prior's weight, the one of the largest evidence, and the curve it was read from."""
        assert self.prior is not None
        minimum, problem, _ = minimiser.solve(*triangle[:2], NEARBY)
        known = self.prior.evidence(problem, minimum.delta)
        if known is None:
            weight = self.prior.weight if self.prior_weight is None else self.prior_weight
            if not isinstance(weight, int | float):
                raise InputError(
                    f"prior={self.prior.name!r} needs a number as prior_weight (the evidence of "
                    "this prior is not known)"
                )
            return float(weight), float(weight), ()
        best, curve = known
        if isinstance(self.prior_weight, int | float):
            return float(self.prior_weight), best, curve
        return best if self.prior_weight else self.prior.clip_weight(best), best, curve

    def _without_prior(self, equations: Reduced) -> Estimate:
        """Feasible least squares, Sousa and Cortesao (2014) eq. (64)-(75), and its slack."""
        notes = [*uncertified_notes(self.feasible)]
        noise, _ = estimate_noise(equations)
        by_noise = isinstance(self.weights, str) and self.weights == "noise"
        if by_noise:
            triangle, factors = noise.whitened_triangle(equations), noise.quick**-0.5
        else:
            equal = np.ones(len(equations.triangles))
            factors = equal if isinstance(self.weights, str) else self.weights
            triangle = equations.triangle(factors)
            if isinstance(self.weights, str):
                # Equal weights first: a joint's residual is not known before anything was fitted.
                beta = self.least_squares(triangle).beta
                rms = equations.residuals(beta) / np.sqrt(equations.rows)
                factors = 1.0 / _floor_deviations(rms, equations)
                triangle = equations.triangle(factors)
                text = "joints are weighted by the inverse of their residuals (WLS)"
                notes.append(Note(text, "wls"))
        optimum = self.least_squares(triangle)
        r, rho, residual = triangle
        solution = least_squares.regularise(optimum, residual, self.slack)
        measured = measured_rows(equations)
        rows = equations.rows * int(measured.sum())
        total = float(np.hypot(residual, np.linalg.norm(r @ solution.beta - rho)))
        if by_noise:
            total = np.sqrt(max(rows - len(rho), 0))  # whitened: effective rows of unit variance
        return Estimate(
            solution,
            solution.delta,
            np.nan,  # the residual's gap is proved on request, `FeasibleFit.gap`
            triangle,
            np.where(measured, factors, 0.0),
            noise,
            np.diag(standard_deviations(r, total, rows) ** 2),
            total / np.sqrt(max(rows - len(rho), 1)),
            notes=tuple(notes),
            optimum=optimum,
        )


def verify_minimum(
    minimum: Minimum, problem: EstimationProblem, equations: least_squares.LeastSquares
) -> least_squares.FeasibleFit:
    """A minimum as the answer in place of the optimum of these equations, verified exactly.

    Raises SolverError: when it breaks a constraint.
    """
    delta = minimum.delta
    # Joint terms alone have a finite size; those that are tied to a zero become zero, too.
    small = np.abs(delta) < NEGLIGIBLE_TERM * problem.scale.parameters
    delta = problem.expand(problem.reduce(np.where(np.isfinite(problem.sizes) & small, 0.0, delta)))
    if broken := problem.feasible.violations(delta):
        raise solve.solver_error(f"the answer violates {', '.join(broken)} in exact arithmetic", ())
    return least_squares.FeasibleFit(equations, delta, minimum.delta, ())


def _inconsistent_bodies(
    problem: EstimationProblem, triangle: Triangle, minimum: Minimum, weight: float
) -> tuple[str, ...]:
    """Bodies much farther from the description than the others; none under a quadratic prior."""
    if not problem.prior.is_entropic:
        return ()
    objective, divergence = problem.problem(*triangle[:2], weight)
    weights = objective.body_prior_weights(problem.reduce(minimum.delta), divergence)
    few = INCONSISTENT * min(divergence, priors.COVARIANCE_WEIGHT)
    # A block is named "inertia of link3", the note names the link.
    return tuple(name.split(" of ", 1)[-1] for name, body in weights.items() if body < few)


def _reference_values(robot: Robot, reference: Array | None) -> Array:
    """The robot's parameters (n,), with the inertials (bodies, 10) of a reference."""
    values = robot.values.copy()
    if reference is not None:
        values[robot.inertial_columns] = reference
    return values


def _check_weights(weights: Any, robot: Robot) -> str | Array:
    """The option `weights`: factors per joint that the caller gives, or how residuals decide."""
    if isinstance(weights, str):
        return weights
    if weights is None:
        return np.ones(robot.dof)
    if isinstance(weights, Mapping):
        out = np.ones(robot.dof)
        rows = {body.joint: row for body, row in robot.moving_bodies}
        for joint, factor in weights.items():
            if joint not in rows:
                hint = did_you_mean(joint, rows)
                raise InputError(
                    f"weights: there is no joint {joint!r} that moves by itself{hint}", joint=joint
                )
            out[rows[joint]] = factor
    else:
        out = np.asarray(weights, dtype=np.float64)
    if out.shape != (robot.dof,) or not (np.isfinite(out).all() and (out > 0).all()):
        raise InputError(f"weights must be {robot.dof} positive numbers, got {out.tolist()}")
    return out


def _floor_deviations(deviation: Array, equations: Reduced) -> Array:
    """Standard deviations of the joints' residuals, at least `WEIGHT_FLOOR` of their torques."""
    floor = WEIGHT_FLOOR * equations.torque_norms / np.sqrt(max(equations.rows, 1))
    return np.asarray(np.maximum(np.maximum(deviation, floor), 1e-150))
