"""Feasibility beyond serial arms: floating bases, joints of several degrees of freedom, rotors."""

import numpy as np
import pytest
from feasibility_problems import random_rotation

import feasid
from feasid.robot import inertia

BALANCED = inertia.from_mass_com_inertia(0.3, [0, 0, 0.02], np.diag([3e-4, 3e-4, 4e-4]))


def cloud(rng):
    points = np.c_[rng.uniform(-0.3, 0.3, size=(12, 3)), np.ones(12)]
    return inertia.from_pseudo_inertia(points.T @ points / 12 * rng.uniform(0.5, 3.0))


@pytest.fixture(scope="module")
def mechanism():
    """A floating torso, two revolute joints with rotors, a slide and a ball joint, in a chain."""
    rng = np.random.default_rng(0)
    turns = [random_rotation(rng) for _ in range(4)]
    general = feasid.Rotor(-20.0, symmetric=False)
    bodies = (
        feasid.Body("torso", None, motion=np.eye(6)),
        feasid.Body("a", "torso", turns[0], [0.1, 0, 0], rotor=feasid.Rotor(50.0)),
        feasid.Body("b", "a", turns[1], [0.3, 0.1, 0], rotor=general),
        feasid.Body("c", "b", turns[2], [0.3, 0, 0.1], motion=[0, 0, 0, 0, 0, 1]),
        feasid.Body("d", "c", turns[3], [0.1, 0, 0.1], motion=np.eye(6)[:, :3]),
    )
    robot = feasid.Robot(bodies).with_joint_terms(drive_inertia=True)
    delta = np.zeros(robot.size)
    for columns in robot.inertial_columns:
        delta[columns] = cloud(rng)
    delta[robot.rotor_columns(1)] = BALANCED[[0, 5, 8, 9]]
    delta[robot.rotor_columns(2)] = 0.1 * cloud(rng)
    for k in range(len(robot.drives)):
        delta[list(robot.drive_columns(k).values())] = 0.1
    return robot, feasid.base_parameters(robot), delta


@pytest.mark.parametrize("consistency", ["full", "semi"])
def test_base_parameters_are_judged_with_proof(mechanism, consistency):
    robot, base, delta = mechanism
    verdict = feasid.check(base.values(delta), base, consistency=consistency)
    assert verdict.feasible is True
    verdict.certificate.verify()
    broken = delta.copy()
    broken[robot.inertial_columns[4, 0]] -= 2.0
    verdict = feasid.check(base.values(broken), base, consistency=consistency)
    assert verdict.feasible is False
    assert "d" in verdict.bodies
    verdict.certificate.verify()
    corrected = feasid.correct(base.values(broken), base, consistency=consistency)
    assert corrected.gap < 1e-5
    assert feasid.check(corrected.beta, base, consistency=consistency).feasible is True


def test_rotors_are_judged_and_corrected_by_themselves(mechanism):
    robot, _, delta = mechanism
    assert feasid.check(robot.with_values(delta)).feasible is True
    broken = delta.copy()
    broken[robot.rotor_columns(1).start + 1] = 9.0  # Lzz above what Lxx = Lyy allow
    verdict = feasid.check(robot.with_values(broken))
    assert verdict.clash == ("inertia of rotor of a",)
    verdict.certificate.verify()
    corrected = feasid.correct(robot.with_values(broken))
    changed = corrected.delta != broken
    span = robot.rotor_columns(1)
    assert changed[span].any()
    assert not np.delete(changed, np.arange(span.start, span.stop)).any()
    assert feasid.check(corrected.robot).feasible is True


@pytest.mark.parametrize("consistency", ["full", "semi"])
def test_arms_with_joints_that_follow_others_are_judged_and_fitted(consistency):
    rng = np.random.default_rng(2)
    bodies = (
        feasid.Body("a", None),
        feasid.Body("b", "a", random_rotation(rng), [0.3, 0.1, 0]),
        feasid.Body("c", "b", random_rotation(rng), [0.2, 0, 0.1]),
    )
    robot = feasid.Robot(bodies, couplings=(feasid.Coupling("c", {"b": -0.5}, 0.2),))
    base = feasid.base_parameters(robot)
    delta = np.concatenate([cloud(rng) for _ in bodies])
    assert feasid.check(base.values(delta), base, consistency=consistency).feasible is True
    delta[robot.inertial_columns[:, :6]] -= 1.0
    verdict = feasid.check(base.values(delta), base, consistency=consistency)
    assert verdict.feasible is False
    verdict.certificate.verify()
    corrected = feasid.correct(base.values(delta), base, consistency=consistency)
    assert corrected.gap < 1e-4
    corrected.optimality.verify()
