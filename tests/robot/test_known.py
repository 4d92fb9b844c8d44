"""Parameters that are no unknowns: virtual links, several joints per body, known and tied ones."""

import re
from fractions import Fraction

import mujoco
import numpy as np
import pytest
from logs import simulate
from mjcf_files import FULL, model, write
from robots import ARM, clear_rank, random_robot, singular_values

import feasid
from feasid.core.errors import InputError
from feasid.parameters.identifiability.base import base_parameters
from feasid.robot.bodies import Body
from feasid.robot.formats.load import load_robot
from feasid.robot.known import Unknowns, eliminate, equalities


def rank_of(robot, columns, gap=1.0):
    """Rank of a random regressor's columns, where one gap is so wide."""
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 4 * robot.size, robot.dof))
    rows = feasid.regressor(robot, q, dq, ddq).reshape(-1, robot.size)[:, columns]
    return clear_rank(singular_values(rows), 1e-15, gap)


def unknown(robot):
    return [
        j for i, b in enumerate(robot.bodies) for j in robot.inertial_columns[i] if not b.massless
    ]


THREE = '<joint name="x" type="slide" axis="1 0 0"/><joint name="z" axis="0 0 1"/><joint name="t"/>'


def test_a_body_with_several_joints_has_ten_parameters_that_show_and_are_judged(tmp_path):
    robot = load_robot(write(tmp_path, model(f"<inertial {FULL}/>", joint=THREE)))
    base = base_parameters(robot)
    assert [b.massless for b in robot.bodies] == [True, True, False]
    assert base.unknowns == 10
    assert "of 10 unknown parameters" in repr(base)
    assert base.size == rank_of(robot, unknown(robot), 1e8)
    given = robot.inertial_columns[:2].ravel()
    assert {base.status[j] for j in given} == {"given"}
    assert not base.K[:, given].any()
    assert "no unknown" in base.explain("b/x.m")
    q, dq, ddq = np.random.default_rng(1).normal(size=(3, 50, robot.dof))
    y, free = feasid.regressor(robot, q, dq, ddq).reshape(-1, robot.size), unknown(robot)
    assert y[:, base.independent] @ base.K[:, free] == pytest.approx(y[:, free], abs=1e-10)
    assert y @ base.nullspace == pytest.approx(0, abs=1e-10)
    assert not base.nullspace[given].any()
    verdict = feasid.check(robot)
    assert verdict.feasible
    assert verdict.certificate.verify()
    assert list(verdict.margins) == ["pseudo-inertia of b"]


@pytest.mark.parametrize("order", ["left", "paper", ["2.m", "2.lx"]])
def test_orders_of_preference_hold_among_unknowns(order):
    bodies = [Body("1", None, massless=True), Body("2", "1", position=[0.3, 0, 0])]
    robot = feasid.Robot(bodies, (0, -9.81, 0))
    base = base_parameters(robot, order=order)
    assert base.size == rank_of(robot, unknown(robot))
    if isinstance(order, list):
        leads = [robot.parameter_names[j] for j in base.independent]
        assert {("2", "m"), ("2", "lx")} <= {*leads}


FRAME = (
    '<link name="frame"/><joint name="wrist" type="revolute"><parent link="plate"/>'
    '<child link="frame"/></joint><link name="tool"/><joint name="twist" type="revolute">'
    '<parent link="frame"/><child link="tool"/></joint></robot>'
)


def massless(text):
    return [b.name for b in load_robot(text).bodies if b.massless]


def test_links_between_joints_without_mass_and_geometry_are_virtual():
    text = ARM.strip().removesuffix("</robot>") + FRAME
    assert massless(text) == ["frame"]
    shown = text.replace('<link name="frame"/>', '<link name="frame"><visual/></link>')
    assert massless(shown) == []
    bare = re.sub("<inertial>.*?</inertial>", "", text, flags=re.DOTALL)
    assert massless(bare) == []


def test_a_virtual_link_that_carries_something_held_is_none_any_more(tmp_path):
    robot = load_robot(write(tmp_path, model(f"<inertial {FULL}/>", joint=THREE)), lock={"t": 0.3})
    assert [b.massless for b in robot.bodies] == [True, False]


@pytest.mark.parametrize(
    ("known", "lost"),
    [({"b2.m": 1.2}, 1), ({("b2", "m"): 1.2, "b1.lx": 0.1}, 2), ({"b2": np.arange(10.0)}, 10)],
)
def test_known_parameters_leave_the_problem(known, lost):
    robot = random_robot(np.random.default_rng(4), 3)
    base = base_parameters(robot, known=known)
    assert base.unknowns == 30 - lost
    free = sorted(set(range(30)) - set(base.coefficients.given_columns.tolist()))
    assert base.size == rank_of(robot, free, 1e6)


@pytest.mark.parametrize("seed", range(5))
def test_eliminated_parameters_satisfy_every_equation_whatever_the_others_are(seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, (6, 8)) * (rng.random((6, 8)) < 0.4)
    rows[5] = rows[0] - 2 * rows[1]  # says nothing new
    right = rows @ rng.integers(-3, 4, 8)
    given = [
        (str(k), {j: Fraction(int(c)) for j, c in enumerate(row) if c}, Fraction(int(value)))
        for k, (row, value) in enumerate(zip(rows, right, strict=True))
    ]
    solved = eliminate(given)
    assert len(solved) == np.linalg.matrix_rank(rows)
    point = [Fraction(int(x)) for x in rng.integers(-9, 10, 8)]
    assert not {i for row, _ in solved.values() for i in row} & set(solved)
    for j, (row, constant) in solved.items():
        point[j] = constant + sum(c * point[i] for i, c in row.items())
    assert all(sum(c * point[j] for j, c in row.items()) == value for _, row, value in given)


def test_tied_parameters_count_once():
    one = feasid.Body("1", None)
    two = [feasid.Body(n, "1", position=[0, y, 0]) for n, y in (("2", 0.3), ("3", -0.3))]
    robot = feasid.Robot((one, *two), (0, -9.81, 0))
    base = base_parameters(robot, mirrored=[("2", "3", "y")])
    unknowns = Unknowns.from_equalities(30, equalities(robot, mirrored=[("2", "3", "y")]))
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.normal(size=(3, 200, 3))
    y = feasid.regressor(robot, q, dq, ddq).reshape(-1, 30) @ unknowns.T
    assert base.unknowns == 20
    assert base.size == np.linalg.matrix_rank(y, tol=1e-9)
    z = rng.normal(size=20)
    k = base.K @ unknowns.T
    leads = [unknowns.roots.tolist().index(j) for j in base.independent]
    assert y[:, leads] @ (k @ z) == pytest.approx(y @ z, abs=1e-9)


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"b2.mass": 1.0}, "no parameter 'b2.mass'"),
        ({"b4": np.zeros(10)}, "no body 'b4'"),
        ({"b2.m": np.nan}, "b2.m is nan|not nan for 'b2.m'"),
        ({"b2": np.zeros(9)}, "ten numbers.*b2|b2.*ten numbers"),
        ({"b2": np.ones(10), "b2.m": 2.0}, "but also 1"),
    ],
)
def test_what_is_known_must_exist(known, words):
    robot = random_robot(np.random.default_rng(4), 3)
    with pytest.raises(InputError, match=words):
        base_parameters(robot, known=known)
    with pytest.raises(InputError, match=words):
        feasid.feasible_set(robot, known=known)


def test_a_fit_puts_no_mass_on_virtual_links_and_keeps_a_known_one(tmp_path):
    robot = load_robot(write(tmp_path, model(f"<inertial {FULL}/>", joint=THREE)))
    log = simulate(robot, robot.values, 0, noise=0.02)
    fit = feasid.fit(log, robot, friction=())
    assert not fit.delta[robot.inertial_columns[:2]].any()
    assert fit.relative_error["all"] < 0.03
    assert fit.certificate.verify()
    fit.write(tmp_path / "fitted.xml")
    again = mujoco.MjModel.from_xml_path(str(tmp_path / "fitted.xml"))
    assert again.body_mass[1] == pytest.approx(fit.bodies.loc["b", "mass"], rel=1e-6)
    known = feasid.fit(log, robot, friction=(), known={"b.m": 1.5})
    assert known.bodies.loc["b", "mass"] == 1.5
    assert known.certificate.verify()
