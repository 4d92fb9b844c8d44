"""Torque columns with a wrong sign, in a wrong order, or with a wrong factor."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment

from feasid.core.arrays import Array
from feasid.diagnosis.findings import Finding
from feasid.diagnosis.joint_models import (
    CAD,
    EXPLAINED,
    FLOOR,
    OFFSETS,
    Hypothesis,
    Screen,
    contradicts,
)
from feasid.logs.motion import Rows

SIGN_EXPLAINED = 0.5
"""Relative residual that a flipped sign must leave at most: half of the torque is explained."""

SIGN_SHARE = 0.4
"""A flipped sign must leave at most this share of the residual."""

SIGN_RATIO = 1.4
"""A joint speaks for one sign when the other's residual is larger by this factor."""

SWAP_SHARE = 0.5
"""Exchanging columns must leave at most this share of the product of their residuals."""


def find_signs(screen: Screen, names: Sequence[str], weak: Collection[str]) -> Iterator[Hypothesis]:
    """One joint's torque, or those of all, the other way round."""
    own, tau = screen.residuals, screen.samples.torque
    flipped = np.array([max(screen.explain(j, -tau[:, j])[0], FLOOR) for j in range(len(names))])
    telling = [
        j
        for j in range(len(names))
        if max(own[j], flipped[j]) > SIGN_RATIO * min(own[j], flipped[j])
    ]
    share = screen.share(flipped)
    if len(telling) > 1 and share < SIGN_SHARE and not contradicts(screen, flipped):
        yield Hypothesis(
            share, _all_flipped(names, share), partial(_flip_torque_signs, screen, slice(None))
        )
    for j, name in enumerate(names):
        if flipped[j] > SIGN_SHARE * own[j] or flipped[j] > SIGN_EXPLAINED or name in weak:
            continue
        # An offset alone may suit the other sign: what varies must say so as well.
        model, torque = screen.rows[j], screen.visible(j, tau[:, j])
        if model.explain_variation(-torque) < EXPLAINED * model.explain_variation(torque):
            share = float(flipped[j] / own[j])
            yield Hypothesis(
                share, _one_flipped(name, share), partial(_flip_torque_signs, screen, [j])
            )


def _flip_torque_signs(screen: Screen, joints: slice | list[int]) -> Screen:
    """The screen with the torques of these joints negated."""

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


def find_exchanged_torques(screen: Screen, names: Sequence[str]) -> Iterator[Hypothesis]:
    """Two torque columns exchanged, or more of them in another order."""
    if screen.cad is None:  # base parameters fitted freely suit many a wrong column
        return
    table, own = screen.table, screen.residuals
    for i, j in combinations(range(len(own)), 2):
        share = float(table[i, j] * table[j, i] / (own[i] * own[j]))
        if share < SWAP_SHARE and max(table[i, j], table[j, i]) < EXPLAINED:
            yield _exchange_hypothesis(screen, {i: j, j: i}, share, names)
    for moved in _cycles(linear_sum_assignment(np.log(table))[1]):
        share = float(np.prod([table[j, k] / own[j] for j, k in moved.items()]))
        if share < SWAP_SHARE ** (len(moved) / 2) and _mostly_explained(table, moved):
            yield _exchange_hypothesis(screen, moved, share, names)


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


def _exchange_hypothesis(
    screen: Screen, moved: dict[int, int], share: float, names: Sequence[str]
) -> Hypothesis:
    order = np.arange(len(names))
    order[list(moved)] = list(moved.values())
    finding = exchange_finding("tau", moved, share, names)
    return Hypothesis(share, finding, lambda: screen.with_torques(lambda tau: tau[..., order]))


COLUMN_WORDS = {"tau": "torques", "q": "positions"}


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
        f"the {COLUMN_WORDS[kind]} of {listed} look {said} their residuals shrink to {share:.0%}",
        f"columns={pairs}",
        joints,
        tuple(pairs),
        options={"columns": pairs},
        values={"kind": kind, "share": share},
    )


GEAR_RANGE = (0.2, 5.0)
"""Factors between torque and description that are taken for a bad description."""

GEAR_WEIGHT = 1.5
"""The description's torque must lower a joint's residual by this factor to judge its factor."""

LEAST_COMMON_FACTOR = 1.2
"""A factor common to all joints is reported from here on; descriptions are off by less."""

COMMON_SHARE = 0.75
"""... when it leaves at most this share of the product of all residuals."""

ALIKE, ALIKE_FAR = 1.25, 3.0
"""Factors of single joints this close to the common one agree; the latter beyond GEAR_RANGE."""


def find_common_factor(screen: Screen, names: Sequence[str]) -> Iterator[Hypothesis]:
    """All torques are the same multiple of the description's."""
    single = [f for f in (gear_factor(screen, j) for j in range(len(names))) if f]
    if len(single) < 2:
        return
    factor = float(np.median(single))
    odd = not GEAR_RANGE[0] < factor < GEAR_RANGE[1]
    near = ALIKE_FAR if odd else ALIKE
    if 1 / LEAST_COMMON_FACTOR < factor < LEAST_COMMON_FACTOR or not all(
        factor / near < f < factor * near for f in single
    ):
        return
    unit = round_factor(1.0 / factor) if odd else float(f"{1.0 / factor:.2g}")
    mended = screen.with_torques(lambda tau: tau * unit)
    share = screen.share(mended)
    if share > COMMON_SHARE:
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


def find_gears(screen: Screen, names: Sequence[str]) -> list[Finding]:
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
        unit = round_factor(1.0 / ratio)
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
    held, coefficients = screen.rows[j].without_columns(OFFSETS).explain(tau, pull=False)
    without, _ = screen.rows[j].without_columns((*OFFSETS, CAD)).explain(tau, pull=False)
    if without < GEAR_WEIGHT * held or held > EXPLAINED:
        return None
    return float(coefficients[CAD]) or None


def rescale_torques(screen: Screen, findings: Sequence[Finding], names: Sequence[str]) -> Screen:
    """The screen with torques multiplied by the factors that the findings propose."""
    factor: Array = np.ones(len(names))
    for finding in findings:
        for key, value in finding.options.get("units", {}).items():
            factor[list(names).index(key.removeprefix("tau_"))] *= value
    return screen if (factor == 1.0).all() else screen.with_torques(lambda tau: tau * factor)


def round_factor(factor: float) -> float:
    """A power of ten when it is near one, else two digits."""
    power = float(10.0 ** np.round(np.log10(factor)))
    return power if 0.7 < factor / power < 1.4 else float(f"{factor:.2g}")
