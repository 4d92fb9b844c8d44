"""Faults of single columns, put at known rows: every finding with its numbers and remedy."""

import numpy as np
import pandas as pd
import pytest
from pinned import assert_pinned

import feasid
from feasid.logs.checks.signals import (
    AROUND,
    CLIPPED,
    _format_intervals,
    _lost_time,
    _plateaus,
    _spikes,
    check_signals,
    looks_like_degrees,
)
from feasid.logs.raw import read_raw
from feasid.robot.bodies import Limits

N, RATE = 1000, 100.0
T = np.arange(N) / RATE
ROBOT = feasid.Robot((
    feasid.Body("a", None, limits=Limits(-2.0, 2.0)),
    feasid.Body("b", "a", motion=[0, 0, 0, 1, 0, 0], limits=Limits(0.0, 1.0)),
))  # fmt: skip


def log():
    rng = np.random.default_rng(0)
    q = np.stack([np.sin(2 * T), 0.5 + 0.3 * np.sin(3 * T)], axis=1)
    tau = np.stack([5 * np.cos(2 * T), 20 * np.cos(3 * T)], axis=1) + 0.1 * rng.normal(size=(N, 2))
    return {"q_a": q[:, 0], "q_b": q[:, 1], "tau_a": tau[:, 0], "tau_b": tau[:, 1]}


def findings(change=lambda signals: None, t=T):
    signals = log()
    change(signals)
    raw = read_raw(pd.DataFrame({"t": t, **signals}), ROBOT)
    return check_signals(raw, ROBOT, [np.arange(N)])


def put(column, rows, value):
    """A value, or what a function makes of the values, in these rows of a column."""

    def change(signals):
        x = signals[column]
        x[rows] = value(x[rows]) if callable(value) else value

    return change


def spiked(signals):
    signals["tau_b"][300] += 50.0
    signals["tau_b"][500] -= 50.0


def come_to_rest(signals):
    w = np.clip((T - 3) / 2, 0, 1)
    signals["q_a"][:] = np.sin(4 * np.pi * (w - np.sin(2 * np.pi * w) / 2 / np.pi))
    signals["q_a"][:300] = signals["q_a"][500:] = 0.0


def read_unevenly(signals):
    t = T + 0.002 * np.random.default_rng(2).normal(size=N)
    signals["q_a"][:], signals["q_b"][:] = np.sin(2 * t), 0.5 + 0.3 * np.sin(3 * t)


ALL, JITTER = slice(None), T + 0.0035 * np.random.default_rng(1).random(N)
CASES = {
    "right": (lambda s: None, T),
    "cells without a number": (put("q_a", [3, 4, 5, 40], np.nan), T),
    "dead position": (put("q_a", ALL, 0.25), T),
    "dead torque": (put("tau_a", ALL, 0.25), T),
    "single samples far off": (spiked, T),
    "a torque that sticks": (put("tau_a", slice(200, 400), lambda x: x[0]), T),
    "a position that freezes and jumps": (put("q_a", slice(400, 500), lambda x: x[0]), T),
    "a position that comes to rest": (come_to_rest, T),
    "clipped": (put("tau_b", ALL, lambda x: np.clip(x, -15.0, 15.0)), T),
    "clipped a little": (put("tau_b", slice(100, 160), 40.0), T),
    "coarse": (put("tau_a", ALL, lambda x: np.round(x / 2) * 2), T),
    "gaps": (lambda s: None, T + 0.5 * (T >= 2) + 0.25 * (T >= 7)),
    "jitter": (lambda s: None, JITTER),
    "read unevenly": (read_unevenly, T),
    "3 % beyond the range": (put("q_b", slice(30), np.linspace(1.03, 1.1, 30)), T),
    "20 % beyond the range": (put("q_b", slice(200), np.linspace(1.03, 1.1, 200)), T),
    "hardly beyond the range": (put("q_b", 5, 1.019), T),
    "degrees": (put("q_a", ALL, np.degrees), T),
}


def test_findings_with_their_rows_words_and_options():
    assert_pinned("findings-of-columns", {name: findings(*case) for name, case in CASES.items()})


@pytest.mark.parametrize(
    ("q", "low", "high", "degrees"),
    [([-57.0, 57.0], -1, 1, True), ([-64.0, 57.0], -1, 1, False), ([57.0], -1, 1, True),
     ([63.0], -1, 1, True), ([64.0], -1, 1, False), ([7.3], -1, 1, True), ([7.2], -1, 1, False),
     ([57.0, np.nan], -1, 1, True), ([np.nan], -1, 1, False), ([57.0], 1, 1, False),
     ([57.0], -np.inf, 1, False), ([30.0], 0.5, 1, True), ([20.0], 0.5, 1, False),
     ([4.0, 5.95], -3, 3, False), ([-57.3, 54.4], -3, 3, True)],
)  # fmt: skip
def test_what_looks_like_degrees(q, low, high, degrees):
    assert looks_like_degrees(np.array(q), low, high) == degrees


def test_stretches_of_equal_values():
    x = np.array([1.0, 1, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4])
    expected = [(a, b) for a, b in ((0, 2), (4, 11), (12, 13)) if b - a + 1 >= CLIPPED]
    assert _plateaus(x) == expected
    assert _plateaus(np.full(CLIPPED, 2.0)) == [(0, CLIPPED - 1)]
    assert _plateaus(np.full(CLIPPED - 1, 2.0)) == []


def test_spikes_are_no_steps():
    x = np.sin(T)
    spike, step = x.copy(), x.copy()
    spike[70] += 1.0
    step[70:] += 1.0
    assert _spikes(x) == []
    assert _spikes(spike) == [70]
    assert _spikes(step) == []


def test_times_of_stretches():
    spans = ((0, 100), (150, 160), (500, 600), (900, 950))
    assert _format_intervals(spans, T) == "[(0, 1), (1.5, 1.6), (5, 6), ...]"
    assert _format_intervals(spans[:3], T) == "[(0, 1), (1.5, 1.6), (5, 6)]"
    edges = [(T[a] - AROUND, T[b] + AROUND) for a, b in spans]
    covered = np.zeros(20_000, dtype=bool)
    fine = (np.arange(20_000) - 5000) * 1e-3
    for a, b in edges:
        covered |= (fine >= a) & (fine < b)
    assert _lost_time(spans, T) == pytest.approx(covered.sum() * 1e-3, abs=0.01)
    assert _lost_time(((0, 0),), T) == pytest.approx(2 * AROUND)
