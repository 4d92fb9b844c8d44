"""Slack: a bounded, insignificant part of the fit buys a model close to the description."""

from dataclasses import replace
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from logs import arm_parameters, inertia_matrix
from robots import read_arm

import feasid
from feasid.certificate import definiteness
from feasid.core.errors import InputError
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.parameters.feasibility.least_squares import feasible_least_squares, regularise
from feasid.robot import inertia

TIGHT = 1e-3  # of the slack: fourteen halvings of the weight's range


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    """A noisy fit whose optimum lies on the boundary of what can exist."""
    robot = read_arm(tmp_path_factory.mktemp("slack")).with_joint_terms()
    base = feasid.base_parameters(robot)
    truth = base.K @ arm_parameters(robot)
    rng = np.random.default_rng(4)
    R = np.triu(rng.standard_normal((len(truth),) * 2)) + 2 * np.eye(len(truth))
    rho = R @ truth + 0.3 * rng.standard_normal(len(truth))
    feasible = feasible_set(robot)
    return R, rho, base, feasible, feasible_least_squares(R, rho, base, feasible)


def residual(R, rho, solution, rest):
    return np.hypot(np.linalg.norm(R @ solution.beta - rho), rest)


@pytest.mark.parametrize("rest", [0.5, 5.0])
@pytest.mark.parametrize("slack", [0.001, 0.01, 0.1])
def test_the_price_is_used_up_and_never_exceeded(problem, slack, rest):
    R, rho, *_, optimum = problem
    settled = regularise(optimum, rest, slack)
    price = residual(R, rho, settled, rest) / residual(R, rho, optimum, rest) - 1
    assert price <= slack * (1 + 1e-9)
    assert price > slack * (1 - 100 * TIGHT)


def test_every_answer_is_exactly_feasible(problem):
    _, _, base, _, optimum = problem
    for slack in (0.001, 0.1, 10.0):
        settled = regularise(optimum, 1.0, slack)
        for columns in base.robot.inertial_columns:
            assert definiteness(inertia_matrix(settled.delta[columns])) == "positive definite"
        for k in range(len(base.robot.drives)):
            columns = base.robot.drive_columns(k)
            assert all(Fraction(float(settled.delta[columns[s]])) > 0 for s in ("fv", "fc"))
        assert min(settled.margins.values()) > min(optimum.margins.values())
        np.testing.assert_allclose(settled.beta, base.K @ settled.delta, rtol=1e-12)


def test_more_slack_is_closer_to_the_description(problem):
    _, _, base, _, optimum = problem
    known = base.robot.values[base.robot.inertial_columns[0]]
    reference = inertia.pseudo_inertia(known)

    def divergence(solution):
        pseudo = inertia.pseudo_inertia(solution.delta[base.robot.inertial_columns[0]])
        ratio = np.linalg.solve(reference, pseudo)
        return np.trace(ratio) - np.linalg.slogdet(ratio)[1] - 4

    distances = [divergence(regularise(optimum, 1.0, s)) for s in (0.001, 0.03, 0.3, 30)]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-3 * distances[0]


def test_no_slack_is_the_optimum(problem):
    *_, optimum = problem
    assert regularise(optimum, 1.0, 0.0) is optimum


def test_a_constraint_of_the_caller_is_kept_or_named(problem):
    R, rho, base, _, optimum = problem
    body = base.robot.bodies[0].name
    reach = 0.1 * np.linalg.norm(optimum.delta[base.robot.inertial_columns[0]][6:9])
    feasible = feasible_set(
        base.robot,
        constraints=lambda p: [
            cp.norm(cp.hstack([p[body, x] for x in ("lx", "ly", "lz")])) <= reach
        ],
    )
    bounded = feasible_least_squares(R, rho, base, feasible)
    assert not feasible.violations(bounded.delta)
    columns = base.robot.inertial_columns[0][6:9]
    said, settled = "", bounded
    try:  # how far the answer goes depends on the solver's last digits
        settled = regularise(bounded, 1.0, 0.1)
    except InputError as error:
        said = str(error)
    assert not said or "slack=0.1 the answer violates" in said
    assert np.linalg.norm(settled.delta[columns]) <= reach * (1.0 + 1e-6)


def test_units_do_not_matter(problem):
    """Torques in other units settle on the same model."""
    R, rho, *_, optimum = problem
    settled = regularise(optimum, 1.0, 0.01)
    inner = replace(optimum.problem, R=1e-3 * R, rho=1e-3 * rho)
    small = replace(optimum, problem=inner)
    scaled = regularise(small, 1e-3, 0.01)
    np.testing.assert_allclose(scaled.delta, settled.delta, rtol=1e-6, atol=1e-9)
