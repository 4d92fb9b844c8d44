"""Charts in pages: points stand at their numbers, ticks are on the axis, names stay text."""

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from feasid.core.charts import Chart, Panel, Series, svg

NUMBERS = st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 6)), min_size=2, max_size=9)


def drawn(panel):
    """The axis' numbers with their places, and the points of the first series."""
    text = svg(Chart("", "points", [panel]))
    middle = re.findall(r'<text x="(-?\d+)"[^>]*text-anchor="middle">(-?[\d.e+-]+)</text>', text)
    points = re.findall(r"M(-?[\d.]+),(-?[\d.]+)h0", text)
    return [(float(v), float(x)) for x, v in middle], [float(x) for x, _ in points]


@pytest.mark.parametrize("scale", ["", "log", 1.0])
@given(values=NUMBERS)
def test_points_stand_between_the_ticks_around_them(scale, values):
    x = np.unique(np.abs(values) + 1e-3 if scale == "log" else values)
    ticks, places = drawn(Panel([Series(x, 0 * x, mark="o")], scales=(scale, "")))
    assert len(places) == len(x)
    assert sorted(places) == places
    assert sorted(ticks) == ticks
    for (low, left), (high, right) in pairwise(ticks):
        inside = [p for v, p in zip(x, places, strict=True) if low <= v <= high]
        assert all(left - 1 <= p <= right + 1 for p in inside)  # labels stand on whole units


def test_names_stay_text_and_gaps_are_gaps():
    curve = Series([0, 1, 2, 3], [0, 1, np.nan, 2], label="<b>")
    text = svg(Chart("", "", [Panel([curve], "<i>&", names=(("<a>", "b", "c", "d"), ()))]))
    assert not re.search("<b>|<i>|<a>", text)
    assert "&lt;b&gt;" in text
    assert len(re.findall(r'<g class="c4477aa"><path d="M[^"]*L[^"]*M[^"]*"', text)) == 1
