"""Trading an insignificant part of the fit for a model that looks like a robot.

The optimum of feasible least squares often lies on the boundary of the feasible set, or at
infinity: a link whose inertia tends to zero while its mass grows to hundreds of kilograms predicts
a log better by one part in a thousand. Among all feasible models whose residual is at most
``(1 + slack)`` times the smallest possible, `settle` takes the one that is closest to the
reference model (the description's own inertials, or a generic body) in the entropic divergence.
By Lagrange duality that is the minimiser of

    |A delta - b|^2 / (2 |A delta* - b|^2) + weight * divergence(delta, reference)

for the largest weight that keeps the bound; every such minimiser is strictly feasible.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from feasid.errors import InputError
from feasid.feasibility.cone import Cone, Quadratic, Term, minimise
from feasid.feasibility.constraints.elimination import Elimination
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.feasibility.least_squares import Base, FeasibleFit
from feasid.feasibility.program import solve

WEIGHTS = (1e-12, 1e6)
"""Weights between which the bound is searched; beyond them it does not bind, or cannot be kept."""

SEARCH_STEPS = 14
"""Halvings of the interval of log weights: to one part in 16 000 of its width."""

NOTHING = 1e-14
"""Parameters below this share of their unit are zeros that the iteration approached."""

DECREMENT = 1e-8
"""Newton decrement, squared and halved, at which a minimiser is close enough, per weight."""


def settle(
    R: npt.ArrayLike,
    rho: npt.ArrayLike,
    residual: float,
    base: Base,
    feasible: FeasibleSet,
    solution: FeasibleFit,
    slack: float,
) -> FeasibleFit:
    """The model closest to the reference among those that fit almost as well as `solution`.

    Parameters
    ----------
    R, rho, residual
        The triangle of the fit: ``|R K delta - rho|^2 + residual^2`` is its squared residual.
    base : BaseParameters
    feasible : FeasibleSet
    solution : FeasibleFit
        The optimum, from `feasid.feasibility.least_squares.feasible_least_squares`.
    slack : float
        Relative increase of the residual that is given up at most; 0 returns `solution`.

    Returns
    -------
    FeasibleFit
        Verified in exact arithmetic like `solution`.
    """
    if not (np.isfinite(slack) and slack >= 0):
        raise InputError(f"slack must be a non-negative number, not {slack}")
    R, rho = np.asarray(R, dtype=np.float64), np.asarray(rho, dtype=np.float64)
    optimum = solution.objective + residual**2
    if slack == 0 or not optimum > 0:
        return solution
    bound = (1 + slack) ** 2 * optimum - residual**2
    door = Elimination.of(feasible).required()
    A = (R @ np.asarray(base.K, dtype=np.float64)) @ door.T
    b = rho - (R @ np.asarray(base.K, dtype=np.float64)) @ door.fixed
    aim = solution.problem.aim.delta.copy()
    for k in range(len(base.robot.drives)):
        columns = list(base.robot.drive_columns(k).values())
        aim[columns] = solution.delta[columns]  # friction is data's business, not the reference's
    sizes = solution.units.parameters[door.roots]
    directions = np.diag(sizes)
    cone = Cone.divergence(door.inside, aim[door.roots], directions)
    residual_share = Quadratic(A / np.sqrt(optimum), b / np.sqrt(optimum), directions)
    z = solution.delta[door.roots]
    low, high = np.log(WEIGHTS)
    for _ in range(SEARCH_STEPS):
        middle = 0.5 * (low + high)
        weight = float(np.exp(middle))
        terms: list[tuple[float, Term]] = [(1.0, residual_share), (weight, cone)]
        trial = minimise(terms, z, directions, DECREMENT * weight).delta
        if float(np.sum((A @ trial - b) ** 2)) <= bound:
            z, low = trial, middle
        else:
            high = middle
    delta = door.expanded(np.where(np.abs(z) < NOTHING * sizes, 0.0, z))
    broken = feasible.violations(delta)
    if broken:
        raise solve.failed(f"the answer breaks {', '.join(broken)} in exact arithmetic", ())
    return FeasibleFit(solution.problem, delta, solution.raw, solution.attempts)
