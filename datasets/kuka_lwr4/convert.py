"""Convert a KUKA LWR4+ log of FloBaRoID to a feasid log.

    python convert.py measurements_1.npz measurement_1.csv.gz

The archive holds plain arrays: ``times`` (N,), ``positions``, ``velocities`` and ``torques``
(N, 7). Its accelerations are filtered and left out: feasid derives its own.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np

JOINTS = [f"lwr_{k}_joint" for k in range(7)]


def convert(source: Path, target: Path) -> None:
    """Write t, q, dq and tau per joint, nine significant digits, time from the first sample."""
    with np.load(source, allow_pickle=False) as log:
        t = log["times"] - log["times"][0]
        kinds = {"q": "positions", "dq": "velocities", "tau": "torques"}
        signals = np.hstack([log[key] for key in kinds.values()])
    lines = [",".join(["t", *(f"{kind}_{j}" for kind in kinds for j in JOINTS)])]
    for moment, row in zip(t, signals, strict=True):
        lines.append(f"{moment:.6f}," + ",".join(f"{x:.9g}" for x in row))
    text = "\n".join(lines) + "\n"
    target.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
