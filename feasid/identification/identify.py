"""The main job: from a log and a robot to a dynamic model that can exist."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from feasid.arrays import Array
from feasid.errors import InputError, NotEnoughDataError, did_you_mean
from feasid.feasibility.constraints.sets import feasible_set
from feasid.feasibility.least_squares import FeasibleFit, feasible_least_squares
from feasid.feasibility.settle import settle
from feasid.identifiability.base import BaseParameters, base_parameters
from feasid.identification.result import Fit
from feasid.logs.columns import coordinate_names
from feasid.logs.frame import prepare
from feasid.logs.motion import Motion
from feasid.reduction import momentum
from feasid.reduction import robust as robust_weights
from feasid.reduction.reduce import Log, find_robot, reduce, single_logs, with_terms
from feasid.reduction.sources import open_log
from feasid.reduction.triangle import Reduced
from feasid.robot.description import Robot
from feasid.threads import one_thread

SLACK = 0.005
"""Half a percent of the residual: less than the difference between two repeats of a motion."""

MOST_DIAGNOSED = 10**6
"""Rows of a log beyond which it is not diagnosed on the way."""

WEIGHT_FLOOR = 1e-3
"""Smallest residual that weights a joint, as a share of its torque: noise-free logs stay finite."""


@one_thread()
def fit(
    data: Log | Reduced | Sequence[Log | Reduced],
    robot: Robot | str | Path | None = None,
    *,
    friction: Sequence[str] | None = None,
    drive_inertia: bool | None = None,
    weights: str | Mapping[str, float] | npt.ArrayLike | None = None,
    method: str = "torque",
    window: float = momentum.WINDOW,
    robust: str | None = None,
    block: float = robust_weights.SECONDS,
    consistency: str = "full",
    prior: str | npt.ArrayLike | None = None,
    prior_weight: float = 0.0,
    slack: float = SLACK,
    diagnose: bool = True,
    **options: Any,
) -> Fit:
    """Identify the parameters of a robot from its log, among those that a real robot can have.

    Parameters
    ----------
    data : DataFrame, path, Reduced, or a sequence of these
        The log: ``q_<joint>`` and ``tau_<joint>`` per joint, time ``t``, see
        `feasid.logs.frame.prepare`. Several logs are fitted together.
    robot : Robot or path, optional
        Default what travels in ``data.attrs["robot"]`` or in the reduced data.
    friction : sequence of {"viscous", "coulomb", "offset"}, optional
        Friction terms of every joint; empty for none. Default: those that the robot declares, and
        all three when it declares none.
    drive_inertia : bool, optional
        Add a drive inertia to every joint. Default: as the robot declares, else no.
    weights : {"wls"}, mapping of joint to factor, array or None
        Factors on the joints' equations. "wls" takes the inverse of each joint's residual in a
        first, unweighted fit (weighted least squares); None weighs all alike.
    method : {"torque", "momentum"}
        Equations that are fitted: torques at every sample, or the change of momentum over
        windows, which needs no accelerations (`feasid.reduction.momentum`).
    window : float
        Length of these windows [s].
    robust : {"huber", "tukey"}, optional
        Weigh stretches of time that fit much worse than the others down, per joint; the notes
        list them. See `feasid.reduction.robust`.
    block : float
        Length of these stretches [s].
    consistency : {"full", "semi"}
        What "feasible" asks of every body's inertia, see `feasid.feasible_set`.
    prior : "cad" or array_like, shape (n,), optional
        Initial guess delta0 of the standard parameters; "cad" is the description's own.
    prior_weight : float
        w of the pull ``w |delta - delta0|^2`` towards the prior, see `feasible_least_squares`.
    slack : float
        Share of the smallest possible residual that may be given up for a model closer to the
        description (or to a generic body), see `feasid.feasibility.settle`; 0 returns the optimum
        of feasible least squares itself.
    diagnose : bool
        Look for what is wrong with the log (`feasid.diagnose`) and note it. Reduced data,
        Parquet files and logs of more than a million rows are not looked at.
    **options
        Those of `feasid.logs.frame.prepare` (``columns``, ``units``, ``cutoff``, ...) and of
        `feasid.feasible_set` (``mass``, ``total_mass``, ``com_box``, ...).

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
    log_options, set_options = _split_options(options)
    _check_method(method, robust)
    notes: list[str] = []
    model = with_terms(find_robot(data, robot), friction, drive_inertia, notes)
    base = base_parameters(model)
    reduced = reduce(data, model, base=base, **log_options)
    _check_amount(reduced, base)
    if diagnose:
        notes += _doubts(data, model, log_options)
    feasible = feasible_set(model, consistency, **set_options)
    scale = _first_weights(weights, model)
    guess = _prior(prior, model)

    def solve(equations: Reduced, factors: Array) -> FeasibleFit:
        r, rho, _ = equations.triangle(factors)
        return feasible_least_squares(
            r, rho, base, feasible, prior=guess, prior_weight=prior_weight
        )

    equations = reduced
    if method == "momentum":
        equations = _momentum_equations(data, model, base, log_options, reduced, window)
        notes.append(equations.notes[-1])
    if robust is not None:
        blocks = _blocks(data, model, base, {**log_options, "cutoff": _cutoff(reduced)}, block)
        equations, shares = robust_weights.reweight(blocks, robust, lambda e: solve(e, scale).beta)
        notes += robust_weights.notes(blocks, shares, coordinate_names(model), robust)
    optimum = solve(equations, scale)
    if isinstance(weights, str):
        scale = _inverse_residuals(equations, optimum.beta)
        optimum = solve(equations, scale)
        notes.append("joints are weighted by the inverse of their residuals (WLS)")
    solution = optimum
    if not prior_weight:
        solution = settle(*equations.triangle(scale), base, feasible, optimum, slack)
    return Fit(
        robot=model.with_values(solution.delta),
        description=model,
        base_parameters=base,
        feasible=feasible,
        solution=solution,
        optimum=optimum,
        reduced=reduced,
        equations=equations,
        weights=scale,
        notes=(*notes, *reduced.notes),
        log_options=log_options,
        data=data,
    )


def _doubts(data: Any, robot: Robot, options: Mapping[str, Any]) -> list[str]:
    """What a diagnosis warns of, log by log."""
    from feasid.diagnosis.diagnose import diagnose

    logs = single_logs(data)
    out = []
    for log in logs:
        if isinstance(log, Reduced) or str(log).endswith((".reduced", ".parquet", ".pq")):
            continue
        frame = open_log(log)
        if not hasattr(frame, "dask") and len(frame) <= MOST_DIAGNOSED:
            name = f"{log}: " if len(logs) > 1 and isinstance(log, str | Path) else ""
            warned = [f for f in diagnose(frame, robot, **options) if f.level != "note"]
            out += [f"{name}{finding}" for finding in warned]
    return out


def _cutoff(reduced: Reduced) -> float | bool:
    """The cut-off that the log was reduced with, as an option of `prepare`."""
    return False if reduced.cutoff is None else reduced.cutoff


def _check_method(method: str, robust: str | None) -> None:
    if method not in ("torque", "momentum"):
        hint = did_you_mean(str(method), ("torque", "momentum"))
        raise InputError(f"method {method!r} is not 'torque' or 'momentum'{hint}")
    if robust is not None:
        robust_weights.check_kind(robust)
        if method == "momentum":
            raise InputError("robust weights are for method='torque'")


def _motions(data: Any, robot: Robot, options: Mapping[str, Any]) -> list[Motion]:
    """All logs, prepared; reduced data cannot be."""
    motions = []
    for part in single_logs(data):
        if isinstance(part, Reduced) or str(part).endswith(".reduced"):
            raise InputError("this needs the log itself; reduced data hold no time")
        motions.append(prepare(open_log(part), robot, **options))
    return motions


def _momentum_equations(
    data: Any,
    robot: Robot,
    base: BaseParameters,
    options: Mapping[str, Any],
    reduced: Reduced,
    window: float,
) -> Reduced:
    columns = [int(c) for c in base.independent]
    motions = _motions(data, robot, {**options, "cutoff": _cutoff(reduced)})
    parts = [momentum.reduce_momentum(m, robot, columns, window) for m in motions]
    total: Reduced = sum(parts[1:], parts[0])
    return total


def _blocks(
    data: Any, robot: Robot, base: BaseParameters, options: Mapping[str, Any], seconds: float
) -> list[robust_weights.Block]:
    """All logs, in blocks of time."""
    columns = [int(c) for c in base.independent]
    blocks: list[robust_weights.Block] = []
    for motion in _motions(data, robot, options):
        blocks += robust_weights.reduce_blocks(motion, robot, columns, seconds)
    return blocks


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


def _split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of `prepare` and of `feasible_set`; anything else is an error with a hint."""
    own = ("df", "robot", "consistency", "torque")
    of_log, of_set = (
        [n for n in inspect.signature(f).parameters if n not in own]
        for f in (prepare, feasible_set)
    )
    for name in options:
        if name not in of_log and name not in of_set:
            known = [*of_log, *of_set, "friction", "drive_inertia", "weights", "consistency"]
            known += [
                "prior",
                "prior_weight",
                "slack",
                "robust",
                "block",
                "method",
                "window",
                "diagnose",
            ]
            raise InputError(f"fit has no option {name!r}{did_you_mean(name, known)}")
    return (
        {n: v for n, v in options.items() if n in of_log},
        {n: v for n, v in options.items() if n in of_set},
    )


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
        for joint, factor in weights.items():
            out[robot.rows[robot.joint_index(joint)]] = factor
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
