"""Velocity, acceleration and joint axes of every moving node for a batch of samples.

A *node* is a body or a rotor. Vectors are in the node's own frame, shape (3, N), samples last:
``omega`` and ``alpha`` are angular velocity and acceleration, ``acceleration`` is the classical
acceleration of the frame's origin minus gravity, so that weight needs no extra term.
``angular_axes`` and ``linear_axes`` (3, k, N) are the angular and linear parts of the spatial axes
of the k joint rows that carry the node. All lie in one array, so that changing frames is one
operation.

Where joints are coupled or in closed loops, a `CoordinateMap` gives all joints' motion from the
independent coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feasid.core.arrays import Array
from feasid.robot.description import Robot
from feasid.robot.dynamics.spatial import Entry, Pose, ScrewPose, cross, is_zero
from feasid.robot.rotations import exponentials


@dataclass(frozen=True, eq=False)
class Node:
    """A body or rotor: its parent, its motion, and the joint rows that carry it.

    ``rows`` are all generalised coordinates that move it, its own last; ``own`` those of its
    joint; ``columns`` its parameters' columns, and ``reduction`` (10, k) their expression through
    the ten parameters (the identity for bodies, the four of a balanced rotor).
    """

    parent: int
    rotation: Array
    position: Array
    motion: Array
    own: slice
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    reduction: Array

    @cached_property
    def screw(self) -> ScrewPose | None:
        """Pose constants of a one-degree-of-freedom joint, None for the others."""
        if self.motion.shape[1] > 1:
            return None
        return ScrewPose.from_screw(self.rotation, self.position, self.motion[:, 0])

    def pose(self, q: Array) -> Pose:
        """Pose in the parent at joint positions q, shape (n_d, N)."""
        if self.screw is not None:
            return self.screw.at(q[0])
        turn, shift = exponentials(self.motion @ q)
        rotation = np.einsum("ij,jkn->ikn", self.rotation, turn)
        position = self.position[:, None] + self.rotation @ shift
        return Pose(
            tuple(tuple(rotation[k, r] for k in range(3)) for r in range(3)), tuple(position), None
        )


@dataclass(frozen=True, eq=False)
class NodeState:
    """Motion of one node for N samples: ``vectors`` (3, 3 + 2k, N); see the module's docstring."""

    pose: Pose
    vectors: Array

    @property
    def acceleration(self) -> Array:
        """Classical acceleration of the origin minus gravity, shape (3, N) [m/s^2]."""
        return self.vectors[:, 0]

    @property
    def alpha(self) -> Array:
        """Angular acceleration, shape (3, N) [rad/s^2]."""
        return self.vectors[:, 1]

    @property
    def omega(self) -> Array:
        """Angular velocity, shape (3, N) [rad/s]."""
        return self.vectors[:, 2]

    @property
    def angular_axes(self) -> Array:
        """Angular parts of the carrying rows' axes, shape (3, k, N)."""
        return self.vectors[:, 3 : (3 + self.vectors.shape[1]) // 2]

    @property
    def linear_axes(self) -> Array:
        """Linear parts of the carrying rows' axes at the node's origin, shape (3, k, N)."""
        return self.vectors[:, (3 + self.vectors.shape[1]) // 2 :]


def nodes(robot: Robot) -> tuple[Node, ...]:
    """Bodies in the robot's order, then its rotors."""
    rows: list[tuple[int, ...]] = []
    out = []
    for i, body in enumerate(robot.bodies):
        node_rows, p = robot.rows[i], robot.parents[i]
        rows.append((*(rows[p] if p >= 0 else ()), *range(node_rows.start, node_rows.stop)))
        columns = tuple(robot.inertial_columns[i].tolist())
        out.append(Node(p, body.rotation, body.position, body.motion,
                        node_rows, rows[i], columns, np.eye(10)))  # fmt: skip
    for i, body in enumerate(robot.bodies):
        if (rotor := body.rotor) is not None:
            if body.dof != 1:
                raise NotImplementedError("rotors need joints with one degree of freedom")
            columns = tuple(range(robot.size)[robot.rotor_columns(i)])
            spin = np.array([[0.0], [0.0], [rotor.gear], [0.0], [0.0], [0.0]])
            out.append(Node(robot.parents[i], rotor.rotation, rotor.position, spin,
                            robot.rows[i], rows[i], columns, rotor.reduction))  # fmt: skip
    return tuple(out)


def propagate(
    tree: tuple[Node, ...], gravity: Array, q: Array, dq: Array, ddq: Array, *, axes: bool = True
) -> Iterator[NodeState]:
    """Yield the state of each node, parents first; q, dq, ddq have shape (dof, N).

    The classical form of the recursive Newton-Euler kinematics: with u, w the angular and linear
    velocity of the node relative to its parent, all in the node's frame,

        omega = E omega_p + u
        alpha = E alpha_p + u' + (E omega_p) x u
        a = E(a_p + alpha_p x p + omega_p x (omega_p x p)) + w' + u x w + 2 (E omega_p) x w
    """
    ground = np.zeros((3, 3, q.shape[1]))
    ground[:, 0] = -gravity[:, None]
    states: list[NodeState] = []
    for node in tree:
        base = states[node.parent].vectors if node.parent >= 0 else ground
        pose = node.pose(q[node.own])
        # The parent's vectors at the node's origin and in its frame, with room for `own` axes. The
        # constant one of the two lever arms is used: before the rotation when it is constant in the
        # parent's frame, after it when it is constant in the node's.
        own = node.motion.shape[1] if axes else 0
        rows = (base.shape[1] - 3) // 2
        vectors = np.empty((3, 3 + 2 * (rows + own), base.shape[2]))
        head, tail = slice(0, 3 + rows), slice(3 + rows + own, 3 + rows + own + rows)
        shifts_first = pose.position_in_body is None and not is_zero(pose.position)
        source = base.copy() if shifts_first else base
        if shifts_first:
            _shift_by_lever_arm(pose.position, source[:, : 3 + rows], source[:, 3 + rows :])
        pose.to_body(source[:, : 3 + rows], vectors[:, head])
        pose.to_body(source[:, 3 + rows :], vectors[:, tail])
        if pose.position_in_body is not None and not is_zero(pose.position_in_body):
            _shift_by_lever_arm(pose.position_in_body, vectors[:, head], vectors[:, tail])
        state = NodeState(pose, vectors)
        # The joint's own motion is added.
        rate, push, at_rest = dq[node.own], ddq[node.own], node.parent < 0
        angular, linear = node.motion[:3], node.motion[3:]
        spin, slide = _matrix_times_rates(angular, rate), _matrix_times_rates(linear, rate)
        if not is_zero(slide):
            sliding = np.stack([np.broadcast_to(x, rate.shape[1]) for x in slide])
            _add_terms(state.acceleration, _matrix_times_rates(linear, push))
            if not is_zero(spin):
                state.acceleration[...] += cross(spin, sliding)
            if not at_rest:
                state.acceleration[...] += 2 * cross(tuple(state.omega), sliding)
        if not is_zero(spin):
            if not at_rest:
                state.alpha[...] -= cross(spin, state.omega)
            _add_terms(state.alpha, _matrix_times_rates(angular, push))
            _add_terms(state.omega, spin)
        if axes:
            state.angular_axes[:, -own:] = angular[:, :, None]
            state.linear_axes[:, -own:] = linear[:, :, None]
        states.append(state)
        yield state


def _shift_by_lever_arm(lever: tuple[Entry, ...], head: Array, tail: Array) -> None:
    """Move acceleration and axes by a lever arm, in place.

    a += alpha x r + omega x (omega x r), and the linear part of an axis s gains s x r.
    """
    swept = cross(lever, head[:, 1:])
    acceleration, omega, velocity = head[:, 0], head[:, 2], swept[:, 1]
    acceleration -= swept[:, 0]
    acceleration -= cross(tuple(omega), velocity)
    tail -= swept[:, 2:]


def _matrix_times_rates(motion: Array, rates: Array) -> tuple[Entry, ...]:
    """``motion @ rates`` with zero rows as the number zero."""
    out: list[Entry] = []
    for row in motion.tolist():
        terms = [x if c == 1.0 else c * x for c, x in zip(row, rates, strict=True) if c]
        out.append(sum(terms[1:], start=terms[0]) if terms else 0.0)
    return tuple(out)


def _add_terms(vector: Array, terms: tuple[Entry, ...]) -> None:
    for r, term in enumerate(terms):
        if not (isinstance(term, float) and term == 0.0):
            vector[r] += term


# -- coupled joints and closed loops -------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CoordinateMap:
    """The map from independent coordinates s to joint coordinates q of one robot."""

    robot: Robot
    #: Per independent coordinate the joint coordinates that it can move.
    rows: tuple[tuple[int, ...], ...]

    def motion(self, s: Array, ds: Array, dds: Array) -> tuple[Array, Array, Array, Array]:
        """q, dq, ddq, shape (axes, N), and dq/ds, (axes, dof, N) or (axes, dof, 1).

        Raises InputError: where a loop cannot close, or is singular.
        """
        closure, coupled = self.robot.closure, self.robot.coupling_map
        if closure is not None:
            return closure.motion(s, ds, dds)
        A = coupled.A
        return coupled.positions(s), A @ ds, A @ dds, A[:, :, None]


def coordinate_map(robot: Robot) -> CoordinateMap:
    """The map from a robot's independent coordinates to its joints'."""
    A, closure = robot.coupling_map.A, robot.closure
    moves = A != 0
    if closure is not None:
        moves = moves[:, closure.active] | (moves[:, closure.passive] @ closure.depends_on.T)
    return CoordinateMap(robot, tuple(tuple(np.flatnonzero(m).tolist()) for m in moves.T))
