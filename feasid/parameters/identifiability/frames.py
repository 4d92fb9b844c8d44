"""Working frames and units of a robot, and the quantities that the recursion reads.

Spans and ranks do not depend on frames and units, but rounding does. So each body gets a working
frame with the body's axes and its origin on the joint's axis, nearest to the parent's working
origin; lengths are divided by the geometric mean of the distances between these origins, and
screws are scaled to unit size. A robot in millimetres, or one whose frames lie far from its axes,
is then the same problem as any other. `ScaledExperiment` adds drives, rotors and the action of
each joint on subspaces.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import UnsupportedJointError
from feasid.parameters.identifiability.invariant_subspaces import (
    ROOT2,
    TOLERANCE,
    WEAK_DIRECTION,
    ScrewAction,
    ScrewSpectrum,
    column_basis,
    momentum_map,
    parameter_rate,
    parameter_spectrum,
    stacked_action,
    velocity_spectrum,
)
from feasid.robot.bodies import SYMMETRIC_ROTOR, Body
from feasid.robot.description import Robot
from feasid.robot.inertia import pseudo_inertia, skew

MIN_ARM_TO_LARGEST = 1e-4
"""Distances below this fraction of the largest do not count in the length scale."""

POSE_ROUNDING = 4e-16
"""Entries of a pose this small, relative to 1 or to the largest length, are rounding of zero."""

MIN_ARM_TO_OFFSET = 1e-4
"""Distances between axes below this fraction of the offsets in a description are not used as a
scale: they are rounding, or so small that coefficients of neighbouring bodies would be huge."""

DEGENERACY_RANGE = (1e-14, 1e-5)
"""Sines and relative offsets in between make a rank doubtful, whatever the singular values."""

LENGTH_POWER = np.array([2.0] * 6 + [1.0] * 3 + [0.0])  #: Power of length in the ten parameters.

_BASIS = pseudo_inertia(np.eye(10))


def zero_rounding_errors(values: Array, size: float) -> Array:
    """Values with those made zero that are rounding of it."""
    return np.where(np.abs(values) <= POSE_ROUNDING * size, 0.0, values)


def parameter_transform(
    rotation: Array, position: Array, basis: Array = _BASIS, sign: float = -1.0
) -> Array:
    """`feasid.robot.inertia.change_frame` for many frames: (n, 3, 3), (n, 3) to (n, 10, 10)."""
    transform = np.zeros((*position.shape[:-1], 1, 4, 4))
    transform[..., 0, :3, :3] = rotation
    transform[..., 0, :3, 3] = position
    transform[..., 0, 3, 3] = 1.0
    transformed = transform @ basis @ np.swapaxes(transform, -1, -2)
    xx, yy, zz = transformed[..., 0, 0], transformed[..., 1, 1], transformed[..., 2, 2]
    entries = [
        *(yy + zz, sign * transformed[..., 0, 1], sign * transformed[..., 0, 2]),
        *(xx + zz, sign * transformed[..., 1, 2], xx + yy),
        *(transformed[..., k, 3] for k in range(4)),
    ]
    return np.stack(entries, axis=-2)


def parameter_transform_size(rotation: Array, position: Array) -> Array:
    """Sizes of the terms that add up to the entries of `parameter_transform`."""
    return parameter_transform(np.abs(rotation), np.abs(position), np.abs(_BASIS), 1.0)


def motion_transform(rotation: Array, position: Array) -> Array:
    """iX_p, (n, 3, 3) and (n, 3) to (n, 6, 6): velocities of the parent seen in the child.

    Wensing et al. (2024) eq. (66).
    """
    turned = np.swapaxes(rotation, -1, -2)
    out = np.zeros((*position.shape[:-1], 6, 6))
    out[..., :3, :3] = out[..., 3:, 3:] = turned
    out[..., 3:, :3] = -turned @ skew(position)
    return out


@dataclass(frozen=True, eq=False)
class Frames:
    """A robot's geometry in working frames."""

    robot: Robot
    length: float  #: The length scale [m].
    homes: Array  #: Shape (n, 3): home positions of the bodies in their parents [m].
    origins: Array  #: Shape (n, 3): working origins in the body frames [m].
    #: Shape (n, 3, 3): working frame i in its parent's, positions in units of `length`.
    rotations: Array
    positions: Array  #: Shape (n, 3): see `rotations`.
    screws: tuple[Array, ...]  #: Shape (d_i, 6): unit screws in working frames.
    #: Shape (d_i,): sizes by which the screws were divided [rad or length per unit of q].
    speeds: tuple[Array, ...]
    gravity: Array  #: Shape (3,): unit vector in the base frame, zero without gravity.
    gravity_size: float  #: [m/s^2].

    @classmethod
    def from_robot(cls, robot: Robot) -> Frames:
        """Choose the working frames of a robot."""
        bodies = robot.bodies
        rotations = zero_rounding_errors(np.stack([b.rotation for b in bodies]), 1.0)
        homes = np.stack([b.position for b in bodies])
        homes = zero_rounding_errors(homes, np.abs(homes).max())
        origins = np.zeros((len(bodies), 3))
        arms = np.zeros((len(bodies), 3))
        for i, (body, p) in enumerate(zip(bodies, robot.parents, strict=True)):
            base = origins[p] if p >= 0 else homes[i]
            start = (base - homes[i]) @ rotations[i]
            origins[i] = _nearest_on_axis(body, start)
            arms[i] = rotations[i] @ (origins[i] - start)
        # The length is the geometric mean of the lever arms that are not negligible. Without lever
        # arms between joints it is taken of the other lengths: distances of rotors and body
        # frames, pitches, displacements of joints. It is 1 if all of these are zero.
        size = np.sqrt((arms * arms).sum(axis=1))[[p >= 0 for p in robot.parents]]
        offsets = np.sqrt((origins * origins).sum(axis=1))
        places = [np.abs(b.position).max() for b in bodies]
        size = size[size > MIN_ARM_TO_OFFSET * max(*offsets, *places)]
        if size.size == 0:
            lengths = [float(o) for o in offsets]
            for body, p in zip(bodies, robot.parents, strict=True):
                if body.rotor is not None and p >= 0:
                    lengths.append(float(np.linalg.norm(body.rotor.position - origins[p])))
                for w, v in zip(body.motion[:3].T, body.motion[3:].T, strict=True):
                    angle, shift = float(np.linalg.norm(w)), float(np.linalg.norm(v))
                    lengths.append(abs(float(w @ v)) / angle**2 if angle else shift)
            size = np.array(lengths)
        length = 1.0
        if size.any():
            length = float(np.exp(np.log(size[size > MIN_ARM_TO_LARGEST * size.max()]).mean()))
        motions = np.vstack([b.motion.T for b in bodies])
        owner = np.repeat(np.arange(len(bodies)), [b.dof for b in bodies])
        motions[:, 3:] = (motions[:, 3:] + np.cross(motions[:, :3], origins[owner])) / length
        turn = np.linalg.norm(motions[:, :3], axis=1)
        speed = np.where(turn > TOLERANCE, turn, np.linalg.norm(motions[:, 3:], axis=1))
        motions /= speed[:, None]
        motions[turn <= TOLERANCE, :3] = 0.0
        screws = [motions[rows] for rows in robot.rows]
        speeds = [speed[rows] for rows in robot.rows]
        pull = float(np.linalg.norm(robot.gravity))
        gravity = robot.gravity / pull if pull > 0 else np.zeros(3)
        poses = homes, origins, rotations, arms / length
        return cls(robot, length, *poses, tuple(screws), tuple(speeds), gravity, pull)

    @cached_property
    def motion_transforms(self) -> Array:
        """Velocity transforms parent to child, shape (n, 6, 6)."""
        return motion_transform(self.rotations, self.positions)

    @cached_property
    def parameter_transforms(self) -> Array:
        """Parameter transforms child to parent on x, shape (n, 10, 10)."""
        moved = parameter_transform(self.rotations, self.positions)
        return np.asarray(ROOT2[:, None] * moved / ROOT2)

    @cached_property
    def first_screws(self) -> Array:
        """First screw of each joint, shape (n, 6)."""
        return np.stack([s[0] for s in self.screws])

    @cached_property
    def momentum_maps(self) -> Array:
        """W of `momentum_map` for the first screw of each joint, shape (n, 6, 10)."""
        return momentum_map(self.first_screws)

    @cached_property
    def parameter_rates(self) -> Array:
        """A(Phi) for the first screw of each joint, shape (n, 10, 10)."""
        return parameter_rate(self.first_screws)


def _nearest_on_axis(body: Body, start: Array) -> Array:
    """Point on the joint's axes nearest to `start` (for several axes, in least squares)."""
    turning = body.motion.T[np.abs(body.motion[:3]).max(axis=0) > 0]
    if len(turning) == 0:
        return start
    if len(turning) == 1:
        w, v = turning[0, :3], turning[0, 3:]
        point = np.cross(w, v) / (w @ w)
        return np.asarray(point + w * ((w @ (start - point)) / (w @ w)), dtype=np.float64)
    rows, right = [], []
    for w, v in zip(turning[:, :3], turning[:, 3:], strict=True):
        rows.append(skew(w / np.linalg.norm(w)))
        right.append(rows[-1] @ (np.cross(w, v) / (w @ w) - start))
    # Parallel axes leave the step along them open: it stays zero.
    step = np.linalg.lstsq(np.vstack(rows), np.concatenate(right), rcond=1e-9)[0]
    return np.asarray(start + step, dtype=np.float64)


def nearly_degenerate_joints(frames: Frames) -> tuple[int, ...]:
    """Joints with an angle or offset that is nearly but not quite exact."""
    parents = np.array(frames.robot.parents)
    n = len(parents)
    inner = parents >= 0
    sizes = np.zeros((n, 20))
    sizes[:, :9] = frames.rotations.reshape(n, 9)
    sizes[inner, 9:12] = frames.positions[inner]
    turns, shifts = frames.first_screws[:, :3], frames.first_screws[:, 3:]
    turned = np.where(turns.any(axis=1, keepdims=True), turns, shifts)
    there = np.einsum("nij,nj->ni", frames.rotations[inner], turned[inner])
    parent_axis = turned[parents[inner]]
    sizes[inner, 12:14] = cosine_and_sine(there, parent_axis)
    normal = np.cross(parent_axis, there)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), DEGENERACY_RANGE[1])
    arms = frames.positions[inner]
    for k, direction in enumerate((parent_axis, normal, np.cross(parent_axis, normal))):
        sizes[inner, 17 + k] = np.einsum("ni,ni->n", arms, direction)
    pulled = np.einsum("nji,j->ni", frames.rotations[~inner], frames.gravity)
    sizes[~inner, 12:14] = cosine_and_sine(pulled, turned[~inner])
    sizes[~inner, 14:17] = pulled
    sizes = np.abs(sizes)
    doubtful = (sizes > DEGENERACY_RANGE[0]) & (sizes < DEGENERACY_RANGE[1])
    return tuple(np.flatnonzero(doubtful.any(axis=1)).tolist())


def cosine_and_sine(a: Array, b: Array) -> Array:
    """Cosine and sine of the angle between directions, (n, 3) and (n, 3) to (n, 2)."""
    sine = np.sqrt((np.cross(a, b) ** 2).sum(axis=1))
    return np.stack([np.einsum("ni,ni->n", a, b), sine], axis=1)


Key = tuple[bytes, bool, bool]
"""An axis through the origin, whether a screw turns about it and whether it shifts along it."""

GRAVITY_SET = -1  #: Key of gravity among the seeds; other keys are the joints that share a drive.
DOUBTFUL_SINGULAR_VALUES = (1e-13, 1e-5)
"""Singular values in between are neither clearly zero nor clearly not: the geometry is nearly
degenerate."""

WHOLE_SPACE = {m: np.eye(m) for m in (6, 10)}
"""Whole spaces: once a body can move in every direction and all its parameters matter, bodies
beyond it need no ranks."""

EMPTY_BASIS = {m: np.zeros((m, 0)) for m in (6, 10)}  #: Empty spaces.
ROTOR_SPIN = np.array([0.0, 0, 1, 0, 0, 0])  #: A rotor's own screw, in its frame.


@dataclass(frozen=True, eq=False)
class RotorView:
    """A rotor as its joint's parent sees it: transforms to it, and its action and momentum."""

    lift: Array  # (r, 6) velocities of the parent to those of the rotor
    inertia: Array  # (10, p) parameters of the rotor to the parent's x
    speed: float
    velocity: ScrewSpectrum
    parameter: ScrewSpectrum
    momentum: Array  # (r, p)

    @property
    def parameter_units(self) -> Array:
        """Working units of the rotor's parameters, (p,): small for those that act through gears."""
        pair_functionals = np.abs(self.momentum).max(axis=0) > 0
        return np.where(pair_functionals & (self.speed != 0), 1 / abs(self.speed or 1.0), 1.0)


@dataclass(frozen=True, eq=False)
class ScaledExperiment:
    """A robot in working units with the measured and held joints of an experiment."""

    robot: Robot
    measured: frozenset[int] | None = None  #: Bodies whose joint torques are measured; default all.
    static: bool = False  #: Only postures at rest (Remark 8, App. F).
    #: Bodies whose joints stay where they are, at their home position.
    held: frozenset[int] = frozenset()
    #: By body: the smallest singular value that decides a rank but is close to rounding.
    doubtful_values: dict[int, float] = field(default_factory=dict)
    _spectra: dict[Key, tuple[ScrewSpectrum, ScrewSpectrum]] = field(default_factory=dict)

    @cached_property
    def frames(self) -> Frames:
        """Working frames."""
        return Frames.from_robot(self.robot)

    # -- drives ------------------------------------------------------------------------------

    @cached_property
    def single_joint_drives(self) -> tuple[int | None, ...]:
        """For each body the drive of its joint alone, None without."""
        owner: list[int | None] = [None] * len(self.robot.bodies)
        for k, drive in enumerate(self.robot.drives):
            if len(drive.coupling) == 1:
                i = self.robot.joint_index(next(iter(drive.coupling)))
                if owner[i] is None and drive.name == self.robot.bodies[i].name:
                    owner[i] = k
        return tuple(owner)

    def drive_symbols(self, i: int) -> tuple[str, ...]:
        """Terms of a joint's own drive that its rows contain, of "Ia" and "fo"."""
        drive = self.single_joint_drives[i]
        symbols = () if drive is None else self.robot.drives[drive].symbols
        return tuple(s for s in ("Ia", "fo") if s in symbols)

    @cached_property
    def shared_drives(self) -> tuple[int, ...]:
        """Drives of several joints, or further ones of a joint."""
        return tuple(k for k in range(len(self.robot.drives)) if k not in self.single_joint_drives)

    @cached_property
    def shared_drive_columns(self) -> tuple[tuple[int, str, int], ...]:
        """(drive, symbol, parameter column) of every Ia and fo of a shared drive."""
        return tuple(
            (k, symbol, column)
            for k in self.shared_drives
            for symbol, column in self.robot.drive_columns(k).items()
            if symbol in ("Ia", "fo")
        )

    @cached_property
    def shared_drive_factors(self) -> dict[int, dict[int, float]]:
        """Factor per body of every shared drive."""
        return {
            k: {self.robot.joint_index(j): c for j, c in self.robot.drives[k].coupling.items()}
            for k in self.shared_drives
        }

    @cached_property
    def coupled_joints(self) -> frozenset[int]:
        """Joints that share a drive's inertia with another joint."""
        out: set[int] = set()
        for k, symbol, _ in self.shared_drive_columns:
            if symbol == "Ia" and len(self.shared_drive_factors[k]) > 1 and not self.static:
                out |= set(self.shared_drive_factors[k])
        return frozenset(out)

    @cached_property
    def shared_column_units(self) -> Array:
        """Size of a working unit of each of `shared_drive_columns`."""
        units, pull = [], self.frames.gravity_size or 1.0
        for k, symbol, _ in self.shared_drive_columns:
            factors = self.shared_drive_factors[k].items()
            largest = max(abs(c) / self.torque_units[i] for i, c in factors)
            units.append(1 / largest**2 if symbol == "Ia" else pull / largest)
        return np.array(units)

    def shared_drive_terms(self, i: int, seed: int) -> Array:
        """Drive terms of joint i that belong to a seed, shape (g,)."""
        out = np.zeros(len(self.shared_drive_columns))
        for g, (k, symbol, _) in enumerate(self.shared_drive_columns):
            factor = self.shared_drive_factors[k].get(i, 0.0) / self.torque_units[i]
            if symbol == "Ia" and seed >= 0 and not self.static:
                factor *= self.shared_drive_factors[k].get(seed, 0.0) / self.torque_units[seed]
            elif symbol == "fo" and seed == GRAVITY_SET:
                factor /= self.frames.gravity_size or 1.0
            else:
                factor = 0.0
            out[g] = factor * self.shared_column_units[g]
        return out

    # -- rotors ------------------------------------------------------------------------------

    @cached_property
    def rotor_views(self) -> tuple[RotorView | None, ...]:
        """Rotors in working units."""
        views: list[RotorView | None] = []
        for i, (body, p) in enumerate(zip(self.robot.bodies, self.robot.parents, strict=True)):
            rotor, f = body.rotor, self.frames
            if rotor is None:
                views.append(None)
                continue
            if body.dof != 1:
                raise UnsupportedJointError(
                    f"joint {body.joint!r} has a rotor but {body.dof} degrees of freedom: a rotor "
                    "turns at a ratio of one joint position",
                    joint=body.joint,
                )
            origin = f.origins[p] if p >= 0 else body.position
            position = (rotor.position - origin) / f.length
            lift = motion_transform(rotor.rotation, position)
            inertia = ROOT2[:, None] * parameter_transform(rotor.rotation, position) / ROOT2
            if rotor.symmetric:  # its rotation changes nothing; only its spin has a momentum
                velocity, parameter = (ScrewSpectrum(np.eye(k), {}, None, 1) for k in (1, 4))
                inertia = inertia @ (ROOT2[:, None] * SYMMETRIC_ROTOR)
                lift, spin = lift[2:3], np.array([[0.0, 1.0, 0.0, 0.0]])
            else:
                velocity, parameter = self._screw_spectra(ROTOR_SPIN)
                spin = momentum_map(ROTOR_SPIN)
            speed = rotor.gear / float(f.speeds[i][0])
            views.append(RotorView(lift, inertia, speed, velocity, parameter, spin))
        return tuple(views)

    @cached_property
    def torque_units(self) -> Array:
        """Working unit of each joint's torque: length times speed."""
        return np.array([self.frames.length * float(speeds[0]) for speeds in self.frames.speeds])

    @cached_property
    def gear_ratio_sizes(self) -> Array:
        """Per joint the size of its gear ratio, at least 1."""
        return np.array([1.0 if r is None else max(1.0, abs(r.speed)) for r in self.rotor_views])

    # -- the recursion -----------------------------------------------------------------------

    def _screw_spectra(self, screw: Array) -> tuple[ScrewSpectrum, ScrewSpectrum]:
        turns = bool(screw[:3].any())
        axis = screw[:3] if turns else screw[3:]
        shifts = not turns or bool(abs(screw[:3] @ screw[3:]) > TOLERANCE)
        key = (axis.tobytes(), turns, shifts)
        if key not in self._spectra:
            pair = velocity_spectrum(axis, turns, shifts), parameter_spectrum(axis, turns, shifts)
            self._spectra[key] = pair
        return self._spectra[key]

    def screw_actions(self, i: int) -> tuple[list[ScrewAction], list[ScrewAction]]:
        """Actions of joint i's screws on velocities and on functionals, rotor included."""
        rotor, screws = self.rotor_views[i], self.frames.screws[i]
        if len(screws) > 1:
            # Actions of each screw of a joint of several degrees of freedom. A screw whose axis
            # misses the working origin is shifted to it, and the result shifted back.
            velocity, parameter = [], []
            for screw in screws:
                w, v = screw[:3], screw[3:]
                centre = np.cross(w, v) if w.any() else np.zeros(3)
                moved = np.r_[w, v + np.cross(w, centre)]
                a, b = (s.screw_action() for s in self._screw_spectra(moved))
                if np.abs(centre).max() > 0:
                    x = motion_transform(np.eye(3)[None], centre[None])[0]
                    back = motion_transform(np.eye(3)[None], -centre[None])[0]
                    a = ScrewAction(back @ a.still @ x, back @ a.moving @ x)
                    t = ROOT2[:, None] * parameter_transform(np.eye(3), -centre) / ROOT2
                    t_back = ROOT2[:, None] * parameter_transform(np.eye(3), centre) / ROOT2
                    b = ScrewAction(t.T @ b.still @ t_back.T, t.T @ b.moving @ t_back.T)
                velocity.append(a)
                parameter.append(b)
            return velocity, parameter
        v, k = self._screw_spectra(screws[0])
        if rotor is None:
            return [v.screw_action()], [k.screw_action()]
        return (
            [stacked_action(v, rotor.velocity, rotor.speed)],
            [stacked_action(k, rotor.parameter, rotor.speed)],
        )

    def note_doubtful_values(self, body: int, s: Array) -> None:
        """Remember the singular values of a body that are neither clearly zero nor clearly not."""
        low, high = DOUBTFUL_SINGULAR_VALUES
        values = s[(s > low) & (s < high)].tolist()
        if values:
            self.doubtful_values[body] = min(self.doubtful_values.get(body, 1.0), *values)

    def span_basis(self, columns: Array, body: int) -> Array:
        """Basis of a span, noting what is nearly degenerate."""
        out, s = column_basis(columns)
        self.note_doubtful_values(body, s)
        m = columns.shape[0]
        complete = m in WHOLE_SPACE and out.shape[1] == m and s[-1] >= WEAK_DIRECTION
        return WHOLE_SPACE[m] if complete else out
