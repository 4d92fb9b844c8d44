"""From logs of any kind to reduced data: each log is read once and added to triangles.

`restrict_terms` changes reduced data without reading a log again.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack

import numpy as np
from scipy.linalg import block_diag

from feasid.core.arguments import checked
from feasid.core.arrays import Mask
from feasid.core.errors import FeasidError, InputError, NotEnoughDataError
from feasid.core.files import is_folder, is_regular
from feasid.core.notes import Note
from feasid.core.progress import step
from feasid.core.threads import one_thread
from feasid.identification.regression.duplicates import refuse_repeated_logs
from feasid.identification.regression.folds import triangularise
from feasid.identification.regression.parallel import LogTask, Source, reduce_all, reduce_task
from feasid.identification.regression.triangle import Reduced, fingerprint_of, without_rows
from feasid.logs.columns import check_column_mapping
from feasid.logs.read.arrays import is_tuple_of_arrays
from feasid.logs.read.formats import files_of_logs, is_reduced
from feasid.logs.recording import (
    Recording,
    content_digest,
    find_missing_torques,
    head_of,
    read_motions,
)
from feasid.logs.temperature import join_temperature_notes
from feasid.options.complete import check_options, document_options, select_options
from feasid.options.tables import (
    FitOptions,
    LoadOptions,
    LogOptions,
    MeasuredOptions,
    ReduceOptions,
    TermOptions,
)
from feasid.parameters.identifiability.base import BaseParameters, base_parameters
from feasid.robot.description import Robot
from feasid.robot.formats.fit_robot import (
    CandidateTerms,
    resolve_robot,
    with_drive_options,
    with_fit_terms,
    without_unmeasured_terms,
)

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client

Log: TypeAlias = "pd.DataFrame | Mapping[str, Any] | str | Path | Recording"


@checked
@document_options(ReduceOptions)
@one_thread()
def reduce(
    data: Log | Reduced | Sequence[Log | Reduced],
    robot: Robot | str | Path | None = None,
    *,
    base: BaseParameters | None = None,
    workers: int = 1,
    executor: Executor | None = None,
    client: Client | None = None,
    on_error: Literal["raise", "skip"] = "raise",
    checkpoints: str | Path | None = None,
    **options: Unpack[ReduceOptions],
) -> Reduced:
    """Reduce a log, or many, to one small triangle per joint; see `Reduced`.

    Parameters
    ----------
    data : DataFrame, mapping of arrays, path, Reduced, Dask DataFrame, or many of these
        A sequence, a generator, a folder, or a pattern such as ``"logs/*.csv"`` has many logs.
        Files are opened when their turn comes; large Parquet files are streamed. Every partition
        of a Dask DataFrame is prepared by itself, so it should hold whole runs.
    robot : Robot or path, optional
        Default ``data.attrs["robot"]``. Joint terms are added as in `feasid.fit`.
    base : BaseParameters, optional
        Default those of the robot with its joint terms.
    workers : int
        Number of processes that share several logs, or of an executor's workers.
    executor : concurrent.futures.Executor, optional
        Share the logs on this executor instead: threads, processes, those of joblib, MPI, Ray.
    client : dask.distributed.Client, optional
        Share the logs on this cluster instead.
    on_error : {"raise", "skip"}
        Whether a log that cannot be used raises an error (``error.partial`` has the sum of the
        others) or is skipped with a note.
    checkpoints : path, optional
        A folder that keeps the result of each log. Interrupted work continues from there, with
        bit-identical results.
    **options
        An automatic cut-off is taken from the first log.

    Returns
    -------
    Reduced

    Raises
    ------
    LogError, NotEnoughDataError, DescriptionError, InputError
        The input is not usable; the message names what is wrong.
    """
    complete = complete_filter_options(check_options(ReduceOptions, options, "reduce"), "reduce")
    terms = select_options(TermOptions, complete) | select_options(MeasuredOptions, complete)
    if base is not None and terms:
        raise InputError(f"{next(iter(terms))} has no effect with base=, which has its own terms")
    if client is not None:
        if executor is not None:
            text = "executor and client exclude each other: give the client alone"
            raise InputError(text, option="client")
        cluster: Any = client  # Dask does not annotate its methods
        executor = cluster.get_executor(pure=False)  # a pure job would be one for equal logs
        workers = sum(cluster.nthreads().values())
    sources = open_sources(data)
    if base is None:
        described = robot_of_logs(data, sources, robot, complete)
        terms_of_base = terms.get("friction"), terms.get("drive_inertia"), candidate_terms(complete)
        joints, notes = find_measured_joints(sources, described, complete)
        base, assumed = base_with_terms(described, sources, *terms_of_base, measured=joints)
        notes += assumed
    else:
        notes = []
    measured = base.experiment.measured_joints
    tasks = assign_cutoff(sources, base.robot, select_options(LogOptions, complete), measured)
    total = reduce_tasks(
        tasks,
        base,
        workers=workers,
        executor=executor,
        on_error=on_error,
        checkpoints=checkpoints,
        # What was read of many logs is let go one after the other: they need not fit in memory.
        keep=None if len(tasks) > 1 else False,
    )
    return total.with_notes(*notes)


def reduce_groups(
    groups: Sequence[Any],
    robot: Robot | str | Path | None,
    options: Mapping[str, Any],
    function: str,
) -> tuple[BaseParameters, list[Reduced], list[Note]]:
    """Logs of one robot in several states, such as without and with a load, reduced alike."""
    complete = complete_filter_options(check_options(LoadOptions, options, function), function)
    terms = select_options(TermOptions, complete)
    sources = [open_sources(data) for data in groups]
    logs = [log for group in sources for log in group]
    described = robot_of_logs(groups[0], logs, robot, complete)
    terms_of_base = terms.get("friction"), terms.get("drive_inertia")
    base, notes = base_with_terms(described, logs, *terms_of_base)
    tasks = iter(assign_cutoff(logs, base.robot, select_options(LogOptions, complete)))
    return base, [reduce_tasks([*islice(tasks, len(group))], base) for group in sources], notes


def open_sources(data: Any) -> list[Source]:
    """The single logs: members of a sequence, partitions of a Dask DataFrame, files of a folder."""
    sources = [*_each_log(data)]
    if not sources:
        raise NotEnoughDataError("there is no log: the sequence is empty")
    refuse_repeated_logs(sources)
    return sources


def logs_not_in(reduced: Reduced, logs: Sequence[str]) -> list[str]:
    """The files, folders or patterns of `logs` whose content is not a part of `reduced`."""
    files = [p for p in logs if is_regular(p) or is_folder(p)]
    known = {p for p in files if content_digest(Recording(p)) in reduced.digests}
    return [p for p in logs if p not in known]


def _each_log(data: Any) -> Iterator[Source]:
    # A tuple of arrays is a log itself: times, positions and torques.
    if isinstance(data, list | tuple | Generator | map) and not is_tuple_of_arrays(data):
        for item in data:
            yield from _each_log(item)
    elif hasattr(data, "to_delayed"):
        yield from map(Recording.from_source, data.to_delayed())
    elif isinstance(data, str | Path):
        for path in files_of_logs(data):
            yield Reduced.load(path) if is_reduced(path) else Recording(path)
    else:
        yield data if isinstance(data, Reduced) else Recording.from_source(data)


def complete_filter_options(options: Mapping[str, Any], function: str) -> dict[str, Any]:
    """Options of a fit with what is filtered: the equations, unless filtering is off."""
    if options.get("filtering") is not None:
        return dict(options)
    filtering = "signals" if options.get("cutoff") is False else "equations"
    return check_options(FitOptions, {**options, "filtering": filtering}, function)


def candidate_terms(options: Mapping[str, Any]) -> CandidateTerms | None:
    """The friction terms that may be selected later; None where nothing can be."""
    filtered = options["filtering"] == "equations"
    return CandidateTerms(options.get("candidates")) if filtered else None


def find_measured_joints(
    sources: Sequence[Source], robot: Robot, options: Mapping[str, Any]
) -> tuple[Sequence[str] | None, list[Note]]:
    """The joints that are stated as measured, or else those whose torques the first log holds.

    None for all of them, and where reduced data cannot tell; the note names the others, and why.
    """
    measured: Sequence[str] | None = options.get("measured")
    if measured is not None:  # torques that are zero are known
        every = (*measured, *(j for j in robot.passive if j not in measured))
        return (None if {*every} == {*robot.joints} else every), []
    for log in sources:
        if isinstance(log, Reduced):
            there = measured_rows(log)
            if there.all() or not there.any() or len(there) != len(robot.joints):
                return None, []
            return tuple(robot.joints[j] for j in np.flatnonzero(there)), []
        try:
            missing = find_missing_torques(log, robot, options.get("columns"), options.get("topic"))
        except FeasidError:
            continue  # reported with its name when its turn comes
        if not missing:
            break
        listed = ", ".join(f"{joint} ({why})" for joint, why in missing.items())
        text = f"torques that the log does not hold: {listed}"
        ends = {*robot.elastic.values(), *robot.sensors.values()}
        if idle := [joint for joint in missing if joint not in ends]:
            text += f"; of joints without a motor passive={idle} takes the equations, too"
        note = Note(text, "no-torque", joints=[*missing])
        return tuple(j for j in robot.joints if j not in missing), [note]
    return None, []


def robot_of_logs(
    data: Any,
    sources: Sequence[Source],
    robot: Robot | str | Path | None,
    options: Mapping[str, Any],
) -> Robot:
    """The robot that the caller names, or that travels with the data, with the motors of the
    options and the torque sensors behind springs that the first log has, or, of these, those that
    are `measured`.
    """
    described, log = with_drive_options(resolve_robot(data, robot), options), sources[0]
    measured = options.get("measured")
    if not described.elastic or described.sensors or options.get("command"):
        return described
    if isinstance(log, Reduced):
        return described.with_torque_sensors(() if log.robot is None else (*log.robot.sensors,))
    with suppress(FeasidError):  # reported when its turn comes
        df = head_of(log, described, options.get("topic"))
        mapping = check_column_mapping(df, described, options.get("columns") or {})
        named = [j for j in described.elastic if measured is None or f"{j}_sensor" in measured]
        return described.with_torque_sensors([j for j in named if f"tau_{j}_sensor" in mapping])
    return described


def base_with_terms(
    robot: Robot,
    sources: Sequence[Source],
    friction: Sequence[str] | None = None,
    drive_inertia: bool | None = None,
    offer: CandidateTerms | None = None,
    measured: Sequence[str] | None = None,
) -> tuple[BaseParameters, list[Note]]:
    """Base parameters of the robot with the terms that a fit adds, and what was assumed.

    Reduced data already have their terms. Without options, a robot that matches them as it is, or
    with the usual terms, is used like this.
    """
    model, notes = with_fit_terms(robot, friction, drive_inertia, offer)
    if measured is not None:
        model, more = without_unmeasured_terms(model, measured)
        notes += more
    base = base_parameters(model, measured=measured)
    done = [s for s in sources if isinstance(s, Reduced)]
    if done and friction is None and not _belongs_to(done[0], base):
        for other in (robot, with_fit_terms(robot, None, drive_inertia)[0]):
            base_of_other = base_parameters(other, measured=measured)
            if _belongs_to(done[0], base_of_other):
                return base_of_other, []
    return base, notes


def _belongs_to(reduced: Reduced, base: BaseParameters) -> bool:
    return reduced.fingerprint == fingerprint_of(base.robot, independent_columns(base))


def independent_columns(base: BaseParameters) -> list[int]:
    """The standard parameters that lead the base parameters."""
    return [int(c) for c in base.independent]


def assign_cutoff(
    sources: Sequence[Source],
    robot: Robot,
    options: Mapping[str, Any],
    measured: Sequence[str] | None = None,
) -> list[LogTask]:
    """Every log with its options: one cut-off for all, the given one or that of the first log."""
    fresh = [s for s in sources if isinstance(s, Recording)]
    if len(sources) == 1 or not fresh or options.get("cutoff") is not None:
        return [LogTask(s, options) for s in sources]
    known = [s.cutoff for s in sources if isinstance(s, Reduced)]
    first, cutoff = None, known[0] if known else None
    for recording in fresh if not known else ():
        torque = True if measured is None else measured
        with suppress(FeasidError):  # reported with its name when its turn comes
            cutoff = next(read_motions(recording, robot, torque=torque, **options)).cutoff
            first = recording
            break
    # A log without a cut-off went through no filter, so that the others must not, either.
    same = {**options, "cutoff": False if cutoff is None else cutoff}
    return [LogTask(s, options if s is first else same) for s in sources]


@step("reading and reducing")
def reduce_tasks(
    tasks: Sequence[LogTask],
    base: BaseParameters,
    *,
    workers: int = 1,
    executor: Executor | None = None,
    on_error: str = "raise",
    checkpoints: str | Path | None = None,
    keep: bool | None = False,
) -> Reduced:
    """The sum of all logs, verified to belong to the base parameters.

    `keep`: whether a log's rows and their sum stay with it, for a search or a check that follows;
    None: nothing of a log stays in memory.
    """
    robot, columns = base.robot, independent_columns(base)
    measured = base.experiment.measured_joints
    folder = None if checkpoints is None else Path(checkpoints)
    job = partial(
        reduce_task, robot=robot, columns=columns, measured=measured, folder=folder, keep=keep
    )
    if len(tasks) == 1 and executor is None:
        total = job(tasks[0])
    else:
        total = reduce_all(job, tasks, workers=workers, executor=executor).require_total(on_error)
    if not _belongs_to(total, base):
        raise InputError(
            "the reduced data belong to another gravity, robot or other joint terms (friction=); "
            f"they hold {len(total.columns)} base parameters, robot {robot.name!r} has "
            f"{len(columns)}"
        )
    if measured is not None:
        # Data that were reduced with all torques lose those that this fit shall not see.
        total = without_rows(total, [k for k, j in enumerate(robot.joints) if j not in measured])
    notes = join_temperature_notes(total.notes, searched=bool(keep))
    return replace(total, notes=notes, robot=total.robot or robot)


def restrict_terms(reduced: Reduced, wide: Robot, base: BaseParameters) -> Reduced:
    """The data of `wide` as the robot of `base`, with fewer joint terms, would have got them."""
    columns = tuple(independent_columns(base))
    # The columns of `base` by those of `reduced`: single ones where they are among these.
    names = [wide.parameter_names[c] for c in reduced.columns]
    targets = [base.robot.parameter_names[c] for c in columns]
    if set(targets) <= set(names):
        change = np.zeros((len(names), len(targets)))
        change[[names.index(t) for t in targets], np.arange(len(targets))] = 1.0
    else:
        place = {name: c for c, name in enumerate(wide.parameter_names)}
        missing = [t for t in targets if t not in place]
        if missing:
            body, symbol = missing[0]
            raise InputError(f"the reduced data have no column {body}.{symbol}", body=body)
        K = base_parameters(wide, measured=base.experiment.measured).K
        change = np.asarray(K[:, [place[t] for t in targets]])
    supports, maps = [], []
    for support in reduced.supports:
        rows = change[list(support)]
        places = np.flatnonzero(rows.any(axis=0))
        supports.append(tuple(places.tolist()))
        maps.append(block_diag(rows[:, places], [1.0]))  # the last entry of a row stays
    strata = []
    for part, matrix in zip(reduced.strata, maps, strict=False):
        extended = block_diag(matrix, [1.0])
        changed = part.triangles @ extended
        triangles = np.array([[triangularise(t) for t in folds] for folds in changed])
        products, raw = extended.T @ part.products @ extended, triangularise(part.raw @ matrix)
        strata.append(replace(part, triangles=triangles, products=products, raw=raw))
    return replace(
        reduced,
        fingerprint=fingerprint_of(base.robot, columns),
        columns=columns,
        supports=tuple(supports),
        triangles=tuple(triangularise(t @ m) for t, m in zip(reduced.triangles, maps, strict=True)),
        strata=tuple(strata),
        robot=base.robot,
    )


def measured_rows(reduced: Reduced) -> Mask:
    """Which coordinates have equations other than 0 = 0, shape (dof,)."""
    return np.array([t.any() for t in reduced.triangles])
