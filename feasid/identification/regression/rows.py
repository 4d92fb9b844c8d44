"""The filtered, decimated equations of a log, row by row: formed once per robot, read by all.

A reduction sums them into triangles; the search, the check, verdicts and servos read them as they
are. Rows of a log in memory stay with its runs, so that nobody forms them a second time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.interpolate import CubicSpline

from feasid.core.arrays import Array, Mask
from feasid.core.memo import compute_once
from feasid.identification.regression.folds import FOLDS, SLOW, seconds_of_folds
from feasid.identification.regression.low_pass import DecimatingFilter, GaussianLowPass
from feasid.identification.regression.triangle import fingerprint_of
from feasid.logs.motion import Run
from feasid.robot.description import Robot
from feasid.robot.dynamics.kinematics import coordinate_map
from feasid.robot.dynamics.regressor import RegressorPlan
from feasid.robot.dynamics.spatial import CHUNK, as_samples_last

Places = npt.NDArray[np.intp]

SEGMENT = 400  #: Rows that follow on each other where a long log is sampled: 20 s at 8 Hz.
GOLDEN = 0.5 * (5.0**0.5 - 1.0)  #: Its multiples fall everywhere between whole numbers.


@dataclass(frozen=True, eq=False)
class RunRows:
    """Equations of one run, one entry per generalised coordinate."""

    run: Run
    samples: Places  #: Shape (M,): the samples of the run that are kept.
    filtered: list[Array]  #: Shape (k + 1, M): [w | tau] behind the low-pass, and without it.
    raw: list[Array]  #: See `filtered`.
    slope: Array  #: Shape (dof, M): time derivative of the filtered torque.
    slowness: Array  #: Shape (dof, M).
    low_pass: GaussianLowPass

    @classmethod
    def concat(cls, groups: Sequence[RunRows]) -> RunRows | None:
        """All rows of several groups of a run that follow on each other; None of no group."""
        if len(groups) < 2:
            return groups[0] if groups else None
        parts: dict[str, Any] = {}
        for k in ("samples", "slope", "slowness"):
            parts[k] = np.concatenate([getattr(g, k) for g in groups], axis=-1)
        for k in ("filtered", "raw"):
            by_joint = zip(*(getattr(g, k) for g in groups), strict=True)
            parts[k] = [np.concatenate(x, axis=-1) for x in by_joint]
        return replace(groups[0], **parts)

    @property
    def t(self) -> Array:
        """Times, shape (M,) [s]."""
        return np.asarray(self.run.t[self.samples])

    @property
    def torque(self) -> Array:
        """Filtered torques, shape (dof, M)."""
        return np.array([x[-1] for x in self.filtered])

    def select(self, rows: Mask | slice) -> RunRows:
        """Some of the rows."""
        filtered, raw = ([x[:, rows] for x in part] for part in (self.filtered, self.raw))
        slope, slowness = self.slope[:, rows], self.slowness[:, rows]
        return RunRows(self.run, self.samples[rows], filtered, raw, slope, slowness, self.low_pass)

    def cut(self, first: int, end: int) -> RunRows:
        """Some rows that follow on each other, with no more samples than these depend on."""
        some = self.select(slice(first, end))
        part = some.sample_slice
        run = self.run.cut(part.start, part.stop)
        return replace(some, run=run, samples=some.samples - part.start)

    def with_torques(self, filtered: Array, raw: Array) -> RunRows:
        """The same with other torques, behind the low-pass and without it, (dof, M)."""
        through, before = (
            [np.vstack([x[:-1], tau]) for x, tau in zip(rows, torques, strict=True)]
            for rows, torques in ((self.filtered, filtered), (self.raw, raw))
        )
        return replace(self, filtered=through, raw=before)

    def of_run(self, run: Run) -> RunRows:
        """The rows of a run with the same motion and other torques."""
        if run is self.run:
            return self
        tau = np.ascontiguousarray(run.tau.T)
        rows = self.with_torques(self.filter_signal(tau), tau[:, self.samples])
        part = tau[:, self.sample_slice]
        slope = self.low_pass.derivative_filter.filter_rows(part, len(self.samples))
        return replace(rows, run=run, slope=slope)

    # -- further signals of the run, at the same rows ------------------------------------------

    @property
    def sample_slice(self) -> slice:
        """Range of samples on which the rows depend."""
        half = self.low_pass.half_width
        return slice(int(self.samples[0]) - half, int(self.samples[-1]) + half + 1)

    @property
    def smooth_spacing(self) -> int:
        """Samples from one to the next at which columns that are smooth are computed.

        The low-pass leaves little of what lies beyond its cut-off, and a column's own error
        changes an effect's size by as much.
        """
        return self.low_pass.largest_decimation(self.low_pass.cutoff)

    def filter_signal(self, signal: Array) -> Array:
        """Rows of a signal (k, N) that is given at all samples, shape (k, M)."""
        part = np.ascontiguousarray(signal[:, self.sample_slice])
        return self.low_pass.decimating_filter().filter_rows(part, len(self.samples))

    def filter_smooth(self, values: Array) -> Array:
        """Rows of signals (k, n) that were computed at the samples of `smooth_samples`."""
        return self.low_pass.decimating_filter(self.smooth_spacing).filter_rows(
            np.ascontiguousarray(values), len(self.samples)
        )

    @property
    def smooth_samples(self) -> npt.NDArray[np.intp]:
        """The samples at which smooth functions are computed."""
        # The middle of each window is one of them, as `DecimatingFilter` takes its weights.
        part, step = self.sample_slice, self.smooth_spacing
        return np.arange(part.start + self.low_pass.half_width % step, part.stop, step)

    def decimate(self, signal: Array) -> Array:
        """The samples of a signal (N, dof) at which smooth functions are computed."""
        return signal[self.smooth_samples]

    def interpolate(self, smooth: Array) -> Array:
        """Values (N,) at all samples of a function with values (n,) at the smooth samples."""
        return np.asarray(CubicSpline(self.smooth_samples, smooth)(np.arange(len(self.run))))


class RowFormer:
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
        # Per coordinate, combinations of joint velocities with Coulomb friction that it moves.
        rubbing = [robot.coupling(k) for k, d in enumerate(robot.drives) if "fc" in d.symbols]
        moved = [(j,) for j in range(robot.dof)] if self._carried is None else self._carried.rows
        self._slow = [[c for c in rubbing if c[list(joints)].any()] for joints in moved]
        smooth = [np.array(s, dtype=np.intp) for s in self.plan.smooth_columns]
        pairs = zip(smooth, self.plan.nonzero_columns, strict=True)
        self._parts = [(s, np.setdiff1d(np.arange(len(every) + 2), s)) for s, every in pairs]

    @property
    def supports(self) -> list[list[int]]:
        """Places of every coordinate's columns among all."""
        place = {c: k for k, c in enumerate(self.plan.columns)}
        return [[place[c] for c in columns] for columns in self.support]

    @cached_property
    def _key(self) -> tuple[str, float]:
        return fingerprint_of(self.plan.robot, self.plan.columns), self.cutoff

    def rows_of(self, run: Run) -> RunRows | None:
        """The equations of one run, which stay with it; None where the window is longer."""
        return compute_once(run.derived, self._key, lambda: RunRows.concat([*self.form(run)]))

    def form(self, run: Run) -> Iterator[RunRows]:
        """The equations of one run of unfiltered torques; none when the window is longer."""
        window = GaussianLowPass(self.cutoff, run.rate)
        if window.half_width > len(run):
            return
        every = window.largest_decimation(run.band) if run.free is None else 1
        # Torques of bodies are as smooth as the motion, so few samples determine their filtered
        # values; friction jumps, and measured torques are noisy.
        full, thin = window.decimating_filter(), window.decimating_filter(every)
        signals = [as_samples_last(x) for x in (run.q, run.dq, run.ddq, run.tau)]
        half = window.half_width
        for samples in window.row_groups(len(run), every * CHUNK, run.anchor, run.own):
            part = slice(int(samples[0]) - half, int(samples[-1]) + half + 1)
            q, dq, ddq, tau = (x[:, part] for x in signals)
            places = samples - part.start
            joints = dq if self._carried is None else self._carried.motion(q, dq, ddq)[1]
            # Behind the columns the torque, and the slowness, which passes the same low-pass.
            blocks = [np.empty((len(s) + 2, q.shape[1])) for s in self.plan.nonzero_columns]
            for j, block in enumerate(blocks):
                block[-2] = tau[j]
                block[-1] = slowness(self._slow[j], joints)
            if run.free is None:
                parts = [*self._filter_rows(full, thin, every, places, (q, dq, ddq), blocks)]
            else:
                self.plan.fill(q, dq, ddq, blocks)
                # The equations multiplied with projectors; each has all columns then.
                free = run.free[part]
                place = {c: k for k, c in enumerate(self.plan.columns)}
                wide = np.zeros((len(blocks), len(place) + 2, free.shape[0]))
                pairs = zip(blocks, self.plan.nonzero_columns, strict=True)
                for row, (block, support) in enumerate(pairs):
                    wide[row, [place[c] for c in support]] = block[:-2]
                    wide[row, -2:] = block[-2:]
                wide[:, :-1] = (free @ wide[:, :-1].transpose(2, 0, 1)).transpose(1, 2, 0)
                parts = [(full.filter_rows(x, len(places)), x[:, places]) for x in wide]
            slope = window.derivative_filter.filter_rows(tau, len(places))
            slow = np.array([through[-1] for through, _ in parts])
            filtered, raw = [f[:-1] for f, _ in parts], [r[:-1] for _, r in parts]
            yield RunRows(run, samples, filtered, raw, slope, slow, window)

    def squared_norms(self, run: Run) -> Array:
        """Sum of squares of the predicted quantities at the kept rows, shape (dof,)."""
        window = GaussianLowPass(self.cutoff, run.rate)
        centres = window.kept_rows(len(run), run.anchor, run.own)
        if run.applied is None or not len(centres):
            return np.zeros(self.plan.robot.dof)
        applied = (
            run.applied if run.free is None else np.einsum("nij,nj->ni", run.free, run.applied)
        )
        signal = as_samples_last(applied[int(centres[0]) - window.half_width :])
        rows = window.decimating_filter().filter_rows(signal, len(centres))
        return np.asarray(np.sum(rows**2, axis=1))

    def _filter_rows(
        self,
        full: DecimatingFilter,
        thin: DecimatingFilter,
        every: int,
        places: Places,
        motion: tuple[Array, Array, Array],
        blocks: list[Array],
    ) -> Iterator[tuple[Array, Array]]:
        """Per coordinate filtered and raw rows; the smooth ones from each `every`-th sample."""
        # Kept rows lie a multiple of `every` apart: counted from here, they are among the samples.
        start = int(places[0]) % every
        q, dq, ddq = (np.ascontiguousarray(x[:, start::every]) for x in motion)
        bodies = [np.zeros((len(s), q.shape[1])) for s in self.plan.nonzero_columns]
        self.plan.fill_bodies(q, dq, ddq, bodies)
        self.plan.fill_drives(*motion, blocks)
        for body, block, (smooth, projection) in zip(bodies, blocks, self._parts, strict=True):
            through, raw = np.empty((2, len(block), len(places)))
            through[smooth] = thin.filter_rows(body, len(places))[smooth]
            raw[smooth] = body[:, (places - start) // every][smooth]
            through[projection] = full.filter_rows(block[projection], len(places))
            raw[projection] = block[np.ix_(projection, places)]
            yield through, raw


def slowness(drives: Sequence[Array], dq: Array) -> Array:
    """exp(-(v / SLOW)^2) of the slowest of these drives, shape (N,)."""
    speeds = [np.abs(c @ dq) for c in drives]
    if not speeds:
        return np.zeros(dq.shape[1])
    return np.asarray(np.exp(-((np.min(speeds, axis=0) / SLOW) ** 2)))


class Rows:
    """All rows of a log for one robot: joint by joint those of all runs, one after the other.

    `robot`: with the joint terms that are fitted; `columns`: independent columns of its base
    parameters; `cutoff`: of the low-pass [Hz]; `joints`: joints whose torques were measured.
    """

    def __init__(
        self,
        robot: Robot,
        columns: Sequence[int],
        cutoff: float,
        runs: Sequence[Run],
        joints: Sequence[int],
    ) -> None:
        self.robot, self.base_columns, self.cutoff = robot, tuple(columns), cutoff
        self.joints = tuple(joints)
        former = RowFormer(robot, columns, cutoff)
        self.supports = former.supports
        self._set_parts([rows for run in runs if (rows := former.rows_of(run)) is not None])

    def sample(self, most: int) -> tuple[Rows, Mask]:
        """About so many rows of every joint, in segments all over the log, and which they are.

        Where in its share of the log a segment begins differs from one to the next, since motions
        repeat; the first is the log's beginning, when joints are cold.
        """
        count, parts = len(self) // len(self.joints), list[RunRows]()
        if count <= most:
            return self, np.ones(len(self), dtype=bool)
        mask, before = np.zeros(count, dtype=bool), 0
        for part in self.parts:
            size = len(part.samples)
            edges = np.linspace(0, size, 2 + size * most // (count * SEGMENT)).astype(int)
            for k, (first, end) in enumerate(pairwise(edges.tolist())):
                length = max(1, (end - first) * most // count)
                first += int((end - first - length) * (k * GOLDEN % 1.0))
                parts.append(part.cut(first, first + length))
                mask[before + first : before + first + length] = True
            before += size
        rows = copy(self)
        for name in vars(self).keys() & vars(Rows).keys():  # cached properties
            del vars(rows)[name]
        rows._set_parts(parts)
        return rows, np.tile(mask, len(self.joints))

    def _set_parts(self, parts: Sequence[RunRows]) -> None:
        """Rows of these runs; what was computed of others goes."""
        self.parts = [*parts]
        self.derived: dict[Any, Any] = {}  #: What was computed of the rows, by whom and of what.
        self.torque = self.stack([p.torque for p in parts])
        self.slope = self.stack([p.slope for p in parts])
        self.slowness = self.stack([p.slowness for p in parts])

    def of_runs(self, runs: Sequence[Run]) -> Rows:
        """The rows of runs with the same motion and other torques."""
        out = copy(self)
        # Runs that are shorter than the low-pass have no rows; logs may have equal labels.
        long = {(p.run.label, p.run.anchor, len(p.run)) for p in self.parts}
        every = (run for run in runs if (run.label, run.anchor, len(run)) in long)
        out._set_parts([p.of_run(run) for p, run in zip(self.parts, every, strict=True)])
        return out

    def __len__(self) -> int:
        return len(self.torque)

    def stack(self, parts: Sequence[Array]) -> Array:
        """Rows of arrays (..., dof, M) per run, shape (rows, ...)."""
        every = np.concatenate([p[..., list(self.joints), :] for p in parts], axis=-1)
        return np.moveaxis(every.reshape(*every.shape[:-2], -1), -1, 0)

    @cached_property
    def t(self) -> Array:
        """Time of every row, shape (rows,) [s]."""
        return np.tile(np.concatenate([p.t for p in self.parts]), len(self.joints))

    @cached_property
    def joint(self) -> Places:
        """Joint of every row, shape (rows,)."""
        return np.repeat(self.joints, len(self) // len(self.joints))

    @cached_property
    def run(self) -> Places:
        """Place of every row's run in `parts`, shape (rows,)."""
        number = np.repeat(np.arange(len(self.parts)), [len(p.samples) for p in self.parts])
        return np.tile(number, len(self.joints))

    @cached_property
    def fold(self) -> Places:
        """Fold of every row, shape (rows,)."""
        return seconds_of_folds(self.t) % FOLDS

    @cached_property
    def block(self) -> Places:
        """Number of every row's second of its run, shape (rows,)."""
        pairs = np.stack([self.run, seconds_of_folds(self.t)])
        return np.unique(pairs, axis=1, return_inverse=True)[1].ravel()

    @cached_property
    def regressors(self) -> dict[int, Array]:
        """By joint its columns, those of `supports`, shape (M, k)."""
        filtered = {j: [p.filtered[j][:-1].T for p in self.parts] for j in self.joints}
        return {j: np.concatenate(columns) for j, columns in filtered.items()}

    def by_joint(self, values: Array) -> dict[int, Array]:
        """Values of all rows (rows, ...) by joint, shape (M, ...)."""
        return dict(zip(self.joints, np.split(values, len(self.joints)), strict=True))

    def predict(self, beta: Array) -> Array:
        """Filtered torques with base parameters (nb,) or (nb, k), shape (rows,) or (rows, k)."""
        pairs = self.regressors.items()
        return np.concatenate([columns @ beta[self.supports[j]] for j, columns in pairs])
