"""Newton-Euler equations: wrenches of nodes, their regressors, and torques of rigid bodies."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True, eq=False)
class WrenchRegressor:
    """A node's wrench per unit of each wanted parameter.

    ``angular`` (3, n_a, N) are the moments of its first n_a wanted parameters (those of L and l),
    ``linear`` (3, n_l, N) the forces of its last n_l (those of l and m).
    """

    angular: Array
    linear: Array

    @classmethod
    def from_state(cls, state: State, node: Node, kept: list[int]) -> WrenchRegressor:
        """Build for the node's wanted columns (positions among its own)."""
        if node.reduction.shape == (10, 10):
            moments = [k for k in kept if k < 9]
            forces = [k for k in kept if k >= 6]
            return cls(_moments(state, moments), _forces(state, forces))
        reduction = node.reduction[:, kept]
        moment, force = _moments(state, list(range(9))), _forces(state, list(range(6, 10)))
        return cls(
            np.einsum("iaN,ak->ikN", moment, reduction[:9]),
            np.einsum("iaN,ak->ikN", force, reduction[6:]),
        )

    def project(self, state: State, k: int, out: Array, work: Array) -> None:
        """``out = s' W`` for the node's k-th carrying row; out has a row per wanted column."""
        turn, shift = state.angular_axes[:, k], state.linear_axes[:, k]
        n_a, n_l = self.angular.shape[1], self.linear.shape[1]
        overlap = n_a + n_l - out.shape[0]
        if n_a:
            np.einsum("kN,kcN->cN", turn, self.angular, out=out[:n_a])
        if n_l:
            force = np.einsum("kN,kcN->cN", shift, self.linear, out=work[:n_l])
            out[n_a - overlap : n_a] += force[:overlap]
            out[n_a:] = force[overlap:]


def _moments(state: State, kept: list[int]) -> Array:
    """d(moment)/d(parameter), shape (3, len(kept), N): columns of L alpha + w x L w - S(a) l."""
    (x, y, z), (a, b, c) = state.omega, state.alpha
    out = np.empty((3, len(kept), x.size))
    xy, xz, yz = x * y, x * z, y * z
    for k, parameter in enumerate(kept):
        o = out[:, k]
        if parameter == 0:  # Lxx
            o[0], o[1], o[2] = a, xz, -xy
        elif parameter == 1:  # Lxy
            np.subtract(b, xz, out=o[0])
            np.add(a, yz, out=o[1])
            o[2] = x * x - y * y
        elif parameter == 2:  # Lxz
            np.add(c, xy, out=o[0])
            o[1] = z * z - x * x
            np.subtract(a, yz, out=o[2])
        elif parameter == 3:  # Lyy
            o[0], o[1], o[2] = -yz, b, xy
        elif parameter == 4:  # Lyz
            o[0] = y * y - z * z
            np.subtract(c, xy, out=o[1])
            np.add(b, xz, out=o[2])
        elif parameter == 5:  # Lzz
            o[0], o[1], o[2] = yz, -xz, c
        else:  # lx, ly, lz: l x a
            i = parameter - 6
            o[i] = 0.0
            o[i - 2] = -state.acceleration[i - 1]
            o[i - 1] = state.acceleration[i - 2]
    return out


def _forces(state: State, kept: list[int]) -> Array:
    """d(force)/d(parameter), shape (3, len(kept), N): S(alpha) + S(omega)^2 for l, a for m."""
    (x, y, z), (a, b, c) = state.omega, state.alpha
    out = np.empty((3, len(kept), x.size))
    for k, parameter in enumerate(kept):
        o = out[:, k]
        if parameter == 6:
            o[0], o[1], o[2] = -(y * y + z * z), x * y + c, x * z - b
        elif parameter == 7:
            o[0], o[1], o[2] = x * y - c, -(x * x + z * z), y * z + a
        elif parameter == 8:
            o[0], o[1], o[2] = x * z + b, y * z - a, -(x * x + y * y)
        else:
            o[:] = state.acceleration
    return out
