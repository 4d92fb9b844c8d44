"""The WAM experiment in MuJoCo: what Table 8 says of estimators, and what models do in control."""

import numpy as np
import pytest

import feasid
from feasid.datasets import wam

pytest.importorskip("mujoco")

import wam_control


@pytest.mark.slow
def test_the_experiment():
    done = wam_control.experiment()
    errors = done["errors"]
    identification, others = errors.loc["identification"], errors.loc[["A", "B", "C"]]
    assert [*identification.sort_values().index] == ["OLS", "FBPE-OLS", "FBPE-OLS extra", "BPFC"]
    assert identification.max() - identification.min() < 0.1
    # Table 8: feasible least squares is better than OLS on every other motion, and bounds help.
    # BPFC is not everywhere: 8.49 beside 8.47 percent on motion B.
    assert (others["FBPE-OLS"] < others["OLS"]).all()
    assert (others["FBPE-OLS extra"] < others["FBPE-OLS"]).all()
    assert errors.to_numpy().max() < 8.5
    assert done["orders"]["identification"] == (6, 6)
    assert done["share"]["CAD"] == done["share"]["feasible"] == 1.0
    assert done["share"]["OLS of the paper"] < 0.5
    assert done["tracking"]["feasible"] < done["tracking"]["CAD"] / 2


@pytest.mark.slow
def test_validation_motions_are_about_as_well_conditioned_as_the_published_ones():
    base = feasid.base_parameters(wam.robot())
    motions = wam_control.validation(base)
    t = np.arange(0.0, 20.0, 0.05)
    for name, motion in motions.items():
        Y = feasid.regressor(base.robot, *motion.at(t), columns=base.independent)
        condition = np.linalg.cond(Y.reshape(-1, base.size))
        assert condition == pytest.approx(wam_control.CONDITIONS[name], rel=0.1)
