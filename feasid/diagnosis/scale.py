"""Torques that are a multiple of what the description says: of one joint, or of all alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from feasid.core.arrays import Array
from feasid.diagnosis.findings import Finding
from feasid.diagnosis.hypothesis import EXPLAINED, Hypothesis
from feasid.diagnosis.screen import CAD, OFFSETS, Screen

GEAR_RANGE = (0.2, 5.0)
"""Factors between torque and description that are taken for a bad description."""

GEAR_WEIGHT = 1.5
"""The description's torque must lower a joint's residual by this factor to judge its factor."""

COMMON = 1.2
"""A factor common to all joints is reported from here on; descriptions are off by less."""

GAIN = 0.75
"""... when it leaves at most this share of the product of all residuals."""

ALIKE, ALIKE_FAR = 1.25, 3.0
"""Factors of single joints this close to the common one agree; the latter beyond GEAR_RANGE."""


def common_factor(screen: Screen, names: Sequence[str]) -> Iterator[Hypothesis]:
    """All torques are the same multiple of the description's."""
    single = [f for f in (gear_factor(screen, j) for j in range(len(names))) if f]
    if len(single) < 2:
        return
    factor = float(np.median(single))
    odd = not GEAR_RANGE[0] < factor < GEAR_RANGE[1]
    near = ALIKE_FAR if odd else ALIKE
    if 1 / COMMON < factor < COMMON or not all(factor / near < f < factor * near for f in single):
        return
    unit = nice(1.0 / factor) if odd else float(f"{1.0 / factor:.2g}")
    mended = screen.with_torques(lambda tau: tau * unit)
    share = screen.share(mended)
    if share > GAIN:
        return
    finding = Finding(
        "scale",
        "error" if odd else "warning",
        f"the torques of all joints are {factor:.3g} times what the description says: unit, "
        "torque constant or gear ratio, or the description's masses",
        f"units={{'tau': {unit:g}}}" + ("" if odd else ", unless the masses are wrong"),
        tuple(names),
        options={"units": {f"tau_{n}": unit for n in names}} if odd else {},
        values={"factor": factor, "share": share},
    )
    yield Hypothesis(share, finding, lambda: mended, unknowns=1.0)


def gears(screen: Screen, names: Sequence[str]) -> list[Finding]:
    """Joints whose torque is a multiple of what the description says."""
    if screen.cad is None:
        return []
    findings = []
    tau = screen.samples.torque
    efforts = [b.limits.effort for b in screen.robot.bodies for _ in range(b.dof)]
    for j, name in enumerate(names):
        effort = efforts[j]
        peak = float(np.abs(tau[:, j]).max())
        factor = gear_factor(screen, j)
        if effort and peak > 2 * effort:
            ratio = factor or peak / effort
            why = f"peaks at {peak:.4g}, the description allows {effort:g}"
        elif factor is not None and not GEAR_RANGE[0] < factor < GEAR_RANGE[1]:
            ratio, why = factor, f"is {factor:.3g} times what the description says"
        else:
            continue
        unit = nice(1.0 / ratio)
        findings.append(
            Finding(
                "gear",
                "error",
                f"the torque {why}: gear ratio, motor side or unit",
                f"units={{'tau_{name}': {unit:g}}} or transmission=",
                (name,),
                (f"tau_{name}",),
                options={"units": {f"tau_{name}": unit}},
                values={"factor": ratio},
            )
        )
    return findings


def gear_factor(screen: Screen, j: int) -> float | None:
    """Torque over description, if the description's part matters to this joint."""
    tau = screen.samples.torque[:, j]
    if not screen.rows[j].size or not tau.any():
        return None
    # Offsets may not stand in for gravity: they are left out when its factor is judged.
    held, coefficients = screen.rows[j].without(OFFSETS).explain(tau, pull=False)
    without, _ = screen.rows[j].without((*OFFSETS, CAD)).explain(tau, pull=False)
    if without < GEAR_WEIGHT * held or held > EXPLAINED:
        return None
    return float(coefficients[CAD]) or None


def rescaled(screen: Screen, findings: Sequence[Finding], names: Sequence[str]) -> Screen:
    """The screen with factors of torque put right."""
    factor: Array = np.ones(len(names))
    for finding in findings:
        for key, value in finding.options.get("units", {}).items():
            factor[list(names).index(key.removeprefix("tau_"))] *= value
    return screen if (factor == 1.0).all() else screen.with_torques(lambda tau: tau * factor)


def nice(factor: float) -> float:
    """A power of ten when it is near one, else two digits."""
    power = float(10.0 ** np.round(np.log10(factor)))
    return power if 0.7 < factor / power < 1.4 else float(f"{factor:.2g}")
