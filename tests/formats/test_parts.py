"""Parts that all formats share, of small examples worked out by hand: terms, notes, joints."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import feasid
from feasid.core.errors import DescriptionError, InputError
from feasid.robot.bodies import Body
from feasid.robot.couplings import Coupling
from feasid.robot.drives import Drive
from feasid.robot.formats.build import _join_names
from feasid.robot.formats.registry import collision_meshes, read_description
from feasid.robot.formats.rewrite import (
    inertial_in_body_axes,
    joint_kind_axis_position,
    single_leader,
    to_rpy,
)
from feasid.robot.formats.shapes import primitives
from feasid.robot.formats.terms import (
    EFFECTS,
    JointTerms,
    LeftOut,
    UnmodelledEffect,
    check_ignored,
    left_out_notes,
    negative_notes,
    refuse_effects,
    sum_drives,
    term_notes,
)
from feasid.robot.formats.xml import parse_xml
from feasid.robot.rotations import from_rpy

ROUNDING = 1e-12

HINGE = """<robot name="r"><!-- one --><link name="b"/><joint name="j" type="revolute">
<parent link="b"/><child link="l"/><axis xyz="0 1 0"/><limit lower="-1" upper="%s" effort="%s"
velocity="3"/></joint><link name="l"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0"
iyy="1" iyz="0" izz="1"/></inertial></link></robot>"""
SLIDE = """<mujoco><worldbody><body><joint type="slide" name="j" range="-1 %s"/>
<geom size="1"/></body></worldbody></mujoco>"""
SDF_HINGE = """<sdf version="1.9"><model name="r"><link name="l"/><joint name="j" type="revolute">
<parent>world</parent><child>l</child><axis><limit><lower>-1</lower><upper>%s</upper>
<velocity>3</velocity><effort>%s</effort></limit></axis></joint></model></sdf>"""


@pytest.mark.parametrize("text", [HINGE, SLIDE, SDF_HINGE], ids=["urdf", "mjcf", "sdf"])
@pytest.mark.parametrize(
    "number", ["1.7976931348623157e+308", "1e999", "9" * 309, "inf", "-INF", "nan", "1e16"]
)
def test_a_limit_of_any_size_is_none_and_refuses_nothing(text, number):
    robot = feasid.load_robot(text % ((number,) * text.count("%s")))
    limits = robot.bodies[0].limits
    assert (limits.lower, limits.upper, limits.effort) == (-1.0, None, None)
    for wrong in ("${x}", "1,5", "one"):
        with pytest.raises(DescriptionError, match=r"not a number|xacro"):
            feasid.load_robot(text % ((wrong,) * text.count("%s")))


@pytest.mark.parametrize("text", [HINGE, SLIDE, SDF_HINGE], ids=["urdf", "mjcf", "sdf"])
def test_limits_in_the_wrong_order_are_exchanged_and_noted(text, tmp_path):
    robot = feasid.load_robot(text % (("-3",) * text.count("%s")))
    limits = robot.bodies[0].limits
    assert (limits.lower, limits.upper, limits.exchanged) == (-3.0, -1.0, True)
    unit = "m" if text == SLIDE else "rad"
    words = f"joint 'j': the lower limit -1 {unit} is above the upper limit -3 {unit}"
    assert [words in note for note in robot.source.notes].count(True) == 1
    path = tmp_path / "arm.urdf"
    path.write_text(text % (("-3",) * text.count("%s")))
    assert words in feasid.check(path).explain()


@pytest.mark.parametrize(
    "comment", ["gz --msgtype x", "--", "a - -- - b -", "------", " -->\n<!--a--b"]
)
def test_dashes_in_a_comment_are_read_as_other_programs_read_them(comment, tmp_path):
    """Pinocchio and MuJoCo, and so their tinyxml2, take what XML forbids."""
    pinocchio = pytest.importorskip("pinocchio")
    text = (HINGE % (1, 2)).replace("<!-- one -->", f"\n<!--{comment}-->")
    assert pinocchio.buildModelFromXML(text).nq == 1
    (tmp_path / "arm.urdf").write_text(text)
    robot = feasid.load_robot(tmp_path / "arm.urdf")
    (note,) = (n for n in robot.source.notes if "a comment holds '--'" in n)
    assert re.search(r"arm.urdf:[23]: ", note)
    heavier = robot.with_values(2 * robot.values)
    written = tmp_path / "heavier.urdf"
    feasid.write(heavier, written)
    assert f"<!--{comment}-->" in written.read_text()
    np.testing.assert_array_equal(feasid.load_robot(written).values, heavier.values)
    with pytest.raises(DescriptionError, match="not well-formed"):
        feasid.load_robot(text.replace("</robot>", ""))
    inside = SDF_HINGE.replace("<effort>", f"<effort><!--{comment}-->") % (1, 2)
    assert feasid.load_robot(inside).bodies[0].limits.effort == 2.0


def test_terms_that_are_zero_are_none():
    terms = JointTerms(inertia=0.1, coulomb=0.3, slack=2.0)
    assert terms.values == {"Ia": 0.1, "fc": 0.3}
    (drive,) = terms.drives("body", "joint")
    assert (drive.name, dict(drive.coupling), drive.symbols) == (
        "body", {"joint": 1.0}, ("Ia", "fc"),
    )  # fmt: skip
    assert drive.values.tolist() == [0.1, 0.3]
    assert (drive.rest, drive.from_file) == (0.0, True)
    (drive,) = JointTerms(stiffness=5.0, slack=2.0).drives("body", "joint")
    assert drive.rest == 2.0
    assert list(JointTerms(slack=2.0).drives("body", "joint")) == []


def drive(coupling, rest=0.0, **values):
    return Drive("d", coupling, tuple(values), np.array([*values.values()]), rest=rest)


def test_drives_of_several_joints_and_springs_with_a_rest_are_added():
    found = sum_drives([
        drive({"a": 1.0, "b": -1.0}, fv=1.0), drive({"b": -1.0, "a": 1.0}, fv=2.0),
        drive({"b": 1.0}, rest=0.5, k=4.0), Drive("d", {"b": 1.0}, ("fv",)),
    ])  # fmt: skip
    one = (("b", 1.0),)
    assert found == {(("a", 1.0), ("b", -1.0)): {"fv": 3.0}, one: {"k": 4.0, "fo": -2.0}}


def test_terms_in_words():
    drives = [drive({"a": 1.0}, fv=0.5, fc=0.2), drive({"b": 1.0}, fv=0.5)]
    (note,) = term_notes(iter(drives))
    assert note == (
        "joint terms in the file, taken as initial values: viscous friction of 2 joints, Coulomb "
        "friction of 1 joint"
    )
    assert list(term_notes([])) == []
    joints = [
        ("f:1", "a", JointTerms(viscous=-0.5, coulomb=-1e-9, inertia=0.1)),
        ("f:2", "b", JointTerms(stiffness=-3.0)),
        ("f:3", "c", JointTerms(viscous=0.5)),
    ]
    (note,) = negative_notes(joints)
    assert note == (
        "f:1: joint 'a' has negative viscous friction -0.5 and Coulomb friction -1e-09, which no "
        "passive joint has; verdicts cover rigid bodies only"
    )


def test_what_was_left_out_in_words():
    assert list(left_out_notes([])) == []
    things = [LeftOut("camera", f"c{k}") for k in range(9)] + [LeftOut("light", "")]
    things += [LeftOut("site", "s")]
    (note,) = left_out_notes(things)
    shown = re.search(r"9 x camera \((.*?)(?: and (\d) more)?\); light; site \('s'\)$", note)
    names = shown[1].split(", ")
    assert names == [f"'c{k}'" for k in range(len(names))]
    assert len(names) + int(shown[2] or 0) == 9
    assert note.startswith("in the file, but not in the model: ")
    (note,) = left_out_notes([LeftOut("camera", f"c{k}") for k in range(len(names))])
    assert "more" not in note


def test_effects_are_refused_or_left_out_as_asked():
    effects = [
        UnmodelledEffect("fluid", "f.xml", 3, "<option density>"),
        UnmodelledEffect("flex", "f.xml", 9, "<flex>"),
    ]
    message = (
        "f.xml:9: <flex>: a deformable body is not modelled; load_robot(path, ignore=['flex']) "
        "reads the model without it"
    )
    with pytest.raises(DescriptionError, match=re.escape(message)) as error:
        list(refuse_effects(effects, check_ignored("fluid")))
    assert (error.value.data["line"], error.value.data["effect"]) == (9, "flex")
    found = list(refuse_effects(effects, check_ignored(["fluid", "flex"])))
    assert [x.name for x in found] == ["<option density>", "<flex>"]
    assert found[0].kind == "drag in a fluid (ignored as asked)"
    with pytest.raises(InputError, match=r"ignore='fluit' is not known \(did you mean 'fluid'\?\)"):
        check_ignored(["fluit"])
    assert check_ignored(EFFECTS) == frozenset(EFFECTS)


@pytest.mark.parametrize("count", [1, 2, 6, 7, 9])
def test_names_in_notes(count):
    said = _join_names("link", [f"n{k}" for k in range(count)])
    assert said.startswith("links 'n0', " if count > 1 else "link 'n0'")
    assert said.endswith(" and 3 more" if count == 9 else " and 1 more" if count == 7 else "'")
    assert said.count("'n") == min(count, 6)


def body(motion, name="b", **more):
    return Body(name, None, motion=np.array(motion, dtype=float).T, **more)


S = np.sqrt(0.5)


@pytest.mark.parametrize(
    ("columns", "kind", "axis", "place"),
    [
        ([[0, 0, 1, 0, 0, 0]], "revolute", [0, 0, 1], [0, 0, 0]),
        ([[0, 0, 1, 0.2, -0.1, 0]], "revolute", [0, 0, 1], [0.1, 0.2, 0]),
        ([[S, S, 0, 0, 0, 0.3]], "revolute", [S, S, 0], [0.3 * S, -0.3 * S, 0]),
        ([[0, 0, 0, S, 0, S]], "prismatic", [S, 0, S], [0, 0, 0]),
        (np.eye(6)[:3], "spherical", None, [0, 0, 0]),
        ([[1, 0, 0, 0, 0.3, -0.2], [0, 1, 0, -0.3, 0, 0.1], [0, 0, 1, 0.2, -0.1, 0]], "spherical",
         None, [0.1, 0.2, 0.3]),
        ([[0, 0, 1, 0, 0, 0.1]], None, None, None),
        ([[0, 0, 2, 0, 0, 0]], None, None, None),
        ([[0, 0, 0, 2, 0, 0]], None, None, None),
        (np.eye(6)[3:], None, None, None),
        ([[1, 0, 0, 0.1, 0, 0], [0, 1, 0, 0, 0.1, 0], [0, 0, 1, 0, 0, 0.1]], None, None, None),
        (np.eye(6)[:2], None, None, None),
        (np.eye(6), "floating", None, [0, 0, 0]),
        (2 * np.eye(6), None, None, None),
    ],
)  # fmt: skip
def test_kinds_of_joints(columns, kind, axis, place):
    if kind is None:
        with pytest.raises(feasid.FeasidError, match="joint 'b' has no counterpart in URDF"):
            joint_kind_axis_position(body(columns), "URDF")
        return
    found = joint_kind_axis_position(body(columns), "URDF")
    assert found[0] == kind
    assert axis is found[1] is None or found[1].tolist() == axis
    np.testing.assert_allclose(found[2], place, atol=ROUNDING)


def test_one_leader_or_none():
    assert single_leader(Coupling("a", {"b": 2.0}, 0.1), "URDF") == ("b", 2.0)
    assert single_leader(Coupling("a", {}, 0.1), "MJCF", held=True) == ("", 0.0)
    with pytest.raises(InputError, match="joint 'a' follows 2 joints; in URDF a joint follows one"):
        single_leader(Coupling("a", {"b": 2.0, "c": 1.0}, 0.1), "URDF")


def test_numbers_of_a_body_in_a_new_file():
    possible = [1, 0, 0, 1, 0, 1, 0, 0, 0, 2]
    assert inertial_in_body_axes(body([[0, 0, 1, 0, 0, 0]], inertial=possible)).mass == 2.0
    assert inertial_in_body_axes(body([[0, 0, 1, 0, 0, 0]], inertial=np.zeros(10))) is None
    for wrong, words in (
        (None, "body 'b' has no inertial parameters: fit them, or describe them"),
        ([1, 0, 0, 1, 0, 5, 0, 0, 0, 2], "body 'b' is infeasible"),
    ):
        with pytest.raises(InputError, match=words):
            inertial_in_body_axes(body([[0, 0, 1, 0, 0, 0]], inertial=wrong))


@settings(max_examples=100, deadline=None)
@given(st.tuples(*[st.floats(-3.2, 3.2)] * 3), st.sampled_from([None, np.pi / 2, -np.pi / 2]))
def test_roll_pitch_and_yaw_give_the_rotation_back(angles, pitch):
    """Also where the first and the last axis are one."""
    rpy = np.array(angles)
    rpy[1] = rpy[1] if pitch is None else pitch
    rotation = from_rpy(rpy)
    found = to_rpy(rotation)
    np.testing.assert_allclose(from_rpy(found), rotation, atol=1e-9)
    if pitch is not None:
        assert found[2] == 0.0


# -- shapes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("geom", "message"),
    [
        ('type="box" size="0.1 0.2"', "<geom> type box needs 3 positive numbers of size"),
        ('type="capsule" size="0.1 -0.2"', "<geom> type capsule needs 2 positive numbers of size"),
        ('type="capsule" fromto="0 0 0 1 0 0"', "<geom> fromto needs six numbers, a radius"),
        ('type="capsule" size="0.1" fromto="0 0 0 1 0"', "<geom> fromto needs six numbers"),
        ('type="sphere" size="0.1" fromto="0 0 0 1 0 0"', "<geom> fromto needs six numbers"),
        ('type="capsule" size="0.1" fromto="1 0 0 1 0 0"', "<geom> fromto has zero length"),
        ('type="capsule" size="0.1 x"', "<geom> size: "),
    ],
)
def test_geoms_that_are_none(geom, message):
    body = f'<body name="b"><joint/><geom {geom}/></body>'
    text = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
    with pytest.raises(DescriptionError, match=f"body 'b': {re.escape(message)}"):
        feasid.load_robot(text)


# -- files -----------------------------------------------------------------------------------------

URDF = """<robot name="r"><link name="base"/><link name="a">
<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
{more}</link><joint name="j" type="revolute"><parent link="base"/><child link="a"/>
<axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint></robot>"""


@pytest.mark.parametrize(
    ("collision", "kind"),
    [
        ('<geometry><box size="1 2 3"/></geometry>', "box"),
        ('<geometry><sphere radius="1"/></geometry><origin xyz="1 2 3" rpy="0 0 1"/>', "sphere"),
        ('<geometry><cylinder radius="1" length="2"/></geometry>', "cylinder"),
        ('<geometry><mesh filename="x"/></geometry>', None),
        ('<geometry><box size="1 2"/></geometry>', None),
        ('<geometry><box/></geometry>', None),
        ('<geometry><box size="a b c"/></geometry>', None),
        ('<geometry/>', None),
        ("", None),
        ('<geometry><box size="1 2 3"/><sphere radius="1"/></geometry>', None),
        ('<geometry><box size="1 2 3"/></geometry><origin xyz="1 2"/>', None),
        ('<geometry><box size="1 2 3"/></geometry><origin xyz="1 2 3" rpy="0 0"/>', None),
        ('<geometry><box size="1 2 3"/></geometry><origin xyz="a 2 3"/>', None),
        ('<geometry><sphere radius="-1"/></geometry>', None),
    ],
)  # fmt: skip
def test_shapes_that_a_urdf_gives(collision, kind):
    text = URDF.format(more=f"<collision>{collision}</collision>")
    description = read_description(parse_xml(text.encode()))
    (found,) = primitives(description.link("a").drawings(), "collision")
    assert (found and found.kind) == kind
    if kind == "sphere":
        assert found.position.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("mesh", "name", "scale"),
    [('filename="x.stl"', "x.stl", [1, 1, 1]),
     ('filename="x.stl" scale="2 2 3"', "x.stl", [2, 2, 3]),
     ('filename="x.stl" scale="2 2"', "", [1, 1, 1]), ('filename="x" scale="a"', "", [1, 1, 1]),
     ('scale="2 2 2"', "", [2, 2, 2])],
)  # fmt: skip
def test_meshes_that_a_urdf_gives(mesh, name, scale):
    shape = f"<collision><geometry><mesh {mesh}/></geometry></collision>"
    box = '<collision><geometry><box size="1 1 1"/></geometry></collision>'
    (found,) = collision_meshes(feasid.load_robot(URDF.format(more=shape + box)))["a"]
    assert (found.name, found.scale.tolist()) == (name, scale)


def test_what_a_urdf_has_besides_is_told():
    more = '<sensor name="s"/><gazebo/>'
    text = URDF.format(more=more).replace(
        "</robot>", '<gazebo reference="a"/><transmission name="t"/></robot>'
    ).replace("<axis", '<dynamics damping="1" stiction="2"/><axis')  # fmt: skip
    notes = " ".join(feasid.load_robot(text).source.notes)
    for part in ("<sensor> ('s')", "<gazebo> ('a'", "<dynamics stiction=> ('j')"):
        assert part in notes


@pytest.mark.parametrize("count", [1, 3])
def test_joints_without_a_name_are_named_after_their_body(count):
    """The same from the text and from the compiled model."""
    mujoco = pytest.importorskip("mujoco")
    axes = ("1 0 0", "0 1 0", "0 0 1")[:count]
    joints = "".join(f'<joint axis="{a}"/>' for a in axes)
    text = f"""<mujoco><worldbody><body name="b"><inertial pos="0 0 0" mass="1"
    diaginertia="1 1 1"/>{joints}</body></worldbody></mujoco>"""
    one = feasid.load_robot(text)
    assert one.joints == feasid.load_robot(mujoco.MjModel.from_xml_string(text)).joints
    assert one.joints == ("b", "b_joint2", "b_joint3")[:count]


def test_a_sidecar_that_is_no_longer_needed_is_removed(tmp_path):
    path = tmp_path / "r.urdf"
    path.write_text(URDF.format(more=""))
    robot = feasid.load_robot(path)
    rich = robot.with_joint_terms(("viscous", "coulomb", "offset"))
    rich = rich.with_values(np.nan_to_num(rich.values, nan=0.1))
    out = tmp_path / "out.urdf"
    assert feasid.write(rich, out) is not None
    (sidecar,) = tmp_path.glob("out.urdf*json")
    feasid.write(robot, out, overwrite=True)
    assert not sidecar.exists()
    with pytest.raises(feasid.FeasidError, match="overwrite"):
        feasid.write(robot, out)
