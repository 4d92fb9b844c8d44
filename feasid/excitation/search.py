"""The search: random starts, kicks of the best one, and an ever sharper problem for each.

Every descent is SciPy's BFGS on objective plus barrier, in stages: the condition number's stand-in
gets a larger exponent and the barrier comes closer to the limits. Islands of starts and kicks keep
well away from limits; the best of all islands are kicked closer to them, where they rank as they
are, and the best few of these are brought to their limits.
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

STARTING = 0.25
"""Share of the time after which the first starts must do."""

STARTS, POOL, ARCHIVE = 6, 3, 6
"""Random starts of an island, how many of its best motions are kicked, and how many of all islands
are kept."""

PATIENCE, PROGRESS = 15, 1e-3
"""Kicks in a row that may gain less than this before the search starts elsewhere."""

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
    starts : int
        Random starts of an island.
    progress : callable
    """

    problem: Problem
    family: Family
    draw: Draw
    rng: np.random.Generator
    clock: Clock
    rounds: int | None
    starts: int
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
            for part in (self._islands, self._narrow, self._finish):
                with suppress(TimeIsUpError):
                    part()
        except KeyboardInterrupt:
            self.interrupted = True

    def candidates(self) -> list[Array]:
        """Motions that may do, the best first."""
        found = [] if self.final is None else [self.final]
        return [*found, *(c.z for c in self._ordered())]

    def _islands(self) -> None:
        """From new starts until kicks no longer help, again and again."""
        most = None if self.rounds is None else self.rounds - self.rounds // FINALLY
        done = 0
        while True:
            self._settle()
            stale = 0
            while stale < PATIENCE and done != most:
                done, before = done + 1, self.pool[0].value
                self._kick(WIDE)
                stale = 0 if self.pool[0].value < before - PROGRESS else stale + 1
            self.archive = self._ordered()[:ARCHIVE]
            self.pool = []
            if done == most:
                return

    def _narrow(self) -> None:
        """The best of all islands and their kicks with a light barrier."""
        if self.rounds is not None and self.rounds < FINALLY:
            return
        self.level = NARROW
        fresh: list[Found] = []
        with suppress(TimeIsUpError):
            for start in self._ordered()[:ARCHIVE]:
                fresh.append(self._descend(start, NARROW.first + NARROW.then, keep=not fresh))
        self.archive = [] if fresh else self.archive
        self.pool = sorted(fresh, key=lambda c: c.value)[:POOL] or self.pool
        kicks = count() if self.rounds is None else range(self.rounds // FINALLY)
        for _ in kicks if self.pool else ():
            self._kick(NARROW)

    def _ordered(self) -> list[Found]:
        return sorted([*self.pool, *self.archive], key=lambda c: c.value)

    def _settle(self) -> None:
        """Random starts, the best of them refined."""
        starts: list[Found] = []
        for _ in range(self.starts):
            first = not (self.pool or self.archive)
            start = Found(np.inf, self.draw(self.rng))
            starts.append(self._descend(start, COARSE, keep=first))
            if not self.archive and self.clock.seconds > STARTING * self.clock.limit:
                break
        starts.sort(key=lambda c: c.value)
        refined = [self._descend(c, WIDE.then, keep=not self.archive and k == 0)
                   for k, c in enumerate(starts[:POOL])]  # fmt: skip
        self.pool = []
        for candidate in refined:
            self._enter(candidate)

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
            self._enter(self._descend(kicked, level.then))

    def _enter(self, new: Found) -> None:
        """Keep the best few that differ."""
        ahead = min((c.value for c in (*self.pool, *self.archive)), default=np.inf)
        others = [c for c in self.pool if abs(c.value - new.value) > ALIKE]
        same = [c for c in self.pool if abs(c.value - new.value) <= ALIKE]
        kept = min([*same, new], key=lambda c: c.value)
        self.pool = sorted([*others, kept], key=lambda c: c.value)[:POOL]
        if new.value < ahead:
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
