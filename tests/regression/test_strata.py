"""Strata against sums over all rows, whatever pieces these came in, and what files keep of them."""

import io
from dataclasses import replace

import numpy as np
import pytest

import feasid
from feasid.identification.regression import folds
from feasid.identification.regression.triangle import Reduced

SUMS = 1e-11  # some thousand products of numbers of order one, in another order
DISTANCES = (0, 1, 2, 3, 4, 6, 8, 11, 15, 20)  # files of earlier versions hold products at these
EDGES = (0.01, 0.05, 0.15, 0.3, 0.5)  # and triangles of the classes between these


def drawn(rng, size, count):
    """Rows, the same unfiltered, slowness in every class, folds, and the torque's slope."""
    rows, raw = rng.standard_normal((2, size, count))
    slow = np.where(rng.random(count) < 0.3, 0.0, rng.random(count) ** 2)
    return rows, raw, slow, rng.integers(0, 5, count), rng.standard_normal(count)


def built(pieces, size):
    builder = folds.StrataBuilder(size)
    for piece in pieces:
        builder.add(*piece) if piece else builder.restart()
    return builder.result()


def cut(whole, *places):
    return [tuple(x[..., a:b] for x in whole) for a, b in zip((0, *places), (*places, None))]  # noqa: B905


def gram(triangle):
    return np.swapaxes(triangle, -1, -2) @ triangle


def same(a, b):
    for name in ("counts", "slowness", "products", "pairs"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=SUMS)
    for name in ("triangles", "raw"):
        np.testing.assert_allclose(gram(getattr(a, name)), gram(getattr(b, name)), atol=SUMS)


@pytest.mark.parametrize(
    "places", [(), (1,), (3, 17, 18, 40), (folds.TOGETHER - 1, folds.TOGETHER, 1300)]
)
def test_strata_are_sums_over_rows_however_these_come(places):
    size, count = 3, 1400
    whole = drawn(np.random.default_rng(0), size, count)
    rows, raw, slow, fold, slope = whole
    found = built(cut(whole, *places), size)
    z, quick = np.vstack([rows, slope]), 1.0 - slow
    level = np.sum(slow[:, None] > np.array(EDGES), axis=1)
    for c in range(6):
        for f in range(5):
            own = (level == c) & (fold == f)
            assert found.counts[c, f] == own.sum()
            assert found.slowness[c, f] == pytest.approx(np.sum(slow[own] ** 2), abs=SUMS)
            products = z[:, own] @ z[:, own].T
            np.testing.assert_allclose(gram(found.triangles[c, f]), products, atol=SUMS)
    assert np.tril(found.triangles, -1).any() == np.tril(found.raw, -1).any() == False  # noqa: E712
    np.testing.assert_allclose(gram(found.raw), raw @ raw.T, atol=SUMS)
    np.testing.assert_allclose(gram(found.total_triangle), rows @ rows.T, atol=SUMS)
    assert len(found.pairs) == len(found.products) == len(DISTANCES)
    for lag, product, pairs in zip(DISTANCES, found.products, found.pairs, strict=True):
        a, b = (z * quick)[:, lag:], (z * quick)[:, : count - lag]
        np.testing.assert_allclose(product, (a @ b.T + b @ a.T) / 2, atol=SUMS)
        assert pairs == pytest.approx(quick[lag:] @ quick[: count - lag], abs=SUMS)


def test_rows_before_a_restart_are_no_neighbours():
    size = 2
    one, two = (drawn(np.random.default_rng(k), size, n) for k, n in ((1, 30), (2, 7)))
    together = built([one, (), two], size)
    same(together, folds.sum_strata([built([one], size), built([two], size)]))
    joined = built([one, two], size)
    np.testing.assert_array_equal(together.pairs[0], joined.pairs[0])
    assert (together.pairs[1:] < joined.pairs[1:]).all()


def test_without_slopes_nothing_is_known_of_delays():
    whole = drawn(np.random.default_rng(3), 2, 50)
    found = built([whole[:4]], 2)
    assert not found.triangles[..., -1].any()
    same(found, built([(*whole[:4], np.zeros(50))], 2))
    same(found.with_shifted_torques(0.3), found)


def test_a_delay_adds_the_slope_to_the_torque():
    rows, raw, slow, fold, slope = drawn(np.random.default_rng(4), 3, 200)
    strata = built([(rows, raw, slow, fold, slope)], 3).with_shifted_torques(0.1)
    rows[-1] += 0.1 * slope
    same(strata, built([(rows, raw, slow, fold, slope)], 3))


def test_a_weight_counts_rows_as_so_many_and_empty_rows_keep_their_number():
    whole = drawn(np.random.default_rng(5), 3, 300)
    own = built([whole], 3)
    same(own.with_weight(3.0), folds.sum_strata([own] * 3))
    none = own.with_zero_rows()
    nothing = built([(0 * whole[0], 0 * whole[1], *whole[2:4], 0 * whole[4])], 3)
    same(none, nothing)
    assert none.correlation_time(np.zeros(2)) == 1.0


def test_some_folds_are_the_rows_of_these():
    whole = drawn(np.random.default_rng(6), 3, 400)
    own = built([whole], 3)
    some = np.isin(whole[3], (1, 4))
    triangles, counts, slow = own.select_folds((1, 4))
    rest = built([tuple(x[..., some] for x in whole)], 3)
    np.testing.assert_allclose(gram(triangles), gram(rest.by_slowness[0]), atol=SUMS)
    np.testing.assert_array_equal(counts, rest.counts.sum(axis=1))
    np.testing.assert_allclose(slow, rest.slowness.sum(axis=1) / counts, atol=SUMS)
    np.testing.assert_array_equal(own.select_folds(())[2], np.zeros(6))  # no rows, no slowness


def known(correlation, pairs=100.0):
    """Strata of one parameter whose residual at 0 has this correlation at DISTANCES."""
    empty = folds.Strata.empty(2)
    products = np.zeros_like(empty.products)
    pairs = np.full(len(DISTANCES), 1.0) * pairs
    products[:, 1, 1] = np.array(correlation) * pairs
    return replace(empty, products=products, pairs=pairs)


def test_correlation_is_summed_to_the_first_lag_that_has_none():
    at = np.array(DISTANCES)
    line = np.maximum(0.0, 1 - at / 10)  # zero from the lag of 11: trapezoids are exact to 8
    assert known(line).correlation_time(np.zeros(1)) == pytest.approx(2 * (8 - 64 / 20))
    ends = np.where(at == 2, 0.0, np.where(at < 2, 0.9**at, 0.9))
    # What is beyond the first zero is noise.
    assert known(ends).correlation_time(np.zeros(1)) == pytest.approx(1.9)
    assert known(np.where(at == 1, -0.1, 1.0)).correlation_time(np.zeros(1)) == 1.0
    assert known(0.0 * at).correlation_time(np.zeros(1)) == 1.0
    assert known(-line).correlation_time(np.zeros(1)) == 1.0
    assert known(0.1**at).correlation_time(np.zeros(1)) >= 1.0
    assert known(np.ones(10)).correlation_time(np.zeros(1)) == pytest.approx(40.0)
    few = np.where(at < 8, 5.0, 0.0)  # a short log has no rows that far apart
    assert known(np.ones(10), few).correlation_time(np.zeros(1)) == pytest.approx(12.0)
    assert known(np.ones(10), 1.0).correlation_time(np.zeros(1)) == 1.0  # one row alone
    assert known(np.ones(10), 1.01).correlation_time(np.zeros(1)) == pytest.approx(40.0)


def test_triangles_of_few_rows_are_square():
    rows = np.random.default_rng(7).standard_normal((2, 4))
    found = folds.triangularise(rows)
    assert found.shape == (4, 4)
    np.testing.assert_allclose(gram(found), rows.T @ rows, atol=SUMS)


# -- files ----------------------------------------------------------------------------------------


@pytest.fixture
def archive():
    """The arrays of a file, and what it holds."""
    robot = feasid.Robot.from_dh([(0, 0.3, 0, 0)])
    strata = built([drawn(np.random.default_rng(8), 2, 200)], 2)
    data = Reduced.from_samples(robot, *np.random.default_rng(9).normal(size=(4, 5, 1)))
    data = replace(data, strata=(strata,), rows=200, period=0.01)
    with np.load(io.BytesIO(data.to_bytes())) as arrays:
        return dict(arrays), data


def read(arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return Reduced.from_bytes(buffer.getvalue(), "log.reduced")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"version": 4}, "format 4, meaning 1; .* reads format 5, meaning 1: reduce the log again"),
        ({"version": 99}, "format 99.*update feasid"),
        ({"meaning": 0}, "meaning 0; .*reduce the log again"),
        ({"meaning": 2}, "meaning 2; .*update feasid"),
    ],
)
def test_files_of_another_format_or_meaning_are_refused_by_name(archive, given, words):
    arrays, _ = archive
    with pytest.raises(feasid.FeasidError, match=f"log.reduced is reduced data of .*{words}"):
        read({**arrays, **{name: np.array(v) for name, v in given.items()}})


def refused(data, words, **changes):
    with pytest.raises(feasid.FeasidError, match=words):
        Reduced.from_bytes(replace(data, **changes).to_bytes(), "log.reduced")


@pytest.mark.parametrize("name", ["triangles", "counts", "slowness", "products", "pairs", "raw"])
def test_damaged_strata_are_refused_by_name(archive, name):
    _, data = archive
    array = getattr(data.strata[0], name)
    for wrong in (array[1:], np.nan * array):
        damaged = {"strata": (replace(data.strata[0], **{name: wrong}),)}
        refused(data, f"{name} of row 0 is damaged", **damaged)


def test_damaged_triangles_are_refused_by_name(archive):
    _, data = archive
    for damaged in (data.triangles[0][1:], np.nan * data.triangles[0]):
        refused(data, "triangle of row 0 is damaged", triangles=(damaged,))
    for step in (-1, 1):
        moved = tuple(s + step for s in data.supports[0])
        refused(data, "support of row 0 is damaged", supports=(moved,))
    refused(data, "there is no triangle in it", triangles=(), supports=(), strata=())
