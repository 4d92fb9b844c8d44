"""Faults of a log in its columns, large mistakes, and options that correct them.

Every suspicion (a wrong sign, columns in another order, a signal that is stuck) comes with options
of a fit. A feasible model of the corrected log must be better on held-out data: segments of time,
each predicted from the others. Advice that does not lower this error is not given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import FeasidError
from feasid.core.notes import Note
from feasid.identification.effects.log_findings import check_columns, in_log_columns
from feasid.identification.effects.preparations import DecimatedLog, JudgedLog, find_large_mistakes
from feasid.identification.estimation.estimator import Estimator
from feasid.identification.estimation.held_out import RULES, CrossValidation, relative_error
from feasid.identification.estimation.noise import find_delay
from feasid.identification.estimation.torque_scale import scale_note
from feasid.identification.regression.low_pass import low_pass_motion
from feasid.identification.regression.parallel import LogTask
from feasid.identification.regression.reduce import (
    base_with_terms,
    complete_filter_options,
    reduce_tasks,
)
from feasid.identification.regression.triangle import Reduced
from feasid.logs.checks.findings import Diagnosis, Finding, merge_options, sort_findings
from feasid.logs.checks.velocity import WAYS
from feasid.logs.floating import robot_floats
from feasid.logs.recording import Recording, read_signals
from feasid.logs.table import HEADER_UNITS, join_header_units
from feasid.options.complete import select_options
from feasid.options.tables import LogOptions, ReadOptions
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.parameters.identifiability.base import BaseParameters
from feasid.robot.description import Robot
from feasid.robot.formats.fit_robot import CandidateTerms

if TYPE_CHECKING:
    import pandas as pd


MAX_JOINT_LOSS = 0.5
"""Share of what all joints gain together (in logarithms of their held-out errors) that any one of
them may lose: errors of joints whose torque is mostly noise change by a tenth by chance."""

MOST_CHANGES, MOST_TRIED = 4, 3
"""Large mistakes that are looked for in one log, and suspicions that are tried for each."""

MIN_FOLDS = 3  #: Least number of held-out segments with which remedies can be tested.
LEAST_SPEED = 1e-6  #: Velocities below this count as zero [rad/s or m/s].

ROWS = ("exclude", "nan")
"""Options that leave rows out: models with and without them are compared on the rows that stay."""

SCALES = ("scale", "gear")  #: Findings about units of torque, which relative errors do not show.

FACTS = ("dead", "scale", "unsigned")
"""Codes of findings that make a fit doubtful although their remedy cannot be tested."""

OF_THE_READER = ("currents",)  #: Codes of warnings that come with the log's own notes.

EXPLAINED, HALF = 0.15, 0.5
"""Another direction of gravity leaves less of the torque than the one share, or lowers the error by
the other: right ones leave .003 to .09 and lower it by .25 to .99; those that explain a log of
another robot a little leave .19 to .49 and lower it by .31 to .35."""

KEPT = ("exclude", "nan", "sort", "delay", "trim")
"""Options of signals that mean the same where the equations are filtered."""

UNREADABLE = ("columns", "time", "dead")
"""Errors of columns that prevent findings about the dynamics."""

MOTION_CODES = ("velocity", "swap")
"""Findings about positions and velocities that contradict each other."""


STATIC = {
    False: ("error", "nothing moves, and there is one pose only: no parameter can be identified"),
    True: ("warning", "nothing moves: only gravity parameters can be identified"),
}
"""Level and sentence about a log without motion, by whether it has several poses."""


@dataclass(frozen=True, eq=False)
class LogCheck:
    """The findings, and the robot and options with which the search ended."""

    diagnosis: Diagnosis
    search: AdviceSearch

    @property
    def usable(self) -> bool:
        """Whether a fit of the corrected log is meaningful."""
        errors = (f for f in self.diagnosis.errors if not f.options or f.code == "dead")
        return all(f.code in SCALES for f in errors)


def check_log(
    log: Recording, robot: Robot, asked: Mapping[str, Any], *, thorough: bool = True
) -> LogCheck:
    """Check the columns of a log, then try large mistakes.

    `robot`: with all motors that were asked for; `asked`: `feasid.options.tables.DiagnoseOptions`
    that were given; `thorough`: whether large mistakes are tried in any case, or, units of torques
    apart, only if a joint by itself is explained far better than by a model of all.
    """
    columns = check_columns(log, robot, asked)
    search = AdviceSearch(log, robot, asked)
    findings = confirm_advice([*columns], search)
    doubted = any(
        f.level == "error" and (f.code in UNREADABLE or (f.code in MOTION_CODES and not f.options))
        for f in findings
    )
    if not doubted and not robot_floats(robot):
        findings += _check_dynamics(search, thorough)
    marked = sort_findings(
        [
            replace(f, level="note", remedy="", message=f"{f.message}; fixed by the given options")
            if f.options and all(asked.get(key) == value for key, value in f.options.items())
            else f
            for f in findings
        ]
    )
    return LogCheck(replace(columns, findings=marked), search)


def _check_dynamics(search: AdviceSearch, thorough: bool) -> list[Finding]:
    """Large mistakes, those whose remedy lowers the error of a fit; they are kept in the search."""
    findings: list[Finding] = []
    for _ in range(MOST_CHANGES):
        try:
            judged = JudgedLog(search.samples())
        except FeasidError as error:
            return [*findings, Finding("unusable", "error", str(error))]
        if np.abs(judged.samples.dq).max(initial=0.0) < LEAST_SPEED:
            level, text = STATIC[bool(np.ptp(judged.samples.q, axis=0).max() > LEAST_SPEED)]
            remedy = "record a motion: feasid.excite(robot)"
            return [*findings, Finding("static", level, text, remedy)]
        likely = find_large_mistakes(judged, thorough)
        if not likely:
            break
        raw = read_signals(search.log, search.robot, **select_options(ReadOptions, search.options))
        suspects = [in_log_columns(f, raw, search.options) for f in likely]
        mistake = next(
            (f for f in suspects[:MOST_TRIED] if search.accept([f], "preparation")), None
        ) or next((f for f in suspects[:MOST_TRIED] if search.accept_exchange(f)), None)
        if mistake is None:
            findings += [_without_advice(f) for f in suspects[:1] if f.code in SCALES]
            break
        findings.append(replace(mistake, gain=search.gain))
    return findings + _scale_findings(search, findings)


def _scale_findings(search: AdviceSearch, found: Sequence[Finding]) -> list[Finding]:
    """Torques that are a multiple of the description's, if there is no other finding about them."""
    if any(f.code == "scale" for f in found):
        return []
    try:
        log, base = _reduce_as_fit(search.log, search.robot, search.options)
    except FeasidError:
        return []
    note = scale_note(log, base, search.options.get("units"))
    if note is None:
        return []
    joints, numbers = tuple(note.values["joints"]), {"factor": note.values["factor"]}
    options = select_options(ReadOptions, search.options)
    layout = read_signals(search.log, search.robot, **options).layout
    columns = tuple(layout.column_name("tau", layout.coordinates.index(j)) for j in joints)
    return [Finding("scale", "warning", note, "", joints, columns, values=numbers)]


def confirm_advice(findings: list[Finding], search: AdviceSearch) -> list[Finding]:
    """The findings with the advice that makes a fit predict better.

    They are tried in the order in which they were found, each in addition to those that helped.
    Those that did not help are tried again after others did, and finally all remaining ones
    together. Joints in degrees are one finding with one remedy: beside the others', the unit of a
    single joint improves little.
    """
    in_degrees = [f for f in findings if f.code == "degrees"]
    if len(in_degrees) > 1 and search.accept(in_degrees):
        units = merge_options([f.options for f in in_degrees])["units"]
        joined = replace(
            in_degrees[0],
            message="positions go far beyond what the description allows: degrees",
            remedy=f"units={units}",
            joints=tuple(j for f in in_degrees for j in f.joints),
            columns=tuple(c for f in in_degrees for c in f.columns),
            options={"units": units},
            gain=search.gain,
        )
        findings = [joined, *(f for f in findings if f.code != "degrees")]
    numbers = [k for k, f in enumerate(findings)
            if f.level != "note" and f.gain is None
            and f.code != "dead"  # its joint is left out, which no fit of all joints can try
            and (f.options or f.values.get(WAYS) or f.code == "gravity")]  # fmt: skip
    progress = True
    while numbers and progress:
        progress = False
        for k in [*numbers]:
            advised = search.accept_best_remedy(findings[k])
            if advised is not None:
                findings[k] = replace(advised, gain=search.gain)
                numbers.remove(k)
                progress = True
        if not progress and len(numbers) > 1 and search.accept([findings[k] for k in numbers]):
            for k in numbers:
                findings[k] = replace(findings[k], gain=search.gain)
            numbers = []
    for k in numbers:
        findings[k] = _without_advice(findings[k])
    return findings


def _without_advice(finding: Finding) -> Finding:
    """A finding whose remedy did not help: reported without it, and never as an error.

    The unit of all torques scales all masses, and only the description shows it, so such findings
    are warnings. A log that cannot be read without an option remains an error.
    """
    if finding.values.get(WAYS):
        return finding
    rows_only = bool(finding.options) and {*finding.options} <= {*ROWS}
    text = "a fit without these rows" if rows_only else "a fit that takes this into account"
    message = f"{finding.message}; {text} does not predict clearly better"
    level = "note" if finding.level == "note" else "warning"
    return replace(finding, level=level, message=message, remedy="", options={})


Tried = tuple[Robot, dict[str, Any], CrossValidation | None, float | None]
"""Robot and options with some remedies, models of the log with them, and how the error falls."""


class AdviceSearch:
    """Advice that was accepted so far, and the models that were fitted to the log with it."""

    def __init__(self, log: Recording, robot: Robot, asked: Mapping[str, Any]) -> None:
        self.log, self.robot = log, robot
        self.options: dict[str, Any] = dict(asked)
        self.gain = 0.0

    @cached_property
    def trial(self) -> CrossValidation | None:
        """Models of the log with the accepted options."""
        return _make_trial(self.log, self.robot, self.options)

    def samples(self) -> DecimatedLog:
        """A few samples of the log with the accepted options."""
        reading = complete_filter_options(select_options(LogOptions, self.options), "diagnose")
        base, _ = base_with_terms(self.robot, [self.log], offer=CandidateTerms(()))
        motion = low_pass_motion(self.log.motion(self.robot, **reading))
        return DecimatedLog.from_motion(base.robot, motion)

    def accept_best_remedy(self, finding: Finding) -> Finding | None:
        """The finding with the remedy, of the ways that there are, that lowers the error most."""
        ways = finding.values.get(WAYS)
        if not ways:
            return finding if self.accept([finding]) else None
        texts = [", ".join(f"{name}={value}" for name, value in way.items()) for way in ways]
        advised = [replace(finding, options=w, remedy=t) for w, t in zip(ways, texts, strict=True)]
        gains = [self._evaluate([f])[-1] for f in advised]
        best = int(np.argmax([-1.0 if gain is None else gain for gain in gains]))
        return advised[best] if self.accept([advised[best]]) else None

    def accept(self, findings: Sequence[Finding], rule: str = "advice") -> bool:
        """Whether these findings' remedies lower the held-out error; if so they are kept."""
        tried, share = self._evaluate(findings), RULES[rule].share
        if tried[2] is not None and any(f.code == "gravity" for f in findings):
            squares = tried[2].squared_errors().sum() / np.sum(tried[2].reduced.torque_norms ** 2)
            share = share if np.sqrt(squares) < EXPLAINED else max(share, HALF)
        return self._keep(tried, share)

    def accept_exchange(self, finding: Finding) -> bool:
        """Whether two exchanged signals are kept: by the error of all torques together."""
        pair = len(finding.joints) == 2 and finding.code == "swap"
        if not pair or self.trial is None or not self.trial.folds:
            return False
        rule, tried = RULES["exchange"], self._evaluate([finding])
        before = self.trial.squared_errors().sum()
        fall = 0.0 if tried[2] is None else 1.0 - np.sqrt(tried[2].squared_errors().sum() / before)
        return bool(fall > rule.total) and self._keep(tried, rule.share)

    def _keep(self, tried: Tried, least: float) -> bool:
        """Accept the tried options if they lower the held-out error by `least`."""
        robot, options, trial, gain = tried
        if gain is None or gain < least:
            return False
        self.robot, self.options, self.trial, self.gain = robot, options, trial, gain
        return True

    def _evaluate(self, findings: Sequence[Finding]) -> Tried:
        robot = self.robot
        for finding in (f for f in findings if f.code == "gravity"):
            robot = robot.with_gravity(finding.values["gravity"])
        options = merge_options([self.options, *(f.options for f in findings)])
        trial = _make_trial(self.log, robot, options)
        rows_only = robot is self.robot and all({*f.options} <= {*ROWS} for f in findings)
        return robot, options, trial, _error_reduction(self.trial, trial, rows_only)


def _reduce_as_fit(
    log: Recording, robot: Robot, options: Mapping[str, Any]
) -> tuple[Reduced, BaseParameters]:
    """The log as a fit reads it, with the terms that a fit adds."""
    reading: dict[str, Any] = select_options(LogOptions, options)
    if reading.get("filtering") == "signals" or reading.get("cutoff") is False:
        names = {*select_options(ReadOptions, reading), *KEPT}
        reading = {name: value for name, value in reading.items() if name in names}
    base, _ = base_with_terms(robot, [log], offer=CandidateTerms(()))
    work = LogTask(log, {**reading, "filtering": "equations"})
    return reduce_tasks([work], base, keep=True), base


def _make_trial(log: Recording, robot: Robot, options: Mapping[str, Any]) -> CrossValidation | None:
    """Models of the log as a fit reads it; None when it cannot be fitted."""
    try:
        reduced, base = _reduce_as_fit(log, robot, options)
        reduced = reduced.with_shifted_torques(find_delay(reduced).value)
        trial = Estimator(base, feasible_set(base.robot)).for_comparison().cross_validate(reduced)
    except FeasidError:
        return None
    return trial if len(trial.folds_with_rows) >= MIN_FOLDS else None


def _error_reduction(
    before: CrossValidation | None, after: CrossValidation | None, rows_only: bool
) -> float | None:
    """Share by which the held-out error falls; None if no fit is possible, or the error of a joint
    rises.
    """
    if after is None or not after.folds:
        return None
    if before is None or not before.folds:
        return 1.0
    tested = after.reduced if rows_only else before.reduced
    if rows_only and {*after.folds} != {*before.folds}:
        return None
    old, new = _squared_error_shares(before, tested), _squared_error_shares(after, after.reduced)
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


def _squared_error_shares(trial: CrossValidation, tested: Reduced) -> Array:
    """Squared errors of every segment as shares of the torques, 0 without any, (folds, dof)."""
    return relative_error(trial.squared_errors(tested=tested), tested.torque_norms) ** 2


MAX_DIAGNOSED_ROWS = 10**6  #: Number of rows beyond which logs are not diagnosed during a fit.

TOO_LONG = "too long to be diagnosed during the fit; feasid.diagnose checks it"

RUN = "run"  #: Column of a joined log that names the log and run of each row.


@dataclass(frozen=True, eq=False)
class DiagnosedLog:
    """One of the logs that are diagnosed together."""

    name: str
    log: Recording
    table: pd.DataFrame
    first: int  #: Number of its first row.


def diagnose_logs(
    tasks: Sequence[LogTask], robot: Robot, measured: Sequence[str] | None
) -> list[Note]:
    """Warnings of a diagnosis of all logs together, and the logs that it left out.

    `measured`: joints whose torques were measured; None for all.
    """
    if measured is not None and {*robot.joints} - {*measured}:
        return [Note("a log without the torques of all joints is not diagnosed", "undiagnosed")]
    recorded = [t for t in tasks if isinstance(t.source, Recording)]
    if not recorded:
        return []
    if robot_floats(robot):
        notes = list[Note]()
        for task, log in ((t, t.source) for t in recorded if isinstance(t.source, Recording)):
            every = () if log.streamed else check_columns(log, robot, task.options)
            notes += [_undiagnosed_note([task], TOO_LONG)] if log.streamed else []
            notes += [Note(str(f), f.code, level=f.level, confirmed=True) for f in every]
        return notes
    options = recorded[-1].options
    parts, notes = _align_logs(recorded, robot, options)
    if not parts:
        return notes
    stacked = Recording.from_source(_stack_logs(parts, options))
    findings = check_log(stacked, robot, options, thorough=False).diagnosis
    if len(parts) > 1:
        text = (
            f"{len(parts)} logs are diagnosed as one, with rows and seconds counted through all of "
            "them in order; feasid.diagnose checks a single log"
        )
        notes.append(Note(text, "diagnosed-together", logs=len(parts)))
    for finding in (f for f in findings if f.level != "note" and f.code not in OF_THE_READER):
        where = ""
        for part in parts if len(parts) > 1 and finding.rows else ():
            last = part.first + len(part.table)
            if all(part.first <= a and b < last for a, b in finding.rows):  # its rows alone
                where = f"{part.name}, from row {part.first} on: "
        fact = finding.code in FACTS and (finding.code != "dead" or finding.level == "error")
        confirmed = fact or finding.gain is not None
        notes += [Note(f"{where}{finding}", finding.code, level=finding.level, confirmed=confirmed)]
    return notes


def _undiagnosed_note(tasks: Sequence[LogTask], why: str) -> Note:
    names = [t.source.name or "the log" for t in tasks if isinstance(t.source, Recording)]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return Note(f"{names[0]}{more}: {why}", "undiagnosed")


def _align_logs(
    tasks: Sequence[LogTask], robot: Robot, options: Mapping[str, Any]
) -> tuple[list[DiagnosedLog], list[Note]]:
    """Logs that have the columns of the first and are not too long, and the other logs."""
    parts: list[DiagnosedLog] = []
    long, other = [], []
    exclude = options.get("exclude", ())
    rows, by_row = 0, not isinstance(exclude, str) and len(exclude) > 0
    for number, task in enumerate(tasks, 1):
        log = task.source
        assert isinstance(log, Recording)
        table = None if log.streamed else log.table(robot, options.get("topic"))
        if table is None or rows + len(table) > MAX_DIAGNOSED_ROWS:
            long.append(task)
        elif parts and (by_row or {*table.columns} != {*parts[0].table.columns}):
            other.append(task)
        else:
            parts.append(DiagnosedLog(log.name or f"log {number}", log, table, rows))
            rows += len(table)
    why = "not diagnosed with the first log, whose columns or excluded rows differ"
    reasons = ((long, TOO_LONG), (other, why))
    return parts, [_undiagnosed_note(some, text) for some, text in reasons if some]


def _stack_logs(
    parts: Sequence[DiagnosedLog], options: Mapping[str, Any]
) -> Recording | pd.DataFrame:
    """All logs stacked in one table; the runs of each keep names of their own."""
    if len(parts) == 1:
        return parts[0].log
    import pandas as pd

    column = (options.get("columns") or {}).get(RUN, RUN)
    tables = []
    for number, part in enumerate(parts):
        runs = part.table[column] if column in part.table else np.zeros(len(part.table), dtype=int)
        tables.append(part.table.assign(**{column: [f"{number}: {run}" for run in runs]}))
    units = join_header_units(tables, [part.name for part in parts])
    # Pandas compares attributes of tables that it stacks, which arrays among them do not bear.
    for table in tables:
        table.attrs = {}
    stacked = pd.concat(tables)
    stacked.attrs[HEADER_UNITS] = units
    return stacked
