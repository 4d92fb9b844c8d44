"""URDF: the format of ROS."""

from feasid.robot.formats.description import Format, import_when_called
from feasid.robot.formats.terms import symbols_of_fields

DYNAMICS = {"damping": "viscous", "friction": "coulomb"}
"""Field of `JointTerms` per attribute of ``<dynamics>``, as it is read and written."""

FORMAT = Format(
    name="urdf",
    title="URDF",
    roots=("robot",),
    suffixes=(".urdf",),
    holds=symbols_of_fields(DYNAMICS.values()),
    read=import_when_called("feasid.robot.formats.urdf.read:describe_urdf"),
    patch=import_when_called("feasid.robot.formats.urdf.write:patch_urdf"),
    generate=import_when_called("feasid.robot.formats.urdf.write:generate_urdf"),
    prepare=import_when_called("feasid.robot.variants:with_axis_frames"),
    massless="mass of a moving link, without which MuJoCo rejects the file and Gazebo omits it",
    extensions=("drake", "mujoco"),
)
