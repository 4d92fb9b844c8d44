"""Certificates against the robot's own K, which their decimals round, and against its data."""

import json
from fractions import Fraction

import numpy as np
import pytest
from feasibility_problems import energy, random_parameters, random_robot

import feasid
from feasid import Body, Robot
from feasid.certificate import digest
from feasid.feasibility.constraints.sets import feasible_set
from feasid.feasibility.least_squares import feasible_least_squares
from feasid.feasibility.proof.claim import Certificate
from feasid.feasibility.proof.presolve import Presolved
from feasid.feasibility.proof.question import Question
from feasid.feasibility.proof.survival import told, triangles
from feasid.robot import inertia


def arm(seed):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 3)
    return rng, robot, feasid.base_parameters(robot), random_parameters(rng, robot)


def fitted(seed):
    rng, robot, base, delta = arm(seed)
    R = np.triu(rng.normal(size=(base.size, base.size)))
    rho = R @ base.values(delta) + rng.normal(size=base.size)
    return base, feasible_least_squares(R, rho, base, feasible_set(robot))


def infeasible(seed, by):
    rng, robot, base, delta = arm(seed)
    beta, y = base.values(delta), energy(rng, robot, base)
    i = int(np.argmax(np.abs(y * beta)))
    beta[i] -= (1 + by) * (y @ beta) / y[i]
    return base, feasid.check(beta, base).certificate


def changed(certificate, by):
    """The same certificate with the irrational coefficients of K changed."""
    data = json.loads(json.dumps(certificate.data))
    for pair in (p for row in data["matrix"] for p in row if len(p[1]) > 12):
        pair[1] = f"{float(Fraction(pair[1]) + Fraction(by)):.17g}"
    return Certificate({**data, "digest": digest(data)})


def test_a_point_moves_with_the_rounding_of_k_and_stays_inside():
    _, _, base, delta = arm(1)
    certificate = feasid.check(base.values(delta), base).certificate
    lines = list(told(certificate, base.robot, np.asarray(base.K)))
    assert all(holds for holds, _ in lines)
    assert "the point moves" in lines[-1][1]


def test_a_point_at_the_edge_does_not_survive_coarse_digits():
    _, robot, base, delta = arm(2)
    columns = robot.inertial_columns[0]
    pseudo = inertia.pseudo_inertia(delta[columns])
    values, vectors = np.linalg.eigh(pseudo)
    values[0] = 1e-12
    delta[columns] = inertia.from_pseudo_inertia((vectors * values) @ vectors.T)
    K = np.asarray(base.K)
    last = {}
    for coarse in (0.0, 1e-10, -1e-10):
        matrix = np.where(np.isin(K, (0.0, 1.0)), K, K + coarse)
        question = Question.of(robot, feasible_set(robot), matrix, matrix @ delta)
        certificate = question.feasibility(Presolved.of(question).completed(delta))
        *_, last[coarse] = told(certificate, robot, K)
    assert last[0.0][0]
    lost = (False, "the robot's own K: rounding may move the point out")
    assert lost in (last[1e-10], last[-1e-10])


@pytest.mark.parametrize("by", [1e-1, 1e-6])
def test_a_refutation_survives_the_rounding_of_k(by):
    base, certificate = infeasible(3, by)
    lines = list(told(certificate, base.robot, np.asarray(base.K)))
    assert all(holds for holds, _ in lines)
    assert "survives its rounding, up to 1" in lines[-1][1]


def test_a_refutation_by_little_does_not_survive_coarse_digits():
    base, certificate = infeasible(3, 1e-6)
    lines = list(told(changed(certificate, "1e-13"), base.robot, np.asarray(base.K)))
    assert lines[0][0]
    assert lines[-1] == (False, "the robot's own K: rounding may undo the proof")


def test_a_bound_is_told_for_the_robots_own_k():
    base, fit = fitted(4)
    lines = list(told(fit.optimality, base.robot, np.asarray(base.K)))
    assert all(holds for holds, _ in lines)
    told_root = float(lines[-1][1].split("than ")[1].split(",")[0])
    assert told_root == pytest.approx(float(Fraction(fit.optimality.data["floor"])) ** 0.5)


def test_another_robot_is_noticed_by_its_k():
    base, certificate = infeasible(3, 1e-1)
    bodies = [
        Body(b.name, b.parent, b.rotation, b.position + 1e-5 * (b.parent is not None), b.motion)
        for b in base.robot.bodies
    ]
    other = feasid.base_parameters(Robot(tuple(bodies)))
    assert not next(told(certificate, other.robot, np.asarray(other.K)))[0]


def test_rational_robots_lose_nothing():
    robot = Robot((Body("a", None), Body("b", "a", position=np.array([0.3, 0, 0.1]))))
    base = feasid.base_parameters(robot)
    delta = np.tile([0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 1.0], 2)
    certificate = feasid.check(base.values(delta), base).certificate
    assert [*told(certificate, robot, np.asarray(base.K))][-1] == (
        True,
        "the robot's own K: nothing is lost",
    )


def test_triangles_are_compared_whatever_their_rotation():
    base, fit = fitted(5)
    R, rho = fit.problem.R, fit.problem.rho
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(len(rho), len(rho))))[0]
    assert triangles(fit.optimality, Q @ R, Q @ rho)[0]
    assert not triangles(fit.optimality, R, rho * (1 + 1e-6))[0]
    assert not triangles(fit.optimality, R[:, :-1], rho)[0]
    assert base.size == R.shape[1]
