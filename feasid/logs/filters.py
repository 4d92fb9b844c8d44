"""Signal processing: zero-phase low-pass, central differences, cut-off from the spectrum.

Everything here works on one run sampled at a constant rate, along the first axis. Nothing knows
of columns, joints or gaps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError

ORDER = 3  #: Order of the Butterworth filter, as in section 5.2.2 of Sousa and Cortesao (2014).

LOWEST_CUTOFF = 5.0
"""Lowest automatic cut-off [Hz]: slower filters smear the reversals of friction of an arm."""

MARGIN = 5.0  #: The automatic cut-off is this many times the highest frequency of the motion.
POWER = 0.95  #: Share of the velocity's power that defines the highest frequency of the motion.
SIGNAL_TO_NOISE = 30.0  #: Power over the noise floor from which a frequency counts as motion.
HEADROOM = 3.0  #: The cut-off need not be higher than this many times the highest visible frequency
OCTAVE_FROM = 1.0  #: Gaps between lines of the spectrum may be an octave and this wide [Hz].
SMOOTHING = 9  #: Neighbouring frequencies over which a spectrum is summed before it is judged.
EXTENSION = 3  #: Periods of the cut-off over which the ends are extended.
SHORTEST = 64  #: Number of samples from which a spectrum is reliable.

WHOLE = 1e-6
"""A count this close above a whole number is that number: rates carry rounding of time stamps."""

HIGHEST_SHARE = 0.2  #: The automatic cut-off stays below this share of the sampling rate.


def settling_samples(cutoff: float, rate: float) -> int:
    """Samples after which the filter has forgotten its start: one period of the cut-off.

    The slowest poles of the third-order filter decay with time constant ``1 / (pi cutoff)``, so
    that one period leaves exp(-pi) = 4 % of what the extension at the ends got wrong.
    """
    return int(np.ceil(rate / cutoff - WHOLE))


def low_pass(signal: Array, cutoff: float, rate: float) -> Array:
    """Zero-phase Butterworth low-pass along the first axis.

    Filtered forwards and backwards, so that the phase is not distorted and the gain at the
    cut-off is 1/2, section 5.2.2 of Sousa and Cortesao (2014). The ends are extended by point
    reflection over three periods of the cut-off, or as far as there are samples.
    """
    from scipy.signal import butter, sosfiltfilt

    check_cutoff(cutoff, rate)
    if len(signal) < 3:
        raise InputError(f"cannot filter {len(signal)} samples: three are needed")
    sections = butter(ORDER, cutoff, fs=rate, output="sos")
    extension = min(len(signal) - 2, EXTENSION * settling_samples(cutoff, rate))
    return np.asarray(sosfiltfilt(sections, signal, axis=0, padlen=extension), dtype=np.float64)


def check_cutoff(cutoff: float, rate: float, what: str = "the cut-off") -> None:
    """Raise `InputError` unless ``0 < cutoff < rate / 2``."""
    if not (np.isfinite(cutoff) and 0 < cutoff < rate / 2):
        raise InputError(
            f"{what} must lie between 0 and half the sampling rate, {rate / 2:.4g} Hz, but is "
            f"{cutoff!r} Hz",
            cutoff=cutoff,
            rate=rate,
        )


def first_difference(signal: Array, rate: float) -> Array:
    """Second-order central first derivative; one-sided of second order at the two ends."""
    out = np.empty_like(signal)
    np.subtract(signal[2:], signal[:-2], out=out[1:-1])
    out[0] = -3.0 * signal[0] + 4.0 * signal[1] - signal[2]
    out[-1] = 3.0 * signal[-1] - 4.0 * signal[-2] + signal[-3]
    out *= rate / 2.0
    return out


def second_difference(signal: Array, rate: float) -> Array:
    """Second-order central second derivative; the ends repeat their neighbours."""
    out = np.empty_like(signal)
    out[1:-1] = signal[2:] - 2.0 * signal[1:-1] + signal[:-2]
    out[0], out[-1] = out[1], out[-2]
    out *= rate * rate
    return out


@dataclass(frozen=True)
class Cutoff:
    """A cut-off frequency [Hz] and how it came about."""

    frequency: float
    reason: str


def choose_cutoff(positions: Array, rate: float) -> Cutoff:
    """Choose the low-pass cut-off from the spectrum of the joint positions.

    Per joint, the spectrum of the velocity (differences of q, Hann window, smoothed over
    neighbouring frequencies) is compared with the noise floor of the position (median of its
    upper half). The motion's highest frequency is the one below which 95 % of the velocity's
    power lies, counting only frequencies that stand out from the noise; the cut-off is five
    times the highest of all joints, at least 5 Hz, at most three times the frequency
    where the last joint sinks into the noise, and a fifth of the sampling rate.

    `positions` (N, dof): one run, sampled at `rate` [Hz].
    """
    ceiling = HIGHEST_SHARE * rate
    bands, n = [], len(positions) - 1
    for steps in np.diff(positions, axis=0).T if n >= SHORTEST else ():
        frequencies = np.fft.rfftfreq(n, 1.0 / rate)[1:]
        power = np.abs(np.fft.rfft(steps * np.hanning(n)))[1:] ** 2
        power = np.convolve(np.pad(power, SMOOTHING // 2, mode="edge"), np.ones(SMOOTHING), "valid")
        # White noise of positions, whose differences were taken.
        noise_shape = np.sin(np.pi * frequencies / rate) ** 2
        high = frequencies > rate / 4
        floor = float(np.median(power[high] / noise_shape[high]))
        stands_out = power > SIGNAL_TO_NOISE * floor * noise_shape
        if not stands_out.any():
            continue
        excited = frequencies[stands_out]
        # Lines of a periodic motion leave gaps; what stands out an octave further is no motion.
        breaks = np.flatnonzero(excited[1:] > 2 * excited[:-1] + OCTAVE_FROM)
        last = float(excited[breaks[0]] if breaks.size else excited[-1])
        share = np.cumsum(np.where(stands_out & (frequencies <= last), power, 0.0))
        highest = frequencies[int(np.searchsorted(share, POWER * share[-1]))]
        bands.append((float(highest), last))
    if not bands:
        return Cutoff(min(LOWEST_CUTOFF, ceiling), "no joint moves above its noise")
    motion = max(highest for highest, _ in bands)
    visible = max(limit for _, limit in bands)
    cutoff = max(MARGIN * motion, LOWEST_CUTOFF)
    frequency = min(cutoff, max(HEADROOM * visible, LOWEST_CUTOFF), ceiling)
    if frequency == ceiling:
        why = f"a fifth of the sampling rate {rate:.4g} Hz"
    elif frequency < cutoff:
        why = "where the motion sinks into the noise"
    elif frequency == LOWEST_CUTOFF:
        why = f"the least that keeps friction's reversals; the motion ends at {motion:.3g} Hz"
    else:
        why = f"{MARGIN:g} times the motion's highest frequency {motion:.3g} Hz"
    return Cutoff(float(f"{frequency:.2g}"), why)  # nobody quotes a cut-off of 16.6667 Hz


def smooth_and_differentiate(
    signal: Array, derivatives: int, cutoff: float | None, rate: float
) -> tuple[Array, ...]:
    """The smoothed signal (N, k) and its first so many derivatives; None smooths nothing."""
    smoothed = signal if cutoff is None else low_pass(signal, cutoff, rate)
    differences = (first_difference, second_difference)[:derivatives]
    return (smoothed, *(difference(smoothed, rate) for difference in differences))
