"""The case studies of the Valkyrie paper: what is met in simulation, and not by a real pendulum."""

from itertools import permutations

import numpy as np
import pytest
from pseudo_inverse import r_squared

import feasid

pytest.importorskip("mujoco")

import case_studies


def test_a_simulated_pendulum_meets_the_threshold_of_the_paper():
    drive = case_studies.Drive((0.9, 1.1), (0.55, 0.8), (0.0, 0.0))
    log = case_studies.record(case_studies.PENDULUM, drive, 10.0)
    fit = case_studies.offline(log, case_studies.described(case_studies.PENDULUM))
    assert fit.r2.min() > 0.95


@pytest.mark.slow
def test_no_run_of_the_real_one_predicts_another_so_well():
    logs = feasid.datasets.load("double_pendulum")
    runs = {label: part.drop(columns="run") for label, part in logs.groupby("run")}
    robot = logs.attrs["robot"]
    fits = {label: case_studies.offline(part, robot) for label, part in runs.items()}
    best = -np.inf
    for fitted, other in permutations(fits, 2):
        motion = case_studies.filtered_signals(runs[other], fits[other].robot)[:3]
        predicted = feasid.regressor(fits[other].robot, *motion) @ fits[fitted].theta
        both = r_squared(fits[other].tau.reshape(-1, 1), predicted.reshape(-1, 1))
        best = max(best, float(both[0]))
    assert 0.8 < best < 0.95


@pytest.mark.slow
def test_the_leg_gets_better_as_data_come_in():
    table = case_studies.leg().table
    assert table["error"].iloc[-10:].mean() < 2.0 < table["error"].iloc[1]
    assert table["error"].iloc[-1] < table["nominal_error"].iloc[-1] / 10
    assert table["open"].iloc[-1]
