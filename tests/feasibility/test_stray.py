"""Numbers of odd sizes: no stray exceptions, and sentences that say what was decided."""

from types import SimpleNamespace

import numpy as np
import pytest
from feasibility_problems import base_of, planar, random_parameters, triangle

import feasid
from benchmarks.proofs import NEW, OLD, outcome
from benchmarks.second_checker import holds
from feasid.parameters.feasibility import solve
from feasid.parameters.feasibility.constraints.elimination import Elimination
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.parameters.feasibility.least_squares import feasible_least_squares
from feasid.parameters.feasibility.proof.infeasibility import InfeasibilityProver
from feasid.parameters.feasibility.proof.question import ExactData

ROBOT = planar(np.random.default_rng(0), 2)
BASE = base_of(ROBOT)
TRUTH = random_parameters(np.random.default_rng(1), ROBOT)


@pytest.mark.parametrize(
    ("off", "status"), [(0.0, "feasible"), (4e-10, "feasible"), (5e-9, "infeasible")]
)
def test_equations_that_agree_within_rounding_only_are_named_and_others_refuted(off, status):
    beta = BASE.K @ TRUTH
    i = int(np.argmax((BASE.K != 0).sum(axis=1)))
    twice = SimpleNamespace(robot=ROBOT, K=np.vstack([BASE.K, BASE.K[i]]))
    verdict = feasid.check(np.r_[beta, beta[i] * (1 + off)], twice)
    assert verdict.status == status
    assert holds(verdict.certificate.data)
    small = 0 < off < 1e-9
    assert ("agree with each other only within" in verdict.explain()) is small
    assert ("agree with each other only within" in str(verdict)) is small
    if small:
        assert 0.01 * off <= verdict.disagreement <= off * 1.01


def test_sums_of_zeros_are_zeros():
    names = [b.name for b in ROBOT.bodies]
    feasible = feasible_set(ROBOT, mass_sums={"no mass": (names, 0.0, 0.0)})
    elimination = Elimination.from_equalities(feasible)
    assert (elimination.expand(np.zeros(len(elimination.roots))) == 0).all()


@pytest.mark.parametrize("size", [1e-305, 1e-30, 1.0, 1e25])
def test_data_of_any_size_are_decimals(size):
    numbers = size * np.array([[1.0, -0.125], [3.0, 0.0]])
    data = ExactData.from_doubles(numbers, numbers[:, 0])
    R, rho = data.as_doubles
    expected = numbers if size > 1e-290 else 0 * numbers
    np.testing.assert_allclose(R, expected, rtol=1e-15)
    np.testing.assert_allclose(rho, expected[:, 0], rtol=1e-15)
    assert data.transpose_times([1, 0]) == [sum(data.matrix_times({k: 1})[:1]) for k in (0, 1)]


@pytest.mark.parametrize("size", [1e-12, 1e22])
def test_bounds_of_data_in_odd_units_are_proved(size):
    rng = np.random.default_rng(2)
    R = triangle(rng, BASE)
    rho = R @ BASE.K @ TRUTH + 0.1 * rng.normal(size=len(BASE.K))
    plain = feasible_least_squares(R, rho, BASE, feasible_set(ROBOT))
    fit = feasible_least_squares(size * R, size * rho, BASE, feasible_set(ROBOT))
    assert holds(fit.optimality.data)
    assert float(fit.gap) == pytest.approx(float(plain.gap), abs=1e-4)


@pytest.mark.parametrize("kind", ["own values", "mixed scales", "tied, rotors"])
def test_problems_of_odd_sizes_are_decided(kind):
    """Known bodies of 1e-9 to 1e9 kg; bodies of .07 to .3 kg that are equal."""
    for seed in range(2):
        _, answer, status = outcome(seed, {kind: NEW[kind]})
        assert status != "inconclusive", (seed, answer)


def undecided(monkeypatch, families, kind, seed):
    """The verdict of one solver on a random problem, which must be none."""
    monkeypatch.setattr(
        solve, "solver_attempts", lambda _=None, whole=solve.solver_attempts: whole()[:1]
    )
    base, beta, options, _ = families[kind](np.random.default_rng(seed))
    verdict = feasid.check(beta, base, **options)
    assert verdict.status == "inconclusive"
    return verdict


def test_an_undecided_verdict_says_that_some_body_is_too_small(monkeypatch):
    """A body of 1e-9 kg beside heavy ones: so far nothing is proved, and no answer is given."""
    verdict = undecided(monkeypatch, NEW, "massless chain", 1046)
    assert "less than solvers resolve" in verdict.explain()
    assert "less than solvers resolve" in " ".join(str(verdict).split())


def test_an_undecided_verdict_prints_margin_and_rounding(monkeypatch):
    monkeypatch.setattr(InfeasibilityProver, "from_solver", lambda *_: iter(()))
    text = undecided(monkeypatch, OLD, "contradicting", 0).explain()
    assert "seems infeasible, but no contradiction was found" in text
    assert "rounding of K: " in text
