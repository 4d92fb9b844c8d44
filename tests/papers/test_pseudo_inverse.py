"""Equations (29)-(36) of the Valkyrie paper, and what they do not say."""

import numpy as np
import pytest
from pseudo_inverse import pseudo_inverse, r_squared

import feasid

ROUNDING = 1e-9
"""Of normal equations with condition numbers of some thousands."""


@pytest.fixture(scope="module")
def data():
    robot = feasid.Robot.from_dh([(np.pi / 2, 0.1, 0.2, 0), (0, 0.5, 0, 0), (0, 0.4, 0, 0)])
    rng = np.random.default_rng(0)
    theta = rng.uniform(0.2, 1.0, robot.size)
    motion = rng.uniform(-2, 2, (3, 80, 3))
    tau = feasid.inverse_dynamics(robot, *motion, parameters=theta)
    return robot, theta, motion, tau


def test_pseudo_inverse_predicts_and_is_not_the_truth(data):
    robot, theta, motion, tau = data
    fit = pseudo_inverse(robot, *motion, tau)
    np.testing.assert_allclose(fit.predicted, tau, atol=ROUNDING)
    assert fit.r2["all"] == pytest.approx(1.0)
    assert fit.rank == feasid.base_parameters(robot).size
    assert np.linalg.norm(fit.theta) < np.linalg.norm(theta)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
def test_equation_33_is_not_equations_34_and_35(data, alpha):
    """By the gradients of both; only at 1/2 they are the same problem."""
    robot, theta, motion, tau = data
    rng = np.random.default_rng(1)
    noisy, guess = tau + 0.5 * rng.standard_normal(tau.shape), theta + 0.3
    Y, u = feasid.regressor(robot, *motion).reshape(-1, robot.size), noisy.ravel()

    def gradient(x, weight, other):
        return weight * Y.T @ (Y @ x - u) + other * (x - guess)

    weighted, stacked = (
        pseudo_inverse(robot, *motion, noisy, guess=guess, alpha=alpha, stacked=x).theta
        for x in (False, True)
    )
    size = np.linalg.norm(Y.T @ u)
    assert np.linalg.norm(gradient(weighted, alpha, 1 - alpha)) < ROUNDING * size
    assert np.linalg.norm(gradient(stacked, alpha**2, (1 - alpha) ** 2)) < ROUNDING * size
    distance = np.abs(weighted - stacked).max()
    assert (distance < ROUNDING) == (alpha == 0.5)


def test_few_well_chosen_samples_predict_like_all(data):
    """Equation (36), for noise-free torques."""
    robot, _, motion, tau = data
    rank = feasid.base_parameters(robot).size
    for count in range(1, 20):
        fit = pseudo_inverse(robot, *motion, tau, samples=count)
        if fit.rank == rank:
            break
    assert count <= rank  # each sample shows three rows at most, and at least one new one
    np.testing.assert_allclose(fit.predicted, tau, atol=1e-6)
    assert len(set(fit.samples.tolist())) == count


def test_r2_is_met_by_a_model_that_is_wrong(data):
    robot, theta, motion, tau = data
    wrong = feasid.inverse_dynamics(robot, *motion, parameters=1.085 * theta)
    assert (r_squared(tau, wrong) > 0.95).all()
    assert r_squared(tau, wrong) == pytest.approx(1 - 0.085**2)
