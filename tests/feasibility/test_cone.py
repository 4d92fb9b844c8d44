"""The entropic divergence's derivatives against differences of its values."""

import numpy as np
import pytest
from feasibility_problems import random_parameters, random_robot

from feasid.parameters.feasibility.cone import LogBarrier, minimise
from feasid.parameters.feasibility.constraints.sets import feasible_set

STEP = 1e-4
RTOL = 1e-5
"""Central differences of this step leave their square."""


@pytest.mark.parametrize("kind", ["every parameter", "some", "mixed", "few"])
def test_derivatives_along_any_directions(kind):
    rng = np.random.default_rng(5)
    robot = random_robot(rng, 3, drives=True)
    n = robot.size
    directions = {
        "every parameter": np.diag(rng.uniform(0.5, 2.0, size=n)),
        "some": rng.normal(size=(n, 5)) * (rng.random(size=(n, 5)) < 0.2),
        # One body is moved by every direction, the others by a few.
        "mixed": rng.normal(size=(n, 12)) * (np.arange(n) < 10)[:, None]
        + np.eye(n)[:, 10:22] * rng.normal(size=12),
        "few": rng.normal(size=(n, 2)),
    }[kind]
    reference, delta = random_parameters(rng, robot), random_parameters(rng, robot)
    barrier = LogBarrier.for_divergence(feasible_set(robot), reference, directions)
    gradient, hessian = barrier.derivatives(delta)
    for _ in range(5):
        z = rng.normal(size=directions.shape[1])
        z *= 1e-2 / np.abs(directions @ z).max()
        step = STEP * directions @ z
        up, middle, down = (barrier.value(delta + k * step) for k in (1, 0, -1))
        assert (up - down) / (2 * STEP) == pytest.approx(gradient @ z, rel=RTOL, abs=1e-6)
        ahead, _ = barrier.derivatives(delta + step)
        behind, _ = barrier.derivatives(delta - step)
        assert (ahead - behind) / (2 * STEP) == pytest.approx(hessian @ z, rel=RTOL, abs=1e-5)
        assert up + down > 2 * middle


class Rounded:
    """``|z|^2 / 2`` on a large constant, with a gradient whose rounding has an alternating sign."""

    concordance = 1.0

    def __init__(self, rounding):
        self.rounding = rounding

    def value(self, delta):
        return 1e5 + 0.5 * float(delta @ delta)

    def derivatives(self, delta):
        self.rounding = -self.rounding
        return delta + self.rounding, np.eye(len(delta))


@pytest.mark.parametrize("rounding", [1.5e-5, 5e-5, 1e-4])
def test_steps_on_rounding_end(rounding):
    """The decrement asked for is below the rounding: it is reached from far, and then no more."""
    start = np.full(3, 7.0)
    minimum = minimise([(1.0, Rounded(rounding))], start, np.eye(3), 1e-10)
    assert minimum.status == "stalled"
    assert minimum.steps <= 5  # one from far, and a few that cannot halve it
    assert np.abs(minimum.delta).max() <= 2 * rounding
    assert minimum.gap <= 2 * 3 * rounding**2  # half the squared decrement, of three entries
    exact = minimise([(1.0, Rounded(0.0))], start, np.eye(3), 1e-10)
    assert exact.status == "converged"
    np.testing.assert_array_equal(exact.delta, 0.0)
