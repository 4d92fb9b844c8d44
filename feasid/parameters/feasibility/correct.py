"""The closest feasible parameters: the correction BPFC, in three distances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from feasid.core.arguments import checked, checked_methods
from feasid.core.arrays import Array, Mask
from feasid.core.display import Display, Displayed, Measure
from feasid.core.errors import InputError
from feasid.options.complete import complete_options, document_options, select_options
from feasid.options.tables import BoundOptions, Bounds, CorrectOptions
from feasid.parameters.feasibility.check import check_base_values, feasible_set_from_options
from feasid.parameters.feasibility.closest import Closest, closest
from feasid.parameters.feasibility.constraints.elimination import Elimination, restrict
from feasid.parameters.feasibility.constraints.sets import FeasibleSet
from feasid.parameters.feasibility.constraints.units import Units, constraint_units, problem_units
from feasid.parameters.feasibility.proof.claim import Certificate
from feasid.parameters.feasibility.proof.decide import decide
from feasid.parameters.feasibility.proof.optimality import Optimum, prove_optimum
from feasid.parameters.feasibility.proof.question import Question
from feasid.parameters.feasibility.reference import Reference, generic_body, reference_model
from feasid.parameters.feasibility.solve import Attempt
from feasid.parameters.identifiability.base import resolve_base
from feasid.parameters.identifiability.frames import LENGTH_POWER
from feasid.robot import inertia
from feasid.robot.description import Robot, replace_values
from feasid.robot.formats.load import load_robot

SMALLEST_SIZE = 1e-3
"""Size of a body, as a fraction of its unit of length, below which its own inertia says nothing."""


@checked_methods
@dataclass(frozen=True, eq=False, repr=False)
class Correction(Displayed):
    """The closest feasible parameters."""

    question: Question  #: What must hold; its rows say of what the distance is measured.
    rows: Array  #: Shape (r, nb): the distance is ``|rows (K delta - given)|``.
    given: Array  #: Shape (nb,): see `rows`.
    delta: Array  #: Shape (n,): standard parameters; NaN where a robot does not describe them.
    #: Shape (nb,): base parameters; None when a robot was corrected without a base.
    beta: Array | None
    metric: str  #: Units of the distance.
    #: Bodies and drives that differ from what was given; none where that is feasible. Of base
    #: parameters all or none.
    changed: tuple[str, ...]
    robot: Robot  #: The robot with the corrected parameters.
    scale: Units  #: Units of the problem.
    attempts: tuple[Attempt, ...]  #: Solver calls.

    @property
    def distance(self) -> float:
        """Distance to the given model, in `metric`."""
        if not self.changed:
            return 0.0
        delta, rows = np.where(np.isfinite(self.delta), self.delta, 0.0), self.question.rows
        base = np.array([sum(float(c) * delta[j] for j, c in row.items()) for row in rows])
        return float(np.linalg.norm(self.rows @ (base - self.given)))

    @property
    def gap(self) -> float:
        """Proved bound of how much closer a feasible model can be, relative to the norm of the
        input. NaN if nothing is proved.
        """
        size = float(np.linalg.norm(self.rows @ self.given))
        if not self.changed or not size:
            return 0.0
        if self._optimum is None:
            return np.nan
        return max(0.0, self.distance - float(np.sqrt(float(self._optimum.floor)))) / size

    @cached_property
    def optimality(self) -> Certificate | None:
        """Proof that no feasible model is much closer; None if there is no proof."""
        return None if self._optimum is None else self._optimum.certificate()

    @cached_property
    def _optimum(self) -> Optimum | None:
        reference = reference_model(self.question.robot, self.scale).delta
        delta = np.where(np.isfinite(self.delta), self.delta, reference)
        target = self.rows @ self.given
        return prove_optimum(self.question, self.rows, target, delta, reference, self.scale)

    def display(self) -> Display:
        """A short display of the correction."""
        count = len(self.changed)
        changed = f"{count} bodies and drives" if count else "nothing: it is consistent"
        return Display(
            f"correction of {self.robot.name!r}: {self.metric} distance {self.distance:.6g}",
            [
                Measure("physically consistent", "yes, verified", "exactly proved"),
                Measure("changed", changed),
            ],
            remarks=self.changed,
            more="more: correction.optimality (how close any model is), correction.robot",
        )


@checked
@document_options(CorrectOptions)
def correct(
    subject: Any,
    base: Any = None,
    *,
    feasible: FeasibleSet | None = None,
    **options: Unpack[CorrectOptions],
) -> Correction:
    """Find the feasible parameters closest to given ones; ``optimality`` proves how close any are.

    See `feasid.correct`; here the text of a file is not changed.

    Parameters
    ----------
    **options
        As there.
    """
    complete = complete_options(CorrectOptions, options, "correct")
    metric, weight, around = (complete[k] for k in ("metric", "weight", "around"))
    if metric == "weighted" and weight is None:
        raise InputError('metric="weighted" needs weight=, a matrix')
    consistency, margin, solver = (complete[k] for k in ("consistency", "margin", "solver"))
    bounds = select_options(BoundOptions, options)
    if isinstance(subject, str | Path):
        subject = load_robot(subject)
    if isinstance(subject, Robot):
        if bounds.get("total_mass") is not None:
            subject, bounds["total_mass"] = _scaled_to_total(subject, bounds["total_mass"])
        allowed = feasible_set_from_options(subject, consistency, feasible, bounds)
        return _corrected_robot(subject, allowed, metric, weight, around, margin, solver)
    base = resolve_base(base)
    allowed = feasible_set_from_options(base.robot, consistency, feasible, bounds)
    beta = check_base_values(subject, base, allowed)
    K = np.asarray(base.K, dtype=np.float64)
    scale = problem_units(base.robot, allowed, K, beta)
    reference = reference_model(base.robot, scale)
    question = Question.from_doubles(base.robot, allowed, K, beta, margin or 0.0)
    verdict = decide(question, scale, reference.delta, solver)
    if around is not None:
        reference = replace(reference, delta=_model_to_measure_around(around, base.robot, allowed))
    if metric == "entropic":
        root = _entropic_rows(allowed, scale, reference.delta)
        spread = np.linalg.solve(root.T @ root, K.T)
        whitening = np.asarray(np.linalg.inv(np.linalg.cholesky(K @ spread)), dtype=np.float64)
    else:
        whitening = np.eye(len(K)) if weight is None else _check_weight(weight, len(K))
    if verdict.feasible and verdict.delta is not None and not allowed.violations(verdict.delta):
        result, closest_beta, changed = Closest(verdict.delta, verdict.delta, ()), beta, False
    else:
        result = closest(
            whitening @ K, whitening @ beta, allowed, scale, reference, margin, solver, refine=True
        )
        closest_beta, changed = K @ result.delta, True
    return Correction(
        replace(question, values=None),
        whitening,
        beta,
        result.delta,
        closest_beta,
        metric,
        allowed.bodies if changed else (),
        base.robot.with_values(result.delta),
        scale,
        result.attempts,
    )


SAME_TOTAL = 1e-9  #: Relative difference of a sum of masses from the requested one.


def _scaled_to_total(robot: Robot, total: Any) -> tuple[Robot, Bounds]:
    """The robot with all bodies scaled in proportion to a total mass, and bounds that keep it.

    A number is that mass; of bounds (lower, upper) that the robot breaks, the nearer one.
    """
    masses = robot.values[robot.inertial_columns[:, 9]]
    if not np.isfinite(masses).all() or masses.sum() <= 0:
        raise InputError("total_mass needs a mass of every body: one has none", option="total_mass")
    current = float(masses.sum())
    lower, upper = (total, total) if np.ndim(total) == 0 else total
    target = min(max(current, lower or 0.0), np.inf if upper is None else upper)
    if not (np.isfinite(target) and target > 0):
        raise InputError(f"total_mass must be a positive mass, not {total!r}", option="total_mass")
    if target == current:
        return robot, (lower, upper)
    scaled = robot.values[robot.inertial_columns] * (target / current)
    bodies = tuple(replace(b, inertial=x) for b, x in zip(robot.bodies, scaled, strict=True))
    # One number is an equality; bounds need room between them.
    room = 0.0 if lower == upper else SAME_TOTAL
    return replace(robot, bodies=bodies), (target * (1 - room), target * (1 + room))


def _corrected_robot(
    robot: Robot,
    feasible: FeasibleSet,
    metric: str,
    weight: npt.ArrayLike | None,
    around: npt.ArrayLike | None,
    margin: float | None,
    solver: Any,
) -> Correction:
    """Free the bodies that break something; everything else keeps its values."""
    values, described = robot.values, np.isfinite(robot.values)
    changeable = _parameters_to_change(robot, feasible)
    scale, reference = _units_of_bodies(robot, feasible)
    if around is not None:
        reference = _model_to_measure_around(around, robot, feasible)
    if metric == "entropic":
        rows = _entropic_rows(feasible, scale, reference)
    else:
        rows = np.eye(robot.size) if weight is None else _check_weight(weight, robot.size)
    delta, start = values.copy(), np.where(described, values, reference)
    attempts: tuple[Attempt, ...] = ()
    described_set = restrict(feasible, described)
    for group in _independent_groups(restrict(feasible, described | changeable), changeable, rows):
        # The closest values of these parameters while the others keep theirs.
        others = {int(j): float(start[j]) for j in np.flatnonzero(~group)}
        ties = tuple(e for e in described_set.equalities if group[[*e.columns]].any())
        elimination = Elimination.from_equalities(replace(described_set, equalities=ties), others)
        if not len(elimination.roots):
            delta[group] = elimination.fixed[group]
            continue
        reach = rows[rows[:, group].any(axis=1)][:, group]
        result = closest(
            reach @ elimination.T[group],
            reach @ (start - elimination.fixed)[group],
            elimination.inside,
            elimination.units(scale),
            Reference(reference[elimination.roots], np.zeros(len(feasible.bodies), dtype=bool)),
            margin,
            solver,
            refine=True,
        )
        delta[group] = elimination.expand(result.delta)[group]
        attempts += result.attempts
    if violations := described_set.violations(np.where(described, delta, 0.0)):
        raise InputError(f"known values break {violations[0]}", constraint=violations[0])
    names = [n for n, f in zip(feasible.names, changeable, strict=True) if f]
    return Correction(
        Question.from_doubles(robot, feasible, np.eye(robot.size)[described], None, margin or 0.0),
        rows[:, described],
        values[described],
        delta,
        None,
        metric,
        tuple(dict.fromkeys(owner for owner, _ in names)),
        replace_values(robot, delta) if changeable.any() else robot,
        scale,
        attempts,
    )


def _independent_groups(feasible: FeasibleSet, free: Mask, rows: Array) -> list[Mask]:
    """Free parameters in groups that neither a constraint nor the distance connects."""
    label = np.where(free, np.arange(len(free)), -1)
    rules = (*feasible.constraints, *feasible.equalities, *feasible.convex)
    together = [np.array(rule.columns)[free[[*rule.columns]]] for rule in rules]
    together += [np.flatnonzero((row != 0) & free) for row in rows]
    changed = True
    while changed:
        changed = False
        for columns in together:
            if len(columns) and len(set(label[columns].tolist())) > 1:
                label[columns] = label[columns].min()
                changed = True
    return [label == k for k in np.unique(label[free])]


def _parameters_to_change(robot: Robot, feasible: FeasibleSet) -> Mask:
    """Parameters of bodies and drives that break something or are tied to one that does, (n,)."""
    known = np.isfinite(robot.values)
    values, described_set = np.where(known, robot.values, 0.0), restrict(feasible, known)
    violations = set(described_set.violations(values))
    changeable = np.zeros(robot.size, dtype=bool)
    for rule in (*feasible.constraints, *described_set.equalities, *described_set.convex):
        if rule.name in violations:
            changeable[[*rule.columns]] = True
    together = [block.columns.tolist() for block in feasible.blocks]
    together += [list(tie.columns) for tie in described_set.equalities]
    count_before = -1
    while count_before != changeable.sum():
        count_before = int(changeable.sum())
        for columns in together:
            changeable[columns] = changeable[columns].any()
    return changeable


def _check_weight(weight: npt.ArrayLike, count: int) -> Array:
    matrix = np.asarray(weight, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] != count or not np.isfinite(matrix).all():
        raise InputError(f"weight must be finite with {count} columns, its shape is {matrix.shape}")
    return matrix


def _model_to_measure_around(around: npt.ArrayLike, robot: Robot, feasible: FeasibleSet) -> Array:
    delta = robot.check_parameters(around)
    if violations := feasible.violations(delta):
        raise InputError(
            f"the model at the centre of the distance violates {', '.join(violations)}"
        )
    return delta


def _units_of_bodies(robot: Robot, feasible: FeasibleSet) -> tuple[Units, Array]:
    """Units and a reference from each body's own parameters, however wrong."""
    known = np.isfinite(robot.values)
    scale = problem_units(robot, feasible, np.eye(robot.size)[known], robot.values[known])
    mass, length = scale.mass.copy(), scale.length.copy()
    reference = reference_model(robot, scale).delta
    for i, columns in enumerate(robot.inertial_columns):
        body = robot.values[columns]
        if not np.isfinite(body).all() or not body[9] > 0:
            continue
        size = np.sqrt(abs(body[0] + body[3] + body[5]) / (2 * body[9]))
        mass[i], length[i] = body[9], max(size, SMALLEST_SIZE * scale.length[i])
        pseudo = inertia.pseudo_inertia(generic_body(mass[i], length[i]))
        com = body[6:9] / body[9]
        pseudo[:3, :3] += body[9] * np.outer(com, com)
        pseudo[:3, 3] = pseudo[3, :3] = body[6:9]
        reference[columns] = inertia.from_pseudo_inertia(pseudo)
    parameters = scale.parameters.copy()
    parameters[robot.inertial_columns] = mass[:, None] * length[:, None] ** LENGTH_POWER
    return constraint_units(feasible, mass, length, parameters), reference


def _entropic_rows(feasible: FeasibleSet, scale: Units, reference: Array) -> Array:
    """W with ``|W d|^2 = sum_k |C_k(r)^-1/2 C_k(d) C_k(r)^-1/2|^2``, r the reference.

    Joint terms are in units.
    """
    rows = []
    owned = np.zeros(feasible.size, dtype=bool)
    for block in feasible.blocks:
        if block.kind == "matrix" and owned[block.columns].any():
            continue  # a further limit on a body, not a body
        owned[block.columns] = True
        inverse = np.linalg.inv(np.linalg.cholesky(block.matrix(reference)))
        white = np.einsum("ij,cjk,lk->cil", inverse, block.basis, inverse)
        part = np.zeros((block.size**2, feasible.size))
        part[:, block.columns] = white.reshape(len(white), -1).T
        rows.append(part)
    others_of_set = np.flatnonzero(~owned)
    part = np.zeros((len(others_of_set), feasible.size))
    part[np.arange(len(others_of_set)), others_of_set] = 1.0 / scale.parameters[others_of_set]
    return np.vstack([*rows, part])
