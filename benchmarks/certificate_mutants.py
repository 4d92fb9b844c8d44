"""Certificates of every claim, and mutants of them: what a checker may take, and at what cost.

`tests/feasibility/test_checkers.py` tries hundreds, and a hundred thousand where it is slow.
"""

import copy
import itertools
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # their helpers, without pytest
from claims import signed
from feasibility_problems import random_parameters, random_robot, triangle

import feasid
from feasid import Body, Robot, Rotor, certificate
from feasid.parameters.feasibility.least_squares import feasible_least_squares

MOST_CALLS = 300_000
"""Calls of functions for one mutated certificate: ten times those of the largest true one."""

CHAIN = Robot(
    (Body("a", None, rotor=Rotor(50.0)), Body("b", "a", position=(0.3, 0.0, 0.1)))
).with_joint_terms(drive_inertia=True)


def accepted(data):
    try:
        certificate.verify(data)
    except ValueError:
        return False
    return True


def counted(data):
    """Whether the checker accepts, and how many calls it made: its work on any machine."""
    calls = itertools.count()
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, argument: next(calls))
    try:
        verdict = accepted(data)
    finally:
        sys.setprofile(before)
    return verdict, next(calls)


def originals():
    """Certificates of every claim, with and without limit, ties, bounds, rotors and margins."""
    rng = np.random.default_rng(0)
    base = feasid.base_parameters(CHAIN)
    delta = np.zeros(CHAIN.size)
    for i, columns in enumerate(CHAIN.inertial_columns):
        delta[columns] = feasid.robot.inertia.from_mass_com_inertia(
            1.0 + i, [0.1, 0.02 * i, 0.05], np.diag([0.02, 0.03, 0.03])
        )
    delta[CHAIN.rotor_columns(0)] = [0.0004, 0.0005, 0.002, 0.25]
    for k in range(len(CHAIN.drives)):
        for column in CHAIN.drive_columns(k).values():
            delta[column] = 0.125
    beta = base.K @ delta
    low = beta.copy()
    low[
        [i for i, c in enumerate(base.independent) if CHAIN.parameter_names[c] == ("b", "Lzz")]
    ] = -0.1
    asked = {"mass": {"b": (0.5, 9.0)}, "com_ellipsoid": {"b": (np.zeros(3), np.full(3, 0.5))}}
    ten = feasid.robot.inertia.from_mass_com_inertia(1.0, [0, 0, 0.5], np.diag([0.01, 0.01, 0.0]))
    rod = Robot((Body("rod", None, inertial=ten),))
    found = {
        "feasible": feasid.check(beta, base),
        "feasible, asked": feasid.check(beta, base, margin=1e-6, **asked),
        "infeasible": feasid.check(low, base),
        "infeasible, semi": feasid.check(low, base, consistency="semi"),
        "infeasible, tied": feasid.check(
            beta, base, known={"b": 2 * delta[CHAIN.inertial_columns[1]]}
        ),
        "infeasible, bounds": feasid.check(
            beta, base, mass={"a": (5, None)}, mass_sums={"both": (["a", "b"], None, 4)}
        ),
        "boundary": feasid.check(rod),
        "feasible, still": feasid.check(still()),
    }
    robot = random_robot(rng, 2)
    turned = feasid.base_parameters(robot)
    truth = random_parameters(rng, robot)
    truth[robot.inertial_columns[1, :6]] -= 1.0
    found["infeasible, limit"] = refute_up_to_a_limit()
    out = {name: verdict.certificate.data for name, verdict in found.items()}
    R = triangle(rng, turned)
    rho = R @ (turned.K @ truth)
    fit = feasible_least_squares(R, rho, turned, feasid.feasible_set(robot))
    out["bound"] = fit.optimality.data
    return out


def refute_up_to_a_limit():
    """A refutation up to a size: the rounding of turned axes is in the way of one in two."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        robot = random_robot(rng, 2)
        base, truth = feasid.base_parameters(robot), random_parameters(rng, robot)
        truth[robot.inertial_columns[1, :6]] -= 1.0
        verdict = feasid.check(base.K @ truth, base)
        if verdict.certificate.data["limit"] is not None:
            return verdict
    raise AssertionError("no refutation has a limit")


def still():
    """A body on a joint without friction: a sign that holds with equality."""
    ten = feasid.robot.inertia.from_mass_com_inertia(1.0, [0, 0, 0.1], np.eye(3) / 100)
    robot = Robot((Body("one", None, inertial=ten),)).with_joint_terms()
    return robot.with_values(np.r_[ten, np.zeros(robot.size - 10)])


def places(data, path=()):
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


JUNK = [
    "1", "-1/3", "1e999", "0", "-0", "1e-400", "9" * 3000, "full", "m", "rotor_m", "", None,
    True, 0, 1, -1, 40,
]  # fmt: skip
JUNK += [1.5, float("nan"), 10**30, [], {}, {"": None}, [0, "1"], [["body", "a"], ["1"]], "\n"]


def mutated(data, others, rng):
    """A certificate with a field, name, number, order or nesting changed, or swapped."""
    data = copy.deepcopy(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        *way, last = rng.choice(list(places(data)))
        place = data
        for key in way:
            place = place[key]
        how = rng.random()
        if how < 0.3:
            place[last] = copy.deepcopy(rng.choice(JUNK))
        elif how < 0.55 and isinstance(place[last], str):
            place[last] = (
                str(rng.choice([-1, 2, 0, 1])) if rng.random() < 0.5 else "-" + place[last]
            )
        elif how < 0.65 and isinstance(place, list):
            place.append(copy.deepcopy(place[last]))
        elif how < 0.75 and isinstance(place, list):
            rng.shuffle(place)
        elif how < 0.85:
            del place[last]
        elif how < 0.95:
            key = rng.choice(list(data)) if data else "x"
            data[key] = copy.deepcopy(rng.choice(others).get(key))
        else:
            place[last] = [place[last]]
        if not data:
            break
    return signed(data) if "digest" in data else data
