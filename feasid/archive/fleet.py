"""Fleets in files: the type, how robots differ, and the table; fits are saved one by one."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from feasid.archive.members import MODEL_KINDS, read_record, write_record
from feasid.core.codec import encode, kinds
from feasid.errors import OutputError
from feasid.estimation.priors import GaussianPrior
from feasid.fleet.fleet import Fleet
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


def save(fleet: Fleet, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a fleet; see `feasid.Fleet.save`."""
    options = {}
    for name, value in fleet.options.items():
        with suppress(OutputError):  # functions and solvers
            encode(value, {}, KNOWN)
            options[name] = value
    record = FleetRecord(
        replace(fleet.robot, source=None),
        fleet.prior,
        fleet.sizes,
        fleet.numbers,
        fleet.friction,
        fleet.outliers,
        options,
    )
    write_record(path, record, KNOWN, {"format": FORMAT, "version": VERSION}, {}, overwrite)


def read_fleet(path: str, content: Mapping[str, bytes]) -> Fleet:
    """The fleet that the members of an archive hold; see `feasid.load`."""
    r = read_record(path, content, FleetRecord, KNOWN, VERSION, "a fleet; fit it again")
    return Fleet(r.robot, r.prior, r.sizes, r.numbers, r.friction, r.outliers, options=r.options)
