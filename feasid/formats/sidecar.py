"""What a model file cannot hold, in a small text file beside it.

``arm.urdf.feasid.json`` holds the joint terms of a robot (and its rotors, and the inertial
parameters where the file had to be given others), and the hash of the file that it belongs to.
`load_robot` reads it together with the file; other programs do not see it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.files import is_regular, read_whole
from feasid.errors import DescriptionError
from feasid.robot.bodies import Body, Rotor
from feasid.robot.description import Robot
from feasid.robot.drives import Drive

SUFFIX = ".feasid.json"

VERSION = 1

LARGEST = 16 * 1024 * 1024
"""Bytes of a sidecar beyond which it is not one."""

MALFORMED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What content raises that `sidecar_bytes` never made."""


def sidecar_path(path: str | Path) -> Path:
    """Where the sidecar of a file is."""
    return Path(f"{path}{SUFFIX}")


def sidecar_bytes(robot: Robot, content: bytes, inertials: bool) -> bytes:
    """The sidecar of a file with this content, for a robot that it cannot hold.

    `inertials` says whether the file's own inertial parameters are others.
    """
    data: dict[str, Any] = {
        "format": "feasid sidecar",
        "version": VERSION,
        "sha256": hashlib.sha256(content).hexdigest(),
        "robot": robot.name,
        "drives": [_drive(d) for d in robot.drives],
        "rotors": {b.name: _rotor(b.rotor) for b in robot.bodies if b.rotor is not None},
        "inertials": {
            b.name: b.inertial.tolist()
            for b in robot.bodies
            if inertials and b.inertial is not None
        },
    }
    if robot.load_model is not None:
        rows = zip(robot.bodies, robot.load_model.tolist(), strict=True)
        data["load_model"] = {body.name: row for body, row in rows}
    return (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()


def with_sidecar(robot: Robot, path: str | Path, content: bytes) -> Robot:
    """The robot of a file, completed by the file's sidecar when there is one.

    Raises
    ------
    DescriptionError
        The sidecar is damaged, from a newer version, or belongs to another file or robot.
    """
    file = sidecar_path(path)
    if not is_regular(file):
        return robot
    how = f"delete it, or load_robot({str(path)!r}, sidecar=False)"
    data = _parsed(file)
    if data["version"] > VERSION:
        raise DescriptionError(
            f"{file} has version {data['version']}, this feasid knows {VERSION}: update feasid",
            path=str(file),
        )
    if data["sha256"] != hashlib.sha256(content).hexdigest():
        raise DescriptionError(
            f"{file} belongs to another file: {path} has changed since it was written; {how}",
            path=str(file),
        )
    try:
        return _completed(robot, data)
    except MALFORMED as error:
        raise DescriptionError(
            f"{file} does not fit robot {robot.name!r}: {error}; {how}", path=str(file)
        ) from error


def _parsed(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(read_whole(file, LARGEST))
        if not isinstance(data, dict) or data.get("format") != "feasid sidecar":
            raise ValueError("its format is another one")
        int(data["version"]), str(data["sha256"])
    except (OSError, *MALFORMED) as error:
        raise DescriptionError(f"{file} is not a sidecar: {error}", path=str(file)) from error
    return data


def _completed(robot: Robot, data: dict[str, Any]) -> Robot:
    rotors = {name: Rotor(**_arrays(r)) for name, r in data["rotors"].items()}
    inertials = data["inertials"]
    unknown = {*rotors, *inertials} - {b.name for b in robot.bodies}
    if unknown:
        raise ValueError(f"it has no bodies {sorted(unknown)}")

    def completed(body: Body) -> Body:
        own = inertials.get(body.name)
        ten = body.inertial if own is None else np.array(own)
        return replace(body, rotor=rotors.get(body.name, body.rotor), inertial=ten)

    drives = tuple(Drive(**_arrays(d)) for d in data["drives"])
    load = data.get("load_model")
    return replace(
        robot,
        bodies=tuple(completed(b) for b in robot.bodies),
        drives=drives,
        load_model=None if load is None else _loads(robot, load),
    )


def _loads(robot: Robot, load: dict[str, Any]) -> Array:
    """The load model, shape (n_bodies, 10); a body that was held is part of its parent's."""
    if not set(load) <= {b.name for b in robot.bodies}:
        raise ValueError(f"it has no bodies {sorted(set(load) - {b.name for b in robot.bodies})}")
    return np.array([load.get(b.name, [0.0] * 10) for b in robot.bodies], dtype=np.float64)


def _drive(drive: Drive) -> dict[str, Any]:
    out: dict[str, Any] = {
        "name": drive.name,
        "coupling": dict(drive.coupling),
        "symbols": list(drive.symbols),
        "values": None if drive.values is None else drive.values.tolist(),
    }
    out |= {k: getattr(drive, k) for k in ("rest", "transition") if getattr(drive, k)}
    return out


def _rotor(rotor: Rotor) -> dict[str, Any]:
    return {
        "gear": rotor.gear,
        "rotation": rotor.rotation.tolist(),
        "position": rotor.position.tolist(),
        "symmetric": rotor.symmetric,
        "values": None if rotor.values is None else rotor.values.tolist(),
    }


def _arrays(data: dict[str, Any]) -> dict[str, Any]:
    """Lists of numbers as arrays, names as tuples."""
    out = dict(data)
    if "symbols" in out:
        out["symbols"] = tuple(out["symbols"])
    for name in ("values", "rotation", "position"):
        if out.get(name) is not None:
            out[name] = np.array(out[name], dtype=np.float64)
    return out
