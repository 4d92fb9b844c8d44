"""Sidecar files: what a description format cannot represent, in a text file in the same folder.

``arm.urdf.feasid.json`` holds the joint terms of a robot (and its rotors, its gravity, and the
inertial parameters where the file had to be given others), and the hash of the file that it
belongs to. `load_robot` reads it together with the file; other programs do not see it.

Loops and couplings have a table of their own, written by hand or by `feasid.write`;
it may also contain parallelograms, with the arguments of `feasid.parallelogram`.
URDF has trees and joints that mimic one other. ``arm.urdf.loops.json`` adds loop closures and
couplings, with the names of the file's links and joints::

    {"format": "feasid loops", "version": 1,
     "loops": [{"name": "tip", "first": "coupler", "second": "base", "kind": "connect",
                "first_position": [0.3, 0, 0], "second_position": [0.4, 0, 0]}],
     "couplings": [{"joint": "pitch", "factors": {"left": 0.5, "right": 0.5}, "offset": 0.0}],
     "active": ["crank"], "configuration": {"crank": 1.2}}

Every entry of it but the format and the version may be left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.core.errors import (
    DescriptionError,
    FeasidError,
    InputError,
    did_you_mean,
    refuse_damage,
)
from feasid.core.files import is_regular, read_whole
from feasid.robot.bodies import Rotor, read_only_array
from feasid.robot.couplings import Coupling, Loop
from feasid.robot.description import Robot
from feasid.robot.drives import Drive
from feasid.robot.formats.build import link_places
from feasid.robot.rotations import compose
from feasid.robot.variants import parallelogram

SUFFIX = ".feasid.json"

FORMAT, VERSION = "feasid sidecar", 1  #: Name and version of the sidecar's layout.
MAX_SIDECAR_BYTES = 16 * 1024 * 1024  #: Largest size of a sidecar in bytes.

SAME_PLACE = 1e-9
"""Largest difference [rad or m] of a held position that counts as equal: rounding of typed
digits."""

MALFORMED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""Errors that damaged content raises."""


def sidecar_path(path: str | Path) -> Path:
    """Path of the sidecar of a file."""
    return Path(f"{path}{SUFFIX}")


SHAPE = ("rest", "ripple", "spring_range", "transition")  #: Of drives, written where it is not 0.


def sidecar_bytes(robot: Robot, content: bytes, inertials: bool) -> bytes:
    """The sidecar of a file with this content, for a robot that it cannot hold.

    `inertials`: whether the file's own inertial parameters differ.
    """
    data: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "sha256": hashlib.sha256(content).hexdigest(),
        "robot": robot.name,
        "joints": list(robot.joints),
        "lock": dict(robot.source.reading.get("lock", {})) if robot.source is not None else {},
        "gravity": robot.gravity,
        "passive": list(robot.passive),
        "drives": [
            {
                "name": drive.name,
                "coupling": dict(drive.coupling),
                "symbols": list(drive.symbols),
                "values": drive.values,
                **{k: x for k in SHAPE if (x := getattr(drive, k))},
            }
            for drive in robot.drives
        ],
        "rotors": {b.name: vars(b.rotor) for b in robot.bodies if b.rotor is not None},
        "inertials": {
            b.name: b.inertial for b in robot.bodies if inertials and b.inertial is not None
        },
    }
    if robot.load_model is not None:
        names = (body.name for body in robot.bodies)
        data["load_model"] = dict(zip(names, robot.load_model, strict=True))
    return _json_bytes(data)


def _json_bytes(data: Mapping[str, Any]) -> bytes:
    """The content of a file of this package; arrays become lists."""
    return (json.dumps(data, indent=1, allow_nan=False, default=np.ndarray.tolist) + "\n").encode()


def with_sidecar(
    robot: Robot,
    path: str | Path,
    content: bytes,
    lock: Mapping[str, float],
    gravity: npt.ArrayLike | None,
) -> Robot:
    """The robot of a file with joints held, with the file's sidecar when there is one.

    Gravity is the sidecar's unless the caller gives another. A sidecar that was written for the
    robot with joints held completes that one: they are held where they were, which a note says.
    Other joints are locked afterwards.

    Raises DescriptionError: the sidecar is damaged, from a newer version, or belongs to another
    file or robot. Raises InputError: joints that the sidecar's model has held are to be held
    elsewhere; names the joint.
    """
    file = sidecar_path(path)
    if not is_regular(file):  # a folder or pipe of this name is none
        return robot.locked(lock) if lock else robot
    how = f"delete it, or load_robot({str(path)!r}, sidecar=False)"
    data = _read_json(file, "is not a sidecar", FORMAT, VERSION, MAX_SIDECAR_BYTES)
    if gravity is not None:
        data.pop("gravity", None)
    if data.get("sha256") != hashlib.sha256(content).hexdigest():
        raise DescriptionError(
            f"{file} belongs to another file: {path} has changed since it was written; {how}",
            path=str(file),
        )
    try:
        joints, locks, positions = data["joints"], data.get("lock", {}), {}
        if unknown := [joint for joint in joints if joint not in robot.joints]:
            raise ValueError(f"it has no joints {unknown}")
        for joint in (j for j in robot.joints if j not in joints):
            if joint not in lock and joint not in locks:
                raise ValueError(f"joint {joint!r} was held: name it, lock={{{joint!r}: position}}")
            positions[joint] = locks.get(joint, lock.get(joint))
        described = _add_parameters(robot.locked(positions) if positions else robot, data)
    except MALFORMED as error:
        raise DescriptionError(
            f"{file} does not fit robot {robot.name!r}: {error}; {how}", path=str(file)
        ) from error
    for joint, q in positions.items():
        requested = lock.get(joint, q)
        if not np.allclose(requested, q, rtol=0, atol=SAME_PLACE):
            raise InputError(
                f"lock={{{joint!r}: {requested}}}: {file} is of the robot with it held at {q}; "
                f"give that, or sidecar=False for the file alone",
                joint=joint,
            )
    locked = [f"{joint} at {q}" for joint, q in positions.items() if joint not in lock]
    if locked:
        note = (
            f"{file}: in its model joints are held: {', '.join(locked)}; pass sidecar=False to "
            "free them"
        )
        described = _with_note(described, note)
    others = {joint: q for joint, q in lock.items() if joint not in positions}
    return described.locked(others) if others else described


def _read_json(file: Path, what: str, form: str, version: int, most: int) -> dict[str, Any]:
    """The content of a file of this package; `what`: the message on a damaged one.

    Raises DescriptionError: it is damaged, of another format, or newer.
    """
    with refuse_damage(file, what, DescriptionError):
        data = json.loads(read_whole(file, most))
        if not isinstance(data, dict) or data.get("format") != form:
            raise ValueError(f'its "format" is not "{form}"')
        is_newer = int(data["version"]) > version
    if is_newer:
        raise DescriptionError(
            f"{file} has version {data['version']}, this feasid knows {version}: update feasid",
            path=str(file),
        )
    return data


def _with_note(robot: Robot, note: str) -> Robot:
    if robot.source is None:
        return robot
    return replace(robot, source=replace(robot.source, notes=(*robot.source.notes, note)))


def _add_parameters(robot: Robot, data: dict[str, Any]) -> Robot:
    rotors = {name: Rotor(**_lists_to_arrays(r)) for name, r in data["rotors"].items()}
    inertials = {name: np.array(ten) for name, ten in data["inertials"].items()}
    load = data.get("load_model")
    unknown = {*rotors, *inertials, *(load or ())} - {b.name for b in robot.bodies}
    if unknown:
        raise ValueError(f"it has no bodies {sorted(unknown)}")
    bodies = (
        replace(b, rotor=rotors.get(b.name, b.rotor), inertial=inertials.get(b.name, b.inertial))
        for b in robot.bodies
    )
    if load is not None:
        load = np.array([load[b.name] for b in robot.bodies], dtype=np.float64)
    return replace(
        robot,
        gravity=np.array(data.get("gravity", robot.gravity), dtype=np.float64),
        bodies=tuple(bodies),
        drives=tuple(Drive(**_lists_to_arrays(d)) for d in data["drives"]),
        load_model=load,
        passive=tuple(data.get("passive", robot.passive)),
    )


def _lists_to_arrays(data: dict[str, Any]) -> dict[str, Any]:
    out = dict(data)
    out |= {k: tuple(out[k]) for k in ("symbols", "ripple", "spring_range") if k in out}
    for name in ("values", "rotation", "position"):
        if out.get(name) is not None:
            out[name] = np.array(out[name], dtype=np.float64)
    return out


# -- loops and couplings ---------------------------------------------------------------------------

TABLE_SUFFIX = ".loops.json"

TABLE_FORMAT, TABLE_VERSION = "feasid loops", 1  #: Name and version of a table's layout.
MAX_TABLE_BYTES = 1024 * 1024  #: Largest size of a table in bytes.

ENTRIES = ("format", "version", "parallelograms", "loops", "couplings", "active", "configuration")

PARALLELOGRAM = ("shoulder", "elbow", "reach", "motor", "crank", "rod")

LOOP, COUPLING = ([f.name for f in fields(kind)] for kind in (Loop, Coupling))


def loop_table_path(path: str | Path) -> Path:
    """Path of the table of a file."""
    return Path(f"{path}{TABLE_SUFFIX}")


def with_loop_table(robot: Robot, path: str | Path) -> Robot:
    """The robot of a file with the loops and couplings of its sidecar table, if there is one.

    Raises DescriptionError: names the table and the entry, link or joint that is wrong. Raises
    InputError: the loops do not close, or are singular where they are assembled.
    """
    file = loop_table_path(path)
    if not file.is_file():
        return robot
    data = _read_json(file, "not a table of loops", TABLE_FORMAT, TABLE_VERSION, MAX_TABLE_BYTES)
    try:
        _check_names(data, ENTRIES, "the table")
        couplings, loops = [], []
        for entry in data.get("parallelograms", ()):
            _check_names(entry, PARALLELOGRAM, f"parallelogram of {entry.get('elbow')!r}")
            robot = parallelogram(robot, **entry)
        for entry in data.get("couplings", ()):
            _check_names(entry, COUPLING, f"coupling of {entry.get('joint')!r}")
            factors = {j: float(a) for j, a in entry["factors"].items()}
            couplings.append(Coupling(entry["joint"], factors, float(entry.get("offset", 0.0))))
        for entry in data.get("loops", ()):
            _check_names(entry, LOOP, f"loop {entry.get('name')!r}")
            name, kind = str(entry["name"]), entry.get("kind", "connect")
            ends: list[tuple[str | None, Array, Array]] = []
            for end in ("first", "second"):
                position, what = f"{end}_position", f"of loop {name!r}"
                at = read_only_array(entry[position], (3,), f"{position} {what}")
                turn = entry.get(f"{end}_rotation", np.eye(3))
                turn = read_only_array(turn, (3, 3), f"{end}_rotation {what}")
                link, places, owner = entry.get(end), link_places(robot), None
                if link is not None and link not in places:
                    hint = did_you_mean(link, places)
                    raise DescriptionError(f"loop {name!r}: there is no link {link!r}{hint}")
                if link is not None:  # one that is fixed to a body is part of it
                    owner, around, place = places[link]
                    turn, at = compose(around, place, turn, at)
                ends.append((owner, turn, at))
            (first, turn1, at1), (second, turn2, at2) = ends
            loops.append(Loop(name, first, second, at1, at2, kind, turn1, turn2))
        coupled = replace(robot, couplings=(*robot.couplings, *couplings))
        active, configuration = data.get("active", []), data.get("configuration", {})
        closed = coupled.with_loops(loops, active, configuration)
    except MALFORMED as error:
        raise DescriptionError(
            f"{file}: not a table of loops: {type(error).__name__}: {error}", path=str(file)
        ) from error
    except FeasidError as error:
        raise type(error)(f"{file}: {error}", path=str(file)) from error
    note = f"{file}: {len(data.get('loops', ()))} loops, {len(data.get('couplings', ()))} couplings"
    return _with_note(closed, note)


def loop_table_bytes(robot: Robot, mimics: Collection[str]) -> bytes | None:
    """The table for a file in which these joints mimic others; None when it lacks nothing."""
    couplings = [
        {"joint": c.joint, "factors": dict(c.factors), "offset": c.offset}
        for c in robot.couplings
        if c.joint not in mimics
    ]
    if not couplings and not robot.loops:
        return None
    data = {
        "format": TABLE_FORMAT,
        "version": TABLE_VERSION,
        "loops": [vars(loop) for loop in robot.loops],
        "couplings": couplings,
        "active": list(robot.active),
        "configuration": {j: float(q) for j, q in robot.configuration.items()},
    }
    return _json_bytes(data)


def _check_names(entry: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    for name in entry:
        if name not in known:
            hint = did_you_mean(name, known)
            raise DescriptionError(f"{what} has an unknown entry {name!r}{hint}")
