"""A robot that stands still teaches nothing: the gate and the detector of changes wait for motion.

The plant is MuJoCo's: a Panda with friction, armature, encoder steps and torque noise, held by a
stiff controller. The description is wrong by 10 to 40 % of every body.
"""

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest
from arms import panda
from logs import with_terms

import feasid
from feasid.applications.online.online_fit import OnlineFit

RATE = 500.0
EVERY = 20
"""Samples between estimates."""
WINDOW = 2000
STEP = 2 * np.pi / 2**18
NOISE = 0.05
STOP = 0.1
"""Time in which an emergency stop brings the arm to rest [s]."""


@cache
def described():
    """Rigid bodies of the Panda, wrong, with joint terms of no value."""
    rng = np.random.default_rng(3)
    bare = panda().without_joint_terms()
    values = bare.values.copy()
    for columns in bare.inertial_columns:
        values[columns] *= rng.uniform(0.6, 1.4)
    return bare.with_values(values)


@cache
def plant():
    """MuJoCo's text of the true arm."""
    import tempfile
    from pathlib import Path

    robot = panda().without_joint_terms().with_joint_terms(("viscous", "coulomb"), True)
    robot = robot.with_values(np.nan_to_num(robot.values))
    path = Path(tempfile.mkdtemp()) / "panda.xml"
    feasid.write(with_terms(robot, Ia=0.1, fv=0.5, fc=0.4), path)
    return path.read_text()


@dataclass
class Run:
    """Estimates of one run, by time, and what the online fit is in the end."""

    online: OnlineFit
    times: list = field(default_factory=list)
    estimates: list = field(default_factory=list)

    def open_between(self, first, last):
        """Whether the gate was open, estimate by estimate."""
        return [
            e.decision.open
            for t, e in zip(self.times, self.estimates, strict=True)
            if first <= t < last
        ]


def wanted(t, moving):
    """Position to follow: joints at frequencies of their own, or the posture of the start."""
    w = 2 * np.pi * np.array([0.31, 0.43, 0.37, 0.53, 0.61, 0.47, 0.71])
    a = np.array([0.5, 0.4, 0.5, 0.5, 0.6, 0.5, 0.6])
    home = np.array([0.0, -0.4, 0.0, -1.8, 0.0, 1.6, 0.5])
    if not moving:
        return home, 0 * w, 0 * w
    if moving == "wrist":
        a[:-1] = 0.0
    return home + a * (1 - np.cos(w * t)), a * w * np.sin(w * t), a * w**2 * np.cos(w * t)


def simulate(phases, seed=0, **options):
    """Phases are (seconds, what moves: True, "wrist" or False); a stop freezes the arm there."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(plant())
    model.opt.timestep = 1 / RATE
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    run = Run(OnlineFit(described(), RATE, window=WINDOW, **options))
    data.qpos[:] = wanted(0.0, False)[0]
    mass = np.zeros((model.nv, model.nv))
    clock, moved, held = 0.0, 0.0, wanted(0.0, False)[0]
    for seconds, moving in phases:
        start = data.qvel.copy()
        for k in range(round(seconds * RATE)):
            if moving:
                target, rate, push = wanted(moved, moving)
                moved += 1 / RATE
            else:
                left = max(0.0, 1.0 - k / RATE / STOP)
                rate, push = start * left, -start / STOP * (left > 0)
                held = held + rate / RATE if k else (data.qpos.copy() if moved else held)
                target = held
            mujoco.mj_fullM(model, data, mass)
            command = push + 40 * (rate - data.qvel) + 400 * (target - data.qpos)
            tau = mass @ command + data.qfrc_bias
            data.qfrc_applied[:] = tau
            q = np.round(data.qpos / STEP) * STEP
            run.online.update(q, tau + NOISE * rng.standard_normal(model.nv), t=clock)
            clock += 1 / RATE
            if run.online.samples % EVERY == 0:
                run.times.append(clock)
                run.estimates.append(run.online.estimate())
            mujoco.mj_step(model, data)
    return run


@cache
def unseen():
    """Motions that no run makes, and the true torques without friction."""
    rng = np.random.default_rng(9)
    q, dq, ddq = rng.uniform(-1, 1, (3, 200, 7))
    robot = panda().without_joint_terms()
    return q, dq, 3 * ddq, feasid.inverse_dynamics(robot, q, dq, 3 * ddq)


def error(online, delta):
    """Relative torque error of the bodies of a model, in motions that it has not seen."""
    q, dq, ddq, tau = unseen()
    robot = online.robot.with_values(delta).without_joint_terms()
    return np.linalg.norm(feasid.inverse_dynamics(robot, q, dq, ddq) - tau) / np.linalg.norm(tau)


@pytest.mark.slow
def test_an_arm_that_is_held_still_from_the_start_opens_no_gate():
    run = simulate([(10.0, False)])
    assert not any(e.decision.open for e in run.estimates)
    assert not run.online.changes
    nominal = run.online.problem.nominal
    for estimate in run.estimates:
        assert error(run.online, estimate.delta) < 1.0001 * error(run.online, nominal)
    last = run.estimates[-1]
    assert last.age == pytest.approx(10.0, abs=0.2)
    assert f"nothing has moved for {last.age:.1f} s" in last.decision.reasons
    assert "nothing has moved" in repr(last)


@pytest.mark.slow
def test_after_an_emergency_stop_the_last_verified_model_stays():
    """Ten seconds at rest, no load without motion, and the gate where it was; then on."""
    run = simulate([(6.0, True), (10.0, False), (4.0, True)])
    online = run.online
    assert run.open_between(5.0, 20.0) == [True] * len(run.open_between(5.0, 20.0))
    assert list(online.changes) == []
    nominal = error(online, online.problem.nominal)
    for time, estimate in zip(run.times, run.estimates, strict=True):
        if time > 5.0:
            assert error(online, estimate.delta) < nominal
    resting = [e for t, e in zip(run.times, run.estimates, strict=True) if 7.0 < t < 16.0]
    assert len({e.delta.tobytes() for e in resting}) == 1
    assert [e.age for e in resting] == sorted(e.age for e in resting)
    assert resting[-1].age > 9.0
    assert run.estimates[-1].age == 0.0


def test_a_gate_that_is_closed_stays_closed_at_rest():
    """Two of three decisions before the stop agree; standing still adds none."""
    run = simulate([(2.0, True), (5.0, False)])
    assert not any(e.decision.open for e in run.estimates)


@pytest.mark.slow
def test_one_moving_joint_does_not_open_the_gate_for_seven():
    run = simulate([(8.0, "wrist")])
    assert not any(e.decision.open for e in run.estimates)
    assert any("% of the directions" in r for r in run.estimates[-1].decision.reasons)


def test_enough_motion_opens_it():
    run = simulate([(6.0, True)])
    assert run.estimates[-1].decision.open
    assert run.estimates[-1].decision.evidence.known > 0.9
