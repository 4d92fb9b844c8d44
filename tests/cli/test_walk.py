"""A new user's walk: a log as people have it, mended by following the messages alone."""

import re
import shlex

import numpy as np
import pytest
from logs import arm_parameters, simulate
from robots import ARM

import feasid
from feasid.cli import main

ERROR = 0.03
"""Relative error of the mended fit: the noise of the simulated torques."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A CSV with its own names, degrees, an unnamed clock and a hole."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(ARM)
    robot = feasid.load_robot("arm.urdf")
    terms = robot.with_joint_terms()
    log = simulate(terms, arm_parameters(terms), 1, noise=0.05)
    log = log.drop(columns=[c for c in log if c.startswith("ddq_")])
    turning = [c for c in log if c.startswith(("q_", "dq_")) and "slide" not in c]
    log[turning] = np.rad2deg(log[turning])
    names = {"q": "position", "dq": "velocity", "tau": "effort"}
    log = log.rename(columns=lambda c: re.sub(r"^(q|dq|tau)_", lambda m: f"{names[m[1]]}_", c))
    log = log.rename(columns={"t": "stamp"})
    log.loc[700, "position_shoulder"] = np.nan
    log.to_csv("mine.csv", index=False)
    return tmp_path


def test_messages_alone_lead_to_a_fit(folder, capsys):
    order = ["doctor", "mine.csv", "--robot", "arm.urdf"]
    for _ in range(4):  # names, clock; what the values say comes together
        main(order)
        said = "".join(capsys.readouterr())
        mended = re.search(r"^mended: (.*)$", said, re.M)
        if mended:
            break
        found = re.search(r"--columns ('.*?'|[^' ]\S*)", said)
        assert found, said
        order = [
            *order[:4],
            "--columns",
            ",".join([*order[5:], *shlex.split(found[1].rstrip(",.;"))]),
        ]
    assert mended, said
    words = shlex.split(mended[1])
    assert {"--columns", "--nan", "--units"} <= set(words)
    assert main([*words[1:], "--out", "mine.urdf", "--save", "mine.feasid"]) == 0, (
        capsys.readouterr()
    )
    fit = feasid.load("mine.feasid")
    assert fit.relative_error["all"] < ERROR
    assert feasid.check("mine.urdf").feasible


def test_fit_itself_is_doubtful_and_names_the_options_that_help(folder, capsys):
    columns = '{"q": "position_{}", "dq": "velocity_{}", "tau": "effort_{}", "t": "stamp"}'
    status = main(["fit", "mine.csv", "--robot", "arm.urdf", "--columns", columns,
                   "--nan", "drop-segments"])  # fmt: skip
    said = capsys.readouterr()
    assert status == 0
    assert "doubtful" in said.out
    assert "--units" in said.out
    assert "cells without a finite" not in said.out + said.err


def test_a_gripper_without_effort_is_left_out_as_the_message_says(folder, capsys):
    robot = feasid.load_robot("arm.urdf").with_joint_terms()
    log = simulate(robot, arm_parameters(robot), 1, noise=0.05)
    log.assign(tau_wheel_joint=0.0).to_csv("gripper.csv", index=False)
    assert main(["doctor", "gripper.csv", "--robot", "arm.urdf"]) == 1
    advice = re.search(r"leave the joint out: (--measured \S+)", capsys.readouterr().out)
    order = ["fit", "gripper.csv", "--robot", "arm.urdf", *shlex.split(advice[1])]
    assert main(order) == 0
    said = capsys.readouterr().out
    assert ": good;" in said
    assert "dead" not in said


def test_currents_in_a_spreadsheet_become_torques_as_the_message_says(folder, capsys):
    """Semicolons, decimal commas, degrees with their sign in Latin-1, milliamperes."""
    constants = {"shoulder": 0.05, "slide": 0.08, "wheel_joint": 0.03}
    robot = feasid.load_robot("arm.urdf").with_joint_terms()
    truth = arm_parameters(robot)
    log = simulate(robot, truth, 1, samples=1500, noise=0.02).filter(regex="^(t$|q_|tau_)")
    for name in ("q_shoulder", "q_wheel_joint"):
        log[f"{name} [°]"] = np.rad2deg(log.pop(name))
    for joint, constant in constants.items():
        log[f"current_{joint} [mA]"] = 1000 * log.pop(f"tau_{joint}") / constant
    log.to_csv("currents.csv", sep=";", decimal=",", index=False, encoding="latin-1")
    order = ["fit", "currents.csv", "--robot", "arm.urdf"]
    assert main(order) == 2
    said = capsys.readouterr().err
    columns = re.search(r"--columns ('tau=\S+')", said)
    units = re.search(r"--units ((?:[^ ,]+=\.\.\.,?)+)", said)
    words = ",".join(f"tau_{joint}={constant}" for joint, constant in constants.items())
    assert units[1] == re.sub(r"=[^,]+", "=...", words)
    order += ["--columns", *shlex.split(columns[1]), "--units", words, "--save", "arm.feasid"]
    assert main(order) == 0, capsys.readouterr()
    fit = feasid.load("arm.feasid")
    assert fit.relative_error["all"] < ERROR
    other = simulate(robot, truth, 2, samples=1500).filter(regex="^(t$|q_|tau_)")
    for joint, constant in constants.items():
        other[f"current_{joint}"] = other.pop(f"tau_{joint}") / constant
    assert fit.errors(other)["all"] < ERROR
