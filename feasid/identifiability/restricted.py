"""Base parameters in an order of preference across bodies, or with parameters that are given.

A parameter that is given changes no torque in an unknown way, so that its column leaves K; tied
parameters add up in the column of the one that stands for them. With K of the whole robot and
``delta = E z + fixed``, the base parameters of the unknowns z are the reduced form of K E.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from feasid.core.arrays import Array
from feasid.identifiability.coefficients import (
    UNIT_ROUNDOFF,
    Coefficients,
    Index,
)
from feasid.identifiability.echelon import (
    NOISE_SAFETY_FACTOR,
    pivots_from_right,
    round_to_integers,
)
from feasid.identifiability.sampling import SampleCheck, energy_rows
from feasid.robot.known import Unknowns


@dataclass(frozen=True, eq=False)
class ReorderedCoefficients(Coefficients):
    """Echelon form in an order of preference across bodies.

    Pivots are then no longer a matter of each joint alone: the null vectors of the whole robot
    are reduced as one dense matrix.

    Attributes
    ----------
    order : ndarray, shape (n,)
        All columns, the preferred ones first.
    """

    order: Index

    @cached_property
    def _null(self) -> Array:
        """Orthonormal null vectors in scaled units, columns in the order of preference."""
        first = Coefficients(self.echelon)
        null = np.zeros((len(self.order), len(first.dependent)))
        null[first.dependent, np.arange(len(first.dependent))] = 1.0
        null[first.independent] = -first.scaled_kd.toarray()
        return np.asarray(np.linalg.qr(null[self.order])[0])

    @cached_property
    def dependent(self) -> Index:
        """Columns of the dependent parameters, increasing."""
        if self._null.shape[1] == 0:
            return np.zeros(0, dtype=np.intp)
        return np.sort(self.order[pivots_from_right(self._null[None])[0]])

    @cached_property
    def scaled_kd(self) -> sparse.csc_array:
        """Kd in scaled units."""
        place = np.argsort(self.order)
        pivots = self._null[place[self.dependent]]
        rest = self._null[place[self.independent]]
        kd = -np.linalg.solve(pivots.T, rest.T).T
        worst = np.linalg.cond(pivots) if pivots.size else 1.0
        noise = (
            NOISE_SAFETY_FACTOR
            * UNIT_ROUNDOFF
            * worst
            * np.maximum(1.0, np.abs(kd).max(axis=0, initial=0.0))
        )
        return sparse.csc_array(round_to_integers(np.asarray(kd), np.asarray(noise)))


RANK_TOLERANCE = 1e-10
"""Singular values of combinations of unit size below this are zero; `singular_value_gap` says how
clearly."""

CLEAR_GAP = 1e4
"""A rank whose neighbouring singular values differ by less is doubtful."""

INTEGER_TOLERANCE = 1e-11
"""Coefficients this close to an integer are that integer, relative to their column's largest."""

MIN_SINGULAR_VALUE = 1e-17
"""What a singular value of zero counts as in a gap."""


@dataclass(frozen=True, eq=False)
class RestrictedCoefficients(Coefficients):
    """Echelon form over the unknowns.

    Attributes
    ----------
    unknowns : Unknowns
    order : ndarray, shape (n,)
        All columns, the preferred ones first.
    """

    unknowns: Unknowns
    order: Index

    @cached_property
    def unrestricted_form(self) -> Coefficients:
        """The echelon form with every parameter unknown."""
        return Coefficients(self.echelon)

    @cached_property
    def combinations(self) -> Array:
        """What shows of the unknowns, in scaled units, rows of unit size; shape (r, unknowns)."""
        first = self.unrestricted_form
        k = np.zeros((len(first.independent), len(self.units)))
        k[np.arange(len(k)), first.independent] = 1.0
        k[:, first.dependent] = first.scaled_kd.toarray()
        rows = (
            self._visible_combinations(k)
            / self.units
            @ self.unknowns.T
            * self.units[self.unknowns.roots]
        )
        if not self.echelon.run.robot.is_tree:
            return rows
        sizes = np.linalg.norm(rows, axis=1)
        return np.asarray(rows[sizes > 0] / sizes[sizes > 0, None])

    def _visible_combinations(self, k: Array) -> Array:
        """Of combinations that the open tree shows those that its couplings and loops show."""
        run = self.echelon.run
        if run.robot.is_tree:
            return k
        columns = self.unrestricted_form.independent
        size = run.frames.length
        rows = energy_rows(run.robot, columns, self.units[columns], size, run.static)
        _, s, vt = np.linalg.svd(rows, full_matrices=False)
        return np.asarray((s / s[0])[:, None] * vt @ k)

    @cached_property
    def _rank_decision(self) -> tuple[Array, int, float]:
        """Right singular vectors of the combinations, their rank and its gap."""
        rows = self.combinations
        pad = max(0, rows.shape[1] - len(rows))
        rows = np.vstack([rows, np.zeros((pad, rows.shape[1]))])
        _, s, vt = np.linalg.svd(rows, full_matrices=False)
        rank = int((s > RANK_TOLERANCE * s.max(initial=0.0)).sum())
        if rank in (0, len(s)):
            return vt, rank, float("inf")
        return vt, rank, float(s[rank - 1] / max(s[rank], MIN_SINGULAR_VALUE))

    @cached_property
    def check(self) -> SampleCheck:
        """Of the open tree; the rank among the unknowns is decided here, or refused."""
        self.independent  # noqa: B018  (raises where loops close too seldom)
        return self.unrestricted_form.check

    @property
    def singular_value_gap(self) -> float:
        """Ratio of the singular values on either side of the rank; infinite at full rank."""
        return self._rank_decision[2]

    @property
    def given_columns(self) -> Index:
        """Columns that are no unknowns of their own, increasing."""
        keep = np.ones(len(self.order), dtype=bool)
        keep[self.unknowns.roots] = False
        return np.flatnonzero(keep)

    @cached_property
    def _null(self) -> tuple[Index, Array]:
        """Columns of the unknowns in the order of preference, and their null vectors."""
        vt, rank, _ = self._rank_decision
        place = {int(c): k for k, c in enumerate(self.unknowns.roots)}
        columns = np.array([c for c in self.order if int(c) in place], dtype=np.intp)
        null = vt[rank:].T[[place[int(c)] for c in columns]]
        return columns, np.asarray(np.linalg.qr(null)[0])

    @cached_property
    def _dependent_unknowns(self) -> Index:
        """Unknowns that lead no base parameter, increasing."""
        columns, null = self._null
        if not null.shape[1]:
            return np.zeros(0, dtype=np.intp)
        return np.sort(columns[pivots_from_right(null[None])[0]])

    @cached_property
    def independent(self) -> Index:
        """Columns of the parameters chosen as base, increasing."""
        return np.setdiff1d(self.unknowns.roots, self._dependent_unknowns)

    @cached_property
    def dependent(self) -> Index:
        """All other columns, increasing."""
        return np.setdiff1d(np.arange(len(self.order)), self.independent)

    @cached_property
    def scaled_kd(self) -> sparse.csc_array:
        """Kd in scaled units; zero for what is no unknown."""
        columns, null = self._null
        out = np.zeros((len(self.independent), len(self.dependent)))
        if self._dependent_unknowns.size:
            place = np.empty(len(self.order), dtype=np.intp)
            place[columns] = np.arange(len(columns))
            kd = -np.linalg.solve(
                null[place[self._dependent_unknowns]].T, null[place[self.independent]].T
            ).T
            out[:, np.searchsorted(self.dependent, self._dependent_unknowns)] = _round_to_integers(
                np.asarray(kd)
            )
        return sparse.csc_array(out)

    @cached_property
    def nullspace(self) -> sparse.csc_array:
        """Changes of the unknowns that no motion shows, SI units; shape (n, unknowns - nb)."""
        out = np.zeros((len(self.order), len(self._dependent_unknowns)))
        at = np.searchsorted(self.dependent, self._dependent_unknowns)
        ratio = self.units[self.independent][:, None] / self.units[self._dependent_unknowns]
        out[self.independent] = -self.scaled_kd.toarray()[:, at] * ratio
        out[self._dependent_unknowns, np.arange(len(self._dependent_unknowns))] = 1.0
        return sparse.csc_array(self.unknowns.T @ out[self.unknowns.roots])

    @cached_property
    def descriptor(self) -> sparse.csr_array:
        """Combinations that can be identified: K itself, SI units; shape (nb, n)."""
        full = np.zeros((len(self.independent), len(self.order)))
        full[np.arange(len(full)), self.independent] = 1.0
        full[:, self.dependent] = self.kd.toarray()
        return sparse.csr_array(full)


def _round_to_integers(kd: npt.NDArray[Any]) -> Array:
    """Entries next to an integer become that integer, measured by their column's size."""
    scale = np.maximum(1.0, np.abs(kd).max(axis=0, initial=0.0))
    return round_to_integers(kd, INTEGER_TOLERANCE * scale)
