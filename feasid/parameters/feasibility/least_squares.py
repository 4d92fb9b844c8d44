"""Feasible least squares: the best-fitting feasible parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag

from feasid.core.arguments import checked
from feasid.core.arrays import Array
from feasid.core.errors import InputError, SolverError
from feasid.options.complete import complete_options
from feasid.options.tables import SolverOptions
from feasid.parameters.feasibility import problems
from feasid.parameters.feasibility.closest import closest
from feasid.parameters.feasibility.cone import ConvexFunction, LogBarrier, Quadratic, minimise
from feasid.parameters.feasibility.constraints.elimination import Elimination
from feasid.parameters.feasibility.constraints.sets import FeasibleSet
from feasid.parameters.feasibility.constraints.units import Units, problem_units
from feasid.parameters.feasibility.problems import Program
from feasid.parameters.feasibility.reference import Reference, reference_model
from feasid.parameters.feasibility.solve import Attempt
from feasid.parameters.identifiability.base import resolve_base
from feasid.robot.description import Robot
from feasid.robot.known import Weighed

if TYPE_CHECKING:
    from feasid.parameters.feasibility.proof.claim import Certificate
    from feasid.parameters.feasibility.proof.optimality import Optimum


FRICTION_RIDGE = 1e-3
"""Ridge on fv, fc and fo as a fraction of their columns' norm in the data: it moves a well
excited coefficient by one part in a million, and divides the sum of offset and Coulomb friction
evenly at a joint that moves in one direction only and cannot separate them."""


class BaseMap(Protocol):
    """A robot and the map beta = K delta of its base parameters, (nb, n)."""

    @property
    def robot(self) -> Robot: ...  # noqa: D102

    @property
    def K(self) -> Array: ...  # noqa: D102, N802


@dataclass(frozen=True, eq=False)
class ExtendedMap:
    """Base parameters and, after them, standard parameters that were weighed."""

    robot: Robot
    K: Array  #: Shape (nb + k, n).


def with_weighed(
    base: BaseMap, R: Array, rho: Array, weighed: Sequence[Weighed]
) -> tuple[BaseMap, Array, Array]:
    """Whitened equations with one more for each parameter that was weighed, and their map.

    A weighed value counts by its own standard error, as a row of a log does by the noise.
    """
    if not weighed:
        return base, R, rho
    rows = np.eye(base.robot.size)[[w.column(base.robot) for w in weighed]]
    values, deviations = np.array([(w.value, w.deviation) for w in weighed]).T
    every = ExtendedMap(base.robot, np.vstack([np.asarray(base.K, dtype=np.float64), rows]))
    return every, block_diag(R, np.diag(1 / deviations)), np.append(rho, values / deviations)


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Minimise ``|R K delta - rho|`` over a feasible set."""

    R: Array  #: Shape (rows, nb).
    rho: Array  #: Shape (rows,).
    base: BaseMap
    feasible: FeasibleSet
    units: Units
    #: Absolute in SI numbers, as the caller asked; None for none but our own.
    margin: float | None = None

    @classmethod
    def from_data(
        cls, R: Array, rho: Array, base: BaseMap, feasible: FeasibleSet, margin: float | None = None
    ) -> LeastSquares:
        """The problem in the units of its bodies and its data."""
        units = problem_units(base.robot, feasible, R @ base.K, rho, torques=True)
        return cls(R, rho, base, feasible, units, margin)

    @cached_property
    def A(self) -> Array:  # noqa: N802
        """R K: the rows over the standard parameters, shape (rows, n)."""
        return self.R @ np.asarray(self.base.K, dtype=np.float64)

    @cached_property
    def reference(self) -> Reference:
        """Model towards which undetermined parameters are drawn."""
        return reference_model(self.base.robot, self.units)

    @cached_property
    def generic_units_and_reference(self) -> tuple[Units, Reference]:
        """Units and a reference that do not depend on the description's inertials."""
        robot, data = self.base.robot, (self.A, self.rho)
        scale = problem_units(robot, self.feasible, *data, torques=True, inertials=False)
        return scale, reference_model(robot, scale, inertials=False)

    def program(self, ridge: float = FRICTION_RIDGE) -> tuple[Program, Elimination]:
        """The program in CVXPY over the parameters that equalities leave free, and these."""
        elimination = Elimination.from_equalities(self.feasible).require_consistent()
        rows, target = _least_squares_rows(self.A, self.rho, self.base.robot, ridge, None, 0.0)
        p = problems.unknowns(elimination.inside, elimination.units(self.units))
        b = target - rows @ elimination.fixed
        return problems.feasible_least_squares(rows @ elimination.T, b, p, self.margin), elimination

    def solve(
        self,
        solver: Any = None,
        ridge: float = FRICTION_RIDGE,
        prior: npt.ArrayLike | None = None,
        prior_weight: float = 0.0,
    ) -> FeasibleFit:
        """The optimum, see `feasible_least_squares`."""
        data = _least_squares_rows(self.A, self.rho, self.base.robot, ridge, prior, prior_weight)
        known, generic = (self.feasible, self.units), self.generic_units_and_reference
        result = closest(*data, *known, self.reference, self.margin, solver, generic=generic)
        return FeasibleFit(self, result.delta, result.raw, result.attempts)

    def residual_norm(self, delta: Array) -> float:
        """``|R K delta - rho|``."""
        return float(np.linalg.norm(self.R @ (self.base.K @ delta) - self.rho))


@dataclass(frozen=True, eq=False)
class FeasibleFit:
    """A strictly feasible model, verified in exact arithmetic: a problem and an answer."""

    problem: LeastSquares
    delta: Array  #: Shape (n,): standard parameters.
    #: Shape (n,): the solver's own point, before it was repaired, and before slack.
    raw: Array = field(repr=False)
    attempts: tuple[Attempt, ...]  #: Every solver call, in order.

    @cached_property
    def beta(self) -> Array:
        """Base parameters ``K @ delta``, shape (nb,)."""
        return np.asarray(self.problem.base.K @ self.delta)

    @property
    def objective(self) -> float:
        """``|R beta - rho|^2``."""
        return self.problem.residual_norm(self.delta) ** 2

    @property
    def gap(self) -> float:
        """By what fraction of ``|rho|`` the residual ``|R beta - rho|`` could at most be lower.

        Proved like `optimality`, for the problem without the ridge, pull and margin of the method;
        the costs of these and of slack are included. NaN when nothing is proved.
        """
        if self._optimum is None:
            return np.nan
        above = self.problem.residual_norm(self.delta) - float(np.sqrt(self.floor))
        size = float(np.linalg.norm(self.problem.rho))
        return max(0.0, above) / size if size else 0.0

    @property
    def floor(self) -> float:
        """No feasible model has a smaller ``|R beta - rho|^2``: proved; 0 where nothing is."""
        return 0.0 if self._optimum is None else float(self._optimum.floor)

    @cached_property
    def optimality(self) -> Certificate | None:
        """Proof that no feasible model fits much better; None when there is none."""
        return self.certify()

    def certify(self, residual: float = 0.0) -> Certificate | None:
        """Prove the optimum of ``|R beta - rho|^2 + residual^2``."""
        return None if self._optimum is None else self._optimum.certificate(residual)

    @cached_property
    def _optimum(self) -> Optimum | None:
        problem, robot = self.problem, self.problem.base.robot
        from feasid.parameters.feasibility.proof.optimality import prove_optimum
        from feasid.parameters.feasibility.proof.question import Question

        K = np.asarray(problem.base.K)
        question = Question.from_doubles(robot, problem.feasible, K, None, problem.margin or 0.0)
        scale, middle = problem.generic_units_and_reference
        return prove_optimum(question, problem.R, problem.rho, self.delta, middle.delta, scale)

    @property
    def margins(self) -> dict[str, float]:
        """Per constraint matrix, its smallest eigenvalue in units of the body's mass and length."""
        feasible = self.problem.feasible
        values = self.problem.units.block_margins(feasible, self.delta).tolist()
        return dict(zip((b.name for b in feasible.blocks), values, strict=True))

    @property
    def consistency(self) -> str:
        """Meaning of feasible: "full" or "semi"."""
        return self.problem.feasible.consistency

    @property
    def tie_break(self) -> str:
        """Model towards which undetermined parameters were drawn.

        "description": the description's own inertials; "centre": generic bodies; "mixed": the
        former for the bodies in `bodies_with_reference`.
        """
        return self.problem.reference.tie_break

    @property
    def bodies_with_reference(self) -> tuple[str, ...]:
        """Bodies whose own inertials were usable as a reference."""
        known = self.problem.reference.from_description
        return tuple(b for b, k in zip(self.problem.feasible.bodies, known, strict=True) if k)

    @property
    def residual_increase(self) -> float:
        """Relative increase of ``|R beta - rho|`` over the solver's own point.

        For an optimum, the cost of making it strictly feasible; with slack, also its cost.
        """
        before = self.problem.residual_norm(self.raw)
        return max(0.0, self.problem.residual_norm(self.delta) / before - 1) if before > 0 else 0.0

    @property
    def units(self) -> Units:
        """In which margins are counted."""
        return self.problem.units

    @property
    def verified(self) -> str:
        """Statement, in words, that holds in exact arithmetic.

        Raises SolverError: when something does not.
        """
        feasible = self.problem.feasible
        if violations := feasible.violations(self.delta):
            raise SolverError(f"the answer violates {', '.join(violations)} in exact arithmetic")
        return (
            f"{len(feasible.blocks)} matrices positive definite and {len(feasible.linear)} linear "
            f"limits kept, in exact rational arithmetic ({feasible.consistency} consistency)"
            + f"; {len(feasible.convex)} constraints that are not affine kept in floating point"
            * bool(feasible.convex)
        )


@checked
def feasible_least_squares(
    R: npt.ArrayLike,
    rho: npt.ArrayLike,
    base: Any,
    feasible: FeasibleSet,
    *,
    margin: float | None = None,
    friction_ridge: float = FRICTION_RIDGE,
    prior: npt.ArrayLike | None = None,
    prior_weight: float = 0.0,
    solver: Any = None,
) -> FeasibleFit:
    """Minimise ``|R K delta - rho|`` over the feasible set, then choose one full model.

    This is FBPE-OLS, Sousa and Cortesao (2014) eq. (64)-(75), on the triangular factor and as a
    second-order cone, in units of each body. Base parameters do not determine delta; along
    directions that the data do not determine, the model closest to the reference is taken (see
    `feasid.parameters.feasibility.cone`).

    Parameters
    ----------
    R : array_like, shape (rows, nb)
        Reduced regressor of the base parameters, weighted as the fit should be [N m].
    rho : array_like, shape (rows,)
    base : BaseParameters, Robot or path
        Its ``robot`` and ``K`` are used.
    feasible : FeasibleSet
        Of the same robot: see `feasid.feasible_set`.
    margin : float, optional
        Absolute margin in SI numbers on every matrix and linear constraint, as the paper's
        epsilon of eq. (21). By default `MARGIN` in units of each body's own mass and length.
    friction_ridge : float
        See `FRICTION_RIDGE`; 0 for none.
    prior : array_like, shape (n,), optional
        Initial guess delta0 of the standard parameters, with `prior_weight` w: minimises
        ``|R K delta - rho|^2 + w |delta - delta0|^2``, the "initial guess" of eq. (33) in the
        Valkyrie identification paper with w = (1 - alpha)/alpha.
    prior_weight : float
    solver : str, optional
        A name that CVXPY knows; see `feasid.parameters.feasibility.solve.solver_attempts`.

    Returns
    -------
    FeasibleFit

    Raises
    ------
    InputError
        Shapes do not match, a number is not finite, or the constraints contradict each other.
    SolverError
        No attempt returned a point that passed verification; ``attempts`` lists them.
    """
    base = resolve_base(base)
    solver = complete_options(SolverOptions, {"solver": solver}, "feasible_least_squares")["solver"]
    robot, K = base.robot, np.asarray(base.K, dtype=np.float64)
    if feasible.names != robot.parameter_names or K.shape[1] != feasible.size:
        raise InputError(
            f"the feasible set has {feasible.size} parameters and K is {len(K)} x {K.shape[1]} for "
            f"robot {robot.name!r} with {robot.size}: they belong to different robots"
        )
    R = problems.require_data(R, (*np.shape(R)[:1], len(K)), "R")
    rho = problems.require_data(rho, np.shape(R)[:1], "rho")
    problem = LeastSquares.from_data(R, rho, base, feasible, margin)
    return problem.solve(solver, friction_ridge, prior, prior_weight)


def _least_squares_rows(
    A: Array, b: Array, robot: Robot, ridge: float, prior: npt.ArrayLike | None, prior_weight: float
) -> tuple[Array, Array]:
    """Data, ridge and prior as rows over the standard parameters."""
    rows, target = [A], [b]
    if ridge:
        drives = map(robot.drive_columns, range(len(robot.drives)))
        friction = [j for drive in drives for symbol, j in drive.items() if symbol != "Ia"]
        extra = np.zeros((len(friction), A.shape[1]))
        extra[np.arange(len(friction)), friction] = ridge * np.linalg.norm(A[:, friction], axis=0)
        rows.append(extra)
        target.append(np.zeros(len(friction)))
    if prior is not None and prior_weight:
        if not prior_weight > 0:
            raise InputError(f"prior_weight must be positive, not {prior_weight}")
        rows.append(np.sqrt(prior_weight) * np.eye(A.shape[1]))
        target.append(np.sqrt(prior_weight) * robot.check_parameters(prior))
    return np.vstack(rows), np.concatenate(target)


WEIGHTS = (1e-12, 1e6)
"""Weights between which the bound is searched; beyond them it does not bind, or cannot be kept."""

SEARCH_STEPS = 14  #: Halvings of the interval of log weights: to one part in 16 000 of its width.
NEGLIGIBLE_PARAMETER = 1e-14
"""Parameters below this share of their unit are zeros that the iteration approached."""

DECREMENT = 1e-8
"""Newton decrement, squared and halved, at which a minimiser is close enough, per weight."""


def regularise(solution: FeasibleFit, residual: float, slack: float) -> FeasibleFit:
    """Among models with residual at most (1 + slack) times the optimum, the nearest to a reference.

    The optimum often lies on the boundary of the feasible set, or at infinity: a link whose inertia
    tends to zero while its mass grows to hundreds of kilograms predicts a log better by one part
    in a thousand. The reference is the description's own inertials, or a generic body, and the
    distance is the entropic divergence. By Lagrange duality that is the minimiser of

        |A delta - b|^2 / (2 |A delta* - b|^2) + weight * divergence(delta, reference)

    for the largest weight that keeps the bound; every such minimiser is strictly feasible.

    `solution`: the optimum, from
    `feasid.parameters.feasibility.least_squares.feasible_least_squares`; `residual`: its squared
    residual is ``|R K delta - rho|^2 + residual^2``; `slack`: relative increase of the residual
    that is given up at most; 0 returns `solution`. Returns: verified in exact arithmetic like
    `solution`.
    """
    problem, feasible = solution.problem, solution.problem.feasible
    optimum = solution.objective + residual**2
    if slack == 0 or not optimum > 0:
        return solution
    bound = (1 + slack) ** 2 * optimum - residual**2
    elimination = Elimination.from_equalities(feasible).require_consistent()
    A, b = problem.A @ elimination.T, problem.rho - problem.A @ elimination.fixed
    reference, robot = problem.reference.delta.copy(), problem.base.robot
    for k in range(len(robot.drives)):  # friction is data's business, not the reference's
        columns = list(robot.drive_columns(k).values())
        reference[columns] = solution.delta[columns]
    sizes = solution.units.parameters[elimination.roots]
    directions = np.diag(sizes)
    cone = LogBarrier.for_divergence(elimination.inside, reference[elimination.roots], directions)
    residual_share = Quadratic(A / np.sqrt(optimum), b / np.sqrt(optimum), directions)
    z = solution.delta[elimination.roots]
    low, high = np.log(WEIGHTS)
    for _ in range(SEARCH_STEPS):
        middle = 0.5 * (low + high)
        weight = float(np.exp(middle))
        terms: list[tuple[float, ConvexFunction]] = [(1.0, residual_share), (weight, cone)]
        trial = minimise(terms, z, directions, DECREMENT * weight).delta
        if float(np.sum((A @ trial - b) ** 2)) <= bound:
            z, low = trial, middle
        else:
            high = middle
    delta = elimination.expand(np.where(np.abs(z) < NEGLIGIBLE_PARAMETER * sizes, 0.0, z))
    if violations := feasible.violations(delta):  # convex ones are not in the divergence
        raise InputError(
            f"with slack={slack:g} the answer violates {', '.join(violations)}: leave slack out, "
            "or give a prior, with which every constraint holds",
            option="slack",
        )
    return replace(solution, delta=delta)
