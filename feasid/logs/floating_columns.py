"""The columns of a floating robot's log: found, named when they lack, and as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from feasid.core.arrays import Array
from feasid.dynamics.floating import rotation_matrices
from feasid.errors import InputError, LogError, did_you_mean
from feasid.logs.columns import numbers
from feasid.logs.mounts import Imu, Touch
from feasid.robot.description import Robot

if TYPE_CHECKING:
    import pandas as pd

XYZ = ("x", "y", "z")

POSE = tuple(f"base_{a}" for a in (*XYZ, "qx", "qy", "qz", "qw"))
IMU = tuple(f"{kind}_{a}" for kind in ("gyro", "acc") for a in XYZ)


def check_names(
    df: pd.DataFrame, robot: Robot, base: int, imu: Imu | None, contacts: Mapping[str, Touch]
) -> None:
    """Refuse contacts and IMUs on links that do not exist, and columns that nothing explains."""
    body = robot.bodies[base]
    links = [body.name, *(m.name for m in body.members)]
    if imu is not None and imu.link not in links:
        raise InputError(
            f"the IMU is on {imu.link!r}, which is no link of the base"
            f"{did_you_mean(imu.link, links)}: {', '.join(links)}"
        )
    names = [str(c) for c in df.columns]
    logged = {c[6:-2] for c in names if c.startswith("force_") and c[-2] == "_"}
    flagged = {c[8:] for c in names if c.startswith("contact_")}
    for name in sorted(flagged - set(contacts)):
        raise LogError(
            f"the log says when a contact {name!r} touches, but not where it is: "
            f'contacts={{"{name}": Touch(body, position)}}',
            column=f"contact_{name}",
        )
    for name in sorted(flagged & logged):
        raise LogError(
            f"the log has forces of contact {name!r} and a column 'contact_{name}', which is for "
            f"unknown ones: leave either out",
            column=f"contact_{name}",
        )
    for name in sorted(logged - set(contacts)):
        raise LogError(
            f"the log has forces of a contact {name!r}, but not where it acts: "
            f'contacts={{"{name}": Touch(body, position, axes)}}',
            column=f"force_{name}_x",
        )
    for name, touch in contacts.items():
        if touch.body not in [b.name for b in robot.bodies]:
            hint = did_you_mean(touch.body, [b.name for b in robot.bodies])
            raise InputError(
                f"contact {name!r}: robot {robot.name!r} has no body {touch.body!r}{hint}"
            )


def arrays_of_log(
    df: pd.DataFrame,
    robot: Robot,
    imu: Imu | None,
    contacts: Mapping[str, Touch],
    torque: bool,
) -> dict[str, Array]:
    """The log's signals as arrays; orientation as matrices, flattened."""
    joints = [b.joint for b in robot.bodies if b.dof == 1]
    wanted = {"q": [f"q_{j}" for j in joints], "tau": [f"tau_{j}" for j in joints]}
    if imu is not None:
        wanted |= {kind: [f"{kind}_{a}" for a in XYZ] for kind in ("gyro", "acc")}
    else:
        wanted["place"] = [f"base_{a}" for a in XYZ]
    wanted |= {f"force_{name}": [f"force_{name}_{a}" for a in XYZ] for name in contacts}
    absent = [] if torque else wanted.pop("tau")
    out = {kind: stacked(df, names) for kind, names in wanted.items()}
    if absent:
        out["tau"] = np.full((len(df), len(absent)), np.nan)
    if imu is None or any(touch.axes == "world" for touch in contacts.values()):
        quaternion = stacked(df, [f"base_q{a}" for a in "xyzw"])
        out["turn"] = rotation_matrices(quaternion).reshape(-1, 9)
    return out


def stacked(df: pd.DataFrame, names: Sequence[str]) -> Array:
    """Columns beside each other, finite."""
    for name in names:
        if name not in df:
            raise LogError(
                f"the log has no column {name!r}{did_you_mean(name, df.columns)}", column=name
            )
    values = np.stack([numbers(df, name) for name in names], axis=1)
    bad = np.argwhere(~np.isfinite(values))
    if bad.size:
        row, k = (int(b) for b in bad[0])
        raise LogError(
            f"column {names[k]!r} is missing or not finite in row {row}", column=names[k], row=row
        )
    return values
