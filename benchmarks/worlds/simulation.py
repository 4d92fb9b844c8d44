"""Motions, MuJoCo models and the physical law of a world; nothing here comes from feasid."""

from __future__ import annotations

import copy
import xml.etree.ElementTree as ET
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from .description import Array, to_text
from .faults import Fault

NDArrayInt = NDArray[np.int64]

RATE = 1000
"""Rows per second of a raw log and of the controller."""
STEP = 2.5e-4
"""MuJoCo's time step [s]."""
BANDWIDTH, DAMPING = 25.0, 0.8
"""Natural frequency [rad/s] and damping ratio of the joint controller."""
MAX_SPEED = 100.0
"""Joint speed [rad/s] beyond which a simulation counts as unstable."""
HYSTERESIS = 0.1
"""Distance [rad, m] within which a gear's hysteresis turns over."""
SPRING_DAMPING = 0.05
"""Damping ratio of the springs between rotors and links."""
GRAVITY = np.array([0.0, 0.0, -9.81])


@dataclass(frozen=True, eq=False)
class Motion:
    """Samples at `RATE`: times (N,) and positions, speeds, torques (N, joints), all true."""

    t: Array
    q: Array
    dq: Array
    torque: Array


@dataclass(frozen=True, eq=False)
class Physics:
    """A rigid robot with armature and friction, and what its fault adds; arrays are per joint.

    Parameters
    ----------
    root
        URDF with the true inertials.
    order
        Index in MuJoCo's generalised coordinates of each joint.
    armature, viscous, coulomb
        Drive inertia, viscous and dry friction.
    size
        RMS torque of the rigid links along a motion [N m].
    middle, half
        Middle and half width of the range of motion.
    inertia
        Mean diagonal entry of the mass matrix, with armature.
    """

    root: ET.Element
    order: NDArrayInt
    fault: Fault
    armature: Array
    viscous: Array
    coulomb: Array
    size: Array
    middle: Array
    half: Array
    inertia: Array

    @property
    def gravity(self) -> Array:
        """Gravity in the base's frame; a tilt turns it about the fault's axis."""
        axis = np.array(self.fault.tilt_axis) / np.linalg.norm(self.fault.tilt_axis)
        turned = np.cos(self.fault.tilt) * GRAVITY + np.sin(self.fault.tilt) * np.cross(
            axis, GRAVITY
        )
        return np.asarray(turned)

    def rigid_torque(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Torques of the links alone, by MuJoCo's inverse dynamics; (N, joints)."""
        model = compile_model(self.root)
        model.opt.gravity[:] = self.gravity
        data = mujoco.MjData(model)
        out = np.empty_like(q)
        for k in range(len(q)):
            data.qpos[self.order], data.qvel[self.order] = q[k], dq[k]
            data.qacc[self.order] = ddq[k]
            mujoco.mj_inverse(model, data)
            out[k] = data.qfrc_inverse[self.order]
        return out

    def friction(self, t: Array | float, dq: Array, weight: Array) -> tuple[Array, Array]:
        """Viscous coefficient and dry friction at these times, speeds and torques of the weight."""
        warm = 1 + self.fault.friction_drift * np.exp(-np.asarray(t, float)[..., None] / 12)
        dry = self.coulomb * warm * (1 + self.fault.stribeck * np.exp(-((dq / 0.1) ** 2)))
        return self.viscous * warm, dry + self.fault.load_friction * np.abs(weight)

    def extra(self, q: Array) -> Array:
        """Torque that cable, ripple and cogging add to the motor's."""
        x = (q - self.middle) / self.half
        pull = self.fault.cable * (x + 0.5 * x**3 + 0.3)
        ripple = self.fault.ripple * (np.sin(100 * q) + np.sin(6 * q + 1) / 1.5)
        pulses = self.fault.cogging * np.exp(-((np.sin(5.5 * q) / 0.2) ** 2))
        return self.size * (ripple - pull - pulses)

    def bent(self, state: Array, dq: Array, seconds: float) -> Array:
        """Bristles and gears, (2, joints), after they turn at speeds dq for so long.

        Each is a share of its largest force: exact for a constant speed, whatever its size.
        """
        reach = np.array([[self.fault.bristle or 1.0], [HYSTERESIS]])
        return np.sign(dq) + (state - np.sign(dq)) * np.exp(-np.abs(dq) * seconds / reach)

    def torque(self, t: Array, q: Array, dq: Array, ddq: Array) -> Array:
        """Motor torque of this motion, faults of the mechanism included, joints taken as rigid.

        Parameters
        ----------
        t
            Time since the cold start, (N,) [s].
        q, dq, ddq
            True joint positions, speeds and accelerations, (N, joints).
        """
        still = np.zeros_like(q)
        weight = self.rigid_torque(q, still, still) if self.fault.load_friction else still
        viscous, dry = self.friction(t, dq, weight)
        rigid = self.rigid_torque(q, dq, ddq) + self.armature * ddq
        rubbing = dry * np.sign(dq)
        if self.fault.bristle or self.fault.hysteresis:  # they remember: rows are in order
            states, state = [], np.zeros((2, q.shape[1]))
            for speed, seconds in zip(dq, np.gradient(t), strict=True):
                state = self.bent(state, speed, seconds)
                states.append(state)
            bristles, gears = np.array(states).transpose(1, 0, 2)
            rubbing = dry * bristles if self.fault.bristle else rubbing
            rubbing = rubbing + self.fault.hysteresis * self.size * gears
        return rigid + viscous * dq + rubbing - self.extra(q)


def compile_model(
    root: ET.Element, rotors: int = 0, actuated: tuple[str, ...] = ()
) -> mujoco.MjModel:
    """The URDF in MuJoCo without contacts and limits, with free rotors beside it when asked.

    Actuated joints get an actuator with affine bias, whose gains are zero.
    """
    root = copy.deepcopy(root)
    options = {"discardvisual": "true", "fusestatic": "true", "balanceinertia": "false"}
    ET.SubElement(ET.SubElement(root, "mujoco"), "compiler", options, inertiafromgeom="false")
    spec = mujoco.MjSpec.from_string(to_text(root))
    for k in range(rotors):
        body = spec.worldbody.add_body(
            name=f"rotor{k}", mass=1.0, inertia=[1e-6] * 3, explicitinertial=True
        )
        body.add_joint(name=f"rotor{k}", type=mujoco.mjtJoint.mjJNT_HINGE, axis=[0, 0, 1])
    for joint in actuated:
        spec.add_actuator(
            name=joint,
            target=joint,
            trntype=mujoco.mjtTrn.mjTRN_JOINT,
            biastype=mujoco.mjtBias.mjBIAS_AFFINE,
        )
    model = spec.compile()
    model.jnt_actfrclimited[:] = 0  # of URDF effort limits, at which MuJoCo saturates
    model.opt.timestep, model.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    model.dof_damping[:] = model.dof_frictionloss[:] = model.dof_armature[:] = 0
    model.dof_solref[:, 0] = 2 * STEP  # the stiffest dry friction that is stable
    return model


def joint_order(model: mujoco.MjModel, joints: tuple[str, ...]) -> NDArrayInt:
    """Index of each joint's coordinate in MuJoCo's vectors."""
    return np.array([int(model.joint(j).dofadr[0]) for j in joints])


def fourier_motion(
    rng: np.random.Generator, middle: Array, half: Array, speed: float, t: Array, period: float
) -> tuple[Array, Array, Array]:
    """A periodic motion of five harmonics (30 above 30 s) that starts at rest; q, dq, ddq.

    Its amplitude is the largest at which no joint leaves its range or exceeds `speed` [rad/s].
    """
    w = 2 * np.pi / period * np.arange(1, (5 if period < 30 else 30) + 1)
    a, b = rng.standard_normal((2, len(w), len(middle))) / w[:, None]

    def series(times: Array) -> tuple[Array, Array, Array]:
        sin, cos = np.sin(np.outer(times, w)), np.cos(np.outer(times, w))
        return (
            sin @ a + cos @ b,
            (cos * w) @ a - (sin * w) @ b,
            -(sin * w**2) @ a - (cos * w**2) @ b,
        )

    q, dq, _ = series(np.linspace(0, period, 2000))
    scale = np.minimum(half / np.abs(q).max(axis=0), speed / np.abs(dq).max(axis=0))
    q, dq, ddq = (scale * x for x in series(t))
    x = np.clip(t / 2, 0, 1)[:, None]  # the amplitude rises within 2 s
    rise, rate = x**3 * (10 - 15 * x + 6 * x**2), 15 * x**2 * (1 - x) ** 2
    bend = 15 * x * (1 - x) * (1 - 2 * x)
    return middle + rise * q, rise * dq + rate * q, rise * ddq + 2 * rate * dq + bend * q


def simulate(
    physics: Physics, described: ET.Element, way: tuple[Array, Array, Array], start: float
) -> Motion:
    """Run the true robot under a stiff joint controller along a motion.

    The controller compensates the weight that the description claims; joints with springs are
    controlled and logged at their rotors.

    Parameters
    ----------
    physics
        The true robot.
    described
        URDF that the controller knows.
    way
        Desired q, dq, ddq at `RATE`, (N, joints).
    start
        Time since the cold start at the first sample [s].
    """
    fault, n = physics.fault, len(physics.order)
    rigid = not fault.elastic_frequency
    model = compile_model(physics.root, rotors=0 if rigid else n)
    link = physics.order
    motor = link if rigid else joint_order(model, tuple(f"rotor{k}" for k in range(n)))
    model.opt.gravity[:] = physics.gravity
    model.dof_damping[motor] = physics.viscous
    model.dof_frictionloss[motor] = 0.0 if fault.bristle else physics.coulomb
    # An implicit step takes the damping of its end: half a step of damping acts as inertia.
    model.dof_armature[motor] = physics.armature - 0.5 * STEP * physics.viscous
    mujoco.mj_setConst(model, mujoco.MjData(model))  # MuJoCo keeps sums that hold the armature
    stiffness = (physics.inertia - physics.armature) * (2 * np.pi * fault.elastic_frequency) ** 2
    damper = 2 * SPRING_DAMPING * np.sqrt(stiffness * physics.armature)
    data, known = mujoco.MjData(model), compile_model(described)
    weighed, loaded = mujoco.MjData(known), compile_model(physics.root)
    loaded.opt.gravity[:] = physics.gravity
    load = mujoco.MjData(loaded)
    desired, speed, _ = way
    data.qpos[link] = data.qpos[motor] = desired[0]
    kp, kd = physics.inertia * BANDWIDTH**2, 2 * DAMPING * physics.inertia * BANDWIDTH
    varies = fault.stribeck or fault.friction_drift or fault.load_friction
    bends, state, dry = fault.bristle or fault.hysteresis, np.zeros((2, n)), physics.coulomb
    q, dq, torque = (np.empty_like(desired) for _ in range(3))
    for k in range(len(desired)):
        q[k], dq[k] = data.qpos[motor], data.qvel[motor]
        weighed.qpos[link] = q[k]
        mujoco.mj_inverse(known, weighed)
        torque[k] = kp * (desired[k] - q[k]) + kd * (speed[k] - dq[k])
        torque[k] += weighed.qfrc_inverse[link]
        if varies:
            load.qpos[link] = q[k]
            mujoco.mj_inverse(loaded, load)
            viscous, dry = physics.friction(start + k / RATE, dq[k], load.qfrc_inverse[link])
            model.dof_damping[motor] = viscous
            model.dof_frictionloss[motor] = 0.0 if fault.bristle else dry
        applied = torque[k] + physics.extra(q[k])
        for _ in range(round(1 / RATE / STEP)):
            data.qfrc_applied[motor] = applied
            if bends:
                state = physics.bent(state, data.qvel[motor], STEP)
                gears = fault.hysteresis * physics.size * state[1]
                data.qfrc_applied[motor] -= gears + bool(fault.bristle) * dry * state[0]
            if not rigid:
                twist = data.qpos[motor] - data.qpos[link]
                twist = np.sign(twist) * np.maximum(np.abs(twist) - fault.backlash, 0.0)
                force = stiffness * twist
                force += damper * (data.qvel[motor] - data.qvel[link]) * (twist != 0)
                data.qfrc_applied[motor] -= force
                data.qfrc_applied[link] = force
            mujoco.mj_step(model, data)
        if not np.abs(data.qvel).max() < MAX_SPEED:
            raise RuntimeError(f"the simulation is unstable after {k / RATE:.3f} s")
    # A command holds for the sample after it: the state of a row is between two commands.
    torque[1:] = 0.5 * (torque[1:] + torque[:-1])
    return Motion(start + np.arange(len(q)) / RATE, q, dq, torque)
