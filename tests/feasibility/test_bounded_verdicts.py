"""Verdicts within stated bounds against a program of benchmarks/bounded_verdicts.py."""

import pytest
from seeds import seed_of

from benchmarks.bounded_verdicts import count_verdicts, outcome

pytestmark = pytest.mark.filterwarnings("ignore:Solution may be inaccurate")


@pytest.mark.parametrize("count", [16, pytest.param(500, marks=pytest.mark.slow)])
def test_verdicts_within_bounds_are_those_of_the_oracle(count):
    found = count_verdicts(count, seed_of("drawn"))
    assert sum(n for (truth, status), n in found.items() if truth != status) <= max(1, count // 100)


def test_a_hidden_contradiction_of_bounds_is_proved_by_the_distance():
    """Multipliers of the largest margin are on the boundary of their cones, of a centre inside."""
    assert outcome(399) == ("infeasible", "infeasible")
