"""Friction that changes with a logged temperature enters, at its joints, and only then."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import feasid
from feasid.core.errors import LogError
from feasid.logs.frame import prepare

RATE, SECONDS, NOISE = 100.0, 60.0, 0.1
SLOPES = -0.03, -0.06  #: Of dry [N m/K] and viscous friction [N m s/rad/K], at joint 2.
SURE = 5.0  #: Standard errors within which a fit finds them.
CLOSE = 0.4  #: RMS error of temperatures [K] in steps of .5 K: .19, and 1.1 of lines in 7 s.
STEP = 0.01  #: Between shares per K of exponential change that are tried.
NEAR = 1.3  #: Largest error over that of the arm whose friction does not change.
ROBOT = feasid.Robot.from_dh([(0, 0.5, 0, 0), (0, 0.4, 0, 0)], gravity=(0, -9.81, 0))
TRUE = ROBOT.with_joint_terms(("viscous", "coulomb"))
VALUES = {"Lxx": 0.02, "Lyy": 0.3, "Lzz": 0.3, "lx": -0.4, "m": 2.0, "fv": 2, "fc": 1, "Ia": 0.1}
WARMING = 22.0 + 25.0 * (1.0 - np.exp(-np.arange(SECONDS) / 40.0))  #: Every second [degrees C].
WARMING += 1.5 * np.sin(2 * np.pi * np.arange(SECONDS) / 5.0)  #: Windings follow the motion.
STILL = np.ones(int(SECONDS))
bare = partial(pd.DataFrame.drop, columns="T_2")


def record(warmth, seed=0, slopes=SLOPES, cold=0.0, fall=1e-9):
    """A log whose joint 2 has these temperatures every second; `cold`: friction that fades."""
    t, rng = np.arange(SECONDS * RATE) / RATE, np.random.default_rng(seed)
    waves = [(np.sqrt(k), 0.6 / np.sqrt(k), rng.uniform(0, 6, 2)) for k in range(1, 6)]
    q, dq, ddq = (
        sum(a * w**n * np.sin(w * t[:, None] + p + n * np.pi / 2) for w, a, p in waves)
        for n in range(3)
    )
    delta = np.array([VALUES.get(symbol, 0.0) for _, symbol in TRUE.parameter_names])
    tau = feasid.inverse_dynamics(TRUE, q, dq, ddq, parameters=delta)
    above = np.interp(t, np.arange(SECONDS), warmth) - 40.0
    change = np.outer(-np.expm1(-fall * above) / fall, slopes)
    change += cold * np.exp(-t / 20.0)[:, None]
    tau[:, 1] += change[:, 0] * np.sign(dq[:, 1]) + change[:, 1] * dq[:, 1]
    tau += NOISE * rng.standard_normal(tau.shape)
    seen = np.round(np.repeat(warmth, int(RATE)) * 2) / 2  # a sensor of half degrees, once a second
    columns = {f"{k}_{j + 1}": x[:, j] for k, x in (("q", q), ("tau", tau)) for j in range(2)}
    return pd.DataFrame({"t": t} | columns | {"T_2": seen})


def temperatures(fit):
    return [e for e in fit.calibration.confirmed if e.at.kind == "temperature"]


@pytest.mark.parametrize("fall", [1e-9, 0.03])
def test_slopes_are_those_of_the_truth_and_predict_cold_and_hot_arms(fall, tmp_path):
    """A log without the column is predicted at the model's temperature, with a note."""
    warm_fit = feasid.fit(record(WARMING, fall=fall), ROBOT, diagnose=False)
    (entry,) = temperatures(warm_fit)
    slopes = np.array(SLOPES) * np.exp(-fall * (entry.at.origin - 40.0))
    off = (np.array(entry.value) - slopes) / entry.deviation
    assert entry.joint == "2"
    assert np.abs(off).max() < SURE
    assert abs(entry.at.number - fall) <= STEP
    clean = feasid.fit(bare(record(WARMING, slopes=(0, 0))), ROBOT, diagnose=False)
    warm_fit.save(tmp_path / "a.feasid")
    read = feasid.load(tmp_path / "a.feasid")
    for warmth in (22.0 * STILL, 47.0 * STILL):
        other = record(warmth, 1, fall=fall)
        unit = clean.errors(bare(record(warmth, 1, slopes=(0, 0))))["all"]
        error, blind = (warm_fit.errors(log)["all"] for log in (other, bare(other)))
        assert error < NEAR * unit < 0.5 * blind
        pd.testing.assert_frame_equal(read.predict(other), warm_fit.predict(other))
    assert "degrees C: Coulomb friction -" in warm_fit.summary().text
    log = record(entry.at.origin * STILL, 1)
    there, absent = warm_fit.predict(log), warm_fit.predict(bare(log))
    np.testing.assert_allclose(there, absent)
    assert not there.attrs["notes"]
    for notes in (absent.attrs["notes"], warm_fit.errors(bare(log)).attrs["notes"]):
        assert [n.code for n in notes] == ["no-temperature"]
        assert f"2 ({entry.at.origin:g} degrees C)" in notes[0]


@pytest.mark.parametrize("kind", ["idle", "wandering", "constant", "of another"])
def test_a_column_that_does_not_explain_friction_stays_out(kind):
    steps = np.random.default_rng(5).standard_normal(len(STILL))
    other = {"wandering": 30.0 + np.cumsum(steps), "constant": 30.0 * STILL}
    fades = 0.0 if kind in ("idle", "of another") else 1.5
    log = record(other.get(kind, WARMING), slopes=(0, 0), cold=fades)
    names = {"T_2": "T_1"} if kind == "of another" else {}
    with_column = feasid.fit(log.rename(columns=names), ROBOT, diagnose=False)
    without = feasid.fit(bare(log), ROBOT, diagnose=False)
    assert not temperatures(with_column)
    assert any(e.at.kind == "warm-up" for e in with_column.calibration.confirmed) == bool(fades)
    np.testing.assert_allclose(with_column.delta, without.delta)


def test_two_logs_of_one_temperature_each_show_it_together():
    logs = [record(x * STILL, seed) for seed, x in enumerate((22.0, 45.0))]
    (entry,) = temperatures(feasid.fit(logs, ROBOT, diagnose=False))
    assert np.abs((np.array(entry.value) - SLOPES) / entry.deviation).max() < SURE


def test_logs_that_are_reduced_say_where_friction_is_taken_as_the_same():
    logs = [record(x * STILL, seed) for seed, x in enumerate((22.0, 45.0))]
    law = {"2": (*SLOPES, 40.0)}
    for options, mean in ({}, ["2"]), ({"friction_per_kelvin": law}, []):
        (note,) = (n for n in feasid.reduce(logs, ROBOT, **options).notes if "degrees" in n)
        assert note.values["mean"] == mean
        assert "2 22 to 45" in note
    unsearched = feasid.fit(logs, ROBOT, calibration=None, diagnose=False)
    assert any(note.values.get("mean") for note in unsearched.notes)


def test_friction_of_a_fleet_is_compared_at_one_temperature():
    """A robot that was cold had 30 % more friction than the others."""
    robots = {"warms up": record(WARMING), "was cold": record(22.0 * STILL, 1)}
    for factors in feasid.fit_fleet(robots, ROBOT, diagnose=False).friction.values():
        np.testing.assert_allclose(factors, 1.0, atol=0.02)


@pytest.mark.parametrize(("change", "options"), [
    (lambda d: d, {}),
    (lambda d: d.rename(columns={"T_2": "temperature_2"}), {}),
    (lambda d: d.rename(columns={"T_2": "T", "t": "time"}), {}),
    (lambda d: d.rename(columns={"T_2": "hot"}), {"columns": {"temperature_2": "hot"}}),
    (lambda d: d.assign(T_2=d["T_2"] + 273.15).rename(columns={"T_2": "T_2 [K]"}), {}),
    (lambda d: d.assign(T_2=d["T_2"] * 1.8 + 32), {"units": {"temperature": "°F"}}),
    (lambda d: d.assign(T_2=d["T_2"].where(d.index % int(RATE) == 0)), {}),
])  # fmt: skip
def test_a_column_is_read_by_any_of_its_names_and_units(change, options):
    motion = prepare(change(record(WARMING)), ROBOT, **options)
    true = np.interp(motion.runs[0].t, np.arange(SECONDS), WARMING)
    assert np.sqrt(np.mean((motion.runs[0].temperature[:, 1] - true) ** 2)) < CLOSE
    assert not any(note.code == "extra" for note in motion.notes)


@pytest.mark.parametrize(("change", "options", "words"), [
    (lambda d: d.assign(T_2=3000.0), {}, ["T_2", "3000", "row 0", "'K'"]),
    (lambda d: d.assign(T_2=d["T_2"] + 273.15), {}, ["units={'temperature': 'K'}"]),
    (lambda d: d.rename(columns={"T_2": "T_elbow"}), {}, ["T_elbow", "which has 1, 2"]),
    (bare, {"friction_per_kelvin": {"3": (0, 0, 20)}}, ["'3'", "no joint"]),
])  # fmt: skip
def test_impossible_columns_are_refused_by_name(change, options, words):
    with pytest.raises(LogError) as refusal:
        prepare(change(record(WARMING)), ROBOT, **options)
    assert all(word in str(refusal.value) for word in words), refusal.value
