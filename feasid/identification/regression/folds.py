"""Sums of a log that later choices need, without its rows.

Per joint one triangle for every class of slowness and every fold of time, so that rows can be
weighted and segments held out afterwards; second moments of rows some way apart, from which the
autocorrelation of any estimate's residual follows; and a triangle of the same rows before they were
filtered. Rows end with the torque and its time derivative, so that torques can be shifted against
the motion by a fraction of a sample. All of it adds, log by log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dtpqrt  # here: a library loaded later escapes `one_thread`

from feasid.core.arrays import Array
from feasid.core.errors import LogError
from feasid.core.threads import is_limited
from feasid.logs.motion import SIGNAL_RATE, Run, even_speeds

PANEL_WORK = 2**19
"""Largest samples x columns x panel of a Householder update where BLAS has threads. Beyond it the
library starts them for products that are too small to gain (measured: 10 times slower)."""

PANELS = (4, 8)  #: Fewest and most columns per panel.


def absorb_rows(triangle: Array, block: Array) -> None:
    """Triangle of [triangle; block], in place; both Fortran-ordered, block is destroyed."""
    panel = PANELS[1]
    if not is_limited():
        work = max(1, block.shape[0]) * triangle.shape[0]
        panel = min(max(PANEL_WORK // work, PANELS[0]), panel)
    panel = min(panel, triangle.shape[0])
    new, _, _, info = dtpqrt(0, panel, triangle, block, overwrite_a=1, overwrite_b=1)
    if info:
        raise LogError(f"LAPACK tpqrt rejected argument {-info}")
    # The wrapper of LAPACK works on a copy where the array is not as Fortran has it.
    if new is not triangle:
        triangle[...] = new


WIDE = 60
"""Columns from which triangles are stacked as such; below, LAPACK is faster with dense rows."""


def stack_triangles(triangles: Array | Sequence[Array]) -> Array:
    """Triangle of triangles (k, k) on top of each other; zeros of none, as of a short log."""
    size = np.shape(triangles)[-1]
    if size < WIDE or not len(triangles):
        return triangularise(np.reshape(triangles, (-1, size)))
    out = np.array(triangles[0], order="F")
    for triangle in triangles[1:]:
        out = dtpqrt(len(out), PANELS[1], out, np.array(triangle, order="F"))[0]
    return np.triu(out)


SLOW = 0.05
"""Speed [rad/s or m/s] below which the friction model is uncertain: slowness is exp(-(v /
SLOW)^2)."""

EDGES = (0.01, 0.05, 0.15, 0.3, 0.5)
"""Slowness after the low-pass at which classes change; the first holds rows that never slow."""

CLASSES = len(EDGES) + 1
FOLDS = 5
FOLD_SECONDS = 1.0  #: Time belongs to fold floor(t / FOLD_SECONDS) mod FOLDS.
EDGE = 1e-6  #: Share of a second before a fold that belongs to it: times carry rounding.


def seconds_of_folds(t: Array) -> npt.NDArray[np.intp]:
    """The second that each time [s] belongs to; its fold is this modulo `FOLDS`."""
    return np.floor(t / FOLD_SECONDS + EDGE).astype(np.intp)


TOGETHER = 512  #: Number of rows that are collected before they are processed.

LAGS = (0, 1, 2, 3, 4, 6, 8, 11, 15, 20)  #: Distances of kept rows whose products are formed.


@dataclass(frozen=True, eq=False)
class Strata:
    """Triangles of one generalised coordinate's rows [w | tau | dtau/dt], k + 1 entries each."""

    #: Shape (CLASSES, FOLDS, k + 1, k + 1): of the rows in each class and fold; that of [w | tau]
    #: is its leading block.
    triangles: Array
    counts: Array  #: Shape (CLASSES, FOLDS): how many rows.
    slowness: Array  #: Shape (CLASSES, FOLDS): sums of squared slowness.
    #: Shape (len(LAGS), k + 1, k + 1): symmetric parts of ``sum_t u_t u_(t+l) z_t z_(t+l)'`` with u
    #: = 1 - slowness.
    products: Array
    pairs: Array  #: Shape (len(LAGS),): ``sum_t u_t u_(t+l)``.
    raw: Array  #: Shape (k, k): triangle of [w | tau] of the same rows without the low-pass.

    @classmethod
    def empty(cls, size: int) -> Strata:
        """Nothing yet, for rows [w | tau] of `size` entries."""
        return cls(
            np.zeros((CLASSES, FOLDS, size + 1, size + 1)),
            np.zeros((CLASSES, FOLDS)),
            np.zeros((CLASSES, FOLDS)),
            np.zeros((len(LAGS), size + 1, size + 1)),
            np.zeros(len(LAGS)),
            np.zeros((size, size)),
        )

    def with_weight(self, weight: float) -> Strata:
        """The same rows with their squares weighted; counts are multiplied by the weight."""
        root = np.sqrt(weight)
        sums = self.counts, self.slowness, self.products, self.pairs
        counts, slowness, products, pairs = (weight * x for x in sums)
        return Strata(root * self.triangles, counts, slowness, products, pairs, root * self.raw)

    def with_zero_rows(self) -> Strata:
        """The strata with as many rows of zeros."""
        names = ("triangles", "products", "raw")
        return replace(self, **{name: 0.0 * getattr(self, name) for name in names})

    def with_shifted_torques(self, delay: float) -> Strata:
        """The same rows with torques taken `delay` [s] later, to first order."""
        change = np.eye(self.triangles.shape[-1])
        change[-1, -2] = delay
        triangles = self.triangles @ change
        # Only the last two rows are no triangle any more: [upper b; lower c], from [a b; 0 c].
        a, b, c = (self.triangles[..., i, j] for i, j in ((-2, -2), (-2, -1), (-1, -1)))
        upper, lower = a + delay * b, delay * c
        first = np.hypot(upper, lower)
        has_rows, length = first > 0, np.where(first > 0, first, 1.0)
        triangles[..., -2, -2], triangles[..., -1, -2] = first, 0.0
        across = (upper * b + lower * c) / length
        triangles[..., -2, -1] = np.where(has_rows, across, np.hypot(b, c))
        triangles[..., -1, -1] = np.where(has_rows, a * c / length, 0.0)
        # Those of all folds are formed of these, as after a file was read, to the last bit.
        return replace(self, triangles=triangles, products=change.T @ self.products @ change)

    @cached_property
    def by_slowness(self) -> tuple[Array, Array, Array]:
        """The triangles of all folds together, one of k + 1 rows for each class."""
        rows, counts, slowness = self.select_folds(range(FOLDS))
        triangles = np.zeros((CLASSES, *self.triangles.shape[2:]))
        for c in np.flatnonzero(counts):
            triangles[c] = stack_triangles(rows[c].reshape(FOLDS, *triangles.shape[1:]))
        return triangles, counts, slowness

    def select_folds(self, folds: Sequence[int]) -> tuple[Array, Array, Array]:
        """Of some folds, per class: triangles on top of each other (CLASSES, m, k + 1), counts and
        mean squared slowness.
        """
        selected = list(folds)
        rows = self.triangles[:, selected].reshape(CLASSES, -1, self.triangles.shape[-1])
        counts = self.counts[:, selected].sum(axis=1)
        return rows, counts, self.slowness[:, selected].sum(axis=1) / np.maximum(counts, 1)

    @cached_property
    def total_triangle(self) -> Array:
        """The triangle of all rows [w | tau], shape (k, k)."""
        return stack_triangles(self.by_slowness[0][:, :-1, :-1])

    def correlation_time(self, beta: Array, followed: Array | None = None) -> float:
        """Rows per independent row: 1 + 2 sum of the residual's autocorrelation.

        Summed up to the first lag whose correlation is not positive, trapezoids between lags that
        are not there; rows at standstill do not count.

        `beta` (k - 1,); `followed` (k - 1, k - 1): covariance of beta: what an estimate follows of
        the noise is missing in its residual, slow waves above all.
        """
        v = np.r_[beta, -1.0, 0.0]
        power = (self.products @ v) @ v
        if followed is not None:
            power = power + np.einsum("lij,ij->l", self.products[:, :-2, :-2], followed)
        mean = power / np.maximum(self.pairs, 1e-300)
        # Of one row that moves, or none, nothing follows about others.
        if not mean[0] > 0 or self.pairs[0] <= LAGS[1]:
            return 1.0
        rho = mean / mean[0]
        stop = np.flatnonzero((rho <= 0) | (self.pairs <= 0))
        end = int(stop[0]) if stop.size else len(rho)
        if end < 2:
            return 1.0
        # The trapezoid rule counts lag 0 by half, as the symmetric sum does.
        return float(max(1.0, 2.0 * np.trapezoid(rho[:end], LAGS[:end])))


def sum_strata(parts: Sequence[Strata]) -> Strata:
    """All of them together; triangles are stacked once."""
    k = parts[0].triangles.shape[-1]
    triangles = np.zeros((CLASSES, FOLDS, k, k))
    for c in range(CLASSES):
        for f in range(FOLDS):
            stacked = [p.triangles[c, f] for p in parts if p.counts[c, f]]
            if stacked:
                triangles[c, f] = stack_triangles(stacked)
    counts, slowness, products, pairs = (
        np.sum([getattr(part, name) for part in parts], axis=0)
        for name in ("counts", "slowness", "products", "pairs")
    )
    raw = stack_triangles([part.raw for part in parts])
    return Strata(triangles, counts, slowness, products, pairs, raw)


def triangularise(rows: Array) -> Array:
    """Upper triangle r with r'r = rows'rows, padded with zeros to a square."""
    r = np.linalg.qr(rows, mode="r")
    out = np.zeros((rows.shape[1],) * 2)
    out[: len(r)] = r
    return out


class StrataBuilder:
    """Accumulates the rows [w | tau] of one coordinate, `size` entries each."""

    def __init__(self, size: int) -> None:
        self._sum = Strata.empty(size)
        shape = size + 1, size + 1
        self._triangles = [
            [np.zeros(shape, order="F") for _ in range(FOLDS)] for _ in range(CLASSES)
        ]
        self._raw = np.zeros((size, size), order="F")
        self._tail = np.zeros((size + 1, 0)), np.zeros(0)
        self._waiting: list[tuple[Array, Array, Array, npt.NDArray[np.intp]]] = []

    def restart(self) -> None:
        """Start a new run: the next rows do not continue the last ones."""
        self._absorb_pending_rows()
        self._tail = self._tail[0][:, :0], self._tail[1][:0]

    def add(
        self,
        rows: Array,
        raw: Array,
        slowness: Array,
        fold: npt.NDArray[np.intp],
        slope: Array | None = None,
    ) -> None:
        """Add consecutive rows, (size, M) filtered and not, with slowness and fold, (M,).

        Without the torque's `slope` (M,) nothing is known of delays.
        """
        slope = np.zeros(rows.shape[1]) if slope is None else slope
        self._waiting.append((np.vstack([rows, slope]), raw, slowness, fold))
        if sum(len(part[2]) for part in self._waiting) >= TOGETHER:
            self._absorb_pending_rows()

    def _absorb_pending_rows(self) -> None:
        """Process the waiting rows: many rows at a time are much cheaper than a few."""
        if not self._waiting:
            return
        kinds = zip(*self._waiting, strict=True)
        rows, raw, slowness, fold = (np.concatenate(parts, axis=-1) for parts in kinds)
        self._waiting.clear()
        level = np.searchsorted(EDGES, slowness)
        for c, f in sorted(set(zip(level.tolist(), fold.tolist(), strict=True))):
            member = (level == c) & (fold == f)
            absorb_rows(self._triangles[c][f], np.ascontiguousarray(rows[:, member]).T)
            self._sum.counts[c, f] += member.sum()
            self._sum.slowness[c, f] += float(np.sum(slowness[member] ** 2))
        absorb_rows(self._raw, np.array(raw, order="C").T)
        # Products of rows LAGS apart, those of the last call included.
        before, quick = len(self._tail[1]), 1.0 - slowness
        new, quick = np.hstack([self._tail[0], rows * quick]), np.append(self._tail[1], quick)
        count = new.shape[1]
        for k, lag in enumerate(LAGS):
            later = slice(max(before, lag), count)
            if later.start >= count:
                continue
            earlier = slice(later.start - lag, count - lag)
            # Only quadratic forms are taken of it, which see the symmetric part alone.
            product = new[:, later] @ new[:, earlier].T
            self._sum.products[k] += 0.5 * (product + product.T)
            self._sum.pairs[k] += float(quick[later] @ quick[earlier])
        self._tail = new[:, -LAGS[-1] :], quick[-LAGS[-1] :]

    def result(self) -> Strata:
        """Everything added so far."""
        self._absorb_pending_rows()
        triangles = np.triu(np.array(self._triangles))
        return replace(self._sum, triangles=triangles, raw=np.triu(self._raw))


REPEATS = 0.2  #: Relative difference of speeds from which a motion is the same again.

SHORTEST_PERIOD, LONGEST_PERIOD = 2.0, 0.67
"""Limits of a period: in seconds, and as a share of the run."""


def find_period(runs: Sequence[Run]) -> float | None:
    """Shortest time after which a motion repeats itself, within runs or from run to run [s]."""
    speeds = [s for s in map(even_speeds, runs) if len(s) > 3 * SHORTEST_PERIOD * SIGNAL_RATE]
    best: tuple[float, float] | None = None
    # A robot that starts at rest takes some seconds to reach the motion that it repeats.
    for speed in (s[int(SHORTEST_PERIOD * SIGNAL_RATE) :] for s in speeds):
        size = len(speed)
        # Padded to twice the length, so that the end does not meet the beginning.
        spectrum = np.fft.rfft(speed, 2 * size, axis=0)
        same = np.fft.irfft((np.abs(spectrum) ** 2).sum(axis=1))[:size]
        power = np.append(0.0, np.cumsum((speed**2).sum(axis=1)))
        lags = np.arange(int(LONGEST_PERIOD * size) + 1)
        # Squared distance of the motion from itself, later, over that of two unrelated motions.
        both = power[size - lags] + power[size] - power[lags]
        apart = np.maximum(both - 2 * same[lags], 0.0) / np.maximum(both, 1e-300)
        # A period lies between two samples: a parabola through three of them has its minimum there.
        slope, bend = (apart[2:] - apart[:-2]) / 2, np.diff(apart, 2)
        step = np.divide(-slope, bend, out=np.zeros(len(bend)), where=bend > np.abs(slope))
        lags, apart = lags[1:-1] + step, np.sqrt(np.maximum(apart[1:-1] + step * slope / 2, 0.0))
        # A slow motion is like itself a moment later: it repeats only after it has been elsewhere.
        away = (np.maximum.accumulate(apart) > REPEATS) & (lags >= SHORTEST_PERIOD * SIGNAL_RATE)
        apart[~away] = np.inf
        if away.any() and apart.min() < REPEATS and (best is None or apart.min() < best[0]):
            alike = apart < 1.5 * apart.min() + 0.1 * REPEATS  # later ones are multiples
            stop = np.argmax(alike) + np.argmin(np.append(alike[np.argmax(alike) :], False))
            lag = lags[np.argmin(np.where(alike, apart, np.inf)[:stop])]
            best = float(apart.min()), float(lag / SIGNAL_RATE)
    if best is None and len(speeds) > 1:
        size = min(map(len, speeds))
        first, *others = (s[:size] for s in speeds)
        size_of = np.linalg.norm
        differences = [size_of(first - s) / np.hypot(size_of(first), size_of(s)) for s in others]
        if max(map(len, speeds)) < 1.2 * size and max(differences) < REPEATS:
            return float(max(map(len, speeds)) / SIGNAL_RATE)
    return None if best is None else best[1]
