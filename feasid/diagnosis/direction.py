"""Which of two signals counts the wrong way round, position or velocity: the torques decide."""

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
from feasid.robot.description import Robot

TELLS = 0.2
"""Logarithm by which one direction must explain the torques better than the other."""

OPPOSITE = "opposite"
"""Code, among a finding's values, of a velocity against the derivative of its position."""


def decided(
    findings: Sequence[Finding], recording: Recording, robot: Robot, options: Mapping[str, Any]
) -> list[Finding]:
    """The findings, those of opposite directions with the remedy that the torques ask for."""
    return [
        _decided(f, recording, robot, options) if f.values.get(OPPOSITE) else f for f in findings
    ]


def _decided(
    finding: Finding, recording: Recording, robot: Robot, options: Mapping[str, Any]
) -> Finding:
    joint = finding.joints[0]
    keys = [f"{kind}_{joint}" for kind in ("q", "dq")]
    mends = [
        {"units": {key: -unit_factor(options.get("units"), key.split("_", 1)[0], joint)}}
        for key in keys
    ]
    scores = [_score(recording, robot, merged([options, mend])) for mend in mends]
    if not np.isfinite(scores).all() or abs(scores[0] - scores[1]) < TELLS:
        return finding
    best = int(np.argmin(scores))
    return replace(
        finding,
        remedy=f"units={{{keys[best]!r}: -1}}, with which the torques agree",
        options=mends[best],
    )


def _score(recording: Recording, robot: Robot, options: Mapping[str, Any]) -> float:
    """Sum of the logarithms of all joints' residuals; NaN where they cannot tell."""
    try:
        samples = thin(recording.motion(robot, **options), 0)
    except LogError:
        return float("nan")
    if samples is None or not np.isfinite(samples.torque).all():
        return float("nan")
    screen = Screen(robot, samples)
    return float(np.log(screen.residuals).sum()) if screen.cad is not None else float("nan")
