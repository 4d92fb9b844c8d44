"""Objectives: what they stand for, and their derivatives."""

import numpy as np
import pytest

from feasid.applications.excitation import problem

rng = np.random.default_rng(0)
W = rng.standard_normal((40, 6)) * [1, 2, 3, 0.2, 5, 1]
M = W.T @ W / 40
TASK = np.diag([1.0, 2, 3, 4, 5, 6])
STEP = 1e-6
DIFFERENCES = 1e-7

ROUNDING = 1e-12
"""Of logarithms: the sharpest smoothing leaves less above the exact value than the last digits."""

LOG_DET = problem.LogDet()
OBJECTIVES = {
    "smooth": problem.ConditionNumber(2), "sharp": problem.ConditionNumber(256), "logdet": LOG_DET,
    "prediction": problem.PredictionVariance(TASK),
    "mixture": problem.WeightedObjectives(((1.0, problem.ConditionNumber(8)), (0.3, LOG_DET))),
}  # fmt: skip


@pytest.mark.parametrize("name", OBJECTIVES)
def test_derivative(name):
    objective = OBJECTIVES[name]
    direction = rng.standard_normal(M.shape)
    direction += direction.T
    difference = objective(M + STEP * direction)[0] - objective(M - STEP * direction)[0]
    slope = (objective(M)[1] * direction).sum()
    assert np.isclose(difference / (2 * STEP), slope, rtol=DIFFERENCES, atol=DIFFERENCES)


def test_values():
    exact = np.log(np.linalg.cond(W))
    values = [problem.ConditionNumber(p)(M)[0] for p in (1, 4, 16, 64, 256)]
    assert sorted(values, reverse=True) == values
    assert all(v >= exact - ROUNDING for v in values)
    assert np.isclose(values[-1], exact, rtol=1e-3)
    assert np.isclose(LOG_DET(M)[0], -np.linalg.slogdet(M)[1] / 6)
    spread = np.trace(TASK @ np.linalg.inv(M))
    assert np.isclose(problem.PredictionVariance(TASK)(M)[0], np.log(spread) / 2)


def test_barrier_is_smooth_and_grows_outward():
    barrier = problem.LimitBarrier(2.0, 0.1)
    margins = np.array([[-0.5, 0.0, 0.05, 0.1, 0.1 + 1e-9, 0.5, 1.0]])
    each = [barrier(m[None]) for m in margins.T]
    values, slopes = np.array([v for v, _ in each]), np.array([s[0] for _, s in each])
    assert np.isclose(values[3], values[4])
    assert np.isclose(slopes[3], slopes[4])
    assert (np.diff(values) < 0).all()
    assert np.isclose(values[5], -2 * np.log(0.5))
    for m, slope in zip(margins[0], slopes, strict=True):
        up, down = (barrier(np.array([m + s]))[0] for s in (STEP, -STEP))
        assert np.isclose((up - down) / (2 * STEP), slope, rtol=1e-4)
