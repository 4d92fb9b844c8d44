"""Positions and orientations of MJCF, to sixty digits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from functools import cached_property

import numpy as np

from feasid.core.arrays import Array
from feasid.exact.poses import (
    CONTEXT,
    PI,
    PrecisePose,
    Rotation,
    about,
    compose,
    cos_sin,
    identity,
    multiply,
)

ORIENTATIONS = {"quat": 4, "axisangle": 4, "xyaxes": 6, "zaxis": 3, "euler": 3}
"""Attributes that turn an element, and how many numbers they have; at most one is given."""

Numbers = Sequence[Decimal]


def _zeros() -> list[Decimal]:
    return [Decimal(0)] * 3


@dataclass(frozen=True, eq=False)
class MjcfPose:
    """A pose whose sixty-digit numbers give both its floats and exact verdicts."""

    turn: Rotation = field(default_factory=identity)
    place: list[Decimal] = field(default_factory=_zeros)

    @cached_property
    def rotation(self) -> Array:
        """Rotation matrix, shape (3, 3)."""
        return np.array(self.turn, dtype=np.float64) + 0.0

    @cached_property
    def position(self) -> Array:
        """Position [m], shape (3,)."""
        return np.array(self.place, dtype=np.float64)

    def precise(self) -> PrecisePose:
        """Rotation and position in decimals."""
        return self.turn, self.place

    def then(self, inner: MjcfPose) -> MjcfPose:
        """Pose of a frame that is given in this one."""
        return MjcfPose(*compose(self.precise(), inner.precise()))


def turned(kind: str, numbers: Numbers, degrees: bool, sequence: str) -> Rotation:
    """Rotation of one of the `ORIENTATIONS`; ``ValueError`` for a direction of zero length.

    `degrees` and `sequence` are the compiler's angle unit and eulerseq: lower case letters turn
    about the moving axes, capitals about the fixed ones.
    """
    with localcontext(CONTEXT):
        unit = PI / 180 if degrees else Decimal(1)
        if kind == "quat":
            return _from_quaternion(numbers)
        if kind == "axisangle":
            half = numbers[3] * unit / 2
            c, s = cos_sin(half)
            return _from_quaternion([c, *(s * x for x in _unit(numbers[:3]))])
        if kind == "xyaxes":
            x = _unit(numbers[:3])
            along = _dot(x, numbers[3:])
            y = _unit([b - along * a for a, b in zip(x, numbers[3:], strict=True)])
            return [list(row) for row in zip(x, y, _cross(x, y), strict=True)]
        if kind == "zaxis":
            return _from_z_axis(_unit(numbers))
        out = identity()
        for letter, angle in zip(sequence, numbers, strict=True):
            step = about("xyz".index(letter.lower()), angle * unit)
            out = multiply(out, step) if letter.islower() else multiply(step, out)
        return out


def _from_quaternion(q: Numbers) -> Rotation:
    """Rotation of a quaternion (w, x, y, z) of any length."""
    w, x, y, z = q
    n = w * w + x * x + y * y + z * z
    if not n:
        raise ValueError("the quaternion is zero")
    return [
        [(w * w + x * x - y * y - z * z) / n, 2 * (x * y - w * z) / n, 2 * (x * z + w * y) / n],
        [2 * (x * y + w * z) / n, (w * w - x * x + y * y - z * z) / n, 2 * (y * z - w * x) / n],
        [2 * (x * z - w * y) / n, 2 * (y * z + w * x) / n, (w * w - x * x - y * y + z * z) / n],
    ]


def _from_z_axis(z: Numbers) -> Rotation:
    """The smallest rotation that takes the z axis to `z` (unit length)."""
    if z[2] < 0 and not (z[0] or z[1]):
        return about(0, PI)
    # Quaternion of the half angle: (1 + cos, axis sin) up to length.
    return _from_quaternion([1 + z[2], -z[1], z[0], Decimal(0)])


def _dot(a: Numbers, b: Numbers) -> Decimal:
    return sum((x * y for x, y in zip(a, b, strict=True)), Decimal(0))


def _cross(a: Numbers, b: Numbers) -> list[Decimal]:
    return [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]


def _unit(v: Numbers) -> list[Decimal]:
    length = _dot(v, v).sqrt()
    if not length:
        raise ValueError("the direction is zero")
    return [x / length for x in v]
