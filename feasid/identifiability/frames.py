"""Working frames: every joint seen from a point on its own axis, in the robot's own units.

Spans and ranks do not depend on frames and units, but rounding does. So each body gets a working
frame with the body's axes and its origin on the joint's axis, nearest to the parent's working
origin; lengths are divided by the geometric mean of the distances between these origins, and
screws are scaled to unit size. A robot in millimetres, or one whose frames lie far from its axes,
is then the same problem as any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feasid.core.arrays import Array
from feasid.identifiability.spectral import ROOT2, TOLERANCE, momentum, rates
from feasid.robot.description import Robot
from feasid.robot.inertia import pseudo_inertia, skew
from feasid.robot.parts import Body

NEGLIGIBLE_ARM = 1e-4
"""Distances below this fraction of the largest do not count in the length scale."""

ROUNDED = 4e-16
"""Entries of a pose this small, relative to 1 or to the largest length, are rounding of zero."""

ROUNDED_ARM = 1e-4
"""Distances between axes below this fraction of the offsets in a description are no scale: they
are rounding, or so small that coefficients of the bodies beside them would be huge in it."""

DOUBTFUL = (1e-14, 1e-5)
"""Sines and relative offsets in between are in doubt whatever the singular values."""

LENGTH_POWER = np.array([2.0] * 6 + [1.0] * 3 + [0.0])
"""Power of length in the ten parameters."""

SYMMETRIC = np.zeros((10, 4))
SYMMETRIC[[0, 3, 5, 8, 9], [0, 0, 1, 2, 3]] = 1.0
"""The four parameters of a symmetric rotor (Lxx = Lyy, Lzz, lz, m) among its ten."""

_BASIS = pseudo_inertia(np.eye(10))


def cleaned(values: Array, size: float) -> Array:
    """Values with those made zero that are rounding of it."""
    return np.where(np.abs(values) <= ROUNDED * size, 0.0, values)


def congruence(rotation: Array, position: Array) -> Array:
    """`feasid.robot.inertia.change_frame` for many frames: (n, 3, 3), (n, 3) to (n, 10, 10)."""
    return _congruence(_homogeneous(rotation, position), _BASIS, -1.0)


def congruence_size(rotation: Array, position: Array) -> Array:
    """Sizes of the terms that add up to the entries of `congruence`."""
    return _congruence(_homogeneous(np.abs(rotation), np.abs(position)), np.abs(_BASIS), 1.0)


def _homogeneous(rotation: Array, position: Array) -> Array:
    transform = np.zeros((*position.shape[:-1], 1, 4, 4))
    transform[..., 0, :3, :3] = rotation
    transform[..., 0, :3, 3] = position
    transform[..., 0, 3, 3] = 1.0
    return transform


def _congruence(t: Array, basis: Array, sign: float) -> Array:
    moved = t @ basis @ np.swapaxes(t, -1, -2)
    xx, yy, zz = moved[..., 0, 0], moved[..., 1, 1], moved[..., 2, 2]
    entries = [
        *(yy + zz, sign * moved[..., 0, 1], sign * moved[..., 0, 2]),
        *(xx + zz, sign * moved[..., 1, 2], xx + yy),
        *(moved[..., k, 3] for k in range(4)),
    ]
    return np.stack(entries, axis=-2)


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
    """A robot's geometry in working frames.

    Attributes
    ----------
    length : float
        The length scale [m].
    homes : ndarray, shape (n, 3)
        Home positions of the bodies in their parents [m].
    origins : ndarray, shape (n, 3)
        Working origins in the body frames [m].
    rotations, positions : ndarray, shapes (n, 3, 3) and (n, 3)
        Working frame i in its parent's, positions in units of `length`.
    screws : tuple of ndarray, shapes (d_i, 6)
        Unit screws in working frames.
    speeds : tuple of ndarray, shapes (d_i,)
        Sizes by which the screws were divided [rad or length per unit of q].
    gravity : ndarray, shape (3,)
        Unit vector in the base frame, zero without gravity.
    pull : float
        Size of gravity [m/s^2].
    """

    robot: Robot
    length: float
    homes: Array
    origins: Array
    rotations: Array
    positions: Array
    screws: tuple[Array, ...]
    speeds: tuple[Array, ...]
    gravity: Array
    pull: float

    @classmethod
    def of(cls, robot: Robot) -> Frames:
        """Choose the working frames of a robot."""
        bodies = robot.bodies
        rotations = cleaned(np.stack([b.rotation for b in bodies]), 1.0)
        homes = np.stack([b.position for b in bodies])
        homes = cleaned(homes, np.abs(homes).max())
        origins = np.zeros((len(bodies), 3))
        arms = np.zeros((len(bodies), 3))
        for i, (body, p) in enumerate(zip(bodies, robot.parents, strict=True)):
            base = origins[p] if p >= 0 else homes[i]
            start = (base - homes[i]) @ rotations[i]
            origins[i] = _nearest_on_axis(body, start)
            arms[i] = rotations[i] @ (origins[i] - start)
        length = _length_scale(robot, origins, arms)
        moved = np.vstack([b.motion.T for b in bodies])
        owner = np.repeat(np.arange(len(bodies)), [b.dof for b in bodies])
        moved[:, 3:] = (moved[:, 3:] + np.cross(moved[:, :3], origins[owner])) / length
        turn = np.linalg.norm(moved[:, :3], axis=1)
        speed = np.where(turn > TOLERANCE, turn, np.linalg.norm(moved[:, 3:], axis=1))
        moved /= speed[:, None]
        moved[turn <= TOLERANCE, :3] = 0.0
        screws = [moved[rows] for rows in robot.rows]
        speeds = [speed[rows] for rows in robot.rows]
        pull = float(np.linalg.norm(robot.gravity))
        gravity = robot.gravity / pull if pull > 0 else np.zeros(3)
        return cls(
            robot,
            length,
            homes,
            origins,
            rotations,
            arms / length,
            tuple(screws),
            tuple(speeds),
            gravity,
            pull,
        )

    @cached_property
    def motion(self) -> Array:
        """Velocity transforms parent to child, shape (n, 6, 6)."""
        return motion_transform(self.rotations, self.positions)

    @cached_property
    def inertia(self) -> Array:
        """Parameter transforms child to parent on x, shape (n, 10, 10)."""
        moved = congruence(self.rotations, self.positions)
        return np.asarray(ROOT2[:, None] * moved / ROOT2)

    @cached_property
    def single(self) -> Array:
        """First screw of each joint, shape (n, 6)."""
        return np.stack([s[0] for s in self.screws])

    @cached_property
    def momenta(self) -> Array:
        """W of `momentum` for the first screw of each joint, shape (n, 6, 10)."""
        return momentum(self.single)

    @cached_property
    def rates(self) -> Array:
        """A(Phi) for the first screw of each joint, shape (n, 10, 10)."""
        return rates(self.single)

    def size(self, i: int) -> float:
        """What a joint torque of one unit is in working units: length times speed."""
        return self.length * float(self.speeds[i][0])


def axis_of(screw: Array) -> tuple[Array, bool, bool]:
    """Unit axis of a unit screw through the origin, whether it turns, whether it shifts."""
    if screw[:3].any():
        return screw[:3], True, bool(abs(screw[:3] @ screw[3:]) > TOLERANCE)
    return screw[3:], False, True


def _nearest_on_axis(body: Body, start: Array) -> Array:
    """Point on the joint's axes nearest to `start` (for several axes, in least squares)."""
    turning = body.motion.T[np.abs(body.motion[:3]).max(axis=0) > 0]
    if len(turning) == 0:
        return start
    if len(turning) == 1:
        w, v = turning[0, :3], turning[0, 3:]
        square = w @ w
        point = np.array([w[1] * v[2] - w[2] * v[1], w[2] * v[0] - w[0] * v[2], 0.0])
        point[2] = w[0] * v[1] - w[1] * v[0]
        point /= square
        return np.asarray(point + w * ((w @ (start - point)) / square), dtype=np.float64)
    rows, right = [], []
    for w, v in zip(turning[:, :3], turning[:, 3:], strict=True):
        rows.append(skew(w / np.linalg.norm(w)))
        right.append(rows[-1] @ (np.cross(w, v) / (w @ w) - start))
    step = np.linalg.lstsq(np.vstack(rows), np.concatenate(right), rcond=1e-9)[0]
    return np.asarray(start + step, dtype=np.float64)


def _length_scale(robot: Robot, origins: Array, arms: Array) -> float:
    """Geometric mean of the lever arms that are not negligible.

    Without lever arms between joints it is taken of the other lengths: distances of rotors and
    body frames, pitches, displacements of joints. It is 1 if all of these are zero.
    """
    size = np.sqrt((arms * arms).sum(axis=1))[[p >= 0 for p in robot.parents]]
    offsets = np.sqrt((origins * origins).sum(axis=1))
    homes = [np.abs(b.position).max() for b in robot.bodies]
    size = size[size > ROUNDED_ARM * max(*offsets, *homes)]
    if size.size == 0:
        others = [float(o) for o in offsets]
        for body, p in zip(robot.bodies, robot.parents, strict=True):
            if body.rotor is not None and p >= 0:
                others.append(float(np.linalg.norm(body.rotor.position - origins[p])))
            for w, v in zip(body.motion[:3].T, body.motion[3:].T, strict=True):
                turn = float(np.linalg.norm(w))
                others.append(abs(float(w @ v)) / turn**2 if turn else float(np.linalg.norm(v)))
        size = np.array(others)
    if not size.any():
        return 1.0
    size = size[size > NEGLIGIBLE_ARM * size.max()]
    return float(np.exp(np.log(size).mean()))


def doubtful_joints(frames: Frames) -> tuple[int, ...]:
    """Joints with an angle or offset that is nearly but not quite exact."""
    parents = np.array(frames.robot.parents)
    n = len(parents)
    inner = parents >= 0
    sizes = np.zeros((n, 20))
    sizes[:, :9] = frames.rotations.reshape(n, 9)
    sizes[inner, 9:12] = frames.positions[inner]
    turned = np.where(frames.single[:, :3].any(axis=1, keepdims=True), *_halves(frames.single))
    there = np.einsum("nij,nj->ni", frames.rotations[inner], turned[inner])
    before = turned[parents[inner]]
    sizes[inner, 12:14] = relation(there, before)
    normal = np.cross(before, there)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), DOUBTFUL[1])
    arms = frames.positions[inner]
    for k, direction in enumerate((before, normal, np.cross(before, normal))):
        sizes[inner, 17 + k] = np.einsum("ni,ni->n", arms, direction)
    pulled = np.einsum("nji,j->ni", frames.rotations[~inner], frames.gravity)
    sizes[~inner, 12:14] = relation(pulled, turned[~inner])
    sizes[~inner, 14:17] = pulled
    sizes = np.abs(sizes)
    return tuple(
        np.flatnonzero(((sizes > DOUBTFUL[0]) & (sizes < DOUBTFUL[1])).any(axis=1)).tolist()
    )


def _halves(screws: Array) -> tuple[Array, Array]:
    return screws[:, :3], screws[:, 3:]


def relation(a: Array, b: Array) -> Array:
    """Cosine and sine of the angle between directions, (n, 3) and (n, 3) to (n, 2)."""
    sine = np.sqrt((np.cross(a, b) ** 2).sum(axis=1))
    return np.stack([np.einsum("ni,ni->n", a, b), sine], axis=1)
