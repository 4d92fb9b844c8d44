"""Points well inside the feasible set, and the repair of points that are just outside."""

from __future__ import annotations

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import SolverError
from feasid.feasibility import problems
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.feasibility.constraints.units import Units
from feasid.feasibility.program import solve
from feasid.feasibility.program.reference import Reference
from feasid.feasibility.program.solve import SolverAnswer


class NoInteriorError(SolverError):
    """No strictly feasible model was found."""


class Anchor:
    """A strictly feasible model, found when first needed, towards which points are repaired."""

    def __init__(self, feasible: FeasibleSet, scale: Units, aim: Reference) -> None:
        self._feasible, self._scale, self._aim = feasible, scale, aim
        self._delta: Array | None = None

    def delta(self) -> Array:
        """The anchor: the reference model when it keeps all limits, else an `interior_point`."""
        if self._delta is None:
            inside = self._feasible.strictly_inside(self._aim.delta)
            self._delta = (
                self._aim.delta
                if inside
                else interior_point(self._feasible, self._scale, self._aim.delta)
            )
        return self._delta

    def reaches(self, delta: Array) -> bool:
        """True when repairing `delta` ends strictly inside."""
        return self._feasible.strictly_inside(self.repair(delta))

    def repair(self, delta: Array) -> Array:
        """The nearest strictly feasible point on the way from `delta` to the anchor."""
        if self._feasible.strictly_inside(delta):
            return delta
        anchor = self.delta()
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = np.sqrt(max(low, 1e-15) * high) if high > 1e-3 else 0.5 * (low + high)
            if self._feasible.strictly_inside((1 - middle) * delta + middle * anchor):
                high = middle
            else:
                low = middle
        # A little further than the first strictly feasible point: that one may be a rounding away.
        theta = min(1.0, high * (1 + 1e-3) + 1e-12)
        return np.asarray((1 - theta) * delta + theta * anchor)


def interior_point(feasible: FeasibleSet, scale: Units, aim: Array) -> Array:
    """A point well inside the feasible set: the largest common margin up to 1, near `aim`.

    Raises
    ------
    NoInteriorError
        When none was found: then the constraints contradict each other, or leave no room.
    """
    program = problems.interior(problems.unknowns(feasible, scale), aim)

    def judge(raw: SolverAnswer) -> solve.Judgement:
        inside = feasible.strictly_inside(raw.x[:-1] * scale.parameters)
        return solve.Judgement(inside, inside, -raw.x[-1], f"common margin {raw.x[-1]:.2e}")

    raw, attempts = solve.run(program, judge)
    if raw is None:
        raise NoInteriorError("no solver found a point inside all constraints", attempts=attempts)
    return np.asarray(raw.x[:-1] * scale.parameters)
