"""Identification: from a log and a robot to a physically consistent dynamic model.

`fit` is the main function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from feasid.core.arguments import checked
from feasid.core.notes import Note
from feasid.core.notes import as_notes as as_notes
from feasid.core.threads import one_thread
from feasid.effects.calibration import Calibration, Corrected, allow, correct_log
from feasid.effects.corrected_log import (
    CorrectedLog,
    UncorrectedLog,
    has_rows,
    make_uncorrected_log,
    resolution_bias,
)
from feasid.effects.corrections import NOTHING, LogCorrection, corrected_options
from feasid.effects.functions import Mistake
from feasid.effects.joint_terms import (
    Terms,
    friction_by_drive,
    remove_terms,
    with_terms,
    without_restless,
)
from feasid.effects.log_check import diagnose_logs
from feasid.effects.selection import DEFAULT_WORDS, Selection, select_effects, select_terms
from feasid.errors import InputError, NotEnoughDataError
from feasid.estimation.cross_validation import CrossValidation
from feasid.estimation.estimate import Estimate
from feasid.estimation.estimator import Estimator
from feasid.estimation.held_out import RULES
from feasid.estimation.noise import Delay, find_delay
from feasid.estimation.priors import COVARIANCE_WEIGHT, find_prior
from feasid.formats.fit_robot import (
    resolve_robot,
    with_abrupt_friction,
    with_fit_terms,
    with_shared_motors,
)
from feasid.identifiability.base import BaseParameters, base_parameters
from feasid.identification.prediction import compare_sources
from feasid.identification.result import Fit
from feasid.logs.motion import Motion
from feasid.logs.recording import Recording
from feasid.options.complete import complete_options, document_options, select_options
from feasid.options.tables import FitOptions, LogOptions
from feasid.regression.parallel import LogTask
from feasid.regression.reduce import (
    Log,
    assign_cutoff,
    base_with_terms,
    candidate_terms,
    complete_filter_options,
    find_measured_joints,
    independent_columns,
    open_sources,
    reduce_tasks,
    restrict_terms,
)
from feasid.regression.triangle import Reduced
from feasid.robot.description import Robot
from feasid.robot.joint_terms import SEARCHED

if TYPE_CHECKING:
    from feasid.servos.gains import ServoFit

BY_TORQUES = {"method": "torque", "robust": None}
"""Options of equations of which a log is searched, whatever those that are fitted then."""

Align = Callable[[Reduced], Delay]
"""Options with which a delay of less than a sample is found."""


@checked
@document_options(FitOptions)
@one_thread()
def fit(
    data: Log | Reduced | Sequence[Log | Reduced],
    robot: Robot | str | Path | None = None,
    **options: Unpack[FitOptions],
) -> Fit:
    """Identify the parameters of a robot from its log, among those that a real robot can have.

    Parameters
    ----------
    data : DataFrame, mapping of arrays, path, Reduced, or a sequence of these
        The log: ``q_<joint>`` and ``tau_<joint>`` per joint, time ``t``, see
        `feasid.logs.frame`. Several logs are fitted together.
    robot : Robot or path, optional
        Default ``data.attrs["robot"]``, or the robot of the reduced data.
    **options
        See `feasid.options.tables.FitOptions`.

    Returns
    -------
    Fit

    Raises
    ------
    LogError, NotEnoughDataError, DescriptionError, InputError
        The input is not usable; the message names what is wrong.
    SolverError No solution passed verification; nothing unverified is returned.
    """
    chosen = complete_filter_options(complete_options(FitOptions, options, "fit"), "fit")
    find_prior(chosen["prior"])  # before a log is read for nothing
    logs = open_sources(data)
    described = with_shared_motors(resolve_robot(data, robot), chosen["couplings"])
    if chosen["command"] is None:
        return _fit_torques(logs, described, options, chosen)
    from feasid.servos.gains import identify_servo

    found = _fit_torques(logs, described, options, chosen, identify_servo(logs, described, chosen))
    corrected = found.calibration.correction.correct_robot(described)
    if corrected is described:
        return found
    servo = identify_servo(logs, corrected, chosen)  # tilts and zeros were a part of the gains
    return _fit_torques(logs, described, options, chosen, servo)


def _fit_torques(
    logs: Sequence[Recording | Reduced],
    described: Robot,
    options: Mapping[str, Any],
    asked: Mapping[str, Any],
    servo: ServoFit | None = None,
) -> Fit:
    """The fit of logs with torques, or with commands that a servo makes torques of."""
    as_torques = {} if servo is None else servo.log_options(asked)
    chosen, terms = {**asked, **as_torques}, (asked["friction"], asked["drive_inertia"])
    measured, measured_notes = find_measured_joints(logs, described, chosen)
    chosen["measured"] = measured

    wide, term_notes = base_with_terms(described, logs, *terms, candidate_terms(chosen), measured)
    tasks = assign_cutoff(logs, wide.robot, select_options(LogOptions, chosen), measured)
    reduced_notes = [note for s in logs if isinstance(s, Reduced) for note in s.notes]
    added = any(note.code == "friction-added" for note in (*term_notes, *reduced_notes))
    offer = _Offer(described, wide, _offered_words(chosen, added))
    align = find_delay if servo is None else lambda _: Delay()
    answer = _identify(tasks, offer, chosen, align)
    warnings = _diagnose_where_asked(tasks, described, measured, chosen)
    solved, calibration, reduced = answer.solved, answer.calibration, answer.reduced
    log_options: dict[str, Any] = select_options(LogOptions, {**options, **as_torques})
    if calibration.confirmed:
        log_options = corrected_options(log_options, calibration.correction, wide.robot)
    servo_notes = [] if servo is None else servo.notes
    notes = [
        *(*servo_notes, *solved.estimate.notes),
        *measured_notes,
        *term_notes,
        *calibration.notes,
        *warnings,
        *answer.notes,
        *solved.delay.notes(reduced.period),
        *solved.notes,
        *reduced.notes,
    ]
    fitted = Fit(
        description=solved.base.robot,
        estimator=solved.estimator.keep(solved.estimate),
        estimate=solved.estimate,
        reduced=solved.reduced,
        equations=solved.equations,
        notes=as_notes(notes),
        log_options={**log_options, "filtering": chosen["filtering"]},
        options=chosen,
        recordings=tuple(t.source for t in tasks if isinstance(t.source, Recording)),
        delay=solved.delay.value,
        calibration=calibration,
        selected=answer.selection.entries,
        servo=servo,
    )
    compared = compare_sources(fitted, [t.source for t in tasks])
    if compared is None:
        return fitted
    return replace(fitted, logs=compared, notes=as_notes([*compared.notes, *notes]))


@dataclass(frozen=True, eq=False)
class _Offer:
    """The described robot, its base with every joint term that may enter, and the terms' names."""

    described: Robot
    wide: BaseParameters
    words: tuple[str, ...]

    @cached_property
    def plain(self) -> BaseParameters:
        """Base parameters without the terms on offer."""
        offered = {s for word in self.words for s in SEARCHED[word]}
        robot = remove_terms(self.wide.robot, [offered for _ in self.wide.robot.drives])
        if robot.drives == self.wide.robot.drives:
            return self.wide
        return base_parameters(robot, measured=self.wide.experiment.measured_joints)


def _offered_words(chosen: Mapping[str, Any], added: bool) -> tuple[str, ...]:
    """Joint terms that may enter: the given candidates; by default all, if the robot declares
    none.
    """
    if chosen["candidates"] is not None:
        return tuple(chosen["candidates"])
    return DEFAULT_WORDS if added and chosen["friction"] is None else ()


@dataclass(frozen=True, eq=False)
class _Answer:
    """A fit's equations, errors of the log that were corrected, and what was selected."""

    solved: _Solution
    calibration: Calibration
    selection: Selection
    reduced: Reduced
    notes: Sequence[Note]


def _identify(
    tasks: Sequence[LogTask], offer: _Offer, chosen: Mapping[str, Any], align: Align
) -> _Answer:
    """The plain fit, the search for further effects, and the fit with these."""
    if has_rows(tasks, offer.wide.robot, chosen):
        base = offer.plain
        reduced = reduce_tasks(tasks, base)
        _require_enough_rows(reduced, base)
        delay = align(reduced)
        aligned = reduced.with_shifted_torques(delay.value) if reduced.strata else reduced
        solved = _solve(tasks, base, aligned, delay, {**chosen, **BY_TORQUES})
        setup = make_uncorrected_log(tasks, base, aligned, chosen, solved.estimator, delay.value)
        if setup is not None:
            return _enter_effects(tasks, offer, setup, solved, reduced, chosen)
    return _identify_reduced(tasks, offer, chosen, align)


def _identify_reduced(
    tasks: Sequence[LogTask], offer: _Offer, chosen: Mapping[str, Any], align: Align
) -> _Answer:
    """The same for a log without rows: only joint terms can be searched."""
    wide = offer.wide
    reduced = reduce_tasks(tasks, wide)
    _require_enough_rows(reduced, wide)
    delay = align(restrict_terms(reduced, wide.robot, offer.plain))
    if not reduced.strata:
        solved = _solve(tasks, wide, reduced, delay, chosen)
        return _Answer(solved, Calibration(), Selection(), reduced, [])
    aligned = reduced.with_shifted_torques(delay.value)
    estimator = Estimator.from_options(wide, chosen)
    selection = select_terms(aligned, estimator, offer.plain, offer.words)
    terms: Terms = selection.terms
    while True:
        robot = with_terms(offer.plain.robot, terms, np.asarray(wide.robot.load_model))
        narrow = base_parameters(robot, measured=chosen["measured"])
        part = restrict_terms(aligned, wide.robot, narrow)
        solved = _solve(tasks, narrow, part, delay, chosen)
        fewer = without_restless(terms, robot, solved.estimate.delta, selection.usual)
        if fewer == terms:
            notes, selection = selection.term_notes(terms), selection.drop_rejected((), terms)
            return _Answer(solved, Calibration(), selection, part, notes)
        terms = fewer


def _enter_effects(
    tasks: Sequence[LogTask],
    offer: _Offer,
    setup: UncorrectedLog,
    plain: _Solution,
    reduced: Reduced,
    chosen: Mapping[str, Any],
) -> _Answer:
    """The fit with the effects that a search found, if feasible fits with them predict better."""
    abrupt = with_abrupt_friction(setup.base.robot, offer.described) is not setup.base.robot
    selection = select_effects(setup, plain.estimate, offer.words, abrupt)
    assert selection.plain is not None
    solved, corrected, notes = plain, Corrected(selection.plain), list[Note]()
    if selection.sensors or selection.terms or selection.abrupt:
        other, terms = _correct_log(tasks, offer, setup, plain, selection, chosen)
        gain = other.trial.held_out_in(selection.plain).gain(over=selection.plain.held_out)
        if RULES["fit"].accepts(gain):
            trial, corrected = other.trial, other
            delay = Delay() if trial.correction.shifts_torques else plain.delay
            if delay.left:  # the effects that entered may explain it
                delay = Delay(left=find_delay(trial.reduced).left)
            solved = _solve(tasks, trial.base, trial.reduced, delay, chosen, trial.correction)
            notes = selection.term_notes(terms)
            selection = selection.drop_rejected(other.active, terms)
        else:
            selection = selection.refused("feasible fits with all of it predict no better")
    if solved is plain and not _by_torques(chosen):
        solved = _solve(tasks, plain.base, plain.reduced, plain.delay, chosen)
    weight = min(plain.estimate.evidence_weight, COVARIANCE_WEIGHT)
    allowance = allow(corrected, weight, selection.gains_by_mistake, selection.alike)
    # Another log of this robot has the same tilt, but not the same rounding of positions.
    estimate = solved.estimate.with_systematic(allowance.spread, recurring=True)
    asked = chosen["calibration"] is not None
    bias, own_notes = resolution_bias(corrected.trial) if asked else None, solved.notes
    if bias is not None:
        estimate = estimate.with_systematic(bias.spread[:, None])
        own_notes = [*bias.notes, *own_notes]
    solved = replace(solved, estimate=estimate, notes=own_notes)
    notes = [*notes, *selection.notes]
    return _Answer(solved, allowance.calibration, selection, reduced, notes)


def _correct_log(
    tasks: Sequence[LogTask],
    offer: _Offer,
    setup: UncorrectedLog,
    plain: _Solution,
    selection: Selection,
    chosen: Mapping[str, Any],
) -> tuple[Corrected, Terms]:
    """The corrected log with joint terms; terms that leave a joint without friction at rest are
    dropped.
    """
    first = plain.estimate
    terms: Terms = selection.terms
    usual = friction_by_drive(plain.base.robot, first.delta)
    bodies = first.solution.delta[plain.base.robot.inertial_columns]
    assert selection.trial is not None
    while True:
        robot = with_terms(plain.base.robot, terms, bodies, setup.travel, selection.ripples)
        robot = with_abrupt_friction(robot, offer.described) if selection.abrupt else robot
        own = setup
        if robot.drives != plain.base.robot.drives:
            base = base_parameters(robot, measured=chosen["measured"])
            aligned = reduce_tasks(tasks, base).with_shifted_torques(plain.delay.value)
            own = replace(setup, base=base, reduced=aligned, estimator=setup.estimator.on(base))
        start = CorrectedLog(own, selection.trial.correction, first.noise, first.prior_weight, None)
        corrected = correct_log(start, selection.sensors)
        fewer = without_restless(terms, robot, corrected.trial.delta, usual)
        if fewer == terms:
            return corrected, terms
        terms = fewer


def _diagnose_where_asked(
    tasks: Sequence[LogTask],
    robot: Robot,
    measured: Sequence[str] | None,
    chosen: Mapping[str, Any],
) -> list[Note]:
    """Findings about the logs, if the caller wants a diagnosis."""
    if not chosen["diagnose"]:
        return []
    model, _ = with_fit_terms(robot, chosen["friction"], chosen["drive_inertia"])
    return diagnose_logs(tasks, model, measured)


@dataclass(frozen=True, eq=False)
class _Solution:
    """Equations, the estimator that solved them, and the estimate."""

    estimator: Estimator
    reduced: Reduced
    delay: Delay
    equations: Reduced
    notes: Sequence[Note]
    estimate: Estimate

    @property
    def base(self) -> BaseParameters:
        """Base parameters of the model."""
        return self.estimator.base

    @property
    def cross_validation(self) -> CrossValidation:
        """Models of all folds but one, with everything that was decided."""
        return self.estimator.keep(self.estimate).cross_validate(self.reduced)


def _solve(
    tasks: Sequence[LogTask],
    base: BaseParameters,
    reduced: Reduced,
    delay: Delay,
    chosen: Mapping[str, Any],
    correction: LogCorrection = NOTHING,
) -> _Solution:
    """Weigh the equations of a log and solve them.

    `reduced` is without the errors in `correction` and the delay; other equations are formed so.
    """
    estimator = Estimator.from_options(base, chosen)
    equations, notes = reduced, list[Note]()
    if not _by_torques(chosen):
        values = {Mistake("delay"): np.array([delay.value])} if delay.value else {}
        correction = LogCorrection({**values, **correction.values})
        equations, notes = _form_equations(tasks, base, chosen, estimator, correction)
    estimate = estimator.fit(equations)
    late = estimator.delay_sensitivity(equations, estimate, delay.deviation)
    estimate = estimate.with_systematic(late)
    return _Solution(estimator, reduced, delay, equations, notes, estimate)


def _by_torques(chosen: Mapping[str, Any]) -> bool:
    """Whether a fit solves the equations of torques, filtered row by row."""
    return all(chosen[name] == value for name, value in BY_TORQUES.items())


def _form_equations(
    tasks: Sequence[LogTask],
    base: BaseParameters,
    chosen: Mapping[str, Any],
    estimator: Estimator,
    correction: LogCorrection,
) -> tuple[Reduced, list[Note]]:
    """Equations of the momentum, or of blocks of rows with robust weights."""
    robot, columns = base.robot, independent_columns(base)
    if chosen["measured"] is not None:
        rest = ", ".join(j for j in robot.joints if j not in chosen["measured"])
        raise InputError(
            "robust and method='momentum' need the torques of all joints"
            + (f", and the log is without (measured) that of {rest}" if rest else "")
            + ": leave them out, or measured",
            option="measured",
        )
    prepared = _prepared_motions(tasks, robot, correction)
    if chosen["method"] == "momentum":
        from feasid.regression import momentum

        parts = [momentum.reduce_momentum(m, robot, columns, chosen["window"]) for m in prepared]
        total: Reduced = sum(parts[1:], parts[0])
        return total, [total.notes[-1]]
    from feasid.regression import robust

    blocks = [
        block
        for motions in prepared
        for block in robust.reduce_blocks(motions, robot, columns, chosen["block"])
    ]
    kind = chosen["robust"]
    equations, shares = robust.reweight(blocks, kind, estimator.quick_beta)
    return equations, robust.weight_notes(blocks, shares, robot.coordinates, kind)


def _prepared_motions(
    tasks: Sequence[LogTask], robot: Robot, correction: LogCorrection
) -> list[Iterable[Motion]]:
    """Motions of all logs, prepared, without errors; raises for reduced data, which hold none."""
    if any(isinstance(t.source, Reduced) for t in tasks):
        raise InputError("this needs the log itself; reduced data hold no time")
    recorded = [(t.source, t.options) for t in tasks if isinstance(t.source, Recording)]
    return [
        _correct_motions(recording.motions(robot, **options), robot, correction)
        for recording, options in recorded
    ]


def _correct_motions(
    motions: Iterable[Motion], robot: Robot, correction: LogCorrection
) -> Iterator[Motion]:
    """Motions without the errors of a log; raises where contact forces are unknown."""
    for motion in motions:
        if any(run.free is not None for run in motion.runs):
            raise InputError("robust and method='momentum' need the forces of all contacts")
        runs = tuple(correction.correct_run(run, robot) for run in motion.runs)
        yield replace(motion, runs=runs)


def _require_enough_rows(reduced: Reduced, base: BaseParameters) -> None:
    unknowns = len(base.independent)
    if reduced.samples * len(reduced.triangles) < unknowns:
        raise NotEnoughDataError(
            f"{reduced.samples} usable samples of {len(reduced.triangles)} joints are fewer "
            f"equations than the {unknowns} base parameters"
        )
