"""Deviations that a fit prints: on simulated truth, and against a block bootstrap of real logs."""

from contextlib import suppress

import numpy as np
import pytest
from seeds import seed_of

from benchmarks import simulated
from benchmarks.bootstrap import LOGS, USUAL, ratios
from benchmarks.faults import recorded
from benchmarks.promises import coverage_of_road, roads_of_pairs
from feasid.core.errors import FeasidError

FEWEST = 5
"""Parameters of which a median is worth a test."""

HELD = 0.8
"""Least share of one arm's true base parameters in intervals of 95 %: they err alike."""

RECORDED = (0.6, 1.75)
"""Median of printed over bootstrap deviations, of 16 draws, on real logs: friction that changes
over tens of seconds errs alike for longer than neighbouring rows show."""

LEAST = 0.4
"""19 of 20 printed deviations are at least this share of the bootstrap's."""


@pytest.mark.slow
def test_intervals_of_pairs_of_options_hold_the_truth_or_are_said_to_be_biased():
    rng = np.random.default_rng(seed_of("drawn"))
    arm, ways = simulated.hidden("ur5", int(rng.integers(1000))), roads_of_pairs()
    for k in rng.choice(len(ways), 5, replace=False):
        with suppress(FeasidError):  # of options that exclude each other
            off, biased = coverage_of_road(arm, ways[k][1])
            held = np.mean(np.abs(off) < 1.96)
            assert biased or held > HELD, (ways[k][0], held)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGS)
def test_deviations_of_real_robots(name):
    log, robot, options = recorded(name)
    found = ratios(log, robot, 16, LOGS[name], options, USUAL)
    assert len(found) >= FEWEST
    assert RECORDED[0] < np.median(found) < RECORDED[1]
    assert np.quantile(found, 0.05) > LEAST
