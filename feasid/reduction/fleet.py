"""Reducing one log or many: in this process, in others of this machine, or on a Dask cluster.

Every log becomes a few kilobytes of reduced data, and reduced data add, so all that is shared is
a tree of additions. A log that fails, or whose worker process dies twice, is reported; the others
are kept. With a folder of checkpoints, interrupted work goes on where it was and gives the same
bits: each log's result is kept by the content of the log, and they are added in the same order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from feasid.core.files import is_folder, is_regular, write_atomically
from feasid.core.notes import Note
from feasid.errors import FeasidError, LogError, NotEnoughDataError, OutputError
from feasid.logs.motion import Motion, Tally
from feasid.logs.recording import Recording, content_digest, key_of
from feasid.reduction.equations import EquationReducer
from feasid.reduction.triangle import FILE_VERSION, Reduced, Reducer, fingerprint_of
from feasid.reduction.worker import run_jobs
from feasid.robot.description import Robot

Source: TypeAlias = "Recording | Reduced"


@dataclass(frozen=True, eq=False)
class LogTask:
    """A log and how it is read."""

    source: Source
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The path that was given, if it was one."""
        return self.source.name if isinstance(self.source, Recording) else ""


def reduce_task(
    task: LogTask, robot: Robot, columns: Sequence[int], measured: Sequence[str] | None = None
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
    return replace(reduced, sources=(name,), digests=(content_digest(task.source),))


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


CHECKPOINT_SUFFIX = ".part"


def reduce_with_checkpoint(
    task: LogTask,
    robot: Robot,
    columns: Sequence[int],
    folder: Path,
    measured: Sequence[str] | None = None,
) -> Reduced:
    """Reduce one log, or read what it gave before with this robot and these options."""
    if not isinstance(task.source, Recording) or hasattr(task.source.source, "dask"):
        return reduce_task(task, robot, columns, measured)
    own = key_of({**task.options, "measured": measured})
    meaning = FILE_VERSION, fingerprint_of(robot, columns), content_digest(task.source), own
    path = folder / f"{hashlib.sha256(repr(meaning).encode()).hexdigest()}{CHECKPOINT_SUFFIX}"
    if is_regular(path):
        with suppress(FeasidError):  # damaged: it is made again
            return Reduced.load(path)
    reduced = reduce_task(task, robot, columns, measured)
    write_atomically(path, reduced.to_bytes(), overwrite=True, noted=False)
    return reduced


def begin_checkpoints(folder: Path, fresh: bool) -> None:
    """Make the folder; when `fresh`, nothing in it is used again.

    Raises
    ------
    OutputError
        It cannot be made.
    """
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make {folder}: {error.strerror}", path=str(folder)) from error
    if fresh:
        _remove_parts(folder)


def remove_checkpoints(folder: Path) -> None:
    """Remove the folder; what is not ours in it stays."""
    if is_folder(folder):
        _remove_parts(folder)
        with suppress(OSError):
            folder.rmdir()


def count_checkpoints(folder: Path) -> int:
    """How many logs have results in the folder."""
    return len(list(folder.glob(f"*{CHECKPOINT_SUFFIX}")))


def _remove_parts(folder: Path) -> None:
    for part in folder.glob(f"*{CHECKPOINT_SUFFIX}"):
        with suppress(OSError):
            part.unlink()


Job = Callable[[Any], Reduced]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Failure:
    """A log that could not be reduced, and why."""

    log: str
    message: str


@dataclass(frozen=True)
class FleetSum:
    """The sum of what was reduced (None when nothing was), and what failed."""

    total: Reduced | None
    failed: tuple[Failure, ...]

    def require_total(self, on_error: str) -> Reduced:
        """The sum; failures are an error, or with ``on_error="skip"`` notes.

        Raises
        ------
        LogError
            With attributes ``failed`` and ``partial``, the sum of the others.
        """
        listed = "; ".join(f"{f.log}: {f.message}" for f in self.failed)
        if self.total is None or (self.failed and on_error != "skip"):
            rest = "" if self.total is None else " (error.partial holds the others)"
            raise LogError(
                f"{len(self.failed)} log(s) failed{rest}: {listed}",
                failed=self.failed,
                partial=self.total,
            )
        if not self.failed:
            return self.total
        text = f"{len(self.failed)} log(s) left out: {listed}"
        return self.total.with_notes(Note(text, "failed", logs=[f.log for f in self.failed]))


def reduce_all(
    job: Job,
    logs: Sequence[Any],
    *,
    workers: int = 1,
    client: Any = None,
    progress: Progress | None = None,
) -> FleetSum:
    """Apply `job` to every log and add the results.

    Parameters
    ----------
    job : callable
        From a log to reduced data; must be picklable for more than one worker.
    logs : sequence
    workers : int
        Processes on this machine; 1 works in this one.
    client : dask.distributed.Client, optional
        Work there instead.
    progress : callable, optional
        Called with (done, all) after each log.
    """
    parts: list[Reduced | None] = [None] * len(logs)
    failed: list[tuple[int, Failure]] = []
    for done, (k, result) in enumerate(_run_all(job, logs, workers, client), start=1):
        if isinstance(result, Reduced):
            parts[k] = result
        else:
            failed.append((k, Failure(_log_name(logs[k], k), str(result))))
        if progress is not None:
            progress(done, len(logs))
    failed.sort(key=lambda item: item[0])
    return FleetSum(add_all([p for p in parts if p is not None]), tuple(f for _, f in failed))


def add_all(parts: Sequence[Reduced]) -> Reduced | None:
    """Sum as a balanced tree, in the order given: the same whatever finished first."""
    level = list(parts)
    while len(level) > 1:
        pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
        level = [pair[0] + pair[1] if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0] if level else None


def _run_all(
    job: Job, logs: Sequence[Any], workers: int, client: Any
) -> Iterator[tuple[int, Reduced | Exception]]:
    if client is not None:
        yield from _on_cluster(job, logs, client)
    elif workers > 1 and len(logs) > 1:
        yield from run_jobs(partial(attempt, job), logs, workers)
    else:
        for k, log in enumerate(logs):
            yield k, attempt(job, log)


def attempt(job: Job, log: Any) -> Reduced | Exception:
    """The job's result, or the error that this log raised."""
    try:
        return job(log)
    except (FeasidError, OSError, MemoryError) as error:
        return LogError(str(error)) if isinstance(error, FeasidError) else error


def _on_cluster(
    job: Job, logs: Sequence[Any], client: Any
) -> Iterator[tuple[int, Reduced | Exception]]:
    completed: Any = import_module("distributed").as_completed
    futures = client.map(attempt, [job] * len(logs), list(logs), pure=False)
    place = {future.key: k for k, future in enumerate(futures)}
    for future in completed(futures):
        if future.status == "finished":
            yield place[future.key], future.result()
        else:
            yield place[future.key], LogError(f"its worker died: {future.exception()}")


def _log_name(log: Any, k: int) -> str:
    return str(getattr(log, "name", "")) or f"log {k + 1}"
