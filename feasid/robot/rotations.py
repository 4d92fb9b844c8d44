"""Rotation matrices from the angles that description files use, and exponentials of twists."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from feasid.arrays import Array
from feasid.exact.poses import quarter_turns
from feasid.robot import inertia

_QUARTERS = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))


def cos_sin(angle: float) -> tuple[float, float]:
    """Cosine and sine, exactly 0 and +-1 for multiples of 90 degrees."""
    quarter = quarter_turns(angle)
    return (math.cos(angle), math.sin(angle)) if quarter is None else _QUARTERS[quarter]


def about(axis: int, angle: float) -> Array:
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
    out: Array = about(2, yaw) @ about(1, pitch) @ about(0, roll)
    return out + 0.0  # no negative zeros


def is_signed_permutation(rotation: Array) -> bool:
    """Whether every entry is exactly 0 or +-1, so that turning by it does not round."""
    return bool(np.isin(rotation, (-1.0, 0.0, 1.0)).all())


def exponential(twist: Array) -> tuple[Array, Array]:
    """Exponential of a twist (angular, linear): rotation and position of the moved frame."""
    angular, linear = twist[:3], twist[3:]
    angle = float(np.linalg.norm(angular))
    if angle == 0.0:
        return np.eye(3), linear.copy()
    cross = inertia.skew(angular / angle)
    eye = np.eye(3)
    rotation = eye + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
    share = eye + (1 - np.cos(angle)) / angle * cross + (1 - np.sin(angle) / angle) * cross @ cross
    return rotation, share @ linear
