"""Coupled and closed mechanisms identified from forward simulations by MuJoCo.

Torques are measured at the motors only, with 2 % noise, positions counted by encoders; the
constraints of the simulation are springs, stiff ones or MuJoCo's default, those of the model are
exact.
"""

import numpy as np
import pandas as pd
import pytest
from logs import values_for

import feasid
from benchmarks.closed import MECHANISMS, SOFT, STIFF, from_encoders, simulate

BAR = [0.01, 0, 0, 0.01, 0, 0.02, 0.05, 0.01, 0, 0.5]

WORSE = 1.2  # times the error of the true parameters on a log that was not fitted
AMPLITUDE = {"leg": 0.12, "parallel gripper": 0.15}  # the latter lies flat at -0.74 rad
SECONDS = {"leg": 24.0}  # it moves so little that a short log of noise shows in its parameters


def tried(name, seed, bonds=STIFF):
    text = MECHANISMS[name]
    robot = feasid.load_robot(text)
    amplitude = AMPLITUDE.get(name, 0.25)
    log, test = (
        from_encoders(
            simulate(text, robot, 100 * k + seed, SECONDS.get(name, 16.0), amplitude, bonds=bonds)
        )
        for k in (0, 1)
    )
    fit = feasid.fit(log, robot)
    reduced = feasid.reduce(test, fit.description, base=fit.base)
    truth = values_for(fit.robot, robot.with_values(np.nan_to_num(robot.values)))
    true = reduced.residuals(fit.base.values(truth)) / reduced.torque_norms
    found = reduced.residuals(fit.beta) / reduced.torque_norms
    assert np.linalg.norm(found) <= WORSE * np.linalg.norm(true)
    assert fit.certificate.verify().startswith("feasible")
    massless = [i for i, b in enumerate(fit.robot.bodies) if b.massless]
    assert not fit.delta[fit.robot.inertial_columns[massless]].any()
    return fit, test


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_fit_predicts_as_well_as_the_true_parameters_also_when_it_was_saved(name, tmp_path):
    fit, test = tried(name, 0)
    predicted = fit.predict(test)
    assert list(predicted.columns) == [f"tau_{j}" for j in fit.robot.coordinates]
    fit.save(tmp_path / "one.feasid")
    saved = feasid.load(tmp_path / "one.feasid")
    np.testing.assert_allclose(saved.predict(test), predicted, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("bonds", [STIFF, SOFT], ids=["stiff", "soft"])
@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_fit_predicts_as_well_on_every_seed(name, seed, bonds):
    tried(name, seed, bonds)


def test_a_loop_that_cannot_turn_fully_is_diagnosed():
    """Its driven joint swings between two singular configurations."""
    parts = ([0, 0, 0], [0.2, 0, 0], [0.35, 0, 0])
    bodies = [
        feasid.Body(str(k), str(k - 1) if k > 1 else None, position=at, inertial=BAR)
        for k, at in enumerate(parts, start=1)
    ]
    loop = feasid.Loop("tip", "3", None, [0.3, 0, 0], [0.4, 0, 0])
    start = {"1": 1.2, "2": -0.8, "3": -1.4}
    robot = feasid.Robot(bodies, (0, -9.81, 0)).with_loops([loop], ["2"], start)
    t = np.arange(0, 4, 0.01)
    q = start["2"] + 0.2 * np.sin(2 * t) + 0.1 * np.sin(5 * t)
    dq, ddq = 0.4 * np.cos(2 * t) + 0.5 * np.cos(5 * t), -0.8 * np.sin(2 * t) - 2.5 * np.sin(5 * t)
    tau = feasid.inverse_dynamics(robot, *(x[:, None] for x in (q, dq, ddq)))[:, 0]
    noise = np.random.default_rng(0).standard_normal((2, len(t)))
    log = pd.DataFrame({"t": t, "q_2": q + 1e-5 * noise[0], "tau_2": tau + 0.01 * noise[1]})
    found = feasid.diagnose(log, robot)
    assert [f.code for f in found if f.level != "note"] == []
    assert "excitation" in [f.code for f in found]
