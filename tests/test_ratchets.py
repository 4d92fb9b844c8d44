"""Sizes that may fall and not rise; `ratchets` measures them and has the numbers of today."""

from functools import cache

import pytest
from ratchets import count_entered_modules, limits, measure

REMEDY = (
    "is {now}, and may be {most} at most: take something out, or, where it is worth it, say why in "
    'the commit and write it down with  python -m tests.ratchets --up "{name}"'
)

ENTERED = "modules that a fit enters"

measure_once = cache(measure)


@pytest.mark.parametrize("name", [name for name in limits() if name != ENTERED])
def test_what_may_only_fall_has_not_risen(name):
    now, most = measure_once().get(name, 0), limits()[name]
    assert now <= most, f"{name} {REMEDY.format(now=now, most=most, name=name)}"


def test_every_number_has_its_limit():
    missing = {*measure_once()} - {*limits()}
    assert not missing, f'new rooms: python -m tests.ratchets --up "{min(missing)}"'


@pytest.mark.slow
def test_a_default_fit_enters_no_more_modules():
    now, most = count_entered_modules(), limits()[ENTERED]
    assert now <= most, f"{ENTERED} {REMEDY.format(now=now, most=most, name=ENTERED)}"
