"""Bodies that are known, equal or mirrored."""

import numpy as np
import pytest
from feasibility_problems import base_of, random_parameters, random_robot, triangle, with_noise

import feasid
from feasid.core.errors import InputError
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.parameters.feasibility.least_squares import feasible_least_squares
from feasid.robot import inertia
from feasid.robot.known import MIRROR_SIGNS

ROBOT = random_robot(np.random.default_rng(0), 4, drives=True)
BASE = base_of(ROBOT)
B = ROBOT.inertial_columns


def tied_parameters(seed, axis="y"):
    """b1 mirrored of b0, b3 equal to b2."""
    delta = random_parameters(np.random.default_rng(seed), ROBOT)
    delta[B[1]] = MIRROR_SIGNS[axis] * delta[B[0]]
    delta[B[3]] = delta[B[2]]
    return delta


TIES = {"equal": [("b2", "b3")], "mirrored": [("b0", "b1", "y")]}


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_mirrored_is_what_reflection_does_to_a_cloud_of_points(axis):
    points = np.random.default_rng(1).normal(size=(5, 3))
    reflected = points.copy()
    reflected[:, "xyz".index(axis)] *= -1
    clouds = (np.c_[p, np.ones(5)] for p in (points, reflected))
    one, other = (inertia.from_pseudo_inertia(cloud.T @ cloud) for cloud in clouds)
    assert other == pytest.approx(MIRROR_SIGNS[axis] * one)


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_a_body_that_mirrors_itself_is_symmetric(axis):
    feasible = feasible_set(ROBOT, mirrored=[("b0", "b0", axis)])
    delta = random_parameters(np.random.default_rng(4), ROBOT)
    assert len(feasible.violations(delta)) == 3  # two products and a moment
    delta[B[0]] *= MIRROR_SIGNS[axis] > 0
    assert not feasible.violations(delta)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_fits_keep_ties_exactly(noise):
    rng = np.random.default_rng(2)
    truth = tied_parameters(3)
    R = triangle(rng, BASE)
    rho = with_noise(rng, R @ BASE.K @ truth, noise)
    known = np.full(10, np.nan)
    known[9] = truth[B[2, 9]]
    feasible = feasible_set(ROBOT, known={"b2": known}, **TIES)
    fit = feasible_least_squares(R, rho, BASE, feasible, friction_ridge=0.0)
    assert (fit.delta[B[3]] == fit.delta[B[2]]).all()
    assert (fit.delta[B[1]] == MIRROR_SIGNS["y"] * fit.delta[B[0]]).all()
    assert fit.delta[B[3, 9]] == truth[B[2, 9]]
    assert not feasible.violations(fit.delta)
    if not noise:
        assert fit.beta == pytest.approx(BASE.K @ truth, rel=1e-5, abs=1e-6)


def test_verdicts_respect_ties():
    truth = tied_parameters(4)
    verdict = feasid.check(BASE.K @ truth, BASE, **TIES)
    assert verdict.feasible is True
    verdict.certificate.verify()
    other = random_parameters(np.random.default_rng(5), ROBOT)
    assert feasid.check(BASE.K @ other, BASE).feasible is True
    # Four links have 40 parameters, of which 28 or so can be seen; ties leave 20.
    verdict = feasid.check(BASE.K @ other, BASE, **TIES)
    assert verdict.feasible is False
    verdict.certificate.verify()


@pytest.mark.parametrize(
    ("bodies", "columns", "factor"),
    [(("b3", "b2"), slice(None), 1.0), (("b3",), slice(None), 1.5), (("b3",), slice(9, 10), 1e-4)],
    ids=["right", "heavier", "a light mass"],
)
def test_known_bodies_and_masses_decide(bodies, columns, factor):
    truth, known = random_parameters(np.random.default_rng(6), ROBOT), {}
    for body in bodies:
        known[body] = np.full(10, np.nan)
        known[body][columns] = factor * truth[B[int(body[1])]][columns]
    verdict = feasid.check(BASE.K @ truth, BASE, known=known)
    assert verdict.feasible is (factor == 1.0)
    assert "b3" in verdict.bodies or verdict.feasible
    verdict.certificate.verify()


def test_robots_are_compared_with_what_is_said_of_them():
    truth = tied_parameters(8)
    robot = ROBOT.with_values(truth)
    assert feasid.check(robot, **TIES).feasible is True
    truth[B[3, 0]] += 1e-12
    verdict = feasid.check(ROBOT.with_values(truth), **TIES)
    assert verdict.feasible is False
    assert verdict.clash == ("b2 and b3 equal, Lxx",)
    verdict.certificate.verify()


def test_ties_that_contradict_each_other_are_the_callers_error():
    known = {"b0": np.ones(10), "b1": 2 * np.ones(10)}
    with pytest.raises(InputError, match="contradicts"):
        feasid.check(np.zeros(len(BASE.K)), BASE, known=known, equal=[("b0", "b1")])


@pytest.mark.parametrize(
    "ties",
    [
        {"equal": [("b2", "b3")]},
        {"mirrored": [("b0", "b1", "y")]},
        {"known": {"b3": tied_parameters(1)[B[3]]}},
        {"total_mass": (7.5, 7.5)},
    ],
    ids=["equal", "mirrored", "known", "total"],
)
def test_a_robots_own_values_are_corrected_with_ties(ties):
    given = tied_parameters(2)
    given[B[2, :6]] -= 0.8 * np.array([1, 0, 0, 1, 0, 1])
    given[B[1, 0]] += 0.3
    correction = feasid.correct(ROBOT.with_values(given), **ties)
    feasible = feasible_set(ROBOT, **ties)
    assert not feasible.violations(correction.delta)
    assert correction.gap < 1e-5
    # Nearer feasible points along the way back do not exist.
    for share in (1e-3, 1e-2, 0.1):
        assert feasible.violations(correction.delta + share * (given - correction.delta))


def test_tied_bodies_meet_in_the_middle():
    given = tied_parameters(4)
    given[B[3]] = 1.2 * given[B[2]]
    correction = feasid.correct(ROBOT.with_values(given), equal=[("b2", "b3")])
    assert correction.delta[B[2]] == pytest.approx(1.1 * given[B[2]], rel=1e-6)
    assert (correction.delta[B[3]] == correction.delta[B[2]]).all()
    assert correction.changed == ("b2", "b3")


@pytest.mark.parametrize("factor", [np.zeros(10), np.r_[np.ones(9), -1.0]], ids=["zero", "mass"])
def test_known_values_that_cannot_be_are_named(factor):
    truth = tied_parameters(5)
    for given in ((ROBOT.with_values(truth),), (BASE.K @ truth, BASE)):
        with pytest.raises(InputError, match="known values break pseudo-inertia of b0"):
            feasid.correct(*given, known={"b0": factor * truth[B[0]]})
