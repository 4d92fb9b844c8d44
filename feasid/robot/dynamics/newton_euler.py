"""Newton-Euler equations: wrenches of nodes, their regressors, torques of bodies and derivatives.

Derivatives by positions, velocities and accelerations follow in one sweep. A particle at x = (r, 1)
in the world has the velocity V x, where V is the twist of its body as a matrix of 4 x 4, and needs
a force of (A + V V) x per unit of mass, where A is the twist's rate, with gravity subtracted. A
change of q_j turns all that joint j carries by the twist J_j. Seen from a frame that turns with it,
only the motion of this frame has changed: with V and A of joint j's parent, its velocity by the
twist ``U = [V, J_j]`` and its acceleration by ``W = [A, J_j] + [V, U]``, for all of the bodies
alike. A change of dq_j changes them by ``J_j`` and ``2 U``, one of ddq_j by nothing and ``J_j``. In
a frame that moves otherwise a particle needs

    W x + 2 U V x

more force: that of the frame's acceleration and that of Coriolis. Torques are integrals of force
times position, in which only ``P``, ``V P`` and ``(A + V V) P`` of the bodies appear, with P the
pseudo-inertia, the integral of x x' dm. They add up over all that a joint carries,
so that a pair of joints costs a scalar product. It is the algorithm of Carpentier and Mansard
(2018, "Analytical derivatives of rigid body dynamics algorithms", Robotics: Science and Systems).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from feasid.core.arrays import Array
from feasid.robot.description import Robot
from feasid.robot.drives import Drive, factor_of
from feasid.robot.dynamics.kinematics import Node, NodeState, nodes, propagate
from feasid.robot.dynamics.spatial import CHUNK, Entry, as_samples_last, cross
from feasid.robot.inertia import pseudo_inertia, rotational_inertia
from feasid.robot.joint_terms import AT_REST


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
                load = loads[symbol in AT_REST][rows[0]] if drive.needs_load(symbol) else None
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


# -- derivatives ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TorqueDerivatives:
    """Derivatives of the torque of joint i by the motion of joint j, each (dof, dof, N)."""

    by_position: Array
    by_velocity: Array
    by_acceleration: Array  #: The mass matrix.


def torque_derivatives(robot: Robot, q: Array, dq: Array, ddq: Array) -> TorqueDerivatives:
    """Derivatives of the torques of the robot's bodies and rotors at a motion (N, dof).

    Every joint has one coordinate of its own: ``robot.is_plain``. Joint terms count for nothing.
    """
    tree, motion = nodes(robot), [as_samples_last(x) for x in (q, dq, ddq)]
    out = np.zeros((3, robot.dof, robot.dof, len(q)))
    for a in range(0, len(q), CHUNK):
        chunk = [x[:, a : a + CHUNK] for x in motion]
        world = WorldMotion.from_joints(tree, robot.gravity, robot.values, chunk)
        _add_derivatives(tree, world, out[..., a : a + CHUNK])
    return TorqueDerivatives(*out)


@dataclass(frozen=True, eq=False)
class WorldMotion:
    """Nodes with one coordinate each, and what they carry, in N samples seen from the world."""

    axes: Array  #: Twists of the nodes' joints, (6, nodes, N).
    V: Array  #: Twists of their parents.
    A: Array  #: Rates of these, less gravity.
    U: Array  #: ``[V, axes]``, see the module's docstring.
    P: Array  #: Sums of pseudo-inertias, (4, 4, nodes, N).
    VP: Array  #: Sums of ``V P`` without its last row, which is zero, (3, 4, nodes, N).
    forces: Array  #: Likewise ``(A + V V) P``.

    @classmethod
    def from_joints(
        cls, tree: tuple[Node, ...], gravity: Array, values: Array, motion: Sequence[Array]
    ) -> WorldMotion:
        """The nodes with these parameters (n,) at a motion (q, dq, ddq), (dof, N) each."""
        q, dq, ddq = (x[[node.own.start for node in tree]] for x in motion)
        screws = [node.screw for node in tree if node.screw is not None]
        theta = np.array([screw.rate for screw in screws])[:, None] * q
        factors = np.stack([np.ones_like(q), np.cos(theta), np.sin(theta), q])
        constants = np.stack([screw.matrices for screw in screws], axis=-1)
        poses = np.einsum("ijsk,skN->ijkN", constants, factors)
        for k, node in enumerate(tree):
            if node.parent >= 0:
                poses[:, :, k] = _product(poses[:, :, node.parent], poses[:, :, k])
        motions = np.stack([node.motion[:, 0] for node in tree], axis=-1)
        turned = (np.einsum("ijkN,jk->ikN", poses[:3, :3], x) for x in (motions[:3], motions[3:]))
        axes = np.concatenate([*turned])
        axes[3:] += cross(tuple(poses[:3, 3]), axes[:3])
        carries, parents = carried_nodes(tree), carried_nodes(tree) - np.eye(len(tree))
        moved = axes * dq
        V = parents.T @ moved
        U = _bracket(V, axes)
        pushed = axes * ddq + U * dq
        A = parents.T @ pushed
        A[3:] -= gravity[:, None, None]
        bodies = pseudo_inertia([node.reduction @ values[list(node.columns)] for node in tree])
        P = _product(np.einsum("ijkN,kjl->ilkN", poses, bodies), poses.swapaxes(0, 1))
        turn = _matrix(V + moved)
        VP = _product(turn, P)
        forces = _product(_matrix(A + pushed), P) + _product(turn[:, :3], VP)
        return cls(axes, V, A, U, carries @ P, carries @ VP, carries @ forces)

    @property
    def masses(self) -> Array:
        """Power along axis j per acceleration along axis i of all that i carries."""
        pushes = _wrench(_product(_matrix(self.axes), self.P))
        return np.asarray(np.einsum("aiN,ajN->ijN", pushes, self.axes))

    @property
    def torques(self) -> Array:
        """Of the nodes about their axes, (nodes, N)."""
        return np.asarray(np.einsum("aiN,aiN->iN", _wrench(self.forces), self.axes))


def carried_nodes(tree: tuple[Node, ...]) -> Array:
    """1 where node i carries node j or is it, (nodes, nodes)."""
    out = np.eye(len(tree))
    for k, node in enumerate(tree):
        if node.parent >= 0:
            out[:, k] += out[:, node.parent]
    return out


def _add_derivatives(tree: tuple[Node, ...], world: WorldMotion, out: Array) -> None:
    """Add the derivatives of one chunk to `out`, (3, dof, dof, N)."""
    all_pushes = _bracket(world.A, world.axes) + _bracket(world.V, world.U)
    for k, node in enumerate(tree):
        i, chain = node.own.start, [k]
        while tree[chain[-1]].parent >= 0:
            chain.append(tree[chain[-1]].parent)
        rows = [tree[j].own.start for j in chain]
        turns, rates, pushes = (x[:, chain] for x in (world.axes, world.U, all_pushes))
        J, U, W = (_matrix(x[:, 0]) for x in (turns, rates, pushes))
        P, VP, forces = (x[:, :, k] for x in (world.P, world.VP, world.forces))
        # What this node's axis feels of frames that its ancestors move, by W and by U.
        by_push = _wrench(_product(J, P))
        by_rate = 2 * _moment(_product(J, VP.swapaxes(0, 1)))
        # What its ancestors feel of its own motion, which also carries its forces elsewhere.
        carried = _product(J[:, :3], forces) + _product(W, P) + 2 * _product(U[:, :3], VP)
        carried[:, :3] += _product(forces, J.swapaxes(0, 1))
        swept = 2 * (_product(U, P) + _product(J[:, :3], VP))
        out[0, i, rows] += _powers(by_push, pushes) + _powers(by_rate, rates[:3])
        out[1, i, rows] += 2 * _powers(by_push, rates) + _powers(by_rate, turns[:3])
        out[2, i, rows] += _powers(by_push, turns)
        out[0, rows[1:], i] += _powers(_wrench(carried), turns[:, 1:])
        out[1, rows[1:], i] += _powers(_wrench(swept), turns[:, 1:])
        out[2, rows[1:], i] += _powers(by_push, turns[:, 1:])


def _product(a: Array, b: Array) -> Array:
    """Matrix products, (m, n, ...) and (n, k, ...)."""
    return np.asarray(np.einsum("ij...,jk...->ik...", a, b))


def _matrix(twist: Array) -> Array:
    """Twists (6, ...), (angular, linear), as matrices (3, 4, ...) that turn points; a fourth row
    would be zero.
    """
    x, y, z = twist[:3]
    out = np.zeros((3, 4, *twist.shape[1:]))
    out[0, 1], out[1, 0] = -z, z
    out[2, 0], out[0, 2] = -y, y
    out[1, 2], out[2, 1] = -x, x
    out[:, 3] = twist[3:]
    return out


def _bracket(a: Array, b: Array) -> Array:
    """The commutators of twists (6, ...), their cross products."""
    w, v = tuple(a[:3]), tuple(a[3:])
    return np.concatenate([cross(w, b[:3]), cross(w, b[3:]) + cross(v, b[:3])])


def _wrench(forces: Array) -> Array:
    """Moment and force (6, ...) of an integral of force times (position, 1), (3, 4, ...)."""
    return np.concatenate([_moment(forces), forces[:, 3]])


def _moment(forces: Array) -> Array:
    """Its moment (3, ...)."""
    return np.stack([forces[r, c] - forces[c, r] for r, c in ((2, 1), (0, 2), (1, 0))])


def _powers(wrench: Array, twists: Array) -> Array:
    """Scalar products of a wrench (6, N) with twists (6, k, N), or parts of them, (k, N)."""
    return np.asarray(np.einsum("iN,ikN->kN", wrench, twists))
