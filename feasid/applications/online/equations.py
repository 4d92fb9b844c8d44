"""From samples in real time to filtered equations, with one causal filter for both sides.

Positions (and velocities, when they are measured) pass a symmetric polynomial smoother, which gives
position, velocity and acceleration with a pure delay of `half` samples; the torque is delayed by as
many. Regressor and torque then pass the same causal low-pass F: F Y beta = F tau holds for the true
beta whatever F, at the start of a run as well.

A store remembers all of them, the last ones, or all with fading weights, as triangles of
blocks of rows, which Householder reflections combine. A window is a ring of blocks, over
which a binary tree keeps the triangles of neighbours: a new block takes the oldest one's place and
renews its ancestors, so that nothing is ever subtracted, errors do not add up, and every block
costs the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from scipy import signal

from feasid.core.arguments import Count, NonNegative, count
from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.identification.regression.folds import absorb_rows, stack_triangles
from feasid.parameters.identifiability.base import BaseParameters
from feasid.results.archive.state import Kinds, real, several
from feasid.robot.dynamics.regressor import RegressorPlan

FILTER_ORDER = 2  #: Order of the Butterworth low-pass.
POLYNOMIAL_DEGREE = 3  #: Degree of the smoother: it leaves cubics as they are.

MIN_FILTERED_SIGN = 0.95
"""Filtered sign of a velocity above which the joint neither reversed nor rested recently."""

MAX_HALF_WIDTH = 10**5  #: Samples on either side of the smoother, by which torques are delayed.

REST_SPEED = 0.02
"""Low-passed speed [rad/s or m/s] below which a joint rests: a hundredth to a tenth of what robots
identify themselves with, and above what the steps of a 12-bit encoder look like."""


class CausalEquations:
    """Causal, block by block; the result does not depend on how a run is cut into blocks.

    `rate`: samples per second [Hz]; `cutoff`: of the low-pass on both sides [Hz];
    `derivative_cutoff`: of the smoother before derivatives [Hz]; `every`: keep every n-th row;
    `slow_weight`: factor on rows of a joint that has just turned or rests, where friction is least
    certain; `smoother`: {"polynomial", "moving-average"}, derivatives by the symmetric polynomial,
    or by backward differences and an exponential moving average of the same cut-off, as in the
    Valkyrie experiment: without delay in name, with its lag uncompensated in fact.
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
        self.rate, self.cutoff, self.every, self.slow_weight = rate, cutoff, every, slow_weight
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
        """Begin a run: the next sample does not continue the previous ones."""
        dof = self.robot.dof
        self._tail: dict[str, Array] = {x: np.zeros((dof, 0)) for x in ("q", "dq", "tau")}
        sections = len(self._sos)
        # Further columns are the torque and the sign of the joint's velocity.
        self._states = [np.zeros((sections, len(s) + 2, 2)) for s in self.plan.nonzero_columns]
        self._speed_state: Array | None = None
        self._average: tuple[Array, ...] | None = None
        self._next = 0
        self.moving = np.zeros(0, dtype=bool)

    def push(self, q: Array, tau: Array, dq: Array | None = None) -> tuple[list[Array], Array]:
        """CausalEquations of samples that follow on the last.

        `q`, `tau` and `dq` are (dof, N); `dq` always or never within a run. Returns per joint the
        coefficients of its base parameters with its torque last, (len(support[j]) + 1, rows), and
        which of the N samples each row ended at. `moving` then says of each row whether
        some joint was faster than `REST_SPEED`.
        """
        differentiate = self._differentiate_in_window if self._taps else self._smooth_differences
        motion = differentiate(q, tau, dq)
        count = motion[0].shape[1]
        if not count:
            self.moving = np.zeros(0, dtype=bool)
            empty = [np.empty((len(s) + 1, 0)) for s in self.plan.nonzero_columns]
            return empty, np.zeros(0, dtype=np.intp)
        blocks = [np.empty((len(s) + 2, count)) for s in self.plan.nonzero_columns]
        self.plan.fill(motion[0], motion[1], motion[2], blocks)
        # Every n-th row of the run, whatever the sizes of its blocks.
        kept_rows = np.arange(self._next, count, self.every)
        self._next += len(kept_rows) * self.every - count
        if self._speed_state is None:  # as if it had always been the first
            self._speed_state = signal.sosfilt_zi(self._sos)[:, None, :] * motion[1][None, :, :1]
        speed, self._speed_state = signal.sosfilt(self._sos, motion[1], zi=self._speed_state)
        self.moving = np.asarray((np.abs(speed[:, kept_rows]) > REST_SPEED).any(axis=0))
        out = []
        for j, block in enumerate(blocks):
            # The sign of a velocity, filtered alike, is below one after a reversal or a rest.
            block[-2], block[-1] = motion[3][j], np.sign(motion[1][j])
            filtered, self._states[j] = signal.sosfilt(self._sos, block, zi=self._states[j])
            rows = filtered[:, kept_rows]
            weights = np.where(np.abs(rows[-1]) < MIN_FILTERED_SIGN, self.slow_weight, 1.0)
            out.append(rows[:-1] * weights)
        return out, kept_rows + q.shape[1] - count

    def _differentiate_in_window(self, q: Array, tau: Array, dq: Array | None) -> tuple[Array, ...]:
        """Position, velocity, acceleration and torque `half` samples ago, shape (dof, n)."""
        fresh = {"q": q, "dq": q[:, :0] if dq is None else dq, "tau": tau}
        joined = {x: np.concatenate([self._tail[x], v], axis=1) for x, v in fresh.items()}
        keep = 2 * self.half
        self._tail = {x: v[:, max(v.shape[1] - keep, 0) :] for x, v in joined.items()}
        count = max(joined["q"].shape[1] - keep, 0)
        if not count:
            return q[:, :0], q[:, :0], q[:, :0], tau[:, :0]
        position = _sliding(joined["q"], self._taps[0])
        if dq is None:
            rates = _sliding(joined["q"], self._taps[1]), _sliding(joined["q"], self._taps[2])
        else:
            rates = _sliding(joined["dq"], self._taps[0]), _sliding(joined["dq"], self._taps[1])
        return position, *rates, joined["tau"][:, self.half : self.half + count]

    def _smooth_differences(self, q: Array, tau: Array, dq: Array | None) -> tuple[Array, ...]:
        """Backward differences, smoothed by exponential moving averages, shape (dof, n)."""
        if not q.shape[1]:  # samples that reach no time of the even grid yet
            return q, q, q, tau
        if self._average is None:
            still = np.zeros((self.robot.dof, 1))
            self._average = q[:, :1], (still if dq is None else dq[:, :1]), still
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
    half = max(2, round(((POLYNOMIAL_DEGREE + 1) * 0.5 * rate / cutoff + 4.6) / 3.2))
    if half > MAX_HALF_WIDTH:
        raise InputError(
            f"a derivative_cutoff of {cutoff:g} Hz at {rate:g} samples per second needs a smoother "
            f"of {2 * half + 1} samples; at most {2 * MAX_HALF_WIDTH + 1} are allowed: raise it"
        )
    return half


def _sliding(x: Array, taps: Array) -> Array:
    """Weighted sums over a moving window, shape (dof, N - len(taps) + 1), contiguous."""
    windows = np.lib.stride_tricks.sliding_window_view(x, len(taps), axis=1)
    return np.ascontiguousarray(windows @ taps)


Triangles = list[Array]  #: Per joint the triangle of [Y | tau].


def _empty_triangles(sizes: Sequence[int]) -> Triangles:
    return [np.zeros((k, k), order="F") for k in sizes]


def _absorb_rows(triangles: Triangles, rows: Sequence[Array]) -> None:
    for triangle, block in zip(triangles, rows, strict=True):
        if block.shape[1]:
            absorb_rows(triangle, np.array(block, order="C").T)


class FadingEquations:
    """All rows; a row's square has weight ``factor ** n`` after n samples; 1 keeps all.

    `count`: sum of the weights.
    """

    def __init__(self, sizes: Sequence[int], factor: float) -> None:
        self._sizes, self.factor = sizes, factor
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._triangles, self.count = _empty_triangles(self._sizes), 0.0

    def learnt(self) -> Kinds:
        """What is saved."""
        return {"_triangles": several(*(real(k, k) for k in self._sizes)), "count": NonNegative}

    def add(self, rows: Sequence[Array], age: Array, samples: int) -> None:
        """Take rows in, each ``age`` samples old, when `samples` samples have passed."""
        faded = self.factor**samples
        for triangle in self._triangles:
            triangle *= np.sqrt(faded)
        weights = self.factor ** age.astype(np.float64)
        _absorb_rows(self._triangles, [block * np.sqrt(weights) for block in rows])
        self.count = faded * self.count + float(weights.sum())

    def triangles(self) -> Triangles:
        """Per joint."""
        return [np.triu(t) for t in self._triangles]


class WindowedEquations:
    """Equations of the last blocks, each with weight 1."""

    def __init__(self, sizes: Sequence[int], blocks: int) -> None:
        self._sizes, self.blocks = sizes, blocks
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        # A complete binary tree in one list: node k hangs on k // 2, and leaves come last.
        self._leaves = 1 << max(self.blocks - 1, 0).bit_length()
        self._tree: list[Triangles | None] = [None] * (2 * self._leaves)
        self._counts = [0] * self.blocks
        self._next = 0
        self.filled = 0

    def learnt(self) -> Kinds:
        """What is saved."""
        triangles = several(*(real(k, k) for k in self._sizes))
        return {
            "_tree": several(triangles | None, ...),
            "_counts": several(Count, ...),
            "_next": Annotated[int, count(0, self.blocks - 1)],
            "filled": Annotated[int, count(0, self.blocks)],
        }

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
            first, second = self._tree[2 * at], self._tree[2 * at + 1]
            if first is None or second is None:
                self._tree[at] = first if second is None else second
            else:
                self._tree[at] = [*map(stack_triangles, zip(first, second, strict=True))]
        self._next = (self._next + 1) % self.blocks
        self.filled = min(self.filled + 1, self.blocks)

    def triangles(self) -> Triangles:
        """Per joint."""
        root = self._tree[1]
        return [np.triu(t) for t in (_empty_triangles(self._sizes) if root is None else root)]


EquationStore = FadingEquations | WindowedEquations
