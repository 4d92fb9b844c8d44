"""Sousa and Cortesao (2014), Section 5.2: the Barrett WAM, from the published tables alone."""

from functools import cache

import numpy as np
import pytest

from feasid import base_parameters
from feasid.datasets import wam
from feasid.feasibility.problems import feasible_least_squares
from feasid.feasibility.sets import feasible_set
from feasid.logs.reduction import Reduced

EPSILON = 1e-6
"""The paper's margin on D(delta), Section 5."""

DRIVES_AT_BOUND = ("4", "5", "6")
"""Joints whose drive inertia Table 6 puts on the margin, to four digits."""


@cache
def identification():
    """Robot, base parameters and triangular factor of Table 5's motion."""
    arm = wam.robot()
    base = base_parameters(arm)
    _, q, dq, ddq = wam.motion()
    columns = [int(c) for c in base.independent]
    tau = np.zeros_like(q)
    every = slice(None, None, 7)  # one sample in seven: the same motion, at 143 Hz
    reduced = Reduced.from_samples(
        arm, q[every], dq[every], ddq[every], tau[every], columns=columns
    )
    return arm, base, reduced.triangle()[0]


def bounds():
    """Table 7's boxes and the total mass."""
    tables = wam.tables()
    return {"com_box": tables["table7_com_boxes"], "total_mass": tables["total_mass_max"]}


def test_the_condition_number_is_near_the_published_one():
    _, _, R = identification()
    # Published: 99, for the motion as recorded; the motion as planned has 97.9.
    assert np.linalg.cond(R) == pytest.approx(97.9, abs=0.5)


@cache
def bounded_fit():
    arm, base, R = identification()
    return feasible_least_squares(
        R,
        R @ wam.estimate("ols"),
        base,
        feasible_set(arm, "semi", **bounds()),
        margin=EPSILON,
        friction_ridge=0.0,
    )


def test_drive_inertias_that_the_paper_puts_on_their_bound_are_on_it():
    arm, base, _ = identification()
    names = [arm.parameter_names[c] for c in base.independent]
    for joint in DRIVES_AT_BOUND:
        value = bounded_fit().beta[names.index((joint, "Ia"))]
        assert EPSILON <= value <= 1.02 * EPSILON


def test_the_correction_is_the_published_one():
    ours = bounded_fit().beta - wam.estimate("ols")
    published = wam.estimate("feasible_bounded") - wam.estimate("ols")
    # The recorded motion differs from the planned one, so that the two corrections do a little.
    assert np.corrcoef(ours, published)[0, 1] > 0.95


def test_ours_fits_at_least_as_well_as_the_published_feasible_estimate():
    _, _, R = identification()
    published = wam.estimate("feasible_bounded") - wam.estimate("ols")
    assert bounded_fit().objective <= np.sum((R @ published) ** 2)
    assert bounded_fit().gap < 1e-8


def test_more_constraints_cost_more_but_little():
    arm, base, R = identification()
    ols = wam.estimate("ols")
    total = np.linalg.norm(R @ ols)
    costs = []
    for kind, more in (("semi", {}), ("semi", bounds()), ("full", bounds())):
        feasible = feasible_set(arm, kind, **more)
        fit = feasible_least_squares(R, R @ ols, base, feasible, margin=EPSILON, friction_ridge=0.0)
        costs.append(np.sqrt(fit.objective) / total)
    # Table 8, first row: 6.60, 6.64 and 6.65 percent; the last column has no counterpart there.
    relative = np.hypot(wam.RELATIVE_RESIDUAL, costs)
    assert wam.RELATIVE_RESIDUAL < relative[0] < relative[1] < relative[2]
    assert relative[2] < wam.RELATIVE_RESIDUAL + 1e-3
