"""The low-pass of both sides: its gain, its rows, and that it is one and the same."""

import numpy as np
import pytest

from feasid.core.errors import InputError
from feasid.identification.regression.low_pass import DENSITY, GaussianLowPass


def test_gain_is_half_at_the_cutoff():
    window = GaussianLowPass(8.0, 1000.0)
    at = np.arange(-window.half_width, window.half_width + 1) / window.rate
    for frequency, gain in ((0.0, 1.0), (8.0, 0.5), (16.0, 0.5**4)):
        found = window.taps @ np.cos(2 * np.pi * frequency * at)
        assert found == pytest.approx(gain, abs=1e-3)  # the cut at 1e-4 of the peak


@pytest.mark.parametrize(
    ("rate", "cutoff", "samples"), [(1000, 8, 3001), (200, 5, 700), (50, 8, 64)]
)
def test_rows_are_those_of_the_whole_convolution(rate, cutoff, samples):
    window = GaussianLowPass(cutoff, rate)
    signal = np.random.default_rng(0).standard_normal((3, samples))
    whole = np.stack([np.convolve(x, window.taps, "valid") for x in signal])
    centres = np.concatenate(list(window.row_groups(samples, 400)))
    np.testing.assert_array_equal(centres, window.kept_rows(samples))
    rows = []
    for group in window.row_groups(samples, 400):
        part = signal[:, group[0] - window.half_width : group[-1] + window.half_width + 1]
        rows.append(window.decimating_filter().filter_rows(part, len(group)))
    np.testing.assert_allclose(np.hstack(rows), whole[:, centres - window.half_width], atol=1e-13)
    assert window.spacing == max(1, round(rate / (DENSITY * cutoff)))


def test_a_cutoff_that_the_rate_cannot_show_is_refused():
    with pytest.raises(InputError, match="half the sampling rate, 7 Hz"):
        GaussianLowPass(8.0, 14.0)
