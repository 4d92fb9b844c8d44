"""Equations without accelerations find the same robot, and survive noise on positions."""

import numpy as np
import pytest
from logs import arm_parameters, simulate
from robots import read_arm

import feasid
from feasid.core.errors import InputError, NotEnoughDataError
from feasid.identification.regression.momentum import reduce_momentum
from feasid.logs.frame import prepare


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    robot = read_arm(tmp_path_factory.mktemp("momentum")).with_joint_terms(drive_inertia=True)
    delta = arm_parameters(robot.with_joint_terms())
    full = np.zeros(robot.size)
    names = [n for n in robot.parameter_names if n[1] != "Ia"]
    for name, value in zip(names, delta, strict=True):
        full[robot.parameter_names.index(name)] = value
    for k in range(3):
        full[robot.drive_columns(k)["Ia"]] = 0.05
    return robot, full, simulate(robot, full, 1, samples=8000)


def test_equations_hold_for_the_truth(case):
    """Residuals of the true parameters are the trapezoidal rule's error, of order dt^2."""
    robot, delta, log = case
    base = feasid.base_parameters(robot)
    columns = [int(c) for c in base.independent]
    residual = {}
    for step in (1, 2):
        motion = prepare(log.iloc[::step], robot)
        # Coulomb friction jumps within a step, which no quadrature sees: leave it out.
        smooth = robot.with_joint_terms(friction=("viscous", "offset"), drive_inertia=True)
        kept = [n in smooth.parameter_names for n in robot.parameter_names]
        clean = feasid.inverse_dynamics(
            smooth, *(getattr(motion.runs[0], s) for s in ("q", "dq", "ddq")),
            parameters=delta[kept],
        )  # fmt: skip
        motion.runs[0].tau[...] = clean
        smooth_base = feasid.base_parameters(smooth)
        reduced = reduce_momentum([motion], smooth, [int(c) for c in smooth_base.independent], 0.2)
        beta = smooth_base.K @ delta[kept]
        residual[step] = (reduced.residuals(beta) / reduced.torque_norms).max()
    assert residual[1] < 1e-4
    assert 3.0 < residual[2] / residual[1] < 5.0  # quarters when the step halves
    assert len(columns) == base.K.shape[0]


def test_springs_and_compensators_are_forces_and_no_momentum(case):
    robot, delta, log = case
    wide = robot.with_joint_terms(("viscous", "offset", "spring", "compensator"), True)
    known = dict(zip(robot.parameter_names, delta, strict=True))
    springs = {"k": 3.0, "k2": -2.0, "k3": 1.0, "gs": 4.0, "gc": -5.0}
    full = np.array([known.get(n, springs.get(n[1], 0.0)) for n in wide.parameter_names])
    residual = []
    for step in (1, 2):
        motion = prepare(log.iloc[::step], wide)
        run = motion.runs[0]
        run.tau[...] = feasid.inverse_dynamics(wide, run.q, run.dq, run.ddq, parameters=full)
        base = feasid.base_parameters(wide)
        reduced = reduce_momentum([motion], wide, [int(c) for c in base.independent], 0.2)
        residual.append((reduced.residuals(base.K @ full) / reduced.torque_norms).max())
    assert residual[0] < 1e-4
    assert 3.0 < residual[1] / residual[0] < 5.0


@pytest.mark.slow
def test_momentum_needs_no_accelerations(case):
    """Where accelerations are spoilt but velocities are measured, momentum fits better."""
    robot, delta, log = case
    rng = np.random.default_rng(0)
    noisy = log.drop(columns=[c for c in log if c.startswith("ddq_")])
    for joint in robot.joints:
        noisy[f"dq_{joint}"] += 0.02 * rng.standard_normal(len(log))
    test = simulate(robot, delta, 2)
    torque = feasid.fit(noisy, robot, cutoff=False).errors(test, cutoff=None)["all"]
    fit = feasid.fit(noisy, robot, cutoff=False, method="momentum")
    assert fit.errors(test, cutoff=None)["all"] < 0.5 * torque
    assert any("not used" in n for n in fit.notes)


def test_mistakes_are_named(case):
    robot, _, log = case
    with pytest.raises(InputError, match="did you mean 'momentum'"):
        feasid.fit(log, robot, method="momentun")
    with pytest.raises(InputError, match="hold no time"):
        feasid.fit(feasid.reduce(log, robot), method="momentum")
    with pytest.raises(InputError, match="window must be a number above 0"):
        feasid.fit(log, robot, method="momentum", window=-1.0)
    with pytest.raises(NotEnoughDataError, match="as long as a window"):
        feasid.fit(log, robot, method="momentum", window=1000.0)
    with pytest.raises(InputError, match="method='torque'"):
        feasid.fit(log, robot, method="momentum", robust="huber")


@pytest.mark.parametrize("window", [0.025, 0.1, 0.3])
def test_windows_overlap_by_half(case, window):
    """So many equations of each joint as there are halves, less one, and what is said of them."""
    robot, _, log = case
    motion = prepare(log.iloc[:1000], robot)
    base = feasid.base_parameters(robot)
    columns = tuple(int(c) for c in base.independent)
    found = reduce_momentum([motion], robot, columns, window)
    (run,) = motion.runs
    half = round(0.5 * window * run.rate)
    assert found.rows == -(-len(run) // half) - 2
    assert found.samples == len(run)
    note = found.notes[-1]
    assert str(note) == (
        f"accelerations are not used: change of momentum over windows of {window:g} s"
    )
    assert note.values == {"window": window}


def test_a_window_shorter_than_two_samples_is_refused(case):
    robot, _, log = case
    motion = prepare(log.iloc[:1000], robot)
    (run,) = motion.runs
    short = 0.9 / run.rate
    with pytest.raises(InputError, match="is shorter than two samples at") as error:
        reduce_momentum([motion], robot, (0,), short)
    assert error.value.data["window"] == short
    least = np.ceil(2e3 / run.rate) / 1e3
    assert f"give window={least} or more" in str(error.value)
    assert reduce_momentum([motion], robot, (0,), 1.1 / run.rate).samples == len(run)
