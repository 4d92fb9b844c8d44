"""Equations of one servo law: rows times instruments, the delay, and the noise of the errors.

Equations are multiplied with the commanded motion, which has no noise, joint by joint; delay and
noise are those of free base parameters of each joint, so that neither depends on the gains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from feasid.core.arrays import Array
from feasid.identification.regression.low_pass import WHITE_CORRELATION
from feasid.identification.servos.evidence import JointBlock
from feasid.identification.servos.rows import LAGS, ServoRows
from feasid.logs.servo import TorqueLimits

LONGEST_DELAY = 0.2  #: Delays are sought up to here [s]: six frames of a camera.
DELAY_STEP = 0.01  #: Distance of the delays [s] from which the search starts.
EARLIEST = -2e-3  #: A delay below this [s] is impossible: commands cannot act before they are given

RATE_TIMES = (0.003, 0.01, 0.03)
"""Time constants of the low-pass of the command's rate [s] from which the search starts."""

LAG_PRECISION = 1e-5  #: Delays and time constants are found to this [s].
RANK = 1e-6  #: Singular values of scaled columns below this share of the largest are zero.


@dataclass(frozen=True)
class ServoLaw:
    """The law of a servo: its kind, the share of the robot's weight it carries, further terms."""

    kind: str = "position"
    share: float = 0.0
    terms: tuple[str, ...] = ()

    def __str__(self) -> str:
        share = [f"{self.share:.2f} of the robot's weight"] if self.share else []
        return " and ".join(["a plain servo", *share, *self.terms][bool(share or self.terms) :])


@dataclass(frozen=True, eq=False)
class JointEquations:
    """Rows of one joint in logs with the same load.

    ``regressor`` (rows, nb), ``projector`` (rows, p) orthonormal instruments, ``projected``
    (p, nb) the regressor times them, ``basis`` (p, r) and ``free`` (rows, s) orthonormal bases of
    the columns of both.
    """

    joint: int
    data: int
    used: npt.NDArray[np.intp]
    regressor: Array
    projector: Array
    projected: Array
    basis: Array
    free: Array

    def select(self, signals: Sequence[Sequence[Array]]) -> list[Array]:
        """The joint's rows of the signals of all data."""
        return [x[self.used, self.joint] for x in signals[self.data]]


@dataclass(frozen=True, eq=False)
class LawEquations:
    """Equations of a law for rows without and with a known load."""

    data: tuple[ServoRows, ...]
    law: ServoLaw
    limits: TorqueLimits | None = None
    start: Array | None = field(default=None)
    """Delay and time constant [s] near which those of this law are sought; None: anywhere."""

    @cached_property
    def joints(self) -> list[JointEquations]:
        """The equations of every joint in all data."""
        out, share = [], self.law.share
        for k, j in product(range(len(self.data)), range(self.data[0].robot.dof)):
            rows = self.data[k]
            used = np.flatnonzero(rows.use[:, j])
            W = rows.motion.less_weight(j, share)[used]
            columns = [m.less_weight(j, share)[used] for m in rows.commanded]
            columns += [x[used, j : j + 1] for x in self._term_instruments[k]]
            P = orthonormal_basis(np.hstack(columns))
            bases = orthonormal_basis(P.T @ W), orthonormal_basis(W)
            out.append(JointEquations(j, k, used, W, P, P.T @ W, *bases))
        return out

    @cached_property
    def _term_instruments(self) -> list[list[Array]]:
        """Per data the rate of the commands, for the delay, and the terms' own signals."""
        if self.law.kind == "current":
            return [[] for _ in self.data]
        places = [(("rate",), (float(np.mean(LAGS)), 0.0))]
        for term in self.law.terms:
            times = RATE_TIMES if term == "rate" else (0.0,)
            places += [((term,), (lag, time)) for lag, time in product(LAGS, times)]
        return [
            [x for terms, lags in places for x in rows.term_signals(terms, lags)]
            for rows in self.data
        ]

    def signals(self, lags: Array) -> list[list[Array]]:
        """Per data the errors and the terms at these lags, (rows, dof) each."""
        delay, terms = float(lags[0]), self.law.terms
        return [[rows.filtered_error(delay, self.limits), *rows.term_signals(terms, lags)]
                for rows in self.data]  # fmt: skip

    def residuals(self, lags: Array, projected: bool) -> Iterator[tuple[JointEquations, Array]]:
        """Residuals after a fit of each joint's base parameters and the terms, with or without
        instruments.
        """
        signals = self.signals(lags)
        for part in self.joints:
            columns, Q = np.stack(part.select(signals), axis=1), part.free
            if projected:
                columns, Q = part.projector.T @ columns, part.basis
            columns = columns - Q @ (Q.T @ columns)
            yield part, remove_columns(columns[:, 1:], columns[:, :1])[:, 0]

    def misfit(self, lags: Array) -> float:
        """Negative logarithm of the likelihood of these lags, with the noise eliminated."""
        # Neighbouring rows share noise: as few as are independent count.
        return sum(
            len(r) / 2 * float(np.log(r @ r + 1e-300)) / WHITE_CORRELATION
            for _, r in self.residuals(lags, projected=True)
        )

    @cached_property
    def lags(self) -> tuple[Array, float]:
        """Delay and time constant of the rate's low-pass [s], and the delay's deviation [s]."""
        sought = 0 if self.law.kind == "current" else 2 if "rate" in self.law.terms else 1
        if not sought:
            return np.zeros(2), 0.0
        if self.start is None or (sought == 2 and not self.start[1]):
            times = RATE_TIMES if sought == 2 else (0.0,)
            delays = np.arange(-DELAY_STEP, LONGEST_DELAY, DELAY_STEP)
            grid = [np.array(x) for x in product(delays, times)]
            first = grid[int(np.argmin([self.misfit(x) for x in grid]))]
        else:
            first = self.start

        def at(x: Array) -> Array:
            return np.asarray(np.r_[x, first[sought:]])

        # SciPy's own simplex is a share of the start, which may be zero.
        simplex = first[:sought] + np.vstack([np.zeros(sought), DELAY_STEP / 4 * np.eye(sought)])
        bounds = [(-2 * DELAY_STEP, LONGEST_DELAY), (1e-4, LONGEST_DELAY)][:sought]
        options: Any = {"initial_simplex": simplex, "xatol": LAG_PRECISION, "fatol": 1e-2}
        how: Any = {"method": "Nelder-Mead", "bounds": bounds, "options": options}
        search: Any = minimize
        made = search(lambda x: self.misfit(at(x)), first[:sought], **how)
        best, step = at(made.x), np.r_[DELAY_STEP / 10, 0.0]
        costs = [self.misfit(best + k * step) for k in (-1, 0, 1)]
        bend = max(costs[0] - 2 * costs[1] + costs[2], 1e-12) / step[0] ** 2
        return best, float(1 / np.sqrt(bend))

    @cached_property
    def noise(self) -> list[float]:
        """RMS of each joint's residuals, unprojected, in the order of `joints`."""
        out = []
        for part, r in self.residuals(self.lags[0], projected=False):
            unknowns = part.free.shape[1] + len(self.law.terms)
            out.append(float(np.sqrt(r @ r / max(len(r) - unknowns, 1))))
        return [max(x, 1e-12) for x in out]

    def blocks(self, unknowns: Array) -> list[JointBlock]:
        """Equations in units of the noise, of which neighbouring rows share a part.

        ``unknowns`` (nb, n) are base parameters by what is unknown.
        """
        out, signals = [], self.signals(self.lags[0])
        for part, sigma in zip(self.joints, self.noise, strict=True):
            e, *extra = (part.projector.T @ x for x in part.select(signals))
            M = np.column_stack([part.projected, part.projected @ self.data[part.data].shift, e])
            if extra:
                M = remove_columns(np.stack(extra, axis=1), M)
            M = M / (sigma * np.sqrt(WHITE_CORRELATION))
            small = orthonormal_basis(M[:, :-2]).T @ M
            unreached = float(M[:, -1] @ M[:, -1] - small[:, -1] @ small[:, -1])
            parameters, shift, error = small[:, :-2] @ unknowns, small[:, -2], small[:, -1]
            out.append(JointBlock(part.joint, parameters, shift, error, unreached))
        return out

    @property
    def noise_score(self) -> float:
        """Part of the negative log likelihood by the noise's size: n log sigma of each joint."""
        rows = np.array([len(part.used) for part in self.joints])
        return float(rows @ np.log(self.noise)) / WHITE_CORRELATION

    def unexplained(self, beta: Array, logs: Array) -> tuple[Array, Array]:
        """Unexplained share of each joint's errors, and factors of the terms (terms, dof)."""
        signals, n = self.signals(self.lags[0]), len(logs)
        shares, factors = np.zeros(n), np.zeros((len(self.law.terms), n))
        for part in self.joints[:n]:
            e, *extra = part.select(signals)
            r = e - part.regressor @ beta / np.exp(logs[part.joint])
            if extra:
                X, P = np.stack(extra, axis=1), part.projector.T
                x = np.linalg.lstsq(P @ X, P @ r, rcond=1e-9)[0]
                r, factors[:, part.joint] = r - X @ x, -x
            shares[part.joint] = np.linalg.norm(r) / max(float(np.linalg.norm(e)), 1e-300)
        return shares, factors


def remove_columns(X: Array, columns: Array) -> Array:
    """Columns, projected orthogonally to those of X."""
    if not X.shape[1]:
        return columns
    norms = np.linalg.norm(X, axis=0)
    Q = np.linalg.qr(X / np.where(norms > 0, norms, 1.0))[0]
    return np.asarray(columns - Q @ (Q.T @ columns))


def orthonormal_basis(Z: Array) -> Array:
    """An orthonormal basis of the columns' span."""
    norms = np.linalg.norm(Z, axis=0)
    usable = norms > 1e-12 * max(float(norms.max(initial=0.0)), 1e-300)
    U, s, _ = np.linalg.svd(Z[:, usable] / norms[usable], full_matrices=False)
    return np.asarray(U[:, s > RANK * s[0]])
