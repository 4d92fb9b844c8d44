"""Logs of robots whose base floats: joints, an IMU or a pose, and what touches them.

Columns: time ``t`` (or the index), ``run``; ``q_<joint>`` [rad] and ``tau_<joint>`` [N m] of
every joint; of the base an IMU, ``gyro_x gyro_y gyro_z`` [rad/s] and ``acc_x acc_y acc_z`` [m/s^2],
or its position ``base_x base_y base_z`` [m]; its orientation ``base_qx base_qy base_qz base_qw``,
needed beside an IMU only for forces in world axes; ``force_<contact>_x`` and so on [N] of every
contact, which may differ from run to run: zeros where nothing touches. Where its force is not
logged, ``contact_<contact>`` says when it touches, 1 or 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from scipy.spatial.transform import Rotation

from feasid.core.arguments import Matrix3, Vector3, checked
from feasid.core.arrays import Array, interpolate
from feasid.core.errors import InputError, LogError, did_you_mean
from feasid.core.notes import Note
from feasid.logs import filters
from feasid.logs.clock import Stretch, check_order, read_time, run_labels, split_at_gaps
from feasid.logs.columns import join_columns, read_numbers, time_column
from feasid.logs.derivatives import DERIVATIVE_CUTOFF, DERIVATIVE_SHARE, equation_cutoff
from feasid.logs.motion import Motion, Rows, Run, excluded_blocks
from feasid.logs.raw import LARGEST, absurdly_large
from feasid.logs.units import TEMPERATURE
from feasid.options.complete import option_table
from feasid.options.tables import FloatingOptions, LogOptions
from feasid.robot.description import Robot
from feasid.robot.dynamics import floating
from feasid.robot.dynamics.regressor import regressor
from feasid.robot.layout import find_link

if TYPE_CHECKING:
    import pandas as pd

Part = TypeVar("Part")

CARRIED, SEEN = 0.5, 100
"""Specific force of the base over gravity from which something carries the robot, and samples of a
run that are looked at."""


@checked
@dataclass(frozen=True)
class ContactSensor:
    """Body, point and axes of a logged contact force."""

    body: str  #: A body, or a link fixed to a body, such as a foot.
    #: The point in the frame of this body or link [m].
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    axes: Literal["world", "base"] = "world"  #: Axes in which the force is logged.


@checked
@dataclass(frozen=True)
class Imu:
    """Link, axes and position of an IMU on a floating base."""

    link: str  #: A link of the base.
    #: Shape (3, 3): the IMU's axes in the base's frame.
    rotation: Matrix3 = ((1.0, 0, 0), (0, 1, 0), (0, 0, 1))
    position: Vector3 = (0.0, 0.0, 0.0)  #: Shape (3,): in the base's frame [m].
    delay: float = 0.0  #: Time by which its columns are late [s]; negative where they are early.


def contact_from_option(value: Any) -> ContactSensor:
    """A contact, as itself, as a mapping of its fields, or as the link whose origin touches."""
    value = {"body": value} if isinstance(value, str) else value
    return _build_from_option(ContactSensor, value, "a contact")


def imu_from_option(given: Any) -> Imu | None:
    """An IMU, as itself or as a mapping of its fields."""
    return None if given is None else _build_from_option(Imu, given, "an IMU")


def _build_from_option(kind: type[Part], given: Any, what: str) -> Part:
    if isinstance(given, kind):
        return given
    known = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    if not isinstance(given, Mapping) or not given or not {*given} <= {*known}:
        raise InputError(f"{what} is a mapping of {', '.join(known)}, not {given!r}")
    try:
        return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in given.items()})
    except TypeError:
        raise InputError(f"{what} needs {known[0]!r}: {dict(given)!r}") from None


XYZ = ("x", "y", "z")

POSE = tuple(f"base_{a}" for a in (*XYZ, "qx", "qy", "qz", "qw"))
IMU = tuple(f"{kind}_{a}" for kind in ("gyro", "acc") for a in XYZ)


def check_names(
    df: pd.DataFrame,
    robot: Robot,
    base: int,
    imu: Imu | None,
    contacts: Mapping[str, ContactSensor],
) -> None:
    """Refuse contacts and IMUs on links that do not exist, and columns that nothing explains."""
    body = robot.bodies[base]
    links = [body.name, *(m.name for m in body.members)]
    if imu is not None and imu.link not in links:
        raise InputError(
            f"the IMU is on {imu.link!r}, which is no link of the base"
            f"{did_you_mean(imu.link, links)}: {', '.join(links)}"
        )
    names = [str(c) for c in df.columns]
    logged = {c[6:-2]: c for c in names if c.startswith("force_") and c[-2] == "_"}
    flagged = {c[8:]: c for c in names if c.startswith("contact_")}
    unknown = {k: c for k, c in {**logged, **flagged}.items() if k not in contacts}
    if unknown:
        # The link at the end of a limb may be meant, where one has a name like the contact's.
        parents = {body.parent for body in robot.bodies}
        ends = [b for b in robot.bodies if b.name not in parents]
        limbs = [b.members[-1].name if b.members else b.name for b in ends]
        places = []
        for k in sorted(unknown):
            alike = [n for n in limbs if k.lower() in n.lower() or n.lower() in k.lower()]
            places.append(f"{k!r}: {repr(alike[0]) if len(alike) == 1 else '...'}")
        listing = ", ".join(places)
        raise LogError(
            f"the log has the contact{'s' * (len(unknown) > 1)} {', '.join(sorted(unknown))}, but "
            f"not where on the robot; name the link whose origin touches: contacts={{{listing}}}",
            column=min(unknown.values()),
        )
    for name, touch in contacts.items():
        try:
            find_link(robot, touch.body)
        except InputError as error:
            raise InputError(f"contact {name!r}: {error}", link=touch.body) from None


def stack_columns(df: pd.DataFrame, names: Sequence[str], drop: Collection[str] = ()) -> Array:
    """Columns as one array; cells are NaN where `drop` holds the option that lets them be left out.

    Cells without a finite number are those of the option ``nan``, absurd ones of ``corrupt``.
    """
    for name in (name for name in names if name not in df):
        hint = did_you_mean(name, df.columns)
        raise LogError(f"the log has no column {name!r}{hint}", column=name)
    values = np.stack([read_numbers(df, name) for name in names], axis=1)
    finite, absurd = np.isfinite(values), absurdly_large(values)
    for option, bad, what, remedy in (
        ("nan", ~finite, "is missing or not finite", "nan='drop-segments'"),
        ("corrupt", absurd, f"is beyond {LARGEST:g}, which no quantity is,", "corrupt='drop'"),
    ):
        if bad.any() and option not in drop:
            row, k = (int(b) for b in np.argwhere(bad)[0])
            text = f"column {names[k]!r} {what} in row {row}: {remedy} leaves such rows out"
            raise LogError(text, column=names[k], row=row)
    return np.where(finite & ~absurd, values, np.nan)


TOUCHES = 0.5  #: Above this a column ``contact_<contact>`` says that it touches.

USED = {"topic", "rate", "corrupt", "nan", "cutoff", "filtering", "derivative_cutoff"}
"""Options that logs of floating robots share with other logs."""


def robot_floats(robot: Robot) -> bool:
    """Whether a root body has six degrees of freedom."""
    return any(body.floats for body in robot.bodies)


def is_floating_log(df: pd.DataFrame, robot: Robot) -> bool:
    """Whether a log is that of a floating robot, in the columns of this module.

    Raises LogError: the log says how a base moves, and the robot's base is fixed.
    """
    base = next((b for b in robot.bodies if b.floats), None)
    names = {str(c) for c in df.columns}
    pose = [c for c in (*POSE, *IMU) if c in names]
    if base is None and (names >= {*POSE} or names >= {*IMU}):
        raise LogError(
            f"the log contains the motion of a base ({', '.join(pose[:3])}, ...), but the base of "
            f"robot {robot.name!r} is fixed: load_robot(..., floating=True)",
            column=pose[0],
        )
    return base is not None and f"q_{base.joint}_1" not in names


def floating_runs(df: pd.DataFrame, robot: Robot, options: dict[str, Any], torque: bool) -> Motion:
    """The log of a floating robot as runs; ``tau`` are the forces of motors and of contacts."""
    _refuse_unused_options(options)
    imu = imu_from_option(options["imu"])
    contacts = {str(k): contact_from_option(v) for k, v in (options["contacts"] or {}).items()}
    drop = {name for name in ("nan", "corrupt") if options[name] != "error"}
    table = FloatingColumns.read(df, robot, imu, contacts, options["rate"], torque, drop)
    keeps_ends = options["filtering"] == "equations"
    longest = max(table.stretches, key=lambda s: len(s.rows))
    if keeps_ends:
        frequency = equation_cutoff(table.stretches, options["cutoff"])
        usual = min(DERIVATIVE_CUTOFF, DERIVATIVE_SHARE * longest.rate)
        wide = options["derivative_cutoff"] or usual
    else:
        choice = filters.choose_cutoff(table.columns["q"][longest.rows], longest.rate).frequency
        frequency = wide = options["cutoff"] or choice
    runs = []
    for stretch in table.stretches:
        part = table.equations(stretch, wide, forces=not keeps_ends)
        if part is not None:
            settled = filters.settling_samples(wide, stretch.rate)
            rows = stretch.rows[settled:-settled]
            q, dq, ddq, tau, pushed = part
            run = Run(stretch.label, stretch.rate, rows, table.t[rows], q, dq, ddq, tau)
            anchor = round(float(run.t[0]) * stretch.rate)
            # What motors alone apply; at the base, which has none, all that acts on it.
            applied = tau - pushed
            applied[:, robot.rows[table.base]] = tau[:, robot.rows[table.base]]
            free = table.free_projectors(rows, q)
            runs.append(replace(run, anchor=anchor, free=free, applied=applied))
    if not runs:
        raise too_short_stretch(wide)
    if torque and not contacts:
        _refuse_unexplained_weight(runs, robot, table.base)
    how = "all signals through a"
    if keeps_ends:
        how = "both sides of the equations through one Gaussian"
    source = f"an IMU on {imu.link}" if imu is not None else "its pose"
    notes = [Note(f"{how} low-pass at {frequency:g} Hz", "filter", cutoff=frequency)]
    notes.append(Note(f"the base's motion: from {source}", "base"))
    if known := [k for k in contacts if k not in table.unknown]:
        notes.append(Note(f"contacts: {', '.join(known)}", "contacts", contacts=known))
    if spare := [k for k in known if f"contact_{k}" in df]:
        text = f"forces of {', '.join(spare)} are in the log, so that columns contact_ are not used"
        notes.append(Note(text, "contacts", contacts=spare))
    if table.unknown:
        if not keeps_ends:
            raise InputError("unknown contact forces need filtering='equations'")
        names = ", ".join(table.unknown)
        text = f"forces of {names} are unknown: equations free of them are fitted"
        notes.append(Note(text, "unknown-forces", contacts=[*table.unknown]))
    if warmth := [c for c in map(str, df) if c.partition("_")[0] in (TEMPERATURE, "T")]:
        text = f"columns not used: {join_columns(warmth)}; friction is that at all temperatures"
        notes.append(Note(text, "extra"))
    unused = np.setdiff1d(np.arange(len(df)), np.concatenate([run.rows for run in runs]))
    head = robot.coordinates, tuple(runs), frequency, tuple(notes)
    excluded = tuple(excluded_blocks(unused, "gap, cell without a number, or end of a segment"))
    return Motion(*head, excluded, len(df), options["filtering"] or "signals")


def _refuse_unused_options(options: Mapping[str, Any]) -> None:
    """Refuse an option that changes nothing here, where it is not at its default."""
    for name, option in option_table(LogOptions).items():
        if name in USED or name in option_table(FloatingOptions):
            continue
        value = options[name]
        use = np.size(value) > 0 if np.ndim(value) else value not in (None, option.default)
        if use:
            raise InputError(f"{name} has no effect on floating robots: leave it out", option=name)
    if options["cutoff"] is False:
        raise InputError(
            "the log of a floating robot is always filtered: cutoff must be a frequency [Hz]",
            option="cutoff",
        )


def _refuse_unexplained_weight(runs: Sequence[Run], robot: Robot, base: int) -> None:
    """Refuse a log in which something carries the robot that is not in the log.

    The specific force of the base, a - g, is what one kilogram there asks of the base's equations.
    """
    mass, g = robot.inertial_columns[base][-1], float(np.linalg.norm(robot.gravity))
    felt = []
    for run in runs:
        motion = (x[:: max(1, len(run) // SEEN)] for x in (run.q, run.dq, run.ddq))
        force = regressor(robot, *motion, columns=[mass])[:, robot.rows[base], 0]
        felt.append(np.linalg.norm(force, axis=1))
    share = float(np.median(np.concatenate(felt))) / g if g else 0.0
    if share > CARRIED:
        raise LogError(
            f"something carries robot {robot.name!r} that is not in the log: its base feels "
            f"{share * g:.3g} m/s^2 in the median, and 0 in free fall. Without the forces on it no "
            "mass can be fitted: name its contacts, contacts={NAME: ContactSensor(...)}, and log "
            "their forces (columns force_NAME_x, _y, _z), or 0 and 1 for feet that touch "
            "(columns contact_NAME)"
        )


def too_short_stretch(cutoff: float) -> LogError:
    """The error of a log whose segments are all shorter than the low-pass window."""
    return LogError(f"no run is longer than three periods of the cut-off, {cutoff:.3g} Hz")


@dataclass(frozen=True, eq=False)
class FloatingColumns:
    """The columns of a floating robot's log, and its segments without gaps."""

    robot: Robot
    base: int
    imu: Imu | None
    contacts: Mapping[str, ContactSensor]
    unknown: Mapping[str, ContactSensor]
    columns: Mapping[str, Array]
    t: Array
    stretches: Sequence[Stretch]

    @classmethod
    def read(
        cls,
        df: pd.DataFrame,
        robot: Robot,
        imu: Imu | None,
        contacts: Mapping[str, ContactSensor],
        rate: float | None,
        torque: bool = True,
        drop: Collection[str] = (),
    ) -> FloatingColumns:
        """Read and check a table."""
        base = floating.base_index(robot)
        check_names(df, robot, base, imu, contacts)
        forceless = {k for k in contacts if f"force_{k}_x" not in df}
        unknown = {k: v for k, v in contacts.items() if k in forceless and f"contact_{k}" in df}
        contacts = {k: v for k, v in contacts.items() if k not in unknown}
        joints = [b.joint for b in robot.bodies if b.dof == 1]
        expected = {"q": [f"q_{j}" for j in joints], "tau": [f"tau_{j}" for j in joints]}
        if imu is not None:
            expected |= {kind: [f"{kind}_{a}" for a in XYZ] for kind in ("gyro", "acc")}
        else:
            expected["place"] = [f"base_{a}" for a in XYZ]
        expected |= {f"force_{name}": [f"force_{name}_{a}" for a in XYZ] for name in contacts}
        absent = [] if torque else expected.pop("tau")
        columns = {kind: stack_columns(df, names, drop) for kind, names in expected.items()}
        if absent:
            columns["tau"] = np.full((len(df), len(absent)), np.nan)
        if imu is None or any(touch.axes == "world" for touch in contacts.values()):
            quaternion = stack_columns(df, [f"base_q{a}" for a in "xyzw"], drop)
            columns["turn"] = np.full((len(df), 9), np.nan)
            known = np.isfinite(quaternion).all(axis=1)
            columns["turn"][known] = floating.rotation_matrices(quaternion[known]).reshape(-1, 9)
        columns |= {f"contact_{k}": stack_columns(df, [f"contact_{k}"], drop) for k in unknown}
        read = [cells for kind, cells in columns.items() if torque or kind != "tau"]
        usable = np.asarray(np.isfinite(np.hstack(read)).all(axis=1))
        t, _ = read_time(df, time_column(df), rate, None)
        codes, labels = run_labels(df, "run" if "run" in df else None)
        stretches: list[Stretch] = []
        for code, label in enumerate(labels):
            rows = np.flatnonzero(codes == code)
            check_order(t[rows], rows, label)
            rows = rows[usable[rows]]
            stretches += split_at_gaps(t[rows], rows, label)[0]
        # What a late sensor shows in a row belongs to one before.
        late = imu.delay if imu else 0.0
        for kind, part in product(("gyro", "acc") if late else (), stretches):
            now, cells = t[part.rows], columns[kind][part.rows]
            columns[kind][part.rows] = interpolate(now + late, now, cells)
        return cls(robot, base, imu, contacts, unknown, columns, t, stretches)

    def free_projectors(self, rows: Rows, q: Array) -> Array | None:
        """Projectors that remove the unknown forces; None when all are known."""
        if not self.unknown:
            return None
        flags = [self.columns[f"contact_{name}"][rows] > TOUCHES for name in self.unknown]
        points = [floating.Contact(t.body, t.position) for t in self.unknown.values()]
        return floating.contact_free_projector(self.robot, q, points, 1.0 * np.hstack(flags))

    def equations(
        self, stretch: Stretch, cutoff: float, forces: bool = True
    ) -> tuple[Array, Array, Array, Array, Array] | None:
        """q, dq, ddq, forces and the contacts' part, ends cut off; None if it is too short.

        With `forces` False these are not filtered.
        """
        rate, settled = stretch.rate, filters.settling_samples(cutoff, stretch.rate)
        if len(stretch.rows) <= 3 * settled:
            return None
        part = {k: v[stretch.rows] for k, v in self.columns.items()}
        robot, imu = self.robot, self.imu

        def smooth(x: Array) -> Array:
            return filters.low_pass(x, cutoff, rate)

        def steady(x: Array) -> Array:
            return smooth(x) if forces else x

        q = smooth(part["q"])
        joints = q, filters.first_difference(q, rate), filters.second_difference(q, rate)
        home = robot.bodies[self.base].rotation
        if imu is not None:
            gyro = smooth(part["gyro"])
            motion = floating.imu_motion(
                robot,
                joints,
                gyro=gyro,
                accelerometer=smooth(part["acc"]),
                angular_acceleration=filters.first_difference(gyro, rate),
                rotation=imu.rotation,
                position=imu.position,
            )
            pose = np.broadcast_to(home, (len(q), 3, 3))
        else:
            pose = part["turn"].reshape(-1, 3, 3)
            # By differences of the pose: rotations between neighbours, then smooth.
            steps = Rotation.from_matrix(np.swapaxes(pose[:-1], 1, 2) @ pose[1:]).as_rotvec() * rate
            between = np.concatenate([steps[:1], (steps[1:] + steps[:-1]) / 2, steps[-1:]])
            omega, spot = smooth(between), smooth(part["place"])
            slopes = filters.first_difference(spot, rate), filters.second_difference(spot, rate)
            speed, push = (np.einsum("nji,nj->ni", pose, x) for x in slopes)
            motion = floating.floating_motion(
                robot,
                joints,
                rotation=pose,
                position=spot,
                twist=np.hstack([omega, speed]),
                acceleration=np.hstack([filters.first_difference(omega, rate), push]),
            )
        touched = [
            floating.Contact(t.body, t.position, np.einsum("nij,nj->ni", pose, steady(force)))
            for t, force in base_forces(part, self.contacts)
        ]
        pushed = floating.contact_torques(robot, motion.q, touched)
        applied = pushed.copy()
        limbs = np.setdiff1d(np.arange(robot.dof), np.arange(robot.dof)[robot.rows[self.base]])
        applied[:, limbs] += steady(part["tau"])
        cut = slice(settled, -settled)
        return motion.q[cut], motion.dq[cut], motion.ddq[cut], applied[cut], pushed[cut]


def base_forces(
    part: Mapping[str, Array], contacts: Mapping[str, ContactSensor]
) -> Iterator[tuple[ContactSensor, Array]]:
    """Every contact's force in the base's axes."""
    for name, touch in contacts.items():
        force = part[f"force_{name}"]
        if touch.axes == "world" and "turn" in part:
            force = np.einsum("nji,nj->ni", part["turn"].reshape(-1, 3, 3), force)
        yield touch, force
