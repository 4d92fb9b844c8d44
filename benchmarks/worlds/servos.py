"""Worlds without torques: robots behind position servos, logged as positions and commands.

MuJoCo's own position actuators follow commands that are held and arrive late; what else a servo
does is added one thing at a time.
"""

from __future__ import annotations

import copy
import tempfile
import xml.etree.ElementTree as ET
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import mujoco
import numpy as np
import pandas as pd
from mujoco import rollout

import feasid

from .description import Array, make_description, to_text, with_other_inertials, with_scaled_masses
from .faults import CLEAN, FAULTS
from .simulation import Physics, compile_model, fourier_motion, joint_order
from .world import make_physics

STEP = 5e-4
"""MuJoCo's time step and the servo's period [s]."""
BANDWIDTH, DAMPING = 25.0, 0.8
"""Natural frequency [rad/s] and damping ratio of a joint behind its nominal servo."""
OFF = 0.3
"""Deviation of the logarithm of gains, armature and friction between nominal and true servo."""
HEAVIER = 1.1
"""Factor of all true masses beside what the description's errors are already."""
COMMAND_RATE = 50
"""Commands per second; each is held until the next one."""
HELD = round(1 / COMMAND_RATE / STEP)
"""Steps between commands."""
RATE_TIME = 0.02
"""Time constant [s] of a servo's derivative of its command."""
WRONG_CENTRE = 0.1
"""Centres of mass are off by this share of their distance from the link's origin."""
TEST_SECONDS = 10.0
PERIOD = 31.0
"""Period of the motions [s], in 30 harmonics."""
BALL = np.array([0.02, 0.0, 0.04])
"""Where a known load sits in the last body's frame [m]."""


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """How a log is made; the defaults are a servo as it is modelled."""

    bits: int = 14
    rate: int = 200
    seconds: float = 30.0
    speed: float = 2.5
    """Largest commanded joint speed [rad/s or m/s]."""
    delay: float = 4e-3
    stiffness: float = 1.0
    """Factor of the proportional gain; damping grows with its root."""
    zeros: float = 0.0
    """Each joint's logged position and command are off by plus or minus this [rad]."""
    limit: float = 0.0
    """Torque limit over the joint's RMS torque; 0: none."""
    own_bits: int = 0
    """Encoder of the servo itself; 0: exact."""
    integral: float | Array = 0.0
    """Gain of integral action over the proportional gain [1/s], of all joints or by joint."""
    rate_gain: bool = False
    """The derivative gain acts on the error's rate, low-passed over `RATE_TIME`."""
    gravity: bool = False
    """The servo adds the described robot's weight."""
    carried: float = 0.0
    """Share of the robot's true weight that the servo adds."""
    speed_noise: float = 0.0
    """Standard deviation of logged speeds [rad/s or m/s]; 0: none are logged."""
    heavier: float = 0.0
    """Spread of the logarithm of a further factor of all true masses."""
    dead_band: float = 0.0
    """Half width [rad or m] of errors that the servo ignores."""
    spring: float = 0.0
    """Stiffness to the middle of the range over the proportional gain."""
    stops: float = 0.0
    """Mechanical stops at this share of the motion's amplitude from its middle; 0: none."""
    stribeck: float = 0.0
    """Share by which dry friction is larger at standstill; it decays over 0.1 rad/s."""

    @property
    def plain(self) -> bool:
        """Whether MuJoCo's position actuators do all that the servo does."""
        rest = (self.own_bits, self.integral, self.rate_gain, self.gravity, self.dead_band)
        rest = (*rest, self.carried)
        return not any(np.any(x) for x in (*rest, self.spring, self.stribeck))


SERVOS: dict[str, Conditions] = {
    "plain": Conditions(),
    "own_encoder": Conditions(own_bits=12),
    "integral": Conditions(integral=2.0),
    "rate": Conditions(rate_gain=True),
    "gravity": Conditions(gravity=True),
    "weight": Conditions(carried=1.0),
    "half_weight": Conditions(carried=0.5),
    "dead_band": Conditions(dead_band=0.01),
    "spring": Conditions(spring=0.1),
    "stribeck": Conditions(stribeck=1.0),
    "zeros": Conditions(zeros=0.02),
    "limit": Conditions(limit=3.0),
    "stops": Conditions(stops=0.8),
    "slow": Conditions(speed=0.4),
    "short": Conditions(seconds=8.0),
}
"""Servos and logs by name, one thing at a time."""


@dataclass(frozen=True, eq=False)
class ServoRobot:
    """A robot with position actuators; arrays are per joint, SI."""

    root: ET.Element
    joints: tuple[str, ...]
    kp: Array
    kd: Array
    armature: Array
    viscous: Array
    coulomb: Array
    limit: Array
    delay: float
    weight: float | Array = 1.0
    """Factor of the described weight that the servo adds, of all joints or by joint."""
    rate: Array | None = None
    """Gain of the command's rate; None: kd."""
    rate_time: float = RATE_TIME
    how: Conditions | None = None
    """What this servo does besides; None: what the true one does."""
    correction: float | Array = 0.0
    """Added to logged positions and commands [rad or m]."""
    stops: Array | None = None
    """Mechanical stops [rad or m], (joints, 2)."""

    def model(self) -> mujoco.MjModel:
        """The robot in MuJoCo."""
        model = compile_model(self.root, actuated=self.joints)
        model.opt.timestep = STEP
        order = joint_order(model, self.joints)
        model.dof_damping[order], model.dof_frictionloss[order] = self.viscous, self.coulomb
        # An implicit step takes the damping of its end: half a step of damping acts as inertia.
        model.dof_armature[order] = self.armature - 0.5 * STEP * (self.viscous + self.kd)
        model.dof_solref[:, 0] = 2 * STEP
        if self.stops is not None:
            model.jnt_limited[:], model.jnt_range[order] = 1, self.stops
            model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
        model.actuator_gainprm[:, 0], model.actuator_biasprm[:, 1] = self.kp, -self.kp
        model.actuator_biasprm[:, 2] = -self.kd
        model.actuator_forcelimited[:] = np.isfinite(self.limit)
        limit = np.where(np.isfinite(self.limit), self.limit, 0.0)
        model.actuator_forcerange[:] = np.stack([-limit, limit], axis=1)
        mujoco.mj_setConst(model, mujoco.MjData(model))
        return model

    def follow(
        self, commands: Array, start: Array, how: Conditions, described: ET.Element
    ) -> Array:
        """Positions every `STEP` of a robot that starts at rest; commands (N, joints)."""
        how = self.how or how
        late = round(self.delay / STEP)
        held = np.repeat(commands, HELD, axis=0)
        held = np.vstack([np.repeat(start[None], late, axis=0), held])[: len(held)]
        model = self.model()
        data, order = mujoco.MjData(model), joint_order(model, self.joints)
        data.qpos[order] = start
        if not how.plain:
            return self._step(model, data, held, how, described)
        whole = mujoco.mjtState.mjSTATE_FULLPHYSICS
        state = np.zeros(mujoco.mj_stateSize(model, whole))
        mujoco.mj_getState(model, data, state, whole)
        states, _ = rollout.rollout(model, data, state[None], held[None])
        return np.vstack([start, states[0][:-1, 1 + order]])

    def _step(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        held: Array,
        how: Conditions,
        described: ET.Element,
    ) -> Array:
        """The same with a servo that does more than MuJoCo's actuators."""
        model.actuator_gainprm[:] = model.actuator_biasprm[:] = 0.0
        order, known = joint_order(model, self.joints), compile_model(described)
        weighed, middle = mujoco.MjData(known), held[0].copy()
        own = compile_model(self.root)
        heavy = mujoco.MjData(own)
        out, total, smoothed = np.empty_like(held), np.zeros(len(order)), held[0].copy()
        step = 2 * np.pi / 2**how.own_bits
        for k, command in enumerate(held):
            q, dq = data.qpos[order].copy(), data.qvel[order].copy()
            out[k] = q
            error = command - (np.round(q / step) * step if how.own_bits else q)
            error = np.sign(error) * np.maximum(np.abs(error) - how.dead_band, 0.0)
            total = total + how.integral * error * STEP
            torque = self.kp * (error + total - how.spring * (q - middle)) - self.kd * dq
            rate_gain = self.kd if self.rate is None else self.rate
            torque += how.rate_gain * rate_gain * (command - smoothed) / self.rate_time
            smoothed += (command - smoothed) * STEP / self.rate_time
            if how.gravity:
                weighed.qpos[joint_order(known, self.joints)] = q
                mujoco.mj_inverse(known, weighed)
                torque += self.weight * weighed.qfrc_inverse[joint_order(known, self.joints)]
            if how.carried:
                heavy.qpos[:] = data.qpos
                mujoco.mj_inverse(own, heavy)
                torque += how.carried * heavy.qfrc_inverse[order]
            if how.stribeck:
                dry = self.coulomb * (1 + how.stribeck * np.exp(-((dq / 0.1) ** 2)))
                model.dof_frictionloss[order] = dry
            data.qfrc_applied[order] = np.clip(torque, -self.limit, self.limit)
            mujoco.mj_step(model, data)
        return out


@dataclass(frozen=True, eq=False)
class ServoWorld:
    """A log of positions and commands, the description for it, and the hidden truth."""

    name: str
    seed: int
    how: Conditions
    described: ET.Element
    truth: ServoRobot
    nominal: ServoRobot
    physics: Physics
    start: Array
    commands: Array
    test_commands: Array

    @property
    def robot(self) -> feasid.Robot:
        """The description, without joint terms."""
        return feasid.load_robot(to_text(self.described)).without_joint_terms()

    @property
    def log(self) -> pd.DataFrame:
        """Times, encoder counts and commands of the true robot."""
        return self._log(self.truth)

    def loaded_log(self, mass: float) -> tuple[pd.DataFrame, Array]:
        """A log with a point mass on the last body, and its ten parameters in that frame."""
        root = copy.deepcopy(self.truth.root)
        last = feasid.load_robot(to_text(self.described)).bodies[-1].name
        ET.SubElement(root, "link", name="ball").append(
            ET.fromstring(
                f'<inertial><mass value="{mass}"/><origin xyz="0 0 0"/>'
                '<inertia ixx="1e-9" ixy="0" ixz="0" iyy="1e-9" iyz="0" izz="1e-9"/></inertial>'
            )
        )
        joint = ET.SubElement(root, "joint", name="ball", type="fixed")
        ET.SubElement(joint, "parent", link=last)
        ET.SubElement(joint, "child", link="ball")
        ET.SubElement(joint, "origin", xyz=" ".join(map(str, BALL)))
        ten = feasid.robot.inertia.from_mass_com_inertia(mass, BALL, 1e-9 * np.eye(3))
        return self._log(replace(self.truth, root=root)), np.asarray(ten)

    @property
    def zeros(self) -> Array:
        """By how much logged positions and commands are off [rad or m], (joints,)."""
        signs = np.random.default_rng([self.seed, 7]).choice([-1.0, 1.0], len(self.truth.joints))
        return np.asarray(self.how.zeros * signs)

    def _log(self, robot: ServoRobot) -> pd.DataFrame:
        how, every = self.how, round(1 / self.how.rate / STEP)
        q = robot.follow(self.commands, self.start, how, self.described)[::every]
        count = 2 * np.pi / 2**how.bits
        zeros = self.zeros
        columns = {"t": np.arange(len(q)) * every * STEP}
        asked = np.repeat(self.commands, HELD, axis=0)[::every]
        for k, joint in enumerate(robot.joints):
            columns[f"q_{joint}"] = np.round((q[:, k] + zeros[k]) / count) * count
            columns[f"cmd_{joint}"] = asked[:, k] + zeros[k]
            if how.speed_noise:
                noise = np.random.default_rng([self.seed, 8, k]).standard_normal(len(q))
                columns[f"dq_{joint}"] = (
                    np.gradient(q[:, k], every * STEP) + how.speed_noise * noise
                )
        return pd.DataFrame(columns)

    def rollout_error(self, robot: ServoRobot) -> float:
        """RMS difference [rad or m] of a robot's motion from the truth's along other commands.

        The truth gets them as its encoders take them, the robot as they are logged, but for zeros
        that it knows to be wrong.
        """
        off = self.zeros + robot.correction
        path = robot.follow(self.test_commands + off, self.start + off, self.how, self.described)
        path = path - off
        truth = self.truth.follow(self.test_commands, self.start, self.how, self.described)
        return float(np.sqrt(np.mean((truth - path) ** 2)))


def fitted_servo_robot(world: ServoWorld, fit: feasid.Fit) -> ServoRobot:
    """A fit as the simulator's robot; damping of servo and joint stay one sum."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fitted.urdf"
        feasid.write(fit.robot.without_joint_terms(), path)
        root = ET.parse(path).getroot()
    terms, servo = fit.joint_terms, fit.servo
    assert servo is not None
    correction = np.zeros(len(world.truth.joints))
    for joint, value in fit.calibration.correction.values_by_joint("zero").items():
        correction[joint] = value[0] if np.ndim(value) else value
    kd, terms_of = terms["fv"].to_numpy(), servo.servo.terms or {}
    if servo.servo.limit:
        kd = np.array(servo.servo.kd)
    return replace(
        world.nominal,
        root=root,
        kp=np.array(servo.servo.kp),
        kd=kd,
        armature=terms["Ia"].to_numpy(),
        viscous=terms["fv"].to_numpy() - kd,
        coulomb=terms["fc"].to_numpy(),
        limit=np.array(servo.servo.limit) if servo.servo.limit else world.truth.limit,
        delay=servo.delay,
        weight=np.multiply(servo.servo.kp, terms_of.get("gravity", 0.0)),
        rate=np.multiply(servo.servo.kp, terms_of.get("rate", 0.0)),
        rate_time=servo.servo.rate_time or RATE_TIME,
        how=Conditions(
            integral=np.array(terms_of.get("integral", 0.0)),
            rate_gain="rate" in terms_of,
            gravity="gravity" in terms_of,
            carried=float(terms_of.get("weight", (0.0,))[0]),
        ),
        correction=correction,
    )


def make_servo_world(robot: str, seed: int, how: Conditions | None = None) -> ServoWorld:
    """The world of this robot and seed; conditions change nothing else that is drawn."""
    how = how or Conditions()

    def stream(number: int) -> np.random.Generator:
        return np.random.default_rng([seed, zlib.crc32(robot.encode()), 100 + number])

    described = make_description(robot, stream(0))
    model = feasid.load_robot(to_text(described)).without_joint_terms()
    true = with_other_inertials(described, stream(1), WRONG_CENTRE)
    common = HEAVIER * np.exp(how.heavier * stream(6).standard_normal())
    true = with_scaled_masses(true, lambda: common)
    physics = make_physics(model, true, FAULTS[CLEAN], stream(2))
    stops = None
    if how.stops:
        reach = how.stops * physics.half
        stops = np.stack([physics.middle - reach, physics.middle + reach], axis=1)
        for name, (low, high) in zip(model.joints, stops, strict=True):
            limit = described.find(f"joint[@name='{name}']/limit")
            limit.set("lower", repr(float(low)))
            limit.set("upper", repr(float(high)))

    def servo(root: ET.Element, off: float) -> ServoRobot:
        draw = np.exp(off * stream(3).standard_normal((5, model.dof)))
        inertia, stiff = physics.inertia, how.stiffness
        limit = how.limit * physics.size if how.limit else np.full(model.dof, np.inf)
        return ServoRobot(
            root,
            model.joints,
            kp=inertia * BANDWIDTH**2 * stiff * draw[0],
            kd=2 * DAMPING * inertia * BANDWIDTH * np.sqrt(stiff) * draw[1],
            armature=physics.armature * draw[2],
            viscous=physics.viscous * draw[3],
            coulomb=physics.coulomb * draw[4],
            limit=limit,
            delay=how.delay,
            stops=stops,
        )

    ways = [
        fourier_motion(
            stream(number),
            physics.middle,
            physics.half,
            how.speed,
            np.arange(0, seconds, 1 / COMMAND_RATE),
            PERIOD,
        )[0]
        for number, seconds in ((4, how.seconds), (5, TEST_SECONDS))
    ]
    true_servo, nominal = servo(true, OFF), servo(described, 0.0)
    ends = (physics, ways[0][0], *ways)
    return ServoWorld(robot, seed, how, described, true_servo, nominal, *ends)
