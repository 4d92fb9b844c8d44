"""MJCF: the format of MuJoCo."""

from feasid.formats.description import Format
from feasid.formats.mjcf.compiled import compiled_description
from feasid.formats.mjcf.describe import describe_mjcf
from feasid.formats.mjcf.model import ROOTS
from feasid.formats.mjcf.write import generate_mjcf, patch_mjcf

FORMAT = Format(
    name="mjcf",
    title="MJCF",
    roots=ROOTS,
    suffixes=(".xml", ".mjcf"),
    holds=("Ia", "fv", "fc", "k"),
    read=describe_mjcf,
    patch=patch_mjcf,
    generate=generate_mjcf,
    compiled=compiled_description,
    holds_loops=True,
    holds_gravity=True,
    holds_forces=True,
    holds_servos=True,
)
