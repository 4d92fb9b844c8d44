"""Bounds that exclude the description, on every packaged log: kept and shown, or refused."""

import pytest

import feasid
from benchmarks.bounded_logs import KINDS, LOGS, QUICK, check_bound, described, reduced
from feasid.core.errors import InputError


@pytest.mark.sampled(0.04)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LOGS)
def test_bounds_that_exclude_the_description_are_kept_and_shown(name, kind):
    check_bound(name, kind)


@pytest.mark.sampled(0.2)
@pytest.mark.parametrize("name", LOGS)
def test_bounds_that_contradict_each_other_are_refused_by_name(name):
    _, robot, data = reduced(name)
    total = sum(mass for mass, _ in described(robot).values())
    body = robot.bodies[0].name
    with pytest.raises(InputError, match="cannot hold together") as refused:
        feasid.fit(data, robot, **QUICK, total_mass=0.5 * total, mass={body: (total, None)})
    assert body in str(refused.value)
    assert "total mass" in str(refused.value)
