"""A payload is as good as the fit of the robot without it, and says so before anybody uses it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from robots import example_urdfs

import feasid
from benchmarks.simulated import fourier
from feasid.core.errors import InputError, UselessFitError
from feasid.core.notes import Note

pin = pytest.importorskip("pinocchio")

MASS, CENTRE, MOMENT = 1.1, np.array([0.01, 0.02, 0.06]), 0.004
"""Of the load [kg, m, kg m^2]."""

SURE = 5.0
"""Deviations within which a number is right: one in two million is not."""


def ur5():
    return next(p for p in example_urdfs() if p.name == "ur5_robot.urdf")


def logs(seed, gravity, speed=1.5):
    """With and without the load, on one motion; torques are Pinocchio's."""
    robot, rng = feasid.load_robot(ur5()), np.random.default_rng(seed)
    q, dq, ddq = (x[::8] for x in fourier(robot, rng, 16.0, speed))
    out = []
    for loaded in (True, False):
        model = pin.buildModelFromUrdf(str(ur5()))
        model.gravity.linear = np.asarray(gravity)
        if loaded:
            load = pin.Inertia(MASS, CENTRE, MOMENT * np.eye(3))
            model.appendBodyToJoint(6, load, pin.SE3.Identity())
        data = model.createData()
        tau = np.array([pin.rnea(model, data, *row) for row in zip(q, dq, ddq, strict=True)])
        tau += 2.0 * dq + 3.0 * np.tanh(dq / 0.004)
        tau += 0.01 * np.sqrt(np.mean(tau**2, axis=0)) * rng.standard_normal(tau.shape)
        columns = {"t": np.arange(len(q)) / 125.0}
        columns |= {f"q_{j}": x for j, x in zip(robot.joints, q.T, strict=True)}
        columns |= {f"tau_{j}": x for j, x in zip(robot.joints, tau.T, strict=True)}
        out.append(pd.DataFrame(columns))
    return (*out, robot)


@pytest.mark.sampled(0.34, of="file")
@pytest.mark.parametrize("gravity", [(-6.937, 0.0, -6.937), (0.0, 9.81, 0.0)])
def test_a_base_that_is_not_upright_is_named_and_its_load_refused(gravity):
    seed = np.random.SeedSequence().entropy
    loaded, unloaded, robot = logs(seed, gravity)
    refusal, load = "", None
    try:
        load = feasid.payload(loaded, unloaded, robot)
    except InputError as error:  # of some seeds the load's mass comes out negative
        refusal = str(error)
    reasons = refusal if load is None else "".join(load.reasons)
    assert "gravity seems to point along" in reasons, seed
    if load is not None:
        assert load.level != "good", seed
        assert load.reasons[0] in str(load)
        with pytest.raises(UselessFitError, match="force=True"):
            load.to("ur")
        assert load.to("ur", force=True).text
    right = feasid.payload(loaded, unloaded, feasid.load_robot(ur5(), gravity=gravity))
    assert right.level == "good", (seed, right.reasons)
    assert abs(right.mass - MASS) < SURE * right.mass_std, seed
    assert (np.abs(right.centre - CENTRE) < SURE * right.centre_std).all(), seed
    # Where the load's frame is the last body's, Pinocchio's joint frame is the same.
    off = np.abs(right.inertia - MOMENT * np.eye(3))
    assert (off < SURE * right.inertia_std).all(), seed


@pytest.mark.sampled(0.34, of="file")
def test_an_inertia_that_the_motion_does_not_show_is_not_given_to_a_controller():
    loaded, unloaded, robot = logs(3, (0.0, 0.0, -9.81), speed=0.2)
    load = feasid.payload(loaded, unloaded, robot)
    assert not load.shows_inertia
    assert "not determined" in str(load)
    card = load.to("ur", force=True)
    assert "ball of water" in " ".join(card.notes)
    radius = (load.mass / (4 / 3 * np.pi * 1000.0)) ** (1 / 3)
    expected = 0.4 * load.mass * radius**2
    np.testing.assert_allclose(card.values["inertia"], [expected] * 3 + [0.0] * 3, atol=1e-12)


def test_a_robot_with_fewer_base_parameters_than_a_load_has():
    """Two parallel joints in a vertical plane see a mass and its centre in it, and one moment."""
    rows = [(0.0, 1.0, 0.0, 0.0)] * 2
    inertial = np.array([0.1, 0, 0, 0.1, 0, 0.1, 0.2, 0, 0, 1.0])
    plain = feasid.Robot.from_dh(rows, gravity=(0.0, -9.81, 0.0))
    bodies = [replace(b, inertial=inertial) for b in plain.bodies]
    heavy = inertial + np.array([0, 0, 0, 0.01, 0, 0.01, 0.1, 0, 0, 1.0])
    t = np.arange(2000) / 200.0
    q = np.c_[np.sin(t) + 0.3 * np.sin(3.1 * t), np.cos(1.7 * t)]
    dq = np.c_[np.cos(t) + 0.93 * np.cos(3.1 * t), -1.7 * np.sin(1.7 * t)]
    ddq = np.c_[-np.sin(t) - 2.883 * np.sin(3.1 * t), -2.89 * np.cos(1.7 * t)]
    frames = []
    for last in (heavy, inertial):
        robot = replace(plain, bodies=(bodies[0], replace(bodies[1], inertial=last)))
        tau = feasid.inverse_dynamics(robot, q, dq, ddq)
        tau += 0.01 * np.random.default_rng(0).standard_normal(tau.shape)
        names = {f"{k}_{j}": x[:, i] for k, x in (("q", q), ("dq", dq), ("ddq", ddq), ("tau", tau))
                 for i, j in enumerate(robot.joints)}  # fmt: skip
        frames.append(pd.DataFrame({"t": t} | names))
    robot = replace(plain, bodies=tuple(bodies))
    load = feasid.payload(*frames, robot, friction=(), drive_inertia=False)
    assert abs(load.mass - 1.0) < SURE * load.mass_std
    assert abs(load.centre[0] - 0.1) < SURE * load.centre_std[0]
    assert np.isinf(load.centre_std[2])
    assert not load.shows_inertia


@pytest.mark.sampled(0.34, of="file")
def test_torques_of_currents_stay_refused_whatever_is_forced(monkeypatch):
    loaded, unloaded, robot = logs(1, (0.0, 0.0, -9.81))
    load = feasid.payload(loaded, unloaded, robot)
    amperes = replace(load, notes=(Note("torques are currents", "currents"),))
    with pytest.raises(feasid.FeasidError, match="currents"):
        amperes.to("ur", force=True)
