"""Exact definiteness and certificates against eigenvalues and against tampering."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feasid.certificate import definiteness


def exact(matrix):
    return [[Fraction(x) for x in row] for row in np.asarray(matrix).tolist()]


@given(st.integers(1, 6), st.integers(0, 6), st.integers(0, 2**32 - 1))
def test_gram_matrices_have_the_definiteness_of_their_rank(size, rank, seed):
    # Integer factors make the Gram matrix exact, so that its rank is known by construction.
    factor = np.random.default_rng(seed).integers(-9, 10, size=(rank, size))
    gram = factor.T @ factor
    full = np.linalg.matrix_rank(factor) == size if rank else False
    assert definiteness(exact(gram)) == ("positive definite" if full else "singular")


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_a_negative_direction_is_found(size, seed):
    rng = np.random.default_rng(seed)
    factor = rng.integers(-9, 10, size=(size, size))
    bad = rng.integers(-9, 10, size=size)
    bad[rng.integers(size)] = 10
    gram = factor.T @ factor
    # v'Gv >= 0 for every v, so subtracting enough of vv' along v turns v'Av negative.
    matrix = gram * int(bad @ bad) ** 2 - (int(bad @ gram @ bad) + 1) * np.outer(bad, bad)
    assert definiteness(exact(matrix)) == "indefinite"


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        ([[0, 0], [0, 1]], "singular"),
        ([[0, 1], [1, 5]], "indefinite"),
        ([[0, 0], [0, -1]], "indefinite"),
        ([[1, 1, 0], [1, 1, 1], [0, 1, 9]], "indefinite"),
        ([[1, 1, 0], [1, 1, 0], [0, 0, 9]], "singular"),
        ([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 5]], "indefinite"),
        (
            [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 1, 5]],
            "indefinite",
        ),
        ([], "positive definite"),
    ],
)
def test_zero_pivots(matrix, expected):
    assert definiteness(exact(matrix)) == expected


def test_one_unit_in_the_last_place_is_decided():
    edge = 1.0 + 2.0**-52
    assert definiteness(exact([[1.0, 1.0], [1.0, 1.0]])) == "singular"
    assert definiteness(exact([[1.0, 1.0], [1.0, edge]])) == "positive definite"
    assert definiteness(exact([[1.0, edge], [edge, 1.0]])) == "indefinite"


def test_long_integers_are_not_rounded():
    factor = [[10**15 + 37, 10**14 + 3], [10**15 - 11, -(10**14) + 7], [3 * 10**15 + 1, 10**14]]
    gram = [[sum(x * y for x, y in zip(a, b, strict=True)) for b in factor] for a in factor]
    assert definiteness(gram) == "singular"
    gram[2][2] += 1
    assert definiteness(gram) == "positive definite"
    gram[2][2] -= 2
    assert definiteness(gram) == "indefinite"


def test_asymmetric_matrices_are_refused():
    with pytest.raises(ValueError, match="symmetric"):
        definiteness(exact([[1, 2], [3, 9]]))
