"""Newton-Euler equations (wrenches of nodes, their regressors, torques of bodies) and energies."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.robot.description import Robot
from feasid.robot.drives import Drive, factor_of
from feasid.robot.dynamics.kinematics import Node, NodeState, nodes, propagate
from feasid.robot.dynamics.spatial import Entry, cross
from feasid.robot.inertia import rotational_inertia
from feasid.robot.joint_terms import AT_REST, RIPPLE, TERMS


def newton_euler(
    tree: tuple[Node, ...],
    gravity: Array,
    motion: tuple[Array, Array, Array],
    delta: Array,
    out: Array,
) -> None:
    """Add the rigid-body torques of one chunk to `out`, shape (dof, N)."""
    states = list(propagate(tree, gravity, *motion, axes=False))
    wrenches = []  # at the nodes' origins
    for node, state in zip(tree, states, strict=True):
        ten = node.reduction @ delta[list(node.columns)]
        inertia, mass = rotational_inertia(ten), ten[9]
        omega, alpha, acceleration = state.omega, state.alpha, state.acceleration
        lever: tuple[Entry, ...] = tuple(float(c) for c in ten[6:9])
        force = mass * acceleration - cross(lever, alpha)
        force -= cross(tuple(omega), cross(lever, omega))
        moment = inertia @ alpha + cross(tuple(omega), inertia @ omega)
        moment += cross(lever, acceleration)
        wrenches.append((moment, force))
    for i in range(len(tree) - 1, -1, -1):
        node, pose, (moment, force) = tree[i], states[i].pose, wrenches[i]
        out[node.own] += node.motion[:3].T @ moment + node.motion[3:].T @ force
        if node.parent >= 0:
            base_moment, base_force = wrenches[node.parent]
            pushed = pose.to_parent(force)
            base_force += pushed
            base_moment += pose.to_parent(moment)
            base_moment += cross(pose.position, pushed)


def load_torques(
    robot: Robot,
    tree: tuple[Node, ...],
    motion: tuple[Array, Array, Array],
    terms: Iterable[tuple[Drive, str]],
) -> dict[bool, Array]:
    """Torques of the rigid bodies by ``robot.load_model``, shapes (dof, N), as terms need them.

    Under True those of bodies at rest, under False those of the motion (q, dq, ddq).
    """
    delta, out = np.zeros(robot.size), dict[bool, Array]()
    if robot.load_model is not None:
        delta[robot.inertial_columns] = robot.load_model
    q, dq, ddq = motion
    for at_rest in {s in AT_REST for drive, s in terms if drive.needs_load(s)}:
        out[at_rest] = np.zeros_like(q)
        rates = (0.0 * dq, 0.0 * ddq) if at_rest else (dq, ddq)
        newton_euler(tree, robot.gravity, (q, *rates), delta, out[at_rest])
    return out


def load_of(loads: Mapping[bool, Array], drive: Drive, symbol: str, joint: int) -> Array | None:
    """The load that a term of this joint's drive needs, shape (N,), or None."""
    return loads[symbol in AT_REST][joint] if drive.needs_load(symbol) else None


def drive_factors(
    robot: Robot,
    tree: tuple[Node, ...],
    motion: tuple[Array, Array, Array],
    columns: Container[int],
) -> Iterator[tuple[Array, int, Array]]:
    """Coupling of the drive (dof,), column and factor (N,) of each joint term in these columns."""
    terms = (
        (drive, symbol)
        for k, drive in enumerate(robot.drives)
        for symbol, column in robot.drive_columns(k).items()
        if column in columns
    )
    loads = load_torques(robot, tree, motion, terms)
    for k, drive in enumerate(robot.drives):
        coupling = robot.coupling(k)
        rows = np.flatnonzero(coupling)
        q, dq, ddq = (coupling[rows] @ x[rows] for x in motion)
        for symbol, column in robot.drive_columns(k).items():
            if column in columns:
                load = load_of(loads, drive, symbol, rows[0])
                yield coupling, column, factor_of(drive, symbol, q, dq, ddq, load=load)


@dataclass(frozen=True, eq=False)
class WrenchRegressor:
    """A node's wrench per unit of each wanted parameter.

    ``angular`` (3, n_a, N) are the moments of its first n_a wanted parameters (those of L and l),
    ``linear`` (3, n_l, N) the forces of its last n_l (those of l and m).
    """

    angular: Array
    linear: Array

    @classmethod
    def from_state(cls, state: NodeState, node: Node, kept: list[int]) -> WrenchRegressor:
        """Build for the given columns of the node."""
        if node.reduction.shape == (10, 10):
            moments = [k for k in kept if k < 9]
            forces = [k for k in kept if k >= 6]
            return cls(_moment_regressor(state, moments), _force_regressor(state, forces))
        reduction = node.reduction[:, kept]
        moment = _moment_regressor(state, list(range(9)))
        force = _force_regressor(state, list(range(6, 10)))
        return cls(
            np.einsum("iaN,ak->ikN", moment, reduction[:9]),
            np.einsum("iaN,ak->ikN", force, reduction[6:]),
        )

    def project(self, state: NodeState, k: int, out: Array, work: Array) -> None:
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


def _moment_regressor(state: NodeState, kept: list[int]) -> Array:
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


def _force_regressor(state: NodeState, kept: list[int]) -> Array:
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
        turn = np.stack([[e * ones for e in row] for row in state.pose.rotation])
        rotation = turn.swapaxes(0, 1)
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
