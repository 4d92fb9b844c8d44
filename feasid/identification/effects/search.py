"""The search for effects that enter a fit: greedy, judged on held-out blocks of the log.

In each round every effect, at each joint alone and at all joints at once, is ranked by the
reduction of the loss of held-out folds, computed in linear algebra on Gram matrices
(`feasid.identification.effects.gram`). The first that passes the rule of
`feasid.identification.estimation.held_out.RULES` enters; an effect that is only reported enters the
search, so that no other effect replaces it, but not the fit. So does a feature whose sign is
impossible: something unknown is in the log, for which a spring stood on a double pendulum, whose
faster motion the fit then missed by 78 % instead of 43.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from feasid.core.arrays import Array
from feasid.identification.effects.corrected_log import CorrectedLog
from feasid.identification.effects.gram import WIDTH, BlockGrams, Places
from feasid.identification.effects.table import EFFECTS, Mistake
from feasid.identification.estimation.held_out import RULES, Gain, HeldOut
from feasid.robot.joint_terms import RIPPLE

MOST_ENTRIES = 12
"""Largest number of effects that enter."""

MOST_JUDGED = 8
"""Candidates of a round, the best first, whose certainty is computed."""

ALIKE = 0.9
"""An effect at another joint explains the log as well if it saves at least this share of the
loss."""

SIMPLE = 0.97
"""Factor on the loss that a candidate saves for each coefficient beyond its first."""


REPORTED = 0.75
"""Factor on what a feature saves that no fit models: on a KUKA's log a delay of 60 ms saves .8 of
what the elasticity of one joint does."""


@dataclass(frozen=True, eq=False)
class Tried:
    """A candidate and its result."""

    mistakes: tuple[Mistake, ...]  #: One effect, at one joint or at several.
    gain: Gain
    entered: bool = False
    why: str = ""  #: Why it did not enter.
    alike: tuple[Mistake, ...] = ()  #: Other joints at which the effect explains the log as well.


@dataclass(frozen=True, eq=False)
class EffectSearchResult:
    """The effects that entered, in order, the tried ones, and the values of all that entered."""

    entered: tuple[Tried, ...]
    tried: tuple[Tried, ...]
    values: dict[Mistake, Array] = field(default_factory=dict)  #: [SI]
    deviations: dict[Mistake, Array] = field(default_factory=dict)

    @property
    def mistakes(self) -> list[Mistake]:
        """All that entered."""
        return [m for t in self.entered for m in t.mistakes]


_FoldSystem = tuple[Array, Array, Array, Array, Places]
"""Normal matrix, right side, held-out products, projections of chosen columns, and places."""


class _Folds:
    """Normal equations of all data but each fold with the chosen columns, and the folds
    themselves.
    """

    def __init__(self, grams: BlockGrams, chosen: Sequence[Mistake], timed: bool) -> None:
        self.grams, self.fold = grams, grams.fold_of(timed)
        own = grams.folds(self.fold, grams.weights)
        total = own.sum(axis=0)
        self.use = grams.places_of(chosen)
        self.parts = []
        for T in own:
            A = total - T
            M, g = grams.system(self.use, A)
            self.parts.append((A, T, M, g))

    @cached_property
    def _solved(self) -> list[_FoldSystem]:
        """Per fold: products of all columns, and held-out ones, after projection on the chosen
        columns.
        """
        every = np.arange(self.grams.size + 1)
        rest = np.setdiff1d(every[self.grams.nb : -1], self.use)
        out = list[_FoldSystem]()
        for A, T, M, right in self.parts:
            B = np.linalg.solve(M, np.c_[A[np.ix_(self.use, rest)], right])
            keep = np.r_[rest, every[-1]]
            C = B.T @ T[np.ix_(self.use, keep)]
            Z = T[np.ix_(keep, keep)] - C - C.T + B.T @ (T[np.ix_(self.use, self.use)] @ B)
            S = A[np.ix_(rest, rest)] - A[np.ix_(rest, self.use)] @ B[:, :-1]
            g = A[rest, -1] - A[np.ix_(rest, self.use)] @ B[:, -1]
            out.append((S, g, Z, np.asarray(B), np.asarray(rest, dtype=np.intp)))
        return out

    def saved(self, places: Places) -> float:
        """Share of the held-out loss that these columns save."""
        new = old = 0.0
        for S, g, Z, _, rest in self._solved:
            i = np.searchsorted(rest, places)
            th = np.linalg.solve(S[np.ix_(i, i)] + np.eye(len(i)) / WIDTH**2, g[i])
            old += Z[-1, -1]
            new += Z[-1, -1] - 2 * Z[i, -1] @ th + th @ Z[np.ix_(i, i)] @ th
        return 1.0 - new / old if old > 0 else 0.0

    def held_out(self, places: Places) -> HeldOut:
        """Errors by block and joint with these columns, without any for none."""
        squared = np.zeros((self.grams.count, len(self.grams.joints)))
        for f, (S, g, _, B, rest) in enumerate(self._solved):
            i = np.searchsorted(rest, places)
            th = np.linalg.solve(S[np.ix_(i, i)] + np.eye(len(i)) / WIDTH**2, g[i])
            full = np.zeros(self.grams.size)
            full[self.use] = B[:, -1] - B[:, i] @ th
            full[places] = th
            block = np.flatnonzero(self.fold == f)
            squared[block] = self.grams.squared(full, block)
        return HeldOut(squared)


class EffectSearch:
    """The search on the Gram matrices of one log; `run` does it."""

    def __init__(self, grams: BlockGrams) -> None:
        self.grams, self.chosen = grams, list[Mistake]()
        self.entered: list[Tried] = []
        self.tried: dict[tuple[Mistake, ...], Tried] = {}

    @classmethod
    def best_of(
        cls,
        trial: CorrectedLog,
        mistakes: Sequence[Mistake],
        credit: Callable[[Mistake], float] = lambda m: 1.0,
    ) -> tuple[Mistake, float] | None:
        """The effect that alone saves most of the held-out error by the rule, and how much.

        `credit` multiplies what each saves, for comparison only.
        """
        grams = BlockGrams.from_log(trial, mistakes)
        if not grams.items:
            return None
        grams.weigh(())
        folds = _Folds(grams, (), timed=False)
        places = {m: grams.places_of([m])[grams.nb :] for m in grams.items}
        best = max(places, key=lambda m: folds.saved(places[m]) * credit(m))
        without = folds.held_out(np.zeros(0, dtype=np.intp))
        gain = folds.held_out(places[best]).gain(over=without)
        return (best, gain.share) if RULES["effect"].accepts(gain) else None

    def run(self, stop_at: str = "") -> EffectSearchResult:
        """Add effects until none passes the rule, or one with this name has entered."""
        self.grams.weigh(self.chosen)
        for _ in range(MOST_ENTRIES):
            best = self._round()
            if best is None:
                break
            self.entered.append(best)
            self.chosen += best.mistakes
            self.grams.weigh(self.chosen)
            if EFFECTS[best.mistakes[0].kind].name == stop_at:
                break
        values, deviations = self._remove_impossible()
        rest = (t for key, t in self.tried.items() if not {*key} & {*self.chosen})
        entered, unknown = (tuple(t for t in self.entered if t.entered == x) for x in (True, False))
        return EffectSearchResult(entered, (*unknown, *rest), values, deviations)

    def _remove_impossible(self) -> tuple[dict[Mistake, Array], dict[Mistake, Array]]:
        """Values and deviations of all that entered, without signs that later entries turned."""
        while True:
            values, deviations = self.grams.values(self.chosen)
            turned = {
                m
                for t in self.entered
                for m in t.mistakes
                if t.entered and EFFECTS[m.kind].positive and values[m].sum() <= 0
            }
            if not turned:
                return values, deviations
            why = "its sign is impossible together with later entries"
            for t in self.entered:
                if gone := tuple(m for m in t.mistakes if m in turned):
                    self.tried[gone] = replace(t, mistakes=gone, entered=False, why=why)
            left = ((t, tuple(m for m in t.mistakes if m not in turned)) for t in self.entered)
            self.entered = [replace(t, mistakes=own) for t, own in left if own]
            self.chosen = [m for t in self.entered for m in t.mistakes]

    def _candidates(self) -> Iterator[tuple[Mistake, ...]]:
        """Every effect that may still enter, at each joint and at all joints at once."""
        taken = Counter((m.kind, m.joint) for m in self.chosen)
        groups: dict[tuple[str, float], list[Mistake]] = {}
        for m in self.grams.items:
            most = len(RIPPLE) // 2 if m.kind == "ripple" else 1
            if taken[m.kind, m.joint] < most and m not in self.chosen:
                groups.setdefault((m.kind, m.number), []).append(m)
        for group in groups.values():
            if len({m.joint for m in group}) == len(group) > 1:
                yield tuple(group)
            yield from ((m,) for m in group)

    def _round(self) -> Tried | None:
        """The best candidate that passes the rule, or a feature that does with another sign."""
        folds = {timed: _Folds(self.grams, self.chosen, timed) for timed in (False, True)}

        def with_score(group: tuple[Mistake, ...]) -> tuple[float, tuple[Mistake, ...]]:
            places = self.grams.places_of(group)[self.grams.nb :]
            saved = folds[EFFECTS[group[0].kind].timed].saved(places)
            share = REPORTED if EFFECTS[group[0].kind].kind == "feature" else 1.0
            return share * saved * SIMPLE ** (len(places) - 1), group

        left = sorted(map(with_score, self._candidates()), key=lambda entry: entry[0])
        without = {timed: f.held_out(np.zeros(0, dtype=np.intp)) for timed, f in folds.items()}
        for _ in range(min(MOST_JUDGED, len(left))):
            saved, group = left.pop()
            own, why = self._possible(group)
            if own and own != group:  # what it saves at joints where it can be
                insort(left, with_score(own), key=lambda entry: entry[0])
                continue
            timed = EFFECTS[group[0].kind].timed
            places = self.grams.places_of(group)[self.grams.nb :]
            gain = folds[timed].held_out(places).gain(over=without[timed])
            rule = RULES.get(group[0].kind, RULES["effect"])
            if not own and EFFECTS[group[0].kind].kind == "feature" and rule.accepts(gain):
                return Tried(group, gain, why=why)
            if own and rule.accepts(gain):
                others = (g[0] for s, g in reversed(left) if len(g) == 1 and s > ALIKE * saved)
                alike = [m for m in others if m.kind == own[0].kind and m not in own]
                return Tried(own, gain, True, alike=tuple(alike) if len(own) == 1 else ())
            self.tried[group] = Tried(group, gain, why=why or rule.refuses(gain))
        return None

    def _possible(self, group: tuple[Mistake, ...]) -> tuple[tuple[Mistake, ...], str]:
        """The joints at which an effect has a sign that it can have."""
        if not EFFECTS[group[0].kind].positive:
            return group, ""
        values, _ = self.grams.values([*self.chosen, *group])
        own = tuple(m for m in group if values[m].sum() > 0)
        return own, "" if own else "its sign is impossible"
