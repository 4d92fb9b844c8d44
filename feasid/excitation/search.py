"""The search: random starts, kicks of the best one, and an ever sharper problem for each.

Every descent is SciPy's BFGS on objective plus barrier, in stages: the condition number's stand-in
gets a larger exponent and the barrier comes closer to the limits. Random starts first see friction
that changes sign slowly, which takes away most hills, and keep well away from limits. The best
are kicked closer to their limits, where they rank as they are, in turns with further starts: some
objectives gain by these, others by those. The best few are brought to their limits.

Perturbations of good motions, from which a descent may end in a better one.

A joint's motion may begin at another time, run backwards, or come from another good motion, and
keeps its limits; it is scaled to come as close to them as the one it replaces.
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

from feasid.core.arrays import Array
from feasid.excitation.objectives import LimitBarrier, Objective
from feasid.excitation.problem import LIMIT_GRID_REFINEMENT, Problem

Draw = Callable[[np.random.Generator], Array]
"""A random start from a generator."""

PERTURBATION_SIZES = (0.03, 0.5)
"""Sizes of disturbances, in units of what limits allow."""

SIMULTANEOUS_SHARE = 0.3
"""Share of it when all joints are disturbed at once."""

LIMIT_SHARE = 0.97
"""Share of the limits that a joint's new motion uses of those its old one used."""

EXCHANGE_TRIALS = 10
"""Exchanges of one joint's motion that are compared before a descent begins from the best."""


@dataclass(frozen=True, eq=False)
class Perturbations:
    """Kicks of the motions of a problem."""

    problem: Problem
    draw: Draw

    @cached_property
    def _times(self) -> Array:
        count = LIMIT_GRID_REFINEMENT * self.problem.samples
        return np.asarray(np.arange(count) * self.problem.basis.period / count)

    @cached_property
    def _matrices(self) -> Array:
        return self.problem.basis.matrices(self._times)

    @cached_property
    def _inverses(self) -> list[Array]:
        """From a joint's positions back to its unknowns."""
        return [np.linalg.pinv(self._matrices[0] @ s) for s in self.problem.coordinates.span]

    def perturbed(
        self, z: Array, others: Sequence[Array], rng: np.random.Generator
    ) -> Iterator[Array]:
        """One disturbance, of all joints or of one, or several exchanges of one joint's motion."""
        shape = self.problem.coordinates.shape
        old = z.reshape(shape)
        joint = int(rng.integers(shape[0]))
        low, high = np.log(PERTURBATION_SIZES)
        size = float(np.exp(rng.uniform(low, high)))
        kind = int(rng.integers(5))
        if kind < 2:
            yield (old + SIMULTANEOUS_SHARE * size * rng.standard_normal(shape)).ravel()
            return
        for _ in range(EXCHANGE_TRIALS if kind > 2 else 1):
            new = old.copy()
            if kind == 2:
                new[joint] += size * rng.standard_normal(shape[1])
            elif kind == 3:
                new[joint] = self._fit_into_limits(
                    joint, self.draw(rng).reshape(shape)[joint], old[joint]
                )
            else:
                other = others[int(rng.integers(len(others)))].reshape(shape)[joint]
                moved = self.shift_in_time(joint, other, rng.random(), back=rng.random() < 0.5)
                new[joint] = self._fit_into_limits(joint, moved, old[joint])
            yield new.ravel()

    def shift_in_time(self, joint: int, z: Array, share: float, *, back: bool) -> Array:
        """A joint's motion begun at this share of the period and, maybe, run backwards; the nearest
        one that the family has.
        """
        t = self._times + share * self.problem.basis.period
        positions = self.problem.basis.matrices(-t if back else t)[0]
        span = self.problem.coordinates.span[joint]
        return np.asarray(self._inverses[joint] @ (positions @ (span @ z)))

    def _fit_into_limits(self, joint: int, z: Array, like: Array) -> Array:
        return np.asarray(
            z * (LIMIT_SHARE * self.limit_use(joint, like) / max(self.limit_use(joint, z), 1e-9))
        )

    def limit_use(self, joint: int, z: Array) -> float:
        """The share that a joint's motion uses of the tightest of its linear limits."""
        problem = self.problem
        moved = self._matrices @ (problem.coordinates.span[joint] @ z)
        still = self._matrices @ problem.coordinates.centre[:, joint]
        most = 0.0
        for step, base, limit in zip(moved, still, problem.bounds.linear, strict=True):
            for edge in limit[:, joint]:
                if np.isfinite(edge):
                    most = max(most, float((step / (edge - base)).max()))
        return most


Family = Callable[[float], Objective]
"""The objective for an exponent of smoothing; picklable."""

Progress = Callable[[float, float], None]
"""Called with seconds so far and the smallest value."""


@dataclass(frozen=True)
class Stage:
    """One descent: exponent of the objective, the barrier, and at most so many iterations."""

    power: float
    barrier: LimitBarrier
    iterations: int


COARSE_STAGES = (
    Stage(2, LimitBarrier(1e-1, 5e-2), 40),
    Stage(4, LimitBarrier(3e-2, 3e-2), 40),
    Stage(16, LimitBarrier(1e-2, 1e-2), 60),
)
LAST_STAGES = (
    Stage(256, LimitBarrier(1e-3, 1e-4), 100),
    Stage(512, LimitBarrier(3e-4, 3e-5), 150),
    Stage(1024, LimitBarrier(1e-4, 1e-5), 200),
)
"""Barriers this steep keep limits to a part in ten thousand, and cost next to nothing."""


WIDE_STAGES = (Stage(64, LimitBarrier(1e-2, 2e-3), 80), Stage(256, LimitBarrier(1e-2, 1e-3), 100))
NARROW_STAGES = (Stage(64, LimitBarrier(3e-3, 3e-3), 50), Stage(256, LimitBarrier(1e-3, 1e-3), 120))
"""A heavy barrier leaves fewer hills between motions, a light one ranks them as they are."""

START_TIME_SHARE, PERTURBATION_TIME_SHARE = 0.25, 0.9
"""Shares of the time after which nothing but random starts is over, and after which kicks are."""

PRIOR_EVALUATIONS, MIN_GAIN = 500, 1e-4
"""Evaluations that kicks and further starts are thought to have had already, for one gain each; and
what counts as one."""

DEFAULT_STARTS, POOL_SIZE, ARCHIVE_SIZE = 6, 3, 12
"""Random starts when kicks have a number, how many of the best are kicked, and how many are kept.
"""

SMOOTHING_RANGE = (1.0, 12.0)
"""How much wider a start's smoothed sign of friction is than usual: with the widest a sign changes
over the whole range of velocities, which takes most hills away."""

LEARNT_SHARE, SMOOTHING_SPREAD = 0.7, 0.2
"""Share of the starts that take it from one of the best so far, and by how much it varies."""

SAME_VALUE_TOLERANCE = 3e-3
"""Motions whose values are this close are taken for the same one."""

ABANDON_MARGIN = 0.015
"""A kick that is worse than the best by this after its first stage is given up."""


class TimeIsUpError(Exception):
    """The deadline passed within a descent."""


@dataclass
class Clock:
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

    def check(self, share: float = 1.0) -> None:
        """Raise when this share of the time is over."""
        if self.seconds > share * self.limit:
            raise TimeIsUpError


@dataclass(eq=False)
class SearchPoint:
    """A motion, its value in the last stage it went through, and BFGS's inverse Hessian there; and
    how much wider friction's sign was when it started.
    """

    value: float
    z: Array
    hessian: Array | None = None
    smoothing: float = 1.0


@dataclass(eq=False)
class _Strategy:
    """A way to go on, how often it led to a better motion, and what it took."""

    go: Callable[[], None]
    gains: int = 1
    evaluations: int = PRIOR_EVALUATIONS

    @property
    def gain_rate(self) -> float:
        """Gains per evaluation so far."""
        return self.gains / self.evaluations


@dataclass(eq=False)
class Search:
    """Finds good motions; `candidates` holds the best so far whenever it is interrupted.

    Parameters
    ----------
    problem : Problem
    family : callable
    draw : callable
    rng : numpy Generator
    clock : Clock
    rounds : int or None
        Most kicks and further starts; None for as many as there is time for.
    starts : int or None
        Random starts; None for as many as there is time for, with `rounds` for six.
    progress : callable
    """

    problem: Problem
    family: Family
    draw: Draw
    rng: np.random.Generator
    clock: Clock
    rounds: int | None
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
            for part in (self._random_starts, self._improve_best, self._finish):
                with suppress(TimeIsUpError):
                    part()
        except KeyboardInterrupt:
            self.interrupted = True

    def candidates(self) -> list[Array]:
        """Motions that may do, the best first."""
        found = [] if self.final is None else [self.final]
        return [*found, *(c.z for c in self._sorted_by_value())]

    def _random_starts(self) -> None:
        """Random starts."""
        starts = DEFAULT_STARTS if self.starts is None and self.rounds is not None else self.starts
        for _ in count() if starts is None else range(starts):
            first = not self.archive
            if not first:
                self.clock.check(START_TIME_SHARE)
            new = self._descend_from_random(keep=first)
            self.pool = []
            self.archive = sorted([*self.archive, new], key=lambda c: c.value)[:ARCHIVE_SIZE]
            self._report(new)

    def _descend_from_random(self, *, keep: bool) -> SearchPoint:
        """One random start, with friction that changes sign slowly at first and then as usual."""
        problem, stages = self.problem, COARSE_STAGES + WIDE_STAGES
        blur = self._draw_smoothing()
        self.problem = problem.smoothed(blur)
        try:
            start = SearchPoint(np.inf, self.draw(self.rng))
            rough = self._descend(start, stages, keep=keep)
        finally:
            self.problem = problem
        return replace(self._descend(rough, stages[-1:], keep=keep), smoothing=blur)

    def _draw_smoothing(self) -> float:
        """Drawn anew, or close to that of a good start."""
        low, high = np.log(SMOOTHING_RANGE)
        blur = self.rng.uniform(low, high)
        if len(self.archive) > POOL_SIZE and self.rng.random() < LEARNT_SHARE:
            like = self.archive[self.rng.integers(POOL_SIZE)].smoothing
            blur = np.clip(np.log(like) + SMOOTHING_SPREAD * self.rng.standard_normal(), low, high)
        return float(np.exp(blur))

    def _improve_best(self) -> None:
        """The best of the starts closer to their limits, and kicks of the best of these."""
        if self.rounds == 0 or not self.archive:
            return
        fresh: list[SearchPoint] = []
        with suppress(TimeIsUpError):
            for start in self._sorted_by_value()[: 2 * POOL_SIZE]:
                fresh.append(self._descend(start, NARROW_STAGES, keep=not fresh))
        self.pool = sorted(fresh, key=lambda c: c.value)[:POOL_SIZE] or self.pool
        ways = [_Strategy(self._perturb_best), _Strategy(self._descend_from_another_start)]
        for _ in count() if self.rounds is None else range(self.rounds):
            way = max(ways, key=lambda w: w.gain_rate)
            value, evaluations = self.pool[0].value, self.evaluations
            way.go()
            way.gains += self.pool[0].value < value - MIN_GAIN
            way.evaluations += self.evaluations - evaluations

    def _descend_from_another_start(self) -> None:
        """Another random start, all the way to where kicks begin."""
        self._keep_best(self._descend(self._descend_from_random(keep=False), NARROW_STAGES))

    def _sorted_by_value(self) -> list[SearchPoint]:
        return sorted([*self.pool, *self.archive], key=lambda c: c.value)

    def _perturb_best(self) -> None:
        """Disturb one of the best and descend; give up early what stays behind."""
        favourite = self.pool[min(int(self.rng.exponential(0.7)), len(self.pool) - 1)]
        others = [c.z for c in (*self.pool, *self.archive)]
        kicks = list(self.perturbations.perturbed(favourite.z, others, self.rng))
        stage = NARROW_STAGES[0]
        if len(kicks) > 1:
            kicks.sort(key=lambda z: self._value(z, stage))
        kicked = self._descend(SearchPoint(np.inf, kicks[0], favourite.hessian), NARROW_STAGES[:1])
        if kicked.value < self._value(self.pool[0].z, stage) + ABANDON_MARGIN:
            self._keep_best(self._descend(kicked, NARROW_STAGES[1:]))

    def _keep_best(self, new: SearchPoint) -> None:
        """Keep the best few that differ."""
        others = [c for c in self.pool if abs(c.value - new.value) > SAME_VALUE_TOLERANCE]
        same = [c for c in self.pool if abs(c.value - new.value) <= SAME_VALUE_TOLERANCE]
        kept = min([*same, new], key=lambda c: c.value)
        self.pool = sorted([*others, kept], key=lambda c: c.value)[:POOL_SIZE]
        self._report(new)

    def _report(self, new: SearchPoint) -> None:
        """Of a motion that is the best now, and kept: the listener may interrupt."""
        if self._sorted_by_value()[0] is new:
            self.progress(self.clock.seconds, new.value)

    def _finish(self) -> None:
        """Bring the best inside their limits, on a finer grid and with sharper friction."""
        found = self._sorted_by_value()
        self.problem = self.problem.sharper()
        self.ending = True
        for start in found[:POOL_SIZE]:
            self.final = start.z if self.final is None else self.final
            last = self._descend(start, LAST_STAGES, keep=self.value == np.inf)
            if last.value < self.value:
                self.value, self.final = last.value, last.z

    def _value(self, z: Array, stage: Stage) -> float:
        return self.problem(z, self.family(stage.power), stage.barrier)[0]

    def _descend(
        self, start: SearchPoint, stages: tuple[Stage, ...], *, keep: bool = False
    ) -> SearchPoint:
        """Through these stages; what `keep` reaches survives interruption.

        Stages differ little, so that each begins with the inverse Hessian of the one before.
        """
        at = start
        self.descents += 1
        share = 1.0 if self.ending else PERTURBATION_TIME_SHARE
        for stage in stages:
            objective = self.family(stage.power)

            def evaluate(
                x: Array, objective: Objective = objective, stage: Stage = stage
            ) -> tuple[float, Array]:
                self.clock.check(share)
                self.evaluations += 1
                return self.problem(x, objective, stage.barrier)

            def remember(intermediate_result: OptimizeResult) -> None:
                x = np.array(intermediate_result.x)
                if keep and self.ending:
                    self.final = x
                elif keep:
                    self.pool = [SearchPoint(np.inf, x)]

            options: Any = {
                "maxiter": stage.iterations,
                "gtol": 1e-6,
                "hess_inv0": _valid_inverse_hessian(at.hessian),
            }
            done = minimize(
                evaluate, at.z, jac=True, method="BFGS", callback=remember, options=options
            )
            at = SearchPoint(float(done.fun), np.asarray(done.x), np.asarray(done.hess_inv))
        return at


def _valid_inverse_hessian(hessian: Array | None) -> Array | None:
    """A matrix that BFGS may begin with: symmetric and positive definite, else None."""
    if hessian is None or not np.isfinite(hessian).all():
        return None
    even = 0.5 * (hessian + hessian.T)
    return even if np.linalg.eigvalsh(even)[0] > 0 else None
