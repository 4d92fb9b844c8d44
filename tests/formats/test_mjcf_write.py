"""A robot from MJCF is written back into its own text, and MuJoCo reads the same values."""

import numpy as np
import pytest
from mjcf_files import FULL, JOINTS, TREE, model, wheel_models, write
from written import changed_lines, own_text, random_parameters, with_random_inertia

import feasid
from feasid import load_robot
from feasid.core.errors import DescriptionError, FeasidError, InputError, OutputError
from feasid.robot.formats.rewrite import relative_difference
from feasid.robot.formats.terms import EFFECTS

mujoco = pytest.importorskip("mujoco")
pytestmark = pytest.mark.usefixtures("elsewhere")

RTOL_WRITTEN = 1e-9  #: What the writer promises, relative to the body's mass and size.


@pytest.mark.parametrize("path", wheel_models(), ids=lambda p: p.stem)
@pytest.mark.filterwarnings("ignore")
def test_models_in_wheels_go_round(path, tmp_path):
    try:
        robot = load_robot(path, ignore=EFFECTS)
    except FeasidError as error:
        if "no moving joint" not in str(error) and "MuJoCo's compiler" not in str(error):
            raise
        return
    text = path.read_text()
    if "settotalmass" not in text:
        assert own_text(robot) == path.read_bytes()
    text = text.replace('inertiafromgeom="true"', "").replace('settotalmass="14"', "")
    new = with_random_inertia(load_robot(write(tmp_path, text), ignore=EFFECTS))
    compiled = mujoco.MjModel.from_xml_string(own_text(new).decode())
    back = load_robot(compiled, ignore=EFFECTS)
    for ours, theirs in zip(new.bodies, back.bodies, strict=True):
        if ours.inertial.any():
            assert relative_difference(theirs.inertial, ours.inertial) < RTOL_WRITTEN


@pytest.mark.parametrize("inertial", [f"<inertial {FULL}/>", "<geom size='0.1'/>", ""])
@pytest.mark.parametrize("joint", JOINTS)
def test_every_form_is_replaced_by_the_new_inertia(tmp_path, inertial, joint):
    text = model(inertial, joint=joint).replace("><", ">\n  <")
    robot = with_random_inertia(load_robot(write(tmp_path, text)))
    feasid.write(robot, tmp_path / "out.xml")
    new = (tmp_path / "out.xml").read_bytes()
    assert all("<inertial" in line for line in changed_lines(text.encode(), new))
    found = load_robot(mujoco.MjModel.from_xml_string(new.decode())).bodies[-1].inertial
    assert relative_difference(found, robot.bodies[-1].inertial) < RTOL_WRITTEN


def test_a_tree_with_welded_bodies(tmp_path):
    robot = load_robot(write(tmp_path, TREE))
    assert own_text(robot) == TREE.encode()
    small = robot.with_values(1e-3 * with_random_inertia(robot).values)
    for new in (with_random_inertia(robot, 3), small):
        compiled = load_robot(mujoco.MjModel.from_xml_string(own_text(new).decode()))
        for ours, theirs in zip(new.bodies, compiled.bodies, strict=True):
            assert relative_difference(theirs.inertial, ours.inertial) < RTOL_WRITTEN


def test_joint_terms_are_written(tmp_path):
    path = write(tmp_path, model(f"<inertial {FULL}/>", joint='<joint name="j" damping="9"/>'))
    robot = load_robot(path).with_joint_terms(drive_inertia=True)
    values = robot.values.copy()
    values[10:] = [0.5, 0.25, 0.125, 3.0]  # Ia fv fc fo
    robot = robot.with_values(values)
    assert own_text(load_robot(path)) == path.read_bytes()
    compiled = mujoco.MjModel.from_xml_string(own_text(robot).decode())
    found = compiled.dof_armature[0], float(np.ravel(compiled.dof_damping)[0])
    assert found == (0.5, 0.25)
    assert compiled.dof_frictionloss[0] == 0.125


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (model("<geom size='1'/>", '<compiler inertiafromgeom="true"/>'), "inertiafromgeom"),
        (model("<geom size='1'/>", '<compiler settotalmass="1"/>'), "settotalmass"),
        (model(f"<frame><inertial {FULL}/></frame>"), "stands in a <frame>"),
        (model('<include file="part.xml"/>'), "included file"),
    ],
)
def test_what_cannot_be_written_is_said(tmp_path, text, words):
    write(tmp_path, f"<mujocoinclude><inertial {FULL}/></mujocoinclude>", "part.xml")
    robot = with_random_inertia(load_robot(write(tmp_path, text)))
    with pytest.raises(InputError, match=words):
        feasid.write(robot, tmp_path / "out.xml")
    assert not (tmp_path / "out.xml").exists()


def test_impossible_parameters_and_existing_files_are_refused(tmp_path):
    path = write(tmp_path, model(f"<inertial {FULL}/>"))
    robot = load_robot(path)
    with pytest.raises(InputError, match="'b' is infeasible"):
        own_text(robot.with_values(-robot.values))
    with pytest.raises(OutputError, match="overwrite"):
        feasid.write(robot, path)


def test_bodies_between_joints_have_no_place(tmp_path):
    joint = '<joint name="x" type="slide"/><joint name="y"/>'
    robot = load_robot(write(tmp_path, model(f"<inertial {FULL}/>", joint=joint)))
    with pytest.raises(DescriptionError, match="'b/x' is massless"):
        robot.with_values(random_parameters(np.random.default_rng(0), 2).ravel())
