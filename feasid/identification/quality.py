"""How good a fit is, on stretches that it did not see: good, doubtful or useless, and why.

Errors are relative to the torque, so that no model at all, a torque of zero, has 1. The fit's is
compared with that, with the description's (its inertials believed, joint terms fitted), and with
that of unconstrained least squares: what is far better without the constraint that the model can
exist was not measured on a robot like the one described.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from feasid.core.arrays import Array
from feasid.core.notes import Note
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.identifiability.base import BaseParameters
from feasid.identification.estimate import EstimationProblem, WarmStarts
from feasid.identification.noise import Noise, least_squares, squared_residuals
from feasid.identification.priors import WEIGHT
from feasid.reduction.restrict import measured_rows
from feasid.reduction.strata import FOLDS
from feasid.reduction.triangle import Reduced

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

CONSTRAINED = 1.5
"""Times the error of least squares, and this much more of the torque, from which"""
CONSTRAINED_MORE = 0.05
"""... the constraint that the model can exist is at odds with the log."""

CONTRADICTED = 2.0
"""Times the error of least squares from which, when little is explained, nothing is right."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Relative torque errors per coordinate, shape (dof,) each.

    Attributes
    ----------
    model, least_squares : ndarray
        Of the feasible model and of unconstrained least squares.
    description : ndarray
        Of the description's inertials with fitted joint terms; NaN where it gives none.
    power : ndarray
        Sum of squared torques.
    unseen : bool
        Whether every stretch was predicted from the others; without strata it was fitted.
    """

    model: Array
    least_squares: Array
    description: Array
    power: Array
    unseen: bool

    def overall(self, errors: Array) -> float:
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
    errors : HeldOut
    """

    level: str
    reasons: tuple[Note, ...]
    joints: tuple[JointQuality, ...]
    errors: HeldOut

    def __repr__(self) -> str:
        e = self.errors
        where = "on stretches that were not fitted" if e.unseen else "on the fitted log"
        numbers = [f"this model {100 * e.overall(e.model):.3g} %"]
        if np.isfinite(e.overall(e.description)):
            numbers.append(f"description {100 * e.overall(e.description):.3g} %")
        numbers.append(f"least squares {100 * e.overall(e.least_squares):.3g} %")
        lines = [f"{self.level.upper()} ({where}: {', '.join(numbers)}, no model 100 %)"]
        return "\n".join([*lines, *(f"  {r}" for r in self.reasons)])


def quality(
    reduced: Reduced,
    base: BaseParameters,
    feasible: FeasibleSet,
    beta: Array,
    noise: Noise,
    *,
    weight: float = WEIGHT,
    doubts: Iterable[Note] = (),
) -> Quality:
    """Judge a fit.

    Parameters
    ----------
    reduced : Reduced
    base : BaseParameters
    feasible : FeasibleSet
    beta : ndarray, shape (nb,)
        The fit's base parameters.
    noise : Noise
    weight : float
        Of the prior with which stretches are predicted from the others.
    doubts : iterable of Note
        What the diagnosis found. What lowers the error of a fit when it is mended makes the fit
        doubtful; nothing that is found does more.
    """
    errors = held_out(reduced, base, feasible, beta, noise, weight)
    return judge_errors(errors, base.robot.coordinates, doubts)


def held_out(
    reduced: Reduced,
    base: BaseParameters,
    feasible: FeasibleSet,
    beta: Array,
    noise: Noise,
    weight: float = WEIGHT,
) -> HeldOut:
    """Errors on every stretch from the others; without strata, of `beta` where it was fitted."""
    dof = len(reduced.triangles)
    power = reduced.torque_norms**2
    missed = {name: np.zeros(dof) for name in ("model", "least_squares", "description")}
    folds = [f for f in range(FOLDS) if reduced.strata and reduced.strata[0].counts[:, f].any()]
    unseen = len(folds) >= FEWEST
    solutions = None
    if unseen:
        task = EstimationProblem.from_reduced(reduced, base, feasible)
        solutions = WarmStarts(task, weight, task.reference)
    for fold in folds if unseen else (None,):
        tested = None if fold is None else [fold]
        others = None if fold is None else [f for f in folds if f != fold]
        r, rho, _ = noise.whitened_triangle(reduced, others)
        model = beta if solutions is None else base.K @ solutions.whole(r, rho)
        found = {
            "model": model,
            "least_squares": least_squares(r, rho)[0],
            "description": baseline_parameters(base, r, rho),
        }
        for name, values in found.items():
            for j in range(dof):
                missed[name][j] += float(squared_residuals(reduced, j, values, tested).sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = {n: np.where(power > 0, np.sqrt(m / power), 0.0) for n, m in missed.items()}
    relative = {n: np.where(measured_rows(reduced), e, np.nan) for n, e in relative.items()}
    return HeldOut(**relative, power=power, unseen=unseen)


def baseline_parameters(base: BaseParameters, r: Array, rho: Array) -> Array:
    """Base parameters of the description's inertials with joint terms fitted; NaN without them."""
    robot = base.robot
    inertial = robot.inertial_columns.ravel()
    own = np.zeros(robot.size)
    own[inertial] = robot.values[inertial]
    if np.isnan(own).any():
        return np.full(len(base.independent), np.nan)
    K = np.asarray(base.K, dtype=np.float64)
    terms = K[:, np.setdiff1d(np.arange(robot.size), inertial)]
    rigid = K @ own
    if not terms.shape[1]:
        return rigid
    return np.asarray(rigid + terms @ least_squares(r @ terms, rho - r @ rigid)[0])


def judge_errors(errors: HeldOut, joints: Sequence[str], doubts: Iterable[Note] = ()) -> Quality:
    """Rate held-out errors per joint and in all, with confirmed findings of the diagnosis."""
    per_joint = tuple(
        _joint(name, float(m), float(d), float(s))
        for name, m, d, s in zip(
            joints, errors.model, errors.description, errors.least_squares, strict=True
        )
    )
    confirmed = [n for n in doubts if n.values.get("confirmed")]
    whole = _joint(
        "all joints together",
        *(errors.overall(e) for e in (errors.model, errors.description, errors.least_squares)),
    )
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
    return Quality(level, (*confirmed, *(j.reason for j in said)), per_joint, errors)


def _joint(name: str, model: float, description: float, squares: float) -> JointQuality:
    """The verdict on one joint's errors."""
    level, code, why = "good", "", ""
    if np.isnan(model):
        level = UNMEASURED
    elif model > NOTHING:
        level, code = "useless", "nothing-explained"
        why = (
            f"predicted {100 * model:.3g} % off, no better than no model at all: leave it out of "
            "the equations or mend its torque (feasid.diagnose)"
        )
    elif model > LITTLE and model > CONTRADICTED * squares:
        level, code = "useless", "contradicted"
        why = (
            f"{100 * model:.3g} % off, where parameters that cannot exist would be "
            f"{100 * squares:.3g} % off: signs, columns or geometry are wrong (feasid.diagnose)"
        )
    elif model > CONSTRAINED * squares and model > squares + CONSTRAINED_MORE:
        level, code = "doubtful", "constrained"
        why = (
            f"{100 * model:.3g} % off, where parameters that cannot exist would be "
            f"{100 * squares:.3g} % off: something in the log or the model is not as described"
        )
    elif model > WORSE * description:
        level, code = "doubtful", "worse-than-description"
        why = (
            f"{100 * model:.3g} % off, the description itself {100 * description:.3g} %: a longer "
            "or richer motion would help"
        )
    elif model > LITTLE:
        level, code = "doubtful", "little-explained"
        why = f"{100 * model:.3g} % off: most of its torque is not explained"
    values = {"model": model, "description": description, "least_squares": squares}
    return JointQuality(name, level, Note(f"{name}: {why}" if why else "", code, **values), model)
