"""The closest parameters that can exist: the correction BPFC, in three distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from feasid.arrays import Array, Mask
from feasid.errors import InputError, did_you_mean
from feasid.feasibility.check import check_base_values
from feasid.feasibility.closest import Closest, closest
from feasid.feasibility.constraints.restrict import restricted
from feasid.feasibility.constraints.sets import FeasibleSet, feasible_set
from feasid.feasibility.constraints.units import Units, assemble, units
from feasid.feasibility.program.program import Attempt
from feasid.feasibility.program.reference import Reference, generic_body, reference
from feasid.robot import inertia
from feasid.robot.description import Robot

METRICS = ("euclidean", "weighted", "entropic")

SMALLEST_SIZE = 1e-3
"""Size of a body, as a fraction of its unit of length, below which its own inertia says nothing."""


@dataclass(frozen=True, eq=False)
class Correction:
    """The closest feasible parameters.

    Attributes
    ----------
    parameters : ndarray, shape (n,)
        Standard parameters; NaN where a robot does not describe them.
    beta : ndarray, shape (nb,), or None
        Base parameters; None when a robot was corrected without a base.
    distance : float
        To what was given, in `metric`, recomputed.
    metric : str
    gap : float
        How much of the given vector's norm the distance could at most be lower, proven.
    changed : tuple of str
        Bodies and drives that differ from what was given; for base parameters all of them.
    robot : Robot
        With the corrected parameters as its own.
    attempts : tuple of Attempt
    """

    parameters: Array
    beta: Array | None
    distance: float
    metric: str
    gap: float
    changed: tuple[str, ...]
    robot: Robot
    attempts: tuple[Attempt, ...]

    def __repr__(self) -> str:
        what = ", ".join(self.changed) or "nothing"
        return f"<Correction: {self.metric} distance {self.distance:.6g}, changed {what}>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


def correct(
    subject: Any,
    base: Any = None,
    *,
    metric: str = "euclidean",
    weight: npt.ArrayLike | None = None,
    around: npt.ArrayLike | None = None,
    consistency: str = "full",
    feasible: FeasibleSet | None = None,
    margin: float | None = None,
    solvers: Sequence[Any] | None = None,
    **bounds: Any,
) -> Correction:
    """Find the feasible parameters closest to given ones, and prove that none are closer.

    Parameters
    ----------
    subject : Robot or array_like, shape (nb,)
        A robot, of which only bodies that break something change; or base parameters of `base`:
        BPFC, eq. (52)-(56) of Sousa and Cortesao (2014).
    base : BaseParameters, optional
    metric : {"euclidean", "weighted", "entropic"}
        "euclidean": the paper's distance of the vectors, in SI numbers. "weighted": of ``weight @
        vector``; with the triangular factor of a regressor as weight, of the torques. "entropic":
        the second-order form of the entropic divergence (log-det Bregman, Lee, Wensing and Park
        2020) around a model: a distance of mass distributions, which does not depend on units or
        frames.
    around : array_like, shape (n,), optional
        That model, strictly feasible; by default the description's own inertials where they are
        usable, else generic bodies.
    weight : array_like, shape (rows, nb) or (rows, n)
    consistency : {"full", "semi"}
    feasible : FeasibleSet, optional
        Instead of `consistency` and `bounds`.
    margin : float, optional
        Absolute margin in SI numbers on every constraint, the paper's epsilon; by default
        `feasid.feasibility.program.scaled.MARGIN` in units of each body's mass and length.
    solvers : sequence of (solver, form, backend), optional
    **bounds
        Further constraints, as in `feasid.feasibility.constraints.sets.feasible_set`.

    Raises
    ------
    InputError, SolverError
    """
    if metric not in METRICS:
        raise InputError(
            f"metric {metric!r} is not one of {METRICS}{did_you_mean(metric, METRICS)}"
        )
    if (weight is None) == (metric == "weighted"):
        raise InputError('weight= belongs to metric="weighted", and that needs it')
    if around is not None and metric != "entropic":
        raise InputError('around= belongs to metric="entropic"')
    if isinstance(subject, Robot):
        allowed = feasible or feasible_set(subject, consistency, **bounds)
        return _corrected_robot(subject, allowed, metric, weight, around, margin, solvers)
    if base is None:
        raise InputError("base parameters mean nothing without base=feasid.base_parameters(robot)")
    allowed = feasible or feasible_set(base.robot, consistency, **bounds)
    beta = check_base_values(subject, base, allowed)
    K = np.asarray(base.K, dtype=np.float64)
    scale = units(base.robot, allowed, K, beta)
    aim = reference(base.robot, scale)
    if around is not None:
        aim = replace(aim, delta=_model(around, base.robot, allowed))
    if metric == "entropic":
        root = _entropic_rows(allowed, scale, aim.delta)
        spread = np.linalg.solve(root.T @ root, K.T)
        left = np.linalg.inv(np.linalg.cholesky(K @ spread))
    else:
        left = np.eye(len(K)) if weight is None else _weight(weight, len(K))
    found = closest(left @ K, left @ beta, allowed, scale, aim, margin, solvers, refine=True)
    corrected = K @ found.delta
    return Correction(
        found.delta,
        corrected,
        float(np.linalg.norm(left @ (corrected - beta))),
        metric,
        found.gap,
        allowed.bodies,
        base.robot.with_values(found.delta),
        found.attempts,
    )


def _corrected_robot(
    robot: Robot,
    feasible: FeasibleSet,
    metric: str,
    weight: npt.ArrayLike | None,
    around: npt.ArrayLike | None,
    margin: float | None,
    solvers: Sequence[Any] | None,
) -> Correction:
    """Free the bodies that break something; everything else keeps its values."""
    given = robot.values
    free = _to_change(robot, feasible)
    if feasible.equalities:
        raise InputError(
            "known or tied bodies are for base parameters: correct(beta, base, ...); a robot's own "
            "values are corrected body by body"
        )
    if not free.any():
        return Correction(given, None, 0.0, metric, 0.0, (), robot, ())
    part = restricted(feasible, free, given)
    scale, aim = _own_units(robot, feasible, given)
    if around is not None:
        aim = _model(around, robot, feasible)
    some = assemble(part, scale.mass, scale.length, scale.parameters[free])
    if metric == "entropic":
        rows = _entropic_rows(feasible, scale, aim)[:, free]
    else:
        rows = (
            np.eye(robot.size)[:, free] if weight is None else _weight(weight, robot.size)[:, free]
        )
    found: Closest = closest(
        rows,
        rows @ given[free],
        part,
        some,
        Reference(aim[free], np.zeros(len(feasible.bodies), dtype=bool)),
        margin,
        solvers,
    )
    delta = given.copy()
    delta[free] = found.delta
    names = [n for n, f in zip(feasible.names, free, strict=True) if f]
    return Correction(
        delta,
        None,
        float(np.linalg.norm(rows @ (found.delta - given[free]))),
        metric,
        found.gap,
        tuple(dict.fromkeys(owner for owner, _ in names)),
        _with(robot, delta),
        found.attempts,
    )


def _to_change(robot: Robot, feasible: FeasibleSet) -> Mask:
    """Parameters of the bodies and drives that break something, shape (n,)."""
    known = np.isfinite(robot.values)
    broken = set(restricted(feasible, known, robot.values).violations(robot.values[known]))
    free = np.zeros(robot.size, dtype=bool)
    for constraint in feasible.constraints:
        if constraint.name in broken:
            free[constraint.columns] = True
    for block in feasible.blocks:
        if free[block.columns].any():
            free[block.columns] = True
    return free


def _weight(weight: npt.ArrayLike, count: int) -> Array:
    matrix = np.asarray(weight, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] != count or not np.isfinite(matrix).all():
        raise InputError(f"weight must be finite with {count} columns, its shape is {matrix.shape}")
    return matrix


def _model(around: npt.ArrayLike, robot: Robot, feasible: FeasibleSet) -> Array:
    """A strictly feasible model to measure around."""
    delta = robot.check_parameters(around)
    broken = feasible.violations(delta)
    if broken:
        raise InputError(f"the model to measure around breaks {', '.join(broken)}")
    return delta


def _own_units(robot: Robot, feasible: FeasibleSet, given: Array) -> tuple[Units, Array]:
    """Units and a reference from what each body says of itself, however wrong."""
    known = np.isfinite(given)
    scale = units(robot, feasible, np.eye(robot.size)[known], given[known])
    mass, length = scale.mass.copy(), scale.length.copy()
    aim = reference(robot, scale).delta
    for i, columns in enumerate(robot.inertial_columns):
        body = given[columns]
        if not np.isfinite(body).all() or not body[9] > 0:
            continue
        size = np.sqrt(abs(body[0] + body[3] + body[5]) / (2 * body[9]))
        mass[i], length[i] = body[9], max(size, SMALLEST_SIZE * scale.length[i])
        pseudo = inertia.pseudo_inertia(generic_body(mass[i], length[i]))
        com = body[6:9] / body[9]
        pseudo[:3, :3] += body[9] * np.outer(com, com)
        pseudo[:3, 3] = pseudo[3, :3] = body[6:9]
        aim[columns] = inertia.from_pseudo_inertia(pseudo)
    parameters = scale.parameters.copy()
    for i, columns in enumerate(robot.inertial_columns):
        parameters[columns] = mass[i] * length[i] ** np.array([2] * 6 + [1] * 3 + [0])
    return assemble(feasible, mass, length, parameters), aim


def _entropic_rows(feasible: FeasibleSet, scale: Units, aim: Array) -> Array:
    """W with ``|W d|^2 = sum_k |C_k(aim)^-1/2 C_k(d) C_k(aim)^-1/2|^2``, joint terms in units."""
    rows = []
    owned = np.zeros(feasible.size, dtype=bool)
    for block in feasible.blocks:
        if block.kind == "matrix" and owned[block.columns].any():
            continue  # a further limit on a body, not a body
        owned[block.columns] = True
        inverse = np.linalg.inv(np.linalg.cholesky(block.matrix(aim)))
        white = np.einsum("ij,cjk,lk->cil", inverse, block.basis, inverse)
        part = np.zeros((block.size**2, feasible.size))
        part[:, block.columns] = white.reshape(len(white), -1).T
        rows.append(part)
    rest = np.flatnonzero(~owned)
    part = np.zeros((len(rest), feasible.size))
    part[np.arange(len(rest)), rest] = 1.0 / scale.parameters[rest]
    return np.vstack([*rows, part])


def _with(robot: Robot, delta: Array) -> Robot:
    """The robot with these parameters; what is NaN stays undescribed."""

    def finite(part: Array) -> Array | None:
        return part if np.isfinite(part).all() else None

    bodies = []
    for i, (body, columns) in enumerate(zip(robot.bodies, robot.inertial_columns, strict=True)):
        rotor = body.rotor
        if rotor is not None:
            rotor = replace(rotor, values=finite(delta[robot.rotor_columns(i)]))
        bodies.append(replace(body, inertial=finite(delta[columns]), rotor=rotor))
    drives = tuple(
        replace(drive, values=finite(delta[list(robot.drive_columns(k).values())]))
        for k, drive in enumerate(robot.drives)
    )
    return replace(robot, bodies=tuple(bodies), drives=drives)
