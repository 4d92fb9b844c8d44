"""Joint terms as files, their clients and simulators hold them: friction, offsets, actuators."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.optimize import lsq_linear

from feasid.core.arrays import Array
from feasid.core.errors import InputError, did_you_mean
from feasid.identification.effects.joint_terms import SPRINGS, remove_terms
from feasid.identification.regression.reduce import restrict_terms
from feasid.parameters.identifiability.base import base_parameters
from feasid.results.export.clients import prepare_runs
from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import inverse_dynamics
from feasid.robot.formats.description import Extras, JointServo
from feasid.robot.formats.mjcf.write import HOLDING
from feasid.robot.formats.urdf.write import extension_lines
from feasid.robot.formats.write import format_of
from feasid.robot.formats.xml import decimals, markup
from feasid.robot.joint_terms import TERMS

if TYPE_CHECKING:
    from feasid.identification.fitted import FittedModel
    from feasid.logs.servo import Servo
    from feasid.parameters.feasibility.least_squares import LeastSquares


ORIGINS = ("sensor", "joint")  #: Origins of an offset: the torque sensor, or a force on the joint.

REST_SPEED = 0.005
"""Speed [rad/s or m/s] below which a joint rests: that over which fitted friction changes sign."""

UNLOADED = 0.25  #: Load over the offset up to which a posture is without load at a joint.
PRESENT = 0.5  #: Torque over the offset above which a joint at rest without load shows the offset.
REST_SAMPLES = 20  #: Least number of samples at rest without load for evidence.


def fit_without_added_springs(model: FittedModel) -> Array:
    """Standard parameters (n,) of the same equations without springs that a search added."""
    robot = model.robot
    dropped = [SPRINGS if drive.spring_range else frozenset() for drive in robot.drives]
    if not any(dropped):
        return robot.values
    measured = model.base.experiment.measured_joints
    base = base_parameters(remove_terms(robot, dropped), measured=measured)
    part = restrict_terms(model.equations, model.base.robot, base)
    values = model.estimator.on(base).fit(part).solution.delta
    by_name = dict(zip(base.robot.parameter_names, values.tolist(), strict=True))
    return np.array([by_name.get(name, 0.0) for name in robot.parameter_names])


def friction_as_files_hold(robot: Robot, equations: LeastSquares, shared: bool) -> Array:
    """Standard parameters with viscous and Coulomb friction in place of terms that files do not
    hold.

    At every joint with friction of another law (``fs``, ``fl``, ``fb``, ``fd``) or of a motor that
    moves several joints, where files do not have it (`shared`), ``fv`` and ``fc`` minimise the
    difference between the torques that the fitted model predicts for the fitted log with and
    without that friction. All other parameters are kept.

    `robot`: with the fitted parameters; `equations`: the weighted equations that were solved.
    Returns (n,): the friction that files do not hold is zero.
    """
    fitted = robot.values
    delta, touched = fitted.copy(), set()
    for k, drive in enumerate(robot.drives):
        alone = len(drive.coupling) == 1 or shared
        for symbol, column in robot.drive_columns(k).items():
            friction = symbol in TERMS and TERMS[symbol].varies_with == "dq"
            if friction and fitted[column] and not (alone and symbol in ("fv", "fc")):
                delta[column] = 0.0
                touched |= set(drive.coupling)
    free = [
        column
        for k, drive in enumerate(robot.drives)
        if len(drive.coupling) == 1 and touched.issuperset(drive.coupling)
        for symbol, column in robot.drive_columns(k).items()
        if symbol in ("fv", "fc")
    ]
    if free:
        A = equations.A
        # Viscous and Coulomb friction is fitted anew, to all torques that the others leave.
        delta[free] = 0.0
        delta[free] = lsq_linear(A[:, free], A @ (fitted - delta), (0.0, np.inf), tol=1e-14).x
    return delta


def joint_values(robot: Robot, delta: Array) -> dict[str, Array]:
    """Ia, fv, fc and fo per joint, of the drives that move one joint."""
    out = {symbol: np.zeros(len(robot.joints)) for symbol in ("Ia", "fv", "fc", "fo")}
    for k, drive in enumerate(robot.drives):
        if len(drive.coupling) == 1:
            ((joint, factor),) = drive.coupling.items()
            columns = robot.drive_columns(k)
            for symbol in out.keys() & columns.keys():
                scaling = TERMS[symbol].scaling(factor) or 1.0
                out[symbol][robot.joints.index(joint)] += scaling * delta[columns[symbol]]
    return out


# -- offsets --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Offset:
    """Whether a joint's offset belongs to its sensor or is a force on the joint, and the evidence,
    if any.
    """

    joint: str
    value: float
    origin: str
    reason: str


def find_offsets(model: FittedModel, asked: str | Mapping[str, str] | None) -> tuple[Offset, ...]:
    """The offsets of a model's joints, each of its sensor or of the joint.

    A sensor shows its offset always. If a joint rests without load and its torque is far below the
    offset, the sensor has no offset, and the offset is a force that acts in motion. A torque at
    rest that equals the offset contradicts neither; without evidence an offset is of the sensor.
    Torque sensors behind springs move nothing, and passive joints have no sensor.

    `asked`: `offset_origin` of `Fit.write`. Raises InputError: it names a joint that does not
    exist.
    """
    robot, named = model.robot, {**asked} if isinstance(asked, Mapping) else {}
    if isinstance(asked, str):
        named = dict.fromkeys(robot.joints, asked)
    for joint in named:
        if joint not in robot.joints:
            names = ", ".join(robot.joints) + did_you_mean(joint, robot.joints)
            text = f"offset_origin: {joint!r} is not one of {names}"
            raise InputError(text, option="offset_origin")
    values = joint_values(robot, robot.values)["fo"]
    torques: list[list[float]] = [[] for _ in robot.joints]
    if asked is None and values.any() and robot.is_tree and robot.dof == len(robot.joints):
        bodies = robot.without_joint_terms()
        for _, run in prepare_runs(model, model.logs):
            still = np.flatnonzero((np.abs(run.dq) < REST_SPEED).all(axis=1))
            zero = np.zeros((len(still), robot.dof))
            load = inverse_dynamics(bodies, run.q[still], zero, zero)
            for j, value in enumerate(values):
                free = np.abs(load[:, j]) < UNLOADED * abs(value)
                torques[j] += run.tau[still[free], j].tolist()
    out = []
    for joint, value, rest in zip(robot.joints, values, torques, strict=True):
        if not value:
            continue
        origin, reason = named.get(joint, "sensor"), "as asked" if joint in named else ""
        if joint in robot.passive:
            origin, reason = "joint", "it has no motor"
        elif joint in robot.sensors.values():
            origin, reason = "sensor", "it moves nothing"
        if not reason and len(rest) >= REST_SAMPLES:
            torque = float(np.median(rest))
            origin = "sensor" if abs(torque) > PRESENT * abs(value) else "joint"
            reason = f"at rest without load its torque is {torque:.3g}"
        out.append(Offset(joint, float(value), origin, reason))
    return tuple(out)


def describe_offsets(offsets: Sequence[Offset], held: bool) -> list[str]:
    """A line for the offsets of sensors, and one for those that are forces on joints."""
    lines = []
    for origin in ORIGINS:
        of = [x for x in offsets if x.origin == origin]
        if not of:
            continue
        what = "of the torque sensors: subtract them from measured torques"
        if origin == "joint":
            what = "that are forces on joints: " + (
                "the file has them as constant forces" if held else "add them to commanded torques"
            )
        values = ", ".join(f"{x.value:.4g} at {x.joint}{x.reason and f' ({x.reason})'}" for x in of)
        lines.append(f"offsets {what} ({values})")
        if not all(x.reason for x in of):
            lines[-1] += (
                "; the log does not show whether they belong to the sensor or the joint, and the "
                'sensor is assumed (of the joint: offset_origin="joint")'
            )
    return lines


class Actuators(pd.DataFrame):
    """Actuator data of each joint for other programs; see `feasid.Fit.actuators`."""

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

        `program`: {"mjcf", "isaaclab", "gazebo", "drake"}, ``<joint>`` elements of MJCF; an
        ``ImplicitActuatorCfg`` of Isaac Lab; joints of SDF, of which Gazebo reads damping and
        friction but has no armature; transmissions of URDF with Drake's rotor inertia. Raises
        InputError: another program.
        """
        if program not in TEXTS:
            names = ", ".join(TEXTS) + did_you_mean(program, TEXTS)
            raise InputError(f"to_text({program!r}): choose of {names}", program=program)
        return TEXTS[program](self)


def _joint_lines(table: pd.DataFrame, write: Callable[[str, dict[str, float]], list[str]]) -> str:
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


def _sdf_text(table: pd.DataFrame) -> str:
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


TEXTS = {"mjcf": _mjcf_text, "isaaclab": _isaaclab_text, "gazebo": _sdf_text, "drake": _drake_text}
"""Text of a table of actuators, per program that reads it."""


def servos_to_write(
    robot: Robot, servo: Servo | None, path: str | os.PathLike[str]
) -> dict[str, JointServo]:
    """The position servos that a written file contains, by joint.

    Raises InputError: the format's actuators cannot hold the servo, and their old gains would not
    match the new bodies.
    """
    if servo is None or not format_of(robot, path).holds_servos:
        return {}
    more = [f"the term {name!r}" for name in servo.terms or ()]
    if servo.law != "position":
        more.append(f"commands of {servo.law}")
    if more:
        raise InputError(
            f"{os.fspath(path)}: actuators of this format cannot hold the servos that were found, "
            f"with {' and '.join(more)}; bodies without them would not follow commands as the "
            "robot does. Write a URDF, which has no actuators, and build the servo from fit.servo"
        )
    viscous = dict(zip(robot.joints, joint_values(robot, robot.values)["fv"], strict=True))
    none = [(0.0, np.inf)] * len(servo.kp)
    ends = zip(servo.kd, servo.limit, strict=True) if servo.limit else none
    # The servo's damping is a part of the viscous friction that was fitted.
    return {
        joint: JointServo(kp, max(servo.delay, 0.0), min(kd, float(viscous[joint])), limit)
        for (joint, kp), (kd, limit) in zip(servo.gains.items(), ends, strict=True)
    }


def servo_damping(robot: Robot, servos: Mapping[str, JointServo]) -> Array:
    """Standard parameters that are the servos' own damping: a part of viscous friction."""
    out = np.zeros(robot.size)
    for k, drive in enumerate(robot.drives):
        for joint in drive.coupling.keys() & servos.keys():
            out[robot.drive_columns(k)["fv"]] = servos[joint].kd
    return out
