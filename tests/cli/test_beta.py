"""Base parameters at the prompt: judged, corrected, certified, and certificates compared."""

import json

import numpy as np
import pandas as pd
import pytest
from logs import arm_parameters, simulate
from robots import ARM

import feasid
from benchmarks.second_checker import holds
from feasid.cli import main


@pytest.fixture
def given(here):
    """A robot's file, base parameters that can exist, and some that cannot."""
    (here / "arm.urdf").write_text(ARM)
    (here / "longer.urdf").write_text(ARM.replace('xyz="0 0 0.3"', 'xyz="0 0 0.31"'))
    robot = feasid.load_robot("arm.urdf").with_joint_terms()
    base = feasid.base_parameters(robot)
    beta = base.K @ arm_parameters(robot)
    good = pd.DataFrame({"base parameter": base.expressions, "value": beta})
    good.to_csv("good.csv", index=False)
    bad = beta - 5.0 * (np.arange(len(beta)) == len(beta) - 2)
    pd.DataFrame({"value": bad}).to_csv("bad.csv", index=False)
    return here


def test_base_parameters_are_judged_and_their_proofs_written(given, capsys):
    for name, status, words in (
        ("good.csv", 0, "feasible under full"),
        ("bad.csv", 1, "what clashes: fc of"),
    ):
        order = ["check", "--beta", name, "--robot", "arm.urdf", "--certificate", f"{name}.json"]
        assert main(order) == status
        assert words in capsys.readouterr().out
        assert holds(json.loads((given / f"{name}.json").read_text()))
        assert main(["verify", f"{name}.json"]) == 0


def test_certificates_are_bound_to_robot_and_question(given, capsys):
    main(["check", "--beta", "good.csv", "--robot", "arm.urdf", "--certificate", "g.json"])
    assert main(["verify", "g.json", "--robot", "arm.urdf", "--beta", "good.csv"]) == 0
    out = capsys.readouterr().out
    about = "about the 22 base parameters in good.csv of arm.urdf under full consistency\n"
    assert out.endswith(f"g.json: proves that the values are feasible {about}")
    assert main(["verify", "g.json", "--robot", "arm.urdf", "--beta", "bad.csv"]) == 1
    assert "g.json: NOT about your data: value " in capsys.readouterr().out
    assert main(["verify", "g.json", "--robot", "arm.urdf"]) == 1
    assert "NOT about your data" in capsys.readouterr().out
    assert main(["verify", "g.json", "--robot", "longer.urdf", "--beta", "good.csv"]) == 1
    assert "another geometry" in capsys.readouterr().out
    changed = json.loads((given / "g.json").read_text())
    changed["point"][0] += "1"
    (given / "changed.json").write_text(json.dumps(changed))
    assert main(["verify", "changed.json", "--robot", "arm.urdf", "--beta", "good.csv"]) == 1
    assert "changed.json: REJECTED: " in capsys.readouterr().out


def test_base_parameters_are_corrected(given, capsys):
    order = ["correct", "--beta", "bad.csv", "--robot", "arm.urdf", "--out", "new.csv"]
    assert main([*order, "--certificate", "c.json"]) == 0
    assert main(["check", "--beta", "new.csv", "--robot", "arm.urdf"]) == 0
    assert holds(json.loads((given / "c.json").read_text()))
    assert main(["verify", "c.json", "--robot", "arm.urdf", "--beta", "bad.csv"]) == 0
    assert "no parameters fit better than" in capsys.readouterr().out
    assert main(["verify", "c.json", "--robot", "arm.urdf", "--beta", "good.csv"]) == 1
    assert main(["verify", "c.json", "--robot", "arm.urdf"]) == 1


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (["check", "--beta", "good.csv"], "--beta needs --robot"),
        (["check"], "neither FILE nor --beta"),
        (["check", "arm.urdf", "--beta", "good.csv", "--robot", "arm.urdf"], "remove arm.urdf"),
        (["check", "arm.urdf", "--certificate", "x.json"], "--certificate belongs to --beta"),
        (["check", "--beta", "nan.csv", "--robot", "arm.urdf"], "has no number"),
        (["check", "--beta", "few.csv", "--robot", "arm.urdf"], "1 values do not fit arm"),
        (["check", "--beta", "none.csv", "--robot", "arm.urdf"], "no such file"),
        (["correct", "--out", "x.urdf"], "neither FILE nor --beta"),
    ],
)
def test_wrong_orders_are_named(given, capsys, order, message):
    (given / "nan.csv").write_text("value\n1\nx\n")
    (given / "few.csv").write_text("value\n1\n")
    assert main(order) == 2
    assert message in capsys.readouterr().err


def test_proofs_of_a_fit_are_bound_to_a_robot_with_held_joints_and_terms_of_its_own(here, capsys):
    """The walk of docs/certificates.md: friction that the log chose, a joint that was held."""
    (here / "arm.urdf").write_text(ARM)
    robot = feasid.load_robot("arm.urdf", lock={"shoulder": 0.0}).with_joint_terms()
    simulate(robot, arm_parameters(robot), 0, noise=0.02).to_csv("log.csv", index=False)
    about = ["--robot", "arm.urdf", "--lock", "shoulder=0"]
    options = ["--friction", "viscous,coulomb,sqrt"]
    files = ["--parameters", "b.csv", "--optimality", "bound.json"]
    assert main(["fit", "log.csv", *about, *options, *files]) == 0
    assert main(["check", "--beta", "b.csv", *about, "--certificate", "can.json"]) == 0
    assert "verdict.certificate" not in capsys.readouterr().out
    assert main(["verify", "can.json", *about, "--beta", "b.csv"]) == 0
    assert main(["verify", "bound.json", *about, "--log", "log.csv", *options]) == 0
    assert "NOT" not in capsys.readouterr().out
    assert main(["verify", "bound.json", "--robot", "arm.urdf"]) == 1
    assert "NOT about your data" in capsys.readouterr().out
    pd.read_csv("b.csv").iloc[::-1].to_csv("turned.csv", index=False)
    assert main(["check", "--beta", "turned.csv", *about]) == 2
    assert "but the values given name" in capsys.readouterr().err


def test_arguments_of_a_robot_that_is_not_asked_about_are_refused(given, capsys):
    for words, without in (
        (["check", "arm.urdf", "--lock", "shoulder=0"], "--beta"),
        (["correct", "arm.urdf", "--out", "new.urdf", "--gravity", "0,0,1"], "--beta"),
        (["verify", "g.json", "--floating"], "--robot"),
        (["verify", "g.json", "--total-mass", "3"], "--robot"),
        (["verify", "g.json", "--robot", "arm.urdf", "--cutoff", "3"], "--log"),
    ):
        assert main(words) == 2
        assert f"would be ignored without {without}" in capsys.readouterr().err
