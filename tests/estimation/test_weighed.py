"""Parameters that were weighed: equations of their own variance, in everything that follows."""

from dataclasses import replace

import numpy as np
import pytest

import feasid
from benchmarks.weighed import SMALLER, draw
from feasid.core.errors import InputError
from feasid.datasets import arm

PLAIN = {"candidates": (), "calibration": None, "diagnose": False}
HAND = {"hand.m": (0.56, 0.01)}
ROUNDING = 1e-6  # of covariances: the prior has a small divergence besides, which is curved
OTHER_ROWS = 0.05  # the estimate counts correlated rows a little otherwise than its covariance
HIDDEN = (0.90, 0.99)  # of 284 intervals of 95 %; some of one log are alike


def column_of(fit, *name):
    return fit.robot.parameter_names.index(name)


@pytest.fixture(scope="module")
def robot():
    return arm.described()


@pytest.fixture(scope="module")
def log(robot):
    return arm.log(arm.truth(robot), 1)


@pytest.fixture(scope="module")
def fit(log, robot):
    return feasid.fit(log, robot, known=HAND, **PLAIN)


def test_a_weighed_parameter_is_a_measurement_of_its_own_variance(robot, fit):
    """Estimate and covariance are those of Kalman's update of a fit without it."""
    prior = feasid.GaussianPrior.of(fit)
    plain = feasid.fit(arm.log(arm.truth(robot), 2), robot, prior=prior, **PLAIN)
    without = plain.estimator.keep(plain.estimate)
    before, column = without.fit(plain.equations), column_of(plain, "hand", "m")
    change, deviation = 0.01, 0.01
    known = {("hand", "m"): [before.delta[column] + change, deviation]}
    after = replace(without, limits={**without.limits, "known": known}).fit(plain.equations)
    C, size = before.covariance, np.sqrt(np.diag(before.covariance))
    gain = C[:, column] / (C[column, column] + deviation**2)
    left = C - np.outer(gain, C[column])
    assert np.abs((after.covariance - left) / np.outer(size, size)).max() < ROUNDING
    moved = (after.delta - before.delta) / size
    assert np.abs(moved).max() > 0.1
    assert moved == pytest.approx(gain * change / size, abs=OTHER_ROWS * np.abs(moved).max())


@pytest.mark.parametrize("count", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_deviations_of_what_depends_on_it_shrink_and_hold_the_truth(count):
    draws = [draw(seed) for seed in range(count)]
    inside = np.hstack([d.inside for d in draws])
    assert np.median(np.concatenate([d.ratios for d in draws])) < SMALLER
    assert sum(d.weighed for d in draws) >= 0.9 * count
    assert not any(d.contradicted for d in draws)
    assert count < 30 or HIDDEN[0] < inside[1].mean() < HIDDEN[1]


def test_the_proof_of_the_optimum_has_its_row(log, robot, fit):
    certificate, column = fit.optimality, column_of(fit, "hand", "m")
    assert certificate.verify()
    assert fit.optimum.gap < 1e-5
    assert certificate.data["matrix"][fit.base.size :] == [[[column, "1"]]]
    assert certificate.data["data"]["rows"][-1] == [[fit.base.size, "100"]]
    wide = feasid.fit(log, robot, **PLAIN).ranges(["hand.m"])[0]
    narrow = fit.ranges(["hand.m"])[0]
    assert wide.lower < narrow.lower < 0.56 < narrow.upper < wide.upper
    assert narrow.certificate("upper").verify()


def test_notes_have_both_numbers_and_name_a_contradiction(log, robot, fit):
    notes = {n.code: n for n in fit.notes if n.code.startswith("weighed")}
    assert [*notes] == ["weighed"]
    assert notes["weighed"].startswith("hand.m: weighed, 0.560 +- 0.010 kg, fitted 0.55")
    assert fit.summary().tables["standard parameters"].loc["hand.m", "source"] == "weighed"
    wrong = feasid.fit(log, robot, known={"hand.lz": (0.04, 5e-4)}, **PLAIN)
    (note,) = (n for n in wrong.notes if n.code == "weighed-contradicted")
    assert "0.04000 +- 0.00050 kg m" in note
    alone = feasid.fit(log, robot, **PLAIN).delta[wrong.estimator.weighed[0].column]
    assert note.values["alone"] == pytest.approx(alone, rel=0.05)


def test_a_saved_fit_has_it_to_the_bit(tmp_path, fit, log):
    fit.save(tmp_path / "arm.feasid")
    again = feasid.load(tmp_path / "arm.feasid")
    assert again.estimator.weighed == fit.estimator.weighed
    assert (again.delta == fit.delta).all()
    assert (again.price, again.optimum.gap) == (fit.price, fit.optimum.gap)
    assert repr(again.ranges(["hand.m"])) == repr(fit.ranges(["hand.m"]))
    assert again.estimator.fit(again.equations).delta == pytest.approx(fit.delta, rel=1e-6)


@pytest.mark.parametrize(
    ("known", "more", "words"),
    [
        ({"hand.mass": (0.5, 0.1)}, {}, "no inertial parameter of a body .did you mean 'hand.m'"),
        ({"hand.m": (0.5, -0.1)}, {}, "standard error above 0"),
        ({**HAND, ("hand", "m"): (0.5, 0.1)}, {}, "weighed twice"),
        ({**HAND, "hand": [*[np.nan] * 9, 0.5]}, {}, "fixed by other values"),
        ({"hand.ly": (0.0, 0.1)}, {"mirrored": [("hand", "hand", "y")]}, "fixed by other values"),
    ],
)
def test_what_cannot_be_weighed_is_refused(log, robot, known, more, words):
    with pytest.raises(InputError, match=words) as caught:
        feasid.fit(log, robot, known=known, **more, **PLAIN)
    assert caught.value.option == "known"


def test_a_prior_counts_a_weighing_once(log, robot, fit):
    prior = feasid.GaussianPrior.of(fit)
    with pytest.raises(InputError, match="would count twice"):
        feasid.fit(log, robot, known=HAND, prior=prior, **PLAIN)
    again = feasid.fit(log, robot, known={"hand.m": (0.55, 0.02)}, prior=prior, **PLAIN)
    assert again.bodies.loc["hand", "mass"] == pytest.approx(0.56, abs=0.01)
