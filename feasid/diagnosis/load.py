"""Diagnosis of a load that the description lacks, or that nothing could carry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from feasid.core.arrays import Array
from feasid.diagnosis.findings import Finding
from feasid.diagnosis.hypothesis import Hypothesis
from feasid.diagnosis.screen import Screen
from feasid.robot.bodies import Body

LEAST = 0.05
"""Masses below this share of the robot's are not reported."""

GAIN = 0.87
"""A load must leave at most this share of the residual of the joints that carry it."""


@dataclass(frozen=True, eq=False)
class PointMass:
    """Mass [kg] and first moment [kg m] at the last body, and the residual that they leave."""

    mass: float
    moment: Array
    left: float

    @property
    def centre(self) -> tuple[float, ...]:
        """Centre of mass in the body's frame [m]."""
        return tuple(float(x) for x in self.moment / self.mass)


def missing_mass(screen: Screen) -> PointMass | None:
    """The point mass at the last body that explains most of what the description does not."""
    if screen.cad is None or screen.described is None:
        return None
    columns = screen.point_mass()
    tau = screen.samples.torque
    rows, right = [], []
    for j in range(screen.robot.dof):
        clear = screen.cleared(j)
        target, parts = clear(tau[:, j] - screen.cad[:, j]), clear(columns[:, j])
        size = float(np.linalg.norm(target))
        if size > 0:
            rows.append(parts / size)
            right.append(target / size)
    if not rows:
        return None
    matrix, vector = np.vstack(rows), np.concatenate(right)
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0] = 1.0
    found, _, rank, _ = np.linalg.lstsq(matrix / scale, vector, rcond=1e-6)
    left = float(np.linalg.norm(matrix / scale @ found - vector) / np.sqrt(len(rows)))
    found = found / scale
    return PointMass(float(found[0]), found[1:], left) if rank == 4 else None


def load(screen: Screen) -> Iterator[Hypothesis]:
    """A mass at the last body that the description lacks; a negative one is no load."""
    point = _telling(screen)
    if point is None or screen.cad is None:
        return
    carried = screen.point_mass() @ np.r_[point.mass, point.moment]
    other = Screen(screen.robot, screen.samples, screen.cad + carried)
    finding = (_lacking if point.mass > 0 else _impossible)(point, screen.robot.bodies[-1])
    yield Hypothesis(screen.share(other), finding, lambda: other, unknowns=4.0)


def _lacking(point: PointMass, body: Body) -> Finding:
    centre = ", ".join(f"{x:.2f}" for x in point.centre)
    return Finding(
        "payload",
        "warning",
        f"the description lacks {point.mass:.2g} kg at {body.name!r}, centred at ({centre}) m in "
        f"its frame: with it the unexplained torque falls to {point.left:.0%}",
        "add the tool or load to the description; a fit finds it in any case",
        (body.joint,),
        values={"mass": point.mass, "centre": point.centre, "left": point.left},
    )


def _impossible(point: PointMass, body: Body) -> Finding:
    return Finding(
        "class",
        "warning",
        f"a load of {point.mass:.2g} kg at {body.name!r} would explain what the description "
        "does not, and no load has a negative mass: the model lacks something else, or the "
        "description's masses are too large",
        "look at the torques' unit, at joint terms (drive_inertia=True, friction=) and at "
        "springs or counterweights",
        (body.joint,),
        values={"mass": point.mass, "left": point.left},
    )


def _telling(screen: Screen) -> PointMass | None:
    """The missing mass, when it matters."""
    point, described = missing_mass(screen), screen.described
    if point is None or described is None or point.left > GAIN:
        return None
    total = float(described.values[described.inertial_columns[:, 9]].sum())
    return point if abs(point.mass) >= LEAST * total else None
