"""How good a fit is, on stretches that it did not see: good, doubtful or useless, and why.

Errors are relative to the torque, so that no model at all, a torque of zero, has 1. The fit's is
compared with that, with the description's (its inertials believed, joint terms fitted), and with
that of unconstrained least squares: what is far better without the constraint that the model can
exist was not measured on a robot like the one described. Besides, structure that is left in the
residual (`feasid.assessment.residuals`) and what the parameters' covariance foretells of other
motions (`foretell`) count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from feasid.assessment.residuals import Structure
from feasid.core.arrays import Array
from feasid.core.notes import Note
from feasid.estimation.cross_validation import CrossValidation, relative_error
from feasid.estimation.noise import TINY, least_squares
from feasid.identifiability.base import BaseParameters
from feasid.regression.reduce import measured_rows
from feasid.regression.triangle import Reduced
from feasid.robot.description import Robot
from feasid.robot.joint_terms import NONNEGATIVE
from feasid.robot.layout import squares_in_common_unit

LEVELS = ("good", "doubtful", "useless")

UNMEASURED = "unmeasured"
"""In place of a joint's level where its torque was not measured."""

FEWEST = 3
"""Stretches, at least, of which each is predicted from the others."""

MOST = 0.5
"""Share of joints that are useless from which the whole is."""

NOTHING = 0.97
"""An error from which a model is no better than none."""

LITTLE = 0.6
"""An error from which a model explains less than it leaves."""

WORSE = 1.1
"""Times the description's error from which the fit is doubtful."""

LARGE = 0.2
"""An error from which nothing is good, whatever the baselines say."""

STRUCTURED = 0.45
"""Predictable share of a squared residual from which a model lacks something: cables, ripple,
friction that warms up or grows with the load leave more than .5 at one joint at least, simulated
logs without a mistake up to .37."""

UNIMPORTANT = 0.005
"""Predictable error, as a share of the torque, that is no doubt: few sensors are as exact."""

IN_CONTACT = 0.05
"""The same error of a robot that floats: forces of its contacts are measured with errors of their
own, which follow the load."""

WIDE = 2.0
"""Times the held-out error from which the error that is foretold of another motion is a doubt."""

CONSTRAINED = 1.5
"""Times the error of least squares, and this much more of the torque, from which"""
CONSTRAINED_MORE = 0.05
"""... the constraint that the model can exist is at odds with the log."""

CONTRADICTED = 2.0
"""Times the error of least squares from which, when little is explained, nothing is right."""


@dataclass(frozen=True, eq=False)
class ComparedErrors:
    """Relative torque errors per coordinate, shape (dof,) each.

    Attributes
    ----------
    model, least_squares : ndarray
        Of the feasible model and of unconstrained least squares.
    description : ndarray
        Of the description's inertials with fitted joint terms; NaN where it gives none.
    power : ndarray
        Sum of squared torques; where units differ, shares of each unit's, which add up
        (`feasid.robot.layout.squares_in_common_unit`).
    unseen : bool
        Whether every stretch was predicted from the others; without strata it was fitted.
    """

    model: Array
    least_squares: Array
    description: Array
    power: Array
    unseen: bool

    def overall_error(self, errors: Array) -> float:
        """One error of all coordinates together."""
        total = float(self.power.sum())
        squared = np.where(self.power > 0, errors**2, 0.0) * self.power
        return float(np.sqrt(np.sum(squared) / total)) if total > 0 else 1.0


@dataclass(frozen=True)
class JointQuality:
    """A coordinate's verdict.

    Attributes
    ----------
    joint : str
    level : {"good", "doubtful", "useless", "unmeasured"}
    reason : Note
        Empty when good; its values are the errors that were compared.
    error : float
    """

    joint: str
    level: str
    reason: Note
    error: float


@dataclass(frozen=True, eq=False)
class Quality:
    """The verdict on a fit.

    Attributes
    ----------
    level : {"good", "doubtful", "useless"}
    reasons : tuple of Note
        Why it is not good, the gravest first.
    joints : tuple of JointQuality
    errors : ComparedErrors
    foretold : ndarray, shape (dof + 1,), or None
        Relative error to expect on a motion like the log's, per joint and of all; see `foretell`.
        None where the parameters' covariance is not known.
    """

    level: str
    reasons: tuple[Note, ...]
    joints: tuple[JointQuality, ...]
    errors: ComparedErrors
    foretold: Array | None = None

    def __repr__(self) -> str:
        e = self.errors
        where = "on stretches that were not fitted" if e.unseen else "on the fitted log"
        numbers = [f"this model {100 * e.overall_error(e.model):.3g} %"]
        if np.isfinite(e.overall_error(e.description)):
            numbers.append(f"description {100 * e.overall_error(e.description):.3g} %")
        numbers.append(f"least squares {100 * e.overall_error(e.least_squares):.3g} %")
        lines = [f"{self.level.upper()} ({where}: {', '.join(numbers)}, no model 100 %)"]
        if self.foretold is not None:
            text = "to be expected on another motion like this one"
            lines[0] += f"; {text}: {100 * self.foretold[-1]:.3g} %"
        return "\n".join([*lines, *(f"  {r}" for r in self.reasons)])


def judge_fit(
    models: CrossValidation,
    beta: Array,
    *,
    doubts: Iterable[Note] = (),
    structure: Sequence[Structure] = (),
    variance: Array | None = None,
) -> Quality:
    """Judge a fit.

    Parameters
    ----------
    models : CrossValidation
        With the fit's noise and prior.
    beta : ndarray, shape (nb,)
        The fit's base parameters.
    doubts : iterable of Note
        What the diagnosis found. What lowers the error of a fit when it is mended makes the fit
        doubtful; nothing that is found does more.
    structure : sequence of Structure
        What of each joint's held-out residual is predictable; see
        `feasid.assessment.residuals`. Empty where it is not known.
    variance : ndarray, shape (nb, nb), optional
        Covariance of the base parameters with which errors are foretold.
    """
    errors = held_out_errors(models, beta)
    robot = models.base.robot
    foretold = None if variance is None else foretell(errors, models.reduced, variance, robot)
    if any(body.floats for body in robot.bodies):
        pairs = zip(structure, errors.model, strict=True)
        structure = [s if error > IN_CONTACT else Structure(0.0) for s, error in pairs]
    return judge_errors(errors, robot.coordinates, doubts, structure, foretold)


def held_out_errors(models: CrossValidation, beta: Array) -> ComparedErrors:
    """Errors on every stretch from the others; without strata, of `beta` where it was fitted."""
    reduced, base = models.reduced, models.base
    unseen = len(models.folds) >= FEWEST
    found: dict[str, dict[int, Array]] = {}
    if unseen:
        rest = {f: models.training_equations(f)[:2] for f in models.folds}
        found["model"] = models.models
    else:
        rest = {-1: models.noise.whitened_triangle(reduced)[:2]}
        found["model"] = {-1: beta}
    found["least_squares"] = {f: least_squares(*rows)[0] for f, rows in rest.items()}
    found["description"] = {f: baseline_parameters(base, *rows) for f, rows in rest.items()}
    norms = reduced.torque_norms
    relative = {}
    for name, betas in found.items():
        error = relative_error(models.squared_errors(betas).sum(axis=0), norms)
        relative[name] = np.where(measured_rows(reduced), error, np.nan)
    power = squares_in_common_unit(base.robot, norms**2)
    return ComparedErrors(**relative, power=power, unseen=unseen)


def foretell(errors: ComparedErrors, reduced: Reduced, variance: Array, robot: Robot) -> Array:
    """Errors to expect on a motion, relative to its torques: per joint, then of all, (dof + 1,).

    ``hypot(held-out error, rms of Y C Y' / rms torque)``: what the model lacks where it was not
    fitted, and what this motion makes of the parameters' covariance C.

    Parameters
    ----------
    errors : ComparedErrors
    reduced : Reduced
        Of the motion; its torques only scale the errors.
    variance : ndarray, shape (nb, nb)
    robot : Robot
    """
    spread = np.array(
        [
            float(np.einsum("ij,jk,ik->", T[:, :-1], variance[np.ix_(s, s)], T[:, :-1]))
            for T, s in zip(reduced.triangles, map(list, reduced.supports), strict=True)
        ]
    )
    own = relative_error(np.maximum(spread, 0.0), reduced.torque_norms)
    power = squares_in_common_unit(robot, reduced.torque_norms**2)
    wide = np.sqrt(float(own**2 @ power) / max(float(power.sum()), TINY))
    every = np.hypot(errors.overall_error(errors.model), wide)
    return np.append(np.hypot(errors.model, own), every)


def baseline_parameters(base: BaseParameters, r: Array, rho: Array) -> Array:
    """Base parameters of the description's inertials with joint terms fitted; NaN without them.

    The terms are those that can exist: negative friction would predict better than any robot.
    """
    robot = base.robot
    inertial = robot.inertial_columns.ravel()
    own = np.zeros(robot.size)
    own[inertial] = robot.values[inertial]
    if np.isnan(own).any():
        return np.full(len(base.independent), np.nan)
    K = np.asarray(base.K, dtype=np.float64)
    columns = np.setdiff1d(np.arange(robot.size), inertial)
    signed = np.array([robot.parameter_names[c][1] not in NONNEGATIVE for c in columns], bool)
    terms, rigid = np.hstack([K[:, columns], -K[:, columns[signed]]]), K @ own
    if not terms.shape[1]:
        return rigid
    size = np.maximum(np.linalg.norm(r @ terms, axis=0), TINY)
    return np.asarray(rigid + terms @ (nnls(r @ (terms / size), rho - r @ rigid)[0] / size))


def judge_errors(
    errors: ComparedErrors,
    joints: Sequence[str],
    doubts: Iterable[Note] = (),
    structure: Sequence[Structure] = (),
    foretold: Array | None = None,
) -> Quality:
    """Rate held-out errors per joint and in all, with confirmed findings of the diagnosis.

    `structure` is that of each joint's residual, `foretold` as of `foretell`.
    """
    names = (*joints, "all joints together")
    told = np.full(len(names), np.nan) if foretold is None else foretold
    known = (*structure, *(Structure(0.0) for _ in range(len(names) - len(structure))))
    columns = (
        np.append(e, errors.overall_error(e))
        for e in (errors.model, errors.description, errors.least_squares)
    )
    rated = [
        _joint_quality(name, float(m), float(d), float(s), float(t), own)
        for name, m, d, s, t, own in zip(names, *columns, told, known, strict=True)
    ]
    per_joint, whole = tuple(rated[:-1]), rated[-1]
    confirmed = [n for n in doubts if n.values.get("confirmed")]
    seen = [j for j in per_joint if j.level in LEVELS]
    lost = np.mean([j.level == "useless" for j in seen])
    if whole.level == "useless" or lost >= MOST:
        level = "useless"
    elif confirmed or whole.level == "doubtful" or any(j.level != "good" for j in seen):
        level = "doubtful"
    else:
        level = "good"
    said = [j for j in (whole, *seen) if j.level != "good"]
    said.sort(key=lambda j: -LEVELS.index(j.level))
    reasons = (*confirmed, *(j.reason for j in said))
    return Quality(level, reasons, per_joint, errors, foretold)


def _joint_quality(
    name: str,
    model: float,
    description: float,
    squares: float,
    foretold: float,
    structure: Structure,
) -> JointQuality:
    """The verdict on one joint's errors."""
    level, code, why = "good", "", ""
    if np.isnan(model):
        level = UNMEASURED
    elif model > NOTHING:
        level, code = "useless", "nothing-explained"
        why = (
            f"prediction error {100 * model:.3g} %, no better than without a model: correct its "
            "torque (feasid.diagnose), or leave it out of measured="
        )
    elif model > LITTLE and model > CONTRADICTED * squares:
        level, code = "useless", "contradicted"
        why = (
            f"prediction error {100 * model:.3g} %, unconstrained least squares "
            f"{100 * squares:.3g} %: check signs, columns and geometry (feasid.diagnose)"
        )
    else:
        level, code, why = _doubt_about_joint(model, description, squares, foretold, structure)
    values: dict[str, Any] = {"model": model, "description": description}
    values["least_squares"] = squares
    if code == "structured":
        values["correlate"] = structure.correlate
    return JointQuality(name, level, Note(f"{name}: {why}" if why else "", code, **values), model)


def _doubt_about_joint(
    model: float, description: float, squares: float, foretold: float, structure: Structure
) -> tuple[str, str, str]:
    """Level, code and text for a joint that is not useless."""
    code, why = "", ""
    if model > CONSTRAINED * squares and model > squares + CONSTRAINED_MORE:
        code = "constrained"
        why = (
            f"prediction error {100 * model:.3g} %, unconstrained least squares "
            f"{100 * squares:.3g} %: the log or the model is not as described (feasid.diagnose)"
        )
    elif model > WORSE * description:
        code = "worse-than-description"
        why = (
            f"prediction error {100 * model:.3g} %, of the description itself "
            f"{100 * description:.3g} %: record a longer or richer motion (feasid.excite)"
        )
    elif model > LARGE:
        code = "little-explained"
        why = f"prediction error {100 * model:.3g} %: " + (
            "most of its torque is not explained" if model > LITTLE else
            "too large a share of its torque to rely on the model"
        )  # fmt: skip
    elif structure.share > STRUCTURED and model * np.sqrt(structure.share) > UNIMPORTANT:
        code = "structured"
        why = (
            f"prediction error {100 * model:.3g} %, of which (squared) {100 * structure.share:.0f} "
            f"% follow the motion, above all the {structure.correlate}: the model lacks a term, "
            "or the log is not as described (feasid.diagnose)"
        )
    elif foretold > max(LARGE, WIDE * model):
        code = "foretold"
        why = (
            f"prediction error {100 * model:.3g} % on this log, but expect {100 * foretold:.3g} % "
            "on another like it: record a longer or richer motion (feasid.excite)"
        )
    return ("doubtful" if code else "good"), code, why
