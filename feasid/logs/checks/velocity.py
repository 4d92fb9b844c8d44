"""Logged velocities against the derivative of the logged positions; torques show which is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from feasid.core.arrays import Array, Mask
from feasid.logs.checks.findings import Finding
from feasid.logs.checks.signals import DEGREE, degrees_finding
from feasid.logs.clock import GAP
from feasid.logs.motion import Rows
from feasid.logs.raw import Signals

AGREES = 0.3  #: Relative difference of logged and derived velocity that noise may leave.
FACTOR_TOLERANCE = 0.15  #: A factor between the two that is off by more than this is reported.
LEAST_CORRELATION = 0.9  #: Correlation from which one signal counts as a multiple of another.
SMOOTHING = 21  #: Samples over which both velocities are averaged before they are compared.


def check_velocities(raw: Signals, runs: Sequence[Rows], known: Sequence[Finding]) -> list[Finding]:
    """Scale, sign and order of the velocities, beside the findings of signals that are `known`."""
    if "dq" not in raw.values:
        return []
    in_degrees = {f.joints[0] for f in known if f.code == "degrees"}
    aside = np.zeros(len(raw.t), dtype=bool)
    for first, last in (s for f in known if f.code in ("stuck", "spike", "nan") for s in f.rows):
        aside[first : last + 1] = True
    derived, logged = _smoothed_velocities(raw, runs, aside)
    if derived is None or logged is None:
        return []
    names = raw.layout.coordinates
    derived[:, [name in in_degrees for name in names]] *= DEGREE
    size = np.linalg.norm(logged, axis=0)
    off = np.array(
        [[np.linalg.norm(logged[:, i] - derived[:, j]) for j in range(len(names))]
         for i in range(len(names))]
    ) / np.where(size > 0, size, np.inf)[:, None]  # fmt: skip
    wrong = [i for i in range(len(names)) if off[i, i] >= AGREES and size[i] > 0]
    pairs = combinations(wrong, 2)
    swapped = [(i, j) for i, j in pairs if off[i, j] < AGREES and off[j, i] < AGREES]
    swapped_joints = {k for pair in swapped for k in pair}
    scaled = [i for i in wrong if i not in swapped_joints]
    few = 2 * len(scaled) < len(names)  # else it is rather the time that is wrong
    findings = []
    for i, j in swapped:
        a, b = names[i], names[j]
        ways = tuple(
            {"columns": {f"{kind}_{a}": f"{kind}_{b}", f"{kind}_{b}": f"{kind}_{a}"}}
            for kind in ("q", "dq")
        )
        text = (
            f"the velocity of {a!r} is the derivative of the position of {b!r} and the other way "
            "round"
        )
        remedy = (
            f"columns={{'q_{a}': 'q_{b}', 'q_{b}': 'q_{a}'}} or the same for dq, whichever is wrong"
        )
        columns = f"q_{a}", f"q_{b}", f"dq_{a}", f"dq_{b}"
        values = {WAYS: ways}
        findings.append(Finding("swap", "error", text, remedy, (a, b), columns, values=values))
    for i in scaled:
        findings += _judge_scale(raw, i, logged[:, i], derived[:, i], few)
    return findings


def _smoothed_velocities(
    raw: Signals, runs: Sequence[Rows], aside: Mask
) -> tuple[Array | None, Array | None]:
    """Derived and logged velocities, both smoothed alike, per segment without a gap."""
    window = np.ones(SMOOTHING) / SMOOTHING
    derived, logged, parts = list[Array](), list[Array](), list[Rows]()
    for rows in (rows[~aside[rows]] for rows in runs):
        steps = np.diff(raw.t[rows])
        jumps = (steps > GAP * np.median(steps)) | (steps <= 0) if len(steps) else steps > 0
        parts += np.split(rows, np.flatnonzero(jumps) + 1) if len(steps) else []
    for rows in parts:
        if len(rows) < 5 * SMOOTHING:
            continue
        q, dq, t = raw.values["q"][rows], raw.values["dq"][rows], raw.t[rows]
        good = np.asarray(np.isfinite(np.hstack([q, dq])).all(axis=1), dtype=bool)
        slope = np.gradient(q, axis=0) / float(np.median(np.diff(t)))
        slope[~good], dq = 0.0, np.where(good[:, None], dq, 0.0)
        for signal, out in ((slope, derived), (dq, logged)):
            out.append(np.stack([np.convolve(x, window, "valid") for x in signal.T], axis=1))
    if not derived:
        return None, None
    a, b = np.concatenate(derived), np.concatenate(logged)
    fine = np.isfinite(np.hstack([a, b])).all(axis=1)
    return a[fine], b[fine]


def _judge_scale(raw: Signals, k: int, logged: Array, derived: Array, few: bool) -> list[Finding]:
    """A velocity that is a multiple of the derivative, or no relative; `few` get a unit."""
    name = raw.layout.coordinates[k]
    columns = tuple(raw.layout.column_name(kind, k) for kind in ("q", "dq"))
    power = float(derived @ derived)
    likeness = float(derived @ logged) / max(np.sqrt(power) * float(np.linalg.norm(logged)), 1e-300)
    factor = float(derived @ logged) / max(power, 1e-300)
    options: dict[str, Any] = {}
    values: dict[str, Any] = {"factor": factor, "likeness": likeness}
    if abs(likeness) < LEAST_CORRELATION:
        observation = f"is not the derivative of the position (correlation {likeness:.2f})"
        remedy = "leave the velocity out, it is then derived: df.drop(columns=...)"
    # Positions in degrees beside velocities in radians: the position's unit is wrong.
    elif abs(factor / DEGREE - 1) < FACTOR_TOLERANCE:
        return [degrees_finding(name, columns[0], "moves 57.3 times as fast as its velocity")]
    elif abs(factor * DEGREE - 1) < FACTOR_TOLERANCE:
        observation, remedy = "is in degrees per second", f"units={{'dq_{name}': 'deg/s'}}"
        options = {"units": {f"dq_{name}": "deg/s"}}
    elif factor < 0:
        observation = "has the opposite sign of the position's derivative"
        remedy = "check both directions"
        units = (f"{kind}_{name}" for kind in ("q", "dq"))
        values[WAYS] = tuple({"units": {key: -1.0}} for key in units)
    elif abs(factor - 1) > FACTOR_TOLERANCE:
        observation = f"is {factor:.3g} times the position's derivative"
        remedy = f"units={{'dq_{name}': {1 / factor:.3g}}} or check the time stamps"
        if few:
            unit = {f"dq_{name}": float(f"{1 / factor:.3g}")}
            values[WAYS], remedy = ({"units": unit},), f"units={unit}"
    else:
        return []
    text, where = f"velocity ({columns[1]}) {observation}", ((name,), columns)
    return [Finding("velocity", "error", text, remedy, *where, options=options, values=values)]


WAYS = "ways"  #: Key, among a finding's values, of the options of which one corrects it.
