"""Force-torque sensors: what they show, and the torques of the rest as before."""

from dataclasses import replace

import numpy as np
import pytest
from floating import loaded
from force_sensor import with_force_sensor
from robots import wam
from scipy.spatial.transform import Rotation

import feasid
from feasid.core.errors import InputError
from feasid.parameters.identifiability.base import base_parameters
from feasid.robot.bodies import Rotor

RANK = 1e-9  # singular values of a random regressor, relative: rounding is 1e-15


@pytest.mark.parametrize("rotors", [False, True])
@pytest.mark.parametrize("carries", [None, "1", "4", "7"])
def test_joints_feel_the_same_as_without_a_sensor(carries, rotors):
    plain, rng = wam(), np.random.default_rng(0)
    if rotors:
        pose = Rotation.from_quat(rng.normal(size=4)).as_matrix(), rng.normal(size=3)
        geared = [replace(b, rotor=Rotor(-7.5, *pose, symmetric=False)) for b in plain.bodies]
        plain = replace(plain, bodies=tuple(geared))
    turn, place = Rotation.from_quat(rng.normal(size=4)).as_matrix(), rng.normal(size=3)
    robot = with_force_sensor(plain, carries, rotation=turn, position=place)
    own = robot.rows[robot.joint_index("force_sensor")]
    rest = np.setdiff1d(np.arange(robot.dof), np.arange(robot.dof)[own])
    motion = np.zeros((3, 8, robot.dof))
    motion[:, :, rest] = rng.normal(size=(3, 8, plain.dof))
    others = [k for k, (body, _) in enumerate(robot.parameter_names) if body != "force_sensor"]
    ours = feasid.regressor(robot, *motion)[:, rest][:, :, others]
    np.testing.assert_allclose(ours, feasid.regressor(plain, *motion[:, :, rest]), atol=1e-10)


def test_a_wrist_sensor_tells_all_of_the_last_link():
    """Six rows beyond joints that move in every way: the ten parameters of link and plate."""
    robot = with_force_sensor(wam(), "7")
    base = base_parameters(robot, held="force_sensor", measured="force_sensor")
    rng = np.random.default_rng(1)
    motion = rng.normal(size=(3, 60, robot.dof))
    own = robot.rows[robot.joint_index("force_sensor")]
    motion[:, :, own] = 0.0
    y = feasid.regressor(robot, *motion)[:, own].reshape(-1, robot.size)
    s = np.linalg.svd(y, compute_uv=False)
    assert base.size == np.sum(s > RANK * s[0])
    np.testing.assert_allclose(y @ base.Pb @ base.K, y, atol=1e-11 * np.abs(y).max())
    both = base_parameters(robot, held="force_sensor")
    assert both.size > base_parameters(wam()).size
    assert both.missing_for(base).size == 0


def test_a_force_plate_below_an_arm_shows_what_its_joints_do_not():
    plain = wam().without_joint_terms()
    robot = with_force_sensor(plain)
    wrench = base_parameters(robot, held="force_sensor", measured="force_sensor")
    joints = base_parameters(robot, held="force_sensor", measured=plain.joints)
    assert joints.size == base_parameters(plain).size
    assert wrench.missing_for(joints).size == 0  # no rotors: the plate sees all that the joints see
    assert joints.missing_for(wrench).size > 0
    rubbed = with_force_sensor(wam())  # it does not feel the joints' own friction
    plate = base_parameters(rubbed, held="force_sensor", measured="force_sensor")
    gap = plate.missing_for(base_parameters(rubbed, held="force_sensor", measured=plain.joints))
    assert gap.size == sum(len(d.symbols) for d in rubbed.drives)


def test_ankle_sensors_on_a_walking_robot():
    robot, _ = loaded("solo12")
    sensed = with_force_sensor(robot, "FL_LOWER_LEG", name="ankle")
    base = base_parameters(sensed, held="ankle", measured="ankle")
    assert {sensed.parameter_names[c][0] for c in base.independent} == {"ankle", "FL_LOWER_LEG"}


def test_names_are_checked():
    with pytest.raises(InputError, match="no body '8'"):
        with_force_sensor(wam(), "8")
    with pytest.raises(InputError, match="a body or joint '3' already"):
        with_force_sensor(wam(), name="3")
