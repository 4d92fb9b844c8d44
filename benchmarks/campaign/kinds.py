"""The kinds of inputs: valid seeds, how they are changed, and the stages that one goes through."""

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from logs import arm_parameters, simulate
from robots import ARM

import feasid
from feasid.applications.inspection.file_check import check_file
from feasid.applications.online.changes import ModelChange
from feasid.certificate import digest
from feasid.core.arrays import read_arrays, unpack_archive
from feasid.core.errors import InputError
from feasid.core.files import open_for_reading, read_whole
from feasid.identification.regression.triangle import Reduced
from feasid.logs.frame import prepare
from feasid.logs.read import arrays
from feasid.logs.read.csv import scan_csv
from feasid.logs.read.formats import read_log
from feasid.logs.read.messages import top_level_records
from feasid.parameters.feasibility.proof.claim import Certificate
from feasid.robot.formats.sidecar import sidecar_bytes, sidecar_path
from feasid.robot.formats.xml import parse_xml

from . import mutators
from .descriptions import CART, GRIPPER, TWO_LINKS

ROWS, ROWS_AS_TEXT = 200, 60

CUTOFF = 40.0
"""Hz: a stretch of twenty samples is enough to be filtered."""

DAYS = ("2026-11-26", "2026-11-27", "2026-11-28")

LARGEST = 2**26
"""Bytes that the members of an archive may have, before anything is made of them."""

Stage = tuple[str, Callable[[Path, Any], Any]]


@dataclass(frozen=True)
class Kind:
    """A kind of input.

    `change(rng, data)` mutates the bytes of a seed, which are written as `file`; `stages` are names
    and functions of (path, what the stage before gave), the first being the kind's own syntactic
    check. `beside` is put into the folder first.
    """

    file: str
    seeds: tuple[bytes, ...]
    change: Callable[[Any, bytes], bytes]
    stages: tuple[Stage, ...]
    beside: dict[str, bytes] = field(default_factory=dict)

    def prepared(self, folder):
        """Put what belongs beside an input into the folder."""
        for name, content in self.beside.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)

    def write(self, folder, data):
        """The input as a file; returns its path."""
        path = folder / self.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path


# -- what seeds are made of -----------------------------------------------------------------------


@cache
def arm():
    return feasid.load_robot(ARM).with_joint_terms()


@cache
def small_arm():
    """Two joints of the arm, for kinds whose inputs cost a fit each."""
    return feasid.load_robot(ARM, lock={"wheel_joint": 0.0}).with_joint_terms()


def simulated(robot, seed, rows):
    """A log as sensors give it, without accelerations."""
    frame = simulate(robot, arm_parameters(robot), seed, samples=rows, noise=0.02)
    return frame[[c for c in frame if not c.startswith("ddq_")]]


@cache
def log():
    return simulated(arm(), 1, ROWS)


@cache
def fitted():
    return feasid.fit(log(), arm(), diagnose=False)


def bytes_of(write, folder, name):
    path = folder / name
    write(path)
    return path.read_bytes()


# -- stages ---------------------------------------------------------------------------------------


def refused(function, *kinds):
    """A stage whose own errors of these kinds say that an input is none."""

    def stage(path, value):
        try:
            return function(path, value)
        except kinds as error:
            raise InputError(str(error)) from error

    return stage


def _xml(path, _):
    return parse_xml(read_whole(path), os.fspath(path))


def _model(path, _):
    return feasid.load_robot(path)


def _judged(path, robot):
    repr(robot)
    check_file(path).to_dict()


def _table(path, _):
    return read_log(path)


def _motion(path, frame):
    return prepare(frame, arm(), nan="drop-segments", cutoff=CUTOFF)


def _members(path, _):
    with open_for_reading(path) as file:
        return unpack_archive(file, "input", LARGEST)


def _schema(path, _):
    with open_for_reading(path) as file, arrays.open_parquet(file, "input", 2**30):
        return None


def _database(path, _):
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as base:
        base.execute("select count(*) from messages").fetchone()
        base.execute("select count(*) from topics").fetchone()


def _summed(path, reduced):
    (reduced + reduced).triangle()
    reduced.residuals(np.zeros(len(reduced.columns)))
    repr(reduced)


def _told(path, fit):
    fit.summary()
    fit.base_table  # noqa: B018
    if fit.certificate is not None:
        fit.certificate.holds()


def _said(path, certificate):
    repr(certificate)
    return certificate.claim, certificate.limit


def _json(path, _):
    return json.loads(path.read_bytes())


READ = (("table", _table), ("motion", _motion))
XML = (("well formed", _xml), ("robot", _model), ("judged", _judged))
ARCHIVE = ("archive", refused(_members, ValueError))
JSON = ("json", refused(_json, ValueError, RecursionError))


# -- kinds ----------------------------------------------------------------------------------------


def urdf(folder):
    return Kind("input.urdf", (ARM.encode(), GRIPPER.encode()), mutators.xml, XML)


def mjcf(folder):
    return Kind("input.xml", (TWO_LINKS.encode(), CART.encode()), mutators.xml, XML)


def sidecar(folder):
    """Of the arm, whose description stays as it is."""
    content = ARM.encode()
    name = sidecar_path("input.urdf").name

    def model(path, _):
        return feasid.load_robot(path.parent / "input.urdf")

    stages = JSON, ("robot", model), ("shown", lambda path, robot: repr(robot))
    seed = sidecar_bytes(arm(), content, True)
    return Kind(name, (seed,), mutators.notation, stages, {"input.urdf": content})


def csv(folder):
    text = log().head(ROWS_AS_TEXT).to_csv(index=False).encode()
    unit = {"t": "s", "q": "rad", "dq": "rad/s", "tau": "Nm"}
    units = ",".join(unit[c.split("_")[0]] for c in log()).encode()
    head, rest = text.split(b"\n", 1)
    semicolons = text.replace(b",", b";")
    seeds = text, semicolons, b"sep=;\n" + semicolons, head + b"\n" + units + b"\n" + rest
    scanned = ("scanned", lambda path, _: scan_csv(read_whole(path), str(path)))
    return Kind("input.csv", seeds, mutators.table, (scanned, *READ))


def npz(folder):
    frame = log()
    arrays = {"t": frame["t"], "q": frame.filter(regex="^q_"), "tau": frame.filter(regex="^tau_")}
    seed = bytes_of(lambda path: np.savez_compressed(path, **arrays), folder, "seed.npz")
    found = ("arrays", refused(lambda _, members: read_arrays(members), ValueError))
    return Kind("input.npz", (seed,), mutators.archive, (ARCHIVE, found, *READ))


def parquets(folder):
    frame = log().assign(run="a")
    seeds = tuple(
        bytes_of(lambda p, c=c: frame.to_parquet(p, compression=c), folder, f"seed_{c}.parquet")
        for c in ("none", "snappy", "zstd")
    )
    return Kind("input.parquet", seeds, mutators.flipped, (("schema", _schema), *READ))


def bag(folder, plugin):
    """A bag's folder, of ROS 2."""
    from recorded import StoragePlugin, batches, write

    rows = batches(log().head(ROWS_AS_TEXT), arm().joints)
    return write(folder / f"bag_{plugin}", rows, StoragePlugin[plugin])


def matlab(folder):
    """Of version 5, plain and packed."""
    from scipy.io import savemat

    arrays = {name: log()[name].to_numpy() for name in log()}
    seeds = tuple(
        bytes_of(lambda p, c=c: savemat(p, arrays, do_compression=c), folder, f"seed_{c}.mat")
        for c in (False, True)
    )
    return Kind("input.mat", seeds, mutators.flipped, READ)


def hdf5(folder):
    import h5py

    def write(path):
        with h5py.File(path, "w") as file:
            for name in log():
                file[name] = log()[name].to_numpy()

    return Kind("input.h5", (bytes_of(write, folder, "seed.h5"),), mutators.flipped, READ)


def usd(folder):
    """An arm as text, and as a binary layer."""
    from pxr import Sdf

    robot = feasid.load_robot(GRIPPER)
    text = bytes_of(lambda p: feasid.write(robot, p), folder, "seed.usda")
    layer = Sdf.Layer.CreateAnonymous(".usda")
    layer.ImportFromString(text.decode())
    binary = bytes_of(lambda p: layer.Export(str(p)), folder, "seed.usdc")

    def change(rng, data):
        return (mutators.flipped if data == binary else mutators.xml)(rng, data)

    return Kind("input.usd", (text, text, text, binary), change, XML)


def mcap(folder):
    seed = next(bag(folder, "MCAP").glob("*.mcap")).read_bytes()
    stages = (("records", _records), *READ)
    return Kind("input.mcap", (seed,), mutators.flipped, stages)


def _records(path, _):
    with open_for_reading(path) as file:
        for _ in top_level_records(file, path):
            pass


def database(folder):
    """The database of a bag."""
    where = bag(folder, "SQLITE3")
    file = next(where.glob("*.db3"))
    stages = (("database", refused(_database, sqlite3.Error, ValueError)), *READ)
    return Kind(file.name, (file.read_bytes(),), mutators.flipped, stages)


def bag_folder(folder):
    """The description of a bag whose database stays as it is, read as a folder."""
    where = bag(folder, "SQLITE3")
    content = {f"bag/{f.name}": f.read_bytes() for f in where.iterdir()}
    seed = content.pop("bag/metadata.yaml")
    read = ("table", lambda path, _: read_log(path.parent))
    stages = (("text", refused(lambda path, _: path.read_text(), ValueError)), read, READ[1])
    return Kind("bag/metadata.yaml", (seed,), mutators.xml, stages, content)


def reduced(folder):
    stages = ARCHIVE, ("loaded", lambda path, _: Reduced.load(path)), ("summed", _summed)
    return Kind(
        "input.reduced", (feasid.reduce(log(), arm()).to_bytes(),), mutators.archive, stages
    )


def saved(folder):
    stages = ARCHIVE, ("loaded", lambda path, _: feasid.load(path)), ("told", _told)
    seed = bytes_of(fitted().save, folder, "seed.feasid")
    return Kind("input.feasid", (seed,), mutators.archive, stages)


def online(folder):
    """Online fits that learn from a window and from everything, with an estimate and a change."""
    robot, seeds = small_arm(), []
    frame = simulated(robot, 1, ROWS)
    q, tau = (frame[[f"{name}_{j}" for j in robot.joints]].to_numpy() for name in ("q", "tau"))
    for memory in ({"window": 128, "block": 8}, {"forgetting": 0.999}):
        fit = feasid.OnlineFit(robot, 100.0, cutoff=CUTOFF, **memory)
        fit.extend(q, tau)
        fit.estimate()
        fit.extend(q, tau)
        detector, names = fit._detector, fit._possible.names
        detector.alarm = (
            1.0,
            np.ones(len(names)),
            fit._last.beta,
            fit._possible.directions(fit._last.delta),
        )
        fit.changes = (ModelChange(0.5, *names[0], 0.1, 9.0),)
        fit._before = np.column_stack(fit._whiten(fit.reduced)[1:])
        fit._invariant.set_from(fit._before, fit._possible.subspace(0))
        seeds.append(bytes_of(fit.save, folder, f"seed{len(seeds)}.feasid"))

    def goes_on(path, fit):
        repr(fit.estimate())
        fit.extend(q[:ROWS_AS_TEXT], tau[:ROWS_AS_TEXT])
        repr(fit.estimate())
        fit.save(path, overwrite=True)
        repr((fit, fit.reduced, fit.faults, fit.decisions, fit.changes))

    stages = ARCHIVE, ("loaded", lambda path, _: feasid.load(path)), ("goes on", goes_on)
    return Kind("input.feasid", tuple(seeds), mutators.archive, stages)


def fleet(folder):
    robots = {name: log() for name in "ab"}
    seed = bytes_of(feasid.fit_fleet(robots, arm(), diagnose=False).save, folder, "seed.feasid")
    stages = ARCHIVE, ("loaded", lambda path, _: feasid.load(path)), ("told", _fleet_told)
    return Kind("input.feasid", (seed,), mutators.archive, stages)


def _fleet_told(path, fleet):
    repr((fleet, fleet.table))


def store(folder):
    """A store of three small logs, of which one is changed: its bytes, or a value of its row."""
    robot, records = small_arm(), {}
    first = feasid.LogStore(folder / "seeds", robot, cutoff=CUTOFF)
    for number, day in enumerate(DAYS):
        (path,) = first.add(simulated(robot, number, ROWS_AS_TEXT), "a", day)
        records[f"store/a/{path.name}"] = path.read_bytes()
    name, seed = records.popitem()

    def opened(path, _):
        return feasid.LogStore(folder / "store", robot, cutoff=CUTOFF)

    def reduced_logs(path, logs):
        repr((logs.table, logs.robots, logs.logs("a")))
        return logs

    def drift(path, logs):
        repr(logs.drift("a"))
        return logs

    def fitted(path, logs):
        return logs.fit("a", diagnose=False, candidates=())

    stages = ("opened", opened), ("logs", reduced_logs), ("drift", drift), ("fitted", fitted)
    return Kind(name, (seed,), mutators.record, stages, records)


def certificate(folder):
    """Proofs that something can exist and that it cannot, mostly signed after the change."""
    heavy = feasid.load_robot(ARM.replace('ixx="0.011"', 'ixx="5"'))
    proofs = fitted().certificate, feasid.check(heavy).certificate
    seeds = tuple(json.dumps(proof.data).encode() for proof in proofs)

    def change(rng, data):
        data = mutators.notation(rng, data)
        try:
            tree = json.loads(data)
        except ValueError:
            return data
        if isinstance(tree, dict) and rng.random() < 0.9:
            tree["digest"] = digest(tree)
        return json.dumps(tree).encode()

    stages = (
        JSON,
        ("loaded", lambda path, _: Certificate.load(path)),
        ("verified", lambda path, proof: (proof.verify(), proof)[1]),
        ("said", _said),
    )
    return Kind("input.json", seeds, change, stages)
