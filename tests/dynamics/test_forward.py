"""Motion from torques: the same equations as inverse dynamics, and dry friction that holds."""

import numpy as np
import pytest
from robots import random_robot
from scipy.integrate import solve_ivp

import feasid
from feasid.dynamics.forward import Feedback, ForwardModel, _minimise_with_friction
from feasid.errors import InputError
from feasid.robot import inertia

DOF = 3
ROUNDING = 1e-10


def arm(seed=0, *words):
    """A random tree with values of everything."""
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, DOF, ("revolute",)).with_joint_terms(words, drive_inertia=True)
    values = rng.uniform(0.5, 1.0, robot.size)
    for columns in robot.inertial_columns:
        points = np.c_[0.3 * rng.normal(size=(5, 3)), np.ones(5)]
        values[columns] = inertia.from_pseudo_inertia(points.T @ points)
    return robot.with_values(values)


def test_mass_matrix_and_bias_are_those_of_inverse_dynamics():
    robot = arm(0, "viscous", "offset", "spring")
    model = ForwardModel(robot)
    q, dq, ddq = np.random.default_rng(1).normal(size=(3, 5, DOF))
    mass, bias = model.mass_and_bias(q, dq)
    tau = np.einsum("nij,nj->ni", mass, ddq) + bias + model.viscous_damping * dq
    np.testing.assert_allclose(tau, feasid.inverse_dynamics(robot, q, dq, ddq), rtol=ROUNDING)


def test_dry_friction_is_what_inverse_dynamics_has_besides():
    robot = arm(0, "coulomb", "viscous")
    model = ForwardModel(robot)
    q, dq = np.random.default_rng(1).normal(size=(2, 5, DOF))
    _, bias = model.mass_and_bias(q, dq)
    tau = bias + model.viscous_damping * dq + np.sign(dq) * model.dry_friction(q, dq)
    np.testing.assert_allclose(tau, feasid.inverse_dynamics(robot, q, dq, 0 * q), rtol=ROUNDING)
    assert (model.dry_friction(q, 0 * dq) > 0).all()


SECONDS = 0.4


@pytest.mark.parametrize("damping", [0.0, 3.0])
@pytest.mark.parametrize("controlled", [False, True])
def test_steps_of_half_the_length_have_a_quarter_of_the_error(damping, controlled):
    """Against an integrator with 1e-10: springs, damping, torques and feedback in motion."""
    robot = arm(0, "viscous", "offset", "spring")
    model, rng = ForwardModel(robot), np.random.default_rng(2)
    q0, v0, push, aim = rng.normal(size=(4, DOF))
    kp, kd = controlled * np.array([5.0, 2.0, 8.0]), damping * controlled * np.ones(DOF)

    def torque(t):
        return push * np.cos(3.0 * t)

    def reference(t):
        return aim * np.sin(t), aim * np.cos(t)

    def slope(t, state):
        q, v = state[:DOF], state[DOF:]
        mass, bias = model.mass_and_bias(q[None], v[None])
        position, velocity = reference(t)
        own = torque(t) + kp * (position - q) + kd * (velocity - v)
        return np.r_[v, np.linalg.solve(mass[0], own - bias[0] - model.viscous_damping * v)]

    true = solve_ivp(slope, (0, SECONDS), np.r_[q0, v0], rtol=1e-10, atol=1e-10).y[:DOF, -1]
    off = []
    for steps in (100, 200):
        step = SECONDS / steps
        middle = (np.arange(steps) + 0.5) * step
        position, velocity = (np.array([reference(t)[k] for t in middle])[None] for k in range(2))
        feedback = Feedback(kp, kd, position, velocity) if controlled else None
        driven = np.array([torque(t) for t in middle])[None]
        found = model.roll_out(q0[None], v0[None], driven, step, feedback)
        off.append(np.abs(found[0, -1] - true).max())
    assert off[1] < 0.3 * off[0] < 1e-3


def test_stiff_feedback_holds_its_reference():
    """Damping of a step a hundred times the inertia, where a step in the middle would oscillate."""
    model = ForwardModel(arm(0, "viscous"))
    steps, q0 = 200, np.zeros((1, DOF))
    aim = np.full((1, steps, DOF), 0.1)
    kp, kd = np.full(DOF, 1e6), np.full(DOF, 1e5)
    feedback = Feedback(kp, kd, aim, 0 * aim)
    found = model.roll_out(q0, 0 * q0, 0 * aim, 0.01, feedback)[0]
    assert (np.diff(found, axis=0) > -1e-6).all()
    np.testing.assert_allclose(found[-1], 0.1, atol=1e-3)


@pytest.mark.parametrize(("share", "moves"), [(0.9, False), (1.1, True)])
def test_a_joint_rests_until_it_is_pushed_harder_than_friction(share, moves):
    robot = arm(0, "coulomb").with_gravity((0, 0, 0))
    model = ForwardModel(robot)
    friction = model.dry_friction(np.zeros((1, DOF)), np.zeros((1, DOF)))[0]
    push = np.zeros((1, 50, DOF))
    push[:, :, 1] = -share * friction[1]
    found = model.roll_out(np.zeros((1, DOF)), np.zeros((1, DOF)), push, 1e-3)[0, -1]
    assert (found[1] < 0) == moves
    assert moves or not found.any()


@pytest.mark.parametrize("spread", [1.0, 1e3])
@pytest.mark.parametrize("seed", range(5))
def test_a_step_with_dry_friction_is_the_minimum_of_its_convex_function(seed, spread):
    """Also where masses differ a thousandfold, as at the wrist of an arm."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(40, 4, 4)) * np.geomspace(1.0, spread**-0.5, 4)[:, None]
    A = root @ root.transpose(0, 2, 1)
    A += 4.0 / spread * np.eye(4)
    b, start, c = rng.normal(size=(40, 4)), rng.normal(size=(40, 4)), rng.uniform(0, 1, (40, 4))
    start[rng.random((40, 4)) < 0.3] = 0.0
    v = _minimise_with_friction(A, b, c, start)
    slope = np.einsum("nij,nj->ni", A, v) - b
    moving = v != 0
    assert 10 < np.sum(~moving) < 150
    np.testing.assert_allclose(slope[moving], -(c * np.sign(v))[moving], atol=ROUNDING)
    assert (np.abs(slope) <= c + ROUNDING)[~moving].all()


def test_a_motion_that_runs_away_is_lost_and_the_others_go_on():
    model = ForwardModel(arm(0))
    push = np.zeros((2, 30, DOF))
    push[1] = 1e6
    found = model.roll_out(np.zeros((2, DOF)), np.zeros((2, DOF)), push, 0.01)
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1, 1:]).all()
    alone = model.roll_out(np.zeros((1, DOF)), np.zeros((1, DOF)), push[:1], 0.01)
    np.testing.assert_array_equal(found[:1], alone)


def test_what_is_not_simulated_is_named():
    plain = random_robot(np.random.default_rng(0), 2)
    with pytest.raises(InputError, match=r"has no value for b0\.Lxx"):
        ForwardModel(plain)
    free = feasid.Robot((feasid.Body("box", None, motion=np.eye(6)),))
    with pytest.raises(InputError, match="body 'box' has another"):
        ForwardModel(free)
    both = feasid.Drive("both", {"b0": 1.0, "b1": 1.0}, ("fv",))
    with pytest.raises(InputError, match="drive 'both' moves several independent joints"):
        ForwardModel(plain.with_joint_terms((), couplings=[both]))
    hollow = plain.with_values(np.zeros(plain.size))
    with pytest.raises(InputError, match=r"joint 'b0' has no inertia"):
        ForwardModel(hollow).roll_out(*np.zeros((2, 1, 2)), np.zeros((1, 3, 2)), 0.01)
    chain = feasid.Robot.from_dh([(0, 0.3, 0, 0), (np.pi / 2, 0.2, 0, 0)])
    light = chain.with_values(
        np.r_[inertia.from_mass_com_inertia(1, [0.1, 0, 0], np.eye(3)), np.zeros(10)]
    )
    with pytest.raises(InputError, match=r"joint '2' has no inertia"):
        ForwardModel(light).roll_out(*np.zeros((2, 1, 2)), np.zeros((1, 3, 2)), 0.01)
