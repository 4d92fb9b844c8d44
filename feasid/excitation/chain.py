"""The regressor of a motion and the way back: gradients of any function of it, in one sweep.

The row of a joint with axis S and the column of a body's parameter share ``S . F``, F the wrench
that the parameter needs (`feasid.excitation.wrenches`), where the joint carries the body. So a
sample's regressor is a product of two matrices, and so are the derivatives by both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feasid.core.arrays import Array
from feasid.dynamics.kinematics import Node, nodes
from feasid.errors import InputError, UnsupportedJointError
from feasid.excitation.drives import DriveColumns, DriveSignals
from feasid.excitation.links import Flow, Gradient, Links, Places
from feasid.excitation.wrenches import Wrenches
from feasid.robot.description import Robot


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
        loaded = [
            d.name for d in self.robot.drives if d.features or any(d.loaded(s) for s in d.symbols)
        ]
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
    def links(self) -> Links:
        """How they hang together."""
        return Links.of(self.tree)

    @cached_property
    def drives(self) -> DriveColumns:
        """Joint terms."""
        return DriveColumns.of(self.robot, self.columns, self.smoothing)

    @cached_property
    def inertials(self) -> Array:
        """The description's ten parameters of each node, unknown ones zero: (10, 1, n)."""
        known = np.nan_to_num(self.robot.values)
        tens = [node.reduction @ known[list(node.columns)] for node in self.tree]
        return np.array(tens).T[:, None]

    @cached_property
    def places(self) -> tuple[Places, Places, Places]:
        """Of the inertial columns that are wanted: node, number within the node, and place."""
        place = {c: k for k, c in enumerate(self.columns)}
        found = [
            (i, k, place[c])
            for i, node in enumerate(self.tree)
            for k, c in enumerate(node.columns)
            if c in place
        ]
        node, number, column = np.array(found, dtype=np.intp).reshape(-1, 3).T
        return node, number, column

    @cached_property
    def balanced(self) -> tuple[tuple[int, Array], ...]:
        """Nodes with fewer than ten parameters, and the ten by theirs (10, k)."""
        return tuple(
            (i, node.reduction)
            for i, node in enumerate(self.tree)
            if node.reduction.shape != (10, 10)
        )

    def forward(self, q: Array, dq: Array, ddq: Array, *, torque: bool = False) -> Sweep:
        """Regressor and, if wanted, the description's torques of a motion, (dof, N) arrays."""
        flow = self.links.moved(q, dq, ddq, self.robot.gravity)
        wrenches = Wrenches.of(flow) if torque or len(self.places[0]) else None
        forces = self._chosen(wrenches) if wrenches else np.zeros((q.shape[1], 6, 0))
        regressor = np.zeros((q.shape[1], self.robot.dof, len(self.columns)))
        if forces.size:
            carried = self.links.path[:, self.places[0]]
            block = ((flow.axes.transpose(1, 2, 0) @ forces) * carried).swapaxes(0, 1)
            regressor[:, :, self.places[2]] = self.links.by_joint(block).swapaxes(0, 1)
        loads = np.zeros((6, *flow.rate.shape))
        if torque:
            assert wrenches is not None
            loads = (wrenches.columns * self.inertials).sum(axis=1) @ self.links.path.T
        torques = flow.by_joint(loads)
        drives = self.drives.at(q, dq, ddq)
        drives.add(regressor, torques)
        return Sweep(self, flow, wrenches, forces, loads, drives, regressor, torques)

    def _chosen(self, wrenches: Wrenches) -> Array:
        """Wrenches of the wanted columns, shape (N, 6, wanted)."""
        columns = wrenches.columns
        node, number, _ = self.places
        if self.balanced:
            columns = columns.copy()
        for i, ten in self.balanced:
            columns[:, : ten.shape[1], :, i] = np.einsum("tk,ctn->ckn", ten, columns[..., i])
        by_sample = columns.transpose(2, 0, 1, 3).reshape(columns.shape[2], 6, -1)
        return np.ascontiguousarray(by_sample[:, :, number * columns.shape[3] + node])

    def spread(self, bar: Array) -> Array:
        """Derivatives by all columns (6, 10, N, n) from those by the wanted ones."""
        node, number, _ = self.places
        out = np.zeros((len(bar), 6, 10 * len(self.tree)))
        out[:, :, number * len(self.tree) + node] = bar
        columns = np.ascontiguousarray(
            out.reshape(len(bar), 6, 10, len(self.tree)).transpose(1, 2, 0, 3)
        )
        for i, ten in self.balanced:
            columns[..., i] = np.einsum("tk,ckn->ctn", ten, columns[:, : ten.shape[1], :, i])
        return columns


@dataclass(frozen=True, eq=False)
class Sweep:
    """A motion's regressor, and what going back needs.

    Attributes
    ----------
    regressor : ndarray, shape (N, dof, columns)
    torques : ndarray, shape (dof, N)
        By the description's own parameters, when asked for [N m or N].
    """

    chain: Chain
    flow: Flow
    wrenches: Wrenches | None
    forces: Array
    loads: Array
    drives: DriveSignals
    regressor: Array
    torques: Array

    def backward(self, regressor_bar: Array, torque_bar: Array | None, out: Gradient) -> None:
        """Add to `out` what derivatives by `regressor` and `torques` mean for the motion."""
        self.drives.pull(regressor_bar, torque_bar, out)
        if self.wrenches is None:
            return
        links, flow = self.chain.links, self.flow
        node, _, column = self.chain.places
        bar = regressor_bar[:, links.rows[:, None], column] * links.path[:, node]
        axes = (self.forces @ bar.swapaxes(1, 2)).transpose(1, 0, 2)
        columns = self.chain.spread(np.moveaxis(flow.axes, 0, 1) @ bar)
        if torque_bar is not None:
            pushed = torque_bar.T[:, links.rows]
            axes = axes + self.loads * pushed
            carried = (flow.axes * pushed) @ links.path
            columns += carried[:, None] * self.chain.inertials
        pose, velocity, acceleration = self.wrenches.pull(columns)
        found = flow.pull(pose, axes, velocity, acceleration)
        for total, part in zip(out.parts, found.parts, strict=True):
            total += part
