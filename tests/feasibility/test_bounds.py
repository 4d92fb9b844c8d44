"""Certified bounds, attacked by witnesses; what does and does not depend on the grouping."""

from dataclasses import dataclass

import numpy as np
import pytest
from feasibility_problems import (
    base_of,
    planar,
    random_parameters,
    random_robot,
    triangle,
    with_noise,
)

import feasid
from benchmarks.second_checker import holds
from feasid.certificate import exact
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.parameters.feasibility.least_squares import feasible_least_squares
from feasid.robot import inertia

SAMPLE, CAMPAIGN = 3, 1000

WITNESSES = 300
"""Feasible points that try to beat each bound."""

OPTIONS = ({}, {"total_mass": 2.0}, {"consistency": "semi"}, {"mass": {"b0": (0.2, 1.5)}})


def problem(seed):
    """A fit whose optimum is on the boundary of what can exist."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, int(rng.integers(1, 4)), drives=bool(rng.integers(2)))
    base = base_of(robot)
    delta = random_parameters(rng, robot)
    delta[robot.inertial_columns[-1, :6]] *= rng.uniform(-0.5, 1.0)
    R = triangle(rng, base)
    rho = with_noise(rng, R @ base.K @ delta, 0.1)
    options = dict(OPTIONS[seed % len(OPTIONS)])
    feasible = feasible_set(robot, options.pop("consistency", "full"), **options)
    return rng, base, feasible, R, rho


def witnesses(rng, feasible, best, centre):
    """Feasible points near the best known one, towards its edge, and far out along its bodies."""
    for _ in range(WITNESSES):
        size = 10.0 ** rng.uniform(-8, 0)
        point = best + size * rng.normal(size=len(best)) * np.abs(best)
        yield (1 - size) * point + size * centre
    for power in range(0, 9):
        for columns in [b.columns for b in feasible.blocks if len(b.columns) == 10]:
            point = best.copy()
            line = rng.normal(size=3)
            heavy = inertia.from_mass_com_inertia(10.0**power, line / 10.0**power, np.zeros((3, 3)))
            point[columns] = point[columns] + heavy
            yield point


def attacked(seed):
    """The smallest ratio of any witness's residual to the bound; at least 1 when it is proved."""
    rng, base, feasible, R, rho = problem(seed)
    fit = feasible_least_squares(R, rho, base, feasible)
    certificate = fit.optimality
    assert certificate is not None
    assert holds(certificate.data), seed
    floor = float(np.sqrt(float(exact(certificate.data["floor"]))))
    closer = feasible_least_squares(R, rho, base, feasible, margin=0.0, friction_ridge=0.0)
    centre = random_parameters(rng, base.robot)
    found = [fit.delta, closer.delta]
    for best in (fit.delta, closer.delta):
        found += [w for w in witnesses(rng, feasible, best, centre) if not feasible.violations(w)]
    costs = [np.linalg.norm(R @ (base.K @ w) - rho) for w in found]
    assert min(costs) >= floor * (1 - 1e-12), (seed, min(costs), floor)
    return (fit.problem.residual_norm(fit.delta) - floor) / np.linalg.norm(rho)


@pytest.mark.slow
@pytest.mark.parametrize("count", [SAMPLE, CAMPAIGN])
def test_no_witness_beats_a_certified_bound(count):
    gaps = np.array([attacked(seed) for seed in range(count)])
    print("gaps relative to |rho|:", np.quantile(gaps, [0.5, 0.9, 0.99, 1.0]))
    assert np.median(gaps) < 1e-4


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
