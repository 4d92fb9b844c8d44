"""Archives of text and plain arrays, in which fits and online fits are kept.

Each holds a record, a dataclass of `feasid.core.codec`, in ``model.json`` and ``arrays.npz``.
Nothing of a file is executed or unpickled, and it names no other file.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np

import feasid
from feasid.core.arguments import number
from feasid.core.arrays import (
    MEANING,
    DamagedError,
    read_arrays,
    require_moderate,
    require_version,
    unpack_archive,
)
from feasid.core.codec import Kinds, decode, encode, kinds
from feasid.core.errors import FeasidError, OutputError
from feasid.core.files import write_atomically
from feasid.logs.floating import ContactSensor, Imu
from feasid.parameters.feasibility.constraints.affine import Block, Linear
from feasid.parameters.feasibility.constraints.sets import UserConstraints
from feasid.robot.bodies import Body, Limits, Member, Rotor
from feasid.robot.couplings import Coupling, Loop
from feasid.robot.description import Robot, Source
from feasid.robot.drives import Drive
from feasid.robot.formats.mjcf.model import inline_includes
from feasid.robot.formats.xml import TEXT, parse_xml
from feasid.robot.known import Equality

MAX_UNPACKED_BYTES = 256 * 1024 * 1024  #: Bytes that an archive may unpack to.

CONTENT_ERRORS = (
    *(LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError),
    np.linalg.LinAlgError,
)
"""Errors that damaged content raises."""

ROBOT_KINDS = kinds(Robot, Body, Rotor, Drive, Member, Limits, Coupling, Loop)
"""Parts of a robot; torques of the caller's own are code."""

Finite = Annotated[float, number()]

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class SourceRecord:
    """Options by which a description was read; a written file is read back with them.

    Its text is another member, without paths from which anything could be opened. A saved file
    never selects MuJoCo, which opens meshes.
    """

    format: str
    floating: bool | None = None
    lock: Mapping[str, Finite] = field(default_factory=dict)
    gravity: tuple[Finite, Finite, Finite] | None = None
    ignore: tuple[str, ...] = ()
    model: str = ""
    notes: tuple[str, ...] = ()


READING = [f.name for f in fields(SourceRecord)][1:-1]

MODEL_KINDS = ROBOT_KINDS | kinds(
    *(UserConstraints, Block, Linear, Equality, SourceRecord, ContactSensor, Imu)
)
"""Parts of a robot, of constraints on its parameters, and of options on its logs."""


def write_record(
    path: str | Path,
    record: Any,
    known: Kinds,
    head: Mapping[str, Any],
    members: Mapping[str, str | bytes],
    overwrite: bool,
) -> None:
    """Write a record with the text of its robot's description, and further members of the archive;
    `head`: its format and version.
    """
    arrays: dict[str, Any] = {}
    text = encode(record, arrays, known)
    if (source := record.robot.source) is not None:
        members = {**members, "description": source.text}
        if source.format == "mjcf":
            with suppress(FeasidError):  # files that it includes, if they still exist
                members["description"] = inline_includes(parse_xml(source.text, source.path))
        reading = {k: v for k, v in source.reading.items() if k in READING}
        if reading.get("gravity") is not None:
            reading["gravity"] = tuple(float(g) for g in reading["gravity"])
        entry = SourceRecord(source.format, notes=source.notes, **reading)
        text["of"]["source"] = encode(entry, {}, known)
    model = {**head, "meaning": MEANING, "feasid": feasid.__version__, "record": text}
    packed, buffer = io.BytesIO(), io.BytesIO()
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type, unused-ignore] # 2.0 has no allow_pickle
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        first: dict[str, Any] = {"model.json": json.dumps(model), "arrays.npz": packed.getvalue()}
        for name, content in {**first, **members}.items():  # without the time: the same bytes
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    write_atomically(path, buffer.getvalue(), overwrite=overwrite)


def savable_options(options: Mapping[str, Any], known: Kinds) -> dict[str, Any]:
    """The options that a file can hold; functions and solvers are left out."""
    out = {}
    for name, value in options.items():
        with suppress(OutputError):
            encode(value, {}, known)
            out[name] = value
    return out


def read_record(
    path: str, content: Mapping[str, bytes], kind: type[T], known: Kinds, version: int, what: str
) -> T:
    """Decode the record; `what`: its kind; and, after a semicolon, the remedy for older files."""
    model = json.loads(content["model.json"])
    writer = model.get("feasid") or model["made"]["feasid"]  # until format 3
    noun, remedy = what.split("; ")
    require_version(path, f"{noun} saved by feasid {writer}; {remedy}", model, version)
    name = f"arrays.npz of {path}"
    packed = unpack_archive(io.BytesIO(content["arrays.npz"]), name, MAX_UNPACKED_BYTES)
    arrays = read_arrays(packed)
    for key, array in arrays.items():
        if array.dtype.kind not in "fiub":
            raise DamagedError(f"{name} holds {key!r} of {array.dtype}, which are no numbers")
    require_moderate(arrays)
    source = decode(model["record"]["of"].pop("source", None), {}, known)
    record: Any = decode(model["record"], arrays, known)
    if source is not None:
        reading = {name: getattr(source, name) for name in READING}
        source = Source(TEXT, source.format, content["description"], source.notes, reading)
        record = replace(record, robot=replace(record.robot, source=source))
    if not isinstance(record, kind):
        raise DamagedError(f"it holds no {noun}")
    return record
