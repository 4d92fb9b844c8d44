"""What the diagnosis of a fit's logs warns of: one diagnosis, however many logs there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.notes import Note
from feasid.diagnosis.diagnose import check_columns
from feasid.diagnosis.findings import Finding
from feasid.identification.log_check import check_log
from feasid.logs.floating import robot_floats
from feasid.logs.recording import Recording
from feasid.reduction.fleet import LogTask
from feasid.robot.description import Robot

if TYPE_CHECKING:
    import pandas as pd

MAX_DIAGNOSED_ROWS = 10**6
"""Rows beyond which logs are not diagnosed on the way."""

RUN = "run"
"""Column of a joined log that says which log and which of its runs a row is of."""


@dataclass(frozen=True, eq=False)
class DiagnosedLog:
    """One of the logs that are diagnosed together."""

    name: str
    log: Recording
    table: pd.DataFrame
    first: int

    def is_about_this_log(self, finding: Finding) -> bool:
        """Whether a finding about rows is about this log's alone."""
        last = self.first + len(self.table)
        return bool(finding.rows) and all(self.first <= a and b < last for a, b in finding.rows)


def diagnose_logs(
    tasks: Sequence[LogTask], robot: Robot, measured: Sequence[str] | None
) -> list[Note]:
    """What a diagnosis of all logs together warns of, and which of them it left out.

    Parameters
    ----------
    tasks : sequence of Work
    robot : Robot
    measured : sequence of str, optional
        Joints whose torques were measured; None for all.
    """
    if measured is not None and {*robot.joints} - {*measured}:
        return [Note("a log without the torques of all joints is not diagnosed", "undiagnosed")]
    recorded = [t for t in tasks if isinstance(t.source, Recording)]
    if not recorded:
        return []
    if robot_floats(robot):
        return [note for task in recorded for note in _floating_notes(task, robot)]
    options = recorded[-1].options
    parts, notes = _align_logs(recorded, robot, options)
    if not parts:
        return notes
    stacked = Recording.from_source(_stack_logs(parts, options))
    found = check_log(stacked, robot, options, thorough=False).diagnosis
    if len(parts) > 1:
        text = (
            f"{len(parts)} logs are diagnosed as one, rows and seconds counted through all of them "
            "in their order; feasid.diagnose looks at one"
        )
        notes.append(Note(text, "diagnosed-together", logs=len(parts)))
    for finding in (f for f in found if f.level != "note"):
        own = [p for p in parts if len(parts) > 1 and p.is_about_this_log(finding)]
        where = f"{own[0].name}, from row {own[0].first} on: " if own else ""
        fact = finding.code == "dead" and finding.level == "error"
        confirmed = fact or finding.gain is not None
        notes.append(
            Note(f"{where}{finding}", finding.code, level=finding.level, confirmed=confirmed)
        )
    return notes


def _floating_notes(task: LogTask, robot: Robot) -> list[Note]:
    """What a floating robot's log shows to be wrong."""
    log = task.source
    assert isinstance(log, Recording)
    if log.streamed:
        return [
            _undiagnosed_note(
                [task], "too long to be diagnosed on the way; feasid.diagnose looks at it"
            )
        ]
    found = check_columns(log, robot, task.options)
    return [Note(str(f), f.code, level=f.level, confirmed=True) for f in found]


def _undiagnosed_note(tasks: Sequence[LogTask], why: str) -> Note:
    names = [t.source.name or "the log" for t in tasks if isinstance(t.source, Recording)]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return Note(f"{names[0]}{more}: {why}", "undiagnosed")


def _align_logs(
    tasks: Sequence[LogTask], robot: Robot, options: Mapping[str, Any]
) -> tuple[list[DiagnosedLog], list[Note]]:
    """Logs with the columns of the first, as far as they are not too long, and what is left."""
    parts: list[DiagnosedLog] = []
    long, other = [], []
    exclude = options.get("exclude", ())
    rows, by_row = 0, not isinstance(exclude, str) and len(exclude) > 0
    for number, task in enumerate(tasks, 1):
        log = task.source
        assert isinstance(log, Recording)
        if log.streamed or rows > MAX_DIAGNOSED_ROWS:
            long.append(task)
            continue
        table = log.table(robot, options.get("topic"))
        if rows + len(table) > MAX_DIAGNOSED_ROWS:
            long.append(task)
        elif parts and (by_row or {*table.columns} != {*parts[0].table.columns}):
            other.append(task)
        else:
            parts.append(DiagnosedLog(log.name or f"log {number}", log, table, rows))
            rows += len(table)
    notes = []
    if long:
        why = "too long to be diagnosed on the way; feasid.diagnose looks at it"
        notes.append(_undiagnosed_note(long, why))
    if other:
        why = "not diagnosed beside the first, whose columns or excluded rows are others"
        notes.append(_undiagnosed_note(other, why))
    return parts, notes


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
        own = part.table[column] if column in part.table else np.zeros(len(part.table), dtype=int)
        table = part.table.assign(**{column: [f"{number}: {run}" for run in own]})
        table.attrs = {}
        tables.append(table)
    return pd.concat(tables)
