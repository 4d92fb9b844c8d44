"""The regressor of a motion and the way back: gradients of any function of it, in one sweep.

With V and A the spatial velocity and acceleration of a node (gravity as an acceleration of the
ground) and s the axis of a joint row that carries it, all in the node's frame, row and node share

    s' (I(delta) A + V x* I(delta) V) = [pair(s, A) - pair(V x s, V)] . delta,

and every vector comes from the parent's by the same transform X(q), whose derivative is
``dX/dq = -(Phi x) X``. Reverse accumulation over this recursion turns the derivatives of a number
by the regressor's entries and by the torques into those by q, dq and ddq.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feasid.arrays import Array
from feasid.dynamics.kinematics import Node, nodes
from feasid.errors import InputError, UnsupportedJointError
from feasid.excitation.links import CapsuleLink, Gradient, Pairs, Places
from feasid.robot.description import Robot
from feasid.robot.parts import STRIBECK, Drive

TINY = 1e-150
"""Where the root of a speed is divided by."""


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
        Least width w [rad/s or m/s] of ``tanh(v / w)`` in place of Coulomb friction's sign(v), per
        drive; None for the drive's own, and the sign itself where it has none.
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
        if self.robot.couplings or self.robot.loops:
            raise UnsupportedJointError(
                f"robot {self.robot.name!r} has joints that follow others or closed loops: motions "
                "are designed for joints that move independently"
            )
        loaded = [d.name for d in self.robot.drives if "fl" in d.symbols or d.features]
        if loaded:
            raise InputError(
                f"drive {loaded[0]!r} has friction that grows with the load (fl) or features of "
                "the caller's own: design the motion without them"
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
        links: list[CapsuleLink] = []
        ground = np.zeros((6, 2, count))
        ground[3:, 1] = -self.robot.gravity[:, None]
        for node in self.tree:
            base = links[node.parent].vectors if node.parent >= 0 else ground
            row = node.rows[-1]
            links.append(CapsuleLink.of(node, base, q[row], dq[row], ddq[row]))
        block = self.pairs.block(links)
        regressor = np.zeros((len(self.columns), self.robot.dof, count))
        inner, outer = self.places
        flat = self._own_columns(block).reshape(-1, count)
        regressor.reshape(-1, count)[outer] = flat[inner]
        torques = np.zeros((self.robot.dof, count))
        if torque:
            np.add.at(torques, self.pairs.row, np.einsum("kp,kpn->pn", self.inertials, block))
        sweep = Sweep(self, tuple(links), regressor, torques, q, dq, ddq)
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
class Sweep:
    """A motion's regressor, and what going back needs.

    Attributes
    ----------
    regressor : ndarray, shape (columns, dof, N)
    torques : ndarray, shape (dof, N)
        By the description's own parameters, when asked for [N m or N].
    """

    chain: Chain
    links: tuple[CapsuleLink, ...]
    regressor: Array
    torques: Array
    q: Array
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
        """Drives' columns along c; see `_signals`."""
        for k, (coupling, places, values) in enumerate(self.chain.drives):
            for symbol, (signal, *_) in self._signals(k).items():
                entries = np.outer(coupling, signal)
                if symbol in places:
                    self.regressor[places[symbol]] += entries
                self.torques[...] += values.get(symbol, 0.0) * entries

    def _signals(self, k: int) -> dict[str, tuple[Array, Array, Array, Array]]:
        """What multiplies a drive's parameters, and its derivatives by c.q, c.dq and c.ddq."""
        drive, (coupling, _, _) = self.chain.robot.drives[k], self.chain.drives[k]
        velocity = coupling @ self.dq
        width = drive.transition
        if self.chain.smoothing is not None:
            width = max(width, float(self.chain.smoothing[k]))
        sign = np.tanh(velocity / width) if width else np.sign(velocity)
        steep = (1 - sign**2) / width if width else np.zeros_like(velocity)
        none, one = np.zeros_like(velocity), np.ones_like(velocity)
        root = np.sqrt(np.abs(velocity))
        flat = np.abs(sign) / (2 * np.maximum(root, TINY))
        signals = {
            "Ia": (coupling @ self.ddq, none, none, one),
            "fv": (velocity, none, one, none),
            "fc": (sign, none, steep, none),
            "fo": (one, none, none, none),
            "k": (coupling @ self.q - drive.rest, one, none, none),
            "fs": (sign * root, none, steep * root + flat, none),
            "fd": (np.abs(velocity), none, np.sign(velocity), none),
        }
        signals |= _further(drive, coupling @ self.q, velocity, sign, steep)
        return {symbol: signals[symbol] for symbol in drive.symbols}

    def _pull_drives(self, regressor_bar: Array, torque_bar: Array | None, out: Gradient) -> None:
        for k, (coupling, places, values) in enumerate(self.chain.drives):
            pushed = 0.0 if torque_bar is None else coupling @ torque_bar
            for symbol, (_, *slopes) in self._signals(k).items():
                bar = values.get(symbol, 0.0) * pushed
                if symbol in places:
                    bar = bar + coupling @ regressor_bar[places[symbol]]
                for part, slope in zip((out.q, out.dq, out.ddq), slopes, strict=True):
                    part += np.outer(coupling, bar * slope)


def _further(
    drive: Drive, position: Array, velocity: Array, sign: Array, steep: Array
) -> dict[str, tuple[Array, Array, Array, Array]]:
    """Signals and derivatives of springs, compensators and friction of breaking away."""
    none, x = np.zeros_like(velocity), position - drive.rest
    fading = np.exp(-((velocity / STRIBECK) ** 2))
    slope = fading * (steep - 2 * velocity / STRIBECK**2 * sign)
    sin, cos = np.sin(position), np.cos(position)
    return {
        "fb": (sign * fading, none, slope, none),
        "k2": (x**2, 2 * x, none, none),
        "k3": (x**3, 3 * x**2, none, none),
        "gs": (sin, cos, none, none),
        "gc": (cos, -sin, none, none),
    }
