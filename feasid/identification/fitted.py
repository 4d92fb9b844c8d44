"""What a fit found: parameters, errors and quality, computed from what they describe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.assessment.quality import Quality, foretell, judge_fit
from feasid.assessment.residuals import held_out_errors, unexplained_structure
from feasid.core.arguments import Positive, checked_methods
from feasid.core.arrays import Array
from feasid.core.notes import Note
from feasid.effects.calibration import Calibration
from feasid.errors import CertificateError, InputError
from feasid.estimation.cross_validation import CrossValidation
from feasid.estimation.estimate import Estimate
from feasid.estimation.estimator import Estimator
from feasid.estimation.noise import condition_number, least_squares
from feasid.export.robot_file import WritableModel
from feasid.feasibility import problems
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.feasibility.least_squares import FeasibleFit
from feasid.identifiability.base import BaseParameters, base_parameters
from feasid.logs.motion import Run
from feasid.logs.recording import Recording
from feasid.regression.triangle import Reduced
from feasid.robot.description import Robot
from feasid.robot.inertia import to_mass_com_inertia
from feasid.robot.joint_terms import DRIVE_SYMBOLS
from feasid.servos.gains import ServoFit
from feasid.uncertainty.posterior import Posterior
from feasid.uncertainty.ranges import ResidualRegion

if TYPE_CHECKING:
    import pandas as pd

    from feasid.control.external_torque import ErrorLaw
    from feasid.feasibility.proof.claim import Certificate

UNPROVED = 1e-3
"""Share of the squared residual by which the proved bound may be below the smallest one found."""


@checked_methods
@dataclass(frozen=True, eq=False)
class FittedModel(WritableModel):
    """The numbers of a fit.

    Attributes
    ----------
    description : Robot
        What went in, with the joint terms that were fitted.
    estimator : Estimator
        What was decided about the model.
    estimate : Estimate
        Parameters, their covariance, noise, prior and bounds.
    reduced : Reduced
        The log.
    equations : Reduced
        What was fitted: `reduced`, with robust weights when these were asked for.
    notes : tuple of Note
        What was assumed, derived, filtered and left out.
    log_options : mapping
        How the log was prepared; other logs are prepared alike.
    options : mapping
        `feasid.options.tables.FitOptions`, completed.
    recordings : tuple of Recording
        The logs that were fitted, as far as they were not reduced before.
    delay : float
        By which `reduced` has torques shifted to their motion [s].
    calibration : Calibration
        Mistakes of the log that the fit took out, and those that its covariance allows for.
    servo : ServoFit or None
        Gains and delay of the servos, where the log has commands in place of torques.
    """

    description: Robot
    estimator: Estimator
    estimate: Estimate
    reduced: Reduced
    equations: Reduced
    notes: tuple[Note, ...] = ()
    log_options: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    recordings: tuple[Recording, ...] = ()
    delay: float = 0.0
    calibration: Calibration = field(default_factory=Calibration)
    servo: ServoFit | None = None

    # -- parameters --------------------------------------------------------------------------

    @cached_property
    def robot(self) -> Robot:  # type: ignore[override]
        """With the identified parameters as its own; ready for `feasid.inverse_dynamics`."""
        return self.description.with_values(self.delta)

    @property
    def base(self) -> BaseParameters:  # type: ignore[override]
        """Base parameters of the robot."""
        return self.estimator.base

    @property
    def feasible(self) -> FeasibleSet:
        """The constraints that were asked for, and that parameters exist."""
        return self.estimator.feasible

    @property
    def plausible_set(self) -> FeasibleSet:
        """The same within plausible bounds, too, unless the log rejects them."""
        return self.estimator.plausible_set

    @property
    def solution(self) -> FeasibleFit:
        """With ``delta`` (n standard parameters), ``beta`` and what was verified."""
        return self.estimate.solution

    @property
    def optimum(self) -> FeasibleFit:
        """The optimum of feasible least squares, before `slack` or a prior."""
        return self.estimate.optimum

    @property
    def triangle(self) -> tuple[Array, Array, float]:
        """The weighted equations that were solved: (R, rho, residual)."""
        return self.estimate.triangle

    @property
    def weights(self) -> Array:
        """Factors on the joints' equations, of rows that are not slow, shape (dof,)."""
        return self.estimate.weights

    @property
    def covariance(self) -> Array:
        """Of the base parameters as they are printed, shape (nb, nb)."""
        return self.estimate.base_covariance

    @property
    def deviation(self) -> float:
        """Standard deviation of a row of `triangle`; 1 where these are in units of the noise."""
        return self.estimate.row_deviation

    @property
    def delta(self) -> Array:
        """All standard parameters, shape (n,), in the order of ``robot.names``."""
        return self.solution.delta

    @property
    def beta(self) -> Array:
        """Base parameters, shape (nb,)."""
        return self.solution.beta

    def _described_robot(self) -> Robot:
        return self.description

    @cached_property
    def unknowns(self) -> BaseParameters:
        """Base parameters of what was unknown: without parameters that `known` names, or tied."""
        given = {name: self.options.get(name) for name in ("known", "equal", "mirrored")}
        asked = {name: value for name, value in given.items() if value}
        measured = self.base.experiment.measured
        if not asked:
            return self.base
        return base_parameters(self.description, measured=measured, **asked)

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
        return pd.DataFrame(
            {
                "value": self.beta,
                "std": deviation,
                "relative_std_percent": relative,
                "ols": least_squares(r, rho)[0],
            },
            index=pd.Index(self.base.expressions, name="base parameter"),
        )

    @cached_property
    def bodies(self) -> pd.DataFrame:
        """Per body: mass [kg], centre of mass [m], inertia about it [kg m^2]; none if massless."""
        import pandas as pd

        heavy = [i for i, body in enumerate(self.robot.bodies) if not body.massless]
        ten = self.delta[self.robot.inertial_columns[heavy]]
        mass, com, inertia = to_mass_com_inertia(ten)
        columns = {"mass": mass} | {f"com_{a}": com[:, k] for k, a in enumerate("xyz")}
        for r, c in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
            columns[f"I{'xyz'[r]}{'xyz'[c]}"] = inertia[:, r, c]
        names = [self.robot.bodies[i].name for i in heavy]
        return pd.DataFrame(columns, index=pd.Index(names, name="body"))

    @cached_property
    def joint_terms(self) -> pd.DataFrame:
        """Per drive: drive inertia and friction coefficients; NaN where a term is not fitted."""
        import pandas as pd

        rows = {
            drive.name: {s: self.delta[c] for s, c in self.robot.drive_columns(k).items()}
            for k, drive in enumerate(self.robot.drives)
        }
        frame = pd.DataFrame.from_dict(rows, orient="index", columns=[*DRIVE_SYMBOLS])
        return frame.rename_axis(index="drive").dropna(axis="columns", how="all")

    def problem(self) -> Any:
        """The convex program whose optimum the fit reports, as a `cvxpy.Problem`.

        Half the squared norm of the whitened triangle plus, with a prior, its weight times the
        divergence from the reference (``log_det``); without one the norm that
        `feasid.feasibility.least_squares.feasible_least_squares` minimises, before `slack`. There
        is a variable in SI per body and drive: ``problem.var_dict["link3"].value`` holds Lxx Lxy
        Lxz Lyy Lyz Lzz lx ly lz m. The parameter "units" scales them for a solver.

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

    # -- quality -----------------------------------------------------------------------------

    @cached_property
    def condition_number(self) -> float:
        """Condition number of the regression matrix of the fitted log."""
        return condition_number(self.reduced.triangle()[0])

    @property
    def optimality(self) -> Certificate | None:
        """Proof that no feasible model fits the log much better; None when there is none."""
        return self.optimum.certify(self.triangle[2])

    @property
    def best_fitting(self) -> FeasibleFit:
        """The verified model of the smallest residual: the optimum, or the solution."""
        return min(self.optimum, self.solution, key=lambda found: found.objective)

    @cached_property
    def price(self) -> float:
        """Relative increase of the residual over the smallest that is possible feasibly.

        NaN where it is not proved that no feasible model has a squared residual that is smaller
        than the smallest one found by more than the share `UNPROVED`.
        """
        rest, least = self.triangle[2] ** 2, self.best_fitting.objective
        if not least + rest <= (1.0 + UNPROVED) * (self.best_fitting.floor + rest):
            return np.nan
        return float(np.sqrt((self.solution.objective + rest) / (least + rest))) - 1.0

    @cached_property
    def quality(self) -> Quality:
        """How good the fit is on stretches that it did not see, and why."""
        models = self._cross_validation
        structure = unexplained_structure(models, self._runs(), self.delay) if models.folds else ()
        return judge_fit(
            models,
            self.beta,
            doubts=self.notes,
            structure=structure,
            variance=self.covariance_for_foretelling,
        )

    @cached_property
    def _cross_validation(self) -> CrossValidation:
        """Models of all stretches of the log but one."""
        noise = None if self.estimator.prior is None else self.estimate.noise
        return self.estimator.cross_validate(self.reduced, noise)

    def error_law(self, gain: Positive) -> ErrorLaw:
        """How far an observer of external torques is off without contact; see `ErrorLaw`.

        Parameters
        ----------
        gain : float
            Of the observer [1/s].

        Raises
        ------
        InputError
            Stretches that were not fitted do not show it.
        """
        from feasid.control.external_torque import ErrorLaw

        models = self._cross_validation
        if len(models.folds) < 2 or self.base.experiment.measured_joints is not None:
            raise InputError(
                "thresholds follow from stretches of the log that were not fitted: fit to a log "
                "of several seconds with the torques of all joints"
            )
        errors = held_out_errors(models, self._runs())
        return ErrorLaw.from_errors(errors, gain, self.delay, self.robot.coordinates)

    @property
    def covariance_for_foretelling(self) -> Array | None:
        """Covariance of the base parameters with which errors are foretold, (nb, nb).

        None without a prior.
        """
        covariance = self.estimate.prediction_covariance
        if covariance is None:
            return None
        return np.asarray(self.base.K @ covariance @ self.base.K.T)

    def _runs(self) -> Iterator[Run]:
        """The fitted logs' runs, as far as they are in memory and were not reduced before."""
        measured = self.base.experiment.measured_joints
        for recording in self.recordings:
            if not recording.streamed:
                torque = True if measured is None else measured
                motion = recording.motion(self.base.robot, torque=torque, **self.test_options())
                warmed = self.calibration.correction.with_warm_friction
                yield from (warmed(run, self.base.robot) for run in motion.runs if run.free is None)

    def foretell(self, reduced: Reduced) -> pd.Series[float] | None:
        """Errors to expect on a motion, relative to its torques, per joint and "all".

        Parameters
        ----------
        reduced : Reduced
            Of the motion.

        Returns
        -------
        Series or None
            None without a prior, whose covariance says how sure the parameters are.

        Raises
        ------
        InputError
            `reduced` is something else.
        """
        if self.covariance_for_foretelling is None:
            return None
        return self._errors_by_joint(
            foretell(self.quality.errors, reduced, self.covariance_for_foretelling, self.robot)
        )

    @property
    def residual(self) -> ResidualRegion:
        """The region of all parameters that the log allows; see `range`."""
        r, rho, _ = self.triangle
        best = self.best_fitting.delta
        return ResidualRegion(
            self.base, r, rho, self.deviation, self.feasible, self.plausible_set, best
        )

    @cached_property
    def posterior(self) -> Posterior | None:
        """What the log and the prior leave open; None without a prior or where no file keeps it."""
        if self.estimator.prior is None or self.feasible.convex:
            return None
        problem = replace(self.estimator, bounds=()).problem(self.equations)
        given = self.options["prior_weight"]
        number = float(given) if isinstance(given, int | float) else None
        return Posterior.from_estimate(problem, self.equations, self.estimate, number)

    @cached_property
    def certificate(self) -> Certificate:
        """Proof, in rationals, that the identified parameters can exist; see its ``verify``."""
        from feasid.feasibility.check import check

        certificate = check(self, feasible=self.feasible).certificate
        if certificate is None:
            raise CertificateError("the identified parameters could not be certified")
        return certificate
