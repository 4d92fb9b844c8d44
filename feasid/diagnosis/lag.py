"""Diagnosis of a delay between torques and motion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from feasid.core.arrays import Array
from feasid.diagnosis.findings import Finding
from feasid.diagnosis.free import Free
from feasid.diagnosis.hypothesis import EXPLAINED, OBJECTION
from feasid.diagnosis.screen import Screen

LAG_WINDOW = 0.12
"""Lags up to this are looked at [s]."""

LAG_LEAST = 0.012
"""Shorter lags are not reported [s], nor those below one and a half samples."""

FEWEST = 1.5

LAG_GAIN = 0.05
"""Mean logarithmic gain of the residuals that a lag must bring."""

SHARP, SHARP_AT = 0.08, 0.02
"""Base parameters tell a lag when their residuals rise by this logarithm at so many seconds."""

SMALLEST = 1e-4
"""Residuals below this are as good as zero."""


def lag(screen: Screen, free: Free, names: Sequence[str]) -> list[Finding]:
    """The delay of all torques on which the joints agree.

    A joint's own base parameters tell it to a few milliseconds when the motion is lively, and
    bend themselves around it when it is slow; then the description has to tell.
    """
    samples = free.samples
    if samples.reach == 0:
        return []
    curves = _understood(free.delayed())
    if not _sharp(curves, samples.reach, SHARP_AT * samples.rate):
        curves = _understood(screen.delayed())
    if not len(curves):
        return []
    fine = _agreed(curves, samples.reach)
    place = samples.reach + round(fine)
    seconds = float(fine / samples.rate)
    gains = curves[:, samples.reach] - curves[:, place]
    gain = float(gains.mean())
    if gains.min() < -np.log(OBJECTION) or np.median(gains) < LAG_GAIN / 2:
        return []
    if abs(fine) < FEWEST or abs(seconds) < LAG_LEAST or gain < LAG_GAIN:
        return []
    who = "behind" if seconds > 0 else "ahead of"
    return [
        Finding(
            "lag",
            "warning",
            f"the torques are {abs(seconds) * 1e3:.3g} ms ({abs(fine):.1f} samples) {who} the "
            f"motion; without that lag residuals shrink by {1 - np.exp(-gain):.0%}",
            f"delay={-seconds:.3g}",
            options={"delay": -round(seconds, 6)},
            values={"lag": seconds, "gain": gain},
        )
    ]


def _understood(residuals: Array) -> Array:
    """Logarithms of the curves, of joints that are explained at some lag."""
    curves = np.log(np.maximum(residuals, SMALLEST))
    return np.asarray(curves[curves.min(axis=1) < np.log(EXPLAINED)])


def _sharp(curves: Array, reach: int, width: float) -> bool:
    """Whether the mean of the curves rises on both sides of its lowest point."""
    if not len(curves):
        return False
    mean, w = curves.mean(axis=0), max(1, round(width))
    best = int(np.argmin(mean))
    if not w <= best < len(mean) - w:
        return False
    return bool(min(mean[best - w], mean[best + w]) > mean[best] + SHARP)


def _agreed(curves: Array, reach: int) -> float:
    """Lag [samples] at which the mean of the curves is lowest; 0 at either end."""
    mean = curves.mean(axis=0)
    k = int(np.argmin(mean))
    if k in (0, len(mean) - 1):
        return 0.0
    bend = mean[k - 1] - 2 * mean[k] + mean[k + 1]
    return k - reach + (0.5 * float(mean[k - 1] - mean[k + 1]) / float(bend) if bend > 0 else 0.0)
