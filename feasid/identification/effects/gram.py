"""Gram matrices of a log's equations and of the columns of effects, block by block.

Around a feasible model with base parameters beta, covariance P and residual e the whitened rows of
joint j are [W, E, e]: regressor, columns of effects, residual. Everything that a search needs (the
fit with some effects, its error on a held-out block) follows from sums of their products over
blocks of the log. Equations are solved for coordinates of beta in which data and prior add up to
the identity, so that no direction that the log leaves open is inverted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from feasid.core.arrays import Array
from feasid.core.errors import LimitError
from feasid.identification.effects.corrected_log import CorrectedLog
from feasid.identification.effects.table import EFFECTS, EffectAt, columns_by_joint
from feasid.identification.estimation.noise import Noise
from feasid.identification.regression.folds import EDGES, FOLDS, find_period, triangularise
from feasid.identification.regression.rows import Rows
from feasid.identification.regression.triangle import Reduced
from feasid.parameters.identifiability.base import BaseParameters
from feasid.robot.joint_terms import SEARCHED

Places = npt.NDArray[np.intp]

BLOCKS, BLOCK_SECONDS = 25, 0.4  #: Blocks of a log at most, and their least length [s].

SHARE = 0.1  #: Natural size of a coefficient without one: this share of its joint's torque.

MOST_ROWS = 4000  #: Rows of a joint that a search reads, about: 200 s of a log at 8 Hz.

WIDTH = 3.0
"""Prior standard deviation of a coefficient, in natural sizes. Four widths from .1 to 3 gave the
same on real logs (.914 against .904 of the errors without them) and in simulation."""

SEARCH_SHARE = 4.0  #: Memory of a search over that of its products by block.
TINY = 1e-7  #: Share of the largest column of an effect below which a column is rounding.


@dataclass(frozen=True, eq=False)
class JointGram:
    """One joint's whitened rows, or fewer that have the same products in every block."""

    places: Places  #: Its columns among [beta, effects, residual], (k,).
    factor: Array  #: (m, k)
    block: Places  #: Block of every row of `factor`, (m,).
    rows: int  #: Of the log.


@dataclass(frozen=True, eq=False)
class FoldProducts:
    """Weighted products of columns over each fold of the log, formed where asked for.

    The matrix of all columns would grow with the fourth power of the joints and hold zeros: ripple
    is a column of its own joint's rows only. A block has fewer rows than columns in short logs, so
    that rows take less memory than their products.
    """

    #: By joint and fold its columns, one after the other in memory: most products need a few.
    columns: Sequence[Sequence[Array]]
    weights: Array  #: By joint.
    local: Places  #: Number of every column at every joint, -1 for none, (joints, size + 1).

    def between(self, rows: Places, columns: Places) -> Array:
        """Products of some columns with others, (folds, rows, columns)."""
        out = np.zeros((len(self.columns[0]), len(rows), len(columns)))
        for folds, weight, local in zip(self.columns, self.weights, self.local, strict=True):
            r, c = np.flatnonzero(local[rows] >= 0), np.flatnonzero(local[columns] >= 0)
            place, first, second = np.ix_(r, c), local[rows[r]], local[columns[c]]
            for products, columns_of_fold in zip(out, folds, strict=True):
                products[place] += weight * (columns_of_fold[first] @ columns_of_fold[second].T)
        return out

    def within(self, places: Places) -> Array:
        """Products of columns of effects with each other, for places (n, k): (folds, n, k, k)."""
        out = np.zeros((len(self.columns[0]), *places.shape, places.shape[1]))
        for folds, weight, local in zip(self.columns, self.weights, self.local, strict=True):
            here = local[places]
            some = np.flatnonzero((here >= 0).any(axis=1))
            # Of an effect at all joints few columns are in the rows of one: these come first.
            order = np.argsort(here[some] < 0, axis=1, kind="stable")
            order = order[:, : (here >= 0).sum(axis=1).max(initial=0)]
            number = np.take_along_axis(here[some], order, axis=1)
            at = some[:, None, None], order[:, :, None], order[:, None, :]
            for products, columns in zip(out, folds, strict=True):
                x = columns[number] * (number >= 0)[:, :, None]
                products[at] += weight * (x @ x.transpose(0, 2, 1))
        return out


class BlockGrams:
    """Gram matrices of a log around a feasible model."""

    def __init__(
        self,
        joints: Sequence[JointGram],
        items: Mapping[EffectAt, Places],
        scales: Array,
        root: Array,
    ) -> None:
        self.joints, self.items, self.scales = tuple(joints), dict(items), scales
        self.root, self.nb = root, len(root)  #: P = root root', (nb, nb)
        self.size = self.nb + len(scales)
        self.residual: Places = np.array([self.size], dtype=np.intp)  #: Its place.
        self.count = 1 + max(int(gram.block.max()) for gram in self.joints)
        self.weights = np.ones(len(self.joints))
        self.local = np.full((len(self.joints), self.size + 1), -1, dtype=np.intp)
        for numbers, gram in zip(self.local, self.joints, strict=True):
            numbers[gram.places] = np.arange(len(gram.places))
        self._by_fold: dict[bool, list[list[Array]]] = {}
        products = self._of_all(np.arange(self.nb))
        values, vectors = np.linalg.eigh(np.eye(self.nb) - root.T @ products[:, :-1] @ root)
        # What the data lack of the identity is the prior; rounding must not make it indefinite.
        self.prior = (vectors * np.maximum(values, 1e-9)) @ vectors.T
        self.pull = -products[:, -1]

    def by_fold(self, timed: bool) -> FoldProducts:
        """Weighted products over folds of the log; see `fold_of`."""
        if timed not in self._by_fold:
            fold = self.fold_of(timed)
            self._by_fold[timed] = [
                [np.ascontiguousarray(gram.factor[fold[gram.block] == f].T) for f in range(FOLDS)]
                for gram in self.joints
            ]
        return FoldProducts(self._by_fold[timed], self.weights, self.local)

    def _of_all(self, use: Places) -> Array:
        """Products of columns with each other and the residual over the whole log."""
        total = FoldProducts([[gram.factor.T] for gram in self.joints], self.weights, self.local)
        return np.asarray(total.between(use, np.r_[use, self.residual])[0])

    def columns(self, effects: Sequence[EffectAt]) -> Places:
        """Places of the columns of these effects."""
        return np.concatenate([np.zeros(0, dtype=np.intp), *(self.items[m] for m in effects)])

    def solve(self, products: Array) -> tuple[Array, Array]:
        """Coefficients of beta and effects with their priors, (..., use), and the inverse of the
        normal equations, of `products` with each other and the residual, (..., use, use + 1).

        The equations are solved for the coordinates of `root`.
        """
        n, size = self.nb, products.shape[-2]
        change = np.eye(size)
        change[:n, :n] = self.root
        M = change.T @ products[..., :-1] @ change
        M[..., :n, :n] += self.prior
        effects = np.arange(n, size)
        M[..., effects, effects] += 1.0 / WIDTH**2
        inverse = change @ np.linalg.inv(M) @ change.T
        right = products[..., -1:].copy()
        right[..., :n, 0] += self.pull
        return (inverse @ right)[..., 0], inverse

    def values(
        self, effects: Sequence[EffectAt]
    ) -> tuple[dict[EffectAt, Array], dict[EffectAt, Array]]:
        """Values of these effects together, and their deviations [SI]."""
        use = np.r_[np.arange(self.nb), self.columns(effects)]
        solution, deviation = np.zeros(self.size), np.zeros(self.size)
        solution[use], inverse = self.solve(self._of_all(use))
        deviation[use] = np.sqrt(np.maximum(np.diag(inverse), 0.0))  # of no noise: rounding
        in_si = np.r_[np.ones(self.nb), self.scales] * np.stack([solution, deviation])
        value, spread = ({m: x[self.items[m]] for m in effects} for x in in_si)
        return value, spread

    def weigh(self, effects: Sequence[EffectAt]) -> None:
        """Weight every joint by its residual with these effects."""
        use, coefficients = np.r_[np.arange(self.nb), self.columns(effects)], np.zeros(self.size)
        coefficients[use], _ = self.solve(self._of_all(use))
        squared = self.squared(np.tile(coefficients, (self.count, 1))).sum(axis=0)
        rows = np.array([gram.rows for gram in self.joints])
        self.weights = rows / np.maximum(squared, 1e-12 * rows)

    def fold_of(self, timed: bool) -> Places:
        """The fold of every block: fifths, or blocks in turn for functions of time."""
        b = np.arange(self.count)
        return b % FOLDS if timed else b * FOLDS // self.count

    def squared(self, coefficients: Array) -> Array:
        """Squared errors by block and joint with coefficients of all columns, (blocks, size)."""
        both, out = np.insert(-coefficients, self.size, 1.0, axis=1), list[Array]()
        for gram in self.joints:
            errors = np.sum(gram.factor * both[gram.block[:, None], gram.places], axis=1)
            out.append(np.asarray(np.bincount(gram.block, errors**2, self.count), dtype=np.float64))
        return np.stack(out, axis=1)

    @classmethod
    def from_log(cls, trial: CorrectedLog, effects: Iterable[EffectAt]) -> BlockGrams:
        """Gram matrices of a log row by row, with the effects that it can show."""
        rows, sample = trial.rows.sample(MOST_ROWS)
        share, gravity = float(sample.mean()), trial.setup.base.robot.gravity
        K = np.asarray(trial.base.K, dtype=np.float64)
        values, vectors = np.linalg.eigh(K @ trial.unit_covariance @ K.T)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        model = trial.base.robot.with_values(trial.delta)
        torque = trial.torque[sample]
        size = np.sqrt(np.mean(torque.reshape(len(rows.joints), -1) ** 2, axis=1))
        natural = dict(zip(rows.joints, SHARE * size, strict=True))
        largest = dict[str, float]()
        own_columns = {j: list[Array]() for j in rows.joints}
        own_places = {j: list[int]() for j in rows.joints}
        items, scales, end = dict[EffectAt, Places](), list[Array](), len(root)
        for at in effects:
            by_joint = columns_by_joint(rows, at, model, trial.beta, gravity)
            felt = [at.joint] if at.joint >= 0 else rows.joints
            squares = [np.mean(by_joint[j] ** 2, axis=0) for j in felt if j in by_joint]
            size = np.sqrt(np.sum(squares, axis=0) / len(felt)) * np.ones(at.effect.size)
            largest[at.kind] = max(largest.get(at.kind, 0.0), float(size.max()))
            if not (size > TINY * largest[at.kind]).all():
                continue  # rounding: the log does not show it
            unit = at.effect.natural
            scale = natural[at.joint] / size if unit is None else np.full(len(size), unit)
            items[at] = np.arange(end, end + len(scale))
            scales.append(scale)
            for j, columns in by_joint.items():
                own_columns[j].append(columns * scale)
                own_places[j] += items[at].tolist()
            end += len(scale)
        # The block of every row and their number: of equal length in time, or in the phase of a
        # motion that repeats, so that no block was seen in another.
        runs = [p.run for p in trial.rows.parts]
        seconds = sum(len(run) / run.rate for run in runs)
        period = find_period(runs) if len(runs) == 1 else None
        if period is not None:
            seconds, when = period, np.mod(rows.t - rows.t[0], period)
        else:
            when = rows.t + 1e6 * rows.run  # [s], so that runs lie behind each other
        count = int(np.clip(seconds / BLOCK_SECONDS // FOLDS, 1, BLOCKS // FOLDS)) * FOLDS
        when = when[: len(when) // len(rows.joints)]  # as of all joints
        # A nanosecond less: rows of one time, as in each period, get one place despite rounding.
        place = np.searchsorted(np.sort(when), when - 1e-9)
        block = np.minimum(place * count // len(when), count - 1).astype(np.intp)
        widths = [len(rows.supports[j]) + len(own_places[j]) + 1 for j in rows.joints]
        require_memory(SEARCH_SHARE * 8.0 * len(when) * sum(widths), len(widths))
        residual = rows.by_joint(torque - rows.predict(trial.beta))
        # Those of a sample stand for all.
        deviations = rows.by_joint(trial.row_deviations[sample] * np.sqrt(share))
        joints = []
        for j in rows.joints:
            parts = [rows.regressors[j], *own_columns.pop(j), residual[j][:, None]]
            X = np.hstack(parts) / deviations[j][:, None]
            places = np.r_[rows.supports[j], own_places[j], end].astype(np.intp)
            blocks = [X[block == b] for b in range(count)]
            # A triangle has the products of any number of rows.
            blocks = [triangularise(x) if len(x) > 2 * len(places) else x for x in blocks]
            number = np.repeat(np.arange(count), [*map(len, blocks)])
            joints.append(JointGram(places, np.concatenate(blocks), number, round(len(X) / share)))
        return cls(joints, items, np.concatenate([np.zeros(0), *scales]), root)


def require_memory(needed: float, joints: int) -> None:
    """Refuse a search for which machine or process lack memory [bytes], before it is full."""
    known = "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ())  # not on Windows
    there = float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE") if known else np.inf
    try:
        np.empty(int(needed), np.uint8)  # address space alone: nothing is written there
    except MemoryError:
        there = 0.0
    if needed > there:
        raise LimitError(
            f"a search for effects of {joints} joints needs about {needed / 1e9:.2g} GB more, "
            "which the machine does not have or a limit of the process forbids: fit "
            "feasid.reduce(log, robot), of which joint terms alone are searched",
            needed=needed,
        )


def fold_grams(
    log: Reduced, beta: Array, noise: Noise, rows: Rows | None, effects: Array, size: int
) -> Array:
    """Per fold and joint the Gram matrix of [W, W_j beta of each joint, effects, residual],
    whitened; of rows, or of a reduction without the effects (rows, columns).
    """
    nb, dof = len(beta), len(log.triangles)
    out = np.zeros((FOLDS, dof, size + 1, size + 1))
    for j, (strata, support) in enumerate(zip(log.strata, log.supports, strict=True)):
        columns = list(support)
        for f in range(FOLDS):
            if rows is None or j not in rows.joints:
                parts, counts, slowness = strata.select_folds([f])
                scaled = parts / noise.deviations(j, slowness)[:, None, None]
                stacked = scaled[counts > 0].reshape(-1, parts.shape[2])[:, :-1]
                wide = np.zeros((len(stacked), size + 1))
                wide[:, columns], torque = stacked[:, :-1], stacked[:, -1]
            else:
                mine = (rows.joint == j) & (rows.fold == f)
                level = np.searchsorted(EDGES, rows.slowness[mine])  # as a reduction has it
                slow = np.bincount(level, rows.slowness[mine] ** 2) / np.bincount(level).clip(1)
                weight = 1.0 / noise.deviations(j, slow[level])
                wide = np.zeros((len(weight), size + 1))
                wide[:, columns] = rows.regressors[j][mine[rows.joint == j]] * weight[:, None]
                wide[:, nb + dof : -1] = effects[mine] * weight[:, None]
                torque = rows.torque[mine] * weight
            wide[:, nb + j] = wide[:, columns] @ beta[columns]
            wide[:, -1] = torque - wide[:, nb + j]
            out[f, j] = wide.T @ wide
    return out


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
    items, at = dict[EffectAt, Places](), nb
    for effect in (e for e in EFFECTS.values() if {*e.terms[:1]} & {*words}):
        for k in range(len(wide.robot.drives)):
            numbers = wide.robot.drive_columns(k)
            symbols = (s for s in SEARCHED[effect.terms[0]] if s in numbers)
            named = [wide.robot.parameter_names[numbers[s]] for s in symbols]
            new = [name for name in named if name in columns and name not in names]
            if new:
                items[EffectAt(effect.name, k)] = np.arange(at, at + len(new))
                place |= {name: at + i for i, name in enumerate(new)}
                at += len(new)
    scales, joints = np.full(at - nb, np.inf), list[JointGram]()
    for j, support in enumerate(reduced.supports):
        keep = [i for i, c in enumerate(support) if columns[c] in place]
        places = np.array([*(place[columns[support[i]]] for i in keep), at], dtype=np.intp)
        change = np.eye(len(keep) + 1)
        # From the torque to the residual: columns times beta are subtracted.
        change[:-1, -1] = [-beta[p] if p < nb else 0.0 for p in places[:-1]]
        parts = []
        for fold in range(FOLDS):
            rows, counts, slowness = reduced.strata[j].select_folds([fold])
            whitened = rows / noise.deviations(j, slowness)[:, None, None]
            parts.append(whitened[counts > 0].reshape(-1, rows.shape[-1])[:, [*keep, len(support)]])
        X, block = np.concatenate(parts), np.repeat(np.arange(FOLDS), [*map(len, parts)])
        size = np.linalg.norm(X, axis=0)
        for p, length in zip(places[:-1], size[:-1], strict=True):
            if p >= nb and length > 0:
                scales[p - nb] = min(scales[p - nb], SHARE * size[-1] / length)
        X = X @ change
        if size[-1] > 0 and X[:, -1].any():
            joints.append(JointGram(places, X, block, int(reduced.strata[j].counts.sum())))
    scales = np.where(np.isfinite(scales), scales, 1.0)
    factors = np.concatenate([np.ones(nb), scales, [1.0]])
    scaled = [replace(gram, factor=gram.factor * factors[gram.places]) for gram in joints]
    values, vectors = np.linalg.eigh(spread)
    return BlockGrams(scaled, items, scales, vectors * np.sqrt(np.maximum(values, 0.0)))


def _columns(base: BaseParameters) -> list[tuple[str, str]]:
    return [base.robot.parameter_names[int(c)] for c in base.independent]
