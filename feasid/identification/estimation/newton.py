"""The entropic estimate of one log: its minimiser, its evidence and its covariance.

    J(delta) = |R K delta - rho|^2 / 2 + weight * sum_k (tr M_k - log det M_k - 4)

See `feasid.identification.estimation.priors`, whose priors state it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import multigammaln

from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.parameters.feasibility import cone as cones
from feasid.parameters.feasibility.constraints.sets import FeasibleSet

SHRINKAGE = 4.0
"""Weight of the common evidence, in numbers of parameters, relative to that of the body itself."""

BARRIERS = (1.0, 1e-2, 1e-4, 1e-6, 1e-8)
"""Decreasing weights of the other constraints' logarithms: the last one costs at most this per
constraint, in units of the whitened residual."""

WEAK = tuple(10.0**-k for k in range(9))
"""... with a divergence below `WEAKEST`: bodies then come as close to their bounds as the rest."""
WEAKEST = 1e-3

DECREMENT = 1e-10  #: Newton decrement, squared and halved, at which a minimum counts as reached.

PASSING = 1.0
"""The decrement for intermediate minima, in units of the logarithms' weight, where Newton's method
converges quadratically."""

FAR = 150
"""Newton steps after which a start counts as too far away (fits of packaged logs take up to 126)
..."""

STRONGER = (1e8, 1e7, 1e6, 1e5, 1e4, 1e3, 100.0, 10.0)
"""... and the factors on the divergence's weight that are passed on the way from there."""

ROUGH = 0.1  #: The weight of these logarithms if few digits are needed.
NEARBY = 1e-5  #: ... and if four are, as for noise and evidence.
RESUMED = (1e-4, 1e-6, BARRIERS[-1])  #: Those from the minimum of similar equations on.

UNSEEN = 1e-14
"""Relative ridge on second derivatives, for joint terms that the log does not see at all."""

SEEN = 1e-12
"""Least eigenvalue of second derivatives, in units of their diagonal, that is not rounding."""

GRID = tuple(float(w) for w in 10.0 ** np.arange(-2.0, 3.25, 0.25))
"""Weights whose evidence is compared."""


@dataclass(frozen=True, eq=False)
class EntropicProblem:
    """The problem: whitened rows, a feasible set, and the reference."""

    A: Array  #: Shape (m, n): whitened equations of the standard parameters, ``R K`` and ``rho``.
    b: Array  #: Shape (m,): see `A`.
    feasible: FeasibleSet  #: Without equalities.
    reference: Array  #: Shape (n,): its inertia blocks positive definite.
    unit: Array  #: Shape (n,): size of one unit of each parameter.
    alike: EntropicProblem | None = None  #: One of other equations, with which it shares the rest.

    @cached_property
    def _directions(self) -> Array:
        """One unit of each parameter."""
        return np.diag(self.unit)

    @cached_property
    def _squares(self) -> cones.Quadratic:
        """The equations."""
        return cones.Quadratic(self.A, self.b, self._directions)

    @cached_property
    def _bodies(self) -> cones.LogBarrier:
        """The divergence of the inertia blocks."""
        only = self.feasible.inertial
        return cones.LogBarrier.for_divergence(only, self.reference, self._directions)

    @cached_property
    def _others(self) -> cones.LogBarrier:
        """Logarithms of everything else."""
        blocks = tuple(b for b in self.feasible.blocks if not b.inertial)
        only = replace(self.feasible, blocks=blocks)
        return cones.LogBarrier.for_divergence(only, self.reference, self._directions)

    def divergence(self, delta: Array) -> float:
        """``sum_k (tr M_k - log det M_k - size_k)``."""
        return self._bodies.value(delta) - self._bodies.value(self.reference)

    def cost(self, delta: Array, weight: float) -> float:
        """J."""
        return self._squares.value(delta) + weight * self.divergence(delta)

    def minimise(self, start: Array, weight: float) -> cones.Minimum:
        """The minimum of J over the feasible set, from a strictly feasible start."""
        return self.path(start, weight)[-1]

    def with_rows(self, A: Array, b: Array) -> EntropicProblem:
        """The same problem with other equations; parts that do not depend on them are kept."""
        other = replace(self, A=A, b=b, alike=self)
        vars(other).update(_directions=self._directions, _bodies=self._bodies, _others=self._others)
        return other

    def resume(self, start: Array, weight: float, steps: int) -> tuple[cones.Minimum, Array]:
        """`minimise` from where similar equations passed, and one Newton step beyond.

        With at most so many Newton steps; if they do not suffice, the last point is feasible. Also
        returned is the point that was passed, away from the constraints, to resume from there.
        """
        # Without other constraints their weight changes nothing: one minimum is enough.
        barriers = RESUMED if self.logarithms else RESUMED[-1:]
        path, steps_left = [cones.Minimum(start, np.inf, 0, "unfinished")], steps
        for other in barriers:
            enough = DECREMENT if other == barriers[-1] else max(PASSING * other, DECREMENT)
            point, scaled = path[-1].delta, other / cones.OTHER_WEIGHT
            path.append(self._tried(point, weight, scaled, enough, steps_left))
            steps_left -= path[-1].steps
        resumable, minimum = path[1].delta, path[-1]
        if not minimum.settled:
            return minimum, resumable
        delta, terms = minimum.delta, self._terms(weight, barriers[-1] / cones.OTHER_WEIGHT)
        parts = [(w, *term.derivatives(delta)) for w, term in terms]
        gradient = sum(w * g for w, g, _ in parts)
        hessian = np.asarray(sum(w * h for w, _, h in parts))
        polished = delta + self.unit * cones.newton_step(hessian, -np.asarray(gradient))
        # A full step may leave the feasible set or overshoot where the minimum was not quite there.
        before, after = (sum(w * t.value(at) for w, t in terms) for at in (delta, polished))
        better = after <= before + DECREMENT
        return replace(minimum, delta=polished) if better else minimum, resumable

    @property
    def has_curved_limits(self) -> bool:
        """Whether a constraint other than of bodies is curved, as ellipsoids for centres of mass.

        Along it Newton's steps are as short as the distance to it: from one minimum to that of
        similar equations take hundreds, and few around, from where `BARRIERS` begin.
        """
        return any(not b.inertial for b in self.feasible.blocks)

    @property
    def logarithms(self) -> int:
        """Number of other constraints' logarithms; each costs its weight at most."""
        return self._others.barrier_parameter

    def path(
        self,
        start: Array,
        weight: float,
        barriers: tuple[float, ...] | None = None,
        enough: float = 0.0,
    ) -> list[cones.Minimum]:
        """Minima for these weights of other constraints' logarithms; the last is that of J.

        With a weak prior bodies weigh no less. The gap includes the cost of the logarithms. Without
        other constraints, and with a prior that is not weak, there is only one minimum. `enough`:
        decrement of the last one, `DECREMENT` at least.
        """
        if not (np.isfinite(weight) and weight > 0):
            raise InputError(f"the prior's weight must be a positive number, not {weight!r}")
        weak = weight < WEAKEST
        barriers = barriers or (WEAK if weak else BARRIERS)
        # A weak prior passes stronger ones even without other constraints: `bodies` below.
        *passed, last = barriers if self.logarithms or weak else barriers[-1:]
        minima, point = [], np.array(start, dtype=np.float64)
        for other in passed:
            passing, bodies = max(PASSING * other, DECREMENT), max(weight, weak * other)
            minima.append(self._newton(point, bodies, other / cones.OTHER_WEIGHT, passing))
            point = minima[-1].delta
        minimum = self._newton(point, weight, last / cones.OTHER_WEIGHT, max(enough, DECREMENT))
        return [*minima, replace(minimum, gap=minimum.gap + last * self.logarithms)]

    def approach(self, start: Array, weight: float, decrement: float, steps: int) -> Array:
        """A model close to the minimiser: after so many Newton steps, or within the decrement."""
        return self._tried(start, weight, ROUGH / cones.OTHER_WEIGHT, decrement, steps).delta

    def _terms(self, weight: float, other: float) -> list[tuple[float, cones.ConvexFunction]]:
        """The cost: logarithms of everything else, equations, and the divergence of bodies."""
        return [(other, self._others), (1.0, self._squares), (weight, self._bodies)]

    def _newton(
        self, delta: Array, weight: float, other: float, decrement: float = DECREMENT
    ) -> cones.Minimum:
        """The minimum of the cost, from a point strictly inside.

        From a distant start Newton's steps are short if the weight of the divergence is small;
        minimisers of larger weights are then used as intermediate starts.
        """
        minimum = self._tried(delta, weight, other, decrement, FAR)
        if minimum.settled:
            return minimum
        for factor in STRONGER:
            passing = max(PASSING * factor * weight, decrement)
            minimum = self._tried(minimum.delta, factor * weight, other, passing, FAR)
        return self._tried(minimum.delta, weight, other, decrement, cones.MAX_NEWTON_STEPS)

    def _tried(
        self, delta: Array, weight: float, other: float, decrement: float, steps: int
    ) -> cones.Minimum:
        terms = self._terms(weight, other)
        return cones.minimise(terms, delta, self._directions, decrement, steps=steps)

    def hessian(self, delta: Array) -> Array:
        """Second derivatives of the divergence in units of the parameters, shape (n, n)."""
        return self._bodies.derivatives(delta)[1]

    def covariance(self, delta: Array, weight: float, believed: float) -> Array:
        """Covariance of the minimiser delta, shape (n, n).

        ``H^-1 (A'A + sum_k weight^2 / believed_k D_k) H^-1`` with ``H = A'A + weight D``: noise of
        unit variance moves the minimum by the first term; the second is how far the truth lies
        from the reference, where `believed` is the weight of the density that it is drawn from at
        most, and less for bodies that say so; see `body_prior_weights`. D is taken halfway between
        delta and the reference: at a minimum close to an impossible body it is so large that only
        models even closer to it would seem likely. Bounds are not counted, which makes standard
        errors next to an active bound too large.
        """
        # Reshaped, so that the sum over no body at all is a matrix, too.
        each = self._body_curvatures(delta)
        curvatures = np.array([*each.values()]).reshape(-1, *self._squares.hessian.shape)
        H = self._squares.hessian + weight * np.sum(curvatures, axis=0)
        weights = np.minimum([*self.body_prior_weights(delta, weight, each).values()], believed)
        drawn = np.einsum("k,kij->ij", weight**2 / weights, curvatures)
        return self._sandwich(H, self._squares.hessian + drawn)

    def _body_curvatures(self, delta: Array) -> dict[str, Array]:
        """Second derivatives of each body's divergence halfway between delta and the reference."""
        middle = 0.5 * (delta + self.reference)
        return {name: cone.derivatives(middle)[1] for name, cone in self.each_body.items()}

    def body_prior_weights(
        self, delta: Array, weight: float, each: dict[str, Array] | None = None
    ) -> dict[str, float]:
        """Weight of the density that each body's minimiser looks drawn from.

        ``(g + s) / (2 d + s / weight)``, d the body's divergence from the reference and g how many
        of its parameters the equations tell: MacKay's estimate of a precision (1992), kept near
        the common weight by `SHRINKAGE` s.
        """
        curvatures = self._body_curvatures(delta) if each is None else each
        H = _regular(self._squares.hessian + weight * np.sum([*curvatures.values()], axis=0))
        inverse = np.linalg.inv(H)
        out = {}
        for name, D in curvatures.items():
            cone = self.each_body[name]
            apart = cone.value(delta) - cone.value(self.reference)
            # The trace of weight D H^-1 is how many of the parameters the prior holds instead.
            count = max(np.count_nonzero(np.diag(D)) - weight * float(np.sum(inverse * D)), 0.0)
            out[name] = (count + SHRINKAGE) / (2.0 * max(apart, 0.0) + SHRINKAGE / weight)
        return out

    @cached_property
    def each_body(self) -> dict[str, cones.LogBarrier]:
        """The divergence of each inertia block, by its name."""
        if self.alike is not None:  # most problems are only minimised, which needs their sum alone
            return self.alike.each_body
        return {
            b.name: cones.LogBarrier.for_divergence(
                replace(self.feasible, blocks=(b,), linear=()), self.reference, self._directions
            )
            for b in self.feasible.blocks
            if b.inertial
        }

    def _sandwich(self, H: Array, middle: Array) -> Array:
        """``H^-1 middle H^-1`` in SI units; the variance of what H does not see is large.

        In the eigenvectors of H, so that no rounding error makes it indefinite.
        """
        diagonal = np.diag(H)
        size = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        values, vectors = np.linalg.eigh(H / np.outer(size, size))
        unseen = values < SEEN
        inner = vectors.T @ (middle / np.outer(size, size)) @ vectors
        inner[unseen] = inner[:, unseen] = 0.0
        inner[unseen, unseen] = values[unseen] = SEEN
        factor = vectors / values * (self.unit / size)[:, None]
        covariance = factor @ inner @ factor.T
        # Rounding makes entries differ from their mirror images.
        return np.asarray(0.5 * (covariance + covariance.T))

    def response(self, delta: Array, weight: float, change: Array) -> Array:
        """How the minimiser delta moves when the first entries of b do, shape (n,)."""
        H = _regular(self._squares.hessian + weight * self.hessian(delta))
        pull = (self.A[: len(change)] * self.unit).T @ change
        return np.asarray(self.unit * np.linalg.solve(H, pull))

    def score(self, delta: Array, weight: float, moved: Array) -> Array:
        """Gradients that move the minimiser delta by `moved` (n, k), per unit of the parameters,
        (n, k).
        """
        H = self._squares.hessian + weight * self.hessian(delta)
        return np.asarray(H @ (moved / self.unit[:, None]))

    def unit_noise_covariance(
        self, delta: Array, weight: float, barrier: float = BARRIERS[-1]
    ) -> Array:
        """``H^-1`` in SI units, shape (n, n): its trace against A'A counts the noise followed.

        H has the logarithms of other constraints with the weight with which delta was sought: at an
        active one the minimum cannot move.
        """
        H = self._squares.hessian + weight * self.hessian(delta)
        if self.logarithms:
            H = H + barrier / cones.OTHER_WEIGHT * self._others.derivatives(delta)[1]
        return self._sandwich(H, H)

    def evidence(self, delta: Array, weight: float) -> float:
        """Laplace's approximation of log p(data | weight) at its minimiser, up to a constant.

        ``-J - log det(H) / 2 - sum_k log Z(weight)``, with Z the normaliser of a Wishart density
        in four dimensions, ``Gamma_4(w + 5/2) w^(-4 (w + 5/2)) e^(4 w)``.
        """
        curvature = self._squares.hessian
        ridge = UNSEEN * np.diag(np.diag(curvature))
        _, logdet = np.linalg.slogdet(curvature + weight * self.hessian(delta) + ridge)
        normaliser = 0.0
        for p in (b.size for b in self.feasible.blocks if b.inertial):
            a = weight + 0.5 * (p + 1)
            normaliser += multigammaln(a, p) - p * a * np.log(weight) + p * weight
        return -self.cost(delta, weight) - 0.5 * float(logdet) - normaliser

    def maximise_evidence(self, start: Array) -> tuple[float, tuple[tuple[float, float], ...]]:
        """The weight of `GRID` with the largest evidence, and those that were tried with theirs.

        Every second one from the strongest on, until the evidence has fallen by a factor e, then
        neighbours of the best: the curves of real logs have one peak.
        """
        minima, curve = dict[int, Array](), dict[int, float]()

        def weigh(place: int, near: Array) -> None:
            barriers = (*BARRIERS[: 3 * self.has_curved_limits], NEARBY)
            path = self.path(near, GRID[place], barriers, NEARBY)
            minima[place] = path[0].delta
            curve[place] = self.evidence(path[-1].delta, GRID[place])

        last = best = len(GRID) - 1
        weigh(last, start)
        while last > 0 and curve[last] > curve[best] - 1.0:
            weigh(last - 2, minima[last])
            last -= 2
            best = max(curve, key=lambda place: curve[place])
        for place in {best - 1, best + 1} & {*range(len(GRID))}:
            weigh(place, minima[best])
        points = [(GRID[place], curve[place]) for place in sorted(curve)]
        return max(points, key=lambda point: point[1])[0], tuple(points)


def _regular(H: Array) -> Array:
    """H with a small addition to its diagonal, and ones for parameters that no equation
    contains.
    """
    diagonal = np.diag(H)
    return np.asarray(H + np.diag(np.where(diagonal > 0, UNSEEN * diagonal, 1.0)))
