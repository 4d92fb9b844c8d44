"""Jobs done one after the other, in the order in which they come: at once, or by a worker thread.

What a job finds has been left by the one before it, so that results are the same either way.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import RLock
from typing import Any, TypeVar

from feasid.errors import InputError

Result = TypeVar("Result")


class JobQueue:
    """Jobs of one owner.

    Parameters
    ----------
    threaded : bool
        Whether a thread does them, which begins with the first one.
    most : int
        Jobs that may wait for it.

    Attributes
    ----------
    lock : RLock
        Held by whoever changes what the owner's callers share.
    """

    def __init__(self, threaded: bool, most: int) -> None:
        self.threaded, self.most = threaded, most
        self._posted = self._done = 0
        self._error: BaseException | None = None
        self._begin()

    def _begin(self) -> None:
        self.lock = RLock()
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    @property
    def is_full(self) -> bool:
        """Whether as many jobs wait as may."""
        return self._posted - self._done >= self.most

    def post(self, job: Callable[..., Any], *arguments: Any) -> None:
        """Have a job done; what it raises is raised by the next `raise_error`, or at once."""
        if not self.threaded:
            job(*arguments)
            return
        pool = self._workers()
        self._posted += 1
        pool.submit(self._do, job, arguments)

    def _do(self, job: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        try:
            job(*arguments)
        except BaseException as error:  # the caller's, at its next call
            self._error = error
        finally:
            self._done += 1

    def call(self, job: Callable[..., Result], *arguments: Any) -> Result:
        """Result of a job, after all that were posted before it."""
        if not self.threaded:
            with self.lock:
                return job(*arguments)
        future: Future[Result] = self._workers().submit(job, *arguments)
        return future.result()

    def wait(self) -> None:
        """Return when all jobs are done."""
        if self._pool is not None or self._posted > self._done:
            self.call(int)

    def raise_error(self) -> None:
        """Raise what a posted job has raised, once."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def close(self) -> None:
        """Finish the jobs and end the thread; later jobs are done at once."""
        self.wait()
        if self._pool is not None:
            self._pool.shutdown()
        self.threaded, self._pool = False, None

    def _workers(self) -> ThreadPoolExecutor:
        """The thread; a forked process, which has none, begins another if nothing was under way."""
        if self._process != os.getpid():
            if self._posted > self._done:
                raise InputError(
                    "this process was forked while the online fit was learning: use the fit in the "
                    "process that made it, or call online.close() before forking"
                )
            self._begin()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="feasid-online")
        return self._pool

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in ("lock", "_pool", "_process")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()
