"""The variance that knows slow rows, from data that were made with it."""

import numpy as np
import pytest
from scipy.signal import lfilter
from simulated import hidden

from feasid.identifiability.base import base_parameters
from feasid.identification import noise
from feasid.logs.frame import prepare
from feasid.reduction.equations import EquationReducer
from feasid.reduction.strata import StrataBuilder
from feasid.reduction.triangle import Reduced

ROWS = 6000


def made(quick, slow, seed=0):
    """Reduced data of one joint, two parameters and noise of variance quick + slow c^2."""
    rng = np.random.default_rng(seed)
    c = np.where(rng.random(ROWS) < 0.7, 0.0, rng.random(ROWS))
    w = rng.standard_normal((2, ROWS))
    tau = np.array([1.5, -0.5]) @ w + np.sqrt(quick + slow * c**2) * rng.standard_normal(ROWS)
    rows = np.vstack([w, tau])
    builder = StrataBuilder(3)
    builder.add(rows, rows, c, np.zeros(ROWS, dtype=np.intp))
    strata = builder.result()
    return Reduced("made", (0, 1), ((0, 1),), (strata.total,), ROWS, rows=ROWS, strata=(strata,))


@pytest.mark.parametrize(("quick", "slow"), [(0.04, 1.0), (1.0, 0.0), (1e-4, 4.0)])
def test_both_variances_come_back(quick, slow):
    found, beta = noise.estimate(made(quick, slow))
    assert found.quick[0] == pytest.approx(quick, rel=0.15)  # 6000 rows, six classes
    assert found.slow[0] == pytest.approx(slow, rel=0.15, abs=0.15 * quick)
    assert found.correlation[0] == pytest.approx(1.0, abs=0.15)
    np.testing.assert_allclose(beta, [1.5, -0.5], atol=5 * np.sqrt(quick / 4000))


def test_whitened_residuals_have_unit_variance():
    data = made(0.04, 1.0)
    found, beta = noise.estimate(data, correlated=False)
    r, rho, residual = found.whitened(data)
    total = residual**2 + np.sum((r @ beta - rho) ** 2)
    assert total / ROWS == pytest.approx(1.0, abs=0.1)


def test_what_an_estimate_followed_is_given_back():
    """Forty parameters of slow waves take most of a slow residual; its correlation stays known."""
    rng = np.random.default_rng(5)
    rows, phi, count = 2000, 0.7, 80
    error = lfilter([1.0], [1.0, -phi], rng.standard_normal(rows))
    phase = np.outer(np.arange(1, count + 1), np.pi * (np.arange(rows) + 0.5) / rows)
    block = np.vstack([np.cos(phase), error])
    builder = StrataBuilder(count + 1)
    builder.add(block, block, np.zeros(rows), np.zeros(rows, dtype=np.intp))
    strata = builder.result()
    support = (tuple(range(count)),)
    data = Reduced("made", support[0], support, (strata.total,), rows, rows=rows, strata=(strata,))
    beta, spread = noise.least_squares(*data.triangle()[:2])
    blind = strata.correlation_time(beta)
    spread = spread * float(np.sum((error - beta @ block[:-1]) ** 2)) / (rows - count)
    (found,) = noise.correlation_times(data, beta, spread)
    true = (1 + phi) / (1 - phi)
    assert blind < found < true
    assert true - found < 0.8 * (true - blind)  # a good part; the sum ends at the first lag below 0


def test_rows_at_reversals_are_what_biases():
    """MuJoCo's stiction is no tanh: weighted by slowness, base parameters are closer."""
    arm = hidden("ur5", 1)
    robot = arm.terms.with_transition(0.005)
    base = base_parameters(robot)
    motion = prepare(arm.log, robot, filtering="equations")
    reducer = EquationReducer(robot, [int(c) for c in base.independent], motion.cutoff)
    for run in motion.runs:
        reducer.add(run)
    data = reducer.result()
    _, weighted = noise.estimate(data)
    plain, _ = noise.least_squares(*data.triangle()[:2])
    truth = arm.truth(base)
    error = {k: np.linalg.norm(b - truth) for k, b in (("plain", plain), ("weighted", weighted))}
    assert error["weighted"] < 0.5 * error["plain"]
