"""A diagnosis whose advice was tried: options that make a fit predict better, and no others.

What a diagnosis suspects (a wrong sign, a delay, columns in another order) explains the torques
better by the description. Whether a feasible model that is fitted to the mended log is better as
well is seen where it was not fitted: stretches of time, each predicted from the others. Advice that
does not lower this error is not given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from feasid.core.arguments import checked
from feasid.core.arrays import Array
from feasid.core.threads import one_thread
from feasid.diagnosis.diagnose import examine
from feasid.diagnosis.findings import Diagnosis, Finding, merge_options, sort_findings
from feasid.errors import FeasidError
from feasid.feasibility.constraints.sets import feasible_set
from feasid.formats.fit_robot import CandidateTerms, resolve_robot, with_motors
from feasid.identification.estimate import CrossValidation, EstimationProblem
from feasid.identification.noise import align_torques, estimate_noise
from feasid.logs.recording import Recording
from feasid.options.complete import check_options, document_options, select_options
from feasid.options.tables import DiagnoseOptions, LogOptions, ReadOptions
from feasid.reduction.fleet import LogTask
from feasid.reduction.reduce import Log, base_with_terms, reduce_tasks
from feasid.reduction.triangle import Reduced
from feasid.robot.description import Robot

LEAST_GAIN = 0.03
"""Share of the held-out error that advice must save, as the geometric mean over joints."""

MAX_JOINT_LOSS = 0.5
"""Share of what all joints gain together (in logarithms of their held-out errors) that any one of
them may lose: joints whose torque is mostly noise go up and down by a tenth by chance."""

MAX_ROUNDS = 3
"""Times that the dynamics are asked again when a suspicion was refuted: another one may have been
behind it."""

MIN_FOLDS = 3
"""Held-out stretches without which nothing can be tried."""

ROWS = ("exclude", "nan")
"""Options that leave rows out: models with and without them are compared on the rows that stay."""

SCALES = ("scale", "gear")
"""Findings about units of torque."""

KEPT = ("exclude", "nan", "sort", "delay", "trim")
"""Options of signals that mean the same where the equations are filtered."""


@checked
@document_options(DiagnoseOptions)
@one_thread()
def diagnose(
    log: Log, robot: Robot | str | Path | None = None, **options: Unpack[DiagnoseOptions]
) -> Diagnosis:
    """Find what is wrong with a log, and which options of a fit make up for it.

    The log is looked at as `feasid.fit` prepares it. An option is proposed only if a feasible model
    that is fitted with it predicts stretches of the log that it did not see better than without.

    Parameters
    ----------
    log : DataFrame, mapping of arrays, path or Recording
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
    recording = Recording.from_source(log)
    asked = check_options(DiagnoseOptions, options, "diagnose")
    robot = with_motors(resolve_robot(log, robot), asked.get("couplings"))
    refuted: list[Finding] = []
    for _ in range(MAX_ROUNDS):
        found = examine(recording, robot, asked, {f.key for f in refuted})
        diagnosis, vain = confirm_advice(found, recording, robot, asked)
        if not vain:
            break
        refuted += vain
    findings = {f.key: f for f in refuted} | {f.key: f for f in diagnosis}
    others = [f for f in findings.values() if f not in diagnosis.findings]
    return replace(diagnosis, findings=sort_findings([*diagnosis, *others]))


def confirm_advice(
    diagnosis: Diagnosis, log: Recording, robot: Robot, asked: Mapping[str, Any]
) -> tuple[Diagnosis, list[Finding]]:
    """The diagnosis with the advice that makes a fit predict better, and what was refuted.

    Findings are tried one on top of the other in the order in which they were found, those that
    do not help again when others did, and what is left of them together.

    Parameters
    ----------
    diagnosis : Diagnosis
        With options that are suspected to help.
    log : Recording
    robot : Robot
    asked : mapping
        Options that were asked for, on top of which others are tried.

    Returns
    -------
    Diagnosis
    list of Finding
        Suspicions of the dynamics whose remedy does not help; they are notes of the diagnosis.
    """
    search = _Search(log, robot, asked)
    findings = [*diagnosis]
    left = [k for k, f in enumerate(findings) if f.level != "note" and _has_effect(f, robot)]
    taken = True
    while left and taken:
        taken = False
        for k in [*left]:
            if search.accept([findings[k]]):
                findings[k] = replace(findings[k], gain=search.gain)
                left.remove(k)
                taken = True
        if not taken and len(left) > 1 and search.accept([findings[k] for k in left]):
            for k in left:
                findings[k] = replace(findings[k], gain=search.gain)
            left = []
    for k in left:
        findings[k] = _without_advice(findings[k], search)
    vain = [findings[k] for k in left if findings[k].level == "note"]
    return replace(diagnosis, findings=tuple(findings)), vain


def _has_effect(finding: Finding, robot: Robot) -> bool:
    return bool(finding.options) or _apply_finding(robot, finding) is not robot


def _apply_finding(robot: Robot, finding: Finding) -> Robot:
    """The robot with the gravity or the length that a finding proposes."""
    if finding.code == "gravity":
        return robot.with_gravity(finding.values["gravity"])
    if finding.code != "length":
        return robot
    k = robot.joint_index(finding.joints[0])
    body = robot.bodies[k]
    moved = replace(body, position=finding.values["factor"] * np.asarray(body.position))
    return replace(robot, bodies=(*robot.bodies[:k], moved, *robot.bodies[k + 1 :]))


def _without_advice(finding: Finding, search: _Search) -> Finding:
    """A finding whose remedy did not help: reported without it, and never as an error.

    What the dynamics suspect and a fit does not confirm is a note, but where errors tell little:
    relative ones do not show the scale of torques, and bodies make up for most of a wrong length.
    What columns show themselves stays odd.
    """
    rows_only = bool(finding.options) and {*finding.options} <= {*ROWS}
    seen = finding.evidence == "signals" or rows_only
    gain = -1.0 if seen else search.gain_of(finding)
    hidden = gain > -LEAST_GAIN if finding.code in SCALES else gain > 0
    level = "note" if finding.level == "note" or not (seen or hidden) else "warning"
    text = "a fit without these rows" if rows_only else "a fit that takes this into account"
    message = f"{finding.message}; {text} does not predict clearly better"
    return replace(finding, level=level, message=message, remedy="", options={})


class _Search:
    """Advice that was accepted so far, and the models that were fitted to the log with it."""

    def __init__(self, log: Recording, robot: Robot, asked: Mapping[str, Any]) -> None:
        self.log, self.robot = log, robot
        self.options: dict[str, Any] = dict(asked)
        self.gain = 0.0

    @cached_property
    def trial(self) -> CrossValidation | None:
        """Models of the log with what was accepted."""
        return _prepare_trial(self.log, self.robot, self.options)

    def accept(self, findings: Sequence[Finding]) -> bool:
        """Whether these findings' remedies lower the held-out error; if so they are kept."""
        robot, options, trial, gain = self._evaluate(findings)
        if gain is None or gain < LEAST_GAIN:
            return False
        self.robot, self.options, self.trial, self.gain = robot, options, trial, gain
        return True

    def gain_of(self, finding: Finding) -> float:
        """Share by which the held-out error falls with a finding's remedy; -1 without a fit."""
        gain = self._evaluate([finding])[-1]
        return -1.0 if gain is None else gain

    def _evaluate(
        self, findings: Sequence[Finding]
    ) -> tuple[Robot, dict[str, Any], CrossValidation | None, float | None]:
        robot = self.robot
        for finding in findings:
            robot = _apply_finding(robot, finding)
        options = merge_options([self.options, *(f.options for f in findings)])
        trial = _prepare_trial(self.log, robot, options)
        rows_only = robot is self.robot and all({*f.options} <= {*ROWS} for f in findings)
        return robot, options, trial, _error_reduction(self.trial, trial, rows_only)


def _prepare_trial(
    log: Recording, robot: Robot, options: Mapping[str, Any]
) -> CrossValidation | None:
    """The log as a fit reads it, with the terms that a fit adds; None when it cannot be fitted."""
    reading: dict[str, Any] = select_options(LogOptions, options)
    if reading.get("filtering") == "signals" or reading.get("cutoff") is False:
        kept = {*select_options(ReadOptions, reading), *KEPT}
        reading = {name: value for name, value in reading.items() if name in kept}
    try:
        there = {drive.name for drive in robot.drives}
        motors = options.get("couplings") or {}
        moved = with_motors(robot, {name: motors[name] for name in motors if name not in there})
        base, _ = base_with_terms(moved, [log], offer=CandidateTerms(()))
        work = LogTask(log, {**reading, "filtering": "equations"})
        reduced = align_torques(reduce_tasks([work], base))[0]
        task = EstimationProblem.from_reduced(reduced, base, feasible_set(base.robot))
        trial = CrossValidation(task, reduced, estimate_noise(reduced)[0])
        if len(trial.folds) < MIN_FOLDS:
            return None
        trial.models  # noqa: B018  what cannot be fitted says so here
    except FeasidError:
        return None
    return trial


def _error_reduction(
    before: CrossValidation | None, after: CrossValidation | None, rows_only: bool
) -> float | None:
    """Share by which the held-out error falls; None where no fit is possible, or a joint loses."""
    if after is None:
        return None
    if before is None:
        return 1.0
    tested = after.reduced if rows_only else before.reduced
    if rows_only and {*after.folds} != {*before.folds}:
        return None
    old, new = _shares(before, tested), _shares(after, after.reduced)
    alive = np.flatnonzero((old.sum(axis=0) > 0) & (new.sum(axis=0) > 0))
    if not len(alive):
        return None
    change = 0.5 * np.log(new.sum(axis=0)[alive] / old.sum(axis=0)[alive])
    gain = 1.0 - float(np.exp(change.mean()))
    size = before.reduced.torque_norms
    total = [float(np.sum((size**2 * e.sum(axis=0))[alive])) for e in (old, new)]
    if gain > 0 and (change.max() > -MAX_JOINT_LOSS * change.sum() or total[1] > total[0]):
        return None
    return gain


def _shares(trial: CrossValidation, tested: Reduced) -> Array:
    """Squared errors of every stretch of a log, as shares of its torques, (folds, dof)."""
    return trial.missed(tested=tested) / np.maximum(tested.torque_norms**2, 1e-300)
