"""Time: from a column or an index to seconds, segments without gaps, and an even grid."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array, Mask, interpolate
from feasid.core.errors import LogError
from feasid.core.notes import Note
from feasid.logs.columns import find_growing_column, read_numbers
from feasid.logs.motion import Rows
from feasid.logs.units import unit_factor

if TYPE_CHECKING:
    import pandas as pd

GAP = 1.5  #: A step longer than this many median steps is a gap: at least one sample is missing.
SINGLE_GAP = 2.5  #: Median steps of a gap in which one sample is missing, jitter included.
JITTER = 0.2  #: Steps that differ by more than this share from the median are reported.

MIN_ROWS_BEFORE_RESTART = 10
"""A clock that goes back to its start after this many rows has restarted."""

MAX_STEP_IN_SECONDS = 0.5  #: A median step beyond this [s] means that the unit is not seconds.

SHUFFLED_SHARE = 0.1
"""Share of steps back beyond which rows are out of order, and steps are those of sorted times."""

CLOCK = re.compile(r"\s*\d{1,3}:\d\d:\d\d")  #: Text of a time without a date.

TICKS = (("ms", 1e-3, 0.5), ("us", 1e-6, 50.0), ("ns", 1e-9, 50_000.0))
"""Unit, its length [s] and the smallest median step that is taken for it."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """Rows without a gap: one run, or a part of one."""

    label: str
    rows: Rows
    rate: float


def read_time(
    df: pd.DataFrame, column: Any | None, rate: float | None, units: Any, header: str = ""
) -> tuple[Array, list[Note]]:
    """Time of every row in seconds from the first row, and notes on how it was read.

    Seconds are counted from the first row *before* conversion to float: epoch nanoseconds in
    float64 would lose 100 ns. `header` is the unit in the column's header, from which it is
    converted already. Texts are times of day or dates as ISO 8601 writes them.

    Raises LogError: without a time column, a usable index or `rate`; for cells that are not finite.
    """
    import pandas as pd

    if rate is not None:
        note = Note(f"time: row number at the given {rate:g} Hz", "row-time", rate=rate)
        return np.arange(len(df)) / rate, [note]
    if column is None and isinstance(df.index, pd.RangeIndex):
        time = find_growing_column(df)
        named = f'name the column, columns={{"t": "{time}"}}, or ' if time is not None else ""
        raise LogError(
            f"the log has no time: give a column t or an index in seconds, {named}give the "
            "sampling rate [Hz], say rate=200"
        )
    series = df[column] if column is not None else df.index.to_series()
    where = f"column {column!r}" if column is not None else "the index"
    if len(series) and isinstance(series.iloc[0], str):
        series = _parse_stamps(series, where, column)
    types, dtype = pd.api.types, series.dtype
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        _refuse_missing_stamps(np.asarray(series.isna()), where, column)
        return np.asarray((series - series.iloc[0]) / pd.Timedelta(1, "s"), dtype=np.float64), []
    if types.is_integer_dtype(dtype) and not series.isna().any():
        ticks = series.to_numpy(dtype=np.int64)
        t = np.asarray(ticks - ticks[0] if len(ticks) else ticks, dtype=np.float64)
    else:
        t = read_numbers(series.to_frame("t"), "t") if column is None else read_numbers(df, column)
        _refuse_missing_stamps(~np.isfinite(t), where, column)
        # Whole nanoseconds (of seconds): where a clock started leaves no trace in the last digits.
        t = np.round(t - t[0], 9) if len(t) else t
    if units is not None and "t" in units:
        return t * unit_factor(units, "t", header=header), []
    if header:
        return t, []
    # Recognise milli-, micro- and nanoseconds by the size of the step.
    steps = np.diff(t)
    if np.count_nonzero(steps < 0) > SHUFFLED_SHARE * len(steps):
        steps = np.diff(np.sort(t))
    steps = steps[steps > 0]
    if not steps.size or float(np.median(steps)) < MAX_STEP_IN_SECONDS:
        return t, []
    step = float(np.median(steps))
    unit, length = next((u, x) for u, x, least in reversed(TICKS) if step >= least)
    text = (
        f"time ({where}) steps by {step:g}, taken as {unit}: {1 / (step * length):.4g} Hz "
        f'(say units={{"t": "s"}} if these are seconds)'
    )
    return t * length, [Note(text, "ticks", unit=unit)]


def _parse_stamps(series: pd.Series[Any], where: str, column: Any) -> pd.Series[Any]:
    """Texts of dates and times, or of times alone."""
    import pandas as pd

    read: pd.Series[Any]
    if CLOCK.match(series.iloc[0]):
        read = pd.to_timedelta(series, errors="coerce")
    else:
        read = pd.to_datetime(series, errors="coerce", format="ISO8601", utc=True)
    bad = np.asarray(read.isna() & series.notna())
    if not bad.any():
        return read
    row = int(np.argmax(bad))
    raise LogError(
        f"time ({where}) has {str(series.iloc[row])[:40]!r} in row {row}: expected numbers, or "
        "dates and times such as 2026-01-31T12:00:00.005",
        column=column,
        row=row,
    )


def _refuse_missing_stamps(bad: Mask, where: str, column: Any) -> None:
    rows = np.flatnonzero(bad)
    if rows.size:
        raise LogError(
            f"time ({where}) is missing or not finite in {rows.size} row(s), first row {rows[0]}",
            column=column,
            row=int(rows[0]),
        )


def run_labels(df: pd.DataFrame, column: Any | None) -> tuple[npt.NDArray[np.intp], list[str]]:
    """Code of every row's run, in order of appearance, and the runs' labels."""
    if column is None:
        return np.zeros(len(df), dtype=np.intp), ["log"]
    import pandas as pd

    try:
        codes, labels = pd.factorize(df[column])
    except TypeError as error:
        raise LogError(
            f"column {column!r} holds {error.args[0]}: label runs by numbers or texts",
            column=column,
        ) from None
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        raise LogError(f"column {column!r} has no run in row {row}", column=column, row=row)
    return codes, [str(label) for label in labels]


def rows_in_time(df: pd.DataFrame, column: Any | None, t: Array) -> list[tuple[str, Rows]]:
    """Rows of every run in the order of time, in which alone neighbours tell speeds and delays."""
    codes, labels = run_labels(df, column)
    order = np.lexsort((t, codes))
    return list(zip(labels, np.split(order, np.cumsum(np.bincount(codes))[:-1]), strict=True))


def check_order(t: Array, rows: Rows, label: str) -> None:
    """Refuse time stamps of one run that do not increase, naming the row and both times."""
    back = np.flatnonzero(np.diff(t) <= 0)
    if not back.size:
        return
    k = int(back[0])
    row, before, after = int(rows[k + 1]), float(t[k]), float(t[k + 1])
    run = "" if label == "log" else f" of run {label!r}"
    if before == after:
        lasts = t[-1] - t[0]
        rate = f"={(len(t) - 1) / lasts:.6g}" if lasts > 1e-7 * len(t) else "= [Hz]"  # below 1e7
        raise LogError(
            f"time stamps are doubled: rows {rows[k]} and {row}{run} both have t = {after:.9g} s "
            f"({back.size} such row(s)). If stamps are rounded, pass rate{rate}; if rows are "
            "repeated, use "
            "df.drop_duplicates(subset='t'); if the log has several runs, add a column 'run'",
            row=row,
            time=after,
        )
    early = float(t[0]) + 2 * float(np.median(np.abs(np.diff(t))))
    advice = "sort the log with sort=True if its rows were only shuffled"
    if k >= MIN_ROWS_BEFORE_RESTART and after <= early:
        advice = "the clock restarts there: separate the runs with a column 'run'"
    raise LogError(
        f"time stamps are not sorted: row {row}{run} has t = {after:.9g} s after {before:.9g} s, "
        f"counted from the log's first row ({back.size} such row(s)); {advice}",
        row=row,
        time=after,
    )


def split_at_gaps(
    t: Array, rows: Rows, label: str, bridge: float = 0.0
) -> tuple[list[Stretch], list[Note]]:
    """Split one run where samples are missing; report jitter.

    Gaps of at most `bridge` [s], and single missing samples when it is positive, are left for
    `even_grid` to bridge.
    """
    if len(t) < 2:
        return [Stretch(label, rows, np.nan)], []
    steps = np.diff(t)
    median = float(np.median(steps))
    widest = max(GAP * median, bridge, SINGLE_GAP * median if bridge else 0.0)
    gaps = np.flatnonzero(steps > widest)
    run = "" if label == "log" else f"run {label!r}: "
    notes = []
    if gaps.size:
        first, longest = int(gaps[0]), int(gaps[np.argmax(steps[gaps])])
        text = (
            f"{run}{gaps.size} gap(s) in time, the first after row {rows[first]} (t = "
            f"{t[first]:.6g} s), the longest {steps[longest]:.4g} s after row {rows[longest]}: "
            "split there; no action needed"
        )
        notes.append(Note(text, "gaps", count=int(gaps.size), longest=float(steps[longest])))
    small = (steps > GAP * median) & (steps <= widest)
    if small.any():
        missing = int(np.rint(steps[small] / median - 1).sum())
        text = (
            f"{run}{int(small.sum())} gap(s) of at most {widest:.2g} s, {missing} sample(s), "
            "bridged by interpolation"
        )
        notes.append(Note(text, "bridged", count=int(small.sum()), samples=missing))
    inside = steps[steps <= GAP * median]
    uneven = np.abs(inside - median) > JITTER * median
    if uneven.any() and not bridge:
        text = (
            f"{run}{int(uneven.sum())} of {inside.size} time steps differ by more than "
            f"{JITTER:.0%} from the median {median:.4g} s: samples are taken as evenly spaced"
        )
        notes.append(Note(text, "uneven", count=int(uneven.sum()), median=median))
    edges = [0, *(gaps + 1).tolist(), len(t)]
    parts = []
    for a, b in pairwise(edges):
        rate = (b - a - 1) / (t[b - 1] - t[a]) if b - a > 1 and not bridge else 1.0 / median
        parts.append(Stretch(label, rows[a:b], float(rate)))
    return parts, notes


EVEN = 0.02  #: Stamps this close to the grid, as a share of the step, lie on it.
QUANTUM = 1e-7  #: Resolution [s] below which time stamps are not rounded on purpose.
FEWEST = 4  #: Samples from which a cubic can be drawn.

SMOOTH = ("q", "dq", "ddq")
"""Kinds of signals that are drawn through their samples by cubic splines."""


@dataclass(frozen=True, eq=False)
class ResamplingGrid:
    """Sources of the evenly spaced samples of a segment."""

    t: Array  #: Shape (M,): even times [s].
    nearest: npt.NDArray[np.intp]  #: Shape (M,): sample of the stretch that is closest to each.
    bridged: int  #: Times of the grid that have no sample of their own.
    #: Whether the stamps leave the grid by more than their rounding, so that every sample is
    #: interpolated.
    uneven: bool
    stamps: Array

    def resample(self, kind: str, signal: Array) -> Array:
        """Resample a signal of the segment, shape (N, k), on the grid, shape (M, k)."""
        if not self.bridged and not self.uneven:
            return signal
        if kind in SMOOTH and len(self.stamps) >= FEWEST:
            from scipy.interpolate import CubicSpline

            return np.asarray(CubicSpline(self.stamps, signal, axis=0)(self.t))
        return interpolate(self.t, self.stamps, signal)


def even_grid(t: Array) -> ResamplingGrid:
    """The even grid of increasing time stamps t, shape (N,), at their median step [s]."""
    n = len(t)
    if n < 2:
        return ResamplingGrid(t, np.zeros(n, dtype=np.intp), 0, False, t)
    steps = np.diff(t)
    median = float(np.median(steps))
    places = np.concatenate([[0], np.cumsum(np.maximum(1, np.rint(steps / median)))])
    u = places - places.mean()
    slope = float(u @ (t - t.mean()) / (u @ u))  # the line through the stamps
    start = float(t.mean() - slope * places.mean())
    off = float(np.abs(t - start - slope * places).max())
    # The unit in which stamps were rounded [s]; 0 when steps show none.
    distinct, unit = np.unique(np.rint(steps / QUANTUM)), 0.0
    # Stamps that were rounded have few different steps, all whole multiples of one.
    if 1 < len(distinct) <= max(3, len(steps) // 10):
        unit = float(np.diff(distinct).min())
        on_grid = np.abs(distinct / unit - np.rint(distinct / unit)) < EVEN
        unit *= QUANTUM * on_grid.all()
    if off <= max(EVEN * slope, unit):
        even = np.asarray(start + slope * np.arange(int(places[-1]) + 1), dtype=np.float64)
        stamps, uneven = np.asarray(start + slope * places, dtype=np.float64), False
    else:
        count = max(1, round((t[-1] - t[0]) / slope))
        even = np.asarray(t[0] + (t[-1] - t[0]) / count * np.arange(count + 1))
        stamps, uneven = t, True
    right = np.clip(np.searchsorted(stamps, even), 1, n - 1)
    nearest = right - (even - stamps[right - 1] < stamps[right] - even)
    return ResamplingGrid(even, nearest.astype(np.intp), max(0, len(even) - n), uneven, stamps)
