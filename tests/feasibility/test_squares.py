"""Our own interior point method, and the arrays for Clarabel, against what CVXPY makes of them."""

import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from feasibility_problems import base_of, random_parameters, random_robot, stacked_regressor

from feasid.feasibility import closest
from feasid.feasibility.constraints.sets import feasible_set
from feasid.feasibility.constraints.units import units
from feasid.feasibility.program import direct, solve
from feasid.feasibility.program.bound import lower_bound
from feasid.feasibility.program.reference import reference

SAME = 1e-8
"""Between our optimum and what it proves, as a fraction of the target's norm."""

THEIRS = 1e-5
"""Clarabel's optimum above ours, where it does not reach its own tolerance."""

BOUNDS = (
    {},
    {"consistency": "semi"},
    {"mass": {"b1": (0.1, 0.3)}, "com_box": {"b0": ([-0.1] * 3, [0.1] * 3)}},
    {"total_mass": (0.5, 2.0), "com_ellipsoid": {"b1": ([0, 0, 0], [0.2, 0.1, 0.3])}},
)


def program_of(seed, noise=0.3, **bounds):
    """The conic program of a fit to noisy data of a random robot, and where it starts."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 3, drives=seed % 2 == 0)
    base = base_of(robot)
    R = np.linalg.qr(stacked_regressor(rng, robot)[:, base.independent], mode="r")
    rho = R @ base.K @ random_parameters(rng, robot)
    rho += noise * np.linalg.norm(rho) / np.sqrt(len(rho)) * rng.normal(size=len(rho))
    feasible = feasible_set(robot, **bounds)
    scale = units(robot, feasible, R @ base.K, rho, torques=True)
    aim = reference(robot, scale).delta
    problem = closest._problem(R @ base.K, rho, feasible, scale, aim, None, closest.FAINT_PULL)
    return problem.program, aim / scale.parameters


def rows(A, b):
    """Rows of equations, sorted; signs are no matter."""
    whole = np.c_[A.toarray(), b]
    first = np.argmax(np.abs(whole) > 1e-12, axis=1)
    whole = np.round(whole * np.sign(whole[np.arange(len(whole)), first])[:, None], 10)
    return whole[np.lexsort(whole.T)]


@pytest.mark.parametrize("form", ["cone", "quadratic"])
@pytest.mark.parametrize("bounds", BOUNDS)
def test_the_arrays_for_clarabel_are_those_of_cvxpy_but_for_their_order(form, bounds):
    program, _ = program_of(0, **bounds)
    theirs, unknown, _ = solve.model(program, form, cp.CLARABEL)
    start = theirs["param_prob"].var_id_to_col[unknown.id]
    first = np.arange(start, start + unknown.size)
    order = np.r_[first, np.setdiff1d(np.arange(len(theirs["c"])), first)]
    ours = direct.ConeData.of(program, form == "quadratic")
    assert ours.c == pytest.approx(theirs["c"][order])
    if form == "quadratic":
        assert abs(ours.P - theirs["P"][order][:, order]).max() == 0
    dims = theirs["dims"]
    assert (ours.zero, ours.nonneg) == (dims.zero, dims.nonneg)
    assert (ours.soc, ours.psd) == (tuple(dims.soc), tuple(dims.psd))
    ends = np.cumsum([0, ours.zero, ours.nonneg, sum(ours.soc), len(ours.b)])
    for part in map(slice, ends[:3], ends[1:]):  # in any order
        mine, other = (
            rows(ours.A[part], ours.b[part]),
            rows(theirs["A"][part][:, order], theirs["b"][part]),
        )
        assert mine == pytest.approx(other, abs=1e-9)
    matrices = slice(ends[3], None)  # in this order
    assert abs(ours.A[matrices] - theirs["A"][matrices][:, order]).max() < 1e-12
    assert ours.b[matrices] == pytest.approx(theirs["b"][matrices])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("bounds", BOUNDS)
def test_our_own_method_finds_and_proves_the_optimum_of_cvxpys_model(seed, bounds):
    program, start = program_of(seed, **bounds)
    x = cp.Variable(program.c.size)
    stacked = program.F @ x + program.f
    rules = [
        cp.reshape(stacked[part], (s, s), order="C") >> 0
        for part, s in zip(program.slices, program.sizes, strict=True)
    ]
    rules += [program.G @ x + program.h >= 0] if len(program.h) else []
    problem = cp.Problem(cp.Minimize(cp.norm(program.A @ x - program.b)), rules)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Clarabel's own doubts are no matter
        theirs = problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-9, tol_gap_abs=1e-9)
    size = np.linalg.norm(program.b)
    for begin in (start, 0 * start):
        found = solve.squares(program, begin)
        assert found.status == "Solved"
        x.value = found.x
        value = problem.objective.value
        assert all(np.all(rule.violation() < SAME) for rule in rules)
        assert theirs - THEIRS * size < value < theirs + SAME * size
        assert value - lower_bound(program, found).value < SAME * size


def test_a_residual_of_zero_is_found():
    program, start = program_of(1, noise=0.0)
    x = solve.squares(program, start).x
    data = len(program.b) - (np.abs(np.linalg.svd(program.A)[1]) < 2e-5).sum()
    left = program.A[:data] @ x - program.b[:data]
    assert np.linalg.norm(left) < 1e-4 * np.linalg.norm(program.b)


def test_contradicting_constraints_end_in_no_answer_and_no_error():
    program, start = program_of(1)
    row = np.zeros((2, program.c.size))
    row[:, 9] = 1.0, -1.0
    program = replace(program, G=row, h=np.array([-2.0, 1.0]))  # 2 <= m <= 1
    found = solve.squares(program, start)
    assert found.status == "Stalled"
    assert (program.G @ found.x + program.h < 0).any()
