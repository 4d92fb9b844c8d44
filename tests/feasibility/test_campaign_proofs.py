"""Random problems of many kinds: no false verdict, few undecided, every proof twice checked."""

from collections import Counter

import pytest

from benchmarks.proofs import NEW, OLD, outcome
from feasid.parameters.feasibility import solve

SAMPLE, SAMPLE_NEW = 100, 22
"""Problems; `python -m benchmarks.proofs` draws thousands."""

LONG_CHAIN, THIN_FACE = 200418, 595
"""Seeds: 22 bodies, where the bound of rounding in K is 3e-4 and rounding itself 1e-11; a face with
first rows that are nearly dependent."""

UNDECIDED_SAMPLE = 0.005
"""The same for the short one, of both together: one."""


@pytest.mark.parametrize(("families", "count"), [(OLD, SAMPLE), (NEW, SAMPLE_NEW)])
def test_verdicts_on_random_problems_are_never_wrong(families, count):
    found = Counter(outcome(seed, families) for seed in range(count))
    assert sum(n for (_, _, status), n in found.items() if status == "inconclusive") <= (
        UNDECIDED_SAMPLE * count if families is OLD else 1
    ), found
    statuses = {"feasible", "infeasible", "boundary"}
    assert families is NEW or statuses <= {status for _, _, status in found}


@pytest.mark.parametrize("seed", [LONG_CHAIN, THIN_FACE])
def test_numbers_that_rounding_nearly_hides_are_kept(seed):
    assert outcome(seed, NEW)[2] != "infeasible"


ALONE = {kind: OLD[kind] for kind in ("margin", "negative energy", "milli", "kilo", "joint terms")}
"""Families for solvers one by one: feasible and infeasible, of any size."""


@pytest.mark.parametrize(("name", "count"), [("clarabel", 2 * len(ALONE)), ("scs", len(ALONE))])
def test_verdicts_of_each_solver_alone_are_never_wrong_and_rarely_missing(name, count):
    ladder = [attempt for attempt in solve.solver_attempts() if attempt[0] == name]
    found = Counter(outcome(seed, ALONE, ladder) for seed in range(count))
    undecided = sum(n for (_, _, status), n in found.items() if status == "inconclusive")
    assert undecided <= 0.01 * count, found
