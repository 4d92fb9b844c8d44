"""Convert a run of the double_pendulum project to a feasid log.

    python convert.py 20230629-143339.csv run_1.csv.gz

Kept are the measured positions [rad] and the torques from the motor currents [N m]; joint 1 is
the shoulder, 2 the elbow.
"""

from __future__ import annotations

import csv
import gzip
import sys
from pathlib import Path

COLUMNS = {
    "t": "time",
    "q_shoulder": "pos_meas1",
    "q_elbow": "pos_meas2",
    "tau_shoulder": "tau_meas1",
    "tau_elbow": "tau_meas2",
}


def convert(source: Path, target: Path) -> None:
    """Write t, q and tau of both joints, seven significant digits."""
    with source.open(newline="") as file:
        rows = [[float(row[name]) for name in COLUMNS.values()] for row in csv.DictReader(file)]
    lines = [",".join(COLUMNS)]
    for t, *signals in rows:
        lines.append(f"{t:.6f}," + ",".join(f"{x:.7g}" for x in signals))
    text = "\n".join(lines) + "\n"
    target.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
