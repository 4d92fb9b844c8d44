"""Torques with the wrong sign, of one joint or of all, and columns in the wrong order."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment

from feasid.core.arrays import Array
from feasid.diagnosis.findings import Finding
from feasid.diagnosis.hypothesis import EXPLAINED, Hypothesis, contradicted
from feasid.diagnosis.screen import FLOOR, Screen
from feasid.logs.motion import Rows

SIGN_EXPLAINED = 0.5

SIGN_GAIN = 0.4
"""A flipped sign must leave at most this share of the residual."""

TELLS = 1.4
"""A joint speaks for one sign when the other's residual is larger by this factor."""

SWAP_GAIN = 0.5
"""Exchanging columns must leave at most this share of the product of their residuals."""


def signs(screen: Screen, names: Sequence[str], weak: Collection[str]) -> Iterator[Hypothesis]:
    """One joint's torque, or those of all, the other way round."""
    own, tau = screen.residuals, screen.samples.torque
    flipped = np.array([max(screen.explain(j, -tau[:, j])[0], FLOOR) for j in range(len(names))])
    telling = [
        j for j in range(len(names)) if max(own[j], flipped[j]) > TELLS * min(own[j], flipped[j])
    ]
    share = screen.share(flipped)
    if len(telling) > 1 and share < SIGN_GAIN and not contradicted(screen, flipped):
        yield Hypothesis(share, _all_flipped(names, share), partial(_flipped, screen, slice(None)))
    for j, name in enumerate(names):
        if flipped[j] > SIGN_GAIN * own[j] or flipped[j] > SIGN_EXPLAINED or name in weak:
            continue
        # An offset alone may suit the other sign: what varies must say so as well.
        model, torque = screen.rows[j], screen.visible(j, tau[:, j])
        if model.explain_variation(-torque) < EXPLAINED * model.explain_variation(torque):
            share = float(flipped[j] / own[j])
            yield Hypothesis(share, _one_flipped(name, share), partial(_flipped, screen, [j]))


def _flipped(screen: Screen, joints: slice | list[int]) -> Screen:
    def change(tau: Array) -> Array:
        tau = tau.copy()
        tau[..., joints] *= -1
        return tau

    return screen.with_torques(change)


def _one_flipped(name: str, share: float) -> Finding:
    return Finding(
        "sign",
        "error",
        "the torque has the wrong sign: friction, inertia or weight would be negative; "
        f"flipped, its residual falls to {share:.0%}",
        f"units={{'tau_{name}': -1}}",
        (name,),
        (f"tau_{name}",),
        options={"units": {f"tau_{name}": -1.0}},
        values={"share": share},
    )


def _all_flipped(names: Sequence[str], share: float) -> Finding:
    return Finding(
        "sign",
        "error",
        "all torques have the wrong sign: friction, inertia and weight would be negative; "
        f"flipped, the product of the residuals falls to {share:.0%}",
        "units={'tau': -1}",
        tuple(names),
        tuple(f"tau_{n}" for n in names),
        options={"units": {f"tau_{n}": -1.0 for n in names}},
        values={"share": share},
    )


def exchanged_torques(screen: Screen, names: Sequence[str]) -> Iterator[Hypothesis]:
    """Two torque columns exchanged, or more of them in another order."""
    if screen.cad is None:  # base parameters fitted freely suit many a wrong column
        return
    table, own = screen.table, screen.residuals
    for i, j in combinations(range(len(own)), 2):
        share = float(table[i, j] * table[j, i] / (own[i] * own[j]))
        if share < SWAP_GAIN and max(table[i, j], table[j, i]) < EXPLAINED:
            yield _reordered(screen, {i: j, j: i}, share, names)
    for moved in _cycles(linear_sum_assignment(np.log(table))[1]):
        share = float(np.prod([table[j, k] / own[j] for j, k in moved.items()]))
        if share < SWAP_GAIN ** (len(moved) / 2) and _mostly_explained(table, moved):
            yield _reordered(screen, moved, share, names)


def _cycles(order: Rows) -> Iterator[dict[int, int]]:
    """Parts of a permutation in which three or more change places."""
    left = set(range(len(order)))
    while left:
        cycle = [left.pop()]
        while (following := int(order[cycle[-1]])) != cycle[0]:
            left.remove(following)
            cycle.append(following)
        if len(cycle) > 2:
            yield {j: int(order[j]) for j in sorted(cycle)}


def _mostly_explained(table: Array, moved: dict[int, int]) -> bool:
    return float(np.median([table[j, k] for j, k in moved.items()])) < EXPLAINED


def _reordered(
    screen: Screen, moved: dict[int, int], share: float, names: Sequence[str]
) -> Hypothesis:
    order = np.arange(len(names))
    order[list(moved)] = list(moved.values())
    finding = exchange_finding("tau", moved, share, names)
    return Hypothesis(share, finding, lambda: screen.with_torques(lambda tau: tau[..., order]))


WORDS = {"tau": "torques", "q": "positions"}


def exchange_finding(
    kind: str, moved: dict[int, int], share: float, names: Sequence[str]
) -> Finding:
    """Columns of a kind stand under other joints' names: joint to the joint that has its column."""
    joints = tuple(names[j] for j in moved)
    pairs = {f"{kind}_{names[j]}": f"{kind}_{names[k]}" for j, k in moved.items()}
    listed = " and ".join(map(repr, joints)) if len(joints) == 2 else ", ".join(map(repr, joints))
    said = "exchanged: the other way round" if len(joints) == 2 else "in another order: reordered"
    return Finding(
        "swap",
        "error",
        f"the {WORDS[kind]} of {listed} look {said} their residuals shrink to {share:.0%}",
        f"columns={pairs}",
        joints,
        tuple(pairs),
        options={"columns": pairs},
        values={"kind": kind, "share": share},
    )
