"""Prepared runs to reduced data with both sides of the equations behind one low-pass.

One and the same low-pass on both sides of the equations, computed only where rows are kept.

With F any linear filter along time, ``tau = W beta + noise`` gives ``F tau = (F W) beta + F noise``
for the same beta, also where the columns of W jump, as Coulomb friction does; filtering the torque
alone breaks that. After a low-pass neighbouring rows say the same, so few are kept (parallel
filtering and decimation, Gautier 1997). The filter is a Gaussian: of all filters with this
bandwidth it needs the shortest time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.signal import oaconvolve

from feasid.core.arrays import Array, Mask
from feasid.core.errors import NotEnoughDataError
from feasid.core.notes import as_notes
from feasid.core.threads import one_thread
from feasid.identification.regression.folds import FOLDS, SLOW, StrataBuilder, seconds_of_folds
from feasid.identification.regression.triangle import Reduced, fingerprint_of
from feasid.logs.filters import check_cutoff
from feasid.logs.motion import Motion, Run
from feasid.robot.description import Robot
from feasid.robot.dynamics.kinematics import CoordinateMap, coordinate_map
from feasid.robot.dynamics.regressor import CHUNK, RegressorPlan
from feasid.robot.dynamics.spatial import as_samples_last

HALF_GAIN = np.sqrt(np.log(2) / 2) / np.pi
"""cut-off * standard deviation in time, where the gain is 1/2."""

CUT = 1e-4
"""Share of its peak at which the Gaussian is cut."""

DENSITY = 2.6
"""Rows kept per second and Hz of the cut-off: the filter's gain at half that rate is .31."""

WHITE_CORRELATION = float(
    1 + 2 * np.exp(-((np.arange(1, 9) / (2 * DENSITY * HALF_GAIN)) ** 2)).sum()
)
"""Rows per independent row behind the low-pass where the noise before it was white: 1.73."""

OVERSAMPLED = 6.0
"""Samples per period of the highest frequency from which a smooth signal's filtered values are
those of all samples: at 1 kHz behind 40 Hz every fourth changes base parameters by 2e-6."""

LONGEST = 2.0**40
"""Samples beyond which no window reaches: longer than any log, and still a number of samples."""

TILE = 8
"""Rows per product: larger ones multiply more zeros, smaller ones call more often (measured)."""


@dataclass(frozen=True, eq=False)
class DecimatingFilter:
    """Weights of the samples around a kept row, and samples from one such row to the next."""

    taps: Array
    spacing: int

    @cached_property
    def _tile_weights(self) -> Array:
        """Weights of TILE consecutive rows, shape (samples, TILE)."""
        band = np.zeros(((TILE - 1) * self.spacing + len(self.taps), TILE))
        for k in range(TILE):
            band[k * self.spacing : k * self.spacing + len(self.taps), k] = self.taps
        return band

    def filter_rows(self, block: Array, count: int) -> Array:
        """Filtered values (k, count) of a block (k, samples) that begins with the first weight."""
        out = np.empty((block.shape[0], count))
        for k in range(0, count, TILE):
            tile = min(TILE, count - k)
            first = k * self.spacing
            width = (tile - 1) * self.spacing + len(self.taps)
            out[:, k : k + tile] = (
                block[:, first : first + width] @ self._tile_weights[:width, :tile]
            )
        return out


@dataclass(frozen=True)
class GaussianLowPass:
    """A Gaussian low-pass with gain 1/2 at `cutoff` for signals sampled at `rate` [Hz]."""

    cutoff: float
    rate: float

    def __post_init__(self) -> None:
        check_cutoff(self.cutoff, self.rate, "the equations' cut-off")

    @cached_property
    def half_width(self) -> int:
        """Samples on either side of a row."""
        reach = float(HALF_GAIN / self.cutoff * np.sqrt(-2 * np.log(CUT)))
        return max(1, round(min(reach * self.rate, LONGEST)))

    @cached_property
    def spacing(self) -> int:
        """Samples from one kept row to the next."""
        return max(1, round(min(self.rate / DENSITY / self.cutoff, LONGEST)))

    @cached_property
    def taps(self) -> Array:
        """Weights of the samples around a row, shape (2 half + 1,); they add up to 1."""
        at = np.arange(-self.half_width, self.half_width + 1) / self.rate
        w = np.exp(-0.5 * (at * self.cutoff / HALF_GAIN) ** 2)
        return np.asarray(w / w.sum())

    def decimating_filter(self, every: int = 1) -> DecimatingFilter:
        """The low-pass of signals of which only every n-th sample is given."""
        taps = self.taps[self.half_width % every :: every]
        return DecimatingFilter(taps / taps.sum(), self.spacing // every)

    @cached_property
    def derivative_filter(self) -> DecimatingFilter:
        """The derivative of the filtered signal [1 / s]: the Gaussian's own, by parts."""
        at = np.arange(-self.half_width, self.half_width + 1) / self.rate
        return DecimatingFilter(at * (self.cutoff / HALF_GAIN) ** 2 * self.taps, self.spacing)

    def largest_decimation(self, band: float | None) -> int:
        """Largest decimation of a signal behind a low-pass at `band` [Hz].

        A divisor of `spacing`, so that kept rows fall on samples that are taken.
        """
        most = 1 if band is None else int(self.rate / (OVERSAMPLED * band))
        return max((m for m in range(1, most + 1) if self.spacing % m == 0), default=1)

    def kept_rows(
        self, samples: int, anchor: int = 0, own: tuple[int, int] | None = None
    ) -> npt.NDArray[np.intp]:
        """Rows that are kept of a run with this number of samples; windows lie inside it.

        `anchor`: place of the run's first sample in its log: kept rows are multiples of `spacing`
        there, so that a log read in pieces keeps the rows of one read whole; `own`: only rows in
        this range; the others are surroundings.
        """
        first, last = (0, samples) if own is None else own
        low, high = max(self.half_width, first), min(samples - self.half_width, last)
        if low >= high:
            return np.zeros(0, dtype=np.intp)
        start = low + (-(anchor + low)) % self.spacing
        return np.arange(start, high, self.spacing)

    def row_groups(
        self, samples: int, chunk: int, anchor: int = 0, own: tuple[int, int] | None = None
    ) -> Iterator[npt.NDArray[np.intp]]:
        """The kept rows in groups of whole tiles, each within about `chunk` samples."""
        centres = self.kept_rows(samples, anchor, own)
        width = 2 * self.half_width + 1
        room = max(chunk, 6 * width) - width
        size = TILE * max(1, room // (TILE * self.spacing))
        for start in range(0, len(centres), size):
            yield centres[start : start + size]


def low_pass_motion(motion: Motion) -> Motion:
    """The signals of a motion behind the low-pass that its equations are to go through.

    Filtered signals fulfil the filtered equations only if the motion is slow compared with the
    cut-off and friction is smooth. They are good for plots, not for fits.

    `motion`: returned as it is when its signals were filtered already, or nothing is. Returns:
    without the samples at the ends of runs that the window does not cover, which the fit does not
    use either.
    """
    if motion.filtering != "equations" or not motion.cutoff:
        return motion
    runs = []
    for run in motion.runs:
        window = GaussianLowPass(motion.cutoff, run.rate)
        half = window.half_width
        if len(run) <= 2 * half:
            continue
        signals: dict[str, Any] = {
            kind: oaconvolve(getattr(run, kind), window.taps[:, None], mode="valid", axes=0)
            for kind in ("q", "dq", "ddq", "tau", "applied")
            if getattr(run, kind) is not None
        }
        inside = slice(half, len(run) - half)
        runs.append(replace(run, rows=run.rows[inside], t=run.t[inside], **signals, own=None))
    return replace(motion, runs=tuple(runs), filtering="signals")


Places = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class EquationRows:
    """Consecutive equations, one entry per generalised coordinate."""

    filtered: list[Array]  #: Shape (k, M): [w | tau] behind the low-pass, and without it.
    raw: list[Array]  #: See `filtered`.
    slope: list[Array]  #: Shape (M,): time derivative of the filtered torque.
    slowness: list[Array]  #: Shape (M,).
    t: Array  #: Shape (M,): [s]

    @classmethod
    def concat(cls, groups: Sequence[EquationRows]) -> EquationRows:
        """All rows of several groups that follow on each other."""
        filtered, raw, slope, slow = (
            [np.concatenate(x, axis=-1) for x in zip(*(getattr(g, k) for g in groups), strict=True)]
            for k in ("filtered", "raw", "slope", "slowness")
        )
        return cls(filtered, raw, slope, slow, np.concatenate([g.t for g in groups]))

    def with_torques(self, filtered: Iterable[Array], raw: Iterable[Array]) -> EquationRows:
        """The same with other torques, behind the low-pass and without it, (M,) per coordinate."""
        through, before = (
            [np.vstack([x[:-1], tau]) for x, tau in zip(rows, torques, strict=True)]
            for rows, torques in ((self.filtered, filtered), (self.raw, raw))
        )
        return replace(self, filtered=through, raw=before)

    def select(self, chosen: Mask) -> EquationRows:
        """Some of them."""
        parts = self.filtered, self.raw, self.slope, self.slowness
        filtered, raw, slope, slowness = ([x[..., chosen] for x in part] for part in parts)
        return EquationRows(filtered, raw, slope, slowness, self.t[chosen])


@dataclass(frozen=True, eq=False)
class FilterPair:
    """The same low-pass for signals at all samples and at each `largest_decimation`-th one.

    Torques of bodies are as smooth as the motion, so few samples determine their filtered values;
    friction jumps, and measured torques are noisy.
    """

    full: DecimatingFilter
    thin: DecimatingFilter
    slope: DecimatingFilter
    every: int


class Equations:
    """Forms the equations of runs at the rows that are kept.

    `columns`: ``base.independent``; `cutoff`: where the window's gain is 1/2 [Hz]; `free`: whether
    runs have projectors, with which every equation has all columns.
    """

    def __init__(
        self, robot: Robot, columns: Sequence[int], cutoff: float, free: bool = False
    ) -> None:
        self.plan = RegressorPlan.from_robot(robot, columns)
        self.support = (self.plan.columns,) * robot.dof if free else self.plan.nonzero_columns
        self.cutoff = cutoff
        self._carried = coordinate_map(robot) if robot.dof != robot.axes else None
        self._slow = friction_speeds(robot, self._carried)
        smooth = [np.array(s, dtype=np.intp) for s in self.plan.smooth_columns]
        rest = zip(smooth, self.plan.nonzero_columns, strict=True)
        self._parts = [(s, np.setdiff1d(np.arange(len(own) + 2), s)) for s, own in rest]

    def run_rows(self, run: Run) -> Iterator[EquationRows]:
        """The equations of one run of unfiltered torques; none when the window is longer."""
        window = GaussianLowPass(self.cutoff, run.rate)
        if window.half_width > len(run):
            return
        every = window.largest_decimation(run.band) if run.free is None else 1
        combs = FilterPair(
            window.decimating_filter(),
            window.decimating_filter(every),
            window.derivative_filter,
            every,
        )
        signals = [as_samples_last(x) for x in (run.q, run.dq, run.ddq, run.tau)]
        for centres in window.row_groups(len(run), every * CHUNK, run.anchor, run.own):
            part = slice(
                int(centres[0]) - window.half_width, int(centres[-1]) + window.half_width + 1
            )
            motion = [x[:, part] for x in signals]
            free = None if run.free is None else run.free[part]
            own = np.asarray(centres - part.start)
            yield self._rows_at(combs, own, motion, np.asarray(run.t[centres]), free)

    def rows_of(self, run: Run) -> tuple[GaussianLowPass, Places, EquationRows] | None:
        """A low-pass, and samples and equations of one run behind it; None where it is longer."""
        groups = [*self.run_rows(run)]
        if not groups:
            return None
        window = GaussianLowPass(self.cutoff, run.rate)
        return window, window.kept_rows(len(run), run.anchor, run.own), EquationRows.concat(groups)

    def squared_norms(self, run: Run) -> Array:
        """Sum of squares of the predicted quantities at the kept rows, shape (dof,)."""
        window = GaussianLowPass(self.cutoff, run.rate)
        centres = window.kept_rows(len(run), run.anchor, run.own)
        if run.applied is None or not len(centres):
            return np.zeros(self.plan.robot.dof)
        applied = (
            run.applied if run.free is None else np.einsum("nij,nj->ni", run.free, run.applied)
        )
        first = int(centres[0]) - window.half_width
        rows = window.decimating_filter().filter_rows(
            as_samples_last(applied[first:]), len(centres)
        )
        return np.asarray(np.sum(rows**2, axis=1))

    def _rows_at(
        self, combs: FilterPair, own: Places, signals: list[Array], t: Array, free: Array | None
    ) -> EquationRows:
        """Rows at `own` of these samples."""
        q, dq, ddq, tau = signals
        joints = dq if self._carried is None else self._carried.motion(q, dq, ddq)[1]
        blocks = [np.empty((len(s) + 2, q.shape[1])) for s in self.plan.nonzero_columns]
        for j, block in enumerate(blocks):
            block[-2] = tau[j]
            block[-1] = slowness(self._slow[j], joints)
        rows = EquationRows([], [], list(combs.slope.filter_rows(tau, len(own))), [], t)
        if free is None:
            parts = self._filter_rows(combs, own, (q, dq, ddq), blocks)
        else:
            self.plan.fill(q, dq, ddq, blocks)
            mixed = self._project_equations(blocks, free)
            parts = ((combs.full.filter_rows(x, len(own)), x[:, own]) for x in mixed)
        for through, raw in parts:
            rows.filtered.append(through[:-1])
            rows.raw.append(raw[:-1])
            rows.slowness.append(through[-1])
        return rows

    def _filter_rows(
        self,
        combs: FilterPair,
        own: Places,
        motion: tuple[Array, Array, Array],
        blocks: list[Array],
    ) -> Iterator[tuple[Array, Array]]:
        """Per coordinate filtered and raw rows; the smooth ones from some of the samples."""
        start = int(own[0]) % combs.every
        q, dq, ddq = (np.ascontiguousarray(x[:, start :: combs.every]) for x in motion)
        bodies = [np.zeros((len(s), q.shape[1])) for s in self.plan.nonzero_columns]
        self.plan.fill_bodies(q, dq, ddq, bodies)
        self.plan.fill_drives(*motion, blocks)
        for body, block, (smooth, projection) in zip(bodies, blocks, self._parts, strict=True):
            through, raw = np.empty((2, len(block), len(own)))
            through[smooth] = combs.thin.filter_rows(body, len(own))[smooth]
            raw[smooth] = body[:, (own - start) // combs.every][smooth]
            through[projection] = combs.full.filter_rows(block[projection], len(own))
            raw[projection] = block[np.ix_(projection, own)]
            yield through, raw

    def _project_equations(self, blocks: list[Array], free: Array) -> list[Array]:
        """The equations multiplied with projectors (N, dof, dof); each has all columns then."""
        place = {c: k for k, c in enumerate(self.plan.columns)}
        wide = np.zeros((len(blocks), len(place) + 2, free.shape[0]))
        for row, (block, support) in enumerate(zip(blocks, self.plan.nonzero_columns, strict=True)):
            wide[row, [place[c] for c in support]] = block[:-2]
            wide[row, -2:] = block[-2:]
        mixed = free @ wide[:, :-1].transpose(2, 0, 1)
        wide[:, :-1] = mixed.transpose(1, 2, 0)
        return list(wide)


class EquationReducer:
    """Accumulates equations; parameters as those of `Equations`."""

    def __init__(
        self, robot: Robot, columns: Sequence[int], cutoff: float, free: bool = False
    ) -> None:
        self.equations = Equations(robot, columns, cutoff, free)
        self._strata = [StrataBuilder(len(s) + 1) for s in self.equations.support]
        self._samples = self._rows = 0
        self._period = 0.0
        self._power = np.zeros(self.equations.plan.robot.dof)

    @one_thread()
    def add(self, run: Run) -> None:
        """Add one run of unfiltered torques; a run shorter than the window adds nothing."""
        self.restart()
        for rows in self.equations.run_rows(run):
            self.add_rows(rows)
        if run.applied is not None:
            self._power += self.equations.squared_norms(run)
        self._period = max(self._period, 1.0 / run.rate)
        self._samples += len(run) if run.own is None else run.own[1] - run.own[0]

    def restart(self) -> None:
        """Start a new run: the next rows do not continue the last ones."""
        for strata in self._strata:
            strata.restart()

    def add_rows(self, rows: EquationRows, samples: int = 0) -> None:
        """Add equations that the caller formed from a number of samples."""
        fold = seconds_of_folds(rows.t) % FOLDS
        own = rows.filtered, rows.raw, rows.slowness, rows.slope
        for strata, through, raw, slow, slope in zip(self._strata, *own, strict=True):
            strata.add(through, raw, slow, fold, slope)
        self._rows += len(rows.t)
        self._samples += samples

    def result(self, notes: Sequence[str] = ()) -> Reduced:
        """The reduction of everything added so far."""
        cutoff, plan = self.equations.cutoff, self.equations.plan
        if not self._rows:
            raise NotEnoughDataError(
                f"no segment of the log is as long as the equations' filter at {cutoff:g} Hz "
                f"({1.6 / cutoff:.2g} s): record longer, or raise the cut-off",
                cutoff=cutoff,
            )
        place = {c: k for k, c in enumerate(plan.columns)}
        strata = tuple(s.result() for s in self._strata)
        return Reduced(
            fingerprint_of(plan.robot, plan.columns),
            plan.columns,
            tuple(tuple(place[c] for c in s) for s in self.equations.support),
            tuple(s.total_triangle for s in strata),
            self._samples,
            as_notes(notes),
            cutoff,
            plan.robot,
            rows=self._rows,
            strata=strata,
            period=self._period,
            power=self._power if self._power.any() else None,
        )


def slowness(drives: Sequence[Array], dq: Array) -> Array:
    """exp(-(v / SLOW)^2) of the slowest of these drives, shape (N,)."""
    speeds = [np.abs(c @ dq) for c in drives]
    if not speeds:
        return np.zeros(dq.shape[1])
    return np.asarray(np.exp(-((np.min(speeds, axis=0) / SLOW) ** 2)))


def friction_speeds(robot: Robot, whole: CoordinateMap | None = None) -> list[list[Array]]:
    """Per coordinate, combinations of joint velocities with Coulomb friction that it moves."""
    rubbing = [robot.coupling(k) for k, d in enumerate(robot.drives) if "fc" in d.symbols]
    moved = [(j,) for j in range(robot.dof)] if whole is None else whole.rows
    return [[c for c in rubbing if c[list(joints)].any()] for joints in moved]
