"""Samples that cannot be used: not finite, at the wrong time, or of a sensor that has stopped."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array, Mask

STALE = 10
"""Samples in a row that are equal to the last bit in everything: the message is an old one."""

STUCK = 0.25
"""Time with one and the same torque or position, to the last bit, while the joint moves [s]."""

MOVED = 1e-2
"""Distance [rad or m] within `STUCK` from which a joint moves."""

JUMP = 0.5
"""Share of the sample time by which a time stamp may be off."""


class Stillness:
    """Signals that do not change to the last bit for long, while something else moves."""

    def __init__(self, dof: int, after: int) -> None:
        self._after = after
        self._length = [0] * dof
        self._value: Array | None = None
        self._origin = np.zeros(dof)

    def judge(self, signal: Array, moving: Array) -> Mask:
        """Rows in which some joint's signal has stood still while `moving` moved; (N, dof) both."""
        count = len(signal)
        out = np.zeros(count, dtype=bool)
        if self._value is None:
            self._value, self._origin = signal[0] + np.nan, moving[0].copy()
        for j in range(signal.shape[1]):
            run, last = _runs(
                np.r_[self._value[j], signal[:-1, j]] == signal[:, j], self._length[j]
            )
            if run.max(initial=0) >= self._after:
                start = np.where(run > 0, np.arange(count) - run, np.arange(count))
                origin = np.where(start < 0, self._origin[j], moving[np.maximum(start, 0), j])
                moved = (run >= self._after) & (np.abs(moving[:, j] - origin) > MOVED)
                out |= _whole(np.where(moved | (run < self._after), run, 0), self._after)
            if last < count:
                self._origin[j] = moving[count - 1 - last, j]
            self._length[j] = last
        self._value = signal[-1].copy()
        return out


class Guard:
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
        after = max(STALE, round(STUCK * rate))
        self._torques, self._positions = Stillness(dof, after), Stillness(dof, after)
        self._travelled = np.zeros(dof)
        self._last: Array | None = None
        self._time = np.nan
        self._equal = 0

    def judge(self, q: Array, tau: Array, dq: Array | None, t: Array) -> tuple[Mask, Mask]:
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
        stale = self._stale(rows)
        self._count("stale", stale & finite)
        with np.errstate(invalid="ignore", over="ignore"):
            stuck = self._torques.judge(tau, q)
            frozen = np.zeros_like(stuck) if dq is None else self._positions.judge(q, self._way(dq))
        self._count("stuck torque", stuck & finite & ~stale)
        self._count("stuck position", frozen & finite & ~stale)
        usable = finite & ~stale & ~stuck & ~frozen
        before = np.r_[self._time, t[:-1]]
        with np.errstate(invalid="ignore"):
            off = np.asarray(np.abs((t - before) * self.rate - 1.0) > JUMP)
        self._count("time jump", off)
        self._time = t[-1]
        follows = np.r_[True, usable[:-1]]
        return usable, off | ~follows

    def _way(self, dq: Array) -> Array:
        """Distance travelled by measured velocities."""
        way = self._travelled + np.cumsum(np.nan_to_num(dq, posinf=0.0, neginf=0.0), 0) / self.rate
        self._travelled = way[-1]
        return np.asarray(way)

    def _count(self, cause: str, which: npt.ArrayLike) -> None:
        number = int(np.count_nonzero(which))
        if number:
            self.faults[cause] += number

    def _stale(self, rows: Array) -> Mask:
        first = rows[:1] if self._last is None else self._last
        equal = (np.vstack([first, rows[:-1]]) == rows).all(axis=1)
        if self._last is None:
            equal[0] = False
        run, self._equal = _runs(equal, self._equal)
        self._last = rows[-1:].copy()
        return _whole(run, STALE)


def _whole(run: npt.NDArray[np.intp], least: int) -> Mask:
    """Members of runs that grow to this length, as far as they are in the block."""
    out = np.zeros(len(run), dtype=bool)
    for last in np.flatnonzero(run >= least):
        out[max(0, last - run[last] + 1) : last + 1] = True
    return out


def _runs(true: Mask, before: int) -> tuple[npt.NDArray[np.intp], int]:
    """Length of the run of true values that ends at each place, and of the last one."""
    places = np.arange(1, len(true) + 1)
    last_false = np.maximum.accumulate(np.where(true, 0, places))
    run = places - last_false + np.where(last_false == 0, before, 0)
    return run, int(run[-1])
