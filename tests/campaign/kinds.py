"""The kinds of inputs: valid seeds, how they are changed, and the stages that one goes through."""

# ruff: noqa: E501

import contextlib
import io
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from logs import arm_parameters, simulate
from robots import ARM

import feasid
from feasid.archives import arrays_of, unpacked
from feasid.cli import main
from feasid.errors import InputError
from feasid.files import read_whole, reading
from feasid.inspection.report import inspect
from feasid.logs.frame import prepare
from feasid.logs.read import parquet
from feasid.logs.read.bags import check_mcap
from feasid.logs.read.csvscan import scan
from feasid.logs.read.readers import read_log
from feasid.reduction.triangle import Reduced
from feasid.robot.xml.text import parse_xml

from . import mutators

MJCF = """<mujoco model="arm"><compiler angle="radian"/><default><joint damping="0.1"/></default>
<worldbody><body name="upper" pos="0 0 0.3"><inertial pos="0 0 0.1" mass="1.2"
 diaginertia="0.01 0.01 0.002"/><joint name="shoulder" axis="0 0 1" armature="0.01" frictionloss="0.2"/>
<geom type="capsule" size="0.03" fromto="0 0 0 0 0 0.2"/>
<body name="fore" pos="0 0 0.25"><joint name="slide" type="slide" axis="1 0 0"/>
<inertial pos="0.1 0 0" mass="0.7" fullinertia="0.004 0.005 0.006 0.0001 0 0"/></body></body></worldbody>
<equality><joint joint1="shoulder" joint2="slide" polycoef="0 1 0 0 0"/></equality></mujoco>"""

ROWS = 200


@dataclass(frozen=True)
class Kind:
    """A kind of input.

    `change(rng, data)` mutates the bytes of a seed; `stages` are names and functions of (path,
    what the stage before gave), the first being the kind's own syntactic check.
    """

    name: str
    suffix: str
    seeds: tuple[bytes, ...]
    change: Any
    stages: tuple[tuple[str, Any], ...]

    def write(self, folder, data):
        """The input as a file; returns its path."""
        path = folder / f"input{self.suffix}"
        path.write_bytes(data)
        return path


def _robot():
    return feasid.load_robot(ARM).with_joint_terms()


def _log(robot):
    return simulate(robot, arm_parameters(robot), 1, samples=ROWS, noise=0.02)


def _xml(path, _):
    return parse_xml(read_whole(path), os.fspath(path))


def _model(path, _):
    return feasid.load_robot(path)


def _judged(path, robot):
    repr(robot)
    inspect(path).to_dict()


def _prepared(robot):
    return lambda path, df: prepare(df, robot, nan="drop-segments")


def _table(path, _):
    return read_log(path)


def _members(path, _):
    with reading(path) as file:
        try:
            return unpacked(file, "input", 2**26)
        except ValueError as error:
            raise InputError(str(error)) from error


def _arrays(path, _):
    try:
        return arrays_of(_members(path, _))
    except ValueError as error:
        raise InputError(str(error)) from error


def _schema(path, _):
    with reading(path) as file, parquet.opened(file, "input", 2**30):
        return None


def _reduced(path, _):
    return Reduced.load(path)


def _summed(path, reduced):
    (reduced + reduced).triangle()
    reduced.residuals(np.zeros(len(reduced.columns)))
    repr(reduced)


def _loaded(path, _):
    return feasid.load(path)


def _told(path, fit):
    fit.summary()
    fit.base_table  # noqa: B018
    if fit.certificate is not None:
        fit.certificate.holds()


def _bytes_of(write, folder, name):
    path = folder / name
    write(path)
    return path.read_bytes()


def kinds(folder):
    """All of them, with seeds made in the folder."""
    robot = _robot()
    log = _log(robot)
    for name in list(log.columns):
        if name.startswith("ddq_"):
            del log[name]
    fit = feasid.fit(log, robot, diagnose=False)
    text = log.head(60).to_csv(index=False).encode()
    arrays = {"t": log["t"], "q": log.filter(regex="^q_"), "tau": log.filter(regex="^tau_")}
    npz = _bytes_of(lambda p: np.savez_compressed(p, **arrays), folder, "seed.npz")
    files = [
        Kind("urdf", ".urdf", (ARM.encode(),), mutators.xml,
             (("well formed", _xml), ("robot", _model), ("judged", _judged))),
        Kind("mjcf", ".xml", (MJCF.encode(),), mutators.xml,
             (("well formed", _xml), ("robot", _model), ("judged", _judged))),
        Kind("csv", ".csv", (text, text.replace(b",", b";"), b"sep=;\n" + text.replace(b",", b";")),
             mutators.table,
             (("scanned", lambda p, _: scan(read_whole(p), str(p))), ("table", _table),
              ("motion", _prepared(robot)))),
        Kind("npz", ".npz", (npz,), mutators.archive,
             (("archive", _members), ("arrays", _arrays), ("table", _table),
              ("motion", _prepared(robot)))),
        Kind("parquet", ".parquet", _parquets(log, folder), mutators.flipped,
             (("schema", _schema), ("table", _table), ("motion", _prepared(robot)))),
        Kind("mcap", ".mcap", (_mcap(log, folder),), mutators.flipped,
             (("records", lambda p, _: check_mcap(p)), ("table", _table),
              ("motion", _prepared(robot)))),
        Kind("reduced", ".reduced", (feasid.reduce(log, robot).to_bytes(),), mutators.archive,
             (("archive", _members), ("loaded", _reduced), ("summed", _summed))),
        Kind("saved fit", ".feasid", (_bytes_of(fit.save, folder, "seed.feasid"),),
             mutators.archive, (("archive", _members), ("loaded", _loaded), ("told", _told))),
        _commands(folder, log, fit),
    ]  # fmt: skip
    return {kind.name: kind for kind in files}


def _parquets(log, folder):
    frame = log.assign(run="a")
    return tuple(
        _bytes_of(lambda p, c=c: frame.to_parquet(p, compression=c), folder, f"seed_{c}.parquet")
        for c in ("none", "snappy", "zstd")
    )


def _mcap(log, folder):
    """A bag as one MCAP file."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    types = store.types
    names = [c[2:] for c in log.columns if c.startswith("q_")]
    bag = folder / "bag"
    with Writer(bag, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        kind = "sensor_msgs/msg/JointState"
        connection = writer.add_connection("/joint_states", kind, typestore=store)
        for row in log.head(40).itertuples(index=False):
            data = row._asdict()
            ns = int(data["t"] * 1e9) + 10**9
            stamp = types["builtin_interfaces/msg/Time"](ns // 10**9, ns % 10**9)
            header = types["std_msgs/msg/Header"](stamp, "")
            values = [np.array([data[f"{k}_{n}"] for n in names]) for k in ("q", "dq", "tau")]
            message = types[kind](header, names, *values)
            writer.write(connection, ns, store.serialize_cdr(message, kind))
    return next(bag.glob("*.mcap")).read_bytes()


# -- command lines --------------------------------------------------------------------------------

COMMANDS = (
    "check arm.urdf", "check --bodies arm.urdf", "check --format json arm.urdf", "base arm.urdf",
    "base --json arm.urdf", "base --measured 1 --static arm.urdf", "correct arm.urdf --out out.urdf",
    "verify proof.json", "doctor log.csv --robot arm.urdf", "show fit.feasid", "errors fit.feasid log.csv",
    "predict fit.feasid log.csv --out out.csv", "compare arm.urdf arm.urdf",
    "reduce log.csv --robot arm.urdf --out out.reduced", "fit log.csv --robot arm.urdf --out out.urdf",
    "fit part.reduced --robot arm.urdf --save out.feasid --overwrite",
)  # fmt: skip

EXTRA = (
    "--overwrite", "--resume", "--json", "--units", "q=deg", "--lock", "shoulder=1", "--gravity",
    "0,0,-9.81", "--weights", "wls", "--slack", "nan", "-1", "1e999", "--cutoff", "no", "--workers",
    "--option", "a=b", "--friction", "viscous", "--nan", "drop-segments", "--out", "out.urdf", "log.csv",
    "arm.urdf", "-", "/dev/null", ".", "*", "[", "\x1b", "", "x" * 300, "--help", "--rate", "0", "--force",
)  # fmt: skip


def _commands(folder, log, fit):
    """Words of a command left out, doubled, exchanged and added, one per line."""
    place = folder / "place"
    place.mkdir()
    (place / "arm.urdf").write_text(ARM)
    log.to_csv(place / "log.csv", index=False)
    fit.save(place / "fit.feasid")
    fit.certificate.save(place / "proof.json")
    fit.reduced.save(place / "part.reduced")
    inputs = {p.name: p.read_bytes() for p in place.iterdir()}

    def parsed(path, _):
        words = path.read_bytes().decode("utf-8", "surrogateescape").split("\n")
        return [word for word in words if "\0" not in word]

    def ran(path, words):
        os.chdir(place)
        with (
            contextlib.redirect_stdout(io.StringIO()) as out,
            contextlib.redirect_stderr(io.StringIO()) as err,
        ):
            try:
                status = main(words)
            except SystemExit as stop:
                status = stop.code
        assert status in (0, 1, 2, 3, 4, 5), f"exit status {status}"
        assert not {"\x1b", "\x9b"} & set(out.getvalue() + err.getvalue()), "an escape was printed"
        said = {p.name: p for p in place.iterdir()}
        assert not [n for n in said if n.startswith(".feasid-")], "a partial file is left"
        for name, content in inputs.items():
            assert said.pop(name).read_bytes() == content, f"input {name} was changed"
        for made in said.values():
            shutil.rmtree(made) if made.is_dir() else made.unlink()
        if status == 2:
            raise InputError("refused")
        return status

    def change(rng, data):
        words = data.decode("utf-8", "surrogateescape").split("\n")
        for _ in range(rng.choice((0, 1, 1, 2))):
            k = rng.randrange(len(words) + 1)
            kind = rng.randrange(4)
            if kind == 0:
                words.insert(k, rng.choice(EXTRA))
            elif kind == 1 and words:
                words[k - 1] = rng.choice(EXTRA)
            elif kind == 2 and words:
                words.pop(k - 1)
            elif words:
                words.insert(k, rng.choice(words))
        return "\n".join(words).encode("utf-8", "surrogateescape")

    seeds = tuple("\n".join(c.split()).encode() for c in COMMANDS)
    stages = (("words", parsed), ("accepted", ran))
    return Kind("command", ".words", seeds, change, stages)


PLACES = (Path("/proc"), Path("/sys"))
"""Folders besides Python's own that libraries may look at."""
