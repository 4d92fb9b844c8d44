"""The feasible set of a robot: every constraint, once, as affine data over its parameters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from feasid.certificate import definiteness
from feasid.core.arguments import Measured, checked, checked_methods
from feasid.core.arrays import Array, require_finite
from feasid.core.errors import InputError
from feasid.core.exact.numbers import (
    Exact,
    Integers,
    common_denominator,
    decimals_to_integers,
    dot,
    printed_decimal,
)
from feasid.options.complete import complete_options, document_options
from feasid.options.tables import BoundOptions
from feasid.parameters.feasibility.constraints.affine import (
    Block,
    Consistency,
    Linear,
    inertia_block,
)
from feasid.parameters.feasibility.constraints.limits import CONSTRAINTS
from feasid.parameters.feasibility.constraints.user_constraints import ConvexConstraint
from feasid.robot.description import Robot
from feasid.robot.joint_terms import NONNEGATIVE, TERMS
from feasid.robot.known import Equality

DISSIPATES = "friction dissipates in both directions"
"""Start of the name of constraints that hold direction-dependent friction below the viscous."""


Values = Sequence[Fraction] | Mapping[int, Fraction]  #: Rational parameters by column.


@dataclass(frozen=True, eq=False)
class BlockGroup:
    """Blocks of one shape, stacked: columns (g, c), basis (g, c, s, s), constant (g, s, s)."""

    members: tuple[int, ...]
    columns: npt.NDArray[np.intp]
    basis: Array
    constant: Array

    def matrices(self, delta: Array) -> Array:
        """Values at `delta`, shape (g, s, s)."""
        return np.asarray(self.constant + self.matrix_changes(delta))

    def matrix_changes(self, change: Array) -> Array:
        """By how much the values change with delta, shape (g, s, s)."""
        flat = self.basis.reshape(*self.columns.shape, -1)
        return np.asarray((change[self.columns][:, None] @ flat).reshape(self.constant.shape))


@checked_methods
@dataclass(frozen=True, eq=False)
class FeasibleSet:
    """Feasible standard parameters: affine matrices and numbers that must be positive.

    Sousa and Cortesao (2014) eq. (22)-(24).
    """

    names: tuple[tuple[str, str], ...]  #: The robot's parameter names.
    bodies: tuple[str, ...]
    consistency: Consistency
    #: The inertia blocks come first, of the bodies that have mass, and of general rotors.
    blocks: tuple[Block, ...]
    linear: tuple[Linear, ...] = ()
    #: Known and tied parameters; see `feasid.parameters.feasibility.constraints.elimination`.
    equalities: tuple[Equality, ...] = ()
    #: Kept in floating point, outside all certificates; see
    #: `feasid.parameters.feasibility.constraints.user_constraints`.
    convex: tuple[ConvexConstraint, ...] = ()

    def __post_init__(self) -> None:
        for constraint in (*self.constraints, *self.equalities):
            if not all(0 <= j < self.size for j in constraint.columns):
                raise InputError(
                    f"constraint {constraint.name!r} is on parameters {[*constraint.columns]} of "
                    f"{self.size}"
                )

    @property
    def size(self) -> int:
        """Number of standard parameters, n."""
        return len(self.names)

    @property
    def inertial(self) -> FeasibleSet:
        """The inertia blocks alone."""
        blocks = tuple(b for b in self.blocks if b.inertial)
        return replace(self, blocks=blocks, linear=(), equalities=(), convex=())

    @property
    def constraints(self) -> tuple[Block | Linear, ...]:
        """Blocks, then linear constraints: the order of margins and certificates."""
        return (*self.blocks, *self.linear)

    @cached_property
    def groups(self) -> tuple[BlockGroup, ...]:
        """The blocks, stacked by shape; those of no size are left out."""
        shapes: dict[tuple[int, ...], list[int]] = {}
        for k, block in enumerate(self.blocks):
            if block.size:
                shapes.setdefault(block.basis.shape, []).append(k)
        return tuple(
            BlockGroup(
                tuple(members),
                np.stack([self.blocks[k].columns for k in members]),
                np.stack([self.blocks[k].basis for k in members]),
                np.stack([self.blocks[k].constant for k in members]),
            )
            for members in shapes.values()
        )

    @cached_property
    def linear_matrix(self) -> Array:
        """Coefficients of the linear constraints, shape (m, n)."""
        out = np.zeros((len(self.linear), self.size))
        for row, constraint in zip(out, self.linear, strict=True):
            np.add.at(row, constraint.columns, constraint.coefficients)
        return out

    @cached_property
    def linear_constant(self) -> Array:
        """Constants of the linear constraints, shape (m,)."""
        return np.array([c.constant for c in self.linear], dtype=np.float64)

    def linear_values(self, delta: Measured) -> Array:
        """Values that must not be negative, shape (m,)."""
        delta = require_finite(delta, (self.size,), "parameters")
        return np.asarray(self.linear_matrix @ delta + self.linear_constant)

    def contains_strictly(self, delta: Measured) -> bool:
        """True when every block is positive definite and every number positive, in floats."""
        return self.contains(delta) and bool((self.linear_values(delta) > 0).all())

    def contains(self, delta: Measured) -> bool:
        """Whether parameters satisfy all constraints, where numbers may be zero."""
        delta = np.asarray(delta, dtype=np.float64)
        if delta.shape == (self.size,) and not np.isfinite(delta).all():
            return False
        if (self.linear_values(delta) < 0).any():
            return False
        try:
            for group in self.groups:
                np.linalg.cholesky(group.matrices(delta))
        except np.linalg.LinAlgError:
            return False
        return all(c.is_satisfied(delta) for c in self.convex)

    def violations(self, delta: Measured) -> tuple[str, ...]:
        """Names of the constraints that these numbers break, in exact rationals.

        A double means the decimal that Python prints for it, as it would stand in a file.
        """
        delta = require_finite(delta, (self.size,), "parameters")
        exact = [printed_decimal(x) for x in delta]
        names = [
            b.name
            for b in self.blocks
            if is_violated(_integer_block_value(b, exact)[0].tolist(), b.strict)
        ]
        names += [c.name for c in self.linear if linear_value(c, exact) < 0]
        names += [e.name for e in self.equalities if equality_error(e, exact)]
        return (*names, *(c.name for c in self.convex if not c.is_satisfied(delta)))

    @property
    def user_constraints(self) -> frozenset[str]:
        """Names of the caller's constraints, which could be relaxed."""
        return frozenset(c.name for c in self.constraints if c.role == "asked")

    def without_constraints(self, names: Collection[str]) -> FeasibleSet:
        """The set without the constraints of these names."""
        return filter_constraints(self, lambda constraint: constraint.name not in names)

    def with_user_constraints_of(self, other: FeasibleSet) -> FeasibleSet:
        """A copy with the caller's constraints of another set on the same parameters."""
        return replace(
            self,
            blocks=(*self.blocks, *(b for b in other.blocks if b.role == "asked")),
            linear=(*self.linear, *(c for c in other.linear if c.role == "asked")),
            equalities=(*self.equalities, *other.equalities),
            convex=(*self.convex, *other.convex),
        )

    def with_margin(self, margin: float) -> FeasibleSet:
        """With an absolute margin taken off every matrix and number, in SI numbers."""
        if margin == 0:
            return self
        return replace(
            self,
            blocks=tuple(
                replace(b, constant=b.constant - margin * np.eye(b.size), strict=False)
                for b in self.blocks
            ),
            linear=tuple(replace(c, constant=c.constant - margin) for c in self.linear),
        )


def filter_constraints(feasible: FeasibleSet, keep: Callable[[Any], bool]) -> FeasibleSet:
    """The set with the constraints and ties that are kept."""
    return replace(
        feasible,
        blocks=tuple(filter(keep, feasible.blocks)),
        # Opposite bounds are found by their position, which leaving rows out changes.
        linear=tuple(replace(c, opposite=0) for c in feasible.linear if keep(c)),
        equalities=tuple(filter(keep, feasible.equalities)),
        convex=tuple(filter(keep, feasible.convex)),
    )


def block_value(block: Block, exact: Values) -> Exact:
    """Exact value of a block at rational parameters."""
    integers, over = _integer_block_value(block, exact)
    return [[Fraction(x, over) for x in row] for row in integers.tolist()]


def _integer_block_value(block: Block, exact: Values) -> tuple[Integers, int]:
    """The value of a matrix in integers over a denominator."""
    numbers, over = common_denominator(exact[j] for j in block.columns.tolist())
    basis, beside = decimals_to_integers(block.basis)
    constant, third = decimals_to_integers(block.constant)
    along = (numbers @ basis.reshape(len(numbers), -1)).reshape(constant.shape)
    return along * third + constant * (over * beside), over * beside * third


def linear_value(constraint: Linear, exact: Values) -> Fraction:
    """Exact value of a linear constraint at rational parameters."""
    coefficients = map(printed_decimal, constraint.coefficients.tolist())
    values = (exact[j] for j in constraint.columns.tolist())
    return printed_decimal(constraint.constant) + dot(coefficients, values)


def equality_error(equality: Equality, exact: Sequence[Fraction]) -> Fraction:
    """Left minus right side at rational parameters."""
    total = sum((c * exact[j] for j, c in equality.pairs), Fraction(0))
    return total - printed_decimal(equality.value)


def is_violated(matrix: Exact, strict: bool) -> bool:
    """Whether a constant matrix is not positive (semi)definite."""
    outcome = definiteness(matrix)
    return outcome == "indefinite" or (strict and outcome == "singular")


@checked
@document_options(BoundOptions)
def feasible_set(
    robot: Robot, consistency: Consistency = "full", **bounds: Unpack[BoundOptions]
) -> FeasibleSet:
    """All constraints that the standard parameters of a physically consistent robot satisfy.

    Parameters
    ----------
    robot : Robot
    consistency : {"full", "semi"}
        "full": each body's pseudo-inertia is positive definite, the inertia of some positive
        mass distribution. "semi": the weaker 6x6 condition of Sousa and Cortesao (2014)
        eq. (17), which accepts impossible inertias such as diag(1, 1, 5).
    **bounds
        See `feasid.options.tables.BoundOptions`.

    Returns
    -------
    FeasibleSet
        With friction fv, fc and drive inertia Ia not negative, eq. (28); rotors consistent too.

    Raises
    ------
    InputError
        A body or parameter is unknown, or a bound is empty; the message names it.
    """
    values = complete_options(BoundOptions, bounds, "feasible_set")
    blocks = [
        inertia_block(body.name, i, robot.inertial_columns[i], consistency)
        for i, body in enumerate(robot.bodies)
        if not body.massless
    ]
    # A balanced rotor has Lxx = Lyy, Lzz, lz and m. Its pseudo-inertia is diagonal but for the
    # (z, m) entry: Lzz/2 twice, and [[Lxx - Lzz/2, lz], [lz, m]]; the 6x6 matrix of Sousa and
    # Cortesao (2014) eq. (17) falls into Lzz, m and [[Lxx, lz], [lz, m]] twice.
    for i, body in enumerate(robot.bodies):
        if body.rotor is None:
            continue
        columns = np.arange(robot.rotor_columns(i).start, robot.rotor_columns(i).stop)
        name = f"rotor of {body.name}"
        if not body.rotor.symmetric:
            blocks.append(inertia_block(name, i, columns, consistency, "rotor"))
            continue
        basis = np.zeros((4, 3, 3))
        basis[0, 1, 1] = basis[1, 0, 0] = basis[3, 2, 2] = 1.0
        basis[1, 1, 1] = -0.5 if consistency == "full" else 0.0
        basis[2, 1, 2] = basis[2, 2, 1] = 1.0
        zero = np.zeros((3, 3))
        label = f"inertia of {name}"
        blocks.append(Block(label, "matrix", i, columns, basis, zero, (1, 1, 0), role="rotor"))
    rows: list[Linear] = []
    for k, drive in enumerate(robot.drives):
        places = robot.drive_columns(k)
        for symbol, column in places.items():
            if symbol in NONNEGATIVE:
                index = np.array([column], dtype=np.intp)
                rows.append(Linear(f"{symbol} of {drive.name}", index, np.ones(1), role="sign"))
            larger = TERMS[symbol].bounded_by if symbol in TERMS else ""
            if not larger:
                continue
            index = np.array([places[larger], column], dtype=np.intp)
            for sign, way in ((1.0, "forward"), (-1.0, "backward")):
                name = f"{DISSIPATES}: {drive.name} {way}"
                rows.append(Linear(name, index, np.array([1.0, sign])))
    ties: list[Equality] = []
    convex: list[ConvexConstraint] = []
    for option, build in CONSTRAINTS.items():
        limits = build(robot, values[option])
        blocks += limits.blocks
        rows += limits.linear
        ties += limits.equalities
        convex += limits.convex
    bodies = tuple(b.name for b in robot.bodies)
    constraints = tuple(blocks), tuple(rows), tuple(ties), tuple(convex)
    return FeasibleSet(robot.parameter_names, bodies, consistency, *constraints)


@dataclass(frozen=True, eq=False)
class UserConstraints:
    """Constraints on a robot's parameters without the robot, as files store them."""

    consistency: Consistency
    blocks: tuple[Block, ...]
    linear: tuple[Linear, ...]
    equalities: tuple[Equality, ...]

    @classmethod
    def of(cls, feasible: FeasibleSet) -> UserConstraints:
        """Constraints of a set; convex ones are code, which cannot be saved."""
        blocks = tuple(b for b in feasible.blocks if b.role == "asked")
        limits = (c for c in feasible.linear if c.role == "asked")
        # Those of friction follow from the robot, and would come twice.
        linear = tuple(c for c in limits if not c.name.startswith(DISSIPATES))
        return cls(feasible.consistency, blocks, linear, feasible.equalities)

    def on(self, robot: Robot) -> FeasibleSet:
        """The set of this robot with these constraints.

        Raises InputError: a matrix is not about a body of this robot.
        """
        for b in self.blocks:
            if not 0 <= b.body < len(robot.bodies) or len(b.powers) != b.size:
                raise InputError(f"constraint {b.name!r} is on no body of this robot")
        feasible = feasible_set(robot, self.consistency)
        blocks, linear = (*feasible.blocks, *self.blocks), (*feasible.linear, *self.linear)
        return replace(feasible, blocks=blocks, linear=linear, equalities=self.equalities)
