"""Torque errors of a fit on held-out segments, compared with those of other models.

Errors are relative to the torque, so that no model at all, a torque of zero, has 1. The fit's is
compared with the description's (its inertials assumed, joint terms fitted), and with that of
unconstrained least squares: a log that is predicted far better without physical consistency was not
measured on a robot like the one described.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np
from scipy.optimize import nnls

from feasid.core.arguments import array
from feasid.core.arrays import Array
from feasid.core.text import in_percent
from feasid.identification.estimation.held_out import CrossValidation, relative_error
from feasid.identification.estimation.noise import TINY, least_squares
from feasid.identification.regression.reduce import measured_rows
from feasid.parameters.identifiability.base import BaseParameters
from feasid.robot.joint_terms import NONNEGATIVE
from feasid.robot.layout import squares_in_common_unit

FEWEST = 3  #: Least number of segments, each of which is predicted from the others.

PerJoint: TypeAlias = Annotated[Array, array("joints", finite=False)]
"""A number of every joint, NaN where it is not known."""


@dataclass(frozen=True, eq=False)
class ComparedErrors:
    """Relative torque errors per coordinate."""

    model: PerJoint  #: of the feasible model
    least_squares: PerJoint  #: without any constraint
    #: Of the description's inertials with fitted joint terms; NaN where it gives none.
    description: PerJoint
    #: Sum of squared torques; where units differ, shares of each unit's, which add up.
    power: PerJoint
    unseen: bool  #: whether every segment was predicted from the others; else it was fitted

    def overall_error(self, errors: Array) -> float:
        """One relative error of all coordinates together."""
        total = float(self.power.sum())
        squared = np.where(self.power > 0, errors**2, 0.0) * self.power
        return float(np.sqrt(np.sum(squared) / total)) if total > 0 else 1.0

    @property
    def others(self) -> str:
        """Errors of the description, where it gives inertials, and of least squares."""
        errors = {"description": self.description, "least squares": self.least_squares}
        return ", ".join(f"{name} {in_percent(self.overall_error(e))}"
                         for name, e in errors.items() if np.isfinite(e).all())  # fmt: skip


def held_out_errors(models: CrossValidation, beta: Array) -> ComparedErrors:
    """Errors on every segment from the others; without strata, of `beta` where it was fitted."""
    reduced, base = models.reduced, models.base
    unseen = len(models.folds) >= FEWEST
    values: dict[str, dict[int, Array]] = {}
    if unseen:
        data = {f: models.training_equations(f)[:2] for f in models.folds}
        values["model"] = models.models
    else:
        data = {-1: models.noise.whitened_triangle(reduced)[:2]}
        values["model"] = {-1: beta}
    values["least_squares"] = {f: least_squares(*rows)[0] for f, rows in data.items()}
    ten = base.robot.values[base.robot.inertial_columns]
    values["description"] = {f: base.K @ fit_joint_terms(base, ten, *q) for f, q in data.items()}
    norms = reduced.torque_norms
    relative = {}
    for name, betas in values.items():
        error = relative_error(models.squared_errors(betas).sum(axis=0), norms)
        relative[name] = np.where(measured_rows(reduced), error, np.nan)
    power = squares_in_common_unit(base.robot, norms**2)
    return ComparedErrors(**relative, power=power, unseen=unseen)


def fit_joint_terms(base: BaseParameters, inertials: Array, r: Array, rho: Array) -> Array:
    """Standard parameters (n,) of bodies with these inertials (bodies, 10) and fitted joint terms.

    Terms must dissipate: negative friction would predict better than any robot. NaN without
    inertials.
    """
    robot, K = base.robot, np.asarray(base.K, dtype=np.float64)
    values = np.zeros(robot.size)
    values[robot.inertial_columns] = inertials
    if not np.isfinite(values).all():
        return np.full(robot.size, np.nan)
    columns = np.setdiff1d(np.arange(robot.size), robot.inertial_columns)
    signed = columns[[robot.parameter_names[c][1] not in NONNEGATIVE for c in columns]]
    # A term of either sign is the difference of two that are not negative.
    terms = r @ np.hstack([K[:, columns], -K[:, signed]])
    if terms.size:
        size = np.maximum(np.linalg.norm(terms, axis=0), TINY)
        solution = nnls(terms / size, rho - r @ (K @ values))[0] / size
        values[columns] = solution[: len(columns)]
        values[signed] -= solution[len(columns) :]
    return values
