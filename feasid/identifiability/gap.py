"""What one experiment leaves unknown that a use of the model needs.

Torques of the use are functions of its base parameters beta_B = K_B delta. An experiment leaves
delta free by its null vectors N_A; so of beta_B it knows what is in the null space of
(K_B N_A)', and rank(K_B N_A) combinations are missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from feasid.core.arrays import Array, Mask
from feasid.errors import InputError

if TYPE_CHECKING:
    from scipy import sparse

MISSING = 1e-9
"""Entries of K_B N_A below this, relative to the terms they are made of, are rounding."""

WIDTH = 96


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What is needed of base parameters to compare them: K, null vectors, names.

    Attributes
    ----------
    matrix : sparse array, shape (nb, n)
    nullspace : sparse array, shape (n, n - nb)
    independent : ndarray, shape (nb,)
    names : tuple of (body, symbol)
    expressions : tuple of str
    """

    matrix: sparse.csc_array
    nullspace: sparse.csc_array
    independent: np.ndarray
    names: tuple[tuple[str, str], ...]
    expressions: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Gap:
    """What an experiment leaves unknown that a use needs.

    Attributes
    ----------
    experiment, use : Knowledge
    """

    experiment: Knowledge
    use: Knowledge

    def __post_init__(self) -> None:
        if self.experiment.names != self.use.names:
            raise InputError("an experiment and a use are compared for one robot's parameters")

    @cached_property
    def seen(self) -> Array:
        """K_B N_A with rows and columns of unit size, shape (nb, k); rounding is zero."""
        k, null = self.use.matrix, self.experiment.nullspace
        product, size = (k @ null).toarray(), (abs(k) @ abs(null)).toarray()
        product[np.abs(product) <= MISSING * size] = 0.0
        for axis in (0, 1):
            norm = np.linalg.norm(product, axis=axis, keepdims=True)
            product = product / np.where(norm > 0, norm, 1.0)
        return np.asarray(product)

    @cached_property
    def size(self) -> int:
        """How many combinations the use needs and the experiment leaves unknown."""
        if not self.seen.any():
            return 0
        s = np.linalg.svd(self.seen, compute_uv=False)
        return int((s > MISSING * s[0]).sum())

    @cached_property
    def missing(self) -> Mask:
        """Which of the use's base parameters the experiment does not know, shape (nb,)."""
        return np.asarray(self.seen.any(axis=1))

    def by_body(self) -> dict[str, list[str]]:
        """The use's base parameters that are not known, by the body of their leading parameter."""
        out: dict[str, list[str]] = {}
        for r in np.flatnonzero(self.missing).tolist():
            body = self.use.names[int(self.use.independent[r])][0]
            out.setdefault(body, []).append(self.use.expressions[r])
        return out

    def table(self) -> str:
        """Counts per body, then the combinations that are not known."""
        needed: dict[str, int] = {}
        for column in self.use.independent.tolist():
            body = self.use.names[column][0]
            needed[body] = needed.get(body, 0) + 1
        lacking = self.by_body()
        width = max(map(len, ["body", *needed]))
        lines = [f"{'body':{width}}  needed  not known"]
        lines += [f"{b:{width}}  {n:>6}  {len(lacking.get(b, ())):>9}" for b, n in needed.items()]
        for body, combinations in lacking.items():
            lines += ["", f"{body}: the experiment leaves unknown"]
            lines += [f"  {text}" for text in combinations]
        return "\n".join(lines)

    def __str__(self) -> str:
        total = len(self.use.independent)
        if self.size == 0:
            return f"the experiment tells all {total} combinations that the use needs"
        return (
            f"of {total} combinations that the use needs, {self.size} stay unknown; "
            f"they enter {int(self.missing.sum())} base parameters"
        )

    __repr__ = __str__
