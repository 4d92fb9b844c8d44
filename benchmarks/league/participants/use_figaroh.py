"""figaroh 1.0.2: its own filters, both sides decimated, weighted, then the direct LMI fit.

Settings as https://thanhndv212.github.io/figaroh-plus/tutorials/ and its docstrings describe them:
``solve(decimate=True, wls=True)`` and ``select_stage: physical_fit`` of `BaseIdentification`.
Drive inertia is one switch for all joints; with the variant ``links`` it is off, as a user chooses
whose first joint turns about a vertical axis, where it has the column of Lzz.
"""

import os
import tempfile
from importlib.metadata import version

import numpy as np
import yaml
from entry import LinearModel, of_arguments
from figaroh.data.trajectory import TrajectoryData
from figaroh.identification.base_identification import BaseIdentification
from figaroh.tools.robot import Robot

CUTOFF, KEPT_RATE, MARGIN = 15.0, 50.0, 0.3
"""Filter of the positions [Hz], decimated rate [Hz], masked at the ends of runs [s]."""
INERTIAL = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")


def settings(rate, joints, drives):
    """A configuration file's content."""
    components = {"friction": True, "actuator_inertia": drives, "joint_offset": True}
    zeros = [0.0] * len(joints)
    mechanics = {"friction_coefficients": {"viscous": zeros, "static": zeros},
                 "actuator_inertias": zeros, "joint_offsets": zeros}  # fmt: skip
    signals = {"sampling_frequency": rate, "cutoff_frequency": CUTOFF, "filter_order": 3}
    task = {"enabled": True, "type": "identification", "signal_processing": signals,
            "joints": {"active_joints": list(joints)}, "mechanics": mechanics,
            "problem": {"model_components": components, "wls": True},
            "coupling": {"has_coupled_wrist": False}, "select_stage": "physical_fit",
            "physical_fit": {"enabled": True, "solver": "cvxopt"}}  # fmt: skip
    return {"robot": {"name": "arm"}, "tasks": {"identification": task}}


class Identification(BaseIdentification):
    """Runs of the log one after another; samples near their ends are masked."""

    def __init__(self, task, robot, config):
        self.task = task
        super().__init__(robot, config)
        joints = [self.model.joints[self.model.getJointId(j)]
                  for j in self.identif_config["active_joints"]]  # fmt: skip
        self.identif_config["act_idxq"] = [j.idx_q for j in joints]
        self.identif_config["act_idxv"] = [j.idx_v for j in joints]

    def load_trajectory_data(self, data_source=None):
        """The log on an even grid, as figaroh's own pipeline takes it."""
        order = self.identif_config["active_joints"]
        q, tau, mask = [], [], []
        for _, part in self.task.train.groupby("run"):
            t = part["t"].to_numpy()
            step = float(np.median(np.diff(t)))
            even = np.arange(t[0], t[-1], step)
            for kind, out in (("q", q), ("tau", tau)):
                out.append(np.stack([np.interp(even, t, part[f"{kind}_{j}"]) for j in order], 1))
            mask.append((even > t[0] + MARGIN) & (even < t[-1] - MARGIN))
        q, tau, mask = (np.concatenate(x) for x in (q, tau, mask))
        slides = ["P" in self.model.joints[self.model.getJointId(j)].shortname() for j in order]
        kinds = ["joint_force" if s else "joint_torque" for s in slides]
        return TrajectoryData(t=step * np.arange(len(q)), joint_names=tuple(order), q=q, effort=tau,
                              effort_kind=tuple(kinds), mask=mask,
                              effort_unit=tuple("N" if s else "N·m" for s in slides))  # fmt: skip


def main():
    """Answer the task with the estimate that figaroh selects."""
    task, variant = of_arguments()
    robot = Robot(str(task.urdf), str(task.folder))
    robot.model.gravity.linear = np.array(task.terms["gravity"])
    order = [j for j in robot.model.names if j in task.joints]
    rate = 1 / float(np.median(np.diff(task.train["t"])))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("arm.yaml", "w") as file:
            yaml.safe_dump(settings(rate, order, variant != "links"), file)
        found = Identification(task, robot, "arm.yaml")
        found.initialize()
        found.solve(decimate=True, decimation_factor=max(1, round(rate / KEPT_RATE)),
                    plotting=False, wls=True)  # fmt: skip
    if found.selected is None or found.selected.values is None:
        raise RuntimeError(f"no full parameters: {found.selected}")
    value = found.selected.parameter_dict()
    names = (*INERTIAL, "Ia", "fv", "fs", "off")
    x = np.array([value.get(f"{n}_{j}", 0.0) for j in task.joints for n in names])
    said = f"{found.selected.status}: {found.selected.reason}"
    task.answer(LinearModel(task).predict(task, x), x, sentences=[said],
                version=version("figaroh"))  # fmt: skip


if __name__ == "__main__":
    main()
