"""Torques of the rigid bodies alone, by the recursive Newton-Euler algorithm."""

from __future__ import annotations

import numpy as np

from feasid.core.arrays import Array
from feasid.dynamics.kinematics import Node, State, propagate
from feasid.robot.description import Robot
from feasid.robot.inertia import rotational_inertia


def newton_euler(
    tree: tuple[Node, ...],
    gravity: Array,
    motion: tuple[Array, Array, Array],
    delta: Array,
    out: Array,
) -> None:
    """Add the rigid-body torques of one chunk to `out`, shape (dof, N)."""
    states = list(propagate(tree, gravity, *motion, axes=False))
    wrenches = [
        _wrench(state, node.reduction @ delta[list(node.columns)])
        for node, state in zip(tree, states, strict=True)
    ]
    for i in range(len(tree) - 1, -1, -1):
        node, pose, (moment, force) = tree[i], states[i].pose, wrenches[i]
        out[node.own] += node.motion[:3].T @ moment + node.motion[3:].T @ force
        if node.parent >= 0:
            base_moment, base_force = wrenches[node.parent]
            pushed = pose.to_parent(force)
            base_force += pushed
            base_moment += pose.to_parent(moment)
            p = pose.position
            base_moment[0] += p[1] * pushed[2] - p[2] * pushed[1]
            base_moment[1] += p[2] * pushed[0] - p[0] * pushed[2]
            base_moment[2] += p[0] * pushed[1] - p[1] * pushed[0]


def _wrench(state: State, ten: Array) -> tuple[Array, Array]:
    """Moment and force at the node's origin for its ten parameters."""
    inertia, first, mass = rotational_inertia(ten), ten[6:9, None], ten[9]
    spin = inertia @ state.omega
    swing = np.cross(state.omega, first, axis=0)
    force = mass * state.acceleration + np.cross(state.alpha, first, axis=0)
    force += np.cross(state.omega, swing, axis=0)
    moment = inertia @ state.alpha + np.cross(state.omega, spin, axis=0)
    moment += np.cross(first, state.acceleration, axis=0)
    return moment, force


def load_torque(robot: Robot, tree: tuple[Node, ...], q: Array, dq: Array, ddq: Array) -> Array:
    """Torques of the rigid bodies by ``robot.load_model``, shape (dof, N)."""
    delta = np.zeros(robot.size)
    if robot.load_model is not None:
        delta[robot.inertial_columns] = robot.load_model
    out = np.zeros_like(q)
    newton_euler(tree, robot.gravity, (q, dq, ddq), delta, out)
    return out
