"""The entropic divergence's derivatives against differences of its values."""

import numpy as np
import pytest
from feasibility_problems import random_parameters, random_robot

from feasid.parameters.feasibility.cone import LogBarrier
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
