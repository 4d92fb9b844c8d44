"""Reduced logs of random arms, with descriptions whose masses are wrong by many orders."""

from dataclasses import replace

import numpy as np
from feasibility_problems import random_parameters, random_robot
from logs import waves

import feasid
from feasid.identification.regression.triangle import Reduced
from feasid.robot import inertia

SAMPLES = 400


def with_masses(rng, robot, log_mass):
    """The robot as a description with these masses, spread over lengths of 1 cm to 1 m."""
    bodies = []
    for body, power in zip(robot.bodies, log_mass, strict=True):
        mass, size = 10.0**power, 10.0 ** rng.uniform(-2, 0)
        centre = rng.normal(size=3) * size * 0.3
        about = 0.4 * mass * size**2 * np.eye(3)
        ten = inertia.from_mass_com_inertia(mass, centre, about)
        bodies.append(replace(body, inertial=ten))
    return feasid.Robot(tuple(bodies)).with_joint_terms(drive_inertia=True)


def absurd_problem(seed):
    """A described robot with masses from 1e-6 to 1e5 kg, and the reduced log of the true one."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, int(rng.integers(2, 6)), drives=True)
    truth = random_parameters(rng, robot)
    a, b = rng.uniform(-0.5, 0.5, (2, 4, robot.dof))
    q, dq, ddq = waves(0.02 * np.arange(SAMPLES), np.arange(1, 5), a, b)
    tau = feasid.inverse_dynamics(robot, q, dq, ddq, parameters=truth)
    tau += 10.0 ** rng.uniform(-3, -0.5) * tau.std(axis=0) * rng.standard_normal(tau.shape)
    count = len(robot.bodies)
    powers = (
        rng.uniform(-6, 5, count),
        np.full(count, rng.uniform(-6, 5)),
        rng.choice([-6.0, -3.0, 0.0, 4.0, 5.0], count),
    )[rng.integers(3)]
    described = with_masses(rng, robot, powers)
    return described, Reduced.from_samples(described, q, dq, ddq, tau)
