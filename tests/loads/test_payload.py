"""Loads from logs with and without them, and behind a sensor: MuJoCo knows what was carried."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from logs import log_frame, with_terms
from mjcf_files import inertial, row
from robots import example_urdfs, random_rotation
from thorough import some

import feasid
from benchmarks import simulated
from feasid.cli import main
from feasid.core.errors import InputError, LogError
from feasid.core.exact.poses import is_possible_inertia
from feasid.robot import inertia

MASS_ERROR = 0.005
CENTRE_ERROR = 0.001
"""What is promised: [1] and [m]."""

LOADS = {"ur5": (2.0, (0.02, 0.03, 0.06)), "panda": (1.0, (0.03, -0.02, 0.05))}
SECONDS = 12.0


def arm(name):
    return replace(simulated.description(name), drives=())


def lump(mass, centre):
    """A box of about eight centimetres."""
    return inertia.from_mass_com_inertia(
        mass, np.array(centre), mass * np.diag([8e-4, 1e-3, 1.2e-3])
    )


@cache
def logs(name, seed=0):
    """The arm's motion without a load and with it, in MuJoCo: friction, noise, lost rows."""
    robot, rng = arm(name), np.random.default_rng([seed, *name.encode()])
    terms = robot.with_joint_terms(("viscous", "coulomb", "offset"), drive_inertia=True)
    delta = np.zeros(terms.size)
    for columns, body in zip(terms.inertial_columns, robot.bodies, strict=True):
        delta[columns] = simulated.wrong_body(body.inertial, rng)
    conditions = simulated.Conditions(seconds=SECONDS)
    way = simulated.fourier(robot, rng, SECONDS, simulated.FITTED_SPEED)
    delta = with_terms(terms.with_values(delta), Ia=0.05, fv=0.3, fc=0.4, fo=0.0).values
    out = []
    for load in (np.zeros(10), lump(*LOADS[name])):
        true = delta.copy()
        true[terms.inertial_columns[-1]] += load
        model = simulated.mujoco_model(terms, true)
        out.append(simulated.record(model, terms, true, way, rng, conditions))
    return out


def late(log, seconds=0.01):
    """Torques that come later than the positions."""
    torques = [c for c in log if c.startswith("tau_")]
    times = log["t"].to_numpy()
    return log.assign(**{c: np.interp(times - seconds, times, log[c]) for c in torques})


def displaced(log, joint=2, zero=0.05):
    """The zero of a joint's encoder is off [rad]."""
    column = [c for c in log if c.startswith("q_")][joint]
    return log.assign(**{column: log[column] + zero})


@pytest.mark.sampled(0.34, of="file")
@pytest.mark.parametrize("fault", [late, displaced])
def test_what_the_fit_corrects_is_corrected_in_both_logs(fault):
    without, loaded = (fault(log) for log in logs("ur5"))
    mass, centre = LOADS["ur5"]
    fit = feasid.fit(without, arm("ur5"))
    load = feasid.payload(loaded, fit)
    assert abs(load.mass / mass - 1) < MASS_ERROR
    assert load.mass_std < 0.001 * mass  # six times as large with torques that come late
    assert np.linalg.norm(load.centre - centre) < CENTRE_ERROR  # 7 mm with a wrong zero
    assert {n.code for n in load.notes} >= {n.code for n in fit.notes} - {"scale"}


@pytest.mark.sampled(0.34, of="file")
def test_a_zero_that_the_log_hardly_shows_is_counted():
    """With torques 4 ms late a zero of the wrist is corrected by six degrees that is none."""
    without, loaded = (late(log, 0.004) for log in logs("ur5"))
    load = feasid.payload(loaded, without, arm("ur5"))
    assert (np.abs(load.centre - LOADS["ur5"][1]) < 3 * load.centre_std).all()


@pytest.mark.parametrize("seed", some(range(6), 0))
@pytest.mark.parametrize("name", some(LOADS, "ur5"))
def test_the_load_of_an_arm(name, seed):
    without, loaded = logs(name, seed)
    mass, centre = LOADS[name]
    found = feasid.payload(loaded, without, arm(name))
    assert abs(found.mass / mass - 1) < MASS_ERROR
    assert np.linalg.norm(found.centre - centre) < CENTRE_ERROR
    assert found.residual[1] < 0.5 * found.residual[0]
    assert f"{found.mass:.4g} kg" in repr(found)


@pytest.mark.slow
def test_exchanged_logs_are_refused():
    without, loaded = logs("ur5")
    with pytest.raises(InputError, match="which no load has: are the logs exchanged"):
        feasid.payload(without, loaded, arm("ur5"))
    with pytest.raises(InputError, match="has no moving body or link 'wrist_3'"):
        feasid.payload(loaded, without, arm("ur5"), body="wrist_3")


def test_a_load_is_a_possible_body_and_goes_onto_the_description():
    without, loaded = logs("ur5")
    robot = arm("ur5")
    found = feasid.payload(loaded, without, robot)
    moments = found.inertia[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    assert is_possible_inertia(Fraction(found.mass), [Fraction(float(x)) for x in moments])
    heavy = found.on(robot)
    assert heavy.bodies[-1].inertial[9] == pytest.approx(robot.bodies[-1].inertial[9] + found.mass)
    assert "exact rational arithmetic" in found.verified


def test_a_load_behind_a_wrist_sensor():
    mujoco = pytest.importorskip("mujoco")
    rng = np.random.default_rng(5)
    turn, shift = random_rotation(rng), np.array([0.02, 0.01, 0.05])
    quat = np.empty(4)
    mujoco.mju_mat2Quat(quat, turn.ravel())
    c = turn.T @ (np.array([0.01, -0.02, 0.07]) - shift)
    spin = turn.T @ (1.3 * np.diag([8e-4, 1e-3, 1.2e-3])) @ turn
    load = inertial(inertia.from_mass_com_inertia(1.3, c, spin))
    text = f"""<mujoco><worldbody>
      <body name="b0"><inertial pos="0 0 .1" mass="2" diaginertia=".02 .02 .01"/>
      <joint axis="0 0 1"/>
      <body name="b1" pos="0 .1 .3" quat=".70710678118654757 .70710678118654757 0 0">
        <inertial pos="0 0 .1" mass="1" diaginertia=".01 .01 .01"/><joint axis="0 0 1"/>
        <body name="b2" pos="0 .2 0" quat=".70710678118654757 0 -.70710678118654757 0">
          <inertial pos="0 0 .1" mass="1" diaginertia=".01 .01 .01"/><joint axis="0 0 1"/>
          <body pos="{row(shift)}" quat="{row(quat)}"><site name="s"/>{load}</body>
        </body></body></body></worldbody>
      <sensor><force site="s"/><torque site="s"/></sensor></mujoco>"""
    model, robot = mujoco.MjModel.from_xml_string(text), feasid.load_robot(text)
    t = np.arange(0, 20.0, 0.004)
    w = np.array([0.7, 1.1, 1.9])
    q, dq = np.sin(w * t[:, None]) * 1.2, w * np.cos(w * t[:, None]) * 1.2
    ddq = -(w**2) * q
    data = mujoco.MjData(model)
    felt = np.empty((len(t), 6))
    for k in range(len(t)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], dq[k], ddq[k]
        mujoco.mj_inverse(model, data)
        felt[k] = data.sensordata
    felt += np.array([3.0, -2.0, 1.0, 0.2, 0.1, -0.3])  # never tared
    felt += 0.01 * felt.std(axis=0) * rng.normal(size=felt.shape)
    log = log_frame(t, robot.joints, q=q)
    channels = ["fx", "fy", "fz", "tx", "ty", "tz"]
    log[channels] = felt
    found = feasid.payload_from_wrench(log, robot, rotation=turn, position=shift)
    assert abs(found.mass / 1.3 - 1) < MASS_ERROR
    assert np.linalg.norm(found.centre - [0.01, -0.02, 0.07]) < CENTRE_ERROR
    assert found.residual[1] < 0.1
    assert found.level == "good"
    reaction = log.assign(**{c: -log[c] for c in channels})
    with pytest.raises(InputError, match="count the other way round"):
        feasid.payload_from_wrench(reaction, robot, rotation=turn, position=shift)
    with pytest.raises(LogError, match="'tz'"):
        feasid.payload_from_wrench(log.drop(columns="tz"), robot)


CONSTANTS = np.array([11.0, 10.0, 9.0, 3.0, 2.5, 2.0])
CONSTANT_ERROR = 0.03
"""Constants of the joints that carry the known load's weight."""


def in_ampere(df, robot):
    return df.assign(
        **{f"tau_{j}": df[f"tau_{j}"] / k for j, k in zip(robot.joints, CONSTANTS, strict=True)}
    )


def test_torque_constants_from_a_known_load():
    robot = arm("ur5")
    without, loaded = (in_ampere(log, robot) for log in logs("ur5"))
    found = feasid.torque_constants(
        without, robot, loaded=loaded, load=lump(*LOADS["ur5"]), drive_inertia=True
    )
    np.testing.assert_allclose(found.constants[1:4], CONSTANTS[1:4], rtol=CONSTANT_ERROR)
    assert found.units[f"tau_{robot.joints[1]}"] == found.constants[1]
    with pytest.raises(InputError, match="needs both"):
        feasid.torque_constants(without, robot, loaded=loaded)
    mass = LOADS["ur5"][0]  # alone: where it sits follows from the log
    by_mass = feasid.torque_constants(without, robot, loaded=loaded, load=mass, drive_inertia=True)
    known = np.isfinite(by_mass.constants)
    assert known[1:3].all()
    assert (np.abs(by_mass.constants - CONSTANTS)[known] < 3 * by_mass.deviations[known]).all()
    np.testing.assert_allclose(by_mass.constants[1:3], CONSTANTS[1:3], rtol=0.03)
    with pytest.raises(InputError, match="positive mass"):
        feasid.torque_constants(without, robot, loaded=loaded, load=-mass)


@pytest.mark.slow
def test_torque_constants_at_the_prompt(here, capsys):
    robot = arm("ur5")
    for name, log in zip(("log.csv", "with.csv"), logs("ur5"), strict=True):
        in_ampere(log, robot).to_csv(name, index=False)
    urdf = next(p for p in example_urdfs() if str(p).endswith(simulated.ARMS["ur5"][0]))
    mass, centre = LOADS["ur5"]
    known = {"mass": mass, "centre": centre, "inertia": (mass * np.diag([8e-4, 1e-3, 1.2e-3]))}
    (here / "load.json").write_text(json.dumps(known, default=np.ndarray.tolist))
    words = ["torque-constants", "log.csv", "--robot", str(urdf), "--loaded", "with.csv"]
    assert main([*words, "--load", str(mass)]) == 0
    assert main([*words, "--load", "load.json", "--out", "units.json"]) == 0
    factors = json.loads((here / "units.json").read_text())
    joint = robot.joints[1]
    assert factors[f"tau_{joint}"] == pytest.approx(CONSTANTS[1], rel=CONSTANT_ERROR)
    assert f"--units tau_{robot.joints[0]}=" in capsys.readouterr().out or len(factors) < robot.dof
    assert main(words) == 2
    assert "needs both" in capsys.readouterr().err
    (here / "load.json").write_text('{"mass": 2}')
    assert main([*words, "--load", "load.json"]) == 2
    assert "load.json: a load is JSON with mass, centre, inertia" in capsys.readouterr().err


@pytest.mark.slow
def test_torque_constants_from_a_description():
    robot = arm("ur5")
    without, _ = (in_ampere(log, robot) for log in logs("ur5"))
    found = feasid.torque_constants(without, robot, drive_inertia=True)
    off = np.abs(found.constants - CONSTANTS)[np.isfinite(found.constants)]
    assert (off < 2 * found.deviations[np.isfinite(found.constants)]).all()
    assert np.isfinite(found.constants[1:3]).all()
    assert "They rely on the description's inertials" in repr(found)
    milli = without.assign(**{f"tau_{j}": 1000 * without[f"tau_{j}"] for j in robot.joints})
    same = feasid.torque_constants(milli, robot, drive_inertia=True, units={"tau": "mA"})
    np.testing.assert_allclose(same.constants, found.constants, rtol=1e-6)
    joint = f"tau_{robot.joints[1]}"
    assert same.units[joint] == pytest.approx(found.units[joint] / 1000)
    bare = replace(robot, bodies=tuple(replace(b, inertial=None) for b in robot.bodies))
    with pytest.raises(InputError, match="lacks inertials"):
        feasid.torque_constants(without, bare)


@pytest.mark.sampled(0.34, of="file")
def test_loads_at_the_prompt(tmp_path, capsys):
    without, loaded = logs("ur5")
    for name, log in (("with", loaded), ("without", without)):
        log.to_csv(tmp_path / f"{name}.csv", index=False)
    urdf = next(p for p in example_urdfs() if str(p).endswith(simulated.ARMS["ur5"][0]))
    words = ["payload", str(tmp_path / "with.csv"), "--robot", str(urdf)]
    other = ["--without", str(tmp_path / "without.csv"), "--out", str(tmp_path / "load.json")]
    assert main([*words, *other]) == 0
    said = capsys.readouterr().out
    mass = json.loads((tmp_path / "load.json").read_text())["mass"]
    assert abs(mass / LOADS["ur5"][0] - 1) < MASS_ERROR
    assert f"{mass:.4g} kg" in said
    assert main([*words, *other]) == 2
    assert "load.json exists" in capsys.readouterr().err
    assert main(words) == 2
    assert "--without" in capsys.readouterr().err
