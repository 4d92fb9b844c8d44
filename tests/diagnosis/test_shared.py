"""Motors that move two joints are found where they are, with their ratio, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import feasid
from benchmarks.faults import WHOLE, halves, recorded, simulated

pytestmark = pytest.mark.slow  # fits of whole logs, several each

RATIO_ERROR = 0.1
"""Ratios that are not those of a few teeth are told to two digits by friction alone."""

TERMS_ERROR = 0.15
"""Of the motor's inertia and friction, beside 2 % of noise in 20 s."""

BETTER = 0.6
"""What the advice must leave of the held-out error of the TX40's wrist."""


def with_motor(log, a, b, ratio, size=(0.15, 0.3, 0.5)):
    """The simulated log when one more motor turns with two joints; inertia, viscous, Coulomb."""
    names = log.attrs["robot"].joints
    rate = 1 / float(np.median(np.diff(log.t)))
    v = (log[f"dq_{names[a]}"] + ratio * log[f"dq_{names[b]}"]).to_numpy()
    own = np.stack([np.gradient(v) * rate, v, np.tanh(v / 0.005)], axis=1) @ size
    out = log.copy()
    out[f"tau_{names[a]}"] += own
    out[f"tau_{names[b]}"] += ratio * own
    return out


def couplings(log, robot, **options):
    return [f for f in feasid.diagnose(log, robot, **options) if f.code == "coupling"]


def untold(name):
    """A recorded log and its robot without the motors that it shares."""
    log, robot, options = recorded(name)
    own = tuple(d for d in robot.drives if len(d.coupling) == 1)
    return log, replace(robot, drives=own), options


@pytest.mark.parametrize(
    ("a", "b", "ratio"), [(3, 5, 0.5), (4, 5, 0.62), (4, 5, 1.0), (4, 5, -1.0), (3, 4, -2.0)]
)
def test_a_motor_of_two_joints_is_found_with_its_ratio(a, b, ratio):
    log = with_motor(simulated(), a, b, ratio)
    robot = log.attrs["robot"]
    found = couplings(log, robot)
    assert len(found) == 1
    assert found[0].joints == (robot.joints[a], robot.joints[b])
    (factors,) = found[0].options["couplings"].values()
    assert factors[robot.joints[a]] == 1.0
    assert factors[robot.joints[b]] == pytest.approx(ratio, rel=RATIO_ERROR)
    assert str(found[0].options["couplings"])[1:-1] in found[0].remedy


def test_the_advice_finds_its_inertia_and_friction():
    size = (0.15, 0.3, 0.5)
    log = with_motor(simulated(), 4, 5, 1.0, size)
    advice = feasid.diagnose(log).options
    fit = feasid.fit(log, diagnose=False, **advice)
    (name,) = advice["couplings"]
    found = [fit.joint_terms.loc[name, symbol] for symbol in ("Ia", "fv", "fc")]
    assert found == pytest.approx(size, rel=TERMS_ERROR)
    assert not couplings(log, log.attrs["robot"], **advice)


def test_two_motors_of_one_wrist():
    log = with_motor(with_motor(simulated(), 3, 4, 1.0), 4, 5, -1.0)
    robot = log.attrs["robot"]
    found = {f.joints: f.values["ratio"] for f in couplings(log, robot)}
    assert found == {robot.joints[3:5]: 1.0, robot.joints[4:6]: -1.0}


def test_the_wrist_of_the_tx40_is_found_when_it_is_not_told():
    log, robot, options = untold("staubli_tx40")
    (found,) = couplings(log, robot, **options)
    assert found.joints == ("joint_5", "joint_6")
    assert found.values["ratio"] == 1.0
    first, second = halves(log)
    errors = [
        feasid.fit(first, robot, diagnose=False, **options, **more).errors(second)
        for more in ({}, found.options)
    ]
    wrist = ["joint_5", "joint_6"]
    assert (errors[1][wrist] < BETTER * errors[0][wrist]).all()


@pytest.mark.parametrize(
    "name", ["staubli_tx40", "kuka_lwr4", "unitree_z1", "kinova_gen3" + WHOLE, "simulated"]
)
def test_none_is_found_where_there_is_none_or_it_is_told(name):
    log, robot, options = recorded(name)
    assert not couplings(log, robot, **options)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["panda", "ur5", "z1"])
def test_none_is_found_on_arms_in_mujoco(name, seed):
    from benchmarks import simulated as in_mujoco

    arm = in_mujoco.hidden(name, seed)
    assert not couplings(arm.log, arm.robot)
