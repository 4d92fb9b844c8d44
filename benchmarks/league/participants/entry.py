"""What participants may share: reading a task, a linear model by Pinocchio, writing the answer.

Nothing of feasid is imported here. A participant is run as ``python NAME.py [VARIANT] TASK OUT``.
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.signal import butter, sosfiltfilt

TERMS = ("Ia", "fv", "fc", "fo")
"""Drive inertia, viscous, Coulomb friction and offset: ``Ia ddq + fv dq + fc sign(dq) + fo``."""
PER_JOINT = 10 + len(TERMS)


@dataclass
class Task:
    """A task's folder as a participant sees it."""

    folder: Path
    out: Path
    joints: list[str] = field(init=False)

    def __post_init__(self):
        self.terms = json.loads((self.folder / "task.json").read_text())
        self.joints = self.terms["joints"]
        self.urdf = self.folder / "robot.urdf"
        self.train = pd.read_csv(self.folder / "train.csv")
        self.test = pd.read_csv(self.folder / "test.csv")

    def columns(self, frame, kind):
        """Columns of all joints, (N, joints)."""
        return frame[[f"{kind}_{j}" for j in self.joints]].to_numpy()

    def stretches(self, motion_cutoff=15.0):
        """Runs of the log to fit on an even grid: rate [Hz] and q, dq, ddq, tau, (N, joints)."""
        for _, part in self.train.groupby("run"):
            t = part["t"].to_numpy()
            step = float(np.median(np.diff(t)))
            even = np.arange(t[0], t[-1], step)
            q, tau = (
                np.stack([np.interp(even, t, x) for x in self.columns(part, k).T], axis=1)
                for k in ("q", "tau")
            )
            q = low_pass(q, motion_cutoff, 1 / step)
            dq = np.gradient(q, step, axis=0)
            yield 1 / step, q, dq, np.gradient(dq, step, axis=0), tau

    def answer(self, torque, parameters=None, **others):
        """Write torques of the test log and what else there is; see docs/league.md."""
        if parameters is not None:
            table = np.asarray(parameters, float).reshape(-1, PER_JOINT)
            others["parameters"] = dict(zip(self.joints, table.tolist(), strict=True))
        (self.out / "answer.json").write_text(json.dumps(others))
        frame = pd.DataFrame(torque, columns=[f"tau_{j}" for j in self.joints])
        frame.to_csv(self.out / "torque.csv", index=False, float_format="%.9g")


def low_pass(x, cutoff, rate):
    """Zero-phase Butterworth filter of third order along the rows."""
    return sosfiltfilt(butter(3, min(cutoff, 0.45 * rate), fs=rate, output="sos"), x, axis=0)


def urdf_with(urdf, bodies):
    """A URDF whose moving links have these bodies, fixed ones nothing.

    ``bodies``: Pinocchio's ten parameters by joint, about the joint's frame: m, m c, Ixx, Ixy, Iyy,
    Ixz, Iyz, Izz. Nothing is checked here: an impossible body is written as it is.
    """
    root = ET.fromstring(urdf)
    carried = {x.find("child").get("link"): x.get("name") for x in root.findall("joint")}
    for link in root.findall("link"):
        for old in link.findall("inertial"):
            link.remove(old)
        if (joint := carried.get(link.get("name"))) in bodies:
            m, *first, xx, xy, yy, xz, yz, zz = bodies[joint]
            c = np.array(first) / m
            about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            about = about - m * (c @ c * np.eye(3) - np.outer(c, c))
            inertial = ET.SubElement(link, "inertial")
            ET.SubElement(inertial, "origin", xyz=" ".join(map(repr, c.tolist())), rpy="0 0 0")
            ET.SubElement(inertial, "mass", value=repr(float(m)))
            names = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2)}
            entries = {k: repr(float(about[ij])) for k, ij in (names | {"izz": (2, 2)}).items()}
            ET.SubElement(inertial, "inertia", entries)
    return ET.tostring(root, encoding="unicode")


def of_arguments():
    """The task of the command line, and the variant before it if there is one."""
    *variant, folder, out = sys.argv[1:]
    return Task(Path(folder), Path(out)), variant[0] if variant else None


class LinearModel:
    """Torques linear in 14 parameters a joint: Pinocchio's ten of its body, and `TERMS`."""

    def __init__(self, task):
        import pinocchio as pin

        self.pin, self.model = pin, pin.buildModelFromUrdf(str(task.urdf))
        self.model.gravity.linear = np.array(task.terms["gravity"])
        self.data, self.joints = self.model.createData(), task.joints
        ids = [self.model.getJointId(j) for j in task.joints]
        self.ids, self.places = ids, [self.model.joints[i].idx_v for i in ids]
        self.size = PER_JOINT * len(ids)

    def described(self):
        """The description's parameters, joint terms zero."""
        tables = [self.model.inertias[i].toDynamicParameters() for i in self.ids]
        return np.concatenate([np.r_[x, np.zeros(len(TERMS))] for x in tables])

    def regressor(self, q, dq, ddq):
        """(N, joints, parameters)."""
        n, order = len(self.ids), np.argsort(self.places)
        bodies = np.concatenate([10 * (self.ids[k] - 1) + np.arange(10) for k in range(n)])
        out = np.zeros((len(q), n, n, PER_JOINT))
        for i, row in enumerate(zip(q[:, order], dq[:, order], ddq[:, order], strict=True)):
            full = self.pin.computeJointTorqueRegressor(self.model, self.data, *row)
            out[i, :, :, :10] = full[np.ix_(self.places, bodies)].reshape(n, n, 10)
        for k in range(n):
            out[:, k, k, 10:] = np.stack(
                [ddq[:, k], dq[:, k], np.sign(dq[:, k]), np.ones(len(q))], axis=1
            )
        return out.reshape(len(q), n, self.size)

    def predict(self, task, parameters):
        """Torques of the test log."""
        motion = [task.columns(task.test, kind) for kind in ("q", "dq", "ddq")]
        return self.regressor(*motion) @ parameters
