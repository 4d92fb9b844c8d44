"""Reading what the ``save`` of a fit or of an online fit wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from feasid.core.arguments import checked
from feasid.core.arrays import DamagedError
from feasid.results.archive.members import read_members, read_record


@checked
def load(path: str | Path) -> Any:
    """Read a file that the method ``save`` of a fit, an online fit or a fleet wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    Fit, OnlineFit or Fleet
        A fit has everything except the samples of its logs; an online fit continues from its saved
        state.

    Raises
    ------
    InputError
        The file does not exist, is damaged, or was written by another version.
    LimitError
        It unpacks to more than 256 MB.
    """
    return read_members(path, _read)


def _read(path: str, content: Mapping[str, bytes]) -> Any:
    """What is saved, made again by the modules of its kind, which are imported only then."""
    if "model.json" not in content:
        raise DamagedError("it lacks model.json")
    kind = json.loads(content["model.json"])["format"]
    if kind not in READERS:
        raise DamagedError(f"its format is {kind!r}")
    return READERS[kind](path, content)


def _read_fit(path: str, content: Mapping[str, bytes]) -> Any:
    from feasid.results.archive.fit import read_fit
    from feasid.results.fit import fit_of_model

    return fit_of_model(read_fit(path, content))


def _read_fleet(path: str, content: Mapping[str, bytes]) -> Any:
    from feasid.applications.fleet.fleet import KNOWN, VERSION, Fleet

    return read_record(path, content, Fleet, KNOWN, VERSION, "a fleet; fit it again")


def _read_online(path: str, content: Mapping[str, bytes]) -> Any:
    from feasid.applications.online.online_fit import KNOWN, VERSION, OnlineFit, OnlineRecord
    from feasid.parameters.identifiability.base import base_parameters

    what = "an online fit; learn again"
    record = read_record(path, content, OnlineRecord, KNOWN, VERSION, what)
    robot = record.robot
    fit = OnlineFit(
        robot,
        record.rate,
        rules=record.rules,
        feasible=record.constraints.on(robot),
        base=base_parameters(robot),  # it has its joint terms, or none: nothing is added
        **record.options,
    )
    fit.restore(record)
    return fit


READERS = {"feasid model": _read_fit, "feasid fleet": _read_fleet, "feasid online": _read_online}
"""Kinds of files that `load` reads."""
