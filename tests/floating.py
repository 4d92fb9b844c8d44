"""Floating robots of the example-robot-data wheel, and motions of them."""

from __future__ import annotations

import numpy as np
import pytest
from robots import example_urdfs
from scipy.spatial.transform import Rotation

import feasid

SAMPLES = 3


def random_motion(robot, seed=0):
    rng = np.random.default_rng(seed)
    n = robot.dof - 6
    return {
        "joints": tuple(rng.normal(size=(3, SAMPLES, n))),
        "rotation": Rotation.random(SAMPLES, rng=rng).as_matrix(),
        "position": rng.normal(size=(SAMPLES, 3)),
        "twist": rng.normal(size=(SAMPLES, 6)),
        "acceleration": rng.normal(size=(SAMPLES, 6)),
    }


def loaded(name):
    path = next((p for p in example_urdfs() if p.stem == name), None)
    if path is None:
        pytest.skip(f"{name} is not in the wheel")
    return feasid.load_robot(path, floating=True).without_joint_terms(), path
