"""Worlds besides those of the array: springs, joints without motors, temperatures, loads, IMUs.

Elastic and passive arms move in MuJoCo (`benchmarks.elastic`), and the load is one behind a wrist
sensor that is turned and late (`benchmarks.wrist`). They have no rows of the array; round trips of
what is saved draw them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import numpy as np
from scipy.spatial.transform import Rotation

import feasid
from feasid.logs.floating import IMU

from .arms import LOAD, World, world

JOINTS, EVERY = 3, 5
"""Joints of arms in MuJoCo, and one row of their 1000 per second in so many."""
TURN, LATE = Rotation.from_rotvec([0.1, -0.2, 1.5]).as_matrix(), 0.012
"""Axes of an IMU in its base's frame, and the delay of its columns [s]."""
COLD, WARM, SLOPES = 20.0, 45.0, (-0.01, -0.01)
"""Temperatures of a joint [degrees C], and change of its dry and viscous friction per K."""


@cache
def hidden_arm(kind: str) -> World:
    """An arm that MuJoCo moves, "elastic" or "passive", with three logs and no exact motion."""
    from benchmarks.elastic import Arm

    rng = np.random.default_rng([7, *kind.encode()])
    arm = Arm.draw(rng, JOINTS, kind == "elastic")
    described = feasid.load_robot(arm.mjcf(described=True))
    log, test_log, other = (arm.move(rng)[0][::EVERY].reset_index(drop=True) for _ in range(3))
    without = [j for j, driven in zip(described.joints, arm.driven, strict=True) if not driven]
    options = {"elastic": described.joints} if kind == "elastic" else {"passive": without}
    truth = described.with_values(described.values / 1.15)
    still = (np.zeros((1, described.dof)),) * 3
    return World(kind, "clean", described, truth, log, test_log, still, options, test_log, other)


@cache
def warm_arm() -> World:
    """The serial arm, whose second joint loses friction as it warms up."""
    arm = world("serial")
    joint = arm.joints[1]

    def warmed(log):
        warmth = np.linspace(COLD, WARM, len(log))
        speed = np.gradient(log[f"q_{joint}"], log["t"])
        change = (warmth - COLD) * (SLOPES[0] * np.sign(speed) + SLOPES[1] * speed)
        torque = log[f"tau_{joint}"] + change
        return log.assign(**{f"tau_{joint}": torque, f"temperature_{joint}": np.round(warmth)})

    logs = {name: warmed(getattr(arm, name)) for name in ("log", "test_log", "loaded", "live")}
    return replace(arm, kind="warm", **logs)


@cache
def weighing_arm() -> World:
    """The serial arm, commanded, and its load, of which a wrist sensor has been calibrated."""
    from benchmarks import wrist

    arm = world("serial", "commands")
    drawn = wrist.World.draw(3, wrist.WRONG["sensor wrong"])
    log, robot = drawn.log()
    rotation, position = drawn.pose
    load = feasid.payload_from_wrench(log, robot, rotation=rotation, position=position)
    weighed = {"loaded": arm.loaded, "load": replace(load, body="l3", parameters=LOAD)}
    return replace(arm, kind="weighed", options={**arm.options, **weighed})


@cache
def turned_imu(given: Callable) -> World:
    """The floating robot, whose IMU is turned and late, as `given` says it to a fit."""
    arm = world("floating")

    def felt(log):
        late = {c: np.interp(log["t"] - LATE, log["t"], log[c]) for c in IMU}
        for kind in ("gyro", "acc"):
            names = [f"{kind}_{axis}" for axis in "xyz"]
            late |= zip(names, TURN.T @ [late[c] for c in names], strict=True)
        return log.assign(**late)

    logs = {name: felt(getattr(arm, name)) for name in ("log", "test_log", "loaded", "live")}
    imu = given(link="base", rotation=TURN.tolist(), delay=LATE)
    return replace(arm, kind="turned IMU", **logs, options={**arm.options, "imu": imu})


FURTHER = {
    "hidden elastic": partial(hidden_arm, "elastic"),
    "hidden passive": partial(hidden_arm, "passive"),
    "warm": warm_arm,
    "weighed": weighing_arm,
    "turned IMU": partial(turned_imu, feasid.floating.Imu),
    "turned IMU, as a mapping": partial(turned_imu, dict),
}
"""What makes a world, by its name."""
