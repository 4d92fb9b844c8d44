"""Energies against the mass matrix and the gravity torques of the Newton-Euler algorithm."""

import numpy as np
import pytest
from robots import random_robot

import feasid
from feasid.robot.dynamics.energy import energy_regressors

RTOL = 1e-10  # double precision over some six bodies
STEP = 1e-5
RTOL_SLOPE = 1e-8  # a central difference errs by its step squared and by rounding over its step


@pytest.mark.parametrize("seed", range(4))
def test_kinetic_energy_is_half_the_quadratic_form_of_the_mass_matrix(seed):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 6, ("revolute", "prismatic", "helical", "offset"), rotors=True)
    delta, (q, dq) = rng.standard_normal(robot.size), rng.standard_normal((2, robot.dof, 1))
    kinetic = energy_regressors(robot, q, dq)[0] @ delta
    still, column = robot.with_gravity((0, 0, 0)), np.zeros((1, robot.dof))
    momenta = feasid.inverse_dynamics(still, q.T, column, dq.T, parameters=delta)
    np.testing.assert_allclose(kinetic, (momenta * dq.T).sum(axis=1) / 2, rtol=RTOL)


@pytest.mark.parametrize("seed", range(4))
def test_gravity_torques_are_the_slope_of_the_potential(seed):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 6, ("revolute", "prismatic", "helical", "offset"))
    delta, q = rng.standard_normal(robot.size), rng.standard_normal(robot.dof)
    steps = q[:, None] + STEP * np.hstack([np.eye(robot.dof), -np.eye(robot.dof)])
    potential = energy_regressors(robot, steps, np.zeros_like(steps))[1] @ delta
    slope = (potential[: robot.dof] - potential[robot.dof :]) / (2 * STEP)
    rest = np.zeros((1, robot.dof))
    torque = feasid.inverse_dynamics(robot, q[None], rest, rest, parameters=delta)[0]
    np.testing.assert_allclose(slope, torque, atol=RTOL_SLOPE * np.abs(torque).max())
