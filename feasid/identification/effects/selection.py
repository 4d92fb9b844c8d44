"""The effects that a log shows: the search on a log, row by row or reduced, and its table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from feasid.core.notes import Note
from feasid.core.progress import step
from feasid.identification.effects.calibration import correct_log, correctable_effects, gauss_newton
from feasid.identification.effects.corrected_log import CorrectedLog, UncorrectedLog
from feasid.identification.effects.corrections import NOTHING, usual_widths
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
from feasid.identification.effects.search import Candidate, EffectSearch
from feasid.identification.effects.table import EFFECTS, EffectAt, EffectResult, strongest_harmonics
from feasid.identification.estimation.estimate import Estimate
from feasid.identification.estimation.estimator import Estimator
from feasid.identification.estimation.held_out import RULES
from feasid.identification.regression.reduce import restrict_terms
from feasid.identification.regression.triangle import Reduced
from feasid.logs.temperature import LEAST_WARMING
from feasid.parameters.identifiability.base import BaseParameters
from feasid.robot.joint_terms import RIPPLE

MOST_DELAYS = 3
"""How often a common delay is corrected before other effects are judged: over 10 ms its effect is
not linear."""

FALLS = (0.0, 0.01, 0.02, 0.03, 0.04)
"""Shares per K of exponential falls of friction that are searched; with 0 it falls linearly."""

WARM_TIMES = (0.12, 0.25, 0.5, 1.0)
"""Time constants of a warm-up that are searched, as shares of the log's length."""

WAVES, MOST_WAVES = 2, 14
"""Number of ripples per joint, the strongest of its unfiltered residual, that are searched, and of
those that most joints have, which are searched at all: joints of one robot often have equal gears.
All waves at all joints would make candidates grow with the square of the joints."""

DEFAULT_WORDS = tuple(w for e in EFFECTS.values() for w in e.terms if w != "compensator")
"""Joint terms that are searched in any log: all but gravity compensators, whose sine and cosine
of the position are those of bodies."""

PLAIN: Mapping[str, Any] = {"diagnose": False, "calibration": None, "candidates": ()}
"""Options of a fit with which, together, nothing is searched."""

MOST_FEATURES = 12
"""Largest number of joints with which effects with their own dynamics are searched at each
joint."""


@dataclass(frozen=True, eq=False)
class Selection:
    """Effects that entered a fit, effects that are only reported, and effects that were tried."""

    plain: CorrectedLog | None = None  #: The log as it came; None where it was reduced.
    trial: CorrectedLog | None = None  #: The log with a common delay corrected.
    candidates: tuple[Candidate, ...] = ()
    names: tuple[str, ...] = ()  #: Of joints, or of drives where the log was reduced.
    words: tuple[str, ...] = ()  #: Joint terms that may enter.
    #: Friction of the plain fit by drive, where the log was reduced.
    usual: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    gains: bool = False  #: Whether the caller wants torque gains of single joints corrected.
    term_notes: tuple[Note, ...] = ()  #: on joint terms that the fit has.

    @property
    def findings(self) -> list[Candidate]:
        """Effects that the search found."""
        return [c for c in self.candidates if c.entered]

    def is_fitted(self, candidate: Candidate) -> bool:
        """Whether an effect that the search found is a part of the fit, or only reported."""
        effect = candidate.effect
        if effect.kind == "term":
            return bool({*effect.terms[:1]} & {*self.words}) or effect.name == "abrupt"
        single = effect.name == "gain" and len(candidate.effects) == 1 and not self.gains
        return effect.kind == "sensor" and (not single or RULES["one-gain"].accepts(candidate.gain))

    @property
    def fitted_effects(self) -> list[EffectAt]:
        """Effects of the fit."""
        return [e for c in self.findings if self.is_fitted(c) for e in c.effects]

    @property
    def sensors(self) -> list[EffectAt]:
        """Errors of the log that a fit corrects."""
        return [e for e in self.fitted_effects if e.effect.kind == "sensor"]

    @property
    def terms(self) -> dict[str, tuple[str, ...]]:
        """Words of joint terms by the name of a joint, or of a drive."""
        out: dict[str, tuple[str, ...]] = {}
        for e in self.fitted_effects:
            if e.effect.kind == "term" and e.effect.terms:
                name = self.names[e.joint]
                out[name] = tuple(dict.fromkeys((*out.get(name, ()), e.effect.terms[0])))
        return out

    @property
    def ripples(self) -> dict[str, tuple[float, ...]]:
        """Periods per 2 pi rad of the waves of ripple that entered, by joint."""
        out: dict[str, tuple[float, ...]] = {}
        for e in (e for e in self.fitted_effects if e.kind == "ripple"):
            out[self.names[e.joint]] = (*out.get(self.names[e.joint], ()), e.number)
        return out

    @property
    def abrupt(self) -> float:
        """Gain of Coulomb friction that changes its sign at once; 0 if it did not enter."""
        return next((c.gain.share for c in self.findings if c.effect.name == "abrupt"), 0.0)

    def gain_of(self, kind: str) -> float:
        """Share by which all effects of a kind lowered the held-out errors."""
        factors = [1.0 - c.gain.share for c in self.findings if c.effects[0].kind == kind]
        return 1.0 - float(np.prod(factors))

    @property
    def gains_by_effect(self) -> dict[EffectAt, float]:
        """These gains by kind and joint, without a number."""
        every = (e for c in self.findings for e in c.effects)
        return {EffectAt(e.kind, e.joint): self.gain_of(e.kind) for e in every}

    @property
    def alike(self) -> dict[EffectAt, tuple[str, ...]]:
        """Other joints at which an effect would explain the log as well."""
        return {
            e: tuple(self.names[other.joint] for other in c.alike)
            for c in self.findings
            for e in c.effects
            if c.alike
        }

    def joints_of(self, candidate: Candidate) -> tuple[str, ...]:
        """Names of a candidate's joints; empty for one of the whole log."""
        return tuple(self.names[e.joint] for e in candidate.effects if e.joint >= 0)

    @property
    def results(self) -> tuple[EffectResult, ...]:
        """Everything that was tried, what entered first; one per effect and joint."""
        out = []
        for c in (*self.findings, *(c for c in self.candidates if not c.entered)):
            fitted = c.entered and self.is_fitted(c)
            why = c.why or ("" if fitted else "it is only reported")
            for k, at in enumerate(c.effects):
                unknown = (np.nan,) * c.effect.size
                value = tuple(map(float, c.values[k])) if c.values else unknown
                deviation = tuple(map(float, c.deviations[k])) if c.deviations else unknown
                name = self.names[at.joint] if at.joint >= 0 else ""
                numbers = value, deviation, c.gain.share, c.gain.deviations
                out.append(EffectResult(at, name, *numbers, fitted, why))
        return tuple(out)

    def drop_rejected(self, active: Iterable[EffectAt], terms: Terms) -> Selection:
        """The selection without rejected errors of the log and rejected terms."""
        stays = {("abrupt", -1), *((e.kind, e.joint) for e in active)}
        effects = [
            e
            for e in self.fitted_effects
            if (e.kind, e.joint) in stays
            or {*e.effect.terms[:1]} & {*terms.get(self.names[e.joint], ())}
        ]
        why = "fitted together with everything else, its size is zero or impossible"
        return self.with_fitted(effects, why)

    def with_fitted(self, effects: Sequence[EffectAt], why: str) -> Selection:
        """The selection with fewer effects in the fit, with the reason."""
        gone = [e for e in self.fitted_effects if e not in effects]
        stays = [e for c in self.findings for e in c.effects if e not in gone]
        entered, rejected = ([p for c in self.findings if (p := c.part(e))] for e in (stays, gone))
        rejected = [replace(c, entered=False, why=why) for c in rejected]
        others = (c for c in self.candidates if not c.entered)
        return replace(self, candidates=(*entered, *rejected, *others))

    @property
    def unconfirmed_errors(self) -> list[Candidate]:
        """Large errors of the log that the search selected and no feasible fit confirms at all."""
        confirmed = {c.effect.name for c in self.findings}
        return [
            c
            for c in self.candidates
            if not c.entered
            and c.values
            and c.effect.kind == "sensor"
            and c.effect.name not in confirmed
            and self.is_fitted(c)
            and RULES["refused"].accepts(c.gain)
        ]

    def notes_of_terms(self, terms: Terms) -> tuple[Note, ...]:
        """The selected joint terms that the fit has."""
        refused = [drive for drive, words in self.terms.items() if words != terms[drive]]
        gains = {e.terms[0]: self.gain_of(e.name) for e in EFFECTS.values() if e.terms}
        notes = term_notes(terms, gains, refused, self.ripples)
        if gain := self.abrupt:
            notes.append(Note(ABRUPT.format(gain=gain), "abrupt-friction", gain=gain))
        return tuple(notes)

    @property
    def notes(self) -> list[Note]:
        """Notes on the terms of the fit, and on effects that were found and are not in it."""
        out = [*self.term_notes]
        for c in (c for c in self.findings if not self.is_fitted(c)):
            effect, joints = c.effect, self.joints_of(c)
            sizes = ", ".join(
                f"{j} {effect.factor * v[0]:.3g} {effect.unit}".rstrip()
                for j, v in zip(joints, c.values, strict=True)
            )
            wave = f"; {c.effects[0].number:g} times per turn" * (effect.name == "ripple")
            listed = ", ".join(joints) if "{sizes}" not in effect.text else ""
            where = f" ({listed}{wave})" if listed else ""
            text = (
                f"{c.effects[0].sentence(sizes)}{where}: with it the cross-validation "
                f"error falls by {c.gain.share:.0%}; the fit does not model it"
            )
            if effect.kind == "term":
                text += f" (candidates={[*effect.terms]} lets it)"
            elif effect.name == "gain":
                text += ' (calibration={"gain": 0.05} lets it)'
            numbers = {"kind": effect.name, "joints": [*joints], "gain": c.gain.share}
            numbers |= {"sizes": [v.tolist() for v in c.values]}
            numbers |= {"numbers": [e.number for e in c.effects]}
            # An error that stays in the log is in the model; a law that is lacking may be small.
            numbers |= {"confirmed": True} if effect.kind == "sensor" else {}
            out.append(Note(text, "lacking", **numbers))
        for c in self.unconfirmed_errors:
            sizes = ", ".join(
                f"{j} {np.linalg.norm(c.effect.factor * v):.3g} {c.effect.unit}".strip()
                for j, v in zip(self.joints_of(c) or ("",), c.values, strict=True)
            )
            text = (
                f"{c.effects[0].sentence(sizes)}: with it the cross-validation error "
                f"falls by {c.gain.share:.0%}, and no feasible fit confirms it; bodies and "
                "friction of this fit stand for it. Check this, or record another motion"
            )
            out.append(Note(text, "unconfirmed", kind=c.effect.name, confirmed=True))
        likely = [
            c
            for c in self.candidates
            if not c.entered
            and (c.effects[0].kind, len(c.effects)) == ("gain", 1)
            and RULES["effect"].accepts(c.gain)
            and not RULES["gain"].accepts(c.gain)
        ]
        for c in sorted(likely, key=lambda c: -c.gain.share)[:1]:
            text = (
                f"the torque of {self.joints_of(c)[0]} may be too large or too small: with a "
                f"gain the cross-validation error falls by {c.gain.share:.0%}, too little to "
                "correct it. Compare this joint with a known load (feasid.torque_constants)"
            )
            out.append(Note(text, "unconfirmed", kind="gain", confirmed=True))
        return out


def offered_effects(trial: CorrectedLog, words: Sequence[str]) -> list[EffectAt]:
    """Everything that is looked for in a log; nothing where the caller turned all of it off."""
    setup, joints, robot = trial.setup, trial.rows.joints, trial.base.robot
    if all(setup.options[name] == off for name, off in PLAIN.items()):
        return []
    widths = usual_widths(setup.options["calibration"], setup.sample_time)
    out = [m for m in correctable_effects(setup, widths) if m.kind != "warm-up"]
    if widths and setup.seconds:
        out += [EffectAt("warm-up", j, setup.seconds * w) for w in WARM_TIMES for j in joints]
    # Known for these joints; a joint's temperature is that of its motor.
    law = {*(setup.options["friction_per_kelvin"] or ()), *robot.passive}
    for j in (j for j in joints if widths and robot.joints[j] not in law):
        cells = (r.temperature[:, j] for r in setup.runs if r.temperature is not None)
        warmth = np.concatenate([np.zeros(0), *(x[np.isfinite(x)] for x in cells)])
        if warmth.size and np.ptp(warmth) >= LEAST_WARMING:
            origin = float(np.round(warmth.mean()))
            out += [EffectAt("temperature", j, fall, origin=origin) for fall in FALLS]
    out += [EffectAt("abrupt")] if setup.abrupt_robot is not setup.base.robot else []
    have = {robot.joints[j]: set[str]() for j in joints}
    for drive in robot.drives:
        for joint in drive.coupling:
            have.get(joint, set()).update(drive.symbols)
    for effect in EFFECTS.values():
        if effect.name != "ripple" and {*effect.terms} & {*words, *DEFAULT_WORDS}:
            lacking = [j for j in joints if not effect.known(have[robot.joints[j]])]
            out += [EffectAt(effect.name, j) for j in lacking]
    turning = [j for j in joints if robot.bodies[j].motion[:3].any()]
    strongest = {j: strongest_harmonics(trial.rows, j, trial.beta, WAVES) for j in turning}
    common = Counter(n for numbers in strongest.values() for n in numbers).most_common(MOST_WAVES)
    for j in (j for j in turning if not have[robot.joints[j]] & {*RIPPLE}):
        numbers = {*strongest[j], *(n for n, _ in common)}
        out += [EffectAt("ripple", j, float(n)) for n in sorted(numbers)]
    if len(joints) <= MOST_FEATURES:
        out += [EffectAt(kind, j) for kind in ("elastic", "backlash") for j in joints]
    return out


def enter_effects(
    setup: UncorrectedLog, estimate: Estimate, words: Sequence[str]
) -> tuple[Selection, CorrectedLog]:
    """Search a log around its plain fit; what feasible fits predict better with enters.

    Returns the log with what entered corrected, too.
    """
    selection, barred = select_effects(setup, estimate, words), frozenset[str]()
    while True:
        plain = selection.plain
        assert plain is not None
        if not (selection.sensors or selection.terms or selection.abrupt):
            return selection, plain
        trial, terms = correct_selection(setup, selection, estimate)
        fitted = selection.drop_rejected(trial.correction.values, terms)
        kinds = {c.effects[0].kind for c in fitted.unconfirmed_errors}
        if kinds <= barred:
            break
        # What entered after a large effect was judged with it: the search goes back.
        barred |= kinds
        again = select_effects(setup, estimate, words, barred)
        selection = replace(again, candidates=(*again.candidates, *fitted.unconfirmed_errors))
    if not RULES["fit"].accepts(trial.held_out(plain).gain(over=plain.held_out(plain))):
        return selection.with_fitted((), "feasible fits with all of it predict no better"), plain
    return replace(fitted, term_notes=selection.notes_of_terms(terms)), trial


def correct_selection(
    setup: UncorrectedLog, selection: Selection, plain: Estimate
) -> tuple[CorrectedLog, Terms]:
    """The corrected log with joint terms, without those that leave a joint no friction at rest."""
    terms: Terms = selection.terms
    before = setup.base.robot
    usual = friction_by_drive(before, plain.delta)
    bodies = plain.solution.delta[before.inertial_columns]
    assert selection.trial is not None
    while True:
        robot = setup.abrupt_robot if selection.abrupt else before
        robot = with_terms(robot, terms, bodies, setup.travel, selection.ripples)
        log = setup if robot.drives == before.drives else setup.with_robot(robot)
        correction = selection.trial.correction
        start = CorrectedLog(log, correction, plain.noise, plain.prior_weight, None)
        corrected = correct_log(start, selection.sensors)
        fewer = without_restless(terms, robot, corrected.delta, usual)
        if fewer == terms:
            return corrected, terms
        terms = fewer


@step("searching for effects")
def select_effects(
    setup: UncorrectedLog, estimate: Estimate, words: Sequence[str], barred: Set[str] = frozenset()
) -> Selection:
    """Search a log around its plain fit for everything that may enter, without `barred` kinds."""
    plain = CorrectedLog(setup, NOTHING, estimate.noise, estimate.prior_weight, estimate.near)
    trial, delay, delays = plain, EffectAt("delay"), list[Candidate]()
    option = setup.options["calibration"]
    gains = isinstance(option, Mapping) and bool(option.get("gain"))
    while True:
        offered = [e for e in offered_effects(trial, words) if e.kind not in barred]
        stop = "delay" if len(delays) < MOST_DELAYS else ""
        grams = BlockGrams.from_log(trial, offered) if offered else None
        result = EffectSearch(grams).run(stop_at=stop) if grams else ()
        last = [c for c in result if c.entered][-1:]
        if not stop or not last or last[0].effects != (delay,):
            break
        corrected = gauss_newton(trial, [delay])[0]
        # No step was taken: the delay is small next to its deviation.
        if delay not in corrected.correction.values:
            break
        delays += last
        trial = corrected
    if delays:
        total = replace(delays[0], values=(trial.correction.values[delay],))
        result = (total, *(c for c in result if not c.entered or c.effects != (delay,)))
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
    _, delta, covariance = replace(comparison, noise=noise).follow(part)
    K = np.asarray(plain.K, dtype=np.float64)
    grams = grams_of_reduced(reduced, wide, plain, words, K @ delta, K @ covariance @ K.T, noise)
    drives = tuple(map(drive_key, wide.robot.drives))
    if not grams.items:
        return Selection(names=drives)
    result = EffectSearch(grams).run()
    usual = friction_by_drive(plain.robot, delta)
    return Selection(candidates=result, names=drives, words=tuple(words), usual=usual)
