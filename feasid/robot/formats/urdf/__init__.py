"""URDF: the format of ROS."""

from feasid.robot.formats.description import Format, import_when_called

FORMAT = Format(
    name="urdf",
    title="URDF",
    roots=("robot",),
    suffixes=(".urdf",),
    holds=("fv", "fc"),
    read=import_when_called("feasid.robot.formats.urdf.read:describe_urdf"),
    patch=import_when_called("feasid.robot.formats.urdf.write:patch_urdf"),
    generate=import_when_called("feasid.robot.formats.urdf.write:generate_urdf"),
    prepare=import_when_called("feasid.robot.variants:with_axis_frames"),
    massless="mass of a moving link, without which MuJoCo rejects the file and Gazebo omits it",
    extensions=("drake", "mujoco"),
)
