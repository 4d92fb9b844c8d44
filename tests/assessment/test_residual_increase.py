"""The printed increase of the residual is proved, however absurd a description's masses are."""

import re
from dataclasses import replace

import numpy as np
import pytest
from descriptions import absurd_problem, with_masses
from thorough import some

import feasid

UNPROVED = 1e-3
"""Share of the squared residual by which the verified optimum may lie above the proved floor."""

DIGITS = 0.06
"""Relative rounding of the two printed digits."""


@pytest.mark.sampled(0.34)
@pytest.mark.parametrize("seed", some(range(200), 1, 2, 9, 14))
def test_the_printed_increase_is_proved_or_not_printed(seed):
    robot, log = absurd_problem(seed)
    fit = feasid.fit(log, robot, diagnose=False)
    words = r"at a residual (\S+) % above the smallest feasible one"
    printed = re.search(words, str(fit.summary()))
    rest = fit.triangle[2] ** 2
    least = fit.best_fitting.objective + rest
    floor = fit.best_fitting.floor + rest
    assert floor <= least * (1 + 1e-9)  # of the rounding of a residual in doubles
    if least > (1 + UNPROVED) * floor:
        assert printed is None
        assert np.isnan(fit.price)
        return
    wanted = np.sqrt((fit.solution.objective + rest) / least) - 1
    assert fit.price == pytest.approx(wanted, abs=1e-12)
    assert fit.price >= 0
    assert float(printed[1]) / 100 == pytest.approx(wanted, rel=DIGITS, abs=1e-12)
    # Proved: no feasible model is better by more than this.
    most = np.sqrt((fit.solution.objective + rest) / floor) - 1
    assert 0 <= most - fit.price <= UNPROVED * (1 + fit.price)


@pytest.mark.parametrize("seed", some([1, 2], 1))
def test_the_optimum_and_the_budget_do_not_depend_on_the_description(seed):
    """The residual of the best model is the same for placeholders and for a sensible mass."""
    robot, log = absurd_problem(seed)
    sensible = with_masses(np.random.default_rng(seed), robot, np.zeros(len(robot.bodies)))
    found = []
    for described in (robot, sensible):
        fit = feasid.fit(replace(log, robot=described), described, diagnose=False, weights=None)
        found.append((fit.best_fitting.objective + fit.triangle[2] ** 2, fit.residual.budget(0.99)))
    assert found[0] == pytest.approx(found[1], rel=UNPROVED)
