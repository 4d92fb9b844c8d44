"""A delay of a fraction of a sample is found, taken out and counted in deviations."""

from dataclasses import replace

import numpy as np
import pytest

import feasid
from benchmarks.simulated import RATE, Conditions, hidden
from feasid.identification.estimation.noise import LONGEST_DELAY, Delay, find_delay

DEVIATIONS = 3.0  # 3 in 1000 by chance
SHARE = 0.2  # of a sample: three deviations of the worst of three arms


def told(fit):
    return [n for n in fit.notes if n.code == "sub-sample-delay"]


def test_half_a_sample_is_found_told_and_taken_out():
    late = hidden("ur5", 1, Conditions(delay=0.5 / RATE))
    fit = feasid.fit(late.log, late.robot, diagnose=False)
    (note,) = told(fit)
    assert note.values["delay"] * RATE == pytest.approx(0.5, abs=SHARE)
    assert "behind the motion" in note
    assert fit.delay == note.values["delay"]
    error = np.abs(fit.beta - late.truth(fit.base)) / fit.base_table["std"]
    assert np.mean(error < 1.96) > 0.88


def test_a_log_in_time_is_left_alone():
    arm = hidden("ur5", 1)
    fit = feasid.fit(arm.log, arm.robot, diagnose=False)
    assert not told(fit)
    delay = find_delay(feasid.reduce(arm.log, base=fit.base, filtering="equations"))
    assert abs(delay.value) * RATE < SHARE
    assert 0 < delay.deviation * RATE < 0.5  # known better than before the log was seen


@pytest.mark.slow
@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("samples", [3, -3])
def test_longer_delays_are_taken_out_unless_the_log_is_to_stay(samples):
    """Without calibration a delay that was measured and not taken out is in the notes."""
    arm = hidden("ur5", 1)
    late = arm.log.copy()
    columns = [f"tau_{j}" for j in arm.robot.joints]
    late[columns] = late[columns].shift(samples).bfill().ffill()
    fit = feasid.fit(late, arm.robot, diagnose=False)
    (entry,) = (e for e in fit.calibration.confirmed if e.at.kind == "delay")
    assert not [n for n in fit.notes if n.code == "long-delay"]
    assert abs(entry.value[0] * RATE - samples) < DEVIATIONS * entry.deviation[0] * RATE
    assert fit.log_options["delay"] == -entry.value[0]
    assert fit.delay * RATE == pytest.approx(samples, abs=SHARE)  # the whole of it
    fit = feasid.fit(late, arm.robot, diagnose=False, calibration=None)
    assert not told(fit)
    (note,) = [n for n in fit.notes if n.code == "long-delay"]
    assert ("behind" if samples > 0 else "ahead of") in note
    assert LONGEST_DELAY < note.values["delay"] * RATE * np.sign(samples) < 1.1 * abs(samples)
    delay = find_delay(feasid.reduce(late, base=fit.base, filtering="equations"))
    assert (delay.value, delay.deviation) == (0.0, 0.0)


def test_without_a_period_nothing_is_shifted():
    arm = hidden("ur5", 1)
    reduced = feasid.reduce(arm.log, arm.robot)
    for unknown in (replace(reduced, period=0.0), replace(reduced, strata=())):
        assert find_delay(unknown) == Delay()
