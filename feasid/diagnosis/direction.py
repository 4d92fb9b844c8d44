"""Which of two signals is wrong, position or velocity: the torques decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from feasid.diagnosis.findings import Finding, merged
from feasid.diagnosis.screen import Screen, thin
from feasid.errors import LogError
from feasid.logs.columns import unit_factor
from feasid.logs.recording import Recording
from feasid.reduction.window import low_passed
from feasid.robot.description import Robot

TELLS = 0.2
"""Logarithm by which one direction must explain the torques better than the other."""

WAYS = "ways"
"""Key, among a finding's values, of the options of which one mends it."""


SAID = {"units": "units=", "columns": "columns="}
"""How a remedy begins, by the option."""


def decided(
    findings: Sequence[Finding], recording: Recording, robot: Robot, options: Mapping[str, Any]
) -> list[Finding]:
    """The findings, those that are mended in two ways with the one that the torques ask for."""
    return [_decided(f, recording, robot, options) if WAYS in f.values else f for f in findings]


def _decided(
    finding: Finding, recording: Recording, robot: Robot, options: Mapping[str, Any]
) -> Finding:
    mends = [_on_top(way, options) for way in finding.values[WAYS]]
    if len(mends) == 1:
        return replace(finding, options=mends[0])
    scores = [_score(recording, robot, merged([options, mend])) for mend in mends]
    if not np.isfinite(scores).all() or abs(scores[0] - scores[1]) < TELLS:
        return finding
    best = int(np.argmin(scores))
    ((name, value),) = finding.values[WAYS][best].items()
    shown = {k: _short(v) for k, v in value.items()}
    return replace(
        finding,
        remedy=SAID[name] + f"{shown}, with which the torques agree",
        options=mends[best],
    )


def _short(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _on_top(way: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """A way to mend, factors on top of the units that were given."""
    if "units" not in way:
        return dict(way)
    given = options.get("units")
    return {"units": {k: v * unit_factor(given, *k.split("_", 1)) for k, v in way["units"].items()}}


def _score(recording: Recording, robot: Robot, options: Mapping[str, Any]) -> float:
    """Sum of the logarithms of all joints' residuals; NaN where they cannot tell."""
    try:
        samples = thin(low_passed(recording.motion(robot, **options)), 0)
    except LogError:
        return float("nan")
    if samples is None or not np.isfinite(samples.torque).all():
        return float("nan")
    screen = Screen(robot, samples)
    return float(np.log(screen.residuals).sum()) if screen.cad is not None else float("nan")
