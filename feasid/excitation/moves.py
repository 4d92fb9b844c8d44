"""Kicks: motions near a good one from which a descent may end better.

A joint's motion may begin at another time, run backwards, or come from another good motion, and
keeps its limits; it is scaled to come as close to them as the one it replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feasid.core.arrays import Array
from feasid.excitation.problem import FINER, Problem

Draw = Callable[[np.random.Generator], Array]
"""A random start from a generator."""

SIZES = (0.03, 0.5)
"""Sizes of disturbances, in units of what limits allow."""

ALL = 0.3
"""Share of it when all joints are disturbed at once."""

INSIDE = 0.97
"""Share of the limits that a joint's new motion uses of those its old one used."""

TRIALS = 10
"""Exchanges of one joint's motion that are compared before a descent begins from the best."""


@dataclass(frozen=True, eq=False)
class Moves:
    """Kicks of the motions of a problem."""

    problem: Problem
    draw: Draw

    @cached_property
    def _times(self) -> Array:
        count = FINER * self.problem.samples
        return np.asarray(np.arange(count) * self.problem.basis.period / count)

    @cached_property
    def _matrices(self) -> Array:
        return self.problem.basis.matrices(self._times)

    @cached_property
    def _inverses(self) -> list[Array]:
        """From a joint's positions back to its unknowns."""
        return [np.linalg.pinv(self._matrices[0] @ s) for s in self.problem.coordinates.span]

    def kicks(self, z: Array, others: Sequence[Array], rng: np.random.Generator) -> Iterator[Array]:
        """One disturbance, of all joints or of one, or several exchanges of one joint's motion."""
        shape = self.problem.coordinates.shape
        old = z.reshape(shape)
        joint = int(rng.integers(shape[0]))
        low, high = np.log(SIZES)
        size = float(np.exp(rng.uniform(low, high)))
        kind = int(rng.integers(5))
        if kind < 2:
            yield (old + ALL * size * rng.standard_normal(shape)).ravel()
            return
        for _ in range(TRIALS if kind > 2 else 1):
            new = old.copy()
            if kind == 2:
                new[joint] += size * rng.standard_normal(shape[1])
            elif kind == 3:
                new[joint] = self._fitted(joint, self.draw(rng).reshape(shape)[joint], old[joint])
            else:
                other = others[int(rng.integers(len(others)))].reshape(shape)[joint]
                moved = self.shifted(joint, other, rng.random(), back=rng.random() < 0.5)
                new[joint] = self._fitted(joint, moved, old[joint])
            yield new.ravel()

    def shifted(self, joint: int, z: Array, share: float, *, back: bool) -> Array:
        """A joint's motion begun at this share of the period and, maybe, run backwards; the nearest
        one that the family has.
        """
        t = self._times + share * self.problem.basis.period
        positions = self.problem.basis.matrices(-t if back else t)[0]
        span = self.problem.coordinates.span[joint]
        return np.asarray(self._inverses[joint] @ (positions @ (span @ z)))

    def _fitted(self, joint: int, z: Array, like: Array) -> Array:
        return np.asarray(z * (INSIDE * self.used(joint, like) / max(self.used(joint, z), 1e-9)))

    def used(self, joint: int, z: Array) -> float:
        """The share that a joint's motion uses of the tightest of its linear limits."""
        problem = self.problem
        moved = self._matrices @ (problem.coordinates.span[joint] @ z)
        still = self._matrices @ problem.coordinates.centre[:, joint]
        most = 0.0
        for step, base, limit in zip(moved, still, problem.bounds.linear, strict=True):
            for edge in limit[:, joint]:
                if np.isfinite(edge):
                    most = max(most, float((step / (edge - base)).max()))
        return most
