"""Prepared runs to reduced data with both sides of the equations behind one low-pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from feasid.arrays import Array
from feasid.dynamics.regressor import CHUNK, RegressorPlan
from feasid.dynamics.spatial import as_samples_last
from feasid.errors import NotEnoughDataError
from feasid.logs.motion import Run
from feasid.notes import notes as as_notes
from feasid.reduction.strata import FOLD_SECONDS, FOLDS, SLOW, StrataBuilder
from feasid.reduction.triangle import Reduced, fingerprint
from feasid.reduction.window import Window
from feasid.robot.description import Robot
from feasid.threads import one_thread


class EquationReducer:
    """Accumulates runs; torques and regressor go through `Window` at the kept rows.

    Parameters
    ----------
    robot : Robot
    columns : sequence of int
        ``base.independent``.
    cutoff : float
        Where the window's gain is 1/2 [Hz].
    """

    def __init__(self, robot: Robot, columns: Sequence[int], cutoff: float) -> None:
        self.plan = RegressorPlan.of(robot, columns)
        self.cutoff = cutoff
        self._strata = [StrataBuilder(len(s) + 1) for s in self.plan.support]
        self._slow = _friction_speeds(robot)
        self._samples = self._rows = 0

    @property
    def rows(self) -> int:
        """Equations per joint so far."""
        return self._rows

    @one_thread()
    def add(self, run: Run, origin: float = 0.0) -> None:
        """Add one run of unfiltered torques; a run shorter than the window adds nothing.

        Parameters
        ----------
        run : Run
        origin : float
            Time [s] that is added to the run's before it is shared among folds.
        """
        window = Window(self.cutoff, run.rate)
        signals = [as_samples_last(x) for x in (run.q, run.dq, run.ddq, run.tau)]
        for strata in self._strata:
            strata.restart()
        for centres in window.groups(len(run), CHUNK):
            part = slice(int(centres[0]) - window.half, int(centres[-1]) + window.half + 1)
            time = np.asarray(run.t[centres]) + origin
            self._group(window, len(centres), [x[:, part] for x in signals], time)
        self._samples += len(run)

    def _group(self, window: Window, count: int, signals: list[Array], t: Array) -> None:
        q, dq, ddq, tau = signals
        length = q.shape[1]
        blocks = [np.empty((len(s) + 2, length)) for s in self.plan.support]
        self.plan.fill(q, dq, ddq, blocks)
        fold = (np.floor(t / FOLD_SECONDS).astype(np.int64) % FOLDS).astype(np.intp)
        own = window.half + window.spacing * np.arange(count)
        for j, block in enumerate(blocks):
            block[-2] = tau[j]
            block[-1] = self._slowness(j, dq)
            filtered = window.rows(block, count)
            self._strata[j].add(filtered[:-1], block[:-1, own], filtered[-1], fold)
        self._rows += count

    def _slowness(self, row: int, dq: Array) -> Array | float:
        """exp(-(v / SLOW)^2) of the slowest drive that moves this coordinate."""
        speeds = [np.abs(c @ dq) for c in self._slow if c[row]]
        if not speeds:
            return 0.0
        return np.asarray(np.exp(-((np.min(speeds, axis=0) / SLOW) ** 2)))

    def result(self, notes: Sequence[str] = ()) -> Reduced:
        """The reduction of everything added so far.

        Raises
        ------
        NotEnoughDataError
            When no run was as long as the window.
        """
        if not self._rows:
            raise NotEnoughDataError(
                f"no stretch of the log is as long as the equations' filter at {self.cutoff:g} Hz "
                f"({1.6 / self.cutoff:.2g} s): record longer, or raise the cut-off",
                cutoff=self.cutoff,
            )
        place = {c: k for k, c in enumerate(self.plan.columns)}
        strata = tuple(s.result() for s in self._strata)
        return Reduced(
            fingerprint(self.plan.robot, self.plan.columns),
            self.plan.columns,
            tuple(tuple(place[c] for c in s) for s in self.plan.support),
            tuple(s.total for s in strata),
            self._samples,
            as_notes(notes),
            self.cutoff,
            self.plan.robot,
            rows=self._rows,
            strata=strata,
        )


def _friction_speeds(robot: Robot) -> list[npt.NDArray[np.float64]]:
    """Combinations of joint velocities whose Coulomb friction is fitted."""
    return [robot.coupling(k) for k, d in enumerate(robot.drives) if "fc" in d.symbols]
