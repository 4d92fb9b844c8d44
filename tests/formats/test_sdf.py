"""SDF: read as the equivalent URDF and MJCF are, judged, corrected, fitted and written back."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from robots import ARM
from sdf_files import FRAMES, LOCAL, OLD, TERMS, TURN, axis, inertial, joint, link, sdf
from seeds import NEW_SEEDS, seed_of
from written import changed_lines, own_text, random_parameters

import feasid
from feasid.core.errors import DescriptionError, InputError, UnsupportedJointError
from feasid.robot.formats.load import load_robot


def torques(robot, seed=0):
    rng = np.random.default_rng(seed)
    q, dq, ddq = rng.uniform(-1, 1, (3, 20, robot.dof))
    values = np.nan_to_num(robot.values, nan=0.0)
    return feasid.inverse_dynamics(robot, q, dq, ddq, parameters=values)


SDF_DEFAULT = np.array([1.0, 0, 0, 1, 0, 1, 0, 0, 0, 1])
"""1 kg and 1 kg m^2 of a link that states none: sdformat.org/spec, and measured in Drake 1.51."""


def with_wheel(robot, ten=SDF_DEFAULT):
    """With these parameters of the wheel, of which the files say nothing."""
    last = replace(robot.bodies[-1], inertial=ten)
    return replace(robot, bodies=(*robot.bodies[:-1], last))


@pytest.mark.parametrize("text", [LOCAL, OLD], ids=["local", "1.4"])
def test_the_same_robot_as_from_urdf(text):
    ours, theirs = load_robot(text), with_wheel(load_robot(ARM))
    assert ours.joints == theirs.joints
    for a, b in zip(ours.bodies, theirs.bodies, strict=True):
        np.testing.assert_allclose(a.rotation, b.rotation, atol=1e-15)
        np.testing.assert_allclose(a.position, b.position, atol=1e-15)
        np.testing.assert_allclose(a.motion, b.motion, atol=1e-15)
        assert vars(a.limits) == vars(b.limits)
        assert [m.name for m in a.members] == [m.name for m in b.members]
    np.testing.assert_allclose(ours.values, theirs.values, atol=1e-15)
    np.testing.assert_allclose(torques(ours), torques(theirs), atol=1e-12)


def test_frames_poses_of_joints_and_degrees_place_the_same_joints():
    ours, theirs = load_robot(FRAMES), with_wheel(load_robot(ARM))
    np.testing.assert_allclose(torques(ours)[:, :2], torques(theirs)[:, :2], atol=1e-12)
    for a, b in zip(ours.bodies[:2], theirs.bodies[:2], strict=True):
        np.testing.assert_allclose(a.motion, b.motion, atol=1e-15)
    # The wheel's frame is turned by 90 degrees about y, its axis is x of the turned-back joint.
    turn = ours.bodies[2].rotation
    np.testing.assert_allclose(turn, [[0, 0, 1], [0, 1, 0], [-1, 0, 0]], atol=1e-15)
    np.testing.assert_allclose(turn @ ours.bodies[2].motion[:3, 0], [1, 0, 0], atol=1e-15)


def test_joint_positions_are_those_of_mjcf():
    text = sdf(
        link("rod", "<pose>0.1 0.2 0.3 0.1 0.2 0.3</pose>"),
        joint("hinge", "revolute", "world", "rod", "<pose>0 0.1 0.2 0 0 0</pose>" + axis("0 0 1")),
        link("ball", '<pose relative_to="rod">0 0 0.4 0 0 0</pose>' + inertial("upper")),
        joint("socket", "ball", "rod", "ball", "<pose>0.1 0 0 0 0 0</pose>"),
    )
    mjcf = """<mujoco><compiler angle="radian" eulerseq="XYZ"/><worldbody>
    <body name="rod" pos="0.1 0.2 0.3" euler="0.1 0.2 0.3"><joint name="hinge" pos="0 0.1 0.2"/>
    <inertial pos="0 0 0.1" mass="0.3" diaginertia="0.001 0.001 0.0001"/>
    <body name="ball" pos="0 0 0.4"><joint name="socket" type="ball" pos="0.1 0 0"/>
    <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></body></worldbody></mujoco>"""
    ours, theirs = load_robot(text), load_robot(mjcf)
    for a, b in zip(ours.bodies, theirs.bodies, strict=True):
        np.testing.assert_allclose(a.motion, b.motion, atol=1e-15)
        np.testing.assert_allclose(a.rotation, b.rotation, atol=1e-15)
        np.testing.assert_allclose(a.position, b.position, atol=1e-15)


def test_what_the_file_says_besides_is_noted():
    text = LOCAL.replace("</model>", '<plugin name="p" filename="x"/></model>')
    notes = load_robot(text).source.notes
    words = "link 'wheel' states no mass, ixx, iyy, izz: SDF's defaults, 1 kg and"
    assert any(words in n for n in notes)
    assert any("not attached to the world: root link 'base' is held" in n for n in notes)
    assert any("<plugin> ('p')" in n for n in notes)
    assert load_robot(text, floating=True).dof == load_robot(text).dof + 6


def test_a_world_gives_gravity_and_a_joint_to_it_holds_the_base():
    inner = LOCAL.split("\n", 1)[1].replace("</sdf>", "</world></sdf>")
    anchor = joint("anchor", "fixed", "world", "base")
    text = (
        '<sdf version="1.9"><world name="w"><gravity>0 0 -1.62</gravity>'
        '<model name="ground"><static>true</static><link name="g"/></model>'
        '<model name="arm"><pose>0 0 1 0 0.5 0</pose>' + anchor + inner
    )
    robot = load_robot(text)
    assert robot.gravity.tolist() == [0, 0, -1.62]
    assert robot.joints == load_robot(LOCAL).joints
    assert robot.fixed[0].position[2] == 1
    with pytest.raises(InputError, match="itself defines what floats"):
        load_robot(text, floating=True)


def test_mimic_joints_follow():
    text = LOCAL.replace(
        axis("1 0 0"),
        axis("1 0 0", '<mimic joint="shoulder"><multiplier>2</multiplier><offset>0.5</offset>'
             "<reference>0.1</reference></mimic>"),
    )  # fmt: skip
    (coupling,) = load_robot(text).couplings
    assert (coupling.joint, dict(coupling.factors)) == ("wheel_joint", {"shoulder": 2.0})
    assert coupling.offset == pytest.approx(0.3, abs=1e-15)


def test_one_of_several_models_and_models_inside_a_model(tmp_path):
    shoulder = joint("shoulder", "revolute", "base", "upper", axis("0 1 0", TERMS))
    pose = f'<pose relative_to="base">0 0 0.1 {TURN}</pose>'
    end = f"</model>{joint('w', 'fixed', 'world', 'base')}</model>"
    hand = f'{shoulder.replace(">upper<", ">hand::upper<")}<model name="hand">{pose}'
    flat = LOCAL.replace(shoulder, "").replace(pose, "").replace("</model>", end)
    head, tail = flat.replace(link("base"), link("base") + hand).split("<model", 1)
    left = tail.replace('"arm"', '"left"', 1).replace("1.25", "9.25").replace("</sdf>", "")
    both = f'{head}<world name="w"><model{left}<model{tail[:-7]}</world></sdf>'
    (world := tmp_path / "world.sdf").write_text(both)
    robot = load_robot(world, model="arm")
    assert robot.joints == ("shoulder", "hand::slide", "hand::wheel_joint")
    np.testing.assert_allclose(torques(robot), torques(load_robot(LOCAL)), atol=1e-12)
    changed = robot.with_values(np.nan_to_num(1.5 * robot.values))
    feasid.write(changed, tmp_path / "new.sdf")
    again = [load_robot(tmp_path / "new.sdf", model=name) for name in ("arm", "left")]
    np.testing.assert_allclose(torques(again[0]), torques(changed), atol=1e-9)
    np.testing.assert_array_equal(torques(again[1]), torques(load_robot(world, model="left")))
    for text, words in ((world, "0 models called 'lefd', of 'left', 'arm'"), (ARM, "URDF has one")):
        with pytest.raises(InputError, match=words):
            load_robot(text, model="lefd")
    with pytest.raises(InputError, match="'hand::slide': names of a new SDF file hold no '::'"):
        feasid.write(replace(robot, source=None), tmp_path / "flat.sdf")


REFUSED = {
    "include": (LOCAL.replace("</model>", "<include><uri>x</uri></include></model>"), "gz sdf -p"),
    "two models": (LOCAL.replace("</sdf>", '<model name="n"/></sdf>'), "2 models that may move"),
    "world's joint": (LOCAL.replace("<model", '<world name="w"><joint name="x" type="fixed"><child>'
                      "arm::base</child></joint><model", 1).replace("</sdf>", "</world></sdf>"),
                      "hangs on a joint of the world"),
    "universal": (LOCAL.replace('"continuous"', '"universal"'), "'wheel_joint' has type"),
    "quaternions": (LOCAL.replace('<pose relative_to="upper"',
                                  '<pose rotation_format="quat_xyzw" relative_to="upper"'),
                    "rotation_format"),
    "auto": (LOCAL.replace("<inertial>", '<inertial auto="true">', 1), "auto="),
    "circle": (LOCAL.replace('relative_to="base"', 'relative_to="rod"'), "circle"),
    "no frame": (LOCAL.replace('relative_to="base"', 'relative_to="bass"'), "did you mean 'base'"),
    "loop": (LOCAL.replace("</model>", joint("x", "fixed", "rod", "upper") + "</model>"), "loops"),
    "cycle": (LOCAL.replace("<parent>base", "<parent>wheel"), "'rod' by joint"),
    "no parent": (LOCAL.replace("<parent>base", "<parent>bass"), "no link 'bass'"),
    "nan": (LOCAL.replace("<mass>2.5", "<mass>nan"), "'base': <mass> 'nan' is not a finite"),
    "five numbers": (LOCAL.replace("0 0 0.3 0 0.4 0", "0 0 0.3 0 0.4"), "has 5 numbers"),
    "two roots": (LOCAL.replace("</model>", '<link name="x"/></model>'), "float apart"),
    "version": (LOCAL.replace("1.9", "nine"), "version 'nine'"),
    "gravity off": (LOCAL.replace('<link name="base">',
                                  '<link name="base"><gravity>false</gravity>'), "gravcomp"),
    "zero axis": (LOCAL.replace("<xyz>0 1 0", "<xyz>0 0 0"), "the axis is zero"),
    "same name": (LOCAL.replace('link name="rod"', 'link name="upper"'), "defined twice"),
    "placement": (LOCAL.replace("<model ", '<model placement_frame="base" '), "placement_frame"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_read_is_refused_by_name(name):
    text, words = REFUSED[name]
    with pytest.raises(DescriptionError) as caught:
        load_robot(text)
    assert words in str(caught.value)
    assert str(caught.value).startswith("<text>:")
    assert isinstance(caught.value, UnsupportedJointError) == (name == "universal")


# -- judged, corrected, written -------------------------------------------------------------------


def test_links_are_judged_and_corrected_in_their_own_text(tmp_path):
    path, out = tmp_path / "bad.sdf", tmp_path / "good.sdf"
    path.write_text(LOCAL.replace("<izz>0.0003</izz>", "<izz>0.003</izz>"))
    report = feasid.check(path)
    assert [r.link.name for r in report.infeasible] == ["plate"]
    assert feasid.correct(path, out=out).after.feasible
    changed = changed_lines(path.read_bytes(), out.read_bytes())
    assert len(changed) == 2
    assert all("<inertia>" in line for line in changed)
    assert feasid.check(out).feasible


def fitted_like(robot):
    """The robot with other inertias, and values of every usual joint term."""
    rng = np.random.default_rng(7)
    ten = random_parameters(rng, len(robot.bodies))
    bodies = [replace(b, inertial=t) for b, t in zip(robot.bodies, ten, strict=True)]
    robot = replace(robot, bodies=tuple(bodies))
    robot = robot.with_joint_terms(drive_inertia=True)
    drives = [replace(d, values=rng.uniform(0.1, 1, len(d.symbols))) for d in robot.drives]
    return replace(robot, drives=tuple(drives))


def skeleton(text):
    """A text without the elements that may be written, and without the drives' namespace."""
    for tag in ("inertial", "dynamics", "drake:rotor_inertia"):
        text = re.sub(rf"\s*<{tag}>.*?</{tag}>\s*", "", text, flags=re.DOTALL)
    return text.replace(' xmlns:drake="http://drake.mit.edu"', "")


@pytest.mark.parametrize("text", [LOCAL, FRAMES], ids=["local", "frames"])
def test_the_own_text_gets_other_numbers_and_keeps_every_other_byte(text, tmp_path):
    read = load_robot(text)
    assert own_text(read) == text.strip().encode()
    robot = fitted_like(read)
    path = tmp_path / "arm.sdf"
    written = feasid.write(robot, path)
    assert {name.split(".")[1] for name in written.lost} == {"fo"}
    again = load_robot(path)
    np.testing.assert_allclose(again.values, robot.values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(torques(again), torques(robot), rtol=1e-9, atol=1e-9)
    alone = load_robot(path, sidecar=False)
    assert {s for d in alone.drives for s in d.symbols} == {"Ia", "fv", "fc"}
    assert skeleton(path.read_text()) == skeleton(text.strip())
    twice = tmp_path / "twice.sdf"
    feasid.write(again, twice)
    assert twice.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("kind", ["urdf", "dh"])
def test_a_new_file_for_a_robot_from_elsewhere(kind, tmp_path):
    robot = load_robot(ARM)
    if kind == "dh":
        robot = feasid.Robot.from_dh([(0.3, 1, 0.2, 0.1), (-1.2, 0.1, 0.3, 0), (0.5, 0, 0.4, 0.2)])
    robot = fitted_like(robot)
    path = tmp_path / "new.sdf"
    feasid.write(robot, path)
    again = load_robot(path)
    assert again.joints == robot.joints
    np.testing.assert_allclose(torques(again), torques(robot), rtol=1e-9, atol=1e-9)


def test_a_spring_and_a_gear_are_kept():
    text = LOCAL.replace(
        "<friction>0.2</friction>",
        "<friction>0.2</friction><spring_reference>0.1</spring_reference>"
        "<spring_stiffness>3</spring_stiffness>",
    ).replace(
        "<child>upper</child>",
        "<child>upper</child><drake:rotor_inertia>1e-4</drake:rotor_inertia>"
        "<drake:gear_ratio>100</drake:gear_ratio>",
    )
    robot = load_robot(text)
    (drive,) = robot.drives
    values = dict(zip(drive.symbols, drive.values, strict=True))
    assert values == pytest.approx({"Ia": 1.0, "fv": 0.7, "fc": 0.2, "k": 3.0})
    assert drive.rest == 0.1
    assert own_text(robot) == text.strip().encode()
    doubled = replace(robot, drives=(replace(drive, values=2 * drive.values),))
    data = own_text(doubled).decode()
    assert "<drake:rotor_inertia>0.0002</drake:rotor_inertia>" in data
    assert "<damping>1.4</damping>" in data


def drawn(shape, place):
    own = f"<origin {place}/><geometry><{shape}/></geometry>"
    colour = '<material name="red"><color rgba="1 0 0 0.5"/></material>'
    return f"<visual>{own}{colour}</visual><collision>{own}{colour}</collision>"


SHAPES = {
    "base": drawn('sphere radius="0.2"', 'xyz="0 {x} 0"'),
    "plate": drawn('box size="0.1 0.2 0.3"', 'rpy="{x} 0.2 0"'),
    "wheel": '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
    "</inertial>" + drawn('cylinder radius="0.1" length="0.3"', 'xyz="{x} 0 0.1" rpy="0 1.5 {x}"'),
}
DRAWN = ARM.replace('<link name="wheel"/>', '<link name="wheel"></link>')
for name, inside in SHAPES.items():
    DRAWN = DRAWN.replace(f'<link name="{name}">', f'<link name="{name}">{inside}')
GEOMS = """<mujoco><compiler angle="radian"/><worldbody>
<body name="base" pos="0 0 1"><geom size="0.2"/>
<body name="upper" pos="0 0 {x}"><joint name="j"/>
<geom type="capsule" size="0.1 0.2" euler="{x} 1 0"/>
<body name="plate" pos="0.1 0 0" euler="0 0 {x}">
<geom type="ellipsoid" size="0.1 0.2 0.3" pos="0 {x} 0"/>
<geom type="cylinder" size="0.1 0.3" contype="0" conaffinity="0"/>
</body></body></body></worldbody></mujoco>"""
SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}


def shapes_by_mujoco(text):
    """Kind, size, place and axes of every geom in the world; places of bodies."""
    mujoco = pytest.importorskip("mujoco")
    compiler = '<mujoco><compiler discardvisual="false" fusestatic="false"/></mujoco></robot>'
    model = mujoco.MjModel.from_xml_string(text.replace("</robot>", compiler))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    kinds = [mujoco.mjtGeom(t).name[7:].lower() for t in model.geom_type]
    geoms = zip(kinds, model.geom_size, data.geom_xpos, data.geom_xmat, strict=True)
    shapes = {
        (kind, *np.round([*size[: SIZES[kind]], *place, *turn], 9) + 0.0)
        for kind, size, place, turn in geoms
    }
    return shapes, {model.body(i).name: data.xpos[i] for i in range(1, model.nbody)}


def shapes_of_sdf(root):
    """The same of an SDF file, composed here alone; half lengths as MuJoCo has them."""
    from scipy.spatial.transform import Rotation

    places, shapes = {"__model__": (np.eye(3), np.zeros(3))}, set()

    def compose(base, pose):
        (turn, place), six = base, np.array(pose.text.split(), float)
        return turn @ Rotation.from_euler("xyz", six[3:]).as_matrix(), turn @ six[:3] + place

    for element in root.find("model"):
        pose = element.find("pose")
        if element.tag != "joint":
            base = element.get("attached_to") or pose.get("relative_to")
            places[element.get("name")] = compose(places[base], pose)
        for drawing in [*element.iter("visual"), *element.iter("collision")]:
            turn, place = compose(places[element.get("name")], drawing.find("pose"))
            (shape,) = drawing.find("geometry")
            size = np.array(" ".join(x.text for x in shape).split(), float)
            lengths = {"box": slice(None), "capsule": slice(1, None), "cylinder": slice(1, None)}
            size[lengths.get(shape.tag, slice(0))] /= 2
            shapes.add((shape.tag, *np.round([*size, *place, *turn.ravel()], 9) + 0.0))
    return shapes, {name: place for name, (_, place) in places.items()}


@pytest.mark.parametrize("seed", [5, *NEW_SEEDS])
@pytest.mark.parametrize("text", [DRAWN, GEOMS], ids=["urdf", "mjcf"])
def test_shapes_and_fixed_links_of_another_format_stay_where_they_are(text, seed, tmp_path):
    text = text.replace("{x}", str(np.random.default_rng(seed_of(seed)).uniform(0.1, 1)))
    source, path = tmp_path / "arm.xml", tmp_path / "arm.sdf"
    source.write_text(text)
    written = feasid.write(load_robot(source), path)
    root = ET.parse(path).getroot()
    (theirs, bodies), (ours, places) = shapes_by_mujoco(text), shapes_of_sdf(root)
    assert ours == theirs
    for name, place in bodies.items():
        np.testing.assert_allclose(places[name], place, atol=1e-12)
    assert written.left_out == ""
    colours = {"1.0 0.0 0.0 0.5"} if text[1] == "?" else set()
    assert {c.text for c in root.iter("diffuse")} == colours
    assert not [*root.iterfind(".//collision/material")]  # Drake rejects these
    assert "SDF's defaults" not in str(load_robot(path).source.notes)


HINGE = sdf(joint("j", "revolute", "world", "l", axis("0 1 0")), '<link name="l">%s</link>%s')
TOOL = (
    '<link name="tool"><pose relative_to="l">0.3 0 0 0 0 0</pose></link>'
    "<joint name='t' type='fixed'><parent>l</parent><child>tool</child></joint>"
)
STATED = (
    "<pose>.1 0 0 0 0 0</pose><mass>1</mass>"
    "<inertia><ixx>.01</ixx><iyy>.01</iyy><izz>.01</izz></inertia>"
)


@pytest.mark.parametrize(("inertial", "tool", "weight", "moment"), [
    ("", "", 0.0, 1.0), ("<inertial><mass>3</mass></inertial>", "", 0.0, 1.0),
    ("<inertial><pose>.1 0 0 0 0 0</pose></inertial>", "", -0.981, 1.01),
    ("<inertial><inertia><iyy>2</iyy></inertia></inertial>", "", 0.0, 2.0),
    (f"<inertial>{STATED}</inertial>", "", -0.981, 0.02),
    (f"<inertial>{STATED}</inertial>", TOOL, -3.924, 1.11),
])  # fmt: skip
def test_what_a_link_does_not_state_is_what_drake_gives_it(inertial, tool, weight, moment):
    """Torques at rest and under 1 rad/s^2 are those measured in Drake 1.51."""
    text = HINGE % (inertial, tool)
    robot = load_robot(text)
    torque = feasid.inverse_dynamics(robot, [[0.0]] * 2, [[0.0]] * 2, [[0.0], [1.0]])[:, 0]
    np.testing.assert_allclose(torque, [weight, weight + moment], atol=1e-12)
    assert own_text(robot) == text.strip().encode()
    assert ("SDF's defaults" in str(robot.source.notes)) == (STATED not in inertial or bool(tool))
    own_text(fitted_like(robot))  # verified there: the new numbers read back
    held = load_robot((HINGE % (f"<inertial>{STATED}</inertial>", "")).replace("</model>", (
        f'<link name="b">{inertial}</link>' + joint("w", "fixed", "world", "b") + "</model>"
    )))  # fmt: skip
    assert ("link 'b'" in str(held.source.notes)) == (inertial != "" and STATED not in inertial)


@pytest.mark.parametrize("seed", [2, *NEW_SEEDS])
def test_a_tool_without_inertial_adds_no_mass_to_a_written_file(seed):
    """By sdformat.org: a link that states no mass has 1 kg, and one of no mass is an error."""
    robot = load_robot(HINGE % (f"<inertial>{STATED}</inertial>", TOOL))
    rng = np.random.default_rng(seed_of(seed))
    ten = random_parameters(rng, 1)[0] / 100  # smaller than 1 kg m^2
    root = ET.fromstring(own_text(replace(robot, bodies=(replace(robot.bodies[0], inertial=ten),))))
    inertials = [link.find("inertial") for link in root.iter("link")]
    masses = [float(i.find("mass").text) for i in inertials]
    places = [float(i.find("pose").text.split()[0]) for i in inertials]
    assert min(masses) > 0
    assert sum(masses) == pytest.approx(ten[9], rel=1e-12)
    moment = masses[0] * places[0] + masses[1] * (0.3 + places[1])
    assert moment == pytest.approx(ten[6], rel=1e-9)
