"""Arms of one type in Pinocchio: a tilted one, and what stands out in an arm or in a week."""

import numpy as np
from logs import log_frame
from pinocchio_side import PinocchioModel
from robots import example_urdfs
from simulated import description, fourier

import feasid

FRICTION = np.array([6.0, 6.0, 5.0, 2.0, 2.0, 1.5])
NOISE = np.array([0.6, 0.6, 0.5, 0.2, 0.2, 0.15])
"""Viscous [N m s], which is the dry one [N m], too, and of torques [N m]."""
SECONDS, TILT = 8, np.deg2rad(4.0)
RIGHT, LEFT = 0.04, 0.8
"""Error of an arm's model on another motion, 1 to 2.5 % beside this noise; and what is left of that
of a fit without the tilt."""


class Arm:
    """An arm of a type: bodies within 2 % of it, and friction within 10 %."""

    def __init__(self, rng):
        self.robot = description("ur5")
        path = next(p for p in example_urdfs() if p.name == "ur5_robot.urdf")
        self.side, self.rng = PinocchioModel(self.robot, path), rng
        for body in self.side.ids:
            body = self.side.model.inertias[body]
            factor = np.exp(rng.normal(0, 0.02))
            body.mass, body.inertia = factor * body.mass, factor * body.inertia
        self.friction = FRICTION * np.exp(rng.normal(0, 0.1, 6))

    def log(self, friction=1.0, gains=1.0, daily=0.04):
        """A log of another motion, with friction that differs by so much from day to day."""
        q, dq, ddq = (x[::8] for x in fourier(self.robot, self.rng, SECONDS, 1.8))
        today = friction * self.friction * np.exp(self.rng.normal(0, daily, 6))
        tau = np.array([self.side.torques(*row) for row in zip(q, dq, ddq, strict=True)])
        tau = gains * (tau + today * (dq + np.tanh(dq / 0.005)))
        tau += NOISE * self.rng.normal(size=q.shape)
        return log_frame(np.arange(len(q)) / 125.0, self.robot.joints, q=q, tau=tau)


def test_the_base_of_one_arm_is_tilted():
    rng = np.random.default_rng(np.random.SeedSequence().entropy)
    arms = [Arm(rng) for _ in range(3)]
    arms[2].side.model.gravity.linear = 9.81 * np.array([0.0, np.sin(TILT), -np.cos(TILT)])
    logs = {f"arm {k}": [arm.log(), arm.log()] for k, arm in enumerate(arms)}
    fleet = feasid.fit_fleet(logs, arms[0].robot)
    np.testing.assert_array_equal(fleet.robot.gravity, arms[0].robot.gravity)
    tilted = fleet.fits["arm 2"]
    assert tilted.base.size > fleet.fits["arm 0"].base.size
    tests = [arm.log(daily=0.0) for arm in arms]
    errors = [f.errors(test)["all"] for f, test in zip(fleet.fits.values(), tests, strict=True)]
    level = feasid.fit(logs["arm 2"], arms[2].robot, calibration=None)
    assert max(errors) < RIGHT
    assert errors[2] < LEFT * level.errors(tests[2])["all"]
