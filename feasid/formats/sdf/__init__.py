"""SDF: the format of Gazebo and Drake."""

from feasid.formats.description import Format
from feasid.formats.sdf.read import describe_sdf
from feasid.formats.sdf.write import generate_sdf, patch_sdf, with_distinct_names

FORMAT = Format(
    name="sdf",
    title="SDF",
    roots=("sdf",),
    suffixes=(".sdf",),
    holds=("Ia", "fv", "fc", "k"),
    read=describe_sdf,
    patch=patch_sdf,
    generate=generate_sdf,
    prepare=with_distinct_names,
)
