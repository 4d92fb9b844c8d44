"""SDF: the format of Gazebo and Drake."""

from feasid.robot.formats.description import Format, import_when_called
from feasid.robot.formats.terms import symbols_of_fields

DYNAMICS = {
    "damping": "viscous",
    "friction": "coulomb",
    "spring_stiffness": "stiffness",
    "spring_reference": "slack",
}
"""Field of `JointTerms` per child of ``<dynamics>``, as it is read and written."""

FORMAT = Format(
    name="sdf",
    title="SDF",
    roots=("sdf",),
    suffixes=(".sdf",),
    holds=symbols_of_fields(("inertia", *DYNAMICS.values())),
    several=True,
    default_mass="1 kg",
    read=import_when_called("feasid.robot.formats.sdf.read:describe_sdf"),
    patch=import_when_called("feasid.robot.formats.sdf.write:patch_sdf"),
    generate=import_when_called("feasid.robot.formats.sdf.write:generate_sdf"),
    prepare=import_when_called("feasid.robot.formats.sdf.write:with_distinct_names"),
)
