"""Processes that work one log after another, each by itself, for as long as their parent lives.

They are plain Python processes that import this module and nothing of the caller's script, so a
script needs no ``if __name__ == "__main__"``. They take pickled logs from standard input, where
the end of file ends them, and one that dies takes one log with it.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import IO, Any

import numpy as np

from feasid.core.threads import VARIABLES
from feasid.errors import LogError

BOOT = (
    "import pickle, sys\n"
    "sys.path[:] = pickle.load(sys.stdin.buffer)\n"
    "from feasid.reduction.worker import work\n"
    "work(sys.stdin.buffer)\n"
)

TRIES = 2
"""How often a log is tried whose worker died: the death may have been another's fault."""

BLOCK = 31 * 2**20
"""Released at the start, it teaches glibc to keep blocks of its size for other arrays [bytes]."""

Job = Callable[[Any], Any]


def run_jobs(job: Job, logs: Sequence[Any], workers: int) -> Iterator[tuple[int, Any]]:
    """Yield (number of the log, result) as they come.

    Parameters
    ----------
    job : callable
        Picklable; what it returns too.
    logs : sequence
        Picklable.
    workers : int
        Processes at once.

    Yields
    ------
    A log whose workers died gives a `LogError`.
    """
    waiting: SimpleQueue[int] = SimpleQueue()
    for k in range(len(logs)):
        waiting.put(k)
    done: SimpleQueue[tuple[int, Any]] = SimpleQueue()
    crew = [_Worker(job, logs, waiting, done) for _ in range(min(workers, len(logs)))]
    threads = [Thread(target=worker.run, daemon=True) for worker in crew]
    for thread in threads:
        thread.start()
    try:
        for _ in logs:
            yield done.get()
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
    ) -> None:
        self.job, self.logs = job, logs
        self.waiting, self.done = waiting, done
        self.process: subprocess.Popen[bytes] | None = None
        self.stopped = False
        self.lock = Lock()

    def run(self) -> None:
        with suppress(Empty):
            while not self.stopped:
                k = self.waiting.get_nowait()
                self.done.put((k, self._result(k)))
        self._kill()

    def stop(self) -> None:
        """From another thread: whatever runs is killed, and nothing is started any more."""
        with self.lock:
            self.stopped = True
            if self.process is not None:
                self.process.kill()

    def _result(self, k: int) -> Any:
        status: int | None = None
        for _ in range(TRIES):
            try:
                return self._request(self.logs[k])
            except (EOFError, OSError, pickle.UnpicklingError):
                status = self._kill()
            except Exception as error:  # what cannot be pickled
                return LogError(f"cannot be given to a worker process: {error}")
        return LogError(f"its worker process died {TRIES} times (exit status {status})")

    def _request(self, log: Any) -> Any:
        """Send a log to the process, which is started if need be, and return its answer."""
        content = pickle.dumps(log)
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
    """Start a process and send it its job; Ctrl-C does not reach its session."""
    head = pickle.dumps(sys.path) + pickle.dumps(job)
    process = subprocess.Popen(
        [sys.executable, "-c", BOOT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**dict.fromkeys(VARIABLES, "1"), **os.environ},
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(head)
    return process


def work(tasks: IO[bytes]) -> None:
    """Apply the job to every log that arrives, until the input ends or the reader is gone."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anybody prints is no answer
    job = pickle.load(tasks)
    np.empty(BLOCK, np.uint8)  # else a sixth of the time goes into pages given back and taken anew
    with suppress(EOFError, BrokenPipeError):
        while True:
            log = pickle.load(tasks)
            pickle.dump(job(log), answers)
            answers.flush()
