"""All nodes of a moving chain at once: poses, velocities and accelerations, and the way back.

Everything lies in the base frame, about its origin, where no vector is carried from frame to frame:
with S_k the axis of node k and sums over the nodes k that carry node i, itself among them,

    V_i = sum_k S_k dq_k,    A_i = sum_k (S_k ddq_k + V_k x S_k dq_k) - g,

and a joint moves all that it carries by one twist, so that the gradient by q_k is S_k times the sum
of the wrenches that the derivatives by poses amount to. Only poses are found node by node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.dynamics.kinematics import Node
from feasid.excitation.spatial import cross, dot, force_cross, motion_cross

Places = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Gradient:
    """Derivatives by q, dq and ddq, each of shape (dof, N)."""

    q: Array
    dq: Array
    ddq: Array

    @property
    def parts(self) -> tuple[Array, Array, Array]:
        """All three."""
        return self.q, self.dq, self.ddq

    @classmethod
    def zeros(cls, dof: int, count: int) -> Gradient:
        """Nothing yet; parts are added in place."""
        return cls(np.zeros((dof, count)), np.zeros((dof, count)), np.zeros((dof, count)))


@dataclass(frozen=True, eq=False)
class Links:
    """What only the tree decides, for n nodes; the last axis of arrays.

    Attributes
    ----------
    parents : tuple of int
        Negative where a node hangs on the base.
    rows : ndarray of int, shape (n,)
        The joint that moves each node.
    path : ndarray, shape (n, n)
        One where node k carries node i: ``path[k, i]``; a node carries itself.
    rate : ndarray, shape (n,)
    rotation, position : tuple of ndarray, shapes (3, 3, 1, n) and (3, 1, n)
        A pose in the parent's frame is affine in these of (1, cos, sin) and (1, cos, sin, q), with
        the angle ``rate * q``.
    screw : ndarray, shape (6, 1, n)
        Axes in the nodes' own frames.
    """

    parents: tuple[int, ...]
    rows: Places
    path: Array
    rate: Array
    rotation: tuple[Array, ...]
    position: tuple[Array, ...]
    screw: Array

    @classmethod
    def of(cls, tree: tuple[Node, ...]) -> Links:
        """Of nodes that a joint of one degree of freedom moves each."""
        path = np.eye(len(tree))
        screws = []
        for i, node in enumerate(tree):
            if node.parent >= 0:
                path[:, i] += path[:, node.parent]
            assert node.screw is not None
            screws.append(node.screw)
        return cls(
            tuple(node.parent for node in tree),
            np.array([node.rows[-1] for node in tree], dtype=np.intp),
            path,
            np.array([s.rate for s in screws]),
            tuple(np.stack([s.rotation[m].T for s in screws], -1)[:, :, None] for m in range(3)),
            tuple(np.stack([s.position[m] for s in screws], -1)[:, None] for m in range(4)),
            np.stack([node.motion[:, 0] for node in tree], -1)[:, None],
        )

    def by_joint(self, x: Array) -> Array:
        """Sums over the nodes that a joint moves, bodies and rotors: (n, ...) to (dof, ...)."""
        bodies = len(np.unique(self.rows))
        out = x[:bodies]
        if bodies < len(x):
            out = out.copy()
            np.add.at(out, self.rows[bodies:], x[bodies:])
        return out

    def poses(self, q: Array) -> tuple[Array, Array]:
        """Rotations (3, 3, N, n) to and origins (3, N, n) in the base frame; q is (N, n)."""
        cos, sin = np.cos(self.rate * q), np.sin(self.rate * q)
        one, by_cos, by_sin = self.rotation
        turns = one + by_cos * cos + by_sin * sin
        fixed, p_cos, p_sin, p_q = self.position
        places = fixed + p_cos * cos + p_sin * sin + p_q * q
        for i, parent in enumerate(self.parents):
            if parent >= 0:
                turn = turns[..., parent]
                places[..., i] = places[..., parent] + np.einsum("ijs,js->is", turn, places[..., i])
                turns[..., i] = np.einsum("ijs,jks->iks", turn, turns[..., i])
        return turns, places

    def moved(self, q: Array, dq: Array, ddq: Array, gravity: Array) -> Flow:
        """The nodes' motion for joints' (dof, N)."""
        turn, place = self.poses(q.T[:, self.rows])
        rate, push = dq.T[:, self.rows], ddq.T[:, self.rows]
        axes = np.empty((6, *rate.shape))
        axes[:3] = (turn * self.screw[:3]).sum(axis=1)
        axes[3:] = cross(place, axes[:3])
        if self.screw[3:].any():
            axes[3:] += (turn * self.screw[3:]).sum(axis=1)
        swept = axes * rate
        velocity = swept @ self.path
        acceleration = (axes * push + motion_cross(velocity, swept)) @ self.path
        acceleration[3:] -= gravity[:, None, None]
        return Flow(self, turn, place, axes, rate, push, swept, velocity, acceleration)


@dataclass(frozen=True, eq=False)
class Flow:
    """Motion of N samples and n nodes in the base frame.

    ``turn`` (3, 3, N, n) and ``place`` (3, N, n) are poses, ``axes`` (6, N, n) S, ``rate`` and
    ``push`` (N, n) dq and ddq, ``swept`` (6, N, n) their S dq, and ``velocity`` and
    ``acceleration`` (6, N, n) V and A.
    """

    links: Links
    turn: Array
    place: Array
    axes: Array
    rate: Array
    push: Array
    swept: Array
    velocity: Array
    acceleration: Array

    def pull(self, pose: Array, axes: Array, velocity: Array, acceleration: Array) -> Gradient:
        """Derivatives by the nodes' poses (as wrenches), axes, V and A, (6, N, n) each."""
        carried = self.links.path.T
        pushed = acceleration @ carried
        total = velocity + force_cross(self.swept, pushed)
        swept = total @ carried - force_cross(self.velocity, pushed)
        axes = axes + pushed * self.push + swept * self.rate
        wrench = (pose + force_cross(self.axes, axes)) @ carried
        return Gradient(*(self.by_joint(x) for x in (wrench, swept, pushed)))

    def by_joint(self, wrench: Array) -> Array:
        """Wrenches on all nodes (6, N, n) along their axes, summed joint by joint: (dof, N)."""
        return self.links.by_joint(dot(self.axes, wrench).T)
