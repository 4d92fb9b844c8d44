"""Two checkers that share no code agree, and no mutated certificate that is accepted is false."""

import copy
import itertools
import json
import random
import sys
from fractions import Fraction

import numpy as np
import pytest
from claims import signed
from feasibility_problems import random_parameters, random_robot, triangle
from second_checker import holds, inertia, is_pd, is_psd

import feasid
from feasid import Body, Robot, Rotor, certificate
from feasid.parameters.feasibility.least_squares import feasible_least_squares

MUTATIONS, MUTATIONS_SLOW = 500, 100_000
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
    delta[:] = random_parameters(rng, CHAIN) if CHAIN.size == 20 else 0
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


@pytest.fixture(scope="module")
def certificates():
    return originals()


def test_both_checkers_accept_every_kind_of_certificate(certificates):
    claims = {data["claim"] for data in certificates.values()}
    assert claims == {"feasible", "infeasible", "boundary", "bound"}
    assert certificates["infeasible, limit"]["limit"] is not None
    assert certificates["infeasible, bounds"]["limit"] is None
    for name, data in certificates.items():
        travelled = json.loads(json.dumps(data), object_pairs_hook=certificate.unique)
        assert name.startswith(data["claim"])
        assert accepted(travelled), name
        assert holds(travelled), name


@pytest.mark.parametrize("kind", ["full", "semi"])
def test_both_checkers_know_the_same_matrices(kind):
    rng = np.random.default_rng(1)
    for symbols in (certificate.BODY, certificate.BALANCED):
        values = {
            s: Fraction(int(x), 7) for s, x in zip(symbols, rng.integers(-9, 9, 10), strict=False)
        }
        rule = certificate.consistency(kind, {s: j for j, s in enumerate(symbols)})
        matrix = [row[:] for row in rule.constant]
        for j, entries in rule.basis.items():
            for r, c, v in entries:
                matrix[r][c] += v * values[symbols[j]]
        assert matrix == inertia(kind, values)


def test_a_sign_that_holds_with_equality_proves_nothing(certificates):
    data = json.loads(json.dumps(certificates["feasible, still"]))
    place = [tuple(name) for name in data["parameters"]].index(("one", "fv"))
    (row,) = (i for i, row in enumerate(data["matrix"]) if [j for j, _ in row] == [place])
    combination = ["1" if i == row else "0" for i in range(len(data["matrix"]))]
    del data["point"]
    data |= {"claim": "infeasible", "limit": None, "tied": [], "combination": combination}
    data["multipliers"] = [[["sign", "one", "fv"], ["1"]]]
    with pytest.raises(ValueError, match="prove nothing"):
        certificate.verify(signed(data))
    assert not holds(signed(data))


def test_limits_are_of_masses_first_and_second_moments_and_joint_terms(certificates):
    data = json.loads(json.dumps(certificates["infeasible, limit"]))
    data["parameters"].append(["b0", "fv"])
    data["limit"] = {"mass": "300000000", "length": "7", "terms": "200000000"}
    sizes = dict.fromkeys(("lx", "ly", "lz"), 2_100_000_000) | {"m": 3 * 10**8, "fv": 2 * 10**8}
    expected = [sizes.get(symbol, 14_700_000_000) for _, symbol in data["parameters"]]
    assert certificate.Claim(data).limits == expected


def test_both_checkers_agree_on_definiteness():
    rng = np.random.default_rng(2)
    for _ in range(300):
        size, rank = rng.integers(1, 6, size=2)
        factor = rng.integers(-3, 4, size=(size, rank))
        gram = factor @ factor.T - int(rng.integers(0, 2)) * np.eye(size, dtype=int)
        matrix = [[Fraction(int(x)) for x in row] for row in gram]
        outcome = certificate.definiteness(matrix)
        assert is_pd(matrix) == (outcome == "positive definite")
        assert is_psd(matrix) == (outcome != "indefinite")


def test_a_key_that_stands_twice_is_refused(certificates, tmp_path, capsys):
    text = json.dumps(certificates["feasible"])
    path = tmp_path / "twice.json"
    path.write_text(text[:-1] + ', "claim": "feasible"}')
    assert certificate.main([str(path)]) == 1
    assert "a key occurs twice" in capsys.readouterr().out
    path.write_text(text)
    assert certificate.main([str(path)]) == 0


def test_a_proof_of_full_is_none_of_semi(certificates):
    data = copy.deepcopy(certificates["infeasible"])
    data["consistency"] = "semi"
    assert not accepted(signed(data))


def test_what_is_asked_beyond_is_printed_with_the_limit(certificates):
    said = certificate.verify(certificates["infeasible, bounds"])
    assert "asked: mass of a lower: 1 a.m + -5 >= 0" in said
    assert "asked: both upper: -1 a.m + -1 b.m + 4 >= 0" in said
    assert "proved only up to 10" in certificate.verify(certificates["infeasible, limit"])
    assert "margin: 0.000001" in certificate.verify(certificates["feasible, asked"])


@pytest.mark.parametrize("digits", [400, 3800])
def test_verification_cannot_be_stalled(certificates, digits):
    data = copy.deepcopy(certificates["infeasible"])
    rng = random.Random(digits)

    def long():
        return "1" + "".join(rng.choices("0123456789", k=digits - 1)) + "." + "3" * 399

    data["multipliers"] = [
        [["body", "a"], [long() for _ in range(10)]],
        [["body", "b"], [long() for _ in range(10)]],
    ]
    verdict, calls = counted(signed(data))
    assert not verdict
    assert calls < MOST_CALLS


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


def fuzzed(certificates, seed, count):
    rng, kept, most = random.Random(seed), 0, 0
    names = [n for n in certificates if n != "bound"] * 4 + ["bound"]
    others = list(certificates.values())
    for _ in range(count):
        data = mutated(certificates[rng.choice(names)], others, rng)
        ok, calls = counted(data)
        most = max(most, calls)
        if ok:
            kept += 1
            assert holds(data), json.dumps(data)[:2000]
    return kept, most


def test_no_mutated_certificate_that_is_accepted_is_false(certificates):
    kept, most = fuzzed(certificates, 0, MUTATIONS)
    assert kept > 0  # names of people and constraints may change, and a statement stay true
    assert most < MOST_CALLS


@pytest.mark.slow
def test_a_hundred_thousand_mutated_certificates(certificates):
    kept, most = fuzzed(certificates, 1, MUTATIONS_SLOW)
    print(f"{kept} of {MUTATIONS_SLOW} accepted, all true; at most {most} calls")
    assert most < MOST_CALLS
