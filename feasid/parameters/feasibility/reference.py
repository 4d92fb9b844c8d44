"""A finite reference model, points well inside the feasible set, and the repair of points outside.

Where no point is inside, the constraints that contradict each other.

Towards the reference the part that data cannot see is taken.

Bodies whose own inertials are usable keep them. The others get a generic one: the unit mass and
length of `feasid.parameters.feasibility.constraints.units`, spread like a ball about the body
frame's origin.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feasid.certificate import SIGNED
from feasid.core.arrays import Array, Mask
from feasid.core.errors import InfeasibleConstraintsError, InputError, SolverError
from feasid.parameters.feasibility import problems, solve
from feasid.parameters.feasibility.constraints.elimination import Elimination
from feasid.parameters.feasibility.constraints.sets import FeasibleSet
from feasid.parameters.feasibility.constraints.units import Units, usable_inertials
from feasid.parameters.feasibility.solve import SolverAnswer
from feasid.robot import inertia
from feasid.robot.description import Robot


@dataclass(frozen=True, eq=False)
class Reference:
    """A strictly consistent model."""

    #: Shape (n,): standard parameters; joint terms at one unit, those of either sign at zero.
    delta: Array
    from_description: Mask  #: Shape (n_bodies,): which bodies kept the description's own inertials.

    @property
    def tie_break(self) -> str:
        """Towards what undetermined parameters are drawn: "description", "centre" or "mixed"."""
        if self.from_description.all():
            return "description"
        return "mixed" if self.from_description.any() else "centre"


def generic_body(mass: float, length: float) -> Array:
    """Ten parameters of a body with second moments m l^2 / 10 about its frame's origin."""
    return inertia.from_pseudo_inertia(mass * np.diag([*[length**2 / 10] * 3, 1.0]))


def reference_model(robot: Robot, scale: Units, *, inertials: bool = True) -> Reference:
    """The reference model of a robot in these units; without `inertials` of generic bodies only."""
    delta = np.zeros(robot.size)
    usable_bodies = usable_inertials(robot) & inertials
    for i, columns in enumerate(robot.inertial_columns):
        body = generic_body(scale.mass[i], scale.length[i])
        delta[columns] = robot.values[columns] if usable_bodies[i] else body
        if (rotor := robot.bodies[i].rotor) is not None:
            # Of a balanced rotor Lxx, Lzz, lz and m.
            delta[robot.rotor_columns(i)] = body[[0, 5, 8, 9]] if rotor.symmetric else body
    for k in range(len(robot.drives)):
        for symbol, column in robot.drive_columns(k).items():
            value = robot.values[column]
            signed = symbol in SIGNED
            usable = np.isfinite(value) and (value > 0 or not signed)
            delta[column] = value if usable else float(signed) * scale.parameters[column]
    return Reference(delta, usable_bodies)


class NoInteriorError(SolverError):
    """No strictly feasible model was found."""


@dataclass(frozen=True, eq=False)
class Anchor:
    """A strictly feasible model, found when first needed, towards which points are repaired."""

    feasible: FeasibleSet
    scale: Units
    reference: Reference

    @cached_property
    def delta(self) -> Array:
        """The reference model when it keeps all limits, else an `interior_point`."""
        delta = self.reference.delta
        if self.feasible.contains_strictly(delta):
            return delta
        return interior_point(self.feasible, self.scale, delta)

    def repair(self, delta: Array) -> Array:
        """The nearest strictly feasible point on the way from `delta` to the anchor."""
        inside = self.feasible.contains_strictly(delta)
        return delta if inside else nearest_inside(self.feasible, delta, self.delta)


def nearest_inside(feasible: FeasibleSet, point: Array, anchor: Array) -> Array:
    """The strictly feasible point nearest to `point` on the way to a strictly feasible anchor."""
    if feasible.contains_strictly(point):
        return point
    low, high = 0.0, 1.0
    for _ in range(60):
        # By orders of magnitude first: a solver's point is often a rounding outside.
        middle = np.sqrt(max(low, 1e-15) * high) if high > 1e-3 else 0.5 * (low + high)
        inside = feasible.contains_strictly((1 - middle) * point + middle * anchor)
        low, high = (low, middle) if inside else (middle, high)
    # A little further than the first strictly feasible point: that one may be a rounding away.
    theta = min(1.0, high * (1 + 1e-3) + 1e-12)
    return np.asarray((1 - theta) * point + theta * anchor)


def interior_point(feasible: FeasibleSet, scale: Units, reference: Array) -> Array:
    """A point well inside the feasible set: the largest common margin up to 1, near `reference`.

    Raises NoInteriorError: when none was found: then the constraints contradict each other, or
    leave no room.
    """
    program = problems.interior_point_problem(problems.unknowns(feasible, scale), reference)

    def judge(raw: SolverAnswer) -> solve.Judgement:
        inside = feasible.contains_strictly(raw.x[:-1] * scale.parameters)
        return solve.Judgement(inside, inside, -raw.x[-1], f"common margin {raw.x[-1]:.2e}")

    raw, attempts = solve.solve_verified(program, judge)
    if raw is None:
        raise NoInteriorError("no solver found a point inside all constraints", attempts=attempts)
    return np.asarray(raw.x[:-1] * scale.parameters)


def feasible_start(feasible: FeasibleSet, scale: Units, reference: Array) -> Array:
    """A model that keeps all constraints strictly, ties exactly: the reference if it does.

    `reference` (n,): a model to start near. Raises InfeasibleConstraintsError: names a minimal
    set of constraints that contradict each other.
    """
    if not feasible.equalities and feasible.contains_strictly(reference):
        return reference
    try:
        return _phase_one(feasible, scale, reference)
    except (NoInteriorError, InputError) as error:
        raise contradiction(feasible, scale, reference) from error


def _phase_one(feasible: FeasibleSet, scale: Units, reference: Array) -> Array:
    elimination = Elimination.from_equalities(feasible).require_consistent()
    inside, roots = elimination.inside, elimination.roots
    if not len(roots):
        return elimination.fixed
    return elimination.expand(interior_point(inside, elimination.units(scale), reference[roots]))


def contradiction(
    feasible: FeasibleSet, scale: Units, reference: Array
) -> InfeasibleConstraintsError:
    """The error that names a minimal contradictory set of the caller's constraints.

    Consistent bodies and signs of joint terms always stay.
    """
    limits = [c for c in feasible.constraints if c.role == "asked"]
    names = [*dict.fromkeys(c.name for c in (*limits, *feasible.equalities, *feasible.convex))]

    def contradict(subset: Collection[str]) -> bool:
        try:
            _phase_one(feasible.without_constraints({*names} - {*subset}), scale, reference)
        except (NoInteriorError, InputError):
            return True
        return False

    conflict = filter_contradiction(names, contradict)
    what = ", ".join(conflict) or "the description's bodies and joint terms"
    how = "together" if len(conflict) > 1 else "in any physically consistent robot"
    return InfeasibleConstraintsError(
        f"no parameters satisfy all constraints at once: {what} cannot hold {how}; widen or "
        "leave out one of them",
        conflict=conflict,
    )


def filter_contradiction(
    names: Sequence[str], contradict: Callable[[Collection[str]], bool]
) -> tuple[str, ...]:
    """A minimal part of contradictory constraints, by the deletion filter.

    Each is left out for good if the others still contradict each other (Chinneck and Dravnieks
    1991).
    """
    conflict = list(names)
    for name in names:
        fewer = [k for k in conflict if k != name]
        if fewer and contradict(fewer):
            conflict = fewer
    return tuple(conflict)
