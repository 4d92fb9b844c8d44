"""Filters and derivatives against signals whose derivatives are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feasid import Robot
from feasid.errors import InputError
from feasid.logs.filters import (
    choose_cutoff,
    delay_signal,
    low_pass,
    settling_samples,
    smooth_and_differentiate,
)
from feasid.logs.frame import prepare

RATE = 500.0

PASSBAND = 2e-4
"""Relative error of derivatives at a tenth of the cut-off."""

HALF = 1e-3
"""How near 1/2 the gain at the cut-off is."""


def gain(frequency, cutoff, derivative=0):
    t = np.arange(6000) / RATE
    w = 2 * np.pi * frequency
    out = smooth_and_differentiate(np.sin(w * t)[:, None], derivative, cutoff, RATE)[derivative][
        :, 0
    ]
    wanted = [np.sin(w * t), w * np.cos(w * t), -w * w * np.sin(w * t)][derivative]
    middle = slice(1000, -1000)
    return float(out[middle] @ wanted[middle] / (wanted[middle] @ wanted[middle]))


def test_gain_is_one_below_half_at_and_little_above_the_cutoff():
    for derivative in range(3):
        assert gain(1.0, 10.0, derivative) == pytest.approx(1, abs=PASSBAND)
    assert gain(10.0, 10.0) == pytest.approx(0.5, abs=HALF)
    assert abs(gain(40.0, 10.0)) < 0.12


def test_no_phase_shift():
    t = np.arange(4000) / RATE
    w = 2 * np.pi * 4.0
    out = smooth_and_differentiate(np.sin(w * t)[:, None], 0, 10.0, RATE)[0][:, 0]
    middle = slice(800, -800)
    quadrature = out[middle] @ np.cos(w * t[middle]) / len(t[middle])
    assert abs(quadrature) < 1e-3


@settings(max_examples=25, deadline=None)
@given(coefficients=st.lists(st.floats(-3, 3), min_size=2, max_size=2), cutoff=st.floats(3, 60))
def test_straight_lines_pass_unchanged(coefficients, cutoff):
    t = np.arange(800)[:, None] / RATE
    line = coefficients[0] + coefficients[1] * t
    x, slope, bend = smooth_and_differentiate(line, 2, cutoff, RATE)
    ends = settling_samples(cutoff, RATE)
    inside = slice(ends, len(t) - ends)
    np.testing.assert_allclose(x[inside], line[inside], atol=1e-4)
    np.testing.assert_allclose(slope[inside], coefficients[1], atol=1e-4 * cutoff)
    np.testing.assert_allclose(bend[inside], 0, atol=1e-3 * cutoff**2)


def test_prepare_filters_at_the_cutoff():
    import pandas as pd

    robot = Robot.from_dh([(0, 0.1, 0.2, 0), (0, 0.3, 0.1, 0)])
    t = np.arange(2000) / RATE
    df = pd.DataFrame({"t": t, "q_1": np.sin(3 * t), "q_2": np.cos(2 * t), "tau_1": t, "tau_2": t})
    motion = prepare(df, robot, cutoff=12.0)
    run = motion.runs[0]
    np.testing.assert_allclose(run.ddq[:, 0], -9 * np.sin(3 * run.t), atol=0.15)
    assert any("12 Hz" in note for note in motion.notes)
    with pytest.raises(InputError, match="smoothing"):
        prepare(df, robot, smoothing="spline")


def test_noise_is_reduced():
    noise = np.random.default_rng(0).normal(size=(20000, 1))
    assert smooth_and_differentiate(noise, 0, 10.0, RATE)[0].std() < 0.25


def test_low_pass_is_the_square_of_a_third_order_butterworth():
    for frequency in (5.0, 20.0, 45.0):
        t = np.arange(8000) / RATE
        x = np.sin(2 * np.pi * frequency * t)
        y = low_pass(x, 15.0, RATE)
        middle = slice(1500, -1500)
        found = y[middle] @ x[middle] / (x[middle] @ x[middle])
        ratio = np.tan(np.pi * frequency / RATE) / np.tan(np.pi * 15.0 / RATE)
        assert found == pytest.approx(1 / (1 + ratio**6), abs=2e-4)


@pytest.mark.parametrize("highest", [0.5, 2.0, 4.0])
@pytest.mark.parametrize("noise", [1e-6, 1e-4])
def test_cutoff_follows_the_motion_not_the_noise(highest, noise):
    rng = np.random.default_rng(7)
    t = np.arange(10000) / RATE
    q = sum(np.sin(2 * np.pi * f * t + f) for f in np.linspace(highest / 4, highest, 4))
    q = q[:, None] + noise * rng.normal(size=(len(t), 3))
    found = choose_cutoff(q, RATE)
    assert max(5.0, 3 * highest) <= found.frequency <= max(5.0, 8 * highest)
    assert found.reason


def test_cutoff_of_a_robot_that_stands_still():
    rng = np.random.default_rng(0)
    still = 1e-6 * rng.normal(size=(2000, 2))
    assert "no joint moves" in choose_cutoff(still, RATE).reason
    assert choose_cutoff(np.zeros((2000, 2)), RATE).frequency == 5.0


def test_delay_is_whole_and_fractional():
    x = np.arange(20.0)[:, None]
    np.testing.assert_allclose(delay_signal(x, 3)[5:], x[5:] - 3)
    np.testing.assert_allclose(delay_signal(x, -2.5)[:15], x[:15] + 2.5)
