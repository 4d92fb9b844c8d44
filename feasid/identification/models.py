"""Models of friction side by side: which joint terms a log supports, on stretches held out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from feasid.core.threads import one_thread
from feasid.errors import InputError
from feasid.formats.robot_of import robot_of, with_motors
from feasid.identification.choice import Choice, choose_terms, sets_of
from feasid.options.complete import completed, documented, part
from feasid.options.tables import LogOptions, ReduceOptions
from feasid.reduction.reduce import (
    Log,
    alike,
    base_of,
    filtered,
    measured_of,
    offered,
    opened,
    reduce_tasks,
)
from feasid.reduction.triangle import Reduced
from feasid.robot.description import Robot
from feasid.robot.joint_terms import FRICTION, FURTHER_FRICTION


@documented(ReduceOptions)
@one_thread()
def compare_models(
    data: Log | Reduced | Sequence[Log | Reduced],
    robot: Robot | str | Path | None = None,
    models: Sequence[Sequence[str]] | None = None,
    **options: Unpack[ReduceOptions],
) -> Choice:
    """Compare sets of joint terms by the torque errors on stretches that were not fitted.

    Every set is given to all joints and fitted five times, each time without one fifth of the
    log's stretches of time.

    Parameters
    ----------
    data : DataFrame, mapping of arrays, path, Reduced, or a sequence of these
    robot : Robot or path, optional
        Default what travels with the data.
    models : sequence of sequences of str, optional
        Sets of terms beyond viscous, Coulomb and offset, of "sqrt", "load", "stribeck",
        "direction", "spring" and "compensator", the smallest first; ``()`` is none of them. Default
        none, each of `candidates`, each two, and all.
    **options
        See `feasid.options.tables.ReduceOptions`; `candidates` are all terms by default.

    Returns
    -------
    Choice
        Its ``table`` has the errors, a row per set and a column per joint; ``chosen`` what each
        joint gets; ``feasid.fit(data, choice.robot)`` fits that.

    Raises
    ------
    InputError
        A term that is not known, or reduced data without stretches.
    """
    given = dict(options)
    if models is not None and given.get("candidates") is not None:
        raise InputError("models says which terms are compared: leave candidates out")
    terms = list(dict.fromkeys(t for m in models or () for t in m))
    if models is not None and not terms:
        raise InputError("models has no term to compare: give sets such as [(), ('stribeck',)]")
    if given.get("candidates") in ((), []):
        raise InputError("candidates has no term to compare: leave it out, or name some")
    given["candidates"] = tuple(terms) or given.get("candidates") or FURTHER_FRICTION
    chosen = filtered(completed(ReduceOptions, given, "compare_models"), "compare_models")
    sources = opened(data)
    wanted = with_motors(robot_of(data, robot), chosen["couplings"])
    asked = chosen["friction"], chosen["drive_inertia"], offered(chosen)
    measured, _ = measured_of(sources, wanted, chosen)
    base, _ = base_of(wanted, sources, *asked, measured)
    tasks = alike(sources, base.robot, part(LogOptions, chosen), measured)
    reduced = reduce_tasks(tasks, base)
    if not reduced.strata:
        raise InputError(
            "models are compared on stretches of the log, which these data do not keep: leave "
            "filtering='signals' and cutoff=False out"
        )
    have = {s for d in base.robot.drives for s in d.symbols}
    there = [t for t in chosen["candidates"] if have.intersection(FRICTION[t])]
    sets = [tuple(m) for m in models] if models is not None else sets_of(there)
    return choose_terms(reduced, base.robot, sets, pruned=True, measured=measured)
