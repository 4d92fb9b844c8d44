"""Checks by the robot's own dynamics: all that needs torques, and in what order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from feasid.core.arrays import Array, Mask
from feasid.diagnosis.findings import Finding
from feasid.diagnosis.joint_models import (
    EXPLAINED,
    OBJECTION,
    FreeModel,
    Hypothesis,
    Screen,
    ScreenSamples,
    all_explained,
    most_likely,
    thin_samples,
)
from feasid.diagnosis.positions import find_wrong_positions
from feasid.diagnosis.shared_motors import find_shared_motors
from feasid.diagnosis.torque_columns import (
    find_common_factor,
    find_exchanged_torques,
    find_gears,
    find_signs,
    rescale_torques,
)
from feasid.diagnosis.wrong_description import find_gravity, find_lengths, find_load
from feasid.dynamics.regressor import regressor
from feasid.logs.motion import Motion, Rows, blocks
from feasid.robot.description import Robot

MOST_CHANGES = 4
"""Wrong signs, zeros and exchanges that are looked for in one log."""

LEAST_SPEED = 1e-6
"""Velocities below this are none [rad/s or m/s]."""

UNEXPLAINED = 0.97
"""A torque whose held-out residual is above this share of it has nothing to do with the motion."""

UNRELATED = 0.9
"""... when the few coefficients of the screen do not explain it either."""


OTHER_MOTION = {"gravity", "zero", "reversed", "degrees", "swap", "length"}
"""Findings after which nothing is said of delays."""


Key = tuple[str, tuple[str, ...]]


def check_dynamics(
    motion: Motion,
    robot: Robot,
    weak: Collection[str] = (),
    refuted: Collection[Key] = (),
) -> list[Finding]:
    """Everything that the dynamics can tell about a prepared log.

    Parameters
    ----------
    motion : Motion
    robot : Robot
    weak : collection of str
        Joints whose torque hardly leaves its resolution: their sign is not judged.
    refuted : collection of (code, joints)
        Findings that are not made again.
    """
    found = _check_samples(motion, robot, weak, refuted)
    return [replace(f, evidence="dynamics") for f in found]


def _check_samples(
    motion: Motion, robot: Robot, weak: Collection[str], refuted: Collection[Key]
) -> list[Finding]:
    reach = max(4, int(np.ceil(LAG_WINDOW * motion.runs[0].rate)))
    samples = thin_samples(motion, reach)
    if samples is None or not np.isfinite(samples.torque).all():
        return []
    names = robot.coordinates
    if np.abs(samples.dq).max() < LEAST_SPEED:
        return [_no_motion_finding(samples)]
    free = FreeModel(robot if robot.drives else robot.with_joint_terms(drive_inertia=True), samples)
    screen = Screen(robot, samples)
    findings, screen = _find_corrections(screen, names, weak, refuted)
    found = [f for f in find_gears(screen, names) if f.key not in refuted]
    screen = rescale_torques(screen, found, names)
    findings += found
    unexplained = _check_unexplained_torque(free, screen, names)
    if any(f.level == "error" for f in unexplained):
        return unexplained  # whatever else seems to explain a little, does not
    findings += unexplained
    if not {f.code for f in findings} & OTHER_MOTION:
        late = find_delay(screen, free, names)
        ahead = sum(round(f.values["lag"] * samples.rate) for f in late)
        torque = screen.samples.tau[samples.reach + ahead]
        findings += [*late, *find_shared_motors(free, torque, names)]
    if any(f.level == "error" for f in findings):
        return findings
    return findings + find_outliers(motion, robot)


def _no_motion_finding(samples: ScreenSamples) -> Finding:
    """Nothing moves; in one pose nothing can be identified at all."""
    posed = bool(np.ptp(samples.q, axis=0).max() > LEAST_SPEED)
    return Finding(
        "static",
        "warning" if posed else "error",
        "nothing moves: only gravity parameters can be identified"
        if posed
        else "nothing moves, and there is one pose only: no parameter can be identified",
        "record a motion: feasid.excite(robot)",
    )


def _find_corrections(
    screen: Screen, names: Sequence[str], weak: Collection[str], refuted: Collection[Key]
) -> tuple[list[Finding], Screen]:
    """Corrections that explain the torques better, best first, and the corrected screen."""
    findings: list[Finding] = []
    for _ in range(MOST_CHANGES):
        exchanged = {j for f in findings if f.code == "swap" for j in f.joints}
        change = _best_hypothesis(screen, names, weak, exchanged, refuted)
        if change is None:
            break
        findings.append(change.finding)
        screen = change.mended()
    return findings, screen


def _best_hypothesis(
    screen: Screen,
    names: Sequence[str],
    weak: Collection[str],
    exchanged: Collection[str],
    refuted: Collection[Key],
) -> Hypothesis | None:
    """The best hypothesis; costly ones are tested only if cheaper ones explain too little.

    Columns that were exchanged once are not exchanged again: only one order can be reported.
    """

    def possible(guesses: Iterable[Hypothesis]) -> list[Hypothesis]:
        found = [(h, h.finding) for h in guesses if h.finding.key not in refuted]
        return [h for h, f in found if f.code != "swap" or not {*f.joints} & {*exchanged}]

    cheap = [
        *find_signs(screen, names, weak),
        *find_exchanged_torques(screen, names),
        *find_common_factor(screen, names),
    ]
    cheap = possible(cheap)
    best = most_likely(cheap)
    if best is not None and all_explained(best.mended()):
        return best
    dear = possible([*find_gravity(screen, screen.robot), *find_wrong_positions(screen, names)])
    return most_likely([*cheap, *dear]) or most_likely(
        possible([*find_lengths(screen), *find_load(screen)])
    )


def _check_unexplained_torque(
    free: FreeModel, screen: Screen, names: Sequence[str]
) -> list[Finding]:
    """Joints whose torque no motion explains; all of them, and the log is not this robot's."""
    held_out: Array = free.held_out()
    bad = [
        j
        for j in range(len(names))
        if held_out[j] > UNEXPLAINED and screen.residuals[j] > UNRELATED
    ]
    if not bad:
        return []
    joints = tuple(names[j] for j in bad)
    values = {"held_out": {names[j]: float(held_out[j]) for j in bad}}
    worst = max(float(held_out[j]) for j in bad)
    most = 2 * len(bad) > len(names)
    who = "most torques are" if most else "the torque is"
    return [
        Finding(
            "unexplained",
            "error" if most else "warning",
            f"{who} not explained by the motion: predicted from other stretches of the log, off by "
            f"up to {worst:.0%} of its size, where zero would be off by 100 %",
            "check that torques and motion belong together: robot, columns, time"
            if most
            else "check the sensor and the columns of these joints, or weigh them down: weights=",
            joints,
            tuple(f"tau_{n}" for n in joints),
            values=values,
        )
    ]


LAG_WINDOW = 0.12
"""Lags up to this are looked at [s]."""

LEAST_LAG = 0.012
LEAST_LAG_SAMPLES = 1.5
"""Shorter lags are not reported [s], nor those of fewer samples."""

LAG_GAIN = 0.05
"""Mean logarithmic gain of the residuals that a lag must bring."""

SHARP, SHARP_AT = 0.08, 0.02
"""Base parameters tell a lag when their residuals rise by this logarithm at so many seconds."""

LAG_FLOOR = 1e-4
"""Residuals below this are as good as zero."""


def find_delay(screen: Screen, free: FreeModel, names: Sequence[str]) -> list[Finding]:
    """The delay of all torques on which the joints agree.

    A joint's own base parameters tell it to a few milliseconds when the motion is lively, and
    bend themselves around it when it is slow; then the description has to tell.
    """
    samples = free.samples
    if samples.reach == 0:
        return []
    curves = _explained_curves(free.residuals_by_lag())
    if not _has_sharp_minimum(curves, samples.reach, SHARP_AT * samples.rate):
        curves = _explained_curves(screen.residuals_by_lag())
    if not len(curves):
        return []
    fine = _common_lag(curves, samples.reach)
    place = samples.reach + round(fine)
    seconds = float(fine / samples.rate)
    gains = curves[:, samples.reach] - curves[:, place]
    gain = float(gains.mean())
    if gains.min() < -np.log(OBJECTION) or np.median(gains) < LAG_GAIN / 2:
        return []
    if abs(fine) < LEAST_LAG_SAMPLES or abs(seconds) < LEAST_LAG or gain < LAG_GAIN:
        return []
    who = "behind" if seconds > 0 else "ahead of"
    return [
        Finding(
            "lag",
            "warning",
            f"the torques are {abs(seconds) * 1e3:.3g} ms ({abs(fine):.1f} samples) {who} the "
            f"motion; without that lag residuals shrink by {1 - np.exp(-gain):.0%}",
            f"delay={-seconds:.3g}",
            options={"delay": -round(seconds, 6)},
            values={"lag": seconds, "gain": gain},
        )
    ]


def _explained_curves(residuals: Array) -> Array:
    """Logarithms of the curves, of joints that are explained at some lag."""
    curves = np.log(np.maximum(residuals, LAG_FLOOR))
    return np.asarray(curves[curves.min(axis=1) < np.log(EXPLAINED)])


def _has_sharp_minimum(curves: Array, reach: int, width: float) -> bool:
    """Whether the mean of the curves rises on both sides of its lowest point."""
    if not len(curves):
        return False
    mean, w = curves.mean(axis=0), max(1, round(width))
    best = int(np.argmin(mean))
    if not w <= best < len(mean) - w:
        return False
    return bool(min(mean[best - w], mean[best + w]) > mean[best] + SHARP)


def _common_lag(curves: Array, reach: int) -> float:
    """Lag [samples] at which the mean of the curves is lowest; 0 at either end."""
    mean = curves.mean(axis=0)
    k = int(np.argmin(mean))
    if k in (0, len(mean) - 1):
        return 0.0
    bend = mean[k - 1] - 2 * mean[k] + mean[k + 1]
    return k - reach + (0.5 * float(mean[k - 1] - mean[k + 1]) / float(bend) if bend > 0 else 0.0)


OUTLIER = 12.0
"""Residuals beyond so many robust standard deviations are outliers."""

LEAST_SPREAD = 0.01
"""The usual scatter is taken to be at least this share of the torque's deviation."""

REVERSING = 0.06
"""Below this share of its largest velocity a joint may be about to turn round."""

RELATIVE_COLUMN_FLOOR = 1e-9
"""Columns of a regressor below this share of the largest are rounding."""


def find_outliers(motion: Motion, robot: Robot) -> list[Finding]:
    """Stretches in which a joint's torque is far from what its motion explains elsewhere."""
    samples: ScreenSamples | None = thin_samples(motion, 0)
    if samples is None:
        return []
    findings = []
    if not robot.drives:
        robot = robot.with_joint_terms(drive_inertia=True)
    slowest = motion.cutoff or 0.1 * samples.rate
    wide = int(np.ceil(samples.rate / samples.step / slowest))
    model = regressor(robot, samples.q, samples.dq, samples.ddq)
    for j, name in enumerate(robot.coordinates):
        tau = samples.torque[:, j]
        columns = np.asarray(model[:, j])
        rest = tau - _least_squares_prediction(columns, tau, np.ones(len(tau), dtype=bool))
        calm = np.abs(rest - np.median(rest)) < OUTLIER * _robust_deviation(rest, tau)
        if not calm.all():  # a collision bends the first fit: the second leaves it out
            rest = tau - _least_squares_prediction(columns, tau, calm)
        rest = rest - np.median(rest)
        spread = _robust_deviation(rest, tau)
        if spread == 0:
            continue
        limit = OUTLIER * spread * np.where(_near_reversals(samples.dq[:, j], wide), 3.0, 1.0)
        far = np.flatnonzero(np.abs(rest) > limit).astype(np.int64)
        # What happened in less time than this, the filter would have spread.
        least = max(2, int(0.25 * samples.rate / samples.step / slowest))
        parts = [p for p in blocks(_without_small_gaps(far), "") if p.count >= least]
        share = sum(p.count for p in parts) / len(rest)
        if not parts or share > 0.1:
            continue
        spans = tuple((int(samples.rows[p.first]), int(samples.rows[p.last])) for p in parts[:20])
        when = tuple((float(samples.t[p.first]), float(samples.t[p.last])) for p in parts[:20])
        worst = float(np.abs(rest[far]).max() / spread)
        findings.append(
            Finding(
                "outliers",
                "warning",
                f"the torque leaves its usual scatter (up to {worst:.0f} standard deviations) in "
                f"{len(parts)} stretch(es), the first at t = {when[0][0]:.4g} s: contact?",
                f"exclude=[{', '.join(f'({a:.4g}, {b:.4g})' for a, b in when[:3])}]",
                (name,),
                (f"tau_{name}",),
                spans,
                when,
                options={"exclude": when},
            )
        )
    return findings


def _near_reversals(velocity: Array, wide: int) -> Mask:
    """Samples around a change of direction, where filtered friction is hard to model."""
    turns = np.concatenate([[False], np.diff(np.sign(velocity)) != 0])
    near = np.convolve(turns, np.ones(2 * wide + 1), "same") > 0.5
    return np.asarray(near | (np.abs(velocity) < REVERSING * np.abs(velocity).max()))


def _robust_deviation(rest: Array, torque: Array) -> float:
    """Robust standard deviation of a residual, at least `LEAST_SPREAD` of its torque's."""
    typical = 1.4826 * float(np.median(np.abs(rest - np.median(rest))))
    return max(typical, LEAST_SPREAD * float(torque.std()))


def _least_squares_prediction(columns: Array, torque: Array, of: Mask) -> Array:
    """Prediction of a joint's torque by least squares on some of its samples, shape (samples,)."""
    from scipy.linalg import lstsq

    size = np.linalg.norm(columns, axis=0)
    seen = size > RELATIVE_COLUMN_FLOOR * max(float(size.max()), 1e-300)
    columns = columns[:, seen] / size[seen]
    found = lstsq(columns[of], torque[of], cond=1e-6, lapack_driver="gelsy")[0]
    return np.asarray(columns @ found)


def _without_small_gaps(indices: Rows) -> Rows:
    """Indices with gaps of up to two filled."""
    if not len(indices):
        return indices
    out = {int(k) for k in indices}
    for a, b in pairwise(indices):
        if b - a <= 3:
            out.update(range(int(a), int(b)))
    return np.array(sorted(out), dtype=np.int64)
