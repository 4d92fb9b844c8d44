"""One log reduced: the work that is done here, in a worker process or on a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from feasid.errors import NotEnoughDataError
from feasid.logs.digest import digest
from feasid.logs.motion import Motion, Tally
from feasid.logs.recording import Recording
from feasid.reduction.equations import EquationReducer
from feasid.reduction.triangle import Reduced, Reducer
from feasid.robot.description import Robot

Source: TypeAlias = "Recording | Reduced"


@dataclass(frozen=True, eq=False)
class Work:
    """A log and how it is read."""

    source: Source
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The path that was given, if it was one."""
        return self.source.name if isinstance(self.source, Recording) else ""


def reduce_task(
    task: Work, robot: Robot, columns: Sequence[int], measured: Sequence[str] | None = None
) -> Reduced:
    """Reduce one log; the torques of joints that are not `measured` are not read."""
    if isinstance(task.source, Reduced):
        return task.source
    torque = True if measured is None else measured
    motions = task.source.motions(robot, torque=torque, **task.options)
    reduced = reduce_motions(motions, robot, columns)
    name = Path(task.name).name
    if not name:
        return reduced
    return replace(reduced, sources=(name,), digests=(digest(task.source),))


def reduce_motions(motions: Iterable[Motion], robot: Robot, columns: Sequence[int]) -> Reduced:
    """Reduce prepared runs, a whole log or piece after piece."""
    reducer: Reducer | EquationReducer = Reducer(robot, columns)
    tally = Tally()
    for motion in motions:
        if motion.filtering == "equations" and motion.cutoff and isinstance(reducer, Reducer):
            free = any(run.free is not None for run in motion.runs)
            reducer = EquationReducer(robot, columns, motion.cutoff, free)
        for run in motion.runs:
            if isinstance(reducer, EquationReducer):
                reducer.add(run)
            else:
                reducer.add(run.q, run.dq, run.ddq, run.tau)
        tally.add(motion)
    if isinstance(reducer, EquationReducer):
        return reducer.result(tally.notes)
    if not reducer.samples:
        raise NotEnoughDataError(f"no usable samples: {', '.join(tally.notes)}")
    return reducer.result(tally.notes, tally.cutoff)
