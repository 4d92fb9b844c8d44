"""What one log shows, several show: warm joints, what differs, also from files of reduced logs."""

import numpy as np
import pandas as pd
import pytest
from robots import example_urdfs

import feasid
from benchmarks.simulated import fourier
from benchmarks.together.arms import world
from feasid.datasets import arm

pin = pytest.importorskip("pinocchio")

COLD, FADES = 0.25, 6.0
"""More friction at the start of a log, and the time constant with which it fades [s]."""

FLOOR = 0.01
"""Relative error that 1 % of noise leaves; 0.05 without the warm-up."""

AS_GOOD = 1.1
"""Error of a fit of several logs over that of one log's."""


class WarmingArm:
    """A UR5 of unknown masses whose joints warm up in every log; torques are Pinocchio's."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.path = next(p for p in example_urdfs() if p.name == "ur5_robot.urdf")
        self.robot = feasid.load_robot(self.path)
        self.model = pin.buildModelFromUrdf(str(self.path))
        for inertia in self.model.inertias:
            inertia.mass *= self.rng.uniform(0.85, 1.15)
        self.data = self.model.createData()

    def log(self, cold=COLD):
        q, dq, ddq = (x[::8] for x in fourier(self.robot, self.rng, 15.0, 1.8))
        t = np.arange(len(q)) / 125.0
        tau = np.array([pin.rnea(self.model, self.data, *x) for x in zip(q, dq, ddq, strict=True)])
        friction = np.array([6, 6, 5, 2, 2, 1.5]) * dq
        friction += np.array([7, 7, 5, 2, 2, 1.6]) * np.tanh(dq / 0.004)
        tau += friction * (1 + cold * np.exp(-t / FADES))[:, None]
        tau += 0.01 * np.sqrt(np.mean(tau**2, axis=0)) * self.rng.standard_normal(tau.shape)
        columns = {"t": t} | {f"q_{j}": x for j, x in zip(self.robot.joints, q.T, strict=True)}
        columns |= {f"tau_{j}": x for j, x in zip(self.robot.joints, tau.T, strict=True)}
        return pd.DataFrame(columns)


def test_joints_that_warm_up_in_every_log_are_found_in_several_as_in_one():
    seed = np.random.SeedSequence().entropy
    ur5 = WarmingArm(seed)
    several = int(ur5.rng.integers(2, 4))
    logs, warm = [ur5.log() for _ in range(several)], ur5.log(cold=0.0)
    errors = {}
    for count in (1, several):
        fit = feasid.fit(logs[:count], ur5.robot, diagnose=False)
        assert "warm-up" in {e.at.kind for e in fit.calibration.confirmed}, (seed, count)
        errors[count] = fit.errors(warm)["all"]
    assert errors[several] < max(AS_GOOD * errors[1], FLOOR), (seed, errors)


@pytest.fixture(scope="module")
def fleet_of_logs():
    """Four logs of the packaged simulated arm; the third has .6 kg more at its hand."""
    robot = arm.described()
    loads = (0.4, 0.4, 1.0, 0.4)
    return robot, [arm.log(arm.truth(robot, load=m), seed=k) for k, m in enumerate(loads)]


@pytest.fixture(scope="module")
def live(fleet_of_logs):
    """The fit of all four logs."""
    robot, logs = fleet_of_logs
    return feasid.fit(logs, robot)


def test_files_of_reduced_logs_are_compared_as_the_logs_are(fleet_of_logs, live, tmp_path):
    robot, logs = fleet_of_logs
    paths = [tmp_path / f"{k}.reduced" for k in range(len(logs))]
    for path, log in zip(paths, logs, strict=True):
        feasid.reduce(log, robot, cutoff=live.reduced.cutoff).save(path)
    loaded = [feasid.Reduced.load(path) for path in paths]
    for source in (loaded, paths):
        fit = feasid.fit(source, robot)
        (difference,) = fit.comparison.differences
        assert (difference.log, difference.kind, difference.place) == (2, "load", "hand")
        np.testing.assert_allclose(fit.comparison.errors, live.comparison.errors, rtol=1e-6)


def test_a_log_that_is_named_as_different_is_a_doubt(live):
    assert live.quality.level == "doubtful"
    assert "log-differs" in [r.code for r in live.quality.reasons]


def test_two_logs_that_differ_are_named_as_two(fleet_of_logs):
    robot, logs = fleet_of_logs
    (note,) = (n for n in feasid.fit(logs[1:3], robot).notes if n.code == "log-differs")
    one, other = ("log 1", "log 2") if note.values["log"] == "log 1" else ("log 2", "log 1")
    assert str(note).startswith(f"{one} differs from {other} in a load")
    assert "two logs do not show which of them is right" in str(note)


@pytest.mark.parametrize("kind", ["mimic", "loop"])
def test_logs_of_joints_that_follow_others_are_compared(kind):
    """Without effects of single joints, which are not searched in one such log either."""
    given = world(kind)
    fit = feasid.fit([given.log, given.loaded], given.description, diagnose=False)
    assert [d.log for d in fit.comparison.differences] in ([0], [1])


def test_logs_that_are_not_compared_say_why(fleet_of_logs):
    robot, logs = fleet_of_logs
    fit = feasid.fit(logs[:2], robot, filtering="signals", cutoff=10.0)
    assert any(n.code == "not-compared" and "signals were filtered" in n for n in fit.notes)
