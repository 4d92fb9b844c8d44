"""Coupled and closed mechanisms identified from forward simulations by MuJoCo.

Torques are measured at the motors only, with 2 % noise; the constraints of the simulation are
stiff springs, those of the model are exact.
"""

import numpy as np
import pytest
from closed import MECHANISMS, simulate
from thorough import some

import feasid

WORSE = 1.3  # times the error of the true parameters on a log that was not fitted
AMPLITUDE = {"leg": 0.12}
SECONDS = {"leg": 12.0}  # it moves so little that four seconds of noise show in its parameters


def tried(name, seed, seconds=4.0):
    text = MECHANISMS[name]
    robot = feasid.load_robot(text)
    amplitude = AMPLITUDE.get(name, 0.25)
    log, test = (
        simulate(text, robot, 100 * k + seed, seconds, amplitude=amplitude) for k in (0, 1)
    )
    fit = feasid.fit(log, robot, friction=(), diagnose=False)
    reduced = feasid.reduce(test, fit.description, base=fit.base)
    true = reduced.residuals(fit.base.values(robot.values)) / reduced.torque_norms
    found = reduced.residuals(fit.beta) / reduced.torque_norms
    assert np.linalg.norm(found) <= WORSE * np.linalg.norm(true)
    assert fit.certificate.verify().startswith("feasible")
    massless = [i for i, b in enumerate(robot.bodies) if b.massless]
    assert not fit.delta[robot.inertial_columns[massless]].any()
    return fit, test


@pytest.mark.parametrize("name", some(MECHANISMS, "coupled wrist"))
def test_a_fit_predicts_as_well_as_the_true_parameters_also_when_it_was_saved(name, tmp_path):
    fit, test = tried(name, 0)
    predicted = fit.predict(test)
    assert list(predicted.columns) == [f"tau_{j}" for j in fit.robot.coordinates]
    fit.save(tmp_path / "one.feasid")
    saved = feasid.load(tmp_path / "one.feasid")
    np.testing.assert_allclose(saved.predict(test), predicted, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 10))
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_fit_predicts_as_well_on_every_seed(name, seed):
    tried(name, seed, SECONDS.get(name, 4.0))
