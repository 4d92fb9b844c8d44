"""Closed mechanisms: which joints are independent, and all others from them.

With q = A z + b after the couplings and the loops' conditions c(q) = 0, the columns of C A, C the
Jacobian of c, fall into those of independent coordinates s and of passive ones p. Positions of p
follow by Newton's method along the straight way from the assembled configuration, so that every
sample gets the same branch independently of its neighbours; velocities and accelerations by C.

A loop's condition depends on the joints between its two ends only. With both ends' poses seen from
the body where the two chains part, twists (angular, linear) about that body's origin give, for
every sample, the condition's residual, its Jacobian and what is left of its second derivative when
nothing accelerates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.errors import DescriptionError, InputError, did_you_mean
from feasid.robot.couplings import LOOP_KINDS, Loop
from feasid.robot.inertia import skew
from feasid.robot.tree import KinematicTree

Index = npt.NDArray[np.intp]

PASSIVE_COLUMN_SHARES = (0.1, 0.03, 0.01, 1e-3, 1e-4)
"""Thresholds, tried in this order, for what a passive coordinate's column must add to those taken
before, relative to the largest column. The first with which enough columns are found is used."""

MAX_STRIDE = 0.1
"""Largest step of an independent coordinate between two solutions [rad or m]."""

MAX_NEWTON_STEPS = 25
"""Iterations per stride; two or three are usual. Assembling may take four times as many."""

CLOSURE_TOLERANCE = 1e-12
"""Distance [m or rad] at which a loop is closed, for mechanisms of a metre."""

ROUNDED_CLOSURE_TOLERANCE = 1e-6
"""Distance [m or rad] that Newton's method must reach at least; numbers in files are rounded."""

RANK_TOLERANCE = 1e-8
"""Singular values of the conditions below this, relative to the largest, are zero."""

SINGULARITY_TOLERANCE = 1e-6
"""Ratio of the smallest to the largest singular value of the passive columns below which passive
velocities count as not determined."""

REGULARITY_MARGIN = 1e-2
"""The same ratio, above which configurations are used as samples for base parameters."""

MAX_NEWTON_STEP = 0.5
"""Largest change of a passive coordinate in one Newton step [rad or m]; longer steps are scaled."""

MAX_PASSIVE_STRIDE = 1.0
"""A passive coordinate that changes more [rad or m] in one stride has left its branch."""

PROBE_STEP = 1e-2
"""How far [rad or m] independent joints are moved, both ways, to check that they can move."""


@dataclass(frozen=True, eq=False)
class _LoopEnd:
    """One end of a loop as seen from where the ways part, for N samples.

    ``rotation`` (3, 3, N), ``point`` (3, N), ``twists`` (6, k, N) of the coordinates `rows`.
    """

    rotation: Array
    point: Array
    twists: Array
    rows: list[int]

    def jacobian(self, kind: str) -> Array:
        """Velocity of the point, and for a weld the angular velocity; shape (c, k, N)."""
        linear = self.twists[3:] + np.cross(self.twists[:3], self.point[:, None], axis=0)
        return linear if kind == "connect" else np.concatenate([linear, self.twists[:3]])

    def drift(self, kind: str, dq: Array) -> Array:
        """Acceleration when no joint accelerates, (c, N)."""
        twist = np.zeros((6, self.point.shape[1]))
        rate = np.zeros_like(twist)
        for k, row in enumerate(self.rows):
            own = self.twists[:, k] * dq[row]
            rate[:3] += np.cross(twist[:3], own[:3], axis=0)
            rate[3:] += np.cross(twist[:3], own[3:], axis=0) + np.cross(twist[3:], own[:3], axis=0)
            twist += own
        velocity = twist[3:] + np.cross(twist[:3], self.point, axis=0)
        linear = rate[3:] + np.cross(rate[:3], self.point, axis=0)
        linear += np.cross(twist[:3], velocity, axis=0)
        return linear if kind == "connect" else np.concatenate([linear, rate[:3]])


@dataclass(frozen=True, eq=False)
class LoopConditions:
    """All loops of a robot as functions of the tree's coordinates q, shape (axes, N)."""

    robot: KinematicTree

    def __post_init__(self) -> None:
        names = {b.name: i for i, b in enumerate(self.robot.bodies)}
        for loop in self.robot.loops:
            for end in (loop.first, loop.second):
                if end is not None and end not in names:
                    hint = did_you_mean(end, names)
                    raise DescriptionError(f"loop {loop.name!r}: there is no body {end!r}{hint}")
            for i in [i for way in self.chains(loop) for i in way]:
                if self.robot.bodies[i].dof > 1:
                    joint = self.robot.bodies[i].joint
                    raise DescriptionError(
                        f"loop {loop.name!r} goes through joint {joint!r}, which has several "
                        "degrees of freedom: describe it by joints of one degree of freedom",
                        joint=joint,
                    )

    def chains(self, loop: Loop) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Bodies from where the ways part to either end."""
        index = {b.name: i for i, b in enumerate(self.robot.bodies)}
        first, second = (
            () if end is None else self.robot.ancestors[index[end]]
            for end in (loop.first, loop.second)
        )
        shared = set(first) & set(second)
        return (
            tuple(i for i in first if i not in shared),
            tuple(i for i in second if i not in shared),
        )

    @property
    def count(self) -> int:
        """Number of scalar conditions."""
        return sum(LOOP_KINDS[loop.kind] for loop in self.robot.loops)

    @property
    def rows(self) -> Index:
        """Coordinates of the tree that any loop depends on."""
        bodies = {i for loop in self.robot.loops for way in self.chains(loop) for i in way}
        return np.array(sorted(self.robot.rows[i].start for i in bodies), dtype=np.intp)

    def at(self, q: Array) -> tuple[Array, Array]:
        """Residual (c, N) and Jacobian (c, axes, N)."""
        residual, jacobian = [], []
        for loop, first, second in self._ends(q):
            size = LOOP_KINDS[loop.kind]
            j = np.zeros((size, q.shape[0], q.shape[1]))
            for end, sign in ((first, 1.0), (second, -1.0)):
                j[:, end.rows] += sign * end.jacobian(loop.kind)
            jacobian.append(j)
            residual.append(first.point - second.point)
            if loop.kind == "weld":
                off = np.einsum("ikn,jkn->ijn", first.rotation, second.rotation)
                twice = [off[2, 1] - off[1, 2], off[0, 2] - off[2, 0], off[1, 0] - off[0, 1]]
                residual.append(0.5 * np.stack(twice))
        return np.concatenate(residual), np.concatenate(jacobian)

    def drift(self, q: Array, dq: Array) -> Array:
        """What is left of the conditions' second derivative without accelerations, (c, N)."""
        return np.concatenate(
            [a.drift(loop.kind, dq) - b.drift(loop.kind, dq) for loop, a, b in self._ends(q)]
        )

    def _ends(self, q: Array) -> list[tuple[Loop, _LoopEnd, _LoopEnd]]:
        out = []
        for loop in self.robot.loops:
            first, second = self.chains(loop)
            out.append(
                (
                    loop,
                    self._end(first, q, loop.first_rotation, loop.first_position, loop.first),
                    self._end(second, q, loop.second_rotation, loop.second_position, loop.second),
                )
            )
        return out

    def _end(
        self, way: Sequence[int], q: Array, turn: Array, place: Array, name: str | None
    ) -> _LoopEnd:
        count = q.shape[1]
        rotation = np.repeat(np.eye(3)[:, :, None], count, axis=2)
        position = np.zeros((3, count))
        twists, rows = np.zeros((6, len(way), count)), []
        for k, i in enumerate(way):
            body, row = self.robot.bodies[i], self.robot.rows[i].start
            position = position + np.einsum("ijn,j->in", rotation, body.position)
            rotation = np.einsum("ijn,jk->ikn", rotation, body.rotation)
            screw = body.motion[:, 0]
            angular = np.einsum("ijn,j->in", rotation, screw[:3])
            linear = np.einsum("ijn,j->in", rotation, screw[3:])
            twists[:3, k], twists[3:, k] = angular, linear + np.cross(position, angular, axis=0)
            rows.append(row)
            moved, shifted = _screw_motion(screw, q[row])
            position = position + np.einsum("ijn,jn->in", rotation, shifted)
            rotation = np.einsum("ijn,jkn->ikn", rotation, moved)
        point = position + np.einsum("ijn,j->in", rotation, place)
        return _LoopEnd(np.einsum("ijn,jk->ikn", rotation, turn), point, twists, rows)


def _screw_motion(screw: Array, q: Array) -> tuple[Array, Array]:
    """Rotation (3, 3, N) and displacement (3, N) along a screw by q, shape (N,)."""
    rate = float(np.linalg.norm(screw[:3]))
    eye = np.eye(3)[:, :, None]
    if rate == 0.0:
        return np.repeat(eye, len(q), axis=2), screw[3:, None] * q
    u, v = screw[:3] / rate, screw[3:] / rate
    angle = rate * q
    cross = skew(u)
    square = cross @ cross
    rotation = eye + np.sin(angle) * cross[:, :, None] + (1 - np.cos(angle)) * square[:, :, None]
    shift = np.outer(v, angle) + np.outer(cross @ v, 1 - np.cos(angle))
    return rotation, shift + np.outer(square @ v, angle - np.sin(angle))


@dataclass(frozen=True, eq=False)
class Closure:
    """The split of a robot's coordinates, and the motion of all from the independent ones.

    Attributes
    ----------
    robot : Robot
        With loops.
    """

    robot: KinematicTree

    @cached_property
    def conditions(self) -> LoopConditions:
        """The loops."""
        return LoopConditions(self.robot)

    @cached_property
    def closed_configuration(self) -> Array:
        """A configuration of the tree in which the loops are closed, shape (axes,).

        Raises
        ------
        InputError
            When they cannot close there.
        """
        A, b = self.robot.coupling_map.A, self.robot.coupling_map.b
        start = np.zeros(self.robot.axes)
        for joint, value in (self.robot.configuration or {}).items():
            start[self.robot.rows[self.robot.joint_index(joint)].start] = value
        z = np.linalg.lstsq(A, start - b, rcond=None)[0]
        for _ in range(4 * MAX_NEWTON_STEPS):
            residual, jacobian = self.conditions.at((A @ z + b)[:, None])
            if np.abs(residual).max() <= CLOSURE_TOLERANCE:
                break
            z = z - np.linalg.lstsq(jacobian[:, :, 0] @ A, residual[:, 0], rcond=1e-6)[0]
        left = float(np.abs(residual).max())
        if not left <= ROUNDED_CLOSURE_TOLERANCE:
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
        jacobian = self.conditions.at(self.closed_configuration[:, None])[1][:, :, 0]
        return np.asarray(jacobian @ self.robot.coupling_map.A)

    @cached_property
    def passive(self) -> Index:
        """Places among the z of coordinates that the loops determine, increasing.

        Taken greedily from the last in the order of preference: `Robot.active` first, then the
        order of the tree.
        """
        names = self.names
        wanted = [names.index(joint) for joint in self.robot.active if joint in names]
        order = [*wanted, *(k for k in range(len(names)) if k not in wanted)]
        for share in PASSIVE_COLUMN_SHARES:
            taken = self._choose_columns(order[::-1], share)
            if len(taken) == self.rank:
                break
        else:
            raise InputError(
                f"the loops of robot {self.robot.name!r} are nearly singular at the configuration "
                "in which they are assembled: give another one"
            )
        return np.sort(np.array(taken, dtype=np.intp))

    def _choose_columns(self, order: Sequence[int], share: float) -> list[int]:
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
    def names(self) -> list[str]:
        """Joint per entry of z."""
        robot = self.robot
        names = [b.joint for b in robot.bodies for _ in range(b.dof)]
        return [names[i] for i in robot.coupling_map.independent]

    @cached_property
    def active(self) -> Index:
        """Places among the z of the independent coordinates, increasing."""
        return np.setdiff1d(np.arange(len(self.names)), self.passive)

    @cached_property
    def depends_on(self) -> npt.NDArray[np.bool_]:
        """Whether an independent coordinate moves a passive one, (dof, passive).

        Loops that share a coordinate move together.
        """
        A, conditions = self.robot.coupling_map.A, self.conditions
        parts = []
        for loop in self.robot.loops:
            rows = [self.robot.rows[i].start for way in conditions.chains(loop) for i in way]
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
        q, closed = self.solve_by_continuation(s)
        if not closed.all():
            sample = int(np.flatnonzero(~closed)[0])
            residual = self.conditions.at(q[:, [sample]])[0][:, 0]
            raise InputError(
                f"robot {self.robot.name!r} cannot take the position of sample {sample} from the "
                f"configuration in which it is assembled: {self._worst(residual)} stay apart",
                row=sample,
            )
        return q

    def solve_by_continuation(self, s: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
        """`positions`, and at which samples all loops close; others stay where they got stuck."""
        A, b = self.robot.coupling_map.A, self.robot.coupling_map.b
        moved = self.conditions.rows
        home = np.linalg.lstsq(A, self.closed_configuration - b, rcond=None)[0]
        start = home[self.active][:, None]
        matters = [k for k, i in enumerate(self.active) if A[moved][:, i].any()]
        strides = np.ceil(np.abs(s - start)[matters].max(axis=0, initial=0.0) / MAX_STRIDE)
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
        A, b = self.robot.coupling_map.A, self.robot.coupling_map.b
        start = z[self.passive]
        for _ in range(MAX_NEWTON_STEPS):
            residual, jacobian = self.conditions.at(A @ z + b[:, None])
            closed = np.abs(residual).max(axis=0) <= self._floor
            if closed.all():
                break
            c = np.einsum("can,ap->ncp", jacobian, A[:, self.passive])
            step = _solve(c, residual.T).T
            far = np.abs(step).max(axis=0)
            z[self.passive] -= step * np.minimum(
                1.0, MAX_NEWTON_STEP / np.maximum(far, MAX_NEWTON_STEP)
            )
        jumped = np.abs(z[self.passive] - start).max(axis=0, initial=0.0) > MAX_PASSIVE_STRIDE
        return z, closed & ~jumped

    @cached_property
    def _floor(self) -> float:
        """What a closed loop's residual may be: rounding, or what the file's rounding leaves."""
        residual, _ = self.conditions.at(self.closed_configuration[:, None])
        return max(100 * CLOSURE_TOLERANCE, 10 * float(np.abs(residual).max()))

    def regular(self, q: Array) -> npt.NDArray[np.bool_]:
        """Which configurations determine the passive velocities, (N,)."""
        jacobian = self.conditions.at(q)[1]
        c = np.einsum("can,az->ncz", jacobian, self.robot.coupling_map.A[:, self.passive])
        s = np.linalg.svd(c, compute_uv=False)
        return np.asarray(s[:, -1] >= REGULARITY_MARGIN * s[:, 0])

    def jacobian(self, q: Array) -> tuple[Array, Array]:
        """dq/ds, (axes, dof, N), and the passive columns of C A, (N, conditions, passive).

        Raises
        ------
        InputError
            Names the sample whose configuration is singular.
        """
        A = self.robot.coupling_map.A
        c = np.einsum("can,az->ncz", self.conditions.at(q)[1], A)
        passive = c[:, :, self.passive]
        s = np.linalg.svd(passive, compute_uv=False)
        weak = s[:, -1] < SINGULARITY_TOLERANCE * s[:, 0]
        if weak.any():
            sample = int(np.flatnonzero(weak)[0])
            raise InputError(
                f"sample {sample} is a singular configuration of the loops of robot "
                f"{self.robot.name!r}: its passive joints can move by themselves",
                row=sample,
            )
        z = np.zeros((A.shape[1], len(self.active), q.shape[1]))
        z[self.active, np.arange(len(self.active))] = 1.0
        z[self.passive] = -np.moveaxis(_solve(passive, c[:, :, self.active]), 0, -1)
        return np.einsum("az,zsn->asn", A, z), passive

    def motion(self, s: Array, ds: Array, dds: Array) -> tuple[Array, Array, Array, Array]:
        """q, dq, ddq of all coordinates, (axes, N), and dq/ds, (axes, dof, N)."""
        A = self.robot.coupling_map.A
        q = self.positions(s)
        jacobian, passive = self.jacobian(q)
        dq = np.einsum("asn,sn->an", jacobian, ds)
        ddq = np.einsum("asn,sn->an", jacobian, dds)
        drift = self.conditions.drift(q, dq)
        ddq -= A[:, self.passive] @ _solve(passive, drift.T).T
        return q, dq, ddq, jacobian


def _solve(matrices: Array, right: Array) -> Array:
    """Least-squares solutions x of M x = b for stacks, (N, c, p) and (N, c) or (N, c, k)."""
    turned = np.swapaxes(matrices, 1, 2)
    columns = right[:, :, None] if right.ndim == 2 else right
    normal = turned @ matrices
    ridge = 1e-15 * np.trace(normal, axis1=1, axis2=2)[:, None, None] * np.eye(normal.shape[1])
    out = np.linalg.solve(normal + ridge, turned @ columns)
    out += np.linalg.solve(normal + ridge, turned @ (columns - matrices @ out))
    return np.asarray(out[:, :, 0] if right.ndim == 2 else out)
