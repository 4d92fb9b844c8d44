"""The search: random starts, kicks of the best one, and an ever sharper problem for each.

Every descent is SciPy's BFGS on objective plus barrier, in stages: the condition number's stand-in
gets a larger exponent and the barrier comes closer to the limits. Random starts first see friction
that changes sign slowly, which takes away most hills, and keep well away from limits; so do kicks
of the best of them. Then the best are kicked closer to their limits, where they rank as they are,
and the best few of these are brought to their limits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from feasid.arrays import Array
from feasid.excitation.barrier import LimitBarrier
from feasid.excitation.moves import Draw, Moves
from feasid.excitation.objectives import Objective
from feasid.excitation.problem import Problem

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


COARSE = (
    Stage(2, LimitBarrier(1e-1, 5e-2), 40),
    Stage(4, LimitBarrier(3e-2, 3e-2), 40),
    Stage(16, LimitBarrier(1e-2, 1e-2), 60),
)
LAST = (
    Stage(256, LimitBarrier(1e-3, 1e-4), 100),
    Stage(512, LimitBarrier(3e-4, 3e-5), 150),
    Stage(1024, LimitBarrier(1e-4, 1e-5), 200),
)
"""Barriers this steep keep limits to a part in ten thousand, and cost next to nothing."""


@dataclass(frozen=True)
class Level:
    """How kicked motions descend: at first, and those that are not left behind; and the share of
    the time after which this is over.
    """

    first: tuple[Stage, ...]
    then: tuple[Stage, ...]
    share: float


WIDE = Level(
    (Stage(16, LimitBarrier(1e-2, 1e-2), 60),),
    (Stage(64, LimitBarrier(1e-2, 2e-3), 80), Stage(256, LimitBarrier(1e-2, 1e-3), 100)),
    0.65,
)
NARROW = Level(
    (Stage(64, LimitBarrier(3e-3, 3e-3), 50),),
    (Stage(256, LimitBarrier(1e-3, 1e-3), 120),),
    0.9,
)
"""A heavy barrier leaves fewer hills between motions, a light one ranks them as they are."""

FINALLY = 4
"""One of so many kicks is kept for the light barrier, when their number is given."""

STARTING = 0.55
"""Share of the time for random starts, where their number is not given."""

STARTS, POOL, ARCHIVE = 6, 3, 12
"""Random starts when kicks have a number, how many of the best are kicked, and how many are kept.
"""

BLUR = (5.0, 12.0)
"""How much wider a start's smoothed sign of friction is than usual, drawn anew for each: with the
widest a sign changes over the whole range of velocities."""

ALIKE = 3e-3
"""Motions whose values are this close are taken for the same one."""

HOPELESS = 0.015
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
class Found:
    """A motion, its value in the last stage it went through, and BFGS's inverse Hessian there."""

    value: float
    z: Array
    hessian: Array | None = None


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
        Most kicks; None for as many as there is time for.
    starts : int or None
        Random starts; None for as many as there is time for.
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
    pool: list[Found] = field(default_factory=list)
    archive: list[Found] = field(default_factory=list)
    final: Array | None = None
    value: float = np.inf
    level: Level | None = WIDE
    interrupted: bool = False
    descents: int = 0

    def __post_init__(self) -> None:
        self.moves = Moves(self.problem, self.draw)

    def run(self) -> None:
        """Search until the time is over or all rounds are done."""
        try:
            for part in (self._start, self._widely, self._narrowly, self._finish):
                with suppress(TimeIsUpError):
                    part()
        except KeyboardInterrupt:
            self.interrupted = True

    def candidates(self) -> list[Array]:
        """Motions that may do, the best first."""
        found = [] if self.final is None else [self.final]
        return [*found, *(c.z for c in self._ordered())]

    def _start(self) -> None:
        """Random starts."""
        for _ in count() if self.starts is None else range(self.starts):
            first = not self.archive
            if not first:
                self.clock.check(STARTING)
            new = self._started(keep=first)
            self._tell(new)
            self.pool = []
            self.archive = sorted([*self.archive, new], key=lambda c: c.value)[:ARCHIVE]

    def _started(self, *, keep: bool) -> Found:
        """One random start, with friction that changes sign slowly at first and then as usual."""
        problem, stages = self.problem, COARSE + WIDE.then
        blur = float(np.exp(self.rng.uniform(*np.log(BLUR))))
        self.problem = problem.smoothed(blur)
        try:
            start = Found(np.inf, self.draw(self.rng))
            rough = self._descend(start, stages, keep=keep)
        finally:
            self.problem = problem
        return self._descend(rough, stages[-1:], keep=keep)

    def _widely(self) -> None:
        """Kicks of the best with a heavy barrier."""
        for start in self.archive:
            self._enter(start)
        self.archive = [c for c in self.archive if c not in self.pool]
        rounds = None if self.rounds is None else self.rounds - self.rounds // FINALLY
        self._kicks(WIDE, rounds)

    def _narrowly(self) -> None:
        """The best and their kicks with a light barrier."""
        if self.rounds is not None and self.rounds < FINALLY:
            return
        self.level = NARROW
        fresh: list[Found] = []
        with suppress(TimeIsUpError):
            for start in self._ordered()[:ARCHIVE]:
                fresh.append(self._descend(start, NARROW.first + NARROW.then, keep=not fresh))
        self.archive = [] if fresh else self.archive
        self.pool = sorted(fresh, key=lambda c: c.value)[:POOL] or self.pool
        self._kicks(NARROW, None if self.rounds is None else self.rounds // FINALLY)

    def _kicks(self, level: Level, rounds: int | None) -> None:
        for _ in count() if rounds is None else range(rounds):
            if not self.pool:
                return
            self._kick(level)

    def _ordered(self) -> list[Found]:
        return sorted([*self.pool, *self.archive], key=lambda c: c.value)

    def _kick(self, level: Level) -> None:
        """Disturb one of the best and descend; give up early what stays behind."""
        favourite = self.pool[min(int(self.rng.exponential(0.7)), len(self.pool) - 1)]
        others = [c.z for c in (*self.pool, *self.archive)]
        kicks = list(self.moves.kicks(favourite.z, others, self.rng))
        stage = level.first[-1]
        if len(kicks) > 1:
            kicks.sort(key=lambda z: self._value(z, stage))
        kicked = self._descend(Found(np.inf, kicks[0], favourite.hessian), level.first)
        if kicked.value < self._value(self.pool[0].z, stage) + HOPELESS:
            new = self._descend(kicked, level.then)
            self._tell(new)
            self._enter(new)

    def _enter(self, new: Found) -> None:
        """Keep the best few that differ."""
        others = [c for c in self.pool if abs(c.value - new.value) > ALIKE]
        same = [c for c in self.pool if abs(c.value - new.value) <= ALIKE]
        kept = min([*same, new], key=lambda c: c.value)
        self.pool = sorted([*others, kept], key=lambda c: c.value)[:POOL]

    def _tell(self, new: Found) -> None:
        if new.value < min((c.value for c in (*self.pool, *self.archive)), default=np.inf):
            self.progress(self.clock.seconds, new.value)

    def _finish(self) -> None:
        """Bring the best inside their limits, on a finer grid and with sharper friction."""
        found = self._ordered()
        self.problem = self.problem.sharper()
        self.level = None
        for start in found[:POOL]:
            self.final = start.z if self.final is None else self.final
            last = self._descend(start, LAST, keep=self.value == np.inf)
            if last.value < self.value:
                self.value, self.final = last.value, last.z

    def _value(self, z: Array, stage: Stage) -> float:
        return self.problem(z, self.family(stage.power), stage.barrier)[0]

    def _descend(self, start: Found, stages: tuple[Stage, ...], *, keep: bool = False) -> Found:
        """Through these stages; what `keep` reaches survives interruption.

        Stages differ little, so that each begins with the inverse Hessian of the one before.
        """
        at = start
        self.descents += 1
        share = self.level.share if self.level else 1.0
        for stage in stages:
            objective = self.family(stage.power)

            def evaluate(
                x: Array, objective: Objective = objective, stage: Stage = stage
            ) -> tuple[float, Array]:
                self.clock.check(share)
                return self.problem(x, objective, stage.barrier)

            def remember(intermediate_result: OptimizeResult) -> None:
                x = np.array(intermediate_result.x)
                if keep and self.level is None:
                    self.final = x
                elif keep:
                    self.pool = [Found(np.inf, x)]

            options: Any = {
                "maxiter": stage.iterations,
                "gtol": 1e-6,
                "hess_inv0": _definite(at.hessian),
            }
            done = minimize(
                evaluate, at.z, jac=True, method="BFGS", callback=remember, options=options
            )
            at = Found(float(done.fun), np.asarray(done.x), np.asarray(done.hess_inv))
        return at


def _definite(hessian: Array | None) -> Array | None:
    """A matrix that BFGS may begin with: symmetric and positive definite, else None."""
    if hessian is None or not np.isfinite(hessian).all():
        return None
    even = 0.5 * (hessian + hessian.T)
    return even if np.linalg.eigvalsh(even)[0] > 0 else None
