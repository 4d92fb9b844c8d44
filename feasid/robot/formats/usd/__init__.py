"""USD: the format of Isaac Sim and Isaac Lab. Needs the extra "usd"."""

from feasid.robot.formats.description import Format, import_when_called

FORMAT = Format(
    name="usd",
    title="USD",
    roots=("usd",),
    suffixes=(".usda", ".usd", ".usdc"),
    holds=("Ia", "fv", "fc"),
    several=True,
    default_mass="1 kg, or the mass of its shapes",
    read=import_when_called("feasid.robot.formats.usd.read:describe_usd"),
    patch=import_when_called("feasid.robot.formats.usd.write:patch_usd"),
    generate=import_when_called("feasid.robot.formats.usd.write:generate_usd"),
    prepare=import_when_called("feasid.robot.variants:with_axis_frames"),
    encode=import_when_called("feasid.robot.formats.usd.write:encode_usd"),
    agreement=3e-6,
)
