"""Solver answers are judged by our own bounds; exact algebra behind proofs."""

from dataclasses import replace
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from feasibility_problems import noisy
from hypothesis import given
from hypothesis import strategies as st

from feasid.certificate import definiteness
from feasid.core.errors import SolverError
from feasid.core.exact.numbers import (
    independent_rows,
    shortest_text,
    simplest_number,
    solve_linear,
    solve_near,
)
from feasid.parameters.feasibility import closest, solve
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.parameters.feasibility.constraints.units import problem_units
from feasid.parameters.feasibility.least_squares import feasible_least_squares
from feasid.parameters.feasibility.proof.presolve import (
    negative_direction,
    short_negative_direction,
)
from feasid.parameters.feasibility.reference import reference_model
from feasid.parameters.feasibility.solve import SolverAnswer, lower_bound

SEEDS = st.integers(0, 2**32 - 1)
GAP = {"CLARABEL": 1e-4, "SCS": 1e-2}
"""An interior point on squares knows multipliers to the root of its tolerance; SCS before 3.2.8
may end without reaching 1e-8."""

RTOL_SCHUR = 1e-3
"""The Schur form is solved in the same units to 1e-8 of the squared norm; its root is coarser."""


def scaled(seed):
    """The program of a fit, its arrays, and its solution by Clarabel."""
    base, R, rho, _ = noisy(seed)
    feasible = feasible_set(base.robot)
    scale = problem_units(base.robot, feasible, R @ base.K, rho, torques=True)
    reference = reference_model(base.robot, scale).delta
    goal = closest._Goal(R @ base.K, rho, feasible, None)
    problem = closest._problem(goal, scale, reference).with_pull(closest.FAINT_PULL)
    return problem.program, problem.arrays, solve.solve(problem.program, "CLARABEL")


@pytest.mark.parametrize("seed", range(3))
def test_the_schur_formulation_of_the_paper_gives_the_same_optimum(seed):
    base, R, rho, _ = noisy(seed)
    feasible = feasible_set(base.robot)
    fit = feasible_least_squares(R, rho, base, feasible, friction_ridge=0.0)
    size = np.linalg.norm(rho)
    delta, u = cp.Variable(feasible.size), cp.Variable((1, 1))
    r = cp.reshape(rho / size - (R @ base.K / size) @ delta, (len(rho), 1), order="F")
    rules = [cp.bmat([[u, r.T], [r, np.eye(len(rho))]]) >> 0]  # eq. (73)
    for block in feasible.blocks:
        entries = block.basis.reshape(len(block.columns), -1).T @ delta[block.columns]
        rules.append(cp.reshape(entries, (block.size, block.size), order="C") >> 0)
    rules += [feasible.linear_matrix @ delta >= 0, cp.norm(delta) <= 1e3]
    cp.Problem(cp.Minimize(u[0, 0]), rules).solve(solver=cp.CLARABEL)
    schur = size * np.sqrt(u.value[0, 0])
    assert np.sqrt(fit.objective) == pytest.approx(schur, rel=RTOL_SCHUR)


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
@pytest.mark.parametrize("squared", [False, True])
def test_every_solver_and_form_gives_multipliers_that_prove_its_optimum(solver, squared):
    program, arrays, best = scaled(0)
    optimum = np.linalg.norm(arrays.A @ best.x - arrays.b)
    bound = lower_bound(arrays, solve.solve(program, solver, squared=squared))
    assert bound <= optimum * (1 + 1e-6)
    assert optimum - bound < GAP[solver] * np.linalg.norm(arrays.b)


@pytest.mark.parametrize("seed", range(3))
def test_no_multipliers_whatever_prove_more_than_the_optimum(seed):
    _, program, raw = scaled(seed)
    optimum = np.linalg.norm(program.A @ raw.x - program.b)
    rng = np.random.default_rng(seed)
    for spread in 10.0 ** rng.uniform(-6, 3, size=50):
        noise = [spread * rng.normal(size=Z.shape) for Z in raw.multipliers]
        wrong = replace(
            raw,
            multipliers=tuple(Z + n + n.T for Z, n in zip(raw.multipliers, noise, strict=True)),
            prices=raw.prices + spread * rng.normal(size=raw.prices.shape),
        )
        assert lower_bound(program, wrong) <= optimum * (1 + 1e-6)
    flipped = replace(raw, multipliers=tuple(-Z for Z in raw.multipliers), prices=-raw.prices)
    assert lower_bound(program, flipped) <= optimum * (1 + 1e-6)
    missing = replace(raw, multipliers=())
    assert lower_bound(program, missing) <= optimum * (1 + 1e-6)


def test_a_feasible_but_poor_answer_is_not_accepted_and_its_gap_is_told():
    base, R, rho, _ = noisy(4)
    feasible = feasible_set(base.robot)
    scale = problem_units(base.robot, feasible, R @ base.K, rho, torques=True)
    reference = reference_model(base.robot, scale).delta

    def lazy(program):
        poor = reference / program.parameters.scale.parameters
        return SolverAnswer("Solved", poor, tuple(np.zeros((4, 4)) for _ in program.sizes))

    with pytest.raises(SolverError, match="from the optimum") as caught:
        feasible_least_squares(R, rho, base, feasible, solver=[("fake", "cone", lazy)])
    assert not caught.value.attempts[0].accepted
    honest = feasible_least_squares(R, rho, base, feasible)
    assert honest.gap < 2e-4  # ridge, margin and pull are in it
    attempts = [("fake", "cone", lazy), *solve.solver_attempts()]
    both = feasible_least_squares(R, rho, base, feasible, solver=attempts)
    others = feasible_least_squares(R, rho, base, feasible, solver=solve.solver_attempts())
    assert both.objective == pytest.approx(others.objective, rel=1e-9)


def test_interrupts_are_not_swallowed():
    base, R, rho, _ = noisy(5, bodies=1)
    feasible = feasible_set(base.robot)

    def interrupted(program):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        feasible_least_squares(R, rho, base, feasible, solver=[("fake", "cone", interrupted)])
    with pytest.raises(SolverError):
        feasible_least_squares(R, rho, base, feasible, solver=[])


@given(SEEDS, st.integers(1, 6), st.integers(1, 8))
def test_elimination_solves_exactly_and_changes_little(seed, rows, columns):
    rng = np.random.default_rng(seed)
    A = rng.integers(-5, 6, size=(rows, columns))
    truth = rng.integers(-5, 6, size=columns)
    equations = [
        ({(j,): Fraction(int(a)) for j, a in enumerate(row) if a}, Fraction(int(row @ truth)))
        for row in A
    ]
    start = {(j,): Fraction(int(t)) + Fraction(1, 10**9) for j, t in enumerate(truth)}
    solved = solve_near(equations, start, lambda _: 1.0)
    for row, right in equations:
        assert sum(c * solved[u] for u, c in row.items()) == right
    assert max(abs(solved[(j,)] - int(t)) for j, t in enumerate(truth)) < 1e-4
    contradiction = [*equations, (equations[0][0], equations[0][1] + 1)]
    assert solve_near(contradiction, start, lambda _: 1.0) is None


@given(SEEDS, st.integers(1, 5), st.sampled_from(("definite", "shifted", "any")))
def test_bad_directions_show_what_definiteness_says(seed, size, kind):
    """Also of matrices with zeros on their diagonals; directions are exact."""
    rng = np.random.default_rng(seed)
    half = rng.integers(-3, 4, size=(size, size))
    shift = (kind == "shifted") * rng.integers(0, 4) * np.eye(size, dtype=int)
    matrix = half + half.T if kind == "any" else half @ half.T - shift
    exact = [[Fraction(int(x), 2) for x in row] for row in matrix]
    verdict = definiteness(exact)
    for find in (negative_direction, short_negative_direction):
        v = find(exact)
        if verdict == "positive definite":
            assert v is None
            continue
        form = sum(v[i] * exact[i][j] * v[j] for i in range(size) for j in range(size))
        assert any(v)
        assert all(isinstance(x, Fraction) for x in v)
        assert form < 0 if verdict == "indefinite" else form == 0


@given(st.fractions())
def test_numbers_are_written_exactly(number):
    assert Fraction(shortest_text(number)) == number


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0.045**2, "0.002025"), (1 / 3, "1/3"), (0.1 + 0.2, "0.3"), (2**0.5, "1.4142135623730951")],
)
def test_computed_coefficients_become_what_they_stand_for(number, expected):
    assert shortest_text(simplest_number(number)) == expected


@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_systems_are_solved_exactly_or_said_to_contradict_each_other(size, seed):
    rng = np.random.default_rng(seed)
    numbers, over = rng.integers(-4, 5, size=(2, size, size + 1))
    exactly = np.vectorize(lambda n, o: Fraction(int(n), int(o) or 1), otypes=[object])
    rows = exactly(numbers, over)
    matrix, right = rows[:, :-1].tolist(), rows[:, -1].tolist()
    lead, relations = independent_rows(matrix)
    assert len(lead) + len(relations) == size
    for relation in relations:
        assert relation
        for k in range(size):
            assert sum(c * matrix[i][k] for i, c in relation.items()) == 0
    x = solve_linear(matrix, right, [Fraction(0)] * size)
    assert (x is None) == any(sum(c * right[i] for i, c in r.items()) for r in relations)
    if x is not None:
        assert [sum(a * b for a, b in zip(row, x, strict=True)) for row in matrix] == right
