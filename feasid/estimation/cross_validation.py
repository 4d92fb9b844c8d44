"""Errors on parts of a log that a model was not fitted to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import SolverError
from feasid.estimation.noise import Noise, squared_residuals
from feasid.identifiability.base import BaseParameters
from feasid.regression.folds import FOLDS
from feasid.regression.triangle import Reduced

FoldSolver = Callable[[tuple[Array, Array, float]], Array]
"""From a whitened triangle to standard parameters (n,)."""


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """For every fold of a log's time, the model of the other folds.

    All models come from one estimator with fixed decisions; see `Estimator.keep`.
    """

    base: BaseParameters
    reduced: Reduced
    noise: Noise
    solve: FoldSolver

    @property
    def folds(self) -> list[int]:
        """Folds that were predicted; none where equations were not filtered."""
        return [*self.models]

    @cached_property
    def _nonempty_folds(self) -> list[int]:
        """Numbers of the folds that have rows."""
        strata = self.reduced.strata
        return [f for f in range(FOLDS) if strata and strata[0].counts[:, f].any()]

    def training_equations(self, fold: int) -> tuple[Array, Array, float]:
        """Whitened triangle of the other folds."""
        others = [f for f in self._nonempty_folds if f != fold]
        return self.noise.whitened_triangle(self.reduced, others)

    @cached_property
    def models(self) -> dict[int, Array]:
        """Base parameters per fold, of the feasible model of the others; none if one is missing."""
        if not (folds := self._nonempty_folds):
            return {}
        try:
            _ = self.fitted  # the others are sought from the whole
            return {f: self.base.K @ self.solve(self.training_equations(f)) for f in folds}
        except SolverError:  # errors of the other folds alone would look smaller than they are
            return {}

    @cached_property
    def fitted(self) -> Array:
        """Standard parameters of all folds together, shape (n,)."""
        return self.solve(self.noise.whitened_triangle(self.reduced))

    def squared_errors(
        self, models: Mapping[int, Array] | None = None, tested: Reduced | None = None
    ) -> Array:
        """Squared errors of every fold, shape (folds, dof) [(N m)^2 or N^2].

        `models`: other models of the folds' rests; -1 stands for all of the log; `tested`: another
        preparation of the same folds.
        """
        log = self.reduced if tested is None else tested
        parameters = self.models if models is None else models
        joints = range(len(log.triangles))
        return np.array(
            [
                [float(squared_residuals(log, j, b, None if f < 0 else [f]).sum()) for j in joints]
                for f, b in parameters.items()
            ]
        )

    @property
    def errors(self) -> Array:
        """Relative torque error of every joint on folds that were not fitted, shape (dof,)."""
        return relative_error(self.squared_errors().sum(axis=0), self.reduced.torque_norms)


def relative_error(squared: Array, norms: Array) -> Array:
    """Roots of sums of squared errors over norms of torques; 0 where there is no torque."""
    return np.asarray(np.sqrt(squared) / np.where(norms > 0, norms, 1.0) * (norms > 0))
