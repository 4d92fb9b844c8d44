"""No model contradicts a range: not one beyond our limit on sizes, unless the range names it."""

import numpy as np
import pytest
from descriptions import absurd_problem, with_masses
from thorough import some

import feasid
from feasid.core.exact.numbers import printed_decimal
from feasid.parameters.feasibility import region as regions
from feasid.parameters.feasibility.constraints.sets import linear_value

FURTHER = 1e8
"""Limit on sizes of the witnesses, ten thousand times ours."""


def described_fit(seed):
    """A fit of a small arm whose description is sensible."""
    robot, log = absurd_problem(seed)
    rng = np.random.default_rng(seed)
    described = with_masses(rng, robot, rng.uniform(-0.5, 0.5, len(robot.bodies)))
    return feasid.fit(log, described, diagnose=False)


def is_inside(region, delta):
    """Whether a model exists and fits strictly, in rationals."""
    beta = region.K @ delta  # K has the rounding of doubles: what it moves is far below the budget
    error = region.R @ beta - region.rho
    fits = float(error @ error) < region.budget * (1 - 1e-9)
    feasible = region.feasible
    blocks = all(np.linalg.eigvalsh(b.matrix(delta))[0] > 0 for b in feasible.blocks)
    return fits and blocks and all_hold(feasible.linear[: region.own], delta)


def all_hold(linear, delta):
    exact = [printed_decimal(x) for x in delta]
    return all(linear_value(c, exact) >= 0 for c in linear)


@pytest.mark.slow
@pytest.mark.parametrize("seed", some(range(24), 4))
def test_witnesses_beyond_the_limit_contradict_no_range(seed, monkeypatch):
    """Models that reach furthest within ten thousand times our limit."""
    fit = described_fit(seed)
    found = fit.ranges(plausible=False)
    monkeypatch.setattr(regions, "LARGEST", FURTHER)
    wide, _ = fit.residual.region_within_budget(found.level, False)
    every = range(0, len(found), 5 if seed == 4 else 1)
    beyond = contradicted = 0
    for k in every:
        one = found[k]
        for sign, end, limited in zip((-1, 1), (one.lower, one.upper), one.limited, strict=True):
            if not np.isfinite(end):
                continue
            form = np.zeros(fit.robot.size)
            form[k] = sign
            try:
                witness = wide.largest_value(form, fit.delta).reached
            except feasid.FeasidError:
                continue
            if form @ witness > sign * end and is_inside(one.region, witness):
                beyond += 1
                contradicted += not limited or all_hold(
                    one.region.feasible.linear[one.region.own :], witness
                )
    assert contradicted == 0
    print(f"{len(every)} ranges, {beyond} ends that models beyond the limit pass")


@pytest.mark.slow
def test_a_limit_is_in_the_sentence_the_table_and_the_file(tmp_path):
    found = described_fit(4).ranges(plausible=False)
    limited = [r for r in found if any(r.limited)]
    assert limited
    assert f"{regions.LARGEST:g} times the robot's size" in repr(limited[0])
    assert f"{regions.LARGEST:g} times the robot's size" in found.explain()
    assert found.table["limited"].sum() == len(limited)
    seen = 0
    for one in found:
        for end, within in zip(("lower", "upper"), one.limited, strict=True):
            certificate = one.certificate(end)
            if certificate is None:
                continue
            names = [c["name"] for c in certificate.data["constraints"]]
            assert (regions.LIMIT in names) == within, (one, end)
            assert certificate.verify()
            seen += 1
    assert seen
