"""The noise of each joint, and its increase at rows where the joint is slow.

The friction model is least certain near reversals, and no filter helps there: nearly all bias that
remains after filtering both sides comes from these rows. Their variance is estimated together with
the other unknowns,

    Var = a + b c^2,    a, b >= 0,

c the row's slowness (`feasid.identification.regression.folds`), alternating with weighted least
squares. Rows that follow one another err alike: the variance of a sum is larger by the
autocorrelation time.

Torques may also lag behind the motion they belong to by part of a sample: a controller reads
encoders and currents one after the other within a period, and which of them a row of the log
contains is rarely documented. Half a millisecond at 1 kHz is more than all noise of half a minute:
left alone, it biases inertia and viscous friction by several deviations. To first order the true
equations of a torque that is d late are

    W beta = tau + d dtau/dt,

one more unknown for all joints. Longer delays are found by the diagnosis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import digamma, polygamma

from feasid.core.arrays import Array
from feasid.core.notes import Note
from feasid.identification.regression.folds import stack_triangles, triangularise
from feasid.identification.regression.low_pass import WHITE_CORRELATION
from feasid.identification.regression.triangle import Reduced

NOISE_ROUNDS = 4
"""Alternations of least squares and variances; the fifth changes weights by less than 1 %."""

RATIOS = np.log([1e-6, 1e12])
"""Logarithms of the smallest b / a, which stands for zero, and of the largest: simulated rows have
no other noise than friction."""

RATIO_STEPS, RATIO_ROUNDS = 24, 7
"""Ratios that are tried at once, and rounds, each between the neighbours of the last one's best:
it is then known to 1e-7 of itself."""

CORRELATION_STEPS = 4  #: Steps between a residual's correlation and what an estimate followed of it

SMALLEST_DEVIATION = 1e-3
"""Smallest standard deviation, as a share of the joint's torque, for logs without noise."""

EXACT = 1e-6
"""The same of equations that are zero but for errors of encoders, over the root sum of squares of
what adds up to zero. Encoders of 19 bits leave 2e-5 to 3e-3 of torques, but of axes nearly at
right angles large terms cancel, and 1e-4 of them was 50 times what an elastic arm left."""

FIRST_DEVIATION = 0.1  #: Standard deviation for the first estimate, as a share of a joint's torque.

LEAST_FREEDOM = 0.05
"""Least share of a class's rows that counts as left for the noise, however many parameters an
estimate has."""

RANK_SHARE = 1e-10
"""Singular values of a column-scaled triangle below this share are directions that a log lacks."""

FEWEST = 1e-9  #: Replaces half the rows of an empty class.
TINY = 1e-300  #: Replaces zero in divisions.


@dataclass(frozen=True, eq=False)
class Noise:
    """Variances per joint [(N m)^2 or N^2]."""

    quick: Array  #: Shape (dof,): a and b.
    slow: Array  #: See `quick`.
    correlation: Array  #: Shape (dof,): rows per independent row, at least 1.

    def deviations(self, joint: int, slowness: Array) -> Array:
        """Standard deviation of rows with this squared slowness, counted as independent."""
        variance = self.quick[joint] + self.slow[joint] * slowness
        return np.asarray(np.sqrt(variance * self.correlation[joint]))

    def as_filtered(self, reduced: Reduced) -> Noise:
        """The noise with rows at least as correlated as the low-pass makes those of white noise.

        An estimate of the correlation below that misses the slow part of the noise, which the model
        followed. Rows without a clock were not filtered.
        """
        least = WHITE_CORRELATION if reduced.period and reduced.strata else 1.0
        return replace(self, correlation=np.maximum(self.correlation, least))

    def whitened_triangle(
        self, reduced: Reduced, folds: Sequence[int] | None = None
    ) -> tuple[Array, Array, float]:
        """Triangle of all rows divided by their standard deviations, as of `Reduced.triangle`.

        `folds`: only these segments of time.
        """
        size = len(reduced.columns)
        r = self.whitened_triangle_with_slope(reduced, folds)
        return r[:size, :size], r[:size, size], float(r[size, size])

    def whitened_triangle_with_slope(
        self, reduced: Reduced, folds: Sequence[int] | None = None
    ) -> Array:
        """The same triangle with the torques' slopes behind them, shape (nb + 2, nb + 2)."""
        size = len(reduced.columns)
        parts = []
        for j, support in enumerate(reduced.supports):
            rows, counts, slowness = _slowness_classes(reduced, j, folds)
            scaled = (rows / self.deviations(j, slowness)[:, None, None])[counts > 0]
            # Joint by joint first: the stack of all classes at full width would be mostly zeros.
            triangles = scaled.reshape(-1, *2 * rows.shape[2:])  # none of a log of one fold
            part = stack_triangles(triangles) if len(triangles) else triangles[:, 0]
            wide = np.zeros((len(part), size + 2))
            wide[:, [*support, size, size + 1]] = part
            parts.append(wide)
        r = _triangle_by_limbs(parts, reduced.supports)
        unforced = [wide for wide in parts if not wide[:, size:].any()]
        if unforced:
            # Zero is right for any multiple of a model, and what errors of encoders and stiction
            # leave is the smaller the lighter the bodies are: rows of a passive joint without
            # their part along this residual hold ratios of parameters, and do not shrink them.
            beta = least_squares(r[:size, :size], r[:size, size])[0]
            for wide in unforced:
                unit = wide[:, :size] @ beta
                unit /= max(float(np.linalg.norm(unit)), TINY)
                wide -= np.outer(unit, unit @ wide)
            r = _triangle_by_limbs(parts, reduced.supports)
        # A triangle is unique but for signs of its rows: libraries choose them differently.
        r *= np.where(np.diag(r) < 0, -1.0, 1.0)[:, None]
        return r


def _triangle_by_limbs(parts: Sequence[Array], supports: Sequence[Sequence[int]]) -> Array:
    """The triangle of all joints' rows (m, size), which have these columns and the last two.

    Limbs share no column but these two: at full width most entries of a humanoid would be zeros.
    """
    limbs = list[tuple[set[int], list[Array]]]()
    for support, part in zip(supports, parts, strict=True):
        neighbours = [limb for limb in limbs if not limb[0].isdisjoint(support)]
        limbs = [limb for limb in limbs if limb[0].isdisjoint(support)]
        columns = {*support}.union(*(numbers for numbers, _ in neighbours))
        limbs.append((columns, [part, *(rows for _, stack in neighbours for rows in stack)]))
    if len(limbs) == 1:
        return triangularise(np.vstack(parts))
    out, ends = np.zeros((parts[0].shape[1],) * 2), list[Array]()
    for columns, rows in limbs:
        order = [*sorted(columns), -2, -1]
        triangle = triangularise(np.vstack(rows)[:, order])
        out[np.array(order)[:-2, None], order] = triangle[:-2]
        ends.append(triangle[-2:, -2:])
    out[-2:, -2:] = triangularise(np.vstack(ends))
    return out


def _slowness_classes(
    reduced: Reduced, joint: int, folds: Sequence[int] | None
) -> tuple[Array, Array, Array]:
    """Rows with slopes, counts and mean squared slowness per class; see `Strata.select_folds`.

    Without strata there is one class, and no delay can be estimated.
    """
    if reduced.strata:
        strata = reduced.strata[joint]
        return strata.by_slowness if folds is None else strata.select_folds(folds)
    one = np.pad(reduced.triangles[joint], (0, 1))
    return one[None], np.array([float(reduced.rows)]), np.zeros(1)


def squared_residuals(
    reduced: Reduced, joint: int, beta: Array, folds: Sequence[int] | None = None
) -> Array:
    """Sum of squared residuals of one joint per class, at base parameters beta."""
    v = np.r_[beta[list(reduced.supports[joint])], -1.0, 0.0]
    triangles, _, _ = _slowness_classes(reduced, joint, folds)
    return np.asarray(np.sum((triangles @ v) ** 2, axis=1))


Solver = Callable[[Array, Array], tuple[Array, Array]]
"""From whitened R and rho to beta and its covariance when the noise has unit variance."""


def least_squares(r: Array, rho: Array) -> tuple[Array, Array]:
    """The shortest least-squares solution, with columns scaled to one length, and (R'R)^+."""
    norms = np.linalg.norm(r, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    inverse = np.linalg.pinv(r / scale, rcond=RANK_SHARE) / scale[:, None]
    return np.asarray(inverse @ rho), np.asarray(inverse @ inverse.T)


def estimate_noise(
    reduced: Reduced, solver: Solver = least_squares, correlated: bool = True
) -> tuple[Noise, Array]:
    """Noise and the solver's estimate, alternating.

    `solver`: weighted least squares, or an estimator with a prior: on short logs the former
    overfits the noise, so its residual is too small; `correlated`: whether to count effective rows;
    without strata rows count as independent. Returns (nb,): base parameters.
    """
    dof = len(reduced.triangles)
    power = np.array([np.sum(t[:, -1] ** 2) for t in reduced.triangles]) / max(reduced.rows, 1)
    overall = max(float(power.mean()), TINY)
    # Forces at a passive joint add up to zero the better, the lighter the bodies: equations that
    # counted too much at first would let a model without masses win.
    power = np.where(power > 0, power, overall)
    first = FIRST_DEVIATION**2 * (power + SMALLEST_DEVIATION * overall)
    noise = Noise(first, np.zeros(dof), np.ones(dof))
    beta, spread = solver(*noise.whitened_triangle(reduced)[:2])
    for _ in range(NOISE_ROUNDS):
        noise = variances(reduced, noise, beta, spread)
        beta, spread = solver(*noise.whitened_triangle(reduced)[:2])
    if correlated and reduced.strata:
        # Only now: a joint that counts less leaves a residual that is more alike from row to row.
        noise = replace(noise, correlation=correlation_times(reduced, beta, spread))
        beta, _ = solver(*noise.whitened_triangle(reduced)[:2])
    return noise, beta


def variances(reduced: Reduced, noise: Noise, beta: Array, spread: Array) -> Noise:
    """A and b per joint from the residuals of beta.

    An estimate follows the noise of its own rows: a class of n rows whose whitened triangle is T
    has about ``n - tr(T spread T')`` of them left to estimate the noise.
    """
    sums = []
    for j, support in enumerate(map(list, reduced.supports)):
        triangles, counts, slowness = _slowness_classes(reduced, j, None)
        white = triangles[..., :-2] / noise.deviations(j, slowness)[:, None, None]
        # The diagonal of T spread T' alone, without the product of all rows with all.
        followed = np.sum((white @ spread[np.ix_(support, support)]) * white, axis=(1, 2))
        power, least = np.sum(triangles[..., -2] ** 2), SMALLEST_DEVIATION
        if not power:  # a passive joint: of the torques that add up to zero
            power, least = np.sum(triangles[..., :-2] ** 2, axis=(0, 1)) @ beta[support] ** 2, EXACT
        floor = max(least**2 * float(power / max(counts.sum(), 1.0)), TINY)
        rows = np.maximum(counts - followed, LEAST_FREEDOM * counts)
        squares = squared_residuals(reduced, j, beta)
        sums.append((squares, rows, slowness, np.full(len(rows), floor)))
    quick, slow = _fit_variances(*np.array(sums).transpose(1, 0, 2))
    return Noise(quick, slow, noise.correlation)


def _fit_variances(
    squares: Array, rows: Array, slowness: Array, floor: Array
) -> tuple[Array, Array]:
    """A and b, (dof,) each, of sums of squares of so many rows of each class, all (dof, classes).

    Logarithms of variances are fitted, which count too large and too small alike: real friction
    does not follow the law, and one class that it misses must not scale all others. For every
    ratio b / a the best a is a mean, so the ratio alone is sought. Alternating weights jumped for
    ever between a tiny a and a tiny b.
    """
    edges = np.tile(RATIOS, (len(rows), 1))
    # The logarithm of a mean of n squares has mean digamma(n / 2) - log(n / 2) and variance
    # polygamma(1, n / 2), added to those of the true one: classes of few rows hardly count.
    half = np.maximum(rows / 2, FEWEST)
    weight = 1.0 / polygamma(1, half)
    weight /= weight.sum(axis=1)[:, None]
    wanted = np.log(np.maximum(squares, TINY) / 2) - digamma(half)
    wanted, least = np.maximum(wanted, np.log(floor)), np.log(floor[:, :1])
    for _ in range(RATIO_ROUNDS):
        logarithm = np.linspace(edges[:, 0], edges[:, 1], RATIO_STEPS, axis=1)
        ratio = np.where(logarithm > RATIOS[0], np.exp(logarithm), 0.0)
        implied = wanted[:, None] - np.log1p(ratio[..., None] * slowness[:, None])
        quick = np.maximum(np.einsum("jc,jrc->jr", weight, implied), least)
        loss = np.einsum("jc,jrc->jr", weight, (implied - quick[..., None]) ** 2)
        best = loss.argmin(axis=1)[:, None]
        sides = np.clip(best + np.array([-1, 1]), 0, RATIO_STEPS - 1)
        edges = np.take_along_axis(logarithm, sides, axis=1)
    a = np.exp(np.take_along_axis(quick, best, axis=1))
    return a[:, 0], (a * np.take_along_axis(ratio, best, axis=1))[:, 0]


def correlation_times(reduced: Reduced, beta: Array, spread: Array) -> Array:
    """Rows per independent row of each joint's residual.

    `spread` (nb, nb) is the covariance of beta were all rows independent; as they are not, it is
    larger by what is asked for.
    """
    out = []
    for strata, support in zip(reduced.strata, reduced.supports, strict=True):
        columns = list(support)
        time = 1.0
        for _ in range(CORRELATION_STEPS):
            time = strata.correlation_time(beta[columns], time * spread[np.ix_(columns, columns)])
        out.append(time)
    return np.array(out)


def standard_deviations(triangle: Array, residual: float, rows: int) -> Array:
    """Standard deviations of least-squares estimates.

    `triangle` (nb, nb): R with R'R = W'W; `residual`: norm of the residual of the estimate, |omega
    - W beta|; `rows`: rows of W. Returns (nb,): ``sqrt(diag(s^2 (W'W)^-1))`` with ``s^2 = |omega -
    W beta|^2 / (rows - nb)``, eq. (81) and (82) of Sousa and Cortesao (2014). Infinite for a
    parameter that the data do not fix. The formula assumes independent errors; filtered logs have
    fewer independent samples than rows, so these are lower bounds.
    """
    size = len(triangle)
    if rows <= size:
        return np.full(size, np.inf)
    norms = np.linalg.norm(triangle, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    _, singular, right = np.linalg.svd(triangle / scale)
    determined = singular > RANK_SHARE * max(singular[0], 1e-300)
    variance = ((right[determined] / singular[determined, None]) ** 2).sum(axis=0)
    # A parameter is fixed when its axis has no part in the unseen directions.
    blind = (right[~determined] ** 2).sum(axis=0) > RANK_SHARE
    return np.where(blind, np.inf, residual / np.sqrt(rows - size) * np.sqrt(variance) / scale)


EXPECTED_DELAY = 0.5  #: Prior standard deviation of the delay, in samples.
LONGEST_DELAY = 1.0  #: Samples beyond which a delay is reported and not corrected.

DELAY_ROUNDS = 2
"""The noise is that of rows which are shifted already; the second round changes microseconds."""

NOTABLE_DELAY = 3.0  #: Number of standard errors from which a delay is reported.


@dataclass(frozen=True)
class Delay:
    """Delay of the torques, and its standard error [s]."""

    value: float = 0.0  #: The corrected delay.
    deviation: float = 0.0  #: The standard error of `value`.
    #: What was measured and is too long to be taken out, then the others are 0. A lower bound: the
    #: expansion shortens delays of several samples.
    left: float = 0.0

    def notes(self, period: float) -> list[Note]:
        """Note on a delay that is significant; `period` of the samples [s]."""
        way = "behind" if (self.left or self.value) > 0 else "ahead of"
        if self.left:
            text = (
                f"torques are {1e3 * abs(self.left):.2g} ms or more {way} the motion "
                f"({abs(self.left) / period:.1f} samples): longer than a sample, so the fit does "
                f"not account for it; measure it and fit with delay=, or have the log checked "
                f"(feasid.diagnose)"
            )
            return [Note(text, "long-delay", delay=self.left)]
        if abs(self.value) < NOTABLE_DELAY * self.deviation or not self.value:
            return []
        text = (
            f"torques are {1e3 * abs(self.value):.2g} ms {way} the motion "
            f"({abs(self.value) / period:.2f} of a sample): estimated and accounted for"
        )
        return [Note(text, "sub-sample-delay", delay=self.value, deviation=self.deviation)]


def find_delay(reduced: Reduced) -> Delay:
    """Delay of the torques within a sample; zero if the equations were not filtered."""
    if not reduced.strata or not reduced.period:
        return Delay()
    delay = Delay()
    for _ in range(DELAY_ROUNDS):
        # Below the parameters' rows of the triangle stands what they leave of torques and slopes.
        # The most probable delay next to any base parameters, from here on.
        shifted = reduced.with_shifted_torques(delay.value)
        residuals = estimate_noise(shifted)[0].whitened_triangle_with_slope(shifted)[-2:, -2:]
        pull = 1.0 / (EXPECTED_DELAY * reduced.period) ** 2
        known = float(residuals[:, 1] @ residuals[:, 1]) + pull
        further = -(float(residuals[:, 0] @ residuals[:, 1]) + pull * delay.value) / known
        delay = Delay(delay.value + further, 1.0 / np.sqrt(known))
        if abs(delay.value) > LONGEST_DELAY * reduced.period:
            # A long delay breaks the expansion, so nothing is corrected, and a sure one reported.
            certain = abs(delay.value) > NOTABLE_DELAY * delay.deviation
            return Delay(left=delay.value if certain else 0.0)
    return delay
