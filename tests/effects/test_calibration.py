"""A fit takes out the mistakes that its log confirms, and allows for those that it cannot see."""

from types import SimpleNamespace

import numpy as np
import pytest
from thorough import some

import feasid
from feasid.core.errors import InputError
from feasid.identification.assessment.quality import ANOTHER_DAY
from feasid.identification.effects import calibration
from feasid.identification.effects.calibration import is_credible
from feasid.identification.effects.corrections import LogCorrection
from feasid.identification.effects.table import EffectAt
from feasid.robot.joint_terms import FRICTION

pytest.importorskip("mujoco")

from benchmarks.worlds import draw_seed, judge, make_world, predictor

LEAST_TILT_GAIN = 0.6
"""Share of the distance to the truth that a tilt of three degrees costs; 0.7 to 0.95 were seen."""

TILT_DEVIATIONS = 4.0
"""Deviations by which the told angle may miss the true one: one in 16 000 by chance."""

ADDED = {"cable": "spring", "stribeck": "stribeck", "load_friction": "weight"}
"""Joint terms that fits add, by fault, before any other."""

MENDED = 1.3
"""Error of a mended fit over that of the clean log's, of the true law or the predicted, at most."""

WARM_TIME = 0.08
"""Share of a time constant by which it may be missed: 0.03 was seen."""

WORSE = 1.02
"""A fit that took nothing out, or what it confirmed, is at most so many times worse."""


@pytest.mark.parametrize(
    ("kind", "value", "deviation", "wanted"),
    [
        ("gain", 0.0276, 0.0224, False),  # 1.2 deviations, as on one of two logs of a KUKA arm
        ("gain", 0.05, 0.01, True),
        ("joint-delay", 2.5e-3, 1e-4, True),
        ("joint-delay", -24.5e-3, 6.4e-3, False),  # a torque ahead of the motion it causes
        ("delay", -30e-3, 1e-3, True),  # commands are ahead, all of them
    ],
)
def test_what_is_taken_out_differs_from_none_and_can_be(kind, value, deviation, wanted):
    mistake = EffectAt(kind, -1 if kind == "delay" else 2)
    correction = LogCorrection({mistake: np.array([value])})
    trial = SimpleNamespace(correction=correction, setup=SimpleNamespace(sample_time=1e-3))
    covariance = np.array([[deviation**2]])
    assert is_credible(trial, [mistake], covariance, np.array([0.5 * deviation])) == wanted
    assert not is_credible(trial, [mistake], covariance, np.array([-1.5 * deviation]))


@pytest.mark.slow
def test_a_zero_that_a_constant_torque_explains_is_not_corrected():
    """On half of a real log a wrist's zero of 15 degrees stands for the offset of its friction."""
    df = feasid.datasets.load("kuka_lwr4")
    one, robot = df[df.run == "measurement_1"], df.attrs["robot"]
    fit = feasid.fit(one, robot, friction=("viscous", "coulomb"), diagnose=False)
    assert [e.joint for e in fit.calibration.confirmed if e.at.kind == "zero"] == []


@pytest.fixture(scope="module", params=some(["tilt", "tilt_y"], "tilt"))
def tilted(request):
    world = make_world("ur5", request.param, draw_seed())
    plain = feasid.fit(world.log, world.robot, calibration=None, diagnose=False)
    return world, plain, feasid.fit(world.log, world.robot, diagnose=False)


def test_a_tilted_base_is_found_and_taken_out(tilted):
    world, plain, fit = tilted
    (entry,) = (e for e in fit.calibration.confirmed if e.at.kind == "tilt")
    truth = world.truth.physics.gravity
    angle = np.linalg.norm(np.cross(fit.robot.gravity, truth)) / np.linalg.norm(truth) ** 2
    assert angle < TILT_DEVIATIONS * np.linalg.norm(entry.deviation), world
    before, after = (judge(world, predictor(f.robot)).distance for f in (plain, fit))
    assert after < (1 - LEAST_TILT_GAIN) * before, world
    (note,) = (n for n in fit.notes if n.code == "calibrated" and n.values["kind"] == "tilt")
    assert "tilted by" in note
    assert note.values["gain"] > 0


@pytest.mark.slow
def test_torque_gains_that_are_taken_out_leave_a_doubt():
    """The factor that all joints share is in no log: the model may be wrong as a whole."""
    world = make_world("ur5", "gain", 7)
    fit = feasid.fit(world.log, world.robot)
    assert fit.calibration.correction.values_by_joint("gain")
    assert fit.quality.level == "doubtful"
    assert any("common factor" in str(reason) for reason in fit.quality.reasons)


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["ur5", "panda", "random"])
@pytest.mark.parametrize("fault", ["drift", "cable", "stribeck", "load_friction"])
def test_cold_joints_cables_and_laws_of_friction_are_mended(robot, fault):
    """The floor is what the true law misses, near standstill more with Stribeck friction, or what
    the fit predicts: weight may hide a spring in the log.
    """
    seed = draw_seed()
    clean, faulty = (make_world(robot, f, seed) for f in ("none", fault))
    floor = feasid.fit(clean.log, clean.robot, diagnose=False)
    fit = feasid.fit(faulty.log, faulty.robot, diagnose=False)
    score = judge(faulty, predictor(fit.robot))
    predicted = fit.errors(faulty.test_log).attrs["predicted"]["all"]
    known = judge(clean, predictor(floor.robot)).error, score.truth_error, predicted
    assert score.error < MENDED * max(known), faulty
    entered = fit.selection[fit.selection["entered"]]
    assert entered["effect"].iloc[0] == ADDED.get(fault, "warm-up"), faulty
    if word := ADDED.get(fault):
        having = [d for d in fit.robot.drives if {*FRICTION[word]} <= {*d.symbols}]
        assert 2 * len(having) > len(fit.robot.drives), faulty


@pytest.mark.slow
def test_the_time_in_which_joints_warm_up_is_found():
    """All joints of this simulation warm up with 12 s; the log has 22 s."""
    world = make_world("ur5", "drift", draw_seed())
    fit = feasid.fit(world.log, world.robot, diagnose=False)
    warm = [e.at for e in fit.calibration.confirmed if e.at.kind == "warm-up"]
    (time,) = {mistake.number for mistake in warm}
    assert time == pytest.approx(12.0, rel=WARM_TIME), world
    assert any(f"a time constant of {time:.2g} s" in note for note in fit.notes)


@pytest.mark.slow
def test_without_calibration_the_log_is_left_as_it_is(tilted):
    _, plain, _ = tilted
    assert plain.calibration.entries == ()
    assert not [n for n in plain.notes if n.code == "calibrated"]
    assert plain.robot.gravity.tolist() == [0.0, 0.0, -9.81]


def test_what_was_taken_out_survives_saving(tilted, tmp_path):
    world, _, fit = tilted
    fit.save(tmp_path / "fit.feasid")
    again = feasid.load(tmp_path / "fit.feasid")
    assert again.robot.gravity == pytest.approx(fit.robot.gravity)
    assert again.errors(world.test_log)["all"] == pytest.approx(fit.errors(world.test_log)["all"])


@pytest.mark.slow
def test_gains_widen_deviations_where_their_size_is_given(tilted):
    world, _, fit = tilted
    wide = feasid.fit(world.log, world.robot, calibration={"gain": 0.05}, diagnose=False)
    stated, usual = (np.sqrt(np.diag(f.covariance)) for f in (wide, fit))
    assert np.median(stated / usual) > 1.0
    frame = fit.calibration.frame()
    assert set(frame["kind"]) >= {"tilt", "zero", "gain"}
    assert (frame["deviation"] > 0).all()


def test_unknown_mistakes_are_refused(tilted):
    world, _, _ = tilted
    with pytest.raises(InputError, match="calibration"):
        feasid.fit(world.log, world.robot, calibration={"tilt": -1.0}, diagnose=False)


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["ur5", "panda", "z1"])
def test_clean_logs_are_left_as_they_are(robot):
    world = make_world(robot, "none", draw_seed())
    plain = feasid.fit(world.log, world.robot, calibration=None, diagnose=False)
    fit = feasid.fit(world.log, world.robot, diagnose=False)
    before, after = (judge(world, predictor(f.robot)).error for f in (plain, fit))
    assert after < WORSE * before, world


@pytest.mark.sampled(0.34, of="file")
def test_a_large_error_of_the_log_that_no_fit_confirms_leaves_a_doubt(monkeypatch):
    """What entered beside it is searched again without it, and the verdict is not good."""
    world = make_world("xarm7", "tilt", draw_seed())

    def without_tilt(trial, group, covariance, step):
        return group[0].kind != "tilt" and is_credible(trial, group, covariance, step)

    monkeypatch.setattr(calibration, "is_credible", without_tilt)
    fit = feasid.fit(world.log, world.robot, diagnose=False)
    notes = [n for n in fit.notes if n.code == "unconfirmed"]
    assert any("the base is tilted by" in n for n in notes), world
    assert fit.quality.level != "good", world
    (tilt,) = fit.selection[fit.selection["effect"] == "tilt"].itertuples()
    assert not tilt.entered, world


@pytest.mark.sampled(0.34, of="file")
@pytest.mark.parametrize(("seed", "joint"), [(1, "elbow_joint"), (7, "shoulder_lift_joint")])
def test_the_gain_of_one_joint_is_corrected_or_leaves_a_doubt(seed, joint):
    """A load shows more in a log than the gain of one joint, which then may stay in the model."""
    world = make_world("ur5", seed=seed)
    log = world.log.assign(**{f"tau_{joint}": 0.95 * world.log[f"tau_{joint}"]})
    fit = feasid.fit(log, world.robot, diagnose=False)
    codes = {n.code for n in fit.notes if n.values.get("kind") == "gain" and joint in n}
    assert codes & {"calibrated", "lacking", "unconfirmed"}
    e = fit.evidence
    assert judge(world, predictor(fit.robot)).error < ANOTHER_DAY[1] * e.relative(e.error)
    assert fit.quality.level == "doubtful"
