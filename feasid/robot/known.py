"""Parameters that are no unknowns: zero, known, or the same as others up to sign.

All three are equations ``delta[j] = value`` or ``delta[i] = sign delta[j]``, and together they say
``delta = E z + fixed`` with unknowns z, one for each parameter that is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from feasid.arrays import Array
from feasid.errors import InputError, did_you_mean
from feasid.robot.description import Robot
from feasid.robot.inertia import SYMBOLS

Index = npt.NDArray[np.intp]

Known: TypeAlias = "Mapping[Any, npt.ArrayLike]"
"""Ten parameters by body, NaN where one is not known; one parameter by "body.symbol"."""

MIRRORED = {
    "x": np.array([1, -1, -1, 1, 1, 1, -1, 1, 1, 1.0]),
    "y": np.array([1, -1, 1, 1, -1, 1, 1, -1, 1, 1.0]),
    "z": np.array([1, 1, -1, 1, -1, 1, 1, 1, -1, 1.0]),
}
"""Signs of the ten parameters under reflection in the plane through the origin with this normal."""


@dataclass(frozen=True, eq=False)
class Equality:
    """A known parameter, ``delta[j] = value``, or a pair, ``delta[i] = sign delta[j]``."""

    name: str
    columns: tuple[int, ...]
    value: float = 0.0
    sign: float = 1.0


def equalities(
    robot: Robot,
    known: Known | None = None,
    equal: Sequence[tuple[str, str]] = (),
    mirrored: Sequence[tuple[str, str, str]] = (),
) -> tuple[Equality, ...]:
    """What is known of a robot's parameters: zeros of massless bodies first.

    Parameters
    ----------
    robot : Robot
    known : mapping, optional
        Ten parameters by body name, NaN where one is not known; or a single one by
        ``"body.symbol"`` or ``(body, symbol)``.
    equal : sequence of (body, body)
        Bodies with the same parameters, each in its own frame.
    mirrored : sequence of (body, body, axis)
        Bodies that are mirror images in the plane with normal "x", "y" or "z" of their frames.

    Raises
    ------
    InputError
        Names the body or parameter that does not exist, or the number that is not finite.
    """
    out = [
        Equality(f"known {name}.{SYMBOLS[k]}", (int(j),), float(value))
        for name, ten in ten_by_body(robot, known).items()
        for k, (j, value) in enumerate(
            zip(robot.inertial_columns[body_index(robot, name)], ten, strict=True)
        )
        if not np.isnan(value)
    ]
    pairs = [(a, b, np.ones(10), "equal") for a, b in equal]
    for a, b, axis in mirrored:
        if axis not in MIRRORED:
            raise InputError(f"mirrored bodies need an axis of x, y, z, not {axis!r}")
        pairs.append((a, b, MIRRORED[axis], f"mirrored in {axis}"))
    for a, b, signs, how in pairs:
        of_a, of_b = (robot.inertial_columns[body_index(robot, name)] for name in (a, b))
        for i, j, sign in zip(of_a, of_b, signs, strict=True):
            label = f"{a} and {b} {how}, {robot.parameter_names[i][1]}"
            out.append(Equality(label, (int(i), int(j)), 0.0, float(sign)))
    return tuple(out)


def ten_by_body(robot: Robot, known: Known | None = None) -> dict[str, Array]:
    """What is known, as ten parameters per body with NaN for unknown ones; zeros if massless.

    Raises
    ------
    InputError
        Names the body or parameter that does not exist, or the number that is not finite.
    """
    out = {body.name: np.zeros(10) for body in robot.bodies if body.massless}
    for key, given in (known or {}).items():
        values = np.asarray(given, dtype=np.float64)
        if values.ndim == 0:
            name, symbol = robot.parameter_names[parameter_index(robot, key)]
            if symbol not in SYMBOLS or not np.isfinite(values):
                raise InputError(
                    f"known {name}.{symbol} is {values}: expected a number for an inertial "
                    "parameter"
                )
            ten = out.setdefault(name, np.full(10, np.nan))
            ten[SYMBOLS.index(symbol)] = _agreed(ten[SYMBOLS.index(symbol)], values, key)
            continue
        if values.shape != (10,) or np.isinf(values).any():
            raise InputError(f"known parameters of {key!r} must be ten numbers: {values.tolist()}")
        name = robot.bodies[body_index(robot, key)].name
        ten = out.setdefault(name, np.full(10, np.nan))
        for k in np.flatnonzero(~np.isnan(values)):
            ten[k] = _agreed(ten[k], values[k], f"{key}.{SYMBOLS[k]}")
    return out


def _agreed(before: float, value: npt.ArrayLike, what: Any) -> float:
    if not np.isnan(before) and before != value:
        raise InputError(f"known {what} is {float(np.asarray(value))}, but also {before}")
    return float(np.asarray(value))


def body_index(robot: Robot, name: Any) -> int:
    """Index of a body; `InputError` with the closest name otherwise."""
    bodies = [b.name for b in robot.bodies]
    if name not in bodies:
        hint = did_you_mean(str(name), bodies)
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


@dataclass(frozen=True, eq=False)
class Unknowns:
    """``delta[j] = sign[j] z[place[j]] + fixed[j]``, with place -1 for known parameters.

    Attributes
    ----------
    place : ndarray of int, shape (n,)
    sign, fixed : ndarray, shape (n,)
    roots : ndarray of int
        The parameter that each entry of z stands for.
    """

    place: Index
    sign: Array
    fixed: Array
    roots: Index

    @classmethod
    def after(cls, n: int, given: Iterable[Equality]) -> Unknowns:
        """What is left of n parameters after these equations.

        Raises
        ------
        InputError
            When the equations contradict each other.
        """
        root, sign = list(range(n)), [1.0] * n
        known: dict[int, float] = {}

        def find(j: int) -> tuple[int, float]:
            factor = 1.0
            while root[j] != j:
                factor *= sign[j]
                j = root[j]
            return j, factor

        for tie in given:
            (first, s), *rest = [find(int(j)) for j in tie.columns]
            if not rest:
                value = s * tie.value
                if known.setdefault(first, value) != value:
                    raise _contradiction(tie.name)
                continue
            ((second, t),) = rest
            relation = s * t * tie.sign
            if first == second:
                if relation < 0 and known.setdefault(first, 0.0) != 0.0:
                    raise _contradiction(tie.name)
                continue
            root[first], sign[first] = second, relation
            if first in known and known.setdefault(second, relation * known[first]) != (
                relation * known[first]
            ):
                raise _contradiction(tie.name)
        found = [find(j) for j in range(n)]
        roots = [j for j in range(n) if root[j] == j and j not in known]
        order = {j: k for k, j in enumerate(roots)}
        return cls(
            np.array([order.get(r, -1) for r, _ in found], dtype=np.intp),
            np.array([s for _, s in found]),
            np.array([s * known.get(r, 0.0) for r, s in found]),
            np.array(roots, dtype=np.intp),
        )

    def expanded(self, z: Array) -> Array:
        """All parameters, shape (n,)."""
        free = self.place >= 0
        out = self.fixed.copy()
        out[free] += self.sign[free] * z[self.place[free]]
        return out

    def matrix(self, rows: Array) -> Array:
        """Coefficients in z of ``rows @ delta``, shape (rows, len(roots))."""
        out = np.zeros((len(rows), len(self.roots)))
        free = self.place >= 0
        np.add.at(out.T, self.place[free], (rows * self.sign)[:, free].T)
        return out


def _contradiction(name: str) -> InputError:
    return InputError(f"{name} contradicts what else is said to be known or equal", tie=name)
