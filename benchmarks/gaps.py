"""How far solvers' answers of the stated programs are from the certified optimum.

    python benchmarks/gaps.py [--write]

Feasible least squares and the closest feasible base parameters for the WAM of the paper, the Z1 and
the KUKA, both consistencies, by each solver: CVXPY with its defaults, and
`FeasibleFit.from_program`. A lower bound of the optimum, without the margin, is proved in exact
arithmetic. ``--write`` puts the table into docs/feasibility.md.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import feasid
from feasid.parameters.feasibility.least_squares import FeasibleFit

PAGE = Path(__file__).parents[1] / "docs" / "feasibility.md"
LOGS = {"wam7": "WAM", "unitree_z1": "Z1", "kuka_lwr4": "KUKA LWR 4+"}
SOLVERS = "CLARABEL", "SCS"


def reduced(name: str) -> tuple[feasid.BaseParameters, np.ndarray, np.ndarray]:
    """Base parameters and the triangle of a packaged log."""
    log = feasid.datasets.load(name)
    reduced_log = feasid.reduce(log, log.attrs["robot"], **log.attrs.get("options", {}))
    base = feasid.base_parameters(reduced_log.robot)
    return base, *reduced_log.triangle()[:2]


def programs(name: str) -> Iterator[tuple[str, feasid.problems.Program]]:
    """Both programs of a log under either consistency."""
    base, R, rho = reduced(name)
    beta = np.linalg.lstsq(R, rho, rcond=None)[0]
    for consistency in ("semi", "full"):
        p = feasid.problems.robot_unknowns(base, rho, R=R, consistency=consistency)
        least = feasid.problems.feasible_least_squares(R, rho, p)
        yield f"{LOGS[name]}, feasible least squares, {consistency}", least
        p = feasid.problems.robot_unknowns(base, beta, consistency=consistency)
        yield (
            f"{LOGS[name]}, closest model, {consistency}",
            feasid.problems.closest_correction(beta, p),
        )


def row(program: feasid.problems.Program) -> list[float]:
    """Excess of CVXPY's default answers over the proved bound, and the gap of our own."""
    out = []
    for solver in SOLVERS:
        program.problem.solve(solver=solver)
        by_default, answer = program.problem.value, FeasibleFit.from_program(program, solver)
        bound = np.sqrt(answer.floor) / program.parameters.error_unit
        out += [by_default - bound, answer.gap]
    return out


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    heads = [
        f"{solver}{what}"
        for solver in SOLVERS
        for what in (", CVXPY's defaults", ", `from_program`")
    ]
    lines = [f"| program | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in LOGS:
            for label, program in programs(name):
                lines.append(f"| {label} | {' | '.join(f'{x:.1e}' for x in row(program))} |")
                print(lines[-1], flush=True)
    if options.write:
        table, text = "\n".join(lines), PAGE.read_text()
        mark = r"(<!-- gaps -->\n).*(<!-- end -->)"
        PAGE.write_text(re.sub(mark, lambda m: f"{m[1]}{table}\n{m[2]}", text, flags=re.S))


if __name__ == "__main__":
    main()
