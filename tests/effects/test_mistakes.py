"""What is taken out of a log is what a log with that mistake has too much."""

from types import SimpleNamespace

import numpy as np
import pytest
from robots import random_robot

import feasid
from feasid.identification.effects.corrections import LogCorrection, corrected_options
from feasid.identification.effects.log_findings import in_log_columns
from feasid.identification.effects.score import without_negative_part
from feasid.identification.effects.table import EFFECTS, Around, EffectAt, horizontal_axes
from feasid.logs.checks.findings import Finding
from feasid.logs.motion import Run
from feasid.robot.joint_terms import FURTHER_FRICTION

RNG = np.random.default_rng(0)
ROBOT = random_robot(RNG, 4)
Q, DQ, DDQ = RNG.normal(size=(3, 5, 4))
ROUNDING = 1e-12
STEP = 1e-5

FIRST_ORDER = 0.05
"""Share by which columns of a tilt may differ from its derivatives: they turn with half the angle,
which is .05 rad at most here."""


def correction(**values):
    """Of mistakes by kind: values by joint, or of the robot."""
    return LogCorrection(
        {
            EffectAt(kind.replace("_", "-"), joint): np.atleast_1d(value)
            for kind, given in values.items()
            for joint, value in (given.items() if isinstance(given, dict) else [(-1, given)])
        }
    )


def test_a_robot_with_corrected_zeros_has_the_torques_of_the_true_positions():
    zeros = {1: 0.2, 3: -0.1}
    true = Q.copy()
    for joint, zero in zeros.items():
        true[:, joint] += zero
    found = feasid.regressor(correction(zero=zeros).correct_robot(ROBOT), Q, DQ, DDQ)
    np.testing.assert_allclose(found, feasid.regressor(ROBOT, true, DQ, DDQ), atol=1e-10)


@pytest.mark.parametrize("gravity", [(0, 0, -9.81), (0, -9.81, 0), (1.0, -2.0, 3.0)])
def test_a_tilt_turns_gravity_about_horizontal_axes(gravity):
    axes = horizontal_axes(gravity)
    np.testing.assert_allclose(axes @ axes.T, np.eye(2), atol=ROUNDING)
    np.testing.assert_allclose(axes @ gravity, 0.0, atol=ROUNDING)
    found = correction(tilt=[0.3, -0.4]).correct_robot(ROBOT.with_gravity(gravity)).gravity
    size = np.linalg.norm(gravity)
    assert found @ gravity == pytest.approx(np.cos(0.5) * size**2)
    moved = np.cross([0.3, -0.4] @ axes, gravity) * np.sin(0.5) / 0.5
    np.testing.assert_allclose(found - found @ gravity / size**2 * np.array(gravity), moved)


@pytest.mark.parametrize("gravity", [(0, 0, -9.81), (0, 9.81, 0), (-6.94, 0, -6.94)])
@pytest.mark.parametrize("angles", [(0.05, -0.01), (0.01, -0.05), (-0.03, 0.03)])
def test_columns_of_a_tilt_are_its_derivatives_at_any_tilt(gravity, angles):
    """Horizontal axes of a gravity that is tilted already are exchanged in half of all cases."""
    robot = ROBOT.with_values(np.random.default_rng(1).normal(size=ROBOT.size))
    upright, rigid = robot.with_gravity(gravity), robot.without_joint_terms()

    def weight(tilt):
        down = correction(tilt=tilt).correct_robot(upright).gravity
        return feasid.inverse_dynamics(rigid.with_gravity(down), Q, 0 * Q, 0 * Q)

    moves = STEP * np.eye(2)
    wanted = [(weight(angles + m) - weight(angles - m)).T / (2 * STEP) for m in moves]
    down = correction(tilt=angles).correct_robot(upright).gravity
    part = SimpleNamespace(run=SimpleNamespace(q=Q), decimate=np.asarray, filter_smooth=np.asarray)
    around = Around(None, part, EffectAt("tilt"), robot.with_gravity(down), None, upright.gravity)
    columns = EFFECTS["tilt"].columns(around)
    assert np.linalg.norm(columns - wanted) < FIRST_ORDER * np.linalg.norm(wanted)


def test_torques_are_put_on_time_and_in_their_unit():
    t = np.arange(200) / 100.0
    phase = np.outer(t, [1.0, 2.0])
    run = Run("", 100.0, np.arange(200), t, *np.zeros((3, 200, 2)), np.sin(phase))
    found = correction(delay=0.02, joint_delay={1: 0.03}, gain={0: np.log(1.5)})
    assert found.shifts_torques
    mended = found.correct_run(run, ROBOT).tau
    late = np.sin(phase + np.array([0.02, 2 * 0.05]))  # what stands there was so much later
    np.testing.assert_allclose(mended[:-6], (late / [1.5, 1.0])[:-6], atol=1e-3)  # straight lines
    assert not correction(zero={0: 0.1}).shifts_torques
    assert correction(zero={0: 0.1}).correct_run(run, ROBOT) is run


def test_other_logs_are_read_with_the_gains_and_the_delay_that_were_found():
    options = {"units": {"tau_b1": 2.0, "q": "deg"}, "delay": 0.01, "cutoff": 5.0}
    found = correction(gain={1: 0.3, 2: -0.2}, delay=0.004, zero={0: 0.1})
    out = corrected_options(options, found, ROBOT)
    assert out["units"]["tau_b1"] == pytest.approx(2.0 * np.exp(-0.3))
    assert out["units"]["tau_b2"] == pytest.approx(np.exp(0.2))
    assert out["delay"] == pytest.approx(0.006)
    assert (out["units"]["q"], out["cutoff"]) == ("deg", 5.0)
    assert options["units"] == {"tau_b1": 2.0, "q": "deg"}
    assert corrected_options({}, correction(zero={0: 0.1}), ROBOT) == {}


def test_friction_of_cold_joints_fades_with_its_time_constant():
    t = np.array([0.0, 5.0, 10.0, 1000.0])
    dq = np.array([[1.0, -0.5], [1.0, 0.0], [-1.0, 0.5], [1.0, 1.0]])
    zeros = np.zeros((4, 2))
    run = Run("", 1.0, np.arange(4), t, zeros, dq, zeros, zeros + 7.0)
    cold = LogCorrection({EffectAt("warm-up", 1, 5.0): np.array([0.3, 0.2])})
    found = cold.correct_run(run, ROBOT).tau
    np.testing.assert_array_equal(found[:, 0], 7.0)
    dry, viscous = 0.3 * np.sign(dq[:, 1]), 0.2 * dq[:, 1]
    np.testing.assert_allclose(found[:, 1], 7.0 - np.exp(-t / 5.0) * (dry + viscous), rtol=1e-9)
    assert not cold.shifts_torques
    assert corrected_options({}, cold, ROBOT) == {}


def test_steps_are_limited_and_stay_with_their_mistakes():
    tilt, zero = EffectAt("tilt"), EffectAt("zero", 2)
    start = LogCorrection({zero: np.array([0.1])})
    found = start.add_step([tilt, zero], np.array([0.01, -9.0, 0.05]))
    limit = EFFECTS["tilt"].limit
    np.testing.assert_allclose(found.parameters_of([zero, tilt]), [0.15, 0.01, -limit])
    assert found.parameters_of([]).shape == (0,)
    assert found.values_by_joint("zero") == {2: pytest.approx(0.15)}
    assert start.parameters_of([tilt, zero]).tolist() == [0.0, 0.0, 0.1]


def test_every_effect_says_in_which_log_it_is_and_how_it_enters():
    assert {e.kind for e in EFFECTS.values()} == {"sensor", "term", "feature"}
    assert all(e.name == name and e.text for name, e in EFFECTS.items())
    of_log = {name for name, e in EFFECTS.items() if e.of_log}
    assert of_log == {"delay", "joint-delay", "gain", "warm-up", "drift"}
    words = [e.terms for e in EFFECTS.values() if e.kind == "term" and e.name != "abrupt"]
    assert {w for own in words for w in own} == {*FURTHER_FRICTION, "ripple"}
    assert all(e.name != "abrupt" or not e.terms for e in EFFECTS.values())


def test_remedies_are_on_top_of_what_was_given():
    way = {"units": {"tau_1": -1.0}, "offsets": {"1": 0.5, "2": 0.25}}
    finding = Finding("sign", "error", "", options=way, values={"ways": (way,)})
    given = {"units": {"tau_1": 1e-3, "q_1": "deg"}, "offsets": {"1": 0.125}}
    found = in_log_columns(finding, None, given)
    expected = {"units": {"tau_1": -1e-3}, "offsets": {"1": 0.625, "2": 0.25}}
    assert found.options == found.values["ways"][0] == expected
    assert in_log_columns(finding, None, {}).options == way


def test_a_difference_of_large_matrices_keeps_what_is_not_rounding():
    whole = RNG.normal(size=(6, 3))
    positive = whole @ whole.T
    left = positive - 1e-9 * np.eye(6)  # three eigenvalues are below zero
    found = without_negative_part(left)
    assert np.linalg.eigvalsh(found)[0] >= -ROUNDING
    np.testing.assert_allclose(found, positive, atol=1e-8)
