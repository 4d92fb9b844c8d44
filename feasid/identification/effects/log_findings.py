"""Faults in the columns of a log, and the excitation of its motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import FeasidError, LogError
from feasid.identification.regression.triangle import Reducer
from feasid.logs.checks.findings import Diagnosis, Finding
from feasid.logs.checks.signals import check_signals
from feasid.logs.checks.velocity import WAYS, check_velocities
from feasid.logs.clock import check_order, run_labels
from feasid.logs.derivatives import MIN_SAMPLES
from feasid.logs.floating import contact_from_option, imu_from_option, is_floating_log
from feasid.logs.motion import Motion, Rows
from feasid.logs.raw import Signals, unwrap_angles
from feasid.logs.recording import Recording, read_signals
from feasid.logs.units import unit_factor
from feasid.options.complete import select_options
from feasid.options.tables import LogOptions, ReadOptions
from feasid.parameters.identifiability.base import base_parameters
from feasid.robot.description import Robot
from feasid.robot.layout import random_configurations

if TYPE_CHECKING:
    import pandas as pd


def check_columns(recording: Recording, robot: Robot, asked: Mapping[str, Any]) -> Diagnosis:
    """Findings about the columns of a log, in the order in which they were found.

    Options of findings are suspicions that nobody has tried.

    `asked`: `feasid.options.tables.DiagnoseOptions` that were given.
    """
    df = recording.table(robot, asked.get("topic"))
    try:
        if is_floating_log(df, robot):
            from feasid.logs.checks.floating import find_floating_mistakes

            reading = {"filtering": "equations", **select_options(LogOptions, asked)}
            motion, points = recording.motion(robot, **reading), asked.get("contacts") or {}
            contacts = {str(k): contact_from_option(v) for k, v in points.items()}
            faults = find_floating_mistakes(df, robot, imu_from_option(asked.get("imu")), contacts)
            span = float(np.ptp(np.concatenate([run.t for run in motion.runs])))
            rate = motion.runs[0].rate
            return Diagnosis(tuple(faults), motion.rows, span, rate, motion.notes)
        raw = read_signals(recording, robot, **select_options(ReadOptions, asked))
    except LogError as error:
        return Diagnosis((_finding_of_error("columns", error),), len(df))
    # Infinite numbers count as missing: they would swamp every mean that a check takes.
    numbers = {kind: np.where(np.isfinite(x), x, np.nan) for kind, x in raw.values.items()}
    raw = replace(raw, values=numbers)
    findings, runs = _sort_rows_by_time(df, raw)
    # Speeds and jumps mean nothing where the order of rows is not known.
    if not any(f.level == "error" and f.code == "time" for f in findings):
        findings += [
            Finding(n.code, SAID[n.code], n, joints=tuple(n.values.get("joints", ())))
            for n in raw.notes
            if n.code in SAID
        ]
        unwrapped = unwrap_angles(raw.values["q"], robot, runs)
        findings += [Finding("wrapped", "note", note) for note in unwrapped]
        if len(df) >= MIN_SAMPLES:
            findings += check_signals(raw, robot, runs)
            moving = check_velocities(raw, runs, findings)
            findings += [in_log_columns(f, raw, asked) for f in moving]
    span = sum(float(np.ptp(raw.t[rows])) for rows in runs if len(rows)) if runs else float("nan")
    steps = np.diff(raw.t)
    rate = 1.0 / float(np.median(steps)) if steps.size and np.median(steps) > 0 else float("nan")
    return Diagnosis(tuple(findings), len(df), span, rate, raw.notes)


def _finding_of_error(code: str, error: LogError) -> Finding:
    data = error.data
    joints = data.get("joints") or ((data["joint"],) if data.get("joint") else ())
    columns = (str(data["column"]),) if data.get("column") is not None else ()
    rows = ((int(data["row"]), int(data["row"])),) if "row" in data else ()
    return Finding(code, "error", str(error), joints=tuple(joints), columns=columns, rows=rows)


def _sort_rows_by_time(df: pd.DataFrame, raw: Signals) -> tuple[list[Finding], list[Rows]]:
    """Row numbers of every run in order of time, and faults of the order."""
    findings: list[Finding] = []
    codes, labels = run_labels(df, raw.layout.run)
    runs = []
    for code, label in enumerate(labels):
        places = np.flatnonzero(codes == code)
        steps = np.diff(raw.t[places])
        rows = places[np.concatenate([[True], steps != 0])] if len(places) else places
        try:
            check_order(raw.t[rows], rows, label)
        except LogError as error:
            findings.append(_finding_of_error("time", error))
        repeats = np.flatnonzero(steps == 0)
        if doubled := len(repeats):
            at, after = places[repeats], places[repeats + 1]
            same = all(np.array_equal(x[after], x[at], equal_nan=True) for x in raw.values.values())
            level = "warning" if same else "error"
            text = f"{doubled} row(s) have the time stamp of the row before, "
            text += "and its values" if same else "but other values: which are right?"
            mend = "drop one of each: df.drop_duplicates(subset='t')"
            mend = "nothing: they are dropped" if same else mend
            rows_named = tuple((int(k), int(k)) for k in repeats[:20] + 1)
            findings.append(Finding("doubled", level, text, mend, rows=rows_named))
        runs.append(rows)
    return findings, runs


SAID = {"ticks": "warning", "currents": "warning", "numbered": "note", "extra": "note"}
"""Codes of the reader's notes that are worth a finding, and its level."""


def in_log_columns(finding: Finding, raw: Signals, options: Mapping[str, Any]) -> Finding:
    """A finding's options in terms of the log's own columns, on top of the options given."""
    mend = _combine_with_options(finding.options, raw, options)
    values = dict(finding.values)
    if WAYS in values:
        values[WAYS] = tuple(_combine_with_options(way, raw, options) for way in values[WAYS])
    remedy = finding.remedy
    columns = finding.columns
    if "columns" in mend:
        columns, remedy = tuple(map(str, mend["columns"].values())), f"columns={mend['columns']}"
    return replace(finding, options=mend, values=values, remedy=remedy, columns=columns)


def _combine_with_options(
    mend: Mapping[str, Any], raw: Signals, options: Mapping[str, Any]
) -> dict[str, Any]:
    out = dict(mend)
    if "units" in out:
        # A factor is on top of the unit in which a column is read already.
        out["units"] = {
            k: v if isinstance(v, str) else v * unit_factor(options.get("units"), *k.split("_", 1))
            for k, v in out["units"].items()
        }
    if "offsets" in out:
        offsets = options.get("offsets") or {}
        out["offsets"] = {j: offsets.get(j, 0.0) + v for j, v in out["offsets"].items()}
    if "columns" in out:
        # Joints are exchanged in all kinds of signals that the log has.
        place = {joint: k for k, joint in enumerate(raw.layout.coordinates)}
        columns = {ours: raw.layout.columns[ours.split("_", 1)[0]] for ours in out["columns"]}
        out["columns"] = {
            ours: str(columns[ours][place[theirs.split("_", 1)[1]]])
            for ours, theirs in out["columns"].items()
            if columns[ours]
        }
    return out


UNSEEN = 1e-4  #: Directions whose signal is below this share of the strongest count as not excited.
WEAK = 1e-3  #: Below this reciprocal condition number a better motion is advised.
DOMINANT = 0.35  #: Parameters with at least this entry in a unit vector are named.

MOST_SAMPLES = 4000
"""About so many samples of a log decide its rank and conditioning; the others are passed over."""


def check_excitation(motion: Motion, robot: Robot) -> list[Finding]:
    """Effective rank of the log against the structural number of base parameters.

    The columns of the triangle R are scaled to the size that they have in a random motion with
    the log's own ranges of position, velocity and acceleration, so that the choice of units does
    not decide what counts as excited.
    """
    try:
        base = base_parameters(robot)
    except FeasidError:
        return []
    columns = [int(c) for c in base.independent]
    step = max(1, motion.samples // MOST_SAMPLES)
    reducer, other = Reducer(robot, columns), Reducer(robot, columns)
    parts = [[getattr(r, k)[::step] for k in ("q", "dq", "ddq")] for r in motion.runs]
    q, dq, ddq = (np.concatenate([p[k] for p in parts]) for k in range(3))
    reducer.add(q, dq, ddq, np.zeros_like(q))
    rng = np.random.default_rng(0)
    speed, push = (rng.uniform(-1, 1, q.shape) * np.abs(x).max() for x in (dq, ddq))
    try:
        postures = random_configurations(robot, rng, len(q)).T
    except FeasidError:
        return []
    ends = [[robot.coordinates.index(x) for x in pair] for pair in robot.elastic.items()]
    for drawn, logged in ((postures, q), (speed, dq), (push, ddq)):
        drawn[:, ~robot.moves] = 0.0
        for j, k in ends:  # a motor is no farther from its link than in the log
            farthest = np.abs(logged[:, k] - logged[:, j]).max()
            drawn[:, k] = drawn[:, j] + rng.uniform(-1, 1, len(q)) * farthest
    other.add(postures, speed, push, np.zeros_like(q))
    triangle, reference = reducer.result().triangle()[0], other.result().triangle()[0]
    scale = np.linalg.norm(reference, axis=0)
    scale[scale == 0] = 1.0
    _, singular, right = np.linalg.svd(triangle / scale)
    rank = int((singular > UNSEEN * singular[0]).sum()) if singular.size else 0
    if rank < len(columns):
        return [_unexcited_finding(robot, rank, right[rank:], base.expressions, dq)]
    ratio = float(singular[-1] / singular[0])
    text = f"full rank ({rank}/{rank}), condition number {1 / ratio:.3g}, least determined: "
    text += _dominant_expressions(right[-1], base.expressions)
    weak = "a longer or richer motion would help: feasid.excite(robot)" if ratio < WEAK else ""
    return [Finding("excitation", "note", text, weak)]


def _dominant_expressions(vector: Array, expressions: tuple[str, ...]) -> str:
    large = np.argsort(-np.abs(vector))[:3]
    parts = [expressions[k].split(" ", 1) for k in large if abs(vector[k]) > DOMINANT]
    return ", ".join(head + (" ..." if more else "") for head, *more in parts)


def _unexcited_finding(
    robot: Robot, rank: int, hidden: Array, expressions: tuple[str, ...], dq: Array
) -> Finding:
    texts = (_dominant_expressions(v, expressions) for v in hidden[::-1][:4])
    worst = "; ".join(filter(None, texts))
    names = robot.coordinates
    speed = np.abs(dq).max(axis=0)
    stands = robot.moves & (speed < 0.05 * speed.max())
    idle = tuple(n for n, s in zip(names, stands, strict=True) if s)
    # Two joints whose velocities are multiples of each other are not told apart.
    size = np.linalg.norm(dq, axis=0)
    likeness = np.abs(dq.T @ dq) / np.maximum(np.outer(size, size), 1e-300) - np.eye(len(names))
    for ends in robot.elastic.items():
        places = [names.index(end) for end in ends]
        likeness[np.ix_(places, places)] = 0.0
    i, j = np.unravel_index(int(np.argmax(likeness)), likeness.shape)
    advice = ""
    if idle:
        advice = f"move {', '.join(idle)}"
    elif likeness[i, j] > 0.97:
        advice = f"move {names[i]} and {names[j]} independently of each other"
    text = (f"{rank} of {len(expressions)} base parameters are excited; the others involve mainly "
            f"{worst or 'many parameters'}")  # fmt: skip
    remedy = f"{advice or 'a richer motion'}: feasid.excite(robot)"
    return Finding("excitation", "note", text, remedy, idle)
