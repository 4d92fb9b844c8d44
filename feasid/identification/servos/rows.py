"""Filtered equations of joint servos, from logs of positions and commands.

Both sides of ``e_j = Y_j delta / kp_j`` go through one low-pass, rows near a joint's own reversals
are left out (stiction is not a function of speed, and it resembles a delay), and instruments are
the same rows formed from the motion that was commanded, which has no noise (after Janot, Vandanjon
and Gautier 2014, "A generic instrumental variable approach for industrial robot identification",
IEEE Trans. Control Systems Technology 22(1)).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.interpolate import make_interp_spline
from scipy.optimize import minimize
from scipy.signal import oaconvolve

from feasid.core.arrays import Array, Mask
from feasid.core.errors import InputError, NotEnoughDataError
from feasid.identification.regression.low_pass import DecimatingFilter, GaussianLowPass
from feasid.identification.regression.rows import RowFormer
from feasid.identification.regression.triangle import Reduced
from feasid.logs.filters import low_pass
from feasid.logs.motion import Run
from feasid.logs.recording import Recording, read_signals
from feasid.logs.servo import Servo, TorqueLimits, delay_commands, servo_term_signals
from feasid.options.complete import select_options
from feasid.options.tables import LogOptions, ReadOptions
from feasid.parameters.identifiability.base import BaseParameters
from feasid.robot.description import Robot

CUTOFF = 5.0
"""Low-pass [Hz] where the caller names none: servos follow little above it, and noise of encoders
grows with its square; at 8 Hz and 12 bits the armature of a UR5 was lost."""

INSTRUMENT_CUTOFF = 8.0
"""Low-pass [Hz] of commands before they are differentiated; 3 to 15 give the same."""

INSTRUMENT_SHARE = 0.3  #: ... and at most this share of the sampling rate.

LAGS = (0.0, 0.06)
"""Lags of the commanded motion behind the commands [s]: two, so that a delay has an instrument."""

SLOW = 0.2  #: Share of a joint's RMS speed below which it is reversing.

REVERSAL = 0.06
"""Time around a reversal that is left out [s]; without this a delay of 4 ms was found as 8."""

SPEED_CUTOFF = 10.0  #: Low-pass [Hz] of the speed from which reversals are detected.

LEAST_SECONDS = 10.0
"""Shorter logs are refused; 8 s gave gain ratios to 5 %, of a robot that moved fast."""

LIMIT_DELAYS = (0.002, 0.008, 0.02, 0.04)
LIMIT_GRIDS = (
    (np.geomspace(0.02, 0.1, 3), np.geomspace(0.05, 1.0, 6)),
    (np.geomspace(0.01, 0.2, 9), np.geomspace(0.03, 1.0, 14)),
)
"""Delays [s] from which limits are sought, then dampings over the gain [s] and limits as shares of
the largest error: a coarse grid for the delay, and a finer one at the delay that was found."""

MOST_LIMITED = 0.5
"""Share of samples at a limit beyond which none is sought: the log is refused as unexplained."""

LIMIT_STEPS = 250  #: Number of evaluations to refine limits.
LIMIT_GAIN = 3.0  #: Factor by which a limit must make a joint's misfit smaller.


@dataclass(frozen=True, eq=False)
class _ServoStretch:
    """One run: signals at all samples, `q` as the encoder has it, and which samples are rows."""

    run: Run
    q: Array
    commands: Array
    window: GaussianLowPass
    centres: npt.NDArray[np.intp]

    def filter_rows(self, signal: Array) -> Array:
        """A signal behind the low-pass, at the rows."""
        first = int(self.centres[0]) - self.window.half_width
        return self._decimating_filter.filter_rows(signal[first:].T, len(self.centres)).T

    @cached_property
    def _decimating_filter(self) -> DecimatingFilter:
        return self.window.decimating_filter()

    def delayed_commands(self, delay: float) -> Array:
        """Commands as they act, at all samples."""
        return delay_commands(self.commands, delay, 1.0 / self.run.rate)

    def position_error(self, delay: float, position: bool, limits: TorqueLimits | None) -> Array:
        """The error that the gain multiplies, at all samples: commands minus positions, within
        limits.
        """
        error = self.delayed_commands(delay) - position * self.run.q
        if limits is None:
            return error
        motion = self.run.q, self.run.dq
        return limits.limit_errors(error, motion, self.commands, delay, 1.0 / self.run.rate)

    def rows_in_motion(self) -> Mask:
        """Rows away from the joints' own reversals, (rows, dof)."""
        rate = self.run.rate
        speed = self.run.dq
        if rate > 2.5 * SPEED_CUTOFF:
            speed = low_pass(speed, SPEED_CUTOFF, rate)
        slow = np.abs(speed) < SLOW * np.sqrt(np.mean(speed**2, axis=0))
        width = np.ones((2 * round(REVERSAL * rate) + 1, 1))
        # By FFT, counts carry rounding: none is less than a half.
        return np.asarray(oaconvolve(slow, width, mode="same", axes=0)[self.centres] < 0.5)

    def commanded_run(self, lag: float) -> Run:
        """The run as it was commanded, a lag later."""
        rate = self.run.rate
        cutoff = min(INSTRUMENT_CUTOFF, INSTRUMENT_SHARE * rate)
        commands = low_pass(self.delayed_commands(lag), cutoff, rate)
        return replace(with_derivatives(self.run, commands), band=cutoff)


@dataclass(frozen=True, eq=False)
class MotionRegressors:
    """Filtered regressors of one motion, per joint (rows, nb): all of it, and its weight alone."""

    full: tuple[Array, ...]
    weight: tuple[Array, ...]

    def less_weight(self, j: int, share: float) -> Array:
        """A joint's regressor without this share of the weight, which its servo carries."""
        return self.full[j] - share * self.weight[j] if share else self.full[j]


@dataclass(frozen=True, eq=False)
class ServoRows:
    """Filtered equations of logs with one load."""

    stretches: tuple[_ServoStretch, ...]
    law: str
    robot: Robot
    motion: MotionRegressors  #: Of the logged motion.
    #: Of the commanded motion at each lag; those of a law without one are the logged motion's.
    commanded: tuple[MotionRegressors, ...]
    use: Mask  #: Shape (rows, dof).
    shift: Array  #: Shape (nb,): what a known load adds to the base parameters.

    @classmethod
    def from_logs(
        cls,
        logs: Iterable[Any],
        base: BaseParameters,
        law: str,
        options: Mapping[str, Any],
        shift: Array | None = None,
    ) -> ServoRows:
        """Rows of all runs of these logs."""
        reading = dict(select_options(LogOptions, options))
        reading["cutoff"], reading["filtering"] = reading["cutoff"] or CUTOFF, "equations"
        stretches: list[_ServoStretch] = []
        reading["servo"] = Servo(base.robot.joints, law=law)
        turning = np.array([b.motion[:3].any() for b in base.robot.bodies]) * (law == "position")
        for log in logs:
            if isinstance(log, Reduced):
                raise InputError("commands are needed row by row: pass the log, not reduced data")
            recording = Recording.from_source(log)
            signals = read_signals(recording, base.robot, **select_options(ReadOptions, reading))
            for run in recording.motion(base.robot, **reading).runs:
                window = GaussianLowPass(reading["cutoff"], run.rate)
                centres = window.kept_rows(len(run), run.anchor, run.own)
                if not len(centres):
                    continue
                # Commands of a joint that turns freely may be whole turns away from positions.
                turns = 2 * np.pi * np.round((run.tau - run.q) / (2 * np.pi))
                counted, commands = signals.values["q"][run.rows], run.tau - turning * turns
                smooth = with_derivatives(run, run.q)
                stretches.append(_ServoStretch(smooth, counted, commands, window, centres))
        seconds = sum(len(s.run) / s.run.rate for s in stretches)
        if seconds < LEAST_SECONDS:
            raise NotEnoughDataError(
                f"the log has {seconds:.4g} s of motion, and gains need {LEAST_SECONDS:g} s: "
                "record longer"
            )
        lags = LAGS if law == "position" else ()
        runs = [(s.run, *map(s.commanded_run, lags)) for s in stretches]
        columns, made = [int(c) for c in base.independent], []
        former = RowFormer(base.robot, columns, reading["cutoff"])
        inertial = np.isin(columns, base.robot.inertial_columns)
        for moved in zip(*runs, strict=True):
            # At rest, inertial columns are those of gravity.
            at_rest = [replace(r, dq=np.zeros_like(r.q), ddq=np.zeros_like(r.q)) for r in moved]
            weight = tuple(W * inertial for W in _form_regressors(former, at_rest))
            made.append(MotionRegressors(_form_regressors(former, moved), weight))
        use = np.concatenate([s.rows_in_motion() for s in stretches])
        none = np.zeros(len(base.independent)) if shift is None else shift
        commanded = tuple(made[1:] or made)
        return cls(tuple(stretches), law, base.robot, made[0], commanded, use, none)

    @cached_property
    def counts(self) -> Array:
        """Smallest step of each joint's positions, (dof,) [rad or m]; infinite for none."""
        q = np.concatenate([s.q for s in self.stretches])
        steps = np.abs(np.diff(q, axis=0))
        # Differences that rounding leaves are no steps of an encoder.
        moving = np.where(steps > 1e-9 * np.ptp(q, axis=0), steps, np.inf)
        return np.asarray(moving.min(axis=0))

    def rounding_share(self, delay: float, limits: TorqueLimits | None) -> Array:
        """Filtered error of each joint that the rounding of positions causes, (dof,)."""
        # Rounding is uniform within one step.
        noise = self.counts / np.sqrt(12) * np.linalg.norm(self.stretches[0].window.taps)
        error = np.where(self.use, self.filtered_error(delay, limits), 0.0)
        size = np.sqrt(np.sum(error**2, axis=0) / np.maximum(self.use.sum(axis=0), 1))
        return np.asarray(noise / np.maximum(size, 1e-300))

    @cached_property
    def regressor_bases(self) -> list[Array]:
        """Per joint an orthonormal basis of its regressor's columns at the rows that are used."""
        made = []
        for W, used in zip(self.motion.full, self.use.T, strict=True):
            A = W[used]
            norms = np.linalg.norm(A, axis=0)
            made.append(np.linalg.qr(A[:, norms > 0] / norms[norms > 0])[0])
        return made

    def filtered_error(self, delay: float, limits: TorqueLimits | None) -> Array:
        """Filtered errors within limits, (rows, dof); currents are samples and not held."""
        if self.law == "current":
            return np.concatenate([s.filter_rows(s.commands) for s in self.stretches])
        position = self.law == "position"
        made = (s.filter_rows(s.position_error(delay, position, limits)) for s in self.stretches)
        return np.concatenate([*made])

    def term_signals(self, terms: Sequence[str], lags: Array | tuple[float, float]) -> list[Array]:
        """Filtered signals of further terms, (rows, dof) each."""
        return [self._gravity if t == "gravity" else self._term_signal(t, lags) for t in terms]

    @cached_property
    def _gravity(self) -> Array:
        return self._term_signal("gravity", (0.0, 0.0))

    def _term_signal(self, term: str, lags: Array | tuple[float, float]) -> Array:
        parts = []
        for s in self.stretches:
            period = 1.0 / s.run.rate
            made = servo_term_signals((term,), self.robot, s.run.q, s.commands, lags, period)
            parts.append(s.filter_rows(made[term]))
        return np.concatenate(parts)


def with_derivatives(run: Run, q: Array) -> Run:
    """The run along these positions, with derivatives of the quintic spline through them.

    Central differences are short by (w h)^2 / 6: at 50 Hz a delay of 4 ms was found as 3.
    """
    t = np.arange(len(q)) / run.rate
    spline = make_interp_spline(t, q, k=5)
    return replace(run, q=q, dq=spline(t, 1), ddq=spline(t, 2), live=None)


def _form_regressors(former: RowFormer, runs: Sequence[Run]) -> tuple[Array, ...]:
    """Per joint the filtered regressor of these runs, (rows, nb)."""
    every = [rows for run in runs if (rows := former.rows_of(run)) is not None]
    out = []
    for j, support in enumerate(former.supports):
        columns = np.concatenate([rows.filtered[j][:-1] for rows in every], axis=1)
        wide = np.zeros((columns.shape[1], len(former.plan.columns)))
        wide[:, support] = columns.T
        out.append(wide)
    return tuple(out)


def find_limits(rows: ServoRows) -> TorqueLimits | None:
    """Torque limits that explain the errors of a joint; None for none.

    Per joint, limit and damping over the gain with which free base parameters explain the errors
    best, at the delay of the joint which they explain best of all.
    """
    n = rows.robot.dof
    errors = np.concatenate([s.position_error(0.0, True, None) for s in rows.stretches])
    largest = np.abs(errors).max(axis=0)

    def search(j: int, delays: Sequence[float], dampings: Array, shares: Array) -> Array:
        """Delay, damping, share and misfit at the best of these points, refined."""
        grid = [(d, k, s) for d in delays for k in dampings for s in shares]
        misfits = [_limited_misfit(rows, j, d, k, s * largest[j]) for d, k, s in grid]

        def cost(x: Array) -> float:
            return float(np.log(_limited_misfit(rows, j, x[0], x[1], x[2] * largest[j]) + 1e-12))

        start = np.array(grid[int(np.argmin(misfits))])
        steps = start + np.vstack([0 * start, np.diag([0.002, 0.1 * start[1], 0.05 * start[2]])])
        how: Any = {"maxfev": LIMIT_STEPS, "initial_simplex": steps}
        made = minimize(cost, start, method="Nelder-Mead", options=how)
        return np.array([*made.x, np.exp(made.fun)])

    first = [search(j, LIMIT_DELAYS, *LIMIT_GRIDS[0]) for j in range(n)]
    delay = float(min(first, key=lambda x: float(x[3]))[0])
    fitted = np.array([search(j, (delay,), *LIMIT_GRIDS[1]) for j in range(n)])
    before = np.array([_limited_misfit(rows, j, delay, 0.0, np.inf) for j in range(n)])
    after = fitted[:, 3]
    cut = after < before / LIMIT_GAIN
    if not cut.any():
        return None
    dampings = np.where(cut, fitted[:, 1], 0.0)
    return TorqueLimits(np.where(cut, fitted[:, 2] * largest, np.inf), dampings)


def _limited_misfit(rows: ServoRows, j: int, delay: float, damping: float, limit: float) -> float:
    """Share of a joint's errors within a limit that its base parameters, all free, leave.

    Of the errors less damping: with a limit of zero, damping alone would explain everything.
    """
    made, damped, beyond, sums = [], [], [], []
    limits = TorqueLimits(np.array([limit]), np.array([damping]))
    for s in rows.stretches:
        q, dq, commands = s.run.q[:, [j]], s.run.dq[:, [j]], s.commands[:, [j]]
        e = s.delayed_commands(delay)[:, [j]] - q
        cut = limits.limit_errors(e, (q, dq), commands, delay, 1.0 / s.run.rate)
        made.append(s.filter_rows(cut))
        damped.append(s.filter_rows(damping * dq))
        sums.append(s.filter_rows(e))
        beyond.append(np.abs(e - damping * dq) > limit)
    if limit <= 0 or damping < 0 or np.mean(np.concatenate(beyond)) > MOST_LIMITED:
        return 1.0
    used, Q = rows.use[:, j], rows.regressor_bases[j]
    e = np.concatenate(made)[used, 0]
    within = e - np.concatenate(damped)[used, 0]
    size = min(np.linalg.norm(within), np.linalg.norm(np.concatenate(sums)[used, 0]))
    return float(np.linalg.norm(e - Q @ (Q.T @ e)) / size)
