"""Rows that fail today, each with its cause: whoever cures one takes its line out of the list."""

from __future__ import annotations

from fnmatch import fnmatch
from functools import cache
from pathlib import Path

CAUSES = {
    "UNFILTERED_FRICTION": "ranges do not count the bias by filters of one side only",
    "CHOSEN_FRICTION": "floating robots are not searched for friction beyond a chosen form",
    "OUTSIDE": "uncertainty/ranges.py: a range of what fits the log, which the fit itself does not",
}

KNOWN = Path(__file__).with_name("known.txt")
"""Rows of the array that fail, with their cause: option's value | robot | log | act | cause.

Each of the first four may be a pattern as `fnmatch` takes it."""

NOT_RUN = " | not run yet"
"""Behind a row of ``array.txt`` whose end nobody has looked at: it is slow, and not drawn."""


@cache
def patterns():
    return [line.split(" | ") for line in KNOWN.read_text(encoding="utf-8").splitlines()]


def reason(row):
    """Why a row is known to fail; None where it is not."""
    for label, *rest, cause in patterns():
        same = any(fnmatch(one, label) for one in row.labels)
        if same and all(map(fnmatch, (row.robot, row.log, row.act), rest)):
            return CAUSES[cause]
    return None
