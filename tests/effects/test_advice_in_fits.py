"""Correct logs are not doubted for nothing, and advice that is given makes fits better."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import feasid
from benchmarks.faults import clean, simulated
from benchmarks.simulated import Conditions, hidden
from feasid.identification.assessment.checks import torque_constants_are_off
from feasid.identification.assessment.evidence import POSES, compare_gravity
from feasid.logs.recording import Recording

pytestmark = pytest.mark.slow  # fits of whole logs, several each

HARM = 1.02
"""Error on unseen motion with the advice over that without it."""

SECONDS = 22.0

ALL = [
    (name, seed, lost)
    for name in ("ur5", "z1", "panda")
    for seed in range(4)
    for lost in (0.0, 0.005, 0.02)
]


@pytest.mark.parametrize(("name", "seed", "lost"), ALL)
def test_correct_logs_are_good_and_advice_does_no_harm(name, seed, lost):
    """Also those that were called useless before: z1 with (0, 0.0) and (1, 0.005), panda (1, 0)."""
    arm = hidden(name, seed, Conditions(seconds=SECONDS, lost=lost))
    fit = feasid.fit(arm.log, arm.robot)
    # Bodies that are heavier than described at every joint look as torque constants that are wrong.
    q = arm.log[[f"q_{joint}" for joint in arm.robot.joints]].to_numpy()
    shape = (POSES, arm.robot.dof)
    poses = np.random.default_rng(seed).uniform(q.min(axis=0), q.max(axis=0), shape)
    true = compare_gravity(arm.terms.with_values(arm.delta), arm.robot, poses, poses)
    doubt = torque_constants_are_off(replace(fit.evidence, comparison=true))
    assert fit.quality.level == ("doubtful" if doubt else "good"), true
    assert bool(doubt) == any("torque constants" in str(x) for x in fit.quality.reasons)
    diagnosis = feasid.diagnose(arm.log, arm.robot)
    assert not diagnosis.errors
    if diagnosis.options:
        mended = feasid.fit(arm.log, arm.robot, diagnose=False, **diagnosis.options)
        assert mended.errors(arm.test)["all"] <= HARM * fit.errors(arm.test)["all"]


def test_fit_and_diagnosis_see_the_same_samples(monkeypatch):
    arm = hidden("ur5", 1, Conditions(seconds=10.0, lost=0.02))
    judged = []
    recording = Recording(arm.log)
    prepare = Recording.motion

    def noted(self, *args, **options):
        judged.append(prepare(self, *args, **options))
        return judged[-1]

    monkeypatch.setattr(Recording, "motion", noted)
    fit = feasid.fit(recording, arm.robot)
    fitted, *others = judged
    assert len(others) >= 2  # the diagnosis and the search for mistakes
    assert all(motion is fitted for motion in others)
    assert len(fitted.runs) == 1
    assert fit.reduced.samples == fitted.samples
    kept = fitted.runs[0].rows
    assert len(np.unique(kept)) > 0.95 * len(arm.log)


def test_advice_tells_how_much_it_helps():
    log, robot = clean("simulated")[0].copy(), simulated().attrs["robot"]
    log["tau_2"] *= -1
    (found,) = [f for f in feasid.diagnose(log, robot) if f.code == "sign"]
    assert found.options == {"units": {"tau_2": -1.0}}
    assert 0.1 < found.gain < 1.0
    assert f"lowers the cross-validation error by {found.gain:.0%}" in str(found)
    fit = feasid.fit(log, robot)
    assert fit.quality.level != "good"
    assert "sign" in [r.code for r in fit.quality.reasons]


def test_a_log_that_cannot_be_fitted_without_advice_is_mended():
    log, robot = clean("simulated")[0].copy(), simulated().attrs["robot"]
    log.loc[100:104, "tau_2"] = np.nan
    (found,) = [f for f in feasid.diagnose(log, robot) if f.code == "nan"]
    assert found.gain == 1.0
    assert found.options == {"nan": "drop-segments"}
    feasid.fit(log, robot, **found.options)
