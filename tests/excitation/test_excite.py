"""Designed motions keep what they promise, and mistakes are named before any search."""

import time
from contextlib import nullcontext
from unittest.mock import Mock

import numpy as np
import pytest
from robots import ARM
from scipy.optimize import minimize

import feasid
from feasid.applications.excitation import excite as excite_module
from feasid.applications.excitation.design import random_motion
from feasid.core.errors import InputError

FAST = {"rest": False, "starts": 1, "rounds": 0, "harmonics": 2, "time_limit": 300.0}
"""Results do not depend on time: one start and no kicks."""
BOUNDED = {"acceleration": 12.0, **FAST}

BETWEEN = 20_000
"""Times per period at which limits are checked, none of them a sample of the search."""


@pytest.fixture(scope="module")
def arm():
    text = ARM.replace('type="continuous"', 'type="revolute"').replace(
        '<child link="wheel"/>',
        '<child link="wheel"/><limit lower="-1" upper="2" velocity="3" effort="5"/>',
    )
    text = text.replace(
        '<link name="wheel"/>',
        '<link name="wheel"><inertial><origin xyz="0.1 0 0.05"/><mass value="0.4"/><inertia '
        'ixx="0.002" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.003"/></inertial></link>',
    )
    return feasid.load_robot(text)


@pytest.fixture(scope="module")
def motion(arm):
    return feasid.excite(arm, 6.0, **BOUNDED)


def test_a_motion_at_a_glance(motion):
    """Three parameters that are least certain, the worst first, and five measures."""
    shown, found = motion.display(), motion.certificate
    assert [*found.table().index] == [*found.expressions]
    order = np.argsort(-found.deviations)
    assert list(shown.remarks) == [
        f"least certain for noise {found.noise.max():g}: {found.deviations[k]:.3g} "
        f"{found.expressions[k]}"
        for k in order[:3]
    ]
    values = {m.name: (m.value, m.goal, m.met) for m in shown.measures}
    size = len(found.expressions)
    assert values["parameters seen"] == (f"{size} of {size}", str(size), True)
    assert values["limits between samples"] == ("kept", "kept", True)
    used = sum(bool(kinds) for kinds in found.active_limits.values())
    assert values["joints at a limit"][0] == f"{used} of 3"
    assert list(shown.troubles) == []
    listed = found.summary().splitlines()
    start = next(k for k, line in enumerate(listed) if line.endswith("Hz; largest:"))
    assert listed[start + 1 : start + 4] == [
        f"  {found.deviations[k]:.3g}  {found.expressions[k]}" for k in order[:3]
    ]
    words = "predicted standard error of torques on the reference motion: "
    assert listed[start + 4].startswith(words)
    said = motion.summary().splitlines()
    assert said[0] == (
        f"motion of arm: period 6 s, 3 joints, {motion.coefficients.shape[0]} coefficients each"
    )
    assert sum(line.startswith("note: ") for line in said) == len(motion.notes)
    for wrong in (0.0, -1.0, 3e9):
        with pytest.raises(InputError, match="approach must be a number above 0"):
            motion.to_ros("never.yaml", approach=wrong)


def test_fewer_samples_than_parameters_leave_some_undetermined(arm):
    motion = feasid.excite(arm, 2.0, rate=1, **BOUNDED)
    assert motion.certificate.rank <= 2 * arm.dof


def dense(motion):
    t = (np.arange(BETWEEN) + 0.5) * motion.period / BETWEEN
    return t, motion.at(t)


def test_shapes(motion):
    assert motion.q.shape == motion.dq.shape == motion.ddq.shape == (600, 3)
    assert motion.t.shape == (600,)
    assert motion.period == 6.0
    q, dq, ddq = motion.at(1.23)
    assert q.shape == dq.shape == ddq.shape == (3,)
    assert np.allclose(motion.at(motion.t + 6.0)[0], motion.q)


def test_limits_of_the_description_are_kept(arm, motion):
    _, (q, dq, ddq) = dense(motion)
    for j, body in enumerate(arm.bodies):
        assert q[:, j].min() >= body.limits.lower
        assert q[:, j].max() <= body.limits.upper
        assert np.abs(dq[:, j]).max() <= body.limits.velocity
    assert np.abs(ddq).max() <= 12.0
    torques = feasid.inverse_dynamics(arm, q, dq, ddq)
    efforts = [b.limits.effort for b in arm.bodies]
    assert (np.abs(torques).max(axis=0) <= efforts).all()
    assert motion.certificate.limits_hold
    assert any("velocity" in kinds for kinds in motion.certificate.active_limits.values())


def test_jerk_is_the_slope_of_the_acceleration(motion):
    t, h = np.linspace(0.3, 5.0, 7), 1e-5
    slope = (motion.at(t + h)[2] - motion.at(t - h)[2]) / (2 * h)
    np.testing.assert_allclose(motion.jerk(t), slope, atol=1e-6 * np.abs(slope).max())


def unsearched(arm, **options):
    """A random motion with its certificate: what is predicted of it needs no search."""
    options |= {**BOUNDED, "optimiser": lambda problem: problem.start}
    return feasid.excite(arm, 3.0, **options)


def equations(motion, noise=1.0):
    """Rows of base parameters with unit noise, (samples, dof, nb)."""
    columns = feasid.base_parameters(motion.robot).independent
    rows = feasid.regressor(motion.robot, motion.q, motion.dq, motion.ddq, columns=columns)
    return rows / np.broadcast_to(noise, motion.robot.dof)[:, None]


def spread(*rows):
    """Standard deviations of what equations determine."""
    stacked = np.vstack([r.reshape(-1, r.shape[-1]) for r in rows])
    return np.sqrt(np.diag(np.linalg.inv(stacked.T @ stacked)))


def test_predicted_deviations_are_those_of_all_equations(arm):
    noise = np.array([0.5, 1.0, 0.2])
    first = unsearched(arm, noise=noise)
    own = equations(first, noise)
    plain = equations(first).reshape(-1, own.shape[2])
    assert first.condition_number == pytest.approx(np.linalg.cond(plain))
    information = plain.T @ plain / len(first.t)
    assert first.certificate.log_det == pytest.approx(np.linalg.slogdet(information)[1])
    np.testing.assert_allclose(first.certificate.deviations, spread(own), rtol=1e-6)
    second = unsearched(arm, given=first, seed=1)
    both = spread(equations(first), equations(second))
    np.testing.assert_allclose(second.certificate.deviations, both, rtol=1e-6)
    log = feasid.Reduced.from_samples(first.robot, first.q, first.dq, first.ddq, 0 * first.q)
    third = unsearched(arm, given=[log], seed=1)
    np.testing.assert_allclose(third.certificate.deviations, both, rtol=1e-6)
    prior = np.full(len(both), 1e-3)
    known = unsearched(arm, prior=prior, noise={"slide": 3.0})
    assert known.certificate.noise.tolist() == [1.0, 3.0, 1.0]
    expected = spread(equations(known, [1.0, 3.0, 1.0]), np.diag(1 / prior))
    np.testing.assert_allclose(known.certificate.deviations, expected, rtol=1e-6)
    with pytest.raises(feasid.FeasidError, match="another robot or other joint terms"):
        unsearched(arm.with_joint_terms(), given=first)


def test_given_of_another_robot_is_refused(arm):
    """Of another gravity, and of the same robot without the joint terms of the motion."""
    for robot, words in (
        (arm.with_gravity((0, 0, -1.62)), "another robot: geometry, gravity or joint terms differ"),
        (arm, "another robot or lacks joint terms of this one"),
    ):
        log = feasid.Reduced.from_samples(robot, *np.ones((4, 9, 3)))
        with pytest.raises(feasid.FeasidError, match=words):
            unsearched(arm.with_joint_terms(), given=log)


def test_predicted_torque_errors_are_those_on_the_task(arm):
    rng = np.random.default_rng(0)
    tasks = [tuple(rng.normal(size=(3, n, 3))) for n in (20, 30)]
    aimed = unsearched(arm, objective="prediction", task=tasks)
    robot, columns = aimed.robot, feasid.base_parameters(aimed.robot).independent
    y = np.concatenate([feasid.regressor(robot, *task, columns=columns) for task in tasks])
    rows = equations(aimed).reshape(-1, y.shape[2])
    covariance = np.linalg.inv(rows.T @ rows)
    expected = np.sqrt(np.einsum("njk,kl,njl->j", y, covariance, y) / len(y))
    np.testing.assert_allclose(aimed.certificate.torque_deviations, expected, rtol=1e-6)


def gain_ratios(motion):
    """Deviations of gains over their mean, of equations e_j = Y_j beta / kp_j."""
    base, dof = feasid.base_parameters(motion.robot), motion.robot.dof
    torque = equations(motion) @ (np.asarray(base.K, float) @ np.nan_to_num(motion.robot.values))
    wide = np.concatenate([equations(motion), torque[:, :, None] * np.eye(dof)], axis=2)
    wide = wide.reshape(-1, wide.shape[2])
    covariance = np.linalg.pinv(wide.T @ wide, rcond=1e-13)[base.size :, base.size :]
    centred = np.eye(dof) - 1 / dof
    return np.sqrt(np.diag(centred @ covariance @ centred))


def test_predicted_deviations_of_gain_ratios(arm):
    found = unsearched(arm, objective="gains")
    np.testing.assert_allclose(found.certificate.gain_deviations, gain_ratios(found), rtol=1e-3)
    assert "standard error of gain ratios" in found.summary()
    unknown = feasid.Body("lonely", None, limits=arm.bodies[0].limits)
    with pytest.raises(InputError, match="needs the description's inertials"):
        unsearched(feasid.Robot((unknown,)), objective="gains")


@pytest.mark.slow
def test_every_limit_matters(arm, motion):
    """Each limit that is halved is kept, and would not have been."""
    t, free = dense(motion)
    rates = {"velocity": free[1], "acceleration": free[2], "jerk": motion.jerk(t)}
    bounds = {kind: 0.5 * np.abs(x).max(axis=0) for kind, x in rates.items()}
    tight = feasid.excite(arm, 6.0, **bounds, **FAST)
    _, (_, *found) = dense(tight)
    for kind, x in zip(bounds, (*found, tight.jerk(t)), strict=True):
        assert (np.abs(x) <= bounds[kind]).all()
    low, high = free[0].min(axis=0), free[0].max(axis=0)
    middle, half = (low + high) / 2, (high - low) / 4
    tight = feasid.excite(arm, 6.0, position=(middle - half, middle + half), **BOUNDED)
    q = dense(tight)[1][0]
    assert (np.abs(q - middle) <= half).all()
    efforts = np.abs(feasid.inverse_dynamics(arm, *free)).max(axis=0) * [0.7, 0.9, 0.7]
    tight = feasid.excite(arm, 6.0, torque=efforts, **BOUNDED)
    torques = feasid.inverse_dynamics(arm, *dense(tight)[1])
    assert (np.abs(torques).max(axis=0) <= efforts).all()


def test_better_than_random(arm, motion):
    """log det of the finished motion beats random ones made as large as limits allow."""
    from feasid.applications.excitation.constraint_check import scale_to_limits
    from feasid.applications.excitation.design import design_setting, make_basis, make_problem

    kinds = ("position", "velocity", "acceleration", "jerk", "torque")
    limits = {**dict.fromkeys(kinds), "acceleration": 12.0}
    space = {"workspace": None, "floor": None, "capsules": None, "meshes": None, "collision": False,
             "clearance": 0.0, "ignore": ()}  # fmt: skip
    setting = design_setting(arm, None, None, limits, space, 0)
    basis = make_basis("fourier", 6.0, 2, 0.0)
    size = setting.base.size
    problem = make_problem(setting, basis, 2, False, np.ones(3), np.zeros((0, size)), None, 100.0)
    rng = np.random.default_rng(0)
    best = -np.inf
    for _ in range(50):
        z = scale_to_limits(problem, random_motion(problem, rng))
        way = basis.matrices(motion.t)[:3] @ problem.coordinates.coefficients(z)
        w = feasid.regressor(setting.robot, *way, columns=setting.columns).reshape(-1, size)
        best = max(best, np.linalg.slogdet(w.T @ w / len(motion.t))[1])
    assert motion.certificate.log_det > best + 1


@pytest.mark.slow
def test_objectives_differ(arm, motion):
    condition = feasid.excite(arm, 6.0, objective="condition", **BOUNDED)
    assert condition.condition_number < motion.condition_number
    assert condition.certificate.log_det < motion.certificate.log_det
    mixed = feasid.excite(arm, 6.0, objective={"condition": 1, "logdet": 3}, **BOUNDED)
    assert mixed.certificate.log_det > condition.certificate.log_det
    task = (motion.q[::7], 0 * motion.dq[::7], 0 * motion.ddq[::7])  # holding still
    aimed = feasid.excite(arm, 6.0, objective="prediction", task=task, **BOUNDED | {"starts": 2})
    base = feasid.base_parameters(motion.robot)

    def deviation(m):
        w = feasid.regressor(m.robot, m.q, m.dq, m.ddq, columns=base.independent)
        y = feasid.regressor(m.robot, *task, columns=base.independent).reshape(-1, base.size)
        covariance = np.linalg.inv(np.einsum("srk,srl->kl", w, w))
        return np.sqrt(np.trace(y @ covariance @ y.T) / len(y))

    assert deviation(aimed) < min(deviation(motion), deviation(condition))
    rms = np.sqrt((aimed.certificate.torque_deviations**2).mean())
    assert np.isclose(rms, deviation(aimed))
    gains = feasid.excite(arm, 6.0, objective="gains", **BOUNDED)
    assert np.linalg.norm(gain_ratios(gains)) < np.linalg.norm(gain_ratios(motion))


@pytest.mark.slow
def test_seed_and_rounds_decide(arm, motion):
    again = feasid.excite(arm, 6.0, **BOUNDED)
    assert np.array_equal(again.coefficients, motion.coefficients)
    other = feasid.excite(arm, 6.0, seed=1, **BOUNDED)
    assert not np.allclose(other.coefficients, motion.coefficients)


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("family", ["fourier", "spline"])
def test_rest_and_slow_passage(arm, family):
    options = {**BOUNDED, "family": family}
    still = feasid.excite(arm, 6.0, **options | {"rest": True})
    for end in (0.0, 6.0):
        assert np.abs(still.at(end)[1:]).max() < 1e-9
    slow = feasid.excite(arm, 6.0, slow=0.9, **options)
    assert slow.certificate.limits_hold
    middle = np.abs(slow.t - 3.0) < 0.3
    assert np.abs(slow.dq[middle]).max() < 0.5 * np.abs(slow.dq).max()


@pytest.mark.slow
def test_given_is_complemented(arm):
    """What a log lacks, the motion brings; a motion that was designed alone brings less of it."""
    model = arm.with_joint_terms()
    t = np.linspace(0, 6, 600)
    q = np.stack([np.sin(t), 0.1 + 0 * t, 0 * t], axis=1)
    dq, ddq = np.gradient(q, t, axis=0), 0 * q
    log = feasid.Reduced.from_samples(model, q, dq, ddq, 0 * q)
    alone = feasid.excite(model, 6.0, **BOUNDED)
    added = feasid.excite(model, 6.0, given=log, **BOUNDED)
    together = feasid.excite(model, 6.0, given=[log, alone], **BOUNDED)
    worst = [m.certificate.deviations.max() for m in (added, together)]
    assert worst[1] < worst[0] < np.inf


# -- mistakes -------------------------------------------------------------------------------------

MISTAKES = [
    ({"velocity": np.nan}, "NaN"),
    ({"torque": 1e-3}, "cannot even stand still.*torque limit of joint 'shoulder'"),
    ({"workspace": {"rodd": ([0, 0, 0], [1, 1, 1])}}, "no frame 'rodd'.*did you mean 'rod'"),
    ({"workspace": {"rod": ([1, 0, 0], [0, 1, 1])}}, "workspace of 'rod' is empty"),
    ({"workspace": {"rod": (0, 1, 2)}}, "workspace of 'rod' must be .low, high., two corners"),
    ({"workspace": {"rod": ([5, 5, 5], [6, 6, 6])}}, "cannot even stand still.*workspace of 'rod'"),
    ({"floor": 0.0}, "floor needs shapes"),
    ({"capsules": {"rod": [(1, 2)]}}, "capsules of link 'rod' are .start, end, radius., not .1, 2"),
    ({"capsules": {"rod": [((0, 0, 0), (0, 0, 1), "x")]}}, "are .start, end, radius., not"),
    ({"capsules": {"rod": [((0, 0), (0, 0, 1), 0.1)]}}, "two points and a positive radius"),
    ({"capsules": {"rod": [((0, 0, 0), (0, 1), 0.1)]}}, "two points and a positive radius"),
    ({"capsules": {"rod": [((0, 0, 0), (0, 0, 1), 0.0)]}}, "two points and a positive radius"),
    ({"capsules": {"rod": [((0, 0, 0), (0, 0, 1), np.nan)]}}, "two points and a positive radius"),
    ({"floor": 9.0, "capsules": {"rod": [([0, 0, 0], [0, 0, 0.1], 0.02)]}}, "floor under link"),
    ({"ignore": [("rod", "plat")]}, "no frame 'plat'"),
    ({"objective": "logdt"}, "did you mean 'logdet'"),
    ({"objective": {"condition": -1}}, "positive weights"),
    ({"objective": {}}, "positive weights"),
    ({"objective": {"condition": 1.0, "logdet": 0.0}}, "positive weights"),
    ({"family": "fourrier"}, "did you mean 'fourier'"),
    ({"harmonics": 0}, "harmonics must be"),
    ({"slow": 1.0}, "slow must be"),
    ({"noise": -1.0}, "noise must be positive"),
    ({"prior": [1.0]}, "positive standard deviations"),
    ({"given": 3}, "given must be"),
    ({"task": (1, 2, 3)}, 'task is for objective="prediction"'),
    ({"time_limit": 0.0}, "time_limit must be a number above 0"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), MISTAKES)
def test_mistakes_are_named_before_any_search(arm, options, message, monkeypatch):
    # A search would fail.
    monkeypatch.setattr("feasid.applications.excitation.parallel_search.ParallelSearch", None)
    with pytest.raises(feasid.FeasidError, match=f"(?s){message}"):
        feasid.excite(arm, 6.0, **{"acceleration": 12.0, "time_limit": 600.0, **options})


def test_no_time_names_what_stands_in_the_way(arm):
    with pytest.raises(feasid.FeasidError, match="no motion that keeps all limits"):
        feasid.excite(arm, 6.0, acceleration=12.0, time_limit=1e-6)


@pytest.mark.slow
def test_the_best_motion_within_a_time_limit_keeps_it_and_all_limits(arm):
    begun = time.monotonic()
    assert feasid.excite(arm, 6.0, acceleration=12.0, time_limit=3.0).certificate.limits_hold
    assert time.monotonic() - begun < 3.0 + 20.0  # building the problem, on a busy machine


def test_interruption_returns_the_best_so_far(arm, monkeypatch):
    stop = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(excite_module, "step", lambda _: nullcontext(stop))
    m = feasid.excite(arm, 6.0, acceleration=12.0, starts=1)
    assert m.certificate.limits_hold
    assert any("interrupted" in note for note in m.notes)
    assert "log det about" in stop.call_args.kwargs["text"]


def test_interruption_before_any_motion_is_passed_on(arm, monkeypatch):
    stop = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr("feasid.applications.excitation.search.minimize", stop)
    with pytest.raises(KeyboardInterrupt):
        feasid.excite(arm, 6.0, acceleration=12.0)


def with_bfgs(problem):
    def value(z):
        limits, slope = problem.barrier(z, 1e-3, 1e-3)
        return problem.objective(z) + limits, problem.gradient(z) + slope

    with_bfgs.problem = problem
    return minimize(value, problem.start, jac=True, options={"maxiter": 40}).x


def test_an_optimiser_of_the_caller_gets_gradients_and_its_motion_is_certified(arm):
    motion = feasid.excite(arm, 6.0, acceleration=12.0, optimiser=with_bfgs)
    assert motion.certificate.limits_hold
    assert motion.certificate.is_full_rank
    problem = with_bfgs.problem
    rng = np.random.default_rng(0)
    direction, step = rng.standard_normal(problem.size), 1e-6
    ends = [problem.start + sign * step * direction for sign in (1, -1)]
    gradients = problem.gradient(problem.start), problem.barrier(problem.start, 1.0, 0.1)[1]
    a, b = ([problem.objective(z), problem.barrier(z, 1.0, 0.1)[0]] for z in ends)
    for slope, gradient in zip(np.subtract(a, b) / (2 * step), gradients, strict=True):
        assert slope == pytest.approx(gradient @ direction, rel=1e-6)
    assert min(m.slack for m in problem.margins(100 * problem.start)) < 0
    assert min(m.slack for m in problem.margins(0 * problem.start)) > 0


@pytest.mark.parametrize("z", [[0.0], [np.nan]])
def test_an_optimiser_that_returns_no_motion_is_refused(arm, z):
    with pytest.raises(InputError, match="finite numbers"):
        feasid.excite(
            arm, 6.0, acceleration=12.0, optimiser=lambda p: np.resize(z, p.size + (z == [0.0]))
        )
