"""Errors of a momentum observer without contact: their law, from held-out segments of a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.optimize import nnls
from scipy.signal import lfilter

from feasid.core.arrays import Array, interpolate
from feasid.core.errors import InputError
from feasid.identification.assessment.rows import HeldOutRows, sample_errors
from feasid.identification.regression.folds import SLOW
from feasid.logs.motion import Run
from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import inertial_torques, inverse_dynamics

SETTLED = 5.0
"""Number of time constants after which the observer has forgotten its start: 0.7 % remain."""

LEVELS = 200  #: Levels whose crossings are counted, up to the largest error.

TAIL = 10
"""Number of crossings of a level; rarer crossings are extrapolated from it. With 100, hardly any
level has enough crossings, and on logs of seconds larger errors are three times as frequent as
Gaussian ones; one crossing is too few to extrapolate from."""

GAUSSIAN = 2.0
"""Mean excess u^2 - u_0^2 of Gaussian errors; those of a model are bounded on one motion only."""

PARTS, CONFIDENCE = 5, 0.95
"""Parts of a log, and probability that errors on another motion are smaller than is assumed."""

FEWEST = 5  #: A joint whose errors cross every level less often has no known threshold.

NOISY = 0.05
"""Noise of velocities, as a share of the speed below which friction is uncertain, from which their
sign is not known there."""

FEWEST_DEVIATIONS = 3.0
"""Least level of a threshold, in deviations: alarms rarer than one per second have more."""

REWEIGHTING_STEPS, SMALLEST = 4, 1e-3
"""Steps towards the variance's own weights; least share that does not depend on the motion."""

GAIN = 30.0  #: Default gain of the observer [1/s], for which a saved fit keeps the errors.


@dataclass(frozen=True, eq=False)
class ErrorLaw:
    """Distribution of the observer's errors without contact, measured on held-out segments.

    A joint's error behind the observer's low-pass has the variance

        c_0 + c_1 s^2 + c_2 w + c_3 W^2:

    of sensors and everything that does not depend on speed, of friction near standstill, of what
    grows with the joint's own speed, and of inertias, whose torques grow with the square of all
    speeds. s is the joint's slowness, w the square of its speed as a share of its fastest in the
    log, W the sum of w over the joints; all behind the observer's low-pass. If W is larger than
    anywhere in the log, nothing was measured there, and the standard deviation is extrapolated in
    proportion to W.

    We count how often a joint's error, in units of its standard deviation, rises above a level u.
    Above the level u_0 that n of these crossings reach, the excess ``u^2 - u_0^2`` of a crossing's
    peak is exponential if errors are Gaussian (Rice 1945). Its mean is estimated from the n, so
    that the rate to expect beyond is

        n / T (1 + (u^2 - u_0^2) / sum of excesses)^-n.

    On another motion the model has other errors. How much their size varies is estimated from five
    parts of the log: with the standard deviation d of the logarithms of their root mean squares,
    95 % of sizes are below exp(t d sqrt(1 + 1/5)) times that of the log, where t is Student's
    quantile for four degrees of freedom. Levels are raised by this factor.
    """

    gain: float  #: Of the observer [1/s].
    coefficients: Array  #: Shape (dof, 4): c [(N m)^2 or N^2].
    fastest: Array  #: Shape (dof,): largest speeds of the log [rad/s or m/s].
    most: float  #: The largest W.
    #: Shape (dof, k): levels up to the largest error, and how often they or a higher one were
    #: crossed.
    levels: Array
    crossings: Array  #: See `levels`.
    excesses: Array  #: Shape (dof,): sums of excesses over u_0.
    seconds: float  #: T.
    widening: Array  #: Shape (dof,): factor on levels for the errors of another motion.

    @classmethod
    def from_errors(
        cls,
        parts: Iterable[tuple[Run, Array, Array]],
        gain: float,
        delay: float,
        joints: Sequence[str],
    ) -> ErrorLaw:
        """Identify the law from runs with the errors of their torques and momenta.

        `parts`: of (Run, (N, dof), (N, dof)); `gain`: of the observer [1/s]; `delay`: by which the
        runs' torques are behind the motion [s]. Raises InputError: the log is too short.
        """
        runs = [(run, e, p) for run, e, p in parts if len(run) > SETTLED / gain * run.rate]
        if not runs:
            raise InputError(
                f"thresholds need a log in memory with runs of more than {SETTLED / gain:.2g} s"
            )
        fastest = np.max([np.abs(run.dq).max(axis=0) for run, *_ in runs], axis=0)
        fastest = np.where(fastest > 0, fastest, 1.0)
        observed = [observer_errors(run, e, p, gain, delay, fastest) for run, e, p in runs]
        errors, features = (np.concatenate(x) for x in zip(*observed, strict=True))
        columns = zip(errors.T, features.transpose(1, 0, 2), strict=True)
        variances = np.array([_fit_variance(f, e**2) for e, f in columns])
        scaled = [np.abs(e) / _deviations(variances, f) for e, f in observed]
        levels = np.linspace(0.0, np.max([z.max(axis=0) for z in scaled], axis=0), LEVELS, axis=1)
        counts = np.array(
            [sum(_count_crossings(z[:, j], u) for z in scaled) for j, u in enumerate(levels)]
        )
        counts = np.maximum.accumulate(counts[:, ::-1], axis=1)[:, ::-1].astype(np.float64)
        if counts[:, 0].min() < FEWEST:
            joint = joints[int(np.argmin(counts[:, 0]))]
            text = f"on held-out segments of the log crosses every level less than {FEWEST} times"
            raise InputError(f"the error of joint {joint} {text}: record a longer log", joint=joint)
        tails = np.arange(len(levels)), _tail_ends(counts)
        excesses = [
            sum(float(np.sum(_stretch_maxima(z[:, j], u) ** 2 - u**2)) for z in scaled)
            for j, u in enumerate(levels[tails])
        ]
        return cls(
            gain,
            variances,
            fastest,
            float(np.sqrt(features[:, 0, 3].max())),
            levels,
            counts,
            np.maximum(excesses, GAUSSIAN * counts[tails]),
            float(sum(len(e) / run.rate for (e, _), (run, *_) in zip(observed, runs, strict=True))),
            _widening(np.concatenate(scaled)),
        )

    def crossing_levels(self, rate: float) -> Array:
        """Levels (dof,), in deviations, that errors of all joints together cross at `rate` [1/s].

        Every joint crosses its level equally often, if it crosses any level so often.

        Raises InputError: no levels are crossed so often.
        """
        most = float(self.crossings[:, 0].sum()) / self.seconds
        if rate > most:
            raise InputError(
                f"false_alarms of {rate:.3g} per second are more than errors cross any level "
                f"({most:.3g} per second): ask for fewer",
                option="false_alarms",
            )
        share, out = rate * self.seconds / len(self.levels), []
        tails = _tail_ends(self.crossings)
        rows = zip(self.levels, self.crossings, tails, self.excesses, strict=True)
        for levels, crossings, tail, excess in rows:
            remaining = crossings[tail]
            if share >= remaining:
                out.append(levels[np.flatnonzero(crossings >= min(share, crossings[0]))[-1]])
            else:
                beyond = excess * ((remaining / share) ** (1.0 / remaining) - 1.0)
                out.append(np.sqrt(levels[tail] ** 2 + beyond))
        return np.array(out) * self.widening


def measure_error_law(
    rows: HeldOutRows | None, robot: Robot, gain: float, delay: float, late: float, friction: Array
) -> ErrorLaw:
    """The law for this gain; torques are `delay` behind the motion, `late` behind the rows [s]."""
    runs, parts = ((), ()) if rows is None else (rows.runs, sample_errors(rows))
    live = ((run, e, *live_errors(robot, run)) for run, e in parts)
    observed = ((*delayed_errors(run, e + f, late), p) for run, e, f, p in live)
    law = ErrorLaw.from_errors(observed, gain, delay, robot.coordinates)
    velocities = [(r.live[1] - r.dq, r.dq) for r in runs if r.live is not None]
    if not velocities:
        return law
    # Where velocities of slow motion are mostly noise, dry friction is unknown near standstill, for
    # as long as a motion stays there, which may be longer than here.
    noise, speed = (np.concatenate(x) for x in zip(*velocities, strict=True))
    noisy = np.sqrt(np.mean(noise**2, axis=0)) > NOISY * SLOW
    unseen = np.where(noisy & (np.abs(speed) < SLOW).any(axis=0), friction, 0.0)
    coefficients = law.coefficients.copy()
    coefficients[:, 1] = np.maximum(coefficients[:, 1], (unseen / FEWEST_DEVIATIONS) ** 2)
    return replace(law, coefficients=coefficients)


def delayed_errors(run: Run, errors: Array, delay: float) -> tuple[Run, Array]:
    """A run whose torques come later by `delay` [s], and its torques' errors then, (N, dof)."""
    if not delay:
        return run, errors
    tau = interpolate(run.t - delay, run.t, run.tau)
    return replace(run, tau=tau), errors + tau - run.tau


def live_errors(robot: Robot, run: Run) -> tuple[Array, Array]:
    """What a controller's positions and velocities add to torques and momenta, (N, dof) each.

    A fit takes them behind a low-pass; an observer takes every sample as it comes. Their noise
    changes gravity and friction, and the momentum, which the observer multiplies by its gain.
    """
    still = np.zeros_like(run.q)
    fitted = run.q, run.dq
    if run.live is None or all(map(np.array_equal, fitted, run.live)):
        return still, still
    masses, terms = np.zeros((2, robot.size))
    masses[robot.inertial_columns] = robot.values[robot.inertial_columns]
    for columns in map(robot.drive_columns, range(len(robot.drives))):
        terms[[*columns.values()]] = robot.values[[*columns.values()]]
    q, dq = map(np.concatenate, zip(fitted, run.live, strict=True))
    zeros, count = np.zeros_like(q), len(still)
    torque = inverse_dynamics(robot, q, zeros, zeros, parameters=masses)
    torque += inverse_dynamics(robot, q, dq, zeros, parameters=terms)
    momentum = inertial_torques(robot, q, dq)
    return torque[:count] - torque[count:], momentum[count:] - momentum[:count]


def observer_errors(
    run: Run, errors: Array, momentum: Array, gain: float, delay: float, fastest: Array
) -> tuple[Array, Array]:
    """Observed errors (N, dof), and the regressors of their variance (N, dof, 4).

    `errors`, `momentum`: (N, dof), of the torques and of the momentum, which the observer
    differentiates behind its low-pass.
    """
    # The recursion of the observer, whose residual is part of the integral of its own step.
    step = gain / run.rate / (1.0 + 0.5 * gain / run.rate)
    decay = [1.0, step - 1.0]
    observed = lfilter([0.5 * step, 0.5 * step], decay, errors, axis=0)
    observed -= lfilter([step, -step], decay, momentum * run.rate, axis=0)
    # Of torques that come late, to first order: the delay times their rate.
    observed += lfilter([step, -step], decay, delay * run.rate * (run.tau - run.tau[0]), axis=0)
    slow = lfilter([step], decay, np.exp(-((run.dq / SLOW) ** 2)), axis=0)
    speed = lfilter([step], decay, (run.dq / fastest) ** 2, axis=0)
    every = np.repeat(speed.sum(axis=1)[:, None], speed.shape[1], axis=1)
    features = np.stack([np.ones_like(slow), slow**2, speed, every**2], axis=2)
    begin = round(SETTLED / gain * run.rate)
    return observed[begin:], features[begin:]


def _fit_variance(features: Array, squares: Array) -> Array:
    """Coefficients >= 0 with which features (N, 4) explain squares (N,), in relative error."""
    unit = max(float(squares.mean()), np.finfo(np.float64).tiny)
    coefficients, size = np.array([unit, 0.0, 0.0, 0.0]), np.full(len(squares), unit)
    for _ in range(REWEIGHTING_STEPS):
        rows = np.column_stack([features * unit, squares]) / size[:, None]
        values, vectors = np.linalg.eigh(rows.T @ rows)  # as few rows as columns
        few = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        coefficients = nnls(few[:, :-1], few[:, -1])[0] * unit
        size = np.maximum(features @ coefficients, SMALLEST * unit)
    coefficients[0] = max(coefficients[0], SMALLEST * unit)
    return np.asarray(coefficients)


def _deviations(coefficients: Array, features: Array) -> Array:
    """Standard deviations (N, dof) of features (N, dof, 4)."""
    return np.asarray(np.sqrt(np.einsum("nkf,kf->nk", features, coefficients)))


def _widening(errors: Array) -> Array:
    """How many times larger errors (N, dof) may be on another motion, (dof,); see `ErrorLaw`."""
    sizes = [np.sqrt(np.mean(part**2, axis=0)) for part in np.array_split(errors, PARTS)]
    deviation = np.std(np.log(np.maximum(sizes, SMALLEST)), axis=0, ddof=1)
    quantile = stats.t.ppf(CONFIDENCE, PARTS - 1)
    return np.asarray(np.exp(quantile * np.sqrt(1.0 + 1.0 / PARTS) * deviation))


def _count_crossings(sizes: Array, levels: Array) -> npt.NDArray[np.intp]:
    """How often sizes (N,) rise beyond each of the ascending levels (k,)."""
    below = np.searchsorted(levels, sizes)
    first, last = np.minimum(below[:-1], below[1:]), below[1:]
    size = len(levels) + 1
    return np.cumsum(np.bincount(first, None, size) - np.bincount(last, None, size))[:-1]


def _stretch_maxima(sizes: Array, level: float) -> Array:
    """The maxima of all intervals above a level that begin below it."""
    beyond = sizes > level
    begins = np.flatnonzero(beyond[1:] & ~beyond[:-1]) + 1
    return np.asarray(np.maximum.reduceat(sizes, begins) if len(begins) else np.zeros(0))


def _tail_ends(crossings: Array) -> npt.NDArray[np.intp]:
    """Place of the last level with `TAIL` crossings, or half of the most, per row."""
    enough = crossings >= np.minimum(TAIL, 0.5 * crossings[:, :1])
    return np.asarray(enough.shape[1] - 1 - np.argmax(enough[:, ::-1], axis=1))
