"""Closed mechanisms: which joints are independent, and all others from them.

With q = A z + b after the couplings and the loops' conditions c(q) = 0, the columns of C A, C the
Jacobian of c, fall into those of independent coordinates s and of passive ones p. Positions of p
follow by Newton's method along the straight way from the assembled configuration, so that every
sample gets the same branch whatever its neighbours do; velocities and accelerations by C.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.errors import InputError, did_you_mean
from feasid.robot.loops import Conditions, Loop

if TYPE_CHECKING:
    from feasid.robot.description import Robot
    from feasid.robot.structure import Structure

Index = npt.NDArray[np.intp]

CONDITIONED = (0.1, 0.03, 0.01, 1e-3, 1e-4)
"""Share of the largest column that a passive coordinate's own must add: the first that goes."""

STRIDE = 0.1
"""Longest step of an independent coordinate between two solutions [rad or m]."""

NEWTON_STEPS = 25
"""Most iterations per step; two or three are usual."""

CLOSED = 1e-12
"""Distance [m or rad] at which a loop is closed, for mechanisms of a metre."""

ROUNDED = 1e-6
"""... that Newton's method must reach at least where numbers in a file are rounded."""

RANK_TOLERANCE = 1e-8
"""Singular values of the conditions below this, relative to the largest, are zero."""

SINGULAR = 1e-6
"""Below this a configuration is singular: passive velocities are not determined."""

WELL_APART = 1e-2
"""Configurations further from singular ones than this are used to judge what shows."""

LONGEST = 0.5
"""Longest Newton step [rad or m]."""

LEAP = 1.0
"""A passive joint that moves further [rad or m] in one stride has left its branch."""

NUDGE = 1e-2
"""How far [rad or m] independent joints are moved to see that they are."""


@dataclass(frozen=True, eq=False)
class Closure:
    """The split of a robot's coordinates, and the motion of all from the independent ones.

    Attributes
    ----------
    robot : Robot
        With loops.
    """

    robot: Structure

    @cached_property
    def conditions(self) -> Conditions:
        """The loops."""
        return Conditions(self.robot)

    @cached_property
    def assembled(self) -> Array:
        """A configuration of the tree in which the loops are closed, shape (axes,).

        Raises
        ------
        InputError
            When they cannot close there.
        """
        A, b = self.robot.coupled.A, self.robot.coupled.b
        start = np.zeros(self.robot.axes)
        for joint, value in (self.robot.configuration or {}).items():
            start[self.robot.rows[self.robot.joint_index(joint)].start] = value
        z = np.linalg.lstsq(A, start - b, rcond=None)[0]
        for _ in range(4 * NEWTON_STEPS):
            residual, jacobian = self.conditions.at((A @ z + b)[:, None])
            if np.abs(residual).max() <= CLOSED:
                break
            z = z - np.linalg.lstsq(jacobian[:, :, 0] @ A, residual[:, 0], rcond=1e-6)[0]
        left = float(np.abs(residual).max())
        if not left <= ROUNDED:
            raise InputError(
                f"the loops of robot {self.robot.name!r} do not close at the given configuration: "
                f"{self._worst(residual[:, 0])} stay {left:.3g} m (or rad) apart",
            )
        return np.asarray(A @ z + b)

    def _worst(self, residual: Array) -> str:
        sizes = [3 if loop.kind == "connect" else 6 for loop in self.robot.loops]
        parts = np.split(residual, np.cumsum(sizes)[:-1])
        worst = int(np.argmax([np.abs(p).max() for p in parts]))
        return f"the ends of loop {self.robot.loops[worst].name!r}"

    @cached_property
    def rank(self) -> int:
        """How many conditions are independent."""
        s = np.linalg.svd(self._home, compute_uv=False)
        return int((s > RANK_TOLERANCE * s.max(initial=0.0)).sum())

    @property
    def _home(self) -> Array:
        """C A at the assembled configuration."""
        jacobian = self.conditions.at(self.assembled[:, None])[1][:, :, 0]
        return np.asarray(jacobian @ self.robot.coupled.A)

    @cached_property
    def passive(self) -> Index:
        """Places among the z of coordinates that the loops determine, increasing.

        Taken greedily from the last in the order of preference: `Robot.active` first, then the
        order of the tree.
        """
        names = self._names
        wanted = [names.index(joint) for joint in self.robot.active if joint in names]
        order = [*wanted, *(k for k in range(len(names)) if k not in wanted)]
        for share in CONDITIONED:
            taken = self._taken(order[::-1], share)
            if len(taken) == self.rank:
                break
        else:
            raise InputError(
                f"the loops of robot {self.robot.name!r} are nearly singular at the configuration "
                "in which they are assembled: give another one"
            )
        return np.sort(np.array(taken, dtype=np.intp))

    def _taken(self, order: Sequence[int], share: float) -> list[int]:
        """Columns of C A that add at least this share of its size to those before them."""
        rest = self._home.copy()
        least = share * np.linalg.norm(rest, axis=0).max()
        taken: list[int] = []
        for k in order:
            size = float(np.linalg.norm(rest[:, k]))
            if len(taken) < self.rank and size > least:
                unit = rest[:, k] / size
                rest = rest - np.outer(unit, unit @ rest)
                taken.append(k)
        return taken

    @property
    def _names(self) -> list[str]:
        """Joint per entry of z."""
        robot = self.robot
        names = [b.joint for b in robot.bodies for _ in range(b.dof)]
        return [names[i] for i in robot.coupled.independent]

    @cached_property
    def active(self) -> Index:
        """Places among the z of the independent coordinates, increasing."""
        return np.setdiff1d(np.arange(len(self._names)), self.passive)

    @cached_property
    def follows(self) -> npt.NDArray[np.bool_]:
        """Whether an independent coordinate moves a passive one, (dof, passive).

        Loops that share a coordinate move together.
        """
        A, conditions = self.robot.coupled.A, self.conditions
        parts = []
        for loop in self.robot.loops:
            rows = [self.robot.rows[i].start for way in conditions.ways(loop) for i in way]
            parts.append(set(np.flatnonzero(A[rows].any(axis=0)).tolist()))
        whole: list[set[int]] = []
        for part in parts:
            apart = [w for w in whole if not w & part]
            whole = [*apart, part.union(*(w for w in whole if w & part))]
        return np.array(
            [[any(i in w and p in w for w in whole) for p in self.passive] for i in self.active]
        ).reshape(len(self.active), len(self.passive))

    # -- motion ------------------------------------------------------------------------------

    def positions(self, s: Array) -> Array:
        """All coordinates of the tree, (axes, N), from the independent ones, (dof, N).

        Raises
        ------
        InputError
            Names the sample at which a loop cannot close.
        """
        q, closed = self.followed(s)
        if not closed.all():
            sample = int(np.flatnonzero(~closed)[0])
            residual = self.conditions.at(q[:, [sample]])[0][:, 0]
            raise InputError(
                f"robot {self.robot.name!r} cannot take the position of sample {sample} from the "
                f"configuration in which it is assembled: {self._worst(residual)} stay apart",
                row=sample,
            )
        return q

    def followed(self, s: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
        """The same, and which samples closed all the way; others stay where they got stuck."""
        A, b = self.robot.coupled.A, self.robot.coupled.b
        moved = self.conditions.rows
        home = np.linalg.lstsq(A, self.assembled - b, rcond=None)[0]
        start = home[self.active][:, None]
        matters = [k for k, i in enumerate(self.active) if A[moved][:, i].any()]
        strides = np.ceil(np.abs(s - start)[matters].max(axis=0, initial=0.0) / STRIDE)
        strides = np.maximum(strides, 1.0)  # per sample: its way depends on no other's
        z = np.repeat(home[:, None], s.shape[1], axis=1)
        alive = np.ones(s.shape[1], dtype=bool)
        for k in range(1, int(strides.max(initial=0.0)) + 1):
            moving = alive & (strides >= k)
            part = z[:, moving]
            part[self.active] = start + (k / strides * (s - start))[:, moving]
            part, closed = self._newton(part)
            z[:, moving] = part
            alive[moving] = closed
        return np.asarray(A @ z + b[:, None]), alive

    def _newton(self, z: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Close the loops by the passive coordinates; which samples did."""
        A, b = self.robot.coupled.A, self.robot.coupled.b
        start = z[self.passive]
        for _ in range(NEWTON_STEPS):
            residual, jacobian = self.conditions.at(A @ z + b[:, None])
            closed = np.abs(residual).max(axis=0) <= self._floor
            if closed.all():
                break
            c = np.einsum("can,ap->ncp", jacobian, A[:, self.passive])
            step = _solved(c, residual.T).T
            far = np.abs(step).max(axis=0)
            z[self.passive] -= step * np.minimum(1.0, LONGEST / np.maximum(far, LONGEST))
        jumped = np.abs(z[self.passive] - start).max(axis=0, initial=0.0) > LEAP
        return z, closed & ~jumped

    @cached_property
    def _floor(self) -> float:
        """What a closed loop's residual may be: rounding, or what the file's rounding leaves."""
        residual, _ = self.conditions.at(self.assembled[:, None])
        return max(100 * CLOSED, 10 * float(np.abs(residual).max()))

    def regular(self, q: Array) -> npt.NDArray[np.bool_]:
        """Which configurations determine the passive velocities, (N,)."""
        jacobian = self.conditions.at(q)[1]
        c = np.einsum("can,az->ncz", jacobian, self.robot.coupled.A[:, self.passive])
        s = np.linalg.svd(c, compute_uv=False)
        return np.asarray(s[:, -1] >= WELL_APART * s[:, 0])

    def jacobian(self, q: Array) -> tuple[Array, Array]:
        """dq/ds, (axes, dof, N), and the passive columns of C A, (N, conditions, passive).

        Raises
        ------
        InputError
            Names the sample whose configuration is singular.
        """
        A = self.robot.coupled.A
        c = np.einsum("can,az->ncz", self.conditions.at(q)[1], A)
        passive = c[:, :, self.passive]
        s = np.linalg.svd(passive, compute_uv=False)
        weak = s[:, -1] < SINGULAR * s[:, 0]
        if weak.any():
            sample = int(np.flatnonzero(weak)[0])
            raise InputError(
                f"sample {sample} is a singular configuration of the loops of robot "
                f"{self.robot.name!r}: its passive joints can move by themselves",
                row=sample,
            )
        z = np.zeros((A.shape[1], len(self.active), q.shape[1]))
        z[self.active, np.arange(len(self.active))] = 1.0
        z[self.passive] = -np.moveaxis(_solved(passive, c[:, :, self.active]), 0, -1)
        return np.einsum("az,zsn->asn", A, z), passive

    def motion(self, s: Array, ds: Array, dds: Array) -> tuple[Array, Array, Array, Array]:
        """q, dq, ddq of all coordinates, (axes, N), and dq/ds, (axes, dof, N)."""
        A = self.robot.coupled.A
        q = self.positions(s)
        jacobian, passive = self.jacobian(q)
        dq = np.einsum("asn,sn->an", jacobian, ds)
        ddq = np.einsum("asn,sn->an", jacobian, dds)
        drift = self.conditions.drift(q, dq)
        ddq -= A[:, self.passive] @ _solved(passive, drift.T).T
        return q, dq, ddq, jacobian


def _solved(matrices: Array, right: Array) -> Array:
    """Least-squares solutions x of M x = b for stacks, (N, c, p) and (N, c) or (N, c, k)."""
    turned = np.swapaxes(matrices, 1, 2)
    columns = right[:, :, None] if right.ndim == 2 else right
    normal = turned @ matrices
    ridge = 1e-15 * np.trace(normal, axis1=1, axis2=2)[:, None, None] * np.eye(normal.shape[1])
    out = np.linalg.solve(normal + ridge, turned @ columns)
    out += np.linalg.solve(normal + ridge, turned @ (columns - matrices @ out))
    return np.asarray(out[:, :, 0] if right.ndim == 2 else out)


def with_loops(
    robot: Robot,
    loops: Sequence[Loop],
    active: Sequence[str] = (),
    configuration: Mapping[str, float] | None = None,
) -> Robot:
    """The robot with closed loops, checked; see `Robot.with_loops`."""
    for joint in (*active, *(configuration or {})):
        robot.joint_index(joint)
    closed = replace(
        robot, loops=tuple(loops), active=tuple(active), configuration=dict(configuration or {})
    )
    closure = closed.closure
    if closure is None:
        return closed
    chosen = {closure._names[k] for k in closure.active}
    missing = [joint for joint in active if joint not in chosen]
    if missing:
        hint = did_you_mean(missing[0], chosen)
        raise InputError(
            f"the loops of robot {robot.name!r} leave {len(closure.active)} independent joint(s): "
            f"with {', '.join(active)} asked for, {missing[0]!r} cannot be one{hint}",
            joint=missing[0],
        )
    nudged = closure.assembled[closed.independent][:, None] + NUDGE * np.array([[-1.0, 1.0]])
    try:
        closure.jacobian(closure.positions(nudged))
    except InputError as error:
        raise InputError(
            f"the loops of robot {robot.name!r} are singular at the configuration in which they "
            f"are assembled, give another one: {error}"
        ) from error
    return closed
