"""The table of effects, besides rigid bodies, that may enter a fit or are only reported.

Each effect has coefficients theta that are zero when a log and its description are right: angles by
which the base is tilted, the time by which torques are late, the logarithm of a torque's gain, the
stiffness of a cable. A new effect is one entry of `EFFECTS`.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Literal

import numpy as np

from feasid.core.arrays import Array
from feasid.effects import functions
from feasid.effects.columns import LogRows
from feasid.effects.functions import ColumnsOf, Mistake, Place, of_joint, term_columns
from feasid.robot.description import Robot
from feasid.robot.joint_terms import SEARCHED


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
    first: bool = False  #: Whether its size is its first coefficient; otherwise the norm of all.

    def known(self, symbols: Container[str]) -> bool:
        """Whether a drive with these symbols has the terms of this effect."""
        return all(s in symbols for word in self.terms[:1] for s in SEARCHED[word])


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

WARM = "joints warm up: dry friction at the log's beginning was {sizes}"
WARMER = ("larger than later", "smaller than later")
WARMED = (
    "; the model is that of joints that stay warm: record warm joints, or leave the beginning out"
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
    Effect("tilt", "sensor", "the base is tilted by {sizes}", functions.tilt_columns, 2, 0.0175,
           0.1, 0.3, "degrees", DEGREES, per_joint=False),
    Effect("delay", "sensor", "torques are {sizes}", functions.delay_columns, 1, 0.01, 0.05, 0.02,
           "ms", 1e3, per_joint=False, of_log=True, ways=BEHIND),
    Effect("zero", "sensor", ZEROS, functions.zero_columns, 1, 0.0175, 0.1, 0.3, "degrees",
           DEGREES, remark=AS_LOGGED),
    Effect("gain", "sensor", GAINS, functions.gain_columns, 1, 0.03, 0.05, 0.7, "%", 100.0,
           of_log=True, ways=SCALED, remark=SHARED, doubtful=True),
    Effect("joint-delay", "sensor", "torques of single joints: {sizes}", functions.delay_columns,
           1, 0.003, 0.05, 0.02, "ms", 1e3, of_log=True, positive=True, ways=BEHIND),
    Effect("warm-up", "sensor", WARM, of_joint(functions.warm_up_of), 2, unit="N m", of_log=True,
           timed=True, positive=True, ways=WARMER, remark=WARMED, doubtful=True, first=True),
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
    Effect("ripple", "term", RIPPLE, of_joint(functions.ripple_of), 2, terms=("ripple",)),
    Effect("abrupt", "term", ABRUPT, functions.abrupt_columns, 1, 1.0, per_joint=False,
           positive=True),
)  # fmt: skip

_FEATURES = (
    Effect("elastic", "feature", "the joint yields under its torque: an elastic gear",
           functions.compliance_columns, positive=True),
    Effect("backlash", "feature", PLAY, functions.compliance_columns),
    Effect("drift", "feature", DRIFT, of_joint(functions.drift_of), of_log=True, timed=True,
           unit="N m"),
    Effect("coupling", "feature", "a motor moves both joints", functions.coupling_columns, 3),
)  # fmt: skip

EFFECTS = {e.name: e for e in (*_SENSORS, *_TERMS, *_FEATURES)}
"""All effects by name; sensors with `USUAL` sizes first."""

USUAL = {"tilt": 0.3 / DEGREES, "zero": 0.3 / DEGREES, "gain": 0.02, "delay": 0.5}
"""Standard deviations of common mistakes [rad, rad or m, share, samples]."""


def size_of(mistake: Mistake) -> int:
    """How many coefficients an effect has at one joint, or in the whole log."""
    return EFFECTS[mistake.kind].size


def columns_of(rows: LogRows, mistake: Mistake, model: Robot, beta: Array) -> Array:
    """Columns of an effect around a fitted model with base parameters beta, (rows, size)."""
    places = (Place(rows, part, mistake, model, beta) for part in rows.parts)
    return rows.stack_rows([EFFECTS[mistake.kind].columns(place) for place in places])
