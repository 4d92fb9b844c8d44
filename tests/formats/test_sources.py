"""Robots from what people have: models of other programs, xacro, names of known robots."""

import sys
import types

import numpy as np
import pandas as pd
import pytest
from arms import path_of
from mjcf_files import TREE
from robots import ARM

import feasid
from feasid import inverse_dynamics, load_robot
from feasid.core.errors import (
    DescriptionError,
    InputError,
    MissingExtraError,
    UnsupportedJointError,
)

RTOL = 1e-10
"""Two recursive Newton-Euler algorithms in double precision, relative to the largest torque."""


@pytest.mark.parametrize("name", ["panda", "ur5_robot", "z1", "solo12", "kinova"])
@pytest.mark.parametrize("floating", [False, True])
def test_a_pinocchio_model_has_pinocchios_inverse_dynamics(name, floating):
    pin = pytest.importorskip("pinocchio")
    path = path_of(name)
    root = (pin.JointModelFreeFlyer(),) if floating else ()
    model = pin.buildModelFromUrdf(str(path), *root)
    model.armature = np.linspace(0.1, 0.2, model.nv) * ([0] * 6 + [1] * (model.nv - 6))
    robot = load_robot(model)
    data = model.createData()
    rng = np.random.default_rng(0)
    for _ in range(5):
        q = pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq))
        v, a = rng.normal(size=(2, model.nv))
        theirs = pin.rnea(model, data, q, v, a)
        ours_q, swap = np.zeros(robot.dof), np.arange(robot.dof)
        for body, rows in zip(robot.bodies, robot.rows, strict=True):
            joint = model.joints[model.getJointId(body.joint)]
            part = q[joint.idx_q : joint.idx_q + joint.nq]
            if body.dof == 6:
                twist = pin.log6(pin.XYZQUATToSE3(part)).vector
                ours_q[rows] = np.r_[twist[3:], twist[:3]]
                swap[rows] = [3, 4, 5, 0, 1, 2]
            else:
                ours_q[rows] = part if joint.nq == 1 else np.arctan2(part[1], part[0])
        bare = robot.without_joint_terms()
        ours = inverse_dynamics(bare, ours_q, v[swap], a[swap])[0]
        ours += np.where(np.arange(model.nv) < 6, 0, model.armature) * a if model.nv > 6 else 0
        assert np.abs(ours - theirs[swap]).max() < RTOL * np.abs(theirs).max()


@pytest.mark.parametrize("kind", ["Planar", "Spherical", "SphericalZYX", "Translation"])
def test_a_pinocchio_joint_of_several_degrees_has_pinocchios_mass_matrix(kind):
    """Where it starts, in the order in which its motion subspace has its columns."""
    pin = pytest.importorskip("pinocchio")
    joint, model = getattr(pin, f"JointModel{kind}")(), pin.Model()
    if kind == "SphericalZYX":  # its subspace depends on the angles
        model.addJoint(0, joint, pin.SE3.Identity(), "odd")
        with pytest.raises(UnsupportedJointError, match="'odd' is a JointModelSphericalZYX"):
            load_robot(model)
        return
    pin.seed(0)
    here = model.addJoint(0, joint, pin.SE3.Random(), "odd")
    model.appendBodyToJoint(here, pin.Inertia.Random(), pin.SE3.Random())
    robot, data, zero = load_robot(model), model.createData(), np.zeros(model.nv)
    here, ours = pin.neutral(model), np.zeros(robot.dof)
    theirs = [pin.rnea(model, data, here, zero, a) for a in (zero, *np.eye(model.nv))]
    found = [inverse_dynamics(robot, ours, zero, a)[0] for a in (zero, *np.eye(model.nv))]
    np.testing.assert_allclose(found, theirs, atol=RTOL * np.abs(theirs).max())


def test_a_pinocchio_models_terms_are_drives(tmp_path):
    pin = pytest.importorskip("pinocchio")
    (tmp_path / "arm.urdf").write_text(ARM)
    model = pin.buildModelFromUrdf(str(tmp_path / "arm.urdf"))
    robot, own = load_robot(model), load_robot(tmp_path / "arm.urdf")
    assert robot.joints == own.joints
    (drive,) = robot.drives
    assert dict(zip(drive.symbols, drive.values, strict=True)) == {"fv": 0.7, "fc": 0.2}
    composite = pin.JointModelComposite()
    composite.addJoint(pin.JointModelRX())
    model.addJoint(0, composite, pin.SE3.Identity(), "odd")
    with pytest.raises(UnsupportedJointError, match="'odd' is a JointModelComposite"):
        load_robot(model)


def test_an_mjspec_is_compiled_and_written_back(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    spec = mujoco.MjSpec.from_string(TREE)
    robot = load_robot(spec)
    assert robot.joints == load_robot(TREE).joints
    compiled = load_robot(mujoco.MjModel.from_xml_string(TREE))
    np.testing.assert_allclose(robot.values, compiled.values, rtol=1e-12)
    if hasattr(spec, "modelname"):
        assert robot.source.format == "mjcf"


TWO_JOINTS = """<mujoco><worldbody>
<body name="a" pos="0 0 .3"><joint name="j1" axis="0 1 0"/>
<inertial pos="0.01 -0.02 0.3" mass="1.5" diaginertia=".02 .02 .01"/>
<body name="b" pos="0 0 .5"><joint name="j2" axis="0 1 0"/>
<inertial pos="0.01 0 0.2" mass="1.0" diaginertia=".02 .02 .01"/></body></body>
</worldbody></mujoco>"""


def test_a_compiled_model_can_be_fitted_saved_and_written(tmp_path):
    """It has no text: nothing in it was rounded by a file."""
    mujoco = pytest.importorskip("mujoco")
    robot = load_robot(mujoco.MjModel.from_xml_string(TWO_JOINTS))
    t = np.arange(0, 10, 0.002)[:, None]
    w, amplitude, delay = np.array([2.0, 3.0]), np.array([1.0, 0.7]), np.array([0.0, 1.0])
    phases = w * t + delay, 2.3 * w * t - delay
    q = amplitude * sum(np.sin(p) for p in phases)
    dq = amplitude * w * (np.cos(phases[0]) + 2.3 * np.cos(phases[1]))
    ddq = -amplitude * w**2 * (np.sin(phases[0]) + 2.3**2 * np.sin(phases[1]))
    tau = inverse_dynamics(robot, q, dq, ddq)
    tau = tau + 0.01 * np.random.default_rng(0).standard_normal(q.shape)
    names = ["t", "q_j1", "q_j2", "tau_j1", "tau_j2"]
    fit = feasid.fit(pd.DataFrame(np.hstack([t, q, tau]), columns=names), robot)
    assert fit.relative_error["all"] < 0.01
    fit.save(tmp_path / "arm.feasid")
    again = feasid.load(tmp_path / "arm.feasid")
    np.testing.assert_array_equal(again.robot.values, fit.robot.values)
    for name in ("arm.xml", "arm.urdf"):
        fit.write(tmp_path / name)
        assert load_robot(tmp_path / name).joints == robot.joints


XACRO = """<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:property name="m" value="${2 * 0.75}"/><link name="base"/>
<link name="a"><inertial><mass value="${m}"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="j" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/></joint>
</robot>"""


def test_xacro_is_expanded_where_it_is_installed(tmp_path):
    """A file that is written from it has an element in a line, as xacro itself writes it."""
    pytest.importorskip("xacro")
    path = tmp_path / "arm.urdf.xacro"
    path.write_text(XACRO)
    robot = load_robot(path)
    assert robot.values[9] == 1.5
    feasid.write(robot.with_values(2.0 * robot.values), tmp_path / "written.urdf")
    lines = (tmp_path / "written.urdf").read_text().splitlines()
    assert [line for line in lines if line.count("<") > 2] == []
    assert sum('<mass value="3.0"/>' in line for line in lines) == 1
    path.write_text(XACRO.replace("2 * 0.75", "nonsense"))
    with pytest.raises(DescriptionError, match="xacro refuses"):
        load_robot(path)


def test_without_xacro_the_command_that_installs_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xacro", None)
    path = tmp_path / "arm.xacro"
    path.write_text(XACRO)
    with pytest.raises(MissingExtraError, match=r"feasid\[xacro\]"):
        load_robot(path)


def test_names_of_robot_descriptions_are_looked_up(tmp_path, monkeypatch):
    package = tmp_path / "robot_descriptions"
    package.mkdir()
    (tmp_path / "arm.urdf").write_text(ARM)
    (package / "__init__.py").write_text("")
    (package / "arm_description.py").write_text(f"URDF_PATH = {str(tmp_path / 'arm.urdf')!r}")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [m for m in sys.modules if m.startswith("robot_descriptions")]:
        monkeypatch.delitem(sys.modules, name)
    assert load_robot("arm_description").name == "arm"
    with pytest.raises(InputError, match="did you mean 'arm_description'"):
        load_robot("arm_descriptoin")
    monkeypatch.setitem(sys.modules, "robot_descriptions", types.ModuleType("robot_descriptions"))
