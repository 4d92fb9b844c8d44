"""Worlds: a robot with hidden parameters, one fault, and the two logs that it leaves."""

from __future__ import annotations

import secrets
import xml.etree.ElementTree as ET
import zlib
from dataclasses import dataclass

import numpy as np
import pandas as pd

import feasid

from .description import (
    MAX_ANGLE,
    Array,
    make_description,
    to_text,
    with_other_inertials,
    with_payload,
    with_scaled_masses,
    without_inertials,
)
from .faults import CLEAN, FAULTS, Fault
from .simulation import RATE, Motion, Physics, compile_model, fourier_motion, joint_order, simulate

TORQUE_NOISE = 0.02
"""White noise of a logged torque over the joint's RMS torque."""
FITTED_SPEED, TEST_SPEED = 1.2, 2.0
"""Largest joint speed [rad/s, m/s] of the log to fit and of the one that judges."""
FITTED_PERIOD, LONG_PERIOD, TEST_PERIOD = 10.0, 60.0, 6.0
"""Periods of the motions [s]; `LONG_PERIOD` is that of logs above a minute."""
TEST_SECONDS, WARM = 14.0, 600.0
"""Length of the log that judges, and how long [s] after the cold start it begins."""
MAX_SEED = 2**32


@dataclass(frozen=True, eq=False)
class Truth:
    """What a fit does not see.

    Parameters
    ----------
    robot
        The description with drive inertia and friction, and the true values.
    physics
        The law by which the log was made; its `torque` is the best possible prediction.
    motion, test_motion
        What really happened during the two logs.
    joint_zeros
        What is added to every logged position [rad, m].
    gains
        Factors of the logged torques of the log to fit.
    """

    robot: feasid.Robot
    physics: Physics
    motion: Motion
    test_motion: Motion
    joint_zeros: Array
    gains: Array

    def parameters(self, robot: feasid.Robot) -> Array:
        """True standard parameters in another robot's order; terms that it lacks are zero."""
        known = dict(zip(self.robot.parameter_names, self.robot.values, strict=True))
        return np.array([known.get(name, 0.0) for name in robot.parameter_names])

    def parameters_off(self, robot: feasid.Robot) -> Array:
        """Another robot's standard parameters less the true ones, in the true robot's order."""
        known = dict(zip(robot.parameter_names, robot.values, strict=True))
        return np.array([known[name] for name in self.robot.parameter_names]) - self.robot.values

    def base_parameters(self, base: feasid.BaseParameters) -> Array:
        """True values of a fit's base parameters."""
        return np.asarray(base.K @ self.parameters(base.robot))


@dataclass(frozen=True, eq=False)
class World:
    """A log to fit, the description for it, a faster log to judge by, and the hidden truth.

    The second log has the encoders of the first with 18 bits, but right torques, all its rows,
    and a warm robot. `command` repeats the world.
    """

    name: str
    fault_name: str
    seed: int
    fault: Fault
    description: str
    log: pd.DataFrame
    test_log: pd.DataFrame
    truth: Truth

    @property
    def robot(self) -> feasid.Robot:
        """The description given to the fit, with the fault that it has."""
        return feasid.load_robot(self.description)

    @property
    def command(self) -> str:
        """What makes this world again."""
        return (
            f"python -m benchmarks.worlds --robot {self.name} --fault {self.fault_name} "
            f"--seed {self.seed}"
        )

    def __str__(self) -> str:
        return f"{self.name}, {self.fault.text} ({self.command})"


def draw_seed() -> int:
    """A seed nobody can know beforehand."""
    return secrets.randbelow(MAX_SEED)


def make_world(robot: str, fault: str = CLEAN, seed: int | None = None) -> World:
    """The world of this robot, this fault and this seed.

    Worlds that differ in the fault alone share all that is drawn.

    Parameters
    ----------
    robot
        A name of `EXAMPLES`, or ``"random"`` for a tree drawn with the seed.
    fault
        A name of `FAULTS`.
    seed
        Drawn where left out.

    Raises
    ------
    LookupError
        Unknown robot or fault.
    RuntimeError
        The simulation is unstable.
    """
    if fault not in FAULTS:
        raise LookupError(f"fault {fault!r} is none of {', '.join(FAULTS)}")
    seed, wrong = draw_seed() if seed is None else seed, FAULTS[fault]

    def stream(number: int) -> np.random.Generator:
        return np.random.default_rng([seed, zlib.crc32(robot.encode()), number])

    described = make_description(robot, stream(0))
    model = feasid.load_robot(to_text(described)).without_joint_terms()
    links = with_other_inertials(described, stream(1))
    if wrong.exact_inertials:
        described = links
    true = with_payload(links, wrong.payload)
    physics = make_physics(model, true, wrong, stream(2))
    period = LONG_PERIOD if wrong.seconds > 60 else FITTED_PERIOD
    ways = [
        fourier_motion(stream(number), physics.middle, physics.half, speed, times, length)
        for number, speed, times, length in (
            (3, FITTED_SPEED, np.arange(wrong.seconds * RATE) / RATE, period),
            (4, TEST_SPEED, np.arange(TEST_SECONDS * RATE) / RATE, TEST_PERIOD),
        )
    ]
    motion, test_motion = (
        simulate(physics, described, way, start)
        for way, start in zip(ways, (0.0, WARM), strict=True)
    )
    signs = stream(5).choice([-1.0, 1.0], (2, model.dof))
    truth = Truth(
        _true_robot(model, physics),
        physics,
        motion,
        test_motion,
        joint_zeros=wrong.joint_zeros * signs[0],
        gains=1 + wrong.torque_gain * signs[1],
    )
    if wrong.mass_factors:
        draw = stream(6)
        described = with_scaled_masses(described, lambda: float(draw.choice(wrong.mass_factors)))
    if wrong.no_inertials:
        described = without_inertials(described)
    return World(
        robot,
        fault,
        seed,
        wrong,
        to_text(described),
        _log(truth, model.joints, wrong, stream(7)),
        _test_log(truth, model.joints, stream(8)),
        truth,
    )


def make_physics(
    model: feasid.Robot, true: ET.Element, fault: Fault, rng: np.random.Generator
) -> Physics:
    """The true robot; drive inertia and friction are sized by a motion of the true links."""
    bounds = [(body.limits.lower, body.limits.upper) for body in model.bodies]
    lower = np.array([max(-MAX_ANGLE, -MAX_ANGLE if a is None else a) for a, _ in bounds])
    upper = np.array([min(MAX_ANGLE, MAX_ANGLE if b is None else b) for _, b in bounds])
    middle, half, n = (lower + upper) / 2, 0.4 * (upper - lower), model.dof
    nothing = np.zeros(n)
    bare = Physics(
        true,
        joint_order(compile_model(true), model.joints),
        FAULTS[CLEAN],
        *(nothing, nothing, nothing, nothing),
        middle=middle,
        half=half,
        inertia=nothing,
    )
    times = np.linspace(2, FITTED_PERIOD, 60)
    q, dq, ddq = fourier_motion(rng, middle, half, FITTED_SPEED, times, FITTED_PERIOD)
    size = np.sqrt(np.mean(bare.rigid_torque(q, dq, ddq) ** 2, axis=0))
    size += 0.02 * np.sqrt(np.mean(size**2))
    still = np.zeros_like(q)
    weight = bare.rigid_torque(q, still, still)
    seen = np.array(
        [
            (bare.rigid_torque(q, still, still + e) - weight)[:, k].mean()
            for k, e in enumerate(np.eye(n))
        ]
    )
    armature = rng.uniform(0.2, 1.0, n) * seen
    viscous, coulomb = rng.uniform(0.05, 0.2, (2, n)) * size
    return Physics(
        true, bare.order, fault, armature, viscous, coulomb, size, middle, half, seen + armature
    )


def _true_robot(model: feasid.Robot, physics: Physics) -> feasid.Robot:
    """The description's tree with the true inertials, gravity and joint terms."""
    true = feasid.load_robot(to_text(physics.root)).without_joint_terms()
    robot = model.with_joint_terms(("viscous", "coulomb"), drive_inertia=True)
    robot = robot.with_gravity(tuple(physics.gravity))
    known = dict(zip(true.parameter_names, true.values, strict=True))
    values = np.array([known.get(name, 0.0) for name in robot.parameter_names])
    terms = zip(physics.armature, physics.viscous, physics.coulomb, strict=True)
    for k, (Ia, fv, fc) in enumerate(terms):
        place = robot.drive_columns(k)
        values[[place["Ia"], place["fv"], place["fc"]]] = Ia, fv, fc
    return robot.with_values(values)


def _noisy(motion: Motion, rng: np.random.Generator) -> Array:
    size = np.sqrt(np.mean(motion.torque**2, axis=0))
    return motion.torque + TORQUE_NOISE * size * rng.standard_normal(motion.torque.shape)


def _encoded(q: Array, bits: int) -> Array:
    step = 2 * np.pi / 2**bits
    return np.asarray(np.round(q / step) * step)


def _log(
    truth: Truth, joints: tuple[str, ...], fault: Fault, rng: np.random.Generator
) -> pd.DataFrame:
    """The log to fit, with all that its instruments do to it."""
    motion, t = truth.motion, truth.motion.t
    torque, lost = _noisy(motion, rng), rng.random(len(t)) < fault.lost_rows
    sampled = t + fault.jitter * rng.standard_normal(len(t))
    q = np.stack([np.interp(sampled, t, x) for x in motion.q.T], axis=1)
    torque = np.stack([np.interp(sampled - fault.delay, t, x) for x in torque.T], axis=1)
    q = _encoded(q + truth.joint_zeros, fault.bits)
    kept = np.arange(len(t)) % fault.keep_every == 0
    if fault.keep_every == 1:
        kept &= ~lost
    return _frame(t, q, torque * truth.gains, joints)[kept].reset_index(drop=True)


def _test_log(truth: Truth, joints: tuple[str, ...], rng: np.random.Generator) -> pd.DataFrame:
    motion = truth.test_motion
    q = _encoded(motion.q + truth.joint_zeros, FAULTS[CLEAN].bits)
    return _frame(motion.t - motion.t[0], q, _noisy(motion, rng), joints)


def _frame(t: Array, q: Array, torque: Array, joints: tuple[str, ...]) -> pd.DataFrame:
    columns = {"t": t} | {f"q_{j}": q[:, k] for k, j in enumerate(joints)}
    return pd.DataFrame(columns | {f"tau_{j}": torque[:, k] for k, j in enumerate(joints)})
