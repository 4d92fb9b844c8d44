"""What is written simulates: no value that readers refuse, no moving link without mass.

Also new URDF and MJCF for robots that came from elsewhere: DH, bodies, the other format.
"""

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from pinocchio_side import PinocchioModel
from robots import ARM, random_robot, relative
from written import torque_difference, with_random_inertia

import feasid
from benchmarks.generated import tree_with_couplings
from feasid import Body, Coupling, Robot, load_robot
from feasid.core.errors import InputError, UnsupportedJointError
from feasid.robot.formats.registry import FORMATS
from feasid.robot.formats.write import file_bytes

SAME = 1e-10  #: Relative difference of torques with other frames but the same motion.

TINY = (5e-324, 1e-310, 9e-151, -5e-324)

CHAIN = """<mujoco model="chain"><compiler angle="radian"/><worldbody>
<body name="a"><joint name="j" axis="0 0 1" armature="0.1" damping="0.2" frictionloss="0.3"/>
<inertial pos="0 0 0.1" mass="1.5" fullinertia="0.011 0.012 0.013 0.001 -0.002 0.0005"/>
<body name="b" pos="0 0 0.3"><joint name="k" type="slide" axis="1 0 0"/>
<inertial pos="0 0 0.1" mass="0.5" diaginertia="0.011 0.012 0.013"/></body></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("value", TINY)
@pytest.mark.parametrize("own", [True, False], ids=["own text", "new file"])
@pytest.mark.parametrize(("text", "suffix"), [(ARM, "urdf"), (CHAIN, "xml")], ids=["urdf", "mjcf"])
def test_values_below_the_readers_limit_are_written_as_zero(text, suffix, own, value, tmp_path):
    robot = feasid.load_robot(text).with_joint_terms(("viscous", "coulomb"), drive_inertia=True)
    drives = tuple(replace(d, values=np.full(len(d.symbols), abs(value))) for d in robot.drives)
    bodies = []
    for body in robot.bodies:
        ten = np.array([0.02, 0, 0, 0.03, 0, 0.025, 0, 0, 0, 1.0])
        ten[[1, 2, 4, 6]] = value
        members = body.members if own else ()
        bodies.append(body if body.massless else replace(body, inertial=ten, members=members))
    source = robot.source if own else None
    robot = replace(robot, bodies=tuple(bodies), drives=drives, source=source)
    path = tmp_path / f"written.{suffix}"
    feasid.write(robot, path)
    back = feasid.load_robot(path, sidecar=False)
    assert not any("Ia" in d.symbols or "fv" in d.symbols for d in back.drives)
    for body, again in zip(robot.bodies, back.bodies, strict=True):
        np.testing.assert_allclose(again.inertial, body.inertial, rtol=1e-9, atol=1e-140)


LIGHT = np.array([1e-3, 0, 0, 1e-3, 0, 1e-3, 0, 0, 0.002, 0.2])
"""Lighter than the link that is held on it."""


@pytest.mark.parametrize("kind", ["urdf", "mjcf"])
def test_a_link_on_a_held_joint_keeps_mass(kind, tmp_path):
    text, joint = (ARM, "slide") if kind == "urdf" else (CHAIN, "k")
    robot = feasid.load_robot(text).locked({joint: 0.02})
    robot = replace(robot, bodies=(replace(robot.bodies[0], inertial=LIGHT), *robot.bodies[1:]))
    data = file_bytes(robot, FORMATS[kind])
    free = feasid.load_robot(data.decode())
    link = next(b for b in free.bodies if b.name in ("rod", "b"))
    assert 0 < link.inertial[9] < 0.2
    again = free.locked({link.joint: 0.02})
    np.testing.assert_allclose(again.bodies[0].inertial, LIGHT, atol=1e-12)
    if kind == "mjcf":
        assert (mujoco.MjModel.from_xml_string(data.decode()).body_mass[1:] > 0).all()


def test_a_held_link_that_cannot_exist_is_named():
    bad = CHAIN.replace('diaginertia="0.011 0.012 0.013"', 'diaginertia="0.011 0.012 0.13"')
    robot = feasid.load_robot(bad).locked({"k": 0.0})
    robot = replace(robot, bodies=(replace(robot.bodies[0], inertial=LIGHT),))
    with pytest.raises(feasid.errors.InputError, match="'b', whose joint is held, is infeasible"):
        file_bytes(robot, FORMATS["mjcf"])


ZERO = (
    '<inertial><mass value="0"/>'
    '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>'
)


def notes(robot):
    return [note for note in robot.source.notes if "mass 0" in note]


def test_a_moving_link_of_which_the_file_says_mass_zero_has_no_known_mass():
    text = ARM.replace('<link name="wheel"/>', f'<link name="wheel">{ZERO}</link>')
    robot = feasid.load_robot(text)
    assert robot.bodies[-1].inertial is None
    assert np.isnan(robot.values[robot.inertial_columns[-1]]).all()
    assert notes(robot) == [
        "<text>: mass 0 is given for moving link 'wheel': taken as not given (known={'wheel': "
        "[0] * 10} in a fit means zero)"
    ]
    assert notes(feasid.load_robot(ARM)) == []


def test_a_mere_frame_of_which_the_file_says_mass_zero_is_named_unless_it_is_welded():
    text = ARM.replace('<link name="wheel"/>', f'<link name="wheel">{ZERO}</link>')
    joint = (
        '<joint name="last" type="revolute"><parent link="wheel"/><child link="tool"/></joint>'
        '<link name="tool"><inertial><mass value="0.1"/><inertia ixx="1e-4" ixy="0" ixz="0" '
        'iyy="1e-4" iyz="0" izz="1e-4"/></inertial></link></robot>'
    )
    robot = feasid.load_robot(text.replace("</robot>", joint))
    assert [b.name for b in robot.bodies if b.massless] == ["wheel"]
    assert "'wheel' without shapes" in notes(robot)[0]
    welded = '<joint name="f" type="fixed"><parent link="rod"/><child link="frame"/></joint>'
    welded += f'<link name="frame">{ZERO}</link></robot>'
    robot = feasid.load_robot(ARM.replace("</robot>", welded))
    assert notes(robot) == []
    assert robot.bodies[1].inertial[9] == 0.3


# -- robots from elsewhere -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_random_trees_move_alike_from_their_new_file(seed, suffix, tmp_path):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, int(rng.integers(1, 8)), ("revolute", "prismatic", "through"))
    robot = with_random_inertia(robot, seed).with_joint_terms(("viscous", "coulomb"))
    frictions = np.where(np.isnan(robot.values), rng.uniform(0, 1, robot.size), robot.values)
    robot = robot.with_values(frictions)
    path = tmp_path / f"new{suffix}"
    usual = suffix != ".urdf" or np.array_equal(robot.gravity, (0, 0, -9.81))
    assert feasid.write(robot, path).lost == (() if usual else ("gravity",))
    assert torque_difference(robot, load_robot(path), seed) < SAME


@pytest.mark.parametrize("seed", range(4))
def test_pinocchio_reads_the_new_urdf_alike(seed, tmp_path):
    rng = np.random.default_rng(seed)
    robot = with_random_inertia(random_robot(rng, 6, ("revolute", "prismatic", "through")), seed)
    limits = feasid.robot.bodies.Limits(-1.0, 2.0, 3.0, 50.0)
    robot = replace(robot, bodies=tuple(replace(b, limits=limits) for b in robot.bodies))
    feasid.write(robot, tmp_path / "new.urdf")
    theirs = PinocchioModel(robot, tmp_path / "new.urdf")
    assert theirs.model.effortLimit.tolist() == [50.0] * 6
    motion = rng.uniform(-1, 1, (3, 6))
    assert relative(theirs.torques(*motion), feasid.inverse_dynamics(robot, *motion)[0]) < SAME


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_joints_that_follow_others_follow_in_the_new_file(seed, suffix, tmp_path):
    robot = load_robot(tree_with_couplings(seed))
    bare = replace(robot, source=None, bodies=tuple(replace(b, members=()) for b in robot.bodies))
    path = tmp_path / f"new{suffix}"
    feasid.write(bare, path)
    again = load_robot(path)
    assert again.dof == robot.dof
    assert torque_difference(robot, again, seed) < SAME


def test_a_floating_body_and_a_robot_without_limits(tmp_path):
    heavy, light = [0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0.1, 5], [0.01, 0, 0, 0.01, 0, 0.01, 0, 0, 0, 1]
    trunk = Body("trunk", None, motion=np.eye(6), inertial=heavy)
    robot = Robot([trunk, Body("leg", "trunk", position=[0.1, 0, 0], inertial=light)])
    feasid.write(robot, tmp_path / "new.urdf")
    again = load_robot(tmp_path / "new.urdf")
    assert [b.dof for b in again.bodies] == [6, 1]
    assert again.bodies[1].limits.lower is None


def test_what_urdf_does_not_have_is_named(tmp_path):
    ten = [0.1, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 1]
    helical = Robot([Body("screw", None, motion=[0, 0, 1, 0, 0, 0.1], inertial=ten)])
    ball = Robot([Body("ball", None, motion=np.eye(6)[:, :3], inertial=ten)])
    bare = Robot([Body("bare", None)])
    impossible = Robot([Body("odd", None, inertial=[1, 0, 0, 1, 0, 5, 0, 0, 0, 1])])
    three = Robot(
        [Body(n, None, inertial=ten) for n in "abc"],
        couplings=[Coupling("c", {"a": 1.0, "b": 2.0})],
    )
    for robot, kind, words in (
        (helical, UnsupportedJointError, "'screw' is helical"),
        (ball, UnsupportedJointError, "'ball' has no counterpart in URDF"),
        (bare, InputError, "body 'bare' has no inertial parameters"),
        (impossible, InputError, "body 'odd' is infeasible"),
        (three, InputError, "joint 'c' follows 2 joints"),
    ):
        with pytest.raises(kind, match=words):
            feasid.write(robot, tmp_path / "new.urdf")
    with pytest.raises(InputError, match="joint 'c' follows 2 joints"):
        feasid.write(three, tmp_path / "new.xml")
    assert not [*tmp_path.iterdir()]
