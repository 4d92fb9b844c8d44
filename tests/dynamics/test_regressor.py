"""The regressor and inverse dynamics against Pinocchio, energy balance and each other."""

import re

import numpy as np
import pytest
from robots import RTOL, random_robot, random_rotation, relative

import feasid
from feasid.core.errors import InputError
from feasid.robot import inertia
from feasid.robot.bodies import Body

pin = pytest.importorskip("pinocchio")


def pinocchio_model(robot):
    """The same tree in Pinocchio; only joints whose axis passes through the body's origin."""
    model = pin.Model()
    model.gravity.linear = robot.gravity
    for i, body in enumerate(robot.bodies):
        screw = body.motion[:, 0]
        turns = screw[:3].any()
        kind = pin.JointModelRevoluteUnaligned if turns else pin.JointModelPrismaticUnaligned
        joint = kind(screw[:3] if turns else screw[3:])
        placement = pin.SE3(np.array(body.rotation), np.array(body.position))
        model.addJoint(robot.parents[i] + 1, joint, placement, body.joint)
    return model


def pinocchio_regressor(model, q, dq, ddq):
    """Pinocchio's regressor in our column order, (samples, dof, 10 n)."""
    data = model.createData()
    order = np.argsort(inertia.PINOCCHIO)
    columns = (10 * np.arange(model.njoints - 1)[:, None] + order).ravel()
    samples = zip(q, dq, ddq, strict=True)
    rows = [pin.computeJointTorqueRegressor(model, data, *s)[:, columns].copy() for s in samples]
    return np.array(rows)


@pytest.mark.parametrize("seed", range(12))
def test_equals_pinocchio_on_random_trees(seed):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, int(rng.integers(1, 13)))
    model = pinocchio_model(robot)
    q, dq, ddq = rng.standard_normal((3, 20, robot.dof))
    expected = pinocchio_regressor(model, q, dq, ddq)
    assert relative(feasid.regressor(robot, q, dq, ddq), expected) < RTOL

    delta = rng.standard_normal(robot.size)
    for i in range(robot.dof):
        ten = delta[robot.inertial_columns[i]][inertia.PINOCCHIO]
        model.inertias[i + 1] = pin.Inertia.FromDynamicParameters(ten)
    data = model.createData()
    torque = np.array([pin.rnea(model, data, *s).copy() for s in zip(q, dq, ddq, strict=True)])
    ours = feasid.inverse_dynamics(robot, q, dq, ddq, parameters=delta)
    assert relative(ours, torque) < RTOL


@pytest.mark.parametrize("seed", range(8))
def test_regressor_times_parameters_is_inverse_dynamics(seed):
    """Two algorithms, O(n^2) projection and Newton-Euler, with every kind of joint term."""
    rng = np.random.default_rng(100 + seed)
    kinds = ("revolute", "prismatic", "helical", "offset")
    robot = random_robot(rng, 7, kinds, rotors=True)
    shared = feasid.Drive("wrist motor", {"b3": 2.0, "b5": -1.5})
    robot = robot.with_joint_terms(drive_inertia=True, couplings=[shared])
    q, dq, ddq = rng.standard_normal((3, 11, robot.dof))
    delta = rng.standard_normal(robot.size)
    regressor = feasid.regressor(robot, q, dq, ddq)
    torque = feasid.inverse_dynamics(robot, q, dq, ddq, parameters=delta)
    assert relative(regressor @ delta, torque) < RTOL
    some = sorted(rng.choice(robot.size, 40, replace=False))
    chosen = feasid.regressor(robot, q, dq, ddq, columns=some)
    np.testing.assert_array_equal(chosen, regressor[..., some])


def wide_robot(rng):
    """Floating base with a spherical joint, a planar one and a prismatic one."""
    eye = np.eye(6)
    subspaces = {"base": eye, "ball": eye[:, :3], "plane": eye[:, [2, 3, 4]], "slide": eye[:, [5]]}
    bodies, parent = [], None
    for name, motion in subspaces.items():
        position = rng.standard_normal(3)
        bodies.append(Body(name, parent, random_rotation(rng), position, motion))
        parent = name
    return feasid.Robot(tuple(bodies))


def test_floating_base_equals_pinocchio():
    rng = np.random.default_rng(7)
    robot = wide_robot(rng)
    model = pin.Model()
    joints = [pin.JointModelFreeFlyer(), pin.JointModelSpherical()]
    for i in range(2):
        body = robot.bodies[i]
        placement = pin.SE3(np.array(body.rotation), np.array(body.position))
        model.addJoint(i, joints[i], placement, body.name)
    two = feasid.Robot(robot.bodies[:2])
    q, dq, ddq = rng.standard_normal((3, 6, two.dof))
    # Pinocchio orders twists linear first; our q are exponential coordinates, angular first.
    swap = [3, 4, 5, 0, 1, 2, 6, 7, 8]
    configurations = []
    for sample in q:
        pose = pin.exp6(pin.Motion(sample[3:6], sample[:3]))
        ball = pin.Quaternion(pin.exp3(sample[6:])).coeffs()
        configurations.append(np.r_[pin.SE3ToXYZQUAT(pose), ball])
    # ddq of a free flyer is the derivative of the body-frame twist on both sides.
    expected = pinocchio_regressor(model, configurations, dq[:, swap], ddq[:, swap])[:, swap]
    assert relative(feasid.regressor(two, q, dq, ddq), expected) < RTOL


def test_power_balance_with_joints_of_several_dof():
    """d/dt (kinetic + potential) = tau . dq along a motion: nothing is missing or doubled."""
    rng = np.random.default_rng(3)
    robot = wide_robot(rng)
    delta = np.tile(inertia.from_mass_com_inertia(2.0, [0.1, -0.2, 0.3], np.eye(3)), 4)
    q0, dq0, ddq = rng.standard_normal((3, robot.dof)) * 0.5
    twice = feasid.Robot(robot.bodies, gravity=(0, 0, 0))

    def kinetic(q, dq):
        units = np.eye(robot.dof)
        mass = [feasid.inverse_dynamics(twice, q, 0 * q, e, parameters=delta)[0] for e in units]
        return 0.5 * dq @ np.array(mass) @ dq

    h = 1e-5  # central difference of an analytic function: error h^2 ~ 1e-10, rounding 1e-11
    slide = robot.rows[3].start
    dq0[:slide] = 0.0  # quasi-velocities of the other joints are not derivatives of coordinates
    ddq[:slide] = 0.0
    rate = (kinetic(q0 + h * dq0, dq0 + h * ddq) - kinetic(q0 - h * dq0, dq0 - h * ddq)) / (2 * h)
    torque = feasid.inverse_dynamics(twice, q0, dq0, ddq, parameters=delta)[0]
    assert torque @ dq0 == pytest.approx(rate, rel=1e-7)


def test_wrong_input_is_named():
    robot, good, bad = feasid.Robot.from_dh([(0, 1, 0, 0)] * 2), np.zeros((3, 2)), np.zeros((3, 2))
    bad[1, 0] = np.nan
    last = f"columns must be distinct and within 0..{robot.size - 1}"
    for motion, options, words, row in (
        ((good, np.zeros((3, 1)), good), {}, "dq has shape (3, 1)", None),
        ((good, good, bad), {}, "[1, 0] is nan", 1),
        ((good, np.zeros((4, 2)), good), {}, "dq has 4 samples, q has 3", None),
        ((good[None], good, good), {}, "q has shape (1, 3, 2), expected (samples, 2)", None),
        (([["zero", 0.0]], good, good), {}, "q must be an array of finite numbers, not text", None),
        *((3 * [good], {"columns": c}, last, None) for c in ([0, robot.size], [0, 0], [-1, 0])),
    ):
        with pytest.raises(InputError, match=re.escape(words)) as caught:
            feasid.regressor(robot, *motion, **options)
        assert caught.value.data.get("row") == row
    with pytest.raises(InputError, match=r"no value for 1\.Lxx and 19 more: pass p") as caught:
        feasid.inverse_dynamics(robot, good, good, good)
    assert (caught.value.body, caught.value.symbol) == ("1", "Lxx")


def test_samples_of_long_motions_are_those_of_short_ones():
    """Chunks of 1700 samples: the first and last of each, alone."""
    robot = feasid.Robot.from_dh([(0.3, 0.2, 0.1, 0), (0, 0.3, 0, 0)]).with_joint_terms()
    rng = np.random.default_rng(0)
    motion = rng.standard_normal((3, 3500, 2))
    delta = rng.standard_normal(robot.size)
    whole = feasid.regressor(robot, *motion)
    torque = feasid.inverse_dynamics(robot, *motion, parameters=delta)
    some = [0, 1699, 1700, 3399, 3400, 3499]
    np.testing.assert_allclose(whole[some], feasid.regressor(robot, *motion[:, some]), atol=RTOL)
    np.testing.assert_allclose(torque[some], whole[some] @ delta, atol=1e-9)
