"""Errors of a log that its fit corrects, and those that it allows for where it cannot see them.

Effects that the search (`feasid.identification.effects.search`) added are fitted by Gauss-Newton
together with the feasible model. Small errors that everybody makes and that a log does not
determine widen the covariance, by their deviations before and after the log was seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats
from scipy.optimize import minimize_scalar

from feasid.core.arrays import Array
from feasid.core.display import Display, Displayed
from feasid.core.notes import Note
from feasid.identification.effects.corrected_log import CorrectedLog, UncorrectedLog
from feasid.identification.effects.corrections import LogCorrection, usual_widths, wide_widths
from feasid.identification.effects.joint_terms import friction_by_drive
from feasid.identification.effects.table import ASSUMED, TOLD, EffectAt, EffectResult

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

FIRST_STEPS = 2  #: Number of steps with the noise of the uncorrected log.

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


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Displayed):
    """Errors of a log: those that its fit corrected, and those that it allows for."""

    entries: tuple[EffectResult, ...] = ()  #: the corrected ones first.
    #: Shape (3,): in the base's frame [m / s^2].
    gravity: Array = field(default_factory=lambda: np.zeros(3))

    @property
    def confirmed(self) -> tuple[EffectResult, ...]:
        """The corrections of the log or the robot."""
        return tuple(e for e in self.entries if e.entered)

    @property
    def correction(self) -> LogCorrection:
        """The corrections, as parameters."""
        return LogCorrection({e.at: np.array(e.value) for e in self.confirmed})

    @property
    def notes(self) -> list[Note]:
        """The corrections, a sentence for each kind."""
        out = []
        for kind in dict.fromkeys(e.at.kind for e in self.confirmed):
            same = [e for e in self.confirmed if e.at.kind == kind]
            first, effect = same[0], same[0].at.effect
            text = (
                f"{first.at.sentence(', '.join(e.size for e in same))}; the fit corrects this, "
                f"which lowers the cross-validation error by {first.gain:.0%}{effect.remark}"
            )
            numbers = {
                "joints": [e.joint for e in same],
                "sizes": [[*e.value] for e in same],
                "deviations": [[*e.deviation] for e in same],
            }
            doubt = {"confirmed": True} if effect.doubtful else {}
            out.append(Note(text, "calibrated", kind=kind, gain=first.gain, **numbers, **doubt))
        return out

    def frame(self) -> pd.DataFrame:
        """All errors as a table.

        Columns kind, joint, value, deviation, unit, confirmed and gain; a row per parameter.
        """
        import pandas as pd

        columns = ["kind", "joint", "value", "deviation", "unit", "confirmed", "gain"]
        data = [
            [e.at.kind, e.joint, k.factor * v, k.factor * d, unit, e.entered, e.gain]
            for e in self.entries
            for k in (e.at.effect,)
            for v, d, unit in zip(e.value, e.deviation, k.each or (k.unit,) * k.size, strict=True)
        ]
        return pd.DataFrame(data, columns=columns)

    def display(self) -> Display:
        """The corrections, and how much of all other errors the log leaves possible."""
        possible = [str(e) for e in self.entries if not e.entered]
        title = "calibration by the fit's own log"
        return Display(title, [], [*map(str, self.confirmed)], possible, "calibration.frame()")


def correctable_effects(setup: UncorrectedLog, widths: Mapping[str, float]) -> list[EffectAt]:
    """Errors of this log that a fit can correct."""
    robot = setup.base.robot
    turning = [j for j in setup.joints if robot.bodies[j].dof == 1]
    out = [EffectAt(k) for k in ("tilt", "delay") if k in widths]
    if not robot.gravity.any():
        out = [m for m in out if m.kind != "tilt"]
    if "zero" in widths:
        out += [EffectAt("zero", j) for j in turning]
    # The torque of a passive joint is known, not measured, and its equation, which is zero, is the
    # better fulfilled the lighter all bodies are: it tells no gains of the others. That of a sensor
    # behind a spring is told by the torque of the motor before it.
    driven = [j for j in setup.joints if robot.joints[j] not in robot.passive]
    place = robot.joints.index
    motors = {place(s): place(robot.elastic[link]) for link, s in robot.sensors.items()}
    if "gain" in widths:
        scaled = [j for j in driven if motors.get(j) in driven] if robot.passive else driven
        out += [EffectAt("gain", j) for j in scaled]
    if "delay" in widths:
        out += [EffectAt("joint-delay", j) for j in driven]
    if widths and (seconds := setup.seconds):
        out += [EffectAt("warm-up", j, seconds / 2) for j in setup.joints]
    return out


def is_credible(
    trial: CorrectedLog, group: Sequence[EffectAt], covariance: Array, step: Array
) -> bool:
    """Whether errors of a log, after this last `step`, are found, significant and possible.

    The torque of a single joint cannot be measured before the motion that it causes: if it seems
    early, the cause is play or elasticity. All of them together are early where commands were
    logged. Dry and viscous friction both fall while joints warm up, and some friction stays.
    """
    values = trial.correction.parameters_of(group)
    deviations = np.sqrt(np.diag(covariance))
    if (np.abs(step) > LARGE_STEP * deviations).any():
        return False
    if group[0].kind == "joint-delay" and (values < -trial.setup.sample_time).any():
        return False
    if group[0].kind == "warm-up":
        stays = friction_by_drive(trial.base.robot, trial.delta)
        names = [trial.base.robot.joints[m.joint] for m in group]
        dry = np.array([sum(stays.get(n, {}).get(s, 0.0) for s in ("fc", "fs")) for n in names])
        # Dry and viscous friction alternate among the parameters; only the dry one has a limit.
        if (values < -LEAST_DEVIATIONS * deviations).any() or (values[::2] > MOST_COLD * dry).any():
            return False
    moved = values + step
    # As improbable for this number of parameters as so many deviations are of one.
    beyond = float(moved @ np.linalg.pinv(covariance, hermitian=True) @ moved)
    return bool(stats.chi2.sf(beyond, len(values)) < stats.chi2.sf(LEAST_DEVIATIONS**2, 1))


def with_best_time(trial: CorrectedLog, group: Sequence[EffectAt]) -> list[EffectAt]:
    """Warm-ups of a trial without them, with the time constant that explains most of the log.

    One time for all joints is known many times better than one of each.
    """
    score, seconds = trial.score_tests, trial.setup.seconds

    def at(time: float) -> list[EffectAt]:
        return [replace(m, number=float(np.exp(time))) for m in group]

    best = minimize_scalar(lambda time: -score.joint_statistic(at(time)),
                           bounds=(np.log(TIMES[0] * seconds), np.log(TIMES[1] * seconds)),
                           method="bounded", options={"xatol": SAME_TIME})  # fmt: skip
    return at(best.x)


def gauss_newton(
    trial: CorrectedLog, active: Sequence[EffectAt], steps: int = STEPS
) -> tuple[CorrectedLog, Array, Array]:
    """The trial with these errors at their most probable values, their covariance, last step.

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
        # Both steps in units of their deviations: a positive product is a way back.
        back = -float((last / deviations**2) @ step)
        if back > 0:
            share /= 1.0 + back / float(np.sum((last / deviations) ** 2))
        last = step
        trial = trial.with_correction(trial.correction.add_step(active, share * step))
    return trial, covariance, step


def correct_log(trial: CorrectedLog, sensors: Sequence[EffectAt]) -> CorrectedLog:
    """The log without these errors, each fitted with the feasible model; insignificant ones are
    dropped.

    Errors were a part of the noise: with first values corrected it is smaller.
    """
    active = list(sensors)
    if not active:
        return trial
    trial, *_ = gauss_newton(trial, active, FIRST_STEPS)
    # A copy, so that the minimum next to which others are sought stays where it is.
    noise = replace(trial.minimiser).estimate_noise(trial.reduced)
    trial = trial.with_correction(trial.correction, noise)
    if warm := [m for m in active if m.kind == "warm-up"]:
        others = {m: v for m, v in trial.correction.values.items() if m not in warm}
        better = with_best_time(trial.with_correction(LogCorrection(others)), warm)
        first = (trial.correction.parameters_of([m]) for m in warm)
        values = {**others, **dict(zip(better, first, strict=True))}
        trial, active = trial.with_correction(LogCorrection(values)), [*others, *better]
    while active:
        trial, *_ = gauss_newton(trial, active)
        # An error stands if a constant torque of the size of dry friction does not explain it.
        now, widths = trial.correction.parameters_of(active), wide_widths(active)
        robot, friction = trial.base.robot, friction_by_drive(trial.base.robot, trial.delta)
        pairs = ((j, friction.get(robot.joints[j], {})) for j in trial.setup.joints)
        offsets = {j: f["fc"] for j, f in pairs if "fo" not in f and f.get("fc", 0.0) > 0}
        step, covariance = trial.score_tests.gauss_newton_step(active, now, widths, offsets)
        # Joints stand or fall together, but for effects that each joint shows by itself.
        keys = [(e.kind, e.joint if e.effect.single else -1) for e in active]
        numbers, failed = np.repeat([*map(keys.index, keys)], [e.effect.size for e in active]), []
        for key in dict.fromkeys(keys):
            group = [e for e, other in zip(active, keys, strict=True) if other == key]
            places = np.flatnonzero(numbers == keys.index(key))
            around = covariance[np.ix_(places, places)], step[places]
            failed += [] if is_credible(trial, group, *around) else group
        if not failed:
            break
        active = [m for m in active if m not in failed]
        values = {m: trial.correction.parameters_of([m]) for m in active}
        trial = trial.with_correction(LogCorrection(values))
    return trial


def allow(
    trial: CorrectedLog,
    believed: float,
    gains: Mapping[EffectAt, float],
    alike: Mapping[EffectAt, tuple[str, ...]],
) -> tuple[Calibration, Array]:
    """Values and deviations of all errors of a log, and what they add to the covariance.

    Gains that were not corrected count only if the caller gives their standard deviation:
    parameters are in the units of the log's torques, as are the torques that they predict.
    `believed` is the weight at which the description is taken for a draw of the prior. Returns
    `spread` (n, k), too: ``spread @ spread.T`` is added to the covariance of the standard
    parameters.
    """
    setup, robot = trial.setup, trial.base.robot
    corrected = trial.correction.values
    widths = usual_widths(setup.options["calibration"], setup.sample_time)
    aligned = trial.correction.shifts_torques
    possible = [
        e
        for e in correctable_effects(setup, widths)
        if e not in corrected and e.kind in widths and (e.kind != "delay" or aligned)
    ]
    effects = [*corrected, *possible]
    if not effects:
        return Calibration((), robot.gravity), np.zeros((robot.size, 0))
    sizes = [e.effect.size for e in effects]
    each = [e.effect.width if e in corrected else widths[e.kind] for e in effects]
    prior = np.repeat(each, sizes)
    mean, covariance, pull = trial.score_tests.posterior(effects, prior, trial.weight / believed)
    entries, start = [], 0
    for e in effects:
        part = slice(start, start := start + e.effect.size)
        deviation = np.sqrt(np.diag(covariance)[part])
        narrower = (deviation**2 < (1.0 - TOLD) * prior[part] ** 2).any()
        entries.append(
            EffectResult(
                e,
                robot.joints[e.joint] if e.joint >= 0 else "",
                tuple(map(float, corrected.get(e, mean[part]))),
                tuple(map(float, deviation)),
                gains.get(EffectAt(e.kind, e.joint), 0.0),
                entered=e in corrected,
                why="" if e in corrected or narrower else ASSUMED,
                alternatives=alike.get(e, ()),
            )
        )
    option = setup.options["calibration"]
    scaled = isinstance(option, Mapping) and bool(option.get("gain"))
    counted = np.repeat([scaled or e.kind != "gain" or e in corrected for e in effects], sizes)
    pull = pull[:, counted]
    # The model stands where nothing more is taken out, as far from the mean as the mean is.
    second = covariance + np.outer(mean, mean)
    values, vectors = np.linalg.eigh(second[np.ix_(counted, counted)])
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    K = np.asarray(trial.base.K, dtype=np.float64)
    return Calibration(tuple(entries), robot.gravity), trial.unit_covariance @ K.T @ (pull @ root)
