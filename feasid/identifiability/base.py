"""Base parameters: which combinations of a robot's parameters can be identified at all."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from feasid.errors import InputError, did_you_mean
from feasid.identifiability.coefficients import Coefficients
from feasid.identifiability.echelon import Echelon
from feasid.identifiability.expressions import sum_of
from feasid.identifiability.nullspace import Recursion
from feasid.robot.description import Robot
from feasid.robot.parts import Array

if TYPE_CHECKING:
    from scipy import sparse

ALONE, COMBINED, NEVER = "alone", "combined", "not at all"
"""What can be known of a parameter: its value, sums it is part of, nothing."""

Index = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The base parameters ``beta = K delta`` of a robot with n standard parameters delta.

    K = Pb' + Kd Pd' is the reduced row echelon form with the first independent columns from the
    left, Sousa and Cortesao (2014) eq. (32)-(36); every combination that can be identified is a
    combination of its nb rows, and K z = 0 for exactly the changes z that no motion shows.

    Attributes
    ----------
    robot : Robot
    coefficients : Coefficients
        The computation, with its spans and ranks.
    """

    robot: Robot
    coefficients: Coefficients

    @property
    def size(self) -> int:
        """Number of base parameters, nb."""
        return len(self.independent)

    @property
    def independent(self) -> Index:
        """Columns of the parameters that lead a row of K, shape (nb,)."""
        return self.coefficients.independent

    @property
    def dependent(self) -> Index:
        """All other columns, shape (n - nb,)."""
        return self.coefficients.dependent

    @property
    def Kd(self) -> Array:  # noqa: N802
        """Coefficients of the dependent parameters, shape (nb, n - nb), SI units."""
        return self.coefficients.kd

    @cached_property
    def K(self) -> Array:  # noqa: N802
        """Matrix of beta = K delta, shape (nb, n)."""
        out = np.zeros((self.size, self.robot.size))
        out[np.arange(self.size), self.independent] = 1.0
        out[:, self.dependent] = self.Kd
        return out

    @cached_property
    def Pb(self) -> Array:  # noqa: N802
        """Selects the leading parameters: delta_b = Pb' delta; shape (n, nb)."""
        return _selection(self.robot.size, self.independent)

    @cached_property
    def Pd(self) -> Array:  # noqa: N802
        """Selects the dependent parameters: delta_d = Pd' delta; shape (n, n - nb)."""
        return _selection(self.robot.size, self.dependent)

    @cached_property
    def G(self) -> Array:  # noqa: N802
        """[K; Pd'], invertible: delta to (beta, delta_d), eq. (44)-(46); shape (n, n)."""
        return np.vstack([self.K, self.Pd.T])

    @cached_property
    def nullspace(self) -> Array:
        """Changes that no motion shows, shape (n, n - nb): one joint's transfer per column."""
        return np.asarray(self.transfers.toarray(), dtype=np.float64)

    @property
    def transfers(self) -> sparse.csc_array:
        """The same, sparse: the R of Wensing et al. (2024), App. G."""
        return self.coefficients.nullspace

    @cached_property
    def expressions(self) -> tuple[str, ...]:
        """Each base parameter as a readable sum."""
        names = self.robot.parameter_names
        out = []
        for r, lead in enumerate(self.independent.tolist()):
            used = np.flatnonzero(self.Kd[r])
            terms = [(lead, 1.0)]
            terms += [(int(self.dependent[j]), float(self.Kd[r, j])) for j in used]
            out.append(sum_of(names, sorted(terms)))
        return tuple(out)

    @cached_property
    def status(self) -> tuple[str, ...]:
        """For each standard parameter "alone", "combined" or "not at all", length n."""
        out = [COMBINED] * self.robot.size
        used = self.Kd != 0
        for column, single in zip(self.independent.tolist(), ~used.any(axis=1), strict=True):
            out[column] = ALONE if single else COMBINED
        for column, never in zip(self.dependent.tolist(), ~used.any(axis=0), strict=True):
            out[column] = NEVER if never else COMBINED
        return tuple(out)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Near-degenerate geometry that decides a rank, by joint."""
        self.coefficients.blocks  # noqa: B018  (fills the notes)
        worst: dict[int, float] = {}
        for note in self.coefficients.echelon.run.near_notes:
            worst[note.body] = min(worst.get(note.body, 1.0), note.value)
        return tuple(
            f"joint {self.robot.bodies[i].joint!r}: nearly degenerate geometry (a singular value "
            f"of {value:.1e}): the count of base parameters hangs on it"
            for i, value in sorted(worst.items())
        )

    def values(self, parameters: npt.ArrayLike) -> Array:
        """The base parameters K delta of standard parameters delta, shape (nb,)."""
        return np.asarray(self.K @ self.robot.check_parameters(parameters))

    def table(self) -> str:
        """One line per base parameter."""
        width = len(str(self.size))
        lines = [f"{k + 1:>{width}}  {text}" for k, text in enumerate(self.expressions)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"<BaseParameters of {self.robot.name!r}: {self.size} of {self.robot.size} "
            f"parameters{', nearly degenerate' if self.warnings else ''}>"
        )


def base_parameters(
    robot: Robot,
    *,
    measured: Collection[str] | None = None,
    static: bool = False,
    order: str | Sequence[str] = "left",
) -> BaseParameters:
    """Which combinations of a robot's parameters show in its torques.

    Parameters
    ----------
    robot : Robot
        Its geometry, gravity, rotors and joint terms; parameter values do not matter.
    measured : collection of str, optional
        Joints whose torques are measured; default all. For a floating base alone, its joint.
    static : bool
        Postures at rest only: what a model of gravity compensation can know.
    order : {"left", "paper"} or sequence of str
        Preference among the symbols of a body for leading a base parameter: from left to right
        in the order of `feasid.robot.inertia.SYMBOLS`, in the order of the tables of Wensing et
        al. (2024), or in the given order of those ten symbols.

    Returns
    -------
    BaseParameters

    Raises
    ------
    InputError
        Names a joint or symbol that is not known.

    Examples
    --------
    >>> import feasid
    >>> robot = feasid.Robot.from_dh([(0, 1, 0, 0), (0, 1, 0, 0)], gravity=(0, -9.81, 0))
    >>> print(base_parameters(robot).table())
    1  L1zz - m1 - m2
    2  l1x + m1 + m2
    3  l1y
    4  L2zz - m2
    5  l2x + m2
    6  l2y
    """
    joints = None if measured is None else {robot.joint_index(j) for j in measured}
    run = Recursion.of(robot, joints, static)
    return BaseParameters(robot, Coefficients(Echelon(run, _preference(order))))


PAPER_ORDER = ("m", "lx", "ly", "lz", "Lxx", "Lyy", "Lzz", "Lyz", "Lxz", "Lxy")
"""Order of the tables of Wensing et al. (2024)."""


def _preference(order: str | Sequence[str]) -> tuple[str, ...] | None:
    if isinstance(order, str):
        if order not in ("left", "paper"):
            hint = did_you_mean(order, ("left", "paper"))
            raise InputError(f"order {order!r} is not known{hint}: 'left', 'paper' or symbols")
        return None if order == "left" else PAPER_ORDER
    if sorted(order) != sorted(PAPER_ORDER):
        raise InputError(f"order must name each of {sorted(PAPER_ORDER)} once, not {[*order]}")
    return tuple(order)


def _selection(n: int, columns: Index) -> Array:
    out = np.zeros((n, len(columns)))
    out[columns, np.arange(len(columns))] = 1.0
    return out
