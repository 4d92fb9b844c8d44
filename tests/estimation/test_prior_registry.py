"""Priors are objects: registered by name, given as they are, or made of an earlier fit."""

import numpy as np
import pytest
from logs import arm_parameters, simulate
from robots import ARM

import feasid
from feasid.core.errors import InputError
from feasid.identification.estimation import priors
from feasid.identification.regression.triangle import Reduced
from feasid.parameters.feasibility.constraints.units import Units

STRONG = 1e3
FEW = 60  # samples of a log that determines little by itself


@pytest.fixture(scope="module")
def robot():
    return feasid.load_robot(ARM).with_joint_terms()


def reduced(robot, seed, samples, noise=0.2):
    log = simulate(robot, arm_parameters(robot), seed, samples=samples, noise=noise)
    columns = [log[[f"{kind}_{j}" for j in robot.joints]] for kind in ("q", "dq", "ddq", "tau")]
    return Reduced.from_samples(robot, *(c.to_numpy() for c in columns))


def test_a_new_prior_is_used_by_its_name(robot, monkeypatch):
    """Written in one place: a pull of the first mass, which this log does not see, to a value."""

    class KnownMass(feasid.Prior):
        name = "known-mass"
        weight = STRONG

        def rows(self, robot, reference, units, weight):
            rows = np.zeros((1, robot.size))
            rows[0, robot.inertial_columns[0, 9]] = np.sqrt(weight)
            return rows, np.array([2.5 * np.sqrt(weight)])

        def divergence(self, weight):
            return 1.0

    monkeypatch.setattr(priors, "PRIORS", dict(priors.PRIORS))
    priors.register(KnownMass())
    log = reduced(robot, 0, 500)
    options = {"diagnose": False, "plausible": False}
    fit = feasid.fit(log, robot, prior="known-mass", **options)
    assert fit.bodies["mass"].iloc[0] == pytest.approx(2.5, rel=1e-2)
    same = feasid.fit(log, robot, prior=KnownMass(), **options)
    np.testing.assert_array_equal(fit.delta, same.delta)
    weak = feasid.fit(log, robot, prior="known-mass", prior_weight=1e-6, **options)
    assert abs(weak.bodies["mass"].iloc[0] - 2.5) > 0.05
    assert "known-mass prior of weight" in str(fit.summary())


def test_a_name_that_nobody_registered_is_refused_with_the_nearest(robot):
    log = reduced(robot, 0, 100)
    with pytest.raises(InputError, match="prior='euclidean' needs a number as prior_weight"):
        feasid.fit(log, robot, prior="euclidean", diagnose=False)
    with pytest.raises(InputError, match="has no effect without prior='entropic'"):
        feasid.fit(log, robot, prior=None, prior_weight=1.0)


def test_an_earlier_fit_is_a_prior(robot):
    """A short log with the posterior of a long one as its prior gives what both logs give."""
    long, short = reduced(robot, 1, 3000), reduced(robot, 2, FEW)
    options = {"diagnose": False, "plausible": False, "weights": [1.0] * robot.dof}
    prior = feasid.GaussianPrior.of(feasid.fit(long, robot, **options))
    updated = feasid.fit(short, robot, prior=prior, **options)
    alone = feasid.fit(short, robot, **options)
    both = feasid.fit(long + short, robot, **options)
    truth = both.base.K @ arm_parameters(robot)
    deviation = np.sqrt(np.diag(both.covariance))
    # Each fit estimates the noise of its own log: weights differ a little.
    assert np.sqrt(np.mean(((updated.beta - both.beta) / deviation) ** 2)) < 1.0
    assert np.linalg.norm(updated.beta - truth) < 0.5 * np.linalg.norm(alone.beta - truth)
    smaller = np.sqrt(np.diag(updated.covariance) / np.diag(alone.covariance))
    assert np.median(smaller) < 0.7
    assert updated.certificate.verify()


def test_what_a_robot_does_not_have_is_marginalised(robot):
    n = robot.size
    prior = feasid.GaussianPrior(tuple(robot.parameter_names), np.arange(n) + 1.0, np.eye(n))
    fewer = robot.without_joint_terms()
    one = np.ones(len(fewer.bodies))
    unit = Units(one, one, np.ones(fewer.size), (), np.zeros(0))
    A, b = prior.rows(fewer, np.zeros(fewer.size), unit, 4.0)
    np.testing.assert_allclose(A.T @ A, 4.0 * np.eye(fewer.size))
    mean = [prior.mean[robot.parameter_names.index(name)] for name in fewer.parameter_names]
    np.testing.assert_allclose(np.linalg.solve(A, b), mean)


@pytest.mark.parametrize(
    "matrix", [np.eye(3), [[np.nan, 0], [0, 1]], [[1, 2], [2, 1]], [[1, 0.5], [0, 1]]],
    ids=["shape", "nan", "indefinite", "asymmetric"],
)  # fmt: skip
def test_what_is_no_covariance_is_refused(matrix):
    with pytest.raises(InputError):
        feasid.GaussianPrior((("a", "m"), ("b", "m")), np.ones(2), np.array(matrix))


def test_a_fit_without_a_prior_is_none(robot):
    fit = feasid.fit(reduced(robot, 0, 300), robot, prior=None, diagnose=False)
    with pytest.raises(InputError, match="a fit with a prior"):
        feasid.GaussianPrior.of(fit)
