"""Null vectors among the parameters of drives: friction, and motors that move several joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feasid.core.arrays import Array
from feasid.identifiability.echelon import Echelon, Nullblock, pivots_from_right, snapped
from feasid.identifiability.frames import congruence
from feasid.identifiability.spectral import ROOT2, TOLERANCE
from feasid.robot.joint_terms import TERMS, JointTerm

WITH_INERTIA = ("Ia", "fo")
"""Terms that no motion tells from inertia and weight of bodies; they are part of the recursion."""

NOISE = 1e-13
"""Entries of a relation below this, relative to its largest and in scaled units, are rounding."""


@dataclass(frozen=True, eq=False)
class Relations:
    """Relations that no joint sees by itself.

    Parameters
    ----------
    echelon : Echelon
    blocks : sequence of Nullblock
    transfers : sequence of ndarray
        Per joint, inertial columns to the parent's ten, scaled.
    """

    echelon: Echelon
    blocks: Sequence[Nullblock]
    transfers: Sequence[Array]

    @cached_property
    def vectors(self) -> tuple[tuple[int, Array], ...]:
        """Pairs of a dependent column and a scaled null vector of length n."""
        terms = [term for term in TERMS.values() if term.symbol not in WITH_INERTIA]
        return (*(v for term in terms for v in self._of_term(term)), *self._shared())

    def _of_term(self, term: JointTerm) -> list[tuple[int, Array]]:
        """Null vectors among the columns of one term of the drives.

        Viscous friction of drive k enters the torques as c c' dq, a linear spring as c c' q.
        Factors that are not linear, as the sign of c.dq, are the same function up to a number only
        for parallel c.
        """
        run, robot, symbol = self.echelon.run, self.echelon.run.robot, term.symbol
        if not run.other_drives and run.measured is None and not run.static:
            return []
        owners = [k for k, drive in enumerate(robot.drives) if symbol in drive.symbols]
        if not owners:
            return []
        seen, moves = np.zeros(robot.axes), np.zeros(robot.axes)
        for i, rows in enumerate(robot.rows):
            seen[rows] = float(run.measured is None or i in run.measured)
            moves[rows] = float((not run.static or term.varies_with == "q") and i not in run.held)
        columns = [robot.drive_columns(k)[symbol] for k in owners]
        vectors = [moves * robot.coupling(k) for k in owners]
        if term.linear:
            matrix = [np.outer(seen * c, c).ravel() for c in vectors]
            return _null_vectors(np.array(matrix).reshape(len(columns), -1).T, columns, robot.size)
        out: list[tuple[int, Array]] = []
        done: set[int] = set()
        for a, c in enumerate(vectors):
            if a in done:
                continue
            multiples = {b: _multiple(term, c, d) for b, d in enumerate(vectors) if b >= a}
            alike = {b: multiple for b, multiple in multiples.items() if multiple is not None}
            done.update(alike)
            matrix = [multiple * seen * np.abs(c) for multiple in alike.values()]
            out += _null_vectors(np.array(matrix).T, [columns[b] for b in alike], robot.size)
        return out

    def _shared(self) -> list[tuple[int, Array]]:
        """Null vectors that involve the Ia or fo of drives that are nobody's own.

        Of the joints' rows N_i x_i + E_i g = 0 the x_i can be solved for when E_i g is in the
        range of N_i; what g that allows is a subspace, usually zero.
        """
        run = self.echelon.run
        columns = [c for _, _, c in run.shared_columns]
        if not columns:
            return []
        solved = [np.linalg.svd(item.rows, full_matrices=False) for item in run.run]
        conditions = [self._branch_rows()]
        inverses = []
        for (u, s, vt), item in zip(solved, run.run, strict=True):
            rank = int((s > TOLERANCE).sum())
            within = u[:, :rank].T @ item.shared
            conditions.append(item.shared - u[:, :rank] @ within)
            inverses.append(-(vt[:rank].T / s[:rank]) @ within)
        allowed = _null_basis(np.vstack(conditions))
        if allowed.shape[1] == 0:
            return []
        picked = np.flatnonzero(pivots_from_right(allowed[None])[0])
        allowed = snapped(allowed @ np.linalg.inv(allowed[picked]))
        out = []
        for place, g in zip(picked, allowed.T, strict=True):
            vector = np.zeros(run.robot.size)
            vector[columns] += g
            for i, (inverse, p) in enumerate(zip(inverses, run.robot.parents, strict=True)):
                y = self._to_scaled(i, inverse @ g)
                vector[self.blocks[i].columns] += y
                if p >= 0:
                    moved = self.transfers[i] @ y[: self.blocks[i].inertial]
                    vector[self.blocks[p].columns[:10]] -= moved
            vector[np.abs(vector) <= NOISE * np.abs(vector).max()] = 0.0
            out.append((columns[place], snapped(vector)))
        return out

    def _branch_rows(self) -> Array:
        """Drive inertias that couple joints on different branches, where bodies cannot."""
        run = self.echelon.run
        rows = []
        joints = sorted(run.coupled)
        ancestors = run.robot.ancestors
        for i in joints:
            for j in joints:
                seen = run.measured is None or i in run.measured or j in run.measured
                if seen and j < i and j not in ancestors[i]:
                    rows.append(run.shared_row(i, j))
        return np.array(rows).reshape(-1, len(run.shared_columns))

    def _to_scaled(self, i: int, x: Array) -> Array:
        """Working coordinates of a joint's block to scaled parameters in the body's frame."""
        f = self.echelon.run.frames
        y = x / np.r_[ROOT2, self.echelon.layout(i)[2][10:]]
        y[:10] = congruence(np.eye(3), f.origins[i] / f.length) @ y[:10]
        return np.asarray(y)


def _multiple(term: JointTerm, c: Array, d: Array) -> float | None:
    """The number w with ``d factor(d . x) = w c factor(c . x)``; None where there is none."""
    if not d.any():
        return 0.0
    if not c.any() or abs(c @ d) < (1 - 1e-14) * np.linalg.norm(c) * np.linalg.norm(d):
        return None
    return term.scaling(float(c @ d) / float(c @ c))


def _null_basis(matrix: Array) -> Array:
    """Orthonormal null vectors of a small matrix, shape (columns, k)."""
    columns = matrix.shape[1]
    if matrix.shape[0] < columns:
        matrix = np.vstack([matrix, np.zeros((columns - matrix.shape[0], columns))])
    _, s, vt = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(vt[int((s > TOLERANCE * max(1.0, s[0])).sum()) :].T)


def _null_vectors(matrix: Array, columns: list[int], size: int) -> list[tuple[int, Array]]:
    """Null vectors of a small matrix whose columns are these parameters, pivots from the right."""
    if not columns:
        return []
    order = np.argsort(columns)
    null = _null_basis(matrix[:, order])
    if null.shape[1] == 0:
        return []
    picked = np.flatnonzero(pivots_from_right(null[None])[0])
    null = snapped(null @ np.linalg.inv(null[picked]))
    out = []
    for k, place in enumerate(picked):
        vector = np.zeros(size)
        vector[np.asarray(columns)[order]] = null[:, k]
        out.append((int(np.asarray(columns)[order][place]), vector))
    return out
