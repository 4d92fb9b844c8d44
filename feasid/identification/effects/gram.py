"""Gram matrices of a log's equations and of the columns of effects, block by block.

Around a feasible model with base parameters beta, covariance P and residual e the whitened rows of
joint j are [W, E, e]: regressor, columns of effects, residual. Everything that a search needs (the
fit with some effects, its error on a held-out block) follows from sums of products over blocks of
the log, without the rows. Coordinates of beta are those in which data and prior add up to the
identity, so that no direction that the log leaves open is inverted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.identification.effects.corrected_log import CorrectedLog
from feasid.identification.effects.table import EFFECTS, Mistake, Place
from feasid.identification.estimation.noise import Noise
from feasid.identification.regression.folds import FOLDS
from feasid.identification.regression.rows import Rows
from feasid.identification.regression.triangle import Reduced
from feasid.parameters.identifiability.base import BaseParameters
from feasid.robot.joint_terms import SEARCHED

Places = npt.NDArray[np.intp]

BLOCKS, BLOCK_SECONDS = 25, 0.4
"""Blocks of a log at most, and their least length [s]."""

SHARE = 0.1
"""Natural size of a coefficient without one: this share of its joint's torque."""

WIDTH = 3.0
"""Prior standard deviation of a coefficient, in natural sizes. Four widths from .1 to 3 gave the
same on real logs (.914 against .904 of the errors without them) and in simulation."""

ROUNDING = 1e-13
"""Rounding of sums of products, as a share of the products' sizes."""

TINY = 1e-7
"""Share of the largest column of an effect below which a column is rounding."""


@dataclass(frozen=True, eq=False)
class JointGram:
    """Products of one joint's whitened rows, summed by block."""

    joint: int
    places: Places  #: Its columns among [beta, effects, residual], (k,).
    blocks: Array  #: (blocks, k, k)
    rows: int


class BlockGrams:
    """Gram matrices of a log around a feasible model."""

    def __init__(
        self,
        joints: Sequence[JointGram],
        items: Mapping[Mistake, Places],
        scales: Array,
        root: Array,
    ) -> None:
        self.joints, self.items, self.scales = tuple(joints), dict(items), scales
        self.root, self.nb = root, len(root)  #: P = root root', (nb, nb)
        self.size = self.nb + len(scales)
        self.count = len(self.joints[0].blocks)
        self.weights = np.ones(len(self.joints))
        total = self.folds(np.zeros(self.count, dtype=np.intp), self.weights)[0]
        values, vectors = np.linalg.eigh(np.eye(self.nb) - total[: self.nb, : self.nb])
        self.prior = (vectors * np.maximum(values, 1e-9)) @ vectors.T
        self.pull = -total[: self.nb, -1]

    def folds(self, fold: Places, weights: Array) -> Array:
        """Weighted sums over the blocks of every fold, (folds, size + 1, size + 1)."""
        out = np.zeros((int(fold.max()) + 1, self.size + 1, self.size + 1))
        for own, weight in zip(self.joints, weights, strict=True):
            for f in range(len(out)):
                part = weight * own.blocks[fold == f].sum(axis=0)
                out[f][np.ix_(own.places, own.places)] += part
        n, R = self.nb, self.root
        out[:, :n] = np.einsum("ji,fjk->fik", R, out[:, :n])
        out[:, :, :n] = out[:, :, :n] @ R
        return out

    def places_of(self, mistakes: Sequence[Mistake]) -> Places:
        """Places of beta and of these effects."""
        own = [self.items[m] for m in mistakes]
        return np.concatenate([np.arange(self.nb), *own]).astype(np.intp)

    def system(self, use: Places, gram: Array) -> tuple[Array, Array]:
        """Normal equations of beta and effects with their priors."""
        M, n = gram[np.ix_(use, use)].copy(), self.nb
        M[:n, :n] += self.prior
        effects = np.arange(n, len(use))
        M[effects, effects] += 1.0 / WIDTH**2
        g = gram[use, -1].copy()
        g[:n] += self.pull
        return M, g

    def _total(self) -> Array:
        """Weighted sums over all blocks."""
        return np.asarray(self.folds(np.zeros(self.count, dtype=np.intp), self.weights)[0])

    def coefficients(self, mistakes: Sequence[Mistake]) -> Array:
        """Solution for all columns with these effects, (size,), in natural sizes."""
        use = self.places_of(mistakes)
        out = np.zeros(self.size)
        out[use] = np.linalg.solve(*self.system(use, self._total()))
        return out

    def values(
        self, mistakes: Sequence[Mistake]
    ) -> tuple[dict[Mistake, Array], dict[Mistake, Array]]:
        """Values of these effects together, and their deviations [SI]."""
        use = self.places_of(mistakes)
        M, g = self.system(use, self._total())
        found, deviation = np.zeros(self.size), np.zeros(self.size)
        variance = np.maximum(np.diag(np.linalg.inv(M)), 0.0)  # of a log without noise: rounding
        found[use], deviation[use] = np.linalg.solve(M, g), np.sqrt(variance)
        own = {m: (self.items[m], self.scales[self.items[m] - self.nb]) for m in mistakes}
        value, spread = (
            {m: x[p] * scale for m, (p, scale) in own.items()} for x in (found, deviation)
        )
        return value, spread

    def weigh(self, mistakes: Sequence[Mistake]) -> None:
        """Weight every joint by its residual with these effects."""
        squared = self.squared(self.coefficients(mistakes), np.arange(self.count)).sum(axis=0)
        rows = np.array([own.rows for own in self.joints])
        self.weights = rows / np.maximum(squared, 1e-12 * rows)

    def fold_of(self, timed: bool) -> Places:
        """The fold of every block: fifths, or blocks in turn for functions of time."""
        b = np.arange(self.count)
        return b % FOLDS if timed else b * FOLDS // self.count

    def squared(self, coefficients: Array, block: Places) -> Array:
        """Squared errors by block and joint with these coefficients of all columns, (size,)."""
        raw = np.r_[-self.root @ coefficients[: self.nb], -coefficients[self.nb :], 1.0]
        out = np.zeros((len(block), len(self.joints)))
        for k, own in enumerate(self.joints):
            v = raw[own.places]
            squared = (own.blocks[block] @ v) @ v
            # Where a model misses nothing, the sum of large terms is rounding, of either sign.
            rounding = (np.abs(own.blocks[block]) @ np.abs(v)) @ np.abs(v)
            out[:, k] = np.maximum(squared, ROUNDING * rounding)
        return out

    @classmethod
    def from_log(cls, trial: CorrectedLog, mistakes: Iterable[Mistake]) -> BlockGrams:
        """Gram matrices of a log row by row, with the effects that it can show."""
        rows = trial.rows
        K = np.asarray(trial.base.K, dtype=np.float64)
        values, vectors = np.linalg.eigh(K @ trial.unit_covariance @ K.T)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        columns = _EffectColumns(trial)
        items, scales, at = dict[Mistake, Places](), list[Array](), len(root)
        for mistake in mistakes:
            scale = columns.add(mistake, at)
            if scale is not None:
                items[mistake] = np.arange(at, at + len(scale))
                scales.append(scale)
                at += len(scale)
        block, count = blocks_of(rows)
        residual = trial.torque - rows.regressor @ trial.beta
        joints = []
        for j in rows.joints:
            own = rows.joint == j
            support = rows.supports[j]
            parts = [rows.regressor[np.ix_(own, support)], *columns.of(j), residual[own][:, None]]
            X = np.hstack(parts) / trial.row_deviations[own][:, None]
            places = np.r_[support, columns.places(j), at].astype(np.intp)
            grams = [x.T @ x for x in (X[block[own] == b] for b in range(count))]
            joints.append(JointGram(j, places, np.array(grams), len(X)))
        return cls(joints, items, np.concatenate([np.zeros(0), *scales]), root)


class _EffectColumns:
    """Scaled columns of effects, joint by joint where they are not zero."""

    def __init__(self, trial: CorrectedLog) -> None:
        self.trial, self.rows = trial, trial.rows
        self.model = trial.base.robot.with_values(trial.delta)
        self._of: dict[int, list[Array]] = {j: [] for j in self.rows.joints}
        self._places: dict[int, list[int]] = {j: [] for j in self.rows.joints}
        self._largest: dict[str, float] = {}

    @cached_property
    def torque(self) -> dict[int, float]:
        """Root mean square of each joint's torque."""
        rows = self.rows
        return {
            j: float(np.sqrt(np.mean(self.trial.torque[rows.joint == j] ** 2))) for j in rows.joints
        }

    def add(self, mistake: Mistake, at: int) -> Array | None:
        """Form columns of an effect from place `at` on; its natural sizes, None if it has none."""
        effect, trial = EFFECTS[mistake.kind], self.trial
        around = self.model, trial.beta, trial.setup.base.robot.gravity
        places = (Place(self.rows, part, mistake, *around) for part in self.rows.parts)
        columns = np.concatenate([effect.columns(p) for p in places], axis=2)  # (k, dof, M)
        joints = [mistake.joint] if mistake.joint >= 0 else list(self.rows.joints)
        size = np.sqrt(np.mean(columns[:, joints] ** 2, axis=(1, 2)))
        largest = max(self._largest.get(mistake.kind, 0.0), float(size.max()))
        self._largest[mistake.kind] = largest
        if not (size > TINY * largest).all():
            return None
        if effect.natural is None:
            scale = SHARE * self.torque[mistake.joint] / size
        else:
            scale = np.full(len(size), effect.natural)
        for j in self.rows.joints:
            if columns[:, j].any():
                self._of[j].append(columns[:, j].T * scale)
                self._places[j] += range(at, at + len(scale))
        return np.asarray(scale)

    def of(self, joint: int) -> list[Array]:
        """Columns of a joint's rows, each (rows, k)."""
        return self._of[joint]

    def places(self, joint: int) -> list[int]:
        """Places among all columns."""
        return self._places[joint]


def blocks_of(rows: Rows) -> tuple[Places, int]:
    """The block of every row and their number: of equal length in time, or in the phase of a
    motion that repeats, so that no block was seen in another.
    """
    runs = [p.run for p in rows.parts]
    seconds = sum(len(run) / run.rate for run in runs)
    period = repeat_period(runs[0].q, 1.0 / runs[0].rate) if len(runs) == 1 else None
    if period is not None:
        seconds, when = period, np.mod(rows.t - rows.t[0], period)
    else:
        when = rows.t + 1e6 * rows.run
    count = int(np.clip(seconds / BLOCK_SECONDS // FOLDS, 1, BLOCKS // FOLDS)) * FOLDS
    every = np.sort(when[rows.joint == rows.joints[0]])
    place = np.searchsorted(every, when - 1e-9)
    return np.minimum(place * count // len(every), count - 1).astype(np.intp), count


REPEATS, LEAST_PERIOD = 0.02, 2.0
"""Share of its range by which a motion may differ from itself one period later, and the shortest
such period [s]: joints that repeat a command differ by less."""


def repeat_period(q: Array, step: float) -> float | None:
    """The period [s] of a motion (N, dof) that repeats within a log; None where none does."""
    stride = max(1, int(0.02 / step))
    x = q[::stride]
    x = (x - x.mean(axis=0))[:, np.ptp(x, axis=0) > 1e-3]
    if not x.shape[1] or len(x) < 50:
        return None
    x = x / np.ptp(x, axis=0)
    least = int(LEAST_PERIOD / (step * stride))
    for lag in range(max(least, 1), len(x) * 2 // 3):
        if np.abs(x[lag] - x[0]).max() < 2 * REPEATS:
            difference = x[lag:] - x[:-lag]
            if np.sqrt(np.mean(difference**2)) < REPEATS and np.abs(x[:lag] - x[0]).max() > 0.2:
                return lag * step * stride
    return None


def grams_of_reduced(
    reduced: Reduced,
    wide: BaseParameters,
    plain: BaseParameters,
    words: Sequence[str],
    beta: Array,
    spread: Array,
    noise: Noise,
) -> BlockGrams:
    """Gram matrices of reduced equations with columns of joint terms, a block for every fold.

    An effect's joint is the number of its drive. `beta` and its covariance `spread` are those of
    the base parameters without these terms, `plain`.
    """
    names = {name: k for k, name in enumerate(_columns(plain))}
    nb, columns, place = len(names), _columns(wide), dict(names)
    items, at = dict[Mistake, Places](), nb
    for effect in (e for e in EFFECTS.values() if {*e.terms[:1]} & {*words}):
        for k in range(len(wide.robot.drives)):
            numbers = wide.robot.drive_columns(k)
            symbols = (s for s in SEARCHED[effect.terms[0]] if s in numbers)
            named = [wide.robot.parameter_names[numbers[s]] for s in symbols]
            new = [name for name in named if name in columns and name not in names]
            if new:
                items[Mistake(effect.name, k)] = np.arange(at, at + len(new))
                place |= {name: at + i for i, name in enumerate(new)}
                at += len(new)
    scales, joints = np.full(at - nb, np.inf), list[JointGram]()
    for j, support in enumerate(reduced.supports):
        keep = [i for i, c in enumerate(support) if columns[c] in place]
        places = np.array([*(place[columns[support[i]]] for i in keep), at], dtype=np.intp)
        change = np.eye(len(keep) + 1)
        change[:-1, -1] = [-beta[p] if p < nb else 0.0 for p in places[:-1]]
        grams = []
        for fold in range(FOLDS):
            rows, counts, slowness = reduced.strata[j].select_folds([fold])
            whitened = rows / noise.deviations(j, slowness)[:, None, None]
            x = whitened[counts > 0].reshape(-1, rows.shape[-1])[:, [*keep, len(support)]]
            grams.append(x.T @ x)
        size = np.sqrt(np.einsum("fii->i", np.array(grams)))
        for p, own in zip(places[:-1], size[:-1], strict=True):
            if p >= nb and own > 0:
                scales[p - nb] = min(scales[p - nb], SHARE * size[-1] / own)
        blocks = np.einsum("ji,fjk,kl->fil", change, np.array(grams), change)
        if size[-1] > 0:
            joints.append(JointGram(j, places, blocks, int(reduced.strata[j].counts.sum())))
    scales = np.where(np.isfinite(scales), scales, 1.0)
    joints = [own for own in joints if own.blocks[:, -1, -1].any()]
    scaled = []
    for own in joints:
        factor = np.array([scales[p - nb] if nb <= p < at else 1.0 for p in own.places])
        scaled.append(replace(own, blocks=own.blocks * np.outer(factor, factor)))
    values, vectors = np.linalg.eigh(spread)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return BlockGrams(scaled, items, scales, root)


def _columns(base: BaseParameters) -> list[tuple[str, str]]:
    """Names of the parameters whose columns equations have."""
    return [base.robot.parameter_names[int(c)] for c in base.independent]
