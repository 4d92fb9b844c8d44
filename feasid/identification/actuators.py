"""Tables of actuators, and their texts as simulators read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from feasid.core.arrays import Array
from feasid.errors import InputError, did_you_mean
from feasid.formats.description import Extras
from feasid.formats.mjcf.write import HOLDING
from feasid.formats.urdf.write import extension_lines
from feasid.formats.xml import decimals, markup
from feasid.identification.file_terms import joint_values
from feasid.robot.description import Robot


class Actuators(pd.DataFrame):
    """What a client needs of each joint besides bodies; see `feasid.Fit.actuators`."""

    @property
    def _constructor(self) -> type[Actuators]:
        return Actuators

    @classmethod
    def of_robot(cls, robot: Robot, delta: Array) -> Actuators:
        """The table of these standard parameters, friction being viscous and Coulomb."""
        terms = joint_values(robot, delta)
        efforts = {body.joint: body.limits.effort for body in robot.bodies}
        columns = {
            "armature": terms["Ia"],
            "damping": terms["fv"],
            "frictionloss": terms["fc"],
            "effort_limit": [efforts[joint] for joint in robot.joints],
        }
        return cls(columns, index=pd.Index(robot.joints, name="joint"), dtype=np.float64)

    def to_text(self, program: str) -> str:
        """The table as text that a program reads.

        Parameters
        ----------
        program : {"mjcf", "isaaclab", "gazebo", "drake"}
            ``<joint>`` elements of MJCF; an ``ImplicitActuatorCfg`` of Isaac Lab; joints of SDF,
            of which Gazebo reads damping and friction but has no armature; transmissions of URDF
            with Drake's rotor inertia.

        Returns
        -------
        str

        Raises
        ------
        InputError
            Another program.
        """
        if program not in TEXTS:
            hint = did_you_mean(str(program), TEXTS)
            raise InputError(
                f"to_text({program!r}): choose of {', '.join(TEXTS)}{hint}", program=program
            )
        return TEXTS[program](self)


def _joint_lines(
    table: pd.DataFrame, write: Callable[[str, Mapping[str, float]], list[str]]
) -> str:
    rows = ({str(k): float(v) for k, v in row.items()} for row in table.to_dict("records"))
    joints = zip(table.index, rows, strict=True)
    return "\n".join([*(line for joint, row in joints for line in write(str(joint), row)), ""])


def _mjcf_text(table: pd.DataFrame) -> str:
    """Attributes of ``<joint>``: mujoco.readthedocs.io/en/stable/XMLreference.html#body-joint."""

    def write(joint: str, row: Mapping[str, float]) -> list[str]:
        terms = {k: row[k] for k in ("armature", "damping", "frictionloss")}
        return markup("joint", name=joint, **terms, **(HOLDING if terms["frictionloss"] else {}))

    return _joint_lines(table, write)


def _isaaclab_text(table: pd.DataFrame) -> str:
    """Fields of ``isaaclab.actuators.ActuatorBaseCfg``, friction as torque (Isaac Sim 5)."""
    fields = {
        "armature": "armature",
        "friction": "frictionloss",
        "dynamic_friction": "frictionloss",
        "viscous_friction": "damping",
        "effort_limit_sim": "effort_limit",
    }
    lines = ["ImplicitActuatorCfg(", f"    joint_names_expr={[*map(str, table.index)]!r},"]
    for field, column in fields.items():
        known = table[column].dropna()
        if len(known):
            values = ", ".join(f"{str(j)!r}: {decimals(v)}" for j, v in known.items())
            lines.append(f"    {field}={{{values}}},")
    return "\n".join([*lines, "    stiffness=0.0,", "    damping=0.0,", ")", ""])


def _gazebo_text(table: pd.DataFrame) -> str:
    """Joints of SDF: sdformat.org/spec; Gazebo has no armature, and Drake reads its element."""

    def write(joint: str, row: Mapping[str, float]) -> list[str]:
        terms = [*markup("damping", row["damping"]), *markup("friction", row["frictionloss"])]
        effort = row["effort_limit"]
        limit = [] if np.isnan(effort) else markup("limit", markup("effort", effort))
        rotor = markup("drake:rotor_inertia", row["armature"])
        return markup("joint", rotor, markup("axis", limit, markup("dynamics", terms)), name=joint)

    return _joint_lines(table, write)


def _drake_text(table: pd.DataFrame) -> str:
    """Transmissions: drake.mit.edu, "Parsing models for multibody dynamics"."""
    armatures = {str(j): float(v) for j, v in table["armature"].items()}
    return "\n".join([*extension_lines(Extras({}, armatures, ("drake",))), ""])


TEXTS = {
    "mjcf": _mjcf_text,
    "isaaclab": _isaaclab_text,
    "gazebo": _gazebo_text,
    "drake": _drake_text,
}
"""Text of a table of actuators, per program that reads it."""
