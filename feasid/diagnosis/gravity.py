"""Diagnosis of the direction of gravity, and of a payload that the description lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feasid.arrays import Array
from feasid.diagnosis.exchange import FLOOR
from feasid.diagnosis.findings import Finding
from feasid.diagnosis.screen import Screen
from feasid.robot.description import Robot

TILT = 15.0
"""Angles between logged and described gravity that are reported [degrees]."""


@dataclass(frozen=True)
class Tilt:
    """Gravity as the torques show it [m/s^2], and what is said about it."""

    direction: tuple[float, ...]
    finding: Finding


def upright_share(screen: Screen, gravity: Sequence[float]) -> float:
    """What another gravity leaves of the product of all residuals."""
    own = np.maximum(screen.residuals(), FLOOR)
    other = Screen(screen.robot.with_gravity(np.array(gravity)), screen.samples)
    left = np.maximum(other.residuals(), FLOOR)
    return float(np.exp(np.log(left).sum() - np.log(own).sum()))


def tilted(screen: Screen, robot: Robot) -> list[Tilt]:
    """Direction of gravity in which the description explains the torques best."""
    unit = screen.gravity_torques()
    given = float(np.linalg.norm(robot.gravity))
    if unit is None or given == 0 or screen.cad is None:
        return []
    moving = screen.cad - unit @ robot.gravity
    tau = screen.samples.torque
    rows, right = [], []
    for j in range(robot.dof):
        basis = np.linalg.qr(screen.features[j][:, [0, 1, 2]])[0]

        def clear(x: Array, basis: Array = basis) -> Array:
            return np.asarray(x - basis @ (basis.T @ x))

        target, parts = clear(tau[:, j] - moving[:, j]), clear(unit[:, j])
        weight = 1.0 / max(float(np.linalg.norm(clear(tau[:, j] - screen.cad[:, j]))), 1e-9)
        rows.append(weight * parts)
        right.append(weight * target)
    matrix, vector = np.vstack(rows), np.concatenate(right)
    sizes = np.linalg.norm(matrix, axis=0)
    if sizes.min() == 0 or np.linalg.cond(matrix / sizes) > 1e3:
        return []
    found = np.linalg.lstsq(matrix / sizes, vector, rcond=None)[0] / sizes
    as_given = np.linalg.norm(matrix @ robot.gravity - vector)
    after = np.linalg.norm(matrix @ found - vector)
    size = float(np.linalg.norm(found))
    if size < 0.2 * given:
        return []
    cosine = float(found @ robot.gravity / (size * given))
    angle = float(np.degrees(np.arccos(np.clip(cosine, -1, 1))))
    # The same direction with another length only says that the masses are off.
    scaled = np.linalg.norm(matrix @ (robot.gravity * max(cosine, 0) * size / given) - vector)
    if angle < TILT or after > 0.7 * min(as_given, scaled):
        return []
    direction = tuple(round(float(x), 2) + 0.0 for x in found * given / size)
    finding = Finding(
        "gravity",
        "error",
        f"gravity seems to point along {direction} in the base frame, {angle:.0f} degrees from "
        f"the description's {tuple(round(float(x), 2) for x in robot.gravity)}",
        f"load_robot(..., gravity={direction})",
        confidence=float(np.clip(1 - after / as_given, 0.5, 0.97)),
    )
    return [Tilt(direction, finding)]


PAYLOAD_LEAST = 0.05
"""Masses below this share of the robot's are not reported as payload."""

PAYLOAD_GAIN = 0.87
"""A payload must leave at most this share of the residual of the joints that carry it."""


def payload(screen: Screen, robot: Robot) -> list[Finding]:
    """A mass at the last body that the description lacks, or has too much of."""
    if screen.cad is None or screen.described is None:
        return []
    columns = screen.point_mass()
    tau, total = screen.samples.torque, 0.0
    rows, right, joints = [], [], []
    for j in range(robot.dof):
        basis = np.linalg.qr(screen.features[j][:, [0, 1, 2]])[0]
        rest = tau[:, j] - screen.cad[:, j]
        target = rest - basis @ (basis.T @ rest)
        parts = columns[:, j] - basis @ (basis.T @ columns[:, j])
        size = float(np.linalg.norm(target))
        if size == 0:
            continue
        rows.append(parts / size)
        right.append(target / size)
        joints.append(j)
    if not rows:
        return []
    matrix, vector = np.vstack(rows), np.concatenate(right)
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0] = 1.0
    found, _, rank, _ = np.linalg.lstsq(matrix / scale, vector, rcond=1e-6)
    mass, moment = float(found[0] / scale[0]), found[1:] / scale[1:]
    after = np.linalg.norm(matrix / scale @ found - vector) / np.sqrt(len(rows))
    described = screen.described
    total = float(described.values[described.inertial_columns[:, 9]].sum())
    if rank < 4 or abs(mass) < PAYLOAD_LEAST * total or after > PAYLOAD_GAIN:
        return []
    centre = ", ".join(f"{x:.2f}" for x in moment / mass)
    body = robot.bodies[-1].name
    return [
        Finding(
            "payload",
            "warning",
            f"the description lacks {mass:.2g} kg at {body!r}, centred at ({centre}) m in its "
            f"frame: with it the unexplained torque falls to {after:.0%}",
            "add the tool or load to the description; a fit finds it in any case",
            (robot.bodies[-1].joint,),
            confidence=float(np.clip(1.2 - after, 0.5, 0.95)),
        )
    ]
