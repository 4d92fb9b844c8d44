"""Standard deviations against their formula on the full regressor."""

import numpy as np
import pytest
from logs import arm_parameters, simulate
from robots import ARM

import feasid
from feasid.identification.statistics import condition_number, standard_deviations

RTOL = 1e-9  # inverting W'W squares a condition number of some hundred


def test_deviations_are_those_of_the_whole_regressor():
    rng = np.random.default_rng(0)
    w = rng.standard_normal((200, 7)) @ np.diag([1e-3, 1, 10, 1, 1, 100, 1])
    omega = rng.standard_normal(200)
    residual = omega - w @ np.linalg.lstsq(w, omega, rcond=None)[0]
    variance = residual @ residual / (200 - 7)
    expected = np.sqrt(np.diag(variance * np.linalg.inv(w.T @ w)))
    triangle = np.linalg.qr(w, mode="r")
    found = standard_deviations(triangle, float(np.linalg.norm(residual)), 200)
    np.testing.assert_allclose(found, expected, rtol=RTOL)
    assert condition_number(triangle) == pytest.approx(np.linalg.cond(w), rel=RTOL)


def test_a_fit_tells_errors_and_deviations_of_its_log():
    robot = feasid.load_robot(ARM)
    truth = robot.with_joint_terms()
    log = simulate(truth, arm_parameters(truth), 0, samples=400, noise=0.1)
    fit = feasid.fit(log, robot, **feasid.SOUSA_2014)
    table = fit.base_table
    expected = 100 * table["std"] / table["value"].abs()
    np.testing.assert_allclose(table["relative_std_percent"], expected)
    signals = [log.filter(regex=f"^{s}_").to_numpy() for s in ("q", "dq", "ddq", "tau")]
    w = feasid.regressor(fit.base.robot, *signals[:3], columns=fit.base.independent)
    error = signals[3] - w @ fit.beta
    rows = w.reshape(-1, len(fit.beta))
    inverse = np.linalg.inv(rows.T @ rows)
    spread = np.sqrt(np.sum(error**2) / (len(rows) - len(fit.beta)) * np.diag(inverse))
    np.testing.assert_allclose(table["std"], spread, rtol=1e-6)
    relative = np.linalg.norm(error) / np.linalg.norm(signals[3])
    assert fit.relative_error["all"] == pytest.approx(relative, rel=1e-6)
    predicted = fit.predict(log).to_numpy()
    np.testing.assert_allclose(predicted, w @ fit.beta, atol=1e-8 * np.abs(predicted).max())
