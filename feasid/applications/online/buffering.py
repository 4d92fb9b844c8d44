"""Samples gathered into blocks, which of them can be used, and their values at even times.

Left out are samples that are not finite, at the wrong time, or of a sensor that has stopped. The
other samples are interpolated at even times, by their time stamps if they have some.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

from feasid.core.arguments import Count
from feasid.core.arrays import Array, Mask
from feasid.core.errors import InputError
from feasid.results.archive.state import Kinds, Time, real

MIN_STALE_SAMPLES = 10
"""Number of consecutive samples that are bit-identical, from which they are repetitions of an old
message."""

MIN_STUCK_SECONDS = 0.1
"""Time with one and the same torque or position, to the last bit, while the joint moves [s]: the
sensor has stopped, or the torque is at the end of its range. No packaged log has .02 s of it."""

MIN_MOVED_DISTANCE = 1e-2  #: Distance [rad or m] within `STUCK` from which a joint moves.

MAX_BRIDGED_SAMPLES = 5
"""Missing samples over which positions are interpolated: at 1 kHz a cubic is off by less than an
encoder's step; longer gaps begin a new run."""

MIN_STEP = 0.2
"""Share of the sample time by which stamps have to differ: closer samples are left out, as weights
of a cubic through both would multiply their noise."""

RATE_TOLERANCE = 0.03
"""Difference between the rate of the time stamps and the given rate, as a share of it."""

RATE_SECONDS = 1.0  #: Time over which samples are counted against their stamps [s].
MIN_BLOCKS_PER_WINDOW = 16  #: Blocks of a window: each new one renews four triangles per joint.
MAX_BLOCKS_PER_WINDOW = 2**20  #: Blocks of a window: their table takes memory from the start.
MAX_BLOCK_SECONDS = 0.125  #: Longest time until the newest sample is learnt [s].


def choose_block(rate: float, window: int | None, block: int | None) -> int:
    """Samples per block: a divisor of the window, and not too long a wait."""
    longest = max(1, round(MAX_BLOCK_SECONDS * rate))
    if window is None:
        return longest if block is None else block
    if block is None:
        most = min(longest, window // MIN_BLOCKS_PER_WINDOW)
        block = next((b for b in range(most, 1, -1) if window % b == 0), 1)
    if window % block or window // block > MAX_BLOCKS_PER_WINDOW:
        raise InputError(
            f"a window of {window} samples must be a multiple of its block, here of {block}, and "
            f"at most {MAX_BLOCKS_PER_WINDOW} of them"
        )
    return block


class StuckSignal:
    """Signals that do not change to the last bit for long, while something else moves."""

    def __init__(self, dof: int, after: int) -> None:
        self._after = after
        self._length = [0] * dof
        self._value, self._origin = np.full(dof, np.nan), np.zeros(dof)

    def find_stuck(self, signal: Array, moving: Array) -> Mask:
        """Rows in which some joint's signal has stood still while `moving` moved; (N, dof) both."""
        count = len(signal)
        out = np.zeros(count, dtype=bool)
        for j in range(signal.shape[1]):
            equal = np.r_[self._value[j], signal[:-1, j]] == signal[:, j]
            run, last = _run_lengths(equal, self._length[j])
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
    """Checks blocks of samples and counts faulty ones.

    `faults`: samples left out, by cause: "not finite", "time jump" (the first after it), "same
    time", "wrong rate", "stale", "queue full", and for any joint "stuck torque" and, where
    velocities are measured, "stuck position".
    """

    def __init__(self, driven: Mask, rate: float) -> None:
        self.rate, self._driven, dof = rate, driven, len(driven)
        self.faults: Counter[str] = Counter()
        after = max(MIN_STALE_SAMPLES, round(MIN_STUCK_SECONDS * rate))
        self._torques, self._positions = (StuckSignal(n, after) for n in (driven.sum(), dof))
        self._travelled = np.zeros(dof)
        self._last: Array | None = None
        self._time = np.nan
        self._steps = np.zeros(0)
        self._follows = True
        self._enough = max(20, round(RATE_SECONDS * rate))
        self._equal = 0

    def learnt(self) -> Kinds:
        """What is saved; the next sample does not follow on those before."""
        return {"faults": Mapping[str, Count]}

    def skip(self, lost: int) -> None:
        """Count samples that were left out unseen; the next one does not follow on the last."""
        self.faults["queue full"] += lost
        self._follows, self._time = False, np.nan

    def find_usable(self, q: Array, tau: Array, dq: Array | None, t: Array) -> tuple[Mask, Mask]:
        """Which samples can be used, and which of them do not follow on the one before.

        `q`, `tau`, `dq` (N, dof); `t` (N,): NaN where no time was given.
        """
        rows = np.hstack([q, tau] if dq is None else [q, tau, dq])
        finite = np.isfinite(rows).all(axis=1)
        self._count("not finite", ~finite)
        repeated = self._last is not None and bool((rows[0] == self._last).all())
        equal = np.r_[repeated, (rows[1:] == rows[:-1]).all(axis=1)]
        run, self._equal = _run_lengths(equal, self._equal)
        self._last = rows[-1].copy()
        stale = _runs_from(run, MIN_STALE_SAMPLES)
        self._count("stale", stale & finite)
        with np.errstate(invalid="ignore", over="ignore"):
            stuck = self._torques.find_stuck(tau[:, self._driven], q[:, self._driven])
            frozen = np.zeros_like(stuck)
            if dq is not None:
                # The position is compared with the way by measured velocities.
                moves = np.nan_to_num(dq, posinf=0.0, neginf=0.0)
                way = self._travelled + np.cumsum(moves, 0) / self.rate
                self._travelled = way[-1]
                frozen = self._positions.find_stuck(q, way)
        self._count("stuck torque", stuck & finite & ~stale)
        self._count("stuck position", frozen & finite & ~stale)
        usable = finite & ~stale & ~stuck & ~frozen
        steps = np.diff(t, prepend=self._time) * self.rate
        self._time = t[-1]
        with np.errstate(invalid="ignore"):
            # Five missing samples make a step of six; stamps jitter by less than half a step.
            jump = (steps < 0) | (steps > MAX_BRIDGED_SAMPLES + 1.5)
            close = (steps >= 0) & (steps < MIN_STEP)
        self._count("time jump", jump)
        self._count("same time", close & usable)
        self._steps = np.r_[self._steps, steps[np.isfinite(steps) & ~jump]][-self._enough :]
        if self.wrong_rate is not None:
            self._count("wrong rate", usable)
            usable = np.zeros_like(usable)
        good = np.r_[self._follows, usable | close]
        self._follows, follows = bool(good[-1]), good[:-1]
        return usable & ~close, jump | ~follows

    @property
    def wrong_rate(self) -> float | None:
        """Rate by the stamps [Hz] if it differs from the given one, else None.

        Lost samples lower their number, and jitter shortens most other steps; only a wrong rate
        changes both in the same way.
        """
        if len(self._steps) < self._enough:
            return None
        mean = float(self._steps.mean())
        single = float(self._steps[self._steps < 1.5].mean()) if mean < 1.5 else mean
        if min(mean, single) > 1 + RATE_TOLERANCE or max(mean, single) < 1 - RATE_TOLERANCE:
            return self.rate / mean
        return None

    def _count(self, cause: str, which: npt.ArrayLike) -> None:
        if number := int(np.count_nonzero(which)):
            self.faults[cause] += number


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


class EvenGrid:
    """Samples at even times, from samples at their own: positions by cubics, torques by lines.

    As the even grid of a log (`feasid.logs.clock.even_grid`), but causal: two samples late.

    `rate`: of the grid [Hz].
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.reset()

    def reset(self) -> None:
        """Begin a run."""
        self._tail: Array | None = None
        self._next = np.nan

    def resample(self, smooth: Array, tau: Array, t: Array) -> tuple[Array, Array, Array]:
        """Values at the grid's times that these samples reach.

        `smooth` (N, k): positions, and velocities where they are measured; `tau` (N, dof); `t`
        (N,): increasing stamps [s]; all NaN where there are none, and the samples are even. Returns
        (M, k), (M, dof) and (M,): both at even times, and these times [s].
        """
        if np.isnan(t).all():
            return smooth, tau, t
        rows = np.column_stack([t, smooth, tau])
        rows = rows if self._tail is None else np.vstack([self._tail, rows])
        if np.isnan(self._next):
            self._next = float(rows[0, 0])
        stamps, count = rows[:, 0], len(rows)
        # A time can be computed when two samples after it are in.
        reached = (stamps[-3] - self._next) * self.rate if count > 3 else -1.0
        steps = max(0, int(np.floor(reached + EVEN)) + 1)
        times = self._next + np.arange(steps) / self.rate
        self._next += steps / self.rate
        earlier = np.clip(np.searchsorted(stamps, times, side="right") - 1, 0, max(count - 2, 0))
        first = np.clip(earlier - 1, 0, max(count - 4, 0))
        self._tail = rows[max(0, min(count - 4, int(np.searchsorted(stamps, self._next)) - 3)) :]
        if not steps:
            return smooth[:0], tau[:0], times
        nodes = first[:, None] + np.arange(4)
        at = stamps[nodes]
        weights = np.ones_like(at)  # Lagrange's, of four samples each
        for i, j in permutations(range(4), 2):
            weights[:, i] *= (times - at[:, j]) / (at[:, i] - at[:, j])
        wide = np.einsum("ij,ijk->ik", weights, rows[nodes, 1 : 1 + smooth.shape[1]])
        share = ((times - stamps[earlier]) / (stamps[earlier + 1] - stamps[earlier]))[:, None]
        torque = rows[:, 1 + smooth.shape[1] :]
        return wide, (1 - share) * torque[earlier] + share * torque[earlier + 1], times


EVEN = 1e-6  #: Share of a step by which a time of the grid may lie beyond a sample: rounding.


@dataclass(frozen=True, eq=False)
class SampleBlock:
    """Samples that came one after the other."""

    q: Array  #: Shape (N, dof).
    tau: Array  #: Shape (N, dof).
    dq: Array | None  #: Shape (N, dof).
    t: Array  #: Shape (N,): NaN where no time was given.
    has_stamps: bool
    time: float  #: Of the newest one: its stamp, or their number over the rate [s].
    lost: int  #: Samples just before these that were left out because too many blocks were waiting.


class SampleBuffer:
    """Takes one sample at a time and hands over full blocks.

    `block`: samples per block; `rate`: [Hz]; `received`: samples that came; `lost`: samples of
    blocks that were given up since the last one that was handed over; `newest` (dof,): position of
    the newest sample; zero before the first.
    """

    def __init__(self, dof: int, block: int, rate: float) -> None:
        self._shape, self._block, self._rate = (dof,), block, rate
        self._has_speed: bool | None = None
        self._has_stamps: bool | None = None
        self.received = self.lost = self._fill = 0
        self._stamp = np.nan
        self.newest = np.zeros(dof)
        self._clear()

    def learnt(self) -> Kinds:
        """What is saved: no sample of an unfinished block."""
        newest = real(*self._shape, finite=False)
        counts = {"received": Count, "lost": Count}
        return {**counts, "_stamp": Time, "_has_stamps": bool | None, "newest": newest}

    def _clear(self) -> None:
        self._q, self._tau, self._dq = (np.empty((self._block, *self._shape)) for _ in range(3))
        self._t = np.full(self._block, np.nan)

    @property
    def time(self) -> float:
        """Stamp of the newest sample; without stamps the number of samples over the rate [s]."""
        return self._stamp if self._has_stamps else self.received / self._rate

    def add(self, q: Array, tau: Array, dq: Array | None, t: float | None) -> bool:
        """Take a sample; whether a block is full, which then must be taken or given up."""
        if self._has_speed not in (None, dq is not None):
            raise InputError("velocities must be given with every sample or with none")
        if self._has_stamps not in (None, t is not None):
            raise InputError("time stamps must be given with every sample or with none")
        self._has_speed, self._has_stamps = dq is not None, t is not None
        k, shape = self._fill, self._shape
        if q.shape != shape or tau.shape != shape or (dq is not None and dq.shape != shape):
            wrong = [f"{x.shape}" for x in (q, tau, dq) if x is not None and x.shape != shape]
            raise InputError(
                f"a sample needs {shape[0]} numbers, one per degree of freedom, not {wrong[0]}"
            )
        self._q[k], self._tau[k] = q, tau
        if dq is not None:
            self._dq[k] = dq
        if t is not None:
            self._t[k] = self._stamp = t
        self.newest = self._q[k]
        self.received += 1
        self._fill = k + 1
        return self._fill == self._block

    def take(self) -> SampleBlock:
        """The full block; another one begins."""
        dq = self._dq if self._has_speed else None
        stamped, lost = bool(self._has_stamps), self.lost
        full = SampleBlock(self._q, self._tau, dq, self._t, stamped, self.time, lost)
        self._fill = self.lost = 0
        self._clear()
        return full

    def give_up(self) -> None:
        """Leave the full block out; another one begins."""
        # It is a row of the block, whose memory the next samples take.
        self.newest = self.newest.copy()
        self.lost += self._fill
        self._fill = 0
