"""A strictly feasible model to start from, or the constraints that contradict each other."""

from __future__ import annotations

from collections.abc import Collection

from feasid.core.arrays import Array
from feasid.errors import InfeasibleConstraintsError, InputError
from feasid.feasibility.constraints.elimination import Elimination
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.feasibility.constraints.units import Units, constraint_units
from feasid.feasibility.reference import NoInteriorError, interior_point


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
    """The model with the largest common margin."""
    elimination = Elimination.from_equalities(feasible).require_consistent()
    inside, roots = elimination.inside, elimination.roots
    if not len(roots):
        return elimination.fixed
    units = constraint_units(inside, scale.mass, scale.length, scale.parameters[roots])
    return elimination.expand(interior_point(inside, units, reference[roots]))


def contradiction(
    feasible: FeasibleSet, scale: Units, reference: Array
) -> InfeasibleConstraintsError:
    """The error that names a minimal contradictory set of the caller's constraints.

    The deletion filter (Chinneck and Dravnieks 1991): each constraint is left out for good if the
    others still contradict each other. Consistent bodies and signs of joint terms always stay.
    """
    asked = [c for c in feasible.constraints if c.role == "asked"]
    names = [*dict.fromkeys(c.name for c in (*asked, *feasible.equalities, *feasible.convex))]

    def contradict(subset: Collection[str]) -> bool:
        part = feasible.without_constraints({*names} - {*subset})
        try:
            _phase_one(part, scale, reference)
        except (NoInteriorError, InputError):
            return True
        return False

    conflict = list(names)
    for name in names:
        fewer = [k for k in conflict if k != name]
        if fewer and contradict(fewer):
            conflict = fewer
    what = ", ".join(conflict) or "the description's bodies and joint terms"
    return InfeasibleConstraintsError(
        f"no parameters satisfy all constraints at once: {what} cannot hold together; widen or "
        "leave out one of them",
        conflict=tuple(conflict),
    )
