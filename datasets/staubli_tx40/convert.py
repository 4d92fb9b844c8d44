"""Convert the Staubli TX40 log of figaroh-examples to a feasid log on the motors' side.

    python convert.py pos_read_data.csv curr_data.csv log.csv.gz [keep]

Upstream has no time column: it was sampled at 5 kHz. Both files are low-passed without phase shift
at 40 % of the new rate, and every tenth (`keep`-th) sample is kept; keep = 1 changes nothing.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np

RATE = 5000.0
JOINTS = [f"joint_{k}" for k in range(1, 7)]


def convert(positions: Path, torques: Path, target: Path, keep: int = 10) -> None:
    """Write t, q_<joint> [rad] and tau_<joint> [N m], as the motors see them."""
    q = np.loadtxt(positions, delimiter=",", skiprows=1)
    tau = np.loadtxt(torques, delimiter=",", skiprows=1)
    if keep > 1:
        from scipy.signal import butter, sosfiltfilt

        sections = butter(4, 0.4 * RATE / keep, fs=RATE, output="sos")
        q, tau = (sosfiltfilt(sections, x, axis=0)[::keep] for x in (q, tau))
    t = np.arange(len(q)) * keep / RATE
    lines = [",".join(["t", *(f"q_{j}" for j in JOINTS), *(f"tau_{j}" for j in JOINTS)])]
    for moment, row in zip(t, np.hstack([q, tau]), strict=True):
        lines.append(f"{moment:.6g}," + ",".join(f"{x:.7g}" for x in row))
    text = "\n".join(lines) + "\n"
    target.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


if __name__ == "__main__":
    convert(*map(Path, sys.argv[1:4]), *map(int, sys.argv[4:5]))
