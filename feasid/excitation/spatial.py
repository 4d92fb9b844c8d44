"""Spatial vectors of many samples and the bilinear form x' I(delta) y, with its adjoints.

Vectors are Featherstone's, angular part first, arrays of shape (6, ..., N), samples last. The form
x' I(delta) y of a body's spatial inertia is linear in its ten parameters: `pair` gives their ten
coefficients, and for coefficients' weights G the same form read as ``x' I(G) y`` gives its
gradients, so that one function, `apply_inertia`, is all that going backwards needs.
"""

from __future__ import annotations

import numpy as np

from feasid.arrays import Array
from feasid.robot.inertia import UPPER


def cross(a: Array, b: Array) -> Array:
    """``a x b`` of vectors (3, ..., N)."""
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


def pair(x: Array, y: Array) -> Array:
    """Coefficients of the ten parameters in ``x' I(delta) y``, shape (10, ..., N)."""
    out = np.empty((10, *np.broadcast_shapes(x.shape[1:], y.shape[1:])))
    for k, (r, c) in enumerate(UPPER):
        np.multiply(x[r], y[c], out=out[k])
        if r != c:
            out[k] += x[c] * y[r]
    _cross_into(y[3:], x[:3], out[6:9])
    out[6:9] += cross(x[3:], y[:3])
    out[9] = dot(x[3:], y[3:])
    return out


def apply_inertia(ten: Array, x: Array) -> Array:
    """``I(ten) x`` for parameters of shape (10, ..., N)."""
    out = np.empty((6, *np.broadcast_shapes(ten.shape[1:], x.shape[1:])))
    xx, xy, xz, yy, yz, zz = ten[:6]
    first, mass = ten[6:9], ten[9]
    _cross_into(first, x[3:], out[:3])
    for r, row in enumerate(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))):
        for entry, component in zip(row, x[:3], strict=True):
            out[r] += entry * component
    _cross_into(x[:3], first, out[3:])
    out[3:] += mass * x[3:]
    return out
