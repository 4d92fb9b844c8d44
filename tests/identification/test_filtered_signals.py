"""Fits of filtered signals are biased, and say so."""

import numpy as np
import pytest
from seeds import NEW_SEEDS, seed_of

import feasid
from benchmarks.simulated import hidden
from feasid.core.errors import InputError


def deviations(fit, arm):
    """Errors of base parameters in standard errors, the root of their mean square."""
    off = fit.base.K @ fit.delta - arm.truth(fit.base)
    return np.sqrt(np.mean((off / fit.base_table["std"].to_numpy()) ** 2))


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("seed", NEW_SEEDS)
def test_filtered_signals_are_biased_and_the_fit_doubts(seed):
    arm = hidden("ur5", seed_of(seed))
    plain = {"diagnose": False, "candidates": (), "calibration": None}
    fit = feasid.fit(arm.log, arm.robot, filtering="signals", **plain)
    usual = feasid.fit(arm.log, arm.robot, **plain)
    assert deviations(fit, arm) > 1.5 * deviations(usual, arm)  # why there is a doubt
    assert "biased" in [note.code for note in fit.quality.reasons]
    assert fit.quality.level != "good"
    assert "biased" not in [note.code for note in usual.quality.reasons]
    with pytest.raises(InputError, match="filtering='signals'"):
        feasid.ExternalTorque(fit, 500.0, "1/hour")


def test_reduced_signals_stay_biased_in_a_file(tmp_path):
    arm = hidden("ur5", 1)
    terms = arm.robot.with_joint_terms()
    feasid.reduce(arm.log, terms, filtering="signals").save(tmp_path / "log.reduced")
    fit = feasid.fit(tmp_path / "log.reduced", terms)
    assert "biased" in [note.code for note in fit.quality.reasons]
