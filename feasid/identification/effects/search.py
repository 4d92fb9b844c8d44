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
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from feasid.core.arrays import Array
from feasid.identification.effects.corrected_log import CorrectedLog
from feasid.identification.effects.gram import WIDTH, BlockGrams, Places
from feasid.identification.effects.table import Effect, EffectAt
from feasid.identification.estimation.held_out import RULES, Gain, HeldOut
from feasid.robot.joint_terms import RIPPLE

MOST_ENTRIES = 12  #: Largest number of effects that enter.
MOST_JUDGED = 8  #: Candidates of a round, the best first, whose certainty is computed.
MOST_TOGETHER = 256  #: Columns of candidates whose products are in memory at once.

ALIKE = 0.9
"""An effect at another joint explains the log as well if it saves at least this share of the
loss."""

SIMPLE = 0.97  #: Factor on the loss that a candidate saves for each coefficient beyond its first.


REPORTED = 0.75
"""Factor on what a feature saves that no fit models: on a KUKA's log a delay of 60 ms saves .8 of
what the elasticity of one joint does."""


UNMEASURED = 0.9
"""Factor on what an effect saves where another, of a measured signal, may stand in its place. Over
one log both a warm-up and a temperature explain friction that falls, by .469 and .468 of the loss;
of the cold arm the column makes 1.5 times the error of the arm without such friction, not 16."""


Group = tuple[EffectAt, ...]
"""One effect, at one joint or at several."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """An effect that the search tried, at one joint or at several, and what came of it."""

    effects: Group
    gain: Gain
    entered: bool = False
    why: str = ""  #: Why it did not enter.
    alike: Group = ()  #: Other joints at which the effect explains the log as well.
    #: Of each effect together with all others that entered, and deviations [SI]; else empty.
    values: tuple[Array, ...] = ()
    deviations: tuple[Array, ...] = ()

    @property
    def effect(self) -> Effect:
        """Its entry in the table."""
        return self.effects[0].effect

    def part(self, effects: Container[EffectAt]) -> Candidate | None:
        """The same with some of its effects; None with none of them."""
        places = [k for k, e in enumerate(self.effects) if e in effects]
        return replace(
            self,
            effects=tuple(self.effects[k] for k in places),
            values=tuple(self.values[k] for k in places if self.values),
            deviations=tuple(self.deviations[k] for k in places if self.deviations),
        ) if places else None  # fmt: skip


class _Folds:
    """Held-out errors of candidates in addition to the entered columns W, of all folds at once.

    By all data but a fold, a candidate's columns X leave X - W B behind W, the residual e - W b.
    """

    def __init__(self, grams: BlockGrams, effects: Sequence[EffectAt], timed: bool) -> None:
        self.grams, self.fold = grams, grams.fold_of(timed)
        self.use = np.r_[np.arange(grams.nb), grams.columns(effects)]
        self.all = np.r_[self.use, grams.residual]
        self.products = grams.by_fold(timed)
        held = self.products.between(self.all, self.all)
        self.b, self.inverse = grams.solve((held.sum(axis=0) - held)[:, :-1])
        #: e - W b is [W, e] times this, (folds, use + 1).
        self.left = np.insert(-self.b, len(self.use), 1.0, axis=1)
        self.seen, self.missed = held[:, :-1, :-1], (held[:, :-1] @ self.left[..., None])[..., 0]
        #: Squared error of the folds without a candidate.
        self.loss = float(np.einsum("fa,fab,fb->", self.left, held, self.left))

    def solve(self, places: Places) -> tuple[Array, Array, Array]:
        """Coefficients of candidates with places (n, k), each by all data but a fold, (folds, n,
        k); how those of the entered columns change, (folds, n, use), and the loss, (n,).
        """
        held = self.products.between(places.ravel(), self.all)
        held = held.reshape(len(held), *places.shape, len(self.all))
        inner, other = self.products.within(places), held.sum(axis=0) - held
        missed, unseen = ((x @ self.left[:, None, :, None])[..., 0] for x in (held, other))
        B = other[..., :-1] @ self.inverse[:, None]
        S = inner.sum(axis=0) - inner - B @ other[..., :-1].swapaxes(2, 3)
        ridge = np.eye(places.shape[1]) / WIDTH**2
        theta = np.asarray(np.linalg.solve(S + ridge, unseen[..., None]), dtype=np.float64)
        row = theta.swapaxes(2, 3)  # (folds, n, 1, k)
        moved, along = -(row @ B)[:, :, 0], (row @ held[..., :-1])[:, :, 0]
        change = (row @ (inner @ theta - 2 * missed[..., None]))[:, :, 0, 0]
        change += np.sum((2 * along + moved @ self.seen - 2 * self.missed[:, None]) * moved, axis=2)
        return theta[..., 0], moved, change.sum(axis=0)

    def savings(self, groups: Iterable[Group]) -> dict[Group, float]:
        """Share of the held-out loss that each group of effects saves."""
        by_size = dict[int, list[Group]]()
        for group in groups:
            by_size.setdefault(len(self.grams.columns(group)), []).append(group)
        out = dict[Group, float]()
        for size, alike in by_size.items():
            few = max(1, MOST_TOGETHER // size)
            for some in (alike[k : k + few] for k in range(0, len(alike), few)):
                change = self.solve(np.array([self.grams.columns(group) for group in some]))[2]
                shares = -change / self.loss if self.loss > 0 else np.zeros(len(some))
                out.update(zip(some, shares.tolist(), strict=True))
        return out

    def gain(self, group: Group) -> Gain:
        """What these effects gain on held-out data."""
        return self._held_out(group).gain(over=self._without)

    @cached_property
    def _without(self) -> HeldOut:
        return self._held_out(())

    def _held_out(self, group: Group) -> HeldOut:
        places = self.grams.columns(group)
        full = np.zeros((len(self.b), self.grams.size))
        full[:, self.use] = self.b
        if group:
            theta, moved, _ = self.solve(places[None])
            full[:, places] = theta[:, 0]
            full[:, self.use] += moved[:, 0]
        return HeldOut(self.grams.squared(full[self.fold]))


class EffectSearch:
    """The search on the Gram matrices of one log; `run` does it."""

    def __init__(self, grams: BlockGrams) -> None:
        self.grams, self.effects = grams, list[EffectAt]()
        self.entered: list[Candidate] = []
        self.tried: dict[Group, Candidate] = {}

    @classmethod
    def best_of(
        cls,
        trial: CorrectedLog,
        effects: Sequence[EffectAt],
        credit: Callable[[EffectAt], float] = lambda at: 1.0,
    ) -> tuple[EffectAt, float] | None:
        """The effect that alone saves most of the held-out error by the rule, and how much.

        `credit` multiplies what each saves, for comparison only.
        """
        grams = BlockGrams.from_log(trial, effects)
        if not grams.items:
            return None
        grams.weigh(())
        folds = _Folds(grams, (), False)
        saved = folds.savings((m,) for m in grams.items)
        best = max(grams.items, key=lambda m: saved[m,] * credit(m))
        gain = folds.gain((best,))
        return (best, gain.share) if RULES["effect"].accepts(gain) else None

    def run(self, stop_at: str = "") -> tuple[Candidate, ...]:
        """Add effects until none passes the rule, or one with this name has entered.

        Returns those that entered, in order, then all others that were tried.
        """
        self.grams.weigh(self.effects)
        for _ in range(MOST_ENTRIES):
            best = self._round()
            if best is None:
                break
            self.entered.append(best)
            self.effects += best.effects
            self.grams.weigh(self.effects)
            if best.effect.name == stop_at:
                break
        while True:
            # All that entered get their values; what later entries turned in its sign leaves.
            values, deviations = self.grams.values(self.effects)
            for k, c in enumerate(self.entered):
                sizes, widths = (tuple(x[e] for e in c.effects) for x in (values, deviations))
                self.entered[k] = replace(c, values=sizes, deviations=widths)
            positive = [c for c in self.entered if c.entered and c.effect.positive]
            turned = {e for c in positive for e in c.effects if values[e].sum() <= 0}
            if not turned:
                break
            why = "its sign is impossible together with later entries"
            for gone in filter(None, (c.part(turned) for c in self.entered)):
                self.tried[gone.effects] = Candidate(gone.effects, gone.gain, why=why)
            self.effects = [e for e in self.effects if e not in turned]
            self.entered = [*filter(None, (c.part(self.effects) for c in self.entered))]
        others = [c for key, c in self.tried.items() if not {*key} & {*self.effects}]
        return (*sorted(self.entered, key=lambda c: not c.entered), *others)

    def _candidates(self) -> Iterator[Group]:
        """Every effect that may still enter, at each joint and at all joints at once."""
        counts = Counter((m.effect.instead_of or m.kind, m.joint) for m in self.effects)
        groups: dict[tuple[str, float], list[EffectAt]] = {}
        for m in self.grams.items:
            most = len(RIPPLE) // 2 if m.kind == "ripple" else 1
            if counts[m.effect.instead_of or m.kind, m.joint] < most and m not in self.effects:
                groups.setdefault((m.kind, m.number), []).append(m)
        for group in groups.values():
            if len({m.joint for m in group}) == len(group) > 1:
                yield tuple(group)
            yield from ((m,) for m in group)

    def _round(self) -> Candidate | None:
        """The best candidate that passes the rule, or a feature that does with another sign."""
        every = [*self._candidates()]
        offered = {t: [g for g in every if g[0].effect.timed is t] for t in (False, True)}
        measured = {(m.effect.instead_of, m.joint) for m in self.grams.items}
        folds = {t: _Folds(self.grams, self.effects, t) for t, some in offered.items() if some}

        def scores(timed: bool, groups: Sequence[Group]) -> list[tuple[float, Group]]:
            """What each saves, with less for what no fit models and for further coefficients."""
            out = []
            for group, saved in folds[timed].savings(groups).items():
                share = REPORTED if group[0].effect.kind == "feature" else 1.0
                share *= UNMEASURED if measured >= {(m.kind, m.joint) for m in group} else 1.0
                out.append((share * saved * SIMPLE ** (len(self.grams.columns(group)) - 1), group))
            return out

        ranked = (entry for timed in folds for entry in scores(timed, offered[timed]))
        queue = sorted(ranked, key=lambda entry: entry[0])
        for _ in range(min(MOST_JUDGED, len(queue))):
            saved, group = queue.pop()
            part, why = self._possible(group)
            if part and part != group:  # what it saves at joints where it can be
                insort(queue, scores(part[0].effect.timed, [part])[0], key=lambda entry: entry[0])
                continue
            gain = folds[group[0].effect.timed].gain(group)
            rule = RULES.get(group[0].kind, RULES["effect"])
            # An unknown law turned its sign: it enters the search, so that nothing replaces it.
            if not part and group[0].effect.kind == "feature" and rule.accepts(gain):
                return Candidate(group, gain, why=why)
            if part and rule.accepts(gain):
                others = (g[0] for s, g in reversed(queue) if len(g) == 1 and s > ALIKE * saved)
                alike = [m for m in others if m.kind == part[0].kind and m.joint != part[0].joint]
                return Candidate(part, gain, True, alike=tuple(alike) if len(part) == 1 else ())
            self.tried[group] = Candidate(group, gain, why=why or rule.refuses(gain))
        return None

    def _possible(self, group: Group) -> tuple[Group, str]:
        """The joints at which an effect has a sign that it can have."""
        if not group[0].effect.positive:
            return group, ""
        values, _ = self.grams.values([*self.effects, *group])
        possible = tuple(m for m in group if values[m].sum() > 0)
        return possible, "" if possible else "its sign is impossible"
