"""Derivatives of torques against differences of inverse dynamics."""

import numpy as np
import pytest
from robots import random_robot

from feasid.robot.dynamics.newton_euler import torque_derivatives
from feasid.robot.dynamics.regressor import inverse_dynamics

STEP = 1e-4
# Central differences err by STEP^2 times third derivatives of the order of the derivative itself.
DIFFERENCE_ERROR = 1e-6


@pytest.mark.parametrize("rotors", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_derivatives_are_slopes_of_the_torques(seed, rotors):
    """Of branched robots with turning and sliding joints, in several chunks of samples."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 6, rotors=rotors)
    robot = robot.with_values(rng.standard_normal(robot.size)).without_joint_terms()
    motion = rng.standard_normal((3, 2000, robot.dof))
    made = torque_derivatives(robot, *motion)
    for moved, slopes in enumerate((made.by_position, made.by_velocity, made.by_acceleration)):
        for j in range(robot.dof):
            step = np.zeros_like(motion)
            step[moved, :, j] = STEP
            ends = (inverse_dynamics(robot, *(motion + s)) for s in (step, -step))
            difference = (next(ends) - next(ends)).T / (2 * STEP)
            size = np.abs(difference).max(initial=1.0)
            np.testing.assert_allclose(slopes[:, j], difference, atol=DIFFERENCE_ERROR * size)
