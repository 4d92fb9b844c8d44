"""The log contract: from a DataFrame and a robot to runs of signals for the regressor.

Columns are ``q_<joint>`` and ``tau_<joint>``, optionally ``dq_<joint>`` and ``ddq_<joint>``, by
joint name or by number from 1; time is a column ``t`` in seconds or the index; a column ``run``
separates runs. SI units and radians unless `units` says otherwise. What is missing is derived as
in section 5.2.2 of Sousa and Cortesao (2014); what is wrong is an error; what was done is said
in `Motion.notes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from feasid.errors import LogError, NotEnoughDataError
from feasid.logs.clock import Stretch, check_order, read_time, run_labels, split_at_gaps
from feasid.logs.columns import (
    WORDS,
    Layout,
    check_units,
    find_columns,
    numbers,
    rows_listed,
    unit_factor,
)
from feasid.logs.derive import FEWEST, find_cutoff, process
from feasid.logs.motion import Array, Motion, Run, blocks, reasons
from feasid.robot.description import Robot

if TYPE_CHECKING:
    import pandas as pd

TURN = 2 * np.pi
TURN_TOLERANCE = 0.1
"""A jump of q counts as a whole turn when it is within this share of one."""


def prepare(
    df: pd.DataFrame,
    robot: Robot,
    *,
    columns: Mapping[str, Any] | None = None,
    units: Mapping[str, Any] | None = None,
    rate: float | None = None,
    cutoff: float | bool | None = None,
    filter_torque: bool = True,
    trim: float | None = None,
    decimate: int | None = None,
    torque: bool = True,
    nan: str = "error",
    sort: bool = False,
    exclude: Any = (),
    transmission: npt.ArrayLike | None = None,
    offsets: Mapping[str, float] | None = None,
) -> Motion:
    """Turn a log into runs of (q, dq, ddq, tau).

    Velocity that is not in the log is the central difference of the filtered position;
    acceleration that of the filtered measured velocity, or the second central difference of the
    filtered position. Nothing is filtered or differentiated across gaps or runs.

    Parameters
    ----------
    df : DataFrame
        The log; see the module's text for its columns.
    robot : Robot
    columns : dict, optional
        Other names: ``{"t": "stamp"}``, ``{"tau_elbow": "current3"}``, or patterns
        ``{"q": "position_{}"}`` with ``{}`` for the joint's name or number.
    units : dict, optional
        Units of ``t``, ``q``, ``dq``, ``ddq``, ``tau`` where they are not SI: ``{"q": "deg"}``;
        a number is the factor to SI.
    rate : float, optional
        Sampling rate [Hz] of a log without time.
    cutoff : float, False or None
        Cut-off of the zero-phase low-pass [Hz]. None chooses it from the spectrum of the
        positions (`signals.choose_cutoff`), except that a log which has velocities *and*
        accelerations is used as it is. False filters nothing.
    filter_torque : bool
        Apply the same low-pass to the torques, so that both sides of the equation agree.
    trim : float, optional
        Time cut from both ends of every stretch [s]; default one period of the cut-off.
    decimate : int, optional
        Keep every so-manieth sample after filtering.
    torque : bool
        Whether torques are required; without them `Run.tau` is NaN.
    nan : {"error", "drop-segments"}
        What a cell without a finite number gets; dropping splits the run there.
    sort : bool
        Sort rows by time within each run.
    exclude : str, boolean array, or sequence of (start, end)
        Rows to leave out of the runs: a column that is true there (a contact flag), a mask, or
        intervals of time [s] since the log's first row. They are widened by what the filter
        smears.
    transmission : array_like, shape (dof, dof), optional
        The log is on the motors' side: ``q_motor = T q`` and ``tau = T' tau_motor``; gear ratios
        on the diagonal, couplings beside it.
    offsets : dict, optional
        Added to q per joint, on the joints' side, after `transmission`.

    Returns
    -------
    Motion

    Raises
    ------
    LogError
        Names joint, column, row and time: columns missing, doubled or not numeric, cells that
        are NaN or infinite, time stamps that are unsorted or doubled.
    NotEnoughDataError
        When no stretch is long enough for the filter and the trimmed ends.
    """
    check_units(units)
    if nan not in ("error", "drop-segments"):
        raise LogError(f"nan must be 'error' or 'drop-segments', not {nan!r}")
    if not len(df):
        raise NotEnoughDataError("the log has no rows")
    layout = find_columns(df, robot, columns, torque)
    _check_velocities(robot, layout)
    t, notes = read_time(df, layout.time, rate, units)
    values = {
        kind: _read_kind(df, layout, kind, unit_factor(units, kind))
        for kind in WORDS
        if layout.columns[kind] is not None
    }
    values = _joint_side(values, transmission, offsets, layout, notes)
    if layout.numbered:
        order = ", ".join(f"{k + 1} = {n}" for k, n in enumerate(layout.coordinates))
        notes.append(f"columns are matched by number: {order}")
    bad = _bad_cells(df, layout, values, nan)
    excluded = blocks(np.flatnonzero(bad), "cell missing or not finite")
    stretches = _stretches(df, layout, t, ~bad, sort, notes)
    notes += _unwrap(values["q"], robot, stretches)
    frequency, said = find_cutoff(values, stretches, cutoff)
    mask = _exclusion_mask(df, t, exclude)
    runs: list[Run] = []
    for stretch in stretches:
        run, left_out = process(t, values, stretch, frequency, filter_torque, trim, decimate, mask)
        runs += run
        excluded += left_out
    notes += said + _derivation_notes(layout, frequency, filter_torque)
    _check_enough(runs, stretches, frequency)
    if excluded:
        lost = sum(e.count for e in excluded)
        notes.append(f"{lost} of {len(df)} rows are not used: {reasons(excluded)}")
    return Motion(layout.coordinates, tuple(runs), frequency, tuple(notes), tuple(excluded))


# -- reading --------------------------------------------------------------------------------------


def _check_velocities(robot: Robot, layout: Layout) -> None:
    several = [b.joint for b in robot.bodies if b.dof > 1]
    if several and layout.columns["dq"] is None:
        raise LogError(
            f"joint {several[0]!r} has several degrees of freedom: its velocity is not the "
            f"derivative of its coordinates, give it as columns dq_{several[0]}_1 and so on",
            joint=several[0],
        )


def _read_kind(df: pd.DataFrame, layout: Layout, kind: str, factor: float) -> Array:
    names = layout.columns[kind] or ()
    out = np.empty((len(df), len(names)))
    for k, (column, joint) in enumerate(zip(names, layout.coordinates, strict=True)):
        out[:, k] = numbers(df, column, joint)
    if factor != 1.0:
        out *= factor
    return out


def _joint_side(
    values: dict[str, Array],
    transmission: npt.ArrayLike | None,
    offsets: Mapping[str, float] | None,
    layout: Layout,
    notes: list[str],
) -> dict[str, Array]:
    """Motor side to joint side: q = T^-1 q_motor + offset, tau = T' tau_motor."""
    if transmission is not None:
        T = np.asarray(transmission, dtype=np.float64)
        n = len(layout.coordinates)
        if T.shape != (n, n) or not np.isfinite(T).all() or np.linalg.matrix_rank(T) < n:
            raise LogError(f"transmission must be an invertible ({n}, {n}) matrix, got {T.shape}")
        inverse = np.linalg.inv(T)
        values = {kind: x @ T if kind == "tau" else x @ inverse.T for kind, x in values.items()}
        notes.append("motor side to joint side by the given transmission matrix")
    for joint, offset in (offsets or {}).items():
        if joint not in layout.coordinates:
            raise LogError(f"offsets names {joint!r}, which is no joint of the robot", joint=joint)
        values["q"][:, layout.coordinates.index(joint)] += offset
    return values


def _bad_cells(
    df: pd.DataFrame, layout: Layout, values: Mapping[str, Array], nan: str
) -> npt.NDArray[np.bool_]:
    """Rows with a cell that is not finite; an error naming the column unless they are dropped."""
    bad = np.zeros(len(df), dtype=bool)
    for kind, cells in values.items():
        holes = ~np.isfinite(cells)
        if nan == "error" and holes.any():
            _refuse_holes(df, layout, kind)
        bad |= holes.any(axis=1)
    return bad


def _refuse_holes(df: pd.DataFrame, layout: Layout, kind: str) -> None:
    for column, joint in zip(layout.columns[kind] or (), layout.coordinates, strict=True):
        cells = numbers(df, column, joint)
        rows = np.flatnonzero(~np.isfinite(cells))
        if rows.size:
            what = "infinite" if np.isinf(cells[rows[0]]) else "empty or NaN"
            longest = max(e.count for e in blocks(rows, ""))
            raise LogError(
                f"column {column!r} of joint {joint!r} has {rows.size} cell(s) without a finite "
                f"number ({rows_listed(rows)}: {what}; longest stretch {longest} rows). "
                "nan='drop-segments' leaves these rows out and splits the run there",
                joint=joint,
                column=column,
                row=int(rows[0]),
                count=int(rows.size),
            )


def _stretches(
    df: pd.DataFrame,
    layout: Layout,
    t: Array,
    usable: npt.NDArray[np.bool_],
    sort: bool,
    notes: list[str],
) -> list[Stretch]:
    codes, labels = run_labels(df, layout.run)
    stretches: list[Stretch] = []
    for code, label in enumerate(labels):
        rows = np.flatnonzero(codes == code)
        if sort:
            order = np.argsort(t[rows], kind="stable")
            moved = int((order != np.arange(len(rows))).sum())
            if moved:
                notes.append(f"{moved} rows were put in order of time")
            rows = rows[order]
        check_order(t[rows], rows, label)
        rows = rows[usable[rows]]
        if rows.size:
            parts, said = split_at_gaps(t[rows], rows, label)
            stretches += parts
            notes += said
    return stretches


def _unwrap(q: Array, robot: Robot, stretches: Sequence[Stretch]) -> list[str]:
    """Undo jumps by whole turns in the angles of revolute joints."""
    notes = []
    for body, rows in zip(robot.bodies, robot.rows, strict=True):
        if body.dof != 1 or not body.motion[:3].any():
            continue
        k, count = rows.start, 0
        for stretch in stretches:
            jumps = np.abs(np.diff(q[stretch.rows, k]))
            turns = jumps > (1 - TURN_TOLERANCE) * TURN
            if turns.any() and (jumps[turns] < (1 + TURN_TOLERANCE) * TURN).all():
                q[stretch.rows, k] = np.unwrap(q[stretch.rows, k])
                count += int(turns.sum())
        if count:
            notes.append(f"joint {body.joint!r}: {count} jump(s) of q by a whole turn unwrapped")
    return notes


def _exclusion_mask(df: pd.DataFrame, t: Array, exclude: Any) -> npt.NDArray[np.bool_]:
    """True where the caller wants rows left out."""
    mask = np.zeros(len(t), dtype=bool)
    if isinstance(exclude, str):
        if exclude not in df.columns:
            raise LogError(f"exclude names the column {exclude!r}, which the log does not have")
        return np.asarray(df[exclude].fillna(False), dtype=bool)
    flags = np.asarray(exclude)
    if flags.dtype == bool and flags.shape == mask.shape:
        return flags
    for interval in exclude:
        try:
            start, end = (float(x) for x in interval)
        except (TypeError, ValueError):
            raise LogError(
                f"exclude must be a column, a mask of {len(t)} rows or intervals (start, end), "
                f"not {interval!r}"
            ) from None
        mask |= (t >= start) & (t <= end)
    return mask


# -- reporting ------------------------------------------------------------------------------------


def _derivation_notes(layout: Layout, cutoff: float | None, filter_torque: bool) -> list[str]:
    notes = []
    if cutoff is None:
        notes.append("nothing was filtered")
    else:
        side = "all signals" if filter_torque else "all signals but the torques"
        notes.append(f"zero-phase third-order Butterworth low-pass at {cutoff:g} Hz on {side}")
    measured = "measured" if layout.columns["dq"] else "central differences of the positions"
    notes.append(f"velocities: {measured}")
    if layout.columns["ddq"]:
        notes.append("accelerations: from the log")
    else:
        origin = "measured velocities" if layout.columns["dq"] else "positions"
        notes.append(f"accelerations: central differences of the {origin}")
    return notes


def _check_enough(runs: Sequence[Run], stretches: Sequence[Stretch], cutoff: float | None) -> None:
    if runs:
        return
    longest = max(len(s.rows) for s in stretches) if stretches else 0
    why = (
        ""
        if cutoff is None
        else f" at a cut-off of {cutoff:g} Hz (one period is cut from each end)"
    )
    raise NotEnoughDataError(
        f"too few samples: of {len(stretches)} stretch(es) without a gap the longest has "
        f"{longest}, at least {FEWEST} must remain after trimming{why}; record longer, or set "
        "trim=0 or cutoff=False",
        rows=longest,
    )
