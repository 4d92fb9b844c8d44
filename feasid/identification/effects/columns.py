"""The filtered equations of a log row by row, and the columns d tau / d theta of mistakes in them.

Rows are those that a fit reduces: the same runs, low-pass and kept rows. A column passes the same
low-pass as everything else, so that a mistake of size theta adds theta times its column to the
torques of the rows, to first order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.identification.regression.equations import (
    EquationReducer,
    EquationRows,
    Equations,
    GaussianLowPass,
)
from feasid.identification.regression.folds import EDGES, FOLDS, seconds_of_folds
from feasid.identification.regression.reduce import without_rows
from feasid.identification.regression.triangle import Reduced
from feasid.logs.motion import Run
from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import inverse_dynamics

HARMONICS = range(6, 201)
"""Periods per 2 pi rad of ripple that are searched. Fewer waves do not count as ripple: smooth
functions of the position are searched separately."""

Places = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class RunRows:
    """Equations of one run after filtering and decimation."""

    run: Run
    window: GaussianLowPass
    centres: Places  #: Shape (M,): samples that are kept.
    rows: EquationRows

    @property
    def t(self) -> Array:
        """Times, shape (M,) [s]."""
        return self.rows.t

    @cached_property
    def regressor(self) -> list[Array]:
        """Per joint the columns that it has, shape (M, k) each."""
        return [x[:-1].T for x in self.rows.filtered]

    @property
    def torque(self) -> Array:
        """Filtered torques, shape (dof, M)."""
        return np.array([x[-1] for x in self.rows.filtered])

    @cached_property
    def slope(self) -> Array:
        """Their time derivatives, shape (dof, M)."""
        return np.array(self.rows.slope)

    @property
    def sample_slice(self) -> slice:
        """Range of samples on which the rows depend."""
        half = self.window.half_width
        return slice(int(self.centres[0]) - half, int(self.centres[-1]) + half + 1)

    @property
    def smooth_spacing(self) -> int:
        """Samples from one to the next at which columns that are smooth are computed.

        The low-pass leaves little of what lies beyond its cut-off, and a column's own error
        changes a mistake's size by as much.
        """
        return self.window.largest_decimation(self.window.cutoff)

    def with_torques(self, run: Run) -> RunRows:
        """The rows of a run that has other torques."""
        tau = np.ascontiguousarray(run.tau.T)
        slope = self.window.derivative_filter.filter_rows(
            tau[:, self.sample_slice], len(self.centres)
        )
        rows = self.rows.with_torques(self.filter_signal(tau), tau[:, self.centres])
        return replace(self, run=run, rows=replace(rows, slope=[*slope]))

    def filter_signal(self, signal: Array) -> Array:
        """Rows of a signal (k, N) that is given at all samples, shape (k, M)."""
        part = np.ascontiguousarray(signal[:, self.sample_slice])
        return self.window.decimating_filter().filter_rows(part, len(self.centres))

    def filter_smooth_function(self, function: Callable[..., Array], *signals: Array) -> Array:
        """Rows of a function (k, n) of signals (n, dof) that is as smooth as the motion."""
        found = function(*map(self.decimate, signals))
        return self.window.decimating_filter(self.smooth_spacing).filter_rows(
            np.ascontiguousarray(found), len(self.centres)
        )

    def decimate(self, signal: Array) -> Array:
        """The samples of a signal (N, dof) at which smooth functions are computed."""
        return signal[self.sample_slice][
            self.window.half_width % self.smooth_spacing :: self.smooth_spacing
        ]


class LogRows:
    """All rows of a log for one robot, run by run and joint by joint.

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
        self._rigid: dict[tuple[Any, ...], Array] = {}
        equations = Equations(robot, columns, cutoff)
        place = {int(c): k for k, c in enumerate(equations.plan.columns)}
        self.supports = [[place[int(c)] for c in own] for own in equations.support]
        formed = ((run, equations.rows_of(run)) for run in runs)
        self.parts = [RunRows(run, *known) for run, known in formed if known is not None]
        counts = [len(p.t) for p in self.parts for _ in self.joints]
        self.joint = np.repeat([j for _ in self.parts for j in self.joints], counts)
        self.t = np.concatenate([p.t for p in self.parts for _ in self.joints])
        run = np.repeat([i for i, _ in enumerate(self.parts) for _ in self.joints], counts)
        second = seconds_of_folds(self.t)
        self.fold = second % FOLDS
        _, self.block = np.unique(np.stack([run, second]), axis=1, return_inverse=True)
        self.block = self.block.ravel()
        self.torque = self._join_runs([p.torque for p in self.parts])
        self.slope = self._join_runs([p.slope for p in self.parts])

    def with_torques(self, runs: Sequence[Run]) -> LogRows:
        """The rows of runs with the same motion and other torques."""
        out = copy(self)
        out._rigid = {}
        out.parts = [
            p.with_torques(r) for p, r in zip(self.parts, self._runs_with_rows(runs), strict=True)
        ]
        out.torque = out._join_runs([p.torque for p in out.parts])
        out.slope = out._join_runs([p.slope for p in out.parts])
        return out

    def _runs_with_rows(self, runs: Sequence[Run]) -> list[Run]:
        """Runs that are long enough for rows."""
        long = {(p.run.label, p.run.anchor, len(p.run)) for p in self.parts}
        return [r for r in runs if (r.label, r.anchor, len(r)) in long]

    def _join_runs(self, parts: Sequence[Array]) -> Array:
        """Rows of arrays (dof, M) per run."""
        return np.concatenate([p[j] for p in parts for j in self.joints])

    @cached_property
    def regressor(self) -> Array:
        """All columns, shape (rows, nb)."""
        out = np.zeros((len(self.t), len(self.base_columns)))
        at = 0
        for part in self.parts:
            for j in self.joints:
                out[at : at + len(part.t), self.supports[j]] = part.regressor[j]
                at += len(part.t)
        return out

    def strongest_harmonics(self, joint: int, beta: Array, count: int) -> list[int]:
        """Periods per 2 pi rad that the unfiltered residual of a joint holds most of.

        Each further one is the strongest in addition to those found before.
        """
        at = np.concatenate([p.run.q[p.centres, joint] for p in self.parts])
        raw = [p.rows.raw[joint] for p in self.parts]
        e = np.concatenate([x[-1] - beta[self.supports[joint]] @ x[:-1] for x in raw])
        found: list[int] = []
        for _ in range(count):
            found.append(HARMONICS[int(np.argmax(_explained_squares(e, at)))])
            waves = np.hstack([harmonic_columns(at, number) for number in found])
            e = e - waves @ np.linalg.lstsq(waves, e, rcond=None)[0]
        return found

    @cached_property
    def squared_slowness(self) -> Array:
        """Mean squared slowness of every row's class, as the noise knows it, shape (rows,)."""
        slow = self._join_runs([np.array(p.rows.slowness) for p in self.parts])
        level = np.searchsorted(EDGES, slow)
        out = np.empty(len(slow))
        for j in self.joints:
            for c in range(len(EDGES) + 1):
                own = (self.joint == j) & (level == c)
                if own.any():
                    out[own] = np.mean(slow[own] ** 2)
        return out

    def reduced(self, torque: Array, like: Reduced) -> Reduced:
        """The rows with other filtered torques, reduced; notes and sources are those of `like`."""
        reducer = EquationReducer(self.robot, self.base_columns, self.cutoff)
        at = 0
        for part in self.parts:
            filtered, size = part.torque, len(part.t)
            for j in self.joints:
                filtered[j] = torque[at : at + size]
                at += size
            raw = [x[-1] + now - was for x, now, was in
                   zip(part.rows.raw, filtered, part.torque, strict=True)]  # fmt: skip
            reducer.restart()
            reducer.add_rows(part.rows.with_torques(filtered, raw), len(part.run))
        found = reducer.result()
        rest = [j for j in range(self.robot.dof) if j not in self.joints]
        found = without_rows(found, rest) if rest else found
        kept = {name: getattr(like, name) for name in ("notes", "sources", "digests", "samples")}
        return replace(found, **kept, period=like.period)

    def stack_rows(self, parts: Sequence[Array]) -> Array:
        """Columns (k, dof, M) per run as rows of all, shape (rows, k)."""
        return np.concatenate([p[:, j].T for p in parts for j in self.joints])

    def rigid_torque(self, part: RunRows, model: Robot) -> Array:
        """Rows of the rigid bodies' torque, shape (dof, M)."""
        return part.filter_smooth_function(
            lambda q: self.unfiltered_torque(part, model).T, part.run.q
        )

    def unfiltered_torque(self, part: RunRows, model: Robot) -> Array:
        """The load at the samples of smooth functions, shape (n, dof)."""
        run = part.run
        motion = (part.decimate(x) for x in (run.q, run.dq, run.ddq))
        return self._known_torque((id(part), "smooth"), model, *motion)

    def load(self, part: RunRows, model: Robot, at_rest: bool) -> Array:
        """Torque of the rigid bodies, or of their weight alone, at all samples, shape (N, dof)."""
        q, dq, ddq = part.run.q, part.run.dq, part.run.ddq
        if at_rest:
            dq = ddq = np.zeros_like(q)
        return self._known_torque((id(part), at_rest), model, q, dq, ddq)

    def _known_torque(self, key: tuple[Any, ...], model: Robot, *motion: Array) -> Array:
        key = *key, model.values.tobytes()
        if key not in self._rigid:
            self._rigid[key] = inverse_dynamics(model.without_joint_terms(), *motion)
        return self._rigid[key]


def harmonic_columns(q: Array, number: float) -> Array:
    """Sine and cosine of a position, shape (N, 2)."""
    return np.stack([np.sin(number * q), np.cos(number * q)], axis=1)


def _explained_squares(e: Array, at: Array) -> Array:
    """Part of a squared residual (N,) that each of `HARMONICS` of positions explains, (waves,).

    The sums of squares and products of cosine and sine are those of waves of twice the number.
    """
    step, wave, sums = np.exp(1j * at), np.exp(1j * (HARMONICS.start - 1) * at), []
    for _ in HARMONICS:
        wave = wave * step
        sums.append((wave @ e, wave @ wave))
    (seen, twice), size = np.array(sums).T, (1.0 + 1e-9) * len(e)
    cosines, sines, both = (size + twice.real) / 2, (size - twice.real) / 2, twice.imag / 2
    c, s = seen.real, seen.imag
    squares = sines * c**2 - 2 * both * c * s + cosines * s**2
    return np.asarray(squares / (cosines * sines - both**2))
