"""What is beside a description and is no sidecar of it is an error with its name."""

import json
from dataclasses import replace

import numpy as np
import pytest
from robots import ARM
from written import torque_difference

import feasid
from feasid.core.errors import DescriptionError, InputError
from feasid.robot.bodies import Rotor
from feasid.robot.formats.sidecar import sidecar_bytes, sidecar_path
from feasid.robot.rotations import from_rpy


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    return path


SAME = 1e-10

TEN = np.array([0.2, 0.01, 0.02, 0.3, 0.01, 0.25, 0.1, 0.05, 0.2, 1.5])


def with_friction(robot, load=True):
    """The robot with values of every term, load friction among them or not."""
    rng = np.random.default_rng(3)
    bodies = tuple(replace(b, inertial=TEN * rng.uniform(0.9, 1.1)) for b in robot.bodies)
    words = ("viscous", "offset", "load") if load else ("viscous", "offset")
    robot = replace(robot, bodies=bodies).with_joint_terms(words, drive_inertia=True)
    drives = tuple(replace(d, values=np.full(len(d.symbols), 0.3)) for d in robot.drives)
    own = np.array([b.inertial for b in bodies]) if load else None
    return replace(robot, drives=drives, load_model=own)


@pytest.mark.parametrize("key", ["rotors", "inertials", "drives", "load_model"])
@pytest.mark.parametrize("value", [3, "x", [1], [[]], {"upper": 1}, {"upper": {"gear": "x"}}, True])
def test_parts_of_another_kind(arm, key, value):
    robot = feasid.load_robot(arm).with_joint_terms()
    data = json.loads(sidecar_bytes(robot, arm.read_bytes(), True))
    sidecar_path(arm).write_text(json.dumps(data | {key: value}))
    with pytest.raises(DescriptionError, match=r"arm\.urdf\.feasid.* does not fit robot 'arm'"):
        feasid.load_robot(arm)


@pytest.mark.parametrize("value", [1e999, [[1]], None])
def test_a_version_that_is_none(arm, value):
    data = json.loads(sidecar_bytes(feasid.load_robot(arm), arm.read_bytes(), True))
    sidecar_path(arm).write_text(json.dumps(data | {"version": value}))
    with pytest.raises(DescriptionError, match="is not a sidecar"):
        feasid.load_robot(arm)


@pytest.mark.parametrize("load", [False, True])
def test_a_robot_with_a_held_joint_is_read_back_with_it_held(arm, load, tmp_path):
    held = {"slide": 0.05}
    robot = with_friction(feasid.load_robot(arm).locked(held), load)
    path = tmp_path / "written.urdf"
    feasid.write(robot, path, complete=robot)
    assert torque_difference(robot, feasid.load_robot(path, lock=held)) < SAME


@pytest.mark.parametrize("symmetric", [True, False])
def test_rotors_are_in_the_sidecar(arm, symmetric, tmp_path):
    robot = feasid.load_robot(arm)
    robot = replace(robot, bodies=[replace(b, inertial=TEN) for b in robot.bodies])
    values = TEN[[0, 5, 8, 9]] if symmetric else TEN
    rotor = Rotor(-7.5, from_rpy([0.3, -0.7, 1.1]), (0.1, 0.2, 0.3), symmetric, values)
    geared = replace(robot, bodies=tuple(replace(b, rotor=rotor) for b in robot.bodies))
    feasid.write(robot, tmp_path / "written.urdf", complete=geared)
    assert torque_difference(geared, feasid.load_robot(tmp_path / "written.urdf")) < SAME


def test_the_sidecar_says_which_joints_are_held(arm, tmp_path):
    robot = with_friction(feasid.load_robot(arm, lock={"slide": 0.05}))
    path = tmp_path / "written.urdf"
    feasid.write(robot, path, complete=robot)
    again = feasid.load_robot(path)
    assert torque_difference(robot, again) < SAME
    assert "slide at 0.05" in again.source.notes[-1]
    joint = robot.joints[-1]
    further = feasid.load_robot(path, lock={joint: 0.3})
    assert torque_difference(robot.locked({joint: 0.3}), further) < SAME
    assert further.source.reading["lock"] == {"slide": 0.05, joint: 0.3}
    with pytest.raises(InputError, match=r"'slide': 0.1.* held at 0.05"):
        feasid.load_robot(path, lock={"slide": 0.1})
    bare = feasid.load_robot(arm, lock={"slide": 0.05})
    feasid.write(bare, path, overwrite=True)
    assert feasid.load_robot(path).joints == bare.joints
    assert "slide" in feasid.load_robot(path, sidecar=False).joints


def test_a_joint_that_was_held_at_an_unknown_place_is_named(arm, tmp_path):
    robot = with_friction(feasid.load_robot(arm, lock={"slide": 0.05}))
    path = tmp_path / "written.urdf"
    feasid.write(robot, path, complete=robot)
    data = json.loads(sidecar_path(path).read_text())
    del data["lock"]
    sidecar_path(path).write_text(json.dumps(data))
    with pytest.raises(DescriptionError, match="'slide' was held"):
        feasid.load_robot(path)
    assert torque_difference(robot, feasid.load_robot(path, lock={"slide": 0.05})) < SAME


@pytest.mark.parametrize("joint", ["shoulder", "slide", "wheel_joint"])
def test_joints_are_held_where_load_friction_is_in_the_sidecar(arm, joint, tmp_path):
    """The held robot has the other joints' torques of the free one that keeps the joint still."""
    robot = with_friction(feasid.load_robot(arm))
    path = tmp_path / "written.urdf"
    feasid.write(robot, path)
    k = robot.joints.index(joint)
    held = feasid.load_robot(path, lock={joint: 0.05})
    q, dq, ddq = np.random.default_rng(1).uniform(-1, 1, (3, 20, robot.dof))
    q[:, k], dq[:, k], ddq[:, k] = 0.05, 0.0, 0.0
    free = feasid.inverse_dynamics(robot, q, dq, ddq)
    left = [np.delete(x, k, axis=1) for x in (q, dq, ddq)]
    found = feasid.inverse_dynamics(held, *left)
    np.testing.assert_allclose(found, np.delete(free, k, axis=1), rtol=1e-9, atol=1e-9)
    assert any("fl" in d.symbols for d in held.drives)


def test_gravity_that_a_urdf_cannot_hold_is_in_the_sidecar(tmp_path):
    """A wall-mounted robot is read back with its gravity, unless the caller gives another."""
    robot = feasid.Robot.from_dh([(0, 1.0, 0, 0), (0, 1.0, 0, 0)], gravity=(0, -9.81, 0))
    values = {"Lxx": 0.01, "Lyy": 0.3, "Lzz": 0.3, "lx": -0.5, "m": 1.0}
    robot = robot.with_values([values.get(symbol, 0.0) for _, symbol in robot.parameter_names])
    path = tmp_path / "wall.urdf"
    assert feasid.write(robot, path).lost == ("gravity",)
    again = feasid.load_robot(path)
    q = np.array([[0.3, -0.8]])
    zero = np.zeros_like(q)
    ours = feasid.inverse_dynamics(robot, q, zero, zero)
    assert np.allclose(feasid.inverse_dynamics(again, q, zero, zero), ours)
    turned = feasid.load_robot(path, gravity=(0, 0, -9.81))
    assert np.array_equal(turned.gravity, (0, 0, -9.81))
    assert feasid.write(turned, tmp_path / "table.urdf").sidecar is None
