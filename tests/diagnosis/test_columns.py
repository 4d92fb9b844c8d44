"""Faults of single columns, put at known rows: every finding with its numbers and remedy."""

import numpy as np
import pandas as pd
import pytest

import feasid
from feasid.logs.checks.signals import (
    AROUND,
    CLIPPED,
    _format_intervals,
    _lost_time,
    _plateaus,
    _spikes,
    check_range,
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


def only(found):
    (one,) = found
    return one


def test_a_right_log_has_no_findings():
    assert findings() == []


def test_cells_without_a_number():
    def change(s):
        s["q_a"][[3, 4, 5, 40]] = np.nan

    found = only(findings(change))
    assert (found.code, found.level, found.joints, found.columns) == (
        "nan",
        "error",
        ("a",),
        ("q_a",),
    )
    assert found.message == (
        "position (q_a) has 4 cells without a finite number in 2 segment(s), first row 3, the "
        "longest 3 rows"
    )
    assert found.rows == ((3, 5), (40, 40))
    assert found.times == ((0.03, 0.05), (0.4, 0.4))
    assert found.options == {"nan": "drop-segments"}


@pytest.mark.parametrize(("column", "level"), [("q_a", "warning"), ("tau_a", "error")])
def test_a_dead_column(column, level):
    found = only(findings(lambda s: s[column].fill(0.25)))
    assert (found.code, found.level) == ("dead", level)
    assert found.message.endswith(f"({column}) is 0.25 in all rows")
    if column == "tau_a":
        assert found.options == {"measured": ["b"]}
        assert found.remedy == "without a torque sensor there, leave the joint out: measured=['b']"
    else:
        assert dict(found.options) == {}
        assert found.remedy.startswith("lock the joint if it did not move: load_robot(..., lock=")


def test_a_single_sample_far_off():
    def change(s):
        s["tau_b"][300] += 50.0
        s["tau_b"][500] -= 50.0

    found = only(findings(change))
    assert (found.code, found.level, found.rows) == ("spike", "warning", ((300, 300), (500, 500)))
    assert found.message == (
        "torque (tau_b) has 2 single sample(s) far off their neighbours, first row 300"
    )
    assert found.remedy == "exclude=[(3, 3), (5, 5)]"
    assert found.options == {"exclude": ((3.0, 3.0), (5.0, 5.0))}


def test_a_signal_that_sticks():
    def change(s):
        s["tau_a"][200:400] = s["tau_a"][200]

    found = only(findings(change))
    assert (found.code, found.rows) == ("stuck", ((200, 399),))
    assert found.message == (
        "torque (tau_a) does not change for 1.99 s in 1 segment(s) while it should: a stuck signal"
    )
    assert found.remedy == "exclude=[(2, 3.99)]"


def test_a_position_that_freezes_and_jumps_or_comes_to_rest():
    def freeze(s):
        s["q_a"][400:500] = s["q_a"][400]

    found = only(findings(freeze))
    assert (found.code, found.rows) == ("stuck", ((400, 499),))

    def rest(s):
        w = np.clip((T - 3) / 2, 0, 1)
        s["q_a"][:] = np.sin(4 * np.pi * (w - np.sin(2 * np.pi * w) / 2 / np.pi))
        s["q_a"][:300] = s["q_a"][500:] = 0.0

    assert "stuck" not in {f.code for f in findings(rest)}


def test_a_torque_that_is_clipped():
    def change(s):
        s["tau_b"][:] = np.clip(s["tau_b"], -15.0, 15.0)

    found = only(findings(change))
    count = sum(b - a + 1 for a, b in found.rows)
    assert found.code == "saturated"
    assert found.message == (
        f"torque (tau_b) stays at its extreme -15, 15 in {count} samples ({count / N:.1%}): "
        "saturated or clipped"
    )
    assert found.remedy == "record a slower motion; too much would be left out by exclude="
    assert dict(found.options) == {}

    def little(s):
        s["tau_b"][100:160] = 40.0

    found = only(findings(little))
    assert found.remedy == "exclude=[(1, 1.59)]"
    assert found.options == {"exclude": ((1.0, 1.59),)}
    assert "40 in 60 samples (6.0%)" in found.message


def test_a_coarse_signal():
    def change(s):
        s["tau_a"][:] = np.round(s["tau_a"] / 2) * 2

    (found, *_) = [f for f in findings(change) if f.code == "coarse"]
    levels = len(np.unique(np.round(log()["tau_a"] / 2)))
    assert found.level == "note"
    assert found.message == f"torque (tau_a) has only {levels} levels, 2 apart: quantised"


def test_gaps_and_jitter_of_time():
    t = T.copy()
    t[200:] += 0.5
    t[700:] += 0.25
    found = only(findings(t=t))
    assert (found.code, found.level, found.rows) == ("gap", "note", ((199, 200), (699, 700)))
    assert found.message == "2 gap(s) in time, 0.75 s in all, the longest 0.51 s after row 199"
    rng = np.random.default_rng(1)
    late = T + 0.0035 * rng.random(N)
    found = [f for f in findings(t=late) if f.code == "jitter"]
    steps = np.diff(late)
    share = float((np.abs(steps - np.median(steps)) > 0.2 * np.median(steps)).mean())
    assert only(found).message == (
        f"{share:.1%} of the time steps differ by more than 20% from the median "
        f"{np.median(steps):.4g} s"
    )


@pytest.mark.parametrize(("share", "level"), [(0.03, "note"), (0.2, "warning")])
def test_positions_beyond_the_range(share, level):
    def change(s):
        s["q_b"][: round(share * N)] = np.linspace(1.03, 1.1, round(share * N))

    found = only([f for f in findings(change) if f.code == "limits"])
    assert found.level == level
    assert found.message.startswith(
        f"position (q_b) is outside the description's range 0 .. 1 in {round(share * N)} rows (0.2"
    )
    assert found.message.endswith(" .. 1.1 seen)")
    assert found.rows == ((0, round(share * N) - 1),)
    raw = read_raw(pd.DataFrame({"t": T, **log()}), ROBOT)
    raw.values["q"][5, 1] = 1.019
    assert check_range(raw, ROBOT) == []


def test_degrees_by_their_range():
    def change(s):
        s["q_a"][:] = np.degrees(s["q_a"])

    found = only(findings(change))
    assert (found.code, found.level, found.remedy) == ("degrees", "error", "units={'q_a': 'deg'}")
    assert found.message == (
        "position (q_a) goes from -57.3 to 57.3, the description allows -2 .. 2: degrees"
    )
    assert found.options == {"units": {"q_a": "deg"}}


@pytest.mark.parametrize(
    ("q", "low", "high", "degrees"),
    [([-57.0, 57.0], -1, 1, True), ([-64.0, 57.0], -1, 1, False), ([57.0], -1, 1, True),
     ([63.0], -1, 1, True), ([64.0], -1, 1, False), ([7.3], -1, 1, True), ([7.2], -1, 1, False),
     ([57.0, np.nan], -1, 1, True), ([np.nan], -1, 1, False), ([57.0], 1, 1, False),
     ([57.0], -np.inf, 1, False), ([30.0], 0.5, 1, True), ([20.0], 0.5, 1, False)],
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
