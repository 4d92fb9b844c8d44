"""Progress on standard error: one line that is rewritten, silent when nobody watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def step(text: str) -> Iterator[None]:
    """Say what is being done and, afterwards, how long it took; only on a terminal."""
    watched = sys.stderr.isatty()
    start = time.monotonic()
    if watched:
        print(f"{text} ...", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if watched:
            print(f"\r{text}: {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)


@contextmanager
def bar(text: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function of (done, all) that draws progress and the time left; only on a terminal."""
    watched = sys.stderr.isatty()
    start = time.monotonic()

    def show(done: int, total: int) -> None:
        if watched:
            left = (time.monotonic() - start) / done * (total - done)
            print(f"\r{text}: {done} of {total}, {left:.0f} s left  ", end="", file=sys.stderr)

    try:
        yield show
    finally:
        if watched:
            print(file=sys.stderr)
