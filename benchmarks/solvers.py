"""Feasible least squares: modelling and solving, beside the Schur formulation of the paper.

The paper writes the least squares as a linear matrix inequality of the triangular factor's size,
eq. (73)-(75). It, and the same cone with a norm, are modelled in CVXPY and solved by Clarabel with
its own tolerances in the same run, on serial arms with random axes and noisy data.

"program" is the program that `feasid.problems` states, built and solved through CVXPY with the same
settings and nothing else; "times" is our fit, verified and with a full model chosen, beside it:
shortest processor times of runs in turn.
From "plain" on, seconds are processor time. "plain" is CVXPY's program of the same cone, modelled
and solved. "proved" is our fit with the bound that no model fits better than, proved in exact
numbers once the robot's K is known to its digits, which cost "digits" once per robot (larger ones
than 200 parameters take K as it is printed); "written" is the same with the certificate made and
checked.

    OMP_NUM_THREADS=1 python benchmarks/solvers.py [--schur-up-to 20] [--bodies 7,20,30,100]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import cvxpy as cp
import numpy as np

import feasid
from feasid.parameters.feasibility.constraints.sets import FeasibleSet, feasible_set
from feasid.parameters.feasibility.least_squares import feasible_least_squares
from feasid.parameters.feasibility.solve import solve
from feasid.robot import inertia

BODIES = (7, 20, 30, 100)

GOAL, SMALL_GOAL, SMALL = 1.2, 2.0, 7
"""How many times the plain program's time fit and proof may take; the latter for few bodies."""

REPEATS = 5


def arm(rng: np.random.Generator, count: int) -> feasid.Robot:
    """A serial arm of revolute joints on random axes."""
    bodies = []
    for k in range(count):
        axis = rng.normal(size=3)
        motion = np.r_[axis / np.linalg.norm(axis), 0, 0, 0]
        position = rng.uniform(-0.5, 0.5, size=3) * (k > 0)
        parent = f"b{k - 1}" if k else None
        bodies.append(feasid.Body(f"b{k}", parent, position=position, motion=motion))
    return feasid.Robot(tuple(bodies))


def problem(count: int) -> tuple[feasid.BaseParameters, np.ndarray, np.ndarray]:
    """Base parameters, R and rho of noisy data from a feasible arm."""
    rng = np.random.default_rng(count)
    robot = arm(rng, count)
    base = feasid.base_parameters(robot)
    delta = np.zeros(robot.size)
    for columns in robot.inertial_columns:
        points = np.c_[rng.uniform(-0.5, 0.5, size=(12, 3)), np.ones(12)]
        delta[columns] = inertia.from_pseudo_inertia(points.T @ points / 12)
    q, dq, ddq = rng.uniform(-2, 2, size=(3, 20 * count, count))
    columns = [int(c) for c in base.independent]
    W = feasid.regressor(robot, q, dq, ddq, columns=columns).reshape(-1, base.size)
    tau = W @ base.values(delta)
    tau += 0.1 * np.linalg.norm(tau) / np.sqrt(len(tau)) * rng.normal(size=len(tau))
    Q, R = np.linalg.qr(W)
    return base, R, Q.T @ tau


def schur(
    base: feasid.BaseParameters, R: np.ndarray, rho: np.ndarray, limits: FeasibleSet
) -> float:
    """The residual by eq. (73)-(75): minimise u with [[u, r'], [r, 1]] >= 0."""
    size = np.linalg.norm(rho)
    delta, u = cp.Variable(limits.size), cp.Variable((1, 1))
    r = cp.reshape(rho / size - (R @ base.K / size) @ delta, (len(rho), 1), order="F")
    rules = [cp.bmat([[u, r.T], [r, np.eye(len(rho))]]) >> 0]
    for block in limits.blocks:
        entries = block.basis.reshape(len(block.columns), -1).T @ delta[block.columns]
        rules.append(cp.reshape(entries, (block.size, block.size), order="C") >> 1e-6 * np.eye(4))
    cp.Problem(cp.Minimize(u[0, 0]), rules).solve(solver=cp.CLARABEL)
    return float(size * np.sqrt(max(u.value[0, 0], 0.0)))


def plain(
    base: feasid.BaseParameters, R: np.ndarray, rho: np.ndarray, limits: FeasibleSet
) -> float:
    """The residual by a plain CVXPY program of the same cone: no units, no check, no proof."""
    size = np.linalg.norm(rho)
    delta = cp.Variable(limits.size)
    rules = []
    for block in limits.blocks:
        entries = block.basis.reshape(len(block.columns), -1).T @ delta[block.columns]
        rules.append(cp.reshape(entries, (block.size, block.size), order="C") >> 1e-6 * np.eye(4))
    cost = cp.norm(rho / size - (R @ base.K / size) @ delta)
    cp.Problem(cp.Minimize(cost), rules).solve(solver=cp.CLARABEL)
    return float(size * cost.value)


def program(base: feasid.BaseParameters, R: np.ndarray, rho: np.ndarray) -> float:
    """The residual by the program of `feasid.problems` alone, solved as the fit solves it."""
    size = np.linalg.norm(rho)
    p = feasid.problems.robot_unknowns(base, rho, R=R)
    stated = feasid.problems.feasible_least_squares(R / size, rho / size, p)
    solve(stated, "CLARABEL")
    return float(size * stated.problem.objective.value)


def timed(work: Callable[[], object], repeats: int) -> tuple[float, float, object]:
    """Shortest wall and processor time of several runs, and the last result."""
    wall, processor, result = [], [], None
    for _ in range(repeats):
        began, used = time.perf_counter(), time.process_time()
        result = work()
        wall.append(time.perf_counter() - began)
        processor.append(time.process_time() - used)
    return min(wall), min(processor), result


def in_turn(works: Sequence[Callable[[], object]], repeats: int) -> list[tuple[float, float]]:
    """Shortest wall and processor time of each, run in turn: a busy machine slows all alike."""
    rounds = [[timed(work, 1)[:2] for work in works] for _ in range(repeats)]
    return [(min(t[0] for t in own), min(t[1] for t in own)) for own in zip(*rounds, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schur-up-to", type=int, default=20, help="bodies; 30 takes minutes")
    parser.add_argument(
        "--bodies", default=",".join(map(str, BODIES)), help="how many, with commas"
    )
    parser.add_argument("--repeats", type=int, default=REPEATS, help="runs, the shortest counts")
    arguments = parser.parse_args()
    largest = arguments.schur_up_to
    print(
        "bodies  parameters  first [s]  ours [s]  cpu [s]  program [s]  times  solves"
        "  plain [s]  digits [s]"
        "  proved [s]  times plain  goal  written [s]  gap      Schur [s]  factor  residuals"
    )
    for count in map(int, arguments.bodies.split(",")):
        base, R, rho = problem(count)
        limits = feasible_set(base.robot)

        def ours(R=R, rho=rho, base=base, limits=limits) -> object:
            return feasible_least_squares(R, rho, base, limits)

        first, _, fit = timed(ours, 1)
        alone_too = [ours, lambda R=R, rho=rho, base=base: program(base, R, rho)]
        (wall, processor), (_, alone) = in_turn(alone_too, arguments.repeats)
        residual = float(np.sqrt(fit.objective))
        line = f"{count:6}  {limits.size:10}  {first:9.3f}  {wall:8.3f}  {processor:7.3f}"
        line += f"  {alone:11.3f}  {processor / alone:5.2f}  {len(fit.attempts):6}"
        _, peer, _ = timed(
            lambda R=R, rho=rho, base=base, limits=limits: plain(base, R, rho, limits), REPEATS
        )
        _, cold, _ = timed(lambda ours=ours: ours().gap, 1)
        _, proved, gap = timed(lambda ours=ours: ours().gap, arguments.repeats)
        _, written, _ = timed(lambda ours=ours: ours().optimality, 1)
        line += f"  {peer:9.3f}  {max(0.0, cold - proved):10.3f}  {proved:10.3f}"
        goal = SMALL_GOAL if count <= SMALL else GOAL
        line += f"  {proved / peer:11.2f}  {goal:4.1f}  {written:11.3f}  {gap:7.1e}"
        if count <= largest:
            began = time.perf_counter()
            value = schur(base, R, rho, limits)
            other = time.perf_counter() - began
            line += f"  {other:9.2f}  {other / wall:6.0f}  {residual:.6g} {value:.6g}"
        else:
            line += f"  {'-':>9}  {'-':>6}  {residual:.6g}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
