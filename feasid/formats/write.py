"""One door for writing robots: the format follows from the path and from where they came from."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from feasid.core.files import check_writable, write_aside
from feasid.errors import InputError, OutputError
from feasid.formats.loop_table import loop_table, loop_table_path
from feasid.formats.mjcf import write as mjcf
from feasid.formats.mjcf.generate import generated_mjcf
from feasid.formats.sidecar import sidecar_bytes, sidecar_path
from feasid.formats.urdf import write as urdf
from feasid.formats.urdf.generate import generated_urdf
from feasid.formats.urdf.read import urdf_of
from feasid.formats.xml import parse_xml
from feasid.robot.axis_frames import on_axes
from feasid.robot.description import Robot

FORMATS = {".urdf": "urdf", ".xml": "mjcf", ".mjcf": "mjcf"}
"""Format by the path's suffix."""

DRY = 0.01
"""Transition [rad/s or m/s] up to which friction is dry to a file's readers: their own stiction
changes its sign over as much."""

HELD = {"urdf": tuple(urdf.HELD), "mjcf": tuple(mjcf.HELD)}
"""Drive symbols that a format can hold, on drives of one joint."""


@dataclass(frozen=True)
class Written:
    """A file that was written.

    Attributes
    ----------
    path, format : str
    sidecar : str or None
        Path of what holds the terms that the file cannot; `load_robot` reads it with the file.
    lost : tuple of str
        Terms that clients of the file do not see, as "shoulder.fo".
    """

    path: str
    format: str
    sidecar: str | None = None
    lost: tuple[str, ...] = ()


def write(
    robot: Robot,
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    complete: Robot | None = None,
) -> Written:
    """Write a robot as URDF or MJCF: inertial parameters, friction, drive inertia and springs.

    A robot that was read from a file of that format gets its own text back, with the numbers
    changed that change. Others get a new file; in a new URDF link frames are on the joints' axes.
    What the format cannot hold goes into a sidecar.

    Parameters
    ----------
    robot : Robot
        Bodies without parameters, and joints whose drives have no values, keep what their file
        says.
    path : str or path
        ``.urdf``, ``.xml`` or ``.mjcf``; another suffix stands for the format of the robot's file.
    overwrite : bool
        Allow the file and its sidecar to exist.
    complete : Robot, optional
        What the sidecar holds; default `robot`. `feasid.Fit.write` gives the file the best model
        in its own terms, and the sidecar the fitted one.

    Returns
    -------
    Written

    Raises
    ------
    InputError
        Parameters that are missing or cannot exist; for a new file also closed loops.
    UnsupportedJointError
        A joint that the format does not have.
    OutputError
        The file exists or cannot be written, or does not read back as the robot; nothing was
        written.
    """
    target, kind = Path(path), format_of(robot, path)
    robot, complete = _framed(robot, kind), complete and _framed(complete, kind)
    beside = sidecar_path(target)
    for file in (target, beside, loop_table_path(target)):
        check_writable(file, overwrite=overwrite)
    whole = robot if complete is None else complete
    coded = [f"{f.name!r} of {d.name}" for d in whole.drives for f in d.features]
    if coded:
        raise OutputError(
            f"feature {coded[0]} is code, which no file holds: write a model fitted without it"
        )
    content = file_bytes(robot, kind)
    _write_loops(robot, kind, target, content, overwrite=overwrite)
    lost = unheld(whole, kind)
    if not (lost or complete is not None):
        write_aside(target, content, overwrite=overwrite)
        beside.unlink(missing_ok=True)
        return Written(str(target), kind)
    # First the sidecar: should the file then not follow, the hash tells.
    write_aside(beside, sidecar_bytes(whole, content, complete is not None), overwrite=overwrite)
    write_aside(target, content, overwrite=overwrite)
    return Written(str(target), kind, str(beside), lost)


def _write_loops(robot: Robot, kind: str, target: Path, content: bytes, *, overwrite: bool) -> None:
    """The table of a URDF's loops, and of couplings that are no ``<mimic>``."""
    table = None
    if kind == "urdf" and not robot.is_tree:
        joints = urdf_of(parse_xml(content, str(target))).joints.values()
        table = loop_table(robot, {joint.name for joint in joints if joint.mimic is not None})
    if table is not None:
        write_aside(loop_table_path(target), table, overwrite=overwrite)
    else:
        loop_table_path(target).unlink(missing_ok=True)


def format_of(robot: Robot, path: str | os.PathLike[str]) -> str:
    """The format for a path: by its suffix, else that of the robot's file."""
    kind = FORMATS.get(Path(path).suffix.lower())
    own = robot.source.format if robot.source is not None else None
    kind = kind or (own if own in HELD else None)
    if kind is None:
        raise InputError(f"{path}: is this URDF or MJCF? Name it .urdf or .xml", path=str(path))
    return kind


def file_bytes(robot: Robot, kind: str) -> bytes:
    """The file's content: the robot's own text when it came from this format."""
    own = robot.source.format if robot.source is not None else None
    if kind == "urdf":
        return urdf.urdf_bytes(robot) if own == "urdf" else generated_urdf(robot)
    return mjcf.mjcf_bytes(robot) if own == "mjcf" else generated_mjcf(robot)


def _framed(robot: Robot, kind: str) -> Robot:
    """With its frames as the file has them: a new URDF wants them on the joints' axes."""
    own = robot.source.format if robot.source is not None else None
    return on_axes(robot) if kind == "urdf" and own != "urdf" else robot


def unheld_columns(robot: Robot, kind: str) -> npt.NDArray[np.bool_]:
    """Which standard parameters a format has no place for; bool, shape (n,)."""
    out = np.zeros(robot.size, dtype=bool)
    for i in range(len(robot.bodies)):
        out[robot.rotor_columns(i)] = True
    for k, drive in enumerate(robot.drives):
        for symbol, column in robot.drive_columns(k).items():
            smooth = symbol == "fc" and drive.transition > DRY
            out[column] = symbol not in HELD[kind] or len(drive.coupling) > 1 or smooth
    return out


def unheld(robot: Robot, kind: str) -> tuple[str, ...]:
    """Names of the parameters that a format has no place for and that are not zero."""
    values = np.nan_to_num(robot.values, nan=0.0)
    lost = np.flatnonzero(unheld_columns(robot, kind) & (values != 0))
    return tuple(".".join(robot.parameter_names[int(c)]) for c in lost)


def held_part(robot: Robot, kind: str) -> Robot:
    """The robot with only the terms that a format can hold, and without rotors."""
    drives = []
    for drive in robot.drives:
        kept = [s for s in drive.symbols if s in HELD[kind]]
        if kept and len(drive.coupling) == 1:
            had = (
                None
                if drive.values is None
                else dict(zip(drive.symbols, drive.values, strict=True))
            )
            values = None if had is None else np.array([had[s] for s in kept])
            drives.append(
                replace(drive, symbols=tuple(kept), values=values, transition=0.0, features=())
            )
    bodies = tuple(replace(b, rotor=None) for b in robot.bodies)
    return replace(robot, bodies=bodies, drives=tuple(drives), load_model=None)


def write_urdf(robot: Robot, path: str | os.PathLike[str], overwrite: bool = False) -> Written:
    """Write a robot's parameters into the URDF it came from; see `write`.

    Parameters
    ----------
    robot : Robot
        Read from a file of this format.
    path : path
    overwrite : bool
        Whether files that exist are replaced.

    Returns
    -------
    Written

    Raises
    ------
    InputError
        The robot did not come from such a file, or its parameters are missing or cannot exist.
    OutputError
        The file exists or cannot be written, or does not read back as the robot.
    """
    _check_source(robot, "urdf")
    return write(robot, path, overwrite=overwrite)


def write_mjcf(robot: Robot, path: str | os.PathLike[str], overwrite: bool = False) -> Written:
    """Write a robot's parameters into the MJCF it came from; see `write`.

    Parameters
    ----------
    robot : Robot
        Read from a file of this format.
    path : path
    overwrite : bool
        Whether files that exist are replaced.

    Returns
    -------
    Written

    Raises
    ------
    InputError
        The robot did not come from such a file, or its parameters are missing or cannot exist.
    OutputError
        The file exists or cannot be written, or does not read back as the robot.
    """
    _check_source(robot, "mjcf")
    return write(robot, path, overwrite=overwrite)


def _check_source(robot: Robot, kind: str) -> None:
    if robot.source is None or robot.source.format != kind:
        raise InputError(
            f"robot {robot.name!r} was not read from a {kind.upper()} file; feasid.write knows the "
            f"format from the path"
        )
