"""Closed mechanisms: which joints are independent, and all others from them.

With q = A z + b after the couplings and the loops' conditions c(q) = 0, the columns of C A, C the
Jacobian of c, fall into those of independent coordinates s and of passive ones p. Positions of p
follow by Newton's method along the straight way from the assembled configuration, so that every
sample gets the same branch independently of its neighbours; velocities and accelerations by C.

A loop's condition depends on the joints between its two ends only. With both ends' poses seen from
the body where the two chains part, twists (angular, linear) about that body's origin give, for
every sample, the condition's residual, its Jacobian and its second derivative without
accelerations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.core.errors import DescriptionError, InputError, did_you_mean
from feasid.robot.couplings import LOOP_KINDS, Index, Loop
from feasid.robot.rotations import exponentials
from feasid.robot.tree import KinematicTree

PASSIVE_COLUMN_SHARES = (0.1, 0.03, 0.01, 1e-3, 1e-4)
"""Thresholds, tried in this order, for what a passive coordinate's column must add to those taken
before, relative to the largest column. The first with which enough columns are found is used."""

MAX_STRIDE = 0.2
"""Largest step of an independent coordinate between two solutions [rad or m]; `MAX_CHANGE` halves
it where needed."""

MIN_STRIDE = 1e-3
"""Steps [rad or m] shorter than this are not tried: a singular configuration is that near."""

MAX_CHANGE = 0.7
"""Largest change of the passive columns in one step, relative to themselves (the Frobenius norm of
C^+ dC): below 1 no singular configuration lies between, so that no branch is left unnoticed."""

LEAP = 0.05  #: How far beyond a singular configuration [rad or m] a loop is tried to be closed.

MAX_NEWTON_STEPS = 25
"""Iterations per stride; two or three are usual. Assembling may take four times as many."""

CLOSURE_TOLERANCE = 1e-12
"""Distance [m or rad] up to which a loop counts as closed, for a mechanism of 1 m."""

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

MAX_CORRECTION = 0.3
"""A passive coordinate that Newton's method moves further [rad or m] from where the tangent led may
have left its branch; the step is halved."""

PROBE_STEPS = (1e-2, 1e-3, 1e-4)
"""How far [rad or m] independent joints are moved, both ways, to check that they can move; shorter
where a singular configuration is near."""


@dataclass(frozen=True, eq=False)
class _LoopEnd:
    """One end of a loop as seen from where the ways part, for N samples.

    ``rotation`` (3, 3, N), ``point`` (3, N), ``twists`` (6, k, N) of `affected_coordinates`.
    """

    rotation: Array
    point: Array
    twists: Array
    rows: list[int]

    def jacobian(self, kind: str) -> Array:
        """Velocity of the point, and for a weld the angular velocity; shape (c, k, N)."""
        linear = self.twists[3:] + _cross(self.twists[:3], self.point[:, None])
        return linear if kind == "connect" else np.concatenate([linear, self.twists[:3]])

    def drift(self, kind: str, dq: Array) -> Array:
        """Acceleration when no joint accelerates, (c, N)."""
        twist = np.zeros((6, self.point.shape[1]))
        rate = np.zeros_like(twist)
        for k, row in enumerate(self.rows):
            joint_twist = self.twists[:, k] * dq[row]
            rate[:3] += _cross(twist[:3], joint_twist[:3])
            rate[3:] += _cross(twist[:3], joint_twist[3:]) + _cross(twist[3:], joint_twist[:3])
            twist += joint_twist
        velocity = twist[3:] + _cross(twist[:3], self.point)
        linear = rate[3:] + _cross(rate[:3], self.point)
        linear += _cross(twist[:3], velocity)
        return linear if kind == "connect" else np.concatenate([linear, rate[:3]])


@dataclass(frozen=True, eq=False)
class LoopConditions:
    """All loops of a robot as functions of the tree's coordinates q, shape (axes, N)."""

    robot: KinematicTree

    def __post_init__(self) -> None:
        for loop in self.robot.loops:
            for end in (loop.first, loop.second):
                if end is not None and end not in self._body_indices:
                    hint = did_you_mean(end, self._body_indices)
                    raise DescriptionError(f"loop {loop.name!r}: there is no body {end!r}{hint}")
            for i in [i for way in self.loop_chains(loop) for i in way]:
                if self.robot.bodies[i].dof > 1:
                    joint = self.robot.bodies[i].joint
                    raise DescriptionError(
                        f"loop {loop.name!r} goes through joint {joint!r}, which has several "
                        "degrees of freedom: describe it by joints of one degree of freedom",
                        joint=joint,
                    )

    @cached_property
    def _body_indices(self) -> dict[str, int]:
        return {b.name: i for i, b in enumerate(self.robot.bodies)}

    def loop_chains(self, loop: Loop) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Bodies from where the ways part to either end."""
        first, second = (
            () if end is None else self.robot.ancestors[self._body_indices[end]]
            for end in (loop.first, loop.second)
        )
        common_ancestors = set(first) & set(second)
        return (
            tuple(i for i in first if i not in common_ancestors),
            tuple(i for i in second if i not in common_ancestors),
        )

    @property
    def count(self) -> int:
        """Number of scalar conditions."""
        return sum(LOOP_KINDS[loop.kind] for loop in self.robot.loops)

    @property
    def affected_coordinates(self) -> Index:
        """Coordinates of the tree that any loop depends on."""
        bodies = {i for loop in self.robot.loops for way in self.loop_chains(loop) for i in way}
        return np.array(sorted(self.robot.rows[i].start for i in bodies), dtype=np.intp)

    def residual_and_jacobian(self, q: Array) -> tuple[Array, Array]:
        """Residual (c, N) and Jacobian (c, axes, N)."""
        residual, jacobian = [], []
        for loop, first, second in self._loop_ends(q):
            j = np.zeros((LOOP_KINDS[loop.kind], q.shape[0], q.shape[1]))
            for end, sign in ((first, 1.0), (second, -1.0)):
                j[:, end.rows] += sign * end.jacobian(loop.kind)
            jacobian.append(j)
            residual.append(first.point - second.point)
            if loop.kind == "weld":
                # Near a closed loop the vector of this rotation is the angle between the frames.
                off = np.einsum("ikn,jkn->ijn", first.rotation, second.rotation)
                twice = [off[2, 1] - off[1, 2], off[0, 2] - off[2, 0], off[1, 0] - off[0, 1]]
                residual.append(0.5 * np.stack(twice))
        return np.concatenate(residual), np.concatenate(jacobian)

    def drift(self, q: Array, dq: Array) -> Array:
        """Second derivative of the conditions without accelerations, (c, N)."""
        return np.concatenate(
            [a.drift(loop.kind, dq) - b.drift(loop.kind, dq) for loop, a, b in self._loop_ends(q)]
        )

    def _loop_ends(self, q: Array) -> Iterator[tuple[Loop, _LoopEnd, _LoopEnd]]:
        for loop in self.robot.loops:
            first, second = self.loop_chains(loop)
            yield (
                loop,
                self._loop_end(first, q, loop.first_rotation, loop.first_position),
                self._loop_end(second, q, loop.second_rotation, loop.second_position),
            )

    def _loop_end(self, way: Sequence[int], q: Array, turn: Array, place: Array) -> _LoopEnd:
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
            twists[:3, k], twists[3:, k] = angular, linear + _cross(position, angular)
            rows.append(row)
            moved, shifted = exponentials(np.outer(screw, q[row]))
            position = position + np.einsum("ijn,jn->in", rotation, shifted)
            rotation = np.einsum("ijn,jkn->ikn", rotation, moved)
        point = position + np.einsum("ijn,j->in", rotation, place)
        return _LoopEnd(np.einsum("ijn,jk->ikn", rotation, turn), point, twists, rows)


def _cross(a: Array, b: Array) -> Array:
    """Cross products along the first axis; np.cross spends more time on moving axes."""
    return np.stack(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )


@dataclass(frozen=True, eq=False)
class Closure:
    """The split of a robot's coordinates, and the motion of all from the independent ones."""

    robot: KinematicTree  #: With loops.

    @cached_property
    def conditions(self) -> LoopConditions:
        """The loops."""
        return LoopConditions(self.robot)

    @cached_property
    def closed_configuration(self) -> Array:
        """A configuration of the tree in which the loops are closed, shape (axes,).

        Raises InputError: when they cannot close there.
        """
        A, b = self.robot.coupling_map.A, self.robot.coupling_map.b
        start = np.zeros(self.robot.axes)
        for joint, value in (self.robot.configuration or {}).items():
            start[self.robot.rows[self.robot.joint_index(joint)].start] = value
        z = np.linalg.lstsq(A, start - b, rcond=None)[0]
        for _ in range(4 * MAX_NEWTON_STEPS):
            residual, jacobian = self.conditions.residual_and_jacobian((A @ z + b)[:, None])
            if np.abs(residual).max() <= CLOSURE_TOLERANCE:
                break
            # Conditions of planar mechanisms depend on each other up to the file's rounding.
            z = z - np.linalg.lstsq(jacobian[:, :, 0] @ A, residual[:, 0], rcond=1e-6)[0]
        largest_residual = float(np.abs(residual).max())
        if not largest_residual <= ROUNDED_CLOSURE_TOLERANCE:
            raise InputError(
                f"the loops of robot {self.robot.name!r} do not close at the given configuration: "
                f"{self._worst_loop(residual[:, 0])} stay {largest_residual:.3g} m (or rad) apart"
            )
        return np.asarray(A @ z + b)

    def check_mobility(self) -> None:
        """Move the independent joints a little both ways.

        Raises InputError: they cannot, or the passive ones can move by themselves.
        """
        for step in PROBE_STEPS:
            try:
                home = self._assembled_coordinates[self.active]
                self.jacobian(self.positions(home[:, None] + [[-step, step]]))
            except InputError as error:
                failure = error
            else:
                return
        raise InputError(
            f"the loops of robot {self.robot.name!r} are singular at the configuration in which "
            f"they are assembled, give another one: {failure}"
        ) from failure

    def _worst_loop(self, residual: Array) -> str:
        owners = [loop for loop in self.robot.loops for _ in range(LOOP_KINDS[loop.kind])]
        return f"the ends of loop {owners[int(np.argmax(np.abs(residual)))].name!r}"

    @cached_property
    def rank(self) -> int:
        """Number of independent conditions."""
        s = np.linalg.svd(self._home_jacobian, compute_uv=False)
        return int((s > RANK_TOLERANCE * s.max(initial=0.0)).sum())

    @property
    def _home_jacobian(self) -> Array:
        """C A at the assembled configuration."""
        jacobian = self.conditions.residual_and_jacobian(self.closed_configuration[:, None])[1]
        return np.asarray(jacobian[:, :, 0] @ self.robot.coupling_map.A)

    def _residual_and_columns(self, q: Array) -> tuple[Array, Array]:
        """Residual of the loops (conditions, N), and C A, (N, conditions, z)."""
        residual, jacobian = self.conditions.residual_and_jacobian(q)
        return residual, np.einsum("can,az->ncz", jacobian, self.robot.coupling_map.A)

    @cached_property
    def passive(self) -> Index:
        """Places among the z of coordinates that the loops determine, increasing.

        Taken greedily from the last in the order of preference: `Robot.active` first, then the
        order of the tree. None of `Robot.active` is taken where the others suffice.
        """
        names = self.names
        active_places = [names.index(joint) for joint in self.robot.active if joint in names]
        others = [k for k in range(len(names)) if k not in active_places]
        for columns, share in product((others, [*active_places, *others]), PASSIVE_COLUMN_SHARES):
            # Columns of C A that add at least this share of its size to those before them.
            remainder = self._home_jacobian.copy()
            least = share * np.linalg.norm(remainder, axis=0).max()
            passive_columns: list[int] = []
            for k in columns[::-1]:
                size = float(np.linalg.norm(remainder[:, k]))
                if len(passive_columns) < self.rank and size > least:
                    unit = remainder[:, k] / size
                    remainder = remainder - np.outer(unit, unit @ remainder)
                    passive_columns.append(k)
            if len(passive_columns) == self.rank:
                break
        else:
            raise InputError(
                f"the loops of robot {self.robot.name!r} are nearly singular at the configuration "
                "in which they are assembled: give another one"
            )
        return np.sort(np.array(passive_columns, dtype=np.intp))

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
        dependencies: list[set[int]] = []
        for loop in self.robot.loops:
            ways = self.conditions.loop_chains(loop)
            rows = [self.robot.rows[i].start for way in ways for i in way]
            part = set(np.flatnonzero(self.robot.coupling_map.A[rows].any(axis=0)).tolist())
            apart = [w for w in dependencies if not w & part]
            dependencies = [*apart, part.union(*(w for w in dependencies if w & part))]
        return np.array(
            [
                [any(i in w and p in w for w in dependencies) for p in self.passive]
                for i in self.active
            ]
        ).reshape(len(self.active), len(self.passive))

    # -- motion ------------------------------------------------------------------------------

    def positions(self, s: Array) -> Array:
        """All coordinates of the tree, (axes, N), from the independent ones, (dof, N).

        Raises InputError: names the sample at which a loop cannot close.
        """
        q, closed = self.solve_by_continuation(s)
        if not closed.all():
            sample = int(np.flatnonzero(~closed)[0])
            names = [self.names[k] for k in self.active]
            at = ", ".join(f"{n} = {x:.4g}" for n, x in zip(names, s[:, sample], strict=True))
            if self.passes_singularity(s[:, [sample]], q[:, [sample]])[0]:
                why = (
                    "the way there passes a singular configuration, beyond which a loop may be on "
                    "another branch"
                )
            else:
                way = s[:, sample] - q[self.robot.coupling_map.independent[self.active], sample]
                there = q[:, sample] + self.robot.coupling_map.A[:, self.active] @ way
                residual = self.conditions.residual_and_jacobian(there[:, None])[0][:, 0]
                why = f"{self._worst_loop(residual)} stay apart"
            raise InputError(
                f"robot {self.robot.name!r} cannot take the position of sample {sample} ({at}) "
                f"from the configuration in which it is assembled: {why}",
                row=sample,
            )
        return q

    def solve_by_continuation(self, s: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
        """`positions`, and at which samples all loops close; others stay where they got stuck.

        A sample is reached on the straight way from the assembled configuration, along which the
        passive columns keep their rank: beyond a singular configuration a loop may be on another
        branch.
        """
        coupled = self.robot.coupling_map
        start = self._assembled_coordinates[self.active][:, None]
        z = np.repeat(self._assembled_coordinates[:, None], s.shape[1], axis=1)
        # Joints that move no loop go to their place at once.
        z[self.active] = np.where(self._moves_loops[:, None], start, s)
        length = np.abs(s - start)[self._moves_loops].max(axis=0, initial=0.0)
        progress, least = np.zeros(s.shape[1]), MIN_STRIDE / np.maximum(length, MIN_STRIDE)
        longest = MAX_STRIDE / np.maximum(length, MAX_STRIDE)
        stride = longest.copy()
        _, columns = self._residual_and_columns(coupled.positions(z))
        unsolved = np.arange(s.shape[1])
        while unsolved.size:
            share = np.minimum(1.0, progress[unsolved] + stride[unsolved])
            target = start + share * (s - start)[:, unsolved]
            before = columns[unsolved]
            new, after, closed = self._move_and_close_loops(z[:, unsolved], target, before)
            change = _solve_least_squares(
                before[:, :, self.passive], (after - before)[:, :, self.passive]
            )
            closed &= np.linalg.norm(change, axis=(1, 2)) <= MAX_CHANGE
            there = unsolved[closed]
            z[:, there], columns[there] = new[:, closed], after[closed]
            progress[there] = share[closed]
            stride[unsolved] = np.where(
                closed,
                np.minimum(2.0 * stride[unsolved], longest[unsolved]),
                0.5 * (share - progress[unsolved]),
            )
            unsolved = unsolved[(progress[unsolved] < 1.0) & (stride[unsolved] >= least[unsolved])]
        return coupled.positions(z), progress >= 1.0

    def passes_singularity(self, s: Array, q: Array) -> npt.NDArray[np.bool_]:
        """Which samples that `solve_by_continuation` left at q could go on beyond where they are.

        There two branches meet, as in a parallelogram laid flat; elsewhere the loop is at the end
        of its reach.

        `s` (dof, N), `q` (axes, N): samples that do not close, and where they got stuck.
        """
        A, b = self.robot.coupling_map.A, self.robot.coupling_map.b
        z: Array = np.linalg.lstsq(A, q - b[:, None], rcond=None)[0].astype(np.float64)
        way = s - z[self.active]
        length = np.abs(way[self._moves_loops]).max(axis=0, initial=0.0)
        _, columns = self._residual_and_columns(q)
        target = z[self.active] + way * LEAP / np.maximum(length, LEAP)
        return self._move_and_close_loops(z, target, columns)[2]

    @cached_property
    def _assembled_coordinates(self) -> Array:
        """The assembled configuration's z."""
        A, b = self.robot.coupling_map.A, self.robot.coupling_map.b
        return np.asarray(np.linalg.lstsq(A, self.closed_configuration - b, rcond=None)[0])

    @cached_property
    def _moves_loops(self) -> npt.NDArray[np.bool_]:
        """Mask of the independent coordinates on which a loop depends."""
        A = self.robot.coupling_map.A[self.conditions.affected_coordinates]
        return np.asarray((A[:, self.active] != 0).any(axis=0))

    def _move_and_close_loops(
        self, z: Array, target: Array, columns: Array
    ) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
        """Move the independent coordinates and close the loops again, from the tangent on.

        Returns the new z, C A there, (N, conditions, z), and which samples closed near by.
        """
        ahead = np.einsum("ncz,zn->nc", columns[:, :, self.active], target - z[self.active])
        tangent = -_solve_least_squares(columns[:, :, self.passive], ahead).T
        predicted = z[self.passive] + np.clip(tangent, -MAX_NEWTON_STEP, MAX_NEWTON_STEP)
        z = z.copy()
        z[self.active], z[self.passive] = target, predicted
        for _ in range(MAX_NEWTON_STEPS):
            residual, columns = self._residual_and_columns(self.robot.coupling_map.positions(z))
            closed = np.abs(residual).max(axis=0) <= self._residual_tolerance
            jumped = np.abs(z[self.passive] - predicted).max(axis=0, initial=0.0) > MAX_CORRECTION
            if (closed | jumped).all():
                break
            step = _solve_least_squares(columns[:, :, self.passive], residual.T).T
            far = np.maximum(np.abs(step).max(axis=0), MAX_NEWTON_STEP)
            z[self.passive] -= np.where(closed, 0.0, step) * (MAX_NEWTON_STEP / far)
        return z, columns, closed & ~jumped

    @cached_property
    def _residual_tolerance(self) -> float:
        """Largest residual of a closed loop: rounding, or what the file's rounding leaves."""
        residual, _ = self.conditions.residual_and_jacobian(self.closed_configuration[:, None])
        return max(100 * CLOSURE_TOLERANCE, 10 * float(np.abs(residual).max()))

    def is_regular(self, q: Array) -> npt.NDArray[np.bool_]:
        """Mask of the configurations that determine the passive velocities, (N,)."""
        _, columns = self._residual_and_columns(q)
        s = np.linalg.svd(columns[:, :, self.passive], compute_uv=False)
        return np.asarray(s[:, -1] >= REGULARITY_MARGIN * s[:, 0])

    def jacobian(self, q: Array) -> tuple[Array, Array]:
        """dq/ds, (axes, dof, N), and the passive columns of C A, (N, conditions, passive).

        Raises InputError: names the sample whose configuration is singular.
        """
        A = self.robot.coupling_map.A
        _, columns = self._residual_and_columns(q)
        passive = columns[:, :, self.passive]
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
        slopes = _solve_least_squares(passive, columns[:, :, self.active])
        z[self.passive] = -np.moveaxis(slopes, 0, -1)
        return np.einsum("az,zsn->asn", A, z), passive

    def motion(self, s: Array, ds: Array, dds: Array) -> tuple[Array, Array, Array, Array]:
        """q, dq, ddq of all coordinates, (axes, N), and dq/ds, (axes, dof, N)."""
        A = self.robot.coupling_map.A
        q = self.positions(s)
        jacobian, passive = self.jacobian(q)
        dq = np.einsum("asn,sn->an", jacobian, ds)
        ddq = np.einsum("asn,sn->an", jacobian, dds)
        ddq -= A[:, self.passive] @ _solve_least_squares(passive, self.conditions.drift(q, dq).T).T
        return q, dq, ddq, jacobian


def _solve_least_squares(matrices: Array, right: Array) -> Array:
    """Least-squares solutions x of M x = b for stacks, (N, c, p) and (N, c) or (N, c, k)."""
    turned = np.swapaxes(matrices, 1, 2)
    columns = right[:, :, None] if right.ndim == 2 else right
    normal = turned @ matrices
    # Without the ridge singular configurations would raise; the second solution takes it back.
    ridge = 1e-15 * np.trace(normal, axis1=1, axis2=2)[:, None, None] * np.eye(normal.shape[1])
    out = np.linalg.solve(normal + ridge, turned @ columns)
    out += np.linalg.solve(normal + ridge, turned @ (columns - matrices @ out))
    return np.asarray(out[:, :, 0] if right.ndim == 2 else out)
