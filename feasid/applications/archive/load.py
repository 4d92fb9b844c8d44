"""Reading what the ``save`` of a fit or of an online fit wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from feasid.applications.archive.members import read_members
from feasid.core.arguments import checked
from feasid.core.arrays import DamagedError


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
    """A fit or an online fit, whose modules are imported only then."""
    if "model.json" not in content:
        raise DamagedError("it lacks model.json")
    model = json.loads(content["model.json"])
    if model["format"] == "feasid online":
        from feasid.applications.archive.online import read_online

        return read_online(path, content)
    if model["format"] == "feasid fleet":
        from feasid.applications.archive.fleet import read_fleet

        return read_fleet(path, content)
    from feasid.applications.archive.fit import FORMAT, read_fit

    if model["format"] != FORMAT:
        raise DamagedError(f"its format is {model['format']!r}")
    return read_fit(path, content)
