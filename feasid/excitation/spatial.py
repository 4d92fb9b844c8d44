"""Spatial vectors of many samples and nodes.

Vectors are Featherstone's, angular part first: arrays whose first axis holds the components and
whose last two are samples N and nodes n.
"""

from __future__ import annotations

import numpy as np

from feasid.core.arrays import Array


def cross(a: Array, b: Array) -> Array:
    """``a x b`` of vectors (3, ...)."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    _cross_into(a, b, out)
    return out


def _cross_into(a: Array, b: Array, out: Array) -> None:
    for r in range(3):
        i, k = (r + 1) % 3, (r + 2) % 3
        np.multiply(a[i], b[k], out=out[r])
        out[r] -= a[k] * b[i]


def motion_cross(v: Array, x: Array) -> Array:
    """``v x x`` of two motion vectors."""
    out = np.empty(np.broadcast_shapes(v.shape, x.shape))
    _cross_into(v[:3], x[:3], out[:3])
    _cross_into(v[:3], x[3:], out[3:])
    out[3:] += cross(v[3:], x[:3])
    return out


def force_cross(v: Array, f: Array) -> Array:
    """``v x* f`` of a motion and a force vector: ``-(v x)' f``."""
    out = np.empty(np.broadcast_shapes(v.shape, f.shape))
    _cross_into(v[:3], f[:3], out[:3])
    _cross_into(v[:3], f[3:], out[3:])
    out[:3] += cross(v[3:], f[3:])
    return out


def dot(a: Array, b: Array) -> Array:
    """Sum over the vectors' entries."""
    return np.asarray((a * b).sum(axis=0))


def rotated(turn: Array, x: Array) -> Array:
    """``R x`` for rotations (3, 3, N, n) and vectors (3, ..., N, n)."""
    out = np.empty_like(x)
    for r in range(3):
        np.multiply(turn[r, 0], x[0], out=out[r])
        out[r] += turn[r, 1] * x[1]
        out[r] += turn[r, 2] * x[2]
    return out


def rotated_back(turn: Array, x: Array) -> Array:
    """``R' x``."""
    return rotated(turn.swapaxes(0, 1), x)
