"""Energies and friction as linear functions of the parameters, for batches of samples.

With v and omega a body's velocity at its frame's origin and angular velocity, in its own frame,
and p, R its pose in the base frame,

    kinetic    1/2 omega' L omega + l . (v x omega) + 1/2 m v.v
    potential  -g . (m p + R l)

A drive adds the integral of each of its factors (`feasid.robot.joint_terms`): that of the drive
inertia, ``Ia (c.dq)^2 / 2``, to the first, those of springs and of the offset to the second, and
those of friction to the dissipation, of which friction is the derivative by ``v = c.dq``, such as
``fv v^2 / 2 + fc |v| + fs |v|^1.5 / 1.5``.
Lagrange's equations give the torques of any independent coordinates from these functions, so that
a change of parameters shows in no torque exactly when it changes neither the kinetic energy, nor
the potential by more than a constant, nor the friction: also where joints are coupled or in loops.
"""

from __future__ import annotations

import numpy as np

from feasid.core.arrays import Array
from feasid.dynamics.kinematics import Node, State, nodes, propagate
from feasid.errors import InputError
from feasid.robot.description import Robot
from feasid.robot.drives import Drive
from feasid.robot.joint_terms import TERMS

QUADRATURE_NODES = 64
"""Nodes of Gauss's rule. A sign that is smoothed over 0.005 rad/s is integrated up to 5 rad/s with
a relative error of 2e-11 (tests/robot/test_term_table.py)."""


def energies(robot: Robot, q: Array, dq: Array) -> tuple[Array, Array, Array]:
    """Kinetic and potential energy and dissipation per unit of each parameter.

    The first is the row of Wensing et al. (2024) eq. (38).

    Parameters
    ----------
    robot : Robot
    q, dq : ndarray, shape (axes, N)
        Joint coordinates, those of coupled joints included.

    Returns
    -------
    tuple of ndarray, each of shape (N, n)
    """
    kinetic, potential, friction = (np.zeros((q.shape[1], robot.size)) for _ in range(3))
    tree, still = nodes(robot), np.zeros_like(q)
    poses: list[tuple[Array, Array]] = []
    for node, state in zip(tree, propagate(tree, np.zeros(3), q, dq, still), strict=True):
        rotation, position = _in_base(node, state, poses, q.shape[1])
        poses.append((rotation, position))
        rates = dq[list(node.rows)]
        velocity = np.einsum("ikn,kn->in", state.linear_axes, rates)
        columns = list(node.columns)
        kinetic[:, columns] += _kinetic(velocity, state.omega) @ node.reduction
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


def _in_base(
    node: Node, state: State, poses: list[tuple[Array, Array]], count: int
) -> tuple[Array, Array]:
    """Rotation (3, 3, N) and position (3, N) of a node's frame in the base frame."""
    ones = np.ones(count)
    turn = np.stack([[e * ones for e in row] for row in state.pose.rotation]).swapaxes(0, 1)
    shift = np.stack([e * ones for e in state.pose.position])
    if node.parent < 0:
        return turn, shift
    rotation, position = poses[node.parent]
    return (
        np.einsum("ijn,jkn->ikn", rotation, turn),
        position + np.einsum("ijn,jn->in", rotation, shift),
    )


def _kinetic(velocity: Array, omega: Array) -> Array:
    """Kinetic energy per unit of each of a body's ten parameters, shape (N, 10)."""
    x, y, z = omega
    swept = np.cross(velocity, omega, axis=0)
    half = [x * x / 2, x * y, x * z, y * y / 2, y * z, z * z / 2]
    return np.stack([*half, *swept, (velocity**2).sum(axis=0) / 2], axis=1)


def drive_energy(drive: Drive, symbol: str, q: Array, dq: Array) -> Array:
    """Energy or dissipation of one of a drive's terms per unit of its coefficient.

    The integral of the term's factor from zero: over the coordinate q for potential energies, over
    the velocity dq for dissipation, and over the velocity, which takes the place of the
    acceleration, for the kinetic energy. Gauss's rule runs over the root of the integration
    variable, so that square roots of the speed are integrated exactly.

    Parameters
    ----------
    drive : Drive
    symbol : str
        One of `feasid.robot.joint_terms.TERMS`.
    q, dq : ndarray, shape (N,)
        The drive's coordinate ``c . q`` and its velocity.

    Returns
    -------
    ndarray, shape (N,)

    Raises
    ------
    InputError
        The term depends on the load, so that it has no energy of its own.
    """
    varies = TERMS[symbol].varies_with
    nodes, weights = np.polynomial.legendre.leggauss(QUADRATURE_NODES)
    root = (nodes[:, None] + 1) / 2
    end = q if varies == "q" else dq
    at, still = end * root**2, np.zeros((len(nodes), len(end)))
    state = {"q": still, "dq": still, "ddq": still} | {varies: at}
    return np.asarray(weights @ (drive.factor(symbol, **state) * root) * end)
