"""Robots of the example-robot-data wheel that walk in MuJoCo, a quadruped first, and their logs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import mujoco
import numpy as np
import pandas as pd
from floating import floating_log
from logs import log_frame
from mjcf_files import inertial, row
from scipy.spatial.transform import Rotation

import feasid
from feasid.logs.floating import ContactSensor, Imu

STEP = 5e-4  # [s]
HIGH = 1.5  # of a base that is thrown, which may turn over [m]
CUTOFF = 30.0  # of the zero-phase low-pass on all signals [Hz]
FEET = {leg: f"{leg}_LOWER_LEG" for leg in ("FL", "FR", "HL", "HR")}
FOOT = {"FL": (0, 0.008, -0.16), "FR": (0, -0.008, -0.16)}
FOOT |= {"HL": FOOT["FL"], "HR": FOOT["FR"]}

NOISE = {
    "encoder": 1e-4,  # [rad]
    "torque": 5e-3,  # [N m]
    "gyro": 5e-3,  # [rad/s]
    "accelerometer": 5e-2,  # [m/s^2]
    "orientation": 2e-3,  # [rad], slowly varying
    "force": 5e-2,  # [N]
    "place": 1e-5,  # [m], a motion capture's
}


@dataclass(frozen=True)
class Gait:
    """A trot: strides per second, lift and sweep of the feet [rad], turning and bobbing."""

    rate: float
    sweep: float
    lift: float
    sway: float

    def target(self, t):
        """Joint positions: abduction, hip, knee per leg."""
        out = []
        for k in range(4):
            phase = 2 * np.pi * (self.rate * t + (0.5 if k in (1, 2) else 0.0))
            swing = max(0.0, np.sin(phase))
            sway = self.sway * np.sin(phase / 2 + k)
            hip = 0.75 + self.sweep * np.cos(phase) + 0.3 * self.lift * swing
            out += [sway, hip, -1.5 - self.lift * swing + 0.1 * np.sin(1.7 * phase + k)]
        return np.array(out)


@dataclass(frozen=True)
class Walk:
    """What a simulation of a floating robot needs beside the robot.

    `target` gives joint positions by time, `gains` stiffness and damping per joint; `feet` are
    points by name: body, position, and the radius of a sphere around it.
    """

    feet: dict
    target: object
    gains: tuple
    height: float
    friction: float = 0.9
    velocity: tuple = (0.0,) * 6
    settle: float = 0.6


def mjcf(robot, feet, friction=0.9):
    """The robot's own numbers as a MuJoCo model with feet on a floor."""
    children = {}
    for i, p in enumerate(robot.parents):
        children.setdefault(p, []).append(i)

    def element(i):
        body = robot.bodies[i]
        quat = np.empty(4)
        mujoco.mju_mat2Quat(quat, body.rotation.ravel())
        joint = f'<joint name="{body.joint}" axis="{row(body.motion[:3, 0])}"/>'
        joint = f'<freejoint name="{body.joint}"/>' if body.dof == 6 else joint
        foot = "".join(
            f'<geom name="{k}" type="sphere" size="{radius}" pos="{row(at)}"/>'
            for k, (on, at, radius) in feet.items()
            if on == body.name
        )
        inner = "".join(element(k) for k in children.get(i, ()))
        return (
            f'<body name="{body.name}" pos="{row(body.position)}" quat="{row(quat)}">{joint}'
            f"{inertial(body.inertial)}{foot}{inner}</body>"
        )

    return (
        f'<mujoco><option timestep="{STEP}" gravity="{row(robot.gravity)}"/>'
        f'<default><geom friction="{friction}" solref="0.02 1" contype="1" conaffinity="2"/>'
        "</default>"
        '<worldbody><geom name="floor" type="plane" size="9 9 1" contype="2" conaffinity="1"/>'
        f"{element(0)}</worldbody></mujoco>"
    )


BALLS = {leg: (body, FOOT[leg], 0.012) for leg, body in FEET.items()}


@cache
def trot(robot, gait, seconds, seed, friction=0.9):
    """What sensors show while the robot trots: a dict of arrays, noisy, one row per step."""
    return walk(robot, Walk(BALLS, gait.target, (6.0, 0.15), 0.27, friction), seconds, seed)


def walk(robot, way, seconds, seed):
    """What sensors show of a floating robot: a dict of arrays, noisy, one row per step."""
    model = mujoco.MjModel.from_xml_string(mjcf(robot, way.feet, way.friction))
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    data.qpos[2], data.qpos[7:], data.qvel[:6] = way.height, way.target(0.0), way.velocity
    model.dof_damping[6:] = way.gains[1]
    feet, n = [model.geom(leg).id for leg in way.feet], robot.dof - 6
    count, settle = int(seconds / STEP), int(way.settle / STEP)
    log = {k: np.zeros((count, m)) for k, m in (("q", n), ("tau", n), ("gyro", 3), ("acc", 3))}
    log["place"], log["slip"] = np.zeros((count, 3)), np.zeros((count, len(feet)))
    log |= {"turn": np.zeros((count, 3, 3)), "force": np.zeros((count, len(feet), 3))}
    wrench, before = np.zeros(6), data.geom_xpos[feet].copy()
    for k in range(-settle, count):
        torque = way.gains[0] * (way.target(k * STEP) - data.qpos[7:])
        data.qfrc_applied[6:] = torque
        turn = np.empty(9)
        mujoco.mju_quat2Mat(turn, data.qpos[3:7])
        q, spin, place = (x.copy() for x in (data.qpos[7:], data.qvel[3:6], data.qpos[:3]))
        speed = data.qvel[:3].copy()
        mujoco.mj_step(model, data)
        torque = torque - way.gains[1] * data.qvel[6:]  # what damps is implicit
        moved, before = data.geom_xpos[feet] - before, data.geom_xpos[feet].copy()
        if k < 0:
            continue
        turn = turn.reshape(3, 3)
        log["q"][k], log["tau"][k], log["gyro"][k], log["turn"][k] = q, torque, spin, turn
        log["place"][k] = place
        log["acc"][k] = turn.T @ ((data.qvel[:3] - speed) / STEP - robot.gravity)
        for c in range(data.ncon):
            contact = data.contact[c]
            mujoco.mj_contactForce(model, data, c, wrench)
            on = next((feet.index(g) for g in contact.geom if g in feet), None)
            sign = 1.0 if contact.geom[1] in feet else -1.0
            log["force"][k, on] += sign * contact.frame.reshape(3, 3).T @ wrench[:3]
            log["slip"][k, on] = np.linalg.norm(moved[on, :2]) / STEP
    if turn[2, 2] < 0.7 and way.height < HIGH:
        raise RuntimeError("the robot fell")
    return noisy(log, rng)


def noisy(log, rng):
    """The log as sensors of usual quality show it."""
    shape = {"q": "encoder", "tau": "torque", "gyro": "gyro", "acc": "accelerometer"}
    out = {k: log[k] + NOISE[s] * rng.normal(size=log[k].shape) for k, s in shape.items()}
    drift = NOISE["orientation"] * np.sin(2 * np.pi * np.arange(len(log["q"]))[:, None] * STEP / 3)
    axis = rng.normal(size=3)
    w = drift * axis / np.linalg.norm(axis)
    wrong = np.zeros((len(w), 3, 3))
    wrong[:, 0, 1], wrong[:, 0, 2], wrong[:, 1, 2] = -w[:, 2], w[:, 1], -w[:, 0]
    out["turn"] = log["turn"] @ (np.eye(3) + wrong - np.swapaxes(wrong, 1, 2))
    out["place"] = log["place"] + NOISE["place"] * rng.normal(size=log["place"].shape)
    out["slip"] = log["slip"]
    out["force"] = log["force"] + NOISE["force"] * rng.normal(size=log["force"].shape)
    return out


def frame(robot, log, feet=FEET):
    """The log as a DataFrame with the columns of `feasid.logs.floating`."""
    joints = robot.joints[1:]
    columns = dict(log_frame(STEP * np.arange(len(log["q"])), joints, q=log["q"], tau=log["tau"]))
    for k, axis in enumerate("xyz"):
        columns |= {f"gyro_{axis}": log["gyro"][:, k], f"acc_{axis}": log["acc"][:, k]}
        columns[f"base_{axis}"] = log["place"][:, k]
        columns |= {f"force_{leg}_{axis}": log["force"][:, f, k] for f, leg in enumerate(feet)}
    quaternions = Rotation.from_matrix(log["turn"]).as_quat()
    columns |= {f"base_q{a}": quaternions[:, k] for k, a in enumerate("xyzw")}
    return pd.DataFrame(columns)


TOUCHED = {leg: ContactSensor(body, FOOT[leg]) for leg, body in FEET.items()}


def equations(robot, log, imu=True):
    """What the log says: motion and forces."""
    where = Imu(robot.bodies[0].name) if imu else None
    df = frame(robot, log)
    return floating_log(df, robot, imu=where, contacts=TOUCHED, cutoff=CUTOFF)


def torque_error(robot, parameters, log):
    """Relative error of predicted joint torques on a log."""
    said = equations(robot, log)
    own = slice(6, None)
    predicted = feasid.inverse_dynamics(robot, *said.motion, parameters=parameters) - said.forces
    applied = said.forces - said.contacts
    return float(np.linalg.norm(predicted[:, own]) / np.linalg.norm(applied[:, own]))
