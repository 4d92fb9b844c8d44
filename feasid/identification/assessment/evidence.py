"""What a log shows of a fit, measured once: the record from which all uses are graded.

Errors are those of models of four fifths of the log on the other one, see `rows`. Errors are
compared with the torque that a joint's friction holds, and with the torque that it can exert.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeAlias

import numpy as np

from feasid.core.arguments import array, one_per
from feasid.core.arrays import Array, Mask
from feasid.core.codec import TRANSIENT
from feasid.core.errors import FeasidError, SolverError
from feasid.core.notes import Note
from feasid.identification.assessment.compared_errors import ComparedErrors, PerJoint
from feasid.identification.assessment.residuals import Structure, unexplained_structure
from feasid.identification.assessment.rows import HeldOutRows, Parts
from feasid.identification.estimation.held_out import CrossValidation
from feasid.identification.regression.triangle import Reduced, relative_errors
from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import inverse_dynamics, regressor
from feasid.robot.joint_terms import JOINT_TERMS
from feasid.robot.layout import squares_in_common_unit

POSES = 150  #: Random poses at which gravity torques are compared.

HOLDING_SHARE = 0.03
"""Share of a joint's largest torque below which gravity errors do not matter, with low friction."""

CREDIBLE_EFFORT = 40.0
"""An effort limit above so many times the largest torque of any joint counts as a placeholder."""

FULL_TURN = 3.2
"""A joint with limits beyond this [rad] turns freely; the log's range is then doubled."""

SLIGHT = 0.05
"""Shares of the largest gravity torque and range below which a joint carries nothing, or stands."""

STANDING = 1e-5, 1e-2  #: Range [m, rad] of a joint that stands, with the noise of its sensor.

SIGN_SPEED = 0.02
"""Speed [rad/s or m/s] over which friction changes its sign when it is removed from errors."""

LEVERAGE_SHARE = 0.1
"""The squared error grows by this share of the leverage beyond 1 [selected on half of 40 pairs]."""

PerBody: TypeAlias = Annotated[Array, array("bodies", finite=False)]


@dataclass(frozen=True, eq=False)
class GravityComparison:
    """Gravity torques of a fit over those of its description, at random poses."""

    factors: PerJoint  #: per joint; NaN where it carries little
    factor: float  #: of all joints together
    common: float  #: share of the squared difference that one factor explains
    difference: float  #: RMS difference over RMS torque, each joint by its own size
    likeness: float  #: correlation over the joints' range
    load: float  #: mass at the last body that explains the difference [kg]
    load_share: float  #: share of the squared difference that it explains
    placeholder: bool  #: half of the centres of mass are at the joints


@dataclass(frozen=True, eq=False)
class FitEvidence:
    """Numbers of every joint, (dof,) each, and of all; torques in N m, or N for sliding joints."""

    joints: Annotated[tuple[str, ...], one_per("joints")]
    units: Annotated[tuple[str, ...], one_per("joints")]
    seconds: float  #: of motion in the log; NaN where it is not in memory
    held_out: bool  #: whether errors are those on parts that were not fitted
    period: float | None  #: of a motion that repeats [s]
    torque: PerJoint  #: RMS of the filtered torque
    share: PerJoint  #: squared torques, those of other units as shares
    error: PerJoint  #: RMS to expect on motion like the log's, NaN where not measured
    fitted_error: PerJoint  #: RMS where it was fitted
    gravity_error: PerJoint  #: RMS without friction on other postures; NaN where nothing is carried
    friction: PerJoint  #: dry friction of each joint
    capacity: PerJoint  #: torque that the joint can produce
    weighing: float  #: deviation of the mass of a load from nothing [kg]; NaN where not known
    lower: PerJoint  #: of the log's positions [rad or m]
    upper: PerJoint
    still: tuple[str, ...]  #: joints that hardly move
    leverage: float  #: of gravity over the joints' range, by that of the log; NaN where not known
    comparison: GravityComparison | None
    bodies: Annotated[tuple[str, ...], one_per("bodies")]
    masses: PerBody  #: of the fit [kg]
    described: PerBody  #: of the description [kg]
    errors: ComparedErrors
    offset: PerJoint  #: constant torque of the drives without springs
    structure: tuple[Structure, ...] = ()
    #: by passive joint, share of the torques that should add up to zero that is left
    unbalanced: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[Note, ...] = field(default=(), metadata=TRANSIENT)  #: notes of the fit
    #: joints whose torque gain the log does not tell, see `FittedModel.assumed_gains`
    assumed: tuple[str, ...] = field(default=(), metadata=TRANSIENT)

    @property
    def hold(self) -> Array:
        """Error of gravity torques that does not move the joint, or hardly."""
        return np.asarray(np.maximum(self.friction, HOLDING_SHARE * self.capacity))

    def relative(self, error: Array) -> float:
        """An error of all joints together over the torque."""
        known = np.isfinite(error) & (self.torque > 0)
        ratio = error / np.where(known, self.torque, 1.0)
        squared = np.where(known, ratio**2, 0.0) * self.share
        total = float(self.share[known].sum())
        return float(np.sqrt(squared.sum() / total)) if total > 0 else 1.0


def gather(
    rows: HeldOutRows | None,
    models: CrossValidation,
    errors: ComparedErrors,
    robot: Robot,
    description: Robot,
    covariance: Array | None,
) -> FitEvidence:
    """Measure everything; `errors` stand where no rows are in memory.

    `covariance` (nb, nb) is that of the base parameters; None where it is not known.
    """
    reduced, measured = models.reduced, np.isfinite(errors.model)
    torque = reduced.torque_norms / np.sqrt(max(reduced.rows, 1))
    error = np.where(measured, errors.model * torque, np.nan)
    beta = models.base.K @ robot.values
    fitted = reduced.residuals(beta) / np.sqrt(max(reduced.rows, 1))
    unknown = np.full(len(torque), np.nan)
    bodies = [k for k, b in enumerate(robot.bodies) if not b.massless]
    springs = sum(_size_of_term(robot, t.symbol) for t in JOINT_TERMS if t.kind == "spring")
    mass = robot.inertial_columns[bodies][:, 9]
    # What is left of the torques at each passive joint, over their root sum of squares. A joint
    # that stands is held by dry friction of any size: the class of its slowest rows shows nothing.
    unbalanced = dict[str, float]()
    for j in (j for j, name in enumerate(robot.coordinates) if name in robot.passive):
        of_joint = beta[list(reduced.supports[j])]
        classes = reduced.strata[j].by_slowness[0][:-1, :, :-2] if reduced.strata else (
            reduced.triangles[j][None, :, :-1])  # fmt: skip
        size = float(np.sqrt(np.sum(classes**2, axis=(0, 1)) @ of_joint**2))
        total = float(np.linalg.norm(classes @ of_joint))
        unbalanced[robot.coordinates[j]] = total / max(size, 1e-300)
    evidence = FitEvidence(
        robot.coordinates,
        tuple("N" if s else "N m" for s in _sliding(robot)),
        np.nan,
        errors.unseen,
        None,
        torque,
        squares_in_common_unit(robot, torque**2),
        error,
        fitted,
        error,
        _size_of_term(robot, "fc"),
        _capacities(robot, 3.0 * torque),
        np.nan,
        unknown,
        unknown,
        (),
        np.nan,
        None,
        tuple(robot.bodies[k].name for k in bodies),
        robot.values[mass],
        description.values[mass],
        errors,
        offset=np.where(springs, 0.0, _size_of_term(robot, "fo")),  # else the preload of a spring
        unbalanced=unbalanced,
    )
    if rows is None:
        return evidence
    try:
        numbers = _from_rows(rows, robot, description, covariance, measured)
    except SolverError:  # a part alone determines too little
        return evidence
    return replace(evidence, **numbers)


def _from_rows(
    rows: HeldOutRows, robot: Robot, description: Robot, covariance: Array | None, measured: Mask
) -> dict[str, Any]:
    """Evidence that needs the rows of a log."""
    lower, upper = rows.q.min(axis=0), rows.q.max(axis=0)
    torque = np.sqrt(np.mean(rows.torque[rows.moving] ** 2, axis=0))
    # A few samples of a log may be faulty.
    capacity = _capacities(robot, np.quantile(np.abs(rows.torque), 0.999, axis=0))
    poses = _random_poses(robot, lower, upper, rows.q)
    missed = [rows.errors_of(rows.time_parts, rows.time_models)]
    if rows.period is not None:
        missed.append(rows.errors_of(rows.phase_parts, rows.phase_models))
    postures = rows.posture_parts(_sensitivity(robot, poses[0], capacity))
    elsewhere = rows.errors_of(postures, rows.part_models(postures))
    squared = [np.mean(x[rows.moving] ** 2, axis=0) for x in missed]
    spread = np.zeros(len(rows.supports))
    if covariance is not None:
        for j, (s, w) in enumerate(zip(rows.supports, rows.regressors, strict=True)):
            each = np.einsum("mi,ij,mj->m", w, covariance[np.ix_(s, s)], w)
            spread[j] = np.mean(each[rows.moving])
    error = np.sqrt(np.max(squared, axis=0) + spread)  # of the fifths that are worse
    fitted = rows.errors_of(np.zeros(len(rows), dtype=np.intp), robot.values[None])[rows.moving]
    gravity_error, gravity = _gravity_errors(rows, elsewhere, robot, poses[0])
    masses = [_mass_error(rows, rows.time_parts, missed[0]), _mass_error(rows, postures, elsewhere)]
    # Median over poses of the worst joint's leverage of gravity, by the mean one of the log.
    spread = spread_of_models(rows.models.noise.whitened_triangle(rows.models.reduced)[0])
    ordinary = _mean_squares(rows.models.reduced, spread)
    Y = _gravity_rows(robot, poses[1])[:, :, rows.models.base.independent]
    leverage = np.einsum("pji,ik,pjk->pj", Y, spread, Y) / np.maximum(ordinary, 1e-300)
    # Joints whose range in the log is small by itself or compared with others of their kind.
    reach, kinds = upper - lower, np.array(_sliding(robot))
    most = np.array([reach[kinds == k].max() for k in kinds])
    still = robot.moves & (reach <= np.maximum(SLIGHT * most, np.where(kinds, *STANDING)))
    return {
        "seconds": rows.seconds,
        "period": rows.period,
        "torque": torque,
        "share": squares_in_common_unit(robot, torque**2),
        "error": np.where(measured, error, np.nan),
        "fitted_error": np.sqrt(np.mean(fitted**2, axis=0)),
        "gravity_error": np.where(measured & (gravity > 0), gravity_error, np.nan),
        "capacity": capacity,
        "weighing": max(masses),
        "lower": lower,
        "upper": upper,
        "still": tuple(j for j, s in zip(robot.coordinates, still, strict=True) if s),
        "leverage": float(np.median(leverage.max(axis=1))),
        "comparison": compare_gravity(robot, description, *poses),
        "structure": unexplained_structure(rows, measured),
    }


def _sliding(robot: Robot) -> list[bool]:
    turning = {b.joint: bool(b.motion[:3].any()) for b in robot.bodies if b.joint}
    return [not turning.get(c, True) for c in robot.coordinates]


# -- errors on other fifths ------------------------------------------------------------------------


def _gravity_errors(
    rows: HeldOutRows, missed: Array, robot: Robot, poses: Array
) -> tuple[Array, Array]:
    """RMS errors without friction on other postures, and RMS gravity torques, per joint."""
    gravity = np.sqrt(np.mean(_gravity(robot, poses) ** 2, axis=0))
    out = np.empty(len(gravity))
    for j, (error, speed) in enumerate(zip(missed[rows.moving].T, rows.dq[rows.moving].T,
                                           strict=True)):  # fmt: skip
        friction = np.stack([speed, np.tanh(speed / SIGN_SPEED)], axis=1)
        solution = np.linalg.lstsq(friction, error, rcond=None)[0]
        out[j] = np.sqrt(np.mean((error - friction @ solution) ** 2))
    carried = gravity > 1e-6 * max(gravity.max(initial=0.0), 1e-9)
    return out, np.where(carried, gravity, 0.0)


def _mass_error(rows: HeldOutRows, parts: Parts, missed: Array) -> float:
    """RMS mass at the last body that explains the errors of a fifth, its centre free [kg]."""
    K = np.asarray(rows.models.base.K, dtype=np.float64)
    load = K[:, rows.models.base.robot.inertial_columns[-1][[6, 7, 8, 9]]]
    masses = []
    for p in np.unique(parts):
        moving = (parts == p) & rows.moving
        blocks, targets = [], []
        for j in rows.measured:
            deviation = rows.deviations[moving, j]
            w = rows.regressors[j][moving] @ load[rows.supports[j]]
            blocks.append(w / deviation[:, None])
            targets.append(missed[moving, j] / deviation)
        A = np.vstack(blocks)
        size = np.linalg.norm(A, axis=0)
        # A column of rounding gets no coefficient.
        size[size <= 1e-9 * size.max(initial=0.0)] = np.inf
        solution = np.linalg.lstsq(A / size, np.concatenate(targets), rcond=1e-4)[0] / size
        masses.append(solution[-1] if np.isfinite(size[-1]) else np.nan)
    return float(np.sqrt(np.mean(np.square(masses))))


# -- scales and postures ---------------------------------------------------------------------------


def _capacities(robot: Robot, most: Array) -> Array:
    """The torque that each joint can exert: its effort limit, unless all are equal or none is
    credible.
    """
    efforts = {b.joint: b.limits.effort for b in robot.bodies}
    limit = np.array([efforts.get(c) or np.nan for c in robot.coordinates], dtype=np.float64)
    if len(limit) > 1 and np.nanmax(limit, initial=0.0) == np.nanmin(limit, initial=np.inf):
        limit[:] = np.nan
    credible = (limit > most) & (limit < CREDIBLE_EFFORT * most.max(initial=0.0))
    return np.where(credible, limit, np.maximum(2.0 * most, 0.25 * most.max(initial=0.0)))


def _size_of_term(robot: Robot, symbol: str) -> Array:
    out = np.zeros(robot.dof)
    for k, drive in enumerate(robot.drives):
        columns = robot.drive_columns(k)
        if symbol in columns:
            for joint, factor in drive.coupling.items():
                if joint in robot.coordinates:
                    value = abs(factor * robot.values[columns[symbol]])
                    out[robot.coordinates.index(joint)] += value
    return out


def _random_poses(robot: Robot, lower: Array, upper: Array, q: Array) -> tuple[Array, Array]:
    """Random poses within the log's range, and within the joints' range; for mechanisms, poses of
    the log.
    """
    rng = np.random.default_rng(0)
    if not robot.is_tree or robot.dof != robot.axes:
        logged = q[rng.integers(len(q), size=POSES)]
        return logged, logged
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    limits = {b.joint: b.limits for b in robot.bodies}
    ends = np.array([[getattr(limits.get(c), end, None) or np.nan for end in ("lower", "upper")]
                     for c in robot.coordinates], dtype=np.float64)  # fmt: skip
    wide = np.minimum(2 * half, np.pi)
    low, high = ends.T
    low = np.where(np.abs(low) < FULL_TURN, low, middle - wide)
    high = np.where(np.abs(high) < FULL_TURN, high, middle + wide)
    low, high = np.minimum(low, lower), np.maximum(high, upper)
    shape = (POSES, len(lower))
    return rng.uniform(lower, upper, shape), rng.uniform(low, high, shape)


def _gravity(robot: Robot, poses: Array) -> Array:
    """Torques of the bodies' weight at poses, (poses, dof)."""
    bodies = np.zeros(robot.size)
    bodies[robot.inertial_columns] = robot.values[robot.inertial_columns]
    return inverse_dynamics(robot, poses, 0 * poses, 0 * poses, parameters=bodies)


def _gravity_rows(robot: Robot, poses: Array) -> Array:
    rows = regressor(robot, poses, 0 * poses, 0 * poses)
    rows[:, :, np.setdiff1d(np.arange(robot.size), robot.inertial_columns.ravel())] = 0.0
    return rows


def _sensitivity(robot: Robot, poses: Array, capacity: Array) -> Array:
    """Change of gravity torques per radian of each joint, over the torques that joints can
    exert.
    """
    scale, step = np.maximum(capacity, SLIGHT * capacity.max(initial=0.0)), 0.05
    first, out = _gravity(robot, poses), np.zeros(poses.shape[1])
    steps = step * np.eye(poses.shape[1])[:, None]
    for joints in [slice(None)] if robot.is_tree else np.arange(len(steps))[:, None]:
        moved = poses + steps[joints]
        try:
            change = _gravity(robot, moved.reshape(-1, len(steps))).reshape(moved.shape) - first
        except FeasidError:  # a loop that cannot be closed there
            continue
        slopes = change / step / np.where(scale > 0, scale, 1.0)
        out[joints] = np.sqrt(np.mean(slopes**2, axis=(1, 2)))
    return np.asarray(np.maximum(out, max(0.02 * out.max(initial=0.0), 1e-12)))


# -- how far from the log --------------------------------------------------------------------------


def spread_of_models(r: Array) -> Array:
    """Inverse of R'R on the directions that the log shows, (nb, nb)."""
    gram = r.T @ r
    scale = np.sqrt(np.diag(gram) + 1e-12)
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    shown = values > 1e-6
    inverse = (vectors[:, shown] / values[shown]) @ vectors[:, shown].T
    return np.asarray(inverse / np.outer(scale, scale))


def compare_gravity(
    robot: Robot, description: Robot, poses: Array, wide: Array
) -> GravityComparison | None:
    """Gravity torques of the fit and of its description; None where the description has none."""
    columns = robot.inertial_columns
    ten = description.values[description.inertial_columns]
    if not np.isfinite(ten).all():
        return None
    rows = _gravity_rows(robot, poses)
    fitted, reference = rows @ robot.values, rows[:, :, columns.ravel()] @ ten.ravel()
    power = np.mean(reference**2, axis=0)
    if not power.max(initial=0.0) > 0:
        return None
    carried: Mask = power > SLIGHT**2 * power.max()
    # In units of its own torque, a joint that carries hardly anything would count as others do.
    size = np.maximum(np.sqrt(power), 0.02 * np.sqrt(power.max()))
    x, y = (fitted / size)[:, carried], (reference / size)[:, carried]
    factor = float((x * y).sum() / (y**2).sum())
    difference = (fitted - reference) / size
    total = max(float((difference**2).sum()), 1e-300)
    load = (rows[:, :, columns[-1][[6, 7, 8, 9]]] / size[None, :, None]).reshape(-1, 4)
    norm = np.linalg.norm(load, axis=0)
    norm[norm <= 1e-9 * norm.max(initial=0.0)] = np.inf
    mass = np.linalg.lstsq(load / norm, difference.ravel(), rcond=1e-6)[0] / norm
    remainder = float(np.sum((difference.ravel() - load @ mass) ** 2))
    far = _gravity_rows(robot, wide)
    there, described = (far @ robot.values) / size, far[:, :, columns.ravel()] @ ten.ravel() / size
    alike = np.sqrt(max(float((there**2).sum() * (described**2).sum()), 1e-300))
    each = np.sum(fitted * reference, axis=0) / np.maximum(np.sum(reference**2, axis=0), 1e-300)
    heavy = ten[:, 9] > 0
    centred = np.linalg.norm(ten[:, 6:9], axis=1) < 1e-9 * np.maximum(ten[:, 9], 1e-300)
    return GravityComparison(
        np.where(carried, each, np.nan),
        factor,
        1.0 - float(((x - factor * y) ** 2).sum()) / max(float(((x - y) ** 2).sum()), 1e-300),
        float(np.sqrt(total / max(float(np.sum((reference / size) ** 2)), 1e-300))),
        float((there * described).sum() / alike),
        float(mass[3]),
        1.0 - remainder / total,
        bool(heavy.any() and centred[heavy].mean() >= 0.5),
    )


def _mean_squares(log: Reduced, matrix: Array) -> Array:
    """Mean over a log's rows w of ``w matrix w'``, per joint, (dof,)."""
    parts = ((t[:, :-1], matrix[np.ix_(s, s)]) for s, t in
             zip(log.supports, log.triangles, strict=True))  # fmt: skip
    return np.array([np.einsum("ij,jk,ik->", r, M, r) for r, M in parts]) / max(log.rows, 1)


def expected_errors(
    evidence: FitEvidence, models: CrossValidation, tested: Reduced, covariance: Array | None = None
) -> Array:
    """Errors to expect on a motion, relative to its torques: per joint, then of all, (dof + 1,).

    Errors of held-out parts, increased by the leverage of this motion relative to the log's: the
    share of its torques along directions that the log hardly shows. `covariance` (nb, nb): of a fit
    whose prior knows what the log does not show, which bounds the increase.
    """
    spread = spread_of_models(models.noise.whitened_triangle(models.reduced)[0])
    there, here = _mean_squares(tested, spread), _mean_squares(models.reduced, spread)
    leverage = np.where(here > 0, there / np.where(here > 0, here, 1.0), 1.0)
    growth = np.sqrt(1.0 + LEVERAGE_SHARE * np.maximum(leverage - 1.0, 0.0))
    torque = tested.torque_norms / np.sqrt(max(tested.rows, 1))
    error = evidence.error * growth
    if covariance is not None:
        error = np.minimum(error, np.sqrt(evidence.error**2 + _mean_squares(tested, covariance)))
    return relative_errors(models.base.robot, error**2, torque**2)
