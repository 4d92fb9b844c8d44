"""The command line: what it prints, writes and returns, and that mistakes leave nothing behind."""

import re

import pandas as pd
import pytest
from logs import arm_parameters, simulate
from robots import read_arm

import feasid
from feasid.cli import COMMANDS, main


@pytest.fixture
def folder(here):
    robot = read_arm(here).with_joint_terms()
    delta = arm_parameters(robot)
    for name, seed in (("log.csv", 1), ("test.csv", 2)):
        simulate(robot, delta, seed, noise=0.03).to_csv(here / name, index=False)
    return here


def written(folder):
    return {p.name for p in folder.iterdir()} - {"arm.urdf", "log.csv", "test.csv"}


def test_fit_prints_writes_and_returns_zero(folder, capsys):
    status = main(
        ["fit", "log.csv", "--robot", "arm.urdf", "--out", "out.urdf", "--test", "test.csv",
         "--parameters", "base.csv", "--certificate", "proof.json"]
    )  # fmt: skip
    printed = capsys.readouterr()
    assert status == 0
    assert re.search(r"test error +\d\.\d+ % \(\d", printed.out)
    assert printed.err == ""  # progress only on a terminal
    assert written(folder) == {"out.urdf", "out.urdf.feasid.json", "base.csv", "proof.json"}
    assert "not in out.urdf: drive inertia (Ia) of shoulder, wheel_joint" in printed.out
    each = r"\S+ at shoulder, \S+ at slide, \S+ at wheel_joint"
    assert re.search(rf"offsets of the torque sensors: subtract them .* \({each}\)", printed.out)
    assert main(["verify", "proof.json"]) == 0
    assert "damping" in (folder / "out.urdf").read_text()
    assert feasid.load_robot(folder / "out.urdf").dof == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "lgo.csv", "--robot", "arm.urdf"], "did you mean|nearest|log.csv"),
        (["fit", "log.csv", "--robot", "arn.urdf"], r"arn\.urdf"),
        (["fit", "log.csv", "--robot", "arm.urdf", "--lock", "slide=x"], "not 'x' for 'slide'"),
        (["fit", "log.csv", "--robot", "arm.urdf", "--friction", "viscos"], "'viscous'"),
        (["fit", "log.csv", "--robot", "arm.urdf", "--gravity", "1,2"], r"shape \(3,\)"),
        (["fit", "log.csv", "--robot", "arm.urdf", "--cutoff", "1e9"], "cut-?off"),
        (["fti"], "did you mean 'fit'"),
    ],
)  # fmt: skip
def test_mistakes_are_named_and_write_nothing(folder, capsys, arguments, message):
    outputs = ["--out", "out.urdf"] if arguments[0] == "fit" else []
    assert main([*arguments, *outputs]) == 2
    assert re.search(message, capsys.readouterr().err)
    assert written(folder) == set()


def test_existing_output_is_kept(folder, capsys):
    (folder / "out.urdf").write_text("mine")
    arguments = ["fit", "log.csv", "--robot", "arm.urdf", "--out", "out.urdf"]
    assert main(arguments) == 2
    assert "exists" in capsys.readouterr().err
    assert (folder / "out.urdf").read_text() == "mine"
    assert main([*arguments, "--overwrite"]) == 0
    assert (folder / "out.urdf").read_text() != "mine"


@pytest.mark.slow  # a draw of tests/cli/test_json.py runs it, too
def test_demo_shows_three_models_of_a_packaged_log(here, capsys):
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"description +[\d.]+ % +2 of 7 +refuses it\n", out)
    assert re.search(r"feasid +[\d.]+ % +0 of 7 +loads it\n", out)
    model = pytest.importorskip("mujoco").MjModel.from_xml_path("kinova_identified.xml")
    assert model.nv == feasid.load_robot("kinova_identified.xml").dof == 7
    assert (here / "kinova_identified.html").is_file()


def test_help_and_version(capsys):
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in COMMANDS)
    assert main(["--version"]) == 0
    assert feasid.__version__ in capsys.readouterr().out
    for name in COMMANDS:
        with pytest.raises(SystemExit, match="0"):
            main([name, "--help"])


def test_options_of_fit_can_be_given_as_json(folder, capsys):
    arguments = ["fit", "log.csv", "--robot", "arm.urdf"]
    assert main([*arguments, "--option", "slack=0", "--option", 'weights={"slide": 2}']) == 0
    assert main([*arguments, "--option", "slak=0"]) == 2
    assert "did you mean 'slack'" in capsys.readouterr().err
    assert main([*arguments, "--option", "slack"]) == 2
    assert "NAME=VALUE" in capsys.readouterr().err


BELT = 'belt={"shoulder": 1, "wheel_joint": -2}'


def test_a_motor_of_several_joints_at_the_prompt(folder, capsys):
    arguments = ["fit", "log.csv", "--robot", "arm.urdf"]
    assert main([*arguments, "--couplings", BELT, "--verbose"]) == 0
    assert re.search(r"belt +\S+ +\S+", capsys.readouterr().out)
    assert main([*arguments, "--couplings", "belt=1"]) == 2
    assert "two or more joints" in capsys.readouterr().err
    assert main([*arguments, "--couplings", BELT.replace("shoulder", "sholder")]) == 2
    assert "did you mean 'shoulder'" in capsys.readouterr().err


def test_a_bound_is_about_the_robot_and_the_log(folder, capsys):
    fit = ["fit", "log.csv", "--robot", "arm.urdf", "--optimality", "bound.json"]
    assert main(fit) == 0
    assert "wrote bound.json" in capsys.readouterr().out
    asked = ["verify", "bound.json", "--robot", "arm.urdf", "--log"]
    assert main([*asked, "log.csv"]) == 0
    out = capsys.readouterr().out
    assert "bound.json: proves that no parameters fit better than" in out
    assert "about log.csv of arm.urdf under full consistency" in out
    # Where a clock starts changes no digit of the answer.
    pd.read_csv("log.csv").assign(t=lambda log: log["t"] + 1000.0).to_csv("later.csv", index=False)
    assert main([*asked, "later.csv"]) == 0
    assert "about later.csv of arm.urdf" in capsys.readouterr().out
    assert main([*asked, "test.csv"]) == 1
    assert "NOT about your data: row 0 of the data" in capsys.readouterr().out
    assert main(["verify", "bound.json", "--log", "log.csv"]) == 2
