"""Sums in integers against the same sums in fractions."""

from fractions import Fraction

import numpy as np
import pytest
from feasibility_problems import random_robot
from hypothesis import given
from hypothesis import strategies as st

from feasid.core.exact.numbers import common_denominator, decimals_to_integers, printed_decimal
from feasid.parameters.feasibility.constraints.sets import block_value, feasible_set
from feasid.parameters.feasibility.proof.question import ExactData, ExactRows, adjoint

SEEDS = st.integers(0, 2**32 - 1)
LONG = st.integers(-(10**70), 10**70)


@given(SEEDS, st.lists(LONG, min_size=1, max_size=6), st.integers(1, 5))
def test_long_weights_times_data_are_exact(seed, weights, columns):
    R = np.random.default_rng(seed).normal(size=(len(weights), columns))
    data = ExactData.from_doubles(R, R[:, 0])
    over = Fraction(10) ** data.places[0]
    wanted = [sum(int(a) * w for a, w in zip(c, weights, strict=True)) / over for c in data.R.T]
    assert data.transpose_times([Fraction(w) for w in weights]) == wanted


@given(st.lists(st.fractions(), max_size=5))
def test_one_denominator(numbers):
    found, over = common_denominator(numbers)
    assert [Fraction(int(x), over) for x in found] == numbers


@given(st.lists(st.floats(-1e20, 1e20) | st.integers(-9, 9).map(lambda k: k / 2), min_size=1))
def test_decimals_of_doubles(numbers):
    found, over = decimals_to_integers(np.array(numbers))
    assert [Fraction(int(x), over) for x in found] == [printed_decimal(x) for x in numbers]


@given(SEEDS, st.sampled_from(["full", "semi"]))
def test_values_and_adjoints_of_matrices(seed, consistency):
    rng = np.random.default_rng(seed)
    block = feasible_set(random_robot(rng, 1), consistency).with_margin(0.1).blocks[0]
    exact = [printed_decimal(x) for x in rng.normal(size=10)]
    size = range(block.size)
    value = [
        [
            printed_decimal(block.constant[r, c])
            + sum(
                printed_decimal(B[r, c]) * exact[j]
                for j, B in zip(block.columns, block.basis, strict=True)
            )
            for c in size
        ]
        for r in size
    ]
    assert block_value(block, exact) == value
    Z = [[printed_decimal(x) for x in row] for row in rng.normal(size=(block.size, block.size))]
    for (j, part), column, B in zip(adjoint(block, Z), block.columns, block.basis, strict=True):
        assert j == column
        assert part == sum(printed_decimal(B[r, c]) * Z[r][c] for r in size for c in size)


def test_combinations_of_rows():
    rows = ExactRows([{0: Fraction(1, 3), 2: Fraction(-5)}, {}, {1: Fraction(7, 10)}])
    over = rows.as_integers[1]
    found = [Fraction(x, over) for x in rows.transpose_times([6, 5, 10**50], 4)]
    assert found == [2, 7 * 10**49, -30, 0]
    assert rows.as_doubles(4) == pytest.approx(
        np.array([[1 / 3, 0, -5, 0], [0] * 4, [0, 0.7, 0, 0]])
    )
