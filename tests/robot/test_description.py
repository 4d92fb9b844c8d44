"""Robots, their parts, their parameter names, and what is said when they are wrong."""

from dataclasses import replace

import numpy as np
import pytest
from robots import random_robot, random_rotation, relative

import feasid
from feasid.errors import DescriptionError, InputError
from feasid.robot import inertia
from feasid.robot.bodies import Body, Limits, Rotor
from feasid.robot.drives import Drive

TOLERANCE = 1e-12  # a few operations on numbers of order one


def arm(n=3, **options):
    return feasid.Robot.from_dh([(0, 1, 0, 0)] * n, **options)


def test_bodies_are_sorted_with_parents_first():
    bodies = [Body("c", "b"), Body("a", None), Body("b", "a")]
    robot = feasid.Robot(tuple(bodies))
    assert [b.name for b in robot.bodies] == ["a", "b", "c"]
    assert robot.parents == (-1, 0, 1)
    assert robot.ancestors[2] == (0, 1, 2)


def test_parameter_names_follow_body_rotor_drive():
    bodies = (Body("a", None, rotor=Rotor(10.0)), Body("b", "a"))
    robot = feasid.Robot(bodies).with_joint_terms(
        drive_inertia=True, couplings=[Drive("wrist", {"a": 1.0, "b": 1.0}, ("fv",))]
    )
    names = [".".join(n) for n in robot.parameter_names]
    assert names[10:18] == [
        "a.rotor_Lxx", "a.rotor_Lzz", "a.rotor_lz", "a.rotor_m", "a.Ia", "a.fv", "a.fc", "a.fo",
    ]  # fmt: skip
    assert names[-1] == "wrist.fv"
    assert robot.size == 10 + 4 + 4 + 10 + 4 + 1
    assert robot.names.names == ["body", "symbol"]
    assert names[robot.drive_columns(2)["fv"]] == "wrist.fv"
    np.testing.assert_array_equal(robot.coupling(2), [1, 1])


def test_values_come_back_and_unknown_ones_are_nan():
    robot = arm().with_joint_terms(drive_inertia=True)
    assert np.isnan(robot.values).all()
    delta = np.arange(robot.size, dtype=float)
    np.testing.assert_array_equal(robot.with_values(delta).values, delta)


@pytest.mark.parametrize(
    ("bodies", "message"),
    [
        ([], "at least one body"),
        ([Body("a", None), Body("a", None)], "same name"),
        ([Body("a", None), Body("b", "elbwo"), Body("elbow", "a")], "did you mean 'elbow'"),
        ([Body("a", "b"), Body("b", "a")], "cycle"),
    ],
)
def test_wrong_trees_are_refused(bodies, message):
    with pytest.raises(DescriptionError, match=message):
        feasid.Robot(tuple(bodies))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rotation": 2 * np.eye(3)}, "not a rotation matrix"),
        ({"rotation": -np.eye(3)}, "not a rotation matrix"),
        ({"position": (0, 0)}, "home position of body 'a' has shape"),
        ({"position": (0, 0, np.nan)}, "not finite"),
        ({"motion": np.zeros((6, 1))}, "independent columns"),
        ({"motion": "x"}, "not"),
        ({"inertial": np.ones(9)}, "parameters of body 'a'"),
    ],
)
def test_wrong_bodies_are_refused(options, message):
    with pytest.raises((DescriptionError, ValueError), match=message):
        Body("a", None, **options)


def test_joint_terms_are_checked():
    with pytest.raises(InputError, match="did you mean 'coulomb'"):
        arm().with_joint_terms(friction=("coulom",))
    with pytest.raises(InputError, match="has no joint '4'"):
        arm().with_joint_terms(joints=["4"])
    with pytest.raises(DescriptionError, match="finite non-zero"):
        Drive("x", {"1": 0.0})


def test_wrong_parameters_name_the_entry():
    delta = np.zeros(30)
    delta[13] = np.nan
    with pytest.raises(InputError, match=r"2\.Lyy is nan"):
        arm().with_values(delta)
    with pytest.raises(InputError, match="has 30"):
        arm().with_values(np.zeros(29))


def forward(robot, q):
    """Pose of the last body by exponentials, a third way of computing it."""
    from scipy.linalg import expm

    pose = np.eye(4)
    for body, angle in zip(robot.bodies, q, strict=True):
        home = np.eye(4)
        home[:3, :3], home[:3, 3] = body.rotation, body.position
        twist = np.zeros((4, 4))
        twist[:3, :3], twist[:3, 3] = inertia.skew(body.motion[:3, 0]), body.motion[3:, 0]
        pose = pose @ home @ expm(twist * angle)
    return pose


def about(axis, angle):
    c, s = np.cos(angle), np.sin(angle)
    out = np.eye(4)
    i, k = {"x": (1, 2), "z": (0, 1)}[axis]
    out[[i, i, k, k], [i, k, i, k]] = c, -s, s, c
    return out


def along(axis, length):
    out = np.eye(4)
    out["xyz".index(axis), 3] = length
    return out


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_dh_tables_mean_their_convention(convention):
    rng = np.random.default_rng(1)
    rows = [(*rng.standard_normal(4), k) for k in ("revolute", "prismatic", "revolute")]
    q = rng.standard_normal(3)
    expected = np.eye(4)
    for (alpha, a, d, theta, kind), value in zip(rows, q, strict=True):
        turn = about("z", theta + (value if kind == "revolute" else 0))
        turn = turn @ along("z", d + (value if kind == "prismatic" else 0))
        link = along("x", a) @ about("x", alpha)
        expected = expected @ (turn @ link if convention == "standard" else link @ turn)
    robot = feasid.Robot.from_dh(rows, convention=convention)
    np.testing.assert_allclose(forward(robot, q), expected, atol=TOLERANCE)


def test_dh_mistakes_are_named():
    with pytest.raises(DescriptionError, match="row 2: d = 'q2'"):
        feasid.Robot.from_dh([(0, 0, 0, 0), (0, 0, "q2", 0)])
    with pytest.raises(DescriptionError, match="did you mean 'alpha'"):
        feasid.Robot.from_dh([{"alfa": 0.0}])
    with pytest.raises(DescriptionError, match="did you mean 'modified'"):
        feasid.Robot.from_dh([(0, 0, 0, 0)], convention="modifed")
    with pytest.raises(DescriptionError, match="did you mean 'prismatic'"):
        feasid.Robot.from_dh([(0, 0, 0, 0, "prismatik")])


def test_right_angles_are_exact():
    robot = feasid.Robot.from_dh([(np.pi / 2, 0.1, 0.2, -np.pi / 2)] * 2)
    assert set(np.unique(np.abs(robot.bodies[1].rotation))) == {0.0, 1.0}


def test_a_drive_keeps_values_with_their_symbols():
    drive = feasid.Drive("j", {"j": 1.0}, ("fv", "Ia"), [0.1, 5.0])
    assert drive.symbols == ("Ia", "fv")
    assert list(drive.values) == [5.0, 0.1]
    with pytest.raises(DescriptionError, match="twice"):
        feasid.Drive("j", {"j": 1.0}, ("fv", "fv"))


def test_a_pose_is_of_joints_that_there_are():
    robot = arm()
    name = robot.joints[0]
    assert robot.pose({name: 0.5}).keys() == robot.pose().keys()
    with pytest.raises(InputError, match=f"no joint '{name}x' .did you mean '{name}'"):
        robot.pose({f"{name}x": 0.5})
    with pytest.raises(InputError, match=r"positions must be .* finite .* nan .of '"):
        robot.pose({name: np.nan})
    with pytest.raises(InputError, match=rf"position of '{name}' has shape .2,., expected .1,."):
        robot.pose({name: [0.1, 0.2]})


def test_columns_of_bodies_and_drives_that_there_are_not():
    robot = arm().with_joint_terms()
    for way, count in ((robot.drive_columns, 3), (robot.coupling, 3), (robot.rotor_columns, 3)):
        for number in (3, -1):
            with pytest.raises(InputError, match=f"there are {count}"):
                way(number)
        with pytest.raises(InputError, match=r"(drive|body) must be a whole number, not 'j'"):
            way("j")
    assert robot.drive_columns(np.int64(2)) == robot.drive_columns(2)


def test_features_that_a_drive_has_not():
    drive = feasid.Drive(
        "j",
        {"j": 1.0},
        ("fv", "p1"),
        features=(
            feasid.CustomJointTerm("speed", lambda q, dq, ddq, load: abs(dq), positive=True),
        ),
    )
    assert drive.feature("p1") is drive.features[0]
    with pytest.raises(InputError, match="drive 'j' has no feature 'p2'; it has p1"):
        drive.feature("p2")


def with_values(robot, rng):
    """The robot with possible parameters of bodies and rotors."""

    def ten():
        points = np.c_[rng.normal(size=(5, 3)), np.ones(5)]
        return inertia.from_pseudo_inertia(points.T @ points)

    def turning(symmetric):
        values = np.abs(rng.normal(size=4)) if symmetric else ten()
        pose = random_rotation(rng), rng.normal(size=3)
        return Rotor(5.0 * rng.normal(), *pose, symmetric, values)

    bodies = [
        replace(b, inertial=ten(), rotor=turning(k % 2 == 0)) for k, b in enumerate(robot.bodies)
    ]
    return replace(robot, bodies=tuple(bodies))


@pytest.mark.parametrize("joint", range(5))
def test_a_held_joint_leaves_the_others_their_torques(joint):
    """With its rotor, which has turned by the gear and is no longer where the description has it
    unless it is balanced."""
    rng = np.random.default_rng(joint)
    robot = with_values(random_robot(rng, 5), rng)
    q, dq, ddq = rng.normal(size=(3, 4, 5))
    q[:, joint] = at = rng.normal()
    dq[:, joint] = ddq[:, joint] = 0.0
    held = robot.locked({robot.joints[joint]: at})
    rest = [robot.joints.index(name) for name in held.joints]
    expected = feasid.inverse_dynamics(robot, q, dq, ddq)[:, rest]
    motion = (x[:, rest] for x in (q, dq, ddq))
    assert relative(feasid.inverse_dynamics(held, *motion), expected) < TOLERANCE


def test_not_all_joints_can_be_held():
    with pytest.raises(InputError, match="locking joint '3' leaves no moving body"):
        arm().locked(dict.fromkeys(("1", "2", "3"), 0.0))


def test_limits_in_either_order_and_of_one_side():
    given = [(2.0, -1.0), (None, 0.5), (-0.5, None), (None, None)]
    bodies = [
        Body(f"b{k}", None, limits=Limits(lower=low, upper=high))
        for k, (low, high) in enumerate(given)
    ]
    found = feasid.Robot(tuple(bodies)).position_limits[:, :, 0]
    inf = np.inf
    np.testing.assert_array_equal(found, [[-1.0, -inf, -0.5, -inf], [2.0, 0.5, inf, inf]])
