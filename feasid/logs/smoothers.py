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

from feasid.errors import InputError, did_you_mean
from feasid.logs.signals import Array, check_cutoff, first_difference, low_pass, second_difference

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
    check_method(method)
    if cutoff is None:
        return _differences(signal, derivatives, rate)
    check_cutoff(cutoff, rate)
    return METHODS[method](signal, derivatives, cutoff, rate)


def check_method(method: str) -> None:
    """Raise `InputError` for a method that does not exist."""
    if method not in METHODS:
        hint = did_you_mean(str(method), METHODS)
        raise InputError(f"no smoothing method {method!r}{hint}: one of {', '.join(METHODS)}")


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
    """Minimises sum (y - f)^2 + lam int f''^2, whose gain is 1 / (1 + lam w^4 / rate)."""
    from scipy.interpolate import make_smoothing_spline

    t = np.arange(len(signal)) / rate
    lam = rate / (2 * np.pi * cutoff) ** 4
    made = [np.empty_like(signal) for _ in range(derivatives + 1)]
    for column in range(signal.shape[1]):
        spline = make_smoothing_spline(t, signal[:, column], lam=lam)
        for k, out in enumerate(made):
            out[:, column] = spline(t, k)
    return tuple(made)


METHODS: dict[str, Callable[[Array, int, float, float], tuple[Array, ...]]] = {
    "butterworth": _butterworth,
    "savitzky-golay": _savitzky_golay,
    "spline": _spline,
}
