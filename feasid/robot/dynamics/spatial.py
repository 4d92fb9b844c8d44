"""Rotations, displacements and cross products of many samples at once, samples last.

Vectors are arrays of shape (3, ..., N), contiguous in time. A pose that depends on a joint
position is affine in (1, cos, sin, q) with constant matrices, so most of its entries are plain
numbers, often zeros: they are kept as floats and skipped, which for usual robots halves the
arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.robot.inertia import skew

Entry = float | Array
"""A number for all samples, or one per sample (shape (N,))."""

CHUNK = 1700
"""Samples handled at a time (measured): fewer pay for more calls; with more, arrays of ten rows
pass 128 KB, from where the allocator maps fresh pages each time: 1.4 times as long."""

ROUNDING_TOLERANCE = 4e-16
"""Entries of a constant matrix below this, relative to its largest, are rounding of zero."""


@dataclass(frozen=True)
class Pose:
    """Pose of a body in its parent for N samples.

    ``rotation[r][c]`` are the entries of E = R', the rotation from parent to body coordinates;
    ``position`` is the body's origin in the parent's coordinates, ``position_in_body`` the same
    vector in the body's. One of the two is usually constant.
    """

    rotation: tuple[tuple[Entry, ...], ...]
    position: tuple[Entry, ...]
    position_in_body: tuple[Entry, ...] | None

    def to_body(self, vector: Array, out: Array | None = None) -> Array:
        """E x: a vector's coordinates in the body; shape (3, ..., N)."""
        return _multiply(self.rotation, vector, out)

    def to_parent(self, vector: Array) -> Array:
        """E' x: a vector's coordinates in the parent."""
        return _multiply(tuple(zip(*self.rotation, strict=True)), vector, None)


@dataclass(frozen=True, eq=False)
class ScrewPose:
    """Constants of ``T(q) = T(0) exp(Phi q)`` for one screw Phi of one degree of freedom.

    E(q) and p(q) are affine in (1, cos theta, sin theta, q), theta = rate * q: Rodrigues' formula
    with u the unit axis gives exp(-S(u) theta) = u u' + cos (1 - u u') - sin S(u), and the
    displacement is (1 - exp(S(u) theta)) (u x v) / rate + u u'v q.
    """

    rate: float
    rotation: tuple[Array, Array, Array]
    position: tuple[Array, Array, Array, Array]
    in_body: tuple[Array, Array, Array, Array]

    @classmethod
    def from_screw(cls, home_rotation: Array, home_position: Array, screw: Array) -> ScrewPose:
        """Constants for a home pose (parent from body) and a screw in the body's frame."""
        angular, linear = screw[:3], screw[3:]
        rate = float(np.linalg.norm(angular))
        zero = np.zeros(3)
        to_body = home_rotation.T
        if rate == 0.0:
            nothing = np.zeros((3, 3))
            in_body = (to_body @ home_position, zero, zero, linear)
            position = (home_position, zero, zero, home_rotation @ linear)
            return cls(rate, (to_body, nothing, nothing), position, in_body)
        u = angular / rate
        along, lever = np.outer(u, u), _cross_one(u, linear / rate)
        turns = along, np.eye(3) - along, skew(u)
        # exp(S theta) lever = along lever + cos (1 - along) lever + sin S lever; u . lever = 0
        across, sliding = -_cross_one(u, lever), u * (u @ linear)
        shift = lever, -lever, across, sliding
        back = -lever, lever, across, sliding
        rotation = (turns[0] @ to_body, turns[1] @ to_body, -turns[2] @ to_body)
        p = [home_rotation @ s for s in shift]
        b = [r @ home_position + s for r, s in zip(rotation, back, strict=False)]
        return cls(
            rate, rotation, (home_position + p[0], p[1], p[2], p[3]), (b[0], b[1], b[2], back[3])
        )

    @cached_property
    def matrices(self) -> Array:
        """The pose as a matrix for each of 1, cos theta, sin theta and q, (4, 4, 4), these last."""
        out = np.zeros((4, 4, 4))
        for k, rotation in enumerate(self.rotation):
            out[:3, :3, k] = rotation.T
        out[:3, 3] = np.transpose(self.position)
        out[3, 3, 0] = 1.0
        return out

    def at(self, q: Array) -> Pose:
        """The pose at joint positions q, shape (N,)."""
        theta = self.rate * q
        c, s = np.cos(theta), np.sin(theta)
        one, cos, sin = self.rotation
        rotation = tuple(
            tuple(_affine_combination((one[r, k], cos[r, k], sin[r, k]), (c, s)) for k in range(3))
            for r in range(3)
        )
        position = _vector_from_factors(self.position, (c, s, q))
        constant = all(isinstance(x, float) for x in position)
        return Pose(
            rotation, position, None if constant else _vector_from_factors(self.in_body, (c, s, q))
        )


def _cross_one(a: Array, b: Array) -> Array:
    """``a x b`` of two vectors; NumPy's function takes ten times longer for so few numbers."""
    (x, y, z), (i, j, k) = a.tolist(), b.tolist()
    return np.array([y * k - z * j, z * i - x * k, x * j - y * i])


def cross(a: Sequence[Entry], b: Array) -> Array:
    """``a x b`` with entries of `a` that may be numbers; zeros are skipped. Shape of b."""
    out = np.empty_like(b)
    for r in range(3):
        i, k = (r + 1) % 3, (r + 2) % 3
        plus, minus = a[i], a[k]  # out[r] = plus b[k] - minus b[i]
        if isinstance(plus, float) and plus == 0.0:
            if isinstance(minus, float):
                np.multiply(b[i], -minus, out=out[r])
            else:
                np.negative(minus * b[i], out=out[r])
            continue
        np.multiply(b[k], plus, out=out[r])
        if not (isinstance(minus, float) and minus == 0.0):
            out[r] -= minus * b[i]
    return out


def is_zero(vector: Sequence[Entry]) -> bool:
    """Whether a vector is the number zero for all samples."""
    return all(isinstance(x, float) and x == 0.0 for x in vector)


def _multiply(matrix: Sequence[Sequence[Entry]], vector: Array, out: Array | None) -> Array:
    out = np.empty_like(vector) if out is None else out
    work = np.empty(vector.shape[1:])
    for r, row in enumerate(matrix):
        started = False
        for entry, x in zip(row, vector, strict=True):
            if isinstance(entry, float) and entry == 0.0:
                continue
            if not started:
                np.multiply(x, entry, out=out[r])
                started = True
            else:
                out[r] += np.multiply(x, entry, out=work)
    return out


def _vector_from_factors(parts: Sequence[Array], factors: Sequence[Array]) -> tuple[Entry, ...]:
    return tuple(_affine_combination([p[r] for p in parts], factors) for r in range(3))


def _affine_combination(coefficients: Sequence[float], factors: Sequence[Array]) -> Entry:
    """coefficients[0] + sum coefficients[k] factors[k-1], as a number when it is one."""
    tolerance = ROUNDING_TOLERANCE * max(1.0, max(abs(c) for c in coefficients))
    total: Entry = float(coefficients[0]) if abs(coefficients[0]) > tolerance else 0.0
    for c, factor in zip(coefficients[1:], factors, strict=True):
        if abs(c) > tolerance:
            term = factor if c == 1.0 else c * factor
            total = term if isinstance(total, float) and total == 0.0 else total + term
    return total


def as_samples_last(values: npt.ArrayLike) -> Array:
    """(N, k) to contiguous (k, N)."""
    return np.ascontiguousarray(np.asarray(values, dtype=np.float64).T)
