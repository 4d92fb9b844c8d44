"""How equations are weighted, and what is solved with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.notes import Note
from feasid.errors import InputError, did_you_mean
from feasid.estimation.estimate import (
    ENTROPIC,
    Estimate,
    EstimationProblem,
    estimate_model,
    verify_model,
    within_convex,
)
from feasid.estimation.noise import Noise, estimate_noise, standard_deviations
from feasid.estimation.priors import (
    MASS_RATIO,
    WEIGHT,
    Prior,
    bounded_bodies,
    find_prior,
    with_bounds,
)
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.feasibility.least_squares import FeasibleFit, feasible_least_squares, regularise
from feasid.identifiability.base import BaseParameters
from feasid.regression.reduce import measured_rows
from feasid.regression.triangle import Reduced
from feasid.robot.description import Robot

WEIGHT_FLOOR = 1e-3
"""Smallest residual that weights a joint, as a share of its torque: noise-free logs stay finite."""

Triangle = tuple[Array, Array, float]


@dataclass(frozen=True, eq=False)
class EstimatorResult:
    """What came out, and of which equations.

    ``triangle`` is what was solved, ``weights`` (dof,) the factors on fast rows; ``covariance``
    (nb, nb) belongs to the printed base parameters; ``believed`` is the feasible set within what
    was believed besides, ``deviation`` that of a row of the triangle.
    """

    solution: FeasibleFit
    optimum: FeasibleFit
    triangle: Triangle
    weights: Array
    covariance: Array
    believed: FeasibleSet
    deviation: float = 1.0
    estimate: Estimate | None = None
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, eq=False)
class Estimator:
    """The choices of a fit, ready for any equations of its robot.

    Attributes
    ----------
    base : BaseParameters
    feasible : FeasibleSet
    reduced : Reduced
        The log, from which the sizes of joint terms follow.
    chosen : mapping
        `feasid.options.tables.FitOptions`, completed.
    factors : ndarray, shape (dof,), or None
        On the joints' equations; None when the log's own noise weights them.
    timing : float
        Deviation of the torques' delay [s].
    """

    base: BaseParameters
    feasible: FeasibleSet
    reduced: Reduced
    chosen: Mapping[str, Any]
    factors: Array | None
    timing: float = 0.0

    @classmethod
    def from_options(
        cls,
        chosen: Mapping[str, Any],
        base: BaseParameters,
        feasible: FeasibleSet,
        reduced: Reduced,
        timing: float = 0.0,
    ) -> Estimator:
        """An estimator with these options, whose weights are checked."""
        factors = _check_joint_weights(chosen["weights"], base.robot)
        return cls(base, feasible, reduced, chosen, factors, timing)

    def beta(self, equations: Reduced) -> Array:
        """A quick estimate, for weights that depend on residuals."""
        if self.factors is None:
            return estimate_noise(equations, correlated=False)[1]
        return self._weighted_fit(equations, self.factors)[0].beta

    def solve(self, equations: Reduced) -> EstimatorResult:
        """Estimate all parameters from these equations and verify the result."""
        prior = find_prior(self.chosen["prior"])
        if prior is None:
            return self._without_prior(equations)
        task = self.estimation_problem(prior)
        noise = self._noise(equations, task)
        triangle = noise.whitened_triangle(equations)
        optimum = self._least_squares(triangle)
        held = self.chosen["plausible"] and not self.chosen["mass"]
        found = estimate_model(
            equations,
            task,
            optimum.delta,
            weight=self.chosen["prior_weight"],
            plausible=held,
            noise=noise,
            timing=self.timing,
        )
        found = within_convex(found, task, triangle, optimum.delta, self.chosen["solver"])
        solution = verify_model(optimum, found.delta, task)
        K = self.base.K
        said = (*_belief_notes(found), _prior_note(found, prior.name))
        said += _uncertified_note(self.feasible)
        weights = 1.0 / np.sqrt(noise.quick) if self.factors is None else self.factors
        weights = np.where(measured_rows(equations), weights, 0.0)
        covariance = K @ found.covariance @ K.T
        believed = self.feasible
        if held and not self.feasible.equalities:
            kept = [b for b in task.plausible_bounds if b not in found.released]
            believed = with_bounds(self.feasible, kept)
        return EstimatorResult(
            solution, optimum, triangle, weights, covariance, believed, 1.0, found, said
        )

    def estimation_problem(self, prior: Prior) -> EstimationProblem:
        """What is sought, however the equations are weighted."""
        return EstimationProblem.from_reduced(
            self.reduced, self.base, self.feasible, self._reference(), prior
        )

    def _reference(self) -> Array | None:
        given, robot = self.chosen["reference"], self.base.robot
        if given is None:
            return None
        ten = np.asarray(given, dtype=np.float64)
        if ten.size != robot.inertial_columns.size or not np.isfinite(ten).all():
            raise InputError(
                f"reference must be ten finite numbers for each of {len(robot.bodies)} bodies, in "
                f"the order of robot.names; got {ten.size}"
            )
        out = np.zeros(robot.size)
        out[robot.inertial_columns.ravel()] = ten.ravel()
        return out

    def _noise(self, equations: Reduced, task: EstimationProblem) -> Noise:
        """The log's own, or one that weighs as the caller wants."""
        entropic = replace(task, prior=ENTROPIC)
        noise = entropic.noise(equations, WEIGHT, self._start(entropic, equations))
        if self.factors is None and self.chosen["weights"] == "noise":
            return noise
        factors = self.factors
        beta = estimate_noise(equations, correlated=False)[1]
        rms = equations.residuals(beta) / np.sqrt(max(equations.rows, 1))
        if factors is None:
            return Noise(_floor_deviations(rms, equations) ** 2, 0 * rms, noise.correlation)
        common = float(
            np.mean((factors * _floor_deviations(rms, equations))[measured_rows(equations)] ** 2)
        )
        return Noise(common / factors**2, 0 * rms, noise.correlation)

    def _start(self, task: EstimationProblem, equations: Reduced) -> Array:
        """A strictly feasible model."""
        if not self.feasible.equalities and self.feasible.contains_strictly(task.reference):
            return task.reference
        return self._weighted_fit(equations, np.ones(len(equations.triangles)))[0].delta

    def _least_squares(self, triangle: Triangle) -> FeasibleFit:
        """The optimum of feasible least squares."""
        solver = self.chosen["solver"]
        return feasible_least_squares(*triangle[:2], self.base, self.feasible, solver=solver)

    def _weighted_fit(self, equations: Reduced, factors: Array) -> tuple[FeasibleFit, Triangle]:
        triangle = equations.triangle(factors)
        return self._least_squares(triangle), triangle

    def _without_prior(self, equations: Reduced) -> EstimatorResult:
        """Feasible least squares, Sousa and Cortesao (2014) eq. (64)-(75), and its slack."""
        said = [*_uncertified_note(self.feasible)]
        if self.factors is None and self.chosen["weights"] == "noise":
            noise, _ = estimate_noise(equations)
            triangle = noise.whitened_triangle(equations)
            weights = 1.0 / np.sqrt(noise.quick)
            optimum = self._least_squares(triangle)
        else:
            weights = np.ones(len(equations.triangles)) if self.factors is None else self.factors
            optimum, triangle = self._weighted_fit(equations, weights)
            if self.factors is None:
                weights = 1.0 / _floor_deviations(
                    equations.residuals(optimum.beta) / np.sqrt(equations.rows), equations
                )
                optimum, triangle = self._weighted_fit(equations, weights)
                text = "joints are weighted by the inverse of their residuals (WLS)"
                said.append(Note(text, "wls"))
        solution = regularise(*triangle, self.base, self.feasible, optimum, self.chosen["slack"])
        r, rho, residual = triangle
        weights = np.where(measured_rows(equations), weights, 0.0)
        rows = equations.rows * int(measured_rows(equations).sum())
        total = float(np.hypot(residual, np.linalg.norm(r @ solution.beta - rho)))
        if self.factors is None and self.chosen["weights"] == "noise":
            total = np.sqrt(max(rows - len(rho), 0))  # whitened: effective rows of unit variance
        deviation = standard_deviations(r, total, rows)
        own = total / np.sqrt(max(rows - len(rho), 1))
        return EstimatorResult(
            solution,
            optimum,
            triangle,
            weights,
            np.diag(deviation**2),
            self.feasible,
            own,
            notes=tuple(said),
        )


def add_covariance(
    result: EstimatorResult, spread: Array, base: BaseParameters, *, foretold: bool = False
) -> EstimatorResult:
    """The result with ``spread @ spread.T`` (n, n) more in the covariance of its parameters.

    Parameters
    ----------
    result : EstimatorResult
    spread : ndarray, shape (n, k)
        How standard parameters follow k independent errors of unit variance that all rows share.
    base : BaseParameters
    foretold : bool
        Whether errors that are foretold of other motions count it: not what is as wrong there.
    """
    if result.estimate is None or not spread.shape[1]:
        return result
    own = np.asarray(base.K, dtype=np.float64) @ spread
    found, more = result.estimate, spread @ spread.T
    estimate = replace(
        found,
        covariance=found.covariance + more,
        foretelling=found.foretelling + more if foretold else found.foretelling,
        shared=np.hstack([found.shared, spread]),
    )
    return replace(result, covariance=result.covariance + own @ own.T, estimate=estimate)


def _check_joint_weights(weights: Any, robot: Robot) -> Array | None:
    """Factors per joint that the caller gives; None when residuals decide."""
    if isinstance(weights, str):
        if weights not in ("noise", "wls"):
            raise InputError(f"weights {weights!r} is not 'noise', 'wls', a mapping or an array")
        return None
    if weights is None:
        return np.ones(robot.dof)
    if isinstance(weights, Mapping):
        out = np.ones(robot.dof)
        rows = {body.joint: own for body, own in robot.moving_bodies}
        for joint, factor in weights.items():
            if joint not in rows:
                hint = did_you_mean(str(joint), rows)
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
    """Deviations of the joints' residuals, not below `WEIGHT_FLOOR` of their torques."""
    floor = WEIGHT_FLOOR * equations.torque_norms / np.sqrt(max(equations.rows, 1))
    return np.asarray(np.maximum(np.maximum(deviation, floor), 1e-150))


def _belief_notes(found: Estimate) -> list[Note]:
    """Bodies at their plausible bounds, or beyond them, and what the bounds cost."""
    paid = f"at a cost of {found.price:.2g} in the squared whitened residual"
    kept, left = found.bounded, found.released
    said = [
        (
            "mass-bound",
            bounded_bodies(kept, "mass"),
            f"at its bound, {MASS_RATIO:g} times the description's or a third of it (plausible="
            f"True), {paid}; no action needed: the log allows it",
        ),
        (
            "shape-bound",
            bounded_bodies(kept, "shape"),
            f"its centre is at the edge of the collision or visual shape (plausible=True), {paid}; "
            "no action needed: the log allows it",
        ),
        (
            "mass-released",
            bounded_bodies(left, "mass"),
            f"more than {MASS_RATIO:g} times the description's or less than a third: the data "
            f"reject the bound (it would cost {found.price:.3g} in the squared whitened residual); "
            "check the masses in the description",
        ),
        (
            "shape-released",
            bounded_bodies(left, "shape"),
            "its centre is outside its collision or visual shape: the data reject the bound (it "
            f"would cost {found.price:.3g} in the squared whitened residual); check the "
            "description",
        ),
    ]
    return [
        Note(f"mass of {', '.join(bodies)}: {text}", code, bodies=bodies, price=found.price)
        for code, bodies, text in said
        if bodies
    ] + _doubt_notes(found)


def _doubt_notes(found: Estimate) -> list[Note]:
    """Bodies whose description the log contradicts."""
    if not found.doubted:
        return []
    text = (
        f"inertials of {', '.join(found.doubted)}: the log contradicts the description of these "
        "bodies, or of neighbours that move with them, more than of the others; deviations of "
        "their parameters are wider for it"
    )
    return [Note(text, "description-doubted", bodies=found.doubted)]


def _uncertified_note(feasible: FeasibleSet) -> tuple[Note, ...]:
    """Which constraints no certificate covers."""
    if not feasible.convex:
        return ()
    listed = ", ".join(c.name for c in feasible.convex)
    text = "kept in floating point, outside the certificate, because not affine"
    return (Note(f"{listed}: {text}", "outside-certificate"),)


def _prior_note(found: Estimate, kind: str) -> Note:
    text = f"{kind} prior of weight {found.weight:.3g} in units of the whitened residual"
    if found.curve and found.evident != found.weight:
        text += f" (the log's evidence asks for {found.evident:.3g})"
    return Note(text, "prior", weight=found.weight, evident=found.evident)
