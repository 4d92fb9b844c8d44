"""Currents, loads without a sign, and motors that are off, in recorded and simulated logs."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from logs import arm_parameters, simulate
from robots import ARM
from seeds import NEW_SEEDS, seed_of

import feasid
from feasid import datasets
from feasid.cli import main
from feasid.core.errors import InputError, UselessFitError
from feasid.identification.effects.log_findings import check_columns
from feasid.identification.estimation.torque_scale import scale_note
from feasid.identification.regression.folds import find_period
from feasid.identification.regression.reduce import reduce_groups

SAME = 1e-6
"""Share of the largest base parameter: rows that are left out change nothing but sums' rounding."""

QUICK = {"candidates": (), "calibration": None}


@cache
def arm():
    robot = feasid.load_robot(ARM)
    terms = robot.with_joint_terms()
    delta = arm_parameters(terms)
    log = simulate(terms, delta, 3, samples=3000, noise=0.01)
    bodies = zip(robot.bodies, terms.inertial_columns, strict=True)
    robot = replace(robot, bodies=tuple(replace(b, inertial=delta[c]) for b, c in bodies))
    return robot, log[[c for c in log if not c.startswith("ddq_")]]


@cache
def ur5(run):
    df = datasets.load("ur5")
    robot = df.attrs["robot"]
    return robot, df[df["run"] == run].reset_index(drop=True)


def called_torques(df):
    return df.rename(columns=lambda c: c.replace("current_", "tau_"))


@pytest.mark.slow
@pytest.mark.parametrize("run", ["no8", "no9"])
def test_currents_of_a_ur5_are_told_by_their_size(run):
    robot, df = ur5(run)
    diagnosis = feasid.diagnose(called_torques(df), robot)
    (found,) = (f for f in diagnosis if f.code == "scale")
    assert 0.05 < found.values["factor"] < 0.15
    assert "tau_2" in found.columns
    assert "feasid.torque_constants" in found.message


@pytest.mark.sampled(0.34, of="file")
@pytest.mark.parametrize("run", [pytest.param("no8", marks=pytest.mark.slow), "no9"])
def test_no_fit_of_currents_is_good(run):
    robot, df = ur5(run)
    fit = feasid.fit(called_torques(df), robot)
    assert fit.quality.level != "good"
    assert [n for n in fit.notes if n.code == "scale" and "feasid.torque_constants" in n]


def test_currents_of_a_ur5_are_told_by_their_name():
    robot, df = ur5("no9")
    fit = feasid.fit(df, robot, columns={"tau": "current_{}"}, diagnose=False, **QUICK)
    assert fit.quality.level != "good"
    assert [n for n in fit.notes if n.code == "currents" and "torque_constants" in n]


@pytest.mark.parametrize(
    "name", ["unitree_z1", "kinova_gen3", "kuka_lwr4", "double_pendulum", "ur3"]
)
def test_torques_in_newton_metres_are_not_taken_for_currents(name):
    df = datasets.load(name)
    base, parts, _ = reduce_groups([df], df.attrs["robot"], df.attrs["options"], "payload")
    assert scale_note(parts[0], base, None) is None


@pytest.mark.sampled(0.34, of="file")
def test_no_controller_is_given_a_load_from_currents():
    robot, log = arm()
    torques = [c for c in log if c.startswith("tau_")]
    amperes = log.assign(**{c: log[c] / 12.0 for c in torques})
    heavy = amperes.copy()
    heavy[torques] *= 1.2
    load = feasid.payload(heavy, amperes, robot)
    assert "scale" in [n.code for n in load.notes]
    assert "!! the torques are" in repr(load)
    with pytest.raises(
        InputError, match="this load cannot be given to a controller: the torques are"
    ):
        load.to("ur")
    named = {c: f"{c}_A" for c in torques}
    load = feasid.payload(heavy.rename(columns=named), amperes.rename(columns=named), robot)
    with pytest.raises(InputError, match="currents of"):
        load.to("ur")
    load = feasid.payload(heavy, amperes, robot, units={"tau": 12.0})
    assert not {"scale", "currents"} & {n.code for n in load.notes}


def test_loads_without_a_sign_are_named():
    df = datasets.load("so101")
    found = check_columns(feasid.Recording(df), df.attrs["robot"], {})
    codes = [f.code for f in found]
    assert codes.count("unsigned") == 1
    assert "saturated" not in codes


@pytest.mark.slow
def test_signs_of_a_ur3_are_corrected_as_told():
    df = datasets.load("ur3")
    found = feasid.diagnose(df, df.attrs["robot"])
    assert {*found.options["units"].values()} == {-1.0}
    assert "scale" not in [f.code for f in found]


def test_rows_with_the_motors_off_are_left_out_and_told():
    robot, log = arm()
    rows = 400
    torques = [c for c in log if c.startswith("tau_")]
    ends = [
        pd.concat([log.iloc[[k]]] * rows).assign(**dict.fromkeys(torques, 0.0)) for k in (0, -1)
    ]
    still = pd.concat([ends[0], log, ends[1]], ignore_index=True)
    still = still.assign(t=np.arange(len(still)) * 0.005)
    factors = np.r_[np.zeros(rows), np.ones(len(log)), np.zeros(rows)]
    still[[c for c in log if c.startswith("dq_")]] *= factors[:, None]
    plain, fit = (feasid.fit(x, robot, diagnose=False, **QUICK) for x in (log, still))
    scale = np.abs(plain.beta).max()
    np.testing.assert_allclose(fit.beta, plain.beta, rtol=0, atol=SAME * scale)
    (note,) = [n for n in fit.notes if n.code == "unpowered"]
    assert note.values["rows"] == 2 * rows


def test_constants_come_with_what_cannot_be_read():
    numbers = np.array([9.0, np.nan, -3.0]), np.full(3, 0.1), np.zeros(1)
    constants = feasid.TorqueConstants(("a", "b", "c"), *numbers)
    assert [*constants.units] == ["tau_a"]
    assert constants.undetermined == ("b", "c")
    assert "b, c cannot be read as torques" in repr(constants)
    assert "leave them out of a fit, measured=['a']" in repr(constants)
    assert "another body (body=)" in repr(constants)


@pytest.mark.slow
def test_a_load_knows_its_body_at_the_prompt(tmp_path, capsys):
    robot, log = arm()
    (tmp_path / "arm.urdf").write_text(ARM)
    log.to_csv(tmp_path / "log.csv", index=False)
    known = {"body": "nowhere", "mass": 1, "centre": [0, 0, 0], "inertia": np.eye(3).tolist()}
    (tmp_path / "load.json").write_text(json.dumps(known))
    words = ["torque-constants", str(tmp_path / "log.csv"), "--robot", str(tmp_path / "arm.urdf")]
    words += ["--loaded", str(tmp_path / "log.csv"), "--load", str(tmp_path / "load.json")]
    assert main(words) == 2
    assert "'nowhere'" in capsys.readouterr().err
    assert main([*words, "--body", robot.bodies[0].name]) == 2
    assert "describes a load at 'nowhere'" in capsys.readouterr().err


@pytest.mark.parametrize("seed", NEW_SEEDS)
def test_a_motion_that_repeats_has_its_shortest_period(seed):
    rng = np.random.default_rng(seed_of(seed))
    period, times = rng.uniform(3.0, 10.0), rng.uniform(2.2, 5.0)
    t = np.arange(0.0, times * period, 0.01)
    a, b = rng.normal(size=(2, 5, 4))
    phase = 2 * np.pi / period * np.outer(t, np.arange(1, 6))
    dq = np.sin(phase) @ a + np.cos(phase) @ b
    dq *= np.minimum(t / rng.uniform(0.1, 2.0), 1.0)[:, None]  # from rest
    dq += rng.uniform(0.0, 0.03) * rng.normal(size=dq.shape)
    assert find_period([SimpleNamespace(t=t, dq=dq)]) == pytest.approx(period, abs=0.05)
    dq = np.sin(phase * t[:, None] / period) @ a  # a chirp
    assert find_period([SimpleNamespace(t=t, dq=dq)]) is None


@pytest.mark.sampled(0.34, of="file")
def test_a_fit_of_currents_writes_no_robot(tmp_path, capsys):
    robot, log = arm()
    (tmp_path / "arm.urdf").write_text(ARM)
    named = {c: f"{c} [A]" for c in log if c.startswith("tau_")}
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path in paths:
        log.rename(columns=named).to_csv(path, index=False)
    out = tmp_path / "fitted.urdf"
    words = ["fit", str(paths[0]), "--robot", str(tmp_path / "arm.urdf"), "--out", str(out)]
    assert main([*words, "--diagnose", "no", "--calibration", "none"]) == 5
    assert "currents of shoulder" in capsys.readouterr().err
    assert not out.exists()
    fit = feasid.fit(paths[0], robot, diagnose=False, **QUICK)
    with pytest.raises(UselessFitError, match="currents of"):
        fit.write(out)
    found = check_columns(feasid.Recording(paths), robot, {})
    assert "currents" in [f.code for f in found]
    assert found.samples == 2 * len(log)
    assert found.duration == pytest.approx(2 * np.ptp(log["t"]))
