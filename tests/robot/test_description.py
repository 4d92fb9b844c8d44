"""Robots with values, joint terms and held joints."""

from dataclasses import replace

import numpy as np
import pytest
from robots import random_robot, random_rotation, relative

import feasid
from feasid.core.errors import InputError
from feasid.robot import inertia
from feasid.robot.bodies import Body, Limits, Rotor

TOLERANCE = 1e-12  # a few operations on numbers of order one


def arm(n=3, **options):
    return feasid.Robot.from_dh([(0, 1, 0, 0)] * n, **options)


def test_values_come_back_and_unknown_ones_are_nan():
    robot = arm().with_joint_terms(drive_inertia=True)
    assert np.isnan(robot.values).all()
    delta = np.arange(robot.size, dtype=float)
    np.testing.assert_array_equal(robot.with_values(delta).values, delta)


def test_joint_terms_are_checked():
    with pytest.raises(InputError, match="did you mean 'coulomb'"):
        arm().with_joint_terms(friction=("coulom",))
    with pytest.raises(InputError, match="has no joint '4'"):
        arm().with_joint_terms(joints=["4"])


def with_values(robot, rng):
    """The robot with possible parameters of bodies and rotors."""

    def ten():
        points = np.c_[rng.normal(size=(5, 3)), np.ones(5)]
        return inertia.from_pseudo_inertia(points.T @ points)

    def turning(symmetric):
        values = np.abs(rng.normal(size=4)) if symmetric else ten()
        pose = random_rotation(rng), rng.normal(size=3)
        return Rotor(5.0 * rng.normal(), *pose, symmetric, values)

    bodies = [
        replace(b, inertial=ten(), rotor=turning(k % 2 == 0)) for k, b in enumerate(robot.bodies)
    ]
    return replace(robot, bodies=tuple(bodies))


@pytest.mark.parametrize("joint", range(5))
def test_a_held_joint_leaves_the_others_their_torques(joint):
    """With its rotor, which has turned by the gear and is no longer where the description has it
    unless it is balanced."""
    rng = np.random.default_rng(joint)
    robot = with_values(random_robot(rng, 5), rng)
    q, dq, ddq = rng.normal(size=(3, 4, 5))
    q[:, joint] = at = rng.normal()
    dq[:, joint] = ddq[:, joint] = 0.0
    held = robot.locked({robot.joints[joint]: at})
    rest = [robot.joints.index(name) for name in held.joints]
    expected = feasid.inverse_dynamics(robot, q, dq, ddq)[:, rest]
    motion = (x[:, rest] for x in (q, dq, ddq))
    assert relative(feasid.inverse_dynamics(held, *motion), expected) < TOLERANCE


def test_not_all_joints_can_be_held():
    with pytest.raises(InputError, match="locking joint '3' leaves no moving body"):
        arm().locked(dict.fromkeys(("1", "2", "3"), 0.0))


def test_limits_in_either_order_and_of_one_side():
    given = [(2.0, -1.0), (None, 0.5), (-0.5, None), (None, None)]
    limits = (Limits(lower=low, upper=high) for low, high in given)
    bodies = [Body(f"b{k}", None, limits=both) for k, both in enumerate(limits)]
    found = feasid.Robot(tuple(bodies)).position_limits[:, :, 0]
    inf = np.inf
    np.testing.assert_array_equal(found, [[-1.0, -inf, -0.5, -inf], [2.0, 0.5, inf, inf]])
