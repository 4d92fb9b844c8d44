"""Errors of a log that its fit corrects, and those that it allows for where it cannot see them.

Effects that the search (`feasid.identification.effects.search`) added are fitted by Gauss-Newton
together with the feasible model. Small errors that everybody makes and that a log does not
determine widen the covariance, by their deviations before and after the log was seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar

from feasid.core.arrays import Array
from feasid.core.display import Display, Displayed
from feasid.core.notes import Note
from feasid.identification.effects.corrected_log import CorrectedLog, UncorrectedLog
from feasid.identification.effects.corrections import (
    NOTHING,
    LogCorrection,
    usual_widths,
    wide_widths,
)
from feasid.identification.effects.joint_terms import friction_by_drive
from feasid.identification.effects.table import EFFECTS, Mistake, size_of
from feasid.identification.estimation.estimate import Estimate

if TYPE_CHECKING:
    import pandas as pd

TIMES = (0.125, 1.0)
"""Time constants of a warm-up that are searched, as shares of the log's length: slower changes
cannot be separated from the final friction."""

SAME_TIME = 0.01
"""Share to which such a time is found: joints that warm up with 12 s during 22 s determine it to
0.01, and 0.08 doubles the errors of their warm friction."""

STEPS = 8
"""Gauss-Newton steps at most: three where they converge at once, six where they are shortened."""

FIRST_STEPS = 2
"""Number of steps with the noise of the uncorrected log."""

SMALL_STEP, LARGE_STEP = 0.2, 1.0
"""Deviations below which a step ends the iteration, and above which the last one did not: steps
wander where a wrong tie of bodies takes a tilt's place."""

MOST_COLD = 3.0
"""Dry friction that fades, over that which stays, up to which a joint warms up. In nine seconds of
a Staubli TX40, which are too few for that, no other friction was left at one joint."""

LEAST_DEVIATIONS = 3.0
"""A fitted mistake must differ from zero by so many standard errors. Score tests assume that the
model is right; a torque gain that the log of a KUKA arm supported at once, but not the arm's other
log, came out as 1.2 deviations. Tilts, zeros and delays of simulated mistakes are beyond 3.5."""


@dataclass(frozen=True, eq=False)
class Calibrated:
    """A mistake of the log that its fit confirmed or allows for."""

    mistake: Mistake
    joint: str
    value: Array  #: [SI]
    deviation: Array  #: [SI]
    confirmed: bool = False  #: whether it was taken out; otherwise the covariance allows for it.
    gain: float = 0.0  #: share by which the held-out error fell; 0 where nothing was taken out.
    alternatives: tuple[str, ...] = ()  #: joints whose zero or gain would explain the log as well.

    def __str__(self) -> str:
        return EFFECTS[self.mistake.kind].sentence(self.mistake, self.size)

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
            text += f" (or {others}: the log does not show which of them)"
        return text


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Displayed):
    """Mistakes of a log: those that its fit took out, and those that it allows for."""

    entries: tuple[Calibrated, ...] = ()  #: the confirmed ones first.
    #: Shape (3,): in the base's frame [m / s^2].
    gravity: Array = field(default_factory=lambda: np.zeros(3))

    @property
    def confirmed(self) -> tuple[Calibrated, ...]:
        """The corrections of the log or the robot."""
        return tuple(e for e in self.entries if e.confirmed)

    @property
    def correction(self) -> LogCorrection:
        """The corrections, as parameters."""
        return LogCorrection({e.mistake: e.value for e in self.confirmed})

    @property
    def notes(self) -> list[Note]:
        """The corrections, a sentence for each kind."""
        out = []
        for kind in dict.fromkeys(e.mistake.kind for e in self.confirmed):
            own = [e for e in self.confirmed if e.mistake.kind == kind]
            sizes = ", ".join(e.size for e in own)
            effect = EFFECTS[kind]
            text = (
                f"{effect.sentence(own[0].mistake, sizes)}; the fit corrects this, which lowers "
                f"the cross-validation error by {own[0].gain:.0%}{effect.remark}"
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

        Columns kind, joint, value, deviation, unit, confirmed and gain; a row per parameter.
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
        """The corrections, and how much of all other mistakes the log leaves possible."""
        taken = [str(e) for e in self.confirmed]
        rest = [str(e) for e in self.entries if not e.confirmed]
        return Display("calibration by the fit's own log", [], taken, rest, "calibration.frame()")


@dataclass(frozen=True, eq=False)
class Corrected:
    """A log without errors, its feasible model, and which errors were corrected."""

    trial: CorrectedLog
    active: tuple[Mistake, ...] = ()


def correctable_mistakes(setup: UncorrectedLog, widths: Mapping[str, float]) -> list[Mistake]:
    """Mistakes of this log that a fit can correct."""
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


def is_credible(
    trial: CorrectedLog, group: Sequence[Mistake], covariance: Array, step: Array
) -> bool:
    """Whether errors of a log, after this last `step`, are found, significant and possible.

    The torque of a single joint cannot be measured before the motion that it causes: if it seems
    early, the cause is play or elasticity. All of them together are early where commands were
    logged. Dry and viscous friction both fall while joints warm up, and some friction stays.
    """
    early = -trial.setup.sample_time
    values = trial.correction.parameters_of(group)
    deviations = np.sqrt(np.diag(covariance))
    if (np.abs(step) > LARGE_STEP * deviations).any():
        return False
    if group[0].kind == "joint-delay" and (values < early).any():
        return False
    if group[0].kind == "warm-up":
        stays = friction_by_drive(trial.base.robot, trial.delta)
        names = [trial.base.robot.joints[m.joint] for m in group]
        dry = np.array([sum(stays.get(n, {}).get(s, 0.0) for s in ("fc", "fs")) for n in names])
        if (values < -LEAST_DEVIATIONS * deviations).any() or (values[::2] > MOST_COLD * dry).any():
            return False
    return float(values @ np.linalg.pinv(covariance, hermitian=True) @ values) > LEAST_DEVIATIONS**2


def with_best_time(trial: CorrectedLog, group: Sequence[Mistake]) -> list[Mistake]:
    """Warm-ups of a trial without them, with the time constant that explains most of the log.

    One time for all joints is known many times better than one of each.
    """
    score, seconds = trial.score_tests, trial.setup.seconds

    def at(time: float) -> list[Mistake]:
        return [replace(m, number=float(np.exp(time))) for m in group]

    best = minimize_scalar(
        lambda time: -score.joint_statistic(at(time)),
        bounds=(np.log(TIMES[0] * seconds), np.log(TIMES[1] * seconds)),
        method="bounded",
        options={"xatol": SAME_TIME},
    )
    return at(best.x)


def gauss_newton(
    trial: CorrectedLog, active: Sequence[Mistake], steps: int = STEPS
) -> tuple[CorrectedLog, Array, Array]:
    """The trial with these mistakes at their most probable values, their covariance, last step.

    The bodies follow a step further than the covariance says where the prior hardly holds them, so
    that full steps can go back and forth and grow. A step against the last one shows how far that
    one was too long, and all later ones are shortened by as much.
    """
    share, last = 1.0, np.zeros(len(wide_widths(active)))
    for _ in range(steps):
        values = trial.correction.parameters_of(active)
        step, covariance = trial.score_tests.gauss_newton_step(active, values, wide_widths(active))
        deviations = np.sqrt(np.diag(covariance))
        if (np.abs(step) < SMALL_STEP * deviations).all():
            break
        back = -float((last / deviations**2) @ step)
        if back > 0:
            share /= 1.0 + back / float(np.sum((last / deviations) ** 2))
        last = step
        trial = trial.with_correction(trial.correction.add_step(active, share * step))
    return trial, covariance, step


def uncorrected_trial(setup: UncorrectedLog, estimate: Estimate) -> CorrectedLog:
    """The log as it is, around the fit of it."""
    return CorrectedLog(setup, NOTHING, estimate.noise, estimate.prior_weight, estimate.delta)


def correct_log(trial: CorrectedLog, sensors: Sequence[Mistake]) -> Corrected:
    """The log without these errors, each fitted with the feasible model; insignificant ones are
    dropped.

    Errors were a part of the noise: with first values corrected it is smaller.
    """
    active = list(sensors)
    if not active:
        return Corrected(trial)
    trial = gauss_newton(trial, active, FIRST_STEPS)[0].with_own_noise()
    if warm := [m for m in active if m.kind == "warm-up"]:
        rest = {m: v for m, v in trial.correction.values.items() if m not in warm}
        better = with_best_time(trial.with_correction(LogCorrection(rest)), warm)
        first = (trial.correction.parameters_of([m]) for m in warm)
        values = {**rest, **dict(zip(better, first, strict=True))}
        trial, active = trial.with_correction(LogCorrection(values)), [*rest, *better]
    while active:
        trial, covariance, step = gauss_newton(trial, active)
        failed = [
            m
            for kind, *own in _by_kind(active, covariance, step)
            if not is_credible(trial, kind, *own)
            for m in kind
        ]
        if not failed:
            break
        active = [m for m in active if m not in failed]
        values = {m: trial.correction.parameters_of([m]) for m in active}
        trial = trial.with_correction(LogCorrection(values))
    return Corrected(trial, tuple(active))


def _by_kind(
    mistakes: Sequence[Mistake], covariance: Array, step: Array
) -> Iterator[tuple[list[Mistake], Array, Array]]:
    """Errors of a kind, their covariance and step."""
    kind = np.array([m.kind for m in mistakes for _ in range(size_of(m))])
    for name in dict.fromkeys(m.kind for m in mistakes):
        own = np.flatnonzero(kind == name)
        yield [m for m in mistakes if m.kind == name], covariance[np.ix_(own, own)], step[own]


@dataclass(frozen=True, eq=False)
class Allowance:
    """Covariance that mistakes add."""

    calibration: Calibration
    #: Shape (n, k): ``spread @ spread.T`` is added to the covariance of the standard parameters.
    spread: Array


def allow(
    found: Corrected,
    believed: float,
    gains: Mapping[Mistake, float],
    alike: Mapping[Mistake, tuple[str, ...]],
) -> Allowance:
    """Values and deviations of all mistakes, and what they add to the covariance.

    Gains that were not corrected count only if the caller gives their standard deviation:
    parameters are in the units of the log's torques, as are the torques that they predict.
    `believed` is the weight at which the description is taken for a draw of the prior.
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
    mean, covariance, pull = trial.score_tests.posterior(mistakes, prior, trial.weight / believed)
    entries, at = [], 0
    for m in mistakes:
        part = slice(at, at + size_of(m))
        deviation = np.sqrt(np.diag(covariance)[part])
        confirmed = m in found.active
        value = trial.correction.values[m] if confirmed else mean[part]
        name = robot.joints[m.joint] if m.joint >= 0 else ""
        gain = gains.get(Mistake(m.kind, m.joint), 0.0)
        entries.append(Calibrated(m, name, value, deviation, confirmed, gain, alike.get(m, ())))
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
