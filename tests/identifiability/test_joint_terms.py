"""Base parameters of every joint term: drives that share joints, rest, joints nobody measures."""

from dataclasses import replace

import numpy as np
import pytest

import feasid
from feasid.robot.joint_terms import TERMS

SAMPLES = 200
RANK = 1e-9
"""Singular values below this, relative to the largest, are zero: those are below 1e-13, and the
smallest of the others is 0.2."""

SYMBOLS = [s for s, term in TERMS.items() if not term.needs_load]

WAVES = (8.0, 5.0)

FAST = 0.3
"""Range of random motions: friction of breaking away fades over 0.05 rad/s."""


def arm(*drives):
    robot = feasid.Robot.from_dh([(-1.2, 0.3, 0.1, 0), (0.4, 0.2, 0, 0), (0.1, 0.2, 0, 0)])
    return feasid.Robot(robot.bodies, drives=drives)


def drive(name, symbol, **coupling):
    """A drive with this term, and the one that it is bounded by."""
    bound = TERMS[symbol].bounded_by
    factors = {name.removeprefix("q"): c for name, c in coupling.items()}
    return feasid.Drive(name, factors, (bound, symbol) if bound else (symbol,), ripple=WAVES)


def rank(robot, rows=slice(None), held=(), static=False):
    """Of the regressor of random motions; columns in units of their size."""
    q, dq, ddq = np.random.default_rng(0).uniform(-FAST, FAST, (3, SAMPLES, robot.dof))
    q = 4 * q
    for j in held:
        q[:, j] = dq[:, j] = ddq[:, j] = 0.0
    if static:
        dq, ddq = 0 * dq, 0 * ddq
    Y = feasid.regressor(robot, q, dq, ddq)[:, rows].reshape(-1, robot.size)
    size = np.linalg.norm(Y, axis=0)
    s = np.linalg.svd(Y / np.maximum(size, 1e-3 * size.max()), compute_uv=False)
    return int((s > RANK * s[0]).sum())


@pytest.mark.parametrize("ratio", [1.0, -1.0, 2.0, -0.5])
@pytest.mark.parametrize("symbol", SYMBOLS)
def test_two_drives_of_one_joint(symbol, ratio):
    robot = arm(drive("1", symbol, q1=1.0), drive("second", symbol, q1=ratio))
    assert feasid.base_parameters(robot).size == rank(robot)


def test_ripples_of_two_motors_of_one_joint():
    """Of different gears, and of equal ones."""
    for other, size in ((WAVES[::-1], 2), (WAVES, 1)):
        second = replace(drive("second", "rs", q1=1.0), ripple=other)
        robot = arm(drive("1", "rs", q1=1.0), second)
        assert feasid.base_parameters(robot).size == rank(robot) == rank(arm()) + size


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_motors_that_move_two_joints(symbol):
    """The last is the first on another gear."""
    shared = drive("sum", symbol, q1=1.0, q2=1.0), drive("geared", symbol, q1=-2.0, q2=-2.0)
    robot = arm(drive("1", symbol, q1=1.0), *shared)
    assert feasid.base_parameters(robot).size == rank(robot)


@pytest.mark.parametrize(
    ("symbol", "static"),
    # Compensators at rest are like weight, and such sums are not looked for.
    [(s, static) for s in SYMBOLS for static in (False, True) if not static or s[:1] != "g"],
)
def test_at_rest_and_with_torques_that_are_not_measured(symbol, static):
    robot = arm(*(drive(j, symbol, **{f"q{j}": 1.0}) for j in "123"))
    found = feasid.base_parameters(robot, static=static, measured=None if static else ["2"])
    assert found.size == rank(robot, slice(None) if static else [1], static=static)


@pytest.mark.parametrize("symbol", [s for s in SYMBOLS if TERMS[s].varies_with == "dq"])
def test_joints_that_are_held(symbol):
    """The first one stays; the friction of the others is seen."""
    robot = arm(*(drive(j, symbol, **{f"q{j}": 1.0}) for j in "123"))
    found = feasid.base_parameters(robot, measured=["1", "2", "3"], held=["1"])
    columns = [robot.drive_columns(k)[symbol] for k in range(3)]
    nullspace = np.abs(np.asarray(found.nullspace)[columns]).max(axis=1)
    assert nullspace[0] > 0
    assert not nullspace[1:].any()
    assert found.size == rank(robot, held=[0])
