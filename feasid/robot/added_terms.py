"""The robot of a log, with the joint terms that a fit of it uses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from feasid.errors import InputError
from feasid.notes import Note
from feasid.notes import notes as as_notes
from feasid.robot.description import Robot
from feasid.robot.load import load_robot

FRICTION = {"viscous": "fv", "coulomb": "fc", "offset": "fo"}

ADDED = (
    "the robot declares no joint terms: viscous, Coulomb and offset friction are added to every "
    "joint (friction=() fits rigid bodies only)"
)

EVERYWHERE = (
    "viscous, Coulomb and offset friction are fitted at every joint, not only where the "
    "description gives a value (friction=() fits rigid bodies only)"
)


def robot_of(data: Any, robot: Robot | str | Path | None) -> Robot:
    """The robot that the caller names, or the one that travels with the data.

    Raises
    ------
    InputError
        When there is none.
    """
    if isinstance(robot, str | Path):
        return load_robot(robot)
    if isinstance(robot, Robot):
        return robot
    if robot is not None:
        raise InputError(f"robot must be a Robot or the path of one, not {type(robot).__name__}")
    first = data[0] if isinstance(data, list | tuple) and data else data
    attached = getattr(first, "attrs", {}).get("robot") or getattr(first, "robot", None)
    if isinstance(attached, Robot):
        return attached
    raise InputError(
        'no robot: pass one, feasid.fit(df, "arm.urdf"), or attach it, df.attrs["robot"] = robot'
    )


def with_terms(
    robot: Robot, friction: Sequence[str] | None, drive_inertia: bool | None
) -> tuple[Robot, list[Note]]:
    """The robot with the joint terms that a fit uses, and what was assumed.

    Parameters
    ----------
    robot : Robot
    friction : sequence of {"viscous", "coulomb", "offset"}, optional
        Default those that the robot declares, all three when it declares none.
    drive_inertia : bool, optional
        Default as the robot declares, else no.
    """
    notes = [*as_notes(robot.source.notes if robot.source is not None else ())]
    declared = [d for d in robot.drives if not d.from_file]
    if friction is None and drive_inertia is None and declared:
        return robot, notes
    if friction is None and declared:
        have = {s for d in declared for s in d.symbols}
        friction = [word for word, symbol in FRICTION.items() if symbol in have]
    elif friction is None:
        friction = [*FRICTION]
        notes.append(Note(EVERYWHERE if robot.drives else ADDED, "friction-added"))
    if drive_inertia is None:
        drive_inertia = any("Ia" in d.symbols for d in robot.drives)
    shared = [d for d in robot.drives if len(d.coupling) > 1]
    return robot.with_joint_terms(friction, drive_inertia, couplings=shared), notes
