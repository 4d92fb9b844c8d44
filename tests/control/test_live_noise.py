"""An observer that gets what a controller gets: velocities with their noise, or differences."""

import warnings

import numpy as np
import pandas as pd
import pytest
from robots import example_urdfs

import feasid
from benchmarks.simulated import fourier

pin = pytest.importorskip("pinocchio")

RATE, SECONDS = 1000.0, 16.0
TORQUE_NOISE = 0.01
"""Of each joint's RMS torque."""

SPEED_NOISE, STEP = 0.004, 2 * np.pi / 2**19
"""Noise of measured velocities [rad/s], and resolution of positions [rad]."""

PUSHES = 20
"""Pushes of .3 s that are tried."""


class Arm:
    """A UR5 with masses that its description does not know; torques are Pinocchio's."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        path = next(p for p in example_urdfs() if p.name == "ur5_robot.urdf")
        self.robot = feasid.load_robot(path)
        self.model = pin.buildModelFromUrdf(str(path))
        for inertia in self.model.inertias:
            inertia.mass *= self.rng.uniform(0.8, 1.2)
        self.data = self.model.createData()

    def jacobian(self, q):
        frame = self.model.getFrameId("ee_link")
        world = pin.LOCAL_WORLD_ALIGNED
        return pin.computeFrameJacobian(self.model, self.data, q, frame, world)[:3]

    def log(self, measured, force=None, times=()):
        """A log at 1 kHz of a new motion; a force [N] in a new direction pushes at these times."""
        q, dq, ddq = fourier(self.robot, self.rng, SECONDS, 1.5)
        tau = np.array(
            [pin.rnea(self.model, self.data, *row) for row in zip(q, dq, ddq, strict=True)]
        )
        tau += 2.0 * dq + 3.0 * np.tanh(dq / 0.004)
        t = np.arange(len(q)) / RATE
        for start in times:
            direction = self.rng.standard_normal(3)
            push = force * direction / np.linalg.norm(direction)
            for k in np.flatnonzero((t >= start) & (t < start + 0.3)):
                tau[k] -= self.jacobian(q[k]).T @ push
        size = np.sqrt(np.mean(tau**2, axis=0))
        tau += TORQUE_NOISE * size * self.rng.standard_normal(tau.shape)
        q = np.round(q / STEP) * STEP
        live = np.diff(q, axis=0, prepend=2 * q[:1] - q[1:2]) * RATE
        if measured:
            live = dq + SPEED_NOISE * self.rng.standard_normal(dq.shape)
        names = self.robot.joints
        columns = {"t": t} | {f"q_{j}": x for j, x in zip(names, q.T, strict=True)}
        if measured:
            columns |= {f"dq_{j}": x for j, x in zip(names, live.T, strict=True)}
        columns |= {f"tau_{j}": x for j, x in zip(names, tau.T, strict=True)}
        return pd.DataFrame(columns), (t, q, live, tau)


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("measured", [True, False], ids=["measured", "differenced"])
def test_free_motion_gives_no_contact_and_the_push_that_is_told_is_felt(measured):
    seed = np.random.SeedSequence().entropy
    arm = Arm(seed)
    with warnings.catch_warnings():
        fit = feasid.fit(arm.log(measured)[0], arm.robot, diagnose=False)
    observer = feasid.ExternalTorque(fit, RATE)
    assert not [n for n in observer.notes if "played" in n], seed
    _, free = arm.log(measured)
    contacts = [observer.update(*row).contact for row in zip(*free, strict=True)]
    assert not any(contacts), seed
    felt = fit.uses.loc["contact", "number"]
    times = np.linspace(1.0, SECONDS - 1.0, PUSHES)
    _, pushed = arm.log(measured, 1.5 * felt, times)
    observer = feasid.ExternalTorque(fit, RATE)
    t = pushed[0]
    contacts = np.array([observer.update(*row).contact for row in zip(*pushed, strict=True)])
    found = [contacts[(t >= start) & (t < start + 0.4)].any() for start in times]
    assert np.mean(found) >= 0.9, seed


def test_an_observer_whose_own_log_alarms_says_so(monkeypatch):
    """With thresholds of a motion without noise of velocities, as they were before."""
    arm = Arm(3)
    fit = feasid.fit(arm.log(True)[0], arm.robot, diagnose=False)
    law = fit.error_law(30.0)
    monkeypatch.setattr(type(law), "crossing_levels", lambda law, rate: np.full(6, 1.0))
    (note,) = feasid.ExternalTorque(fit, RATE).notes
    assert "played through this observer" in note
    assert "do not use it to detect contact" in note
