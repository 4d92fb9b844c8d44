"""Sizes that may fall and not rise; `ratchets` measures them, ``ratchets.json`` has the limits."""

from functools import cache

import pytest
from ratchets import AT_LEAST, count_entered_modules, limits, measure

REMEDY = (
    "is {now}, and the limit is {limit}: take something out, or, where it is worth it, change the "
    "number in tests/ratchets.json by hand and say why in the commit"
)

ENTERED = "modules that a fit enters"

measure_once = cache(measure)


@pytest.mark.parametrize("name", [name for name in limits() if name != ENTERED])
def test_what_may_only_improve_has_not_become_worse(name):
    now, limit = measure_once()[name], limits()[name]
    kept = now >= limit if name in AT_LEAST else now <= limit
    assert kept, f"{name} {REMEDY.format(now=now, limit=limit)}"


def test_every_number_has_its_limit():
    assert {*measure_once(), ENTERED} == {*limits()}


@pytest.mark.slow
def test_a_default_fit_enters_no_more_modules():
    now, most = count_entered_modules(), limits()[ENTERED]
    assert now <= most, f"{ENTERED} {REMEDY.format(now=now, limit=most)}"
