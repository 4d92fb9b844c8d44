"""Polynomials of degree five between points, as robot controllers interpolate, and their extremes.

Between two points with position, velocity and acceleration lies one polynomial of degree five per
joint; from a standstill to a standstill it is ``10 s^3 - 15 s^4 + 6 s^5`` times the way, s from 0
to 1. Its peak velocity is 1.875 and its peak acceleration 5.7735 times the way over the time and
over its square.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import numpy as np

from feasid.core.arrays import Array

if TYPE_CHECKING:
    from feasid.excitation.bounds import Bounds

PEAK_SPEED, PEAK_ACCELERATION = 1.875, 10.0 / np.sqrt(3.0)
"""Of the polynomial from standstill to standstill, in units of way and time."""

DEGREE = 5

FROM_ENDS = np.linalg.inv(
    [
        [1, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
        [0, 0, 2, 0, 0, 0],
        [1, 1, 1, 1, 1, 1],
        [0, 1, 2, 3, 4, 5],
        [0, 0, 2, 6, 12, 20],
    ]
)
"""Coefficients of powers of s from value and two derivatives at s = 0, then at s = 1."""


def quintic_segments(values: Array, step: Array) -> Array:
    """Coefficients of the polynomials between consecutive points.

    Parameters
    ----------
    values : ndarray, shape (3, points, dof)
        Position, velocity and acceleration [rad or m, per s, per s^2].
    step : ndarray, shape (points - 1,)
        Times between points [s].

    Returns
    -------
    ndarray, shape (6, points - 1, dof)
        Of 1, s, ..., s^5, s the time since a segment's start over its length.
    """
    units = step[None, :, None] ** np.arange(3)[:, None, None]
    ends = np.concatenate([values[:, :-1] * units, values[:, 1:] * units])
    return np.asarray(np.einsum("pk,ksj->psj", FROM_ENDS, ends))


def derivative(coefficients: Array) -> Array:
    """Coefficients (n - 1, ...) of the derivative by s of polynomials (n, ...)."""
    powers = np.arange(1, len(coefficients))
    return np.asarray(coefficients[1:] * powers.reshape(-1, *[1] * (coefficients.ndim - 1)))


def largest_values(coefficients: Array, ceiling: Array) -> Array:
    """The largest value of each polynomial for s from 0 to 1, exact where it may pass a ceiling.

    Parameters
    ----------
    coefficients : ndarray, shape (n, segments, dof)
    ceiling : ndarray, shape (dof,)

    Returns
    -------
    ndarray, shape (segments, dof)
        Where the largest Bernstein coefficient, which bounds a polynomial, is below the ceiling,
        that is returned.
    """
    order = len(coefficients) - 1
    bernstein = [[comb(i, k) / comb(order, k) if k <= i else 0.0 for k in range(order + 1)]
                 for i in range(order + 1)]  # fmt: skip
    out = np.asarray(np.einsum("ik,ksj->isj", bernstein, coefficients).max(axis=0))
    for segment, joint in np.argwhere(out > ceiling):
        own = np.polynomial.Polynomial(coefficients[:, segment, joint])
        turns = own.deriv().roots() if order > 1 else np.zeros(0)
        at = turns.real[(np.abs(turns.imag) < 1e-9) & (turns.real > 0) & (turns.real < 1)]
        out[segment, joint] = own(np.concatenate([[0.0, 1.0], at])).max()
    return out


def smallest_room(values: Array, step: Array, bounds: Bounds) -> tuple[float, str, int]:
    """The smallest margin of the joints' limits between points, its kind, and its joint.

    Parameters
    ----------
    values : ndarray, shape (3, points, dof)
        See `quintic_segments`.
    step : ndarray, shape (points - 1,)
        [s]
    bounds : Bounds

    Returns
    -------
    margin : float
        In units of half the range of the limit; negative where one is passed.
    kind : str
        "position", "velocity", "acceleration" or "jerk".
    joint : int
    """
    coefficients = quintic_segments(values, step)
    found = (np.inf, "position", 0)
    for kind, (low, high) in zip(("position", "velocity", "acceleration", "jerk"), bounds.linear,
                                 strict=True):  # fmt: skip
        half = np.where(np.isfinite(high - low), 0.5 * (high - low), 1.0)
        for sign, edge in ((1.0, high), (-1.0, -low)):
            room = (edge - largest_values(sign * coefficients, edge).max(axis=0)) / half
            joint = int(np.argmin(room))
            found = min(found, (float(room[joint]), kind, joint))
        coefficients = derivative(coefficients) / step[None, :, None]
    return found


def approach_times(way: Array, bounds: Bounds) -> Array:
    """Times that a way from standstill to standstill takes at least, shape (dof,) [s].

    Parameters
    ----------
    way : ndarray, shape (dof,)
        [rad or m]
    bounds : Bounds
        Of velocities and accelerations; see the module's docstring.
    """
    speed, push = (np.abs(x).min(axis=0) for x in (bounds.velocity, bounds.acceleration))
    return np.asarray(np.maximum(PEAK_SPEED * way / speed, np.sqrt(PEAK_ACCELERATION * way / push)))


def approach_motion(start: Array, end: Array, seconds: float, count: int) -> list[Array]:
    """Position and three derivatives on the way between two standstills, (dof, count) each.

    Parameters
    ----------
    start, end : ndarray, shape (dof,)
    seconds : float
    count : int
        Of times from the first to the last.
    """
    s = np.linspace(0, 1, count)
    own = np.polynomial.Polynomial([0, 0, 0, 10, -15, 6])
    way = (end - start)[:, None]
    first = start[:, None] + way * own(s)
    return [first, *(way * own.deriv(k)(s) / seconds**k for k in (1, 2, 3))]
