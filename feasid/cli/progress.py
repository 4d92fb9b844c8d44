"""Progress on standard error: one line that is rewritten on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from feasid.cli.terminal import redraw

LINES = 10
"""Plain lines of a long work, where nobody watches a line that is rewritten."""


@contextmanager
def step(text: str) -> Iterator[None]:
    """Say what is being done and, afterwards, how long it took; only on a terminal."""
    watched = sys.stderr.isatty()
    start = time.monotonic()
    if watched:
        redraw(f"{text} ...")
    try:
        yield
    except BaseException:
        if watched:
            print(file=sys.stderr)
        raise
    if watched:
        redraw(f"{text}: {time.monotonic() - start:.1f} s")
        print(file=sys.stderr)


@contextmanager
def bar(text: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function of (done, all) that draws progress and the time left."""
    watched = sys.stderr.isatty()
    start = time.monotonic()

    def show(done: int, total: int) -> None:
        left = (time.monotonic() - start) / done * (total - done)
        line = f"{text}: {done} of {total}, {left:.0f} s left  "
        if watched:
            redraw(line)
        elif total > 1 and done * LINES // total > (done - 1) * LINES // total:
            print(line.rstrip(), file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if watched:
            print(file=sys.stderr)
