"""Gauss-Newton for gains and delay of joint servos, with the robot's parameters eliminated.

Errors ``e_j = Y_j delta / kp_j`` are in units of their noise, so that the noise of positions does
not draw gains to zero, and equations are multiplied with instruments, all joints together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.errors import LogError
from feasid.identifiability.base import BaseParameters
from feasid.logs.servo import TorqueLimits
from feasid.regression.equations import WHITE_CORRELATION
from feasid.servos.rows import ServoRows

LONGEST_DELAY = 0.1
"""Delays are sought up to here [s]; a log whose commands are older has other columns."""

DELAY_STEP = 0.01
"""Distance of the delays [s] from which the search starts."""

RATE_TIMES = (0.003, 0.01, 0.03)
"""Time constants of the low-pass of the command's rate [s] from which the search starts."""

EARLIEST = -2e-3
"""A delay below this [s] is no delay: commands cannot act before they are given."""

MOST_MISFIT = 0.05
"""Largest share of the error that the model may leave unexplained: dead bands, elasticity and
profiles inside a servo left 9 to 70 %, modelled servos .1 to 3 %."""

STEPS = 20
"""Gauss-Newton steps, of which 5 to 12 are used."""

SHARES = (1.0, 0.3, 0.1)
"""Shares of a step that are tried, until the errors left do not grow."""

WORSE = 1e-3
"""Growth of the sum of their logarithms that is rounding of the steps."""

CONVERGED = 1e-4
"""Change of the logarithms of the gains at which the steps end."""

EARLIEST_SOUGHT = np.array([-LONGEST_DELAY / 4, 1e-4])
"""Least delay and time constant [s] on the way of the steps."""

LARGEST_STEP = 0.7, 0.005, 0.2
"""Largest change in one step of the logarithm of a gain, of a delay or time constant [s], and of
the logarithms of a limit and of the damping within."""

FARTHEST = 4.0
"""Change of the logarithm of a gain from where the steps start that is not exceeded."""

RANK = 1e-6
"""Singular values of scaled instruments below this share of the largest are zero."""


@dataclass(frozen=True, eq=False)
class GainPrior:
    """Rows [parameters | factor on the description] = value, in units of their deviations.

    Attributes
    ----------
    rows : ndarray, shape (k, n + 1)
    values : ndarray, shape (k,)
    gains : mapping of int to (float, float)
        Trusted gains by joint, with relative deviation.
    fixed_by : str
        What fixes the common factor.
    """

    rows: Array
    values: Array
    gains: Mapping[int, tuple[float, float]]
    fixed_by: str

    def equations(self, logs: Array, terms: int, rest: int) -> tuple[Array, Array]:
        """Rows [delta | factor | terms | changes of log kp | rest] and values at these gains."""
        known = len(self.rows)
        tail = self.rows.shape[1] + terms
        held = np.zeros((known + len(self.gains), tail + len(logs) + rest))
        held[:known, : self.rows.shape[1]] = self.rows
        value = np.r_[self.values, np.zeros(len(self.gains))]
        for k, (j, (kp, deviation)) in enumerate(self.gains.items()):
            held[known + k, tail + j] = 1.0 / deviation
            value[known + k] = (np.log(kp) - logs[j]) / deviation
        return held, value


@dataclass(frozen=True, eq=False)
class LinearisationPoint:
    """Where equations are linearised: logarithms of the gains (dof,), lags [s], and limits.

    Lags are the delay and the time constant of the rate's low-pass.
    """

    logs: Array
    lags: Array
    limits: TorqueLimits | None = None

    def advance(self, change: Array, share: float, first: Array) -> LinearisationPoint:
        """After a share of this change of [logs | sought lags | limits], each within its bounds."""
        n, far = len(self.logs), 2 * len(self.logs) * (self.limits is not None)
        logs, later, ends = np.split(change, [n, len(change) - far])
        parts = zip((logs, later, ends), LARGEST_STEP, strict=True)
        most = [share * np.clip(x, -m, m) for x, m in parts]
        lags = self.lags + np.r_[most[1], np.zeros(2 - len(later))]
        return LinearisationPoint(
            np.clip(self.logs + most[0], first - FARTHEST, first + FARTHEST),
            np.clip(lags, EARLIEST_SOUGHT, LONGEST_DELAY),
            self.limits and self.limits.scale(*np.exp(most[2]).reshape(2, n)),
        )

    def distance(self, other: LinearisationPoint) -> float:
        """Largest change from another place, over that at which steps end."""
        lags = np.abs(self.lags - other.lags).max() / (DELAY_STEP * 10)
        return float(max(np.abs(self.logs - other.logs).max(), lags) / CONVERGED)


@dataclass(frozen=True, eq=False)
class GainEquations:
    """Gauss-Newton for gains, delay, parameters, further terms and torque limits of the servos.

    `data` are rows without and with a known load, `delayed` says whether a delay is sought, `folds`
    are the halves of the time whose rows are used, `limits` those from which limits are sought.
    """

    base: BaseParameters
    data: tuple[ServoRows, ...]
    prior: GainPrior
    law: str
    delayed: bool = True
    terms: tuple[str, ...] = ()
    folds: tuple[int, ...] = (0, 1)
    limits: TorqueLimits | None = None

    @property
    def unknown_lag_count(self) -> int:
        """How many of the lags are unknown."""
        return self.delayed * (2 if "rate" in self.terms else 1)

    @property
    def further_unknown_count(self) -> int:
        """How many unknowns follow those of the gains: lags, limits and dampings within."""
        return self.unknown_lag_count + 2 * self.base.robot.dof * (self.limits is not None)

    @cached_property
    def base_combinations(self) -> Array:
        """Base parameters by standard ones, (nb, n)."""
        return np.asarray(self.base.K, dtype=np.float64)

    @cached_property
    def equation_blocks(self) -> list[tuple[int, int, npt.NDArray[np.intp]]]:
        """Blocks of equations: which data, joint, and the rows that are used."""
        return [
            (k, j, np.flatnonzero(rows.use[:, j] & np.isin(rows.fold, self.folds)))
            for k, rows in enumerate(self.data)
            for j in range(self.base.robot.dof)
        ]

    def solve(self, start: GainSolution | None = None) -> GainSolution:
        """Gains where Gauss-Newton ends; from those of other rows, or from none."""
        n = self.base.robot.dof
        lags = self._first_lags() if start is None else start.place.lags
        first = self._first_gains(lags) if start is None else start.place.logs
        beta = (
            self.base_combinations @ np.nan_to_num(self.base.robot.values)
            if start is None
            else start.beta
        )
        none = np.zeros((len(self.terms), n))
        sigma = np.ones(n) if start is None else start.residual_rms
        place = LinearisationPoint(first, lags, self.limits)
        step = _GaussNewtonStep.linearise_and_solve(self, place, (beta, none), sigma)
        step = _GaussNewtonStep.linearise_and_solve(
            self, place, step.base_and_term_parameters, step.sigma
        )  # in units of the noise
        for _ in range(STEPS):
            for share in SHARES:
                after = place.advance(step.change, share, first)
                trial = _GaussNewtonStep.linearise_and_solve(
                    self, after, step.base_and_term_parameters, step.sigma, step.projector
                )
                if trial.score < step.score + WORSE:
                    break
            done = after.distance(place) < 1.0
            place, step = after, trial
            if done:
                break
        return GainSolution(self, place, step)

    def _first_lags(self) -> Array:
        """Where free base parameters per joint explain the error best, on a coarse grid."""
        times = RATE_TIMES if self.unknown_lag_count > 1 else (RATE_TIMES[1],)
        delays = np.arange(0.0, LONGEST_DELAY, DELAY_STEP) if self.delayed else (0.0,)
        grid = np.array([*product(delays, times)])
        if len(grid) == 1:
            return np.asarray(grid[0])
        misfits = [
            sum(np.log(np.sum(r**2) + 1e-300) for r in self._free_residuals(lags)) for lags in grid
        ]
        return np.asarray(grid[np.argmin(misfits)])

    def _free_residuals(self, lags: Array) -> Iterable[Array]:
        """Errors that neither free base parameters of each joint nor the terms explain."""
        signals = _filtered_signals(self, LinearisationPoint(np.zeros(0), lags, self.limits))
        for k, j, used in self.equation_blocks:
            e, *extra = (x[used, j] for x in signals[k])
            A = np.column_stack([self.data[k].regressors[j][used], *extra])
            norms = np.linalg.norm(A, axis=0)
            Q = np.linalg.qr(A[:, norms > 0] / norms[norms > 0])[0]
            yield e - Q @ (Q.T @ e)

    def _first_gains(self, lags: Array) -> Array:
        """Logarithms of the gains with which the description explains the errors best."""
        robot = self.base.robot
        n, inertial = robot.dof, robot.inertial_columns.ravel()
        own = np.zeros(robot.size)
        own[inertial] = np.nan_to_num(robot.values[inertial])
        others = np.setdiff1d(np.arange(robot.size), inertial)
        out = np.full(n, np.nan)
        signals = _filtered_signals(self, LinearisationPoint(np.zeros(0), lags, self.limits))
        for k, j, used in self.equation_blocks[:n]:
            A, (e, *extra) = self.data[k].regressors[j][used], (x[used, j] for x in signals[k])
            columns = np.c_[
                A @ (self.base_combinations @ own), A @ self.base_combinations[:, others]
            ]
            columns = np.column_stack([columns, *extra])
            norms = np.linalg.norm(columns, axis=0)
            x = np.linalg.lstsq(columns[:, norms > 0] / norms[norms > 0], e, rcond=1e-9)[0]
            if norms[0] > 0 and x[0] > 0:
                out[j] = np.log(norms[0] / x[0])
        for j, (kp, _) in self.prior.gains.items():
            out[j] = np.log(kp)
        middle = float(np.nanmedian(out)) if np.isfinite(out).any() else 0.0
        return np.where(np.isfinite(out), out, middle)


@dataclass(frozen=True, eq=False)
class _GaussNewtonStep:
    """Equations linearised in everything, and their solution.

    ``projector`` (rows, k) are orthonormal instruments, ``extra`` (terms, dof) the terms' factors,
    ``change`` that of the logarithms of the gains, of lags and limits, ``covariance`` that of
    [delta | factor | terms | logs | lags | limits], ``equations`` (k, unknowns) the projected ones,
    ``residual`` (rows,) what is left.
    """

    projector: Array
    delta: Array
    beta: Array
    extra: Array
    change: Array
    sigma: Array
    covariance: Array
    equations: Array
    residual: Array

    @property
    def score(self) -> float:
        """Sum of the logarithms of the errors that are left."""
        return float(np.sum(np.log(self.sigma)))

    @property
    def base_and_term_parameters(self) -> tuple[Array, Array]:
        """Base parameters, and factors of the terms."""
        return self.beta, self.extra

    @classmethod
    def linearise_and_solve(
        cls,
        task: GainEquations,
        place: LinearisationPoint,
        model: tuple[Array, Array],
        sigma: Array,
        projector: Array | None = None,
    ) -> _GaussNewtonStep:
        """One Gauss-Newton step from these values; instruments are formed where none are given."""
        n, size, terms = task.base.robot.dof, task.base.robot.size, len(task.terms)
        signals, logs = _signals_and_derivatives(task, place), place.logs
        A, e = _linearise(task, signals, logs, model, sigma)
        if projector is None:
            through = [_linearise(task, signals, logs, model, sigma, k)[0]
                       for k in range(len(task.data[0].instruments))]  # fmt: skip
            projector = _orthonormal_basis(np.hstack(through))
        Q = projector / np.sqrt(WHITE_CORRELATION)
        held, value = task.prior.equations(logs, terms * n, task.further_unknown_count)
        tail = size + 1 + terms * n

        def with_known_rows(A: Array) -> Array:
            """All columns of the projected equations, and of what is known besides."""
            B = Q.T @ A
            nb = len(task.base_combinations)
            own = np.hstack([B[:, :nb] @ task.base_combinations, np.zeros((len(B), 1)), B[:, nb:]])
            return np.vstack([own, held])

        b = np.r_[Q.T @ e, value]
        head = with_known_rows(A)[:, :tail]
        x = _scaled_least_squares(head, b)[0]
        beta, extra = task.base_combinations @ x[:size], x[size + 1 :].reshape(terms, n)
        # The gains' columns are made of the parameters, those of lags of the terms.
        A, _ = _linearise(task, signals, logs, (beta, extra), sigma)
        M = with_known_rows(A)
        step, covariance = _scaled_least_squares(M, b - M[:, :tail] @ x)
        r = e - A[:, : len(beta) + terms * n] @ np.r_[beta, x[size + 1 :]]
        left = sigma * _residual_rms(task, r)
        if not (np.isfinite(left).all() and np.isfinite(step).all()):
            raise LogError("gains of the servos do not follow from the log: the steps towards them "
                           "do not end; check the columns cmd_<joint> and their unit")  # fmt: skip
        own = M[: Q.shape[1]]
        return cls(projector, x[:size], beta, extra, step[tail:], left, covariance, own, r)


def _scaled_least_squares(M: Array, b: Array) -> tuple[Array, Array]:
    """Least squares with columns scaled to one length, and (M'M)^+."""
    scale = np.linalg.norm(M, axis=0)
    scale[scale == 0] = 1.0
    inverse = np.linalg.pinv(M / scale, rcond=1e-12) / scale[:, None]
    return inverse @ b, inverse @ inverse.T


def _orthonormal_basis(Z: Array) -> Array:
    """An orthonormal basis of the columns' span."""
    norms = np.linalg.norm(Z, axis=0)
    Z = Z[:, norms > 0] / norms[norms > 0]
    squares, V = np.linalg.eigh(Z.T @ Z)
    kept = squares > RANK**2 * squares[-1]
    return np.asarray(np.linalg.qr(Z @ (V[:, kept] / np.sqrt(squares[kept])))[0])


def _filtered_signals(task: GainEquations, place: LinearisationPoint) -> list[list[Array]]:
    """Per data of a task its errors and further terms at this place, (rows, dof) each."""
    lags = place.lags
    return [
        [rows.filtered_error(lags[0], place.limits), *rows.term_signals(task.terms, lags)]
        for rows in task.data
    ]


def _signals_and_derivatives(
    task: GainEquations, place: LinearisationPoint
) -> tuple[list[list[Array]], list[list[list[Array]]]]:
    """`_filtered_signals` here, and their derivatives by each lag that is sought, then by limits.

    Those are by the logarithms of each joint's own limit, and of its damping.
    """
    now, step, out = _filtered_signals(task, place), DELAY_STEP / 100, []
    near = [replace(place, lags=place.lags + step * x) for x in np.eye(2)[: task.unknown_lag_count]]
    if place.limits is not None:
        more = np.exp(step), 1.0
        near += [replace(place, limits=place.limits.scale(*x)) for x in (more, more[::-1])]
    for other in near:
        later = zip(now, _filtered_signals(task, other), strict=True)
        out.append([[(b - a) / step for a, b in zip(*x, strict=True)] for x in later])
    return now, out


def _linearise(
    task: GainEquations,
    signals: tuple[list[list[Array]], list[list[list[Array]]]],
    logs: Array,
    model: tuple[Array, Array],
    sigma: Array,
    lag: int | None = None,
) -> tuple[Array, Array]:
    """Equations [beta | terms | log kp | lags | limits | dampings] and errors.

    With a lag, those of its instruments.
    """
    (beta, extra), (now, slopes) = model, signals
    n, terms, nb = task.base.robot.dof, len(task.terms), len(beta)
    tail = nb + terms * n
    counts = [len(used) for _, _, used in task.equation_blocks]
    A, e = np.zeros((sum(counts), tail + n + task.further_unknown_count)), np.zeros(sum(counts))
    ends = np.cumsum(counts)
    for (k, j, used), end in zip(task.equation_blocks, ends, strict=True):
        rows = task.data[k]
        W = (rows.regressors if lag is None else rows.instruments[lag])[j][used]
        own, part = W / (np.exp(logs[j]) * sigma[j]), slice(end - len(used), end)
        A[part, :nb] = own
        for i, x in enumerate(now[k][1:]):
            A[part, nb + i * n + j] = -x[used, j] / sigma[j]
        A[part, tail + j] = -own @ (beta + rows.shift)
        weights = np.r_[1.0, extra[:, j]]
        first = tail + n + task.unknown_lag_count
        places = (*range(tail + n, first), *range(first + j, A.shape[1], n))
        for i, slope in zip(places, slopes, strict=True):
            A[part, i] = -(np.stack([x[used, j] for x in slope[k]], 1) @ weights) / sigma[j]
        e[part] = now[k][0][used, j] / sigma[j] - own @ rows.shift
    return A, e


def _residual_rms(task: GainEquations, residual: Array) -> Array:
    """RMS of each joint's residual, in the unit of `residual`; unknowns are not counted."""
    n = task.base.robot.dof
    squares, counts, place = np.zeros(n), np.zeros(n), 0
    for _, j, used in task.equation_blocks:
        part = residual[place : place + len(used)]
        squares[j] += part @ part
        counts[j] += len(used)
        place += len(used)
    return np.asarray(np.sqrt(np.maximum(squares / np.maximum(counts, 1), 1e-24)))


@dataclass(frozen=True, eq=False)
class GainSolution:
    """Where Gauss-Newton ended, and its last step."""

    task: GainEquations
    place: LinearisationPoint
    step: _GaussNewtonStep

    @property
    def delay(self) -> float:
        """From a command to its effect [s]."""
        return float(self.place.lags[0])

    @property
    def beta(self) -> Array:
        """Base parameters."""
        return self.step.beta

    def _linearise(self, task: GainEquations, sigma: Array) -> tuple[Array, Array]:
        """Equations of a task with other rows, or with a further term, at these values."""
        more = np.zeros((len(task.terms) - len(self.step.extra), len(sigma)))
        signals = _signals_and_derivatives(task, self.place)
        model = self.beta, np.vstack([self.step.extra, more])
        return _linearise(task, signals, self.place.logs, model, sigma)

    @property
    def residual_rms(self) -> Array:
        """RMS of what is left of the filtered errors [rad or m], (dof,)."""
        return self.step.sigma

    def held_out_misfit(self) -> float:
        """Sum of the logarithms of the joints' squared misfits on the other half of the time."""
        task = replace(self.task, folds=tuple({0, 1} - set(self.task.folds)))
        ones = np.ones(task.base.robot.dof)
        A, e = self._linearise(task, ones)
        head = np.r_[self.beta, self.step.extra.ravel()]
        return float(np.sum(np.log(_residual_rms(task, e - A[:, : len(head)] @ head) ** 2)))

    def misfit_change_by_term(self, term: str) -> float:
        """Change of `held_out_misfit` to first order by one more term."""
        out = 0.0
        for half in (0, 1):
            r, X = [], []
            for fold in (half, 1 - half):
                task = replace(self.task, terms=(*self.task.terms, term), folds=(fold,))
                A, e = self._linearise(task, self.residual_rms)
                r.append(e - A[:, : len(self.beta)] @ self.beta)
                X.append(A)
            old = len(self.beta) + len(self.task.terms) * len(self.residual_rms)
            new = slice(old, old + len(self.residual_rms))
            without = np.delete(X[0], np.r_[new], axis=1)
            with_it, plain = (
                _scaled_least_squares(X[0], r[0])[0],
                _scaled_least_squares(without, r[0])[0],
            )
            task = replace(self.task, folds=(1 - half,))
            left = r[1] - X[1] @ with_it, r[1] - np.delete(X[1], np.r_[new], axis=1) @ plain
            out += float(
                np.sum(np.log(_residual_rms(task, left[0]) / _residual_rms(task, left[1])))
            )
        return out

    @cached_property
    def stretch_covariance(self) -> Array:
        """Covariance of the unknowns by what each stretch alone would change.

        ``H (sum_s g_s g_s') H`` with the covariance H of white residuals and the gradients g_s of
        stretches (White 1980, "A heteroskedasticity-consistent covariance matrix estimator",
        Econometrica 48(4), clustered): what the model lacks is no white noise.
        """
        data, blocks = self.task.data, self.task.equation_blocks
        number = np.concatenate([2 * data[k].stretch[used] + k for k, _, used in blocks])
        Q = self.step.projector / np.sqrt(WHITE_CORRELATION)
        own = (number == s for s in np.unique(number))
        pulls = np.stack([Q[rows].T @ self.step.residual[rows] for rows in own], axis=1)
        moved = self.step.covariance @ (self.step.equations.T @ pulls)
        return np.asarray(moved @ moved.T)

    @cached_property
    def misfit(self) -> Array:
        """Unexplained share of each joint's error."""
        rows = self.task.data[0]
        e = rows.filtered_error(self.delay, self.place.limits)
        size = [np.sqrt(np.mean(e[use, j] ** 2)) for j, use in enumerate(rows.use.T)]
        return np.asarray(self.residual_rms / np.maximum(size, 1e-300))

    @property
    def is_plausible(self) -> bool:
        """Whether commands act after they are given, and the errors are explained."""
        late = EARLIEST < self.delay < LONGEST_DELAY - DELAY_STEP
        return late and bool(self.misfit.max() < MOST_MISFIT)
