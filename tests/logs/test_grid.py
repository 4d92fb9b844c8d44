"""Samples on an even grid: what clocks do to stamps, and what is done about it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feasid.logs.clock import even_grid

RATE = 200.0
FAITHFUL = 2e-5  # rad: a cubic through samples 10 ms apart of a sine at 1 Hz, amplitude 1
ROUGH = 1e-3  # the same when every eighth sample is lost, next to each other at worst


def sine(t):
    return np.sin(2 * np.pi * t)[:, None]


def test_an_even_clock_is_left_alone():
    t = np.arange(100) / RATE
    grid = even_grid(t + 1e-9 * np.sin(t))
    assert not grid.bridged
    assert not grid.uneven
    signal = sine(t)
    assert grid.resample("q", signal) is signal


def test_missing_samples_are_bridged():
    t = np.arange(2000) / RATE
    keep = np.arange(2000) % 40 != 7
    grid = even_grid(t[keep])
    assert grid.bridged == 50
    np.testing.assert_allclose(grid.t, t, atol=1e-12)
    assert np.abs(grid.resample("q", sine(t[keep])) - sine(grid.t)).max() < FAITHFUL
    torque = grid.resample("tau", sine(t[keep]))
    assert np.abs(torque - sine(grid.t)).max() < 0.5 * (2 * np.pi / RATE) ** 2


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.floats(0, 0.1))
def test_positions_survive_any_losses(seed, lost):
    rng = np.random.default_rng(seed)
    t = np.arange(500) / RATE
    keep = rng.random(500) >= lost
    keep[[0, -1]] = True
    longest = np.diff(np.flatnonzero(keep)).max()
    grid = even_grid(t[keep])
    assert len(grid.t) == 500
    assert np.abs(grid.resample("q", sine(t[keep])) - sine(t)).max() < ROUGH * longest**4 / 16


def test_uneven_stamps_are_believed():
    rng = np.random.default_rng(1)
    t = np.arange(1000) / RATE
    late = t + rng.uniform(0, 0.3 / RATE, 1000)
    grid = even_grid(late)
    assert grid.uneven
    assert (grid.t[0], grid.t[-1]) == (late[0], pytest.approx(late[-1]))
    np.testing.assert_allclose(np.diff(grid.t), np.diff(grid.t).mean())
    assert np.abs(late[grid.nearest] - grid.t).max() < 0.7 / RATE
    as_if_even = np.abs(sine(late) - sine(grid.t[: len(late)])).max()
    assert np.abs(grid.resample("q", sine(late)) - sine(grid.t)).max() < 0.01 * as_if_even


@pytest.mark.parametrize("rate", [300.0, 30.0, 64.0])
def test_rounded_stamps_are_not_jitter(rate):
    t = np.arange(500) / rate
    grid = even_grid(np.round(t, 3))
    assert not grid.uneven
    assert 1 / np.diff(grid.t).mean() == pytest.approx(rate, rel=1e-3)


@pytest.mark.parametrize(
    ("steps", "gap", "uneven"), [(20, False, False), (20, True, True), (40, True, False)]
)
def test_rounded_stamps_have_few_steps(steps, gap, uneven):
    """Three, or a tenth as many as there are: 9, 10 and 11 ms, and 20 where a sample is lost."""
    late = np.random.default_rng(2).integers(0, 2, steps)
    late[:6] = [0, 1, 1, 0, 0, 1]
    stamps = 10 * np.arange(steps + 1) + np.r_[late, 0]
    stamps[steps // 2 :] += 10 if gap else 0
    distinct = len(set(np.diff(stamps).tolist()))
    assert distinct == (4 if gap else 3)
    assert even_grid(1e-3 * stamps).uneven == uneven
