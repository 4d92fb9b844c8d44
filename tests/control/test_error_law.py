"""The law of an observer's errors, of small signals: crossings, peaks, variances and levels."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

from feasid.applications.control.external_torque import alarm_rate
from feasid.core.errors import InputError
from feasid.identification.assessment.contact_errors import (
    SLOW,
    TAIL,
    ErrorLaw,
    _deviations,
    _fit_variance,
    _stretch_maxima,
    _tail_ends,
    _widening,
    observer_errors,
)
from feasid.logs.motion import Run


@pytest.mark.parametrize(
    ("text", "rate"),
    [("1/hour", 1 / 3600), (" 0.5 / minute ", 0.5 / 60), (".5/second", 0.5), ("2/day", 2 / 86400),
     (0.25, 0.25), ("3/hour", 3 / 3600)],
)  # fmt: skip
def test_rates_of_alarms(text, rate):
    assert alarm_rate(text) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("text", "words"),
    [("1/fortnight", "must be like '1/hour', per "), ("hour", "must be like"), ("-1/hour", "like"),
     ("1/hour/day", "must be like"), ("0/hour", "must be positive"), (0.0, "must be positive"),
     (-1.0, "must be positive"), (np.inf, "must be positive"), (np.nan, "must be positive")],
)  # fmt: skip
def test_rates_that_are_none(text, words):
    with pytest.raises(InputError, match=words) as error:
        alarm_rate(text)
    assert error.value.data["option"] == "false_alarms"


def test_crossings_and_peaks():
    sizes = np.array([3.0, 1, 2, 4, 3, 1, 5, 2, 2.5, 0, 1])
    assert _stretch_maxima(sizes, 1.5).tolist() == [4.0, 5.0]
    assert _stretch_maxima(sizes, 2.2).tolist() == [4.0, 5.0, 2.5]
    assert _stretch_maxima(sizes[:9], 2.2).tolist() == [4.0, 5.0, 2.5]  # the last does not end
    assert _stretch_maxima(sizes, 9.0).tolist() == []
    assert _stretch_maxima(sizes, 2.0).tolist() == [4.0, 5.0, 2.5]  # it begins beyond its level
    assert _stretch_maxima(-sizes, -1.5).tolist() == [-1.0, -1.0, 0.0]


def test_tails_begin_where_enough_crossings_are_left():
    """Ten of them, or half of the most: the last level with so many."""
    crossings = np.array([[100.0, 90, 40, 20, 19, 1], [10, 9, 6, 5, 4, 0], [8, 8, 8, 8, 8, 8]])
    assert TAIL == 10
    assert _tail_ends(crossings).tolist() == [4, 3, 5]


def test_variances_follow_their_features():
    rng = np.random.default_rng(0)
    features = np.c_[np.ones(40_000), rng.uniform(0, 1, size=(40_000, 3))]
    true = np.array([0.5, 2.0, 0.0, 1.0])
    squares = (features @ true) * rng.normal(size=40_000) ** 2
    np.testing.assert_allclose(_fit_variance(features, squares), true, atol=0.1)
    silent = _fit_variance(features, np.zeros(40_000))
    assert silent[0] > 0
    assert silent[1:].tolist() == [0, 0, 0]
    nothing = _fit_variance(features[:, [1, 1, 1, 1]] * [0, 1, 0, 0], squares)
    assert nothing[0] == pytest.approx(1e-3 * squares.mean())
    found = _deviations(np.stack([true, 4 * true]), np.stack([features[:5]] * 2, axis=1))
    np.testing.assert_allclose(found[:, 1], 2 * found[:, 0])
    np.testing.assert_allclose(found[:, 0] ** 2, features[:5] @ true)


def run(seed=0, n=4000, rate=200.0):
    rng = np.random.default_rng(seed)
    t = np.arange(n) / rate
    q, dq = (f(np.outer(t, [1.0, 2.0])) for f in (np.sin, np.cos))
    tau = t[:, None] * [1, 2]
    return Run("log", rate, np.arange(n), t, q, dq, 0 * q, tau), rng.normal(size=(n, 2)), 0 * q


def test_errors_pass_the_observers_low_pass():
    """A constant stays, a late torque leaves its rate times the delay; features follow speeds."""
    one, _, none = run()
    gain, delay = 30.0, 0.02
    fastest = np.array([2.0, 1.0])
    errors, features = observer_errors(one, np.full((4000, 2), 0.7), none, gain, 0.0, fastest)
    np.testing.assert_allclose(errors[20:], 0.7, atol=1e-3)
    late, _ = observer_errors(one, none, none, gain, delay, fastest)
    np.testing.assert_allclose(late, np.full(late.shape, delay) * [1, 2], rtol=1e-2)
    held = replace(one, tau=one.tau + 50.0)  # the same errors: the first torque is no jump
    again, _ = observer_errors(held, none, none, gain, delay, fastest)
    np.testing.assert_allclose(again, late, atol=1e-12)  # rounding of 50 N m
    follow = gain / 200.0 / (1 + 0.5 * gain / 200.0)
    begin = 4000 - len(errors)

    def behind(x):
        return lfilter([follow], [1.0, follow - 1.0], x, axis=0)[begin:]

    speed = behind((one.dq / fastest) ** 2)
    np.testing.assert_allclose(features[..., 0], 1.0)
    np.testing.assert_allclose(features[..., 1], behind(np.exp(-((one.dq / SLOW) ** 2))) ** 2)
    np.testing.assert_allclose(features[..., 2], speed)
    np.testing.assert_allclose(features[..., 3], np.repeat(speed.sum(axis=1)[:, None] ** 2, 2, 1))


@pytest.fixture(scope="module")
def law():
    parts = [run(k) for k in range(3)]
    return ErrorLaw.from_errors(parts, 30.0, 0.0, ("a", "b"))


def test_levels_are_crossed_as_often_as_asked(law):
    """Counted where a log is long enough; higher beyond."""
    parts = [run(k) for k in range(3)]
    seen = [observer_errors(r, e, p, 30.0, 0.0, law.fastest) for r, e, p in parts]
    scaled = [np.abs(e) / _deviations(law.coefficients, f) for e, f in seen]
    for rate in (1.0, 3.0):
        level = law.crossing_levels(rate) / law.widening
        times = sum(((z[1:] > level) & (z[:-1] <= level)).sum(axis=0) for z in scaled)
        np.testing.assert_allclose(times / law.seconds, rate / 2, rtol=0.15)
    rare = [law.crossing_levels(x) for x in (1.0, 1e-2, 1e-4)]
    assert (np.diff(rare, axis=0) > 0.2).all()
    assert law.seconds == pytest.approx(3 * len(seen[0][0]) / 200.0)
    np.testing.assert_allclose(law.fastest, 1.0, rtol=1e-6)
    assert (np.diff(law.crossings, axis=1) <= 0).all()
    most = law.crossings[:, 0].sum() / law.seconds
    assert np.isfinite(law.crossing_levels(most)).all()
    with pytest.raises(
        InputError, match="per second are more than errors cross any level"
    ) as error:
        law.crossing_levels(1.001 * most)
    assert error.value.data["option"] == "false_alarms"


def test_levels_beyond_the_tail_follow_its_law(law):
    """``n (1 + (u^2 - u_0^2) / excess)^-n`` crossings in the log's time, for each joint alike."""
    rate = 1e-3
    level = law.crossing_levels(rate) / law.widening
    tail = _tail_ends(law.crossings)
    rows = np.arange(2)
    n, start = law.crossings[rows, tail], law.levels[rows, tail]
    expected = n * (1 + (level**2 - start**2) / law.excesses) ** -n
    np.testing.assert_allclose(expected, rate * law.seconds / 2)


def test_levels_are_raised_by_how_much_parts_of_the_log_differ():
    """Student's law of four degrees of freedom for the logarithm of a sixth part's size."""
    rng = np.random.default_rng(5)
    parts = [k * rng.standard_normal((400, 1)) for k in (1.0, 2.0, 0.5, 1.5, 1.0)]
    sizes = np.log([np.sqrt(np.mean(part**2)) for part in parts])
    spread = 2.1318 * np.sqrt(np.var(sizes, ddof=1) * 6 / 5)  # 95 % of t with 4: tables
    errors = np.concatenate([np.hstack([part, np.ones((400, 1))]) for part in parts])
    np.testing.assert_allclose(_widening(errors), [np.exp(spread), 1.0], rtol=1e-4)


def test_errors_that_one_motion_bounds_have_a_gaussian_tail_on_others():
    """A sine's errors have no tail; at most as many crossings as its own are believed."""
    one, errors, none = run()
    bounded = np.sqrt(2.0) * np.sin(np.arange(len(errors)) / [[7.0], [11.0]]).T
    law = ErrorLaw.from_errors([(one, bounded, none)], 30.0, 0.0, ("a", "b"))
    rows, tail = np.arange(2), _tail_ends(law.crossings)
    np.testing.assert_array_less(2.0 * law.crossings[rows, tail] - 1e-9, law.excesses)


def test_logs_that_are_too_short():
    short, errors, none = run(n=20)
    with pytest.raises(InputError, match=re.escape("thresholds need a log in memory with runs of")):
        ErrorLaw.from_errors([(short, errors, none)], 30.0, 0.0, ("a", "b"))
    long, errors, none = run()
    still = errors.copy()
    still[:, 1] = 1.0
    with pytest.raises(InputError, match="the error of joint b on held-out segments") as error:
        ErrorLaw.from_errors([(long, still, none)], 30.0, 0.0, ("a", "b"))
    assert error.value.data["joint"] == "b"
