"""Multipliers in doubles that nearly prove infeasibility, and their move onto the faces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from feasid.core.arrays import Array
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.feasibility.proof.faces import REACHED, Face


@dataclass(frozen=True, eq=False)
class Candidate:
    """Multipliers in doubles: of the blocks, the equations and the linear constraints.

    Those of blocks in `faces` lie on them; `limited` asks for a proof with a size limit.
    """

    blocks: list[Array]
    y: Array
    prices: Array
    faces: Mapping[int, Face]
    limited: bool

    def mixed(self, other: Candidate, share: float) -> Candidate:
        """The sum with a share of another, whose prices are zero."""
        blocks = [Z + share * E for Z, E in zip(self.blocks, other.blocks, strict=True)]
        return replace(self, blocks=blocks, y=self.y + share * other.y)

    def with_limit(self) -> Candidate:
        """The same, for a proof with a size limit."""
        return replace(self, limited=True)

    def settled(self, feasible: FeasibleSet, K: Array, sizes: Array, units: Array) -> Candidate:
        """The nearest candidate whose bodies on faces get from K'y what is on their face.

        The solver's multipliers are 1e-9 off, which a proof with a size limit would have to pay.

        Parameters
        ----------
        feasible : FeasibleSet
        K : ndarray, shape (nb, n)
            With rows divided by `sizes`, (nb,).
        units : ndarray, shape (n,)
            Of the parameters.
        """
        if not self.faces:
            return self
        point, rows = [self.y * sizes], []
        for k, face in self.faces.items():
            block = feasible.blocks[k]
            unit = units[block.columns][:, None]
            form = np.zeros((len(block.columns), len(face.pairs)))
            for row, basis in zip(form, block.basis, strict=True):
                for pair, value in face.form(basis).items():
                    row[face.pairs.index(pair)] = float(value)
            worth = np.array([face.size(a, b) for a, b in face.pairs])
            W = face.coordinates(self.blocks[k])
            rows.append((unit * K[:, block.columns].T, unit * form / worth))
            point.append(np.array([W[pair] for pair in face.pairs]) * worth)
        own = linalg.block_diag(*[-form for _, form in rows])
        E = np.hstack([np.vstack([of_y for of_y, _ in rows]), own])
        inverse, moved = np.linalg.pinv(E, rcond=REACHED), np.concatenate(point)
        for _ in range(2):  # the second step removes the rounding of the first
            moved = moved - inverse @ (E @ moved)
        blocks, at = list(self.blocks), len(self.y)
        for k, face in self.faces.items():
            W = {p: moved[at + i] / face.size(*p) for i, p in enumerate(face.pairs)}
            blocks[k] = face.floating(W)
            at += len(face.pairs)
        return replace(self, blocks=blocks, y=moved[: len(self.y)] / sizes)
