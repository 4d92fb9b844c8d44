"""Plausible bounds of bodies, which a log may reject.

Masses lie within a third and three times the reference's, and where a link's collision or visual
shape is known, its mass lies inside. The centre is in the box around the shapes, along each of the
box's axes the second moment is that of a distribution between its walls,
``integral (x - low) (high - x) dm >= 0``, and the density is one of materials that robots are made
of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from feasid.core.arrays import Array
from feasid.core.errors import InfeasibleConstraintsError, SolverError
from feasid.identification.estimation.problem import EstimationProblem, Minimiser
from feasid.parameters.feasibility.cone import Minimum
from feasid.parameters.feasibility.constraints.affine import Linear, bound_constraints, com_box
from feasid.parameters.feasibility.constraints.sets import FeasibleSet
from feasid.parameters.feasibility.constraints.units import usable_inertials
from feasid.parameters.feasibility.least_squares import feasible_least_squares
from feasid.parameters.feasibility.reference import feasible_start
from feasid.robot.description import Robot
from feasid.robot.formats.registry import shape_boxes_by_body

Index = npt.NDArray[np.intp]

REJECTION_LEVEL = 0.999
"""Probability, by a chi-square law, from which data reject bounds: had the bounds been true, it
would happen once in a thousand logs."""

MASS_RATIO = 3.0  #: Masses stay within this factor of the description's unless the data reject that

SHAPE_ROOM = 0.1, 0.01
"""Allowed distance of mass outside a box of shapes: share of its size, and length [m]. Shapes for
collisions are drawn around links, but not exactly."""

DENSITIES = 30.0, 8000.0  #: Mass per volume of the shapes [kg/m^3]: thin shells to solid steel.

AT_BOUND = 1e-3
"""A number this close to its bound, as a share of the reference's, counts as at the bound."""


@dataclass(frozen=True, eq=False)
class PlausibleBound:
    """A plausible bound of one body; its ``kind`` is "mass" or "shape"."""

    body: str
    kind: str
    rows: tuple[Linear, ...]

    def values(self, delta: Array) -> Array:
        """The affine forms that must not be negative."""
        return np.array([r.coefficients @ delta[r.columns] + r.constant for r in self.rows])

    def smallest_value(self, delta: Array) -> float:
        """The smallest of them."""
        return float(self.values(delta).min())


def plausible_bounds(robot: Robot, reference: Array) -> tuple[PlausibleBound, ...]:
    """Plausible bounds of the bodies whose inertials a description states.

    A body whose reference itself contradicts its shapes has no bounds of these.
    """
    boxes = shape_boxes_by_body(robot)
    out = []
    for i in np.flatnonzero(usable_inertials(robot)):
        body, columns = robot.bodies[i].name, robot.inertial_columns[i]
        mass = float(reference[columns[9]])
        name = f"plausible mass of {body}"
        limits = bound_constraints(name, [columns[9]], 1.0, mass / MASS_RATIO, mass * MASS_RATIO)
        out.append(PlausibleBound(body, "mass", tuple(limits)))
        # Without a shape, or with one that nobody opened, the mass alone has bounds.
        if int(i) not in boxes:
            continue
        low, high, volume = boxes[int(i)]
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
        rows += bound_constraints(f"density of {body}", columns[9:], 1.0, thin, solid)
        shaped = PlausibleBound(body, "shape", tuple(rows))
        out += [shaped] if shaped.smallest_value(reference) > 0 else []
    return tuple(out)


def with_bounds(feasible: FeasibleSet, bounds: Iterable[PlausibleBound]) -> FeasibleSet:
    """The feasible set within these bounds."""
    return replace(feasible, linear=(*feasible.linear, *(r for b in bounds for r in b.rows)))


def bodies_of(bounds: Sequence[PlausibleBound], kind: str) -> tuple[str, ...]:
    """The bodies that bounds of a kind are about."""
    return tuple(b.body for b in bounds if b.kind == kind)


@dataclass(frozen=True, eq=False)
class BoundsTest:
    """The plausible bounds that the data do not reject, and those that they do."""

    kept: tuple[PlausibleBound, ...] = ()
    active: tuple[PlausibleBound, ...] = ()  #: of those that were kept
    rejected: tuple[PlausibleBound, ...] = ()  #: by the data
    excluded: tuple[PlausibleBound, ...] = ()  #: by the caller's constraints
    likelihood_ratio: float = 0.0  #: twice by how much the bounds raise the objective

    def at(self, minimum: Minimum, problem: EstimationProblem) -> BoundsTest:
        """The test with the bounds that are active at a minimum."""
        pairs = ((b, b.values(minimum.delta), b.values(problem.reference)) for b in self.kept)
        return replace(self, active=tuple(b for b, x, y in pairs if (x < AT_BOUND * y).any()))


def select_bounds(
    bounds: tuple[PlausibleBound, ...],
    problem: EstimationProblem,
    triangle: tuple[Array, Array, float],
    weight: float,
    minimum: Minimum,
    solver: Any = None,
) -> tuple[Minimum, BoundsTest]:
    """Keep or reject plausible bounds by a likelihood-ratio test, and the minimum within them.

    Twice the increase of the objective that m violated bounds cause is chi-square distributed with
    at most m degrees of freedom if the bounds are true.
    """
    violated = tuple(b for b in bounds if b.smallest_value(minimum.delta) < 0)
    if not violated:
        return minimum, BoundsTest(bounds)
    allowed, excluded, start = _consistent_bounds(bounds, problem)
    # Bounds that contradict the caller's own constraints are not the data's to reject.
    violated = tuple(b for b in violated if b in allowed)
    if not violated:
        return minimum, BoundsTest(allowed, excluded=excluded)
    bounded = replace(problem, feasible=with_bounds(problem.feasible, allowed))
    critical = float(chi2.ppf(REJECTION_LEVEL, len(violated)))
    objective, divergence = problem.problem(*triangle[:2], weight)
    free = objective.cost(problem.reduce(minimum.delta), divergence)
    allowed_rest = tuple(b for b in allowed if b not in violated)
    # Least squares without the prior bound the increase from below at a tenth of the time; where
    # they reject the bounds already, the long Newton path into their corner is not walked.
    try:
        least = feasible_least_squares(*triangle[:2], problem.base, bounded.feasible).objective
    except SolverError:  # masses that are absurd: the path alone decides
        least = 0.0
    if least - 2.0 * free > critical:
        return minimum, BoundsTest(allowed_rest, (), violated, excluded, least - 2.0 * free)
    within = Minimiser(bounded, weight, start, solver).minimum(*triangle[:2])
    ratio = 2.0 * (objective.cost(problem.reduce(within.delta), divergence) - free)
    if ratio > critical:
        return minimum, BoundsTest(allowed_rest, (), violated, excluded, ratio)
    return within, BoundsTest(allowed, (), (), excluded, ratio)


def _consistent_bounds(
    bounds: tuple[PlausibleBound, ...], problem: EstimationProblem
) -> tuple[tuple[PlausibleBound, ...], tuple[PlausibleBound, ...], Array]:
    """Bounds that the caller's constraints allow, those they exclude, and a model within both."""
    allowed, excluded = bounds, list[PlausibleBound]()
    while True:
        feasible = with_bounds(problem.feasible, allowed)
        try:
            start = feasible_start(feasible, problem.scale, problem.reference)
            return allowed, tuple(excluded), start
        except InfeasibleConstraintsError as error:
            # The error names contradictory constraints; the plausible ones among them give way.
            drop = [b for b in allowed if {*error.data["conflict"]} & {r.name for r in b.rows}]
            if not drop:
                raise
            excluded += drop
            allowed = tuple(b for b in allowed if b not in drop)
