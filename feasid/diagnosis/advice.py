"""What is wrong with a log, by a fit of it: mistakes, features that a model lacks, and contacts.

The log's columns and large mistakes come first (`feasid.effects.log_check`). The mended log
is fitted, which takes out what its held-out stretches confirm, and the residual is searched for
torques that the model lacks: each is a column beside all parameters, supported by a score test and
by stretches that were held out. Advice was tried: the fit with it predicts such stretches better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from feasid.assessment.checks import unexplained_joints
from feasid.assessment.quality import joints_that_follow
from feasid.core.arguments import checked
from feasid.core.threads import one_thread
from feasid.effects.columns import HARMONICS
from feasid.effects.corrected_log import CorrectedLog, UncorrectedLog
from feasid.effects.corrections import NOTHING
from feasid.effects.functions import Mistake
from feasid.effects.log_check import (
    AdviceSearch,
    LogCheck,
    check_log,
    confirm_advice,
)
from feasid.effects.log_findings import check_excitation
from feasid.effects.score import ScoreTest
from feasid.effects.table import EFFECTS, POSITION, missing_features
from feasid.errors import FeasidError
from feasid.estimation.held_out import RULES
from feasid.formats.fit_robot import GEAR_FRICTION, resolve_robot, with_shared_motors
from feasid.identification.fit import fit
from feasid.identification.result import Fit
from feasid.logs.checks.findings import Diagnosis, Finding, merge_options, sort_findings
from feasid.logs.floating import robot_floats
from feasid.logs.motion import Rows, Run, excluded_blocks
from feasid.logs.recording import Recording
from feasid.options.complete import check_options, document_options, select_options
from feasid.options.tables import DiagnoseOptions, LogOptions
from feasid.regression.reduce import Log, complete_filter_options, open_sources
from feasid.robot.description import Robot
from feasid.robot.joint_terms import FRICTION

LOWER = 0.5
"""Share of the equations' cut-off that is tried where positions are coarse: the squared noise of
accelerations below it falls to a thirtieth."""

MOST_FEATURES = 6
"""Rounds of score tests, each of which may find a feature at one joint or more."""

STRONGEST = 2
"""Ripples per joint, the strongest of its unfiltered residual, that are tested."""

RATIOS = tuple(s * r for s in (1.0, -1.0) for r in (0.25, 0.35, 0.5, 0.71, 1.0, 1.4, 2.0, 2.8, 4.0))
"""Ratios of a motor that moves two joints, close enough for a score test to see those between."""

NEIGHBOURS = 2
"""Joints at most so far apart share motors: those of a wrist, or a parallelogram's two."""

MOST_MOTORS = 3
"""Motors of two joints that are looked for."""

LEFT, EITHER = 0.6, 0.95
"""Such a motor must leave at most the square of the first share of the product of its joints'
held-out errors, and of neither more than the second, in which another motor may have a part."""

UNBOUNDED = ("spring",)
"""Terms that run away outside the positions of a log."""

LONG_STRETCHES = 3
"""Parts of a log, each predicted by a model of the others, on which further terms may not be worse:
on stretches of 13 s of that log also sines of the position were up to twice as wrong elsewhere."""

ALIKE = 0.5
"""Share of the best joint's statistic from which a feature is named of other joints as well."""

CONTACT = 12.0
"""Robust deviations of a residual beyond which a contact is suspected."""

MOST_LEFT_OUT = 0.1
"""Share of the rows up to which they are called contacts: beyond, it is the model that is wrong."""

LOADED, CERTAIN = 0.2, 4.0
"""A last body heavier or lighter than described by more than this share of its mass, and by so many
deviations, carries a load that the description lacks, or lacks one."""


@checked
@document_options(DiagnoseOptions)
@one_thread()
def diagnose(
    log: Log | Sequence[Log],
    robot: Robot | str | Path | None = None,
    **options: Unpack[DiagnoseOptions],
) -> Diagnosis:
    """Find what is wrong with a log, and which options of a fit make up for it.

    The log is looked at as `feasid.fit` prepares it. An option is proposed only if a feasible model
    that is fitted with it predicts stretches of the log that it did not see better than without.
    What a fit takes out by itself is a note.

    Parameters
    ----------
    log : DataFrame, mapping of arrays, path or Recording, or a sequence of these
        Of several logs, each is looked at, then all are fitted together: which of them differs
        from the others, and in what.
    robot : Robot or path, optional
        Default what travels in ``df.attrs["robot"]``.
    **options
        Those of `feasid.logs.frame.prepare`, and motors that move several joints.

    Returns
    -------
    Diagnosis
        Never an error for what is wrong with the log: that is a finding.

    Raises
    ------
    InputError
        Without a robot, or for an option that it does not have.
    """
    asked = check_options(DiagnoseOptions, options, "diagnose")
    robot = with_shared_motors(resolve_robot(log, robot), asked.get("couplings"))
    sources = open_sources(log)
    if len(sources) > 1:
        return _diagnose_together([s for s in sources if isinstance(s, Recording)], robot, asked)
    recording = Recording.from_source(sources[0])
    check = check_log(recording, robot, asked)
    if not check.usable:
        return check.diagnosis
    found = [*check.diagnosis, *_fit_findings(recording, check)]
    return replace(check.diagnosis, findings=sort_findings(found))


def _diagnose_together(
    logs: Sequence[Recording], robot: Robot, asked: Mapping[str, Any]
) -> Diagnosis:
    """What is wrong with each log, and which differs from the others in a fit of all."""
    checks = [check_log(log, robot, asked, thorough=False) for log in logs]
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
            fitted = fit(usable, robot, diagnose=False, **asked)
        except FeasidError as error:
            findings.append(Finding("unusable", "error", str(error)))
        else:
            table = "" if fitted.logs is None else str(fitted.logs)
            differing = () if fitted.logs is None else fitted.logs.notes
            findings += [Finding(n.code, "warning", str(n), values=n.values) for n in differing]
    samples, seconds = (
        sum(getattr(c.diagnosis, name) for c in checks) for name in ("samples", "duration")
    )
    rate = checks[0].diagnosis.rate
    return Diagnosis(sort_findings(findings), samples, seconds, rate, table=table)


def _fit_findings(recording: Recording, check: LogCheck) -> list[Finding]:
    """What a fit of the mended log finds, and what its residual holds."""
    options = _fit_options(check)
    reading = complete_filter_options(select_options(LogOptions, options), "diagnose")
    motion = recording.motion(check.search.robot, **reading)
    found = check_excitation(motion, check.search.robot)
    try:
        fitted = fit(recording, check.search.robot, diagnose=False, **options)
    except FeasidError as error:
        return [*found, Finding("unusable", "error", str(error))]
    found += [Finding("calibrated", "note", str(note)) for note in fitted.calibration.notes]
    found += _chosen_term_findings(fitted, check.search.robot)
    found += _coarse_finding(fitted, recording, check)
    found += _unexplained_joints(fitted) + _load_finding(fitted)
    motors, fitted = _shared_motors(fitted, motion.runs, recording, check)
    found += motors
    trial = _trial_of(fitted, motion.runs)
    if trial is None:
        return found
    known = merge_options([options, *(f.options for f in motors)])
    lacking = find_features(trial)
    judge = _CandidateJudge(fitted, trial, recording, motion.runs, check.search.robot, known)
    found += _feature_findings(lacking, judge)
    return found + _contact_findings(trial, check.search)


def _trial_of(fitted: Fit, runs: Sequence[Run]) -> CorrectedLog | None:
    """The fitted log and its feasible model row by row; None where a fit is not calibrated."""
    base, estimate = fitted.base, fitted.estimate
    robot = base.robot
    plain = robot.dof == robot.axes == len(robot.bodies) and not robot.loops
    cutoff = fitted.reduced.cutoff
    if estimate.covariance is None or not (plain and cutoff and fitted.reduced.strata):
        return None
    if robot_floats(robot) or any(run.free is not None for run in runs):
        return None
    own = tuple(fitted.calibration.correction.correct_run(run, robot) for run in runs)
    setup = UncorrectedLog(
        base,
        fitted.options,
        own,
        float(cutoff),
        fitted.reduced,
        fitted.estimator,
        fitted.delay,
    )
    return CorrectedLog(setup, NOTHING, estimate.noise, estimate.prior_weight, estimate.delta)


def find_features(trial: CorrectedLog) -> list[list[ScoreTest]]:
    """Torques that the model lacks, the strongest first: a kind, and the joints that show it.

    Each is linear in its parameters, so that the score test's held-out stretches judge it.
    """
    candidates = _feature_candidates(trial)
    tests = len([m for m in candidates if m.kind != "ripple"])
    tests += len(trial.rows.joints) * len(HARMONICS)
    found: list[list[ScoreTest]] = []
    active: list[Mistake] = []
    for _ in range(MOST_FEATURES):
        score = trial.score_tests(active)
        results = score.tests([m for m in candidates if m not in active], tests)
        candidates = [t.mistake for t in results if t.p < 1.0]
        supported = [t for t in results if t.supported and _has_physical_value(t)]
        if not supported:
            break
        best = max(supported, key=lambda t: t.gain)
        group = _tests_of_same_kind(best, supported)
        found.append(group)
        active += [t.mistake for t in group]
    return found


def _feature_candidates(trial: CorrectedLog) -> list[Mistake]:
    """All features that are tested."""
    robot, joints = trial.base.robot, trial.rows.joints
    out = missing_features(joints)
    for j in joints:
        if robot.bodies[j].motion[:3].any():
            strongest = trial.rows.strongest_harmonics(j, trial.beta, STRONGEST)
            out += [Mistake("ripple", j, float(n)) for n in strongest]
    return out


def _has_physical_value(test: ScoreTest) -> bool:
    return not EFFECTS[test.mistake.kind].positive or bool(test.value[0] > 0)


def _tests_of_same_kind(best: ScoreTest, supported: Sequence[ScoreTest]) -> list[ScoreTest]:
    """The best test and those of other joints that show the same."""
    same = [t for t in supported if t.mistake.kind == best.mistake.kind]
    strongest = {
        j: max((t for t in same if t.mistake.joint == j), key=lambda t: t.gain)
        for j in dict.fromkeys(t.mistake.joint for t in same)
    }
    strongest[best.mistake.joint] = best
    return [t for t in strongest.values() if t.statistic >= ALIKE * best.statistic]


def find_shared_motor(trial: CorrectedLog) -> ScoreTest | None:
    """The motor of two joints that the residual supports most, with its ratio."""
    robot, joints = trial.base.robot, trial.rows.joints
    if robot.couplings or robot.loops:
        return None
    known = {frozenset(d.coupling) for d in robot.drives if len(d.coupling) > 1}
    pairs = [(j, k) for j, k in combinations(joints, 2) if k - j <= NEIGHBOURS]
    pairs = [p for p in pairs if frozenset(robot.joints[j] for j in p) not in known]
    score = trial.score_tests()
    motors = [Mistake("coupling", j, r, k) for j, k in pairs for r in RATIOS]
    found = [t for t in score.tests(motors) if t.supported]
    if not found:
        return None
    best = max(found, key=lambda t: t.statistic).mistake
    near = [replace(best, number=best.number * f) for f in np.geomspace(0.8, 1.25, 9)]
    return max(score.tests(near), key=lambda t: t.statistic)


def _shared_motors(
    fitted: Fit, runs: Sequence[Run], recording: Recording, check: LogCheck
) -> tuple[list[Finding], Fit]:
    """Motors of two joints with which both joints are predicted far better, and the fit with them.

    Elasticity or another friction law would help one of the joints or neither.
    """
    found: list[Finding] = []
    names, motors = fitted.description.joints, dict[str, dict[str, float]]()
    for _ in range(MOST_MOTORS):
        trial = _trial_of(fitted, runs)
        test = None if trial is None else find_shared_motor(trial)
        if test is None or (1.0 - test.gain) ** len(names) > LEFT:
            break  # the linear prediction does not see half of what a fit would have to gain
        a, b = names[test.mistake.joint], names[test.mistake.other]
        factors = {a: 1.0, b: float(f"{test.mistake.number:.2g}")}
        motors = {**motors, f"{a}_{b}": factors}
        options = {**_fit_options(check), "couplings": motors}
        after = _fit_or_none(recording, check.search.robot, options)
        if after is None:
            break
        pair = [test.mistake.joint, test.mistake.other]
        left = after.quality.errors.model[pair] / fitted.quality.errors.model[pair]
        if not (np.prod(left) < LEFT**2 and left.max() < EITHER):
            break
        text = (
            f"a motor moves both joints: with inertia and friction along dq[{a}] "
            f"{'+' if factors[b] > 0 else '-'} {abs(factors[b]):.2g} dq[{b}] their errors on "
            f"held-out segments fall to {left[0]:.0%} and {left[1]:.0%}"
        )
        more = {"couplings": {f"{a}_{b}": factors}}
        gain = held_out_fall(fitted, after)
        values = {"ratio": factors[b]}
        finding = Finding("coupling", "warning", text, joints=(a, b), values=values)
        found.append(_finding_with_options(finding, more, gain))
        fitted = after
    return found, fitted


def _fit_options(check: LogCheck) -> dict[str, Any]:
    """Options of a fit of the mended log; the robot has its motors already."""
    return {k: v for k, v in check.search.options.items() if k != "couplings"}


def _finding_with_options(finding: Finding, options: Mapping[str, Any], gain: float) -> Finding:
    remedy = ", ".join(f"{k}={v}" for k, v in options.items())
    advised = replace(finding, options=options, gain=gain, remedy=remedy)
    return replace(advised, level="warning", evidence="dynamics")


def _feature_findings(
    groups: Sequence[Sequence[ScoreTest]], judge: _CandidateJudge
) -> list[Finding]:
    """Features as findings, with options where a fit with all their terms predicts better."""
    fitted, offered = judge.fitted, judge.offered
    names = fitted.description.joints
    findings = [_feature_finding(group, names) for group in groups]
    kinds = [group[0].mistake.kind for group in groups]
    kept = len(kinds)
    terms = [
        () if group[0].gain < RULES["advice"].share or (kind == "position" and "ripple" in kinds)
        else EFFECTS[kind].terms
        for group, kind in zip(groups, kinds, strict=True)
    ]  # fmt: skip  # springs would take a part of a ripple, and be wrong elsewhere
    left = joints_that_follow(fitted.evidence)
    joints = tuple(j for j, kind in left.items() if kind == "position")
    if joints and not {"position", "ripple"} & {*kinds}:
        findings.append(Finding("position", "warning", POSITION, joints=joints))
        terms.append(EFFECTS["position"].terms)
    wanted = tuple(dict.fromkeys((*offered, *(t for own in terms for t in own))))
    chosen, gain = judge.best_candidates(wanted)
    if gain < RULES["advice"].share:
        return findings[:kept]
    more = {"candidates": chosen}
    return [
        _finding_with_options(finding, more, gain) if {*own} - {*offered} else finding
        for finding, own in zip(findings, terms, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class _CandidateJudge:
    """A fit, its log row by row, and fits of the log with other candidates."""

    fitted: Fit
    trial: CorrectedLog
    recording: Recording
    runs: Sequence[Run]
    robot: Robot
    options: Mapping[str, Any]

    @property
    def offered(self) -> tuple[str, ...]:
        """Candidates of the fit."""
        return tuple(self.options.get("candidates", GEAR_FRICTION))

    def best_candidates(self, wanted: tuple[str, ...]) -> tuple[tuple[str, ...], float]:
        """Candidates of a fit that predicts better, springs only where they pay, and its gain."""
        best, gain = self.offered, 0.0
        bounded = tuple(t for t in wanted if t in self.offered or t not in UNBOUNDED)
        for candidates in dict.fromkeys((bounded, wanted)):
            if candidates == self.offered:
                continue
            own = self._gain_of(candidates)
            least = RULES["spring"].share if candidates != bounded else 0.0
            if own > 0 and 1.0 - own < (1.0 - least) * (1.0 - gain):
                best, gain = candidates, own
        return best, gain

    def _gain_of(self, candidates: tuple[str, ...]) -> float:
        """Share by which held-out errors fall; 0 where those of all joints together rise.

        Not on seconds alone, but also on long stretches, in which joints go where they have not
        been in the others.
        """
        options = {**self.options, "candidates": candidates}
        after = _fit_or_none(self.recording, self.robot, options)
        trial = None if after is None else _trial_of(after, self.runs)
        if after is None or trial is None:
            return 0.0
        old, new = (f.quality.errors for f in (self.fitted, after))
        if new.overall_error(new.model) > old.overall_error(old.model):
            return 0.0
        if long_stretch_error(trial) > long_stretch_error(self.trial):
            return 0.0
        return held_out_fall(self.fitted, after)


def long_stretch_error(trial: CorrectedLog) -> float:
    """Norm of the torque errors on every third of a log, by the feasible model of the others."""
    rows = trial.rows
    part = rows.block * LONG_STRETCHES // (int(rows.block.max()) + 1)
    whitened = np.hstack([rows.regressor, trial.torque[:, None]]) / trial.row_deviations[:, None]
    missed = 0.0
    for k in range(LONG_STRETCHES):
        own = part == k
        r = np.asarray(np.linalg.qr(whitened[~own], mode="r"))
        beta = trial.base.K @ trial.minimiser.minimum(r[:-1, :-1], r[:-1, -1]).delta
        missed += float(np.sum((trial.torque[own] - rows.regressor[own] @ beta) ** 2))
    return float(np.sqrt(missed))


def _feature_finding(group: Sequence[ScoreTest], names: Sequence[str]) -> Finding:
    kind, gain = EFFECTS[group[0].mistake.kind], group[0].gain
    text, values = kind.text, dict[str, Any](gain=gain)
    if kind.name == "ripple":
        values["periods"] = [t.mistake.number for t in group]
        periods = ", ".join(f"{t.mistake.number:g}" for t in group)
        text += f", {periods} periods in 2 pi rad"
    elif kind.name == "elastic":
        values["compliance"] = [float(t.value[0]) for t in group]
        sizes = ", ".join(f"{t.value[0]:.2g} +- {t.deviation[0]:.1g}" for t in group)
        text += f", {sizes} rad/(N m)"
    text += f"; with it the cross-validation error falls by {gain:.0%}"
    joints = tuple(names[t.mistake.joint] for t in group)
    level = "warning" if gain >= RULES["feature"].share else "note"
    return Finding(kind.name, level, text, joints=joints, values=values, evidence="dynamics")


def _fit_or_none(recording: Recording, robot: Robot, options: Mapping[str, Any]) -> Fit | None:
    try:
        return fit(recording, robot, diagnose=False, **options)
    except FeasidError:
        return None


def held_out_fall(before: Fit, after: Fit) -> float:
    """Share by which held-out errors fall, as the geometric mean over joints."""
    old, new = (f.quality.errors.model for f in (before, after))
    alive = (old > 0) & (new > 0)
    return 1.0 - float(np.exp(np.mean(np.log(new[alive] / old[alive])))) if alive.any() else 0.0


def _unexplained_joints(fitted: Fit) -> list[Finding]:
    """Joints whose torque the motion does not explain, or whose residual follows it."""
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
        text = f"what is missed of its torque follows the {kind}: the model lacks a term"
        findings.append(
            Finding("unexplained", "warning", text, joints=(joint,), evidence="dynamics")
        )
    return findings


def _chosen_term_findings(fitted: Fit, robot: Robot) -> list[Finding]:
    """What a feature would tell, had the fit not chosen a term for it that the log is sure of."""
    known, out = {s for d in robot.drives for s in d.symbols}, list[Finding]()
    covariance = fitted.estimate.covariance
    if covariance is None:
        return out
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    sure = np.abs(fitted.delta) > CERTAIN * deviations
    places = [(d, fitted.robot.drive_columns(k)) for k, d in enumerate(fitted.robot.drives)]
    for kind in EFFECTS.values():
        own = {s for term in kind.terms for s in FRICTION[term]} - known
        told = [d for d, columns in places if any(sure[columns[s]] for s in own & columns.keys())]
        if told:
            text = f"{kind.text}: the fit has a term for it"
            joints = tuple(j for d in told for j in d.coupling)
            out.append(Finding(kind.name, "note", text, joints=joints, evidence="dynamics"))
    return out


def _coarse_finding(fitted: Fit, recording: Recording, check: LogCheck) -> list[Finding]:
    """Positions whose resolution biases the fit, and a cut-off with which it does not."""
    said = [n for n in fitted.notes if n.code == "coarse"]
    if not said or not fitted.reduced.cutoff:
        return []
    finding = Finding("coarse", "warning", str(said[0]), values=said[0].values)
    more = {"cutoff": fitted.reduced.cutoff * LOWER}
    after = _fit_or_none(recording, check.search.robot, {**_fit_options(check), **more})
    if after is None or any(n.code == "coarse" for n in after.notes):
        return [finding]
    remedy = f"cutoff={more['cutoff']:g}, with which the bias is less than a deviation"
    return [replace(finding, options=more, remedy=remedy, evidence="dynamics")]


def _load_finding(fitted: Fit) -> list[Finding]:
    """A last body that is much heavier or lighter than described."""
    robot, covariance = fitted.description, fitted.estimate.covariance
    column = int(robot.inertial_columns[-1][9])
    described = float(robot.values[column])
    if covariance is None or not described > 0:
        return []
    mass = float(fitted.robot.values[column])
    change, deviation = mass - described, float(np.sqrt(covariance[column, column]))
    if abs(change) < max(LOADED * described, CERTAIN * deviation):
        return []
    body = robot.bodies[-1]
    text = (
        f"the last body weighs {mass:.3g} +- {deviation:.1g} kg, the description says "
        f"{described:.3g} kg: a load that it {'lacks' if change > 0 else 'has and the log lacks'}?"
    )
    return [Finding("payload", "note", text, joints=(body.joint,), evidence="dynamics")]


def _contact_findings(trial: CorrectedLog, search: AdviceSearch) -> list[Finding]:
    """Stretches in which a joint's torque is far from what its motion explains elsewhere."""
    rows, out = trial.rows, []
    rest = trial.held_out_residuals / trial.row_deviations
    for j in rows.joints:
        own = rows.joint == j
        e, t = rest[own], rows.t[own]
        spread = 1.4826 * float(np.median(np.abs(e - np.median(e))))
        away = np.abs(e - np.median(e)) > CONTACT * max(spread, 1e-300)
        far = np.flatnonzero(away).astype(np.int64)
        if not len(far) or len(far) > MOST_LEFT_OUT * len(e):
            continue
        step = float(np.median(np.diff(t)))
        parts = [p for p in excluded_blocks(_fill_short_gaps(far), "") if p.count > 1]
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
        finding = Finding("outliers", "warning", text, f"exclude=[{shown}]", (name,), times=when)
        options = {"exclude": when}
        out.append(replace(finding, columns=(f"tau_{name}",), options=options))
    return confirm_advice(out, search.robot, search)


def _fill_short_gaps(places: Rows) -> Rows:
    """Places with gaps of up to two filled."""
    gaps = pairwise(places)
    filled = [np.arange(a, b) for a, b in gaps if b - a <= 3]
    return np.unique(np.concatenate([places, *filled])).astype(np.int64)
