"""The controller's torques are the library's, finite and within limits whatever comes in."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from arms import panda, path_of, ur5

import feasid
from feasid.core.errors import InputError

BACKENDS = ["python", pytest.param("c", marks=pytest.mark.skipif(
    shutil.which("cc") is None, reason="no C compiler"))]  # fmt: skip

ROUNDING = 1e-11
"""Relative: base parameters in place of standard ones, and a solve with a mass matrix."""


@pytest.fixture(scope="module", params=BACKENDS)
def control(request):
    return feasid.ComputedTorque(panda(), backend=request.param)


def motion(seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (3, 7))


def test_torques_are_those_of_the_model(control):
    q, dq, ddq = motion()
    expected = feasid.inverse_dynamics(panda(), q, dq, ddq)[0]
    np.testing.assert_allclose(control.torque(q, dq, ddq), expected, rtol=ROUNDING, atol=ROUNDING)
    assert control.torque([*q], [*dq], [*ddq]).tolist() == control.torque(q, dq, ddq).tolist()


def test_the_commanded_acceleration_is_that_of_the_plant():
    """Pinocchio's forward dynamics under the controller's torque, with the controller's model."""
    pin = pytest.importorskip("pinocchio")
    robot = ur5()
    q, dq, alpha = np.random.default_rng(1).uniform(-1, 1, (3, robot.dof))
    tau = feasid.ComputedTorque(robot, effort=[1e6] * robot.dof, backend="python").torque(
        q, dq, alpha
    )
    plant = pin.buildModelFromUrdf(str(path_of("ur5_robot")))
    acceleration = pin.aba(plant, plant.createData(), q, dq, tau)
    np.testing.assert_allclose(acceleration, alpha, atol=1e-9)


def test_parts_add_up(control):
    q, dq, ddq = motion(1)
    whole = control.inverse_dynamics(q, dq, ddq)
    bias = control.inverse_dynamics(q, dq, 0 * q)
    M = control.mass_matrix(q)
    np.testing.assert_allclose(M @ ddq + bias, whole, atol=ROUNDING * 100)
    np.testing.assert_allclose(M, M.T, atol=ROUNDING)
    assert np.linalg.eigvalsh(M)[0] > 0
    np.testing.assert_allclose(control.forward_dynamics(q, dq, whole), ddq, atol=ROUNDING * 1e3)
    np.testing.assert_allclose(control.gravity(q), control.inverse_dynamics(q, 0 * q, 0 * q))
    damping = [panda().values[panda().drive_columns(k)["fv"]] for k in range(7)]
    np.testing.assert_allclose(control.friction(q, dq), damping * dq, atol=ROUNDING)


def test_torques_stay_within_the_limits_of_the_description(control):
    q, dq, _ = motion(2)
    wild = control.torque(q, dq, np.full(7, 1e9))
    effort = [b.limits.effort for b in panda().bodies]
    assert np.abs(wild).tolist() == effort


def test_joints_without_a_limit_are_not_limited():
    bodies = [replace(b, limits=replace(b.limits, effort=None)) for b in panda().bodies[:3]]
    robot = replace(panda(), bodies=(*bodies, *panda().bodies[3:]))
    push = np.full(7, 1e9)
    torque = feasid.ComputedTorque(robot, backend="python").torque(*motion(2)[:2], push)
    free = feasid.inverse_dynamics(panda(), *motion(2)[:2], push)[0]
    np.testing.assert_allclose(torque[:3], free[:3])
    assert np.abs(torque[3:]).tolist() == [b.limits.effort for b in panda().bodies[3:]]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("joint", range(7))
def test_torques_are_always_finite_and_within_limits(control, bad, which, joint):
    """Not finite: the arm is held where it last was; the first joint's own angle is never used."""
    inputs = motion(3)
    control.torque(*inputs)
    refused = control.refused
    inputs[which, joint] = bad
    torque = control.torque(*inputs)
    assert np.isfinite(torque).all()
    assert (np.abs(torque) <= [b.limits.effort for b in panda().bodies]).all()
    if not np.isfinite(bad):
        assert control.refused == refused + 1
        np.testing.assert_allclose(torque, control.gravity(motion(3)[0]))


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("joint", [0, 2])  # no torque depends on where the first one is
def test_a_first_call_that_is_not_finite_is_refused_by_name(which, joint):
    """No call before says where the arm could be held, and no torque would drop it."""
    control = feasid.ComputedTorque(ur5(), backend="python")
    inputs = np.zeros((3, 6))
    inputs[which, joint] = np.nan
    name = ("q", "dq", "ddq")[which]
    with pytest.raises(InputError, match=rf"{name} of {ur5().joints[joint]} is not finite"):
        control.torque(*inputs)
    assert control.refused == 1
    expected = control.torque(*np.zeros((3, 6)))
    np.testing.assert_allclose(control.torque(*inputs), expected)
    assert control.refused == 2


@pytest.mark.parametrize("wrong", [np.zeros(5), [0.0], 0.0, np.zeros((1, 6)), [0.0] * 7])
def test_inputs_of_another_shape_are_refused_by_name(control, wrong):
    count = control.robot.dof
    if np.shape(wrong) == (count,):
        wrong = [*wrong, 0.0]
    for which, name in enumerate(("q", "dq", "ddq")):
        inputs = [np.zeros(count)] * 3
        inputs[which] = wrong
        with pytest.raises(InputError, match=f"^{name} has shape"):
            control.torque(*inputs)


def test_other_parameters_can_be_used(control):
    q, dq, ddq = motion(4)
    before, beta = control.torque(q, dq, ddq), control.beta
    control.use(2 * beta)
    np.testing.assert_allclose(control.inverse_dynamics(q, dq, ddq), 2 * before)
    control.use(beta)
    assert control.torque(q, dq, ddq).tolist() == before.tolist()
    for wrong in (beta[:-1], np.where(beta > 0, np.nan, beta)):
        with pytest.raises(feasid.FeasidError, match=r"beta must be .*finite"):
            control.use(wrong)


def test_results_are_not_overwritten_by_the_next_call(control):
    q, dq, ddq = motion(5)
    first = control.torque(q, dq, ddq)
    kept = first.copy()
    control.torque(dq, q, ddq)
    assert first.tolist() == kept.tolist()


@pytest.mark.skipif(shutil.which("false") is None, reason="no command that fails")
def test_a_compiler_that_fails_is_done_without_unless_it_was_asked_for(monkeypatch):
    monkeypatch.setenv("CC", "false")
    assert feasid.ComputedTorque(ur5()).backend == "python"
    with pytest.raises(feasid.FeasidError, match="could not compile"):
        feasid.ComputedTorque(ur5(), backend="c")


def test_options_are_checked():
    with pytest.raises(feasid.FeasidError, match=r"backend must.*mean 'python'"):
        feasid.ComputedTorque(ur5(), backend="pyton")
    for wrong in ([1, 2], [1.0] * 5 + [0.0], [-1.0] * 6):
        with pytest.raises(feasid.FeasidError, match="effort must be 6 positive numbers"):
            feasid.ComputedTorque(ur5(), effort=wrong, backend="python")
    own = feasid.ComputedTorque(ur5(), effort=[1.0] * 6, backend="python")
    assert np.abs(own.torque([0.3] * 6, [0] * 6, [9.0] * 6)).max() == 1.0
