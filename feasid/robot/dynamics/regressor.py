"""The regressor Y(q, dq, ddq) with tau = Y delta, and inverse dynamics, for batches of samples.

Row r, column block of a node: with s = (s_w, s_v) the axis of row r and W the node's 6 x 10
wrench regressor (wrench = W delta, both at the node's origin), the entries are s' W. With omega,
alpha and the origin's acceleration a (gravity subtracted), Newton and Euler give

    force  = m a + S(alpha) l + S(omega)^2 l
    moment = L alpha + omega x L omega - S(a) l

which is linear in L, l and m (Atkeson, An and Hollerbach 1986, eq. (14)-(16)). Drives add
``c (Ia c.ddq + fv v + fc sign(v) + fo)``, v = c.dq, eq. (27) of Sousa and Cortesao (2014), with
tanh(v / transition) for sign(v) where a drive has a transition; see `feasid.robot.joint_terms`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from feasid.core.arguments import Measured, checked
from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.robot.description import Robot
from feasid.robot.dynamics.kinematics import CoordinateMap, Node, coordinate_map, nodes, propagate
from feasid.robot.dynamics.newton_euler import WrenchRegressor, drive_factors, newton_euler
from feasid.robot.dynamics.spatial import CHUNK, as_samples_last
from feasid.robot.joint_terms import TERMS


@dataclass(frozen=True)
class RegressorPlan:
    """Constants of the robot that every chunk needs."""

    robot: Robot
    columns: tuple[int, ...]  #: Standard parameters wanted, increasing; default all.

    @classmethod
    def from_robot(cls, robot: Robot, columns: Sequence[int] | None = None) -> RegressorPlan:
        """Plan for these columns (default all), sorted and checked."""
        kind = cls if robot.is_tree else ProjectedPlan
        if columns is None:
            return kind(robot, tuple(range(robot.size)))
        indices = sorted(int(c) for c in columns)
        if len(set(indices)) < len(indices) or not set(indices) <= set(range(robot.size)):
            raise InputError(f"columns must be distinct and within 0..{robot.size - 1}")
        return kind(robot, tuple(indices))

    @cached_property
    def tree(self) -> tuple[Node, ...]:
        """Bodies and rotors."""
        return nodes(self.robot)

    @cached_property
    def nonzero_columns(self) -> tuple[tuple[int, ...], ...]:
        """For each row the wanted columns that can be non-zero in it, increasing."""
        columns_by_row: list[set[int]] = [set() for _ in range(self.robot.axes)]
        for node in self.tree:
            for r in node.rows:
                columns_by_row[r].update(node.columns)
        for k in range(len(self.robot.drives)):
            for r in np.flatnonzero(self.robot.coupling(k)).tolist():
                columns_by_row[r].update(self.robot.drive_columns(k).values())
        return tuple(tuple(sorted(self._column_set & columns)) for columns in columns_by_row)

    @cached_property
    def _node_columns_and_places(self) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """Per node: which of its columns are wanted, and (row, first place in the row's block)."""
        out = []
        for node in self.tree:
            numbers = [k for k, c in enumerate(node.columns) if c in self._column_set]
            rows = node.rows if numbers else ()
            places = [(r, self.nonzero_columns[r].index(node.columns[numbers[0]])) for r in rows]
            out.append((numbers, places))
        return out

    def fill(self, q: Array, dq: Array, ddq: Array, blocks: Sequence[Array]) -> None:
        """Write each row's entries, ``blocks[r][k]`` for column ``nonzero_columns[r][k]``.

        `q`, `dq`, `ddq` (dof, N); `blocks` (at least len(support[r]), N): overwritten.
        """
        self.fill_bodies(q, dq, ddq, blocks)
        self.fill_drives(q, dq, ddq, blocks)

    @cached_property
    def smooth_columns(self) -> tuple[tuple[int, ...], ...]:
        """Per row the places in its support that only bodies fill: they move as smoothly as q."""
        count = range(len(self.robot.drives))
        drives = {c for k in count for c in self.robot.drive_columns(k).values()}
        return tuple(
            tuple(k for k, c in enumerate(s) if c not in drives) for s in self.nonzero_columns
        )

    def fill_bodies(self, q: Array, dq: Array, ddq: Array, blocks: Sequence[Array]) -> None:
        """Write the entries `smooth_columns` only."""
        work = np.empty((10, q.shape[1]))
        states = propagate(self.tree, self.robot.gravity, q, dq, ddq)
        for node, state, (numbers, rows) in zip(
            self.tree, states, self._node_columns_and_places, strict=True
        ):
            if numbers:
                wrench = WrenchRegressor.from_state(state, node, numbers)
                for k, (r, first) in enumerate(rows):
                    wrench.project(state, k, blocks[r][first : first + len(numbers)], work)

    def fill_drives(self, q: Array, dq: Array, ddq: Array, blocks: Sequence[Array]) -> None:
        """Write the entries that are not smooth, such as those of Coulomb friction."""
        factors = drive_factors(self.robot, self.tree, (q, dq, ddq), self._column_set)
        for coupling, column, factor in factors:
            for r in np.flatnonzero(coupling).tolist():
                blocks[r][self.nonzero_columns[r].index(column)] = coupling[r] * factor

    @cached_property
    def _column_set(self) -> frozenset[int]:
        return frozenset(self.columns)


@dataclass(frozen=True)
class ProjectedPlan(RegressorPlan):
    """Plan where joints are coupled or in closed loops: rows per independent coordinate.

    With dq = J ds the torques of the independent coordinates are J' Y delta.
    """

    @cached_property
    def tree_plan(self) -> RegressorPlan:
        """The tree's own plan, with a row per joint coordinate."""
        return RegressorPlan(self.robot, self.columns)

    @cached_property
    def coordinate_map(self) -> CoordinateMap:
        """The joint coordinates that each independent coordinate moves."""
        return coordinate_map(self.robot)

    @cached_property
    def nonzero_columns(self) -> tuple[tuple[int, ...], ...]:
        """For each row the wanted columns that can be non-zero in it, increasing."""
        return tuple(
            tuple(sorted({c for r in rows for c in self.tree_plan.nonzero_columns[r]}))
            for rows in self.coordinate_map.rows
        )

    @cached_property
    def _joint_rows_and_columns(self) -> list[list[tuple[int, list[int]]]]:
        """Per row the joint rows it sums, and where each one's columns are in it."""
        out = []
        for rows, support in zip(self.coordinate_map.rows, self.nonzero_columns, strict=True):
            place = {c: k for k, c in enumerate(support)}
            out.append([(r, [place[c] for c in self.tree_plan.nonzero_columns[r]]) for r in rows])
        return out

    @cached_property
    def smooth_columns(self) -> tuple[tuple[int, ...], ...]:
        """No column: those of all joints depend on the slopes dq/ds of the loops."""
        return tuple(() for _ in self.nonzero_columns)

    def fill_bodies(self, q: Array, dq: Array, ddq: Array, blocks: Sequence[Array]) -> None:
        """There are no entries to fill."""

    def fill_drives(self, q: Array, dq: Array, ddq: Array, blocks: Sequence[Array]) -> None:
        """Write each row's entries, as `RegressorPlan.fill` does."""
        q, dq, ddq, jacobian = self.coordinate_map.motion(q, dq, ddq)
        parts = [np.empty((len(s), q.shape[1])) for s in self.tree_plan.nonzero_columns]
        self.tree_plan.fill(q, dq, ddq, parts)
        for k, (block, where) in enumerate(zip(blocks, self._joint_rows_and_columns, strict=True)):
            block[: len(self.nonzero_columns[k])] = 0.0
            for r, at in where:
                block[at] += jacobian[r, k] * parts[r]


@checked
def regressor(
    robot: Robot,
    q: npt.ArrayLike,
    dq: npt.ArrayLike,
    ddq: npt.ArrayLike,
    *,
    columns: Sequence[int] | None = None,
) -> Array:
    """Regressor Y of the inverse dynamics, ``tau = Y @ delta``, eq. (29) of Sousa and Cortesao.

    Parameters
    ----------
    robot : Robot
    q, dq, ddq : array_like, shape (samples, dof) or (dof,)
        Joint positions, velocities and accelerations [rad or m, and per s, s^2]. For joints of
        several degrees of freedom see `feasid.robot.bodies`.
    columns : sequence of int, optional
        Columns (standard parameters) to compute, e.g. ``base.independent``; default all.

    Returns
    -------
    ndarray, shape (samples, dof, len(columns))
        In the order of ``robot.names``; [N m or N per unit of the parameter].

    Raises
    ------
    InputError
        An array has a wrong shape or an entry that is not finite; the message names it.
    """
    plan = RegressorPlan.from_robot(robot, columns)
    positions, velocities, accelerations = _check_inputs(robot, q, dq, ddq)
    count = positions.shape[1]
    out = np.zeros((count, robot.dof, len(plan.columns)))
    place = {c: k for k, c in enumerate(plan.columns)}
    where = [[place[c] for c in s] for s in plan.nonzero_columns]
    for a in range(0, count, CHUNK):
        part = slice(a, min(a + CHUNK, count))
        blocks = [np.empty((len(s), part.stop - a)) for s in plan.nonzero_columns]
        plan.fill(positions[:, part], velocities[:, part], accelerations[:, part], blocks)
        for r, block in enumerate(blocks):
            out[part, r, where[r]] = block.T
    return out


@checked
def inverse_dynamics(
    robot: Robot,
    q: npt.ArrayLike,
    dq: npt.ArrayLike,
    ddq: npt.ArrayLike,
    *,
    parameters: Measured | None = None,
) -> Array:
    """Joint torques for a motion, by the recursive Newton-Euler algorithm.

    Parameters
    ----------
    robot : Robot
    q, dq, ddq : array_like, shape (samples, dof) or (dof,)
        As for `regressor`.
    parameters : array_like, shape (n,), optional
        Standard parameters; default the robot's own (``robot.values``).

    Returns
    -------
    ndarray, shape (samples, dof)
        [N m or N]

    Raises
    ------
    InputError
        A parameter is needed that neither the caller nor the description gives.
    """
    if parameters is None:
        parameters = require_values(robot, "pass parameters=, or robot.with_values(...)")
    delta = robot.check_parameters(parameters)
    positions, velocities, accelerations = _check_inputs(robot, q, dq, ddq)
    jacobian: Array | None = None
    if not robot.is_tree:
        positions, velocities, accelerations, jacobian = coordinate_map(robot).motion(
            positions, velocities, accelerations
        )
    count = positions.shape[1]
    out = np.zeros((robot.axes, count))
    tree = nodes(robot)
    heavy = delta[[c for node in tree for c in node.columns]].any()  # not joint terms alone
    for a in range(0, count if heavy else 0, CHUNK):
        part = slice(a, min(a + CHUNK, count))
        chunk = positions[:, part], velocities[:, part], accelerations[:, part]
        newton_euler(tree, robot.gravity, chunk, delta, out[:, part])
    motion = positions, velocities, accelerations
    for coupling, column, factor in drive_factors(robot, tree, motion, delta.nonzero()[0].tolist()):
        out += np.outer(coupling, delta[column] * factor)
    if jacobian is not None:
        out = np.einsum("ad...,a...->d...", jacobian, out)
    return np.ascontiguousarray(out.T)


def inertial_torques(robot: Robot, q: Array, ddq: Array) -> Array:
    """Torques (N, dof) of accelerations from rest, without weight: M ddq, with drive inertia."""
    parameters = robot.values.copy()
    for k in range(len(robot.drives)):
        for symbol, column in robot.drive_columns(k).items():
            parameters[column] *= symbol in TERMS and TERMS[symbol].varies_with == "ddq"
    still, weightless = np.zeros_like(q), robot.with_gravity((0.0, 0.0, 0.0))
    return np.asarray(inverse_dynamics(weightless, q, still, ddq, parameters=parameters))


def mass_matrix(robot: Robot, delta: Array, q: Array) -> Array:
    """Mass matrix at postures, drive inertia included, by inverse dynamics.

    `delta` (n,): standard parameters; `q` (..., dof). Returns (..., dof, dof): [kg m^2 or kg].
    """
    # Without acceleration, and with that of each coordinate.
    still, push = np.broadcast_arrays(q[..., None, :], np.eye(robot.dof + 1, robot.dof, -1))
    motion = (x.reshape(-1, robot.dof) for x in (still, 0 * still, push))
    tau = inverse_dynamics(robot, *motion, parameters=delta).reshape(push.shape)
    return np.asarray(np.swapaxes(tau[..., 1:, :] - tau[..., :1, :], -1, -2))


def require_values(robot: Robot, remedy: str) -> Array:
    """Return ``robot.values``; `InputError`, which ends with `remedy`, when some are not given."""
    missing = np.flatnonzero(np.isnan(robot.values))
    if missing.size:
        body, symbol = robot.parameter_names[int(missing[0])]
        more = f" and {missing.size - 1} more" if missing.size > 1 else ""
        text = f"the description of robot {robot.name!r} gives no value for {body}.{symbol}{more}"
        raise InputError(f"{text}: {remedy}", body=body, symbol=symbol)
    return robot.values


def _check_inputs(robot: Robot, *arrays: npt.ArrayLike) -> tuple[Array, Array, Array]:
    out: list[Array] = []
    for name, value in zip(("q", "dq", "ddq"), arrays, strict=True):
        array = np.atleast_2d(np.asarray(value, dtype=np.float64))
        if array.ndim != 2 or array.shape[1] != robot.dof:
            raise InputError(f"{name} has shape {array.shape}, expected (samples, {robot.dof})")
        if out and array.shape != (out[0].shape[1], robot.dof):
            raise InputError(f"{name} has {array.shape[0]} samples, q has {out[0].shape[1]}")
        out.append(as_samples_last(array))
    return out[0], out[1], out[2]
