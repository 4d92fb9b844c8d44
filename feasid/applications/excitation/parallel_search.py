"""Several searches with different random numbers, one per process.

The caller's process makes the first search, where it reports progress and may be interrupted;
others are plain Python processes (`feasid.identification.regression.parallel`), so that a script
needs no ``if __name__ == "__main__"``. The result of a process that died is lost, and a note
reports it.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from threading import Thread

import numpy as np

from feasid.applications.excitation.design import random_motion
from feasid.applications.excitation.problem import Problem
from feasid.applications.excitation.search import Family, Progress, Search, SearchClock
from feasid.core.arrays import Array
from feasid.core.threads import one_thread
from feasid.identification.regression.parallel import start_worker

PROCESS_GRACE = 60.0
"""Seconds beyond its time limit, for starting and ending, after which a process is abandoned."""

FIXED_SEARCHES = 2
"""Number of searches that share a given number of perturbations, whatever the number of workers, so
that the result depends on the seed alone."""


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Candidates for the motion, the best first, and how the search ended.

    ``value`` is that of the best after the last stage, infinite when there was no time for it.
    """

    value: float
    candidates: tuple[Array, ...]
    descents: int
    interrupted: bool = False


@dataclass(frozen=True, eq=False)
class ParallelSearch:
    """Searches with independent random numbers; see `feasid.applications.excitation.search.Search`.

    ``limit`` are the seconds of each search by the clock ``now``, ``rounds`` the perturbations of
    all, ``starts`` the random starts of each.
    """

    problem: Problem
    family: Family
    seed: int
    limit: float
    rounds: int | None
    starts: int | None
    count: int
    now: Callable[[], float] = time.monotonic

    @one_thread()
    def __call__(
        self, number: int, progress: Progress = lambda seconds, value: None
    ) -> SearchResult:
        """Make the search of this number in this process."""
        rounds = self.rounds
        if rounds is not None:
            # The first searches make those that are left over.
            rounds = rounds // self.count + (number < rounds % self.count)
        search = Search(
            self.problem,
            self.family,
            partial(random_motion, self.problem),
            np.random.default_rng([self.seed, number]),
            SearchClock(self.limit, self.now),
            rounds,
            self.starts,
            progress,
        )
        search.run()
        candidates = tuple(search.candidates())
        return SearchResult(search.value, candidates, search.descents, search.interrupted)


def run_searches(
    searches: ParallelSearch, workers: int, progress: Progress
) -> tuple[SearchResult, list[str]]:
    """Make all searches, `workers` at once, this process among them; their candidates, and notes.

    ``searches.limit`` are the seconds of the whole search.
    """
    if workers == 1 or searches.count == 1:
        searches = replace(searches, limit=searches.limit / searches.count)
        results: list[SearchResult] = []
        for number in range(searches.count):
            results.append(searches(number, progress))
            if results[-1].interrupted:
                break
        return _combine_results(results), []
    crew = [_SearchProcess(searches, number) for number in range(1, searches.count)]
    clock = SearchClock(searches.limit + PROCESS_GRACE, searches.now)
    results = []
    try:
        results.append(searches(0, progress))
    finally:
        # After an exception or Ctrl-C, too: no process may go on.
        waiting = bool(results) and not results[0].interrupted
        ends = [one.result(clock.limit - clock.seconds if waiting else 0.0) for one in crew]
    results += [end for end in ends if end is not None]
    lost_processes = len(ends) + 1 - len(results)
    notes = [
        f"{lost_processes} of {searches.count} processes died or did not end: "
        "what they found is lost"
    ]
    return _combine_results(results), notes if lost_processes and waiting else []


def _combine_results(results: list[SearchResult]) -> SearchResult:
    ordered = sorted(results, key=lambda result: result.value)
    best = [result.candidates[:1] for result in ordered]
    runners_up = [result.candidates[1:] for result in ordered]
    return SearchResult(
        ordered[0].value,
        tuple(z for some in (*best, *runners_up) for z in some),
        sum(result.descents for result in results),
        any(result.interrupted for result in results),
    )


class _SearchProcess:
    """A search in a process of its own, and the thread that waits for its result."""

    def __init__(self, searches: ParallelSearch, number: int) -> None:
        self.number = number
        self.answer = b""
        self.process = start_worker(searches)
        self.thread = Thread(target=self._wait_for_answer, daemon=True)
        self.thread.start()

    def _wait_for_answer(self) -> None:
        self.answer, _ = self.process.communicate(pickle.dumps(self.number))

    def result(self, seconds: float) -> SearchResult | None:
        """Its result, if it comes within so many seconds; the process has ended afterwards."""
        self.thread.join(max(seconds, 0.0))
        self.process.kill()
        self.thread.join()
        try:
            out: SearchResult = pickle.loads(self.answer)
        except (EOFError, pickle.UnpicklingError):  # it died before its answer was complete
            return None
        return out
