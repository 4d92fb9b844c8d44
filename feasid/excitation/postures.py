"""Standstill: a posture that keeps everything, around which motions are built."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import InputError
from feasid.excitation.bounds import Bounds
from feasid.excitation.chain import Chain
from feasid.excitation.problem import Keeping, room

POSTURES = 2000
"""Postures drawn, and again in every round around the best one."""

ROUNDS = 12
"""Rounds, each with half the spread of the one before."""

FIRST_SPREAD = 0.25
"""Of the first round, as a share of the position range."""


def margins(chain: Chain, bounds: Bounds, keeping: Sequence[Keeping], q: Array) -> Array:
    """Room that postures q (dof, N) leave at rest, a row per thing to keep; see `names_of`."""
    still = np.zeros_like(q)
    sweep = chain.forward(q, still, still, torque=True)
    rows = [room(q, bounds.position)[0], room(sweep.torques, bounds.torque)[0]]
    return np.vstack([*rows, *(part(sweep)[0] for part in keeping)])


def names_of(chain: Chain, bounds: Bounds, keeping: Sequence[Keeping]) -> list[str]:
    """What the rows of `margins` are about."""
    out = []
    for kind, limit in (("position", bounds.position), ("torque", bounds.torque)):
        for low_or_high in limit:
            rows = np.flatnonzero(np.isfinite(low_or_high))
            out += [f"{kind} limit of joint {chain.robot.joints[j]!r}" for j in rows]
    return [*out, *(name for part in keeping for name in part.names)]


def drawn(bounds: Bounds, rng: np.random.Generator, count: int = POSTURES) -> Array:
    """Postures drawn uniformly within the position limits, shape (dof, count)."""
    low, high = bounds.position[..., None]
    return np.asarray(low + (high - low) * rng.random((len(low), count)))


def standstill(
    chain: Chain, bounds: Bounds, keeping: Sequence[Keeping], rng: np.random.Generator
) -> Array:
    """The posture with the most room that was found, shape (dof,).

    Raises
    ------
    InputError
        No posture keeps everything at rest; names what stands in the way.
    """
    low, high = bounds.position
    if not keeping and not np.isfinite(bounds.torque).any():
        return bounds.middle
    q = np.hstack([bounds.middle[:, None], drawn(bounds, rng)])
    spread, most = FIRST_SPREAD, np.full(0, -np.inf)
    for _ in range(ROUNDS):
        found = margins(chain, bounds, keeping, q)
        most = found.max(axis=1) if not most.size else np.maximum(most, found.max(axis=1))
        best = q[:, [int(np.argmax(found.min(axis=0)))]]
        step = spread * (high - low)[:, None] * rng.standard_normal((len(low), POSTURES))
        q = np.hstack([best, np.clip(best + step, low[:, None], high[:, None])])
        spread /= 2
    room_left = margins(chain, bounds, keeping, best)[:, 0]
    if room_left.min() <= 0:
        names = names_of(chain, bounds, keeping)
        never = [n for n, m in zip(names, most, strict=True) if m <= 0]
        broken = [n for n, m in zip(names, room_left, strict=True) if m <= 0]
        why = (
            f"none of {ROUNDS * POSTURES} postures keeps: {'; '.join(dict.fromkeys(never))}"
            if never
            else f"no posture keeps everything; the closest breaks: {'; '.join(broken[:4])}"
        )
        raise InputError(f"the robot cannot even stand still: {why}", broken=never or broken)
    return np.asarray(best[:, 0])
