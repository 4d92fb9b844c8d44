"""Sousa and Cortesao (2014), Section 5.2: the Barrett WAM, from the published tables alone."""

from functools import cache

import cvxpy as cp
import numpy as np
import pytest

import feasid
from benchmarks.second_checker import holds
from feasid import base_parameters, regressor
from feasid.datasets import wam
from feasid.identification.regression.triangle import Reduced
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.parameters.feasibility.least_squares import feasible_least_squares

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
    signals = (x[::7] for x in (q, dq, ddq, 0 * q))  # the same motion, at 143 Hz
    reduced = Reduced.from_samples(arm, *signals, columns=columns)
    return arm, base, reduced.triangle()[0]


def bounds():
    """Table 7's boxes and the total mass."""
    tables = wam.tables()
    return {"com_box": tables["table7_com_boxes"], "total_mass": tables["total_mass_max"]}


def feasible_fit(consistency, **limits):
    """FBPE-OLS: the feasible estimate that fits as well as possible."""
    arm, base, R = identification()
    rho, feasible = R @ wam.estimate("ols"), feasible_set(arm, consistency, **limits)
    return feasible_least_squares(R, rho, base, feasible, margin=EPSILON, friction_ridge=0.0)


def test_the_condition_number_is_near_the_published_one():
    _, _, R = identification()
    # Published: 99, for the motion as recorded; the motion as planned has 97.9.
    assert np.linalg.cond(R) == pytest.approx(97.9, abs=0.5)


@cache
def bounded_fit():
    return feasible_fit("semi", **bounds())


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
    assert bounded_fit().attempts[-1].accepted


def test_no_model_fits_much_better_than_ours_and_that_is_proved():
    """Full consistency with the bounds of Table 7, margin as in the paper."""
    fit = feasible_fit("full", **bounds())
    fit.optimality.verify()
    assert 0 <= fit.gap < 2e-5


def test_more_constraints_cost_more_but_little():
    _, _, R = identification()
    total = np.linalg.norm(R @ wam.estimate("ols"))
    costs = []
    for kind, more in (("semi", {}), ("semi", bounds()), ("full", bounds())):
        costs.append(np.sqrt(feasible_fit(kind, **more).objective) / total)
    # Table 8, first row: 6.60, 6.64 and 6.65 percent; the last column has no counterpart there.
    relative = np.hypot(wam.RELATIVE_RESIDUAL, costs)
    assert wam.RELATIVE_RESIDUAL < relative[0] < relative[1] < relative[2]
    assert relative[2] < wam.RELATIVE_RESIDUAL + 1e-3


def verdict(column, **options):
    _, base, _ = identification()
    return feasid.check(wam.estimate(column), base, consistency="semi", **options)


def test_ordinary_least_squares_is_proved_infeasible():
    answer = verdict("ols")
    assert answer.feasible is False
    assert "infeasible (semi" in answer.certificate.verify()
    # "infeasibility can be directly inferred since some drive inertia parameters are negative"
    assert answer.certificate.limit is None
    assert answer.clash[:3] == ("Ia of 4", "Ia of 5", "Ia of 6")


def test_the_links_alone_are_infeasible_too():
    """Without drives the published estimate still needs a link that cannot exist."""
    _, base, _ = identification()
    beta = wam.estimate("ols").copy()
    names = [base.robot.parameter_names[c] for c in base.independent]
    for joint in DRIVES_AT_BOUND:
        beta[names.index((joint, "Ia"))] = 0.01
    answer = feasid.check(beta, base, consistency="semi")
    assert answer.feasible is False
    assert set(answer.bodies) >= {"3", "5", "7"}
    answer.certificate.verify()


def test_the_published_feasible_estimate_is_proved_feasible():
    for margin in (0.0, EPSILON):
        for more in ({}, bounds()):
            answer = verdict("feasible_bounded", margin=margin, **more)
            assert answer.feasible is True
            answer.certificate.verify()


def plain_program(beta, com_box, total_mass=np.inf):
    """Section 5.2.4's test in plain CVXPY: the status of a search for standard parameters."""
    arm, base, _ = identification()
    delta = cp.Variable(arm.size)
    constraints, masses = [base.K @ delta == beta], 0
    for body, columns in zip(arm.bodies, arm.inertial_columns, strict=True):
        xx, xy, xz, yy, yz, zz, x, y, z, m = (delta[int(j)] for j in columns)
        L = cp.bmat([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        S = cp.bmat([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        D = cp.bmat([[L, S.T], [S, m * np.eye(3)]])  # eq. (17)
        low, high = np.array(com_box[body.name])
        first = cp.hstack([x, y, z])
        constraints += [D >> EPSILON * np.eye(6), first >= low * m, first <= high * m]  # eq. (26)
        masses += m
    symbols = [symbol for _, symbol in arm.parameter_names]
    signed = [j for j, symbol in enumerate(symbols) if symbol in ("Ia", "fv", "fc")]
    constraints += [delta[signed] >= EPSILON]
    constraints += [masses <= total_mass] if np.isfinite(total_mass) else []
    problem = cp.Problem(cp.Minimize(0), constraints)
    problem.solve(solver="CLARABEL")
    return problem.status


@cache
def free_estimate():
    """FBPE-OLS without bounds."""
    return feasible_fit("semi").beta


def assert_bounds_refute(beta, **limits):
    """Infeasible by a plain program, and by a proof that needs no limit on sizes."""
    _, base, _ = identification()
    answer = feasid.check(beta, base, consistency="semi", margin=EPSILON, **limits)
    assert plain_program(beta, **limits) == "infeasible"
    assert answer.status == "infeasible"
    assert answer.certificate.limit is None
    assert holds(answer.certificate.data)
    assert answer.conflict


def test_the_estimate_without_bounds_is_infeasible_within_them():
    """Section 5.2.4: beta* passes the test, and fails it with the bounds of Table 7."""
    _, base, _ = identification()
    assert feasid.check(free_estimate(), base, consistency="semi", margin=EPSILON).feasible
    assert_bounds_refute(free_estimate(), **bounds())


@pytest.mark.parametrize("seed", range(3))
def test_proofs_use_bounds_on_masses_and_on_centres_of_mass(seed):
    share = np.random.default_rng(seed).uniform(0.4, 0.6)
    boxes, total = bounds()["com_box"], share * bounds()["total_mass"]
    assert_bounds_refute(wam.estimate("feasible_bounded"), com_box=boxes, total_mass=total)
    boxes = {k: share * np.array(box) for k, box in boxes.items()}
    assert_bounds_refute(free_estimate(), com_box=boxes, total_mass=total)


def test_boxes_alone_refute_the_estimate_without_bounds():
    """Nothing bounds masses from above here."""
    assert_bounds_refute(free_estimate(), com_box=bounds()["com_box"])


def test_full_consistency_finds_the_published_feasible_estimate_impossible():
    _, base, _ = identification()
    answer = feasid.check(wam.estimate("feasible_bounded"), base, consistency="full")
    assert answer.feasible is False
    answer.certificate.verify()


@cache
def corrected():
    _, base, _ = identification()
    return feasid.correct(wam.estimate("ols"), base, consistency="semi", margin=EPSILON)


def test_the_correction_is_feasible_and_worse_than_feasible_least_squares():
    _, base, R = identification()
    ols, correction = wam.estimate("ols"), corrected()
    assert feasid.check(correction.beta, base, consistency="semi").feasible is True
    assert correction.distance**2 == pytest.approx(4.05e-3, rel=0.01)  # no published counterpart
    assert correction.distance < np.linalg.norm(wam.estimate("feasible_bounded") - ols)
    # Table 8: BPFC 6.68 percent, FBPE-OLS 6.64.
    assert np.sum((R @ (correction.beta - ols)) ** 2) > feasible_fit("semi").objective


CONFIGURATIONS = 10_000


def test_mass_matrices_are_positive_definite_exactly_when_feasible():
    """The paper's double check, Section 5.2.4."""
    feasible = [wam.estimate("feasible_bounded"), bounded_fit().beta, corrected().beta]
    arm, base, _ = identification()
    still = arm.with_gravity((0.0, 0.0, 0.0))
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, size=(CONFIGURATIONS, arm.dof))
    columns = [int(c) for c in base.independent]
    friction = [arm.parameter_names[c][1] in ("fv", "fc", "fo") for c in columns]
    inertial = np.where(friction, 0.0, [*feasible, wam.estimate("ols")]).T
    pushes = [np.tile(push, (CONFIGURATIONS, 1)) for push in np.eye(arm.dof)]
    M = np.stack([regressor(still, q, 0 * q, p, columns=columns) @ inertial for p in pushes], 2)
    assert np.abs(M - M.swapaxes(1, 2)).max() < 1e-12 * np.abs(M).max()
    *smallest, of_ols = np.linalg.eigvalsh(M.transpose(3, 0, 1, 2)).min(axis=(1, 2))
    assert min(smallest) > 0
    assert of_ols < 0
