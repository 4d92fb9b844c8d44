"""The main job: from a log and a robot to a dynamic model that can exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from feasid.arrays import Array
from feasid.diagnosis.diagnose import diagnose
from feasid.errors import InputError, NotEnoughDataError, did_you_mean
from feasid.feasibility.constraints.sets import feasible_set
from feasid.feasibility.least_squares import FeasibleFit, feasible_least_squares
from feasid.feasibility.settle import settle
from feasid.identifiability.base import BaseParameters
from feasid.identification.result import Fit
from feasid.logs.motion import Motion
from feasid.logs.recording import Recording
from feasid.notes import Note
from feasid.notes import notes as as_notes
from feasid.options.complete import completed, documented, part
from feasid.options.tables import FitOptions, LogOptions, SetOptions
from feasid.reduction import momentum, robust
from feasid.reduction.reduce import Log, Work, alike, base_of, columns_of, opened, reduce_tasks
from feasid.reduction.triangle import Reduced
from feasid.robot.added_terms import robot_of
from feasid.robot.description import Robot
from feasid.threads import one_thread

MOST_DIAGNOSED = 10**6
"""Rows of a log beyond which it is not diagnosed on the way."""

WEIGHT_FLOOR = 1e-3
"""Smallest residual that weights a joint, as a share of its torque: noise-free logs stay finite."""

Solve = Callable[[Reduced, Array], FeasibleFit]


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
    chosen = completed(FitOptions, options, "fit")
    sources = opened(data)
    wanted = robot_of(data, robot)
    base, said = base_of(wanted, sources, chosen["friction"], chosen["drive_inertia"])
    model = base.robot
    tasks = alike(sources, model, part(LogOptions, chosen))
    reduced = reduce_tasks(tasks, base)
    _check_amount(reduced, base)
    doubts = _doubts(tasks, model) if chosen["diagnose"] else []
    feasible = feasible_set(model, **part(SetOptions, chosen))
    guess = _prior(chosen["prior"], model)

    def solve(equations: Reduced, factors: Array) -> FeasibleFit:
        r, rho, _ = equations.triangle(factors)
        return feasible_least_squares(
            r, rho, base, feasible, prior=guess, prior_weight=chosen["prior_weight"]
        )

    scale = _first_weights(chosen["weights"], model)
    equations, how = _equations(tasks, base, reduced, chosen, lambda e: solve(e, scale).beta)
    optimum = solve(equations, scale)
    if isinstance(chosen["weights"], str):
        scale = _inverse_residuals(equations, optimum.beta)
        optimum = solve(equations, scale)
        how.append(Note("joints are weighted by the inverse of their residuals (WLS)", "wls"))
    solution = optimum
    if not chosen["prior_weight"]:
        triangle = equations.triangle(scale)
        solution = settle(*triangle, base, feasible, optimum, chosen["slack"])
    return Fit(
        robot=model.with_values(solution.delta),
        description=model,
        base=base,
        feasible=feasible,
        solution=solution,
        optimum=optimum,
        reduced=reduced,
        equations=equations,
        weights=scale,
        notes=as_notes([*said, *doubts, *how, *reduced.notes]),
        log_options=part(LogOptions, options),
        recordings=tuple(t.source for t in tasks if isinstance(t.source, Recording)),
    )


def _equations(
    tasks: Sequence[Work],
    base: BaseParameters,
    reduced: Reduced,
    chosen: Mapping[str, Any],
    solve: Callable[[Reduced], Array],
) -> tuple[Reduced, list[Note]]:
    """What is fitted: the reduced log, its momentum, or its blocks with robust weights."""
    robot, columns = base.robot, columns_of(base)
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
    equations, shares = robust.reweight(blocks, kind, solve)
    return equations, robust.notes(blocks, shares, robot.coordinates, kind)


def _motions(tasks: Sequence[Work], robot: Robot) -> list[Iterable[Motion]]:
    """All logs, prepared; reduced data cannot be."""
    if any(isinstance(t.source, Reduced) for t in tasks):
        raise InputError("this needs the log itself; reduced data hold no time")
    recorded = [(t.source, t.options) for t in tasks if isinstance(t.source, Recording)]
    return [recording.motions(robot, **options) for recording, options in recorded]


def _doubts(tasks: Sequence[Work], robot: Robot) -> list[Note]:
    """What a diagnosis warns of, log by log."""
    out = []
    for task in tasks:
        log = task.source
        if isinstance(log, Reduced):
            continue
        if log.streamed or len(log.frame) > MOST_DIAGNOSED:
            text = "too long to be diagnosed on the way; feasid.diagnose looks at it"
            out.append(Note(f"{log.name or 'the log'}: {text}", "undiagnosed"))
            continue
        name = f"{log.name}: " if len(tasks) > 1 and log.name else ""
        warned = [f for f in diagnose(log, robot, **task.options) if f.level != "note"]
        out += [Note(f"{name}{f}", f.code, level=f.level) for f in warned]
    return out


def _prior(prior: str | npt.ArrayLike | None, robot: Robot) -> Array | None:
    if prior is None:
        return None
    if isinstance(prior, str):
        if prior != "cad":
            raise InputError(f"prior {prior!r} is not 'cad' or an array of {robot.size} parameters")
        inertial = robot.values[robot.inertial_columns.ravel()]
        if np.isnan(inertial).any():
            raise InputError(f"the description of robot {robot.name!r} lacks inertials: no prior")
        return np.nan_to_num(robot.values, nan=0.0)
    return robot.check_parameters(prior)


def _check_amount(reduced: Reduced, base: BaseParameters) -> None:
    unknowns = len(base.independent)
    if reduced.samples * len(reduced.triangles) < unknowns:
        raise NotEnoughDataError(
            f"{reduced.samples} usable samples of {len(reduced.triangles)} joints are fewer "
            f"equations than the {unknowns} base parameters"
        )


def _first_weights(
    weights: str | Mapping[str, float] | npt.ArrayLike | None, robot: Robot
) -> Array:
    if weights is None:
        return np.ones(robot.dof)
    if isinstance(weights, str):
        if weights != "wls":
            raise InputError(f"weights {weights!r} is not 'wls', a mapping or an array")
        return np.ones(robot.dof)
    if isinstance(weights, Mapping):
        out = np.ones(robot.dof)
        rows = {body.joint: own for body, own in robot.moving}
        for joint, factor in weights.items():
            if joint not in rows:
                hint = did_you_mean(str(joint), rows)
                raise InputError(
                    f"weights: there is no joint {joint!r} that moves by itself{hint}", joint=joint
                )
            out[rows[joint]] = factor
    else:
        out = np.asarray(weights, dtype=np.float64)
    if out.shape != (robot.dof,) or not (np.isfinite(out).all() and (out > 0).all()):
        raise InputError(f"weights must be {robot.dof} positive numbers, got {out.tolist()}")
    return out


def _inverse_residuals(reduced: Reduced, beta: Array) -> Array:
    """1 / standard deviation of each joint's residual, scaled to leave the largest torque alone."""
    deviation = reduced.residuals(beta) / np.sqrt(reduced.samples)
    floor = WEIGHT_FLOOR * reduced.torque_norms / np.sqrt(reduced.samples)
    return np.asarray(1.0 / np.maximum(np.maximum(deviation, floor), 1e-300))
