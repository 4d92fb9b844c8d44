"""What the search does on Gram matrices is least squares on the rows themselves."""

import os
import tracemalloc

import numpy as np
import pytest

import feasid
from feasid.core.errors import LimitError
from feasid.identification.effects.gram import WIDTH, BlockGrams, JointGram, require_memory
from feasid.identification.effects.search import EffectSearch, _Folds
from feasid.identification.effects.table import EffectAt

BLOCKS, ROWS, NB = 25, 40, 3
RNG = np.random.default_rng(0)
ROUNDING = 1e-9


def grams_with(theta, kinds=("spring", "direction"), alike=0.0):
    """Two joints with three base parameters, and two effects at each joint."""
    effects = [EffectAt(kind, joint) for kind in kinds for joint in (0, 1)]
    items = {effect: np.array([NB + k]) for k, effect in enumerate(effects)}
    rows, joints = [], []
    for j in (0, 1):
        places = np.array([0, 1, 2, NB + j, NB + 2 + j, NB + 4])
        X = RNG.normal(size=(BLOCKS * ROWS, 6))
        X[:, 4] += alike * X[:, 3]
        X[:, -1] = RNG.normal(size=len(X)) + X[:, 3] * theta[j]
        joints.append(JointGram(places, X, np.repeat(np.arange(BLOCKS), ROWS), len(X)))
        rows.append(X)
    W = np.vstack([X[:, :NB] for X in rows])
    spread = np.linalg.inv(W.T @ W + np.eye(NB))
    return rows, BlockGrams(joints, items, np.ones(4), np.linalg.cholesky(spread))


def test_values_are_those_of_least_squares_on_the_rows():
    rows, grams = grams_with([2.0, 0.0])
    chosen = [EffectAt("spring", 0), EffectAt("direction", 1)]
    values, _ = grams.values(chosen)
    X = np.vstack(rows)
    W, e = X[:, :NB], X[:, -1]
    E = np.zeros((len(X), 2))
    E[: len(rows[0]), 0], E[len(rows[0]) :, 1] = rows[0][:, 3], rows[1][:, 4]
    # Around the fit the prior holds what the gradient of the rows pulls.
    M = np.block([[W.T @ W + np.eye(NB), W.T @ E], [E.T @ W, E.T @ E + np.eye(2) / WIDTH**2]])
    found = np.linalg.solve(M, np.r_[np.zeros(NB), E.T @ e])[NB:]
    assert [values[m][0] for m in chosen] == pytest.approx(found, abs=ROUNDING)


def test_savings_are_those_of_least_squares_without_the_fold():
    rows, grams = grams_with([1.0, 0.3])
    single = [(EffectAt(k, j),) for k in ("spring", "direction") for j in (0, 1)]
    chosen, fold = [EffectAt("spring", 0)], grams.fold_of(False)
    groups = [*single[1:], (EffectAt("direction", 0), EffectAt("direction", 1))]
    saved = _Folds(grams, chosen, False).savings(groups)
    wide = np.zeros((2, BLOCKS * ROWS, NB + 4))
    for k, X in enumerate(rows):
        wide[k][:, grams.joints[k].places[:-1]] = X[:, :-1]
    own, e, prior = np.repeat(fold, ROWS), [X[:, -1] for X in rows], np.eye(NB + 4) / WIDTH**2
    prior[:NB, :NB] = np.linalg.inv(grams.root @ grams.root.T)
    prior[:NB, :NB] -= sum(x[:, :NB].T @ x[:, :NB] for x in wide)
    pull = -sum(x[:, :NB].T @ y for x, y in zip(wide, e, strict=True))

    def loss(group):
        use, total = np.r_[np.arange(NB), grams.columns([*chosen, *group])], 0.0
        for f in range(fold.max() + 1):
            M, g = prior[np.ix_(use, use)], np.r_[pull, np.zeros(len(use) - NB)]
            for x, y in zip(wide, e, strict=True):
                left = x[own != f][:, use]
                M, g = M + left.T @ left, g + left.T @ y[own != f]
            theta = np.linalg.solve(M, g)
            total += sum(np.sum((y - x[:, use] @ theta)[own == f] ** 2)
                         for x, y in zip(wide, e, strict=True))  # fmt: skip
        return total

    for group in groups:
        assert saved[group] == pytest.approx(1 - loss(group) / loss(()), abs=1e-7), group


def test_a_search_holds_no_matrix_of_all_columns():
    """24 joints with the waves of all: one matrix of all columns takes 50 MB."""
    joints, nb, waves, rng, items, grams = 24, 200, 48, np.random.default_rng(1), {}, []
    for j in range(joints):
        for w in range(waves):
            items[EffectAt("ripple", j, float(w))] = nb + 2 * (j * waves + w) + np.arange(2)
    size = nb + 2 * joints * waves
    for j in range(joints):
        own = nb + 2 * waves * j + np.arange(2 * waves)
        places = np.r_[np.arange(7 * j % 180, 7 * j % 180 + 20), own, size]
        x, block = rng.normal(size=(8 * BLOCKS, len(places))), np.repeat(np.arange(BLOCKS), 8)
        grams.append(JointGram(places, x, block, 8 * BLOCKS))
    tracemalloc.start()
    EffectSearch(BlockGrams(grams, items, np.ones(size - nb), 0.05 * np.eye(nb))).run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.4 * size**2 * 8


def test_what_is_there_enters_at_its_joint_and_nothing_else():
    _, grams = grams_with([1.0, 0.0])
    entered, *others = EffectSearch(grams).run()
    assert entered.effects == (EffectAt("spring", 0),)
    assert entered.values[0][0] == pytest.approx(1.0, abs=0.1)
    assert all(c.why and not c.entered for c in others)
    assert not any(c.entered for c in EffectSearch(grams_with([0.0, 0.0])[1]).run())


def test_an_effect_of_a_wrong_sign_does_not_enter():
    result = EffectSearch(grams_with([-1.0, 0.0], ("sqrt", "direction"))[1]).run()
    assert not any(c.entered for c in result)
    assert any("sign" in c.why for c in result)


def test_no_term_stands_for_a_feature_of_an_impossible_sign():
    for sign, entered in ((1.0, ["elastic"]), (-1.0, [])):
        _, grams = grams_with([sign, 0.0], ("elastic", "spring"), alike=1.0)
        result = EffectSearch(grams).run()
        assert [c.effect.name for c in result if c.entered] == entered
    assert result[0].why == "its sign is impossible"


def test_held_out_errors_are_those_of_the_rows():
    rows, grams = grams_with([1.0, 0.5])
    coefficients = RNG.normal(size=grams.size)
    raw = np.r_[-coefficients, 1.0]
    found = grams.squared(np.tile(coefficients, (BLOCKS, 1)))
    for k, X in enumerate(rows):
        missed = (X @ raw[grams.joints[k].places]) ** 2
        np.testing.assert_allclose(found[:, k], missed.reshape(BLOCKS, ROWS).sum(axis=1))


def test_a_search_that_the_memory_does_not_hold_is_refused_before_it_is_full(monkeypatch):
    require_memory(1e9, 7)
    for size, needed in ((2**10, 14e9), (2**40, 2.0**48)):  # beyond the machine, and any addresses
        monkeypatch.setattr(os, "sysconf", lambda name, size=size: size)
        with pytest.raises(LimitError, match=r"60 joints needs about \S+ GB more"):
            require_memory(needed, 60)


def test_a_fit_in_which_all_of_it_is_off_searches_nothing(monkeypatch):
    monkeypatch.setattr(EffectSearch, "run", None)
    fit = feasid.fit(feasid.datasets.load("arm"), diagnose=False, calibration=None, candidates=())
    assert fit.selection.empty
