"""From whatever the caller gives to a robot with its joint terms, and the log's reduced data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from feasid.errors import FeasidError, InputError, NotEnoughDataError
from feasid.identifiability.base import BaseParameters, base_parameters
from feasid.reduction.fleet import Progress, reduce_all
from feasid.reduction.sources import reduce_log
from feasid.reduction.triangle import Reduced, fingerprint
from feasid.robot.description import Robot
from feasid.threads import one_thread

if TYPE_CHECKING:
    import pandas as pd

Log: TypeAlias = "pd.DataFrame | str | Path"

DEFAULT_FRICTION = ("viscous", "coulomb", "offset")


@one_thread()
def reduce(
    data: Log | Reduced | Sequence[Log | Reduced],
    robot: Robot | str | Path | None = None,
    *,
    base: BaseParameters | None = None,
    workers: int = 1,
    client: Any = None,
    on_error: str = "raise",
    progress: Progress | None = None,
    **options: Any,
) -> Reduced:
    """Reduce a log, or many, to one small triangle per joint; see `Reduced`.

    Parameters
    ----------
    data : DataFrame, path, Reduced, Dask DataFrame, or a sequence of these
        Parquet files are streamed and may be larger than memory. Every partition of a Dask
        DataFrame is prepared by itself, so it should hold whole runs.
    robot : Robot or path, optional
        Its joint terms are taken as they are.
    base : BaseParameters, optional
        Default ``base_parameters(robot)``.
    workers : int
        Processes on this machine among which several logs are shared.
    client : dask.distributed.Client, optional
        Share the logs on this cluster instead.
    on_error : {"raise", "skip"}
        Whether a log that fails is an error (with the sum of the others in ``error.partial``) or
        a note.
    progress : callable, optional
        Called with (done, all) after each log.
    **options
        Those of `feasid.logs.frame.prepare`. An automatic cut-off is chosen from the first log.
    """
    if on_error not in ("raise", "skip"):
        raise InputError(f"on_error must be 'raise' or 'skip', not {on_error!r}")
    model = find_robot(data, robot)
    base = base_parameters(model) if base is None else base
    columns = [int(c) for c in base.independent]
    parts = single_logs(data)
    if not parts:
        raise NotEnoughDataError("there is no log: the sequence is empty")
    if len(parts) == 1 and client is None:
        total = reduce_log(parts[0], model, columns, options)
    else:
        options = _common_cutoff(parts, model, columns, options)
        job = partial(reduce_log, robot=model, columns=columns, options=options)
        outcome = reduce_all(job, parts, workers=workers, client=client, progress=progress)
        total = outcome.checked(on_error)
    if total.fingerprint != fingerprint(model, columns):
        raise InputError(
            "the reduced data belong to another robot, other joint terms or another gravity; "
            f"they hold {len(total.columns)} base parameters, robot {model.name!r} has "
            f"{len(columns)}"
        )
    return total if total.robot is not None else replace(total, robot=model)


def single_logs(data: Any) -> list[Any]:
    """The single logs: members of a sequence, partitions of a Dask DataFrame."""
    if isinstance(data, list | tuple):
        return [part for item in data for part in single_logs(item)]
    if hasattr(data, "to_delayed"):
        return list(data.to_delayed())
    return [data]


def _common_cutoff(
    parts: Sequence[Any], robot: Robot, columns: Sequence[int], options: dict[str, Any]
) -> dict[str, Any]:
    """Options with one cut-off for all logs: the caller's, or what the first log asks for."""
    fresh = [p for p in parts if not isinstance(p, Reduced) and not str(p).endswith(".reduced")]
    known = [p.cutoff for p in parts if isinstance(p, Reduced)]
    if options.get("cutoff") is not None or len(fresh) == 0:
        return options
    if known:
        return {**options, "cutoff": known[0]}
    for log in fresh:
        try:
            cutoff = reduce_log(log, robot, columns, options).cutoff
        except FeasidError:
            continue  # reported with its name when its turn comes
        return {**options, "cutoff": False if cutoff is None else cutoff}
    return options


def find_robot(data: Any, robot: Robot | str | Path | None) -> Robot:
    """The robot that the caller names, or the one that travels with the data."""
    if isinstance(robot, str | Path):
        from feasid.robot.load import load_robot

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
    robot: Robot,
    friction: Sequence[str] | None,
    drive_inertia: bool | None,
    notes: list[str],
) -> Robot:
    """The robot with the joint terms that a fit uses; appends what was assumed."""
    notes.extend(robot.source.notes if robot.source is not None else ())
    declared = [d for d in robot.drives if not d.from_file]
    if friction is None and drive_inertia is None and declared:
        return robot
    if friction is None:
        if declared:
            have = {s for d in declared for s in d.symbols}
            friction = [
                w for w, s in zip(DEFAULT_FRICTION, ("fv", "fc", "fo"), strict=True) if s in have
            ]
        else:
            friction = DEFAULT_FRICTION
            notes.append(
                "the robot declares no joint terms: viscous, Coulomb and offset friction are added "
                "to every joint (friction=() fits rigid bodies only)"
                if not robot.drives
                else "viscous, Coulomb and offset friction are fitted at every joint, not only "
                "where the description gives a value (friction=() fits rigid bodies only)"
            )
    if drive_inertia is None:
        drive_inertia = any("Ia" in d.symbols for d in robot.drives)
    shared = [d for d in robot.drives if len(d.coupling) > 1]
    return robot.with_joint_terms(friction, drive_inertia, couplings=shared)
