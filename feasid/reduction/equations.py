"""Prepared runs to reduced data with both sides of the equations behind one low-pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array, Mask
from feasid.core.notes import as_notes as as_notes
from feasid.core.threads import one_thread
from feasid.dynamics.kinematics import CoordinateMap, coordinate_map
from feasid.dynamics.regressor import CHUNK, RegressorPlan
from feasid.dynamics.spatial import as_samples_last
from feasid.errors import NotEnoughDataError
from feasid.logs.motion import Run
from feasid.reduction.strata import FOLD_SECONDS, FOLDS, SLOW, StrataBuilder
from feasid.reduction.triangle import Reduced, fingerprint_of
from feasid.reduction.window import Comb, Window
from feasid.robot.description import Robot

Places = npt.NDArray[np.intp]

EDGE = 1e-6
"""Times this close below the start of a fold, as a share of its length, belong to it."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Consecutive equations, one entry per generalised coordinate.

    Attributes
    ----------
    filtered, raw : list of ndarray, shapes (k, M)
        [w | tau] behind the low-pass, and without it.
    slope : list of ndarray, shape (M,)
        Time derivative of the filtered torque.
    slowness : list of ndarray, shape (M,)
    t : ndarray, shape (M,)
        [s]
    """

    filtered: list[Array]
    raw: list[Array]
    slope: list[Array]
    slowness: list[Array]
    t: Array

    def part(self, chosen: Mask) -> Rows:
        """Some of them."""
        filtered = [x[:, chosen] for x in self.filtered]
        raw = [x[:, chosen] for x in self.raw]
        slope, slowness = ([x[chosen] for x in part] for part in (self.slope, self.slowness))
        return Rows(filtered, raw, slope, slowness, self.t[chosen])


@dataclass(frozen=True, eq=False)
class Combs:
    """The same low-pass for signals at all samples and at each `every`-th one.

    What bodies feel is as smooth as the motion, so that few samples tell its filtered values;
    friction jumps, and torques carry noise.
    """

    full: Comb
    thin: Comb
    slope: Comb
    every: int


class Equations:
    """Forms the equations of runs at the rows that are kept.

    Parameters
    ----------
    robot : Robot
    columns : sequence of int
        ``base.independent``.
    cutoff : float
        Where the window's gain is 1/2 [Hz].
    free : bool
        Whether runs have projectors, with which every equation has all columns.
    """

    def __init__(
        self, robot: Robot, columns: Sequence[int], cutoff: float, free: bool = False
    ) -> None:
        self.plan = RegressorPlan.from_robot(robot, columns)
        self.support = (self.plan.columns,) * robot.dof if free else self.plan.support
        self.cutoff = cutoff
        self._carried = coordinate_map(robot) if robot.dof != robot.axes else None
        self._slow = friction_speeds(robot, self._carried)
        smooth = [np.array(s, dtype=np.intp) for s in self.plan.smooth]
        rest = zip(smooth, self.plan.support, strict=True)
        self._parts = [(s, np.setdiff1d(np.arange(len(own) + 2), s)) for s, own in rest]

    def run_rows(self, run: Run) -> Iterator[Rows]:
        """The equations of one run of unfiltered torques; none when the window is longer."""
        window = Window(self.cutoff, run.rate)
        if window.half > len(run):
            return
        every = window.every(run.band) if run.free is None else 1
        combs = Combs(window.comb(), window.comb(every), window.slope, every)
        signals = [as_samples_last(x) for x in (run.q, run.dq, run.ddq, run.tau)]
        for centres in window.groups(len(run), every * CHUNK, run.anchor, run.own):
            part = slice(int(centres[0]) - window.half, int(centres[-1]) + window.half + 1)
            motion = [x[:, part] for x in signals]
            free = None if run.free is None else run.free[part]
            own = np.asarray(centres - part.start)
            yield self._group(combs, own, motion, np.asarray(run.t[centres]), free)

    def _group(
        self, combs: Combs, own: Places, signals: list[Array], t: Array, free: Array | None
    ) -> Rows:
        """Rows at `own` of these samples."""
        q, dq, ddq, tau = signals
        joints = dq if self._carried is None else self._carried.motion(q, dq, ddq)[1]
        blocks = [np.empty((len(s) + 2, q.shape[1])) for s in self.plan.support]
        for j, block in enumerate(blocks):
            block[-2] = tau[j]
            block[-1] = slowness(self._slow[j], joints)
        rows = Rows([], [], list(combs.slope.rows(tau, len(own))), [], t)
        if free is None:
            parts = self._filter_rows(combs, own, (q, dq, ddq), blocks)
        else:
            self.plan.fill(q, dq, ddq, blocks)
            mixed = self._project_equations(blocks, free)
            parts = ((combs.full.rows(x, len(own)), x[:, own]) for x in mixed)
        for through, raw in parts:
            rows.filtered.append(through[:-1])
            rows.raw.append(raw[:-1])
            rows.slowness.append(through[-1])
        return rows

    def _filter_rows(
        self, combs: Combs, own: Places, motion: tuple[Array, Array, Array], blocks: list[Array]
    ) -> Iterator[tuple[Array, Array]]:
        """Per coordinate filtered and raw rows; the smooth ones from some of the samples."""
        start = int(own[0]) % combs.every
        q, dq, ddq = (np.ascontiguousarray(x[:, start :: combs.every]) for x in motion)
        bodies = [np.zeros((len(s), q.shape[1])) for s in self.plan.support]
        self.plan.fill_bodies(q, dq, ddq, bodies)
        self.plan.fill_drives(*motion, blocks)
        for body, block, (smooth, rest) in zip(bodies, blocks, self._parts, strict=True):
            through, raw = np.empty((2, len(block), len(own)))
            through[smooth] = combs.thin.rows(body, len(own))[smooth]
            raw[smooth] = body[:, (own - start) // combs.every][smooth]
            through[rest] = combs.full.rows(block[rest], len(own))
            raw[rest] = block[np.ix_(rest, own)]
            yield through, raw

    def _project_equations(self, blocks: list[Array], free: Array) -> list[Array]:
        """The equations multiplied with projectors (N, dof, dof); each has all columns then."""
        place = {c: k for k, c in enumerate(self.plan.columns)}
        wide = np.zeros((len(blocks), len(place) + 2, free.shape[0]))
        for row, (block, support) in enumerate(zip(blocks, self.plan.support, strict=True)):
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

    @one_thread()
    def add(self, run: Run) -> None:
        """Add one run of unfiltered torques; a run shorter than the window adds nothing."""
        self.restart()
        for rows in self.equations.run_rows(run):
            self.add_rows(rows)
        self._period = max(self._period, 1.0 / run.rate)
        self._samples += len(run) if run.own is None else run.own[1] - run.own[0]

    def restart(self) -> None:
        """What comes next does not follow on what came last."""
        for strata in self._strata:
            strata.restart()

    def add_rows(self, rows: Rows, samples: int = 0) -> None:
        """Add equations that the caller formed from a number of samples."""
        # Times on the edge between two folds carry rounding, which differs from piece to piece.
        fold = np.mod(np.floor(rows.t / FOLD_SECONDS + EDGE), FOLDS).astype(np.intp)
        own = rows.filtered, rows.raw, rows.slowness, rows.slope
        for strata, through, raw, slow, slope in zip(self._strata, *own, strict=True):
            strata.add(through, raw, slow, fold, slope)
        self._rows += len(rows.t)
        self._samples += samples

    def result(self, notes: Sequence[str] = ()) -> Reduced:
        """The reduction of everything added so far.

        Raises
        ------
        NotEnoughDataError
            When no run was as long as the window.
        """
        cutoff, plan = self.equations.cutoff, self.equations.plan
        if not self._rows:
            raise NotEnoughDataError(
                f"no stretch of the log is as long as the equations' filter at {cutoff:g} Hz "
                f"({1.6 / cutoff:.2g} s): record longer, or raise the cut-off",
                cutoff=cutoff,
            )
        place = {c: k for k, c in enumerate(plan.columns)}
        strata = tuple(s.result() for s in self._strata)
        return Reduced(
            fingerprint_of(plan.robot, plan.columns),
            plan.columns,
            tuple(tuple(place[c] for c in s) for s in self.equations.support),
            tuple(s.total for s in strata),
            self._samples,
            as_notes(notes),
            cutoff,
            plan.robot,
            rows=self._rows,
            strata=strata,
            period=self._period,
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
