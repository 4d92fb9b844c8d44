"""Equations (29)-(36) of the Valkyrie paper, and what they do not say."""

import numpy as np
import pytest

import feasid
from feasid.dynamics.regressor import regressor
from feasid.identification.pseudo_inverse import pseudo_inverse, r_squared, select_samples
from feasid.online.acceptance import valkyrie

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
    Y, u = regressor(robot, *motion).reshape(-1, robot.size), noisy.ravel()

    def gradient(x, weight, other):
        return weight * Y.T @ (Y @ x - u) + other * (x - guess)

    found = {
        p: pseudo_inverse(robot, *motion, noisy, guess=guess, alpha=alpha, problem=p).theta
        for p in ("weighted", "stacked")
    }
    size = np.linalg.norm(Y.T @ u)
    assert np.linalg.norm(gradient(found["weighted"], alpha, 1 - alpha)) < ROUNDING * size
    assert np.linalg.norm(gradient(found["stacked"], alpha**2, (1 - alpha) ** 2)) < ROUNDING * size
    distance = np.abs(found["weighted"] - found["stacked"]).max()
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


def test_the_setting_of_the_paper_can_be_named(data):
    """A buffer of 50 rows at 3 Hz is full after 17 s, and R2 alone opens the gate."""
    robot = data[0].with_values(_possible(data[0]))
    rate = 60.0
    online = feasid.OnlineFit(robot, rate, **valkyrie(rate))
    t = np.arange(int(20 * rate)) / rate
    w = 2 * np.pi * np.array([0.21, 0.33, 0.47])
    q, dq, ddq = np.sin(np.outer(t, w)), np.cos(np.outer(t, w)) * w, -np.sin(np.outer(t, w)) * w**2
    tau = 1.5 * feasid.inverse_dynamics(robot, q, dq, ddq)
    states = []
    for k in range(len(t)):
        online.update(q[k], tau[k], dq[k])
        if k % 20 == 19 and k > 900:
            states.append(online.estimate().decision.open)
    assert online.estimate().rows == 50
    opened = 15 + states.index(True) / 3
    assert 16 <= opened <= 18
    with pytest.raises(feasid.FeasidError, match="at least 6 Hz"):
        valkyrie(3.0)


def _possible(robot):
    from feasid.robot import inertia

    ten = inertia.from_mass_com_inertia(1.0, [0.1, 0.0, 0.0], 0.01 * np.eye(3))
    return np.tile(ten, len(robot.bodies))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 1.0}, "between 0 and 1"),
        ({"problem": "34"}, "'weighted', 'stacked'"),
        ({"samples": 0}, "between 1 and 80"),
        ({"guess": [1.0]}, "parameters have shape"),
    ],
)
def test_arguments_are_checked(data, options, message):
    robot, _, motion, tau = data
    with pytest.raises(feasid.FeasidError, match=message):
        pseudo_inverse(robot, *motion, tau, **options)
    with pytest.raises(feasid.FeasidError, match="finite numbers"):
        pseudo_inverse(robot, *motion, tau[:-1])
    assert select_samples(regressor(robot, *motion), 2).shape == (2,)
