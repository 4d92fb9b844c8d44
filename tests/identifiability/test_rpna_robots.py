"""The number of base parameters of real robots against Pinocchio's regressor.

The rank of a random regressor is clear when its singular values have a gap. Robots whose files
round their angles, or have millimetre offsets beside metres, may have none: they are listed.
"""

import numpy as np
import pytest
from robots import clear_rank, example_urdfs

import feasid
from feasid.core.errors import FeasidError
from feasid.parameters.identifiability.base import base_parameters

pin = pytest.importorskip("pinocchio")

GAP = 1e4  # what makes a rank clear
FLOOR = 1e-14  # relative size of singular values that are rounding


FILES = example_urdfs()

COMMON = ("ur5_robot", "talos_left_arm", "solo12", "a1", "so100", "kinova", "bolt", "z1", "xarm7")


def loaded(path, floating):
    """The robot and Pinocchio's model of it, or why there is none."""
    try:
        robot = feasid.load_robot(path, floating=floating).without_joint_terms()
    except FeasidError as error:
        pytest.skip(f"{type(error).__name__}: {error}"[:120])
    root = [pin.JointModelFreeFlyer()] if floating else []
    try:
        model = pin.buildModelFromUrdf(str(path), *root)
    except (ValueError, RuntimeError) as error:
        pytest.skip(f"Pinocchio: {error}"[:120])
    if model.nv != robot.dof:
        pytest.skip(f"{model.nv} degrees of freedom in Pinocchio, {robot.dof} here")
    return robot, model


def singular_values(model, seed, zeros=()):
    """Of a random regressor without the columns of the bodies on these joints."""
    rng = np.random.default_rng(seed)
    data, rows = model.createData(), []
    samples = 3 * 10 * (model.njoints - 1) // model.nv + 40
    for _ in range(samples):
        q = pin.integrate(model, pin.neutral(model), rng.normal(size=model.nv))
        v, a = rng.normal(size=(2, model.nv))
        rows.append(pin.computeJointTorqueRegressor(model, data, q, v, a).copy())
    gone = [10 * (model.getJointId(j) - 1) + np.arange(10) for j in zeros]
    known = np.concatenate([np.zeros(0, dtype=int), *gone])
    r = np.linalg.qr(np.delete(np.vstack(rows), known, axis=1), mode="r")
    return np.linalg.svd(r, compute_uv=False)


@pytest.mark.sampled(0.2)
@pytest.mark.parametrize("floating", [False, True], ids=["fixed", "floating"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_count_of_every_robot_is_the_rank_of_pinocchios_regressor(path, floating):
    robot, model = loaded(path, floating)
    base = base_parameters(robot)
    zeros = [b.joint for b in robot.bodies if b.massless and b.joint != "floating_base"]
    rank = clear_rank(singular_values(model, len(robot.bodies), zeros), FLOOR, GAP)
    if rank is None:
        pytest.skip(f"no gap of {GAP:g} in the singular values ({base.size} by structure)")
    assert rank in (base.size, base.literal.size)
    if base.literal.size == base.size:
        assert not base.warnings


def test_robots_are_found():
    assert {p.stem for p in FILES} >= set(COMMON)
