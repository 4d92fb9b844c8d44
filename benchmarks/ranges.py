"""Ranges of all parameters of a 7-link arm, beside one CVXPY program per end in the same run.

    OMP_NUM_THREADS=1 python benchmarks/ranges.py [--ends 6]

The log is a simulated motion of the Panda, fingers locked. CVXPY states and solves each end anew
with Clarabel and proves nothing; `--ends` of its ends are timed and scaled to all.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import cvxpy as cp
import numpy as np

import feasid

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmarks import simulated

GOAL = 20.0
"""Seconds for all parameters, lower and upper."""


def by_cvxpy(fit: feasid.Fit, form: np.ndarray, budget: float) -> float:
    """The largest value of a form."""
    residual, unit = fit.residual, fit.optimum.problem.units.parameters
    feasible = residual.plausible_set
    x = cp.Variable(len(unit))
    delta = cp.multiply(unit, x)
    rules = [cp.norm((residual.equations.A * unit) @ x - residual.equations.rho) <= np.sqrt(budget)]
    rules.append(feasible.linear_matrix @ delta + feasible.linear_constant >= 0)
    for block in feasible.blocks:
        entries = block.basis.reshape(len(block.columns), -1).T @ delta[block.columns]
        rules.append(cp.reshape(entries, (block.size, block.size), order="C") >> 0)
    problem = cp.Problem(cp.Maximize(form @ delta), rules)
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


def main() -> int:
    """Print both times, wall and processor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ends", type=int, default=6)
    ends = parser.parse_args().ends
    arm = simulated.hidden("panda", 0, simulated.Conditions())
    fit = feasid.fit(arm.log, arm.robot, diagnose=False)
    began, used = time.perf_counter(), time.process_time()
    found = fit.ranges()
    wall, processor = time.perf_counter() - began, time.process_time() - used
    n = len(found)
    print(f"feasid: {n} parameters, {2 * n} ends, proved: {wall:.1f} s ({processor:.1f} s of CPU)")
    marks = found.table["mark"].value_counts()
    print("  " + ", ".join(f"{count} {mark}" for mark, count in marks.items()))
    began, used = time.perf_counter(), time.process_time()
    for column in np.linspace(0, n - 1, ends).astype(int):
        by_cvxpy(fit, np.eye(n)[column], found.budget)
    wall_each = (time.perf_counter() - began) / ends
    processor_each = (time.process_time() - used) / ends
    print(
        f"CVXPY and Clarabel, nothing proved: {2 * n * wall_each:.1f} s "
        f"({2 * n * processor_each:.1f} s of CPU), from {ends} ends"
    )
    print(f"goal {GOAL:g} s: {'met' if wall <= GOAL else 'MISSED'}")
    return 0 if wall <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
