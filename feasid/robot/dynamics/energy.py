"""Energies of a robot's bodies and joint terms, per unit of each parameter."""

from __future__ import annotations

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.robot.description import Robot
from feasid.robot.drives import Drive
from feasid.robot.dynamics.kinematics import nodes, propagate
from feasid.robot.joint_terms import RIPPLE, TERMS

QUADRATURE_NODES = 64
"""Nodes of Gauss's rule. A sign that is smoothed over 0.005 rad/s is integrated up to 5 rad/s with
a relative error of 2e-11 (tests/robot/test_term_table.py)."""


def energy_regressors(robot: Robot, q: Array, dq: Array) -> tuple[Array, Array, Array]:
    """Kinetic and potential energy and dissipation per unit of each parameter, (N, n) each.

    The first is the row of Wensing et al. (2024) eq. (38); q and dq are those of all joints.
    """
    kinetic, potential, friction = (np.zeros((q.shape[1], robot.size)) for _ in range(3))
    tree, zeros, ones = nodes(robot), np.zeros_like(q), np.ones(q.shape[1])
    poses: list[tuple[Array, Array]] = []
    for node, state in zip(tree, propagate(tree, np.zeros(3), q, dq, zeros), strict=True):
        rotation = np.stack([[e * ones for e in row] for row in state.pose.rotation], axis=1)
        position = np.stack([e * ones for e in state.pose.position])
        if node.parent >= 0:
            base, place = poses[node.parent]
            position = place + np.einsum("ijn,jn->in", base, position)
            rotation = np.einsum("ijn,jkn->ikn", base, rotation)
        poses.append((rotation, position))
        velocity = np.einsum("ikn,kn->in", state.linear_axes, dq[list(node.rows)])
        columns = list(node.columns)
        x, y, z = state.omega
        half = [x * x / 2, x * y, x * z, y * y / 2, y * z, z * z / 2]
        swept = np.cross(velocity, state.omega, axis=0)
        ten = np.stack([*half, *swept, (velocity**2).sum(axis=0) / 2], axis=1)
        kinetic[:, columns] += ten @ node.reduction
        pull = np.zeros((10, q.shape[1]))
        pull[6:9] = -np.einsum("ijn,i->jn", rotation, robot.gravity)
        pull[9] = -robot.gravity @ position
        potential[:, columns] += pull.T @ node.reduction
    energy = {"ddq": kinetic, "q": potential, "dq": friction}
    for k, drive in enumerate(robot.drives):
        c = robot.coupling(k)
        for symbol, column in robot.drive_columns(k).items():
            if symbol not in TERMS:
                raise InputError(f"feature {drive.feature(symbol).name!r} has no known energy")
            energy[TERMS[symbol].varies_with][:, column] = drive_energy(
                drive, symbol, c @ q, c @ dq
            )
    return kinetic, potential, friction


def drive_energy(drive: Drive, symbol: str, q: Array, dq: Array) -> Array:
    """Energy or dissipation of one of a drive's terms per unit of its coefficient.

    The integral of the term's factor from zero: over the coordinate q for potential energies, over
    the velocity dq for dissipation, and over the velocity, which takes the place of the
    acceleration, for the kinetic energy. Gauss's rule runs over the root of the integration
    variable, so that square roots of the speed are integrated exactly.

    Raises InputError: the term depends on the load, so that it has no energy of its own.
    """
    varies = TERMS[symbol].varies_with
    if TERMS[symbol].kind == "ripple":  # too many waves for a rule
        n = drive.ripple[RIPPLE.index(symbol) // 2]
        return np.asarray((1 - np.cos(n * q)) / n if TERMS[symbol].odd else np.sin(n * q) / n)
    nodes, weights = np.polynomial.legendre.leggauss(QUADRATURE_NODES)
    root = (nodes[:, None] + 1) / 2
    end = q if varies == "q" else dq
    at, still = end * root**2, np.zeros((len(nodes), len(end)))
    state = {"q": still, "dq": still, "ddq": still} | {varies: at}
    return np.asarray(weights @ (drive.factor(symbol, **state) * root) * end)
