"""A log from any source, read once and prepared once per set of options."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import numpy as np

from feasid.core.arguments import checked_methods
from feasid.core.arrays import Array
from feasid.core.errors import InputError, LogError
from feasid.core.files import is_folder, is_regular, open_for_reading
from feasid.logs.columns import check_column_mapping, find_column, find_columns, nearest_columns
from feasid.logs.floating import floating_runs, is_floating_log, robot_floats
from feasid.logs.frame import motion_from_signals
from feasid.logs.motion import Motion
from feasid.logs.raw import Signals, read_raw
from feasid.logs.read.arrays import (
    frame_of_arrays,
    frame_of_table,
    frame_of_tuple,
    is_tuple_of_arrays,
)
from feasid.logs.read.formats import format_of, is_reduced, is_remote, read_log
from feasid.logs.stream import first_rows, stream_log
from feasid.logs.table import standard_table
from feasid.options.complete import complete_options, select_options
from feasid.options.tables import LogOptions, ReadOptions
from feasid.robot.description import Robot

if TYPE_CHECKING:
    import pandas as pd


MOST_ROWS = 20_000  #: Rows that are searched for the smallest step, evenly spread.

ORDERS = {"q": 2, "dq": 1, "ddq": 0}
"""Derivatives that lie between a logged signal and the acceleration."""


def signal_resolution(raw: Signals) -> dict[str, Array]:
    """Smallest step of every signal of the motion, by kind, shape (dof,) each, in its unit [SI]."""
    every = -(-max(len(raw.t), 1) // MOST_ROWS)
    out = {}
    for kind in ORDERS:
        if kind in raw.values:
            levels = [np.unique(x[np.isfinite(x)]) for x in raw.values[kind][::every].T]
            out[kind] = np.array([np.diff(x).min() if len(x) > 1 else 0.0 for x in levels])
    return out


def acceleration_noise(steps: Mapping[str, Array], rate: float, cutoff: float) -> Array:
    """Deviation of accelerations by rounding alone, below a cut-off, shape (dof,).

    Rounding to steps h is white noise of variance h^2 / 12 where a signal crosses many of them; its
    n-th derivative has below f the variance ``h^2 / 12 (2 pi)^2n 2 f^(2n + 1) / ((2n + 1) rate)``.
    """
    kind = max(steps, key=lambda k: -ORDERS[k])
    n = ORDERS[kind]
    gain = (2 * np.pi) ** (2 * n) * 2 * cutoff ** (2 * n + 1) / ((2 * n + 1) * rate)
    return np.asarray(steps[kind] * np.sqrt(gain / 12.0))


def blur_signals(raw: Signals, steps: Mapping[str, Array], seed: int) -> Signals:
    """The signals with every sample of the motion moved at random within half a step."""
    rng = np.random.default_rng(seed)
    moved = {k: raw.values[k] + h * rng.uniform(-0.5, 0.5, raw.values[k].shape)
             for k, h in steps.items()}  # fmt: skip
    return replace(raw, values={**raw.values, **moved})


Torque: TypeAlias = bool | Collection[str]
"""Whether torques are required, or the joints whose torques are."""

LEAST_BLUR = 0.01
"""Noise of rounding over a joint's RMS acceleration below which a log is not blurred: encoders of
12 bits that a UR5 moves by make 0.03 to 0.1, and bias grows with its square."""

SEED = 0  #: Of the blur.

STREAMED_BYTES = 2**26
"""Size of a file [B] up to which it is read whole, so that all checks of tables apply: about eight
million numbers, ten minutes of a robot at 500 Hz."""


@checked_methods
class Recording:
    """A log that is read once and prepared once per set of options.

    Attributes
    ----------
    name : str
        Path of the log; empty if it did not come from a file.
    streamed : bool
        Whether the log may be larger than memory and is prepared piece by piece.
    source : path, sequence of paths, DataFrame, mapping or tuple of arrays
        The given log; if there are several paths, each is a run.
    """

    def __init__(self, source: Any) -> None:
        if isinstance(source, Path | str):
            self.name = str(source)
            in_batches = not is_reduced(source) and format_of(source).batches is not None
            small = is_regular(source) and os.stat(source).st_size <= STREAMED_BYTES
            self.streamed = in_batches and not small and not is_remote(source)
        else:
            self.name, self.streamed = "", False
            table = not hasattr(source, "collect") and hasattr(source, "columns")  # no lazy frames
            arrays = isinstance(source, Mapping) or is_tuple_of_arrays(source)
            if hasattr(type(source), "triangle"):  # a lazy object has any attribute
                raise InputError("reduced data hold no samples: pass the log")
            if (levels := getattr(source.columns, "nlevels", 1) if table else 1) > 1:
                raise LogError(f"columns have {levels} levels of names: join them into one")
            if not (arrays or table or hasattr(source, "dask") or _are_paths(source)):
                raise InputError(
                    "a log is a DataFrame (pandas, polars or Arrow), a mapping or tuple of arrays, "
                    f"a path or reduced data, not {type(source).__name__}"
                )
        self.source = source
        self._tables: dict[Hashable, pd.DataFrame] = {}
        self._raws: dict[Hashable, tuple[Robot, Signals]] = {}
        self._motions: dict[Hashable, tuple[Robot, Motion]] = {}
        #: What was computed of the log and stays with it, such as its sum for a robot.
        self.derived: dict[Hashable, Any] = {}

    @classmethod
    def from_source(cls, source: Any) -> Recording:
        """Return a recording unchanged; open anything else as a recording.

        Parameters
        ----------
        source : Recording, path, DataFrame, mapping or tuple of arrays

        Returns
        -------
        Recording

        Raises
        ------
        InputError
            `source` is not a log.
        """
        return source if isinstance(source, Recording) else cls(source)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the log itself."""
        return Recording, (self.source,)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The whole log in memory, with the column names of its source; for bags see `table`."""
        if self.name or _are_paths(self.source):
            return read_log(self.source)
        if isinstance(self.source, Mapping):
            return frame_of_arrays(self.source)
        if is_tuple_of_arrays(self.source):
            return frame_of_tuple(self.source)
        if hasattr(self.source, "dask"):  # a partition, computed by the worker that has it
            partition: pd.DataFrame = self.source.compute(scheduler="synchronous")
            return partition
        if not hasattr(self.source, "iloc"):
            return frame_of_table(self.source)
        frame: pd.DataFrame = self.source
        return frame

    def table(self, robot: Robot, topic: str | None = None) -> pd.DataFrame:
        """The whole log in SI units; of a bag, this topic or the one with the robot's joints.

        Parameters
        ----------
        robot : Robot
        topic : str, optional

        Returns
        -------
        DataFrame

        Raises
        ------
        LogError, InputError
            The file cannot be read; the message names what is wrong.
        """
        key = topic, robot.joints
        if key not in self._tables:
            if self.name or _are_paths(self.source):
                table = read_log(self.source, topic=topic, joints=robot.joints)
            else:
                table = self.frame
            self._tables[key] = standard_table(table, robot.coordinates)
        return self._tables[key]

    def motion(
        self, robot: Robot, *, torque: Torque = True, **options: Unpack[LogOptions]
    ) -> Motion:
        """Prepared signals, run by run; see `feasid.logs.frame.prepare`.

        Parameters
        ----------
        robot : Robot
        torque : bool or collection of str
            Whether torques are needed, or the names of the joints whose torques are needed.
        **options
            `feasid.options.tables.LogOptions`.

        Returns
        -------
        Motion

        Raises
        ------
        LogError, InputError
            The log or an option is not usable; the message names what is wrong.
        """
        complete = complete_options(LogOptions, options, "a log")
        key = _signal_key(robot, torque, complete)
        if key not in self._motions:
            table = self.table(robot, complete["topic"])
            if is_floating_log(table, robot):
                motion = floating_runs(table, robot, complete, bool(torque))
            else:
                reading = select_options(ReadOptions, complete)
                raw = read_signals(self, robot, torque=torque, **reading)
                motion = motion_from_signals(table, raw, robot, complete)
            self._motions[key] = robot, motion
        return self._motions[key][1]


def read_signals(
    log: Recording, robot: Robot, *, torque: Torque = True, **options: Unpack[ReadOptions]
) -> Signals:
    """Signals in SI units at the joints, not prepared; arguments as for `Recording.motion`."""
    complete = complete_options(ReadOptions, options, "a log")
    key = _signal_key(robot, torque, complete)
    if key not in log._raws:
        table = log.table(robot, complete["topic"])
        log._raws[key] = robot, read_raw(table, robot, torque=torque, **complete)
    return log._raws[key][1]


def read_motions(
    log: Recording, robot: Robot, *, torque: Torque = True, **options: Unpack[LogOptions]
) -> Iterator[Motion]:
    """`Recording.motion`, in pieces where the log is streamed."""
    if log.streamed and not robot_floats(robot):
        yield from stream_log(log.source, robot, options, torque=torque)
    else:
        yield log.motion(robot, torque=torque, **options)


def _are_paths(source: Any) -> bool:
    """Whether these are several files, each of which is a run."""
    return isinstance(source, list | tuple) and bool(source) and all(
        isinstance(path, str | os.PathLike) for path in source
    )  # fmt: skip


def hashable_key(value: Any) -> Hashable:
    """Equal for equal options, arrays and mappings included."""
    if is_dataclass(value):
        return hashable_key(vars(value))
    if isinstance(value, Mapping):
        # By their text: values of several types have no order.
        return tuple(sorted(((str(k), hashable_key(v)) for k, v in value.items()), key=repr))
    if isinstance(value, str | bytes | int | float | None):
        return (type(value).__name__, value)
    if isinstance(value, list | tuple):
        return tuple(hashable_key(v) for v in value)
    array = np.asarray(value)
    return (array.shape, array.dtype.str, array.tobytes())


def _signal_key(robot: Robot, torque: Torque, options: dict[str, Any]) -> tuple[Any, ...]:
    """What signals of a log depend on; a robot's inertials and joint terms are not among it."""
    joints = tuple(
        (b.joint, b.parent, b.motion.tobytes(), b.rotation.tobytes(), b.position.tobytes())
        for b in robot.bodies
    )
    # Custom couplings are compared by identity; the robot that is kept beside keeps them alive.
    ties = tuple(id(part) for part in (*robot.couplings, *robot.loops))
    motion = joints, ties, robot.active, hashable_key(robot.configuration)
    return motion, torque if isinstance(torque, bool) else tuple(torque), hashable_key(options)


BLOCK = 2**20  #: Bytes of a file that are hashed at a time.


def content_digest(log: Recording) -> str:
    """SHA-256 of a file's bytes, of a folder's files, or of a table's names and cells."""
    digest, path = hashlib.sha256(), log.name
    if path and (is_regular(path) or is_folder(path)):
        files = sorted(p for p in Path(path).rglob("*") if is_regular(p)) if is_folder(path) else []
        for file in files or [Path(path)]:
            # Files of a folder that exchange their names are another log.
            if files:
                digest.update(os.fsencode(f"{file.relative_to(path)}\0"))
            with open_for_reading(file, sys.maxsize) as stream:
                while block := stream.read(BLOCK):
                    digest.update(block)
        return digest.hexdigest()
    for name in log.frame.columns:
        column = log.frame[name].to_numpy()
        digest.update(str(name).encode("utf-8", "surrogatepass"))
        is_plain = column.dtype.kind in "fiub"
        digest.update(column.tobytes() if is_plain else repr(column.tolist()).encode())
    return digest.hexdigest()


def head_of(log: Recording, robot: Robot, topic: str | None = None) -> pd.DataFrame:
    """The table of a log; of one that is longer than memory its first rows."""
    return first_rows(log.source, robot.coordinates) if log.streamed else log.table(robot, topic)


ABSENT, EMPTY = "no column", "an empty column"


def find_missing_torques(
    log: Recording, robot: Robot, columns: Mapping[str, Any] | None = None, topic: str | None = None
) -> dict[str, str]:
    """Joints whose torque a log does not hold, and why.

    A column whose name is nearly that of the joint does not count as absent, and neither do the
    columns if all joints lack them: both are errors of reading. Of Parquet files, which may be
    longer than memory, only the names of columns are read. Robots with couplings, loops or several
    degrees of freedom per joint have none.
    """
    if not robot.is_plain:
        return {}
    df = head_of(log, robot, topic)
    try:
        layout = find_columns(df, robot, columns, torque=False)
    except LogError:
        return {}  # reading says what is wrong
    mapping = check_column_mapping(df, robot, columns or {})
    torques = {
        joint: find_column(df, "tau", robot, joint, mapping)[0]
        for joint in robot.joints
        if joint not in robot.passive
    }
    missing = {joint: ABSENT for joint, column in torques.items() if column is None}
    used = {layout.time, *torques.values(), *(c for cs in layout.columns.values() for c in cs)}
    others = [c for c in df.columns if c not in used]
    if nearest_columns([f"tau_{joint}" for joint in missing], others, robot.joints):
        return {}
    if not log.streamed and df.columns.is_unique:
        named = ((joint, column) for joint, column in torques.items() if column is not None)
        missing |= {joint: EMPTY for joint, column in named if df[column].isna().all()}
    return missing if len(missing) < len(torques) else {}


def blur_recording(
    log: Recording, robot: Robot, *, torque: Torque = True, **options: Unpack[LogOptions]
) -> Motion | None:
    """Motion of a log moved at random within its resolution; None where that is small."""
    complete = complete_options(LogOptions, options, "a log")
    raw = read_signals(log, robot, torque=torque, **select_options(ReadOptions, complete))
    known, steps = log.motion(robot, torque=torque, **options), signal_resolution(raw)
    rate = max(run.rate for run in known.runs)
    if not (known.cutoff and np.isfinite(rate)):
        return None
    noise = acceleration_noise(steps, rate, known.cutoff)
    square = np.sum([np.sum(run.ddq**2, axis=0) for run in known.runs], axis=0)
    size = np.sqrt(square / sum(len(run) for run in known.runs))
    if not (noise > LEAST_BLUR * size).any():
        return None
    table, moved = log.table(robot, complete["topic"]), blur_signals(raw, steps, SEED)
    return motion_from_signals(table, moved, robot, complete)
