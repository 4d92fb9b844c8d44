"""The variance that knows slow rows, from data that were made with it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.signal import lfilter
from scipy.special import digamma

import feasid
from benchmarks.simulated import hidden
from feasid.identification.estimation import noise
from feasid.identification.regression.folds import StrataBuilder
from feasid.identification.regression.low_pass import WHITE_CORRELATION, GaussianLowPass
from feasid.identification.regression.triangle import Reduced
from feasid.parameters.identifiability.base import base_parameters

ROWS = 6000


def of_rows(supports, joints, slowness, fold):
    """Reduced data of each joint's rows: columns of its support, torque and the torque's slope."""
    strata = []
    for support, rows in zip(supports, joints, strict=True):
        n = len(support) + 1
        builder = StrataBuilder(n)
        builder.add(rows[:n], rows[:n], slowness, fold, *rows[n:])
        strata.append(builder.result())
    totals, count = tuple(s.total_triangle for s in strata), len(slowness)
    columns = tuple(sorted({c for support in supports for c in support}))
    return Reduced("made", columns, supports, totals, count, rows=count, strata=tuple(strata))


def made(quick, slow, seed=0):
    """Reduced data of one joint, two parameters and noise of variance quick + slow c^2."""
    rng = np.random.default_rng(seed)
    c = np.where(rng.random(ROWS) < 0.7, 0.0, rng.random(ROWS))
    w = rng.standard_normal((2, ROWS))
    tau = np.array([1.5, -0.5]) @ w + np.sqrt(quick + slow * c**2) * rng.standard_normal(ROWS)
    return of_rows(((0, 1),), [np.vstack([w, tau])], c, np.zeros(ROWS, dtype=np.intp))


@pytest.mark.parametrize(("quick", "slow"), [(0.04, 1.0), (1.0, 0.0), (1e-4, 4.0)])
def test_both_variances_come_back(quick, slow):
    found, beta = noise.estimate_noise(made(quick, slow))
    assert found.quick[0] == pytest.approx(quick, rel=0.15)  # 6000 rows, six classes
    assert found.slow[0] == pytest.approx(slow, rel=0.15, abs=0.15 * quick)
    assert found.correlation[0] == pytest.approx(1.0, abs=0.15)
    np.testing.assert_allclose(beta, [1.5, -0.5], atol=5 * np.sqrt(quick / 4000))


def test_whitened_residuals_have_unit_variance():
    data = made(0.04, 1.0)
    found, beta = noise.estimate_noise(data, correlated=False)
    r, rho, residual = found.whitened_triangle(data)
    total = residual**2 + np.sum((r @ beta - rho) ** 2)
    assert total / ROWS == pytest.approx(1.0, abs=0.1)


def test_what_an_estimate_followed_is_given_back():
    """Forty parameters of slow waves take most of a slow residual; its correlation stays known."""
    rng = np.random.default_rng(5)
    rows, phi, count = 2000, 0.7, 80
    error = lfilter([1.0], [1.0, -phi], rng.standard_normal(rows))
    phase = np.outer(np.arange(1, count + 1), np.pi * (np.arange(rows) + 0.5) / rows)
    block = np.vstack([np.cos(phase), error])
    data = of_rows((tuple(range(count)),), [block], np.zeros(rows), np.zeros(rows, dtype=np.intp))
    beta, spread = noise.least_squares(*data.triangle()[:2])
    blind = data.strata[0].correlation_time(beta)
    spread = spread * float(np.sum((error - beta @ block[:-1]) ** 2)) / (rows - count)
    (found,) = noise.correlation_times(data, beta, spread)
    true = (1 + phi) / (1 - phi)
    assert blind < found < true
    assert true - found < 0.8 * (true - blind)  # a good part; the sum ends at the first lag below 0


# -- two joints with three parameters, the last of which both touch --------------------------------

SUPPORTS = ((0, 2), (1, 2))
LEVELS = np.array([0.0, 0.02, 0.1, 0.2, 0.4, 0.8])  # one slowness in each class
EXACT = 1e-9


def classed(seed=0, each=40):
    """Rows of two joints, five folds and six classes, and their reduction."""
    rng = np.random.default_rng(seed)
    slow = np.repeat(LEVELS, each)
    fold = np.tile(np.arange(5), len(slow) // 5)
    joints = [rng.standard_normal((4, len(slow))) for _ in SUPPORTS]  # w, w, torque, its slope
    return of_rows(SUPPORTS, joints, slow, fold), joints, slow, fold


@pytest.mark.parametrize("folds", [None, (1, 3)])
def test_whitened_rows_are_those_of_the_log_over_their_deviations(folds):
    data, joints, slow, fold = classed()
    given = noise.Noise(np.array([0.5, 2.0]), np.array([3.0, 0.7]), np.array([1.5, 4.0]))
    gram = np.zeros((5, 5))
    for j, rows in enumerate(joints):
        variance = (given.quick[j] + given.slow[j] * slow**2) * given.correlation[j]
        wide = np.zeros((5, len(slow)))
        wide[[*SUPPORTS[j], 3, 4]] = rows / np.sqrt(variance)
        kept = wide if folds is None else wide[:, np.isin(fold, folds)]
        gram += kept @ kept.T
    whole = given.whitened_triangle_with_slope(data, folds)
    np.testing.assert_allclose(whole.T @ whole, gram, atol=EXACT)
    assert (np.diag(whole) >= 0).all()
    r, rho, residual = given.whitened_triangle(data, folds)
    np.testing.assert_allclose(np.c_[r.T @ r, r.T @ rho], gram[:3, :4], atol=EXACT)
    assert residual**2 + rho @ rho == pytest.approx(gram[3, 3])
    beta = np.array([0.3, -1.0, 2.0])
    for j, rows in enumerate(joints):
        error = (beta[list(SUPPORTS[j])] @ rows[:2] - rows[2]) ** 2
        error = error if folds is None else np.where(np.isin(fold, folds), error, 0.0)
        wanted = [error[slow == level].sum() for level in LEVELS]
        shown = noise.squared_residuals(data, j, beta, folds)
        np.testing.assert_allclose(shown, wanted, rtol=EXACT)


def mean_logarithm(rows):
    """Exponential of the mean logarithm of the mean of so many squares of unit variance."""
    return np.exp(digamma(rows / 2)) / (rows / 2)


@given(st.lists(st.floats(-2.5, 0.0), min_size=6, max_size=6))
@example([-2.9, -2.9, -2.8, -2.7, -2.5, -2.0])  # alternating weights jumped to a = 1e-10 here
def test_variances_are_right_in_the_mean_of_classes_whatever_they_show(exponents):
    _, joints, slow, fold = classed(2)
    size = 10.0 ** np.repeat(exponents, len(slow) // 6)
    data = of_rows(SUPPORTS, [np.vstack([r[:2], size, r[3]]) for r in joints], slow, fold)
    before = noise.Noise(np.ones(2), np.zeros(2), np.ones(2))
    after = noise.variances(data, before, np.zeros(3), np.zeros((3, 3)))
    off = np.log(size / after.deviations(0, slow**2))
    assert np.mean(off) == pytest.approx(
        -0.5 / 40, abs=1e-3
    )  # of 40 rows each, as of Gaussian ones


def test_without_strata_all_rows_are_one_class():
    data, joints, *_ = classed()
    plain = replace(data, strata=())
    even = noise.Noise(np.array([4.0, 9.0]), np.array([5.0, 5.0]), np.ones(2))
    r, rho, _ = even.whitened_triangle(plain)
    wanted = plain.triangle([1 / 2, 1 / 3])
    np.testing.assert_allclose(r, wanted[0], atol=EXACT)
    np.testing.assert_allclose(rho, wanted[1], atol=EXACT)
    beta = np.array([0.3, -1.0, 2.0])
    (found,) = noise.squared_residuals(plain, 1, beta)
    assert found == pytest.approx(np.sum((beta[[1, 2]] @ joints[1][:2] - joints[1][2]) ** 2))
    guess, _ = noise.estimate_noise(plain)
    np.testing.assert_array_equal(guess.correlation, 1.0)
    np.testing.assert_allclose(guess.slow, 0.0)


def test_variances_are_what_rows_show_beside_what_was_followed():
    """Residuals whose logarithm is exactly what is expected give their variances exactly."""
    _, joints, slow, fold = classed(1)
    before = noise.Noise(np.array([0.5, 2.0]), np.array([3.0, 0.7]), np.array([1.5, 4.0]))
    spread = np.array([[0.2, 0.05, 0.1], [0.05, 0.1, -0.03], [0.1, -0.03, 0.15]])
    a, b = np.array([0.3, 2.0]), np.array([1.7, 0.0])
    made_of = []
    for j, rows in enumerate(joints):
        deviation = np.sqrt((before.quick[j] + before.slow[j] * slow**2) * before.correlation[j])
        inner = spread[np.ix_(SUPPORTS[j], SUPPORTS[j])]
        share = np.sum(rows[:2] * (inner @ rows[:2]), axis=0) / deviation**2
        torque = np.empty_like(slow)
        for level in LEVELS:
            at = slow == level
            followed = share[at].sum()
            assert 0.5 < followed < 0.9 * np.sum(at)
            count = np.sum(at) - followed
            size = count * (a[j] + b[j] * level**2) * mean_logarithm(count)
            torque[at] = np.sqrt(size / np.sum(at))
        made_of.append(np.vstack([rows[:2], torque, rows[3]]))
    data = of_rows(SUPPORTS, made_of, slow, fold)
    found = noise.variances(data, before, np.zeros(3), spread)
    np.testing.assert_allclose(found.quick, a, rtol=1e-6)
    np.testing.assert_allclose(found.slow, b, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(found.correlation, before.correlation)


def test_noise_is_never_less_than_a_thousandth_of_the_torque():
    _, joints, slow, fold = classed(2)
    beta = np.array([1.0, -2.0, 0.5])
    exact = [
        np.vstack([rows[:2], beta[list(support)] @ rows[:2]])
        for support, rows in zip(SUPPORTS, joints, strict=True)
    ]
    found, solved = noise.estimate_noise(of_rows(SUPPORTS, exact, slow, fold))
    power = np.array([np.mean(rows[2] ** 2) for rows in exact])
    np.testing.assert_allclose(found.quick, 1e-6 * power, rtol=1e-6)
    np.testing.assert_allclose(solved, beta, atol=EXACT)


def test_a_class_that_an_estimate_followed_whole_still_counts_a_twentieth():
    data, joints, slow, _ = classed(3)
    even = noise.Noise(np.ones(2), np.zeros(2), np.ones(2))
    found = noise.variances(data, even, np.zeros(3), 100.0 * np.eye(3))
    for j, rows in enumerate(joints):
        of_two = 0.05 * mean_logarithm(2)
        mean = [np.mean(rows[2, slow == level] ** 2) / of_two for level in LEVELS]
        again = noise.variances(data, even, np.zeros(3), np.zeros((3, 3)))
        assert found.quick[j] == pytest.approx(again.quick[j] * mean_logarithm(40) / of_two)
        assert min(mean) < found.quick[j] + found.slow[j] * 0.64 < 1.5 * max(mean)


def test_the_first_estimate_takes_a_tenth_of_the_torque_for_noise():
    data, joints, *_ = classed(4)
    strong = replace(data, strata=(), triangles=(data.triangles[0], 10 * data.triangles[1]))
    asked = []

    def solver(r, rho):
        asked.append((r, rho))
        return noise.least_squares(r, rho)

    noise.estimate_noise(strong, solver)
    power = np.array([np.mean(j[2] ** 2) for j in joints]) * [1, 100]
    weights = 1 / (0.1 * np.sqrt(power + 1e-3 * power.mean()))  # a joint without torque counts too
    np.testing.assert_allclose(asked[0][0], strong.triangle(weights)[0], rtol=EXACT, atol=EXACT)


def test_logs_without_torque_have_finite_noise():
    data, *_ = classed(5)
    nothing = tuple(0 * t for t in data.triangles)
    silent = replace(data, triangles=nothing, strata=tuple(s.with_zero_rows() for s in data.strata))
    found, beta = noise.estimate_noise(silent)
    assert np.isfinite(found.quick).all()
    np.testing.assert_array_equal(beta, 0.0)


def test_rows_at_reversals_are_what_biases():
    """MuJoCo's stiction is no tanh: weighted by slowness, base parameters are closer."""
    arm = hidden("ur5", 1)
    base = base_parameters(arm.terms.with_transition(0.005))
    data = feasid.reduce(arm.log, base=base)
    _, weighted = noise.estimate_noise(data)
    plain, _ = noise.least_squares(*data.triangle()[:2])
    truth = arm.truth(base)
    error = {k: np.linalg.norm(b - truth) for k, b in (("plain", plain), ("weighted", weighted))}
    assert error["weighted"] < 0.5 * error["plain"]


def test_the_low_pass_alone_correlates_rows_of_white_noise():
    window = GaussianLowPass(8.0, 1000.0)
    taps, step = window.taps, window.spacing
    products = [taps[k:] @ taps[: len(taps) - k] for k in range(0, len(taps), step)]
    assert 2 * sum(products) / products[0] - 1 == pytest.approx(WHITE_CORRELATION, rel=0.01)
    data, _, _, _ = classed(3)
    found = noise.Noise(np.ones(2), np.zeros(2), np.array([1.2, 3.0]))
    np.testing.assert_array_equal(found.as_filtered(data).correlation, found.correlation)
    clocked = replace(data, period=0.001)
    np.testing.assert_array_equal(found.as_filtered(clocked).correlation, [WHITE_CORRELATION, 3.0])


@pytest.mark.parametrize(
    ("value", "deviation", "left", "text"),
    [
        (0.0, 0.0, 0.0, None),
        (2.9e-4, 1e-4, 0.0, None),
        (-2.9e-4, 1e-4, 0.0, None),
        (3.1e-4, 1e-4, 0.0, "torques are 0.31 ms behind the motion (0.31 of a sample): estimated "
         "and accounted for"),
        (-8e-4, 1e-4, 0.0, "torques are 0.8 ms ahead of the motion (0.80 of a sample): estimated "
         "and accounted for"),
        (0.0, 0.0, 2.5e-3, "torques are 2.5 ms or more behind the motion (2.5 samples): longer "
         "than a sample, so the fit does not account for it; measure it and fit with delay=, or "
         "have the log checked (feasid.diagnose)"),
        (0.0, 0.0, -1.5e-3, "torques are 1.5 ms or more ahead of the motion (1.5 samples): longer "
         "than a sample, so the fit does not account for it; measure it and fit with delay=, or "
         "have the log checked (feasid.diagnose)"),
    ],
)  # fmt: skip
def test_delays_in_words(value, deviation, left, text):
    notes = noise.Delay(value, deviation, left).notes(1e-3)
    assert [str(n) for n in notes] == ([] if text is None else [text])
    for note in notes:
        code = "long-delay" if left else "sub-sample-delay"
        assert (note.code, note.values["delay"]) == (code, left or value)


def test_unfiltered_equations_are_not_aligned():
    assert noise.find_delay(replace(made(0.04, 1.0), period=0.0)) == noise.Delay()
