"""What contradicts a fit: one table of checks over one record of evidence.

No held-out part shows a mistake that all parts share: a wrong unit, a wrong robot, joints that
never move. They show in a comparison with the description and with the motion. A check is a
function of `FitEvidence` that returns a sentence, or nothing; the table also has the best grade
that remains for each use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from feasid.core.notes import Note
from feasid.core.text import in_percent
from feasid.identification.assessment.evidence import FitEvidence, GravityComparison
from feasid.identification.assessment.residuals import WAVES_OF_POSITION

GRAVITY, FEED_FORWARD, CONTACT, WEIGHING = GRADED = (
    "gravity compensation",
    "feed-forward",
    "contact",
    "weighing",
)
"""Uses that are graded."""

YES, CARE, NO, UNKNOWN = GRADES = ("yes", "with care", "no", "not known")
"""Grades from the best to the worst, and the one without a measurement."""

NOISELESS = 1e-3
"""Error over torque below which nothing can be wrong that no fit confirms: a log without noise, of
which the search sees the fit's own approximations."""

NO_USE = dict.fromkeys(GRADED, NO)
WITH_CARE = dict.fromkeys(GRADED, CARE)

LITTLE = 0.5  #: Error over torque beyond which a model explains nothing of use.

TENTH = 0.1  #: Error over torque beyond which loads and pushes get "with care" at most.

NOTHING = 0.97  #: Error over torque of a joint that is predicted no better than without a model.

UNIT, CONSTANT = (0.4, 2.5), (0.8, 1.25)
"""Ranges of the factor on gravity torques; outside, the unit or torque constants are wrong."""

ONE_FACTOR = 0.85
"""Share of the squared difference of gravity torques from which one factor explains it: .03 to .77
on arms in simulation whose masses are off by 15 %, .89 to 1 with all torques times 1.5."""

ALIKE = 1.3  #: Ratio of joints' factors up to which a load at the hand does not explain them better

ALONE = (0.12, 0.2)
"""Shares by which gravity torques are off the description's: of all joints but one at most, and of
that one at least, for its torque gain to be in doubt; masses of descriptions are 15 % off."""

LOAD_SHARE, LOAD_SIZE, LEAST_LOAD, CLEARER = 0.9, 0.5, 0.2, 0.5
"""A load's share of the difference, the difference, its mass [kg], and rest over a factor's."""

UNLIKE = 0.4
"""Correlation of gravity torques below which fit and description are of different robots."""

FIVE = 5.0  #: Factor on a described mass, or its inverse, beyond which something is wrong.
HEAVY = 0.2  #: Smallest described mass that is compared [kg].

THREE, MUCH = 2.9, 0.15
"""Factor on a described mass beyond which a fit is doubtful (just within the bound of plausible
masses), and share of the robot's mass from which a body counts."""

CONSTRAINED, CONSTRAINED_MORE, CONSTRAINED_FAR = 1.5, 0.02, 0.3
"""Times the error of least squares and more of the torque (on packaged logs 1.1, or .006 at most)
by which physical consistency is at odds with the log; and the error from which nothing is right."""

CONTRADICTED, UNEXPLAINED = 2.0, 0.6
"""For one joint: factor on the error of least squares, and the error."""

OFFSET = 0.5
"""Share of a joint's torque beyond which a constant that friction cannot hold is a doubt."""

WORSE, WORSE_FROM = 1.1, 0.02
"""Factor on the description's error, and the error, from which the description should be kept."""

SHORTEST = 8.0
"""Shortest motion [s] whose errors hold in other runs: below it they grew up to seven times."""

STRUCTURED = 0.45
"""Predictable share of a squared residual that is worth a sentence: cables, ripple, friction that
warms up or grows with the load leave more than .5, logs without a mistake up to .37."""

LACKING, NARROW = 0.01, 0.005
"""Predictable error of all joints, as a share of the torque, from which a mean share above
`STRUCTURED` is a doubt: .02 to .05 with bristles (LuGre) or hysteresis, .003 without an effect. The
share, weighed by squared torques, is .55 to .9 there, and below .3 on logs of real arms. Waves of
position predict nothing without cogging in narrow pulses, which leaves .008 to .016."""

Check = Callable[[FitEvidence], str]

CHECKS: dict[str, tuple[Check, Mapping[str, str]]] = {}
"""Checks by the code of their notes: the function, and the best grade that remains for each use."""


def check(code: str, grades: Mapping[str, str]) -> Callable[[Check], Check]:
    """Enter a function of `FitEvidence` in the table of checks."""

    def enter(function: Check) -> Check:
        CHECKS[code] = (function, grades)
        return function

    return enter


def findings(evidence: FitEvidence) -> tuple[Note, ...]:
    """Findings of the checks, the gravest first, with the grades that remain possible."""
    notes = [
        Note(sentence, code, grades=dict(grades))
        for code, (look, grades) in CHECKS.items()
        if (sentence := look(evidence))
    ]
    exact = evidence.relative(evidence.error) < NOISELESS
    for n in (n for n in evidence.notes if n.values.get("confirmed")):
        if exact and n.code == "unconfirmed":
            continue
        # What is wrong with a log and stays in it is in the model, whatever the held-out error.
        wrong = n.code in REFUSED or n.values.get("level") == "error"
        notes.append(Note(str(n), n.code, **{**n.values, "grades": NO_USE if wrong else WITH_CARE}))
    return tuple(sorted(notes, key=lambda n: -sum(map(GRADES.index, n.values["grades"].values()))))


def is_strong(finding: Note) -> bool:
    """Whether the finding excludes every use of the model."""
    return dict(finding.values.get("grades", {})) == NO_USE


REFUSED = ("currents", "scale")  #: Codes of notes on a log whose columns of torques hold none.


def list_names(names: Iterable[str]) -> str:
    """Names in a sentence."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _factors(c: GravityComparison) -> str:
    """The least and the largest factor on gravity torques, once where they are alike."""
    ends = np.nanmin(c.factors), np.nanmax(c.factors)
    return " to ".join(dict.fromkeys(f"{end:.2g}" for end in ends))


def carries_load(c: GravityComparison | None, described: float) -> bool:
    """Whether a load at the last body explains what differs from the description."""
    return (
        c is not None
        and c.load_share > max(LOAD_SHARE, 1.0 - CLEARER * (1.0 - c.common))
        and c.load > max(LEAST_LOAD, 0.5 * described)
        and c.difference > LOAD_SIZE
    )


def has_load(e: FitEvidence) -> bool:
    """Whether a load explains the difference, for a fit."""
    return carries_load(e.comparison, float(e.described[-1]) if len(e.described) else 0.0)


@check("standstill", NO_USE)
def half_of_the_joints_stand_still(e: FitEvidence) -> str:
    """The model is not tested in other postures of these joints."""
    if not e.still or 2 * len(e.still) < len(e.joints):
        return ""
    return (
        f"{list_names(e.still)} hardly moved, so that the fit may be wrong at their other "
        "positions: record a motion of all joints (feasid.excite)."
    )


@check("little-explained", NO_USE)
def little_is_explained(e: FitEvidence) -> str:
    """More than half of the torque is missed."""
    missed = e.relative(e.error)
    if missed <= LITTLE:
        return ""
    advice = _contact(e) or ": check columns, units, signs and the robot (feasid.diagnose)"
    return f"The model misses {in_percent(missed, 2)} of the torque on held-out motion{advice}."


@check("much-missed", {GRAVITY: CARE, CONTACT: CARE, WEIGHING: CARE})
def much_is_missed(e: FitEvidence) -> str:
    """Too much for any use; an exchange of two columns can look like this."""
    missed = e.relative(e.error)
    if not TENTH < missed <= LITTLE:
        return ""
    return f"The model misses {in_percent(missed, 2)} of the torque{_contact(e)}."


def _contact(e: FitEvidence) -> str:
    """When most of the worst joint's error happened, if in a short time; else empty."""
    worst = int(np.argmax(np.nan_to_num(e.error)))
    if not e.structure or not e.structure[worst].burst:
        return ""
    begin, end = e.structure[worst].burst
    return (
        f", most of it at {e.joints[worst]} from {begin:.4g} to {end:.4g} s, as of a contact: "
        f"exclude=[({begin - 0.1:.4g}, {end + 0.1:.4g})]"
    )


@check("biased", WITH_CARE)
def options_bias(e: FitEvidence) -> str:
    """Filtered signals do not fulfil the equations, and slow rows are not as others."""
    signals = (
        "Signals were filtered or differentiated before the equations were formed: base "
        "parameters are biased, by up to 25 of their standard errors on arms in simulation, and "
        "standard errors do not include this; filtering='equations', the default, avoids it."
    )
    biased = [n for n in e.notes if n.values.get("biased")]
    return next((str(n) if n.code == "wls" else signals for n in biased), "")


@check("not-tested", WITH_CARE)
def no_part_was_held_out(e: FitEvidence) -> str:
    """Errors where a model was fitted are smaller than others, by how much no log says."""
    if e.held_out:
        return ""
    return (
        "No part of the log was predicted from the others, and errors on other motions are not "
        "known: compute them on another log (fit.errors), or fit a longer one, not compact."
    )


@check("structured", {FEED_FORWARD: CARE, WEIGHING: CARE})
def motion_predicts_the_error(e: FitEvidence) -> str:
    """What the model lacks is most of its error: another path has another error."""
    if not e.structure:
        return ""
    shares = np.array([s.share for s in e.structure])
    waves = np.array([s.correlate == WAVES_OF_POSITION for s in e.structure])
    missed, narrow = (e.relative(e.error * np.sqrt(x)) for x in (shares, shares * waves))
    # By torque: wrists that carry little have errors of friction on sound logs.
    share = float(shares @ e.share) / max(float(e.share.sum()), 1e-300)
    if not ((missed > LACKING or narrow > NARROW) and share > STRUCTURED):
        return ""
    kinds = dict.fromkeys(s.correlate for s in e.structure if s.correlate and s.share > STRUCTURED)
    return (
        f"The motion predicts {in_percent(share, 2)} of the squared error where torques are large "
        f"({', '.join(kinds)}): the model lacks a term, so that the error on other paths can be "
        "several times larger; test with a log of another motion."
    )


UNBALANCED = 0.02
"""Share of the torques at a passive joint that a model may leave: simulated arms leave less than
.003, and joints that have a motor or whose encoders are late .03 to .9."""


@check("unbalanced", WITH_CARE)
def torques_do_not_add_up_to_zero(e: FitEvidence) -> str:
    """A joint said to be passive that has a motor, or whose positions are wrong."""
    joint = max(e.unbalanced, key=e.unbalanced.__getitem__, default="")
    if not joint or e.unbalanced[joint] <= UNBALANCED:
        return ""
    return (
        f"The torques at {joint}, where no motor is said to act, do not add up to zero: "
        f"{in_percent(e.unbalanced[joint], 2)} of them are left. Check that it is passive, and the "
        "clocks and signs of its encoders."
    )


@check("nothing-explained", NO_USE)
def most_joints_are_not_explained(e: FitEvidence) -> str:
    """Half of the joints, and by more than friction holds."""
    counts = dict(zip(e.joints, e.error > e.hold, strict=True))
    lost = [j for j in unexplained_joints(e) if counts[j]]
    # Of the joints whose torques were measured.
    if not lost or 2 * len(lost) < np.isfinite(e.error).sum():
        return ""
    return (
        f"{list_names(lost)}: predicted no better than without a model. Check that torques and "
        "motion belong together: robot, columns, time (feasid.diagnose)."
    )


def unexplained_joints(e: FitEvidence) -> list[str]:
    """Joints that are predicted no better than without a model."""
    worse = (e.error > NOTHING * e.torque) & (e.torque > 0)  # a passive joint has no torque
    return [j for j, x in zip(e.joints, worse, strict=True) if x]


@check("unit", NO_USE)
def unit_is_wrong(e: FitEvidence) -> str:
    """Gravity torques are a multiple of the description's, or of the other sign."""
    c = e.comparison
    if c is None or has_load(e) or abs(c.likeness) < UNLIKE:
        return ""
    if any(n.code == "gravity" for n in e.notes):  # which explains the factor
        return ""
    if c.factor >= 0 and (UNIT[0] < c.factor < UNIT[1] or c.common <= 0.5):
        return ""
    cause = (
        "The torques have the wrong sign (units={'tau': -1})." if c.factor < 0
        else "Motor currents in amperes look like this: multiply each by its torque constant and "
        "its gear ratio (feasid.torque_constants)." if c.factor < 1
        else "Check the unit of the torques and the masses of the description (units=)."
    )  # fmt: skip
    return (
        f"The torques are not newton metres at the joints: gravity torques are {_factors(c)} times "
        f"the description's. {cause}"
    )


@check("torque-constant", {**WITH_CARE, WEIGHING: NO})
def torque_constants_are_off(e: FitEvidence) -> str:
    """The factor is alike at all joints that carry weight.

    A log has the same errors with all torques times a factor; only the description's masses show
    it. One factor explains the difference, or all factors are on one side. What a load at the hand
    explains as well is named.
    """
    c = e.comparison
    if c is None or unit_is_wrong(e):
        return ""
    known = c.factors[np.isfinite(c.factors)]
    one_side = known.min() > CONSTANT[1] or known.max() < CONSTANT[0]
    common = c.common > ONE_FACTOR and not CONSTANT[0] < c.factor < CONSTANT[1]
    if has_load(e):  # at the hand: it is a larger share of the weight that distal joints carry
        common = common and known.max() < ALIKE * known.min()
    if not (common or (one_side and not c.placeholder and not has_load(e))):
        return ""
    load = f", or whether it carries {c.load:.2g} kg" if has_load(e) else ""
    return (
        f"Gravity torques are {_factors(c)} times the description's at every joint that carries "
        f"weight: check the unit, torque constants and gear ratios{load}."
    )


@check("gain", WITH_CARE)
def one_gain_may_be_wrong(e: FitEvidence) -> str:
    """Gravity torques of one joint alone differ, and the log does not tell its torque gain."""
    c = e.comparison
    if c is None or c.placeholder or has_load(e) or np.isfinite(c.factors).sum() < 2:
        return ""
    off = np.nan_to_num(np.abs(1.0 - c.factors))
    *others, most = np.sort(off)
    joint = e.joints[int(np.argmax(off))]
    if joint not in e.assumed or most <= ALONE[1] or others[-1] >= ALONE[0]:
        return ""
    return (
        f"Gravity torques of {joint} alone are {c.factors[np.argmax(off)]:.2g} times the "
        "description's, and the log does not tell its torque gain: a log with a known load, or a "
        "weighed link (known=), tells whether the gain or the described mass is wrong."
    )


@check("unlike", NO_USE)
def robots_differ(e: FitEvidence) -> str:
    """Gravity torques do not resemble the description's."""
    c = e.comparison
    if c is None or c.placeholder or has_load(e) or c.likeness >= UNLIKE or c.difference <= 1:
        return ""
    return (
        "Gravity torques do not resemble the description's (correlation "
        f"{c.likeness:.2f}): check the geometry, the order and the signs of the columns."
    )


@check("still-joint", WITH_CARE)
def some_joints_stand_still(e: FitEvidence) -> str:
    """Fewer than half of the joints hardly moved."""
    if not e.still or 2 * len(e.still) >= len(e.joints):
        return ""
    return (
        f"{list_names(e.still)} hardly moved: the fit may be wrong at other positions of these "
        "joints."
    )


@check("short", WITH_CARE)
def log_is_short(e: FitEvidence) -> str:
    """Parts of a short log are more alike than two logs."""
    if not e.seconds < SHORTEST:
        return ""
    return f"{e.seconds:.2g} s of motion are too short to predict the errors on other motions."


@check("total-mass", NO_USE)
def total_mass_is_impossible(e: FitEvidence) -> str:
    """The robot is five times as heavy as described."""
    total, described = e.masses.sum(), e.described.sum()
    if not described > 0 or total <= FIVE * described:
        return ""
    return f"The fitted robot weighs {total:.3g} kg, the described one {described:.3g} kg: {KEEP}"


KEEP = "keep the description, and record a richer motion (feasid.excite)."


@check("body-mass", WITH_CARE)
def masses_are_beyond_the_description(e: FitEvidence) -> str:
    """Masses that no correction of a description has: five times its own, or three times of bodies
    that make up much of the robot.
    """
    c = e.comparison
    if c is None or c.placeholder or total_mass_is_impossible(e):
        return ""
    much = (e.described > MUCH * e.described.sum()) & (not has_load(e))
    least = np.where(much, THREE, FIVE)
    beyond = (e.masses > least * e.described) | (least * e.masses < e.described)
    odd = beyond & ((e.described > HEAVY) | much)
    # The mass of the last body includes the load.
    if has_load(e) and len(odd):
        odd[-1] = False
    parts = [f"{b} {m:.2g} kg (described {d:.2g})" for b, m, d, x in
             zip(e.bodies, e.masses, e.described, odd, strict=True) if x]  # fmt: skip
    return (
        f"{list_names(parts)}: check the order of the columns, the motion and the description."
        if parts else ""
    )  # fmt: skip


@check("offset", WITH_CARE)
def offsets_are_no_friction(e: FitEvidence) -> str:
    """A large constant torque replaces weight that no feasible bodies of this robot have."""
    large = (e.offset > OFFSET * e.torque) & (e.offset > e.hold)
    parts = [f"{j} ({x:.2g} {u})" for j, x, u, y in
             zip(e.joints, e.offset, e.units, large, strict=True) if y]  # fmt: skip
    if not parts:
        return ""
    return (
        f"A constant torque, more than friction holds, explains most of what {list_names(parts)} "
        "does: check the order of the columns and the zeros of the torques."
    )


@check("fitted-worse", WITH_CARE)
def fitted_error_is_larger(e: FitEvidence) -> str:
    """Whether the error on the fitted log is the larger one: other rules prepared it."""
    fitted, missed = e.relative(e.fitted_error), e.relative(e.error)
    if not (fitted > CONSTRAINED * missed and fitted > missed + 0.03):
        return ""
    return (
        f"The error on the fitted log, {in_percent(fitted, 2)}, is above that on held-out parts, "
        f"{in_percent(missed, 2)}: constraints or weights of the fit contradict the log."
    )


def _exceeds_least_squares(e: FitEvidence) -> tuple[float, float] | None:
    model, squares = (e.errors.overall_error(x) for x in (e.errors.model, e.errors.least_squares))
    beyond = model > CONSTRAINED * squares and model > squares + CONSTRAINED_MORE
    return (model, squares) if beyond else None


@check("constrained", WITH_CARE)
def constraint_costs_much(e: FitEvidence) -> str:
    """A model that no robot can have predicts better."""
    errors = _exceeds_least_squares(e)
    if errors is None or errors[0] > CONSTRAINED_FAR:
        return ""
    return (
        f"Without physical consistency the error is {in_percent(errors[1], 2)}, "
        f"with it {in_percent(errors[0], 2)}: the log or the robot is not as described."
    )


@check("contradicted", NO_USE)
def log_is_of_another_robot(e: FitEvidence) -> str:
    """Feasible models of the described robot miss the torque of all joints, or of one joint."""
    errors = _exceeds_least_squares(e)
    if errors is not None and errors[0] > CONSTRAINED_FAR:
        return (
            f"No robot like the one described explains the log: error {in_percent(errors[0], 2)}, "
            f"least squares {in_percent(errors[1], 2)}. Check signs, columns and geometry."
        )
    model, squares = e.errors.model, e.errors.least_squares
    bad = (model > UNEXPLAINED) & (model > CONTRADICTED * squares) & (e.error > e.hold)
    joints = [j for j, x in zip(e.joints, bad, strict=True) if x]
    if not joints:
        return ""
    return (
        f"No robot like the one described explains the torques of {list_names(joints)}: check "
        "signs, columns and geometry (feasid.diagnose)."
    )


@check("worse-than-description", WITH_CARE)
def description_predicts_better(e: FitEvidence) -> str:
    """The fit made it worse."""
    model, reference = (e.errors.overall_error(x) for x in (e.errors.model, e.errors.description))
    if not (model > WORSE * reference and model > WORSE_FROM):
        return ""
    return (
        f"The description itself predicts better ({in_percent(reference, 2)} against "
        f"{in_percent(model, 2)}): keep it, and record a longer or richer motion (feasid.excite)."
    )
