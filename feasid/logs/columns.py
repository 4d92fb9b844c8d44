"""Which columns of a log belong to which joint, and their cells as numbers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.core.errors import LogError, did_you_mean
from feasid.logs import units as si
from feasid.logs.table import HEADER_UNITS, plain_header
from feasid.robot.description import Robot

if TYPE_CHECKING:
    import pandas as pd

UNMEASURED: Any = object()
"""In place of a column that reads as zero: the torque of a joint that was not measured, and the
position of a torque sensor."""

CONTROL = "ctrl"
"""Kind of the columns of controls of MuJoCo's actuators, in a log without torques."""

WAYS = {
    "tau": "A fit needs torques: add efforts or motor currents as tau_<joint>, or fit from the "
    "commands of position servos, cmd_<joint>, with command='position'. The torques of this motion "
    "by a saved fit are computed by fit.predict(log), or feasid predict",
    si.COMMAND: "A fit without torques needs the commands that its servos were given: add them as "
    "cmd_<joint>, or map their columns with columns={'cmd': 'NAME_{}'}",
}
"""What to do without any column of a kind."""

WORDS = {"q": "position", "dq": "velocity", "ddq": "acceleration", "tau": "torque"}

MOST_BITS = 1024  #: Of an integer that a floating-point number may still hold.
LISTED = 12  #: Columns that a message names.
SHOWN = 3  #: Rows that a message quotes before it says how many more there are.


@dataclass(frozen=True)
class ColumnLayout:
    """The log's column for everything that a robot needs.

    ``columns[kind]`` has one column per coordinate, or none when the log has none of that kind;
    a coordinate without its own column within a kind that others have is an error. ``units`` are
    those of the headers, which are converted to SI already.
    """

    coordinates: tuple[str, ...]
    columns: dict[str, tuple[Any, ...]]
    time: Any | None
    run: Any | None
    numbered: bool
    units: Mapping[Any, str]

    def header_unit(self, kind: str, k: int) -> str:
        """Unit in the header of a coordinate's column; empty without one."""
        columns = self.columns[kind]
        return self.units.get(columns[k], "") if columns else ""

    def currents(self, units: Mapping[str, Any]) -> list[str]:
        """Coordinates whose torques are currents, by their header, their name or `units`."""
        out = []
        for k, joint in enumerate(self.coordinates):
            unit = units.get(f"tau_{joint}", units.get("tau")) or self.header_unit("tau", k)
            words = si.words_of(self.column_name("tau", k).removesuffix(joint))
            words = [si.standard_unit_spelling(str(unit))] if unit else words  # a number: constant
            out += [joint] * bool({*words} & {*si.CURRENTS, "current", "currents"})
        return out

    def column_name(self, kind: str, k: int) -> str:
        """Name of a coordinate's column; of what was computed, the name that it would have."""
        columns = self.columns[kind]
        return str(columns[k]) if columns else f"{kind}_{self.coordinates[k]}"


def find_columns(
    df: pd.DataFrame,
    robot: Robot,
    columns: Mapping[str, Any] | None = None,
    torque: bool | Collection[str] = True,
    effort: str = "tau",
) -> ColumnLayout:
    """Find the columns of every joint.

    `columns`: other names: ``{"t": "stamp", "q_elbow": "pos3"}`` for single columns, or a pattern
    for all joints, ``{"q": "position_{}"}``, where ``{}`` stands for the joint; `torque`: whether
    torque columns are required, or the joints of which they are; those of the others are ignored;
    `effort`: {"tau", "cmd"}, whether the columns of torques are the log's own, or of commands.
    """
    names = robot.coordinates
    mapping = check_column_mapping(df, robot, columns or {})
    matches: dict[str, list[Any | None]] = {}
    numbered = False
    measured = {*(names if isinstance(torque, bool) else torque)} - {*robot.passive}
    prefixes = {**{kind: kind for kind in si.KINDS}, "tau": effort}
    for kind, prefix in prefixes.items():
        matches[kind] = []
        for name in names:
            if kind == "tau" and name not in measured:
                matches[kind].append(UNMEASURED)
                continue
            column, by_number = find_column(df, prefix, robot, name, mapping)
            numbered |= by_number
            matches[kind].append(column)
        if kind != "tau" and matches[kind].count(None) < len(names):
            for sensor in robot.sensors.values():  # which does not move
                matches[kind][names.index(sensor)] = UNMEASURED
    _refuse_absent_joints(df, names, matches, effort if torque else "")
    time = mapping.get("t", time_column(df))
    run = mapping.get("run", "run" if "run" in df.columns else None)
    taken = {time, run}.union(*matches.values())
    unused = [c for c in df.columns if c not in taken]
    layout: dict[str, tuple[Any, ...]] = {}
    for kind, prefix in prefixes.items():
        required = kind == "q" or (kind == "tau" and bool(torque))
        layout[kind] = _columns_of_kind(df, prefix, robot, matches[kind], required, unused)
    several = [body.joint for body in robot.bodies if body.dof > 1]
    if several and not layout["dq"]:
        raise LogError(
            f"joint {several[0]!r} has several degrees of freedom: its velocity is not the "
            f"derivative of its coordinates, give it as columns dq_{several[0]}_1 and so on",
            joint=several[0],
        )
    used = [c for kind in si.KINDS for c in layout[kind] if c is not UNMEASURED]
    used += [c for c in (time, run) if c is not None]
    layout[si.TEMPERATURE] = find_temperatures(df, robot, mapping, used)
    used += {c for c in layout[si.TEMPERATURE] if c is not UNMEASURED}
    for column in used:
        if used.count(column) > 1 and df.columns.is_unique:
            text = f"column {column!r} is used for two quantities: check columns="
            raise LogError(text, column=column)
        places = [k + 1 for k, c in enumerate(df.columns) if c == column]
        if len(places) > 1:
            raise LogError(
                f"column {column!r} occurs twice, as columns {places[0]} and {places[1]}: "
                "drop or rename one",
                column=column,
                positions=tuple(places),
            )
    units = {c: u for c, u in df.attrs.get(HEADER_UNITS, {}).items() if c in df.columns}
    return ColumnLayout(names, layout, time, run, numbered, units)


def time_column(df: pd.DataFrame) -> Any | None:
    """The column of times: ``t``, or else the first that is called as times are, ``T`` last."""
    called = [c for c in df.columns if isinstance(c, str) and c.lower() in si.TIMES]
    order = {c: (c == "T", c != "t", si.TIMES.index(c.lower())) for c in called}
    return min(called, key=lambda c: order[c], default=None)


def find_temperatures(
    df: pd.DataFrame, robot: Robot, mapping: Mapping[str, Any], used: Sequence[Any]
) -> tuple[Any, ...]:
    """The column of every coordinate's temperature, or that of the robot; none without any.

    Raises LogError: columns are called as temperatures, and none belongs to a joint, or one has
    nearly the name of a joint without.
    """
    kinds, names = (si.TEMPERATURE, "T"), robot.coordinates
    pairs = [[find_column(df, k, robot, name, mapping)[0] for k in kinds] for name in names]
    columns = [next((c for c in pair if c is not None), None) for pair in pairs]
    free = [c for c in df.columns if isinstance(c, str) and c not in (*used, *columns)]
    common = mapping.get(si.TEMPERATURE, next((c for c in kinds if c in free), None))
    lacking = [n for n, c in zip(names, columns, strict=True) if c is None]
    alone = len(lacking) == len(names) and common is None
    for column in (c for c in free if c.startswith(("temperature_", "T_"))):
        nearest = get_close_matches(column.partition("_")[2], lacking, n=1)
        if nearest or alone:
            key = f"{si.TEMPERATURE}_{(nearest or lacking)[0]}"
            raise LogError(
                f"column {column!r} is called as a temperature, and names no joint of the robot, "
                f"which has {join_columns(names)}: say whose it is with "
                f"columns={{{key!r}: {column!r}}}, or give it another name",
                column=column,
                joints=tuple(names),
            )
    every = () if alone else (common if c is None else c for c in columns)
    return tuple(UNMEASURED if c is None else c for c in every)


MOTOR_KINDS = {"theta": "q", "dtheta": "dq", "ddtheta": "ddq", "tau": "tau",
               **dict.fromkeys((si.TEMPERATURE, "T"), si.TEMPERATURE)}  # fmt: skip
"""Kinds of the motor's columns ``<kind>_<joint>`` of an elastic joint, and what each is to the
motor's own coordinate; a joint's temperature is that of its motor, too."""

SENSOR = "sensor"  #: Kind of the columns of torques behind the gears of elastic joints.


def usual_name(robot: Robot, kind: str, coordinate: str) -> str:
    """A coordinate's column as a log calls it: ``theta_<joint>`` of the motor of an elastic one."""
    for joint, motor in robot.elastic.items():
        if coordinate == robot.sensors.get(joint):
            return f"{SENSOR}_{joint}"
        if coordinate == motor:
            kinds = (k for k, of_motor in MOTOR_KINDS.items() if of_motor == kind)
            return f"{next(kinds, kind)}_{joint}"
    return f"{kind}_{coordinate}"


def check_column_mapping(
    df: pd.DataFrame, robot: Robot, columns: Mapping[str, Any]
) -> dict[str, Any]:
    """Expand patterns and refuse keys that name nothing or columns that do not exist.

    Columns of the motors of elastic joints are added. Raises LogError: the log has no position of
    such a motor.
    """
    names = _numbered_coordinates(robot)
    of_motors = [kind for kind in MOTOR_KINDS if "theta" in kind]
    of_springs = (*of_motors, SENSOR) if robot.elastic else ()
    kinds = (*si.KINDS, si.COMMAND, si.TEMPERATURE, *of_springs)
    every = robot.coordinates
    known = ["t", "run", *kinds, *(f"{kind}_{name}" for kind in kinds for name in every)]
    numbered = [f"{kind}_{k + 1}" for kind in kinds for k in range(len(names))]
    mapping: dict[str, Any] = {}
    for key, column in columns.items():
        if str(key).startswith(CONTROL):  # of an actuator, not of a joint
            continue
        if key not in kinds and column not in df.columns:
            column = plain_header(column, names)
        if key in kinds and not (key == si.TEMPERATURE and column in df.columns):  # of the robot
            if not isinstance(column, str) or column.count("{}") != 1:
                raise LogError(
                    f"columns[{key!r}] must be a pattern with one {{}} for the joint, "
                    f"for example 'position_{{}}', not {column!r}"
                )
            name = plain_header(column, names)
            matches = _match_all(df.columns, column, names) or _match_all(df.columns, name, names)
            if not matches:
                raise LogError(
                    f"columns[{key!r}] is {name!r}, but the log has no such column for any "
                    f"joint; it has {join_columns(df.columns)}",
                    column=name,
                )
            mapping = {f"{key}_{joint}": match for joint, match in matches.items()} | mapping
            continue
        if key not in known and key not in numbered:
            hint = did_you_mean(key, known)
            raise LogError(
                f"columns has the key {key!r}, which names no quantity of a log{hint}: use "
                f"'t', 'run', or one of {', '.join(kinds)} followed by _<joint>",
                column=key,
            )
        if column not in df.columns:
            hint = did_you_mean(column, _plausible_columns(key, df.columns, names))
            raise LogError(
                f"columns maps {key!r} to {column!r}, which the log does not have{hint}; "
                f"it has {join_columns(df.columns)}",
                column=column,
            )
        mapping[key] = column
    return _spring_columns(df, robot, mapping) | mapping


def _spring_columns(df: pd.DataFrame, robot: Robot, mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of the motors and torque sensors of elastic joints, by their own coordinates."""
    out: dict[str, Any] = {}
    kinds, names = ("q", SENSOR, *MOTOR_KINDS), _numbered_coordinates(robot)
    known = {find_column(df, SENSOR, robot, name, mapping)[0] for name in names}
    free = [c for c in map(str, df.columns) if c.startswith("sens") and c not in known]
    for joint, motor in robot.elastic.items():
        column = {kind: find_column(df, kind, robot, joint, mapping)[0] for kind in kinds}
        for theirs, kind in MOTOR_KINDS.items():
            if column[theirs] is not None and f"{kind}_{motor}" not in df.columns:
                out.setdefault(f"{kind}_{motor}", column[theirs])
        key = f"{SENSOR}_{joint}"
        if column[SENSOR] is None and (close := get_close_matches(key, free, n=1)):
            raise LogError(
                f"column {close[0]!r} has nearly the name {key!r} of a torque sensor behind the "
                f"gear: rename it, or map it with columns={{{key!r}: {close[0]!r}}}",
                column=close[0],
            )
        out[f"tau_{joint}_sensor"] = column[SENSOR]
        lacks_motor = f"q_{motor}" not in {*mapping, *out, *df.columns}
        if lacks_motor or (column["q"] is None and column["theta"] is not None):
            side, place = ("motor", f"theta_{joint}") if lacks_motor else ("link", f"q_{joint}")
            torque = "" if column[SENSOR] is None else f", 'tau_{joint}': {key!r}"
            swap = f", columns={{'q_{joint}': 'theta_{joint}'{torque}}}"
            raise LogError(
                f"joint {joint!r} is elastic, and the log has no position of its {side}, {place}. "
                "From one encoder the stiffness of the spring cannot be known: log both, or fit "
                f"the joint as rigid (leave it out of elastic{'' if lacks_motor else swap}). With "
                f"a stiffness k that is known and the torque of a sensor behind the gear, {key}, "
                f"add the other position: theta_{joint} = q_{joint} + {key} / k",
                joint=joint,
                column=place,
            )
    return {key: column for key, column in out.items() if column is not None}


def _match_all(columns: Collection[Any], pattern: str, names: Sequence[str]) -> dict[str, str]:
    """The columns that a pattern says, by name."""
    matches = {name: match_pattern(columns, pattern, names, k) for k, name in enumerate(names)}
    return {name: column for name, column in matches.items() if column is not None}


def first_number(columns: Collection[Any], pattern: str, count: int) -> int:
    """Number of the first of so many columns: 0 where they are numbered from 0, else 1."""
    zero, last = (pattern.replace("{}", str(n)) in columns for n in (0, count))
    return 0 if zero and not last else 1


def match_pattern(
    columns: Collection[Any], pattern: str, names: Sequence[str], k: int
) -> str | None:
    """The column that a pattern says for the k-th of these names: by the name, else by number."""
    labels = names[k], k + first_number(columns, pattern, len(names))
    named = (pattern.replace("{}", str(label)) for label in labels)
    return next((column for column in named if column in columns), None)


def find_column(
    df: pd.DataFrame, kind: str, robot: Robot, name: str, mapping: Mapping[str, Any]
) -> tuple[Any | None, bool]:
    """The column of one coordinate and whether it was found by number."""
    by_name, names = f"{kind}_{name}", _numbered_coordinates(robot)
    if by_name in mapping:
        return mapping[by_name], False
    if name not in names:
        return (by_name if by_name in df.columns else None), False
    k = names.index(name)
    if f"{kind}_{k + 1}" in mapping:
        return mapping[f"{kind}_{k + 1}"], True
    column = match_pattern(df.columns, f"{kind}_{{}}", names, k)
    return column, column not in (None, by_name)


def _numbered_coordinates(robot: Robot) -> tuple[str, ...]:
    """The coordinates that a log may number: those of links, not of motors behind springs."""
    others = {*robot.elastic.values(), *robot.sensors.values()}
    return tuple(name for name in robot.coordinates if name not in others)


def _refuse_absent_joints(
    df: pd.DataFrame, names: Sequence[str], found: Mapping[str, Sequence[Any | None]], effort: str
) -> None:
    """A joint without any column, while others have theirs, probably did not move."""
    absent = [
        n
        for k, n in enumerate(names)
        if found["q"][k] is not UNMEASURED
        and all(found[kind][k] in (None, UNMEASURED) for kind in si.KINDS)
    ]
    if not absent:
        return
    expected = [f"q_{absent[0]}", *([f"{effort}_{absent[0]}"] if effort else [])]
    if len(absent) == len(names):
        alike = suggest_columns(df, names)
        if alike and "t" not in df and (time := find_growing_column(df)) is not None:
            alike = {"t": time, **alike}
        example = {"q": "position_{}", "tau": "effort_{}"}
        notes = [n for n in df.attrs.get("notes", ()) if getattr(n, "code", "") == "skipped"]
        raise LogError(
            f"the log has no column of any joint: expected {' and '.join(expected)} and so on "
            f"by joint name or number; it has {join_columns(df.columns)}"
            f"{''.join(f' ({n})' for n in notes)}. Map other names with "
            f"{'' if alike else 'for example '}columns={alike or example}"
            f"{_torque_constant_hint(alike, names)}",
            joint=absent[0],
            column=expected[0],
        )
    used = {c for columns in found.values() for c in columns} | {time_column(df), "run"}
    unused = [c for c in df.columns if c not in used]
    nearest = nearest_columns(expected, unused, names)
    hint = f" (did you mean columns={nearest}?)" if nearest else ""
    lock = ", ".join(f"{n!r}: 0.0" for n in absent)
    raise LogError(
        f"joint {absent[0]!r} has no columns in the log: expected {' and '.join(expected)}{hint}; "
        f"unused columns: {join_columns(unused)}. A joint that did not "
        f"move can be locked: load_robot(..., lock={{{lock}}})",
        joint=absent[0],
        column=expected[0],
        joints=tuple(absent),
    )


def nearest_columns(
    wanted: Sequence[str], unused: Sequence[Any], names: Sequence[str]
) -> dict[str, str]:
    """Which of the unused columns have names near to ``<kind>_<joint>`` and may be meant."""
    nearest: dict[str, str] = {}
    for key in wanted:
        others = [c for c in unused if c not in nearest.values()]
        if close := get_close_matches(key, _plausible_columns(key, others, names), n=1):
            nearest[key] = close[0]
    return nearest


def _plausible_columns(key: str, columns: Iterable[Any], names: Sequence[str]) -> list[str]:
    """Columns that say neither another quantity nor another joint than ``<kind>_<joint>``."""
    kind, _, joint = key.partition("_")
    foreign = set() if kind == si.COMMAND else NOT_MEASURED
    others = tuple(n for n in names if n not in joint)
    return [
        c
        for c in map(str, columns)
        if si.kind_of_name(c) in ("", kind)
        and not foreign & {*si.words_of(c)}
        and not c.endswith(others)
    ]


def _columns_of_kind(
    df: pd.DataFrame,
    kind: str,
    robot: Robot,
    columns: Sequence[Any | None],
    required: bool,
    unused: Sequence[Any],
) -> tuple[Any, ...]:
    """All columns of a kind, or none if it may be absent and is so for every joint."""
    names = robot.coordinates
    missing = [usual_name(robot, kind, n) for n, c in zip(names, columns, strict=True) if c is None]
    if not missing:
        return tuple(columns)
    if not required and (kind in ("tau", si.COMMAND) or len(missing) == len(columns)):
        return ()
    patterns = {k: v for k, v in suggest_columns(df, names).items() if k == kind}
    nearest = nearest_columns(missing, unused, names)
    hint = f" (did you mean {nearest[missing[0]]!r}?)" if missing[0] in nearest else ""
    why = "" if required else ", while others have one (drop those to derive it for all)"
    measured = [n for n, c in zip(names, columns, strict=True) if c not in (None, UNMEASURED)]
    if patterns or nearest or (unused and kind not in WAYS):
        listed = ", ".join(f"{k!r}: {repr(nearest[k]) if k in nearest else '...'}" for k in missing)
        places = patterns or f"{{{listed}}}"
        remedy = f"Map other names with columns={places}{_torque_constant_hint(patterns, names)}"
    else:
        remedy = WAYS.get("" if measured else kind, "Add it to the log")
    if kind == "tau" and measured:
        remedy += f", or fit without its torque: measured={measured}"
    raise LogError(
        f"joint {missing[0].partition('_')[2]!r} has no {WORDS.get(kind, 'command')} column "
        f"{missing[0]!r}{hint}{why}; unused columns: {join_columns(unused)}. {remedy}",
        joint=missing[0].partition("_")[2],
        column=missing[0],
    )


NOT_MEASURED = {"target", "desired", "des", "goal", "ref", "reference", "cmd", "command",
                "commanded", "cmptd", "setpoint", "planned", "ext", "external", "error",
                "tcp"}  # fmt: skip
"""Words in the names of columns that hold something else."""

COMPUTED = {"computed", "calculated", "estimated", "model", "predicted", "filtered"}
"""Words of columns that are proposed after those that were measured."""


def suggest_columns(df: pd.DataFrame, names: Sequence[str]) -> dict[str, str]:
    """Patterns of columns that all joints have, by name or by number, for kinds that they name.

    ``{"q": "actual_q_{}", "tau": "actual_current_{}"}`` of a UR's log; empty without positions.
    """
    columns, last = [str(c) for c in df.columns], len(names)
    patterns = dict.fromkeys(c.replace(n, "{}", 1) for n in names[:1] for c in columns if n in c)
    numbers = (re.sub(r"[01](?=\D*$)", "{}", c, count=1) for c in columns)
    patterns |= dict.fromkeys(p for p in numbers if "{}" in p)
    mapping: dict[str, str] = {}
    for pattern in sorted(patterns, key=lambda p: (bool(COMPUTED & {*si.words_of(p)}), len(p))):
        first = first_number(columns, pattern, last)
        words = {*si.words_of(pattern)}
        both = ([*names], range(first, first + last))
        if words & NOT_MEASURED or not any(
            all(pattern.replace("{}", str(joint)) in columns for joint in joints) for joints in both
        ):
            continue
        for kind, known in si.NAMES_OF_KINDS.items():
            if words & {*known}:
                mapping.setdefault(kind, pattern)
    return mapping


def find_growing_column(df: pd.DataFrame) -> str | None:
    """The first column whose numbers only grow, as time does."""
    for name, column in df.select_dtypes("number", exclude="timedelta").items():
        values = column.to_numpy(np.float64, na_value=np.nan)
        if len(values) > 1 and (np.diff(values) > 0).all():
            return str(name)
    return None


def _torque_constant_hint(patterns: Mapping[str, str], names: Sequence[str]) -> str:
    """Advice for torques that are currents, as the end of a sentence."""
    if "current" not in patterns.get("tau", "").lower():
        return ""
    constants = ", ".join(f"'tau_{n}': ..." for n in names)
    return (
        " and the torque constants in N m/A (mA in the header are converted to A), "
        f"units={{{constants}}}"
    )


def join_columns(columns: Iterable[Any]) -> str:
    """Names of columns for a message, at most `LISTED`; ``none`` without any."""
    names = [str(c) for c in columns]
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return (", ".join(names[:LISTED]) + more) or "none"


def read_numbers(df: pd.DataFrame, column: Any, joint: str | None = None) -> Array:
    """One column as float64, NaN where cells are missing; objects and text are refused."""
    import pandas as pd

    series = df[column]
    dtype = series.dtype
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_complex_dtype(dtype):
        raise LogError(f"column {column!r} has dtype {dtype}, expected numbers", column=column)
    if not pd.api.types.is_numeric_dtype(dtype):
        whose = f" of joint {joint!r}" if joint else ""
        bad = np.flatnonzero((cells_to_numbers(series).isna() & series.notna()).to_numpy())
        if not bad.size:
            raise LogError(
                f"column {column!r}{whose} holds {series.dtype} instead of numbers: convert it "
                "with pandas.to_numeric",
                column=column,
                joint=joint,
            )
        text = str(series.iloc[int(bad[0])])
        comma = " (a decimal comma? read with decimal=',')" if "," in text else ""
        raise LogError(
            f"column {column!r}{whose} has {bad.size} cell(s) that are not numbers, the first in "
            f"row {bad[0]}: {text[:40]!r}{comma}",
            column=column,
            joint=joint,
            row=int(bad[0]),
            text=text,
        )
    if isinstance(dtype, np.dtype):
        return np.asarray(series.to_numpy(), dtype=np.float64)
    return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)


def cells_to_numbers(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Cells of any kind as numbers, NaN where they are none; larger integers are refused."""
    import pandas as pd

    objects = cells.astype(object)
    try:
        return pd.to_numeric(objects, errors="coerce")
    except OverflowError:
        row = int(np.argmax([isinstance(c, int) and c.bit_length() > MOST_BITS for c in objects]))
        raise LogError(
            f"column {cells.name!r} has an integer in row {row} that is too large for a number",
            column=cells.name,
            row=row,
        ) from None


def list_rows(rows: npt.NDArray[np.int64]) -> str:
    """``"rows 3, 4, 5 and 12 more"``."""
    shown = ", ".join(str(r) for r in rows[:SHOWN].tolist())
    more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    return f"row{'s' if len(rows) > 1 else ''} {shown}{more}"
