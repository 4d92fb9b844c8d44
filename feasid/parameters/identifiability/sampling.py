"""Random motions of a robot: verification of the recursion's result, and ranks with couplings.

`confirmed` does not use the recursion: poses, velocities and accelerations are drawn, wrenches
follow from Newton and Euler in spatial form, I a + v x* I v, and are projected on the joints'
axes. Lengths are in units of the robot's lever arms, gravity has unit size, screws are unit
screws, so that every entry is of order one. A joint's null vectors must leave every measured
torque as it is, and the columns that are left must be independent. With Theorem 2 of Wensing et
al. (2024), by which unidentifiable directions are sums of those of the joints, that confirms the
count, and one further combination of its null vectors confirms K.

Couplings and closed loops make fewer parameters identifiable than the open tree, so the tree's base
parameters are the unknowns: energies at random configurations and velocities, taken through the
couplings and loops (`visible`), have the identifiable combinations as their row space. Its rank is
numerical.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from time import perf_counter

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError, RankError
from feasid.parameters.identifiability.echelon import JointNullspace
from feasid.parameters.identifiability.frames import ScaledExperiment, motion_transform
from feasid.parameters.identifiability.invariant_subspaces import MOMENTUM as PER_ROOT
from feasid.parameters.identifiability.invariant_subspaces import ROOT2, cross_matrix
from feasid.robot.description import Robot
from feasid.robot.dynamics.energy import energy_regressors
from feasid.robot.dynamics.kinematics import coordinate_map
from feasid.robot.known import Index
from feasid.robot.layout import coordinate_units, random_configurations
from feasid.robot.rotations import exponentials

MOTIONS = 12  #: Motions: more than a body has independent parameters per row that carries it.
MOTIONS_PARTLY_MEASURED = 40
"""Motions when one measured row may have to show all parameters of a body and its rotor."""

MAX_ROWS_PER_BODY = 8
"""Number of rows used for each body: those of the nearest joints towards the base."""

SEED = 20240  #: Seed of the random motions: the same robot gets the same answer.
INERTIA = PER_ROOT * ROOT2
"""INERTIA[a, b, k]: entry (a, b) of the spatial inertia per unit of parameter k."""


@dataclass(frozen=True, eq=False)
class MovingNodes:
    """Bodies, then rotors: where they hang, their screws, and the joint that moves them."""

    parents: tuple[int, ...]
    joints: tuple[int, ...]
    screws: tuple[Array, ...]  # (6, d) per node
    rotations: Array  # (n, 3, 3)
    positions: Array  # (n, 3)


@dataclass(frozen=True, eq=False)
class RandomMotions:
    """Random motions of a robot that a setting allows."""

    run: ScaledExperiment

    @cached_property
    def count(self) -> int:
        """Number of motions."""
        return MOTIONS if self.run.measured is None else MOTIONS_PARTLY_MEASURED

    @cached_property
    def moving_nodes(self) -> MovingNodes:
        """Bodies and rotors in scaled units."""
        robot, f = self.run.robot, self.run.frames
        parents, joints, screws = [*robot.parents], [*range(len(robot.bodies))], []
        for i, body in enumerate(robot.bodies):
            screws.append(np.vstack([body.motion[:3], body.motion[3:] / f.length]) / f.speeds[i])
        rotations = [b.rotation for b in robot.bodies]
        positions = [b.position for b in robot.bodies]
        for i, body in enumerate(robot.bodies):
            if body.rotor is not None:
                parents.append(robot.parents[i])
                joints.append(i)
                spin = np.zeros((6, 1))
                spin[2] = body.rotor.gear / f.speeds[i][0]
                screws.append(spin)
                rotations.append(body.rotor.rotation)
                positions.append(body.rotor.position)
        poses = np.stack(rotations), np.stack(positions) / f.length
        return MovingNodes(tuple(parents), tuple(joints), tuple(screws), *poses)

    @cached_property
    def rotor_nodes(self) -> dict[int, int]:
        """Node of each body's rotor."""
        n = len(self.run.robot.bodies)
        return {i: n + k for k, i in enumerate(self.moving_nodes.joints[n:])}

    @cached_property
    def joint_motion(self) -> tuple[list[Array], list[Array], list[Array]]:
        """Positions, velocities, accelerations per joint, (d, count); zero where it is held."""
        rng = np.random.default_rng(SEED)
        out: tuple[list[Array], list[Array], list[Array]] = ([], [], [])
        for i, body in enumerate(self.run.robot.bodies):
            draws = rng.standard_normal((3, body.dof, self.count))
            draws[0] = rng.uniform(-np.pi, np.pi, (body.dof, self.count))
            draws[1:] *= float(not self.run.static)
            for values, draw in zip(out, draws * float(i not in self.run.held), strict=True):
                values.append(draw)
        return out

    @cached_property
    def motion_transforms(self) -> Array:
        """Velocities of the parent seen in each node, (nodes, count, 6, 6)."""
        m, q = self.moving_nodes, self.joint_motion[0]
        rng = np.random.default_rng(SEED + 1)
        n = len(m.parents)
        twists = np.zeros((n, self.count, 6))
        for k, (i, screw) in enumerate(zip(m.joints, m.screws, strict=True)):
            twists[k] = (screw @ q[i]).T
            if screw.shape[1] in (2, 4, 5) and q[i].any():
                # Also what a nonholonomic joint reaches by going to and fro: the smallest Lie
                # algebra with its screws.
                reach, rank = np.linalg.qr(screw)[0], 0
                while rank < reach.shape[1]:
                    rank = reach.shape[1]
                    pairs = [cross_matrix(a) @ b for a, b in combinations(reach.T, 2)]
                    u, s, _ = np.linalg.svd(np.column_stack([reach, *pairs]), full_matrices=False)
                    reach = u[:, s > 1e-9]
                twists[k] = rng.uniform(-np.pi, np.pi, (self.count, reach.shape[1])) @ reach.T
        turn, shift = exponentials(twists.reshape(-1, 6).T)
        turn = np.moveaxis(turn, -1, 0).reshape(n, self.count, 3, 3)
        shift = shift.T.reshape(n, self.count, 3)
        rotation = m.rotations[:, None] @ turn
        position = m.positions[:, None] + np.einsum("nij,nsj->nsi", m.rotations, shift)
        return motion_transform(rotation, position)

    @cached_property
    def wrenches_per_parameter(self) -> Array:
        """I a + v x* I v per unit of the ten scaled parameters, (nodes, count, 6, 10)."""
        # Spatial velocity and acceleration (gravity subtracted) per node, (nodes, count, 6).
        m, (_, dq, ddq) = self.moving_nodes, self.joint_motion
        n = len(m.parents)
        v, a = np.zeros((n, self.count, 6)), np.zeros((n, self.count, 6))
        ground = np.broadcast_to(np.r_[0.0, 0, 0, -self.run.frames.gravity], (self.count, 6))
        for k, (p, i) in enumerate(zip(m.parents, m.joints, strict=True)):
            joint_velocity = (m.screws[k] @ dq[i]).T
            x = self.motion_transforms[k]
            base_v, base_a = (v[p], a[p]) if p >= 0 else (np.zeros((self.count, 6)), ground)
            v[k] = (x @ base_v[:, :, None])[:, :, 0] + joint_velocity
            a[k] = (x @ base_a[:, :, None])[:, :, 0] + (m.screws[k] @ ddq[i]).T
            a[k] += (cross_matrix(v[k]) @ joint_velocity[:, :, None])[:, :, 0]
        flat = INERTIA.transpose(1, 0, 2).reshape(6, 60)
        shape = (*v.shape[:2], 6, 10)
        swept = np.swapaxes(cross_matrix(v), -1, -2) @ (v @ flat).reshape(shape)
        return np.asarray((a @ flat).reshape(shape) - swept)

    @cached_property
    def measured_axes(self) -> list[Array]:
        """Axes of the nearest measured joints of each body, in its frame: (count, 6, up to 8)."""
        out: list[Array] = []
        none = np.zeros((self.count, 6, 0))
        for i, p in enumerate(self.run.robot.parents):
            carried = self.motion_transforms[i] @ out[p] if p >= 0 else none
            axes = self.moving_nodes.screws[i]
            screws = np.broadcast_to(axes, (self.count, *axes.shape))
            if self.run.measured is not None and i not in self.run.measured:
                screws = none
            out.append(np.concatenate([carried, screws], axis=2)[:, :, -MAX_ROWS_PER_BODY:])
        return out

    def _wrenches_at_parent(self, node: int) -> Array:
        """The node's wrenches at its parent's origin, (self.count, 6, 10)."""
        return np.asarray(
            np.swapaxes(self.motion_transforms[node], -1, -2) @ self.wrenches_per_parameter[node]
        )

    def joint_rows(self, i: int, transfer: Array, drive: Sequence[str]) -> tuple[Array, Array]:
        """Rows of joint torques when parameters of body i are moved from its parent.

        `transfer` (10, c): the body's and its rotor's parameters as the parent gets them, scaled;
        `drive`: own drive terms, "Ia" and "fo". Returns `rows` (r, c + len(drive)); `size` ndarray,
        the same shape: size of the terms that make up each entry, for telling rounding from zero.
        """
        run, p = self.run, self.run.robot.parents[i]
        is_measured = run.measured is None or i in run.measured
        body_rows = [self.moving_nodes.screws[i].T @ self.wrenches_per_parameter[i]]
        outer = [self._wrenches_at_parent(i)]
        rotor = run.robot.bodies[i].rotor
        if rotor is not None:
            k = self.rotor_nodes[i]
            turning = self.moving_nodes.screws[k].T @ self.wrenches_per_parameter[k]
            body_rows.append(turning @ rotor.reduction)
            outer.append(self._wrenches_at_parent(k) @ rotor.reduction)
        there = np.concatenate(outer, axis=2)
        floor, width = float(np.abs(there).max()), there.shape[2] + len(drive)
        rows, size = [np.zeros((0, width))], [np.zeros((0, width))]
        if is_measured:
            pair_functionals = np.concatenate(body_rows, axis=2)
            terms = self.drive_term_factors(i, drive)[:, None, :]
            terms = np.broadcast_to(terms, (*pair_functionals.shape[:2], len(drive)))
            rows.append(np.concatenate([pair_functionals, terms], axis=2).reshape(-1, width))
            size.append(np.broadcast_to(floor, rows[-1].shape))
        if p >= 0:
            back = self.wrenches_per_parameter[p] @ transfer
            lever = np.swapaxes(self.measured_axes[p], -1, -2)
            pair_functionals = lever @ (there - back)
            sizes = np.abs(there) + np.abs(self.wrenches_per_parameter[p]) @ np.abs(transfer)
            bound = np.abs(lever) @ sizes
            none = np.zeros((*pair_functionals.shape[:2], len(drive)))
            bound = np.maximum(floor, np.concatenate([bound, none], axis=2))
            rows.append(np.concatenate([pair_functionals, none], axis=2).reshape(-1, width))
            size.append(bound.reshape(-1, width))
        return np.vstack(rows), np.vstack(size)

    def drive_term_factors(self, i: int, drive: Sequence[str]) -> Array:
        """Factors of the own drive's terms in a joint's torque, (count, len(drive))."""
        pushes = self.joint_motion[2][i][0] * self.run.gear_ratio_sizes[i]
        terms = [pushes if symbol == "Ia" else np.ones(self.count) for symbol in drive]
        return np.stack(terms, axis=1) if terms else np.zeros((self.count, 0))

    def torques(self, change: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        """Measured joint torques of a change of inertial parameters.

        `change`: scaled parameters per node, (10,). Returns `torques, sizes` (count, d_i): per
        body; sizes are those of the wrenches that were added up.
        """
        m, bodies = self.moving_nodes, len(self.run.robot.bodies)
        pairs = list(zip(self.wrenches_per_parameter, change, strict=True))
        force = np.stack([w @ x for w, x in pairs])
        size = np.stack([np.abs(w) @ np.abs(x) for w, x in pairs])
        torques: list[Array] = [np.zeros((self.count, 0))] * bodies
        sizes: list[Array] = [np.zeros((self.count, 0))] * bodies
        # Rotors, then bodies from the tips: a parent passes on what hangs on it.
        for k in [*range(len(m.parents) - 1, bodies - 1, -1), *range(bodies - 1, -1, -1)]:
            i, p = m.joints[k], m.parents[k]
            pair_functionals = force[k] @ m.screws[k]
            bound = np.broadcast_to(size[k].max(axis=1, keepdims=True), pair_functionals.shape)
            torques[i] = pair_functionals + torques[i] if torques[i].size else pair_functionals
            sizes[i] = bound + sizes[i] if sizes[i].size else bound
            if p >= 0:
                x = np.swapaxes(self.motion_transforms[k], -1, -2)
                force[p] += (x @ force[k][:, :, None])[:, :, 0]
                size[p] += (np.abs(x) @ size[k][:, :, None])[:, :, 0]
        return torques, sizes


MAX_HIDDEN_TORQUE = 1e-11
"""Largest torque of an unidentifiable direction, relative to its terms: rounding leaves 1e-13. With
a tenth and with ten times as much all tests of counts in `tests/identifiability` on hard
mechanisms, tilts and random trees pass as well."""

MIN_VISIBLE_RATIO = 1e-13
"""Smallest singular value of identifiable combinations, relative to the largest or to the largest
term: rounding is at 1e-15. A tenth and ten times as much pass the same tests."""


@dataclass(frozen=True)
class SampleCheck:
    """Figures of the verification on random motions."""

    #: Largest torque of a hidden change, relative to the terms it is made of; must be at most
    #: `HIDDEN`.
    residual: float
    #: Smallest singular value of what a joint shows, relative to its largest; must be at least
    #: `SHOWN`.
    weakest: float
    joint: str  #: Where it was found.
    #: Joints below `SHOWN` whose geometry is known to be nearly degenerate.
    unconfirmed: tuple[str, ...]
    seconds: float  #: Time of the check [s].

    def __str__(self) -> str:
        return (
            f"checked on random motions: torques change by {self.residual:.1e} along the "
            f"unidentifiable directions (limit {MAX_HIDDEN_TORQUE:.0e}), by at least "
            f"{self.weakest:.1e} along all others (joint {self.joint!r}, limit "
            f"{MIN_VISIBLE_RATIO:.0e})"
        )


def verify_ranks(
    samples: RandomMotions,
    blocks: Sequence[JointNullspace],
    transfers: Sequence[Array],
    doubted: Sequence[int],
) -> SampleCheck:
    """Verify every joint's null vectors and remaining columns on random motions.

    `blocks`: one per joint, scaled; `transfers`: per joint, inertial columns to the parent's ten,
    scaled; `doubted`: joints that are known, and reported, to be too close to degenerate for
    floating point. Raises RankError: names the first joint whose count is not confirmed.
    """
    start = perf_counter()
    residual, weakest, where = 0.0, 1.0, 0
    unconfirmed, run, joints = [], samples.run, samples.run.robot.joints
    for i, (block, transfer) in enumerate(zip(blocks, transfers, strict=True)):
        rows, size = samples.joint_rows(i, transfer, block.drive)
        if block.dependent.size and len(rows):
            torques = np.abs(rows @ block.vectors)
            terms = np.maximum(size @ np.abs(block.vectors), np.abs(rows).max())
            off = float((torques / np.where(terms > 0, terms, 1.0)).max())
            if off > MAX_HIDDEN_TORQUE:
                raise RankError(
                    f"joint {joints[i]!r}: directions that should be unidentifiable change the "
                    f"torques of random motions, by {off:.1e} of the terms they are made of (at "
                    f"most {MAX_HIDDEN_TORQUE:.0e}); its geometry is too close to degenerate, or "
                    "its lengths differ too much",
                    joint=joints[i],
                )
            residual = max(residual, off)
        if block.independent.size:
            columns = rows[:, block.independent]
            enough = len(rows) >= columns.shape[1]
            s = np.linalg.svd(columns, compute_uv=False) if enough else [1.0, 0.0]
            reference = max(float(s[0]), float(size.max(initial=0.0)))
            ratio = float(s[-1]) / reference if reference else 0.0
            if ratio >= MIN_VISIBLE_RATIO:
                if ratio < weakest:
                    weakest, where = ratio, i
            elif i in doubted:
                unconfirmed.append(joints[i])
            else:
                raise RankError(
                    f"joint {joints[i]!r}: {block.independent.size} combinations are claimed, but "
                    f"in random motions the weakest shows only {ratio:.1e} of the strongest (at "
                    f"least {MIN_VISIBLE_RATIO:.0e})",
                    joint=joints[i],
                )
    if max(len(chain) for chain in run.robot.ancestors) > MAX_ROWS_PER_BODY:
        residual = max(residual, _largest_chain_torque(samples, blocks, transfers))
    return SampleCheck(residual, weakest, joints[where], tuple(unconfirmed), perf_counter() - start)


def _largest_chain_torque(
    samples: RandomMotions, blocks: Sequence[JointNullspace], transfers: Sequence[Array]
) -> float:
    """Largest torque of a random hidden change of all bodies, relative to its terms."""
    run, bodies = samples.run, samples.run.robot.bodies
    rng = np.random.default_rng(SEED)
    change = [np.zeros(10) for _ in samples.moving_nodes.parents]
    drives = []
    for i, (block, transfer) in enumerate(zip(blocks, transfers, strict=True)):
        vector = block.vectors @ rng.standard_normal(block.dependent.size)
        change[i] += vector[:10]
        rotor = bodies[i].rotor
        if rotor is not None:
            change[samples.rotor_nodes[i]] += rotor.reduction @ vector[10 : block.inertial]
        if run.robot.parents[i] >= 0:
            change[run.robot.parents[i]] -= transfer @ vector[: block.inertial]
        drives.append(samples.drive_term_factors(i, block.drive) @ vector[block.inertial :])
    torques, sizes = samples.torques(change)
    worst = 0.0
    for i, (torque, size, more) in enumerate(zip(torques, sizes, drives, strict=True)):
        if run.measured is not None and i not in run.measured:
            continue
        bound = float(size.max() + np.abs(more).max(initial=0.0))
        off = float(np.abs(torque + more[:, None]).max()) / bound if bound else 0.0
        if off > MAX_HIDDEN_TORQUE:
            joint = run.robot.joints[i]
            raise RankError(
                f"internal check failed at joint {joint!r}: an unidentifiable direction changes "
                f"its torque by {off:.1e} (at most {MAX_HIDDEN_TORQUE:.0e})",
                joint=joint,
            )
        worst = max(worst, off)
    return worst


EXTRA_MOTIONS = 30  #: Random motions beyond the number of unknowns.


def energy_rows(robot: Robot, columns: Index, units: Array, length: float, static: bool) -> Array:
    """Energies of the parameters in these columns, scaled, a row per random motion and energy.

    `columns`: independent parameters of the open tree; `units`: SI size of a scaled unit of each of
    them; `length`: size of the robot [m]; `static`: postures at rest only.
    """
    if any(drive.features or drive.depends_on_load for drive in robot.drives):
        raise InputError(
            "friction that grows with the load, and features, are for robots whose joints move by "
            f"themselves; joints of robot {robot.name!r} are coupled or in loops"
        )
    rng = np.random.default_rng(0)
    count = 2 * len(columns) + EXTRA_MOTIONS
    ds = rng.standard_normal((robot.dof, count)) * coordinate_units(robot, length)
    s = random_configurations(robot, rng, count, length, limits=bool(robot.loops))
    q, dq, *_ = coordinate_map(robot).motion(s, ds, np.zeros_like(ds))
    kinetic, potential, friction = (e[:, columns] * units for e in energy_regressors(robot, q, dq))
    potential = potential - potential.mean(axis=0)  # a constant energy moves nothing
    parts = [potential] if static else [kinetic, potential, friction]
    sizes = [float(np.linalg.norm(part, axis=0).max(initial=0.0)) for part in parts]
    return np.vstack([part / (size or 1.0) for part, size in zip(parts, sizes, strict=True)])
