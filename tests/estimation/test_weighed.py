"""Parameters that were weighed: equations of their own variance, in everything that follows."""

from dataclasses import replace

import numpy as np
import pytest

import feasid
from benchmarks.weighed import SMALLER, draw
from feasid.datasets import arm

ROUNDING = 1e-6  # of covariances: the prior has a small divergence besides, which is curved
OTHER_ROWS = 0.05  # the estimate counts correlated rows a little otherwise than its covariance


def fitted(seed=1, **options):
    robot = arm.described()
    plain = {"candidates": (), "calibration": None, "diagnose": False}
    return feasid.fit(arm.log(arm.truth(robot), seed), robot, **options, **plain)


@pytest.fixture(scope="module")
def fit():
    return fitted(known={"hand.m": (0.56, 0.01)})


def test_a_weighed_parameter_is_a_measurement_of_its_own_variance(fit):
    """Estimate and covariance are those of Kalman's update of a fit without it."""
    plain = fitted(2, prior=feasid.GaussianPrior.of(fit))
    kept, (weighed,) = plain.estimator.keep(plain.estimate), fit.estimator.weighed
    before, column, change = kept.fit(plain.equations), weighed.column(fit.robot), 0.01
    weighed = replace(weighed, value=before.delta[column] + change)
    after = replace(kept, weighed=(weighed,)).fit(plain.equations)
    C, size = before.covariance, np.sqrt(np.diag(before.covariance))
    gain = C[:, column] / (C[column, column] + weighed.deviation**2)
    difference = after.covariance - (C - np.outer(gain, C[column]))
    assert np.abs(difference / np.outer(size, size)).max() < ROUNDING
    moved, near = gain * change / size, OTHER_ROWS * np.abs(gain * change / size).max()
    assert (after.delta - before.delta) / size == pytest.approx(moved, abs=near)


@pytest.mark.parametrize("count", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_deviations_of_what_depends_on_it_shrink_and_hold_the_truth(count):
    draws = [draw(seed) for seed in range(count)]
    assert np.median(np.concatenate([d.ratios for d in draws])) < SMALLER
    assert np.hstack([d.inside for d in draws])[1].mean() > 0.9
    assert sum(d.weighed for d in draws) >= 0.9 * count
    assert not any(d.contradicted for d in draws)


def test_the_proof_of_the_optimum_has_its_row(fit):
    certificate, (weighed,) = fit.optimality, fit.estimator.weighed
    assert certificate.verify()
    # A mass that no motion shows bounds what the data leave; without its face the gap is 2.5e-7.
    assert fitted(known={"forearm.m": (0.4, 0.01)}).optimum.gap < 1e-7
    assert certificate.data["matrix"][fit.base.size :] == [[[weighed.column(fit.robot), "1"]]]
    wide, narrow = (one.ranges(["hand.m"])[0] for one in (fitted(), fit))
    assert wide.lower < narrow.lower < 0.56 < narrow.upper < wide.upper
    assert narrow.certificate("upper").verify()


def test_notes_have_both_numbers_and_name_a_contradiction(fit):
    (note,) = (n for n in fit.notes if n.code.startswith("weighed"))
    assert note.startswith("hand.m: weighed, 0.560 +- 0.010 kg, fitted 0.55")
    assert fit.summary().tables["standard parameters"].loc["hand.m", "source"] == "weighed"
    wrong = fitted(known={"hand.lz": (0.04, 5e-4)})
    (note,) = (n for n in wrong.notes if n.code == "weighed-contradicted")
    assert "0.04000 +- 0.00050 kg m" in note
    column = wrong.estimator.weighed[0].column(wrong.robot)
    assert note.values["alone"] == pytest.approx(fitted().delta[column])


def test_a_saved_fit_has_it_to_the_bit(tmp_path, fit):
    fit.save(tmp_path / "arm.feasid")
    again = feasid.load(tmp_path / "arm.feasid")
    assert again.estimator.weighed == fit.estimator.weighed
    assert (again.delta == fit.delta).all()
    assert (again.price, again.optimum.gap) == (fit.price, fit.optimum.gap)
    assert repr(again.ranges(["hand.m"])) == repr(fit.ranges(["hand.m"]))
