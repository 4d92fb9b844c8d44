"""Friction as it is: terms that a log shows are found, have the right signs, and are kept."""

import numpy as np
import pandas as pd
import pytest
from logs import simulate, values_for

import feasid
from feasid.core.errors import DescriptionError, InputError, OutputError
from feasid.identification.estimation.held_out import RULES
from feasid.robot.joint_terms import FRICTION

FOUND = 0.15
"""Relative error of a further term's coefficient at .5 % noise of torque: what neighbours that look
alike over the same speeds leave."""

SAMPLES = 9000
TERMS = {"stribeck": {"fb": 8.0}, "direction": {"fd": 0.8}, "spring": {"k": 5.0, "k3": 9.0}}
OPTIONS = ("stribeck", "direction", "spring")
BODY = (0.05, 0, 0, 0.06, 0, 0.055, 0.05, 0.02, 0.01, 2.0)


def described():
    """Two joints on crossing axes with inertials of their own."""
    robot = feasid.Robot.from_dh([(np.pi / 2, 0.1, 0.3, 0), (0, 0.4, 0, 0)], gravity=(0, 0, -9.81))
    return robot.with_values(np.tile(BODY, 2))


def log_with(terms, extra, seed=0, noise=0.005, features=None):
    words = ("viscous", "coulomb", "offset", *terms)
    robot = described().with_joint_terms(words, True, features=features).with_transition(0.005)
    values = robot.values.copy()
    for k, drive in enumerate(robot.drives):
        for symbol, column in robot.drive_columns(k).items():
            usual = {"Ia": 0.2, "fv": 1.0, "fc": 1.5}.get(symbol, 0.0)
            values[column] = extra.get(symbol, usual) if drive.name == "2" else usual
    return simulate(robot, values, seed, samples=SAMPLES, noise=noise)


@pytest.fixture(scope="module", params=TERMS)
def case(request):
    term = request.param
    log = log_with([term], TERMS[term])
    return term, log, feasid.fit(log, described(), candidates=OPTIONS, diagnose=False)


def symbols(fit, body):
    return {s for d in fit.robot.drives if d.name == body for s in d.symbols}


def test_the_term_that_a_joint_has_is_chosen_there_and_not_elsewhere(case):
    term, _, fit = case
    assert symbols(fit, "2") >= set(FRICTION[term])
    assert not symbols(fit, "1") & {s for t in OPTIONS for s in FRICTION[t]}
    (note,) = [n for n in fit.notes if n.code == "term-added" and n.values["term"] == term]
    assert note.values["joints"] == ["2"]


def test_its_coefficients_are_found(case):
    term, _, fit = case
    found = fit.joint_terms.loc["2"]
    for symbol, value in TERMS[term].items():
        assert found[symbol] == pytest.approx(value, rel=FOUND)


def test_the_fit_is_certified_saved_and_written_with_it(case, tmp_path):
    _, log, fit = case
    assert "satisfies every constraint" in fit.certificate.verify()
    fit.save(tmp_path / "arm.feasid")
    saved = feasid.load(tmp_path / "arm.feasid")
    written = fit.write(tmp_path / "arm.xml").written
    assert written.sidecar is not None
    read = feasid.load_robot(tmp_path / "arm.xml")
    motion = [log.filter(regex=f"^{kind}_").to_numpy()[::50] for kind in ("q", "dq", "ddq")]
    torque = feasid.inverse_dynamics(fit.robot, *motion)
    for other in (saved.robot, read):
        found = feasid.inverse_dynamics(other, *motion)
        np.testing.assert_allclose(found, torque, rtol=1e-9, atol=1e-9)


def test_the_table_shows_why(case, tmp_path):
    term, _, fit = case
    table = fit.selection
    assert [*table.columns[:5]] == ["effect", "joint", "value", "deviation", "unit"]
    assert [*table.columns[5:]] == ["gain", "certainty", "entered", "why"]
    entered = table[table["entered"]]
    assert (term, "2") in set(zip(entered["effect"], entered["joint"], strict=True))
    assert (entered["gain"] > 0).all()
    assert (entered["certainty"] > RULES["effect"].deviations).all()
    assert (entered["why"] == "").all()
    assert (table.loc[~table["entered"], "why"] != "").all()
    fit.save(tmp_path / "fit.feasid")
    pd.testing.assert_frame_equal(feasid.load(tmp_path / "fit.feasid").selection, table)


def test_terms_that_are_not_on_offer_are_reported(case):
    """With `candidates` that lack it the search still names the term and the option for it."""
    term, log, _ = case
    fit = feasid.fit(log, described(), candidates=(), diagnose=False)
    (note,) = [n for n in fit.notes if n.code == "lacking" and n.values["kind"] == term]
    assert note.values["joints"] == ["2"]
    assert f"candidates=['{term}']" in note
    assert not symbols(fit, "2") & set(FRICTION[term])


def test_nothing_is_added_by_default():
    log = log_with([], {})
    fit = feasid.fit(log, described(), diagnose=False)
    further = {s for t in (*OPTIONS, "compensator") for s in FRICTION[t]}
    assert not {s for d in fit.robot.drives for s in d.symbols} & further


def test_friction_that_would_drive_a_joint_is_not_fitted():
    """The log's own friction pushes backwards: the model's may not."""
    log = log_with(["direction"], {"fd": 1.6, "fv": 0.5})
    terms = ("viscous", "coulomb", "offset", "direction")
    fit = feasid.fit(log, described(), friction=terms, diagnose=False)
    found = fit.joint_terms.loc["2"]
    assert abs(found["fd"]) <= found["fv"]
    log = log_with(["stribeck"], {"fb": -1.0})
    terms = ("viscous", "coulomb", "offset", "stribeck")
    fit = feasid.fit(log, described(), friction=terms, diagnose=False)
    assert fit.joint_terms.loc["2", "fb"] >= 0.0
    assert "satisfies every constraint" in fit.certificate.verify()


def cable(q, dq, ddq, load):
    return np.sin(3 * q)


FEATURES = {
    "2": (
        feasid.CustomJointTerm("cable", cable),
        feasid.CustomJointTerm("drag", lambda q, dq, ddq, load: dq * np.abs(dq), positive=True),
        feasid.CustomJointTerm("gear", lambda q, dq, ddq, load: 0.1 * load, load=True),
    )
}


@pytest.fixture(scope="module")
def featured():
    extra = {"u1": 2.0, "p1": 0.4, "u2": -0.5}
    log = log_with([], extra, features=FEATURES)
    bare = described().with_joint_terms(features=FEATURES, drive_inertia=True)
    return extra, log, feasid.fit(log, bare, diagnose=False)


def test_features_of_the_callers_own_are_fitted(featured):
    extra, log, fit = featured
    for symbol, value in extra.items():
        assert fit.joint_terms.loc["2", symbol] == pytest.approx(value, rel=FOUND)
    assert fit.errors(log)["all"] < 0.05
    assert "satisfies every constraint" in fit.certificate.verify()
    assert "2.u1" in fit.range("2.u1").name


def test_features_without_drive_inertia_are_told(featured):
    *_, log, fit = featured
    without = feasid.fit(log, described().with_joint_terms(features=FEATURES), diagnose=False)
    notes = [[note.code for note in f.notes] for f in (without, fit)]
    assert ["no-drive-inertia" in codes for codes in notes] == [True, False]


def test_code_is_not_written_into_files(featured, tmp_path):
    *_, fit = featured
    with pytest.raises(OutputError, match=r"a CustomJointTerm \(cable\) cannot be saved"):
        fit.save(tmp_path / "arm.feasid")
    with pytest.raises(OutputError, match="feature 'cable' of 2"):
        fit.write(tmp_path / "arm.xml")
    assert not list(tmp_path.iterdir())


def test_a_feature_that_is_none_is_named():
    bad = {"2": [feasid.CustomJointTerm("short", lambda q, dq, ddq, load: q[:-1])]}
    robot = described().with_joint_terms(features=bad)
    with pytest.raises(InputError, match="feature 'short' must return"):
        feasid.regressor(robot, np.zeros((5, 2)), np.zeros((5, 2)), np.zeros((5, 2)))
    with pytest.raises(DescriptionError, match="no such feature"):
        feasid.Drive("2", {"2": 1.0}, ("u1",))
    with pytest.raises(DescriptionError, match="bounded by viscous friction"):
        feasid.Drive("2", {"2": 1.0}, ("fd",))


def test_no_candidates_are_not_the_default():
    chosen = feasid.fit(log_with(["sqrt"], {"fs": 2.0}), described(), diagnose=False)
    assert "fs" in symbols(chosen, "2")


def test_candidates_need_stretches_and_names():
    log = log_with([], {})
    with pytest.raises(InputError, match="candidates"):
        feasid.fit(log, described(), candidates=("stribeck",), filtering="signals")
    with pytest.raises(InputError, match="stribeck"):
        feasid.fit(log, described(), candidates=("stribek",))


@pytest.mark.slow
def test_joints_that_follow_others_choose_by_the_torques_they_take_part_in():
    robot = feasid.Robot.from_dh([(0, 0.4, 0, 0), (0.5, 0.3, 0, 0), (0, 0.2, 0.1, 0)])
    bodies = robot.with_values(np.tile(BODY, 3)).bodies
    follower = feasid.Coupling(robot.joints[2], {robot.joints[1]: -0.5}, 0.2)
    coupled = feasid.Robot(bodies, couplings=(follower,))
    true = coupled.with_joint_terms(("viscous", "coulomb", "offset"), True)
    true = true.with_values(np.nan_to_num(true.values, nan=0.3))
    log = simulate(true, true.values, 0, samples=1500, noise=0.02)
    fit = feasid.fit(log, coupled, diagnose=False)
    assert fit.relative_error["all"] < 0.05
    truth = values_for(fit.robot, true)
    assert all(value in span for value, span in zip(truth, fit.ranges(), strict=True))
