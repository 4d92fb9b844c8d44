"""Identification: from a log and a robot to a physically consistent dynamic model.

`fit` is the main function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from feasid.core.errors import InputError, NotEnoughDataError
from feasid.core.notes import Note, as_notes
from feasid.identification.effects.calibration import Calibration, allow
from feasid.identification.effects.corrected_log import (
    CorrectedLog,
    UncorrectedLog,
    has_rows,
    make_uncorrected_log,
    resolution_bias,
)
from feasid.identification.effects.corrections import NOTHING, LogCorrection
from feasid.identification.effects.joint_terms import Terms, with_terms, without_restless
from feasid.identification.effects.selection import Selection, enter_effects, select_terms
from feasid.identification.estimation.estimate import Estimate
from feasid.identification.estimation.estimator import Estimator
from feasid.identification.estimation.noise import Delay, find_delay
from feasid.identification.estimation.priors import COVARIANCE_WEIGHT
from feasid.identification.fitted import FittedModel
from feasid.identification.prediction import compare_sources
from feasid.identification.regression.reduce import (
    Log,
    independent_columns,
    reduce_tasks,
    restrict_terms,
)
from feasid.identification.regression.rows import RunRows
from feasid.identification.regression.triangle import Reduced
from feasid.identification.request import FitRequest
from feasid.logs.floating import robot_floats
from feasid.logs.recording import Recording, read_motions
from feasid.logs.temperature import join_temperature_notes
from feasid.parameters.identifiability.base import BaseParameters, base_parameters
from feasid.robot.description import Robot


def identify(
    data: Log | Reduced | Sequence[Log | Reduced],
    robot: Robot | str | Path | None,
    options: Mapping[str, Any],
) -> FittedModel:
    """The values of a fit; see `feasid.fit`."""
    request = FitRequest.from_call(data, robot, options)
    if request.options["command"] is None:
        return _fit_torques(request)
    fitted = _fit_torques(request.reading_commands())
    corrected = fitted.calibration.correction.correct_robot(request.described)
    if corrected is request.described:
        return fitted
    # Tilts and zeros were a part of the gains, which are therefore identified again.
    return _fit_torques(replace(request, described=corrected).reading_commands())


def _fit_torques(request: FitRequest) -> FittedModel:
    """The fit of logs with torques, or with commands that a servo makes torques of."""
    answer = _identify(request)
    solved = answer.solved
    fitted = FittedModel(
        description=solved.base.robot,
        estimator=solved.estimator.keep(solved.estimate),
        estimate=solved.estimate,
        reduced=solved.reduced,
        equations=solved.equations,
        notes=as_notes(answer.notes_in_order(request)),
        log_options=request.reading(answer.calibration.correction),
        options=request.options,
        logs=tuple(log for log in request.logs if isinstance(log, Recording)),
        torque_shift=solved.delay.value,
        calibration=answer.calibration,
        selected=answer.selection.results,
        servo=request.servo,
        rows=tuple(solved.rows),
    )
    # A reduced log from a file has no robot; it was verified to belong to this one.
    logs = [replace(log, robot=request.wide.robot) if isinstance(log, Reduced) and log.robot is None
            else log for log in request.logs]  # fmt: skip
    compared, more = compare_sources(fitted, logs)
    notes = as_notes([*more, *_load_notes(fitted), *fitted.notes])
    return replace(fitted, comparison=compared, notes=notes)


LOADED, CERTAIN = 0.2, 4.0
"""A last body whose mass differs from the described one by more than this share, and by so many
standard errors, has a load that the description lacks, or lacks one."""


def _load_notes(fitted: FittedModel) -> list[Note]:
    """A last body that is much heavier or lighter than described."""
    robot, estimate = fitted.description, fitted.estimate
    # The last body carries the tool, whose load changes most often.
    column = int(robot.inertial_columns[-1][9])
    described = float(robot.values[column])
    if robot_floats(robot) or estimate.covariance is None or not described > 0:
        return []
    mass, deviation = estimate.value_and_deviation(column)
    change = mass - described
    if abs(change) < max(LOADED * described, CERTAIN * deviation):
        return []
    text = (
        f"the last body weighs {mass:.3g} +- {deviation:.1g} kg, the description says "
        f"{described:.3g} kg: a load that it {'lacks' if change > 0 else 'has and the log lacks'}?"
    )
    return [Note(text, "payload", mass=mass, joint=robot.bodies[-1].joint)]


@dataclass(frozen=True, eq=False)
class _Solution:
    """Equations, the estimator that solved them, and the estimate."""

    estimator: Estimator
    reduced: Reduced
    delay: Delay
    equations: Reduced
    notes: Sequence[Note]
    estimate: Estimate
    rows: Sequence[RunRows] = ()  #: The log's, where a search read them.

    @property
    def base(self) -> BaseParameters:
        """Base parameters of the model."""
        return self.estimator.base


@dataclass(frozen=True, eq=False)
class _Answer:
    """The solution of a fit, errors of the log that were corrected, and what was selected."""

    solved: _Solution
    calibration: Calibration
    selection: Selection
    notes: Sequence[Note]

    def notes_in_order(self, request: FitRequest) -> list[Note]:
        """All notes of a fit: those on the servo and the parameters first."""
        solved, servo = self.solved, request.servo
        about_rows = solved.reduced.notes
        if request.options["calibration"] is None:
            about_rows = join_temperature_notes(about_rows, searched=False)
        about_model = [*([] if servo is None else servo.notes), *solved.estimate.notes]
        about_model += solved.estimator.weighed_notes(solved.equations, solved.estimate)
        about_log = [*request.notes, *self.calibration.notes, *request.check_logs(), *self.notes]
        about_log += solved.delay.notes(solved.reduced.period)
        return [*about_model, *about_log, *solved.notes, *about_rows]


def _identify(request: FitRequest) -> _Answer:
    """The plain fit, the search for further effects, and the fit with these."""
    if has_rows(request.tasks, request.wide.robot, request.options):
        reduced = _reduce_logs(request, request.plain, keep=True)
        delay = request.find_delay(reduced)
        aligned = reduced.with_shifted_torques(delay.value) if reduced.strata else reduced
        plain = _solve(request, request.plain, aligned, delay, reweigh=False)
        logs, options = (request.tasks, request.described), request.options
        setup = make_uncorrected_log(*logs, aligned, options, plain.estimator, delay.value)
        if setup is not None:
            return _fit_with_effects(request, setup, plain)
    return _identify_reduced(request)


def _identify_reduced(request: FitRequest) -> _Answer:
    """The same for a log without rows: only joint terms can be searched."""
    wide, plain = request.wide, request.plain
    reduced = _reduce_logs(request, wide)
    delay = request.find_delay(restrict_terms(reduced, wide.robot, plain))
    if not reduced.strata:
        return _Answer(_solve(request, wide, reduced, delay), Calibration(), Selection(), [])
    aligned = reduced.with_shifted_torques(delay.value)
    estimator = Estimator.from_options(wide, request.options)
    selection = select_terms(aligned, estimator, plain, request.words)
    terms: Terms = selection.terms
    while True:
        robot = with_terms(plain.robot, terms, np.asarray(wide.robot.load_model))
        narrow = base_parameters(robot, measured=request.options["measured"])
        solved = _solve(request, narrow, restrict_terms(aligned, wide.robot, narrow), delay)
        # A term that leaves takes friction with it, so that the others are judged anew.
        fewer = without_restless(terms, robot, solved.estimate.delta, selection.usual)
        if fewer == terms:
            notes, selection = selection.notes_of_terms(terms), selection.drop_rejected((), terms)
            return _Answer(solved, Calibration(), selection, notes)
        terms = fewer


def _fit_with_effects(request: FitRequest, setup: UncorrectedLog, plain: _Solution) -> _Answer:
    """The fit with what a search found, and with errors that all rows of the log share."""
    (selection, trial), solved = enter_effects(setup, plain.estimate, request.words), plain
    if trial is not selection.plain:
        delay = _remaining_delay(trial, plain.delay)
        solved = _solve(request, trial.base, trial.reduced, delay, trial.correction)
    elif request.options["robust"] is not None:
        solved = _solve(request, plain.base, plain.reduced, plain.delay)
    weight = min(plain.estimate.evidence_weight, COVARIANCE_WEIGHT)
    calibration, spread = allow(trial, weight, selection.gains_by_effect, selection.alike)
    # Another log of this robot has the same tilt, but not the same rounding of positions.
    estimate = solved.estimate.with_systematic(spread, recurring=True)
    bias, more = resolution_bias(trial)
    estimate, notes = estimate.with_systematic(bias), [*more, *solved.notes]
    solved = replace(solved, estimate=estimate, notes=notes, rows=trial.rows.parts)
    return _Answer(solved, calibration, selection, selection.notes)


def _remaining_delay(trial: CorrectedLog, delay: Delay) -> Delay:
    """What remains of a delay that was found before: the effects may explain it."""
    if trial.correction.shifts_torques:
        return Delay()
    return Delay(left=find_delay(trial.reduced).left) if delay.left else delay


def _solve(
    request: FitRequest,
    base: BaseParameters,
    reduced: Reduced,
    delay: Delay,
    correction: LogCorrection = NOTHING,
    *,
    reweigh: bool = True,
) -> _Solution:
    """Weigh the equations of a log and solve them.

    `reduced` is without the errors in `correction` and the delay. Robust weights, where options ask
    for them, are left out unless `reweigh`.
    """
    estimator = Estimator.from_options(base, request.options)
    equations, notes = reduced, list[Note]()
    if reweigh and request.options["robust"] is not None:
        equations, notes = _reweigh(request, estimator, correction.with_delay(delay.value))
    estimate = estimator.fit(equations)
    late = estimator.delay_sensitivity(equations, estimate, delay.deviation)
    estimate = estimate.with_systematic(late)
    return _Solution(estimator, reduced, delay, equations, notes, estimate)


def _reweigh(
    request: FitRequest, estimator: Estimator, correction: LogCorrection
) -> tuple[Reduced, list[Note]]:
    """Equations of blocks of rows with robust weights."""
    from feasid.identification.regression import robust

    robot, columns = estimator.base.robot, independent_columns(estimator.base)
    options = request.options
    if options["measured"] is not None:
        lacking = ", ".join(j for j in robot.joints if j not in options["measured"])
        raise InputError(
            "robust needs the torques of all joints"
            + (f", and the log is without (measured) that of {lacking}" if lacking else "")
            + ": leave it out, or measured",
            option="measured",
        )
    blocks, kind = list[robust.TimeBlock](), options["robust"]
    for task in request.tasks:
        if isinstance(task.source, Reduced):
            raise InputError("this needs the log itself; reduced data hold no time")
        for motion in read_motions(task.source, robot, **task.options):
            # Projectors of unknown contact forces mix the torques of all joints.
            if any(run.free is not None for run in motion.runs):
                raise InputError("robust needs the forces of all contacts")
            runs = tuple(correction.correct_run(run, robot) for run in motion.runs)
            part = replace(motion, runs=runs)
            blocks += robust.reduce_blocks(part, robot, columns, options["block"])
    equations, shares = robust.reweight(blocks, kind, estimator.quick_beta)
    return equations, robust.weight_notes(blocks, shares, robot.coordinates, kind)


def _reduce_logs(request: FitRequest, base: BaseParameters, keep: bool = False) -> Reduced:
    """All logs reduced to one triangle per joint; raises where they have too few rows."""
    reduced = reduce_tasks(request.tasks, base, keep=keep)
    unknowns = len(base.independent)
    if reduced.samples * len(reduced.triangles) < unknowns:
        raise NotEnoughDataError(
            f"{reduced.samples} usable samples of {len(reduced.triangles)} joints are fewer "
            f"equations than the {unknowns} base parameters"
        )
    return reduced
