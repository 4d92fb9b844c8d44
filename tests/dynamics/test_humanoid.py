"""A humanoid identified from logs of standing, stepping and flight, judged on other steps."""

import numpy as np
import pytest

pytest.importorskip("mujoco")

from humanoid import Motion, humanoid, in_flight, on_the_ground, options

import feasid
from feasid.identification.effects.log_findings import check_columns
from feasid.logs.recording import Recording

MASS = 0.01  # relative
ERROR = 1.2  # times the true parameters' error
WRONG = (0.6, 1.5)  # range of factors by which the description's bodies are off


def thinned(log):
    return log.groupby("run" if "run" in log else np.zeros(len(log))).nth(slice(None, None, 2))


@pytest.mark.slow
def test_a_humanoid_is_identified_from_standing_stepping_and_flight():
    robot = humanoid()
    factors = np.random.default_rng(0).uniform(*WRONG, len(robot.bodies))
    wrong = robot.with_values((robot.values.reshape(-1, 10) * factors[:, None]).ravel())
    steps = {"crouch": 0.0, "sway": 0.175, "lift": 0.15, "gesture": 0.25, "period": 8.0}
    other = {"crouch": 0.02, "sway": 0.17, "lift": 0.15, "gesture": 0.25, "period": 9.0}
    logs = [
        on_the_ground(robot, Motion(robot, 0), 8.0, 0),
        on_the_ground(robot, Motion(robot, 1, **steps), 16.0, 1),
        in_flight(robot, 0),
    ]
    test = thinned(on_the_ground(robot, Motion(robot, 2, **other), 9.0, 2))
    logs = [thinned(log).reset_index(drop=True) for log in logs]
    told = {k: v for k, v in options(robot).items() if k in ("imu", "contacts")}
    for log in logs:
        assert [*check_columns(Recording.from_source(log), wrong, told)] == []
    fit = feasid.fit(logs, wrong, **options(robot))
    assert fit.quality.level == "good"
    masses = [r.values[9::10].sum() for r in (robot, wrong, fit.robot)]
    assert abs(masses[2] / masses[0] - 1) < MASS < abs(masses[1] / masses[0] - 1)
    reduced = feasid.reduce(test.reset_index(drop=True), base=fit.base, **fit.test_options())
    joints = slice(6, None)
    true, found, described = (
        np.linalg.norm(reduced.residuals(fit.base.values(r.values))[joints])
        for r in (robot, fit.robot, wrong)
    )
    assert found <= ERROR * true < described
