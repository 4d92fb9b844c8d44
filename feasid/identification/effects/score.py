"""Errors of a log around a fit: how well the log supports them, their next values and deviations.

With whitened rows W (rows x nb), residual e of the fit and columns X of an error,

    I = X'X - X'W P W'X,   theta = I^-1 X'e,   chi2 = theta' I theta,

P the covariance of the base parameters under data and prior, are the information, the first
Gauss-Newton step and the test statistic of an error in the Gaussian model whose prior is the
description's (the marginal score test; Rao 1948). Standard deviations account for correlated
residuals, by sums over blocks of a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from feasid.core.arrays import Array
from feasid.identification.effects.table import EffectAt, columns_of
from feasid.identification.regression.rows import Rows
from feasid.robot.description import Robot

SMALLEST_COLUMN = 1e-9
"""Norm of a whitened column below which a log does not determine its coefficient."""

RIDGE = 1e-9


class ScoreTests:
    """Tests around one fit.

    `torque`: (rows,), filtered torques after what was taken out already; `model`: with the fitted
    values; `beta`: (nb,); `spread`: (nb, nb), covariance of the base parameters under data and
    prior, were the noise of unit variance; `deviations`: (rows,); `gravity`: (3,), of the
    description.
    """

    def __init__(
        self,
        rows: Rows,
        torque: Array,
        model: Robot,
        beta: Array,
        spread: Array,
        deviations: Array,
        gravity: Array,
    ) -> None:
        self.rows, self.deviations, self._around = rows, deviations, (model, beta, gravity)
        self.unit = np.sqrt(np.maximum(np.diag(spread), 1e-300))
        self.P = spread / np.outer(self.unit, self.unit)
        self.e = (torque - rows.predict(beta)) / deviations
        self._columns: dict[EffectAt, Array] = {}

    def _project(self, X: Array) -> Array:
        """W'X of columns of effects, shape (nb, k)."""
        out = np.zeros((len(self.unit), X.shape[1]))
        for j, x in self.rows.by_joint(X / self.deviations[:, None]).items():
            out[self.rows.supports[j]] += self.rows.regressors[j].T @ x
        return out * self.unit[:, None]

    def _expand(self, coefficients: Array) -> Array:
        """W times coefficients (nb, k), shape (rows, k)."""
        return self.rows.predict(coefficients * self.unit[:, None]) / self.deviations[:, None]

    def whitened_columns(self, at: EffectAt) -> Array:
        """Whitened columns of an effect, shape (rows, size)."""
        if at not in self._columns:
            self._columns[at] = columns_of(self.rows, at, *self._around) / self.deviations[:, None]
        return self._columns[at]

    def joint_statistic(self, effects: Sequence[EffectAt]) -> float:
        """chi2 of all these effects at once; their columns are not kept."""
        columns = [columns_of(self.rows, e, *self._around) for e in effects]
        X = np.hstack(columns) / self.deviations[:, None]
        scale = np.linalg.norm(X, axis=0)
        X = X[:, scale > SMALLEST_COLUMN] / scale[scale > SMALLEST_COLUMN]
        WX, score = self._project(X), X.T @ self.e
        information = X.T @ X - WX.T @ (self.P @ WX) + RIDGE * np.eye(X.shape[1])
        return float(score @ np.linalg.solve(information, score))

    def gauss_newton_step(
        self,
        effects: Sequence[EffectAt],
        values: Array,
        widths: Array,
        offsets: Mapping[int, float] = MappingProxyType({}),
    ) -> tuple[Array, Array]:
        """Joint Gauss-Newton step of these effects and all parameters, and its covariance.

        Standard deviations are the larger of the model's and of those from sums over blocks;
        correlations are those of the model.

        `values`, `widths`: (k,), what was taken out already, and the deviations before the log was
        seen; `offsets`: deviations of constant torques that joints may have besides.
        """
        constant = [((self.rows.joint == j) / self.deviations)[:, None] for j in offsets]
        X = np.hstack([*(self.whitened_columns(m) for m in effects), *constant])
        values = np.append(values, np.zeros(len(offsets)))
        widths = np.append(widths, [*offsets.values()])
        scale = np.maximum(np.linalg.norm(X, axis=0), 1e-300)
        X = X / scale
        WX = self._project(X)
        prior = 1.0 / (widths * scale) ** 2
        alone = without_negative_part(X.T @ X - WX.T @ self.P @ WX)
        C = np.asarray(np.linalg.pinv(alone + np.diag(prior), rcond=1e-10, hermitian=True))
        sums = np.zeros((int(self.rows.block.max()) + 1, X.shape[1]))
        np.add.at(sums, self.rows.block, (X - self._expand(self.P @ WX)) * self.e[:, None])
        robust = np.diag(C @ (sums.T @ sums) @ C)
        wider = np.sqrt(np.maximum(robust / np.maximum(np.diag(C), 1e-300), 1.0)) / scale
        # The prior pulls at the whole value, of which a part was taken out already.
        step = C @ (X.T @ self.e - prior * values * scale)
        part = slice(len(values) - len(offsets))
        return (step / scale)[part], (C * np.outer(wider, wider))[part, part]

    def posterior(
        self, effects: Sequence[EffectAt], widths: Array, doubt: float = 1.0
    ) -> tuple[Array, Array, Array]:
        """Mean and covariance of effects with prior deviations, and how parameters follow them.

        The estimate takes the description for a draw of the prior with precision D. Where it is one
        of a variance that is `doubt` times as large, the covariance C of effects grows by
        ``(doubt - 1) C X'W P D P W'X C``.

        `widths`: (k,), infinite where nothing is known beforehand; `doubt`: weight with which the
        prior was used over that with which it is believed. Returns `pull`: ``W'X`` in units of the
        base parameters.
        """
        X = np.hstack([self.whitened_columns(m) for m in effects])
        WX = self._project(X)
        size = np.maximum(np.linalg.norm(X, axis=0), 1e-9)
        unit = np.where(np.isfinite(widths), widths, 1.0 / size)
        alone = without_negative_part((X.T @ X - WX.T @ self.P @ WX) * np.outer(unit, unit))
        covariance: Array = np.asarray(
            np.linalg.pinv(alone + np.diag((unit / widths) ** 2), hermitian=True)
        ) * np.outer(unit, unit)
        mean, followed = covariance @ (X.T @ self.e), self.P @ WX
        fitted = self._expand(followed)  # P D P = P - P W'W P
        held = without_negative_part(WX.T @ followed - fitted.T @ fitted)
        covariance = covariance + max(doubt - 1.0, 0.0) * covariance @ held @ covariance
        return mean, covariance, WX / self.unit[:, None]


def without_negative_part(matrix: Array) -> Array:
    """A difference of large matrices that is positive semidefinite but for rounding."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
