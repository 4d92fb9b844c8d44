"""Differences, delays, ends and rests of a stretch, by their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import butter, sosfiltfilt

from feasid.core.errors import InputError, LogError
from feasid.logs import derivatives, filters
from feasid.logs.clock import Stretch, even_grid
from feasid.logs.derivatives import SignalProcessing, process_stretch
from feasid.logs.filters import smooth_and_differentiate

RATE = 100.0
FAST = 500.0

PASSBAND = 2e-4
"""Relative error of derivatives at a tenth of the cut-off."""

HALF = 1e-3
"""How near 1/2 the gain at the cut-off is."""

EXACT = 1e-9  # rounding of second differences of numbers of order one, times the rate squared


def polynomial(coefficients, n=40):
    t = np.arange(n) / RATE
    wanted = [np.polynomial.Polynomial(coefficients).deriv(k)(t)[:, None] for k in range(3)]
    return t, *wanted


def test_first_differences_are_exact_on_parabolas_to_the_very_ends():
    _, q, dq, _ = polynomial([0.3, -1.2, 2.5])
    np.testing.assert_allclose(filters.first_difference(q, RATE), dq, atol=EXACT)


def test_second_differences_are_exact_on_cubics_and_repeat_at_the_ends():
    _, q, _, ddq = polynomial([0.3, -1.2, 2.5, 4.0])
    found = filters.second_difference(q, RATE)
    np.testing.assert_allclose(found[1:-1], ddq[1:-1], atol=EXACT)
    assert (found[0], found[-1]) == (found[1], found[-2])


def test_a_filter_settles_in_one_period_of_its_cutoff():
    assert filters.settling_samples(10.0, 500.0) == 50
    assert filters.settling_samples(10.0, 500.0 * (1 + 1e-9)) == 50  # rates carry rounding
    assert filters.settling_samples(30.0, 1000.0) == 34


@pytest.mark.parametrize("cutoff", [0.0, -1.0, 50.0, 60.0, np.nan, np.inf])
def test_cutoffs_that_are_none_are_refused(cutoff):
    with pytest.raises(InputError, match="between 0 and half the sampling rate, 50 Hz"):
        smooth_and_differentiate(np.zeros((100, 1)), 0, cutoff, RATE)
    filters.check_cutoff(49.999, RATE)
    filters.check_cutoff(1e-9, RATE)


def test_three_samples_can_be_filtered_and_two_cannot():
    assert filters.low_pass(np.ones(3), 5.0, RATE) == pytest.approx(np.ones(3))
    with pytest.raises(InputError, match="cannot filter 2 samples"):
        filters.low_pass(np.ones(2), 5.0, RATE)


def test_the_ends_of_a_filtered_signal_are_those_of_one_that_goes_on():
    """Reflected about its end, the signal goes on for as long as the filter remembers."""
    t = np.arange(400) / RATE
    x = 1.0 + t + 0.2 * np.sin(2 * np.pi * 1.0 * t)
    before, after = 2 * x[0] - x[:0:-1], 2 * x[-1] - x[-2::-1]
    longer = filters.low_pass(np.concatenate([before, x, after]), 4.0, RATE)
    ours = filters.low_pass(x, 4.0, RATE)
    np.testing.assert_allclose(ours, longer[399:799], atol=3e-4)  # exp(-3 pi) of the amplitudes


@pytest.mark.parametrize(("n", "cutoff", "extension"), [(400, 10.0, 30), (20, 1.0, 18)])
def test_ends_are_reflected_for_three_periods_or_as_far_as_there_are_samples(n, cutoff, extension):
    x = np.cumsum(np.random.default_rng(n).normal(size=n))
    before, after = 2 * x[0] - x[extension:0:-1], 2 * x[-1] - x[-2 : -extension - 2 : -1]
    sections = butter(3, cutoff, fs=RATE, output="sos")
    longer = sosfiltfilt(sections, np.concatenate([before, x, after]), padlen=0)
    wanted = longer[extension : extension + n]
    np.testing.assert_allclose(filters.low_pass(x, cutoff, RATE), wanted, atol=EXACT)


def gain(frequency, cutoff, derivative=0):
    t = np.arange(6000) / FAST
    w = 2 * np.pi * frequency
    parts = smooth_and_differentiate(np.sin(w * t)[:, None], derivative, cutoff, FAST)
    out = parts[derivative][:, 0]
    wanted = [np.sin(w * t), w * np.cos(w * t), -w * w * np.sin(w * t)][derivative]
    middle = slice(1000, -1000)
    return float(out[middle] @ wanted[middle] / (wanted[middle] @ wanted[middle]))


def test_gain_is_one_below_half_at_and_little_above_the_cutoff():
    for derivative in range(3):
        assert gain(1.0, 10.0, derivative) == pytest.approx(1, abs=PASSBAND)
    assert gain(10.0, 10.0) == pytest.approx(0.5, abs=HALF)
    assert abs(gain(40.0, 10.0)) < 0.12


def test_no_phase_shift():
    t = np.arange(4000) / FAST
    w = 2 * np.pi * 4.0
    out = smooth_and_differentiate(np.sin(w * t)[:, None], 0, 10.0, FAST)[0][:, 0]
    middle = slice(800, -800)
    quadrature = out[middle] @ np.cos(w * t[middle]) / len(t[middle])
    assert abs(quadrature) < 1e-3


@settings(max_examples=25, deadline=None)
@given(coefficients=st.lists(st.floats(-3, 3), min_size=2, max_size=2), cutoff=st.floats(3, 60))
def test_straight_lines_pass_unchanged(coefficients, cutoff):
    t = np.arange(800)[:, None] / FAST
    line = coefficients[0] + coefficients[1] * t
    x, slope, bend = smooth_and_differentiate(line, 2, cutoff, FAST)
    ends = filters.settling_samples(cutoff, FAST)
    inside = slice(ends, len(t) - ends)
    np.testing.assert_allclose(x[inside], line[inside], atol=1e-4)
    np.testing.assert_allclose(slope[inside], coefficients[1], atol=1e-4 * cutoff)
    np.testing.assert_allclose(bend[inside], 0, atol=1e-3 * cutoff**2)


# -- the automatic cut-off ------------------------------------------------------------------------


def moving(frequency, rate, n=4000, noise=1e-7):
    t = np.arange(n) / rate
    q = np.sin(2 * np.pi * frequency * t) + noise * np.random.default_rng(0).normal(size=n)
    return filters.choose_cutoff(q[:, None], rate)


def test_the_cutoff_is_five_times_the_motion_with_two_digits():
    t = np.arange(20_000) / 1000.0
    q = np.sin(2 * np.pi * 1.5 * t) + np.sin(2 * np.pi * 3.0 * t)
    q += 1e-3 * np.sin(2 * np.pi * 6.0 * t)  # seen, and too little to count as motion
    found = filters.choose_cutoff(q[:, None], 1000.0)
    assert found.frequency == pytest.approx(15.0, rel=0.1)
    assert found.frequency == float(f"{found.frequency:.2g}")
    assert found.reason.startswith("5 times the motion's highest frequency 3")


def test_slow_motions_keep_the_least_and_fast_ones_stay_below_a_fifth_of_the_rate():
    slow = moving(0.3, 1000.0, n=20_000)
    least = "the least that keeps friction's reversals; the motion ends at 0.5 Hz"
    assert (slow.frequency, slow.reason) == (5.0, least)  # four lines of smoothing above 0.3 Hz
    fast = moving(8.0, 100.0)
    assert (fast.frequency, fast.reason) == (20.0, "a fifth of the sampling rate 100 Hz")
    for rate, cutoff in ((20.0, 4.0), (200.0, 5.0)):
        for noise in (0.0, 1e-6, 1e-3):
            signal = noise * np.random.default_rng(0).normal(size=(2000, 2))
            still = filters.choose_cutoff(signal, rate)
            assert (still.frequency, still.reason) == (cutoff, "no joint moves above its noise")


def test_a_cutoff_ends_where_the_motion_sinks_into_the_noise():
    found = moving(4.0, 1000.0, noise=0.05)
    assert found.frequency < 5 * 4.0
    assert found.reason == "where the motion sinks into the noise"


def test_the_fastest_joint_decides():
    t = np.arange(20_000) / 1000.0
    q = np.sin(2 * np.pi * np.array([[0.5], [4.0], [1.0]]) * t).T
    assert filters.choose_cutoff(q, 1000.0).frequency == pytest.approx(20.0, rel=0.15)


@pytest.mark.parametrize(("n", "judged"), [(64, False), (65, True)])
def test_a_spectrum_needs_its_samples(n, judged):
    t = np.arange(n) / RATE
    found = filters.choose_cutoff(np.sin(2 * np.pi * 4.0 * t)[:, None], RATE)
    assert (found.reason != "no joint moves above its noise") == judged


@pytest.mark.parametrize(("second", "cutoff"), [(2.9, 3 * 2.98), (3.3, 5.0)])
def test_what_stands_out_beyond_an_octave_and_a_hertz_is_no_motion(second, cutoff):
    t = np.arange(10_000) / RATE
    q = np.sin(2 * np.pi * t) + np.sin(2 * np.pi * second * t)
    q += 1e-3 * np.random.default_rng(0).normal(size=len(t))
    assert filters.choose_cutoff(q[:, None], RATE).frequency == pytest.approx(cutoff, abs=0.2)


@pytest.mark.parametrize("cutoff", [None, 8.0])
@pytest.mark.parametrize("derivatives", [0, 1, 2])
def test_so_many_derivatives_as_were_asked_for(cutoff, derivatives):
    x = np.random.default_rng(0).normal(size=(60, 2))
    found = smooth_and_differentiate(x, derivatives, cutoff, RATE)
    whole = smooth_and_differentiate(x, 2, cutoff, RATE)
    if cutoff is None:
        whole = x, filters.first_difference(x, RATE), filters.second_difference(x, RATE)
    assert len(found) == derivatives + 1
    for a, b in zip(found, whole, strict=False):
        np.testing.assert_array_equal(a, b)


# -- one stretch ----------------------------------------------------------------------------------


def ran(how, n=200, kinds=("q", "tau"), mask=None, values=None):
    """Runs and excluded rows of one stretch of these values, or of a sine of 3 rad/s."""
    t = np.arange(n) / RATE
    sine = {"q": np.sin(3 * t), "dq": 3 * np.cos(3 * t), "ddq": -9 * np.sin(3 * t), "tau": t}
    values = values or {k: sine[k][:, None] for k in kinds}
    mask = np.zeros(n, dtype=bool) if mask is None else mask
    return process_stretch(t, values, Stretch("a", np.arange(n), RATE), how, mask)


@pytest.mark.parametrize(
    ("how", "kinds", "ends"),
    [
        (SignalProcessing(None), ("q", "tau"), 1),
        (SignalProcessing(None), ("q", "dq", "ddq", "tau"), 0),
        (SignalProcessing(10.0), ("q", "tau"), 10),
        (SignalProcessing(10.0, trim=0.0), ("q", "tau"), 1),
        (SignalProcessing(10.0, trim=0.031), ("q", "tau"), 4),
        (SignalProcessing(10.0, delay=0.02), ("q", "tau"), 10),
        (SignalProcessing(None, delay=0.02), ("q", "tau"), 3),
        (SignalProcessing(None, delay=-0.021), ("q", "tau"), 4),
        (SignalProcessing(None, delay=-0.021), ("q", "dq", "ddq", "tau"), 3),
        (SignalProcessing(30.0, trim=0.01, delay=0.05), ("q", "tau"), 6),
    ],
)
def test_so_many_samples_are_cut_from_the_ends(how, kinds, ends):
    (run,), left_out = ran(how, kinds=kinds)
    np.testing.assert_array_equal(run.rows, np.arange(ends, 200 - ends))
    assert len(left_out) == (2 if ends else 0)


@pytest.mark.parametrize(("n", "kept"), [(27, 0), (28, 8)])
def test_a_stretch_keeps_eight_samples_or_none(n, kept):
    runs, left_out = ran(SignalProcessing(10.0), n)
    assert sum(len(run.rows) for run in runs) == kept
    assert any("too short" in e.reason for e in left_out) == (kept == 0)


def test_excluded_rows_take_their_neighbours_with_them_only_where_a_filter_smears():
    mask = np.zeros(200, dtype=bool)
    mask[100] = True
    for cutoff, smear in ((None, 0), (10.0, 10)):
        runs, _ = ran(SignalProcessing(cutoff), mask=mask)
        assert [len(runs), runs[0].rows[-1], runs[1].rows[0]] == [2, 99 - smear, 101 + smear]


def test_decimated_rows_and_their_anchor():
    (run,), _ = ran(SignalProcessing(None, trim=0.05, decimate=4))
    np.testing.assert_array_equal(run.rows, np.arange(5, 195, 4))
    assert (run.rate, run.anchor) == (RATE / 4, 1)


def test_what_is_derived_is_said_by_what_is_there():
    for kinds in (("q",), ("q", "dq"), ("q", "dq", "ddq"), ("q", "ddq")):
        (run,), _ = ran(SignalProcessing(None), kinds=kinds)
        np.testing.assert_allclose(run.dq[:, 0], 3 * np.cos(3 * run.t), atol=1e-3)
        np.testing.assert_allclose(run.ddq[:, 0], -9 * np.sin(3 * run.t), atol=1e-2)
        assert np.isnan(run.tau).all()


def test_rests_are_rests_only_where_a_filter_left_its_ripple():
    t = np.arange(200) / RATE
    values = {"q": 1e-5 * np.sin(3 * t)[:, None]}  # slower than 1e-3 rad/s
    for how, still in (
        (SignalProcessing(10.0), True),
        (SignalProcessing(None), False),
        (SignalProcessing(10.0, rest=0.0), False),
    ):
        (run,), _ = ran(how, values=values)
        assert (not run.dq.any()) == still
        assert run.band == how.cutoff


def test_accelerations_that_were_measured_are_filtered_and_not_derived():
    t = np.arange(400) / RATE
    ripple = np.sin(2 * np.pi * 30 * t)[:, None]
    for cutoff, left in ((None, 0.95), (5.0, 0.0)):
        values = {k: ripple.copy() for k in ("q", "dq", "ddq")}
        (run,), _ = ran(SignalProcessing(cutoff), 400, values=values)
        for signal in (run.q, run.dq, run.ddq):
            assert np.abs(signal).max() == pytest.approx(left, abs=0.06)


@pytest.mark.parametrize("filtered", [None, True, False])
def test_torques_are_filtered_unless_told_otherwise(filtered):
    t = np.arange(400) / RATE
    values = {"q": np.sin(3 * t)[:, None], "tau": np.sin(2 * np.pi * 30 * t)[:, None]}
    option = {} if filtered is None else {"filter_torque": filtered}
    (run,), _ = ran(SignalProcessing(5.0, **option), 400, values=values)
    assert np.abs(run.tau).max() == pytest.approx(0.95 if filtered is False else 0, abs=0.06)


@pytest.mark.parametrize(("samples", "rests"), [(4, False), (5, True)])
def test_a_joint_rests_that_is_slow_for_a_twentieth_of_a_second(samples, rests):
    velocity = np.ones((30, 2))
    velocity[10 : 10 + samples, 1] = 0.0009
    found = derivatives._find_rest(velocity, 1e-3, RATE)
    wanted = np.zeros((30, 2), dtype=bool)
    wanted[10 : 10 + samples, 1] = rests
    np.testing.assert_array_equal(found, wanted)
    ends = np.zeros((6, 1))
    assert derivatives._find_rest(ends, 1e-3, RATE).all()
    assert not derivatives._find_rest(ends + 1e-3, 1e-3, RATE).any()  # as fast as that is no rest
    assert not derivatives._find_rest(np.zeros((1, 1)), 1e-3, 1.0).any()  # one sample is none


def test_cutoffs_of_equations():
    fast, slow = (Stretch("a", np.arange(100), rate) for rate in (1000.0, 15.9))
    assert derivatives.equation_cutoff([fast], None) == derivatives.EQUATION_CUTOFF
    assert derivatives.equation_cutoff([], None) == derivatives.EQUATION_CUTOFF
    assert derivatives.equation_cutoff([Stretch("a", np.arange(9), 20.0)], None) == 4.0
    assert derivatives.equation_cutoff([Stretch("a", np.arange(9), 16.0)], None) == 3.2
    with pytest.raises(LogError, match=r"rate of 15\.9 Hz is below twice"):
        derivatives.equation_cutoff([slow], None)
    assert derivatives.equation_cutoff([fast], 20) == 20.0
    with pytest.raises(InputError, match="half the sampling rate"):
        derivatives.equation_cutoff([fast], 500.0)
    with pytest.raises(LogError, match="must be a frequency"):
        derivatives.equation_cutoff([fast], False)
    longest = derivatives.equation_cutoff([Stretch("b", np.arange(3), 20.0), fast], None)
    assert longest == derivatives.EQUATION_CUTOFF


def test_low_passes_before_derivatives():
    assert SignalProcessing(7.0).low_pass_cutoff(1000.0) == 7.0
    whole = {"cutoff": 7.0, "filtering": "equations"}
    assert SignalProcessing(**whole).low_pass_cutoff(1000.0) == derivatives.DERIVATIVE_CUTOFF
    assert SignalProcessing(**whole).low_pass_cutoff(50.0) == 20.0
    assert SignalProcessing(**whole, derivatives=12.0).low_pass_cutoff(1000.0) == 12.0
    assert SignalProcessing(**whole, complete=True).low_pass_cutoff(1000.0) is None


def test_the_cutoff_of_a_log_is_the_middle_one_of_its_longest_stretches():
    rate, n = 1000.0, 10_000
    t = np.arange(n) / rate
    parts = [np.sin(2 * np.pi * f * t) for f in (2.0, 6.0, 3.0)]
    short = np.sin(2 * np.pi * 12.0 * t[: n // 2 - 1])  # under half the longest: not asked
    q = np.concatenate([*parts, short])[:, None]
    stretches = [Stretch("a", np.arange(k * n, (k + 1) * n), rate) for k in range(3)]
    stretches.append(Stretch("b", np.arange(3 * n, len(q)), rate))
    frequency, (note,) = derivatives.find_cutoff({"q": q}, stretches, None)
    assert frequency == pytest.approx(15.0, rel=0.15)
    assert note.code == "cutoff"
    assert derivatives.find_cutoff({"q": q}, stretches, False) == (None, [])
    assert derivatives.find_cutoff({"q": q}, stretches, 9) == (9.0, [])
    assert derivatives.find_cutoff({"q": q, "dq": q, "ddq": q}, stretches, None) == (None, [])
    assert derivatives.find_cutoff({"q": q, "dq": q}, stretches, None)[0] == frequency
    single = [Stretch("a", np.arange(1), np.nan)]
    assert derivatives.find_cutoff({"q": q}, single, None) == (None, [])
    assert derivatives.find_cutoff({"q": q}, [Stretch("a", np.arange(2), rate)], 9) == (9.0, [])
    lonely = [Stretch("c", np.arange(1), 10.0), *stretches]
    assert derivatives.find_cutoff({"q": q}, lonely, None)[0] == frequency
    # 9 Hz is below half the rate of the longest one.
    assert derivatives.find_cutoff({"q": q}, lonely, 9) == (9.0, [])
    with pytest.raises(InputError):
        derivatives.find_cutoff({"q": q}, stretches, rate / 2)


# -- even grids -----------------------------------------------------------------------------------


def test_the_sample_nearest_to_each_time():
    t = np.array([0.0, 1.0, 2.0, 5.0, 6.0]) / RATE
    grid = even_grid(t)
    np.testing.assert_allclose(grid.t, np.arange(7) / RATE, atol=1e-15)
    np.testing.assert_array_equal(grid.nearest, [0, 1, 2, 2, 3, 3, 4])
    assert (grid.bridged, grid.uneven) == (2, False)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_few_samples_are_their_own_grid(n):
    t = np.arange(n) / RATE
    grid = even_grid(t)
    np.testing.assert_allclose(grid.t, t)
    np.testing.assert_array_equal(grid.nearest, np.arange(n))
    assert (grid.bridged, grid.uneven) == (0, False)


def test_a_gap_is_bridged_by_a_cubic_in_positions_and_a_line_in_torques():
    for places in ([0, 1, 2, 4, 5, 6], [1, 2, 4, 5]):  # four samples make a cubic
        cubic = np.array(places)[:, None] ** 3.0
        grid, gap = even_grid(np.array(places) / RATE), 3 - places[0]
        np.testing.assert_allclose(grid.resample("q", cubic)[gap], 27.0)
        np.testing.assert_allclose(grid.resample("tau", cubic)[gap], (8 + 64) / 2)


@pytest.mark.parametrize(("share", "uneven"), [(0.015, False), (0.03, True)])
def test_stamps_lie_on_the_grid_within_a_fiftieth_of_a_step(share, uneven):
    t = np.arange(200) / RATE
    t[50] += share / RATE
    assert even_grid(t + 1e-5 * np.random.default_rng(0).uniform(size=200)).uneven == uneven
