"""One and the same low-pass on both sides of the equations, computed only where rows are kept.

With F any linear filter along time, ``tau = W beta + noise`` gives ``F tau = (F W) beta + F noise``
for the same beta, also where the columns of W jump, as Coulomb friction does; filtering the torque
alone breaks that. After a low-pass neighbouring rows say the same, so few are kept (parallel
filtering and decimation, Gautier 1997). The filter is a Gaussian: of all filters with this
bandwidth it needs the shortest time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.signal import oaconvolve

from feasid.core.arrays import Array
from feasid.logs.filters import check_cutoff
from feasid.logs.motion import Motion

HALF_GAIN = np.sqrt(np.log(2) / 2) / np.pi
"""cut-off * standard deviation in time, where the gain is 1/2."""

CUT = 1e-4  #: Share of its peak at which the Gaussian is cut.

DENSITY = 2.6
"""Rows kept per second and Hz of the cut-off: the filter's gain at half that rate is .31."""

WHITE_CORRELATION = float(
    1 + 2 * np.exp(-((np.arange(1, 9) / (2 * DENSITY * HALF_GAIN)) ** 2)).sum()
)
"""Rows per independent row behind the low-pass where the noise before it was white: 1.73."""

OVERSAMPLED = 6.0
"""Samples per period of the highest frequency from which a smooth signal's filtered values are
those of all samples: at 1 kHz behind 40 Hz every fourth changes base parameters by 2e-6."""

LONGEST = 2.0**40
"""Samples beyond which no window reaches: longer than any log, and still a number of samples."""

TILE = 8
"""Rows per product: larger ones multiply more zeros, smaller ones call more often (measured)."""


@dataclass(frozen=True, eq=False)
class DecimatingFilter:
    """Weights of the samples around a kept row, and samples from one such row to the next."""

    taps: Array
    spacing: int

    @cached_property
    def _tile_weights(self) -> Array:
        """Weights of TILE consecutive rows, shape (samples, TILE)."""
        band = np.zeros(((TILE - 1) * self.spacing + len(self.taps), TILE))
        for k in range(TILE):
            band[k * self.spacing : k * self.spacing + len(self.taps), k] = self.taps
        return band

    def filter_rows(self, block: Array, count: int) -> Array:
        """Filtered values (k, count) of a block (k, samples) that begins with the first weight."""
        out = np.empty((block.shape[0], count))
        for k in range(0, count, TILE):
            tile = min(TILE, count - k)
            first = k * self.spacing
            width = (tile - 1) * self.spacing + len(self.taps)
            weights = self._tile_weights[:width, :tile]
            out[:, k : k + tile] = block[:, first : first + width] @ weights
        return out


@dataclass(frozen=True)
class GaussianLowPass:
    """A Gaussian low-pass with gain 1/2 at `cutoff` for signals sampled at `rate` [Hz]."""

    cutoff: float
    rate: float

    def __post_init__(self) -> None:
        check_cutoff(self.cutoff, self.rate, "the equations' cut-off")

    @cached_property
    def half_width(self) -> int:
        """Samples on either side of a row."""
        reach = float(HALF_GAIN / self.cutoff * np.sqrt(-2 * np.log(CUT)))
        return max(1, round(min(reach * self.rate, LONGEST)))

    @cached_property
    def spacing(self) -> int:
        """Samples from one kept row to the next."""
        return max(1, round(min(self.rate / DENSITY / self.cutoff, LONGEST)))

    @cached_property
    def taps(self) -> Array:
        """Weights of the samples around a row, shape (2 half + 1,); they add up to 1."""
        at = np.arange(-self.half_width, self.half_width + 1) / self.rate
        w = np.exp(-0.5 * (at * self.cutoff / HALF_GAIN) ** 2)
        return np.asarray(w / w.sum())

    def decimating_filter(self, every: int = 1) -> DecimatingFilter:
        """The low-pass of signals of which only every n-th sample is given."""
        # Counted from the middle of the window; every n-th of the weights adds up to 1 anew.
        taps = self.taps[self.half_width % every :: every]
        return DecimatingFilter(taps / taps.sum(), self.spacing // every)

    @cached_property
    def derivative_filter(self) -> DecimatingFilter:
        """The derivative of the filtered signal [1 / s]: the Gaussian's own, by parts."""
        at = np.arange(-self.half_width, self.half_width + 1) / self.rate
        return DecimatingFilter(at * (self.cutoff / HALF_GAIN) ** 2 * self.taps, self.spacing)

    def largest_decimation(self, band: float | None) -> int:
        """Largest decimation of a signal behind a low-pass at `band` [Hz].

        A divisor of `spacing`, so that kept rows fall on samples that are taken.
        """
        most = 1 if band is None else int(self.rate / (OVERSAMPLED * band))
        return max((m for m in range(1, most + 1) if self.spacing % m == 0), default=1)

    def kept_rows(
        self, samples: int, anchor: int = 0, own: tuple[int, int] | None = None
    ) -> npt.NDArray[np.intp]:
        """Rows that are kept of a run with this number of samples; windows lie inside it.

        `anchor`: place of the run's first sample in its log: kept rows are multiples of `spacing`
        there, so that a log read in pieces keeps the rows of one read whole; `own`: only rows in
        this range; the others are surroundings.
        """
        first, last = (0, samples) if own is None else own
        low, high = max(self.half_width, first), min(samples - self.half_width, last)
        if low >= high:
            return np.zeros(0, dtype=np.intp)
        return np.arange(low + (-(anchor + low)) % self.spacing, high, self.spacing)

    def row_groups(
        self, samples: int, chunk: int, anchor: int = 0, own: tuple[int, int] | None = None
    ) -> Iterator[npt.NDArray[np.intp]]:
        """The kept rows in groups of whole tiles, each within about `chunk` samples."""
        centres = self.kept_rows(samples, anchor, own)
        # Groups share a window of samples: at least five windows long, they form little twice.
        width = 2 * self.half_width + 1
        size = TILE * max(1, (max(chunk, 6 * width) - width) // (TILE * self.spacing))
        for start in range(0, len(centres), size):
            yield centres[start : start + size]


def low_pass_motion(motion: Motion) -> Motion:
    """The signals of a motion behind the low-pass that its equations are to go through.

    Filtered signals fulfil the filtered equations only if the motion is slow compared with the
    cut-off and friction is smooth. They are good for plots, not for fits.

    `motion`: returned as it is when its signals were filtered already, or nothing is. Returns:
    without the samples at the ends of runs that the window does not cover, which the fit does not
    use either.
    """
    if motion.filtering != "equations" or not motion.cutoff:
        return motion
    runs = []
    for run in motion.runs:
        window = GaussianLowPass(motion.cutoff, run.rate)
        half = window.half_width
        if len(run) <= 2 * half:
            continue
        signals: dict[str, Any] = {
            kind: oaconvolve(getattr(run, kind), window.taps[:, None], mode="valid", axes=0)
            for kind in ("q", "dq", "ddq", "tau", "applied")
            if getattr(run, kind) is not None
        }
        # What counts samples of the run as it was (`own`, `live`) does not hold for the rest.
        inside = slice(half, len(run) - half)
        part = replace(run, rows=run.rows[inside], t=run.t[inside], **signals, own=None, live=None)
        runs.append(part)
    return replace(motion, runs=tuple(runs), filtering="signals")
