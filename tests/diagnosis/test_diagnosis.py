"""The diagnosis names what was put into a log, and nothing else."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from logs import arm_and_log

import feasid
from benchmarks import faults
from benchmarks.faults import LOGS, alarms, is_named_first, serious
from feasid import inverse_dynamics
from feasid.cli import main
from feasid.core.errors import DescriptionError, InputError
from feasid.identification.effects.log_findings import check_columns, check_excitation
from feasid.identification.regression.duplicates import find_leakage
from feasid.logs.checks.findings import Finding, merge_options, sort_findings
from feasid.logs.frame import prepare
from feasid.logs.recording import Recording
from feasid.robot.inertia import from_mass_com_inertia


def columns(log, robot=None):
    """What the columns alone show: without fits, in milliseconds."""
    robot = log.attrs["robot"] if robot is None else robot
    return check_columns(Recording.from_source(log), robot, {})


@pytest.mark.slow
@pytest.mark.parametrize("name", [*LOGS, "staubli_tx40"])
def test_clean_logs_raise_no_alarm(name):
    log, robot, options = faults.recorded(name)
    assert alarms(name, feasid.diagnose(log, robot, **options)) == []


@pytest.mark.parametrize("name", LOGS)
def test_columns_of_clean_logs_raise_no_alarm(name):
    assert serious(columns(faults.clean(name)[0])) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", faults.KINDS)
@pytest.mark.parametrize("name", LOGS)
def test_one_fault_of_each_kind_is_named(kind, name):
    assert is_named_first(kind, name, seed=1)


PLAIN = {"cutoff": 10.0, "candidates": (), "diagnose": False}


@pytest.fixture(scope="module")
def df():
    """The simulated log without faults; its robot is `df.attrs["robot"]`."""
    return faults.simulated()


@pytest.fixture(scope="module")
def whole(df):
    """Error of a fit to the log without faults."""
    return feasid.fit(df, **PLAIN).relative_error["all"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["degrees", "swap", "sign", "nan"])
def test_the_remedy_mends_the_fit(kind, whole, df):
    rng = np.random.default_rng(3)
    broken, _ = faults.inject(kind, df, "simulated", rng)
    options = feasid.diagnose(broken, df.attrs["robot"]).options
    mended = feasid.diagnose(broken, df.attrs["robot"], **options)
    assert not [f for f in serious(mended) if f.code == kind and kind != "nan"]
    fit = feasid.fit(broken, df.attrs["robot"], **PLAIN, **options)
    assert fit.relative_error["all"] == pytest.approx(whole, rel=0.2)


@pytest.mark.slow
def test_z1_torques_are_ahead_of_its_motion_and_the_fit_takes_it_out():
    found = feasid.diagnose(feasid.datasets.load("unitree_z1"))
    (late,) = [f for f in found if f.code == "calibrated"]
    (early,) = re.findall(r"torques are (\S+) \+- .* ms ahead of the motion", late.message)
    assert 20 < float(early) < 40
    assert "delay" not in found.options


@pytest.mark.slow
@pytest.mark.parametrize("gravity", [(9.81, 0, 0), (0, 0, 9.81), (0, -9.81, 0)])
def test_wrong_gravity_is_seen_with_its_direction(gravity, df):
    found = feasid.diagnose(df, df.attrs["robot"].with_gravity(gravity))
    (seen,) = [f for f in found if f.code == "gravity"]
    assert ast.literal_eval(seen.remedy.split("gravity=")[1].removesuffix(")")) == (0, 0, -9.81)
    assert seen.gain > 0.5


@pytest.mark.slow
def test_a_payload_that_the_description_lacks(df):
    robot = df.attrs["robot"]
    last = robot.bodies[-1]
    load = from_mass_com_inertia(4.0, np.array([0, 0, 0.1]), 0.01 * np.eye(3))
    heavy = replace(
        robot, bodies=(*robot.bodies[:-1], replace(last, inertial=last.inertial + load))
    )
    run = prepare(df, robot, cutoff=15.0).runs[0]
    extra = inverse_dynamics(heavy, run.q, run.dq, run.ddq) - inverse_dynamics(
        robot, run.q, run.dq, run.ddq
    )
    loaded = df.iloc[run.rows].reset_index(drop=True)
    for k, joint in enumerate(robot.joints):
        loaded[f"tau_{joint}"] += extra[:, k]
    payload = next(f for f in feasid.diagnose(loaded, robot) if f.code == "payload")
    assert "load that it lacks" in payload.message
    assert payload.joints == (last.joint,)


def one_column(change, column="tau_2"):
    def broken(df):
        df = df.copy()
        df[column] = change(df[column].to_numpy().copy())
        return df

    return broken


def put(rows, value):
    def change(x):
        x[rows] = value
        return x

    return change


def ticks(df):
    return df.assign(t=(df.t * 1e6).round().astype("int64") + 1_700_000_000_000_000)


def wrapped(df):
    df = df.drop(columns=[c for c in df if c.startswith("dq_")])
    turning = df.q_1 + 0.9 * df.t
    return df.assign(q_1=(turning + np.pi) % (2 * np.pi) - np.pi)


def hit(df):
    df = df.copy()
    df.loc[(df.t > 7.0) & (df.t < 7.4), "tau_2"] += 3 * df.tau_2.std()
    return df


def late(df, rows):
    torques = [c for c in df if c.startswith("tau")]
    out = df.copy()
    out[torques] = out[torques].shift(rows)
    return out.iloc[rows:].reset_index(drop=True)


def jittered(df):
    rng = np.random.default_rng(0)
    return df.assign(t=df.t + 0.0016 * rng.uniform(-1, 1, len(df)))


def held(kind):
    def hold(df):
        rows = df.index // 4 * 4
        return df.assign(**{c: df[c].to_numpy()[rows] for c in df if c.startswith(kind)})

    return hold


TABLE = {
    30: (lambda d: d.set_axis([*d.columns[:-1], "q_1"], axis=1), "columns", ["tau_6"]),
    31: (lambda d: d.rename(columns={"q_2": "q_tow"}), "columns", ["'2'", "q_2"]),
    32: (lambda d: d.assign(status=21.0), "extra", ["status"]),
    33: (lambda d: d.assign(tau_2="-"), "columns", ["tau_2", "'-'"]),
    34: (one_column(put(slice(10, 14), np.nan)), "nan", ["tau_2", "4 cells", "row 10"]),
    35: (one_column(put(slice(None), 1.5)), "dead", ["tau_2", "1.5"]),
    "35 part": (
        one_column(lambda x: put(slice(900, 1200), x[900])(x)),
        "stuck",
        ["tau_2", "1.2 s"],
    ),
    36: (one_column(lambda x: x.clip(-np.inf, np.quantile(x, 0.8))), "saturated", ["tau_2"]),
    "36 coarse": (one_column(lambda x: 8 * np.round(x / 8)), "coarse", ["tau_2", "levels"]),
    37: (lambda d: d.iloc[[0, 2, 1, *range(3, len(d))]], "time", ["row 2", "sort=True"]),
    38: (lambda d: d.assign(t=d.t.where(d.index != 5, d.t[4])), "doubled", ["1 row", "other"]),
    "38 same": (lambda d: d.iloc[[*range(6), *range(5, len(d))]], "doubled", ["and its values"]),
    39: (lambda d: d.drop(index=range(900, 990)), "gap", ["row 899", "0.36"]),
    "39 jitter": (jittered, "jitter", ["0.00", "arrival"]),
    "39 held": (held("q_"), "held", ["positions change only every 4 rows", "12 ms"]),
    "39 torques": (held("tau_"), "held", ["torques change only every 4 rows", "12 ms"]),
    40: (ticks, "ticks", ["taken as us", "250 Hz"]),
    41: (lambda d: pd.concat([d, d]), "time", ["restarts", "run"]),
    42: (one_column(np.rad2deg, "q_3"), "degrees", ["q_3", "units={'q_3': 'deg'}"]),
    43: (one_column(np.negative, "dq_3"), "velocity", ["dq_3", "opposite sign"]),
    48: (one_column(lambda x: x + 3.0, "q_1"), "limits", ["q_1", "range"]),
    "48 turns": (wrapped, "wrapped", ["'1'", "whole turn"]),
    "49 none": (lambda d: d.iloc[:0], "columns", ["no rows"]),
    "52 spike": (one_column(put(777, 900.0)), "spike", ["tau_2", "row 777"]),
    53: (lambda d: d.assign(**{c: d[c].iloc[0] for c in d if c[0] in "qd"}), "dead", ["q_1"]),
    73: (one_column(lambda x: x.astype(complex)), "columns", ["tau_2", "complex"]),
}
"""Row of the fault table: what is done to a log, the finding's code, and what it must say."""


DYNAMICS = {
    "45 unit": (one_column(lambda x: 1000 * x), "gear", ["tau_2", "0.001"]),
    50: (lambda d: d, "excitation", ["full rank"]),
    52: (hit, "outliers", ["[2]", "contact"]),
}
"""The same of what only fits tell."""

SHORT = {
    49: (lambda d: d.iloc[:10], "unusable", ["too few samples"]),
    "49 one": (lambda d: d.iloc[:1], "unusable", ["too few samples", "has 1"]),
}


@pytest.mark.parametrize(
    "row", [*TABLE, *SHORT, *(pytest.param(row, marks=pytest.mark.slow) for row in DYNAMICS)]
)
def test_fault_table(row, df):
    break_it, code, words = {**TABLE, **SHORT, **DYNAMICS}[row]
    findings = (columns if row in TABLE else feasid.diagnose)(break_it(df), df.attrs["robot"])
    text = "\n".join(str(f) for f in findings if f.code == code)
    assert text, code
    assert all(word in text for word in words), text


@pytest.mark.slow
def test_torques_that_are_late_are_told_with_their_delay(df):
    found = feasid.diagnose(late(df, 12), df.attrs["robot"])
    (told,) = [f.message for f in found if f.code == "calibrated"]
    (numbers,) = re.findall(r"torques are (\S+) \+- (\S+) ms behind the motion", told)
    delay, deviation = map(float, numbers)
    assert abs(delay - 12 * 4.0) < 3 * deviation < 3.0  # rows of 4 ms


def test_a_velocity_that_is_a_multiple_gets_its_unit(df):
    found = serious(columns(df.assign(dq_4=1.5 * df.dq_4), df.attrs["robot"]))[0]
    assert (found.code, found.joints) == ("velocity", ("4",))
    assert "is 1.5 times the position's derivative" in found.message
    assert found.remedy == "units={'dq_4': 0.667}"
    turned = serious(columns(df.assign(dq_4=np.rad2deg(df.dq_4)), df.attrs["robot"]))[0]
    assert "'deg/s'" in turned.remedy
    exchanged = df.rename(columns={"dq_2": "dq_5", "dq_5": "dq_2"})
    swapped = serious(columns(exchanged, df.attrs["robot"]))[0]
    assert (swapped.code, {*swapped.joints}) == ("swap", {"2", "5"})
    backwards = serious(columns(df.assign(dq_4=-df.dq_4), df.attrs["robot"]))[0]
    assert "has the opposite sign" in backwards.message
    noise = np.random.default_rng(0).normal(size=len(df))
    other = serious(columns(df.assign(dq_4=noise), df.attrs["robot"]))[0]
    assert "is not the derivative of the position" in other.message


def test_a_joint_that_comes_to_rest_is_not_called_stuck(df):
    slow = 1 / (1 + np.exp((df.t - 8) / 0.5))
    calm = df.assign(q_4=np.round(0.2 + 0.3 * slow, 5)).filter(regex="^(?!dq_)")
    assert (calm.q_4.diff() == 0).sum() > 1000
    assert not [f for f in columns(calm, df.attrs["robot"]) if f.code == "stuck"]


def test_unseen_parameters_name_the_idle_joints(df):
    robot = df.attrs["robot"]
    idle = ["2", "3", "4", "5", "6"]
    lazy = df.assign(**{f"q_{j}": 0.3 + 1e-7 * np.sin(df.t + int(j)) for j in idle})
    lazy = lazy.drop(columns=[c for c in df if c.startswith("dq_")])
    (note,) = check_excitation(prepare(lazy, robot), robot)
    assert "excited; the others" in note.message
    assert set(note.joints) == set(idle)


@pytest.mark.slow
def test_synthetic_logs_without_noise_are_fine():
    df = faults.simulated(seed=4)
    robot = df.attrs["robot"]
    names = [f"{k}_{j}" for k in ("q", "dq") for j in robot.joints]
    q, dq = (df[[n for n in names if n.startswith(k)]].to_numpy() for k in ("q_", "dq_"))
    tau = inverse_dynamics(robot, q, dq, np.gradient(dq, axis=0) * 250)
    exact = df.assign(**{f"tau_{j}": tau[:, k] for k, j in enumerate(robot.joints)})
    assert serious(feasid.diagnose(exact, robot)) == []


def test_results_print_and_merge():
    a = Finding("a", "note", "x", options={"units": {"q": "deg"}, "exclude": ((1, 2),)})
    b = Finding(
        "b", "error", "y", "do", ("j",), options={"units": {"t": "ms"}, "exclude": ((3, 4),)}
    )
    assert [f.code for f in sort_findings([a, b])] == ["b", "a"]
    both = {"units": {"q": "deg", "t": "ms"}, "exclude": ((1, 2), (3, 4))}
    assert merge_options([a.options, b.options]) == both
    terms = [{"candidates": ("sqrt", "load")}, {"candidates": ("load", "spring")}]
    assert merge_options(terms) == {"candidates": ("sqrt", "load", "spring")}


def test_a_wrong_sign_is_found_and_mended(tmp_path):
    robot, log = arm_and_log(tmp_path, 1500, 0.01)
    joint = robot.joints[0]
    log[f"tau_{joint}"] *= -1
    diagnosis = feasid.diagnose(log, robot)
    assert diagnosis.options == {"units": {f"tau_{joint}": -1.0}}
    assert 0.2 < diagnosis.findings[0].gain < 1.0
    assert f"error   sign [{joint}]" in repr(diagnosis)
    assert f"&#x27;tau_{joint}&#x27;" in diagnosis._repr_html_()
    assert diagnosis.frame().loc[0, "code"] == "sign"
    assert "sign" in diagnosis


def test_no_robot_is_an_error():
    with pytest.raises(InputError, match="no robot"):
        feasid.diagnose(pd.DataFrame({"t": [0.0]}))


@pytest.mark.slow
def test_diagnose_prints_a_screen_and_its_exit_status(tmp_path, capsys):
    folder = feasid.datasets.CHECKOUT / "kuka_lwr4"
    arguments = ["--robot", str(folder / "kuka_lwr4.urdf")]
    log = folder / "measurement_1.csv.gz"
    assert main(["diagnose", str(log), *arguments]) == 0
    assert "5027 samples" in capsys.readouterr().out
    df = feasid.read_log(log)
    df["tau_lwr_1_joint"] *= -1
    df.to_csv(tmp_path / "bad.csv", index=False)
    assert main(["diagnose", str(tmp_path / "bad.csv"), *arguments, "--json"]) == 1
    first = json.loads(capsys.readouterr().out)["findings"][0]
    assert (first["code"], first["joints"]) == ("sign", ["lwr_1_joint"])
    assert main(["diagnose", str(tmp_path / "bda.csv"), *arguments]) == 2
    assert "did you mean 'bad.csv'" in capsys.readouterr().err


def test_testing_on_the_fitted_rows_or_motion_is_said():
    df = feasid.datasets.load("kuka_lwr4")
    robot = df.attrs["robot"]
    first, second = (
        feasid.reduce(df[df.run == f"measurement_{k}"], robot, cutoff=8.0) for k in (1, 2)
    )
    assert "is the fitted log" in find_leakage(first, first)
    assert "repeats the fitted motion" in find_leakage(first, second)
    one = df[df.run == "measurement_1"]
    halves = [feasid.reduce(part, robot, cutoff=8.0) for part in (one[:2500], one[2500:])]
    assert find_leakage(*halves) is None


def test_extra_columns_are_listed_once_and_change_nothing(df):
    more = df.assign(humidity=21.0, state="idle")
    motion = prepare(more, df.attrs["robot"])
    np.testing.assert_array_equal(motion.runs[0].q, prepare(df, df.attrs["robot"]).runs[0].q)
    assert sum("humidity, state" in note for note in motion.notes) == 1


@pytest.mark.slow
def test_an_exchange_is_mended_in_the_columns_of_the_log(df):
    robot = df.attrs["robot"]
    names = {f"{k}_{j}": f"{k}[{j}]" for k in ("q", "dq", "tau") for j in robot.joints}
    other = df.rename(columns=names)
    other[["tau[2]", "tau[5]"]] = other[["tau[5]", "tau[2]"]].to_numpy()
    found = serious(feasid.diagnose(other, robot, columns=names))[0]
    assert found.options == {"columns": {"tau_2": "tau[5]", "tau_5": "tau[2]"}}
    mended = feasid.diagnose(other, robot, columns={**names, **found.options["columns"]})
    assert mended.ok


@pytest.mark.slow
def test_signs_without_inertials_rest_on_friction(df):
    robot = df.attrs["robot"]
    bare = replace(robot, bodies=tuple(replace(b, inertial=None) for b in robot.bodies))
    assert feasid.diagnose(df, bare).ok
    for joint in robot.joints:
        flipped = df.assign(**{f"tau_{joint}": -df[f"tau_{joint}"]})
        found = serious(feasid.diagnose(flipped, bare))
        assert [(f.code, f.joints) for f in found] == [("sign", (joint,))]


def test_couplings_are_a_name_and_two_joints_that_exist():
    log = faults.simulated(duration=5.0)
    robot = log.attrs["robot"]
    for wrist in ({"5": 1.0}, {"5": 1.0, "6": 0.0}):
        with pytest.raises(InputError, match="two or more joints"):
            feasid.fit(log, robot, couplings={"wrist": wrist})
    with pytest.raises(InputError, match="joint '66'"):
        feasid.fit(log, robot, couplings={"wrist": {"5": 1.0, "66": 1.0}})
    name = robot.bodies[0].name
    with pytest.raises(DescriptionError, match=name):
        feasid.fit(log, robot, couplings={name: {"5": 1.0, "6": 1.0}})


@pytest.mark.slow
def test_torques_without_weight_are_named_first():
    log = feasid.datasets.load("kinova_gen3")
    robot, bodies = log.attrs["robot"], feasid.fit(log).robot.without_joint_terms()
    q = log[[f"q_{j}" for j in robot.joints]].to_numpy()
    log[[f"tau_{j}" for j in robot.joints]] -= inverse_dynamics(bodies, q, 0 * q, 0 * q)
    first = feasid.diagnose(log).findings[0]
    assert (first.code, first.values["gravity"]) == ("gravity", (0.0, 0.0, 0.0))
    assert "gravity was subtracted" in feasid.fit(log).display().troubles[1]
