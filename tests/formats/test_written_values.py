"""What is written simulates: no value that readers refuse, no moving link without mass."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from robots import ARM

import feasid
from feasid.robot.formats.registry import FORMATS
from feasid.robot.formats.write import file_bytes

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
    read = feasid.load_robot(text)
    robot = read.with_joint_terms(("viscous", "coulomb"), drive_inertia=True)
    drives = tuple(replace(d, values=np.full(len(d.symbols), abs(value))) for d in robot.drives)
    bodies = []
    for body in robot.bodies:
        ten = np.array([0.02, 0, 0, 0.03, 0, 0.025, 0, 0, 0, 1.0])
        ten[[1, 2, 4, 6]] = value
        bodies.append(body if body.massless else replace(body, inertial=ten, members=()))
    robot = replace(robot, bodies=tuple(bodies), drives=drives)
    if not own:
        robot = replace(robot, source=None)
    elif read.bodies[0].members:
        robot = replace(
            robot,
            bodies=tuple(
                replace(b, members=old.members)
                for b, old in zip(robot.bodies, read.bodies, strict=True)
            ),
        )
    path = tmp_path / f"written.{suffix}"
    feasid.write(robot, path)
    back = feasid.load_robot(path, sidecar=False)
    assert not any("Ia" in d.symbols or "fv" in d.symbols for d in back.drives)
    for body, again in zip(robot.bodies, back.bodies, strict=True):
        np.testing.assert_allclose(again.inertial, body.inertial, rtol=1e-9, atol=1e-140)


def held(kind):
    """A robot with its last joint held whose last body is lighter than the link held on it."""
    robot = feasid.load_robot(ARM if kind == "urdf" else CHAIN)
    joint = "slide" if kind == "urdf" else "k"
    robot = robot.locked({joint: 0.02})
    body = robot.bodies[0]
    light = np.array([1e-3, 0, 0, 1e-3, 0, 1e-3, 0, 0, 0.002, 0.2])
    return replace(robot, bodies=(replace(body, inertial=light), *robot.bodies[1:])), light


@pytest.mark.parametrize("kind", ["urdf", "mjcf"])
def test_a_link_on_a_held_joint_keeps_mass(kind, tmp_path):
    robot, light = held(kind)
    data = file_bytes(robot, FORMATS[kind])
    free = feasid.load_robot(data.decode())
    link = next(b for b in free.bodies if b.name in ("rod", "b"))
    assert 0 < link.inertial[9] < 0.2
    again = free.locked({link.joint: 0.02})
    np.testing.assert_allclose(again.bodies[0].inertial, light, atol=1e-12)
    if kind == "mjcf":
        assert (mujoco.MjModel.from_xml_string(data.decode()).body_mass[1:] > 0).all()


def test_a_held_link_that_cannot_exist_is_named():
    bad = CHAIN.replace('diaginertia="0.011 0.012 0.013"', 'diaginertia="0.011 0.012 0.13"')
    robot = feasid.load_robot(bad).locked({"k": 0.0})
    light = np.array([1e-3, 0, 0, 1e-3, 0, 1e-3, 0, 0, 0.002, 0.2])
    robot = replace(robot, bodies=(replace(robot.bodies[0], inertial=light),))
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
