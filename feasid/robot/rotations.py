"""Rotation matrices from the angles that description files use, and exponentials of twists."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from feasid.core.arrays import Array
from feasid.core.exact.poses import quarter_turns
from feasid.robot import inertia

_QUARTERS = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))
"""Cosine and sine of 0, 90, 180 and 270 degrees."""


def cos_sin(angle: float) -> tuple[float, float]:
    """Cosine and sine, exactly 0 and +-1 for multiples of 90 degrees."""
    quarter = quarter_turns(angle)
    return (math.cos(angle), math.sin(angle)) if quarter is None else _QUARTERS[quarter]


def axis_rotation(axis: int, angle: float) -> Array:
    """Rotation about a coordinate axis (0, 1, 2) by an angle [rad]; shape (3, 3)."""
    c, s = cos_sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    out = np.eye(3)
    out[i, i] = out[j, j] = c
    out[j, i], out[i, j] = s, -s
    return out


def from_rpy(rpy: Sequence[float]) -> Array:
    """URDF's fixed-axis roll, pitch, yaw: Rz(yaw) Ry(pitch) Rx(roll); shape (3, 3)."""
    roll, pitch, yaw = rpy
    out: Array = axis_rotation(2, yaw) @ axis_rotation(1, pitch) @ axis_rotation(0, roll)
    return out + 0.0  # no negative zeros


def to_quaternion(rotation: Array) -> Array:
    """Unit quaternions (w, x, y, z) of rotations, w >= 0; shape (..., 3, 3) to (..., 4)."""
    r = np.moveaxis(np.asarray(rotation, dtype=np.float64), (-2, -1), (0, 1))
    # Four times the products of the quaternion's entries; the row of the largest diagonal entry is
    # safe (Shepperd).
    products = np.empty((4, 4, *r.shape[2:]))
    products[0, 0] = 1 + r[0, 0] + r[1, 1] + r[2, 2]
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        products[i + 1, i + 1] = 1 + r[i, i] - r[j, j] - r[k, k]
        products[0, i + 1] = products[i + 1, 0] = r[k, j] - r[j, k]
        products[i + 1, j + 1] = products[j + 1, i + 1] = r[j, i] + r[i, j]
    largest = np.argmax(np.einsum("ii...->i...", products), axis=0)
    row = np.take_along_axis(products, largest[None, None], axis=0)[0]
    row = row / np.linalg.norm(row, axis=0)
    return np.moveaxis(np.where(row[0] < 0, -row, row), 0, -1)


def compose(
    rotation: Array, position: Array, inner_rotation: Array, inner_position: Array
) -> tuple[Array, Array]:
    """Pose (rotation, position) of a frame given in another frame that itself has a pose."""
    return rotation @ inner_rotation, position + rotation @ inner_position


def exponential(twist: Array) -> tuple[Array, Array]:
    """Exponential of a twist (angular, linear): rotation and position of the moved frame."""
    turn, shift = exponentials(twist[:, None])
    return turn[..., 0], shift[..., 0]


def exponentials(xi: Array) -> tuple[Array, Array]:
    """Rotation (3, 3, N) and displacement (3, N) of the twists xi (6, N), angular part first.

    Near zero angle the coefficients are their Taylor series, exact to rounding.
    """
    w, v = xi[:3], xi[3:]
    square = np.einsum("in,in->n", w, w)
    angle = np.sqrt(square)
    small = angle < 1e-4
    # `np.where` computes both branches: small angles must not divide by zero.
    safe = np.where(small, 1.0, angle)
    a = np.where(small, 1 - square / 6, np.sin(safe) / safe)
    b = np.where(small, 0.5 - square / 24, (1 - np.cos(safe)) / safe**2)
    c = np.where(small, 1 / 6 - square / 120, (safe - np.sin(safe)) / safe**3)
    cross = np.moveaxis(inertia.skew(w.T), 0, -1)
    cross2 = np.einsum("ijn,jkn->ikn", cross, cross)
    eye = np.eye(3)[:, :, None]
    return eye + a * cross + b * cross2, np.einsum("ijn,jn->in", eye + b * cross + c * cross2, v)


def from_quaternion(q: Array) -> Array:
    """Rotation of a quaternion (w, x, y, z) of any length, shape (3, 3)."""
    w, x, y, z = (float(v) for v in np.asarray(q) / np.linalg.norm(q))
    cross = inertia.skew([x, y, z])
    out: Array = np.eye(3) + 2 * w * cross + 2 * cross @ cross
    return out
