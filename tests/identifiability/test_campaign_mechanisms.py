"""Mechanisms of `benchmarks.mechanism_ranks`, and models in wheels, against MuJoCo's dynamics.

Random mechanisms of `benchmarks.echelon`: exact, an error or a warning, never silently wrong.
"""

import mujoco
import numpy as np
import pytest
from mjcf_files import wheel_models
from robots import clear_rank, singular_values

import feasid
from benchmarks.closed import regressor_of
from benchmarks.echelon import HARMLESS_WARNED, LARGEST_REFUSED, count_outcomes
from benchmarks.generated import parallelogram_arm, tree_with_couplings
from benchmarks.mechanism_ranks import (
    GAP,
    LOOP_TORQUES,
    ROUNDING,
    SAMPLES,
    TREE_TORQUES,
    closed,
    compare,
)
from benchmarks.proofs import mechanism
from feasid.parameters.identifiability.base import base_parameters
from feasid.robot.formats.terms import EFFECTS

SMALLEST_COEFFICIENT = 1e-4  # of these mechanisms: lengths of centimetres, squared
SOME = ("hopper", "reacher", "inverted_double_pendulum")

TELLING = (102, 229)
"""Seeds of mechanisms that tell unmeasured joints from measured ones where the others do not."""


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, id=p.stem, marks=[] if p.stem in SOME else pytest.mark.slow)
     for p in wheel_models()
     if p.parent.name == "assets" and "<joint" in p.read_text()],
)  # fmt: skip
def test_count_of_models_in_wheels_is_the_rank_of_mujocos_dynamics(path):
    """Without friction, springs, fluid and couplings: of the bodies alone."""
    robot = feasid.load_robot(path, ignore=EFFECTS).without_joint_terms()
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.dof_armature[:] = model.dof_damping[:] = model.jnt_stiffness[:] = 0.0
    model.opt.density = model.opt.viscosity = 0.0
    rng = np.random.default_rng(0)
    dq, ddq = rng.standard_normal((2, model.nv, SAMPLES))
    q = np.repeat(model.qpos0[:, None], SAMPLES, axis=1)
    for k in range(SAMPLES):
        here = q[:, k].copy()
        mujoco.mj_integratePos(model, here, rng.standard_normal(model.nv), 1.0)
        q[:, k] = here
    rows = regressor_of(model, mujoco.MjData(model), q, dq, ddq)
    assert robot.is_tree
    values = singular_values(rows.reshape(-1, rows.shape[2]))
    assert base_parameters(robot).size == clear_rank(values, ROUNDING, GAP)


@pytest.mark.parametrize("count", [6, pytest.param(300, marks=pytest.mark.slow)])
def test_bodies_with_several_joints_and_couplings(count):
    ranks = [compare(tree_with_couplings(seed), seed, TREE_TORQUES) for seed in range(count)]
    assert all(ranks[:6])


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(k, k + 100) for k in range(0, 500, 100)])
def test_loops(seeds):
    assert sum(closed(seed) for seed in seeds) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_arms_with_parallelograms(seed):
    """Also where a parallelogram could lie flat: of the branch on which it is assembled."""
    compare(parallelogram_arm(seed), seed, LOOP_TORQUES)


@pytest.mark.parametrize("name", ["parallel gripper", "leg"])
def test_coefficients_of_loops_have_no_rounded_zeros(name):
    """Null vectors of sampled energies are off by 1e-11 to 1e-9 there."""
    K = np.asarray(mechanism(name).K)
    assert np.abs(K[K != 0]).min() > SMALLEST_COEFFICIENT


def test_none_of_a_sample_is_silently_wrong():
    tally, harmless, needless = count_outcomes([*range(60), *TELLING])
    assert tally["exact"] >= 50
    assert needless <= 1 + HARMLESS_WARNED * harmless
    assert tally["refused"] <= LARGEST_REFUSED * tally.total()
