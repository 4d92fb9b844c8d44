"""A prior in units of the whitened residual: half its square plus a divergence from a reference.

    J(delta) = |R K delta - rho|^2 / 2 + weight * sum_k (tr M_k - log det M_k - 4)

M_k is body k's pseudo-inertia relative to the reference's, so that the second term does not depend
on units or frames (Lee, Wensing and Park 2020). The first is in units of the noise: the weight
means the same for any number of samples, and the prior fades as data come in. Read as probabilities
it is a Wishart density of each body about the reference with 2 weight + 5 degrees of freedom, which
gives the evidence for a weight and the covariance of the estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from feasid.core.arguments import checked, checked_methods
from feasid.core.arrays import Array
from feasid.core.errors import InputError, did_you_mean
from feasid.identification.estimation.newton import EntropicProblem
from feasid.parameters.feasibility.constraints.units import Units
from feasid.robot.description import Robot
from feasid.robot.known import Weighed

WEIGHT = 3.0
"""Weight before the evidence is computed: in simulation the evidence is largest at 3 to 10, and
errors are flat there."""

TRACE = 1e-6
"""Weight of the divergence in addition to a quadratic prior, as a share of the prior's weight, and
its least value: it keeps the minimiser strictly feasible. A share that did not grow with the
prior's weight would leave Newton's method unable to reach minima near the edge of the feasible
set."""

COVARIANCE_WEIGHT = 1.0
"""Standard deviations assume that the reference is a draw of at most this weight: one weight for
all bodies is too large for the few whose description is worst (set by simulation). Errors on
other motions that it predicts cover the real ones within 1.25 times in nine of ten splits of real
logs, as weights of 0.03 to 0.3 do; their median is 1.25 times the real error, at 0.3 1.4 times, at
0.1 1.8 times."""

SHARPEST = 1e-12
"""Variances of a Gaussian prior below this share of the largest, in units, count as this share."""

STRONGEST = 10.0
"""Largest weight that the evidence may choose: with larger ones, errors on held-out motion of real
robots grow."""

TINY = 1e-300  #: Replaces zero in divisions.


@checked_methods
class Prior:
    """Knowledge of a robot's parameters before its log is used. Derive your own priors from this
    class, and register them.

    The estimate minimises ``|R K delta - rho|^2 / 2``, plus half the squares of `rows`, plus
    `divergence` times the entropic divergence from the reference. All are in units of the noise.

    Attributes
    ----------
    name : str
        Name under which ``feasid.fit(..., prior=name)`` finds it; see `register`.
    weight : float or None
        Default weight if the evidence is not known; None if the caller must give a weight.
    """

    name: str = ""
    weight: float | None = None

    def rows(
        self, robot: Robot, reference: Array, units: Units, weight: float
    ) -> tuple[Array, Array]:
        """Linear equations of the standard parameters, in units of their standard deviations.

        Parameters
        ----------
        robot : Robot
        reference : ndarray, shape (n,)
            The model towards which the prior pulls.
        units : Units
            Size of one unit of each parameter.
        weight : float

        Returns
        -------
        A, b : ndarray, shapes (m, n) and (m,)
            ``|A delta - b|^2 / 2`` is added to the cost.
        """
        return np.zeros((0, robot.size)), np.zeros(0)

    def divergence(self, weight: float) -> float:
        """Weight of the entropic divergence from the reference, by the prior's `weight`."""
        return TRACE * max(weight, 1.0)

    @property
    def is_entropic(self) -> bool:
        """Whether the divergence is the prior itself, and not a small addition to another prior."""
        return self.divergence(1.0) == 1.0

    def evidence(
        self, problem: EntropicProblem, start: Array
    ) -> tuple[float, tuple[tuple[float, float], ...]] | None:
        """The weight that maximises the evidence, and the curve (weight, log evidence).

        Parameters
        ----------
        problem : EntropicProblem
            Equations, feasible set and reference of the estimate.
        start : ndarray, shape (n,)
            A minimiser with another weight, in the problem's free parameters.

        Returns
        -------
        (float, tuple of (float, float)), or None
            None if the evidence of this prior is not known.
        """
        return None

    def clip_weight(self, evident: float) -> float:
        """The weight that a fit uses if the evidence is largest at `evident`."""
        return evident

    def covariance(
        self, problem: EntropicProblem, delta: Array, weight: float, believed: float
    ) -> Array:
        """Covariance of the estimate of the free parameters, in SI units.

        Parameters
        ----------
        problem : EntropicProblem
        delta : ndarray, shape (n,)
            The estimate.
        weight, believed : float
            Weight that the fit used, and the largest weight for which the true parameters may be a
            draw of the prior.

        Returns
        -------
        ndarray, shape (n, n)
        """
        # Rows of the prior are equations; only the small divergence is left as a prior.
        divergence = self.divergence(weight)
        return problem.covariance(delta, divergence, divergence)


class EntropicPrior(Prior):
    """A Wishart density of each body about the reference; see the module."""

    name = "entropic"

    def divergence(self, weight: float) -> float:
        """The weight itself."""
        return weight

    def evidence(
        self, problem: EntropicProblem, start: Array
    ) -> tuple[float, tuple[tuple[float, float], ...]]:
        """Laplace's approximation over a grid of weights."""
        return problem.maximise_evidence(start)

    def clip_weight(self, evident: float) -> float:
        """At most `STRONGEST`: a description that contradicts the log gets less weight."""
        return min(evident, STRONGEST)

    def covariance(
        self, problem: EntropicProblem, delta: Array, weight: float, believed: float
    ) -> Array:
        """Assumes that the true parameters are a draw of the prior with the evident weight, or with
        the used weight if that is less.
        """
        return problem.covariance(delta, weight, min(weight, believed))


class EuclideanPrior(Prior):
    """Half the squared difference of inertial parameters from the reference in SI numbers."""

    name = "euclidean"

    def parameter_units(self, robot: Robot, units: Units) -> Array:
        """Size of one unit of each parameter, shape (n,)."""
        return np.ones(robot.size)

    def rows(
        self, robot: Robot, reference: Array, units: Units, weight: float
    ) -> tuple[Array, Array]:
        """``sqrt(weight) (delta - reference) / unit`` of the inertial parameters."""
        inertial = robot.inertial_columns.ravel()
        rows = np.sqrt(weight) * np.diag(1.0 / self.parameter_units(robot, units))[inertial]
        return rows, rows @ reference


class ScaledPrior(EuclideanPrior):
    """The same in units of each body's own mass and length."""

    name = "scaled"

    def parameter_units(self, robot: Robot, units: Units) -> Array:
        """Rows of the bodies."""
        return units.parameters


@checked
@dataclass(frozen=True, eq=False, repr=False)
class GaussianPrior(Prior):
    """A Gaussian prior: mean and covariance of parameters, such as those of an earlier fit.

    Raises
    ------
    InputError
        The shapes do not match, or the covariance is not positive semidefinite.
    """

    #: (body, symbol) of each; those that a robot does not have are left out (marginalised).
    parameters: tuple[tuple[str, str], ...]
    mean: Array  #: Shape (k,): SI units.
    matrix: Array  #: Shape (k, k): covariance, positive semidefinite.
    weighed: tuple[Weighed, ...] = ()  #: Those that were weighed for the earlier fit.
    name = "gaussian"
    weight = 1.0

    def __post_init__(self) -> None:
        size = len(self.parameters)
        mean, matrix = (np.asarray(x, dtype=np.float64) for x in (self.mean, self.matrix))
        if mean.shape != (size,) or matrix.shape != (size, size):
            raise InputError(
                f"a Gaussian prior of {size} parameters needs a mean of shape ({size},) and a "
                f"covariance of shape ({size}, {size}), got {mean.shape} and {matrix.shape}"
            )
        if not (np.isfinite(mean).all() and np.isfinite(matrix).all()):
            raise InputError("a Gaussian prior has a number that is not finite")
        # As correlations: variances of kg and kg m^2 may differ by ten orders of magnitude.
        size_of = np.sqrt(np.maximum(np.diag(matrix), 0.0))
        scaled = matrix / np.maximum(np.outer(size_of, size_of), TINY)
        symmetric = np.allclose(scaled, scaled.T, atol=1e-6)
        if not symmetric or (size and np.linalg.eigvalsh(scaled)[0] < -1e-6):
            raise InputError("the covariance of a Gaussian prior is not positive semidefinite")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "matrix", 0.5 * (matrix + matrix.T))

    def __repr__(self) -> str:
        names = [".".join(name) for name in self.parameters[:3]]
        return f"GaussianPrior of {len(self.parameters)} parameters ({', '.join(names)}, ...)"

    @classmethod
    def of(cls, fit: Any) -> GaussianPrior:
        """The estimate and covariance of an earlier `fit` as a prior of its standard parameters.
        `InputError`: it had no prior, so that it has no covariance of all parameters.
        """
        covariance = getattr(getattr(fit, "estimate", None), "covariance", None)
        if covariance is None:
            raise InputError("only a fit with a prior has a covariance of all its parameters")
        return cls(tuple(fit.robot.parameter_names), fit.delta, covariance, fit.estimator.weighed)

    def rows(
        self, robot: Robot, reference: Array, units: Units, weight: float
    ) -> tuple[Array, Array]:
        """``sqrt(weight) C^(-1/2) (delta - mean)`` as `Prior.rows`, of parameters that `robot` has.
        The mean is the prior's own, not `reference`; `units` and `weight` are as there.
        `InputError`: the robot has none of the prior's parameters.

        Returns
        -------
        A, b : ndarray, shapes (m, n) and (m,)
        """
        columns = {name: j for j, name in enumerate(robot.parameter_names)}
        shared = [k for k, name in enumerate(self.parameters) if name in columns]
        if not shared:
            raise InputError(
                f"the Gaussian prior is about no parameter of robot {robot.name!r}; it has "
                + ", ".join(".".join(name) for name in self.parameters[:3])
            )
        # In units of the robot, so that a floor of variances means the same for all parameters.
        places = [columns[self.parameters[k]] for k in shared]
        unit = units.parameters[places]
        values, vectors = np.linalg.eigh(self.matrix[np.ix_(shared, shared)] / np.outer(unit, unit))
        values = np.maximum(values, SHARPEST * max(float(values[-1]), TINY))
        rows = np.zeros((len(shared), robot.size))
        rows[:, places] = np.sqrt(weight / values)[:, None] * vectors.T / unit
        return rows, rows[:, places] @ self.mean[shared]


PRIORS: dict[str, Prior] = {}  #: Priors by the name that ``fit(prior=name)`` takes.


def register(prior: Prior) -> None:
    """Register a prior by its name."""
    PRIORS[prior.name] = prior


for _prior in (EntropicPrior(), EuclideanPrior(), ScaledPrior()):
    register(_prior)


def find_prior(given: str | Prior | None) -> Prior | None:
    """The prior of an option's value; None for none.

    Raises InputError: for a name that nobody registered, with the nearest.
    """
    if given is None or isinstance(given, Prior):
        return given
    if not isinstance(given, str) or given not in PRIORS:
        hint = did_you_mean(given, PRIORS) if isinstance(given, str) else ""
        names = ", ".join(map(repr, PRIORS))
        raise InputError(
            f"prior must be one of {names}, a feasid.Prior or None, not {given!r}{hint}",
            option="prior",
        )
    return PRIORS[given]
