"""The batched regressor equals Algorithm 1 of the Valkyrie paper, whose work grows as n^2."""

import numpy as np
import pytest
from arms import panda
from robots import random_robot

import feasid
from benchmarks.spatial_oracle import SpatialDynamics

ROUNDING = 1e-10
"""Relative to the largest entry: six-vectors through matrix exponentials."""


def compared(robot, seed):
    rng = np.random.default_rng(seed)
    q, dq, ddq = rng.uniform(-2, 2, (3, robot.axes))
    oracle = SpatialDynamics(robot).regressor(q, dq, ddq)
    columns = robot.inertial_columns.ravel()
    found = feasid.regressor(robot, q, dq, ddq, columns=columns)[0]
    return np.abs(found - oracle).max() / np.abs(oracle).max()


@pytest.mark.parametrize("seed", range(6))
def test_random_trees(seed):
    kinds = ("revolute", "prismatic", "helical")
    assert compared(random_robot(np.random.default_rng(seed), 6, kinds), seed) < ROUNDING


def test_an_arm_and_a_floating_body():
    assert compared(panda().without_joint_terms(), 0) < ROUNDING
    free = feasid.Robot([feasid.Body("free", None, motion=np.eye(6))])
    assert compared(free, 1) < ROUNDING


def chain(n):
    return feasid.Robot.from_dh([(0.3, 0.2, 0.1, 0.0)] * n)


@pytest.mark.parametrize("n", [1, 2, 5, 11])
def test_its_work_is_ten_times_the_square_of_the_bodies(n):
    dynamics = SpatialDynamics(chain(n))
    dynamics.regressor(*np.zeros((3, n)))
    assert dynamics.visits == 10 * n**2
