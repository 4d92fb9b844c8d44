"""`feasid.problems`: the three programs, and a solver's answer with how far it may be off.

Solvers end between 1e-7 and 1e-2 of the optimum; Newton's method along the central path goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import null_space

from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.parameters.feasibility.cone import CENTRED, PATH_FACTOR, LogBarrier, Quadratic, minimise
from feasid.parameters.feasibility.constraints.affine import Linear
from feasid.parameters.feasibility.least_squares import FeasibleFit, LeastSquares
from feasid.parameters.feasibility.problems import Program as Program
from feasid.parameters.feasibility.problems import ScaledParameters as ScaledParameters
from feasid.parameters.feasibility.problems import closest_correction as closest_correction
from feasid.parameters.feasibility.problems import feasibility_test as feasibility_test
from feasid.parameters.feasibility.problems import feasible_least_squares as feasible_least_squares
from feasid.parameters.feasibility.problems import robot_unknowns as robot_unknowns
from feasid.parameters.feasibility.reference import Anchor
from feasid.parameters.feasibility.region import size_limits
from feasid.parameters.feasibility.solve import solve as solve_once
from feasid.parameters.feasibility.solve import solver_attempts

SETTINGS: dict[str, dict[str, Any]] = {
    "SCS": {"eps_abs": 1e-6, "eps_rel": 1e-6, "max_iters": 20_000}
}
"""Where they are not those of the verified problems: Newton's method does the rest."""

FURTHER, ZERO = 1e-6, 1e-14  #: Shares of the squared error and of the data left at a path's end.
FURTHER_MARGIN = 1e-7  #: Margin that may be left to gain at a path's end.
LARGEST_SIZE, FARTHEST = 1e6, 1e8  #: Limits on sizes of norms and margins: optima are at infinity.
WORTH = 1e-6  #: Share of the data, or margin, from which Newton's method is worth its models.
PROVED = 5e-6  #: Gap at which no other answer is tried.
ROUNDING = 1e-8  #: No gap of a margin is smaller.


@dataclass(frozen=True, eq=False)
class LargestMargin:
    """A model with given base parameters whose constraints have a margin near the largest."""

    delta: Array  #: Shape (n,): standard parameters.
    margin: float  #: Smallest margin of a constraint, at most 1, in units of bodies.
    #: No model whose sizes are below `FARTHEST` units has a margin that is larger by more than
    #: this; in floating point. NaN: no bound.
    gap: float


def solve(program: Program, solver: str = "CLARABEL") -> FeasibleFit | LargestMargin:
    """A solver's answer of a program, moved inside, polished by Newton's method, and its gap.

    `solver`: a name that CVXPY knows. Returns: ``delta``, the standard parameters in SI, and
    ``gap``, how much better any other model can be, in ``|rho|`` or ``|beta|``, or a margin.
    Raises InputError: the program is not one of `robot_unknowns`, or CVXPY lacks the solver.
    """
    if not program.data:
        raise InputError(
            "this program has no gap: only feasibility_test(p, beta), closest_correction and "
            "feasible_least_squares over robot_unknowns have one; use program.problem.solve()"
        )
    p, (base, *data), name = program.parameters, program.data, solver_attempts(solver)[0][0].upper()
    solve_once(program, name, **SETTINGS.get(name, {}))
    point = np.asarray(p.delta.value, dtype=np.float64)
    if program.error is None:
        return _largest_margin(p, np.asarray(base.K, dtype=np.float64), data[0], point)
    R, rho, margin = data
    # The point moved inside, or one of the central path where that is closer.
    problem = LeastSquares(R, rho, base, p.feasible, p.scale, margin)
    scale, inside = problem.units, problem.feasible.with_margin(problem.margin or 0.0)
    anchor, directions = Anchor(inside, scale, problem.reference), np.diag(scale.parameters)
    limits = size_limits(problem.feasible, scale, LARGEST_SIZE)
    limited = replace(inside, linear=(*inside.linear, *limits), convex=())
    barrier = LogBarrier.with_equal_weights(limited, directions)
    size = float(np.linalg.norm(problem.rho)) or 1.0
    quadratic = Quadratic(problem.A / size, problem.rho / size, directions)
    best, trial, mu = anchor.repair(point), anchor.delta, 1.0
    while barrier.barrier_parameter * mu > FURTHER * max(quadratic.value(trial), ZERO):
        minimum = minimise(
            [(1 / mu, quadratic), (1.0, barrier)], trial, directions, 0.5 * CENTRED**2
        )
        trial, mu = minimum.delta, mu / PATH_FACTOR
        gain = (problem.residual_norm(best) - problem.residual_norm(trial)) / size
        if gain > WORTH and inside.contains_strictly(trial):
            best = trial
        if not minimum.settled:
            break
    fit = FeasibleFit(problem, best, point, ())
    if fit.gap <= PROVED or not inside.contains_strictly(trial):
        return fit
    other = FeasibleFit(problem, trial, point, ())  # a better bound may be provable from there
    return min(fit, other, key=lambda end: float(np.nan_to_num(end.gap, nan=np.inf)))


def _largest_margin(p: ScaledParameters, K: Array, beta: Array, point: Array) -> LargestMargin:
    """The better of the solver's point and of the central path's end, and the path's bound."""
    feasible, scale, units = p.feasible, p.scale, p.scale.parameters
    if feasible.convex:
        raise InputError("a margin within constraints that are not affine has no gap")

    def with_beta(delta: Array) -> Array:
        change = np.linalg.lstsq(K * units, K @ delta - beta, rcond=None)[0]
        return np.asarray(delta - units * change)

    def margin(delta: Array) -> float:
        return float(min(1.0, *scale.margins(feasible, delta)))

    # ``D(delta) - s >= 0`` and ``s <= 1`` in (delta, s), with limits on sizes.
    free, n = null_space(K * units), feasible.size
    blocks, rows = [], [Linear("largest margin", np.array([n]), np.array([-1.0]), 1.0)]
    for b, unit in zip(feasible.blocks, scale.blocks, strict=True):
        basis = np.concatenate([b.basis, -np.diag(unit**2)[None]])
        blocks.append(replace(b, columns=np.append(b.columns, n), basis=basis))
    for c, size in zip(feasible.linear, scale.linear, strict=True):
        columns, coefficients = np.append(c.columns, n), np.append(c.coefficients, -size)
        rows.append(replace(c, columns=columns, coefficients=coefficients, opposite=0))
    rows += size_limits(feasible, scale, FARTHEST)
    names = (*feasible.names, ("", "s"))
    limited = replace(feasible, names=names, blocks=tuple(blocks), linear=tuple(rows))
    directions = np.zeros((n + 1, free.shape[1] + 1))
    directions[:n, :-1], directions[n, -1] = scale.parameters[:, None] * free, 1.0
    barrier = LogBarrier.with_equal_weights(limited, directions)
    best, order = with_beta(point), barrier.barrier_parameter
    # Below its own margin a point is strictly inside all conditions.
    x, mu, bound = np.r_[best, margin(best) - 1.0], 1.0, np.nan
    while order * mu > FURTHER_MARGIN:
        tilt = np.r_[np.zeros_like(best), 1 / mu]
        minimum = minimise([(1.0, barrier)], x, barrier.directions, 0.5 * CENTRED**2, tilt=tilt)
        if minimum.status != "converged":
            break
        # Nesterov and Nemirovski (1994): what is left at a decrement of at most 1/2.
        x, bound = minimum.delta, float(minimum.delta[-1]) + mu * (order + order**0.5)
        mu /= PATH_FACTOR
    if margin(last := with_beta(x[:-1])) > margin(best) + WORTH:
        best = last
    return LargestMargin(best, margin(best), max(ROUNDING, bound - margin(best)))
