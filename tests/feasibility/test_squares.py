"""Our own primal-dual method, which proofs use, against the program in CVXPY."""

from dataclasses import replace

import numpy as np
import pytest
from feasibility_problems import base_of, random_parameters, random_robot, stacked_regressor

from feasid.feasibility import closest
from feasid.feasibility.constraints.sets import feasible_set, stack_by_shape
from feasid.feasibility.constraints.units import units
from feasid.feasibility.program import solve
from feasid.feasibility.program.reference import reference_model
from feasid.feasibility.program.solve import SolverAnswer, lower_bound
from feasid.feasibility.program.squares import Squares

SAME = 1e-8
"""Between our optimum and what it proves, as a fraction of the target's norm."""

BOUNDS = (
    {},
    {"consistency": "semi"},
    {"mass": {"b1": (0.1, 0.3)}, "com_box": {"b0": ([-0.1] * 3, [0.1] * 3)}},
    {"total_mass": (0.5, 2.0), "com_ellipsoid": {"b1": ([0, 0, 0], [0.2, 0.1, 0.3])}},
)


def program_of(seed, noise=0.3, **bounds):
    """A fit to noisy data of a random robot, its matrices in units, and where to start."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 3, drives=seed % 2 == 0)
    base = base_of(robot)
    R = np.linalg.qr(stacked_regressor(rng, robot)[:, base.independent], mode="r")
    rho = R @ base.K @ random_parameters(rng, robot)
    rho += noise * np.linalg.norm(rho) / np.sqrt(len(rho)) * rng.normal(size=len(rho))
    feasible = feasible_set(robot, **bounds)
    scale = units(robot, feasible, R @ base.K, rho, torques=True)
    reference = reference_model(robot, scale).delta
    problem = closest._problem(R @ base.K, rho, feasible, scale, reference, None).with_pull(
        closest.FAINT_PULL
    )
    back = scale.parameters / problem.units
    A, F, G = (problem.arrays.A * back, problem.arrays.F * back, problem.arrays.G * back)
    size = 1 / np.linalg.norm(A, 2)
    arrays = replace(problem.arrays, A=size * A, b=size * problem.arrays.b, F=F, G=G)
    return problem, arrays, groups(feasible, scale), reference / scale.parameters


def groups(feasible, scale):
    """The matrices in units, stacked by shape."""
    squares = [np.outer(unit, unit) for unit in scale.blocks]
    pairs = list(zip(feasible.blocks, squares, strict=True))
    units = [scale.parameters[b.columns][:, None, None] for b in feasible.blocks]
    taken = [1e-6 * np.eye(b.size) for b in feasible.blocks]
    return stack_by_shape(
        [b.columns for b in feasible.blocks],
        [b.basis * u / square for (b, square), u in zip(pairs, units, strict=True)],
        [b.constant / square - t for (b, square), t in zip(pairs, taken, strict=True)],
    )


def solved(arrays, matrices, start):
    """The optimum by our own method, as an answer whose multipliers are for the norm."""
    problem = Squares(arrays.A, arrays.b, matrices, arrays.G, arrays.h)
    at, _, done = problem.solve(start, 1e-9, 1e-12)
    norm = max(np.sqrt(2 * problem.cost(at.x)), 1e-300)
    found = {
        k: Z / norm
        for group, Zs in zip(matrices, at.multipliers, strict=True)
        for k, Z in zip(group.members, Zs, strict=True)
    }
    multipliers = tuple(found[k] for k in sorted(found))
    return SolverAnswer("Solved" if done else "Stalled", at.x, multipliers, at.prices / norm)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bounds", BOUNDS)
def test_our_own_method_finds_and_proves_the_optimum_of_the_cvxpy_program(seed, bounds):
    problem, arrays, matrices, start = program_of(seed, **bounds)
    program, unit = problem.program, problem.scale.parameters
    theirs = problem.value(solve.solve(program, "CLARABEL"))
    for begin in (start, 0 * start):
        found = solved(arrays, matrices, begin)
        assert found.status == "Solved"
        program.parameters.x.value = found.x * unit / problem.units
        value = program.problem.objective.value
        assert all(np.all(rule.violation() < SAME) for rule in program.problem.constraints)
        assert value == pytest.approx(theirs, abs=SAME)
        norm = np.linalg.norm(arrays.b)
        left = np.linalg.norm(arrays.A @ found.x - arrays.b) - lower_bound(arrays, found).value
        assert left < SAME * norm


def test_a_residual_of_zero_is_found():
    problem, arrays, matrices, start = program_of(1, noise=0.0)
    delta = solved(arrays, matrices, start).x * problem.scale.parameters
    assert problem.cost(delta) < 1e-4 * np.linalg.norm(problem.target)


def test_contradicting_constraints_end_in_no_answer_and_no_error():
    problem, arrays, matrices, start = program_of(1)
    row = np.zeros((2, len(problem.units)))
    row[:, 9] = 1.0, -1.0
    arrays = replace(arrays, G=row, h=np.array([-2.0, 1.0]))  # 2 <= m <= 1
    found = solved(arrays, matrices, start)
    assert found.status == "Stalled"
    assert (arrays.G @ found.x + arrays.h < 0).any()
