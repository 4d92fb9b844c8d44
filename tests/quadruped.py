"""A quadruped of the example-robot-data wheel that trots in MuJoCo, and its log."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import mujoco
import numpy as np
import pandas as pd
from scipy.spatial.transform import Rotation

import feasid
from feasid.logs.floating import Imu, Touch, floating_log
from feasid.robot.inertia import to_mass_com_inertia

STEP = 5e-4  # [s]
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


def mjcf(robot):
    """The robot's own numbers as a MuJoCo model with four feet on a floor."""
    children = {}
    for i, p in enumerate(robot.parents):
        children.setdefault(p, []).append(i)

    def element(i):
        body = robot.bodies[i]
        mass, com, inertia = to_mass_com_inertia(body.inertial)
        quat = np.empty(4)
        mujoco.mju_mat2Quat(quat, body.rotation.ravel())
        full = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        joint = f'<joint name="{body.joint}" axis="{row(body.motion[:3, 0])}"/>'
        joint = f'<freejoint name="{body.joint}"/>' if body.dof == 6 else joint
        leg = next((k for k, name in FEET.items() if name == body.name), None)
        foot = (
            f'<geom name="{leg}" type="sphere" size="0.012" pos="{row(FOOT[leg])}"/>' if leg else ""
        )
        inner = "".join(element(k) for k in children.get(i, ()))
        return (
            f'<body name="{body.name}" pos="{row(body.position)}" quat="{row(quat)}">{joint}'
            f'<inertial pos="{row(com)}" mass="{float(mass)!r}" fullinertia="{row(full)}"/>'
            f"{foot}{inner}</body>"
        )

    return (
        f'<mujoco><option timestep="{STEP}" gravity="{row(robot.gravity)}"/>'
        '<default><geom friction="0.9" solref="0.02 1" contype="1" conaffinity="2"/></default>'
        '<worldbody><geom name="floor" type="plane" size="9 9 1" contype="2" conaffinity="1"/>'
        f"{element(0)}</worldbody></mujoco>"
    )


def row(values):
    return " ".join(repr(float(v)) for v in np.ravel(values))


@cache
def trot(robot, gait, seconds, seed):
    """What sensors show while the robot trots: a dict of arrays, noisy, one row per step."""
    model = mujoco.MjModel.from_xml_string(mjcf(robot))
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    data.qpos[2], data.qpos[7:] = 0.27, gait.target(0.0)
    feet = [model.geom(leg).id for leg in FEET]
    count, settle = int(seconds / STEP), int(0.6 / STEP)
    log = {k: np.zeros((count, n)) for k, n in (("q", 12), ("tau", 12), ("gyro", 3), ("acc", 3))}
    log["place"] = np.zeros((count, 3))
    log |= {"turn": np.zeros((count, 3, 3)), "force": np.zeros((count, 4, 3))}
    wrench = np.zeros(6)
    for k in range(-settle, count):
        torque = 6.0 * (gait.target(k * STEP) - data.qpos[7:]) - 0.15 * data.qvel[6:]
        data.qfrc_applied[6:] = torque
        turn = np.empty(9)
        mujoco.mju_quat2Mat(turn, data.qpos[3:7])
        q, spin, place = (x.copy() for x in (data.qpos[7:], data.qvel[3:6], data.qpos[:3]))
        mujoco.mj_step(model, data)
        if k < 0:
            continue
        turn = turn.reshape(3, 3)
        log["q"][k], log["tau"][k], log["gyro"][k], log["turn"][k] = q, torque, spin, turn
        log["place"][k] = place
        log["acc"][k] = turn.T @ (data.qacc[:3] - robot.gravity)
        for c in range(data.ncon):
            contact = data.contact[c]
            mujoco.mj_contactForce(model, data, c, wrench)
            on = next((feet.index(g) for g in contact.geom if g in feet), None)
            sign = 1.0 if contact.geom[1] in feet else -1.0
            log["force"][k, on] += sign * contact.frame.reshape(3, 3).T @ wrench[:3]
    if turn[2, 2] < 0.7:
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
    out["force"] = log["force"] + NOISE["force"] * rng.normal(size=log["force"].shape)
    return out


def frame(robot, log):
    """The log as a DataFrame with the columns of `feasid.logs.floating`."""
    joints = robot.joints[1:]
    columns = {"t": STEP * np.arange(len(log["q"]))}
    columns |= {f"q_{j}": log["q"][:, k] for k, j in enumerate(joints)}
    columns |= {f"tau_{j}": log["tau"][:, k] for k, j in enumerate(joints)}
    for k, axis in enumerate("xyz"):
        columns |= {f"gyro_{axis}": log["gyro"][:, k], f"acc_{axis}": log["acc"][:, k]}
        columns[f"base_{axis}"] = log["place"][:, k]
        columns |= {f"force_{leg}_{axis}": log["force"][:, f, k] for f, leg in enumerate(FEET)}
    quaternions = Rotation.from_matrix(log["turn"]).as_quat()
    columns |= {f"base_q{a}": quaternions[:, k] for k, a in enumerate("xyzw")}
    return pd.DataFrame(columns)


TOUCHED = {leg: Touch(body, FOOT[leg]) for leg, body in FEET.items()}


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
