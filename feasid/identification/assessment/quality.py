"""What a fit is good for: a grade for each use, and the verdict that follows.

A use has one number on a natural scale, two limits, and the findings that contradict the fit.
Simulation and masses have numbers and no grade, because no rule for a grade was found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from feasid.core.arrays import Array
from feasid.core.notes import Note
from feasid.core.text import in_percent, in_two_digits
from feasid.identification.assessment.checks import (
    CARE,
    CONTACT,
    FEED_FORWARD,
    GRADED,
    GRADES,
    GRAVITY,
    NO,
    STRUCTURED,
    UNKNOWN,
    WEIGHING,
    YES,
    carries_load,
    findings,
    is_strong,
    list_names,
)
from feasid.identification.assessment.compared_errors import ComparedErrors
from feasid.identification.assessment.evidence import FitEvidence
from feasid.identification.assessment.rows import PARTS
from feasid.robot.description import Robot
from feasid.robot.dynamics.floating import frame_jacobian

if TYPE_CHECKING:
    import pandas as pd

    from feasid.identification.assessment.contact_errors import ErrorLaw

LEVELS = ("good", "doubtful", "useless")

LIMITS = {GRAVITY: (1.0, 2.5), FEED_FORWARD: (0.2, 0.5), CONTACT: (0.15, 0.4), WEIGHING: (0.1, 0.3)}
"""Numbers up to which a use is granted, and with care: gravity error over what friction holds,
upper end of the torque error over torque, push over the arm's weight, kilograms."""

ANOTHER_DAY = (0.68, 2.9)
"""Errors on another log over those on held-out parts, within which 80 % are: Student's law of the
logarithms of ten pairs of logs, of five real robots. With each robot left out of the law in turn, 8
of the 10 pairs are within it (`python benchmarks/verdict.py days --logs FOLDER`)."""

SMALL_SHARE = 0.02
"""Error, as a share of a joint's largest torque, that counts as the first limit of feed-forward."""

ALARMS = 1.0 / 3600.0
"""Crossings per second of the thresholds of contact on the log's own motion [Hz]."""

FELT = 0.9  #: Share of postures and directions in which a push is felt.
POSES = 150  #: Number of postures in which a push is tried.
WEIGHT = 9.81  #: Weight of a kilogram [N].
KNOWN = 0.2  #: Relative deviation of a mass that counts as known.

FAR = 15.0
"""Leverage of gravity over the joints' range beyond which a fit holds near the logged motion."""

NOTICEABLE = 0.2
"""Error over torque of a joint from which a remark explains that the joint carries little."""

UNIMPORTANT = 0.005  #: Predictable error, as a share of the torque, below which there is no remark.


@dataclass(frozen=True, eq=False)
class Quality:
    """The verdict on a fit: the worse of gravity compensation and feed-forward."""

    level: str  #: "good", "doubtful" or "useless", where both are refused
    reasons: tuple[Note, ...]  #: why it is not good, the gravest first
    grades: Mapping[str, str]  #: of gravity compensation, feed-forward and weighing
    evidence: FitEvidence

    @property
    def errors(self) -> ComparedErrors:
        """Relative errors of the fit and of other models."""
        return self.evidence.errors

    def __repr__(self) -> str:
        e = self.errors
        where = "on held-out segments" if e.unseen else "on the fitted log"
        numbers = f"this model {in_percent(e.overall_error(e.model))}, {e.others}"
        first = f"{self.level.upper()} ({where}: {numbers}, no model 100 %)"
        return "\n".join([first, *(f"  {r}" for r in self.reasons)])


def judge(evidence: FitEvidence) -> Quality:
    """Grade the main uses of a model, with the reasons for low grades."""
    notes = findings(evidence)
    table = {u.name: u for u in (gravity(evidence), feed_forward(evidence), weighing(evidence))}
    grades = {name: _worst(use.grade, notes, name) for name, use in table.items()}
    known = [g for g in (grades[GRAVITY], grades[FEED_FORWARD]) if g != UNKNOWN]
    if any(map(is_strong, notes)) or (known and set(known) == {NO}):
        level = "useless"
    else:
        level = "good" if set(known) == {YES} else "doubtful"
    reasons = [n for n in notes if {n.values["grades"].get(u) for u in (GRAVITY, FEED_FORWARD)}
               & {CARE, NO}]  # fmt: skip
    reasons += [
        Note(use.why, use.name, number=use.number)
        for use in (table[GRAVITY], table[FEED_FORWARD])
        if use.grade in (CARE, NO)
    ]
    return Quality(level, tuple(reasons), grades, evidence)


def _worst(grade: str, notes: tuple[Note, ...], use: str) -> str:
    limits = [n.values["grades"].get(use, YES) for n in notes]
    # Findings may refuse what has no number, and never grant it.
    if grade == UNKNOWN:
        return NO if NO in limits else UNKNOWN
    return str(max([grade, *limits], key=GRADES.index))


def _ratio(error: Array, scale: Array) -> Array:
    return np.asarray(error / np.where(scale > 0, scale, np.inf))


@dataclass(frozen=True)
class Use:
    """One use of a fit: its grade, number and reason."""

    name: str
    number: float
    unit: str
    worst_joint: str
    why: str  #: a sentence with the number and its scale

    @property
    def grade(self) -> str:
        """The grade from the number alone; empty for uses without a grade."""
        return grade(self.name, self.number)


def grade(use: str, number: float) -> str:
    """The grade of a number; empty for uses that have none."""
    if use not in LIMITS:
        return ""
    if np.isnan(number):
        return UNKNOWN
    good, fair = LIMITS[use]
    return YES if number <= good else CARE if number <= fair else NO


def gravity(e: FitEvidence) -> Use:
    """Errors on other postures without friction, over dry friction; the worst joint."""
    # Joints that carry nothing have no number and come last.
    ratio = np.nan_to_num(_ratio(e.gravity_error, e.hold), nan=-1.0)
    k = int(np.argmax(ratio))
    if ratio[k] < 0:
        why = "Nothing to compensate: no joint whose torque was measured carries weight."
        return Use(GRAVITY, np.nan, "", "", why)
    holds = f"its friction holds {e.friction[k]:.2g} {e.units[k]}"
    if e.friction[k] < e.hold[k]:
        holds = f"it can do {e.capacity[k]:.3g} {e.units[k]}"
    why = f"{e.joints[k]} misses {in_two_digits(e.gravity_error[k])} {e.units[k]}; {holds}."
    return Use(GRAVITY, float(ratio[k]), "of what friction holds", e.joints[k], why)


def feed_forward(e: FitEvidence) -> Use:
    """Errors on another day over the torque, of all joints, by those on held-out fifths."""
    low, high = (k * e.relative(e.error) for k in ANOTHER_DAY)
    joint = e.joints[int(np.nanargmax(np.append(_joint_share(e), 0.0)[: len(e.joints)]))]
    when = "on another day" if e.held_out else "elsewhere, by errors where it was fitted"
    why = f"Expect to miss {100 * low:.2g} to {100 * high:.2g} % of the torque {when}."
    return Use(FEED_FORWARD, high, "of the torque", joint, why)


def _joint_share(e: FitEvidence) -> Array:
    """Each joint's error on another day over its torque, or over the torque that it can exert if
    that ratio is small.
    """
    small = LIMITS[FEED_FORWARD][0] * _ratio(e.error, SMALL_SHARE * e.capacity)
    return np.fmin(ANOTHER_DAY[1] * _ratio(e.error, e.torque), small)


def weighing(e: FitEvidence) -> Use:
    """Masses that held-out fifths without a load seem to carry."""
    seconds = in_two_digits(e.seconds / PARTS)
    why = f"1 kg is known to {e.weighing:.2g} kg after {seconds} s of motion."
    if np.isnan(e.weighing):
        why = "The log in memory does not show how accurately loads are weighed."
    return Use(WEIGHING, e.weighing, "kg", "", why)


def contact(e: FitEvidence, push: float, total: float) -> Use:
    """A push on the hand that is felt in nine of ten postures and directions, over the weight."""
    known = np.isfinite(push) and total > 0
    why = f"A push of {in_two_digits(push)} N at the hand is felt in nine of ten cases."
    why = why if known else "The log in memory does not show which pushes are detected."
    return Use(CONTACT, push / (WEIGHT * total) if known else np.nan, "N", "", why)


def thresholds(law: ErrorLaw) -> Array:
    """External torques that count as contact in a moderate motion, shape (dof,)."""
    # Half the fastest speed, half the largest W, and a squared slowness of a half.
    features = np.array([1.0, 0.5, 0.25, (0.5 * law.most) ** 2])
    return np.asarray(np.sqrt(law.coefficients @ features) * law.crossing_levels(ALARMS))


def push_felt(robot: Robot, e: FitEvidence, limits: Array) -> float:
    """Force on the last body that is felt in `FELT` of random postures and directions [N].

    NaN where the log's postures are not known.
    """
    if not np.isfinite(e.lower).all():
        return np.nan
    rng = np.random.default_rng(1)
    poses = rng.uniform(e.lower, e.upper, (POSES, len(e.lower)))
    # The rows of linear velocity: a push is a force without a moment.
    jacobian = frame_jacobian(robot, poses, robot.bodies[-1].name)[:, 3:]
    direction = rng.standard_normal((POSES, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    shares = np.abs(np.einsum("pkj,pk->pj", jacobian, direction)) / limits
    return float(np.quantile(1.0 / np.maximum(shares.max(axis=1), 1e-12), FELT))


@dataclass(frozen=True, eq=False)
class Uses:
    """All uses of a fit."""

    quality: Quality
    push: float  #: see `push_felt` [N]
    limits: Array  #: see `thresholds`, (dof,)
    simulated: Array  #: deviation after .1 s driven by torques alone, (dof,) [rad or m]
    known_masses: int  #: bodies whose mass is known to `KNOWN`

    @cached_property
    def items(self) -> tuple[Use, ...]:
        """Every use, graded by its number alone."""
        e = self.quality.evidence
        graded = gravity(e), feed_forward(e), contact(e, self.push, e.masses.sum()), weighing(e)
        known = float(self.known_masses)
        why = (f"{known:g} of {len(e.masses)} known to 20 % from this log; "
               f"{e.masses.sum():.3g} kg in all.")  # fmt: skip
        return (*graded, self._simulation(), Use("masses", known, "bodies", "", why))

    def _simulation(self) -> Use:
        e, known = self.quality.evidence, np.isfinite(self.simulated)
        if not known.any():
            why = "Not simulated: a short log, none in memory, a loop or a floating base."
            return Use("simulation", np.nan, "deg", "", why)
        size = np.where(known, [np.rad2deg(x) if u == "N m" else 100 * x for x, u in
                                zip(self.simulated, e.units, strict=True)], -1.0)  # fmt: skip
        k = int(np.argmax(size))
        unit = "deg" if e.units[k] == "N m" else "cm"
        why = f"{e.joints[k]} is {size[k]:.2g} {unit} off within 0.1 s in open loop."
        return Use("simulation", float(size[k]), unit, e.joints[k], why)

    def grade(self, use: Use) -> str:
        """The grade, lowered by findings."""
        notes = findings(self.quality.evidence)
        return _worst(use.grade, notes, use.name) if use.name in GRADED else ""

    def why(self, use: Use) -> str:
        """The sentence of a use, and what lowers its grade below that of its number."""
        now, alone = self.grade(use), use.grade
        if now == alone:
            return use.why
        notes = findings(self.quality.evidence)
        codes = [f"[{n.code}]" for n in notes if n.values["grades"].get(use.name) == now]
        return f"{use.why} Graded lower because of {list_names(codes)}."

    def table(self) -> pd.DataFrame:
        """The table of uses, one row per use."""
        import pandas as pd

        rows = [
            (u.name, self.grade(u), self.push if u.name == CONTACT else u.number, u.unit,
             u.worst_joint, self.why(u))
            for u in self.items
        ]  # fmt: skip
        columns = ["use", "grade", "number", "unit", "worst joint", "why"]
        return pd.DataFrame(rows, columns=columns).set_index("use")

    def by_joint(self) -> pd.DataFrame:
        """Errors with their scales and grades, one row per joint."""
        import pandas as pd

        e, notes = self.quality.evidence, findings(self.quality.evidence)
        ratio, share = _ratio(e.gravity_error, e.hold), _joint_share(e)
        best = [CARE if j in e.assumed else YES for j in e.joints]  # the gain may be wrong
        columns = {
            GRAVITY: [_worst(grade(GRAVITY, x), notes, GRAVITY) for x in ratio],
            "gravity error": e.gravity_error,
            "friction holds": e.friction,
            FEED_FORWARD: [
                _worst(max(b, grade(FEED_FORWARD, x), key=GRADES.index), notes, FEED_FORWARD)
                for b, x in zip(best, share, strict=True)
            ],
            "torque error": e.error,
            "torque": e.torque,
            "can do": e.capacity,
            "contact from": self.limits,
            "unit": e.units,
        }
        return pd.DataFrame(columns, index=pd.Index(e.joints, name="joint"))


def remarks(e: FitEvidence) -> list[str]:
    """Remarks that lower no grade."""
    out, c = [], e.comparison
    if c is not None and carries_load(c, float(e.described[-1]) if len(e.described) else 0.0):
        out.append(
            f"The robot carries about {c.load:.2g} kg at its last body that the description lacks."
        )
    share = _ratio(e.error, e.torque)
    light = [k for k in np.flatnonzero(share > NOTICEABLE) if _joint_share(e)[k] <=
             LIMITS[FEED_FORWARD][0]]  # fmt: skip
    if light:
        most = 100 * np.max(_ratio(e.error, e.capacity)[light])
        out.append(
            f"{list_names([e.joints[k] for k in light])} carry little weight: their error is up to "
            f"{100 * share[light].max():.0f} % of their torque, and at most {most:.2g} % of the "
            "torque that they can exert."
        )
    if e.period is not None:
        out.append(
            f"The motion repeats every {in_two_digits(e.period)} s, so phases of it were held out."
        )
    if e.leverage > FAR:
        out.append("Near the logged motion only: far from its postures expect larger errors.")
    if c is not None and c.placeholder:
        out.append(
            "Centres of mass of the description are at the joints, as placeholders are: only one "
            "factor of all torques was compared with it."
        )
    if e.assumed:
        whose = "every joint" if len(e.assumed) == len(e.joints) else list_names(e.assumed)
        out.append(
            f"Assumed, because the log does not tell it: the torque gain of {whose}. Torques, "
            "pushes and loads there carry its error. A log with a known load, or a weighed link "
            "(known=), tells it."
        )
    follow = [f"{j} ({kind})" for j, kind in joints_that_follow(e).items()]
    if follow:
        out.append(f"The error follows the motion at {list_names(follow)}: the model lacks a term.")
    return out


def joints_that_follow(e: FitEvidence) -> dict[str, str]:
    """Joints whose error the motion predicts, with the kind of function that does."""
    rows = zip(e.joints, _ratio(e.error, e.torque), e.structure, strict=False)
    return {
        j: s.correlate or "motion as a whole"
        for j, share, s in rows
        if s.share > STRUCTURED and share * np.sqrt(s.share) > UNIMPORTANT
    }
