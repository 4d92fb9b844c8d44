"""Robust weights: blocks of a log that fit much worse than the others count less.

A collision, a hand on the arm or a dropped message spoils an interval of time, not single samples,
so weights are per block of time and joint: iteratively reweighted least squares on reduced data,
which reads the log once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from feasid.core.arrays import Array
from feasid.core.errors import InputError
from feasid.core.notes import Note
from feasid.identification.regression.equations import EquationReducer
from feasid.identification.regression.folds import sum_strata, triangularise
from feasid.identification.regression.low_pass import GaussianLowPass
from feasid.identification.regression.rows import RowFormer
from feasid.identification.regression.triangle import Reduced
from feasid.logs.derivatives import EQUATION_CUTOFF
from feasid.logs.motion import Motion
from feasid.robot.description import Robot

HUBER = 2.0
TUKEY = 5.0
"""Span residuals, in units of their joint's median, from which Huber's weights fall and at which
Tukey's vanish. Residuals of clean blocks of filtered signals spread by about a factor of two."""

STEPS = 15
SETTLED = 1e-3  #: Iterations at most, and the largest change of a weight at which they end.
FEWEST = 8  #: Number of blocks below which a median residual is not reliable.
SHOWN = 6  #: Blocks that the notes list.


@dataclass(frozen=True, eq=False)
class TimeBlock:
    """One segment of a log: its run, its time [s] and its reduced data."""

    label: str
    start: float
    end: float
    reduced: Reduced


WEIGHTS: dict[str, Callable[[Array], Array]] = {
    # min(1, c / u) of a residual u (Huber 1964)
    "huber": lambda u: np.asarray(HUBER / np.maximum(u, HUBER)),
    # (1 - (u / c)^2)^2 below c, 0 beyond (Beaton and Tukey 1974)
    "tukey": lambda u: np.asarray(np.where(u < TUKEY, (1 - (u / TUKEY) ** 2) ** 2, 0.0)),
}
"""Weights of squared residuals."""


def reduce_blocks(
    motion: Motion, robot: Robot, columns: Sequence[int], seconds: float
) -> list[TimeBlock]:
    """Cut prepared runs into blocks of time: equations of the kept rows, behind their low-pass."""
    former, blocks = RowFormer(robot, columns, motion.cutoff or EQUATION_CUTOFF), []
    for run in motion.runs:
        memory = (2 * GaussianLowPass(former.cutoff, run.rate).half_width + 1) / run.rate
        if seconds < memory:
            # Blocks would share all their samples with their neighbours.
            least = np.ceil(100 * memory) / 100
            raise InputError(
                f"a block of {seconds:g} s is shorter than the filter at {former.cutoff:g} Hz, "
                f"whose memory is {memory:.2g} s: give block={least:.2f} or more, or a higher "
                "cutoff",
                block=seconds,
            )
        length = max(seconds, 1.0 / run.rate)
        rows = former.rows_of(run)
        if rows is None:
            continue
        number = np.floor(rows.t / length).astype(np.int64)
        for k in dict.fromkeys(number.tolist()):
            part = rows.select(number == k)
            reducer = EquationReducer(robot, columns, former.cutoff)
            # Samples in proportion to rows: filters of neighbours share samples.
            reducer.add_rows(part, round(len(part.samples) * len(run) / len(number)))
            times = k * length, (k + 1) * length
            blocks.append(TimeBlock(run.label, *times, reducer.result(motion.notes)))
    return blocks


def reweight(
    blocks: Sequence[TimeBlock], kind: str, solve: Callable[[Reduced], Array]
) -> tuple[Reduced, Array]:
    """Iterate weights and estimates until they agree.

    `kind`: {"huber", "tukey"}; `solve`: from reduced data to base parameters beta. Returns the
    weighted equations; (blocks, dof): weight of each block for each joint, 0 to 1.
    """
    if len(blocks) < FEWEST:
        most = sum(b.end - b.start for b in blocks) / (FEWEST + 1)
        raise InputError(
            f"the log has {len(blocks)} of the at least {FEWEST} blocks that robust weights need: "
            f"give block={np.floor(100 * most) / 100:.2f} or less"
        )
    samples = np.array([block.reduced.rows for block in blocks])[:, None]
    weights = np.ones((len(blocks), len(blocks[0].reduced.triangles)))
    total = weighted_sum(blocks, weights)
    for _ in range(STEPS):
        beta = solve(total)
        rms = np.array([block.reduced.residuals(beta) for block in blocks]) / np.sqrt(samples)
        middle = np.median(rms, axis=0)
        # A joint that most blocks explain without an error keeps them all.
        new = WEIGHTS[kind](rms / np.where(middle > 0, middle, np.inf))
        change = np.abs(new - weights).max()
        weights = new
        total = weighted_sum(blocks, weights)
        if change < SETTLED:
            break
    return total, weights


def weighted_sum(blocks: Sequence[TimeBlock], weights: Array) -> Reduced:
    """Sum of reduced data, each row's squared residuals times its block's weight."""
    parts = [block.reduced for block in blocks]
    triangles, strata = [], []
    for r, factors in enumerate(weights.T):
        weighted = [*zip(factors, parts, strict=True)]
        stacked = [np.sqrt(w) * part.triangles[r] for w, part in weighted]
        triangles.append(triangularise(np.vstack(stacked)))
        if parts[0].strata:
            strata.append(sum_strata([part.strata[r].with_weight(w) for w, part in weighted]))
    return replace(
        parts[0],
        triangles=tuple(triangles),
        samples=sum(part.samples for part in parts),
        rows=sum(part.rows for part in parts),
        strata=tuple(strata),
    )


def weight_notes(
    blocks: Sequence[TimeBlock], weights: Array, joints: Sequence[str], kind: str
) -> list[Note]:
    """Blocks with reduced weight, the worst first."""
    low = np.argwhere(weights < 0.5)
    text = f"{kind} weights: {len(low)} of {weights.size} blocks and joints count less than half"
    if not len(low):
        return [Note(text, "robust", less=0)]
    order = np.argsort([weights[b, j] for b, j in low])[:SHOWN]
    shown = [
        f"{joints[j]} {blocks[b].start:.4g}-{blocks[b].end:.4g} s"
        f"{'' if blocks[b].label == 'log' else f' of run {blocks[b].label}'} ({weights[b, j]:.2g})"
        for b, j in low[order]
    ]
    text = f"{text}: {', '.join(shown)}{', ...' if len(low) > SHOWN else ''}"
    return [Note(text, "robust", less=len(low))]
