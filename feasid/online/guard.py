"""Samples that cannot be used: not finite, at the wrong time, or of a sensor that has stopped."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from feasid.arrays import Array, Mask

STALE = 10
"""Samples in a row that are equal to the last bit in everything: the message is an old one."""

STUCK = 0.25
"""Time with one and the same torque, to the last bit, while the joint moves [s]."""

MOVED = 1e-2
"""Distance [rad or m] within `STUCK` from which a joint moves."""

JUMP = 0.5
"""Share of the sample time by which a time stamp may be off."""


class Guard:
    """Judges blocks of samples and counts what is wrong with them.

    Attributes
    ----------
    faults : Counter
        Samples left out, by cause: "not finite", "time jump" (the first after it), "stale", and
        "stuck torque" for any joint.
    """

    def __init__(self, dof: int, rate: float) -> None:
        self.rate = rate
        self.faults: Counter[str] = Counter()
        self._stuck_after = max(STALE, round(STUCK * rate))
        self._last: Array | None = None
        self._torque: Array | None = None
        self._time = np.nan
        self._equal = 0
        self._same = np.zeros(dof, dtype=np.intp)
        self._from = np.zeros(dof)

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
        stuck = self._stuck(q, tau)
        self._count("stuck torque", stuck & finite & ~stale)
        usable = finite & ~stale & ~stuck
        before = np.r_[self._time, t[:-1]]
        with np.errstate(invalid="ignore"):
            off = np.asarray(np.abs((t - before) * self.rate - 1.0) > JUMP)
        self._count("time jump", off)
        self._time = t[-1]
        follows = np.r_[True, usable[:-1]]
        return usable, off | ~follows

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

    def _stuck(self, q: Array, tau: Array) -> Mask:
        """Rows at which some joint's torque has stood still for long while it moved."""
        out = np.zeros(len(q), dtype=bool)
        if self._torque is None:
            self._torque = tau[0] + np.nan
            self._from = q[0].copy()
        for j in range(q.shape[1]):
            same = np.r_[self._torque[j], tau[:-1, j]] == tau[:, j]
            run, last = _runs(same, int(self._same[j]))
            if run.max(initial=0) >= self._stuck_after:
                start = np.where(run > 0, np.arange(len(q)) - run, np.arange(len(q)))
                origin = np.where(start < 0, self._from[j], q[np.maximum(start, 0), j])
                moved = (run >= self._stuck_after) & (np.abs(q[:, j] - origin) > MOVED)
                counted = np.where(moved | (run < self._stuck_after), run, 0)
                out |= _whole(counted, self._stuck_after)
            if last < len(q):
                self._from[j] = q[len(q) - 1 - last, j]
            self._same[j] = last
        self._torque = tau[-1].copy()
        return out


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
