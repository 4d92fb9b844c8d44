"""The design problem: a function of the coefficients with its gradient, and its parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from feasid.arrays import Array
from feasid.excitation.barrier import LimitBarrier
from feasid.excitation.basis import Basis, resting, standing
from feasid.excitation.bounds import Bounds
from feasid.excitation.chain import Chain, Sweep
from feasid.excitation.links import Gradient, Places
from feasid.excitation.objectives import Objective

FINER = 4
"""Joint limits are linear in the coefficients and cheap: they are kept on a grid this much finer
than the regressor's."""

SHARPER = 2
"""How much finer a search ends than it begins."""

SHAPE_SAMPLES = 20
"""Samples per coefficient that the size of a family's functions is read from."""


Pull = Callable[[Array, Gradient], None]
"""Adds to a gradient what derivatives by margins mean for the motion."""


class Keeping(Protocol):
    """Something that every posture has to keep, such as the distance between two links."""

    @property
    def names(self) -> tuple[str, ...]:
        """What each margin is about."""

    def __call__(self, sweep: Sweep) -> tuple[Array, Pull]:
        """Room left, positive when kept, in units of the constraint's own scale (m, N), and how
        derivatives by it add to a gradient by the motion.
        """


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The unknowns z: coefficients of joint j are ``centre[:, j] + span[j] @ z[j]``.

    z = 0 is standstill, and entries of size one reach the limits of a joint; ``centre`` has shape
    (size, dof), ``span`` (dof, size, unknowns per joint).
    """

    centre: Array
    span: Array

    @classmethod
    def of(cls, basis: Basis, bounds: Bounds, posture: Array, rest: bool) -> Coordinates:
        """Around a posture (dof,), in units of the limits; with `rest`, at rest at the ends."""
        count = SHAPE_SAMPLES * basis.size
        matrices = basis.matrices(np.arange(count) * basis.period / count)
        peaks = np.maximum(np.abs(matrices).max(axis=1), 1e-300)
        spans = []
        for j in range(len(posture)):
            halves = np.array([0.5 * (high - low)[j] for low, high in bounds.linear])
            scale = (halves[:, None] / peaks).min(axis=0)
            own = np.diag(scale)
            spans.append(own @ resting(basis, scale) if rest else own)
        return cls(np.outer(standing(basis), posture), np.stack(spans))

    @property
    def shape(self) -> tuple[int, int]:
        """Joints and unknowns of each."""
        return self.span.shape[0], self.span.shape[2]

    def coefficients(self, z: Array) -> Array:
        """Coefficients of a trajectory, shape (size, dof)."""
        moved: Array = np.einsum("jck,jk->cj", self.span, z.reshape(self.shape))
        return self.centre + moved


@dataclass(frozen=True, eq=False)
class Problem:
    """Coefficients in, the number to minimise and its gradient out.

    Attributes
    ----------
    basis, coordinates : Basis, Coordinates
        What a motion is made of.
    chain : Chain
        With smoothed friction.
    bounds : Bounds
        Limits per joint.
    keeping : tuple of Keeping
        What postures have to keep besides.
    samples : int
        Times within a period at which the regressor is formed.
    weights : ndarray, shape (dof,)
        Inverse torque noise of each row.
    known : ndarray, shape (nb, nb)
        Information there already is, per sample of the motion.
    scale : ndarray, shape (nb,)
        Units of the base parameters in which information counts.
    """

    basis: Basis
    coordinates: Coordinates
    chain: Chain
    bounds: Bounds
    keeping: tuple[Keeping, ...]
    samples: int
    weights: Array
    known: Array
    scale: Array
    _coarse: tuple[Array, Array] = field(init=False, repr=False)
    _fine: tuple[Array, Array] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        span, period = self.coordinates.span, self.basis.period
        coarse = self.basis.matrices(np.arange(self.samples) * period / self.samples)
        count = FINER * self.samples
        fine = self.basis.matrices(np.arange(count) * period / count)
        centre = self.coordinates.centre
        set_ = object.__setattr__
        set_(self, "_coarse", (coarse[:3, None] @ span, _standing(coarse[:3], centre)))
        set_(self, "_fine", (fine[:, None] @ span, _standing(fine, centre)))

    def sharper(self) -> Problem:
        """The same on a finer grid, with friction closer to its sign."""
        smoothing = self.chain.smoothing
        chain = self.chain
        if smoothing is not None:
            chain = replace(chain, smoothing=smoothing / SHARPER)
        return replace(self, samples=SHARPER * self.samples, chain=chain)

    def motion(self, z: Array) -> tuple[Array, Array, Array]:
        """q, dq, ddq on the grid, each of shape (dof, samples)."""
        matrices, still = self._coarse
        q, dq, ddq = (matrices @ z.reshape(*self.coordinates.shape, 1))[..., 0] + still
        return q, dq, ddq

    def __call__(
        self, z: Array, objective: Objective | None, barrier: LimitBarrier
    ) -> tuple[float, Array]:
        """Objective (None: only what must be kept) plus barrier, and the gradient by z."""
        value, slope = self._joint_limits(z, barrier)
        motion = self.motion(z)
        torque = bool(np.isfinite(self.bounds.torque).any())
        if objective is None and not torque and not self.keeping:
            return value, slope
        sweep = self.chain.forward(*motion, torque=torque)
        out = Gradient.zeros(*motion[0].shape)
        bar = np.zeros_like(sweep.regressor)
        if objective is not None:
            added, bar = self._information(sweep.regressor, objective)
            value += added
        torque_bar = None
        if torque:
            added, torque_bar = _within(sweep.torques, self.bounds.torque, barrier)
            value += added
        for part in self.keeping:
            margins, pull = part(sweep)
            added, slope_by_margin = barrier(margins)
            value += added
            pull(slope_by_margin, out)
        sweep.backward(bar, torque_bar, out)
        bars = np.stack([out.q, out.dq, out.ddq])[:, :, None]
        return value, slope + (bars @ self._coarse[0]).sum(axis=0).ravel()

    def _joint_limits(self, z: Array, barrier: LimitBarrier) -> tuple[float, Array]:
        value, slope = 0.0, np.zeros(z.size)
        column = z.reshape(*self.coordinates.shape, 1)
        for matrix, still, limit in zip(*self._fine, self.bounds.linear, strict=True):
            if np.isfinite(limit).any():
                added, bar = _within((matrix @ column)[..., 0] + still, limit, barrier)
                value += added
                slope += (bar[:, None] @ matrix).ravel()
        return value, slope

    def _information(self, regressor: Array, objective: Objective) -> tuple[float, Array]:
        """Value of the objective, and its derivative by the regressor's entries."""
        factor = self.scale[:, None, None] * self.weights[:, None]
        rows = (regressor * factor).reshape(len(regressor), -1)
        information = rows @ rows.T / self.samples + self.known
        value, slope = objective(information)
        bar = (2 / self.samples) * (slope @ rows).reshape(regressor.shape)
        return value, bar * factor


def _standing(matrices: Array, centre: Array) -> Array:
    """The motion of the centre, shape (orders, dof, N)."""
    return np.ascontiguousarray((matrices @ centre).swapaxes(1, 2))


def room(values: Array, limit: Array) -> tuple[Array, Places, Array]:
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


def _within(values: Array, limit: Array, barrier: LimitBarrier) -> tuple[float, Array]:
    """Barrier of ``low <= values <= high``, and its derivative by the values (dof, N)."""
    margins, rows, slopes = room(values, limit)
    total, slope = barrier(margins)
    bar = np.zeros_like(values)
    np.add.at(bar, rows, slope * slopes[:, None])
    return total, bar
