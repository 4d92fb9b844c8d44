"""The robot of a log, with the joint terms that a fit of it uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from feasid.core.errors import InputError, did_you_mean
from feasid.core.notes import Note, as_notes
from feasid.robot.description import Robot
from feasid.robot.drives import Drive
from feasid.robot.formats.load import load_robot
from feasid.robot.joint_terms import FRICTION, USUAL_FRICTION

GEAR_FRICTION = ("sqrt", "load")
"""Friction of gears, of which a fit keeps what the log supports joint by joint."""

MOTOR_SYMBOLS = ("Ia", "fv", "fc")
"""Terms of a motor that moves several joints; offsets are the joints' own."""

FIT_TRANSITION_SPEED = 0.005
"""Speed [rad/s or m/s] over which fitted Coulomb friction changes its sign: slower than any joint
moves on purpose, faster than encoders resolve."""

TERMS_ADDED_NOTE = (
    "the robot declares no joint terms: drive inertia, viscous, Coulomb and offset friction are "
    "added to every joint (friction=(), drive_inertia=False fits rigid bodies only)"
)

TERMS_EVERYWHERE_NOTE = (
    "drive inertia, viscous, Coulomb and offset friction are fitted at every joint, not only where "
    "the description gives a value (friction=(), drive_inertia=False fits rigid bodies only)"
)

NO_INERTIA_NOTE = (
    "the robot's joint terms were given with its custom ones and have no drive inertia, so the fit "
    "has none: fit with drive_inertia=True, unless the motors weigh nothing"
)


def resolve_robot(data: Any, robot: Robot | str | Path | None) -> Robot:
    """The robot that the caller names, or the one that travels with the data.

    Raises InputError: no robot is given or attached.
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


def with_drive_options(robot: Robot, options: Mapping[str, Any]) -> Robot:
    """The robot as `feasid.options.tables.CouplingOptions` describe its motors, if they do.

    Raises InputError, DescriptionError: names a joint that does not exist, or a motor that is there
    already.
    """
    shared = [
        Drive(name, dict(factors), MOTOR_SYMBOLS)
        for name, factors in (options.get("couplings") or {}).items()
    ]
    robot = replace(robot, drives=(*robot.drives, *shared)) if shared else robot
    for name in ("elastic", "passive"):
        try:
            for joint in options.get(name) or ():
                robot.joint_index(joint)
        except InputError as error:
            raise InputError(f"{name}= must name joints: {error}", option=name) from error
    # Passive joints first: the others get terms of motors with the springs.
    robot = robot.with_passive_joints(options.get("passive") or ())
    elastic = [j for j in options.get("elastic") or () if j not in robot.elastic]
    return robot.with_elastic_joints(elastic) if elastic else robot


@dataclass(frozen=True)
class CandidateTerms:
    """Friction terms of which a log may choose: `words`, or by default those of gears."""

    words: Sequence[str] | None = None


def with_fit_terms(
    robot: Robot,
    friction: Sequence[str] | None,
    drive_inertia: bool | None,
    offer: CandidateTerms | None = None,
) -> tuple[Robot, list[Note]]:
    """The robot with the joint terms that a fit uses, and notes on assumptions.

    `friction`: words of `feasid.robot.joint_terms.FRICTION`; default the robot's own terms, else
    the first three. `drive_inertia`: default the robot's own, else true where friction is fitted.
    `offer`: further terms to choose from, those of gears only where the robot has no terms of its
    own; Coulomb friction then changes its sign over `FIT_TRANSITION_SPEED`.
    """
    notes = [*as_notes(robot.source.notes if robot.source is not None else ())]
    added_drives = [d for d in robot.drives if not d.from_file and len(d.coupling) == 1]
    shared_drives = [d for d in robot.drives if len(d.coupling) > 1]
    words = () if offer is None or not offer.words else offer.words
    named = [word for word in words if word in FRICTION]  # no ripple: its waves are not known yet
    if drive_inertia is None and any(d.features and "Ia" not in d.symbols for d in added_drives):
        notes.append(Note(NO_INERTIA_NOTE, "no-drive-inertia"))
    if friction is None and drive_inertia is None and added_drives and not named:
        return robot if offer is None else _with_smooth_friction(robot), notes
    have = {s for d in added_drives for s in d.symbols}
    if drive_inertia is None:
        drive_inertia = "Ia" in have if added_drives else friction is None or len(friction) > 0
    if friction is None and added_drives:
        friction = [word for word, symbols in FRICTION.items() if have.issuperset(symbols)]
    elif friction is None:
        described = bool(np.isfinite(robot.values[robot.inertial_columns]).all())
        # The load of a gear is the torque of its own joint.
        more = GEAR_FRICTION if described and robot.is_plain else GEAR_FRICTION[:1]
        friction = [*USUAL_FRICTION, *(more if offer == CandidateTerms() else ())]
        notes.append(
            Note(TERMS_EVERYWHERE_NOTE if robot.drives else TERMS_ADDED_NOTE, "friction-added")
        )
    friction = [*friction, *(c for c in named if c not in friction)]
    model = robot.with_joint_terms(friction, drive_inertia, couplings=shared_drives)
    return model if offer is None else _with_smooth_friction(model), notes


def without_unmeasured_terms(robot: Robot, measured: Sequence[str]) -> tuple[Robot, list[Note]]:
    """The robot without the joint terms of joints whose torques were not measured, and a note.

    Raises InputError: no joint at all, one that the robot does not have, or torques of the robot
    are not those of single joints.
    """
    if not measured:
        raise InputError("measured names no joint: without any torque nothing can be fitted")
    for joint in measured:
        if joint not in robot.joints:
            hint = did_you_mean(joint, robot.joints)
            there = ", ".join(robot.joints)
            raise InputError(
                f"measured={[*measured]}: there is no joint {joint!r}{hint}; there are {there}",
                joint=joint,
            )
    if not robot.is_plain:
        raise InputError(
            f"measured is for robots whose joints move by themselves, with one degree of freedom "
            f"each; robot {robot.name!r} has others: leave it out",
            option="measured",
        )
    unmeasured = [j for j in robot.joints if j not in measured]
    # A spring is measured at either end, and by a sensor.
    springs = [d for d in robot.drives if "k" in d.symbols and d.coupling.keys() & {*measured}]
    drives = tuple(d for d in robot.drives if d in springs or d.coupling.keys() <= {*measured})
    shared_drives = [d for d in robot.drives if len(d.coupling) > 1 and d not in drives]
    if shared_drives:
        raise InputError(
            f"drive {shared_drives[0].name!r} moves several joints: measured must name all of "
            f"{', '.join(shared_drives[0].coupling)}",
            drive=shared_drives[0].name,
        )
    if not unmeasured:
        return robot, []
    load = robot.load_model if any(d.depends_on_load for d in drives) else None
    text = (
        f"torque of {', '.join(unmeasured)}: not measured, so that these joints have no equations "
        "and no joint terms"
    )
    note = Note(text, "unmeasured", joints=tuple(unmeasured))
    return replace(robot, drives=drives, load_model=load), [note]


def _with_smooth_friction(robot: Robot) -> Robot:
    """Smooth Coulomb friction over `FIT_TRANSITION_SPEED` for drives without such a speed."""
    drives = [
        d if d.transition else replace(d, transition=FIT_TRANSITION_SPEED) for d in robot.drives
    ]
    return replace(robot, drives=tuple(drives))
