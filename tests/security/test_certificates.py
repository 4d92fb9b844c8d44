"""Certificates that are made to cost more than they are large, and what the checker opens."""

import json
import os
import random
import subprocess
import sys
import time
from fractions import Fraction

import pytest
from claims import bodies, common, signed

from feasid import certificate

COST = 5.0  # largest, in times of 200 000 sums of fractions: three times the worst
SIZE = 1_500_000  # characters of the files that are tried in every run
RNG = random.Random(1)


def digits(count):
    return "".join(RNG.choices("123456789", k=count))


NUMBERS = {
    "short": lambda: "7",
    "fractions": lambda: f"{RNG.randrange(1, 10**9)}/{RNG.choice((997, 991, 983, 977, 971, 967))}",
    "every fraction": lambda: f"{RNG.randrange(1, 10**9)}/{RNG.randrange(1, 1000)}",
    "exponents": lambda: f"{RNG.randrange(1, 9)}e{RNG.randrange(-999, 999)}",
    "decimals": lambda: f"{digits(3800)}.{digits(400)}e-{RNG.randrange(1000)}",
}


def of_point(number, size):
    """One equation on all parameters of many bodies; the numbers of its row and the point."""
    count = max(1, size // (10 * (2 * len(number()) + 40)))
    data = common(bodies(count), claim="feasible", matrix=[])
    data = {k: v for k, v in data.items() if k not in ("limit", "multipliers", "tied")}
    data["matrix"] = [[[j, number()] for j in range(10 * count)]]
    return data | {"values": ["1"], "point": [number() for _ in range(10 * count + 1)]}


def of_rows(number, size):
    """A bound: many rows on one base parameter, so that sums have many terms."""
    count = max(1, size // (3 * len(number()) + 40))
    ones = [number() for _ in range(count)]
    data = {"rows": [[[0, number()]] for _ in range(count)], "target": ones, "rest": "0"}
    matrix = [[[9, "1"]]]
    point = ["2", "0", "0", "2", "0", "2", "0", "0", "0", "1", "1"]
    weights = [number() for _ in range(count)]
    more = {"data": data, "weights": weights, "floor": "1", "matrix": matrix, "point": point}
    return common(bodies(1), claim="bound", **more)


def of_mass(**more):
    """A proof about one body of which the mass is given."""
    mass = {"matrix": [[[9, "1"]]], "values": ["1"], "combination": ["1"]}
    return common(bodies(1), claim="infeasible", **mass, **more)


def of_constraints(number, size):
    """Many constraints, each of a large matrix."""
    entries = [[r, c, [[9, number()]], number()] for r in range(12) for c in range(r, 12)]
    count = max(1, size // len(json.dumps(entries)))
    asked = [{"name": "x", "strict": False, "size": 12, "entries": entries}] * count
    triangle = [number() for _ in range(78)]
    multipliers = [[["asked", str(k)], triangle] for k in range(count)]
    return of_mass(constraints=asked, multipliers=multipliers)


def of_combination(number, size):
    """Rows of short numbers, each of which a long one multiplies."""
    rows = max(1, size // (12_000 + len(number())))
    matrix = [[[j, "7"] for j in range(1000)]] * rows
    proof = {"combination": [number() for _ in range(rows)], "values": ["1"] * rows}
    return common(bodies(100), claim="infeasible", matrix=matrix, **proof)


SHAPES = {f.__name__: f for f in (of_point, of_rows, of_constraints, of_combination)}


def seconds_of_sums():
    """What fractions cost on this machine at this time."""
    begun, total = time.process_time(), Fraction(0)
    for k in range(200_000):
        total = Fraction(f"{k % 97}/7") + total % 5
    return time.process_time() - begun


def cost_until_refused(text):
    before, begun = seconds_of_sums(), time.process_time()
    with pytest.raises(ValueError):  # noqa: PT011  # which of several depends on the shape
        certificate.verify(json.loads(text, object_pairs_hook=certificate.unique))
    return (time.process_time() - begun) / max(before, seconds_of_sums())


@pytest.mark.sampled(0.2)
@pytest.mark.parametrize(
    "size", [SIZE, pytest.param(certificate.LARGEST_FILE // 2, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_certificate_costs_little(shape, number, size):
    text = json.dumps(signed(SHAPES[shape](NUMBERS[number], size)))
    assert cost_until_refused(text) < COST * (1 if size == SIZE else 3)


def checked(*paths):
    run = [sys.executable, "-m", "feasid.certificate", *map(str, paths)]
    return subprocess.run(run, capture_output=True, text=True, timeout=60)


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices")
def test_the_checker_opens_regular_files_only(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    done = checked(tmp_path / "pipe.json", "/dev/zero", tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("cannot be read") == 3


@pytest.mark.skipif(os.name != "posix", reason="such names")
def test_the_name_of_a_certificate_reaches_no_terminal(tmp_path):
    path = tmp_path / "a\x1b]0;pwned\x07\u202e.json"
    for content in ("{}", "", None):
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_text(content)
        done = checked(path)
        assert (done.stdout + done.stderr).replace("\n", "").isprintable()
        assert "pwned" in done.stdout + done.stderr


def test_fractions_of_many_denominators_cost_little():
    """A matrix of 64 rows, over denominators whose least common multiple has 1400 bits."""
    size = 64
    entries = [[r, c, [[9, "1"]], "0"] for r in range(size) for c in range(r, size)]
    asked = [{"name": "x", "strict": False, "size": size, "entries": entries}]
    numbers = [NUMBERS["every fraction"]() for _ in entries]
    data = of_mass(constraints=asked, multipliers=[[["asked", "0"], numbers]])
    data["multipliers"][0][1][0] = "999999999/998"
    assert cost_until_refused(json.dumps(signed(data))) < COST


def test_matrices_that_are_all_zero_but_for_one_entry_take_little_memory():
    """A hundred bytes may state a matrix of 4096 entries: what it takes to hold counts as work."""
    empty = {"name": "x", "strict": False, "size": 64, "entries": [[0, 0, [[9, "1"]], "0"]]}
    with pytest.raises(ValueError, match="too much work"):
        certificate.verify(signed(of_mass(constraints=[empty] * 20_000)))
