"""Common parameters of robots of one type, and the spread between robots, by evidence.

Parameters of robot k are those of the type plus a deviation: one factor per body and its first
moments, friction, and offsets. Three sizes say how large deviations are; they maximise the marginal
likelihood of all robots' whitened equations, with the type's parameters integrated out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feasid.core.arrays import Array
from feasid.robot.description import Robot
from feasid.robot.inertia import pseudo_inertia
from feasid.robot.joint_terms import FRICTION

GRID = {
    "inertials": (0.003, 0.01, 0.02, 0.04, 0.08, 0.16),
    "friction": (0.03, 0.1, 0.2, 0.3, 0.5, 0.8),
    "offsets": (0.003, 0.01, 0.03, 0.1, 0.3),
}
"""Spreads that are tried: shares of a body, of friction, and of a joint's torque."""

MOMENTS = 0.3
"""Deviation of a first moment over mass, radius of gyration and that of the body's factor."""

BELIEF = 1.0  #: Weight of the description as a prior of the type's bodies; see the entropic prior.

ROUNDS = 2
"""Number of rounds: spreads are shares of the type's parameters, which improve with every round."""


@dataclass(frozen=True, eq=False)
class TypeEquations:
    """Whitened equations of one robot, |A delta - rho|, of the type's standard parameters."""

    A: Array  #: (nb, n)
    rho: Array  #: (nb,)


@dataclass(frozen=True, eq=False)
class TypeModel:
    """The type's parameters (n,) with their covariance, and that of deviations from them."""

    mean: Array
    covariance: Array
    deviations: Array  #: Covariance of one robot's deviation, (n, n)
    sizes: tuple[float, ...]  #: of inertials, friction and offsets; see `GRID`


def type_prior(robot: Robot, reference: Array, sizes: Array) -> tuple[Array, Array]:
    """Mean and covariance of the type before any log: its description, and open joint terms."""
    mean, covariance = np.zeros(robot.size), np.zeros((robot.size, robot.size))
    units = pseudo_inertia(np.eye(10))
    for ten in robot.inertial_columns:
        mean[ten] = reference[ten]
        inverse = np.linalg.inv(pseudo_inertia(reference[ten]))
        parts = inverse @ units
        curvature = np.einsum("aij,bji->ab", parts, parts)
        covariance[np.ix_(ten, ten)] = np.linalg.inv(curvature) / BELIEF
    terms = np.setdiff1d(np.arange(robot.size), robot.inertial_columns.ravel())
    covariance[terms, terms] = np.where(np.isfinite(sizes[terms]), sizes[terms], 1.0) ** 2
    return mean, covariance


def deviation_covariance(
    robot: Robot, around: Array, torques: Array, sizes: Sequence[float]
) -> Array:
    """Covariance of a robot's deviation from a type `around` (n,), shape (n, n).

    `torques`: of the joint of every parameter [N m or N], (n,).
    """
    inertials, friction, offsets = sizes
    out = np.zeros((robot.size, robot.size))
    for ten in robot.inertial_columns:
        body = around[ten]
        out[np.ix_(ten, ten)] += inertials**2 * np.outer(body, body)
        second = max(float(np.trace(pseudo_inertia(body)[:3, :3])), 0.0)
        moment = MOMENTS * inertials * np.sqrt(max(body[9], 0.0) * second)
        out[ten[6:9], ten[6:9]] += moment**2
    for i in np.setdiff1d(np.arange(robot.size), robot.inertial_columns.ravel()):
        offset = robot.parameter_names[i][1] in FRICTION["offset"]
        out[i, i] = (offsets * torques[i] if offset else friction * abs(around[i])) ** 2
    return out


def _marginal(
    robots: Sequence[TypeEquations], prior: tuple[Array, Array], deviations: Array
) -> tuple[float, Array, Array]:
    """Log evidence, and the type's mean and covariance."""
    mean, covariance = prior
    information, pull, evidence = np.zeros_like(covariance), np.zeros_like(mean), 0.0
    for robot in robots:
        noise = np.eye(len(robot.A)) + robot.A @ deviations @ robot.A.T
        residual = robot.rho - robot.A @ mean
        solved = np.linalg.solve(noise, np.column_stack([robot.A, residual]))
        information += robot.A.T @ solved[:, :-1]
        pull += robot.A.T @ solved[:, -1]
        evidence -= 0.5 * (float(residual @ solved[:, -1]) + np.linalg.slogdet(noise)[1])
    root = np.linalg.cholesky(covariance)
    # Sums of products are symmetric but for rounding.
    values, vectors = np.linalg.eigh(root.T @ (0.5 * (information + information.T)) @ root)
    values = np.maximum(values, 0.0)
    half = root @ (vectors / np.sqrt(1.0 + values))  # of the type's covariance
    gain = half.T @ pull
    evidence += 0.5 * float(gain @ gain) - 0.5 * float(np.log1p(values).sum())
    return evidence, mean + half @ gain, np.asarray(half @ half.T)


def find_type(
    robot: Robot,
    robots: Sequence[TypeEquations],
    prior: tuple[Array, Array],
    torques: Array,
    sizes: tuple[float, ...] | None = None,
) -> TypeModel:
    """The type of some robots; `sizes`: those of the evidence by default."""
    best: tuple[float, ...] = sizes or (0.02, 0.3, 0.03)
    deviations = deviation_covariance(robot, np.abs(prior[0]), torques, best)
    around = _marginal(robots, prior, deviations)[1]
    for _ in range(ROUNDS if sizes is None else 1):
        for k, tried in enumerate(GRID.values() if sizes is None else ()):
            steps = [(*best[:k], value, *best[k + 1 :]) for value in tried]
            spreads = [deviation_covariance(robot, around, torques, s) for s in steps]
            best = steps[int(np.argmax([_marginal(robots, prior, c)[0] for c in spreads]))]
        deviations = deviation_covariance(robot, around, torques, best)
        _, around, covariance = _marginal(robots, prior, deviations)
    return TypeModel(around, covariance, deviations, best)
