"""Diagnosis by the robot's own dynamics: signs, swaps, gears, lag, gravity, payload, outliers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np
import numpy.typing as npt

from feasid.dynamics.regressor import regressor
from feasid.logs.columns import coordinate_names
from feasid.logs.findings import Finding
from feasid.logs.motion import Array, Motion, Rows, blocks
from feasid.logs.screen import Samples, Screen, explain, explain_variation, lags, thin
from feasid.robot.description import Robot

LAG_WINDOW = 0.12
"""Lags up to this are looked at [s]."""

LAG_LEAST = 0.012
"""Shorter lags are not reported [s], nor those below three samples."""

LAG_GAIN = 0.05
"""Mean logarithmic gain of the residual that a lag must bring."""

EXPLAINED = 0.6
"""A joint whose relative residual is below this is taken for understood."""

FLOOR = 1e-3
"""Residuals below this are as good as zero."""

SIGN_EXPLAINED = 0.5
SIGN_GAIN = 0.4
"""A flipped sign must leave at most this share of the residual."""

SWAP_GAIN = 0.5
"""Exchanging two joints must leave at most this share of the product of their residuals."""

MOTION_SWAP_GAIN = 0.55
"""Exchanging two joints' motions must leave at most this share of the product of all residuals."""

GEAR_RANGE = (0.2, 5.0)
"""Factors between torque and description that are taken for a bad description."""

GEAR_WEIGHT = 1.5
"""The description's torque must lower a joint's residual by this factor to judge its factor."""

TILT = 15.0
"""Angles between logged and described gravity that are reported [degrees]."""

LEAST_SPREAD = 0.01
"""The usual scatter is taken to be at least this share of the torque's deviation."""

REVERSING = 0.06
"""Below this share of its largest velocity a joint may be about to turn round."""

NEGLIGIBLE = 1e-9
"""Columns of a regressor below this share of the largest are rounding."""

OUTLIER = 12.0
"""Residuals beyond so many robust standard deviations are outliers."""


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
    names = coordinate_names(robot)
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
    tilt = _gravity(screen, robot)
    if tilt and _upright_share(screen, tilt[0].direction) < _best_share(screen, names, weak):
        return [t.finding for t in tilt]  # wrong gravity looks like wrong signs and exchanges, too
    findings, screen = _exchanges(screen, names, weak)
    gears = _gears(screen, names)
    findings += gears
    screen = _rescaled(screen, gears, names)
    tilt = _gravity(screen, robot)
    findings += [t.finding for t in tilt]
    if not tilt:
        findings += _lag(screen, names)
        findings += _payload(screen, robot)
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


# -- columns of the wrong joint or sign ------------------------------------------------------------

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


def _exchanges(
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


def _signs(
    screen: Screen, table: Array, names: Sequence[str], weak: Collection[str]
) -> list[_Change]:
    changes = []
    for j, as_is in enumerate(np.diag(table)):
        flipped = max(screen.explain(j, -screen.samples.torque[:, j])[0], FLOOR)
        if flipped > SIGN_GAIN * as_is or flipped > SIGN_EXPLAINED or names[j] in weak:
            continue
        # An offset alone may suit the other sign: what varies must say so as well.
        features, tau = screen.features[j], screen.samples.torque[:, j]
        if explain_variation(features, -tau) < EXPLAINED * explain_variation(features, tau):
            changes.append(_Change(float(flipped / as_is), "sign", (j,)))
    return changes


def _swaps(screen: Screen, table: Array) -> list[_Change]:
    """Pairs whose exchange leaves a small share of the product of all residuals."""
    own = np.diag(table)
    changes = []
    for i, j in combinations(range(len(own)), 2):
        share = float(table[i, j] * table[j, i] / (own[i] * own[j]))
        if share < SWAP_GAIN and max(table[i, j], table[j, i]) < EXPLAINED:
            changes.append(_Change(share, "tau", (i, j)))
    if screen.cad is None:
        return changes
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


# -- factors, time, gravity, payload ---------------------------------------------------------------


def _gears(screen: Screen, names: Sequence[str]) -> list[Finding]:
    """Joints whose torque is a multiple of what the description says."""
    if screen.cad is None:
        return []
    findings = []
    tau = screen.samples.torque
    efforts = [b.limits.effort for b in screen.robot.bodies for _ in range(b.dof)]
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
    if samples.reach == 0:
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


@dataclass(frozen=True)
class _Tilt:
    direction: tuple[float, ...]
    finding: Finding


def _upright_share(screen: Screen, gravity: Sequence[float]) -> float:
    """What another gravity leaves of the product of all residuals."""
    own = np.maximum(screen.residuals(), FLOOR)
    other = Screen(screen.robot.with_gravity(np.array(gravity)), screen.samples)
    left = np.maximum(other.residuals(), FLOOR)
    return float(np.exp(np.log(left).sum() - np.log(own).sum()))


def _best_share(screen: Screen, names: Sequence[str], weak: Collection[str]) -> float:
    """What the most telling single exchange or sign leaves of it."""
    table = np.maximum(screen.table(), FLOOR)
    changes = _signs(screen, table, names, weak) + _swaps(screen, table)
    return min((c.share for c in changes), default=np.inf)


def _gravity(screen: Screen, robot: Robot) -> list[_Tilt]:
    """Direction of gravity in which the description explains the torques best."""
    unit = screen.gravity_torques()
    given = float(np.linalg.norm(robot.gravity))
    if unit is None or given == 0 or screen.cad is None:
        return []
    moving = screen.cad - unit @ robot.gravity
    tau = screen.samples.torque
    rows, right = [], []
    for j in range(robot.dof):
        basis = np.linalg.qr(screen.features[j][:, [0, 1, 2]])[0]

        def clear(x: Array, basis: Array = basis) -> Array:
            return np.asarray(x - basis @ (basis.T @ x))

        target, parts = clear(tau[:, j] - moving[:, j]), clear(unit[:, j])
        weight = 1.0 / max(float(np.linalg.norm(clear(tau[:, j] - screen.cad[:, j]))), 1e-9)
        rows.append(weight * parts)
        right.append(weight * target)
    matrix, vector = np.vstack(rows), np.concatenate(right)
    sizes = np.linalg.norm(matrix, axis=0)
    if sizes.min() == 0 or np.linalg.cond(matrix / sizes) > 1e3:
        return []
    found = np.linalg.lstsq(matrix / sizes, vector, rcond=None)[0] / sizes
    as_given = np.linalg.norm(matrix @ robot.gravity - vector)
    after = np.linalg.norm(matrix @ found - vector)
    size = float(np.linalg.norm(found))
    if size < 0.2 * given:
        return []
    cosine = float(found @ robot.gravity / (size * given))
    angle = float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
    # The same direction with another length only says that the masses are off.
    scaled = np.linalg.norm(matrix @ (robot.gravity * max(cosine, 0) * size / given) - vector)
    if angle < TILT or after > 0.7 * min(as_given, scaled):
        return []
    direction = tuple(round(float(x), 2) + 0.0 for x in found * given / size)
    finding = Finding(
        "gravity",
        "error",
        f"gravity seems to point along {direction} in the base frame, {angle:.0f} degrees from "
        f"the description's {tuple(round(float(x), 2) for x in robot.gravity)}",
        f"load_robot(..., gravity={direction})",
        confidence=float(np.clip(1 - after / as_given, 0.5, 0.97)),
    )
    return [_Tilt(direction, finding)]


PAYLOAD_LEAST = 0.05
"""Masses below this share of the robot's are not reported as payload."""

PAYLOAD_GAIN = 0.87
"""A payload must leave at most this share of the residual of the joints that carry it."""


def _payload(screen: Screen, robot: Robot) -> list[Finding]:
    """A mass at the last body that the description lacks, or has too much of."""
    if screen.cad is None or screen.described is None:
        return []
    columns = screen.point_mass()
    tau, total = screen.samples.torque, 0.0
    rows, right, joints = [], [], []
    for j in range(robot.dof):
        basis = np.linalg.qr(screen.features[j][:, [0, 1, 2]])[0]
        rest = tau[:, j] - screen.cad[:, j]
        target = rest - basis @ (basis.T @ rest)
        parts = columns[:, j] - basis @ (basis.T @ columns[:, j])
        size = float(np.linalg.norm(target))
        if size == 0:
            continue
        rows.append(parts / size)
        right.append(target / size)
        joints.append(j)
    if not rows:
        return []
    matrix, vector = np.vstack(rows), np.concatenate(right)
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0] = 1.0
    found, _, rank, _ = np.linalg.lstsq(matrix / scale, vector, rcond=1e-6)
    mass, moment = float(found[0] / scale[0]), found[1:] / scale[1:]
    after = np.linalg.norm(matrix / scale @ found - vector) / np.sqrt(len(rows))
    described = screen.described
    total = float(described.values[described.inertial_columns[:, 9]].sum())
    if rank < 4 or abs(mass) < PAYLOAD_LEAST * total or after > PAYLOAD_GAIN:
        return []
    centre = ", ".join(f"{x:.2f}" for x in moment / mass)
    body = robot.bodies[-1].name
    return [
        Finding(
            "payload",
            "warning",
            f"the description lacks {mass:.2g} kg at {body!r}, centred at ({centre}) m in its "
            f"frame: with it the unexplained torque falls to {after:.0%}",
            "add the tool or load to the description; a fit finds it in any case",
            (robot.bodies[-1].joint,),
            confidence=float(np.clip(1.2 - after, 0.5, 0.95)),
        )
    ]


# -- outliers -------------------------------------------------------------------------------------


def outliers(motion: Motion, robot: Robot) -> list[Finding]:
    """Stretches in which a joint's torque is far from what its motion explains elsewhere."""
    samples: Samples | None = thin(motion, 0)
    if samples is None:
        return []
    findings = []
    if not robot.drives:
        robot = robot.with_joint_terms(drive_inertia=True)
    slowest = motion.cutoff or 0.1 * samples.rate
    wide = int(np.ceil(samples.rate / samples.step / slowest))
    model = regressor(robot, samples.q, samples.dq, samples.ddq)
    for j, name in enumerate(coordinate_names(robot)):
        tau = samples.torque[:, j]
        columns = np.asarray(model[:, j])
        rest = tau - _fitted(columns, tau, np.ones(len(tau), dtype=bool))
        calm = np.abs(rest - np.median(rest)) < OUTLIER * _spread(rest, tau)
        if not calm.all():  # a collision bends the first fit: the second leaves it out
            rest = tau - _fitted(columns, tau, calm)
        rest = rest - np.median(rest)
        spread = _spread(rest, tau)
        if spread == 0:
            continue
        limit = OUTLIER * spread * np.where(_reversing(samples.dq[:, j], wide), 3.0, 1.0)
        far = np.flatnonzero(np.abs(rest) > limit).astype(np.int64)
        # What happened in less time than this, the filter would have spread.
        least = max(2, int(0.25 * samples.rate / samples.step / slowest))
        parts = [p for p in blocks(_joined(far), "") if p.count >= least]
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
                confidence=float(np.clip(worst / 30, 0.5, 0.95)),
                options={"exclude": when},
            )
        )
    return findings


def _reversing(velocity: Array, wide: int) -> npt.NDArray[np.bool_]:
    """Samples around a change of direction, where filtered friction is hard to model."""
    turns = np.concatenate([[False], np.diff(np.sign(velocity)) != 0])
    near = np.convolve(turns, np.ones(2 * wide + 1), "same") > 0.5
    return np.asarray(near | (np.abs(velocity) < REVERSING * np.abs(velocity).max()))


def _spread(rest: Array, torque: Array) -> float:
    """Usual scatter of a residual: robust, and not absurdly small."""
    typical = 1.4826 * float(np.median(np.abs(rest - np.median(rest))))
    return max(typical, LEAST_SPREAD * float(torque.std()))


def _fitted(columns: Array, torque: Array, of: npt.NDArray[np.bool_]) -> Array:
    """What a row's own parameters explain of a torque, fitted to some of its samples."""
    from scipy.linalg import lstsq

    size = np.linalg.norm(columns, axis=0)
    seen = size > NEGLIGIBLE * max(float(size.max()), 1e-300)
    columns = columns[:, seen] / size[seen]
    found = lstsq(columns[of], torque[of], cond=1e-6, lapack_driver="gelsy")[0]
    return np.asarray(columns @ found)


def _joined(indices: Rows) -> Rows:
    """Indices with gaps of up to two filled."""
    if not len(indices):
        return indices
    out = {int(k) for k in indices}
    for a, b in pairwise(indices):
        if b - a <= 3:
            out.update(range(int(a), int(b)))
    return np.array(sorted(out), dtype=np.int64)
