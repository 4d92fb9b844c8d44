"""Floating robots of the example-robot-data wheel, and motions of them."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from robots import example_urdfs
from scipy.spatial.transform import Rotation

import feasid
from feasid.logs.recording import Recording
from feasid.robot.dynamics.floating import FloatingMotion, frame_jacobian

SAMPLES = 3
RATE = 500.0
LEVER = (0.03, -0.02, 0.05)
FOOT = feasid.floating.ContactSensor("FL_LOWER_LEG", (0.0, 0.0, -0.16))


def floating_log(df, robot, **options):
    """The equations of a log: motion, generalised forces, the contacts' part of them, cut-off."""
    motion = Recording.from_source(df).motion(robot, filtering="signals", **options)
    names = ("q", "dq", "ddq", "tau", "applied")
    *kinds, forces, applied = (np.concatenate([getattr(r, k) for r in motion.runs]) for k in names)
    contacts = forces - applied
    contacts[:, :6] = forces[:, :6]  # the base, which comes first, has no motors
    return SimpleNamespace(
        motion=FloatingMotion(*kinds), forces=forces, contacts=contacts, cutoff=motion.cutoff
    )


def random_motion(robot, seed=0):
    rng = np.random.default_rng(seed)
    n = robot.dof - 6
    return {
        "joints": tuple(rng.normal(size=(3, SAMPLES, n))),
        "rotation": Rotation.from_quat(rng.normal(size=(SAMPLES, 4))).as_matrix(),
        "position": rng.normal(size=(SAMPLES, 3)),
        "twist": rng.normal(size=(SAMPLES, 6)),
        "acceleration": rng.normal(size=(SAMPLES, 6)),
    }


def loaded(name):
    path = next((p for p in example_urdfs() if p.stem == name), None)
    if path is None:
        pytest.skip(f"{name} is not in the wheel")
    return feasid.load_robot(path, floating=True).without_joint_terms(), path


@cache
def smooth_log():
    """A smooth motion with one contact: robot, log and the true generalised forces."""
    robot, _ = loaded("solo12")
    t = np.arange(1500) / RATE
    rng = np.random.default_rng(0)
    phases, rates = rng.uniform(0, 6, (2, 24))
    wave = np.sin(np.outer(t, 4 + rates) + phases)
    q = 0.5 * wave[:, :12]
    turn = Rotation.from_rotvec(0.4 * wave[:, 12:15]).as_matrix()
    place, force = 0.1 * wave[:, 15:18], 5 * wave[:, 18:21]
    d = lambda x: np.gradient(x, 1 / RATE, axis=0)  # noqa: E731
    cross = np.swapaxes(turn, 1, 2) @ d(turn)
    omega = np.stack([cross[:, 2, 1], cross[:, 0, 2], cross[:, 1, 0]], 1)
    push = np.einsum("nji,nj->ni", turn, d(d(place)))
    motion = feasid.floating.floating_motion(
        robot,
        (q, d(q), d(d(q))),
        rotation=turn,
        position=place,
        twist=np.hstack([omega, np.einsum("nji,nj->ni", turn, d(place))]),
        acceleration=np.hstack([d(omega), push]),
    )
    tau = feasid.inverse_dynamics(robot, *motion)
    lever = np.array(LEVER)
    felt = push + np.cross(d(omega), lever) + np.cross(omega, np.cross(omega, lever))
    felt -= np.einsum("nji,j->ni", turn, robot.gravity)
    pushed = np.einsum(
        "nij,ni->nj", frame_jacobian(robot, motion.q, FOOT.body, FOOT.position)[:, 3:], force
    )
    quaternion = Rotation.from_matrix(turn).as_quat()
    columns = {"t": t}
    for k, joint in enumerate(robot.joints[1:]):
        columns |= {f"q_{joint}": q[:, k], f"tau_{joint}": (tau - pushed)[:, 6 + k]}
    for k, axis in enumerate("xyz"):
        columns |= {f"gyro_{axis}": omega[:, k], f"acc_{axis}": felt[:, k]}
        columns |= {f"base_{axis}": place[:, k], f"force_foot_{axis}": force[:, k]}
    columns |= {f"base_q{a}": quaternion[:, k] for k, a in enumerate("xyzw")}
    return robot, pd.DataFrame(columns), tau
