"""A worker thread learns what the caller would have learnt, and the caller never waits for it."""

import gc
import os
import threading
import warnings

import numpy as np
import pytest
from arms import short_panda
from logs import waves
from valkyrie import AdaptiveControl

import feasid

RATE = 200.0
WAIT = 30.0
"""Seconds after which a thread that should go on has hung."""

BASE = short_panda()[1]


def log(samples, seed=0):
    """A motion of a robot heavier than described, with noise; a load comes half-way."""
    rng = np.random.default_rng(seed)
    model = BASE.robot
    truth = np.where(np.isnan(model.values), 0.3, model.values)
    truth[model.inertial_columns] *= 1.3
    t = np.arange(samples) / RATE
    rates, shares = 2 * np.pi * rng.uniform(0.1, 0.7, 6), rng.uniform(-0.4, 0.4, (2, 6, model.dof))
    motion = waves(t, rates, *shares)
    tau = feasid.inverse_dynamics(model, *motion, parameters=truth)
    load = feasid.robot.inertia.from_mass_com_inertia(3.0, [0.0, 0.0, 0.1], 0.01 * np.eye(3))
    truth[model.inertial_columns[-1]] += load
    loaded = feasid.inverse_dynamics(model, *motion, parameters=truth)
    tau[samples // 2 :] = loaded[samples // 2 :]
    return motion[0], tau + 0.05 * rng.standard_normal(tau.shape), t


def online(**options):
    return feasid.OnlineFit(BASE.robot, RATE, **{"base": BASE, "window": 800} | options)


class Held:
    """A method of an object that waits in its thread until it is let go."""

    def __init__(self, owner, name):
        self.began, self.go = threading.Event(), threading.Event()
        method = getattr(owner, name)

        def run(*arguments):
            self.began.set()
            assert self.go.wait(WAIT)
            return method(*arguments)

        setattr(owner, name, run)


def feed(fit, q, tau, t=None):
    for k in range(len(q)):
        fit.update(q[k], tau[k], t=None if t is None else t[k])


@pytest.mark.parametrize("memory", [{}, {"window": None, "forgetting": 0.998}])
@pytest.mark.parametrize("stamps", [False, True])
def test_its_results_are_those_of_the_caller(memory, stamps):
    q, tau, t = log(4800)
    tau[700] = np.nan
    t[1500:] += 0.5
    told, found = [], []
    for worker in (False, True):
        with online(worker=worker, **memory) as fit:
            for k in range(0, 4800, 100):
                part = slice(k, k + 100)
                given = q[part], tau[part], t[part] if stamps else None
                feed(fit, *given) if k < 2400 else fit.extend(*given[:2], t=given[2])
                told.append(fit.estimate())
            found.append((fit.reduced, fit.faults, [str(c) for c in fit.changes], fit.time))
    plain, threaded = told[: len(told) // 2], told[len(told) // 2 :]
    for a, b in zip(plain, threaded, strict=True):
        assert a.delta.tobytes() == b.delta.tobytes()
        assert a.covariance.tobytes() == b.covariance.tobytes()
        assert str(a.decision) == str(b.decision)
        assert (a.time, a.rows, a.age) == (b.time, b.rows, b.age)
    for a, b in zip(found[0][0].triangles, found[1][0].triangles, strict=True):
        assert a.tobytes() == b.tobytes()
    assert found[0][1:] == found[1][1:]
    assert found[0][2]


def test_samples_are_taken_while_it_learns_until_too_many_wait():
    q, tau, _ = log(4800)
    fit = online(worker=True)
    held = Held(fit, "_learn")
    feed(fit, q[:1600], tau[:1600])  # 4 s may wait, 8 s came: no call waits, nothing grows
    assert held.began.wait(WAIT)
    assert fit.samples == 1600
    assert fit.faults == {"queue full": 800}
    held.go.set()
    estimate = fit.estimate()
    assert fit.faults == {"queue full": 800}
    feed(fit, q[1600:1650], tau[1600:1650])
    estimate = fit.estimate()
    assert fit.faults == {"queue full": 800}
    assert "75 % of the last second's samples are unusable" in " ".join(estimate.decision.reasons)
    fit.close()


def test_what_comes_after_a_gap_in_the_queue_does_not_follow_on():
    """The rows are those of two runs."""
    q, tau, _ = log(4800)
    fit, other = online(worker=True), online()
    held = Held(fit, "_learn")
    feed(fit, q[:1000], tau[:1000])
    held.go.set()
    fit.extend(q[1000:1600], tau[1000:1600])
    kept = 1000 - fit.faults["queue full"]
    other.extend(q[:kept], tau[:kept])
    other.update(np.full(4, np.nan), tau[0])  # begins a run
    other.extend(q[1000:1599], tau[1000:1599])
    assert fit.reduced.rows == pytest.approx(other.reduced.rows, abs=2)
    fit.close()


def test_many_samples_wait_for_it_and_none_is_lost():
    q, tau, _ = log(4800)
    fit, plain = online(worker=True), online()
    for one in (fit, plain):
        one.extend(q, tau)
    assert not fit.faults
    assert fit.reduced.triangles[0].tobytes() == plain.reduced.triangles[0].tobytes()
    fit.close()


def test_its_errors_reach_the_caller_at_the_next_call_once(monkeypatch):
    q, tau, _ = log(1000)
    fit = online(worker=True)
    fit.extend(q[:400], tau[:400])
    add = fit._store.add
    monkeypatch.setattr(fit._store, "add", lambda *_: np.linalg.cholesky(-np.eye(2)))
    feed(fit, q[400:450], tau[400:450])
    fit._jobs.wait()
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        fit.update(q[450], tau[450])
    monkeypatch.setattr(fit._store, "add", add)
    feed(fit, q[450:600], tau[450:600])
    assert fit.estimate().fresh
    monkeypatch.setattr(fit._store, "add", lambda *_: np.linalg.cholesky(-np.eye(2)))
    with pytest.raises(np.linalg.LinAlgError), fit:
        feed(fit, q[600:650], tau[600:650])
    feed(fit, q[650:660], tau[650:660])


def test_an_estimate_is_requested_without_waiting():
    q, tau, _ = log(1000)
    fit = online(worker=True)
    fit.extend(q, tau)
    held = Held(fit, "_solve")
    assert fit.request_estimate()
    assert not fit.request_estimate()
    assert fit.latest is None
    held.go.set()
    fit._jobs.wait()
    assert fit.latest.rows > 0
    assert fit.request_estimate()
    fit.close()
    plain = online()
    plain.extend(q, tau)
    assert [plain.request_estimate() for _ in range(2)] == [True, True]
    assert plain.latest.beta.tolist() == fit.latest.beta.tolist()


def test_its_thread_ends_and_what_comes_later_is_learnt_at_once():
    q, tau, _ = log(1000)
    before = set(threading.enumerate())
    with online(worker=True) as fit:
        fit.extend(q[:500], tau[:500])
        (thread,) = set(threading.enumerate()) - before
        assert thread.name.startswith("feasid-online")
    assert not thread.is_alive()
    rows = fit.reduced.rows
    fit.extend(q[500:], tau[500:])
    assert fit.reduced.rows > rows
    assert set(threading.enumerate()) <= before
    fit.close()


def test_its_thread_ends_with_the_fit():
    before = set(threading.enumerate())
    fit = online(worker=True)
    fit.extend(*log(1000)[:2])
    (thread,) = set(threading.enumerate()) - before
    del fit
    gc.collect()
    thread.join(WAIT)
    assert not thread.is_alive()


def test_estimates_of_another_thread_do_not_disturb():
    q, tau, _ = log(2000)
    fit, plain = online(worker=True, false_alarms=0.0), online(false_alarms=0.0)
    done, told = threading.Event(), []

    def estimate():
        while not done.is_set():
            told.append(fit.estimate())

    other = threading.Thread(target=estimate)
    other.start()
    for k in range(0, 2000, 200):
        fit.extend(q[k : k + 200], tau[k : k + 200])
    done.set()
    other.join(WAIT)
    plain.extend(q, tau)
    assert told
    assert fit.reduced.triangles[0].tobytes() == plain.reduced.triangles[0].tobytes()
    fit.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("busy", [False, True])
def test_a_forked_process_goes_on_or_says_why_not(busy):
    q, tau, _ = log(1000)
    fit = online(worker=True)
    fit.extend(q[:500], tau[:500])
    fit.estimate()
    held = Held(fit, "_learn")
    if busy:
        feed(fit, q[500:600], tau[500:600])
        assert held.began.wait(WAIT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        child = os.fork()
    if not child:
        status = 1
        try:
            held.go.set()
            rows = fit.estimate().rows
            status = 0 if rows > 0 and not busy else 2
        except feasid.FeasidError as error:
            said = "was forked while the online fit was learning" in str(error)
            status = 0 if busy and said else 3
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    held.go.set()
    fit.close()


def test_control_never_waits_and_changes_over_when_a_model_is_ready():
    """Estimates that take for ever leave the torques those of the model before."""
    q, tau, _ = log(4800)
    robot = BASE.robot.with_values(np.where(np.isnan(BASE.robot.values), 0.0, BASE.robot.values))
    control = AdaptiveControl(
        robot, RATE, base=BASE, window=800, backend="python", effort=[500.0] * 4, blend=0.0
    )
    still = np.zeros(4)
    nominal = control.torque(q[0], still, still)
    for k in range(0, 1600, 100):
        control.online.extend(q[k : k + 100], tau[k : k + 100])
        control.online.estimate()
    held = Held(control.online, "_solve")
    for k in range(1600, 1800):
        control.observe(q[k], tau[k])
        before = control.decide()
        assert before is control.online.latest
    assert control.uses_identified_model
    used = control.torque(q[0], still, still)
    assert np.abs(used - nominal).max() > 1.0
    held.go.set()
    control.online._jobs.wait()
    assert control.online.latest is not before
    control.decide()
    control.online._jobs.wait()
    control.observe(q[1800], tau[1800])
    again = control.torque(q[0], still, still)
    assert used.tolist() != again.tolist()
    control.close()
