"""Plausible bounds of bodies besides physical consistency, unless a log rejects them.

Masses lie within a third and three times the reference's. Where a link's collision or visual shape
is known, its mass lies inside: the centre in the box around the shapes, and along each of the box's
axes the second moment of a distribution between its walls,

    integral (x - low) (high - x) dm >= 0,

and its density is one of materials that robots are made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.feasibility.constraints.affine import Linear, bounds, com_box
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.feasibility.constraints.units import usable_inertials
from feasid.formats.registry import shape_boxes
from feasid.robot.description import Robot

Index = npt.NDArray[np.intp]

MASS_RATIO = 3.0
"""Masses stay within this factor of the description's unless the log insists."""

SHAPE_ROOM = 0.1, 0.01
"""How far mass may lie beyond a box of shapes: share of its size, and length [m]. Shapes for
collisions are drawn around links, but not exactly."""

DENSITIES = 30.0, 8000.0
"""Mass per volume of the shapes [kg/m^3]: thin shells to solid steel."""

AT_BOUND = 1e-3
"""A number this close to its bound, as a share of the reference's, is at it."""


@dataclass(frozen=True, eq=False)
class PlausibleBound:
    """A plausible bound of one body; its ``kind`` is "mass" or "shape"."""

    body: str
    kind: str
    rows: tuple[Linear, ...]

    def smallest_value(self, delta: Array) -> float:
        """Smallest of the affine forms that must not be negative."""
        return min(float(r.coefficients @ delta[r.columns]) + r.constant for r in self.rows)

    def is_active(self, delta: Array, reference: Array) -> bool:
        """Whether some bound is active."""
        values = ((_evaluate_row(r, delta), _evaluate_row(r, reference)) for r in self.rows)
        return any(here < AT_BOUND * there for here, there in values)


def _evaluate_row(row: Linear, delta: Array) -> float:
    """Value of an affine form of the parameters."""
    return float(row.coefficients @ delta[row.columns]) + row.constant


def plausible_bounds(robot: Robot, reference: Array) -> tuple[PlausibleBound, ...]:
    """Plausible bounds of the bodies whose inertials a description states.

    A body whose reference itself contradicts its shapes has no belief about these.
    """
    boxes = shape_boxes(robot)
    out = []
    for i in np.flatnonzero(usable_inertials(robot)):
        body, columns = robot.bodies[i].name, robot.inertial_columns[i]
        mass = float(reference[columns[9]])
        name = f"plausible mass of {body}"
        limits = bounds(name, [columns[9]], 1.0, mass / MASS_RATIO, mass * MASS_RATIO)
        out.append(PlausibleBound(body, "mass", tuple(limits)))
        if int(i) in boxes:
            shaped = PlausibleBound(
                body, "shape", tuple(_com_inside_shape(body, columns, *boxes[int(i)]))
            )
            out += [shaped] if shaped.smallest_value(reference) > 0 else []
    return tuple(out)


def _com_inside_shape(
    body: str, columns: Index, low: Array, high: Array, volume: float
) -> list[Linear]:
    room = SHAPE_ROOM[0] * (high - low) + SHAPE_ROOM[1]
    low, high = low - room, high + room
    rows = com_box(f"{body} within its shape", columns, low, high)
    for axis in range(3):
        # The integral of x^2 is half of Lyy + Lzz - Lxx.
        moments = np.zeros(10)
        moments[[0, 3, 5]] = -0.5
        moments[[0, 3, 5][axis]] = 0.5
        moments[6 + axis] = low[axis] + high[axis]
        moments[9] = -low[axis] * high[axis]
        rows.append(Linear(f"mass of {body} within its shape, {'xyz'[axis]}", columns, moments))
    thin, solid = (density * volume for density in DENSITIES)
    return rows + bounds(f"density of {body}", columns[9:], 1.0, thin, solid)


def with_bounds(feasible: FeasibleSet, held: Iterable[PlausibleBound]) -> FeasibleSet:
    """The feasible set within these beliefs."""
    return replace(feasible, linear=(*feasible.linear, *(r for b in held for r in b.rows)))


def bounded_bodies(held: Sequence[PlausibleBound], kind: str) -> tuple[str, ...]:
    """The bodies that beliefs of a kind are about."""
    return tuple(b.body for b in held if b.kind == kind)
