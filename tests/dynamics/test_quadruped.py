"""A quadruped identified from its log: IMU, encoders, torques and feet that feel the ground."""

from functools import cache

import numpy as np
import pytest
from floating import loaded

import feasid
from feasid.reduction.triangle import Reduced

pytest.importorskip("mujoco")

from quadruped import Gait, equations, torque_error, trot

TRAINED, OTHER = Gait(1.6, 0.25, 0.5, 0.15), Gait(2.1, 0.18, 0.7, 0.1)

ERROR = 1.3  # of the error that the true parameters have under the same noise
MASS = 0.02  # relative
WRONG = (0.6, 1.5)  # range of factors by which the description's bodies are off
ALIKE = 0.05  # RMS of joint positions between two simulations, relative to their range


@cache
def identified():
    """Truth, a description that is wrong by up to 50 %, and the fit from a log of the truth."""
    robot, _ = loaded("solo12")
    factors = np.random.default_rng(0).uniform(*WRONG, len(robot.bodies))
    wrong = robot.with_values((robot.values.reshape(-1, 10) * factors[:, None]).ravel())
    said = equations(robot, trot(robot, TRAINED, 6.0, 0))
    reduced = Reduced.from_samples(wrong, *said.motion, said.forces)
    return robot, wrong, feasid.fit(reduced, wrong, friction=())


def test_the_model_is_feasible():
    *_, fit = identified()
    assert fit.certificate.verify()
    assert feasid.check(fit.robot).feasible


def test_torques_of_another_gait_are_as_good_as_the_truths():
    robot, wrong, fit = identified()
    log = trot(robot, OTHER, 3.0, 1)
    true = torque_error(robot, robot.values, log)
    assert torque_error(robot, fit.robot.values, log) <= ERROR * true
    assert torque_error(robot, wrong.values, log) > ERROR * true


def test_total_mass_is_known():
    robot, wrong, fit = identified()
    masses = [r.values[9::10].sum() for r in (robot, wrong, fit.robot)]
    assert abs(masses[1] / masses[0] - 1) > MASS
    assert abs(masses[2] / masses[0] - 1) < MASS


def test_it_trots_alike_when_simulated_again():
    robot, _, fit = identified()
    there, again = (trot(r, TRAINED, 1.5, 5)["q"] for r in (robot, fit.robot))
    assert np.sqrt(((there - again) ** 2).mean()) < ALIKE * np.ptp(there, axis=0).mean()
