"""Fits of logs in which the torques of some joints were not measured."""

import json

import numpy as np
import pytest
from logs import arm_parameters, simulate, values_for
from robots import ARM, read_arm

import feasid
from feasid.cli import main
from feasid.core.errors import InputError, LogError

MEASURED = ("slide", "wheel_joint")
TERMS = {"friction": ("viscous", "coulomb", "offset"), "drive_inertia": False}
FIT = {**TERMS, "candidates": (), "calibration": None}
"""Without a search, which the last test is about."""

EXACT = 2e-3
"""Of the largest base parameter, without noise: the low-pass and friction's soft change of sign
leave a tenth of it, the prior the rest."""


@pytest.fixture(scope="module")
def robot():
    return feasid.load_robot(ARM)


@pytest.fixture(scope="module")
def truth(robot):
    true = robot.with_joint_terms(drive_inertia=False)
    return true.with_values(arm_parameters(true))


@pytest.fixture(scope="module")
def log(truth):
    return simulate(truth, truth.values, 1).drop(columns="tau_shoulder")


@pytest.fixture(scope="module")
def fit(log, robot):
    return feasid.fit(log, robot, measured=MEASURED, **FIT)


@pytest.mark.parametrize(
    "options", [{}, {"prior": None}, {"weights": "wls"}, {"filtering": "signals"}]
)
def test_truth_is_found_in_what_the_other_joints_show(robot, truth, log, options):
    fit = feasid.fit(log, robot, measured=MEASURED, **FIT, **options)
    expected = fit.base.K @ values_for(fit.description, truth)
    assert np.abs(fit.beta - expected).max() < EXACT * np.abs(expected).max()
    alone = feasid.base_parameters(fit.description, measured=MEASURED)
    assert fit.base.expressions == alone.expressions
    assert len(fit.beta) < len(feasid.base_parameters(fit.description).independent)


def test_a_column_of_a_joint_that_is_not_measured_is_not_read(robot, log, fit):
    for values in (np.nan, 1e6):
        other = feasid.fit(log.assign(tau_shoulder=values), robot, measured=MEASURED, **FIT)
        assert np.array_equal(other.beta, fit.beta)


def test_it_is_said_and_counts_nowhere(robot, log, fit):
    note = next(n for n in fit.notes if n.code == "unmeasured")
    assert note.values["joints"] == ("shoulder",)
    assert "shoulder" in note
    assert fit.weights[0] == 0
    assert fit.uses_by_joint["feed-forward"].iloc[0] == "not known"
    assert fit.quality.level == "good", fit.quality
    errors = fit.errors(log)
    assert np.isnan(errors["shoulder"])
    assert errors.drop("shoulder").max() < EXACT
    assert "shoulder" not in fit.joint_terms.index.tolist()
    assert "shoulder" in str(fit.summary())
    later = log.assign(t=log["t"] + 1e-4)
    assert feasid.fit([log, later], robot, measured=MEASURED, **FIT).comparison is not None


@pytest.mark.parametrize("empty", [False, True])
def test_an_absent_or_empty_column_needs_no_option(robot, log, fit, empty):
    told = "shoulder (an empty column)" if empty else "shoulder (no column)"
    other = feasid.fit(log.assign(tau_shoulder=np.nan) if empty else log, robot, **FIT)
    assert np.array_equal(other.beta, fit.beta)
    assert told in next(n for n in other.notes if n.code == "no-torque")
    assert other.options["measured"] == MEASURED


def test_a_name_that_is_nearly_right_is_no_absent_column(robot, log):
    misspelt = log.assign(tau_shouldr=1.0)
    with pytest.raises(LogError, match=r"unused columns: .*tau_shouldr.* measured="):
        feasid.fit(misspelt, robot)
    with pytest.raises(LogError, match="tau_wheel_joint"):
        feasid.fit(log.drop(columns="tau_wheel_joint"), robot, measured=MEASURED)


def test_a_log_without_any_torque_is_the_error_it_was(robot, log):
    none = log.drop(columns=[c for c in log if c.startswith("tau_")])
    with pytest.raises(LogError, match="no torque column 'tau_shoulder'"):
        feasid.fit(none, robot)
    empty = log.assign(**dict.fromkeys(["tau_shoulder", "tau_slide", "tau_wheel_joint"], np.nan))
    with pytest.raises(LogError, match=r"tau_shoulder.*without a finite number"):
        feasid.fit(empty, robot)


def test_a_parquet_file_without_a_column(robot, log, fit, tmp_path):
    pytest.importorskip("pyarrow")
    log.to_parquet(tmp_path / "log.parquet")
    assert np.allclose(feasid.fit(tmp_path / "log.parquet", robot, **FIT).beta, fit.beta)


@pytest.mark.parametrize(("options", "word"), [
    ({"measured": ("slide", "wheel")}, "wheel"), ({"measured": ()}, "no joint"),
    ({"measured": "slide"}, "sequence of names"),
    ({"measured": MEASURED, "robust": "huber"}, "measured"),
    ({"measured": MEASURED, "transmission": np.eye(3)}, "measured"),
])  # fmt: skip
def test_what_cannot_be_is_named(robot, log, options, word):
    with pytest.raises((InputError, LogError), match=word):
        feasid.fit(log, robot, **options)


def test_robots_whose_torques_are_not_those_of_joints_are_refused(robot, log):
    shared = feasid.robot.drives.Drive("both", {"slide": 1.0, "shoulder": 1.0}, ("fv",))
    both = robot.with_joint_terms(couplings=[shared])
    for options in ({}, {"measured": MEASURED}):
        with pytest.raises(InputError, match="both"):
            feasid.fit(log, both, **options)
    following = feasid.Coupling("wheel_joint", {"shoulder": -2.0})
    coupled = feasid.Robot(robot.bodies, robot.gravity, couplings=[following])
    with pytest.raises(LogError, match="tau_shoulder"):
        feasid.fit(log, coupled)


@pytest.mark.slow
def test_it_lasts(log, fit, tmp_path):
    fit.save(tmp_path / "arm.feasid")
    saved = feasid.load(tmp_path / "arm.feasid")
    assert saved.base.expressions == fit.base.expressions
    assert np.array_equal(saved.errors(log).to_numpy(), fit.errors(log).to_numpy(), equal_nan=True)
    assert fit.certificate.verify()
    assert [*fit.predict(log)] == ["tau_shoulder", "tau_slide", "tau_wheel_joint"]
    fit.write(tmp_path / "arm.urdf")
    fit.report(tmp_path / "report.html")
    assert "shoulder" in (tmp_path / "report.html").read_text()
    with pytest.raises(InputError, match="not measured"):
        fit.plot()


def test_reductions_are_alike(robot, log, fit):
    reduced = feasid.reduce(log, robot, measured=MEASURED, **TERMS)
    again = feasid.fit(reduced, robot, measured=MEASURED, **FIT)
    assert np.allclose(again.beta, fit.beta, rtol=0, atol=EXACT)
    alone = feasid.fit(feasid.reduce(log, robot, **TERMS), robot, **FIT)
    assert np.array_equal(alone.beta, again.beta)


def test_the_prompt_has_it(log, here, capsys):
    read_arm(here)
    log.to_csv("log.csv", index=False)
    words = ["fit", "log.csv", "--robot", "arm.urdf", "--json"]
    assert main([*words, "--measured", "slide,wheel_joint"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert any("torque of shoulder: not measured" in str(n) for n in told["notes"])
    assert main([*words, "--measured", "slide,wheel"]) != 0
    assert "wheel" in capsys.readouterr().err


def test_two_reports_stand_side_by_side(fit, tmp_path, capsys):
    """A joint without torques has no error."""
    fit.save(tmp_path / "arm.feasid")
    arm, out = str(tmp_path / "arm.feasid"), tmp_path / "two.html"
    assert main(["report", arm, arm, "--out", str(out)]) == 0, capsys.readouterr().err
    assert "<td>shoulder</td><td></td>" in out.read_text()


def test_the_search_looks_at_the_joints_that_are_measured(robot, log):
    fit = feasid.fit(log, robot, measured=MEASURED, candidates=("sqrt",), diagnose=False)
    assert {*fit.selection["joint"]} <= {*MEASURED, ""}
