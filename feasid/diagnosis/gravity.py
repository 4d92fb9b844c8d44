"""Diagnosis of the direction of gravity."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from feasid.core.arrays import Array
from feasid.diagnosis.findings import Finding
from feasid.diagnosis.hypothesis import Hypothesis
from feasid.diagnosis.screen import Screen
from feasid.robot.description import Robot

TILT = 12.0
"""Angles between logged and described gravity that are reported [degrees]."""

GAIN = 0.6
"""What the direction must leave of the product of all residuals."""

AXIS = 1.5
"""An axis of the base frame is taken when it leaves at most this much more."""

MAGNITUDE = 0.2
"""Below this share of the described gravity nothing is said of its direction."""


def tilted(screen: Screen, robot: Robot) -> Iterator[Hypothesis]:
    """Direction of gravity in which the description explains the torques best."""
    given = float(np.linalg.norm(robot.gravity))
    equations = _equations(screen, robot) if given else None
    if equations is None:
        return
    matrix, vector = equations
    sizes = np.linalg.norm(matrix, axis=0)
    found = np.linalg.lstsq(matrix / sizes, vector, rcond=None)[0] / sizes
    size = float(np.linalg.norm(found))
    if size < MAGNITUDE * given or _angle(found, robot.gravity) < TILT:
        return
    k = int(np.argmax(np.abs(found)))
    axis = np.sign(found[k]) * np.eye(3)[k]
    free, neat = (screen.with_gravity(d * given) for d in (found / size, axis))
    snaps = screen.share(neat) < AXIS * screen.share(free)
    other, direction = (neat, axis) if snaps else (free, found / size)
    share, angle = screen.share(other), _angle(direction, robot.gravity)
    if angle < TILT or share > GAIN:
        return
    shown = tuple(round(float(x), 2) + 0.0 for x in direction * given)
    finding = Finding(
        "gravity",
        "error",
        f"gravity seems to point along {shown} in the base frame, {angle:.0f} degrees from "
        f"the description's {tuple(round(float(x), 2) for x in robot.gravity)}",
        f"load_robot(..., gravity={shown})",
        values={"gravity": shown, "degrees": angle, "share": share},
    )
    yield Hypothesis(share, finding, lambda: other, unknowns=2.0)


def _angle(a: Array, b: Array) -> float:
    """Angle between two directions [degrees]."""
    cosine = float(a @ b) / float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))


def _equations(screen: Screen, robot: Robot) -> tuple[Array, Array] | None:
    """What is left for gravity to explain, all joints weighted by their residuals."""
    unit = screen.gravity_torques
    if unit is None or screen.cad is None:
        return None
    moving = screen.cad - unit @ robot.gravity
    tau = screen.samples.torque
    rows, right = [], []
    for j in range(robot.dof):
        clear = screen.cleared(j)
        weight = 1.0 / max(float(np.linalg.norm(clear(tau[:, j] - screen.cad[:, j]))), 1e-9)
        rows.append(weight * clear(unit[:, j]))
        right.append(weight * clear(tau[:, j] - moving[:, j]))
    matrix = np.vstack(rows)
    sizes = np.linalg.norm(matrix, axis=0)
    if sizes.min() == 0 or np.linalg.cond(matrix / sizes) > 1e3:
        return None
    return matrix, np.concatenate(right)
