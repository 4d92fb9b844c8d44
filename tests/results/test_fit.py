"""The main job: truth comes back, errors are honest, nothing infeasible or unverified leaves."""

import numpy as np
import pytest
from logs import arm_parameters, inertia_matrix, simulate
from robots import ARM

import feasid
from feasid import datasets
from feasid.certificate import definiteness
from feasid.core.errors import InputError, LogError, NotEnoughDataError
from feasid.datasets import wam
from feasid.robot import inertia

EXACT = 1e-6  # the solver stops at 1e-9 of the scaled cost; weak directions amplify that
RIDGED = 2e-3  # the ridge on friction is (1e-3)^2 of its column; weak directions amplify that


@pytest.fixture(scope="module")
def robot():
    return feasid.load_robot(ARM).without_joint_terms()


@pytest.fixture(scope="module")
def truth(robot):
    """With joint terms, and a second body that is heavier than described."""
    terms = robot.with_joint_terms()
    heavier = arm_parameters(terms)
    heavier[terms.inertial_columns[1]] *= 1.4
    return terms.with_values(heavier)


def log_of(truth, seed, **more):
    return simulate(truth, truth.values, seed, **more)


@pytest.fixture(scope="module")
def fit(robot, truth):
    """Of a log with noise."""
    return feasid.fit(log_of(truth, 1, noise=0.05), robot)


@pytest.mark.parametrize(("friction", "tolerance"), [((), EXACT), (None, RIDGED)])
def test_truth_comes_back_from_exact_data(robot, truth, friction, tolerance):
    if friction == ():
        truth = robot.with_values(truth.values[truth.inertial_columns.ravel()])
    chain = {**feasid.SOUSA_2014, "cutoff": None, "drive_inertia": False}
    chain |= {} if friction is None else {"friction": friction}
    fit = feasid.fit(log_of(truth, 1), robot, **chain)
    expected = fit.base.K @ truth.values
    scale = np.abs(fit.base.K) @ np.abs(truth.values)
    np.testing.assert_allclose(fit.beta / scale, expected / scale, atol=tolerance, rtol=0)
    other = log_of(truth, 2)
    assert fit.errors(other)["all"] < tolerance
    predicted = fit.predict(other)
    measured = other[[f"tau_{j}" for j in robot.joints]].to_numpy()
    difference = np.linalg.norm(predicted.to_numpy() - measured)
    assert difference < tolerance * np.linalg.norm(measured)


def test_slack_buys_closeness_for_at_most_its_price(robot, truth):
    log = log_of(truth, 1, noise=0.05)
    own = robot.values[robot.inertial_columns][:2]
    distance = {}
    for slack in (0.0, 0.005, 0.05):
        fit = feasid.fit(log, robot, prior=None, slack=slack, diagnose=False)
        assert fit.price <= slack + 1e-12
        columns = fit.robot.inertial_columns
        distance[slack] = np.linalg.norm(fit.delta[columns][:2] - own)
        exact = [inertia_matrix(fit.delta[c]) for c in columns]
        assert all(definiteness(m) == "positive definite" for m in exact)
    assert distance[0.05] < distance[0.005] < distance[0.0]


def test_reduced_parts_fit_like_the_whole(robot, truth):
    """Both sides of a cut lose half a window of the equations' filter; nothing else differs."""
    log = log_of(truth, 3, noise=0.02)
    terms = robot.with_joint_terms()
    two = [log.iloc[:800], log.iloc[800:]]
    parts = [feasid.reduce(part, terms) for part in two]
    whole = feasid.fit(log, terms)
    off = np.abs(feasid.fit(sum(parts)).beta - whole.beta)
    assert (off < 0.5 * whole.base_table["std"]).all()
    signals = {"filtering": "signals", "prior": None}
    again = feasid.fit(sum(feasid.reduce(p, terms, filtering="signals") for p in two), **signals)
    whole = feasid.fit(log, terms, **signals)
    np.testing.assert_allclose(again.beta, whole.beta, rtol=1e-6, atol=1e-9)


def test_deviations_cover_the_truth(truth):
    """Over independent noise, normalised errors of least squares have unit variance."""
    scores = []
    for seed in range(12):
        fit = feasid.fit(log_of(truth, seed, noise=0.1), truth, prior=None, diagnose=False)
        expected = fit.base.K @ truth.values
        scores.append((fit.base_table["ols"] - expected) / fit.base_table["std"])
    spread = np.sqrt(np.mean(np.square(scores)))
    assert 0.8 < spread < 1.25  # 12 seeds x 11 parameters: four deviations of the spread itself


def test_weights_and_options_are_checked(robot, truth):
    log = log_of(truth, 1)
    fit = feasid.fit(log, robot, weights={"slide": 5.0}, prior=None)
    np.testing.assert_array_equal(fit.weights, [1, 5, 1])
    with pytest.raises(InputError, match="there is no joint 'slid'"):
        feasid.fit(log, robot, weights={"slid": 5.0})
    with pytest.raises(InputError, match="positive numbers"):
        feasid.fit(log, robot, weights=[1, -1])
    with pytest.raises(InputError, match="no robot"):
        feasid.fit(log)


def test_wrong_logs_are_errors_that_name(robot, truth):
    log = log_of(truth, 1)
    with pytest.raises(LogError, match="slide"):
        feasid.fit(log.drop(columns="q_slide"), robot)
    holes = log.copy()
    holes.loc[7, "q_shoulder"] = np.nan
    with pytest.raises(LogError, match="q_shoulder"):
        feasid.fit(holes, robot)
    with pytest.raises(LogError, match="row"):
        feasid.fit(log.iloc[[0, 2, 1, *range(3, 50)]], robot)
    with pytest.raises(NotEnoughDataError, match=r"base parameters|samples|row"):
        feasid.fit(log.iloc[:4], robot)


def test_a_test_that_is_none_is_said(fit, truth):
    log = log_of(truth, 1, noise=0.05)
    assert "is the fitted log" in fit.errors(log).attrs["leakage"]
    assert "is the fitted log" in str(fit.summary(test=log))
    with pytest.raises(InputError, match="a Series without"):
        fit.summary(test=log["t"])
    other = log_of(truth, 2, noise=0.05)
    assert fit.errors(other).attrs["leakage"] is None
    assert not fit.errors(other).attrs["notes"]
    (resting,) = fit.errors(other.filter(regex="^[tq]"), rest=0.2).attrs["notes"]
    assert resting.code == "rest"


def test_summary_says_what_matters(fit, truth):
    text = str(fit.summary(test=log_of(truth, 2, noise=0.05)))
    for word in (
        "FEASIBLE (full",
        "exact rational",
        "test",
        "shoulder",
        "friction",
        "own inertials",
        "prior of weight",
    ):
        assert word in text
    assert repr(fit) == fit.display().text()
    assert "<table" in fit._repr_html_()
    assert {"Ia", "fv", "fc", "fo"} <= set(fit.joint_terms.columns)


DATA_SHARE = 0.5
"""A value from the data moves less than this share of what the description moves by."""


def test_a_value_from_the_prior_is_never_called_measured(robot, truth):
    """Two descriptions, one log: what the log knows stays where it is; the rest is said."""
    log = log_of(truth, 1, noise=0.05, samples=150)
    values = np.nan_to_num(arm_parameters(truth)[truth.inertial_columns])
    tables = []
    for factor in (0.8, 1.25):
        described = robot.with_values((factor * values).ravel())
        fit = feasid.fit(log, described, plausible=False, diagnose=False, calibration=None)
        tables.append(fit.summary().tables["standard parameters"])
    low, high = tables
    apart = np.abs(high["description"] - low["description"])
    moved = np.abs(high["value"] - low["value"])
    data = (low["source"] == "data") & (high["source"] == "data") & np.isfinite(apart)
    prior = (low["source"] == "prior") & np.isfinite(apart) & (apart > 0)
    assert prior.any()
    assert (moved[prior] > 0).all()
    assert (moved[data] <= DATA_SHARE * apart[data]).all()
    assert {"bound", "data", "prior"} >= set(low["source"])
    inside = (low["[2.5 %"] <= low["value"]) & (low["value"] <= low["97.5 %]"])
    assert inside.all()


def test_tables_are_printed_for_papers_and_pages(fit):
    summary = fit.summary()
    base = summary.tables["base parameters"]
    assert summary.markdown().count("\n| ") > len(base)
    assert summary.latex().count(r" \\") == sum(len(t) + 1 for t in summary.tables.values())
    table = summary.tables["estimates"]
    assert np.allclose(table["WLS"], fit.base_table["ols"])
    assert np.allclose(table["feasible"], fit.beta)
    assert np.allclose(table["feasible std. err."], fit.base_table["std"])
    assert r"$\beta_{1}$" in summary.latex()
    assert "<td>prior</td>" in summary._repr_html_()
    assert list(base.columns) == [
        "value", "std. err.", "[2.5 %", "97.5 %]", "description", "source"
    ]  # fmt: skip


def test_a_robot_without_a_file_is_written_to_a_new_one(tmp_path):
    robot = feasid.Robot.from_dh([(0, 1, 0, 0)] * 2, gravity=(0, -9.81, 0))
    values = np.tile(inertia.from_mass_com_inertia(1.0, [0.5, 0, 0], np.eye(3) * 0.1), 2)
    fit = feasid.fit(simulate(robot, values, 4), robot, friction=())
    assert fit.solution.tie_break == "centre"
    fit.write(tmp_path / "x.urdf")
    back = feasid.load_robot(tmp_path / "x.urdf")
    masses = [r.values[r.inertial_columns[:, 9]] for r in (back, fit.robot)]
    np.testing.assert_allclose(*masses, rtol=1e-9)


# -- real logs ------------------------------------------------------------------------------------


def test_kuka_errors_on_fitted_and_repeated_motion():
    """Judged on a repeat that was never fitted; both limits leave a tenth of what is reached."""
    log = datasets.load("kuka_lwr4")
    first, second = (log[log["run"] == r] for r in ("measurement_1", "measurement_2"))
    fit = feasid.fit(first, log.attrs["robot"], cutoff=8.0, diagnose=False)
    assert fit.relative_error["all"] <= 0.024
    assert fit.errors(second)["all"] <= 0.026


@pytest.mark.slow
def test_wam_log_returns_the_published_estimate():
    """Table 6's ordinary least squares column and Table 8's residual, from the reconstruction."""
    log = datasets.load("wam7")
    fit = feasid.fit(log, **{**feasid.SOUSA_2014, "cutoff": None, "trim": 0.0})
    published = wam.estimate("ols")
    np.testing.assert_allclose(fit.base_table["ols"], published, rtol=1e-9)
    r, rho, residual = fit.reduced.triangle()
    ordinary = np.hypot(residual, np.linalg.norm(r @ published - rho))
    torque = np.linalg.norm(fit.reduced.torque_norms)
    assert ordinary / torque == pytest.approx(0.0660, abs=1e-9)
    assert fit.condition_number == pytest.approx(97.9, abs=0.5)
