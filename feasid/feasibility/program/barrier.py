"""Choosing one full model among all that move alike: an entropic projection by Newton's method.

Parameters delta with the same base parameters K delta form a fibre. On it we minimise

    sum_k [ tr(C_k(delta0)^-1 C_k(delta)) - log det C_k(delta) ]

over the inertia blocks C_k, the log-det Bregman divergence from a reference model delta0 (Lee,
Wensing and Park 2020) up to a constant, with the same terms at a small weight for every other
constraint. It is strictly convex, does not depend on units or body frames, and rises to infinity
at the boundary of the feasible set, so that the minimiser is strictly feasible. The trace terms
keep it finite where the fibre is unbounded; without them it would be the analytic centre.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg

from feasid.core.arrays import Array
from feasid.feasibility.constraints.sets import FeasibleSet, Group

OTHER_WEIGHT = 1e-2
"""Weight of constraints other than inertia blocks: enough to stay inside, too little to steer."""

MAX_STEPS = 200
SHORTEST_STEP = 1e-12
"""Share of a Newton step below which nothing is gained beyond rounding."""

DECREMENT = 1e-9
"""Newton decrement, squared and halved, at which the divergence is as good as minimal."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Matrices of one shape.

    Attributes
    ----------
    group : Group
    directions : ndarray, shape (g, c, k)
        Of their parameters; the k that move any.
    places : ndarray of int, shape (g, k)
        Which these are.
    slopes : ndarray, shape (g, s, s)
        Inverses of the reference's.
    pulls : ndarray, shape (g, c)
        ``<slope, B_j>``.
    weights : ndarray, shape (g,)
    """

    group: Group
    directions: Array
    places: npt.NDArray[np.intp]
    slopes: Array
    pulls: Array
    weights: Array

    @classmethod
    def of(cls, group: Group, weights: Array, reference: Array, directions: Array) -> Stack:
        """Around a reference; matrices that are not definite there pull nowhere."""
        at_reference = group.matrices(reference)
        slopes = np.zeros_like(at_reference)
        for slope, matrix in zip(slopes, at_reference, strict=True):
            if np.linalg.eigvalsh(matrix)[0] > 0:
                slope[:] = np.linalg.inv(matrix)
        flat = group.basis.reshape(*group.columns.shape, -1)
        pulls = (flat @ slopes.reshape(len(slopes), -1, 1))[..., 0]
        whole = directions[group.columns]
        moving = whole.any(axis=1)
        count = int(moving.sum(axis=1).max(initial=0))
        kept = moving if count < moving.shape[1] else np.ones_like(moving)
        places = np.argsort(~kept, axis=1, kind="stable")[:, :count]
        some = np.take_along_axis(whole, places[:, None], axis=2)
        return cls(group, some, places, slopes, pulls, weights)

    def value(self, delta: Array) -> float:
        """Its share of the divergence; infinite outside."""
        matrices = self.group.matrices(delta)
        try:
            factors = np.linalg.cholesky(matrices)
        except np.linalg.LinAlgError:
            return np.inf
        logs = 2.0 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        traces = (self.slopes * matrices).sum(axis=(1, 2))
        return float(self.weights @ (traces - logs))

    def add(self, delta: Array, gradient: Array, hessian: Array) -> None:
        """Add its gradient by parameter, (n,), and its Hessian along the directions, (z, z)."""
        # With C = F F', <C^-1 B_i, C^-1 B_j> is a Gram matrix of F^-1 B_i F^-T: no squaring.
        inverse = np.linalg.inv(np.linalg.cholesky(self.group.matrices(delta)))
        across = inverse.transpose(0, 2, 1)
        white = inverse[:, None] @ self.group.basis @ across[:, None]
        pulls = self.pulls - np.trace(white, axis1=2, axis2=3)
        np.add.at(gradient, self.group.columns, self.weights[:, None] * pulls)
        flat = white.reshape(*white.shape[:2], -1)
        bend = self.weights[:, None, None] * (flat @ flat.transpose(0, 2, 1)) @ self.directions
        count = self.directions.shape[2]
        if count == len(hessian):
            hessian += self.directions.reshape(-1, count).T @ bend.reshape(-1, count)
        else:
            own = self.directions.transpose(0, 2, 1) @ bend
            np.add.at(hessian, (self.places[:, :, None], self.places[:, None]), own)


@dataclass(frozen=True, eq=False)
class Barrier:
    """The divergence and its derivatives along the directions ``delta + directions @ z``.

    Rows are the linear constraints that vary along the directions.
    """

    directions: Array
    parts: tuple[Stack, ...]
    rows: Array
    constants: Array
    slopes: Array

    @classmethod
    def around(cls, feasible: FeasibleSet, reference: Array, directions: Array) -> Barrier:
        """Build from the constraints and the reference model `reference`, shape (n,)."""
        parts = []
        for group in feasible.groups:
            kinds = [feasible.blocks[k].kind for k in group.members]
            weights = np.array([1.0 if k != "matrix" else OTHER_WEIGHT for k in kinds])
            parts.append(Stack.of(group, weights, reference, directions))
        rows = feasible.linear_matrix @ directions
        size = np.abs(feasible.linear_matrix) @ np.abs(directions).max(axis=1, initial=0.0)
        moving = np.abs(rows).max(axis=1, initial=0.0) > 1e-12 * size
        values = feasible.linear_values(reference)[moving]
        slopes = np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
        return cls(
            directions,
            tuple(parts),
            feasible.linear_matrix[moving],
            feasible.linear_constant[moving],
            slopes,
        )

    def value(self, delta: Array) -> float:
        """The divergence up to a constant; infinite outside the feasible set."""
        numbers = self.rows @ delta + self.constants
        if (numbers <= 0).any():
            return np.inf
        total = OTHER_WEIGHT * float(np.sum(self.slopes * numbers - np.log(numbers)))
        return total + sum(part.value(delta) for part in self.parts)

    def derivatives(self, delta: Array) -> tuple[Array, Array]:
        """Gradient (z,) and Hessian (z, z) along the directions."""
        numbers = self.rows @ delta + self.constants
        gradient = OTHER_WEIGHT * self.rows.T @ (self.slopes - 1.0 / numbers)
        moving = (self.rows @ self.directions) / numbers[:, None]
        hessian = OTHER_WEIGHT * moving.T @ moving
        for part in self.parts:
            part.add(delta, gradient, hessian)
        return self.directions.T @ gradient, hessian


def centre(feasible: FeasibleSet, start: Array, directions: Array, reference: Array) -> Array:
    """The point of the fibre through `start` that is closest to `reference`, shape (n,).

    Parameters
    ----------
    feasible : FeasibleSet
    start : ndarray, shape (n,)
        Strictly feasible.
    directions : ndarray, shape (n, z)
        Basis of the fibre's directions, in units in which the problem's numbers are near one.
    reference : ndarray, shape (n,)
        Reference model delta0; its inertia blocks positive definite.
    """
    delta = np.array(start, dtype=np.float64)
    if directions.shape[1] == 0:
        return delta
    barrier = Barrier.around(feasible, reference, directions)
    return descend(delta, directions, barrier.value, barrier.derivatives, DECREMENT)


def descend(
    delta: Array,
    directions: Array,
    value: Callable[[Array], float],
    derivatives: Callable[[Array], tuple[Array, Array]],
    decrement: float,
) -> Array:
    """Damped Newton along ``delta + directions @ z`` until half the squared decrement is small.

    `value` is convex and infinite outside the feasible set, so that every iterate stays inside;
    `derivatives` are its gradient and Hessian along the directions.
    """
    current = value(delta)
    for _ in range(MAX_STEPS):
        gradient, hessian = derivatives(delta)
        step = newton_step(hessian, -gradient)
        decrease = float(-gradient @ step)
        if not decrease > 2 * decrement:
            break
        move, length = directions @ step, 1.0
        while length > SHORTEST_STEP:
            trial = delta + length * move
            new = value(trial)
            if new <= current - 0.1 * length * decrease:
                break
            length *= 0.5
        else:
            break
        delta, current = trial, new
    return delta


def newton_step(hessian: Array, right: Array) -> Array:
    """Newton step in a scaling that makes the Hessian's diagonal one."""
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(hessian), 1e-300))
    scaled = hessian * scale[:, None] * scale
    try:
        factor = linalg.cho_factor(scaled, check_finite=False)
        return np.asarray(scale * linalg.cho_solve(factor, scale * right, check_finite=False))
    except linalg.LinAlgError:
        return np.asarray(scale * np.linalg.lstsq(scaled, scale * right, rcond=1e-14)[0])
