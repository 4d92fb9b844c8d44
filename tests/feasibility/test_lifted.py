"""Base parameters lifted to the feasible set: Sousa and Cortesao (2014), Sections 3 and 4.2."""

import numpy as np
import pytest
from feasibility_problems import base_of, random_parameters, random_robot

import feasid
from feasid.parameters.feasibility import problems
from feasid.parameters.feasibility.constraints.affine import inertia_block
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.parameters.feasibility.constraints.units import problem_units
from feasid.parameters.feasibility.proof.decide import solutions_of_equations
from feasid.robot import inertia

ATOL = 1e-9  # K of a random arm has coefficients up to a hundred


def lifted(seed, consistency="semi"):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 3, drives=True)
    base, feasible = base_of(robot), feasible_set(robot, consistency)
    truth = random_parameters(rng, robot)
    scale = problem_units(robot, feasible, base.K, base.K @ truth)
    reference = random_parameters(rng, robot)
    fibre = solutions_of_equations(base.K, base.K @ truth, scale.parameters, reference)
    return rng, base, feasible, truth, scale, fibre


def test_the_inertia_matrix_is_positive_exactly_for_positive_mass_and_central_inertia():
    block = inertia_block("link", 0, np.arange(10), "semi")
    rng, seen = np.random.default_rng(0), set()
    for _ in range(400):
        delta = np.diag([4.0] * 6 + [1.5] * 3 + [1.0]) @ rng.standard_normal(10)
        delta[[0, 3, 5]] += 6.0
        mass, _, central = inertia.to_mass_com_inertia(delta)
        possible = bool(mass > 0 and np.linalg.eigvalsh(central)[0] > 0)
        assert (np.linalg.eigvalsh(block.matrix(delta))[0] > 0) == possible
        seen.add((bool(mass > 0), possible))
    assert seen == {(True, True), (True, False), (False, False)}


@pytest.mark.parametrize("seed", range(3))
def test_the_fibre_is_all_virtual_parameters_of_given_base_parameters(seed):
    rng, base, _, truth, scale, (start, directions) = lifted(seed)
    nb, n = base.K.shape
    some = scale.parameters * (start + directions @ rng.standard_normal(n - nb))
    np.testing.assert_allclose(base.K @ some, base.K @ truth, atol=ATOL)
    # the truth itself is on it, reached by exactly one combination of the directions
    there = directions.T @ (truth / scale.parameters - start)
    np.testing.assert_allclose(scale.parameters * (start + directions @ there), truth, atol=ATOL)
    np.testing.assert_allclose(directions.T @ directions, np.eye(n - nb), atol=ATOL)


@pytest.mark.parametrize("consistency", ["semi", "full"])
def test_the_lifted_matrices_are_those_of_the_link_parameters(consistency):
    rng, _, feasible, _, scale, (start, directions) = lifted(0, consistency)
    unknowns = problems.virtual(feasible, scale, start, directions)
    program = problems.feasibility_test(unknowns)
    x = rng.standard_normal(directions.shape[1])
    for variable, value in zip(program.unknowns, (x, 0.0), strict=True):
        variable.value = value
    delta = scale.parameters * (start + directions @ x)
    np.testing.assert_allclose(unknowns.delta.value, delta, atol=ATOL)
    for block, unit, rule in zip(feasible.blocks, scale.blocks, program.matrices, strict=True):
        expected = block.matrix(delta) / np.outer(unit, unit)
        found = rule.args[0].value
        np.testing.assert_allclose(found, expected, atol=ATOL * np.abs(expected).max())
    values = feasible.linear_values(delta) / scale.linear
    np.testing.assert_allclose(-program.numbers.expr.value[:-1], values, atol=ATOL)


def test_some_virtual_parameters_of_a_possible_robot_are_possible_and_others_not():
    """Feasible base parameters ask for one feasible delta, not for all."""
    rng, base, feasible, _, scale, (start, directions) = lifted(1)
    far = scale.parameters * (start + directions @ (100 * rng.standard_normal(directions.shape[1])))
    assert feasible.violations(far)
    whole = feasid.base_parameters(base.robot)
    assert feasid.check(base.K @ far, whole, consistency="semi").feasible
