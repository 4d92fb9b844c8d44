"""Campaign: generated mechanisms against MuJoCo: torques, and the count against the rank.

The rank is that of MuJoCo's own dynamics in the parameters, along its own constraints. Where
its singular values have no clear gap nothing is compared; a mechanism whose loops are refused by
name is none.
"""

from importlib.metadata import distribution
from pathlib import Path

import mujoco
import numpy as np
import pytest
from closed import directions, open_torques, regressor_of, tree_regressor, unconstrained
from generated import one_loop, parallelogram_arm, tree_with_couplings
from robots import clear_rank, singular_values

import feasid
from benchmarks.proofs import mechanism
from feasid.core.errors import InputError
from feasid.parameters.identifiability.base import base_parameters
from feasid.robot.dynamics.kinematics import coordinate_map
from feasid.robot.formats.terms import EFFECTS
from feasid.robot.layout import random_configurations

SAMPLES = 60
GAP = 1e3  # what makes a rank clear: parameters are felt through differences of torques
ROUNDING = 1e-11  # relative size of singular values
TREE_TORQUES = 1e-10  # relative
SMALLEST_COEFFICIENT = 1e-4  # of these mechanisms: lengths of centimetres, squared
LOOP_TORQUES = 1e-8  # relative; positions are closed to 1e-10


def motions(robot, rng):
    """Positions (dof, N) that the mechanism can take."""
    if robot.closure is None:
        return rng.uniform(-3, 3, (robot.dof, SAMPLES))
    return random_configurations(robot, rng, SAMPLES)


def compare(text, seed, torques):
    """Whether a rank was compared; asserts that torques and count are MuJoCo's."""
    robot = feasid.load_robot(text)
    base = base_parameters(robot)
    rng = np.random.default_rng(seed)
    s = motions(robot, rng)
    ds, dds = rng.standard_normal((2, *s.shape))
    q, dq, ddq, _ = coordinate_map(robot).motion(s, ds, dds)
    model, data = unconstrained(text)
    ways = [np.eye(robot.dof)] * q.shape[1]
    if not robot.is_tree:
        ways = [directions(text, x, robot.coordinates) for x in q.T]
    samples = zip(ways, q.T, dq.T, ddq.T, strict=True)
    theirs = np.array([way.T @ open_torques(model, data, *x) for way, *x in samples])
    ours = feasid.inverse_dynamics(robot, s.T, ds.T, dds.T)
    assert np.abs(ours - theirs).max() <= torques * np.abs(theirs).max()
    rows = [w.T @ y for w, y in zip(ways, tree_regressor(text, q, dq, ddq), strict=True)]
    rank = clear_rank(singular_values(np.vstack(rows)), ROUNDING, GAP)
    assert rank is None or base.size == rank or base.warnings
    return base.size == rank


def wheel_models():
    """Models in wheels: those of gymnasium, and the one that MuJoCo tests itself with."""
    found = [
        Path(str(wheel.locate_file(file)))
        for wheel in (distribution("gymnasium"), distribution("mujoco"))
        for file in wheel.files or ()
        if file.suffix == ".xml" and file.parent.name in ("assets", "testdata")
    ]
    return sorted(path for path in found if "<joint" in path.read_text())


SOME = ("hopper", "reacher", "inverted_double_pendulum")


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, id=p.stem, marks=[] if p.stem in SOME else pytest.mark.slow)
     for p in wheel_models()],
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


REFUSED = ("singular", "too few configurations")


def closed(seed):
    try:
        return compare(one_loop(seed), seed, LOOP_TORQUES)
    except InputError as error:
        if any(word in str(error) for word in REFUSED):
            return False
        raise


def test_a_few_bodies_with_several_joints_and_couplings():
    assert all(compare(tree_with_couplings(seed), seed, TREE_TORQUES) for seed in range(6))


@pytest.mark.slow
def test_a_few_loops():
    assert sum(closed(seed) for seed in range(4)) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300))
def test_bodies_with_several_joints_and_couplings(seed):
    compare(tree_with_couplings(seed), seed, TREE_TORQUES)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(500))
def test_loops(seed):
    closed(seed)


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
