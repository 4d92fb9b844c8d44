"""Feasible sets: every constraint against its meaning, and eq. (17) against the paper."""

import json

import cvxpy as cp
import numpy as np
import pytest
from feasibility_problems import random_parameters, random_robot
from hypothesis import given
from hypothesis import strategies as st

import feasid
from feasid import Body, Robot, Rotor, certificate
from feasid.core.codec import decode, encode
from feasid.core.errors import InputError
from feasid.core.exact.numbers import printed_decimal
from feasid.parameters.feasibility.constraints.affine import Block
from feasid.parameters.feasibility.constraints.sets import UserConstraints, feasible_set
from feasid.parameters.feasibility.constraints.units import constraint_units, problem_units
from feasid.parameters.feasibility.problems import normalise_constraints
from feasid.parameters.feasibility.proof.question import Question
from feasid.results.archive.members import MODEL_KINDS
from feasid.robot import inertia

ROBOT = random_robot(np.random.default_rng(0), 3, drives=True)
SEEDS = st.integers(0, 2**32 - 1)


def test_the_semi_block_is_equation_17():
    L = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    (lx, ly, lz), m = (0.1, 0.2, 0.3), 7.0
    printed = [
        [L[0], L[1], L[2], 0, lz, -ly], [L[1], L[3], L[4], -lz, 0, lx],
        [L[2], L[4], L[5], ly, -lx, 0], [0, -lz, ly, m, 0, 0], [lz, 0, -lx, 0, m, 0],
        [-ly, lx, 0, 0, 0, m],
    ]  # fmt: skip
    body = feasible_set(random_robot(np.random.default_rng(0), 1), "semi").blocks[0]
    assert body.matrix(np.array([*L, lx, ly, lz, m])) == pytest.approx(np.array(printed))


@given(SEEDS)
def test_mass_distributions_are_feasible_and_moved_inertias_are_not(seed):
    rng = np.random.default_rng(seed)
    delta = random_parameters(rng, ROBOT)
    feasible = feasible_set(ROBOT)
    assert feasible.contains_strictly(delta)
    assert not feasible.violations(delta)
    assert not feasible_set(ROBOT, "semi").violations(delta)
    columns = ROBOT.inertial_columns[1]
    body = delta[columns]
    # Moving second moment along x beyond what there is leaves a negative one.
    taken = np.zeros((4, 4))
    taken[0, 0] = 1.01 * inertia.pseudo_inertia(body)[0, 0]
    delta[columns] = body - inertia.from_pseudo_inertia(taken)
    assert not feasible.contains_strictly(delta)
    assert feasible.violations(delta) == ("pseudo-inertia of b1",)


def test_point_masses_are_singular_and_so_not_strictly_feasible():
    one = random_robot(np.random.default_rng(0), 1)
    delta = inertia.from_mass_com_inertia(2.0, np.ones(3), np.zeros((3, 3)))
    assert feasible_set(one).violations(delta)
    assert feasible_set(one, "semi").violations(delta)


@pytest.mark.parametrize("symbol", ["Ia", "fv", "fc"])
def test_signs_of_joint_terms(symbol):
    delta = random_parameters(np.random.default_rng(1), ROBOT)
    column = ROBOT.parameter_names.index(("b2", symbol))
    delta[column] = 0.0
    assert not feasible_set(ROBOT).violations(delta)
    delta[column] = -1e-300
    assert feasible_set(ROBOT).violations(delta) == (f"{symbol} of b2",)


def test_the_friction_offset_is_free():
    delta = random_parameters(np.random.default_rng(1), ROBOT)
    delta[ROBOT.parameter_names.index(("b2", "fo"))] = -1e6
    assert not feasible_set(ROBOT).violations(delta)


@given(SEEDS)
def test_bounds_say_what_they_bound(seed):
    rng = np.random.default_rng(seed)
    delta = random_parameters(rng, ROBOT)
    masses = delta[ROBOT.inertial_columns[:, 9]]
    coms = delta[ROBOT.inertial_columns[:, 6:9]] / masses[:, None]
    low, high = rng.uniform(0, 1), rng.uniform(1, 2)
    corner = np.array([0.1, 0.2, 0.3])
    feasible = feasible_set(
        ROBOT,
        mass={"b0": (low, high)},
        total_mass=3.0,
        mass_sums={"hand": (["b1", "b2"], 1.0, None)},
        com_box={"b1": (-corner, corner)},
        linear={"l": ({("b0", "m"): 2.0, ("b2", "Ia"): -1.0}, -1.0, 1.0)},
    )
    value = 2 * masses[0] - delta[ROBOT.parameter_names.index(("b2", "Ia"))]
    expected = [
        (masses[0] < low, "mass of b0 lower"), (masses[0] > high, "mass of b0 upper"),
        (masses.sum() > 3, "total mass upper"), (masses[1] + masses[2] < 1, "hand lower"),
        (coms[1, 0] < -0.1, "com of b1 x lower"), (coms[1, 0] > 0.1, "com of b1 x upper"),
        (coms[1, 1] < -0.2, "com of b1 y lower"), (coms[1, 1] > 0.2, "com of b1 y upper"),
        (coms[1, 2] < -0.3, "com of b1 z lower"), (coms[1, 2] > 0.3, "com of b1 z upper"),
        (value < -1, "l lower"), (value > 1, "l upper"),
    ]  # fmt: skip
    assert feasible.violations(delta) == tuple(name for broken, name in expected if broken)


def one_body():
    return random_robot(np.random.default_rng(0), 1)


@given(SEEDS)
def test_centres_of_mass_in_ellipsoids_cylinders_and_hulls(seed):
    rng = np.random.default_rng(seed)
    robot = one_body()
    delta = random_parameters(rng, robot)
    com = delta[6:9] / delta[9]
    middle, axes = rng.uniform(-0.2, 0.2, size=3), rng.uniform(-0.4, 0.4, size=(3, 3))
    inside = np.linalg.norm(np.linalg.solve(axes, com - middle)) <= 1
    feasible = feasible_set(robot, com_ellipsoid={"b0": (middle, axes)})
    assert feasible.violations(delta) == (() if inside else ("com of b0 in ellipsoid",))

    start, end = rng.uniform(-0.3, 0.3, size=(2, 3))
    radius, along = rng.uniform(0.05, 0.4), (end - start) / np.linalg.norm(end - start)
    height = (com - start) @ along
    expected = [
        (np.linalg.norm(com - start - height * along) > radius, "com of b0 in cylinder"),
        (height < 0, "com of b0 above start of cylinder"),
        (height > np.linalg.norm(end - start), "com of b0 below end of cylinder"),
    ]
    feasible = feasible_set(robot, com_cylinder={"b0": (start, end, radius)})
    assert feasible.violations(delta) == tuple(name for broken, name in expected if broken)

    corners = rng.uniform(-0.3, 0.3, size=(4, 3))
    weights = np.linalg.solve(np.c_[corners, np.ones(4)].T, np.r_[com, 1.0])
    feasible = feasible_set(robot, com_hull={"b0": corners})
    assert len(feasible.linear) == 4
    assert len(feasible.violations(delta)) == np.sum(weights < 0)


def test_a_cube_has_six_facets():
    corners = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 3), axis=-1).reshape(-1, 3)
    assert len(feasible_set(one_body(), com_hull={"b0": corners}).linear) == 6


@given(SEEDS)
def test_mass_inside_an_ellipsoid_is_realisable_in_it_and_mass_outside_is_not(seed):
    rng = np.random.default_rng(seed)
    middle, axes = rng.uniform(-0.2, 0.2, size=3), rng.uniform(-0.4, 0.4, size=(3, 3))
    feasible = feasible_set(one_body(), inertia_ellipsoid={"b0": (middle, axes)})
    points = rng.normal(size=(12, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    for factor, broken in ((0.99, ()), (1.01, ("mass of b0 in ellipsoid",))):
        cloud = np.c_[middle + factor * points @ axes.T, np.ones(12)]
        assert feasible.violations(inertia.from_pseudo_inertia(cloud.T @ cloud)) == broken


def test_constraints_are_the_same_for_numpy_cvxpy_and_certificates():
    corner = np.full(3, 0.3)
    feasible = feasible_set(
        ROBOT,
        mass={"b0": (0.1, 9.0)},
        com_box={"b1": (-corner, corner)},
        com_ellipsoid={"b0": (0.1 * corner, corner)},
        com_cylinder={"b1": (-corner, corner, 0.2)},
        com_hull={"b2": np.vstack([np.zeros(3), np.eye(3)])},
        inertia_ellipsoid={"b2": (corner, corner)},
    )
    delta = random_parameters(np.random.default_rng(3), ROBOT)
    ones = np.ones(ROBOT.size)
    scale = constraint_units(feasible, np.ones(3), np.ones(3), ones)
    F, f, G, h = normalise_constraints(feasible, scale)
    x = cp.Variable(ROBOT.size, value=delta)
    stacked, numbers = (F @ x + f).value, (G @ x + h).value * scale.linear
    exact = [printed_decimal(d) for d in delta]
    question = Question.from_doubles(ROBOT, feasible, np.eye(ROBOT.size), delta)
    claim = certificate.Claim(question.unchecked_certificate("feasible", point=[]).data)
    start = 0
    for label, constraint in zip(question.labels, feasible.constraints, strict=True):
        constant, basis, _ = claim.rules[label]
        checked = np.array([[float(v) for v in row] for row in constant])
        for j, entries in basis.items():
            for r, c, value in entries:
                checked[r, c] += float(value * exact[j])
        if isinstance(constraint, Block):
            part = stacked[start : start + constraint.size**2].reshape(constraint.size, -1)
            start += constraint.size**2
            assert part == pytest.approx(constraint.matrix(delta), rel=1e-12, abs=1e-14)
            assert checked == pytest.approx(constraint.matrix(delta), rel=1e-12, abs=1e-14)
        else:
            i = feasible.linear.index(constraint)
            assert numbers[i] == pytest.approx(feasible.linear_values(delta)[i], abs=1e-14)
            assert checked[0, 0] == pytest.approx(numbers[i], abs=1e-14)


@pytest.mark.parametrize("symmetric", [True, False])
def test_rotors_must_be_consistent_too(symmetric):
    robot = Robot((Body("a", None, rotor=Rotor(50.0, symmetric=symmetric)),))
    rng = np.random.default_rng(2)
    points = np.c_[rng.normal(size=(9, 3)), np.ones(9)]
    ten = inertia.from_pseudo_inertia(points.T @ points)
    balanced = inertia.from_mass_com_inertia(1.0, [0, 0, 0.2], np.diag([0.3, 0.3, 0.5]))
    rotor = balanced[[0, 5, 8, 9]] if symmetric else ten
    delta = np.r_[ten, rotor]
    feasible = feasible_set(robot)
    assert not feasible.violations(delta)
    flat = delta.copy()
    flat[robot.rotor_columns(0)] *= np.where(np.arange(len(rotor)) == (1 if symmetric else 5), 9, 1)
    assert len(feasible.violations(flat)) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"consistency": "fully"}, "'full'"),
        ({"mass": {"b9": (0, 1)}}, "no body 'b9'"),
        ({"mass": {"b0": (2.0, 1.0)}}, "mass of b0"),
        ({"mass": {"b0": (np.nan, 1.0)}}, "None for no bound"),
        ({"com_box": {"b0": ([0, 0, 0], [1, 0, 1])}}, "empty"),
        ({"com_box": {"b0": ([0, 0], [1, 1])}}, "two corners of three numbers"),
        ({"com_ellipsoid": {"b0": ([0, 0, 0], [1, 1, 0])}}, "no inside"),
        ({"com_ellipsoid": {"b0": ([0, 0], [1, 1, 1])}}, "semi-axes"),
        ({"inertia_ellipsoid": {"b0": ([0, 0, 0], [1, 1])}}, "semi-axes"),
        ({"com_cylinder": {"b0": ([0, 0, 0], [0, 0, 0], 1.0)}}, "different points"),
        ({"com_hull": {"b0": np.eye(3)}}, "no inside"),
        ({"com_hull": {"b0": [1.0, 2.0]}}, "points of three numbers"),
        ({"linear": {"l": ({("b0", "mm"): 1.0}, 0.0, None)}}, "no parameter 'b0.mm'"),
        ({"known": {"b0": np.ones(9)}}, "ten numbers"),
        ({"known": {"b9": np.ones(10)}}, "no body 'b9'"),
        ({"mirrored": [("b0", "b1", "w")]}, "axis"),
        ({"equal": [("b0", "b9")]}, "no body 'b9'"),
        ({"mass_sums": {"two": (["b0", "b0"], 2, 2)}}, "'two' names a body twice: b0, b0"),
    ],
)
def test_wrong_constraints_and_ties_are_named(options, message):
    with pytest.raises(InputError, match=message):
        feasible_set(ROBOT, **options)


def everything():
    """A set with a limit of every kind, and a tie."""
    corner = np.full(3, 0.3)
    return feasible_set(
        ROBOT,
        mass={"b0": (0.1, 9.0)},
        com_ellipsoid={"b0": (0.1 * corner, corner)},
        inertia_ellipsoid={"b2": (corner, corner)},
        known={"b2": [*[np.nan] * 9, 0.7]},
        constraints=lambda p: [p["b1", "m"] <= 2, cp.square(p["b1", "lx"]) <= 4],
    )


def test_what_a_caller_asked_for_is_added_to_another_set_and_taken_out_again():
    plain, asked = feasible_set(ROBOT), everything()
    wanted = {"mass of b0 lower", "mass of b0 upper", "com of b0 in ellipsoid",
              "mass of b2 in ellipsoid", "constraint 1"}  # fmt: skip
    assert asked.user_constraints == wanted
    assert plain.user_constraints == frozenset()
    both = plain.with_user_constraints_of(asked)
    assert [c.name for c in both.constraints] == [c.name for c in asked.constraints]
    assert both.equalities == asked.equalities
    assert both.convex == asked.convex
    assert len(asked.convex) == 1
    bare = asked.without_constraints(wanted | {asked.convex[0].name})
    assert [c.name for c in bare.constraints] == [c.name for c in plain.constraints]
    assert bare.convex == ()
    one = asked.without_constraints({"mass of b0 lower"})
    assert one.user_constraints == wanted - {"mass of b0 lower"}
    assert all(c.opposite == 0 for c in one.linear)
    assert any(c.opposite for c in asked.linear)


def test_sets_are_the_same_after_they_were_written():
    asked = everything()
    arrays = {}
    text = json.dumps(encode(UserConstraints.of(asked), arrays, MODEL_KINDS))
    again = decode(json.loads(text), arrays, MODEL_KINDS).on(ROBOT)
    delta = random_parameters(np.random.default_rng(0), ROBOT)
    assert [c.name for c in again.constraints] == [c.name for c in asked.constraints]
    for one, other in zip(asked.blocks, again.blocks, strict=True):
        np.testing.assert_array_equal(one.matrix(delta), other.matrix(delta))
        assert (one.powers, one.strict, one.role) == (other.powers, other.strict, other.role)
    np.testing.assert_array_equal(asked.linear_values(delta), again.linear_values(delta))
    assert [c.opposite for c in asked.linear] == [c.opposite for c in again.linear]
    assert [e.value for e in asked.equalities] == [e.value for e in again.equalities]


def test_a_margin_is_taken_off_every_constraint():
    feasible, delta = everything(), random_parameters(np.random.default_rng(0), ROBOT)
    assert feasible.with_margin(0.0) is feasible
    tight = feasible.with_margin(1e-3)
    for one, other in zip(feasible.blocks, tight.blocks, strict=True):
        taken = one.matrix(delta) - other.matrix(delta)
        np.testing.assert_allclose(taken, 1e-3 * np.eye(one.size), atol=1e-15)
        assert not other.strict
    taken = feasible.linear_values(delta) - tight.linear_values(delta)
    np.testing.assert_allclose(taken, 1e-3, rtol=1e-9)


def test_zero_is_inside_and_not_strictly():
    """Friction of zero, and a mass at its bound."""
    feasible, delta = feasible_set(ROBOT), random_parameters(np.random.default_rng(0), ROBOT)
    assert feasible.contains_strictly(delta)
    delta[ROBOT.parameter_names.index(("b2", "fv"))] = 0.0
    assert feasible.contains(delta)
    assert not feasible.contains_strictly(delta)
    delta[ROBOT.parameter_names.index(("b2", "fv"))] = np.nan
    assert not feasible.contains(delta)


LINKS = 3

RTOL = 1e-6
"""Of units of random robots of other sizes: their K is computed from other numbers."""


def scaled(mass, length):
    """An arm in other units of mass and length, with the description's inertials."""
    rng = np.random.default_rng(4)
    robot = random_robot(rng, LINKS, length=length, drives=True)
    values = random_parameters(np.random.default_rng(5), robot, mass=mass, length=length)
    values[[symbol == "fv" for _, symbol in robot.parameter_names]] *= np.sqrt(length)
    return robot.with_values(values)


@pytest.mark.parametrize("inertials", [True, False])
@pytest.mark.parametrize("torques", [True, False])
@pytest.mark.parametrize(("mass", "length"), [(1e3, 1.0), (1.0, 1e-2), (1e-3, 10.0)])
def test_units_grow_with_the_robot(inertials, torques, mass, length):
    """Masses and lengths are in other units: nothing else about the problem is."""
    found = []
    for m, x in ((1.0, 1.0), (mass, length)):
        robot = scaled(m, x)
        base = feasid.base_parameters(robot)
        A, b = base.K, base.K @ robot.values
        if torques:
            q, dq, ddq = np.random.default_rng(6).normal(size=(3, 40, LINKS))
            states = q, dq / np.sqrt(x), ddq / x  # as gravity moves it
            A = feasid.regressor(robot, *states).reshape(-1, robot.size)
            b = A @ robot.values
        feasible = feasible_set(robot, mass={"b0": (0.1 * m, 0.2 * m)})
        found.append(problem_units(robot, feasible, A, b, torques=torques, inertials=inertials))
    one, other = found
    if inertials:
        np.testing.assert_allclose(one.mass, scaled(1.0, 1.0).values[ROBOT.inertial_columns[:, 9]])
    np.testing.assert_allclose(other.length, one.length * length, rtol=RTOL)
    np.testing.assert_allclose(other.mass, one.mass * mass, rtol=RTOL)
    powers = {"Lxx": 2, "Lyy": 2, "Lzz": 2, "Lxy": 2, "Lxz": 2, "Lyz": 2, "lx": 1, "ly": 1,
              "lz": 1, "m": 0, "Ia": 2, "fc": 1, "fo": 1, "fv": 1.5 if torques else 1}  # fmt: skip
    factors = [mass * length ** powers[symbol] for _, symbol in ROBOT.parameter_names]
    np.testing.assert_allclose(other.parameters, one.parameters * factors, rtol=RTOL)
    for a, b in zip(one.blocks, other.blocks, strict=True):
        np.testing.assert_allclose(b, a * np.sqrt(mass) * length ** np.array([1, 1, 1, 0]))


def test_the_gap_between_two_bounds_is_a_unit():
    """A mass from 0.1 to 0.1001 counts in units of 1e-4, one bounded above in those of the body."""
    ones = np.ones(ROBOT.size)
    for low, unit in ((0.1, 1e-4), (None, 1.0)):
        feasible = feasible_set(ROBOT, mass={"b0": (low, 0.1001)})
        own = constraint_units(feasible, np.ones(3), np.ones(3), ones)
        rows = [k for k, c in enumerate(feasible.linear) if c.role == "asked"]
        np.testing.assert_allclose(own.linear[rows], unit, rtol=1e-9)


def test_given_values_that_clash_by_themselves_clash_with_no_bound():
    """Dropping the bounds does not help; where it does, each of a minimal set is needed."""
    one = random_robot(np.random.default_rng(0), 1)
    base = feasid.base_parameters(one)
    wrong = inertia.from_mass_com_inertia(1.0, np.zeros(3), -np.eye(3))
    verdict = feasid.check(base.K @ wrong, base, mass={"b0": (0.1, 0.2)}, total_mass=0.15)
    assert verdict.feasible is False
    assert verdict.conflict == ()
