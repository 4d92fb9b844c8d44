"""The values of a fit and the numbers that follow from them."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, cast

import numpy as np

import feasid
from feasid.core.arguments import Positive, checked_methods
from feasid.core.arrays import Array
from feasid.core.errors import CertificateError, FeasidError, InputError, SolverError
from feasid.core.memo import compute_once
from feasid.core.notes import Note
from feasid.core.threads import one_thread
from feasid.identification.effects.calibration import Calibration
from feasid.identification.effects.table import ASSUMED, EffectResult
from feasid.identification.estimation.estimate import Estimate
from feasid.identification.estimation.estimator import Estimator
from feasid.identification.estimation.held_out import CrossValidation
from feasid.identification.estimation.noise import least_squares
from feasid.identification.estimation.priors import GaussianPrior
from feasid.identification.regression.reduce import independent_columns
from feasid.identification.regression.rows import RowFormer, RunRows
from feasid.identification.regression.triangle import Reduced, relative_errors
from feasid.logs.floating import robot_floats
from feasid.logs.motion import Run
from feasid.logs.recording import Recording, content_digest
from feasid.options.complete import check_options
from feasid.options.tables import LogOptions
from feasid.parameters.feasibility import problems
from feasid.parameters.feasibility.constraints.sets import FeasibleSet
from feasid.parameters.feasibility.least_squares import FeasibleFit
from feasid.parameters.identifiability.base import BaseParameters, base_parameters
from feasid.robot.description import Robot
from feasid.robot.inertia import UPPER, to_mass_com_inertia
from feasid.robot.joint_terms import DRIVE_SYMBOLS
from feasid.robot.known import exact_values

if TYPE_CHECKING:
    import pandas as pd

    from feasid.identification.assessment.contact_errors import ErrorLaw
    from feasid.identification.assessment.evidence import FitEvidence
    from feasid.identification.assessment.quality import Quality, Uses
    from feasid.identification.assessment.residuals import Structure
    from feasid.identification.assessment.rows import HeldOutRows
    from feasid.identification.effects.log_differences import LogComparison
    from feasid.identification.servos.gains import ServoFit
    from feasid.identification.uncertainty.posterior import Posterior
    from feasid.identification.uncertainty.ranges import ResidualRegion
    from feasid.parameters.feasibility.proof.claim import Certificate

UNPROVED = 1e-3
"""Largest share of the squared residual between the proved bound and the smallest one found."""

SIMULATED, WINDOWS, STEP = 0.1, 10, 5e-3
"""Windows that are simulated for the table of uses: length [s], number, and largest step [s]."""


@dataclass(frozen=True, eq=False)
class LogEvidence:
    """Evidence from the log's samples, kept for a fit that was saved without them."""

    evidence: FitEvidence | None = None  #: errors on held-out parts; None of files of before
    structure: tuple[Structure, ...] = ()  #: structure in the residuals, likewise
    contact_errors: ErrorLaw | None = None  #: errors of an observer at its default gain
    simulated: Array | None = None  #: deviations after `SIMULATED` [rad or m]


@checked_methods
@dataclass(frozen=True, eq=False, repr=False)
class FittedModel:
    """Decisions and estimates of a fit, and numbers computed from them."""

    description: Robot  #: what went in, with the joint terms that were fitted
    estimator: Estimator  #: decisions about the model
    estimate: Estimate  #: parameters, their covariance, noise, prior and bounds
    reduced: Reduced  #: the log, its torques shifted by `torque_shift`
    equations: Reduced  #: what was fitted: `reduced`, or with robust weights
    notes: tuple[Note, ...] = ()  #: assumptions, derived signals, filters and rows left out
    log_options: Mapping[str, Any] = field(default_factory=dict)  #: how the log was prepared
    options: Mapping[str, Any] = field(default_factory=dict)  #: `FitOptions`, all of them
    torque_shift: float = 0.0  #: of `reduced`, added to the delay in `log_options` [s]
    calibration: Calibration = field(default_factory=Calibration)  #: errors of the log
    selected: tuple[EffectResult, ...] = ()  #: rows of `selection`
    servo: ServoFit | None = None  #: of logs that have commands in place of torques
    logs: tuple[Recording, ...] = ()  #: empty for reduced data and after `load`
    saved: LogEvidence | None = None  #: in place of the logs, after `load`
    comparison: LogComparison | None = None  #: of several logs with each other; None for one log
    made: Mapping[str, Any] = field(default_factory=dict)  #: versions, time and hashes of a file
    #: the log's equations without the errors that were corrected; empty where it has none in memory
    rows: tuple[RunRows, ...] = field(default=(), repr=False)

    @property
    def delay(self) -> float:
        """Time by which the log's torques are behind its motion, corrected; negative: ahead [s].

        It includes the option `delay`; delays of single joints are in `calibration`.
        """
        return self.torque_shift - float(self.log_options.get("delay") or 0.0)

    @property
    def selection(self) -> pd.DataFrame:
        """Everything that the search tested; effects that entered the fit come first.

        Returns
        -------
        DataFrame
            A row per effect and joint: effect, joint, value and deviation in `unit`, gain (share by
            which held-out errors fall, of all joints that were tried together), certainty (its
            deviations over blocks of the log), entered, and why not.
        """
        import pandas as pd

        columns = ["effect", "joint", "value", "deviation", "unit"]
        columns += ["gain", "certainty", "entered", "why"]
        rows = []
        for r in self.selected:
            value, deviation = (r.at.effect.factor * x[0] for x in (r.value, r.deviation))
            numbers = value, deviation, r.at.effect.unit, r.gain, r.certainty
            rows.append([r.at.kind, r.joint, *numbers, r.entered, r.why])
        return pd.DataFrame(rows, columns=columns)

    # -- parameters ----------------------------------------------------------------------------

    @cached_property
    def robot(self) -> Robot:
        """The robot with the identified parameters, ready for `feasid.inverse_dynamics`."""
        return self.description.with_values(self.delta)

    @property
    def base(self) -> BaseParameters:
        """Base parameters of the robot."""
        return self.estimator.base

    @property
    def feasible(self) -> FeasibleSet:
        """Consistent bodies, and the given constraints."""
        return self.estimator.feasible

    @property
    def plausible_set(self) -> FeasibleSet:
        """The same within plausible bounds, too, unless the log rejects them."""
        return self.estimator.plausible_set

    @property
    def solution(self) -> FeasibleFit:
        """The solution with its verification."""
        return self.estimate.solution

    @cached_property
    @one_thread()
    def optimum(self) -> FeasibleFit:
        """The optimum of feasible least squares, before `slack` or a prior."""
        return self.estimate.optimum or self.estimator.least_squares(self.triangle)

    @property
    def triangle(self) -> tuple[Array, Array, float]:
        """The weighted equations that were solved: R (nb, nb), rho (nb,) and the residual."""
        return self.estimate.triangle

    @property
    def weights(self) -> Array:
        """Factors on the joints' equations, of rows that are not slow, shape (dof,)."""
        return self.estimate.weights

    @property
    def covariance(self) -> Array:
        """Covariance of the base parameters as they are printed, shape (nb, nb)."""
        return self.estimate.base_covariance

    @property
    def delta(self) -> Array:
        """All standard parameters, shape (n,), in the order of ``robot.names``."""
        return self.solution.delta

    @cached_property
    def beta(self) -> Array:
        """Base parameters, shape (nb,)."""
        return np.asarray(self.base.K @ self.delta)

    @cached_property
    def unknowns(self) -> BaseParameters:
        """Base parameters of the unknown parameters, without known and tied ones."""
        ties: dict[str, Any] = {n: self.options.get(n) or () for n in ("equal", "mirrored")}
        ties["known"] = exact_values(self.options.get("known"))
        if not any(ties.values()):
            return self.base
        return base_parameters(self.description, measured=self.base.experiment.measured, **ties)

    @cached_property
    def base_table(self) -> pd.DataFrame:
        """Base parameters: value, standard deviation and relative deviation [%].

        The deviation is that of the printed value, given the joint terms that are there; of terms
        that the log itself chose it is too small. With a prior `EntropicProblem.covariance`, which
        counts effective rows and what the prior holds; without one eq. (81)-(83) of Sousa and
        Cortesao (2014) for the weighted equations, a lower bound where rows are not independent.
        ``ols`` is weighted least squares, which neither feasibility nor a prior constrains.
        """
        import pandas as pd

        r, rho, _ = self.triangle
        deviation = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = 100 * deviation / np.abs(self.beta)
        columns = {"value": self.beta, "std": deviation, "relative_std_percent": relative}
        columns["ols"] = least_squares(r, rho)[0]
        return pd.DataFrame(columns, index=pd.Index(self.base.expressions, name="base parameter"))

    @cached_property
    def bodies(self) -> pd.DataFrame:
        """Per body: mass [kg], centre of mass [m], inertia about it [kg m^2]; none if massless."""
        import pandas as pd

        robot = self.robot
        heavy = [i for i, body in enumerate(robot.bodies) if not body.massless]
        mass, com, inertia = to_mass_com_inertia(robot.values[robot.inertial_columns[heavy]])
        columns = {"mass": mass} | {f"com_{a}": com[:, k] for k, a in enumerate("xyz")}
        columns |= {f"I{'xyz'[r]}{'xyz'[c]}": inertia[:, r, c] for r, c in UPPER}
        names = [robot.bodies[i].name for i in heavy]
        return pd.DataFrame(columns, index=pd.Index(names, name="body"))

    @cached_property
    def joint_terms(self) -> pd.DataFrame:
        """Per drive: drive inertia and friction coefficients; NaN where a term is not fitted."""
        import pandas as pd

        rows = {
            drive.name: {s: self.robot.values[c] for s, c in self.robot.drive_columns(k).items()}
            for k, drive in enumerate(self.robot.drives)
        }
        frame = pd.DataFrame.from_dict(rows, orient="index", columns=[*DRIVE_SYMBOLS])
        return frame.rename_axis(index="drive").dropna(axis="columns", how="all")

    def problem(self) -> Any:
        """The convex program whose optimum the fit reports, as a `cvxpy.Problem`.

        Half the squared norm of the whitened triangle plus, with a prior, its weight times the
        divergence from the reference (``log_det``); without one the norm that
        `feasid.parameters.feasibility.least_squares.feasible_least_squares` minimises, before
        `slack`. There is a variable in SI per body and drive: ``problem.var_dict["link3"].value``
        holds Lxx Lxy Lxz Lyy Lyz Lzz lx ly lz m. The parameter "units" scales them for a solver.

        Returns
        -------
        cvxpy.Problem
        """
        if self.estimator.prior is None:
            within = replace(self.solution.problem, feasible=self.plausible_set)
            program, elimination = within.program()
        else:
            problem = self.estimator.problem(self.equations)
            program = problem.program(self.triangle[:2], self.estimate.prior_weight)
            elimination = problem.elimination
        return problems.name_variables(program, self.description, elimination.T, elimination.fixed)

    @cached_property
    def certificate(self) -> Certificate:
        """Exact proof that the identified parameters are feasible; see its ``verify``."""
        from feasid.parameters.feasibility.check import check

        certificate = check(self, feasible=self.feasible).certificate
        if certificate is None:
            raise CertificateError("the identified parameters could not be certified")
        return certificate

    # -- quality -------------------------------------------------------------------------------

    @cached_property
    def condition_number(self) -> float:
        """Condition number of the regression matrix of the fitted log."""
        return float(np.linalg.cond(self.reduced.triangle()[0]))

    @property
    def optimality(self) -> Certificate | None:
        """Proof that no feasible model fits the log much better; None when there is none."""
        return self.optimum.certify(self.triangle[2])

    @property
    def best_fitting(self) -> FeasibleFit:
        """The verified model of the smallest residual: the optimum, or the solution."""
        return min(self.optimum, self.solution, key=lambda model: model.objective)

    @cached_property
    def price(self) -> float:
        """Relative increase of the residual over the smallest that is possible feasibly.

        NaN where it is not proved that no feasible model has a squared residual that is smaller
        than the smallest one found by more than the share `UNPROVED`.
        """
        unexplained, least = self.triangle[2] ** 2, self.best_fitting.objective
        if not least + unexplained <= (1.0 + UNPROVED) * (self.best_fitting.floor + unexplained):
            return np.nan
        return float(np.sqrt((self.solution.objective + unexplained) / (least + unexplained))) - 1.0

    @cached_property
    @one_thread()
    def evidence(self) -> FitEvidence:
        """Errors that the log predicts for other motions, computed once."""
        if self.saved is not None and self.saved.evidence is not None:
            evidence = self.saved.evidence
            return replace(evidence, notes=self.notes, assumed=self.assumed_gains)
        from feasid.identification.assessment.compared_errors import held_out_errors
        from feasid.identification.assessment.evidence import gather

        models = self._cross_validation
        errors, covariance = held_out_errors(models, self.beta), self.prediction_covariance
        evidence = gather(self._rows, models, errors, self.robot, self.description, covariance)
        structure = evidence.structure if self.saved is None else self.saved.structure
        return replace(evidence, notes=self.notes, structure=structure, assumed=self.assumed_gains)

    @property
    def assumed_gains(self) -> tuple[str, ...]:
        """Joints whose torque gain the log does not tell: it left the prior as wide as it was."""
        if self.servo is not None:
            return self.servo.untold
        gains = [e for e in self.calibration.entries if e.at.kind == "gain"]
        return tuple(e.joint for e in gains if e.why == ASSUMED)

    @cached_property
    def _rows(self) -> HeldOutRows | None:
        """The log's equations row by row; None where they are not in memory."""
        if robot_floats(self.robot):
            return None
        from feasid.identification.assessment.rows import HeldOutRows

        rows, cutoff = self.rows, self.reduced.cutoff
        if not rows and cutoff:
            former = RowFormer(self.base.robot, independent_columns(self.base), cutoff)
            runs = (r for log in self.logs if not log.streamed for r in runs_as_fitted(self, log))
            rows = tuple(x for run in runs if (x := former.rows_of(run)) is not None)
        return HeldOutRows.from_rows(self._cross_validation, rows, self.torque_shift)

    @cached_property
    def quality(self) -> Quality:
        """The worse of gravity compensation and feed-forward, and why; see `uses`."""
        from feasid.identification.assessment.quality import judge

        return judge(self.evidence)

    @property
    def uses(self) -> pd.DataFrame:
        """Grade, number, unit, worst joint and reason of each use of the fit.

        Grades are "yes", "with care", "no" and "not known"; simulation and masses have none.
        Errors are those of models of four fifths of the log on the other one, with everything that
        the fit decided.
        """
        return self._uses.table()

    @property
    def uses_by_joint(self) -> pd.DataFrame:
        """The same per joint: errors, holding friction and effort limits [N m or N]."""
        return self._uses.by_joint()

    @cached_property
    @one_thread()
    def _uses(self) -> Uses:
        from feasid.identification.assessment.contact_errors import GAIN
        from feasid.identification.assessment.quality import KNOWN, Uses, push_felt, thresholds

        push, limits = np.nan, np.full(self.robot.dof, np.nan)
        with suppress(InputError):  # logs that do not show it, and robots without an observer
            limits = thresholds(self.error_law(GAIN))
            push = push_felt(self.robot, self.evidence, limits)
        known = 0
        if (covariance := self.estimate.covariance) is not None:
            # Rounding may leave a variance of nothing below zero.
            mass = self.robot.inertial_columns[:, 9]
            deviation = np.sqrt(np.maximum(np.diag(covariance)[mass], 0.0))
            known = int(np.sum(deviation < KNOWN * self.delta[mass]))
        return Uses(self.quality, push, limits, self.simulated, known)

    @cached_property
    def simulated(self) -> Array:
        """Deviations within `SIMULATED` seconds, driven by torques alone, (dof,); NaN: unknown."""
        from feasid.identification.assessment.simulation import SimulationWindows

        unknown = np.full(self.robot.dof, np.nan)
        if self.saved is not None:
            return unknown if self.saved.simulated is None else self.saved.simulated
        if not self.logs or self.logs[0].streamed:
            return unknown
        with suppress(FeasidError):  # of loops, floating bases and short logs
            motion = self.logs[0].motion(self.robot, **self.log_options)
            windows = SimulationWindows.from_motion(motion, (SIMULATED,), WINDOWS, most=STEP)
            return np.asarray(windows.measured_torque_errors(self.robot)[0])
        return unknown

    @cached_property
    def _cross_validation(self) -> CrossValidation:
        """Models of all folds of the log but one."""
        noise = None if self.estimator.prior is None else self.estimate.noise
        return self.estimator.cross_validate(self.reduced, noise)

    def error_law(self, gain: Positive) -> ErrorLaw:
        """Errors of an observer with this `gain` [1/s] without contact, see `ErrorLaw`.
        `InputError`: parts of the log that were not fitted do not show it.
        """
        from feasid.identification.assessment.contact_errors import measure_error_law

        if robot_floats(self.robot):
            raise InputError(
                f"external torques are observed of robots with a fixed base: {self.robot.name!r} "
                "has a floating base"
            )
        if self.log_options.get("filtering") == "signals":
            raise InputError(
                "thresholds follow from held-out segments, which a fit with filtering='signals' or "
                "cutoff=False does not have: fit again without them",
                option="filtering",
            )
        models = self._cross_validation
        if len(models.folds) < 2 or self.base.experiment.measured_joints is not None:
            raise InputError(
                "thresholds follow from held-out segments of the log: fit to a log "
                "of several seconds with the torques of all joints"
            )
        if self.saved is not None:
            law = self.saved.contact_errors
            if law is None or law.gain != gain:
                what = "none, since its log was reduced or short: fit to a longer log in memory"
                if law is not None:
                    what = f"those for gain={law.gain:g} only: fit again (feasid.fit) with the log"
                raise InputError(
                    f"thresholds for gain={gain:g} need errors on held-out segments, of which "
                    f"this saved fit keeps {what}",
                    option="gain",
                )
            return law

        # An observer's torques are as late as the log's, which were moved ahead for the fit.
        late, friction = -float(self.log_options.get("delay") or 0.0), self.evidence.friction
        measured = self._rows, self.robot, gain, self.delay, late, friction
        try:
            return compute_once(self._error_laws, gain, lambda: measure_error_law(*measured))
        except SolverError as error:  # under the prior of another fit, say
            raise InputError(f"thresholds need models of parts of the log: {error}") from error

    @cached_property
    def _error_laws(self) -> dict[float, ErrorLaw]:
        return {}

    @property
    def prediction_covariance(self) -> Array | None:
        """Covariance of the base parameters with which errors are predicted, (nb, nb).

        None without a prior.
        """
        covariance = self.estimate.prediction_covariance
        return None if covariance is None else np.asarray(self.base.K @ covariance @ self.base.K.T)

    @cached_property
    def relative_error(self) -> pd.Series[float]:
        """Relative torque error on the fitted log, per joint and "all"; see `errors`."""
        errors = self.errors_of(self.reduced)
        errors.attrs["raw"] = raw_error(self.robot, self.beta, self.reduced)
        return errors

    def errors_of(self, reduced: Reduced, beta: Array | None = None) -> pd.Series[float]:
        """Relative torque errors on reduced data.

        Parameters
        ----------
        reduced : Reduced
            For the same base parameters.
        beta : ndarray, shape (nb,), optional
            Default the fitted ones.

        Returns
        -------
        Series
            Per joint and "all"; NaN where there is no torque.
        """
        if beta is None and len(reduced.columns) != len(self.beta):
            raise InputError(f"reduced data are of {len(reduced.columns)} base parameters, the fit "
                             f"of {len(self.beta)}: reduce the log as for the fit")  # fmt: skip
        values = self.beta if beta is None else beta
        squares = reduced.residuals(values) ** 2, reduced.torque_norms**2
        return self._by_joint(relative_errors(self.robot, *squares))

    def _by_joint(self, values: Sequence[float] | Array) -> pd.Series[float]:
        """Relative torque errors of every joint and of all, shape (dof + 1,), with their names."""
        import pandas as pd

        index = pd.Index([*self.robot.coordinates, "all"], name="joint")
        return pd.Series(np.asarray(values), index=index, name="relative torque error")

    def predicted_errors(self, reduced: Reduced) -> pd.Series[float]:
        """Errors to expect on a motion, relative to its torques, per joint and "all".

        Parameters
        ----------
        reduced : Reduced
            Of the motion.

        Returns
        -------
        Series
            Those of held-out parts, larger by the leverage of this motion's equations.

        Raises
        ------
        InputError
            `reduced` is something else.
        """
        from feasid.identification.assessment.evidence import expected_errors

        known = isinstance(self.estimator.prior, GaussianPrior)
        covariance = self.prediction_covariance if known else None
        models = self._cross_validation
        return self._by_joint(expected_errors(self.evidence, models, reduced, covariance))

    def test_options(self, options: LogOptions | None = None) -> LogOptions:
        """Options for another log: those of the fitted one, replaced by `options`, at the cut-off
        that it got. `InputError`: one is unknown or has a value that it cannot have.
        """
        merged = {**self.log_options, **(options or {})}
        reading = cast(LogOptions, check_options(LogOptions, merged, "another log"))
        if reading.get("cutoff") is None and self.reduced.cutoff is not None:
            reading["cutoff"] = self.reduced.cutoff
        return reading

    # -- what the log leaves open ----------------------------------------------------------------

    @property
    def residual(self) -> ResidualRegion:
        """The region of all parameters that the log allows; see `range`."""
        from feasid.identification.uncertainty.ranges import ResidualRegion

        sets = self.feasible, self.plausible_set
        equations, deviation = self.solution.problem, self.estimate.row_deviation
        return ResidualRegion(self.base, equations, deviation, *sets, self.best_fitting.delta)

    @cached_property
    def posterior(self) -> Posterior | None:
        """The density of the parameters given the log; None without a prior.

        None, too, with constraints that are not affine.
        """
        from feasid.identification.uncertainty.posterior import Posterior

        if self.estimator.prior is None or self.feasible.convex:
            return None
        problem = replace(self.estimator, bounds=()).problem(self.equations)
        option = self.options.get("prior_weight")
        weight = float(option) if isinstance(option, int | float) else None
        return Posterior.from_estimate(problem, self.equations, self.estimate, weight)


def raw_error(robot: Robot, beta: Array, reduced: Reduced) -> float | None:
    """Relative error of all joints at the kept rows, unfiltered.

    None without strata, and for logs with contacts, whose forces no model predicts.
    """
    if not reduced.strata or reduced.power is not None:
        return None
    squared, torque = np.zeros((2, len(reduced.strata)))
    for j, (strata, support) in enumerate(zip(reduced.strata, reduced.supports, strict=True)):
        squared[j] = np.sum((strata.raw @ np.append(beta[list(support)], -1.0)) ** 2)
        torque[j] = np.sum(strata.raw[:, -1] ** 2)
    return float(relative_errors(robot, squared, torque)[-1]) if torque.any() else None


def provenance(fit: FittedModel) -> dict[str, Any]:
    """Origin of a model: versions, time, hashes of its description and its logs."""
    if fit.made:
        return dict(fit.made)
    source = fit.robot.source
    return {
        "feasid": feasid.__version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "pandas")},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "description": None if source is None else hashlib.sha256(source.text).hexdigest(),
        "logs": [{"name": r.name, "sha256": content_digest(r)} for r in fit.logs],
        "samples": fit.reduced.samples,
    }


def runs_as_fitted(fit: FittedModel, recording: Recording) -> Iterator[Run]:
    """Runs of a log in memory of the same robot and sensors, without the fit's corrections."""
    measured, robot = fit.base.experiment.measured_joints, fit.base.robot
    torque = True if measured is None else measured
    for run in recording.motion(robot, torque=torque, **fit.test_options()).runs:
        if run.free is None:
            yield fit.calibration.correction.with_warm_friction(run, robot)
