"""Score tests: does a log support a mistake beside the parameters that are fitted anyway?

With whitened rows W (rows x nb), residual e of the fit and columns X of a mistake,

    I = X'X - X'W P W'X,   theta = I^-1 X'e,   chi2 = theta' I theta,

P the covariance of the base parameters under data and prior, are the information, the first
Gauss-Newton step and the test statistic of a mistake in the Gaussian model whose prior is the
description's (the marginal score test; Rao 1948). The test is made robust by sums over blocks of a
second, and is followed by the linear prediction of stretches that were held out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import chi2, f

from feasid.core.arrays import Array
from feasid.effects.columns import LogRows
from feasid.effects.functions import Mistake
from feasid.effects.table import columns_of
from feasid.estimation.held_out import RULES, Gain, HeldOut
from feasid.regression.folds import FOLDS
from feasid.robot.description import Robot

FALSE_ALARMS = 0.01
"""Probability of a false alarm per log, shared by all mistakes that are tested (Bonferroni)."""

LEAST_SHARE = 1e-5
"""Share of a column that parameters leave unexplained, below which a log cannot see it."""

FIRST_LEVEL = 0.02
"""Level of the plain test beyond which nothing more is computed."""

SMALLEST_COLUMN = 1e-9
"""Norm of a whitened column below which a log says nothing of it."""

RIDGE = 1e-9


@dataclass(frozen=True, eq=False)
class ScoreTest:
    """What a log says of one mistake.

    Attributes
    ----------
    mistake : Mistake
    value, deviation : ndarray
        First Gauss-Newton step and its standard deviation [SI].
    p : float
        Probability of so much by chance, multiplied by the number of tests.
    held_out : Gain, optional
        Of the errors of stretches that were held out; None where the test is too weak.
    share : float
        Of the column that no other parameter explains.
    statistic : float
        chi2 above.
    """

    mistake: Mistake
    value: Array
    deviation: Array
    p: float = 1.0
    held_out: Gain | None = None
    share: float = 1.0
    statistic: float = 0.0

    @property
    def gain(self) -> float:
        """Share by which held-out errors fall."""
        return 0.0 if self.held_out is None else self.held_out.share

    @property
    def supported(self) -> bool:
        """Whether the mistake is worth a fit."""
        if self.held_out is None or self.p >= FALSE_ALARMS:
            return False
        return RULES["sensor"].accepts(self.held_out)


class ScoreTests:
    """Tests around one fit.

    Parameters
    ----------
    rows : LogRows
    torque : ndarray, shape (rows,)
        Filtered torques after what was taken out already.
    model : Robot
        With the fitted values.
    beta : ndarray, shape (nb,)
    spread : ndarray, shape (nb, nb)
        Covariance of the base parameters under data and prior, were the noise of unit variance.
    deviations : ndarray, shape (rows,)
    active : sequence of Mistake
        Fitted beside the base parameters.
    columns : dict, optional
        Whitened columns that are known, to which others are added.
    """

    def __init__(
        self,
        rows: LogRows,
        torque: Array,
        model: Robot,
        beta: Array,
        spread: Array,
        deviations: Array,
        active: Sequence[Mistake] = (),
        columns: dict[Mistake, Array] | None = None,
    ) -> None:
        self.rows, self.model, self.beta, self.deviations = rows, model, beta, deviations
        self.active = tuple(active)
        unit = np.sqrt(np.maximum(np.diag(spread), 1e-300))
        self.unit = unit
        self.W = rows.regressor * (unit / deviations[:, None])
        self.P = spread / np.outer(unit, unit)
        self.e = (torque - rows.regressor @ beta) / deviations
        self._columns = {} if columns is None else columns

    def whitened_columns(self, mistake: Mistake) -> Array:
        """Whitened columns of a mistake, shape (rows, size)."""
        if mistake not in self._columns:
            found = columns_of(self.rows, mistake, self.model, self.beta)
            self._columns[mistake] = found / self.deviations[:, None]
        return self._columns[mistake]

    @cached_property
    def _nuisance_columns_and_covariance(self) -> tuple[Array, Array]:
        """Columns of parameters and of active mistakes, and their covariance."""
        if not self.active:
            return self.W, self.P
        A = np.hstack([self.whitened_columns(m) for m in self.active])
        A = A / np.maximum(np.linalg.norm(A, axis=0), 1e-300)
        WA = self.W.T @ A
        B = self.P @ WA
        S = np.linalg.inv(A.T @ A - WA.T @ B + RIDGE * np.eye(A.shape[1]))
        wide = np.block([[self.P + B @ S @ B.T, -B @ S], [-(B @ S).T, S]])
        return np.hstack([self.W, A]), wide

    @cached_property
    def _active_step_and_residual(self) -> tuple[Array, Array]:
        """Gradient of the active mistakes at the fit, and the residual after their step."""
        W, P = self._nuisance_columns_and_covariance
        gradient = np.zeros(len(P))
        gradient[self.W.shape[1] :] = W[:, self.W.shape[1] :].T @ self.e
        return gradient, self.e - W @ (P @ gradient)

    @cached_property
    def _fold_equations(self) -> list[tuple[Array, Array, Array, Array, Array]]:
        """Per fold: its rows, columns, residual, the others' covariance and gradient."""
        W, P = self._nuisance_columns_and_covariance
        gradient, _ = self._active_step_and_residual
        out = []
        for fold in range(FOLDS):
            own = self.rows.fold == fold
            Wf, ef = W[own], self.e[own]
            R = np.asarray(np.linalg.qr(Wf, mode="r"))
            U = R @ P
            inside = np.eye(len(R)) - U @ R.T + RIDGE * np.eye(len(R))
            out.append((own, Wf, ef, P + U.T @ np.linalg.solve(inside, U), gradient - Wf.T @ ef))
        return out

    @cached_property
    def _held_out_without(self) -> HeldOut:
        out = np.zeros(len(self.e))
        for own, Wf, ef, L, g in self._fold_equations:
            out[own] = ef - Wf @ (L @ g)
        return self._held_out(out)

    def tests(self, mistakes: Sequence[Mistake], count: int | None = None) -> list[ScoreTest]:
        """What the log says of each mistake that it can see, beside the active ones.

        `count` is how many were looked for, where these are the likeliest of them.
        """
        number = len(mistakes) if count is None else count
        found = [self._test(mistake, number) for mistake in mistakes]
        return [test for test in found if test is not None]

    def joint_gain(self, mistakes: Sequence[Mistake]) -> Gain:
        """How much held-out residuals fall with all these mistakes at once.

        A term that all joints lack spoils the bodies that they share, and no joint alone shows it.
        """
        return self._held_out_gain_of_columns(*self._joint_columns(mistakes))

    def joint_statistic(self, mistakes: Sequence[Mistake]) -> float:
        """chi2 of all these mistakes at once."""
        _, P = self._nuisance_columns_and_covariance
        gradient, _ = self._active_step_and_residual
        X, WX = self._joint_columns(mistakes)
        score = X.T @ self.e - WX.T @ (P @ gradient)
        information = X.T @ X - WX.T @ (P @ WX) + RIDGE * np.eye(X.shape[1])
        return float(score @ np.linalg.solve(information, score))

    def _joint_columns(self, mistakes: Sequence[Mistake]) -> tuple[Array, Array]:
        """Columns of unit norm of all these mistakes, and what the nuisance columns have of them.

        They are not kept: who looks for the best of many asks once for each.
        """
        found = [columns_of(self.rows, m, self.model, self.beta) for m in mistakes]
        X = np.hstack(found) / self.deviations[:, None]
        scale = np.linalg.norm(X, axis=0)
        X = X[:, scale > SMALLEST_COLUMN] / scale[scale > SMALLEST_COLUMN]
        W, _ = self._nuisance_columns_and_covariance
        return X, W.T @ X

    def _test(self, mistake: Mistake, tests: int) -> ScoreTest | None:
        W, P = self._nuisance_columns_and_covariance
        gradient, residual = self._active_step_and_residual
        X = self.whitened_columns(mistake)
        scale = np.linalg.norm(X, axis=0)
        if (scale < SMALLEST_COLUMN).any():
            return None
        X = X / scale
        WX = W.T @ X
        followed = P @ WX
        values, vectors = np.linalg.eigh(X.T @ X - WX.T @ followed)
        seen = values > LEAST_SHARE
        if not seen.any():
            return None
        back = vectors[:, seen]
        X, WX, followed, information = X @ back, WX @ back, followed @ back, values[seen]
        score = X.T @ self.e - WX.T @ (P @ gradient)
        step = score / information
        projected = X - W @ followed
        after = residual - projected @ step
        statistic = float(score @ step)
        size = len(step)
        found = {
            "mistake": mistake,
            "value": (back @ step) / scale,
            "deviation": np.sqrt((back**2) @ (1.0 / information)) / scale,
            "share": float(information.min()),
            "statistic": statistic,
        }
        if chi2.sf(statistic, size) > FIRST_LEVEL:
            return ScoreTest(**found)
        p = min(1.0, tests * self._robust_probability(statistic, score, projected, after))
        if p > 0.5:
            return ScoreTest(**found)
        return ScoreTest(**found, p=p, held_out=self._held_out_gain_of_columns(X, WX))

    def _robust_probability(
        self, statistic: float, score: Array, projected: Array, after: Array
    ) -> float:
        """Probability by the law of chance, and by sums over blocks; the larger.

        Variances come from the residual of the alternative: a large mistake would hide behind
        itself.
        """
        size, blocks = len(score), int(self.rows.block.max()) + 1
        sums = np.zeros((blocks, size))
        np.add.at(sums, self.rows.block, projected * after[:, None])
        V = sums.T @ sums
        V = V + np.diag(1e-12 * np.diag(V) + 1e-300)
        robust = float(score @ np.linalg.solve(V, score))
        left = max(blocks - size, 1)
        excess = max(1.0, float(np.mean(after**2)))
        return float(
            max(f.sf(robust / size * left / blocks, size, left), chi2.sf(statistic / excess, size))
        )

    def _held_out_gain_of_columns(self, X: Array, WX: Array) -> Gain:
        after = np.zeros(len(self.e))
        for own, Wf, ef, L, g in self._fold_equations:
            Xf = X[own]
            b = WX - Wf.T @ Xf
            Lb = L @ b
            S = X.T @ X - Xf.T @ Xf - b.T @ Lb + RIDGE * np.eye(X.shape[1])
            step = np.linalg.solve(S, X.T @ self.e - Xf.T @ ef - b.T @ (L @ g))
            after[own] = ef - Wf @ (L @ g - Lb @ step) - Xf @ step
        return self._held_out(after).gain(over=self._held_out_without)

    def _held_out(self, residual: Array) -> HeldOut:
        return HeldOut.from_rows(residual, self.rows.block, self.rows.joint)

    def gauss_newton_step(
        self, mistakes: Sequence[Mistake], values: Array, widths: Array
    ) -> tuple[Array, Array]:
        """Gauss-Newton step of these mistakes beside all parameters, and its covariance.

        Deviations are the larger of the model's and of those by sums over blocks, correlations
        those of the model.

        Parameters
        ----------
        mistakes : sequence of Mistake
        values, widths : ndarray, shape (k,)
            What was taken out already, and the deviations before the log was seen.
        """
        X = np.hstack([self.whitened_columns(m) for m in mistakes])
        scale = np.maximum(np.linalg.norm(X, axis=0), 1e-300)
        X = X / scale
        WX = self.W.T @ X
        prior = 1.0 / (widths * scale) ** 2
        alone = without_negative_part(X.T @ X - WX.T @ self.P @ WX)
        C: Array = np.asarray(
            np.linalg.pinv(alone + np.diag(prior), rcond=1e-10, hermitian=True), dtype=np.float64
        )
        blocks = int(self.rows.block.max()) + 1
        sums = np.zeros((blocks, X.shape[1]))
        np.add.at(sums, self.rows.block, (X - self.W @ (self.P @ WX)) * self.e[:, None])
        robust = np.diag(C @ (sums.T @ sums) @ C)
        wider = np.sqrt(np.maximum(robust / np.maximum(np.diag(C), 1e-300), 1.0)) / scale
        step = C @ (X.T @ self.e - prior * values * scale)
        return step / scale, C * np.outer(wider, wider)

    def posterior(
        self, mistakes: Sequence[Mistake], widths: Array, doubt: float = 1.0
    ) -> tuple[Array, Array, Array]:
        """Mean and covariance of mistakes with prior deviations, and how parameters follow them.

        The estimate takes the description for a draw of the prior with precision D. Where it is one
        of a variance that is `doubt` times as large, the covariance C of mistakes grows by
        ``(doubt - 1) C X'W P D P W'X C``.

        Parameters
        ----------
        mistakes : sequence of Mistake
        widths : ndarray, shape (k,)
            Infinite where nothing is known beforehand.
        doubt : float
            Weight with which the prior was used over that with which it is believed.

        Returns
        -------
        mean, covariance : ndarray, shapes (k,) and (k, k)
        pull : ndarray, shape (nb, k)
            ``W'X`` in units of the base parameters.
        """
        X = np.hstack([self.whitened_columns(m) for m in mistakes])
        WX = self.W.T @ X
        unit = np.where(
            np.isfinite(widths), widths, 1.0 / np.maximum(np.linalg.norm(X, axis=0), 1e-9)
        )
        alone = without_negative_part((X.T @ X - WX.T @ self.P @ WX) * np.outer(unit, unit))
        covariance: Array = np.asarray(
            np.linalg.pinv(alone + np.diag((unit / widths) ** 2), hermitian=True)
        ) * np.outer(unit, unit)
        mean, followed = covariance @ (X.T @ self.e), self.P @ WX
        seen = self.W @ followed  # P D P = P - P W'W P
        held = without_negative_part(WX.T @ followed - seen.T @ seen)
        covariance = covariance + max(doubt - 1.0, 0.0) * covariance @ held @ covariance
        return mean, covariance, WX / self.unit[:, None]


def without_negative_part(matrix: Array) -> Array:
    """A difference of large matrices that is positive semidefinite but for rounding."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
