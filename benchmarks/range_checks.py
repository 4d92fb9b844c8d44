"""Ranges of a fit against what may contradict them: models beyond our limit, and hidden truth.

    PYTHONPATH=.:tests python -m benchmarks.range_checks [--seeds 24] [--arms 10]

Models that reach furthest within ten thousand times our limit on sizes must contradict no range
that does not name the limit. Of arms in MuJoCo with hidden parameters, 95 % of these must be in
their ranges, with dry friction and stiction. Prints both counts.
"""

import argparse

import numpy as np
from descriptions import absurd_problem, with_masses

import feasid
from benchmarks import simulated
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
    return fits and blocks and all_hold(feasible.linear[: region.user_rows], delta)


def all_hold(linear, delta):
    exact = [printed_decimal(x) for x in delta]
    return all(linear_value(c, exact) >= 0 for c in linear)


def count_contradictions(seed):
    """Ends of a fit's ranges that models beyond the limit pass, and those that do not name it."""
    fit = described_fit(seed)
    found, ours = fit.ranges(plausible=False), regions.LARGEST
    regions.LARGEST = FURTHER
    try:
        wide, _ = fit.residual.region_within(found.level, False)
    finally:
        regions.LARGEST = ours
    beyond = contradicted = 0
    for k, one in enumerate(found):
        for sign, end, limited in zip((-1, 1), (one.lower, one.upper), one.limited, strict=True):
            form = np.zeros(fit.robot.size)
            form[k] = sign
            try:
                witness = wide.largest_value(form, fit.delta).reached if np.isfinite(end) else None
            except feasid.FeasidError:
                continue
            if witness is None or form @ witness <= sign * end:
                continue
            if is_inside(one.region, witness):
                rules = one.region.feasible.linear[one.region.user_rows :]
                beyond += 1
                contradicted += not limited or all_hold(rules, witness)
    return beyond, contradicted


def share_of_truths(name, stiction, arms):
    """How many true parameters of hidden arms are in their ranges."""
    inside = []
    for seed in range(arms):
        arm = simulated.hidden(name, seed, simulated.Conditions(stiction=stiction))
        fit = feasid.fit(arm.log, arm.robot, diagnose=False)
        truth = simulated.aligned(arm, fit.robot)
        inside += [value in span for value, span in zip(truth, fit.ranges(), strict=True)]
    return np.mean(inside)


def main():
    """Print what contradicts ranges, and how many truths are in them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--arms", type=int, default=10)
    arguments = parser.parse_args()
    for seed in range(arguments.seeds):
        beyond, contradicted = count_contradictions(seed)
        print(f"seed {seed}: {beyond} ends passed, {contradicted} contradicted", flush=True)
    for name in simulated.ARMS:
        for stiction in (False, True):
            share = share_of_truths(name, stiction, arguments.arms)
            print(f"{name}, stiction {stiction}: {100 * share:.2f} % in range", flush=True)


if __name__ == "__main__":
    main()
