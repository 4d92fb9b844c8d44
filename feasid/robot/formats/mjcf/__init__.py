"""MJCF: the format of MuJoCo."""

from feasid.robot.formats.description import Format, import_when_called

FORMAT = Format(
    name="mjcf",
    title="MJCF",
    roots=("mujoco", "mujocoinclude"),
    suffixes=(".xml", ".mjcf"),
    holds=("Ia", "fv", "fc", "k"),
    read=import_when_called("feasid.robot.formats.mjcf.read:describe_mjcf"),
    patch=import_when_called("feasid.robot.formats.mjcf.write:patch_mjcf"),
    generate=import_when_called("feasid.robot.formats.mjcf.write:generate_mjcf"),
    compiled=import_when_called("feasid.robot.formats.mjcf.compiled:compiled_description"),
    holds_loops=True,
    holds_gravity=True,
    holds_forces=True,
    holds_servos=True,
    holds_shared=True,
)
