"""How far answers of the stated programs are from the optimum, and whether the gap says so.

    PYTHONPATH=.:tests python benchmarks/gaps.py [--count 200] [--first N] [--only random] [--write]

Small random robots first, with bounds and without: feasible least squares, the closest model and
the largest margin in turn, by either solver. The gap of `feasid.problems.solve` must be at least
what an answer misses of the best that is known: the other answer, and a program in the oracle's
words and matrices at small tolerances. Then the WAM of the paper, the Z1 and the KUKA, whose
optimum is proved to a lower bound. ``--write`` puts both tables into docs/feasibility.md.
"""

from __future__ import annotations

import argparse
import re
import secrets
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import cvxpy as cp
import numpy as np
from bounded_verdicts import SIGNED, TIGHT, drawn_bounds, pseudo_inertia
from feasibility_problems import planar, random_parameters, random_robot, triangle, with_noise

import feasid
from feasid import problems

PAGE = Path(__file__).parents[1] / "docs" / "feasibility.md"
LOGS = {"wam7": "WAM", "unitree_z1": "Z1", "kuka_lwr4": "KUKA LWR 4+"}
GOALS = {"CLARABEL": 1e-5, "SCS": 1e-4}
KINDS = "feasible least squares", "closest model", "largest margin"
ORACLE = 2e-8
"""What the oracle's least norm may be off, in units of the programs."""


def oracle(kind, robot, K, rules, data, p):
    """The optimum by another program: its value, a norm in units of the data or a margin."""
    x, s, rows = cp.Variable(robot.size), cp.Variable(), p.feasible.linear_matrix
    least, free = (s, [s <= 1]) if kind == KINDS[2] else (0.0, [])
    for columns, unit in zip(robot.inertial_columns, p.scale.blocks, strict=True):
        block = cp.multiply(pseudo_inertia(x[columns]), 1 / np.outer(unit, unit))
        free.append(block - least * np.eye(4) >> 0)
    if kind == KINDS[2]:
        values = (rows @ x + p.feasible.linear_constant) / p.scale.linear
        free += [values >= s] * bool(len(rows))
        units = np.linalg.norm(K * p.scale.parameters, axis=1)
        return cp.Problem(cp.Maximize(s), [*free, cp.multiply(K @ x - data[0], 1 / units) == 0])
    signed = [j for j, (_, symbol) in enumerate(robot.parameter_names) if symbol in SIGNED]
    free += [x[signed] >= 0] * bool(signed) + [rule(x) for rule in rules]
    size = np.linalg.norm(data[1])
    return cp.Problem(cp.Minimize(cp.norm((data[0] @ K @ x - data[1]) / size)), free)


def drawn(seed):
    """A program of a small robot, by each solver, and what the answers miss."""
    rng, kind = np.random.default_rng(seed), KINDS[seed % 3]
    count = int(rng.integers(1, 4))
    robot = random_robot(rng, count, drives=True) if rng.random() < 0.6 else planar(rng, count)
    base, truth = feasid.base_parameters(robot), random_parameters(rng, robot)
    bounds, rules = drawn_bounds(rng, robot, truth) if rng.random() < 0.5 else ({}, [])
    wrong = truth + rng.uniform(0.1, 0.6) * np.abs(truth) * rng.normal(size=robot.size)
    beta, R = base.K @ wrong, np.eye(base.size)
    if kind == KINDS[0]:
        R = triangle(rng, base)
        rho = with_noise(rng, R @ base.K @ truth, 0.3)
        p = problems.robot_unknowns(base, rho, R, **bounds)
        program, data = problems.feasible_least_squares(R, rho, p), (R, rho)
    else:
        p, data = problems.robot_unknowns(base, beta, **bounds), (R, beta)
        make = problems.closest_correction if kind == KINDS[1] else None
        program = make(beta, p) if make else problems.feasibility_test(p, beta)
    answers = [problems.solve(program, solver) for solver in GOALS]
    if kind == KINDS[2]:
        values = [-a.margin for a in answers]
        data = (beta,)
    else:
        values = [np.sqrt(a.objective) / np.linalg.norm(data[1]) for a in answers]
    other = oracle(kind, robot, np.asarray(base.K), rules, data, p)
    try:
        other.solve(solver="CLARABEL", **TIGHT)
    except cp.SolverError:
        return kind, [a.gap for a in answers], [v - min(values) for v in values]
    known = other.value + ORACLE
    if kind == KINDS[2]:  # of its point, which misses the equations by its tolerance
        units = p.scale.parameters
        x = next(v.value for v in other.variables() if v.size == robot.size)
        x = x - units * np.linalg.lstsq(base.K * units, base.K @ x - beta, rcond=None)[0]
        known = -min(1.0, *p.scale.margins(p.feasible, x))
    best = min(*values, known)
    return kind, [a.gap for a in answers], [v - best for v in values]


def campaign(count: int, first: int) -> Iterator[str]:
    """Rows of a table of random programs; a gap that is too small ends the run."""
    found = defaultdict(list)
    for seed in range(first, first + count):
        kind, gaps, missed = drawn(seed)
        for solver, gap, true in zip(GOALS, gaps, missed, strict=True):
            if not gap >= true:
                raise SystemExit(f"seed {seed}, {kind}, {solver}: gap {gap:.2e}, true {true:.2e}")
            found[kind, solver].append((gap, true))
    yield "| random programs | solver | number | largest gap | largest true gap | gap too small |"
    yield "|---|---|---|---|---|---|"
    for (kind, solver), pairs in sorted(found.items()):
        gap, true = np.max(pairs, axis=0)
        yield f"| {kind} | {solver} | {len(pairs)} | {gap:.1e} | {max(true, 0):.1e} | 0 |"


def reduced(name: str) -> tuple[feasid.BaseParameters, np.ndarray, np.ndarray]:
    """Base parameters and the triangle of a packaged log."""
    log = feasid.datasets.load(name)
    reduced_log = feasid.reduce(log, log.attrs["robot"], **log.attrs.get("options", {}))
    base = feasid.base_parameters(reduced_log.robot)
    return base, *reduced_log.triangle()[:2]


def programs(name: str) -> Iterator[tuple[str, problems.Program]]:
    """The programs of a log under either consistency."""
    base, R, rho = reduced(name)
    beta = np.linalg.lstsq(R, rho, rcond=None)[0]
    for consistency in ("semi", "full"):
        p = problems.robot_unknowns(base, rho, R=R, consistency=consistency)
        yield f"{KINDS[0]}, {consistency}", problems.feasible_least_squares(R, rho, p)
        p = problems.robot_unknowns(base, beta, consistency=consistency)
        yield f"{KINDS[1]}, {consistency}", problems.closest_correction(beta, p)
        yield f"{KINDS[2]}, {consistency}", problems.feasibility_test(p, beta)


def row(program: problems.Program) -> list[float]:
    """Per solver: what CVXPY's value with default settings differs from the bound, and our gap."""
    out = []
    for solver in GOALS:
        program.problem.solve(solver=solver)
        by_default, answer = program.problem.value, problems.solve(program, solver)
        if program.error is None:
            bound = answer.margin + answer.gap
        else:
            bound = np.sqrt(answer.floor) / program.parameters.error_unit
        out += [abs(by_default - bound), answer.gap]
    return out


def robots() -> Iterator[str]:
    """Rows of the table of packaged robots."""
    heads = [f"{s}{w}" for s in GOALS for w in (", CVXPY's defaults", ", `solve`")]
    yield f"| program | {' | '.join(heads)} |"
    yield "|---" * (1 + len(heads)) + "|"
    for name, robot in LOGS.items():
        for label, program in programs(name):
            values = row(program)
            yield f"| {robot}, {label} | {' | '.join(f'{x:.1e}' for x in values)} |"
            for solver, gap in zip(GOALS, values[1::2], strict=True):
                if not gap < GOALS[solver]:
                    print(f"{robot}, {label}: {solver} reached {gap:.1e}, not {GOALS[solver]:.0e}")


def main() -> None:
    """Print the tables, or write them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=None, help="first seed; drawn if not given")
    parser.add_argument("--only", choices=("random", "robots"), help="one of both tables")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    first = secrets.randbelow(2**31) if options.first is None else options.first
    print(f"first seed {first}")
    parts = {"random": campaign(options.count, first), "robots": robots()}
    mark, text = r"(?<=<!-- gaps -->\n).*(?=\n<!-- end -->)", PAGE.read_text()
    found = re.search(mark, text, flags=re.S)
    tables = dict(zip(parts, found[0].split("\n\n"), strict=True)) if found else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, rows in parts.items():
            if options.only not in (None, name):
                continue
            lines = []
            for line in rows:
                lines.append(line)
                print(line, flush=True)
            tables[name] = "\n".join(lines)
    if options.write:
        block = "\n\n".join(tables.values())
        PAGE.write_text(re.sub(mark, lambda _: block, text, flags=re.S))


if __name__ == "__main__":
    main()
