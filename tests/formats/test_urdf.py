"""A URDF is read as Pinocchio reads it, or refused with a message that names the place."""

import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from robots import ARM, example_urdfs
from written import robot_of_text

from feasid import load_robot
from feasid.core.errors import (
    DescriptionError,
    FeasidError,
    InputError,
    LimitError,
    UnsupportedJointError,
)
from feasid.robot import inertia
from feasid.robot.formats.xml import ReadLimits, parse_xml

RTOL_PIN = 1e-10  #: Lumping adds a few dozen rounded terms; five orders of magnitude above that.


def arm(tmp_path: Path, text: str = ARM) -> Path:
    path = tmp_path / "arm.urdf"
    path.write_text(text)
    return path


def refused(text: str | bytes) -> FeasidError:
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(FeasidError) as caught:
        robot_of_text(data, "arm.urdf")
    return caught.value


# -- what is read ---------------------------------------------------------------------------------


def test_bodies_joints_and_members(tmp_path):
    robot = load_robot(arm(tmp_path))
    assert [b.name for b in robot.bodies] == ["upper", "rod", "wheel"]
    assert robot.joints == ("shoulder", "slide", "wheel_joint")
    assert [m.name for m in robot.fixed] == ["base"]
    upper, rod, wheel = robot.bodies
    assert [m.name for m in upper.members] == ["upper", "plate"]
    assert rod.members == ()
    assert wheel.inertial is None
    np.testing.assert_array_equal(upper.motion[:, 0], [0, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(rod.motion[:, 0], [0, 0, 0, 0, 0, 1])
    np.testing.assert_array_equal(wheel.motion[:, 0], [1, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(upper.rotation, [[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    assert (upper.limits.lower, upper.limits.effort, wheel.limits.upper) == (-1.5, 40.0, None)
    np.testing.assert_array_equal(robot.gravity, [0, 0, -9.81])


def test_a_description_may_be_given_as_text():
    assert load_robot("\n" + ARM).joints == ("shoulder", "slide", "wheel_joint")
    with pytest.raises(DescriptionError, match=r"<text>:1:1: root is <html>"):
        load_robot("<html/>")
    with pytest.raises(InputError, match="not from dict"):
        load_robot({})


def test_a_floating_base_carries_the_root_link(tmp_path):
    robot = load_robot(arm(tmp_path), floating=True, gravity=(0, 0, -1.62))
    assert robot.bodies[0].name == "base"
    assert robot.dof == 6 + 3
    assert robot.fixed == ()
    assert robot.gravity[2] == -1.62


def test_planar_and_floating_joints_have_their_degrees_of_freedom():
    text = ARM.replace('type="prismatic"', 'type="planar"')
    motion = robot_of_text(text.encode()).bodies[1].motion
    assert motion.shape == (6, 3)
    np.testing.assert_allclose(motion[:3, 0], [0, 0, 1])
    np.testing.assert_allclose(motion[5, 1:], 0, atol=1e-15)
    text = ARM.replace('type="prismatic"', 'type="floating"')
    assert robot_of_text(text.encode()).dof == 1 + 6 + 1


def test_a_long_axis_is_normalised_and_noted():
    robot = robot_of_text(ARM.replace('"0 1 0"', '"0 2 0"').encode(), "arm.urdf")
    np.testing.assert_array_equal(robot.bodies[0].motion[:, 0], [0, 1, 0, 0, 0, 0])
    note = robot.source.notes[0]
    assert "'shoulder'" in note
    assert "arm.urdf:15" in note
    assert "length 2" in note


def test_of_two_origins_of_a_joint_the_first_counts_and_it_is_noted():
    second = '<origin xyz="0 0 0.1" rpy="0 0 1.5707963267948966"/><origin xyz="9 9 9"/>'
    text = ARM.replace('<origin xyz="0 0 0.1" rpy="0 0 1.5707963267948966"/>', second)
    robot = robot_of_text(text.encode(), "arm.urdf")
    np.testing.assert_array_equal(robot.bodies[0].position, [0, 0, 0.1])
    assert "'shoulder' has a second <origin>" in robot.source.notes[0]


WITHOUT_LINKS = "ur3"
SINGLE_BODIES = ("quadrotor_base", "iris_simple")


@pytest.mark.parametrize("stem", SINGLE_BODIES)
def test_a_single_body_floats(stem):
    path = next(p for p in example_urdfs() if p.stem == stem)
    robot = load_robot(path)
    assert robot.dof == load_robot(path, floating=True).dof == 6
    assert any("no joint moves" in note for note in robot.source.notes)
    with pytest.raises(FeasidError, match="no moving joint"):
        load_robot(path, floating=False)


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("path", example_urdfs(), ids=lambda p: p.stem)
def test_lumped_inertias_and_placements_equal_pinocchio(path):
    pinocchio = pytest.importorskip("pinocchio")
    if path.stem == WITHOUT_LINKS:
        with pytest.raises(FeasidError, match="no links"):
            load_robot(path)
        return
    robot = load_robot(path)
    root = [pinocchio.JointModelFreeFlyer()] if path.stem in SINGLE_BODIES else []
    model = pinocchio.buildModelFromUrdf(str(path), *root)
    assert robot.axes == model.nv
    for body in robot.bodies:
        theirs = np.empty(10)
        joint = model.getJointId("root_joint" if root else body.joint)
        theirs[inertia.PINOCCHIO] = model.inertias[joint].toDynamicParameters()
        ours = np.zeros(10) if body.inertial is None else body.inertial
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=RTOL_PIN * np.abs(theirs).max())
        home = model.jointPlacements[joint]
        np.testing.assert_allclose(body.rotation, home.rotation, atol=RTOL_PIN)
        np.testing.assert_allclose(body.position, home.translation, atol=RTOL_PIN)


# -- locking --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "parts", "fixed"),
    [
        ({"slide": 0.13}, ["upper", "plate", "rod"], ["base"]),
        ({"slide": 0.13, "shoulder": -0.4}, [], ["base", "upper", "plate", "rod"]),
    ],
    ids=["one", "two"],
)
def test_locking_adds_inertia_to_the_parent(tmp_path, held, parts, fixed):
    """The locked robot is the free one at that position: Pinocchio's reduced model agrees."""
    pinocchio = pytest.importorskip("pinocchio")
    path = arm(tmp_path)
    robot = load_robot(path, lock=held)
    model = pinocchio.buildModelFromUrdf(str(path))
    q = np.array([held.get("shoulder", 0.0), 0.13, 1.0, 0.0])
    reduced = pinocchio.buildReducedModel(model, [model.getJointId(j) for j in held], q)
    placement, theirs = reduced.jointPlacements[1], np.empty(10)
    theirs[inertia.PINOCCHIO] = reduced.inertias[1].toDynamicParameters()
    first = robot.bodies[0]
    np.testing.assert_allclose(first.rotation, placement.rotation, atol=1e-14)
    np.testing.assert_allclose(first.position, placement.translation, atol=1e-14)
    ours = np.zeros(10) if first.inertial is None else first.inertial
    np.testing.assert_allclose(ours, theirs, atol=1e-14)
    assert robot.joints == tuple(j for j in ("shoulder", "slide", "wheel_joint") if j not in held)
    assert [m.name for m in robot.fixed] == fixed
    assert [m.name for m in first.members] == parts


def test_a_locked_drive_disappears(tmp_path):
    robot = load_robot(arm(tmp_path)).with_joint_terms()
    assert [d.name for d in robot.locked({"slide": 0.0}).drives] == ["upper", "wheel"]


def test_locking_an_unknown_joint_names_the_closest(tmp_path):
    with pytest.raises(InputError, match="did you mean 'slide'"):
        load_robot(arm(tmp_path), lock={"slid": 0.0})
    with pytest.raises(InputError, match="slide"):
        load_robot(arm(tmp_path), lock={"slide": float("nan")})


MIMIC = '<parent link="rod"/><mimic joint="slide" multiplier="2" offset="0.1"/>'


def test_mimic_joints_follow_and_can_be_locked(tmp_path):
    path = arm(tmp_path, ARM.replace('<parent link="rod"/>', MIMIC))
    robot = load_robot(path)
    assert robot.coordinates == ("shoulder", "slide")
    np.testing.assert_array_equal(robot.coupling_map.A, [[1, 0], [0, 1], [0, 2]])
    np.testing.assert_array_equal(robot.coupling_map.b, [0, 0, 0.1])
    assert load_robot(path, lock={"wheel_joint": 0.0}).is_tree
    leader = load_robot(path, lock={"slide": 0.2})
    both = load_robot(path, lock={"slide": 0.2, "wheel_joint": 0.5})
    assert leader.joints == both.joints == ("shoulder",)
    assert leader.source.reading["lock"] == {"slide": 0.2, "wheel_joint": 0.5}
    np.testing.assert_array_equal(leader.values, both.values)


def test_a_joint_that_mimics_nothing_moves_by_itself_and_is_noted(tmp_path):
    path = arm(tmp_path, ARM.replace('<parent link="rod"/>', MIMIC.replace('"slide"', '"slid"')))
    robot = load_robot(path)
    assert robot.is_tree
    assert any("mimics 'slid', which does not exist" in note for note in robot.source.notes)


@pytest.mark.parametrize(("old", "new", "words"), [
    ('offset="0.1"', 'offset="a"', "'a'"), (' joint="slide"', "", "lacks 'joint'"),
    ("slide", "wheel_joint", "couplings form a circle: wheel_joint -> wheel_joint"),
])  # fmt: skip
def test_bad_mimics_are_named(tmp_path, old, new, words):
    path = arm(tmp_path, ARM.replace('<parent link="rod"/>', MIMIC.replace(old, new)))
    with pytest.raises(DescriptionError, match=words):
        load_robot(path)


# -- hostile and broken files ---------------------------------------------------------------------

BAD_NUMBERS = ["nan", "inf", "-inf", "1e999", "1,5", "", " ", "0x1F", "1.5kg", "1 5", "1e", "--1",
               "1_0", "NaN(1)", "\u0661", "${m}", "1e-999999999", "1e-200", "-3e77",
               "9" * 300]  # fmt: skip


@pytest.mark.parametrize("text", BAD_NUMBERS)
@pytest.mark.parametrize(
    ("old", "new", "owner", "column"),
    [
        ('value="1.25"', 'value="{}"', ("link", "upper"), 20),
        ('ixy="0.0002"', 'ixy="{}"', ("link", "upper"), None),
        ('xyz="0.01 -0.02 0.15"', 'xyz="0 {} 0"', ("link", "upper"), None),
        ('rpy="0.3 -0.2 0.1"', 'rpy="0 0 {}"', ("link", "upper"), None),
        ('axis xyz="0 0 1"', 'axis xyz="0 {} 1"', ("joint", "slide"), None),
        ('xyz="0 0 0.1" rpy', 'xyz="{} 0 0.1" rpy', ("joint", "shoulder"), None),
        ('damping="0.7"', 'damping="{}"', ("joint", "shoulder"), None),
    ],
)
def test_every_number_is_checked(text, old, new, owner, column):
    error = refused(ARM.replace(old, new.format(text)))
    assert isinstance(error, DescriptionError)
    line = ARM[: ARM.index(old)].count("\n") + 1
    assert (error.path, error.line, getattr(error, owner[0])) == ("arm.urdf", line, owner[1])
    assert len(str(error)) < 300
    if column:
        assert (error.column, error.attribute) == (column, "value")
        assert all(word in str(error) for word in (f"arm.urdf:{line}:20", "'upper'", "<mass>"))


def test_deep_wide_and_large_files_hit_a_stated_limit():
    tracemalloc.start()
    try:
        deep = refused("<robot>" + "<a>" * 200_000)
        tag = refused(f'<robot name="{"x" * 3_000_000}"/>')
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert isinstance(deep, LimitError)
    assert isinstance(tag, LimitError)
    assert (deep.limit, tag.limit) == (256, 1024 * 1024)
    assert peak < 50e6
    with pytest.raises(LimitError, match="items=") as caught:
        parse_xml(ARM.encode(), limits=ReadLimits(items=20))
    assert caught.value.limit == 20
    with pytest.raises(LimitError, match="size="):
        parse_xml(ARM.encode(), limits=ReadLimits(size=100))


def test_a_file_that_is_too_large_is_not_read_whole(tmp_path):
    path = tmp_path / "big.urdf"
    with path.open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    with pytest.raises(LimitError):
        load_robot(path)


@pytest.mark.parametrize("length", [200, 700, len(ARM) - 5])
def test_truncated_files_name_the_open_element(length):
    error = refused(ARM[:length])
    assert isinstance(error, DescriptionError)
    assert "inside <" in str(error)
    assert error.line >= 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("<html><body>404</body></html>", "root is <html>, expected <mujoco> (MJCF)"),
        ("<mujoco/>", "no moving joint"),
        ("<robot name='x'/>", "no links"),
        ("<robot name='x'><xacro:arm prefix='l'/></robot>", "run xacro first"),
        (ARM.replace('value="1.25"', 'value="${m}"'), "run xacro first"),
        ("<robot>&undefined;</robot>", "undefined entity"),
        ("<robot a='1' a='2'/>", "duplicate attribute"),
        ("<robot>\0</robot>", "not well-formed"),
        ("not xml at all", "begins with 'not xml at all'"),
        ("<robot/><robot/>", "junk"),
    ],
)  # fmt: skip
def test_files_that_are_something_else(text, words):
    assert words in str(refused(text))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('link name="rod"', 'link name="upper"', "'upper' is defined twice: here and on line 19"),
        ('joint name="slide"', 'joint name="shoulder"', "'shoulder' is defined twice"),
        ('child link="rod"', 'child link="rodd"', "'rodd' does not exist (did you mean 'rod'?)"),
        ('parent link="rod"', 'parent link="nothing"', "parent link 'nothing' does not exist"),
        ('child link="wheel"', 'child link="upper"', "'wheel_joint' here and 'shoulder' on line"),
        ('parent link="plate"', 'parent link="rod"', "connects link 'rod' with itself"),
        ('parent link="base"', 'parent link="wheel"', "'plate' hangs on 'upper' by joint 'pl"),
        ('<parent link="base"/>', "", "needs a <parent"),
        ('child link="plate"', 'child link=""', "needs a <child"),
        ('<link name="wheel"/>', '<link name="wheel"/><link name="lost"/>', "line 4 both have no"),
        ('<link name="wheel"/>', '<link name="wheel"/><link/>', "a <link> has no name"),
        ('<link name="wheel"/>', f'<link name="{"w" * 257}"/>', "longer than 256"),
        ('axis xyz="0 0 1"', 'axis xyz="0 0 0"', "'slide': <axis> xyz: the axis is zero"),
        ('axis xyz="0 0 1"', 'axis xyz="0 0"', "has 2 numbers, expected 3"),
        ('type="prismatic"', 'type="prismatik"', "did you mean 'prismatic'"),
        ('<mass value="1.25"/>', "", "'upper': <inertial> needs a <mass>"),
        ('ixx="0.011" ', "", "lacks 'ixx'"),
        ('<mass value="1.25"/>', '<mass value="1"/><mass value="2"/>', "a second <mass>"),
    ],
)  # fmt: skip
def test_descriptions_that_contradict_themselves(old, new, words):
    assert ARM.count(old) == 1
    error = refused(ARM.replace(old, new))
    assert isinstance(error, DescriptionError)
    assert words in str(error)
    assert str(error).startswith(f"arm.urdf:{error.line}:")


def test_an_ill_joint_type_is_an_unsupported_joint():
    error = refused(ARM.replace('type="prismatic"', 'type="screw"'))
    assert isinstance(error, UnsupportedJointError)
    assert error.joint == "slide"


@pytest.mark.parametrize(("encoding", "bom", "declared"), [
    ("utf-8", b"\xef\xbb\xbf", None), ("utf-8", b"", "UTF-8"),
    ("utf-16-le", b"\xff\xfe", "UTF-16"), ("utf-16-be", b"\xfe\xff", None),
    ("utf-16-le", b"", "UTF-16"), ("latin-1", b"", "ISO-8859-1"), ("cp1252", b"", "windows-1252"),
])  # fmt: skip
def test_encodings_are_read_by_declaration(encoding, bom, declared):
    text = ARM.replace("a small arm", "kleiner Arm für Übung").replace('"upper"', '"Öber"')
    if declared:
        text = text.replace('version="1.0"', f'version="1.0" encoding="{declared}"')
    assert robot_of_text(bom + text.encode(encoding)).bodies[0].name == "Öber"


def test_undecodable_bytes_name_their_offset():
    data = ARM.encode().replace(b"small", b"sm\xe4ll")
    error = refused(data)
    assert error.offset == data.index(b"\xe4")
    assert "encoding" in str(error)
    assert "not supported" in str(refused(ARM.replace('"1.0"', '"1.0" encoding="utf-7"')))


def test_only_the_file_itself_is_opened(tmp_path):
    """Meshes with hostile names are never touched."""
    hostile = "".join(
        f'<visual><geometry><mesh filename="{name}"/></geometry></visual>'
        for name in ("../../etc/passwd", "file:///etc/passwd", "http://localhost:1/x.stl")
    )
    path = arm(
        tmp_path, ARM.replace('<link name="wheel"/>', f'<link name="wheel">{hostile}</link>')
    )
    load_robot(path)  # imports what it needs
    opened = []

    def hook(event, arguments):
        by_handle = isinstance(arguments[0], int)
        if event in ("open", "socket.connect", "os.listdir") and not by_handle:
            opened.append((event, arguments[0]))

    watched = [True]
    sys.addaudithook(lambda event, arguments: hook(event, arguments) if watched[0] else None)
    load_robot(path)
    watched[0] = False
    assert opened == [("open", str(path))]
