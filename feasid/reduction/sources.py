"""One log, whatever it is: a DataFrame, a file read whole, or a file read piece by piece."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from feasid.errors import InputError
from feasid.logs.frame import prepare
from feasid.logs.motion import Motion
from feasid.reduction.triangle import Reduced, Reducer
from feasid.robot.description import Robot

if TYPE_CHECKING:
    import pandas as pd


def open_log(log: pd.DataFrame | str | Path) -> pd.DataFrame:
    """A DataFrame as it is, a path through `read_log`."""
    if isinstance(log, str | Path):
        from feasid.logs.read.readers import read_log

        return read_log(log)
    if not hasattr(log, "columns"):
        raise InputError(f"a log is a DataFrame, a path or reduced data, not {type(log).__name__}")
    return log


def reduce_log(
    log: Any, robot: Robot, columns: Sequence[int], options: Mapping[str, Any]
) -> Reduced:
    """Reduce one log; Parquet files are streamed, files of reduced data are loaded.

    Parameters
    ----------
    log : DataFrame, path, Reduced or a delayed DataFrame
    robot : Robot
    columns : sequence of int
        ``base.independent``.
    options : mapping
        Those of `feasid.logs.frame.prepare`.
    """
    if isinstance(log, Reduced):
        return log
    if hasattr(log, "dask"):  # a partition that is not computed yet, on the worker that has it
        log = log.compute(scheduler="synchronous")
    if isinstance(log, str | Path):
        if str(log).endswith(".reduced"):
            return Reduced.load(log)
        if str(log).endswith((".parquet", ".pq")) and Path(log).is_file():
            from feasid.reduction.stream import reduce_parquet

            return reduce_parquet(log, robot, list(columns), options)
    reduced = reduce_motion(prepare(open_log(log), robot, **options), robot, columns)
    return replace(reduced, sources=(Path(log).name,)) if isinstance(log, str | Path) else reduced


def reduce_motion(motion: Motion, robot: Robot, columns: Sequence[int]) -> Reduced:
    """Reduce prepared runs."""
    reducer = Reducer(robot, columns)
    for run in motion.runs:
        reducer.add(run.q, run.dq, run.ddq, run.tau)
    return reducer.result(motion.notes, motion.cutoff)
