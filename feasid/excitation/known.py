"""What is known before a motion is made: logs, other motions, a prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.errors import InputError
from feasid.excitation.certificate import rows
from feasid.excitation.trajectory import Trajectory
from feasid.identifiability.base import BaseParameters
from feasid.reduction.fingerprint import fingerprint
from feasid.reduction.narrow import narrowed
from feasid.reduction.triangle import Reduced
from feasid.robot.description import Robot

Given: TypeAlias = Reduced | Trajectory | Sequence[Reduced | Trajectory] | None


def known_rows(
    given: Given,
    prior: npt.ArrayLike | None,
    base: BaseParameters,
    noise: Array,
) -> tuple[Array, Array | None]:
    """Equations with unit noise that there are already (m, nb), and the prior's deviations.

    A log whose equations were filtered and thinned has less noise in each: by the root of rows over
    samples, for white noise. Joint terms that a log was reduced with and the motion is not designed
    for are left out.
    """
    robot, columns = base.robot, [int(c) for c in base.independent]
    size = len(columns)
    parts = [np.zeros((0, size))]
    for item in _listed(given):
        if isinstance(item, Reduced):
            own = _of_base(item, base)
            r, _, _ = own.triangle(1 / noise)
            parts.append(r * np.sqrt(own.samples / own.rows))
        elif isinstance(item, Trajectory):
            if fingerprint(item.robot, columns) != fingerprint(robot, columns):
                raise InputError("given holds a motion of another robot or other joint terms")
            parts.append(rows(robot, columns, (item.q, item.dq, item.ddq), 1 / noise))
        else:
            raise InputError(
                f"given must be reduced data (feasid.reduce) or motions (feasid.excite), not "
                f"{type(item).__name__}"
            )
    if prior is None:
        return np.vstack(parts), None
    deviations = np.asarray(prior, dtype=np.float64)
    if deviations.shape != (size,) or not (deviations > 0).all():
        raise InputError(
            f"prior must be {size} positive standard deviations, one per base parameter"
        )
    return np.vstack([*parts, np.diag(1 / deviations)]), deviations


def _of_base(item: Reduced, base: BaseParameters) -> Reduced:
    """The log's equations in these base parameters."""
    columns = [int(c) for c in base.independent]
    if item.fingerprint == fingerprint(base.robot, columns):
        return item
    wide = item.robot
    if wide is None or _geometry(wide) != _geometry(base.robot):
        raise InputError(
            "given belongs to another robot: geometry, gravity or joint terms differ; pass "
            "the robot that the log was reduced with, with its joint terms"
        )
    try:
        return narrowed(item, wide, base)
    except InputError as error:
        raise InputError(
            f"given belongs to another robot or lacks joint terms of this one: {error}; reduce the "
            "log with these terms, or design with the log's: friction=..., drive_inertia=..."
        ) from None


def _geometry(robot: Robot) -> str:
    return fingerprint(replace(robot, drives=(), load_model=None), ())


def _listed(given: Given) -> list[Reduced | Trajectory]:
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]  # type: ignore[list-item]
