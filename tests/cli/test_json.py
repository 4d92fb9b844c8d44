"""``--json`` on every command: one object of one schema on standard output, nothing beside it."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from logs import arm_parameters, simulate
from robots import ARM

import feasid
from feasid.cli import COMMANDS, main
from feasid.cli.output import SCHEMA

ROBOT = ("--robot", "arm.urdf")

ORDERS = {
    "fit": ["log.csv", *ROBOT, "--test", "test.csv", "--out", "out.urdf", "--save", "arm.feasid"],
    "report": ["arm.feasid", "arm.feasid", "--out", "two.html"],
    "show": ["arm.feasid"],
    "errors": ["arm.feasid", "test.csv"],
    "ranges": ["arm.feasid", "upper.m"],
    "predict": ["arm.feasid", "test.csv", "--out", "torques.csv"],
    "simulate": ["arm.feasid", "test.csv", "--robot", "out.urdf", "--horizon", "0.05"],
    "sample": ["out.urdf", "--count", "2", "--out", "drawn"],
    "export": ["arm.feasid", "--c", "arm.c"],
    "reduce": ["log.csv", "test.csv", *ROBOT, "--out", "both.reduced"],
    "demo": ["--out", "kinova.xml"],
    "diagnose": ["log.csv", *ROBOT],
    "explain": ["short"],
    "payload": ["log.csv", "--without", "test.csv", *ROBOT, "--out", "load.json"],
    "torque-constants": ["log.csv", *ROBOT, "--loaded", "test.csv", "--load", "known.json"],
    "fleet": ["robots", *ROBOT],
    "store": ["add", "store", "log.csv", *ROBOT, "--name", "arm 7"],
    "check": ["arm.urdf"],
    "correct": ["arm.urdf", "--out", "fixed.urdf"],
    "compare": ["arm.urdf", "out.urdf"],
    "excite": ["arm.urdf", "--duration", "4", "--harmonics", "2", "--time-limit", "0.5",
               "--position", "1", "--velocity", "2", "--acceleration", "9", "--no-collision",
               "--out", "motion.csv"],
    "base-parameters": ["arm.urdf"],
    "verify": ["proof.json"],
    "replay": ["log.csv", *ROBOT, "--window", "4", "--interval", "2"],
}  # fmt: skip

MORE = [
    ["base-parameters", "arm.urdf", "--experiment", "static", "--for", "everything"],
    ["check", "arm.urdf", "--bodies"],
    ["check", "--beta", "beta.csv", *ROBOT],
    ["correct", "--beta", "beta.csv", *ROBOT, "--out", "closest.csv"],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("json")
    (folder / "arm.urdf").write_text(ARM)
    known = {"mass": 1.0, "centre": [0, 0, 0.1], "inertia": (1e-3 * np.eye(3)).tolist()}
    (folder / "known.json").write_text(json.dumps(known))
    robot = feasid.load_robot(folder / "arm.urdf").with_joint_terms()
    truth = arm_parameters(robot)
    for seed, name in ((1, "log.csv"), (2, "test.csv")):
        log = simulate(robot, truth, seed, samples=1500, noise=0.02)
        log.to_csv(folder / name, index=False)
    (folder / "robots").mkdir()
    for name in ("log.csv", "test.csv"):
        shutil.copy(folder / name, folder / "robots")
    fit = feasid.fit(folder / "log.csv", folder / "arm.urdf")
    fit.save(folder / "arm.feasid")
    fit.write(folder / "out.urdf")
    fit.certificate.save(folder / "proof.json")
    base = feasid.base_parameters(robot)
    pd.DataFrame({"value": base.K @ truth}, base.expressions).to_csv(folder / "beta.csv")
    return folder


def told(order, capsys):
    status = main([*order, "--json"])
    printed = capsys.readouterr()
    assert status in (0, 1), printed.err
    data = json.loads(printed.out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert data | {"schema": SCHEMA, "command": order[0], "feasid": feasid.__version__} == data
    return data


def test_every_command_has_an_order_here():
    assert set(ORDERS) | {"completion"} == set(COMMANDS)  # a script, for shells


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("command", ORDERS)
def test_every_command_answers_in_one_schema(command, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    overwrite = ("fit", "predict", "export", "reduce", "demo", "payload", "correct", "excite")
    order = [command, *ORDERS[command], *(["--overwrite"] * (command in (*overwrite, "sample")))]
    assert len(told(order, capsys)) > 3


@pytest.mark.parametrize("order", MORE, ids=" ".join)
def test_so_does_each_of_its_questions(order, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    assert len(told(order, capsys)) > 3


def test_numbers_are_those_of_the_library(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    saved = feasid.load("arm.feasid")
    shown = told(["show", "arm.feasid"], capsys)
    np.testing.assert_array_equal([*shown["parameters"].values()], saved.robot.values)
    errors = told(["errors", "arm.feasid", "test.csv"], capsys)["errors"]["test.csv"]
    assert errors == saved.errors("test.csv").to_dict()


def test_a_saved_fit_stands_for_its_robot(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    count = told(["base-parameters", "arm.feasid"], capsys)["standard_parameters"]
    assert count == feasid.load("arm.feasid").robot.size
    assert main(["diagnose", "test.csv", "--robot", "arm.feasid", "--gravity", "0,0,-9.8"]) == 2
    assert "--gravity would be ignored" in capsys.readouterr().err
