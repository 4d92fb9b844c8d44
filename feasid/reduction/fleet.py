"""Many logs at once: on the cores of this machine, or on a Dask cluster that exists already.

Every log becomes a few kilobytes of reduced data, and reduced data add, so all that is shared is
a tree of additions. A log that fails, or whose worker process dies twice, is reported; the others
are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from feasid.core.notes import Note
from feasid.errors import FeasidError, LogError
from feasid.reduction.triangle import Reduced
from feasid.reduction.worker import results

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

    def checked(self, on_error: str) -> Reduced:
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
    for done, (k, result) in enumerate(_results(job, logs, workers, client), start=1):
        if isinstance(result, Reduced):
            parts[k] = result
        else:
            failed.append((k, Failure(_name(logs[k], k), str(result))))
        if progress is not None:
            progress(done, len(logs))
    failed.sort(key=lambda item: item[0])
    return FleetSum(add([p for p in parts if p is not None]), tuple(f for _, f in failed))


def add(parts: Sequence[Reduced]) -> Reduced | None:
    """Sum as a balanced tree, in the order given: the same whatever finished first."""
    level = list(parts)
    while len(level) > 1:
        pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
        level = [pair[0] + pair[1] if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0] if level else None


def _results(
    job: Job, logs: Sequence[Any], workers: int, client: Any
) -> Iterator[tuple[int, Reduced | Exception]]:
    if client is not None:
        yield from _on_cluster(job, logs, client)
    elif workers > 1 and len(logs) > 1:
        yield from results(partial(attempt, job), logs, workers)
    else:
        for k, log in enumerate(logs):
            yield k, attempt(job, log)


def attempt(job: Job, log: Any) -> Reduced | Exception:
    """The job's result, or the error that says what is wrong with this log."""
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


def _name(log: Any, k: int) -> str:
    return str(getattr(log, "name", "")) or f"log {k + 1}"
