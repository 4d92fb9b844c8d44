"""Feasible points that try to beat certified bounds of random fits: none may be below a bound.

    PYTHONPATH=.:tests python -m benchmarks.witnesses [--count 1000]

Prints quantiles of the gaps between fits and their bounds, over the norm of the torques.
"""

import argparse

import numpy as np
from feasibility_problems import base_of, random_parameters, random_robot, triangle, with_noise

from benchmarks.second_checker import holds
from feasid.certificate import exact
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.parameters.feasibility.least_squares import feasible_least_squares
from feasid.robot import inertia

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


def main():
    """Attack the bounds of so many fits."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    gaps = [attacked(seed) for seed in range(parser.parse_args().count)]
    print("median, 90 %, 99 % and largest gap:", np.quantile(gaps, [0.5, 0.9, 0.99, 1.0]))


if __name__ == "__main__":
    main()
