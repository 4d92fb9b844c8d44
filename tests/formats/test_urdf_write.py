"""Writing back changes the numbers that changed, exactly, and not one byte else."""

import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robots import ARM, example_urdfs
from written import changed_lines, own_text, random_parameters, robot_of_text, with_random_inertia

from feasid import load_robot
from feasid.core.errors import FeasidError, InputError
from feasid.core.exact.poses import is_possible_inertia
from feasid.robot import inertia
from feasid.robot.formats.registry import read_description
from feasid.robot.formats.rewrite import relative_difference
from feasid.robot.formats.write import write
from feasid.robot.formats.xml import parse_xml

RTOL_WRITTEN = 1e-9  #: What the writer promises, relative to the body's mass and size.


def described(data):
    """What a file's bytes say."""
    return read_description(parse_xml(data))


def arm_robot(text=ARM, **options):
    return robot_of_text(text.encode() if isinstance(text, str) else text, **options)


@pytest.mark.sampled(0.2)
@pytest.mark.parametrize("path", example_urdfs(), ids=lambda p: p.stem)
def test_an_unchanged_robot_is_written_byte_for_byte(path):
    data = path.read_bytes()
    try:
        robot = load_robot(path)
    except FeasidError:
        return
    assert own_text(robot) == data
    if not np.isnan(robot.values).any():
        assert own_text(robot.with_values(robot.values)) == data


@pytest.mark.parametrize("path", example_urdfs()[::7], ids=lambda p: p.stem)
def test_new_inertias_read_back_and_touch_inertial_lines_only(path, tmp_path):
    try:
        robot = load_robot(path)
    except FeasidError:
        return
    new = with_random_inertia(robot, 7)
    out = tmp_path / "out.urdf"
    write(new, out)
    again = load_robot(out)
    for body, found in zip(new.bodies, again.bodies, strict=True):
        assert relative_difference(found.inertial, body.inertial) < RTOL_WRITTEN
    before, after = path.read_bytes(), out.read_bytes()
    for line in changed_lines(before, after):
        assert re.search(r"<(mass|inertia|origin|/?inertial|/?link)\b", line), line
    skeleton = re.compile(rb"<inertial.*?</inertial>", re.DOTALL)
    names = [element.tag for element in described(after).document.text.root.walk()]
    assert names.count("link") == len(described(before).links)
    if len(skeleton.findall(before)) == len(skeleton.findall(after)):
        assert skeleton.sub(b"", before) == skeleton.sub(b"", after)


def test_the_written_decimals_are_exactly_possible_and_load_elsewhere(tmp_path):
    pinocchio, mujoco = pytest.importorskip("pinocchio"), pytest.importorskip("mujoco")
    robot = with_random_inertia(arm_robot(), 3)
    path = tmp_path / "out.urdf"
    write(robot, path)
    urdf = described(path.read_bytes())
    for name in ("upper", "rod", "wheel"):
        link = urdf.link(name)
        assert is_possible_inertia(link.mass, link.moments)
    model = pinocchio.buildModelFromUrdf(str(path))
    for body in robot.bodies:
        theirs = np.empty(10)
        parameters = model.inertias[model.getJointId(body.joint)].toDynamicParameters()
        theirs[inertia.PINOCCHIO] = parameters
        assert relative_difference(theirs, body.inertial) < RTOL_WRITTEN
    compiled = mujoco.MjModel.from_xml_path(str(path))
    for body in robot.bodies:
        mass, com, about_com = inertia.to_mass_com_inertia(body.inertial)
        theirs = compiled.body(body.name)
        assert theirs.mass[0] == pytest.approx(mass, rel=RTOL_WRITTEN)
        np.testing.assert_allclose(theirs.ipos, com, atol=1e-9)
        np.testing.assert_allclose(
            np.sort(theirs.inertia), np.linalg.eigvalsh(about_com), rtol=1e-8
        )


def test_only_the_digits_that_change_are_replaced():
    robot = arm_robot()
    mass, com, about_com = inertia.to_mass_com_inertia(robot.bodies[1].inertial)
    heavier = inertia.from_mass_com_inertia(mass, com, about_com + np.diag([0, 0, 2e-5]))
    bodies = tuple(replace(b, inertial=heavier) if b.name == "rod" else b for b in robot.bodies)
    lines = changed_lines(ARM.encode(), own_text(replace(robot, bodies=bodies)))
    # The centre of mass and the other moments come back to within rounding; the text of those
    # that come back exactly stays.
    assert all("<inertia " in line or "<origin xyz" in line for line in lines)
    assert any('izz="0.00012' in line for line in lines)


def test_axes_that_turn_exactly_are_kept():
    text = ARM.replace(
        '<origin xyz="0 0 0.1"/>', '<origin xyz="0 0 0.1" rpy="0 1.5707963267948966 0"/>'
    )
    robot = with_random_inertia(arm_robot(text), 1)
    data = own_text(robot)
    assert data.count(b'rpy="0 1.5707963267948966 0"') == 1
    assert b'rpy="0.3 -0.2 0.1"' not in data
    again = arm_robot(data)
    for body, found in zip(robot.bodies, again.bodies, strict=True):
        assert relative_difference(found.inertial, body.inertial) < RTOL_WRITTEN


@pytest.mark.parametrize("possible", [True, False])
def test_fixed_children_keep_their_inertia_when_the_rest_is_possible_and_else_nothing(possible):
    robot, ten = arm_robot(), random_parameters(np.random.default_rng(0), 3)
    values = np.where(np.isnan(robot.values), 1.0, robot.values)
    values[robot.inertial_columns[2]] = ten[0]
    if possible:
        values[robot.inertial_columns[0]] *= 1.01
    else:
        values[robot.inertial_columns] = ten * 1e-3
    again = described(own_text(robot.with_values(values)))
    plate = again.link("plate")
    assert plate.mass == (Fraction("0.2") if possible else 0)
    assert any(plate.moments) == possible
    assert float(again.link("upper").mass) == pytest.approx(values[9] - float(plate.mass))


def test_parameters_that_cannot_exist_are_refused_by_name(tmp_path):
    robot = arm_robot()
    values = np.where(np.isnan(robot.values), 0.0, robot.values)
    with pytest.raises(InputError, match="'wheel'") as caught:
        write(robot.with_values(values), tmp_path / "x.urdf")
    assert caught.value.body == "wheel"
    assert list(tmp_path.iterdir()) == []


def test_joint_terms_are_written(tmp_path):
    robot = with_random_inertia(arm_robot().with_joint_terms(), 5)
    values = robot.values.copy()
    for k in range(len(robot.drives)):
        columns = robot.drive_columns(k)
        values[list(columns.values())] = 0.25 + k, 0.5 + k, 0.0
    robot = robot.with_values(values)
    data = own_text(robot)
    urdf = described(data)
    terms = {joint.name: joint.terms for joint in urdf.joints}
    found = [(terms[j].viscous, terms[j].coulomb) for j in robot.joints]
    assert found == [(0.25 + k, 0.5 + k) for k in range(3)]
    assert b'\n    <dynamics damping="2.25" friction="2.5"/>\n  </joint>' in data
    values[robot.drive_columns(1)["fv"]] = -1e-3
    with pytest.raises(InputError, match=r"'slide': viscous friction .* is negative"):
        own_text(robot.with_values(values))


def test_a_robot_without_friction_leaves_none_in_the_file():
    data = own_text(arm_robot().without_joint_terms())
    assert not any(joint.terms.values for joint in described(data).joints)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_encoding_and_line_ends_survive(encoding, newline):
    text = ARM.replace("a small arm", "Übungsarm").replace("\n", newline)
    text = text.replace('"1.0"?', f'"1.0" encoding="{encoding.removesuffix("-sig")}"?')
    data = text.encode(encoding)
    robot = with_random_inertia(arm_robot(data), 2)
    new = own_text(robot)
    assert "Übungsarm" in new.decode(encoding)
    assert new[:2] == data[:2]
    assert "\n" not in new.decode(encoding).replace(newline, "")
    again = arm_robot(new)
    assert relative_difference(again.bodies[2].inertial, robot.bodies[2].inertial) < RTOL_WRITTEN


def test_a_locked_robot_is_written_too():
    robot = arm_robot().locked({"slide": 0.1})
    assert own_text(robot) == ARM.encode()
    new = with_random_inertia(robot, 9)
    again = arm_robot(own_text(new)).locked({"slide": 0.1})
    for body, found in zip(new.bodies, again.bodies, strict=True):
        assert relative_difference(found.inertial, body.inertial) < RTOL_WRITTEN


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), flat=st.sampled_from([0.0, 1e-6, 1e-3, 1.0]))
def test_thin_bodies_far_from_their_frame_stay_exactly_possible(seed, flat):
    """Discs and rods far away lose digits; what is written is definite all the same, or refused."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(5, 3)) * [1.0, 1.0, flat] * 0.1 + rng.uniform(-2, 2, 3)
    points = np.c_[points, np.ones(5)]
    delta = inertia.from_pseudo_inertia(points.T * rng.uniform(0.1, 1, 5) @ points)
    robot = arm_robot()
    bodies = tuple(replace(b, inertial=delta) if b.name == "rod" else b for b in robot.bodies)
    try:
        data = own_text(replace(robot, bodies=bodies))
    except InputError:
        assert flat == 0.0
        return
    link = described(data).link("rod")
    assert is_possible_inertia(link.mass, link.moments)


def test_a_base_that_cannot_exist_is_said_because_mujoco_refuses_the_file(tmp_path):
    written = write(load_robot(ARM.replace('izz="0.015"', 'izz="0.15"')), tmp_path / "arm.urdf")
    assert "without which MuJoCo and Gazebo refuse the file ('base')" in written.left_out
    with pytest.raises(ValueError, match="balanceinertia"):
        pytest.importorskip("mujoco").MjModel.from_xml_path(str(tmp_path / "arm.urdf"))
