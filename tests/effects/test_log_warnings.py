"""Many logs are diagnosed once, together, and what is wrong with one of them is said of it."""

from __future__ import annotations

import numpy as np
import pytest
from logs import arm_and_log

import feasid
from feasid.identification.effects import log_check
from feasid.identification.effects.log_check import check_log

QUICK = {"friction": ("viscous", "coulomb", "offset")}


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    return arm_and_log(tmp_path_factory.mktemp("warnings"), 1500, 0.01)


@pytest.fixture
def calls(monkeypatch):
    seen = []

    def counted(log, robot, asked, **options):
        seen.append(log)
        return check_log(log, robot, asked, **options)

    monkeypatch.setattr(log_check, "check_log", counted)
    return seen


def thirds(log):
    return [log.iloc[k * 500 : (k + 1) * 500].reset_index(drop=True) for k in range(3)]


def notes(fit, code):
    return [n for n in fit.notes if n.code == code]


def test_many_logs_are_diagnosed_once(arm, calls):
    robot, log = arm
    fit = feasid.fit(thirds(log), robot, **QUICK)
    assert len(calls) == 1
    assert len(calls[0].frame) == len(log)
    assert calls[0].frame["run"].nunique() == 3
    (said,) = notes(fit, "diagnosed-together")
    assert said.values["logs"] == 3
    assert {n.code for n in feasid.fit(log, robot, **QUICK).notes} >= {
        n.code for n in fit.notes if n.code not in ("diagnosed-together",)
    }


def test_one_log_is_not_read_again(arm, calls):
    robot, log = arm
    recording = feasid.Recording(log)
    fit = feasid.fit(recording, robot, **QUICK)
    assert calls == [recording]
    assert not notes(fit, "diagnosed-together")


def test_what_is_wrong_with_one_of_them_names_it(arm, calls, tmp_path):
    robot, log = arm
    files = []
    for k, part in enumerate(thirds(log)):
        if k == 1:
            part.loc[100, "tau_slide"] += 100 * part["tau_slide"].std()
        files.append(str(tmp_path / f"{k}.csv"))
        part.to_csv(files[-1], index=False)
    fit = feasid.fit(files, robot, **QUICK)
    assert len(calls) == 1
    (spike,) = notes(fit, "spike")
    assert spike.startswith(f"{files[1]}, from row 500 on: ")
    assert "row 600" in spike


def test_logs_with_other_columns_are_left_out_and_named(arm, calls):
    robot, log = arm
    parts = thirds(log)
    parts[2] = parts[2].drop(columns=[c for c in log if c.startswith("dq_")])
    fit = feasid.fit(parts, robot, **QUICK)
    assert [len(c.frame) for c in calls] == [1000]
    assert "with the first log" in notes(fit, "undiagnosed")[0]
    fit = feasid.fit(thirds(log), robot, **QUICK, exclude=[(0.0, 0.2)])
    assert len(calls) == 2
    assert len(calls[1].frame) == 500
    assert "with the first log" in notes(fit, "undiagnosed")[0]


def test_too_long_is_said(arm, calls, monkeypatch):
    robot, log = arm
    monkeypatch.setattr(log_check, "MAX_DIAGNOSED_ROWS", 1000)
    fit = feasid.fit(thirds(log), robot, **QUICK)
    assert [len(c.frame) for c in calls] == [1000]
    assert "too long" in notes(fit, "undiagnosed")[0]


@pytest.mark.slow
def test_flipped_torques_of_all_logs_are_one_finding(arm, calls):
    robot, log = arm
    torques = [c for c in log if c.startswith("tau_")]
    log = log.assign(**{c: -log[c] for c in torques})
    found = feasid.diagnose(log, robot)
    together = feasid.fit(thirds(log), robot, **QUICK)
    assert "sign" in found
    assert len(notes(together, "sign")) == len([f for f in found if f.code == "sign"])
    assert np.isfinite(together.relative_error["all"])
