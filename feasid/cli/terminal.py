"""The streams of a command: everything that is printed passes here and is harmless."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from feasid.core.text import harmless


class Gate:
    """A text stream whose text is made harmless; everything else is the stream's own."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write the text, escapes for whatever does not print or cannot be encoded."""
        safe = harmless(text)
        try:
            self.stream.write(safe)
        except UnicodeEncodeError as error:
            self.stream.write(
                safe.encode(error.encoding, "backslashreplace").decode(error.encoding)
            )
        return len(text)

    def redraw(self, text: str) -> None:
        """Write over the current line, without ending it."""
        self.stream.write(f"\r{harmless(text, keep='')}")
        self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def gated() -> Iterator[None]:
    """Standard output and standard error behind gates, and flushed at the end."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(Gate, streams)
    try:
        yield
        streams[0].flush()
    finally:
        sys.stdout, sys.stderr = streams


def redraw(text: str) -> None:
    """Write over the current line of standard error."""
    stream = sys.stderr
    (stream if isinstance(stream, Gate) else Gate(stream)).redraw(text)


def give_up_output() -> None:
    """What could not be written stays unwritten: nothing is tried again when Python ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
