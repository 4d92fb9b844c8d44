"""The log's numbers in SI on the joints' side, before anything is filtered."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.interpolate import CubicSpline

from feasid.core.arrays import Array, Mask
from feasid.core.errors import LogError, NotEnoughDataError, did_you_mean
from feasid.core.notes import Note, as_notes
from feasid.core.text import quote
from feasid.logs import columns as naming
from feasid.logs import units as si
from feasid.logs.clock import read_time, rows_in_time
from feasid.logs.lerobot import add_zeros, scales_of
from feasid.logs.motion import Rows, excluded_blocks
from feasid.logs.servo import Servo, joint_ends, rows_at_stops
from feasid.logs.table import UNKNOWN_UNITS, standard_table
from feasid.robot.description import Robot
from feasid.robot.formats.mjcf.compiled import actuator_names, actuator_torques, model_for_controls

if TYPE_CHECKING:
    import pandas as pd

DISAGREE = (0.02, 0.05)
"""Root-mean-square difference from the coupling that is refused: above so many rad or m and
above this share of the joint's range. Backlash and noise stay below."""

CHECKED = 500  #: Rows that are checked, evenly spread: closing loops takes time.
IDLE = 1e-6  #: Torque of a joint that has no motor, as a share of the largest in the log.


def check_followers(
    df: pd.DataFrame,
    robot: Robot,
    values: dict[str, Array],
    layout: naming.ColumnLayout,
    mapping: Mapping[str, Any],
    units: Mapping[str, Any],
) -> list[Note]:
    """Compare the log's other joints with what they follow; adds their torques in place.

    `values`: signals of the independent coordinates, (N, dof); `mapping`: the caller's names of
    columns.
    """

    def column(kind: str, joint: str) -> Array | None:
        """Numbers of a joint in SI; None when the log does not have them."""
        name = mapping.get(f"{kind}_{joint}", f"{kind}_{joint}")
        if name not in df.columns:
            return None
        factor = si.unit_factor(units, kind, joint, layout.units.get(name, ""))
        return naming.read_numbers(df, name, joint) * factor

    free = set(robot.independent.tolist())
    others = {
        body.joint: row.start
        for body, row in zip(robot.bodies, robot.rows, strict=True)
        if body.dof == 1 and row.start not in free
    }
    columns = {j: x for j in others if (x := column("q", j)) is not None}
    notes = []
    if columns:
        q = values["q"]
        finite = np.flatnonzero(np.isfinite(q).all(axis=1))
        rows = finite[:: max(1, len(finite) // CHECKED)]
        if robot.closure is None:
            expected = robot.coupling_map.positions(q[rows].T)
        else:
            solutions, closed = robot.closure.solve_by_continuation(q[rows].T)
            expected = np.where(closed, solutions, np.nan)
        offs = {
            j: _follower_deviation(robot, j, x[rows], expected[others[j]], rows)
            for j, x in columns.items()
        }
        deviations = ", ".join(f"{j} ({off:.2g})" for j, off in offs.items())
        notes.append(
            Note(f"joints that follow others agree with the log to (rms): {deviations}", "follows")
        )
    for joint, row in others.items():
        tau = column("tau", joint) if "tau" in values else None
        largest = float(np.nanmax(np.abs(values["tau"]), initial=0.0)) if tau is not None else 0.0
        if tau is not None and np.nanmax(np.abs(tau), initial=0.0) > IDLE * largest:
            factors = robot.coupling_map.A[row]
            if robot.closure is not None:
                if row in robot.closure.conditions.affected_coordinates:
                    raise LogError(
                        f"joint {joint!r} is passive in a closed loop, but the log gives it a "
                        "torque: joints with motors are independent with active=",
                        joint=joint,
                    )
                factors = factors[robot.closure.active]
            values["tau"] = values["tau"] + np.outer(np.nan_to_num(tau), factors)
            notes.append(
                Note(f"the torque of joint {joint!r} acts on the joints that it follows", "follows")
            )
    return notes


def _follower_deviation(robot: Robot, joint: str, q: Array, expected: Array, rows: Rows) -> float:
    """Root-mean-square difference; raises LogError if it is more than noise."""
    off = q - expected
    if robot.bodies[robot.joint_index(joint)].motion[:3].any():
        off = off - 2 * np.pi * np.round(np.nanmedian(off) / (2 * np.pi))
    rms = float(np.sqrt(np.nanmean(off**2))) if np.isfinite(off).any() else 0.0
    reach = float(np.nanmax(q) - np.nanmin(q))
    if rms > max(DISAGREE[0], DISAGREE[1] * reach):
        worst = int(np.nanargmax(np.abs(off)))
        raise LogError(
            f"joint {joint!r} is not where the joints that it follows put it: at {q[worst]:.4g} "
            f"instead of {expected[worst]:.4g} in row {int(rows[worst])}, {rms:.2g} off on "
            "average; check the coupling's factor, sign and offset",
            joint=joint,
            row=int(rows[worst]),
        )
    return rms


GAP = 3.0  #: Periods between rows across which no velocity of a controlled joint is taken.
LARGEST = 1e50  #: No position, velocity, torque or current of a log is beyond this, in any unit.

TURN = 2 * np.pi
TURN_TOLERANCE = 0.1  #: A jump of q counts as a whole turn when it is within this share of one.


@dataclass(frozen=True, eq=False)
class Signals:
    """A log as arrays."""

    layout: naming.ColumnLayout  #: The columns that were found.
    t: Array  #: Shape (N,): seconds since the first row.
    #: Shape (N, dof): ``q`` and whichever of ``dq``, ``ddq``, ``tau`` the log has; NaN where cells
    #: are missing.
    values: dict[str, Array]
    notes: tuple[Note, ...]
    #: Tuple of (str, ndarray of bool, shape (N,)): rows that are left out, by what is wrong with
    #: them.
    corrupt: tuple[tuple[str, Mask], ...] = ()
    temperature: Array | None = None  #: Shape (N, dof): degrees C, NaN where there is none.

    @property
    def corrupt_rows(self) -> Mask:
        """All of these rows."""
        none = np.zeros(len(self.t), dtype=bool)
        return np.asarray(np.any([none, *(rows for _, rows in self.corrupt)], axis=0))


def read_raw(
    df: pd.DataFrame,
    robot: Robot,
    *,
    columns: Mapping[str, Any] | None = None,
    units: Mapping[str, Any] | None = None,
    rate: float | None = None,
    torque: bool | Collection[str] = True,
    transmission: npt.ArrayLike | None = None,
    offsets: Mapping[str, float] | None = None,
    corrupt: str = "error",
    topic: str | None = None,
    servo: Any = None,
) -> Signals:
    """Columns in SI on the joints' side; parameters are those of `feasid.logs.frame.prepare`."""
    columns, units = columns or {}, units or {}
    law = _resolve_servo(servo, robot, torque, transmission)
    as_logged = law is None and torque is True and transmission is None
    df = standard_table(df, robot.coordinates)
    model = model_for_controls([*df.columns, *columns], robot) if as_logged else None
    torque, effort = torque if model is None else False, "tau" if law is None else si.COMMAND
    if not len(df):
        raise NotEnoughDataError("the log has no rows")
    notes_of_file = [*df.attrs.get("notes", ())]
    if topic is not None and "topic" not in df.attrs:
        text = f"topic {topic!r} has no effect: this log is no bag"
        notes_of_file.append(Note(text, "topic", topic=topic))
    layout = naming.find_columns(df, robot, columns, torque, effort)
    _check_units(layout, robot, as_notes(notes_of_file), units, effort)
    df = df.copy(deep=False)
    df.attrs = {}  # pandas copies them, robot and all, with every column that is read
    t, notes = read_time(df, layout.time, rate, units, layout.units.get(layout.time, ""))
    notes = [*notes_of_file, *notes]
    kinds = [kind for kind in naming.WORDS if layout.columns[kind]]
    values = {kind: _read_kind(df, layout, kind, units, effort) for kind in kinds}
    positions = ("q", "tau") if law is not None and law.law == "position" else ("q",)
    if "tau" in positions and all(body.dof <= 1 for body in robot.bodies):
        # The noise of logged speeds would bias ratios of servo gains.
        logged = [kind for kind in ("dq", "ddq") if values.pop(kind, None) is not None]
        text = f"columns {' and '.join(logged)} are not used: speeds follow from the positions"
        text += ", whose noise and lag carry over to the gains of servos"
        notes += [Note(text, "speeds-derived")] if logged else []
    _refuse_passive_torques(df, robot)
    wrong = _corrupt_rows(values, t, layout, drop=corrupt == "drop")
    if not robot.is_tree:
        notes += check_followers(df, robot, values, layout, columns, units)
    if transmission is not None:
        values = _motor_to_joint_side(values, transmission, layout)
        notes.append(Note("motor side to joint side by the transmission matrix", "transmission"))
    ends, names = joint_ends(robot), [str(c).removeprefix("q_") for c in layout.columns["q"]]
    notes += add_zeros(values, scales_of(notes_of_file), names, ends, positions)
    for joint, offset in (offsets or {}).items():
        if joint not in layout.coordinates:
            raise LogError(f"offsets names {joint!r}, which is no joint of the robot", joint=joint)
        for kind in positions:
            values[kind][:, layout.coordinates.index(joint)] += offset
    if model is not None:
        runs = [rows for _, rows in rows_in_time(df, layout.run, t)]
        values["tau"], controls = _torques_from_controls(df, model, robot, t, values, columns, runs)
        df = df.drop(columns=controls)
        notes.append(Note("torques are those of MuJoCo's actuators, by their controls", "controls"))
    if law is not None:
        stops = np.zeros(len(t), dtype=bool)
        for _, rows in rows_in_time(df, layout.run, t):
            motion = t[rows], values["q"][rows]
            stops[rows] = "tau" in positions and rows_at_stops(*motion, ends)
            values["tau"][rows] = law.torques(robot, *motion, values["tau"][rows])
        wrong += (("a joint rests at its mechanical stop", stops),) if stops.any() else ()
    warmth = _read_temperatures(df, layout, units, drop=corrupt == "drop")
    notes += _notes_on_columns(df, layout, units, effort)
    return Signals(layout, t, values, as_notes(notes), wrong, warmth)


def _refuse_passive_torques(df: pd.DataFrame, robot: Robot) -> None:
    """Raise where the log has torques of a joint that is said to have no motor."""
    for joint in (j for j in robot.passive if j not in robot.elastic and f"tau_{j}" in df):
        torque = np.abs(np.nan_to_num(naming.read_numbers(df, f"tau_{joint}", joint)))
        if torque.any():
            raise LogError(
                f"joint {joint!r} is said to be passive, and the log has torques of it, up to "
                f"{torque.max():.3g}: leave it out of passive, or drop the column tau_{joint}",
                joint=joint,
                column=f"tau_{joint}",
            )


def _notes_on_columns(
    df: pd.DataFrame, layout: naming.ColumnLayout, units: Mapping[str, Any], effort: str
) -> list[Note]:
    """Columns that hold currents, that are not used, and that were found by number."""
    notes = []
    currents = layout.currents(units) if effort == "tau" else []
    if currents:
        constants = ", ".join(f"'tau_{joint}': ..." for joint in currents)
        text = (
            f"currents of {', '.join(currents)} are read in A in place of torques: so all masses "
            f"are divided by a torque constant; units={{{constants}}} says the constants [N m/A], "
            "and feasid.torque_constants finds them with a known load"
        )
        notes.append(Note(text, "currents", joints=currents, level="warning", confirmed=True))
    positions = {*layout.columns["q"]}
    springs = [j for j in layout.coordinates if f"theta_{j}" in df and f"q_{j}" in positions]
    if springs and f"theta_{springs[0]}" not in positions:
        text = (
            f"theta_{springs[0]} and q_{springs[0]} look like positions of a motor and of its "
            f"link: with elastic={springs} a fit finds the springs between them"
        )
        notes.append(Note(text, "two-encoders", joints=springs))
    used = {c for columns in layout.columns.values() for c in columns} | {layout.time, layout.run}
    if unused := [c for c in df.columns if c not in used]:
        notes.append(Note(f"columns not used: {naming.join_columns(unused)}", "extra"))
    if layout.numbered:
        order = ", ".join(f"{k + 1} = {n}" for k, n in enumerate(layout.coordinates))
        notes.append(Note(f"columns are matched by number: {order}", "numbered"))
    return notes


def _resolve_servo(
    servo: Any, robot: Robot, torque: bool | Collection[str], transmission: npt.ArrayLike | None
) -> Servo | None:
    """The servo that makes torques of commands; None where torques are read or not needed."""
    if servo is None or not torque:
        return None
    if not isinstance(torque, bool):
        raise LogError("torques of a servo are those of all joints: leave measured out")
    if transmission is not None or not robot.is_tree:
        raise LogError(
            "commands of servos are those of joints that move by themselves: transmission, coupled "
            "joints and loops need torques"
        )
    return Servo.from_option(servo, robot)


def _torques_from_controls(
    df: pd.DataFrame,
    model: Any,
    robot: Robot,
    t: Array,
    values: Mapping[str, Array],
    columns: Mapping[str, Any],
    runs: Iterable[Rows],
) -> tuple[Array, list[Any]]:
    """Torques of actuators from their controls, and the columns of these; `runs` in time.

    A control's column has the actuator's name or number, or is that of `columns`; velocities that
    the log lacks are a spline's.
    """
    if not robot.is_plain:
        raise LogError("controls need joints that move by themselves; log torques instead")
    names = actuator_names(model)
    pattern = str(columns.get(naming.CONTROL, f"{naming.CONTROL}_{{}}"))
    used: dict[str, Any] = {}
    for k, name in enumerate(names):
        asked = columns.get(f"{naming.CONTROL}_{name}")
        by_pattern = naming.match_pattern(df.columns, pattern, names, k)
        used[name] = asked if asked in df.columns else by_pattern
    missing = [name for name, column in used.items() if column is None]
    if missing:
        unused = {str(c).lower(): str(c) for c in df.columns if c not in used.values()}
        close = {
            n: get_close_matches(f"{naming.CONTROL}_{n}".lower(), unused, n=1) for n in missing
        }
        suggestion = ", ".join(
            f"'{naming.CONTROL}_{n}': {repr(unused[c[0]]) if c else '...'}"
            for n, c in close.items()
        )
        raise LogError(
            f"actuator {missing[0]!r} has no column '{naming.CONTROL}_{missing[0]}'; unused "
            f"columns: {', '.join(unused.values())}. Map other names with columns={{{suggestion}}}",
            column=f"{naming.CONTROL}_{missing[0]}",
        )
    controls = {}
    for name, column in used.items():
        controls[name] = naming.read_numbers(df, column)
        bad = np.flatnonzero(~np.isfinite(controls[name]))
        if bad.size:
            raise LogError(
                f"column {column!r} has no finite number in {naming.list_rows(bad)}",
                column=column,
                row=int(bad[0]),
            )
    q, dq = values["q"], values.get("dq")
    if dq is None:
        dq = np.zeros_like(q)
        for run in runs:
            steps = np.diff(t[run])
            usual = GAP * float(np.median(steps)) if len(steps) else 0.0
            for rows in np.split(run, np.flatnonzero((steps <= 0) | (steps > usual)) + 1):
                if len(rows) > 3 and np.isfinite(q[rows]).all():
                    dq[rows] = CubicSpline(t[rows], q[rows])(t[rows], 1)
    return actuator_torques(model, robot, q, dq, controls), [*used.values()]


def _read_kind(
    df: pd.DataFrame, layout: naming.ColumnLayout, kind: str, units: Mapping[str, Any], effort: str
) -> Array:
    names = layout.columns[kind]
    out = np.empty((len(df), len(names)))
    for k, (column, joint) in enumerate(zip(names, layout.coordinates, strict=True)):
        if column is naming.UNMEASURED:
            out[:, k] = 0.0
            continue
        out[:, k] = naming.read_numbers(df, column, joint)
        unit = layout.header_unit(kind, k)
        out[:, k] *= si.unit_factor(units, effort if kind == "tau" else kind, joint, unit)
    return out


POSSIBLE = (-60.0, 200.0)
"""Temperatures of motors and gears [degrees C]: windings end at 180, and kelvins are beyond."""


def _read_temperatures(
    df: pd.DataFrame, layout: naming.ColumnLayout, units: Mapping[str, Any], *, drop: bool
) -> Array | None:
    """Temperatures in degrees C, (N, dof), NaN where there are none; None without a column.

    `drop`: impossible ones are missing cells, and not an error.
    """
    kind, columns = si.TEMPERATURE, layout.columns[si.TEMPERATURE]
    if not columns:
        return None
    cells = _read_kind(df, layout, kind, units, "")
    for k, (column, joint) in enumerate(zip(columns, layout.coordinates, strict=True)):
        unit = layout.header_unit(kind, k) or units.get(f"{kind}_{joint}", units.get(kind))
        cells[:, k] -= si.ZEROS.get(si.standard_unit_spelling(str(unit)), 0.0)
        far = np.flatnonzero((cells[:, k] < POSSIBLE[0]) | (cells[:, k] > POSSIBLE[1]))
        if far.size and not drop:
            text = (
                f"column {column!r} has {cells[far[0], k]:.4g} degrees C in row {far[0]}, beyond "
                f"{POSSIBLE[0]:g} .. {POSSIBLE[1]:g} of motors: state its unit, units={{{kind!r}: "
                "'K'}, or 'F'; corrupt='drop' leaves such cells out"
            )
            raise LogError(text, joint=joint, column=column, row=int(far[0]))
        cells[slice(None) if column is naming.UNMEASURED else far, k] = np.nan
    return cells


def absurdly_large(values: Array) -> Mask:
    """Cells with a number that no physical quantity has."""
    return np.asarray(np.isfinite(values) & (np.abs(values) > LARGEST))


QUANTITIES = {**naming.WORDS, si.COMMAND: "command", si.TEMPERATURE: "temperature", "t": "time"}

TICKS = ("tick", "ticks", "count", "counts", "cnt", "inc", "increments", "pulses", "lsb")
"""Units of encoders; the factor is one turn over the number of counts per turn."""


def _check_units(
    layout: naming.ColumnLayout,
    robot: Robot,
    said: Iterable[Note],
    units: Mapping[str, Any],
    effort: str,
) -> None:
    """A unit that the log states must be known, fit the quantity, and not be passed over."""
    kinds = (*si.KINDS, si.COMMAND, si.TEMPERATURE)
    known = [*si.UNITS, *(f"{kind}_{name}" for kind in kinds for name in layout.coordinates)]
    ends = (*robot.elastic.values(), *robot.sensors.values())
    of_springs = {naming.usual_name(robot, k, n): f"{k}_{n}" for k in si.KINDS for n in ends}
    for key, unit in units.items():
        if key in of_springs:
            raise LogError(
                f"units has the key {key!r}, a column of the motor or the torque sensor of an "
                f"elastic joint: say units={{{of_springs[key]!r}: {unit!r}}}"
            )
        if key not in known:
            raise LogError(
                f"units has the key {key!r}{did_you_mean(key, known)}: one of {[*si.UNITS]}, or "
                "one of them followed by _<joint>"
            )
    unknown = {c: u for n in said if n.code == UNKNOWN_UNITS for c, u in n.values["units"].items()}
    wrong: dict[str, tuple[Any, str]] = {}
    used = [("t", "t", layout.time)]  # kind, key in options, and column of all that is read
    for place, columns in layout.columns.items():
        kind = effort if place == "tau" else place
        named = zip(layout.coordinates, columns, strict=False)  # all of them or none
        used += [(kind, f"{kind}_{joint}", column) for joint, column in named]
    for kind, key, column in used:
        if kind in units or key in units:
            continue
        header = layout.units.get(column, "")
        if header and si.standard_unit_spelling(header) not in si.UNITS[kind]:
            wrong[key] = column, header
        elif not header and (unit := si.unit_in_name(column, kind, layout.coordinates)):
            wrong[key] = column, unit
        elif column in unknown:
            wrong[key] = column, unknown[column]
    if not wrong:
        return
    # The option that says all of these units.
    options: dict[str, str] = {}
    for key, (_, unit) in wrong.items():
        kind = key.partition("_")[0]
        alike = {u for k, (_, u) in wrong.items() if k.partition("_")[0] == kind}
        is_common = len(alike) == 1 and all(f"{kind}_{j}" in wrong for j in layout.coordinates)
        if unit.lower() in TICKS and kind in ("q", "dq", si.COMMAND):
            spelt = "2 * numpy.pi / 4096"
        else:
            spelt = repr(unit) if si.standard_unit_spelling(unit) in si.UNITS[kind] else "..."
        options[kind if is_common else key] = spelt
    key, (column, unit) = next(iter(wrong.items()))
    kind = key.partition("_")[0]
    remedy = ", ".join(f"{k!r}: {v}" for k, v in options.items())
    if unit.lower() in TICKS:
        what = "whose length is not known: for 4096 in a turn of the joint"
    elif si.standard_unit_spelling(unit) in si.UNITS[kind]:
        what = "by its name, which does not determine its content: state it"
    else:
        what = f"which is no known unit of a {QUANTITIES[kind]}: state what it is"
    raise LogError(
        f"column {column!r} is in {unit!r}, {what} with units={{{remedy}}}: one of "
        f"{', '.join(si.UNITS[kind])}, or the factor to SI",
        column=column,
        unit=unit,
    )


def _corrupt_rows(
    values: Mapping[str, Array], t: Array, layout: naming.ColumnLayout, *, drop: bool
) -> tuple[tuple[str, Mask], ...]:
    """Rows to `drop`: with impossible numbers, whose cells are emptied, or that repeat the last.

    Without `drop` no row is corrupt, and an impossible number raises LogError.
    """
    absurd, same = np.zeros(len(t), dtype=bool), np.ones(len(t), dtype=bool)
    same[:1] = False
    same[1:] &= np.diff(t) != 0  # those are left out in any case
    for kind, cells in values.items():
        far = absurdly_large(cells)
        if far.any() and not drop:
            k, row = (int(x) for x in np.argwhere(far.T)[0])
            column, joint = layout.columns[kind][k], layout.coordinates[k]
            raise LogError(
                f"column {column!r} of joint {joint!r} has {cells[row, k]:g} in row {row}: no "
                f"physical quantity exceeds {LARGEST:g}; corrupt='drop' leaves such rows out",
                joint=joint,
                column=column,
                row=row,
            )
        absurd |= far.any(axis=1)
        same[1:] &= (cells[1:] == cells[:-1]).all(axis=1)
        cells[far] = np.nan
    named = (f"number beyond {LARGEST:g}", absurd), ("repeats the row before", same & ~absurd)
    return tuple((what, rows) for what, rows in named if drop and rows.any())


def _motor_to_joint_side(
    values: dict[str, Array], transmission: npt.ArrayLike, layout: naming.ColumnLayout
) -> dict[str, Array]:
    """Motor side to joint side: q = T^-1 q_motor, tau = T' tau_motor (power is the same)."""
    dof = len(layout.coordinates)
    if naming.UNMEASURED in layout.columns["tau"]:
        raise LogError(
            "transmission mixes torques: it needs those of all motors, so leave measured out"
        )
    try:
        T = np.asarray(transmission, dtype=np.float64)
    except (TypeError, ValueError):
        raise LogError("transmission must be a matrix of numbers with rows of one length") from None
    if T.shape != (dof, dof) or not np.isfinite(T).all() or np.linalg.matrix_rank(T) < dof:
        raise LogError(
            f"transmission must be an invertible ({dof}, {dof}) matrix of finite numbers, not "
            f"{quote(T)} of shape {T.shape}"
        )
    inverse = np.linalg.inv(T)
    return {kind: x @ T if kind == "tau" else x @ inverse.T for kind, x in values.items()}


def unwrap_angles(q: Array, robot: Robot, stretches: Iterable[Rows]) -> list[Note]:
    """Undo jumps by whole turns in the angles (N, dof) of revolute joints, in place; says where."""
    notes = []
    parts = list(stretches)
    for body, rows in robot.moving_bodies:
        if body.dof != 1 or not body.motion[:3].any():
            continue
        k, count = rows.start, 0
        for part in parts:
            jumps = np.abs(np.diff(q[part, k]))
            turns = jumps > (1 - TURN_TOLERANCE) * TURN
            if turns.any() and (jumps[turns] < (1 + TURN_TOLERANCE) * TURN).all():
                q[part, k] = np.unwrap(q[part, k])
                count += int(turns.sum())
        if count:
            text = f"joint {body.joint!r}: {count} jump(s) of q by a whole turn unwrapped"
            notes.append(Note(text, "wrapped", joint=body.joint, count=count))
    return notes


def refuse_missing_cells(df: pd.DataFrame, raw: Signals) -> None:
    """Raise for the first column with a cell that is not a finite number."""
    for kind in raw.values:
        for column, joint in zip(raw.layout.columns[kind], raw.layout.coordinates, strict=True):
            if column is naming.UNMEASURED:
                continue
            cells = naming.read_numbers(df, column, joint)
            rows = np.flatnonzero(~np.isfinite(cells))
            if rows.size:
                what = "infinite" if np.isinf(cells[rows[0]]) else "empty or NaN"
                longest = max(e.count for e in excluded_blocks(rows, ""))
                raise LogError(
                    f"column {column!r} of joint {joint!r} has {rows.size} cell(s) without a "
                    f"finite number ({naming.list_rows(rows)}: {what}; longest segment {longest} "
                    "rows). nan='drop-segments' leaves these rows out and splits the run there",
                    joint=joint,
                    column=column,
                    row=int(rows[0]),
                    count=int(rows.size),
                )
