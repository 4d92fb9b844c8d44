"""A minimal set of bounds that cannot hold together, for people to decide which to give up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from feasid.arrays import Array
from feasid.feasibility.constraints.sets import FeasibleSet
from feasid.feasibility.constraints.units import Units, assemble
from feasid.feasibility.proof.decide import decide


def minimal_conflict(
    feasible: FeasibleSet,
    K: Array,
    beta: Array,
    scale: Units,
    aim: Array,
    suspects: Sequence[str],
) -> tuple[str, ...]:
    """The bounds among `suspects` that clash, such that dropping any one of them ends the clash.

    The deletion filter: each in turn is left out for good if the rest are still proved infeasible.
    What makes parameters parameters at all, consistent bodies and the signs of joint terms, is
    never up for discussion, nor are the given values.

    Parameters
    ----------
    feasible, K, beta, scale, aim
        As for `feasid.feasibility.proof.decide.decide`.
    suspects : sequence of str
        Names of bounds.

    Returns
    -------
    tuple of str
        Empty when the given values clash without any bound, or nothing can be proved.
    """
    bounds = asked_for(feasible)

    def clash(subset: Sequence[str]) -> bool:
        part = _without(feasible, bounds - frozenset(subset))
        units = assemble(part, scale.mass, scale.length, scale.parameters)
        return decide(part, K, beta, units, aim).feasible is False

    kept = [name for name in suspects if name in bounds]
    if not clash(kept):
        kept = [c.name for c in feasible.constraints if c.name in bounds]
        if not clash(kept):
            return ()
    for name in tuple(kept):
        rest = [k for k in kept if k != name]
        if clash(rest):
            kept = rest
    return tuple(kept)


def asked_for(feasible: FeasibleSet) -> frozenset[str]:
    """Constraints beyond the consistency of bodies and rotors and the signs of joint terms."""
    signs = {f"{symbol} of {owner}" for owner, symbol in feasible.names}
    return frozenset(
        [c.name for c in feasible.linear if c.name not in signs]
        + [b.name for b in feasible.blocks if b.kind == "matrix" and "rotor" not in b.name]
    )


def _without(feasible: FeasibleSet, names: frozenset[str]) -> FeasibleSet:
    """The set without these constraints."""
    return replace(
        feasible,
        blocks=tuple(b for b in feasible.blocks if b.name not in names),
        # Opposite bounds are found by their position, which leaving rows out changes.
        linear=tuple(replace(c, opposite=0) for c in feasible.linear if c.name not in names),
    )
