"""Torque constants of a log's currents, by comparison with the description.

A description's inertials are right to some tens of percent. That fixes the factor between the
columns of a log and torques well enough to tell currents and wrong units from newton metres.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.core.notes import Note
from feasid.identification.estimation import noise
from feasid.identification.regression.triangle import Reduced
from feasid.parameters.identifiability.base import BaseParameters

INERTIAL_SHARE = 0.3
"""Standard deviation of the description's inertials from a common factor, as a share."""

FACTOR_SHARE = 0.2
"""Standard deviation of that factor: CAD models have common errors: covers, cables, and infill."""

UNSEEN = 0.5  #: A constant with a larger relative standard error counts as not determined.

SCALES = (0.2, 5.0)
"""Factor between a log's torques and the description's, in the median over joints, beyond which the
description alone cannot be wrong: of seven robots recorded in N m it is .5 to 1.3, in counts of a
motor .6, and .09 to .1 in amperes."""

FEWEST = 2  #: Least number of joints with a determined factor for their median to count.


def scale_note(log: Reduced, base: BaseParameters, units: Mapping[str, Any] | None) -> Note | None:
    """A warning if torques are a multiple of the description's, else None.

    There is no note if `units` gives factors of torques, or without inertials to compare with.
    """
    if any(
        key.partition("_")[0] == "tau" and not isinstance(u, str)
        for key, u in (units or {}).items()
    ):
        return None
    try:
        constants = np.abs(constants_of_description(log, base)[0])
    except InputError:
        return None
    known = np.isfinite(constants) & (constants > 0)
    if known.sum() < FEWEST:
        return None
    factor = 1.0 / float(np.median(constants[known]))
    if SCALES[0] < factor < SCALES[1]:
        return None
    joints = [j for j, k in zip(base.robot.coordinates, known, strict=True) if k]
    parts = ", ".join(f"{j} {1 / k:.2g}" for j, k in zip(joints, constants[known], strict=True))
    text = (
        f"the torques are {factor:.2g} times what the description says ({parts}): currents in A, "
        "whose constants feasid.torque_constants finds and units= takes, another unit, the motors' "
        "side of the gears, or wrong masses in the description; units={'tau': 1.0} says that they "
        "are N m"
    )
    return Note(text, "scale", level="warning", confirmed=True, factor=factor, joints=joints)


def constants_of_description(log: Reduced, base: BaseParameters) -> tuple[Array, Array]:
    """Constants that make a log of currents agree with the description's inertials, (dof,).

    Also their standard deviations. NaN where the log hardly shows a constant.
    """
    robot = base.robot
    values = robot.values.copy()
    inertial = robot.inertial_columns.ravel()
    if np.isnan(values[inertial]).any():
        raise InputError(
            f"the description of robot {robot.name!r} lacks inertials: give a known load, loaded= "
            "and load="
        )
    inertials = np.zeros(robot.size)
    inertials[inertial] = values[inertial]
    K = np.asarray(base.K, dtype=np.float64)
    rigid, others = K @ inertials, np.setdiff1d(np.arange(robot.size), inertial)
    constants, spread = np.full(robot.dof, np.nan), np.full(robot.dof, np.nan)
    for j, r, rho in whitened_joint_equations(log):
        support = list(log.supports[j])
        r = r[:, support]
        columns = np.c_[r @ rigid[support], r @ K[support][:, others]]
        size = np.linalg.norm(columns, axis=0)
        columns = columns[:, size > 0] / size[size > 0]
        # A vertical axis of a robot at rest carries no weight: nothing tells its constant.
        if size[0] == 0:
            continue
        # The rigid body's factor is the log's units per N m: a constant is its inverse.
        per = np.linalg.lstsq(columns, rho, rcond=1e-10)[0][0] / size[0]
        constants[j] = 1.0 / per if per else np.nan
        deviation = np.sqrt(np.linalg.pinv(columns.T @ columns)[0, 0]) / size[0]
        # Each body's inertials are wrong by themselves, and move the factor by their own share.
        projection = np.linalg.pinv(columns, rcond=1e-10)[0] / size[0]
        moments = ((projection @ r) @ K[support])[robot.inertial_columns]
        bodies = np.sum(moments * inertials[robot.inertial_columns], axis=1)
        wrong = np.hypot(FACTOR_SHARE, INERTIAL_SHARE * np.linalg.norm(bodies))
        spread[j] = abs(constants[j]) * np.hypot(deviation / abs(per) if per else np.nan, wrong)
    return where_determined(constants, spread)


def where_determined(constants: Array, spread: Array) -> tuple[Array, Array]:
    """Constants and their standard deviations; NaN where the log hardly shows them."""
    known = spread < UNSEEN * np.abs(constants)
    return np.where(known, constants, np.nan), np.where(known, spread, np.nan)


def whitened_joint_equations(reduced: Reduced) -> list[tuple[int, Array, Array]]:
    """Per joint its equations of all base parameters, in units of the noise of its current."""
    _, beta = noise.estimate_noise(reduced)
    norms = np.maximum(reduced.residuals(beta), noise.SMALLEST_DEVIATION * reduced.torque_norms)
    spread = np.maximum(norms / np.sqrt(max(reduced.rows, 1)), noise.TINY)
    out = []
    for j, (support, triangle) in enumerate(zip(reduced.supports, reduced.triangles, strict=True)):
        r = np.zeros((len(support), len(reduced.columns)))
        r[:, list(support)] = triangle[:-1, :-1] / spread[j]
        out.append((j, r, triangle[:-1, -1] / spread[j]))
    return out
