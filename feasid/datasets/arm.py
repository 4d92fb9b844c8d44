"""A simulated arm with three joints, and logs of it whose ground truth is known.

``feasid.datasets.load("arm")`` is one log; `write_files` lays the files that tutorials use into the
current folder. The true arm differs from its description: see `truth`.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from feasid.robot.description import Robot
from feasid.robot.dynamics.regressor import inverse_dynamics
from feasid.robot.formats.load import load_robot

if TYPE_CHECKING:
    import pandas as pd

LINK = """<link name="{name}"><inertial><origin xyz="0 0 {z}"/><mass value="{mass}"/>
    <inertia ixx="{i}" iyy="{i}" izz="{k}" ixy="0" ixz="0" iyz="0"/></inertial></link>"""

JOINT = """<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>
    <origin xyz="0 0 {z}"/><axis xyz="{axis}"/>
    <limit lower="-2.5" upper="2.5" velocity="3" effort="60"/></joint>"""

ARM = "\n".join(
    [
        '<robot name="arm">',
        '<link name="base"/>',
        JOINT.format(name="shoulder", parent="base", child="upper", z=0.1, axis="0 0 1"),
        LINK.format(name="upper", z=0.1, mass=2.0, i=0.02, k=0.004),
        JOINT.format(name="elbow", parent="upper", child="forearm", z=0.3, axis="0 1 0"),
        LINK.format(name="forearm", z=0.12, mass=1.2, i=0.01, k=0.002),
        JOINT.format(name="wrist", parent="forearm", child="hand", z=0.25, axis="1 0 0"),
        LINK.format(name="hand", z=0.05, mass=0.5, i=0.001, k=0.0006),
        "</robot>",
    ]
)

RATE, SECONDS = 200.0, 12.0


def load() -> pd.DataFrame:
    """A log of 12 s at 200 Hz; the described robot is in ``attrs["robot"]``."""
    robot = described()
    frame = log(truth(robot), 1)
    frame.attrs |= {"robot": robot, "origin": "simulated by feasid", "licence": "BSD-3-Clause"}
    return frame


def described() -> Robot:
    """The arm as its file describes it."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "arm.urdf")
        path.write_text(ARM)
        return load_robot(path)


def write_files() -> None:
    """Write ``arm.urdf``, ``log.csv``, ``other.csv`` and ``loaded.csv`` into the current folder.

    The second log is of another motion; in the third the hand carries 0.4 kg.
    """
    Path("arm.urdf").write_text(ARM)
    robot = load_robot("arm.urdf")
    for seed, name, load in ((1, "log", 0.0), (2, "other", 0.0), (1, "loaded", 0.4)):
        log(truth(robot, load), seed).to_csv(f"{name}.csv", index=False, float_format="%.8g")


def truth(robot: Robot, load: float = 0.0) -> Robot:
    """The true arm: other inertias than in its file, friction, and a load in the hand."""
    robot = robot.with_joint_terms(drive_inertia=True)
    values = robot.values.copy()
    for k, columns in enumerate(robot.inertial_columns):
        values[columns] *= (1.2, 0.9, 1.1)[k]
    hand = robot.inertial_columns[-1]
    # A point mass 8 cm along the hand adds to Lxx, Lyy, lz and m.
    values[hand[[0, 3]]] += load * 0.08**2
    values[hand[8]] += load * 0.08
    values[hand[9]] += load
    for k in range(robot.dof):
        terms = robot.drive_columns(k)
        values[[terms[s] for s in ("Ia", "fv", "fc", "fo")]] = (0.02, 0.3, 0.2, 0.02)
    return robot.with_values(values)


def log(robot: Robot, seed: int) -> pd.DataFrame:
    """A motion of a few sines per joint, with noise of 0.05 N m on the torques."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    t = np.arange(0, SECONDS, 1 / RATE)
    rates = rng.uniform(1.0, 5.0, (4, 1, robot.dof))
    sizes = rng.uniform(0.2, 0.5, rates.shape) * np.sign(rng.normal(size=rates.shape)) / rates
    angles = rates * t[:, None] + rng.uniform(0, 6, rates.shape)
    q = (sizes * np.sin(angles)).sum(axis=0)
    dq = (sizes * rates * np.cos(angles)).sum(axis=0)
    ddq = -(sizes * rates**2 * np.sin(angles)).sum(axis=0)
    tau = inverse_dynamics(robot, q, dq, ddq)
    tau += rng.normal(scale=0.05, size=tau.shape)
    columns = {"t": t}
    for k, joint in enumerate(robot.joints):
        columns |= {f"q_{joint}": q[:, k], f"dq_{joint}": dq[:, k], f"tau_{joint}": tau[:, k]}
    return pd.DataFrame(columns)


def wrist_log(robot: Robot, mass: float, centre: tuple[float, float, float]) -> pd.DataFrame:
    """A slow motion with the forces [N] and moments [N m] that a sensor in the hand measures.

    The load is a point mass, so that forces and moments follow from the way of its centre.
    """
    import pandas as pd

    t = np.arange(0, 40, 0.05)
    q = np.sin(np.outer(t, [0.11, 0.17, 0.23])) * [1.0, 0.8, 1.2]
    hand = [robot.pose(dict(zip(robot.joints, row, strict=True)))["hand"] for row in q]
    way = np.array([position + rotation @ centre for rotation, position in hand])
    push = np.gradient(np.gradient(way, t, axis=0), t, axis=0) - robot.gravity
    forces = [mass * rotation.T @ a for (rotation, _), a in zip(hand, push, strict=True)]
    wrench = np.hstack([forces, np.cross(centre, forces)])
    columns = {"t": t} | {f"q_{j}": q[:, k] for k, j in enumerate(robot.joints)}
    names = ("fx", "fy", "fz", "tx", "ty", "tz")
    return pd.DataFrame(columns | dict(zip(names, np.transpose(wrench), strict=True)))
