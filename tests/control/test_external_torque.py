"""External torques by the momentum observer, and the rate of its false alarms."""

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from logs import arm_parameters, simulate, values_for
from robots import ARM

import feasid
from feasid.applications.control.external_torque import LiveSignals
from feasid.core.errors import InputError
from feasid.identification.assessment.contact_errors import GAIN, ErrorLaw, observer_errors
from feasid.logs.motion import Run
from feasid.results.codegen.algorithms import Algorithms
from feasid.results.codegen.expression import Graph
from feasid.results.codegen.routine import Routine, python_function
from feasid.robot.dynamics.floating import frame_jacobian

RATE = 500.0
"""Of the observer [Hz]."""

BETWEEN_SAMPLES = 1e-3
"""Relative: torques between samples are taken to be straight lines."""


@pytest.fixture(scope="module")
def fit():
    robot = feasid.load_robot(ARM)
    plain, driven = robot.with_joint_terms(), robot.with_joint_terms(drive_inertia=True)
    delta = values_for(driven, plain.with_values(arm_parameters(plain)), 0.2)
    log = simulate(driven, delta, 1, samples=1500, noise=0.02)
    return feasid.fit(log, robot, drive_inertia=True, diagnose=False)


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
    (jacobian,) = frame_jacobian(fit.robot, found.q, link, np.zeros(3))
    shown = np.linalg.pinv(jacobian.T) @ found.torque
    np.testing.assert_allclose(jacobian.T @ wrench, jacobian.T @ shown, atol=1e-9)
    with pytest.raises(InputError, match="no moving body or link"):
        found.wrench("nothing")


def test_the_written_code_is_the_step_that_runs(fit, tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    feasid.ExternalTorque(fit, RATE).export_c(tmp_path / "arm.c")
    (tmp_path / "main.c").write_text(
        '#include "arm.h"\n#include <stdio.h>\n'
        'int main(void) { printf("%g", arm_self_test()); return 0; }'
    )
    command = ["cc", "-std=c99", "arm.c", "main.c", "-o", "arm", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    out = subprocess.run(["./arm"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert float(out.stdout) < 1e-12


def alarms(observer, run, share=1.0):
    """How often some joint begins to be beyond a share of its threshold, by a robot's samples."""
    q, dq = (run.q, run.dq) if run.live is None else run.live  # the noise counts in thresholds
    found = [observer.update(*row) for row in zip(run.t, q, dq, run.tau, strict=True)]
    beyond = np.array([np.abs(f.torque) > share * f.threshold for f in found])
    return int(np.sum(beyond[1:] & ~beyond[:-1]))


WIDER = 2.0
"""How many times wider thresholds may be than their promise needs."""


@pytest.mark.parametrize("expected", [40, 150])
def test_a_log_that_was_not_fitted_alarms_at_most_as_often_as_promised(fit, expected):
    log = simulate(fit.robot, fit.robot.values, 2, samples=3000, noise=0.02)
    (run,) = feasid.Recording.from_source(log).motion(fit.robot, **fit.test_options()).runs
    promised = expected * run.rate / len(run)
    observer = feasid.ExternalTorque(fit, run.rate, promised, delay=fit.torque_shift)
    assert alarms(observer, run) <= expected < alarms(observer, run, 1.0 / WIDER)


def white_run(seconds, seed):
    """White errors of two joints that move a little."""
    rng = np.random.default_rng(seed)
    rows = np.arange(round(seconds * RATE))
    still, errors = np.zeros((len(rows), 2)), rng.standard_normal((len(rows), 2))
    speed = 0.1 + 0.01 * rng.standard_normal(still.shape)
    return Run("", RATE, rows, rows / RATE, still, speed, still, still), errors, still


def test_rates_that_a_log_is_too_short_for_follow_from_its_tail():
    """Gaussian errors; 20 s give thresholds for five alarms in that time, and for one."""
    law = ErrorLaw.from_errors([white_run(20.0, 0)], GAIN, 0.0, ("a", "b"))
    seconds = 600.0
    errors, features = observer_errors(*white_run(seconds, 1), GAIN, 0.0, law.fastest)
    deviations = np.sqrt(np.sum(features * law.coefficients, axis=2))
    for rate in (0.25, 0.05):
        sizes = np.abs(errors) / deviations / law.crossing_levels(rate)
        onsets = [np.sum((sizes[1:] > u) & (sizes[:-1] <= u)) for u in (1.0, 1.0 / WIDER)]
        assert onsets[0] <= rate * seconds < onsets[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kuka_lwr4", "unitree_z1", "double_pendulum"])
@pytest.mark.parametrize("part", ["tenths", "halves"])
def test_promised_alarms_on_parts_of_packaged_logs_that_were_not_fitted(name, part):
    """At most the 100 that are promised; more with half of the thresholds."""
    log = feasid.datasets.load(name)
    parts = np.arange(len(log)) * (10 if part == "tenths" else 2) // len(log)
    fitted = parts % 2 == 1
    fit = feasid.fit(log[fitted], log.attrs["robot"], **log.attrs["options"])
    recording = feasid.Recording.from_source(log[~fitted])
    runs = recording.motion(fit.robot, **fit.test_options()).runs
    promised = 100 / sum(len(r) / r.rate for r in runs)
    observer = feasid.ExternalTorque(fit, runs[0].rate, promised, delay=fit.torque_shift)
    whole, half = (sum(alarms(observer, r, share) for r in runs) for share in (1.0, 0.5))
    assert whole <= 100 < half


class Known:
    """A fit of which something else is known than it says."""

    def __init__(self, fit, **known):
        self.fit, self.__dict__ = fit, {"fit": fit, **known}

    def __getattr__(self, name):
        return getattr(self.fit, name)


def test_velocities_of_a_log_without_them_are_in_the_unit_of_its_positions():
    robot = feasid.load_robot(ARM).with_joint_terms()
    log = simulate(robot, arm_parameters(robot), 1, samples=400, noise=0.02)
    bare = log[[c for c in log if not c.startswith(("dq_", "ddq_"))]]
    for frame, factor in ((bare, np.pi / 180), (log, 1.0)):
        frame = frame.assign(**{c: np.rad2deg(frame[c]) for c in frame if c.startswith("q_")})
        of_degrees = feasid.fit(frame, robot, units={"q": "deg"}, diagnose=False, candidates=())
        signals = LiveSignals.from_fit(of_degrees)
        np.testing.assert_allclose(signals.factors["q"], np.pi / 180)
        np.testing.assert_allclose(signals.factors["dq"], factor)


def test_a_saved_fit_has_the_same_thresholds(fit, tmp_path):
    fit.save(tmp_path / "arm.feasid")
    kept = feasid.load(tmp_path / "arm.feasid")
    own, again = (feasid.ExternalTorque(x, RATE, backend="python") for x in (fit, kept))
    np.testing.assert_allclose(again.least_push, own.least_push, rtol=1e-12)
    short = replace(kept, saved=replace(kept.saved, contact_errors=None))
    with pytest.raises(InputError, match="short: fit to a longer log"):
        short.error_law(30.0)


def test_what_the_observer_cannot_use_is_refused_by_name(fit):
    observer = feasid.ExternalTorque(fit, RATE, backend="python")
    one = np.zeros(fit.robot.dof)
    with pytest.raises(InputError, match=re.escape("dq has shape (1,)")):
        observer.update(0.0, one, [0.0], one)
    with pytest.raises(InputError, match=r"tau of joint .* is not finite"):
        observer.update(0.0, one, one, one * np.nan)
    observer.update(0.0, one, one, one)
    observer.update(1.0, one, one, one)
    assert observer.restarts == 1


def test_a_threshold_wider_than_the_rated_torque_is_said(fit):
    law = fit.error_law(GAIN)
    wide = replace(law, coefficients=1e9 * law.coefficients)
    observer = feasid.ExternalTorque(Known(fit, error_law=lambda _: wide), RATE, backend="python")
    rated = [b for b in fit.robot.bodies if b.limits.effort]
    assert len(observer.notes) == len(rated) > 0
    assert "contact there is not detected" in repr(observer)


def test_motion_beyond_the_fitted_speeds_is_said_and_widens_thresholds(fit):
    observer = feasid.ExternalTorque(fit, RATE, backend="python")
    q = np.zeros(fit.robot.dof)
    fastest = fit.error_law(GAIN).fastest
    times = np.arange(100) / RATE
    slow, fast = ([observer.update(t, q, x * fastest, q) for t in times][-1] for x in (0.1, 3.0))
    assert fast.extrapolated
    assert not slow.extrapolated
    assert np.all(fast.threshold > 2.0 * slow.threshold)


@pytest.mark.parametrize("late", [0.0, 1.5e-3])
def test_the_running_observer_has_the_errors_and_deviations_of_its_law(fit, late):
    """Torques with noise, behind the motion: what comes out is what was counted on the log."""
    observer = feasid.ExternalTorque(fit, RATE, backend="python", delay=late)
    t = np.arange(500) / RATE
    q, dq, ddq = motion(fit.robot, t)
    tau = feasid.inverse_dynamics(fit.robot, *motion(fit.robot, t - late))
    tau += 0.1 * np.random.default_rng(0).standard_normal(q.shape)
    found = [observer.update(*row) for row in zip(t, q, dq, tau, strict=True)]
    run = Run("", RATE, np.arange(len(t)), t, q, dq, ddq, tau)
    law = observer.model.law
    off = tau - feasid.inverse_dynamics(fit.robot, q, dq, ddq)
    counted = observer_errors(run, off, 0 * off, GAIN, late, law.fastest)
    errors, features = (x[-250:] for x in counted)
    torque, threshold = (
        np.array([getattr(f, name) for f in found])[-250:] for name in ("torque", "threshold")
    )
    assert np.abs(torque + errors).max() < BETWEEN_SAMPLES * np.abs(torque).max()
    deviations = np.sqrt(np.einsum("nkf,kf->nk", features, law.coefficients))
    widened = np.maximum(1.0, features[:, 0, 3] ** 0.5 / law.most)
    expected = observer.model.levels * deviations * widened[:, None]
    np.testing.assert_allclose(threshold, expected, rtol=1e-9)


def test_an_observer_that_starts_in_motion_feels_no_push(fit):
    observer = feasid.ExternalTorque(fit, RATE, backend="python", delay=0.0)
    for _ in range(2):
        _, found = replay(observer, fit.robot, np.zeros(3), 0.3)
        torque = np.array([f.torque for f in found])
        assert np.abs(torque).max() < BETWEEN_SAMPLES * observer.least_push.min()
    assert observer.restarts == 1


def test_the_least_push_is_the_threshold_where_nothing_depends_on_the_motion(fit):
    law = fit.error_law(GAIN)
    steady = replace(law, coefficients=law.coefficients * [1.0, 0.0, 0.0, 0.0])
    observer = feasid.ExternalTorque(Known(fit, error_law=lambda _: steady), RATE, backend="python")
    found = observer.update(0.0, *np.zeros((3, fit.robot.dof)))
    np.testing.assert_allclose(observer.least_push, found.threshold, rtol=1e-12)
