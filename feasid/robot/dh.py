"""Denavit-Hartenberg tables, both conventions, as bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import DescriptionError, did_you_mean
from feasid.robot.bodies import Body

FIELDS = ("alpha", "a", "d", "theta", "type")

RIGHT_ANGLE_TOLERANCE = 1e-12
"""An angle this close to a multiple of 90 degrees [rad] is that multiple: rounding of pi/2."""


def bodies_from_dh(
    rows: Sequence[Sequence[Any] | Mapping[str, Any]],
    *,
    convention: str = "standard",
    names: Sequence[str] | None = None,
) -> tuple[Body, ...]:
    """The bodies of a serial arm from a Denavit-Hartenberg table.

    Parameters
    ----------
    rows : sequence
        Per joint ``(alpha, a, d, theta[, type])`` or a mapping with these keys; angles in rad,
        lengths in m. ``type`` is "revolute" (default; theta is the offset added to q) or
        "prismatic" (d is the offset added to q).
    convention : {"standard", "modified"}
        "standard" (distal, Paul): Rz(theta) Tz(d) Tx(a) Rx(alpha), link frame after its joint.
        "modified" (proximal, Craig): Rx(alpha) Tx(a) Rz(theta) Tz(d), link frame on its joint.
    names : sequence of str, optional
        Names of bodies and joints; default "1", "2", ...

    Returns
    -------
    tuple of Body

    Raises
    ------
    DescriptionError
        Names the row and the entry.
    """
    if convention not in ("standard", "modified"):
        hint = did_you_mean(str(convention), ("standard", "modified"))
        raise DescriptionError(f"DH convention {convention!r} is not standard or modified{hint}")
    labels = [str(k + 1) for k in range(len(rows))] if names is None else list(names)
    if len(labels) != len(rows):
        raise DescriptionError(f"{len(rows)} DH rows but {len(labels)} names")
    bodies = []
    for k, row in enumerate(rows):
        alpha, a, d, theta, kind = _entries(row, k)
        axis = np.array([0.0, 0.0, 1.0])
        turn = _about_z(theta), np.array([0.0, 0.0, d])
        link = _about_x(alpha), np.array([a, 0.0, 0.0])
        if convention == "modified":
            turn, link = link, turn
        rotation = turn[0] @ link[0]
        position = turn[1] + turn[0] @ link[1]
        if convention == "modified":
            screw = np.r_[axis, 0, 0, 0] if kind == "revolute" else np.r_[0, 0, 0, axis]
        elif kind == "revolute":
            screw = np.r_[rotation.T @ axis, rotation.T @ np.cross(axis, position)]
        else:
            screw = np.r_[0, 0, 0, rotation.T @ axis]
        parent = labels[k - 1] if k else None
        bodies.append(Body(labels[k], parent, rotation, position, screw[:, None]))
    return tuple(bodies)


def _entries(
    row: Sequence[Any] | Mapping[str, Any], k: int
) -> tuple[float, float, float, float, str]:
    if isinstance(row, Mapping):
        unknown = [key for key in row if key not in FIELDS]
        if unknown:
            hint = did_you_mean(str(unknown[0]), FIELDS)
            raise DescriptionError(f"DH row {k + 1}: unknown entry {unknown[0]!r}{hint}")
        values = [row.get(f, "revolute" if f == "type" else 0.0) for f in FIELDS]
    else:
        values = [*row, "revolute"] if len(row) == 4 else [*row]
        if len(values) != 5:
            raise DescriptionError(
                f"DH row {k + 1} has {len(row)} entries, expected alpha, a, d, theta[, type]"
            )
    numbers = []
    for field, value in zip(FIELDS, values[:4], strict=False):
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = np.nan
        if not np.isfinite(number):
            raise DescriptionError(f"DH row {k + 1}: {field} = {value!r} is not a finite number")
        numbers.append(number)
    if values[4] not in ("revolute", "prismatic"):
        hint = did_you_mean(str(values[4]), ("revolute", "prismatic"))
        raise DescriptionError(f"DH row {k + 1}: joint type {values[4]!r} is not known{hint}")
    return numbers[0], numbers[1], numbers[2], numbers[3], str(values[4])


def _cos_sin(angle: float) -> tuple[float, float]:
    quarters = round(angle / (np.pi / 2))
    if abs(angle - quarters * np.pi / 2) < RIGHT_ANGLE_TOLERANCE * max(1, abs(quarters)):
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[quarters % 4]
    return float(np.cos(angle)), float(np.sin(angle))


def _about_z(angle: float) -> Array:
    c, s = _cos_sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _about_x(angle: float) -> Array:
    c, s = _cos_sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
