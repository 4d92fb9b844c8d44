"""A design problem from the caller's options: robot, limits, unknowns, objective, information."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from feasid.applications.excitation import basis as bases
from feasid.applications.excitation.bounds import Bounds, resolve_bounds
from feasid.applications.excitation.certificate import weighted_regressor
from feasid.applications.excitation.constraint_check import largest_feasible_scale, scale_to_limits
from feasid.applications.excitation.problem import (
    CoefficientCoordinates,
    ConditionNumber,
    LogDet,
    Objective,
    PostureConstraint,
    PredictionVariance,
    Problem,
    WeightedObjectives,
)
from feasid.applications.excitation.regressor_gradient import MotionRegressor
from feasid.applications.excitation.space import find_rest_posture, posture_constraints
from feasid.applications.excitation.trajectory import Trajectory, sample_times
from feasid.core.arrays import Array
from feasid.core.errors import InputError, did_you_mean
from feasid.identification.regression.reduce import restrict_terms
from feasid.identification.regression.triangle import Reduced, fingerprint_of
from feasid.parameters.identifiability.base import BaseParameters, base_parameters
from feasid.robot.description import Robot
from feasid.robot.formats.fit_robot import with_fit_terms

Given: TypeAlias = Reduced | Trajectory | Sequence[Reduced | Trajectory] | None


def equations_from_other_data(
    given: Given, prior: npt.ArrayLike | None, base: BaseParameters, noise: Array
) -> tuple[Array, Array | None]:
    """Equations from other data with unit noise (m, nb), and the prior's standard deviations.

    A log whose equations were filtered and thinned has less noise in each: by the root of rows over
    samples, for white noise. Joint terms that a log was reduced with and the motion is not designed
    for are left out.
    """
    robot, size = base.robot, base.size
    columns = base.independent.tolist()
    parts = [np.zeros((0, size))]
    # One log or one motion needs no list.
    items: Any = [] if given is None else given
    for item in items if isinstance(items, list | tuple) else [items]:
        if isinstance(item, Reduced):
            equations = item
            if item.fingerprint != fingerprint_of(robot, columns):
                source = item.robot
                if source is None or _geometry_fingerprint(source) != _geometry_fingerprint(robot):
                    raise InputError(
                        "given belongs to another robot: geometry, gravity or joint terms differ; "
                        "pass the robot that the log was reduced with, with its joint terms"
                    )
                try:
                    equations = restrict_terms(item, source, base)
                except InputError as error:
                    raise InputError(
                        "given belongs to another robot or lacks joint terms of this one: "
                        f"{error}; reduce the log with these terms, or pass the log's terms here: "
                        "friction=..., drive_inertia=..."
                    ) from None
            r, _, _ = equations.triangle(1 / noise)
            parts.append(r * np.sqrt(equations.samples / equations.rows))
        else:
            if fingerprint_of(item.robot, columns) != fingerprint_of(robot, columns):
                raise InputError("given holds a motion of another robot or other joint terms")
            parts.append(weighted_regressor(robot, columns, (item.q, item.dq, item.ddq), 1 / noise))
    if prior is None:
        return np.vstack(parts), None
    deviations = np.asarray(prior, dtype=np.float64)
    if deviations.shape != (size,) or not (deviations > 0).all():
        raise InputError(
            f"prior must be {size} positive standard deviations, one per base parameter"
        )
    return np.vstack([*parts, np.diag(1 / deviations)]), deviations


def _geometry_fingerprint(robot: Robot) -> str:
    return fingerprint_of(replace(robot, drives=(), load_model=None), ())


OBJECTIVES = ("logdet", "condition", "prediction", "gains")

GAIN_FACTOR = 0.2
"""Standard deviation of the logarithm of all gains' common factor, which no motion determines: that
of `feasid.identification.servos.gains.FACTOR_SHARE`; ratios of gains do not depend on it."""

MOST_HARMONICS = 1000  #: Beyond it the coefficients alone fill the memory.
SAMPLES_PER_HARMONIC = 12  #: Times per harmonic at which the regressor is formed while searching.

RELATIVE_SMOOTHING_WIDTH = 0.08
"""Width of Coulomb friction's smoothed sign, as a share of half the velocity range: with a
narrower one few samples lie in the change, and each of them makes a local minimum of its own."""

RANDOM_TASKS = 10  #: Number of random motions that are the default task.


@dataclass(frozen=True, eq=False)
class DesignSetting:
    """The robot, its base parameters, limits and constraints, and a posture that satisfies them."""

    robot: Robot
    base: BaseParameters
    bounds: Bounds
    constraints: tuple[PostureConstraint, ...]
    posture: Array
    notes: tuple[str, ...]

    @property
    def columns(self) -> tuple[int, ...]:
        """Standard parameters of the base regressor's columns."""
        return tuple(self.base.independent.tolist())


def design_setting(
    robot: Robot,
    friction: Sequence[str] | None,
    drive_inertia: bool | None,
    limits: Mapping[str, Any],
    space: Mapping[str, Any],
    seed: int,
) -> DesignSetting:
    """The robot with the joint terms of a fit, its limits, and a posture that keeps all of them."""
    model, assumed = with_fit_terms(robot, friction, drive_inertia)
    dynamics = MotionRegressor(model, ())
    bounds, assumptions = resolve_bounds(model, **limits)
    notes: list[str] = [*assumed, *assumptions]
    base = base_parameters(model)
    constraints = posture_constraints(dynamics, bounds, notes=notes, **space)
    posture = find_rest_posture(dynamics, bounds, constraints, np.random.default_rng(seed))
    return DesignSetting(model, base, bounds, constraints, posture, tuple(notes))


def make_basis(family: str, duration: float, harmonics: int, slow: float) -> bases.Basis:
    """The family of trajectories of this name."""
    basis: bases.Basis = bases.Fourier(duration, harmonics)
    if family == "spline":
        basis = bases.Splines(duration, basis.size)
    return bases.SlowedBasis(basis, slow) if slow else basis


def make_problem(
    setting: DesignSetting,
    basis: bases.Basis,
    harmonics: int,
    rest: bool,
    noise: Array,
    known: Array,
    prior_deviations: Array | None,
    rate: float,
    expected: Array | None = None,
) -> Problem:
    """The problem of a setting, with equations from other data and the prior's deviations.

    With expected base parameters, `known` has columns of gains after theirs.
    """
    # Friction's sign is smoothed by the size of velocities.
    robot, (low, high) = setting.robot, setting.bounds.velocity
    speed = np.where(np.isfinite(high - low), 0.5 * (high - low), 1.0)
    widths = [RELATIVE_SMOOTHING_WIDTH * float(np.abs(robot.coupling(k)) @ speed)
              for k in range(len(robot.drives))]  # fmt: skip
    scale = np.ones(known.shape[1])
    if prior_deviations is not None:
        scale[: len(prior_deviations)] = prior_deviations
    scaled = known * scale
    samples = len(sample_times(basis.period, rate))
    return Problem(
        basis,
        CoefficientCoordinates.around_posture(basis, setting.bounds, setting.posture, rest),
        MotionRegressor(robot, setting.columns, np.array(widths)),
        setting.bounds,
        setting.constraints,
        SAMPLES_PER_HARMONIC * max(harmonics, 3),
        1 / noise,
        scaled.T @ scaled / samples,
        scale,
        expected,
    )


def expected_gains(setting: DesignSetting, known: Array) -> tuple[Array, Array, Array]:
    """Expected base parameters, `known` with columns of gains, and the squared ratios of gains.

    Raises InputError: the description lacks inertials.
    """
    base, dof = setting.base, setting.robot.dof
    inertial = setting.robot.inertial_columns.ravel()
    if not np.isfinite(setting.robot.values[inertial]).all():
        raise InputError('objective="gains" needs the description\'s inertials: they are lacking')
    expected = np.asarray(base.K, dtype=np.float64) @ np.nan_to_num(setting.robot.values)
    information = np.pad(known, ((0, 1), (0, dof)))
    # One more equation: the mean of the gains' logarithms is known to `GAIN_FACTOR`.
    information[-1, -dof:] = 1.0 / (GAIN_FACTOR * dof)
    ratios = np.zeros((base.size + dof,) * 2)
    # The variance of these logarithms about their mean, averaged over joints.
    ratios[-dof:, -dof:] = (np.eye(dof) - 1.0 / dof) / dof
    return expected, information, ratios


def random_motion(problem: Problem, rng: np.random.Generator) -> Array:
    """A random start: each basis function about half as large as the limits allow."""
    joints, unknowns = problem.coordinates.shape
    z: Array = 0.5 / np.sqrt(unknowns) * rng.standard_normal(joints * unknowns)
    # Limits of joints hold at this size mostly; distances and torques need not.
    if problem.constraints or np.isfinite(problem.bounds.torque).any():
        t = bases.times_within_period(problem.basis, problem.samples)
        return (largest_feasible_scale(problem, z, t) or 1.0) * z
    return z


def needs_task(weights: Mapping[str, float], task: Any) -> bool:
    """Whether these objectives, which the caller names and weighs, need a task.

    Raises InputError: they do not exist or exclude each other, or a task is given without need.
    """
    for name in weights:
        if name not in OBJECTIVES:
            hint = did_you_mean(name, OBJECTIVES)
            raise InputError(f"objective {name!r} is not one of {OBJECTIVES}{hint}")
    if {"gains", "prediction"} <= weights.keys():
        raise InputError("objective has gains and prediction: give one of them", option="objective")
    if not weights or not all(w > 0 for w in weights.values()):
        raise InputError("objectives need positive weights")
    if task is not None and "prediction" not in weights:
        raise InputError('task is for objective="prediction"')
    return "prediction" in weights


def task_information(
    task: Any, problem: Problem, setting: DesignSetting, rate: float, rng: np.random.Generator
) -> Array:
    """Mean of Y'Y over the task's samples, in the problem's units."""
    if task is None:
        t = sample_times(problem.basis.period, rate)
        drawn = [scale_to_limits(problem, random_motion(problem, rng)) for _ in range(RANDOM_TASKS)]
        motions = [motion_at(problem, z, t) for z in drawn]
    else:
        motions = task_motions(task)
    robot, columns = setting.robot, setting.columns
    blocks = [weighted_regressor(robot, columns, m, problem.weights) for m in motions]
    y = np.vstack(blocks) * problem.scale
    return np.asarray(y.T @ y / len(y))


def motion_at(problem: Problem, z: Array, t: Array) -> tuple[Array, Array, Array]:
    """q, dq, ddq at these times, each (samples, dof)."""
    q, dq, ddq = problem.basis.matrices(t)[:3] @ problem.coordinates.coefficients(z)
    return q, dq, ddq


def task_motions(task: Any) -> list[tuple[Array, Array, Array]]:
    """The motions of a task as arrays (samples, dof)."""
    if isinstance(task, Trajectory):
        return [(task.q, task.dq, task.ddq)]
    if isinstance(task, tuple) and len(task) == 3 and not isinstance(task[0], Trajectory):
        q, dq, ddq = (np.asarray(x, dtype=np.float64) for x in task)
        return [(q, dq, ddq)]
    return [motion for part in task for motion in task_motions(part)]


@dataclass(frozen=True, eq=False)
class ObjectiveFamily:
    """Weighted objectives as a function of the exponent that smooths the condition number."""

    weights: tuple[tuple[str, float], ...]
    task: Array | None

    def __call__(self, power: float) -> Objective:
        """The objective for this exponent."""
        made: dict[str, Objective] = {"condition": ConditionNumber(power), "logdet": LogDet()}
        if self.task is not None:  # of torques on a task, or of ratios of gains
            made |= dict.fromkeys(("prediction", "gains"), PredictionVariance(self.task))
        parts = tuple((weight, made[name]) for name, weight in self.weights)
        return parts[0][1] if len(parts) == 1 and parts[0][0] == 1 else WeightedObjectives(parts)
