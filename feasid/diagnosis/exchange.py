"""Diagnosis of torques with the wrong sign and of exchanged joints."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from feasid.arrays import Array
from feasid.diagnosis.findings import Finding
from feasid.diagnosis.screen import Screen, explain_variation

FLOOR = 1e-3
"""Residuals below this are as good as zero."""

EXPLAINED = 0.6
"""A joint whose relative residual is below this is taken for understood."""

SIGN_EXPLAINED = 0.5

SIGN_GAIN = 0.4
"""A flipped sign must leave at most this share of the residual."""

SWAP_GAIN = 0.5
"""Exchanging two joints must leave at most this share of the product of their residuals."""

MOTION_SWAP_GAIN = 0.55
"""Exchanging two joints' motions must leave at most this share of the product of all residuals."""

MOST_SWAPPED = 8
"""Joints, the least explained ones, whose positions are tried the other way round."""

MOST_EXCHANGES = 4
"""Wrong signs and exchanged columns that are looked for in one log."""


@dataclass(frozen=True)
class _Change:
    """A change of the log that would explain it better."""

    share: float
    kind: str
    joints: tuple[int, ...]


def exchanges(
    screen: Screen, names: Sequence[str], weak: Collection[str]
) -> tuple[list[Finding], Screen]:
    """Wrong signs and exchanged joints, the most telling first; the screen with them undone."""
    findings: list[Finding] = []
    for _ in range(MOST_EXCHANGES):
        table = np.maximum(screen.table(), FLOOR)
        changes = _signs(screen, table, names, weak) + _swaps(screen, table)
        if not changes:
            break
        change = min(changes, key=lambda c: c.share)
        findings.append(_told(change, names))
        screen = _undone(screen, change)
    return findings, screen


def best_share(screen: Screen, names: Sequence[str], weak: Collection[str]) -> float:
    """What the most telling single exchange or sign leaves of it."""
    table = np.maximum(screen.table(), FLOOR)
    changes = _signs(screen, table, names, weak) + _swaps(screen, table)
    return min((c.share for c in changes), default=np.inf)


def _signs(
    screen: Screen, table: Array, names: Sequence[str], weak: Collection[str]
) -> list[_Change]:
    changes = []
    for j, as_is in enumerate(np.diag(table)):
        flipped = max(screen.explain(j, -screen.samples.torque[:, j])[0], FLOOR)
        if flipped > SIGN_GAIN * as_is or flipped > SIGN_EXPLAINED or names[j] in weak:
            continue
        # An offset alone may suit the other sign: what varies must say so as well.
        features, tau = screen.features[j], screen.visible(j, screen.samples.torque[:, j])
        if explain_variation(features, -tau) < EXPLAINED * explain_variation(features, tau):
            changes.append(_Change(float(flipped / as_is), "sign", (j,)))
    return changes


def _swaps(screen: Screen, table: Array) -> list[_Change]:
    """Pairs whose exchange leaves a small share of the product of all residuals."""
    if screen.cad is None:  # base parameters fitted freely suit many a wrong column
        return []
    own = np.diag(table)
    changes = []
    for i, j in combinations(range(len(own)), 2):
        share = float(table[i, j] * table[j, i] / (own[i] * own[j]))
        if share < SWAP_GAIN and max(table[i, j], table[j, i]) < EXPLAINED:
            changes.append(_Change(share, "tau", (i, j)))
    worst = sorted(np.argsort(-own)[:MOST_SWAPPED].tolist())
    for i, j in combinations(worst, 2):
        other = np.maximum(screen.with_positions_swapped(i, j).residuals(), FLOOR)
        share = float(np.exp(np.log(other).sum() - np.log(own).sum()))
        if share < MOTION_SWAP_GAIN:
            changes.append(_Change(share, "q", (i, j)))
    return changes


def _undone(screen: Screen, change: _Change) -> Screen:
    samples = screen.samples
    if change.kind == "q":
        return screen.with_positions_swapped(*change.joints)
    tau = samples.tau.copy()
    at = list(change.joints)
    tau[:, :, at] = -tau[:, :, at] if change.kind == "sign" else tau[:, :, at[::-1]]
    return Screen(screen.robot, replace(samples, tau=tau))


def _told(change: _Change, names: Sequence[str]) -> Finding:
    confidence = float(np.clip(1 - change.share, 0.5, 0.99))
    a = names[change.joints[0]]
    if change.kind == "sign":
        return Finding(
            "sign",
            "error",
            "the torque has the wrong sign: friction, inertia or weight would be negative; "
            f"flipped, its residual falls to {change.share:.0%}",
            f"units={{'tau_{a}': -1}}",
            (a,),
            (f"tau_{a}",),
            confidence=confidence,
            options={"units": {f"tau_{a}": -1.0}},
        )
    b, kind = names[change.joints[1]], change.kind
    word = "torques" if kind == "tau" else "positions"
    return Finding(
        "swap",
        "error",
        f"the {word} of {a!r} and {b!r} look exchanged: the other way round their residuals "
        f"shrink to {change.share:.0%}",
        f"columns={{'{kind}_{a}': '{kind}_{b}', '{kind}_{b}': '{kind}_{a}'}}",
        (a, b),
        (f"{kind}_{a}", f"{kind}_{b}"),
        confidence=confidence,
        options={"columns": {f"{kind}_{a}": f"{kind}_{b}", f"{kind}_{b}": f"{kind}_{a}"}},
    )
