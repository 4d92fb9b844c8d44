"""What the first version got wrong about feasibility, each tried again."""

import numpy as np
import pandas as pd
import pytest
from feasibility_problems import base_of, random_parameters, random_robot, triangle, with_noise
from logs import arm_parameters
from robots import read_arm

import feasid
from benchmarks.second_checker import holds
from feasid import Body, Robot
from feasid.core.errors import InputError
from feasid.parameters.feasibility import problems, solve
from feasid.parameters.feasibility.check import check
from feasid.parameters.feasibility.constraints.elimination import Elimination
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.parameters.feasibility.constraints.units import problem_units
from feasid.parameters.feasibility.least_squares import feasible_least_squares, regularise
from feasid.parameters.feasibility.proof.decide import solutions_of_equations
from feasid.parameters.feasibility.reference import reference_model
from feasid.parameters.feasibility.solve import SolverAnswer
from feasid.robot import inertia

RNG = np.random.default_rng(0)
ROBOT = random_robot(RNG, 3, drives=True)
TRUTH = random_parameters(RNG, ROBOT)
BASE = base_of(ROBOT)


def test_four_links_of_very_different_masses_are_not_called_impossible():
    robot = random_robot(np.random.default_rng(0), 4)
    delta = random_parameters(np.random.default_rng(1), robot)
    for columns, mass in zip(robot.inertial_columns, (1.0, 1e-9, 1e-9, 1.0), strict=True):
        delta[columns] *= mass / delta[columns[9]]
    base = feasid.base_parameters(robot)
    for consistency in ("full", "semi"):
        verdict = feasid.check(base.values(delta), base, consistency=consistency)
        assert verdict.feasible is True
        assert holds(verdict.certificate.data)


@pytest.mark.parametrize("kind", ["friction", "bounds"])
def test_what_has_a_trivial_proof_gets_one_without_a_limit_or_with_the_largest(kind):
    delta, options = TRUTH.copy(), {}
    if kind == "friction":
        delta[ROBOT.parameter_names.index(("b1", "fv"))] = -1e-6
    else:
        options = {"mass": {"b0": (2.0, None)}, "mass_sums": {"all": (["b0", "b1"], None, 1.0)}}
    verdict = feasid.check(BASE.K @ delta, BASE, **options)
    assert verdict.feasible is False
    limit = verdict.certificate.limit
    assert limit is None or (kind == "bounds" and limit["mass"] == 1e12)
    assert kind == "bounds" or verdict.clash[0] == "fv of b1"


def test_limits_are_in_kilograms_and_metres():
    limit = feasid.check(BASE.K @ TRUTH, BASE).question.size_limits(10**8)
    assert limit["mass"] == "100000000"
    assert float(limit["length"]) >= 10 * max(np.linalg.norm(b.position) for b in ROBOT.bodies)


@pytest.mark.parametrize("points", [0, 1, 2, 3, 4])
def test_a_free_body_on_the_boundary_is_decided(points):
    ten = np.zeros(10)
    for k in range(points):
        place = np.array([0.1 * k, 0.2 * (k == 2), 0.3 * (k == 3)])
        ten += inertia.from_mass_com_inertia(0.5, place, np.zeros((3, 3)))
    robot = Robot((Body("free", None, motion=np.eye(6)),))
    base = feasid.base_parameters(robot)
    verdict = feasid.check(base.values(np.round(ten, 12)), base)
    assert verdict.status == ("feasible" if points == 4 else "boundary")
    assert verdict.boundary == (points < 4)
    assert holds(verdict.certificate.data)
    if points < 4:
        assert "a rod, a point mass, no mass" in verdict.explain()


def test_ties_that_contradict_are_a_certified_no_in_either_form():
    known = {"b2": 2 * TRUTH[ROBOT.inertial_columns[2]]}
    for verdict in (
        feasid.check(BASE.K @ TRUTH, BASE, known=known),
        feasid.check(ROBOT.with_values(TRUTH), known=known),
    ):
        assert verdict.feasible is False
        assert holds(verdict.certificate.data)


@pytest.fixture(scope="module")
def fitting():
    rng = np.random.default_rng(5)
    R = triangle(rng, BASE)
    return R, with_noise(rng, R @ BASE.K @ TRUTH, 0.05)


@pytest.mark.parametrize("ties", ["known", "equal", "mirrored", "total"])
def test_fits_with_ties_settle(fitting, ties):
    R, rho = fitting
    ten = TRUTH[ROBOT.inertial_columns]
    options = {
        "known": {"known": {"b1": ten[1]}},
        "equal": {"equal": [("b1", "b2")]},
        "mirrored": {"mirrored": [("b0", "b1", "x")]},
        "total": {"total_mass": (3.21, 3.21)},
    }[ties]
    feasible = feasible_set(ROBOT, **options)
    optimum = feasible_least_squares(R, rho, BASE, feasible)
    settled = regularise(optimum, 1.0, 0.005)
    assert not feasible.violations(settled.delta)
    assert settled.objective >= optimum.objective
    assert feasible_set(ROBOT).violations(settled.delta) == ()


def test_a_settled_fit_tells_its_own_gap_and_margins(fitting):
    R, rho = fitting
    feasible = feasible_set(ROBOT)
    optimum = feasible_least_squares(R, rho, BASE, feasible)
    settled = regularise(optimum, 0.0, 0.01)
    assert settled.gap > 2 * optimum.gap
    assert settled.objective == pytest.approx(np.sum((R @ settled.beta - rho) ** 2))
    assert settled.margins != optimum.margins


def test_equalities_hold_exactly_behind_the_door():
    feasible = feasible_set(ROBOT, total_mass=(3.3, 3.3), equal=[("b0", "b1")])
    elimination = Elimination.from_equalities(feasible)
    assert elimination.inside.equalities == ()
    assert feasible.size - len(elimination.roots) == 11
    for seed in range(20):
        z = np.random.default_rng(seed).normal(size=len(elimination.roots))
        broken = feasible.violations(elimination.expand(z))
        assert not {e.name for e in feasible.equalities} & set(broken)


def test_a_fit_must_keep_what_it_is_asked_now(tmp_path):
    robot = read_arm(tmp_path).with_joint_terms()
    heavy = robot.with_values(arm_parameters(robot))
    fit = type("Fit", (), {})()
    fit.solution = type("Solution", (), {"delta": heavy.values})()
    fit.robot, fit.feasible = heavy, feasible_set(robot)
    assert check(fit).feasible is True
    light = check(fit, total_mass=1e-3)
    assert light.feasible is False
    assert light.conflict == ("total mass upper",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"totl_mass": 1}, "'totl_mass'.*'total_mass'"),
        ({"consistency": "nonsense"}, "'nonsense'"),
        ({"feasible": feasible_set(ROBOT), "total_mass": 1.0}, "total_mass= would be ignored"),
        ({"feasible": feasible_set(ROBOT), "consistency": "semi"}, "consistency= would be"),
        ({"margin": -1.0}, "margin"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, message):
    for ask in (check, feasid.correct):
        with pytest.raises(InputError, match=message):
            ask(ROBOT.with_values(TRUTH), **options)
        with pytest.raises(InputError, match=message):
            ask(BASE.K @ TRUTH, BASE, **options)


def test_a_path_stands_for_its_robot(tmp_path):
    robot, path = read_arm(tmp_path), tmp_path / "arm.urdf"
    assert check(path).status == check(robot).status
    base = feasid.base_parameters(robot)
    beta = base.values(random_parameters(RNG, robot))
    assert check(beta, str(path)).feasible is True
    assert check(beta, robot).feasible is True
    assert feasid.correct(str(path), bodies=True).changed == feasid.correct(robot).changed


def test_a_table_is_not_base_parameters():
    with pytest.raises(InputError, match="DataFrame does not state"):
        check(BASE.K @ TRUTH, pd.DataFrame({"value": BASE.K @ TRUTH}))


def test_a_body_called_rotor_link_is_judged_like_any_other():
    body = Body("rotor_link", None, motion=np.eye(6))
    ten = inertia.from_mass_com_inertia(2.0, [0.5, 0, 0], 0.1 * np.eye(3))
    robot = Robot((body,))
    box = {"rotor_link": (np.zeros(3), np.full(3, 0.1))}
    verdict = check(robot.with_values(ten), com_ellipsoid=box)
    assert verdict.feasible is False
    assert verdict.conflict == ("com of rotor_link in ellipsoid",)


@pytest.mark.parametrize("value", [1e308, np.inf, -1e60])
def test_numbers_beyond_reason_are_named(value):
    beta = BASE.K @ TRUTH
    beta[3] = value
    with pytest.raises(InputError, match="base parameter 3"):
        check(beta, BASE)


def malformed(kind):
    def backend(program):
        right = np.zeros(program.size)
        answers = {
            "short": SolverAnswer("Solved", right[:-1]),
            "none": SolverAnswer("Solved", None),
            "text": SolverAnswer("Solved", np.array(["a"] * program.size)),
            "blocks": SolverAnswer("Solved", right, (np.zeros((2, 3)),) * len(program.sizes)),
            "prices": SolverAnswer("Solved", right, (), np.zeros(1000)),
        }
        return answers.get(kind)

    return [("fake", kind, backend)]


@pytest.mark.parametrize("kind", ["short", "none", "text", "blocks", "prices", "nothing"])
def test_malformed_answers_of_solvers_are_one_more_refused_attempt(kind):
    verdict = check(BASE.K @ TRUTH, BASE, solver=malformed(kind))
    assert verdict.feasible in (None, True)  # the point from which a search starts may do
    assert all(not a.accepted for a in verdict.attempts)
    feasible = feasible_set(ROBOT)
    scale = problem_units(ROBOT, feasible, BASE.K, BASE.K @ TRUTH)
    reference = reference_model(ROBOT, scale).delta
    start, along = solutions_of_equations(BASE.K, BASE.K @ TRUTH, scale.parameters, reference)
    best, attempts = solve.solve_verified(
        problems.feasibility_test(problems.virtual(feasible, scale, start, along)),
        lambda raw: pytest.fail("judged"),
        malformed(kind),
    )
    assert best is None
    assert len(attempts) == 1


def test_the_conflict_is_searched_with_the_solvers_that_were_given(monkeypatch):
    calls = []

    def counted(program):
        calls.append(program)
        return solve.solve(program, "CLARABEL")

    options = {"mass": {"b0": (50.0, None), "b1": (None, 100.0)}, "total_mass": 20.0}
    verdict = check(BASE.K @ TRUTH, BASE, solver=[("counted", "cone", counted)], **options)
    assert set(verdict.conflict) == {"mass of b0 lower", "total mass upper"}
    assert len(calls) <= 8


@pytest.mark.parametrize("heavy", [1.0, 100.0])
def test_corrections_of_a_gram_beside_a_hundredweight_are_the_closed_form(heavy):
    """A broken triangle inequality goes to the nearest triangle, whatever the body's size."""
    bodies, expected = [], 0.0
    for k, (mass, size) in enumerate([(heavy, 0.3), (1e-3, 0.01), (1e-3, 0.02)]):
        scale = mass * size**2
        broken = np.diag([1.0, 1.0, 5.0]) * scale
        ten = inertia.from_mass_com_inertia(mass, np.zeros(3), broken)
        bodies.append(Body(f"b{k}", f"b{k - 1}" if k else None, inertial=ten))
        expected += 3.0 * scale**2
    correction = feasid.correct(Robot(tuple(bodies)), margin=0.0)
    assert correction.distance == pytest.approx(np.sqrt(expected), rel=1e-6)
    for k, columns in enumerate(correction.robot.inertial_columns):
        given = bodies[k].inertial
        moved = np.linalg.norm(correction.delta[columns] - given)
        assert moved == pytest.approx(np.sqrt(3.0) * given[0], rel=1e-6)


@pytest.mark.parametrize(
    "values", [np.ma.masked_all(len(BASE.K)), [10**400, *[1] * (len(BASE.K) - 1)]]
)
@pytest.mark.parametrize("function", [check, feasid.correct])
def test_values_that_are_no_numbers_are_refused(values, function):
    with pytest.raises(InputError, match="base parameters must be numbers"):
        function(values, BASE)
