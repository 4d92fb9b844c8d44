"""What can be identified of a robot's parameters, and sums of parameters as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from feasid.parameters.identifiability.coefficients import Coefficients
from feasid.parameters.identifiability.experiment import Experiment
from feasid.parameters.identifiability.rounding import EXACT, PoseRounding, RoundedNumber
from feasid.parameters.identifiability.sampling import SampleCheck
from feasid.robot.description import Robot
from feasid.robot.known import Index

if TYPE_CHECKING:
    from scipy import sparse

COEFFICIENT_DIGITS = 12  #: Significant digits of a printed coefficient; further digits are rounding

Name = tuple[str, str]


def parameter_label(name: Name) -> str:
    """Name of one parameter: ``L1yy``, ``l3x``, ``m4``, ``fv1`` for numbered bodies, as in the
    tables of Sousa and Cortesao (2014); ``forearm.Lyy`` for named ones.
    """
    body, symbol = name
    if not body.isdecimal():
        return f"{body}.{symbol}"
    prefix = ""
    if symbol.startswith("rotor_"):
        prefix, symbol = "rotor_", symbol.removeprefix("rotor_")
    if symbol[0] in "Ll":
        return f"{prefix}{symbol[0]}{body}{symbol[1:]}"
    return f"{prefix}{symbol}{body}"


def format_coefficient(value: float) -> str:
    """A coefficient's size with up to 12 digits: ``0.300475``."""
    return f"{abs(value):.{COEFFICIENT_DIGITS}g}"


def format_combination(names: Sequence[Name], terms: Iterable[tuple[int, float]]) -> str:
    """A linear combination as text.

    `names`: sequence of (body, symbol); `terms`: iterable of (column, coefficient), in the order in
    which they are to be read. Terms of one symbol with equal coefficients other than +-1 are
    grouped at the place of their first.
    """
    groups: dict[tuple[str, str, bool], list[int]] = {}
    for column, value in terms:
        key = (names[column][1], format_coefficient(value), value < 0)
        if key[1] == "1":
            key = (str(column), "1", value < 0)
        groups.setdefault(key, []).append(column)
    text = ""
    for (_, size, negative), columns in groups.items():
        labels = [parameter_label(names[c]) for c in columns]
        inner = " + ".join(labels)
        if size != "1":
            inner = f"{size} ({inner})" if len(labels) > 1 else f"{size} {inner}"
        if not text:
            text = f"-{inner}" if negative else inner
        else:
            text += f" - {inner}" if negative else f" + {inner}"
    return text or "0"


ALONE, COMBINED, NEVER, GIVEN = "alone", "combined", "not at all", "given"
"""What can be identified of a parameter: its value, sums it is part of, nothing; or it is given."""


def terms_by_row(matrix: sparse.csc_array) -> list[list[tuple[int, float]]]:
    """Columns and coefficients of each row of a sparse matrix, from left to right."""
    rows = matrix.tocsr()
    rows.sort_indices()
    terms = list(zip(rows.indices.tolist(), rows.data.tolist(), strict=True))
    return [terms[a:b] for a, b in pairwise(rows.indptr.tolist())]


@dataclass(frozen=True, eq=False, repr=False)
class IdentifiedParameters:
    """The numbers of `feasid.BaseParameters`, which its tables and sentences read."""

    robot: Robot  #: The robot with these parameters.
    coefficients: Coefficients  #: The computation, with its spans and ranks.
    #: Roundings in the description that were taken for exact geometry; see `literal`.
    roundings: tuple[RoundedNumber, ...] = ()
    rounding: PoseRounding = EXACT  #: How far off a number may be to be taken so.
    experiment: Experiment = field(default_factory=Experiment)  #: What moves and what is measured.

    @property
    def size(self) -> int:
        """Number of base parameters, nb."""
        return len(self.independent)

    @property
    def unknowns(self) -> int:
        """Number of parameters that are neither zero, known nor tied to others."""
        return self.robot.size - len(self.coefficients.given_columns)

    @property
    def independent(self) -> Index:
        """Columns of the parameters that lead a row of K, shape (nb,)."""
        return self.coefficients.independent

    @property
    def dependent(self) -> Index:
        """All other columns, shape (n - nb,)."""
        return self.coefficients.dependent

    @property
    def matrix(self) -> sparse.csc_array:
        """K, sparse: for robots of hundreds of bodies."""
        return self.coefficients.matrix

    @cached_property
    def expressions(self) -> tuple[str, ...]:
        """Each base parameter as a readable sum."""
        names = self.robot.parameter_names
        return tuple(format_combination(names, terms) for terms in terms_by_row(self.matrix))

    @cached_property
    def status(self) -> tuple[str, ...]:
        """For each standard parameter "alone", "combined", "not at all" or "given", length n."""
        out = np.full(self.robot.size, COMBINED, dtype=object)
        kd = self.coefficients.kd
        single = np.bincount(kd.indices, minlength=self.size) == 0
        out[self.independent[single]] = ALONE
        out[self.dependent[np.diff(kd.indptr) == 0]] = NEVER
        out[self.coefficients.given_columns] = GIVEN
        return tuple(out.tolist())

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Nearly degenerate geometry on which a rank depends: joint and cause."""
        degenerate = (
            f"joint {self.robot.joints[i]!r}: nearly degenerate geometry ({cause} hangs on it"
            for i, cause in sorted(self.coefficients.near_degeneracies.items())
        )
        return (*degenerate, *self.coefficients.rank_warnings)

    @property
    def check(self) -> SampleCheck:
        """The verification of ranks and null vectors on random motions."""
        return self.coefficients.check
