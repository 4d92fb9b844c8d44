"""Mistakes in the logs of floating robots: of the IMU's axes, and of the forces at the feet.

Two equations hold whatever the robot weighs. The mean specific force of a base that stays near
where it is, turned into world axes, is opposite to gravity; of one that flies it is not. And what
the joints of a limb push beyond the limb's own motion is the contact's force,
``J' f = Y delta - tau`` in the joints' rows: the measured force of every contact is tried in
the place of every other, with lags and with the sign turned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.spatial.transform import Rotation

from feasid.core.arrays import Array
from feasid.logs.checks.findings import Finding
from feasid.logs.checks.imu_pose import MISSED, SMALL, find_imu_pose, imu_option
from feasid.logs.filters import choose_cutoff, low_pass, settling_samples
from feasid.logs.floating import (
    POSE,
    TOUCHES,
    ContactSensor,
    FloatingColumns,
    Imu,
    base_forces,
    stack_columns,
    too_short_stretch,
)
from feasid.logs.motion import Rows
from feasid.robot.description import Robot
from feasid.robot.dynamics import floating
from feasid.robot.dynamics.regressor import inverse_dynamics

if TYPE_CHECKING:
    import pandas as pd

OFF = 0.2
"""Mean specific force that is further from the opposite of gravity than this share of it, is
wrong: a walk of a few seconds leaves .01 to .05, a wrong axis at least 1.4."""

RIGHT = 0.5  #: Least share of the error that a rotation of the IMU's axes must remove.
EXPLAINED = 0.2  #: Share of a limb's torques that another force must explain beyond the logged one.
LAGS = 0.1  #: Longest lag of a force that is tried [s], in steps of a twentieth of it.
LEAST_LAG = 0.01  #: Shortest lag of a force that is a finding [s].

SCALES = (0.5, 2.0)
"""Range of the factor between a limb's torques and its contact's force; beyond it the unit is
another: kilograms of force, newtons per degree, counts."""

IDLE = 0.02  #: A force that never exceeds this share of the largest other one's is dead.
DISAGREE = 0.2  #: Share of rows in which flags and forces of a contact may disagree.

SPIN_TIME = 0.02  #: Orientations this long [s] before and after give the angular velocity.

STILL = 0.05
"""Root mean square of rates [rad/s] below which a base stands still: gyroscopes show such noise."""

WEIGHT = 0.05  #: Share of the described weight that a contact's force must exceed to bear the robot
ALOFT = 0.5  #: Share of a log in flight from which its mean specific force says nothing.
ROWS = 4000  #: Largest number of rows of a log that are used, evenly spaced.


@dataclass(frozen=True, eq=False)
class LimbEquations:
    """The longest segment of a log, thinned, with the force of every contact by itself."""

    motion: floating.FloatingMotion
    torques: Array  #: Shape (N, dof): of the motors, zero for the base.
    contacts: Mapping[str, ContactSensor]
    forces: Mapping[str, Array]  #: Shape (N, 3): in the axes of `motion`'s world, thinned and not.
    whole_forces: Mapping[str, Array]  #: Shape (M, 3): see `forces`.
    flags: Mapping[str, Array]  #: Shape (N,): columns ``contact_`` of contacts with forces.
    joints: Rows  #: Coordinates without the base's; places of the N rows among the M.
    rows: Rows  #: See `joints`.
    rate: float  #: Of the M rows [Hz].
    aloft: float  #: Share of the stretch in which no contact bears the robot.
    #: The base's orientation (M, 3, 3) and its rate of change in the base's axes [rad/s]; what the
    #: IMU shows in its own. Rates are means over twice `SPIN_TIME`.
    imu: tuple[Array, Array, Array, Array] | None = None

    @classmethod
    def from_log(
        cls, df: pd.DataFrame, robot: Robot, imu: Imu | None, contacts: Mapping[str, ContactSensor]
    ) -> LimbEquations:
        """Signals of a log's longest segment, at `ROWS` rows."""
        table = FloatingColumns.read(df, robot, imu, contacts, None)
        stretch = max(table.stretches, key=lambda s: len(s.rows))
        rate, base = stretch.rate, floating.base_index(robot)
        cutoff = choose_cutoff(table.columns["q"][stretch.rows], rate).frequency
        equations = table.equations(stretch, cutoff)
        if equations is None:
            raise too_short_stretch(cutoff)
        part = {k: v[stretch.rows] for k, v in table.columns.items()}
        if "turn" not in part and {*POSE[3:]} <= {*map(str, df.columns)}:
            turn = floating.rotation_matrices(stack_columns(df.iloc[stretch.rows], POSE[3:]))
            part["turn"] = turn.reshape(-1, 9)
        cut = slice(settling_samples(cutoff, rate), -settling_samples(cutoff, rate))
        q, dq, ddq, applied, pushed = equations
        rows = np.arange(0, len(q), max(1, -(-len(q) // ROWS)))
        pose = np.broadcast_to(robot.bodies[base].rotation, (len(stretch.rows), 3, 3))
        if imu is None:
            pose = part["turn"].reshape(-1, 3, 3)
        measured = zip(table.contacts, base_forces(part, table.contacts), strict=True)
        filtered_forces = {
            name: np.einsum("nij,nj->ni", pose, low_pass(force, cutoff, rate))[cut]
            for name, (_, force) in measured
        }
        names = [n for n in table.contacts if f"contact_{n}" in df]
        flags = {n: stack_columns(df, [f"contact_{n}"])[stretch.rows][cut][rows, 0] for n in names}
        out = cls(
            floating.FloatingMotion(q[rows], dq[rows], ddq[rows]),
            (applied - pushed)[rows],
            table.contacts,
            {name: force[rows] for name, force in filtered_forces.items()},
            filtered_forces,
            flags,
            np.delete(np.arange(robot.dof), robot.rows[base]),
            rows,
            rate,
            _share_without_contact(
                robot, filtered_forces, [part[f"contact_{n}"][cut] for n in table.unknown]
            ),
        )
        if imu is None or "turn" not in part:
            return out
        turn, k = part["turn"].reshape(-1, 3, 3), max(1, round(SPIN_TIME * rate))
        turned = Rotation.from_matrix(np.swapaxes(turn[: -2 * k], 1, 2) @ turn[2 * k :]).as_rotvec()
        spin = low_pass(np.pad(turned * rate / (2 * k), ((k, k), (0, 0)), "edge"), cutoff, rate)
        gyro, acc = (low_pass(part[kind], cutoff, rate) for kind in ("gyro", "acc"))
        gyro = uniform_filter1d(gyro, 2 * k + 1, axis=0)
        return replace(out, imu=(turn[cut], spin[cut], gyro[cut], acc[cut]))


def _share_without_contact(robot: Robot, forces: Mapping[str, Array], flags: list[Array]) -> float:
    """Share of rows in which no force of a contact, (M, 3), is notable, and no flag, (M, 1), up."""
    # Of the ten parameters of each body, the mass is the last.
    mass = float(np.nan_to_num(robot.values[robot.inertial_columns.ravel()][9::10]).sum())
    least = WEIGHT * mass * float(np.linalg.norm(robot.gravity))
    touching = [np.linalg.norm(force, axis=1) > least for force in forces.values()]
    touching += [flag[:, 0] > TOUCHES for flag in flags]
    return 1.0 - float(np.mean(np.any(touching, axis=0))) if touching else 1.0


def find_floating_mistakes(
    df: pd.DataFrame, robot: Robot, imu: Imu | None, contacts: Mapping[str, ContactSensor]
) -> list[Finding]:
    """Mistakes that the IMU, the pose and the contacts' forces of a log show, the gravest first."""
    limbs = LimbEquations.from_log(df, robot, imu, contacts)
    mistakes = _imu_mistakes(limbs, robot, imu) if imu is not None and limbs.imu is not None else []
    if mistakes or not limbs.forces:
        return mistakes
    mistakes = [*_constant_force_findings(limbs), *_force_mistakes(limbs, robot)]
    return [*mistakes, *_flag_mistakes(limbs)]


def _imu_mistakes(limbs: LimbEquations, robot: Robot, imu: Imu) -> list[Finding]:
    """The accelerometer against gravity, the gyroscope against the logged orientation."""
    assert limbs.imu is not None
    up, size = -np.asarray(robot.gravity), float(np.linalg.norm(robot.gravity))
    mounting = np.asarray(imu.rotation, dtype=np.float64)
    turns, spin, gyro, acc = limbs.imu
    rates = max(float(np.linalg.norm(spin)), STILL * np.sqrt(len(spin)))
    falls = size > 0 and limbs.aloft < ALOFT

    def relative_misfit(turn: Array, sign: float) -> tuple[float, float]:
        mean = np.einsum("nij,nj->i", turns, sign * acc @ turn.T) / len(acc)
        return (
            float(np.linalg.norm(mean - up)) / size if falls else 0.0,
            float(np.linalg.norm(gyro @ turn.T - spin)) / rates,
        )

    fall, roll = relative_misfit(mounting, 1.0)
    pose = find_imu_pose(gyro, spin, mounting, limbs.rate)
    small = np.linalg.norm(pose.turn) < SMALL and pose.missed < MISSED
    if small and relative_misfit(pose.rotation, 1.0)[0] < OFF:
        return pose.findings(imu)
    if fall < OFF and roll < 1.0:
        return []
    tried = {
        (k, sign): relative_misfit(mounting @ turn, sign)
        for k, turn in enumerate(TURNS)
        for sign in (1, -1)
    }
    (k, sign), (best, spun) = min(tried.items(), key=lambda pair: sum(pair[1]))
    head = (
        f"the mean specific force is {fall:.2f} g away from the opposite of gravity, and the "
        f"gyroscope {roll:.2f} of the orientation's change"
    )
    if best > OFF or best + spun > (1.0 - RIGHT) * (fall + roll):
        factor = float(np.linalg.norm(acc.mean(axis=0))) / (size or 1.0)
        text = f"{head}; no right angle or sign explains it"
        remedy = f"check units (the mean is {factor:.3g} times gravity's size) and orientation"
        return [_finding("imu", text, remedy, factor=factor)]
    turned = "turn the sign of acc_x, acc_y and acc_z"
    if k == 0:
        text = f"{head}; with the accelerometer's sign turned it is {best:.2f} g"
        return [_finding("acceleration-sign", text, turned)]
    also = " and the accelerometer's sign" if sign < 0 else ""
    turn = np.round(mounting @ TURNS[k], 6) + 0.0
    text = f"{head}; with the IMU's axes{also} turned they are {best:.2f} g and {spun:.2f}"
    remedy = imu_option(replace(imu, rotation=turn.tolist()))
    remedy += f", and {turned}" if sign < 0 else ""
    return [_finding("imu-axes", text, remedy, rotation=turn.tolist())]


TURNS = [
    turn
    for order, signs in product(permutations(range(3)), product((1.0, -1.0), repeat=3))
    if np.linalg.det(turn := np.eye(3)[[*order]] * np.array(signs)[:, None]) > 0
]
"""The 24 rotations by right angles, none at all first."""


def _finding(
    code: str, text: str, remedy: str, columns: Sequence[str] = (), **values: Any
) -> Finding:
    return Finding(code, "error", text, remedy, columns=tuple(columns), values=values)


def _contact_columns(name: str) -> list[str]:
    return [f"force_{name}_{a}" for a in "xyz"]


def _constant_force_findings(limbs: LimbEquations) -> list[Finding]:
    """Contacts whose force hardly changes while others' do."""
    peaks = {k: float(np.abs(f - np.median(f, axis=0)).max()) for k, f in limbs.forces.items()}
    largest = max(peaks.values())
    return [
        _finding(
            "dead-force",
            f"the force of contact {name!r} changes by {peak:.2g} N at most, others' by "
            f"{largest:.3g} N: a dead sensor?",
            f"give contact_{name} (1 or 0) in place of its force",
            _contact_columns(name),
        )
        for name, peak in peaks.items()
        if len(peaks) > 1 and peak < IDLE * largest
    ]


def _force_mistakes(limbs: LimbEquations, robot: Robot) -> list[Finding]:
    """Test the forces of contacts for exchanges, delays and wrong factors."""
    known = np.nan_to_num(robot.values)
    missing = inverse_dynamics(robot, *limbs.motion, parameters=known) - limbs.torques
    names = [*limbs.forces]
    jacobians = dict[str, tuple[Array, Rows]]()  # of a point in the joints of its limb, and these
    for name, touch in ((name, limbs.contacts[name]) for name in names):
        J = floating.frame_jacobian(robot, limbs.motion.q, touch.body, touch.position)[:, 3:]
        joints = np.array([k for k in limbs.joints if np.abs(J[:, :, k]).max() > 0], dtype=np.intp)
        jacobians[name] = J[:, :, joints], joints
    dead = {f.columns[0] for f in _constant_force_findings(limbs)}
    names = [n for n in names if jacobians[n][1].size and _contact_columns(n)[0] not in dead]

    def fit(place: str, force: Array, rows: Array | slice = slice(None)) -> tuple[float, float]:
        """The factor of J' f in the limb's rows, and what it explains of them."""
        jacobian, jacobian_of_contact = jacobians[place]
        x = np.einsum("nij,ni->nj", jacobian[rows], force)
        y = missing[rows][:, jacobian_of_contact]
        factor = float((x * y).sum() / max(float((x * x).sum()), 1e-300))
        return factor, 1.0 - float(((y - factor * x) ** 2).sum() / max(float((y**2).sum()), 1e-300))

    table = {(a, b): fit(a, limbs.forces[b]) for a in names for b in names}
    mistakes = []
    for a in names:
        b = max(names, key=lambda n: table[a, n][1])
        if a < b and max(names, key=lambda n: table[b, n][1]) == a:
            gains = [table[a, b][1] - table[a, a][1], table[b, a][1] - table[b, b][1]]
            if min(gains) > EXPLAINED:
                text = (
                    f"the forces of contacts {a!r} and {b!r} look exchanged: each explains the "
                    "torques of the other's limb"
                )
                columns = _contact_columns(a) + _contact_columns(b)
                mistakes.append(_finding("swapped-forces", text, "exchange their columns", columns))
    if mistakes:
        return mistakes
    factors = {a: table[a, a][0] for a in names if table[a, a][1] > EXPLAINED}
    wrong = [a for a, f in factors.items() if not SCALES[0] < f < SCALES[1]]
    if wrong:
        usual = float(np.median([factors[a] for a in wrong]))
        code = "force-sign" if usual < 0 else "force-unit"
        what = "its sign is reversed" if usual < 0 else "a unit?"
        text = (
            f"the joints' torques correspond to {usual:.3g} times the force of {', '.join(wrong)}: "
            f"{what}"
        )
        columns = [c for a in wrong for c in _contact_columns(a)]
        remedy = f"multiply these columns by {usual:.3g}"
        return [_finding(code, text, remedy, columns, factor=usual)]
    for a in names:
        lag = _force_delay(limbs, a, fit)
        if abs(lag) >= LEAST_LAG:
            way = "late" if lag > 0 else "early"
            text = f"the force of contact {a!r} is {1e3 * abs(lag):.0f} ms {way}"
            columns = _contact_columns(a)
            mistakes.append(_finding("late-force", text, "shift its columns", columns, lag=lag))
    return mistakes


def _force_delay(limbs: LimbEquations, name: str, fit: Any) -> float:
    """Delay of a contact's force after the torques that it explains [s]."""
    best, delay = fit(name, limbs.forces[name])[1], 0.0
    for lag in LAGS * np.arange(-20, 21) / 20:
        places = limbs.rows + round(lag * limbs.rate)
        rows = np.flatnonzero((places >= 0) & (places < len(limbs.whole_forces[name])))
        explained = fit(name, limbs.whole_forces[name][places[rows]], rows)[1]
        # Neighbouring lags explain nearly as much: one must explain a tenth of what is left.
        if explained > best + 0.1 * (1.0 - best) and abs(lag) >= LEAST_LAG:
            best, delay = explained, float(lag)
    return delay


def _flag_mistakes(limbs: LimbEquations) -> list[Finding]:
    """Flags of contacts that disagree with their forces."""
    mistakes = []
    for name, flag in limbs.flags.items():
        size = np.linalg.norm(limbs.forces[name], axis=1)
        share = float(np.mean((flag > TOUCHES) != (size > 0.1 * size.max())))
        if share > DISAGREE:
            text = f"contact_{name} and the force of {name!r} disagree in {share:.0%} of the rows"
            mistakes.append(_finding("flags", text, "", [f"contact_{name}"], share=share))
    return mistakes
