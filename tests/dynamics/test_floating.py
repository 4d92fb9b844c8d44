"""Floating bases against Pinocchio's free-flyer, and other ways to say the same motion."""

from dataclasses import replace

import numpy as np
import pytest
from floating import SAMPLES, loaded, random_motion
from pinocchio_side import PinocchioModel
from robots import relative
from scipy.spatial.transform import Rotation

import feasid
from feasid.core.errors import FeasidError, InputError
from feasid.robot.dynamics.floating import (
    base_index,
    floating_motion,
    imu_motion,
    rotation_matrices,
)

EQUAL = 1e-10  # relative; both sides are double precision

NAMES = (
    "solo12", "a1", "ur5_robot", "bolt", "z1", "kinova", "panda", "talos_reduced", "icub",
    "romeo", "hyq_no_sensors", "anymal", "g1_29dof_with_hand_rev_1_0", "b1", "simple_humanoid",
)  # fmt: skip

FEWEST = 10  # robots compared, one of them a humanoid
HUMANOID = 30


def theirs(robot, path, said):
    """Pinocchio's regressor and torques of a motion in its own coordinates of the base."""
    model = PinocchioModel(robot, path)
    rows, torques = [], []
    for k in range(SAMPLES):
        pose = model.pin.log6(model.pin.SE3(said["rotation"][k], said["position"][k]))
        twist, acceleration = said["twist"][k], said["acceleration"][k].copy()
        acceleration[3:] -= np.cross(*np.split(twist, 2))
        base = np.r_[pose.angular, pose.linear], twist, acceleration
        motion = [np.r_[x, y[k]] for x, y in zip(base, said["joints"], strict=True)]
        rows.append(model.regressor(*motion))
        torques.append(model.torques(*motion))
    return np.stack(rows), np.stack(torques)


def test_regressors_are_those_of_pinocchios_free_flyer():
    pytest.importorskip("pinocchio")
    worst, bodies = {}, {}
    for name in NAMES:
        try:
            robot, path = loaded(name)
            if not robot.is_tree:
                continue
            said = random_motion(robot)
            y, tau = theirs(robot, path, said)
        except (FeasidError, pytest.skip.Exception, KeyError, IndexError):
            continue  # refused by name, or named otherwise by Pinocchio
        motion = floating_motion(robot, **said)
        worst[name] = max(
            relative(feasid.regressor(robot, *motion), y),
            relative(feasid.inverse_dynamics(robot, *motion), tau),
        )
        bodies[name] = len(robot.bodies)
    assert len(worst) >= FEWEST, worst
    assert max(bodies.values()) >= HUMANOID, bodies
    assert max(worst.values()) < EQUAL, worst


# -- the same motion said otherwise -----------------------------------------------------------


def test_vectors_may_be_in_world_axes():
    robot, _ = loaded("solo12")
    said = random_motion(robot)
    turn = said["rotation"]
    world = said | {
        k: np.hstack([np.einsum("nij,nj->ni", turn, x) for x in np.hsplit(said[k], 2)])
        for k in ("twist", "acceleration")
    }
    ours = floating_motion(robot, **said)
    other = floating_motion(robot, **world, axes="world")
    np.testing.assert_allclose(other.dq, ours.dq, atol=1e-12)
    np.testing.assert_allclose(other.ddq, ours.ddq, atol=1e-12)


def test_torques_do_not_depend_on_the_position():
    robot, _ = loaded("solo12")
    said = random_motion(robot)
    here = feasid.inverse_dynamics(robot, *floating_motion(robot, **said))
    said["position"] = said["position"] + 5.0
    there = feasid.inverse_dynamics(robot, *floating_motion(robot, **said))
    np.testing.assert_allclose(here, there, atol=1e-9)


def test_an_imu_tells_the_same_torques():
    """The IMU sits anywhere on the base, turned; it feels acceleration minus gravity."""
    robot, _ = loaded("solo12")
    said = random_motion(robot, 4)
    rng = np.random.default_rng(5)
    turn, lever = Rotation.from_quat(rng.normal(size=4)).as_matrix(), rng.normal(size=3)
    omega, alpha = said["twist"][:, :3], said["acceleration"][:, :3]
    felt = said["acceleration"][:, 3:] + np.cross(alpha, lever)
    felt = felt + np.cross(omega, np.cross(omega, lever))
    felt = felt - np.einsum("nji,j->ni", said["rotation"], robot.gravity)
    measured = imu_motion(
        robot,
        said["joints"],
        gyro=omega @ turn,
        accelerometer=felt @ turn,
        angular_acceleration=alpha @ turn,
        rotation=turn,
        position=lever,
    )
    ours = feasid.inverse_dynamics(robot, *measured)
    tau = feasid.inverse_dynamics(robot, *floating_motion(robot, **said))
    np.testing.assert_allclose(ours, tau, atol=1e-10 * np.abs(tau).max())


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 1.0, 3.0, np.pi - 1e-7, np.pi])
def test_poses_survive_at_every_angle(angle):
    robot, _ = loaded("solo12")
    said = random_motion(robot)
    axes = np.random.default_rng(1).normal(size=(SAMPLES, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    said["rotation"] = Rotation.from_rotvec(angle * axes).as_matrix()
    q = floating_motion(robot, **said).q[:, robot.rows[base_index(robot)]]
    np.testing.assert_allclose(
        Rotation.from_rotvec(q[:, :3]).as_matrix(), said["rotation"], atol=1e-12
    )


def test_quaternions_in_either_order():
    turn = Rotation.from_quat(np.random.default_rng(2).normal(size=(5, 4)))
    xyzw = turn.as_quat()
    np.testing.assert_allclose(rotation_matrices(xyzw), turn.as_matrix(), atol=1e-14)
    wxyz = xyzw[:, [3, 0, 1, 2]]
    np.testing.assert_allclose(rotation_matrices(wxyz, "wxyz"), turn.as_matrix(), atol=1e-14)


# -- bad input --------------------------------------------------------------------------------


def test_a_quaternion_that_is_not_unit_is_named():
    bad = np.array([[0, 0, 0, 1.0], [0, 0, 0, 0.5]])
    with pytest.raises(InputError, match=r"quaternion\[1\] has norm 0.5, not 1"):
        rotation_matrices(bad)
    with pytest.raises(InputError, match="'xyzw' or 'wxyz', not 'xwyz'"):
        rotation_matrices(bad, "xwyz")


def test_a_fixed_robot_has_no_motion_of_its_base():
    robot = feasid.Robot.from_dh([(0, 1, 0, 0)])
    with pytest.raises(InputError, match=r"the base of robot .* is fixed"):
        robot.rows[base_index(robot)]


@pytest.mark.parametrize("name", ["rotation", "position", "twist", "acceleration"])
def test_arrays_of_the_wrong_shape_are_named(name):
    robot, _ = loaded("solo12")
    said = random_motion(robot)
    said[name] = said[name][:, :2]
    with pytest.raises(InputError, match=f"{name} has shape"):
        floating_motion(robot, **said)
    said = random_motion(robot)
    said[name] = said[name] * np.nan
    with pytest.raises(InputError, match=f"{name}.*finite|{name} holds matrices"):
        floating_motion(robot, **said)
    with pytest.raises(InputError, match="axes must be 'body' or 'world'"):
        floating_motion(robot, **random_motion(robot), axes="wrld")


# -- what can be known in flight --------------------------------------------------------------

NEGLIGIBLE = 1e-10  # singular values of a regressor with unit columns, relative; rounding is 1e-15


def in_flight(robot, count=300):
    """Random motions of a robot that nothing touches: the base's wrench is zero."""
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.normal(size=(3, count, robot.dof))
    ddq[:, :6] = 0.0
    missing = feasid.inverse_dynamics(robot, q, dq, ddq)[:, :6]
    light, none = robot.with_gravity((0, 0, 0)), np.zeros_like(q)
    mass = [
        feasid.inverse_dynamics(light, q, none, none + np.eye(robot.dof)[k])[:, :6]
        for k in range(6)
    ]
    ddq[:, :6] = -np.linalg.solve(np.stack(mass, axis=2), missing[:, :, None])[:, :, 0]
    return q, dq, ddq


def spectrum(y):
    y = y.reshape(-1, y.shape[-1])
    size = np.linalg.norm(y, axis=0)
    _, s, vt = np.linalg.svd(y / np.where(size > 0, size, 1.0), full_matrices=False)
    return int((s > NEGLIGIBLE * s[0]).sum()), vt[-1] / np.where(size > 0, size, 1.0)


@pytest.mark.parametrize("name", ["solo12", "bolt", "ur5_robot"])
def test_free_flight_leaves_the_scale_unless_torques_are_measured(name):
    """That no wrench acts tells all ratios; torques of the joints tell the scale as well."""
    robot, _ = loaded(name)
    base = feasid.base_parameters(robot)
    y = feasid.regressor(robot, *in_flight(robot)) @ base.Pb
    beta = base.values(robot.values)
    assert np.abs(y[:, :6] @ beta).max() < 1e-10
    rank, hidden = spectrum(y[:, :6])
    assert rank == base.size - 1
    assert abs(hidden @ beta) > (1 - 1e-9) * np.linalg.norm(hidden) * np.linalg.norm(beta)
    assert spectrum(y)[0] == base.size


@pytest.mark.parametrize("name", ["solo12", "ur5_robot"])
def test_momentum_tells_what_the_wrench_tells_without_gravity(name):
    robot, _ = loaded(name)
    light = robot.with_gravity((0, 0, 0))
    q, dq = np.random.default_rng(1).normal(size=(2, 200, robot.dof))
    momentum = feasid.regressor(light, q, np.zeros_like(q), dq)[:, :6]
    wrench = feasid.base_parameters(light, measured="floating_base")
    assert spectrum(momentum)[0] == wrench.size
    left = momentum - momentum @ wrench.Pb @ wrench.K
    np.testing.assert_allclose(left, 0, atol=1e-11 * np.abs(momentum).max())


def test_a_fit_to_the_wrench_alone_finds_the_base_parameters():
    """Equations of the joints left out: the six rows of the base tell beta, without rotors."""
    robot, _ = loaded("solo12")
    rng = np.random.default_rng(2)
    motion = rng.normal(size=(3, 300, robot.dof))
    tau = feasid.inverse_dynamics(robot, *motion)
    factors = rng.uniform(0.6, 1.5, (len(robot.bodies), 1))
    wrong = robot.with_values((robot.values.reshape(-1, 10) * factors).ravel())
    reduced = feasid.Reduced.from_samples(wrong, *motion, tau)
    own = robot.rows[base_index(robot)]
    kept = [
        t if own.start <= r < own.stop else np.zeros_like(t)
        for r, t in enumerate(reduced.triangles)
    ]
    plain = {"prior": None, "weights": None, "slack": 0.0}  # the least squares themselves
    fit = feasid.fit(replace(reduced, triangles=tuple(kept)), wrong, friction=(), **plain)
    base = feasid.base_parameters(robot)
    beta = base.values(robot.values)
    np.testing.assert_allclose(base.values(fit.robot.values), beta, atol=1e-8 * np.abs(beta).max())
