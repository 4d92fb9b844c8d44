"""Robots for tests: files of the example-robot-data wheel, small own ones, published and random."""

from __future__ import annotations

import json
import re
from importlib.metadata import distribution
from pathlib import Path

import numpy as np

import feasid
from feasid.robot.bodies import Body, Rotor


def example_urdfs() -> list[Path]:
    """All URDF files of the example-robot-data wheel, sorted."""
    wheel = distribution("example-robot-data")
    found = [Path(str(wheel.locate_file(f))) for f in wheel.files or () if f.suffix == ".urdf"]
    return sorted(found)


ARM = """<?xml version="1.0"?>
<!-- a small arm -->
<robot name="arm" xmlns:xacro="http://ros.org/wiki/xacro">
  <link name="base">
    <inertial>
      <origin xyz="0 0 0.05"/>
      <mass value="2.5"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.015"/>
    </inertial>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/>
    <child link="upper"/>
    <origin xyz="0 0 0.1" rpy="0 0 1.5707963267948966"/>
    <axis xyz="0 1 0"/>
    <limit lower="-1.5" upper="1.5" velocity="2" effort="40"/>
    <dynamics damping="0.7" friction="0.2"/>
  </joint>
  <link name="upper">
    <inertial>
      <origin xyz="0.01 -0.02 0.15" rpy="0.3 -0.2 0.1"/>
      <mass value="1.25"/>
      <inertia ixx="0.011" ixy="0.0002" ixz="-0.0003" iyy="0.012" iyz="0.0001" izz="0.003"/>
    </inertial>
  </link>
  <joint name="plate_joint" type="fixed">
    <parent link="upper"/>
    <child link="plate"/>
    <origin xyz="0 0 0.3" rpy="0 0.4 0"/>
  </joint>
  <link name="plate">
    <inertial>
      <mass value="0.2"/>
      <inertia ixx="0.0002" ixy="0" ixz="0" iyy="0.0002" iyz="0" izz="0.0003"/>
    </inertial>
  </link>
  <joint name="slide" type="prismatic">
    <parent link="plate"/>
    <child link="rod"/>
    <axis xyz="0 0 1"/>
    <limit lower="0" upper="0.2" velocity="1" effort="10"/>
  </joint>
  <link name="rod">
    <inertial>
      <origin xyz="0 0 0.1"/>
      <mass value="0.3"/>
      <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.0001"/>
    </inertial>
  </link>
  <joint name="wheel_joint" type="continuous">
    <parent link="rod"/>
    <child link="wheel"/>
  </joint>
  <link name="wheel"/>
</robot>
"""
"""Revolute, fixed, prismatic and continuous joints; turned inertials; a link without inertial."""


def replaced(text, *pairs):
    """A text with other words for some that it has exactly once."""
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def read_arm(folder):
    """The robot of `ARM`, read from a file of this folder."""
    (folder / "arm.urdf").write_text(ARM)
    return feasid.load_robot(folder / "arm.urdf")


def without_geometry(urdf: str) -> str:
    """A URDF's text without comments, visuals and collisions, for simulators that open meshes."""
    urdf = re.sub(r"<!--.*?-->", "", urdf, flags=re.DOTALL)
    shape = r"<(visual|collision)\b(?:[^>]*/>|.*?</\1>)"
    return re.sub(shape, "", urdf, flags=re.DOTALL)


RTOL = 1e-10  # the promise to users; both sides are double precision over some ten bodies


def random_rotation(rng):
    q, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    return q * np.sign(np.linalg.det(q))


def random_screw(rng, kind):
    axis = rng.standard_normal(3)
    axis /= np.linalg.norm(axis)
    if kind == "prismatic":
        return np.r_[0, 0, 0, axis]
    if kind == "revolute":
        return np.r_[axis, 0, 0, 0]
    through = rng.standard_normal(3)
    pitch = 0.3 if kind == "helical" else 0.0
    return np.r_[axis, np.cross(through, axis) + pitch * axis]


def random_robot(rng, n, kinds=("revolute", "prismatic"), rotors=False):
    bodies = []
    for i in range(n):
        parent = None if i == 0 else f"b{rng.integers(max(0, i - 3), i)}"
        screw = random_screw(rng, rng.choice(kinds))
        rotor = None
        if rotors and rng.random() < 0.7:
            rotor = Rotor(
                -7.5, random_rotation(rng), rng.standard_normal(3), symmetric=rng.random() < 0.5
            )
        bodies.append(
            Body(f"b{i}", parent, random_rotation(rng), rng.standard_normal(3), screw, rotor=rotor)
        )
    return feasid.Robot(tuple(bodies), gravity=rng.standard_normal(3) * 9)


def relative(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


def singular_values(rows):
    """Of rows whose columns are in units of their size."""
    sizes = np.linalg.norm(rows, axis=0)
    return np.linalg.svd(rows / sizes.clip(1e-6 * sizes.max()), compute_uv=False)


def clear_rank(s, floor, gap):
    """Rank at the widest gap of singular values; None where none is that wide."""
    s = np.r_[s.clip(floor * s[0]), floor * s[0]]
    ratios = s[:-1] / s[1:]
    k = int(np.argmax(ratios))
    return k + 1 if ratios[k] >= gap else None


PUBLISHED = json.loads((Path(__file__).parent / "data" / "sousa_base.json").read_text())
ANGLES = {"pi/2": np.pi / 2, "-pi/2": -np.pi / 2, "0": 0.0}


def wam(**terms):
    rows = [(ANGLES[alpha], a, d, 0.0) for alpha, a, d in PUBLISHED["wam7"]["dh"]]
    return feasid.Robot.from_dh(rows).with_joint_terms(**terms)


def yoshida():
    def about(*axis):
        return np.r_[axis, 0.0, 0.0, 0.0]

    bodies = (
        feasid.Body("1", None, motion=about(0.0, 1, 0)),
        feasid.Body("2", "1", motion=about(0.0, 0, 1)),
        feasid.Body("3", "2", position=[1, 0, 0], motion=about(0.0, 0, 1)),
    )
    return feasid.Robot(bodies, gravity=(0, -9.81, 0))
