"""Small models per joint that tell right from wrong logs, and hypotheses that they compare.

Each joint's torque is explained by what its description, its velocity and its acceleration allow,

    tau_j = c_j tau_cad,j + Ia_j ddq_j + fv_j dq_j + fc_j sign(dq_j) + fo_j,   Ia, fv, fc, c >= 0,

with c_j pulled towards one and fo_j towards zero. Five numbers per joint cannot bend themselves
around a swapped column or a wrong sign as the many base parameters can. The description is taken
at its word for what it says of gravity and inertia; when it says nothing, the rigid-body part is
the joint's own base parameters, fitted freely.

`FreeModel` believes nothing of the description but its geometry. It is sharper: it tells a delay
of a few milliseconds and a torque that has nothing to do with the motion, but no wrong signs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import nnls

from feasid.core.arrays import Array
from feasid.diagnosis.findings import Finding
from feasid.dynamics.regressor import inverse_dynamics, regressor
from feasid.identifiability.base import base_parameters
from feasid.logs.motion import Motion, Rows
from feasid.robot.description import Robot

MAX_SAMPLES = 1200
"""Samples that the model looks at."""

PULL = 0.3
"""c_j = 0 or 2, or an offset as large as the torque, cost as much as this relative residual."""

FLOOR = 1e-3
"""Residuals below this are as good as zero."""

OFFSETS, CAD = (3, 4), 5
"""Places of the offsets and of the description's torque among a joint's columns."""

RANK = 1e-6
"""Singular values of a row of the regressor below this share of the largest count as zero."""

SMOOTH = 0.05
"""sign(dq) is smoothed below this share of the largest velocity: filtered reversals are soft."""


@dataclass(frozen=True, eq=False)
class ScreenSamples:
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

    def subsample(self, step: int) -> ScreenSamples:
        """Every `step`-th of these samples, without the torques at other lags."""
        rows = slice(None, None, step)
        parts = {k: getattr(self, k)[rows] for k in ("q", "dq", "ddq", "rows", "t")}
        tau = self.tau[self.reach : self.reach + 1, rows]
        return replace(self, **parts, tau=tau, reach=0, step=self.step * step)


def thin_samples(motion: Motion, reach: int) -> ScreenSamples | None:
    """At most MOST_SAMPLES samples of the runs that are long enough, or None."""
    runs = [r for r in motion.runs if len(r) > 2 * reach + 10]
    if not runs:
        runs, reach = list(motion.runs), 0
    total = sum(len(r) - 2 * reach for r in runs)
    if total < 20:
        return None
    step = max(1, total // MAX_SAMPLES)
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
    return ScreenSamples(
        **joined, tau=tau, rows=where[0], t=where[1], reach=reach, rate=runs[0].rate, step=step
    )


def rigid_robot(robot: Robot) -> Robot | None:
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
    samples : ScreenSamples
    cad : ndarray, shape (N, dof), optional
        The description's torques, when they are known already.
    """

    def __init__(self, robot: Robot, samples: ScreenSamples, cad: Array | None = None) -> None:
        self.robot, self.samples = robot, samples
        self.described = rigid_robot(robot)
        if cad is None and self.described is not None:
            cad = inverse_dynamics(self.described, samples.q, samples.dq, samples.ddq)
        self.cad = cad
        self.free = self._free_parts() if cad is None else None
        self.rows = [self._joint_model(j) for j in range(robot.dof)]

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

    def _joint_model(self, j: int) -> JointModel:
        """Columns ddq, dq, sign(dq), 1, -1 and the description's torque."""
        dq, ddq = self.samples.dq[:, j], self.samples.ddq[:, j]
        soft = np.tanh(dq / (SMOOTH * max(float(np.abs(dq).max()), 1e-9)))
        ones = np.ones(len(dq))
        cad = self.cad[:, j] if self.cad is not None else np.zeros(len(dq))
        columns = np.stack([ddq, dq, soft, ones, -ones, cad], axis=1)
        return JointModel(self.visible(j, columns))

    def own_terms_projector(self, j: int) -> Callable[[Array], Array]:
        """A function that removes from signals what joint j's own inertia and friction explain."""
        basis = np.linalg.qr(self.rows[j].columns[:, [0, 1, 2]])[0]
        return lambda x: np.asarray(x - basis @ (basis.T @ x))

    def explain(self, j: int, torque: Array, pull: bool = True) -> tuple[float, Array]:
        """Relative residual of a torque in joint j's model, and the six coefficients."""
        return self.rows[j].explain(self.visible(j, torque), pull)

    @cached_property
    def residuals(self) -> Array:
        """Relative residual of every joint, at least FLOOR, shape (dof,)."""
        tau = self.samples.torque
        found = [self.explain(j, tau[:, j])[0] for j in range(self.robot.dof)]
        return np.maximum(found, FLOOR)

    @cached_property
    def table(self) -> Array:
        """Relative residual of column k's torque in joint j's model, shape (dof, dof)."""
        tau, n = self.samples.torque, self.robot.dof
        found = [[self.explain(j, tau[:, k])[0] for k in range(n)] for j in range(n)]
        return np.maximum(found, FLOOR)

    def residuals_by_lag(self) -> Array:
        """Relative residual of every joint for every lag of its torque, shape (dof, lags)."""
        return np.array(
            [
                [self.explain(j, tau[:, j])[0] for tau in self.samples.tau]
                for j in range(len(self.rows))
            ]
        )

    def share(self, other: Screen | Array) -> float:
        """What is left of the product of all residuals in another screen."""
        after = other.residuals if isinstance(other, Screen) else np.maximum(other, FLOOR)
        return float(np.exp(np.log(after).sum() - np.log(self.residuals).sum()))

    def with_torques(self, change: Callable[[Array], Array]) -> Screen:
        """The screen with the torques (last axis: joints) changed; the model stays."""
        samples = replace(self.samples, tau=change(self.samples.tau))
        return Screen(self.robot, samples, self.cad)

    @cached_property
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

    def with_gravity(self, gravity: Array) -> Screen:
        """The screen under another gravity [m/s^2], in which the description is linear."""
        robot, unit = self.robot.with_gravity(gravity), self.gravity_torques
        if unit is None or self.cad is None:
            return Screen(robot, self.samples)
        return Screen(robot, self.samples, self.cad + unit @ (gravity - self.robot.gravity))

    def point_mass(self) -> Array:
        """Torques per unit of m, lx, ly, lz of the last body, shape (N, dof, 4)."""
        columns = [int(c) for c in self.robot.inertial_columns[-1][6:10]]
        s = self.samples
        found = np.asarray(regressor(self.robot, s.q, s.dq, s.ddq, columns=columns))
        return found[:, :, [3, 0, 1, 2]]


class JointModel:
    """Non-negative combinations of a joint's few columns, factored once.

    Parameters
    ----------
    columns : ndarray, shape (N, 6)
    """

    def __init__(self, columns: Array) -> None:
        self.columns = columns
        scale = np.linalg.norm(columns, axis=0)
        self.size = float(scale[CAD])
        self.scale = np.where(scale > 0, scale, 1.0)
        self.left, self.triangle = np.linalg.qr(columns / self.scale)

    def explain(self, torque: Array, pull: bool = True) -> tuple[float, Array]:
        """Relative residual of a torque, pulls included, and the coefficients."""
        size = float(np.linalg.norm(torque))
        if size == 0.0:
            return 1.0, np.zeros(self.columns.shape[1])
        right = self.left.T @ torque / size
        beyond = max(1.0 - float(right @ right), 0.0)
        rows, target = [self.triangle], [right]
        if pull:
            weight = PULL * min(self.size / size, 1.0)
            extra = np.zeros((3, len(self.scale)))
            extra[0, 3] = extra[1, 4] = PULL
            extra[2, CAD] = weight * size / self.scale[CAD]
            rows.append(extra)
            target.append(np.array([0.0, 0.0, weight]))
        solution, cost = nnls(np.vstack(rows), np.concatenate(target))
        return float(np.hypot(cost, np.sqrt(beyond))), solution * size / self.scale

    def without_columns(self, places: Sequence[int]) -> JointModel:
        """The model without some of its columns."""
        kept = self.columns.copy()
        kept[:, list(places)] = 0.0
        return JointModel(kept)

    def explain_variation(self, torque: Array) -> float:
        """The same for what varies: means are taken out, offsets explain nothing."""
        varying = self.columns - self.columns.mean(axis=0)
        varying[:, list(OFFSETS)] = 0.0
        return JointModel(varying).explain(torque - torque.mean())[0]


EXPLAINED = 0.6
"""A joint whose relative residual is below this is taken for understood."""

CLEARLY_EXPLAINED = 0.15
"""When all joints' residuals are below this, neither positions nor geometry are doubted."""

OBJECTION = 1.15
"""A change that concerns many joints must not raise the residual of any by more than this."""


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A change of the log or the description that would explain the torques better.

    Attributes
    ----------
    share : float
        What is left of the product of all joints' residuals.
    finding : Finding
    mended : callable
        The screen with the change made.
    unknowns : float
        How much was chosen to fit: a torque's sign or column 0, an angle 1, a direction 2.
    """

    share: float
    finding: Finding
    mended: Callable[[], Screen]
    unknowns: float = 0.0


SHARE_PER_UNKNOWN = 0.7
"""What an unknown more must leave of the residuals' product to be believed."""


def most_likely(candidates: Iterable[Hypothesis]) -> Hypothesis | None:
    """The one that explains most; of those that explain as much, the one that assumes least."""
    return min(candidates, key=lambda h: h.share / SHARE_PER_UNKNOWN**h.unknowns, default=None)


def all_explained(screen: Screen) -> bool:
    """Whether all torques are explained so well that nothing more is looked for."""
    return bool((screen.residuals < CLEARLY_EXPLAINED).all())


def contradicts(screen: Screen, after: Array) -> bool:
    """Whether a joint that is understood, before or after, loses by a change."""
    own = screen.residuals
    understood = np.minimum(own, after) < EXPLAINED
    return bool((after > OBJECTION * own)[understood].any())


COLUMN_FLOOR = 1e-9
"""Columns below this share of the largest are rounding."""

FOLDS = 4
"""Stretches of the log, each predicted from the others."""

RIDGE = 1e-3
"""Pull of the scaled coefficients to zero in held-out predictions, where folds see too little."""


class FreeModel:
    """Base parameters and joint terms of every joint by itself, on thinned samples.

    Parameters
    ----------
    robot : Robot
        With the joint terms that torques are explained by.
    samples : ScreenSamples
    """

    def __init__(self, robot: Robot, samples: ScreenSamples) -> None:
        self.robot, self.samples = robot, samples
        columns = [int(c) for c in base_parameters(robot).independent]
        rows = regressor(robot, samples.q, samples.dq, samples.ddq, columns=columns)
        self.columns = [_normalise_columns(rows[:, j]) for j in range(robot.dof)]
        self.bases = [_orthonormal_basis(c) for c in self.columns]

    def residuals_by_lag(self) -> Array:
        """Relative residual of every joint for every lag of its torque, shape (dof, lags)."""
        out = []
        for j, basis in enumerate(self.bases):
            tau = self.samples.tau[:, :, j].T
            size = np.einsum("ij,ij->j", tau, tau)
            seen = basis.T @ tau
            rest = np.maximum(size - np.einsum("ij,ij->j", seen, seen), 0.0)
            out.append(np.sqrt(rest / np.where(size > 0, size, 1.0)))
        return np.array(out)

    def held_out(self) -> Array:
        """Relative error of every joint's torque, each stretch predicted from the others."""
        torque = self.samples.torque.T
        return np.array([held_out(c, tau) for c, tau in zip(self.columns, torque, strict=True)])


def held_out(columns: Array, torque: Array) -> float:
    """Relative error of a torque, each stretch predicted from the others."""
    whole, right = columns.T @ columns, columns.T @ torque
    pull = RIDGE * np.eye(len(whole)) * max(float(np.trace(whole)) / len(whole), 1e-300)
    rest = 0.0
    for fold in np.array_split(np.arange(len(torque)), FOLDS):
        part = columns[fold]
        found = np.linalg.solve(whole - part.T @ part + pull, right - part.T @ torque[fold])
        rest += float(np.sum((torque[fold] - part @ found) ** 2))
    return float(np.sqrt(rest)) / max(float(np.linalg.norm(torque)), 1e-300)


def _normalise_columns(columns: Array) -> Array:
    """The columns that are not negligible, each divided by its norm."""
    size = np.linalg.norm(columns, axis=0)
    seen = size > COLUMN_FLOOR * max(float(size.max(initial=0.0)), 1e-300)
    return np.asarray(columns[:, seen] / size[seen])


def _orthonormal_basis(columns: Array) -> Array:
    left, singular, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, singular > RANK * singular.max(initial=0.0)])
