"""Parts of forward dynamics: mass matrices, friction at rest, steps of one joint, refusals."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import feasid
from feasid import Body, Robot
from feasid.dynamics.forward import Feedback, ForwardModel, _minimise_with_friction, is_dry_friction
from feasid.errors import InputError
from feasid.robot import inertia
from feasid.robot.couplings import Coupling
from feasid.robot.drives import Drive

TEN = inertia.from_mass_com_inertia(1.2, [0.1, -0.05, 0.2], np.diag([0.02, 0.03, 0.025]))


def arm(couplings=(), drives=()):
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
    robot = arm(couplings, drives)
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


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_minima_satisfy_their_conditions(seed):
    """Where a joint moves the slope is zero, where it rests the push is within the friction."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    root = rng.normal(size=(6, n, n))
    A = root @ root.transpose(0, 2, 1) + np.eye(n)
    b, c = 2 * rng.normal(size=(6, n)), rng.uniform(0, 2, size=(6, n)) * (rng.random((6, n)) < 0.8)
    v = _minimise_with_friction(A, b, c, rng.normal(size=(6, n)) * (rng.random((6, n)) < 0.7))
    slope = b - np.einsum("nij,nj->ni", A, v)
    np.testing.assert_allclose(np.where(v != 0, slope - c * np.sign(v), 0.0), 0.0, atol=1e-6)
    assert (np.abs(slope)[v == 0] <= c[v == 0] + 1e-6).all()


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


@pytest.mark.parametrize(("kp", "kd"), [(50.0, 4.0), (2e7, 2e4)])
def test_feedback_follows_its_command(kp, kd):
    """Also one far stiffer than the step is short, which would ring or blow up."""
    count = 400
    wanted = np.full((1, count, 1), 0.1)
    feedback = Feedback(np.array([kp]), np.array([kd]), wanted, 0 * wanted)
    x = roll(pendulum(), 0.0, steps=count, step=1e-2, feedback=feedback)
    if kp > 1e3:
        np.testing.assert_allclose(x[-100:], 0.1, atol=1e-3)
    else:
        w, d = np.sqrt(kp / 2.0), kd / (2 * np.sqrt(kp * 2.0))
        t, fast = np.arange(count + 1) * 1e-2, w * np.sqrt(1 - d**2)
        decay = np.exp(-d * w * t)
        exact = 0.1 * (1 - decay * (np.cos(fast * t) + d * w / fast * np.sin(fast * t)))
        np.testing.assert_allclose(x, exact, atol=1e-3)


def test_a_motion_that_is_lost_is_nan_from_there():
    x = roll(pendulum(), 1e9)
    assert x[0] == 0.0
    assert np.isnan(x[-1])
    assert (np.diff(np.isnan(x).astype(int)) >= 0).all()


@pytest.mark.parametrize(
    ("robot", "words"),
    [
        (Robot((Body("a", None, inertial=TEN, motion=np.eye(6)[:, :3]),)),
         "only joints of one degree of freedom are simulated, and body 'a' has another"),
        (arm(drives=(Drive("d", {"b0": 1.0, "b1": 1.0}, ("fv",), [1.0]),)),
         "drive 'd' moves several independent joints, which is not simulated"),
        (arm(drives=(Drive("b0", {"b0": 1.0}, ("fv",)),)),
         "robot 'robot' has no value for b0.fv, so that it cannot be simulated"),
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
    both = Drive("d", {"b0": 1.0, "b2": 1.0}, ("fv",), [1.0])
    shared = arm((Coupling("b2", {"b0": 1.0}),), (both,))
    assert ForwardModel(shared).viscous_damping.tolist() == [4.0, 0.0]
