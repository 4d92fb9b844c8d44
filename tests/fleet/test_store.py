"""A store of reduced logs: what it gives back, what it says of drift, and what it refuses."""

import os
from unittest.mock import Mock

import numpy as np
import pytest

import feasid
from feasid.cli import main
from feasid.core.errors import FeasidError, InputError, NotEnoughDataError
from feasid.datasets import arm

pytest.importorskip("pyarrow")

CUTOFF = 8.0  # Hz
DAYS = ("2026-11-02", "2026-11-09", "2026-11-16", "2026-11-23")
GAIN = 1.04  # of the elbow's torque, from week to week
SIZE = 60_000  # bytes of a compact log of seven joints
SAME = 1e-9


@pytest.fixture(scope="module")
def world():
    """Logs of three robots in four weeks; the gain of one robot's second joint grows."""
    robot, rng = arm.described(), np.random.default_rng()
    logs = {}
    for name in ("a", "b", "drifts"):
        truth = arm.truth(robot, load=float(rng.uniform(0.3, 0.5)))
        for week, day in enumerate(DAYS):
            log = arm.log(truth, seed=int(rng.integers(2**31)))
            if name == "drifts":
                log[f"tau_{robot.joints[1]}"] *= GAIN**week
            logs[name, day] = log
    return robot, logs


@pytest.fixture(scope="module")
def store(world, tmp_path_factory):
    robot, logs = world
    store = feasid.LogStore(tmp_path_factory.mktemp("store") / "logs", robot, cutoff=CUTOFF)
    for (name, day), log in logs.items():
        store.add(log, name, day)
    return store


def test_a_store_gives_back_what_was_reduced_to_the_bit(world, store):
    robot, logs = world
    for (_, reduced), day in zip(store.logs("a").items(), DAYS, strict=True):
        live = feasid.reduce(logs["a", day], robot, cutoff=CUTOFF)
        assert reduced.triangles[0].tobytes() == live.triangles[0].tobytes()
        assert reduced.strata[0].triangles.tobytes() == live.strata[0].triangles.tobytes()
    assert [*store.logs("a", since=DAYS[2])] == [f"{day} a table" for day in DAYS[2:]]
    fit = store.fit("a")
    live = feasid.fit([feasid.reduce(logs["a", d], robot, cutoff=CUTOFF) for d in DAYS], robot)
    assert fit.delta.tobytes() == live.delta.tobytes()
    assert fit.comparison.changes.tobytes() == live.comparison.changes.tobytes()


def test_logs_of_one_day_and_name_are_two(world, tmp_path):
    store = feasid.LogStore(tmp_path, world[0], cutoff=CUTOFF)
    store.add([world[1]["a", day] for day in DAYS[:2]], "a", DAYS[0])
    assert [*store.logs("a")] == [f"{DAYS[0]} a table", f"{DAYS[0]} a table (2)"]


def test_a_gain_that_grows_is_named_and_its_neighbours_are_not(store, world):
    assert not [*store.drift("a").notes, *store.drift("b").notes]
    (note,) = store.drift("drifts").notes
    named = note.code, note.values["kind"], note.values["place"]
    assert named == ("drift", "gain", world[0].joints[1])
    assert note.values["size"] == pytest.approx(GAIN**3, abs=0.02)


def test_a_log_that_differs_is_named_and_tells_nothing_of_drift(world, tmp_path):
    robot, logs = world
    store = feasid.LogStore(tmp_path, robot, cutoff=CUTOFF)
    for day in DAYS:
        store.add(logs["a", day], "a", day)
    store.add(arm.log(arm.truth(robot, load=1.5), seed=1), "a", "2026-11-30")
    (note,) = store.drift("a").notes
    assert (note.code, note.values["log"].split()[0]) == ("log-differs", "2026-11-30")


def test_compact_logs_are_small_and_fit_the_same_without_folds(world, tmp_path):
    robot, logs = world
    store = feasid.LogStore(tmp_path, robot, cutoff=CUTOFF)
    for day in DAYS[:2]:
        (path,) = store.add(logs["a", day], "a", day, compact=True)
        assert os.path.getsize(path) < SIZE
    live = [feasid.reduce(logs["a", d], robot, cutoff=CUTOFF).compact() for d in DAYS[:2]]
    np.testing.assert_allclose(store.fit("a").delta, feasid.fit(live, robot).delta, rtol=SAME)
    with pytest.raises(InputError, match="compact"):
        live[0] + feasid.reduce(logs["a", DAYS[1]], robot, cutoff=CUTOFF)


def test_refusals_name_log_robot_day_and_record(store, world, tmp_path):
    robot, logs = world
    with pytest.raises(InputError, match=r"is in the store already, as .*_0001_"):
        store.add(logs["a", DAYS[0]], "a", "2027-01-01")
    with pytest.raises(NotEnoughDataError, match="no log of 'c'; it has a, b, drifts"):
        store.drift("c")
    with pytest.raises(NotEnoughDataError, match="no log of 'a' since 2027-01-01"):
        store.logs("a", since="2027-01-01")
    with pytest.raises(InputError, match="other joint terms"):
        feasid.LogStore(store.folder, robot, friction=("viscous",)).drift("a")
    mixed = feasid.LogStore(tmp_path / "mixed", robot, cutoff=CUTOFF)
    mixed.add(logs["a", DAYS[0]], "a", DAYS[0])
    other = feasid.LogStore(mixed.folder, robot, cutoff=CUTOFF, friction=("viscous",))
    other.add(logs["a", DAYS[1]], "a", DAYS[1])
    with pytest.raises(InputError, match=f"{DAYS[1]} a table of 'a' was reduced with another"):
        mixed.drift("a")
    devices = dict.fromkeys(("CON", "prn", "Aux.1", "nul .txt", "com1", "LPT9"), "Windows")
    for name, word in {"..": "trim", "a ": "trim", "A": "only case tells", **devices}.items():
        with pytest.raises(InputError, match=f"no robot's name, give another: {word}"):
            store.add(logs["a", DAYS[0]], name)
    (tmp_path / "a").mkdir()
    good = next(mixed.folder.glob("a/*")).read_bytes()
    for content in (b"PAR1 no more", good.replace(b"a table", b"a fable", 1)):
        (tmp_path / "a" / "2026-01-01_0001_0.parquet").write_bytes(content)
        with pytest.raises(FeasidError, match="no record of a store"):
            feasid.LogStore(tmp_path, robot).logs("a")


def test_a_write_that_fails_loses_no_record_and_leaves_no_rest(world, tmp_path, monkeypatch):
    robot, logs = world
    store = feasid.LogStore(tmp_path, robot, cutoff=CUTOFF)
    store.add(logs["a", DAYS[0]], "a", DAYS[0])
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(FeasidError, match="No space left"):
        store.add(logs["a", DAYS[1]], "a", DAYS[1])
    monkeypatch.undo()
    assert sum(p.is_file() for p in tmp_path.rglob("*")) == len(store.logs("a")) == 1


def test_the_command_adds_lists_and_names_drift_with_its_status(world, tmp_path, capsys):
    robot, logs = world
    path = tmp_path / "arm.urdf"
    path.write_bytes(robot.source.text)
    (tmp_path / "logs").mkdir()
    for (name, day), log in logs.items():
        log.to_csv(tmp_path / "logs" / f"{name}{DAYS.index(day)}.csv", index=False)
    for name in ("a", "b", "drifts"):
        files = [str(tmp_path / "logs" / f"{name}*.csv")]
        add = ["store", "add", str(tmp_path / "store"), *files, "--robot", str(path)]
        assert main([*add, "--name", name, "--cutoff", "8"]) == 0
    place = [str(tmp_path / "store"), "--robot", str(path)]
    assert main(["store", "list", *place]) == 0
    assert capsys.readouterr().out.count("drifts3.csv") == 1
    page = tmp_path / "drift.html"
    assert main(["store", "drift", *place, "--name", "a"]) == 0
    assert main(["store", "drift", *place, "--name", "drifts", "--report", str(page)]) == 1
    assert robot.joints[1] in capsys.readouterr().out
    assert "<svg" in page.read_text()
    assert main(["store", "drift", *place, "--name", "a", "--day", DAYS[0]]) == 2
    assert main(["store", "fit", *place]) == 2
    err = capsys.readouterr().err
    assert "feasid store drift needs no --day" in err
    assert "feasid store fit needs --name" in err
