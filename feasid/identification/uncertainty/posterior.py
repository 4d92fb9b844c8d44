"""The posterior density of the parameters, and models drawn from it.

The density of standard parameters given a log is

    p(delta) ~ exp(-|A delta - b|^2 / 2) prod_k det(C_k)^w_k exp(-(w_k + (s + 1) / 2) tr(R_k C_k))

on the feasible set. A and b are the whitened equations of the fit with the log's mistakes
(calibration, timing) marginalised; C_k is a body's pseudo-inertia matrix of size s = 4 and R_k the
inverse of the reference's. The second factor is the entropic prior as a Wishart density with
2 w + s + 1 degrees of freedom whose mean is the reference.

It is sampled by Hamiltonian Monte Carlo (Neal 2011) in many chains at once: proposals follow the
density's own gradient with the metric of Laplace's approximation and are accepted or rejected by
Metropolis' rule. Laplace's Gaussian alone leaves the feasible set in nearly every draw where a
log leaves much open, and hit-and-run, which changes one direction at a time, takes some hundred
times as many steps for an independent draw of a seven-joint arm. Coefficients that must not be
negative are reflected at zero; other constraints reject.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from feasid.core.arrays import Array, Mask
from feasid.core.errors import InputError, SolverError
from feasid.identification.estimation.priors import COVARIANCE_WEIGHT
from feasid.parameters.feasibility.cone import minimise
from feasid.parameters.feasibility.constraints.affine import Block
from feasid.parameters.feasibility.constraints.elimination import Elimination
from feasid.parameters.feasibility.constraints.sets import BlockGroup, FeasibleSet

if TYPE_CHECKING:
    from feasid.identification.estimation.estimate import Estimate
    from feasid.identification.estimation.problem import EstimationProblem
    from feasid.identification.regression.triangle import Reduced

CHAINS = 64
"""Chains that run side by side: one product serves them all, half as many cost two thirds."""

WARM_UP = 60
"""Proposals before the first draw; the metric is taken again from the chains in their middle."""

SPACING = 5
"""Proposals from one draw of a chain to its next: of seven-joint arms every draw then counts."""

LEAST_DRAWS = 12  #: Draws per chain at least, from which correlation in time is estimated.

PATH = 1.5
"""Length of a proposal's path in deviations of Laplace's Gaussian: a quarter of its period."""

MODE_STEPS, ENOUGH = 30, 1.0
"""Newton steps at most on the way to where chains begin, and the decrement that is enough there."""

TARGET = 0.8
"""Acceptance that the step is tuned to while warming up; 0.65 to 0.9 cost about the same."""

SHORTEST_STEP = 2e-3
"""Step below which chains do not mix in reasonable time: arms with a description need .009 to .03,
and most of them would be refused at ten times this; where the log leaves whole bodies open, steps
fall below 1e-4 and time rises in proportion, so that a tenth of it only delays the refusal."""

SEEN = 1e-10  #: Singular values below this share of the largest are of directions that no row sees.


@dataclass(frozen=True, eq=False)
class Density:
    """``-log p`` and its gradient at many models at once, over the free parameters."""

    A: Array  #: Shape (m, n).
    b: Array  #: Shape (m,).
    feasible: FeasibleSet  #: Without equalities.
    means: Mapping[str, Array]  #: Shape (s, s): inertia blocks of the reference, by name.
    weights: Mapping[str, float]  #: Of the prior.
    start: Array  #: Shape (n,): a model inside, from which differences are taken.
    unit: Array  #: Shape (n,): size of one unit of each parameter.
    centred: bool = True  #: Whether the reference is the prior's mean, else its mode.
    concordance: ClassVar[float] = 0.0  # mirrored at zero: no bound of a gap is taken from it

    @cached_property
    def _weighted_groups(self) -> list[tuple[BlockGroup, Array, Array]]:
        """Blocks of one shape with weights and slopes; those of limits weigh nothing."""
        out = []
        for group in self.feasible.groups:
            blocks = [self.feasible.blocks[k] for k in group.members]
            weights = np.array([self.weights.get(b.name, 0.0) for b in blocks])
            slopes = np.zeros_like(group.constant)
            for k, block in enumerate(blocks):
                if block.name in self.weights:
                    slopes[k] = self._trace_weight(block) * np.linalg.inv(self.means[block.name])
            out.append((group, weights, slopes))
        return out

    @cached_property
    def nonnegative(self) -> Mask:
        """Which parameters are reflected at zero, shape (n,)."""
        out = np.zeros(self.feasible.size, dtype=bool)
        for c in self.feasible.linear:
            if len(c.columns) == 1 and c.constant == 0.0 and c.coefficients[0] > 0:
                out[c.columns[0]] = True
        return out

    @cached_property
    def reflecting_constraints(self) -> tuple[Array, Array]:
        """The other linear constraints: normals (n, k) and constants (k,)."""
        single = [len(c.columns) == 1 and self.nonnegative[c.columns[0]] and c.constant == 0.0
                  for c in self.feasible.linear]  # fmt: skip
        others = np.flatnonzero(~np.array(single, dtype=bool))
        return self.feasible.linear_matrix[others].T, self.feasible.linear_constant[others]

    @cached_property
    def _normal_equations(self) -> tuple[Array, Array]:
        return self.A.T @ self.A, self.A.T @ (self.A @ self.start - self.b)

    def evaluate(self, delta: Array) -> tuple[Array, Array]:
        """Values (c,), infinite outside the set, and gradients (c, n) of models (c, n).

        A value is infinite, too, where a chain left the range of floats.
        """
        matrix, right = self._normal_equations
        change = delta - self.start
        pushed = change @ matrix + right
        value = 0.5 * np.sum(change * (pushed + right), axis=1)
        rows, constants = self.reflecting_constraints
        inside = (delta @ rows + constants > 0).all(axis=1)
        for group, weights, slopes in self._weighted_groups:
            shape = group.constant.shape
            flat = group.basis.reshape(*group.columns.shape, -1)
            moved = (delta[:, group.columns][:, :, None] @ flat)[:, :, 0]
            at = group.constant + moved.reshape(len(delta), *shape)
            inverse, logs, definite = invert_matrices(at)
            inside &= definite.all(axis=1)
            value = value + np.sum(slopes * at, axis=(1, 2, 3)) - logs @ weights
            pulls = slopes - weights[:, None, None] * inverse
            each = (flat @ pulls.reshape(len(delta), shape[0], -1, 1))[..., 0]
            for k in range(shape[0]):  # a column is of one block of a group, and of one entry
                pushed[:, group.columns[k]] += each[:, k]
        finite = np.isfinite(value) & np.isfinite(pushed).all(axis=1)
        return np.where(inside & finite, value, np.inf), np.where(finite[:, None], pushed, 0.0)

    def _trace_weight(self, block: Block) -> float:
        return self.weights[block.name] + 0.5 * (block.size + 1) * self.centred

    def prior_curvature(self, delta: Array, share: float = 0.0) -> Array:
        """Second derivatives of the prior per unit of the parameters, shape (n, n).

        At a model, mixed with a share of the reference. Those of a Wishart density at its mean are
        the inverse of its covariance.
        """
        out = np.zeros((len(delta), len(delta)))
        for block in self.feasible.blocks:
            if block.name in self.weights:
                at = (1.0 - share) * block.matrix(delta) + share * self.means[block.name]
                white = np.linalg.solve(at, block.basis) * self.unit[block.columns, None, None]
                curvature = np.einsum("iab,jba->ij", white, white)
                out[np.ix_(block.columns, block.columns)] += self._trace_weight(block) * curvature
        return out

    def value(self, delta: Array) -> float:
        """As `feasid.parameters.feasibility.cone.minimise` takes it, with reflected parameters."""
        return float(self.evaluate(np.where(self.nonnegative, np.abs(delta), delta)[None])[0][0])

    def derivatives(self, delta: Array) -> tuple[Array, Array]:
        """Gradient and an upper bound of the Hessian per unit of the parameters."""
        gradient = self.evaluate(np.where(self.nonnegative, np.abs(delta), delta)[None])[1][0]
        signs = np.where(self.nonnegative & (delta < 0), -1.0, 1.0)
        along = self.A * self.unit
        return signs * gradient * self.unit, along.T @ along + self.prior_curvature(delta)


def invert_matrices(matrices: Array) -> tuple[Array, Array, Mask]:
    """Inverses, logarithms of determinants, and which matrices are positive definite.

    Symmetric matrices (..., s, s), those that are not definite without a meaningful inverse. The
    sweep operator (Beaton 1964) on all at once: a third of the time of LAPACK one by one.
    """
    remainder, logs = matrices.copy(), np.zeros(matrices.shape[:-2])
    definite = np.ones(logs.shape, dtype=bool)
    for k in range(matrices.shape[-1]):
        pivot = remainder[..., k, k]
        definite &= pivot > 0
        pivot = np.where(definite, pivot, 1.0)
        logs += np.log(pivot)
        row = remainder[..., k, :] * definite[..., None]
        scaled = row / pivot[..., None]
        remainder -= row[..., :, None] * scaled[..., None, :]
        remainder[..., k, :] = remainder[..., :, k] = scaled
        remainder[..., k, k] = -1.0 / pivot
    return -remainder, logs, definite


class HamiltonianChains:
    """Chains of Hamiltonian Monte Carlo in the coordinates of a metric, all from one model."""

    def __init__(self, density: Density, rng: np.random.Generator) -> None:
        self.density, self.rng = density, rng
        # Chains begin at the most probable model, or one near it.
        terms = [(1.0, density)]
        mode = minimise(terms, density.start, np.diag(density.unit), ENOUGH, steps=MODE_STEPS).delta
        mode = np.where(density.nonnegative, np.abs(mode), mode)
        self.at = np.repeat(mode[None], CHAINS, axis=0)
        self.step, self.accepted = 0.1, 0.0
        self._use_metric(mode, 0.5)

    def _use_metric(self, delta: Array, share: float = 0.0) -> None:
        """Take the root of the Laplace covariance with the prior's curvature at a model."""
        density, unit = self.density, self.density.unit
        # Reflected parameters contribute their slope, too, which may be steep at zero.
        slope = np.maximum(density.evaluate(delta[None])[1][0] * unit, 0.0)
        bend = density.prior_curvature(delta, share) + np.diag((slope * density.nonnegative) ** 2)
        values, vectors = np.linalg.eigh(bend)
        prior = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        factor = np.linalg.qr(np.vstack([density.A * unit, prior]), mode="r")
        self.root = np.asarray(unit[:, None] * np.linalg.inv(factor))
        self.value, self.gradient = self._evaluate(self.at)

    @property
    def models(self) -> Array:
        """Where the chains are, shape (chains, n)."""
        return np.where(self.density.nonnegative, np.abs(self.at), self.at)

    def _evaluate(self, at: Array) -> tuple[Array, Array]:
        """Value and gradient along the metric's coordinates, mirrored where they must be."""
        mirrored = self.density.nonnegative & (at < 0)
        value, gradient = self.density.evaluate(np.where(mirrored, -at, at))
        return value, np.where(mirrored, -gradient, gradient) @ self.root

    def draw(self, count: int) -> Array:
        """Draws after warming up, shape (count, chains, n)."""
        self.advance(WARM_UP // 2, tune=True)
        self._use_metric(self.models.mean(axis=0))
        self.advance(WARM_UP - WARM_UP // 2, tune=True)
        out, accepted = np.empty((count, *self.at.shape)), 0.0
        for k in range(count):
            self.advance(SPACING)
            out[k] = self.models
            accepted += self.accepted / count
        self.accepted = accepted
        return out

    def advance(self, proposals: int, *, tune: bool = False) -> None:
        """Make this number of proposals in every chain."""
        total = 0.0
        for k in range(proposals):
            # Paths differ in length, or one of a whole period would end where it began.
            step = self.step * self.rng.uniform(0.6, 1.2)
            steps = max(1, round(PATH * self.rng.uniform(0.5, 1.2) / step))
            rate = self._propose_and_accept(step, steps)
            total += rate
            if tune and self.step < SHORTEST_STEP:
                raise InputError(
                    "the log determines so little of some bodies that chains do not mix: models "
                    "next to infeasible ones are as probable as others. Fit with a description "
                    "that has inertials, give the prior more weight (prior_weight=10), or record "
                    "a richer motion"
                )
            # Corrections shrink, so that the step settles.
            if tune:
                self.step = min(PATH, self.step * np.exp((rate - TARGET) / np.sqrt(1.0 + k)))
        self.accepted = total / max(proposals, 1)

    @np.errstate(over="ignore", invalid="ignore")  # of a path that diverges, which is refused
    def _propose_and_accept(self, step: float, steps: int) -> float:
        """One leapfrog path, accepted by Metropolis' rule; returns the mean acceptance."""
        momentum = self.rng.standard_normal(self.at.shape)
        before = self.value + 0.5 * np.sum(momentum**2, axis=1)
        at, gradient, value = self.at, self.gradient, self.value
        alive = np.ones(len(at), dtype=bool)
        normals, constants = self.density.reflecting_constraints
        lengths = np.linalg.norm(self.root.T @ normals, axis=0)
        for _ in range(steps):
            momentum = momentum - 0.5 * step * gradient
            at = at + step * momentum @ self.root.T
            if len(constants):
                # Beyond a wall the step is reflected, which can be reversed.
                mirrored = np.where(self.density.nonnegative, np.abs(at), at)
                distances = (mirrored @ normals + constants) / lengths
                worst = np.argmin(distances, axis=1)
                beyond = np.flatnonzero(distances[np.arange(len(at)), worst] <= 0)
                sides = np.where(self.density.nonnegative & (at[beyond] < 0), -1.0, 1.0)
                normal = (sides * normals[:, worst[beyond]].T) @ self.root
                normal /= np.linalg.norm(normal, axis=1)[:, None]
                along = np.sum(momentum[beyond] * normal, axis=1)[:, None]
                momentum[beyond] -= 2.0 * along * normal
                at[beyond] += step * momentum[beyond] @ self.root.T
            value, gradient = self._evaluate(at)
            # A path that leaves the set is refused as a whole, wherever it ends.
            alive &= np.isfinite(value)
            momentum = momentum - 0.5 * step * gradient
        after = np.where(alive, value, np.inf) + 0.5 * np.sum(momentum**2, axis=1)
        chance = np.exp(np.minimum(before - after, 0.0))
        accepted = self.rng.uniform(size=len(at)) < chance
        self.at = np.where(accepted[:, None], at, self.at)
        self.gradient = np.where(accepted[:, None], gradient, self.gradient)
        self.value = np.where(accepted, value, self.value)
        return float(chance.mean())


def verify_draws(feasible: FeasibleSet, parameters: Array) -> Array:
    """The draws, each checked in exact arithmetic.

    Raises SolverError: a draw breaks a constraint.
    """
    for k, delta in enumerate(parameters):
        if broken := feasible.violations(delta):
            text = f"draw {k} breaks {', '.join(broken)} in exact arithmetic: take another seed"
            raise SolverError(text, attempts=())
    return parameters


@dataclass(frozen=True, eq=False)
class Posterior:
    """Probability of the parameters, given a log and a prior; see the module."""

    #: Known and tied parameters included; what follows is about the free ones.
    feasible: FeasibleSet
    #: Shape (m, n): whitened equations with the log's mistakes marginalised, and the prior's rows.
    A: Array
    b: Array  #: Shape (m,): see `A`.
    unit: Array  #: Shape (n,): the size of one unit of each parameter, and the fit.
    start: Array  #: See `unit`.
    reference: Array  #: Shape (all parameters,): the prior's.
    weights: Array  #: Shape (k,): of the prior, per inertia block.
    centred: bool  #: See `Density`.

    @classmethod
    def from_estimate(
        cls,
        problem: EstimationProblem,
        equations: Reduced,
        estimate: Estimate,
        given: float | None = None,
    ) -> Posterior:
        """The density around an estimate.

        A weight of the prior that the caller chose is `given`; else the description is believed
        no more than the fit's covariance believes it, and bodies that the log contradicts less.
        """
        noise, free = estimate.noise, problem.reduce(estimate.delta)
        weight = estimate.prior_weight
        objective, divergence = problem.problem(*noise.whitened_triangle(equations)[:2], weight)
        filtered = noise.as_filtered(equations).whitened_triangle(equations)[:2]
        least = min(weight, estimate.evidence_weight, COVARIANCE_WEIGHT)
        rows, prior = problem.problem(*filtered, least if given is None else given)
        A, b, count, unit = rows.A, rows.b, len(filtered[1]), objective.unit
        # Mistakes that all rows share move b by B z; their score A'B is known from the estimate.
        score = objective.score(free, divergence, estimate.systematic[problem.elimination.roots])
        B = np.linalg.lstsq((A[:count] * unit).T, score, rcond=SEEN)[0]
        stacked = np.linalg.qr(np.vstack([np.eye(len(B)), B.T]), mode="r")
        factor = np.asarray(stacked).T  # of I + B B', which is not formed: B may be large
        both = np.c_[A, b]
        both[:count] = np.linalg.solve(factor, both[:count])
        entropic = problem.prior.is_entropic
        bodies = objective.body_prior_weights(free, weight) if entropic and given is None else {}
        blocks = problem.elimination.inside.inertial.blocks
        weights = np.array([min(bodies.get(b.name, prior), prior) for b in blocks])
        triangle = np.asarray(np.linalg.qr(both, mode="r"))
        numbers = triangle[:, :-1], triangle[:, -1], unit, free, problem.reference, weights
        return cls(problem.feasible, *numbers, entropic)

    def draw(self, count: int, seed: int, scale: float = 1.0) -> tuple[Array, float, Array]:
        """Standard parameters (count, n), acceptance, and effective draws per parameter (n,)."""
        elimination = Elimination.from_equalities(self.feasible).require_consistent()
        inside = elimination.inside
        names = [b.name for b in inside.inertial.blocks]
        references = {b.name: b.matrix(self.reference) for b in self.feasible.blocks}
        weights = dict(zip(names, self.weights.tolist(), strict=True))
        rows = self.A / scale, self.b / scale
        density = Density(*rows, inside, references, weights, self.start, self.unit, self.centred)
        if not np.isfinite(density.value(self.start)):
            raise InputError("the fit lies on a limit, from where no robots can be drawn: relax it")
        rng = np.random.default_rng(seed)
        chains = HamiltonianChains(density, rng)
        drawn = chains.draw(max(LEAST_DRAWS, -(-count // CHAINS)))
        # Neighbours in a chain are alike: any part of the draws is to have all chains in it.
        selected = rng.permutation(drawn.shape[0] * drawn.shape[1])[:count]
        free = drawn.reshape(-1, drawn.shape[2])[selected]
        verified = verify_draws(self.feasible, np.array([elimination.expand(z) for z in free]))
        # Effective number of independent draws per parameter: from the autocorrelation about the
        # mean of all chains, summed over Geyer's (1992) initial positive pairs.
        draws = drawn @ elimination.T.T
        length, every, _ = draws.shape
        centred = draws - draws.mean(axis=(0, 1))
        # Twice the length: else the end of a chain would be correlated with its beginning.
        spectrum = np.fft.rfft(centred, 2 * length, axis=0)
        lagged = np.fft.irfft((spectrum * spectrum.conj()).mean(axis=1), axis=0)[:length].real
        lagged /= (length - np.arange(length))[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            rho = lagged / np.where(lagged[0] > 0, lagged[0], np.nan)
        middle = length // 2
        pairs = rho[0 : 2 * middle : 2] + rho[1 : 2 * middle : 2]
        pairs = np.where(np.cumsum(pairs < 0, axis=0) > 0, 0.0, pairs)
        time = 2.0 * np.minimum.accumulate(pairs, axis=0).sum(axis=0) - 1.0
        effective = np.minimum(length * every / np.maximum(time, 1.0), count)
        return verified, chains.accepted, effective
