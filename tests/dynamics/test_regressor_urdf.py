"""The regressor of real robots read from URDF, against Pinocchio reading the same files."""

from dataclasses import replace

import numpy as np
import pytest
from arms import path_of
from pinocchio_side import PinocchioModel
from robots import RTOL, example_urdfs, relative

import feasid
from feasid.core.errors import FeasidError
from feasid.results.codegen.c import find_compiler

pin = pytest.importorskip("pinocchio")

FEWEST = 10  # robots that must have been compared


SAME = 1e-12
"""Relative to the largest: rounding of a few hundred operations."""


@pytest.mark.sampled(0.34)
@pytest.mark.parametrize("backend", ["python", "c"])
@pytest.mark.parametrize("name", ["panda", "ur5_robot", "kinova"])
def test_models_of_single_samples_are_pinocchios(name, backend):
    """Arms, one with a mimicking gripper that slides, under tilted gravity, with friction."""
    if backend == "c" and find_compiler() is None:
        pytest.skip("no C compiler")
    path = path_of(name)
    robot = replace(feasid.load_robot(path).without_joint_terms(), gravity=np.array([1.0, 2, -9]))
    theirs = PinocchioModel(robot, path)
    A, b = robot.coupling_map.A, robot.coupling_map.b
    own = feasid.CompiledDynamics(robot, backend=backend)
    assert own.backend == backend
    rubbing = robot.with_joint_terms()
    friction = {"fv": 0.3, "fc": 0.2, "fo": -0.1}
    values = np.where(np.isnan(rubbing.values), 0.0, rubbing.values)
    for k in range(len(rubbing.drives)):
        for symbol, column in rubbing.drive_columns(k).items():
            values[column] = friction[symbol]
    rubbing = feasid.CompiledDynamics(rubbing.with_values(values), backend=backend)
    for q, dq, ddq in np.random.default_rng(0).uniform(-1, 1, (3, 3, robot.dof)):
        motion = A @ q + b, A @ dq, A @ ddq
        tau = A.T @ theirs.torques(*motion)
        still = A.T @ theirs.torques(motion[0], 0 * motion[1], 0 * motion[2])
        M = A.T @ theirs.mass_matrix(motion[0]) @ A
        base = own.base.values(robot.values)
        rub = A.T @ (0.3 * A @ dq + 0.2 * np.sign(A @ dq) - 0.1)
        for ours, expected in (
            (own.inverse_dynamics(q, dq, ddq), tau),
            (own.gravity(q), still),
            (own.mass_matrix(q), M),
            (own.regressor(q, dq, ddq) @ base, tau),
            (rubbing.inverse_dynamics(q, dq, ddq), tau + rub),
            (rubbing.friction(q, dq), rub),
        ):
            assert np.abs(ours - expected).max() < SAME * np.abs(expected).max()
        push = own.forward_dynamics(q, dq, tau)
        assert np.abs(push - ddq).max() < SAME * np.linalg.cond(M)


@pytest.mark.slow
def test_equal_to_pinocchio_on_real_robots():
    """Regressors and torques of all robots that both read and whose inertias are described."""
    compared = {}
    for path in example_urdfs():
        try:
            robot = feasid.load_robot(path).without_joint_terms()
            theirs = PinocchioModel(robot, path)
            feasid.inverse_dynamics(robot, *np.zeros((3, robot.dof)))
        except (FeasidError, KeyError, IndexError):
            continue  # refused by name, tested with the reader; or Pinocchio names joints otherwise
        if robot.dof > 40:
            continue
        A, b = robot.coupling_map.A, robot.coupling_map.b  # joints that mimic others follow
        off = compared.setdefault(path.stem, [])
        motions = np.random.default_rng(0).standard_normal((3, 3, robot.dof)).swapaxes(0, 1)
        for q, dq, ddq in motions:
            motion = A @ q + b, A @ dq, A @ ddq
            rows = feasid.regressor(robot, q, dq, ddq)[0]
            torque = feasid.inverse_dynamics(robot, q, dq, ddq)[0]
            off.append(relative(rows, A.T @ theirs.regressor(*motion)))
            off.append(relative(torque, A.T @ theirs.torques(*motion)))
    assert len(compared) >= FEWEST
    assert max(map(max, compared.values())) < RTOL, compared
