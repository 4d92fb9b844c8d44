"""Diagnosis by the robot's own dynamics: everything that needs torques, and in what order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from feasid.core.arrays import Array
from feasid.diagnosis.exchange import exchanged_torques, signs
from feasid.diagnosis.findings import Finding
from feasid.diagnosis.free import Free
from feasid.diagnosis.gravity import tilted
from feasid.diagnosis.hypothesis import Hypothesis, clear, likeliest
from feasid.diagnosis.lag import LAG_WINDOW, lag
from feasid.diagnosis.lengths import lengths
from feasid.diagnosis.load import load
from feasid.diagnosis.outliers import outliers
from feasid.diagnosis.positions import positions
from feasid.diagnosis.scale import common_factor, gears, rescaled
from feasid.diagnosis.screen import Screen, ScreenSamples, thin
from feasid.diagnosis.shared import shared_motors
from feasid.logs.motion import Motion
from feasid.robot.description import Robot

MOST_CHANGES = 4
"""Wrong signs, zeros and exchanges that are looked for in one log."""

STILL = 1e-6
"""Velocities below this are none [rad/s or m/s]."""

UNEXPLAINED = 0.97
"""A torque whose held-out residual is above this share of it has nothing to do with the motion."""

UNRELATED = 0.9
"""... when the few coefficients of the screen do not explain it either."""


OTHER_MOTION = {"gravity", "zero", "reversed", "degrees", "swap", "length"}
"""Findings after which nothing is said of delays."""


Key = tuple[str, tuple[str, ...]]


def check_model(
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
    found = _check(motion, robot, weak, refuted)
    return [replace(f, evidence="dynamics") for f in found]


def _check(
    motion: Motion, robot: Robot, weak: Collection[str], refuted: Collection[Key]
) -> list[Finding]:
    reach = max(4, int(np.ceil(LAG_WINDOW * motion.runs[0].rate)))
    samples = thin(motion, reach)
    if samples is None or not np.isfinite(samples.torque).all():
        return []
    names = robot.coordinates
    if np.abs(samples.dq).max() < STILL:
        return [_static(samples)]
    free = Free(robot if robot.drives else robot.with_joint_terms(drive_inertia=True), samples)
    screen = Screen(robot, samples)
    findings, screen = _changes(screen, names, weak, refuted)
    found = [f for f in gears(screen, names) if f.key not in refuted]
    screen = rescaled(screen, found, names)
    findings += found
    unexplained = _unexplained(free, screen, names)
    if any(f.level == "error" for f in unexplained):
        return unexplained  # whatever else seems to explain a little, does not
    findings += unexplained
    if not {f.code for f in findings} & OTHER_MOTION:
        late = lag(screen, free, names)
        ahead = sum(round(f.values["lag"] * samples.rate) for f in late)
        torque = screen.samples.tau[samples.reach + ahead]
        findings += [*late, *shared_motors(free, torque, names)]
    if any(f.level == "error" for f in findings):
        return findings
    return findings + outliers(motion, robot)


def _static(samples: ScreenSamples) -> Finding:
    """Nothing moves; in one pose nothing can be identified at all."""
    posed = bool(np.ptp(samples.q, axis=0).max() > STILL)
    return Finding(
        "static",
        "warning" if posed else "error",
        "nothing moves: only gravity parameters can be identified"
        if posed
        else "nothing moves, and there is one pose only: no parameter can be identified",
        "record a motion: feasid.excite(robot)",
    )


def _changes(
    screen: Screen, names: Sequence[str], weak: Collection[str], refuted: Collection[Key]
) -> tuple[list[Finding], Screen]:
    """What would explain the torques better, the most telling first; the screen with it mended."""
    findings: list[Finding] = []
    for _ in range(MOST_CHANGES):
        exchanged = {j for f in findings if f.code == "swap" for j in f.joints}
        change = _likeliest(screen, names, weak, exchanged, refuted)
        if change is None:
            break
        findings.append(change.finding)
        screen = change.mended()
    return findings, screen


def _likeliest(
    screen: Screen,
    names: Sequence[str],
    weak: Collection[str],
    exchanged: Collection[str],
    refuted: Collection[Key],
) -> Hypothesis | None:
    """The best guess; dear ones are made only while cheaper ones leave something unexplained.

    What was exchanged once is not exchanged again: columns can be told of one order only.
    """

    def possible(guesses: Iterable[Hypothesis]) -> list[Hypothesis]:
        found = [(h, h.finding) for h in guesses if h.finding.key not in refuted]
        return [h for h, f in found if f.code != "swap" or not {*f.joints} & {*exchanged}]

    cheap = [
        *signs(screen, names, weak),
        *exchanged_torques(screen, names),
        *common_factor(screen, names),
    ]
    cheap = possible(cheap)
    best = likeliest(cheap)
    if best is not None and clear(best.mended()):
        return best
    dear = possible([*tilted(screen, screen.robot), *positions(screen, names)])
    return likeliest([*cheap, *dear]) or likeliest(possible([*lengths(screen), *load(screen)]))


def _unexplained(free: Free, screen: Screen, names: Sequence[str]) -> list[Finding]:
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
