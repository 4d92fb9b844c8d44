"""Walks of new users, from files as people have them to an answer, by printed advice alone."""

import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest
from logs import arm_parameters, simulate
from robots import ARM

import feasid
from feasid.cli import main

ERROR = 0.03
"""Relative error of the mended fit: the noise of the simulated torques."""

WALKING_ERROR = 1.05
"""Times the truth's error on another gait."""


@pytest.fixture
def folder(here):
    """A CSV with its own names, degrees, an unnamed clock and a hole."""
    (here / "arm.urdf").write_text(ARM)
    terms = feasid.load_robot("arm.urdf").with_joint_terms()
    log = simulate(terms, arm_parameters(terms), 1, noise=0.05)
    log = log.drop(columns=[c for c in log if c.startswith("ddq_")])
    turning = [c for c in log if c.startswith(("q_", "dq_")) and "slide" not in c]
    log[turning] = np.rad2deg(log[turning])
    names = {"q": "position", "dq": "velocity", "tau": "effort"}
    log = log.rename(columns=lambda c: re.sub(r"^(q|dq|tau)_", lambda m: f"{names[m[1]]}_", c))
    log = log.rename(columns={"t": "stamp"})
    log.loc[700, "position_shoulder"] = np.nan
    log.to_csv("mine.csv", index=False)
    return here


@pytest.mark.sampled(0.34, of="file")
def test_messages_alone_lead_to_a_fit(folder, capsys):
    order = ["diagnose", "mine.csv", "--robot", "arm.urdf"]
    for _ in range(4):  # names, clock; what the values say comes together
        main(order)
        said = "".join(capsys.readouterr())
        mended = re.search(r"^fixed: (.*)$", said, re.M)
        if mended:
            break
        found = re.search(r"--columns ('.*?'|[^' ]\S*)", said)
        assert found, said
        order = [
            *order[:4], "--columns", ",".join([*order[5:], *shlex.split(found[1].rstrip(",.;"))]),
        ]  # fmt: skip
    assert mended, said
    words = shlex.split(mended[1])
    assert {"--columns", "--nan", "--units"} <= set(words)
    order = [*words[1:], "--out", "mine.urdf", "--save", "mine.feasid"]
    assert main(order) == 0, capsys.readouterr()
    assert feasid.load("mine.feasid").relative_error["all"] < ERROR
    assert feasid.check("mine.urdf").feasible


@pytest.mark.sampled(0.34, of="file")
def test_fit_itself_is_useless_and_names_the_options_that_help(folder, capsys):
    columns = '{"q": "position_{}", "dq": "velocity_{}", "tau": "effort_{}", "t": "stamp"}'
    status = main(["fit", "mine.csv", "--robot", "arm.urdf", "--columns", columns,
                   "--nan", "drop-segments"])  # fmt: skip
    said = capsys.readouterr()
    assert status == 5
    assert "DO NOT USE THIS MODEL" in said.out
    assert "--units" in said.out
    assert "cells without a finite" not in said.out + said.err


def printed(capsys):
    """All that a command said."""
    return "".join(capsys.readouterr())


def advice(said, pattern):
    """The words of a command or option that was printed."""
    return shlex.split(re.search(pattern, said, re.M)[1])


@pytest.mark.sampled(0.34, of="file")
def test_a_bag_with_a_gripper_without_effort(folder, capsys):
    """ROS 2: an MCAP bag, a description in xacro, one joint whose effort is always 0."""
    recorded = pytest.importorskip("recorded")
    pytest.importorskip("xacro")
    own = 'xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:property name="m" value="1.25"/>'
    text = re.sub(r"xmlns:xacro=.*?>", own, ARM.replace('mass value="1.25"', 'mass value="${m}"'))
    (folder / "arm.urdf.xacro").write_text(text)
    robot = feasid.load_robot("arm.urdf").with_joint_terms()
    log = simulate(robot, arm_parameters(robot), 1, samples=3000, noise=0.05)
    log["tau_wheel_joint"] = 0.0
    recorded.write(folder / "bag", recorded.batches(log, robot.joints))
    assert main(["diagnose", "bag", "--robot", "arm.urdf.xacro"]) == 1
    order = advice(printed(capsys), "^fixed: feasid (.*)")
    assert order[-2:] == ["--measured", "shoulder,slide"]
    assert main([*order, "--out", "identified.urdf"]) == 0
    said = printed(capsys)
    assert ": good;" in said
    assert "!!" not in said
    assert main(["check", "identified.urdf"]) == 0


@pytest.mark.slow
def test_controls_of_a_simulation_become_torques(folder, capsys):
    """MJCF with actuators; the log has MuJoCo's names, and no torques."""
    recorded = pytest.importorskip("recorded")
    (folder / "arm.xml").write_text(recorded.ACTUATED.replace('mass="1"', 'mass="1.3"'))
    _, log = recorded.simulated()
    mine = {"t": "time", "q_a": "qpos_a", "q_b": "qpos_b", "ctrl_A": "ctrl_a", "ctrl_B": "ctrl_b"}
    log = log.rename(columns=mine)
    log[[*mine.values()]].to_csv("sim.csv", index=False)
    order = ["diagnose", "sim.csv", "--robot", "arm.xml"]
    assert main(order) == 1
    columns = advice(printed(capsys), "--columns (.*)$")[0]
    assert main([*order, "--columns", columns]) == 1
    more = advice(printed(capsys), "--columns (.*)$")[0]
    assert main([*order, "--columns", f"{columns},{more}"]) == 0
    order = advice(printed(capsys), "^next: feasid (.*)")
    assert main([*order, "--out", "identified.xml", "--save", "arm.feasid"]) == 0
    # Joint a is clipped, and the log is short: contact is refused, gravity and control are not.
    assert not re.search(r"^!! NO +(Gravity|Feed)", printed(capsys), re.MULTILINE)
    assert feasid.check("identified.xml").feasible
    test = log[["time", "qpos_a", "qpos_b", "tau_a", "tau_b"]]
    assert feasid.load("arm.feasid").errors(test)["all"] < ERROR


def trot_log(quadruped, robot, gait, seed, known):
    """Every fourth row of a trot's log, with forces of the feet, stance flags, or both."""
    log = quadruped.frame(robot, quadruped.trot(robot, gait, 3.0, seed)).iloc[::4].copy()
    for leg in quadruped.FEET:
        force = log[[f"force_{leg}_{a}" for a in "xyz"]]
        log[f"contact_{leg}"] = (force.abs().max(axis=1) > 1.0).astype(int)
    dropped = {"force": "contact_", "contact": "force_", "both": "none"}[known]
    return log.filter(regex=f"^(?!{dropped})")


@pytest.mark.parametrize("known", ["force", "contact", "both"])
@pytest.mark.slow
def test_a_quadruped_with_forces_or_flags(folder, capsys, known):
    """A trot in MuJoCo: feet are links fixed to the shanks; forces, stance flags, or both.

    On another gait the fit is judged beside the truth: feet are balls of 12 mm, which touch the
    ground below the links that are named, and torques of that are nobody's parameters.
    """
    quadruped, floating = pytest.importorskip("quadruped"), pytest.importorskip("floating")
    robot, path = floating.loaded("solo12")
    (folder / "solo.urdf").write_text(path.read_text())
    log = trot_log(quadruped, robot, quadruped.Gait(1.6, 0.25, 0.5, 0.1), 0, known)
    log.to_csv("trot.csv", index=False)
    order = ["diagnose", "trot.csv", "--robot", "solo.urdf"]
    assert main(order) == 1
    order += advice(printed(capsys), "is fixed: (--floating)$")
    assert main(order) == 1
    order += advice(printed(capsys), "(--contacts .*)$")
    assert main(order) == 0
    order = advice(printed(capsys), "^next: feasid (.*)")
    assert main([*order, "--save", "solo.feasid"]) == 0
    fit = feasid.load("solo.feasid")
    other = trot_log(quadruped, robot, quadruped.Gait(2.1, 0.18, 0.7, 0.1), 1, known)
    reduced = feasid.reduce(other, base=fit.base, **fit.test_options())
    values = dict(zip(robot.parameter_names, robot.values, strict=True))
    truth = fit.base.K @ [values.get(name, 0.0) for name in fit.base.robot.parameter_names]
    errors = [fit.errors_of(reduced, beta)["all"] for beta in (fit.beta, truth)]
    assert errors[0] <= WALKING_ERROR * errors[1]


def test_models_of_a_cad_program_are_checked(folder, capsys):
    """In CI: exit status, lines, SARIF; the correction that is printed passes.

    The action's own script is run in tests/inspection/test_check_elsewhere.py.
    """
    (folder / "bad arm.urdf").write_text(ARM.replace('izz="0.0001"', 'izz="0.1"'))
    assert main(["check", "*.urdf"]) == 1
    order = advice(printed(capsys), "corrected by: feasid (.*)$")
    assert main(["check", "--format", "sarif", "*.urdf"]) == 1
    results = json.loads(printed(capsys))["runs"][0]["results"]
    assert {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in results}
    assert main(order) == 0
    assert main(["check", order[-1]]) == 0
    assert main(["check", "--format", "github", "bad arm.urdf"]) == 1
    assert "::error file=bad arm.urdf,line=44" in printed(capsys)


def test_a_published_table_is_judged_and_corrected(folder, capsys):
    """Base parameters as papers print them: names of their own, decimal commas, deviations."""
    robot = feasid.load_robot("arm.urdf").with_joint_terms()
    base = feasid.base_parameters(robot)
    beta = base.K @ arm_parameters(robot)
    beta[list(base.expressions).index("wheel.fc")] = -0.1
    table = pd.DataFrame(
        {"parameter": [f"b{k}" for k in range(len(beta))], "OLS": beta, "std": 0.1}
    )
    table.to_csv("table.csv", sep=";", decimal=",", index=False)
    order = ["check", "--beta", "table.csv", "--robot", "arm.urdf"]
    assert main(order) == 2
    name = re.search("call the column of base parameters '(.*?)'", printed(capsys))[1]
    table.rename(columns={"OLS": name}).to_csv("table.csv", sep=";", decimal=",", index=False)
    assert main([*order, "--certificate", "proof.json"]) == 1
    assert main(["verify", "proof.json"]) == 0
    order = advice(printed(capsys), "corrected by: feasid (.*)$")
    assert main(order) == 0
    assert main(["check", "--beta", order[-1], "--robot", "arm.urdf"]) == 0


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
