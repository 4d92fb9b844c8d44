"""Elastic and passive joints, on arms hidden in MuJoCo."""

import mujoco
import numpy as np
import pytest

import feasid
from benchmarks.elastic import Arm
from feasid.core.errors import DescriptionError, InputError, LogError

STIFFNESS = 0.01  #: Largest relative error of a stiffness.
EXACTLY = 5.0  #: Largest deviation of a link's equations over what they miss: 1.8, and was 17.


def case(folder, seed, joints, elastic):
    rng = np.random.default_rng(seed)
    arm = Arm.draw(rng, joints, elastic)
    (folder / "arm.xml").write_text(arm.mjcf(described=True))
    logs = [arm.move(rng, sensors=elastic)[0] for _ in range(2)]
    return arm, feasid.load_robot(folder / "arm.xml"), *logs


@pytest.fixture(scope="module")
def sensors(tmp_path_factory):
    arm, robot, log, other = case(tmp_path_factory.mktemp("sensors"), 3, 2, True)
    return arm, robot, log, other, feasid.fit(log, robot, elastic=robot.joints)


@pytest.fixture(scope="module")
def springs(sensors):
    arm, robot, *logs = sensors[:-1]
    log, other = (x.drop(columns=["sensor_j1", "sensor_j2"]) for x in logs)
    return arm, robot, log, other, feasid.fit(log, robot, elastic=robot.joints)


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory):
    arm, robot, log, other = case(tmp_path_factory.mktemp("pendulum"), 5, 3, False)
    passive = [j for j, driven in zip(robot.joints, arm.driven, strict=True) if not driven]
    return robot, log, other, passive, feasid.fit(log, robot, passive=passive)


def stiffness(fit):
    places = [fit.robot.parameter_names.index((f"{j}_spring", "k")) for j in fit.robot.passive]
    return fit.robot.values[places], np.sqrt(np.diag(fit.estimate.covariance)[places])


@pytest.mark.parametrize("columns", ["springs", "sensors"])
def test_springs_are_found(columns, request):
    arm, _, _, other, fit = request.getfixturevalue(columns)
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
    assert all(line.startswith("for Pinocchio: ") for line in fit.write(path).missing)
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


def test_both_encoders_are_named_if_the_robot_is_taken_as_rigid(springs):
    _, robot, log, _, _ = springs
    notes = [n for n in feasid.fit(log, robot).notes if n.code == "two-encoders"]
    assert notes[0].values["joints"] == ["j1", "j2"]


@pytest.mark.parametrize("form", ["numbers", "pattern", "units"])
def test_columns_of_motors_and_sensors_are_found(sensors, form):
    _, robot, log, _, fit = sensors
    options = {"elastic": robot.joints}
    if form == "numbers":
        log = log.rename(columns=lambda c: c.replace("_j", "_"))
    elif form == "pattern":
        log = log.rename(columns=lambda c: c.replace("theta_j", "motor").replace("or_j", "ed"))
        options["columns"] = {"theta_j1": "motor1", "theta_j2": "motor2", "sensor": "sensed{}"}
    else:
        angles = [c for c in log if c.startswith(("q_", "theta_"))]
        log = log.assign(**np.rad2deg(log[angles]), **1e3 * log[["sensor_j1", "sensor_j2"]])
        log = log.rename(columns={"sensor_j2": "sensor_j2_mNm"})
        options["units"] = {"q": "deg", "tau_j1_sensor": "mNm"}
    np.testing.assert_allclose(stiffness(feasid.fit(log, robot, **options))[0], stiffness(fit)[0],
                               rtol=1e-6)  # fmt: skip


SHOWN = {
    "q theta tau": {"k", "fv", "Ia"},
    "q theta tau sensor": {"k", "fv", "Ia"},
    "q theta sensor": {"k", "fv"},
    "q theta tau_j2": {"k", "fv"},
    "q theta": "no torque column",
    "q tau": "motor, theta_j1. From one encoder the stiffness of the spring cannot be known",
    "theta tau": r"columns={'q_j1': 'theta_j1'}\).*theta_j1 = q_j1 \+ sensor_j1 / k",
    "theta tau sensor": "columns={'q_j1': 'theta_j1', 'tau_j1': 'sensor_j1'}",
    "q tau sensor": r"theta_j1 = q_j1 \+ sensor_j1 / k",
}
"""What is known by itself of spring and motor from these columns, or the error."""


@pytest.mark.parametrize("kinds", SHOWN)
def test_columns_show_what_the_page_says(sensors, kinds):
    _, robot, log, *_ = sensors
    some = log[["t", *(c for c in log if {c, c.split("_")[0]} & {*kinds.split()})]]
    if isinstance(SHOWN[kinds], str):
        with pytest.raises(LogError, match=SHOWN[kinds]) as refusal:
            feasid.fit(some, robot, elastic=robot.joints)
        assert refusal.value.joint[:2] == "j1"
        return
    base = feasid.fit(some, robot, elastic=robot.joints).base
    status = zip(base.robot.parameter_names, base.status, strict=True)
    alone = {symbol for (part, symbol), known in status if part[:3] == "j1_" and known == "alone"}
    assert alone & {"k", "fv", "Ia"} == SHOWN[kinds]


def test_a_torque_sensor_has_an_equation_and_an_offset_of_its_own(sensors, springs):
    arm, robot, log, _, fit = sensors
    assert (stiffness(fit)[1] < stiffness(springs[-1])[1]).all()
    wrong = log.assign(sensor_j1=1.1 * log["sensor_j1"] + 0.5)
    scaled = feasid.fit(wrong, robot, elastic=robot.joints)
    (gain,) = (e for e in scaled.calibration.confirmed if e.at.kind == "gain")
    assert gain.joint == "j1_sensor"
    assert abs(gain.value[0] - np.log(1.1)) < 4 * gain.deviation[0] < 0.05
    assert scaled.joint_terms.loc["j1_sensor", "fo"] == pytest.approx(0.5 / 1.1, abs=0.05)
    np.testing.assert_allclose(stiffness(scaled)[0], arm.terms["k"], rtol=STIFFNESS)


def test_a_sensor_is_left_out_of_what_moves(sensors, tmp_path):
    *_, other, fit = sensors
    path = fit.write(tmp_path / "fitted.xml").written.path
    joints = feasid.load_robot(path).joints
    assert joints == fit.robot.without_torque_sensors().joints == (*fit.actuators().index,)
    errors = fit.verify(path, "mujoco", log=other)
    assert errors["mujoco"]["all"] < 2 * errors["fit"]["all"]
    assert "tau_j1_sensor" in fit.predict(other)
    # An offset that the caller calls a force is one of what moves: MuJoCo refused the file.
    written = fit.write(path, overwrite=True, offset_origin="joint")
    origins = {offset.joint: offset.origin for offset in written.offsets}
    assert origins["j1_sensor"] == "sensor"
    assert origins["j1_motor"] == origins["j1"] == "joint"
    mujoco.MjModel.from_xml_path(str(path))
    assert fit.simulate(other).joints == joints
    *_, last = feasid.replay(other.head(3000), fit.robot).estimates
    assert np.isfinite(last.decision.evidence.inertia).all()


def test_a_description_that_cannot_be_simulated_is_no_reference(springs, monkeypatch):
    """Of a description that is too heavy, a motor behind a spring may get no inertia."""

    def bodies_alone(base, inertials, *equations):
        values = np.zeros(base.robot.size)
        values[base.robot.inertial_columns] = inertials
        return values

    monkeypatch.setattr("feasid.identification.assessment.simulation.fit_joint_terms", bodies_alone)
    simulated = springs[-1].simulate(springs[3])
    assert not simulated.reference
    assert np.isfinite(simulated.rms).all()


def test_a_passive_joint_of_an_elastic_arm_has_no_motor(springs):
    _, robot, log, *_ = springs
    options = {"elastic": ["j1"], "passive": ["j2"]}
    terms = feasid.reduce(log.drop(columns="tau_j2"), robot, **options).robot.parameter_names
    assert ("j1_motor", "Ia") in terms
    assert ("link2", "Ia") not in terms
    (note,) = (n for n in feasid.fit(log.drop(columns="tau_j2"), robot, elastic=["j1"],
                                     diagnose=False).notes if n.code == "no-torque")  # fmt: skip
    assert "passive=['j2']" in str(note)


def test_friction_of_a_motor_alone_changes_with_its_temperature(springs, loaded):
    """A link has its joint's temperature, and no motor: no feasible fit confirmed a law for it."""
    arm, robot, log, *_ = springs
    warmth, slope = 45 - 25 * np.exp(-log["t"] / 5), -0.02 * arm.terms["fc"][0]
    rubs = slope * (warmth - 32) * np.tanh(np.gradient(log["theta_j1"], log["t"]) / 0.005)
    warm = log.assign(temperature=warmth, tau_j1=log["tau_j1"] + rubs)
    fit = feasid.fit(warm, robot, elastic=robot.joints)
    (law,) = fit.log_options["friction_per_kelvin"].items()
    assert law[0] == "j1_motor"
    assert law[1][0] == pytest.approx(slope, rel=0.1)
    tried = fit.selection.query("effect == 'temperature'")["joint"]
    assert not {*tried} & {*fit.robot.passive}
    load = feasid.payload(loaded, fit)  # at a temperature that its log lacks
    assert load.level == "doubtful"
    assert "Add columns temperature_<joint>" in load.reasons[-1]


def test_an_encoder_that_errs_by_microradians_is_no_other_robot(springs):
    """Exact equations show it better than any torque."""
    _, robot, log, other, _ = springs
    odd = other.assign(q_j1=other["q_j1"] + 2e-5 * np.sin(30 * other["q_j1"]))
    fit = feasid.fit([log, odd], robot, elastic=robot.joints)
    assert not fit.comparison.differences
    assert fit.quality.level == "good"


def test_a_stiff_spring_is_excited_by_deflections_as_large_as_it_has(sensors):
    """A random motion of both sides would show it ten thousand times better."""
    _, robot, log, *_ = sensors
    findings = feasid.diagnose(log, robot, elastic=robot.joints).findings
    (text,) = (f.message for f in findings if f.code == "excitation")
    assert text.startswith("full rank (30/30)")


def test_a_log_without_a_sensor_names_the_column_and_a_way_that_works(sensors):
    _, robot, log, other, fit = sensors
    some, elastic = other.drop(columns="sensor_j1"), {"elastic": robot.joints}
    with pytest.raises(LogError, match=r"no torque column .sensor_j1..*fit without") as refusal:
        fit.errors(some)
    assert refusal.value.joint == "j1"
    with pytest.raises(LogError, match=r"b: the log has no column sensor_j1.*fit all without"):
        feasid.fit_fleet({"a": log, "b": some}, robot, **elastic)
    way = {"measured": ["j2_sensor", "j1_motor", "j2_motor"]}
    again = feasid.fit([log, some], robot, **elastic, **way)
    assert again.robot.sensors == {"j2": "j2_sensor"}
    assert again.errors(some)["all"] < 0.02
    assert len(feasid.fit_fleet({"a": log, "b": some}, robot, **elastic, **way).fits) == 2


def test_a_unit_of_a_motor_or_sensor_is_stated_by_its_coordinate(sensors):
    """The column's own name had been passed over, and a motor had an inertia of 1164 kg m^2."""
    _, robot, log, *_ = sensors
    for key, column in {"tau_j1_motor": "tau_j1", "q_j1_motor": "theta_j1"}.items():
        with pytest.raises(LogError, match=f"say units={{'{key}': 'rad'}}"):
            feasid.fit(log, robot, elastic=robot.joints, units={column: "rad"})


def test_a_sensor_in_millinewton_metres_is_named_by_the_weight_of_its_link(sensors):
    """The description has no torque at a sensor: its unit had not been looked at."""
    _, robot, log, *_ = sensors
    wrong = log.assign(sensor_j1=1e3 * log["sensor_j1"])
    options = feasid.diagnose(wrong, robot, elastic=robot.joints).options
    assert options == {"units": {"tau_j1_sensor": 1e-3}}


def test_one_encoder_and_a_sensor_have_two_ways(sensors):
    arm, robot, log, other, _ = sensors
    k, J = arm.terms["k"], arm.terms["J"]
    links = {f"q_j{n}": log[f"theta_j{n}"] - log[f"sensor_j{n}"] / k[n - 1] for n in (1, 2)}
    known = feasid.fit(log.assign(**links), robot, elastic=robot.joints).joint_terms
    np.testing.assert_allclose(known.loc[["j1_motor", "j2_motor"], "Ia"], J, rtol=STIFFNESS)
    rigid = {"elastic": ["j1"], "columns": {"q_j2": "theta_j2", "tau_j2": "sensor_j2"}}
    assert feasid.fit(log.drop(columns="q_j2"), robot, **rigid).errors(other)["j2"] < 0.02


@pytest.mark.parametrize("columns", ["springs", "sensors"])
def test_a_fit_with_springs_is_saved_and_simulated(columns, springs, request, tmp_path):
    *_, fit = request.getfixturevalue(columns)
    fit.save(tmp_path / "springs.feasid")
    again = feasid.load(tmp_path / "springs.feasid")
    np.testing.assert_array_equal(again.robot.values, fit.robot.values)
    assert again.robot.elastic == fit.robot.elastic == fit.robot.with_joint_terms().elastic
    assert again.robot.sensors == fit.robot.sensors
    assert (fit.simulate(springs[3]).rms[-1] < 2e-3).all()  # no sensor drives it
    fit.report(tmp_path / "springs.html")


@pytest.fixture(scope="module")
def loaded(springs):
    arm = springs[0]
    heavy = [dict(link) for link in arm.links]
    heavy[-1]["mass"] = heavy[-1]["mass"] + 1.0
    return Arm(heavy, arm.terms, arm.driven, True).move(np.random.default_rng(8))[0]


def test_a_load_is_weighed_behind_a_spring(springs, loaded):
    load = feasid.payload(loaded, springs[-1])
    assert load.level == "good"
    assert abs(load.mass - 1.0) < 4 * load.mass_std < 0.1


def test_passive_joints_have_equations_and_no_torque(pendulum):
    robot, log, other, passive, fit = pendulum
    assert fit.quality.level == "good"
    assert fit.errors(other)["all"] < 0.02
    assert np.isnan(fit.errors(other)[passive]).all()
    zeros = log.assign(**{f"tau_{j}": 0.0 for j in passive})
    same = feasid.fit(zeros, robot, passive=passive)
    np.testing.assert_allclose(same.robot.values, fit.robot.values)
    assert not any(f.code == "dead" for f in feasid.diagnose(zeros, robot, passive=passive))


def test_a_passive_joint_that_sticks_does_not_shrink_what_it_carries(tmp_path):
    """Stiction leaves the less of its equation the lighter the link is: it vanished."""
    rng = np.random.default_rng(3)
    arm = Arm.draw(rng, 2, elastic=False)
    arm.links[1]["axis"] = np.array([0.1, -0.1, 1.0]) / np.sqrt(1.02)
    arm.terms["lc"] *= 4  # it stands for four fifths of the log
    (tmp_path / "arm.xml").write_text(arm.mjcf(described=True))
    fit = feasid.fit(arm.move(rng)[0], tmp_path / "arm.xml", passive=["j2"])
    assert fit.joint_terms.loc["link2", "fc"] == pytest.approx(arm.terms["lc"][1], rel=0.05)
    assert fit.quality.level == "good"


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
    with pytest.raises(InputError, match="'j2' is not elastic"):
        robot.with_torque_sensors(["j1", "j2"])
    with pytest.raises(LogError, match="'sensr_j1' has nearly the name 'sensor_j1'"):
        feasid.fit(springs[2].assign(sensr_j1=0.0), robot)
    assert robot.locked({"j1": 0.2}).joints == ("j2",)
    held = robot.locked({"j1_motor": 0.2})  # its link swings at the spring
    assert next(d.rest for d in held.drives if d.name == "j1_spring") == 0.2
    with pytest.raises(InputError, match="did you mean 'j2'"):
        robot.with_elastic_joints(["j22"])
