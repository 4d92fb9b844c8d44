"""Whether a motion keeps its limits, on a grid far finer than the one it was designed on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from feasid.applications.excitation.basis import times_within_period
from feasid.applications.excitation.bounds import Bounds
from feasid.applications.excitation.problem import (
    FINAL_REFINEMENT,
    LIMIT_GRID_REFINEMENT,
    LimitBarrier,
    Objective,
    PostureConstraint,
    Problem,
    limit_margins,
    repeat_limits,
)
from feasid.applications.excitation.regressor_gradient import MotionRegressor
from feasid.core.arguments import checked_methods
from feasid.core.arrays import Array
from feasid.core.errors import InputError

CHECK_REFINEMENT = 20
"""Motions are checked at this many times between any two at which they were designed."""

MIN_MARGIN = 1e-6
"""Smallest margin of motions, in units of half the range. One of h harmonics that leaves r at N
times leaves ``1 - (1 - r) / cos(pi h / N)`` between them (Ehlich and Zeller, 1964), and at the 2880
times per harmonic of the check the cosine lacks 6e-7."""

EXPONENT = 1024.0
"""Exponent of the smooth approximation of the condition number in `ExcitationProblem`, as in the
last stage of the search."""

MAX_SCALING_STEPS = 10
"""Number of bisections for the largest feasible size, and of steps inward after it."""

SCALING_STEP = 2e-4  #: Share of its size that a motion loses in each step inward.


@dataclass(frozen=True)
class Margin:
    """The smallest margin of a limit over a motion; ``slack`` is in units of the limit's scale."""

    name: str
    joint: str | None
    kind: str
    slack: float


def check_times(problem: Problem) -> Array:
    """Times at which motions are checked."""
    count = CHECK_REFINEMENT * LIMIT_GRID_REFINEMENT * FINAL_REFINEMENT * problem.samples
    return times_within_period(problem.basis, count)


def smallest_margins_of_design(problem: Problem, coefficients: Array, t: Array) -> list[Margin]:
    """The least margin of every limit over these times."""
    motion = [np.ascontiguousarray(m.T) for m in problem.basis.matrices(t) @ coefficients]
    limits = problem.bounds, problem.constraints
    return smallest_margins_of_motion(problem.exact_dynamics, *limits, motion)


def smallest_margins_of_motion(
    dynamics: MotionRegressor,
    bounds: Bounds,
    constraints: Sequence[PostureConstraint],
    motion: Sequence[Array],
) -> list[Margin]:
    """The least margin of every limit over a motion: position and three derivatives, (dof, N)."""
    joints = dynamics.robot.joints
    out: list[Margin] = []
    values = dict(zip(("position", "velocity", "acceleration", "jerk"), motion, strict=True))
    torque = bool(np.isfinite(bounds.torque).any())
    evaluation = None
    if torque or constraints:
        evaluation = dynamics.evaluate(*motion[:3], torque=torque)
        values["torque"] = evaluation.torques
    for kind, limit in bounds.limits_by_name():
        if np.isfinite(limit).any():
            limit = repeat_limits(limit, values[kind])
            margins, rows, _ = limit_margins(values[kind], limit)
            for row, low in zip(rows, margins.min(axis=1), strict=True):
                j = int(row) % len(joints)  # below torques with friction, those without it
                name = f"{kind} limit of joint {joints[j]!r}"
                out.append(Margin(name, joints[j], kind, float(low)))
    for part in constraints:
        assert evaluation is not None
        pairs = zip(part.margin_names, part(evaluation)[0].min(axis=1), strict=True)
        out += [Margin(name, None, "space", float(low)) for name, low in pairs]
    return out


@checked_methods
@dataclass(frozen=True, eq=False)
class ExcitationProblem:
    """The problem that `feasid.excite` solves, for your own optimiser.

    The unknowns z, shape (size,), are coefficients of the joints' motions in units of their limits;
    z = 0 is standstill at a posture that satisfies all constraints.
    """

    problem: Problem  #: The objective and the bounds.
    #: The objective for an exponent of the condition number's smooth stand-in.
    objectives: Callable[[float], Objective]
    start: Array  #: Shape (size,): a random motion.

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return len(self.start)

    def objective(self, z: npt.ArrayLike) -> float:
        """The value to minimise: minus log det per parameter, or the logarithm of another
        objective.

        Parameters
        ----------
        z : array_like, shape (size,)

        Returns
        -------
        float

        Raises
        ------
        InputError
            `z` has another shape or is not finite.
        """
        return self._evaluate(z, self.objectives(EXPONENT), 0.0)[0]

    def gradient(self, z: npt.ArrayLike) -> Array:
        """Derivative of `objective` by the unknowns.

        Parameters
        ----------
        z : array_like, shape (size,)

        Returns
        -------
        ndarray, shape (size,)

        Raises
        ------
        InputError
            `z` has another shape or is not finite.
        """
        return self._evaluate(z, self.objectives(EXPONENT), 0.0)[1]

    def barrier(self, z: npt.ArrayLike, weight: float, reach: float) -> tuple[float, Array]:
        """Logarithmic barrier of all limits, continued as a parabola where a margin is below
        `reach`.

        Parameters
        ----------
        z : array_like, shape (size,)
        weight, reach : float
            See `feasid.applications.excitation.problem.LimitBarrier`; the search goes from 0.1,
            0.05 to 1e-4, 1e-5.

        Returns
        -------
        value : float
        gradient : ndarray, shape (size,)

        Raises
        ------
        InputError
            `z` has another shape or is not finite.
        """
        return self._evaluate(z, None, weight, reach)

    def margins(self, z: npt.ArrayLike) -> tuple[Margin, ...]:
        """The smallest margin of every limit over a fine grid; ``slack`` is negative if a limit is
        violated.

        Parameters
        ----------
        z : array_like, shape (size,)

        Returns
        -------
        tuple of Margin

        Raises
        ------
        InputError
            `z` has another shape or is not finite.
        """
        coefficients = self.problem.coordinates.coefficients(as_unknowns(z, self.size))
        t = check_times(self.problem)
        return tuple(smallest_margins_of_design(self.problem, coefficients, t))

    def _evaluate(
        self, z: npt.ArrayLike, objective: Objective | None, weight: float, reach: float = 1.0
    ) -> tuple[float, Array]:
        return self.problem(as_unknowns(z, self.size), objective, LimitBarrier(weight, reach))


def as_unknowns(z: npt.ArrayLike, size: int) -> Array:
    """Unknowns of a motion; raises InputError if their number is wrong or one is not finite."""
    out = np.asarray(z, dtype=np.float64)
    if out.shape != (size,) or not np.isfinite(out).all():
        raise InputError(f"unknowns of a motion must be {size} finite numbers")
    return out


def satisfies_limits(problem: Problem, z: Array, t: Array) -> bool:
    """Whether all limits hold at these times and between them."""
    margins = smallest_margins_of_design(problem, problem.coordinates.coefficients(z), t)
    return all(margin.slack >= MIN_MARGIN for margin in margins)


def shrink_into_limits(problem: Problem, z: Array, t: Array) -> Array | None:
    """The motion scaled down until it satisfies its limits, None when that does not help.

    z = 0 is standstill at a posture that satisfies all constraints; limits on joints are convex, so
    that they hold for all smaller motions once they hold for one.
    """
    # Some of the times are enough to find the size; all of them decide.
    share = largest_feasible_scale(problem, z, t[:: CHECK_REFINEMENT // 2])
    for _ in range(MAX_SCALING_STEPS if share else 0):
        if satisfies_limits(problem, share * z, t):
            return share * z
        share *= 1 - SCALING_STEP
    return None


def largest_feasible_scale(problem: Problem, z: Array, t: Array) -> float:
    """The largest size at which a motion keeps its limits at these times; 0 for none."""
    if satisfies_limits(problem, z, t):
        return 1.0
    # Distances between links are not convex in the size: the largest of several is bracketed.
    good, bad = 0.0, 1.0
    for share in (0.9999, 0.999, 0.99, 0.95, 0.9, 0.8, 0.6, 0.4, 0.2, 0.1, 0.05):
        if satisfies_limits(problem, share * z, t):
            good = share
            break
        bad = share
    for _ in range(MAX_SCALING_STEPS if good else 0):
        middle = 0.5 * (good + bad)
        good, bad = (middle, bad) if satisfies_limits(problem, middle * z, t) else (good, middle)
    return good


def scale_to_limits(problem: Problem, z: Array) -> Array:
    """Each joint's motion scaled to reach its tightest limit."""
    motions = z.reshape(problem.coordinates.shape)
    usage = np.array([problem.limit_usage(j, motion) for j, motion in enumerate(motions)])
    return np.asarray((motions / np.where(usage > 0, usage, 1.0)[:, None]).ravel())
