"""Global search: random starts, perturbations of the best, and descents through sharper problems.

Every descent is SciPy's BFGS on objective plus barrier, in stages: the smooth approximation of the
condition number gets a larger exponent, and the barrier comes closer to the limits. Random starts
first see friction that changes sign slowly, which removes most local minima, and keep well away
from limits. The best are perturbed closer to their limits, in turns with further starts: some
objectives gain by one, others by the other. Finally the best few are brought to their limits.

In a perturbation a joint's motion may begin at another time, run backwards, or come from another
good motion; it is scaled to come as close to its limits as the one it replaces.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from feasid.applications.excitation.problem import LimitBarrier, Objective, Problem
from feasid.core.arrays import Array

Draw = Callable[[np.random.Generator], Array]  #: A random start from a generator.
PERTURBATION_SIZES = (0.03, 0.5)  #: Sizes of random changes, in units of the limits.
SIMULTANEOUS_SHARE = 0.3  #: Share of the size when all joints are changed at once.
LIMIT_SHARE = 0.97  #: Factor on the use of limits when a joint gets another motion.

EXCHANGE_TRIALS = 10
"""Number of exchanges of one joint's motion that are compared; a descent begins from the best."""


@dataclass(frozen=True, eq=False)
class Perturbations:
    """Perturbations of the motions of a problem."""

    problem: Problem
    draw: Draw

    @cached_property
    def _inverse_position_matrices(self) -> list[Array]:
        """From a joint's positions back to its unknowns."""
        positions = self.problem.basis.matrices(self.problem.limit_grid)[0]
        return [np.linalg.pinv(positions @ s) for s in self.problem.coordinates.span]

    def perturb(
        self, z: Array, others: Sequence[Array], rng: np.random.Generator
    ) -> Iterator[Array]:
        """One random change of all joints or of one, or several exchanges of a joint's motion."""
        shape = self.problem.coordinates.shape
        old = z.reshape(shape)
        joint = int(rng.integers(shape[0]))
        low, high = np.log(PERTURBATION_SIZES)
        size = float(np.exp(rng.uniform(low, high)))
        # Of five, two change all joints, one changes a joint, one draws it, one exchanges it.
        kind = int(rng.integers(5))
        if kind < 2:
            yield (old + SIMULTANEOUS_SHARE * size * rng.standard_normal(shape)).ravel()
            return
        for _ in range(EXCHANGE_TRIALS if kind > 2 else 1):
            new = old.copy()
            if kind == 2:
                new[joint] += size * rng.standard_normal(shape[1])
            elif kind == 3:
                motion = self.draw(rng).reshape(shape)[joint]
                new[joint] = self._fit_into_limits(joint, motion, old[joint])
            else:
                other = others[int(rng.integers(len(others)))].reshape(shape)[joint]
                motion = self.shift_in_time(joint, other, rng.random(), back=rng.random() < 0.5)
                new[joint] = self._fit_into_limits(joint, motion, old[joint])
            yield new.ravel()

    def shift_in_time(self, joint: int, z: Array, share: float, *, back: bool) -> Array:
        """A joint's motion begun at this share of the period and, maybe, run backwards; the nearest
        one that the family has.
        """
        t = self.problem.limit_grid + share * self.problem.basis.period
        positions = self.problem.basis.matrices(-t if back else t)[0]
        span = self.problem.coordinates.span[joint]
        return np.asarray(self._inverse_position_matrices[joint] @ (positions @ (span @ z)))

    def _fit_into_limits(self, joint: int, z: Array, like: Array) -> Array:
        usage, like_usage = (self.problem.limit_usage(joint, x) for x in (z, like))
        return np.asarray(z * (LIMIT_SHARE * like_usage / max(usage, 1e-9)))


Family = Callable[[float], Objective]  #: The objective for an exponent of smoothing; picklable.
Progress = Callable[[float, float], None]  #: Called with seconds so far and the smallest value.


@dataclass(frozen=True)
class DescentStage:
    """One descent: exponent of the objective, the barrier, and at most so many iterations."""

    power: float
    barrier: LimitBarrier
    iterations: int


COARSE_STAGES = (
    DescentStage(2, LimitBarrier(1e-1, 5e-2), 40),
    DescentStage(4, LimitBarrier(3e-2, 3e-2), 40),
    DescentStage(16, LimitBarrier(1e-2, 1e-2), 60),
)
LAST_STAGES = (
    DescentStage(256, LimitBarrier(1e-3, 1e-4), 100),
    DescentStage(512, LimitBarrier(3e-4, 3e-5), 150),
    DescentStage(1024, LimitBarrier(1e-4, 1e-5), 200),
)
"""Barriers this steep keep limits to a part in ten thousand, and cost next to nothing."""

NO_BARRIER = LimitBarrier(0.0, 1.0)

WIDE_STAGES = (
    DescentStage(64, LimitBarrier(1e-2, 2e-3), 80),
    DescentStage(256, LimitBarrier(1e-2, 1e-3), 100),
)
NARROW_STAGES = (
    DescentStage(64, LimitBarrier(3e-3, 3e-3), 50),
    DescentStage(256, LimitBarrier(1e-3, 1e-3), 120),
)
"""With a heavy barrier there are fewer local minima; a light one hardly changes the ranking."""

START_TIME_SHARE, PERTURBATION_TIME_SHARE = 0.25, 0.9
"""Shares of the time at which the first random starts end, and at which perturbations end."""

PRIOR_EVALUATIONS, MIN_GAIN = 500, 1e-4
"""Initial guess of the evaluations per gain of perturbations and of further starts, and the
decrease of the objective that counts as a gain."""

DEFAULT_STARTS, POOL_SIZE, ARCHIVE_SIZE = 6, 3, 12
"""Random starts when the number of perturbations is given, how many of the best are perturbed, and
how many are kept."""

SMOOTHING_RANGE = (1.0, 12.0)
"""How much wider a start's smoothed sign of friction is than usual: with the widest a sign changes
over the whole range of velocities, which removes most local minima."""

LEARNT_SHARE, SMOOTHING_SPREAD = 0.7, 0.2
"""Share of the starts whose smoothing is drawn near that of one of the best, and the standard
deviation of its logarithm."""

SAME_VALUE_TOLERANCE = 3e-3  #: Motions whose values differ by less count as the same local minimum.

ABANDON_MARGIN = 0.015
"""A perturbed motion that is worse than the best by this after its first stage is given up."""


class TimeIsUpError(Exception):
    """The deadline passed within a descent."""


@dataclass
class SearchClock:
    """Time since the search began; raises when asked after the deadline."""

    limit: float
    now: Callable[[], float] = time.monotonic
    begun: float = field(init=False)

    def __post_init__(self) -> None:
        self.begun = self.now()

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return self.now() - self.begun

    def check_deadline(self, share: float = 1.0) -> None:
        """Raise when this share of the time is over."""
        if self.seconds > share * self.limit:
            raise TimeIsUpError


@dataclass(eq=False)
class SearchPoint:
    """A motion, its value in the last stage it went through, and BFGS's inverse Hessian there.

    ``smoothing`` is how much wider friction's smoothed sign was when the descent started.
    """

    value: float
    z: Array
    hessian: Array | None = None
    smoothing: float = 1.0


@dataclass(eq=False)
class _SearchStrategy:
    """A way to continue the search, its gains and its evaluations so far."""

    go: Callable[[], None]
    gains: int = 1
    evaluations: int = PRIOR_EVALUATIONS


@dataclass(eq=False)
class Search:
    """Search for motions; `candidates` returns the best so far whenever it is interrupted."""

    problem: Problem
    family: Family
    draw: Draw
    rng: np.random.Generator
    clock: SearchClock
    #: Largest number of perturbations and further starts; None for as many as there is time for.
    rounds: int | None
    #: Random starts; None for as many as there is time for, with `rounds` for six.
    starts: int | None
    progress: Progress
    pool: list[SearchPoint] = field(default_factory=list)
    archive: list[SearchPoint] = field(default_factory=list)
    final: Array | None = None
    value: float = np.inf
    ending: bool = False
    interrupted: bool = False
    descents: int = 0
    evaluations: int = 0

    def __post_init__(self) -> None:
        self.perturbations = Perturbations(self.problem, self.draw)

    def run(self) -> None:
        """Search until the time is over or all rounds are done."""
        try:
            for part in (self._random_starts, self._improve_best, self._refine_best):
                with suppress(TimeIsUpError):
                    part()
        except KeyboardInterrupt:
            self.interrupted = True

    def candidates(self) -> list[Array]:
        """Candidates for the result, the best first."""
        final = [] if self.final is None else [self.final]
        return [*final, *(c.z for c in self._best_first())]

    def _random_starts(self) -> None:
        starts = DEFAULT_STARTS if self.starts is None and self.rounds is not None else self.starts
        for _ in count() if starts is None else range(starts):
            first = not self.archive
            if not first:
                self.clock.check_deadline(START_TIME_SHARE)
            # An interruption must find a motion: the first start is kept before it is finished.
            new = self._descend_from_random(keep=first)
            self.pool = []
            self.archive = sorted([*self.archive, new], key=lambda c: c.value)[:ARCHIVE_SIZE]
            self._report()

    def _descend_from_random(self, *, keep: bool) -> SearchPoint:
        """A descent from a random motion, first with smoother friction, then as usual."""
        problem, stages = self.problem, COARSE_STAGES + WIDE_STAGES
        low, high = np.log(SMOOTHING_RANGE)
        blur = self.rng.uniform(low, high)
        if len(self.archive) > POOL_SIZE and self.rng.random() < LEARNT_SHARE:
            like = self.archive[self.rng.integers(POOL_SIZE)].smoothing  # that of a good start
            blur = np.clip(np.log(like) + SMOOTHING_SPREAD * self.rng.standard_normal(), low, high)
        blur = float(np.exp(blur))
        self.problem = problem.with_smoother_friction(blur)
        try:
            rough = self._descend(SearchPoint(np.inf, self.draw(self.rng)), stages, keep=keep)
        finally:
            self.problem = problem
        return replace(self._descend(rough, stages[-1:], keep=keep), smoothing=blur)

    def _improve_best(self) -> None:
        """Bring the best starts closer to their limits, then perturb the best of these."""
        if self.rounds == 0 or not self.archive:
            return
        fresh: list[SearchPoint] = []
        with suppress(TimeIsUpError):
            for start in self._best_first()[: 2 * POOL_SIZE]:
                fresh.append(self._descend(start, NARROW_STAGES, keep=not fresh))
        self.pool = sorted(fresh, key=lambda c: c.value)[:POOL_SIZE] or self.pool
        steps = self._perturb_best, self._descend_from_another_start
        ways = [_SearchStrategy(step) for step in steps]
        for _ in count() if self.rounds is None else range(self.rounds):
            # What has gained most for its cost so far.
            way = max(ways, key=lambda w: w.gains / w.evaluations)
            value, evaluations = self.pool[0].value, self.evaluations
            way.go()
            way.gains += self.pool[0].value < value - MIN_GAIN
            way.evaluations += self.evaluations - evaluations

    def _descend_from_another_start(self) -> None:
        """Descend from another random start to the stages at which perturbations begin."""
        self._keep_best(self._descend(self._descend_from_random(keep=False), NARROW_STAGES))

    def _best_first(self) -> list[SearchPoint]:
        """The pool, then the archive, whose values hold ten times as much of the barrier, then what
        was interrupted.
        """
        pool = sorted((c for c in self.pool if np.isfinite(c.value)), key=lambda c: c.value)
        return [*pool, *self.archive, *(c for c in self.pool if not np.isfinite(c.value))]

    def _perturb_best(self) -> None:
        """Perturb one of the best and descend; stop early if the result stays worse."""
        # Mostly the best, at times the second or third.
        parent = self.pool[min(int(self.rng.exponential(0.7)), len(self.pool) - 1)]
        others = [c.z for c in (*self.pool, *self.archive)]
        changed = list(self.perturbations.perturb(parent.z, others, self.rng))
        stage = NARROW_STAGES[0]

        def value_of(z: Array) -> float:
            return self.problem(z, self.family(stage.power), stage.barrier)[0]

        if len(changed) > 1:
            changed.sort(key=value_of)
        start = SearchPoint(np.inf, changed[0], parent.hessian)
        descended = self._descend(start, NARROW_STAGES[:1])
        if descended.value < value_of(self.pool[0].z) + ABANDON_MARGIN:
            self._keep_best(self._descend(descended, NARROW_STAGES[1:]))

    def _keep_best(self, new: SearchPoint) -> None:
        """Keep the best few that differ."""
        different = [c for c in self.pool if abs(c.value - new.value) > SAME_VALUE_TOLERANCE]
        same = [c for c in self.pool if abs(c.value - new.value) <= SAME_VALUE_TOLERANCE]
        lowest = min([*same, new], key=lambda c: c.value)
        self.pool = sorted([*different, lowest], key=lambda c: c.value)[:POOL_SIZE]
        self._report()

    def _report(self) -> None:
        """Report the best motion without its barrier; it is kept: callers may interrupt."""
        best, objective = self._best_first()[0], self.family(LAST_STAGES[-1].power)
        self.progress(self.clock.seconds, self.problem(best.z, objective, NO_BARRIER)[0])

    def _refine_best(self) -> None:
        """Bring the best motions inside their limits on a finer grid, with steeper friction."""
        candidates = self._best_first()
        self.problem = self.problem.with_finer_grid()
        self.ending = True
        for start in candidates[:POOL_SIZE]:
            # An interruption must find a motion here, too.
            self.final = start.z if self.final is None else self.final
            last = self._descend(start, LAST_STAGES, keep=self.value == np.inf)
            if last.value < self.value:
                self.value, self.final = last.value, last.z

    def _descend(
        self, start: SearchPoint, stages: tuple[DescentStage, ...], *, keep: bool = False
    ) -> SearchPoint:
        """Descend through these stages; with `keep` the result survives an interruption.

        Stages differ little, so that each begins with the inverse Hessian of the one before.
        """
        at = start
        self.descents += 1
        share = 1.0 if self.ending else PERTURBATION_TIME_SHARE
        for stage in stages:
            objective = self.family(stage.power)

            def evaluate(
                x: Array, objective: Objective = objective, stage: DescentStage = stage
            ) -> tuple[float, Array]:
                self.clock.check_deadline(share)
                self.evaluations += 1
                return self.problem(x, objective, stage.barrier)

            def keep_iterate(intermediate_result: OptimizeResult) -> None:
                x = np.array(intermediate_result.x)
                if keep and self.ending:
                    self.final = x
                elif keep:
                    self.pool = [SearchPoint(np.inf, x)]

            inverse = at.hessian
            if inverse is not None:
                # BFGS begins with symmetric and positive definite matrices only.
                inverse = 0.5 * (inverse + inverse.T)
                usable = np.isfinite(inverse).all() and np.linalg.eigvalsh(inverse)[0] > 0
                inverse = inverse if usable else None
            options: Any = {"maxiter": stage.iterations, "gtol": 1e-6, "hess_inv0": inverse}
            result = minimize(
                evaluate, at.z, jac=True, method="BFGS", callback=keep_iterate, options=options
            )
            at = SearchPoint(float(result.fun), np.asarray(result.x), np.asarray(result.hess_inv))
        return at
