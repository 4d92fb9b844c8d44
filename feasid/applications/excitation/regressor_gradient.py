"""The regressor of a motion and, in reverse mode, gradients of any function of it.

Vectors are Featherstone's, angular part first: arrays whose first axis holds the components and
whose last two are samples N and nodes n (bodies and rotors). All vectors are in the base frame,
about its origin, so no vector is transformed from frame to frame: with S_k the axis of node k and
sums over the nodes k that carry node i, itself among them,

    V_i = sum_k S_k dq_k,    A_i = sum_k (S_k ddq_k + V_k x S_k dq_k) - g,

and a joint moves all that it carries by one twist. The gradient by q_k is therefore S_k times the
sum of the wrenches that are the derivatives by poses. Only poses are computed node by node.

In the body's frame, with omega, alpha and the acceleration a of its origin minus gravity, the
inertia L about the origin, the first moment h and the mass m need the wrench

    moment = L alpha + omega x L omega + h x a,    force = m a + alpha x h + omega x (omega x h),

bilinear in (L, h, m) and in alpha, the six products of omega's components, and a. So its ten
columns are one constant matrix times twelve numbers, and the reverse mode is its transpose. The
row of a joint with axis S and the column of a body's parameter share ``S . F``, F the wrench that
the parameter needs, where the joint carries the body. So a sample's regressor is a product of two
matrices, and so are the derivatives by both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feasid.applications.excitation.drives import DriveColumns, DriveSignals, MotionGradient, Places
from feasid.core.arrays import Array
from feasid.core.errors import InputError, UnsupportedJointError
from feasid.robot.description import Robot
from feasid.robot.dynamics.kinematics import Node, nodes
from feasid.robot.inertia import UPPER


def cross(a: Array, b: Array) -> Array:
    """``a x b`` of vectors (3, ...)."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    for r in range(3):
        i, k = (r + 1) % 3, (r + 2) % 3
        np.multiply(a[i], b[k], out=out[r])
        out[r] -= a[k] * b[i]
    return out


def force_cross(v: Array, f: Array) -> Array:
    """``v x* f`` of a motion and a force vector: ``-(v x)' f``."""
    return np.concatenate([cross(v[:3], f[:3]) + cross(v[3:], f[3:]), cross(v[:3], f[3:])])


def dot_product(a: Array, b: Array) -> Array:
    """Sum over the vectors' entries."""
    return np.asarray((a * b).sum(axis=0))


def rotate(turn: Array, x: Array) -> Array:
    """``R x`` for rotations (3, 3, N, n) and vectors (3, ..., N, n)."""
    out = np.empty_like(x)
    for r in range(3):
        np.multiply(turn[r, 0], x[0], out=out[r])
        out[r] += turn[r, 1] * x[1]
        out[r] += turn[r, 2] * x[2]
    return out


def rotate_back(turn: Array, x: Array) -> Array:
    """``R' x``."""
    return rotate(turn.swapaxes(0, 1), x)


@dataclass(frozen=True, eq=False)
class NodeTopology:
    """Constants of the tree, for n nodes; the last axis of arrays."""

    parents: tuple[int, ...]  #: Negative where a node hangs on the base.
    rows: Places  #: Shape (n,): the joint that moves each node.
    #: Shape (n, n): one where node k carries node i: ``path[k, i]``; a node carries itself.
    path: Array
    rate: Array  #: Shape (n,).
    #: Shape (3, 3, 1, n): a pose in the parent's frame is affine in these of (1, cos, sin) and (1,
    #: cos, sin, q), with the angle ``rate * q``.
    rotation: tuple[Array, ...]
    position: tuple[Array, ...]  #: Shape (3, 1, n): see `rotation`.
    screw: Array  #: Shape (6, 1, n): axes in the nodes' own frames.

    def sum_by_joint(self, x: Array) -> Array:
        """Sums over the nodes that a joint moves, bodies and rotors: (n, ...) to (dof, ...)."""
        bodies = len(np.unique(self.rows))
        out = x[:bodies]
        if bodies < len(x):
            # Bodies come first, one per joint; rotors are added to the joints that turn them.
            out = out.copy()
            np.add.at(out, self.rows[bodies:], x[bodies:])
        return out

    def motion(self, q: Array, dq: Array, ddq: Array, gravity: Array) -> TreeMotion:
        """The nodes' motion for joints' (dof, N)."""
        angle, rate, push = (x.T[:, self.rows] for x in (q, dq, ddq))
        cos, sin = np.cos(self.rate * angle), np.sin(self.rate * angle)
        one, by_cos, by_sin = self.rotation
        turn = one + by_cos * cos + by_sin * sin
        fixed, p_cos, p_sin, p_q = self.position
        place = fixed + p_cos * cos + p_sin * sin + p_q * angle
        # Parents come before their children, whose poses they bring into the base frame.
        for i, k in enumerate(self.parents):
            if k >= 0:
                place[..., i] = place[..., k] + np.einsum("ijs,js->is", turn[..., k], place[..., i])
                turn[..., i] = np.einsum("ijs,jks->iks", turn[..., k], turn[..., i])
        axes = np.empty((6, *rate.shape))
        axes[:3] = (turn * self.screw[:3]).sum(axis=1)
        axes[3:] = cross(place, axes[:3])
        if self.screw[3:].any():
            axes[3:] += (turn * self.screw[3:]).sum(axis=1)
        swept = axes * rate
        velocity = swept @ self.path
        spin, slide = velocity[:3], velocity[3:]
        bent = [cross(spin, swept[:3]), cross(spin, swept[3:]) + cross(slide, swept[:3])]
        acceleration = (axes * push + np.concatenate(bent)) @ self.path
        acceleration[3:] -= gravity[:, None, None]
        return TreeMotion(self, turn, place, axes, rate, push, swept, velocity, acceleration)


@dataclass(frozen=True, eq=False)
class TreeMotion:
    """Motion of N samples and n nodes in the base frame.

    ``turn`` (3, 3, N, n) and ``place`` (3, N, n) are poses, ``axes`` (6, N, n) S, ``rate`` and
    ``push`` (N, n) dq and ddq, ``swept`` (6, N, n) their S dq, and ``velocity`` and
    ``acceleration`` (6, N, n) V and A.
    """

    topology: NodeTopology
    turn: Array
    place: Array
    axes: Array
    rate: Array
    push: Array
    swept: Array
    velocity: Array
    acceleration: Array

    def pull_back(
        self, pose: Array, axes: Array, velocity: Array, acceleration: Array
    ) -> MotionGradient:
        """Derivatives by the nodes' poses (as wrenches), axes, V and A, (6, N, n) each."""
        carried = self.topology.path.T
        pushed = acceleration @ carried
        total = velocity + force_cross(self.swept, pushed)
        swept = total @ carried - force_cross(self.velocity, pushed)
        axes = axes + pushed * self.push + swept * self.rate
        wrench = (pose + force_cross(self.axes, axes)) @ carried
        return MotionGradient(*(self.joint_torques(x) for x in (wrench, swept, pushed)))

    def joint_torques(self, wrench: Array) -> Array:
        """Wrenches on all nodes (6, N, n) along their axes, summed joint by joint: (dof, N)."""
        return self.topology.sum_by_joint(dot_product(self.axes, wrench).T)


SPIN, TURN, PUSH = slice(0, 3), slice(3, 9), slice(9, 12)
"""Places of alpha, of omega's products and of a among the twelve numbers."""

LEVERS, FORCES = slice(6, 9), slice(9, 13)
"""Of 13 columns of three, nine are moments, by L and h; four are forces, by h and m."""


def _wrench_coefficients() -> Array:
    """The 13 columns of three from the twelve numbers, shape (39, 12)."""
    axes = np.eye(3)
    skew = np.stack([np.cross(axis, axes) for axis in axes])  # skew[a, b] = a x b
    out = np.zeros((3, 13, 12))
    for k, (r, c) in enumerate(UPPER):
        inertia = np.outer(axes[r], axes[c])
        inertia = np.maximum(inertia, inertia.T)
        out[:, k, SPIN] = inertia
        for j, (u, v) in enumerate(UPPER):
            both = np.cross(axes[u], inertia[v]), np.cross(axes[v], inertia[u])
            # A product of two components stands for both orders, a square for one.
            out[:, k, TURN][:, j] = both[0] + both[1] * (u != v)
    for k in range(3):
        out[:, LEVERS, PUSH][:, k] = skew[k].T
        out[:, FORCES, SPIN][:, k] = -skew[k].T
        for j, (u, v) in enumerate(UPPER):
            both = np.cross(axes[u], skew[v, k]), np.cross(axes[v], skew[u, k])
            out[:, FORCES, TURN][:, k, j] = both[0] + both[1] * (u != v)
    out[:, FORCES, PUSH][:, 3] = axes
    return out.reshape(39, 12)


CONSTANTS = _wrench_coefficients()


@dataclass(frozen=True, eq=False)
class WrenchColumns:
    """Wrenches in the base frame that the ten parameters of every node need.

    ``columns`` (6, 10, N, n); ``spins`` (3, 3, N, n) are omega, alpha and a in the base frame,
    ``body_spins`` in the nodes' frames; ``drift`` (3, N, n) is the velocity of the origins.
    """

    flow: TreeMotion
    columns: Array
    spins: Array
    body_spins: Array
    drift: Array

    @classmethod
    def from_motion(cls, flow: TreeMotion) -> WrenchColumns:
        """Compute the columns from a motion of the tree."""
        place, (count, nodes) = flow.place, flow.rate.shape
        omega, alpha = flow.velocity[:3], flow.acceleration[:3]
        drift = flow.velocity[3:] + cross(omega, place)
        spins = np.empty((3, 3, count, nodes))
        spins[:, 0], spins[:, 1] = omega, alpha
        spins[:, 2] = flow.acceleration[3:] + cross(alpha, place) + cross(omega, drift)
        body_spins = rotate_back(flow.turn, spins)
        numbers = np.empty((12, count, nodes))
        numbers[SPIN], numbers[PUSH] = body_spins[:, 1], body_spins[:, 2]
        for k, (r, c) in enumerate(UPPER):
            np.multiply(body_spins[r, 0], body_spins[c, 0], out=numbers[TURN][k])
        parts = (CONSTANTS @ numbers.reshape(12, -1)).reshape(3, 13, count, nodes)
        parts = rotate(flow.turn, parts)
        columns = np.zeros((6, 10, count, nodes))
        columns[:3, :9], columns[3:, 6:] = parts[:, :9], parts[:, FORCES]
        columns[:3, 6:] += cross(place[:, None], parts[:, FORCES])
        return cls(flow, columns, spins, body_spins, drift)

    def pull_back(self, bar: Array) -> tuple[Array, Array, Array]:
        """Derivatives by poses, V and A, each (6, N, n), from those by the columns."""
        flow, (count, nodes) = self.flow, self.flow.rate.shape
        parts = np.empty((3, 13, count, nodes))
        parts[:, :9], parts[:, FORCES] = bar[:3, :9], bar[3:, 6:]
        parts[:, FORCES] += cross(bar[:3, 6:], flow.place[:, None])
        parts = rotate_back(flow.turn, parts)
        numbers = (CONSTANTS.T @ parts.reshape(39, -1)).reshape(12, count, nodes)
        body_gradient = np.zeros((3, 3, count, nodes))
        body_gradient[:, 1], body_gradient[:, 2] = numbers[SPIN], numbers[PUSH]
        for k, (r, c) in enumerate(UPPER):
            body_gradient[r, 0] += numbers[TURN][k] * self.body_spins[c, 0]
            body_gradient[c, 0] += numbers[TURN][k] * self.body_spins[r, 0]
        moments, forces = self.columns[:3], self.columns[3:, 6:]
        pose = np.empty((6, count, nodes))
        pose[:3] = cross(moments, bar[:3]).sum(axis=1) + cross(forces, bar[3:, 6:]).sum(axis=1)
        pose[3:] = cross(forces, bar[:3, 6:]).sum(axis=1)
        # Through omega, alpha and a.
        place, (omega, alpha) = flow.place, (self.spins[:, 0], self.spins[:, 1])
        spins = rotate(flow.turn, body_gradient)
        push = spins[:, 2]
        drift = cross(push, omega)
        shift = cross(push, alpha) + cross(drift, omega)
        velocity, acceleration = np.empty_like(pose), np.empty_like(pose)
        velocity[:3] = spins[:, 0] + cross(self.drift, push) + cross(place, drift)
        acceleration[:3] = spins[:, 1] + cross(place, push)
        velocity[3:], acceleration[3:] = drift, push
        pose[:3] += cross(spins, self.spins).sum(axis=1) + cross(place, shift)
        pose[3:] += shift
        return pose, velocity, acceleration


@dataclass(frozen=True, eq=False)
class MotionRegressor:
    """Constants of the robot that every evaluation needs."""

    robot: Robot  #: All joints of one degree of freedom.
    columns: tuple[int, ...]  #: Standard parameters whose columns are wanted, increasing.
    #: Shape (drives,): least width w [rad/s or m/s] of ``tanh(v / w)`` in place of Coulomb
    #: friction's sign(v), per drive; None for the drive's own, and the sign itself where it has
    #: none.
    smoothing: Array | None = None

    def __post_init__(self) -> None:
        for body in self.robot.bodies:
            if body.dof != 1:
                raise UnsupportedJointError(
                    f"joint {body.joint!r} has {body.dof} degrees of freedom; motions are designed "
                    "for joints with one: lock it (robot.locked) or load the robot on a fixed base",
                    joint=body.joint,
                )
        if self.robot.couplings or self.robot.loops:
            raise UnsupportedJointError(
                f"robot {self.robot.name!r} has joints that follow others or closed loops: motions "
                "are designed for joints that move independently"
            )
        loaded = [d.name for d in self.robot.drives if d.features or d.depends_on_load]
        if loaded:
            raise InputError(
                f"drive {loaded[0]!r} has friction that grows with the load (fl) or custom terms"
                ": design the motion without them"
            )

    @cached_property
    def tree(self) -> tuple[Node, ...]:
        """Bodies and rotors."""
        return nodes(self.robot)

    @cached_property
    def topology(self) -> NodeTopology:
        """Tree of the bodies."""
        path, screws = np.eye(len(self.tree)), []
        for i, node in enumerate(self.tree):
            if node.parent >= 0:
                path[:, i] += path[:, node.parent]
            assert node.screw is not None
            screws.append(node.screw)
        return NodeTopology(
            tuple(node.parent for node in self.tree),
            np.array([node.rows[-1] for node in self.tree], dtype=np.intp),
            path,
            np.array([s.rate for s in screws]),
            tuple(np.stack([s.rotation[m].T for s in screws], -1)[:, :, None] for m in range(3)),
            tuple(np.stack([s.position[m] for s in screws], -1)[:, None] for m in range(4)),
            np.stack([node.motion[:, 0] for node in self.tree], -1)[:, None],
        )

    @cached_property
    def drives(self) -> DriveColumns:
        """Joint terms."""
        return DriveColumns.from_robot(self.robot, self.columns, self.smoothing)

    @cached_property
    def inertials(self) -> Array:
        """The description's ten parameters of each node, unknown ones zero: (10, 1, n)."""
        known = np.nan_to_num(self.robot.values)
        tens = [node.reduction @ known[list(node.columns)] for node in self.tree]
        return np.array(tens).T[:, None]

    @cached_property
    def column_places(self) -> tuple[Places, Places, Places]:
        """Node, number within the node, and place of the inertial columns that are wanted."""
        place = {c: k for k, c in enumerate(self.columns)}
        entries = [
            (i, k, place[c])
            for i, node in enumerate(self.tree)
            for k, c in enumerate(node.columns)
            if c in place
        ]
        node, number, column = np.array(entries, dtype=np.intp).reshape(-1, 3).T
        return node, number, column

    @cached_property
    def reduced_nodes(self) -> tuple[tuple[int, Array], ...]:
        """Nodes with fewer than ten parameters, and the ten by theirs (10, k)."""
        return tuple(
            (i, node.reduction)
            for i, node in enumerate(self.tree)
            if node.reduction.shape != (10, 10)
        )

    def evaluate(
        self, q: Array, dq: Array, ddq: Array, *, torque: bool = False
    ) -> RegressorEvaluation:
        """Regressor and, if wanted, the description's torques of a motion, (dof, N) arrays."""
        flow = self.topology.motion(q, dq, ddq, self.robot.gravity)
        wrenches = WrenchColumns.from_motion(flow) if torque or len(self.column_places[0]) else None
        forces = np.zeros((q.shape[1], 6, 0))
        if wrenches is not None:
            columns, (node, number, _) = wrenches.columns, self.column_places
            # Gradients need the wrenches of all ten parameters later.
            columns = columns.copy() if self.reduced_nodes else columns
            for i, ten in self.reduced_nodes:
                columns[:, : ten.shape[1], :, i] = np.einsum("tk,ctn->ckn", ten, columns[..., i])
            by_sample = columns.transpose(2, 0, 1, 3).reshape(columns.shape[2], 6, -1)
            forces = np.ascontiguousarray(by_sample[:, :, number * columns.shape[3] + node])
        regressor = np.zeros((q.shape[1], self.robot.dof, len(self.columns)))
        if forces.size:
            nodes, _, places = self.column_places
            carried = self.topology.path[:, nodes]
            block = ((flow.axes.transpose(1, 2, 0) @ forces) * carried).swapaxes(0, 1)
            regressor[:, :, places] = self.topology.sum_by_joint(block).swapaxes(0, 1)
        loads = np.zeros((6, *flow.rate.shape))
        if torque:
            assert wrenches is not None
            loads = (wrenches.columns * self.inertials).sum(axis=1) @ self.topology.path.T
        torques = flow.joint_torques(loads)
        drives = DriveSignals(self.drives, q, dq, ddq)
        torques = drives.add_to_equations(regressor, torques)
        return RegressorEvaluation(self, flow, wrenches, forces, loads, drives, regressor, torques)


@dataclass(frozen=True, eq=False)
class RegressorEvaluation:
    """A motion's regressor, and the intermediate results for its gradients."""

    dynamics: MotionRegressor
    flow: TreeMotion
    wrenches: WrenchColumns | None
    forces: Array
    loads: Array
    drives: DriveSignals
    regressor: Array  #: Shape (N, dof, columns).
    #: Shape (dof, N) or (2 dof, N): by the description's own parameters, when asked for [N m or N];
    #: where these have friction, the torques without it follow.
    torques: Array

    def backward(self, regressor_bar: Array, torque_bar: Array | None, out: MotionGradient) -> None:
        """Add to `out` the gradient by the motion, from derivatives by `regressor` and
        `torques`.
        """
        self.drives.pull_back(regressor_bar, torque_bar, out)
        if self.wrenches is None:
            return
        topology, flow = self.dynamics.topology, self.flow
        node, number, column = self.dynamics.column_places
        bar = regressor_bar[:, topology.rows[:, None], column] * topology.path[:, node]
        axes = (self.forces @ bar.swapaxes(1, 2)).transpose(1, 0, 2)
        # Derivatives by all columns (6, 10, N, n) from those by the wanted ones.
        nodes = len(self.dynamics.tree)
        every = np.zeros((len(bar), 6, 10 * nodes))
        every[:, :, number * nodes + node] = np.moveaxis(flow.axes, 0, 1) @ bar
        columns = np.ascontiguousarray(every.reshape(-1, 6, 10, nodes).transpose(1, 2, 0, 3))
        for i, ten in self.dynamics.reduced_nodes:
            columns[..., i] = np.einsum("tk,ckn->ctn", ten, columns[:, : ten.shape[1], :, i])
        if torque_bar is not None:
            both = torque_bar.reshape(-1, self.dynamics.robot.dof, len(regressor_bar)).sum(axis=0)
            pushed = both.T[:, topology.rows]
            axes = axes + self.loads * pushed
            carried = (flow.axes * pushed) @ topology.path
            columns += carried[:, None] * self.dynamics.inertials
        pose, velocity, acceleration = self.wrenches.pull_back(columns)
        added = flow.pull_back(pose, axes, velocity, acceleration)
        for total, part in zip(out, added, strict=True):
            total += part
