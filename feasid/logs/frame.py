"""The log contract: from a DataFrame and a robot to runs of signals for the regressor.

Columns are ``q_<joint>`` and ``tau_<joint>``, optionally ``dq_<joint>`` and ``ddq_<joint>``, by
joint name or by number from 1; time is a column ``t`` in seconds or the index; a column ``run``
separates runs; ``temperature_<joint>`` or ``T_<joint>``, or one of them for all joints, holds
degrees C. SI units and radians unless `units` says otherwise. What is missing is derived as
in section 5.2.2 of Sousa and Cortesao (2014); faults of the log raise errors; `Motion.notes` lists
what was done.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from feasid.core.arrays import Array, Mask
from feasid.core.errors import InputError, LogError, NotEnoughDataError
from feasid.core.notes import Note, as_notes
from feasid.logs.clock import Stretch, check_order, rows_in_time, run_labels, split_at_gaps
from feasid.logs.columns import UNMEASURED
from feasid.logs.derivatives import (
    BRIDGED_SHARE,
    EQUATION_CUTOFF,
    MIN_SAMPLES,
    SignalProcessing,
    equation_cutoff,
    find_cutoff,
    process_stretch,
)
from feasid.logs.motion import ExcludedRows, Motion, Rows, Run, excluded_blocks
from feasid.logs.raw import Signals, read_raw, refuse_missing_cells, unwrap_angles
from feasid.logs.temperature import at_one_temperature, smooth_temperatures, temperature_note
from feasid.options.complete import complete_options, document_options, select_options
from feasid.options.tables import FloatingOptions, LogOptions, ReadOptions
from feasid.robot.description import Robot

if TYPE_CHECKING:
    import pandas as pd

FILTER = "zero-phase third-order Butterworth low-pass"

STILL = 1e-3  #: Share of a joint's range within which it stands, encoders' noise included.
SHORTEST_BRAKE = 0.1  #: Time from which torques of exactly zero say that the motors are off [s].

RESTING = {"signals": 1e-3, "equations": 0.0}
"""Speed below which a joint rests, by what is filtered [rad/s or m/s]."""


@document_options(LogOptions)
def prepare(
    df: pd.DataFrame,
    robot: Robot,
    *,
    torque: bool | Collection[str] = True,
    **options: Unpack[LogOptions],
) -> Motion:
    """Turn a log into runs of (q, dq, ddq, tau).

    Velocity that is not in the log is the central difference of the filtered position;
    acceleration that of the filtered measured velocity, or the second central difference of the
    filtered position. Nothing is filtered or differentiated across gaps or runs.

    `df` has the columns of the module's text. Without `torque`, `Run.tau` is NaN; where it names
    joints, columns of the others are not read, and their `Run.tau` is zero.

    Raises LogError with joint, column, row and time: columns that are missing, doubled or not
    numeric, cells that are NaN or infinite, time stamps that are unsorted or doubled. Raises
    NotEnoughDataError: no segment is long enough for the filter and the trimmed ends.
    """
    complete = complete_options(LogOptions, options, "prepare")
    raw = read_raw(df, robot, torque=torque, **select_options(ReadOptions, complete))
    return motion_from_signals(df, raw, robot, complete)


def motion_from_signals(
    df: pd.DataFrame, raw: Signals, robot: Robot, options: Mapping[str, Any]
) -> Motion:
    """The same from numbers that were read already; `options` are all, checked."""
    for name in select_options(FloatingOptions, options):
        if options[name] is not None:
            raise InputError(f"{name} needs a robot whose base floats: leave it out", option=name)
    t, values, notes = raw.t, {k: x.copy() for k, x in raw.values.items()}, list(raw.notes)
    bad = np.any([~np.isfinite(x).all(axis=1) for x in values.values()], axis=0) & ~raw.corrupt_rows
    if options["nan"] == "error" and bad.any():
        refuse_missing_cells(df, raw)
    excluded = excluded_blocks(np.flatnonzero(bad), "cell missing or not finite")
    for what, rows in raw.corrupt:
        excluded += excluded_blocks(np.flatnonzero(rows), what)
    # Only measured torques of exactly zero say that motors are off: those by commands may be zero.
    if options["servo"] is None:
        unpowered, pauses = _unpowered_rows(raw, run_labels(df, raw.layout.run)[0])
        excluded += excluded_blocks(np.flatnonzero(unpowered), "unpowered")
        notes += pauses
        bad |= unpowered
    options = {**options, "filtering": options["filtering"] or "signals"}
    keeps_ends = options["filtering"] == "equations"
    if options["derivative_cutoff"] is not None and not keeps_ends:
        raise InputError("derivative_cutoff has no effect where signals are filtered: cutoff has")
    bridge = BRIDGED_SHARE / (options["cutoff"] or EQUATION_CUTOFF) if keeps_ends else 0.0
    usable = ~(bad | raw.corrupt_rows)
    stretches, repeated = _find_stretches(df, raw, usable, options["sort"], notes, bridge)
    excluded += repeated
    notes += unwrap_angles(values["q"], robot, (s.rows for s in stretches))
    if not keeps_ends:
        frequency, choice = find_cutoff(values, stretches, options["cutoff"])
    else:
        frequency, choice = equation_cutoff(stretches, options["cutoff"]), []
    how = SignalProcessing(
        frequency,
        decimate=options["decimate"] or 1,
        rest=RESTING[options["filtering"]] if options["rest"] is None else options["rest"],
        derivatives=options["derivative_cutoff"],
        complete={"dq", "ddq"} <= values.keys(),
        **{name: options[name] for name in ("filter_torque", "trim", "delay", "filtering")},
    )
    mask = _exclusion_mask(df, t, options["exclude"])
    runs: list[Run] = []
    for stretch in stretches:
        run, left_out = process_stretch(t, values, stretch, how, mask)
        runs += run
        excluded += left_out
    law = options["friction_per_kelvin"] or {}
    if raw.temperature is not None:
        warmth = smooth_temperatures(t, raw.temperature, run_labels(df, raw.layout.run)[0])
        runs = [replace(run, temperature=warmth[run.rows]) for run in runs]
        notes.append(temperature_note(raw.temperature, raw.layout.coordinates, law))
    lacking: list[Note] = []
    if law:
        runs, lacking = at_one_temperature(runs, law, raw.layout.coordinates)
    if not runs:
        raise _shortage([len(s.rows) for s in stretches], how, mask)
    notes += [*choice, *lacking, *_derivation_notes(raw, how, runs)]
    head = raw.layout.coordinates, tuple(runs), frequency, as_notes(notes), tuple(excluded), len(df)
    return Motion(*head, options["filtering"])


def _unpowered_rows(raw: Signals, runs: Rows) -> tuple[Mask, list[Note]]:
    """Rows in which nothing moves and every torque is exactly zero, for longer than an instant, and
    a note on them.

    Brakes hold the robot there: its weight is not in the torques.
    """
    out = np.zeros(len(raw.t), dtype=bool)
    columns, tau = raw.layout.columns["tau"], raw.values.get("tau")
    if tau is None or not columns or not tau.any():
        return out, []
    measured = [k for k, column in enumerate(columns) if column is not UNMEASURED]
    zero = (tau[:, measured] == 0).all(axis=1)
    still = STILL * np.ptp(np.nan_to_num(raw.values["q"]), axis=0)
    for code in np.unique(runs[zero]):
        for place in excluded_blocks(np.flatnonzero(zero & (runs == code)), ""):
            block = slice(place.first, place.last + 1)
            moved = np.ptp(raw.values["q"][block], axis=0)
            out[block] = np.ptp(raw.t[block]) >= SHORTEST_BRAKE and (moved <= still).all()
    places, count = excluded_blocks(np.flatnonzero(out), ""), int(out.sum())
    parts = ", ".join(f"{raw.t[p.first]:.4g} .. {raw.t[p.last]:.4g} s" for p in places[:4])
    text = (
        f"{count} rows are left out in which nothing moves and all torques are exactly zero, as "
        f"with brakes on and motors off: {parts}"
    )
    return out, [Note(text, "unpowered", rows=count)] * bool(count)


def _find_stretches(
    df: pd.DataFrame, raw: Signals, usable: Mask, sort: bool, notes: list[Note], bridge: float
) -> tuple[list[Stretch], list[ExcludedRows]]:
    """Rows without gaps, and rows that only repeat the one before."""
    stretches: list[Stretch] = []
    excluded: list[ExcludedRows] = []
    for label, in_time in rows_in_time(df, raw.layout.run, raw.t):
        rows = np.sort(in_time)
        if sort:
            if moved := int((in_time != rows).sum()):
                notes.append(Note(f"{moved} rows were put in order of time", "sorted", rows=moved))
            rows = in_time
        repeats = np.zeros(len(rows), dtype=bool)
        for k in np.flatnonzero(np.diff(raw.t[rows]) == 0) + 1:
            pairs = (x[rows[[k - 1, k]]] for x in raw.values.values())
            repeats[k] = all(np.array_equal(before, now, equal_nan=True) for before, now in pairs)
        excluded += excluded_blocks(rows[repeats], "repeats the row before")
        rows = rows[~repeats]
        check_order(raw.t[rows], rows, label)
        rows = rows[usable[rows]]
        if rows.size:
            parts, notes_of_run = split_at_gaps(raw.t[rows], rows, label, bridge)
            stretches += parts
            notes += notes_of_run
    return stretches, excluded


def _shortage(lengths: Sequence[int], how: SignalProcessing, mask: Mask) -> NotEnoughDataError:
    """The error where no segment of these lengths is left, with all that cut them."""
    longest = max(lengths, default=0)
    at = f" at a cut-off of {how.cutoff or 0:g} Hz (one period is cut from each end)"
    cuts = ["trimming" + at * bool(how.cutoff), *[f"delay={how.delay:g} s"] * bool(how.delay)]
    cuts += [f"exclude= of {mask.sum()} of {len(mask)} rows"] * bool(mask.any())
    return NotEnoughDataError(
        f"too few samples: of {len(lengths)} segment(s) without a gap the longest has "
        f"{longest}, at least {MIN_SAMPLES} must remain after {' and '.join(cuts)}; record longer, "
        "leave less out, or set trim=0 or cutoff=False",
        rows=longest,
    )


def _exclusion_mask(df: pd.DataFrame, t: Array, exclude: Any) -> Mask:
    """True where the caller wants rows left out."""
    if isinstance(exclude, str):
        if exclude not in df.columns:
            raise LogError(f"exclude names the column {exclude!r}, which the log does not have")
        return np.asarray(df[exclude].fillna(False), dtype=bool)
    mask, flags = np.zeros(len(t), dtype=bool), np.asarray(exclude)
    if flags.dtype == bool and flags.shape == mask.shape:
        return flags
    if flags.dtype == bool and flags.size:
        raise LogError(
            f"exclude must be a column, a mask of {len(t)} rows or intervals (start, end), "
            f"not {next(iter(exclude))!r}"
        )
    for start, end in flags.reshape(-1, 2):
        if start > end:
            raise LogError(f"exclude has ({start:g}, {end:g}), which ends before it starts")
        mask |= (t >= start) & (t <= end)
    return mask


# -- reporting ------------------------------------------------------------------------------------


def _derivation_notes(raw: Signals, how: SignalProcessing, runs: Sequence[Run]) -> list[Note]:
    notes = []
    derived = how.cutoff is not None or not how.complete
    biased = {"biased": True} if how.filtering == "signals" and derived else {}
    if how.filtering == "equations":
        text = f"both sides of the equations through one Gaussian low-pass at {how.cutoff:g} Hz" + (
            "" if how.complete else f"; {FILTER} before derivatives only"
        )
        notes.append(Note(text, "filter", cutoff=how.cutoff))
    elif how.cutoff is None:
        notes.append(Note("nothing was filtered", "filter", **biased))
    else:
        side = "all signals" if how.filter_torque else "all signals but the torques"
        text = f"{FILTER} at {how.cutoff:g} Hz on {side}"
        notes.append(Note(text, "filter", cutoff=how.cutoff, **biased))
    if how.delay:
        notes.append(Note(f"torques are delayed by {how.delay:g} s", "delay", delay=how.delay))
    measured = "measured" if "dq" in raw.values else "central differences of the positions"
    notes.append(Note(f"velocities: {measured}", "velocities", measured="dq" in raw.values))
    if "ddq" in raw.values:
        notes.append(Note("accelerations: from the log", "accelerations"))
    else:
        origin = "measured velocities" if "dq" in raw.values else "positions"
        notes.append(Note(f"accelerations: central differences of the {origin}", "accelerations"))
    still = np.mean(np.concatenate([run.dq == 0 for run in runs]), axis=0)
    moved = (column is not UNMEASURED for column in raw.layout.columns["q"])
    shares = zip(raw.layout.coordinates, still, moved, strict=True)
    resting = [f"{joint} ({share:.0%})" for joint, share, told in shares if told and share >= 0.01]
    if resting and how.cutoff is not None:
        text = f"at rest, velocity set to zero: {', '.join(resting)}"
        notes.append(Note(text, "rest", joints=resting))
    return notes
