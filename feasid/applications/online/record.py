"""Online fits kept in files: robot, options and all that was learnt."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any

import numpy as np

from feasid.applications.online.acceptance import (
    AcceptanceRules,
    Decision,
    Evidence,
    OnlineEstimate,
)
from feasid.applications.online.changes import REMEMBERED_BATCHES, ModelChange
from feasid.core.arguments import (
    Count,
    NonNegative,
    Share,
    UnfitError,
    array,
    count,
    kind_from_annotation,
    number,
)
from feasid.core.arrays import Array, DamagedError, require_finite
from feasid.core.codec import construct, kinds
from feasid.parameters.feasibility.constraints.sets import UserConstraints
from feasid.results.archive.members import MODEL_KINDS, read_record, write_record
from feasid.robot.description import Robot

FORMAT, VERSION = "feasid online", 4


@dataclass(frozen=True, eq=False)
class OnlineRecord:
    """Contents of a saved online fit."""

    robot: Robot
    rate: float
    options: Mapping[str, Any]
    rules: AcceptanceRules
    constraints: UserConstraints
    faults: Mapping[str, int]
    changes: tuple[ModelChange, ...]
    state: Mapping[str, Mapping[str, Any]]  #: See `_state_kinds`.
    last: Mapping[str, Any] | None  #: The last estimate's fields, but for the base parameters.


KNOWN = MODEL_KINDS | kinds(OnlineRecord, AcceptanceRules, ModelChange, Decision, Evidence)

Time = Annotated[float, number(finite=False)]


def _state_kinds(fit: Any) -> dict[str, dict[str, Any]]:
    """Attributes that are saved, by the part of the fit that has them, with their kinds."""
    dof, size, changes = fit.robot.dof, fit.base.size, len(fit._possible.names)

    def real(*shape: int | str) -> Any:
        return Annotated[Array, array(*shape)]

    def several(*kinds: Any) -> Any:
        return GenericAlias(tuple, kinds)

    blocks = getattr(fit._store, "blocks", 1)
    each, change = real(dof), real(changes)
    triangles = several(*(real(len(s) + 1, len(s) + 1) for s in fit._supports))
    kept = {
        "_triangles": triangles,
        "_count": NonNegative,
        "_tree": several(triangles | None, ...),
        "_counts": several(Count, ...),
        "_next": Annotated[int, count(0, blocks - 1)],
        "filled": Annotated[int, count(0, blocks)],
    }
    rows = real("rows", size + 1)
    return {
        "_store": {name: kind for name, kind in kept.items() if hasattr(fit._store, name)},
        "_invariant": {"_rows": rows | None, "_left": Share},
        "_detector": {
            "_moved": NonNegative,
            "_scatter": change,
            "_own": change,
            "_batches": Annotated[float, number(0.0, REMEMBERED_BATCHES)],
            "_power": each | None,
            "_latest": several(several(change, change, each), ...),
            "alarm": several(Time, change, real(size), real(size, changes)) | None,
        },
        "gate": {"open": bool, "_agreeing": Count},
        "_buffer": {"received": Count},
        "": {
            "_noise": each,
            "_known": float,
            "_learnt": Time,
            "_since": Count,
            "_still": Count,
            "_pending": bool,
            "_converged": bool,
            "_errors": several(several(each, each, Count), ...),
            "_before": rows,
            "_bad": several(Count, ...),
        },
    }


def save(fit: Any, path: str | Path, *, overwrite: bool = False) -> None:
    """Write what an online fit has learnt; see `feasid.OnlineFit.save`."""
    last = fit._last
    record = OnlineRecord(
        fit.robot,
        fit.rate,
        fit.options,
        fit.gate.rules,
        UserConstraints.of(fit.problem.feasible),
        fit.faults,
        fit.changes,
        {
            part: {name: getattr(getattr(fit, part, fit), name) for name in names}
            for part, names in _state_kinds(fit).items()
        },
        None if last is None else {f.name: getattr(last, f.name) for f in fields(last)[1:]},
    )
    write_record(path, record, KNOWN, {"format": FORMAT, "version": VERSION}, {}, overwrite)


def read(path: str, content: Mapping[str, bytes]) -> OnlineRecord:
    """The record that the members of an archive hold."""
    return read_record(path, content, OnlineRecord, KNOWN, VERSION, "an online fit; learn again")


def restore(fit: Any, record: OnlineRecord) -> None:
    """Give a new online fit what another had learnt."""
    for part, expected in _state_kinds(fit).items():
        owner, values = getattr(fit, part, fit), record.state[part]
        if set(values) != set(expected):
            raise DamagedError(f"it holds {sorted(values)} in place of {sorted(expected)}")
        for name, hint in expected.items():
            kind, before = kind_from_annotation(hint), getattr(owner, name)
            try:
                value = kind.convert(values[name])
            except UnfitError as error:
                raise DamagedError(f"its {name} is not {kind.text} {error}") from error
            if isinstance(before, deque):
                value = deque(value, maxlen=before.maxlen)
            elif isinstance(before, list):
                if len(value) != len(before):
                    raise DamagedError(f"it holds {len(value)} parts, not {len(before)}")
                value = list(value)
            setattr(owner, name, value)
    fit._checks.faults.update(Counter(record.faults))
    fit.changes = record.changes
    if record.last is not None:
        fit._last = fit._latest = fit._unsuited = _estimate(fit, record.last)


def _estimate(fit: Any, values: Mapping[str, Any]) -> OnlineEstimate:
    """The last estimate, once more verified."""
    estimate: OnlineEstimate = construct(OnlineEstimate, {"base": fit.base, **values})
    evidence, size, dof = estimate.decision.evidence, fit.base.size, fit.robot.dof
    require_finite(estimate.covariance, (size, size), "the last covariance")
    require_finite(estimate.noise, (dof,), "the last noise")
    rows = estimate.r2_joints, evidence.error, evidence.nominal_error
    if broken := fit.problem.feasible.violations(estimate.delta):
        raise DamagedError(f"its last estimate is no model of its robot: {', '.join(broken)}")
    if any(np.shape(row) != (dof,) for row in rows):
        raise DamagedError("its last estimate is of another robot")
    return estimate
