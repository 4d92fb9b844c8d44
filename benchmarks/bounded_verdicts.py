"""Verdicts within stated bounds, around the boundary that a program of its own finds.

    PYTHONPATH=.:tests python benchmarks/bounded_verdicts.py [--count 500] [--first SEED]

Base parameters go along a direction until nothing within the bounds has them: where that is, one
program says that shares no code with the package. `feasid.check` is asked at 1e-5 to 1e-1 of the
way from there, on either side. Every proof is checked by the second checker of the tests, and one
that does not hold ends the run.
"""

from __future__ import annotations

import argparse
import secrets
from collections import Counter

import cvxpy as cp
import numpy as np
from feasibility_problems import planar, random_parameters, random_robot

import feasid
from benchmarks.second_checker import holds

TIGHT = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9, "max_iter": 300}

DISTANCES = (-5, -1)
"""Powers of ten: distances to the boundary, as shares of the step that ends there."""

FAR = 1e3
"""A direction in which values stay feasible for so many steps has no end to find."""

SIGNED = ("Ia", "fv", "fc")


def pseudo_inertia(x):
    """Of ten parameters as expressions, written out; the trace of L is twice that of the block."""
    half = (x[0] + x[3] + x[5]) / 2
    return cp.bmat([
        [half - x[0], -x[1], -x[2], x[6]],
        [-x[1], half - x[3], -x[4], x[7]],
        [-x[2], -x[4], half - x[5], x[8]],
        [x[6], x[7], x[8], x[9]],
    ])  # fmt: skip


def drawn_bounds(rng, robot, delta):
    """Bounds that the parameters keep, and the same as constraints of the oracle."""
    bounds, rules = {"mass": {}, "com_box": {}}, []
    masses = robot.inertial_columns[:, 9]
    if rng.random() < 0.6:
        most = float(round(delta[masses].sum() * rng.uniform(1.02, 1.5), 4))
        bounds["total_mass"] = most
        rules.append(lambda x: cp.sum(x[masses]) <= most)
    for body, columns in zip(robot.bodies, robot.inertial_columns, strict=True):
        ten = delta[columns]
        if rng.random() < 0.5:
            low, high = (float(round(ten[9] * f, 6)) for f in (rng.uniform(0, 0.9), 1.4))
            bounds["mass"][body.name] = (low, high)
            rules.append(
                lambda x, c=columns[9], a=low, b=high: cp.hstack([x[c] - a, b - x[c]]) >= 0
            )
        if rng.random() < 0.6:
            centre = ten[6:9] / ten[9]
            low, high = (np.round(centre + s * rng.uniform(0.01, 0.2, 3), 4) for s in (-1, 1))
            bounds["com_box"][body.name] = (low.tolist(), high.tolist())
            rules.append(lambda x, c=columns, a=low: x[c[6:9]] >= a * x[c[9]])
            rules.append(lambda x, c=columns, b=high: x[c[6:9]] <= b * x[c[9]])
    return {k: v for k, v in bounds.items() if v != {}}, rules


def problem(rng):
    """Base parameters, bounds, and values that are inside and that leave along a direction."""
    kind, bodies = rng.integers(3), int(rng.integers(1, 5))
    robot = planar(rng, bodies) if kind == 0 else random_robot(rng, bodies, drives=bool(kind == 2))
    base = feasid.base_parameters(robot)
    delta = random_parameters(rng, robot)
    bounds, rules = drawn_bounds(rng, robot, delta)
    beta = base.values(delta)
    direction = rng.normal(size=len(beta)) * np.abs(beta)
    x, step = cp.Variable(robot.size), cp.Variable()
    given = [base.K @ x == beta + step * direction, *(rule(x) for rule in rules), step <= FAR]
    given += [pseudo_inertia(x[columns]) >> 0 for columns in robot.inertial_columns]
    given += [x[k] >= 0 for k, name in enumerate(robot.parameter_names) if name[1] in SIGNED]
    task = cp.Problem(cp.Maximize(step), given)
    try:
        task.solve(solver=cp.CLARABEL, **TIGHT)
    except cp.SolverError:
        return None
    known = task.status == "optimal" and 0 < step.value < 0.9 * FAR
    return (base, bounds, beta, float(step.value) * direction) if known else None


def outcome(seed):
    """Truth and verdict at a distance to the boundary that is drawn; None without an oracle."""
    rng = np.random.default_rng(seed)
    if (drawn := problem(rng)) is None:
        return None
    base, bounds, beta, end = drawn
    away = 10.0 ** rng.uniform(*DISTANCES)
    truth = ("feasible", "infeasible")[int(rng.integers(2))]
    verdict = feasid.check(
        beta + end * (1 - away if truth == "feasible" else 1 + away), base, **bounds
    )
    if verdict.certificate is None:
        print(seed, truth, f"{away:.1e}", verdict.explain())
    else:
        assert holds(verdict.certificate.data), (seed, away, verdict.explain())
        if verdict.status != truth:  # a proof that holds: the oracle's end was not the end
            print(seed, f"the oracle says {truth} at {away:.1e}, the proof {verdict.status}")
            return None
    return truth, verdict.status


def count_verdicts(count, first):
    """How many problems of which the program knows the end have which truth and verdict."""
    found = Counter()
    for seed in range(first, first + 2 * count):
        if (known := outcome(seed)) is not None:
            found[known] += 1
        if found.total() == count:
            break
    return found


def main():
    """Print how often each verdict was given."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=secrets.randbelow(10**6))
    options = parser.parse_args()
    print(f"from seed {options.first}")
    for (truth, status), number in sorted(count_verdicts(options.count, options.first).items()):
        print(f"{truth:12}{status:14}{number:6}")


if __name__ == "__main__":
    main()
