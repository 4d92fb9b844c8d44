"""Robot description files for tests: those of the example-robot-data wheel, and small own ones."""

from __future__ import annotations

import re
from importlib.metadata import distribution
from pathlib import Path


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


def without_geometry(urdf: str) -> str:
    """A URDF's text without comments, visuals and collisions, for simulators that open meshes."""
    urdf = re.sub(r"<!--.*?-->", "", urdf, flags=re.DOTALL)
    shape = r"<(visual|collision)\b(?:[^>]*/>|.*?</\1>)"
    return re.sub(shape, "", urdf, flags=re.DOTALL)
