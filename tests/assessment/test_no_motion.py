"""Logs in which nothing moves or nothing pulls: the cause is named, and no solver is asked."""

import numpy as np
import pytest
from arms import panda, ur5
from logs import log_frame
from seeds import NEW_SEEDS, seed_of

import feasid
from feasid.core.errors import LogError


def standing(robot, seed, noise):
    """A log of one posture: the torques of gravity, and noise of all sensors."""
    rng = np.random.default_rng(seed)
    q = np.tile(rng.uniform(-0.6, 0.6, robot.dof), (1500, 1))
    tau = feasid.inverse_dynamics(robot, q, 0 * q, 0 * q)
    tau += 0.02 * np.abs(tau).max() * rng.standard_normal(tau.shape)
    q = q + noise * rng.standard_normal(q.shape)
    return log_frame(np.arange(len(q)) / 200.0, robot.joints, q=q, tau=tau)


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("seed", NEW_SEEDS)
@pytest.mark.parametrize("noise", [0.0, 1e-4])
def test_a_robot_that_stands_is_no_model(seed, noise):
    robot = ur5().without_joint_terms()
    fit = feasid.fit(standing(robot, seed_of(seed), noise), robot)
    assert fit.quality.level == "useless"
    assert fit.quality.reasons[0].code == "standstill"


@pytest.mark.parametrize("zero", [0.0, -0.0, 4.9e-324])
@pytest.mark.parametrize("arm", [ur5, panda])
def test_torques_that_are_all_zero_are_named(zero, arm):
    robot = arm().without_joint_terms()
    log = standing(robot, 1, 1e-4)
    log[[f"tau_{joint}" for joint in robot.joints]] = zero
    with pytest.raises(LogError, match="every torque of the log is zero"):
        feasid.fit(log, robot)
    log[[c for c in log if c != "t"]] = zero
    with pytest.raises(LogError, match="every torque of the log is zero"):
        feasid.fit(log, robot)
