"""Online fits kept in files: robot, options and all that was learnt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from feasid.applications.online.acceptance import AcceptanceRules, Decision, Evidence
from feasid.applications.online.changes import ModelChange
from feasid.core.codec import kinds
from feasid.parameters.feasibility.constraints.sets import UserConstraints
from feasid.results.archive.members import MODEL_KINDS
from feasid.robot.description import Robot

VERSION = 5
HEAD = {"format": "feasid online", "version": VERSION}


@dataclass(frozen=True, eq=False)
class OnlineRecord:
    """Contents of a saved online fit."""

    robot: Robot
    rate: float
    options: Mapping[str, Any]
    rules: AcceptanceRules
    constraints: UserConstraints
    state: Mapping[str, Mapping[str, Any]]  #: What each part has learnt.
    #: Fields, but for `base`, of the last estimate, and of the last that was returned, if another.
    estimates: tuple[Mapping[str, Any], ...]
    unsuited: bool  #: Whether that last estimate is from before a change.


KNOWN = MODEL_KINDS | kinds(OnlineRecord, AcceptanceRules, ModelChange, Decision, Evidence)
