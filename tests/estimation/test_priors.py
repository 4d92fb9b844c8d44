"""The entropic prior: the stated problem, its evidence, and what its deviations promise."""

import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from robots import random_robot

from feasid.identification.estimation.newton import EntropicProblem
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.parameters.feasibility.constraints.units import problem_units
from feasid.parameters.identifiability.base import base_parameters
from feasid.robot import inertia

SOLVERS_AGREE = 1e-5
"""Relative difference of objectives that different solvers may leave."""

SAME = 1e-8  # relative, of the objective that both state


def problem(seed, rows=60, noise=1.0):
    """Whitened equations of a random arm, its truth near the reference, and the problem."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 3, ("revolute",)).with_joint_terms()
    reference_model, truth = np.zeros((2, robot.size))
    for columns in robot.inertial_columns:
        ball = inertia.from_mass_com_inertia(
            rng.uniform(0.5, 3), 0.1 * rng.standard_normal(3), np.eye(3) * rng.uniform(0.01, 0.1)
        )
        pull = np.eye(4) + 0.2 * rng.standard_normal((4, 4))
        reference_model[columns] = ball
        truth[columns] = inertia.from_pseudo_inertia(pull @ inertia.pseudo_inertia(ball) @ pull.T)
    for k in range(len(robot.drives)):
        place = list(robot.drive_columns(k).values())
        truth[place], reference_model[place] = [0.5, 0.0, 0.1], [1.0, 1.0, 0.0]
    base = base_parameters(robot)
    R = 10 * rng.standard_normal((rows, base.size))
    rho = R @ base.K @ truth + noise * rng.standard_normal(rows)
    feasible = feasible_set(robot)
    scale = problem_units(robot, feasible, R @ base.K, rho, torques=True)
    entropic = EntropicProblem(R @ base.K, rho, feasible, reference_model, scale.parameters)
    return entropic, truth, base


def stated(entropic, weight, turn):
    """The stated problem in CVXPY, ``delta = turn @ z``, and z."""
    z = cp.Variable(len(entropic.unit))
    delta = turn @ z
    cost = 0.5 * cp.sum_squares(entropic.A @ delta - entropic.b)
    for block in entropic.feasible.blocks:
        own = np.linalg.inv(np.linalg.cholesky(block.matrix(entropic.reference)))
        terms = zip(block.columns, block.basis, strict=True)
        relative = sum(delta[int(c)] * (own @ basis @ own.T) for c, basis in terms)
        cost += weight * (cp.trace(relative) - cp.log_det(relative) - block.size)
    limits = entropic.feasible.linear_matrix @ delta + entropic.feasible.linear_constant
    return cp.Problem(cp.Minimize(cost), [limits >= 0])


def modelled(entropic, weight):
    """The least cost by Clarabel, in units of the parameters."""
    task = stated(entropic, weight, np.diag(entropic.unit))
    task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(task.value)


def by_scs(entropic, weight):
    """The least cost by SCS, in directions in which it curves alike: others take it for ever."""
    along = entropic.A * entropic.unit
    curved = np.linalg.cholesky(along.T @ along + weight * np.eye(len(entropic.unit)))
    task = stated(entropic, weight, entropic.unit[:, None] * np.linalg.inv(curved).T)
    found = []
    for adaptive in (True, False):  # either loses its way now and then, and says so
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
            task.solve(
                solver=cp.SCS, eps_abs=1e-7, eps_rel=1e-7, max_iters=30_000, adaptive_scale=adaptive
            )
        said = task.solver_stats.extra_stats["info"]
        found.append((max(said["res_pri"], said["res_dual"], said["gap"]), float(task.value)))
        if task.status == "optimal":
            break
    return min(found)[1]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weight", [0.1, 3.0])
def test_our_path_is_the_stated_problem(seed, weight):
    entropic, _, _ = problem(seed)
    found = entropic.minimise(entropic.reference, weight).delta
    value = modelled(entropic, weight)
    assert entropic.feasible.contains_strictly(found)
    assert abs(entropic.cost(found, weight) - value) <= SAME * abs(value)


@pytest.mark.parametrize(
    ("seed", "weight"),
    [
        *((seed, 1.0) for seed in range(2)),
        *(
            pytest.param(seed, 10.0 ** (seed % 5 / 2 - 1), marks=pytest.mark.slow)
            for seed in range(100)
        ),
    ],
)
def test_clarabel_and_scs_agree_on_entropic_fits(seed, weight):
    entropic, _, _ = problem(seed)
    ours = entropic.cost(entropic.minimise(entropic.reference, weight).delta, weight)
    values = [ours, modelled(entropic, weight), by_scs(entropic, weight)]
    assert (max(values) - min(values)) / abs(ours) < SOLVERS_AGREE


def test_the_prior_fades_as_data_come_in():
    far = []
    for rows in (40, 400, 4000):
        entropic, truth, base = problem(7, rows=rows, noise=1.0)
        found = base.K @ entropic.minimise(entropic.reference, 3.0).delta
        far.append(np.linalg.norm(found - base.K @ truth))
    assert far[2] < 0.5 * far[1] < 0.5 * far[0]


def test_evidence_prefers_a_strong_prior_when_the_reference_is_right():
    entropic, truth, _ = problem(3, rows=30, noise=1.0)
    exact = EntropicProblem(entropic.A, entropic.b, entropic.feasible, truth + 0.0, entropic.unit)
    strong, _ = exact.maximise_evidence(entropic.reference)
    weak, curve = entropic.maximise_evidence(entropic.reference)
    assert strong > 3 * weak
    assert max(curve, key=lambda point: point[1])[0] == weak


@pytest.mark.parametrize("seed", range(3))
def test_a_minimum_moves_with_the_equations_as_its_covariance_says(seed):
    """Also at bounds, where it stays: two joints without Coulomb friction are at zero."""
    entropic, _, _ = problem(seed, rows=400)
    pull = 1e-2 * np.random.default_rng(seed).standard_normal(len(entropic.b))
    first, second = (replace(entropic, b=entropic.b + x) for x in (0.0, pull))
    at, moved = (p.minimise(p.reference, 3.0).delta / p.unit for p in (first, second))
    expected = entropic.unit_noise_covariance(at * entropic.unit, 3.0) @ entropic.A.T @ pull
    assert (np.abs(at) < 1e-4).any()
    assert np.linalg.norm(moved - at - expected / entropic.unit) < 0.05 * np.linalg.norm(moved - at)


@pytest.mark.parametrize("factor", [1.0, -3.7])
def test_what_equations_tell_of_two_terms_together_has_a_covariance(factor):
    """The sum is known; how it divides is not, and no rounding makes a variance negative."""
    entropic, _, base = problem(2, rows=400)
    one, two = (base.robot.parameter_names.index((b, "fv")) for b in base.robot.joints[:2])
    A = entropic.A.copy()
    A[:, two] = factor * A[:, one]
    covariance = replace(entropic, A=A).covariance(entropic.reference, 3.0, 3.0)
    deviation = np.sqrt(np.diag(covariance))
    assert np.linalg.eigvalsh(covariance / np.outer(deviation, deviation))[0] > -1e-9
    seen, unseen = np.zeros((2, len(deviation)))
    seen[[one, two]], unseen[[one, two]] = (1.0, factor), (factor, -1.0)
    assert unseen @ covariance @ unseen > 1e8 * (seen @ covariance @ seen) > 0


@pytest.mark.slow
def test_deviations_cover_the_truth():
    """A truth off the reference, noise of unit variance: two deviations hold about 95 %."""
    inside = []
    for seed in range(30):
        entropic, truth, base = problem(seed, rows=60)
        found = entropic.minimise(entropic.reference, 3.0).delta
        evident, _ = entropic.maximise_evidence(found)
        covariance = entropic.covariance(found, 3.0, min(3.0, evident))
        deviation = np.sqrt(np.diag(base.K @ covariance @ base.K.T))
        inside.append(np.abs(base.K @ (found - truth)) < 1.96 * deviation)
    assert 0.92 < np.mean(inside) < 0.985


def test_deviations_are_wider_where_equations_contradict_the_description():
    entropic, truth, base = problem(2, rows=400)
    columns = base.robot.inertial_columns
    right, wrong = entropic.reference.copy(), entropic.reference.copy()
    right[columns.ravel()] = wrong[columns.ravel()] = truth[columns.ravel()]
    wrong[columns[-1]] *= 8.0
    given = entropic.A, entropic.b, entropic.feasible
    believed, own, common = [], [], []
    for reference in (right, wrong):
        stated = EntropicProblem(*given, reference, entropic.unit)
        found = stated.minimise(reference, 3.0).delta
        believed.append(np.array([*stated.body_prior_weights(found, 3.0).values()]))
        H = stated._squares.hessian + 3.0 * stated.hessian(0.5 * (found + reference))
        own.append(np.sqrt(np.diag(stated.covariance(found, 3.0, 3.0))))
        common.append(np.sqrt(np.diag(stated._sandwich(H, H))))
    assert believed[0].min() > 2.0
    # Neighbours share what the equations say of them, so that either may take the blame.
    assert believed[1][1:].min() < 0.5 * believed[0].min()
    doubted = columns[1 + np.argmin(believed[1][1:])]
    assert (own[1][doubted] > 1.1 * common[1][doubted]).any()
    assert (own[1] >= common[1] * (1 - SAME)).all()
    np.testing.assert_allclose(own[0], common[0], rtol=0.1)
