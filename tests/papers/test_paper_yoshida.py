"""Sousa and Cortesao (2014), Section 5.1: the 3-link robot of Yoshida and Khalil (2000)."""

import numpy as np
import pytest
from robots import yoshida

import feasid

EPSILON = 1e-6
"""The paper's margin on D(delta), Section 5."""

PRINTED = 2e-6
"""Table 1 prints six decimals of a solution that its solver found to 1e-7 in the objective."""

EXPRESSIONS = (
    "L1yy + L2yy + L3yy + m3", "L2xx - L2yy - m3", "L2xy", "L2xz - l3z", "L2yz", "L2zz + m3",
    "l2x + m3", "l2y", "L3xx - L3yy", "L3xy", "L3xz", "L3yz", "L3zz", "l3x", "l3y",
)  # fmt: skip
T1 = np.r_[
    [6.4, -5.48, 0.072, -0.087, 0.051, 5.6, 6.5, -0.00075],
    [-0.72, -0.0098, -0.0098, -0.00045, 0.72, 0.95, 0.015],
]
T2 = np.r_[6.2, T1[1:]]
T2_CORRECTED = np.r_[
    [6.200951, -5.479049, 0.071966, -0.086967, 0.050999, 5.6, 6.5, -0.00075],
    [-0.719049, -0.009819, -0.009817, -0.00045, 0.72, 0.949999, 0.014966],
]


BASE = feasid.base_parameters(yoshida())


def test_the_base_parameters_are_those_of_table_1():
    assert BASE.expressions == EXPRESSIONS


def test_t1_is_feasible():
    verdict = feasid.check(T1, BASE, consistency="semi", margin=EPSILON)
    assert verdict.feasible is True
    assert "feasible (semi" in verdict.certificate.verify()


def test_t2_is_infeasible():
    verdict = feasid.check(T2, BASE, consistency="semi")
    assert verdict.feasible is False
    assert "infeasible (semi" in verdict.certificate.verify()
    # The proof needs no bound that the claim does not have.


def test_t2_is_corrected_as_in_table_1():
    correction = feasid.correct(T2, BASE, consistency="semi", margin=EPSILON)
    assert correction.beta == pytest.approx(T2_CORRECTED, abs=PRINTED)
    assert f"{correction.distance:.3g}" == "0.00165"
    assert feasid.check(correction.beta, BASE, consistency="semi").feasible is True


def test_full_consistency_is_stricter_than_the_paper():
    # Links 2 and 3 of t1 would need a negative second moment somewhere.
    verdict = feasid.check(T1, BASE, consistency="full")
    assert verdict.feasible is False
    verdict.certificate.verify()
