"""New URDF and MJCF for robots that came from elsewhere: DH, bodies, the other format."""

from dataclasses import replace

import numpy as np
import pytest
from pinocchio_side import PinocchioModel
from robots import random_robot, relative
from written import torque_difference, with_random_inertia

import feasid
from benchmarks.generated import tree_with_couplings
from feasid import Body, Coupling, Robot, load_robot
from feasid.core.errors import InputError, UnsupportedJointError

SAME = 1e-10  #: Relative difference of torques with other frames but the same motion.


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_random_trees_move_alike_from_their_new_file(seed, suffix, tmp_path):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, int(rng.integers(1, 8)), ("revolute", "prismatic", "through"))
    robot = with_random_inertia(robot, seed).with_joint_terms(("viscous", "coulomb"))
    frictions = np.where(np.isnan(robot.values), rng.uniform(0, 1, robot.size), robot.values)
    robot = robot.with_values(frictions)
    path = tmp_path / f"new{suffix}"
    usual = suffix != ".urdf" or np.array_equal(robot.gravity, (0, 0, -9.81))
    assert feasid.write(robot, path).lost == (() if usual else ("gravity",))
    assert torque_difference(robot, load_robot(path), seed) < SAME


@pytest.mark.parametrize("seed", range(4))
def test_pinocchio_reads_the_new_urdf_alike(seed, tmp_path):
    rng = np.random.default_rng(seed)
    robot = with_random_inertia(random_robot(rng, 6, ("revolute", "prismatic", "through")), seed)
    limits = feasid.robot.bodies.Limits(-1.0, 2.0, 3.0, 50.0)
    robot = replace(robot, bodies=tuple(replace(b, limits=limits) for b in robot.bodies))
    feasid.write(robot, tmp_path / "new.urdf")
    theirs = PinocchioModel(robot, tmp_path / "new.urdf")
    assert theirs.model.effortLimit.tolist() == [50.0] * 6
    motion = rng.uniform(-1, 1, (3, 6))
    assert relative(theirs.torques(*motion), feasid.inverse_dynamics(robot, *motion)[0]) < SAME


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_joints_that_follow_others_follow_in_the_new_file(seed, suffix, tmp_path):
    robot = load_robot(tree_with_couplings(seed))
    bare = replace(robot, source=None, bodies=tuple(replace(b, members=()) for b in robot.bodies))
    path = tmp_path / f"new{suffix}"
    feasid.write(bare, path)
    again = load_robot(path)
    assert again.dof == robot.dof
    assert torque_difference(robot, again, seed) < SAME


def test_a_floating_body_and_a_robot_without_limits(tmp_path):
    heavy, light = [0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0.1, 5], [0.01, 0, 0, 0.01, 0, 0.01, 0, 0, 0, 1]
    trunk = Body("trunk", None, motion=np.eye(6), inertial=heavy)
    bodies = [trunk, Body("leg", "trunk", position=[0.1, 0, 0], inertial=light)]
    robot = Robot(bodies)
    feasid.write(robot, tmp_path / "new.urdf")
    again = load_robot(tmp_path / "new.urdf")
    assert [b.dof for b in again.bodies] == [6, 1]
    assert again.bodies[1].limits.lower is None


def test_what_urdf_does_not_have_is_named(tmp_path):
    ten = [0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 1]
    helical = Robot([Body("screw", None, motion=[0, 0, 1, 0, 0, 0.1], inertial=ten)])
    ball = Robot([Body("ball", None, motion=np.eye(6)[:, :3], inertial=ten)])
    bare = Robot([Body("bare", None)])
    impossible = Robot([Body("odd", None, inertial=[1, 0, 0, 1, 0, 5, 0, 0, 0, 1])])
    three = Robot(
        [Body(n, None, inertial=ten) for n in "abc"],
        couplings=[Coupling("c", {"a": 1.0, "b": 2.0})],
    )
    for robot, kind, words in (
        (helical, UnsupportedJointError, "'screw' is helical"),
        (ball, UnsupportedJointError, "'ball' has no counterpart in URDF"),
        (bare, InputError, "body 'bare' has no inertial parameters"),
        (impossible, InputError, "body 'odd' is infeasible"),
        (three, InputError, "joint 'c' follows 2 joints"),
    ):
        with pytest.raises(kind, match=words):
            feasid.write(robot, tmp_path / "new.urdf")
    with pytest.raises(InputError, match="joint 'c' follows 2 joints"):
        feasid.write(three, tmp_path / "new.xml")
    assert not [*tmp_path.iterdir()]
