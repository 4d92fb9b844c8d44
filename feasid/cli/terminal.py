"""Streams and progress of a command.

Everything that is printed passes `EscapingStream`, which escapes control characters. Progress goes
to standard error: one line that is rewritten on a terminal, plain lines elsewhere.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from feasid.core.text import escape_controls


class EscapingStream:
    """A text stream that escapes control characters; otherwise it behaves like the wrapped
    stream.

    Where nobody reads any more, as after ``| head``, it goes on without output, so that the files
    of a command are written.
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
        except BrokenPipeError:
            discard_output(self.stream)
        return len(text)

    def flush(self) -> None:
        """Flush the wrapped stream."""
        try:
            self.stream.flush()
        except BrokenPipeError:
            discard_output(self.stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def escape_streams() -> Iterator[None]:
    """Standard output and standard error behind gates, and flushed at the end."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(EscapingStream, streams)
    try:
        yield
        sys.stdout.flush()
    finally:
        sys.stdout, sys.stderr = streams


def discard_output(stream: Any) -> None:
    """Discard output that could not be written, so that Python does not retry at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
