"""Mistakes of logs and descriptions as parameters theta of the model that a log is fitted with.

Every mistake is a parameter that is zero when all is right: the angles by which the base is
tilted, the time by which torques are late, what is missing from a joint's zero, or the logarithm of
a torque's gain. Before a log is seen their size has a standard deviation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import InputError, did_you_mean
from feasid.logs.motion import Run
from feasid.logs.units import unit_factor
from feasid.robot.bodies import Body
from feasid.robot.description import Robot
from feasid.robot.rotations import compose, exponential


@dataclass(frozen=True)
class MistakeKind:
    """A kind of mistakes.

    Attributes
    ----------
    name : str
    text : str
        What is said of it, with {sizes}.
    size : int
        How many parameters one mistake has.
    unit : str
    factor : float
        From SI to `unit`.
    limit : float
        Largest step of its parameters [SI].
    width : float
        Deviation before a log is seen with which mistakes are fitted [SI]: wide, so that it
        decides only what a log cannot tell.
    terms : tuple of str
        Friction terms of `feasid.robot.joint_terms` with which a fit makes up for it.
    positive : bool
        Whether its first parameter cannot be below zero.
    ways : (str, str)
        What is said behind its size where that is positive, and where it is negative.
    remark : str
        What a fit adds that took it out.
    doubtful : bool
        Whether a fit that took it out is still in doubt.
    first : bool
        Whether its size is its first parameter; otherwise the norm of all.
    """

    name: str
    text: str
    size: int = 1
    unit: str = ""
    factor: float = 1.0
    limit: float = np.inf
    width: float = np.inf
    terms: tuple[str, ...] = ()
    positive: bool = False
    ways: tuple[str, str] = ("", "")
    remark: str = ""
    doubtful: bool = False
    first: bool = False


DEGREES = 180.0 / np.pi

AS_LOGGED = "; fit.robot takes positions as they are logged, files take true ones"
SHARED = (
    "; the log tells ratios of torques, not the factor that all of them share: compare a joint "
    "with a known load (feasid.torque_constants)"
)

ZEROS = "joint zeros are off, the true position less the logged one is {sizes}"
GAINS = "torques are wrong: {sizes}"
BEHIND = ("behind the motion", "ahead of the motion")
SCALED = ("too large", "too small")

WARM = "joints warm up: dry friction at the log's beginning was {sizes}"
WARMER = ("larger than later", "smaller than later")
WARMED = (
    "; the model is that of joints that stay warm: record warm joints, or leave the beginning out"
)

CALIBRATIONS = (
    MistakeKind("tilt", "the base is tilted by {sizes}", 2, "degrees", DEGREES, 0.3, 0.1),
    MistakeKind("delay", "torques are {sizes}", 1, "ms", 1e3, 0.02, 0.05, ways=BEHIND),
    MistakeKind("zero", ZEROS, 1, "degrees", DEGREES, 0.3, 0.1, remark=AS_LOGGED),
    MistakeKind("gain", GAINS, 1, "%", 100.0, 0.7, 0.05, ways=SCALED, remark=SHARED, doubtful=True),
    MistakeKind(
        "joint-delay", "torques of single joints: {sizes}", 1, "ms", 1e3, 0.02, 0.05, ways=BEHIND
    ),
    MistakeKind("warm-up", WARM, 2, "N m", ways=WARMER, remark=WARMED, doubtful=True, first=True),
)
"""Mistakes that a fit can take out of a log, the kinds with `usual` sizes first."""

POSITION = (
    "the torque depends on the joint's own position in a way that no rigid body does: a spring, a "
    "cable or a counterweight"
)
STANDSTILL = (
    "friction near standstill is another than Coulomb's: Stribeck friction, or another speed of "
    "transition"
)
RIPPLE = (
    "the torque repeats with the joint's position: ripple of a motor, a gear or a sensor (fit its "
    "waves as features: robot.with_joint_terms(features=...))"
)

PLAY = (
    "the residual follows changes of the transmitted torque's sign: backlash, play between motor "
    "and link"
)

FEATURES = (
    MistakeKind("position", POSITION, 5, terms=("spring", "compensator")),
    MistakeKind("stribeck", STANDSTILL, 2, terms=("stribeck",)),
    MistakeKind("direction", "friction depends on the direction of motion", terms=("direction",)),
    MistakeKind("load", "friction grows with the load", terms=("load",), positive=True),
    MistakeKind("weight", "friction grows with the weight", terms=("weight",), positive=True),
    MistakeKind("ripple", RIPPLE, 2),
    MistakeKind("elastic", "the joint yields under its torque: an elastic gear", positive=True),
    MistakeKind("backlash", PLAY),
    MistakeKind("coupling", "a motor moves both joints", 3),
)
"""What else a model may lack, as torques that are added to it."""

KINDS = {k.name: k for k in (*CALIBRATIONS, *FEATURES)}
"""All kinds by name."""

USUAL = {"tilt": 0.3 / DEGREES, "zero": 0.3 / DEGREES, "gain": 0.02, "delay": 0.5}
"""Deviations of mistakes that everybody makes [rad, rad or m, share, samples]."""


@dataclass(frozen=True, order=True)
class Mistake:
    """One mistake.

    Attributes
    ----------
    kind : str
    joint : int
        An index, -1 for none.
    number : float
        Periods per 2 pi rad of a ripple; ratio of a motor that moves two joints; time constant of a
        warm-up [s].
    other : int
        The second joint of such a motor.
    """

    kind: str
    joint: int = -1
    number: float = 0.0
    other: int = -1

    @property
    def size(self) -> int:
        """How many parameters it has."""
        return KINDS[self.kind].size


def missing_features(joints: Sequence[int]) -> list[Mistake]:
    """What a model may lack at each joint, but for ripple and motors that joints share."""
    kinds = [k.name for k in FEATURES if k.name not in ("ripple", "coupling")]
    return [Mistake(kind, j) for kind in kinds for j in joints]


@dataclass(frozen=True, eq=False)
class LogCorrection:
    """Values of the mistakes that are taken out of a log and its robot.

    Attributes
    ----------
    values : mapping of Mistake to ndarray
        Parameters [SI].
    """

    values: Mapping[Mistake, Array]

    def add_step(self, mistakes: Sequence[Mistake], step: Array) -> LogCorrection:
        """The same with a step of the parameters of these mistakes, one after the other."""
        out, at = dict(self.values), 0
        for mistake in mistakes:
            kind = KINDS[mistake.kind]
            change = np.clip(step[at : at + kind.size], -kind.limit, kind.limit)
            out[mistake] = out.get(mistake, np.zeros(kind.size)) + change
            at += kind.size
        return LogCorrection(out)

    def parameters_of(self, mistakes: Sequence[Mistake]) -> Array:
        """Parameters of these mistakes, one after the other; zeros where nothing was taken out."""
        none = [np.zeros(0)]
        return np.concatenate(
            [*none, *(self.values.get(m, np.zeros(KINDS[m.kind].size)) for m in mistakes)]
        )

    def values_by_joint(self, kind: str) -> dict[int, float]:
        """First parameters of this kind by joint."""
        return {m.joint: float(v[0]) for m, v in self.values.items() if m.kind == kind}

    def correct_robot(self, robot: Robot) -> Robot:
        """The robot as it stands, with joints whose zeros are those of the log."""
        for mistake, value in self.values.items():
            if mistake.kind == "tilt":
                robot = robot.with_gravity(
                    rotation_by_vector(value @ horizontal_axes(robot.gravity)) @ robot.gravity
                )
        zeros = self.values_by_joint("zero")
        if not zeros:
            return robot
        bodies = tuple(
            body_with_zero_offset(b, zeros[k]) if k in zeros else b
            for k, b in enumerate(robot.bodies)
        )
        return replace(robot, bodies=bodies)

    def correct_run(self, run: Run, robot: Robot) -> Run:
        """A run of the robot with the torques as they are: on time, and in N m."""
        run = self.with_warm_friction(run, robot)
        late, gains, own = (
            self.values_by_joint("delay"),
            self.values_by_joint("gain"),
            self.values_by_joint("joint-delay"),
        )
        if not (late or gains or own):
            return run
        tau = run.tau.copy()
        for j in range(tau.shape[1]):
            d = late.get(-1, 0.0) + own.get(j, 0.0)
            if d:
                tau[:, j] = np.interp(run.t + d, run.t, tau[:, j])
            tau[:, j] *= np.exp(-gains.get(j, 0.0))
        return replace(run, tau=tau)

    def with_warm_friction(self, run: Run, robot: Robot) -> Run:
        """A run of the robot with the friction of warm joints, in torques as they are logged."""
        cold = {m: v for m, v in self.values.items() if m.kind == "warm-up"}
        if not cold:
            return run
        tau = run.tau.copy()
        for mistake, value in cold.items():
            tau[:, mistake.joint] -= value @ cold_friction(run, robot, mistake)
        return replace(run, tau=tau)

    @property
    def shifts_torques(self) -> bool:
        """Whether torques are shifted in time."""
        return bool(self.values_by_joint("delay") or self.values_by_joint("joint-delay"))


NOTHING = LogCorrection({})


def corrected_options(
    options: Mapping[str, Any], correction: LogCorrection, robot: Robot
) -> dict[str, Any]:
    """How other logs of the same robot and sensors are prepared: with its gains and its delay."""
    out = dict(options)
    gains, late = correction.values_by_joint("gain"), correction.values_by_joint("delay")
    if gains:
        own = dict(options.get("units") or {})
        for joint, gain in gains.items():
            name = robot.joints[joint]
            own[f"tau_{name}"] = unit_factor(own, "tau", name) * float(np.exp(-gain))
        out["units"] = own
    if late:
        out["delay"] = (options.get("delay") or 0.0) - late[-1]  # the option is how far ahead
    return out


def wide_widths(mistakes: Sequence[Mistake]) -> Array:
    """Wide deviations of all parameters of these mistakes, one after the other."""
    return np.array([KINDS[m.kind].width for m in mistakes for _ in range(m.size)])


def cold_friction(run: Run, robot: Robot, mistake: Mistake) -> Array:
    """Dry and viscous friction of unit size that fade while a joint warms up, shape (2, N)."""
    v, decay = run.dq[:, mistake.joint], np.exp(-run.t / mistake.number)
    return np.stack([decay * sign_of_speed(v, robot), decay * v])


def sign_of_speed(v: Array, robot: Robot) -> Array:
    """The sign of speeds [rad/s or m/s] as the friction of the robot's drives has it."""
    transition = max((d.transition for d in robot.drives), default=0.0)
    return np.tanh(v / transition) if transition else np.sign(v)


def rotation_by_vector(vector: Array) -> Array:
    """The rotation by a vector [rad], shape (3, 3)."""
    rotation, _ = exponential(np.r_[vector, 0.0, 0.0, 0.0])
    return np.asarray(rotation)


def horizontal_axes(gravity: Array) -> Array:
    """Two horizontal unit vectors, shape (2, 3): x and y of a base whose z axis is vertical."""
    up = -np.asarray(gravity, dtype=np.float64) / np.linalg.norm(gravity)
    first = np.eye(3)[int(np.argmin(np.round(np.abs(up), 9)))]
    first = first - up * (first @ up)
    first /= np.linalg.norm(first)
    return np.array([first, np.cross(up, first)])


def body_with_zero_offset(body: Body, zero: float) -> Body:
    """The body of a joint whose true position is `zero` more than the logged one."""
    rotation, position = exponential(body.motion[:, 0] * zero)
    turned, moved = compose(body.rotation, body.position, rotation, position)
    return replace(body, rotation=turned, position=moved)


def usual_widths(calibration: Any, period: float) -> dict[str, float]:
    """Deviations by kind [SI] that an option ``calibration`` asks for; nothing where it is None.

    Parameters
    ----------
    calibration : None, "usual" or mapping
        A mapping's entries replace `USUAL`; 0 leaves a kind out. Delays are in samples.
    period : float
        Of the samples [s].

    Raises
    ------
    InputError
        A name that is none of `USUAL`.
    """
    if calibration is None:
        return {}
    asked = calibration if isinstance(calibration, Mapping) else {}
    for name in asked:
        if name not in USUAL:
            hint = did_you_mean(name, USUAL)
            raise InputError(
                f"calibration: there is no mistake {name!r}{hint}; there are {', '.join(USUAL)}",
                option="calibration",
            )
    widths = {**USUAL, **asked}
    widths["delay"] *= period
    return {name: float(w) for name, w in widths.items() if w}
