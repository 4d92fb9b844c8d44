"""Convert a Kinova Gen3 log of dynamic-identification to a feasid log.

    python convert.py RunTrajectory1.csv run_trajectory_1.csv.gz

Of upstream's 78 columns the measured ones are kept: Position and Velocity [rad, rad/s] and
TorqueCur [N m, from the motor currents]. Time is the sample index in milliseconds.
"""

from __future__ import annotations

import csv
import gzip
import sys
from pathlib import Path

KINDS = {"q": "Position", "dq": "Velocity", "tau": "TorqueCur"}


def convert(source: Path, target: Path, joints: list[str]) -> None:
    """Write t [s] and q, dq, tau per joint, digits as recorded."""
    with source.open(newline="") as file:
        rows = list(csv.DictReader(file))
    lines = [",".join(["t", *(f"{kind}_{j}" for kind in KINDS for j in joints)])]
    first = float(rows[0]["Time"])
    for row in rows:
        cells = [f"{(float(row['Time']) - first) / 1000:.3f}"]
        cells += [row[f"{name}{k + 1}"] for name in KINDS.values() for k in range(len(joints))]
        lines.append(",".join(cells))
    text = "\n".join(lines) + "\n"
    target.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


if __name__ == "__main__":
    names = [f"joint_{k}" for k in range(1, 8)]
    convert(Path(sys.argv[1]), Path(sys.argv[2]), names)
