"""Constraints that a caller states in CVXPY, on parameters by name, pseudo-inertias and K delta.

    def light(p):
        return [p["hand", "m"] <= 0.8, p["hand"].pseudo_inertia >> 1e-4 * np.eye(4)]

    feasid.check(robot, constraints=light)

Affine ones become rows, matrices and equalities of the feasible set, like those of all other
options, and enter its certificates. Other convex inequalities stay in CVXPY: programs hold them,
answers are verified against them in floating point, and no certificate covers them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from feasid.core.arguments import call_user_function
from feasid.core.arrays import Array
from feasid.core.errors import InputError, did_you_mean
from feasid.parameters.feasibility.constraints.affine import Block, Linear
from feasid.parameters.feasibility.constraints.limits import AffineConstraints, constraint
from feasid.parameters.identifiability.base import base_parameters
from feasid.robot import inertia
from feasid.robot.description import Robot
from feasid.robot.known import Equality


class _CVXPY:
    """CVXPY, imported when it is first used: most checks need no solver."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("cvxpy"), name)


cp: Any = _CVXPY()


@dataclass(frozen=True, eq=False)
class BodyParameters:
    """The parameters of a body as CVXPY expressions."""

    name: str
    #: Cvxpy.Expression, shape (10,): lxx Lxy Lxz Lyy Lyz Lzz lx ly lz m, about the origin of the
    #: body's frame [SI].
    ten: Any

    @property
    def mass(self) -> Any:
        """The mass [kg]."""
        return self.ten[9]

    @property
    def com_moment(self) -> Any:
        """First moment ``m c``, shape (3,) [kg m]."""
        return self.ten[6:9]

    @property
    def pseudo_inertia(self) -> Any:
        """Pseudo-inertia, shape (4, 4); see `feasid.robot.inertia.pseudo_inertia`."""
        basis = inertia.pseudo_inertia(np.eye(10)).reshape(10, 16)
        return cp.reshape(basis.T @ self.ten, (4, 4), order="C")


@dataclass(frozen=True, eq=False)
class StandardParameters:
    """A robot's standard parameters as CVXPY expressions, in SI under their names.

    ``p["link3", "m"]`` is a number, ``p["link3"]`` the `BodyParameters` of a body, ``p.base`` are
    the base parameters ``K delta``, and ``p.delta`` are all, shape (n,).
    """

    robot: Robot
    delta: Any

    @property
    def base(self) -> Any:
        """Base parameters, shape (nb,), in the order of ``feasid.base_parameters(robot)``."""
        return np.asarray(base_parameters(self.robot).K) @ self.delta

    def __getitem__(self, key: str | tuple[str, str]) -> Any:
        robot = self.robot
        if isinstance(key, tuple) and key in robot.parameter_names:
            return self.delta[robot.parameter_names.index(key)]
        bodies = [b.name for b in robot.bodies]
        if isinstance(key, str) and key in bodies:
            columns = robot.inertial_columns[bodies.index(key)]
            return BodyParameters(key, self.delta[[int(j) for j in columns]])
        names = [*bodies, *(".".join(name) for name in robot.parameter_names)]
        label = ".".join(map(str, key)) if isinstance(key, tuple) else str(key)
        raise InputError(
            f"constraints: no body or parameter {label!r}{did_you_mean(label, names)}; a parameter "
            "is p[body, symbol]",
            option="constraints",
        )


Function = Callable[[StandardParameters], Any]


@dataclass(frozen=True, eq=False)
class ConvexConstraint:
    """A convex inequality ``g(delta) <= 0`` that is not affine."""

    name: str
    robot: Robot
    function: Function  #: What the caller gave, and of what it returns this is one.
    T: Array  #: Shape (n, nz): ``delta = T z + fixed``, for z that equalities leave free.
    fixed: Array  #: Shape (n,): see `T`.

    def expression(self, z: Any) -> Any:
        """The entries of g as a CVXPY expression of z, shape (k,)."""
        p = StandardParameters(self.robot, self.T @ z + self.fixed)
        return cp.vec(dict(_name_constraints(self.function(p)))[self.name].expr, order="F")

    def values(self, z: Array) -> Array:
        """G at z, shape (k,)."""
        variable, expression = self._variable_and_expression
        variable.value = z
        return np.atleast_1d(np.asarray(expression.value, dtype=np.float64))

    def gradient(self, z: Array) -> Array:
        """A subgradient at z, shape (k, nz)."""
        variable, expression = self._variable_and_expression
        variable.value = z
        gradient = expression.grad[variable]
        if gradient is None:
            raise InputError(f"{self.name} has no gradient at a point it was tried at")
        return _slopes(gradient, variable)

    def is_satisfied(self, z: Array) -> bool:
        """Whether it is kept, in floating point."""
        return bool((self.values(z) <= 0).all())

    def substitute(self, T: Array, fixed: Array) -> ConvexConstraint:
        """The constraint on the numbers that equalities leave free."""
        return replace(self, T=self.T @ T, fixed=self.T @ fixed + self.fixed)

    @cached_property
    def columns(self) -> npt.NDArray[np.intp]:
        """The entries of z that take part."""
        at = np.asarray(np.random.default_rng(0).uniform(0.5, 1.5, self.T.shape[1]))
        return np.flatnonzero(self.gradient(at).any(axis=0))

    @cached_property
    def _variable_and_expression(self) -> tuple[Any, Any]:
        variable = cp.Variable(self.T.shape[1])
        return variable, self.expression(variable)


@constraint("constraints")
def constraints_from_function(robot: Robot, value: Function | None) -> AffineConstraints:
    """Constraints that a function of `StandardParameters` returns, one by one or by name.

    Raises InputError: when it returns something else, or a constraint that is not convex.
    """
    if value is None:
        return AffineConstraints()
    delta = cp.Variable(robot.size, name="delta")
    blocks: list[Block] = []
    rows: list[Linear] = []
    ties: list[Equality] = []
    convex: list[ConvexConstraint] = []
    what = "constraints: the function, called with the parameters p (p[body, symbol], p.base),"
    returned = call_user_function(what, value, StandardParameters(robot, delta))
    for name, rule in _name_constraints(returned):
        wrong = ""
        if not isinstance(rule, importlib.import_module("cvxpy.constraints.constraint").Constraint):
            wrong = f"is {rule!r}, not a CVXPY constraint on parameters"
        elif not rule.is_dcp():
            wrong = f"is not convex by CVXPY's rules: {rule}"
        elif [v.id for v in rule.variables()] != [delta.id]:
            wrong = "must be on the parameters, and on no other variables"
        if wrong:
            raise InputError(f"constraints: {name} {wrong}"[:500], option="constraints")
        kind = type(rule).__name__
        if kind in ("Equality", "Zero"):
            ties += [
                Equality(label, tuple(columns.tolist()), tuple(coefficients.tolist()), -offset)
                for label, columns, coefficients, offset in _linear_rows(name, rule.expr, delta)
            ]
        elif kind == "PSD":
            size = int(rule.expr.shape[0])
            constant, slopes = _affine_coefficients(rule.expr, delta)
            matrices = np.vstack([constant, slopes.T]).reshape(-1, size, size)
            matrices = 0.5 * (matrices + matrices.transpose(0, 2, 1))
            if not np.isfinite(matrices).all():
                raise InputError(f"constraints: {name} has a number that is not finite")
            columns = np.flatnonzero(matrices[1:].any(axis=(1, 2)))
            if not len(columns):
                raise InputError(f"constraints: {name} holds no parameter")
            # The body whose mass and length give the units.
            tens = enumerate(robot.inertial_columns)
            body = next((i for i, ten in tens if np.isin(columns, ten).any()), 0)
            parts = body, columns, matrices[1:][columns], matrices[0], (0,) * size
            blocks.append(Block(name, "matrix", *parts, strict=False))
        elif kind in ("Inequality", "NonPos", "NonNeg") and rule.expr.is_affine():
            positive = rule.expr if kind == "NonNeg" else -rule.expr
            rows += [Linear(*parts) for parts in _linear_rows(name, positive, delta)]
        elif kind == "Inequality":
            identity = np.eye(robot.size)
            convex.append(ConvexConstraint(name, robot, value, identity, np.zeros(robot.size)))
        else:
            raise InputError(
                f"constraints: {name} is a {kind}, and only <=, >=, == and >> are taken",
                option="constraints",
            )
    return AffineConstraints(blocks, rows, ties, convex)


def _name_constraints(given: Any) -> list[tuple[str, Any]]:
    if isinstance(given, Mapping):
        return [(str(name), rule) for name, rule in given.items()]
    rules = given if isinstance(given, list | tuple) else [given]
    return [(f"constraint {k + 1}", rule) for k, rule in enumerate(rules)]


def _affine_coefficients(expression: Any, delta: Any) -> tuple[Array, Array]:
    """Constant (k,) and coefficients (k, n) of an affine expression, by columns."""
    delta.value = np.zeros(delta.size)
    constant = np.asarray(expression.value, dtype=np.float64).ravel(order="F")
    return constant, _slopes(expression.grad[delta], delta)


def _slopes(gradient: Any, variable: Any) -> Array:
    """CVXPY's gradient by a variable, sparse or a number, as an array (k, n)."""
    dense = gradient.toarray() if hasattr(gradient, "toarray") else gradient
    return np.asarray(dense, dtype=np.float64).reshape(variable.size, -1).T


def _linear_rows(
    name: str, expression: Any, delta: Any
) -> list[tuple[str, npt.NDArray[np.intp], Array, float]]:
    """Name, columns, coefficients and constant of every entry of an affine expression."""
    constant, slopes = _affine_coefficients(expression, delta)
    out = []
    for k, (offset, row) in enumerate(zip(constant, slopes, strict=True)):
        columns = np.flatnonzero(row)
        label = name if len(constant) == 1 else f"{name}, entry {k + 1}"
        if not (np.isfinite(offset) and np.isfinite(row).all()):
            raise InputError(f"constraints: {label} has a number that is not finite")
        if not len(columns):
            raise InputError(f"constraints: {label} holds no parameter")
        out.append((label, columns, row[columns], float(offset)))
    return out
