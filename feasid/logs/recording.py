"""One log, whatever it is: opened once, read once, prepared once per set of options."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import cached_property
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import numpy as np

from feasid.errors import InputError
from feasid.logs.floating import floating_runs, floats, robot_floats
from feasid.logs.frame import motion_of
from feasid.logs.motion import Motion
from feasid.logs.raw import Signals, read_raw
from feasid.logs.read.arrays import (
    frame_of_arrays,
    frame_of_table,
    frame_of_tuple,
    is_tuple_of_arrays,
)
from feasid.logs.read.formats import format_of, is_reduced, read_log
from feasid.logs.stream import stream_log
from feasid.options.complete import completed, part
from feasid.options.tables import LogOptions, ReadOptions
from feasid.robot.description import Robot

if TYPE_CHECKING:
    import pandas as pd

Torque: TypeAlias = bool | Collection[str]
"""Whether torques are required, or those of which joints."""


class Recording:
    """A log with what was made of it so far.

    Attributes
    ----------
    name : str
        The path that was given; empty for what never was a file.
    streamed : bool
        Whether it is larger than memory may be, and prepared piece by piece.
    source : path, DataFrame, mapping or tuple of arrays
        What was given.
    """

    def __init__(self, source: Any) -> None:
        if isinstance(source, Path | str):
            self.name = str(source)
            self.streamed = not is_reduced(source) and format_of(source).batches is not None
        else:
            self.name, self.streamed = "", False
            if not _is_log(source):
                raise InputError(
                    "a log is a DataFrame (pandas, polars or Arrow), a mapping or tuple of arrays, "
                    f"a path or reduced data, not {type(source).__name__}"
                )
        self.source = source
        self._tables: dict[Hashable, pd.DataFrame] = {}
        self._raws: dict[Hashable, tuple[Robot, Signals]] = {}
        self._motions: dict[Hashable, tuple[Robot, Motion]] = {}

    @classmethod
    def of(cls, source: Any) -> Recording:
        """A recording as it is, anything else opened as one.

        Parameters
        ----------
        source : Recording, path, DataFrame, mapping or tuple of arrays

        Returns
        -------
        Recording

        Raises
        ------
        InputError
            It is no log.
        """
        return source if isinstance(source, Recording) else cls(source)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the log itself."""
        return Recording, (self.source,)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All of it, in memory; of bags see `table`."""
        if self.name:
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
        """All of it; of a bag this topic, or the one that holds the robot's joints.

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
            The file cannot be read, with what is wrong.
        """
        if not (self.name and (format_of(self.name).topics or has_magic(self.name))):
            return self.frame
        key = topic, robot.joints
        if key not in self._tables:
            self._tables[key] = read_log(self.source, topic=topic, joints=robot.joints)
        return self._tables[key]

    def raw(
        self, robot: Robot, *, torque: Torque = True, **options: Unpack[ReadOptions]
    ) -> Signals:
        """Its numbers in SI on the joints' side.

        Parameters
        ----------
        robot : Robot
        torque : bool or collection of str
            Whether torques are needed, or the joints whose torques are.
        **options
            `feasid.options.tables.ReadOptions`.

        Returns
        -------
        Signals

        Raises
        ------
        LogError, InputError
            What is wrong with the log or an option, by name.
        """
        chosen = completed(ReadOptions, options, "a log")
        key = _key(robot, torque, chosen)
        if key not in self._raws:
            table = self.table(robot, chosen["topic"])
            self._raws[key] = robot, read_raw(table, robot, torque=torque, **chosen)
        return self._raws[key][1]

    def motion(
        self, robot: Robot, *, torque: Torque = True, **options: Unpack[LogOptions]
    ) -> Motion:
        """Its runs of signals, see `feasid.logs.frame.prepare`.

        Parameters
        ----------
        robot : Robot
        torque : bool or collection of str
            Whether torques are needed, or the joints whose torques are.
        **options
            `feasid.options.tables.LogOptions`.

        Returns
        -------
        Motion

        Raises
        ------
        LogError, InputError
            What is wrong with the log or an option, by name.
        """
        chosen = completed(LogOptions, options, "a log")
        key = _key(robot, torque, chosen)
        if key not in self._motions:
            self._motions[key] = robot, self._prepared(robot, torque, chosen)
        return self._motions[key][1]

    def _prepared(self, robot: Robot, torque: Torque, chosen: dict[str, Any]) -> Motion:
        table = self.table(robot, chosen["topic"])
        if floats(table, robot):
            return floating_runs(table, robot, chosen, bool(torque))
        raw = self.raw(robot, torque=torque, **part(ReadOptions, chosen))
        return motion_of(table, raw, robot, chosen)

    def motions(
        self, robot: Robot, *, torque: Torque = True, **options: Unpack[LogOptions]
    ) -> Iterator[Motion]:
        """`motion`, in pieces where the log is streamed.

        Parameters
        ----------
        robot : Robot
        torque : bool or collection of str
            Whether torques are needed, or the joints whose torques are.
        **options
            `feasid.options.tables.LogOptions`.

        Returns
        -------
        iterator of Motion

        Raises
        ------
        LogError, InputError
            What is wrong with the log or an option, by name.
        """
        if self.streamed and not robot_floats(robot):
            yield from stream_log(self.source, robot, options, torque=torque)
        else:
            yield self.motion(robot, torque=torque, **options)


def _is_log(source: Any) -> bool:
    table = not hasattr(source, "collect") and hasattr(source, "columns")  # no lazy frames
    return isinstance(source, Mapping) or table or hasattr(source, "dask") or is_tuple_of_arrays(
        source
    )  # fmt: skip


def key_of(value: Any) -> Hashable:
    """Equal for equal options, arrays and mappings included."""
    if is_dataclass(value):
        return key_of(vars(value))
    if isinstance(value, Mapping):
        return tuple(sorted(((str(k), key_of(v)) for k, v in value.items()), key=repr))
    if isinstance(value, str | bytes | int | float | None):
        return (type(value).__name__, value)
    if isinstance(value, list | tuple):
        return tuple(key_of(v) for v in value)
    array = np.asarray(value)
    return (array.shape, array.dtype.str, array.tobytes())


def _key(robot: Robot, torque: Torque, chosen: dict[str, Any]) -> tuple[Any, ...]:
    """What signals of a log depend on; a robot's joint terms are not among it."""
    parts = (*robot.bodies, *robot.couplings, *robot.loops)
    motion = tuple(id(part) for part in parts), robot.active, key_of(robot.configuration)
    return motion, torque if isinstance(torque, bool) else tuple(torque), key_of(chosen)
