"""Diagnosis of the signals themselves: time, holes, dead columns, units, ranges, repetition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from feasid.core.arrays import Array
from feasid.logs.checks.findings import Finding
from feasid.logs.clock import GAP, JITTER
from feasid.logs.columns import WORDS
from feasid.logs.motion import Rows, excluded_blocks
from feasid.logs.raw import Signals
from feasid.robot.description import Robot

STUCK = 0.5  #: A signal that does not change for longer than this [s] is checked.
STUCK_SAMPLES = 20  #: ... and for at least so many samples.

JUMP = 5.0
"""A step of so many times the largest usual one ends an interval in which a signal was stuck."""

CLIPPED = 4  #: Equal samples in a row at the extreme of a signal that make a plateau.
CLIPPED_SHARE = 0.003  #: Share of all samples on such plateaus that counts as saturation.
MOST_LEFT_OUT = 0.15  #: Share of a log up to which leaving out clipped samples is advised.
AROUND = 0.2  #: What a filter takes on either side of what is left out [s]: one period of 5 Hz.
COARSE = 0.1  #: A resolution coarser than this share of the standard deviation is reported.
PART = 8  #: Every eighth value of a column is sorted before all are.

SPIKE = 12.0
"""A single sample is reported if its distance to its neighbours is so many times the largest usual
one."""

OUTSIDE = 0.02
"""Positions beyond the description's range by more than this share of it are reported."""

ALIKE, UNEVEN = 0.9, 0.05
"""Correlation of each joint's jitter with the other joints', and its deviation as a share of a time
step, from which it is reported: 1.00 and .35 on a Unitree Z1, at most .75 and .07 on 13 runs of
other robots."""

TOGETHER = 0.9
"""Share of the rows with a change in which most positions change, from which they are read at
once."""

ENOUGH, FOURTH, TINY = 200, 0.674 * 70**0.5, 1e-300
"""Least number of samples for that; median size of fourth differences of independent numbers of
variance 1; no velocity."""

DEGREE = np.pi / 180

SignalCheck: TypeAlias = Callable[[Signals, Robot], list[Finding]]

CHECKS: list[SignalCheck] = []
"""What looks at all signals of a log together, besides checks of time and of single columns."""


def signal_check(check: SignalCheck) -> SignalCheck:
    """Add a check to `CHECKS`."""
    CHECKS.append(check)
    return check


def check_signals(raw: Signals, robot: Robot, runs: Sequence[Rows]) -> list[Finding]:
    """Findings of checks of one column at a time; `runs`: rows of each run, in order of time."""
    findings = _check_time(raw, runs) + _check_read_times(raw, runs)
    # Positions or torques that keep a value for several rows: a bus or sensor is slower.
    longest = max(runs, key=len, default=np.zeros(0, dtype=np.int64))
    for kind, what in (("q", "positions"), ("tau", "torques")):
        count = _rows_per_reading(raw.values[kind][longest]) if kind in raw.values else 1.0
        if count > 1.0:
            age = 1e3 * (count - 1.0) * float(np.median(np.diff(raw.t[longest])))
            message = (
                f"{what} change only every {count:g} rows: they are read more slowly than they are "
                f"logged, and up to {age:.2g} ms old"
            )
            remedy = "log positions and torques together, when both are read"
            findings.append(Finding("held", "note", message, remedy))
    names, tau = raw.layout.coordinates, raw.values.get("tau")
    known = [] if tau is None else [x[np.isfinite(x)] for x in tau.T]
    moved = tuple(n for k, n in enumerate(names) if not known or (known[k] != known[k][:1]).any())
    unsigned = _unsigned_finding(raw, moved)
    findings += unsigned
    # From how many samples of one value on a signal may be stuck.
    steps = (np.median(np.diff(raw.t[rows])) if len(rows) > 1 else 1.0 for rows in runs)
    suspicious = [max(STUCK_SAMPLES, STUCK / max(float(step), 1e-12)) for step in steps]
    for kind, values in raw.values.items():
        for k, joint in enumerate(raw.layout.coordinates):
            if joint in (robot.passive if kind == "tau" else robot.sensors.values()):
                continue
            column = raw.layout.column_name(kind, k)
            where = _ColumnPlace(kind, joint, column, raw.t, moved, bool(unsigned))
            bad = np.flatnonzero(~np.isfinite(values[:, k]))
            if parts := excluded_blocks(bad, ""):
                text = (
                    f"has {bad.size} cells without a finite number in {len(parts)} segment(s), "
                    f"first row {bad[0]}, the longest {max(p.count for p in parts)} rows"
                )
                remedy = "nan='drop-segments' leaves them out and splits the run"
                spans, change = [(p.first, p.last) for p in parts[:20]], {"nan": "drop-segments"}
                findings.append(where.finding("nan", "error", text, remedy, spans, change))
            if raw.layout.columns[kind]:  # torques of controls: no sensor that sticks or clips
                findings += _check_column(values[:, k], where, runs, suspicious)
    return findings + [finding for check in CHECKS for finding in check(raw, robot)]


def _unsigned_finding(raw: Signals, moved: tuple[str, ...]) -> list[Finding]:
    """Torques of all joints that reach zero and never pass it: amounts without their signs."""
    tau = raw.values.get("tau")
    if tau is None or len(moved) < 2 or not raw.layout.columns["tau"]:
        return []
    places = [raw.layout.coordinates.index(joint) for joint in moved]
    cells = tau[:, places]
    one_sided = (np.nanmin(cells, axis=0) == 0) | (np.nanmax(cells, axis=0) == 0)
    if not (one_sided & ((cells == 0).mean(axis=0) > CLIPPED_SHARE)).all():
        return []
    columns = tuple(raw.layout.column_name("tau", k) for k in places)
    message = (
        f"torques ({', '.join(columns)}) never change their sign, although the torques of these "
        "joints should: they seem to be magnitudes without direction, which no model explains"
    )
    remedy = (
        "log the load with its sign: servos keep it in a bit of its own, or in the current; "
        "positions and commands without torques are identified with command='position'"
    )
    return [Finding("unsigned", "warning", message, remedy, moved, columns)]


@dataclass(frozen=True, eq=False)
class _ColumnPlace:
    """Names a column in findings."""

    kind: str
    joint: str
    column: str
    t: Array
    moved: tuple[str, ...] = ()  #: The joints whose torque changes.
    unsigned: bool = False  #: Whether torques are amounts, so that zero is no limit of them.

    def finding(
        self,
        code: str,
        level: str,
        message: str,
        remedy: str,
        rows: Sequence[tuple[int, int]] = (),
        options: Mapping[str, Any] | None = None,
    ) -> Finding:
        """A finding; unless it has other options, those of a warning leave out its rows."""
        times = tuple((float(self.t[a]), float(self.t[b])) for a, b in rows)
        if options is None:
            options = {"exclude": times} if level == "warning" and rows else {}
        text = f"{WORDS[self.kind]} ({self.column}) {message}"
        names = (self.joint,), (self.column,)
        return Finding(code, level, text, remedy, *names, tuple(rows), times, options)


def _check_time(raw: Signals, runs: Sequence[Rows]) -> list[Finding]:
    findings = []
    for rows in runs:
        if len(rows) < 3:
            continue
        steps = np.diff(raw.t[rows])
        median = float(np.median(steps))
        gaps = np.flatnonzero(steps > GAP * median)
        if gaps.size:
            spans = tuple((int(rows[k]), int(rows[k + 1])) for k in gaps[:20])
            lost = float((steps[gaps] - median).sum())
            text = (
                f"{gaps.size} gap(s) in time, {lost:.4g} s in all, the longest {steps.max():.4g} s "
                f"after row {rows[int(np.argmax(steps))]}"
            )
            remedy = "no action needed: the log is split at gaps"
            times = tuple((float(raw.t[a]), float(raw.t[b])) for a, b in spans)
            findings.append(Finding("gap", "note", text, remedy, rows=spans, times=times))
        inside = steps[steps <= GAP * median]
        uneven = float((np.abs(inside - median) > JITTER * median).mean()) if inside.size else 0.0
        if uneven > 0.01:
            text = f"{uneven:.1%} of the time steps differ by more than {JITTER:.0%} from the "
            remedy = "log the time of the measurement rather than that of its arrival"
            findings.append(Finding("jitter", "warning", f"{text}median {median:.4g} s", remedy))
    return findings


def _check_read_times(raw: Signals, runs: Sequence[Rows]) -> list[Finding]:
    """Positions that are read before or after their time stamps: what they are off by is the
    velocity times one time for all joints.
    """
    for q, t in ((raw.values["q"][rows], raw.t[rows]) for rows in runs if len(rows) > ENOUGH):
        if _rows_per_reading(q) > 1.0:
            continue
        step = float(np.median(np.diff(t)))
        even = np.abs(np.diff(t) - step) < UNEVEN * step
        # Fourth differences leave next to nothing of a motion.
        off, v = np.diff(q, 4, axis=0), (q[3:-1] - q[1:-3]) / (2.0 * step)
        good = np.all([even[k : k + len(off)] for k in range(4)], axis=0)
        good &= np.isfinite(off).all(axis=1) & np.isfinite(v).all(axis=1)
        power = np.median(off[good] ** 2, axis=0) if good.sum() > ENOUGH else np.zeros(1)
        if (power > 0).sum() < 2:
            continue
        off, v = (x[np.ix_(good, power > 0)] for x in (off, v))
        normal = v / power[power > 0] * np.stack([off, v])  # times by least squares over joints
        moves = normal[1].sum(axis=1) > np.median(normal[1].sum(axis=1))
        if not moves.any():
            continue
        off, v, normal = off[moves], v[moves], normal[:, moves]
        total = normal.sum(axis=2, keepdims=True)
        size = float(np.median(np.abs(total[0] / total[1]))) / FOURTH
        others = total - normal
        x, y = others[0] * v, others[1] * off  # equal where all joints have one time
        norms = np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))
        alike = (x * y).sum(axis=0) / np.maximum(norms, TINY)
        if np.median(alike) > ALIKE and size > UNEVEN * step:
            message = (
                f"positions are read {1e3 * size:.2g} ms before or after their time stamps "
                f"(standard deviation, the same for all joints), {size / step:.0%} of a time step"
            )
            remedy = "the fit's low-pass averages it; log the time at which positions are read"
            return [Finding("jitter", "note", message, remedy)]
    return []


def _rows_per_reading(values: Array) -> float:
    """Median number of rows from one change of most joints' values to the next; 1 if some change
    alone, as positions of slow joints with coarse encoders do.
    """
    changed = np.diff(values, axis=0) != 0
    any_change = np.flatnonzero(changed.any(axis=1))
    moving = changed[:, changed.any(axis=0)]
    together = np.flatnonzero(moving.mean(axis=1) > 0.5) if moving.size else any_change[:0]
    if len(together) < max(ENOUGH, TOGETHER * len(any_change)):
        return 1.0
    return float(np.median(np.diff(together)))


def _check_column(
    values: Array, where: _ColumnPlace, runs: Sequence[Rows], suspicious: Sequence[float]
) -> list[Finding]:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return []
    if where.kind in ("q", "tau") and np.ptp(finite) == 0:
        measured = [*map(str, where.moved)]
        place = f"{{{where.joint!r}: {finite[0]:g}}}"
        remedy = f"lock the joint if it did not move: load_robot(..., lock={place})"
        if where.kind == "tau":
            remedy = f"leave a joint without motor or torque sensor out: measured={measured}"
            remedy = remedy if measured else "check the sensor and the recording"
        level = "error" if where.kind == "tau" else "warning"
        leave = {"measured": measured} if where.kind == "tau" and measured else {}
        return [where.finding("dead", level, f"is {finite[0]:g} in all rows", remedy, (), leave)]
    findings, most = list[Finding](), len(finite) / 10
    # Mostly a part of the values shows that they have more levels, without all being sorted.
    levels = finite if len(np.unique(finite[::PART])) >= most else np.unique(finite)
    few = len(finite) >= 50 and 2 <= len(levels) < most
    if few and (step := float(np.diff(levels).min())) > COARSE * float(finite.std()):
        text = f"has only {len(levels)} levels, {step:.3g} apart: quantised"
        remedy = "log with more digits or a lower cut-off"
        findings.append(where.finding("coarse", "note", text, remedy))
    if where.kind not in ("q", "tau"):
        return findings
    stuck, clipped, spikes = (list[tuple[int, int]]() for _ in range(3))
    extremes = float(finite.min()), float(finite.max())
    for rows, long in zip(runs, suspicious, strict=True):
        x = values[rows]
        for a, b in _plateaus(x):
            if where.kind == "tau" and x[a] in extremes and not (where.unsigned and x[a] == 0):
                clipped.append((int(rows[a]), int(rows[b])))
            elif _freezes(x, a, b, long, where.kind):
                stuck.append((int(rows[a]), int(rows[b])))
        spikes += [(int(rows[k]), int(rows[k])) for k in _spikes(x)]
    if stuck:
        still = sum(where.t[b] - where.t[a] for a, b in stuck)
        text = f"does not change for {still:.3g} s in {len(stuck)} segment(s) while it should"
        remedy = f"exclude={_format_intervals(stuck, where.t)}"
        findings.append(where.finding("stuck", "warning", f"{text}: a stuck signal", remedy, stuck))
    count = sum(b - a + 1 for a, b in clipped)
    if count > CLIPPED_SHARE * len(values):
        reached = sorted({round(float(values[a]), 6) for a, _ in clipped})
        text = f"stays at its extreme {', '.join(f'{v:g}' for v in reached)} in {count} samples "
        text += f"({count / len(values):.1%}): saturated or clipped"
        if _lost_time(clipped, where.t) <= MOST_LEFT_OUT * float(np.ptp(where.t)):
            remedy = f"exclude={_format_intervals(clipped, where.t)}"
            options: dict[str, Any] | None = None
        else:
            remedy, options = "record a slower motion; too much would be left out by exclude=", {}
        findings.append(where.finding("saturated", "warning", text, remedy, clipped, options))
    if spikes:
        row = spikes[0][0]
        text = f"has {len(spikes)} single sample(s) far off their neighbours, first row {row}"
        remedy = f"exclude={_format_intervals(spikes, where.t)}"
        findings.append(where.finding("spike", "warning", text, remedy, spikes))
    return findings


def _plateaus(x: Array) -> list[tuple[int, int]]:
    """First and last index of every interval of equal values, of at least CLIPPED samples."""
    edges = np.flatnonzero(np.concatenate([[True], np.diff(x) != 0, [True]]))
    long = np.flatnonzero(np.diff(edges) >= CLIPPED)
    return [(int(edges[k]), int(edges[k + 1] - 1)) for k in long]


def _freezes(x: Array, a: int, b: int, long: float, kind: str) -> bool:
    """Whether an interval is suspiciously long, or a position jumps after it.

    Torques always move a little; a position may rest, but it slows down before and does not jump
    afterwards.
    """
    samples = b - a + 1
    if kind == "tau" or samples < STUCK_SAMPLES:
        return kind == "tau" and samples >= long
    steps = np.abs(np.diff(x))
    moving = steps[steps > 0]
    if not moving.size:
        return False
    entry = float(steps[a - 1]) if a > 0 else 0.0
    leave = float(steps[b]) if b < len(steps) else 0.0
    usual, large = float(np.median(moving)), float(np.quantile(moving, 0.99))
    if samples < long:
        return leave > JUMP * large
    return leave > 2 * large or (entry > usual and (b == len(x) - 1 or leave > usual))


def _spikes(x: Array) -> list[int]:
    """Single samples off the mean of their neighbours by far more than is usual."""
    if len(x) < 50:
        return []
    off = np.abs(x[1:-1] - 0.5 * (x[:-2] + x[2:]))
    usual = float(np.quantile(off[np.isfinite(off)], 0.99)) if np.isfinite(off).any() else 0.0
    level = max(SPIKE * usual, 1e-3 * float(np.nanstd(x)))
    large = np.flatnonzero(off > level) + 1
    # A step makes two neighbours large, a spike one large and two half as large beside it.
    return [
        int(k)
        for k in large
        if abs(x[k + 1] - x[k - 1]) < 0.5 * min(abs(x[k] - x[k - 1]), abs(x[k] - x[k + 1]))
    ]


@signal_check
def check_range(raw: Signals, robot: Robot) -> list[Finding]:
    """Positions outside the description's limits, and degrees by their range."""
    findings = []
    for body, rows in robot.moving_bodies:
        if body.dof != 1:
            continue
        q = raw.values["q"][:, rows.start]
        column = str(raw.layout.columns["q"][rows.start])
        where = _ColumnPlace("q", body.joint, column, raw.t)
        low = -np.inf if body.limits.lower is None else body.limits.lower
        high = np.inf if body.limits.upper is None else body.limits.upper
        revolute = bool(body.motion[:3].any())
        if revolute and looks_like_degrees(q, low, high):
            why = f"goes from {np.nanmin(q):.4g} to {np.nanmax(q):.4g}, the description allows "
            findings.append(degrees_finding(body.joint, column, f"{why}{low:.4g} .. {high:.4g}"))
            continue
        room = OUTSIDE * (high - low) if np.isfinite(high - low) and high > low else 0.0
        if not (np.isfinite(low) or np.isfinite(high)) or low >= high:
            continue
        outside = np.flatnonzero((q < low - room) | (q > high + room))
        if outside.size:
            parts = excluded_blocks(outside, "")
            level = "note" if outside.size < 0.05 * len(q) else "warning"
            text = (
                f"is outside the description's range {low:.4g} .. {high:.4g} in {outside.size} "
                f"rows ({np.nanmin(q):.4g} .. {np.nanmax(q):.4g} seen)"
            )
            remedy = "check the joint's zero and direction (offsets=, units=)"
            spans = [(p.first, p.last) for p in parts[:20]]
            findings.append(where.finding("limits", level, text, remedy, spans, {}))
    return findings


def looks_like_degrees(q: Array, low: float, high: float) -> bool:
    """Whether positions fit the limits only if they are degrees."""
    finite = q[np.isfinite(q)]
    if not finite.size or not (np.isfinite(low) and np.isfinite(high) and low < high):
        return False
    span = max(abs(low), abs(high))
    room = 0.1 * span
    inside = low - room <= DEGREE * finite.min() and DEGREE * finite.max() <= high + room
    return bool(inside and np.abs(finite).max() > span + 2 * np.pi)


def degrees_finding(joint: str, column: str, why: str) -> Finding:
    """The position of a joint is in degrees."""
    key, text = f"q_{joint}", f"position ({column}) {why}: degrees"
    options, remedy = {"units": {key: "deg"}}, f"units={{{key!r}: 'deg'}}"
    return Finding("degrees", "error", text, remedy, (joint,), (column,), options=options)


def _lost_time(spans: Sequence[tuple[int, int]], t: Array) -> float:
    """Duration of these intervals and of the filter's transients around them [s]."""
    lost, reached = 0.0, -np.inf
    for a, b in spans:
        start, end = max(float(t[a]) - AROUND, reached), float(t[b]) + AROUND
        lost += max(end - start, 0.0)
        reached = max(reached, end)
    return lost


def _format_intervals(spans: Sequence[tuple[int, int]], t: Array, most: int = 3) -> str:
    shown = ", ".join(f"({t[a]:.4g}, {t[b]:.4g})" for a, b in spans[:most])
    return f"[{shown}{', ...' if len(spans) > most else ''}]"
