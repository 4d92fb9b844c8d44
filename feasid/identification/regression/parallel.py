"""Reducing one log or many: in this process, in others of this machine, or by an executor.

Every log becomes some megabytes of reduced data, which a tree of additions sums; a part waits for
its sibling. A log that fails, or whose worker dies twice, is reported; the others are kept. With a
folder of checkpoints, interrupted work continues with bit-identical results.

Workers are plain Python processes that import this module and nothing of the caller's script, so a
script needs no ``if __name__ == "__main__"``. They take pickled logs from standard input, where
the end of file ends them, and one that dies takes one log with it.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Semaphore, Thread
from typing import IO, Any, TypeAlias

import numpy as np

import feasid
from feasid.core.errors import FeasidError, LogError, NotEnoughDataError, OutputError
from feasid.core.files import ASIDE, is_regular, write_atomically
from feasid.core.memo import compute_once
from feasid.core.notes import Note
from feasid.core.progress import step
from feasid.core.threads import VARIABLES, one_thread
from feasid.identification.regression.equations import EquationReducer
from feasid.identification.regression.triangle import FILE_VERSION, Reduced, Reducer, fingerprint_of
from feasid.logs.motion import Motion, MotionTally
from feasid.logs.recording import Recording, content_digest, hashable_key, read_motions
from feasid.options.complete import complete_options
from feasid.options.tables import LogOptions
from feasid.robot.description import Robot

BOOT = (
    "import pickle, sys\nsys.path[:] = pickle.load(sys.stdin.buffer)\nfrom "
    "feasid.identification.regression.parallel import serve_jobs\nserve_jobs(sys.stdin.buffer)\n"
)

PACKAGE_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(feasid.__file__)))
"""Where feasid is imported from."""

TRIES = 2
"""Number of attempts for a log whose worker died, because another log may have been the cause."""

SMALLEST = 1e-30
"""Largest torque of a log, in the norm of its rows, that is none [N m]: below it lies no robot."""

AHEAD = 2
"""Results per worker that may wait for delivery; a worker that dies loses no more than these."""

BLOCK_OF_LOGS = 8
"""Largest number of logs that an executor's worker adds: 3 MB come back of them, not of each."""

BLOCK = 31 * 2**20
"""Released at the start, it teaches glibc to keep blocks of its size for other arrays [bytes]."""

Job = Callable[[Any], Any]


def run_jobs(job: Job, logs: Sequence[Any], workers: int) -> Iterator[tuple[int, Any]]:
    """Yield (number of the log, result) as they come; dead workers give a `LogError`."""
    waiting: SimpleQueue[int] = SimpleQueue()
    for k in range(len(logs)):
        waiting.put(k)
    done: SimpleQueue[tuple[int, Any]] = SimpleQueue()
    count = min(workers, len(logs))
    room = Semaphore(AHEAD * count)
    crew = [_Worker(job, logs, waiting, done, room) for _ in range(count)]
    threads = [Thread(target=worker.run, daemon=True) for worker in crew]
    for thread in threads:
        thread.start()
    try:
        for _ in logs:
            yield done.get()
            room.release()
    finally:
        for worker in crew:
            worker.stop()
        for thread in threads:
            thread.join()


class _Worker:
    """One process at a time, and the thread that feeds it."""

    def __init__(
        self,
        job: Job,
        logs: Sequence[Any],
        waiting: SimpleQueue[int],
        done: SimpleQueue[tuple[int, Any]],
        room: Semaphore,
    ) -> None:
        self.job, self.logs = job, logs
        self.waiting, self.done, self.room = waiting, done, room
        self.process: subprocess.Popen[bytes] | None = None
        self.stopped = False
        self.lock = Lock()

    def run(self) -> None:
        with suppress(Empty):
            while self.room.acquire() and not self.stopped:
                k = self.waiting.get_nowait()
                self.done.put((k, self._result_of_log(k)))
        self._kill()

    def stop(self) -> None:
        """Call it from another thread: running processes are killed, and no new one is started."""
        with self.lock:
            self.stopped = True
            # A thread that waits for room wakes up and sees that it is stopped.
            self.room.release()
            if self.process is not None:
                self.process.kill()

    def _result_of_log(self, k: int) -> Any:
        """What the process, which is started if need be, answers to a log."""
        status: int | None = None
        for _ in range(TRIES):
            try:
                content = pickle.dumps(self.logs[k])
                with self.lock:
                    if self.stopped:
                        raise EOFError
                    self.process = self.process or start_worker(self.job)
                process = self.process
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(content)
                process.stdin.flush()
                return pickle.load(process.stdout)
            except (EOFError, OSError, pickle.UnpicklingError):
                status = self._kill()
            except Exception as error:  # what cannot be pickled
                return LogError(f"cannot be given to a worker process: {error}")
        return LogError(f"its worker process died {TRIES} times (exit status {status})")

    def _kill(self) -> int | None:
        """Kill the process and return its exit status."""
        process, self.process = self.process, None
        if process is None:
            return None
        process.kill()
        status = process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        return status


def start_worker(job: Job) -> subprocess.Popen[bytes]:
    """Start a process and send it its job; Ctrl-C does not reach its session.

    It does not import from relative folders, so modules in the folder of the logs are not executed.
    """
    folders = [folder for folder in sys.path if os.path.isabs(folder)]
    if PACKAGE_FOLDER not in folders:
        folders.insert(0, PACKAGE_FOLDER)
    # Two pickles: the job's modules are found only after the first one has set the path.
    head = pickle.dumps(folders) + pickle.dumps(job)
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", BOOT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # One thread of BLAS for each process, unless the caller's environment says otherwise.
        env={**dict.fromkeys(VARIABLES, "1"), **os.environ},
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(head)
    return process


def serve_jobs(tasks: IO[bytes]) -> None:
    """Apply the job to every log that arrives, until the input ends or the reader is gone."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anybody prints is no answer
    job = pickle.load(tasks)
    np.empty(BLOCK, np.uint8)  # else a sixth of the time goes into pages given back and taken anew
    with suppress(EOFError, BrokenPipeError):
        while True:
            pickle.dump(job(pickle.load(tasks)), answers)
            answers.flush()


CHECKPOINT_SUFFIX = ".part"

Source: TypeAlias = "Recording | Reduced"


@dataclass(frozen=True, eq=False)
class LogTask:
    """A log and how it is read."""

    source: Source
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The path of a source that was given as a path."""
        return self.source.name if isinstance(self.source, Recording) else ""


def reduce_task(
    task: LogTask,
    robot: Robot,
    columns: Sequence[int],
    measured: Sequence[str] | None = None,
    folder: Path | None = None,
    keep: bool | None = False,
) -> Reduced:
    """Reduce one log, or read what it gave before with this robot and these options.

    The torques of joints that are not `measured` are not read; `folder`: of checkpoints; `keep`:
    whether the result and its rows stay with a log in memory, None: nor what was read of it.
    """
    if isinstance(task.source, Reduced):
        return task.source
    log, options = task.source, task.options
    if keep is None:
        log = Recording(log.source)  # in memory only until it is reduced
    if not keep or log.streamed:
        return _reduce_log(log, options, robot, columns, measured, folder)
    reading = complete_options(LogOptions, options, "a log")
    # Robots of one fingerprint share the sum; the values that a description states may differ.
    key = fingerprint_of(robot, columns), hashable_key({**reading, "measured": measured})
    job = partial(_reduce_log, log, options, robot, columns, measured, folder, keep=True)
    return replace(compute_once(log.derived, key, job), robot=robot)


def _reduce_log(
    log: Recording,
    reading: Mapping[str, Any],
    robot: Robot,
    columns: Sequence[int],
    measured: Sequence[str] | None,
    folder: Path | None,
    keep: bool = False,
) -> Reduced:
    """Reduce a log, or read its checkpoint."""
    checkpoint = None
    # The content of a partition of Dask, which would name its file, is not known before it is read.
    if folder is not None and not hasattr(log.source, "dask"):
        options = hashable_key({**reading, "measured": measured})
        meaning = FILE_VERSION, fingerprint_of(robot, columns), content_digest(log), options
        name = hashlib.sha256(repr(meaning).encode()).hexdigest()
        checkpoint = folder / f"{name}{CHECKPOINT_SUFFIX}"
        if is_regular(checkpoint):
            with suppress(FeasidError):  # damaged: it is made again
                return Reduced.load(checkpoint)
    motions = read_motions(log, robot, torque=True if measured is None else measured, **reading)
    reduced = reduce_motions(motions, robot, columns, keep)
    if max(float(np.abs(t[:, -1]).max()) for t in reduced.triangles) < SMALLEST:
        raise LogError(
            "every torque of the log is zero: record the motors' torques (columns tau_JOINT), or "
            "the commands of a servo (command='position')"
        )
    if source := Path(log.name).name:
        reduced = replace(reduced, sources=(source,), digests=(content_digest(log),))
    if checkpoint is not None:
        write_atomically(checkpoint, reduced.to_bytes(), overwrite=True, noted=False)
    return reduced


def reduce_motions(
    motions: Iterable[Motion], robot: Robot, columns: Sequence[int], keep: bool = False
) -> Reduced:
    """Reduce prepared runs, a whole log or piece after piece; `keep`: rows stay with their runs."""
    reducer: Reducer | EquationReducer = Reducer(robot, columns)
    tally, power = MotionTally(), np.zeros(robot.dof)
    for motion in motions:
        if motion.filtering == "equations" and motion.cutoff and isinstance(reducer, Reducer):
            free = any(run.free is not None for run in motion.runs)
            reducer = EquationReducer(robot, columns, motion.cutoff, free, keep)
        for run in motion.runs:
            if isinstance(reducer, EquationReducer):
                reducer.add(run)
            else:
                reducer.add(run.q, run.dq, run.ddq, run.tau)
                power += 0.0 if run.applied is None else np.sum(run.applied**2, axis=0)
        tally.count(motion)
    if isinstance(reducer, EquationReducer):
        return reducer.result(tally.notes)
    if not reducer.samples:
        raise NotEnoughDataError(f"no usable samples: {', '.join(tally.notes)}")
    reduced = reducer.result(tally.notes, tally.cutoff)
    return replace(reduced, power=power) if power.any() else reduced


@contextmanager
def checkpoint_folder(
    folder: Path, *, fresh: bool, report: Callable[[int], object]
) -> Iterator[Path]:
    """The folder, made if necessary and removed after success; files of others in it stay.

    When `fresh`, nothing in it is used again. `report` gets the number of logs whose results are
    kept after an interruption, if there are any.
    """

    def checkpoints() -> list[Path]:
        return [*folder.glob(f"*{CHECKPOINT_SUFFIX}")]

    def remove() -> None:
        with suppress(OSError):
            # A worker that was interrupted may have left the file that it was writing.
            for part in (*checkpoints(), *folder.glob(f"{ASIDE}*")):
                part.unlink()
            folder.rmdir()

    if fresh:
        remove()
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make {folder}: {error.strerror}", path=str(folder)) from error
    try:
        yield folder
    except BaseException:  # an interrupt, too: finished logs need not be reduced again
        if count := len(checkpoints()):
            report(count)
        else:
            remove()
        raise
    remove()


ReduceJob = Callable[[Any], Reduced]
Block: TypeAlias = "tuple[tuple[int, Any], ...]"


@dataclass(frozen=True)
class LogFailure:
    """A log that could not be reduced, and why."""

    log: str
    message: str

    @classmethod
    def from_error(cls, k: int, log: Any, error: Exception) -> LogFailure:
        """The failure of log number `k`, by its name where it has one."""
        return cls(str(getattr(log, "name", "")) or f"log {k + 1}", str(error))


@dataclass(frozen=True)
class FleetSum:
    """The sum of what was reduced (None when nothing was), and what failed."""

    total: Reduced | None
    failed: tuple[LogFailure, ...]

    def require_total(self, on_error: str) -> Reduced:
        """The sum; failures are an error, or with ``on_error="skip"`` notes.

        Raises LogError: with attributes ``failed`` and ``partial``, the sum of the others.
        """
        listed = "; ".join(f"{f.log}: {f.message}" for f in self.failed)
        if self.total is None or (self.failed and on_error != "skip"):
            remark = "" if self.total is None else " (error.partial holds the others)"
            raise LogError(
                f"{len(self.failed)} log(s) failed{remark}: {listed}",
                failed=self.failed,
                partial=self.total,
            )
        if not self.failed:
            return self.total
        text = f"{len(self.failed)} log(s) left out: {listed}"
        return self.total.with_notes(Note(text, "failed", logs=[f.log for f in self.failed]))


def reduce_all(
    job: ReduceJob, logs: Sequence[Any], *, workers: int = 1, executor: Executor | None = None
) -> FleetSum:
    """Apply `job` to every log and add the results."""
    # The interface of executors has no number of workers, but those of the standard library do.
    workers = getattr(executor, "_max_workers", workers)
    # A block is a branch of the tree: a power of two. Four turns keep all workers at work.
    each = max(1, min(BLOCK_OF_LOGS, len(logs) // (4 * workers))) if executor is not None else 1
    size = 1 << (each.bit_length() - 1)
    blocks = [tuple(enumerate(logs[k : k + size], k)) for k in range(0, len(logs), size)]
    tree = _Tree(len(blocks))
    failed: list[tuple[int, LogFailure]] = []
    results: Iterable[tuple[int, FleetSum | Exception]]
    if executor is not None:
        results = _run_on_executor(job, blocks, executor, workers)
    elif workers > 1 and len(logs) > 1:
        results = run_jobs(partial(add_block, job), blocks, workers)
    else:
        results = ((k, add_block(job, block)) for k, block in enumerate(blocks))
    done = 0
    with step("reducing") as advance:
        for k, result in results:
            if isinstance(result, Exception):
                lost = (LogFailure.from_error(*log, result) for log in blocks[k])
                result = FleetSum(None, tuple(lost))
            tree.add(k, result.total)
            failed += [(k, failure) for failure in result.failed]
            done += len(blocks[k])
            advance(done, len(logs))
    # In the order of the logs, whatever finished first.
    failed.sort(key=lambda item: item[0])
    return FleetSum(tree.total, tuple(f for _, f in failed))


class _Tree:
    """A balanced sum in the order of the logs, the same bits whatever finishes first."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.waiting: dict[tuple[int, int], Reduced | None] = {}
        self.total: Reduced | None = None

    def add(self, k: int, part: Reduced | None) -> None:
        """Add log `k` (None: it failed) and all sums that it completes."""
        level, width = 0, self.count
        while width > 1:
            # The last of an odd number of sums has no sibling, and goes up alone.
            if k ^ 1 < width:
                if (level, k ^ 1) not in self.waiting:
                    self.waiting[level, k] = part
                    return
                sibling = self.waiting.pop((level, k ^ 1))
                first, second = (sibling, part) if k % 2 else (part, sibling)
                part = first + second if first and second else first or second
            level, k, width = level + 1, k // 2, (width + 1) // 2
        self.total = part


def add_block(job: ReduceJob, block: Sequence[tuple[int, Any]]) -> FleetSum:
    """The sum of logs with their numbers, added as the tree of all logs adds them."""
    tree, failed = _Tree(len(block)), []
    for place, (k, log) in enumerate(block):
        try:
            part = job(log)
        except (FeasidError, OSError, MemoryError) as error:
            part = None
            failed.append(LogFailure.from_error(k, log, error))
        tree.add(place, part)
    return FleetSum(tree.total, tuple(failed))


def _run_on_executor(
    job: ReduceJob, blocks: Sequence[Block], executor: Executor, workers: int
) -> Iterator[tuple[int, FleetSum | Exception]]:
    """Results as they come; the job goes out in pickled form, see `_answer`."""
    packed, places = pickle.dumps(job), dict[Future[FleetSum], int]()
    following = iter(range(len(blocks)))
    try:
        while True:
            for k in islice(following, AHEAD * workers - len(places)):
                try:
                    places[executor.submit(_answer, packed, blocks[k])] = k
                except RuntimeError as cause:  # all its workers died, or it was shut down
                    refusal = LogError(f"the executor took no more logs: {cause}")
                    yield from ((lost, refusal) for lost in (k, *following))
            if not places:
                return
            for future in wait(places, return_when=FIRST_COMPLETED).done:
                k, error = places.pop(future), future.exception()
                yield k, LogError(f"its worker died: {error}") if error else future.result()
            del future  # so that no worker keeps what was delivered
    finally:
        for future in places:
            future.cancel()


@one_thread()
def _answer(packed: bytes, block: Block) -> FleetSum:
    """What another process gives for some logs; BLAS gets one thread there, too."""
    return add_block(_unpack_job(packed), block)


_unpack_job = lru_cache(maxsize=1)(pickle.loads)
"""The job of all logs: what it computes of the robot is computed once in a process."""
