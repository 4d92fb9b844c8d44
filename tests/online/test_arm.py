"""A 4-DoF arm in MuJoCo, from a wrong guess to tracking, through a load; see the example."""

import importlib.util
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from valkyrie import AdaptiveControl

import feasid

pytest.importorskip("mujoco")
EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def arm():
    return example("online_arm")


def infeasible(run):
    feasible = feasid.feasible_set(run.control.online.robot)
    return [e.time for e in run.estimates if feasible.violations(e.delta)]


def test_tracking_is_a_third_or_better_once_the_gate_opens():
    run = arm().simulate(6.0, pick=100.0)
    assert 4.0 < run.opened < 4.5  # the buffer of 4 s is full, and three decisions agree
    assert run.rms(run.opened + 1.0, 6.0) < run.rms(2.0, run.opened) / 3
    assert infeasible(run) == []
    in_use = [u for _, u in run.used]
    assert in_use == sorted(in_use)


@pytest.mark.slow
def test_a_load_is_noticed_and_tracking_returns():
    pick, end = 15.0, 27.0
    run, off = (arm().simulate(end, pick, identify=x) for x in (True, False))
    found = arm().figures(run, pick)
    assert found["load noticed after [s]"] < 2.0
    assert run.rms(pick + 1, pick + 7) < run.rms(2.0, run.opened) / 10  # the gate stays open
    assert found["rms after [mrad]"] < found["rms before [mrad]"] / 3
    assert found["rms from 7 s after it [mrad]"] < 1.2 * found["rms after [mrad]"]
    assert off.rms(2.0, pick) > 3 * run.rms(run.opened + 1.0, pick)
    assert off.rms(pick + 7, end) > 3 * run.rms(pick + 7, end)
    assert infeasible(run) == []


def control(**options):
    robot = arm().described(arm().mujoco.MjModel.from_xml_string(arm().MODEL))
    return AdaptiveControl(
        robot, 200.0, backend="python", effort=[50.0] * 4, worker=False, **options
    )


def learnt(seconds=6, **options):
    """A controller that has watched a motion of another model long enough to open its gate."""
    mine = control(**options)
    robot = mine.online.robot
    delta = mine.online.problem.nominal.copy()
    for columns in robot.inertial_columns:
        delta[columns] *= 1.5
    t = np.arange(int(seconds * 200)) / 200
    motion = np.array([arm().reference(x) for x in t]).transpose(1, 0, 2)
    tau = feasid.inverse_dynamics(robot, *motion, parameters=delta)
    tau += 0.01 * np.random.default_rng(0).standard_normal(tau.shape)
    for k in range(len(t)):
        mine.observe(motion[0][k], tau[k])
        if k % 40 == 39:
            mine.decide()
    return mine


def test_models_change_without_bumps():
    mine = learnt(3.0, blend=0.5, window=600, full=10**6)
    inputs = arm().reference(1.3)
    before = mine.torque(*inputs)
    mine.online.full = 0
    for _ in range(3):
        mine.decide()
    assert mine.uses_identified_model
    assert mine.torque(*inputs).tolist() == before.tolist()
    torques = [before]
    for _ in range(100):
        mine.observe(inputs[0], before)
        torques.append(mine.torque(*inputs))
    steps = np.linalg.norm(np.diff(torques, axis=0), axis=1)
    total = np.linalg.norm(torques[-1] - before)
    assert total > 1.0
    assert steps.max() < 1.05 * total / 100


def test_bad_samples_bring_the_nominal_model_back_and_no_bad_torque():
    mine = learnt()
    assert mine.uses_identified_model
    nominal, used = mine.nominal, mine.model.beta
    assert not np.allclose(nominal, used)
    mine.torque([0.0] * 4, [0.0] * 4, [0.0] * 4)
    for _ in range(200):
        mine.observe([np.nan] * 4, [0.0] * 4)
        torque = mine.torque([np.nan] * 4, [0.0] * 4, [0.0] * 4)
        assert np.isfinite(torque).all()
        assert np.abs(torque).max() <= 50.0
    estimate = mine.decide()
    assert not mine.uses_identified_model
    assert any("unusable" in r for r in estimate.decision.reasons)
    for _ in range(200):
        mine.observe([np.inf] * 4, [0.0] * 4)
    np.testing.assert_allclose(mine.model.beta, nominal)
    assert mine.online.faults["not finite"] == 400


def test_blending_time_is_checked():
    with pytest.raises(ValueError, match="blend must be a time"):
        control(blend=-1.0)
