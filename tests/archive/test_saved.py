"""A fit that was saved is the fit: its numbers, its proof, its predictions."""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from logs import arm_parameters, simulate
from robots import ARM, read_arm
from written import changed_archive, model_of_archive

import feasid
from benchmarks.closed import MECHANISMS
from benchmarks.mechanisms import random_mechanism
from feasid.cli import main
from feasid.cli.output import SCHEMA
from feasid.core.arrays import DamagedError
from feasid.core.codec import decode, encode
from feasid.core.display import HEIGHT
from feasid.core.errors import InputError, LimitError, OutputError
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.results.archive.members import ROBOT_KINDS

RTOL = 1e-9
"""The same numbers, written as shortest decimals and read back; sums in another order."""


def plain(robot):
    """A robot as JSON and arrays, and back."""
    arrays = {}
    return json.loads(json.dumps(encode(robot, arrays, ROBOT_KINDS))), arrays


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An arm, two logs as files, and a saved fit of one of them."""
    folder = tmp_path_factory.mktemp("saved")
    robot = read_arm(folder).with_joint_terms()
    for seed, name in enumerate(("log.csv", "test.csv")):
        simulate(robot, arm_parameters(robot), seed, noise=0.02).to_csv(folder / name, index=False)
    return folder


@pytest.fixture(scope="module")
def fit(folder):
    found = feasid.fit(str(folder / "log.csv"), str(folder / "arm.urdf"))
    found.save(folder / "arm.feasid")
    return found


def test_what_a_certificate_does_not_cover_is_said_by_the_saved_fit_too(folder, fit):
    def round_com(p):
        return {"round com": cp.norm(p["rod"].com_moment) <= 1e3 * p["rod"].mass}

    feasible = feasible_set(fit.robot, constraints=round_com)
    limited = replace(fit, estimator=replace(fit.estimator, feasible=feasible))
    for name in ("once", "twice"):
        limited.save(folder / f"{name}.feasid")
        limited = feasid.load(folder / f"{name}.feasid")
        assert limited.certificate.outside == ("round com",)
        assert limited.certificate.verify().splitlines()[-1].startswith("outside: round com")
    assert fit.certificate.outside == ()


def test_a_fit_of_a_log_that_does_not_determine_all_is_read_again(tmp_path):
    robot = read_arm(tmp_path).with_joint_terms()
    log = simulate(robot, arm_parameters(robot), 3, samples=160)
    fit = feasid.fit(log, robot, prior=None, plausible=False, diagnose=False, candidates=())
    assert np.isinf(fit.covariance).any()
    fit.save(tmp_path / "short.feasid")
    again = feasid.load(tmp_path / "short.feasid")
    np.testing.assert_array_equal(again.covariance, fit.covariance)


def test_bounds_and_a_reference_are_read_again(folder, fit, tmp_path):
    asked = {"total_mass": 99.0, "reference": fit.robot.values[fit.robot.inertial_columns]}
    limited = feasid.fit(folder / "log.csv", folder / "arm.urdf", diagnose=False, **asked)
    limited.save(tmp_path / "limited.feasid")
    ours, theirs = (f.estimator for f in (limited, feasid.load(tmp_path / "limited.feasid")))
    np.testing.assert_array_equal(theirs.reference, ours.reference)
    of_others = [[c.name for c in e.on(e.base).feasible.linear] for e in (ours, theirs)]
    assert of_others[0] == of_others[1] == [c.name for c in ours.feasible.linear]


def test_a_saved_fit_shows_itself_as_the_fit_does(folder, fit):
    """The same 20 lines in text and HTML, down to where to read on."""
    model = feasid.load(folder / "arm.feasid")
    assert model.errors(str(folder / "log.csv")).attrs["leakage"]
    ours, theirs = fit.display(), model.display()
    assert replace(theirs, more="") == replace(ours, more="")
    lines = repr(model).splitlines()
    assert len(lines) <= HEIGHT
    assert lines[: len(ours.measures) + 1] == repr(fit).splitlines()[: len(ours.measures) + 1]
    assert f"saved {model.made['created']} by feasid" in repr(model)
    assert model._repr_html_() == fit._repr_html_()


@pytest.mark.parametrize("name", ["out.urdf", "out.xml"])
def test_a_saved_fit_is_written_as_the_fit_is(folder, fit, tmp_path, name):
    model = feasid.load(folder / "arm.feasid")
    ours = fit.write(tmp_path / name, test=folder / "test.csv")
    theirs = model.write(tmp_path / f"saved_{name}", test=folder / "test.csv")
    assert (tmp_path / name).read_bytes() == (tmp_path / f"saved_{name}").read_bytes()
    assert theirs.missing == ours.missing
    assert theirs.written.lost == ours.written.lost
    common = [name for name in theirs.errors if name in ours.errors]
    assert any("on the test" in column for column in common)
    pd.testing.assert_frame_equal(theirs.errors[common], ours.errors[common], rtol=RTOL)
    client = "pinocchio" if name.endswith("urdf") else "mujoco"
    seen = [m.verify(tmp_path / name, client, folder / "test.csv") for m in (model, fit)]
    pd.testing.assert_frame_equal(*seen, rtol=RTOL)


def test_it_is_text_and_plain_arrays(folder, fit):
    with zipfile.ZipFile(folder / "arm.feasid") as archive:
        assert set(archive.namelist()) == {
            "model.json", "arrays.npz", "reduced.npz", "certificate.json", "description",
        }  # fmt: skip
        assert archive.read("description").decode() == ARM
        (folder / "proof.json").write_bytes(archive.read("certificate.json"))
    made = feasid.load(folder / "arm.feasid").made
    assert made["feasid"] == feasid.__version__
    assert made["logs"][0]["name"].endswith("log.csv")
    assert len(made["logs"][0]["sha256"]) == 64
    assert main(["verify", str(folder / "proof.json")]) == 0
    assert (folder / "arm.feasid").stat().st_size < 1_000_000  # the log's folds are kept, too


def test_damaged_newer_and_foreign_files_are_named(folder, fit, tmp_path):
    source = folder / "arm.feasid"
    model = model_of_archive(source)
    newer = json.dumps({**model, "version": 99})
    older = json.dumps({k: v for k, v in model.items() if k != "meaning"} | {"version": 2})
    foreign = json.dumps({**model, "format": "else"})
    kept = model["record"]["of"]
    place = int(kept["delta"]["name"].removeprefix("a"))
    law = kept["contact_errors"]["of"]["widening"]["name"]

    def with_part(**parts):
        return json.dumps({**model, "record": {**model["record"], "of": {**kept, **parts}}})

    def with_arrays(**arrays):
        with zipfile.ZipFile(source) as archive:
            numbers = dict(np.load(io.BytesIO(archive.read("arrays.npz"))))
        packed = io.BytesIO()
        np.savez(packed, **{**numbers, **arrays})
        return packed.getvalue()

    name, n = f"a{place}", len(fit.delta)
    for words, members in (
        ("format 99, .*update feasid", {"model.json": newer}),
        ("format 2, meaning 0; .*fit again", {"model.json": older}),
        ("format is 'else'", {"model.json": foreign}),
        ("wings", {"model.json": with_part(wings=2)}),
        ("torque_shift must be a number, not .x", {"model.json": with_part(torque_shift="x")}),
        ("notes must be a sequence", {"model.json": with_part(notes=[1])}),
        ("its numbers", {"model.json": with_part(numbers={"is": "mapping", "items": []})}),
        ("which does not belong to it", {"model.json": with_part(noise={"is": "Path", "of": {}})}),
        ("not a saved fit", {"model.json": "{"}),
        ("lacks arrays.npz", {"arrays.npz": None}),
        ("its parameters break", {"arrays.npz": with_arrays(**{name: -np.ones(n)})}),
        ("of <U4, which are no numbers", {"arrays.npz": with_arrays(**{name: np.array("ab" * 2)})}),
        ("solution has shape", {"arrays.npz": with_arrays(**{name: np.ones(n + 1)})}),
        ("observer's widening has shape", {"arrays.npz": with_arrays(**{law: np.ones(9)})}),
    ):
        with pytest.raises(InputError, match=words):
            feasid.load(changed_archive(source, tmp_path / "x.feasid", **members))
    (tmp_path / "x.feasid").write_text("no archive")
    with pytest.raises(InputError, match="not a saved fit"):
        feasid.load(tmp_path / "x.feasid")
    with pytest.raises(InputError, match="no such file"):
        feasid.load(tmp_path / "none.feasid")
    with pytest.raises(OutputError, match="overwrite"):
        fit.save(source)
    big = changed_archive(source, tmp_path / "big.feasid", description=b"0" * 1000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("feasid.results.archive.members.MAX_UNPACKED_BYTES", 1000)
        with pytest.raises(LimitError, match="limit of 1000"):
            feasid.load(big)


def parts_that_differ(one, two, path="robot"):
    """Where two descriptions are not the same, part by part; empty when they are equal."""
    if is_dataclass(one) and type(one) is type(two):
        names = [f.name for f in fields(one) if f.name != "source"]
        pairs = {f"{path}.{n}": (getattr(one, n), getattr(two, n)) for n in names}
    elif isinstance(one, Mapping) and isinstance(two, Mapping) and [*one] == [*two]:
        pairs = {f"{path}[{n!r}]": (one[n], two[n]) for n in one}
    elif isinstance(one, tuple | list) and len(one) == len(two):
        pairs = {f"{path}[{k}]": pair for k, pair in enumerate(zip(one, two, strict=True))}
    else:
        return [] if np.array_equal(one, two, equal_nan=isinstance(one, np.ndarray)) else [path]
    return [place for name, pair in pairs.items() for place in parts_that_differ(*pair, name)]


def test_saved_descriptions_equal_themselves():
    rng = np.random.default_rng(1)
    rotor = feasid.Rotor(50.0, np.eye(3), np.zeros(3), values=[1e-4, 2e-4, 0.0, 0.1])
    bodies = (
        feasid.Body("a", None, inertial=np.arange(10.0), rotor=rotor),
        feasid.Body("b", "a", position=[0, 0, 0.5], motion=np.eye(6)[:, :3]),
    )
    drive = feasid.Drive("a", {"a": 2.0}, ("fv", "k"), [0.5, 3.0], rest=0.25)
    robots = [
        feasid.Robot(bodies, (0, 0, -1.62), "both", (drive,)),
        *(random_mechanism(rng, 6).robot() for _ in range(10)),
    ]
    robots += [feasid.load_robot(text) for text in MECHANISMS.values()]
    assert any(robot.loops for robot in robots)
    for robot in robots:
        assert parts_that_differ(robot, decode(*plain(robot), ROBOT_KINDS)) == []


@pytest.mark.parametrize("name", [["a"], 3, None, {"is": "mapping", "items": []}])
def test_names_are_texts(name):
    data, arrays = plain(feasid.load_robot(ARM))
    data["of"]["bodies"][1]["of"]["name"] = name
    with pytest.raises(DamagedError, match=r"a Body in it is damaged: (name|parent) must be"):
        decode(data, arrays, ROBOT_KINDS)


# -- at the prompt ------------------------------------------------------------------------------


def test_the_prompt_saves_shows_judges_and_predicts(folder, fit, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    saved, out = str(tmp_path / "m.feasid"), str(tmp_path / "tau.csv")
    words = ["fit", "log.csv", "--robot", "arm.urdf", "--test", "test.csv", "--save", saved]
    assert main([*words, "--json"]) == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert told["schema"] == SCHEMA
    assert f"wrote {saved}" in printed.err
    assert told["errors"]["test"]["all"] == pytest.approx(fit.errors("test.csv")["all"])
    assert main(["show", saved]) == 0
    short = capsys.readouterr().out
    assert "its certificate holds" in short
    assert len(short.splitlines()) <= HEIGHT + 2
    assert main(["show", saved, "--verbose"]) == 0
    assert len(capsys.readouterr().out.splitlines()) > len(short.splitlines())
    assert main(["show", saved, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["certificate_holds"] is True
    assert main(["errors", saved, "test.csv"]) == 0
    assert f"{100 * told['errors']['test']['all']:.2f}%" in capsys.readouterr().out
    assert main(["predict", saved, "test.csv", "--out", out]) == 0
    np.testing.assert_allclose(
        pd.read_csv(out, index_col="row"), fit.predict("test.csv"), rtol=1e-7, atol=1e-8
    )
    assert main(["predict", saved, "test.csv", "--out", out]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert main(["fit", "log.csv", "--robot", "arm.urdf", "--verify-with", "mujoco"]) == 2
    assert "--out" in capsys.readouterr().err
