"""Controls of MuJoCo's actuators as torques."""

import numpy as np
import pytest

import feasid
from feasid.core.errors import DescriptionError, LogError
from feasid.identification.effects.log_findings import check_columns
from feasid.logs.recording import read_signals

pytest.importorskip("mujoco")

from recorded import ACTUATED, simulated


def without(log, *kinds):
    return log[[c for c in log if c.split("_")[0] not in kinds]]


def test_controls_are_torques_exactly():
    model, log = simulated(seconds=3.0)
    for robot in (feasid.load_robot(model), feasid.load_robot(ACTUATED)):
        got = read_signals(feasid.Recording(without(log, "tau")), robot).values["tau"]
        np.testing.assert_array_equal(got, log[["tau_a", "tau_b"]])


def test_torques_of_controls_are_no_sensors_that_clip():
    """The first actuator is at its limit for an eighth of the time."""
    model, log = simulated(seconds=3.0)
    robot, recording = feasid.load_robot(model), feasid.Recording(without(log, "tau", "dq"))
    assert check_columns(recording, robot, {}).findings == ()


def test_a_log_of_controls_is_fitted_as_that_of_torques():
    model, log = simulated()
    robot = feasid.load_robot(model)
    options = {"diagnose": False, "candidates": (), "prior_weight": 1.0}
    by_torque = feasid.fit(without(log, "dq", "ctrl"), robot, **options)
    by_control = feasid.fit(without(log, "dq", "tau"), robot, **options)
    test = without(log, "dq", "ctrl")
    errors = [fit.errors(test)["all"] for fit in (by_control, by_torque)]
    assert errors[0] < 1.3 * errors[1]
    assert "controls" in {n.code for n in by_control.notes}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('kp="30" kv="2"', 'kp="30" kv="2" timeconst="0.1"'), "'A' has dyntype"),
        (('<general name="B"', '<general name="B" gaintype="user"'), "'B' has gaintype user"),
        (('<general name="B"', '<general name="B" biastype="user" group="1"'), "'B' has biastype"),
    ],
)
def test_forces_that_no_row_tells_are_refused(change, said):
    text = ACTUATED.replace(*change)
    text = text.replace('biastype="affine" ', "") if 'biastype="user"' in text else text
    _, log = simulated(seconds=1.0)
    with pytest.raises(DescriptionError, match=said):
        read_signals(feasid.Recording(without(log, "tau")), feasid.load_robot(text))


def test_controls_that_a_log_lacks_are_named():
    model, log = simulated(seconds=1.0)
    robot = feasid.load_robot(model)
    with pytest.raises(LogError, match="'ctrl_B'"):
        read_signals(feasid.Recording(without(log, "tau").drop(columns="ctrl_B")), robot)
    names = {"ctrl_A": "ctrl_0", "ctrl_B": "ctrl_1", "q_a": "q_0", "q_b": "q_1"}
    got = read_signals(feasid.Recording(without(log, "tau", "dq").rename(columns=names)), robot)
    same = read_signals(feasid.Recording(without(log, "tau", "dq")), robot)
    np.testing.assert_array_equal(got.values["tau"], same.values["tau"])
    shuffled = without(log, "tau", "dq").sample(frac=1.0, random_state=0)
    got = read_signals(feasid.Recording(shuffled), robot)
    np.testing.assert_allclose(got.values["tau"], same.values["tau"][shuffled.index], atol=1e-9)
    log.loc[3, "ctrl_A"] = np.nan
    with pytest.raises(LogError, match="row 3"):
        read_signals(feasid.Recording(without(log, "tau")), robot)
