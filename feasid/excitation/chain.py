"""The regressor of a motion and the way back: gradients of any function of it, in one sweep.

With V and A the spatial velocity and acceleration of a node (gravity as an acceleration of the
ground) and s the axis of a joint row that carries it, all in the node's frame, row and node share

    s' (I(delta) A + V x* I(delta) V) = [pair(s, A) - pair(V x s, V)] . delta,

and every vector comes from the parent's by the same transform X(q), whose derivative is
``dX/dq = -(Phi x) X``. Reverse accumulation over this recursion turns the derivatives of a number
by the regressor's entries and by the torques into those by q, dq and ddq.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from feasid.arrays import Array
from feasid.dynamics.kinematics import Node, nodes
from feasid.errors import UnsupportedJointError
from feasid.excitation.spatial import (
    apply_inertia,
    cross,
    dot,
    force_cross,
    motion_cross,
    pair,
)
from feasid.robot.description import Robot

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
class Chain:
    """What every evaluation needs and only the robot decides.

    Attributes
    ----------
    robot : Robot
        All joints of one degree of freedom.
    columns : tuple of int
        Standard parameters whose columns are wanted, increasing.
    smoothing : ndarray, shape (drives,), or None
        Width w [rad/s or m/s] of ``tanh(v / w)`` in place of Coulomb friction's sign(v), per drive;
        None for the sign itself, whose derivative is taken as zero.
    """

    robot: Robot
    columns: tuple[int, ...]
    smoothing: Array | None = None

    def __post_init__(self) -> None:
        for body in self.robot.bodies:
            if body.dof != 1:
                raise UnsupportedJointError(
                    f"joint {body.joint!r} has {body.dof} degrees of freedom; motions are designed "
                    "for joints with one: lock it (robot.locked) or load the robot on a fixed base",
                    joint=body.joint,
                )

    @cached_property
    def tree(self) -> tuple[Node, ...]:
        """Bodies and rotors."""
        return nodes(self.robot)

    @cached_property
    def inertials(self) -> Array:
        """The description's ten parameters of each pair's node, unknown ones zero: (10, pairs)."""
        known = np.nan_to_num(self.robot.values)
        tens = np.array([node.reduction @ known[list(node.columns)] for node in self.tree])
        return np.ascontiguousarray(tens[self.pairs.owner].T)

    @cached_property
    def drives(self) -> tuple[tuple[Array, dict[str, int], dict[str, float]], ...]:
        """Per drive: coupling, places of its wanted columns by symbol, known values."""
        place = {c: k for k, c in enumerate(self.columns)}
        known = np.nan_to_num(self.robot.values)
        out = []
        for k in range(len(self.robot.drives)):
            where = self.robot.drive_columns(k)
            places = {s: place[c] for s, c in where.items() if c in place}
            out.append((self.robot.coupling(k), places, {s: known[c] for s, c in where.items()}))
        return tuple(out)

    @cached_property
    def pairs(self) -> Pairs:
        """Every node with parameters and every row that carries it."""
        return Pairs.of(self.tree)

    @cached_property
    def places(self) -> tuple[Places, Places]:
        """Wanted regressor entries: rows of (10 x pairs) and of (columns x dof), flattened."""
        place = {c: k for k, c in enumerate(self.columns)}
        inner, outer = [], []
        for p, (i, row) in enumerate(zip(self.pairs.owner, self.pairs.row, strict=True)):
            for k, c in enumerate(self.tree[i].columns):
                if c in place:
                    inner.append(k * len(self.pairs.row) + p)
                    outer.append(place[c] * self.robot.dof + row)
        return np.array(inner, dtype=np.intp), np.array(outer, dtype=np.intp)

    def forward(self, q: Array, dq: Array, ddq: Array, *, torque: bool = False) -> Sweep:
        """Regressor and, if wanted, the description's torques of a motion, (dof, N) arrays."""
        count = q.shape[1]
        links: list[Link] = []
        ground = np.zeros((6, 2, count))
        ground[3:, 1] = -self.robot.gravity[:, None]
        for node in self.tree:
            base = links[node.parent].vectors if node.parent >= 0 else ground
            row = node.rows[-1]
            links.append(Link.of(node, base, q[row], dq[row], ddq[row]))
        block = self.pairs.block(links)
        regressor = np.zeros((len(self.columns), self.robot.dof, count))
        inner, outer = self.places
        flat = self._own_columns(block).reshape(-1, count)
        regressor.reshape(-1, count)[outer] = flat[inner]
        torques = np.zeros((self.robot.dof, count))
        if torque:
            np.add.at(torques, self.pairs.row, np.einsum("kp,kpn->pn", self.inertials, block))
        sweep = Sweep(self, tuple(links), regressor, torques, dq, ddq)
        sweep.add_drives()
        return sweep

    def _own_columns(self, block: Array) -> Array:
        """Columns of balanced rotors, first in their pair's ten places."""
        for p, i in enumerate(self.pairs.owner):
            reduction = self.tree[i].reduction
            if reduction.shape != (10, 10):
                block = block.copy()
                block[: reduction.shape[1], p] = reduction.T @ block[:, p]
        return block


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

    def gathered(self, links: Sequence[Link]) -> tuple[Array, Array, Array]:
        """V and A per node (6, nodes, N) and the axes per pair (6, pairs, N)."""
        both = np.stack([link.vectors[:, :2] for link in links], axis=1)
        axes = np.concatenate([link.axes for link in links], axis=1)
        return both[:, :, 0], both[:, :, 1], axes

    def block(self, links: Sequence[Link]) -> Array:
        """Regressor entries of the ten parameters of every pair, shape (10, pairs, N)."""
        velocity, acceleration, axes = self.gathered(links)
        own = velocity[:, self.owner]
        return pair(axes, acceleration[:, self.owner]) - pair(motion_cross(own, axes), own)

    def pull(self, links: Sequence[Link], weights: Array) -> list[Array]:
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
class Link:
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
    def of(cls, node: Node, base: Array, q: Array, dq: Array, ddq: Array) -> Link:
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


@dataclass(frozen=True, eq=False)
class Sweep:
    """A motion's regressor, and what going back needs.

    Attributes
    ----------
    regressor : ndarray, shape (columns, dof, N)
    torques : ndarray, shape (dof, N)
        By the description's own parameters, when asked for [N m or N].
    """

    chain: Chain
    links: tuple[Link, ...]
    regressor: Array
    torques: Array
    dq: Array
    ddq: Array

    @cached_property
    def poses(self) -> list[tuple[Array, Array]]:
        """Rotation (3, 3, N) to and origin (3, N) in the base frame, per body."""
        out: list[tuple[Array, Array]] = []
        for link in self.links[: len(self.chain.robot.bodies)]:
            if link.node.parent < 0:
                out.append((np.ascontiguousarray(link.turn.swapaxes(0, 1)), link.place))
            else:
                turn, place = out[link.node.parent]
                out.append(
                    (
                        np.einsum("ijn,kjn->ikn", turn, link.turn),
                        place + np.einsum("ijn,jn->in", turn, link.place),
                    )
                )
        return out

    def backward(self, regressor_bar: Array, torque_bar: Array | None, out: Gradient) -> None:
        """Add to `out` what derivatives by `regressor` and `torques` mean for the motion."""
        self._pull_drives(regressor_bar, torque_bar, out)
        bars = self.chain.pairs.pull(self.links, self._weights(regressor_bar, torque_bar))
        for i in range(len(self.links) - 1, -1, -1):
            back = self.links[i].pull(bars[i], out)
            parent = self.links[i].node.parent
            if parent >= 0:
                bars[parent] += back

    def _weights(self, regressor_bar: Array, torque_bar: Array | None) -> Array:
        """Derivatives by the entries of every pair's ten parameters, shape (10, pairs, N)."""
        chain, count = self.chain, self.dq.shape[1]
        weights = np.zeros((10, len(chain.pairs.row), count))
        inner, outer = chain.places
        weights.reshape(-1, count)[inner] = regressor_bar.reshape(-1, count)[outer]
        for p, i in enumerate(chain.pairs.owner):
            reduction = chain.tree[i].reduction
            if reduction.shape != (10, 10):
                weights[:, p] = reduction @ weights[: reduction.shape[1], p]
        if torque_bar is not None:
            weights += chain.inertials[:, :, None] * torque_bar[chain.pairs.row]
        return weights

    def add_drives(self) -> None:
        """Drives' columns and torques: Ia c.ddq + fv v + fc sign(v) + fo along c."""
        for k, (coupling, places, values) in enumerate(self.chain.drives):
            signals = self._signals(k, coupling)
            for symbol, signal in signals.items():
                entries = np.outer(coupling, signal)
                if symbol in places:
                    self.regressor[places[symbol]] += entries
                self.torques[...] += values.get(symbol, 0.0) * entries

    def _signals(self, k: int, coupling: Array) -> dict[str, Array]:
        velocity = coupling @ self.dq
        width = self.chain.smoothing
        sign = np.sign(velocity) if width is None else np.tanh(velocity / width[k])
        return {"Ia": coupling @ self.ddq, "fv": velocity, "fc": sign, "fo": np.ones_like(velocity)}

    def _pull_drives(self, regressor_bar: Array, torque_bar: Array | None, out: Gradient) -> None:
        for k, (coupling, places, values) in enumerate(self.chain.drives):
            bar = {s: coupling @ regressor_bar[p] for s, p in places.items()}
            if torque_bar is not None:
                pushed = coupling @ torque_bar
                bar = {s: bar.get(s, 0.0) + v * pushed for s, v in values.items()}
            rate = bar.get("fv", np.zeros(self.dq.shape[1]))
            width = self.chain.smoothing
            if "fc" in bar and width is not None:
                sign = np.tanh(coupling @ self.dq / width[k])
                rate = rate + bar["fc"] * (1 - sign**2) / width[k]
            out.dq[...] += np.outer(coupling, rate)
            if "Ia" in bar:
                out.ddq[...] += np.outer(coupling, bar["Ia"])


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
