"""Exact parts of proofs on random rationals: directions of negative value, eliminated sums."""

from dataclasses import replace

import numpy as np
import pytest
from feasibility_problems import random_parameters, random_robot

from feasid.core.exact.numbers import printed_decimal
from feasid.parameters.feasibility.constraints.elimination import Elimination
from feasid.parameters.feasibility.constraints.sets import equality_error, feasible_set
from feasid.robot.known import Equality

ROUNDING = 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_eliminated_sums_hold_to_the_last_decimal(seed):
    """Sums of several parameters, one alone, and one that repeats another."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 3)
    equalities = (
        Equality("sum", (9, 19, 29), (1.0, 1.0, -1.0), 0.123),
        Equality("same", (6, 16), (1.0, -1.0), 0.0),
        Equality("known", (7,), (1.0,), 0.05),
        Equality("mirrored", (18, 28, 8), (1.0, 1.0, -1.0), 0.0),
    )
    feasible = replace(feasible_set(robot), equalities=equalities)
    elimination = Elimination.from_equalities(feasible)
    delta = random_parameters(rng, robot) * np.pi
    found = elimination.expand(delta[elimination.roots])
    exact = [printed_decimal(x) for x in found]
    for equality in feasible.equalities:
        assert equality_error(equality, exact) == 0
    np.testing.assert_allclose(found[elimination.roots], delta[elimination.roots], rtol=1e-6)
    plain = elimination.T @ delta[elimination.roots] + elimination.fixed
    np.testing.assert_allclose(found, plain, atol=1e-6)
