"""Tasks: what a participant is told, and what the judge keeps; docs/league.md is the protocol."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.worlds import World
from benchmarks.worlds.description import _remove, _rotation, _text
from benchmarks.worlds.judge import differentiated, given_motion
from feasid import datasets

SCHEMA = 1
LOGS = ("unitree_z1", "kuka_lwr4", "staubli_tx40", "kinova_gen3", "double_pendulum")
"""Packaged real logs."""
HELD_OUT = 0.4
"""Last share of each run that is kept from the participants."""
STRETCH, MIN_FASTER = 3.0, 1.3
"""Length [s] of the stretches ranked by speed, and the ratio of RMS speeds (fast half over slow
half) from which a log has fast motions."""
MIN_ROWS = 100
"""Stretches with fewer rows are left out."""
SPLITS = ("held-out", "faster")
SECONDS, GIGABYTES = 300, 6
"""Limits of a participant on a task: processor time and address space."""


@dataclass(frozen=True, eq=False)
class Task:
    """A task: `robot` (URDF), `train` and `test` are told; the rest is the judge's.

    Parameters
    ----------
    track
        "A" (real log), "B" (world without a fault), "D" (world with one), "K" (a fault that is
        known and taken out for everybody) or "X" (an effect of which nobody has a column).
    name
        Unique among the tasks.
    joints
        In the order of the columns.
    train
        run, t, q_* and tau_*.
    test
        run, t, q_*, dq_* and ddq_*, by the judge's derivatives.
    measured
        Torques of the test log, (N, joints).
    world
        Of tracks B and D.
    """

    track: str
    name: str
    joints: tuple[str, ...]
    robot: str
    train: pd.DataFrame
    test: pd.DataFrame
    measured: np.ndarray
    world: World | None = None
    gravity: tuple[float, ...] = (0.0, 0.0, -9.81)

    def write(self, folder: Path) -> None:
        """Write what a participant is told; no torque of the test log is among it."""
        folder.mkdir(parents=True)
        terms = {"schema": SCHEMA, "name": self.name.split(" seed")[0], "joints": self.joints,
                 "asks": ["torque", "diagnosis"] if self.track in "DX" else ["torque"],
                 "predict": "the torques as logged, by the instruments of train.csv"
                 if self.world is None else "the true torques of the test motion",
                 "seconds": SECONDS, "units": "s, rad (m), N m (N); torques act at the joints",
                 "gravity": self.gravity}  # fmt: skip
        (folder / "task.json").write_text(json.dumps(terms, indent=1))
        (folder / "robot.urdf").write_text(self.robot)
        for name in ("train", "test"):
            frame = getattr(self, name)
            frame.to_csv(folder / f"{name}.csv", index=False, float_format="%.10g")


def world_task(world: World, track: str = "B") -> Task:
    """A task of a hidden-truth world; its name does not tell the fault."""
    joints = world.truth.robot.joints
    t, *motion = given_motion(world)
    return Task(
        track,
        f"{world.name} seed {world.seed}",
        joints,
        _without_locks(ET.fromstring(world.description), {}),
        world.log.assign(run=0),
        _table(0, t, joints, *motion),
        world.test_log[[f"tau_{j}" for j in joints]].to_numpy(),
        world,
    )


def known_world_task(world: World) -> Task:
    """A world whose fault is known: its log without the delay, gains and zeros, and gravity."""
    task, truth, fault = world_task(world, "K"), world.truth, world.fault
    train, test = task.train.copy(), task.test.copy()
    t, joints = train["t"].to_numpy(), task.joints
    for j, zero, gain in zip(joints, truth.joint_zeros, truth.gains, strict=True):
        train[f"tau_{j}"] = np.interp(t + fault.delay, t, train[f"tau_{j}"]) / gain
        train[f"q_{j}"] -= zero
        test[f"q_{j}"] -= zero
    return replace(task, train=train, test=test, gravity=tuple(truth.physics.gravity.tolist()))


def known_log_task(log: str, split: str, delay: float) -> Task | None:
    """A real log whose torques come so much later for everybody, also for the judge [s]."""
    task = log_task(log, split)
    if task is None:
        return None

    def later(t: np.ndarray, run: np.ndarray, torque: np.ndarray) -> np.ndarray:
        out = torque.copy()
        for number in np.unique(run):
            rows = run == number
            for k in range(torque.shape[1]):
                out[rows, k] = np.interp(t[rows] - delay, t[rows], torque[rows, k])
        return out

    names = [f"tau_{j}" for j in task.joints]
    train, clocks = task.train.copy(), (task.train, task.test)
    times = [[x[k].to_numpy() for k in ("t", "run")] for x in clocks]
    train[names] = later(*times[0], train[names].to_numpy())
    return replace(task, track="K", train=train, measured=later(*times[1], task.measured))


def log_task(log: str, split: str) -> Task | None:
    """A task of a packaged real log; None where the split needs faster motions than it has."""
    frame = datasets.load(log)
    robot = frame.attrs["robot"]
    frame = _joint_side(frame, robot.joints, **frame.attrs["options"])
    parts = held_out(frame) if split == "held-out" else faster(frame)
    if parts is None:
        return None
    train, rest = (pd.concat(x).reset_index(drop=True) for x in parts)
    tests, torques = [], []
    for run, part in rest.groupby("run", sort=False):
        t = part["t"].to_numpy()
        even = np.arange(t[0], t[-1], np.median(np.diff(t)))
        q, tau = (
            np.stack([np.interp(even, t, part[f"{k}_{j}"]) for j in robot.joints], axis=1)
            for k in ("q", "tau")
        )
        rate = 1 / (even[1] - even[0])
        tests.append(_table(run, even, robot.joints, *differentiated(q, rate)))
        torques.append(tau)
    root = ET.parse(robot.source.path).getroot()
    return Task(
        "A",
        f"{log} {split}",
        robot.joints,
        _without_locks(root, robot.source.reading["lock"]),
        train,
        pd.concat(tests).reset_index(drop=True),
        np.concatenate(torques),
    )


def held_out(frame: pd.DataFrame) -> tuple[list, list]:
    """The first part of each run, and its last `HELD_OUT`."""
    cuts = [(x, round((1 - HELD_OUT) * len(x))) for _, x in frame.groupby("run", sort=False)]
    return [x.iloc[:n] for x, n in cuts], [x.iloc[n:] for x, n in cuts]


def faster(frame: pd.DataFrame) -> tuple[list, list] | None:
    """Stretches of the slow and of the fast half of a log; neighbours of a kind are joined."""
    stretches = []
    for _, part in frame.groupby("run", sort=False):
        t = part["t"].to_numpy()
        groups = part.groupby(np.floor((t - t[0]) / STRETCH), sort=False)
        stretches += [x for _, x in groups if len(x) > MIN_ROWS]

    def speed(part: pd.DataFrame) -> float:
        late = max(1, len(part) // 60)
        q, t = part.filter(regex="^q_").to_numpy(), part["t"].to_numpy()
        return float(
            np.sqrt(np.mean(((q[late:] - q[:-late]) / (t[late:] - t[:-late])[:, None]) ** 2))
        )

    speeds = np.array([speed(x) for x in stretches])
    fast = speeds > np.median(speeds)
    if np.sqrt(np.mean(speeds[fast] ** 2) / np.mean(speeds[~fast] ** 2)) < MIN_FASTER:
        return None
    joined = [
        one == other and a["run"].iloc[0] == b["run"].iloc[0]
        for (a, one), (b, other) in pairwise(zip(stretches, fast, strict=True))
    ]
    run = np.cumsum([0, *(not x for x in joined)])
    named = [x.assign(run=k) for x, k in zip(stretches, run, strict=True)]
    parts = [x for x, f in zip(named, fast, strict=True) if not f]
    return parts, [x for x, f in zip(named, fast, strict=True) if f]


def _table(run, t, joints, *motion) -> pd.DataFrame:
    columns = {"run": run, "t": t}
    for kind, values in zip(("q", "dq", "ddq"), motion, strict=True):
        columns |= {f"{kind}_{j}": values[:, k] for k, j in enumerate(joints)}
    return pd.DataFrame(columns)


def _joint_side(frame, joints, transmission=None, offsets=()) -> pd.DataFrame:
    """Positions and torques of the joints where motors were logged, and a column of runs."""
    frame = frame.assign(run=frame.get("run", 0))
    q, tau = [f"q_{j}" for j in joints], [f"tau_{j}" for j in joints]
    if transmission is not None:
        T = np.array(transmission)
        frame[q] = np.linalg.solve(T, frame[q].to_numpy().T).T
        frame[tau] = frame[tau].to_numpy() @ T
    for joint, offset in dict(offsets).items():
        frame[f"q_{joint}"] += offset
    return frame[["run", "t", *q, *tau]]


def _without_locks(root: ET.Element, lock: dict[str, float]) -> str:
    """The description without meshes, its locked joints fixed where they are, in plain joints."""
    _remove(root, "transmission", "gazebo", "material", "ros2_control", "mujoco")
    for link in root.findall("link"):
        _remove(link, "visual", "collision")
    for joint in root.findall("joint"):
        _remove(joint, "dynamics", "mimic", "safety_controller", "calibration")
        if joint.get("type") == "continuous":
            joint.set("type", "revolute")
            _remove(joint, "limit")
            ET.SubElement(joint, "limit", lower="-10", upper="10", effort="100", velocity="10")
        if joint.get("name") in lock:
            _fix(joint, lock[joint.get("name")])
    return ET.tostring(root, encoding="unicode")


def _fix(joint: ET.Element, angle: float) -> None:
    """Make a turning joint a fixed one at this angle [rad]."""
    origin, axis = joint.find("origin"), joint.find("axis")
    rpy = np.array((origin.get("rpy") or "0 0 0").split(), float)
    x = np.array((axis.get("xyz") or "1 0 0").split(), float)
    x /= np.linalg.norm(x)
    cross = np.cross(np.eye(3), x)
    R = _rotation(rpy) @ (np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross)
    fixed = [np.arctan2(R[2, 1], R[2, 2]), np.arcsin(-R[2, 0]), np.arctan2(R[1, 0], R[0, 0])]
    origin.set("rpy", _text(fixed))
    joint.set("type", "fixed")
    _remove(joint, "axis", "limit")
