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
from feasid.robot.parts import STRIBECK

TINY = 1e-150
"""Where the root of a speed is divided by."""


@dataclass(frozen=True, eq=False)
class DriveTerms:
    """One symbol of all drives that have it.

    Attributes
    ----------
    symbol : str
    owners : ndarray of int
        The drives.
    values : ndarray, shape (owners, 1)
        The description's; zero where it does not say.
    wanted, places : ndarray of int
        Those drives whose column is wanted, and where it stands.
    """

    symbol: str
    owners: Places
    values: Array
    wanted: Places
    places: Places


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
    def coupling(self) -> Array:
        """Joint velocities to the drives', shape (drives, dof)."""
        rows = [self.robot.coupling(k) for k in range(len(self.robot.drives))]
        return np.array(rows).reshape(-1, self.robot.dof)

    @cached_property
    def widths(self) -> Array:
        """Over which velocity each drive's sign changes, shape (drives, 1); 0 for the sign."""
        own = np.array([drive.transition for drive in self.robot.drives])
        return (own if self.smoothing is None else np.maximum(own, self.smoothing))[:, None]

    @cached_property
    def rests(self) -> Array:
        """Where each drive's spring is slack, shape (drives, 1)."""
        return np.array([[drive.rest] for drive in self.robot.drives])

    @cached_property
    def terms(self) -> tuple[DriveTerms, ...]:
        """Joint terms, symbol by symbol."""
        place = {c: k for k, c in enumerate(self.columns)}
        known = np.nan_to_num(self.robot.values)
        owners: dict[str, list[tuple[int, int]]] = {}
        for k in range(len(self.robot.drives)):
            for symbol, column in self.robot.drive_columns(k).items():
                owners.setdefault(symbol, []).append((k, column))
        return tuple(
            DriveTerms(
                symbol,
                np.array([k for k, _ in own]),
                known[[c for _, c in own]][:, None],
                np.array([k for k, c in own if c in place], dtype=np.intp),
                np.array([place[c] for _, c in own if c in place], dtype=np.intp),
            )
            for symbol, own in owners.items()
        )

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
        coupling = self.chain.coupling
        for terms in self.chain.terms:
            signal, *_ = self._signals(terms.symbol)
            along = coupling[terms.wanted][:, :, None]
            self.regressor[terms.places] += along * signal[terms.wanted][:, None]
            self.torques[...] += coupling[terms.owners].T @ (terms.values * signal[terms.owners])

    @cached_property
    def _velocities(self) -> Array:
        """c.dq of every drive, shape (drives, N)."""
        return np.asarray(self.chain.coupling @ self.dq)

    @cached_property
    def _signs(self) -> tuple[Array, Array]:
        """The smoothed signs of the drives' velocities, and their slopes."""
        velocity, widths = self._velocities, self.chain.widths
        smooth = widths > 0
        width = np.where(smooth, widths, 1.0)
        sign = np.where(smooth, np.tanh(velocity / width), np.sign(velocity))
        return sign, np.where(smooth, (1 - sign**2) / width, 0.0)

    def _signals(self, symbol: str) -> tuple[Array, Array, Array, Array]:
        """What multiplies a parameter of every drive, and its derivatives by c.q, c.dq and c.ddq;
        each (drives, N).
        """
        coupling, velocity = self.chain.coupling, self._velocities
        none, one = np.zeros_like(velocity), np.ones_like(velocity)
        if symbol == "Ia":
            return coupling @ self.ddq, none, none, one
        if symbol == "fv":
            return velocity, none, one, none
        if symbol == "fo":
            return one, none, none, none
        sign, steep = self._signs
        if symbol == "fc":
            return sign, none, steep, none
        if symbol == "fs":
            root = np.sqrt(np.abs(velocity))
            flat = np.abs(sign) / (2 * np.maximum(root, TINY))
            return sign * root, none, steep * root + flat, none
        if symbol == "fd":
            return np.abs(velocity), none, np.sign(velocity), none
        if symbol == "fb":
            fading = np.exp(-((velocity / STRIBECK) ** 2))
            slope = fading * (steep - 2 * velocity / STRIBECK**2 * sign)
            return sign * fading, none, slope, none
        return *_of_place(symbol, coupling @ self.q, self.chain.rests), none, none

    def _pull_drives(self, regressor_bar: Array, torque_bar: Array | None, out: Gradient) -> None:
        coupling = self.chain.coupling
        for terms in self.chain.terms:
            _, *slopes = self._signals(terms.symbol)
            bar = np.zeros_like(self._velocities)
            if torque_bar is not None:
                bar[terms.owners] = terms.values * (coupling[terms.owners] @ torque_bar)
            along = coupling[terms.wanted][:, :, None]
            bar[terms.wanted] += (along * regressor_bar[terms.places]).sum(axis=1)
            for part, slope in zip((out.q, out.dq, out.ddq), slopes, strict=True):
                part += coupling.T @ (bar * slope)


def _of_place(symbol: str, place: Array, rests: Array) -> tuple[Array, Array]:
    """Signals of springs and compensators, and their derivatives by the place."""
    x, one = place - rests, np.ones_like(place)
    sin, cos = np.sin(place), np.cos(place)
    return {
        "k": (x, one),
        "k2": (x**2, 2 * x),
        "k3": (x**3, 3 * x**2),
        "gs": (sin, cos),
        "gc": (cos, -sin),
    }[symbol]
