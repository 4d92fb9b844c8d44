"""The regressor Y(q, dq, ddq) with tau = Y delta, and inverse dynamics, for batches of samples.

Row r, column block of a node: with s = (s_w, s_v) the axis of row r and W the node's 6 x 10
wrench regressor (wrench = W delta, both at the node's origin), the entries are s' W. With omega,
alpha and the origin's acceleration a (gravity subtracted), Newton and Euler give

    force  = m a + S(alpha) l + S(omega)^2 l
    moment = L alpha + omega x L omega - S(a) l

which is linear in L, l and m (Atkeson, An and Hollerbach 1986, eq. (14)-(16)). Drives add
``c (Ia c.ddq + fv v + fc sign(v) + fo)``, v = c.dq, eq. (27) of Sousa and Cortesao (2014), with
tanh(v / transition) for sign(v) where a drive has a transition; see `feasid.dynamics.drives`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from feasid.arrays import Array
from feasid.dynamics.drives import drive_signal
from feasid.dynamics.kinematics import Node, State, nodes, propagate
from feasid.dynamics.newton_euler import load_torque, newton_euler
from feasid.dynamics.spatial import as_samples_last
from feasid.errors import InputError
from feasid.robot.description import Robot

CHUNK = 1700
"""Samples handled at a time (measured): fewer pay for more calls; with more, arrays of ten rows
pass 128 KB, from where the allocator maps fresh pages each time: 1.4 times as long."""


@dataclass(frozen=True, eq=False)
class RegressorPlan:
    """What every chunk needs and only the robot decides.

    Parameters
    ----------
    robot : Robot
    columns : sequence of int, optional
        Standard parameters wanted, increasing; default all.
    """

    robot: Robot
    columns: tuple[int, ...]

    @classmethod
    def of(cls, robot: Robot, columns: Sequence[int] | None = None) -> RegressorPlan:
        """Plan for these columns (default all), sorted and checked."""
        if columns is None:
            return cls(robot, tuple(range(robot.size)))
        wanted = sorted(int(c) for c in columns)
        if len(set(wanted)) < len(wanted) or not set(wanted) <= set(range(robot.size)):
            raise InputError(f"columns must be distinct and within 0..{robot.size - 1}")
        return cls(robot, tuple(wanted))

    @cached_property
    def tree(self) -> tuple[Node, ...]:
        """Bodies and rotors."""
        return nodes(self.robot)

    @cached_property
    def support(self) -> tuple[tuple[int, ...], ...]:
        """For each row the wanted columns that can be non-zero in it, increasing."""
        wanted = set(self.columns)
        touched: list[set[int]] = [set() for _ in range(self.robot.dof)]
        for node in self.tree:
            for r in node.rows:
                touched[r].update(wanted.intersection(node.columns))
        for k in range(len(self.robot.drives)):
            for r in np.flatnonzero(self.robot.coupling(k)).tolist():
                touched[r].update(wanted.intersection(self.robot.drive_columns(k).values()))
        return tuple(tuple(sorted(t)) for t in touched)

    @cached_property
    def _places(self) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """Per node: which of its columns are wanted, and (row, first place in the row's block)."""
        wanted = set(self.columns)
        out = []
        for node in self.tree:
            kept = [k for k, c in enumerate(node.columns) if c in wanted]
            first = node.columns[kept[0]] if kept else -1
            rows = [(r, self.support[r].index(first)) for r in node.rows] if kept else []
            out.append((kept, rows))
        return out

    def fill(self, q: Array, dq: Array, ddq: Array, blocks: Sequence[Array]) -> None:
        """Write each row's entries, ``blocks[r][k]`` for column ``support[r][k]``.

        Parameters
        ----------
        q, dq, ddq : ndarray, shape (dof, N)
        blocks : sequence of ndarray, shapes (at least len(support[r]), N)
            Overwritten.
        """
        work = np.empty((10, q.shape[1]))
        states = propagate(self.tree, self.robot.gravity, q, dq, ddq)
        for node, state, (kept, rows) in zip(self.tree, states, self._places, strict=True):
            if kept:
                wrench = Wrench.of(state, node, kept)
                for k, (r, first) in enumerate(rows):
                    wrench.project(state, k, blocks[r][first : first + len(kept)], work)
        load = self._load(q, dq, ddq)
        for k in range(len(self.robot.drives)):
            self._fill_drive(k, (q, dq, ddq), load, blocks)

    def _load(self, q: Array, dq: Array, ddq: Array) -> Array | None:
        """Torques of the load model, where a wanted column depends on them."""
        columns = (self.robot.drive_columns(k) for k in range(len(self.robot.drives)))
        if any(c.get("fl") in self._wanted for c in columns):
            return load_torque(self.robot, self.tree, q, dq, ddq)
        return None

    def _fill_drive(
        self, k: int, motion: tuple[Array, ...], load: Array | None, blocks: Sequence[Array]
    ) -> None:
        coupling = self.robot.coupling(k)
        used = np.flatnonzero(coupling)
        moving = tuple(coupling[used] @ x[used] for x in motion)
        own = None if load is None else load[used[0]]
        for symbol, column in self.robot.drive_columns(k).items():
            if column in self._wanted:
                signal = drive_signal(self.robot.drives[k], symbol, *moving, load=own)
                for r in used.tolist():
                    blocks[r][self.support[r].index(column)] = coupling[r] * signal

    @cached_property
    def _wanted(self) -> frozenset[int]:
        return frozenset(self.columns)


@dataclass(frozen=True, eq=False)
class Wrench:
    """A node's wrench per unit of each wanted parameter.

    ``angular`` (3, n_a, N) are the moments of its first n_a wanted parameters (those of L and l),
    ``linear`` (3, n_l, N) the forces of its last n_l (those of l and m).
    """

    angular: Array
    linear: Array

    @classmethod
    def of(cls, state: State, node: Node, kept: list[int]) -> Wrench:
        """Build for the node's wanted columns (positions among its own)."""
        if node.reduction.shape == (10, 10):
            moments = [k for k in kept if k < 9]
            forces = [k for k in kept if k >= 6]
            return cls(_moments(state, moments), _forces(state, forces))
        reduction = node.reduction[:, kept]
        moment, force = _moments(state, list(range(9))), _forces(state, list(range(6, 10)))
        return cls(
            np.einsum("iaN,ak->ikN", moment, reduction[:9]),
            np.einsum("iaN,ak->ikN", force, reduction[6:]),
        )

    def project(self, state: State, k: int, out: Array, work: Array) -> None:
        """``out = s' W`` for the node's k-th carrying row; out has a row per wanted column."""
        turn, shift = state.turns[:, k], state.shifts[:, k]
        n_a, n_l = self.angular.shape[1], self.linear.shape[1]
        overlap = n_a + n_l - out.shape[0]
        if n_a:
            np.einsum("kN,kcN->cN", turn, self.angular, out=out[:n_a])
        if n_l:
            force = np.einsum("kN,kcN->cN", shift, self.linear, out=work[:n_l])
            out[n_a - overlap : n_a] += force[:overlap]
            out[n_a:] = force[overlap:]


def _moments(state: State, kept: list[int]) -> Array:
    """d(moment)/d(parameter), shape (3, len(kept), N): columns of L alpha + w x L w - S(a) l."""
    (x, y, z), (a, b, c) = state.omega, state.alpha
    out = np.empty((3, len(kept), x.size))
    xy, xz, yz = x * y, x * z, y * z
    for k, parameter in enumerate(kept):
        o = out[:, k]
        if parameter == 0:  # Lxx
            o[0], o[1], o[2] = a, xz, -xy
        elif parameter == 1:  # Lxy
            np.subtract(b, xz, out=o[0])
            np.add(a, yz, out=o[1])
            o[2] = x * x - y * y
        elif parameter == 2:  # Lxz
            np.add(c, xy, out=o[0])
            o[1] = z * z - x * x
            np.subtract(a, yz, out=o[2])
        elif parameter == 3:  # Lyy
            o[0], o[1], o[2] = -yz, b, xy
        elif parameter == 4:  # Lyz
            o[0] = y * y - z * z
            np.subtract(c, xy, out=o[1])
            np.add(b, xz, out=o[2])
        elif parameter == 5:  # Lzz
            o[0], o[1], o[2] = yz, -xz, c
        else:  # lx, ly, lz: l x a
            i = parameter - 6
            o[i] = 0.0
            o[i - 2] = -state.acceleration[i - 1]
            o[i - 1] = state.acceleration[i - 2]
    return out


def _forces(state: State, kept: list[int]) -> Array:
    """d(force)/d(parameter), shape (3, len(kept), N): S(alpha) + S(omega)^2 for l, a for m."""
    (x, y, z), (a, b, c) = state.omega, state.alpha
    out = np.empty((3, len(kept), x.size))
    for k, parameter in enumerate(kept):
        o = out[:, k]
        if parameter == 6:
            o[0], o[1], o[2] = -(y * y + z * z), x * y + c, x * z - b
        elif parameter == 7:
            o[0], o[1], o[2] = x * y - c, -(x * x + z * z), y * z + a
        elif parameter == 8:
            o[0], o[1], o[2] = x * z + b, y * z - a, -(x * x + y * y)
        else:
            o[:] = state.acceleration
    return out


def regressor(
    robot: Robot,
    q: npt.ArrayLike,
    dq: npt.ArrayLike,
    ddq: npt.ArrayLike,
    *,
    columns: Sequence[int] | None = None,
) -> Array:
    """Regressor Y of the inverse dynamics, ``tau = Y @ delta``.

    Parameters
    ----------
    robot : Robot
    q, dq, ddq : array_like, shape (samples, dof) or (dof,)
        Joint positions, velocities and accelerations [rad or m, and per s, s^2]. For joints of
        several degrees of freedom see `feasid.robot.parts`.
    columns : sequence of int, optional
        Standard parameters wanted, e.g. ``base.independent``; default all.

    Returns
    -------
    ndarray, shape (samples, dof, len(columns))
        In the order of ``robot.names``; [N m or N per unit of the parameter].

    Raises
    ------
    InputError
        Names the array whose shape is wrong or that has an entry that is not finite.
    """
    plan = RegressorPlan.of(robot, columns)
    positions, velocities, accelerations = _inputs(robot, q, dq, ddq)
    count = positions.shape[1]
    out = np.zeros((count, robot.dof, len(plan.columns)))
    place = {c: k for k, c in enumerate(plan.columns)}
    where = [[place[c] for c in s] for s in plan.support]
    for a in range(0, count, CHUNK):
        part = slice(a, min(a + CHUNK, count))
        blocks = [np.empty((len(s), part.stop - a)) for s in plan.support]
        plan.fill(positions[:, part], velocities[:, part], accelerations[:, part], blocks)
        for r, block in enumerate(blocks):
            out[part, r, where[r]] = block.T
    return out


def inverse_dynamics(
    robot: Robot,
    q: npt.ArrayLike,
    dq: npt.ArrayLike,
    ddq: npt.ArrayLike,
    *,
    parameters: npt.ArrayLike | None = None,
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
        When a parameter is needed that neither the caller nor the description gives.
    """
    delta = _known(robot) if parameters is None else robot.check_parameters(parameters)
    positions, velocities, accelerations = _inputs(robot, q, dq, ddq)
    count = positions.shape[1]
    out = np.zeros((robot.dof, count))
    tree = nodes(robot)
    for a in range(0, count, CHUNK):
        part = slice(a, min(a + CHUNK, count))
        motion = positions[:, part], velocities[:, part], accelerations[:, part]
        newton_euler(tree, robot.gravity, motion, delta, out[:, part])
    load = None
    if robot.load_model is not None:
        load = load_torque(robot, tree, positions, velocities, accelerations)
    for k in range(len(robot.drives)):
        c = robot.coupling(k)
        moving = c @ positions, c @ velocities, c @ accelerations
        own = None if load is None else load[np.flatnonzero(c)[0]]
        for symbol, column in robot.drive_columns(k).items():
            signal = drive_signal(robot.drives[k], symbol, *moving, load=own)
            out += np.outer(c, delta[column] * signal)
    return np.ascontiguousarray(out.T)


def _known(robot: Robot) -> Array:
    missing = np.flatnonzero(np.isnan(robot.values))
    if missing.size:
        body, symbol = robot.parameter_names[int(missing[0])]
        raise InputError(
            f"the description of robot {robot.name!r} gives no value for {body}.{symbol} (and "
            f"{missing.size - 1} more); pass parameters=",
            body=body,
            symbol=symbol,
        )
    return robot.values


def _inputs(robot: Robot, *arrays: npt.ArrayLike) -> tuple[Array, Array, Array]:
    out: list[Array] = []
    for name, value in zip(("q", "dq", "ddq"), arrays, strict=True):
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name} must be numbers: {error}") from error
        array = np.atleast_2d(array)
        if array.ndim != 2 or array.shape[1] != robot.dof:
            raise InputError(f"{name} has shape {array.shape}, expected (samples, {robot.dof})")
        if out and array.shape != (out[0].shape[1], robot.dof):
            raise InputError(f"{name} has {array.shape[0]} samples, q has {out[0].shape[1]}")
        bad = np.argwhere(~np.isfinite(array))
        if bad.size:
            row, column = (int(b) for b in bad[0])
            raise InputError(f"{name}[{row}, {column}] is {array[row, column]}", row=row)
        out.append(as_samples_last(array))
    return out[0], out[1], out[2]
