"""MJCF is read as MuJoCo compiles it, or refused with a message that names the place."""

import re
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mjcf_files import FULL, JOINTS, TREE, model, wheel_models, write

from feasid import load_robot
from feasid.applications.inspection.file_check import check_file
from feasid.applications.inspection.file_correction import correct_file
from feasid.cli import main
from feasid.core.errors import (
    DescriptionError,
    FeasidError,
    InputError,
    LimitError,
    MissingExtraError,
    SecurityError,
)
from feasid.robot.formats.terms import EFFECTS
from feasid.robot.formats.xml import ReadLimits

mujoco = pytest.importorskip("mujoco")
pytestmark = pytest.mark.usefixtures("elsewhere")

RTOL_COMPILER = 1e-12  #: Both sides only turn, shift and add in double precision.


def same_as_compiled(path, ignore=()):
    """Bodies, joints, poses and parameters of our reader against MuJoCo's compiler."""
    ours = load_robot(path, ignore=ignore)
    theirs = load_robot(mujoco.MjModel.from_xml_path(str(path)), ignore=ignore)
    assert [b.name for b in ours.bodies] == [b.name for b in theirs.bodies]
    np.testing.assert_array_equal(ours.gravity, theirs.gravity)
    for a, b in zip(ours.bodies, theirs.bodies, strict=True):
        assert (a.parent, a.dof) == (b.parent, b.dof)
        np.testing.assert_allclose(a.rotation, b.rotation, atol=RTOL_COMPILER)
        np.testing.assert_allclose(a.position, b.position, atol=RTOL_COMPILER)
        np.testing.assert_allclose(a.motion, b.motion, atol=RTOL_COMPILER)
        mine = np.zeros(10) if a.inertial is None else a.inertial
        other = np.zeros(10) if b.inertial is None else b.inertial
        scale = max(float(np.abs(other).max()), 1e-9)
        np.testing.assert_allclose(mine, other, rtol=0, atol=RTOL_COMPILER * scale)
    return ours


DIAGONAL = 'pos="0.01 -0.02 0.3" mass="1.5" diaginertia="0.011 0.012 0.013"'


@pytest.mark.parametrize("inertial", [
    DIAGONAL, FULL, DIAGONAL + ' quat="1 2 -3 0.5"', DIAGONAL + ' euler="10 20 -30"',
    DIAGONAL + ' euler="90 0 180"', DIAGONAL + ' axisangle="1 2 3 40"',
    DIAGONAL + ' xyaxes="1 1 0 0 1 1"', DIAGONAL + ' zaxis="1 -2 0.3"',
    DIAGONAL + ' zaxis="0 0 -1"',
])  # fmt: skip
@pytest.mark.parametrize("before", [
    "", '<compiler angle="radian"/>', '<compiler eulerseq="ZYX"/>',
    '<compiler angle="radian" eulerseq="zxz"/>', '<compiler inertiafromgeom="true"/>',
    '<compiler settotalmass="7"/><option gravity="0 1 -2"/>',
])  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_every_inertial_form_and_compiler_setting(tmp_path, inertial, before):
    geom = '<geom type="box" size="0.1 0.2 0.3" euler="20 30 40"/>'
    same_as_compiled(write(tmp_path, model(f"<inertial {inertial}/>{geom}", before)))


GEOMS = [
    '<geom size="0.2"/>',
    '<geom type="box" size="0.1 0.2 0.3" pos="1 2 3" euler="10 20 30"/>',
    '<geom type="capsule" size="0.1 0.3" quat="1 1 0 0.2"/>',
    '<geom type="cylinder" size="0.1 0.3" density="7000" zaxis="1 1 1"/>',
    '<geom type="ellipsoid" size="0.1 0.2 0.3" mass="2.5"/>',
    '<geom type="capsule" size="0.05" fromto="0 0 0 0.3 -0.2 0.5"/>',
    '<geom type="cylinder" size="0.05" fromto="0.1 0 0 0.1 0 -0.5"/>',
    '<geom type="box" size="0.05" fromto="0 0 0 0 0 0.5"/>',
    '<geom type="box" size="0.1 0.1 0.1"/><geom size="0.2" pos="0 0 1"/><geom size="1" mass="0"/>',
    '<geom size="0.1" group="1"/><geom size="0.3" group="7"/>',
    '<geom type="cylinder" size="0.1" fromto="0 0 0.2 0 0 -0.5" group="1"/>',
    '<geom type="box" size="0.1" fromto="0.1 0.2 0.2 0.5 0.5 -0.5" group="1"/>',
    '<geom type="box" size="0.1 0.2 0.3" euler="20 30 40" density="300" group="2"/>',
    '<geom type="ellipsoid" size="0.1 0.2 0.3" euler="20 30 40" group="2"/>',
    '<geom type="box" size="0.1 0.2 0.3" mass="3" density="0" group="1"/>',
    '<geom size="0.3" group="1"/><geom size="0.2" density="0"/><geom size="0.2" group="3"/>',
]
GROUPS = '<compiler inertiagrouprange="1 2"/>'


@pytest.mark.parametrize("geoms", GEOMS)
@pytest.mark.parametrize("before", ["", '<default><geom density="300"/></default>', GROUPS])
def test_inertia_from_primitive_geoms(tmp_path, geoms, before):
    """Of geoms that weigh nothing, too, and of groups that do not count."""
    if before == GROUPS and "group" not in geoms:
        geoms += '<geom size="1" group="2"/>'
    same_as_compiled(write(tmp_path, model(geoms, before)))


@pytest.mark.parametrize("joint", JOINTS)
def test_joints(tmp_path, joint):
    child = f'<body name="c" pos="0 0 1" euler="0 45 0"><joint/><inertial {FULL}/></body>'
    robot = same_as_compiled(write(tmp_path, model(f"<inertial {FULL}/>{child}", joint=joint)))
    if "range" in joint:
        np.testing.assert_allclose(robot.bodies[0].limits.upper, np.deg2rad(30))


def test_defaults_frames_and_welded_bodies(tmp_path):
    robot = same_as_compiled(write(tmp_path, TREE))
    assert [b.name for b in robot.bodies] == ["a", "c", "d", "body6", "second"]
    assert [m.name for m in robot.bodies[0].members] == ["a", "welded"]
    assert [m.name for m in robot.fixed] == ["fixed"]


def test_a_compiled_model_is_taken_as_it_is():
    robot = load_robot(mujoco.MjModel.from_xml_string(TREE), lock={"a": 0.1})
    assert [b.name for b in robot.bodies] == ["c", "d", "body6", "second"]
    assert robot.source.format == "mujoco"
    assert load_robot(TREE).joints[0] == "a"
    assert load_robot(TREE, use_mujoco=True).joints[0] == "a"
    with pytest.raises(SecurityError, match="cannot include"):
        load_robot(model('<include file="x.xml"/>'))


@pytest.mark.parametrize("path", wheel_models(), ids=lambda p: p.stem)
@pytest.mark.filterwarnings("ignore")
def test_models_in_wheels(path):
    try:
        same_as_compiled(path, ignore=EFFECTS)
    except (MissingExtraError, InputError) as error:
        if "MuJoCo's compiler" not in str(error) and "no moving joint" not in str(error):
            raise
    assert check_file(path).status == "feasible"


# -- what only the compiler knows -----------------------------------------------------------------

CUBE = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def test_meshes_are_left_to_the_compiler(tmp_path):
    (tmp_path / "cube.obj").write_text(CUBE)
    asset = '<asset><mesh name="cube" file="cube.obj"/></asset>'
    path = write(tmp_path, model('<geom type="mesh" mesh="cube"/>', asset))
    with pytest.raises(MissingExtraError, match=r"feasid\[mujoco\]") as caught:
        load_robot(path)
    assert "use_mujoco=True" in str(caught.value)
    assert f"{path}:1" in str(caught.value)
    assert load_robot(path, use_mujoco=True).bodies[0].inertial[9] == pytest.approx(1000 / 6)
    assert check_file(path).status == "feasible"


@pytest.mark.parametrize(
    ("text", "exit_status"),
    [
        (model(f'<inertial {FULL}/><replicate count="2"><site/></replicate>'), 0),
        (model(f'<inertial {FULL}/><composite type="cable" count="3 1 1"/>'), 3),
        (model(f"<inertial {FULL}/>", '<compiler boundmass="0.1"/>'), 0),
    ],
)
def test_what_is_not_expanded_is_said(tmp_path, capsys, text, exit_status):
    path = write(tmp_path, text)
    with pytest.raises(MissingExtraError):
        load_robot(path)
    assert main(["check", str(path)]) == exit_status
    assert ("undecided" in capsys.readouterr().out) == (exit_status == 3)


def test_floating_is_said_in_the_file(tmp_path):
    with pytest.raises(InputError, match="itself defines what floats"):
        load_robot(write(tmp_path, model(f"<inertial {FULL}/>")), floating=True)


def test_a_refusal_of_the_compiler_is_a_description_error(tmp_path):
    path = write(tmp_path, model('<inertial pos="0 0 0" mass="1" diaginertia="1 1 5"/>'))
    with pytest.raises(DescriptionError, match="A \\+ B >= C"):
        load_robot(path, use_mujoco=True)


# -- includes -------------------------------------------------------------------------------------


def test_includes_are_read_from_below_the_main_file(tmp_path):
    (tmp_path / "sub").mkdir()
    write(tmp_path, f"<mujocoinclude><inertial {FULL}/></mujocoinclude>", "sub/part.xml")
    write(tmp_path, '<mujocoinclude><compiler angle="radian"/></mujocoinclude>', "sub/c.xml")
    path = write(tmp_path, model('<include file="sub/part.xml"/>', '<include file="sub/c.xml"/>'))
    same_as_compiled(path)
    assert check_file(path).links[0].link.path == str(tmp_path / "sub" / "part.xml")


@pytest.mark.parametrize(
    "name", ["../secret.xml", "/etc/passwd", "sub/../../secret.xml", "link.xml"]
)
def test_includes_from_elsewhere_are_refused(tmp_path, name):
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    write(tmp_path, "<mujocoinclude/>", "secret.xml")
    (folder / "link.xml").symlink_to(tmp_path / "secret.xml")
    path = write(folder, model(f'<include file="{name}"/>'))
    opened, watched = [], [True]

    def hook(event, arguments):
        if event == "open" and watched[0]:
            opened.append(str(arguments[0]))

    sys.addaudithook(hook)
    try:
        with pytest.raises(SecurityError, match="outside") as caught:
            load_robot(path)
    finally:
        watched[0] = False
    assert caught.value.line == 1
    assert not [p for p in opened if "secret" in p or "passwd" in p or "link.xml" in p]


def test_include_cycles_copies_and_gaps_are_refused(tmp_path):
    write(tmp_path, '<mujocoinclude><include file="b.xml"/></mujocoinclude>', "a.xml")
    write(tmp_path, '<mujocoinclude><include file="a.xml"/></mujocoinclude>', "b.xml")
    for name, error, words in (
        ("a.xml", SecurityError, r"a second time \(first by .*model.xml:1\)"),
        ("model.xml", SecurityError, "second time"),
        ("none.xml", InputError, r"'none\.xml' does not exist"),
        ("", DescriptionError, "needs a file"),
    ):
        path = write(tmp_path, model(f'<include file="{name}"/>'))
        with pytest.raises(error, match=words):
            load_robot(path)


def test_the_size_limit_holds_for_all_includes_together(tmp_path):
    for k in range(4):
        write(tmp_path, f"<mujocoinclude><!-- {'x' * 400} --></mujocoinclude>", f"p{k}.xml")
    path = write(tmp_path, model("".join(f'<include file="p{k}.xml"/>' for k in range(4))))
    with pytest.raises(LimitError):
        load_robot(path, limits=ReadLimits(size=1200))


# -- broken files ---------------------------------------------------------------------------------


CLASS = '<default><default class="nx"/></default>'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (model('<inertial pos="0 0 0" mass="nan"/>'), "'nan' is not a finite number"),
        (model('<inertial pos="0 0 0" mass="1,5"/>'), "decimals with a point"),
        (model('<inertial pos="0 0 0" mass="1e999"/>'), "exponent"),
        (model('<inertial pos="0 0 0" mass=""/>'), "has 0 numbers, expected 1"),
        (model('<inertial pos="0 0" mass="1"/>'), "pos='0 0' has 2 numbers, expected 3"),
        (model('<inertial mass="1"/>'), "lacks 'pos'"),
        (model('<inertial pos="0 0 0"/>'), "lacks 'mass'"),
        (model(f'<inertial {FULL} diaginertia="1 1 1"/>'), "one of diaginertia and fullinertia"),
        (model(f'<inertial {FULL} quat="1 0 0 0"/>'), "no orientation"),
        (model(f"<inertial {FULL}/><inertial {FULL}/>"), "a second <inertial>"),
        (model(f'<inertial {DIAGONAL} quat="0 0 0 0"/>'), "quaternion is zero"),
        (model(f'<inertial {DIAGONAL} quat="1 0 0 0" euler="0 0 0"/>'), "orientation"),
        (model(joint='<joint axis="0 0 0"/>'), "the axis is zero"),
        (model(joint='<joint type="hing"/>'), "did you mean 'hinge'"),
        (model('<geom type="capsule" size="0.1"/>'), "needs 2 positive numbers"),
        (model('<geom size="-1"/>'), "needs 1 positive"),
        (model('<geom class="nix"/>', CLASS), "did you mean 'nx'"),
        (model(rest='<body name="b"/>'), "body 'b' is defined twice"),
        (model(before='<compiler angle="degrees"/>'), "did you mean 'degree'"),
        (model(before='<compiler eulerseq="xy"/>'), "not three of xyzXYZ"),
        ("<!DOCTYPE mujoco [<!ENTITY a 'b'>]><mujoco>&a;</mujoco>", "document type"),
        ("<mujoco>" + "<a>" * 300, "nested deeper"),
    ],
)  # fmt: skip
def test_broken_files_name_the_place(tmp_path, text, words):
    path = write(tmp_path, text)
    with pytest.raises(FeasidError) as caught:
        load_robot(path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{path}:1:")


# -- checking and correcting ----------------------------------------------------------------------


@pytest.mark.parametrize(("inertial", "status", "code"), [
    ('diaginertia="1 1 1.9999999999999999999"', "feasible", ""),
    ('diaginertia="1 1 2"', "boundary", "flat"),
    ('diaginertia="1 1 2.0000000000000000001" euler="1 2 3"', "infeasible", "triangle"),
    ('fullinertia="1 1 -1 0 0 0"', "infeasible", "inertia-negative"), ("", "boundary", "point"),
])  # fmt: skip
def test_verdicts_are_exact(tmp_path, inertial, status, code):
    report = check_file(write(tmp_path, model(f'<inertial pos="0 0 0" mass="1" {inertial}/>')))
    verdict = report.links[0].verdict
    assert (verdict.status, verdict.code) == (status, code)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=6, max_size=6))
def test_verdicts_agree_with_mujocos_refusal(tmp_path_factory, six):
    text = model(f'<inertial pos="0 0 0" mass="1" fullinertia="{" ".join(map(str, six))}"/>')
    path = write(tmp_path_factory.mktemp("m"), text)
    status = check_file(path).status
    try:
        mujoco.MjModel.from_xml_string(text)
        loads = True
    except ValueError:
        loads = False
    if check_file(path).links[0].verdict.status != "boundary":
        assert loads == (status == "feasible")


def test_welded_bodies_are_judged_with_their_carrier(tmp_path):
    bad = '<inertial pos="0.1 0 0" mass="0.1" diaginertia="0.001 0.001 0.005"/>'
    weld = f'<body name="w" pos="0.2 0 0" euler="10 20 30">{bad}</body>'
    good = '<inertial pos="0 0 0" mass="1" diaginertia="0.1 0.1 0.1"/>'
    report = check_file(write(tmp_path, model(good + weld)))
    assert report.status == "infeasible"
    assert [b.verdict.status for b in report.bodies] == ["feasible"]


@pytest.mark.parametrize("inertial", [
    'diaginertia="1 1 5" euler="10 20 30"', "fullinertia='1 2 1 3 0 0'",
    'fullinertia="1 1 -1 0 0.5 0"',
])  # fmt: skip
def test_corrections_change_these_numbers_only(tmp_path, inertial):
    text = model(f'<!-- keep --><inertial pos="0 0 0" mass="1" {inertial}/>')
    repair = correct_file(write(tmp_path, text))
    new = repair.data.decode()
    numbers = re.compile(r"(diaginertia|fullinertia)=(['\"])[^'\"]*['\"]")
    assert new != text
    assert numbers.sub("", new) == numbers.sub("", text)
    compiled = mujoco.MjModel.from_xml_string(new)
    change = repair.changes[0].new
    tensor = np.zeros((3, 3))
    tensor[np.triu_indices(3)] = change.moments
    np.testing.assert_allclose(
        np.sort(compiled.body_inertia[1]), np.linalg.eigvalsh(tensor, UPLO="U"), rtol=1e-6
    )


def test_an_included_file_is_corrected_by_itself(tmp_path):
    bad = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 5"/>'
    part = write(tmp_path, f'<mujocoinclude><body name="p">{bad}</body></mujocoinclude>', "p.xml")
    path = write(tmp_path, model('<include file="p.xml"/>'))
    with pytest.raises(InputError, match=r"included file .*p\.xml:1"):
        correct_file(path)
    assert b'diaginertia="2' in correct_file(part).data
