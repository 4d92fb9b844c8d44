"""Mistakes of a log that its own fit confirms, takes out, and allows for where it cannot see them.

Score tests (`feasid.effects.score`) say which mistakes a log supports. Each in turn is fitted by
Gauss-Newton together with all those before and with the feasible model; it counts only if this
model predicts stretches that were held out better. Small mistakes that everybody makes and that a
log cannot tell widen the covariance, by their deviations before and after the log was seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar

from feasid.core.arrays import Array
from feasid.core.display import Display, Displayed
from feasid.core.notes import Note
from feasid.effects.corrected_log import CorrectedLog, UncorrectedLog
from feasid.effects.corrections import NOTHING, LogCorrection, usual_widths, wide_widths
from feasid.effects.functions import Mistake
from feasid.effects.score import FALSE_ALARMS, ScoreTest
from feasid.effects.table import EFFECTS, USUAL, missing_features, size_of
from feasid.errors import FeasidError
from feasid.estimation.estimate import Estimate
from feasid.estimation.held_out import RULES
from feasid.identifiability.base import base_parameters
from feasid.regression.reduce import restrict_terms
from feasid.robot.description import Robot

if TYPE_CHECKING:
    import pandas as pd

MOST_MISTAKES = 6
"""Rounds of tests, each of which may add a mistake."""

MOST_TRIED = 3
"""Mistakes that are fitted in a round until one is confirmed."""

TIMES = (0.125, 1.0)
"""Time constants of a warm-up that are looked for, as shares of the log's length: friction that
changes more slowly cannot be told from where it ends."""

SAME_TIME = 0.01
"""Share to which such a time is found: joints that warm up with 12 s during 22 s tell it to 0.01,
and 0.08 doubles the errors of their warm friction."""

STEPS = 5
"""Gauss-Newton steps at most."""

SMALL_STEP = 0.2
"""Deviations below which a step ends the iteration."""

LEAST_DEVIATIONS = 3.0
"""Deviations by which a fitted mistake must differ from none. Score tests take the model for right;
a torque gain that the log of a KUKA arm supported at once, but not the arm's other log, came out as
1.2 deviations. Tilts, zeros and delays of simulated mistakes are beyond 3.5."""

UNTOUCHED = 0.9
"""Share of a feature's gain that is left once a long delay is taken out, beyond which the delay did
not stand for the feature. Tilts and zeros may leave cables and elasticity untouched and be none."""

ALIKE = 0.9
"""Share of the best mistake's gain from which another one explains the log as well."""


@dataclass(frozen=True, eq=False)
class Calibrated:
    """A mistake of the log that its fit confirmed or allows for.

    Attributes
    ----------
    mistake : Mistake
    joint : str
    value, deviation : ndarray
        [SI]
    confirmed : bool
        Whether it was taken out; otherwise the covariance allows for it.
    gain : float
        Share by which the held-out error fell; 0 where nothing was taken out.
    alternatives : tuple of str
        Joints whose zero or gain would explain the log as well.
    """

    mistake: Mistake
    joint: str
    value: Array
    deviation: Array
    confirmed: bool = False
    gain: float = 0.0
    alternatives: tuple[str, ...] = ()

    def __str__(self) -> str:
        return EFFECTS[self.mistake.kind].text.format(sizes=self.size)

    @property
    def size(self) -> str:
        """The value with its deviation and unit, and whose it is."""
        kind = EFFECTS[self.mistake.kind]
        value, deviation = kind.factor * self.value, kind.factor * self.deviation
        way = kind.ways[int(value[0] < 0)]
        own = slice(1 if kind.first else None)
        value, deviation = value[own], deviation[own]
        shown = value[0] if len(value) == 1 and not way else np.linalg.norm(value)
        text = f"{shown:.3g} +- {np.linalg.norm(deviation):.2g} {kind.unit} {way}".rstrip()
        if self.joint:
            text = f"{self.joint} {text}"
        if self.alternatives:
            others = " or ".join(self.alternatives)
            text += f" (or {others}: one of these, the log cannot tell which)"
        return text


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Displayed):
    """Mistakes of a log: those that its fit took out, and those that it allows for.

    Attributes
    ----------
    entries : tuple of Calibrated
        The confirmed ones first.
    gravity : ndarray, shape (3,)
        In the base's frame [m / s^2].
    """

    entries: tuple[Calibrated, ...] = ()
    gravity: Array = field(default_factory=lambda: np.zeros(3))

    @property
    def confirmed(self) -> tuple[Calibrated, ...]:
        """What was taken out of the log or the robot."""
        return tuple(e for e in self.entries if e.confirmed)

    @property
    def correction(self) -> LogCorrection:
        """What was taken out, as parameters."""
        return LogCorrection({e.mistake: e.value for e in self.confirmed})

    @property
    def notes(self) -> list[Note]:
        """What was taken out, a sentence for each kind."""
        out = []
        for kind in dict.fromkeys(e.mistake.kind for e in self.confirmed):
            own = [e for e in self.confirmed if e.mistake.kind == kind]
            sizes = ", ".join(e.size for e in own)
            effect = EFFECTS[kind]
            text = (
                f"{effect.text.format(sizes=sizes)}; the fit corrects this, which lowers the "
                f"cross-validation error by {own[0].gain:.0%}{effect.remark}"
            )
            numbers = {
                "joints": [e.joint for e in own],
                "sizes": [e.value.tolist() for e in own],
                "deviations": [e.deviation.tolist() for e in own],
            }
            doubt = {"confirmed": True} if effect.doubtful else {}
            out.append(Note(text, "calibrated", kind=kind, gain=own[0].gain, **numbers, **doubt))
        return out

    def frame(self) -> pd.DataFrame:
        """All mistakes as a table.

        Returns
        -------
        DataFrame
            kind, joint, value and deviation in `unit`, confirmed, gain; a row per parameter.
        """
        import pandas as pd

        columns = ["kind", "joint", "value", "deviation", "unit", "confirmed", "gain"]
        data = [
            [e.mistake.kind, e.joint, k.factor * v, k.factor * d, k.unit, e.confirmed, e.gain]
            for e in self.entries
            for k in (EFFECTS[e.mistake.kind],)
            for v, d in zip(e.value, e.deviation, strict=True)
        ]
        return pd.DataFrame(data, columns=columns)

    def display(self) -> Display:
        """What was taken out, and how much of everything else the log leaves possible."""
        taken = [str(e) for e in self.confirmed]
        rest = [str(e) for e in self.entries if not e.confirmed]
        return Display("calibration by the fit's own log", [], taken, rest, "calibration.frame()")


@dataclass(frozen=True, eq=False)
class Found:
    """Where a search ended: the last trial, and what was confirmed on the way."""

    trial: CorrectedLog
    active: tuple[Mistake, ...] = ()
    gains: Mapping[Mistake, float] = field(default_factory=dict)
    alternatives: Mapping[Mistake, tuple[str, ...]] = field(default_factory=dict)


def correctable_mistakes(setup: UncorrectedLog, widths: Mapping[str, float]) -> list[Mistake]:
    """Mistakes that a fit can take out of this log."""
    robot = setup.base.robot
    turning = [j for j in setup.joints if robot.bodies[j].dof == 1]
    out = [Mistake(k) for k in ("tilt", "delay") if k in widths]
    if not robot.gravity.any():
        out = [m for m in out if m.kind != "tilt"]
    if "zero" in widths:
        out += [Mistake("zero", j) for j in turning]
    if "gain" in widths:
        out += [Mistake("gain", j) for j in setup.joints]
    if "delay" in widths:
        out += [Mistake("joint-delay", j) for j in setup.joints]
    if widths and (seconds := setup.seconds):
        out += [Mistake("warm-up", j, seconds / 2) for j in setup.joints]
    return out


def search(trial: CorrectedLog, mistakes: Sequence[Mistake]) -> Found:
    """Mistakes that the log supports and whose fit predicts held-out stretches better."""
    found, refused = Found(trial), set[Mistake]()
    for _ in range(MOST_MISTAKES):
        known = {(m.kind, m.joint) for m in found.active}
        left = [m for m in mistakes if (m.kind, m.joint) not in known and m not in refused]
        tests = found.trial.score_tests(found.active).tests(left)
        supported = sorted((t for t in tests if _is_worth_a_fit(t)), key=lambda t: -t.gain)
        better, failed = _first_confirmed(found, supported, tests, left)
        if better is None:
            break
        found, refused = better, refused | failed
    return found


def _is_worth_a_fit(test: ScoreTest) -> bool:
    """Whether a log supports a mistake, a common delay whatever its first step predicts.

    Dry friction changes its sign at once, so that a slope says little of a delay that is long
    beside the low-pass.
    """
    return test.supported or (test.mistake.kind == "delay" and test.p < FALSE_ALARMS)


def _first_confirmed(
    found: Found,
    supported: Sequence[ScoreTest],
    tests: Sequence[ScoreTest],
    left: Sequence[Mistake],
) -> tuple[Found | None, set[Mistake]]:
    """The fit with what explains more than any feature does, and what was refused before it.

    Features are looked at where something helps at all: they take longer than everything else.
    """
    gains = {t.mistake: t.gain for t in supported}
    least, failed = -1.0, list[Mistake]()
    groups = _groups(supported, tests, left)
    for k, group in enumerate(groups):
        better = _confirm(found, _with_best_time(found.trial, group), supported, 0.0)
        if better is not None:
            least = _gain_of_features(found) if least < 0 else least
            together = k == 0 and len(groups) > len(supported[:MOST_TRIED])
            linear = np.inf if together else gains[group[0]]
            if _explains_more(better, linear, least):
                return better, {m for m in failed if gains.get(m, least) >= least}
        failed += group if len(group) == 1 else []
    return None, set()


def _explains_more(better: Found, linear: float, least: float) -> bool:
    """Whether a mistake explains more than any feature, of which the best one gains `least`.

    A long delay is judged by its fit alone, and passes where it leaves the feature as it was.
    """
    mistake = better.active[-1]
    gain = better.gains[mistake]
    if mistake.kind == "delay" and gain >= RULES["gain"].share:
        return gain >= least or _gain_of_features(better) > UNTOUCHED * least
    return min(gain, linear) >= least


def _with_best_time(trial: CorrectedLog, group: Sequence[Mistake]) -> list[Mistake]:
    """A warm-up with the time constant that explains most of the log; other mistakes as they are.

    `trial` is without it. One time for all joints is known many times better than one of each.
    """
    if group[0].kind != "warm-up":
        return [*group]
    score, seconds = trial.score_tests(), trial.setup.seconds

    def at(time: float) -> list[Mistake]:
        return [replace(m, number=float(np.exp(time))) for m in group]

    best = minimize_scalar(
        lambda time: -score.joint_statistic(at(time)),
        bounds=(np.log(TIMES[0] * seconds), np.log(TIMES[1] * seconds)),
        method="bounded",
        options={"xatol": SAME_TIME},
    )
    return at(best.x)


def _gain_of_features(found: Found) -> float:
    """What the best feature explains that no option mends.

    A cable would otherwise pass for torque gains, and play for a delay.
    """
    tests = found.trial.score_tests(found.active).tests(missing_features(found.trial.rows.joints))
    return max((t.gain for t in tests if t.supported), default=0.0)


def _groups(
    supported: Sequence[ScoreTest], tests: Sequence[ScoreTest], left: Sequence[Mistake]
) -> list[list[Mistake]]:
    """What is tried in a round: one by one, and gains or zeros of all joints at once.

    Only ratios of gains are seen, so that one joint alone cannot be told from all the others; of
    zeros those count of which the log tells more than everybody knows. All joints warm up.
    """
    alone = [[t.mistake] for t in supported[:MOST_TRIED]]
    kind = supported[0].mistake.kind if supported else ""
    if kind in ("gain", "warm-up"):
        return [[m for m in left if m.kind == kind], *alone]
    known = [t.mistake for t in tests if t.mistake.kind == kind and t.deviation[0] < USUAL["zero"]]
    return [known, *alone] if kind == "zero" and len(known) > 1 else alone


def _confirm(
    found: Found, group: Sequence[Mistake], supported: Sequence[ScoreTest], least: float
) -> Found | None:
    """The fit with further mistakes, where it predicts held-out stretches better.

    `least` is the gain that it must have.
    """
    active = (*found.active, *group)
    try:
        trial, covariance = gauss_newton(found.trial, active)
    except FeasidError:
        return None
    if not _is_credible(trial, group, covariance):
        return None
    held_out = trial.held_out.gain(over=found.trial.held_out)
    rule, gain = RULES["gain" if group[0].kind == "gain" else "sensor"], held_out.share
    if gain < least or not rule.accepts(held_out):
        return None
    names, first = trial.base.robot.joints, group[0]
    alike = [t for t in supported if t.mistake.kind == first.kind]
    own = {m.joint for m in group}
    best = max((t.gain for t in alike if t.mistake.joint in own), default=0.0)
    others = tuple(
        names[t.mistake.joint]
        for t in alike
        if t.mistake.joint not in own and t.gain > ALIKE * best
    )
    gains = {**found.gains, **dict.fromkeys(group, gain)}
    return Found(trial, active, gains, {**found.alternatives, first: others})


def _is_credible(trial: CorrectedLog, group: Sequence[Mistake], covariance: Array) -> bool:
    """Whether the last mistakes of a trial differ from none, and can be.

    A single torque is measured after, not before the motion that it causes: what looks early is
    play or elasticity. All of them together are early where commands were logged. Dry and viscous
    friction both fall while joints warm up.
    """
    early = -trial.setup.sample_time
    if any(trial.correction.values[m][0] < early for m in group if m.kind == "joint-delay"):
        return False
    values = trial.correction.parameters_of(group)
    own = covariance[-len(values) :, -len(values) :]
    if group[0].kind == "warm-up" and (values < -LEAST_DEVIATIONS * np.sqrt(np.diag(own))).any():
        return False
    return float(values @ np.linalg.pinv(own, hermitian=True) @ values) > LEAST_DEVIATIONS**2


def gauss_newton(trial: CorrectedLog, active: Sequence[Mistake]) -> tuple[CorrectedLog, Array]:
    """The trial with these mistakes at their most probable values, and their covariance."""
    covariance = np.zeros((0, 0))
    for _ in range(STEPS):
        values = trial.correction.parameters_of(active)
        step, covariance = trial.score_tests().gauss_newton_step(
            active, values, wide_widths(active)
        )
        if (np.abs(step) < SMALL_STEP * np.sqrt(np.diag(covariance))).all():
            break
        trial = trial.with_correction(trial.correction.add_step(active, step))
    return trial, covariance


def uncorrected_trial(setup: UncorrectedLog, estimate: Estimate) -> CorrectedLog:
    """The log as it is, around the fit of it."""
    return CorrectedLog(setup, NOTHING, estimate.noise, estimate.prior_weight, estimate.delta)


def calibrate(setup: UncorrectedLog, estimate: Estimate) -> Found:
    """Search a log for mistakes that a fit can take out, around the fit without them."""
    widths = usual_widths(setup.chosen["calibration"], setup.sample_time)
    found = search(uncorrected_trial(setup, estimate), correctable_mistakes(setup, widths))
    if not found.active:
        return found
    # Mistakes were part of the noise: without them it is smaller, and they are known better.
    return _with_better_times(replace(found, trial=found.trial.with_own_noise()))


def _with_better_times(found: Found) -> Found:
    """The confirmed mistakes again under another noise, warm-ups with their times."""
    warm = [m for m in found.active if m.kind == "warm-up"]
    trial, active, rest = found.trial, found.active, NOTHING
    if warm:
        rest = LogCorrection({m: v for m, v in trial.correction.values.items() if m not in warm})
        better = dict(zip(warm, _with_best_time(trial.with_correction(rest), warm), strict=True))
        values = {better.get(m, m): v for m, v in trial.correction.values.items()}
        trial = trial.with_correction(LogCorrection(values))
        active = tuple(better.get(m, m) for m in active)
        gains = {better.get(m, m): gain for m, gain in found.gains.items()}
        alternatives = {better.get(m, m): names for m, names in found.alternatives.items()}
        found = Found(trial, active, gains, alternatives)
    return replace(found, trial=gauss_newton(trial, active)[0])


def missing_terms(found: Found) -> list[str]:
    """Joint terms that all joints together lack, the one that explains most first.

    Words of `feasid.robot.joint_terms.FRICTION`; of a function of the position the spring, which
    unlike a gravity compensator no body can pass for.
    """
    score, joints = found.trial.score_tests(found.active), found.trial.rows.joints
    gains = {}
    for kind in EFFECTS.values():
        if kind.terms and kind.name != "load":
            gain = score.joint_gain([Mistake(kind.name, j) for j in joints])
            if RULES["term worth a fit"].accepts(gain):
                gains[kind.terms[0]] = gain.share
    return sorted(gains, key=lambda word: -gains[word])


def with_other_terms(found: Found, wide: UncorrectedLog, robot: Robot, estimate: Estimate) -> Found:
    """The confirmed mistakes again, beside other joint terms.

    Parameters
    ----------
    found : Found
    wide : Setup
        With all joint terms that could be chosen.
    robot : Robot
        The corrected one with the terms that were chosen.
    estimate : Estimate
        Of the corrected log with these terms.
    """
    own = replace(wide.base.robot, drives=robot.drives, load_model=robot.load_model)
    base = base_parameters(own, measured=wide.chosen["measured"])
    reduced = restrict_terms(wide.reduced, wide.base.robot, base)
    correction = found.trial.correction
    setup = replace(wide, base=base, reduced=reduced)
    trial = CorrectedLog(setup, correction, estimate.noise, estimate.prior_weight, estimate.delta)
    return replace(found, trial=gauss_newton(trial, found.active)[0])


@dataclass(frozen=True, eq=False)
class Allowance:
    """What mistakes leave open.

    Attributes
    ----------
    calibration : Calibration
    spread : ndarray, shape (n, k)
        ``spread @ spread.T`` is added to the covariance of the standard parameters.
    """

    calibration: Calibration
    spread: Array


def allow(found: Found, believed: float) -> Allowance:
    """Values and deviations of all mistakes, and what they add to the covariance.

    Gains that were not taken out count only where the caller gives their deviation: parameters are
    in the units of the log's torques, as are the torques that they predict. `believed` is the
    weight at which the description is taken for a draw of the prior.
    """
    trial = found.trial
    setup = trial.setup
    widths = usual_widths(setup.chosen["calibration"], setup.sample_time)
    robot = trial.base.robot
    aligned = trial.correction.shifts_torques
    rest = [
        m
        for m in correctable_mistakes(setup, widths)
        if m not in found.active and m.kind in widths and (m.kind != "delay" or aligned)
    ]
    mistakes = [*found.active, *rest]
    if not mistakes:
        return Allowance(Calibration((), robot.gravity), np.zeros((robot.size, 0)))
    prior = np.array(
        [
            EFFECTS[m.kind].width if m in found.active else widths[m.kind]
            for m in mistakes
            for _ in range(size_of(m))
        ]
    )
    mean, covariance, pull = trial.score_tests().posterior(mistakes, prior, trial.weight / believed)
    entries, at = [], 0
    for m in mistakes:
        part = slice(at, at + size_of(m))
        deviation = np.sqrt(np.diag(covariance)[part])
        confirmed = m in found.active
        value = trial.correction.values[m] if confirmed else mean[part]
        name = robot.joints[m.joint] if m.joint >= 0 else ""
        gain = found.gains.get(m, 0.0)
        entries.append(
            Calibrated(m, name, value, deviation, confirmed, gain, found.alternatives.get(m, ()))
        )
        at += size_of(m)
    asked = setup.chosen["calibration"]
    scaled = isinstance(asked, Mapping) and bool(asked.get("gain"))
    counted = [
        scaled or m.kind != "gain" or m in found.active for m in mistakes for _ in range(size_of(m))
    ]
    pull = pull[:, counted]
    # The model stands where nothing more is taken out, as far from the mean as the mean is.
    second = covariance + np.outer(mean, mean)
    values, vectors = np.linalg.eigh(second[np.ix_(counted, counted)])
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    K = np.asarray(trial.base.K, dtype=np.float64)
    spread = trial.unit_covariance @ K.T @ (pull @ root)
    return Allowance(Calibration(tuple(entries), robot.gravity), spread)
