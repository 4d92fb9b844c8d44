"""`feasid compare` tells models that move alike from models that do not."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from robots import ARM, MODELS, replaced

import feasid
from benchmarks.closed import FIVE_BAR
from feasid import load_robot
from feasid.applications.inspection.comparison import compare, compare_robots
from feasid.cli import main
from feasid.core.errors import InputError
from feasid.parameters.identifiability.base import base_parameters

WHEEL = """<link name="wheel"><inertial><mass value="0.4"/>
  <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"/></inertial></link>"""
FULL_ARM = ARM.replace('<link name="wheel"/>', WHEEL)


def write(tmp_path, name, *replacements, text=FULL_ARM):
    path = tmp_path / name
    path.write_text(replaced(text, *replacements))
    return path


def test_a_file_equals_itself(tmp_path, capsys):
    path = str(write(tmp_path, "a.urdf"))
    assert main(["compare", path, path]) == 0
    out = capsys.readouterr().out
    assert "dynamically equivalent" in out
    assert "torques differ by      0 % at" in out


def test_mass_moved_along_the_nullspace_is_not_seen(tmp_path):
    """Other links, the same base parameters: equivalent, although every link differs."""
    a, b = write(tmp_path, "a.urdf"), tmp_path / "b.urdf"
    robot = load_robot(a)
    null = base_parameters(robot).nullspace
    step = null @ np.random.default_rng(4).normal(size=null.shape[1])
    changed = robot.with_values(robot.values + 1e-5 * step / np.abs(step).max())
    feasid.write(changed, b)
    found = compare(a, b)
    assert a.read_bytes() != b.read_bytes()
    assert found.equivalent
    assert found.different == ()
    assert max(found.torques.values()) < 1e-9


def test_conjugated_principal_axes_are_another_body(tmp_path):
    """The mistake of a published converter, which masses and principal moments do not show."""
    a, b = write(tmp_path, "a.urdf", text=PENDULUM_URDF), tmp_path / "b.usda"
    feasid.write(load_robot(a), b)
    assert compare(a, b).equivalent
    w, x, y, z = re.search(
        r"principalAxes = \((.*?), (.*?), (.*?), (.*?)\)", b.read_text()
    ).groups()
    turned = f"({w}, {-float(x)}, {-float(y)}, {-float(z)})"
    b.write_text(b.read_text().replace(f"({w}, {x}, {y}, {z})", turned))
    assert not compare(a, b).equivalent


@pytest.mark.parametrize("suffix", ["urdf", "xml", "sdf", "usda"])
def test_a_file_that_does_not_say_whether_it_floats_floats_as_the_other(tmp_path, suffix):
    a = write(tmp_path, "a.urdf")
    own = tmp_path / f"own.{suffix}"
    feasid.write(load_robot(a, floating=True), own)
    for found in (compare(a, own), compare(own, a)):
        assert found.equivalent
        floats = suffix in ("xml", "usda")  # these files say it
        assert ("(floating, as the other)" in "".join(found.names)) == floats
        assert ("floating_base" in found.torques) == floats


def test_frames_off_their_axes_are_no_difference(tmp_path):
    text = PENDULUM_MJCF.replace('axis="0 1 0"', 'axis="0 1 0" pos="0.3 0 0.2"')
    a, b = write(tmp_path, "a.xml", text=text), tmp_path / "b.urdf"
    feasid.write(load_robot(a), b)
    assert compare(a, b).equivalent
    feasid.write(load_robot(a.read_text().replace("0.3 0 0.2", "0.3 0 0.21")), b, overwrite=True)
    assert "apart" in compare(a, b).kinematics[0]


@pytest.mark.parametrize("suffix", ["sdf", "usda"])
def test_of_several_models_those_asked_for_are_compared(tmp_path, capsys, suffix):
    a, one = write(tmp_path, "p.urdf", text=PENDULUM_URDF), tmp_path / f"one.{suffix}"
    feasid.write(load_robot(a), one)
    start, end = ("<model", "</model>") if suffix == "sdf" else ("def Xform", "\n}\n")
    text = one.read_text()
    first = text[text.index(start) : text.rindex(end) + len(end)]
    heavy = first.replace('"p"', '"q"').replace("</p/", "</q/").replace("2.0</mass>", "3.0</mass>")
    both = write(tmp_path, f"both.{suffix}", text=text.replace(
        first, first + heavy.replace("mass = 2", "mass = 3")))  # fmt: skip
    assert main(["compare", str(a), str(both)]) == 2
    assert "--model" in capsys.readouterr().err
    assert main(["compare", str(a), str(both), "--model", "p"]) == 0
    assert main(["compare", str(a), str(both), "--model", "q"]) == 1
    assert main(["compare", str(both), str(both), "--model", "p", "--model", "q"]) == 1
    assert compare(both, both, model=("q", "q")).equivalent


@pytest.mark.parametrize("text", [FULL_ARM, FULL_ARM.replace("1.25", "1.33333333333")])
@pytest.mark.parametrize("factor", [1.0, 1.0001])
def test_a_file_of_32_bits_equals_its_own_robot_and_no_other(tmp_path, text, factor):
    a, b = write(tmp_path, "a.urdf", text=text), tmp_path / "b.usda"
    robot = load_robot(a)
    feasid.write(robot.with_values(robot.values * factor), b)
    for found in (compare(a, b), compare(b, a)):
        assert found.equivalent == (factor == 1.0)
        assert found.kinematics == ()
    assert main(["compare", str(a), str(b)]) == int(factor != 1.0)


def test_a_heavier_link_shows_in_its_base_parameters_and_torques(tmp_path, capsys):
    a = write(tmp_path, "a.urdf")
    b = write(tmp_path, "b.urdf", ('<mass value="0.3"/>', '<mass value="0.33"/>'))
    found = compare(a, b)
    assert not found.equivalent
    robots = load_robot(a), load_robot(b)
    base = base_parameters(robots[0])
    values = [base.values(r.values) for r in robots]
    np.testing.assert_allclose([r.a for r in found.rows], values[0])
    np.testing.assert_allclose([r.b for r in found.rows], values[1])
    assert {r.expression for r in found.different} == {
        e for e, x, y in zip(base.expressions, *values, strict=True) if abs(x - y) > 1e-9
    }
    assert found.torques["slide"] > 0.01
    assert main(["compare", str(a), str(b)]) == 1
    out = capsys.readouterr().out
    assert "different:" in out
    assert "rod.m" in out
    assert main(["compare", "--tolerance", "0.5", str(a), str(b)]) == 0


def test_differing_kinematics_name_the_joint(tmp_path, capsys):
    a = write(tmp_path, "a.urdf")
    b = write(tmp_path, "b.urdf", ('xyz="0 0 0.1" rpy', 'xyz="0 0 0.12" rpy'))
    assert main(["compare", str(a), str(b)]) == 1
    out = capsys.readouterr().out
    assert "joint 'shoulder' is placed 0.02 m apart" in out
    assert "TORQUES DIFFER BY" in out
    c = write(tmp_path, "c.urdf", ('axis xyz="0 0 1"', 'axis xyz="0 1 0"'))
    assert compare(a, c).kinematics == ("joint 'slide' has another axis",)
    d = write(tmp_path, "d.urdf", ('rpy="0 0 1.5707963267948966"', 'rpy="0 0 1.6"'))
    assert "turned by 0.0292 rad" in compare(a, d).kinematics[0]
    e = write(tmp_path, "e.urdf", ('type="prismatic"', 'type="fixed"'))
    assert "joint 'slide' is missing in the second model" in compare(a, e).kinematics
    for found in (compare(a, e), compare(e, a), compare(a, c)):
        assert not found.equivalent
        assert found.rows == ()
    assert compare(a, e).torques == {}
    assert set(compare(a, c).torques) == {"shoulder", "slide", "wheel_joint"}
    f = write(tmp_path, "f.urdf", ('parent link="rod"', 'parent link="upper"'))
    assert compare(a, f).kinematics == (
        "joint 'wheel_joint' hangs on joint 'slide' against joint 'shoulder'",
    )


def test_order_and_names_of_links_do_not_matter(tmp_path):
    """The same tree with joints listed in another order and links renamed."""
    a = write(tmp_path, "a.urdf")
    text = FULL_ARM.replace('link="rod"', 'link="stick"').replace(
        'link name="rod"', 'link name="stick"'
    )
    start, end = text.index('<joint name="slide"'), text.index('<link name="stick"')
    text = text[:start] + text[end:].replace("</robot>", text[start:end] + "</robot>")
    b = write(tmp_path, "b.urdf", text=text)
    assert compare(a, b).equivalent


PENDULUM_URDF = (MODELS / "pendulum.urdf").read_text(encoding="utf-8")
PENDULUM_MJCF = (MODELS / "pendulum.xml").read_text(encoding="utf-8")


def test_urdf_and_mjcf_of_one_robot_are_equivalent(tmp_path, capsys):
    a = write(tmp_path, "p.urdf", text=PENDULUM_URDF)
    b = write(tmp_path, "p.xml", text=PENDULUM_MJCF)
    assert main(["compare", "--all", str(a), str(b)]) == 0
    assert "a.Lyy" in capsys.readouterr().out


def test_json(tmp_path, capsys):
    a = write(tmp_path, "a.urdf")
    b = write(tmp_path, "b.urdf", ('<mass value="0.3"/>', '<mass value="0.33"/>'))
    assert main(["compare", "--json", str(a), str(b)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["equivalent"] is False
    assert found["base_parameters"][0].keys() == {"expression", "a", "b", "relative"}


MIMIC = ('<parent link="rod"/>', '<parent link="rod"/><mimic joint="slide"/>')


def test_joints_that_mimic_move_along(tmp_path):
    """Mass moved between a joint and its follower is not seen; another multiplier is."""
    a, b = write(tmp_path, "a.urdf", MIMIC), tmp_path / "b.urdf"
    robot = load_robot(a)
    base = base_parameters(robot)
    step = base.nullspace @ np.random.default_rng(4).normal(size=base.nullspace.shape[1])
    feasid.write(robot.with_values(robot.values + 1e-5 * step / np.abs(step).max()), b)
    assert compare(a, b).equivalent
    twice = (MIMIC[0], MIMIC[1].replace('joint="slide"', 'joint="slide" multiplier="2"'))
    found = compare(a, write(tmp_path, "twice.urdf", twice))
    assert found.kinematics == ("joint 'wheel_joint' follows other joints differently",)
    assert not found.equivalent


@pytest.mark.slow
def test_closed_loops_are_compared():
    robot = load_robot(FIVE_BAR)
    heavier = robot.with_values(robot.values * 1.1)
    assert compare_robots(robot, heavier).torques["m1"] == pytest.approx(0.1, rel=1e-6)
    moved = load_robot(FIVE_BAR.replace('anchor="0.14 0.2 0"', 'anchor="0.15 0.2 0"'))
    assert compare_robots(robot, moved).kinematics == ("the closed loops differ",)


def test_other_gravity_is_another_model(tmp_path):
    robot = load_robot(write(tmp_path, "a.urdf"))
    found = compare_robots(robot, robot.with_gravity((0, 0, -1.62)))
    assert not found.equivalent
    assert "gravity" in found.kinematics[0]
    assert compare_robots(robot, replace(robot, name="other")).equivalent


@pytest.mark.parametrize("tolerance", [0.0, -1.0, float("nan"), 2.0])
def test_tolerances_are_checked(tmp_path, tolerance):
    robot = load_robot(write(tmp_path, "a.urdf"))
    with pytest.raises(InputError, match="between 0 and 1"):
        compare_robots(robot, robot, tolerance)


TERMS = '<joint name="j" axis="0 1 0" armature="0.1" damping="0.2" frictionloss="0.3"/>'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (' armature="0.1" damping="0.2" frictionloss="0.3"', ""),
        ('mass="2"', 'mass="2.001"'),
        ('armature="0.1"', 'armature="0.1001"'),
        ('damping="0.2"', 'damping="0.2001"'),
        ('damping="0.2"', ""),
        ('frictionloss="0.3"', 'frictionloss="0.3001"'),
        ('axis="0 1 0"', 'axis="0 1 0" stiffness="1"'),
        ("<worldbody>", '<option gravity="0 0 -9.8"/><worldbody>'),
    ],
)
def test_models_that_differ_in_one_thing_are_told_apart(tmp_path, capsys, old, new):
    text = PENDULUM_MJCF.replace('<joint name="j" axis="0 1 0"/>', TERMS)
    a = write(tmp_path, "a.xml", text=text)
    b = write(tmp_path, "b.xml", (old, new), text=text)
    assert main(["compare", str(a), str(a)]) == 0
    assert main(["compare", str(a), str(b)]) == 1
    assert main(["compare", str(b), str(a)]) == 1
    assert "different" in capsys.readouterr().out


def test_joint_terms_of_two_formats_are_equal(tmp_path):
    dynamics = '<axis xyz="0 1 0"/><dynamics damping="0.2" friction="0.3"/>'
    a = write(tmp_path, "p.urdf", ('<axis xyz="0 1 0"/>', dynamics), text=PENDULUM_URDF)
    text = PENDULUM_MJCF.replace('<joint name="j"', TERMS[: TERMS.index(" axis")])
    terms = ('name="j"', 'name="j" damping="0.2" frictionloss="0.3"')
    b = write(tmp_path, "p.xml", terms, text=text)
    assert compare(a, b).equivalent


def test_a_load_model_that_either_has_is_taken_for_both(tmp_path):
    """Friction that grows with the load needs one; of two that differ each keeps its own."""
    robot = load_robot(write(tmp_path, "a.urdf"))
    load = np.array([b.inertial for b in robot.bodies])
    terms = robot.with_joint_terms(("load",))
    values = np.where(np.isfinite(terms.values), terms.values, 0.1)
    plain = terms.with_values(values)
    loaded, heavier = (replace(plain, load_model=k * load) for k in (1.0, 2.0))
    idle = plain.with_values(np.where([s == "fl" for _, s in plain.parameter_names], 0.0, values))
    bare = replace(robot, drives=())
    for one, other, same in ((bare, plain, False), (bare, idle, True)):
        assert compare_robots(one, other).equivalent == same
        assert compare_robots(other, one).equivalent == same
    for one, other in ((loaded, plain), (plain, loaded), (loaded, loaded)):
        found = compare_robots(one, other)
        assert found.equivalent
        assert max(found.torques.values()) < 1e-9
    found = compare_robots(loaded, heavier)
    ours, theirs = (
        feasid.inverse_dynamics(r, *np.random.default_rng(0).normal(size=(3, 9, robot.dof)))
        for r in (loaded, heavier)
    )
    assert np.abs(ours - theirs).max() > 0.01
    assert max(found.torques.values()) > 1e-3
