"""A humanoid of the example-robot-data wheel that stands, steps and flies in MuJoCo."""

from __future__ import annotations

import numpy as np
import pandas as pd
from floating import loaded
from quadruped import Walk, frame, walk

from feasid.logs.floating import ContactSensor, Imu

NAME = "g1_29dof_rev_1_0"
RADIUS = 0.005  # of the four spheres below each sole [m]
CORNERS = [(-0.05, 0.025), (-0.05, -0.025), (0.12, 0.03), (0.12, -0.03)]
FEET = {
    f"{side}{k}": (f"{side}_ankle_roll_link", (x, y, -0.03), RADIUS)
    for side in ("left", "right")
    for k, (x, y) in enumerate(CORNERS)
}
TOUCHED = {
    name: ContactSensor(body, (x, y, z - RADIUS)) for name, (body, (x, y, z), _) in FEET.items()
}
LEG = ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")
BEND = 0.3  # of the hips where it stands [rad]


class Motion:
    """Joint positions by time: a crouch, a sway from foot to foot, lifted feet, and gestures."""

    def __init__(self, robot, seed, crouch=0.1, sway=0.0, lift=0.0, gesture=0.4, period=4.0):
        rng = np.random.default_rng(seed)
        self.joints = [j.removesuffix("_joint") for j in robot.joints[1:]]
        self.crouch, self.sway, self.lift, self.period = crouch, sway, lift, period
        legs = {f"{side}_{part}" for side in ("left", "right") for part in LEG}
        size = [0.0 if j in legs else 0.15 if j.startswith("waist") else 1.0 for j in self.joints]
        self.size = gesture * np.array(size)
        self.rate = rng.uniform(2.0, 7.0, (2, len(size)))
        self.phase = rng.uniform(0, 2 * np.pi, (2, len(size)))

    def __call__(self, t):
        wave = np.sin(self.rate * t + self.phase).mean(axis=0)
        out = dict(zip(self.joints, self.size * wave, strict=True))
        phase = 2 * np.pi * t / self.period
        lean = self.sway * np.tanh(1.5 * np.sin(phase)) / np.tanh(1.5) * min(1.0, (t + 0.6) / 2)
        for side, sign in (("left", 1.0), ("right", -1.0)):
            up = self.lift * max(0.0, sign * np.sin(phase) - 0.7) / 0.3
            bend = BEND + up + self.crouch * np.sin(0.9 * t)
            out |= {f"{side}_hip_pitch": -bend, f"{side}_knee": 2 * bend}
            out |= {f"{side}_ankle_pitch": -bend, f"{side}_hip_roll": lean}
            out[f"{side}_ankle_roll"] = -lean
        return np.array([out[j] for j in self.joints])


def gains(robot):
    """Stiffness and damping of the joints: legs and waist hold the robot, arms wave."""
    strong = np.array([any(k in j for k in (*LEG, "waist")) for j in robot.joints[1:]])
    return np.where(strong, 3000.0, 40.0), np.where(strong, 30.0, 1.0)


def on_the_ground(robot, motion, seconds, seed):
    return frame(robot, walk(robot, Walk(FEET, motion, gains(robot), 0.74), seconds, seed), FEET)


def in_flight(robot, seed, throws=4):
    """Several throws, each a run, before the robot comes down."""
    runs = []
    for k in range(throws):
        rng = np.random.default_rng(100 * seed + k)
        motion = Motion(robot, 1000 + 10 * seed + k, crouch=0.3, gesture=1.0)
        velocity = (0.3, 0.0, 3.5, *rng.uniform(-1.5, 1.5, 3))
        way = Walk(FEET, motion, gains(robot), 2.5, velocity=velocity, settle=0.0)
        log = frame(robot, walk(robot, way, 0.9, 10 * seed + k), FEET)
        runs.append(log.assign(run=k, t=log["t"]))
    return pd.concat(runs, ignore_index=True)


def options(robot):
    where = {"imu": Imu(robot.bodies[0].name), "contacts": TOUCHED}
    return where | {"friction": (), "drive_inertia": False}


def humanoid():
    return loaded(NAME)[0]
