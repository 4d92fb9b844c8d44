"""The three problems in CVXPY against verified answers, solvers by name, a caller's constraints."""

import cvxpy as cp
import numpy as np
import pytest
from feasibility_problems import noisy, random_parameters, random_robot
from logs import arm_and_log
from thorough import some

import feasid
from feasid.core.errors import InputError, SolverError
from feasid.parameters.feasibility import closest, problems, solve
from feasid.parameters.feasibility.constraints.sets import feasible_set
from feasid.parameters.feasibility.constraints.units import problem_units
from feasid.parameters.feasibility.least_squares import feasible_least_squares

pytestmark = pytest.mark.filterwarnings("ignore:Solution may be inaccurate")

COST = 1e-6
"""Between a program's optimum and a verified answer without ridge and pull, as a share of |rho|."""

PULLED = 3e-5
"""The same where masses are not bounded. The least residual is then at infinity: at a tenth of the
pull masses grow 4.6-fold and the excess falls as much, to 8e-6 at most of 24 problems with the pull
that is used. With bounds on masses, under which it is attained, `COST` is kept."""

LARGE = 1e-7
"""Rounding of base parameters, as a share: models with the largest margin may be heavy."""

SOLVED = 1e-6
"""Of a margin that Clarabel calls optimal."""

REDUCED = 5e-5
"""Clarabel's tolerance of gap and feasibility where its status is "optimal_inaccurate"."""

HEAVIEST = 2.0
"""Bound on masses [kg]; the true ones are below."""

AT_INFINITY = 1.1 * closest.WORTH
"""Of distances whose smallest is at infinity, as a share of them: where parameters grow, this share
has to be gained for it."""

SHORT = 5e-4
"""A plain solve of such a program ends short of infinity, too: 3.0e-4 above ours at most."""

WEAK_PULLS = 1e-3
"""Between residuals of Clarabel and of SCS, which may not reach programs with weaker pulls."""


def accuracy(program):
    """How exactly a plain solve states the optimum, by its own status."""
    return COST if program.problem.status == "optimal" else REDUCED


def bounded(robot):
    return {"mass": {body.name: (None, HEAVIEST) for body in robot.bodies}}


@pytest.mark.parametrize("seed", some([*range(60), 148], 0, 1))
def test_programs_of_fit_and_correction_agree_with_verified_answers(seed):
    base, R, rho, _ = noisy(seed)
    size = np.linalg.norm(rho)
    for bounds, tolerance in (({}, PULLED), (bounded(base.robot), COST)):
        p = problems.robot_unknowns(base, rho, R, **bounds)
        program = problems.feasible_least_squares(R, rho, p, 0.0)
        assert program.problem.is_dcp(dpp=True)
        program.problem.solve(solver=cp.CLARABEL)
        feasible = feasible_set(base.robot, **bounds)
        fit = feasible_least_squares(R, rho, base, feasible, margin=0.0, friction_ridge=0.0)
        residual = np.sqrt(fit.objective) / size
        floor = np.sqrt(fit.floor) / size
        assert floor - accuracy(program) < program.problem.value < residual + accuracy(program)
        assert residual - program.problem.value < tolerance
    base, _, _, truth = noisy(seed, bodies=2)
    wrong = truth.copy()
    wrong[base.robot.inertial_columns[1, :6]] -= 0.2
    beta = base.K @ wrong
    size = np.linalg.norm(beta)
    for bounds, share in (({}, AT_INFINITY), (bounded(base.robot), 0.0)):
        done = feasid.correct(beta, base, margin=0.0, **bounds)
        p = problems.robot_unknowns(base, beta, **bounds)
        program = problems.closest_correction(beta, p, np.eye(len(beta)), 0.0)
        assert program.problem.is_dcp(dpp=True)
        program.problem.solve(solver=cp.CLARABEL, ignore_dpp=True)
        distance = done.distance / size
        value, within = program.problem.value, accuracy(program)
        short = SHORT if share else 0.0
        assert distance - done.gap - within < value < (1 + short) * distance + within
        assert distance - value < COST + share * distance


def test_new_data_are_new_values_of_parameters():
    base, R, rho, _ = noisy(0, bodies=2)
    feasible = feasible_set(base.robot)
    p = problems.unknowns(feasible, problem_units(base.robot, feasible, R @ base.K, rho), base.K)
    R, rho = R / np.linalg.norm(rho), rho / np.linalg.norm(rho)
    program = problems.feasible_least_squares(R, rho, p)
    program.problem.solve(solver=cp.CLARABEL)
    given = program.problem.param_dict
    assert set(given) == {"R", "rho"}
    given["R"].value, given["rho"].value = 2 * R, 2 * rho
    before = program.problem.value
    assert program.problem.solve(solver=cp.CLARABEL) == pytest.approx(2 * before, rel=1e-5)


@pytest.mark.parametrize("seed", some(range(3), 2))
def test_scs_and_clarabel_agree(seed):
    base, R, rho, _ = noisy(seed, bodies=2)
    feasible = feasible_set(base.robot)
    given = R, rho, base, feasible
    one, two = (feasible_least_squares(*given, solver=name) for name in ("CLARABEL", "scs"))
    assert {a.solver for a in one.attempts} == {"clarabel"}
    assert {a.solver for a in two.attempts} == {"scs"}
    assert np.sqrt(two.objective) == pytest.approx(np.sqrt(one.objective), rel=WEAK_PULLS)
    problem, rows = one.problem, R @ base.K
    reference = problem.reference.delta
    goal = closest._Goal(rows, rho, feasible, None)
    given = closest._problem(goal, problem.units, reference).with_pull(closest.FAINT_PULL)
    answers = [solve.solve(given.program, name) for name in ("CLARABEL", "SCS")]
    values = [np.linalg.norm(given.arrays.A @ a.x - given.arrays.b) for a in answers]
    if "inaccurate" not in answers[1].status:  # SCS gives up on one of these after its iterations
        assert values[0] == pytest.approx(values[1], abs=COST)
    for name in ("CLARABEL", "SCS"):
        beta = base.K @ random_parameters(np.random.default_rng(seed), base.robot)
        assert feasid.check(beta, base, solver=name).feasible is True


def test_solvers_that_are_not_there_are_named():
    base, R, rho, _ = noisy(0, bodies=1)
    with pytest.raises(InputError, match="not installed"):
        feasible_least_squares(R, rho, base, feasible_set(base.robot), solver="MOSEK")
    with pytest.raises(SolverError, match="osqp"):
        feasible_least_squares(R, rho, base, feasible_set(base.robot), solver="OSQP")


# -- constraints of a caller ----------------------------------------------------------------------


def light(p):
    return {
        "light": p["b1", "m"] <= 0.3,
        "spread": p["b2"].pseudo_inertia >> 1e-4 * np.eye(4),
        "even": p["b0"].com_moment[0] == p["b0"].com_moment[1],
    }


def round_com(p):
    return [cp.norm(p["b2"].com_moment) <= 0.05 * p["b2"].mass]


@pytest.fixture(scope="module")
def case():
    base, R, rho, truth = noisy(2)
    return base.robot, base, R, rho, truth


def test_affine_constraints_enter_sets_proofs_and_answers(case):
    robot, base, R, rho, _ = case
    feasible = feasible_set(robot, constraints=light)
    assert feasible.user_constraints == {"light", "spread"}
    assert [e.name for e in feasible.equalities] == ["even"]
    fit = feasible_least_squares(R, rho, base, feasible)
    ten = fit.delta[robot.inertial_columns]
    assert ten[1, 9] <= 0.3
    assert ten[0, 6] == ten[0, 7]
    verdict = feasid.check(robot.with_values(fit.delta), feasible=feasible)
    assert verdict.feasible
    assert verdict.outside == ()
    same = feasible_set(robot, linear={"light": ({("b1", "m"): 1.0}, None, 0.3)})
    other = feasible_set(robot, constraints=lambda p: {"light upper": p["b1", "m"] <= 0.3})
    np.testing.assert_array_equal(same.linear_matrix, other.linear_matrix)
    np.testing.assert_array_equal(same.linear_constant, other.linear_constant)


def test_a_contradictory_constraint_makes_infeasible_with_a_proof(case):
    robot, base, R, rho, truth = case

    def heavy(p):
        return {"heavy": p["b1", "m"] >= 5.0, "light": p["b1", "m"] <= 4.0}

    verdict = feasid.check(base.K @ truth, base, constraints=heavy)
    assert verdict.status == "infeasible"
    assert "heavy" in verdict.conflict
    assert verdict.certificate.verify()
    known = feasid.check(robot.with_values(truth), constraints=lambda p: p["b1", "m"] >= 50.0)
    assert known.status == "infeasible"
    with pytest.raises(InputError, match="cannot hold together"):
        feasible_least_squares(R, rho, base, feasible_set(robot, constraints=heavy))


def test_a_constraint_on_base_parameters_is_one_on_k_delta(case):
    _, base, _, _, truth = case
    beta = base.K @ truth
    for limit, answer in ((beta[0] + 0.1, True), (beta[0] - 0.1, False)):
        verdict = feasid.check(beta, base, constraints=lambda p, b=limit: p.base[0] <= b)
        assert verdict.feasible is answer


def test_corrections_keep_constraints_of_either_kind(case):
    robot, _, _, _, truth = case
    given = robot.with_values(truth)
    for constraints in (light, round_com):
        done = feasid.correct(given, constraints=constraints)
        assert done.changed
        feasible = feasible_set(robot, constraints=constraints)
        assert feasible.violations(done.delta) == ()
        assert feasid.check(done.robot, constraints=constraints).feasible
    ten = done.delta[robot.inertial_columns[2]]
    assert np.linalg.norm(ten[6:9]) == pytest.approx(0.05 * ten[9], rel=1e-3)


def test_constraints_that_are_not_affine_are_kept_and_said_to_be_outside(case):
    robot, base, R, rho, _ = case
    feasible = feasible_set(robot, constraints=round_com)
    free = feasible_least_squares(R, rho, base, feasible_set(robot))
    fit = feasible_least_squares(R, rho, base, feasible)
    assert feasible.contains_strictly(fit.delta)
    assert not feasible.contains_strictly(free.delta)
    assert free.objective < fit.objective
    assert "1 constraints that are not affine" in fit.verified
    scale = problem_units(robot, feasible, R @ base.K, rho, torques=True)
    p = problems.unknowns(feasible, scale, base.K)
    size = np.linalg.norm(rho)
    value = problems.feasible_least_squares(R / size, rho / size, p).problem.solve("CLARABEL")
    assert np.sqrt(fit.objective) / size == pytest.approx(value, abs=PULLED)
    verdict = feasid.check(robot.with_values(fit.delta), constraints=round_com)
    assert verdict.feasible
    assert "outside any proof: constraint 1" in verdict.explain()
    broken = feasid.check(robot.with_values(free.delta), constraints=round_com)
    assert broken.feasible is None


@pytest.mark.parametrize(
    ("constraints", "match"),
    [
        (lambda p: cp.norm(p["b1"].com_moment) >= 1, "not convex"),
        (lambda p: [True], "not a CVXPY constraint"),
        (lambda p: [p["b1"].m <= 1], r"p\[body, symbol\], p.base\), raised AttributeError"),
        (lambda p: p["b1", "m"] <= np.nan, "not finite"),
    ],
)
def test_what_is_no_constraint_on_parameters_is_refused(case, constraints, match):
    with pytest.raises(InputError, match=match):
        feasible_set(case[0], constraints=constraints)


# -- fits ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return arm_and_log(tmp_path_factory.mktemp("programs"), 1200, 0.01)


QUICK = {"diagnose": False, "candidates": ()}


def in_si(problem, robot):
    owners = dict.fromkeys(owner for owner, _ in robot.parameter_names)
    delta = np.zeros(robot.size)
    for owner in owners:
        columns = [j for j, name in enumerate(robot.parameter_names) if name[0] == owner]
        delta[columns] = problem.var_dict[owner].value
    return delta


@pytest.mark.parametrize(
    "options",
    [
        *({}, {"prior_weight": 0.3}, {"mass": {"upper": (None, 1.0)}}),
        {"prior": "euclidean", "prior_weight": 0.3},
        {"prior": feasid.GaussianPrior},
    ],
    ids=str,
)
def test_the_newton_path_ends_where_cvxpy_does(log, options):
    robot, frame = log
    if options.get("prior") is feasid.GaussianPrior:
        earlier = feasid.fit(frame.iloc[: len(frame) // 2], robot, **QUICK)
        options = {"prior": feasid.GaussianPrior.of(earlier)}
    fit = feasid.fit(frame, robot, **QUICK, **options)
    problem = fit.problem()
    problem.solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(in_si(problem, fit.description), fit.delta, atol=1e-4, rtol=1e-4)
    assert problem.param_dict["units"].value.min() > 0


def test_the_program_without_a_prior_has_the_fits_residual(log):
    robot, frame = log
    fit = feasid.fit(frame, robot, prior=None, **QUICK)
    problem = fit.problem()
    problem.solve(solver=cp.CLARABEL)
    r, rho, _ = fit.triangle
    residual = np.linalg.norm(r @ (fit.base.K @ in_si(problem, fit.description)) - rho)
    assert residual == pytest.approx(np.sqrt(fit.optimum.objective), abs=COST * np.linalg.norm(rho))


@pytest.mark.parametrize("prior", ["entropic", None])
def test_a_fit_keeps_constraints_of_either_kind(log, prior):
    robot, frame = log
    free = feasid.fit(frame, robot, prior=prior, **QUICK)
    name = robot.bodies[0].name
    mass, moment = (free.delta[robot.inertial_columns[0]][k] for k in (9, slice(6, 9)))
    limit = 0.5 * np.linalg.norm(moment) / mass

    def constraints(p):
        return {
            "light": p[name, "m"] <= 0.9 * mass,
            "near": cp.norm(p[name].com_moment) <= limit * p[name].mass,
        }

    fit = feasid.fit(frame, robot, prior=prior, constraints=constraints, **QUICK)
    ten = fit.delta[fit.robot.inertial_columns[0]]
    assert ten[9] <= 0.9 * mass
    assert np.linalg.norm(ten[6:9]) <= limit * ten[9]
    assert fit.certificate.verify()
    assert any("outside the certificate" in str(note) for note in fit.notes)
    with pytest.raises(InputError, match="cannot hold together"):
        feasid.fit(
            frame, robot, prior=prior, mass={name: (2.0, None)}, **QUICK,
            constraints=lambda p: p[name, "m"] <= 1.0,
        )  # fmt: skip


@pytest.mark.parametrize("seed", some([*range(200)], 0, 1))
def test_an_answer_of_a_program_is_no_further_from_the_optimum_than_its_gap(seed):
    base, R, rho, truth = noisy(seed, bodies=2)
    bounds = bounded(base.robot) if seed % 2 else {}
    p = problems.robot_unknowns(base, rho, R, **bounds)
    program = problems.feasible_least_squares(R, rho, p)
    answers = [feasid.problems.solve(program, name) for name in ("CLARABEL", "scs")]
    least = min(np.sqrt(a.objective) for a in answers) / np.linalg.norm(rho)
    for answer in answers:
        assert p.feasible.violations(answer.delta) == ()
        assert np.sqrt(answer.objective) / np.linalg.norm(rho) - least <= answer.gap < 1e-5
    truth[base.robot.inertial_columns[1, :6]] -= 0.1 * (seed % 3)
    beta = base.K @ truth
    p = problems.robot_unknowns(base, beta, **bounds)
    program = problems.feasibility_test(p, beta)
    program.problem.solve(solver=cp.CLARABEL, ignore_dpp=True)
    for name in ("CLARABEL", "scs"):
        answer = feasid.problems.solve(program, name)
        reached, size = base.K @ answer.delta, abs(beta).max()
        np.testing.assert_allclose(reached, beta, rtol=0, atol=LARGE * size)
        assert answer.margin == pytest.approx(min(1.0, *p.scale.margins(p.feasible, answer.delta)))
        assert program.problem.value - SOLVED < answer.margin + answer.gap
        assert answer.gap < 1e-5


def test_programs_without_a_gap_say_so(case):
    robot, base, R, rho, truth = case
    feasible = feasible_set(robot)
    p = problems.unknowns(feasible, problem_units(robot, feasible, R @ base.K, rho), base.K)
    with pytest.raises(InputError, match=r"has no gap: only .* use program\.problem\.solve"):
        feasid.problems.solve(problems.feasible_least_squares(R, rho, p))
    p = problems.robot_unknowns(base, base.K @ truth, constraints=round_com)
    with pytest.raises(InputError, match="not affine has no gap"):
        feasid.problems.solve(problems.feasibility_test(p, base.K @ truth))
    with pytest.raises(InputError, match="did you mean 'CLARABEL'"):
        feasid.problems.solve(problems.closest_correction(base.K @ truth, p), "clarabell")


RESOLVED = 2e-3
"""Relative difference of margins below zero, where Clarabel's tolerances are of K's rows."""


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("wrong", [0.0, 0.3], ids=["feasible", "infeasible"])
def test_margins_of_the_program_and_of_check_have_one_unit(seed, wrong):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 3, drives=seed % 2 == 0)
    base = feasid.base_parameters(robot)
    delta = random_parameters(rng, robot)
    delta[robot.inertial_columns[1, :6]] -= wrong
    beta = base.K @ delta
    verdict = feasid.check(beta, base, **bounded(robot))
    p = problems.robot_unknowns(base, beta, **bounded(robot))
    program = problems.feasibility_test(p, beta)
    program.problem.solve(solver=cp.CLARABEL, ignore_dpp=True)
    values = verdict.scale.margins(p.feasible, p.delta.value)
    assert program.problem.value == pytest.approx(min(values), rel=RESOLVED)
    if wrong:
        assert verdict.margin == pytest.approx(program.problem.value, rel=RESOLVED)
    else:  # the margin of a point that proves it may be a smaller one
        assert 0 < verdict.margin < program.problem.value * (1 + RESOLVED)


@pytest.mark.parametrize("wrong", [-1, 1], ids=["one too few", "one too many"])
def test_data_of_another_shape_are_named(wrong):
    robot = random_robot(np.random.default_rng(0), 2)
    base = feasid.base_parameters(robot)
    beta, R = np.ones(len(base.K)), np.eye(len(base.K))
    p = feasid.problems.robot_unknowns(base, beta)
    other = np.ones(len(beta) + wrong)
    wide = np.ones((len(R), len(other)))
    for name, program in (
        ("beta", lambda: problems.feasibility_test(p, other)),
        ("beta", lambda: problems.closest_correction(other, p)),
        ("rho", lambda: problems.feasible_least_squares(R, other, p)),
        ("R", lambda: problems.feasible_least_squares(wide, beta, p)),
        ("weight", lambda: problems.closest_correction(beta, p, weight=wide[:2])),
    ):
        with pytest.raises(InputError, match=f"{name} has shape"):
            program()
