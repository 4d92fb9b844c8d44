"""What a new file keeps besides numbers, in every format; USD's joints and masses of shapes.

Truths: geoms, names and masses as MuJoCo compiles them, and mass by volume times density.
"""

import re

import numpy as np
import pytest
from arms import panda
from robots import MODELS
from seeds import NEW_SEEDS, seed_of
from written import torque_difference

import feasid
from feasid.robot.formats.registry import reread_description

JOINT = '<joint name="%s" type="%s"><parent link="%s"/><child link="%s"/>%s</joint>'
MASS = """<inertial><origin xyz="%g 0 .1"/><mass value="%g"/>
<inertia ixx=".02" iyy=".02" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial>"""
SHAPE = "<%s>%s<geometry>%s</geometry>%s</%s>"
SUFFIXES = ("urdf", "xml", "sdf", "usda")


def arm(seed):
    """An arm with a base, a tool that is fixed to it, a finger that follows, and shapes."""
    rng = np.random.default_rng(seed)
    colour = '<material name="m"><color rgba="0.5 0.25 1 1"/></material>'
    x, y, z, turn = rng.uniform(0, 1, 4)
    pose = f'<origin xyz="{x} {y} {z}" rpy="0 {turn} 0"/>'
    box = SHAPE % ("visual", pose, '<box size=".1 .2 .3"/>', colour, "visual")
    ball = SHAPE % ("collision", pose, '<sphere radius=".1"/>', "", "collision")
    rod = SHAPE % ("collision", "", '<cylinder radius=".1" length=".4"/>', "", "collision")
    mesh = SHAPE % ("visual", "", '<mesh filename="package://a/b.stl"/>', "", "visual")
    limit = '<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="5" velocity="2"/>'
    mimic = f'{limit}<mimic joint="shoulder" multiplier="-0.5" offset="0.1"/>'
    masses = rng.uniform(1, 3, 4)
    return (
        f'<robot name="r"><link name="stand">{MASS % (0, masses[0])}{box}</link>'
        f'<link name="arm.1">{MASS % (0.1, masses[1])}{rod}{box}</link>'
        f'<link name="tool">{MASS % (0.2, masses[2])}{ball}{mesh}</link>'
        f'<link name="finger">{MASS % (0.1, masses[3])}</link>'
        + JOINT % ("shoulder", "revolute", "stand", "arm.1", pose + limit)
        + JOINT % ("flange", "fixed", "arm.1", "tool", pose)
        + JOINT % ("pinch", "revolute", "tool", "finger", mimic)
        + "</robot>"
    )


@pytest.mark.parametrize("seed", NEW_SEEDS)
@pytest.mark.parametrize("first", SUFFIXES)
def test_every_format_keeps_shapes_links_colours_and_followers(tmp_path, first, seed):
    mujoco = pytest.importorskip("mujoco")
    robot = feasid.load_robot(arm(seed_of(seed)))
    written = feasid.write(robot, tmp_path / f"one.{first}")
    drawn = first in ("urdf", "sdf")
    assert ("mesh of a visual ('tool')" in written.left_out) is not drawn
    again = feasid.load_robot(tmp_path / f"one.{first}")
    for second in SUFFIXES:
        path = tmp_path / f"two.{second}"
        feasid.write(again, path)
        assert torque_difference(robot, feasid.load_robot(path)) < 1e-5
        description = reread_description(feasid.load_robot(path))
        assert {"stand", "arm.1", "tool", "finger"} <= description.by_name.keys()
        drawings = [d for link in description.links for d in link.drawings()]
        kinds = sorted(f"{d.tag} {d.shape.kind}" for d in drawings if hasattr(d.shape, "kind"))
        assert kinds == ["collision cylinder", "collision sphere", "visual box", "visual box"]
        if second in ("xml", "usda"):
            assert {d.colour for d in drawings if d.tag == "visual"} == {(0.5, 0.25, 1.0, 1.0)}
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "two.xml"))
    assert model.ngeom == 4
    mass = sum(b.inertial[9] for b in robot.bodies)
    assert model.body_mass[model.body("tool").id] == 0.0
    assert model.body_mass[model.body_weldid != 0].sum() == pytest.approx(mass, rel=1e-6)


def test_each_program_has_a_word_for_what_it_does_not_read(tmp_path):
    robot = feasid.load_robot(arm(1))
    for program, suffix, words in (
        ("mujoco", "urdf", "joint that follows another, which moves by itself ('pinch')"),
        ("mujoco", "xml", "mesh of a visual ('tool')"),
        ("isaac", "usda", "mesh of a visual ('tool')"),
        ("pinocchio", "xml", "joint that follows another, which moves by itself ('pinch')"),
    ):
        written = feasid.write(robot, tmp_path / f"r.{suffix}", for_=program, overwrite=True)
        (things,) = written.unread.values()
        assert words in things
        assert f"r.{suffix} for " in str(written)
    zero = re.sub(r'(name="finger">.*?mass value=")[^"]*', r"\g<1>0", arm(1))  # and an inertia
    written = feasid.write(feasid.load_robot(zero), tmp_path / "z.urdf", for_="mujoco")
    assert "moving link without mass, which is refused ('finger')" in written.unread["MuJoCo"]
    (nothing,) = feasid.write(robot, tmp_path / "r.sdf", for_="gazebo").unread.values()
    assert nothing == ""


LAYER = (MODELS / "six_axes.usda").read_text(encoding="utf-8")


@pytest.mark.parametrize("free", ["rotX", "rotY", "rotZ", "transX", "transY", "transZ"])
def test_a_joint_of_six_axes_with_one_free_and_a_mass_by_shapes(tmp_path, free):
    """A box of .2 x .4 x .6 m: mass, centre and moments by the textbook."""
    axes = [f"{kind}{axis}" for kind in ("trans", "rot") for axis in "XYZ" if kind + axis != free]
    schemas = ", ".join(f'"PhysicsLimitAPI:{axis}"' for axis in axes)
    lock = "float limit:{0}:physics:low = 1\nfloat limit:{0}:physics:high = -1"
    locks = "\n".join(map(lock.format, axes))
    density = float(np.random.default_rng().integers(100, 900))
    path = tmp_path / "six.usda"
    path.write_text(LAYER % (density, schemas, locks))
    (body,) = feasid.load_robot(path).bodies
    moved = np.flatnonzero(body.motion[:, 0])
    assert moved == "XYZ".index(free[-1]) + 3 * free.startswith("trans")
    mass, com, tensor = feasid.robot.inertia.to_mass_com_inertia(body.inertial)
    assert mass == pytest.approx(density * 0.048)
    np.testing.assert_allclose(com, [0.5, 0, 0], atol=1e-12)
    sides = np.array([0.2, 0.4, 0.6]) ** 2
    np.testing.assert_allclose(np.diag(tensor), mass / 12 * (sides.sum() - sides), rtol=1e-6)
    assert [m.name for m in body.members] == ["body", "tip"]


def test_shapes_of_a_new_mjcf_touch_the_floor_and_not_each_other(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    feasid.write(panda(), tmp_path / "panda.xml")
    spec = mujoco.MjSpec.from_file(str(tmp_path / "panda.xml"))
    contacts = []
    for _ in range(2):
        model = spec.compile()
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        contacts.append(data.ncon)
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[2, 2, 0.1], pos=[0, 0, 0.5])
    assert contacts[0] == 0 < contacts[1]
