"""Energies and friction as linear functions of the parameters, for batches of samples.

With v and omega a body's velocity at its frame's origin and angular velocity, in its own frame,
and p, R its pose in the base frame,

    kinetic    1/2 omega' L omega + l . (v x omega) + 1/2 m v.v
    potential  -g . (m p + R l)

A drive adds ``Ia (c.dq)^2 / 2`` to the first and ``fo c.q + k (c.q - rest)^2 / 2`` to the second,
and its friction is the derivative of ``fv v^2 / 2 + fc |v| + fs |v|^1.5 / 1.5``, v = c.dq.
Lagrange's equations give the torques of any independent coordinates from these functions, so that
a change of parameters shows in no torque exactly when it changes neither the kinetic energy, nor
the potential by more than a constant, nor the friction: also where joints are coupled or in loops.
"""

from __future__ import annotations

import numpy as np
from scipy.special import erf

from feasid.core.arrays import Array
from feasid.dynamics.drives import SPRINGS
from feasid.dynamics.kinematics import Node, State, nodes, propagate
from feasid.robot.description import Robot
from feasid.robot.parts import STRIBECK


def energies(robot: Robot, q: Array, dq: Array) -> tuple[Array, Array, Array]:
    """Kinetic and potential energy and friction per unit of each parameter.

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
        velocity = np.einsum("ikn,kn->in", state.shifts, rates)
        columns = list(node.columns)
        kinetic[:, columns] += _kinetic(velocity, state.omega) @ node.reduction
        pull = np.zeros((10, q.shape[1]))
        pull[6:9] = -np.einsum("ijn,i->jn", rotation, robot.gravity)
        pull[9] = -robot.gravity @ position
        potential[:, columns] += pull.T @ node.reduction
    for k in range(len(robot.drives)):
        c = robot.coupling(k)
        speed, place = c @ dq, c @ q
        for symbol, column in robot.drive_columns(k).items():
            if symbol == "Ia":
                kinetic[:, column] = speed**2 / 2
            elif symbol == "fo":
                potential[:, column] = place
            elif symbol in SPRINGS:
                power = SPRINGS[symbol] + 1
                potential[:, column] = (place - robot.drives[k].rest) ** power / power
            elif symbol in ("gs", "gc"):
                potential[:, column] = np.sin(place) if symbol == "gc" else -np.cos(place)
            elif symbol == "fd":
                friction[:, column] = speed * np.abs(speed) / 2
            elif symbol == "fb":
                friction[:, column] = erf(np.abs(speed) / STRIBECK)
            elif symbol == "fs":
                friction[:, column] = np.abs(speed) ** 1.5 / 1.5
            elif symbol == "fv":
                friction[:, column] = speed**2 / 2
            else:
                friction[:, column] = _dissipated(speed, robot.drives[k].transition)
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


def _dissipated(speed: Array, transition: float) -> Array:
    """Integral of the Coulomb friction over the speed: |v|, rounded where it has a transition."""
    size = np.abs(speed)
    if not transition:
        return size
    return np.asarray(size + transition * np.log1p(np.exp(-2 * size / transition)))
