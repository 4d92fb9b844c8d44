"""Exact parts of proofs on random rationals: directions of negative value, eliminated sums."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from feasibility_problems import random_parameters, random_robot
from hypothesis import given, settings
from hypothesis import strategies as st

from feasid.core.exact.numbers import printed_decimal
from feasid.parameters.feasibility.constraints.elimination import Elimination
from feasid.parameters.feasibility.constraints.sets import equality_error, feasible_set
from feasid.parameters.feasibility.proof.presolve import negative_direction
from feasid.robot.known import Equality

ROUNDING = 1e-9


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 4).flatmap(
    lambda n: st.lists(st.integers(-3, 3), min_size=n * n, max_size=n * n)
))  # fmt: skip
def test_directions_of_negative_value(entries):
    """Exact ones, and none where all eigenvalues are positive; zeros stand on many diagonals."""
    n = round(len(entries) ** 0.5)
    half = np.array(entries).reshape(n, n)
    matrix = [[Fraction(int(x), 2) for x in row] for row in (half + half.T).tolist()]
    smallest = np.linalg.eigvalsh(np.array(matrix, dtype=float))[0]
    found = negative_direction(matrix)
    if found is None:
        assert smallest > ROUNDING
        return
    assert all(isinstance(x, Fraction) for x in found)
    assert any(found)
    value = sum(found[i] * matrix[i][j] * found[j] for i in range(n) for j in range(n))
    if smallest < -ROUNDING:
        assert value < 0
    else:
        assert value == 0
        assert smallest < ROUNDING


@pytest.mark.parametrize("seed", range(5))
def test_eliminated_sums_hold_to_the_last_decimal(seed):
    """Sums of several parameters, one alone, and one that repeats another."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 3)
    feasible = replace(
        feasible_set(robot),
        equalities=(
            Equality("sum", (9, 19, 29), (1.0, 1.0, -1.0), 0.123),
            Equality("same", (6, 16), (1.0, -1.0), 0.0),
            Equality("known", (7,), (1.0,), 0.05),
            Equality("mirrored", (18, 28, 8), (1.0, 1.0, -1.0), 0.0),
        ),
    )
    elimination = Elimination.from_equalities(feasible)
    delta = random_parameters(rng, robot) * np.pi
    found = elimination.expand(delta[elimination.roots])
    exact = [printed_decimal(x) for x in found]
    for equality in feasible.equalities:
        assert equality_error(equality, exact) == 0
    np.testing.assert_allclose(found[elimination.roots], delta[elimination.roots], rtol=1e-6)
    plain = elimination.T @ delta[elimination.roots] + elimination.fixed
    np.testing.assert_allclose(found, plain, atol=1e-6)
