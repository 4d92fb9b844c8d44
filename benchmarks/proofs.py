"""Random problems with a known answer, and what `feasid.check` says of them.

Truth is by construction: a problem made from parameters that can exist must never be called
infeasible, one with negative kinetic energy or impossible bounds never feasible. On the boundary
the rounding of a double decides ("boundary", "edge"), and then only the proofs count. Every proof
is checked by both checkers.

    PYTHONPATH=.:tests python benchmarks/proofs.py [--count 10000] [--new] [--first 0]
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
from feasibility_problems import energy, planar, random_parameters, random_robot

import feasid
from benchmarks import closed
from benchmarks.second_checker import holds
from feasid import Body, Robot, Rotor
from feasid.robot import inertia

FREE = Robot((Body("free", None, motion=np.eye(6)),))


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


def sized(rng, unit):
    base, delta = of_robot(rng, mass=unit, length=unit)
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
    return base, base.values(delta), {}, "infeasible" if sign else "feasible"


OLD = {
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
    "milli": lambda rng: sized(rng, 1e-3),
    "kilo": lambda rng: sized(rng, 1e3),
    "semi": semi,
    "joint terms": joint_terms,
}


# -- new families ----------------------------------------------------------------------------------


def count(rng, most=40):
    """Of bodies, small ones more often."""
    return int(np.exp(rng.uniform(0, np.log(most + 0.999))))


def spoil(rng, base, beta):
    """Values with which some motion would have negative energy."""
    y = energy(rng, base.robot, base)
    i = int(np.argmax(np.abs(y * beta)))
    beta[i] += (-(10.0 ** rng.uniform(-4, 0)) - 1.0) * (y @ beta) / y[i]
    return beta


def either(rng, base, delta, **options):
    """The values of what exists, or the same spoiled."""
    beta = base.values(delta)
    if rng.random() < 0.5:
        return base, spoil(rng, base, beta), options, "infeasible"
    return base, beta, options, "feasible"


def mixed_scales(rng):
    """Bodies from 1e-9 to 1e6 kg on one arm."""
    robot = random_robot(rng, count(rng, 6))
    delta = random_parameters(rng, robot)
    for columns in robot.inertial_columns:
        delta[columns] *= 10.0 ** rng.uniform(-9, 6)
    return either(rng, feasid.base_parameters(robot), delta)


def massless_chain(rng):
    """Chains in which most bodies have next to no mass."""
    robot = (random_robot, planar)[int(rng.integers(2))](rng, count(rng, 8))
    delta = random_parameters(rng, robot)
    for columns in robot.inertial_columns[rng.random(len(robot.bodies)) < 0.7]:
        delta[columns] *= 10.0 ** rng.uniform(-12, -6)
    return either(rng, feasid.base_parameters(robot), delta)


def with_rotors(rng, bodies):
    """An arm with drive inertias and rotors, and parameters of it."""
    arm = random_robot(rng, bodies)
    parts = [replace(body, rotor=Rotor(float(rng.integers(20, 160)))) for body in arm.bodies]
    robot = Robot(tuple(parts)).with_joint_terms(friction=(), drive_inertia=True)
    delta = random_parameters(rng, robot)
    for k in range(bodies):
        m, r, h = 10.0 ** rng.uniform(-2, 0), 0.02, 0.03
        place = np.array([0, 0, rng.uniform(-0.05, 0.05)])
        ten = inertia.from_mass_com_inertia(
            m, place, np.diag([m * (3 * r**2 + h**2) / 12] * 2 + [m * r**2 / 2])
        )
        delta[robot.rotor_columns(k)] = ten[[0, 5, 8, 9]]
    return robot, delta


def known_with_rotors(rng):
    """Known bodies, as they are or three times as heavy as all base parameters allow."""
    robot, delta = with_rotors(rng, count(rng, 6))
    k = int(rng.integers(len(robot.bodies)))
    known = delta[robot.inertial_columns[k]].copy()
    if rng.random() < 0.5:
        known[rng.random(10) < 0.5] = np.nan
    known[9] = delta[robot.inertial_columns[k, 9]]
    base = feasid.base_parameters(robot)
    return either(rng, base, delta, known={robot.bodies[k].name: known})


def tied_with_rotors(rng):
    """Equal bodies of .07 to .3 kg."""
    robot, delta = with_rotors(rng, int(rng.integers(2, 6)))
    first, second = (int(k) for k in rng.choice(len(robot.bodies), 2, replace=False))
    delta[robot.inertial_columns] *= rng.uniform(0.07, 0.3)
    delta[robot.inertial_columns[second]] = delta[robot.inertial_columns[first]]
    names = [robot.bodies[k].name for k in (first, second)]
    return either(rng, feasid.base_parameters(robot), delta, equal=[tuple(names)])


def contradicting_equations(rng):
    """Known values that contradict values, or sums of masses; by little, "edge"."""
    robot = FREE
    delta = random_parameters(rng, robot)
    off, i = 10.0 ** rng.uniform(-16, 0), int(rng.integers(10))
    known = np.full(10, np.nan)
    known[i] = delta[i] + off * abs(delta[i])
    base = feasid.base_parameters(robot)
    answer = "edge" if off < 1e-8 else "infeasible"
    if rng.random() < 0.3:
        options = {"mass_sums": {"all": (["free"], delta[9] * (1 + off), delta[9] * (1 + off))}}
        return base, base.values(delta), options, answer
    return base, base.values(delta), {"known": {"free": known}}, answer


def on_mass_bounds(rng):
    """Masses exactly at their bounds, or just beyond them."""
    robot = planar(rng, count(rng, 4))
    delta = np.concatenate([decimal_cloud(rng, 12) for _ in robot.bodies])
    beyond = int(rng.integers(3)) - 1  # inside, at, outside
    masses = delta[robot.inertial_columns[:, 9]]
    if rng.random() < 0.5:
        base, delta, mass = feasid.base_parameters(FREE), delta[:10], masses[0]
        most = round(mass * (1 - 10.0 ** -int(rng.integers(2, 12)) * beyond), 14)
        limits = {"mass": {"free": (None, most)}}
        return base, base.values(delta), limits, ("feasible", "edge", "infeasible")[beyond + 1]
    base = feasid.base_parameters(robot)
    limits = {"mass": {b.name: (m, m) for b, m in zip(robot.bodies, masses, strict=True)}}
    return base, base.values(delta), limits, "edge"


def barely_contained(rng):
    """Ellipsoids and boxes that just contain what a body's numbers say, or just do not."""
    robot = FREE
    delta = random_parameters(rng, robot)
    base, mass = feasid.base_parameters(robot), delta[9]
    share = 10.0 ** rng.uniform(-12, -1) * rng.choice([-1.0, 1.0])
    answer = "edge" if abs(share) < 1e-8 else ("feasible" if share > 0 else "infeasible")
    com = delta[6:9] / mass
    if rng.random() < 0.5:
        axes = rng.uniform(0.2, 1.0, size=3)
        second = np.diag(inertia.pseudo_inertia(delta))[:3] / mass  # about the origin
        size = np.sqrt(float(np.sum(second / axes**2)))
        ellipsoid = np.zeros(3), axes * size * (1 + share)
        return base, base.values(delta), {"inertia_ellipsoid": {"free": ellipsoid}}, answer
    low, high = com - 0.1, com + 0.1
    i = int(rng.integers(3))
    high[i] = com[i] + share * abs(com[i])
    return base, base.values(delta), {"com_box": {"free": (low, high)}}, answer


@cache
def mechanism(name):
    """A robot with loops and its base parameters."""
    return feasid.base_parameters(feasid.load_robot(closed.MECHANISMS[name]))


def loops(rng):
    """Closed mechanisms with other bodies."""
    base = mechanism(list(closed.MECHANISMS)[int(rng.integers(len(closed.MECHANISMS)))])
    delta = random_parameters(rng, base.robot, mass=10.0 ** rng.uniform(-3, 3))
    beta = base.values(delta)
    if rng.random() < 0.5:
        sizes = [beta[i] for i in np.flatnonzero((np.abs(base.K) > 0).sum(axis=1) == 1)]
        if sizes:
            total = float(delta[base.robot.inertial_columns[:, 9]].sum())
            lightest = {"light": ([b.name for b in base.robot.bodies], 2 * total, None)}
            return base, beta, {"mass_sums": lightest, "total_mass": total}, "infeasible"
    return base, beta, {}, "feasible"


def floating(rng):
    """Arms on a floating base."""
    arm = random_robot(rng, count(rng, 6))
    trunk = Body("trunk", None, motion=np.eye(6))
    first, *rest = arm.bodies
    robot = Robot((trunk, replace(first, parent="trunk"), *rest))
    delta = random_parameters(rng, robot, mass=10.0 ** rng.uniform(-2, 2))
    base = feasid.base_parameters(robot)
    beta = base.values(delta)
    if rng.random() < 0.5:
        k = base.independent.tolist().index(9) if 9 in base.independent else None
        if k is not None:  # the mass of all
            beta[k] *= -1.0
            return base, beta, {}, "infeasible"
    return base, beta, {}, "feasible"


def many_bodies(rng):
    """One to forty bodies."""
    robot = (random_robot, planar)[int(rng.integers(2))](rng, count(rng))
    return either(rng, feasid.base_parameters(robot), random_parameters(rng, robot))


def own_values(rng):
    """A robot's own parameters, all of them known, of any size."""
    free = random_robot(rng, count(rng, 4))
    delta = random_parameters(rng, free)
    answer = "feasible"
    for columns in free.inertial_columns:
        delta[columns] *= 10.0 ** rng.uniform(-9, 9)
    if rng.random() < 0.5:
        columns = free.inertial_columns[int(rng.integers(len(free.bodies)))]
        delta[columns[9]] *= 10.0 ** rng.uniform(-9, -3)  # too light for its first moment
        com = delta[columns[6:9]] / delta[columns[9]]
        trace = np.trace(inertia.pseudo_inertia(delta[columns])[:3, :3])
        answer = "infeasible" if delta[columns[9]] * com @ com > 1.001 * trace else "edge"
    return free.with_values(delta), None, {}, answer


NEW = {
    "mixed scales": mixed_scales,
    "massless chain": massless_chain,
    "known, rotors": known_with_rotors,
    "tied, rotors": tied_with_rotors,
    "contradicting equations": contradicting_equations,
    "on mass bounds": on_mass_bounds,
    "barely contained": barely_contained,
    "loops": loops,
    "floating": floating,
    "many bodies": many_bodies,
    "own values": own_values,
}


def outcome(seed, families=OLD, solver=None):
    """Kind, what is true, and what was answered; false answers and bad proofs raise."""
    rng = np.random.default_rng(seed)
    kind = list(families)[seed % len(families)]
    base, beta, options, answer = families[kind](rng)
    given = (base,) if beta is None else (beta, base)
    verdict = feasid.check(*given, solver=solver, **options)
    if verdict.certificate is not None:
        verdict.certificate.verify()
        assert holds(verdict.certificate.data), (seed, kind)
    if answer == "infeasible":
        assert verdict.status in ("infeasible", "inconclusive"), (seed, kind, verdict.status)
    if answer == "feasible":
        assert verdict.status in ("feasible", "inconclusive"), (seed, kind, verdict.status)
    return kind, answer, verdict.status


def main():
    """Print the verdicts on problems of one set of families, and the share without an answer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first problem")
    parser.add_argument("--new", action="store_true", help="the newer families")
    given = parser.parse_args()
    families = NEW if given.new else OLD
    seeds = range(given.first, given.first + given.count)
    found = Counter(outcome(seed, families) for seed in seeds)
    for key, number in sorted(found.items()):
        print(*key, number)
    undecided = sum(n for (_, _, status), n in found.items() if status == "inconclusive")
    print(f"none wrong; {undecided} of {given.count} without an answer")


if __name__ == "__main__":
    main()
