"""The table of effects, besides rigid bodies, that may enter a fit or are only reported.

Each effect has coefficients theta that are zero when a log and its description are right: angles by
which the base is tilted, the time by which torques are late, the logarithm of a torque's gain, the
stiffness of a cable. A new effect is one entry of `EFFECTS`.

Its columns are d tau / d theta, functions of the motion. They pass the same low-pass as everything
else, so that an effect of size theta adds theta times its column to the torques of the rows, to
first order.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from feasid.core.arrays import Array
from feasid.core.memo import compute_once
from feasid.core.text import in_two_digits
from feasid.identification.regression.rows import Rows, RunRows
from feasid.logs.motion import Run
from feasid.logs.temperature import friction_per_kelvin
from feasid.robot.description import Robot
from feasid.robot.dynamics.newton_euler import TorqueDerivatives, torque_derivatives
from feasid.robot.dynamics.regressor import inverse_dynamics
from feasid.robot.joint_terms import FRICTION, SEARCHED, TERMS, JointState

SOFT = 0.05  #: Share of a joint's largest torque over which backlash changes sides, smoothly.
HARMONICS = range(6, 201)
"""Periods per 2 pi rad of ripple that are searched. Fewer waves do not count as ripple: smooth
functions of the position are searched separately."""


@dataclass(frozen=True, order=True)
class EffectAt:
    """An effect at a joint, or of the whole log."""

    kind: str
    joint: int = -1  #: an index, -1 for none.
    #: periods per 2 pi rad of a ripple; ratio of a motor that moves two joints; time constant of a
    #: warm-up [s].
    number: float = 0.0
    other: int = -1  #: the second joint of such a motor.
    origin: float = 0.0  #: temperature at which the model holds [degrees C].

    @property
    def effect(self) -> Effect:
        """Its entry in the table."""
        return EFFECTS[self.kind]

    def sentence(self, sizes: str) -> str:
        """The effect's sentence with these sizes, in words."""
        return self.effect.text.format(sizes=sizes, time=in_two_digits(self.number))


ASSUMED = "assumed to be right, the log does not tell it"
"""Why an error did not enter that the log leaves as uncertain as it was before."""

TOLD = 0.1  #: Share of a prior's variance that a log must take away to tell an error.


@dataclass(frozen=True, eq=False)
class EffectResult:
    """What a log shows of an effect at a joint, and whether the fit has it."""

    at: EffectAt
    joint: str  #: Name; empty for an effect of the whole log.
    #: Its coefficients [SI]; NaN where the search did not come to a value.
    value: tuple[float, ...]
    deviation: tuple[float, ...]
    gain: float = 0.0  #: Share by which held-out errors fall, of all joints tried together.
    certainty: float = np.nan  #: Deviations of that over blocks of the log.
    entered: bool = False  #: Whether the fit has it; otherwise the covariance may allow for it.
    why: str = ""  #: Reason why it did not enter.
    alternatives: tuple[str, ...] = ()  #: Joints where it would explain the log as well.

    def __str__(self) -> str:
        if self.why == ASSUMED:
            return f"{self.at.kind}{f' of {self.joint}' if self.joint else ''}: {ASSUMED}"
        return self.at.sentence(self.size)

    @property
    def size(self) -> str:
        """The value with its deviation and unit, and whose it is."""
        effect = self.at.effect
        if effect.each:
            parts = zip(self.value, self.deviation, effect.each, strict=True)
            sizes = " and ".join(f"{v:.3g} +- {d:.2g} {unit}" for v, d, unit in parts)
            return f"{self.joint} by {sizes} around {self.at.origin:g} degrees C"
        part = slice(1 if effect.first else None)
        value, deviation = (effect.factor * np.array(x[part]) for x in (self.value, self.deviation))
        way = effect.ways[int(value[0] < 0)]
        shown = value[0] if len(value) == 1 and not way else np.linalg.norm(value)
        text = f"{shown:.3g} +- {np.linalg.norm(deviation):.2g} {effect.unit} {way}".rstrip()
        if self.joint:
            text = f"{self.joint} {text}"
        if self.alternatives:
            text += f" (or {' or '.join(self.alternatives)}: the log does not show which of them)"
        return text


@dataclass(frozen=True, eq=False)
class Around:
    """A feasible model, around which columns of an effect are formed on the rows of a run."""

    rows: Rows
    part: RunRows
    at: EffectAt
    model: Robot  #: With the fitted values.
    beta: Array  #: Its base parameters, (nb,).
    gravity: Array  #: Of the description: a tilt turns it about its horizontal axes [m / s^2].


ColumnsOf = Callable[[Around], Array]
"""Columns of an effect in a run: (k, M) in the rows of its joint alone, or (k, dof, M)."""


@dataclass(frozen=True)
class Effect:
    """Something that may enter a fit."""

    name: str
    #: An error of the log that is corrected in it, a joint term of the model, or a feature that is
    #: only reported.
    kind: Literal["sensor", "term", "feature"]
    text: str  #: Sentence of its note, with {sizes} in place of its value.
    columns: ColumnsOf  #: Torques that a coefficient of 1 adds.
    size: int = 1  #: Number of coefficients at one joint, or of the whole log.
    #: Deviation of a coefficient before a log is seen [SI]; None: by the torque.
    natural: float | None = None
    #: Deviation with which it is fitted [SI]: wide, so that it decides only what a log cannot tell.
    width: float = np.inf
    limit: float = np.inf  #: Largest step of its coefficients [SI].
    unit: str = ""
    factor: float = 1.0  #: From SI to `unit`.
    per_joint: bool = True  #: False: one for all joints.
    positive: bool = False  #: Whether its first coefficient cannot be below zero.
    #: In which log it is: in each of the robot, or in one log alone, as are sensors and days.
    of_log: bool = False
    timed: bool = False  #: A function of time: what is held out lies between what is fitted.
    terms: tuple[str, ...] = ()  #: Words of ``friction=`` with which a fit models it.
    ways: tuple[str, str] = ("", "")  #: Words after a positive size, and a negative one.
    remark: str = ""  #: Sentence that a fit adds after correcting it.
    doubtful: bool = False  #: Whether a fit that corrected it is still in doubt.
    each: tuple[str, ...] = ()  #: Units of its coefficients where they differ, for sentences.
    instead_of: str = ""  #: Another effect of which only this one, or that one, enters at a joint.
    single: bool = False  #: Whether it enters at a joint whatever it does at others.
    first: bool = False  #: Whether its size is its first coefficient; otherwise the norm of all.

    def known(self, symbols: Container[str]) -> bool:
        """Whether a drive with these symbols has the terms of this effect."""
        return all(s in symbols for word in self.terms[:1] for s in SEARCHED[word])


def sign_of_speed(v: Array, robot: Robot) -> Array:
    """The sign of speeds [rad/s or m/s] as the friction of the robot's drives has it."""
    transition = max((d.transition for d in robot.drives), default=0.0)
    return np.tanh(v / transition) if transition else np.sign(v)


def horizontal_axes(gravity: Array) -> Array:
    """Two horizontal unit vectors, shape (2, 3): x and y of a base whose z axis is vertical."""
    up = -np.asarray(gravity, dtype=np.float64) / np.linalg.norm(gravity)
    # The axis that is least along it; rounded, so that rounding errors do not choose between two.
    first = np.eye(3)[int(np.argmin(np.round(np.abs(up), 9)))]
    first = first - up * (first @ up)
    first /= np.linalg.norm(first)
    return np.array([first, np.cross(up, first)])


def cold_friction(run: Run, robot: Robot, at: EffectAt) -> Array:
    """Dry and viscous friction of unit size that fade while a joint warms up, shape (2, N)."""
    v, decay = run.dq[:, at.joint], np.exp(-run.t / at.number)
    return np.stack([decay * sign_of_speed(v, robot), decay * v])


def delay_columns(around: Around) -> Array:
    """Torques that are late, of one joint or of all."""
    # A late torque is the true one minus the delay times its slope.
    slope = around.part.slope
    return -slope[None] if around.at.joint < 0 else -slope[[around.at.joint]]


def gain_columns(around: Around) -> Array:
    """The torque of a joint itself."""
    j = around.at.joint
    return np.asarray(around.beta[around.rows.supports[j]] @ around.part.filtered[j][:-1])[None]


def of_joint(function: Callable[[Around], Iterable[Array]]) -> ColumnsOf:
    """Columns at one joint by functions (N,) of its motion at all samples."""

    def columns(around: Around) -> Array:
        return around.part.filter_signal(np.stack([*function(around)]))

    return columns


def term_columns(word: str) -> ColumnsOf:
    """Columns of the terms of `feasid.robot.joint_terms` with a word of ``friction=``."""

    def factors(around: Around) -> Iterable[Array]:
        run, j = around.part.run, around.at.joint
        q, v, a = run.q[:, j], run.dq[:, j], run.ddq[:, j]
        alone = {around.model.joints[j]: 1}
        centre = next((d.rest for d in around.model.drives if d.coupling == alone), 0.0)
        for term in (TERMS[symbol] for symbol in FRICTION[word]):
            load = None
            if term.needs_load:
                at = around.rows, around.part, around.model
                load = around.part.interpolate(decimated_rigid_torque(*at, term.at_rest)[:, j])
            sign = sign_of_speed(v, around.model)
            state = JointState(q, q - centre, q - centre, (), v, a, sign, load, np)
            yield np.asarray(term.factor(state))

    return of_joint(factors)


def abrupt_columns(around: Around) -> Array:
    """Difference between Coulomb friction that changes its sign at once and that of the model."""
    run, model = around.part.run, around.model
    out = np.zeros((1, *around.part.slope.shape))
    for k, drive in enumerate(model.drives):
        place = model.drive_columns(k).get("fc")
        if place is None or not drive.transition:
            continue
        v = run.dq @ model.coupling(k)
        change = model.values[place] * (np.sign(v) - np.tanh(v / drive.transition))
        out[0] += np.outer(model.coupling(k), around.part.filter_signal(change[None])[0])
    return out


def drift_of(around: Around) -> Iterable[Array]:
    """An offset that grows in time."""
    first, last = around.rows.t.min(), around.rows.t.max()
    yield (around.part.run.t - 0.5 * (first + last)) / max(float(last - first), 1e-300)


def tilt_columns(around: Around) -> Array:
    """Gravity that turns about two horizontal axes.

    Axes of the corrected gravity are others: a tilt of any size exchanges those of an upright base.
    """
    rigid, q = around.model.without_joint_terms(), around.part.decimate(around.part.run.q)
    out = []
    for axis in horizontal_axes(around.gravity):
        change = rigid.with_gravity(np.cross(axis, around.model.gravity))
        out.append(around.part.filter_smooth(inverse_dynamics(change, q, 0 * q, 0 * q).T))
    return np.array(out)


def zero_columns(around: Around) -> Array:
    """Torques of the rigid bodies at shifted positions of a joint."""
    change = decimated_derivatives(around.rows, around.part, around.model).by_position
    return around.part.filter_smooth(change[:, around.at.joint])[None]


def compliance_columns(around: Around) -> Array:
    """Motion of the link behind a spring of small compliance, q - c tau, or behind play, which
    changes sides with the torque's sign.
    """
    rows, part, j = around.rows, around.part, around.at.joint
    tau = decimated_rigid_torque(rows, part, around.model)[:, j]
    if around.at.kind == "backlash":
        # Smooth, so that its rate exists, which moves the link's inertia.
        tau = np.tanh(tau / max(SOFT * float(np.abs(tau).max()), 1e-300))
    change = decimated_derivatives(rows, part, around.model)
    period = part.smooth_spacing / part.run.rate
    rate = np.gradient(tau, period)
    yielding = change.by_position[:, j] * tau + change.by_velocity[:, j] * rate
    yielding += change.by_acceleration[:, j] * np.gradient(rate, period)
    return -part.filter_smooth(yielding)[None]


def coupling_columns(around: Around) -> Array:
    """Inertia and friction of a motor along a combination of two joints."""
    run, j, k = around.part.run, around.at.joint, around.at.other
    v, a = (x[:, j] + around.at.number * x[:, k] for x in (run.dq, run.ddq))
    signals = around.part.filter_signal(np.stack([a, v, sign_of_speed(v, around.rows.robot)]))
    out = np.zeros((3, around.rows.robot.dof, len(around.part.samples)))
    out[:, j], out[:, k] = signals, around.at.number * signals
    return out


DEGREES = 180.0 / np.pi

AS_LOGGED = "; fit.robot takes positions as they are logged, files take true ones"
SHARED = (
    "; the log determines ratios of torques, not their common factor: compare a joint with a "
    "known load (feasid.torque_constants)"
)

ZEROS = "joint zeros are off: true minus logged position is {sizes}"
GAINS = "torques are wrong: {sizes}"
BEHIND = ("behind the motion", "ahead of the motion")
SCALED = ("too large", "too small")

WARM = (
    "joints warm up with a time constant of {time} s: dry friction at the log's beginning was "
    "{sizes}"
)
WARMER = ("larger than later", "smaller than later")
WARMED = (
    "; the model is that of joints that stay warm: record warm joints, or leave the beginning out"
)

TEMPERATURE = "dry and viscous friction change with the temperature: {sizes}"
AT_ONE = (
    "; the model and its files have the friction at these temperatures, and predict and errors of "
    "another log take its columns temperature_<joint>"
)

POSITION = (
    "the torque depends on the joint's own position in a way that no rigid body does: a spring, a "
    "cable or a counterweight"
)
STANDSTILL = (
    "friction near standstill differs from Coulomb's: Stribeck friction, or another speed of "
    "transition"
)
RIPPLE = "the torque repeats with the joint's position: ripple of a motor, a gear or a sensor"

COMPENSATOR = "a gravity compensator, with the sine and cosine of the joint's position"
ABRUPT = "Coulomb friction changes its sign at once"
DRIFT = "offsets of torques drift during the log, from its beginning to its end by {sizes}"

PLAY = (
    "the residual follows sign changes of the transmitted torque: backlash, play between motor "
    "and link"
)

_SENSORS = (
    Effect("tilt", "sensor", "the base is tilted by {sizes}", tilt_columns, 2, 0.0175,
           0.1, 0.3, "degrees", DEGREES, per_joint=False),
    Effect("delay", "sensor", "torques are {sizes}", delay_columns, 1, 0.01, 0.05, 0.02,
           "ms", 1e3, per_joint=False, of_log=True, ways=BEHIND),
    Effect("zero", "sensor", ZEROS, zero_columns, 1, 0.0175, 0.1, 0.3, "degrees",
           DEGREES, remark=AS_LOGGED),
    Effect("gain", "sensor", GAINS, gain_columns, 1, 0.03, 0.05, 0.7, "%", 100.0,
           of_log=True, ways=SCALED, remark=SHARED, doubtful=True),
    Effect("joint-delay", "sensor", "torques of single joints: {sizes}", delay_columns,
           1, 0.003, 0.05, 0.02, "ms", 1e3, of_log=True, positive=True, ways=BEHIND),
    Effect("warm-up", "sensor", WARM,
           of_joint(lambda a: cold_friction(a.part.run, a.rows.robot, a.at)), 2, unit="N m",
           of_log=True, timed=True, positive=True, ways=WARMER, remark=WARMED, doubtful=True,
           first=True),
    Effect("temperature", "sensor", TEMPERATURE,
           of_joint(
               lambda a: friction_per_kelvin(a.part.run, a.at.joint, a.at.origin, a.at.number)), 2,
           unit="N m/K", timed=True, remark=AT_ONE, each=("N m/K", "N m s/rad/K"), single=True,
           instead_of="warm-up"),
)  # fmt: skip

_TERMS = (
    Effect("sqrt", "term", "friction grows with the root of the speed", term_columns("sqrt"),
           terms=("sqrt",), positive=True),
    Effect("load", "term", "friction grows with the load", term_columns("load"),
           terms=("load",), positive=True),
    Effect("weight", "term", "friction grows with the weight", term_columns("weight"),
           terms=("weight",), positive=True),
    Effect("stribeck", "term", STANDSTILL, term_columns("stribeck"), 2,
           terms=("stribeck",), positive=True),
    Effect("direction", "term", "friction depends on the direction of motion",
           term_columns("direction"), terms=("direction",)),
    Effect("spring", "term", POSITION, term_columns("spring"), 3, terms=("spring",)),
    Effect("compensator", "term", COMPENSATOR, term_columns("compensator"), 2,
           terms=("compensator",)),
    Effect("ripple", "term", RIPPLE,
           of_joint(lambda a: harmonic_columns(a.part.run.q[:, a.at.joint], a.at.number).T), 2,
           terms=("ripple",)),
    Effect("abrupt", "term", ABRUPT, abrupt_columns, 1, 1.0, per_joint=False,
           positive=True),
)  # fmt: skip

_FEATURES = (
    Effect("elastic", "feature", "the joint yields under its torque: an elastic gear",
           compliance_columns, positive=True),
    Effect("backlash", "feature", PLAY, compliance_columns),
    Effect("drift", "feature", DRIFT, of_joint(drift_of), of_log=True, timed=True,
           unit="N m"),
    Effect("coupling", "feature", "a motor moves both joints", coupling_columns, 3),
)  # fmt: skip

EFFECTS = {e.name: e for e in (*_SENSORS, *_TERMS, *_FEATURES)}
"""All effects by name; sensors with `USUAL` sizes first."""

USUAL = {"tilt": 0.3 / DEGREES, "zero": 0.3 / DEGREES, "gain": 0.02, "delay": 0.5}
"""Standard deviations of common errors [rad, rad or m, share, samples]."""


def columns_by_joint(
    rows: Rows, at: EffectAt, model: Robot, beta: Array, gravity: Array
) -> dict[int, Array]:
    """Columns of an effect around a fitted model with base parameters beta: by joint whose rows it
    changes, (rows of a joint, size).

    `gravity`: of the description, (3,).
    """
    around = (Around(rows, part, at, model, beta, gravity) for part in rows.parts)
    every = np.concatenate([at.effect.columns(place) for place in around], axis=-1)
    if every.ndim == 2:
        return {at.joint: every.T}
    return {j: every[:, j].T for j in rows.joints if every[:, j].any()}


def columns_of(rows: Rows, at: EffectAt, model: Robot, beta: Array, gravity: Array) -> Array:
    """The same in all rows, (rows, size)."""
    out = np.zeros((len(rows.joints), len(rows) // len(rows.joints), at.effect.size))
    for j, columns in columns_by_joint(rows, at, model, beta, gravity).items():
        out[rows.joints.index(j)] = columns
    return out.reshape(len(rows), -1)


# -- what columns need of the rows of a log, besides the rows themselves --------------------------


def decimated_rigid_torque(rows: Rows, part: RunRows, model: Robot, at_rest: bool = False) -> Array:
    """Torque of the rigid bodies, or of their weight alone, at the samples of smooth functions,
    (n, dof).
    """

    def torque() -> Array:
        run, moves = part.run, 0.0 if at_rest else 1.0
        motion = (part.decimate(x) for x in (run.q, moves * run.dq, moves * run.ddq))
        return inverse_dynamics(model.without_joint_terms(), *motion)

    memory = rows.derived.setdefault(("torque", at_rest, id(part)), {})
    return compute_once(memory, model.values.tobytes(), torque)


def decimated_derivatives(rows: Rows, part: RunRows, model: Robot) -> TorqueDerivatives:
    """Derivatives of that torque."""
    motion = part.run.q, part.run.dq, part.run.ddq
    return compute_once(
        rows.derived.setdefault(("derivatives", id(part)), {}), model.values.tobytes(),
        lambda: torque_derivatives(model, *map(part.decimate, motion)),
    )  # fmt: skip


def strongest_harmonics(rows: Rows, joint: int, beta: Array, count: int) -> list[int]:
    """Periods per 2 pi rad that the unfiltered residual of a joint holds most of.

    Each further one is the strongest in addition to those before.
    """
    # Unfiltered: the low-pass takes away most of what repeats many times per turn.
    at = np.concatenate([p.run.q[p.samples, joint] for p in rows.parts])
    raw = [p.raw[joint] for p in rows.parts]
    e = np.concatenate([x[-1] - beta[rows.supports[joint]] @ x[:-1] for x in raw])
    numbers: list[int] = []
    for _ in range(count):
        # Part of a squared residual (N,) that each of `HARMONICS` of positions explains, (waves,).
        # The sums of squares and products of cosine and sine are those of waves of twice the
        # number.
        step, wave, sums = np.exp(1j * at), np.exp(1j * (HARMONICS.start - 1) * at), []
        for _ in HARMONICS:
            wave = wave * step
            sums.append((wave @ e, wave @ wave))
        (along, twice), size = np.array(sums).T, (1.0 + 1e-9) * len(e)
        cosines, sines, both = (size + twice.real) / 2, (size - twice.real) / 2, twice.imag / 2
        c, s = along.real, along.imag
        squares = sines * c**2 - 2 * both * c * s + cosines * s**2
        numbers.append(HARMONICS[int(np.argmax(squares / (cosines * sines - both**2)))])
        waves = np.hstack([harmonic_columns(at, number) for number in numbers])
        e = e - waves @ np.linalg.lstsq(waves, e, rcond=None)[0]
    return numbers


def harmonic_columns(q: Array, number: float) -> Array:
    """Sine and cosine of a position, shape (N, 2)."""
    return np.stack([np.sin(number * q), np.cos(number * q)], axis=1)
