"""How long commands take to start: ``python benchmarks/start.py [--repeat 25]``.

`feasid check` of a good URDF beside ``python -c "import numpy"``, alternating, medians and minima
of wall and processor time; then what one process takes from nothing to its first `feasid.fit` of
two packaged logs, and what later ones take, beside the bare product W'W of `reduction.py`.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

GOOD = Path(__file__).parents[1] / "datasets" / "double_pendulum" / "pendulum.urdf"

COMMANDS = {
    "python": ["-c", "pass"],
    "numpy": ["-c", "import numpy"],
    "check": ["-m", "feasid", "check", str(GOOD)],
}

FIRST_FIT = """
import sys, time
start = time.process_time()
import feasid
from feasid import datasets
def spent(**options):
    log, before = datasets.load(sys.argv[1]), time.process_time()
    feasid.fit(log, **log.attrs["options"], **options)
    return time.process_time() - before
log = datasets.load(sys.argv[1])
loaded = time.process_time() - start
first, plain = spent(), dict(diagnose=False, calibration=None)
print(loaded, first, min(spent() for _ in range(3)), min(spent(**plain) for _ in range(3)))
import numpy as np
W, times = np.random.default_rng(0).standard_normal((57_656 * 7, 98)), []
for _ in range(5):
    before = time.process_time()
    W.T @ W
    times.append(time.process_time() - before)
print(min(times))
"""

LOGS = ("kuka_lwr4", "unitree_z1")


def spent(command: list[str]) -> tuple[float, float]:
    """Wall and processor time of a process [s]."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *command], stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=25)
    repeat = parser.parse_args().repeat
    os.environ |= {"OPENBLAS_NUM_THREADS": "1"}
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for command in COMMANDS.values():
        spent(command)
    rows = [[spent(command) for command in COMMANDS.values()] for _ in range(repeat)]
    times = np.array(rows)
    for how, name in ((np.median, "median"), (np.min, "least")):
        wall, processor = how(times, axis=0).T
        for what, w, p in zip(COMMANDS, wall, processor, strict=True):
            print(f"{name:6} {what:8} {1e3 * w:7.1f} ms {1e3 * p:7.1f} ms of the processor")
        print(
            f"{name:6} check over numpy: {wall[2] / wall[1]:.2f}, {processor[2] / processor[1]:.2f}"
        )
    for name in LOGS:
        command = [sys.executable, "-c", FIRST_FIT, name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        loading, first, again, plain, bare = map(float, done.stdout.split())
        print(
            f"{name}: reading {loading:.2f} s, first fit {first:.2f} s, later ones {again:.2f} s, "
            f"without diagnosis and calibration {plain:.2f} s of the processor: "
            f"{again / bare:.1f} and {plain / bare:.1f} times W'W"
        )


if __name__ == "__main__":
    main()
