"""Families of motions: their derivatives, their periods, rest, and slow passages."""

import numpy as np
import pytest

from feasid.applications.excitation import basis
from feasid.datasets import wam

PERIOD = 7.0
FAMILIES = {
    "fourier": basis.Fourier(PERIOD, 4),
    "spline": basis.Splines(PERIOD, 9),
    "slowed": basis.SlowedBasis(basis.Fourier(PERIOD, 4), 0.8),
    "slowed spline": basis.SlowedBasis(basis.Splines(PERIOD, 9), 0.5),
}
STEP = 1e-5
DIFFERENCES = 1e-7  # central differences, third derivatives of order 100
ROUNDING = 1e-12


@pytest.fixture(params=FAMILIES)
def family(request):
    return FAMILIES[request.param]


def test_derivatives(family):
    t = np.linspace(0.3, 6.4, 23)
    exact = family.matrices(t)
    differences = (family.matrices(t + STEP) - family.matrices(t - STEP)) / (2 * STEP)
    assert np.abs(exact[1:] - differences[:3]).max() < DIFFERENCES * np.abs(exact).max()


def test_periodic(family):
    t = np.linspace(0, PERIOD, 11)
    assert np.allclose(family.matrices(t), family.matrices(t + PERIOD), atol=1e-9)


def test_rest(family):
    scale = np.linspace(0.5, 2.0, family.size)
    coefficients = scale[:, None] * basis.rest_basis(family, scale)
    assert coefficients.shape == (family.size, family.size - 2)
    for end in (0.0, PERIOD):
        ends = family.matrices(np.array([end]))[1:3, 0] @ coefficients
        assert np.abs(ends).max() < 1e-10
    moving = family.matrices(np.array([PERIOD / 3]))[1, 0] @ coefficients
    assert np.abs(moving).max() > 0.01


def test_standstill(family):
    values = family.matrices(np.linspace(0, PERIOD, 50)) @ basis.constant_coefficients(family)
    assert np.allclose(values[0], 1, atol=ROUNDING)
    assert np.abs(values[1:]).max() < 1e-9


def test_fourier_is_the_published_series():
    table = wam.tables()["table5"]
    coefficients = np.vstack([table["q0"], np.array(table["a"]).T, np.array(table["b"]).T])
    t, *published = wam.motion()
    some = slice(0, 40_000, 997)
    ours = basis.Fourier(20.0, 5).matrices(t[some])[:3] @ coefficients
    for a, b in zip(ours, published, strict=True):
        assert np.allclose(a, b[some], atol=ROUNDING)


def test_slow_passage_is_slow_and_goes_everywhere():
    plain, slowed = basis.Fourier(PERIOD, 4), FAMILIES["slowed"]
    t = np.linspace(0, PERIOD, 701)
    c = np.random.default_rng(0).standard_normal(plain.size)
    quick, slow = plain.matrices(t) @ c, slowed.matrices(t) @ c
    middle = np.abs(t - PERIOD / 2) < PERIOD / 20
    assert np.abs(slow[1, middle]).max() < 0.3 * np.abs(quick[1]).max()
    assert np.isclose(slow[0].max(), quick[0].max(), rtol=1e-2)
