"""What may be wrong with a log: its signals one by one, then by the robot's dynamics."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.arrays import Array, Mask
from feasid.diagnosis.dynamics_checks import check_dynamics
from feasid.diagnosis.excitation import check_excitation
from feasid.diagnosis.findings import Diagnosis, Finding, mark_mended, merge_options
from feasid.diagnosis.signals import check_signals
from feasid.diagnosis.velocity import check_velocities, choose_directions
from feasid.errors import LogError
from feasid.logs.clock import check_order, run_labels
from feasid.logs.columns import unit_factor
from feasid.logs.derivatives import MIN_SAMPLES
from feasid.logs.motion import Rows
from feasid.logs.raw import Signals, unwrap
from feasid.logs.recording import Recording
from feasid.options.complete import select_options
from feasid.options.tables import LogOptions, ReadOptions
from feasid.reduction.reduce import choose_filtering
from feasid.reduction.window import low_passed
from feasid.robot.description import Robot

if TYPE_CHECKING:
    import pandas as pd


def examine(
    recording: Recording,
    robot: Robot,
    asked: Mapping[str, Any],
    refuted: Collection[tuple[str, tuple[str, ...]]] = (),
) -> Diagnosis:
    """What may be wrong with a log, in the order in which it was found.

    The log is prepared as `feasid.fit` prepares it: on the same clock, with the same gaps bridged,
    behind the same low-pass. Options of findings are suspicions that nobody has tried.

    Parameters
    ----------
    recording : Recording
    robot : Robot
    asked : mapping
        `feasid.options.tables.DiagnoseOptions` that were given.
    refuted : collection of (code, joints)
        Suspicions of the robot's dynamics that were tried in vain and are not raised again.
    """
    chosen = choose_filtering(select_options(LogOptions, asked), "diagnose")
    df = recording.table(robot, chosen.get("topic"))
    try:
        raw = _with_holes(recording.raw(robot, **select_options(ReadOptions, chosen)))
    except LogError as error:
        return Diagnosis((_from_error("columns", error),), len(df))
    findings, runs, mend = _order_runs(df, raw)
    if not any(f.level == "error" and f.code == "time" for f in findings):
        findings += _reader_findings(raw, unwrap(raw.values["q"], robot, runs))
        if len(df) >= MIN_SAMPLES:
            findings += check_signals(raw, robot, runs)
            findings += check_velocities(raw, runs, findings)
        mended = merge_options([chosen, mend, *(f.options for f in findings)])
        findings = choose_directions(findings, recording, robot, mended)
        mended = merge_options([chosen, mend, *(f.options for f in findings)])
        findings += _check_prepared_log(recording, robot, mended, findings, raw, refuted)
    span = float(np.ptp(raw.t)) if len(raw.t) else float("nan")
    steps = np.diff(raw.t)
    rate = 1.0 / float(np.median(steps)) if steps.size and np.median(steps) > 0 else float("nan")
    return Diagnosis(tuple(mark_mended(findings, asked)), len(df), span, rate, raw.notes)


def _with_holes(raw: Signals) -> Signals:
    """A copy in which every cell that is no number is NaN."""
    values = {kind: np.where(np.isfinite(x), x, np.nan) for kind, x in raw.values.items()}
    return replace(raw, values=values)


def _from_error(code: str, error: LogError) -> Finding:
    """An error that reading or preparing raised, as a finding."""
    data = error.data
    joints = data.get("joints") or ((data["joint"],) if data.get("joint") else ())
    columns = (str(data["column"]),) if data.get("column") is not None else ()
    rows = ((int(data["row"]), int(data["row"])),) if "row" in data else ()
    return Finding(code, "error", str(error), joints=tuple(joints), columns=columns, rows=rows)


def _order_runs(df: pd.DataFrame, raw: Signals) -> tuple[list[Finding], list[Rows], dict[str, Any]]:
    """Row numbers of every run in order of time, and what is wrong with the order."""
    findings: list[Finding] = []
    mend: dict[str, Any] = {}
    codes, labels = run_labels(df, raw.layout.run)
    runs = []
    for code, label in enumerate(labels):
        rows = np.flatnonzero(codes == code)
        steps = np.diff(raw.t[rows])
        rows = rows[np.concatenate([[True], steps != 0])] if len(rows) else rows
        try:
            check_order(raw.t[rows], rows, label)
        except LogError as error:
            findings.append(_from_error("time", error))
            mend["sort"] = True
        doubled = int((steps == 0).sum())
        if doubled:
            own = np.flatnonzero(codes == code)
            same = all(_repeats_values(x[own], steps == 0) for x in raw.values.values())
            findings.append(
                Finding(
                    "doubled",
                    "warning" if same else "error",
                    f"{doubled} row(s) have the time stamp of the row before, "
                    + ("and its values" if same else "but other values: which are right?"),
                    "nothing: they are dropped"
                    if same
                    else "drop one of each: df.drop_duplicates(subset='t')",
                    rows=tuple((int(k), int(k)) for k in np.flatnonzero(steps == 0)[:20] + 1),
                )
            )
        runs.append(rows)
    return findings, runs, mend


def _repeats_values(values: Array, at: Mask) -> bool:
    """Whether rows whose time repeats repeat the values as well."""
    where = np.flatnonzero(at)
    return np.array_equal(values[where + 1], values[where], equal_nan=True)


MOTION = ("velocity", "swap")
"""Codes of findings about positions and velocities that contradict each other."""

SAID = ("ticks", "numbered", "extra")
"""Codes of the reader's notes that are worth a finding."""


def _reader_findings(raw: Signals, unwrapped: Sequence[str]) -> list[Finding]:
    """Findings from the notes of the log reader, and from unwrapped positions."""
    found = [
        Finding(note.code, "warning" if note.code == "ticks" else "note", note)
        for note in raw.notes
        if note.code in SAID
    ]
    return found + [Finding("wrapped", "note", note) for note in unwrapped]


def _check_prepared_log(
    recording: Recording,
    robot: Robot,
    options: Mapping[str, Any],
    findings: Sequence[Finding],
    raw: Signals,
    refuted: Collection[tuple[str, tuple[str, ...]]],
) -> list[Finding]:
    """Findings on the prepared log, corrected by the remedies that were found so far."""
    if any(f.code == "dead" and f.level == "error" for f in findings):
        return []
    if any(f.code in MOTION and f.level == "error" and not f.options for f in findings):
        return []  # of two motions that contradict each other, the wrong one suits other torques
    try:
        motion = low_passed(recording.motion(robot, **options))
    except LogError as error:
        return [_from_error("unusable", error)]
    weak = {f.joints[0] for f in findings if f.code == "coarse"}
    found = [_in_log(f, raw, options) for f in check_dynamics(motion, robot, weak, refuted)]
    return found + check_excitation(motion, robot)


def _in_log(finding: Finding, raw: Signals, options: Mapping[str, Any]) -> Finding:
    """A finding about the prepared log in terms of the log's own columns and given options."""
    mend = dict(finding.options)
    if "units" in mend:
        mend["units"] = {k: _combine_factor(k, v, options) for k, v in mend["units"].items()}
    if "offsets" in mend:
        given = options.get("offsets") or {}
        mend["offsets"] = {j: given.get(j, 0.0) + v for j, v in mend["offsets"].items()}
    if "delay" in mend:
        mend["delay"] = options.get("delay", 0.0) + mend["delay"]
    if "columns" not in mend:
        return replace(finding, options=mend)
    kinds = ["tau"] if finding.columns[0].startswith("tau_") else ["q", "dq", "ddq"]
    place = {joint: k for k, joint in enumerate(raw.layout.coordinates)}
    pairs = {
        f"{kind}_{ours}": (raw.layout.columns[kind] or ())[place[theirs]]
        for kind in kinds
        if raw.layout.columns[kind]
        for ours, theirs in (
            (a.split("_", 1)[1], b.split("_", 1)[1]) for a, b in mend["columns"].items()
        )
    }
    return replace(
        finding,
        columns=tuple(str(c) for c in pairs.values()),
        remedy=f"columns={pairs}",
        options={**mend, "columns": pairs},
    )


def _combine_factor(key: str, factor: Any, options: Mapping[str, Any]) -> Any:
    """A factor on top of the unit in which a column is read already."""
    if isinstance(factor, str):
        return factor
    kind, joint = key.split("_", 1)
    return factor * unit_factor(options.get("units"), kind, joint)
