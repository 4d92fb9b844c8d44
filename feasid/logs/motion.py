"""What a log says about a robot's motion: runs of position, velocity, acceleration, torque."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from feasid.arrays import Array

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Run:
    """One stretch of evenly spaced samples without gaps.

    Attributes
    ----------
    label : str
        The run it belongs to.
    rate : float
        Sampling rate [Hz].
    rows : ndarray, shape (N,)
        Row numbers in the log.
    t : ndarray, shape (N,)
        Time from the log's first row [s].
    q, dq, ddq, tau : ndarray, shape (N, dof)
        Joint position, velocity, acceleration and torque, SI; `tau` is NaN when the log has none.
    """

    label: str
    rate: float
    rows: Rows
    t: Array
    q: Array
    dq: Array
    ddq: Array
    tau: Array

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True)
class Excluded:
    """Consecutive rows that are not used, and why."""

    reason: str
    first: int
    last: int
    count: int


@dataclass(frozen=True, eq=False)
class Motion:
    """What a log says about a robot's motion, ready for the regressor.

    Attributes
    ----------
    coordinates : tuple of str
        Names of the columns of q, dq, ddq and tau, in the robot's order.
    runs : tuple of Run
    cutoff : float or None
        Cut-off of the low-pass [Hz]; None when nothing was filtered.
    filtering : {"signals", "equations"}
        What the low-pass is for: the signals went through it, or the equations are yet to go.
    notes : tuple of str
        What was derived, filtered, split, unwrapped or trimmed.
    excluded : tuple of Excluded
        Every row of the log that is in no run.
    """

    coordinates: tuple[str, ...]
    runs: tuple[Run, ...]
    cutoff: float | None
    notes: tuple[str, ...]
    excluded: tuple[Excluded, ...] = field(default=())
    filtering: str = "signals"

    @property
    def samples(self) -> int:
        """Number of samples in all runs."""
        return sum(len(run) for run in self.runs)


def blocks(rows: Rows, reason: str) -> list[Excluded]:
    """Consecutive rows, one entry per block."""
    if not len(rows):
        return []
    cuts = np.flatnonzero(np.diff(rows) != 1) + 1
    return [
        Excluded(reason, int(block[0]), int(block[-1]), len(block))
        for block in np.split(np.asarray(rows), cuts)
    ]


def reasons(excluded: Sequence[Excluded]) -> str:
    """Rows per reason, as one line."""
    count: dict[str, int] = {}
    for block in excluded:
        count[block.reason] = count.get(block.reason, 0) + block.count
    return ", ".join(f"{n} ({reason})" for reason, n in count.items())
