"""Small descriptions that use much of what URDF and MJCF can say."""

# ruff: noqa: E501

TWO_LINKS = """<mujoco model="arm"><compiler angle="radian"/><default><joint damping="0.1"/></default>
<worldbody><body name="upper" pos="0 0 0.3"><inertial pos="0 0 0.1" mass="1.2"
 diaginertia="0.01 0.01 0.002"/><joint name="shoulder" axis="0 0 1" armature="0.01" frictionloss="0.2"/>
<geom type="capsule" size="0.03" fromto="0 0 0 0 0 0.2"/>
<body name="fore" pos="0 0 0.25"><joint name="slide" type="slide" axis="1 0 0"/>
<inertial pos="0.1 0 0" mass="0.7" fullinertia="0.004 0.005 0.006 0.0001 0 0"/></body></body></worldbody>
<equality><joint joint1="shoulder" joint2="slide" polycoef="0 1 0 0 0"/></equality></mujoco>"""

GRIPPER = """<robot name="gripper"><material name="grey"><color rgba="0.5 0.5 0.5 1"/></material>
<link name="palm"><inertial><mass value="1"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0"
 izz="0.01"/></inertial><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
<joint name="left" type="prismatic"><parent link="palm"/><child link="finger"/><axis xyz="0 2 0"/>
<limit lower="0" upper="0.04" effort="10" velocity="1"/><safety_controller k_velocity="1"/></joint>
<link name="finger"><inertial><origin xyz="0 0 0.02" rpy="0 0 0.1"/><mass value="0.1"/><inertia ixx="1e-4"
 ixy="0" ixz="0" iyy="1e-4" iyz="0" izz="2e-5"/></inertial><visual><origin xyz="0 0 0.01"/><geometry>
<mesh filename="package://gripper/finger.stl" scale="1 1 1"/></geometry></visual></link>
<joint name="right" type="prismatic"><parent link="palm"/><child link="thumb"/><axis xyz="0 -1 0"/>
<limit lower="0" upper="0.04" effort="10" velocity="1"/><mimic joint="left" multiplier="-1" offset="0.01"/>
</joint><link name="thumb"><inertial><mass value="0.1"/><inertia ixx="1e-4" ixy="0" ixz="0" iyy="1e-4"
 iyz="0" izz="2e-5"/></inertial><collision><geometry><cylinder radius="0.01" length="0.05"/></geometry>
</collision><collision><geometry><sphere radius="0.02"/></geometry></collision></link>
<transmission name="drive"><type>SimpleTransmission</type><joint name="left"/><actuator name="motor">
<mechanicalReduction>50</mechanicalReduction></actuator></transmission></robot>"""

CART = """<mujoco><compiler angle="degree" eulerseq="zyx" inertiafromgeom="auto"/><default>
<geom density="500"/><default class="heavy"><geom density="3000"/><joint damping="1" armature="0.1"/>
</default></default><worldbody><geom type="plane" size="1 1 .1"/><body name="cart" euler="0 10 90">
<joint name="rail" type="slide" axis="1 0 0" range="-1 1"/><geom class="heavy" type="box" size=".1 .1 .05"/>
<body name="pole" pos="0 0 .1" quat="1 0 0.1 0" childclass="heavy"><joint name="hinge" ref="10"
 springref="5" stiffness="2"/><geom type="cylinder" fromto="0 0 0 0 0 1" size="0.02" mass="0.3"/>
<geom type="ellipsoid" size=".1 .05 .02" pos="0 0 1" xyaxes="0 1 0 -1 0 0"/><site name="tip" pos="0 0 1"/>
</body></body></worldbody><actuator><motor joint="rail" gear="20"/></actuator></mujoco>"""
