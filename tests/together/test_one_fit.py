"""One fit, one model: what was decided once holds for everything that is asked of the fit later."""

import pytest

import feasid
from benchmarks.together.arms import world
from benchmarks.together.cases import CASES, PAIRS, QUICK_PAIRS, SLOW
from benchmarks.together.judge import assert_named
from feasid.core.errors import FeasidError


def case(name, slow):
    return pytest.param(name, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize("name", [case(name, name in SLOW) for name in CASES])
def test_a_fit_is_one_model(name, tmp_path):
    CASES[name](tmp_path)


@pytest.mark.parametrize("name", [case(name, name not in QUICK_PAIRS) for name in PAIRS])
def test_bounds_that_cannot_hold_together_are_all_named(name):
    options, words = PAIRS[name]
    arm = world("serial")
    with pytest.raises(FeasidError) as refusal:
        feasid.fit(arm.log, arm.description, diagnose=False, **options)
    for word in words:
        assert_named(refusal.value, [word])
