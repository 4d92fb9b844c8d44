"""Prepared runs to reduced data with both sides of the equations behind one low-pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import NotEnoughDataError
from feasid.core.notes import as_notes
from feasid.core.threads import one_thread
from feasid.identification.regression.folds import FOLDS, StrataBuilder, seconds_of_folds
from feasid.identification.regression.rows import RowFormer, Rows, RunRows
from feasid.identification.regression.triangle import Reduced, fingerprint_of, without_rows
from feasid.logs.motion import Run
from feasid.robot.description import Robot


class EquationReducer:
    """Accumulates equations; parameters as those of `RowFormer`.

    `keep`: whether rows stay with their runs, for a search or a verdict that reads them later.
    """

    def __init__(
        self,
        robot: Robot,
        columns: Sequence[int],
        cutoff: float,
        free: bool = False,
        keep: bool = False,
    ) -> None:
        self.former, self.keep = RowFormer(robot, columns, cutoff, free), keep
        self._strata = [StrataBuilder(len(s) + 1) for s in self.former.support]
        self._samples = self._rows = 0
        self._period = 0.0
        self._power = np.zeros(robot.dof)

    @one_thread()
    def add(self, run: Run) -> None:
        """Add one run of unfiltered torques; a run shorter than the window adds nothing."""
        self.restart()
        # Rows that nobody keeps are formed in groups, so that a long run needs little memory.
        every = self.former.rows_of(run) if self.keep else None
        for rows in self.former.form(run) if every is None else [every]:
            self.add_rows(rows)
        if run.applied is not None:
            self._power += self.former.squared_norms(run)
        self._period = max(self._period, 1.0 / run.rate)
        # The surroundings of a piece of a streamed log are counted with the pieces next to it.
        self._samples += len(run) if run.own is None else run.own[1] - run.own[0]

    def restart(self) -> None:
        """Start a new run: the next rows do not continue the last ones."""
        for strata in self._strata:
            strata.restart()

    def add_rows(self, rows: RunRows, samples: int = 0) -> None:
        """Add equations that the caller formed from a number of samples."""
        fold = seconds_of_folds(rows.t) % FOLDS
        signals = rows.filtered, rows.raw, rows.slowness, rows.slope
        for strata, through, raw, slow, slope in zip(self._strata, *signals, strict=True):
            strata.add(through, raw, slow, fold, slope)
        self._rows += len(rows.samples)
        self._samples += samples

    def result(self, notes: Sequence[str] = ()) -> Reduced:
        """The reduction of everything added so far."""
        cutoff, plan = self.former.cutoff, self.former.plan
        if not self._rows:
            raise NotEnoughDataError(
                f"no segment of the log is as long as the equations' filter at {cutoff:g} Hz "
                f"({1.6 / cutoff:.2g} s): record longer, or raise the cut-off",
                cutoff=cutoff,
            )
        strata = tuple(s.result() for s in self._strata)
        return Reduced(
            fingerprint_of(plan.robot, plan.columns),
            plan.columns,
            tuple(map(tuple, self.former.supports)),
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


def reduce_rows(rows: Rows, torque: Array, like: Reduced) -> Reduced:
    """The rows with other filtered torques, (rows,), reduced; notes and sources are of `like`."""
    reducer = EquationReducer(rows.robot, rows.base_columns, rows.cutoff)
    by_joint, joints = torque.reshape(len(rows.joints), -1), [*rows.joints]
    ends = np.cumsum([len(p.samples) for p in rows.parts])
    for part, mine in zip(rows.parts, np.split(by_joint, ends[:-1], axis=1), strict=True):
        # Two arrays: the property forms a new one each time. Raw torques change alike.
        before, filtered = part.torque, part.torque
        filtered[joints] = mine
        raw = np.array([x[-1] for x in part.raw]) + filtered - before
        reducer.restart()
        reducer.add_rows(part.with_torques(filtered, raw), len(part.run))
    unmeasured = [j for j in range(rows.robot.dof) if j not in rows.joints]
    origin = {name: getattr(like, name) for name in ("notes", "sources", "digests", "samples")}
    return replace(without_rows(reducer.result(), unmeasured), **origin, period=like.period)
