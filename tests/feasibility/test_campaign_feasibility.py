"""A thousand random feasibility tests with each solver alone: no verdict may be wrong.

Truth is by construction. Kinetic energy is a positive combination of what feasible parameters
are, and determined by base parameters: where some motion would have negative energy, nothing is
feasible.
"""

from collections import Counter

import numpy as np
import pytest
from feasibility_problems import base_of, energy, random_parameters, random_robot

import feasid
from feasid.parameters.feasibility import solve

MOST_BODIES = 30
DECIDED = 0.99

KINDS = ("feasible", "infeasible", "flat", "just infeasible", "hardly feasible")


def ladder(name):
    return [s for s in solve.solver_attempts() if s[0] == name]


def problem(seed, most_bodies):
    """Kind, base parameters structure and values; masses and lengths from 1e-3 to 1e3."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    bodies = int(np.exp(rng.uniform(0, np.log(most_bodies + 0.999))))
    mass, length = 10.0 ** rng.uniform(-3, 3, size=2)
    robot = random_robot(rng, bodies, length=length)
    base = base_of(robot)
    delta = random_parameters(rng, robot, mass=mass, length=length)
    if kind == "flat":
        for columns in robot.inertial_columns[rng.integers(2, size=bodies) == 1]:
            points = length * rng.uniform(-0.5, 0.5, size=(3, 3))
            delta[columns] = sum(
                feasid.robot.inertia.from_mass_com_inertia(mass, p, np.zeros((3, 3)))
                for p in points
            )
    beta = base.K @ delta
    wanted = {
        "infeasible": -rng.uniform(0.1, 2.0),
        "just infeasible": -(10.0 ** rng.uniform(-4, -2)),
        "hardly feasible": 10.0 ** rng.uniform(-4, -2),
    }.get(kind)
    if wanted is not None:
        y = energy(rng, robot, base)
        # Along the coordinate that holds most of this energy, so that units do not matter.
        i = int(np.argmax(np.abs(y * beta)))
        beta[i] += (wanted - 1.0) * (y @ beta) / y[i]
    return kind, base, beta


def outcome(seed, name, most_bodies=MOST_BODIES):
    kind, base, beta = problem(seed, most_bodies)
    verdict = feasid.check(beta, base, solver=ladder(name))
    if verdict.feasible is not None:
        verdict.certificate.verify()
        if "infeasible" in kind:
            assert verdict.feasible is False, (seed, kind)
        elif kind == "feasible":
            assert verdict.feasible is True, (seed, kind)
    return kind, verdict.feasible


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize(("name", "most_bodies"), [("clarabel", 12), ("scs", 2)])
def test_a_few_verdicts_are_never_wrong(name, most_bodies):
    outcomes = [outcome(seed, name, most_bodies)[1] for seed in range(len(KINDS))]
    assert None not in outcomes


@pytest.mark.slow
@pytest.mark.parametrize(("name", "problems"), [("clarabel", 1000), ("scs", 100)])
def test_many_verdicts_are_never_wrong_and_rarely_missing(name, problems):
    outcomes = Counter(outcome(seed, name) for seed in range(problems))
    print(name, dict(outcomes))
    missing = sum(count for (_, answer), count in outcomes.items() if answer is None)
    assert missing <= (1 - DECIDED) * problems, outcomes
