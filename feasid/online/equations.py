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

A load picked up or put down shows in errors of prediction. Rows are predicted before they are
learnt; errors e of half a second of motion, whitened, and the torques x = Y K_L l that a mass of
1 kg at the carrier's centre of mass would cause give the least-squares estimate of a mass,

    m = x' e / x' x,    var(m) = s (1 + (Y' x)' C (Y' x) / x' x) max(1, X / x' x),

with C the covariance of the parameters that predict and X the usual x' x. Noise that is correlated
in time, stiction and whatever else the model lacks scatter these estimates alike, so that s is the
mean square of the estimates before (batch means: Schmeiser 1982, Batch size effects in the analysis
of simulation output, Operations Research 30), and m is judged by Student's distribution.

After a change, everything stays known that a load cannot have changed (`LoadInvariantEquations`).
A load delta_L fixed to a body changes the base parameters by K_L delta_L, K_L the body's columns
of K (Khalil, Gautier and Lemoine 2007). The equations before the change, R beta = rho, say of the
parameters beta' = beta + K_L delta_L after it

    min over delta_L of |R beta' - R K_L delta_L - rho|^2,

which is a triangle again: that of [R K_L | R | rho] below its first ten rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import signal
from scipy.special import stdtrit

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


def make_store(
    equations: CausalEquations, window: int | None, forgetting: float | None, block: int
) -> EquationStore:
    """What remembers the equations."""
    sizes = [len(s) + 1 for s in equations.plan.support]
    if window is not None:
        return WindowedEquations(sizes, window // block)
    return FadingEquations(sizes, 1.0 if forgetting is None else forgetting)


BATCH_SECONDS = 0.5
"""Motion whose rows make one estimate of a load [s]: longer than errors of friction and of flexible
joints last. With a tenth of it each estimate holds one row or two, with ten times loads are found
after 5 s."""

LEARNING_SECONDS = 2.0
"""Motion after which errors of prediction say how good the model is [s]. With a tenth of it the
first ones, of a model of a few rows, hide a load for 10 s."""

MIN_BATCHES = 4.0
"""Estimates of a load before one is judged: fewer tell no scatter."""

JUDGED_BATCHES = 4
"""Newest batches that are not yet counted as usual: those in which a load can be found. With none
of them a load that comes during a batch hides itself."""

REMEMBERED_BATCHES = 20.0
"""Estimates of loads by whose scatter a new one is judged, older ones weigh less. With a tenth of
it a load must be six times larger to be told from chance."""


@dataclass(frozen=True)
class ModelChange:
    """A load that came or went.

    Attributes
    ----------
    time : float
        When it was noticed, by the samples' clock [s].
    mass : float
        Estimate of the mass that came, negative when it went [kg].
    deviations : float
        The same in units of the usual scatter of such estimates.
    carrier : str
        Body that the load is fixed to.
    """

    time: float
    mass: float
    deviations: float
    carrier: str

    def __str__(self) -> str:
        return (
            f"{self.time:.2f} s: a load of {self.mass:+.2g} kg on {self.carrier}, "
            f"{abs(self.deviations):.0f} times the usual deviation"
        )


class ChangeDetector:
    """Tests whether a load came to a body or left it.

    Parameters
    ----------
    mass : ndarray, shape (nb,)
        Change of the base parameters by 1 kg on the body.
    carrier : str
        The body.
    supports : sequence of sequence of int
        Base parameters in each joint's rows.
    false_alarms : float
        Expected number of them per hour of motion.
    """

    def __init__(
        self, mass: Array, carrier: str, supports: Sequence[Sequence[int]], false_alarms: float
    ) -> None:
        self.mass, self.carrier = mass, carrier
        self._supports = [list(s) for s in supports]
        self._level = false_alarms * BATCH_SECONDS / 3600.0
        self._moved = self._scatter = self._own = self._batches = 0.0
        self._power: Array | None = None
        self._latest: deque[tuple[float, float, Array]] = deque()
        self._begin()

    def _begin(self) -> None:
        """Begin a batch of rows."""
        self._score, self._seconds = 0.0, 0.0
        self._information = np.zeros(len(self.mass))
        self._squares = np.zeros(len(self._supports))

    def update(
        self,
        rows: Sequence[Array],
        noise: Array,
        seconds: float,
        beta: Array,
        covariance: Array,
        time: float,
    ) -> ModelChange | None:
        """Take rows that were not learnt yet; the change when there is one.

        Parameters
        ----------
        rows : sequence of ndarray, shapes (len(support) + 1, n)
            Per joint.
        noise : ndarray, shape (dof,)
            Smallest standard deviation of their torques [N m or N].
        seconds : float
            Length of the motion that they are from [s].
        beta, covariance : ndarray, shapes (nb,) and (nb, nb)
            What predicts them.
        time : float
            [s]
        """
        self._moved += seconds
        if self._moved < LEARNING_SECONDS:
            return None
        errors = [r[-1] - beta[s] @ r[:-1] for s, r in zip(self._supports, rows, strict=True)]
        power = np.array([np.mean(e**2) for e in errors])
        usual = power if self._power is None else self._power
        weights = 1.0 / np.maximum(usual, noise**2)
        for w, s, r, e in zip(weights, self._supports, rows, errors, strict=True):
            load = self.mass[s] @ r[:-1]
            self._score += w * float(load @ e)
            self._information[s] += w * (r[:-1] @ load)
        self._squares += power * seconds
        self._seconds += seconds
        return self._judge(covariance, time) if self._seconds >= BATCH_SECONDS else None

    def _judge(self, covariance: Array, time: float) -> ModelChange | None:
        """Compare the batch's estimate with those before it, and begin another batch."""
        score, information = self._score, self._information
        power = self._squares / self._seconds
        self._begin()
        own = float(self.mass @ information)
        if not own > 0:
            return None
        unsure = 1.0 + float(information @ covariance @ information) / own
        factor = unsure * max(1.0, self._own / own)
        mass = score / own
        if self._batches >= MIN_BATCHES and self._level > 0:
            deviations = mass / np.sqrt(factor * max(self._scatter, 1.0 / own))
            if abs(deviations) > -stdtrit(self._batches, self._level / 2.0):
                self._latest.clear()
                return ModelChange(time, mass, float(deviations), self.carrier)
        self._latest.append((mass**2 / factor, own, power))
        if len(self._latest) > JUDGED_BATCHES:
            self._remember(*self._latest.popleft())
        return None

    def _remember(self, square: float, own: float, power: Array) -> None:
        """Count a batch in which no load came among the usual ones."""
        self._batches = min(self._batches + 1.0, REMEMBERED_BATCHES)
        self._scatter += (square - self._scatter) / self._batches
        self._own += (own - self._own) / self._batches
        before = power if self._power is None else self._power
        self._power = before + (power - before) / self._batches


class LoadInvariantEquations:
    """Equations from before the last change; they fade over a window.

    Parameters
    ----------
    base : BaseParameters
    carrier : str or None
        Body that a load is fixed to; default the last.
    fading : int
        Samples after which their squares have fallen to 1/e.

    Attributes
    ----------
    body : int
        Place of the body that a load is fixed to.
    load : ndarray, shape (nb, 10)
        Change of the base parameters by a load's.
    """

    def __init__(self, base: BaseParameters, carrier: str | None, fading: int) -> None:
        robot = base.robot
        names = [b.name for b in robot.bodies]
        if carrier is not None and carrier not in names:
            raise InputError(
                f"robot {robot.name!r} has no body {carrier!r}{did_you_mean(carrier, names)}"
            )
        self.body = len(names) - 1 if carrier is None else names.index(carrier)
        self.load = np.asarray(base.K)[:, robot.inertial_columns[self.body]]
        self.fading = fading
        self._rows: tuple[Array, Array] | None = None
        self._left = 1.0

    def set_from(self, R: Array, rho: Array) -> None:
        """Take over whitened equations, without what a load may have changed."""
        wide = np.column_stack([R @ self.load, R, rho])
        triangle = np.asarray(np.linalg.qr(wide, mode="r"))
        kept = triangle[self.load.shape[1] :]
        self._rows = kept[:, self.load.shape[1] : -1], kept[:, -1]
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
