"""From samples as they come to filtered equations, with one causal filter for both sides.

Positions (and velocities, when they are measured) pass a symmetric polynomial smoother, which gives
position, velocity and acceleration with a pure delay of `half` samples; the torque is delayed by as
many. Regressor and torque then pass the same causal low-pass F: F Y beta = F tau holds for the true
beta whatever F, at the start of a run as well.

An `EquationStore` remembers all of them, the last ones, or all with fading weights, as triangles of
blocks of rows, which Householder reflections combine. A window is a ring of blocks, over
which a binary tree keeps the triangles of neighbours: a new block takes the oldest one's place and
renews its ancestors, so that nothing is ever subtracted, errors do not add up, and every block
costs the same.

Sudden changes of the robot, a load picked up or put down, by errors of prediction.

Every block of rows is predicted before it is learnt. The logarithm of its whitened error against
what has been usual is summed as long as the sum is positive (Page 1954, Continuous inspection
schemes, Biometrika 41): a change by a factor shows at once, an ordinary scatter never.

After a change, everything stays known that a load cannot have changed (`LoadInvariantEquations`).
A load delta_L fixed to a body changes the base parameters by K_L delta_L, K_L the body's columns
of K (Khalil, Gautier and Lemoine 2007). The equations before the change, R beta = rho, say of the
parameters beta' = beta + K_L delta_L after it

    min over delta_L of |R beta' - R K_L delta_L - rho|^2,

which is a triangle again: that of [R K_L | R | rho] below its first ten rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import signal

from feasid.core.arrays import Array
from feasid.dynamics.regressor import RegressorPlan
from feasid.errors import InputError, did_you_mean
from feasid.identifiability.base import BaseParameters
from feasid.reduction.strata import absorb_rows, stack_triangles

FILTER_ORDER = 2
"""Of the Butterworth low-pass."""

POLYNOMIAL_DEGREE = 3
"""Degree of the smoother: it leaves cubics as they are."""

MIN_FILTERED_SIGN = 0.95
"""Filtered sign of a joint's velocity above which it has not turned or rested lately."""

SMOOTHERS = ("polynomial", "moving-average")

REST_SPEED = 0.02
"""Low-passed speed [rad/s or m/s] below which a joint rests: a hundredth to a tenth of what robots
identify themselves with, and above what the steps of a 12-bit encoder look like."""


class CausalEquations:
    """Causal, block by block; the result does not depend on how a run is cut into blocks.

    Parameters
    ----------
    base : BaseParameters
    rate : float
        Samples per second [Hz].
    cutoff : float
        Of the low-pass on both sides [Hz].
    derivative_cutoff : float
        Of the smoother before derivatives [Hz].
    every : int
        Keep every n-th row.
    slow_weight : float
        Factor on rows of a joint that has just turned or rests, where friction is least certain.
    smoother : {"polynomial", "moving-average"}
        Derivatives by the symmetric polynomial, or by backward differences and an exponential
        moving average of the same cut-off, as in the Valkyrie experiment: without delay in name,
        with its lag uncompensated in fact.
    """

    def __init__(
        self,
        base: BaseParameters,
        rate: float,
        cutoff: float,
        derivative_cutoff: float,
        every: int,
        slow_weight: float,
        smoother: str = "polynomial",
    ) -> None:
        if not cutoff < 0.5 * rate or not derivative_cutoff <= 0.5 * rate:
            raise InputError(
                f"cut-offs of {cutoff:g} and {derivative_cutoff:g} Hz need a rate above twice "
                f"as much, not {rate:g} Hz"
            )
        self.robot = base.robot
        self.plan = RegressorPlan.from_robot(self.robot, [int(c) for c in base.independent])
        self.rate, self.every, self.slow_weight = rate, every, slow_weight
        self.half = half_width(rate, derivative_cutoff) if smoother == "polynomial" else 0
        self._taps = [
            signal.savgol_coeffs(
                2 * self.half + 1, POLYNOMIAL_DEGREE, deriv=d, delta=1 / rate, use="dot"
            )
            for d in range(3)
        ] if smoother == "polynomial" else []  # fmt: skip
        self._decay = float(np.exp(-2 * np.pi * derivative_cutoff / rate))
        self._sos = signal.butter(FILTER_ORDER, cutoff, fs=rate, output="sos")
        self.reset()

    def reset(self) -> None:
        """Begin a run: what comes next does not follow on what came before."""
        dof = self.robot.dof
        self._tail: dict[str, Array] = {x: np.zeros((dof, 0)) for x in ("q", "dq", "tau")}
        sections = len(self._sos)
        self._states = [np.zeros((sections, len(s) + 2, 2)) for s in self.plan.support]
        self._speed_state: Array | None = None
        self._average: tuple[Array, ...] | None = None
        self._next = 0
        self.moving = np.zeros(0, dtype=bool)

    def push(self, q: Array, tau: Array, dq: Array | None = None) -> tuple[list[Array], Array]:
        """CausalEquations of samples that follow on the last.

        Parameters
        ----------
        q, tau, dq : ndarray, shape (dof, N)
            `dq` always or never within a run.

        Returns
        -------
        list of ndarray, shapes (len(support[j]) + 1, rows)
            Per joint the coefficients of its base parameters, and its torque last.
        ndarray of int, shape (rows,)
            Which of the N samples each row was completed by.

        Notes
        -----
        `moving` then says of each row whether some joint was faster than `REST_SPEED`.
        """
        motion = (
            self._differentiate_in_window(q, tau, dq)
            if self._taps
            else self._differentiate_by_averages(q, tau, dq)
        )
        count = motion[0].shape[1]
        blocks = [np.empty((len(s) + 2, count)) for s in self.plan.support]
        if count:
            self.plan.fill(motion[0], motion[1], motion[2], blocks)
        kept = np.arange(self._next, count, self.every)
        self._next = int(kept[-1]) + self.every - count if kept.size else self._next - count
        speed = motion[1]
        if count:
            if self._speed_state is None:  # as if it had always been the first
                steady = signal.sosfilt_zi(self._sos)[:, None, :]
                self._speed_state = steady * speed[None, :, :1]
            speed, self._speed_state = signal.sosfilt(
                self._sos, speed, axis=1, zi=self._speed_state
            )
        self.moving = np.asarray((np.abs(speed[:, kept]) > REST_SPEED).any(axis=0))
        out = []
        for j, block in enumerate(blocks):
            block[-2], block[-1] = motion[3][j], np.sign(motion[1][j])
            if count:
                block, self._states[j] = signal.sosfilt(
                    self._sos, block, axis=1, zi=self._states[j]
                )
            rows = block[:, kept]
            out.append(
                rows[:-1] * np.where(np.abs(rows[-1]) < MIN_FILTERED_SIGN, self.slow_weight, 1.0)
            )
        return out, kept + q.shape[1] - count

    def _differentiate_in_window(self, q: Array, tau: Array, dq: Array | None) -> tuple[Array, ...]:
        """Position, velocity, acceleration and torque `half` samples ago, shape (dof, n)."""
        fresh = {"q": q, "dq": q[:, :0] if dq is None else dq, "tau": tau}
        whole = {x: np.concatenate([self._tail[x], v], axis=1) for x, v in fresh.items()}
        keep = 2 * self.half
        self._tail = {x: v[:, max(v.shape[1] - keep, 0) :] for x, v in whole.items()}
        count = max(whole["q"].shape[1] - keep, 0)
        if not count:
            return q[:, :0], q[:, :0], q[:, :0], tau[:, :0]
        position = _sliding(whole["q"], self._taps[0])
        if dq is None:
            rates = _sliding(whole["q"], self._taps[1]), _sliding(whole["q"], self._taps[2])
        else:
            rates = _sliding(whole["dq"], self._taps[0]), _sliding(whole["dq"], self._taps[1])
        return position, *rates, whole["tau"][:, self.half : self.half + count]

    def _differentiate_by_averages(
        self, q: Array, tau: Array, dq: Array | None
    ) -> tuple[Array, ...]:
        """Backward differences, smoothed by exponential moving averages, shape (dof, n)."""
        if self._average is None:
            first = q[:, :1] if dq is None else dq[:, :1]
            still = np.zeros((self.robot.dof, 1))
            self._average = q[:, :1], (still if dq is None else first), still
        last, speed, push = self._average
        gain = 1.0 - self._decay
        if dq is None:
            raw = np.diff(np.concatenate([last, q], axis=1), axis=1) * self.rate
            rate, _ = signal.lfilter([gain], [1, -self._decay], raw, zi=self._decay * speed)
        else:
            rate = dq
        raw = np.diff(np.concatenate([speed, rate], axis=1), axis=1) * self.rate
        pushes, _ = signal.lfilter([gain], [1, -self._decay], raw, zi=self._decay * push)
        newest = q[:, -1:], rate[:, -1:], pushes[:, -1:]
        self._average = tuple(x.copy() for x in newest)  # the caller may write to its own again
        return q, rate, pushes, tau


def half_width(rate: float, cutoff: float) -> int:
    """Samples on either side of a cubic smoother whose gain falls by 3 dB at this frequency.

    R. W. Schafer (2011), What is a Savitzky-Golay filter?, IEEE Signal Processing Magazine 28(4).
    """
    return max(2, round(((POLYNOMIAL_DEGREE + 1) * 0.5 * rate / cutoff + 4.6) / 3.2))


def _sliding(x: Array, taps: Array) -> Array:
    """Weighted sums over a moving window, shape (dof, N - len(taps) + 1), contiguous."""
    windows = np.lib.stride_tricks.sliding_window_view(x, len(taps), axis=1)
    return np.ascontiguousarray(windows @ taps)


Triangles = list[Array]


class EquationStore(Protocol):
    """Remembers rows."""

    @property
    def count(self) -> float:
        """Sum of the rows' weights."""

    def add(self, rows: Sequence[Array], age: Array, samples: int) -> None:
        """Take rows in, each ``age`` samples old, when `samples` samples have passed."""

    def clear(self) -> None:
        """Forget everything."""

    def triangles(self) -> Triangles:
        """Triangles per joint of [Y | tau], upper triangular."""


def _empty_triangles(sizes: Sequence[int]) -> Triangles:
    return [np.zeros((k, k), order="F") for k in sizes]


def _absorb_rows(triangles: Triangles, rows: Sequence[Array]) -> None:
    for triangle, block in zip(triangles, rows, strict=True):
        if block.shape[1]:
            absorb_rows(triangle, np.array(block, order="C").T)


class FadingEquations:
    """All rows; a row's square has weight ``factor ** n`` after n samples; 1 keeps all."""

    def __init__(self, sizes: Sequence[int], factor: float) -> None:
        self._sizes, self.factor = sizes, factor
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._triangles, self._count = _empty_triangles(self._sizes), 0.0

    @property
    def count(self) -> float:
        """Sum of the rows' weights."""
        return self._count

    def add(self, rows: Sequence[Array], age: Array, samples: int) -> None:
        """Take rows in."""
        faded = self.factor**samples
        for triangle in self._triangles:
            triangle *= np.sqrt(faded)
        weights = self.factor ** age.astype(np.float64)
        _absorb_rows(self._triangles, [block * np.sqrt(weights) for block in rows])
        self._count = faded * self._count + float(weights.sum())

    def triangles(self) -> Triangles:
        """Per joint."""
        return [np.triu(t) for t in self._triangles]


class WindowedEquations:
    """The last blocks, each of weight one."""

    def __init__(self, sizes: Sequence[int], blocks: int) -> None:
        self._sizes, self.blocks = sizes, blocks
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._leaves = 1 << max(self.blocks - 1, 0).bit_length()
        self._tree: list[Triangles | None] = [None] * (2 * self._leaves)
        self._counts = [0] * self.blocks
        self._next = 0
        self.filled = 0

    @property
    def count(self) -> float:
        """Rows in the window."""
        return float(sum(self._counts))

    def add(self, rows: Sequence[Array], age: Array, samples: int) -> None:
        """Take a block's rows in; the oldest block leaves."""
        leaf = _empty_triangles(self._sizes)
        _absorb_rows(leaf, rows)
        self._counts[self._next] = len(age)
        at = self._leaves + self._next
        self._tree[at] = leaf
        while at > 1:
            at //= 2
            left, right = self._tree[2 * at], self._tree[2 * at + 1]
            if left is None or right is None:
                self._tree[at] = left if right is None else right
            else:
                self._tree[at] = [stack_triangles(a, b) for a, b in zip(left, right, strict=True)]
        self._next = (self._next + 1) % self.blocks
        self.filled = min(self.filled + 1, self.blocks)

    def triangles(self) -> Triangles:
        """Per joint."""
        root = self._tree[1]
        return [np.triu(t) for t in (_empty_triangles(self._sizes) if root is None else root)]


LOG_USUAL_SCATTER = np.log(1.5)
"""Drift of the sum: errors of blocks that are this much larger than usual count as ordinary."""

MIN_CHANGED_BLOCKS = 2.5
"""Blocks that a change takes at least, less a half: one bad block, a joint that sticks, is none."""

LEARNING, RELIEF = 0.1, 0.3
"""Share of a block in what is usual, when its error is larger and when it is smaller: errors that
fall while a model is learnt shall not hide a change."""


@dataclass(frozen=True)
class ModelChange:
    """A sudden change.

    Attributes
    ----------
    time : float
        When it was noticed, by the samples' clock [s].
    size : float
        Error of the last block over the usual one.
    joints : tuple of str
        Those whose error grew most.
    """

    time: float
    size: float
    joints: tuple[str, ...]

    def __str__(self) -> str:
        where = ", ".join(self.joints)
        return f"{self.time:.2f} s: errors are {self.size:.1f} times the usual ones, at {where}"


class ChangeDetector:
    """One per robot.

    Parameters
    ----------
    joints : tuple of str
    threshold : float
        Of the sum of logarithms: log 20 is three blocks of four times the usual error.
    settle : int
        Blocks before anything is usual; a quarter of them after a change.
    """

    def __init__(self, joints: tuple[str, ...], threshold: float, settle: int) -> None:
        self.joints, self.threshold, self.settle = joints, threshold, settle
        self.reset()
        self._left = settle

    def reset(self) -> None:
        """Begin to learn what is usual."""
        self.level = 0.0
        self._usual: Array | None = None
        self._left = self.settle // 4

    def update(self, errors: Array, time: float) -> ModelChange | None:
        """Take the whitened errors of a block, shape (dof,); a change when there is one.

        What is usual is learnt, as logarithms of squares, from blocks that raise no suspicion;
        errors within the noise count as noise.
        """
        squares = np.log(np.maximum(np.asarray(errors, dtype=np.float64), 1.0)) * 2
        self._left -= 1
        if self._usual is None:
            self._usual = squares
        grown = squares - self._usual
        ratio = 0.5 * float(np.log(np.mean(np.exp(grown))))
        self.level = max(
            0.0, self.level + min(ratio - LOG_USUAL_SCATTER, self.threshold / MIN_CHANGED_BLOCKS)
        )
        if self._left >= 0 or self.level == 0.0:
            self.level = 0.0
            self._usual = self._usual + np.where(grown > 0, LEARNING, RELIEF) * grown
        if self.level <= self.threshold:
            return None
        worst = [k for k in np.argsort(-grown)[:3] if grown[k] > grown.max() - np.log(4.0)]
        return ModelChange(time, float(np.exp(ratio)), tuple(self.joints[k] for k in worst))


class LoadInvariantEquations:
    """Equations from before the last change; they fade over a window.

    Parameters
    ----------
    base : BaseParameters
    carrier : str or None
        Body that a load is fixed to; default the last.
    fading : int
        Samples after which their squares have fallen to 1/e.
    """

    def __init__(self, base: BaseParameters, carrier: str | None, fading: int) -> None:
        robot = base.robot
        names = [b.name for b in robot.bodies]
        if carrier is not None and carrier not in names:
            raise InputError(
                f"robot {robot.name!r} has no body {carrier!r}{did_you_mean(carrier, names)}"
            )
        body = len(names) - 1 if carrier is None else names.index(carrier)
        self._load = np.asarray(base.K)[:, robot.inertial_columns[body]]
        self.fading = fading
        self._rows: tuple[Array, Array] | None = None
        self._left = 1.0

    def set_from(self, R: Array, rho: Array) -> None:
        """Take over whitened equations, without what a load may have changed."""
        wide = np.column_stack([R @ self._load, R, rho])
        triangle = np.asarray(np.linalg.qr(wide, mode="r"))
        kept = triangle[self._load.shape[1] :]
        self._rows = kept[:, self._load.shape[1] : -1], kept[:, -1]
        self._left = 1.0

    def fade(self, samples: int) -> None:
        """Lower the weight of the rows before the change by ``exp(-samples / fading)``."""
        if self._rows is not None:
            self._left *= float(np.exp(-samples / self.fading))

    def combined_with(self, R: Array, rho: Array) -> tuple[Array, Array]:
        """Equations with those from before the change, R and rho of their triangle."""
        if self._rows is None:
            return R, rho
        factor = np.sqrt(self._left)
        wide = np.vstack(
            [np.column_stack([R, rho]), factor * np.column_stack([self._rows[0], self._rows[1]])]
        )
        triangle = np.asarray(np.linalg.qr(wide, mode="r"))
        size = R.shape[1]
        return triangle[:size, :size], triangle[:size, size]
