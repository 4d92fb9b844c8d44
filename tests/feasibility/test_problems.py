"""Feasible least squares: truth by construction, invariances, and what is asked of the caller."""

import time

import numpy as np
import pytest
from feasibility_problems import base_of, random_parameters, random_robot, triangle, with_noise
from seeds import seed_of

from feasid.core.errors import InputError, SolverError
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.parameters.feasibility.least_squares import feasible_least_squares
from feasid.parameters.feasibility.solve import SolverAnswer

RTOL_SEEN = 1e-4
"""Of base parameters, as a share of the largest: some are hardly seen, and end where a solver does;
Clarabel leaves 5e-6."""

RTOL_TRUTH = 1e-5
"""Solver tolerance 1e-9 on the residual, times condition numbers up to about 1e4."""


def problem(seed, bodies=4, noise=0.0, **size):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, bodies, drives=True, length=size.get("length", 1.0))
    truth = random_parameters(rng, robot, **size)
    base = base_of(robot)
    R = triangle(rng, base)
    rho = with_noise(rng, R @ base.K @ truth, noise)
    return robot, base, R, rho, truth


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("consistency", ["full", "semi"])
def test_exact_data_of_a_feasible_robot_return_its_base_parameters(seed, consistency):
    robot, base, R, rho, truth = problem(seed)
    fit = feasible_least_squares(R, rho, base, feasible_set(robot, consistency), friction_ridge=0.0)
    expected = base.K @ truth
    assert np.linalg.norm(fit.beta - expected) <= RTOL_TRUTH * np.linalg.norm(expected)
    assert fit.beta == pytest.approx(base.K @ fit.delta, rel=1e-14, abs=1e-14)
    assert not feasible_set(robot, consistency).violations(fit.delta)


@pytest.mark.parametrize("seed", range(5))
def test_noisy_data_give_a_strictly_feasible_model(seed):
    robot, base, R, rho, _ = problem(seed, noise=0.3)
    free = np.linalg.lstsq(R, rho, rcond=None)[0]
    feasible = feasible_set(robot)
    fit = feasible_least_squares(R, rho, base, feasible)
    assert min(fit.margins.values()) > 0
    assert not feasible.violations(fit.delta)
    assert fit.objective >= np.sum((R @ free - rho) ** 2)
    assert fit.objective == pytest.approx(np.sum((R @ base.K @ fit.delta - rho) ** 2))
    assert fit.tie_break == "centre"


@pytest.mark.parametrize(("mass", "length"), [(1e-3, 1e-2), (1e3, 10.0), (1e-2, 10.0)])
def test_small_and_large_robots_are_the_same_problem(mass, length):
    robot, base, R, rho, _ = problem(11, noise=0.3)
    big = random_robot(np.random.default_rng(11), 4, drives=True, length=length)
    powers = np.array([2] * 6 + [1] * 3 + [0])
    factor = np.full(robot.size, mass * length**2)
    factor[robot.inertial_columns] = mass * length**powers
    in_base = factor[base.independent]
    big_base = type(base)(big, base.K * in_base[:, None] / factor, base.independent)
    torque = mass * length**2
    fit = feasible_least_squares(R, rho, base, feasible_set(robot))
    same = feasible_least_squares(torque * R / in_base, torque * rho, big_base, feasible_set(big))
    assert same.objective == pytest.approx(torque**2 * fit.objective, rel=1e-6)
    beta, other = base.K @ fit.delta, base.K @ (same.delta / factor)
    np.testing.assert_allclose(other, beta, rtol=0, atol=RTOL_SEEN * np.abs(beta).max())


def test_the_unseen_part_goes_to_the_description_when_it_has_one():
    robot, base, R, rho, truth = problem(3)
    described = robot.with_values(truth)
    base = type(base)(described, base.K, base.independent)
    fit = feasible_least_squares(R, rho, base, feasible_set(described), friction_ridge=0.0)
    assert fit.tie_break == "description"
    assert fit.bodies_with_reference == tuple(b.name for b in robot.bodies)
    assert fit.delta == pytest.approx(truth, rel=1e-3, abs=1e-4)


def test_an_unusable_description_is_not_a_reference():
    robot, base, R, rho, truth = problem(3)
    values = truth.copy()
    values[robot.inertial_columns[1]] = 0.0
    values[robot.inertial_columns[2, 0]] *= 10.0
    base = type(base)(robot.with_values(values), base.K, base.independent)
    fit = feasible_least_squares(R, rho, base, feasible_set(base.robot))
    assert fit.tie_break == "mixed"
    assert fit.bodies_with_reference == ("b0", "b3")


def test_bounds_are_kept():
    robot, base, R, rho, _ = problem(5, noise=0.3)
    box = {b.name: ([-0.1] * 3, [0.1] * 3) for b in robot.bodies}
    feasible = feasible_set(robot, com_box=box, total_mass=(1.0, 3.0), mass={"b1": (0.5, None)})
    fit = feasible_least_squares(R, rho, base, feasible)
    masses = fit.delta[robot.inertial_columns[:, 9]]
    moments = fit.delta[robot.inertial_columns[:, 6:9]]
    assert 1.0 <= masses.sum() <= 3.0
    assert masses[1] >= 0.5
    assert (np.abs(moments) <= 0.1 * masses[:, None]).all()


def test_contradictory_bounds_are_the_callers_error():
    robot, base, R, rho, _ = problem(5)
    feasible = feasible_set(robot, total_mass=1.0, mass={"b1": (2.0, None)})
    with pytest.raises(InputError, match="no parameters satisfy") as caught:
        feasible_least_squares(R, rho, base, feasible)
    assert set(caught.value.conflict) == {"mass of b1 lower", "total mass upper"}


def test_a_strong_prior_wins_over_the_data_and_a_weak_one_does_not():
    robot, base, R, rho, truth = problem(6)
    other = random_parameters(np.random.default_rng(60), robot)
    feasible = feasible_set(robot)
    strong = feasible_least_squares(R, rho, base, feasible, prior=other, prior_weight=1e12)
    assert strong.delta == pytest.approx(other, rel=1e-3, abs=1e-3)
    weak = feasible_least_squares(
        R, rho, base, feasible, prior=other, prior_weight=1e-9, friction_ridge=0
    )
    assert weak.beta == pytest.approx(base.K @ truth, rel=1e-3, abs=1e-4)


def test_a_prior_that_meets_no_constraint_gives_the_closed_form():
    """The stacked least squares of (34), (35) in the Valkyrie paper, with weights as in (33)."""
    robot, base, R, rho, truth = problem(7, noise=1e-4)
    near, alpha = truth * 1.01, 0.3
    rows = np.vstack([np.sqrt(alpha) * R @ base.K, np.sqrt(1 - alpha) * np.eye(robot.size)])
    closed = np.linalg.pinv(rows) @ np.r_[np.sqrt(alpha) * rho, np.sqrt(1 - alpha) * near]
    feasible = feasible_set(robot)
    assert feasible.contains_strictly(closed)
    fit = feasible_least_squares(
        R, rho, base, feasible, prior=near, prior_weight=(1 - alpha) / alpha, friction_ridge=0.0
    )
    assert fit.delta == pytest.approx(closed, rel=RTOL_TRUTH, abs=RTOL_TRUTH)


def test_wrong_shapes_and_numbers_are_named():
    robot, base, R, rho, _ = problem(0, bodies=2)
    with pytest.raises(InputError, match="shape"):
        feasible_least_squares(R, rho[:-1], base, feasible_set(robot))
    with pytest.raises(InputError, match="finite numbers"):
        feasible_least_squares(R, rho * np.nan, base, feasible_set(robot))
    other = random_robot(np.random.default_rng(1), 3)
    with pytest.raises(InputError, match="different robots"):
        feasible_least_squares(R, rho, base, feasible_set(other))


class PanicException(BaseException):
    """What a panic in a solver written in Rust looks like from Python."""


def panics(program):
    raise PanicException("index out of bounds")


def says_nan(program):
    return SolverAnswer("Solved", np.full(program.size, np.nan))


@pytest.mark.parametrize("solver", [panics, says_nan])
def test_solvers_that_fail_lead_to_an_error_that_lists_them(solver):
    robot, base, R, rho, _ = problem(0, bodies=2)
    with pytest.raises(SolverError, match="fake") as caught:
        feasible_least_squares(R, rho, base, feasible_set(robot), solver=[("fake", "cone", solver)])
    assert {a.solver for a in caught.value.attempts} == {"fake"}
    assert not any(a.accepted for a in caught.value.attempts)


def test_a_wrong_point_is_never_returned_as_it_is():
    robot, base, R, rho, _ = problem(0, bodies=2)
    lies = [("fake", "cone", lambda program: SolverAnswer("Solved", -np.ones(program.size)))]
    with pytest.raises(SolverError) as caught:
        feasible_least_squares(R, rho, base, feasible_set(robot), solver=lies)
    assert not caught.value.attempts[0].accepted


@pytest.mark.slow
def test_twenty_links_take_less_than_fifteen_seconds():
    """Footnote 8 of Sousa and Cortesao (2014), in processor time."""
    robot, base, R, rho, truth = problem(seed_of("links"), bodies=20, noise=0.3)
    start = time.process_time()
    fit = feasible_least_squares(R, rho, base, feasible_set(robot, "semi"))
    assert time.process_time() - start < 15
    assert fit.objective < np.sum((R @ base.K @ truth - rho) ** 2)
