"""Three ways to smooth a signal and differentiate it, made comparable by one cut-off.

All have gain 1/2 at the cut-off, act without phase shift and work on one run sampled at a
constant rate, along the first axis.

=================  ===============================================================================
butterworth        third-order low-pass forwards and backwards, then central differences; section
                   5.2.2 of Sousa and Cortesao (2014)
savitzky-golay     local cubic polynomials and their derivatives
spline             cubic smoothing spline and its derivatives
=================  ===============================================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import InputError
from feasid.logs.signals.filters import check_cutoff, first_difference, low_pass, second_difference

DEGREE = 3
"""Degree of the local polynomials."""

HALF_GAIN = 1.275
"""cut-off * window = HALF_GAIN * rate: where a cubic Savitzky-Golay filter's gain is 1/2."""


def smooth(
    signal: Array, derivatives: int, cutoff: float | None, rate: float, method: str = "butterworth"
) -> tuple[Array, ...]:
    """The smoothed signal followed by its first so many derivatives.

    Parameters
    ----------
    signal : ndarray, shape (N, k)
    derivatives : int
        0, 1 or 2.
    cutoff : float or None
        Frequency of gain 1/2 [Hz]; None smooths nothing and differentiates by central differences.
    rate : float
        Sampling rate [Hz].
    method : {"butterworth", "savitzky-golay", "spline"}

    Returns
    -------
    tuple of ndarray, shape (N, k)
    """
    if cutoff is None:
        return _differences(signal, derivatives, rate)
    check_cutoff(cutoff, rate)
    return METHODS[method](signal, derivatives, cutoff, rate)


def _differences(signal: Array, derivatives: int, rate: float) -> tuple[Array, ...]:
    made = [signal]
    if derivatives > 0:
        made.append(first_difference(signal, rate))
    if derivatives > 1:
        made.append(second_difference(signal, rate))
    return tuple(made)


def _butterworth(signal: Array, derivatives: int, cutoff: float, rate: float) -> tuple[Array, ...]:
    return _differences(low_pass(signal, cutoff, rate), derivatives, rate)


def _savitzky_golay(
    signal: Array, derivatives: int, cutoff: float, rate: float
) -> tuple[Array, ...]:
    from scipy.signal import savgol_filter

    window = max(DEGREE + 2, round(HALF_GAIN * rate / (2 * cutoff)) * 2 + 1)
    window = min(window, (len(signal) - 1) // 2 * 2 + 1)
    return tuple(
        np.asarray(savgol_filter(signal, window, DEGREE, deriv=k, delta=1.0 / rate, axis=0))
        for k in range(derivatives + 1)
    )


def _spline(signal: Array, derivatives: int, cutoff: float, rate: float) -> tuple[Array, ...]:
    """Minimises sum (y - f)^2 + lam int f''^2, whose gain is 1 / (1 + lam w^4 / rate).

    Reinsch's equations for a natural cubic spline on an even grid with step h: the second
    derivatives g at the samples solve (R + lam Q'Q) g = Q'y with bands of width five, and
    f = y - lam Q g; Q takes second differences over h, R is h/6 (1, 4, 1).
    """
    from scipy.linalg import solveh_banded

    n, h = len(signal), 1.0 / rate
    if n < 5:
        raise InputError(f"cannot fit a smoothing spline to {n} samples: five are needed")
    weight = rate / (2 * np.pi * cutoff) ** 4
    bands = np.empty((3, n - 2))
    bands[0] = weight / h**2
    bands[1] = h / 6 - 4 * weight / h**2
    bands[2] = 2 * h / 3 + 6 * weight / h**2
    bend = np.zeros_like(signal)
    bend[1:-1] = solveh_banded(bands, np.diff(signal, 2, axis=0) / h)
    smoothed = signal.copy()
    smoothed[1:-1] -= weight / h * (bend[2:] - 2 * bend[1:-1] + bend[:-2])
    smoothed[0] -= weight / h * bend[1]
    smoothed[-1] -= weight / h * bend[-2]
    slope = np.empty_like(signal)
    slope[:-1] = np.diff(smoothed, axis=0) / h - h / 6 * (2 * bend[:-1] + bend[1:])
    slope[-1] = (smoothed[-1] - smoothed[-2]) / h + h / 6 * (bend[-2] + 2 * bend[-1])
    return (smoothed, slope, bend)[: derivatives + 1]


METHODS: dict[str, Callable[[Array, int, float, float], tuple[Array, ...]]] = {
    "butterworth": _butterworth,
    "savitzky-golay": _savitzky_golay,
    "spline": _spline,
}
