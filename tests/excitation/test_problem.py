"""The whole problem: its gradient, and the distances between links that it keeps."""

from dataclasses import replace

import numpy as np
import pytest
from arms import limits, panda, ur5, ur5_capsules

import feasid
from feasid.applications.excitation import design
from feasid.applications.excitation.problem import (
    ConditionNumber,
    LimitBarrier,
    LogDet,
    PredictionVariance,
)
from feasid.applications.excitation.regressor_gradient import MotionRegressor
from feasid.applications.excitation.space import Capsule, LinkDistance, closest_points

BARRIER = LimitBarrier(0.1, 0.02)
GRADIENT = 1e-6
"""Promised. Differences of the fourth order need small steps where two links' nearest points jump
from one end to another, and large ones where eigenvalues of the information are rounded; a wrong
gradient agrees at none."""
STEPS = (1e-3, 1e-4, 1e-5, 1e-6)
DIRECTIONS = 10

ARMS = {
    "panda": (panda, {"panda_hand": ((-0.7, -0.7, 0.0), (0.8, 0.7, 1.2))}, None),
    "ur5": (ur5, {"tool0": ((-0.9, -0.9, 0.0), (0.9, 0.9, 1.2))}, ur5_capsules),
}
NONE = dict.fromkeys(("position", "velocity", "acceleration", "jerk", "torque"))


@pytest.fixture(scope="module", params=ARMS)
def problem(request):
    make, workspace, shapes = ARMS[request.param]
    robot = make()
    setting = design.design_setting(
        robot,
        None,
        True,
        {**NONE, **limits(robot), "jerk": 200.0},
        {"workspace": workspace, "floor": -0.3, "capsules": shapes and shapes(),
         "collision": True, "clearance": 0.01, "ignore": ()},
        0,
    )  # fmt: skip
    basis = design.make_basis("fourier", 10.0, 5, 0.3)
    noise = np.linspace(0.5, 2.0, robot.dof)
    known = np.random.default_rng(0).standard_normal((200, setting.base.size))
    return design.make_problem(setting, basis, 5, True, noise, known, None, 100.0)


def test_everything_is_kept(problem):
    kinds = {type(part).__name__ for part in problem.constraints}
    assert kinds == {"WorkspaceBox", "FloorDistance", "LinkDistance"}
    assert np.isfinite(problem.bounds.torque).all()


@pytest.mark.sampled(0.15)
@pytest.mark.parametrize("name", ["condition", "logdet", "prediction", "gains", "limits only"])
def test_gradient_is_that_of_differences(problem, name):
    size, dof = len(problem.scale), len(problem.weights)
    if name == "gains":
        expected = np.random.default_rng(3).standard_normal(size)
        known = np.pad(problem.known, (0, dof)) + 1e-3 * np.eye(size + dof)
        problem = replace(problem, expected=expected, known=known, scale=np.ones(size + dof))
    objective = {
        "gains": PredictionVariance(np.diag(np.r_[np.zeros(size), np.ones(dof)])),
        "condition": ConditionNumber(8.0),
        "logdet": LogDet(),
        "prediction": PredictionVariance(np.diag(np.linspace(1, 2, size))),
        "limits only": None,
    }[name]
    rng = np.random.default_rng(2)
    z = design.random_motion(problem, rng)
    gradient = problem(z, objective, BARRIER)[1]
    for _ in range(DIRECTIONS):
        d = rng.standard_normal(z.size)

        def at(h, d=d):
            return problem(z + h * d, objective, BARRIER)[0]

        errors = [
            abs((8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h) - gradient @ d)
            for h in STEPS
        ]
        assert min(errors) <= GRADIENT * np.linalg.norm(gradient)


def test_closest_points_of_segments():
    rng = np.random.default_rng(0)
    ends = rng.standard_normal((4, 3, 100))
    ends[1, :, :50] = ends[0, :, :50]  # points
    ends[3, :, 25:75] = ends[2, :, 25:75]
    ends[3, :, 75:100] = ends[2, :, 75:100] + ends[1, :, 75:100] - ends[0, :, 75:100]  # parallel
    near, far = closest_points(*ends)
    found = np.linalg.norm(near - far, axis=0)
    shares = np.linspace(0, 1, 101)
    first = ends[0][..., None] + (ends[1] - ends[0])[..., None] * shares
    second = ends[2][..., None] + (ends[3] - ends[2])[..., None] * shares
    grid = np.linalg.norm(first[..., :, None] - second[..., None, :], axis=0).min(axis=(1, 2))
    assert (found <= grid + 1e-12).all()
    assert (found >= grid - 0.1).all()  # the grid's points are up to so far from any other


def test_distances_are_those_of_a_collision_library():
    coal = pytest.importorskip("coal")
    rng = np.random.default_rng(4)
    robot = feasid.Robot.from_dh([(0.3, 0.4, 0.1, 0), (1.0, 0.3, 0.2, 0), (0.5, 0.2, 0, 0)])
    ends = rng.standard_normal((3, 2, 3)) / 3
    capsules = tuple(Capsule(f"c{k}", k, *both, 0.05) for k, both in enumerate(ends))
    pairs = np.array([[0, 1], [0, 2], [1, 2]])
    q = rng.uniform(-3, 3, (3, 40))
    evaluation = MotionRegressor(robot, ()).evaluate(q, 0 * q, 0 * q)
    ours = LinkDistance(capsules, pairs, 0.0)(evaluation)[0] * 0.05
    for k in range(q.shape[1]):
        for row, (a, b) in enumerate(pairs):
            shapes = []
            for capsule in (capsules[a], capsules[b]):
                at, flow = (..., k, capsule.body), evaluation.flow
                turn, place = flow.turn[at], flow.place[at]
                start, end = turn @ capsule.start + place, turn @ capsule.end + place
                axis = (end - start) / np.linalg.norm(end - start)
                other = np.linalg.svd(axis[None])[2][1:]
                frame = np.column_stack([*other, axis])
                frame[:, 0] *= np.sign(np.linalg.det(frame))
                pose = coal.Transform3s(frame, (start + end) / 2)
                shapes.append((coal.Capsule(0.05, float(np.linalg.norm(end - start))), pose))
            (s1, p1), (s2, p2) = shapes
            theirs = coal.distance(s1, p1, s2, p2, coal.DistanceRequest(), coal.DistanceResult())
            if theirs > 0:
                assert np.isclose(ours[row, k], theirs, atol=1e-6)
            else:
                assert ours[row, k] <= 1e-9
