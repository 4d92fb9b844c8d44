"""Diagnosis by the robot's own dynamics: everything that needs torques, and in what order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from feasid.diagnosis.exchange import EXPLAINED, best_share, exchanges
from feasid.diagnosis.findings import Finding
from feasid.diagnosis.gravity import payload, tilted, upright_share
from feasid.diagnosis.outliers import outliers
from feasid.diagnosis.screen import Screen, explain, lags, thin
from feasid.logs.motion import Motion
from feasid.robot.description import Robot

LAG_WINDOW = 0.12
"""Lags up to this are looked at [s]."""

LAG_LEAST = 0.012
"""Shorter lags are not reported [s], nor those below three samples."""

LAG_GAIN = 0.05
"""Mean logarithmic gain of the residual that a lag must bring."""

GEAR_RANGE = (0.2, 5.0)
"""Factors between torque and description that are taken for a bad description."""

GEAR_WEIGHT = 1.5
"""The description's torque must lower a joint's residual by this factor to judge its factor."""


def check_model(motion: Motion, robot: Robot, weak: Collection[str] = ()) -> list[Finding]:
    """Everything that the dynamics can tell about a prepared log.

    Parameters
    ----------
    motion : Motion
    robot : Robot
    weak : collection of str
        Joints whose torque hardly leaves its resolution: their sign is not judged.
    """
    rate = motion.runs[0].rate
    reach = max(4, int(np.ceil(LAG_WINDOW * rate)))
    samples = thin(motion, reach)
    if samples is None or not np.isfinite(samples.torque).all():
        return []
    names = robot.coordinates
    if np.abs(samples.dq).max() < 1e-6:
        return [
            Finding(
                "static",
                "warning",
                "nothing moves: only gravity parameters can be identified",
                "record a motion: feasid.excite(robot)",
            )
        ]
    screen = Screen(robot, samples)
    tilt = tilted(screen, robot)
    if tilt and upright_share(screen, tilt[0].direction) < best_share(screen, names, weak):
        return [t.finding for t in tilt]  # wrong gravity looks like wrong signs and exchanges, too
    findings, screen = exchanges(screen, names, weak)
    gears = _gears(screen, names)
    findings += gears
    screen = _rescaled(screen, gears, names)
    tilt = tilted(screen, robot)
    findings += [t.finding for t in tilt]
    if not tilt:
        findings += _lag(screen, names)
        findings += payload(screen, robot)
    if any(f.level == "error" for f in findings):
        return findings
    return findings + outliers(motion, robot)


def _rescaled(screen: Screen, findings: Sequence[Finding], names: Sequence[str]) -> Screen:
    """The screen with factors of torque put right."""
    factor = np.ones(len(names))
    for finding in findings:
        for key, value in finding.options.get("units", {}).items():
            factor[list(names).index(key.removeprefix("tau_"))] *= value
    if (factor == 1.0).all():
        return screen
    return Screen(screen.robot, replace(screen.samples, tau=screen.samples.tau * factor))


def _gears(screen: Screen, names: Sequence[str]) -> list[Finding]:
    """Joints whose torque is a multiple of what the description says."""
    if screen.cad is None:
        return []
    findings = []
    tau = screen.samples.torque
    efforts = [b.limits.effort for b, _ in screen.robot.moving for _ in range(b.dof)]
    for j, name in enumerate(names):
        effort = efforts[j]
        peak = float(np.abs(tau[:, j]).max())
        factor = _gear_factor(screen, j)
        if effort and peak > 2 * effort:
            ratio = factor or peak / effort
            why = f"peaks at {peak:.4g}, the description allows {effort:g}"
        elif factor is not None and not GEAR_RANGE[0] < factor < GEAR_RANGE[1]:
            ratio, why = factor, f"is {factor:.3g} times what the description says"
        else:
            continue
        unit = _nice(1.0 / ratio)
        findings.append(
            Finding(
                "gear",
                "error",
                f"the torque {why}: gear ratio, motor side or unit",
                f"units={{'tau_{name}': {unit:g}}} or transmission=",
                (name,),
                (f"tau_{name}",),
                confidence=0.9,
                options={"units": {f"tau_{name}": unit}},
            )
        )
    return findings


def _gear_factor(screen: Screen, j: int) -> float | None:
    """Torque over description, if the description's part matters to this joint."""
    tau = screen.samples.torque[:, j]
    cad = screen.features[j][:, 5]
    if not cad.any() or not tau.any():
        return None
    features = screen.features[j].copy()
    # Offsets may not stand in for gravity: they are left out when its factor is judged.
    features[:, 3:5] = 0.0
    held, coefficients = explain(features, tau, pull=False)
    features[:, 5] = 0.0
    without, _ = explain(features, tau, pull=False)
    if without < GEAR_WEIGHT * held or held > EXPLAINED:
        return None
    return float(coefficients[5]) or None


def _nice(factor: float) -> float:
    """A power of ten when it is near one, else two digits."""
    power = float(10.0 ** np.round(np.log10(factor)))
    return power if 0.7 < factor / power < 1.4 else float(f"{factor:.2g}")


def _lag(screen: Screen, names: Sequence[str]) -> list[Finding]:
    samples = screen.samples
    if samples.reach == 0 or screen.cad is None:
        return []
    joints = [j for j, e in enumerate(screen.residuals()) if e < EXPLAINED]
    if not joints:
        return []
    shifts, curves = lags(screen, joints)
    score = np.log(np.maximum(curves, 1e-4)).mean(axis=1)
    k = int(np.argmin(score))
    if k in (0, len(shifts) - 1):
        return []
    bend = score[k - 1] - 2 * score[k] + score[k + 1]
    fine = shifts[k] + (0.5 * (score[k - 1] - score[k + 1]) / bend if bend > 0 else 0.0)
    seconds = float(fine / samples.rate)
    gain = float(score[samples.reach] - score[k])
    if abs(fine) < 2.5 or abs(seconds) < LAG_LEAST or gain < LAG_GAIN:
        return []
    who = "behind" if seconds > 0 else "ahead of"
    return [
        Finding(
            "lag",
            "warning",
            f"the torques are {abs(seconds) * 1e3:.3g} ms ({abs(fine):.1f} samples) {who} the "
            f"motion; without that lag residuals shrink by {1 - np.exp(-gain):.0%}",
            f"delay={-seconds:.3g}",
            confidence=float(np.clip(0.6 + gain, 0.6, 0.99)),
            options={"delay": -round(seconds, 6)},
        )
    ]
