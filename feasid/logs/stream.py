"""Logs larger than memory: a Parquet file prepared piece by piece, as if it were read whole.

Every piece is prepared together with what lies before and after it, far enough that the
zero-phase filter has forgotten where the piece was cut; only its own rows are kept.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from feasid.core.errors import FeasidError, InputError, NotEnoughDataError
from feasid.core.files import open_for_reading
from feasid.logs.frame import prepare
from feasid.logs.lerobot import scales_of
from feasid.logs.motion import ExcludedRows, Motion, Run
from feasid.logs.read.formats import format_of
from feasid.logs.table import standard_table
from feasid.robot.description import Robot

if TYPE_CHECKING:
    import pandas as pd

ROWS = 50_000  #: Rows of a piece: some ten MB per signal of seven joints, copies included.

MEMORY_PERIODS = 10
"""Periods of the cut-off after which the filter has forgotten its start: exp(-10 pi) = 2e-14."""

BARE = 16
"""Additional rows on both sides of a piece if nothing is filtered: enough for central differences,
and for a short last piece to be long enough."""


@dataclass(frozen=True, eq=False)
class FramePiece:
    """A frame whose rows ``first:last`` belong to the piece; the others surround it."""

    frame: pd.DataFrame
    first: int
    last: int
    offset: int


def stream_log(
    path: str | Path,
    robot: Robot,
    options: Mapping[str, Any],
    rows: int = ROWS,
    torque: bool | Collection[str] = True,
) -> Iterator[Motion]:
    """Prepare a file of any length, as `feasid.logs.frame.prepare`, in pieces of so many `rows`.

    An automatic cut-off is taken from the first piece; errors name the row of the file.
    """
    options = dict(options)
    around = BARE
    head = first_rows(path, robot.coordinates, rows)
    if options.get("cutoff") is not False:
        motion = prepare(head, robot, torque=torque, **options)
        cutoff = motion.cutoff
        options["cutoff"] = False if cutoff is None else cutoff
        if cutoff is not None:
            rate = max(run.rate for run in motion.runs)
            around = int(np.ceil(MEMORY_PERIODS * rate / cutoff))  # derivatives' filter is wider
    for piece in _pieces_with_surroundings(_batches(path, rows, robot.coordinates), around):
        own_rows = piece.last - piece.first
        try:
            motion = prepare(piece.frame, robot, torque=torque, **options)
        except NotEnoughDataError:
            short = ExcludedRows("too short a segment", piece.first, piece.last - 1, own_rows)
            yield Motion((), (), None, (), (short,), own_rows)
            continue
        except FeasidError as error:
            where = f" (rows are counted from row {piece.offset} of the file)"
            raise type(error)(f"{error}{where * bool(piece.offset)}", **error.data) from error
        runs: list[Run] = []
        for run in motion.runs:
            first, end = np.searchsorted(run.rows, [piece.first, piece.last]).tolist()
            if first < end:
                # Times and places are counted from the log's start.
                before = piece.offset / run.rate if np.isfinite(run.rate) else 0.0
                anchor = run.anchor + piece.offset
                run = replace(run, own=(first, end), anchor=anchor, t=run.t + before)
                # A filter of the equations is yet to come: it needs what surrounds the samples.
                runs.append(run if motion.filtering == "equations" else run.cut(first, end))
        excluded: list[ExcludedRows] = []
        for block in motion.excluded:
            first, last = max(block.first, piece.first), min(block.last, piece.last - 1)
            if first <= last:
                excluded.append(ExcludedRows(block.reason, first, last, last - first + 1))
        yield replace(motion, runs=tuple(runs), excluded=tuple(excluded), rows=own_rows)


def _pieces_with_surroundings(batches: Iterator[pd.DataFrame], around: int) -> Iterator[FramePiece]:
    """Consecutive pieces with `around` rows on either side where the file has them."""
    import pandas as pd

    before: pd.DataFrame | None = None
    current = next(batches, None)
    offset = 0
    while current is not None:
        after = next(batches, None)
        # A batch may be shorter than what the filter remembers.
        while after is not None and len(after) < around:
            more = next(batches, None)
            if more is None:
                break
            after = pd.concat([after, more])
        parts = [f for f in (before, current, None if after is None else after.iloc[:around])
                 if f is not None]  # fmt: skip
        first = 0 if before is None else len(before)
        frame = parts[0] if len(parts) == 1 else pd.concat(parts)
        yield FramePiece(frame.reset_index(drop=True), first, first + len(current), offset - first)
        offset += len(current)
        before = current.iloc[-around:] if len(current) >= around or before is None else (
            pd.concat([before, current]).iloc[-around:])  # fmt: skip
        current = after


def first_rows(path: str | Path, joints: Sequence[str], rows: int = 1) -> pd.DataFrame:
    """The first rows of a Parquet file; one of them has its columns' names."""
    head = next(_batches(path, rows, joints), None)
    if head is None:
        raise NotEnoughDataError(f"{path}: the log has no rows", path=str(path))
    return head


def _batches(path: str | Path, rows: int, joints: Sequence[str]) -> Iterator[pd.DataFrame]:
    batches = format_of(path).batches
    if batches is None:
        text = f"{path}: files of this format are not read piece by piece"
        raise InputError(text, path=str(path))
    with open_for_reading(path, sys.maxsize) as source:
        scales = None
        for batch in batches(source, str(path), rows, sys.maxsize):
            table = standard_table(batch, joints, padded=False, scales=scales)
            scales = scales_of(table.attrs.get("notes", ()))  # of the first one, for all
            yield table
