"""Single constraints on standard parameters, each written once as affine data.

A `Block` requires an affine symmetric matrix to be positive (semi)definite, a `Linear` requires an
affine number to be non-negative. NumPy evaluates them, CVXPY optimises over them, certificates
carry them: nobody writes a constraint a second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.robot import inertia

Consistency: TypeAlias = Literal["full", "semi"]

FULL_POWERS = (1, 1, 1, 0)
"""Power of length in the unit sqrt(kg) m^p of each row of the 4x4 pseudo-inertia."""

SEMI_POWERS = (1, 1, 1, 0, 0, 0)
"""Power of length in the unit sqrt(kg) m^p of each row of the 6x6 spatial inertia."""


@dataclass(frozen=True, eq=False)
class Block:
    """``constant + sum_j delta[columns[j]] basis[j]`` must be positive (semi)definite."""

    name: str
    kind: Literal["full", "semi", "matrix"]  #: The first two of inertia matrices.
    body: int  #: Index of the body whose mass and length give the units.
    columns: npt.NDArray[np.intp]  #: Shape (c,).
    basis: Array  #: Shape (c, s, s).
    constant: Array  #: Shape (s, s).
    powers: tuple[int, ...]  #: Row i has the unit sqrt(kg) m^powers[i].
    strict: bool = True  #: Positive definite is asked; semidefinite is not enough.
    #: What it is about: the inertia of a body or of its rotor, or a limit that the caller asks.
    role: Literal["body", "rotor", "asked"] = "asked"

    def __post_init__(self) -> None:
        rows, count = self.size, len(self.columns)
        shapes = self.columns.shape, self.basis.shape, self.constant.shape
        if shapes != ((count,), (count, rows, rows), (rows, rows)) or not _are_numbers(self):
            raise InputError(f"constraint {self.name!r} has arrays of other shapes or no numbers")

    @property
    def inertial(self) -> bool:
        """Whether it is the inertia of a body or of a rotor, and not a further limit on one."""
        return self.role in ("body", "rotor")

    @property
    def size(self) -> int:
        """Rows of the matrix."""
        return int(self.constant.shape[0])

    def matrix(self, delta: Array) -> Array:
        """Value at the standard parameters `delta`, shape (n,); returns shape (s, s)."""
        return np.asarray(self.constant + np.tensordot(delta[self.columns], self.basis, 1))


@dataclass(frozen=True, eq=False)
class Linear:
    """``constant + coefficients . delta[columns] >= 0``, under a name.

    ``opposite`` is the offset to the row that bounds the same number from the other side, 0 for
    none: the two together say how narrow the gap is. Its ``role`` is "sign" for joint terms that
    are never negative, "asked" for a limit of the caller.
    """

    name: str
    columns: npt.NDArray[np.intp]
    coefficients: Array
    constant: float = 0.0
    opposite: int = 0
    role: Literal["sign", "asked"] = "asked"
    strict: ClassVar[bool] = False

    @property
    def basis(self) -> Array:
        """The coefficients as those of a matrix of one entry, shape (c, 1, 1)."""
        return self.coefficients[:, None, None]

    def __post_init__(self) -> None:
        one = self.columns.ndim == 1 and self.columns.shape == self.coefficients.shape
        if not one or not _are_numbers(self):
            raise InputError(f"constraint {self.name!r} has arrays of other shapes or no numbers")
        used = self.coefficients != 0  # a column without a weight would leave the row undecided
        self.__dict__.update(columns=self.columns[used], coefficients=self.coefficients[used])


def _are_numbers(constraint: Block | Linear) -> bool:
    """Whether its columns are whole numbers, and everything else is finite."""
    integers = constraint.columns.dtype.kind == "i" or not len(constraint.columns)
    numbers = constraint.basis, constraint.constant
    return integers and all(np.isfinite(part).all() for part in numbers)


def inertia_block(
    name: str,
    body: int,
    columns: npt.NDArray[np.intp],
    consistency: Consistency,
    role: Literal["body", "rotor"] = "body",
) -> Block:
    """The consistency condition of one body or rotor.

    ``"full"``: its 4x4 pseudo-inertia is positive definite (Wensing, Kim and Slotine 2017,
    eq. (10)). ``"semi"``: the 6x6 matrix of Sousa and Cortesao (2014) eq. (17) is.
    """
    basis: Array
    powers: tuple[int, ...]
    if consistency == "full":
        basis, powers = inertia.pseudo_inertia(np.eye(10)), FULL_POWERS
        label = "pseudo-inertia"
    else:
        # Eq. (17) has S(l)' above the diagonal: the spatial inertia of the mirrored moment.
        mirrored = np.r_[np.ones(6), -np.ones(3), 1.0]
        basis, powers = inertia.spatial_inertia(np.diag(mirrored)), SEMI_POWERS
        label = "inertia matrix"
    size = len(powers)
    zero = np.zeros((size, size))
    return Block(f"{label} of {name}", consistency, body, columns, basis, zero, powers, role=role)


def bound_constraints(
    name: str,
    columns: Sequence[int] | npt.NDArray[np.intp],
    coefficients: npt.ArrayLike,
    lower: float | None,
    upper: float | None,
) -> list[Linear]:
    """``lower <= coefficients . delta[columns] <= upper``; None for no bound.

    Raises InputError: when there is no parameter, or the bounds are empty or a single value.
    """
    index = np.asarray(columns, dtype=np.intp)
    weights = np.atleast_1d(np.asarray(coefficients, dtype=np.float64))
    both = lower is not None and upper is not None
    if not len(index):
        raise InputError(f"bound {name!r} names no parameter")
    if lower is not None and upper is not None and lower >= upper:
        raise InputError(
            f"bound {name!r}: lower {lower} is not below upper {upper}; a value that is known "
            f"exactly is not a bound"
        )
    out = []
    if lower is not None:
        out.append(Linear(f"{name} lower", index, weights, -float(lower), int(both)))
    if upper is not None:
        out.append(Linear(f"{name} upper", index, -weights, float(upper), -int(both)))
    return out


def com_box(
    name: str, columns: npt.NDArray[np.intp], lower: npt.ArrayLike, upper: npt.ArrayLike
) -> list[Linear]:
    """Centre of mass in a box in the body's frame, Sousa and Cortesao (2014) eq. (26).

    ``l - m lower >= 0`` and ``m upper - l >= 0``, with `lower` and `upper` of shape (3,) [m].
    """
    low, high = (np.asarray(b, dtype=np.float64) for b in (lower, upper))
    if (low >= high).any():
        raise InputError(
            f"the box of the centre of mass of {name!r} is empty: {low.tolist()} to {high.tolist()}"
        )
    out = []
    for axis, direction in enumerate("xyz"):
        pair = columns[[6 + axis, 9]]
        for label, sign, corner in (("lower", 1, low[axis]), ("upper", -1, high[axis])):
            weights = np.array([sign, -sign * corner])
            out.append(Linear(f"com of {name} {direction} {label}", pair, weights, 0.0, sign))
    return out
