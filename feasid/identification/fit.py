"""Identification: from a log and a robot to a physically consistent dynamic model.

`fit` is the main function; `compare_models` compares sets of joint terms on held-out stretches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from feasid.core.arguments import checked
from feasid.core.notes import Note
from feasid.core.notes import as_notes as as_notes
from feasid.core.threads import one_thread
from feasid.effects.calibration import (
    Calibration,
    Found,
    allow,
    calibrate,
    missing_terms,
    uncorrected_trial,
    with_other_terms,
)
from feasid.effects.corrected_log import (
    UncorrectedLog,
    corrected_equations,
    make_uncorrected_log,
    resolution_bias,
)
from feasid.effects.corrections import corrected_options
from feasid.effects.joint_terms import (
    Choice,
    candidate_sets,
    choose_terms,
    held_out_error,
    prefers_abrupt_friction,
)
from feasid.effects.log_check import diagnose_logs
from feasid.errors import InputError, NotEnoughDataError
from feasid.estimation.cross_validation import CrossValidation
from feasid.estimation.estimate import Estimate
from feasid.estimation.estimator import Estimator
from feasid.estimation.held_out import RULES
from feasid.estimation.noise import Delay, align_torques
from feasid.estimation.priors import COVARIANCE_WEIGHT, find_prior
from feasid.feasibility.constraints.sets import feasible_set
from feasid.formats.fit_robot import (
    GEAR_FRICTION,
    resolve_robot,
    with_abrupt_friction,
    with_fit_terms,
    with_further_term,
    with_shared_motors,
)
from feasid.identifiability.base import BaseParameters, base_parameters
from feasid.identification.prediction import compare_sources
from feasid.identification.result import Fit
from feasid.logs.motion import Motion
from feasid.logs.recording import Recording
from feasid.options.complete import complete_options, document_options, select_options
from feasid.options.tables import FitOptions, LogOptions, ReduceOptions
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
from feasid.robot.joint_terms import FRICTION, FURTHER_FRICTION, TERMS
from feasid.servos.gains import ServoFit, identify_servo

Align = Callable[[Reduced], tuple[Reduced, Delay]]
"""What takes a delay of less than a sample out of a log."""


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
        Default what travels in ``data.attrs["robot"]`` or in the reduced data.
    **options
        See `feasid.options.tables.FitOptions`.

    Returns
    -------
    Fit

    Raises
    ------
    LogError, NotEnoughDataError, DescriptionError, InputError
        What is wrong with the input, by name.
    SolverError
        When no answer passed verification; nothing unverified is returned.
    """
    chosen = complete_filter_options(complete_options(FitOptions, options, "fit"), "fit")
    find_prior(chosen["prior"])
    logs = open_sources(data)
    described = with_shared_motors(resolve_robot(data, robot), chosen["couplings"])
    if chosen["command"] is None:
        return _fit_torques(logs, described, options, chosen)
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

    base, term_notes = base_with_terms(described, logs, *terms, candidate_terms(chosen), measured)
    tasks = assign_cutoff(logs, base.robot, select_options(LogOptions, chosen), measured)
    reduced = reduce_tasks(tasks, base)
    _require_enough_rows(reduced, base)
    warnings = _diagnose_where_asked(tasks, described, measured, chosen)
    align = align_torques if servo is None else lambda r: (r, Delay())
    answer = _identify(tasks, described, base, reduced, chosen, align)
    if servo is None and any(note.code == "friction-added" for note in term_notes):
        answer = _add_missing_terms(answer, tasks, described, base, chosen)
    solved, calibration, reduced = answer.solved, answer.calibration, answer.reduced
    log_options: dict[str, Any] = select_options(LogOptions, {**options, **as_torques})
    if calibration.confirmed:
        log_options = corrected_options(log_options, calibration.correction, base.robot)
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
        servo=servo,
    )
    compared = compare_sources(fitted, [t.source for t in tasks])
    if compared is None:
        return fitted
    return replace(fitted, logs=compared, notes=as_notes([*compared.notes, *notes]))


@dataclass(frozen=True, eq=False)
class _Answer:
    """A fit's equations, what was found wrong with the log, and how joint terms were chosen."""

    solved: _Solution
    found: Found | None
    calibration: Calibration
    reduced: Reduced
    notes: Sequence[Note]


def _identify(
    tasks: Sequence[LogTask],
    described: Robot,
    base: BaseParameters,
    reduced: Reduced,
    chosen: Mapping[str, Any],
    align: Align,
) -> _Answer:
    """Choose friction's law among the terms of `base`, solve, and take mistakes out of the log."""
    abrupt = _reduce_with_abrupt_friction(tasks, described, base)
    base, reduced, delay, said = _choose_transition(base, reduced, abrupt, align)
    kept, restricted, notes = _choose_friction_terms(base, reduced, chosen)
    solved = _solve(tasks, kept, restricted, delay, chosen)
    wide = base, reduced
    abrupt = None if said else abrupt
    solved, found, calibration, again = _calibrate(tasks, wide, abrupt, solved, chosen)
    return _Answer(solved, found, calibration, restricted, [*said, *(again or notes)])


def _add_missing_terms(
    answer: _Answer,
    tasks: Sequence[LogTask],
    described: Robot,
    base: BaseParameters,
    chosen: Mapping[str, Any],
) -> _Answer:
    """The fit with joint terms that nobody declared, where held-out stretches ask for them loudly.

    All joints get them: a joint whose weight hides a spring in one log shows it in another.
    """
    if answer.found is None or chosen["candidates"] is not None:
        return answer
    robot, added = base.robot, list[Note]()
    for word in missing_terms(answer.found):
        solved = answer.solved
        bodies = solved.estimate.solution.delta[solved.base.robot.inertial_columns]
        wider = base_parameters(with_further_term(robot, word, bodies), measured=chosen["measured"])
        reduced = reduce_tasks(tasks, wider)
        again = _identify(tasks, described, wider, reduced, chosen, align_torques)
        before, after = (held_out_error(a.solved.cross_validation) for a in (answer, again))
        gain = 1.0 - after / before
        if gain < RULES["term"].share * len(FRICTION[word]):
            continue
        added.append(_term_note(word, gain))
        robot, answer = wider.robot, replace(again, notes=[*added, *again.notes])
    return answer


def _term_note(word: str, gain: float) -> Note:
    """What is said of a joint term that was added, and whether the fit is in doubt with it."""
    text = (
        f"{TERMS[FRICTION[word][0]].name} is added at every joint, with which the cross-validation "
        f"error falls by {gain:.0%} (candidates={GEAR_FRICTION} leaves it out)"
    )
    if word != "spring":
        return Note(text, "term-added", term=word, gain=gain)
    text += (
        "; what a spring shares with the weight of bodies is known for positions near those of the "
        "log only: record the whole range of the joints"
    )
    return Note(text, "term-added", term=word, gain=gain, confirmed=True)


def _diagnose_where_asked(
    tasks: Sequence[LogTask],
    robot: Robot,
    measured: Sequence[str] | None,
    chosen: Mapping[str, Any],
) -> list[Note]:
    """What is wrong with the logs, where the caller wants to know."""
    if not chosen["diagnose"]:
        return []
    model, _ = with_fit_terms(robot, chosen["friction"], chosen["drive_inertia"])
    return diagnose_logs(tasks, model, measured)


@dataclass(frozen=True, eq=False)
class _Solution:
    """Equations, what they were solved with, and the answer."""

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
) -> _Solution:
    """Weigh the equations of a log and solve them."""
    estimator = Estimator.from_options(base, chosen)
    equations, notes = _form_equations(tasks, base, reduced, chosen, estimator, delay.value)
    estimate = estimator.fit(equations)
    late = estimator.delay_sensitivity(equations, estimate, delay.deviation)
    estimate = estimate.with_systematic(late)
    return _Solution(estimator, reduced, delay, equations, notes, estimate)


def _calibrate(
    tasks: Sequence[LogTask],
    wide: tuple[BaseParameters, Reduced],
    abrupt: tuple[BaseParameters, Reduced] | None,
    solved: _Solution,
    chosen: Mapping[str, Any],
) -> tuple[_Solution, Found | None, Calibration, list[Note]]:
    """Take out the mistakes that the log confirms; the others widen the covariance.

    What was taken out had a part in the choice of friction terms, which is made again without it
    from the equations with all candidates, `wide`. The notes are those of the second choice.
    """
    first, notes = solved.estimate, list[Note]()
    setup = make_uncorrected_log(
        tasks, solved.base, solved.reduced, chosen, solved.estimator, solved.delay.value
    )
    if setup is None:
        return solved, None, Calibration(), notes
    found = calibrate(setup, first)
    if found.active:
        whole = replace(setup, base=wide[0], reduced=wide[1])
        corrected, again, said = _fit_without_mistakes(
            tasks, whole, abrupt, solved.delay, found, chosen
        )
        errors = (held_out_error(s.cross_validation) for s in (corrected, solved))
        if next(errors) < next(errors):
            solved, found, notes = corrected, again, said
        else:
            found = Found(uncorrected_trial(setup, first))
    allowance = allow(found, min(first.evidence_weight, COVARIANCE_WEIGHT))
    # Another log of this robot has the same tilt, but not the same rounding of positions.
    estimate = solved.estimate.with_systematic(allowance.spread, recurring=True)
    bias, own_notes = resolution_bias(found.trial), solved.notes
    if bias is not None:
        estimate = estimate.with_systematic(bias.spread[:, None])
        own_notes = [*bias.notes, *own_notes]
    return replace(solved, estimate=estimate, notes=own_notes), found, allowance.calibration, notes


def _fit_without_mistakes(
    tasks: Sequence[LogTask],
    wide: UncorrectedLog,
    abrupt: tuple[BaseParameters, Reduced] | None,
    delay: Delay,
    found: Found,
    chosen: Mapping[str, Any],
) -> tuple[_Solution, Found, list[Note]]:
    """The fit without the mistakes that were found, with friction's law chosen again."""
    correction = found.trial.correction
    again, _, _, equations = corrected_equations(wide, correction)
    told = list[Note]()
    if abrupt is not None:
        aligned = abrupt[1].with_shifted_torques(delay.value)
        other = replace(wide, base=abrupt[0], reduced=aligned)
        changed, _, _, others = corrected_equations(other, correction)
        told = prefers_abrupt_friction(equations, others)
        wide, again, equations = (other, changed, others) if told else (wide, again, equations)
    delay = Delay() if correction.shifts_torques else delay
    base, reduced, notes = _choose_friction_terms(again, equations, chosen)
    if base.robot.drives != found.trial.base.robot.drives:
        estimate = _solve(tasks, base, reduced, delay, chosen).estimate
        found = with_other_terms(found, wide, base.robot, estimate)
    trial = found.trial
    return _solve(tasks, trial.base, trial.reduced, delay, chosen), found, [*told, *notes]


def _choose_transition(
    base: BaseParameters,
    reduced: Reduced,
    abrupt: tuple[BaseParameters, Reduced] | None,
    align: Align,
) -> tuple[BaseParameters, Reduced, Delay, list[Note]]:
    """The logs with torques that are aligned, and with friction that changes its sign at once.

    The latter only where held-out stretches prefer it, which the note tells.
    """
    smooth, delay = align(reduced)
    if abrupt is None:
        return base, smooth, delay, []
    notes = prefers_abrupt_friction(smooth, abrupt[1].with_shifted_torques(delay.value))
    return (abrupt[0], *align(abrupt[1]), notes) if notes else (base, smooth, delay, notes)


def _reduce_with_abrupt_friction(
    tasks: Sequence[LogTask], described: Robot, base: BaseParameters
) -> tuple[BaseParameters, Reduced] | None:
    """The logs with Coulomb friction that changes its sign at once; None where nothing can choose.

    That is where the caller said how it does, or where no stretches can be held out.
    """
    robot = with_abrupt_friction(base.robot, described)
    fresh = all(isinstance(t.source, Recording) for t in tasks)
    if robot is base.robot or not fresh:
        return None
    other = base_parameters(robot, measured=base.experiment.measured_joints)
    return other, reduce_tasks(tasks, other)


def _choose_friction_terms(
    base: BaseParameters, reduced: Reduced, chosen: Mapping[str, Any]
) -> tuple[BaseParameters, Reduced, list[Note]]:
    """Drop the further friction terms that the log's held-out stretches do not support."""
    candidates = chosen["candidates"]
    if candidates is None:
        candidates = GEAR_FRICTION if chosen["friction"] is None else ()
    fitted = {symbol for drive in base.robot.drives for symbol in drive.symbols}
    present = [term for term in candidates if FRICTION[term][-1] in fitted]
    if not present or not reduced.strata:
        return base, reduced, []
    pruned, measured = chosen["candidates"] is not None, chosen["measured"]
    estimator = Estimator.from_options(base, chosen)
    choice = choose_terms(reduced, estimator, candidate_sets(present), pruned=pruned)
    kept = base_parameters(choice.robot, measured=measured)
    return kept, restrict_terms(reduced, base.robot, kept), [choice.note]


def _form_equations(
    tasks: Sequence[LogTask],
    base: BaseParameters,
    reduced: Reduced,
    chosen: Mapping[str, Any],
    estimator: Estimator,
    delay: float,
) -> tuple[Reduced, list[Note]]:
    """Equations to solve: of the torques, of the momentum, or of blocks with robust weights."""
    robot, columns = base.robot, independent_columns(base)
    if chosen["measured"] is not None and (chosen["method"], chosen["robust"]) != ("torque", None):
        rest = ", ".join(j for j in robot.joints if j not in chosen["measured"])
        raise InputError(
            "robust and method='momentum' need the torques of all joints"
            + (f", and the log is without (measured) that of {rest}" if rest else "")
            + ": leave them out, or measured",
            option="measured",
        )
    if chosen["method"] == "momentum":
        from feasid.regression import momentum

        parts = [
            momentum.reduce_momentum(m, robot, columns, chosen["window"])
            for m in _prepared_motions(tasks, robot)
        ]
        total: Reduced = sum(parts[1:], parts[0])
        return total, [total.notes[-1]]
    if chosen["robust"] is None:
        return reduced, []
    from feasid.regression import robust

    blocks = [
        block
        for motions in _prepared_motions(tasks, robot)
        for block in robust.reduce_blocks(motions, robot, columns, chosen["block"])
    ]
    kind = chosen["robust"]
    equations, shares = robust.reweight(blocks, kind, estimator.quick_beta)
    return equations.with_shifted_torques(delay), robust.weight_notes(
        blocks, shares, robot.coordinates, kind
    )


def _prepared_motions(tasks: Sequence[LogTask], robot: Robot) -> list[Iterable[Motion]]:
    """Motions of all logs, prepared; raises for reduced data, which hold no motion."""
    if any(isinstance(t.source, Reduced) for t in tasks):
        raise InputError("this needs the log itself; reduced data hold no time")
    recorded = [(t.source, t.options) for t in tasks if isinstance(t.source, Recording)]
    return [
        _require_contact_forces(recording.motions(robot, **options))
        for recording, options in recorded
    ]


def _require_contact_forces(motions: Iterable[Motion]) -> Iterator[Motion]:
    """Pass motions on; raise where contact forces are unknown."""
    for motion in motions:
        if any(run.free is not None for run in motion.runs):
            raise InputError("robust and method='momentum' need the forces of all contacts")
        yield motion


def _require_enough_rows(reduced: Reduced, base: BaseParameters) -> None:
    unknowns = len(base.independent)
    if reduced.samples * len(reduced.triangles) < unknowns:
        raise NotEnoughDataError(
            f"{reduced.samples} usable samples of {len(reduced.triangles)} joints are fewer "
            f"equations than the {unknowns} base parameters"
        )


@checked
@document_options(ReduceOptions)
@one_thread()
def compare_models(
    data: Log | Reduced | Sequence[Log | Reduced],
    robot: Robot | str | Path | None = None,
    models: Sequence[Sequence[str]] | None = None,
    **options: Unpack[ReduceOptions],
) -> Choice:
    """Compare sets of joint terms by the torque errors on stretches that were not fitted.

    Every set is given to all joints and fitted five times, each time without one fifth of the
    log's stretches of time.

    Parameters
    ----------
    data : DataFrame, mapping of arrays, path, Reduced, or a sequence of these
    robot : Robot or path, optional
        Default what travels with the data.
    models : sequence of sequences of str, optional
        Sets of terms beyond viscous, Coulomb and offset, of "sqrt", "load", "weight", "stribeck",
        "direction", "spring" and "compensator", the smallest first; ``()`` is none of them. Default
        none, each of `candidates`, each two, and all.
    **options
        See `feasid.options.tables.ReduceOptions`; `candidates` are all terms by default.

    Returns
    -------
    Choice
        Its ``table`` has the errors, a row per set and a column per joint; ``chosen`` what each
        joint gets; ``feasid.fit(data, choice.robot)`` fits that.

    Raises
    ------
    InputError
        A term that is not known, or reduced data without stretches.
    """
    given = dict(options)
    if models is not None and given.get("candidates") is not None:
        raise InputError("models says which terms are compared: leave candidates out")
    terms = list(dict.fromkeys(t for m in models or () for t in m))
    if models is not None and not terms:
        raise InputError("models has no term to compare: give sets such as [(), ('stribeck',)]")
    if given.get("candidates") in ((), []):
        raise InputError("candidates has no term to compare: leave it out, or name some")
    given["candidates"] = tuple(terms) or given.get("candidates") or FURTHER_FRICTION
    chosen = complete_filter_options(
        complete_options(ReduceOptions, given, "compare_models"), "compare_models"
    )
    sources = open_sources(data)
    wanted = with_shared_motors(resolve_robot(data, robot), chosen["couplings"])
    asked = chosen["friction"], chosen["drive_inertia"], candidate_terms(chosen)
    measured, _ = find_measured_joints(sources, wanted, chosen)
    base, _ = base_with_terms(wanted, sources, *asked, measured)
    tasks = assign_cutoff(sources, base.robot, select_options(LogOptions, chosen), measured)
    reduced = reduce_tasks(tasks, base)
    if not reduced.strata:
        raise InputError(
            "models are compared on segments of the log, which these data do not keep: leave "
            "filtering='signals' and cutoff=False out"
        )
    abrupt = _reduce_with_abrupt_friction(tasks, wanted, base)
    if abrupt is not None and prefers_abrupt_friction(reduced, abrupt[1]):
        base, reduced = abrupt
    have = {s for d in base.robot.drives for s in d.symbols}
    there = [t for t in chosen["candidates"] if have.intersection(FRICTION[t])]
    sets = [tuple(m) for m in models] if models is not None else candidate_sets(there)
    estimator = Estimator(base, feasible_set(base.robot))
    return choose_terms(reduced, estimator, sets, pruned=True)
