"""Feasibility verdicts: proved, right, and said in terms of what was given."""

import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from claims import signed
from feasibility_problems import base_of, random_parameters, random_robot
from seeds import seed_of

import feasid
from feasid import certificate
from feasid.core.errors import InputError
from feasid.core.exact.numbers import shortest_text
from feasid.parameters.feasibility.proof.claim import Certificate
from feasid.parameters.feasibility.solve import SolverAnswer
from feasid.robot import inertia

DIAG_115 = feasid.Robot((feasid.Body("link", None, inertial=[1, 0, 0, 1, 0, 5, 0, 0, 0, 1]),))


def arm(seed, bodies=3):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, bodies, drives=True)
    return robot, base_of(robot), random_parameters(rng, robot), rng


def infeasible_beta(base, truth, rng):
    """Base parameters of bodies one of which has a negative second moment."""
    delta = truth.copy()
    columns = base.robot.inertial_columns[-1]
    taken = np.diag([4 * inertia.pseudo_inertia(truth[columns])[0, 0], 0, 0, 0])
    delta[columns] -= inertia.from_pseudo_inertia(taken)
    return base.K @ delta


def test_diag_115_is_feasible_under_semi_and_infeasible_under_full():
    assert feasid.check(DIAG_115, consistency="semi").feasible is True
    verdict = feasid.check(DIAG_115)
    assert verdict.feasible is False
    assert verdict.bodies == ("link",)
    assert "infeasible (full" in verdict.certificate.verify()


def test_multipliers_that_exceed_doubles_have_the_same_weights():
    """A proof may be multiplied by any number; common denominators have hundreds of digits."""
    _, base, truth, rng = arm(0)
    verdict = feasid.check(infeasible_beta(base, truth, rng), base)
    data, huge = verdict.certificate.data, 10**400

    def enlarge(texts):
        return [shortest_text(huge * Fraction(x)) for x in texts]

    larger = {k: enlarge(data[k]) for k in ("tied", "combination")}
    larger["multipliers"] = [[rule, enlarge(numbers)] for rule, numbers in data["multipliers"]]
    outcome = replace(verdict.outcome, certificate=Certificate(signed({**data, **larger})))
    same = replace(verdict, outcome=outcome)
    assert same.certificate.holds()
    assert same.weights == verdict.weights
    assert sum(same.weights.values()) == pytest.approx(1.0, rel=1e-14)  # rounding of a sum
    assert same.parameters == verdict.parameters
    assert same.clash == verdict.clash


@pytest.mark.parametrize("seed", range(4))
def test_base_parameters_of_a_feasible_robot_are_proved_feasible(seed):
    _, base, truth, _ = arm(seed)
    for consistency in ("full", "semi"):
        verdict = feasid.check(base.K @ truth, base, consistency=consistency)
        assert verdict.feasible is True
        assert verdict.margin > 0
        assert verdict.status in verdict.certificate.verify()
        assert base.K @ verdict.point == pytest.approx(base.K @ truth, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_base_parameters_of_an_impossible_robot_are_proved_infeasible(seed):
    robot, base, truth, rng = arm(seed)
    verdict = feasid.check(infeasible_beta(base, truth, rng), base)
    assert verdict.feasible is False
    assert verdict.margin < 0
    assert robot.bodies[-1].name in verdict.bodies
    assert "infeasible" in verdict.certificate.verify()
    # Axes at arbitrary angles are no short decimals: what that costs, a proof says.
    limit = verdict.certificate.limit
    assert limit is None or limit["mass"] >= 1e8
    assert ("no body is heavier than 1e+" in verdict.explain()) is (limit is not None)
    assert ("proved only up to 1" in verdict.certificate.verify()) is (limit is not None)


@pytest.mark.parametrize("seed", range(3))
def test_standard_parameters_need_no_solver(seed):
    robot, _, truth, _ = arm(seed)
    verdict = feasid.check(robot.with_values(truth))
    assert verdict.feasible is True
    assert verdict.attempts == ()
    broken = truth.copy()
    broken[robot.inertial_columns[1, 9]] *= -1
    broken[robot.parameter_names.index(("b0", "Ia"))] = -1e-9
    verdict = feasid.check(robot.with_values(broken))
    assert verdict.feasible is False
    assert verdict.bodies == ("b1", "b0")
    verdict.certificate.verify()


def test_checking_a_robot_loads_no_solver():
    program = (
        "import sys, feasid, numpy as np;"
        "b = feasid.Body('link', None, inertial=[1, 0, 0, 1, 0, 5, 0, 0, 0, 1]);"
        "robot = feasid.Robot((b,));"
        "assert feasid.check(robot).feasible is False;"
        "print([m for m in ('cvxpy', 'clarabel', 'scs', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_undescribed_links_are_not_judged():
    known = feasid.Body("a", None, inertial=inertia.from_mass_com_inertia(1, [0, 0, 1], np.eye(3)))
    unknown = feasid.Body("b", "a")
    verdict = feasid.check(feasid.Robot((known, unknown)))
    assert verdict.feasible is True
    verdict.certificate.verify()
    # A bound that ties what is given to what is not needs a solver, and finds the conflict.
    verdict = feasid.check(feasid.Robot((known, unknown)), total_mass=0.5)
    assert verdict.feasible is False
    assert verdict.conflict == ("total mass upper",)


LINK = """<robot name="one"><link name="base"/><link name="p"><inertial><mass value="{}"/>
<origin xyz="{} {} {}" rpy="{} {} {}"/>
<inertia ixx="{}" iyy="{}" izz="{}" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="continuous"><parent link="base"/><child link="p"/></joint></robot>"""


def test_a_limit_of_zero_on_a_first_moment_that_is_given_is_decided():
    base = feasid.base_parameters(feasid.load_robot(LINK.format(1, *[0] * 6, 1, 1, 1)))  # about x
    limits = {"com_box": {"p": ([-1.0, 0.0, -1.0], [1.0, 1.0, 1.0])}}
    assert [feasid.check([1, y, 0], base, **limits).feasible for y in (0.1, -0.1)] == [True, False]


@pytest.mark.parametrize(("mass", "moments", "status"), [
    (2, (0, 0, 0), "boundary"), (2, (0, 0.4, 0.4), "boundary"), (2, (0.1, 0.3, 0.4), "boundary"),
    (0, (0.1, 0.3, 0.4), "infeasible"), (-2, (0.2, 0.3, 0.4), "infeasible"),
    (2, (0.1, 0.3, 0.401), "infeasible"), (2, (0.1, 0.3, 0.399), "feasible"),
])  # fmt: skip
def test_a_robot_has_the_status_of_its_file(mass, moments, status, tmp_path):
    path = tmp_path / "one.urdf"
    for pose in np.random.default_rng(seed_of("poses")).normal(size=(12, 6)).round(3):
        path.write_text(LINK.format(mass, *pose, *moments))
        verdict = feasid.check(feasid.load_robot(path))
        assert (feasid.check(path).status, verdict.status) == (status, status)
        verdict.certificate.verify()
    assert ("negative mass: 'p' has -2 kg" in verdict.explain()) is (mass < 0)
    assert ("inertia without mass" in verdict.explain()) is (mass == 0)


def test_a_description_on_the_boundary_is_not_the_margin_of_its_base_parameters():
    ball, disc = (inertia.from_mass_com_inertia(1, [0.1, 0, 0], np.diag([1, 1, x])) for x in (1, 2))
    first, second = feasid.Body("a", None, inertial=ball), feasid.Body("b", "a", inertial=disc)
    robot = feasid.Robot((first, second))
    base = base_of(robot)
    assert feasid.check(base.K @ robot.values, base).margin > 0.01  # the disc takes from the ball


def test_conflicting_bounds_are_reduced_to_a_minimal_set():
    robot, base, truth, _ = arm(7)
    beta = base.K @ truth
    masses = truth[robot.inertial_columns[:, 9]]
    bounds = {"b0": (5 * masses[0], None), "b1": (None, 100.0)}
    sums = {"first two": (["b0", "b1"], None, 4 * masses[0])}
    verdict = feasid.check(beta, base, mass=bounds, mass_sums=sums)
    assert verdict.feasible is False
    assert set(verdict.conflict) == {"mass of b0 lower", "first two upper"}
    assert "cannot hold together" in verdict.explain()


def test_margins_count():
    _, base, truth, _ = arm(8)
    beta = base.K @ truth
    assert feasid.check(beta, base, margin=1e-6).feasible is True
    assert feasid.check(beta, base, margin=1e6).feasible is False


def test_wrong_input_is_named():
    _, base, truth, _ = arm(9)
    beta = base.K @ truth
    with pytest.raises(InputError, match="shape"):
        feasid.check(beta[:-1], base)
    bad = beta.copy()
    bad[4] = np.nan
    with pytest.raises(InputError, match=r"base parameter 4 .* is nan"):
        feasid.check(bad, base)
    with pytest.raises(InputError, match="need their definition"):
        feasid.check(beta)
    other, _, _, _ = arm(9, bodies=2)
    with pytest.raises(InputError, match="of another robot"):
        feasid.check(beta, base, feasible=feasid.feasible_set(other))
    with pytest.raises(InputError, match="nothing to check"):
        feasid.check(other)


def test_named_values_in_another_order_are_refused():
    robot, _, truth, _ = arm(9)
    base = feasid.base_parameters(robot)
    named = pd.Series(base.values(truth), index=base.expressions)
    assert feasid.check(named, base).feasible is True
    assert feasid.check(named.reset_index(drop=True), base).feasible is True
    with pytest.raises(InputError, match="but the values given name"):
        feasid.check(named[::-1], base)


def lies(kind):
    """A solver that answers with authority and is wrong."""

    def solver(program):
        rng = np.random.default_rng(0)
        x = rng.normal(size=program.size)
        roots = [rng.normal(size=(s, s)) for s in program.sizes]
        matrices = [root @ root.T for root in roots]
        prices = rng.uniform(size=program.rows)
        if kind == "nan":
            x = np.full(program.size, np.nan)
        if kind == "flipped":
            matrices, prices, x = [-Z for Z in matrices], -prices, -np.abs(x)
        if kind == "nan multipliers":
            matrices = [Z * np.nan for Z in matrices]
            x = -np.abs(x)
        return SolverAnswer("Solved", x, tuple(matrices), prices)

    return [("fake", kind, solver)]


@pytest.mark.parametrize("kind", ["random", "nan", "flipped", "nan multipliers"])
def test_a_lying_solver_decides_nothing_wrong(kind):
    _, base, truth, rng = arm(10)
    for beta, answer in ((base.K @ truth, True), (infeasible_beta(base, truth, rng), False)):
        verdict = feasid.check(beta, base, solver=lies(kind))
        # Multipliers out of the blue may prove a truth, and then the proof is a proof.
        assert verdict.feasible in (None, answer)
        if verdict.feasible is None:
            assert verdict.certificate is None
            assert "neither answer" in verdict.explain()
        else:
            verdict.certificate.verify()


def test_without_a_solver_nothing_is_decided():
    _, base, truth, _ = arm(10)
    verdict = feasid.check(base.K @ truth, base, solver=[])
    assert verdict.feasible is None
    assert verdict.attempts == ()


def test_certificates_travel_in_files(tmp_path):
    proof = feasid.check(DIAG_115).certificate
    path = tmp_path / "proof.json"
    proof.save(path)
    assert Certificate.load(path).verify() == proof.verify()
    assert certificate.main([str(path)]) == 0
    other = path.read_text().replace('"1"', '"2"', 1)
    for content in (other, "", "{}", "[]", '{"format": "feasid certificate 1"}', "null", '"x"'):
        path.write_text(content)
        assert certificate.main([str(path)]) == 1
    with pytest.raises(InputError, match="no such file"):
        Certificate.load(tmp_path / "absent.json")


def test_the_checker_is_short_enough_to_be_read():
    assert len(Path(certificate.__file__).read_text().splitlines()) <= 450
