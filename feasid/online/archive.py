"""Online fits kept in files: robot, options and all that was learnt, as text and plain arrays.

A file is a ZIP archive of ``model.json`` and ``arrays.npz``, as of a saved fit
(`feasid.archive.fit`); nothing of it is executed or unpickled.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

import feasid
from feasid.archive.fit import pack_arrays, robot_from_data, robot_to_data
from feasid.core.arrays import MEANING, read_arrays, require_version, unpack_archive
from feasid.core.files import write_atomically
from feasid.feasibility.constraints.sets import feasible_set_from_data, feasible_set_to_data
from feasid.online.acceptance import AcceptanceRules, Decision, Evidence, OnlineEstimate
from feasid.online.changes import ModelChange

FORMAT, VERSION = "feasid online", 3

MAX_ARRAY_BYTES = 256 * 1024 * 1024
"""Bytes that the arrays may unpack to."""

STATE = {
    "_store": ("_triangles", "_count", "_tree", "_counts", "_next", "filled"),
    "_invariant": ("_rows", "_left"),
    "_detector": (
        "_moved",
        "_scatter",
        "_own",
        "_batches",
        "_power",
        "_latest",
        "_score",
        "_seconds",
        "_information",
        "_directions",
        "alarm",
        "_squares",
    ),
    "gate": ("open", "_agreeing"),
    "_buffer": ("received",),
    "_own": (
        "_noise",
        "_known",
        "_learnt",
        "_since",
        "_still",
        "_pending",
        "_converged",
        "_errors",
        "_before",
        "_bad",
    ),
}
"""Attributes that are kept, of the fit's parts and of the fit itself."""


def save(fit: Any, path: str | Path, *, overwrite: bool = False) -> None:
    """Write what an online fit has learnt; see `feasid.OnlineFit.save`."""
    arrays: dict[str, Any] = {}
    last = fit._last
    model = {
        "format": FORMAT,
        "version": VERSION,
        "meaning": MEANING,
        "feasid": feasid.__version__,
        "robot": robot_to_data(fit.robot, arrays),
        "rate": fit.rate,
        "options": fit.options,
        "rules": asdict(fit.gate.rules),
        "feasible": feasible_set_to_data(fit.problem.feasible),
        "faults": dict(fit.faults),
        "changes": [asdict(c) for c in fit.changes],
        "state": {
            part: {
                name: _to_plain(getattr(owner, name), arrays)
                for name in names
                if hasattr(owner, name)
            }
            for part, names in STATE.items()
            for owner in (getattr(fit, part, fit),)
        },
        "last": None if last is None else _to_plain(_values(last), arrays),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", json.dumps(model))
        archive.writestr("arrays.npz", pack_arrays(arrays))
    write_atomically(path, buffer.getvalue(), overwrite=overwrite)


def saved_model(path: str | Path, content: Mapping[str, bytes]) -> dict[str, Any]:
    """What an archive says of an online fit: robot, rate, options and arrays.

    Raises InputError: it was written by another version.
    """
    model: dict[str, Any] = json.loads(content["model.json"])
    kind = f"an online fit saved by feasid {model['feasid']}; learn again"
    require_version(str(path), kind, model, VERSION)
    packed = io.BytesIO(content["arrays.npz"])
    arrays = read_arrays(unpack_archive(packed, f"arrays.npz of {path}", MAX_ARRAY_BYTES))
    robot = robot_from_data(model["robot"], arrays)
    rules = model["rules"] | {"inertia": tuple(model["rules"]["inertia"])}
    chosen = {
        "rules": AcceptanceRules(**rules),
        "feasible": feasible_set_from_data(robot, model["feasible"]),
    }
    return model | {"robot": robot, "options": model["options"] | chosen, "arrays": arrays}


def restore(fit: Any, model: Mapping[str, Any]) -> None:
    """Give a new fit what a saved one had learnt.

    Raises ValueError, LookupError, TypeError: the archive is damaged.
    """
    arrays = model["arrays"]
    for part, values in model["state"].items():
        owner = getattr(fit, part, fit)
        for name, value in values.items():
            if name not in STATE[part]:
                raise ValueError(f"it holds an unknown part {name!r}")
            setattr(owner, name, _as_before(_from_plain(value, arrays), getattr(owner, name)))
    fit._checks.faults.update(Counter(model["faults"]))
    fit.changes = tuple(ModelChange(**c) for c in model["changes"])
    if model["last"] is not None:
        fit._last = fit._latest = fit._unsuited = _estimate(fit, _from_plain(model["last"], arrays))


def _estimate(fit: Any, values: dict[str, Any]) -> OnlineEstimate:
    """The last estimate, once more verified."""
    decision = values.pop("decision")
    evidence = Evidence(
        **decision["evidence"] | {"inertia": tuple(decision["evidence"]["inertia"])}
    )
    state = Decision(decision["open"], tuple(decision["reasons"]), evidence)
    broken = fit.problem.feasible.violations(values["delta"])
    if broken or values["covariance"].shape != 2 * (fit.base.size,):
        raise ValueError(f"its last estimate is no model of its robot: {', '.join(broken)}")
    return OnlineEstimate(base=fit.base, decision=state, **values)


def _values(part: Any) -> dict[str, Any]:
    """Fields of an estimate and of what it consists of, but for the base parameters."""
    out = {f.name: getattr(part, f.name) for f in fields(part) if f.name != "base"}
    return {k: _values(v) if isinstance(v, Decision | Evidence) else v for k, v in out.items()}


def _to_plain(value: Any, arrays: dict[str, Any]) -> Any:
    """What JSON can hold; arrays by their name among `arrays`."""
    if isinstance(value, np.ndarray):
        name = f"array_{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, list | tuple | deque):
        return [_to_plain(v, arrays) for v in value]
    if isinstance(value, dict):
        return {"items": {k: _to_plain(v, arrays) for k, v in value.items()}}
    return value.item() if isinstance(value, np.generic) else value


def _from_plain(value: Any, arrays: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_from_plain(v, arrays) for v in value]
    if isinstance(value, dict):
        if "array" in value:
            return arrays[value["array"]]
        return {k: _from_plain(v, arrays) for k, v in value["items"].items()}
    return value


def _as_before(value: Any, before: Any) -> Any:
    """A value in the container that it was in, arrays of the shape that they had."""
    if isinstance(before, deque):
        return deque(value, maxlen=before.maxlen)
    if isinstance(before, np.ndarray) and np.shape(value) != before.shape:
        raise ValueError(f"it holds an array of shape {np.shape(value)}, not {before.shape}")
    if isinstance(before, list) and len(value) != len(before):
        raise ValueError(f"it holds {len(value)} parts, not {len(before)}")
    return value
