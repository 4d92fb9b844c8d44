"""What leaves is what was fitted: files read back by us, by Pinocchio and by MuJoCo."""

import json
import os
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from logs import arm_parameters, simulate, values_for
from robots import ARM, read_arm
from seeds import NEW_SEEDS, seed_of
from thorough import some

import feasid
from feasid import datasets, load_robot
from feasid.core.errors import DescriptionError, InputError, OutputError
from feasid.results.export.file_terms import friction_as_files_hold
from feasid.results.export.robot_file import _armature_advice, missing_lines
from feasid.robot.dynamics.regressor import mass_matrix
from feasid.robot.formats.sidecar import sidecar_path

RTOL_CLIENT = 1e-6
"""Relative difference of errors that clients may show where a file holds every term."""

RTOL_MUJOCO = 5e-3  #: Of MuJoCo's friction, of which near rest only the sign is modelled.
TRACKING = 0.01  #: Relative difference of tracking errors with the fit and with its file.


def test_armature_that_accelerates_no_joint_by_much_is_no_alarm():
    bodies = load_robot(ARM).without_joint_terms()
    bodies = bodies.with_values(arm_parameters(bodies))
    robot = bodies.with_joint_terms((), drive_inertia=True)
    columns = [robot.drive_columns(k)["Ia"] for k in range(len(robot.drives))]
    values, postures = robot.values.copy(), np.zeros((1, robot.dof))
    own = np.diag(mass_matrix(bodies, bodies.values, postures[0]))
    for share, told in ((1e-10, False), (0.04, False), (0.06, True)):
        values[columns] = share * own
        advice = _armature_advice(robot.with_values(values), postures)
        assert ("1.06 times as fast" in advice) == told
        lines = missing_lines(robot, [f"{d.name}.Ia" for d in robot.drives], advice)
        assert len(lines) == 1


SHARP = {"filtering": "signals"}
"""Fits whose Coulomb friction changes its sign at once, as it does for the clients."""


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    """A URDF arm whose joints also have offsets, with two logs."""
    folder = tmp_path_factory.mktemp("arm")
    robot = read_arm(folder)
    truth = robot.with_joint_terms()
    delta = arm_parameters(truth)
    return robot, simulate(truth, delta, 1, noise=0.02), simulate(truth, delta, 2, noise=0.02)


@pytest.fixture(scope="module")
def fitted(arm):
    return feasid.fit(arm[1], arm[0], drive_inertia=False, **SHARP)


def test_a_file_that_holds_every_term_predicts_like_the_fit(arm, tmp_path):
    robot, log, test = arm
    fit = feasid.fit(log, robot, friction=("viscous", "coulomb"), drive_inertia=False, **SHARP)
    path = tmp_path / "out.urdf"
    export = fit.write(path, test=test)
    assert export.written.lost == ()
    assert export.written.sidecar is None
    assert os.listdir(tmp_path) == ["out.urdf"]
    assert Path(robot.source.path).read_text() == ARM
    error = export.errors
    np.testing.assert_allclose(error["file, hard sign"], error["fit"], rtol=RTOL_CLIENT)
    seen = fit.verify(path, "pinocchio", test)
    np.testing.assert_allclose(seen["pinocchio"], seen["fit"], rtol=RTOL_CLIENT)
    np.testing.assert_allclose(seen["fit"]["all"], fit.errors(test)["all"], rtol=RTOL_CLIENT)
    again = load_robot(path)
    assert again.parameter_names == fit.robot.parameter_names
    np.testing.assert_allclose(again.values, fit.robot.values, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["out.urdf", "out.xml"])
def test_what_a_format_cannot_hold_is_in_the_sidecar(arm, fitted, tmp_path, name):
    robot, _, test = arm
    path = tmp_path / name
    export = fitted.write(path, test=test)
    assert export.written.lost == tuple(f"{b.name}.fo" for b in robot.bodies)
    assert "offsets of the torque sensors: subtract them from measured torques" in str(export)
    whole = load_robot(path)
    assert whole.drives[0].symbols == ("fv", "fc", "fo")
    np.testing.assert_array_equal(whole.values, fitted.robot.values)
    seen = fitted.verify(path, "pinocchio", test)["pinocchio"]
    wanted = export.errors["file, hard sign on the test"]
    np.testing.assert_allclose(seen, wanted, rtol=RTOL_CLIENT)
    if name.endswith("xml"):
        seen = fitted.verify(path, "mujoco", test)["mujoco"]
        wanted = export.errors["file, MuJoCo's law on the test"]
        np.testing.assert_allclose(seen, wanted, rtol=RTOL_MUJOCO)


@pytest.mark.parametrize("seed", [3, *NEW_SEEDS])
def test_a_file_says_what_each_program_does_not_read(arm, tmp_path, seed):
    """Gazebo reads no drive inertia of an SDF file, as all programs of URDF; Drake no dry friction.

    What a new file leaves out is counted by hand in the text of `ARM`.
    """
    truth = arm[0].with_joint_terms(("viscous", "coulomb"), drive_inertia=True)
    log = simulate(truth, arm_parameters(truth), seed_of(seed), noise=0.02)
    fit = feasid.fit(log, arm[0], friction=("viscous", "coulomb"), drive_inertia=True, **SHARP)
    paths = (tmp_path / f"out.{kind}" for kind in ("sdf", "urdf", "xml", "usda"))
    sdf, urdf, *others = (fit.write(path, force=True) for path in paths)
    joints = ", ".join(arm[0].joints)
    advice = urdf.missing[0].split("; ", 1)[1]
    assert "accelerates" in advice
    words = f"not in {tmp_path}/out.sdf for Gazebo: drive inertia (Ia) of {joints}; {advice}"
    assert words in str(sdf).splitlines()
    assert f"for Drake: Coulomb friction (fc) of {joints}; a client has to add it" in sdf.missing
    gazebo, alone = sdf.errors["file in Gazebo"], urdf.errors["file, hard sign"]
    np.testing.assert_allclose(gazebo, alone, rtol=RTOL_CLIENT)
    frictionless = tmp_path / "frictionless.xml"
    text = (tmp_path / "out.xml").read_text()
    frictionless.write_text(re.sub(' frictionloss="[^"]*"', "", text))
    drake = fit.verify(frictionless, "mujoco")["mujoco"]
    np.testing.assert_allclose(sdf.errors["file in Drake"], drake, rtol=RTOL_CLIENT)
    assert urdf.written.left_out == ""
    for export in others:
        assert not any("Gazebo" in line for line in export.missing)
        limits = "2 x velocity limit ('shoulder', 'slide'); 2 x effort limit ('shoulder', 'slide')"
        usd = "usd" in export.written.path[-5:]
        assert export.written.left_out == ("" if usd else limits)
        assert usd or f"not in {export.written.path}: {limits}" in str(export)


def test_offsets_of_sensors_do_not_change_the_bodies_in_the_file(arm, tmp_path):
    """Offsets of a tenth of the torques; the bodies in the file are the fit's all the same."""
    robot, log, _ = arm
    log = log.copy()
    for joint in robot.joints:
        column = f"tau_{joint}"
        log[column] += 0.1 * np.sqrt(np.mean(log[column] ** 2))
    fit = feasid.fit(log, robot, drive_inertia=False, **SHARP)
    export = fit.write(tmp_path / "out.urdf", force=True)
    seen = load_robot(tmp_path / "out.urdf", sidecar=False)
    for a, b in zip(seen.bodies, fit.robot.bodies, strict=True):
        np.testing.assert_allclose(a.inertial, b.inertial, rtol=1e-9, atol=1e-12)
    error = export.errors.loc["all"]
    np.testing.assert_allclose(error["file, hard sign"], error["fit"], rtol=RTOL_CLIENT)
    raw = fit.write(tmp_path / "raw.urdf", force=True, offset_origin="joint").errors.loc["all"]
    assert raw["file, hard sign"] > 2 * error["file, hard sign"]


def test_offsets_of_joints_are_constant_forces_in_mjcf(arm, fitted, tmp_path):
    """The sensors of a robot at rest without load decide; a caller may, too."""
    path = tmp_path / "out.xml"
    export = fitted.write(path, offset_origin="joint")
    assert "the file has them as constant forces" in str(export)
    error = export.errors.loc["all"]
    np.testing.assert_allclose(error["file, hard sign"], error["fit"], rtol=RTOL_CLIENT)
    seen = fitted.verify(path, "mujoco", offset_origin="joint").loc["all"]
    np.testing.assert_allclose(seen["mujoco"], error["file, MuJoCo's law"], rtol=RTOL_MUJOCO)
    alone = fitted.write(path, offset_origin="joint", for_="pinocchio", overwrite=True)
    assert "3 x actuator of a joint" in alone.written.unread["Pinocchio"]
    seen = fitted.verify(path, "pinocchio", offset_origin="joint").loc["all", "pinocchio"]
    np.testing.assert_allclose(alone.errors["file in Pinocchio"]["all"], seen, rtol=RTOL_CLIENT)
    assert seen > 1.1 * error["file, hard sign"]
    kept = {x.joint: "sensor" for x in export.offsets[1:]}
    kept[export.offsets[0].joint] = "joint"
    mixed = fitted.write(tmp_path / "two.xml", offset_origin=kept)
    assert (tmp_path / "two.xml").read_text().count("constant force on") == 1
    assert [x.origin for x in mixed.offsets] == ["joint", "sensor", "sensor"]


def test_a_torque_at_rest_tells_forces_from_offsets_of_sensors(arm, tmp_path):
    """Slides on the level, whose sensor reads zero while nothing moves, or the offset."""
    robot = feasid.Robot(
        [feasid.Body("sled", None, np.eye(3), np.zeros(3), np.eye(6)[:, 3:4], "slide",
                     inertial=feasid.robot.inertia.from_mass_com_inertia(
                         2.0, np.zeros(3), 0.01 * np.eye(3)))])  # fmt: skip
    t = np.arange(0, 12, 0.002)
    q = np.where(t > 4, np.sin(2 * (t - 4)) ** 3, 0.0)
    dq = np.where(t > 4, 6 * np.sin(2 * (t - 4)) ** 2 * np.cos(2 * (t - 4)), 0.0)
    s = 2 * (t - 4)
    ddq = np.where(t > 4, 24 * np.sin(s) * np.cos(s) ** 2 - 12 * np.sin(s) ** 3, 0.0)
    torque = 2.0 * ddq + 0.3 * dq + 0.5 * np.tanh(dq / 0.005)
    torque += 0.01 * np.random.default_rng(0).standard_normal(len(t))
    for at_rest, origin in ((0.4, "sensor"), (0.0, "joint")):
        tau = torque + np.where(t > 4, 0.4, at_rest)
        log = pd.DataFrame({"t": t, "q_slide": q, "tau_slide": tau})
        fit = feasid.fit(log, robot, drive_inertia=False, diagnose=False)
        (offset,) = fit.write(tmp_path / f"{origin}.xml", force=True).offsets
        assert offset.origin == origin, offset
        assert "at rest without load" in offset.reason


def test_viscous_and_coulomb_friction_stand_for_other_laws(arm, tmp_path):
    robot, log, _ = arm
    truth = robot.with_joint_terms(("viscous", "coulomb", "sqrt"))
    plain = robot.with_joint_terms()
    values = values_for(truth, plain.with_values(arm_parameters(plain)), 0.7)
    log = simulate(truth, values, 1, noise=0.02)
    fit = feasid.fit(log, robot, friction=("viscous", "coulomb", "sqrt"), drive_inertia=False)
    export = fit.write(tmp_path / "out.xml")
    assert "root friction (fs) of" in str(export)
    assert "viscous and Coulomb friction in the file stand for it" in str(export)
    seen = load_robot(tmp_path / "out.xml", sidecar=False)
    for a, b in zip(seen.bodies, fit.robot.bodies, strict=True):
        np.testing.assert_allclose(a.inertial, b.inertial, rtol=1e-9, atol=1e-12)
    held = friction_as_files_hold(fit.robot, fit.solution.problem, shared=True)
    near, bare = fit.errors_of(fit.reduced, fit.base.K @ held), fit.robot.values.copy()
    for k in range(3):
        columns = fit.robot.drive_columns(k)
        assert held[columns["fs"]] == 0.0
        bare[columns["fs"]] = 0.0
    plain = fit.errors_of(fit.reduced, fit.base.K @ bare)
    assert near["all"] < 0.5 * plain["all"]
    np.testing.assert_array_equal(load_robot(tmp_path / "out.xml").values, fit.robot.values)


def test_actuators_are_what_the_file_lacks(mujoco_fit, tmp_path):
    """URDF in MuJoCo with the table is the MJCF; texts are read by who they are for."""
    import mujoco

    table = mujoco_fit.actuators()
    assert table["armature"]["lift"] == pytest.approx(0.12, rel=0.2)
    mujoco_fit.write(tmp_path / "out.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "out.xml"))
    for name, array in (("armature", model.dof_armature), ("damping", model.dof_damping),
                        ("frictionloss", model.dof_frictionloss)):  # fmt: skip
        np.testing.assert_allclose(table[name], array, rtol=1e-12)
    inertia = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    bodies = "".join(f"<body>{inertia}{line}</body>"
                     for line in table.to_text("mjcf").splitlines())  # fmt: skip
    again = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    np.testing.assert_array_equal(again.dof_armature, model.dof_armature)
    np.testing.assert_array_equal(again.dof_solimp, model.dof_solimp)
    seen = {}
    exec("config = " + table.to_text("isaaclab"), {"ImplicitActuatorCfg": dict}, seen)
    assert seen["config"]["armature"] == table["armature"].to_dict()
    assert "effort_limit_sim" not in seen["config"]
    for program, tag in (("gazebo", "friction"), ("drake", "drake:rotor_inertia")):
        assert table.to_text(program).count(f"<{tag}") == 3
    with pytest.raises(InputError, match="did you mean 'drake'"):
        table.to_text("drke")


def test_extension_elements_are_in_a_urdf_that_asks_for_them(mujoco_fit, tmp_path):
    path = tmp_path / "out.urdf"
    export = mujoco_fit.write(path, extensions=("drake", "mujoco"))
    assert "times as fast as it should" in str(export).splitlines()[1]
    root = ElementTree.parse(path).getroot()
    rotors = {
        t.find("joint").get("name"): float(
            t.find("actuator/{http://drake.mit.edu}rotor_inertia").get("value")
        )
        for t in root.iter("transmission")
    }
    assert rotors == mujoco_fit.actuators()["armature"].to_dict()
    assert root.find("mujoco/compiler").get("balanceinertia") == "false"
    again = feasid.write(load_robot(path), tmp_path / "again.urdf")
    assert again.sidecar is not None


def test_sidecars_of_other_files_are_refused(fitted, tmp_path):
    path = tmp_path / "out.urdf"
    fitted.write(path)
    text = path.read_text()
    path.write_text(text.replace("0.0", "0.00", 1))
    with pytest.raises(DescriptionError, match="has changed since") as caught:
        load_robot(path)
    assert "sidecar=False" in str(caught.value)
    assert load_robot(path, sidecar=False).dof == 3
    path.write_text(text)
    beside = sidecar_path(path)
    data = json.loads(beside.read_text())
    for change, words in (
        ({"version": 99}, "update feasid"),
        ({"format": "other"}, "not a sidecar"),
        ({"drives": [{"name": "x"}]}, "does not fit"),
        ({"inertials": {"elbow": [0] * 10}}, "no bodies"),
    ):
        beside.write_text(json.dumps({**data, **change}))
        with pytest.raises(DescriptionError, match=words):
            load_robot(path)
    beside.write_text("{")
    with pytest.raises(DescriptionError, match="not a sidecar"):
        load_robot(path)


def test_nothing_is_replaced_unless_told(fitted, tmp_path):
    path = tmp_path / "out.urdf"
    fitted.write(path)
    before = {f: (tmp_path / f).read_bytes() for f in os.listdir(tmp_path)}
    with pytest.raises(OutputError, match="overwrite"):
        fitted.write(path)
    path.unlink()
    with pytest.raises(OutputError, match=r"out\.urdf\.feasid\.json exists"):
        fitted.write(path)
    fitted.write(path, overwrite=True)
    assert before == {f: (tmp_path / f).read_bytes() for f in os.listdir(tmp_path)}


def test_a_format_that_cannot_be_told_and_a_client_that_is_not_there(fitted, tmp_path, monkeypatch):
    dh = feasid.Robot.from_dh([(0, 1, 0, 0)])
    with pytest.raises(InputError, match="MJCF, SDF, URDF or USD"):
        feasid.write(dh, tmp_path / "out.txt")
    with pytest.raises(InputError, match="'1' has no inertial parameters"):
        feasid.write(dh, tmp_path / "out.urdf")
    with pytest.raises(InputError, match="did you mean 'mujoco'"):
        fitted.verify(tmp_path / "x.urdf", "mujoko")
    monkeypatch.setitem(__import__("sys").modules, "pinocchio", None)
    with pytest.raises(feasid.FeasidError, match=r"feasid\[pinocchio\]"):
        fitted.verify(tmp_path / "x.urdf", "pinocchio")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("client", ["pinocchio", "mujoco"])
def test_a_file_of_another_robot_is_not_replayed(fitted, tmp_path, client):
    (tmp_path / "other.xml").write_text(MUJOCO_ARM)
    with pytest.raises(InputError, match="finds no joint 'shoulder'") as caught:
        fitted.verify(tmp_path / "other.xml", client)
    assert caught.value.joint == "shoulder"


# -- a MuJoCo arm with armature and friction -----------------------------------------------------

MUJOCO_ARM = """<mujoco model="arm"><compiler angle="radian"/>
<default><joint axis="0 1 0" armature="0.12" damping="0.6" frictionloss="0.25"/></default>
<worldbody><body name="base" pos="0 0 0.5"><joint name="turn" axis="0 0 1"/>
<inertial pos="0.01 0.02 0.1" mass="3" fullinertia="0.03 0.03 0.02 0.001 0.002 -0.001"/>
<body name="upper" pos="0 0 0.2"><joint name="lift" damping="0.9"/>
<inertial pos="0.2 0.01 0.02" mass="2" fullinertia="0.01 0.04 0.04 0.001 0.002 0.0005"/>
<body name="fore" pos="0.4 0 0"><joint name="bend" armature="0.05"/>
<inertial pos="0.15 -0.01 0.01" mass="1.2" fullinertia="0.004 0.015 0.015 0.0004 0.0003 0.0002"/>
</body></body></body></worldbody></mujoco>"""


@pytest.fixture(scope="module")
def mujoco_logs():
    """Torques of `mj_inverse`, dry friction added as it is far from rest: to fit, and a test."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(MUJOCO_ARM)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    robot = load_robot(MUJOCO_ARM)

    def measured(seed):
        log = simulate(robot, robot.values, seed)
        data, torques = mujoco.MjData(model), []
        signals = [log[[f"{s}_{j}" for j in robot.joints]].to_numpy() for s in ("q", "dq", "ddq")]
        for row in zip(*signals, strict=True):
            data.qpos[:], data.qvel[:], data.qacc[:] = row
            mujoco.mj_inverse(model, data)
            torques.append(data.qfrc_inverse + 0.25 * np.sign(data.qvel))
        noise = np.random.default_rng(seed).standard_normal((len(log), 3))
        log[[f"tau_{j}" for j in robot.joints]] = np.array(torques) + 0.05 * noise
        return log

    return measured(1), measured(2)


@pytest.fixture(scope="module")
def mujoco_fit(mujoco_logs):
    robot = load_robot(MUJOCO_ARM)
    return feasid.fit(mujoco_logs[0], robot, friction=("viscous", "coulomb"), **SHARP)


def test_a_mujoco_arm_goes_round(mujoco_logs, mujoco_fit, tmp_path):
    fit, test = mujoco_fit, mujoco_logs[1]
    assert fit.robot.drives[0].symbols == ("Ia", "fv", "fc")
    out = tmp_path / "out.xml"
    export = fit.write(out, test=test)
    assert export.written.lost == ()
    error = export.errors
    sharp = error["file, hard sign on the test"]
    np.testing.assert_allclose(sharp, error["fit on the test"], rtol=RTOL_CLIENT)
    seen = fit.verify(out, "mujoco", test)
    wanted = error["file, MuJoCo's law on the test"]
    np.testing.assert_allclose(seen["mujoco"], wanted, rtol=RTOL_MUJOCO)
    np.testing.assert_allclose(seen["fit"]["all"], fit.errors(test)["all"], rtol=RTOL_CLIENT)
    found = load_robot(out)
    terms = {d.name: dict(zip(d.symbols, d.values, strict=True)) for d in found.drives}
    assert terms["upper"]["Ia"] == pytest.approx(0.12, rel=0.2)
    assert terms["upper"]["fc"] == pytest.approx(0.25, rel=0.2)


@pytest.mark.slow
def test_computed_torque_tracks_with_the_file_as_with_the_fit(mujoco_fit, tmp_path):
    """The plant is MuJoCo's forward simulation of the true arm, dry friction included."""
    import mujoco

    out = tmp_path / "out.xml"
    mujoco_fit.write(out)
    seen = mujoco.MjModel.from_xml_path(str(out))
    seen.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    thought = mujoco.MjData(seen)

    def of_fit(q, dq, ddq):
        return feasid.inverse_dynamics(mujoco_fit.robot, q, dq, ddq)[0]

    def of_file(q, dq, ddq):
        thought.qpos[:], thought.qvel[:], thought.qacc[:] = q, dq, ddq
        mujoco.mj_inverse(seen, thought)
        return thought.qfrc_inverse + seen.dof_frictionloss * np.sign(dq)

    def tracking_error(controller):
        plant = mujoco.MjModel.from_xml_string(MUJOCO_ARM)
        data = mujoco.MjData(plant)
        off = []
        for _ in range(1000):
            t = data.time
            q, dq, ddq = 0.5 * np.sin(2 * t), np.cos(2 * t), -2 * np.sin(2 * t)
            error, rate = q - data.qpos, dq - data.qvel
            data.qfrc_applied[:] = controller(data.qpos, data.qvel, ddq + 50 * error + 10 * rate)
            mujoco.mj_step(plant, data)
            off.append(np.linalg.norm(error))
        return np.sqrt(np.mean(np.square(off)))

    expected = tracking_error(of_fit)
    assert tracking_error(of_file) == pytest.approx(expected, rel=TRACKING)


# -- real logs -----------------------------------------------------------------------------------


@pytest.mark.sampled(0.34)
@pytest.mark.parametrize("name", some(["unitree_z1", "kuka_lwr4", "staubli_tx40"], "unitree_z1"))
@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
@pytest.mark.parametrize("way", [{}, SHARP], ids=["default", "sharp"])
def test_real_arms_are_what_clients_read(name, suffix, way, tmp_path):
    df = datasets.load(name)
    robot, options = df.attrs["robot"], df.attrs["options"]
    df.attrs = {}
    cut = int(0.7 * len(df)) if "run" not in df else int(np.argmax(df.run != df.run.iloc[0]))
    log, test = df.iloc[:cut], df.iloc[cut:]
    fit = feasid.fit(log, robot, diagnose=False, **way, **options)
    path = tmp_path / f"out{suffix}"
    export = fit.write(path, test=test, force=True)  # without a prior a log may say anything
    for client in ("pinocchio", "mujoco") if suffix == ".xml" else ("pinocchio",):
        seen = fit.verify(path, client, test)
        reading, rtol = ("hard sign", RTOL_CLIENT), ("MuJoCo's law", RTOL_MUJOCO)
        reading, rtol = reading if client == "pinocchio" else rtol
        tendons = client == "pinocchio" and b"<tendon>" in path.read_bytes()
        assert not tendons or any("for Pinocchio: the terms of" in x for x in export.missing)
        column = "file in Pinocchio on the test" if tendons else f"file, {reading} on the test"
        np.testing.assert_allclose(seen[client]["all"], export.errors[column]["all"], rtol=rtol)
        np.testing.assert_allclose(seen["fit"]["all"], fit.errors(test)["all"], rtol=RTOL_CLIENT)
