"""Reading what the ``save`` of a fit or of an online fit wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from feasid.core.arguments import checked
from feasid.core.arrays import DamagedError, unpack_archive
from feasid.core.errors import FeasidError, InputError
from feasid.core.files import open_for_reading
from feasid.results.archive import members


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
    try:
        with open_for_reading(path, members.MAX_UNPACKED_BYTES) as file:
            content = unpack_archive(file, str(path), members.MAX_UNPACKED_BYTES)
        if "model.json" not in content:
            raise DamagedError("it lacks model.json")
        return _read(str(path), content, json.loads(content["model.json"])["format"])
    except FeasidError:
        raise
    except members.CONTENT_ERRORS as error:
        raise InputError(f"{path} is not a saved fit: {error}", path=str(path)) from error


def _read(path: str, content: Mapping[str, bytes], kind: str) -> Any:
    """What is saved, made again by the modules of its kind, which are imported only then."""
    if kind == "feasid model":
        from feasid.results.archive.fit import read_fit
        from feasid.results.fit import fit_of_model

        return fit_of_model(read_fit(path, content))
    if kind == "feasid fleet":
        from feasid.applications.fleet import fleet

        parts = fleet.Fleet, fleet.KNOWN, fleet.VERSION
        return members.read_record(path, content, *parts, "a fleet; fit it again")
    if kind != "feasid online":
        raise DamagedError(f"its format is {kind!r}")
    from feasid.applications.online.online_fit import KNOWN, VERSION, OnlineFit, OnlineRecord
    from feasid.parameters.identifiability.base import base_parameters

    what = "an online fit; learn again"
    record = members.read_record(path, content, OnlineRecord, KNOWN, VERSION, what)
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
