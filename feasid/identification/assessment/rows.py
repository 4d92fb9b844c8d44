"""Filtered equations of a log row by row, its fifths, and the errors of models of the other four.

Fifths are contiguous pieces: of the time in which the robot moves, of the phase where a log repeats
its motion, of the postures for what depends on them. Decisions of the fit about the model are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array, Mask
from feasid.identification.estimation.held_out import CrossValidation
from feasid.identification.regression.folds import find_period, triangularise
from feasid.identification.regression.low_pass import DENSITY
from feasid.identification.regression.reduce import measured_rows
from feasid.identification.regression.rows import RunRows
from feasid.logs.motion import MOVING, Run
from feasid.robot.dynamics.regressor import inverse_dynamics

PARTS = 5  #: Contiguous parts of a log, each of which is predicted by the model of the others.
MOST_ROWS = 20_000  #: Number of rows beyond which every n-th is used; each then counts n times.
FEWEST_ROWS = 50  #: Least number of rows that are divided into fifths.
MOSTLY_STILL = 0.1  #: Share of moving rows below which all rows count: the log is one of postures.

Parts = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Rows (M,) of all runs of a log that are in memory, and the models of its parts."""

    models: CrossValidation
    runs: tuple[Run, ...]
    supports: list[list[int]]  #: columns of each joint's regressor
    regressors: list[Array]  #: (M, k) each
    torque: Array  #: (M, dof), filtered, in time with the motion
    slope: Array  #: (M, dof), its derivative
    slowness: Array  #: (M, dof)
    t: Array  #: of the run's begin [s]
    run: Parts  #: which run
    q: Array  #: (M, dof)
    dq: Array  #: (M, dof)
    step: int  #: number of rows that each kept row represents

    @classmethod
    def from_rows(
        cls, models: CrossValidation, rows: Sequence[RunRows], delay: float
    ) -> HeldOutRows | None:
        """Rows of a log, with torques taken `delay` [s] later; None where there are too few."""
        reduced, runs = models.reduced, tuple(part.run for part in rows)
        if not reduced.strata:
            return None
        most = sum(len(run) / run.rate for run in runs) * DENSITY * (reduced.cutoff or 0.0)
        step = max(1, int(-(-most // MOST_ROWS)))
        parts = [part.select(slice(k % step, None, step)) for k, part in enumerate(rows)]
        counts = [len(part.samples) for part in parts]
        if sum(counts) < FEWEST_ROWS:
            return None
        slope, slow = (
            np.concatenate([getattr(p, k) for p in parts], axis=1).T for k in ("slope", "slowness")
        )
        torque = np.concatenate([p.torque for p in parts], axis=1).T + delay * slope
        t = np.concatenate([p.t - p.run.t[0] for p in parts])
        q, dq = (np.concatenate([getattr(p.run, k)[p.samples] for p in parts]) for k in ("q", "dq"))
        regressors = [np.concatenate([x[:-1].T for x in every])
                      for every in zip(*(p.filtered for p in parts), strict=True)]  # fmt: skip
        supports, which = [*map(list, reduced.supports)], np.repeat(np.arange(len(parts)), counts)
        return cls(models, runs, supports, regressors, torque, slope, slow, t, which, q, dq, step)

    def __len__(self) -> int:
        return len(self.t)

    @cached_property
    def moving(self) -> Mask:
        """Rows in which some joint moves; all of a log of postures."""
        speed = np.sqrt(np.mean(self.dq**2, axis=0))
        scale = np.maximum(speed, MOVING * speed.max(initial=0.0))
        fast = np.abs(self.dq) > MOVING * np.where(scale > 0, scale, np.inf)
        moving: Mask = np.asarray(fast.any(axis=1))
        enough = moving.mean() >= MOSTLY_STILL and moving.sum() >= FEWEST_ROWS
        return moving if enough else np.ones_like(moving)

    @property
    def seconds(self) -> float:
        """Of motion."""
        return float(self.moving.mean() * sum(len(run) / run.rate for run in self.runs))

    @cached_property
    def period(self) -> float | None:
        """Seconds after which the motion is the same again; None where it does not repeat."""
        return find_period(self.runs)

    @cached_property
    def time_parts(self) -> Parts:
        """Fifths of the moving rows in their order."""
        count = np.cumsum(self.moving)
        which = np.minimum(PARTS * (count - 1).clip(0) // count[-1], PARTS - 1)
        return np.asarray(which, dtype=np.intp)

    @cached_property
    def phase_parts(self) -> Parts:
        """Fifths of the period; of the time where the motion does not repeat."""
        if self.period is None:
            return self.time_parts
        phase = (self.t % self.period) / self.period
        return np.asarray(np.minimum(phase * PARTS, PARTS - 1), dtype=np.intp)

    def posture_parts(self, sensitivity: Array) -> Parts:
        """Fifths of the postures along the direction in which gravity torques change most."""
        spread = self.q * sensitivity
        spread = spread - spread.mean(axis=0)
        # A few thousand rows show it as well as all.
        direction = np.linalg.svd(spread[:: max(1, len(spread) // 2000)], full_matrices=False)[2][0]
        along = spread @ direction
        edges = np.quantile(along[self.moving], np.arange(1, PARTS) / PARTS)
        return np.asarray(np.searchsorted(edges, along), dtype=np.intp)

    # -- models of the other parts -------------------------------------------------------------

    @cached_property
    def deviations(self) -> Array:
        """Standard deviations of the rows, (M, dof), each of which represents `step` rows."""
        noise, scale = self.models.noise, np.sqrt(self.step)
        each = [noise.deviations(j, s**2) for j, s in enumerate(self.slowness.T)]
        return np.asarray(np.stack(each, axis=1) / scale)

    @cached_property
    def time_models(self) -> Array:
        """Standard parameters of the models of all fifths of the time but one, (PARTS, n)."""
        return self.part_models(self.time_parts)

    @cached_property
    def phase_models(self) -> Array:
        """Standard parameters of the models of all fifths of the period but one, (PARTS, n)."""
        return self.time_models if self.period is None else self.part_models(self.phase_parts)

    def part_models(self, parts: Parts) -> Array:
        """Standard parameters of the models of all parts but one, (PARTS, n)."""
        size = len(self.models.base.independent)
        triangles, out = [], []
        for p in range(PARTS):  # whitened, of all joints
            part, stacked = parts == p, [np.zeros((0, size + 1))]
            for j in self.measured:
                rows = np.column_stack([self.regressors[j][part], self.torque[part, j]])
                factor = np.linalg.qr(rows / self.deviations[part, j, None], mode="r")
                stacked.append(np.zeros((len(factor), size + 1)))
                stacked[-1][:, [*self.supports[j], size]] = factor
            triangles.append(np.asarray(np.linalg.qr(np.vstack(stacked), mode="r")))
        for p in range(PARTS):
            r = triangularise(np.vstack([x for k, x in enumerate(triangles) if k != p]))
            out.append(self.models.solve((r[:size, :size], r[:size, size], float(r[size, size]))))
        return np.array(out)

    def errors_of(self, parts: Parts, models: Array) -> Array:
        """Residuals (M, dof) of each row by the model of its part, (parts, n)."""
        return self.errors(parts, models @ np.asarray(self.models.base.K, dtype=np.float64).T)

    @cached_property
    def measured(self) -> list[int]:
        """Joints whose torques are in the log."""
        return [int(j) for j in np.flatnonzero(measured_rows(self.models.reduced))]

    def errors(self, parts: Parts, betas: Array) -> Array:
        """Residuals (M, dof) of each row by the model of its part, (PARTS, nb)."""
        joints = zip(self.supports, self.regressors, self.torque.T, strict=True)
        out = [y - np.einsum("mk,mk->m", w, betas[parts][:, s]) for s, w, y in joints]
        return np.stack(out, axis=1)


def sample_errors(rows: HeldOutRows) -> Iterator[tuple[Run, Array]]:
    """Every run with its torques' errors at all samples, (N, dof), by models of other fifths.

    Where a motion repeats these are fifths of its period: those of the time were seen before.
    """
    parts, robot = rows.phase_parts, rows.models.base.robot
    for number, run in enumerate(rows.runs):
        errors, mine = run.tau.copy(), np.flatnonzero(rows.run == number)
        if not len(mine):
            continue
        nearest = np.searchsorted(rows.t[mine], run.t - run.t[0]).clip(0, len(mine) - 1)
        which = parts[mine][nearest]
        for part in np.unique(which):
            samples = which == part
            motion = run.q[samples], run.dq[samples], run.ddq[samples]
            errors[samples] -= inverse_dynamics(robot, *motion, parameters=rows.phase_models[part])
        yield run, errors
