"""Time stamps and filters of small signals, worked out by hand: numbers and what is said."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.signal import butter, freqz

from feasid.errors import InputError, LogError
from feasid.logs.clock import check_order, even_grid, read_time, run_labels, split_at_gaps
from feasid.logs.filters import (
    choose_cutoff,
    delay_signal,
    first_difference,
    low_pass,
    second_difference,
    settling_samples,
    smooth_and_differentiate,
)

ROUNDING = 1e-9


def texts(notes):
    return [str(note) for note in notes]


def split(steps, bridge=0.0, label="log"):
    """Rows of every stretch, their rates, and what is said, of time stamps with these steps."""
    t = np.cumsum([0.0, *steps])
    parts, notes = split_at_gaps(t, np.arange(len(t)) + 100, label, bridge)
    return [p.rows.tolist() for p in parts], [p.rate for p in parts], texts(notes)


def test_a_log_is_split_at_its_gaps():
    steps = [0.01] * 4 + [0.5] + [0.01] * 3 + [0.2] + [0.01] * 2
    rows, rates, said = split(steps, label="a")
    assert rows == [[100, 101, 102, 103, 104], [105, 106, 107, 108], [109, 110, 111]]
    np.testing.assert_allclose(rates, 100.0)
    assert said == [
        "run 'a': 2 gap(s) in time, the first after row 104 (t = 0.04 s), the longest 0.5 s after "
        "row 104: split there; no action needed"
    ]
    rows, rates, said = split(steps[::-1], label="log")
    assert [len(r) for r in rows] == [3, 4, 5]
    assert said[0].startswith("2 gap(s) in time, the first after row 102 (t = 0.02 s), the longest")
    assert said[0].endswith("0.5 s after row 106: split there; no action needed")


def test_small_gaps_are_bridged():
    """One lost sample, and three of them: 0.02 and 0.04 s."""
    steps = [0.01] * 4 + [0.02] + [0.01] * 3 + [0.04] + [0.01] * 2
    rows, rates, said = split(steps, bridge=0.05)
    assert len(rows) == 1
    assert rates == [pytest.approx(100.0)]
    assert said == ["2 gap(s) of at most 0.05 s, 4 sample(s), bridged by interpolation"]
    rows, _, said = split(steps, bridge=0.001)
    assert len(rows) == 2
    assert said[0].startswith("1 gap(s) in time, the first after row 108")
    assert "1 sample(s), bridged by interpolation" in said[1]


def test_uneven_steps_are_told():
    _, _, said = split([0.01] * 8 + [0.0125, 0.0075])
    assert said == [
        "2 of 10 time steps differ by more than 20% from the median 0.01 s: samples are taken as "
        "evenly spaced"
    ]
    assert split([0.01] * 8 + [0.0105, 0.0095])[2] == []
    assert split([0.01] * 8 + [0.0125, 0.0075], bridge=0.05)[2] == []
    (only,), (rate,), said = split([])
    assert only == [100]
    assert np.isnan(rate)
    assert said == []


def test_the_rate_of_a_stretch_is_that_of_its_ends():
    _, rates, _ = split([0.01, 0.011, 0.012, 0.3, 0.01])
    np.testing.assert_allclose(rates, [3 / 0.033, 100.0])
    _, rates, _ = split([0.01, 0.01, 0.3])
    np.testing.assert_allclose(rates, [100.0, 100.0])  # of a single sample: the median


@pytest.mark.parametrize(
    ("t", "row", "words"),
    [
        ([0, 1, 1, 2], 12, "time stamps are doubled: rows 11 and 12 both have t = 1 s (1 such "
         "row(s)). If stamps are rounded, pass rate=1.5;"),
        ([0, 1, 3, 2, 1.5], 13, "row 13 has t = 2 s after 3 s, counted from the log's first row "
         "(2 such row(s)); sort the log with sort=True"),
        ([*range(10), 0.5, 1.5], 20, "row 20 has t = 0.5 s after 9 s"),
        ([*range(11), 2.0, 3.0], 21, "the clock restarts there: separate the runs"),
        ([*range(11), 2.1, 3.0], 21, "sort the log with sort=True"),
        ([*range(10), 0.5, 1.5], 20, "sort the log with sort=True"),
    ],
)  # fmt: skip
def test_stamps_that_do_not_increase(t, row, words):
    rows = np.arange(len(t)) + 10
    with pytest.raises(LogError, match=re.escape(words)) as error:
        check_order(np.array(t, dtype=float), rows, "log")
    assert error.value.data["row"] == row
    assert "of run" not in str(error.value)
    with pytest.raises(LogError, match="of run 'a'"):
        check_order(np.array(t, dtype=float), rows, "a")


def test_stamps_that_increase_are_fine():
    assert check_order(np.array([0.0, 1.0, 1.5]), np.arange(3), "log") is None


def time(values, units=None, rate=None):
    return read_time(pd.DataFrame({"t": values, "x": 1.0}), "t", rate, units)


@pytest.mark.parametrize(
    ("step", "unit", "length"),
    [(0.4, None, 1.0), (0.5, "ms", 1e-3), (49, "ms", 1e-3), (50, "us", 1e-6),
     (49_999, "us", 1e-6), (50_000, "ns", 1e-9)],
)  # fmt: skip
def test_units_of_stamps_are_recognised_by_their_steps(step, unit, length):
    t, notes = time(1e3 + step * np.arange(5))
    np.testing.assert_allclose(t, step * length * np.arange(5), rtol=ROUNDING)
    assert [n.values["unit"] for n in notes] == ([unit] if unit else [])
    if unit:
        start = f"time (column 't') steps by {step:g}, taken as {unit}: {1 / (step * length):.4g}"
        assert texts(notes)[0].startswith(start)
    t, notes = time(1e3 + step * np.arange(5), units={"t": "s"})
    np.testing.assert_allclose(t, step * np.arange(5), rtol=ROUNDING)
    assert notes == []


def test_kinds_of_stamps():
    epoch = 1_700_000_000_000_000_000 + 1_000_001 * np.arange(4)
    t, _ = time(epoch)
    np.testing.assert_allclose(t, 1.000001e-3 * np.arange(4), rtol=1e-12)
    t, notes = time(pd.to_datetime(epoch))
    np.testing.assert_allclose(t, 1.000001e-3 * np.arange(4), rtol=1e-12)
    assert notes == []
    t, (note,) = time([5, 6, 7], rate=200.0)
    assert t.tolist() == [0, 0.005, 0.01]
    assert note == "time: row number at the given 200 Hz"
    index = pd.DataFrame({"x": [1.0, 2.0]}, index=[0.5, 0.6])
    assert read_time(index, None, None, None)[0] == pytest.approx([0, 0.1])
    with pytest.raises(LogError, match="the log has no time: give a column t"):
        read_time(pd.DataFrame({"x": [2.0, 1.0]}), None, None, None)


@pytest.mark.parametrize("values", [[0.0, np.nan, 1.0, np.inf], [0.0, np.inf, 1.0, -np.inf]])
def test_holes_in_time(values):
    with pytest.raises(LogError, match="is missing or not finite in 2 row") as error:
        time(values)
    assert error.value.data["row"] == 1
    stamps = pd.to_datetime(pd.Series(["2024-01-01", None, "2024-01-02"]))
    with pytest.raises(LogError, match=re.escape("not finite in 1 row(s), first row 1")):
        time(stamps)


def test_labels_of_runs():
    df = pd.DataFrame({"run": ["b", "b", "a", "b"], "gap": ["a", None, "b", None]})
    codes, labels = run_labels(df, "run")
    assert (codes.tolist(), labels) == ([0, 0, 1, 0], ["b", "a"])
    codes, labels = run_labels(df, None)
    assert (codes.tolist(), labels) == ([0, 0, 0, 0], ["log"])
    with pytest.raises(LogError, match="column 'gap' has no run in row 1"):
        run_labels(df, "gap")
    lists = pd.DataFrame({"run": [[1], [2]]})
    with pytest.raises(LogError, match=r"column 'run' holds .*: label runs by numbers or texts"):
        run_labels(lists, "run")


def test_grids_of_few_samples():
    for n in (0, 1):
        grid = even_grid(np.arange(n) * 0.5)
        assert (grid.t.tolist(), grid.nearest.tolist()) == ([0.0] * n, [0] * n)
        assert (grid.bridged, grid.uneven) == (0, False)
    grid = even_grid(np.array([1.0, 1.5]))
    np.testing.assert_allclose(grid.t, [1.0, 1.5])
    assert grid.nearest.tolist() == [0, 1]


def test_the_nearest_sample_of_a_bridged_grid():
    """Samples at 0, 1, 4 and 5: at 2 the second is nearest, at 3 the third."""
    grid = even_grid(np.array([0.0, 1, 4, 5, 6]) / 100)
    assert grid.bridged == 2
    assert grid.nearest.tolist() == [0, 1, 1, 2, 2, 3, 4]
    np.testing.assert_allclose(grid.t, np.arange(7) / 100, atol=1e-12)
    signal = np.array([[0.0, 0], [1, 2], [4, 8], [5, 10], [6, 12]])
    expected = np.arange(7)[:, None] * [1.0, 2.0]
    for kind, values in ((k, grid.resample(k, signal)) for k in ("q", "tau")):
        np.testing.assert_allclose(values, expected, atol=1e-9, err_msg=kind)


# -- filters ---------------------------------------------------------------------------------------

LINES = 1e-2
"""What a Butterworth filter makes of the ends of a line, ten samples from them."""

RATE = 50.0
T = np.arange(40) / RATE
QUADRATIC = np.stack([2 + 3 * T - 4 * T**2, T], axis=1)


def test_differences_are_exact_for_quadratics():
    slope = np.stack([3 - 8 * T, np.ones(40)], axis=1)
    np.testing.assert_allclose(first_difference(QUADRATIC, RATE), slope, atol=ROUNDING)
    bend = np.tile([-8.0, 0.0], (40, 1))
    np.testing.assert_allclose(second_difference(QUADRATIC, RATE), bend, atol=1e-8)
    for count in (0, 1, 2):
        made = smooth_and_differentiate(QUADRATIC, count, None, RATE)
        assert len(made) == count + 1
        for one, other in zip(made, (QUADRATIC, slope, bend), strict=False):
            np.testing.assert_allclose(one, other, atol=1e-8)


def test_a_signal_some_samples_later():
    signal = np.arange(5.0)[:, None] ** 2
    assert delay_signal(signal, 0.0).ravel().tolist() == [0, 1, 4, 9, 16]
    assert delay_signal(signal, 1.0).ravel().tolist() == [0, 0, 1, 4, 9]
    assert delay_signal(signal, -1.0).ravel().tolist() == [1, 4, 9, 16, 16]
    assert delay_signal(signal, 0.25).ravel().tolist() == [0, 0.75, 3.25, 7.75, 14.25]
    assert delay_signal(signal, -0.25).ravel().tolist() == [0.25, 1.75, 5.25, 10.75, 16]
    assert delay_signal(signal[:1], 0.5).ravel().tolist() == [0]
    assert delay_signal(signal[:2], 0.5).ravel().tolist() == [0, 0.5]


def test_the_low_pass_has_the_gain_of_a_butterworth_filter_forwards_and_backwards():
    t = np.arange(2000) / RATE
    for frequency in (1.0, 2.0, 4.0):
        sine = np.sin(2 * np.pi * frequency * t)
        b, a = butter(3, 2.0, fs=RATE)
        gain = np.abs(freqz(b, a, [frequency], fs=RATE)[1][0]) ** 2
        out = low_pass(sine, 2.0, RATE)[500:1500]
        np.testing.assert_allclose(out, gain * sine[500:1500], atol=1e-6)
    assert gain < 0.02
    np.testing.assert_allclose(low_pass(np.ones(3), 2.0, RATE), 1.0, atol=ROUNDING)
    with pytest.raises(InputError, match="cannot filter 2 samples: three are needed"):
        low_pass(T[:2], 2.0, RATE)
    for cutoff in (0.0, 25.0, -1.0, np.nan):
        with pytest.raises(InputError, match="between 0 and half the sampling rate, 25 Hz"):
            low_pass(T, cutoff, RATE)
    assert [settling_samples(c, 100.0) for c in (10.0, 3.0, 10.0 - 1e-9, 9.9)] == [10, 34, 10, 11]


def test_the_smoother_keeps_lines_and_halves_its_cutoff():
    line = np.stack([1 + 2 * T, -T], axis=1)
    for count in (0, 1, 2):
        made = smooth_and_differentiate(line, count, 4.0, RATE)
        assert len(made) == count + 1
        for k, (one, other) in enumerate(
            zip(made, (line, np.tile([2.0, -1.0], (40, 1)), np.zeros((40, 2))), strict=False)
        ):
            np.testing.assert_allclose(one[10:30], other[10:30], atol=LINES, err_msg=str(k))
    rate, t = 1000.0, np.arange(4000) / 1000.0
    sine = np.sin(2 * np.pi * 4.0 * t)[:, None]
    value, slope, bend = smooth_and_differentiate(sine, 2, 4.0, rate)
    middle, w = slice(1000, 3000), 2 * np.pi * 4.0
    gain = float((value[middle] * sine[middle]).sum() / (sine[middle] ** 2).sum())
    assert gain == pytest.approx(0.5, abs=0.01)
    np.testing.assert_allclose(value[middle], gain * sine[middle], atol=2e-3)
    cosine = np.cos(w * t)[middle, None]
    np.testing.assert_allclose(slope[middle] / w, gain * cosine, atol=0.02)
    np.testing.assert_allclose(bend[middle] / w**2, -gain * sine[middle], atol=0.04)


def motion(frequencies, rate, noise=0.0, seconds=40.0):
    t = np.arange(int(seconds * rate)) / rate
    out = np.stack([sum(np.sin(2 * np.pi * f * t + f) for f in own) + 0 * t for own in frequencies])
    return (out + noise * np.random.default_rng(0).normal(size=out.shape)).T


@pytest.mark.parametrize(
    ("frequencies", "rate", "noise", "cutoff", "why"),
    [
        ([[0.1, 0.5]], 200.0, 1e-5, 5.0, "the least that keeps friction's reversals; the motion "
         "ends at 0.6 Hz"),
        ([[0.5, 2.0], [0.3, 2.1]], 200.0, 1e-6, 8.8, "where the motion sinks into the noise"),
        ([[0.5, 2.0]], 30.0, 1e-6, 6.0, "a fifth of the sampling rate 30 Hz"),
        ([[]], 200.0, 1e-3, 5.0, "no joint moves above its noise"),
        ([[]], 10.0, 1e-3, 2.0, "no joint moves above its noise"),
    ],
)  # fmt: skip
def test_cutoffs_follow_the_motion(frequencies, rate, noise, cutoff, why):
    found = choose_cutoff(motion(frequencies, rate, noise), rate)
    assert found.frequency == pytest.approx(cutoff, rel=0.06)
    assert found.reason.startswith(why)


def test_a_short_log_has_no_spectrum():
    for samples, moves in ((65, True), (64, False)):
        found = choose_cutoff(motion([[4.0]], 100.0)[:samples], 100.0)
        assert (found.reason == "no joint moves above its noise") != moves
