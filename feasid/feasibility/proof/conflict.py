"""A minimal set of bounds that cannot hold together, for people to decide which to give up."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from feasid.core.arrays import Array
from feasid.feasibility.constraints.units import Units, assemble
from feasid.feasibility.proof.decide import decide
from feasid.feasibility.proof.question import Question


def minimal_conflict(
    question: Question,
    scale: Units,
    aim: Array,
    suspects: Sequence[str],
    solver: Any = None,
) -> tuple[str, ...]:
    """The bounds among `suspects` that clash, such that dropping any one of them ends the clash.

    The deletion filter: each in turn is left out for good if the rest are still proved infeasible.
    What makes parameters parameters at all, consistent bodies and the signs of joint terms, is
    never up for discussion, nor are the given values.

    Parameters
    ----------
    question : Question
    scale, aim, solver
        As for `feasid.feasibility.proof.decide.decide`.
    suspects : sequence of str
        Names of bounds that clash, as a proof says.

    Returns
    -------
    tuple of str
        Empty when the given values clash without any bound, or nothing can be proved.
    """
    asked = question.feasible.asked

    def clash(subset: Collection[str]) -> bool:
        part = question.feasible.without(asked - frozenset(subset))
        units = assemble(part, scale.mass, scale.length, scale.parameters)
        return decide(replace(question, feasible=part), units, aim, solver).feasible is False

    kept = [name for name in suspects if name in asked]
    if not kept or clash(()):
        return ()
    for name in tuple(kept):
        rest = [k for k in kept if k != name]
        if rest and clash(rest):
            kept = rest
    return tuple(kept)
