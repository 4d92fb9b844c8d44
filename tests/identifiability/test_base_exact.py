"""Exact certification, rounded description files, tables and explanations."""

import sys
from dataclasses import replace
from fractions import Fraction

import identifiability_tables as example
import numpy as np
import pytest
from robots import wam, yoshida

import feasid
from benchmarks.mechanisms import HARD, mechanism_of, random_mechanism
from feasid.cli import main
from feasid.core.errors import InputError
from feasid.parameters.identifiability import exact
from feasid.parameters.identifiability.base import base_parameters
from feasid.parameters.identifiability.exact import Subspace, certify, exact_blocks
from feasid.parameters.identifiability.rounding import choose_rounding

# -- exact certification ---------------------------------------------------------------------


@pytest.mark.parametrize("order", ["left", "paper"])
@pytest.mark.parametrize("robot", [wam(drive_inertia=True), yoshida()])
def test_right_angled_robots_are_certified(robot, order):
    certified = base_parameters(robot, order=order).rank_check
    assert certified, certified.reason


@pytest.mark.parametrize("seed", range(30))
def test_rational_mechanisms_are_certified(seed):
    rng = np.random.default_rng([4, seed])
    mechanism = random_mechanism(rng, kinds="RRRRPPPHSCLF", terms=False)
    certified = base_parameters(mechanism.robot()).rank_check
    assert certified, certified.reason


def test_static_models_are_certified():
    assert base_parameters(wam(), static=True).rank_check


def test_exact_arithmetic_takes_over_where_floating_point_is_in_doubt():
    case = next(c for c in HARD if c["name"] == "SCARA g tilt 1e-12")
    base = base_parameters(mechanism_of(case).robot())
    floating = sum(b.independent.size for b in base.coefficients.echelon.joint_nullspaces)
    assert (floating, base.size) == (8, 10)
    assert base.rank_check
    wrong = certify(base.coefficients.echelon, base.coefficients.echelon.joint_nullspaces)
    assert wrong.reason.startswith("joint '1': 3 base parameters in exact arithmetic, 1 in")


def blocks_of(robot):
    """Nullspaces of its joints in floating point and in exact arithmetic, in pairs."""
    found = base_parameters(robot).coefficients
    return zip(found.joint_nullspaces, exact_blocks(found.echelon), strict=True)


def test_exact_coefficients_equal_those_of_floating_point():
    rng = np.random.default_rng(12)
    checked = 0
    for _ in range(20):
        robot = random_mechanism(rng, kinds="RRRRPPPHSCLF", terms=False).robot()
        for ours, rational in blocks_of(robot):
            np.testing.assert_array_equal(ours.dependent, rational.dependent)
            scale = 1 + np.abs(rational.vectors).max(initial=0.0)
            np.testing.assert_allclose(ours.vectors, rational.vectors, atol=1e-12 * scale)
            checked += rational.vectors.size
    assert checked > 1000


def test_exact_drive_terms_equal_those_of_floating_point():
    for ours, rational in blocks_of(wam(drive_inertia=True)):
        np.testing.assert_allclose(ours.vectors, rational.vectors, atol=1e-13)


def test_irrational_geometry_is_not_certified_and_says_why():
    robot = feasid.Robot.from_dh([(0.3, 0.2, 0, 0), (0, 0.1, 0, 0)])
    certified = base_parameters(robot).rank_check
    assert not certified
    assert (
        certified.reason == "the home rotation of joint '1' is not a rotation matrix of rationals"
    )


def test_some_measured_joints_are_not_certified():
    certified = base_parameters(yoshida(), measured=["2"]).rank_check
    assert not certified
    assert "all joints measured" in certified.reason


@pytest.mark.parametrize("name", ["fractions", "python-flint"])
def test_both_arithmetics_certify(name, monkeypatch):
    if name == "fractions":
        monkeypatch.setitem(sys.modules, "flint", None)
    else:
        pytest.importorskip("flint")
    exact.rational_type.cache_clear()
    try:
        certified = base_parameters(yoshida()).rank_check
        assert certified.arithmetic == name
        assert certified
    finally:
        exact.rational_type.cache_clear()


def test_span_counts_and_closes():
    one = Fraction(1)
    span = Subspace([[one, one, 0 * one], [2 * one, 2 * one, 0 * one]])
    assert len(span.basis) == 1
    assert not span.add([-one, -one, 0 * one])
    shift = [[0 * one, one, 0 * one], [0 * one, 0 * one, one], [0 * one] * 3]
    assert len(span.close([shift]).basis) == 2


# -- rounded files ---------------------------------------------------------------------------


def arm(angle, offset="0", tilt="0"):
    """Shoulder about z, elbow about y, wrist parallel to the elbow, written with rounding."""
    return f"""<robot name="arm"><link name="base"/><link name="a"/><link name="b"/><link name="c"/>
<joint name="shoulder" type="continuous"><parent link="base"/><child link="a"/>
<origin xyz="0 0 0.3331" rpy="0 {tilt} 0"/><axis xyz="0 0 1"/></joint>
<joint name="elbow" type="continuous"><parent link="a"/><child link="b"/>
<origin xyz="0.25 {offset} 0" rpy="{angle} 0 0"/><axis xyz="0 0 1"/></joint>
<joint name="wrist" type="continuous"><parent link="b"/><child link="c"/>
<origin xyz="0.2502 0 0" rpy="0 0 0"/><axis xyz="0 0 1"/></joint></robot>"""


def loaded(tmp_path, text):
    path = tmp_path / "arm.urdf"
    path.write_text(text)
    return feasid.load_robot(path)


@pytest.mark.parametrize("angle", ["1.57", "1.571", "1.5708", "1.570796", "1.5707", "-1.5708"])
def test_rounded_right_angles_are_taken_for_right_angles(tmp_path, angle):
    exact = base_parameters(loaded(tmp_path, arm("1.5707963267948966", tilt="0")))
    tilted = arm(angle, tilt="3.1416" if angle == "1.5708" else "0")
    base = base_parameters(loaded(tmp_path, tilted))
    assert base.size == exact.size
    assert not base.warnings
    assert base.roundings[-1].joint == "elbow"
    off = abs(abs(float(angle)) - np.pi / 2)
    assert base.roundings[-1].value == pytest.approx(off, rel=1e-3)


def test_both_counts_are_reported(tmp_path):
    """Gravity along a shoulder axis that the file tilts by the rounding of pi."""
    base = base_parameters(loaded(tmp_path, arm("1.5707963267948966", tilt="3.1416")))
    assert base.literal.size > base.size
    assert [s.joint for s in base.roundings] == ["shoulder"]
    assert base.deciding == base.roundings
    assert base.literal.roundings == ()
    assert base_parameters(base.robot, snap=None).size == base.literal.size
    assert "rounded geometry" in repr(base)


def test_a_saved_description_that_goes_in_circles_ends(tmp_path):
    """The text beside a saved robot need not be the robot's own."""
    robot = loaded(tmp_path, arm("1.57"))
    text = robot.source.text.decode()
    for before, link in (("base", "b"), ("a", "b"), ("b", "c")):
        turned = text.replace(f'<parent link="{before}"/>', f'<parent link="{link}"/>')
        circle = replace(robot, source=replace(robot.source, text=turned.encode()))
        assert len(choose_rounding(circle, "file").angles) in (0, len(robot.bodies))
        assert base_parameters(circle).size >= base_parameters(robot).size


def test_an_angle_that_is_meant_is_kept(tmp_path):
    robot = loaded(tmp_path, arm("1.5708", tilt="0.0031"))
    base = base_parameters(robot)
    assert [s.joint for s in base.roundings] == ["elbow"]
    assert base.size == base_parameters(robot, snap=None).size


@pytest.mark.parametrize("tilt", ["0", "0.001", "0.002", "0.0004", "0.01", "-0.001"])
def test_exact_files_are_left_alone_and_a_tilt_is_no_rounding_of_zero(tmp_path, tilt):
    base = base_parameters(loaded(tmp_path, arm("1.5707963267948966", tilt=tilt)))
    assert base.roundings == base.deciding == ()
    assert base.literal is base


@pytest.mark.parametrize("offset", ["0.0004", "0.001", "0.00003", "1e-4"])
def test_an_offset_is_no_rounding_of_zero(tmp_path, offset):
    base = base_parameters(loaded(tmp_path, arm("1.5707963267948966", offset=offset)))
    assert base.roundings == ()
    plain = base_parameters(loaded(tmp_path, arm("1.5707963267948966")))
    assert base.expressions != plain.expressions


VISUAL = """<link name="a"><visual><origin rpy="1.57 0 0"/><geometry><sphere radius="1"/></geometry>
</visual><!-- <origin rpy="1.57 0 0"/> --></link>"""


def test_visuals_and_comments_say_nothing_about_joints(tmp_path):
    text = arm("1.5707963267948966", tilt="0.0005").replace('<link name="a"/>', VISUAL)
    robot = loaded(tmp_path, text)
    assert choose_rounding(robot, "file").angles == ()
    assert base_parameters(robot).roundings == ()


def test_one_joints_rounding_is_not_anothers(tmp_path):
    """The elbow's 1.57 is rounded by 8e-4; the shoulder's tilt of 5e-4 is meant."""
    base = base_parameters(loaded(tmp_path, arm("1.57", tilt="0.0005")))
    assert [s.joint for s in base.roundings] == ["elbow"]


def test_fixed_joints_on_the_way_are_read(tmp_path):
    text = arm("0").replace(
        '<joint name="elbow" type="continuous"><parent link="a"/>',
        '<link name="plate"/><joint name="mount" type="fixed"><parent link="a"/>'
        '<child link="plate"/><origin xyz="0 0 0" rpy="1.5708 0 0"/></joint>'
        '<joint name="elbow" type="continuous"><parent link="plate"/>',
    )
    base = base_parameters(loaded(tmp_path, text))
    assert [s.joint for s in base.roundings] == ["elbow"]
    exact = base_parameters(loaded(tmp_path, text.replace("1.5708", "1.5707963267948966")))
    assert base.expressions == exact.expressions


MJCF = """<mujoco><compiler angle="radian"/><worldbody>
<body name="a"><joint name="turn" axis="0 0 1"/>
<body name="b" pos="0.3 0 0" euler="1.5708 0 0"><joint name="lift" axis="0 0 1"/>
<body name="c" pos="0.3 0 0" euler="0.001 0 0"><joint name="tip" axis="0 0 1"/></body></body></body>
</worldbody></mujoco>"""


def test_mjcf_angles_are_read_body_by_body(tmp_path):
    path = tmp_path / "arm.xml"
    path.write_text(MJCF)
    assert [s.joint for s in base_parameters(feasid.load_robot(path)).roundings] == ["lift"]


def test_snap_can_be_given_as_an_angle():
    robot = feasid.Robot.from_dh([(1.5708, 0.2, 0, 0), (0, 0.1, 0, 0)])
    assert base_parameters(robot).roundings == ()
    base = base_parameters(robot, snap=1e-5)
    assert len(base.roundings) == 1
    assert base.size == 8
    assert not base.warnings
    with pytest.raises(InputError, match="an angle between 0"):
        base_parameters(robot, snap=0.1)
    with pytest.raises(InputError, match="snap 'flie' is not known"):
        base_parameters(robot, snap="flie")


def test_snapped_rotation_is_a_rotation_with_exact_zeros():
    robot = feasid.Robot.from_dh([(1.5708, 0.2, 0.1, 0.3), (0, 0.1, 0, 0)])
    run = base_parameters(robot, snap=1e-5).coefficients.echelon.run
    rotation = run.robot.bodies[0].rotation
    np.testing.assert_allclose(rotation.T @ rotation, np.eye(3), atol=1e-15)
    assert np.sum(rotation == 0) == 4
    np.testing.assert_allclose(rotation, robot.bodies[0].rotation, atol=5e-6)


# -- sentences -------------------------------------------------------------------------------


def test_explanations_name_the_joint_that_hides(tmp_path):
    base = base_parameters(loaded(tmp_path, arm("1.5707963267948966")))
    assert base.explain("c.lx") == "c.lx is identifiable alone."
    lead = base.explain("b.lx")
    assert lead.startswith("b.lx shows only in combination: it leads base parameter")
    assert "0.2502 c.m" in lead
    hidden = base.explain("c.m")
    assert "joint 'wrist' hides an exchange with body 'b'" in hidden
    never = base.explain("a.m")
    assert never.startswith("a.m cannot be identified: joint 'shoulder' does not feel it")


def test_explanations_of_drive_terms_that_cannot_show():
    still = base_parameters(wam(), static=True)
    assert still.explain("fv3") == "fv3 cannot be identified: it acts only while joint '3' moves."
    some = base_parameters(wam(), measured=["1", "2"])
    assert some.explain("fo3").endswith("the torque of joint '3' is not measured.")


def test_explaining_an_unknown_parameter_names_the_closest():
    with pytest.raises(InputError, match="did you mean 'L2xx'"):
        base_parameters(yoshida()).explain("L2xxx")


def test_command_prints_table_explanation_and_rounding(tmp_path, capsys):
    path = tmp_path / "arm.urdf"
    path.write_text(arm("1.5708", tilt="3.1416"))
    assert main(["base-parameters", str(path), "--table", "--explain", "c.m"]) == 0
    out = capsys.readouterr().out
    assert "dim V" in out
    assert "joint 'wrist' hides" in out
    assert "joint 'shoulder': an axis is off by 7.3e-06 rad (decisive" in out
    assert "when taken literally" in out
    assert main(["base-parameters", str(path), "--literal"]) == 0
    assert "joint 'shoulder': nearly degenerate" in capsys.readouterr().out


# -- the published tables --------------------------------------------------------------------


def test_example_reproduces_every_cell_of_the_published_tables():
    for ours, published in example.compare():
        assert ours.counts == published.counts
        assert ours[3:] == published[3:]
        for symbol, mine, theirs in zip(example.ROWS, ours.marks, published.marks, strict=True):
            for body, (a, b) in enumerate(zip(mine, theirs, strict=True)):
                misprint = example.MISPRINTS.get((ours.title, symbol, body))
                assert a == (misprint or b), (ours.title, symbol, body)
