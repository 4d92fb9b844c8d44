"""The effects that a log shows: the search on a log, row by row or reduced, and its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import numpy as np

from feasid.core.notes import Note
from feasid.identification.effects.calibration import (
    Corrected,
    correct_log,
    correctable_mistakes,
    gauss_newton,
    uncorrected_trial,
)
from feasid.identification.effects.columns import strongest_harmonics
from feasid.identification.effects.corrected_log import CorrectedLog, UncorrectedLog
from feasid.identification.effects.corrections import usual_widths
from feasid.identification.effects.gram import BlockGrams, grams_of_reduced
from feasid.identification.effects.joint_terms import (
    ABRUPT,
    Terms,
    drive_key,
    friction_by_drive,
    term_notes,
    with_terms,
    without_restless,
)
from feasid.identification.effects.search import EffectSearch, EffectSearchResult, Tried
from feasid.identification.effects.table import EFFECTS, Mistake
from feasid.identification.estimation.estimate import Estimate
from feasid.identification.estimation.estimator import Estimator
from feasid.identification.estimation.held_out import RULES
from feasid.identification.estimation.noise import Delay, find_delay
from feasid.identification.regression.reduce import restrict_terms
from feasid.identification.regression.triangle import Reduced
from feasid.parameters.identifiability.base import BaseParameters
from feasid.robot.joint_terms import RIPPLE

MOST_DELAYS = 3
"""How often a common delay is corrected before other effects are judged: over 10 ms its effect is
not linear."""

WARM_TIMES = (0.12, 0.25, 0.5, 1.0)
"""Time constants of a warm-up that are searched, as shares of the log's length."""

WAVES = 2
"""Number of ripples per joint, the strongest of its unfiltered residual, that are searched at all
joints: those of one robot often have equal gears."""

DEFAULT_WORDS = ("sqrt", "load", "weight", "stribeck", "direction", "spring", "ripple")
"""Joint terms that are searched in any log: all but gravity compensators, whose sine and cosine
of the position are those of bodies."""

MOST_FEATURES = 12
"""Largest number of joints with which effects with their own dynamics are searched at each
joint."""


@dataclass(frozen=True)
class SelectionEntry:
    """An effect at a joint that a search tried."""

    effect: str
    joint: str  #: Empty for an effect of the whole log.
    value: float  #: Its first coefficient in `unit`; NaN where it did not enter the search.
    deviation: float  #: Of the value.
    unit: str  #: Empty for SI.
    gain: float  #: Share by which held-out errors fall, of all joints that were tried together.
    certainty: float  #: Deviations of that over blocks of the log.
    entered: bool  #: Whether the fit has it.
    why: str  #: Reason why it did not enter.


@dataclass(frozen=True, eq=False)
class Selection:
    """Effects that entered a fit, effects that are only reported, and effects that were tried."""

    plain: CorrectedLog | None = None  #: The log as it came; None where it was reduced.
    trial: CorrectedLog | None = None  #: The log with a common delay corrected.
    result: EffectSearchResult = field(default_factory=lambda: EffectSearchResult((), ()))
    names: tuple[str, ...] = ()  #: Of joints, or of drives where the log was reduced.
    words: tuple[str, ...] = ()  #: Joint terms that may enter.
    #: Friction of the plain fit by drive, where the log was reduced.
    usual: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    gains: bool = False  #: Whether the caller wants torque gains of single joints corrected.

    def enters(self, tried: Tried) -> bool:
        """Whether the effects that the search added are a part of the fit, or only reported."""
        effect = EFFECTS[tried.mistakes[0].kind]
        if effect.kind == "term":
            return bool({*effect.terms[:1]} & {*self.words}) or effect.name == "abrupt"
        single = effect.name == "gain" and len(tried.mistakes) == 1 and not self.gains
        return effect.kind == "sensor" and (not single or RULES["one-gain"].accepts(tried.gain))

    @property
    def sensors(self) -> list[Mistake]:
        """Errors of the log that a fit corrects."""
        own = [t for t in self.result.entered if self.enters(t)]
        return [m for t in own for m in t.mistakes if EFFECTS[m.kind].kind == "sensor"]

    @property
    def terms(self) -> dict[str, tuple[str, ...]]:
        """Words of joint terms by the name of a joint, or of a drive."""
        out: dict[str, tuple[str, ...]] = {}
        for tried in self.result.entered:
            effect = EFFECTS[tried.mistakes[0].kind]
            if effect.kind == "term" and effect.terms and self.enters(tried):
                for m in tried.mistakes:
                    name = self.names[m.joint]
                    out[name] = tuple(dict.fromkeys((*out.get(name, ()), effect.terms[0])))
        return out

    @property
    def ripples(self) -> dict[str, tuple[float, ...]]:
        """Periods per 2 pi rad of the waves of ripple that entered, by joint."""
        out: dict[str, tuple[float, ...]] = {}
        for m in (m for t in self.result.entered if self.enters(t) for m in t.mistakes):
            if m.kind == "ripple":
                out[self.names[m.joint]] = (*out.get(self.names[m.joint], ()), m.number)
        return out

    @property
    def abrupt(self) -> float:
        """Gain of Coulomb friction that changes its sign at once; 0 if it did not enter."""
        own = [t for t in self.result.entered if t.mistakes[0].kind == "abrupt"]
        return own[0].gain.share if own else 0.0

    @property
    def reported(self) -> list[Tried]:
        """Effects that the search found and no fit models."""
        return [t for t in self.result.entered if not self.enters(t)]

    def gain_of(self, kind: str) -> float:
        """Share by which all effects of a kind lowered the held-out errors."""
        left = [1.0 - t.gain.share for t in self.result.entered if t.mistakes[0].kind == kind]
        return 1.0 - float(np.prod(left))

    @property
    def gains_by_word(self) -> dict[str, float]:
        """These gains by the word of a joint term."""
        return {e.terms[0]: self.gain_of(e.name) for e in EFFECTS.values() if e.terms}

    @property
    def gains_by_mistake(self) -> dict[Mistake, float]:
        """The effects by kind and joint, without their number."""
        return {Mistake(m.kind, m.joint): self.gain_of(m.kind) for m in self.result.mistakes}

    @property
    def alike(self) -> dict[Mistake, tuple[str, ...]]:
        """Other joints at which an effect would explain the log as well."""
        return {
            m: tuple(self.names[other.joint] for other in t.alike)
            for t in self.result.entered
            for m in t.mistakes
            if t.alike
        }

    def joints_of(self, tried: Tried) -> tuple[str, ...]:
        """Names of a candidate's joints; empty for one of the whole log."""
        return tuple(self.names[m.joint] for m in tried.mistakes if m.joint >= 0)

    @property
    def entries(self) -> tuple[SelectionEntry, ...]:
        """Everything that was tried, what entered first; a row per effect and joint."""
        out = []
        for tried in (*self.result.entered, *self.result.tried):
            effect = EFFECTS[tried.mistakes[0].kind]
            entered = tried.entered and self.enters(tried)
            why = tried.why or ("" if entered else "it is only reported")
            for m in tried.mistakes:
                name = self.names[m.joint] if m.joint >= 0 else ""
                own, spread = (
                    effect.factor * float(x[m][0]) if m in x else np.nan
                    for x in (self.result.values, self.result.deviations)
                )
                gain = tried.gain.share, tried.gain.deviations
                out.append(
                    SelectionEntry(effect.name, name, own, spread, effect.unit, *gain, entered, why)
                )
        return tuple(out)

    def drop_rejected(self, active: Sequence[Mistake], terms: Terms) -> Selection:
        """The selection without rejected errors of the log and rejected terms."""
        kinds = {"abrupt", *(m.kind for m in active)}

        def stays(m: Mistake) -> bool:
            name = self.names[m.joint] if m.joint >= 0 else ""
            return m.kind in kinds or bool({*EFFECTS[m.kind].terms[:1]} & {*terms.get(name, ())})

        return self.without(
            stays, "fitted together with everything else, its size is zero or impossible"
        )

    def without(self, stays: Callable[[Mistake], bool], why: str) -> Selection:
        """The selection with fewer effects in the fit, with the reason."""

        def part(t: Tried, kept: bool) -> tuple[Mistake, ...]:
            return tuple(m for m in t.mistakes if (not self.enters(t) or stays(m)) == kept)

        every = self.result.entered
        left = tuple(replace(t, mistakes=own) for t in every if (own := part(t, True)))
        gone = tuple(
            replace(t, mistakes=own, entered=False, why=why)
            for t in every
            if (own := part(t, False))
        )
        result = replace(self.result, entered=left, tried=(*gone, *self.result.tried))
        return replace(self, result=result)

    @property
    def refused(self) -> list[Tried]:
        """Large errors of the log that the search selected and no feasible fit confirms."""
        return [
            t
            for t in self.result.tried
            if t.mistakes[0] in self.result.values
            and EFFECTS[t.mistakes[0].kind].kind == "sensor"
            and self.enters(t)
            and RULES["refused"].accepts(t.gain)
        ]

    def again(self, selection: Selection) -> Selection:
        """Another search of the log, with the errors that this one's fit refused."""
        values = {m: self.result.values[m] for t in self.refused for m in t.mistakes}
        deviations = {m: self.result.deviations[m] for m in values}
        result = replace(
            selection.result,
            tried=(*self.refused, *selection.result.tried),
            values={**values, **selection.result.values},
            deviations={**deviations, **selection.result.deviations},
        )
        return replace(selection, result=result)

    def term_notes(self, terms: Terms) -> list[Note]:
        """The selected joint terms that the fit has."""
        refused = [drive for drive, words in self.terms.items() if words != terms[drive]]
        notes = term_notes(terms, self.gains_by_word, refused, self.ripples)
        if gain := self.abrupt:
            notes.append(Note(ABRUPT.format(gain=gain), "abrupt-friction", gain=gain))
        return notes

    @property
    def notes(self) -> list[Note]:
        """Notes on effects that were found and are not in the fit."""
        out = []
        for tried in self.reported:
            effect, joints = EFFECTS[tried.mistakes[0].kind], self.joints_of(tried)
            values = [self.result.values[m] for m in tried.mistakes]
            sizes = ", ".join(
                f"{j} {effect.factor * v[0]:.3g} {effect.unit}".rstrip()
                for j, v in zip(joints, values, strict=True)
            )
            wave = f"; {tried.mistakes[0].number:g} times per turn" * (effect.name == "ripple")
            listed = ", ".join(joints) if "{sizes}" not in effect.text else ""
            where = f" ({listed}{wave})" if listed else ""
            text = (
                f"{effect.sentence(tried.mistakes[0], sizes)}{where}: with it the cross-validation "
                f"error falls by {tried.gain.share:.0%}; the fit does not model it"
            )
            numbers = {"kind": effect.name, "joints": [*joints], "gain": tried.gain.share}
            numbers |= {"sizes": [v.tolist() for v in values]}
            numbers |= {"numbers": [m.number for m in tried.mistakes]}
            # An error that stays in the log is in the model; a law that is lacking may be small.
            numbers |= {"confirmed": True} if effect.kind == "sensor" else {}
            out.append(Note(f"{text}{self._remedy(tried)}", "lacking", **numbers))
        for tried in self.refused:
            effect = EFFECTS[tried.mistakes[0].kind]
            values = [effect.factor * self.result.values[m] for m in tried.mistakes]
            sizes = ", ".join(
                f"{j} {np.linalg.norm(v):.3g} {effect.unit}".strip()
                for j, v in zip(self.joints_of(tried) or ("",), values, strict=True)
            )
            text = (
                f"{effect.sentence(tried.mistakes[0], sizes)}: with it the cross-validation error "
                f"falls by {tried.gain.share:.0%}, and no feasible fit confirms it; bodies and "
                "friction of this fit stand for it. Check this, or record another motion"
            )
            out.append(Note(text, "unconfirmed", kind=effect.name, confirmed=True))
        likely = [
            t
            for t in self.result.tried
            if (t.mistakes[0].kind, len(t.mistakes)) == ("gain", 1)
            and RULES["effect"].accepts(t.gain)
            and not RULES["gain"].accepts(t.gain)
        ]
        for tried in sorted(likely, key=lambda t: -t.gain.share)[:1]:
            text = (
                f"the torque of {self.joints_of(tried)[0]} may be too large or too small: with a "
                f"gain the cross-validation error falls by {tried.gain.share:.0%}, too little to "
                "correct it. Compare this joint with a known load (feasid.torque_constants)"
            )
            out.append(Note(text, "unconfirmed", kind="gain", confirmed=True))
        return out

    def _remedy(self, tried: Tried) -> str:
        effect = EFFECTS[tried.mistakes[0].kind]
        if effect.kind == "term":
            return f" (candidates={[*effect.terms]} lets it)"
        return ' (calibration={"gain": 0.05} lets it)' if effect.name == "gain" else ""


def offered_effects(trial: CorrectedLog, words: Sequence[str]) -> list[Mistake]:
    """Everything that is looked for in a log."""
    setup, joints, robot = trial.setup, trial.rows.joints, trial.base.robot
    widths = usual_widths(setup.chosen["calibration"], setup.sample_time)
    out = [m for m in correctable_mistakes(setup, widths) if m.kind != "warm-up"]
    if widths and setup.seconds:
        out += [Mistake("warm-up", j, setup.seconds * w) for w in WARM_TIMES for j in joints]
    out += [Mistake("abrupt")] if setup.abrupt_robot is not setup.base.robot else []
    have = {robot.joints[j]: set[str]() for j in joints}
    for drive in robot.drives:
        for joint in drive.coupling:
            have.get(joint, set()).update(drive.symbols)
    for effect in EFFECTS.values():
        if effect.name != "ripple" and {*effect.terms} & {*words, *DEFAULT_WORDS}:
            lacking = [j for j in joints if not effect.known(have[robot.joints[j]])]
            out += [Mistake(effect.name, j) for j in lacking]
    turning = [j for j in joints if robot.bodies[j].motion[:3].any()]
    strongest = {n for j in turning for n in strongest_harmonics(trial.rows, j, trial.beta, WAVES)}
    for j in (j for j in turning if not have[robot.joints[j]] & {*RIPPLE}):
        out += [Mistake("ripple", j, float(n)) for n in sorted(strongest)]
    if len(joints) <= MOST_FEATURES:
        out += [Mistake(kind, j) for kind in ("elastic", "backlash") for j in joints]
    return out


@dataclass(frozen=True, eq=False)
class Entered:
    """What a search selected, and the log with it; the log as it came where nothing entered."""

    selection: Selection
    corrected: Corrected
    notes: Sequence[Note] = ()  #: on joint terms.

    def remaining_delay(self, delay: Delay) -> Delay:
        """What remains of a delay that was found before: the effects may explain it."""
        trial = self.corrected.trial
        if trial.correction.shifts_torques:
            return Delay()
        return Delay(left=find_delay(trial.reduced).left) if delay.left else delay


def enter_effects(setup: UncorrectedLog, estimate: Estimate, words: Sequence[str]) -> Entered:
    """Search a log around its plain fit; what feasible fits predict better with enters."""
    selection, barred = select_effects(setup, estimate, words), frozenset[str]()
    while True:
        assert selection.plain is not None
        plain = Entered(selection, Corrected(selection.plain))
        if not (selection.sensors or selection.terms or selection.abrupt):
            return plain
        corrected, terms = correct_selection(setup, selection, estimate)
        fitted = selection.drop_rejected(corrected.active, terms)
        if {t.mistakes[0].kind for t in fitted.refused} <= barred:
            break
        # What entered after a large effect was judged with it: the search goes back.
        barred |= {t.mistakes[0].kind for t in fitted.refused}
        selection = fitted.again(select_effects(setup, estimate, words, barred))
    gain = corrected.trial.held_out_in(selection.plain).gain(over=selection.plain.held_out)
    if not RULES["fit"].accepts(gain):
        why = "feasible fits with all of it predict no better"
        return replace(plain, selection=selection.without(lambda m: False, why))
    return Entered(fitted, corrected, selection.term_notes(terms))


def correct_selection(
    setup: UncorrectedLog, selection: Selection, plain: Estimate
) -> tuple[Corrected, Terms]:
    """The corrected log with joint terms, without those that leave a joint no friction at rest."""
    terms: Terms = selection.terms
    before = setup.base.robot
    usual = friction_by_drive(before, plain.delta)
    bodies = plain.solution.delta[before.inertial_columns]
    assert selection.trial is not None
    while True:
        robot = setup.abrupt_robot if selection.abrupt else before
        robot = with_terms(robot, terms, bodies, setup.travel, selection.ripples)
        own = setup if robot.drives == before.drives else setup.with_robot(robot)
        correction = selection.trial.correction
        start = CorrectedLog(own, correction, plain.noise, plain.prior_weight, None)
        corrected = correct_log(start, selection.sensors)
        fewer = without_restless(terms, robot, corrected.trial.delta, usual)
        if fewer == terms:
            return corrected, terms
        terms = fewer


def select_effects(
    setup: UncorrectedLog, estimate: Estimate, words: Sequence[str], barred: Set[str] = frozenset()
) -> Selection:
    """Search a log around its plain fit for everything that may enter, without `barred` kinds."""
    plain, delays = uncorrected_trial(setup, estimate), list[Tried]()
    trial = plain
    asked = setup.chosen["calibration"]
    gains = isinstance(asked, Mapping) and bool(asked.get("gain"))
    while True:
        offered = [m for m in offered_effects(trial, words) if m.kind not in barred]
        grams = BlockGrams.from_log(trial, offered)
        stop = "delay" if len(delays) < MOST_DELAYS else ""
        result = EffectSearch(grams).run(stop_at=stop)
        if not stop or not result.entered or result.entered[-1].mistakes[0].kind != "delay":
            break
        corrected = gauss_newton(trial, [Mistake("delay")])[0]
        if Mistake("delay") not in corrected.correction.values:
            break
        delays.append(result.entered[-1])
        trial = corrected
    if delays:
        result = replace(
            result,
            entered=(*delays[:1], *(t for t in result.entered if t.mistakes != delays[0].mistakes)),
        )
        result.values.setdefault(Mistake("delay"), trial.correction.values[Mistake("delay")])
    return Selection(plain, trial, result, trial.base.robot.joints, tuple(words), gains=gains)


def select_terms(
    reduced: Reduced, estimator: Estimator, plain: BaseParameters, words: Sequence[str]
) -> Selection:
    """Search a reduced log for joint terms that it has columns of.

    `estimator` has the robot with all terms on offer, `plain` base parameters without them.
    """
    wide = estimator.base
    part = restrict_terms(reduced, wide.robot, plain)
    comparison = estimator.on(plain).for_comparison()
    noise = comparison.estimate_noise(part)
    kept = replace(comparison, noise=noise)
    _, delta, covariance = kept.follow(part)
    K = np.asarray(plain.K, dtype=np.float64)
    grams = grams_of_reduced(reduced, wide, plain, words, K @ delta, K @ covariance @ K.T, noise)
    drives = tuple(map(drive_key, wide.robot.drives))
    if not grams.items:
        return Selection(names=drives)
    result = EffectSearch(grams).run()
    usual = friction_by_drive(plain.robot, delta)
    return Selection(result=result, names=drives, words=tuple(words), usual=usual)
