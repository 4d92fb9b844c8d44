"""Arms with hidden parameters in MuJoCo: a log to fit, a faster one to judge by, and a controller.

The simulator gets only the tree of joints and the true inertials; every torque and every motion
is its own. The description that a fit sees has other masses, centres and shapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property, partial

import numpy as np
import pandas as pd
import pytest
from logs import log_frame, values_for, waves
from mjcf_files import inertial, row
from robots import example_urdfs
from scipy.linalg import expm

import feasid
from feasid.robot import inertia

ARMS = {
    "panda": ("panda_description/urdf/panda.urdf", ("panda_finger_joint1", "panda_finger_joint2")),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", ()),
    "z1": ("z1_description/urdf/z1.urdf", ("jointGripper",)),
}
RATE = 1000.0
SECONDS = 30.0
BITS = 18
TORQUE_NOISE = 0.02
LOST = 0.02
WRONG_MASS, WRONG_SHAPE, WRONG_CENTRE = 0.15, 0.15, 0.02
BASE_FREQUENCY = 0.1
HARMONICS = 5
FITTED_SPEED, TEST_SPEED = 1.5, 2.5
"""Largest joint speed of the excitation and of the motion it is judged on [rad/s]."""
RIPPLES = 200.0
"""Periods of torque ripple per 2 pi rad of a joint: two per turn of a motor geared by 100."""
EXACT_TRANSITION = 0.005
"""Speed over which exact Coulomb friction changes its sign [rad/s], that with which fits begin."""
BANDWIDTH = 2 * np.pi * 6
DAMPING = 0.9


@dataclass(frozen=True, eq=False)
class Hidden:
    """A description, the truth it does not know, and what MuJoCo made of it.

    ``delta`` are the true standard parameters of ``terms``, the description with drive inertia
    and friction on every joint.
    """

    robot: feasid.Robot
    terms: feasid.Robot
    delta: np.ndarray
    log: pd.DataFrame
    model: object
    record_test: partial

    @cached_property
    def test(self):
        """A log of a faster motion, recorded where it is asked for."""
        return self.record_test()

    def truth(self, base):
        """True base parameters."""
        return base.K @ aligned(self, base.robot)


@dataclass(frozen=True)
class Conditions:
    """How good the log is."""

    seconds: float = SECONDS
    noise: float = TORQUE_NOISE
    lost: float = LOST
    stiction: bool = True
    delay: float = 0.0
    ripple: float = 0.0
    speed: float = FITTED_SPEED


def aligned(hidden, robot):
    """The truth in the order of another robot's parameters; terms it lacks are zero."""
    return values_for(robot, hidden.terms.with_values(hidden.delta))


@cache
def description(name):
    file, locked = ARMS[name]
    path = next(p for p in example_urdfs() if str(p).endswith(file))
    return feasid.load_robot(path, lock=dict.fromkeys(locked, 0.0)).without_joint_terms()


@cache
def hidden(name, seed=0, conditions=Conditions()):
    """The arm of this name with parameters of this seed, and its log."""
    robot = description(name)
    rng = np.random.default_rng([seed, *name.encode()])
    terms = robot.with_joint_terms(("viscous", "coulomb", "offset"), drive_inertia=True)
    delta = np.zeros(terms.size)
    for columns, body in zip(terms.inertial_columns, robot.bodies, strict=True):
        delta[columns] = wrong_body(body.inertial, rng)
    q, dq, ddq = fourier(robot, rng, conditions.seconds, conditions.speed)
    rigid = feasid.inverse_dynamics(
        robot, q[::20], dq[::20], ddq[::20], parameters=delta[terms.inertial_columns].ravel()
    )
    size = np.sqrt(np.mean(rigid**2, axis=0)) + 0.02 * np.sqrt(np.mean(rigid**2))
    inertia_seen = diagonal_inertia(robot, delta[terms.inertial_columns].ravel(), q[::200])
    for k, (s, m) in enumerate(zip(size, inertia_seen, strict=True)):
        place = terms.drive_columns(k)
        delta[place["Ia"]] = rng.uniform(0.2, 1.0) * m
        delta[place["fv"]] = rng.uniform(0.05, 0.2) * s
        delta[place["fc"]] = rng.uniform(0.05, 0.2) * s
    model = mujoco_model(terms, delta, conditions.stiction)
    fast = fourier(robot, rng, conditions.seconds, TEST_SPEED)
    log = record(model, terms, delta, (q, dq, ddq), rng, conditions)
    again = partial(record, model, terms, delta, fast, rng, conditions)
    return Hidden(robot, terms, delta, log, model, again)


def exact_log(name, seed, samples, transition=EXACT_TRANSITION):
    """A log of an exact model: positions, velocities and accelerations as they are, white noise.

    Coulomb friction changes its sign over `transition` [rad/s].

    Returns the arm's description, the truth with its terms, the log and a faster one to judge by.
    """
    rng = np.random.default_rng([seed, samples, *name.encode()])
    robot = description(name)
    terms = robot.with_joint_terms(("viscous", "coulomb", "offset"), drive_inertia=True)
    terms = terms.with_transition(transition)
    delta = np.zeros(terms.size)
    for columns, body in zip(terms.inertial_columns, robot.bodies, strict=True):
        delta[columns] = wrong_body(body.inertial, rng)
    for k in range(terms.dof):
        place = terms.drive_columns(k)
        delta[place["Ia"]], delta[place["fv"]] = rng.uniform(0.1, 0.5), rng.uniform(0.5, 2.0)
        delta[place["fc"]] = rng.uniform(0.5, 2.0)
    logs = []
    for seconds, speed in ((samples / RATE, FITTED_SPEED), (SECONDS, TEST_SPEED)):
        way = fourier(robot, rng, seconds, speed)
        torque = feasid.inverse_dynamics(terms, *way, parameters=delta)
        size = np.sqrt(np.mean(torque**2, axis=0))
        torque += TORQUE_NOISE * size * rng.standard_normal(torque.shape)
        q, dq, ddq = way
        t = np.arange(len(torque)) / RATE
        logs.append(log_frame(t, terms.joints, q=q, dq=dq, ddq=ddq, tau=torque))
    return robot, terms.with_values(delta), *logs


def exact_error(name, seed, samples):
    """Relative error of the default fit's prediction on the faster motion, next to no noise."""
    robot, truth, log, test = exact_log(name, seed, samples)
    fit = feasid.fit(log, robot, diagnose=False)
    way = [test[[f"{k}_{j}" for j in truth.joints]].to_numpy()[::5] for k in ("q", "dq", "ddq")]
    right = feasid.inverse_dynamics(truth, *way)
    missed = feasid.inverse_dynamics(fit.robot, *way) - right
    return float(np.linalg.norm(missed) / np.linalg.norm(right))


def wrong_body(ten, rng, mass=WRONG_MASS, shape=WRONG_SHAPE, centre=WRONG_CENTRE):
    """Another possible body: mass, shape and centre off by so much."""
    m, c, _ = inertia.to_mass_com_inertia(ten)
    spread = inertia.pseudo_inertia(ten)[:3, :3] - m * np.outer(c, c)
    stretch = 0.5 * shape * rng.standard_normal((3, 3))
    A = expm((stretch + stretch.T) / 2)
    factor = np.exp(mass * rng.standard_normal())
    direction = rng.standard_normal(3)
    c = c + centre * direction / np.linalg.norm(direction)
    pseudo = np.empty((4, 4))
    pseudo[:3, :3] = A @ spread @ A.T + m * np.outer(c, c)
    pseudo[:3, 3] = pseudo[3, :3] = m * c
    pseudo[3, 3] = m
    return factor * inertia.from_pseudo_inertia(pseudo)


def fourier(robot, rng, seconds, speed):
    """A periodic motion within 60 % of the limits, the fastest joint sample at `speed`."""
    t = np.arange(round(seconds * RATE)) / RATE
    w = 2 * np.pi * BASE_FREQUENCY * np.arange(1, HARMONICS + 1)
    a, b = rng.uniform(-1, 1, (2, HARMONICS, robot.dof)) / np.arange(1, HARMONICS + 1)[:, None]
    q, dq, ddq = waves(t, w, a, -b)
    lower = np.array([max(-2.5, x.limits.lower or -2.5) for x in robot.bodies])
    upper = np.array([min(2.5, x.limits.upper or 2.5) for x in robot.bodies])
    middle, room = 0.5 * (lower + upper), 0.4 * (upper - lower)
    scale = np.minimum(speed / np.abs(dq).max(axis=0), room / np.abs(q).max(axis=0))
    return middle + scale * q, scale * dq, scale * ddq


def diagonal_inertia(robot, delta, q):
    """Mean of each joint's own entry of the mass matrix."""
    still = robot.with_gravity((0.0, 0.0, 0.0))
    out = np.empty(robot.dof)
    for k in range(robot.dof):
        push = np.zeros_like(q)
        push[:, k] = 1.0
        torque = feasid.inverse_dynamics(still, q, 0 * q, push, parameters=delta)
        out[k] = torque[:, k].mean()
    return out


def mujoco_model(robot, delta, stiction=True):
    """The tree with these parameters; Coulomb friction as MuJoCo's stiction, or left out."""
    mujoco = pytest.importorskip("mujoco")
    text = {None: ["", ""]}
    for k, (body, columns) in enumerate(zip(robot.bodies, robot.inertial_columns, strict=True)):
        quat = np.empty(4)
        mujoco.mju_mat2Quat(quat, np.ascontiguousarray(body.rotation).ravel())
        place = robot.drive_columns(k)
        loss = delta[place["fc"]] if stiction else 0.0
        # A step takes the damping of its end, logs show the speed of its middle: half a step of
        # damping acts as inertia.
        armature = delta[place["Ia"]] - 0.5 * delta[place["fv"]] / RATE
        text[body.name] = [
            f'<body name="{body.name}" pos="{row(body.position)}" quat="{row(quat)}">'
            f"{inertial(delta[columns])}"
            f'<joint axis="{row(body.motion[:3, 0])}" armature="{float(armature)!r}" '
            f'damping="{float(delta[place["fv"]])!r}" frictionloss="{float(loss)!r}"/>',
            "</body>",
        ]
    inside = dict.fromkeys(text, "")
    for body in reversed(robot.bodies):
        opening, closing = text[body.name]
        inside[body.parent] = opening + inside[body.name] + closing + inside[body.parent]
    option = f'<option timestep="{1 / RATE}" gravity="{row(robot.gravity)}"/>'
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><compiler angle="radian"/>{option}<worldbody>{inside[None]}</worldbody>'
        "<sensor/></mujoco>"
    )


def drive(model, way, torque):
    """Run the model from the start of a way; `torque(k, q, dq, data)` moves it."""
    import mujoco

    q, dq, _ = way
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q[0], dq[0]
    out = np.empty((3, *q.shape))
    for k in range(len(q)):
        out[0, k], out[1, k] = data.qpos, data.qvel
        mujoco.mj_step1(model, data)
        data.qfrc_applied[:] = out[2, k] = torque(k, data.qpos, data.qvel, data)
        mujoco.mj_step2(model, data)
    return out


def record(model, terms, delta, way, rng, conditions):
    """A log under a stiff PD controller with the weight compensated."""
    q, dq, _ = way
    ten = delta[terms.inertial_columns].ravel()
    bare = terms.without_joint_terms()
    m = (
        diagonal_inertia(bare, ten, q[::200])
        + delta[[terms.drive_columns(k)["Ia"] for k in range(terms.dof)]]
    )
    stiff, damp = m * BANDWIDTH**2, 2 * DAMPING * m * BANDWIDTH
    coulomb = delta[[terms.drive_columns(k)["fc"] for k in range(terms.dof)]]

    def pd_torque(k, x, v, data):
        return stiff * (q[k] - x) + damp * (dq[k] - v) + data.qfrc_bias

    def with_exact_friction(k, x, v, data):
        return pd_torque(k, x, v, data) - coulomb * np.sign(v)

    moved, speed, torque = drive(
        model, way, pd_torque if conditions.stiction else with_exact_friction
    )
    if not conditions.stiction:
        torque = torque + coulomb * np.sign(speed)
    t = np.arange(len(q)) / RATE
    size = np.sqrt(np.mean(torque**2, axis=0))
    measured = torque + conditions.noise * size * rng.standard_normal(torque.shape)
    measured += conditions.ripple * size * np.sin(RIPPLES * moved)
    if conditions.delay:
        measured = np.stack([np.interp(t - conditions.delay, t, x) for x in measured.T], axis=1)
    step = 2 * np.pi / 2**BITS
    encoded = np.round(moved / step) * step
    keep = rng.random(len(q)) >= conditions.lost
    return log_frame(t, terms.joints, q=encoded, tau=measured)[keep].reset_index(drop=True)


def tracking_error(hidden, robot, seed=0, seconds=6.0, gains=None):
    """RMS joint error [rad] under computed torque with this model on a motion at 2.5 rad/s.

    The gains are those of another model's inertia where this one's may be impossible.
    """
    rng = np.random.default_rng([seed, 7])
    way = fourier(hidden.robot, rng, seconds, TEST_SPEED)
    q, dq, _ = way
    feed = feasid.inverse_dynamics(robot, *way)
    sized = robot if gains is None else gains
    bare = sized.without_joint_terms()
    m = diagonal_inertia(bare, sized.values[sized.inertial_columns].ravel(), q[::200])
    stiff, damp = m * BANDWIDTH**2, 2 * DAMPING * m * BANDWIDTH

    def torque(k, x, v, data):
        return feed[k] + stiff * (q[k] - x) + damp * (dq[k] - v)

    moved, _, _ = drive(hidden.model, way, torque)
    return float(np.sqrt(np.mean((moved - q)[1000:] ** 2)))
