"""Fleets in files: the type, how robots differ, and the table; fits are saved one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from feasid.core.codec import kinds
from feasid.identification.estimation.priors import GaussianPrior
from feasid.results.archive.members import MODEL_KINDS, read_record, savable_options, write_record
from feasid.robot.description import Robot

FORMAT, VERSION = "feasid fleet", 1


@dataclass(frozen=True, eq=False)
class FleetRecord:
    """Contents of a saved fleet."""

    robot: Robot
    prior: GaussianPrior
    sizes: Mapping[str, float]
    numbers: Mapping[str, tuple[float, float, float, float]]
    friction: Mapping[str, tuple[float, ...]]
    outliers: Mapping[str, str]
    options: Mapping[str, Any]


KNOWN = MODEL_KINDS | kinds(FleetRecord, GaussianPrior)


def save(fleet: Any, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fleet; see `feasid.Fleet.save`."""
    parts = {f.name: getattr(fleet, f.name) for f in fields(FleetRecord)}
    parts["robot"] = replace(fleet.robot, source=None)
    parts["options"] = savable_options(fleet.options, KNOWN)
    write_record(
        path, FleetRecord(**parts), KNOWN, {"format": FORMAT, "version": VERSION}, {}, overwrite
    )


def read_fleet(path: str, content: Mapping[str, bytes]) -> FleetRecord:
    """The fleet that the members of an archive hold; see `feasid.load`."""
    return read_record(path, content, FleetRecord, KNOWN, VERSION, "a fleet; fit it again")
