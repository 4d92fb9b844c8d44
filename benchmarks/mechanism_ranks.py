"""Generated mechanisms against MuJoCo: torques, and the count of base parameters against the rank.

The rank is that of MuJoCo's own dynamics in the parameters, along its own constraints. Where
its singular values have no clear gap nothing is compared; a mechanism whose loops are refused by
name is none.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # MuJoCo's side, without pytest
from robots import clear_rank, singular_values

import feasid
from benchmarks.closed import directions, open_torques, tree_regressor, unconstrained
from benchmarks.generated import one_loop
from feasid.core.errors import InputError
from feasid.parameters.identifiability.base import base_parameters
from feasid.robot.dynamics.kinematics import coordinate_map
from feasid.robot.layout import random_configurations

SAMPLES = 60

GAP = 1e3  # what makes a rank clear: parameters are felt through differences of torques

ROUNDING = 1e-11  # relative size of singular values

TREE_TORQUES = 1e-10  # relative

LOOP_TORQUES = 1e-8  # relative; positions are closed to 1e-10


def compare(text, seed, torques):
    """Whether a rank was compared; asserts that torques and count are MuJoCo's."""
    robot = feasid.load_robot(text)
    base = base_parameters(robot)
    rng = np.random.default_rng(seed)
    if robot.closure is None:
        s = rng.uniform(-3, 3, (robot.dof, SAMPLES))
    else:
        s = random_configurations(robot, rng, SAMPLES)
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


REFUSED = ("singular", "too few configurations")


def closed(seed):
    try:
        return compare(one_loop(seed), seed, LOOP_TORQUES)
    except InputError as error:
        if any(word in str(error) for word in REFUSED):
            return False
        raise
