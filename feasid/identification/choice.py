"""Which friction terms a log supports, joint by joint, judged on stretches that were held out.

Every candidate set of terms is given to all joints and fitted five times, each time without one
fifth of the log's stretches of time; a joint takes the set that predicts its own held-out torques
best, and a larger one only for a gain that is worth a parameter. Where a stretch has fewer rows
than the joint has unknowns nothing can be judged, and joints get the largest set: friction of real
gears has all these terms, and those that do nothing cost little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from feasid.arrays import Array
from feasid.feasibility.constraints.sets import feasible_set
from feasid.identifiability.base import BaseParameters, base_parameters
from feasid.identification.estimate import Task
from feasid.identification.noise import Noise, squares
from feasid.identification.priors import WEIGHT
from feasid.notes import Note
from feasid.reduction.narrow import narrowed
from feasid.reduction.strata import FOLDS
from feasid.reduction.triangle import Reduced
from feasid.robot.description import FRICTION, Robot

if TYPE_CHECKING:
    import pandas as pd

GAIN = 0.01
"""A larger set must make the held-out error of its joint smaller by this share."""


@dataclass(frozen=True, eq=False)
class Choice:
    """Terms per drive and what they were chosen by.

    Attributes
    ----------
    robot : Robot
        With the chosen terms.
    sets : tuple of tuple of str
        Candidate terms beyond the common ones, the smallest first.
    errors : ndarray, shape (len(sets), dof)
        Relative held-out torque error of each joint with each set on all joints.
    chosen : tuple of int
        Which set each drive got.
    """

    robot: Robot
    sets: tuple[tuple[str, ...], ...]
    errors: Array
    chosen: tuple[int, ...]

    @property
    def note(self) -> Note:
        """Which drives got which terms."""
        got: dict[int, list[str]] = {}
        for drive, k in zip(self.robot.drives, self.chosen, strict=True):
            got.setdefault(k, []).append(drive.name)
        said = [f"{' + '.join(self.sets[k]) or 'none'}: {', '.join(v)}" for k, v in got.items()]
        text = "friction beyond viscous, Coulomb and offset, by held-out stretches"
        return Note(f"{text}: {'; '.join(said)}", "friction-chosen")

    @property
    def table(self) -> pd.DataFrame:
        """Held-out errors: a row per set, a column per coordinate."""
        import pandas as pd

        rows = [" + ".join(s) or "none" for s in self.sets]
        return pd.DataFrame(self.errors, index=pd.Index(rows, name="further terms"))


def choose_terms(
    reduced: Reduced, wide: Robot, sets: Sequence[Sequence[str]], weight: float = WEIGHT
) -> Choice:
    """Choose among sets of friction terms for every drive.

    Parameters
    ----------
    reduced : Reduced
        Of `wide`, with strata.
    wide : Robot
        With all candidate terms.
    sets : sequence of sequences of terms
        Names of `feasid.robot.description.FRICTION`, the smallest set first.
    weight : float
        Of the prior.
    """
    candidates = {FRICTION[t] for s in sets for t in s}
    whole = Task.of(reduced, base_parameters(wide), feasible_set(wide))
    noise = whole.noise(reduced, weight, whole.reference)
    errors = []
    for terms in sets:
        dropped = candidates - {FRICTION[t] for t in terms}
        robot = without(wide, [dropped] * len(wide.drives))
        errors.append(held_out_errors(reduced, wide, base_parameters(robot), noise, weight))
    table = np.array(errors)
    rows = [s.counts.sum(axis=0).min() for s in reduced.strata]
    enough = all(n >= len(own) for n, own in zip(rows, reduced.supports, strict=True))
    drives = range(len(wide.drives))
    chosen = [_best(table, wide, k) if enough else len(sets) - 1 for k in drives]
    drop = [candidates - {FRICTION[t] for t in sets[c]} for c in chosen]
    return Choice(without(wide, drop), tuple(tuple(s) for s in sets), table, tuple(chosen))


def without(robot: Robot, dropped: Sequence[set[str]]) -> Robot:
    """The robot without these symbols, one set per drive."""
    drives = []
    for drive, drop in zip(robot.drives, dropped, strict=True):
        kept = tuple(s for s in drive.symbols if s not in drop)
        drives.append(replace(drive, symbols=kept, values=None))
    load = robot.load_model if any("fl" in d.symbols for d in drives) else None
    return replace(robot, drives=tuple(drives), load_model=load)


def _best(table: Array, robot: Robot, drive: int) -> int:
    """The set whose held-out errors of the drive's joints are smallest, by more than `GAIN`."""
    rows = np.flatnonzero(robot.coupling(drive))
    error = np.sqrt(np.mean(table[:, rows] ** 2, axis=1))
    best = 0
    for k in range(1, len(error)):
        if error[k] < (1 - GAIN) * error[best]:
            best = k
    return best


def held_out_errors(
    reduced: Reduced, wide: Robot, base: BaseParameters, noise: Noise, weight: float = WEIGHT
) -> Array:
    """Relative torque error of every joint on stretches that the fit did not see, shape (dof,)."""
    part = narrowed(reduced, wide, base)
    task = Task.of(part, base, feasible_set(base.robot))
    missed = np.zeros(len(part.triangles))
    for fold in range(FOLDS):
        others = [f for f in range(FOLDS) if f != fold]
        delta = _trained(task, part, noise, others, weight)
        beta = base.K @ delta
        for j in range(len(missed)):
            missed[j] += float(squares(part, j, beta, [fold]).sum())
    torque = part.torque_norms
    return np.asarray(np.sqrt(missed) / np.where(torque > 0, torque, 1.0))


def _trained(task: Task, part: Reduced, noise: Noise, folds: Sequence[int], weight: float) -> Array:
    r, rho, _ = noise.whitened(part, folds)
    return task.solve(r, rho, weight, task.reference)
