"""Which joints' torques a log holds: a sensor that failed leaves a column out, or empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from feasid.errors import LogError, did_you_mean
from feasid.logs.columns import checked_mapping, find_column, find_columns
from feasid.logs.floating import robot_floats
from feasid.logs.recording import Recording
from feasid.logs.stream import first_row
from feasid.robot.description import Robot

if TYPE_CHECKING:
    import pandas as pd

ABSENT, EMPTY = "no column", "an empty column"


def without_torque(
    log: Recording,
    robot: Robot,
    columns: Mapping[str, Any] | None = None,
    topic: str | None = None,
) -> dict[str, str]:
    """Joints whose torque a log does not hold, and why.

    A column under a name that is nearly the joint's is no absent one, and no joint's is absent
    where all are: both are errors of reading. Of Parquet files, which may be longer than memory,
    only the names of columns are looked at.

    Parameters
    ----------
    log : Recording
    robot : Robot
        Robots with couplings, loops or several degrees of freedom per joint have none.
    columns : mapping, optional
        Other names, see `feasid.logs.columns.find_columns`.
    topic : str, optional
        Of a bag.

    Returns
    -------
    dict of str to {"no column", "an empty column"}

    Raises
    ------
    LogError
        The file cannot be read, or another column is wrong.
    """
    alone = robot.dof == len(robot.bodies) and not robot.couplings and not robot.loops
    if not alone or robot_floats(robot):
        return {}
    df = first_row(log.source) if log.streamed else log.table(robot, topic)
    try:
        layout = find_columns(df, robot, columns, torque=False)
    except LogError:
        return {}  # reading says what is wrong
    mapping = checked_mapping(df, robot.joints, dict(columns or {}))
    found = {
        joint: find_column(df, "tau", joint, k, mapping)[0] for k, joint in enumerate(robot.joints)
    }
    missing = {joint: ABSENT for joint, column in found.items() if column is None}
    used = {layout.time, *found.values(), *(c for cs in layout.columns.values() for c in cs or ())}
    rest = [c for c in df.columns if c not in used]
    if any(did_you_mean(f"tau_{joint}", rest) for joint in missing):
        return {}
    if not log.streamed:
        missing |= {j: EMPTY for j, c in found.items() if c is not None and _empty(df, c)}
    return missing if len(missing) < len(found) else {}


def _empty(df: pd.DataFrame, column: Any) -> bool:
    return bool(df.columns.is_unique) and bool(df[column].isna().all())
