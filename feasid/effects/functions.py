"""Torques that effects add, d tau / d theta: functions of the motion that give columns.

A column passes the same low-pass as everything else, so that an effect of size theta adds theta
times its column to the torques of the rows, to first order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from feasid.core.arrays import Array
from feasid.dynamics.regressor import inverse_dynamics
from feasid.effects.columns import LogRows, RunRows, harmonic_columns
from feasid.logs.motion import Run
from feasid.robot.description import Robot
from feasid.robot.joint_terms import FRICTION, TERMS, JointState

SOFT = 0.05
"""Share of a joint's largest torque over which backlash changes sides, smoothly."""

STEP = 1e-4
"""Step of joint zeros in difference quotients [rad or m]."""


@dataclass(frozen=True, order=True)
class Mistake:
    """One mistake."""

    kind: str
    joint: int = -1  #: an index, -1 for none.
    #: periods per 2 pi rad of a ripple; ratio of a motor that moves two joints; time constant of a
    #: warm-up [s].
    number: float = 0.0
    other: int = -1  #: the second joint of such a motor.


@dataclass(frozen=True, eq=False)
class Place:
    """An effect in one run of a log, around a feasible model."""

    rows: LogRows
    part: RunRows
    mistake: Mistake
    model: Robot  #: With the fitted values.
    beta: Array  #: Its base parameters, (nb,).


ColumnsOf = Callable[[Place], Array]
"""Columns (k, dof, M) of an effect in a run."""


def sign_of_speed(v: Array, robot: Robot) -> Array:
    """The sign of speeds [rad/s or m/s] as the friction of the robot's drives has it."""
    transition = max((d.transition for d in robot.drives), default=0.0)
    return np.tanh(v / transition) if transition else np.sign(v)


def horizontal_axes(gravity: Array) -> Array:
    """Two horizontal unit vectors, shape (2, 3): x and y of a base whose z axis is vertical."""
    up = -np.asarray(gravity, dtype=np.float64) / np.linalg.norm(gravity)
    first = np.eye(3)[int(np.argmin(np.round(np.abs(up), 9)))]
    first = first - up * (first @ up)
    first /= np.linalg.norm(first)
    return np.array([first, np.cross(up, first)])


def cold_friction(run: Run, robot: Robot, mistake: Mistake) -> Array:
    """Dry and viscous friction of unit size that fade while a joint warms up, shape (2, N)."""
    v, decay = run.dq[:, mistake.joint], np.exp(-run.t / mistake.number)
    return np.stack([decay * sign_of_speed(v, robot), decay * v])


def delay_columns(at: Place) -> Array:
    """Torques that are late, of one joint or of all."""
    out = np.zeros((1, *at.part.slope.shape))
    own = slice(None) if at.mistake.joint < 0 else at.mistake.joint
    out[0, own] = -at.part.slope[own]
    return out


def gain_columns(at: Place) -> Array:
    """The torque of a joint itself."""
    out, j = np.zeros((1, *at.part.slope.shape)), at.mistake.joint
    out[0, j] = at.part.regressor[j] @ at.beta[at.rows.supports[j]]
    return out


def of_joint(function: Callable[[Place], Iterable[Array]]) -> ColumnsOf:
    """Columns at one joint by functions (N,) of its motion at all samples."""

    def columns(at: Place) -> Array:
        signals = np.stack([*function(at)])
        out = np.zeros((len(signals), *at.part.slope.shape))
        out[:, at.mistake.joint] = at.part.filter_signal(np.ascontiguousarray(signals))
        return out

    return columns


def term_columns(word: str) -> ColumnsOf:
    """Columns of the terms of `feasid.robot.joint_terms` with a word of ``friction=``."""

    def factors(at: Place) -> Iterable[Array]:
        run, j = at.part.run, at.mistake.joint
        q, v, a = run.q[:, j], run.dq[:, j], run.ddq[:, j]
        rest = next((d.rest for d in at.model.drives if d.coupling == {at.model.joints[j]: 1}), 0.0)
        for term in (TERMS[symbol] for symbol in FRICTION[word]):
            load = None
            if term.needs_load:
                load = at.rows.load(at.part, at.model, at_rest=term.at_rest)[:, j]
            sign = sign_of_speed(v, at.model)
            state = JointState(q, q - rest, q - rest, (), v, a, sign, load, np)
            yield np.asarray(term.factor(state))

    return of_joint(factors)


def abrupt_columns(at: Place) -> Array:
    """Difference between Coulomb friction that changes its sign at once and that of the model."""
    run, model = at.part.run, at.model
    out = np.zeros((1, *at.part.slope.shape))
    for k, drive in enumerate(model.drives):
        place = model.drive_columns(k).get("fc")
        if place is None or not drive.transition:
            continue
        v = run.dq @ model.coupling(k)
        change = model.values[place] * (np.sign(v) - np.tanh(v / drive.transition))
        out[0] += np.outer(model.coupling(k), at.part.filter_signal(change[None])[0])
    return out


def drift_of(at: Place) -> Iterable[Array]:
    """An offset that grows in time."""
    t = at.part.run.t
    yield (t - t.mean()) / max(float(np.ptp(t)), STEP)


def warm_up_of(at: Place) -> Iterable[Array]:
    """Friction that fades, see `cold_friction`."""
    return cold_friction(at.part.run, at.rows.robot, at.mistake)


def ripple_of(at: Place) -> Iterable[Array]:
    """Waves of the joint's position."""
    return harmonic_columns(at.part.run.q[:, at.mistake.joint], at.mistake.number).T


def tilt_columns(at: Place) -> Array:
    """Gravity that turns about two horizontal axes."""
    rigid = at.model.without_joint_terms()
    out = []
    for axis in horizontal_axes(at.rows.robot.gravity):
        change = rigid.with_gravity(np.cross(axis, at.model.gravity))
        out.append(
            at.part.filter_smooth_function(
                lambda q, g=change: inverse_dynamics(g, q, 0 * q, 0 * q).T, at.part.run.q
            )
        )
    return np.array(out)


def zero_columns(at: Place) -> Array:
    """Torques of the rigid bodies at shifted positions of a joint."""
    run, step = at.part.run, STEP * np.eye(at.rows.robot.dof)[at.mistake.joint]
    rigid = at.model.without_joint_terms()

    def moved(q: Array, dq: Array, ddq: Array) -> Array:
        return inverse_dynamics(rigid, q + step, dq, ddq).T

    after = at.part.filter_smooth_function(moved, run.q, run.dq, run.ddq)
    return np.asarray(after - at.rows.rigid_torque(at.part, at.model))[None] / STEP


def compliance_columns(at: Place) -> Array:
    """Motion of the link behind a spring of small compliance, q - c tau, or behind play, which
    changes sides with the torque's sign.
    """
    run, rigid, j = at.part.run, at.model.without_joint_terms(), at.mistake.joint
    period = at.part.smooth_spacing / run.rate

    def softened(q: Array, dq: Array, ddq: Array) -> Array:
        stiff = at.rows.unfiltered_torque(at.part, at.model)
        tau = stiff[:, j]
        if at.mistake.kind == "backlash":
            tau = np.tanh(tau / max(SOFT * float(np.abs(tau).max()), 1e-300))
        rate = np.gradient(tau, period)
        c = STEP / max(float(np.abs(tau).max()), 1e-300)
        unit = np.eye(at.rows.robot.dof)[j]
        moved = (
            x - c * np.outer(d, unit)
            for x, d in zip((q, dq, ddq), (tau, rate, np.gradient(rate, period)), strict=True)
        )
        return np.asarray((inverse_dynamics(rigid, *moved) - stiff).T / c)

    return at.part.filter_smooth_function(softened, run.q, run.dq, run.ddq)[None]


def coupling_columns(at: Place) -> Array:
    """Inertia and friction of a motor along a combination of two joints."""
    run, j, k = at.part.run, at.mistake.joint, at.mistake.other
    v, a = (x[:, j] + at.mistake.number * x[:, k] for x in (run.dq, run.ddq))
    own = at.part.filter_signal(np.stack([a, v, sign_of_speed(v, at.rows.robot)]))
    out = np.zeros((3, at.rows.robot.dof, len(at.part.t)))
    out[:, j], out[:, k] = own, at.mistake.number * own
    return out
