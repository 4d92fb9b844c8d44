"""Several logs of a robot: which differs from the others, and in what."""

import random

import numpy as np
import pandas as pd
import pytest
from logs import log_frame
from seeds import seed_of

import feasid
from benchmarks import runs
from benchmarks.fleets import ARM_FRICTION, KINDS, odd_logs
from feasid.cli import main
from feasid.core.errors import InputError
from feasid.datasets import arm
from feasid.identification.effects.log_differences import DAILY, LIMIT

FIT = {"diagnose": False, "candidates": ()}


@pytest.fixture(scope="module")
def run_seed():
    return random.randrange(100_000)  # repeated by --randomly-seed


@pytest.mark.sampled(0.34, of="file")
@pytest.mark.parametrize("what", KINDS)
def test_the_log_that_differs_is_named_with_its_kind_and_size(what, run_seed):
    kind, logs, at, joint = odd_logs("kuka_lwr4", run_seed, what)
    fit = feasid.fit(logs, kind.robot, **FIT)
    (difference,) = fit.comparison.differences
    kinds = (what, "friction") if what == "everything" else (what,)  # most of it may be friction
    assert (difference.log, difference.kind) in [(at, k) for k in kinds]
    if what in ("friction", "gain"):
        assert difference.place == kind.robot.joints[joint]
        factor = {"friction": 3.0, "gain": 1.15}[what]
        assert difference.size == pytest.approx(factor, rel=0.1)  # a tenth decides no remedy
    if what == "load":
        mass = 0.1 * kind.delta[kind.robot.inertial_columns[:, -1]].sum()
        assert difference.size == pytest.approx(mass, rel=0.25)  # shared with neighbours
    table = fit.comparison.table
    assert list(table["differs in"] != "agrees") == [k == at for k in range(5)]
    errors = fit.comparison.left_out[:, joint]  # -1: of all joints
    assert errors[at] > 2 * np.median(np.delete(errors, at))
    assert table["information"].sum() == pytest.approx(1.0)
    (note,) = [n for n in fit.notes if n.code == "log-differs"]
    assert f"log {at + 1} differs from the other logs in {difference}" in str(note)


@pytest.mark.sampled(0.34, of="file")
@pytest.mark.parametrize("kind", ["tilt", "delay", "warm-up", ""])
def test_a_log_of_another_set_up_is_named_beside_other_friction_of_every_day(kind):
    """Friction differs by a tenth from log to log, also of two alone."""
    rng = np.random.default_rng(seed_of("drawn"))
    arm, at = runs.Arm("ur5_robot", rng), int(rng.integers(4))
    logs = [arm.log(runs.SAME, kind * (k == at)) for k in range(4 if kind else 2)]
    fit = feasid.fit(logs, arm.robot, diagnose=False)
    assert [(d.log, d.kind) for d in fit.comparison.differences] == [(at, kind)] * bool(kind)


@pytest.mark.sampled(0.34, of="file")
def test_friction_that_differs_by_day_names_no_log(run_seed):
    assert DAILY["friction"] == ARM_FRICTION
    kind, logs, _, _ = odd_logs("kuka_lwr4", run_seed, "daily")
    fit = feasid.fit(logs, kind.robot, **FIT)
    for difference in fit.comparison.differences:  # one of 35 draws beyond the limit: p < .01
        assert difference.kind == "friction"
        assert abs(np.log(difference.size)) > LIMIT * DAILY["friction"]


@pytest.mark.slow
def test_the_table_is_saved_and_one_log_has_none(tmp_path):
    kind, logs, _, _ = odd_logs("kuka_lwr4", 7, "everything", count=3)
    fit = feasid.fit(logs, kind.robot, **FIT)
    fit.save(tmp_path / "all.feasid")
    loaded = feasid.load(tmp_path / "all.feasid")
    assert str(loaded.comparison) == str(fit.comparison)
    pd.testing.assert_frame_equal(loaded.comparison.drift, fit.comparison.drift)
    assert repr(loaded.comparison.differences) == repr(fit.comparison.differences) != "()"
    assert feasid.fit(feasid.datasets.load("kuka_lwr4"), diagnose=False).comparison is None


@pytest.mark.slow
def test_the_command_line_names_the_file_and_leaves_it_out(here, capsys):
    kind, logs, at, _ = odd_logs("kuka_lwr4", 7, "load", count=3)
    feasid.write(kind.robot, "arm.urdf")
    names = [f"day{k}.csv" for k in range(3)]
    for name, log in zip(names, logs, strict=True):
        log_frame(joints=kind.robot.joints, **log).to_csv(name, index=False)
    robot = ["--robot", "arm.urdf"]
    assert main(["diagnose", *names, *robot]) == 1
    said = capsys.readouterr().out
    assert f"{names[at]} differs from the other logs in a load of" in said
    assert f"--without {names[at]}" in said
    assert main(["fit", *names, *robot, "--without", names[at], "--save", "rest.feasid"]) == 0
    assert "differs" not in capsys.readouterr().out
    assert main(["errors", "rest.feasid", *names]) == 0
    assert f"{names[at]} differs from the other logs" in capsys.readouterr().out
    assert main(["fit", *names, *robot, "--without", "day9.csv"]) == 2
    assert "no such log" in capsys.readouterr().err


FRICTION, OFFSET = np.array([0.8, 0.9, 1.1, 1.2]), np.array([-0.15, -0.05, 0.05, 0.15])
BENT = 0.1
"""Of a gain: the common fit of logs whose offsets differ is bent by so much at the wrist."""
WITHIN = 0.06
"""Of a factor on friction, and of an offset [N m]: three standard errors of 12 s of motion."""


def test_drift_of_friction_and_offsets_is_followed_from_log_to_log():
    robot, logs = arm.described(), []
    true = arm.truth(robot)
    elbow, wrist = true.drive_columns(1), true.drive_columns(2)
    for k, (factor, offset) in enumerate(zip(FRICTION, OFFSET, strict=True)):
        values = true.values.copy()
        values[[elbow["fv"], elbow["fc"]]] *= factor
        values[wrist["fo"]] += offset
        logs.append(arm.log(true.with_values(values), seed=k))
    fit = feasid.fit(logs, robot, calibration=None, **FIT)
    elbow, wrist = (fit.comparison.drift.xs(j, level="joint") for j in ("elbow", "wrist"))
    assert elbow["friction"].to_numpy() == pytest.approx(FRICTION, abs=WITHIN)
    offsets = wrist["offset"].to_numpy()
    assert offsets - offsets.mean() == pytest.approx(OFFSET, abs=WITHIN)
    assert wrist["friction"].to_numpy() == pytest.approx(1.0, abs=WITHIN)
    assert (wrist["friction std"] < WITHIN / 3).all()
    assert fit.comparison.drift["gain"].to_numpy() == pytest.approx(1.0, abs=BENT)
    assert len(fit.plot.drift().axes) == 3
    with pytest.raises(InputError, match="several logs"):
        feasid.fit(logs[0], robot, **FIT).plot.drift()
