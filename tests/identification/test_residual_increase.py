"""The printed increase of the residual is proved, however absurd a description's masses are."""

import re
from dataclasses import replace

import numpy as np
import pytest
from feasibility_problems import random_parameters, random_robot
from thorough import some

import feasid
from feasid.reduction.triangle import Reduced
from feasid.robot import inertia

UNPROVED = 1e-3
"""Share of the squared residual by which the verified optimum may lie above the proved floor."""

SAMPLES = 400
DIGITS = 0.06
"""Relative rounding of the two printed digits."""


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
    t, harmonics = 0.02 * np.arange(SAMPLES), np.arange(1, 5)
    a, b = rng.uniform(-0.5, 0.5, (2, 4, robot.dof))
    sin, cos = np.sin(np.outer(t, harmonics)), np.cos(np.outer(t, harmonics))
    q, dq = sin @ a + cos @ b, (cos * harmonics) @ a - (sin * harmonics) @ b
    ddq = -(sin * harmonics**2) @ a - (cos * harmonics**2) @ b
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


@pytest.mark.parametrize("seed", some(range(200), 1, 2, 9, 14))
def test_the_printed_increase_is_proved_or_not_printed(seed):
    robot, log = absurd_problem(seed)
    fit = feasid.fit(log, robot, diagnose=False)
    printed = re.search(r"at a residual (\S+) % above the smallest feasible one", fit.summary())
    rest = fit.triangle[2] ** 2
    least = fit.best_fitting.objective + rest
    floor = fit.best_fitting.floor + rest
    assert floor <= least * (1 + 1e-9)  # of the rounding of a residual in doubles
    if least > (1 + UNPROVED) * floor:
        assert printed is None
        assert np.isnan(fit.price)
        return
    wanted = np.sqrt((fit.solution.objective + rest) / least) - 1
    assert fit.price == pytest.approx(wanted, abs=1e-12)
    assert fit.price >= 0
    assert float(printed[1]) / 100 == pytest.approx(wanted, rel=DIGITS, abs=1e-12)
    # Proved: no feasible model is better by more than this.
    most = np.sqrt((fit.solution.objective + rest) / floor) - 1
    assert 0 <= most - fit.price <= UNPROVED * (1 + fit.price)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_optimum_and_the_budget_do_not_depend_on_the_description(seed):
    """The residual of the best model is the same for placeholders and for a sensible mass."""
    robot, log = absurd_problem(seed)
    sensible = with_masses(np.random.default_rng(seed), robot, np.zeros(len(robot.bodies)))
    found = []
    for described in (robot, sensible):
        fit = feasid.fit(replace(log, robot=described), described, diagnose=False, weights=None)
        found.append((fit.best_fitting.objective + fit.triangle[2] ** 2, fit.residual.budget(0.99)))
    assert found[0] == pytest.approx(found[1], rel=UNPROVED)
