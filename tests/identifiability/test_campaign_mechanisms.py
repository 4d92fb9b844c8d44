"""Campaign: generated mechanisms against MuJoCo: torques, and the count against the rank.

The rank is that of MuJoCo's own dynamics in the parameters, along its own constraints. Where
its singular values have no clear gap nothing is compared; a mechanism whose loops are refused by
name is none.
"""

import numpy as np
import pytest
from closed import directions, open_torques, tree_regressor, unconstrained
from generated import one_loop, tree_with_couplings

import feasid
from feasid.dynamics.coupled import carried
from feasid.errors import InputError
from feasid.identifiability.base import base_parameters

SAMPLES = 60
GAP = 1e3  # what makes a rank clear: parameters are felt through differences of torques
TREE_TORQUES = 1e-10  # relative
LOOP_TORQUES = 1e-8  # relative; positions are closed to 1e-10


def motions(robot, rng):
    """Positions (dof, N) that the mechanism can take."""
    if robot.closure is None:
        return rng.uniform(-3, 3, (robot.dof, SAMPLES))
    home = robot.closure.assembled[robot.independent][:, None]
    found = np.zeros((robot.dof, 0))
    for reach in (1.0, 0.3, 0.1):
        s = home + np.pi * reach * rng.uniform(-1, 1, (robot.dof, 6 * SAMPLES))
        q, closed = robot.closure.followed(s)
        closed[closed] &= robot.closure.regular(q[:, closed])
        found = np.hstack([found, s[:, closed]])[:, :SAMPLES]
    return found


def compare(text, seed, torques):
    """Whether a rank was compared; asserts that torques and count are MuJoCo's."""
    robot = feasid.load_robot(text)
    base = base_parameters(robot)
    rng = np.random.default_rng(seed)
    s = motions(robot, rng)
    ds, dds = rng.standard_normal((2, *s.shape))
    q, dq, ddq, _ = carried(robot).motion(s, ds, dds)
    model, data = unconstrained(text)
    ways = [np.eye(robot.dof)] * q.shape[1]
    if not robot.is_tree:
        ways = [directions(text, x, robot.coordinates) for x in q.T]
    samples = zip(ways, q.T, dq.T, ddq.T, strict=True)
    theirs = np.array([way.T @ open_torques(model, data, *x) for way, *x in samples])
    ours = feasid.inverse_dynamics(robot, s.T, ds.T, dds.T)
    assert np.abs(ours - theirs).max() <= torques * np.abs(theirs).max()
    rows = [w.T @ y for w, y in zip(ways, tree_regressor(text, q, dq, ddq), strict=True)]
    rows = np.vstack(rows)
    sizes = np.linalg.norm(rows, axis=0)
    values = np.linalg.svd(rows / sizes.clip(1e-6 * sizes.max()), compute_uv=False)
    values = np.r_[values.clip(1e-11 * values[0]), 1e-11 * values[0]]
    rank = int(np.argmax(values[:-1] / values[1:])) + 1
    if values[rank - 1] / values[rank] < GAP:
        return False
    assert base.size == rank or base.warnings
    return base.size == rank


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
