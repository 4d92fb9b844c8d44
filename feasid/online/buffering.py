"""Samples gathered into blocks, and which of them can be used.

Short gaps are bridged by straight lines. Left out are samples that are not finite, at the wrong
time, or of a sensor that has stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array, Mask
from feasid.errors import InputError

MIN_STALE_SAMPLES = 10
"""Samples in a row that are equal to the last bit in everything: the message is an old one."""

MIN_STUCK_SECONDS = 0.25
"""Time with one and the same torque or position, to the last bit, while the joint moves [s]."""

MIN_MOVED_DISTANCE = 1e-2
"""Distance [rad or m] within `STUCK` from which a joint moves."""

MAX_TIME_JUMP = 0.5
"""Share of the sample time by which a time stamp may be off."""


class StuckSignal:
    """Signals that do not change to the last bit for long, while something else moves."""

    def __init__(self, dof: int, after: int) -> None:
        self._after = after
        self._length = [0] * dof
        self._value: Array | None = None
        self._origin = np.zeros(dof)

    def find_stuck(self, signal: Array, moving: Array) -> Mask:
        """Rows in which some joint's signal has stood still while `moving` moved; (N, dof) both."""
        count = len(signal)
        out = np.zeros(count, dtype=bool)
        if self._value is None:
            self._value, self._origin = signal[0] + np.nan, moving[0].copy()
        for j in range(signal.shape[1]):
            run, last = _run_lengths(
                np.r_[self._value[j], signal[:-1, j]] == signal[:, j], self._length[j]
            )
            if run.max(initial=0) >= self._after:
                start = np.where(run > 0, np.arange(count) - run, np.arange(count))
                origin = np.where(start < 0, self._origin[j], moving[np.maximum(start, 0), j])
                moved = (run >= self._after) & (np.abs(moving[:, j] - origin) > MIN_MOVED_DISTANCE)
                out |= _runs_from(np.where(moved | (run < self._after), run, 0), self._after)
            if last < count:
                self._origin[j] = moving[count - 1 - last, j]
            self._length[j] = last
        self._value = signal[-1].copy()
        return out


class SampleChecks:
    """Judges blocks of samples and counts what is wrong with them.

    Attributes
    ----------
    faults : Counter
        Samples left out, by cause: "not finite", "time jump" (the first after it), "stale", and
        for any joint "stuck torque" and, where velocities are measured, "stuck position".
    """

    def __init__(self, dof: int, rate: float) -> None:
        self.rate = rate
        self.faults: Counter[str] = Counter()
        after = max(MIN_STALE_SAMPLES, round(MIN_STUCK_SECONDS * rate))
        self._torques, self._positions = StuckSignal(dof, after), StuckSignal(dof, after)
        self._travelled = np.zeros(dof)
        self._last: Array | None = None
        self._time = np.nan
        self._equal = 0

    def find_usable(self, q: Array, tau: Array, dq: Array | None, t: Array) -> tuple[Mask, Mask]:
        """Which samples can be used, and which of them do not follow on the one before.

        Parameters
        ----------
        q, tau, dq : ndarray, shape (N, dof)
        t : ndarray, shape (N,)
            NaN where no time was given.
        """
        rows = np.hstack([q, tau] if dq is None else [q, tau, dq])
        finite = np.isfinite(rows).all(axis=1)
        self._count("not finite", ~finite)
        stale = self._repeated_rows(rows)
        self._count("stale", stale & finite)
        with np.errstate(invalid="ignore", over="ignore"):
            stuck = self._torques.find_stuck(tau, q)
            frozen = (
                np.zeros_like(stuck)
                if dq is None
                else self._positions.find_stuck(q, self._distance(dq))
            )
        self._count("stuck torque", stuck & finite & ~stale)
        self._count("stuck position", frozen & finite & ~stale)
        usable = finite & ~stale & ~stuck & ~frozen
        before = np.r_[self._time, t[:-1]]
        with np.errstate(invalid="ignore"):
            off = np.asarray(np.abs((t - before) * self.rate - 1.0) > MAX_TIME_JUMP)
        self._count("time jump", off)
        self._time = t[-1]
        follows = np.r_[True, usable[:-1]]
        return usable, off | ~follows

    def _distance(self, dq: Array) -> Array:
        """Distance travelled by measured velocities."""
        way = self._travelled + np.cumsum(np.nan_to_num(dq, posinf=0.0, neginf=0.0), 0) / self.rate
        self._travelled = way[-1]
        return np.asarray(way)

    def _count(self, cause: str, which: npt.ArrayLike) -> None:
        number = int(np.count_nonzero(which))
        if number:
            self.faults[cause] += number

    def _repeated_rows(self, rows: Array) -> Mask:
        first = rows[:1] if self._last is None else self._last
        equal = (np.vstack([first, rows[:-1]]) == rows).all(axis=1)
        if self._last is None:
            equal[0] = False
        run, self._equal = _run_lengths(equal, self._equal)
        self._last = rows[-1:].copy()
        return _runs_from(run, MIN_STALE_SAMPLES)


def _runs_from(run: npt.NDArray[np.intp], least: int) -> Mask:
    """Members of runs that grow to this length, as far as they are in the block."""
    out = np.zeros(len(run), dtype=bool)
    for last in np.flatnonzero(run >= least):
        out[max(0, last - run[last] + 1) : last + 1] = True
    return out


def _run_lengths(true: Mask, before: int) -> tuple[npt.NDArray[np.intp], int]:
    """Length of the run of true values that ends at each place, and of the last one."""
    places = np.arange(1, len(true) + 1)
    last_false = np.maximum.accumulate(np.where(true, 0, places))
    run = places - last_false + np.where(last_false == 0, before, 0)
    return run, int(run[-1])


MAX_BRIDGED_SAMPLES = 5
"""Missing samples over which a straight line is drawn: at 1 kHz it is off by less than an encoder's
step; longer gaps begin a new run."""

Sample = npt.ArrayLike


class SampleBuffer:
    """Takes one sample at a time and hands over full blocks.

    Parameters
    ----------
    dof : int
    rate : float
        [Hz]
    block : int
        Samples per block.
    deliver : callable
        Called without arguments when `q`, `tau`, `dq` and `t` are full, shape (block, dof) and
        (block,); `has_speed` says whether `dq` was measured.

    Attributes
    ----------
    received, bridged : int
        Samples that came, and those that were put into gaps.
    """

    def __init__(self, dof: int, rate: float, block: int, deliver: Callable[[], None]) -> None:
        self.q, self.tau, self.dq = (np.zeros((block, dof)) for _ in range(3))
        self.t = np.full(block, np.nan)
        self.has_speed: bool | None = None
        self.received = self.bridged = 0
        self._rate, self._block, self._deliver = rate, block, deliver
        self._fill = 0
        self._stamp = np.nan

    @property
    def newest(self) -> Array:
        """Position of the newest sample, shape (dof,); zero before the first."""
        return np.asarray(self.q[self._fill - 1])

    def add(self, q: Sample, tau: Sample, dq: Sample | None, t: float | None) -> None:
        """Take a sample."""
        if self.has_speed is not (dq is not None):
            if self.has_speed is not None:
                raise InputError("velocities must be given with every sample or with none")
            self.has_speed = dq is not None
        if t is not None:
            missing = (t - self._stamp) * self._rate - 1.0
            if 0.5 < missing < MAX_BRIDGED_SAMPLES + 0.5:
                self._bridge(q, tau, dq, t, round(missing))
            self._stamp = t
        self._write(q, tau, dq, np.nan if t is None else t)
        self.received += 1

    def _bridge(self, q: Sample, tau: Sample, dq: Sample | None, t: float, missing: int) -> None:
        pairs = [(self.q[self._fill - 1].copy(), q), (self.tau[self._fill - 1].copy(), tau)]
        if dq is not None:
            pairs.append((self.dq[self._fill - 1].copy(), dq))
        try:
            ends = [(a, np.asarray(b, dtype=np.float64) - a) for a, b in pairs]
        except (ValueError, TypeError):
            return  # `_write` says what is wrong with the sample
        start = self._stamp
        for k in range(1, missing + 1):
            share = k / (missing + 1)
            mixed = [a + share * way for a, way in ends]
            speed = mixed[2] if dq is not None else None
            self._write(mixed[0], mixed[1], speed, start + share * (t - start))
        self.bridged += missing

    def _write(self, q: Sample, tau: Sample, dq: Sample | None, t: float) -> None:
        k = self._fill
        try:
            self.q[k] = q
            self.tau[k] = tau
            if dq is not None:
                self.dq[k] = dq
        except (ValueError, TypeError) as error:
            raise InputError(
                f"a sample needs {self.q.shape[1]} numbers of each kind: {error}"
            ) from error
        self.t[k] = t
        self._fill = k + 1
        if self._fill == self._block:
            self._fill = 0
            self._deliver()
