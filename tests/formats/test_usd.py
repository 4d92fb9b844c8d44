"""USD in and out: robots made with usd-core from their URDF are read, fitted, written and compared.

Numbers of UsdPhysics have 32 bits: what is written agrees with the fit to their rounding.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from arms import FINGERS
from logs import arm_parameters, simulate
from mjcf_files import TREE
from pxr import Gf, Usd, UsdGeom, UsdPhysics
from robots import example_urdfs
from seeds import NEW_SEEDS, seed_of

import feasid
from feasid.core.errors import DescriptionError, InputError
from feasid.robot import inertia
from feasid.robot.dynamics.regressor import inverse_dynamics
from feasid.robot.rotations import from_quaternion, from_rpy, to_quaternion

FLOAT = 2.0**-23  #: Relative rounding of numbers of 32 bits, and of quaternions of them.
SIZE = 1e-6  #: Of inertias, relative to the largest moment: what rounded axes add.

ATTRIBUTES = ("physics:mass", "physics:centerOfMass", "physics:diagonalInertia",
              "physics:principalAxes")  # fmt: skip

ROBOTS = {"panda": "panda_description/urdf/panda.urdf", "g1": "urdf/g1_29dof_rev_1_0.urdf"}


def urdf(name):
    return next(p for p in example_urdfs() if str(p).endswith(ROBOTS[name]))


def numbers(element, name, default="0 0 0"):
    return np.array([*map(float, element.get(name, default).split())] if element is not None
                    else [*map(float, default.split())])  # fmt: skip


def quatf(rotation):
    w, *xyz = map(float, to_quaternion(rotation))
    return Gf.Quatf(w, *xyz)


def stage_of_urdf(path, *, length=1.0, mass=1.0, up="Z", fixed=True):
    """A stage of UsdPhysics, made with usd-core from a URDF's elements."""
    tree = ET.parse(path).getroot()
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageUpAxis(stage, up)
    UsdGeom.SetStageMetersPerUnit(stage, length)
    UsdPhysics.SetStageKilogramsPerUnit(stage, mass)
    root = UsdGeom.Xform.Define(stage, "/robot")
    stage.SetDefaultPrim(root.GetPrim())
    UsdPhysics.ArticulationRootAPI.Apply(root.GetPrim())
    for link in tree.findall("link"):
        prim = UsdGeom.Xform.Define(stage, f"/robot/{link.get('name')}").GetPrim()
        UsdPhysics.RigidBodyAPI.Apply(prim)
        given = link.find("inertial")
        if given is None:
            continue
        values = given.find("inertia").attrib
        tensor = inertia.rotational_inertia(
            [*(float(values[f"i{k}"]) for k in ("xx", "xy", "xz", "yy", "yz", "zz")), 0, 0, 0, 0]
        )
        turn = from_rpy(numbers(given.find("origin"), "rpy"))
        moments, axes = np.linalg.eigh(turn @ tensor @ turn.T)
        axes = axes if np.linalg.det(axes) > 0 else -axes
        api = UsdPhysics.MassAPI.Apply(prim)
        api.CreateMassAttr(float(given.find("mass").get("value")) / mass)
        com = numbers(given.find("origin"), "xyz") / length
        api.CreateCenterOfMassAttr(Gf.Vec3f(*map(float, com)))
        api.CreateDiagonalInertiaAttr(Gf.Vec3f(*map(float, moments / (mass * length**2))))
        api.CreatePrincipalAxesAttr(quatf(axes))
    kinds = {"revolute": UsdPhysics.RevoluteJoint, "continuous": UsdPhysics.RevoluteJoint,
             "prismatic": UsdPhysics.PrismaticJoint, "fixed": UsdPhysics.FixedJoint}  # fmt: skip
    children = set()
    for joint in tree.findall("joint"):
        made = kinds[joint.get("type")].Define(stage, f"/robot/{joint.get('name')}")
        made.CreateBody0Rel().SetTargets([f"/robot/{joint.find('parent').get('link')}"])
        made.CreateBody1Rel().SetTargets([f"/robot/{joint.find('child').get('link')}"])
        children.add(joint.find("child").get("link"))
        turn = from_rpy(numbers(joint.find("origin"), "rpy"))
        place = numbers(joint.find("origin"), "xyz") / length
        flip = np.eye(3)
        if joint.get("type") != "fixed":
            axis = numbers(joint.find("axis"), "xyz", "1 0 0")
            k = int(np.abs(axis).argmax())
            if axis[k] < 0:
                flip = np.diag([-1.0, -1.0, -1.0])
                flip[(k + 1) % 3, (k + 1) % 3] = 1.0
            made.CreateAxisAttr("XYZ"[k])
            unit = 180 / math.pi if joint.get("type") != "prismatic" else 1 / length
            if joint.find("limit") is not None and joint.get("type") != "continuous":
                made.CreateLowerLimitAttr(float(joint.find("limit").get("lower", 0)) * unit)
                made.CreateUpperLimitAttr(float(joint.find("limit").get("upper", 0)) * unit)
        made.CreateLocalPos0Attr(Gf.Vec3f(*map(float, place)))
        made.CreateLocalRot0Attr(quatf(turn @ flip))
        made.CreateLocalRot1Attr(quatf(flip))
    if fixed:
        base = next(x.get("name") for x in tree.findall("link") if x.get("name") not in children)
        weld = UsdPhysics.FixedJoint.Define(stage, "/robot/world")
        weld.CreateBody1Rel().SetTargets([f"/robot/{base}"])
    return stage


def locks(name):
    return FINGERS if name == "panda" else {}


def body_tree(path):
    """Mass, centre and inertia of every link, by usd-core alone."""
    stage = Usd.Stage.Open(str(path))
    out = {}
    for prim in stage.Traverse():
        if prim.HasAPI(UsdPhysics.MassAPI):
            api = UsdPhysics.MassAPI(prim)
            q = api.GetPrincipalAxesAttr().Get()
            turn = from_quaternion(np.array([q.GetReal(), *q.GetImaginary()]))
            tensor = turn @ np.diag(np.array(api.GetDiagonalInertiaAttr().Get())) @ turn.T
            out[prim.GetName()] = (
                api.GetMassAttr().Get(), np.array(api.GetCenterOfMassAttr().Get()), tensor
            )  # fmt: skip
    return out


@pytest.mark.parametrize("name", [*ROBOTS])
@pytest.mark.parametrize(("length", "mass", "suffix"), [(1.0, 1.0, "usda"), (0.01, 0.5, "usdc")])
def test_a_robot_from_usd_is_that_of_its_urdf(tmp_path, name, length, mass, suffix):
    path = tmp_path / f"robot.{suffix}"
    stage_of_urdf(urdf(name), length=length, mass=mass).Export(str(path))
    robot = feasid.load_robot(path, lock=locks(name))
    wanted = feasid.load_robot(urdf(name), lock=locks(name))
    assert {*robot.joints} == {*wanted.joints}
    other = {b.joint: b for b in wanted.bodies}
    for body in robot.bodies:
        same = other[body.joint]
        np.testing.assert_allclose(body.rotation, same.rotation, atol=1e-6)
        np.testing.assert_allclose(body.position, same.position, atol=1e-6)
        np.testing.assert_allclose(body.motion, same.motion, atol=1e-6)
        size = np.abs(same.inertial).max()
        np.testing.assert_allclose(body.inertial, same.inertial, atol=1e-6 * size)
        for end in ("lower", "upper"):
            limit, known = getattr(body.limits, end), getattr(same.limits, end)
            assert limit is known or limit == pytest.approx(known, rel=1e-6)
    np.testing.assert_allclose(robot.gravity, wanted.gravity)


@pytest.mark.parametrize("name", ["panda", pytest.param("g1", marks=pytest.mark.slow)])
def test_a_fit_is_written_into_the_text_and_nothing_else_changes(tmp_path, name):
    path, out = tmp_path / "robot.usda", tmp_path / "fitted.usda"
    stage = stage_of_urdf(urdf(name))
    text = stage.GetRootLayer().ExportToString()
    path.write_text(text.replace('def "', '# a comment { of ( mine\n    def "', 1))
    robot = feasid.load_robot(path, lock=locks(name))
    terms = robot.with_joint_terms()
    delta = arm_parameters(terms)
    delta[terms.inertial_columns] *= 1.1
    log = simulate(terms, delta, 3, samples=1500, noise=0.01)
    few = {"diagnose": False, "candidates": (), "calibration": None}
    fit = feasid.fit(log, robot, **few)
    feasid.write(fit.robot, out)
    check_masses(fit.robot, out)
    kept = re.compile(rf"^\s*\S+ (?:{'|'.join(ATTRIBUTES)}|physxJointAxis:\S+) = .*\n", re.M)
    before, after = (kept.sub("", p.read_text()) for p in (path, out))
    schemas = re.compile(r' \(\n\s*prepend apiSchemas = \["PhysxJointAxisAPI:\w+"\]\n\s*\)')
    # Fixed links that state no mass get one.
    plain = [schemas.sub("", t).replace('"PhysicsMassAPI", ', "") for t in (before, after)]
    assert plain[0] == plain[1]
    again = feasid.load_robot(out, lock=locks(name))
    found, fitted = (np.array([b.inertial for b in r.bodies]) for r in (again, fit.robot))
    np.testing.assert_allclose(found, fitted, atol=SIZE * np.abs(fitted).max())


def check_masses(robot, path):
    """Masses, centres and inertias of the file's moving bodies are the robot's."""
    links = body_tree(path)
    for body in robot.bodies:
        members = body.members or (feasid.robot.bodies.Member(body.name),)
        total = np.zeros(10)
        for member in members:
            if member.name in links:
                m, com, tensor = links[member.name]
                ten = inertia.from_mass_com_inertia(m, com, tensor)
                total += inertia.change_frame(member.rotation, member.position) @ ten
        assert total[9] == pytest.approx(body.inertial[9], rel=FLOAT)
        np.testing.assert_allclose(total, body.inertial, atol=SIZE * np.abs(body.inertial).max())


def test_only_masses_change_where_no_joint_term_does(tmp_path):
    path, out = tmp_path / "robot.usda", tmp_path / "scaled.usda"
    stage_of_urdf(urdf("panda")).Export(str(path))
    robot = feasid.correct(feasid.load_robot(path, lock=locks("panda")), total_mass=20.0).robot
    feasid.write(robot, out)
    lines = re.compile(rf"^\s*\S+ (?:{'|'.join(ATTRIBUTES)}) = .*\n", re.M)
    assert lines.sub("", path.read_text()) == lines.sub("", out.read_text())
    assert path.read_text() != out.read_text()
    again = feasid.load_robot(out, lock=locks("panda"))
    assert sum(b.inertial[9] for b in again.bodies) == pytest.approx(20.0, rel=FLOAT)


@pytest.mark.parametrize("suffix", ["usda", "usdc", "usd"])
def test_a_robot_from_elsewhere_is_written_with_its_joint_terms(tmp_path, suffix):
    arm = feasid.load_robot(urdf("panda"), lock=locks("panda")).without_joint_terms()
    given = arm.with_joint_terms(("viscous", "coulomb"), drive_inertia=True)
    values = given.values.copy()
    for k in range(len(given.drives)):
        values[list(given.drive_columns(k).values())] = 0.25, 1.5, 2.5
    out = tmp_path / f"arm.{suffix}"
    feasid.write(given.with_values(values), out)
    assert out.read_bytes().startswith(b"PXR-USDC" if suffix == "usdc" else b"#usda")
    robot = feasid.load_robot(out)
    assert robot.joints == given.joints
    stage = Usd.Stage.Open(str(out))
    prim = stage.GetPrimAtPath(f"/panda/{robot.joints[0]}")
    assert prim.GetAttribute("physxJointAxis:angular:armature").Get() == 0.25
    assert prim.GetAttribute("physxJointAxis:angular:dynamicFrictionEffort").Get() == 2.5
    viscous = prim.GetAttribute("physxJointAxis:angular:viscousFrictionCoefficient").Get()
    assert viscous == pytest.approx(1.5 * math.pi / 180, rel=FLOAT)
    for drive in robot.drives:
        np.testing.assert_allclose(drive.values, [0.25, 1.5, 2.5], rtol=1e-6)
    q = np.random.default_rng(0).uniform(-1, 1, (5, robot.dof))
    same = feasid.inverse_dynamics(given, q, 0 * q, 0 * q, parameters=values)
    torque = feasid.inverse_dynamics(robot, q, 0 * q, 0 * q)
    np.testing.assert_allclose(torque, same, atol=1e-5 * np.abs(same).max())


@pytest.mark.parametrize("suffix", ["usda", "sdf"])
def test_a_moving_link_without_mass_is_refused_where_programs_would_give_it_one(tmp_path, suffix):
    tip = '<inertial><mass value="%g"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    joint = '<joint name="%s" type="%s"><parent link="%s"/><child link="%s"/></joint>'
    moves = (joint % ("x", "prismatic", "base", "mid"), joint % ("y", "continuous", "mid", "tip"))
    links = '<link name="base"/><link name="mid"/><link name="tip">'
    text = f"<robot>{links}{tip % 1.5}</inertial></link>{''.join(moves)}</robot>"
    robot = feasid.load_robot(text)
    with pytest.raises(InputError, match=r"'mid' has no mass, which U?SDF? would read as 1 kg"):
        feasid.write(robot, tmp_path / f"arm.{suffix}")
    assert not list(tmp_path.iterdir())
    for other in (robot, replace(robot, source=None)):
        written = feasid.write(other, tmp_path / "arm.urdf", overwrite=True)
        assert "MuJoCo rejects the file and Gazebo omits it ('mid')" in written.left_out
    mujoco = pytest.importorskip("mujoco")
    with pytest.raises(ValueError, match="mass and inertia of moving bodies must be larger"):
        mujoco.MjModel.from_xml_path(str(tmp_path / "arm.urdf"))


FREE = """<mujoco><worldbody><body name="base" pos="0.1 0.2 1" quat="0.6 0 0.8 0"><freejoint/>
<geom size="0.2" mass="6"/><body name="leg" pos="0 0 0.3"><joint name="hip" axis="0 1 0"/>
<geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0" mass="1.5"/></body></body></worldbody></mujoco>"""


@pytest.mark.parametrize("suffix", ["usda", "sdf"])
@pytest.mark.parametrize("source", ["g1", "free"])
def test_a_robot_that_floats_is_written_and_floats(tmp_path, suffix, source):
    robot = feasid.load_robot(FREE if source == "free" else urdf("g1"), floating=source != "free")
    robot = robot.without_joint_terms()
    feasid.write(robot, tmp_path / f"robot.{suffix}")
    again = feasid.load_robot(tmp_path / f"robot.{suffix}", floating=True)
    if source == "g1":
        assert feasid.compare(robot, again).equivalent
    bodies = {body.name: body for body in again.bodies}
    assert bodies.keys() == {body.name for body in robot.bodies}
    for body in robot.bodies:
        other = bodies[body.name]
        assert other.floats == body.floats
        scale = SIZE * np.abs(body.inertial).max()
        np.testing.assert_allclose(other.inertial, body.inertial, atol=scale)
        np.testing.assert_allclose(other.position, body.position, atol=SIZE)
        np.testing.assert_allclose(other.rotation, body.rotation, atol=SIZE)


def test_every_fixed_link_of_a_written_file_states_its_mass(tmp_path):
    """PhysX would give a link without one 1 kg, or the mass of its shapes."""
    path, out = tmp_path / "robot.usda", tmp_path / "fitted.usda"
    stage_of_urdf(urdf("panda")).Export(str(path))
    robot = feasid.load_robot(path, lock=locks("panda"))
    assert body_tree(path)["panda_link8"][0] == 0.0  # UsdPhysics: as if not stated
    heavier = [replace(b, inertial=1.1 * b.inertial) for b in robot.bodies]
    feasid.write(replace(robot, bodies=tuple(heavier)), out)
    assert 0 < body_tree(out)["panda_link8"][0] < 1e-5
    check_masses(replace(robot, bodies=tuple(heavier)), out)


def test_a_body_that_floats_beside_a_robot_is_refused(tmp_path):
    robot = feasid.load_robot(TREE)
    with pytest.raises(InputError, match="second floats beside other bodies without a parent"):
        feasid.write(robot.with_values(np.nan_to_num(robot.values)), tmp_path / "two.usda")
    assert not list(tmp_path.iterdir())


def test_the_other_axis_up_turns_gravity(tmp_path):
    path = tmp_path / "robot.usda"
    stage_of_urdf(urdf("panda"), up="Y").Export(str(path))
    np.testing.assert_allclose(feasid.load_robot(path, lock=locks("panda")).gravity, [0, -9.81, 0])


def test_what_cannot_be_read_or_written_is_refused(tmp_path):
    stage = stage_of_urdf(urdf("panda"))
    stage.GetPrimAtPath("/robot").GetReferences().AddReference("./secret.usda")
    path = tmp_path / "robot.usda"
    path.write_text(stage.GetRootLayer().ExportToString())
    with pytest.raises(InputError, match=r"refers to .*secret\.usda.*usdcat --flatten"):
        feasid.load_robot(path)
    one = feasid.Body("a", None, joint="j", inertial=[1, 0, 0, 1, 0, 1, 0, 0, 0, 2])
    feasid.write(feasid.Robot((one,)), path, overwrite=True)
    sound = path.read_bytes()
    for content, words in (
        (b"#usda 1.0\ndef {{{", "damaged or no USD"), (b"PXR-USDC" + b"\xff" * 200, "damaged or"),
        (b"#usda 1.0\n", "no prim with PhysicsRigidBodyAPI"),
        (sound.replace(b"PerUnit = 1", b"PerUnit = 1e308"), r"metersPerUnit 1e\+308 and kilograms"),
        (sound.replace(b'axis = "Z"', b'axis = "Q"'), "/j: turns about 'Q'"),
        (sound.replace(b"mass = 2", b"mass = nan"), "/a: mass nan or inertia"),
        (sound.replace(b"(1, 1, 1)", b"(1, inf, 1)"), "/a: mass 2 or inertia .* not a finite"),
    ):  # fmt: skip
        path.write_bytes(content)
        with pytest.raises(DescriptionError, match=words):
            feasid.load_robot(path)
    odd = b'physics:mass = 2\ndef Cube "c" {\nuniform token[] xformOpOrder = ["xformOp:none"]\n}\n'
    path.write_bytes(sound.replace(b"physics:mass = 2\n", odd))  # read where shapes are needed
    with pytest.raises(InputError, match=r"(?s)robot\.usda: USD raised .*'none'"):
        feasid.check(path)
    arm = feasid.load_robot(urdf("panda"), lock=locks("panda"))
    with pytest.raises(InputError, match=r"robot\.usdz: is this .*USD"):
        feasid.write(arm, tmp_path / "robot.usdz")


def test_a_link_without_mass_api_gets_one_in_text_and_binary(tmp_path):
    stage = stage_of_urdf(urdf("panda"))
    api = stage.GetPrimAtPath("/robot/panda_link5")
    for name in ATTRIBUTES:
        api.RemoveProperty(name)
    api.RemoveAPI(UsdPhysics.MassAPI)
    results = []
    for suffix in ("usda", "usdc"):
        path, out = tmp_path / f"robot.{suffix}", tmp_path / f"fitted.{suffix}"
        stage.Export(str(path))
        robot = feasid.load_robot(path, lock=locks("panda"))
        plain = feasid.load_robot(urdf("panda"), lock=locks("panda")).without_joint_terms()
        feasid.write(robot.with_values(plain.values), out)
        results.append(body_tree(out))
    assert results[0].keys() == results[1].keys()
    assert "panda_link5" in results[0]


@pytest.mark.parametrize("first", ["world", "body", "stand"])
@pytest.mark.parametrize("seed", NEW_SEEDS)
def test_a_joint_to_the_world_moves_as_in_mujoco(tmp_path, seed, first):
    """A hinge from the world, from a prim that stands in it, or from the body to the world."""
    mujoco, rng = pytest.importorskip("mujoco"), np.random.default_rng(seed_of(seed))
    stage = Usd.Stage.CreateNew(str(tmp_path / "cart.usda"))
    UsdGeom.SetStageUpAxis(stage, "Z"), UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stand, cart = (UsdGeom.Xform.Define(stage, f"/r/{name}") for name in ("stand", "cart"))
    stand.AddTranslateOp().Set(Gf.Vec3d(*(offset := np.round(rng.normal(size=3), 3)).tolist()))
    UsdPhysics.RigidBodyAPI.Apply(cart.GetPrim())
    api = UsdPhysics.MassAPI.Apply(cart.GetPrim())
    api.CreateMassAttr(2.0)
    api.CreateDiagonalInertiaAttr(Gf.Vec3f(0.02, 0.03, 0.04))
    api.CreateCenterOfMassAttr(Gf.Vec3f(0.1, 0.2, -0.1))
    joint = UsdPhysics.RevoluteJoint.Define(stage, "/r/slider")
    joint.CreateAxisAttr("Y")
    places, turns = rng.normal(size=(2, 3)), rng.normal(size=(2, 4))
    turns /= np.linalg.norm(turns, axis=1)[:, None]
    own = 0 if first == "body" else 1
    (joint.CreateBody1Rel, joint.CreateBody0Rel)[first == "body"]().SetTargets(["/r/cart"])
    if first == "stand":
        joint.CreateBody0Rel().SetTargets(["/r/stand"])
    for k, (place, turn) in enumerate(zip(places, turns, strict=True)):
        joint.GetPrim().GetAttribute(f"physics:localPos{k}").Set(Gf.Vec3f(*place.tolist()))
        joint.GetPrim().GetAttribute(f"physics:localRot{k}").Set(Gf.Quatf(*turn.tolist()))
    stage.Save()
    rotations = [from_quaternion(turn) for turn in turns]
    home = rotations[1 - own] @ rotations[own].T
    place = places[1 - own] - home @ places[own] + offset * (first == "stand")
    axis = rotations[own] @ [0, 1 if own else -1, 0]
    numbers = (to_quaternion(home), place, axis, places[own])
    turn, place, axis, at = (" ".join(map(repr, x.tolist())) for x in numbers)
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody><body pos="{place}" quat="{turn}"><joint axis="{axis}" pos="{at}"/>'
        '<inertial pos=".1 .2 -.1" mass="2" diaginertia=".02 .03 .04"/></body></worldbody></mujoco>'
    )
    robot, data = feasid.load_robot(tmp_path / "cart.usda"), mujoco.MjData(model)
    for q, dq, ddq in rng.normal(size=(3, 3, 1)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q, dq, ddq
        mujoco.mj_inverse(model, data)
        ours = inverse_dynamics(robot, *(x[None] for x in (q, dq, ddq)))
        np.testing.assert_allclose(np.ravel(ours), data.qfrc_inverse, atol=1e-5)


def test_a_binary_layer_that_ends_the_process_of_its_library_is_refused(tmp_path, monkeypatch):
    layer = tmp_path / "arm.usdc"
    feasid.write(feasid.load_robot(urdf("panda")), layer)
    assert feasid.load_robot(layer).bodies
    monkeypatch.setattr("feasid.robot.formats.usd.read.TRIAL", "import os; os.abort()")
    with pytest.raises(DescriptionError, match=r"arm\.usdc: .* USD's own library cannot read it"):
        feasid.load_robot(layer)
