"""Numbers that play no part in dynamics never refuse a file: ten and more in every format."""

import numpy as np
import pytest

import feasid

SHAPE = '<geometry><box size="1 1 1"/></geometry>'
BALL = "<geometry><sphere><radius>#</radius></sphere></geometry>"
PLACED = (
    'double3 xformOp:translate = (#, 0, 0); uniform token[] xformOpOrder = ["xformOp:translate"]'
)
IDLE = {
    ("urdf", "</inertial>"): f"""
<visual>{SHAPE}<material name="m"><color rgba="# x"/></material></visual>
<visual><geometry><box size="# 1 1"/></geometry></visual>
<collision><geometry><sphere radius="#"/></geometry></collision>
<visual><geometry><mesh filename="a.stl" scale="# # #"/></geometry></visual>
<visual><origin xyz="# 0 0" rpy="0 0 #"/>{SHAPE}</visual>""",
    ("urdf", '<axis xyz="0.0 0.0 1.0"/>'): """
<limit lower="-#" upper="#" effort="#" velocity="#"/>
<safety_controller k_velocity="#" k_position="#"/>""",
    ("urdf", '<robot name="p">'): """
<material name="m"><color rgba="1 #"/></material>
<transmission name="t"><joint name="j"/><actuator name="m"><gear>#</gear></actuator></transmission>
<gazebo reference="a"><kp>#</kp><sensor type="camera"><rate>#</rate></sensor></gazebo>
<sensor name="s"><parent link="a"/><origin xyz="# 0 0"/></sensor>""",
    ("xml", 'diaginertia="1.0 1.98 1.48"/>'): """
<geom size="0.1" rgba="# 0 0 x" mass="0"/>
<geom size="0.1" mass="0" friction="# # #" solref="# 1" margin="#"/>
<camera name="c" fovy="#" pos="# 0 0"/>
<light pos="# 0 0" dir="0 0 #"/>""",
    ("xml", 'axis="0.0 0.0 1.0"'): """
range="-# #" limited="true" solreflimit="# 1"
margin="#" user="# 1e999\"""",
    ("xml", '<mujoco model="p">'): """
<asset><material name="m" shininess="#"/></asset>
<asset><texture name="t" type="2d" builtin="flat" width="#" height="x"/></asset>
<visual><map znear="#"/></visual>
<sensor><jointpos joint="j" noise="#" cutoff="#"/></sensor>
<keyframe><key qpos="#" time="x"/></keyframe>""",
    ("sdf", "</inertial>"): f"""
<visual name="v">{BALL}<material><diffuse># x</diffuse></material></visual>
<collision name="c">{BALL}</collision>
<visual name="v"><geometry><mesh><uri>a</uri><scale># # #</scale></mesh></geometry></visual>
<visual name="v"><pose># 0 0 0 0 inf</pose>{BALL}</visual>
<collision name="c">{BALL}<surface><friction><ode><mu>#</mu></ode></friction></surface></collision>
<sensor name="s" type="camera"><update_rate>#</update_rate><pose># 0</pose></sensor>""",
    ("sdf", "<xyz>0.0 0.0 1.0</xyz>"): """
<limit><lower>-#</lower><upper>#</upper><effort>#</effort><stiffness>#</stiffness></limit>""",
    ("sdf", '<model name="p">'): """
<plugin name="p" filename="x"><rate>#</rate></plugin>""",
    ("sdf", '<sdf version="1.9">'): """
<light name="l" type="point"><pose># 0</pose></light>
<physics type="ode"><max_step_size>#</max_step_size></physics>""",
    ("usda", "quatf physics:principalAxes = (1, 0, 0, 0)"): f"""
def Sphere "s" {{ color3f[] primvars:displayColor = [(#, #, -1)]; }}
def Sphere "s" {{ double radius = #; }}
def Mesh "m" {{ point3f[] points = [(#, 0, 0)]; int[] faceVertexCounts = [3]; }}
def Cube "c" {{ double size = 1; {PLACED}; }}
def Camera "c" {{ float focalLength = #; {PLACED}; }}
def Xform "imu" {{ custom float rate = #; {PLACED}; }}
def Cube "c" {{ float3[] extent = [(#, 0, 0), (#, 0, 0)]; }}
vector3f physics:velocity = (#, 0, 0)""",
    ("usda", 'uniform token physics:axis = "Z"'): """
float physics:upperLimit = #
float drive:angular:physics:maxForce = #
float physics:breakForce = #""",
    ("usda", 'prepend apiSchemas = ["PhysicsArticulationRootAPI"]\n)\n{'): f"""
def Material "m" {{ float inputs:roughness = #; float physics:density = #; }}
def SphereLight "l" {{ float inputs:intensity = #; {PLACED}; }}""",
}  # fmt: skip
"""By format and what they follow: a fragment per line, in which # is the number."""


@pytest.mark.parametrize(("suffix", "after"), IDLE, ids=lambda x: x[:20])
def test_numbers_that_play_no_part_refuse_nothing(tmp_path, suffix, after):
    ten = [1.0, 0, 0, 2, 0, 1.5, 0.2, 0, 0, 2]
    sound, path = tmp_path / f"p.{suffix}", tmp_path / f"q.{suffix}"
    feasid.write(feasid.Robot((feasid.Body("a", None, joint="j", inertial=ten),), name="p"), sound)
    text, known = sound.read_text(), feasid.load_robot(sound).values
    for fragment in IDLE[suffix, after].strip().splitlines():
        for number in ("nan", "inf", "1e999")[: 2 if suffix == "usda" else 3]:
            assert after in text
            inside = f"{after}\n{fragment}\n".replace("#", number).replace("--", "-")
            path.write_text(text.replace(after, inside, 1))
            np.testing.assert_array_equal(feasid.load_robot(path).values, known, err_msg=fragment)
            assert feasid.check(path).feasible
