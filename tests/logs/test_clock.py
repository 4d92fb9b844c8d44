"""Time stamps of small logs, worked out by hand: numbers and what is said."""

import re

import numpy as np
import pandas as pd
import pytest

from feasid.core.errors import LogError
from feasid.logs.clock import check_order, read_time, run_labels, split_at_gaps

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
