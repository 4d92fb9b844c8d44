"""Nodes of a moving chain: their spatial velocity, acceleration and axes, and the way back.

All vectors of a node come from its parent's by one transform X(q) with ``dX/dq = -(Phi x) X``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from feasid.arrays import Array
from feasid.dynamics.kinematics import Node
from feasid.excitation.spatial import (
    apply_inertia,
    cross,
    dot,
    force_cross,
    motion_cross,
    pair,
)

Places = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Gradient:
    """Derivatives by q, dq and ddq, each of shape (dof, N)."""

    q: Array
    dq: Array
    ddq: Array

    @classmethod
    def zeros(cls, dof: int, count: int) -> Gradient:
        """Nothing yet; parts are added in place."""
        return cls(np.zeros((dof, count)), np.zeros((dof, count)), np.zeros((dof, count)))


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs of a node with parameters and a joint row that carries it, node by node.

    ``owner`` and ``row`` give both, ``first`` each node's first pair.
    """

    owner: Places
    row: Places
    first: Places

    @classmethod
    def of(cls, tree: tuple[Node, ...]) -> Pairs:
        """Of these nodes."""
        owner = np.array([i for i, node in enumerate(tree) for _ in node.rows], dtype=np.intp)
        row = np.array([r for node in tree for r in node.rows], dtype=np.intp)
        sizes = [len(node.rows) for node in tree]
        return cls(owner, row, np.cumsum([0, *sizes[:-1]]).astype(np.intp))

    def gathered(self, links: Sequence[CapsuleLink]) -> tuple[Array, Array, Array]:
        """V and A per node (6, nodes, N) and the axes per pair (6, pairs, N)."""
        both = np.stack([link.vectors[:, :2] for link in links], axis=1)
        axes = np.concatenate([link.axes for link in links], axis=1)
        return both[:, :, 0], both[:, :, 1], axes

    def block(self, links: Sequence[CapsuleLink]) -> Array:
        """Regressor entries of the ten parameters of every pair, shape (10, pairs, N)."""
        velocity, acceleration, axes = self.gathered(links)
        own = velocity[:, self.owner]
        return pair(axes, acceleration[:, self.owner]) - pair(motion_cross(own, axes), own)

    def pull(self, links: Sequence[CapsuleLink], weights: Array) -> list[Array]:
        """What derivatives by `block` mean for every link's vectors."""
        velocity, acceleration, axes = self.gathered(links)
        own = velocity[:, self.owner]
        swept = motion_cross(own, axes)
        momentum = apply_inertia(weights, own)
        by_axis = apply_inertia(weights, acceleration[:, self.owner]) + force_cross(own, momentum)
        by_velocity = -(apply_inertia(weights, swept) + force_cross(axes, momentum))
        by_velocity = np.add.reduceat(by_velocity, self.first, axis=1)
        by_acceleration = np.add.reduceat(apply_inertia(weights, axes), self.first, axis=1)
        out = []
        for i, (link, first) in enumerate(zip(links, self.first, strict=True)):
            bar = np.empty_like(link.vectors)
            bar[:, 0], bar[:, 1] = by_velocity[:, i], by_acceleration[:, i]
            bar[:, 2:] = by_axis[:, first : first + bar.shape[1] - 2]
            out.append(bar)
        return out


@dataclass(frozen=True, eq=False)
class CapsuleLink:
    """One node's motion: ``vectors`` (6, 2 + k, N) are V, A and the k carrying rows' axes."""

    node: Node
    turn: Array
    """E, the rotation from the parent's to the node's coordinates, shape (3, 3, N)."""
    place: Array
    """The node's origin in the parent's coordinates, shape (3, N)."""
    vectors: Array
    rate: Array
    """dq of its joint, shape (N,)."""

    @classmethod
    def of(cls, node: Node, base: Array, q: Array, dq: Array, ddq: Array) -> CapsuleLink:
        """From the parent's vectors; V = X V_p + Phi dq, A = X A_p + Phi ddq + V x Phi dq."""
        turn, place = _pose(node, q)
        carried, count = base.shape[1], base.shape[2]
        vectors = np.empty((6, carried + 1, count))
        moved = base[3:] - cross(place[:, None], base[:3])
        vectors[:3, :carried] = _rotate(turn, base[:3])
        vectors[3:, :carried] = _rotate(turn, moved)
        axis = node.motion
        vectors[:, carried] = axis
        vectors[:, 0] += axis * dq
        vectors[:, 1] += axis * ddq + motion_cross(vectors[:, 0], axis * dq)
        return cls(node, turn, place, vectors, dq)

    @property
    def velocity(self) -> Array:
        """V, shape (6, N)."""
        return self.vectors[:, 0]

    @property
    def acceleration(self) -> Array:
        """A, shape (6, N)."""
        return self.vectors[:, 1]

    @property
    def axes(self) -> Array:
        """Axes of the carrying rows, shape (6, k, N)."""
        return self.vectors[:, 2:]

    def pull(self, bar: Array, out: Gradient) -> Array:
        """Add the joint's own part to `out`; returns what is left for the parent's vectors."""
        axis, row, carried = self.node.motion, self.node.rows[-1], bar.shape[1] - 1
        push = bar[:, 1]
        out.ddq[row] += dot(axis, push)
        out.dq[row] += dot(motion_cross(self.velocity, axis), push)
        bar[:, 0] += self.rate * force_cross(axis, push)
        out.dq[row] += dot(axis, bar[:, 0])
        carried_over = self.vectors[:, :carried].copy()
        carried_over[:, 1] -= motion_cross(self.velocity, axis * self.rate)
        inner = bar[:, :carried]
        out.q[row] -= dot(motion_cross(axis[:, None], carried_over), inner).sum(axis=0)
        back = np.empty_like(inner)
        back[3:] = _rotate_back(self.turn, inner[3:])
        back[:3] = _rotate_back(self.turn, inner[:3]) + cross(self.place[:, None], back[3:])
        return back


def _pose(node: Node, q: Array) -> tuple[Array, Array]:
    """E (3, 3, N) and origin (3, N) of a joint of one degree of freedom."""
    screw = node.screw
    assert screw is not None
    cos, sin = np.cos(screw.rate * q), np.sin(screw.rate * q)
    one, by_cos, by_sin = (m[:, :, None] for m in screw.rotation)
    fixed, p_cos, p_sin, p_q = (p[:, None] for p in screw.position)
    return one + by_cos * cos + by_sin * sin, fixed + p_cos * cos + p_sin * sin + p_q * q


def _rotate(turn: Array, x: Array) -> Array:
    """E x for vectors (3, k, N)."""
    out = np.empty_like(x)
    for r in range(3):
        np.multiply(turn[r, 0], x[0], out=out[r])
        out[r] += turn[r, 1] * x[1]
        out[r] += turn[r, 2] * x[2]
    return out


def _rotate_back(turn: Array, x: Array) -> Array:
    """E' x for vectors (3, k, N)."""
    return _rotate(turn.swapaxes(0, 1), x)
