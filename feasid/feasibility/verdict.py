"""The answer to "can these parameters exist?", and why."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feasid.certificate import exact
from feasid.core.arrays import Array
from feasid.core.display import Display, Displayed, Measure
from feasid.feasibility.constraints.units import Units
from feasid.feasibility.program.solve import Attempt
from feasid.feasibility.proof.claim import Certificate
from feasid.feasibility.proof.decide import Outcome
from feasid.feasibility.proof.question import Question

NAMED = 6
"""Given values that `Verdict.explain` names at most."""

LONGEST = 60
"""Characters of a name that `Verdict.explain` shows at most."""

SHARE = 1e-3
"""Constraints and parameters that weigh less than this in a proof are not named."""


@dataclass(frozen=True, eq=False, repr=False)
class Verdict(Displayed):
    """The answer, and why: read off the question and the proof.

    Attributes
    ----------
    question : Question
    outcome : Outcome
    scale : Units
        In which margins are counted.
    labels : tuple of str
        What the given values are.
    conflict : tuple of str
        When bounds that were asked for are involved: a minimal set of them that cannot hold
        together; dropping any of these ends their clash.
    """

    question: Question
    outcome: Outcome
    scale: Units
    labels: tuple[str, ...]
    conflict: tuple[str, ...] = ()

    @property
    def feasible(self) -> bool | None:
        """The answer; None when neither could be proved. On the boundary it is False."""
        return self.outcome.feasible

    @property
    def certificate(self) -> Certificate | None:
        """The proof; ``certificate.verify()`` checks it without any solver."""
        return self.outcome.certificate

    @property
    def consistency(self) -> str:
        """What feasible means: "full" or "semi"."""
        return self.question.feasible.consistency

    @property
    def boundary(self) -> bool:
        """True when it is proved that only singular matrices will do: a rod, a point, no mass."""
        return self.certificate is not None and self.certificate.claim == "boundary"

    @property
    def status(self) -> str:
        """The answer as a word: "feasible", "infeasible", "boundary" or "inconclusive"."""
        return "inconclusive" if self.certificate is None else self.certificate.claim

    @property
    def margin(self) -> float:
        """Smallest eigenvalue of all constraint matrices, in units of each body's mass and length.

        Of the given parameters, or the largest possible one for given base parameters.
        """
        return self.outcome.margin

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Solver calls; empty when none was needed."""
        return self.outcome.attempts

    @property
    def point(self) -> Array | None:
        """Standard parameters, (n,), that show feasibility; not an estimate of anything."""
        return self.outcome.delta if self.feasible else None

    @cached_property
    def margins(self) -> dict[str, float]:
        """The margin per constraint, at the given or the best parameters that were found."""
        delta = self.outcome.delta
        if delta is None:
            return {}
        feasible = self.question.feasible.with_margin(self.question.margin)
        values = [
            *self.scale.block_margins(feasible, delta),
            *self.scale.linear_margins(feasible, delta),
        ]
        names = [c.name for c in feasible.constraints]
        return dict(zip(names, map(float, values), strict=True))

    @cached_property
    def weights(self) -> dict[str, float]:
        """How much each constraint weighs in a proof that nothing is feasible, in units."""
        if self.certificate is None or "multipliers" not in self.certificate.data:
            return {}
        feasible = self.question.feasible
        units = [*self.scale.blocks, *(np.sqrt(np.array([u])) for u in self.scale.linear)]
        place = {label: k for k, label in enumerate(self.question.labels)}
        out = {}
        for label, triangle in self.certificate.data["multipliers"]:
            k = place[tuple(label)]
            size = len(units[k])
            corners = np.cumsum([0, *range(size, 1, -1)])
            trace = sum(
                float(exact(triangle[i])) * u**2 for i, u in zip(corners, units[k], strict=True)
            )
            out[feasible.constraints[k].name] = trace
        return out

    @cached_property
    def clash(self) -> tuple[str, ...]:
        """The constraints that clash, by name, the heaviest in the proof first."""
        total = sum(self.weights.values())
        heavy = sorted(self.weights, key=lambda name: -self.weights[name])
        named = [n for n in heavy if self.weights[n] > SHARE * total]
        return tuple(dict.fromkeys([*self._ties, *named]))

    @cached_property
    def bodies(self) -> tuple[str, ...]:
        """Bodies and drives whose constraints clash, each once."""
        feasible = self.question.feasible
        columns = {c.name: c.columns for c in (*feasible.equalities, *feasible.constraints)}
        owners = [feasible.names[int(j)][0] for name in self.clash for j in columns[name]]
        return tuple(dict.fromkeys(owners))

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """What is given and takes part in the clash, the heaviest first."""
        if self.certificate is None or "combination" not in self.certificate.data:
            return ()
        data = self.certificate.data
        values = [float(exact(v)) for v in data["values"]]
        pairs = zip(data["combination"], values, strict=True)
        shares = np.abs([float(exact(y)) * v for y, v in pairs])
        order = [int(i) for i in np.argsort(-shares) if shares[i] > SHARE * shares.sum()]
        labels = [x for i, x in enumerate(self.labels) if i not in self.outcome.dropped]
        return tuple(f"{labels[i]} = {values[i]:.6g}" for i in order)

    @property
    def outside(self) -> tuple[str, ...]:
        """Constraints that are not affine: kept in floating point, and covered by no proof."""
        return tuple(c.name for c in self.question.feasible.convex)

    @property
    def _ties(self) -> list[str]:
        """Equalities that take part in the proof."""
        if self.certificate is None or not any(
            exact(v) for v in self.certificate.data.get("tied", ())
        ):
            return []
        data = self.certificate.data
        pairs = zip(data["tied"], data["ties"], strict=True)
        touched = {j for v, tie in pairs if exact(v) for j, _ in tie["row"]}
        return [e.name for e in self.question.feasible.equalities if touched.issuperset(e.columns)]

    def explain(self) -> str:
        """The verdict in sentences."""
        lines = [
            f"{self.status} under {self.consistency} consistency "
            f"(smallest margin {self.margin:.3g} in units of each body's mass and length)"
        ]
        if self.boundary:
            lines.append("possible only with singular matrices: a rod, a point mass, no mass")
        if self.clash:
            lines.append(f"what clashes: {_listed(self.clash, ', ')}")
        if self.conflict:
            lines.append(
                f"a minimal set of bounds that cannot hold together: {', '.join(self.conflict)}"
            )
        if self.parameters:
            lines.append(f"with the given values of {_listed(self.parameters, '; ')}")
        if self.outside:
            lines.append(
                "not affine, and therefore judged in floating point, outside any proof: "
                f"{_listed(self.outside, ', ')}"
            )
        if self.certificate is None:
            lines += ["neither answer could be proved; tried:", *map(str, self.attempts)]
        else:
            lines.append("proved in exact rational arithmetic: verdict.certificate.verify()")
            limit = self.certificate.limit
            if limit is not None:
                lines.append(
                    f"for all parameters in which no body is heavier than {limit['mass']:.0e} kg "
                    f"or reaches further than {limit['length']:g} m from its frame"
                )
        return "\n".join(lines)

    def display(self) -> Display:
        """The verdict at a glance."""
        yes = self.feasible is True
        answer = {True: "yes", False: "no", None: "undecided"}[self.feasible]
        measures = [
            Measure("can exist", f"{answer}, smallest margin {self.margin:.3g}", ">= 0", yes),
            Measure(
                "proof",
                "none" if self.certificate is None else f"{self.status}, exact arithmetic",
                "exact",
                self.certificate is not None,
            ),
        ]
        said = self.explain().splitlines()[1:] if not yes else []
        hidden = ("proved in exact", "neither answer")
        wrong = [f"whose: {_listed(self.bodies, ', ')}"] if self.bodies else []
        return Display(
            f"verdict: {self.status} under {self.consistency} consistency",
            measures,
            [*wrong, *(line for line in said if not line.startswith(hidden))],
            more="more: verdict.explain(), verdict.margins, verdict.certificate.verify()",
        )


def _listed(names: tuple[str, ...], between: str) -> str:
    shown = [n if len(n) <= LONGEST else f"{n[: LONGEST - 3]}..." for n in names[:NAMED]]
    more = f" and {len(names) - NAMED} more" * (len(names) > NAMED)
    return between.join(shown) + more
