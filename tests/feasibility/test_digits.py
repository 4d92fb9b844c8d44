"""K and the faces of the cone to many digits, and what proofs gain by them."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from feasibility_problems import energy, random_robot, random_rotation
from second_checker import holds

import feasid
from feasid import Body, Robot
from feasid.exact.poses import CONTEXT
from feasid.feasibility.constraints.sets import feasible_set
from feasid.feasibility.proof.energies import Energies
from feasid.feasibility.proof.precise import precise_rows
from feasid.feasibility.proof.question import Question

OTHER = 40
"""Motions that were not used to find the digits."""


def question(robot):
    base = feasid.base_parameters(robot)
    return base, Question.of(robot, feasible_set(robot), np.asarray(base.K), None)


@pytest.mark.parametrize("seed", range(6))
def test_precise_rows_hold_for_other_motions_to_forty_digits(seed):
    robot = random_robot(np.random.default_rng(seed), 3, drives=seed % 2 == 0)
    base, asked = question(robot)
    _, rows = precise_rows(robot, asked.rows)
    leads = [int(j) for j in base.independent]
    with localcontext(CONTEXT):
        E = Energies.of(robot, OTHER).rows
        for j in range(robot.size):
            told = sum(
                (
                    E[:, lead] * Decimal(row[j].numerator) / row[j].denominator
                    for lead, row in zip(leads, rows, strict=True)
                    if j in row
                ),
                E[:, 0] * 0,
            )
            assert max(abs(x) for x in told - E[:, j]) < Decimal("1e-40") or not E[:, j].any()
    K = np.array([[float(row.get(j, 0)) for j in range(robot.size)] for row in rows])
    np.testing.assert_allclose(K, base.K, rtol=1e-11, atol=1e-12)


def test_energies_are_those_of_the_regressor():
    robot = random_robot(np.random.default_rng(3), 3)
    rows = Energies.of(robot, OTHER).rows.astype(float)
    base = feasid.base_parameters(robot)
    assert np.linalg.matrix_rank(rows, tol=1e-9) == len(base.K)
    assert np.linalg.matrix_rank(np.vstack([rows, base.K]), tol=1e-9) == len(base.K)


def test_rational_geometry_needs_no_more_digits():
    turn = np.array([[1.0, 0, 0], [0, 0.6, -0.8], [0, 0.8, 0.6]])
    bodies = (Body("a", None), Body("b", "a", rotation=turn, position=np.array([0.3, 0, 0.1])))
    _, asked = question(Robot(bodies))
    assert asked.precise() is None


def test_numbers_that_are_no_base_parameters_keep_their_digits():
    robot = random_robot(np.random.default_rng(4), 3)
    _, asked = question(robot)
    (j, value), *_ = [(j, c) for j, c in asked.rows[0].items() if c != 1]
    wrong = ({**asked.rows[0], j: value + Fraction(1, 10**6)}, *asked.rows[1:])
    assert precise_rows(robot, wrong) is None


def test_what_doubles_left_of_a_zero_is_left_out():
    robot = Robot((Body("a", None), Body("b", "a", random_rotation(np.random.default_rng(6)))))
    base, asked = question(robot)
    moves = [j for j in range(robot.size) if any(j in row for row in asked.rows)]
    row, j = next(
        (i, j)
        for i, row in enumerate(asked.rows)
        for j in moves
        if j not in row and j not in base.independent
    )
    noisy = list(asked.rows)
    noisy[row] = {**noisy[row], j: Fraction(1, 10**17)}
    _, rows = precise_rows(robot, tuple(noisy))
    assert j not in rows[row]
    assert all(all(row.values()) for row in rows)


@pytest.mark.parametrize("consistency", ["full", "semi"])
def test_little_negative_energy_is_refuted_where_angles_are_irrational(consistency):
    rng = np.random.default_rng(5)
    robot = random_robot(rng, 3)
    base = feasid.base_parameters(robot)
    beta = base.values(np.tile([1.0, 0, 0, 1, 0, 1, 0, 0, 0, 1], 3))
    y = energy(rng, robot, base)
    i = int(np.argmax(np.abs(y * beta)))
    beta[i] -= (1 + 1e-7) * (y @ beta) / y[i]
    verdict = feasid.check(beta, base, consistency=consistency)
    assert verdict.status == "infeasible"
    assert verdict.certificate.limit["mass"] >= 1e10
    assert holds(verdict.certificate.data)
