"""Progress of long work: what is done now, for how long, and how much is left.

Functions say their `step`; steps lie within one another. Nothing is shown until `set_progress` asks
for it, as the command line does: one line that is written anew on a terminal and in a notebook, a
line every ten seconds elsewhere, so that short work stays silent.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from feasid.core.errors import InputError
from feasid.core.text import escape_controls, quote

REDRAWN, PRINTED = 0.5, 10.0
"""Seconds between two states of a line that is written anew, and between lines that stay."""


class _Watch:
    """The open steps of the thread that began the first, shown by a thread while they last."""

    def __init__(self, show: Callable[[str], Any] | None) -> None:
        self.show, self.owner = show, threading.get_ident()
        self.steps: list[list[str]] = []  # the name of each, and how much of it is done
        self.start, self.shown = time.monotonic(), False
        self.ended = threading.Event()
        notebook = "ipykernel" in type(sys.stderr).__module__
        self.redrawn = show is None and (notebook or sys.stderr.isatty())

    def run(self) -> None:
        """Show the line from time to time."""
        while not self.ended.wait(REDRAWN if self.redrawn else PRINTED):
            self.write()

    def write(self) -> None:
        """Show the first step, the last, and the seconds since the first began."""
        ends = (", ".join(filter(None, step)) for step in (self.steps[0], self.steps[-1]))
        text = f"{': '.join(dict.fromkeys(ends))}, {time.monotonic() - self.start:.0f} s"
        line, self.shown = escape_controls(text, keep=""), True
        stream = getattr(sys.stderr, "stream", sys.stderr)  # what wraps it escapes returns
        if self.show is not None:
            self.show(line)
        else:
            start, end = ("\r\x1b[K", "") if self.redrawn else ("", "\n")
            print(f"{start}{line}", end=end, file=stream, flush=True)


_wanted: bool | Callable[[str], Any] = False
_watch: _Watch | None = None


def set_progress(show: bool | Callable[[str], Any] = True) -> None:
    """Show the progress of long calls from now on, or no longer.

    Parameters
    ----------
    show : bool or callable
        True: on standard error, one line that is written anew on a terminal and in a notebook, and
        a line every 10 s elsewhere. A function is called with such a line every 10 s, in another
        thread. False: nothing, as at first.

    Raises
    ------
    InputError
        `show` is neither.

    Examples
    --------
    >>> import feasid
    >>> feasid.set_progress(False)
    """
    global _wanted
    if not (isinstance(show, bool) or callable(show)):
        raise InputError(f"show must be True, False or a function of a line, not {quote(show)}")
    _wanted = show


@contextmanager
def step(name: str) -> Iterator[Callable[..., None]]:
    """Say that a step begins; yields a function of what is done, of how much, and a text."""
    global _watch
    first = _watch is None and bool(_wanted)
    if first:
        _watch = _Watch(_wanted if callable(_wanted) else None)
    watch = _watch
    # Steps of other threads do not lie within those of the first.
    if watch is None or watch.owner != threading.get_ident():
        yield lambda done, total, text="": None
        return
    start, entry = time.monotonic(), [name, ""]

    def advance(done: float, total: float, text: str = "") -> None:
        wait = f"{(time.monotonic() - start) / done * (total - done):.0f} s left" if done else ""
        entry[1] = ", ".join(filter(None, (f"{done:.0f} of {total:.0f}", text, wait)))

    watch.steps.append(entry)
    shower = threading.Thread(target=watch.run, daemon=True)
    if first:
        shower.start()
    try:
        yield advance
    finally:
        if first:
            _watch = None
            watch.ended.set()
            shower.join()
            if watch.shown:
                entry[1] = "done"
                watch.write()
                print(end="\n" * watch.redrawn, file=sys.stderr)
        watch.steps.pop()
