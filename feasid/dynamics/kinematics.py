"""Velocity, acceleration and joint axes of every moving node for a batch of samples.

A *node* is a body or a rotor. Vectors are in the node's own frame, shape (3, N), samples last:
``omega`` and ``alpha`` are angular velocity and acceleration, ``acceleration`` is the classical
acceleration of the frame's origin minus gravity, so that weight needs no extra term. ``axes`` are
the spatial axes of every joint row that carries the node, as [angular (3, k, N), linear].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feasid.dynamics.spatial import Entry, Pose, ScrewPose, cross, group_pose, is_zero
from feasid.robot.description import Robot
from feasid.robot.parts import Array


@dataclass(frozen=True, eq=False)
class Node:
    """A body or rotor: where it hangs, how it moves, which rows carry it.

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
        return ScrewPose.of(self.rotation, self.position, self.motion[:, 0])

    def pose(self, q: Array) -> Pose:
        """Pose in the parent at joint positions q, shape (n_d, N)."""
        if self.screw is not None:
            return self.screw.at(q[0])
        return group_pose(self.rotation, self.position, self.motion, q)


@dataclass(frozen=True, eq=False)
class State:
    """Motion of one node for N samples; see the module's docstring."""

    pose: Pose
    omega: Array
    alpha: Array
    acceleration: Array
    axes: tuple[Array, Array] | None


def nodes(robot: Robot) -> tuple[Node, ...]:
    """Bodies in the robot's order, then its rotors."""
    rows: list[tuple[int, ...]] = []
    out = []
    for i, body in enumerate(robot.bodies):
        own, p = robot.rows[i], robot.parents[i]
        rows.append((*(rows[p] if p >= 0 else ()), *range(own.start, own.stop)))
        columns = tuple(int(c) for c in robot.inertial_columns[i])
        out.append(
            Node(p, body.rotation, body.position, body.motion, own, rows[i], columns, np.eye(10))
        )
    for i, body in enumerate(robot.bodies):
        if body.rotor is not None:
            span = robot.rotor_columns(i)
            reduction = BALANCED if body.rotor.symmetric else np.eye(10)
            p, rotor = robot.parents[i], body.rotor
            if body.dof != 1:
                raise NotImplementedError("rotors hang on joints with one degree of freedom")
            spin = np.array([[0.0], [0.0], [rotor.gear], [0.0], [0.0], [0.0]])
            columns = tuple(range(span.start, span.stop))
            out.append(
                Node(
                    p, rotor.rotation, rotor.position, spin,
                    robot.rows[i], rows[i], columns, reduction,
                )
            )  # fmt: skip
    return tuple(out)


# A balanced rotor has Lyy = Lxx, and of the rest only Lzz, lz and m.
BALANCED = np.zeros((10, 4))
BALANCED[[0, 3], 0] = BALANCED[5, 1] = BALANCED[8, 2] = BALANCED[9, 3] = 1.0


def propagate(
    tree: tuple[Node, ...], gravity: Array, q: Array, dq: Array, ddq: Array, *, axes: bool = True
) -> Iterator[State]:
    """Yield the state of each node, parents first; q, dq, ddq have shape (dof, N).

    The classical form of the recursive Newton-Euler kinematics: with u, w the angular and linear
    velocity of the node relative to its parent, all in the node's frame,

        omega = E omega_p + u
        alpha = E alpha_p + u' + (E omega_p) x u
        a = E(a_p + alpha_p x p + omega_p x (omega_p x p)) + w' + u x w + 2 (E omega_p) x w
    """
    count = q.shape[1]
    zeros = np.zeros((3, count))
    start = np.repeat(-gravity[:, None], count, axis=1)
    done: list[State] = []
    for node in tree:
        base = done[node.parent] if node.parent >= 0 else None
        pose = node.pose(q[node.own])
        rate, push = dq[node.own], ddq[node.own]
        if base is None:
            carried, turning = zeros, zeros
            acceleration = pose.to_body(start)
        else:
            carried, turning, acceleration = _carry(pose, base)
        omega, alpha = carried, turning
        angular, linear = node.motion[:3], node.motion[3:]
        if angular.any():
            spin = _combination(angular, rate)
            omega = _add(carried, spin)
            alpha = _add(turning, _combination(angular, push))
            if base is not None:
                alpha = alpha + cross(spin, -carried)
        if linear.any():
            slide = np.stack(_arrays(_combination(linear, rate), count))
            acceleration = _add(acceleration, _combination(linear, push))
            if angular.any():
                acceleration = acceleration + cross(_combination(angular, rate), slide)
            if base is not None:
                acceleration = acceleration + 2 * cross(tuple(carried), slide)
        screws = _axes(node, pose, base, count) if axes else None
        done.append(State(pose, omega, alpha, acceleration, screws))
        yield done[-1]


def _carry(pose: Pose, base: State) -> tuple[Array, Array, Array]:
    """Parent's motion at the node's origin, in the node's frame, with the constant lever arm."""
    if pose.position_in_body is None:
        lever: tuple[Entry, ...] = pose.position
        carried = base.acceleration
        if not is_zero(lever):
            carried = carried + _swing(lever, base.omega, base.alpha)
        return pose.to_body(base.omega), pose.to_body(base.alpha), pose.to_body(carried)
    lever = pose.position_in_body
    omega, alpha = pose.to_body(base.omega), pose.to_body(base.alpha)
    acceleration = pose.to_body(base.acceleration)
    if not is_zero(lever):
        acceleration += _swing(lever, omega, alpha)
    return omega, alpha, acceleration


def _swing(lever: tuple[Entry, ...], omega: Array, alpha: Array) -> Array:
    """Acceleration of a point at `lever`: alpha x r + omega x (omega x r)."""
    out = cross(lever, -alpha)
    velocity = cross(lever, -omega)
    out[0] += omega[1] * velocity[2] - omega[2] * velocity[1]
    out[1] += omega[2] * velocity[0] - omega[0] * velocity[2]
    out[2] += omega[0] * velocity[1] - omega[1] * velocity[0]
    return out


def _axes(node: Node, pose: Pose, base: State | None, count: int) -> tuple[Array, Array]:
    """Axes of the rows that carry the node: the parent's, moved here, then its own."""
    inherited = len(node.rows) - node.motion.shape[1]
    angular, linear = (np.empty((3, len(node.rows), count)) for _ in range(2))
    angular[:, inherited:] = node.motion[:3, :, None]
    linear[:, inherited:] = node.motion[3:, :, None]
    if base is not None and base.axes is not None and inherited:
        turn, shift = base.axes
        in_body = pose.position_in_body
        if in_body is None and not is_zero(pose.position):
            shift = shift - cross(pose.position, turn)
        angular[:, :inherited] = pose.to_body(turn)
        linear[:, :inherited] = pose.to_body(shift)
        if in_body is not None and not is_zero(in_body):
            linear[:, :inherited] -= cross(in_body, angular[:, :inherited])
    return angular, linear


def _combination(motion: Array, rates: Array) -> tuple[Entry, ...]:
    """``motion @ rates`` with zero rows as the number zero."""
    out: list[Entry] = []
    for row in motion:
        used = np.flatnonzero(row)
        if used.size == 0:
            out.append(0.0)
        else:
            total = row[used[0]] * rates[used[0]] if row[used[0]] != 1.0 else rates[used[0]]
            for k in used[1:]:
                total = total + row[k] * rates[k]
            out.append(total)
    return tuple(out)


def _add(vector: Array, terms: tuple[Entry, ...]) -> Array:
    out = vector.copy()
    for r, term in enumerate(terms):
        if not (isinstance(term, float) and term == 0.0):
            out[r] += term
    return out


def _arrays(vector: tuple[Entry, ...], count: int) -> list[Array]:
    return [np.full(count, x) if isinstance(x, float) else x for x in vector]
