"""URDF: the format of ROS."""

from feasid.formats.description import Format
from feasid.formats.urdf.read import describe_urdf
from feasid.formats.urdf.write import generate_urdf, patch_urdf
from feasid.robot.variants import with_axis_frames

FORMAT = Format(
    name="urdf",
    title="URDF",
    roots=("robot",),
    suffixes=(".urdf",),
    holds=("fv", "fc"),
    read=describe_urdf,
    patch=patch_urdf,
    generate=generate_urdf,
    prepare=with_axis_frames,
    extensions=("drake", "mujoco"),
)
