"""Both sides filtered: exact where theory is, additive, and kept in files."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from logs import arm_parameters, simulate
from robots import read_arm
from scipy.interpolate import CubicSpline

import feasid
from benchmarks.simulated import hidden
from feasid.datasets import wam
from feasid.identification.estimation.noise import least_squares
from feasid.identification.regression.equations import EquationReducer
from feasid.identification.regression.folds import LAGS, StrataBuilder
from feasid.identification.regression.low_pass import GaussianLowPass
from feasid.logs.frame import prepare
from feasid.parameters.identifiability.base import base_parameters

ROUNDING = 1e-9  # of the largest entry, after some hundred Householder updates
THINNED = 2e-5  # of the base parameters, a hundredth of their deviations
SECOND_ORDER = 0.05  # of what the shift changes: friction jumps, and splines ring there


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    robot = read_arm(tmp_path_factory.mktemp("arm")).with_joint_terms().with_transition(0.005)
    return robot, base_parameters(robot), arm_parameters(robot)


def reduced(log, robot, base, cutoff=8.0):
    motion = prepare(log, robot, filtering="equations", cutoff=cutoff)
    reducer = EquationReducer(robot, [int(c) for c in base.independent], cutoff)
    for run in motion.runs:
        reducer.add(run)
    return reducer.result(motion.notes)


def test_the_filter_moves_no_parameter(arm):
    """Exact motion, exact torques, friction that jumps: nothing but rounding is left."""
    robot, base, delta = arm
    sharp = robot.with_transition(0.0)
    log = simulate(sharp, delta, 1)
    motion = prepare(log, sharp, filtering="equations", derivative_cutoff=99.0)
    run = motion.runs[0]
    part = slice(run.rows[0], run.rows[-1] + 1)
    exact = {
        k: log[[f"{k}_{j}" for j in robot.joints]].to_numpy()[part] for k in ("q", "dq", "ddq")
    }
    run = type(run)(run.label, run.rate, run.rows, run.t, **exact, tau=run.tau)
    reducer = EquationReducer(sharp, [int(c) for c in base.independent], 8.0)
    reducer.add(run)
    data = reducer.result()
    assert (data.residuals(base.K @ delta) < ROUNDING * data.torque_norms).all()


def test_strata_add_up_to_the_triangles(arm):
    robot, base, delta = arm
    data = reduced(simulate(robot, delta, 1, noise=0.05), robot, base)
    assert data.rows < 0.2 * data.samples
    for triangle, strata in zip(data.triangles, data.strata, strict=True):
        assert strata.counts.sum() == data.rows
        parts = strata.triangles.reshape(-1, len(triangle) + 1)[:, :-1]  # without slopes
        np.testing.assert_allclose(parts.T @ parts, triangle.T @ triangle, rtol=ROUNDING)
        assert (strata.counts.sum(axis=0) > 0).all()


def test_bodies_are_as_well_known_from_every_fourth_sample():
    """At 1 kHz behind 40 Hz; friction and torque are taken at every sample."""
    arm = hidden("ur5", 1)
    robot = arm.terms.with_transition(0.005)
    base = base_parameters(robot)
    motion = prepare(arm.log, robot, filtering="equations")
    for run in motion.runs:
        assert GaussianLowPass(motion.cutoff, run.rate).largest_decimation(run.band) == 4
    assert thinning_moves(base, motion) < THINNED


def thinning_moves(base, motion):
    """Relative difference of base parameters from every sample and from a few."""
    found = []
    for band in (motion.runs[0].band, None):
        reducer = EquationReducer(base.robot, [int(c) for c in base.independent], motion.cutoff)
        for run in motion.runs:
            reducer.add(replace(run, band=band))
        found.append(least_squares(*reducer.result().triangle()[:2])[0])
    return np.linalg.norm(found[0] - found[1]) / np.linalg.norm(found[1])


def measured_log(noise):
    """Positions, velocities, accelerations and torques of the WAM, with noise in accelerations."""
    robot, rng = wam.robot(), np.random.default_rng(5)
    t, *motion = wam.motion()
    values = rng.uniform(0.5, 1.5, robot.size)
    log = {"t": t}
    tau = feasid.inverse_dynamics(robot, *motion, parameters=values)
    scatter = rng.standard_normal(motion[2].shape) * motion[2].std(axis=0)
    signals = {"q": motion[0], "dq": motion[1], "ddq": motion[2] + noise * scatter, "tau": tau}
    for kind, x in signals.items():
        log |= {f"{kind}_{j}": x[:, k] for k, j in enumerate(robot.joints)}
    return robot, pd.DataFrame(log)


@pytest.mark.parametrize(("noise", "every"), [(0.0, 4), (0.01, 1)])
def test_measured_motion_is_thinned_where_it_is_smooth(noise, every):
    """Noise in accelerations would be folded onto the motion, and is not."""
    robot, log = measured_log(noise)
    motion = prepare(log, robot, filtering="equations")
    (run,) = motion.runs
    assert GaussianLowPass(motion.cutoff, run.rate).largest_decimation(run.band) == every


def test_thinned_measured_motion_says_the_same():
    robot, log = measured_log(0.0)
    motion = prepare(log, robot, filtering="equations")
    assert thinning_moves(base_parameters(robot), motion) < THINNED


def test_logs_add(arm):
    robot, base, delta = arm
    parts = [reduced(simulate(robot, delta, s, noise=0.05), robot, base) for s in (1, 2)]
    both = parts[0] + parts[1]
    assert both.rows == sum(p.rows for p in parts)
    for k, triangle in enumerate(both.triangles):
        gram = sum(p.triangles[k].T @ p.triangles[k] for p in parts)
        np.testing.assert_allclose(triangle.T @ triangle, gram, atol=ROUNDING * np.abs(gram).max())
        total = both.strata[k].total_triangle
        np.testing.assert_allclose(total.T @ total, gram, atol=ROUNDING * np.abs(gram).max())


def test_torques_shift_against_the_motion(arm):
    """Shifting reduced data is reducing a log whose torques were shifted, to second order."""
    robot, base, delta = arm
    log = simulate(robot, delta, 1)
    late = log.copy()
    t, delay = log["t"].to_numpy(), 0.2 * float(np.median(np.diff(log["t"])))
    for j in robot.joints:
        late[f"tau_{j}"] = CubicSpline(t, log[f"tau_{j}"])(t - delay)
    own, other = (reduced(x, robot, base) for x in (log, late))
    back = other.with_shifted_torques(delay)
    for a, b, c in zip(own.triangles, back.triangles, other.triangles, strict=True):
        size = np.abs(a.T @ a).max()
        moved = np.abs(c.T @ c - a.T @ a).max() / size
        assert np.abs(b.T @ b - a.T @ a).max() / size < SECOND_ORDER * moved


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8])
def test_correlation_time_is_that_of_the_residual(phi):
    """An autoregression of first order has (1 + phi) / (1 - phi) rows per independent one."""
    rng = np.random.default_rng(3)
    count, chunk = 40_000, 500
    noise = np.empty(count)
    noise[0] = rng.standard_normal()
    for k, shock in enumerate(rng.standard_normal(count - 1), start=1):
        noise[k] = phi * noise[k - 1] + shock
    regressor = rng.standard_normal(count)
    rows = np.stack([regressor, 2.0 * regressor + noise])
    builder = StrataBuilder(2)
    for start in range(0, count, chunk):
        part = rows[:, start : start + chunk]
        zeros = np.zeros(part.shape[1])
        builder.add(part, part, zeros, zeros.astype(np.intp))
    found = builder.result().correlation_time(np.array([2.0]))
    tail = 1 + 2 * phi * (1 - phi ** LAGS[-1]) / (1 - phi)
    assert found == pytest.approx(tail, rel=0.1)  # 40 000 rows, and trapezoids beyond lag 4
