"""One and the same low-pass on both sides of the equations, computed only where rows are kept.

With F any linear filter along time, ``tau = W beta + noise`` gives ``F tau = (F W) beta + F noise``
for the same beta, also where the columns of W jump, as Coulomb friction does; filtering the torque
alone breaks that. After a low-pass neighbouring rows say the same, so few are kept (parallel
filtering and decimation, Gautier 1997). The filter is a Gaussian: of all with this bandwidth it
needs the shortest stretch of time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from feasid.arrays import Array
from feasid.errors import InputError

HALF_GAIN = np.sqrt(np.log(2) / 2) / np.pi
"""cut-off * standard deviation in time, where the gain is 1/2."""

CUT = 1e-4
"""Share of its peak at which the Gaussian is cut."""

DENSITY = 2.6
"""Rows kept per second and Hz of the cut-off: the filter's gain at half that rate is .31."""

TILE = 8
"""Rows per product: larger ones multiply more zeros, smaller ones call more often (measured)."""


@dataclass(frozen=True)
class Window:
    """A Gaussian low-pass with gain 1/2 at `cutoff` for signals sampled at `rate` [Hz].

    Raises
    ------
    InputError
        When the cut-off is not below half the rate.
    """

    cutoff: float
    rate: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.cutoff) and 0 < self.cutoff < self.rate / 2):
            raise InputError(
                f"the equations' cut-off must lie between 0 and half the sampling rate, "
                f"{self.rate / 2:.4g} Hz, but is {self.cutoff!r} Hz",
                cutoff=self.cutoff,
                rate=self.rate,
            )

    @cached_property
    def half(self) -> int:
        """Samples on either side of a row's own."""
        reach = float(HALF_GAIN / self.cutoff * np.sqrt(-2 * np.log(CUT)))
        return max(1, round(reach * self.rate))

    @cached_property
    def spacing(self) -> int:
        """Samples from one kept row to the next."""
        return max(1, round(self.rate / (DENSITY * self.cutoff)))

    @cached_property
    def taps(self) -> Array:
        """Weights of the samples around a row, shape (2 half + 1,); they add up to 1."""
        at = np.arange(-self.half, self.half + 1) / self.rate
        w = np.exp(-0.5 * (at * self.cutoff / HALF_GAIN) ** 2)
        return np.asarray(w / w.sum())

    @cached_property
    def _band(self) -> Array:
        return self._banded(self.taps)

    @cached_property
    def _slope_band(self) -> Array:
        """The derivative of the filtered signal [1 / s]: the Gaussian's own, by parts."""
        at = np.arange(-self.half, self.half + 1) / self.rate
        return self._banded(at * (self.cutoff / HALF_GAIN) ** 2 * self.taps)

    def _banded(self, taps: Array) -> Array:
        """Weights of TILE consecutive rows, shape (samples, TILE)."""
        band = np.zeros(((TILE - 1) * self.spacing + len(taps), TILE))
        for k in range(TILE):
            band[k * self.spacing : k * self.spacing + len(taps), k] = taps
        return band

    def centres(
        self, samples: int, anchor: int = 0, own: tuple[int, int] | None = None
    ) -> npt.NDArray[np.intp]:
        """Rows that are kept of a run of so many samples; the windows lie inside it.

        Parameters
        ----------
        samples : int
        anchor : int
            Place of the run's first sample in its log: kept rows are multiples of `spacing`
            there, so that a log read in pieces keeps the rows of one read whole.
        own : (int, int), optional
            Only rows in this range; the others are surroundings.
        """
        first, last = (0, samples) if own is None else own
        low, high = max(self.half, first), min(samples - self.half, last)
        if low >= high:
            return np.zeros(0, dtype=np.intp)
        start = low + (-(anchor + low)) % self.spacing
        return np.arange(start, high, self.spacing)

    def groups(
        self, samples: int, chunk: int, anchor: int = 0, own: tuple[int, int] | None = None
    ) -> Iterator[npt.NDArray[np.intp]]:
        """The kept rows in groups of whole tiles, each within about `chunk` samples."""
        centres = self.centres(samples, anchor, own)
        width = 2 * self.half + 1
        room = max(chunk, 6 * width) - width
        size = TILE * max(1, room // (TILE * self.spacing))
        for start in range(0, len(centres), size):
            yield centres[start : start + size]

    def rows(self, block: Array, count: int) -> Array:
        """Filtered values at `count` rows of a block that starts `half` before the first.

        Parameters
        ----------
        block : ndarray, shape (k, (count - 1) spacing + 2 half + 1)
        count : int

        Returns
        -------
        ndarray, shape (k, count)
        """
        return self._through(self._band, block, count)

    def slopes(self, block: Array, count: int) -> Array:
        """Time derivatives of the filtered values, as `rows` returns these."""
        return self._through(self._slope_band, block, count)

    def _through(self, band: Array, block: Array, count: int) -> Array:
        out = np.empty((block.shape[0], count))
        for k in range(0, count, TILE):
            tile = min(TILE, count - k)
            first = k * self.spacing
            width = (tile - 1) * self.spacing + len(self.taps)
            out[:, k : k + tile] = block[:, first : first + width] @ band[:width, :tile]
        return out
