"""Certified bounds, attacked by witnesses; what does and does not depend on the grouping."""

from dataclasses import dataclass

import numpy as np
import pytest
from feasibility_problems import base_of, planar, random_parameters, random_robot, triangle

import feasid
from benchmarks.second_checker import holds
from benchmarks.witnesses import attacked, problem
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.parameters.feasibility.least_squares import feasible_least_squares


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("seed", range(2))
def test_no_witness_beats_a_certified_bound(seed):
    assert attacked(seed) < 1e-4


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("consistency", ["full", "semi"])
@pytest.mark.parametrize("seed", range(6))
def test_bounds_hold_without_a_limit_where_geometry_is_rational(seed, consistency):
    rng = np.random.default_rng(seed)
    robot = planar(rng, 3).with_joint_terms() if seed % 2 else planar(rng, 3)
    base = feasid.base_parameters(robot)
    delta = random_parameters(rng, robot)
    delta[robot.inertial_columns[-1, :6]] *= -0.2
    R = triangle(rng, base)
    rho = R @ base.K @ delta + 0.1 * rng.normal(size=base.size)
    bounds = ({}, {"mass": {"b1": (0.5, 1.0)}}, {"total_mass": 2.0})[seed % 3]
    feasible = feasible_set(robot, consistency, **bounds)
    fit = feasible_least_squares(R, rho, base, feasible)
    if bounds and consistency == "semi":  # a bound's push leaves the face, and 6x6 is not unique
        assert fit.optimality.limit is None or fit.optimality.limit["mass"] >= 1e8
    else:
        assert fit.optimality.limit is None
        assert "proved only up to" not in fit.optimality.verify()
    assert holds(fit.optimality.data)
    assert fit.gap < 1e-4
    correction = feasid.correct(base.K @ delta, base, feasible=feasible)
    assert correction.optimality.limit is None or (bounds and consistency == "semi")
    assert holds(correction.optimality.data)


def test_bounds_of_irrational_geometry_say_their_limit():
    _, base, feasible, R, rho = problem(0)
    certificate = feasible_least_squares(R, rho, base, feasible).optimality
    assert certificate.limit["mass"] >= 1e8
    assert "proved only up to" in certificate.verify()


@dataclass(frozen=True)
class Regrouped:
    """The same base parameters in other combinations: ``beta' = G beta``, ``K' = G K``."""

    robot: object
    K: np.ndarray


@pytest.mark.parametrize("seed", range(4))
def test_feasibility_and_fits_do_not_depend_on_the_grouping_and_corrections_do(seed):
    """Sousa and Cortesao (2014), section 4.5: BPFT and FBPE do not, BPFC does."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 2)
    base = base_of(robot)
    delta = random_parameters(rng, robot)
    broken = delta.copy()
    broken[robot.inertial_columns[1, :6]] -= 1.0
    G = np.eye(len(base.K)) + np.tril(rng.integers(-2, 3, size=(len(base.K),) * 2), -1)
    other = Regrouped(robot, G @ base.K)
    for beta, answer in ((base.K @ delta, True), (base.K @ broken, False)):
        assert feasid.check(beta, base).feasible is answer
        assert feasid.check(G @ beta, other).feasible is answer
    R = triangle(rng, base)
    rho = R @ (base.K @ broken)
    feasible = feasible_set(robot)
    one = feasible_least_squares(R, rho, base, feasible)
    two = feasible_least_squares(R @ np.linalg.inv(G), rho, other, feasible)
    assert two.objective == pytest.approx(one.objective, rel=1e-4)
    near, far = feasid.correct(base.K @ broken, base), feasid.correct(G @ base.K @ broken, other)
    moved = np.linalg.norm(np.linalg.solve(G, far.beta) - near.beta)
    assert moved > 1e-3 * near.distance
