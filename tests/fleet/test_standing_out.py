"""Arms of one type in Pinocchio: a tilted one, and what stands out in an arm or in a week."""

import json

import numpy as np
import pytest
from logs import log_frame
from pinocchio_side import PinocchioModel
from robots import example_urdfs
from seeds import seed_of

import feasid
from benchmarks.simulated import description, fourier
from feasid.cli import main

FRICTION = np.array([6.0, 6.0, 5.0, 2.0, 2.0, 1.5])
NOISE = np.array([0.6, 0.6, 0.5, 0.2, 0.2, 0.15])
"""Viscous [N m s], which is the dry one [N m], too, and of torques [N m]."""
SECONDS, TILT = 8, np.deg2rad(4.0)
RIGHT, LEFT = 0.04, 0.8
"""Error of an arm's model on another motion, 1 to 2.5 % beside this noise; and what is left of that
of a fit without the tilt."""


WEEKS, FRICTION_GROWS, GAIN_GROWS, TOOL = 4, 0.3, 0.06, 1.0
NEAR = {"friction": 0.2, "gain": 0.06, "load": 0.2}
"""Logs of an arm; shares per week, and a mass [kg], that are planted; how near they are found."""


class Arm:
    """An arm of a type: bodies within 2 % of it, and friction within 10 %."""

    def __init__(self, rng):
        self.robot = description("ur5")
        self.path = next(p for p in example_urdfs() if p.name == "ur5_robot.urdf")
        self.side, self.rng = PinocchioModel(self.robot, self.path), rng
        for body in self.side.ids:
            body = self.side.model.inertias[body]
            factor = np.exp(rng.normal(0, 0.02))
            body.mass, body.inertia = factor * body.mass, factor * body.inertia
        self.friction = FRICTION * np.exp(rng.normal(0, 0.1, 6))

    def log(self, friction=1.0, gains=1.0, daily=0.04, tool=0.0):
        """A log of another motion, with friction that differs by so much from day to day."""
        pin, inertias, last = self.side.pin, self.side.model.inertias, self.side.ids[-1]
        empty = inertias[last].copy()
        if tool:
            inertias[last] = empty + pin.Inertia(
                tool, np.array([0.0, 0.05, 0.08]), 0.002 * np.eye(3)
            )
        q, dq, ddq = (x[::8] for x in fourier(self.robot, self.rng, SECONDS, 1.8))
        today = friction * self.friction * np.exp(self.rng.normal(0, daily, 6))
        tau = np.array([self.side.torques(*row) for row in zip(q, dq, ddq, strict=True)])
        tau = gains * (tau + today * (dq + np.tanh(dq / 0.005)))
        tau += NOISE * self.rng.normal(size=q.shape)
        inertias[last] = empty
        return log_frame(np.arange(len(q)) / 125.0, self.robot.joints, q=q, tau=tau)


def test_the_base_of_one_arm_is_tilted():
    rng = np.random.default_rng(seed_of("drawn"))
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


@pytest.mark.slow
def test_what_was_planted_is_named_with_its_file_and_nothing_else(tmp_path, capsys):
    rng = np.random.default_rng(seed := seed_of("drawn"))
    worn, gained = int(rng.integers(5)), 1  # which carries the weight of the others
    for k, arm in enumerate(Arm(rng) for _ in range(5)):
        (tmp_path / "fleet" / f"arm{k}").mkdir(parents=True)
        for week in range(WEEKS):
            friction, gains = np.ones(6), np.ones(6)
            friction[worn] += FRICTION_GROWS * week * (k == 0)
            gains[gained] += GAIN_GROWS * week * (k == 1)
            log = arm.log(friction, gains, tool=TOOL * (k == 2 and week == 2))
            log.to_csv(tmp_path / "fleet" / f"arm{k}" / f"week{week + 1}.csv", index=False)
    capsys.readouterr()
    assert main(["fleet", str(tmp_path / "fleet"), "--robot", str(arm.path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["standing out"]
    assert [x["robot"] for x in found] == ["arm0", "arm1", "arm2"], (seed, found)
    drifts, load = found[:2], found[2]
    assert [x["kind"] for x in found] == ["friction", "gain", "load"]
    assert [x["place"] for x in drifts] == [arm.robot.joints[j] for j in (worn, gained)]
    assert [x["log"] for x in found] == ["week4.csv", "week4.csv", "week3.csv"]
    for x, grows in zip(drifts, (FRICTION_GROWS, GAIN_GROWS), strict=True):
        assert abs(np.log(x["size"] / (1 + grows * (WEEKS - 1)))) < NEAR[x["kind"]]
        assert "week1.csv to week4.csv" in x["text"]
    assert load["place"].startswith("wrist")
    assert abs(load["size"] - TOOL) < NEAR["load"]


@pytest.mark.slow
@pytest.mark.parametrize(("arms", "weeks"), [(5, 2), (4, 3), (3, 4), (2, 2)])
def test_healthy_arms_are_not_accused(arms, weeks):
    rng = np.random.default_rng(seed_of("drawn"))
    logs = {f"arm {k}": [arm.log(daily=rng.uniform(0.02, 0.1)) for _ in range(weeks)]
            for k, arm in enumerate(Arm(rng) for _ in range(arms))}  # fmt: skip
    fleet = feasid.fit_fleet(logs, description("ur5"))
    assert dict(fleet.outliers) == {}
