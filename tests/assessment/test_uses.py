"""Uses are granted where a fit is right on new motion, and not where its log is ruined."""

import numpy as np
import pandas as pd
import pytest
from thorough import some

import feasid
from benchmarks.verdict import MISTAKES, RIGHT, WRONG, predicted_torque, simulated
from feasid.core.errors import InputError, SolverError, UselessFitError
from feasid.identification.assessment import contact_errors
from feasid.identification.assessment.checks import FEED_FORWARD, GRADED, GRAVITY, NO, UNKNOWN, YES

QUICK = {"diagnose": False, "calibration": None, "candidates": ()}
"""Options without searches: grades come from the evidence alone."""

STRONG = ("sign", "two joints move", "amperes")
"""Mistakes that leave no use."""


def fitted(seed, mistake=""):
    """A fit of a simulated log, and its true relative error on new motion."""
    robot, log, new, tau, _ = simulated(seed, mistake)
    fit = feasid.fit(log, robot, **QUICK)
    return fit, np.linalg.norm(predicted_torque(fit, *new) - tau) / np.linalg.norm(tau)


@pytest.mark.sampled(0.34)
@pytest.mark.parametrize("mistake", some(MISTAKES, *MISTAKES))
def test_a_ruined_log_is_granted_nothing_that_is_wrong(mistake, tmp_path):
    fit, error = fitted(41, mistake)
    grades = fit.uses["grade"]
    if error > WRONG:
        assert YES not in {grades[u] for u in GRADED}, fit.uses
    if mistake in STRONG:
        assert {grades[u] for u in GRADED} == {NO}
        assert "DO NOT USE THIS MODEL" in repr(fit)
        with pytest.raises(UselessFitError):
            fit.write(tmp_path / "arm.urdf")
    else:
        assert fit.quality.level != "good" or error <= WRONG


def test_a_right_log_is_granted_what_it_shows_and_a_saved_fit_keeps_it(tmp_path):
    fit, error = fitted(42)
    assert error <= RIGHT
    assert {fit.uses["grade"][u] for u in (GRAVITY, FEED_FORWARD)} == {YES}
    assert fit.quality.level == "good"
    assert "!!" not in repr(fit)
    fit.save(tmp_path / "arm.fit")
    loaded = feasid.load(tmp_path / "arm.fit")
    for table in ("uses", "uses_by_joint"):
        pd.testing.assert_frame_equal(getattr(fit, table), getattr(loaded, table))


def test_the_kuka_reads_without_alarm_and_one_sentence_speaks_of_its_wrists():
    df = feasid.datasets.load("kuka_lwr4")
    fit = feasid.fit(df, **{**df.attrs["options"], **QUICK})
    text = repr(fit)
    assert fit.quality.level == "good"
    assert "!!" not in text
    assert text.count("lwr_6_joint carry little") == 1
    assert list(fit.uses["grade"][[GRAVITY, FEED_FORWARD]]) == [YES, YES]


def test_a_part_of_the_log_without_a_model_leaves_contact_unknown(monkeypatch):
    """Such as under a heavy prior: everything else of the fit is shown."""

    def unsolved(*_):
        raise SolverError("the minimum of this problem was not found")

    monkeypatch.setattr(contact_errors, "measure_error_law", unsolved)
    fit, _ = fitted(42)
    assert fit.uses["grade"]["contact"] == UNKNOWN
    with pytest.raises(InputError, match="thresholds need models of parts of the log"):
        fit.error_law(5.0)
