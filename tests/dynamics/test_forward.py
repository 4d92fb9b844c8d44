"""Motion from torques: the same equations as inverse dynamics, and dry friction that holds."""

import re

import numpy as np
import pytest
from robots import random_robot
from scipy.integrate import solve_ivp

import feasid
from feasid import Body, Robot
from feasid.core.errors import InputError
from feasid.robot import inertia
from feasid.robot.couplings import Coupling
from feasid.robot.drives import Drive
from feasid.robot.dynamics.forward import (
    Feedback,
    ForwardModel,
    _minimise_with_friction,
    is_dry_friction,
)

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


SECONDS = 0.4


@pytest.mark.sampled(0.5)
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


@pytest.mark.parametrize("spread", [1.0, 1e3])
@pytest.mark.parametrize("seed", range(5))
def test_a_step_with_dry_friction_is_the_minimum_of_its_convex_function(seed, spread):
    """Also where masses differ a thousandfold, as at the wrist of an arm."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(40, 4, 4)) * np.geomspace(1.0, spread**-0.5, 4)[:, None]
    A = root @ root.transpose(0, 2, 1)
    A += 4.0 / spread * np.eye(4)
    b, start, c = rng.normal(size=(40, 4)), rng.normal(size=(40, 4)), rng.uniform(0, 1, (40, 4))
    c[rng.random((40, 4)) < 0.1] = 0.0
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


# -- small examples worked out by hand -------------------------------------------------------------

TEN = inertia.from_mass_com_inertia(1.2, [0.1, -0.05, 0.2], np.diag([0.02, 0.03, 0.025]))


def plain_arm(couplings=(), drives=()):
    """A hinge, a slide and a hinge in different directions."""
    motions = ([0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0], [1, 0, 0, 0, 0, 0])
    bodies = [
        Body(f"b{k}", f"b{k - 1}" if k else None, position=[0.1, 0.2, 0.3], inertial=TEN,
             motion=np.array(m, dtype=float))
        for k, m in enumerate(motions)
    ]  # fmt: skip
    return Robot(tuple(bodies), couplings=couplings, drives=drives)


DRIVES = (
    Drive("b0", {"b0": 1.0}, ("Ia", "fv", "fc"), [0.3, 0.5, 0.7]),
    Drive("b1", {"b1": 2.0}, ("Ia", "fv", "fc", "fo"), [0.1, 0.2, 0.4, 0.6]),
    Drive("b2", {"b2": 1.0}, ("k",), [5.0], rest=0.2),
)


@pytest.mark.parametrize("coupled", [False, True])
def test_mass_and_bias_are_those_of_inverse_dynamics(coupled):
    """Friction aside, which is added by itself; the third joint may follow the first."""
    couplings = (Coupling("b2", {"b0": -1.5}, 0.4),) if coupled else ()
    drives = DRIVES[:2] if coupled else DRIVES
    robot = plain_arm(couplings, drives)
    model = ForwardModel(robot)
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.normal(size=(3, 7, robot.dof))
    mass, bias = model.mass_and_bias(q, dq)
    whole = feasid.inverse_dynamics(robot, q, dq, ddq)
    friction = model.viscous_damping * dq + np.sign(dq) * model.dry_friction(q, dq)
    found = np.einsum("nij,nj->ni", mass, ddq) + bias + friction
    np.testing.assert_allclose(found, whole, atol=1e-9)
    np.testing.assert_allclose(model.armature[:2], [0.3, 0.4])
    np.testing.assert_allclose(model.viscous_damping[:2], [0.5, 0.8])
    still = model.dry_friction(q, 0 * dq)
    np.testing.assert_allclose(still[:, :2], np.tile([0.7, 0.8], (7, 1)))
    np.testing.assert_allclose(mass, mass.transpose(0, 2, 1), atol=1e-12)


@pytest.mark.parametrize(
    ("symbol", "dry"), [("fc", True), ("fv", False), ("Ia", False), ("k", False), ("fo", False),
                        ("u1", False), ("nothing", False)],
)  # fmt: skip
def test_which_friction_holds_at_rest(symbol, dry):
    assert is_dry_friction(symbol) == dry


def pendulum(**terms):
    """A slide of 2 kg that moves sideways, with joint terms."""
    ten = inertia.from_mass_com_inertia(2.0, [0, 0, 0], 0.1 * np.eye(3))
    body = Body("a", None, inertial=ten, motion=[0, 0, 0, 1, 0, 0])
    drives = (Drive("a", {"a": 1.0}, tuple(terms), [*terms.values()]),) if terms else ()
    return ForwardModel(Robot((body,), drives=drives))


def roll(model, torque, steps=200, step=1e-3, q0=0.0, dq0=0.0, **more):
    push = np.full((1, steps, 1), float(torque))
    start = np.array([[q0]]), np.array([[dq0]])
    return model.roll_out(*start, push, step, **more)[0, :, 0]


def test_a_mass_under_a_constant_force():
    t = np.arange(201) * 1e-3
    np.testing.assert_allclose(roll(pendulum(), 3.0), 0.75 * t**2, atol=1e-6)
    np.testing.assert_allclose(roll(pendulum(), 0.0, q0=0.3, dq0=0.5), 0.3 + 0.5 * t, atol=1e-12)
    np.testing.assert_allclose(roll(pendulum(Ia=1.0), 3.0), 0.5 * t**2, atol=1e-6)
    heavy = 1.0 * (1 - np.exp(-t / 2.0))
    damped = roll(pendulum(fv=1.0), 0.0, dq0=0.5)
    np.testing.assert_allclose(damped, heavy, atol=1e-6)


def test_dry_friction_stops_and_holds():
    """From 1 m/s with 4 N on 2 kg it stops after half a second and a quarter of a metre."""
    x = roll(pendulum(fc=4.0), 0.0, steps=1000, dq0=1.0)
    np.testing.assert_allclose(x[-1], 0.25, atol=1e-3)
    assert x[-1] == x[600]
    assert roll(pendulum(fc=4.0), 3.9)[-1] == 0.0
    assert roll(pendulum(fc=4.0), 4.1)[-1] > 0
    assert roll(pendulum(fc=4.0), -4.1)[-1] < 0


@pytest.mark.parametrize(
    ("robot", "words"),
    [
        (Robot((Body("a", None, inertial=TEN, motion=np.eye(6)[:, :3]),)),
         "only joints of one degree of freedom are simulated, and body 'a' has another"),
        (plain_arm(drives=(Drive("d", {"b0": 1.0, "b1": 1.0}, ("fc",), [1.0]),)),
         "drive 'd' moves several independent joints by more than"),
        (plain_arm(drives=(Drive("b0", {"b0": 1.0}, ("fv",)),)),
         "robot 'robot' gives no value for b0.fv: a simulation needs all"),
    ],
)  # fmt: skip
def test_what_is_not_simulated(robot, words):
    with pytest.raises(InputError, match=re.escape(words)):
        ForwardModel(robot)


def test_a_joint_without_inertia_is_named():
    light = Body("a", None, inertial=np.zeros(10), motion=[0, 0, 1, 0, 0, 0])
    model = ForwardModel(Robot((light,)))
    with pytest.raises(InputError, match="joint 'a' has no inertia") as error:
        roll(model, 0.0)
    assert error.value.data["joint"] == "a"
    chain = Robot.from_dh([(0, 0.3, 0, 0), (np.pi / 2, 0.2, 0, 0)])
    last = ForwardModel(chain.with_values(np.r_[TEN, np.zeros(10)]))
    with pytest.raises(InputError, match="joint '2' has no inertia"):
        last.roll_out(*np.zeros((2, 1, 2)), np.zeros((1, 3, 2)), 0.01)
    both = Drive("d", {"b0": 1.0, "b2": 1.0}, ("fv",), [1.0])
    shared = plain_arm((Coupling("b2", {"b0": 1.0}),), (both,))
    assert ForwardModel(shared).viscous_damping.tolist() == [4.0, 0.0]
