"""A robot's motion in a log: runs of position, velocity, acceleration and torque."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array, interpolate
from feasid.core.notes import Note

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Run:
    """One segment of evenly spaced samples without gaps."""

    label: str  #: Name of its run in the log.
    rate: float  #: Sampling rate [Hz].
    rows: Rows  #: Shape (N,): row numbers in the log.
    t: Array  #: Shape (N,): time from the log's first row [s].
    #: Shape (N, dof): joint position, velocity, acceleration and torque, SI; `tau` is NaN when the
    #: log has none.
    q: Array
    dq: Array  #: See `q`.
    ddq: Array  #: See `q`.
    tau: Array  #: See `q`.
    anchor: int = 0  #: Place of the first sample in the log, counted in samples.
    #: Samples that are the run's own; the others surround them and belong to another piece of the
    #: log. None when all are.
    own: tuple[int, int] | None = None
    #: Shape (N, dof, dof): projectors that equations are multiplied with, so that unknown contact
    #: forces drop out.
    free: Array | None = None
    #: Cut-off [Hz] of the low-pass behind which positions and their derivatives were taken; None
    #: when there was none.
    band: float | None = None
    #: Shape (N, dof): forces that a model is to predict where `tau` holds more: of joints what
    #: their motors apply, without what contacts add. None when `tau` is that.
    applied: Array | None = None
    #: Positions and velocities as a controller has them, (N, dof) each: logged ones, or differences
    #: of logged positions. None where the run has no such signals.
    live: tuple[Array, Array] | None = None
    #: Shape (N, dof): of the joints [degrees C], NaN where the log has none; None without any.
    temperature: Array | None = None
    #: What was computed of the run and stays with it, such as its equations; of no other run.
    derived: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.t)

    def cut(self, first: int, end: int) -> Run:
        """Some samples that follow on each other, as a run of their own."""
        kinds = ("rows", "t", "q", "dq", "ddq", "tau", "free", "applied", "temperature")
        known = ((kind, getattr(self, kind)) for kind in kinds)
        signals: dict[str, Any] = {kind: x[first:end] for kind, x in known if x is not None}
        return replace(self, **signals, anchor=self.anchor + first, own=None, live=None)


@dataclass(frozen=True)
class ExcludedRows:
    """Consecutive rows that are not used, and why."""

    reason: str
    first: int
    last: int
    count: int


@dataclass(frozen=True, eq=False)
class Motion:
    """A robot's motion from a log, ready for the regressor."""

    #: Names of the columns of q, dq, ddq and tau, in the robot's order.
    coordinates: tuple[str, ...]
    runs: tuple[Run, ...]
    cutoff: float | None  #: Cut-off of the low-pass [Hz]; None when nothing was filtered.
    said: tuple[Note, ...]  #: Notes on signals derived, filtered, split, unwrapped or trimmed.
    excluded: tuple[ExcludedRows, ...] = ()  #: Every row of the log that is in no run.
    rows: int = 0  #: Rows of the log, used or not.
    #: One of "signals", "equations": what the low-pass is for: the signals went through it, or the
    #: equations are yet to go.
    filtering: str = "signals"

    @property
    def samples(self) -> int:
        """Number of samples in all runs."""
        return sum(len(run) for run in self.runs)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes, and the number of unused rows by reason."""
        return (*self.said, *excluded_notes(self.excluded, self.rows))


@dataclass
class MotionTally:
    """Notes and counts of several motions of one log."""

    rows: int = 0
    cutoff: float | None = None
    said: dict[Note, None] = field(default_factory=dict)
    excluded: list[ExcludedRows] = field(default_factory=list)

    def count(self, motion: Motion) -> None:
        """Count one more."""
        self.rows += motion.rows
        self.cutoff = motion.cutoff if motion.runs else self.cutoff
        self.said |= dict.fromkeys(motion.said)
        self.excluded += motion.excluded

    @property
    def notes(self) -> tuple[Note, ...]:
        """Every sentence once, and the rows that are not used."""
        return (*self.said, *excluded_notes(self.excluded, self.rows))


def excluded_notes(excluded: Sequence[ExcludedRows], rows: int) -> list[Note]:
    """Notes that say how many rows are excluded, and why."""
    if not excluded:
        return []
    rows_by_reason = Counter[str]()
    for block in excluded:
        rows_by_reason[block.reason] += block.count
    why = ", ".join(f"{n} ({reason})" for reason, n in rows_by_reason.items())
    lost = rows_by_reason.total()
    return [Note(f"{lost} of {rows} rows are not used: {why}", "unused", rows=lost, of=rows)]


def excluded_blocks(rows: Rows, reason: str) -> list[ExcludedRows]:
    """Consecutive rows, one entry per block."""
    if not len(rows):
        return []
    blocks = np.split(np.asarray(rows), np.flatnonzero(np.diff(rows) != 1) + 1)
    return [ExcludedRows(reason, int(x[0]), int(x[-1]), len(x)) for x in blocks]


MOVING, SIGNAL_RATE = 0.1, 25.0
"""Share of the fastest joint's RMS speed, and of its own, beyond which a joint moves; samples per
second at which repetitions are looked for [Hz]."""


def even_speeds(run: Run) -> Array:
    """Speeds of a run at `SIGNAL_RATE`, each joint in units of its size, while it moves."""
    t = run.t - run.t[0]
    at = np.arange(0.0, t[-1], 1.0 / SIGNAL_RATE)
    speed = interpolate(at, t, run.dq)
    size = np.sqrt(np.mean(speed**2, axis=0)) if len(at) else np.zeros(run.dq.shape[1])
    scale = np.maximum(size, MOVING * size.max(initial=0.0))
    speed = speed / np.where(scale > 0, scale, 1.0)
    moving = np.flatnonzero((np.abs(speed) > MOVING).any(axis=1))
    return np.asarray(speed[moving[0] : moving[-1]] if len(moving) else speed[:0])
