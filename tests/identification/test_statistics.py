"""Standard deviations against their formula on the full regressor."""

import numpy as np
import pytest
from logs import arm_log
from robots import ARM

import feasid
from feasid.identification.estimation.noise import standard_deviations

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


def test_a_fit_tells_errors_and_deviations_of_its_log():
    robot = feasid.load_robot(ARM)
    _, log = arm_log(0, 400, 0.1)
    fit = feasid.fit(log, robot, **{**feasid.SOUSA_2014, "cutoff": None})
    table = fit.base_table
    expected = 100 * table["std"] / table["value"].abs()
    np.testing.assert_allclose(table["relative_std_percent"], expected)
    signals = [log.filter(regex=f"^{s}_").to_numpy() for s in ("q", "dq", "ddq", "tau")]
    w = feasid.regressor(fit.base.robot, *signals[:3], columns=fit.base.independent)
    error = signals[3] - w @ fit.beta
    rows = w.reshape(-1, len(fit.beta))
    assert fit.condition_number == pytest.approx(np.linalg.cond(rows), rel=RTOL)
    inverse = np.linalg.inv(rows.T @ rows)
    spread = np.sqrt(np.sum(error**2) / (len(rows) - len(fit.beta)) * np.diag(inverse))
    np.testing.assert_allclose(table["std"], spread, rtol=1e-6)
    sliding = np.array([body.motion[:3].any() == 0 for body in robot.bodies])
    shares = [
        own.sum() * np.sum(error[:, own] ** 2) / np.sum(signals[3][:, own] ** 2)
        for own in (sliding, ~sliding)
    ]  # N and N m are not added up
    relative = np.sqrt(sum(shares) / len(sliding))
    assert fit.relative_error["all"] == pytest.approx(relative, rel=1e-6)
    predicted = fit.predict(log).to_numpy()
    np.testing.assert_allclose(predicted, w @ fit.beta, atol=1e-8 * np.abs(predicted).max())


def stacked(seed, rows, scale=(1e-3, 1.0, 10.0, 100.0)):
    """A regressor, its triangle, a residual, and (W'W)^-1."""
    w = np.random.default_rng(seed).standard_normal((rows, len(scale))) @ np.diag(scale)
    return w, np.linalg.qr(w, mode="r"), np.linalg.inv(w.T @ w)


def test_as_many_rows_as_parameters_tell_no_deviation():
    _, triangle, inverse = stacked(2, 30)
    assert np.isinf(standard_deviations(triangle, 1.0, 4)).all()
    one_more = standard_deviations(triangle, 1.0, 5)
    np.testing.assert_allclose(one_more, np.sqrt(np.diag(inverse)), rtol=RTOL)
    assert standard_deviations(np.array([[2.0]]), 3.0, 10) == pytest.approx([3.0 / 3.0 / 2.0])


@pytest.mark.parametrize("dependent", ["a zero column", "two equal columns"])
def test_what_the_data_do_not_fix_is_infinitely_uncertain(dependent):
    w, _, _ = stacked(3, 40)
    blind = [1] if dependent == "a zero column" else [0, 2]
    w[:, blind] = 0.0 if dependent == "a zero column" else w[:, [0]]
    triangle = np.linalg.qr(w, mode="r")
    found = standard_deviations(triangle, 2.0, 40)
    seen = [k for k in range(4) if k not in blind]
    assert np.isinf(found[blind]).all()
    rest = w[:, seen] if dependent == "a zero column" else w[:, [0, *seen]]
    inverse = np.linalg.inv(rest.T @ rest)[-len(seen) :, -len(seen) :]
    np.testing.assert_allclose(found[seen], np.sqrt(4.0 / 36 * np.diag(inverse)), rtol=RTOL)
