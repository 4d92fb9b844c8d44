"""External torques by the momentum observer, and the rate of its false alarms."""

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from logs import arm_parameters, simulate
from robots import ARM
from scipy.ndimage import gaussian_filter1d
from scipy.signal import lfilter

import feasid
from feasid.codegen.algorithms import Algorithms
from feasid.codegen.expression import Graph
from feasid.codegen.routine import Routine, python_function
from feasid.control.external_torque import alarm_rate, thresholds
from feasid.errors import InputError
from feasid.identification.noise import Noise
from feasid.reduction.equations import HALF_GAIN

RATE, CUTOFF = 500.0, 8.0
"""Of the observer, and of the low-pass of the fitted equations [Hz]."""


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    path = tmp_path_factory.mktemp("observer") / "arm.urdf"
    path.write_text(ARM)
    robot = feasid.load_robot(path).with_joint_terms(drive_inertia=True)
    delta = arm_with_drives(robot)
    log = simulate(robot, delta, 1, samples=1500, noise=0.02)
    return feasid.fit(log, feasid.load_robot(path), drive_inertia=True, diagnose=False)


def arm_with_drives(robot):
    plain = robot.with_joint_terms()
    known = dict(zip(plain.parameter_names, arm_parameters(plain), strict=True))
    return np.array([known.get(name, 0.2) for name in robot.parameter_names])


def motion(robot, t):
    """Smooth positions with their derivatives, shapes (samples, dof)."""
    w = 1.0 + 0.7 * np.arange(robot.dof)
    phase = np.outer(t, w)
    return np.sin(phase), np.cos(phase) * w, -np.sin(phase) * w**2


def test_the_rate_of_the_momentum_is_that_of_inverse_dynamics(fit):
    robot = fit.robot
    graph = Graph()
    q, dq = (graph.inputs(name, robot.dof) for name in ("q", "dq"))
    still = [graph.as_expression(0.0)] * robot.dof
    delta = [graph.as_expression(float(x)) for x in robot.values]
    outputs = [y for part in Algorithms(graph, robot, delta, q, dq, still).momentum() for y in part]
    inputs = (("q", robot.dof), ("dq", robot.dof))
    function = python_function(Routine("momentum", inputs, tuple(outputs)))
    h, times = 1e-5, np.linspace(0.2, 3.0, 7)

    def both(t):
        q, dq, _ = motion(robot, np.array([t]))
        return np.array(function(q[0].tolist(), dq[0].tolist())).reshape(2, -1)

    for t in times:
        q, dq, ddq = motion(robot, np.array([t]))
        momentum, rate = both(t)
        still = robot.with_gravity((0, 0, 0)).without_joint_terms()
        armature = [robot.values[robot.drive_columns(k)["Ia"]] for k in range(robot.dof)]
        right = feasid.inverse_dynamics(still, q, 0 * dq, dq)[0] + armature * dq[0]
        np.testing.assert_allclose(momentum, right, rtol=1e-10, atol=1e-12)
        change = (both(t + h)[0] - both(t - h)[0]) / (2 * h)
        torque = feasid.inverse_dynamics(robot, q, dq, ddq)[0]
        np.testing.assert_allclose(change, torque + rate, rtol=1e-6, atol=1e-7)


def replay(observer, robot, push, seconds=2.0):
    """What the observer sees of a motion on which a torque acts from outside from 1 s on."""
    t = np.arange(round(seconds * RATE)) / RATE
    q, dq, ddq = motion(robot, t)
    tau = feasid.inverse_dynamics(robot, q, dq, ddq) - np.outer(t >= 1.0, push)
    return t, [observer.update(*row) for row in zip(t, q, dq, tau, strict=True)]


@pytest.mark.parametrize("backend", ["c", "python"])
def test_a_push_is_seen_behind_a_low_pass_of_the_gain(fit, backend):
    if backend == "c" and not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.skip("no C compiler")
    observer = feasid.ExternalTorque(fit, RATE, backend=backend, gain=25.0)
    push = 20.0 * observer.least_push * np.array([1.0, -1.0, 0.0])
    t, found = replay(observer, fit.robot, push)
    torque = np.array([f.torque for f in found])
    ideal = np.outer(np.where(t >= 1.0, -np.expm1(-25.0 * (t - 1.0)), 0.0), push)
    # A push begins between two samples.
    assert np.abs(torque - ideal).max() < 0.04 * np.abs(push).max()
    assert not any(f.contact for f in found[: round(RATE)])
    assert found[-1].contact
    assert list(found[-1].joints) == [True, True, False]


def test_a_wrench_explains_the_torques_through_its_jacobian(fit):
    observer = feasid.ExternalTorque(fit, RATE, backend="python")
    found = observer.update(0.0, *np.zeros((3, fit.robot.dof)))
    link = fit.robot.bodies[-1].name
    object.__setattr__(found, "torque", np.array([0.3, -0.2, 0.1]))
    wrench = found.wrench(link)
    jacobian = feasid.dynamics.floating.frame_jacobian(fit.robot, found.q, link, np.zeros(3))[0]
    np.testing.assert_allclose(
        jacobian.T @ wrench, jacobian.T @ np.linalg.pinv(jacobian.T) @ found.torque, atol=1e-9
    )
    with pytest.raises(InputError, match="no moving body or link"):
        found.wrench("nothing")


def test_the_written_code_is_the_step_that_runs(fit, tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    observer = feasid.ExternalTorque(fit, RATE)
    observer.to_c(tmp_path / "arm.c")
    (tmp_path / "main.c").write_text(
        '#include "arm.h"\n#include <stdio.h>\n'
        'int main(void) { printf("%g", arm_self_test()); return 0; }'
    )
    command = ["cc", "-std=c99", "arm.c", "main.c", "-o", "arm", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    out = subprocess.run(["./arm"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert float(out.stdout) < 1e-12


class Known:
    """A fit whose noise and covariance are given; `quick` is the variance behind its low-pass."""

    def __init__(self, fit, quick, covariance):
        self.robot, self.base = fit.robot, fit.base
        self.reduced = replace(fit.reduced, cutoff=CUTOFF)
        dof = fit.robot.dof
        self.delay, self.log_options = 0.0, {}
        self.noise = Noise(quick * np.ones(dof), np.zeros(dof), np.ones(dof))
        self.covariance = covariance


def test_white_noise_alarms_as_often_as_promised(fit):
    """Onsets of contact by the noise of the fit's model; two a second, 600 expected."""
    seconds, alarms, gain = 300.0, 2.0, 30.0
    rng = np.random.default_rng(0)
    white = rng.standard_normal((round(seconds * RATE), fit.robot.dof))
    width = HALF_GAIN / CUTOFF * RATE
    variance = float(np.mean(gaussian_filter1d(white, width, axis=0) ** 2))
    known = Known(fit, variance, np.zeros_like(fit.covariance))
    limit = np.sqrt(thresholds(known, RATE, gain, alarms)[0])
    follow = gain / RATE / (1 + gain / RATE)
    beyond = np.abs(lfilter([follow], [1.0, follow - 1.0], white, axis=0)) > limit
    onsets = int(np.sum(beyond[1:] & ~beyond[:-1]))
    assert 0.5 * seconds * alarms < onsets < 2.0 * seconds * alarms


def test_what_the_observer_cannot_use_is_refused_by_name(fit):
    for bad in ("often", "1/fortnight", "1//hour", "0/hour", -1.0):
        with pytest.raises(InputError, match="false_alarms"):
            alarm_rate(bad)
    assert alarm_rate("2 / minute") == pytest.approx(1 / 30)
    observer = feasid.ExternalTorque(fit, RATE, backend="python")
    one = np.zeros(fit.robot.dof)
    with pytest.raises(InputError, match=re.escape("dq has shape (1,)")):
        observer.update(0.0, one, [0.0], one)
    with pytest.raises(InputError, match=r"tau of joint .* is not finite"):
        observer.update(0.0, one, one, one * np.nan)
    observer.update(0.0, one, one, one)
    observer.update(1.0, one, one, one)
    assert observer.restarts == 1
    with pytest.raises(InputError, match="than the noise has maxima"):
        feasid.ExternalTorque(fit, RATE, 1e4)


def test_a_threshold_wider_than_the_rated_torque_is_said(fit):
    observer = feasid.ExternalTorque(Known(fit, 1e9, fit.covariance), RATE, backend="python")
    rated = [b for b in fit.robot.bodies if b.limits.effort]
    assert len(observer.notes) == len(rated) > 0
    assert "contact there is not detected" in repr(observer)
