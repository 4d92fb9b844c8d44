"""The main job: from a log and a robot to a dynamic model that can exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from feasid.core.notes import Note
from feasid.core.notes import notes as as_notes
from feasid.core.threads import one_thread
from feasid.errors import InputError, NotEnoughDataError
from feasid.feasibility.constraints.sets import feasible_set
from feasid.formats.robot_of import GEARED, robot_of, with_motors, with_terms
from feasid.identifiability.base import BaseParameters, base_parameters
from feasid.identification.choice import choose_terms, sets_of
from feasid.identification.log_warnings import diagnose_logs
from feasid.identification.result import Fit
from feasid.identification.timing import aligned
from feasid.identification.weighing import Weighing
from feasid.logs.motion import Motion
from feasid.logs.recording import Recording
from feasid.options.complete import completed, documented, part
from feasid.options.tables import FitOptions, LogOptions, SetOptions
from feasid.reduction import momentum, robust
from feasid.reduction.narrow import narrowed
from feasid.reduction.reduce import (
    Log,
    alike,
    base_of,
    columns_of,
    filtered,
    measured_of,
    offered,
    opened,
    reduce_tasks,
)
from feasid.reduction.task import Work
from feasid.reduction.triangle import Reduced
from feasid.robot.description import Robot
from feasid.robot.joint_terms import FRICTION


@documented(FitOptions)
@one_thread()
def fit(
    data: Log | Reduced | Sequence[Log | Reduced],
    robot: Robot | str | Path | None = None,
    **options: Unpack[FitOptions],
) -> Fit:
    """Identify the parameters of a robot from its log, among those that a real robot can have.

    Parameters
    ----------
    data : DataFrame, mapping of arrays, path, Reduced, or a sequence of these
        The log: ``q_<joint>`` and ``tau_<joint>`` per joint, time ``t``, see
        `feasid.logs.frame`. Several logs are fitted together.
    robot : Robot or path, optional
        Default what travels in ``data.attrs["robot"]`` or in the reduced data.
    **options
        See `feasid.options.tables.FitOptions`.

    Returns
    -------
    Fit

    Raises
    ------
    LogError, NotEnoughDataError, DescriptionError, InputError
        What is wrong with the input, by name.
    SolverError
        When no answer passed verification; nothing unverified is returned.
    """
    chosen = filtered(completed(FitOptions, options, "fit"), "fit")
    sources = opened(data)
    wanted = with_motors(robot_of(data, robot), chosen["couplings"])
    terms = chosen["friction"], chosen["drive_inertia"]
    measured, said = measured_of(sources, wanted, chosen)
    chosen["measured"] = measured
    base, assumed = base_of(wanted, sources, *terms, offered(chosen), measured)
    tasks = alike(sources, base.robot, part(LogOptions, chosen), measured)
    reduced = reduce_tasks(tasks, base)
    _check_amount(reduced, base)
    described = with_terms(wanted, *terms)[0]
    doubted = diagnose_logs(tasks, described, measured) if chosen["diagnose"] else []
    reduced, delay = aligned(reduced)
    base, reduced, picked = _supported(base, reduced, chosen)
    feasible = feasible_set(base.robot, **part(SetOptions, chosen))
    weighing = Weighing.of(chosen, base, feasible, reduced, delay.deviation)
    equations, how = _equations(tasks, base, reduced, chosen, weighing, delay.value)
    found = weighing.solved(equations)
    return Fit(
        robot=base.robot.with_values(found.solution.delta),
        description=base.robot,
        base=base,
        feasible=feasible,
        believed=found.believed,
        solution=found.solution,
        optimum=found.optimum,
        reduced=reduced,
        equations=equations,
        weights=found.weights,
        triangle=found.triangle,
        covariance=found.covariance,
        deviation=found.deviation,
        estimate=found.estimate,
        notes=as_notes(
            [
                *found.notes,
                *said,
                *assumed,
                *doubted,
                *picked,
                *delay.notes(reduced.period),
                *how,
                *reduced.notes,
            ]
        ),
        log_options={**part(LogOptions, options), "filtering": chosen["filtering"]},
        options=chosen,
        recordings=tuple(t.source for t in tasks if isinstance(t.source, Recording)),
    )


def _supported(
    base: BaseParameters, reduced: Reduced, chosen: Mapping[str, Any]
) -> tuple[BaseParameters, Reduced, list[Note]]:
    """Without the candidates among the friction terms that the log does not support."""
    wanted = chosen["candidates"]
    if wanted is None:
        wanted = GEARED if chosen["friction"] is None else ()
    there = [t for t in wanted if any(FRICTION[t][-1] in d.symbols for d in base.robot.drives)]
    if not there or not reduced.strata:
        return base, reduced, []
    pruned = chosen["candidates"] is not None
    measured = chosen["measured"]
    choice = choose_terms(reduced, base.robot, sets_of(there), pruned=pruned, measured=measured)
    narrow = base_parameters(choice.robot, measured=chosen["measured"])
    return narrow, narrowed(reduced, base.robot, narrow), [choice.note]


def _equations(
    tasks: Sequence[Work],
    base: BaseParameters,
    reduced: Reduced,
    chosen: Mapping[str, Any],
    weighing: Weighing,
    delay: float,
) -> tuple[Reduced, list[Note]]:
    """What is fitted: the reduced log, its momentum, or its blocks with robust weights."""
    robot, columns = base.robot, columns_of(base)
    if chosen["measured"] is not None and (chosen["method"], chosen["robust"]) != ("torque", None):
        rest = ", ".join(j for j in robot.joints if j not in chosen["measured"])
        raise InputError(
            "robust and method='momentum' need the torques of all joints"
            + (f", and the log is without (measured) that of {rest}" if rest else "")
            + ": leave them out, or measured",
            option="measured",
        )
    if chosen["method"] == "momentum":
        parts = [
            momentum.reduce_momentum(m, robot, columns, chosen["window"])
            for m in _motions(tasks, robot)
        ]
        total: Reduced = sum(parts[1:], parts[0])
        return total, [total.notes[-1]]
    if chosen["robust"] is None:
        return reduced, []
    blocks = [
        block
        for motions in _motions(tasks, robot)
        for block in robust.reduce_blocks(motions, robot, columns, chosen["block"])
    ]
    kind = chosen["robust"]
    equations, shares = robust.reweight(blocks, kind, weighing.beta)
    return equations.shifted(delay), robust.notes(blocks, shares, robot.coordinates, kind)


def _motions(tasks: Sequence[Work], robot: Robot) -> list[Iterable[Motion]]:
    """All logs, prepared; reduced data cannot be."""
    if any(isinstance(t.source, Reduced) for t in tasks):
        raise InputError("this needs the log itself; reduced data hold no time")
    recorded = [(t.source, t.options) for t in tasks if isinstance(t.source, Recording)]
    return [_known(recording.motions(robot, **options)) for recording, options in recorded]


def _known(motions: Iterable[Motion]) -> Iterator[Motion]:
    """The same, refused where contact forces are unknown."""
    for motion in motions:
        if any(run.free is not None for run in motion.runs):
            raise InputError("robust and method='momentum' need the forces of all contacts")
        yield motion


def _check_amount(reduced: Reduced, base: BaseParameters) -> None:
    unknowns = len(base.independent)
    if reduced.samples * len(reduced.triangles) < unknowns:
        raise NotEnoughDataError(
            f"{reduced.samples} usable samples of {len(reduced.triangles)} joints are fewer "
            f"equations than the {unknowns} base parameters"
        )
