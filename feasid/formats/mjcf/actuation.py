"""Joint torques of MuJoCo's actuators from their controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import DescriptionError
from feasid.formats.mjcf.compiled import compile_mjcf, describe_mjmodel
from feasid.formats.xml import parse_xml
from feasid.robot.description import Robot

LAWS = {"gaintype": ("FIXED", "AFFINE"), "biastype": ("NONE", "AFFINE"), "dyntype": ("NONE",)}
"""Types whose force follows from control, position and velocity alone."""


def read_controls(columns: Sequence[Any], robot: Robot) -> Any:
    """The robot's model in MuJoCo where a log has columns ``ctrl_<actuator>`` and no torques.

    None for others. `columns` are those of the log and of the options.
    """
    names = [c for c in columns if isinstance(c, str)]
    source = robot.source
    if source is None or source.format not in ("mjcf", "mujoco"):
        return None
    if not any(c.startswith("ctrl") for c in names) or any(c.startswith("tau") for c in names):
        return None
    if source.format == "mujoco":
        return source.reading["model"]
    return compile_mjcf(parse_xml(source.text, source.path))


def actuators(model: Any) -> list[str]:
    """Names of a model's actuators, each of which turns control, position and velocity into force.

    Raises
    ------
    DescriptionError
        Names an actuator with an activation, a muscle, a type of the user's own, a delay or a
        plugin: its force follows from more than a row of a log.
    """
    import mujoco  # type: ignore[import-untyped]

    kinds = {"gaintype": mujoco.mjtGain, "biastype": mujoco.mjtBias, "dyntype": mujoco.mjtDyn}
    out = []
    for k in range(model.nu):
        name = model.actuator(k).name or str(k + 1)
        for field, allowed in LAWS.items():
            kind = kinds[field](int(getattr(model, f"actuator_{field}")[k])).name.split("_")[-1]
            if kind not in allowed:
                raise DescriptionError(
                    f"actuator {name!r} has {field} {kind.lower()}: its force does not follow from "
                    "control, position and velocity of a row; log the torques (qfrc_actuator)",
                    actuator=name,
                )
        delays = np.asarray(getattr(model, "actuator_delay", np.zeros(model.nu)))
        if delays[k] or int(model.actuator_plugin[k]) >= 0:
            raise DescriptionError(
                f"actuator {name!r} has a delay or a plugin: log the torques (qfrc_actuator)",
                actuator=name,
            )
        out.append(name)
    return out


def actuator_torques(
    model: Any, robot: Robot, q: Array, dq: Array, controls: Mapping[str, Array]
) -> Array:
    """What MuJoCo's ``qfrc_actuator`` is at these states and controls [N m or N].

    Parameters
    ----------
    model : mujoco.MjModel
    robot : Robot
        Read from it; joints that it does not have are where they are held.
    q, dq : ndarray, shape (N, dof)
    controls : mapping of str to ndarray, shape (N,)
        By the actuator's name.

    Returns
    -------
    ndarray, shape (N, dof)
    """
    import mujoco

    links = describe_mjmodel(model).links
    names = [joint.name for link in links for joint in link.joints]
    held = {} if robot.source is None else dict(robot.source.reading.get("lock") or {})
    data = mujoco.MjData(model)
    for joint, position in held.items():
        data.qpos[model.jnt_qposadr[names.index(joint)]] = position
    places = [names.index(joint) for joint in robot.joints]
    at, moved = model.jnt_qposadr[places], model.jnt_dofadr[places]
    order = [controls[name] for name in actuators(model)]
    out = np.empty_like(q)
    for k, control in enumerate(np.column_stack(order)):
        data.qpos[at], data.qvel[moved], data.ctrl[:] = q[k], dq[k], control
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        mujoco.mj_fwdActuation(model, data)
        out[k] = data.qfrc_actuator[moved]
    return out
