"""Two checkers that share no code agree, and no mutated certificate that is accepted is false."""

import copy
import json
import random
from fractions import Fraction

import numpy as np
import pytest
from claims import signed

from benchmarks.certificate_mutants import MOST_CALLS, accepted, counted, mutated, originals
from benchmarks.second_checker import holds, inertia, is_pd, is_psd
from feasid import certificate

MUTATIONS, MUTATIONS_SLOW = 500, 100_000


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


@pytest.mark.parametrize(
    ("seed", "count"), [(0, MUTATIONS), pytest.param(1, MUTATIONS_SLOW, marks=pytest.mark.slow)]
)
def test_no_mutated_certificate_that_is_accepted_is_false(certificates, seed, count):
    rng, kept = random.Random(seed), 0
    names = [n for n in certificates if n != "bound"] * 4 + ["bound"]
    for _ in range(count):
        data = mutated(certificates[rng.choice(names)], [*certificates.values()], rng)
        ok, calls = counted(data)
        assert calls < MOST_CALLS
        kept += ok
        assert not ok or holds(data), json.dumps(data)[:2000]
    assert kept > 0  # names of people and constraints may change, and a statement stay true
