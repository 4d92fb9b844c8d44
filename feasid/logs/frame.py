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

from feasid.arrays import Array, Mask
from feasid.errors import LogError, NotEnoughDataError, did_you_mean
from feasid.logs.clock import Stretch, check_order, run_labels, split_at_gaps
from feasid.logs.motion import Excluded, Motion, Rows, Run, blocks, reasons
from feasid.logs.raw import Raw, holes, read_raw, refuse_holes, unwrap
from feasid.logs.signals.derive import (
    BRIDGED,
    EQUATIONS,
    FEWEST,
    Process,
    equation_cutoff,
    find_cutoff,
    process,
)
from feasid.logs.signals.smoothers import check_method
from feasid.robot.description import Robot

if TYPE_CHECKING:
    import pandas as pd

FILTERS = {
    "butterworth": "zero-phase third-order Butterworth low-pass",
    "savitzky-golay": "Savitzky-Golay filter of degree three",
    "spline": "cubic smoothing spline",
}


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
    delay: float = 0.0,
    rest: float | None = None,
    smoothing: str = "butterworth",
    filtering: str = "signals",
    derivative_cutoff: float | None = None,
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
        of single columns: ``{"q_elbow": "deg"}``; a number is the factor to SI:
        ``{"tau_elbow": -1}``.
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
    delay : float
        The log's torques are ahead of its motion by this time [s] and are delayed by as much.
    rest : float
        Speed [rad/s or m/s] below which a joint rests when it stays there for 0.05 s: its velocity
        is set to zero, so that Coulomb friction does not take the sign of noise. Only where
        signals are filtered; 0 leaves all velocities as they are. Default 1e-3 with
        ``filtering="signals"``, else 0.
    smoothing : {"butterworth", "savitzky-golay", "spline"}
        How signals are smoothed and differentiated; all have gain 1/2 at the cut-off.
    filtering : {"equations", "signals"}
        "signals": positions and torques go through the low-pass at `cutoff`, and the regressor is
        formed of what comes out, section 5.2.2 of Sousa and Cortesao (2014); gaps and uneven
        stamps are not mended. "equations": samples are put on an even grid at their own time
        stamps, short gaps bridged; a wide low-pass is for the derivatives only, torques stay as
        they are; regressor and torques go through one low-pass at `cutoff` when the equations are
        formed (`feasid.reduction.window`), default 8 Hz.
    derivative_cutoff : float, optional
        Of the low-pass before signals are differentiated [Hz] with ``filtering="equations"``;
        default 40, at most .4 of the sampling rate.

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
    if nan not in ("error", "drop-segments"):
        raise LogError(f"nan must be 'error' or 'drop-segments', not {nan!r}")
    raw = read_raw(
        df,
        robot,
        columns=columns,
        units=units,
        rate=rate,
        torque=torque,
        transmission=transmission,
        offsets=offsets,
    )
    t, values, notes = raw.t, raw.values, list(raw.notes)
    bad = holes(raw)
    if nan == "error" and bad.any():
        refuse_holes(df, raw)
    excluded = blocks(np.flatnonzero(bad), "cell missing or not finite")
    _check_filtering(filtering, filter_torque, decimate, derivative_cutoff)
    whole = filtering == "equations"
    bridge = BRIDGED / (cutoff or EQUATIONS) if whole else 0.0
    stretches, repeated = _stretches(df, raw, ~bad, sort, notes, bridge)
    excluded += repeated
    notes += unwrap(values["q"], robot, (s.rows for s in stretches))
    frequency: float | None
    said: list[str] = []
    if whole:
        frequency = equation_cutoff(stretches, cutoff)
    else:
        frequency, said = find_cutoff(values, stretches, cutoff)
    check_method(smoothing)
    still = (0.0 if whole else 1e-3) if rest is None else rest
    how = Process(
        frequency, filter_torque, trim, decimate or 1, delay, still, smoothing, filtering,
        derivative_cutoff,
    )  # fmt: skip
    mask = _exclusion_mask(df, t, exclude)
    runs: list[Run] = []
    for stretch in stretches:
        run, left_out = process(t, values, stretch, how, mask)
        runs += run
        excluded += left_out
    notes += said + _derivation_notes(raw, how)
    _check_enough(runs, stretches, frequency)
    if frequency is not None:
        notes += _rest_notes(runs, raw.layout.coordinates)
    if excluded:
        lost = sum(e.count for e in excluded)
        notes.append(f"{lost} of {len(df)} rows are not used: {reasons(excluded)}")
    head = raw.layout.coordinates, tuple(runs), frequency, tuple(notes), tuple(excluded)
    return Motion(*head, filtering)


def _check_filtering(
    filtering: str, filter_torque: bool, decimate: int | None, derivative_cutoff: float | None
) -> None:
    """Refuse options that the chosen filtering would not heed."""
    if filtering not in ("equations", "signals"):
        hint = did_you_mean(str(filtering), ("equations", "signals"))
        raise LogError(f"filtering must be 'equations' or 'signals', not {filtering!r}{hint}")
    if filtering == "signals" and derivative_cutoff is not None:
        raise LogError("derivative_cutoff is for filtering='equations'")
    if filtering == "equations" and (decimate is not None or not filter_torque):
        name = "decimate" if decimate is not None else "filter_torque"
        raise LogError(
            f"{name} is for filtering='signals': where the equations are filtered, torques are not "
            "and the rows to keep follow from the cut-off"
        )


def _stretches(
    df: pd.DataFrame, raw: Raw, usable: Mask, sort: bool, notes: list[str], bridge: float
) -> tuple[list[Stretch], list[Excluded]]:
    """Rows without gaps, and rows that only repeat the one before."""
    codes, labels = run_labels(df, raw.layout.run)
    stretches: list[Stretch] = []
    excluded: list[Excluded] = []
    for code, label in enumerate(labels):
        rows = np.flatnonzero(codes == code)
        if sort:
            order = np.argsort(raw.t[rows], kind="stable")
            moved = int((order != np.arange(len(rows))).sum())
            if moved:
                notes.append(f"{moved} rows were put in order of time")
            rows = rows[order]
        repeats = _repeats(raw, rows)
        excluded += blocks(rows[repeats], "repeats the row before")
        rows = rows[~repeats]
        check_order(raw.t[rows], rows, label)
        rows = rows[usable[rows]]
        if rows.size:
            parts, said = split_at_gaps(raw.t[rows], rows, label, bridge)
            stretches += parts
            notes += said
    return stretches, excluded


def _repeats(raw: Raw, rows: Rows) -> Mask:
    """Rows with the time and all the values of the row before."""
    out = np.zeros(len(rows), dtype=bool)
    same = np.flatnonzero(np.diff(raw.t[rows]) == 0) + 1
    for k in same:
        out[k] = all(
            np.array_equal(x[rows[k]], x[rows[k - 1]], equal_nan=True) for x in raw.values.values()
        )
    return out


def _exclusion_mask(df: pd.DataFrame, t: Array, exclude: Any) -> Mask:
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


def _derivation_notes(raw: Raw, how: Process) -> list[str]:
    notes = []
    if how.filtering == "equations":
        notes.append(
            f"both sides of the equations through one Gaussian low-pass at {how.cutoff:g} Hz; "
            f"{FILTERS[how.smoothing]} before derivatives only"
        )
    elif how.cutoff is None:
        notes.append("nothing was filtered")
    else:
        side = "all signals" if how.filter_torque else "all signals but the torques"
        notes.append(f"{FILTERS[how.smoothing]} at {how.cutoff:g} Hz on {side}")
    if how.delay:
        notes.append(f"torques are delayed by {how.delay:g} s")
    slope = "central differences" if how.smoothing == "butterworth" else "derivatives"
    measured = "measured" if "dq" in raw.values else f"{slope} of the positions"
    notes.append(f"velocities: {measured}")
    if "ddq" in raw.values:
        notes.append("accelerations: from the log")
    else:
        origin = "measured velocities" if "dq" in raw.values else "positions"
        notes.append(f"accelerations: {slope} of the {origin}")
    return notes


def _rest_notes(runs: Sequence[Run], names: Sequence[str]) -> list[str]:
    samples = sum(len(run) for run in runs)
    still = sum((run.dq == 0).sum(axis=0) for run in runs) / max(samples, 1)
    resting = [f"{n} ({s:.0%})" for n, s in zip(names, still, strict=True) if s >= 0.01]
    return [f"at rest, velocity set to zero: {', '.join(resting)}"] if resting else []


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
