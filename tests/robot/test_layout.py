"""Order of parameters, coordinates of coupled joints, tables and refusals, by small examples."""

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import feasid
from benchmarks.closed import FIVE_BAR
from feasid import Body, Robot, Rotor
from feasid.core.arrays import DamagedError
from feasid.core.codec import decode, encode
from feasid.core.errors import DescriptionError, InputError
from feasid.results.archive.members import ROBOT_KINDS
from feasid.robot import inertia
from feasid.robot.bodies import (
    Limits,
    Member,
    bodies_from_dh,
    lumped_parameters,
    parameters_in_body,
    place_member,
)
from feasid.robot.couplings import Coupling, Loop, resolve_couplings, without_joint
from feasid.robot.drives import CustomJointTerm, Drive, drive_with_terms, feature_symbols
from feasid.robot.layout import coordinate_units, random_configurations, squares_in_common_unit
from feasid.robot.rotations import from_rpy

ROUNDING = 1e-12

SLIDE = [[0], [0], [0], [0], [0], [1]]
BALL = np.eye(6)[:, :3]


ROBOT = Robot(
    bodies=(
        Body("a", None, joint="ja", rotor=Rotor(10.0), limits=Limits(-0.5, 1.5)),
        Body("b", "a", motion=SLIDE, inertial=np.arange(10.0), limits=Limits(2.0, 1.0)),
        Body("c", "b", motion=BALL),
        Body("d", "a", rotor=Rotor(2.0, symmetric=False, values=np.ones(10)), limits=Limits(0.3)),
        Body("v", "d", massless=True),
    ),
    drives=(
        Drive("motor", {"ja": 1.0, "b": -2.0}, ("fv", "fc")),
        Drive("b", {"b": 1.0}, ("Ia", "fv"), values=[0.1, 0.2]),
        Drive("second", {"b": 1.0}, ("fo",)),
    ),
)
"""A hinge with a rotor, a slide, a ball, a floating-free chain; two drives of one joint."""

TEN = list(inertia.SYMBOLS)


def test_parameters_stand_body_by_body():
    rotor = ["rotor_Lxx", "rotor_Lzz", "rotor_lz", "rotor_m"]
    expected = [
        *[("a", s) for s in TEN + rotor], *[("b", s) for s in [*TEN, "Ia", "fv"]],
        *[("c", s) for s in TEN], *[("d", s) for s in TEN + [f"rotor_{s}" for s in TEN]],
        *[("v", s) for s in TEN], ("motor", "fv"), ("motor", "fc"), ("second", "fo"),
    ]  # fmt: skip
    assert list(ROBOT.parameter_names) == expected
    assert ROBOT.size == len(expected)
    assert [*ROBOT.names] == expected
    assert ROBOT.names.names == ["body", "symbol"]
    place = {name: k for k, name in enumerate(expected)}
    for i, name in enumerate("abcdv"):
        assert ROBOT.inertial_columns[i].tolist() == [place[name, s] for s in TEN]
    assert ROBOT.rotor_columns(0) == slice(10, 14)
    assert ROBOT.rotor_columns(1) == slice(0, 0)
    assert ROBOT.rotor_columns(3).stop - ROBOT.rotor_columns(3).start == 10
    assert ROBOT.drive_columns(0) == {"fv": place["motor", "fv"], "fc": place["motor", "fc"]}
    assert ROBOT.drive_columns(1) == {"Ia": place["b", "Ia"], "fv": place["b", "fv"]}
    assert ROBOT.drive_columns(2) == {"fo": place["second", "fo"]}
    assert ROBOT.coupling(0).tolist() == [1, -2, 0, 0, 0, 0, 0]
    values = ROBOT.values
    assert values[ROBOT.inertial_columns[1]].tolist() == list(range(10))
    assert np.isnan(values[ROBOT.inertial_columns[0]]).all()
    assert values[ROBOT.rotor_columns(3)].tolist() == [1.0] * 10
    assert values[list(ROBOT.drive_columns(1).values())].tolist() == [0.1, 0.2]
    assert values[ROBOT.inertial_columns[4]].tolist() == [0.0] * 10
    for call, what, count in (
        (ROBOT.rotor_columns, "body", 5), (ROBOT.drive_columns, "drive", 3),
        (ROBOT.coupling, "drive", 3),
    ):  # fmt: skip
        for wrong in (-1, count):
            text = f"no {what} {wrong}: there are {count}, counted from 0"
            with pytest.raises(InputError, match=text):
                call(wrong)
        with pytest.raises(InputError, match=f"{what} must be a whole number, not 'j'"):
            call("j")
    assert ROBOT.drive_columns(np.int64(2)) == ROBOT.drive_columns(2)


def test_coordinates_and_limits():
    assert ROBOT.coordinates == ("ja", "b", "c_1", "c_2", "c_3", "d", "v")
    assert (ROBOT.dof, ROBOT.axes) == (7, 7)
    assert [(b.name, r.start, r.stop) for b, r in ROBOT.moving_bodies] == [
        ("a", 0, 1), ("b", 1, 2), ("c", 2, 5), ("d", 5, 6), ("v", 6, 7),
    ]  # fmt: skip
    inf = np.inf
    lower, upper = ROBOT.position_limits[..., 0].tolist()
    assert lower == [-0.5, 1.0, -inf, -inf, -inf, 0.3, -inf]
    assert upper == [1.5, 2.0, inf, inf, inf, inf, inf]
    assert coordinate_units(ROBOT, 0.2).ravel().tolist() == [1, 0.2, 1, 1, 1, 1, 1]
    assert ROBOT.parents == (-1, 0, 1, 0, 3)
    assert ROBOT.ancestors == ((0,), (0, 1), (0, 1, 2), (0, 3), (0, 3, 4))
    assert ROBOT.constraint_summary == "1 virtual links without parameters"
    assert ROBOT.constraint_texts == []
    assert ROBOT.branch_point == {}


def test_random_configurations_fill_the_limits():
    """Half a turn where there are none, or pi times a length."""
    s = random_configurations(ROBOT, np.random.default_rng(0), 4000, 0.5)
    assert s.shape == (7, 4000)
    low, high = s.min(axis=1), s.max(axis=1)
    pi = np.pi
    np.testing.assert_allclose(low, [-0.5, 1, -pi, -pi, -pi, 0.3, -pi], atol=0.01)
    np.testing.assert_allclose(high, [1.5, 2, pi, pi, pi, 0.3 + pi, pi], atol=0.01)
    assert (s[0] >= -0.5).all()
    free = random_configurations(ROBOT, np.random.default_rng(0), 4000, 0.5, limits=False)
    np.testing.assert_allclose(free[1].max(), pi / 2, atol=0.01)
    np.testing.assert_allclose(free[0].min(), -pi, atol=0.01)


def test_squares_of_torques_and_forces_are_added_by_unit():
    """Six hinges' worth 14 in sum, one slide's 5: each unit counts by its number."""
    squares = np.array([1.0, 5, 2, 3, 4, 4, 0])
    angles = np.array([1, 0, 1, 1, 1, 1, 1])
    expected = np.where(angles, squares / 14 * 6, 1.0)
    np.testing.assert_allclose(squares_in_common_unit(ROBOT, squares), expected)
    np.testing.assert_allclose(squares_in_common_unit(ROBOT, 0 * squares), 0.0)
    hinges = Robot((Body("a", None), Body("b", "a")))
    np.testing.assert_array_equal(squares_in_common_unit(hinges, squares[:2]), squares[:2])
    base = Robot((Body("a", None, motion=np.eye(6)), Body("b", "a")))
    found = squares_in_common_unit(base, np.array([1.0, 1, 2, 3, 3, 3, 7]))
    np.testing.assert_allclose(found, [0.75, 0.75, 1.5, 1, 1, 1, 1])


def test_parameters_that_are_none():
    with pytest.raises(InputError, match=re.escape("has 69 (5 bodies, 3 drives): see robot.names")):
        ROBOT.with_values(np.ones(3))
    wrong = np.ones(ROBOT.size)
    wrong[12:14] = np.nan
    with pytest.raises(InputError, match=r"parameter a.rotor_lz is nan") as error:
        ROBOT.with_values(wrong)
    assert (error.value.data["body"], error.value.data["symbol"]) == ("a", "rotor_lz")


# -- couplings -------------------------------------------------------------------------------------

JOINTS = ("a", "b", "c", "d", "e")
ROWS = tuple(slice(k, k + 1) for k in range(5))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_followers_of_followers(seed):
    """Whatever the order in which they are named, every coupling holds."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(5)
    couplings = []
    for k in range(1, 5):  # each may follow those before it in a random order
        if rng.random() < 0.6:
            leaders = [JOINTS[i] for i in order[:k] if rng.random() < 0.5]
            factors = {j: float(rng.normal()) for j in leaders}
            couplings.append(Coupling(JOINTS[order[k]], factors, float(rng.normal())))
    couplings = [couplings[i] for i in rng.permutation(len(couplings))]
    found = resolve_couplings(JOINTS, ROWS, couplings)
    assert len(found.independent) == 5 - len(couplings)
    s = rng.normal(size=len(found.independent))
    q = dict(zip(JOINTS, found.A @ s + found.b, strict=True))
    np.testing.assert_allclose([q[JOINTS[i]] for i in found.independent], s)
    for c in couplings:
        assert q[c.joint] == pytest.approx(c.offset + sum(f * q[j] for j, f in c.factors.items()))
    held = without_joint(couplings, "a", 0.7)
    assert all(c.joint != "a" and "a" not in c.factors for c in held)
    for c in held:
        (old,) = [x for x in couplings if x.joint == c.joint]
        assert c.offset == pytest.approx(old.offset + 0.7 * old.factors.get("a", 0.0))
        assert set(c.factors) == set(old.factors) - {"a"}


@pytest.mark.parametrize(
    ("couplings", "words"),
    [
        ([Coupling("a", {"x": 1.0})], "coupling of joint 'a': there is no joint 'x'"),
        ([Coupling("x", {"a": 1.0})], "coupling of joint 'x': there is no joint 'x'"),
        ([Coupling("a", {"e": 1.0})], "coupling of joint 'a': joint 'e' has several degrees"),
        ([Coupling("a", {"b": 1.0}), Coupling("a", {"c": 1.0})], "'a' is coupled twice"),
        ([Coupling("a", {"b": 1.0}), Coupling("b", {"c": 1.0}), Coupling("c", {"a": 1.0})],
         "couplings form a circle: a -> b -> c -> a"),
        ([Coupling("a", {"a": 1.0})], "couplings form a circle: a -> a"),
        ([Coupling("d", {"a": 1.0}), Coupling("a", {"b": 1.0}), Coupling("b", {"a": 1.0})],
         "couplings form a circle: a -> b -> a"),
    ],
)  # fmt: skip
def test_couplings_that_cannot_be(couplings, words):
    rows = (*ROWS[:4], slice(4, 7))
    with pytest.raises(DescriptionError, match=re.escape(words)):
        resolve_couplings(JOINTS, rows, couplings)


def test_a_coupled_robot_moves_by_its_independent_joints():
    bodies = [Body("a", None)] + [Body(n, "a") for n in "bcd"]
    robot = Robot(tuple(bodies), couplings=(Coupling("a", {"c": 2.0}, 0.5), Coupling("d", {})))
    assert (robot.coordinates, robot.dof, robot.axes) == (("b", "c"), 2, 4)
    assert not robot.is_tree
    assert robot.constraint_summary == "4 joints, 2 independent"
    assert robot.constraint_texts == ["a [('c', 2.0)] 0.5", "d [] 0.0"]
    assert [(b.name, r.start) for b, r in robot.moving_bodies] == [("b", 0), ("c", 1)]
    assert coordinate_units(robot, 3.0).ravel().tolist() == [1.0, 1.0]


def test_loops_in_words():
    robot = feasid.load_robot(FIVE_BAR)
    said = robot.constraint_summary
    assert re.match(r"4 joints, 2 independent; 1 closed loops with \d conditions", said)
    count, rank = robot.closure.conditions.count, robot.closure.rank
    assert (f"{count - rank} of them redundant" in said) == (rank < count)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kind": "glue"}, "loop 'l' is 'glue', expected one of ['connect', 'weld']"),
        ({"second": "a"}, "loop 'l' joins 'a' with itself"),
        ({"first_position": np.zeros(2)}, "first_position of loop 'l'"),
        ({"second_rotation": np.zeros(3)}, "second_rotation of loop 'l'"),
    ],
)
def test_loops_that_cannot_be(given, words):
    plain = {"name": "l", "first": "a", "second": None, "first_position": np.zeros(3),
             "second_position": np.zeros(3)}  # fmt: skip
    with pytest.raises(DescriptionError, match=re.escape(words)):
        Loop(**{**plain, **given})


# -- trees and bodies ------------------------------------------------------------------------------


def test_parents_come_first_and_the_order_is_otherwise_kept():
    names = {"d": "b", "a": None, "c": "a", "b": "a", "e": None}
    bodies = tuple(Body(n, p) for n, p in names.items())
    assert [b.name for b in Robot(bodies).bodies] == ["a", "c", "b", "d", "e"]
    for wrong, words in (
        ((), "a robot needs at least one body that moves"),
        ((Body("a", None), Body("a", None)), "two bodies have the same name: ['a']"),
        ((Body("a", None, joint="j"), Body("b", None, joint="j")), "the same joint: ['j']"),
        (
            (Body("a", None), Body("b", "aa")),
            "body 'b' has unknown parent 'aa' (did you mean 'a'?)",
        ),
        ((Body("a", "b"), Body("b", "a"), Body("c", None)), "bodies form a cycle: ['a', 'b']"),
    ):
        with pytest.raises(DescriptionError, match=re.escape(words)):
            Robot(wrong)


def test_poses_of_all_bodies():
    """A hinge at (0, 0, 1) turned a quarter, a slide a metre along its x, out by 0.3."""
    slide = [[0], [0], [0], [1], [0], [0]]
    robot = Robot((
        Body("a", None, position=[0, 0, 1]), Body("b", "a", position=[1, 0, 0], motion=slide),
        Body("c", "b", motion=BALL),
    ))  # fmt: skip
    found = robot.pose({"a": np.pi / 2, "b": 0.3, "c": [0.0, np.pi, 0.0]})
    np.testing.assert_allclose(found["b"][1], [0, 1.3, 1], atol=ROUNDING)
    np.testing.assert_allclose(found["c"][0], [[0, -1, 0], [-1, 0, 0], [0, 0, -1]], atol=ROUNDING)
    np.testing.assert_allclose(robot.pose()["b"][1], [1, 0, 1])
    for wrong, words in (
        ({"aa": 1.0}, "robot 'robot' has no joint 'aa' (did you mean 'a'"),
        ({"a": np.nan}, "is nan (of 'a')"),
        ({"c": [0.0, 1.0]}, "position of 'c' has shape (2,), expected (3,)"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=re.escape(words)):
            robot.pose(wrong)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": ""}, "a body's name must be a non-empty string"),
        ({"motion": np.zeros((6, 0))}, "needs 1 to 6 independent columns"),
        ({"motion": np.ones((6, 2))}, "needs 1 to 6 independent columns"),
        ({"motion": np.ones((5, 1))}, "the motion subspace of body 'a'"),
        (
            {"rotation": np.diag([1, 1, -1])},
            "the home rotation of body 'a' is not a rotation matrix",
        ),
        ({"rotation": 2 * np.eye(3)}, "not a rotation matrix"),
        ({"position": (0, 0)}, "home position of body 'a' has shape"),
        ({"position": (0, 0, np.nan)}, "not finite"),
        ({"rotation": 1.0001 * np.eye(3)}, "(R'R differs from 1 by 0.0002, determinant 1)"),
        ({"inertial": np.ones(9)}, "inertial parameters of body 'a'"),
        ({"massless": True, "inertial": np.ones(10)}, "body 'a' is massless, but has [1.0, "),
    ],
)
def test_bodies_that_cannot_be(given, words):
    with pytest.raises(DescriptionError, match=re.escape(words)):
        Body(**{"name": "a", "parent": None, **given})


def test_bodies_as_they_are():
    body = Body("a", None, motion=[0, 0, 1, 0, 0, 0])
    assert (body.motion.shape, body.joint, body.dof, body.floats) == ((6, 1), "a", 1, False)
    assert Body("a", None, motion=np.eye(6)).floats
    assert not Body("a", "b", motion=np.eye(6)).floats
    assert not Body("a", None, motion=np.eye(6)[:, :5]).floats
    near = np.eye(3)
    near[0, 1] = 0.9e-6
    assert Body("a", None, rotation=near).rotation[0, 1] == 0.9e-6
    with pytest.raises(ValueError, match="read-only"):
        body.position[0] = 1.0


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_links_of_a_body_are_added_in_its_frame(seed):
    """By clouds of points, which are turned and moved."""
    rng = np.random.default_rng(seed)
    total, members = np.zeros(10), []
    for k in range(3):
        points = np.c_[rng.normal(size=(5, 3)), np.ones(5)]
        own = inertia.from_pseudo_inertia(points.T @ points)
        rotation, position = from_rpy(rng.normal(size=3)), rng.normal(size=3)
        if k == 0:
            rotation, position = np.eye(3), np.zeros(3)
        members.append(Member(f"m{k}", rotation, position, own))
        moved = np.c_[points[:, :3] @ rotation.T + position, np.ones(5)]
        total += inertia.from_pseudo_inertia(moved.T @ moved)
    np.testing.assert_allclose(lumped_parameters([*members, Member("x")]), total, atol=1e-9)
    assert lumped_parameters([Member("x")]) is None
    assert parameters_in_body(Member("x")).tolist() == [0.0] * 10
    rotation, position = from_rpy(rng.normal(size=3)), rng.normal(size=3)
    again = place_member(members[1], rotation, position)
    np.testing.assert_allclose(
        again.position, rotation @ members[1].position + position, atol=ROUNDING
    )
    np.testing.assert_allclose(again.rotation, rotation @ members[1].rotation, atol=ROUNDING)


# -- Denavit-Hartenberg ----------------------------------------------------------------------------


def about(axis, angle):
    return from_rpy(np.array([angle, 0, 0]) if axis == "x" else np.array([0, 0, angle]))


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_tables_give_the_poses_of_their_formulas(convention):
    rng = np.random.default_rng(0)
    rows = [(*rng.normal(size=4), kind) for kind in ("revolute", "prismatic", "revolute")]
    robot = Robot.from_dh(rows, convention=convention, names=["a", "b", "c"])
    for q in (np.zeros(3), rng.normal(size=3)):
        turn, place = np.eye(3), np.zeros(3)
        poses = robot.pose(dict(zip("abc", q.tolist(), strict=True)))
        for (alpha, a, d, theta, kind), x, name in zip(rows, q, "abc", strict=True):
            angle, shift = (theta + x, d) if kind == "revolute" else (theta, d + x)
            steps = [(about("z", angle), [0, 0, shift]), (about("x", alpha), [a, 0, 0])]
            for rotation, position in steps if convention == "standard" else steps[::-1]:
                place = place + turn @ position
                turn = turn @ rotation
            np.testing.assert_allclose(poses[name][0], turn, atol=1e-9)
            np.testing.assert_allclose(poses[name][1], place, atol=1e-9)


def test_right_angles_are_exact():
    for quarters in (-3, -2, -1, 0, 1, 2, 3, 5):
        (body,) = bodies_from_dh([(quarters * np.pi / 2, 0, 0, 0)])
        assert set(np.abs(body.rotation).ravel().tolist()) == {0.0, 1.0}
        np.testing.assert_allclose(body.rotation, about("x", quarters * np.pi / 2), atol=ROUNDING)
    (body,) = bodies_from_dh([(np.pi / 2 + 1e-9, 0, 0, 0)])
    assert body.rotation[1, 1] != 0.0


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ([(0, 0, 0)], {}, "DH row 1 has 3 entries, expected alpha, a, d, theta[, type]"),
        ([(0, 0, 0, 0), (0,) * 6], {}, "DH row 2 has 6 entries"),
        ([(0, "x", 0, 0)], {}, "DH row 1: a = 'x' is not a finite number"),
        ([(0, 0, np.inf, 0)], {}, "DH row 1: d = inf is not a finite number"),
        ([(0, 0, 0, 0, "revolut")], {}, "type 'revolut' is not known (did you mean 'revolute'?)"),
        ([{"alpa": 0}], {}, "DH row 1: unknown entry 'alpa' (did you mean 'alpha'?)"),
        ([(0, 0, 0, 0)], {"convention": "modifed"}, "(did you mean 'modified'?)"),
        ([(0, 0, 0, 0)], {"names": ["a", "b"]}, "1 DH rows but 2 names"),
    ],
)
def test_tables_that_cannot_be(rows, options, words):
    with pytest.raises(DescriptionError, match=re.escape(words)):
        bodies_from_dh(rows, **options)


def test_rows_by_name_are_zero_where_nothing_is_said():
    one, other = bodies_from_dh([{"a": 0.5}, {"theta": 0.1, "type": "prismatic"}])
    assert one.position.tolist() == [0.5, 0, 0]
    assert other.motion[:, 0].tolist() == [0, 0, 0, 0, 0, 1]
    assert (one.name, other.name, one.parent, other.parent) == ("1", "2", None, "1")


# -- drives ----------------------------------------------------------------------------------------


def feature(name, *, positive=False, load=False):
    return CustomJointTerm(name, lambda q, dq, ddq, load: q + 2 * dq, positive, load)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"symbols": ()}, "drive 'd' needs some of"),
        ({"symbols": ("fx",)}, "['fx']"),
        ({"symbols": ("fd",)}, "bounded by viscous friction (fv)"),
        ({"symbols": ("fv", "fv")}, "drive 'd' has a symbol twice: ['fv', 'fv']"),
        ({"coupling": {}}, "drive 'd' needs finite non-zero factors per joint"),
        ({"coupling": {"a": 0.0}}, "drive 'd' needs finite non-zero factors per joint"),
        ({"symbols": ("p1",)}, "drive 'd' has ['p1'], but no such feature"),
        ({"symbols": ("fv", "fl"), "coupling": {"a": 1.0, "b": 1.0}}, "drive 'd' moves several"),
        ({"values": [1.0]}, "values of drive 'd' has shape (1,), expected (2,)"),
    ],
)
def test_drives_that_cannot_be(given, words):
    with pytest.raises(DescriptionError, match=re.escape(words)):
        Drive(**{"name": "d", "coupling": {"a": 1.0}, "symbols": ("fv", "fc"), **given})


def test_values_follow_their_symbols():
    drive = Drive("d", {"a": 1.0}, ("fo", "Ia", "fv"), [3.0, 1.0, 2.0])
    assert drive.symbols == ("Ia", "fv", "fo")
    assert drive.values.tolist() == [1.0, 2.0, 3.0]


def test_features_of_a_drive():
    own = (feature("x"), feature("y", positive=True), feature("z", load=True))
    assert feature_symbols(own) == ["u1", "p1", "u2"]
    drive = Drive("d", {"a": 1.0}, ("fv", "u1", "p1", "u2"), features=own)
    assert drive.feature("u2").name == "z"
    assert drive.depends_on_load
    assert not Drive("d", {"a": 1.0}, ("fv", "u1"), features=own).depends_on_load
    assert [drive.needs_load(s) for s in ("fv", "fl", "u1", "u2")] == [False, True, False, True]
    q, dq, ddq = np.array([[1.0, 2.0], [0.5, -0.5], [3.0, 4.0]])
    assert drive.factor("u1", q, dq, ddq).tolist() == [2.0, 1.0]
    assert drive.factor("fc", q, dq, ddq).tolist() == [1.0, -1.0]
    assert drive.factor("fo", q, dq, ddq).tolist() == [1.0, 1.0]
    smooth = Drive("d", {"a": 1.0}, transition=0.5).factor("fc", q, dq, ddq)
    np.testing.assert_allclose(smooth, np.tanh([1.0, -1.0]))
    slack = Drive("d", {"a": 1.0}, ("k",), rest=0.25).factor("k", q, dq, ddq)
    np.testing.assert_allclose(slack, [0.75, 1.75])
    for symbol, words in (
        ("u2", "drive 'd': u2 needs the load, which is not given"),
        ("fl", "drive 'd': fl needs the load, which is not given"),
        ("fx", "unknown drive symbol 'fx'"),
        ("p2", "drive 'd' has no feature 'p2'; it has u1, p1, u2"),
    ):
        with pytest.raises(InputError, match=re.escape(words)):
            drive.factor(symbol, q, dq, ddq)
    with pytest.raises(InputError, match="it has none"):
        Drive("d", {"a": 1.0}).feature("u1")
    short = CustomJointTerm("s", lambda q, dq, ddq, load: q[:1])
    two = CustomJointTerm("two", lambda q, dq: q)
    with pytest.raises(
        InputError, match="feature 'two', called with q, dq, ddq and load, raised TypeE"
    ):
        two.values(np.zeros(2), np.zeros(2), np.zeros(2), None)
    with pytest.raises(InputError, match="feature 's' must return 2 finite numbers"):
        short.values(q, dq, ddq, None)
    with pytest.raises(DescriptionError, match="at most"):
        feature_symbols([feature(str(k)) for k in range(99)])


def test_a_joints_drive_keeps_what_it_had():
    body = Body("a", None, joint="j")
    fresh = drive_with_terms(None, body, ("fv", "fc"), ())
    assert (fresh.name, dict(fresh.coupling), fresh.values) == ("a", {"j": 1.0}, None)
    known = Drive("a", {"j": 1.0}, ("fv", "k"), [2.0, 5.0])
    kept = drive_with_terms(known, body, ("fv",), ())
    assert (kept.symbols, kept.values.tolist()) == (("fv", "k"), [2.0, 5.0])
    assert drive_with_terms(known, body, ("fv", "fc"), ()).values is None
    told = Drive("a", {"j": 1.0}, ("fv", "k"), [2.0, 5.0], from_file=True)
    wide = drive_with_terms(told, body, ("fv", "fc"), (feature("x"),))
    by_symbol = dict(zip(wide.symbols, wide.values.tolist(), strict=True))
    assert by_symbol == {"fv": 2.0, "fc": 0.0, "k": 5.0, "u1": 0.0}
    assert not wide.from_file


# -- as data ---------------------------------------------------------------------------------------


def plain(robot):
    """A robot as JSON and arrays."""
    arrays = {}
    return json.loads(json.dumps(encode(robot, arrays, ROBOT_KINDS))), arrays


def test_robots_are_the_same_after_they_were_saved():
    whole = Robot(
        ROBOT.bodies, ROBOT.gravity, "r", ROBOT.drives,
        couplings=(Coupling("d", {"ja": 2.0}, 0.1),),
    )  # fmt: skip
    again = decode(*plain(whole), ROBOT_KINDS)
    assert again.parameter_names == whole.parameter_names
    assert again.constraint_texts == whole.constraint_texts
    np.testing.assert_array_equal(again.values, whole.values)
    assert plain(again)[0] == plain(whole)[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["of"].pop("bodies"), "a Robot in it lacks ['bodies']"),
        (lambda d: d["of"].update(more=1), "a Robot in it has ['more'], unknown here: update"),
        (lambda d: d.update({"is": "Robots"}), "it holds 'Robots', which does not belong to it"),
        (lambda d: d["of"].update(name=3), "a Robot in it is damaged: name must be a text, not 3"),
    ],
)
def test_data_that_are_no_robot(change, words):
    data, arrays = plain(ROBOT)
    change(data)
    with pytest.raises(DamagedError, match=re.escape(words)):
        decode(data, arrays, ROBOT_KINDS)


def test_code_is_not_saved():
    drive = Drive("a", {"a": 1.0}, ("u1",), features=(feature("x"),))
    with pytest.raises(feasid.FeasidError, match=r"a CustomJointTerm \(x\) cannot be saved"):
        plain(Robot((Body("a", None),), drives=(drive,)))
