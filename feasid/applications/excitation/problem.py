"""The design problem: the objective as a function of the coefficients, with its gradient.

The information of a motion is M = W'W / s, the mean over its samples of the base regressor's
square, rows divided by the torque noise, plus what is known already. Each objective returns its
value and its derivative by M, a symmetric matrix; limits are added as a barrier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from feasid.applications.excitation import basis as bases
from feasid.applications.excitation.bounds import Bounds
from feasid.applications.excitation.drives import MotionGradient, Places
from feasid.applications.excitation.regressor_gradient import MotionRegressor, RegressorEvaluation
from feasid.core.arrays import Array, Mask

MIN_RELATIVE_EIGENVALUE = 1e-15
"""Eigenvalues below this share of the largest are rounding: directions that the motion does not
determine at all."""


class Objective(Protocol):
    """A number to minimise."""

    def __call__(self, information: Array) -> tuple[float, Array]:
        """Value and derivative by the information matrix."""


def _eigenvalues_and_vectors(information: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(information)
    return np.maximum(values, MIN_RELATIVE_EIGENVALUE * max(values[-1], 1e-300)), vectors


@dataclass(frozen=True)
class ConditionNumber:
    """Logarithm of a smooth stand-in for the condition number of W.

    ``(log tr M^p + log tr M^-p) / 2p`` decreases to ``log cond(W) = (log max - log min) / 2`` of
    M's eigenvalues as the exponent p grows; small exponents weight all eigenvalues.
    """

    power: float

    def __call__(self, information: Array) -> tuple[float, Array]:
        """Value and derivative by the information matrix."""
        values, vectors = _eigenvalues_and_vectors(information)
        # Powers of 1024 overflow: each sum is relative to its largest term.
        exponents = np.log(values) * self.power
        high, low = np.exp(exponents - exponents.max()), np.exp(exponents.min() - exponents)
        value = exponents.max() - exponents.min() + np.log(high.sum()) + np.log(low.sum())
        slope = (high / high.sum() - low / low.sum()) / (2 * values)
        return float(value / (2 * self.power)), (vectors * slope) @ vectors.T


@dataclass(frozen=True)
class LogDet:
    """Minus log det M per parameter: D-optimal, the volume of the estimate's ellipsoid."""

    def __call__(self, information: Array) -> tuple[float, Array]:
        """Value and derivative by the information matrix."""
        size = len(information)
        # A Cholesky factor costs a fraction of the eigenvalues and does while no pivot vanishes.
        factor, failed = dpotrf(information, lower=1)
        pivots = np.diag(factor) ** 2
        if failed or pivots.min() < size * MIN_RELATIVE_EIGENVALUE * pivots.max():
            values, vectors = _eigenvalues_and_vectors(information)
            return float(-np.log(values).mean()), -(vectors / (size * values)) @ vectors.T
        inverse = np.tril(dpotri(factor, lower=1)[0])
        inverse += np.tril(inverse, -1).T
        return float(-np.log(pivots).mean()), inverse / -size


@dataclass(frozen=True, eq=False)
class PredictionVariance:
    """Half the logarithm of the variance of the torques predicted on a task: I-optimal.

    ``tr(C M^-1)`` with C the mean of Y'Y over the task's samples.
    """

    task: Array

    def __call__(self, information: Array) -> tuple[float, Array]:
        """Value and derivative by the information matrix."""
        values, vectors = _eigenvalues_and_vectors(information)
        inverse = (vectors / values) @ vectors.T
        spread = float((inverse * self.task).sum())
        return 0.5 * float(np.log(spread)), -0.5 * inverse @ self.task @ inverse / spread


@dataclass(frozen=True)
class WeightedObjectives:
    """A weighted sum of objectives."""

    parts: tuple[tuple[float, Objective], ...]

    def __call__(self, information: Array) -> tuple[float, Array]:
        """Value and derivative by the information matrix."""
        total, slope = 0.0, np.zeros_like(information)
        for weight, part in self.parts:
            value, gradient = part(information)
            total += weight * value
            slope += weight * gradient
        return total, slope


@dataclass(frozen=True)
class LimitBarrier:
    """``weight`` times the mean of -log(margin), quadratic where a margin is below `reach`."""

    weight: float
    reach: float

    def __call__(self, margins: Array) -> tuple[float, Array]:
        """Sum over rows of means over samples, and its derivative; margins (..., N)."""
        safe = np.maximum(margins, self.reach)
        value, slope = -np.log(safe), -1 / safe
        close = np.nonzero(margins < self.reach)
        if close[0].size:
            # Value, slope and curvature are the logarithm's where a margin equals `reach`.
            step = (margins[close] - 2 * self.reach) / self.reach
            value[close] += 0.5 * (step**2 - 1)
            slope[close] = step / self.reach
        share = self.weight / margins.shape[-1]
        slope *= share
        return float(value.sum()) * share, slope


LIMIT_GRID_REFINEMENT = 4
"""Joint limits are linear in the coefficients and cheap: they are kept on a grid this much finer
than the regressor's."""

FINAL_REFINEMENT = 3  #: Refinement of the grid from the beginning to the end of a search.
SHAPE_SAMPLES = 20  #: Samples per coefficient that the size of a family's functions is read from.

MarginPullback = Callable[[Array, MotionGradient], None]
"""Adds derivatives by margins to a gradient by the motion."""


class PostureConstraint(Protocol):
    """A constraint on every posture, such as the distance between two links."""

    @property
    def margin_names(self) -> tuple[str, ...]:
        """Name of each margin."""

    def __call__(self, evaluation: RegressorEvaluation) -> tuple[Array, MarginPullback]:
        """Margins, positive when satisfied, in units of the constraint's own scale (m, N), and the
        function that adds derivatives by them to a gradient by the motion.
        """


@dataclass(frozen=True, eq=False)
class CoefficientCoordinates:
    """The unknowns z: coefficients of joint j are ``centre[:, j] + span[j] @ z[j]``.

    z = 0 is standstill, and entries of size one reach the limits of a joint; ``centre`` has shape
    (size, dof), ``span`` (dof, size, unknowns per joint).
    """

    centre: Array
    span: Array

    @classmethod
    def around_posture(
        cls, basis: bases.Basis, bounds: Bounds, posture: Array, rest: bool
    ) -> CoefficientCoordinates:
        """Around a posture (dof,), in units of the limits; with `rest`, at rest at the ends."""
        matrices = basis.matrices(bases.times_within_period(basis, SHAPE_SAMPLES * basis.size))
        peaks = np.maximum(np.abs(matrices).max(axis=1), 1e-300)
        spans = []
        for j in range(len(posture)):
            halves = np.array([0.5 * (high - low)[j] for low, high in bounds.derivative_limits])
            scale = (halves[:, None] / peaks).min(axis=0)
            scaling = np.diag(scale)
            spans.append(scaling @ bases.rest_basis(basis, scale) if rest else scaling)
        return cls(np.outer(bases.constant_coefficients(basis), posture), np.stack(spans))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of joints, and of unknowns per joint."""
        return self.span.shape[0], self.span.shape[2]

    def coefficients(self, z: Array) -> Array:
        """Coefficients of a trajectory, shape (size, dof)."""
        moved: Array = np.einsum("jck,jk->cj", self.span, z.reshape(self.shape))
        return self.centre + moved

    def pull_back(self, bar: Array) -> Array:
        """Derivatives by z from those by coefficients (size, dof)."""
        out: Array = np.einsum("jck,cj->jk", self.span, bar)
        return out.ravel()


@dataclass(frozen=True, eq=False)
class Problem:
    """Coefficients in, the number to minimise and its gradient out."""

    basis: bases.Basis  #: Functions of which motions are sums.
    coordinates: CoefficientCoordinates  #: See `basis`.
    dynamics: MotionRegressor  #: With smoothed friction.
    bounds: Bounds  #: Limits per joint.
    constraints: tuple[PostureConstraint, ...]  #: Further limits, of postures.
    samples: int  #: Times within a period at which the regressor is formed.
    weights: Array  #: Shape (dof,): inverse torque noise of each row.
    known: Array  #: Shape (nb, nb): information from other data, per sample of the motion.
    scale: Array  #: Shape (nb,): units of the base parameters in which information counts.
    #: Shape (nb,): base parameters where the logarithms of servo gains are unknown besides: `known`
    #: and `scale` have them after the base parameters then.
    expected: Array | None = None

    @cached_property
    def limit_grid(self) -> Array:
        """Times within a period at which limits of joints are kept."""
        return bases.times_within_period(self.basis, LIMIT_GRID_REFINEMENT * self.samples)

    @cached_property
    def _coarse(self) -> Array:
        """The basis and two derivatives where the regressor is formed."""
        return self.basis.matrices(bases.times_within_period(self.basis, self.samples))[:3]

    @cached_property
    def _limited_derivatives(self) -> Mask:
        """Which derivatives of the positions have limits."""
        return np.asarray(np.isfinite(self.bounds.derivative_limits).any(axis=(1, 2)))

    @cached_property
    def _fine(self) -> Array:
        """The basis and its derivatives that have limits, where they are kept."""
        return self.basis.matrices(self.limit_grid)[self._limited_derivatives]

    @cached_property
    def _limits(self) -> Array:
        """These limits, (derivatives, 2, dof)."""
        return np.array(self.bounds.derivative_limits)[self._limited_derivatives]

    def limit_usage(self, joint: int, z: Array) -> float:
        """The share that a joint's motion uses of the tightest of its linear limits."""
        deviation = self._fine @ (self.coordinates.span[joint] @ z)
        centre = self._fine @ self.coordinates.centre[:, joint]
        shares = deviation[:, None] / (self._limits[:, :, joint, None] - centre[:, None])
        return float(shares.max(initial=0.0))

    @cached_property
    def exact_dynamics(self) -> MotionRegressor:
        """Torques and poses alone, with friction as it is."""
        return replace(self.dynamics, columns=(), smoothing=None)

    def with_finer_grid(self) -> Problem:
        """Refine the grid, with friction closer to its sign."""
        return replace(
            self.with_smoother_friction(1 / FINAL_REFINEMENT),
            samples=FINAL_REFINEMENT * self.samples,
        )

    def with_smoother_friction(self, times: float) -> Problem:
        """Let friction change its sign over so many times the velocity."""
        assert self.dynamics.smoothing is not None
        smoother = replace(self.dynamics, smoothing=self.dynamics.smoothing * times)
        return replace(self, dynamics=smoother)

    def motion(self, z: Array) -> tuple[Array, Array, Array]:
        """q, dq and ddq at the samples, each (dof, N)."""
        q, dq, ddq = (self._coarse @ self.coordinates.coefficients(z)).swapaxes(1, 2)
        return q, dq, ddq

    def __call__(
        self, z: Array, objective: Objective | None, barrier: LimitBarrier
    ) -> tuple[float, Array]:
        """Objective (None: the barrier only) plus barrier, and the gradient by z."""
        # All limits that are linear, and the derivative of their barrier by the coefficients.
        orders, count, _ = self._fine.shape
        values = self._fine @ self.coordinates.coefficients(z)
        curves = np.ascontiguousarray(values.swapaxes(1, 2)).reshape(-1, count)
        value, row_bar = _limit_barrier(curves, np.hstack([*self._limits]), barrier)
        slope = np.tensordot(self._fine, row_bar.reshape(orders, -1, count), ((0, 1), (0, 2)))
        motion = self.motion(z)
        torque = bool(np.isfinite(self.bounds.torque).any())
        if objective is None and not torque and not self.constraints:
            return value, self.coordinates.pull_back(slope)
        evaluation = self.dynamics.evaluate(*motion, torque=torque)
        out = MotionGradient.zeros(*motion[0].shape)
        bar = np.zeros_like(evaluation.regressor)
        if objective is not None:
            weighted, expected = evaluation.regressor * self.weights[:, None], self.expected
            extended = weighted if expected is None else add_gain_columns(weighted, expected)
            rows = extended.reshape(-1, len(self.scale))
            units = np.outer(self.scale, self.scale) / self.samples
            added, by_information = objective(rows.T @ rows * units + self.known)
            value += added
            bar = (rows @ (2 * by_information * units)).reshape(extended.shape)
            if expected is not None:
                # Columns of gains are torques Y beta, whose derivative adds to that of Y.
                bar, gains = np.split(bar, [len(expected)], axis=2)
                bar = bar + np.einsum("kjj->kj", gains)[:, :, None] * expected
            bar = bar * self.weights[:, None]
        torque_bar = None
        if torque:
            limit = repeat_limits(self.bounds.torque, evaluation.torques)
            added, torque_bar = _limit_barrier(evaluation.torques, limit, barrier)
            value += added
        for part in self.constraints:
            margins, pull = part(evaluation)
            added, slope_by_margin = barrier(margins)
            value += added
            pull(slope_by_margin, out)
        evaluation.backward(bar, torque_bar, out)
        slope += np.tensordot(self._coarse, np.stack(out), ((0, 1), (0, 2)))
        return value, self.coordinates.pull_back(slope)


def add_gain_columns(regressor: Array, expected: Array) -> Array:
    """Equations ``e_j = Y_j beta / kp_j`` linearised in beta and -log kp, (N, dof, nb + dof)."""
    torques = regressor @ expected
    return np.concatenate([regressor, torques[:, :, None] * np.eye(torques.shape[1])], axis=2)


def limit_margins(values: Array, limit: Array) -> tuple[Array, Places, Array]:
    """Margins of ``low <= values <= high`` in units of half the range, (2 m, N), for m rows.

    Besides them the rows of `values` (dof, N) they belong to and their derivatives by these. A
    joint with an infinite limit on one side only counts the other in units of one.
    """
    low, high = limit
    half = np.where(np.isfinite(high - low), 0.5 * (high - low), 1.0)
    below, above = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
    rows = np.concatenate([below, above])
    slopes = np.concatenate([1 / half[below], -1 / half[above]])
    edges = np.concatenate([low[below], high[above]])
    return (values[rows] - edges[:, None]) * slopes[:, None], rows, slopes


def repeat_limits(limit: Array, torques: Array) -> Array:
    """Torque limits (2, dof) for torques with friction and, below them, without it."""
    return np.tile(limit, len(torques) // limit.shape[1])


def _limit_barrier(values: Array, limit: Array, barrier: LimitBarrier) -> tuple[float, Array]:
    """Barrier of ``low <= values <= high``, and its derivative by the values (dof, N)."""
    margins, rows, slopes = limit_margins(values, limit)
    total, slope = barrier(margins)
    slope *= slopes[:, None]
    bar = np.zeros_like(values)
    below = np.count_nonzero(np.isfinite(limit[0]))
    # A joint with limits on both sides has a row in either part.
    bar[rows[:below]] = slope[:below]
    bar[rows[below:]] += slope[below:]
    return total, bar
