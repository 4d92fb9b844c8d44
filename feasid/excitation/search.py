"""The search: random starts, kicks of the best one, and an ever sharper problem for each.

Every descent is SciPy's BFGS on objective plus barrier, in stages: the condition number's stand-in
gets a larger exponent and the barrier comes closer to the limits. Early stages are short and may
overstep limits a little; the best few motions are then brought inside by the last ones, and the
best of these is taken: what lies well away from the limits is not always best at them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from feasid.arrays import Array
from feasid.excitation.barrier import LimitBarrier
from feasid.excitation.objectives import Objective
from feasid.excitation.problem import Problem

Family = Callable[[float], Objective]
"""The objective for an exponent of smoothing."""

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
MEDIUM = (Stage(16, LimitBarrier(1e-2, 1e-2), 60),)
FINE = (Stage(64, LimitBarrier(1e-2, 2e-3), 80), Stage(256, LimitBarrier(1e-2, 1e-3), 100))
LAST = (
    Stage(256, LimitBarrier(1e-2, 1e-4), 100),
    Stage(256, LimitBarrier(3e-3, 3e-5), 200),
    Stage(1024, LimitBarrier(1e-3, 1e-5), 200),
)
"""Barriers this steep keep limits to a part in ten thousand."""

RESERVE = 0.1
"""Share of the time that is kept for the last stages."""

STARTING = 0.25
"""Share of the time after which the first starts must do."""

STARTS, POOL = 6, 3
"""Random starts of an island, and how many of the best motions are kicked."""

PATIENCE, PROGRESS = 15, 1e-3
"""Kicks in a row that may gain less than this before the search starts elsewhere."""

ALIKE = 3e-3
"""Motions whose values are this close are taken for the same one."""

HOPELESS = 0.03
"""A kick that is worse than the best by this after its first stage is given up."""

KICKS = (0.03, 0.5)
"""Sizes of kicks, in units of what limits allow."""


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


@dataclass
class Found:
    """A motion, its value in the last stage it went through, and BFGS's inverse Hessian there."""

    value: float
    z: Array
    hessian: Array | None = None


@dataclass
class Search:
    """Finds good motions; `candidates` holds the best so far whenever it is interrupted.

    Parameters
    ----------
    problem : Problem
    family : callable
    draw : callable
        A random start from a generator.
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
    draw: Callable[[np.random.Generator], Array]
    rng: np.random.Generator
    clock: Clock
    rounds: int | None
    starts: int
    progress: Progress
    pool: list[Found] = field(default_factory=list)
    archive: list[Found] = field(default_factory=list)
    final: Array | None = None
    exploring: bool = True
    interrupted: bool = False
    descents: int = 0

    def run(self) -> None:
        """Search until the time is over or all rounds are done."""
        try:
            with suppress(TimeIsUpError):
                self._explore()
            with suppress(TimeIsUpError):
                self._finish()
        except KeyboardInterrupt:
            self.interrupted = True

    def candidates(self) -> list[Array]:
        """Motions that may do, the best first."""
        found = [] if self.final is None else [self.final]
        others = sorted([*self.pool, *self.archive], key=lambda c: c.value)
        return [*found, *(c.z for c in others)]

    def _explore(self) -> None:
        """Islands: from new starts until kicks no longer help, again and again."""
        done = 0
        while True:
            self._settle()
            stale = 0
            while stale < PATIENCE and done != self.rounds:
                done, before = done + 1, self.pool[0].value
                self._kick()
                stale = 0 if self.pool[0].value < before - PROGRESS else stale + 1
            self.archive = sorted([*self.archive, *self.pool], key=lambda c: c.value)[:POOL]
            self.pool = []
            if done == self.rounds:
                return

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
        refined = [self._descend(c, FINE, keep=not self.archive and k == 0)
                   for k, c in enumerate(starts[:POOL])]  # fmt: skip
        self.pool = []
        for candidate in refined:
            self._enter(candidate)

    def _kick(self) -> None:
        """Disturb one of the best and descend; give up early what stays behind."""
        favourite = self.pool[min(int(self.rng.exponential(0.7)), len(self.pool) - 1)]
        start = Found(np.inf, self._kicked(favourite.z), favourite.hessian)
        kicked = self._descend(start, MEDIUM)
        if kicked.value < self._value(self.pool[0].z, MEDIUM[-1]) + HOPELESS:
            self._enter(self._descend(kicked, FINE))

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
        found = sorted([*self.pool, *self.archive], key=lambda c: c.value)
        self.problem = self.problem.sharper()
        self.exploring = False
        best = np.inf
        for start in found[:POOL]:
            self.final = start.z if self.final is None else self.final
            last = self._descend(start, LAST, keep=best == np.inf)
            if last.value < best:
                best, self.final = last.value, last.z

    def _kicked(self, z: Array) -> Array:
        """One of several disturbances: of all joints, of one, or a new motion for one."""
        shape = self.problem.coordinates.shape
        kicked = z.reshape(shape).copy()
        joint = int(self.rng.integers(shape[0]))
        low, high = np.log(KICKS)
        size = float(np.exp(self.rng.uniform(low, high)))
        match int(self.rng.integers(4)):
            case 0:
                kicked += 0.3 * size * self.rng.standard_normal(shape)
            case 1:
                kicked[joint] += size * self.rng.standard_normal(shape[1])
            case 2:
                kicked[joint] = self.draw(self.rng).reshape(shape)[joint]
            case _:
                kicked[joint, 1:] *= -1.0
        return kicked.ravel()

    def _value(self, z: Array, stage: Stage) -> float:
        return self.problem(z, self.family(stage.power), stage.barrier)[0]

    def _descend(self, start: Found, stages: tuple[Stage, ...], *, keep: bool = False) -> Found:
        """Through these stages; what `keep` reaches survives interruption.

        Stages differ little, so that each begins with the inverse Hessian of the one before.
        """
        at = start
        self.descents += 1
        share = 1 - RESERVE if self.exploring else 1.0
        for stage in stages:
            objective = self.family(stage.power)

            def evaluate(
                x: Array, objective: Objective = objective, stage: Stage = stage
            ) -> tuple[float, Array]:
                self.clock.check(share)
                return self.problem(x, objective, stage.barrier)

            def remember(intermediate_result: OptimizeResult) -> None:
                x = np.array(intermediate_result.x)
                if keep and not self.exploring:
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
