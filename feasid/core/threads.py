"""Limit BLAS to one thread: with small matrices, waiting threads cost up to a factor of ten.

Measured on two busy cores: the packaged log is fitted in 4 s with one thread and in 16-32 s with
two. The command line sets the limit before NumPy is loaded; in a program that has NumPy loaded
already it needs threadpoolctl (the extra "fast"), and without it nothing is changed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from threading import Lock, get_ident
from typing import Any

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class _Limit:
    """The limit belongs to the process: the thread that sets it lifts it, others leave it alone.

    A thread must not save a limit that another one set: it would restore that in the end. OpenBLAS
    also ignores some threads that lift the limit of others.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.owner = 0
        self.depth = 0
        self.limits: Any = None
        self.controller: Any = None
        self.modules = 0  #: Number of modules when `controller` searched for loaded libraries.


_LIMIT = _Limit()


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS to one thread meanwhile, where threadpoolctl is installed; also a decorator."""
    try:
        controller = import_module("threadpoolctl").ThreadpoolController
    except ImportError:
        yield
        return
    limit, thread = _LIMIT, get_ident()
    with limit.lock:
        if not limit.depth:
            # The search takes 2.5 ms, a hundred times the limit: only an import can add to it.
            if len(sys.modules) != limit.modules:
                limit.controller, limit.modules = controller(), len(sys.modules)
            limit.limits = limit.controller.limit(limits=1, user_api="blas")
            limit.owner = thread
        limit.depth += limit.owner == thread
    try:
        yield
    finally:
        with limit.lock:
            limit.depth -= limit.owner == thread
            if not limit.depth and limit.limits is not None:
                limit.limits.restore_original_limits()
                limit.owner, limit.limits = 0, None


def limit_before_numpy() -> None:
    """Request one thread through the environment, unless the user has set it or NumPy is loaded."""
    if "numpy" not in sys.modules:
        for variable in VARIABLES:
            os.environ.setdefault(variable, "1")


def is_limited() -> bool:
    """Whether `one_thread` takes effect, or the environment asked for one thread anyway."""
    limit = os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS")
    return limit == "1" or find_spec("threadpoolctl") is not None
