"""Streams and progress of a command.

Everything that is printed passes `EscapingStream`, which escapes control characters. Progress goes
to standard error: one line that is rewritten on a terminal, plain lines elsewhere.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from feasid.core.text import escape_controls


class EscapingStream:
    """A text stream that escapes control characters; otherwise it behaves like the wrapped
    stream.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write the text, with escapes for characters that do not print or cannot be encoded."""
        safe = escape_controls(text)
        try:
            self.stream.write(safe)
        except UnicodeEncodeError as error:
            self.stream.write(
                safe.encode(error.encoding, "backslashreplace").decode(error.encoding)
            )
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def escape_streams() -> Iterator[None]:
    """Standard output and standard error behind gates, and flushed at the end."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(EscapingStream, streams)
    try:
        yield
        streams[0].flush()
    finally:
        sys.stdout, sys.stderr = streams


def redraw_line(text: str) -> None:
    """Write over the current line of standard error, without ending it."""
    stream = getattr(sys.stderr, "stream", sys.stderr)
    stream.write(f"\r{escape_controls(text, keep='')}")
    stream.flush()


def discard_output() -> None:
    """Discard output that could not be written, so that Python does not retry at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


LINES = 10  #: Progress as plain lines, for output that is not a terminal.


@contextmanager
def report_step(text: str) -> Iterator[None]:
    """Print the current step and, afterwards, its duration; only on a terminal."""
    watched = sys.stderr.isatty()
    start = time.monotonic()
    if watched:
        redraw_line(f"{text} ...")
    try:
        yield
    except BaseException:
        if watched:
            print(file=sys.stderr)
        raise
    if watched:
        redraw_line(f"{text}: {time.monotonic() - start:.1f} s")
        print(file=sys.stderr)


@contextmanager
def progress_bar(text: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function of (done, all) that draws progress and the time left."""
    watched = sys.stderr.isatty()
    start = time.monotonic()

    def show(done: int, total: int) -> None:
        left = (time.monotonic() - start) / done * (total - done)
        line = f"{text}: {done} of {total}, {left:.0f} s left  "
        if watched:
            redraw_line(line)
        elif total > 1 and done * LINES // total > (done - 1) * LINES // total:
            print(line.rstrip(), file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if watched:
            print(file=sys.stderr)
