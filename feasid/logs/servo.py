"""Torques from the commands of joint controllers whose gains are known.

A position servo's torque is ``kp (c(t - d) - q) - kd dq``, c its command, which it holds until the
next one, d a delay. Damping belongs to the friction that is fitted, so that what is computed here
is ``kp (c(t - d) - q)`` and what candidates add to the bracket. A servo of velocities drives with
``kp c``, one of currents with the torque constant times c.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.signal import lfilter

from feasid.core.arrays import Array, Mask
from feasid.core.errors import InputError, did_you_mean
from feasid.logs.filters import smooth_and_differentiate
from feasid.options.tables import LAWS, SERVO_TERMS
from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import inverse_dynamics

SPEED_CUTOFF, SPEED_SHARE = 60.0, 0.4
"""Low-pass [Hz] of speeds of which limits are a matter, and its share of the sampling rate."""

NEAR_STOP, AT_STOP, STOP_TIME = 0.03, 0.005, 0.2
"""A joint is at a mechanical stop where it stays for this time [s] within `AT_STOP` of its range,
less than `NEAR_STOP` from its end: the stop carries what the servo's torque says."""


def joint_ends(robot: Robot) -> Array:
    """Ends of the joints' ranges, (dof, 2), infinite where the description has none."""
    ends = np.full((robot.dof, 2), (-np.inf, np.inf))
    for body, rows in robot.moving_bodies:
        low, high = body.limits.lower, body.limits.upper
        if body.dof == 1 and low is not None and high is not None:
            ends[rows.start] = low, high
    return ends


def rows_at_stops(t: Array, q: Array, ends: Array) -> Mask:
    """Rows (N,) of one run in which a joint rests at an end of its range."""
    span = ends[:, 1] - ends[:, 0]
    size = np.where(np.isfinite(span), span, 0.0)
    period = float(np.median(np.diff(t))) if len(t) > 1 else np.inf
    half = max(1, int(np.ceil(STOP_TIME / 2 / max(period, 1e-9))))
    before, after = (q[np.clip(np.arange(len(q)) + k, 0, len(q) - 1)] for k in (-half, half))
    rests = np.maximum(np.abs(q - before), np.abs(after - q)) <= AT_STOP * size
    at_stop = (q < ends[:, 0] + NEAR_STOP * size) | (q > ends[:, 1] - NEAR_STOP * size)
    middles = (rests & at_stop & (size > 0)).any(axis=1)
    return np.asarray(np.convolve(middles, np.ones(2 * half + 1), mode="same")[: len(q)] > 0.5)


def delay_commands(commands: Array, delay: float, period: float) -> Array:
    """Commands that are held, `delay` later, as slow signals see them at the rows.

    A command holds from its row to the next. Its mean over a period around a row is linear
    interpolation between rows, half a period late; of a slow signal it is short by h^2 / 24 times
    the second derivative, which is added.
    """
    now, before, part = _commands_at_rows(commands, delay, period)
    means = np.asarray((1 - part) * now + part * before)
    out = means.copy()
    out[1:-1] -= (means[2:] - 2 * means[1:-1] + means[:-2]) / 24
    return out


def _commands_at_rows(commands: Array, delay: float, period: float) -> tuple[Array, Array, float]:
    """Commands at the ends of the periods around rows and at their begins, and these' share."""
    steps, part = divmod(delay / period + 0.5, 1.0)
    rows = np.arange(len(commands)) - int(steps)
    now, before = (commands[np.clip(k, 0, len(commands) - 1)] for k in (rows, rows - 1))
    return now, before, part


def command_rates(commands: Array, lags: Array | tuple[float, float], period: float) -> Array:
    """Rates of held commands behind a low-pass, as means over the sampling periods around rows.

    The low-pass ``T dx/dt = c - x`` approaches each command exponentially, and the mean of dx/dt
    over a period is the change of x. `lags` are the delay and T [s].
    """
    delay, time = lags
    steps, part = divmod(delay / period + 0.5, 1.0)
    # Without a low-pass, a command is followed at once.
    decay = np.exp(-period * np.array([1.0, 1.0 - part]) / max(time, 1e-6 * period))
    first = commands[:1]
    behind = lfilter([1.0 - decay[0]], [1.0, -decay[0]], commands - first, axis=0) + first
    behind = np.vstack([first, behind[:-1]])
    ends = commands + (behind - commands) * decay[1]
    rows = np.clip(np.arange(len(commands)) - int(steps), 0, len(commands) - 1)
    return np.asarray((ends[rows] - ends[np.maximum(rows - 1, 0)]) / period)


def servo_term_signals(
    terms: Iterable[str],
    robot: Robot,
    q: Array,
    commands: Array,
    lags: Array | tuple[float, float],
    period: float,
) -> dict[str, Array]:
    """Signals that candidates add to the error, shape (N, dof) each; lags as `command_rates`."""
    made: dict[str, Callable[[], Array]] = {
        "integral": lambda: (
            np.cumsum(delay_commands(commands, lags[0], period) - q, axis=0) * period
        ),
        "rate": lambda: command_rates(commands, lags, period),
        "gravity": lambda: inverse_dynamics(robot.without_joint_terms(), q, 0 * q, 0 * q),
    }
    return {name: np.asarray(made[name]()) for name in terms}


@dataclass(frozen=True, eq=False)
class TorqueLimits:
    """Where torques are cut off, ``|kp e - kd dq| <= limit``, over the gains kp."""

    error: Array  #: Shape (dof,): limit / kp [rad or m], infinite for none; kd / kp [s].
    damping: Array  #: See `error`.

    def scale(self, error: Array | float, damping: Array | float) -> TorqueLimits:
        """Limits with their attributes times these factors."""
        return TorqueLimits(self.error * error, self.damping * damping)

    def limit_errors(
        self, error: Array, motion: Sequence[Array], commands: Array, delay: float, period: float
    ) -> Array:
        """Errors (N, dof) without what is beyond the limits, of positions and speeds `motion`.

        A command that changes within a sampling period may be cut off before it or after: either
        part counts by itself, with the motion of its middle.
        """
        now, before, part = _commands_at_rows(commands, delay, period)
        out = error
        for held, share, later in ((before, part, (part - 1) / 2), (now, 1 - part, part / 2)):
            ends = (np.vstack([x[:1], x, x[-1:]]) for x in motion)
            others = (x[2:] if later > 0 else x[:-2] for x in ends)
            q, dq = (x + abs(later) * (y - x) for x, y in zip(motion, others, strict=True))
            damped = held - q - self.damping * dq
            out = out - share * (damped - np.clip(damped, -self.error, self.error))
        return out


@dataclass(frozen=True, eq=False)
class Servo:
    """Conversion of logged commands into torques."""

    joints: tuple[str, ...]
    #: Torque per unit of the error (position), of the command (velocity) or of the current: [N m /
    #: rad], [N m s / rad], [N m / A], and with N and m for sliding joints. Empty leaves commands as
    #: they are logged.
    kp: tuple[float, ...] = ()
    delay: float = 0.0  #: From a command's row to its effect, by the log's clock [s].
    law: str = "position"  #: One of "position", "velocity", "current".
    #: Factors of further terms per joint, by `SERVO_TERMS`.
    terms: Mapping[str, tuple[float, ...]] | None = None
    #: Torque limit, and the damping within it that is not friction, per joint; empty for none.
    limit: tuple[float, ...] = ()
    kd: tuple[float, ...] = ()  #: See `limit`.
    rate_time: float = 0.0  #: Time constant of the low-pass of the command's rate [s].
    #: Inertial parameters of the bodies whose weight a term "weight" is a share of.
    carried: tuple[float, ...] = ()

    @property
    def has_only_gain_and_damping(self) -> bool:
        """Whether position gain and damping are all that it does."""
        return self.law == "position" and not self.terms and not self.limit

    @property
    def gains(self) -> dict[str, float]:
        """The gains by joint."""
        return dict(zip(self.joints, self.kp, strict=True))

    @classmethod
    def from_option(cls, value: Any, robot: Robot) -> Servo:
        """A servo as it is, or of a mapping of its attributes with ``kp`` by joint."""
        if isinstance(value, cls):
            servo = value
        else:
            known = [f.name for f in fields(cls)]
            for name in value:
                if name not in known:
                    raise InputError(f"servo has no {name!r}{did_you_mean(name, known)}")
            gains = value.get("kp", {})
            named = dict(gains) if isinstance(gains, Mapping) else {}
            joints = tuple(named) if named else tuple(value.get("joints", robot.joints))
            kp = tuple(map(float, named.values() if named else gains))
            terms = {k: tuple(map(float, v)) for k, v in (value.get("terms") or {}).items()}
            law = str(value.get("law", "position"))
            limit, kd, carried = (
                tuple(map(float, value.get(name, ()))) for name in ("limit", "kd", "carried")
            )
            delay, late = (float(value.get(name, 0.0)) for name in ("delay", "rate_time"))
            servo = cls(joints, kp, delay, law, terms, limit, kd, late, carried)
        missing = [j for j in robot.joints if j not in servo.joints]
        if missing or len(servo.joints) != robot.dof or len(servo.kp) not in (0, robot.dof):
            raise InputError(
                f"servo needs a gain kp for each of {', '.join(robot.joints)}, and has "
                f"{', '.join(servo.joints) or 'none'}",
                option="servo",
            )
        if servo.law not in LAWS or not set(servo.terms or {}) <= set(SERVO_TERMS):
            raise InputError(
                f"servo has the law {servo.law!r} and terms {[*(servo.terms or {})]}: there are "
                f"the laws {', '.join(LAWS)}, and the terms {', '.join(SERVO_TERMS)}",
                option="servo",
            )
        return servo

    def torques(self, robot: Robot, t: Array, q: Array, commands: Array) -> Array:
        """Torques [N m or N] but for damping of one run, (N, dof), as `q` and `commands`."""
        if not self.kp:
            return commands
        order = [self.joints.index(j) for j in robot.joints]
        period = float(np.median(np.diff(t))) if len(t) > 1 else 1.0
        held = self.law != "current"  # currents are samples of their rows
        late = delay_commands(commands, self.delay, period) if held else commands
        error, gains = late - q if self.law == "position" else late, np.asarray(self.kp)[order]
        full = np.flatnonzero(np.isfinite(q).all(axis=1) & np.isfinite(commands).all(axis=1))
        if 0 < len(full) < len(q):  # for sums and filters, empty cells are those of rows before
            before = np.searchsorted(full, np.arange(len(q)), side="right") - 1
            q, commands = (x[full[np.maximum(before, 0)]] for x in (q, commands))
        if self.limit:
            limits = TorqueLimits(*(np.asarray(x)[order] / gains for x in (self.limit, self.kd)))
            cutoff = min(SPEED_CUTOFF, SPEED_SHARE / period)
            motion = smooth_and_differentiate(q, 1, cutoff, 1.0 / period)
            error = limits.limit_errors(error, motion, commands, self.delay, period)
        extra, lags = dict(self.terms or {}), (self.delay, self.rate_time)
        share = extra.pop("weight", None)
        for name, signal in servo_term_signals(extra, robot, q, commands, lags, period).items():
            error = error + np.asarray(extra[name])[order] * signal
        torque = gains * error
        if share is not None:  # of the weight that the servo knows of
            bare = robot.without_joint_terms()
            values = bare.values.copy()
            if len(self.carried) != bare.inertial_columns.size:
                raise InputError(
                    "servo has the term 'weight' and needs carried: the inertial parameters of "
                    f"{len(bare.bodies)} bodies, ten each",
                    option="servo",
                )
            values[bare.inertial_columns.ravel()] = self.carried
            weight = inverse_dynamics(bare.with_values(values), q, 0 * q, 0 * q)
            torque = torque + np.asarray(share)[order] * weight
        return np.asarray(torque)
