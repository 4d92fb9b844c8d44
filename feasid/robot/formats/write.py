"""Write a robot to a file; the format follows from the path and from where it came from."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from feasid.core.arguments import checked
from feasid.core.errors import InputError, OutputError, did_you_mean
from feasid.core.files import check_writable, write_together
from feasid.robot.description import GRAVITY, Robot, Source
from feasid.robot.formats import sidecar as sidecars
from feasid.robot.formats.description import NO_EXTRAS, Description, Extras, Format
from feasid.robot.formats.programs import programs_of, unread_parts, unread_terms
from feasid.robot.formats.registry import (
    FORMATS,
    join_with_or,
    read_description,
    reread_description,
)
from feasid.robot.formats.rewrite import generate_file, patch_source
from feasid.robot.formats.terms import LeftOut, count_by_kind
from feasid.robot.formats.xml import parse_xml
from feasid.robot.joint_terms import TERMS

DRY = 0.01
"""Transition [rad/s or m/s] up to which friction is written as dry friction: readers of the file
smooth its sign over a similar speed."""


@dataclass(frozen=True)
class Written:
    """A file that was written."""

    path: str
    format: str
    #: Path of what holds the terms that the file cannot; `load_robot` reads it with the file.
    sidecar: str | None = None
    lost: tuple[str, ...] = ()  #: Terms that clients of the file do not see, as "shoulder.fo".
    #: What a file in another format lacks of the robot's own file besides terms, by number and
    #: name: shapes, fixed links, limits and others; and moving links that programs would omit.
    left_out: str = ""
    #: By program, what it does not read of the file as the robot has it; empty where it reads all.
    unread: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"wrote {self.path}"]
        for program, things in self.unread.items():
            gap = f"not in {self.path} for {program}: {things}"
            lines.append(gap if things else f"{program} reads all of {self.path}")
        if self.lost:
            lines.append(f"no place in {self.format.upper()}: {', '.join(self.lost)}")
        return "\n".join(lines)


@checked
def write(
    robot: Robot,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    complete: Robot | None = None,
    extras: Extras = NO_EXTRAS,
    for_: str | None = None,
) -> Written:
    """Write a robot as URDF, MJCF, SDF or USD: inertials, friction, drive inertia and springs.

    If the robot was read from a file of this format, its text is kept, and only numbers that differ
    are replaced. Otherwise a new file is written; in a new URDF the link frames are on the joint
    axes. Terms that the format cannot hold, and joints that are held, are written to a sidecar.

    Parameters
    ----------
    robot : Robot
        Bodies without parameters, and joints whose drives have no values, keep the values of their
        file.
    path : str or path
        ``.urdf``, ``.xml``, ``.mjcf``, ``.sdf``, ``.usda``, ``.usdc`` or ``.usd``; without a
        suffix, the format of the robot's file.
    overwrite : bool
        Allow the file and its sidecar to exist.
    complete : Robot, optional
        The robot for the sidecar; default `robot`. `feasid.Fit.write` writes to the file the best
        model in terms of the format, and to the sidecar the fitted model.
    extras : Extras
        Constant forces on joints, and extension elements.
    for_ : {"gazebo", "drake", "mujoco", "isaac", "pinocchio", "bullet"}, optional
        The program that shall read the file: what it takes otherwise is in ``Written.unread``.

    Returns
    -------
    Written

    Raises
    ------
    InputError
        Parameters are missing or infeasible, the format has no such extension elements, or a new
        file would need closed loops.
    UnsupportedJointError
        The format has no joint of this kind.
    OutputError
        The file exists, cannot be written, or does not read back as the robot. No file is written.
    """
    target, form, described = Path(path), format_of(robot, path), robot
    programs = programs_of(robot, form, for_)
    robot = _with_frames_of_format(robot.without_torque_sensors(), form)
    complete = complete and _with_frames_of_format(complete.without_torque_sensors(), form)
    beside = sidecars.sidecar_path(target)
    for file in (target, beside, sidecars.loop_table_path(target)):
        check_writable(file, overwrite=overwrite)
    full_robot = robot if complete is None else complete
    coded = [f"{f.name!r} of {d.name}" for d in full_robot.drives for f in d.features]
    if coded:
        raise OutputError(
            f"feature {coded[0]} is code, which cannot be saved in a file: write a model fitted "
            "without it"
        )
    origin = None if _own_source(described, form) else reread_description(described)
    if origin is not None:
        extras = replace(extras, drawings={link.name: link.drawings() for link in origin.links})
    content = file_bytes(robot, form, extras)
    if form.encode is not None:
        content = form.encode(content, target.suffix.lower())
    # Which model is read is said of the robot's own file; a new one has a single model.
    reading = described.source.reading if described.source and origin is None else {}
    text = parse_xml(content, str(target), model=reading.get("model", ""))
    files, new = {}, read_description(text)
    if not (form.holds_loops or robot.is_tree):
        tied = {bond.first for bond in new.bonds if bond.kind == "joint"}
        table = sidecars.loop_table_bytes(robot, tied)
        if table is not None:
            files[sidecars.loop_table_path(target)] = table
    lost_terms = unrepresentable_terms(full_robot, form)
    held = full_robot.source.reading.get("lock") if full_robot.source else None
    if lost_terms or full_robot.passive or held or complete is not None:
        files[beside] = sidecars.sidecar_bytes(full_robot, content, complete is not None)
    files[target] = content  # last: should it not follow the others, its hash tells
    write_together(files, overwrite=overwrite)
    # Those of a file that was replaced would complete the new one.
    for stale in {beside, sidecars.loop_table_path(target)} - {*files}:
        stale.unlink(missing_ok=True)
    parts = [] if origin is None else [*_parts_left_out(origin, new)]
    bare = [b.name for b in robot.bodies if b.inertial is not None and not b.inertial.any()]
    if form.massless and not for_:
        parts += [LeftOut(form.massless, name) for name in bare]
        why = "possible inertia of a link, without which MuJoCo and Gazebo refuse the file"
        refused = [link.name for link in new.links if not (link.by_geometry or link.is_harmless)]
        parts += [LeftOut(why, name) for name in refused]
    sidecar = str(beside) if beside in files else None
    unread = {}
    for program in programs:
        terms = [
            LeftOut(f"{TERMS[symbol].name} ({symbol})", part)
            for part, symbol in unread_terms(robot, program, form)
        ]
        alone = {**extras.forces, **extras.servos} if program.joints_alone else {}
        actuators = [LeftOut("actuator of a joint", joint) for joint in alone]
        things = [*terms, *actuators, *unread_parts(robot, program, form, new), *parts]
        unread[program.title] = count_by_kind(things)
    return Written(str(target), form.name, sidecar, lost_terms, count_by_kind(parts), unread)


def _parts_left_out(own: Description, new: Description) -> Iterator[LeftOut]:
    """Parts of the robot's own file that a new one does not have."""
    shapes, written = (
        [
            (d.tag, getattr(d.shape, "kind", "mesh" if d.shape else "unknown shape"), link.name)
            for link in x.links
            for d in link.drawings()
        ]
        for x in (own, new)
    )
    count = Counter((tag, word) for tag, word, _ in written)
    for tag, word, name in shapes:
        # A capsule may be written as a cylinder with two balls.
        words = [w for w in (word, "cylinder" if word == "capsule" else word) if count[tag, w]]
        if words:
            count[tag, words[0]] -= 1
        else:
            yield LeftOut(f"{word} of a {tag}", name)
    names = {*new.by_name, own.world, "world"}
    yield from (LeftOut("fixed link", name) for name in own.by_name if name not in names)
    joints = {joint.name: joint for joint in new.joints}
    for joint in (j for j in own.joints if j.kind != "floating"):
        if joint.name not in joints:
            yield LeftOut("joint that is held", joint.name)
            continue
        for name, value in vars(joint.limits).items():
            if value is not None and getattr(joints[joint.name].limits, name) is None:
                yield LeftOut(f"{name} limit", joint.name)
    yield from own.left_out


def format_of(robot: Robot, path: str | os.PathLike[str]) -> Format:
    """The format for a path: by its suffix, else that of the robot's file.

    Raises InputError: neither tells the format; or the robot has elastic joints, and the format no
    springs for them.
    """
    suffix = Path(path).suffix.lower()
    form = next((form for form in FORMATS.values() if suffix in form.suffixes), None)
    if form is None and robot.source and not suffix:
        form = FORMATS.get(robot.source.format)
    if form is None:
        titles = join_with_or([form.title for form in FORMATS.values()])
        suffixes = join_with_or([form.suffixes[0] for form in FORMATS.values()])
        raise InputError(f"{path}: is this {titles}? Name it {suffixes}", path=str(path))
    if robot.elastic and not form.holds_shared:
        raise InputError(
            f"{form.title} has no spring between the motor and the link of joint "
            f"{next(iter(robot.elastic))!r}: write MJCF (.xml), or the rigid robot, "
            "robot.without_elastic_joints()",
            path=str(path),
        )
    return form


def file_bytes(robot: Robot, form: Format, extras: Extras = NO_EXTRAS) -> bytes:
    """The file's content: the robot's own text when it came from this format."""
    for name in extras.extensions:
        if name not in form.extensions:
            extensions = ", ".join(form.extensions) or "none"
            raise InputError(
                f"extensions: {form.title} has no elements of {name!r}"
                f"{did_you_mean(name, form.extensions)}; there are {extensions}",
                option="extensions",
            )
    source = _own_source(robot, form)
    if source is not None:
        return patch_source(robot, source, form, extras)
    return generate_file(robot, form, extras)


def _own_source(robot: Robot, form: Format) -> Source | None:
    return robot.source if robot.source and robot.source.format == form.name else None


def _with_frames_of_format(robot: Robot, form: Format) -> Robot:
    """The robot with the frames and names that a new file needs."""
    if form.prepare is None or _own_source(robot, form) is not None:
        return robot
    return form.prepare(robot)


def unrepresentable_terms(robot: Robot, form: Format) -> tuple[str, ...]:
    """Names of the parameters that a format has no place for and that are not zero.

    The last is "gravity" where the format has none and the robot's is not the usual one.
    """
    gaps = np.zeros(robot.size, dtype=bool)
    for i in range(len(robot.bodies)):
        gaps[robot.rotor_columns(i)] = True
    for k, drive in enumerate(robot.drives):
        for symbol, column in robot.drive_columns(k).items():
            smooth = symbol == "fc" and drive.transition > DRY
            ends = symbol == "k" and drive.spring_range is not None
            shared = len(drive.coupling) > 1 and not form.holds_shared
            gaps[column] = symbol not in form.holds or shared or smooth or ends
    lost = np.flatnonzero(gaps & (np.nan_to_num(robot.values, nan=0.0) != 0))
    names = tuple(".".join(robot.parameter_names[int(c)]) for c in lost)
    usual = form.holds_gravity or np.array_equal(robot.gravity, GRAVITY)
    return names if usual else (*names, "gravity")


def representable_part(robot: Robot, form: Format) -> Robot:
    """The robot with only the terms that a format can hold, and without rotors."""
    drives = []
    for drive in robot.drives:
        symbols = [s for s in drive.symbols if s in form.holds]
        if symbols and (len(drive.coupling) == 1 or form.holds_shared):
            values = None if drive.values is None else drive.values[np.isin(drive.symbols, symbols)]
            drives.append(
                replace(drive, symbols=tuple(symbols), values=values, transition=0.0, features=())
            )
    bodies = tuple(replace(b, rotor=None) for b in robot.bodies)
    return replace(robot, bodies=bodies, drives=tuple(drives), load_model=None)
