"""A prior in units of the whitened residual: half its square plus a divergence from a reference.

    J(delta) = |R K delta - rho|^2 / 2 + weight * sum_k (tr M_k - log det M_k - 4)

M_k is body k's pseudo-inertia relative to the reference's, so that the second term does not depend
on units or frames (Lee, Wensing and Park 2020). The first is in units of the noise: the weight
means the same for any number of samples, and the prior fades as data come in. Read as probabilities
it is a Wishart density of each body about the reference with 2 weight + 5 degrees of freedom, which
gives the evidence for a weight and the covariance of the estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import multigammaln

from feasid.core.arrays import Array
from feasid.errors import InputError, did_you_mean
from feasid.feasibility.cone import (
    MAX_NEWTON_STEPS,
    OTHER_WEIGHT,
    Cone,
    ConvexFunction,
    Minimum,
    Quadratic,
    minimise,
    newton_step,
)
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.feasibility.constraints.units import Units
from feasid.robot.description import Robot

WEIGHT = 3.0
"""Where no evidence was asked yet: it wants 3 to 10 in simulation, and errors are flat there."""

TRACE = 1e-6
"""Weight of the divergence beside a quadratic prior: it keeps the minimiser strictly feasible."""

DOUBTED = 1.0
"""Deviations take the reference for a draw of at most this weight: one weight for all bodies
smooths the few whose description is worst (chosen in simulation)."""

SHRINKAGE = 4.0
"""Parameters' worth of evidence for the common weight beside that of a body's own."""

FORETOLD = 0.05
"""The same for errors that are foretold of other motions, which are where the description's faults
show that the log does not: of ten splits of real logs errors are within 1.25 times what this
foretells in nine, at a weight of 0.1 in seven."""

SHARPEST = 1e-12
"""Variances of a Gaussian prior below this share of the largest, in units, count as this share."""

STRONGEST = 10.0
"""Largest weight that a log's evidence is followed to: on held-out motion of real robots errors
grow beyond."""

BARRIERS = tuple(10.0**-k for k in range(9))
"""Weights of the other constraints' logarithms on the way to the optimum, the last 1e-8: they cost
at most that per constraint, in units of the whitened residual."""

DECREMENT = 1e-10
"""Newton decrement, squared and halved, at which a minimum counts as reached."""

PASSING = 0.1
"""The same on the way to it, in units of the logarithms' weight, where Newton's method converges
quadratically."""

FAR = 150
"""Newton steps after which a start counts as too far away (fits of packaged logs take up to 126)
..."""

STRONGER = (1e8, 1e7, 1e6, 1e5, 1e4, 1e3, 100.0, 10.0)
"""... and the factors on the divergence's weight that are passed on the way from there."""

RESUMED = (1e-4, 1e-6, BARRIERS[-1])
"""The same from a neighbouring optimum."""

UNSEEN = 1e-14
"""Relative ridge on second derivatives, for joint terms that the log does not see at all."""

TINY = 1e-300
"""Stands for zero where a number is divided by."""

GRID = tuple(float(w) for w in 10.0 ** np.arange(-2.0, 3.25, 0.25))
"""Weights whose evidence is compared."""


@dataclass(frozen=True, eq=False)
class EntropicProblem:
    """The problem: whitened rows, a feasible set, and the reference.

    Attributes
    ----------
    A, b : ndarray, shapes (m, n) and (m,)
        Whitened equations of the standard parameters, ``R K`` and ``rho``.
    feasible : FeasibleSet
        Without equalities.
    reference : ndarray, shape (n,)
        Its inertia blocks positive definite.
    unit : ndarray, shape (n,)
        Size of one unit of each parameter.
    """

    A: Array
    b: Array
    feasible: FeasibleSet
    reference: Array
    unit: Array

    @cached_property
    def _directions(self) -> Array:
        """One unit of each parameter."""
        return np.diag(self.unit)

    @cached_property
    def _squares(self) -> Quadratic:
        """The equations."""
        return Quadratic(self.A, self.b, self._directions)

    @cached_property
    def _bodies(self) -> Cone:
        """The divergence of the inertia blocks."""
        blocks = tuple(b for b in self.feasible.blocks if b.kind != "matrix")
        only = replace(self.feasible, blocks=blocks, linear=())
        return Cone.divergence(only, self.reference, self._directions)

    @cached_property
    def _others(self) -> Cone:
        """Logarithms of everything else."""
        blocks = tuple(b for b in self.feasible.blocks if b.kind == "matrix")
        only = replace(self.feasible, blocks=blocks)
        return Cone.divergence(only, self.reference, self._directions)

    @property
    def _curvature(self) -> Array:
        return self._squares.curvature

    def divergence(self, delta: Array) -> float:
        """``sum_k (tr M_k - log det M_k - size_k)``."""
        return self._bodies.value(delta) - self._bodies.value(self.reference)

    def cost(self, delta: Array, weight: float) -> float:
        """J."""
        return self._squares.value(delta) + weight * self.divergence(delta)

    def minimise(self, start: Array, weight: float) -> Array:
        """The minimiser of J over the feasible set, from a strictly feasible start."""
        return self.path(start, weight)[-1]

    def with_rows(self, A: Array, b: Array) -> EntropicProblem:
        """The same problem with other equations; what does not depend on them is kept."""
        other = replace(self, A=A, b=b)
        other.__dict__.update(
            _directions=self._directions,
            _bodies=self._bodies,
            _others=self._others,
            _each_body=self._each_body,
        )
        return other

    def resume(self, start: Array, weight: float) -> Array:
        """`minimise` from the minimiser of similar equations, and one Newton step beyond."""
        delta = self.path(start, weight, RESUMED)[-1]
        terms = self._terms(weight, BARRIERS[-1] / OTHER_WEIGHT)
        parts = [(w, *term.derivatives(delta)) for w, term in terms]
        gradient = sum(w * g for w, g, _ in parts)
        hessian = np.asarray(sum(w * h for w, _, h in parts))
        polished = delta + self.unit * newton_step(hessian, -np.asarray(gradient))
        before, after = (sum(w * t.value(at) for w, t in terms) for at in (delta, polished))
        return polished if after <= before + DECREMENT else delta

    @property
    def _has_others(self) -> bool:
        return bool(self.feasible.linear) or any(b.kind == "matrix" for b in self.feasible.blocks)

    def path(
        self, start: Array, weight: float, barriers: tuple[float, ...] = BARRIERS
    ) -> list[Array]:
        """Close to the minimisers for these weights of other constraints' logarithms; the last is
        one. Without others it is alone.
        """
        if not (np.isfinite(weight) and weight > 0):
            raise InputError(f"the prior's weight must be a positive number, not {weight!r}")
        *passed, last = barriers if self._has_others else barriers[-1:]
        points = [np.array(start, dtype=np.float64)]
        for other in passed:
            enough = max(PASSING * other, DECREMENT)
            points.append(self._newton(points[-1], weight, other / OTHER_WEIGHT, enough))
        return [*points[1:], self._newton(points[-1], weight, last / OTHER_WEIGHT)]

    def _terms(self, weight: float, other: float) -> list[tuple[float, ConvexFunction]]:
        """The cost: equations, the divergence of bodies, and logarithms of everything else."""
        return [(1.0, self._squares), (weight, self._bodies), (other, self._others)]

    def _newton(
        self, delta: Array, weight: float, other: float, decrement: float = DECREMENT
    ) -> Array:
        """The minimiser of the cost, from a point strictly inside.

        From far away Newton's steps are short where the divergence weighs little: then minimisers
        of larger weights lead there.
        """
        found = self._tried(delta, weight, other, decrement, FAR)
        if found.converged:
            return found.delta
        for factor in STRONGER:
            passing = max(PASSING * factor * weight, decrement)
            found = self._tried(found.delta, factor * weight, other, passing, FAR)
        return self._tried(found.delta, weight, other, decrement, MAX_NEWTON_STEPS).delta

    def _tried(
        self, delta: Array, weight: float, other: float, decrement: float, steps: int
    ) -> Minimum:
        terms = self._terms(weight, other)
        return minimise(terms, delta, self._directions, decrement, steps=steps)

    def hessian(self, delta: Array) -> Array:
        """Second derivatives of the divergence in units of the parameters, shape (n, n)."""
        return self._bodies.derivatives(delta)[1]

    def covariance(self, delta: Array, weight: float, believed: float) -> Array:
        """Covariance of the minimiser delta, shape (n, n).

        ``H^-1 (A'A + sum_k weight^2 / believed_k D_k) H^-1`` with ``H = A'A + weight D``: noise of
        unit variance moves the minimum by the first term; the second is how far the truth lies
        from the reference, where `believed` is the weight of the density that it is drawn from at
        most, and less for bodies that say so; see `believable`. D is taken halfway between delta
        and the reference: at a minimum close to an impossible body it is so large that only models
        still closer to it would be believed. Bounds are not counted, which makes deviations beside
        an active one larger than they are.
        """
        middle = 0.5 * (delta + self.reference)
        own = [cone.derivatives(middle)[1] for cone in self._each_body.values()]
        H = self._curvature + weight * np.sum(own, axis=0)
        weights = np.minimum([*self.believable(delta, weight).values()], believed)
        drawn = np.einsum("k,kij->ij", weight**2 / weights, own)
        return self._sandwich(H, self._curvature + drawn)

    def believable(self, delta: Array, weight: float) -> dict[str, float]:
        """Weight of the density that each body's minimiser looks drawn from.

        ``(g + s) / (2 d + s / weight)``, d the body's divergence from the reference and g how many
        of its parameters the equations tell: MacKay's estimate of a precision (1992), kept near
        the common weight by `SHRINKAGE` s.
        """
        middle = 0.5 * (delta + self.reference)
        own = {name: cone.derivatives(middle)[1] for name, cone in self._each_body.items()}
        H = _regular(self._curvature + weight * np.sum([*own.values()], axis=0))
        inverse = np.linalg.inv(H)
        out = {}
        for name, D in own.items():
            cone = self._each_body[name]
            apart = cone.value(delta) - cone.value(self.reference)
            told = max(np.count_nonzero(np.diag(D)) - weight * float(np.sum(inverse * D)), 0.0)
            out[name] = (told + SHRINKAGE) / (2.0 * max(apart, 0.0) + SHRINKAGE / weight)
        return out

    @cached_property
    def _each_body(self) -> dict[str, Cone]:
        """The divergence of each inertia block, by its name."""
        return {
            b.name: Cone.divergence(
                replace(self.feasible, blocks=(b,), linear=()), self.reference, self._directions
            )
            for b in self.feasible.blocks
            if b.kind != "matrix"
        }

    def _sandwich(self, H: Array, middle: Array) -> Array:
        """``H^-1 middle H^-1`` in SI units."""
        H = _regular(H)
        left = np.linalg.solve(H, middle)
        inside = np.linalg.solve(H, left.T)
        return np.asarray(0.5 * (inside + inside.T) * np.outer(self.unit, self.unit))

    def response(self, delta: Array, weight: float, change: Array) -> Array:
        """How the minimiser delta moves when the first entries of b do, shape (n,)."""
        H = _regular(self._curvature + weight * self.hessian(delta))
        pull = (self.A[: len(change)] * self.unit).T @ change
        return np.asarray(self.unit * np.linalg.solve(H, pull))

    def followed(self, delta: Array, weight: float) -> Array:
        """``H^-1`` in SI units, shape (n, n): its trace against A'A counts the noise followed."""
        H = self._curvature + weight * self.hessian(delta)
        return self._sandwich(H, H)

    def evidence(self, delta: Array, weight: float) -> float:
        """Laplace's approximation of log p(data | weight) at its minimiser, up to a constant.

        ``-J - log det(H) / 2 - sum_k log Z(weight)``, with Z the normaliser of a Wishart density
        in four dimensions, ``Gamma_4(w + 5/2) w^(-4 (w + 5/2)) e^(4 w)``.
        """
        _, logdet = np.linalg.slogdet(
            self._curvature
            + weight * self.hessian(delta)
            + 1e-14 * np.diag(np.diag(self._curvature))
        )
        sizes = [b.size for b in self.feasible.blocks if b.kind != "matrix"]
        normaliser = 0.0
        for p in sizes:
            a = weight + 0.5 * (p + 1)
            normaliser += multigammaln(a, p) - p * a * np.log(weight) + p * weight
        return -self.cost(delta, weight) - 0.5 * float(logdet) - normaliser

    def most_evident(self, start: Array) -> tuple[float, tuple[tuple[float, float], ...]]:
        """The weight of `GRID` with the largest evidence, and all of them with theirs."""
        curve = []
        delta = start
        for weight in reversed(GRID):
            delta = self._newton(delta, weight, BARRIERS[-1] / OTHER_WEIGHT)
            curve.append((weight, self.evidence(delta, weight)))
        best = max(curve, key=lambda point: point[1])
        return best[0], tuple(reversed(curve))


def _regular(H: Array) -> Array:
    """H with a trace of its diagonal more, and ones for parameters that nothing sees."""
    diagonal = np.diag(H)
    return np.asarray(H + np.diag(np.where(diagonal > 0, UNSEEN * diagonal, 1.0)))


class Prior:
    """What is known of a robot's parameters before its log; derive from it, and register.

    The estimate minimises ``|R K delta - rho|^2 / 2``, plus half the squares of `rows`, plus
    `divergence` times the entropic divergence from the reference. All are in units of the noise.

    Attributes
    ----------
    name : str
        By which ``feasid.fit(..., prior=name)`` finds it; see `register`.
    weight : float or None
        Weight where the caller gives none and there is no evidence; None when one must be given.
    """

    name: str = ""
    weight: float | None = None

    def rows(
        self, robot: Robot, reference: Array, units: Units, weight: float
    ) -> tuple[Array, Array]:
        """Linear equations of the standard parameters, in units of their deviations.

        Parameters
        ----------
        robot : Robot
        reference : ndarray, shape (n,)
            The model that bodies are drawn to.
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
        """Weight of the entropic divergence from the reference.

        Parameters
        ----------
        weight : float
            Of the prior.

        Returns
        -------
        float
            Positive.
        """
        return TRACE

    def evidence(
        self, problem: EntropicProblem, start: Array
    ) -> tuple[float, tuple[tuple[float, float], ...]] | None:
        """The weight of the largest evidence, and the curve (weight, log evidence).

        Parameters
        ----------
        problem : EntropicProblem
            Equations, feasible set and reference of the estimate.
        start : ndarray, shape (n,)
            A strictly feasible model in the problem's free parameters.

        Returns
        -------
        (float, tuple of (float, float)), or None
            None where the evidence of this prior is not known.
        """
        return None

    def strongest(self, evident: float) -> float:
        """The weight that is taken where the evidence is largest at `evident`.

        Parameters
        ----------
        evident : float

        Returns
        -------
        float
        """
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
            Weight that was taken, and the one of which the truth is a draw at most.

        Returns
        -------
        ndarray, shape (n, n)
        """
        own = self.divergence(weight)
        return problem.covariance(delta, own, own)


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
        return problem.most_evident(problem.minimise(start, WEIGHT))

    def strongest(self, evident: float) -> float:
        """At most `STRONGEST`: a description that contradicts the log is believed less."""
        return min(evident, STRONGEST)

    def covariance(
        self, problem: EntropicProblem, delta: Array, weight: float, believed: float
    ) -> Array:
        """With the truth a draw of the evident weight, or of the weight taken if that is less."""
        return problem.covariance(delta, weight, min(weight, believed))


class EuclideanPrior(Prior):
    """Half the squared difference of inertial parameters from the reference in SI numbers."""

    name = "euclidean"

    def unit(self, robot: Robot, units: Units) -> Array:
        """Size of one unit of each parameter, shape (n,)."""
        return np.ones(robot.size)

    def rows(
        self, robot: Robot, reference: Array, units: Units, weight: float
    ) -> tuple[Array, Array]:
        """``sqrt(weight) (delta - reference) / unit`` of the inertial parameters."""
        inertial = robot.inertial_columns.ravel()
        rows = np.sqrt(weight) * np.diag(1.0 / self.unit(robot, units))[inertial]
        return rows, rows @ reference


class ScaledPrior(EuclideanPrior):
    """The same in units of each body's own mass and length."""

    name = "scaled"

    def unit(self, robot: Robot, units: Units) -> Array:
        """Those of the bodies."""
        return units.parameters


@dataclass(frozen=True, eq=False, repr=False)
class GaussianPrior(Prior):
    """Parameters with a mean and a covariance, such as those of an earlier fit.

    Attributes
    ----------
    parameters : tuple of (str, str)
        (body, symbol) of each; those that a robot does not have are left out (marginalised).
    mean : ndarray, shape (k,)
        SI units.
    matrix : ndarray, shape (k, k)
        Covariance, positive semidefinite.

    Raises
    ------
    InputError
        When shapes do not fit, or the covariance is not one.
    """

    parameters: tuple[tuple[str, str], ...]
    mean: Array
    matrix: Array
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
        size_of = np.sqrt(np.maximum(np.diag(matrix), 0.0))
        scaled = matrix / np.maximum(np.outer(size_of, size_of), TINY)
        if not np.allclose(scaled, scaled.T, atol=1e-6) or (
            size and np.linalg.eigvalsh(scaled)[0] < -1e-6
        ):
            raise InputError("the covariance of a Gaussian prior is not positive semidefinite")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "matrix", 0.5 * (matrix + matrix.T))

    def __repr__(self) -> str:
        names = [".".join(name) for name in self.parameters[:3]]
        return f"GaussianPrior of {len(self.parameters)} parameters ({', '.join(names)}, ...)"

    @classmethod
    def of(cls, fit: Any) -> GaussianPrior:
        """The estimate and covariance of an earlier fit as a prior of its standard parameters.

        Parameters
        ----------
        fit : feasid.Fit or feasid.SavedFit
            Fitted with a prior.

        Returns
        -------
        GaussianPrior

        Raises
        ------
        InputError
            When the fit had no prior: least squares alone have no covariance of all parameters.
        """
        if getattr(fit, "estimate", None) is None:
            raise InputError("only a fit with a prior has a covariance of all its parameters")
        return cls(tuple(fit.robot.parameter_names), fit.delta, fit.estimate.covariance)

    def rows(
        self, robot: Robot, reference: Array, units: Units, weight: float
    ) -> tuple[Array, Array]:
        """``sqrt(weight) C^(-1/2) (delta - mean)`` of the parameters that the robot has.

        Parameters
        ----------
        robot : Robot
        reference : ndarray, shape (n,)
            Not used: the mean is the prior's own.
        units : Units
            Size of one unit of each parameter.
        weight : float

        Returns
        -------
        A, b : ndarray, shapes (m, n) and (m,)

        Raises
        ------
        InputError
            When the robot has none of the prior's parameters.
        """
        columns = {name: j for j, name in enumerate(robot.parameter_names)}
        shared = [k for k, name in enumerate(self.parameters) if name in columns]
        if not shared:
            raise InputError(
                f"the Gaussian prior is about no parameter of robot {robot.name!r}; it has "
                + ", ".join(".".join(name) for name in self.parameters[:3])
            )
        places = [columns[self.parameters[k]] for k in shared]
        unit = units.parameters[places]
        values, vectors = np.linalg.eigh(self.matrix[np.ix_(shared, shared)] / np.outer(unit, unit))
        values = np.maximum(values, SHARPEST * max(float(values[-1]), TINY))
        rows = np.zeros((len(shared), robot.size))
        rows[:, places] = np.sqrt(weight / values)[:, None] * vectors.T / unit
        return rows, rows[:, places] @ self.mean[shared]


PRIORS: dict[str, Prior] = {}
"""Priors by the name that ``fit(prior=name)`` takes."""


def register(prior: Prior) -> None:
    """Make a prior known by its name."""
    PRIORS[prior.name] = prior


for _prior in (EntropicPrior(), EuclideanPrior(), ScaledPrior()):
    register(_prior)


def find_prior(given: str | Prior | None) -> Prior | None:
    """The prior of an option's value; None for none.

    Raises
    ------
    InputError
        For a name that nobody registered, with the nearest.
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
