"""The whole estimate on arms with hidden parameters: no bias, honest deviations, true masses."""

from dataclasses import replace

import numpy as np
import pytest

import feasid
from benchmarks.simulated import Conditions, exact_error, hidden
from feasid.core.errors import InputError
from feasid.identification.effects.joint_terms import remove_terms
from feasid.identification.effects.selection import select_terms
from feasid.identification.estimation.estimator import Estimator
from feasid.identification.estimation.newton import DECREMENT
from feasid.identification.estimation.noise import estimate_noise
from feasid.identification.estimation.priors import WEIGHT
from feasid.identification.estimation.problem import Minimiser
from feasid.identification.regression.equations import EquationReducer
from feasid.identification.regression.reduce import restrict_terms
from feasid.logs.frame import prepare
from feasid.options.complete import complete_options
from feasid.options.tables import FitOptions
from feasid.parameters.identifiability.base import base_parameters

TRANSITION = 0.005
ROUNDING = 1e-9
FLOOR = 1.2  # times the error of the true parameters on the same motion
CLOSE = 0.012  # relative error of the base parameters


def estimator(base, **options):
    return Estimator.from_options(base, complete_options(FitOptions, options, "fit"))


def fitted(arm, robot=None, **options):
    base = base_parameters((arm.terms if robot is None else robot).with_transition(TRANSITION))
    return base, estimator(base, **options).fit(feasid.reduce(arm.log, base=base))


def errors(arm, base, delta):
    """Error over the truth's own on the held-out motion, and that of the base parameters."""
    test = feasid.reduce(arm.test, base=base)
    truth, beta = arm.truth(base), base.K @ delta
    own = np.linalg.norm(test.residuals(truth))
    off = np.linalg.norm(beta - truth) / np.linalg.norm(truth)
    return np.linalg.norm(test.residuals(beta)) / own, off


@pytest.mark.sampled(0.34)
@pytest.mark.parametrize("name", ["panda", "ur5", "z1"])
def test_the_truths_own_floor_is_reached(name):
    arm = hidden(name, 0)
    base, found = fitted(arm)
    ratio, off = errors(arm, base, found.delta)
    assert ratio <= FLOOR
    assert off <= CLOSE
    deviation = np.sqrt(np.diag(base.K @ found.covariance @ base.K.T))
    assert np.mean(np.abs(base.K @ found.delta - arm.truth(base)) < 1.96 * deviation) >= 0.85


def test_minimisers_do_not_depend_on_those_they_were_sought_from():
    """Of other stretches, and of equations that count for nothing or much more."""
    arm = hidden("ur5", 0)
    base = base_parameters(arm.terms.with_transition(TRANSITION))
    data = feasid.reduce(arm.log, base=base)
    task = estimator(base).problem(data)
    noise, _ = estimate_noise(data)
    solutions = Minimiser(task, WEIGHT, task.reference)
    for folds in ([0, 1, 2], [1, 4]):
        r, rho, _ = noise.whitened_triangle(data, folds)
        for pull in (0.0, 30.0):
            found, problem, weight = solutions.solve(pull * r, pull * rho)
            alone = problem.minimise(task.reduce(task.reference), weight)
            cost = problem.cost(alone.delta, weight)
            off = abs(problem.cost(found.delta, weight) - cost)
            assert off <= 2 * DECREMENT + ROUNDING * cost


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("factor", [3.0, 1 / 3.5])
def test_masses_that_the_description_gets_wrong_are_let_go(factor):
    arm = hidden("ur5", 0)
    values = arm.terms.values.copy()
    values[arm.terms.inertial_columns] *= factor
    values[np.isnan(values)] = 0.1
    base, found = fitted(arm, arm.terms.with_values(values))
    ratio, _ = errors(arm, base, found.delta)
    assert ratio <= 1.5
    # believed less than one that could be right
    assert found.prior_weight < fitted(arm)[1].prior_weight


@pytest.mark.slow
def test_the_error_falls_with_the_root_of_the_samples():
    """Ten times the samples of an exact model, a third of the error: the prior fades."""
    errors = [
        np.median([exact_error("ur5", seed, samples) for seed in range(3)])
        for samples in (25_000, 250_000)
    ]
    assert errors[0] / errors[1] > 0.8 * np.sqrt(10)  # medians of three draws
    assert errors[1] < 4e-4


def test_masses_stay_near_a_description_that_could_be_right():
    """A short slow log says little; the masses of the description are what is known."""
    arm = hidden("z1", 1, Conditions(seconds=6.0, speed=0.2))
    base, found = fitted(arm)
    columns = base.robot.inertial_columns[:, 9]
    ratio = found.delta[columns] / arm.robot.values[arm.robot.inertial_columns[:, 9]]
    assert not found.bounds.rejected
    assert (ratio > 1 / 3).all()
    assert (ratio < 3).all()


def test_an_impossible_reference_is_refused():
    arm = hidden("ur5", 0)
    base = base_parameters(arm.terms.with_transition(TRANSITION))
    towards = base.robot.values[base.robot.inertial_columns]
    towards[2, 0] = -1.0
    with pytest.raises(InputError, match="pseudo-inertia of forearm_link"):
        replace(estimator(base), reference=towards).problem(feasid.reduce(arm.log, base=base))


def test_narrowed_data_are_those_of_the_narrower_robot():
    arm = hidden("ur5", 0)
    wide = arm.robot.with_joint_terms(("viscous", "coulomb", "offset", "sqrt", "load"), True)
    wide = wide.with_transition(TRANSITION)
    narrow = base_parameters(arm.terms.with_transition(TRANSITION))
    direct = feasid.reduce(arm.log, base=narrow)
    both = feasid.reduce(arm.log, base=base_parameters(wide))
    derived = restrict_terms(both, wide, narrow)
    assert derived.fingerprint == direct.fingerprint
    assert derived.supports == direct.supports
    for a, b in zip(derived.triangles, direct.triangles, strict=True):
        np.testing.assert_allclose(a.T @ a, b.T @ b, atol=ROUNDING * np.abs(b.T @ b).max())


def test_friction_that_is_there_is_chosen_and_other_is_not():
    """Load-dependent friction on one joint, made by hand on top of MuJoCo's."""
    arm = hidden("ur5", 2)
    terms = ("viscous", "coulomb", "offset", "sqrt", "load")
    wide = arm.robot.with_joint_terms(terms, True).with_transition(TRANSITION)
    base = base_parameters(wide)
    motion = prepare(arm.log, wide, filtering="equations")
    run = motion.runs[0]
    joint = 1
    extra = np.tanh(run.dq[:, joint] / TRANSITION) * 4.0 * np.sqrt(np.abs(run.dq[:, joint]))
    run.tau[:, joint] += extra
    reducer = EquationReducer(wide, [int(c) for c in base.independent], motion.cutoff)
    reducer.add(run)
    plain = base_parameters(remove_terms(wide, [{"fs", "fl"} for _ in wide.drives]))
    found = select_terms(reducer.result(), estimator(base), plain, ("sqrt", "load"))
    assert found.terms == {wide.joints[joint]: ("sqrt",)}
