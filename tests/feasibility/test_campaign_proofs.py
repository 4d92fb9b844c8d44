"""Random problems of fifteen kinds: no false verdict, few undecided, every proof twice checked.

Truth is by construction: a problem made from parameters that can exist must never be called
infeasible, one with negative kinetic energy or impossible bounds never feasible. On the boundary
the rounding of a double decides, and then only the proofs count.
"""

from collections import Counter

import numpy as np
import pytest
from feasibility_problems import energy, planar, random_parameters, random_robot
from second_checker import holds

import feasid
from feasid import Body, Robot
from feasid.robot import inertia

SAMPLE, CAMPAIGN = 300, 10_000

UNDECIDED_INSIDE, UNDECIDED_BOUNDARY = 0.001, 0.02
"""Shares of problems that may stay without an answer, in the long campaign."""

UNDECIDED_SAMPLE = 0.005
"""The same for the short one, of both together: one."""


def decimal_cloud(rng, points):
    """A body of so many points of 10 g multiples on a grid of centimetres: few digits."""
    out = np.zeros(10)
    for _ in range(points):
        mass = int(rng.integers(1, 100)) / 100
        place = rng.integers(-20, 21, size=3) / 100
        out += inertia.from_mass_com_inertia(mass, place, np.zeros((3, 3)))
    return np.round(out, 8)


def of_robot(rng, most=3, **sizes):
    robot = random_robot(rng, int(rng.integers(1, most + 1)), length=sizes.get("length", 1.0))
    return feasid.base_parameters(robot), random_parameters(rng, robot, **sizes)


def margin(rng):
    """Feasible, each body that close to a plane."""
    base, delta = of_robot(rng)
    for columns in base.robot.inertial_columns:
        pseudo = inertia.pseudo_inertia(delta[columns])
        values, vectors = np.linalg.eigh(pseudo)
        values[0] = 10.0 ** rng.uniform(-8, -2) * values[-1]
        delta[columns] = inertia.from_pseudo_inertia((vectors * values) @ vectors.T)
    return base, base.values(delta), {}, "feasible"


def negative_energy(rng):
    base, delta = of_robot(rng)
    beta = base.values(delta)
    y = energy(rng, base.robot, base)
    i = int(np.argmax(np.abs(y * beta)))
    beta[i] += (-(10.0 ** rng.uniform(-8, 0)) - 1.0) * (y @ beta) / y[i]
    return base, beta, {}, "infeasible"


def flat_body(rng, points):
    robot = Robot((Body("free", None, motion=np.eye(6), inertial=decimal_cloud(rng, points)),))
    return feasid.base_parameters(robot), robot.values, {}, "boundary"


def thin(rng, points):
    robot = planar(rng, int(rng.integers(1, 4)))
    delta = np.concatenate([decimal_cloud(rng, points) for _ in robot.bodies])
    base = feasid.base_parameters(robot)
    return base, np.round(base.values(delta), 10), {}, "boundary"


def massless(rng):
    robot = planar(rng, int(rng.integers(1, 4)))
    delta = np.concatenate([decimal_cloud(rng, 6) for _ in robot.bodies])
    delta[robot.inertial_columns[int(rng.integers(len(robot.bodies)))]] = 0.0
    base = feasid.base_parameters(robot)
    return base, np.round(base.values(delta), 10), {}, "boundary"


def slight(rng):
    base, delta = of_robot(rng)
    k = int(rng.integers(len(base.robot.bodies)))
    delta[base.robot.inertial_columns[k]] *= 10.0 ** rng.uniform(-12, -3)
    return base, base.values(delta), {}, "feasible"


def ratios(rng):
    base, delta = of_robot(rng)
    for columns in base.robot.inertial_columns:
        delta[columns] *= 10.0 ** rng.uniform(-6, 6)
    return base, base.values(delta), {}, "feasible"


def tied(rng):
    robot = random_robot(rng, 3)
    delta = random_parameters(rng, robot)
    delta[robot.inertial_columns[2]] = delta[robot.inertial_columns[1]]
    base = feasid.base_parameters(robot)
    heavier = int(rng.integers(2))
    known = delta[robot.inertial_columns[2]] * (1 + heavier)
    answer = "infeasible" if heavier else "feasible"
    return base, base.values(delta), {"equal": [("b1", "b2")], "known": {"b2": known}}, answer


def contradicting(rng):
    base, delta = of_robot(rng)
    total = delta[base.robot.inertial_columns[:, 9]].sum()
    names = [b.name for b in base.robot.bodies]
    bounds = {"mass": {names[0]: (3 * total, None)}, "total_mass": 2 * total}
    return base, base.values(delta), bounds, "infeasible"


def milli(rng):
    base, delta = of_robot(rng, mass=1e-3, length=1e-3)
    return base, base.values(delta), {}, "feasible"


def kilo(rng):
    base, delta = of_robot(rng, mass=1e3, length=1e3)
    return base, base.values(delta), {}, "feasible"


def semi(rng):
    base, beta, _, answer = (margin, negative_energy)[int(rng.integers(2))](rng)
    return base, beta, {"consistency": "semi"}, answer


def joint_terms(rng):
    """Zero or negative friction and drive inertia."""
    robot = random_robot(rng, int(rng.integers(1, 4)), drives=True)
    delta = random_parameters(rng, robot)
    sign = -1.0 * int(rng.integers(2))
    for k in range(len(robot.drives)):
        for symbol, column in robot.drive_columns(k).items():
            delta[column] = 0.0 if symbol != "fc" else sign * 10.0 ** rng.uniform(-9, 0)
    base = feasid.base_parameters(robot)
    beta = base.values(delta)
    return base, beta, {}, "infeasible" if sign else "feasible"


KINDS = {
    "margin": margin,
    "negative energy": negative_energy,
    "point": lambda rng: flat_body(rng, 1),
    "rod": lambda rng: flat_body(rng, 2),
    "disc": lambda rng: flat_body(rng, 3),
    "rods in a chain": lambda rng: thin(rng, 2),
    "discs in a chain": lambda rng: thin(rng, 3),
    "massless": massless,
    "nearly massless": slight,
    "mass ratios": ratios,
    "tied": tied,
    "contradicting": contradicting,
    "milli": milli,
    "kilo": kilo,
    "semi": semi,
    "joint terms": joint_terms,
}


def outcome(seed):
    """Kind, what is true, and what was answered; false answers and bad proofs raise."""
    rng = np.random.default_rng(seed)
    kind = list(KINDS)[seed % len(KINDS)]
    base, beta, options, answer = KINDS[kind](rng)
    verdict = feasid.check(beta, base, **options)
    if verdict.certificate is not None:
        verdict.certificate.verify()
        assert holds(verdict.certificate.data), (seed, kind)
    if answer == "infeasible":
        assert verdict.status in ("infeasible", "inconclusive"), (seed, kind)
    if answer == "feasible":
        assert verdict.status in ("feasible", "inconclusive"), (seed, kind)
    return kind, answer, verdict.status


def test_verdicts_on_random_problems_are_never_wrong():
    found = Counter(outcome(seed) for seed in range(SAMPLE))
    undecided = sum(n for (_, _, status), n in found.items() if status == "inconclusive")
    assert undecided <= UNDECIDED_SAMPLE * SAMPLE, found
    assert {status for _, _, status in found} >= {"feasible", "infeasible", "boundary"}


@pytest.mark.slow
def test_ten_thousand_verdicts_are_never_wrong_and_rarely_missing():
    found = Counter(outcome(seed) for seed in range(CAMPAIGN))
    for key, number in sorted(found.items()):
        print(*key, number)
    for boundary, most in ((False, UNDECIDED_INSIDE), (True, UNDECIDED_BOUNDARY)):
        some = {k: n for k, n in found.items() if (k[1] == "boundary") == boundary}
        undecided = sum(n for (_, _, status), n in some.items() if status == "inconclusive")
        assert undecided <= most * sum(some.values()), found
