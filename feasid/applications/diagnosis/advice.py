"""Problems of a log, by a fit of it: corrected errors, features that the model lacks, and contacts.

The log's columns and large errors come first (`feasid.identification.effects.log_check`). The log
is fitted with the options that they propose; the table of the fit's search
(`feasid.identification.effects.selection`) holds the errors that it corrected and what it only
reports. An option is proposed only if the fit with it predicts held-out segments better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from feasid.core.arguments import checked
from feasid.core.errors import FeasidError
from feasid.core.progress import step
from feasid.core.threads import one_thread
from feasid.identification.assessment.checks import unexplained_joints
from feasid.identification.assessment.quality import joints_that_follow
from feasid.identification.effects.corrected_log import CorrectedLog, UncorrectedLog
from feasid.identification.effects.corrections import NOTHING
from feasid.identification.effects.log_check import (
    AdviceSearch,
    LogCheck,
    check_log,
    confirm_advice,
)
from feasid.identification.effects.log_findings import check_excitation
from feasid.identification.effects.search import SIMPLE, EffectSearch
from feasid.identification.effects.table import EFFECTS, EffectAt
from feasid.identification.estimation.held_out import RULES
from feasid.identification.regression import reduce
from feasid.identification.regression.reduce import Log
from feasid.logs.checks.findings import Diagnosis, Finding, sort_findings
from feasid.logs.motion import Run, excluded_blocks
from feasid.logs.recording import Recording
from feasid.options.complete import check_options, document_options, select_options
from feasid.options.tables import DiagnoseOptions, LogOptions
from feasid.results.fit import Fit, fit
from feasid.robot.description import Robot

LOWER = 0.5
"""Share of the equations' cut-off that is tried where positions are coarse: the squared noise of
accelerations below it falls to a thirtieth."""

RATIOS = tuple(s * r for s in (1.0, -1.0) for r in (0.25, 0.35, 0.5, 0.71, 1.0, 1.4, 2.0, 2.8, 4.0))
"""Ratios of a motor that moves two joints, close enough for a score test to see those between."""

EQUAL_RATIOS = 0.98
"""Share of what one ratio saves with which half or twice of it counts as saving the same."""

NEIGHBOURS = 2
"""Largest distance in the tree of two joints that may share motors: those of a wrist, or of a
parallelogram."""

MOST_MOTORS = 3  #: Largest number of motors of two joints that are searched.

LEFT, EITHER = 0.6, 0.95
"""Such a motor must reduce the product of its joints' held-out errors to the square of the first
share, and neither error may exceed the second share, because another motor may add to it."""

CONTACT = 12.0  #: Robust deviations of a residual beyond which a contact is suspected.

MOST_LEFT_OUT = 0.1
"""Share of the rows up to which outliers are called contacts; with more of them the model is
wrong."""


@checked
@document_options(DiagnoseOptions)
@one_thread()
@step("diagnosing")
def diagnose(
    log: Log | Sequence[Log],
    robot: Robot | str | Path | None = None,
    **options: Unpack[DiagnoseOptions],
) -> Diagnosis:
    """Find what is wrong with a log, and which options of a fit correct it.

    The log is prepared as in `feasid.fit`. An option is proposed only if a feasible model that is
    fitted with it predicts held-out segments of the log better. Errors that a fit corrects by
    itself are reported as notes.

    Parameters
    ----------
    log : DataFrame, mapping of arrays, path or Recording, or a sequence of these
        Several logs are checked one by one, and then fitted together to find logs that differ from
        the others, and in what.
    robot : Robot or path, optional
        Default ``log.attrs["robot"]``.
    **options
        Those of `feasid.logs.frame.prepare`, and motors that move several joints.

    Returns
    -------
    Diagnosis
        A problem of the log is a finding and not an exception.

    Raises
    ------
    InputError
        There is no robot, or an option does not exist.
    """
    settings = check_options(DiagnoseOptions, options, "diagnose")
    sources = reduce.open_sources(log)
    robot = reduce.robot_of_logs(log, sources, robot, settings)
    if len(sources) > 1:
        return _diagnose_together([*map(Recording.from_source, sources)], robot, settings)
    recording = Recording.from_source(sources[0])
    check = check_log(recording, robot, settings)
    if not check.usable:
        return check.diagnosis
    findings = [*check.diagnosis, *_fit_findings(recording, check)]
    return replace(check.diagnosis, findings=sort_findings(findings))


def _diagnose_together(logs: Sequence[Recording], robot: Robot, more: dict[str, Any]) -> Diagnosis:
    """What is wrong with each log, and which differs from the others in a fit of all."""
    checks = [check_log(log, robot, more, thorough=False) for log in logs]
    names = [Path(log.name).name or f"log {k}" for k, log in enumerate(logs, start=1)]
    findings = [
        replace(f, message=f"{name}: {f.message}")
        for name, check in zip(names, checks, strict=True)
        for f in check.diagnosis
        if f.level != "note"
    ]
    usable = [log for log, check in zip(logs, checks, strict=True) if check.usable]
    table = ""
    if len(usable) > 1:
        try:
            fitted = fit(usable, robot, diagnose=False, **more)
        except FeasidError as error:
            findings.append(Finding("unusable", "error", str(error)))
        else:
            if fitted.comparison is not None:
                notes, table = fitted.comparison.notes, str(fitted.comparison)
                findings += [Finding(n.code, "warning", str(n), values=n.values) for n in notes]
    samples = sum(c.diagnosis.samples for c in checks)
    seconds = sum(c.diagnosis.duration for c in checks)
    rate = checks[0].diagnosis.rate
    return Diagnosis(sort_findings(findings), samples, seconds, rate, table=table)


def _fit_findings(recording: Recording, check: LogCheck) -> list[Finding]:
    """What a fit of the corrected log finds, and what its residual shows."""
    options = _fit_options(check)
    reading = reduce.complete_filter_options(select_options(LogOptions, options), "diagnose")
    motion = recording.motion(check.search.robot, **reading)
    findings = check_excitation(motion, check.search.robot)
    try:
        fitted = fit(recording, check.search.robot, diagnose=False, **options)
    except FeasidError as error:
        return [*findings, Finding("unusable", "error", str(error))]
    findings += [Finding("calibrated", "note", str(note), evidence="dynamics")
                 for note in fitted.calibration.notes]  # fmt: skip
    # Positions whose resolution biases the fit, and a cut-off with which it does not.
    coarse = [n for n in fitted.notes if n.code == "coarse"]
    if coarse and fitted.reduced.cutoff:
        finding = Finding("coarse", "warning", str(coarse[0]), values=coarse[0].values)
        more = {"cutoff": fitted.reduced.cutoff * LOWER}
        after = _fit_or_none(recording, check, more)
        if after is not None and all(n.code != "coarse" for n in after.notes):
            remedy = f"cutoff={more['cutoff']:g}, with which the bias is less than a standard error"
            finding = replace(finding, options=more, remedy=remedy, evidence="dynamics")
        findings.append(finding)
    findings += _unexplained_joints(fitted)
    findings += [Finding("payload", "note", str(n), "", (n.values["joint"],), evidence="dynamics")
                 for n in fitted.notes if n.code == "payload"]  # fmt: skip
    motors, fitted = _shared_motors(fitted, motion.runs, recording, check)
    findings += motors
    # Results of the fit's own search: terms that it added, and effects that no fit models.
    for note in fitted.notes:
        values = dict(note.values)
        joints = tuple(values.get("joints", ()))
        if note.code == "term-added":
            kind = next(e.name for e in EFFECTS.values() if values["term"] in e.terms)
            findings.append(Finding(kind, "note", str(note), joints=joints, evidence="dynamics"))
        elif note.code == "lacking":
            level = "warning" if values["gain"] >= RULES["feature"].share else "note"
            terms = EFFECTS[values["kind"]].terms
            finding = Finding(values["kind"], level, str(note), "", joints, (), values=values,
                              evidence="dynamics")  # fmt: skip
            if terms:
                finding = _finding_with_options(finding, {"candidates": terms}, values["gain"])
            findings.append(finding)
    trial = _trial_of(fitted, motion.runs)
    return findings if trial is None else [*findings, *_contact_findings(trial, check.search)]


def _trial_of(fitted: Fit, runs: Sequence[Run]) -> CorrectedLog | None:
    """The fitted log and its feasible model row by row; None where a fit is not calibrated."""
    base, estimate = fitted.base, fitted.estimate
    robot = base.robot
    cutoff = fitted.reduced.cutoff
    if estimate.covariance is None or not (cutoff and fitted.reduced.strata):
        return None
    # Every row must be one joint's: loops and floating bases mix joints.
    if not robot.is_plain or any(run.free is not None for run in runs):
        return None
    motion = tuple(fitted.calibration.correction.correct_run(run, robot) for run in runs)
    decided = (fitted.reduced, fitted.estimator, fitted.torque_shift, fitted.description)
    setup = UncorrectedLog(base, fitted.options, motion, float(cutoff), *decided)
    return CorrectedLog(setup, NOTHING, estimate.noise, estimate.prior_weight, estimate.delta)


def find_shared_motor(trial: CorrectedLog) -> tuple[EffectAt, float] | None:
    """The motor of two joints that saves most of the held-out error, and the share.

    A ratio other than a power of two is one more coefficient, and must save as much more; where
    one joint's motor explains most, ratios differ little, and the one nearest to 1 is taken.
    """
    robot, joints = trial.base.robot, trial.rows.joints
    known = {frozenset(d.coupling) for d in robot.drives if len(d.coupling) > 1}
    pairs = [(j, k) for j, k in combinations(joints, 2) if k - j <= NEIGHBOURS]
    pairs = [p for p in pairs if frozenset(robot.joints[j] for j in p) not in known]
    best = EffectSearch.best_of(
        trial,
        [EffectAt("coupling", j, r, k) for j, k in pairs for r in RATIOS],
        lambda m: EQUAL_RATIOS ** abs(np.log2(abs(m.number))),
    )
    if best is None:
        return None
    motor = best[0]
    # `RATIOS` lie a factor of 1.4 apart: these fill the gap on either side.
    neighbours = [replace(motor, number=motor.number * f) for f in np.geomspace(0.8, 1.25, 9)]
    finer = EffectSearch.best_of(trial, neighbours)
    power = float(np.log2(abs(motor.number))).is_integer()
    return best if finer is None or (power and SIMPLE * finer[1] < best[1]) else finer


def _shared_motors(
    fitted: Fit, runs: Sequence[Run], recording: Recording, check: LogCheck
) -> tuple[list[Finding], Fit]:
    """Motors of two joints with which both joints are predicted far better, and the fit with them.

    Elasticity or another friction law would explain at most one of the two joints.
    """
    findings: list[Finding] = []
    names, motors = fitted.description.joints, dict[str, dict[str, float]]()
    for _ in range(MOST_MOTORS):
        trial = _trial_of(fitted, runs)
        best = None if trial is None else find_shared_motor(trial)
        if best is None or (1.0 - best[1]) ** len(names) > LEFT:
            break  # the linear prediction does not see half of what a fit would have to gain
        motor, _ = best
        a, b = names[motor.joint], names[motor.other]
        factors = {a: 1.0, b: float(f"{motor.number:.2g}")}
        motors = {**motors, f"{a}_{b}": factors}
        after = _fit_or_none(recording, check, {"couplings": motors})
        if after is None:
            break
        pair = [motor.joint, motor.other]
        ratios = after.quality.errors.model[pair] / fitted.quality.errors.model[pair]
        if not (np.prod(ratios) < LEFT**2 and ratios.max() < EITHER):
            break
        text = (
            f"a motor moves both joints: with inertia and friction along dq[{a}] "
            f"{'+' if factors[b] > 0 else '-'} {abs(factors[b]):.2g} dq[{b}] their errors on "
            f"held-out segments fall to {ratios[0]:.0%} and {ratios[1]:.0%}"
        )
        finding = Finding("coupling", "warning", text, joints=(a, b), values={"ratio": factors[b]})
        more = {"couplings": {f"{a}_{b}": factors}}
        # Share by which held-out errors fall, as the geometric mean over joints.
        old, new = (f.quality.errors.model for f in (fitted, after))
        alive = (old > 0) & (new > 0)
        fall = 1.0 - float(np.exp(np.mean(np.log(new[alive] / old[alive])))) if alive.any() else 0.0
        findings.append(_finding_with_options(finding, more, fall))
        fitted = after
    return findings, fitted


def _fit_options(check: LogCheck) -> dict[str, Any]:
    """Options of a fit of the corrected log; the robot already has its drives."""
    return {k: v for k, v in check.search.options.items() if k != "couplings"}


def _finding_with_options(finding: Finding, options: Mapping[str, Any], gain: float) -> Finding:
    remedy = ", ".join(f"{k}={v}" for k, v in options.items())
    advised = replace(finding, options=options, gain=gain, remedy=remedy)
    return replace(advised, level="warning", evidence="dynamics")


def _fit_or_none(recording: Recording, check: LogCheck, more: Mapping[str, Any]) -> Fit | None:
    options = {**_fit_options(check), **more}
    try:
        return fit(recording, check.search.robot, diagnose=False, **options)
    except FeasidError:
        return None


def _unexplained_joints(fitted: Fit) -> list[Finding]:
    """Joints whose torque does not depend on the motion, or whose residual does."""
    most = unexplained_joints(fitted.evidence)
    if 2 * len(most) > len(fitted.evidence.joints):
        text = (
            "most torques are not explained by the motion: check that torques and motion belong "
            "together: robot, columns, time"
        )
        return [Finding("unexplained", "error", text, joints=tuple(most), evidence="dynamics")]
    text = "no better predicted than without a model"
    findings = [Finding("unexplained", "warning", text, joints=(j,), evidence="dynamics")
                for j in most]  # fmt: skip
    for joint, kind in joints_that_follow(fitted.evidence).items():
        text = f"the error of its torque follows the {kind}: the model lacks a term"
        findings.append(Finding("unexplained", "note", text, joints=(joint,), evidence="dynamics"))
    if period := fitted.evidence.period:
        text = (
            f"the motion repeats every {period:.3g} s: held-out segments resemble the fitted ones, "
            "so the errors hold for this motion only; test with another one"
        )
        findings.append(Finding("periodic", "note", text, values={"period": period}))
    return findings


def _contact_findings(trial: CorrectedLog, search: AdviceSearch) -> list[Finding]:
    """Segments in which a joint's torque is far from what its motion explains elsewhere."""
    rows, out = trial.rows, []
    residuals = trial.held_out_residuals / trial.row_deviations
    for j in rows.joints:
        at_joint = rows.joint == j
        e, t = residuals[at_joint], rows.t[at_joint]
        # Of a normal law, the deviation is 1.4826 times the median absolute one.
        spread = 1.4826 * float(np.median(np.abs(e - np.median(e))))
        away = np.abs(e - np.median(e)) > CONTACT * max(spread, 1e-300)
        far = np.flatnonzero(away).astype(np.int64)
        if not len(far) or len(far) > MOST_LEFT_OUT * len(e):
            continue
        step = float(np.median(np.diff(t)))
        gaps = [np.arange(a, b) for a, b in pairwise(far) if b - a <= 3]  # up to two rows long
        filled = np.unique(np.concatenate([far, *gaps])).astype(np.int64)
        parts = [p for p in excluded_blocks(filled, "") if p.count > 1]
        # The rows are decimated: a contact may begin up to one step before the first of them.
        when = tuple((float(t[p.first]) - step, float(t[p.last]) + step) for p in parts[:20])
        if not when:
            continue
        name = trial.base.robot.joints[j]
        text = (
            f"the torque leaves its usual scatter (up to {np.abs(e[far]).max() / spread:.0f} "
            f"standard deviations) in {len(parts)} segment(s), the first at t = "
            f"{when[0][0]:.4g} s: contact?"
        )
        shown = ", ".join(f"({a:.4g}, {b:.4g})" for a, b in when[:3])
        about = (name,), (f"tau_{name}",), (), when, {"exclude": when}
        out.append(Finding("outliers", "warning", text, f"exclude=[{shown}]", *about))
    return [f if f.options else replace(f, level="note") for f in confirm_advice(out, search)]
