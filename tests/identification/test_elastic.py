"""Elastic and passive joints, on arms hidden in MuJoCo."""

import mujoco
import numpy as np
import pytest

import feasid
from benchmarks.elastic import Arm
from feasid.core.errors import DescriptionError, InputError, LogError

STIFFNESS = 0.01  #: Largest relative error of a stiffness.
EXACTLY = 5.0  #: Largest deviation of a link's equations over what they miss: 1.8, and was 17.


def case(folder, seed, joints, elastic, sensors=False):
    rng = np.random.default_rng(seed)
    arm = Arm.draw(rng, joints, elastic)
    (folder / "arm.xml").write_text(arm.mjcf(described=True))
    logs = [arm.move(rng, sensors=sensors)[0] for _ in range(2)]
    return arm, feasid.load_robot(folder / "arm.xml"), *logs


@pytest.fixture(scope="module")
def springs(tmp_path_factory):
    arm, robot, log, other = case(tmp_path_factory.mktemp("springs"), 3, 2, True)
    return arm, robot, log, other, feasid.fit(log, robot, elastic=robot.joints)


@pytest.fixture(scope="module")
def sensors(tmp_path_factory):
    arm, robot, log, other = case(tmp_path_factory.mktemp("sensors"), 4, 2, True, sensors=True)
    return arm, robot, log, other, feasid.fit(log, robot, elastic=robot.joints)


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory):
    arm, robot, log, other = case(tmp_path_factory.mktemp("pendulum"), 5, 3, False)
    passive = [j for j, driven in zip(robot.joints, arm.driven, strict=True) if not driven]
    return robot, log, other, passive, feasid.fit(log, robot, passive=passive)


def stiffness(fit):
    places = [fit.robot.parameter_names.index((f"{j}_spring", "k")) for j in fit.robot.passive]
    return fit.robot.values[places], np.sqrt(np.diag(fit.estimate.covariance)[places])


def test_springs_are_found(springs):
    arm, _, _, other, fit = springs
    k, deviation = stiffness(fit)
    assert np.abs(k / arm.terms["k"] - 1).max() < STIFFNESS
    assert np.abs(k - arm.terms["k"]).max() < 4 * deviation.max()
    assert fit.quality.level == "good"
    assert fit.errors(other)["all"] < 0.02


def test_equations_of_axes_nearly_at_right_angles_count_as_they_hold(tmp_path):
    """Their base parameters are large, and cancel."""
    rng = np.random.default_rng(3)
    arm = Arm.draw(rng, 2, elastic=True)
    arm.links[1]["axis"] = np.array([0.0, 0.01, 1.0]) / np.hypot(0.01, 1.0)
    (tmp_path / "arm.xml").write_text(arm.mjcf(described=True))
    fit = feasid.fit(arm.move(rng)[0], tmp_path / "arm.xml", elastic=["j1", "j2"])
    rows = fit.reduced.rows / fit.description.dof
    missed = fit.reduced.residuals(fit.base.K @ fit.delta) / np.sqrt(rows)
    links = [fit.description.coordinates.index(j) for j in fit.robot.passive]
    assert (np.sqrt(fit.estimate.noise.quick) < EXACTLY * missed)[links].all()


def test_a_file_has_the_springs_for_mujoco_and_for_us(springs, tmp_path):
    _, _, _, other, fit = springs
    path = tmp_path / "fitted.xml"
    assert not fit.write(path).missing
    model = mujoco.MjModel.from_xml_path(str(path))
    np.testing.assert_allclose(model.tendon_stiffness, stiffness(fit)[0])
    again = feasid.load_robot(path)
    assert (again.elastic, again.passive) == (fit.robot.elastic, fit.robot.passive)
    np.testing.assert_allclose(again.values, fit.robot.values, rtol=1e-9, atol=1e-12)
    alone = feasid.load_robot(path, sidecar=False)
    compiled = feasid.load_robot(path, sidecar=False, use_mujoco=True)
    assert alone.passive == compiled.passive == fit.robot.passive
    for ours, theirs in zip(alone.drives, compiled.drives, strict=True):
        assert (ours.coupling, ours.symbols) == (theirs.coupling, theirs.symbols)
        np.testing.assert_allclose(ours.values, theirs.values)
    errors = fit.verify(path, "mujoco", log=other)
    assert errors["mujoco"]["all"] < 2 * errors["fit"]["all"]
    feasid.write(again.with_values(1.5 * again.values), path, overwrite=True)  # its own file
    np.testing.assert_allclose(feasid.load_robot(path).values, 1.5 * again.values, rtol=1e-9)


def test_other_formats_refuse_springs_and_take_the_rigid_robot(springs, tmp_path):
    fit = springs[-1]
    with pytest.raises(InputError, match="without_elastic_joints"):
        fit.write(tmp_path / "fitted.urdf")
    rigid = fit.robot.without_elastic_joints()
    assert rigid.joints == ("j1", "j2")
    assert not rigid.passive
    values = dict(zip(fit.robot.parameter_names, fit.robot.values, strict=True))
    both = dict(zip(rigid.parameter_names, rigid.values, strict=True))
    assert both["link1", "Ia"] == values["j1_motor", "Ia"]
    assert both["link1", "fv"] == values["link1", "fv"] + values["j1_motor", "fv"]
    feasid.write(rigid, tmp_path / "rigid.urdf")


def test_one_encoder_shows_no_stiffness(springs):
    _, robot, log, _, _ = springs
    one = log.drop(columns=["theta_j1", "theta_j2"])
    with pytest.raises(LogError, match="cannot be known") as refusal:
        feasid.fit(one, robot, elastic=["j2"])
    assert (refusal.value.joint, refusal.value.column) == ("j2", "theta_j2")


def test_both_encoders_are_named_if_the_robot_is_taken_as_rigid(springs):
    _, robot, log, _, _ = springs
    notes = [n for n in feasid.fit(log, robot).notes if n.code == "two-encoders"]
    assert notes[0].values["joints"] == ["j1", "j2"]


@pytest.mark.parametrize("form", ["numbers", "pattern", "degrees"])
def test_columns_of_motors_are_found(springs, form):
    _, robot, log, _, fit = springs
    options = {"elastic": robot.joints}
    if form == "numbers":
        log = log.rename(columns=lambda c: c.replace("_j", "_"))
    elif form == "pattern":
        log = log.rename(columns=lambda c: c.replace("theta_j", "motor"))
        options["columns"] = {"theta_j1": "motor1", "theta_j2": "motor2"}
    else:
        angles = [c for c in log if c.startswith(("q_", "theta_"))]
        log = log.assign(**{c: np.rad2deg(log[c]) for c in angles})
        options["units"] = {"q": "deg"}
    np.testing.assert_allclose(stiffness(feasid.fit(log, robot, **options))[0], stiffness(fit)[0],
                               rtol=1e-6)  # fmt: skip


def test_a_fit_with_springs_is_saved_and_simulated(springs, tmp_path):
    *_, other, fit = springs
    fit.save(tmp_path / "springs.feasid")
    again = feasid.load(tmp_path / "springs.feasid")
    np.testing.assert_array_equal(again.robot.values, fit.robot.values)
    assert again.robot.elastic == fit.robot.elastic == fit.robot.with_joint_terms().elastic
    assert (fit.simulate(other).rms[-1] < 2e-3).all()
    fit.report(tmp_path / "springs.html")


def test_a_load_is_weighed_behind_a_spring(springs):
    arm, *_, fit = springs
    heavy = [dict(link) for link in arm.links]
    heavy[-1]["mass"] = heavy[-1]["mass"] + 1.0
    loaded = Arm(heavy, arm.terms, arm.driven, True).move(np.random.default_rng(8))[0]
    load = feasid.payload(loaded, fit)
    assert abs(load.mass - 1.0) < 4 * load.mass_std < 0.1


def test_a_torque_sensor_has_an_equation_and_an_offset_of_its_own(sensors, springs):
    arm, robot, log, other, fit = sensors
    assert fit.robot.coordinates == (*fit.robot.sensors.values(), *fit.robot.elastic.values(),
                                     *robot.joints)  # fmt: skip
    assert not springs[-1].robot.sensors
    k, deviation = stiffness(fit)
    assert (np.abs(k - arm.terms["k"]) < 4 * deviation).all()
    without = feasid.fit(log.drop(columns=["sensor_j1", "sensor_j2"]), robot, elastic=robot.joints)
    assert (deviation < stiffness(without)[1]).all()
    assert fit.quality.level == "good"
    assert fit.errors(other)["j1_sensor"] < 0.02
    shifted = feasid.fit(log.assign(sensor_j1=log["sensor_j1"] + 0.5), robot, elastic=robot.joints)
    assert shifted.joint_terms.loc["j1_sensor", "fo"] == pytest.approx(0.5, abs=0.05)


def test_a_sensor_is_left_out_of_what_moves(sensors, tmp_path):
    *_, other, fit = sensors
    path = tmp_path / "fitted.xml"
    fit.write(path)
    assert feasid.load_robot(path).joints == fit.robot.without_torque_sensors().joints
    errors = fit.verify(path, "mujoco", log=other)
    assert errors["mujoco"]["all"] < 2 * errors["fit"]["all"]
    assert (fit.simulate(other.drop(columns=["sensor_j1", "sensor_j2"])).rms[-1] < 2e-3).all()
    assert [*fit.actuators().index] == [*feasid.load_robot(path).joints]
    assert {"tau_j1_sensor"} <= {*fit.predict(other)}
    assert not fit.robot.without_elastic_joints().sensors
    fit.save(tmp_path / "sensors.feasid")
    assert feasid.load(tmp_path / "sensors.feasid").robot.sensors == fit.robot.sensors


def test_the_gain_of_a_sensor_is_told_by_the_motor(sensors):
    arm, robot, log, _, _ = sensors
    wrong = feasid.fit(log.assign(sensor_j1=1.1 * log["sensor_j1"]), robot, elastic=robot.joints)
    (gain,) = (e for e in wrong.calibration.confirmed if e.at.kind == "gain")
    assert gain.joint == "j1_sensor"
    assert abs(gain.value[0] - np.log(1.1)) < 4 * gain.deviation[0] < 0.05
    np.testing.assert_allclose(stiffness(wrong)[0], arm.terms["k"], rtol=STIFFNESS)


def test_columns_of_sensors_are_found(sensors):
    _, robot, log, _, fit = sensors
    numbers = log.rename(columns=lambda c: c.replace("_j", "_"))
    mapped = log.rename(columns=lambda c: c.replace("sensor_j", "gauge"))
    milli = log.assign(sensor_j1=1e3 * log["sensor_j1"])
    for same, options in (
        (numbers, {}),
        (mapped, {"columns": {"sensor": "gauge{}"}}),
        (milli, {"units": {"tau_j1_sensor": "mNm"}}),
        (milli.rename(columns={"sensor_j1": "sensor_j1_mNm"}), {}),
    ):
        again = feasid.fit(same, robot, elastic=robot.joints, **options)
        np.testing.assert_allclose(stiffness(again)[0], stiffness(fit)[0], rtol=1e-6)
    with pytest.raises(LogError, match="nearly the name 'sensor_j2'"):
        feasid.fit(log.rename(columns={"sensor_j2": "sensr_j2"}), robot, elastic=robot.joints)
    with pytest.raises(InputError, match="is not elastic"):
        robot.with_torque_sensors(["j1"])


def test_passive_joints_have_equations_and_no_torque(pendulum):
    robot, log, other, passive, fit = pendulum
    assert fit.quality.level == "good"
    assert fit.errors(other)["all"] < 0.02
    assert np.isnan(fit.errors(other)[passive]).all()
    zeros = log.assign(**{f"tau_{j}": 0.0 for j in passive})
    same = feasid.fit(zeros, robot, passive=passive)
    np.testing.assert_allclose(same.robot.values, fit.robot.values)
    assert not any(f.code == "dead" for f in feasid.diagnose(zeros, robot, passive=passive))


def test_a_joint_that_is_not_passive_is_told(pendulum, springs):
    robot, log, _, passive, _ = pendulum
    driven = [j for j in robot.joints if j not in passive]
    with pytest.raises(LogError, match="leave it out of passive"):
        feasid.fit(log, robot, passive=[driven[0]])
    with pytest.raises(DescriptionError, match="every joint is passive"):
        feasid.fit(log, robot, passive=robot.joints)
    _, arm, moved, _, fit = springs
    late = moved.assign(theta_j1=np.roll(moved["theta_j1"], 40))
    reasons = feasid.fit(late, arm, elastic=arm.joints).quality.reasons
    assert "unbalanced" in [reason.code for reason in reasons]
    assert max(fit.evidence.unbalanced.values()) < 0.01


def test_what_needs_a_motor_at_every_joint_says_so(springs):
    robot = springs[-1].robot
    for call in (feasid.ComputedTorque, feasid.excite):
        with pytest.raises(InputError, match="without_elastic_joints"):
            call(robot)


def test_elastic_joints_are_refused_where_they_make_no_sense(springs):
    robot = springs[1].with_elastic_joints(["j1"])
    with pytest.raises(InputError, match="elastic already"):
        robot.with_elastic_joints(["j1"])
    assert robot.locked({"j1": 0.2}).joints == ("j2",)
    held = robot.locked({"j1_motor": 0.2})  # its link swings at the spring
    assert next(d.rest for d in held.drives if d.name == "j1_spring") == 0.2
    with pytest.raises(InputError, match="did you mean 'j2'"):
        robot.with_elastic_joints(["j22"])
