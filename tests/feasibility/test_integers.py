"""Sums in integers against the same sums in fractions."""

from fractions import Fraction

import numpy as np
import pytest
from feasibility_problems import random_robot
from hypothesis import given
from hypothesis import strategies as st

from feasid.exact.integers import Columns, doubles, integral, over_one, to_fixed_point
from feasid.exact.numbers import decimal
from feasid.feasibility.constraints.sets import block_value, feasible_set
from feasid.feasibility.proof.question import ExactRows, adjoint

SEEDS = st.integers(0, 2**32 - 1)
LONG = st.integers(-(10**70), 10**70)


@given(SEEDS, st.lists(LONG, max_size=6), st.integers(1, 5), st.integers(1, 53))
def test_long_integers_times_a_matrix_are_exact(seed, weights, columns, bits):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-(2**bits), 2**bits, size=(len(weights), columns))
    found = Columns(matrix).sums(weights)
    assert found == [sum(int(a) * w for a, w in zip(c, weights, strict=True)) for c in matrix.T]


@given(SEEDS, st.lists(st.tuples(LONG, LONG, LONG), min_size=1, max_size=4))
def test_long_integers_times_long_ones_are_exact(seed, entries):
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(entries))[: rng.integers(1, 4)].tolist()
    matrix = np.array(entries, dtype=object)
    weights = [entries[k][0] for k in rows]
    found = Columns(matrix).some(rows).sums(weights)
    assert found == (matrix[rows].T @ np.array(weights, dtype=object)).tolist()


def test_the_largest_sums_do_not_overflow():
    matrix = np.full((5000, 2), 2**53 - 1) * np.array([1, -1])
    weight = 10**60 - 1
    total = 5000 * (2**53 - 1) * weight
    assert Columns(matrix).sums([weight] * 5000) == [total, -total]


@given(st.lists(st.floats(-1e40, 1e40), min_size=1), st.integers(0, 60))
def test_fixed_points_are_the_integers_below(numbers, places):
    for x, found in zip(numbers, to_fixed_point(np.array(numbers), places).tolist(), strict=True):
        assert 0 <= Fraction(x) * 10**places - found < 1


@given(st.lists(st.fractions(), max_size=5))
def test_one_denominator(numbers):
    found, over = over_one(numbers)
    assert [Fraction(int(x), over) for x in found] == numbers
    assert doubles(found, over) == pytest.approx([float(x) for x in numbers], rel=1e-15)


@given(st.lists(st.floats(-1e20, 1e20) | st.integers(-9, 9).map(lambda k: k / 2), min_size=1))
def test_decimals_of_doubles(numbers):
    found, over = integral(np.array(numbers))
    assert [Fraction(int(x), over) for x in found] == [decimal(x) for x in numbers]


@given(SEEDS, st.sampled_from(["full", "semi"]))
def test_values_and_adjoints_of_matrices(seed, consistency):
    rng = np.random.default_rng(seed)
    block = feasible_set(random_robot(rng, 1), consistency).with_margin(0.1).blocks[0]
    exact = [decimal(x) for x in rng.normal(size=10)]
    size = range(block.size)
    value = [
        [
            decimal(block.constant[r, c])
            + sum(
                decimal(B[r, c]) * exact[j] for j, B in zip(block.columns, block.basis, strict=True)
            )
            for c in size
        ]
        for r in size
    ]
    assert block_value(block, exact) == value
    Z = [[decimal(x) for x in row] for row in rng.normal(size=(block.size, block.size))]
    for (j, part), column, B in zip(adjoint(block, Z), block.columns, block.basis, strict=True):
        assert j == column
        assert part == sum(decimal(B[r, c]) * Z[r][c] for r in size for c in size)


def test_combinations_of_rows():
    rows = ExactRows([{0: Fraction(1, 3), 2: Fraction(-5)}, {}, {1: Fraction(7, 10)}])
    over = rows.integers[1]
    found = [Fraction(x, over) for x in rows.combine([6, 5, 10**50], 4)]
    assert found == [2, 7 * 10**49, -30, 0]
    assert rows.doubles(4) == pytest.approx(np.array([[1 / 3, 0, -5, 0], [0] * 4, [0, 0.7, 0, 0]]))
