"""Parameters that are not unknown: zero, known, or the same as others up to sign.

All three are linear equations in the parameters, and together they say ``delta = T z + fixed``
with unknowns z, one for each parameter that is left; solved in exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from feasid.core.arguments import Measured, Positive
from feasid.core.arrays import Array
from feasid.core.errors import InputError, did_you_mean
from feasid.core.exact.numbers import printed_decimal
from feasid.robot.description import Robot
from feasid.robot.inertia import SYMBOLS

Index = npt.NDArray[np.intp]

Row = dict[int, Fraction]
"""Coefficients by parameter."""

Known: TypeAlias = "Mapping[Any, Measured]"
"""Ten parameters by body, NaN where one is not known; one parameter by "body.symbol", or one that
was weighed with its standard error."""

WEIGHED = (2,)  #: Shape of a value that was weighed: (value, standard error).

MIRROR_SIGNS = {
    "x": np.array([1, -1, -1, 1, 1, 1, -1, 1, 1, 1.0]),
    "y": np.array([1, -1, 1, 1, -1, 1, 1, -1, 1, 1.0]),
    "z": np.array([1, 1, -1, 1, -1, 1, 1, 1, -1, 1.0]),
}
"""Signs of the ten parameters under reflection in the plane through the origin with this normal."""


@dataclass(frozen=True, eq=False)
class Equality:
    """``coefficients . delta[columns] = value``: known, tied or summed parameters."""

    name: str
    columns: tuple[int, ...]
    coefficients: tuple[float, ...]
    value: float = 0.0

    @property
    def pairs(self) -> list[tuple[int, Fraction]]:
        """Columns with their coefficients, exactly."""
        return [
            (j, printed_decimal(c)) for j, c in zip(self.columns, self.coefficients, strict=True)
        ]


@dataclass(frozen=True)
class Weighed:
    """A parameter that was weighed: a measurement with a standard error, and no equality."""

    name: str  #: "body.symbol".
    value: float  #: In SI units, as its deviation.
    deviation: Positive  #: Standard error of the measurement.

    def column(self, robot: Robot) -> int:
        """Its place among the standard parameters of a robot."""
        return [".".join(name) for name in robot.parameter_names].index(self.name)


def weighed_parameters(robot: Robot, known: Known | None) -> tuple[Weighed, ...]:
    """The values of `known` that have a standard error.

    Raises InputError: names what is no inertial parameter, or no possible value or deviation.
    """
    inertial = [".".join(name) for name in robot.parameter_names if name[1] in SYMBOLS]
    out: dict[str, Weighed] = {}
    for key, pair in (known or {}).items():
        if np.shape(pair) != WEIGHED:
            continue
        label, wrong = ".".join(key) if isinstance(key, tuple) else str(key), ""
        value, deviation = np.asarray(pair, dtype=np.float64).tolist()
        if label not in inertial:
            wrong = f"is no inertial parameter of a body{did_you_mean(label, inertial)}"
        elif not (deviation > 0 and (value > 0 or not label.endswith(".m"))):
            wrong = "needs a standard error above 0, and a mass a value above 0"
        elif label in out:
            wrong = "was weighed twice: give the mean"
        if wrong:
            text = f"known {label!r} = ({value:g}, {deviation:g}), a value and its standard error, "
            raise InputError(text + wrong, option="known", parameter=key)
        out[label] = Weighed(label, value, deviation)
    return tuple(out.values())


def exact_values(known: Known | None) -> dict[Any, Measured]:
    """The values of `known` that hold exactly: all but those that were weighed."""
    return {key: value for key, value in (known or {}).items() if np.shape(value) != WEIGHED}


def equalities(
    robot: Robot,
    known: Known | None = None,
    equal: Sequence[tuple[str, str]] = (),
    mirrored: Sequence[tuple[str, str, str]] = (),
) -> tuple[Equality, ...]:
    """Equalities among a robot's parameters: zeros of massless bodies first.

    `known`: ten parameters by body name, NaN where one is not known; or a single one by
    ``"body.symbol"`` or ``(body, symbol)``; `equal`: sequence of (body, body), bodies with the same
    parameters, each in its own frame; `mirrored`: sequence of (body, body, axis), bodies that are
    mirror images in the plane with normal "x", "y" or "z" of their frames, also of themselves.
    Raises InputError: names the body or parameter that does not exist, or the number that is not
    finite.
    """
    out = [
        Equality(f"known {name}.{SYMBOLS[k]}", (int(j),), (1.0,), float(value))
        for name, ten in known_inertials(robot, known).items()
        for k, (j, value) in enumerate(
            zip(robot.inertial_columns[body_index(robot, name)], ten, strict=True)
        )
        if not np.isnan(value)
    ]
    pairs = [(a, b, np.ones(10), "equal") for a, b in equal]
    for a, b, axis in mirrored:
        if axis not in MIRROR_SIGNS:
            raise InputError(f"mirrored bodies need an axis of x, y, z, not {axis!r}")
        pairs.append((a, b, MIRROR_SIGNS[axis], f"mirrored in {axis}"))
    for a, b, signs, how in pairs:
        of_a, of_b = (robot.inertial_columns[body_index(robot, name)] for name in (a, b))
        if a == b and how == "equal":
            raise InputError(f"equal: {a!r} is paired with itself: name two bodies", option="equal")
        for i, j, sign in zip(of_a, of_b, signs, strict=True):
            label = f"{a} and {b} {how}, {robot.parameter_names[i][1]}"
            if i != j:
                out.append(Equality(label, (int(i), int(j)), (1.0, -float(sign))))
            elif sign < 0:  # its own mirror image: what changes its sign is zero
                out.append(Equality(label, (int(i),), (1.0,)))
    return tuple(out)


def known_inertials(robot: Robot, known: Known | None = None) -> dict[str, Array]:
    """Ten parameters per body with NaN for unknown ones; zeros if massless.

    Raises InputError: names the body or parameter that does not exist, or the number that is not
    finite.
    """
    out = {body.name: np.zeros(10) for body in robot.bodies if body.massless}
    for key, given in (known or {}).items():
        values = np.asarray(given, dtype=np.float64)
        if values.ndim == 0:
            name, symbol = robot.parameter_names[parameter_index(robot, key)]
            if symbol not in SYMBOLS or not np.isfinite(values):
                raise InputError(
                    f"known {name}.{symbol} is {values}: give a number of an inertial parameter"
                )
            values = np.where(np.array(SYMBOLS) == symbol, values, np.nan)
        elif values.shape == WEIGHED:
            raise InputError(
                f"known {key!r} has a standard error, {values.tolist()}: only a fit weighs it "
                "against a log (feasid.fit); here values hold exactly: give the number alone",
                option="known",
            )
        elif values.shape != (10,) or np.isinf(values).any():
            raise InputError(f"known parameters of {key!r} must be ten numbers: {values.tolist()}")
        else:
            name = robot.bodies[body_index(robot, key)].name
        ten = out.setdefault(name, np.full(10, np.nan))
        for k in np.flatnonzero(~np.isnan(values)):
            if not np.isnan(ten[k]) and ten[k] != values[k]:
                raise InputError(f"known {name}.{SYMBOLS[k]} is {values[k]}, but also {ten[k]}")
            ten[k] = values[k]
    return out


def body_index(robot: Robot, name: Any) -> int:
    """Index of a body; `InputError` with the closest name otherwise."""
    bodies = [b.name for b in robot.bodies]
    if name not in bodies:
        hint = did_you_mean(name, bodies)
        raise InputError(f"no body {name!r}{hint}; bodies: {', '.join(bodies)}", body=name)
    return bodies.index(name)


def parameter_index(robot: Robot, key: Any) -> int:
    """Column of ``(body, symbol)`` or ``"body.symbol"``; `InputError` otherwise."""
    names = robot.parameter_names
    if key in names:
        return names.index(key)
    labels = [".".join(name) for name in names]
    label = ".".join(map(str, key)) if isinstance(key, tuple) else str(key)
    if label not in labels:
        hint = did_you_mean(label, labels)
        raise InputError(
            f"no parameter {label!r}{hint}: name it as (body, symbol) or 'body.symbol'",
            parameter=key,
        )
    return labels.index(label)


def eliminate(equations: list[tuple[str, Row, Fraction]]) -> dict[int, tuple[Row, Fraction]]:
    """Gauss-Jordan: the last parameter of each equation in terms of those never eliminated."""
    solved: dict[int, tuple[Row, Fraction]] = {}
    for name, coefficients, right in equations:
        row: Row = {}
        value = right
        for j, c in coefficients.items():
            replacement, constant = solved.get(j, ({j: Fraction(1)}, Fraction(0)))
            value -= c * constant
            for i, factor in replacement.items():
                row[i] = row.get(i, Fraction(0)) + c * factor
        row = {j: c for j, c in row.items() if c}
        if not row:
            if value:
                raise InputError(
                    f"{name} contradicts other values given as known or equal", tie=name
                )
            continue
        pivot = max(row)
        lead = row.pop(pivot)
        new = {j: -c / lead for j, c in row.items()}, value / lead
        for j, (solved_row, constant) in solved.items():
            if pivot in solved_row:
                factor = solved_row.pop(pivot)
                for i, c in new[0].items():
                    solved_row[i] = solved_row.get(i, Fraction(0)) + factor * c
                solved[j] = {i: c for i, c in solved_row.items() if c}, constant + factor * new[1]
        solved[pivot] = new
    return solved


@dataclass(frozen=True, eq=False)
class Unknowns:
    """``delta = T z + fixed``."""

    T: Array  #: Shape (n, len(roots)).
    fixed: Array  #: Shape (n,).
    roots: Index  #: The parameter that each entry of z stands for.

    @classmethod
    def from_equalities(cls, n: int, given: Iterable[Equality]) -> Unknowns:
        """Reduce n parameters by these equations.

        Raises InputError: when the equations contradict each other.
        """
        return cls.from_elimination(
            n, eliminate([(e.name, dict(e.pairs), printed_decimal(e.value)) for e in given])
        )

    @classmethod
    def from_elimination(cls, n: int, solved: Mapping[int, tuple[Row, Fraction]]) -> Unknowns:
        """The unknowns in addition to those that are solved for."""
        roots = np.array([j for j in range(n) if j not in solved], dtype=np.intp)
        T, offset = np.zeros((n, len(roots))), np.zeros(n)
        T[roots, np.arange(len(roots))] = 1.0
        place = {int(j): k for k, j in enumerate(roots)}
        for j, (row, value) in solved.items():
            offset[j] = float(value)
            for root, coefficient in row.items():
                T[j, place[root]] = float(coefficient)
        return cls(T, offset, roots)
