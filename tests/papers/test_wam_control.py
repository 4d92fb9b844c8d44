"""The WAM experiment in MuJoCo keeps the order of things that the paper reports."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")
EXAMPLE = Path(__file__).parents[2] / "examples" / "wam_control.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("wam_control", EXAMPLE)
    module = sys.modules["wam_control"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_experiment(example):
    done = example.experiment()
    errors = done["errors"]
    assert errors.loc["identification"].idxmin() == "OLS"
    feasible = ["BPFC", "FBPE-OLS", "FBPE-OLS extra"]
    assert (errors.loc[["A", "B", "C"], feasible].max(axis=1) < errors.loc["A":"C", "OLS"]).all()
    assert errors.to_numpy().max() < 8.5
    assert done["share"]["CAD"] == done["share"]["feasible"] == 1.0
    assert done["share"]["OLS of the paper"] < 0.5
    assert done["tracking"]["feasible"] < done["tracking"]["CAD"] / 2


@pytest.mark.slow
def test_validation_motions_are_about_as_well_conditioned_as_the_published_ones(example):
    base = example.feasid.base_parameters(example.wam.robot())
    motions = example.validation(base)
    t = np.arange(0.0, 20.0, 0.05)
    for name, motion in motions.items():
        Y = example.feasid.regressor(base.robot, *motion.at(t), columns=base.independent)
        condition = np.linalg.cond(Y.reshape(-1, base.size))
        assert condition == pytest.approx(example.CONDITIONS[name], rel=0.1)
