"""What the search does on Gram matrices is least squares on the rows themselves."""

import numpy as np
import pytest

from feasid.identification.effects.gram import WIDTH, BlockGrams, JointGram, repeat_period
from feasid.identification.effects.search import EffectSearch
from feasid.identification.effects.table import Mistake

BLOCKS, ROWS, NB = 25, 40, 3
RNG = np.random.default_rng(0)
ROUNDING = 1e-9


def grams_with(theta, kinds=("spring", "direction"), alike=0.0):
    """Two joints with three base parameters, and two effects at each joint."""
    items = {Mistake(k, j): np.array([NB + 2 * i + j]) for i, k in enumerate(kinds) for j in (0, 1)}
    rows, joints = [], []
    for j in (0, 1):
        places = np.array([0, 1, 2, NB + j, NB + 2 + j, NB + 4])
        X = RNG.normal(size=(BLOCKS * ROWS, 6))
        X[:, 4] += alike * X[:, 3]
        X[:, -1] = RNG.normal(size=len(X)) + X[:, 3] * theta[j]
        blocks = np.array([x.T @ x for x in X.reshape(BLOCKS, ROWS, 6)])
        joints.append(JointGram(j, places, blocks, len(X)))
        rows.append(X)
    W = np.vstack([X[:, :NB] for X in rows])
    spread = np.linalg.inv(W.T @ W + np.eye(NB))
    return rows, BlockGrams(joints, items, np.ones(4), np.linalg.cholesky(spread))


def test_values_are_those_of_least_squares_on_the_rows():
    rows, grams = grams_with([2.0, 0.0])
    chosen = [Mistake("spring", 0), Mistake("direction", 1)]
    values, _ = grams.values(chosen)
    X = np.vstack(rows)
    W, e = X[:, :NB], X[:, -1]
    E = np.zeros((len(X), 2))
    E[: len(rows[0]), 0], E[len(rows[0]) :, 1] = rows[0][:, 3], rows[1][:, 4]
    # Around the fit the prior holds what the gradient of the rows pulls.
    M = np.block([[W.T @ W + np.eye(NB), W.T @ E], [E.T @ W, E.T @ E + np.eye(2) / WIDTH**2]])
    found = np.linalg.solve(M, np.r_[np.zeros(NB), E.T @ e])[NB:]
    assert [values[m][0] for m in chosen] == pytest.approx(found, abs=ROUNDING)


def test_what_is_there_enters_at_its_joint_and_nothing_else():
    _, grams = grams_with([1.0, 0.0])
    result = EffectSearch(grams).run()
    assert result.mistakes == [Mistake("spring", 0)]
    assert result.values[Mistake("spring", 0)][0] == pytest.approx(1.0, abs=0.1)
    assert all(t.why for t in result.tried)
    assert EffectSearch(grams_with([0.0, 0.0])[1]).run().mistakes == []


def test_an_effect_of_a_wrong_sign_does_not_enter():
    result = EffectSearch(grams_with([-1.0, 0.0], ("sqrt", "direction"))[1]).run()
    assert result.mistakes == []
    assert any("sign" in t.why for t in result.tried)


def test_no_term_stands_for_a_feature_of_an_impossible_sign():
    for sign, entered in ((1.0, ["elastic"]), (-1.0, [])):
        _, grams = grams_with([sign, 0.0], ("elastic", "spring"), alike=1.0)
        result = EffectSearch(grams).run()
        assert [m.kind for m in result.mistakes] == entered
    assert result.tried[0].why == "its sign is impossible"


def test_held_out_errors_are_those_of_the_rows():
    rows, grams = grams_with([1.0, 0.5])
    coefficients = RNG.normal(size=grams.size)
    raw = np.r_[-grams.root @ coefficients[:NB], -coefficients[NB:], 1.0]
    found = grams.squared(coefficients, np.arange(BLOCKS))
    for k, X in enumerate(rows):
        missed = (X @ raw[grams.joints[k].places]) ** 2
        np.testing.assert_allclose(found[:, k], missed.reshape(BLOCKS, ROWS).sum(axis=1))


@pytest.mark.parametrize(
    ("times", "period"), [((2.0 / 3.0, 1.0 / 3.0), 3.0), ((0.31, 0.2193), None)]
)
def test_a_motion_that_repeats_is_seen(times, period):
    t = np.arange(0, 14, 1e-2)
    q = np.stack([np.sin(2 * np.pi * f * t) for f in times], axis=1)
    found = repeat_period(q, 1e-2)
    assert found is None if period is None else found == pytest.approx(period, abs=0.05)
    assert repeat_period(0 * q, 1e-2) is None
