"""A small model per joint that tells right from wrong logs.

Each joint's torque is explained by what its description, its velocity and its acceleration allow,

    tau_j = c_j tau_cad,j + Ia_j ddq_j + fv_j dq_j + fc_j sign(dq_j) + fo_j,   Ia, fv, fc, c >= 0,

with c_j pulled towards one and fo_j towards zero. Five numbers per joint cannot bend themselves
around a swapped column or a wrong sign as the many base parameters can. The description is taken
at its word for what it says of gravity and inertia; when it says nothing, the rigid-body part is
the joint's own base parameters, fitted freely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from feasid.arrays import Array
from feasid.dynamics.regressor import inverse_dynamics, regressor
from feasid.logs.motion import Motion, Rows
from feasid.robot.description import Robot

MOST_SAMPLES = 1200
"""Samples that the model looks at."""

PULL = 0.3
"""c_j = 0 or 2, or an offset as large as the torque, cost as much as this relative residual."""

RANK = 1e-6
"""Singular values of a row of the regressor below this share of the largest count as zero."""

SMOOTH = 0.05
"""sign(dq) is smoothed below this share of the largest velocity: filtered reversals are soft."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Every `step`-th sample of all runs, with the torques around it.

    ``tau`` has shape (2 reach + 1, N, dof): the torques `lag` samples later are
    ``tau[reach + lag]``.
    """

    q: Array
    dq: Array
    ddq: Array
    tau: Array
    rows: Rows
    t: Array
    reach: int
    rate: float
    step: int

    @property
    def torque(self) -> Array:
        """Torques at the samples themselves, shape (N, dof)."""
        return np.asarray(self.tau[self.reach])


def thin(motion: Motion, reach: int) -> Samples | None:
    """At most MOST_SAMPLES samples of the runs that are long enough, or None."""
    runs = [r for r in motion.runs if len(r) > 2 * reach + 10]
    if not runs:
        runs, reach = list(motion.runs), 0
    total = sum(len(r) - 2 * reach for r in runs)
    if total < 20:
        return None
    step = max(1, total // MOST_SAMPLES)
    parts: dict[str, list[Array]] = {"q": [], "dq": [], "ddq": []}
    torques, rows, times = [], [], []
    for run in runs:
        at = np.arange(reach, len(run) - reach, step)
        for kind, values in parts.items():
            values.append(getattr(run, kind)[at])
        rows.append(run.rows[at])
        times.append(run.t[at])
        lags = np.arange(-reach, reach + 1)
        torques.append(run.tau[at[None, :] + lags[:, None]])
    joined = {kind: np.concatenate(values) for kind, values in parts.items()}
    tau = np.concatenate(torques, axis=1)
    where = np.concatenate(rows), np.concatenate(times)
    return Samples(
        **joined, tau=tau, rows=where[0], t=where[1], reach=reach, rate=runs[0].rate, step=step
    )


def rigid(robot: Robot) -> Robot | None:
    """The robot without joint terms, if its description has usable inertials."""
    bare = replace(robot, drives=())
    values = bare.values
    if np.isnan(values[bare.inertial_columns.ravel()]).any():
        return None
    mass = values[bare.inertial_columns[:, 9]]
    return bare if (mass >= 0).all() and mass.sum() > 0 else None


class Screen:
    """The model above for one set of samples.

    Parameters
    ----------
    robot : Robot
    samples : Samples
    """

    def __init__(self, robot: Robot, samples: Samples) -> None:
        self.robot, self.samples = robot, samples
        self.described = rigid(robot)
        self.cad = self._rigid_torques(samples.q, samples.dq, samples.ddq)
        self.free = self._free_parts() if self.cad is None else None
        self.features = [
            self.visible(j, self._features(self.cad, samples.dq, samples.ddq, j))
            for j in range(robot.dof)
        ]

    def _rigid_torques(self, q: Array, dq: Array, ddq: Array) -> Array | None:
        if self.described is None:
            return None
        return np.asarray(inverse_dynamics(self.described, q, dq, ddq))

    def _free_parts(self) -> list[Array]:
        """Per joint an orthonormal basis of all that its rigid bodies could explain."""
        s, bare = self.samples, replace(self.robot, drives=())
        rows = np.asarray(regressor(bare, s.q, s.dq, s.ddq))
        bases = []
        for j in range(self.robot.dof):
            columns = rows[:, j][:, np.any(rows[:, j] != 0, axis=0)]
            left, singular, _ = np.linalg.svd(columns, full_matrices=False)
            seen = singular > RANK * singular[0] if singular.size else singular > 0
            bases.append(left[:, seen])
        return bases

    def visible(self, j: int, signals: Array) -> Array:
        """What is left of signals when rigid bodies explain all they can, without a description."""
        if self.free is None:
            return signals
        return np.asarray(signals - self.free[j] @ (self.free[j].T @ signals))

    def _features(self, cad: Array | None, dq: Array, ddq: Array, j: int) -> Array:
        """Columns ddq, dq, sign(dq), 1, -1 and the description's torque, shape (N, 6)."""
        v = dq[:, j]
        soft = np.tanh(v / (SMOOTH * max(float(np.abs(v).max()), 1e-9)))
        ones = np.ones(len(v))
        columns = [ddq[:, j], v, soft, ones, -ones]
        columns.append(cad[:, j] if cad is not None else np.zeros(len(v)))
        return np.stack(columns, axis=1)

    def explain(self, j: int, torque: Array, pull: bool = True) -> tuple[float, Array]:
        """Relative residual of a torque in joint j's model, and the six coefficients."""
        return explain(self.features[j], self.visible(j, torque), pull)

    def residuals(self, torques: Array | None = None) -> Array:
        """Relative residual of every joint, shape (dof,)."""
        tau = self.samples.torque if torques is None else torques
        return np.array([self.explain(j, tau[:, j])[0] for j in range(self.robot.dof)])

    def table(self) -> Array:
        """Relative residual of column k's torque in joint j's model, shape (dof, dof)."""
        tau, n = self.samples.torque, self.robot.dof
        return np.array([[self.explain(j, tau[:, k])[0] for k in range(n)] for j in range(n)])

    def with_positions_swapped(self, i: int, j: int) -> Screen:
        """The model if the motions of joints i and j were exchanged."""
        order = np.arange(self.robot.dof)
        order[[i, j]] = order[[j, i]]
        s = self.samples
        return Screen(
            self.robot, replace(s, q=s.q[:, order], dq=s.dq[:, order], ddq=s.ddq[:, order])
        )

    def gravity_torques(self) -> Array | None:
        """The description's torque per unit of gravity along x, y, z, shape (N, dof, 3)."""
        if self.described is None:
            return None
        q, still = self.samples.q, np.zeros_like(self.samples.q)
        parts = [
            inverse_dynamics(self.described.with_gravity(axis), q, still, still)
            for axis in np.eye(3)
        ]
        return np.stack(parts, axis=2)

    def point_mass(self) -> Array:
        """Torques per unit of m, lx, ly, lz of the last body, shape (N, dof, 4)."""
        columns = [int(c) for c in self.robot.inertial_columns[-1][6:10]]
        s = self.samples
        found = np.asarray(regressor(self.robot, s.q, s.dq, s.ddq, columns=columns))
        return found[:, :, [3, 0, 1, 2]]


def explain(features: Array, torque: Array, pull: bool = True) -> tuple[float, Array]:
    """Non-negative least squares; relative residual with the pulls, and coefficients."""
    from scipy.optimize import nnls

    size = float(np.linalg.norm(torque))
    if size == 0.0:
        return 1.0, np.zeros(features.shape[1])
    scale = np.linalg.norm(features, axis=0)
    scale[scale == 0] = 1.0
    matrix, target = features / scale, torque / size
    reduced = np.asarray(np.linalg.qr(np.column_stack([matrix, target]), mode="r"))
    rows, right = [reduced[:, :-1]], [reduced[:, -1]]
    if pull:
        extra = np.zeros((3, features.shape[1]))
        extra[0, 3] = extra[1, 4] = PULL
        extra[2, 5] = PULL * min(scale[5] / size, 1.0) * size / scale[5]
        rows.append(extra)
        right.append(np.array([0.0, 0.0, PULL * min(scale[5] / size, 1.0)]))
    solution, cost = nnls(np.vstack(rows), np.concatenate(right))
    return float(cost), solution * size / scale


def explain_variation(features: Array, torque: Array) -> float:
    """The same for what varies: means are taken out, offsets explain nothing."""
    varying = features - features.mean(axis=0)
    varying[:, 3:5] = 0.0
    return explain(varying, torque - torque.mean())[0]


def lags(screen: Screen, joints: Sequence[int]) -> tuple[npt.NDArray[np.int64], Array]:
    """Residuals of these joints for every lag of the torques, shape (lags, joints)."""
    s = screen.samples
    shifts = np.arange(-s.reach, s.reach + 1)
    curves = [[screen.explain(j, s.tau[k + s.reach][:, j])[0] for j in joints] for k in shifts]
    return shifts.astype(np.int64), np.array(curves)
