"""Convert the Unitree Z1 log of simple-robot-identification-isaaclab to a feasid log.

    python convert.py z1_traj_0.npz ../../feasid/datasets/unitree_z1/log.csv.gz

The archive holds plain arrays: ``time`` (N,), ``dof_pos`` and ``des_dof_torque`` (N, 7); the
seventh joint is the gripper, which is left out.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np

JOINTS = [f"joint{k}" for k in range(1, 7)]


def convert(source: Path, target: Path) -> None:
    """Write t, q_<joint> and tau_<joint>, seven significant digits as recorded (float32)."""
    with np.load(source, allow_pickle=False) as log:
        t = log["time"].astype(np.float64)
        q = log["dof_pos"][:, : len(JOINTS)]
        tau = log["des_dof_torque"][:, : len(JOINTS)]
    names = ["t", *(f"q_{j}" for j in JOINTS), *(f"tau_{j}" for j in JOINTS)]
    lines = [",".join(names)]
    for moment, row in zip(t, np.hstack([q, tau]), strict=True):
        lines.append(f"{moment - t[0]:.6f}," + ",".join(f"{x:.7g}" for x in row))
    text = "\n".join(lines) + "\n"
    target.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
