"""How often a default fit and its print form, reduce and solve the same thing.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.calls [DATASET]

Counts calls under a profiler: what has many forms is computed many times.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from collections import Counter
from pathlib import Path

import feasid

PACKAGE = Path(feasid.__file__).parent

COUNTED = {
    "rows of the equations of a run": ("form_whole",),
    "triangles of logs": ("reduce_motions",),
    "base parameters": ("base_parameters",),
    "noise of a log": ("estimate_noise",),
    "minima by Newton's method": ("minimise",),
    "cross-validations": ("cross_validate",),
    "inverse dynamics": ("inverse_dynamics",),
}
"""What is counted, and the functions that do it."""


def main() -> None:
    """Print counts and seconds of a fit and of its print, and where the time went."""
    name = sys.argv[1] if len(sys.argv) > 1 else "unitree_z1"
    log = feasid.datasets.load(name)
    feasid.fit(log, **log.attrs["options"])  # imports, and what a process computes once
    profile = cProfile.Profile()
    start = time.process_time()
    fit = profile.runcall(feasid.fit, log, **log.attrs["options"])
    middle = time.process_time()
    profile.runcall(str, fit)
    end = time.process_time()
    print(f"{name}: fit {middle - start:.1f} s, print {end - middle:.1f} s, under the profiler")
    functions = Counter()
    seconds = Counter()
    rooms = Counter()
    for (file, _, function), (_, calls, own, total, _) in pstats.Stats(profile).stats.items():
        path = Path(file)
        if path.is_relative_to(PACKAGE):
            functions[function] += calls
            seconds[function] += total
            rooms["/".join(path.relative_to(PACKAGE).parts[:-1])] += own
    for words, names in COUNTED.items():
        for function in names:
            if functions[function]:
                print(f"{functions[function]:7d} {seconds[function]:8.2f} s  {words}: {function}")
    listed = ", ".join(f"{room} {own:.2f}" for room, own in rooms.most_common(10))
    print(f"seconds inside the functions of a room: {listed}")


if __name__ == "__main__":
    main()
