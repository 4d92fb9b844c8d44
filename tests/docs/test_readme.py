"""The README's numbers are those that ``python -m benchmarks.readme`` prints."""

import re

import pytest

from benchmarks import readme

NUMBER = r"\d+(?:\.\d+)?"

ROUNDING = 0.02
"""Relative difference of printed numbers: two or three digits, and other BLAS libraries."""


def numbers(text):
    return [float(x) for x in re.findall(NUMBER, text)]


def test_the_table_is_that_of_the_leagues_results():
    assert readme.in_readme("league") == readme.league_block()


def test_the_output_of_the_demo_is_what_it_prints_today():
    pytest.importorskip("mujoco")
    shown, printed = readme.in_readme("demo"), readme.demo_block()
    assert re.sub(NUMBER, "#", shown) == re.sub(NUMBER, "#", printed)
    assert numbers(shown) == pytest.approx(numbers(printed), rel=ROUNDING)


@pytest.mark.slow
def test_the_caption_of_the_picture_is_what_the_simulation_gives():
    pytest.importorskip("mujoco")
    assert numbers(readme.in_readme("wam")) == pytest.approx(numbers(readme.wam_block()), rel=0.1)
