"""The regressor on the way there, and gradients on the way back."""

from dataclasses import replace

import numpy as np
import pytest
from robots import ARM, random_robot, relative

import feasid
from feasid.applications.excitation.drives import MotionGradient
from feasid.applications.excitation.problem import limit_margins, repeat_limits
from feasid.applications.excitation.regressor_gradient import MotionRegressor
from feasid.datasets import wam
from feasid.robot.joint_terms import RIPPLE, TERMS

RTOL = 1e-12  # both sides are double precision over some ten bodies
GRADIENT = 1e-7  # central differences in steps of 1e-5
STEP = 1e-5


def robots():
    rng = np.random.default_rng(5)
    tree = random_robot(rng, 6, ("revolute", "prismatic", "helical"), rotors=True)
    shared = feasid.Drive("both", {tree.joints[2]: 1.0, tree.joints[4]: -0.5})
    tree = tree.with_joint_terms(drive_inertia=True, couplings=[shared])
    symbols = ["Ia", "fv", "fc", "fo", "k", "fs", "fb", "fe", "fd", "k2", "k3", "gs", "gc", *RIPPLE]
    shape = {"rest": 0.2, "spring_range": (-0.3, 0.2), "ripple": (2.0, 5.0)}
    sprung = replace(tree.drives[0], symbols=tuple(symbols), **shape)
    soft = replace(tree.drives[1], transition=0.4)
    tree = replace(tree, drives=(sprung, soft, *tree.drives[2:]))
    known = replace(tree.with_values(rng.standard_normal(tree.size)))
    return {"wam": wam.robot(), "tree": known}


@pytest.fixture(params=["wam", "tree"])
def robot(request):
    return robots()[request.param]


def motion(robot, count=4):
    return np.random.default_rng(0).uniform(-1, 1, (3, robot.dof, count))


def test_regressor_and_torques(robot):
    columns = tuple(range(0, robot.size, 2))
    way = motion(robot)
    evaluation = MotionRegressor(robot, columns).evaluate(*way, torque=True)
    rows = [x.T for x in way]
    assert relative(evaluation.regressor, feasid.regressor(robot, *rows, columns=columns)) < RTOL
    known = np.nan_to_num(robot.values)
    friction = [s in TERMS and TERMS[s].kind == "friction" for _, s in robot.parameter_names]
    least = np.where(friction, 0.0, known)
    ends = (known, evaluation.torques[: robot.dof]), (least, evaluation.torques[-robot.dof :])
    for values, ours in ends:
        torques = feasid.inverse_dynamics(robot, *rows, parameters=values)
        assert np.abs(ours.T - torques).max() <= RTOL * max(1.0, np.abs(torques).max())


def test_gradient_is_that_of_differences(robot):
    rng = np.random.default_rng(1)
    columns = tuple(range(0, robot.size, 3))
    dynamics = MotionRegressor(robot, columns, np.full(len(robot.drives), 0.3))
    way = motion(robot)
    evaluation = dynamics.evaluate(*way, torque=True)
    parts = evaluation.regressor, evaluation.torques
    weights, pushes = (rng.standard_normal(x.shape) for x in parts)

    def value(x):
        at = dynamics.evaluate(*x, torque=True)
        return (at.regressor * weights).sum() + (at.torques * pushes).sum()

    out = MotionGradient.zeros(*way[0].shape)
    evaluation.backward(weights, pushes, out)
    differences = np.zeros_like(way)
    for i in np.ndindex(way.shape):
        step = np.zeros_like(way)
        step[i] = STEP
        differences[i] = (value(way + step) - value(way - step)) / (2 * STEP)
    assert relative(np.stack([out.q, out.dq, out.ddq]), differences) < GRADIENT


def test_poses_are_those_of_a_simulator():
    pin = pytest.importorskip("pinocchio")
    robot = feasid.load_robot(ARM)
    model = pin.buildModelFromXML(ARM.strip())
    data = model.createData()
    q = np.random.default_rng(3).uniform(-1, 1, (3, 5))
    flow = MotionRegressor(robot, ()).evaluate(q, 0 * q, 0 * q).flow
    for k in range(q.shape[1]):
        angle = q[2, k]
        at = np.array([q[0, k], q[1, k], np.cos(angle), np.sin(angle)])
        pin.forwardKinematics(model, data, at)
        for body, pose in enumerate(data.oMi[1:]):
            assert np.allclose(flow.place[:, k, body], pose.translation, atol=1e-12)
            assert np.allclose(flow.turn[:, :, k, body], pose.rotation, atol=1e-12)


def test_what_has_no_gradient_is_refused():
    arm = wam.robot()
    drive = replace(arm.drives[0], symbols=("fc", "fl"))
    mimic = '<child link="wheel"/><mimic joint="shoulder" multiplier="2"/>'
    for robot, words in (
        (replace(arm, drives=(drive,), load_model=np.ones((7, 10))), r"grows with the load \(fl\)"),
        (feasid.load_robot(ARM.replace('<child link="wheel"/>', mimic)), "follow others"),
        (feasid.Robot((feasid.Body("ball", None, motion=np.eye(6)[:, :3]),)), "'ball' has 3 deg"),
    ):
        with pytest.raises(feasid.FeasidError, match=words):
            MotionRegressor(robot, ())


def test_smoothed_signs_tell_as_much_of_friction_as_signs():
    """The error of their squares falls with the square of the width, where tanh's falls with it."""
    robot = wam.robot()
    column = next(c for c, name in enumerate(robot.parameter_names) if name == ("1", "fc"))
    v = np.linspace(-1.0, 2.0, 30_001)
    way = np.zeros((3, robot.dof, v.size))
    way[1, 0] = v
    lost = []
    for width in (0.1, 0.05):
        dynamics = MotionRegressor(robot, (column,), np.full(len(robot.drives), width))
        sign = dynamics.evaluate(*way).regressor[:, 0, 0]
        lost.append(abs(np.mean(sign * v) - np.mean(np.abs(v))))
        assert abs(np.mean(sign**2) - 1) < 1e-4
        assert abs(np.mean(np.tanh(v / width) ** 2) - 1) > 0.03
    assert lost[1] < 0.3 * lost[0]


def test_torque_limits_are_those_of_a_joint_without_friction_too():
    """A braking joint whose friction helps its motor: 3 N m of 5, and all 5 without it."""
    robot = feasid.Robot.from_dh([(0, 0, 0, 0)], gravity=(0, 0, 0)).with_joint_terms(("coulomb",))
    values = {"Lzz": 1.0, "m": 1.0, "fc": 2.0}
    robot = robot.with_values([values.get(symbol, 0.0) for _, symbol in robot.parameter_names])
    evaluation = MotionRegressor(robot, ()).evaluate(*np.array([[[0]], [[1]], [[-5]]]), torque=True)
    assert evaluation.torques.ravel().tolist() == [-3.0, -5.0]
    limit = repeat_limits(np.array([[-4.0], [4.0]]), evaluation.torques)
    assert limit_margins(evaluation.torques, limit)[0].min() == -0.25
