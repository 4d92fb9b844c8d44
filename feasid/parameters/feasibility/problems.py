"""The three problems of Sousa and Cortesao (2014), stated in CVXPY.

    BPFT      maximise s                    over  D(delta) >= s,       K delta = beta      eq. (51)
    BPFC      minimise |K delta - beta|     over  D(delta) >= margin                  eq. (52)-(56)
    FBPE-OLS  minimise |R K delta - rho|    over  D(delta) >= margin                  eq. (64)-(75)

D(delta) denotes all matrices and numbers of a feasible set. The unknown of a program is not
delta but x, delta in units: of each body's mass and length, or those in which the columns of the
data have norm one. Solvers' tolerances then mean the same for a finger and for a leg. What changes
from one solve to the next (R, rho, beta) is a `cvxpy.Parameter` (DPP).

    p = robot_unknowns(base, rho, R=R)
    program = feasible_least_squares(R, rho, p)
    program.problem.solve()                     # the relative error |R K delta - rho| / |rho|
    p["link3", "m"].value                       # SI, by name
    feasid.problems.solve(program, "SCS").gap   # how far its answer may be from the optimum

`feasid.check`, `feasid.correct` and `feasid.feasible_least_squares` solve them and prove answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from feasid.core.arguments import checked
from feasid.core.arrays import Array, require_finite
from feasid.core.errors import InputError
from feasid.parameters.feasibility.constraints.sets import FeasibleSet, feasible_set
from feasid.parameters.feasibility.constraints.units import Units, problem_units
from feasid.parameters.feasibility.constraints.user_constraints import cp
from feasid.parameters.identifiability.base import BaseParameters
from feasid.robot.description import Robot

LARGEST = 1e150  #: Largest number in the data: squares of larger ones overflow.
MARGIN = 1e-6  #: Default margin, in units of each body's own mass and length.
FAINT_DIRECTION = 1e-2
"""Directions of the unknowns with less than this share of the data are not scaled to one."""

INTERIOR_PULL = 1e-4
"""Weight of the distance to a model, in units, relative to a margin in `interior_point_problem`."""


@dataclass(frozen=True, eq=False)
class Program:
    """A CVXPY problem whose parts are known by their place."""

    problem: Any  #: Cvxpy.Problem.
    parameters: ScaledParameters  #: The unknowns of the program.
    further: tuple[Any, ...]  #: Tuple of cvxpy.Variable: looked for, too.
    matrices: tuple[Any, ...]  #: Tuple of cvxpy.Constraint: one per block of the feasible set.
    #: Cvxpy.Constraint: all linear constraints of the feasible set and, last, those of the program.
    numbers: Any
    #: Tuple of cvxpy.Constraint: the feasible set's inequalities that are not affine.
    convex: tuple[Any, ...] = ()
    error: Any = None  #: Cvxpy.Expression: the error whose norm is minimised.
    #: Over `robot_unknowns`: base, rows of K delta, target and margin; base and beta of a test.
    data: tuple[Any, ...] = ()

    @property
    def unknowns(self) -> tuple[Any, ...]:
        """Variables, in the order in which a solver's answer lists their values."""
        return (self.parameters.x, *self.further)

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return sum(int(v.size) for v in self.unknowns)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Rows of each matrix."""
        return tuple(int(m.shape[0]) for m in self.matrices)

    @property
    def rows(self) -> int:
        """Number of linear constraints."""
        return 0 if self.numbers is None else int(self.numbers.size)

    def with_squared_cost(self) -> Any:
        """The problem with half the square of the norm: the same minimisers."""
        half = cp.Minimize(0.5 * cp.sum_squares(self.error))
        return cp.Problem(half, self.problem.constraints)


@dataclass(frozen=True, eq=False)
class ScaledParameters:
    """Standard parameters as expressions of a program's unknowns."""

    #: Without equalities: see `feasid.parameters.feasibility.constraints.elimination`.
    feasible: FeasibleSet
    scale: Units
    x: Any  #: Cvxpy.Variable.
    scaled: Any  #: Cvxpy.Expression, shape (n,): the standard parameters in units.
    K: Array | None = None  #: Shape (nb, n).
    #: Shape (n,): one unit of the bodies, where `scale` has those of the data's columns.
    sizes: Array | None = None
    error_unit: float = 1.0  #: What a program minimises is the norm of its error in this unit.
    model: BaseParameters | None = None  #: Of `robot_unknowns`.

    @property
    def delta(self) -> Any:
        """Standard parameters in SI, shape (n,)."""
        return cp.multiply(self.scale.parameters, self.scaled)

    @property
    def base(self) -> Any:
        """Base parameters ``K delta``, shape (nb,); delta itself without K."""
        return self.delta if self.K is None else (self.K * self.scale.parameters) @ self.scaled

    def __getitem__(self, name: tuple[str, str]) -> Any:
        """A standard parameter in SI, such as ``p["link3", "m"]``."""
        return self.delta[self.feasible.names.index(name)]

    def feasibility_constraints(
        self, margin: float | None = None, s: Any = None
    ) -> tuple[tuple[Any, ...], Any]:
        """``D(delta) >= margin``: the matrices, eq. (21)-(24), and the numbers, eq. (26) and (28).

        The margin is absolute in SI numbers, or `MARGIN` in units for None, or the unknown ``s`` of
        at most 1 in units.
        """
        F, f, G, h = normalise_constraints(self.feasible, self.scale)
        identity, ones = unit_margins(self.scale)
        if s is None:
            entries, numbers = margins(self.scale, margin)
            stacked = F @ self.scaled + (f - entries)
            values = [G @ self.scaled + (h - numbers)] if len(h) else []
        else:
            stacked = F @ self.scaled + f - identity * s
            values = [*([G @ self.scaled + h - ones * s] if len(h) else []), 1 - s]
        ends = np.cumsum([0, *(len(unit) ** 2 for unit in self.scale.blocks)]).tolist()
        matrices = tuple(
            cp.reshape(stacked[a:b], (len(unit), len(unit)), order="C") >> 0
            for (a, b), unit in zip(pairwise(ends), self.scale.blocks, strict=True)
        )
        return matrices, cp.hstack(values) >= 0 if values else None

    def program(
        self,
        objective: Any,
        exist: tuple[tuple[Any, ...], Any],
        further: tuple[Any, ...] = (),
        given: Sequence[Any] = (),
        error: Any = None,
    ) -> Program:
        """The program of an objective over the feasible set and the constraints in `given`."""
        matrices, numbers = exist
        s = next((v for v in further if v.name() == "s"), MARGIN)
        units = self.scale.parameters if self.sizes is None else self.sizes
        convex = tuple(
            c.expression(self.delta) + s * np.asarray(np.abs(c.gradient(units)) @ units) <= 0
            for c in self.feasible.convex
        )
        rules = [*matrices, *([] if numbers is None else [numbers]), *convex, *given]
        problem = cp.Problem(objective, rules)
        return Program(problem, self, further, matrices, numbers, convex, error)

    def least_norm(self, error: Any, margin: float | None, *data: npt.ArrayLike) -> Program:
        """Minimise the norm of an error, in its unit, over ``D(delta) >= margin``."""
        cost = cp.Minimize(cp.norm(error / self.error_unit))
        program = self.program(cost, self.feasibility_constraints(margin), error=error)
        return replace(program, data=(self.model, *data, margin) if self.model else ())


def unknowns(
    feasible: FeasibleSet, scale: Units, K: npt.ArrayLike | None = None
) -> ScaledParameters:
    """All standard parameters of a feasible set without equalities as unknowns."""
    x = cp.Variable(feasible.size, name="x")
    return ScaledParameters(feasible, scale, x, x, None if K is None else np.asarray(K))


@checked
def robot_unknowns(
    base: BaseParameters, values: npt.ArrayLike, R: npt.ArrayLike | None = None, **bounds: Any
) -> ScaledParameters:
    """The unknowns of a robot, rotated and scaled so that each has a column of norm one in the
    data.

    `values`: (rows,), beta, or rho with the reduced regressor `R`, whose rows are torques: their
    norm is the unit of errors, and by their size bodies without inertials of their own get a mass.
    `bounds`: of `feasid.feasible_set`. Raises InputError: for equalities (known, equal and
    mirrored parameters), for which see `feasid.Fit.problem`; names the array of another shape, or
    with a number beyond 1e150.
    """
    feasible, K = feasible_set(base.robot, **bounds), np.asarray(base.K, dtype=np.float64)
    if feasible.equalities:
        raise InputError(f"{feasible.equalities[0].name} is an equality: give it to the program")
    if R is not None and np.shape(R)[1:] != K.shape[:1]:
        raise InputError(f"R must have {len(K)} columns, one per base parameter, not {np.shape(R)}")
    rows = K if R is None else require_data(R, np.shape(R), "R") @ K
    values = require_data(values, (len(rows),), "values")
    scale = problem_units(base.robot, feasible, rows, values, torques=R is not None)
    size = float(np.linalg.norm(values)) or 1.0
    shown, directions = np.linalg.svd(rows * scale.parameters / size)[1:]
    shown = np.pad(shown, (0, len(directions) - len(shown)))
    directions = directions.T / np.maximum(shown, FAINT_DIRECTION)
    free = virtual(feasible, scale, np.zeros(len(shown)), directions)
    return replace(free, K=K, error_unit=size, model=base)


def virtual(
    feasible: FeasibleSet, scale: Units, start: Array, directions: Array
) -> ScaledParameters:
    """``delta = units (start + directions x)``: eq. (40), those with given base parameters."""
    x = cp.Variable(directions.shape[1], name="x")
    return ScaledParameters(feasible, scale, x, start + directions @ x)


def require_data(value: npt.ArrayLike, shape: tuple[int, ...], name: str) -> Array:
    """Return numbers of a shape whose squares are finite; an InputError names any others."""
    array = require_finite(value, shape, name)
    if (np.abs(array) > LARGEST).any():
        raise InputError(f"{name} has an entry beyond {LARGEST:g}")
    return array


def data(name: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> cp.Parameter:
    """Numbers of a shape as a `cvxpy.Parameter`."""
    return cp.Parameter(shape, name, value=require_data(value, shape, name))


@checked
def feasible_least_squares(
    R: npt.ArrayLike, rho: npt.ArrayLike, p: ScaledParameters, margin: float | None = None
) -> Program:
    """FBPE-OLS, eq. (64)-(75): minimise ``|R K delta - rho|`` over ``D(delta) >= margin``.

    R and rho are those of a QR factorisation, eq. (64)-(70), weighted as the fit shall be; rows
    below them are a ridge or a prior. The norm is a second-order cone in place of eq. (73).
    """
    rows = np.shape(R)[:1]
    error = data("R", R, (*rows, *p.base.shape)) @ p.base - data("rho", rho, rows)
    return p.least_norm(error, margin, R, rho)


def pulled_least_squares(
    A: Array, b: Array, rows: int, p: ScaledParameters, margin: float | None = None
) -> Program:
    """FBPE-OLS in the unknowns x; rows after the first `rows` are multiplied by a pull.

    These rows hold directions that the data hardly see near a model. The pull is the only
    `cvxpy.Parameter`: the program is compiled once and solved with several.
    """
    error = A[:rows] @ p.x - b[:rows]
    if len(A) > rows:
        pull = cp.Parameter(name="pull", nonneg=True, value=1.0)
        error = cp.hstack([error, pull * (sparse.csr_array(A[rows:]) @ p.x - b[rows:])])
    return p.least_norm(error, margin)


@checked
def closest_correction(
    beta: npt.ArrayLike,
    p: ScaledParameters,
    weight: npt.ArrayLike | None = None,
    margin: float | None = None,
) -> Program:
    """BPFC, eq. (52)-(56): minimise ``|weight (K delta - beta)|`` over ``D(delta) >= margin``."""
    error = p.base - data("beta", beta, p.base.shape)
    weight = np.eye(p.base.size) if weight is None else np.asarray(weight)
    shape = (*np.shape(weight)[:1], *p.base.shape)
    error = require_data(weight, shape, "weight") @ error  # a constant: products stay DPP
    return p.least_norm(error, margin, weight, weight @ np.asarray(beta))


@checked
def feasibility_test(p: ScaledParameters, beta: npt.ArrayLike | None = None) -> Program:
    """BPFT, eq. (51): the largest s <= 1 with ``D(delta) >= s`` and ``K delta = beta``.

    It always has a solution. With s > 0 its delta is strictly feasible; with s < 0 the multipliers
    of an optimum prove that nothing is. `virtual` unknowns have their base parameters already.
    """
    s, equal = cp.Variable(name="s"), []
    if beta is not None:
        rows = np.eye(p.base.size) if p.K is None else p.K
        sizes = np.linalg.norm(rows * p.scale.parameters, axis=1)
        equal = [cp.multiply(1 / sizes, p.base - data("beta", beta, p.base.shape)) == 0]
    program = p.program(cp.Maximize(s), p.feasibility_constraints(s=s), (s,), equal)
    return replace(program, data=(p.model, np.asarray(beta))) if p.model and equal else program


def interior_point_problem(p: ScaledParameters, near: Array) -> Program:
    """The largest margin, up to 1, of a model that is not far from `near`, shape (n,) in SI."""
    s = cp.Variable(name="s")
    away = cp.norm(p.scaled - near / p.scale.parameters)
    return p.program(cp.Maximize(s - INTERIOR_PULL * away), p.feasibility_constraints(s=s), (s,))


def entropic_least_squares(
    A: Array, b: Array, weight: float, reference: Array, p: ScaledParameters
) -> Program:
    """Feasible least squares with an entropic prior: ``|A delta - b|^2 / 2 + weight divergence``.

    The divergence is the sum of ``tr M - log det M - size`` over the inertia blocks, M a block
    relative to that of the `reference`, shape (n,) (Lee, Wensing and Park 2020).
    """
    matrices, numbers = p.feasibility_constraints(0.0)
    divergence = []
    for block, unit, rule in zip(p.feasible.blocks, p.scale.blocks, matrices, strict=True):
        if block.inertial:
            inverse = np.linalg.inv(block.matrix(reference) / np.outer(unit, unit))
            offset = float(np.linalg.slogdet(inverse)[1]) + block.size
            M = rule.args[0]
            divergence.append(cp.trace(inverse @ M) - cp.log_det(M) - offset)
    error = (A * p.scale.parameters) @ p.scaled - b
    cost = 0.5 * cp.sum_squares(error) + weight * sum(divergence)
    return p.program(cp.Minimize(cost), (matrices, numbers))


def name_variables(program: Program, robot: Robot, T: Array, fixed: Array) -> Any:
    """The problem with a variable in SI per body and drive, under its name.

    ``delta = T z + fixed``, and z are the program's unknowns times the `cvxpy.Parameter` "units".
    """
    p = program.parameters
    units = cp.Parameter(len(p.scale.parameters), "units", pos=True, value=p.scale.parameters)
    delta, rules = T @ cp.multiply(units, p.scaled) + fixed, []
    for owner in dict.fromkeys(owner for owner, _ in robot.parameter_names):
        columns = [j for j, name in enumerate(robot.parameter_names) if name[0] == owner]
        rules.append(cp.Variable(len(columns), name=owner) == delta[columns])
    return cp.Problem(program.problem.objective, [*program.problem.constraints, *rules])


def normalise_constraints(
    feasible: FeasibleSet, scale: Units
) -> tuple[sparse.csr_array, Array, Array, Array]:
    """Constraints as ``F x + f`` (stacked matrices) and ``G x + h``, x = delta / units."""
    values, constants = [np.zeros(0)], [np.zeros(0)]
    rows, columns = [np.zeros(0, dtype=np.intp)], [np.zeros(0, dtype=np.intp)]
    start = 0
    for block, unit in zip(feasible.blocks, scale.blocks, strict=True):
        square = np.outer(unit, unit)
        basis = block.basis * scale.parameters[block.columns][:, None, None] / square
        which, entry = np.nonzero(basis.reshape(len(basis), -1))
        values.append(basis.reshape(len(basis), -1)[which, entry])
        rows.append(start + entry)
        columns.append(block.columns[which])
        constants.append((block.constant / square).ravel())
        start += block.size**2
    F = sparse.csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
        shape=(start, feasible.size),
    )
    G = feasible.linear_matrix * scale.parameters / scale.linear[:, None]
    return F, np.concatenate(constants), G, feasible.linear_constant / scale.linear


def unit_margins(scale: Units) -> tuple[Array, Array]:
    """One unit of margin: identity matrices, stacked by rows, and ones."""
    parts = [np.zeros(0), *(np.eye(len(unit)).ravel() for unit in scale.blocks)]
    return np.concatenate(parts), np.ones(len(scale.linear))


def margins(scale: Units, margin: float | None) -> tuple[Array, Array]:
    """Margin, eq. (21), to be subtracted from normalised matrices and numbers.

    None is `MARGIN` times the identity in each body's units; a number is absolute, times the
    identity in SI numbers.
    """
    identity, ones = unit_margins(scale)
    if margin is None:
        return MARGIN * identity, MARGIN * ones
    squares = [np.ones(0), *(np.outer(unit, unit).ravel() for unit in scale.blocks)]
    return margin * identity / np.concatenate(squares), margin / scale.linear
