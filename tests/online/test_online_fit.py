"""Online estimates are those of a batch of the same rows, feasible, and bounded in memory."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from arms import short_panda, ur5
from logs import log_frame
from pinned import assert_pinned
from scipy import signal

import feasid
from feasid.applications.online.buffering import EvenGrid
from feasid.applications.online.equations import CausalEquations, FadingEquations, WindowedEquations
from feasid.applications.online.problem import FeasibleProblem, row_deviations
from feasid.identification.regression.triangle import Reduced

RATE = 200.0
CUTOFF = 5.0

ROUNDING = 1e-8
"""Of the largest entry: triangles of hundreds of rows in another order, then a convex optimum."""


def robot():
    return short_panda()[0]


def base():
    return short_panda()[1]


def truth(seed=0):
    """Parameters other than the description's, with friction and drive inertia."""
    rng = np.random.default_rng(seed)
    model = base().robot
    out = np.where(np.isnan(model.values), rng.uniform(0.1, 0.4, model.size), model.values)
    for columns in model.inertial_columns:
        out[columns] *= rng.uniform(0.7, 1.4)
    return out


@cache
def log(samples, seed=0, noise=0.05):
    """A smooth motion, sampled, and its torques with noise."""
    return log_at(np.arange(samples) / RATE, seed, noise)


def log_at(t, seed=0, noise=0.05):
    """The same at other times."""
    model = base().robot
    rng = np.random.default_rng(seed)
    w, phase = 2 * np.pi * rng.uniform(0.1, 0.7, (2, 4, model.dof))
    a = rng.uniform(0.1, 0.5, (4, model.dof))
    angle = t[:, None, None] * w + phase
    q = (a * np.sin(angle)).sum(axis=1)
    dq = (a * w * np.cos(angle)).sum(axis=1)
    ddq = -(a * w**2 * np.sin(angle)).sum(axis=1)
    tau = feasid.inverse_dynamics(model, q, dq, ddq, parameters=truth())
    return q, tau + noise * rng.standard_normal(tau.shape)


def online(**options):
    given = {"cutoff": CUTOFF, "base": base()} | options
    return feasid.OnlineFit(given["base"].robot, RATE, **given)


def taught(*signals, t=None, **options):
    """An online fit that has seen these samples."""
    fit = online(**options)
    fit.extend(*signals, t=t)
    return fit


def rows_of(fit, q, tau):
    """All rows of a run in one piece, and the sample that completed each."""
    return CausalEquations(base(), RATE, CUTOFF, 40.0, fit.equations.every, 0.2).push(q.T, tau.T)


def assert_same(found, expected):
    """Normal equations are what triangles say, whatever their signs."""
    for a, b in zip(found, expected, strict=True):
        assert np.abs(a.T @ a - b.T @ b).max() <= ROUNDING * np.abs(b.T @ b).max()


def batch_estimate(fit, triangles, count):
    """The same convex problem, solved from the start for other triangles."""
    reduced = Reduced("", fit.reduced.columns, fit.reduced.supports, tuple(triangles), 1)
    R, rho, _ = reduced.triangle(1 / row_deviations(triangles, count, fit._correlation))
    return FeasibleProblem(base(), feasid.feasible_set(base().robot), 3.0).solve(R, rho)


def triangle_of(block):
    return np.linalg.qr(np.vstack([block.T, np.zeros((len(block), len(block)))]), mode="r")


# -- batch equality --------------------------------------------------------------------------


def test_a_window_is_a_batch_of_its_rows():
    q, tau = log(2400)
    fit = online(window=800, block=50)
    for k in range(0, 2000, 400):  # estimates on the way start the last one warm
        fit.extend(q[k : k + 400], tau[k : k + 400])
        fit.estimate()
    found = fit.estimate()
    rows, at = rows_of(fit, q[:2000], tau[:2000])
    inside = at >= 1200
    expected = [triangle_of(block[:, inside]) for block in rows]
    assert found.rows == inside.sum()
    assert_same(fit.reduced.triangles, expected)
    batch = batch_estimate(fit, expected, inside.sum())
    scale = np.abs(base().K @ batch.delta).max()
    np.testing.assert_allclose(found.beta, base().K @ batch.delta, atol=ROUNDING * scale)
    np.testing.assert_allclose(found.covariance, batch.covariance, rtol=1e-5, atol=1e-9)
    known = [found.beta[list(support)] for support in fit.reduced.supports]
    parts = [(b @ w[:-1, inside], w[-1, inside]) for b, w in zip(known, rows, strict=True)]
    model, torque = (np.concatenate(x) for x in zip(*parts, strict=True))
    assert found.r2 == pytest.approx(1 - sum((torque - model) ** 2) / sum(torque**2), abs=ROUNDING)


def test_forgetting_is_a_weighted_batch():
    q, tau = log(2400)
    fit = online(forgetting=0.998, block=40)
    fit.extend(q[:1200], tau[:1200])
    fit.estimate()
    fit.extend(q[1200:2000], tau[1200:2000])
    rows, at = rows_of(fit, q[:2000], tau[:2000])
    weights = 0.998 ** (1999 - at)
    expected = [triangle_of(block * np.sqrt(weights)) for block in rows]
    assert_same(fit.reduced.triangles, expected)
    found = fit.estimate()
    assert found.rows == pytest.approx(weights.sum(), rel=1e-12)
    batch = base().K @ batch_estimate(fit, expected, weights.sum()).delta
    np.testing.assert_allclose(found.beta, batch, atol=ROUNDING * np.abs(batch).max())


def test_growing_is_a_batch_of_everything():
    q, tau = log(1000)
    fit = taught(q, tau)
    rows, at = rows_of(fit, q, tau)
    learnt = at < 1000 // fit.block * fit.block
    assert_same(fit.reduced.triangles, [triangle_of(b[:, learnt]) for b in rows])


def test_reduced_data_know_their_robot_and_fit_its_bare_description():
    fit = taught(*log(2400))
    for offline in (feasid.fit(fit.reduced), feasid.fit(fit.reduced, robot())):
        assert offline.relative_error["all"] < 0.02


# -- equations -------------------------------------------------------------------------------


@pytest.mark.parametrize("measured", [False, True])
@pytest.mark.parametrize("smoother", ["polynomial", "moving-average"])
def test_equations_do_not_depend_on_how_a_run_is_cut(smoother, measured):
    q, tau = (x[:300].T for x in log(1000))
    dq = np.gradient(q, 1 / RATE, axis=1) if measured else None
    whole, pieces = (CausalEquations(base(), RATE, CUTOFF, 40.0, 3, 0.2, smoother) for _ in "ab")
    rows, at = whole.push(q, tau, dq)
    cuts = [0, 1, 2, 9, 50, 51, 180, 300]
    parts = []
    for a, b in pairwise(cuts):  # the caller's arrays are its own again afterwards
        given = [None if x is None else x[:, a:b].copy() for x in (q, tau, dq)]
        parts.append(pieces.push(*given))
        for x in given:
            if x is not None:
                x[:] = np.nan
    again = [np.hstack([p[0][j] for p in parts]) for j in range(len(rows))]
    places = np.hstack([p[1] + a for p, a in zip(parts, cuts[:-1], strict=True)])
    assert places.tolist() == at.tolist()
    for a, b in zip(rows, again, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_both_sides_pass_the_same_causal_filter():
    """By a second way: smooth, form the regressor of the whole run, filter it."""
    q, tau = log(1000)
    mine = CausalEquations(base(), RATE, CUTOFF, 40.0, 1, 1.0)
    half = mine.half
    rows, at = mine.push(q.T, tau.T)
    smooth = [
        signal.savgol_filter(q, 2 * half + 1, 3, deriv=d, delta=1 / RATE, axis=0)[half:-half]
        for d in range(3)
    ]
    Y = feasid.regressor(base().robot, *smooth, columns=base().independent)
    sos = signal.butter(2, CUTOFF, fs=RATE, output="sos")
    Y, u = signal.sosfilt(sos, Y, axis=0), signal.sosfilt(sos, tau[half:-half], axis=0)
    assert at.tolist() == list(range(2 * half, 1000))
    for j, support in enumerate(mine.plan.nonzero_columns):
        place = [base().independent.tolist().index(c) for c in support]
        np.testing.assert_allclose(rows[j][:-1], Y[:, j, place].T, atol=1e-8)
        np.testing.assert_allclose(rows[j][-1], u[:, j], atol=1e-10)


def test_no_row_uses_what_comes_later():
    q, tau = (x[:400].T.copy() for x in log(1000))
    first, at = CausalEquations(base(), RATE, CUTOFF, 40.0, 1, 0.2).push(q, tau)
    q[:, 200:] += 1.0
    tau[:, 200:] -= 9.0
    second, _ = CausalEquations(base(), RATE, CUTOFF, 40.0, 1, 0.2).push(q, tau)
    for a, b in zip(first, second, strict=True):
        assert np.array_equal(a[:, at < 200], b[:, at < 200])


# -- memory and drift ------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 16])
def test_a_ring_forgets_exactly(blocks):
    rng = np.random.default_rng(blocks)
    ring = WindowedEquations([4], blocks)
    history = []
    for k in range(3 * blocks + 2):
        block = rng.standard_normal((4, int(rng.integers(0, 9)))) * 10.0 ** rng.uniform(-3, 3)
        history.append(block)
        ring.add([block], np.arange(block.shape[1]), 5)
        expected = np.hstack(history[-blocks:])
        assert_same(ring.triangles(), [triangle_of(expected)])
        assert ring.count == expected.shape[1]
        assert ring.filled == min(k + 1, blocks)
    ring.clear()
    assert ring.count == ring.filled == 0
    assert not ring.triangles()[0].any()


@pytest.mark.parametrize(
    ("blocks", "rows"), [(10_000, 10), pytest.param(100_000, 100, marks=pytest.mark.slow)]
)
def test_neither_drift_nor_growth(blocks, rows):
    """The slow case has ten million rows; torques fall by a million half-way."""
    rng = np.random.default_rng(1)
    pool = rng.standard_normal((64, 5, rows))
    pool[:32, -1] *= 1e6
    ring, fading = WindowedEquations([5], 8), FadingEquations([5], 0.995)
    age = np.arange(rows - 1, -1, -1)
    for k in range(blocks):
        block = pool[k % 32 if k < blocks // 2 else 32 + k % 32]
        ring.add([block], age, rows)
        fading.add([block], age, rows)
    last = [pool[32 + k % 32] for k in range(blocks - 800, blocks)]
    assert_same(ring.triangles(), [triangle_of(np.hstack(last[-8:]))])
    weights = 0.995 ** np.arange(800 * rows - 1, -1, -1)
    expected = [triangle_of(np.hstack(last) * np.sqrt(weights))]
    assert_same(fading.triangles(), expected)
    assert len(ring._tree) == 16
    assert fading.count == pytest.approx(1 / (1 - 0.995), rel=1e-9)


def test_all_stores_begin_empty():
    for store in (FadingEquations([3], 1.0), FadingEquations([3], 0.9), WindowedEquations([3], 4)):
        assert store.count == 0
        assert store.triangles()[0].tolist() == [[0.0] * 3] * 3


# -- estimates -------------------------------------------------------------------------------


def test_every_estimate_is_feasible_in_exact_arithmetic():
    q, tau = log(2400)
    fit = online(window=800)
    assert fit.estimate().rows == 0
    for k in range(0, 2400, 150):
        fit.extend(q[k : k + 150], tau[k : k + 150])
        estimate = fit.estimate()
        assert feasid.feasible_set(fit.robot).violations(estimate.delta) == ()
        assert "exact rational arithmetic" in estimate.verified
        assert estimate.fresh
        assert (estimate.std >= 0).all()


def test_the_truth_is_found_and_the_deviations_know_how_well():
    estimate = taught(*log(6000, noise=0.2)).estimate()
    error = estimate.beta - base().K @ truth()
    assert np.linalg.norm(error) < 0.03 * np.linalg.norm(base().K @ truth())
    assert np.median(np.abs(error) / estimate.std) < 3.0
    assert estimate.r2 > 0.99
    assert len(estimate.table) == base().size
    assert estimate.robot.values.tolist() == estimate.delta.tolist()


def test_without_samples_the_nominal_model_stands():
    fit = online()
    nominal, estimate = fit.base.K @ fit.problem.nominal, fit.estimate()
    np.testing.assert_allclose(estimate.beta, nominal, rtol=1e-2, atol=1e-2)
    assert not estimate.decision.open
    assert "the buffer is not full" in estimate.decision.reasons


def test_a_failed_verification_leaves_the_last_estimate(monkeypatch):
    fit = taught(*log(2400))
    last = fit.estimate()
    with monkeypatch.context() as patch:
        patch.setattr(type(fit.problem.feasible), "violations", lambda *_: ("body 1",))
        older = fit.estimate()
    assert not older.fresh
    assert older.beta.tolist() == last.beta.tolist()
    assert not older.decision.open
    assert "no verified estimate" in older.decision.reasons
    assert fit.estimate().fresh


# -- changes ---------------------------------------------------------------------------------


def log_of_changing_friction(samples, factor):
    """Friction of the second joint times ``factor(t)``."""
    q, tau = log(samples)
    columns, delta = base().robot.drive_columns(1), truth()
    dq = np.gradient(q, 1 / RATE, axis=0)[:, 1]
    own = delta[columns["fv"]] * dq + delta[columns["fc"]] * np.sign(dq)
    tau = tau.copy()
    tau[:, 1] += (factor(np.arange(samples) / RATE) - 1.0) * own
    return q, tau


def changes_of(q, tau):
    fit = online(window=800)
    for k in range(0, len(q), 40):
        fit.extend(q[k : k + 40], tau[k : k + 40])
        fit.estimate()
    return fit.changes


def test_friction_that_jumps_is_told_by_its_joint_and_size():
    q, tau = log_of_changing_friction(4000, lambda t: np.where(t > 12.0, 1.5, 1.0))
    (change,) = changes_of(q, tau)
    assert (change.kind, change.where) == ("friction", base().robot.joints[1])
    assert 12.0 < change.time < 13.5
    assert change.size == pytest.approx(0.5, abs=0.1)
    assert f"friction of {change.where} changed by +" in str(change)


def test_a_load_is_told_as_one_with_its_mass_near_the_carriers_centre():
    q, tau = log(4000)
    dq = np.gradient(q, 1 / RATE, axis=0)
    load, last = np.zeros(base().robot.size), base().robot.inertial_columns[-1]
    *_, lx, ly, lz, m = base().robot.values[last]
    centre = [lx / m, ly / m + 0.03, lz / m]
    load[last] = feasid.robot.inertia.from_mass_com_inertia(1.5, centre, 0.002 * np.eye(3))
    ddq = np.gradient(dq, 1 / RATE, axis=0)
    more = feasid.inverse_dynamics(base().robot, q, dq, ddq, parameters=load)
    more[:2400] = 0.0
    (change,) = changes_of(q, tau + more)
    assert (change.kind, change.where) == ("load", base().robot.bodies[-1].name)
    assert 12.0 < change.time < 13.5
    assert change.size == pytest.approx(1.5, abs=0.5)


@pytest.mark.slow
def test_nothing_is_told_where_nothing_changes():
    assert changes_of(*log(20000)) == ()


# -- bad input -------------------------------------------------------------------------------


def test_bad_samples_are_left_out_counted_and_harmless():
    q, tau = (x.copy() for x in log(2400))
    clean = taught(q, tau)
    q[500] = np.nan
    tau[900, 2] = np.inf
    q[1300:1330] = q[1300]
    tau[1300:1330] = tau[1300]
    dirty = taught(q, tau)
    assert dirty.faults["not finite"] == 2
    assert 20 <= dirty.faults["stale"] < 30
    found, right = (fit.estimate().beta for fit in (dirty, clean))
    assert np.linalg.norm(found - right) < 0.05 * np.linalg.norm(right)


@pytest.mark.parametrize("kind", ["torque", "position"])
def test_a_torque_or_position_that_stands_still_while_the_joint_moves_is_left_out(kind):
    q, tau = (x.copy() for x in log(2400))
    dq = np.gradient(q, 1 / RATE, axis=0) if kind == "position" else None
    assert not taught(q, tau, dq).faults
    x = q if kind == "position" else tau
    x[600:900, 1] = x[600, 1]
    assert 150 < taught(q, tau, dq).faults[f"stuck {kind}"] <= 300


def test_a_joint_without_a_motor_has_no_torque_whatever_is_measured():
    (q, tau), robot = log(2400), base().robot
    passive = feasid.base_parameters(robot.with_passive_joints(robot.joints[:1]))
    silent, measured = (taught(q, tau * [x, 1, 1, 1], base=passive) for x in (0, 1))
    assert not silent.faults
    assert_same(measured.reduced.triangles, silent.reduced.triangles)


def test_gaps_are_bridged_or_begin_a_new_run():
    q, tau = log(2400)
    t = np.arange(2400) / RATE
    keep = np.ones(2400, dtype=bool)
    keep[[400, 401, 800]] = False
    keep[1200:1300] = False
    fit = taught(q[keep], tau[keep], t=t[keep])
    assert fit.faults == {"time jump": 1}
    assert fit.samples == keep.sum()
    a, b = fit.estimate().beta, taught(q, tau).estimate().beta
    assert np.linalg.norm(a - b) < 0.05 * np.linalg.norm(b)


# -- time ------------------------------------------------------------------------------------


def torque_error(estimate):
    """Relative error of torques in motions that were not seen."""
    q, dq, ddq = np.random.default_rng(5).uniform(-1, 1, (3, 200, 4))
    model = base().robot
    true = feasid.inverse_dynamics(model, q, dq, 3 * ddq, parameters=truth())
    found = feasid.inverse_dynamics(model, q, dq, 3 * ddq, parameters=estimate.delta)
    return np.linalg.norm(found - true) / np.linalg.norm(true)


@pytest.mark.parametrize("spread", [0.0, 0.3, 0.5])
def test_samples_count_at_their_own_stamps(spread):
    """Late by up to half a sample either way; without its stamps the error is 50 times larger."""
    rng = np.random.default_rng(1)
    t = 1e3 + np.sort(np.arange(2400) + spread * rng.uniform(-1, 1, 2400)) / RATE
    fit = taught(*log_at(t - 1e3), t=t)
    estimate = fit.estimate()
    assert torque_error(estimate) < 0.01
    assert sum(fit.faults.values()) == fit.faults["same time"] < 0.04 * 2400
    assert fit.time == t[-1]
    assert t[-1] - 2 * fit.block / RATE < estimate.time <= t[-1]


def test_cubics_and_lines_are_what_they_were_at_even_times():
    rng = np.random.default_rng(4)
    t = np.cumsum(rng.uniform(0.4, 1.6, 300)) / RATE
    cubic, line = np.polynomial.Polynomial([1, -2, 3, -4]), np.polynomial.Polynomial([2, -5])
    grid, cuts = EvenGrid(RATE), [0, 1, 2, 4, 7, 8, 40, 45, 200, 300]
    parts = [grid.resample(cubic(s)[:, None], line(s)[:, None], s) for s in np.split(t, cuts)]
    smooth, tau, times = (np.concatenate(x) for x in zip(*parts, strict=True))
    np.testing.assert_allclose(np.diff(times), 1 / RATE, rtol=ROUNDING)
    assert times[-1] > t[-4]
    assert len(grid._tail) < 8  # it does not grow
    np.testing.assert_allclose(smooth[:, 0], cubic(times), rtol=ROUNDING)
    np.testing.assert_allclose(tau[:, 0], line(times), rtol=ROUNDING)


@pytest.mark.parametrize("told", [0.6, 0.8, 0.95, 1.05, 1.2, 1.4])
def test_a_rate_that_the_stamps_contradict_is_named_and_nothing_is_learnt_with_it(told):
    t = np.arange(2400) / (RATE / told)
    fit = taught(*log_at(t), t=t)
    decision = fit.estimate().decision
    assert not decision.open
    assert f"the stamps say {RATE / told:.4g} samples per second, and rate is 200" in str(decision)
    assert fit.faults["wrong rate"] > 2000


def test_lost_samples_and_jitter_are_no_wrong_rate():
    rng = np.random.default_rng(2)
    t = np.sort(np.arange(2400) + 0.5 * rng.uniform(-1, 1, 2400)) / RATE
    t = t[rng.uniform(size=2400) > 0.1]
    fit = taught(*log_at(t), t=t)
    assert not fit.faults["wrong rate"]
    assert torque_error(fit.estimate()) < 0.01


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 100, "forgetting": 0.9}, "two ways to forget"),
        ({"window": 1}, "at least 2"),
        ({"window": 100, "block": 30}, "must be a multiple"),
        ({"forgetting": 1.0}, "forgetting must be a number above 0"),
        ({"cutoff": 150.0}, "need a rate above twice"),
        ({"smoother": "spline"}, "smoother must be 'polynomial' or"),
        ({"slow_weight": 0.0}, "slow_weight"),
        ({"prior_weight": -1.0}, "prior_weight"),
        ({"carrier": "panda_link33"}, r"no body 'panda_link33' \(did you mean 'panda_link3'"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(feasid.FeasidError, match=message):
        online(**options)


def test_samples_are_checked_whatever_numpy_would_make_of_them():
    fit = online()
    for q in (1.0, np.zeros(1), np.zeros((1, 4)), [0.0] * 3, np.zeros(5)):
        with pytest.raises(feasid.FeasidError, match=r"needs 4 numbers, one per degree of freedom"):
            fit.update(q, np.zeros(4))
    fit.update([0.0] * 4, [0.0] * 4)
    with pytest.raises(feasid.FeasidError, match="velocities must be given with every sample"):
        fit.update([0.0] * 4, [0.0] * 4, [0.0] * 4)
    with pytest.raises(feasid.FeasidError, match="time stamps must be given with every sample"):
        fit.update([0.0] * 4, [0.0] * 4, t=1.0)


def test_friction_and_drive_inertia_are_added_to_a_bare_description():
    fit = feasid.OnlineFit(ur5(), 500.0)
    assert {s for d in fit.robot.drives for s in d.symbols} == {"Ia", "fv", "fc", "fo"}
    assert fit.problem.feasible.violations(fit.estimate().delta) == ()


def test_a_description_that_cannot_exist_is_corrected_and_this_is_said():
    """Heaviest moment above the sum of the others; mass and centre stay."""
    values = np.where(np.isnan(base().robot.values), 0.0, base().robot.values)
    columns = base().robot.inertial_columns[1]
    values[columns[5]] = 10 * (values[columns[0]] + values[columns[3]])
    wrong = base().robot.with_values(values)
    fit = feasid.OnlineFit(wrong, RATE, window=800, base=feasid.base_parameters(wrong))
    (note,) = fit.notes
    assert note.code == "corrected"
    assert f"infeasible in {wrong.bodies[1].name}: " in note
    nominal = fit.problem.nominal
    assert fit.problem.feasible.violations(nominal) == ()
    kept = [c for c in wrong.inertial_columns.ravel() if c not in columns]
    assert nominal[kept].tolist() == values[kept].tolist()
    np.testing.assert_allclose(nominal[columns[6:]], values[columns[6:]], rtol=0.05, atol=0.01)
    fit.extend(*log(2400))
    assert torque_error(fit.estimate()) < 0.02
    assert online().notes == ()


# -- numbers ---------------------------------------------------------------------------------------

ROWS, EACH = 4000, 800

PINNED = {
    "window": {"window": 800, "cutoff": 5.0},
    "forgetting": {"forgetting": 0.997, "smoother": "moving-average", "slow_weight": 0.6},
    "all": {"every": 3, "block": 30, "derivative_cutoff": 200.0, "full": 900, "prior_weight": 3.0},
    "speeds": {"window": 640, "smoother": "moving-average", "false_alarms": 3.0, "carrier": None},
}


@pytest.mark.parametrize("name", PINNED)
def test_estimates_decisions_and_changes(name):
    q, tau = log_of_changing_friction(ROWS, lambda t: np.where(t > 12.0, 1.8, 1.0))
    q, tau, t = q.copy(), tau.copy(), np.arange(ROWS) / RATE
    t[300:] += 0.011
    t[700:] += 0.4
    t[1000], t[1500] = t[998], t[1499]
    q[1100] = np.nan
    tau[1200:1230, 1] = tau[1200, 1]
    still = 1e-7 * np.random.default_rng(0).standard_normal((400, q.shape[1]))
    q[3600:], tau[3600:] = q[3600] + still, tau[3600] + still
    dq = np.gradient(q, 1 / RATE, axis=0)
    given = {k: v for k, v in PINNED[name].items() if v is not None}
    fit = feasid.OnlineFit(base().robot, RATE, base=base(), **given)
    found = []
    for k in range(0, ROWS, EACH):
        part = slice(k, k + EACH)
        fit.extend(q[part], tau[part], dq[part] if name == "speeds" else None, t[part])
        estimate = fit.estimate()
        kept = ("time", "rows", "delta", "noise", "r2_joints", "decision", "age", "fresh")
        found.append({x: getattr(estimate, x) for x in kept} | {"std": estimate.std})
    results = {"estimates": found, "changes": fit.changes, "faults": fit.faults}
    assert_pinned(f"online-{name}", results | {"samples": fit.samples, "time": fit.time})


def test_replays():
    q, tau = log(ROWS)
    frame = log_frame(np.arange(ROWS) / RATE, base().robot.joints, q=q, tau=tau)
    done = feasid.replay(frame, base().robot, window=0.9, interval=3.0, online={"block": 17})
    assert_pinned("replay", {"table": done.table.to_dict("list"), "line": done.line(-1)})
    with pytest.raises(feasid.errors.InputError, match="place of one of 7 estimates"):
        done.line(7)
