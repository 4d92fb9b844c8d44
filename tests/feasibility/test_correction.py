"""The closest feasible parameters, against hand-derived answers and their own optimality."""

import numpy as np
import pytest
from feasibility_problems import base_of, random_parameters, random_robot, triangle

import feasid
from feasid.core.errors import InputError
from feasid.robot import inertia

MARGIN = 1e-9
"""Absolute margin small enough not to show at RTOL."""

RTOL = 1e-5

ATOL_POINT = 1e-4
"""A distance is proved to about 1e-9 of the target; across it, the point is known to the root."""


def one_body(ten):
    return feasid.Robot((feasid.Body("link", None, inertial=ten),))


def test_a_triangle_violation_goes_to_the_nearest_triangle():
    # diag(1, 1, 5): the constraint Lzz <= Lxx + Lyy has normal (1, 1, -1) and is broken by 3.
    given = inertia.from_mass_com_inertia(1.0, np.zeros(3), np.diag([1.0, 1.0, 5.0]))
    correction = feasid.correct(one_body(given), margin=MARGIN)
    expected = given + inertia.from_mass_com_inertia(0, [0, 0, 0], np.diag([1.0, 1.0, -1.0]))
    assert correction.delta == pytest.approx(expected, abs=ATOL_POINT)
    assert correction.distance == pytest.approx(np.sqrt(3.0), rel=RTOL)
    assert correction.changed == ("link",)
    assert feasid.check(correction.robot).feasible is True


def test_a_negative_mass_goes_to_nothing():
    given = np.array([1.0, 0, 0, 1.0, 0, 1.0, 0, 0, 0, -2.0])
    correction = feasid.correct(one_body(given), margin=MARGIN)
    assert correction.distance == pytest.approx(2.0, rel=RTOL)
    assert correction.delta[9] == pytest.approx(MARGIN, abs=1e-7)
    assert correction.delta[:9] == pytest.approx(given[:9], abs=ATOL_POINT)


@pytest.mark.parametrize("metric", ["euclidean", "entropic"])
def test_feasible_bodies_are_untouched(metric):
    rng = np.random.default_rng(1)
    robot = random_robot(rng, 4, drives=True)
    delta = random_parameters(rng, robot)
    assert feasid.correct(robot.with_values(delta), metric=metric).changed == ()
    delta[robot.inertial_columns[2, 0]] *= 30.0
    delta[robot.parameter_names.index(("b3", "fc"))] = -1.0
    correction = feasid.correct(robot.with_values(delta), metric=metric)
    assert set(correction.changed) == {"b2", "b3"}
    same = np.ones(robot.size, dtype=bool)
    same[robot.inertial_columns[2]] = False
    same[robot.parameter_names.index(("b3", "fc"))] = False
    assert (correction.delta[same] == delta[same]).all()
    assert feasid.check(correction.robot).feasible is True


def test_the_entropic_distance_does_not_depend_on_units():
    given = inertia.from_mass_com_inertia(2.0, [0.1, 0.2, 0.3], np.diag([1.0, 1.0, 5.0]))
    metre = feasid.correct(one_body(given), metric="entropic")
    powers = np.array([2] * 6 + [1] * 3 + [0])
    millimetre = feasid.correct(one_body(given * 1000.0**powers), metric="entropic")
    assert millimetre.distance == pytest.approx(metre.distance, rel=RTOL)
    assert millimetre.delta / 1000.0**powers == pytest.approx(metre.delta, rel=1e-4, abs=1e-6)


@pytest.fixture(scope="module")
def infeasible():
    rng = np.random.default_rng(3)
    robot = random_robot(rng, 3, drives=True)
    base = base_of(robot)
    delta = random_parameters(rng, robot)
    delta[robot.inertial_columns[2, :6]] -= 2.0
    delta[robot.parameter_names.index(("b1", "Ia"))] = -0.2
    R = triangle(rng, base)
    return base, base.K @ delta, R


@pytest.mark.parametrize("metric", ["euclidean", "weighted", "entropic"])
def test_corrected_base_parameters_are_feasible_and_no_random_ones_are_closer(infeasible, metric):
    base, beta, R = infeasible
    weight = R if metric == "weighted" else None
    correction = feasid.correct(beta, base, metric=metric, weight=weight)
    assert feasid.check(correction.beta, base).feasible is True
    assert correction.beta == pytest.approx(base.K @ correction.delta)
    assert correction.gap < 1e-4
    if metric == "entropic":
        return
    W = np.eye(len(beta)) if weight is None else weight
    assert correction.distance == pytest.approx(np.linalg.norm(W @ (correction.beta - beta)))
    rng = np.random.default_rng(4)
    for _ in range(200):
        other = correction.delta + rng.normal(size=len(correction.delta)) * 10.0 ** rng.uniform(
            -6, 0
        )
        if feasid.feasible_set(base.robot).contains_strictly(other):
            distance = np.linalg.norm(W @ (base.K @ other - beta))
            assert distance > correction.distance * (1 - 1e-4)


@pytest.mark.slow
def test_the_entropic_distance_is_measured_around_a_given_model(infeasible):
    base, beta, _ = infeasible
    model = random_parameters(np.random.default_rng(6), base.robot)
    near = feasid.correct(beta, base, metric="entropic", around=model)
    assert feasid.check(near.beta, base).feasible is True
    assert near.distance != pytest.approx(feasid.correct(beta, base, metric="entropic").distance)
    with pytest.raises(InputError, match="violates"):
        feasid.correct(beta, base, metric="entropic", around=-model)
    with pytest.raises(InputError, match="around has no effect"):
        feasid.correct(beta, base, around=model)


def test_feasible_base_parameters_stay(infeasible):
    base, _, _ = infeasible
    truth = random_parameters(np.random.default_rng(5), base.robot)
    correction = feasid.correct(base.K @ truth, base)
    assert correction.distance < 1e-9 * np.linalg.norm(base.K @ truth)


def test_an_undescribed_link_stays_undescribed():
    bad = feasid.Body("a", None, inertial=[1.0, 0, 0, 1.0, 0, 5.0, 0, 0, 0, 1.0])
    correction = feasid.correct(feasid.Robot((bad, feasid.Body("b", "a"))))
    assert correction.changed == ("a",)
    assert correction.robot.bodies[1].inertial is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "euclid"}, "'euclidean'"),
        ({"metric": "weighted"}, "weight="),
        ({"weight": np.eye(3)}, "weight.* has no effect"),
        ({"metric": "weighted", "weight": np.eye(3)}, "columns"),
    ],
)
def test_wrong_options_are_named(infeasible, options, message):
    base, beta, _ = infeasible
    with pytest.raises(InputError, match=message):
        feasid.correct(beta, base, **options)
