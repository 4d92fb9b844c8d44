"""An even grid: samples put where their own time stamps say, short gaps bridged.

Filters and differences need even steps, clocks deliver others. Stamps that lie on a grid up to
their own rounding are put on it as they are; stamps that do not are interpolated, and so are
samples that are missing: positions by cubic splines, whose error is of fourth order in the step,
torques linearly, because nothing is known of them between samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array

EVEN = 0.02
"""Stamps this close to the grid, as a share of the step, lie on it."""

QUANTUM = 1e-7
"""Resolution [s] below which nobody rounds time stamps on purpose."""

FEWEST = 4
"""Samples from which a cubic can be drawn."""

SMOOTH = ("q", "dq", "ddq")
"""Kinds of signals that are drawn through their samples by cubic splines."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Where the even samples of a stretch come from.

    Attributes
    ----------
    t : ndarray, shape (M,)
        Even times [s].
    nearest : ndarray of int, shape (M,)
        Sample of the stretch that is closest to each.
    bridged : int
        Times of the grid that have no sample of their own.
    uneven : bool
        Whether the stamps leave the grid by more than their rounding, so that every sample is
        interpolated.
    """

    t: Array
    nearest: npt.NDArray[np.intp]
    bridged: int
    uneven: bool
    stamps: Array

    def put(self, kind: str, signal: Array) -> Array:
        """A signal of the stretch, shape (N, k), on the grid, shape (M, k)."""
        if not self.bridged and not self.uneven:
            return signal
        if kind in SMOOTH and len(self.stamps) >= FEWEST:
            from scipy.interpolate import CubicSpline

            return np.asarray(CubicSpline(self.stamps, signal, axis=0)(self.t))
        columns = [np.interp(self.t, self.stamps, x) for x in signal.T]
        return np.stack(columns, axis=1)

    def put_all(self, signals: Mapping[str, Array]) -> dict[str, Array]:
        """Every kind of signal on the grid."""
        return {kind: self.put(kind, x) for kind, x in signals.items()}


def even_grid(t: Array) -> Grid:
    """The even grid of increasing time stamps t, shape (N,), at their median step [s]."""
    n = len(t)
    if n < 2:
        return Grid(t, np.zeros(n, dtype=np.intp), 0, False, t)
    steps = np.diff(t)
    median = float(np.median(steps))
    places = np.concatenate([[0], np.cumsum(np.maximum(1, np.rint(steps / median)))])
    slope, start = _line(places, t)
    off = float(np.abs(t - start - slope * places).max())
    if off <= max(EVEN * slope, _resolution(steps)):
        even = np.asarray(start + slope * np.arange(int(places[-1]) + 1), dtype=np.float64)
        stamps, uneven = np.asarray(start + slope * places, dtype=np.float64), False
    else:
        count = max(1, round((t[-1] - t[0]) / slope))
        even = np.asarray(t[0] + (t[-1] - t[0]) / count * np.arange(count + 1))
        stamps, uneven = t, True
    right = np.clip(np.searchsorted(stamps, even), 1, n - 1)
    nearest = right - (even - stamps[right - 1] < stamps[right] - even)
    bridged = max(0, len(even) - n)
    return Grid(even, nearest.astype(np.intp), bridged, uneven, stamps)


def _line(x: Array, y: Array) -> tuple[float, float]:
    """Slope and intercept of the least-squares line."""
    u = x - x.mean()
    slope = float(u @ (y - y.mean()) / (u @ u))
    return slope, float(y.mean() - slope * x.mean())


def _resolution(steps: Array) -> float:
    """The unit in which stamps were rounded [s]; 0 when steps show none."""
    distinct = np.unique(np.rint(steps / QUANTUM))
    if not 1 < len(distinct) <= max(3, len(steps) // 10):
        return 0.0
    unit = float(np.diff(distinct).min())
    whole = np.abs(distinct / unit - np.rint(distinct / unit)) < EVEN
    return unit * QUANTUM if whole.all() else 0.0
