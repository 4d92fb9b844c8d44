"""A result tried on random motions: what is called hidden must not show, all else must.

A joint's null vectors must leave every measured torque as it is, and the columns that are left
must be independent. With Theorem 2 of Wensing et al. (2024), by which hidden changes are sums of
those of the joints, that confirms the count, and K by one further combination of its null vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from feasid.core.arrays import Array
from feasid.errors import RankError
from feasid.identifiability.echelon import Nullblock
from feasid.identifiability.frames import SYMMETRIC
from feasid.identifiability.samples import NEAREST, SEED, RandomMotions
from feasid.identifiability.setting import Setting

HIDDEN = 1e-11
"""Torques of hidden changes relative to the terms they are made of: rounding leaves 1e-13."""

SHOWN = 1e-13
"""Smallest singular value of what shows, relative to the largest or to the largest term that makes
it up: rounding is at 1e-15."""


@dataclass(frozen=True)
class SampleCheck:
    """What random motions showed.

    Attributes
    ----------
    residual : float
        Largest torque of a hidden change, relative to the terms it is made of; must be at most
        `HIDDEN`.
    weakest : float
        Smallest singular value of what a joint shows, relative to its largest; must be at least
        `SHOWN`.
    joint : str
        Where it was found.
    unconfirmed : tuple of str
        Joints below `SHOWN` whose geometry is known to be nearly degenerate.
    seconds : float
        What the check cost [s].
    """

    residual: float
    weakest: float
    joint: str
    unconfirmed: tuple[str, ...]
    seconds: float

    def __str__(self) -> str:
        return (
            f"hidden changes show {self.residual:.1e} (at most {HIDDEN:.0e}), the weakest of the "
            f"others {self.weakest:.1e} (at least {SHOWN:.0e}, joint {self.joint!r}); checked in "
            f"{1e3 * self.seconds:.1f} ms"
        )


def confirmed(
    run: Setting,
    samples: RandomMotions,
    blocks: Sequence[Nullblock],
    transfers: Sequence[Array],
    doubted: Sequence[int],
) -> SampleCheck:
    """Try every joint's null vectors and what it leaves on random motions.

    Parameters
    ----------
    run : Setting
    samples : RandomMotions
    blocks : sequence of Nullblock
        One per joint, scaled.
    transfers : sequence of ndarray
        Per joint, inertial columns to the parent's ten, scaled.
    doubted : sequence of int
        Joints that are known, and reported, to be too close to degenerate for floating point.

    Raises
    ------
    RankError
        Names the first joint whose count is not confirmed.
    """
    start = perf_counter()
    residual, weakest, where = 0.0, 1.0, 0
    unconfirmed = []
    joints = run.robot.joints
    for i, (block, transfer) in enumerate(zip(blocks, transfers, strict=True)):
        rows, size = samples.local(i, transfer, block.drive)
        if block.dependent.size and len(rows):
            shown = np.abs(rows @ block.vectors)
            terms = np.maximum(size @ np.abs(block.vectors), np.abs(rows).max())
            off = float((shown / np.where(terms > 0, terms, 1.0)).max())
            if off > HIDDEN:
                raise RankError(
                    f"joint {joints[i]!r}: changes that are called hidden show in random motions, "
                    f"with {off:.1e} of the terms they are made of (at most {HIDDEN:.0e}); its "
                    "geometry is too close to degenerate, or its lengths differ too much",
                    joint=joints[i],
                )
            residual = max(residual, off)
        if block.independent.size:
            left = rows[:, block.independent]
            s = np.linalg.svd(left, compute_uv=False) if len(rows) >= left.shape[1] else [1.0, 0.0]
            reference = max(float(s[0]), float(size.max(initial=0.0)))
            ratio = float(s[-1]) / reference if reference else 0.0
            if ratio >= SHOWN:
                if ratio < weakest:
                    weakest, where = ratio, i
            elif i in doubted:
                unconfirmed.append(joints[i])
            else:
                raise RankError(
                    f"joint {joints[i]!r}: {block.independent.size} combinations are claimed, but "
                    f"in random motions the weakest shows only {ratio:.1e} of the strongest (at "
                    f"least {SHOWN:.0e})",
                    joint=joints[i],
                )
    if max(len(chain) for chain in run.robot.ancestors) > NEAREST:
        residual = max(residual, _along_chains(samples, blocks, transfers))
    spent = perf_counter() - start
    return SampleCheck(residual, weakest, joints[where], tuple(unconfirmed), spent)


def _along_chains(
    samples: RandomMotions, blocks: Sequence[Nullblock], transfers: Sequence[Array]
) -> float:
    """Largest torque of a random hidden change of all bodies, relative to its terms."""
    run, bodies = samples.run, samples.run.robot.bodies
    rng = np.random.default_rng(SEED)
    change = [np.zeros(10) for _ in samples.moving.parents]
    drives = []
    for i, (block, transfer) in enumerate(zip(blocks, transfers, strict=True)):
        vector = block.vectors @ rng.standard_normal(block.dependent.size)
        change[i] += vector[:10]
        rotor = bodies[i].rotor
        if rotor is not None:
            values = vector[10 : block.inertial]
            change[samples.rotor_nodes[i]] += SYMMETRIC @ values if rotor.symmetric else values
        if run.robot.parents[i] >= 0:
            change[run.robot.parents[i]] -= transfer @ vector[: block.inertial]
        drives.append(samples.drive_terms(i, block.drive) @ vector[block.inertial :])
    torques, sizes = samples.torques(change)
    worst = 0.0
    for i, (torque, size, more) in enumerate(zip(torques, sizes, drives, strict=True)):
        if run.measured is not None and i not in run.measured:
            continue
        bound = float(size.max() + np.abs(more).max(initial=0.0))
        off = float(np.abs(torque + more[:, None]).max()) / bound if bound else 0.0
        if off > HIDDEN:
            joint = run.robot.joints[i]
            raise RankError(
                f"joint {joint!r} feels {off:.1e} of a change of bodies beyond it that is called "
                f"hidden (at most {HIDDEN:.0e})",
                joint=joint,
            )
        worst = max(worst, off)
    return worst
