"""A log with corrections of its mistakes, the feasible model that is fitted to it, and its bias.

Rounded positions make noise of accelerations, dW of the regressor W, which biases least squares
towards smaller inertias: by ``-P dW' S^-1 dW beta`` to first order, P the covariance of the base
parameters and S that of the rows (Fuller 1987, section 2.5, with noise of known variance). Here
dW is the difference that samples make which are moved at random within the resolution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.notes import Note
from feasid.identification.effects.corrections import LogCorrection
from feasid.identification.effects.score import ScoreTests
from feasid.identification.estimation.estimator import Estimator
from feasid.identification.estimation.held_out import HeldOut
from feasid.identification.estimation.noise import Noise
from feasid.identification.regression.equations import reduce_rows
from feasid.identification.regression.folds import CLASSES, EDGES, FOLDS
from feasid.identification.regression.parallel import LogTask
from feasid.identification.regression.reduce import independent_columns, reduce_tasks
from feasid.identification.regression.rows import Rows
from feasid.identification.regression.triangle import Reduced
from feasid.logs.motion import Run
from feasid.logs.recording import Recording, blur_recording
from feasid.parameters.identifiability.base import BaseParameters, base_parameters
from feasid.robot.description import Robot

MOST_SAMPLES = 10**6
"""Samples beyond which logs are not searched: all their rows would be held in memory."""


@dataclass(frozen=True, eq=False)
class UncorrectedLog:
    """A log and a robot before anything was corrected."""

    base: BaseParameters
    options: Mapping[str, Any]  #: `feasid.options.tables.FitOptions`, all of them.
    runs: tuple[Run, ...]
    cutoff: float
    reduced: Reduced  #: the log as it was reduced.
    estimator: Estimator  #: decisions of the fit about the model.
    delay: float  #: delay of less than a sample that the fit takes out [s].
    described: Robot  #: without the joint terms that a fit adds.
    #: the runs with positions moved within their resolution; empty where that is fine.
    blurred: tuple[Run, ...] = ()
    tasks: Sequence[LogTask] = ()  #: the logs, which are reduced anew for other joint terms.

    @property
    def abrupt_robot(self) -> Robot:
        """The robot with Coulomb friction that changes its sign at once.

        Drives to which `with_fit_terms` gave a transition lose it; the robot is the same if none.
        """
        robot, smooth = self.base.robot, {d.name for d in self.described.drives if d.transition}
        if all(d.name in smooth or not d.transition for d in robot.drives):
            return robot
        drives = (d if d.name in smooth else replace(d, transition=0.0) for d in robot.drives)
        return replace(robot, drives=tuple(drives))

    @property
    def travel(self) -> dict[str, tuple[float, float]]:
        """Smallest and largest position of every joint that moves."""
        q = np.concatenate([run.q for run in self.runs])
        ends = zip(q.min(axis=0).tolist(), q.max(axis=0).tolist(), strict=True)
        return {j: e for j, e in zip(self.base.robot.coordinates, ends, strict=True) if e[0] < e[1]}

    def with_robot(self, robot: Robot) -> UncorrectedLog:
        """The log, reduced anew for a robot with other joint terms."""
        base = base_parameters(robot, measured=self.options["measured"])
        reduced = reduce_tasks(self.tasks, base, keep=True).with_shifted_torques(self.delay)
        return replace(self, base=base, reduced=reduced, estimator=self.estimator.on(base))

    @property
    def joints(self) -> tuple[int, ...]:
        """Joints whose torques were measured."""
        measured, names = self.options["measured"], self.base.robot.joints
        return tuple(j for j, n in enumerate(names) if measured is None or n in measured)

    @property
    def seconds(self) -> float:
        """Length of the longest log [s]: times of runs count from the start of their own log."""
        return max(float(run.t[-1]) for run in self.runs)

    @property
    def sample_time(self) -> float:
        """Times of the samples [s]."""
        return max(1.0 / run.rate for run in self.runs)


class CorrectedLog:
    """A log with some corrections, and its feasible model.

    `weight`: of the prior; `near`: (n,), a model that its own is sought from; None where none is
    known; `before`: the log with another correction, or the same, whose rows are used where they
    hold.
    """

    def __init__(
        self,
        setup: UncorrectedLog,
        correction: LogCorrection,
        noise: Noise,
        weight: float,
        near: Array | None,
        before: CorrectedLog | None = None,
    ) -> None:
        self.setup, self.correction, self.noise, self.weight = setup, correction, noise, weight
        if before is not None and correction is before.correction:
            self.base: BaseParameters = before.base
            self.rows: Rows = before.rows
            self.torque: Array = before.torque
            self.reduced: Reduced = before.reduced
        else:
            self.base = setup.base
            robot = correction.correct_robot(self.base.robot)
            runs = [correction.correct_run(r, self.base.robot) for r in setup.runs]
            if robot is not self.base.robot:
                self.base = base_parameters(robot, measured=setup.options["measured"])
            # Corrections of torques alone leave the regressor as it is.
            if before is not None and self.base is before.base:
                self.rows = before.rows.of_runs(runs)
            else:
                columns = independent_columns(self.base)
                self.rows = Rows(robot, columns, setup.cutoff, runs, setup.joints)
            # A delay that is corrected contains the one of less than a sample.
            delay = 0.0 if correction.shifts_torques else setup.delay
            self.torque = self.rows.torque + delay * self.rows.slope
            self.reduced = setup.reduced
            if correction.values:
                self.reduced = reduce_rows(self.rows, self.torque, setup.reduced)
        estimator = replace(setup.estimator.on(self.base), prior_weight=weight, noise=noise)
        self.estimator = estimator.for_comparison(noise)
        self.minimiser, self.delta, self.unit_covariance = self.estimator.follow(self.reduced, near)
        self.beta = np.asarray(self.base.K @ self.delta)

    def with_correction(self, other: LogCorrection, noise: Noise | None = None) -> CorrectedLog:
        """The log with another correction, its model sought from this one."""
        noise = self.noise if noise is None else noise
        return CorrectedLog(self.setup, other, noise, self.weight, self.minimiser.near, self)

    @cached_property
    def row_deviations(self) -> Array:
        """Standard deviation of every row, shape (rows,)."""
        rows, out = self.rows, np.empty(len(self.torque))
        level = np.searchsorted(EDGES, rows.slowness)
        for j in rows.joints:
            for c in range(CLASSES):
                member = (rows.joint == j) & (level == c)
                if member.any():  # the noise knows the mean of a class alone
                    mean = np.asarray(np.mean(rows.slowness[member] ** 2))
                    out[member] = self.noise.deviations(j, mean)
        return out

    @cached_property
    def score_tests(self) -> ScoreTests:
        """Score tests around the model."""
        K = np.asarray(self.base.K, dtype=np.float64)
        model = self.base.robot.with_values(self.delta)
        spread = K @ self.unit_covariance @ K.T
        around, gravity = (model, self.beta, spread), self.setup.base.robot.gravity
        return ScoreTests(self.rows, self.torque, *around, self.row_deviations, gravity)

    def held_out(self, other: CorrectedLog) -> HeldOut:
        """Errors of rows by a feasible model of the other segments, in units of another's noise."""
        residual = self.held_out_residuals / other.row_deviations
        return HeldOut.from_rows(residual, self.rows.block, self.rows.joint)

    @cached_property
    def held_out_residuals(self) -> Array:
        """Residual of every row by a feasible model of the other segments, shape (rows,)."""
        out = np.zeros(len(self.torque))
        for fold in range(FOLDS):
            others = [f for f in range(FOLDS) if f != fold]
            triangle = self.noise.whitened_triangle(self.reduced, others)
            beta = self.base.K @ replace(self.minimiser).predict(triangle)
            member = self.rows.fold == fold
            out[member] = (self.torque - self.rows.predict(beta))[member]
        return out


def has_rows(tasks: Sequence[LogTask], robot: Robot, options: Mapping[str, Any]) -> bool:
    """Whether logs can be searched row by row, as far as options and robot tell."""
    in_memory = all(isinstance(t.source, Recording) and not t.source.streamed for t in tasks)
    filtered = options["filtering"] == "equations" and options["cutoff"] is not False
    # Without a prior the search has no covariance.
    return robot.is_plain and options["prior"] is not None and in_memory and filtered


def make_uncorrected_log(
    tasks: Sequence[LogTask],
    described: Robot,
    reduced: Reduced,
    options: Mapping[str, Any],
    estimator: Estimator,
    delay: float,
) -> UncorrectedLog | None:
    """Data for a search row by row; None if this log allows none."""
    base, robot = estimator.base, estimator.base.robot
    if not reduced.strata or reduced.samples > MOST_SAMPLES:
        return None
    recorded = [(t.source, t.options) for t in tasks if isinstance(t.source, Recording)]
    torque = True if options["measured"] is None else options["measured"]
    motions = [log.motion(robot, torque=torque, **reading) for log, reading in recorded]
    runs = tuple(run for motion in motions for run in motion.runs)
    if not motions[0].cutoff or any(run.free is not None for run in runs):
        return None
    moved = [blur_recording(log, robot, torque=torque, **reading) for log, reading in recorded]
    coarse = [b or m for b, m in zip(moved, motions, strict=True)] if any(moved) else []
    blurred = tuple(run for motion in coarse for run in motion.runs)
    cutoff, fitted = motions[0].cutoff, (reduced, estimator, delay)
    return UncorrectedLog(base, options, runs, cutoff, *fitted, described, blurred, tasks)


BIASED = 1.0
"""Bias of a base parameter, in standard errors, that makes a fit doubtful: encoders of 12 bits at
1 kHz make 1.4 to 1.5 on arms in simulation, of 14 bits a sixteenth."""


def resolution_bias(trial: CorrectedLog) -> tuple[Array, list[Note]]:
    """The bias of a fit by the resolution of its logs.

    Returns the bias of the standard parameters, (n, 1), or (n, 0) where the resolution is fine or
    ``calibration=None`` asks for no such correction, and a note where it matters.
    """
    setup, robot = trial.setup, trial.base.robot
    if not setup.blurred or setup.options["calibration"] is None:
        return np.zeros((robot.size, 0)), []
    runs: list[Run] = [trial.correction.correct_run(run, robot) for run in setup.blurred]
    known = trial.rows
    rows = Rows(robot, known.base_columns, known.cutoff, runs, known.joints)
    pull, deviations = np.zeros(len(trial.beta)), known.by_joint(trial.row_deviations)
    for j, support in ((j, known.supports[j]) for j in known.joints):
        # One draw of the rounding stands for its mean: a log has thousands of rows.
        change = (rows.regressors[j] - known.regressors[j]) / deviations[j][:, None]
        pull[support] += change.T @ (change @ trial.beta[support])
    K = np.asarray(trial.base.K, dtype=np.float64)
    spread = -trial.unit_covariance @ (K.T @ pull)
    bias, deviation = K @ spread, np.sqrt(np.diag(K @ trial.unit_covariance @ K.T))
    largest = float(np.max(np.abs(bias) / np.maximum(deviation, 1e-300)))
    if largest <= BIASED:
        return spread[:, None], []
    text = (
        "positions are logged in coarse steps; their derivatives bias base parameters by up to "
        f"{largest:.2g} standard errors. Standard errors and predicted errors include "
        "this bias. Log positions with more digits, or measured velocities"
    )
    return spread[:, None], [Note(text, "coarse", deviations=largest, confirmed=True)]
