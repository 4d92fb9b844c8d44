"""Gains by marginal likelihood: the robot's parameters are integrated out.

Minimising over parameters and gains together draws both towards zero: deviations of many
parameters lengthen the vector, and a smaller factor of all shortens it. With the parameters
integrated out this cannot happen. The width of the prior on the description is found with the
gains, by the same number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from feasid.core.arrays import Array
from feasid.core.errors import LogError

WIDTH, WIDTH_SPREAD = 0.2, 0.4
"""Deviation of the masses of a description, as a share, and that of its logarithm: descriptions
are found to be off by .09 to .45."""

STEP = 1e-4  #: Difference of logarithms by which gradients are differentiated.
GRADIENT = 1e-3  #: Gradient at which the search ends [nat]; differences are judged in nats.

FLAT = 1e-4
"""Second derivative below which the log says nothing, and its share of the largest that is
rounding."""

PINNED = 1e-3  #: Deviation of a factor that is not sought.

RIDGE = 1e-9
"""Length, of columns of length one, that makes the equations regular where nothing is known."""

TAILS = 3  #: Degrees of freedom for values in files: some are wrong by a factor of fifty.


@dataclass(frozen=True, eq=False)
class GainPrior:
    """Knowledge before the log is used."""

    #: Shape (nb, n): base parameters by the unknowns: standard parameters, or base ones of no
    #: description.
    unknowns: Array
    #: Shape (k, n + 1): rows [parameters | factor] whose values are zero, up to the width.
    described: Array
    rows: Array  #: Shape (k, n): weighed moments, in units of their deviations.
    values: Array  #: Shape (k,): see `rows`.
    #: Mapping of int to (float, float): gains by joint with relative deviation, normal ones and, of
    #: files, with Student's tails.
    trusted: Mapping[int, tuple[float, float]]
    stated: Mapping[int, tuple[float, float]]  #: See `trusted`.
    #: Deviation of the factor that the whole description is off; zero where only the description
    #: fixes it, and this factor is added to what is reported.
    factor: float
    fixed_by: str  #: Origin of the common factor.


@dataclass(frozen=True, eq=False)
class GainPosterior:
    """Where the evidence is largest: logarithms of gains (dof,), and what follows.

    ``score`` is the negative logarithm of the evidence, ``width`` the prior's, ``delta`` (n,) the
    parameters' mean, ``covariance`` that of the logarithms, ``spread`` (n,) the deviations of the
    parameters, those of the gains included.
    """

    logs: Array
    score: float
    width: float
    delta: Array
    covariance: Array
    spread: Array


@dataclass(frozen=True, eq=False)
class EvidenceValue:
    """Value and gradient, and mean and variances of what is integrated out."""

    value: float
    slope: Array
    x: Array
    variances: Array


@dataclass(frozen=True, eq=False)
class JointBlock:
    """Whitened equations of a joint, ``error = (parameters x + shift) / kp`` up to white noise.

    ``remainder`` is the squared part that no parameters explain.
    """

    joint: int
    parameters: Array
    shift: Array
    error: Array
    remainder: float


@dataclass(frozen=True, eq=False)
class GainEvidence:
    """The evidence for gains and width, given the equations of all joints.

    Unknowns that are integrated out are [parameters | factor on the description].
    """

    prior: GainPrior
    blocks: Sequence[JointBlock]
    dof: int

    @cached_property
    def _known(self) -> tuple[Array, Array]:
        """Rows and values of the weighed moments and of the factor, which is near one."""
        rows = np.pad(self.prior.rows, ((0, 1), (0, 1)))
        rows[-1, -1] = 1 / max(self.prior.factor, PINNED)
        return rows, np.r_[self.prior.values, rows[-1, -1]]

    @cached_property
    def _flat(self) -> Array:
        """How many parameters without a prior a joint's equations determine, (dof,)."""
        flat = np.asarray(~self.prior.described.any(axis=0))[:-1]
        squares = np.array([np.sum(b.parameters**2, axis=0) * flat for b in self.blocks])
        shares = squares / np.maximum(squares.sum(axis=0), 1e-300)
        counts = np.bincount([b.joint for b in self.blocks], shares.sum(axis=1), self.dof)
        return np.asarray(counts, dtype=np.float64)

    def evaluate(self, y: Array) -> EvidenceValue:
        """Value and gradient for [log kp | log width], and the parameters given these."""
        k, described = np.exp(-y[:-1]), np.exp(-y[-1]) * self.prior.described
        known, values = self._known
        parts = [k[b.joint] * np.pad(b.parameters, ((0, 0), (0, 1))) for b in self.blocks]
        ends = [b.error - k[b.joint] * b.shift for b in self.blocks]
        M = np.vstack([*parts, described, known])
        target = np.r_[(*ends, np.zeros(len(described)), values)]
        norms = np.linalg.norm(M, axis=0)
        scale = np.where(norms > 0, norms, 1.0)  # what no row knows is left to the ridge
        Q, R = np.linalg.qr(np.vstack([M / scale, RIDGE * np.eye(len(scale))]))
        inverse = solve_triangular(R, np.eye(len(R))) / scale[:, None]
        x = inverse @ (Q[: len(M)].T @ target)
        r = target - M @ x
        # Minus the logarithm of the integral over x: residuals, and the determinant of all rows.
        value = 0.5 * (r @ r + sum(b.remainder for b in self.blocks))
        value += float(np.log(np.abs(np.diag(R)) * scale).sum())
        # A density of width w has the factor 1 / w per row. Parameters without a prior are flat in
        # units of the gain: otherwise their determinant alone would prefer a large one.
        value += self._flat @ y[:-1] + len(described) * y[-1]
        slope, place = np.r_[self._flat, float(len(described))], 0
        for block, part in zip(self.blocks, parts, strict=True):
            j, errors = block.joint, r[place : place + len(part)]
            slope[j] += errors @ (part @ x + k[j] * block.shift) - np.sum((part @ inverse) ** 2)
            place += len(part)
        errors = r[place : place + len(described)]
        slope[-1] += errors @ (described @ x) - np.sum((described @ inverse) ** 2)
        width = len(y) - 1, (WIDTH, WIDTH_SPREAD)
        for j, (middle, deviation) in (*self.prior.trusted.items(), width):
            off = (y[j] - np.log(middle)) / deviation
            value, slope[j] = value + 0.5 * off**2, slope[j] + off / deviation
        for j, (middle, deviation) in self.prior.stated.items():
            off, more = (y[j] - np.log(middle)) / deviation, (TAILS + 1) / 2
            value += more * np.log1p(off**2 / TAILS)
            slope[j] += 2 * more * off / (TAILS + off**2) / deviation
        return EvidenceValue(float(value), slope, x, np.sum(inverse**2, axis=1))

    def hessian(self, y: Array) -> tuple[Array, Array]:
        """Second derivatives, and derivatives of the mean, by differences of the gradient."""
        here = self.evaluate(y)
        ends = [self.evaluate(y + d) for d in STEP * np.eye(len(y))]
        H = np.array([end.slope - here.slope for end in ends]) / STEP
        return (H + H.T) / 2, np.array([end.x - here.x for end in ends]) / STEP

    def maximise(self, start: Array) -> GainPosterior:
        """Gains and width of the largest evidence, from [log kp | log width] on.

        Raises LogError: the search ends nowhere.
        """

        def value_and_slope(y: Array) -> tuple[float, Array]:
            made = self.evaluate(y)
            return made.value, made.slope

        options: Any = {"gtol": GRADIENT, "initial_trust_radius": 0.5, "max_trust_radius": 1.0}
        how: Any = {"jac": True, "hess": lambda y: self.hessian(y)[0], "method": "trust-exact"}
        endless = LogError(
            "the servos' gains cannot be identified from this log: the search did not converge; "
            "check the columns cmd_<joint> and their unit"
        )
        try:
            y = np.asarray(minimize(value_and_slope, start, options=options, **how).x)
            H, moved = self.hessian(y)
            bends, axes = np.linalg.eigh(H)
        except (ValueError, np.linalg.LinAlgError) as error:  # curvature that is not finite
            raise endless from error
        # A direction that the log does not tell is flat; one that bends down leads away.
        if not (np.isfinite(y).all() and bends[0] > -FLAT * bends[-1]):
            raise endless
        spread, best = (axes / np.maximum(bends, FLAT)) @ axes.T, self.evaluate(y)
        variances = best.variances + np.einsum("in,ij,jn->n", moved, spread, moved)
        width, deviations = float(np.exp(y[-1])), np.sqrt(variances[:-1])
        return GainPosterior(y[:-1], best.value, width, best.x[:-1], spread[:-1, :-1], deviations)
