"""What cannot be asked of a fit is refused by name, and the message says what to do."""

from __future__ import annotations

import numpy as np
import pytest
from logs import arm_and_log
from thorough import some

import feasid
from feasid.core.errors import InputError, LogError, NotEnoughDataError

ROUND = (1, 0, 0, 1, 0, 1, 0, 0, 0, 1.0)
FLAT = (1, 0, 0, 1, 0, 5, 0, 0, 0, 1.0)
"""No mass distribution has a principal inertia larger than the sum of the others."""

QUICK = {"friction": ("viscous", "coulomb", "offset"), "diagnose": False}


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    return arm_and_log(tmp_path_factory.mktemp("bad"), 1500, 0.01)


def assert_refused(arm, kind, options, words, change=None):
    robot, log = arm
    with pytest.raises(kind) as error:
        feasid.fit(change(log) if change else log, robot, **QUICK, **options)
    assert [w for w in words if w not in str(error.value)] == []


def three(one, second=ROUND):
    return np.concatenate([one, second, one])


REFERENCES = {
    "impossible": (three(ROUND, FLAT), ["pseudo-inertia of rod", "feasid.correct"]),
    "negative": (-three(ROUND), ["pseudo-inertia of upper", "feasid.correct"]),
    "of another robot": (np.tile(ROUND, 2), ["each of 3 bodies", "robot.names", "got 20"]),
    "by rows of another robot": (np.ones((7, 10)), ["each of 3 bodies", "got 70"]),
}


@pytest.mark.parametrize("what", REFERENCES)
def test_a_reference_that_cannot_be(arm, what):
    reference, words = REFERENCES[what]
    assert_refused(arm, InputError, {"reference": reference}, words)


BOUNDS = {
    "one": ({"mass": {"upper": (5, 1)}}, ["mass of upper", "lower 5", "upper 1"]),
    "sum": (
        {"mass": {"upper": (5, 9)}, "total_mass": 2},
        ["total mass upper", "mass of upper lower", "cannot hold together", "widen or leave out"],
    ),
    "pair": (
        {"mass": {"upper": (5, 9)}, "mass_sums": {"two": (("upper", "rod"), 0, 1)}},
        ["mass of upper lower", "two upper", "cannot hold together"],
    ),
    "box": ({"com_box": {"upper": ((1, 1, 1), (-1, -1, -1))}}, ["upper", "box", "empty"]),
    "linear": ({"linear": {"x": ({("upper", "m"): 1.0}, 3, 2)}}, ["'x'", "lower 3", "upper 2"]),
    "known": ({"known": {"wheel": FLAT}}, ["known values break pseudo-inertia of wheel"]),
    "known mass": (
        {"known": {"wheel": ROUND}, "mass": {"wheel": (2, 3)}},
        ["known values break mass of wheel lower"],
    ),
}


@pytest.mark.parametrize("what", some(BOUNDS, *(b for b in BOUNDS if b != "pair")))
def test_bounds_that_exclude_each_other(arm, what):
    assert_refused(arm, InputError, *BOUNDS[what])


def every(log, step):
    return log.iloc[::step].reset_index(drop=True)


def in_runs(log, rows):
    return log.assign(run=np.arange(len(log)) // rows)


SHORT = {
    "prior": (InputError, {"prior": "bogus"}, lambda x: "never opened.csv", ["prior must be one"]),
    "block": (InputError, {"robust": "huber", "block": 0.02}, None,
              ["block of 0.02 s is shorter than the filter at 8 Hz", "give block=0.21"]),
    "rate": (LogError, {}, lambda log: every(log, 20),
             ["rate of 10 Hz is below twice the equations' bandwidth of 8 Hz", "cutoff=2"]),
    "cut-off": (InputError, {"cutoff": 150.0}, None, ["half the sampling rate, 100 Hz", "150"]),
    "cut-off of signals": (InputError, {"cutoff": 150.0, "filtering": "signals"}, None,
                           ["half the sampling rate, 100 Hz", "150"]),
    "derivatives": (InputError, {"derivative_cutoff": 150.0}, None,
                    ["half the sampling rate, 100 Hz", "150"]),
    "runs": (NotEnoughDataError, {}, lambda log: in_runs(log, 10),
             ["the longest has 10", "record longer"]),
    "runs shorter than the filter": (NotEnoughDataError, {}, lambda log: in_runs(log, 30),
                                     ["as long as the equations' filter at 8 Hz", "cut-off"]),
}  # fmt: skip


@pytest.mark.parametrize("what", SHORT)
def test_what_the_filter_does_not_fit_into(arm, what):
    kind, options, change, words = SHORT[what]
    assert_refused(arm, kind, options, words, change)


def test_a_remedy_that_is_named_works(arm):
    robot, log = arm
    slow = feasid.fit(every(log, 20), robot, **QUICK, cutoff=2.0)
    assert {r.code for r in slow.quality.reasons} <= {"short"}
    robust = feasid.fit(log, robot, **QUICK, robust="huber", block=0.21)
    assert {r.code for r in robust.quality.reasons} <= {"short"}
