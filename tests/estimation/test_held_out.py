"""Gains of one model over another on rows that neither saw, and the one table of thresholds."""

import re
from pathlib import Path

import numpy as np
import pytest

import feasid
from feasid.identification.estimation.held_out import Gain, HeldOut, Rule

RNG = np.random.default_rng(0)
SOURCE = Path(feasid.__file__).parent
DECIDING = ("identification/effects", "applications/diagnosis", "identification")


def errors(scale, blocks=30, joints=3):
    """Squared errors with a size of their own per joint."""
    return HeldOut(RNG.chisquare(10, (blocks, joints)) * np.square(scale))


def test_a_gain_is_a_share_of_errors_whatever_their_units():
    before = errors([1.0, 10.0, 0.01])
    after = HeldOut(before.squared * np.square([0.5, 1.0, 0.8]))
    gain = after.gain(over=before)
    np.testing.assert_allclose(gain.by_joint, [0.5, 0.0, 0.2])
    assert gain.share == pytest.approx(1 - (0.5 * 0.8) ** (1 / 3))
    assert gain.most == pytest.approx(0.5)
    old, new = before.squared.sum(), after.squared.sum()
    assert gain.total == pytest.approx(1 - np.sqrt(new / old))
    unit = np.square([3.0, 0.2, 1e4])
    other = HeldOut(after.squared * unit).gain(over=HeldOut(before.squared * unit))
    assert other.share == pytest.approx(gain.share)
    assert other.deviations == pytest.approx(gain.deviations)


def test_certainty_counts_blocks_and_not_their_loudness():
    quiet, loud = errors(1.0), errors(1.0).squared.copy()
    loud[0] *= 1e4
    assert HeldOut(0.8 * quiet.squared).gain(over=quiet).deviations > 20
    only_there = HeldOut(np.r_[loud[:1] * 0.5, loud[1:] * RNG.uniform(0.9, 1.12, loud[1:].shape)])
    gain = only_there.gain(over=HeldOut(loud))
    assert gain.share > 0.2
    assert gain.deviations < 3


def test_joints_without_errors_say_nothing():
    before = HeldOut(np.c_[np.ones(8), np.zeros(8)])
    gain = HeldOut(0.25 * before.squared).gain(over=before)
    np.testing.assert_allclose(gain.by_joint, [0.5, 0.0])
    assert gain.share == pytest.approx(0.5)
    assert HeldOut(0 * before.squared).gain(over=HeldOut(0 * before.squared)).share == 0.0


def test_rows_are_summed_by_block_and_joint():
    block, joint = np.array([0, 0, 1, 1]), np.array([2, 5, 2, 2])
    found = HeldOut.from_rows(np.array([1.0, 2.0, 3.0, 4.0]), block, joint)
    np.testing.assert_array_equal(found.squared, [[1.0, 4.0], [25.0, 0.0]])


@pytest.mark.parametrize(("rule", "passes"), [
    (Rule("", share=0.09), True), (Rule("", share=0.11), False),
    (Rule("", share=0.11, one_joint=0.15), True), (Rule("", share=0.01, deviations=1e3), False),
    (Rule("", share=0.01, total=0.2), False),
    (Rule("", share=0.01, total=0.05, deviations=3.0), True),
])  # fmt: skip
def test_a_rule_accepts_what_passes_all_of_it(rule, passes):
    before = errors(1.0, joints=2)
    wobble = RNG.normal(1.0, 0.01, before.squared.shape)
    after = HeldOut(before.squared * wobble * np.square([0.8, 1.0]))
    assert rule.accepts(Gain(before.squared, after.squared)) == passes


@pytest.mark.parametrize("room", DECIDING)
def test_no_threshold_of_a_gain_is_outside_the_table(room):
    number = re.compile(r"(?:GAIN\w* = [\d(.]|\b(?:gain|share)\w* *[<>]=? *0?\.\d)")
    found = [
        f"{path.name}: {line.strip()}"
        for path in sorted((SOURCE / room).glob("*.py"))
        for line in path.read_text().splitlines()
        if number.search(line)
    ]
    assert found == []
